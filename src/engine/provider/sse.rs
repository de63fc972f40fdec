//! Server-sent events, from bytes that arrive in any pieces.
//!
//! The format is that of the WHATWG HTML standard, section 9.2.6, "Interpreting an event stream".
//! Three things differ: an event that the stream ends in is given out too, because providers leave
//! out the last blank line. And two kinds of error reports that are no event are read as one: bare
//! lines of JSON, an object or a list of objects, as proxies and Google write them into a stream that
//! has begun, and an `error` field, as older llama.cpp servers do.

use super::opening::Opening;
use std::mem::take;

/// Bytes of one event, its line ends included. A whole picture in base64 fits; a runaway line
/// doesn't.
pub(in crate::engine) const EVENT_BYTES_MAX: usize = 8 * 1024 * 1024;

const BOM: &[u8] = b"\xEF\xBB\xBF";

/// The beginning of a line with data.
const DATA: &[u8] = b"data:";

/// One event that carries data.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::engine) struct SseEvent {
    /// The `event` field; empty if there was none.
    pub(in crate::engine) kind: Vec<u8>,
    /// The `data` fields, joined by LF.
    pub(in crate::engine) data: Vec<u8>,
}

/// An event is longer than [`EVENT_BYTES_MAX`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::engine) struct TooLong;

/// Takes bytes in, gives events out. Holds one event at most.
#[derive(Debug, Default)]
pub(in crate::engine) struct Parser {
    line: Vec<u8>,
    event: SseEvent,
    has_data: bool,
    /// The data is JSON without a field name, which may go on over lines.
    is_bare: bool,
    /// How the data of the event begins, and how that of the line does.
    opening: Opening,
    line_opening: Opening,
    held_bytes: usize,
    after_cr: bool,
    after_first_line: bool,
}

impl Parser {
    /// Takes the next bytes; adds the events that they complete to `events`.
    pub(in crate::engine) fn push<E: From<SseEvent>>(
        &mut self,
        bytes: &[u8],
        events: &mut Vec<E>,
    ) -> Result<(), TooLong> {
        let mut rest = bytes;
        while let [first, after @ ..] = rest {
            // The LF of a CR LF, whose CR has already ended the line.
            if take(&mut self.after_cr) && *first == b'\n' {
                rest = after;
                continue;
            }
            let end = memchr::memchr2(b'\r', b'\n', rest);
            let (line, after) = rest.split_at(end.unwrap_or(rest.len()));
            self.held_bytes += line.len() + usize::from(end.is_some());
            if self.held_bytes > EVENT_BYTES_MAX {
                return Err(TooLong);
            }
            self.line.extend_from_slice(line);
            rest = after;
            if let [end, after @ ..] = after {
                self.after_cr = *end == b'\r';
                rest = after;
                events.extend(self.end_line().map(E::from));
            }
        }
        self.look();
        Ok(())
    }

    /// An event has begun whose data is a JSON object.
    pub(in crate::engine) fn is_in_json(&self) -> bool {
        match self.has_data {
            true => self.opening.is_object_or_list(),
            false => self.line_opening.is_object_or_list(),
        }
    }

    /// Looks at how the data begins, as far as it has come.
    fn look(&mut self) {
        if self.has_data {
            self.opening.read(&self.event.data);
        } else if !DATA.starts_with(&self.line) {
            let value = self.line.strip_prefix(DATA).unwrap_or(&self.line);
            self.line_opening.read(value);
        }
    }

    /// The stream has ended: returns the event it ended in.
    pub(in crate::engine) fn end(mut self) -> Option<SseEvent> {
        self.end_line().or_else(|| self.end_event())
    }

    fn end_line(&mut self) -> Option<SseEvent> {
        let mut line = take(&mut self.line);
        let first = !std::mem::replace(&mut self.after_first_line, true);
        let bom_bytes = if first && line.starts_with(BOM) { BOM.len() } else { 0 };
        let ended = match &line[bom_bytes..] {
            [] => self.end_event(),
            line => {
                let ends_bare = self.is_bare && self.ends_bare(line);
                let bare = if ends_bare { self.end_event() } else { None };
                self.field(line);
                bare
            }
        };
        // The buffer is reused for the next line.
        line.clear();
        self.line = line;
        self.line_opening = Opening::default();
        ended
    }

