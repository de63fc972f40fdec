//! A copy of the frames in a file, as they are made: before patches are coalesced for a slow reader. The
//! conversation never waits for it: a file that can't keep up loses lines, and a warning says how many.

use crate::protocol::constants::extension_of;
use crate::protocol::proto::rpc::rpc_line::Frame as Body;
use crate::protocol::wire::Frame;
use crate::support::files::{self, write_all};
use crate::support::threads;
use anyhow::{Context, Result};
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fs::{File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};
use tokio::sync::oneshot;
use tokio::time::timeout;

/// Lines that wait before they are written together.
const LINES_MAX: usize = 100;

/// Time a line waits before it is written.
const WAIT_MAX: Duration = Duration::from_millis(50);

/// Bytes that are written together, unless one line has more.
const BATCH_BYTES_MAX: usize = 1024 * 1024;

/// Bytes queued for the file, besides the largest frames. More are lost.
const WAITING_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Frames as large as the largest one so far that may wait besides. The end of a long answer comes
/// as several frames that hold all of it, one right after the other; no file is so fast that the
/// first is written before the next one is made.
const WAITING_LARGE_FRAMES_MAX: usize = 4;

/// How long the end of the process waits for the last lines to be written.
const FLUSH_MAX: Duration = Duration::from_secs(5);

/// Appends the line of a frame; false if the frame has none.
pub(crate) type ToLine = fn(&Frame, &mut Vec<u8>) -> bool;

/// A file that frames are copied to.
#[derive(Debug)]
pub(crate) struct DebugFile {
    /// The name of the option, from which the files of later conversations get theirs.
    named: PathBuf,
    to_line: ToLine,
    lines: Option<mpsc::Sender<Vec<u8>>>,
    /// The file with its old content, until that is removed, and the lines that wait for it.
    held: Option<QueuedLines>,
    /// Ends when the thread has written everything.
    written: oneshot::Receiver<()>,
    waiting_bytes: Arc<AtomicUsize>,
    waiting_bytes_max: usize,
    /// Names of extensions that only the front end has turned on.
    hidden: BTreeSet<&'static str>,
    /// Size of the largest frame so far.
    largest_bytes: usize,
    lost_lines: u64,
}

/// A file that still has the content of an earlier process.
#[derive(Debug)]
struct QueuedLines {
    file: Arc<File>,
    lines: Vec<Vec<u8>>,
}

impl DebugFile {
    /// Opens or creates the file at `path`, and the folders that it is in, for the lines that `to_line`
    /// makes of frames. Its content stays until [`Self::begin`].
    ///
    /// # Errors
    /// If the file can't be written, or the system has no thread for it.
    pub(crate) fn open(path: &Path, to_line: ToLine) -> Result<Self> {
        files::make_folders_of(path)?;
        let file = files::open(path, OpenOptions::new().write(true))?;
        Self::writing(file, path.to_owned(), to_line)
    }

    fn writing(file: File, named: PathBuf, to_line: ToLine) -> Result<Self> {
        let file = Arc::new(file);
        let (lines, to_write) = mpsc::channel();
        let (is_written, written) = oneshot::channel::<()>();
        let waiting_bytes = Arc::new(AtomicUsize::new(0));
        let waiting = Arc::clone(&waiting_bytes);
        let written_file = Arc::clone(&file);
        let write = move || {
            if let Err(error) = write(&written_file, &to_write, &waiting) {
                tracing::warn!(%error, "the debug file is no longer written");
            }
            drop(is_written);
        };
        threads::spawn("debug-file", write)?;
        Ok(Self {
            named,
            to_line,
            lines: Some(lines),
            held: Some(QueuedLines { file, lines: Vec::new() }),
            written,
            waiting_bytes,
            waiting_bytes_max: WAITING_BYTES_MAX,
            hidden: BTreeSet::new(),
            largest_bytes: 0,
            lost_lines: 0,
        })
    }

    /// Leaves out what the extensions `names` add to the protocol: who reads the file need
    /// not know them.
    pub(crate) fn hiding(mut self, names: impl IntoIterator<Item = &'static str>) -> Self {
        self.hidden.extend(names);
        self
    }

