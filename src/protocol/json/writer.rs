//! Writes JSON on one line, as serde_json does, and faster: strings, which are most of a frame, are searched
//! for bytes that need an escape by words, and copied in runs. Before the patches of a segment had a template
//! (`output/lines`), serde_json's own writer in its place cost 97 million instructions for an answer of 5,000
//! deltas instead of 77 (callgrind, the whole process), and 9 % more processor time for one of 60,000 (a
//! release, the echo engine, medians of 25 runs in turns). `RawValue` is not known here.

use serde::Serialize;
use serde::ser::{
    Error as _, SerializeMap, SerializeSeq, SerializeStruct, SerializeStructVariant,
    SerializeTuple, SerializeTupleStruct, SerializeTupleVariant, Serializer,
};
use serde_json::Error;
use std::fmt::{self, Display, Write as _};
use std::io::Write as _;

/// Bytes that are looked at together.
const WORD_BYTES: usize = 8;

const HEX: &[u8; 16] = b"0123456789abcdef";

/// Appends `value` to `out`; a part of it on an error.
///
/// # Errors
/// If the value refuses to be serialized, or has a key that is no string.
pub(super) fn write<T: Serialize>(value: &T, out: &mut Vec<u8>) -> Result<(), Error> {
    value.serialize(Writer(out))
}

/// Writes one value.
struct Writer<'a>(&'a mut Vec<u8>);

/// Writes the content and the end of an array or an object.
struct Members<'a> {
    out: &'a mut Vec<u8>,
    is_first: bool,
    close: &'static [u8],
}

fn string(text: &str, out: &mut Vec<u8>) {
    out.push(b'"');
    escaped(text, out);
    out.push(b'"');
}

/// Appends `text` with the escapes that it needs: most texts need none.
#[inline]
pub(super) fn escaped(text: &str, out: &mut Vec<u8>) {
    let (clean, unclean) = text.as_bytes().split_at(clean_bytes(text.as_bytes()));
    out.extend_from_slice(clean);
    if !unclean.is_empty() {
        escaped_from(unclean, out);
    }
}

/// Appends `rest`, the first byte of which needs an escape.
#[inline(never)]
fn escaped_from(mut rest: &[u8], out: &mut Vec<u8>) {
    while let Some((byte, after)) = rest.split_first() {
        match byte {
            b'"' => out.extend_from_slice(b"\\\""),
            b'\\' => out.extend_from_slice(b"\\\\"),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            0x08 => out.extend_from_slice(b"\\b"),
            0x0C => out.extend_from_slice(b"\\f"),
            control => {
                let [high, low] = [control >> 4, control & 0xF].map(|half| HEX[usize::from(half)]);
                out.extend_from_slice(&[b'\\', b'u', b'0', b'0', high, low]);
            }
        }
        let (clean, unclean) = after.split_at(clean_bytes(after));
        out.extend_from_slice(clean);
        rest = unclean;
    }
}

/// How many bytes at the beginning of `bytes` need no escape.
#[inline]
fn clean_bytes(bytes: &[u8]) -> usize {
    let (words, rest) = bytes.as_chunks::<WORD_BYTES>();
    let mut clean = 0;
    for word in words {
        let unclean = unclean_bytes(u64::from_le_bytes(*word));
        if unclean != 0 {
            return clean + unclean.trailing_zeros() as usize / 8;
        }
        clean += WORD_BYTES;
    }
    let (unclean, start) = match bytes.last_chunk() {
        // Its bytes before the rest were looked at and need no escape.
        Some(last) => (unclean_bytes(u64::from_le_bytes(*last)), bytes.len() - WORD_BYTES),
        None => {
            let append = |word, byte: &u8| word << 8 | u64::from(*byte);
            (unclean_bytes(rest.iter().rev().fold(u64::MAX, append)), 0)
        }
    };
    match unclean {
        0 => bytes.len(),
        _ => start + unclean.trailing_zeros() as usize / 8,
    }
}