    /// Whether the JSON that goes on over lines ends before `line`. The objects of a list may begin at
    /// the beginning of a line.
    fn ends_bare(&self, line: &[u8]) -> bool {
        is_start(line) && !(line.starts_with(b"{") && self.event.data.starts_with(b"["))
    }

    fn field(&mut self, line: &[u8]) {
        if self.is_bare || is_bare_start(line) && !self.has_data {
            self.is_bare = true;
            return self.data(line);
        }
        let colon = memchr::memchr(b':', line).unwrap_or(line.len());
        let (name, value) = line.split_at(colon);
        let value = value.strip_prefix(b":").unwrap_or(value);
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match name {
            b"data" => self.data(value),
            b"error" => {
                self.event.kind = b"error".to_vec();
                self.data(value);
            }
            b"event" => self.event.kind = value.to_vec(),
            // Comments have an empty name; `id` and `retry` are for readers that reconnect.
            _ => {}
        }
    }

    fn data(&mut self, value: &[u8]) {
        if self.has_data {
            self.event.data.push(b'\n');
        }
        self.event.data.extend_from_slice(value);
        self.has_data = true;
    }

    fn end_event(&mut self) -> Option<SseEvent> {
        self.held_bytes = 0;
        self.is_bare = false;
        self.opening = Opening::default();
        let event = take(&mut self.event);
        take(&mut self.has_data).then_some(event)
    }
}

/// Begins a JSON object, or a list of objects.
fn is_bare_start(line: &[u8]) -> bool {
    line.starts_with(b"{") || line.starts_with(b"[{") || line.trim_ascii_end() == b"["
}

