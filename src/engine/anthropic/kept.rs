//! What has to be sent back of an answer: its reasoning, unchanged and in its place among text and
//! tool calls, because it is signed. Text and calls are in the transcript, so only their places are
//! kept.

use super::NAME;
use crate::chat::event::ProviderData;
use serde::{Deserialize, Serialize};

/// A block of an answer as it is kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum KeptBlock {
    /// Reasoning; its text may be empty where the provider shows none.
    Thinking {
        thinking: String,
        /// Never empty.
        signature: String,
    },
    /// Reasoning that only the provider can read.
    RedactedThinking { data: String },
    /// The next bytes of the answer's text.
    Text { bytes: usize },
    /// The next tool call.
    ToolUse,
}

/// The data to send back with an answer of `blocks`; `None` if there is no reasoning in it.
pub(super) fn provider_data(host: &str, model: &str, blocks: &[KeptBlock]) -> Option<ProviderData> {
    if !blocks.iter().any(KeptBlock::is_reasoning) {
        return None;
    }
    let json = serde_json::to_string(blocks).ok()?;
    Some(ProviderData { engine: NAME, host: host.into(), model: model.into(), json: json.into() })
}

/// The blocks in `data`, if this engine wrote them for `model`, which alone takes them, and if they
/// are those of an answer with so many calls; otherwise none.
pub(super) fn blocks(data: Option<&ProviderData>, model: &str, calls: usize) -> Vec<KeptBlock> {
    let own = data.filter(|data| data.engine == NAME && &*data.model == model);
    let blocks = own.and_then(|data| serde_json::from_str::<Vec<_>>(&data.json).ok());
    let blocks = blocks.unwrap_or_default();
    let calls_in = blocks.iter().filter(|block| **block == KeptBlock::ToolUse).count();
    if calls_in == calls { blocks } else { Vec::new() }
}

impl KeptBlock {
    fn is_reasoning(&self) -> bool {
        match self {
            Self::Thinking { .. } | Self::RedactedThinking { .. } => true,
            Self::Text { .. } | Self::ToolUse => false,
        }
    }
}
