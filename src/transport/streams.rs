//! Standard input and output, made private: nothing but what the writer writes reaches the reader, and no
//! child process takes a request or keeps the pipe open.

use crate::support::files::whole_lines;
use crate::support::threads::{self, NoThread};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FileType, fstat};
use rustix::io::{Errno, fcntl_dupfd_cloexec};
#[cfg(target_os = "linux")]
use rustix::io::{ReadWriteFlags, preadv2, pwritev2};
use rustix::net::{SendFlags, send};
use rustix::pipe::{PIPE_BUF, PipeFlags, pipe_with};
use std::fs::File;
use std::future::pending;
use std::io::{self, Write};
#[cfg(target_os = "linux")]
use std::io::{IoSlice, IoSliceMut};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use tokio::io::Interest;
use tokio::net::unix::pipe;
use tokio::sync::oneshot;

/// Descriptors below this are the standard ones.
const FIRST_PRIVATE_FD: i32 = 3;

/// The two streams of the protocol.
#[derive(Debug)]
pub(crate) struct Stdio {
    /// Where requests come from.
    pub input: File,
    /// Where frames go.
    pub output: File,
}

impl Stdio {
    /// Takes standard input and output away from the rest of this process and from its children:
    /// after this, a read from standard input finds its end, and what is printed to standard output
    /// goes to standard error.
    ///
    /// # Errors
    /// If a descriptor can't be duplicated or opened.
    pub(crate) fn take() -> io::Result<Self> {
        let input = fcntl_dupfd_cloexec(rustix::stdio::stdin(), FIRST_PRIVATE_FD)?;
        let output = fcntl_dupfd_cloexec(rustix::stdio::stdout(), FIRST_PRIVATE_FD)?;
        rustix::stdio::dup2_stdin(nothing()?)?;
        rustix::stdio::dup2_stdout(rustix::stdio::stderr())?;
        Ok(Self { input: input.into(), output: output.into() })
    }
}

/// An input that is at its end.
fn nothing() -> io::Result<OwnedFd> {
    match File::open("/dev/null") {
        // As in an empty root, which a static program needs no more than.
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Ok(pipe_with(PipeFlags::CLOEXEC)?.0)
        }
        opened => Ok(opened?.into()),
    }
}

/// How bytes are written to an output without waiting.
#[derive(Clone, Copy, Debug)]
pub(super) enum AtOnce {
    /// As many lines as there is room for.
    Pipe,
    /// A few, where the system can't do that.
    PolledPipe,
    Socket,
    /// Any write may wait: a file may be on a slow disk, a terminal may be stopped.
    Never,
}

impl AtOnce {
    pub(super) fn of(output: &File) -> Self {
        match fstat(output).map(|stat| FileType::from_raw_mode(stat.st_mode)) {
            Ok(FileType::Fifo) => Self::Pipe,
            Ok(FileType::Socket) => Self::Socket,
            Ok(_) | Err(_) => Self::Never,
        }
    }

    /// Writes `bytes` as far as there is room, if that can be known; returns how many were written. An
    /// error counts as no room: the thread that writes the rest meets it again and reports it.
    pub(super) fn write(&mut self, mut output: &File, bytes: &[u8]) -> usize {
        match self {
            Self::Pipe => match write_lines_without_waiting(output, bytes) {
                Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL | Errno::PERM) => {
                    *self = Self::PolledPipe;
                    self.write(output, bytes)
                }
                written => written.unwrap_or(0),
            },
            Self::PolledPipe | Self::Socket | Self::Never if bytes.len() > PIPE_BUF => 0,
            // A pipe that polls as writable takes as much as it writes in one piece (POSIX, `write`).
            Self::PolledPipe if has_room(output) => output.write(bytes).unwrap_or(0),
            // A socket that polls as writable may have room for less.
            Self::Socket => {
                send(output, bytes, SendFlags::DONTWAIT | SendFlags::NOSIGNAL).unwrap_or(0)
            }
            Self::PolledPipe | Self::Never => 0,
        }
    }
}

