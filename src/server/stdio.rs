//! Standard input and output, made private: nothing but frames ever reaches the reader, and no
//! child process takes a request or keeps the pipe open.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FileType, fstat};
use rustix::io::fcntl_dupfd_cloexec;
use std::fs::File;
use std::io;
use std::thread;
use tokio::sync::oneshot;

/// Descriptors below this are the standard ones.
const FIRST_PRIVATE_FD: i32 = 3;

/// The two ends of the protocol.
#[derive(Debug)]
pub struct Stdio {
    /// Where requests come from.
    pub input: File,
    /// Where frames go.
    pub output: File,
}

impl Stdio {
    /// Takes standard input and output away from everyone else in this process and its children:
    /// who reads from standard input after this finds its end, and what is printed to standard
    /// output goes to standard error.
    pub fn take() -> io::Result<Self> {
        let input = fcntl_dupfd_cloexec(rustix::stdio::stdin(), FIRST_PRIVATE_FD)?;
        let output = fcntl_dupfd_cloexec(rustix::stdio::stdout(), FIRST_PRIVATE_FD)?;
        let nothing = File::open("/dev/null")?;
        rustix::stdio::dup2_stdin(nothing)?;
        rustix::stdio::dup2_stdout(rustix::stdio::stderr())?;
        Ok(Self { input: input.into(), output: output.into() })
    }
}

/// The largest write to `output` that never waits where there is room at all: 0 if that is not
/// known. A pipe that polls as writable takes as much as it writes in one piece (POSIX, `write`),
/// and a local socket more.
pub(super) fn never_blocks_for(output: &File) -> usize {
    const PIPE_BUF: usize = 4096;
    match fstat(output).map(|stat| FileType::from_raw_mode(stat.st_mode)) {
        Ok(FileType::Fifo | FileType::Socket) => PIPE_BUF,
        Ok(_) | Err(_) => 0,
    }
}

/// Whether a read of `input` would not wait: there is something, or the end.
pub(super) fn can_be_read(input: &File) -> bool {
    let mut files = [PollFd::new(input, PollFlags::IN)];
    poll(&mut files, Some(&Timespec::default())).is_ok_and(|ready| ready > 0)
}

/// Whether something can be written to `output` without waiting.
pub(super) fn has_room(output: &File) -> bool {
    let mut files = [PollFd::new(output, PollFlags::OUT)];
    poll(&mut files, Some(&Timespec::default())).is_ok() && files[0].revents() == PollFlags::OUT
}

/// Tells when nobody can read `output` any more, even while nothing is being written.
pub(super) fn watch(output: File) -> io::Result<oneshot::Receiver<()>> {
    let (gone, told) = oneshot::channel();
    let watch = move || {
        let mut files = [PollFd::new(&output, PollFlags::empty())];
        // Asked for nothing, poll returns when the other end is gone: ERR for pipes, HUP for
        // sockets and terminals.
        while let Err(rustix::io::Errno::INTR) = poll(&mut files, None) {}
        // A loop that has ended does not want to know.
        gone.send(()).ok();
    };
    thread::Builder::new().name("stdout-watch".to_owned()).spawn(watch)?;
    Ok(told)
}
