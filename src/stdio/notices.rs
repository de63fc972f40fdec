//! Warnings for a person before an answer comes. They go to the log.

use super::UnreadInput;

#[derive(Debug)]
pub(super) struct Notices {
    texts: Vec<&'static str>,
    unread: Option<UnreadInput>,
}

impl Notices {
    pub(super) fn new(texts: Vec<&'static str>, unread: Option<UnreadInput>) -> Self {
        Self { texts, unread }
    }

    /// Logs everything, once.
    pub(super) fn log(&mut self) {
        for text in self.texts.drain(..) {
            tracing::warn!("{text}");
        }
        self.log_unread();
    }

    /// Logs, once, that standard input holds data that is not read. Its writer may be slow, so this is
    /// looked for at the beginning and at the end.
    pub(super) fn log_unread(&mut self) {
        if let Some(notice) = self.unread.as_ref().and_then(UnreadInput::notice) {
            tracing::warn!("{notice}");
            self.unread = None;
        }
    }
}
