//! Standard input and output, made private: nothing but frames ever reaches the reader, and no
//! child process takes a request or keeps the pipe open.

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::fcntl_dupfd_cloexec;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;
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

/// Waits until `file` is as `flags` say, or broken.
pub(super) fn wait_for(file: impl AsFd, flags: PollFlags) {
    // An error here shows again, and is dealt with, when the file is read or written.
    poll(&mut [PollFd::new(&file, flags)], None).ok();
}

/// Writes all of `bytes`, whatever the state of the file's flags.
pub(super) fn write_all(mut file: &File, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match file.write(bytes) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => bytes = &bytes[written..],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            // Another process that shares the pipe has made it so; waiting is up to us.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                wait_for(file, PollFlags::OUT);
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
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
