//! The answer as plain text. The texts of several provider calls are on lines of their own.

use super::view::{CallBreaks, View};
use crate::protocol::wire::Frame;

/// The answer as text. Ends in a line feed unless it is empty.
#[derive(Clone, Debug, Default)]
pub(crate) struct Text {
    breaks: CallBreaks,
    shown: Shown,
    /// The text so far was rejected. It stays until there is other, as the repair may fail.
    is_rejected: bool,
}

/// The printed part of the answer, and the time of printing.
#[derive(Clone, Debug, Default)]
pub(crate) enum Shown {
    /// Each piece as it comes.
    #[default]
    Pieces,
    /// The text at the end, because a repair may replace the answer.
    AtEnd(String),
    /// At the end the document that was found in the text of the last call, else all of the text.
    Document(Option<String>, String),
}

impl Text {
    /// The answer, of which this is printed.
    pub(crate) fn new(shown: Shown) -> Self {
        Self { shown, ..Self::default() }
    }

    pub(super) fn frame(&mut self, frame: &Frame, out: &mut Vec<u8>) {
        let view = View::of(frame);
        if let View::Text(text) = view {
            self.prompt(text, out);
        } else if let View::CallStarted = view {
            self.breaks.call_started();
            self.document(None);
        } else if let View::Object(object) = view {
            self.document(Some(&object.json));
        } else if let View::AnswerRejected(_) = view {
            self.breaks = CallBreaks::default();
            self.document(None);
            self.is_rejected = true;
        }
    }

    fn document(&mut self, found: Option<&String>) {
        if let Shown::Document(document, _) = &mut self.shown {
            *document = found.cloned();
        }
    }

    pub(super) fn prompt(&mut self, text: &str, out: &mut Vec<u8>) {
        let before = self.breaks.before(text);
        let is_rejected = !text.is_empty() && std::mem::take(&mut self.is_rejected);
        match &mut self.shown {
            Shown::AtEnd(held) | Shown::Document(_, held) => {
                if is_rejected {
                    held.clear();
                }
                held.extend([before, text]);
            }
            Shown::Pieces => {
                out.extend_from_slice(before.as_bytes());
                out.extend_from_slice(text.as_bytes());
            }
        }
    }

    pub(super) fn end(&mut self, out: &mut Vec<u8>) {
        let last = match std::mem::take(&mut self.shown) {
            Shown::Pieces => self.breaks.last,
            Shown::AtEnd(text) | Shown::Document(None, text) | Shown::Document(Some(text), _) => {
                out.extend_from_slice(text.as_bytes());
                text.bytes().next_back()
            }
        };
        if last.is_some_and(|last| last != b'\n') {
            out.push(b'\n');
        }
    }
}
