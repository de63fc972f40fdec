//! What is sent back of an answer beside its text and calls: the reasoning. It belongs to the message
//! and not to a place in it.

use super::NAME;
use crate::chat::event::ProviderData;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct Kept {
    thinking: String,
}

/// The data to send back with an answer; `None` if it has no reasoning.
pub(super) fn provider_data(host: &str, model: &str, thinking: &str) -> Option<ProviderData> {
    if thinking.is_empty() {
        return None;
    }
    let json = serde_json::to_string(&Kept { thinking: thinking.to_owned() }).ok()?;
    Some(ProviderData { engine: NAME, host: host.into(), model: model.into(), json: json.into() })
}

/// The reasoning in `data`, if this engine wrote it for `model`.
pub(super) fn thinking(data: Option<&ProviderData>, model: &str) -> Option<String> {
    let own = data.filter(|data| data.engine == NAME && &*data.model == model)?;
    serde_json::from_str::<Kept>(&own.json).ok().map(|kept| kept.thinking)
}
