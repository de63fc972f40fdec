//! Numbers in the spellings of the canonical proto3 mapping.

use serde::de::{self, Visitor};
use serde::ser::{Serialize, Serializer};
use serde::{Deserialize, Deserializer};
use std::fmt;
use std::marker::PhantomData;

/// An integer as the canonical mapping reads it: `1`, `1.0` or `1e0`, bare or in quotes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Number<T>(
    /// Its value.
    pub T,
);

impl<'de, T: TryFrom<i128>> Deserialize<'de> for Number<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NumberVisitor(PhantomData))
    }
}

pub(crate) struct NumberVisitor<T>(pub(crate) PhantomData<T>);

impl<'de, T: TryFrom<i128>> Visitor<'de> for NumberVisitor<T> {
    type Value = Number<T>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an integer in range")
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<Number<T>, E> {
        in_range(value.into())
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<Number<T>, E> {
        in_range(value.into())
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Number<T>, E> {
        if value.fract() != 0.0 {
            return Err(de::Error::custom(format_args!("{value} is not an integer")));
        }
        // The lowest `i64` is rejected in this spelling: integers just below it round to it.
        if value <= i64::MIN as f64 {
            return Err(de::Error::custom(format_args!("{value} is out of range")));
        }
        // A cast from above the range of `i128` stops at its end, out of range for any `T`.
        in_range(value as i128)
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Number<T>, E> {
        bare(text)?.deserialize_any(self).map_err(E::custom)
    }
}

fn in_range<T: TryFrom<i128>, E: de::Error>(value: i128) -> Result<Number<T>, E> {
    match T::try_from(value) {
        Ok(value) => Ok(Number(value)),
        Err(_) => Err(E::custom(format_args!("{value} is out of range"))),
    }
}

/// A floating-point number as the canonical mapping reads it: bare or in quotes, or one of the
/// three names `NaN`, `Infinity` and `-Infinity`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Float(
    /// Its value.
    pub f64,
);

impl<'de> Deserialize<'de> for Float {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(FloatVisitor)
    }
}

struct FloatVisitor;

impl Visitor<'_> for FloatVisitor {
    type Value = Float;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a number, \"NaN\", \"Infinity\" or \"-Infinity\"")
    }

    fn visit_i64<E>(self, value: i64) -> Result<Float, E> {
        Ok(Float(value as f64))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Float, E> {
        Ok(Float(value as f64))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Float, E> {
        Ok(Float(value))
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Float, E> {
        match text {
            "NaN" => Ok(Float(f64::NAN)),
            "Infinity" => Ok(Float(f64::INFINITY)),
            "-Infinity" => Ok(Float(f64::NEG_INFINITY)),
            _ => bare(text)?.deserialize_any(self).map_err(E::custom),
        }
    }
}

/// Parses a string in place of a number: it must be exactly a JSON number.
fn bare<E: de::Error>(text: &str) -> Result<serde_json::Number, E> {
    let spaced = text.bytes().any(|byte| byte.is_ascii_whitespace());
    serde_json::from_str(text)
        .ok()
        .filter(|_| !spaced)
        .ok_or_else(|| E::invalid_value(de::Unexpected::Str(text), &"a number in quotes"))
}

/// A 64-bit integer for output: in quotes, because JavaScript's integers end at 2^53.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Quoted<T>(
    /// The integer.
    pub T,
);

impl<T: fmt::Display> Serialize for Quoted<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

/// Whether a JSON text has an integer of more than 64 bits, which a parsed number rounds.
pub(crate) fn has_long_integer(json: &str) -> bool {
    let mut rest = json;
    while let Some(at) = rest.find(|char| char == '"' || is_of_number(char)) {
        rest = &rest[at..];
        if let Some(string) = rest.strip_prefix('"') {
            rest = after_string(string);
            continue;
        }
        let (number, after) =
            rest.split_at(rest.find(|char| !is_of_number(char)).unwrap_or(rest.len()));
        if is_long_integer(number) {
            return true;
        }
        rest = after;
    }
    false
}

fn is_of_number(char: char) -> bool {
    char.is_ascii_digit() || matches!(char, '-' | '+' | '.' | 'e' | 'E')
}

/// What follows the string whose content `text` begins with.
fn after_string(text: &str) -> &str {
    let mut is_escaped = false;
    let end = text.bytes().position(|byte| {
        let is_end = byte == b'"' && !is_escaped;
        is_escaped = byte == b'\\' && !is_escaped;
        is_end
    });
    end.map_or("", |end| &text[end + 1..])
}

fn is_long_integer(number: &str) -> bool {
    let is_integer = number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-');
    is_integer && number.parse::<i64>().is_err() && number.parse::<u64>().is_err()
}
