//! What has to be sent back of an answer: its reasoning, unchanged and in its place among texts and
//! calls, and the phases of its texts. Texts and calls are in the transcript, so only their places
//! are kept.

use super::NAME;
use crate::chat::event::ProviderData;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// An item of an answer as it is kept.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum KeptItem {
    Reasoning {
        /// Required also if it is empty.
        summary: Value,
        /// Never empty.
        encrypted_content: String,
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

/// The data to send back with an answer of `items`; `None` if they say no more than the transcript.
pub(super) fn provider_data(host: &str, model: &str, items: &[KeptItem]) -> Option<ProviderData> {
    if !items.iter().any(KeptItem::is_needed) {
        return None;
    }
    let json = serde_json::to_string(items).ok()?;
    Some(ProviderData { engine: NAME, host: host.into(), model: model.into(), json: json.into() })
}

/// The items in `data`, if this engine wrote them for `model`, which alone takes them, and if they
/// are those of an answer with so many calls; otherwise none.
pub(super) fn items(data: Option<&ProviderData>, model: &str, calls: usize) -> Vec<KeptItem> {
    let own = data.filter(|data| data.engine == NAME && &*data.model == model);
    let items = own.and_then(|data| serde_json::from_str::<Vec<_>>(&data.json).ok());
    let items = items.unwrap_or_default();
    let calls_in = items.iter().filter(|item| **item == KeptItem::Call).count();
    if calls_in == calls { items } else { Vec::new() }
}

impl KeptItem {
    fn is_needed(&self) -> bool {
        match self {
            Self::Reasoning { .. } | Self::Text { phase: Some(_), .. } => true,
            Self::Text { phase: None, .. } | Self::Call => false,
        }
    }
}
