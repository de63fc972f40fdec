//! Provider data: the signatures, each with the part where it was, and the ids of calls.

use super::NAME;
use crate::engine::provider::provider_data::DataPart;
use serde::{Deserialize, Serialize};

/// A part of an answer. Parts are not merged where one has a signature: it belongs to that part alone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "part", rename_all = "snake_case")]
pub(super) enum AnswerPart {
    /// A summary of the reasoning that is signed; others need not be sent back.
    Thought { text: String, signature: String },
    /// The next bytes of the answer's text.
    Text {
        bytes: usize,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        signature: Option<String>,
    },
    /// The next tool call.
    Call {
        /// The provider's own id; `None` if it gave none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        id: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        signature: Option<String>,
    },
}

impl DataPart for AnswerPart {
    const ENGINE: &'static str = NAME;

    fn is_needed(&self) -> bool {
        match self {
            Self::Thought { .. } => true,
            Self::Text { signature, .. } => signature.is_some(),
            Self::Call { id, signature } => id.is_some() || signature.is_some(),
        }
    }

    fn is_call(&self) -> bool {
        matches!(self, Self::Call { .. })
    }
}
