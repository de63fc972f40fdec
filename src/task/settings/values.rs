//! The values that settings can have, read from JSON.

use super::StructuredMode;
use crate::support::secret::Secret;
use serde_json::Value;
use std::collections::BTreeMap;

/// Stop sequences of a call. Providers allow fewer: their errors say so.
const STOP_SEQUENCES_MAX: usize = 16;

/// Bytes of a word that only the provider knows, as `reasoning_effort`.
const WORD_BYTES_MAX: usize = 64;

/// `None` if the value is wrong; `Some(None)` if it is `null`.
pub(super) fn optional<T>(
    value: &Value,
    read: impl FnOnce(&Value) -> Option<T>,
) -> Option<Option<T>> {
    if value.is_null() { Some(None) } else { read(value).map(Some) }
}

pub(super) fn number(value: &Value, min: f64, max: f64) -> Option<f64> {
    value.as_f64().filter(|number| (min..=max).contains(number))
}

/// A whole number, also one that is written with a fraction of 0, as protobuf's `Struct` does.
pub(super) fn whole(value: &Value) -> Option<i64> {
    const EXACT_MAX: f64 = 9_007_199_254_740_992.0;
    let from_float = || {
        let float =
            value.as_f64().filter(|float| float.fract() == 0.0 && float.abs() <= EXACT_MAX)?;
        format!("{float:.0}").parse().ok()
    };
    value.as_i64().or_else(from_float)
}

pub(super) fn count(value: &Value) -> Option<u32> {
    whole(value).and_then(|count| u32::try_from(count).ok())
}

pub(super) fn word(value: &Value) -> Option<String> {
    let word = value.as_str()?.trim();
    let is_fine = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    let fits = (1..=WORD_BYTES_MAX).contains(&word.len());
    (fits && word.chars().all(is_fine)).then(|| word.to_owned())
}

pub(super) fn texts(value: &Value) -> Option<Vec<String>> {
    let text = |value: &Value| value.as_str().filter(|text| !text.is_empty()).map(str::to_owned);
    match value.as_array() {
        Some(texts) if texts.len() <= STOP_SEQUENCES_MAX => texts.iter().map(text).collect(),
        Some(_) | None => text(value).map(|text| vec![text]),
    }
}

pub(super) fn structured(value: &Value) -> Option<StructuredMode> {
    match value.as_str()? {
        "native" => Some(StructuredMode::Native),
        "prompt" => Some(StructuredMode::Prompt),
        _ => None,
    }
}

pub(super) fn headers(value: &Value) -> Option<BTreeMap<String, Secret>> {
    let header = |(name, value): (&String, &Value)| {
        http::HeaderName::try_from(name.as_str()).ok()?;
        let text = value.as_str()?;
        http::HeaderValue::try_from(text).ok()?;
        Some((name.to_ascii_lowercase(), Secret::new(text)?))
    };
    value.as_object()?.iter().map(header).collect()
}
