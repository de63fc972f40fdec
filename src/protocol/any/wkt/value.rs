//! `Struct`, `ListValue` and `Value`: any JSON.

use indexmap::IndexMap;
use prost::DecodeError;
use prost::bytes::{Buf, BufMut};
use prost::encoding::{self, DecodeContext, WireType};
use serde::de::{self, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::ser::{self, Serializer};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::hash::{Hash, Hasher};

/// A JSON object, its members in the order in which they were written. Two are equal if their
/// members are, in whatever order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Struct {
    /// Its members.
    // Boxed: most values are no objects, and each would be as large as one.
    pub fields: Box<IndexMap<String, Value>>,
}

/// The number of the field `fields`.
const FIELDS: u32 = 1;

/// A member in binary, as of any map.
#[derive(Clone, PartialEq, prost::Message)]
struct Member {
    #[prost(string, tag = "1")]
    key: String,
    #[prost(message, required, tag = "2")]
    value: Value,
}

fn member_len(key: &String, value: &Value) -> usize {
    encoding::string::encoded_len(1, key) + encoding::message::encoded_len(2, value)
}

impl prost::Message for Struct {
    fn encode_raw(&self, bytes: &mut impl BufMut) {
        for (key, value) in self.fields.iter() {
            encoding::encode_key(FIELDS, WireType::LengthDelimited, bytes);
            encoding::encode_varint(member_len(key, value) as u64, bytes);
            encoding::string::encode(1, key, bytes);
            encoding::message::encode(2, value, bytes);
        }
    }

    fn merge_field(
        &mut self,
        tag: u32,
        wire_type: WireType,
        bytes: &mut impl Buf,
        context: DecodeContext,
    ) -> Result<(), DecodeError> {
        if tag != FIELDS {
            return encoding::skip_field(wire_type, tag, bytes, context);
        }
        let mut member = Member::default();
        encoding::message::merge(wire_type, &mut member, bytes, context)?;
        self.fields.insert(member.key, member.value);
        Ok(())
    }

    fn encoded_len(&self) -> usize {
        let member = |(key, value)| {
            let len = member_len(key, value);
            encoding::key_len(FIELDS) + encoding::encoded_len_varint(len as u64) + len
        };
        self.fields.iter().map(member).sum()
    }

    fn clear(&mut self) {
        self.fields.clear();
    }
}

/// Equal objects have equal hashes, whatever the order of their members.
impl Hash for Struct {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let mut members: Vec<_> = self.fields.iter().collect();
        members.sort_unstable_by_key(|(key, _)| *key);
        members.hash(state);
    }
}

/// A JSON array.
#[derive(Clone, PartialEq, Eq, Hash, prost::Message, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ListValue {
    /// Its elements.
    #[prost(message, repeated, tag = "1")]
    pub values: Vec<Value>,
}

/// A JSON value.
#[derive(Clone, PartialEq, Eq, Hash, prost::Message)]
pub struct Value {
    /// The value; unset only in invalid bytes, and then read as `null`.
    #[prost(oneof = "Kind", tags = "1, 2, 3, 4, 5, 6")]
    pub kind: Option<Kind>,
}

/// The kinds of [`Value`].
#[derive(Clone, prost::Oneof)]
pub enum Kind {
    /// `null`, as the only number of the enum `google.protobuf.NullValue`.
    #[prost(int32, tag = "1")]
    Null(i32),
    /// A number; protobuf has no other number type here.
    #[prost(double, tag = "2")]
    Number(f64),
    /// A string.
    #[prost(string, tag = "3")]
    String(String),
    /// A boolean.
    #[prost(bool, tag = "4")]
    Bool(bool),
    /// An object.
    #[prost(message, tag = "5")]
    Struct(Struct),
    /// An array.
    #[prost(message, tag = "6")]
    List(ListValue),
}

/// Numbers are equal if their bits are: a NaN is itself, and -0 is not 0.
impl PartialEq for Kind {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Null(_), Self::Null(_)) => true,
            (Self::Number(a), Self::Number(b)) => a.to_bits() == b.to_bits(),
            (Self::String(a), Self::String(b)) => a == b,
            (Self::Bool(a), Self::Bool(b)) => a == b,
            (Self::Struct(a), Self::Struct(b)) => a == b,
            (Self::List(a), Self::List(b)) => a == b,
            _ => false,
        }
    }
}

impl Eq for Kind {}

impl Hash for Kind {
    fn hash<H: Hasher>(&self, state: &mut H) {
        std::mem::discriminant(self).hash(state);
        match self {
            Self::Null(_) => {}
            Self::Number(number) => number.to_bits().hash(state),
            Self::String(string) => string.hash(state),
            Self::Bool(bool) => bool.hash(state),
            Self::Struct(object) => object.hash(state),
            Self::List(list) => list.hash(state),
        }
    }
}

impl Serialize for Value {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.kind {
            None | Some(Kind::Null(_)) => serializer.serialize_unit(),
            Some(Kind::Number(number)) if number.is_finite() => {
                serialize_finite(*number, serializer)
            }
            Some(Kind::Number(number)) => {
                Err(ser::Error::custom(format_args!("{number} cannot stand in a Value")))
            }
            Some(Kind::String(string)) => serializer.serialize_str(string),
            Some(Kind::Bool(bool)) => serializer.serialize_bool(*bool),
            Some(Kind::Struct(object)) => object.serialize(serializer),
            Some(Kind::List(list)) => list.serialize(serializer),
        }
    }
}

/// An integer is written without `.0`, as other implementations do, if all of its
/// digits are exact; -0 does not count as one.
pub(super) fn serialize_finite<S: Serializer>(
    number: f64,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    const WHOLE_MAX: f64 = 9_007_199_254_740_992.0; // 2^53
    let negative_zero = number == 0.0 && number.is_sign_negative();
    if number.fract() == 0.0 && number.abs() <= WHOLE_MAX && !negative_zero {
        serializer.serialize_i64(number as i64)
    } else {
        serializer.serialize_f64(number)
    }
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let kind = Some(deserializer.deserialize_any(KindVisitor)?);
        Ok(Self { kind })
    }
}

struct KindVisitor;

impl<'de> Visitor<'de> for KindVisitor {
    type Value = Kind;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Kind, E> {
        Ok(Kind::Null(0))
    }

    fn visit_bool<E>(self, value: bool) -> Result<Kind, E> {
        Ok(Kind::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Kind, E> {
        Ok(Kind::Number(value as f64))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Kind, E> {
        Ok(Kind::Number(value as f64))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Kind, E> {
        Ok(Kind::Number(value))
    }

    fn visit_str<E>(self, value: &str) -> Result<Kind, E> {
        Ok(Kind::String(value.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, items: A) -> Result<Kind, A::Error> {
        ListValue::deserialize(de::value::SeqAccessDeserializer::new(items)).map(Kind::List)
    }

    fn visit_map<A: MapAccess<'de>>(self, entries: A) -> Result<Kind, A::Error> {
        Struct::deserialize(de::value::MapAccessDeserializer::new(entries)).map(Kind::Struct)
    }
}
