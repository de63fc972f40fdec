//! `Any`: an object whose `@type` names the message that its other members are.

use super::MessageSeed;
use super::values::delimited;
use crate::protocol::any::{is_payload, read_known};
use crate::protocol::proto::fields;
use serde::de::value::MapDeserializer;
use serde::de::{self, MapAccess, Visitor};
use std::fmt;

/// The key that names the type of an `Any`.
const TYPE: &str = "@type";

/// The prefix of a type's full name in an `Any`.
const TYPE_PREFIX: &str = "type.googleapis.com/";

/// Appends an `Any`: its type as field 1, its message as field 2. The type may be at any position.
pub(super) struct AnyVisitor<'a>(pub(super) &'a mut Vec<u8>);

impl<'de> Visitor<'de> for AnyVisitor<'_> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object with an `@type`")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<(), A::Error> {
        let mut before = serde_json::Map::new();
        while let Some(key) = entries.next_key::<String>()? {
            if key != TYPE {
                before.insert(key, entries.next_value()?);
                continue;
            }
            let url: String = entries.next_value()?;
            if before.is_empty() {
                // Our own spelling: the rest is parsed as it comes.
                return payload(&url, entries, self.0);
            }
            while let Some((key, value)) = entries.next_entry()? {
                before.insert(key, value);
            }
            let rest = MapDeserializer::new(before.into_iter());
            return payload(&url, rest, self.0).map_err(de::Error::custom::<serde_json::Error>);
        }
        match before.is_empty() {
            true => Ok(()),
            false => Err(de::Error::missing_field(TYPE)),
        }
    }
}

/// Appends the type, and the message made of `entries`.
fn payload<'de, A: MapAccess<'de>>(
    url: &str,
    entries: A,
    bytes: &mut Vec<u8>,
) -> Result<(), A::Error> {
    let unknown = || de::Error::custom(format_args!("unknown @type {url:?}"));
    let name = url.strip_prefix(TYPE_PREFIX).ok_or_else(unknown)?;
    let mut inner = Vec::new();
    match fields::message(name).filter(|_| is_payload(url)) {
        Some(message) => MessageSeed { message, bytes: &mut inner }.visit_map(entries)?,
        None => inner = read_known(url, entries)?.ok_or_else(unknown)?,
    }
    delimited(1, url.as_bytes(), bytes);
    if !inner.is_empty() {
        delimited(2, &inner, bytes);
    }
    Ok(())
}
