//! Finds the ids of a message, or a batch of them, that is too long, or too deep, to be parsed, so that the calls which
//! wait for it get an error instead of waiting for ever.

/// Longest key or number that is compared, in bytes: an id of ours is shorter.
const TOKEN_BYTES_MAX: usize = 24;

/// Most ids that are kept of a batch.
const IDS_MAX: usize = 1_000;

/// Scans a JSON object, or an array of objects, piece by piece for the number under the key `id` of each outermost
/// object. Of text that is no JSON it makes anything, but never panics.
#[derive(Debug, Default)]
pub(super) struct IdScanner {
    /// How many objects and arrays are open, without an array around the outermost object.
    depth: u32,
    is_in_string: bool,
    is_escaped: bool,
    /// The next token of the outermost object is a key.
    expects_key: bool,
    is_under_id: bool,
    /// It is a request, whose id is none of ours, or a notification.
    has_method: bool,
    /// The beginning of the current token of the outermost object.
    token: Vec<u8>,
    id: Option<i64>,
    /// The requests that the objects before this one answer.
    ids: Vec<i64>,
}

impl IdScanner {
    /// Takes the next piece.
    pub(super) fn feed(&mut self, mut bytes: &[u8]) {
        while let Some((byte, rest)) = bytes.split_first() {
            bytes = rest;
            if !self.is_in_string {
                self.outside(*byte);
                continue;
            }
            self.in_string(*byte);
            if self.is_in_string && !self.is_escaped && !self.keeps() {
                // Long messages are long because of a long string.
                let end = memchr::memchr2(b'"', b'\\', bytes).unwrap_or(bytes.len());
                bytes = &bytes[end..];
            }
        }
    }

    /// The ids of the requests that it answers, as far as they have been found.
    pub(super) fn answered(mut self) -> Vec<i64> {
        self.end_object();
        self.ids
    }

    fn in_string(&mut self, byte: u8) {
        match byte {
            _ if self.is_escaped => self.is_escaped = false,
            b'\\' => self.is_escaped = true,
            b'"' => {
                self.is_in_string = false;
                if self.depth == 1 && self.expects_key {
                    self.is_under_id = self.token == b"id";
                    self.has_method |= self.token == b"method";
                }
                return;
            }
            _ => {}
        }
        self.keep(byte);
    }

    fn outside(&mut self, byte: u8) {
        match byte {
            b'"' => {
                self.is_in_string = true;
                self.token.clear();
            }
            b'[' if self.depth == 0 => {}
            b'{' | b'[' => {
                self.depth = self.depth.saturating_add(1);
                self.expects_key = self.depth == 1;
            }
            b'}' | b']' => {
                self.end_value();
                if self.depth == 1 {
                    self.end_object();
                }
                self.depth = self.depth.saturating_sub(1);
            }
            b':' if self.depth == 1 => {
                self.expects_key = false;
                self.token.clear();
            }
            b',' if self.depth == 1 => {
                self.end_value();
                self.expects_key = true;
            }
            b'-' | b'0'..=b'9' => self.keep(byte),
            _ => {}
        }
    }

    fn keep(&mut self, byte: u8) {
        if self.keeps() {
            self.token.push(byte);
        }
    }

    fn keeps(&self) -> bool {
        self.depth == 1 && self.token.len() < TOKEN_BYTES_MAX
    }

    /// Servers return the id as the number that it was, or as a string of its digits.
    fn end_value(&mut self) {
        if self.depth == 1 && self.is_under_id && !self.expects_key {
            let digits = std::str::from_utf8(&self.token).unwrap_or_default();
            self.id = digits.parse().ok().or(self.id);
            self.is_under_id = false;
        }
    }

    fn end_object(&mut self) {
        let id = self.id.take().filter(|_| !self.has_method && self.ids.len() < IDS_MAX);
        self.ids.extend(id);
        (self.has_method, self.is_under_id) = (false, false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn ids(text: &str) -> Vec<i64> {
        let mut scanner = IdScanner::default();
        scanner.feed(text.as_bytes());
        scanner.answered()
    }

    #[test]
    fn the_id_of_the_outermost_object_is_found() {
        let cases = [
            (r#"{"jsonrpc":"2.0","id":7,"result":{"id":8}}"#, Some(7)),
            (r#"{"result":{"id":8,"a":[{"id":9}]},"jsonrpc":"2.0","id": 7 }"#, Some(7)),
            (r#"{"id":"7","result":{}}"#, Some(7)),
            (r#"{"a":"\"id\":5,","b":"}","id":7}"#, Some(7)),
            (r#"{"a":"\\","id":7}"#, Some(7)),
            (r#"{"result":{"id":8}}"#, None),
            (r#"{"method":"id","params":{}}"#, None),
            (r#"{"id":7,"method":"ping"}"#, None),
            (r#"{"id":7,"result":{"method":"ping"}}"#, Some(7)),
            (r#"{"id":null,"a":1}"#, None),
            (r#"{"id":-3}"#, Some(-3)),
            (r#"[{"id":1}]"#, Some(1)),
            ("no JSON, \"id\":1", None),
            (r#"{"id":99999999999999999999999999}"#, None),
        ];
        for (text, expected) in cases {
            assert_eq!(ids(text), Vec::from_iter(expected), "{text}");
        }
        let deep = format!("{{\"a\":{}{},\"id\":7}}", "[".repeat(500), "]".repeat(500));
        assert_eq!(ids(&deep), [7]);
    }

    #[test]
    fn a_batch_has_the_ids_of_its_answers() {
        let deep = "[".repeat(200) + &"]".repeat(200);
        let batch = format!(
            r#" [ {{"id":1,"result":{deep}}}, {{"id":2,"method":"ping"}}, 7, {{"result":[{{"id":3}}]}},
                 {{"result":{{"method":"x"}},"id":"4"}}] "#
        );
        assert_eq!(ids(&batch), [1, 4]);
        let long: Vec<_> = (0..2_000).map(|id| format!(r#"{{"id":{id}}}"#)).collect();
        assert_eq!(ids(&format!("[{}]", long.join(","))).len(), IDS_MAX);
    }

    proptest! {
        #[test]
        fn pieces_make_no_difference(text in "[{}\\[\\]\",:id0-9\\\\ ]{0,60}", cut in 0_usize..60) {
            let bytes = text.as_bytes();
            let (left, right) = bytes.split_at(cut.min(bytes.len()));
            let mut scanner = IdScanner::default();
            scanner.feed(left);
            scanner.feed(right);
            prop_assert_eq!(scanner.answered(), ids(&text));
        }
    }
}
