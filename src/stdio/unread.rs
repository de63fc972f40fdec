//! Standard input of a run that does not read it. If it holds data, the user may have meant it to be
//! part of the prompt. Nothing here reads or waits.

use rustix::fs::{FileType, fstat, tell};
use rustix::io::ioctl_fionread;
use std::fs::File;

/// Standard input that is not read.
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
    pub(super) fn notice(&self) -> Option<&'static str> {
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
