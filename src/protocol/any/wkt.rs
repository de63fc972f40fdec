//! The well-known types of `google.protobuf` and their JSON in the canonical mapping.
//!
//! Those of pbjson-types where its JSON is right. The others are our own types: compared with
//! other implementations, pbjson-types writes integers as `1.0`, NaN as `null`, a time without
//! its `Z` and the members of a `Struct` in any order, and rejects spellings that the mapping
//! allows. Fields and numbers are those of the `.proto` files that come with protobuf.

pub use pbjson_types::{BoolValue, Empty, StringValue};

use crate::protocol::json::{Float, Number, Quoted};
use base64::Engine;
use base64::alphabet::STANDARD;
use base64::display::Base64Display;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use serde::de::{self, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::ser::{self, Serializer};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::hash::{Hash, Hasher};

/// A well-known type while it is converted from JSON to binary.
pub(super) trait WellKnown: prost::Message + Sized {
    /// Its binary form.
    fn to_bytes(&self) -> Vec<u8> {
        self.encode_to_vec()
    }
}

impl WellKnown for super::Any {}
impl WellKnown for BoolValue {}
impl WellKnown for Duration {}
impl WellKnown for FieldMask {}
impl WellKnown for ListValue {}
impl WellKnown for StringValue {}
impl WellKnown for Struct {}
impl WellKnown for Timestamp {}
impl WellKnown for Value {}

/// A JSON object, keys sorted.
#[derive(Clone, PartialEq, Eq, Hash, prost::Message, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Struct {
    /// Its members.
    #[prost(btree_map = "string, message", tag = "1")]
    pub fields: BTreeMap<String, Value>,
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
fn serialize_finite<S: Serializer>(number: f64, serializer: S) -> Result<S::Ok, S::Error> {
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

/// A message around one scalar: (name, protobuf type, Rust type, how to write it, how to read it).
macro_rules! wrappers {
    ($($(#[$equal:meta])? $name:ident($kind:ident, $type:ty, $write:expr, $read:expr),)*) => {$(
        $(#[$equal])?
        #[doc = concat!("A `", stringify!($kind), "` that may be absent.")]
        #[derive(Clone, prost::Message)]
        pub struct $name {
            /// The value.
            #[prost($kind, tag = "1")]
            pub value: $type,
        }

        impl WellKnown for $name {
            // Written even if it is zero: prost leaves out -0 as well.
            fn to_bytes(&self) -> Vec<u8> {
                let mut bytes = Vec::new();
                prost::encoding::$kind::encode(1, &self.value, &mut bytes);
                bytes
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                $write(&self.value, serializer)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                $read(deserializer).map(|value| Self { value })
            }
        }
    )*};
}

wrappers! {
    DoubleValue(double, f64, write_double, read_double),
    FloatValue(float, f32, write_float, read_float),
    #[derive(PartialEq, Eq, Hash)]
    Int64Value(int64, i64, write_quoted, read_number),
    #[derive(PartialEq, Eq, Hash)]
    UInt64Value(uint64, u64, write_quoted, read_number),
    #[derive(PartialEq, Eq, Hash)]
    Int32Value(int32, i32, Serialize::serialize, read_number),
    #[derive(PartialEq, Eq, Hash)]
    UInt32Value(uint32, u32, Serialize::serialize, read_number),
    #[derive(PartialEq, Eq, Hash)]
    BytesValue(bytes, Vec<u8>, write_base64, read_base64),
}

/// As in [`Kind`], except that -0 is 0: prost treats it as unset in a field without presence.
macro_rules! equal_bits {
    ($($name:ident)*) => {$(
        impl PartialEq for $name {
            fn eq(&self, other: &Self) -> bool {
                (self.value + 0.0).to_bits() == (other.value + 0.0).to_bits()
            }
        }

        impl Eq for $name {}

        impl Hash for $name {
            fn hash<H: Hasher>(&self, state: &mut H) {
                (self.value + 0.0).to_bits().hash(state);
            }
        }
    )*};
}

equal_bits! { DoubleValue FloatValue }

fn write_double<S: Serializer>(value: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    match non_finite(*value) {
        Some(name) => serializer.serialize_str(name),
        None => serialize_finite(*value, serializer),
    }
}

fn write_float<S: Serializer>(value: &f32, serializer: S) -> Result<S::Ok, S::Error> {
    match non_finite((*value).into()) {
        Some(name) => serializer.serialize_str(name),
        // Not through `f64`, in which 0.1 has other digits.
        None => serializer.serialize_f32(*value),
    }
}

fn non_finite(value: f64) -> Option<&'static str> {
    if value.is_nan() {
        Some("NaN")
    } else if value.is_infinite() {
        Some(if value > 0.0 { "Infinity" } else { "-Infinity" })
    } else {
        None
    }
}

fn read_double<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    Ok(Float::deserialize(deserializer)?.0)
}

fn read_float<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f32, D::Error> {
    let double = Float::deserialize(deserializer)?.0;
    let float = double as f32;
    if float.is_infinite() && double.is_finite() {
        return Err(de::Error::custom(format_args!("{double} is out of range")));
    }
    Ok(float)
}

fn write_quoted<T: fmt::Display, S: Serializer>(
    value: &T,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    Quoted(value).serialize(serializer)
}

fn read_number<'de, T: TryFrom<i128>, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<T, D::Error> {
    Ok(Number::deserialize(deserializer)?.0)
}

/// Reads the output of any encoder: padded or not, the last bits zero or not.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_allow_trailing_bits(true)
        .with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

fn write_base64<S: Serializer>(value: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&Base64Display::new(value, &BASE64))
}

