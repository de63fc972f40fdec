//! The last message of a run, for a file of its own.

use crate::protocol::any::Any;
use crate::protocol::proto::chat::ChatStreamPatchMode;
use crate::protocol::proto::rpc::rpc_line::Frame as Body;
use crate::protocol::wire::Frame;

/// The text of the last provider call that has any; of an answer that must be a document, the document alone.
#[derive(Clone, Debug, Default)]
pub(crate) struct LastMessage {
    text: String,
    /// The last segment, and where its text begins.
    segment: (String, usize),
    is_document: bool,
    document: Option<String>,
    is_new_call: bool,
}

impl LastMessage {
    /// Of an answer that must be a document, or is any text.
    pub(crate) fn new(is_document: bool) -> Self {
        Self { is_document, ..Self::default() }
    }

    /// Takes the next frame.
    pub(crate) fn frame(&mut self, frame: &Frame) {
        let Some(Body::UiEvent(event)) = &frame.frame else { return };
        let Some(payload) = &event.payload else { return };
        if let Any::ChatProviderCallStarted(_) = payload {
            self.is_new_call = true;
        } else if let Any::AnswerRejected(_) = payload {
            self.clear();
        } else if let Any::ChatTextPatch(patch) = payload {
            if std::mem::take(&mut self.is_new_call) {
                self.clear();
            }
            if self.segment.0 != patch.message_id {
                self.segment = (patch.message_id.clone(), self.text.len());
            }
            // All text of the segment so far.
            if patch.mode() == ChatStreamPatchMode::Snapshot {
                self.text.truncate(self.segment.1);
            }
            self.text.push_str(&patch.text);
        } else if let Any::ObjectExtracted(object) = payload {
            self.document = self.is_document.then(|| object.json.clone());
        }
    }

    /// The message, with a line feed at its end.
    pub(crate) fn text(self) -> String {
        let mut text = self.document.unwrap_or(self.text);
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        text
    }

    fn clear(&mut self) {
        self.text.clear();
        self.segment = Default::default();
        self.document = None;
    }
}
