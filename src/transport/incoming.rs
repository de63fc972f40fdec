//! Lines that are read: a thread frames them, and the loop takes them in their order, with a turn for the
//! engine in between.

use super::framer::{Framer, RawLine};
use super::streams::can_be_read;
use crate::protocol::id::TaskId;
use crate::support::files::wait_for;
use crate::support::threads::{self, NoThread};
use rustix::buffer::spare_capacity;
use rustix::event::PollFlags;
use rustix::io::Errno;
use std::collections::VecDeque;
use std::fs::File;
use std::future::pending;
use std::io;
use std::time::{Duration, Instant};
use tokio::sync::mpsc;

/// Bytes of one read.
const CHUNK_BYTES: usize = 64 * 1024;

/// Chunks read ahead of the loop.
const CHUNKS_AHEAD_MAX: usize = 2;

/// Chunks of input that are handled before the engine gets a turn, however many more there are.
const CHUNKS_BEFORE_ENGINE_MAX: u32 = 32;

/// Lines that are handled before the engine gets a turn: a few chunks can hold thousands.
const LINES_BEFORE_ENGINE_MAX: u32 = 256;

/// How long the engine waits for input that can be read: another process that shares standard
/// input may have taken it, and must not hold up the run.
const MORE_INPUT_MAX: Duration = Duration::from_millis(100);

/// A result of reading.
#[derive(Debug)]
pub(crate) enum Received {
    Line(RawLine),
    Ended,
    Failed(io::Error),
}

/// The result of one read.
#[derive(Debug)]
struct Chunk {
    /// The lines that it completed. The last item of the last chunk is `Ended` or `Failed`.
    lines: Vec<Received>,
    /// Another chunk follows at once: there is more to read, or the end.
    comes_more: bool,
}

/// Receives lines from a thread. A thread and not a future: a read that is dropped halfway would lose
/// what it had read.
#[derive(Debug, Default)]
pub(crate) struct Incoming {
    /// `None` once the end was received.
    chunks_read: Option<mpsc::Receiver<Chunk>>,
    /// Lines that were read and not handled yet.
    waiting: VecDeque<Received>,
    /// More input can be read; until then the engine is not polled.
    more_until: Option<Instant>,
    /// Since the engine had a turn in this provider call.
    chunks: u32,
    /// Lines handled since then.
    lines_taken: u32,
    call: Option<TaskId>,
}

impl Incoming {
    /// Begins to read lines of up to `line_bytes_max` bytes from `input`.
    ///
    /// # Errors
    /// If the system has no thread for that.
    pub(crate) fn start(input: File, line_bytes_max: usize) -> Result<Self, NoThread> {
        let (chunks, received) = mpsc::channel(CHUNKS_AHEAD_MAX);
        let read = move || read(input, Framer::new(line_bytes_max), &chunks);
        threads::spawn("stdin", read)?;
        Ok(Self { chunks_read: Some(received), ..Self::default() })
    }

    /// The next line.
    pub(crate) fn pop(&mut self) -> Option<Received> {
        let line = self.waiting.pop_front();
        self.lines_taken += u32::from(line.is_some());
        line
    }

    /// The time until which the engine is not polled, as more input can be read at once.
    pub(crate) fn more_until(&self) -> Option<Instant> {
        self.more_until.filter(|until| Instant::now() < *until)
    }

    /// Waits for lines, which are then taken with [`Self::pop`]. `call` is the active provider call.
    /// Cancel-safe.
    pub(crate) async fn read(&mut self, call: Option<TaskId>) {
        let Some(chunks) = &mut self.chunks_read else { return pending().await };
        // A thread that ends without `Ended` has panicked; the loop must not wait for it for ever.
        let panicked = || Chunk {
            lines: vec![Received::Failed(io::Error::other("the thread that reads has ended"))],
            comes_more: false,
        };
        let chunk = chunks.recv().await.unwrap_or_else(panicked);
        if let Some(Received::Ended | Received::Failed(_)) = chunk.lines.last() {
            self.chunks_read = None;
        }
        self.waiting.extend(chunk.lines);
        self.more_until = chunk.comes_more.then(|| Instant::now() + MORE_INPUT_MAX);
        self.count_for(call);
        self.chunks += 1;
    }

    /// Counts from the beginning of a provider call: a cancel right after its submit must find the run as it
    /// was.
    fn count_for(&mut self, call: Option<TaskId>) {
        if self.call != call {
            (self.call, self.chunks, self.lines_taken) = (call, 0, 0);
        }
    }

    /// So many chunks or lines were handled that the engine must be polled before more of them.
    pub(crate) fn owes_engine_a_turn(&mut self, call: Option<TaskId>) -> bool {
        self.count_for(call);
        self.chunks >= CHUNKS_BEFORE_ENGINE_MAX || self.lines_taken >= LINES_BEFORE_ENGINE_MAX
    }

    pub(crate) fn engine_had_its_turn(&mut self) {
        self.chunks = 0;
        self.lines_taken = 0;
    }
}

fn read(input: File, mut framer: Framer, to: &mpsc::Sender<Chunk>) {
    // Never filled with zeros: most of it is not used by requests of usual length.
    let mut chunk = Vec::with_capacity(CHUNK_BYTES);
    loop {
        chunk.clear();
        let mut lines = Vec::new();
        let end = match rustix::io::read(&input, spare_capacity(&mut chunk)) {
            Ok(0) => Some(Received::Ended),
            Ok(_) => {
                framer.push(&chunk, &mut lines);
                None
            }
            Err(Errno::INTR) => continue,
            // Another process that shares the pipe has made it non-blocking.
            Err(Errno::AGAIN) => {
                wait_for(&input, PollFlags::IN);
                continue;
            }
            Err(error) => Some(Received::Failed(error.into())),
        };
        if end.is_some() {
            lines.extend(framer.finish());
        }
        let is_last = end.is_some();
        let lines = lines.into_iter().map(Received::Line).chain(end).collect();
        let comes_more = !is_last && can_be_read(&input);
        if to.blocking_send(Chunk { lines, comes_more }).is_err() || is_last {
            return;
        }
    }
}