    /// A file for the next conversation of the same process, and its path: a client reads one
    /// conversation in a file. Its name has the first number that no file has. `None` if what was named is
    /// no file, such as a pipe, which takes one conversation after the other.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub(crate) fn another(&self) -> Result<Option<(Self, PathBuf)>> {
        // Names such as /dev/fd/3 are of open files, which have no neighbours.
        let is_open_file = ["/dev", "/proc"].iter().any(|folder| self.named.starts_with(folder));
        if is_open_file || !self.named.is_file() {
            return Ok(None);
        }
        let mut taken = 1_u32;
        loop {
            taken += 1;
            let path = numbered(&self.named, taken);
            if path.symlink_metadata().is_ok() {
                continue;
            }
            let file = match files::open(&path, OpenOptions::new().write(true).create_new(true)) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                opened => opened.with_context(|| path.display().to_string())?,
            };
            let mut another = Self::writing(file, self.named.clone(), self.to_line)?;
            another.hidden.clone_from(&self.hidden);
            return Ok(Some((another, path)));
        }
    }

    /// Empties the file and writes the frames so far. A process that runs nothing never gets here, so
    /// the record of an earlier process is replaced only by another record of a run.
    pub(crate) fn begin(&mut self) {
        let Some(QueuedLines { file, lines }) = self.held.take() else { return };
        if let Err(error) = empty(&file) {
            tracing::warn!(%error, "the debug file can't be emptied, so it is not written");
            self.lines = None;
        }
        lines.into_iter().for_each(|line| self.write(line));
    }

    /// Copies a frame.
    pub(crate) fn record(&mut self, frame: &Frame) {
        let Some(frame) = self.shown(frame) else { return };
        let mut line = Vec::new();
        // Standard output reports a frame that can't be encoded.
        if !(self.to_line)(&frame, &mut line) {
            return;
        }
        match &mut self.held {
            Some(held) => held.lines.push(line),
            None => self.write(line),
        }
    }

    /// The frame without the hidden extensions; `None` if nothing is left.
    fn shown<'f>(&self, frame: &'f Frame) -> Option<Cow<'f, Frame>> {
        let payload = match &frame.frame {
            Some(Body::Hello(hello)) => {
                let is_hidden = |word: &String| self.hidden.contains(&**word);
                if !hello.capabilities.iter().any(is_hidden) {
                    return Some(Cow::Borrowed(frame));
                }
                let mut hello = hello.clone();
                hello.capabilities.retain(|word| !is_hidden(word));
                let body = Some(Body::Hello(hello));
                return Some(Cow::Owned(Frame { frame: body, ..frame.clone() }));
            }
            Some(Body::UiEvent(event)) => event.payload.as_ref(),
            Some(Body::BackendEvent(event)) => event.payload.as_ref(),
            Some(Body::Snapshot(_) | Body::Error(_) | Body::Done(_)) | None => None,
        };
        let extension = payload.and_then(|payload| payload.full_name()).and_then(extension_of);
        let is_hidden = extension.is_some_and(|extension| self.hidden.contains(extension));
        (!is_hidden).then_some(Cow::Borrowed(frame))
    }

    fn write(&mut self, line: Vec<u8>) {
        let Some(lines) = &self.lines else { return };
        let bytes = line.len();
        self.largest_bytes = self.largest_bytes.max(bytes);
        let bytes_max = self.waiting_bytes_max + WAITING_LARGE_FRAMES_MAX * self.largest_bytes;
        if self.waiting_bytes.fetch_add(bytes, Ordering::Relaxed) + bytes > bytes_max {
            self.waiting_bytes.fetch_sub(bytes, Ordering::Relaxed);
            self.lost_lines += 1;
        } else if lines.send(line).is_err() {
            // The thread has ended because the file failed, and has logged that.
            self.lines = None;
        }
    }

    /// Waits until the last lines are written, but not for long.
    pub(crate) async fn finish(mut self) {
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

/// `events-2.jsonl` for `events.jsonl`.
fn numbered(path: &Path, number: u32) -> PathBuf {
    let mut name = path.file_stem().unwrap_or_default().to_owned();
    name.push(format!("-{number}"));
    if let Some(extension) = path.extension() {
        name.push(".");
        name.push(extension);
    }
    path.with_file_name(name)
}

/// Empties a regular file; a pipe or a device has nothing to remove.
fn empty(file: &File) -> io::Result<()> {
    if file.metadata()?.is_file() { file.set_len(0) } else { Ok(()) }
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
            if batch.len() >= BATCH_BYTES_MAX {
                break;
            }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::id::SessionId;
    use crate::protocol::wire;
    use rustix::fs::{CWD, FileType, Mode, OFlags, mknodat, open};
    use std::io::{Read, Write};

    const LARGE_BYTES: usize = 256 * 1024;

    /// A frame of at least so many bytes.
    fn frame(bytes: usize) -> Frame {
        let session = SessionId::new("s").expect("an id");
        wire::frame(&session, None, wire::hello(vec!["x".repeat(bytes)]))
    }

    fn to_line(frame: &Frame, line: &mut Vec<u8>) -> bool {
        writeln!(line, "{frame:?}").is_ok()
    }

    /// Several large frames may wait, and small ones after them; what is too much is lost, whole.
    #[tokio::test]
    async fn what_a_file_does_not_take_waits_up_to_a_limit_that_grows_with_the_frames() {
        let path = std::env::temp_dir().join(format!("duologue-{}", uuid::Uuid::new_v4()));
        mknodat(CWD, &path, FileType::Fifo, Mode::RWXU, 0).expect("a named pipe");
        let flags = OFlags::RDONLY | OFlags::NONBLOCK;
        let reader = open(&path, flags, Mode::empty()).expect("a named pipe");
        let mut file = DebugFile::open(&path, to_line).expect("a reader");
        assert!(file.another().expect("no file is opened").is_none(), "there is one pipe");
        file.begin();
        std::fs::remove_file(&path).expect("the named pipe");
        file.waiting_bytes_max = LARGE_BYTES / 2;
        for bytes in [LARGE_BYTES; WAITING_LARGE_FRAMES_MAX].into_iter().chain([10, 10]) {
            file.record(&frame(bytes));
        }
        assert_eq!(file.lost_lines, 0);
        let mut frames = WAITING_LARGE_FRAMES_MAX + 2;
        while file.lost_lines == 0 {
            file.record(&frame(LARGE_BYTES));
            frames += 1;
        }
        assert!(frames <= WAITING_LARGE_FRAMES_MAX + 5, "{frames}");
        rustix::fs::fcntl_setfl(&reader, OFlags::empty()).expect("a named pipe");
        let reading = std::thread::spawn(move || {
            let mut text = String::new();
            File::from(reader).read_to_string(&mut text).map(|_| text.lines().count())
        });
        file.finish().await;
        let read = reading.join().expect("no panic").expect("UTF-8");
        assert_eq!(read, frames - 1);
    }

    #[test]
    fn numbers_stand_before_the_extension() {
        for (named, expected) in [("a/events.jsonl", "a/events-2.jsonl"), ("events", "events-2")] {
            assert_eq!(numbered(Path::new(named), 2), Path::new(expected));
        }
    }
}
