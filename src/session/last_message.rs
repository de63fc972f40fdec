//! The last message of a run, for a file of its own: a projection of the events, whatever is shown of them.

use crate::conversation::event::{Event, SegmentKind};

/// The text of the last provider call that has any; of an answer that must be a document, the document alone.
#[derive(Clone, Debug, Default)]
pub(super) struct LastMessage {
    text: String,
    document: Option<String>,
    is_new_call: bool,
    is_finished: bool,
}

impl LastMessage {
    /// Takes the next event; `document` gives that of the answer, if the answer ends here.
    pub(super) fn apply(&mut self, event: &Event, document: impl FnOnce() -> Option<String>) {
        if let Event::RunStarted { .. } = event {
            *self = Self::default();
        } else if let Event::CallStarted = event {
            self.is_new_call = true;
        } else if let Event::RepairRequested { .. } = event {
            self.text.clear();
        } else if let Event::SegmentPatched { segment, text, .. } = event
            && segment.kind == SegmentKind::Text
        {
            if std::mem::take(&mut self.is_new_call) {
                self.text.clear();
            }
            self.text.push_str(text);
        } else if let Event::RunFinished { .. } = event {
            self.is_finished = true;
            self.document = document();
        }
    }

    /// The message of a run that has finished.
    pub(super) fn get(&self) -> Option<&str> {
        self.is_finished.then(|| self.document.as_deref().unwrap_or(&self.text))
    }
}
