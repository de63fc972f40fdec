//! The value of a field, by the kind of the field.

use super::payload::AnyVisitor;
use super::{Key, MessageSeed};
use crate::protocol::any::wkt::{Struct, Value};
use crate::protocol::json::{Number, NumberVisitor};
use crate::protocol::proto::fields::Kind;
use prost::encoding::{WireType, encode_key, encode_varint};
use serde::Deserialize;
use serde::de::{self, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use std::fmt;
use std::marker::PhantomData;

/// Appends a value that is not `null`, after the number of its field.
pub(super) struct ValueSeed<'a> {
    pub(super) number: u32,
    pub(super) kind: Kind,
    pub(super) bytes: &'a mut Vec<u8>,
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

pub(super) fn delimited(number: u32, value: &[u8], bytes: &mut Vec<u8>) {
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
