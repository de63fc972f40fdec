//! A copy of the frames in a file, as they are made: before a slow reader makes patches merge.

use crate::json;
use crate::wire::Frame;
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Lines that wait before they are written together.
const LINES_MAX: usize = 100;

/// Time a line waits before it is written.
const WAIT_MAX: Duration = Duration::from_millis(50);

/// Lines on their way to the thread. Past that the session waits for the disk.
const LINES_AHEAD_MAX: usize = 1024;

/// A file that frames are copied to. Dropped, it is flushed.
#[derive(Debug)]
pub struct DebugFile {
    lines: Option<mpsc::SyncSender<Vec<u8>>>,
    thread: Option<JoinHandle<()>>,
}

impl DebugFile {
    /// Creates or truncates the file at `path`, and the folders it is in.
    pub fn create(path: &Path) -> io::Result<Self> {
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)?;
        }
        let file = File::create(path)?;
        let (lines, to_write) = mpsc::sync_channel(LINES_AHEAD_MAX);
        let write = move || {
            if let Err(error) = write(file, &to_write) {
                tracing::warn!(%error, "the debug file is no longer written");
            }
        };
        let thread = thread::Builder::new().name("debug-file".to_owned()).spawn(write)?;
        Ok(Self { lines: Some(lines), thread: Some(thread) })
    }

    /// Copies a frame.
    pub fn record(&self, frame: &Frame) {
        let mut line = Vec::new();
        // What can't be encoded is told where it matters, on standard output.
        if json::write_line(frame, &mut line).is_ok()
            && let Some(lines) = &self.lines
        {
            // The thread has ended only if the file failed, which it has told.
            drop(lines.send(line));
        }
    }
}

impl Drop for DebugFile {
    fn drop(&mut self) {
        self.lines = None;
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
    }
}

fn write(mut file: File, lines: &mpsc::Receiver<Vec<u8>>) -> io::Result<()> {
    // The first line of a batch is waited for as long as it takes, the others until its time is up.
    while let Ok(mut batch) = lines.recv() {
        let deadline = Instant::now() + WAIT_MAX;
        for _ in 1..LINES_MAX {
            match lines.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(line) => batch.extend(line),
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => break,
            }
        }
        file.write_all(&batch)?;
    }
    Ok(())
}
