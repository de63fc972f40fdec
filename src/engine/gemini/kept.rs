//! What has to be sent back of an answer: its signatures, each with the part where it was, and the ids
//! of its calls. Texts and calls are in the transcript, so only their places are kept.

use super::NAME;
use crate::chat::event::ProviderData;
use serde::{Deserialize, Serialize};

/// A part of an answer as it is kept. Parts are not merged where one has a signature: it belongs to
/// that part alone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "part", rename_all = "snake_case")]
pub(super) enum KeptPart {
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

/// The data to send back with an answer of `parts`; `None` if nothing in it is the provider's own.
pub(super) fn provider_data(host: &str, model: &str, parts: &[KeptPart]) -> Option<ProviderData> {
    if !parts.iter().any(KeptPart::is_own) {
        return None;
    }
    let json = serde_json::to_string(parts).ok()?;
    Some(ProviderData { engine: NAME, host: host.into(), model: model.into(), json: json.into() })
}

/// The parts in `data`, if this engine wrote them for `model`, which alone takes them, and if they are
/// those of an answer with so many calls; otherwise none.
pub(super) fn parts(data: Option<&ProviderData>, model: &str, calls: usize) -> Vec<KeptPart> {
    let own = data.filter(|data| data.engine == NAME && &*data.model == model);
    let parts = own.and_then(|data| serde_json::from_str::<Vec<_>>(&data.json).ok());
    let parts = parts.unwrap_or_default();
    let is_call = |part: &&KeptPart| matches!(part, KeptPart::Call { .. });
    if parts.iter().filter(is_call).count() == calls { parts } else { Vec::new() }
}

impl KeptPart {
    fn is_own(&self) -> bool {
        match self {
            Self::Thought { .. } => true,
            Self::Text { signature, .. } => signature.is_some(),
            Self::Call { id, signature } => id.is_some() || signature.is_some(),
        }
    }
}
