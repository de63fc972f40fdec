//! JSON whose strings need not be Unicode: a part of one that is no text becomes U+FFFD.

use super::join::Joiner;
use crate::protocol::json::fits;
use serde::de::{DeserializeOwned, Error};
use serde_json::Value;

/// Bytes of `\\u` and four digits.
pub(super) const ESCAPE_BYTES: usize = 6;

/// Reads one JSON document. Invalid text is replaced only where `T` can't take it: a `T` that
/// takes its strings as bytes still gets them as they are, unless another string is at fault.
pub(in crate::engine) fn read<T: DeserializeOwned>(json: &[u8]) -> Result<T, serde_json::Error> {
    fits(json).map_err(serde_json::Error::custom)?;
    // Text is checked once, and not each of its strings.
    let read = match str::from_utf8(json) {
        Ok(text) => serde_json::from_str(text),
        Err(_) => serde_json::from_slice(json),
    };
    read.or_else(|why| serde_json::from_str(&repaired(json)).map_err(|_| why))
}

/// The error that a JSON object reports, if it can be read and has one.
pub(in crate::engine) fn error_in(json: &[u8]) -> Option<Value> {
    let mut value = read::<Value>(json).ok()?;
    value.get_mut("error").map(Value::take).filter(|error| !error.is_null())
}

/// The token count at `place` of `usage`, a JSON pointer.
pub(in crate::engine) fn token_count(usage: &Value, place: &str) -> Option<i32> {
    tokens(usage.pointer(place)?)
}

/// The token count in `value`, at most the largest that an event can have. Some servers write each number with a
/// fraction, as 3.0.
pub(in crate::engine) fn tokens(value: &Value) -> Option<i32> {
    let whole = |count: f64| (count >= 0.0 && count.fract() == 0.0).then_some(count as i32);
    let count = value.as_u64().map(|count| i32::try_from(count).unwrap_or(i32::MAX));
    count.or_else(|| value.as_f64().and_then(whole))
}

/// `json` with U+FFFD for each half of a surrogate pair that stands alone, and for other bytes that
/// are no text.
fn repaired(json: &[u8]) -> String {
    let mut joiner = Joiner::default();
    let text = joiner.push(json) + &joiner.end();
    let mut repaired = String::with_capacity(text.len());
    let mut rest = text.as_str();
    while let Some(at) = rest.find('\\') {
        let (before, escape) = rest.split_at(at);
        let next = escape.as_bytes().get(ESCAPE_BYTES..).and_then(unit);
        let (bytes, is_text) = match (unit(escape.as_bytes()), next) {
            (Some(0xD800..=0xDBFF), Some(0xDC00..=0xDFFF)) => (2 * ESCAPE_BYTES, true),
            (Some(0xD800..=0xDFFF), _) => (ESCAPE_BYTES, false),
            (Some(_), _) => (ESCAPE_BYTES, true),
            // The character after the backslash begins no escape of its own.
            (None, _) => (escape.chars().take(2).map(char::len_utf8).sum(), true),
        };
        let (escape, after) = escape.split_at(bytes);
        repaired += before;
        repaired += if is_text { escape } else { "\u{FFFD}" };
        rest = after;
    }
    repaired + rest
}

/// The UTF-16 code unit that `text` begins with the escape of.
pub(super) fn unit(text: &[u8]) -> Option<u16> {
    let digits = text.strip_prefix(b"\\u")?.get(..ESCAPE_BYTES - b"\\u".len())?;
    // A sign is no digit, although a number may begin with one.
    let is_number = digits.iter().all(u8::is_ascii_hexdigit);
    let digits = str::from_utf8(digits).ok().filter(|_| is_number)?;
    u16::from_str_radix(digits, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    fn check(json: &[u8], text: &str) {
        let shown = String::from_utf8_lossy(json);
        assert_eq!(read::<Value>(json).expect("reads"), Value::from(text), "{shown}");
    }

    #[test]
    fn what_is_no_text_is_replaced() {
        check(br#""plain \\ \" \u00e9 \ud83d\ude00""#, "plain \\ \" \u{e9} \u{1F600}");
        check(br#""a\ud83d""#, "a\u{FFFD}");
        check(br#""\uDE00b\\""#, "\u{FFFD}b\\");
        check(br#""\ud83d\ud83d\ude00\ude00""#, "\u{FFFD}\u{1F600}\u{FFFD}");
        check(br#""\ud83d\u0041\\ud83d""#, "\u{FFFD}A\\ud83d");
        check(b"\"\\ud83d \xFF\xED\xA0\xBD\"", "\u{FFFD} \u{FFFD}\u{FFFD}");
    }

    #[test]
    fn a_token_count_is_a_whole_number_however_it_is_written() {
        for (json, expected) in [
            ("3", Some(3)),
            ("3.0", Some(3)),
            ("3e2", Some(300)),
            ("0.0", Some(0)),
            ("18446744073709551615", Some(i32::MAX)),
            ("1e300", Some(i32::MAX)),
            ("-1", None),
            ("2.5", None),
            ("null", None),
            (r#""3""#, None),
        ] {
            let usage = read::<Value>(format!(r#"{{"a":{json}}}"#).as_bytes()).expect("reads");
            assert_eq!(token_count(&usage, "/a"), expected, "{json}");
        }
    }

    #[test]
    fn what_is_no_json_stays_so() {
        for json in [&b"\"\\ud83d"[..], b"\"\\", b"\\", b"\"\\u\xC3\xA9\"", b"{\xFF}", b"", b"{"] {
            assert!(read::<Value>(json).is_err(), "{}", String::from_utf8_lossy(json));
        }
    }
}