fn read_base64<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
    let text = String::deserialize(deserializer)?.replace('-', "+").replace('_', "/");
    BASE64.decode(text).map_err(de::Error::custom)
}

/// A point in time, in Unix time.
#[derive(Clone, Copy, PartialEq, Eq, Hash, prost::Message)]
pub struct Timestamp {
    /// Seconds since 1970-01-01T00:00:00Z.
    #[prost(int64, tag = "1")]
    pub seconds: i64,
    /// Nanoseconds after that second, from 0 to 999,999,999.
    #[prost(int32, tag = "2")]
    pub nanos: i32,
}

/// The years 1 to 9999, in Unix time.
const TIMESTAMP_SECONDS: std::ops::RangeInclusive<i64> = -62_135_596_800..=253_402_300_799;

/// RFC 3339 in UTC, with 0, 3, 6 or 9 digits of a second.
impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { seconds, nanos } = *self;
        if !TIMESTAMP_SECONDS.contains(&seconds) || !(0..NANOS).contains(&nanos) {
            return Err(ser::Error::custom("a Timestamp out of range"));
        }
        serializer.collect_str(&prost_types::Timestamp { seconds, nanos })
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        // prost also accepts ISO 8601 dates, spaces and leap seconds.
        let time: Option<prost_types::Timestamp> = text.parse().ok().filter(|_| is_rfc_3339(&text));
        match time {
            Some(time) if TIMESTAMP_SECONDS.contains(&time.seconds) => {
                Ok(Self { seconds: time.seconds, nanos: time.nanos })
            }
            _ => Err(de::Error::invalid_value(de::Unexpected::Str(&text), &"a time of RFC 3339")),
        }
    }
}

/// Checks the form of `2024-02-29T12:00:00.5+01:00`, not whether there is such a day.
fn is_rfc_3339(text: &str) -> bool {
    const DATE_TIME: &str = "0000-00-00T00:00:00";
    let Some((date_time, rest)) = text.split_at_checked(DATE_TIME.len()) else { return false };
    let offset = match rest.strip_prefix('.') {
        Some(fraction) => {
            let digits = fraction.bytes().take_while(u8::is_ascii_digit).count();
            if !(1..=9).contains(&digits) {
                return false;
            }
            &fraction[digits..]
        }
        None => rest,
    };
    let minutes =
        matches!(offset.as_bytes().first(), Some(b'+' | b'-')) && has_shape(&offset[1..], "00:00");
    has_shape(date_time, DATE_TIME) && !date_time.ends_with(":60") && (offset == "Z" || minutes)
}

