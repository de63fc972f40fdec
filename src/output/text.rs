//! The answer as plain text. The texts of several provider calls stand on lines of their own.

use super::view::{CallBreaks, View};
use crate::protocol::wire::Frame;

/// The answer as text. Ends in a line feed unless it is empty.
#[derive(Clone, Debug, Default)]
pub(crate) struct Text {
    breaks: CallBreaks,
    /// Text that is printed at the end, because the answer may be asked for again.
    held: Option<String>,
}

impl Text {
    /// Text as it comes, or at the end if it is held back until then.
    pub(crate) fn new(is_held: bool) -> Self {
        Self { breaks: CallBreaks::default(), held: is_held.then(String::new) }
    }

    pub(super) fn frame(&mut self, frame: &Frame, out: &mut Vec<u8>) {
        match View::of(frame) {
            View::Text(text) => self.prompt(text, out),
            View::CallStarted => self.breaks.call_started(),
            View::AnswerRejected(_) => {
                self.breaks = CallBreaks::default();
                self.held.iter_mut().for_each(String::clear);
            }
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
            | View::UsageTotals(_)
            | View::Error(_)
            | View::Other => {}
        }
    }

    pub(super) fn prompt(&mut self, text: &str, out: &mut Vec<u8>) {
        let before = self.breaks.before(text);
        match &mut self.held {
            Some(held) => held.extend([before, text]),
            None => {
                out.extend_from_slice(before.as_bytes());
                out.extend_from_slice(text.as_bytes());
            }
        }
    }

    pub(super) fn end(&mut self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.held.take().unwrap_or_default().as_bytes());
        if self.breaks.last.is_some_and(|last| last != b'\n') {
            out.push(b'\n');
        }
    }
}
