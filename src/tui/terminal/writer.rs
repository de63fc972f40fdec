//! Writes to a terminal without waiting for one that takes nothing, as behind a connection that hangs: signals must
//! still end the chat.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags, open};
use rustix::io::Errno;
use rustix::termios::ttyname;
use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::time::{Duration, Instant};

/// How long one write may wait for a terminal that is slow.
const WRITE_TIME: Duration = Duration::from_millis(30);

/// A terminal that takes nothing for so long gets nothing more once a signal ends the chat.
const STUCK_TIME: Duration = Duration::from_secs(1);

/// A slow terminal gets nothing more after so long, for then a person would have to kill the chat.
const FINISH_TIME: Duration = Duration::from_secs(5);

/// The most that a write may take where it can't be told not to wait. Linux has the room of a terminal in pieces of 256
/// bytes, of which one that polls as writable has at least one.
const BLOCKING_BYTES_MAX: usize = 128;

/// The output of a terminal, with the bytes that it has not taken yet.
#[derive(Debug)]
pub(super) struct Writer {
    file: File,
    /// A write waits until the terminal has taken all of it.
    is_blocking: bool,
    pending: VecDeque<u8>,
}

impl Writer {
    /// The terminal of `output` is opened again, because the shell shares the open file of `output`, which must stay
    /// blocking for it. Where that fails, as for another user's terminal, little is written at a time.
    ///
    /// # Errors
    /// If the system has no descriptors left.
    pub(super) fn new(output: &File) -> io::Result<Self> {
        let flags = OFlags::WRONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let opened = ttyname(output, Vec::new()).and_then(|name| open(name, flags, Mode::empty()));
        match opened {
            Ok(own) => Ok(Self::to(File::from(own), false)),
            Err(_) => Ok(Self::to(output.try_clone()?, true)),
        }
    }

    fn to(file: File, is_blocking: bool) -> Self {
        Self { file, is_blocking, pending: VecDeque::new() }
    }

    /// Writes `text` after what is pending. What the terminal does not take soon stays pending.
    ///
    /// # Errors
    /// If the terminal is gone.
    pub(super) fn write(&mut self, text: &str) -> io::Result<()> {
        self.pending.extend(text.as_bytes());
        self.flush()
    }

    fn flush(&mut self) -> io::Result<()> {
        let deadline = Instant::now() + WRITE_TIME;
        while !self.pending.is_empty() && Instant::now() < deadline {
            self.write_part(deadline)?;
        }
        Ok(())
    }

    /// Writes what is pending, as long as the terminal takes bytes, and not for long. The rest is dropped; returns
    /// whether the terminal was too slow for it, and so takes more.
    pub(super) fn finish(&mut self) -> bool {
        self.finish_by(Instant::now() + FINISH_TIME)
    }

    fn finish_by(&mut self, end: Instant) -> bool {
        let mut deadline = (Instant::now() + STUCK_TIME).min(end);
        while !self.pending.is_empty() && Instant::now() < deadline {
            match self.write_part(deadline) {
                Ok(0) => {}
                Ok(_) => deadline = (Instant::now() + STUCK_TIME).min(end),
                // There is nothing to do about a terminal that is gone.
                Err(_) => break,
            }
        }
        let is_slow = !self.pending.is_empty() && deadline == end;
        self.pending.clear();
        is_slow
    }

    /// Bytes that the terminal has not taken yet.
    pub(super) fn pending_bytes(&self) -> usize {
        self.pending.len()
    }

    /// Whether the terminal has taken all that was written.
    pub(super) fn is_flushed(&self) -> bool {
        self.pending.is_empty()
    }

    /// Writes what is pending; whether the terminal takes more then. One that is gone seems to: the next write says so.
    pub(super) fn has_room(&mut self) -> bool {
        if !self.waits_for_room(Duration::ZERO) {
            return false;
        }
        self.flush().is_err() || self.is_flushed() && self.waits_for_room(Duration::ZERO)
    }

    /// Writes as much as the terminal takes at once, when it takes something before `deadline`; returns how many bytes.
    fn write_part(&mut self, deadline: Instant) -> io::Result<usize> {
        if !self.waits_for_room(deadline.saturating_duration_since(Instant::now())) {
            return Ok(0);
        }
        let (part, _) = self.pending.as_slices();
        let part = if self.is_blocking { taken_at_once(part) } else { part };
        match rustix::io::write(&self.file, part) {
            Ok(0) => Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => {
                self.pending.drain(..written);
                Ok(written)
            }
            Err(Errno::AGAIN | Errno::INTR) => Ok(0),
            Err(error) => Err(error.into()),
        }
    }

