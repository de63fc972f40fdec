//! The thread that reads standard input. A thread and not a future: a read that is dropped halfway
//! would lose what it had read.

use super::Requests;
use super::framer::{Framer, RawLine};
use super::streams::can_be_read;
use crate::support::files::wait_for;
use crate::support::threads::{self, NoThread};
use rustix::buffer::spare_capacity;
use rustix::event::PollFlags;
use rustix::io::Errno;
use std::fs::File;
use std::future::pending;
use std::io;
use tokio::sync::mpsc;

/// Bytes of one read.
const CHUNK_BYTES: usize = 64 * 1024;

/// Chunks read ahead of the loop.
const CHUNKS_AHEAD_MAX: usize = 2;

/// A result of reading.
#[derive(Debug)]
pub(super) enum FromStdin {
    Line(RawLine),
    Ended,
    Failed(io::Error),
}

/// The result of one read.
#[derive(Debug)]
pub(super) struct Chunk {
    /// The lines that it completed. The last item of the last chunk is `Ended` or `Failed`.
    pub(super) lines: Vec<FromStdin>,
    /// Another chunk follows at once: there is more to read, or the end.
    pub(super) comes_more: bool,
}

/// Receives lines from the thread; empty once the end was received.
pub(super) struct StdinLines(Option<mpsc::Receiver<Chunk>>);

impl StdinLines {
    /// Begins to read from `input`.
    fn spawn(input: File, line_bytes_max: usize) -> Result<Self, NoThread> {
        let (lines, received) = mpsc::channel(CHUNKS_AHEAD_MAX);
        let read = move || read(input, Framer::new(line_bytes_max), &lines);
        threads::spawn("stdin", read)?;
        Ok(Self(Some(received)))
    }

    /// The lines of `input`, if requests come from there and the system has a thread to read them.
    pub(super) fn of(requests: &Requests, input: File) -> (Self, Option<NoThread>) {
        match requests {
            Requests::Stdin { line_bytes_max } => match Self::spawn(input, *line_bytes_max) {
                Ok(lines) => (lines, None),
                Err(error) => (Self(None), Some(error)),
            },
            Requests::Once(_)
            | Requests::Awaited(_)
            | Requests::Refused(_)
            | Requests::Interrupted(_) => (Self(None), None),
        }
    }

    /// Waits for the next chunk.
    pub(super) async fn next(&mut self) -> Chunk {
        let Some(received) = &mut self.0 else { return pending().await };
        // A thread that ends without `Ended` has panicked; the loop must not wait for it for ever.
        let panicked = || Chunk {
            lines: vec![FromStdin::Failed(io::Error::other("the thread that reads has ended"))],
            comes_more: false,
        };
        let chunk = received.recv().await.unwrap_or_else(panicked);
        if let Some(FromStdin::Ended | FromStdin::Failed(_)) = chunk.lines.last() {
            self.0 = None;
        }
        chunk
    }
}

fn read(input: File, mut framer: Framer, to: &mpsc::Sender<Chunk>) {
    // Never filled with zeros: most of it is not used by requests of usual length.
    let mut chunk = Vec::with_capacity(CHUNK_BYTES);
    loop {
        chunk.clear();
        let mut lines = Vec::new();
        let end = match rustix::io::read(&input, spare_capacity(&mut chunk)) {
            Ok(0) => Some(FromStdin::Ended),
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
            Err(error) => Some(FromStdin::Failed(error.into())),
        };
        if end.is_some() {
            lines.extend(framer.finish());
        }
        let is_last = end.is_some();
        let lines = lines.into_iter().map(FromStdin::Line).chain(end).collect();
        let comes_more = !is_last && can_be_read(&input);
        if to.blocking_send(Chunk { lines, comes_more }).is_err() || is_last {
            return;
        }
    }
}
