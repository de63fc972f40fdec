//! The terminal itself: its modes, its size, and what is read and written. Whatever ends the chat, the
//! terminal is put back as it was.

pub(crate) mod keys;
mod reader;
mod writer;

use super::model::Size;
use reader::Reader;
use rustix::process::getpgrp;
use rustix::termios::{
    OptionalActions, QueueSelector, Termios, tcflush, tcgetattr, tcgetpgrp, tcgetwinsize, tcsetattr,
};
use std::fs::File;
use std::future::pending;
use std::io;
use writer::Writer;

/// The size of a terminal that does not know its own.
const USUAL: Size = Size { columns: 80, rows: 24 };

/// Reports of whether the window is looked at and bracketed paste (xterm), and keys with all their modifiers (1) and
/// their codes on other keyboards (4), which the terminal keeps on a stack (kitty; other terminals ignore it).
const MODES_ON: &str = "\x1b[?1004h\x1b[?2004h\x1b[>5u";

/// Takes the modes of keys from the stack.
const KEYS_OFF: &str = "\x1b[<u";

/// The end of a synchronized update that was cut off, then the modes in the opposite order; lines wrap,
/// the cursor is seen, no colours.
const MODES_OFF: &str = "\x1b[?2026l\x1b[<u\x1b[?2004l\x1b[?1004l\x1b[?7h\x1b[?25h\x1b[0m";

/// Ends a sequence that was cut off (ECMA-48, CAN).
const CANCELLED: &str = "\x18";

const ALTERNATE_ON: &str = "\x1b[?1049h\x1b[2J";
const ALTERNATE_OFF: &str = "\x1b[?1049l";

/// Whose modes the terminal has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Holding {
    /// Its modes from before the chat.
    Left,
    Entered,
    /// What ends the modes of the chat is written, and the terminal may not have taken it yet.
    Leaving,
}

/// A terminal in raw mode while it is entered.
#[derive(Debug)]
pub(crate) struct Terminal {
    input: File,
    output: File,
    writer: Writer,
    /// As it was before.
    cooked: Termios,
    has_alternate: bool,
    holding: Holding,
    reader: Option<Reader>,
    /// A size that the system has, and the one that the terminal itself has reported instead.
    corrected: Option<(Size, Size)>,
}

impl Terminal {
    /// The terminal that `input` reads from and `output` writes to. It is not changed yet.
    ///
    /// # Errors
    /// If it is none, or can't be waited for.
    pub(crate) fn new(input: File, output: File, has_alternate: bool) -> io::Result<Self> {
        let cooked = tcgetattr(&input)?;
        let writer = Writer::new(&output)?;
        let (holding, reader, corrected) = (Holding::Left, None, None);
        Ok(Self { input, output, writer, cooked, has_alternate, holding, reader, corrected })
    }

    /// Takes the terminal: keys come one by one and are not shown.
    ///
    /// # Errors
    /// If it can't be changed.
    pub(crate) fn enter(&mut self) -> io::Result<()> {
        let mut raw = self.cooked.clone();
        raw.make_raw();
        // From here on there is something to put back. A process that was stopped by another one has not left.
        let again = match std::mem::replace(&mut self.holding, Holding::Entered) {
            Holding::Entered => KEYS_OFF,
            Holding::Left | Holding::Leaving => "",
        };
        tcsetattr(&self.input, OptionalActions::Now, &raw)?;
        let alternate = if self.has_alternate { ALTERNATE_ON } else { "" };
        self.write(&format!("{again}{alternate}{MODES_ON}"))?;
        if self.reader.is_none() {
            self.reader = Some(Reader::start(self.input.try_clone()?)?);
        }
        Ok(())
    }

    /// Writes what puts the terminal back, which it may take later: see [`Self::is_drained`]. Then it can be left.
    pub(crate) fn begin_leaving(&mut self) {
        if self.holding != Holding::Entered {
            return;
        }
        self.holding = Holding::Leaving;
        if let Some(reader) = self.reader.take() {
            reader.stop();
        }
        self.write(&self.modes_off()).ok();
    }

    fn modes_off(&self) -> String {
        let alternate = if self.has_alternate { ALTERNATE_OFF } else { "" };
        format!("{MODES_OFF}{alternate}")
    }

    /// Puts the terminal back. What a terminal does not take that is stuck is dropped.
    pub(crate) fn leave(&mut self) {
        self.begin_leaving();
        if self.holding == Holding::Left {
            return;
        }
        self.holding = Holding::Left;
        if self.writer.finish() {
            self.write(&format!("{CANCELLED}{}", self.modes_off())).ok();
            self.writer.finish();
        }
        // The shell has set its own modes, and stops a process in the background that sets others.
        if !self.is_ours() {
            return;
        }
        // Pending keys and reports were meant for the chat.
        tcflush(&self.input, QueueSelector::IFlush).ok();
        // At once: a terminal that takes nothing would be waited for without an end. Modes of output act on what is
        // written from then on.
        tcsetattr(&self.input, OptionalActions::Now, &self.cooked).ok();
    }

