//! Characters that no JSON reader takes: bytes that are not UTF-8, and escapes of half a character outside the basic
//! plane, as a server writes that cuts a text by UTF-16 units.

/// Bytes of an escape with its four digits.
const ESCAPE_BYTES: usize = 6;

/// `text` with U+FFFD for each such character; `None` if there is none.
pub(super) fn characters(text: &[u8]) -> Option<Vec<u8>> {
    let mut repaired = String::from_utf8_lossy(text).into_owned().into_bytes();
    replace_lone_surrogates(&mut repaired);
    (repaired != text).then_some(repaired)
}

/// Replaces each escape of a surrogate that has no other half by that of U+FFFD, which is as long.
fn replace_lone_surrogates(text: &mut [u8]) {
    let mut at = 0;
    while let Some(found) = text.get(at..).and_then(|rest| memchr::memchr(b'\\', rest)) {
        at += found;
        at += match (unit(text, at), unit(text, at + ESCAPE_BYTES)) {
            (Some(0xD800..=0xDBFF), Some(0xDC00..=0xDFFF)) => 2 * ESCAPE_BYTES,
            (Some(0xD800..=0xDFFF), _) => {
                text[at..at + ESCAPE_BYTES].copy_from_slice(b"\\ufffd");
                ESCAPE_BYTES
            }
            (Some(_), _) => ESCAPE_BYTES,
            (None, _) => 2,
        };
    }
}

/// The UTF-16 unit whose escape begins at this place.
fn unit(text: &[u8], at: usize) -> Option<u16> {
    let digits = text.get(at..at + ESCAPE_BYTES)?.strip_prefix(b"\\u")?;
    let is_hex = digits.iter().all(u8::is_ascii_hexdigit);
    let digits = std::str::from_utf8(digits).ok().filter(|_| is_hex)?;
    u16::from_str_radix(digits, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_halves_and_bytes_that_are_no_text_are_replaced() {
        let repaired =
            |text: &[u8]| characters(text).map(|text| String::from_utf8(text).expect("UTF-8"));
        for text in [r#""\ud83d\ude00 \u00e9 \\ud83d \"""#, "\"é\"", "\\", r"\u12", r"\u+123"] {
            assert_eq!(repaired(text.as_bytes()), None, "{text}");
        }
        for (text, expected) in [
            (r#""cut \ud83d""#, r#""cut \ufffd""#),
            (r#""\ude00\ud83d\ud83d\uDE00""#, r#""\ufffd\ufffd\ud83d\uDE00""#),
            (r#""\\\ud83d\n""#, r#""\\\ufffd\n""#),
        ] {
            assert_eq!(repaired(text.as_bytes()).as_deref(), Some(expected), "{text}");
        }
        assert_eq!(repaired(b"\"a\xff\"").as_deref(), Some("\"a\u{fffd}\""));
    }
}
