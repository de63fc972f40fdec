//! A queue of lines for a file, pipe or terminal that may be slow. A thread writes them and may
//! block as long as it takes; the process never waits for it, except for a limited time at its
//! end. Lines beyond the limits are dropped and counted.

use crate::support::files;
use crate::support::lock;
use crate::support::terminal;
use crate::support::threads;
use std::collections::VecDeque;
use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::Notify;
use tokio::time::timeout;

/// Most queued lines; more are dropped.
const LINES_MAX: usize = 1024;

/// Most queued bytes; more are dropped. A single line may be longer.
const BYTES_MAX: usize = 1024 * 1024;

/// Longest wait for the queue to be written at the end.
const FLUSH_MAX: Duration = Duration::from_secs(1);

/// The output of a queue.
#[derive(Debug)]
pub(crate) enum Target {
    /// Standard error of the process.
    Stderr,
    /// A file or named pipe of its own.
    File(File),
}

/// The treatment of a text if the queue is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A line of the log: dropped and counted.
    Log,
    /// A state of the progress line: dropped, because the next one follows soon.
    Picture,
    /// One of the few messages of the process, which is queued beyond the limit.
    Message,
}

#[derive(Debug)]
pub(crate) struct LineQueue {
    target: Target,
    state: Mutex<State>,
    changed: Condvar,
    /// Notifies futures when the queue is empty.
    emptied: Notify,
}

#[derive(Debug, Default)]
struct State {
    lines: VecDeque<(Kind, Vec<u8>)>,
    bytes: usize,
    lost: u64,
    has_thread: bool,
    is_writing: bool,
    /// The rest of the queue is abandoned.
    is_abandoned: bool,
}

impl AsFd for Target {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Stderr => rustix::stdio::stderr(),
            Self::File(file) => file.as_fd(),
        }
    }
}

impl LineQueue {
    /// An empty queue. Its thread starts with the first line.
    pub(crate) fn new(target: Target) -> Self {
        let (state, changed, emptied) = (Mutex::default(), Condvar::new(), Notify::new());
        Self { target, state, changed, emptied }
    }

    /// Appends a text to the queue. Never blocks.
    pub(crate) fn push(self: &Arc<Self>, text: &[u8], kind: Kind) {
        let mut state = self.lock();
        if !state.has_room(text.len(), kind) {
            state.lost += u64::from(kind == Kind::Log);
            return;
        }
        state.bytes += text.len();
        state.lines.push_back((kind, text.to_vec()));
        let has_thread = std::mem::replace(&mut state.has_thread, true);
        drop(state);
        if has_thread {
            self.changed.notify_all();
            return;
        }
        let queue = Arc::clone(self);
        if threads::spawn("log", move || queue.write_forever()).is_err() {
            // The next line tries again; at the end of the process, the lines are dropped.
            self.lock().has_thread = false;
        }
    }

    /// Waits for a limited time until everything is written.
    pub(crate) fn flush(&self) {
        let state = self.lock();
        if state.has_thread {
            let is_left = |state: &mut State| state.is_left() && !state.is_abandoned;
            // The rest is dropped.
            drop(self.changed.wait_timeout_while(state, FLUSH_MAX, is_left));
        } else if !state.is_abandoned {
            self.write_without_thread(state);
        }
    }

    /// Like [`Self::flush`], for async code.
    pub(crate) async fn flushed(&self) {
        if !self.lock().has_thread {
            return self.flush();
        }
        let emptied = async {
            while self.lock().is_left() {
                self.emptied.notified().await;
            }
        };
        // The rest is dropped.
        timeout(FLUSH_MAX, emptied).await.ok();
    }

    /// Ends every wait: the rest is dropped unless it is written before the process ends.
    pub(crate) fn abandon(&self) {
        self.lock().is_abandoned = true;
        self.changed.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    fn write_forever(&self) {
        loop {
            let is_empty = |state: &mut State| state.lines.is_empty();
            let state = self.changed.wait_while(self.lock(), is_empty);
            let mut state = state.unwrap_or_else(PoisonError::into_inner);
            state.is_writing = true;
            let batch = state.take();
            drop(state);
            // If this output can't be written, there is no other place to report it.
            files::write_all(&self.target, &batch).ok();
            let mut state = self.lock();
            state.is_writing = false;
            let is_left = state.is_left();
            drop(state);
            self.changed.notify_all();
            if !is_left {
                self.emptied.notify_one();
            }
        }
    }

    fn write_without_thread(&self, mut state: MutexGuard<'_, State>) {
        let batch = state.take();
        drop(state);
        // The rest is dropped.
        files::write_until(&self.target, &batch, Instant::now() + FLUSH_MAX).ok();
    }
}

impl State {
    fn has_room(&self, bytes: usize, kind: Kind) -> bool {
        match kind {
            Kind::Message => true,
            Kind::Picture => self.lines.is_empty(),
            Kind::Log => {
                self.lines.is_empty()
                    || self.lines.len() < LINES_MAX && self.bytes + bytes <= BYTES_MAX
            }
        }
    }

