//! The cases that RFC 8259 leaves to the parser: duplicate keys, depth, half surrogate pairs and numbers out
//! of range are all errors.

use super::Error;
use super::memory::fits;
use serde::de::{self, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use std::borrow::Cow;
use std::fmt;

/// Checks unknown fields, which a typed parser ignores.
///
/// # Errors
/// If the text is not one JSON value, has more than [`super::DEPTH_MAX`] levels, a key twice in one object
/// (however it is escaped), half a surrogate pair, a number that no `f64` can hold, or so many values that they
/// take too much memory.
pub(crate) fn well_formed(text: &str) -> Result<(), Error> {
    fits(text.as_bytes())?;
    let mut reader = serde_json::Deserializer::from_str(text);
    WellFormed::deserialize(&mut reader)?;
    Ok(reader.end()?)
}

/// A value that is parsed and dropped.
struct WellFormed;

impl<'de> Deserialize<'de> for WellFormed {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // Not `IgnoredAny`, which skips strings without decoding them.
        deserializer.deserialize_any(WellFormedVisitor)
    }
}

/// An object's key; it is copied only if it has escapes.
#[derive(Deserialize, PartialEq, Eq, PartialOrd, Ord)]
struct Key<'a>(#[serde(borrow)] Cow<'a, str>);

struct WellFormedVisitor;

impl<'de> Visitor<'de> for WellFormedVisitor {
    type Value = WellFormed;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a JSON value")
    }

    fn visit_bool<E>(self, _: bool) -> Result<WellFormed, E> {
        Ok(WellFormed)
    }

    fn visit_i64<E>(self, _: i64) -> Result<WellFormed, E> {
        Ok(WellFormed)
    }

    fn visit_u64<E>(self, _: u64) -> Result<WellFormed, E> {
        Ok(WellFormed)
    }

    fn visit_f64<E>(self, _: f64) -> Result<WellFormed, E> {
        Ok(WellFormed)
    }

    fn visit_str<E>(self, _: &str) -> Result<WellFormed, E> {
        Ok(WellFormed)
    }

    fn visit_unit<E>(self) -> Result<WellFormed, E> {
        Ok(WellFormed)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<WellFormed, A::Error> {
        while items.next_element::<WellFormed>()?.is_some() {}
        Ok(WellFormed)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<WellFormed, A::Error> {
        let mut keys: Vec<Key<'de>> = Vec::new();
        while let Some((key, WellFormed)) = entries.next_entry()? {
            keys.push(key);
        }
        // Sorted, not hashed: needs no random seed, and keys can't collide on purpose.
        keys.sort_unstable();
        match keys.windows(2).find(|pair| pair[0] == pair[1]) {
            Some(twice) => Err(de::Error::custom(format_args!("duplicate key {:?}", twice[0].0))),
            None => Ok(WellFormed),
        }
    }
}