/// The highest bit of each of the eight bytes that needs an escape: of the lowest one for sure, and
/// maybe of some above it that need none.
#[inline]
fn unclean_bytes(word: u64) -> u64 {
    let all = |byte: u8| u64::from_le_bytes([byte; WORD_BYTES]);
    // A subtraction from a byte that is smaller sets its highest bit.
    let smaller_than = |word: u64, limit: u8| word.wrapping_sub(all(limit)) & !word;
    let is = |byte: u8| smaller_than(word ^ all(byte), 1);
    (smaller_than(word, b' ') | is(b'"') | is(b'\\')) & all(0x80)
}

/// Escapes formatted text.
struct Escaping<'a>(&'a mut Vec<u8>);

impl fmt::Write for Escaping<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        escaped(text, self.0);
        Ok(())
    }
}

impl<'a> Writer<'a> {
    fn array(self) -> Members<'a> {
        self.0.push(b'[');
        Members { out: self.0, is_first: true, close: b"]" }
    }

    fn object(self) -> Members<'a> {
        self.0.push(b'{');
        Members { out: self.0, is_first: true, close: b"}" }
    }

    /// The beginning of a value under the name of its variant.
    fn variant(self, name: &str) -> Self {
        self.0.push(b'{');
        string(name, self.0);
        self.0.push(b':');
        self
    }

    fn number(self, number: impl Display) -> Result<(), Error> {
        write!(self.0, "{number}").map_err(Error::io)
    }

    fn word(self, word: &str) -> Result<(), Error> {
        self.0.extend_from_slice(word.as_bytes());
        Ok(())
    }
}

/// Methods that write an integer as it is displayed.
macro_rules! integers {
    ($($method:ident: $integer:ty),* $(,)?) => {
        $(fn $method(self, number: $integer) -> Result<(), Error> {
            self.number(number)
        })*
    };
}

impl<'a> Serializer for Writer<'a> {
    type Ok = ();
    type Error = Error;
    type SerializeSeq = Members<'a>;
    type SerializeTuple = Members<'a>;
    type SerializeTupleStruct = Members<'a>;
    type SerializeTupleVariant = Members<'a>;
    type SerializeMap = Members<'a>;
    type SerializeStruct = Members<'a>;
    type SerializeStructVariant = Members<'a>;

    integers! {
        serialize_i8: i8,
        serialize_i16: i16,
        serialize_i32: i32,
        serialize_i64: i64,
        serialize_i128: i128,
        serialize_u8: u8,
        serialize_u16: u16,
        serialize_u32: u32,
        serialize_u64: u64,
        serialize_u128: u128,
    }

    fn serialize_bool(self, is_true: bool) -> Result<(), Error> {
        self.word(if is_true { "true" } else { "false" })
    }

    fn serialize_f32(self, number: f32) -> Result<(), Error> {
        serde_json::to_writer(self.0, &number)
    }

    fn serialize_f64(self, number: f64) -> Result<(), Error> {
        serde_json::to_writer(self.0, &number)
    }

    fn serialize_char(self, character: char) -> Result<(), Error> {
        self.serialize_str(character.encode_utf8(&mut [0; 4]))
    }

    fn serialize_str(self, text: &str) -> Result<(), Error> {
        string(text, self.0);
        Ok(())
    }

    fn collect_str<T: Display + ?Sized>(self, value: &T) -> Result<(), Error> {
        self.0.push(b'"');
        write!(Escaping(self.0), "{value}").map_err(Error::custom)?;
        self.0.push(b'"');
        Ok(())
    }

    fn serialize_bytes(self, bytes: &[u8]) -> Result<(), Error> {
        self.collect_seq(bytes)
    }

    fn serialize_none(self) -> Result<(), Error> {
        self.word("null")
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), Error> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<(), Error> {
        self.word("null")
    }

