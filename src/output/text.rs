//! The answer as plain text.

use super::view::View;
use crate::protocol::wire::Frame;

/// The answer as text. Ends in a line feed unless it is empty.
#[derive(Clone, Debug, Default)]
pub(crate) struct Text {
    last: Option<u8>,
}

impl Text {
    pub(super) fn frame(&mut self, frame: &Frame, out: &mut Vec<u8>) {
        if let View::Text(text) = View::of(frame) {
            self.prompt(text, out);
        }
    }

    pub(super) fn prompt(&mut self, text: &str, out: &mut Vec<u8>) {
        out.extend_from_slice(text.as_bytes());
        self.last = text.bytes().next_back().or(self.last);
    }

    pub(super) fn end(&mut self, out: &mut Vec<u8>) {
        if self.last.is_some_and(|last| last != b'\n') {
            out.push(b'\n');
        }
    }
}
