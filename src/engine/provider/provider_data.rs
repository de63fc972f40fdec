//! Provider data: the parts of an answer beside its text and calls (signed reasoning, ids) that its provider
//! must be sent back, as JSON of the engine's own. Pure.

use super::failure::Failures;
use crate::conversation::event::ProviderData;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Bytes of one answer that are held only to be sent back.
pub(in crate::engine) const DATA_BYTES_MAX: usize = 16 * 1024 * 1024;

/// A part of an answer in the data of an engine. Texts and calls are in the transcript, so the data has only
/// their places.
pub(in crate::engine) trait DataPart: Serialize + DeserializeOwned {
    const ENGINE: &'static str;

    /// The transcript does not have all of the part.
    fn is_needed(&self) -> bool;

    fn is_call(&self) -> bool;
}

/// The data of an answer of `parts` in the call of these failures; `None` if the transcript has all of
/// them.
pub(in crate::engine) fn encode<P: DataPart>(of: &Failures, parts: &[P]) -> Option<ProviderData> {
    parts.iter().any(P::is_needed).then(|| encode_value(P::ENGINE, of, parts))?
}

/// The parts in `data`; none if it is not that of an answer with so many calls.
pub(in crate::engine) fn decode<P: DataPart>(
    data: Option<&ProviderData>,
    model: &str,
    calls: usize,
) -> Vec<P> {
    let parts: Vec<P> = decode_value(data, P::ENGINE, model).unwrap_or_default();
    let calls_in = parts.iter().filter(|part| part.is_call()).count();
    if calls_in == calls { parts } else { Vec::new() }
}

/// Data of any form.
pub(in crate::engine) fn encode_value<T: Serialize + ?Sized>(
    engine: &str,
    of: &Failures,
    value: &T,
) -> Option<ProviderData> {
    let json = serde_json::to_string(value).ok()?.into();
    let (host, model) = (of.host().into(), of.model().into());
    Some(ProviderData { engine: engine.into(), host, model, json })
}

/// The value in `data`, if `engine` wrote it for `model`: no other model takes it.
pub(in crate::engine) fn decode_value<T: DeserializeOwned>(
    data: Option<&ProviderData>,
    engine: &str,
    model: &str,
) -> Option<T> {
    let own = data.filter(|data| &*data.engine == engine && &*data.model == model)?;
    serde_json::from_str(&own.json).ok()
}