/// Begins something else than the next line of a JSON document.
fn is_start(line: &[u8]) -> bool {
    [b"data:".as_slice(), b"event:", b"error:", b"id:", b"retry:", b":", b"{"]
        .iter()
        .any(|start| line.starts_with(start))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(pieces: &[&[u8]]) -> Vec<(String, String)> {
        let mut parser = Parser::default();
        let mut events = Vec::new();
        for piece in pieces {
            parser.push(piece, &mut events).expect("short events");
        }
        events.extend(parser.end());
        let text = |bytes| String::from_utf8(bytes).expect("text");
        events.into_iter().map(|event| (text(event.kind), text(event.data))).collect()
    }

    /// `stream` gives the data of `events` (`kind|data` where there is a kind), whole, split at
    /// every byte, and byte by byte.
    fn check(stream: &str, events: &[&str]) {
        let expected: Vec<_> = events
            .iter()
            .map(|event| event.split_once('|').unwrap_or(("", event)))
            .map(|(kind, data)| (kind.to_owned(), data.to_owned()))
            .collect();
        let bytes = stream.as_bytes();
        assert_eq!(parse(&[bytes]), expected, "{stream:?} whole");
        for at in 0..bytes.len() {
            let (left, right) = bytes.split_at(at);
            assert_eq!(parse(&[left, right]), expected, "{stream:?} split at {at}");
        }
        let single: Vec<_> = bytes.chunks(1).collect();
        assert_eq!(parse(&single), expected, "{stream:?} byte by byte");
    }

    #[test]
    fn events_are_found_however_the_bytes_arrive() {
        check("", &[]);
        check("\n\n\n", &[]);
        check("data: a\n\ndata: b\n\n", &["a", "b"]);
        check("data: a\r\n\r\ndata: b\r\n\r\n", &["a", "b"]);
        check("data: a\r\rdata: b\r\r", &["a", "b"]);
        check("data: a\r\ndata: b\n\rdata: c\r\n\n", &["a\nb", "c"]);
        check("\u{FEFF}data: a\n\n", &["a"]);
        check("\u{FEFF}\ndata: a\n\n\u{FEFF}data: b\n\n", &["a"]);
        check("data:a\n\ndata:  b \n\n", &["a", " b "]);
        check("data: a\ndata: b\ndata\ndata:\n\n", &["a\nb\n\n"]);
        check("data\n\n", &[""]);
        check(": hello\n\n:\n:data: x\ndata: a\n: between\ndata: b\n\n", &["a\nb"]);
        check("event: error\ndata: a\n\nevent: lost\n\ndata: b\n\n", &["error|a", "b"]);
        check("id: 1\nretry: 5\nDATA: x\n data: x\nother\ndata: a:b\n\n", &["a:b"]);
        check("data: \u{1F600}\u{2028}\u{85}\u{0}\n\n", &["\u{1F600}\u{2028}\u{85}\u{0}"]);
    }

    #[test]
    fn an_event_that_the_stream_ends_in_counts() {
        check("data: a\n\ndata: b\n", &["a", "b"]);
        check("data: a\n\ndata: b", &["a", "b"]);
        check("data: a\ndata: b\r", &["a\nb"]);
        check("data: a\n\n: bye", &["a"]);
    }

    #[test]
    fn an_error_report_that_is_no_event_counts() {
        check("data: a\n\n{\"error\":1}\n\n", &["a", "{\"error\":1}"]);
        check("data: a\n\n{\"error\":1}", &["a", "{\"error\":1}"]);
        check(
            "{\r\n \"error\": {\r\n }\r\n}\r\n\r\ndata: b\n\n",
            &["{\n \"error\": {\n }\n}", "b"],
        );
        check("{\"a\":1}\n{\"b\":2}\ndata: c\n\n", &["{\"a\":1}", "{\"b\":2}", "c"]);
        check("event: error\n{\"a\":1}\n: x\n\ndata: b\n\n", &["error|{\"a\":1}", "b"]);
        check("data: {\n{\n\n", &["{"]);
        check("error: {\"a\":1}\n\ndata: b\n\n", &["error|{\"a\":1}", "b"]);
        check("data: a\n\n[{\n \"error\": 1\n}\n]\n", &["a", "[{\n \"error\": 1\n}\n]"]);
        check("[{\n}\n,\r\n{\n}\n]\ndata: b\n\n", &["[{\n}\n,\n{\n}\n]", "b"]);
        check("[1]\n\n", &[]);
        check("error: text\ndata: more\n\n", &["error|text\nmore"]);
    }

    #[test]
    fn an_event_whose_data_is_json_is_known_by_its_beginning() {
        let is_in_json = |stream: &str| {
            let mut parser = Parser::default();
            for byte in stream.as_bytes() {
                parser.push(&[*byte], &mut Vec::<SseEvent>::new()).expect("short");
            }
            let mut whole = Parser::default();
            whole.push(stream.as_bytes(), &mut Vec::<SseEvent>::new()).expect("short");
            assert_eq!(whole.is_in_json(), parser.is_in_json(), "{stream:?}");
            whole.is_in_json()
        };
        for json in ["data: {", "data:  [", "data: \ndata:\t{\n", "data: {\n", "{", ": x\ndata: {"]
        {
            assert!(is_in_json(json), "{json:?}");
        }
        for other in
            ["", "data: ", "data: x {", "data: {\n\n", "data: {}\n\ndata: ", ": {", "data: [1"]
        {
            assert!(!is_in_json(other), "{other:?}");
        }
    }

    /// White space that comes byte by byte: this ends only if each byte is looked at once.
    #[test]
    fn white_space_is_not_looked_at_again_and_again() {
        let mut parser = Parser::default();
        for byte in b"data:".iter().chain([b' '; 2 * 1024 * 1024].iter()) {
            parser.push(&[*byte], &mut Vec::<SseEvent>::new()).expect("fits");
            assert!(!parser.is_in_json());
        }
        parser.push(b"{", &mut Vec::<SseEvent>::new()).expect("fits");
        assert!(parser.is_in_json());
    }

    #[test]
    fn an_event_is_bounded_in_one_line_or_in_many() {
        let fits = vec![b'x'; EVENT_BYTES_MAX - "data:\n\n".len()];
        let mut events = Vec::<SseEvent>::new();
        let mut parser = Parser::default();
        // Twice: the limit is for each event, not for the stream.
        for _ in 0..2 {
            for piece in [b"data:".as_slice(), &fits, b"\n\n"] {
                parser.push(piece, &mut events).expect("fits");
            }
        }
        assert_eq!(events.len(), 2);
        for piece in [b"data:".as_slice(), &fits, b"\n"] {
            parser.push(piece, &mut events).expect("fits");
        }
        assert_eq!(parser.push(b"data", &mut events), Err(TooLong));
        let comments = b": x\n".repeat(EVENT_BYTES_MAX / 4 + 1);
        assert_eq!(Parser::default().push(&comments, &mut events), Err(TooLong));
    }
}
