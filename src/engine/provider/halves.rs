//! Characters that a server has cut between two events: servers written in JavaScript may cut a text
//! between the two halves of a UTF-16 surrogate pair, and send each as an escape of its own
//! (`"\ud83d"`, then `"\ude00"`), which is no text. Pure.

use super::json::{ESCAPE_BYTES, unit};
use std::borrow::Cow;

/// The half that the last text ended with.
#[derive(Debug, Default)]
pub(in crate::engine) struct Halves {
    first: Option<[u8; ESCAPE_BYTES]>,
}

impl Halves {
    /// `json`, the next event, with each cut character whole in the text that has its second half.
    /// A first half whose second one never comes is left out; other halves stay as they are.
    pub(in crate::engine) fn join<'j>(&mut self, json: &'j [u8]) -> Cow<'j, [u8]> {
        let begins = |at: usize| matches!(&json[at..], [_, b'u', b'd' | b'D', ..]);
        if !memchr::memchr_iter(b'\\', json).any(begins) {
            return Cow::Borrowed(json);
        }
        let mut joined = Vec::with_capacity(json.len() + ESCAPE_BYTES);
        let mut rest = json;
        while let Some(at) = rest.iter().position(|byte| *byte == b'\\') {
            let (before, escape) = rest.split_at(at);
            joined.extend(before);
            let bytes = self.escape(escape, &mut joined);
            rest = &escape[bytes..];
        }
        joined.extend(rest);
        Cow::Owned(joined)
    }

    /// Consumes the escape at the beginning of `rest`; returns its length.
    fn escape(&mut self, rest: &[u8], joined: &mut Vec<u8>) -> usize {
        let (half, after) = rest.split_at(rest.len().min(ESCAPE_BYTES));
        let (bytes, is_kept) = match (unit(half), unit(after)) {
            (Some(0xD800..=0xDBFF), Some(0xDC00..=0xDFFF)) => (2 * ESCAPE_BYTES, true),
            (Some(0xD800..=0xDBFF), _) if after.first() == Some(&b'"') => {
                self.first = half.try_into().ok();
                (ESCAPE_BYTES, false)
            }
            (Some(0xDC00..=0xDFFF), _) if joined.last() == Some(&b'"') => {
                joined.extend(self.first.take().into_iter().flatten());
                (ESCAPE_BYTES, true)
            }
            (Some(_), _) => (ESCAPE_BYTES, true),
            // The character after the backslash begins no escape of its own.
            (None, _) => (rest.len().min(2), true),
        };
        if is_kept {
            joined.extend(&rest[..bytes]);
        }
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(events: &[&str], expected: &[&str]) {
        let mut halves = Halves::default();
        let joined: Vec<_> = events
            .iter()
            .map(|event| String::from_utf8(halves.join(event.as_bytes()).into_owned()))
            .collect::<Result<_, _>>()
            .expect("text");
        assert_eq!(joined, expected);
    }

    #[test]
    fn a_cut_character_is_whole_in_the_second_text() {
        check(
            &[r#"{"t":"a\ud83d"}"#, r#"{"t":"\ude00b"}"#],
            &[r#"{"t":"a"}"#, r#"{"t":"\ud83d\ude00b"}"#],
        );
        // Other events may come in between, and both halves in one event.
        check(
            &[r#"["\uD83D"]"#, r#"["ping"]"#, r#"["\uDE00"]"#],
            &[r#"[""]"#, r#"["ping"]"#, r#"["\uD83D\uDE00"]"#],
        );
        check(&[r#"["\ud83d","\ude00"]"#], &[r#"["","\ud83d\ude00"]"#]);
        check(
            &[r#"["\ud83d"]"#, r#"["\ude00\ud83d"]"#, r#"["\ude00"]"#],
            &[r#"[""]"#, r#"["\ud83d\ude00"]"#, r#"["\ud83d\ude00"]"#],
        );
    }

    #[test]
    fn nothing_else_is_changed() {
        for json in [
            r#"["\ud83d\ude00","\u00e9\n\\ud83d"]"#,
            r#"["\ud83da","\ude00","a\ude00"]"#,
            r#"["\\\ud83d\ude00\"","\\"]"#,
            r#"["\ud8"#,
            r#"["\ud83d\"#,
            r#"["\ud"#,
        ] {
            check(&[json], &[json]);
        }
    }
}
