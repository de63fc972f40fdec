//! The answer as plain text. The texts of several provider calls stand on lines of their own.

use super::view::{CallBreaks, View};
use crate::protocol::wire::Frame;

/// The answer as text. Ends in a line feed unless it is empty.
#[derive(Clone, Debug, Default)]
pub(crate) struct Text {
    breaks: CallBreaks,
}

impl Text {
    pub(super) fn frame(&mut self, frame: &Frame, out: &mut Vec<u8>) {
        match View::of(frame) {
            View::Text(text) => self.prompt(text, out),
            View::CallStarted => self.breaks.call_started(),
            View::Hello
            | View::RunStarted
            | View::Thinking(_)
            | View::ToolRequested(_)
            | View::ToolStarted(_)
            | View::ToolReturned(_)
            | View::CallFinished(_)
            | View::Object(_)
            | View::Rejected(_)
            | View::Extracted(_)
            | View::Error(_)
            | View::Other => {}
        }
    }

    pub(super) fn prompt(&mut self, text: &str, out: &mut Vec<u8>) {
        out.extend_from_slice(self.breaks.before(text).as_bytes());
        out.extend_from_slice(text.as_bytes());
    }

    pub(super) fn end(&mut self, out: &mut Vec<u8>) {
        if self.breaks.last.is_some_and(|last| last != b'\n') {
            out.push(b'\n');
        }
    }
}
