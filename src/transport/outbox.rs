//! Frames on their way to a reader that may be slow: a queue bounded in bytes. Under backpressure the
//! patches of one segment are coalesced; no other frame is ever changed or dropped, and the queue
//! reports when it is full. A frame with long texts is encoded when the reader takes it, in pieces. Pure.

mod coalescing;
mod long;

use super::{Codec, Unencodable};
use crate::protocol::proto::rpc::RpcLine;
use crate::protocol::proto::rpc::rpc_line::Frame as Body;
use crate::protocol::wire::{self, ClientError, Code, Done, Frame};
use crate::session::{ExitCode, Uptime};
use crate::support::fail_point::FailPoint;
use coalescing::{coalesce, is_segment, patch_text, shared_bytes};
use long::{Long, Marked};
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Queued bytes from which a reader that keeps up is awaited: two pipes' worth.
pub(crate) const AWAIT_FROM_BYTES: usize = 128 * 1024;

/// Queued bytes from which patches are coalesced. More than [`AWAIT_FROM_BYTES`], so that a reader that keeps
/// up gets each delta on its own.
pub(crate) const COALESCE_FROM_BYTES: usize = 256 * 1024;

/// Queued bytes from which the engine is not polled: backpressure up to the provider.
pub(crate) const ENGINE_BYTES_MAX: usize = 1024 * 1024;

/// Bytes of a frame's text from which it is encoded only when the reader takes it: until then it
/// shares its text with the conversation.
pub(crate) const DEFERRED_FROM_BYTES: usize = 64 * 1024;

/// Queued answers from which no more requests are read.
pub(crate) const ANSWERS_MAX: usize = 256;

/// Bytes of queued answers from which no more requests are read.
pub(crate) const ANSWER_BYTES_MAX: usize = 8 * 1024 * 1024;

/// The bounded queue of frames between the session and the writer.
#[derive(Debug)]
pub(crate) struct Outbox<C> {
    pub(crate) codec: C,
    /// Lines that will not change any more.
    sealed: Vec<u8>,
    /// The frames after those, from the first one with long texts on.
    deferred: VecDeque<Deferred>,
    deferred_bytes: usize,
    /// The frame with long texts that is being taken, before all others, and the lines after it; and their part
    /// of `deferred_bytes`.
    long: Long,
    long_bytes: usize,
    /// The last frame, if it is a patch that the next one may be coalesced with.
    open: Option<Patch>,
    answers: usize,
    answer_bytes: usize,
    fault: FailPoint,
    is_defective: bool,
}

/// A frame with long texts that is not encoded yet, and the lines after it.
#[derive(Debug)]
struct Deferred {
    made: Uptime,
    frame: Frame,
    text_bytes: usize,
    after: Vec<u8>,
}

/// A frame that holds a patch.
#[derive(Debug)]
struct Patch {
    made: Uptime,
    frame: Frame,
    text_bytes: usize,
}

impl<C: Codec> Outbox<C> {
    /// An empty one, with a fault planted in its encoder or none.
    pub(crate) fn new(codec: C, fault: FailPoint) -> Self {
        Self {
            codec,
            sealed: Vec::new(),
            deferred: VecDeque::new(),
            deferred_bytes: 0,
            long: Long::default(),
            long_bytes: 0,
            open: None,
            answers: 0,
            answer_bytes: 0,
            fault,
            is_defective: false,
        }
    }

    /// Appends a frame, made at `now`.
    pub(crate) fn push(&mut self, now: Uptime, frame: Frame) {
        let Some(text_bytes) = patch_text(&frame).map(str::len) else {
            return self.push_whole(now, frame);
        };
        let mut patch = Patch { made: now, frame, text_bytes };
        let is_behind = self.waiting_bytes() >= COALESCE_FROM_BYTES;
        if let Some(open) = &mut self.open {
            if is_behind && coalesce(open, &mut patch) {
                return;
            }
            let whole = std::mem::replace(open, patch);
            return self.seal(whole.made, &whole.frame);
        }
        self.open = Some(patch);
    }

    /// Appends what `encode` has the codec write beside the frames.
    pub(crate) fn append(
        &mut self,
        encode: impl FnOnce(&mut C, &mut Vec<u8>) -> Result<(), Unencodable>,
    ) {
        self.seal_open();
        let Self { codec, sealed, .. } = self;
        if encode(codec, sealed).is_err() {
            self.is_defective = true;
        }
    }

    /// Appends the end of the output.
    pub(crate) fn end(&mut self, now: Uptime, code: ExitCode) {
        self.seal_open();
        let Self { codec, sealed, .. } = self;
        let before = sealed.len();
        // Even after a defect: a reader of an output with an end waits for it.
        let ending = AssertUnwindSafe(|| codec.end(now, code, sealed));
        if !matches!(catch_unwind(ending), Ok(Ok(()))) {
            sealed.truncate(before);
            self.is_defective = true;
        }
    }

    /// Takes queued lines: all of them or, if there are frames with long texts, those up to the next such
    /// frame, or a piece of it. `empty` is a buffer to use again.
    pub(crate) fn take(&mut self, mut empty: Vec<u8>) -> Vec<u8> {
        self.seal_open();
        empty.clear();
        if self.long.is_empty() && self.sealed.is_empty() {
            self.begin_deferred(&mut empty);
        }
        let taken = if self.long.is_empty() && empty.is_empty() {
            std::mem::replace(&mut self.sealed, empty)
        } else {
            self.take_long(&mut empty);
            empty
        };
        if self.deferred.is_empty() && self.long.is_empty() {
            self.answers = 0;
            self.answer_bytes = 0;
        }
        taken
    }

