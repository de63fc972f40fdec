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

/// Deepest nesting of arrays and objects in a `Struct` or a `Value` that other readers of protobuf are sent: each level
/// is three messages, and they accept a hundred.
pub(crate) const SENT_LEVELS_MAX: usize = 30;

impl Struct {
    /// The object, unless it is nested deeper than other readers of protobuf accept.
    pub(crate) fn if_sent(self) -> Option<Self> {
        (self.levels() <= SENT_LEVELS_MAX).then_some(self)
    }

    /// The nesting of arrays and objects.
    fn levels(&self) -> usize {
        1 + self.fields.values().map(Value::levels).max().unwrap_or(0)
    }
}

/// Deepest nesting of arrays and objects that is read, which is that of the JSON of a request and its envelope.
/// Counted here: each level is up to three messages, of which prost reads a hundred, and what was taken as JSON or
/// was stored must be read again.
const LEVELS_MAX: usize = 128;

/// A message whose nesting is counted in levels of JSON.
trait Nested: Sized {
    /// Reads a field of it; `levels` is how many more may be in it.
    fn merge_nested(
        &mut self,
        tag: u32,
        wire_type: WireType,
        bytes: &mut impl Buf,
        context: DecodeContext,
        levels: usize,
    ) -> Result<(), DecodeError>;

    /// Reads it as a field of another message.
    fn merge_delimited(
        &mut self,
        wire_type: WireType,
        bytes: &mut impl Buf,
        context: DecodeContext,
        levels: usize,
    ) -> Result<(), DecodeError> {
        encoding::wire_type::check_wire_type(WireType::LengthDelimited, wire_type)?;
        encoding::merge_loop(self, bytes, context, |message, bytes, context| {
            let (tag, wire_type) = encoding::decode_key(bytes)?;
            message.merge_nested(tag, wire_type, bytes, context, levels)
        })
    }
}

/// The levels that are left within one more.
fn within(levels: usize) -> Result<usize, DecodeError> {
    #[expect(deprecated, reason = "prost has no other way to make an error")]
    let too_deep =
        || DecodeError::new(format!("arrays and objects are nested more than {LEVELS_MAX} deep"));
    levels.checked_sub(1).ok_or_else(too_deep)
}

/// The number of the field `fields`.
const FIELDS: u32 = 1;

/// A member in binary, as of any map.
#[derive(Default)]
struct Member {
    key: String,
    value: Value,
}

impl Nested for Member {
    fn merge_nested(
        &mut self,
        tag: u32,
        wire_type: WireType,
        bytes: &mut impl Buf,
        context: DecodeContext,
        levels: usize,
    ) -> Result<(), DecodeError> {
        match tag {
            1 => encoding::string::merge(wire_type, &mut self.key, bytes, context),
            2 => self.value.merge_delimited(wire_type, bytes, context, levels),
            _ => encoding::skip_field(wire_type, tag, bytes, context),
        }
    }
}

fn member_len(key: &String, value: &Value) -> usize {
    encoding::string::encoded_len(1, key) + encoding::message::encoded_len(2, value)
}

impl Nested for Struct {
    fn merge_nested(
        &mut self,
        tag: u32,
        wire_type: WireType,
        bytes: &mut impl Buf,
        context: DecodeContext,
        levels: usize,
    ) -> Result<(), DecodeError> {
        if tag != FIELDS {
            return encoding::skip_field(wire_type, tag, bytes, context);
        }
        let mut member = Member::default();
        member.merge_delimited(wire_type, bytes, context, levels)?;
        self.fields.insert(member.key, member.value);
        Ok(())
    }
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
        self.merge_nested(tag, wire_type, bytes, context, LEVELS_MAX - 1)
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
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ListValue {
    /// Its elements.
    pub values: Vec<Value>,
}

/// The number of the field `values`.
const VALUES: u32 = 1;

impl Nested for ListValue {
    fn merge_nested(
        &mut self,
        tag: u32,
        wire_type: WireType,
        bytes: &mut impl Buf,
        context: DecodeContext,
        levels: usize,
    ) -> Result<(), DecodeError> {
        if tag != VALUES {
            return encoding::skip_field(wire_type, tag, bytes, context);
        }
        let mut value = Value::default();
        value.merge_delimited(wire_type, bytes, context, levels)?;
        self.values.push(value);
        Ok(())
    }
}

impl prost::Message for ListValue {
    fn encode_raw(&self, bytes: &mut impl BufMut) {
        encoding::message::encode_repeated(VALUES, &self.values, bytes);
    }

    fn merge_field(
        &mut self,
        tag: u32,
        wire_type: WireType,
        bytes: &mut impl Buf,
        context: DecodeContext,
    ) -> Result<(), DecodeError> {
        self.merge_nested(tag, wire_type, bytes, context, LEVELS_MAX - 1)
    }

