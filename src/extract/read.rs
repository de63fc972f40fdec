//! Parses one JSON value from a text, with the strictness of `crate::protocol::json`, in one
//! pass.

use crate::protocol::json::{self, ERROR_BYTES_MAX};
use crate::support::shorten::first_bytes;
use serde::de::{self, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};
use std::fmt;

/// Why a text is not a value.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Fault {
    /// The error, without its place.
    pub(super) what: String,
    /// Line of the text, from 1.
    pub(super) line: usize,
    /// Byte of that line, from 1.
    pub(super) column: usize,
    /// The text ends before the value does.
    pub(super) is_cut: bool,
}

/// Parses one value. A duplicate key in an object is an error: readers differ in which of the two
/// they use, so the checked value might not be the one used.
pub(super) fn read(text: &str) -> Result<Value, Fault> {
    json::fits(text.as_bytes()).map_err(|error| Fault {
        what: error.to_string(),
        line: 1,
        column: 1,
        is_cut: false,
    })?;
    let mut reader = serde_json::Deserializer::from_str(text);
    let value = Strict.deserialize(&mut reader);
    let value = value.and_then(|value| reader.end().map(|()| value));
    value.map_err(|error| Fault::at(&error, text))
}

/// Limits the length of a message that quotes text.
pub(super) fn clipped(text: &str) -> String {
    first_bytes(text, ERROR_BYTES_MAX).into_owned()
}

impl Fault {
    /// `error` in `text`. `serde_json` has a line feed that is in its way as byte 0 of the next line; it is the last
    /// byte of its own.
    fn at(error: &serde_json::Error, text: &str) -> Self {
        let (line, column) = match (error.line(), error.column()) {
            (line @ 2.., 0) => {
                let before = text.split('\n').nth(line - 2).map_or(0, str::len);
                (line - 1, before + 1)
            }
            (line, column) => (line, column),
        };
        Self { what: clipped(&json::what(error)), line, column, is_cut: error.is_eof() }
    }
}

/// Builds a value like `Value` itself, but rejects duplicate keys. `serde_json` limits the
/// depth.
#[derive(Clone, Copy)]
struct Strict;

impl<'de> DeserializeSeed<'de> for Strict {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Strict {
    type Value = Value;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut array = Vec::new();
        while let Some(item) = items.next_element_seed(Strict)? {
            array.push(item);
        }
        Ok(array.into())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some(key) = members.next_key::<String>()? {
            if object.contains_key(&key) {
                return Err(de::Error::custom(format_args!("duplicate key {key:?}")));
            }
            object.insert(key, members.next_value_seed(Strict)?);
        }
        Ok(object.into())
    }
}