    /// True if nothing waits.
    pub(crate) fn is_empty(&self) -> bool {
        let has_lines = !self.sealed.is_empty() || !self.long.is_empty();
        !has_lines && self.deferred.is_empty() && self.open.is_none()
    }

    /// So much waits that the reader should have a moment to take it.
    pub(crate) fn is_behind(&self) -> bool {
        self.waiting_bytes() >= AWAIT_FROM_BYTES
    }

    /// There is room for more events of the engine.
    pub(crate) fn has_room_for_engine(&self) -> bool {
        let open = self.open.as_ref().map_or(0, |patch| patch.text_bytes);
        self.waiting_bytes() + open < ENGINE_BYTES_MAX
    }

    /// There is room for another answer.
    pub(crate) fn has_room_for_answers(&self) -> bool {
        self.answers < ANSWERS_MAX && self.answer_bytes < ANSWER_BYTES_MAX
    }

    fn push_whole(&mut self, now: Uptime, frame: Frame) {
        self.seal_open();
        let before = self.waiting_bytes();
        let is_done = matches!(frame.frame, Some(Body::Done(_)));
        let is_segment = is_segment(&frame);
        match self.deferred_text_bytes(&frame) {
            Some(text_bytes) => {
                self.defer(Deferred { made: now, frame, text_bytes, after: Vec::new() })
            }
            None => self.seal(now, &frame),
        }
        let bytes = self.waiting_bytes() - before;
        // A codec that writes nothing for a `done` leaves nothing to wait for.
        if is_done && bytes > 0 {
            self.answers += 1;
        }
        // The text of an answer has a limit of its own.
        if !is_segment {
            self.answer_bytes += bytes;
        }
    }

    /// Bytes that wait; of frames that are not encoded yet, those of their texts.
    pub(crate) fn waiting_bytes(&self) -> usize {
        self.sealed.len() + self.deferred_bytes
    }

    /// Bytes of text of a frame that is to be encoded only when it is taken.
    fn deferred_text_bytes(&self, frame: &Frame) -> Option<usize> {
        let bytes = self.codec.is_stateless().then(|| shared_bytes(frame))?;
        (bytes >= DEFERRED_FROM_BYTES).then_some(bytes)
    }

    fn defer(&mut self, deferred: Deferred) {
        if !self.is_defective {
            self.deferred_bytes += deferred.text_bytes;
            self.deferred.push_back(deferred);
        }
    }

    /// A frame could not be encoded. An error was written in its place, and nothing more is.
    pub(crate) fn is_defective(&self) -> bool {
        self.is_defective
    }

    fn seal_open(&mut self) {
        if let Some(open) = self.open.take() {
            self.seal(open.made, &open.frame);
        }
    }

    fn seal(&mut self, made: Uptime, frame: &Frame) {
        if self.is_defective {
            return;
        }
        let mut lines = std::mem::take(self.tail());
        let before = lines.len();
        self.encode(made, frame, &mut lines);
        if !self.deferred.is_empty() {
            self.deferred_bytes += lines.len() - before;
        }
        *self.tail() = lines;
    }

    /// The lines that the next one comes after.
    fn tail(&mut self) -> &mut Vec<u8> {
        self.deferred.back_mut().map_or(&mut self.sealed, |last| &mut last.after)
    }

    /// Begins with the first of the frames with long texts, and the lines after it. If it can't be encoded,
    /// that is what `lines` gets, and nothing comes after it.
    fn begin_deferred(&mut self, lines: &mut Vec<u8>) {
        let Some(Deferred { made, mut frame, text_bytes, after }) = self.deferred.pop_front()
        else {
            return;
        };
        let marked = Marked::of(&mut frame);
        if !self.encode(made, &frame, lines) {
            self.deferred.clear();
            self.deferred_bytes = 0;
            return;
        }
        self.long_bytes = text_bytes + after.len();
        self.long = marked.fill(lines, after);
        lines.clear();
    }

    /// Takes a piece of the frame with long texts.
    fn take_long(&mut self, lines: &mut Vec<u8>) {
        self.long.take(&mut self.codec, lines);
        if self.long.is_empty() {
            self.deferred_bytes -= std::mem::take(&mut self.long_bytes);
        }
    }

    /// Encodes a frame. If it can't be encoded, an error and a `done` replace it, and nothing more
    /// is to be written.
    fn encode(&mut self, made: Uptime, frame: &Frame, lines: &mut Vec<u8>) -> bool {
        let Self { codec, fault, .. } = self;
        let before = lines.len();
        let encoding = AssertUnwindSafe(|| {
            fault.step();
            codec.frame(made, frame, lines)
        });
        if matches!(catch_unwind(encoding), Ok(Ok(()))) {
            return true;
        }
        lines.truncate(before);
        self.is_defective = true;
        for body in [wire::error(defect()), wire::done(Done::Failed)] {
            let frame = RpcLine { frame: Some(body), ..frame.clone() };
            // If even this can't be encoded, the exit status still reports the defect.
            self.codec.frame(made, &frame, lines).ok();
        }
        false
    }
}

fn defect() -> ClientError {
    ClientError {
        code: Code::Internal,
        message: "a frame could not be encoded, which is a defect of this program; the process \
                  ends; please report it"
            .to_owned(),
        detail: String::new(),
        terminal: true,
    }
}

#[cfg(test)]
mod tests;
