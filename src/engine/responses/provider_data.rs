//! Provider data: the reasoning, unchanged and in its place among texts and calls, and the phases of texts.

use super::NAME;
use crate::engine::provider::provider_data::DataPart;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// An output item of an answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum DataItem {
    Reasoning {
        /// Required also if it is empty.
        summary: Value,
        /// The reasoning itself, if there is no encrypted form, as with vLLM; else null.
        #[serde(default, skip_serializing_if = "Value::is_null")]
        content: Value,
        /// Never empty.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        encrypted_content: Option<String>,
        /// The provider's own, which strict servers require; `None` if it gave none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        id: Option<String>,
    },
    /// A message with the next bytes of the answer's text.
    Text {
        bytes: usize,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        phase: Option<String>,
    },
    /// The next tool call.
    Call,
}

impl DataPart for DataItem {
    const ENGINE: &'static str = NAME;

    fn is_needed(&self) -> bool {
        matches!(self, Self::Reasoning { .. } | Self::Text { phase: Some(_), .. })
    }

    fn is_call(&self) -> bool {
        *self == Self::Call
    }
}
