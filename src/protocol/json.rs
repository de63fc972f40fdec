//! JSON as it is read and written here: RFC 8259 without leniency, numbers and enums in the
//! spellings of the canonical proto3 mapping, and no characters that end a line for some reader.

mod words;
mod writer;

pub(crate) use words::plain;

use serde::de::{self, DeserializeOwned, MapAccess, SeqAccess, Visitor};
use serde::ser::{Serialize, Serializer};
use serde::{Deserialize, Deserializer};
use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

/// Deepest nesting of arrays and objects: the limit of `serde_json`'s own
/// recursion. Nothing in the protocol comes near it.
pub const DEPTH_MAX: usize = 127;

/// Longest text of an [`Error`], in bytes: serde quotes the rejected value, which may be a whole
/// line.
pub(crate) const ERROR_BYTES_MAX: usize = 240;

/// Why a text was rejected, with the column in bytes where that is known.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Error(String);

impl From<serde_json::Error> for Error {
    fn from(error: serde_json::Error) -> Self {
        let text = error.to_string();
        let place = match (error.line(), error.column()) {
            (0, _) => String::new(),
            (line, column) => format!(" at line {line} column {column}"),
        };
        let mut text = plain(text.strip_suffix(&place).unwrap_or(&text)) + &place;
        if text.len() > ERROR_BYTES_MAX {
            text.truncate(text.floor_char_boundary(ERROR_BYTES_MAX));
            text.push('…');
        }
        Self(text)
    }
}

/// Parses one JSON value.
///
/// # Errors
/// If the text is not one JSON value (RFC 8259) without duplicate keys, is nested deeper than
/// [`DEPTH_MAX`], or is not a `T`.
pub fn read<T: DeserializeOwned>(text: &str) -> Result<T, Error> {
    well_formed(text)?;
    Ok(serde_json::from_str(text)?)
}

/// Checks what a typed parser would ignore in fields that it does not know.
///
/// # Errors
/// If the text is not one JSON value, has more than [`DEPTH_MAX`] levels, a key twice in one object
/// (however it is escaped), half a surrogate pair, or a number that no `f64` can hold.
pub(crate) fn well_formed(text: &str) -> Result<(), Error> {
    let mut reader = serde_json::Deserializer::from_str(text);
    WellFormed::deserialize(&mut reader)?;
    Ok(reader.end()?)
}

/// A value that is parsed and dropped.
struct WellFormed;

impl<'de> Deserialize<'de> for WellFormed {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // Not `IgnoredAny`, which skips strings without decoding them.
        deserializer.deserialize_any(WellFormedVisitor)
    }
}

/// An object's key; it is copied only if it has escapes.
#[derive(Deserialize, PartialEq, Eq, PartialOrd, Ord)]
struct Key<'a>(#[serde(borrow)] Cow<'a, str>);

struct WellFormedVisitor;