/// Writes lines while there is room for them: each of up to `PIPE_BUF` bytes as a whole or not at all, as another
/// process may write into the same pipe before the rest is written. Whether one does can't be known, nor how much room
/// it leaves, so that a larger write, which may end anywhere, is made of a longer line alone.
///
/// # Errors
/// If nothing was written.
fn write_lines_without_waiting(pipe: &File, bytes: &[u8]) -> rustix::io::Result<usize> {
    let mut written = 0;
    while written < bytes.len() {
        let piece = lines_or_long_line(&bytes[written..]);
        match write_without_waiting(pipe, piece) {
            Ok(taken) => {
                written += taken;
                if taken < piece.len() {
                    break;
                }
            }
            Err(error) if written == 0 => return Err(error),
            Err(_) => break,
        }
    }
    Ok(written)
}

/// The beginning of `bytes` for one write: lines that a pipe takes as a whole, or a line that is too long for that.
fn lines_or_long_line(bytes: &[u8]) -> &[u8] {
    let lines = whole_lines(bytes);
    if lines.len() == bytes.len() || lines.ends_with(b"\n") {
        return lines;
    }
    let more = &bytes[lines.len()..];
    let end = more.iter().position(|byte| *byte == b'\n').map_or(more.len(), |at| at + 1);
    &bytes[..lines.len() + end]
}

/// `preadv2`, `pwritev2`: at the place where `read` and `write` would.
#[cfg(target_os = "linux")]
const CURRENT_POSITION: u64 = u64::MAX;

/// Writes what a pipe has room for (`RWF_NOWAIT`, for pipes since Linux 6.4).
#[cfg(target_os = "linux")]
fn write_without_waiting(pipe: &File, bytes: &[u8]) -> rustix::io::Result<usize> {
    pwritev2(pipe, &[IoSlice::new(bytes)], CURRENT_POSITION, ReadWriteFlags::NOWAIT)
}

#[cfg(not(target_os = "linux"))]
fn write_without_waiting(_pipe: &File, _bytes: &[u8]) -> rustix::io::Result<usize> {
    Err(Errno::NOSYS)
}

pub(super) fn is_pipe_or_socket(file: &File) -> bool {
    let kind = fstat(file).map(|stat| FileType::from_raw_mode(stat.st_mode));
    matches!(kind, Ok(FileType::Fifo | FileType::Socket))
}

/// Reads what a pipe or socket has now; `AGAIN` if that is nothing.
///
/// # Errors
/// Also if the system can't do that, as before Linux 6.4.
#[cfg(target_os = "linux")]
pub(super) fn read_without_waiting(input: impl AsFd, into: &mut [u8]) -> rustix::io::Result<usize> {
    preadv2(input, &mut [IoSliceMut::new(into)], CURRENT_POSITION, ReadWriteFlags::NOWAIT)
}

#[cfg(not(target_os = "linux"))]
pub(super) fn read_without_waiting(
    _input: impl AsFd,
    _into: &mut [u8],
) -> rustix::io::Result<usize> {
    Err(Errno::NOSYS)
}

/// Whether a read of `input` would not wait: there is something, or the end.
pub(super) fn can_be_read(input: impl AsFd) -> bool {
    let mut files = [PollFd::new(&input, PollFlags::IN)];
    poll(&mut files, Some(&Timespec::default())).is_ok_and(|ready| ready > 0)
}

/// Whether something can be written to `output` without waiting.
fn has_room(output: &File) -> bool {
    let mut files = [PollFd::new(output, PollFlags::OUT)];
    poll(&mut files, Some(&Timespec::default())).is_ok() && files[0].revents() == PollFlags::OUT
}

/// Waits until the reader of `output` has closed it; for ever if the system has no thread for that.
pub(crate) async fn reader_gone(output: &File) {
    let watched = output.try_clone().ok().and_then(|output| watch(Arc::new(output)).ok());
    if let Some(gone) = watched
        && gone.await.is_ok()
    {
        return;
    }
    pending().await
}

