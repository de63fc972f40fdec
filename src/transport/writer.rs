//! Writes standard output. What the pipe has room for is written at once; what it has not goes to a
//! thread, which holds one batch of lines at a time and may wait for the reader. What comes
//! meanwhile is queued in the outbox, where patches can be coalesced.

use super::streams::AtOnce;
use crate::support::fail_point::FailPoint;
use crate::support::files::{write_at_once, write_lines};
use crate::support::terminal;
use crate::support::threads::{self, NoThread};
use std::fs::File;
use std::io::{self, IsTerminal};
use std::sync::Arc;
use std::sync::mpsc as blocking;
use std::time::{Duration, Instant};
use tokio::sync::mpsc;
use tokio::time::sleep;

/// A reader that takes this long for one batch is slow.
const SLOW_AFTER: Duration = Duration::from_millis(20);

/// Interval of polling the output for room, where there is no thread to wait for it.
const ROOM_POLL_INTERVAL: Duration = Duration::from_millis(1);

/// Size up to which a buffer is used again.
const BUFFER_KEPT_BYTES_MAX: usize = 256 * 1024;

/// Writes batches of lines; belongs to the loop.
#[derive(Debug)]
pub(super) struct Writer {
    output: Arc<File>,
    is_terminal: bool,
    at_once: AtOnce,
    /// Started when it is first needed.
    thread: Option<Thread>,
    state: State,
    fault: FailPoint,
}

#[derive(Debug)]
struct Thread {
    batches: blocking::SyncSender<Vec<u8>>,
    written: mpsc::Receiver<io::Result<Vec<u8>>>,
}

#[derive(Debug)]
enum State {
    /// Ready for a batch, with the last one's buffer.
    Idle(Vec<u8>),
    /// The thread writes, from this moment on.
    Busy(Instant),
    /// The system has no thread: the loop writes, whenever there is room.
    Threadless(Threadless),
    /// Writing failed, and [`Writer::written`] has not returned the error yet.
    Failed(io::Error),
    /// Writing failed, and the error was returned: nothing more can be written.
    Broken,
}

/// A batch that is written from this moment on, so far in part.
#[derive(Debug)]
struct Threadless {
    batch: Vec<u8>,
    written_bytes: usize,
    since: Instant,
}

impl Writer {
    /// Writes to `output`.
    pub(super) fn new(output: Arc<File>, fault: FailPoint) -> Self {
        let (at_once, is_terminal) = (AtOnce::of(&output), output.is_terminal());
        let state = State::Idle(Vec::new());
        Self { output, is_terminal, at_once, thread: None, state, fault }
    }

    /// The buffer for the next batch, if there can be one now.
    pub(super) fn ready(&mut self) -> Option<Vec<u8>> {
        // Checked without waiting, so that a busy loop does not take the thread for slow.
        if let State::Busy(_) = self.state
            && let Some(thread) = &mut self.thread
            && let Ok(written) = thread.written.try_recv()
        {
            self.state = State::from(written);
        }
        match &mut self.state {
            State::Idle(buffer) => Some(std::mem::take(buffer)),
            State::Busy(_) | State::Threadless(_) | State::Failed(_) | State::Broken => None,
        }
    }

    /// Writes a batch, or has it written. Only after `ready`.
    pub(super) fn write(&mut self, mut batch: Vec<u8>) {
        if self.fault.is_tripped() {
            self.state = State::Failed(io::Error::other("planted fault"));
            return;
        }
        // What is in the row before such a batch is cleared by it, and by a warning that comes first.
        let has_own_rows = terminal::has_own_rows(&batch);
        if self.is_terminal && !has_own_rows {
            terminal::output_begins(&batch);
        }
        // Writing costs less than waking a thread for it.
        let written = self.at_once.write(&self.output, &batch);
        if self.is_terminal && written == batch.len() {
            terminal::output_ends(&batch);
        }
        batch.drain(..written);
        if self.is_terminal && has_own_rows && written > 0 {
            // The rest is in the middle of a row.
            terminal::output_begins(&batch);
        }
        if batch.is_empty() {
            self.state = State::Idle(batch);
            return;
        }
        self.state = self.hand_over(batch);
    }

    /// Waits until the batch is written, or can't be.
    pub(super) async fn written(&mut self) -> io::Result<()> {
        if let (State::Busy(_), Some(thread)) = (&self.state, &mut self.thread) {
            let ended = || Err(io::Error::other("the thread that writes has ended"));
            self.state = State::from(thread.written.recv().await.unwrap_or_else(ended));
        }
        while let State::Threadless(threadless) = &mut self.state {
            match threadless.write(&self.output) {
                Ok(0) => sleep(ROOM_POLL_INTERVAL).await,
                Ok(_) if threadless.is_written() => {
                    self.state = State::from(Ok(std::mem::take(&mut threadless.batch)));
                }
                Ok(_) => {}
                Err(error) => self.state = State::Failed(error),
            }
        }
        match std::mem::replace(&mut self.state, State::Broken) {
            State::Failed(error) => Err(error),
            state @ (State::Idle(_) | State::Busy(_) | State::Threadless(_) | State::Broken) => {
                self.state = state;
                Ok(())
            }
        }
    }

    /// There is something to wait for.
    pub(super) fn is_busy(&self) -> bool {
        matches!(self.state, State::Busy(_) | State::Threadless(_) | State::Failed(_))
    }

    /// When the batch that is under way will have taken so long that the reader is slow.
    pub(super) fn slow_at(&self) -> Option<Instant> {
        match self.state {
            State::Busy(since) | State::Threadless(Threadless { since, .. }) => {
                Some(since + SLOW_AFTER)
            }
            State::Idle(_) | State::Failed(_) | State::Broken => None,
        }
    }