impl<'de> Visitor<'de> for WellFormedVisitor {
    type Value = WellFormed;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a JSON value")
    }

    fn visit_bool<E>(self, _: bool) -> Result<WellFormed, E> {
        Ok(WellFormed)
    }

    fn visit_i64<E>(self, _: i64) -> Result<WellFormed, E> {
        Ok(WellFormed)
    }

    fn visit_u64<E>(self, _: u64) -> Result<WellFormed, E> {
        Ok(WellFormed)
    }

    fn visit_f64<E>(self, _: f64) -> Result<WellFormed, E> {
        Ok(WellFormed)
    }

    fn visit_str<E>(self, _: &str) -> Result<WellFormed, E> {
        Ok(WellFormed)
    }

    fn visit_unit<E>(self) -> Result<WellFormed, E> {
        Ok(WellFormed)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<WellFormed, A::Error> {
        while items.next_element::<WellFormed>()?.is_some() {}
        Ok(WellFormed)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<WellFormed, A::Error> {
        let mut keys: Vec<Key<'de>> = Vec::new();
        while let Some((key, WellFormed)) = entries.next_entry()? {
            keys.push(key);
        }
        // Sorted, not hashed: needs no random seed, and keys can't collide on purpose.
        keys.sort_unstable();
        match keys.windows(2).find(|pair| pair[0] == pair[1]) {
            Some(twice) => Err(de::Error::custom(format_args!("duplicate key {:?}", twice[0].0))),
            None => Ok(WellFormed),
        }
    }
}

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

/// Appends a message and a line feed; all of the line or, on an error, nothing of it.
///
/// # Errors
/// If the message has no JSON form: an `Any` of unknown type, a NaN in a `Value`, a time out of
/// range.
pub fn write_line<T: Serialize>(message: &T, lines: &mut Vec<u8>) -> Result<(), Error> {
    let before = lines.len();
    if let Err(error) = writer::write(message, lines) {
        lines.truncate(before);
        return Err(error.into());
    }
    escape_separators(lines, before);
    lines.push(b'\n');
    Ok(())
}

/// Appends JSON text that is on one line already, and a line feed.
pub(crate) fn write_raw_line(json: &str, lines: &mut Vec<u8>) {
    let before = lines.len();
    lines.extend_from_slice(json.as_bytes());
    escape_separators(lines, before);
    lines.push(b'\n');
}

/// Appends a message over several lines, for people; all of it or, on an error, nothing of it.
///
/// # Errors
/// As `write_line`.
pub(crate) fn write_pretty<T: Serialize>(message: &T, text: &mut Vec<u8>) -> Result<(), Error> {
    let before = text.len();
    if let Err(error) = serde_json::to_writer_pretty(&mut *text, message) {
        text.truncate(before);
        return Err(error.into());
    }
    escape_separators(text, before);
    text.push(b'\n');
    Ok(())
}

/// Escapes the line separators that JSON allows unescaped (U+0085, U+2028 and U+2029) from
/// `start` on: some readers split on them. They occur in strings only, where any character may be
/// escaped.
fn escape_separators(lines: &mut Vec<u8>, start: usize) {
    let extra =
        separators(&lines[start..]).map(|(_, len, escape)| escape.len() - len).sum::<usize>();
    let mut from = lines.len();
    lines.resize(from + extra, 0);
    let mut to = lines.len();
    // Backwards, so that a long line is not held twice.
    while from < to {
        let Some((at, len, escape)) = separators(&lines[start..from]).next_back() else { return };
        let kept = start + at + len..from;
        to -= kept.len();
        from = start + at;
        lines.copy_within(kept, to);
        to -= escape.len();
        lines[to..to + escape.len()].copy_from_slice(escape);
    }
}

/// The positions of the separators in `text`, their lengths, and their escapes.
fn separators(text: &[u8]) -> impl DoubleEndedIterator<Item = (usize, usize, &'static [u8])> {
    memchr::memchr2_iter(0xC2, 0xE2, text).filter_map(|at| match &text[at..] {
        [0xC2, 0x85, ..] => Some((at, 2, b"\\u0085".as_slice())),
        [0xE2, 0x80, 0xA8, ..] => Some((at, 3, b"\\u2028".as_slice())),
        [0xE2, 0x80, 0xA9, ..] => Some((at, 3, b"\\u2029".as_slice())),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn nested(open: &str, close: &str, levels: usize) -> String {
        format!("{}{}", open.repeat(levels), close.repeat(levels))
    }

    #[test]
    fn depth() {
        assert_eq!(well_formed(&nested("[", "]", DEPTH_MAX)), Ok(()));
        for levels in [DEPTH_MAX + 1, 100_000, 1_000_000] {
            assert!(well_formed(&nested("[", "]", levels)).is_err());
            assert!(well_formed(&"[".repeat(levels)).is_err());
            assert!(well_formed(&"{\"a\":".repeat(levels)).is_err());
        }
    }

    #[test]
    fn strictness() {
        for text in ["1", " \t{} \r\n", r#"{"a":{"a":[{"a":1},{"a":1}]}}"#, r#""\ud83d\ude00""#] {
            assert_eq!(well_formed(text), Ok(()), "{text}");
        }
        let wrong = [
            r#"{"a":1,"b":2,"a":3}"#,
            r#"{"a":1,"\u0061":2}"#,
            r#"[[{"x":{"é":1,"\u00e9":1}}]]"#,
            r#"["\ud800"]"#,
            r#"{"\udc00":1}"#,
            "{} {}",
            "{}x",
            "{}\0",
            "",
            "[1,]",
            "NaN",
            "'a'",
            "1e999",
            "\"a\tb\"",
        ];
        for text in wrong {
            assert!(well_formed(text).is_err(), "{text}");
        }
    }

    #[test]
    fn many_keys() {
        for keys in [10, 200_000] {
            let members: Vec<String> = (0..keys).map(|key| format!("\"{key}\":0")).collect();
            assert_eq!(well_formed(&format!("{{{}}}", members.join(","))), Ok(()));
            let twice = format!("{{{},\"0\":0}}", members.join(","));
            assert!(well_formed(&twice).is_err());
        }
    }

    #[test]
    fn long_errors_are_cut() {
        let text = format!("\"{}\"", "é".repeat(1_000_000));
        let error = read::<Number<i32>>(&text).expect_err("not a number").to_string();
        assert!(error.len() <= ERROR_BYTES_MAX + '…'.len_utf8(), "{}", error.len());
        assert!(error.starts_with("found text \"éé") && error.ends_with('…'), "{error}");
    }

    #[test]
    fn every_integer_survives() {
        for value in [0, 1, u64::MAX, u64::MAX - 1, (1 << 53) + 1] {
            assert_eq!(read(&value.to_string()), Ok(Number(value)));
            assert_eq!(read(&format!("\"{value}\"")), Ok(Number(value)));
        }
        for value in [i64::MIN, i64::MIN + 1, -1, i64::MAX] {
            assert_eq!(read(&value.to_string()), Ok(Number(value)));
            assert_eq!(read(&format!("\"{value}\"")), Ok(Number(value)));
        }
        assert_eq!(read("-9223372036854775809").ok(), None::<Number<i64>>);
    }

    #[test]
    fn lines() {
        let mut lines = Vec::new();
        let text = "a\u{85}\u{2028}\u{2029}b\n\r\u{b}\u{c}\u{1c}é—’ÂâZ\u{2027}\u{202a}\u{84}\u{86}";
        write_line(&json!({ text: text }), &mut lines).expect("JSON");
        write_line(&json!({}), &mut lines).expect("JSON");
        let lines = String::from_utf8(lines).expect("UTF-8");
        assert_eq!(lines.matches('\n').count(), 2);
        assert!(lines.starts_with(r#"{"a\u0085\u2028\u2029b\n\r\u000b\f\u001cé—’ÂâZ"#), "{lines}");
        let first = lines.lines().next();
        assert_eq!(first.map(read::<serde_json::Value>), Some(Ok(json!({ text: text }))));
    }

    #[test]
    fn a_line_is_written_whole_or_not_at_all() {
        struct Fails;
        impl Serialize for Fails {
            fn serialize<S: Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
                Err(serde::ser::Error::custom("no"))
            }
        }
        let mut lines = b"{}\n".to_vec();
        assert!(write_line(&(1, "a", Fails), &mut lines).is_err());
        assert_eq!(lines, b"{}\n");
    }

    /// With that feature, which any crate of the build can enable, numbers arrive as maps.
    #[test]
    fn arbitrary_precision_is_off() {
        assert!(serde_json::from_str::<serde_json::Value>("1e400").is_err());
        assert_eq!(read("1.00"), Ok(json!(1.0)));
    }
}
