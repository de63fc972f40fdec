//! Consumers of frames besides standard output: the debug file, the diagnostics of a single run and
//! the progress line.

use super::diagnostics::Diagnostics;
use super::{Progress, Settings};
use crate::protocol::wire::Frame;
use crate::transport::DebugFile;
use std::time::Instant;

#[derive(Debug)]
pub(super) struct Observers {
    pub(super) debug_file: Option<DebugFile>,
    pub(super) diagnostics: Diagnostics,
    pub(super) progress: Option<Progress>,
}

impl Observers {
    /// The diagnostics that `settings` asks for; the debug file and the progress line are still to be set.
    pub(super) fn new(settings: &Settings) -> Self {
        let diagnostics = Diagnostics::new(settings);
        Self { debug_file: None, diagnostics, progress: None }
    }

    /// A run begins: the debug file's record of an earlier process is replaced now.
    pub(super) fn begin(&mut self) {
        if let Some(file) = &mut self.debug_file {
            file.begin();
        }
    }

    /// Clears the progress line: the next output may go to the same terminal.
    pub(super) fn end_progress(&mut self) {
        self.progress = None;
    }

    /// Copies a frame to the debug file.
    pub(super) fn copy(&mut self, frame: &Frame) {
        if let Some(file) = &mut self.debug_file {
            file.record(frame);
        }
    }

    /// Passes a frame to all of them.
    pub(super) fn observe(&mut self, frame: &Frame) {
        self.copy(frame);
        self.diagnostics.take(frame);
        if let Some(progress) = &mut self.progress {
            progress.take(frame);
        }
    }

    /// When [`Observers::tick`] is to be called next.
    pub(super) fn next_tick(&self) -> Option<Instant> {
        self.progress.as_ref().and_then(Progress::next_tick)
    }

    /// Moves the progress line if it is time. `is_written`: no output is being written.
    pub(super) fn tick(&mut self, now: Instant, is_written: bool) {
        if let Some(progress) = &mut self.progress
            && progress.next_tick().is_some_and(|tick| tick <= now)
        {
            progress.tick_beside(is_written);
        }
    }

    pub(super) fn into_complaint(self) -> Option<String> {
        // The progress line goes first, and the file was finished.
        drop(self.progress);
        self.diagnostics.into_complaint()
    }
}
