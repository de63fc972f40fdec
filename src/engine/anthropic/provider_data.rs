//! Provider data: the reasoning, unchanged and in its place among text and tool calls, because it mostly is signed.

use super::NAME;
use crate::engine::provider::provider_data::DataPart;
use serde::{Deserialize, Serialize};

/// A content block of an answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum DataBlock {
    /// Reasoning; its text may be empty where the provider shows none.
    Thinking {
        thinking: String,
        /// Empty only where a server of another provider signs nothing; it is sent as it is.
        signature: String,
    },
    /// Reasoning that only the provider can read.
    RedactedThinking { data: String },
    /// The next bytes of the answer's text.
    Text { bytes: usize },
    /// The next tool call.
    ToolUse,
}

impl DataPart for DataBlock {
    const ENGINE: &'static str = NAME;

    fn is_needed(&self) -> bool {
        matches!(self, Self::Thinking { .. } | Self::RedactedThinking { .. })
    }

    fn is_call(&self) -> bool {
        *self == Self::ToolUse
    }
}
