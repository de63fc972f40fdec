//! The wrappers of scalars, which tell an absent value from a zero.

use super::WellKnown;
use super::value::serialize_finite;
use crate::protocol::base64::LENIENT_BASE64;
use crate::protocol::json::{Float, Number, Quoted};
use data_encoding::BASE64;
use serde::de::{self, Deserializer};
use serde::ser::Serializer;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::hash::{Hash, Hasher};

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

/// As in [`super::Kind`], except that -0 is 0: prost treats it as unset in a field without presence.
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

fn write_base64<S: Serializer>(value: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&BASE64.encode_display(value))
}

fn read_base64<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
    let text = String::deserialize(deserializer)?;
    // The padding may be left out, or be incomplete.
    let digits = text.trim_end_matches('=');
    let digits = if text.len() > digits.len().next_multiple_of(4) { &text } else { digits };
    LENIENT_BASE64.decode(digits.as_bytes()).map_err(de::Error::custom)
}
