//! A copy of the frames in a file, as they are made: before a slow reader makes patches merge. The
//! conversation never waits for it: a file that falls too far behind loses lines, and says so.

use crate::files::{self, write_all};
use crate::json;
use crate::wire::Frame;
use std::fs::{File, OpenOptions};
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};
use tokio::sync::oneshot;
use tokio::time::timeout;

/// Lines that wait before they are written together.
const LINES_MAX: usize = 100;

/// Time a line waits before it is written.
const WAIT_MAX: Duration = Duration::from_millis(50);

/// Bytes that wait for the file. More are lost.
const WAITING_BYTES_MAX: usize = 64 * 1024 * 1024;

/// How long the end of the process waits for the last lines to be written.
const FLUSH_MAX: Duration = Duration::from_secs(5);

/// A file that frames are copied to.
#[derive(Debug)]
pub struct DebugFile {
    lines: Option<mpsc::Sender<Vec<u8>>>,
    /// Ends when the thread has written everything.
    written: oneshot::Receiver<()>,
    waiting_bytes: Arc<AtomicUsize>,
    lost_lines: u64,
}

impl DebugFile {
    /// Creates or truncates the file at `path`, and the folders it is in.
    pub fn create(path: &Path) -> io::Result<Self> {
        let file = files::open(path, OpenOptions::new().write(true).truncate(true))?;
        let (lines, to_write) = mpsc::channel();
        let (is_written, written) = oneshot::channel::<()>();
        let waiting_bytes = Arc::new(AtomicUsize::new(0));
        let waiting = Arc::clone(&waiting_bytes);
        let write = move || {
            if let Err(error) = write(&file, &to_write, &waiting) {
                tracing::warn!(%error, "the debug file is no longer written");
            }
            drop(is_written);
        };
        thread::Builder::new().name("debug-file".to_owned()).spawn(write)?;
        Ok(Self { lines: Some(lines), written, waiting_bytes, lost_lines: 0 })
    }

    /// Copies a frame.
    pub fn record(&mut self, frame: &Frame) {
        let Some(lines) = &self.lines else { return };
        let mut line = Vec::new();
        // What can't be encoded is told where it matters, on standard output.
        if json::write_line(frame, &mut line).is_err() {
            return;
        }
        let bytes = line.len();
        if self.waiting_bytes.fetch_add(bytes, Ordering::Relaxed) + bytes > WAITING_BYTES_MAX {
            self.waiting_bytes.fetch_sub(bytes, Ordering::Relaxed);
            self.lost_lines += 1;
        } else if lines.send(line).is_err() {
            // The thread has ended because the file failed, which it has told.
            self.lines = None;
        }
    }

    /// Waits until the last lines are written, but not for long.
    pub(super) async fn finish(mut self) {
        self.lines = None;
        if timeout(FLUSH_MAX, &mut self.written).await.is_err() {
            tracing::warn!("the debug file did not take its last lines in time");
        }
        if self.lost_lines > 0 {
            let lost_lines = self.lost_lines;
            tracing::warn!(lost_lines, "the debug file could not keep up");
        }
    }
}

fn write(
    file: &File,
    lines: &mpsc::Receiver<Vec<u8>>,
    waiting_bytes: &AtomicUsize,
) -> io::Result<()> {
    // The first line of a batch is waited for as long as it takes, the others until its time is up.
    while let Ok(mut batch) = lines.recv() {
        let deadline = Instant::now() + WAIT_MAX;
        for _ in 1..LINES_MAX {
            match lines.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(line) => batch.extend(line),
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => break,
            }
        }
        write_all(file, &batch)?;
        waiting_bytes.fetch_sub(batch.len(), Ordering::Relaxed);
    }
    Ok(())
}