    fn encoded_len(&self) -> usize {
        encoding::message::encoded_len_repeated(VALUES, &self.values)
    }

    fn clear(&mut self) {
        self.values.clear();
    }
}

/// A JSON value.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Value {
    /// The value; unset only in invalid bytes, and then read as `null`.
    pub kind: Option<Kind>,
}

impl Value {
    fn levels(&self) -> usize {
        match &self.kind {
            Some(Kind::Struct(object)) => object.levels(),
            Some(Kind::List(list)) => 1 + list.values.iter().map(Self::levels).max().unwrap_or(0),
            None | Some(Kind::Null(_) | Kind::Number(_) | Kind::String(_) | Kind::Bool(_)) => 0,
        }
    }
}

/// The number of the field `struct_value`.
const STRUCT: u32 = 5;

/// The number of the field `list_value`.
const LIST: u32 = 6;

impl Nested for Value {
    fn merge_nested(
        &mut self,
        tag: u32,
        wire_type: WireType,
        bytes: &mut impl Buf,
        context: DecodeContext,
        levels: usize,
    ) -> Result<(), DecodeError> {
        match (tag, self.kind.take()) {
            (STRUCT, kind) => {
                // An object in two parts is one.
                let mut object =
                    if let Some(Kind::Struct(object)) = kind { object } else { Struct::default() };
                object.merge_delimited(wire_type, bytes, context, within(levels)?)?;
                self.kind = Some(Kind::Struct(object));
                Ok(())
            }
            (LIST, kind) => {
                let mut list =
                    if let Some(Kind::List(list)) = kind { list } else { ListValue::default() };
                list.merge_delimited(wire_type, bytes, context, within(levels)?)?;
                self.kind = Some(Kind::List(list));
                Ok(())
            }
            (1..STRUCT, kind) => {
                self.kind = kind;
                Kind::merge(&mut self.kind, tag, wire_type, bytes, context)
            }
            (_, kind) => {
                self.kind = kind;
                encoding::skip_field(wire_type, tag, bytes, context)
            }
        }
    }
}

impl prost::Message for Value {
    fn encode_raw(&self, bytes: &mut impl BufMut) {
        if let Some(kind) = &self.kind {
            kind.encode(bytes);
        }
    }

    fn merge_field(
        &mut self,
        tag: u32,
        wire_type: WireType,
        bytes: &mut impl Buf,
        context: DecodeContext,
    ) -> Result<(), DecodeError> {
        self.merge_nested(tag, wire_type, bytes, context, LEVELS_MAX)
    }

    fn encoded_len(&self) -> usize {
        self.kind.as_ref().map_or(0, Kind::encoded_len)
    }

    fn clear(&mut self) {
        self.kind = None;
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use prost::Message;

    /// A message in binary with this many levels, written from the inside, so that nothing recurses.
    fn nested(levels: usize, is_list: bool) -> Vec<u8> {
        let field = |number: u32, inner: &[u8]| {
            let mut bytes = Vec::new();
            encoding::encode_key(number, WireType::LengthDelimited, &mut bytes);
            encoding::encode_varint(inner.len() as u64, &mut bytes);
            [bytes.as_slice(), inner].concat()
        };
        (0..levels).fold(Vec::new(), |value, _| match is_list {
            true => field(LIST, &field(VALUES, &value)),
            false => field(STRUCT, &field(FIELDS, &field(2, &value))),
        })
    }

    #[test]
    fn what_is_nested_as_deep_as_a_request_may_be_is_read_from_bytes() {
        // As deep as the reader of JSON goes.
        for levels in [2, 34, 100, 126] {
            let json = format!("{}1{}", "[{\"a\":".repeat(levels / 2), "}]".repeat(levels / 2));
            let value: Value = serde_json::from_str(&json).expect(&json);
            assert_eq!(Value::decode(&*value.encode_to_vec()).as_ref(), Ok(&value));
        }
        for levels in [1, 33, LEVELS_MAX] {
            for is_list in [true, false] {
                assert!(Value::decode(&*nested(levels, is_list)).is_ok(), "{levels}");
            }
        }
        let object: Struct = serde_json::from_str("{\"a\":[[{}]]}").expect("an object");
        assert_eq!(Struct::decode(&*object.encode_to_vec()).as_ref(), Ok(&object));
        let list: ListValue = serde_json::from_str("[{\"a\":[]},1]").expect("a list");
        assert_eq!(ListValue::decode(&*list.encode_to_vec()).as_ref(), Ok(&list));
    }

    #[test]
    fn what_is_nested_deeper_is_an_error_and_uses_no_more_of_the_stack() {
        for levels in [LEVELS_MAX + 1, 5_000] {
            for is_list in [true, false] {
                let error = Value::decode(&*nested(levels, is_list)).expect_err("too deep");
                assert!(error.to_string().contains("more than 128 deep"), "{error}");
            }
        }
    }
}