    fn serialize_unit_struct(self, _: &'static str) -> Result<(), Error> {
        self.word("null")
    }

    fn serialize_unit_variant(
        self,
        _: &'static str,
        _: u32,
        name: &'static str,
    ) -> Result<(), Error> {
        self.serialize_str(name)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        value: &T,
    ) -> Result<(), Error> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        name: &'static str,
        value: &T,
    ) -> Result<(), Error> {
        let Self(out) = self.variant(name);
        value.serialize(Writer(&mut *out))?;
        Writer(out).word("}")
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Members<'a>, Error> {
        Ok(self.array())
    }

    fn serialize_tuple(self, _: usize) -> Result<Members<'a>, Error> {
        Ok(self.array())
    }

    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Members<'a>, Error> {
        Ok(self.array())
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        name: &'static str,
        _: usize,
    ) -> Result<Members<'a>, Error> {
        Ok(Members { close: b"]}", ..self.variant(name).array() })
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Members<'a>, Error> {
        Ok(self.object())
    }

    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Members<'a>, Error> {
        Ok(self.object())
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        name: &'static str,
        _: usize,
    ) -> Result<Members<'a>, Error> {
        Ok(Members { close: b"}}", ..self.variant(name).object() })
    }
}

impl Members<'_> {
    fn separate(&mut self) {
        if !std::mem::take(&mut self.is_first) {
            self.out.push(b',');
        }
    }

    fn item<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        self.separate();
        value.serialize(Writer(&mut *self.out))
    }

    fn member<T: Serialize + ?Sized>(&mut self, name: &str, value: &T) -> Result<(), Error> {
        self.separate();
        self.out.push(b'"');
        escaped(name, self.out);
        self.out.extend_from_slice(b"\":");
        value.serialize(Writer(&mut *self.out))
    }

    /// A key that is a number or a boolean is written in quotes.
    fn key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), Error> {
        self.separate();
        let at = self.out.len();
        key.serialize(Writer(&mut *self.out))?;
        match self.out.get(at) {
            Some(b'"') => {}
            Some(b'-' | b'0'..=b'9' | b't' | b'f') => {
                self.out.insert(at, b'"');
                self.out.push(b'"');
            }
            Some(_) | None => return Err(Error::custom("key must be a string")),
        }
        self.out.push(b':');
        Ok(())
    }

    fn close(self) -> Result<(), Error> {
        self.out.extend_from_slice(self.close);
        Ok(())
    }
}

/// The traits of arrays, which differ in their names alone.
macro_rules! arrays {
    ($($array:ident: $method:ident),* $(,)?) => {
        $(impl $array for Members<'_> {
            type Ok = ();
            type Error = Error;

            fn $method<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
                self.item(value)
            }

            fn end(self) -> Result<(), Error> {
                self.close()
            }
        })*
    };
}

arrays! {
    SerializeSeq: serialize_element,
    SerializeTuple: serialize_element,
    SerializeTupleStruct: serialize_field,
    SerializeTupleVariant: serialize_field,
}

/// The traits of objects with names that are known.
macro_rules! objects {
    ($($object:ident),* $(,)?) => {
        $(impl $object for Members<'_> {
            type Ok = ();
            type Error = Error;

            fn serialize_field<T: Serialize + ?Sized>(
                &mut self,
                name: &'static str,
                value: &T,
            ) -> Result<(), Error> {
                self.member(name, value)
            }

            fn end(self) -> Result<(), Error> {
                self.close()
            }
        })*
    };
}

objects! { SerializeStruct, SerializeStructVariant }

impl SerializeMap for Members<'_> {
    type Ok = ();
    type Error = Error;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), Error> {
        self.key(key)
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        value.serialize(Writer(&mut *self.out))
    }

    fn end(self) -> Result<(), Error> {
        self.close()
    }
}

#[cfg(test)]
mod tests;