    fn is_left(&self) -> bool {
        self.is_writing || !self.lines.is_empty()
    }

    /// Takes everything queued, and the number of dropped lines.
    fn take(&mut self) -> Vec<u8> {
        self.bytes = 0;
        let lines = std::mem::take(&mut self.lines).into_iter();
        // Output is being written in the row of the picture, which would get a row of its own; another one follows.
        let is_late = |kind: Kind| kind == Kind::Picture && terminal::row_has_text();
        let lines = lines.filter(|(kind, _)| !is_late(*kind)).map(|(_, text)| text);
        let mut batch = lines.flat_map(terminal::beside_output).collect::<Vec<_>>();
        let lost = std::mem::take(&mut self.lost);
        if lost > 0 {
            let note = format!("{lost} more lines were lost: the log was not read in time\n");
            batch.extend_from_slice(note.as_bytes());
        }
        batch
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::thread;

    /// More than the capacity of a pipe.
    const LINE_BYTES: usize = 1024;

    fn pipe() -> (File, Arc<LineQueue>) {
        let (reader, writer) = rustix::pipe::pipe().expect("a pipe");
        (reader.into(), Arc::new(LineQueue::new(Target::File(writer.into()))))
    }

    fn log(queue: &Arc<LineQueue>, lines: usize, bytes: usize) {
        let line = format!("{}\n", "x".repeat(bytes - 1));
        (0..lines).for_each(|_| queue.push(line.as_bytes(), Kind::Log));
    }

    /// Until the thread writes a long line, there is no room for another one.
    fn wait_until_writing(queue: &LineQueue) {
        while !queue.lock().is_writing {
            thread::yield_now();
        }
    }

    /// Reads until this many lines were counted as read or dropped.
    fn read(mut reader: File, lines: usize) -> (usize, usize) {
        let (mut text, mut piece) = (String::new(), [0; 4096]);
        loop {
            let (notes, kept): (Vec<_>, Vec<_>) = text.lines().partition(|line| {
                line.ends_with("more lines were lost: the log was not read in time")
            });
            let lost =
                notes.iter().filter_map(|note| note.split(' ').next()?.parse::<usize>().ok());
            let lost: usize = lost.sum();
            if text.ends_with('\n') && kept.len() + lost == lines {
                return (kept.len(), lost);
            }
            let bytes = reader.read(&mut piece).expect("a pipe");
            text += std::str::from_utf8(&piece[..bytes]).expect("UTF-8");
        }
    }

    #[test]
    fn lines_that_are_not_read_are_limited_in_number_and_counted() {
        let (reader, queue) = pipe();
        // Fills the pipe, so that the thread blocks in a write.
        log(&queue, 1, 4 * BYTES_MAX);
        wait_until_writing(&queue);
        log(&queue, LINES_MAX * 3, 5);
        let (kept, lost) = read(reader, LINES_MAX * 3 + 1);
        assert!((LINES_MAX..=LINES_MAX * 2 + 1).contains(&kept), "{kept}");
        assert!(lost > 0);
    }

    #[test]
    fn lines_that_are_not_read_are_limited_in_bytes_and_counted() {
        let (reader, queue) = pipe();
        let lines = 8 * BYTES_MAX / LINE_BYTES / 10;
        log(&queue, lines, 10 * LINE_BYTES);
        let waiting = queue.lock().bytes;
        assert!(waiting <= BYTES_MAX, "{waiting}");
        let (kept, lost) = read(reader, lines);
        assert!(lost > 0 && kept < LINES_MAX, "{kept} {lost}");
    }

    #[test]
    fn a_message_is_kept_where_a_line_of_the_log_is_lost() {
        let (mut reader, queue) = pipe();
        log(&queue, 1, 4 * BYTES_MAX);
        wait_until_writing(&queue);
        log(&queue, 1, 4 * BYTES_MAX);
        log(&queue, 1, 5);
        queue.push(b"the message\n", Kind::Message);
        let reading = thread::spawn(move || {
            let mut text = vec![0; 2 * 4 * BYTES_MAX + 12];
            reader.read_exact(&mut text).map(|()| text.ends_with(b"the message\n"))
        });
        assert!(reading.join().expect("no panic").expect("a pipe"));
    }

    #[tokio::test]
    async fn the_end_waits_for_a_limited_time() {
        let (_unread, queue) = pipe();
        log(&queue, 1, 4 * BYTES_MAX);
        queue.flushed().await;
        queue.flush();
        queue.abandon();
        queue.flush();
    }
}
