//! Warnings for a person before the answer. They go to the log.

use rustix::fs::{FileType, fstat, tell};
use rustix::io::ioctl_fionread;
use std::fs::File;

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

/// Standard input of a run that does not read it. If it holds data, the user may have meant it to be
/// part of the prompt. Nothing here reads or waits.
#[derive(Debug)]
pub(crate) struct UnreadInput {
    input: File,
    advice: &'static str,
}

impl UnreadInput {
    /// Standard input, and how it could be read instead.
    pub(crate) fn new(input: File, advice: &'static str) -> Self {
        Self { input, advice }
    }

    /// The advice, if data waits.
    fn notice(&self) -> Option<&'static str> {
        self.has_data().then_some(self.advice)
    }

    fn has_data(&self) -> bool {
        let Ok(stat) = fstat(&self.input) else { return false };
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::Fifo | FileType::Socket => {
                ioctl_fionread(&self.input).is_ok_and(|bytes| bytes > 0)
            }
            // A file that was read from before is read line by line by a loop in a shell.
            FileType::RegularFile => stat.st_size > 0 && tell(&self.input) == Ok(0),
            FileType::Directory
            | FileType::Symlink
            | FileType::CharacterDevice
            | FileType::BlockDevice
            | FileType::Unknown => false,
        }
    }
}
