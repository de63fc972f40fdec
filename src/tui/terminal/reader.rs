//! Reads a terminal in a thread that can be stopped, so that it takes no keys of another program: those for an
//! editor, or for the shell of a suspended chat.

use crate::support::threads::{self, NoThread};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::mpsc as sync;
use std::time::Duration;
use tokio::sync::mpsc;

/// Bytes that are read at once.
const READ_BYTES: usize = 64 * 1024;

/// Pieces that are read ahead.
const PIECES_AHEAD_MAX: usize = 16;

/// How long a thread that is to stop may take.
const STOP_TIME: Duration = Duration::from_secs(1);

/// A thread that reads.
#[derive(Debug)]
pub(super) struct Reader {
    pieces: mpsc::Receiver<io::Result<Vec<u8>>>,
    /// Closed to stop the thread.
    stop: Option<OwnedFd>,
    stopped: sync::Receiver<()>,
}

impl Reader {
    /// Begins to read `input`.
    ///
    /// # Errors
    /// If the system has no thread or no descriptors for it.
    pub(super) fn start(input: File) -> io::Result<Self> {
        let (stops, stop) = pipe_with(PipeFlags::CLOEXEC)?;
        let (sender, pieces) = mpsc::channel(PIECES_AHEAD_MAX);
        let (has_stopped, stopped) = sync::channel::<()>();
        let read = move || {
            while let Some(piece) = next(&input, &stops) {
                let is_last = piece.as_ref().map_or(true, Vec::is_empty);
                if sender.blocking_send(piece).is_err() || is_last {
                    break;
                }
            }
            drop(has_stopped);
        };
        threads::spawn("keys", read).map_err(|error: NoThread| io::Error::other(error))?;
        Ok(Self { pieces, stop: Some(stop), stopped })
    }

    /// The next bytes; none at the end of the terminal.
    ///
    /// # Errors
    /// If it can't be read any more.
    pub(super) async fn next(&mut self) -> io::Result<Vec<u8>> {
        self.pieces.recv().await.unwrap_or_else(|| Ok(Vec::new()))
    }

    /// Stops the thread: from here on it takes no byte.
    pub(super) fn stop(mut self) {
        self.pieces.close();
        drop(self.stop.take());
        // It waits for nothing else, so this takes no time; its end is all that is ever reported.
        self.stopped.recv_timeout(STOP_TIME).ok();
    }
}

/// Waits for bytes; `None` if the thread is to stop.
fn next(input: &File, stops: &OwnedFd) -> Option<io::Result<Vec<u8>>> {
    loop {
        let mut files = [
            PollFd::new(stops, PollFlags::IN),
            PollFd::from_borrowed_fd(input.as_fd(), PollFlags::IN),
        ];
        match poll(&mut files, None) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Some(Err(error.into())),
        }
        if !files[0].revents().is_empty() {
            return None;
        }
        if files[1].revents().is_empty() {
            continue;
        }
        let mut bytes = vec![0; READ_BYTES];
        match rustix::io::read(input, &mut bytes) {
            Ok(length) => {
                bytes.truncate(length);
                return Some(Ok(bytes));
            }
            Err(Errno::INTR | Errno::AGAIN) => {}
            Err(error) => return Some(Err(error.into())),
        }
    }
}