    fn hand_over(&mut self, batch: Vec<u8>) -> State {
        let since = Instant::now();
        if self.thread.is_none() {
            self.thread = Thread::spawn(Arc::clone(&self.output), self.is_terminal).ok();
        }
        let Some(thread) = &mut self.thread else {
            return State::Threadless(Threadless { batch, written_bytes: 0, since });
        };
        // If the thread has ended, `written` returns an error.
        drop(thread.batches.try_send(batch));
        State::Busy(since)
    }
}

impl Threadless {
    /// Writes as much as there is room for; returns the number of bytes.
    fn write(&mut self, output: &File) -> io::Result<usize> {
        let written = write_at_once(output, &self.batch[self.written_bytes..])?;
        self.written_bytes += written;
        Ok(written)
    }

    fn is_written(&self) -> bool {
        self.written_bytes == self.batch.len()
    }
}

impl From<io::Result<Vec<u8>>> for State {
    fn from(written: io::Result<Vec<u8>>) -> Self {
        match written {
            Ok(buffer) => Self::Idle(modest(buffer)),
            Err(error) => Self::Failed(error),
        }
    }
}

/// The buffer to use again, unless one large batch has made it large.
fn modest(buffer: Vec<u8>) -> Vec<u8> {
    if buffer.capacity() <= BUFFER_KEPT_BYTES_MAX { buffer } else { Vec::new() }
}

impl Thread {
    fn spawn(output: Arc<File>, is_terminal: bool) -> Result<Self, NoThread> {
        let (batches, to_write) = blocking::sync_channel(1);
        let (results, written) = mpsc::channel(1);
        let write = move || write((&output, is_terminal), &to_write, &results);
        threads::spawn("stdout", write)?;
        Ok(Self { batches, written })
    }
}

fn write(
    (output, is_terminal): (&File, bool),
    to_write: &blocking::Receiver<Vec<u8>>,
    results: &mpsc::Sender<io::Result<Vec<u8>>>,
) {
    while let Ok(batch) = to_write.recv() {
        let written = write_lines(output, &batch);
        if is_terminal && written.is_ok() {
            terminal::output_ends(&batch);
        }
        let is_over = written.is_err();
        if results.blocking_send(written.map(|()| batch)).is_err() || is_over {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{OFlags, fcntl_setfl};
    use rustix::net::sockopt::set_socket_send_buffer_size;
    use std::io::Read;
    use std::os::fd::OwnedFd;
    use std::os::unix::net::UnixStream;
    use std::thread;

    /// Sizes of batches: most are written at once if there is room.
    const SIZES: [usize; 7] = [1, 4096, 300, 4095, 20_000, 70, 4097];

    /// Writes batches of all sizes to a reader that is slower; all must arrive, in order.
    async fn check(output: impl Into<OwnedFd>, mut input: impl Read + Send + 'static) {
        let reading = thread::spawn(move || {
            let (mut all, mut piece) = (Vec::new(), [0; 777]);
            while let Ok(bytes @ 1..) = input.read(&mut piece) {
                all.extend_from_slice(&piece[..bytes]);
                thread::yield_now();
            }
            all
        });
        let mut writer = Writer::new(Arc::new(File::from(output.into())), FailPoint::default());
        let mut expected = Vec::new();
        for (number, size) in SIZES.iter().cycle().take(700).enumerate() {
            while writer.is_busy() {
                writer.written().await.expect("somebody reads");
            }
            let mut batch = writer.ready().expect("nothing is being written");
            batch.clear();
            batch.resize(*size, b'a' + (number % 26) as u8);
            expected.extend_from_slice(&batch);
            writer.write(batch);
        }
        while writer.is_busy() {
            writer.written().await.expect("somebody reads");
        }
        drop(writer);
        assert!(reading.join().expect("no panic") == expected);
    }

    fn without_waiting(output: &OwnedFd) {
        fcntl_setfl(output, OFlags::NONBLOCK).expect("a flag");
    }

    #[tokio::test]
    async fn all_arrives_in_order_through_a_pipe() {
        let (input, output) = rustix::pipe::pipe().expect("a pipe");
        check(output, File::from(input)).await;
        let (input, output) = rustix::pipe::pipe().expect("a pipe");
        without_waiting(&output);
        check(output, File::from(input)).await;
    }

    #[tokio::test]
    async fn all_arrives_in_order_through_a_socket() {
        let (input, output) = UnixStream::pair().expect("sockets");
        check(output, input).await;
        let (input, output) = UnixStream::pair().expect("sockets");
        set_socket_send_buffer_size(&output, 1).expect("the smallest size");
        let output = OwnedFd::from(output);
        without_waiting(&output);
        check(output, input).await;
    }

    /// The loop is never held up, however little the socket takes.
    #[tokio::test]
    async fn a_small_socket_that_nobody_reads_holds_up_nothing() {
        let (_unread, output) = UnixStream::pair().expect("sockets");
        set_socket_send_buffer_size(&output, 1).expect("the smallest size");
        let output = Arc::new(File::from(OwnedFd::from(output)));
        let mut writer = Writer::new(output, FailPoint::default());
        for _ in 0..100 {
            if let Some(batch) = writer.ready() {
                writer.write([batch, vec![b'x'; 3000]].concat());
            }
        }
        assert!(writer.is_busy());
    }

    #[tokio::test]
    async fn a_reader_that_is_gone_is_reported_once() {
        let (input, output) = rustix::pipe::pipe().expect("a pipe");
        drop(input);
        let mut writer = Writer::new(Arc::new(File::from(output)), FailPoint::default());
        writer.ready().expect("nothing is being written");
        writer.write(b"line\n".to_vec());
        let error = writer.written().await.expect_err("nobody reads");
        assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
        assert!(!writer.is_busy() && writer.ready().is_none());
    }
}