    /// Waits for `time` at most; returns whether the terminal takes bytes.
    fn waits_for_room(&self, time: Duration) -> bool {
        let time = Timespec::try_from(time).unwrap_or_default();
        let mut files = [PollFd::new(&self.file, PollFlags::OUT)];
        match poll(&mut files, Some(&time)) {
            Ok(ready) => ready > 0,
            Err(Errno::INTR) => false,
            // The write meets the error, too.
            Err(_) => true,
        }
    }
}

/// The beginning of `bytes` for which a terminal does not wait that polls as writable: text or one control character,
/// as in cooked mode a character such as a line break is a write of its own in the kernel, and needs a piece of room of
/// its own.
fn taken_at_once(bytes: &[u8]) -> &[u8] {
    let most = &bytes[..bytes.len().min(BLOCKING_BYTES_MAX)];
    let text = most.iter().position(u8::is_ascii_control).unwrap_or(most.len());
    most.get(..text.max(1)).unwrap_or(most)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tui::terminal::tests::pty;
    use rustix::termios::{OptionalActions, tcgetattr, tcsetattr};
    use std::os::fd::OwnedFd;
    use std::sync::mpsc;
    use std::thread;

    /// More than a terminal takes that nobody reads.
    const BYTES: usize = 1024 * 1024;

    /// Longer than a writer waits for a terminal that is stuck.
    const WAIT_MAX: Duration = Duration::from_secs(30);

    /// The person's side of a terminal, and the other side as the chat has it.
    fn raw_pty() -> (OwnedFd, File) {
        let (person, line) = pty();
        let mut raw = tcgetattr(&line).expect("a terminal");
        raw.make_raw();
        tcsetattr(&line, OptionalActions::Now, &raw).expect("a terminal");
        (person, line)
    }

    #[test]
    fn a_terminal_that_is_read_late_gets_all_that_was_written() {
        let (person, line) = raw_pty();
        let mut writer = Writer::new(&line).expect("a terminal");
        let text: String = ('a'..='z').cycle().take(BYTES).collect();
        writer.write(&text).expect("a terminal");
        assert!(!writer.is_flushed() && !writer.has_room());
        let reading = thread::spawn(move || {
            let (mut shown, mut piece) = (Vec::new(), [0; 4096]);
            // When the last writer has gone, a terminal gives an error in place of an end.
            while let Ok(bytes @ 1..) = rustix::io::read(&person, &mut piece) {
                shown.extend_from_slice(&piece[..bytes]);
            }
            shown
        });
        writer.write(" the end").expect("a terminal");
        writer.finish();
        drop((writer, line));
        assert_eq!(reading.join().expect("no panic"), format!("{text} the end").as_bytes());
    }

    #[test]
    fn what_a_slow_terminal_has_not_taken_in_time_is_dropped() {
        let (person, line) = raw_pty();
        let mut writer = Writer::new(&line).expect("a terminal");
        writer.write(&"a".repeat(BYTES)).expect("a terminal");
        assert!(writer.finish_by(Instant::now()) && writer.is_flushed());
        // Nothing is left that it could be too slow for.
        assert!(!writer.finish());
        drop(person);
    }

    /// The terminal of another user, as after `su`, can't be opened again.
    #[test]
    fn a_terminal_that_can_not_be_opened_again_does_not_hold_up_the_end() {
        for (person, line) in [raw_pty(), pty()] {
            let mut writer = Writer::to(line, true);
            let (ended, end) = mpsc::channel();
            thread::spawn(move || {
                let text: String = ('a'..='z').chain(['\n', '\t']).cycle().take(BYTES).collect();
                let written = writer.write(&text).is_ok();
                let is_stuck = !writer.has_room();
                let is_slow = writer.finish();
                ended.send((written, is_stuck, is_slow, writer.is_flushed())).ok();
            });
            assert_eq!(end.recv_timeout(WAIT_MAX), Ok((true, true, false, true)));
            drop(person);
        }
    }
}
