//! Checks streamed text: sequence numbers and offsets of patches, and that they add up.

use super::rule::{Report, Rule};
use crate::protocol::proto::chat::ChatStreamPatchMode as Mode;

/// The content of a patch.
#[derive(Clone, Copy, Debug)]
pub(super) struct Patch<'a> {
    pub(super) sequence: u64,
    pub(super) offset: u64,
    pub(super) mode: i32,
    pub(super) text: &'a str,
}

/// Text that grows.
#[derive(Clone, Debug, Default)]
pub(super) struct Text {
    /// The text so far; `is_dropped` once it exceeds the limit of the buffer.
    buffer: String,
    is_dropped: bool,
    bytes: usize,
    pub(super) patches: u64,
    sequence: u64,
}

impl Text {
    pub(super) fn patch(&mut self, of: &str, patch: Patch<'_>, report: &mut Report) {
        self.patches += 1;
        let mode = Mode::try_from(patch.mode).unwrap_or(Mode::Replace);
        self.number(of, patch.sequence, report);
        match mode {
            Mode::Unspecified | Mode::Append => self.append(of, patch, report),
            Mode::Snapshot => {
                if patch.offset != 0 {
                    let offset = patch.offset;
                    let message =
                        format!("a patch of {of} has all text so far and also offset {offset}");
                    report.add(Rule::PatchOffset, message);
                }
                if !self.is_dropped && !patch.text.starts_with(&self.buffer) {
                    let message = format!("a patch of {of} does not begin with the text so far");
                    report.add(Rule::PatchText, message);
                }
                self.replace(patch.text);
            }
            Mode::Replace => {
                if self.patches == 1 {
                    let message = format!("the first patch of {of} has nothing to replace");
                    report.add(Rule::PatchMode, message);
                }
                self.replace(patch.text);
            }
        }
    }

    /// The text so far, if it is buffered.
    pub(super) fn so_far(&self) -> Option<&str> {
        (!self.is_dropped).then_some(self.buffer.as_str())
    }

    /// Whether `whole` is the text so far, as far as that is known.
    pub(super) fn is(&self, whole: &str) -> bool {
        self.so_far().map_or(self.bytes == whole.len(), |text| text == whole)
    }

    /// Compares the streamed text with the `whole` text at the end.
    pub(super) fn finish(&self, of: &str, whole: &str, report: &mut Report) {
        if !self.is(whole) {
            let (bytes, streamed) = (whole.len(), self.bytes);
            let message = format!(
                "the whole text of {of}, {bytes} bytes, differs from the {streamed} bytes of its patches"
            );
            report.add(Rule::SegmentText, message);
        }
    }

    fn number(&mut self, of: &str, sequence: u64, report: &mut Report) {
        if sequence <= self.sequence {
            let before = self.sequence;
            let message = format!("a patch of {of} has sequence {sequence} after {before}");
            report.add(Rule::PatchSequence, message);
        }
        self.sequence = self.sequence.max(sequence);
    }

    fn append(&mut self, of: &str, patch: Patch<'_>, report: &mut Report) {
        if patch.offset != self.bytes as u64 {
            let (offset, bytes) = (patch.offset, self.bytes);
            let message =
                format!("a patch of {of} begins at byte {offset}, but the text so far has {bytes}");
            report.add(Rule::PatchOffset, message);
        }
        self.bytes += patch.text.len();
        if !self.is_dropped {
            self.buffer += patch.text;
        }
    }

    fn replace(&mut self, text: &str) {
        self.bytes = text.len();
        if !self.is_dropped {
            text.clone_into(&mut self.buffer);
        }
    }

    pub(super) fn buffered_bytes(&self) -> usize {
        self.buffer.len()
    }

    /// Drops the text and counts only its length from here on.
    pub(super) fn forget(&mut self) {
        self.is_dropped = true;
        self.buffer = String::new();
    }
}
