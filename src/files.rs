//! Files and pipes that are written by threads: whoever is slow to take what is written holds up
//! the thread that writes, and nobody else.

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::OFlags;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;

/// Opens the file at `path` for writing, as `options` say, and makes the folders it is in. Never
/// waits: a named pipe must have a reader.
pub(crate) fn open(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    let flags = i32::try_from(OFlags::NONBLOCK.bits()).map_err(io::Error::other)?;
    options.create(true).custom_flags(flags).open(path).map_err(|error| {
        let is_unread = error.raw_os_error() == Some(rustix::io::Errno::NXIO.raw_os_error());
        if is_unread && path.metadata().is_ok_and(|file| file.file_type().is_fifo()) {
            return io::Error::other(
                "it is a named pipe that nobody reads; start its reader first",
            );
        }
        error
    })
}

/// Writes all of `bytes`, whatever the state of the file's flags.
pub(crate) fn write_all(mut file: &File, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match file.write(bytes) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => bytes = &bytes[written..],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            // The file was opened so, or another process that shares the pipe has made it so;
            // waiting is up to us.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                wait_for(file, PollFlags::OUT);
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Waits until `file` is as `flags` say, or broken.
pub(crate) fn wait_for(file: impl AsFd, flags: PollFlags) {
    // An error here shows again, and is dealt with, when the file is read or written.
    poll(&mut [PollFd::new(&file, flags)], None).ok();
}
