//! What comes out of a pipe, collected by a thread while a test waits for it.

use crate::oracle::Output;
use crate::process::DEADLINE;
use std::io::Read;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

/// Bytes read at a time by a reader that keeps up.
const READ_BYTES: usize = 64 * 1024;

/// How a stream of the server is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reading {
    /// At once.
    Eager,
    /// In pieces of so many bytes.
    Pieces(usize),
    /// Until a line with this text; then the pipe is closed.
    Until(&'static str),
    /// Not before [`Server::read_on`].
    Held,
}

/// What came out of one pipe.
#[derive(Default)]
pub(super) struct Stream {
    pub(super) state: Mutex<StreamState>,
    pub(super) changed: Condvar,
}

#[derive(Default)]
pub(super) struct StreamState {
    pub(super) output: Output,
    pub(super) bytes: u64,
    /// Somebody reads the pipe.
    pub(super) is_read: bool,
    pub(super) is_over: bool,
}

impl Stream {
    pub(super) fn lock(&self) -> MutexGuard<'_, StreamState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn change(&self, change: impl FnOnce(&mut StreamState)) {
        change(&mut self.lock());
        self.changed.notify_all();
    }

    /// All that came, once the pipe is closed.
    #[track_caller]
    pub(super) fn ended(&self) -> StreamState {
        let waiting = |state: &mut StreamState| state.is_read && !state.is_over;
        let waited = self.changed.wait_timeout_while(self.lock(), DEADLINE, waiting);
        let (mut state, result) = waited.unwrap_or_else(PoisonError::into_inner);
        let lines = state.output.lines.len();
        assert!(
            !result.timed_out(),
            "waited {DEADLINE:?} for the end of a pipe whose process has ended; it had {lines} lines"
        );
        std::mem::take(&mut *state)
    }
}

impl StreamState {
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.bytes += bytes.len() as u64;
        let mut parts = bytes.split(|&byte| byte == b'\n');
        self.output.rest.extend(parts.next().unwrap_or_default());
        for part in parts {
            let line = std::mem::replace(&mut self.output.rest, part.to_vec());
            self.output.lines.push(line);
        }
    }

    pub(super) fn text(&self) -> String {
        let mut lines = self.output.lines.clone();
        lines.push(self.output.rest.clone());
        String::from_utf8_lossy(&lines.join(&b'\n')).into_owned()
    }
}

/// Begins to collect what comes out of `pipe`.
pub(super) fn read(mut pipe: impl Read + Send + 'static, reading: Reading, stream: &Arc<Stream>) {
    let stream = Arc::clone(stream);
    stream.change(|state| state.is_read = true);
    let (piece_bytes, last) = match reading {
        Reading::Eager | Reading::Held => (READ_BYTES, None),
        Reading::Pieces(bytes) => (bytes, None),
        Reading::Until(text) => (READ_BYTES, Some(text)),
    };
    let is_last =
        move |line: &Vec<u8>| last.is_some_and(|text| String::from_utf8_lossy(line).contains(text));
    thread::spawn(move || {
        let mut piece = vec![0; piece_bytes];
        let mut is_over = false;
        while !is_over && let Ok(bytes @ 1..) = pipe.read(&mut piece) {
            stream.change(|state| {
                let seen = state.output.lines.len();
                state.push(&piece[..bytes]);
                is_over = state.output.lines[seen..].iter().any(is_last);
            });
        }
        drop(pipe);
        stream.change(|state| state.is_over = true);
    });
}
