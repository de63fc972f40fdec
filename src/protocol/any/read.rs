//! Parses the JSON of a protobuf message, in every spelling that the canonical proto3 mapping
//! allows, into protobuf's binary form, from which prost makes the message.
//!
//! pbjson accepts the spelling that it writes and few others: it rejects `null`, numbers such as
//! `1e0` and enum numbers without a name. With the binary form as an intermediate step, all of
//! them are handled in one place, and a number without a name stays as it is.

mod payload;
mod values;

use super::Any;
use crate::protocol::json::{self, Error};
use crate::protocol::proto::fields::{self, Field, Kind, MessageType};
use payload::AnyVisitor;
use serde::Deserialize;
use serde::de::{self, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};
use std::borrow::Cow;
use std::fmt;
use values::ValueSeed;

/// Bytes that most messages take in the binary form.
const MESSAGE_BYTES: usize = 512;

/// Parses one message.
///
/// # Errors
/// As [`json::read`], or if the text is not an `M`.
pub fn read_message<M>(text: &str) -> Result<M, Error>
where
    M: prost::Message + prost::Name + Default,
{
    json::well_formed(text)?;
    Ok(read(&mut serde_json::Deserializer::from_str(text))?)
}

/// Parses one message that a server wrote: what is in fields that are not known is not checked.
///
/// # Errors
/// If the text is not an `M`.
pub(crate) fn read_written<M>(text: &str) -> Result<M, Error>
where
    M: prost::Message + prost::Name + Default,
{
    let mut reader = serde_json::Deserializer::from_str(text);
    let message = read(&mut reader)?;
    reader.end()?;
    Ok(message)
}

/// Converts a message from parsed JSON.
///
/// # Errors
/// If it is not an `M`.
pub(crate) fn message_from_value<M>(value: serde_json::Value) -> Result<M, Error>
where
    M: prost::Message + prost::Name + Default,
{
    Ok(read(value)?)
}

fn read<'de, M, D>(deserializer: D) -> Result<M, D::Error>
where
    M: prost::Message + prost::Name + Default,
    D: Deserializer<'de>,
{
    let name = M::full_name();
    let unknown = || de::Error::custom(format_args!("{name} is no message of the protocol"));
    let message = fields::message(&name).ok_or_else(unknown)?;
    let mut bytes = Vec::with_capacity(MESSAGE_BYTES);
    MessageSeed { message, bytes: &mut bytes }.deserialize(deserializer)?;
    M::decode(bytes.as_slice()).map_err(de::Error::custom)
}

impl<'de> Deserialize<'de> for Any {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut bytes = Vec::new();
        deserializer.deserialize_map(AnyVisitor(&mut bytes))?;
        prost::Message::decode(bytes.as_slice()).map_err(de::Error::custom)
    }
}

/// An object's key; it is copied only if it has escapes.
#[derive(Deserialize)]
#[serde(transparent)]
struct Key<'a>(#[serde(borrow)] Cow<'a, str>);

/// Appends the fields of a message to `bytes`.
struct MessageSeed<'a> {
    message: &'static MessageType,
    bytes: &'a mut Vec<u8>,
}

impl<'de> DeserializeSeed<'de> for MessageSeed<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for MessageSeed<'_> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "an object with the fields of {}", self.message.name)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<(), A::Error> {
        let mut seen = Seen::default();
        while let Some(Key(key)) = entries.next_key()? {
            let Some((place, field)) = self.message.field(&key) else {
                let IgnoredAny = entries.next_value()?;
                continue;
            };
            seen.field(place, field)?;
            let is_set = entries.next_value_seed(FieldSeed { field, bytes: self.bytes })?;
            seen.member(field, is_set)?;
        }
        Ok(())
    }
}

impl MessageType {
    /// The field with the JSON name `key`, in either spelling, and its position.
    fn field(&self, key: &str) -> Option<(u32, &'static Field)> {
        let named = |field: &&Field| field.json_name == key || field.name == key;
        (0..).zip(self.fields).find(|(_, field)| named(field))
    }
}

/// State of one object. No message of the protocol has half as many fields as there are
/// bits.
#[derive(Default)]
struct Seen {
    fields: u64,
    oneofs: u64,
}

impl Seen {
    fn field<E: de::Error>(&mut self, place: u32, field: &Field) -> Result<(), E> {
        match set_bit(&mut self.fields, place) {
            true => Ok(()),
            false => Err(E::duplicate_field(field.json_name)),
        }
    }

    fn member<E: de::Error>(&mut self, field: &Field, is_set: bool) -> Result<(), E> {
        match field.oneof {
            Some(oneof) if is_set && !set_bit(&mut self.oneofs, oneof) => {
                Err(E::custom("two members of one oneof"))
            }
            Some(_) | None => Ok(()),
        }
    }
}

/// Sets a bit; false if it was set, or if there is no such bit.
fn set_bit(bits: &mut u64, place: u32) -> bool {
    let bit = 1_u64.checked_shl(place).unwrap_or(0);
    let was_clear = bit != 0 && *bits & bit == 0;
    *bits |= bit;
    was_clear
}

/// Appends a field, number and value; false if it is `null`, which means unset.
struct FieldSeed<'a> {
    field: &'static Field,
    bytes: &'a mut Vec<u8>,
}

impl<'de> DeserializeSeed<'de> for FieldSeed<'_> {
    type Value = bool;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<bool, D::Error> {
        let Self { field: Field { number, kind, .. }, bytes } = self;
        let value = ValueSeed { number: *number, kind: *kind, bytes };
        // For a `Value`, null is a value like any other.
        if let Kind::Value = kind {
            return value.deserialize(deserializer).map(|()| true);
        }
        deserializer.deserialize_option(OptionalSeed(value))
    }
}

struct OptionalSeed<'a>(ValueSeed<'a>);

impl<'de> Visitor<'de> for OptionalSeed<'_> {
    type Value = bool;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a value or null")
    }

    fn visit_none<E>(self) -> Result<bool, E> {
        Ok(false)
    }

    fn visit_unit<E>(self) -> Result<bool, E> {
        Ok(false)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<bool, D::Error> {
        self.0.deserialize(deserializer).map(|()| true)
    }
}