/// Whether there are digits where the shape has a `0`, and everything else is equal.
fn has_shape(text: &str, shape: &str) -> bool {
    let same = |(byte, wanted): (u8, u8)| match wanted {
        b'0' => byte.is_ascii_digit(),
        _ => byte == wanted,
    };
    text.len() == shape.len() && text.bytes().zip(shape.bytes()).all(same)
}

/// A span of time.
#[derive(Clone, Copy, PartialEq, Eq, Hash, prost::Message)]
pub struct Duration {
    /// Seconds; about 10,000 years at most, in either direction.
    #[prost(int64, tag = "1")]
    pub seconds: i64,
    /// Nanoseconds in addition, with the same sign.
    #[prost(int32, tag = "2")]
    pub nanos: i32,
}

const DURATION_SECONDS_MAX: i64 = 315_576_000_000;
const NANOS: i32 = 1_000_000_000;

impl Duration {
    fn in_range(self) -> bool {
        let seconds = -DURATION_SECONDS_MAX..=DURATION_SECONDS_MAX;
        let one_sign = i64::from(self.nanos.signum()) * self.seconds.signum() >= 0;
        seconds.contains(&self.seconds) && (1 - NANOS..NANOS).contains(&self.nanos) && one_sign
    }
}

/// Seconds with 0, 3, 6 or 9 digits after the point, and an `s`.
impl Serialize for Duration {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if !self.in_range() {
            return Err(ser::Error::custom("a Duration out of range"));
        }
        let Self { seconds, nanos } = *self;
        serializer.collect_str(&prost_types::Duration { seconds, nanos })
    }
}

impl<'de> Deserialize<'de> for Duration {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let span: Option<prost_types::Duration> = text.parse().ok().filter(|_| is_seconds(&text));
        span.map(|span| Self { seconds: span.seconds, nanos: span.nanos })
            .filter(|span| span.in_range())
            .ok_or_else(|| de::Error::invalid_value(de::Unexpected::Str(&text), &"seconds: `1.5s`"))
    }
}

/// Checks the form of `-1.5s`, with up to nine digits after the point.
fn is_seconds(text: &str) -> bool {
    let Some(number) = text.strip_suffix('s') else { return false };
    let number = number.strip_prefix('-').unwrap_or(number);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    digits(whole) && digits(fraction) && fraction.len() <= 9
}

/// Field names, as paths in a message.
#[derive(Clone, PartialEq, Eq, Hash, prost::Message)]
pub struct FieldMask {
    /// In the spelling of the `.proto` file: `session_id`, `entity.last_event_ordinal`.
    #[prost(string, repeated, tag = "1")]
    pub paths: Vec<String>,
}

/// One string, the paths in lowerCamelCase with commas between them.
impl Serialize for FieldMask {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut text = String::new();
        for (index, path) in self.paths.iter().enumerate() {
            let camel = camel_case(path);
            if snake_case(&camel).as_ref() != Some(path) {
                let why = format_args!("no JSON for the field path {path:?}");
                return Err(ser::Error::custom(why));
            }
            text.push_str(if index == 0 { "" } else { "," });
            text.push_str(&camel);
        }
        serializer.serialize_str(&text)
    }
}

impl<'de> Deserialize<'de> for FieldMask {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        if text.is_empty() {
            return Ok(Self::default());
        }
        let paths = text.split(',').map(snake_case).collect::<Option<_>>();
        paths.map(|paths| Self { paths }).ok_or_else(|| {
            de::Error::invalid_value(de::Unexpected::Str(&text), &"field paths in lowerCamelCase")
        })
    }
}

fn camel_case(path: &str) -> String {
    let mut camel = String::new();
    let mut capital = false;
    for letter in path.chars() {
        match letter {
            '_' => capital = true,
            _ if capital => {
                camel.push(letter.to_ascii_uppercase());
                capital = false;
            }
            _ => camel.push(letter),
        }
    }
    camel
}

/// `None` for what can't be the JSON name of a field.
fn snake_case(path: &str) -> Option<String> {
    let mut snake = String::new();
    for letter in path.chars() {
        match letter {
            'A'..='Z' => snake.extend(['_', letter.to_ascii_lowercase()]),
            'a'..='z' | '0'..='9' | '.' => snake.push(letter),
            _ => return None,
        }
    }
    (!snake.is_empty()).then_some(snake)
}
