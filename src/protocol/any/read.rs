//! Parses the JSON of a protobuf message, in every spelling that the canonical proto3 mapping
//! allows, into protobuf's binary form, from which prost makes the message.
//!
//! pbjson accepts the spelling that it writes and few others: it rejects `null`, numbers such as
//! `1e0` and enum numbers without a name. With the binary form as an intermediate step, all of
//! them are handled in one
//! place, and a number without a name is kept.

use super::wkt::{Struct, Value};
use super::{Any, is_payload, read_known};
use crate::protocol::json::{self, Error, Number, NumberVisitor};
use crate::protocol::proto::fields::{self, Field, Kind, MessageType};
use prost::encoding::{WireType, encode_key, encode_varint};
use serde::Deserialize;
use serde::de::value::MapDeserializer;
use serde::de::{self, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

/// The key that names the type of an `Any`.
const TYPE: &str = "@type";

/// The prefix of a type's full name in an `Any`.
const TYPE_PREFIX: &str = "type.googleapis.com/";

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
    let mut bytes = Vec::new();
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

/// Appends a value that is not `null`, after the number of its field.
struct ValueSeed<'a> {
    number: u32,
    kind: Kind,
    bytes: &'a mut Vec<u8>,
}

impl<'de> DeserializeSeed<'de> for ValueSeed<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        let Self { number, kind, bytes } = self;
        match kind {
            Kind::Bool => varint(number, bool::deserialize(deserializer)?.into(), bytes),
            // Negative numbers have ten bytes, as `int32` has in binary.
            Kind::Int32 => {
                varint(number, i64::from(integer::<i32, D>(deserializer)?).cast_unsigned(), bytes);
            }
            Kind::Int64 => {
                varint(number, integer::<i64, D>(deserializer)?.cast_unsigned(), bytes);
            }
            Kind::Uint32 => varint(number, integer::<u32, D>(deserializer)?.into(), bytes),
            Kind::Uint64 => varint(number, integer::<u64, D>(deserializer)?, bytes),
            Kind::Enum(names) => {
                let value = deserializer.deserialize_any(EnumVisitor(names))?;
                varint(number, i64::from(value).cast_unsigned(), bytes);
            }
            Kind::String => deserializer.deserialize_str(StringVisitor { number, bytes })?,
            Kind::Message(message) => {
                let mut inner = Vec::new();
                MessageSeed { message, bytes: &mut inner }.deserialize(deserializer)?;
                delimited(number, &inner, bytes);
            }
            Kind::Repeated(kind) => {
                deserializer.deserialize_seq(ListVisitor { number, kind: *kind, bytes })?;
            }
            Kind::Map(kind) => {
                deserializer.deserialize_map(MapVisitor { number, kind: *kind, bytes })?;
            }
            Kind::Any => {
                let mut inner = Vec::new();
                deserializer.deserialize_map(AnyVisitor(&mut inner))?;
                delimited(number, &inner, bytes);
            }
            Kind::Struct => known::<Struct, D>(number, deserializer, bytes)?,
            Kind::Value => known::<Value, D>(number, deserializer, bytes)?,
        }
        Ok(())
    }
}

fn integer<'de, T: TryFrom<i128>, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
    Ok(Number::deserialize(deserializer)?.0)
}

/// Appends a well-known type, which parses its own JSON.
fn known<'de, T, D>(number: u32, deserializer: D, bytes: &mut Vec<u8>) -> Result<(), D::Error>
where
    T: prost::Message + Deserialize<'de>,
    D: Deserializer<'de>,
{
    delimited(number, &T::deserialize(deserializer)?.encode_to_vec(), bytes);
    Ok(())
}

fn varint(number: u32, value: u64, bytes: &mut Vec<u8>) {
    encode_key(number, WireType::Varint, bytes);
    encode_varint(value, bytes);
}

fn delimited(number: u32, value: &[u8], bytes: &mut Vec<u8>) {
    encode_key(number, WireType::LengthDelimited, bytes);
    encode_varint(value.len() as u64, bytes);
    bytes.extend_from_slice(value);
}

/// Copies a string while it is decoded: a prompt may have megabytes.
struct StringVisitor<'a> {
    number: u32,
    bytes: &'a mut Vec<u8>,
}

impl Visitor<'_> for StringVisitor<'_> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a string")
    }

    fn visit_str<E>(self, text: &str) -> Result<(), E> {
        delimited(self.number, text.as_bytes(), self.bytes);
        Ok(())
    }
}

/// An enum value by its name, or by its number, which need not have a name here.
struct EnumVisitor(&'static [(&'static str, i32)]);

impl Visitor<'_> for EnumVisitor {
    type Value = i32;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an enum value's name or number")
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<i32, E> {
        NumberVisitor(PhantomData).visit_i64(value).map(|Number(number)| number)
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<i32, E> {
        NumberVisitor(PhantomData).visit_u64(value).map(|Number(number)| number)
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<i32, E> {
        NumberVisitor(PhantomData).visit_f64(value).map(|Number(number)| number)
    }

    fn visit_str<E: de::Error>(self, name: &str) -> Result<i32, E> {
        let named = self.0.iter().find(|(known, _)| *known == name);
        let unknown = || E::invalid_value(de::Unexpected::Str(name), &self);
        named.map(|(_, number)| *number).ok_or_else(unknown)
    }
}

struct ListVisitor<'a> {
    number: u32,
    kind: Kind,
    bytes: &'a mut Vec<u8>,
}

impl<'de> Visitor<'de> for ListVisitor<'_> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an array")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        let Self { number, kind, bytes } = self;
        while items.next_element_seed(ValueSeed { number, kind, bytes })?.is_some() {}
        Ok(())
    }
}

/// In binary a map is a list of messages with a key, field 1, and a value, field 2.
struct MapVisitor<'a> {
    number: u32,
    kind: Kind,
    bytes: &'a mut Vec<u8>,
}

impl<'de> Visitor<'de> for MapVisitor<'_> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<(), A::Error> {
        while let Some(Key(key)) = entries.next_key()? {
            let mut entry = Vec::new();
            delimited(1, key.as_bytes(), &mut entry);
            entries.next_value_seed(ValueSeed { number: 2, kind: self.kind, bytes: &mut entry })?;
            delimited(self.number, &entry, self.bytes);
        }
        Ok(())
    }
}

/// Appends an `Any`: its type as field 1, its message as field 2. The type may be at any position.
struct AnyVisitor<'a>(&'a mut Vec<u8>);

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
