//! The terminal itself: its modes, its size, and what is read and written. Whatever ends the chat, the
//! terminal is put back as it was.

pub(crate) mod keys;

use super::model::Size;
use crate::support::files::write_all;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::getpgrp;
use rustix::termios::{
    OptionalActions, QueueSelector, Termios, tcflush, tcgetattr, tcgetpgrp, tcgetwinsize, tcsetattr,
};
use std::fs::File;
use std::io;
use tokio::io::unix::AsyncFd;

/// Bytes that are read at once.
const READ_BYTES: usize = 64 * 1024;

/// The size of a terminal that does not know its own.
const USUAL: Size = Size { columns: 80, rows: 24 };

/// Bracketed paste (xterm), and keys with all their modifiers (kitty; other terminals ignore it).
const MODES_ON: &str = "\x1b[?2004h\x1b[>1u";

/// The end of a synchronized update that was cut off, then the modes in the opposite order; lines wrap,
/// the cursor is seen, no colours.
const MODES_OFF: &str = "\x1b[?2026l\x1b[<u\x1b[?2004l\x1b[?7h\x1b[?25h\x1b[0m";

const ALTERNATE_ON: &str = "\x1b[?1049h\x1b[2J";
const ALTERNATE_OFF: &str = "\x1b[?1049l";

/// A terminal in raw mode while it is entered.
#[derive(Debug)]
pub(crate) struct Terminal {
    input: AsyncFd<File>,
    output: File,
    /// As it was before.
    cooked: Termios,
    has_alternate: bool,
    is_entered: bool,
}

impl Terminal {
    /// The terminal that `input` reads from and `output` writes to. It is not changed yet.
    ///
    /// # Errors
    /// If it is none, or can't be waited for.
    pub(crate) fn new(input: File, output: File, has_alternate: bool) -> io::Result<Self> {
        let cooked = tcgetattr(&input)?;
        let input = AsyncFd::with_interest(input, tokio::io::Interest::READABLE)?;
        Ok(Self { input, output, cooked, has_alternate, is_entered: false })
    }

    /// Takes the terminal: keys come one by one and are not shown.
    ///
    /// # Errors
    /// If it can't be changed.
    pub(crate) fn enter(&mut self) -> io::Result<()> {
        let mut raw = self.cooked.clone();
        raw.make_raw();
        // From here on there is something to put back.
        self.is_entered = true;
        tcsetattr(self.input.get_ref(), OptionalActions::Now, &raw)?;
        let alternate = if self.has_alternate { ALTERNATE_ON } else { "" };
        self.write(&format!("{alternate}{MODES_ON}"))
    }

    /// Puts the terminal back.
    pub(crate) fn leave(&mut self) {
        if !std::mem::take(&mut self.is_entered) {
            return;
        }
        let alternate = if self.has_alternate { ALTERNATE_OFF } else { "" };
        // There is nothing to do about a terminal that is gone.
        self.write(&format!("{MODES_OFF}{alternate}")).ok();
        // What was typed, or reported by the terminal, was meant for the chat.
        tcflush(self.input.get_ref(), QueueSelector::IFlush).ok();
        tcsetattr(self.input.get_ref(), OptionalActions::Drain, &self.cooked).ok();
    }

    pub(crate) fn is_entered(&self) -> bool {
        self.is_entered
    }

    pub(crate) fn has_alternate(&self) -> bool {
        self.has_alternate
    }

    /// # Errors
    /// If the terminal is gone.
    pub(crate) fn write(&self, text: &str) -> io::Result<()> {
        write_all(&self.output, text.as_bytes())
    }

    /// Whether the terminal takes output without making the chat wait.
    pub(crate) fn has_room(&self) -> bool {
        let mut files = [PollFd::new(&self.output, PollFlags::OUT)];
        poll(&mut files, Some(&Timespec::default())).map_or(true, |ready| ready > 0)
    }

    pub(crate) fn size(&self) -> Size {
        size(&self.output)
    }

    /// Whether this process may use the terminal: one that was continued in the background may not.
    pub(crate) fn is_ours(&self) -> bool {
        // Without job control nobody else uses it.
        tcgetpgrp(self.input.get_ref()).map_or(true, |group| group == getpgrp())
    }

    /// Waits for bytes and reads them; none are read if the terminal is gone.
    ///
    /// # Errors
    /// If it can't be read.
    pub(crate) async fn read(&self) -> io::Result<Vec<u8>> {
        loop {
            let mut ready = self.input.readable().await?;
            let file = ready.get_inner();
            // The description is shared with other processes, so that it can't be made to return at
            // once where there is nothing.
            let mut files = [PollFd::new(file, PollFlags::IN)];
            if poll(&mut files, Some(&Timespec::default())).unwrap_or(0) == 0 {
                ready.clear_ready();
                continue;
            }
            let mut bytes = vec![0; READ_BYTES];
            match rustix::io::read(file, &mut bytes) {
                Ok(length) => {
                    bytes.truncate(length);
                    return Ok(bytes);
                }
                Err(Errno::INTR | Errno::AGAIN) => ready.clear_ready(),
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// The terminal for a child process: its input and its output.
    ///
    /// # Errors
    /// If the system has no descriptors left.
    pub(crate) fn for_child(&self) -> io::Result<(File, File)> {
        Ok((self.input.get_ref().try_clone()?, self.output.try_clone()?))
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.leave();
    }
}

/// The size of the terminal that `output` writes to.
pub(crate) fn size(output: &File) -> Size {
    match tcgetwinsize(output) {
        Ok(size) if size.ws_col > 0 && size.ws_row > 0 => {
            Size { columns: size.ws_col.into(), rows: size.ws_row.into() }
        }
        Ok(_) | Err(_) => USUAL,
    }
}
