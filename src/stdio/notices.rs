//! Warnings for a person before the answer, which go to the log, and the one about input that was not read.

use crate::support::files;
use std::fs::File;
use std::os::unix::fs::FileTypeExt;
use std::sync::{Arc, OnceLock};

/// The name of the warning that input is not part of the prompt.
pub(super) const INPUT_UNREAD: &str = "input_unread";

#[derive(Debug)]
pub(super) struct Notices {
    texts: Vec<&'static str>,
    unread: Option<UnreadInput>,
}

impl Notices {
    pub(super) fn new(texts: Vec<&'static str>, unread: Option<UnreadInput>) -> Self {
        Self { texts, unread }
    }

    /// Logs the texts, once.
    pub(super) fn log(&mut self) {
        for text in self.texts.drain(..) {
            tracing::warn!("{text}");
        }
    }

    /// Logs, once, that standard input is not part of the prompt though data came, or was waited for. The
    /// writer may be slow, so this is looked for at the beginning and at the end.
    pub(super) fn unread(&mut self) -> Option<String> {
        let notice = self.unread.as_ref()?.notice()?;
        self.unread = None;
        tracing::warn!("{notice}");
        Some(notice)
    }
}

/// Why an input was not read, once that is known.
#[derive(Clone, Debug, Default)]
pub(crate) struct Unread(Arc<OnceLock<String>>);

impl Unread {
    /// It was waited for in vain.
    pub(crate) fn given_up(&self, why: String) {
        // The first reason stays.
        self.0.set(why).ok();
    }

    /// Logs why it was waited for in vain, if it was, of a prompt that is printed and not asked.
    pub(crate) fn log(&self) {
        if let Some(why) = self.0.get() {
            tracing::warn!("{why}");
        }
    }
}

/// Standard input of a run that does not read it, or not for long. If it has data, the user may have meant it to
/// be part of the prompt. Nothing here reads or waits.
#[derive(Debug)]
pub(crate) struct UnreadInput {
    input: File,
    advice: &'static str,
    unread: Unread,
}

impl UnreadInput {
    /// Standard input, how it could be read instead, and why it was not.
    pub(crate) fn new(input: File, advice: &'static str, unread: Unread) -> Self {
        Self { input, advice, unread }
    }

    /// The advice, if data waits, or why nothing was read.
    fn notice(&self) -> Option<String> {
        let why = self.unread.0.get().cloned();
        why.or_else(|| self.has_data().then(|| self.advice.to_owned()))
    }

    fn has_data(&self) -> bool {
        let kind = self.input.metadata().map(|about| about.file_type());
        kind.is_ok_and(|kind| kind.is_fifo() || kind.is_socket()) && files::has_data(&self.input)
    }
}
