//! Lines that are read: a task or a thread frames them, and the loop takes them in their order, with a turn
//! for the engine in between.

use super::framer::{Framer, RawLine};
use super::streams::{can_be_read, is_pipe_or_socket, read_without_waiting};
use crate::protocol::id::TaskId;
use crate::support::files::wait_for;
use crate::support::threads::{self, NoThread};
use rustix::event::PollFlags;
use rustix::io::Errno;
use std::collections::VecDeque;
use std::fs::File;
use std::future::pending;
use std::io;
use std::time::{Duration, Instant};
use tokio::net::unix::pipe;
use tokio::sync::mpsc;

/// Bytes of one read.
const CHUNK_BYTES: usize = 64 * 1024;

/// Bytes of a read until one has found more: requests of usual length need no more memory.
const FIRST_CHUNK_BYTES: usize = 4 * 1024;

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
}

/// Receives lines from a task that the runtime wakes when there is something to read or, where a read may wait
/// (a file, a terminal), from a thread. Not from a future of the loop: a read that is dropped halfway would lose
/// what it had read.
#[derive(Debug, Default)]
pub(crate) struct Incoming {
    /// `None` once the end was received.
    chunks_read: Option<mpsc::Receiver<Chunk>>,
    /// Lines that were read and not handled yet.
    waiting: VecDeque<Received>,
    /// What is read, to see whether there is more.
    input: Option<File>,
    /// Lines were handled since that was looked at.
    is_stale: bool,
    /// More input can be read; until then the engine is not polled.
    more_until: Option<Instant>,
    /// Since the engine had a turn in this provider call.
    chunks: u32,
    /// Lines handled since then.
    lines_taken: u32,
    call: Option<TaskId>,
}

impl Incoming {
    /// Begins to read lines of up to `line_bytes_max` bytes from `input`. Needs a runtime.
    ///
    /// # Errors
    /// If it takes a thread, and the system has none.
    pub(crate) fn start(input: File, line_bytes_max: usize) -> Result<Self, NoThread> {
        let (chunks, received) = mpsc::channel(CHUNKS_AHEAD_MAX);
        let mut reading = Reading::new(line_bytes_max);
        let looked_at = input.try_clone().ok();
        match reading.first(&input) {
            Some(first) => drop(tokio::spawn(read_when_ready(input, first, reading, chunks))),
            None => threads::spawn("stdin", move || read(&input, reading, &chunks))?,
        }
        Ok(Self { chunks_read: Some(received), input: looked_at, ..Self::default() })
    }

    /// The next line.
    pub(crate) fn pop(&mut self) -> Option<Received> {
        let line = self.waiting.pop_front();
        self.lines_taken += u32::from(line.is_some());
        line
    }

    /// The time until which the engine is not polled, as more input can be read at once. Looked at when all lines
    /// are handled: their writer may have gone on meanwhile.
    pub(crate) fn more_until(&mut self) -> Option<Instant> {
        if self.waiting.is_empty() && std::mem::take(&mut self.is_stale) {
            let has_more =
                self.chunks_read.is_some() && self.input.as_ref().is_some_and(can_be_read);
            self.more_until = has_more.then(|| Instant::now() + MORE_INPUT_MAX);
        }
        self.more_until.filter(|until| Instant::now() < *until)
    }

    /// Waits for lines, which are then taken with [`Self::pop`]. `call` is the active provider call.
    /// Cancel-safe.
    pub(crate) async fn read(&mut self, call: Option<TaskId>) {
        let Some(chunks) = &mut self.chunks_read else { return pending().await };
        // One that ends without `Ended` has panicked; the loop must not wait for it for ever.
        let panicked =
            || Chunk { lines: vec![Received::Failed(io::Error::other("what reads has ended"))] };
        let chunk = chunks.recv().await.unwrap_or_else(panicked);
        if chunk.is_last() {
            self.chunks_read = None;
        }
        self.waiting.extend(chunk.lines);
        (self.is_stale, self.more_until) = (true, None);
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

/// The lines of what was read so far.
struct Reading {
    framer: Framer,
    buffer: Vec<u8>,
}

impl Reading {
    fn new(line_bytes_max: usize) -> Self {
        Self { framer: Framer::new(line_bytes_max), buffer: vec![0; FIRST_CHUNK_BYTES] }
    }

    /// The result of a first read; `None` if the system can't read `input` without waiting.
    fn first(&mut self, input: &File) -> Option<rustix::io::Result<usize>> {
        if !is_pipe_or_socket(input) {
            return None;
        }
        match read_without_waiting(input, &mut self.buffer) {
            Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL | Errno::PERM) => None,
            read => Some(read),
        }
    }

    /// What a read has brought; `None` if it is to be repeated.
    fn chunk(&mut self, read: rustix::io::Result<usize>) -> Option<Chunk> {
        let mut lines = Vec::new();
        let end = match read {
            Ok(0) => Some(Received::Ended),
            Ok(bytes) => {
                self.framer.push(&self.buffer[..bytes], &mut lines);
                if bytes == self.buffer.len() {
                    self.buffer.resize(CHUNK_BYTES, 0);
                }
                None
            }
            Err(Errno::INTR | Errno::AGAIN) => return None,
            Err(error) => Some(Received::Failed(error.into())),
        };
        if end.is_some() {
            lines.extend(self.framer.finish());
        }
        let lines = lines.into_iter().map(Received::Line).chain(end).collect();
        Some(Chunk { lines })
    }
}

impl Chunk {
    fn is_last(&self) -> bool {
        matches!(self.lines.last(), Some(Received::Ended | Received::Failed(_)))
    }
}

/// Reads until the end, whenever the runtime says that there is something.
async fn read_when_ready(
    input: File,
    first: rustix::io::Result<usize>,
    mut reading: Reading,
    to: mpsc::Sender<Chunk>,
) {
    // Sockets too, of which nothing but their readiness is asked.
    let input = match pipe::Receiver::from_file_unchecked(input) {
        Ok(input) => input,
        Err(error) => {
            let lines = vec![Received::Failed(error)];
            to.send(Chunk { lines }).await.ok();
            return;
        }
    };
    let mut read = first;
    loop {
        if let Some(chunk) = reading.chunk(read) {
            let is_last = chunk.is_last();
            if to.send(chunk).await.is_err() || is_last {
                return;
            }
        }
        // An error is that of a runtime that ends.
        if input.readable().await.is_err() {
            return;
        }
        let buffer = &mut reading.buffer;
        // Where there is nothing, the runtime waits for more.
        let ready = input.try_io(|| match read_without_waiting(&input, buffer) {
            Err(Errno::AGAIN) => Err(io::ErrorKind::WouldBlock.into()),
            read => Ok(read),
        });
        read = ready.unwrap_or(Err(Errno::AGAIN));
    }
}

/// Reads until the end in a thread.
fn read(input: &File, mut reading: Reading, to: &mpsc::Sender<Chunk>) {
    loop {
        let read = rustix::io::read(input, &mut reading.buffer[..]);
        // Another process that shares the pipe has made it non-blocking.
        if read == Err(Errno::AGAIN) {
            wait_for(input, PollFlags::IN);
        }
        let Some(chunk) = reading.chunk(read) else { continue };
        let is_last = chunk.is_last();
        if to.blocking_send(chunk).is_err() || is_last {
            return;
        }
    }
}