/// Resolves when the reader of `output` has closed it, even while nothing is being written. Needs a runtime.
///
/// # Errors
/// If it takes a thread, and the system has none.
pub(super) fn watch(output: Arc<File>) -> Result<oneshot::Receiver<()>, NoThread> {
    let (gone, is_gone) = oneshot::channel();
    if let Some(watched) = watched_by_runtime(&output) {
        tokio::spawn(async move {
            // An error is that of a runtime that ends.
            if watched.ready(Interest::ERROR).await.is_ok() {
                gone.send(()).ok();
            }
        });
        return Ok(is_gone);
    }
    let watch = move || {
        let mut files = [PollFd::new(&output, PollFlags::empty())];
        // Without events to wait for, poll returns when the other end is closed: ERR for pipes, HUP
        // for sockets and terminals.
        while let Err(Errno::INTR) = poll(&mut files, None) {}
        // If the loop has ended, the receiver is gone.
        gone.send(()).ok();
    };
    threads::spawn("stdout-watch", watch)?;
    Ok(is_gone)
}

/// A pipe whose errors the runtime reports: the only one is that its reader is gone.
fn watched_by_runtime(output: &File) -> Option<pipe::Sender> {
    // Sockets report a reader that is gone together with each room for more.
    let is_pipe = matches!(AtOnce::of(output), AtOnce::Pipe);
    let own = (cfg!(target_os = "linux") && is_pipe).then(|| output.try_clone())?.ok()?;
    pipe::Sender::from_file_unchecked(own).ok()
}

/// The reader of standard output, and whether it is still there.
pub(super) enum Reader {
    Watched(oneshot::Receiver<()>),
    /// Only a failed write shows that it is gone.
    Unwatched,
    Gone,
}

impl Reader {
    /// The reader of `output`; watched, unless the system has no thread for that.
    pub(super) fn of(output: Arc<File>) -> (Self, Option<NoThread>) {
        match watch(output) {
            Ok(gone) => (Self::Watched(gone), None),
            Err(error) => (Self::Unwatched, Some(error)),
        }
    }

    pub(super) fn is_gone(&self) -> bool {
        matches!(self, Self::Gone)
    }

    /// Waits until the reader is gone; reported once.
    pub(super) async fn gone(&mut self) {
        if let Self::Watched(watch) = self {
            let is_gone = watch.await.is_ok();
            *self = Self::Unwatched;
            if is_gone {
                return;
            }
        }
        pending().await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::pipe::pipe;
    use std::io::Read;

    fn lines(lengths: &[usize]) -> Vec<u8> {
        let line = |length: &usize| [vec![b'x'; length - 1], b"\n".to_vec()].concat();
        lengths.iter().flat_map(line).collect()
    }

    /// Another process that writes into the same pipe next must not write into a line.
    #[test]
    fn a_pipe_with_room_for_a_part_of_a_batch_gets_whole_lines() {
        for batch in [&[3000; 3][..], &[300; 60], &[PIPE_BUF, PIPE_BUF, 9]] {
            let (input, output) = pipe().expect("a pipe");
            let (mut input, output) = (File::from(input), File::from(output));
            let page = lines(&[PIPE_BUF]);
            while has_room(&output) {
                (&output).write_all(&page).expect("there is room");
            }
            input.read_exact(&mut vec![0; PIPE_BUF]).expect("data");
            let batch = lines(batch);
            let written = AtOnce::of(&output).write(&output, &batch);
            drop(output);
            let mut all = Vec::new();
            input.read_to_end(&mut all).expect("data");
            assert!(all.ends_with(b"\n") && all.ends_with(&batch[..written]));
            // Or nothing, on a system that can't tell how much there is room for.
            assert!(written < batch.len());
        }
    }

    #[test]
    fn one_write_is_of_lines_that_come_whole_or_of_one_that_is_longer() {
        let check = |batch: &[usize], expected: &[usize]| {
            let bytes = lines(batch);
            let (mut rest, mut pieces) = (&bytes[..], Vec::new());
            while !rest.is_empty() {
                let piece = lines_or_long_line(rest).len();
                pieces.push(piece);
                rest = &rest[piece..];
            }
            assert_eq!(pieces, expected, "{batch:?}");
        };
        let most = PIPE_BUF;
        check(&[10, 20], &[30]);
        check(&[most / 2; 3], &[most / 2 * 2, most / 2]);
        check(&[most, 1], &[most, 1]);
        check(&[10, 9 * most, 10, 20], &[10, 9 * most, 30]);
        check(&[most + 1, most], &[most + 1, most]);
        // Text without an end of a line.
        let text = vec![b'x'; 3 * most];
        assert_eq!(lines_or_long_line(&text).len(), text.len());
    }
}
