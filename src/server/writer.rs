//! The thread that writes standard output. It holds one batch of lines at a time; what comes
//! meanwhile waits in the outbox, where patches can merge.

use super::stdio::write_all;
use crate::fault::Tripwire;
use std::fs::File;
use std::io;
use std::sync::mpsc as blocking;
use std::thread;
use tokio::sync::mpsc;

/// Size up to which a buffer is used again.
const BUFFER_KEPT_BYTES_MAX: usize = 256 * 1024;

/// The loop's end of the thread.
#[derive(Debug)]
pub(super) struct Writer {
    batches: blocking::SyncSender<Vec<u8>>,
    written: mpsc::Receiver<io::Result<Vec<u8>>>,
    state: State,
}

#[derive(Debug)]
enum State {
    /// Ready for a batch, with the last one's buffer.
    Idle(Vec<u8>),
    Busy,
    /// Writing failed, which is still to be told.
    Failed(io::Error),
    /// Writing failed, which was told: nothing more can be written.
    Broken,
}

impl Writer {
    /// Begins to write to `output`.
    pub(super) fn spawn(output: File, fault: Tripwire) -> io::Result<Self> {
        let (batches, to_write) = blocking::sync_channel(1);
        let (tell, written) = mpsc::channel(1);
        let write = move || write(&output, fault, &to_write, &tell);
        thread::Builder::new().name("stdout".to_owned()).spawn(write)?;
        Ok(Self { batches, written, state: State::Idle(Vec::new()) })
    }

    /// The buffer for the next batch, if there can be one now.
    pub(super) fn ready(&mut self) -> Option<Vec<u8>> {
        // Looked at without waiting, so that a loop with much to do does not think the thread slow.
        if let Ok(written) = self.written.try_recv() {
            self.state = State::from(written);
        }
        match &mut self.state {
            State::Idle(buffer) => Some(std::mem::take(buffer)),
            State::Busy | State::Failed(_) | State::Broken => None,
        }
    }

    /// Hands over a batch. Only after `ready`.
    pub(super) fn write(&mut self, batch: Vec<u8>) {
        // A thread that has ended says so when it is asked what it has written.
        drop(self.batches.try_send(batch));
        self.state = State::Busy;
    }

    /// Waits until the batch is written, or can't be.
    pub(super) async fn written(&mut self) -> io::Result<()> {
        if let State::Busy = self.state {
            let ended = || Err(io::Error::other("the thread that writes has ended"));
            self.state = State::from(self.written.recv().await.unwrap_or_else(ended));
        }
        match std::mem::replace(&mut self.state, State::Broken) {
            State::Failed(error) => Err(error),
            state @ (State::Idle(_) | State::Busy | State::Broken) => {
                self.state = state;
                Ok(())
            }
        }
    }

    /// There is something to wait for.
    pub(super) fn is_busy(&self) -> bool {
        matches!(self.state, State::Busy | State::Failed(_))
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

fn write(
    output: &File,
    mut fault: Tripwire,
    to_write: &blocking::Receiver<Vec<u8>>,
    tell: &mpsc::Sender<io::Result<Vec<u8>>>,
) {
    while let Ok(batch) = to_write.recv() {
        let written = match fault.is_tripped() {
            true => Err(io::Error::other("planted fault")),
            false => write_all(output, &batch),
        };
        let is_over = written.is_err();
        if tell.blocking_send(written.map(|()| batch)).is_err() || is_over {
            return;
        }
    }
}