    pub(crate) fn is_entered(&self) -> bool {
        self.holding == Holding::Entered
    }

    /// Writes `text`, of which the terminal takes the rest later if it is slow: see [`Self::is_flushed`].
    ///
    /// # Errors
    /// If the terminal is gone.
    pub(crate) fn write(&mut self, text: &str) -> io::Result<()> {
        self.writer.write(text)
    }

    /// Writes what is left, once the terminal was left. What a terminal does not take that is stuck is dropped.
    pub(crate) fn finish(&mut self) {
        self.writer.finish();
    }

    /// Writes what the terminal takes now; whether it has taken all, or is gone.
    pub(crate) fn is_drained(&mut self) -> bool {
        self.writer.has_room() || self.writer.is_flushed()
    }

    /// Bytes that were written and that the terminal has not taken yet.
    pub(crate) fn pending_bytes(&self) -> usize {
        self.writer.pending_bytes()
    }

    /// Whether the terminal has taken all that was written.
    pub(crate) fn is_flushed(&self) -> bool {
        self.writer.is_flushed()
    }

    /// Whether the terminal has taken all that was written, and takes more without making the chat wait.
    pub(crate) fn has_room(&mut self) -> bool {
        self.writer.has_room()
    }

    pub(crate) fn size(&self) -> Size {
        let size = size(&self.output);
        match self.corrected {
            Some((wrong, right)) if wrong == size => right,
            Some(_) | None => size,
        }
    }

    /// The terminal reports another size than the system, which learns of a new one later.
    pub(crate) fn correct_size(&mut self, right: Size) {
        self.corrected = Some((size(&self.output), right));
    }

    /// The system has a new size.
    pub(crate) fn trust_size(&mut self) {
        self.corrected = None;
    }

    /// Whether this process may use the terminal: one that was continued in the background may not.
    pub(crate) fn is_ours(&self) -> bool {
        // Without job control no other program uses it.
        tcgetpgrp(&self.input).map_or(true, |group| group == getpgrp())
    }

    /// Waits for bytes and reads them; none are read at the end of the terminal.
    ///
    /// # Errors
    /// If it can't be read.
    pub(crate) async fn read(&mut self) -> io::Result<Vec<u8>> {
        match &mut self.reader {
            Some(reader) => reader.next().await,
            None => pending().await,
        }
    }

    /// The terminal for a child process: its input and its output.
    ///
    /// # Errors
    /// If the system has no descriptors left.
    pub(crate) fn for_child(&self) -> io::Result<(File, File)> {
        Ok((self.input.try_clone()?, self.output.try_clone()?))
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

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{Mode, OFlags, open};
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
    use std::os::fd::OwnedFd;

    /// The person's side of a terminal, and the other side.
    pub(super) fn pty() -> (OwnedFd, File) {
        let person = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC);
        let person = person.expect("a terminal");
        grantpt(&person).and_then(|()| unlockpt(&person)).expect("a terminal");
        let name = ptsname(&person, Vec::new()).expect("its name");
        let line = open(name, OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC, Mode::empty());
        (person, File::from(line.expect("a terminal")))
    }

    /// The person's side of a terminal, the other side, and the latter as a chat has it.
    fn terminal() -> (OwnedFd, File, Terminal) {
        let (person, line) = pty();
        let copy = || line.try_clone().expect("a descriptor");
        let terminal = Terminal::new(copy(), copy(), false).expect("a terminal");
        (person, line, terminal)
    }

    /// As after SIGSTOP and SIGCONT, of which a process hears the second alone.
    #[test]
    fn a_terminal_that_was_not_left_is_entered_once() {
        for has_alternate in [false, true] {
            let (person, _line, mut terminal) = terminal();
            terminal.has_alternate = has_alternate;
            terminal.enter().and_then(|()| terminal.enter()).expect("a terminal");
            terminal.leave();
            let mut shown = String::new();
            while !shown.contains("\x1b[0m") {
                let mut piece = [0; 1024];
                let bytes = rustix::io::read(&person, &mut piece).expect("what is shown");
                shown.push_str(std::str::from_utf8(&piece[..bytes]).expect("ASCII"));
            }
            let keys = shown.match_indices("\x1b[>5u").chain(shown.match_indices(KEYS_OFF));
            let mut keys: Vec<_> = keys.collect();
            keys.sort_unstable();
            let keys: Vec<_> = keys.into_iter().map(|(_, keys)| keys).collect();
            assert_eq!(keys, ["\x1b[>5u", KEYS_OFF, "\x1b[>5u", KEYS_OFF], "{shown:?}");
        }
    }

    /// Discards keys that were typed for the chat, so that the shell does not get them.
    #[test]
    fn what_nobody_has_read_is_dropped_when_the_terminal_is_given_back() {
        let (person, line, mut terminal) = terminal();
        terminal.enter().expect("a terminal");
        // From here on the terminal is not read.
        terminal.reader.take().expect("a reader").stop();
        rustix::io::write(&person, b"rm -rf\r").expect("a terminal");
        terminal.leave();
        assert_eq!(rustix::io::ioctl_fionread(&line), Ok(0));
    }
}
