//! A chat on a pseudo-terminal, which answers as a terminal does when it is asked for the place of its cursor.

use crate::child::{Program, pss_of};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags, open};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

const COLUMNS: u16 = 80;
const ROWS: u16 = 24;

/// Asks for the place of the cursor; every second question is about the last place of the screen.
const QUESTION: &[u8] = b"\x1b[6n";

/// How long anything may take.
const PATIENCE: Duration = Duration::from_secs(120);

/// A chat and its terminal.
pub(crate) struct PseudoTerminal {
    process: Child,
    terminal: File,
    /// What was shown since it was last looked for something.
    shown: Vec<u8>,
    /// How far questions were looked for.
    answered: usize,
    questions: usize,
    piece: Vec<u8>,
}

impl PseudoTerminal {
    pub(crate) fn start(args: &[&str]) -> io::Result<Self> {
        let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY)?;
        grantpt(&terminal)?;
        unlockpt(&terminal)?;
        let name = ptsname(&terminal, Vec::new())?;
        let line: OwnedFd = open(name, OFlags::RDWR | OFlags::NOCTTY, Mode::empty())?;
        tcsetwinsize(&line, Winsize { ws_row: ROWS, ws_col: COLUMNS, ws_xpixel: 0, ws_ypixel: 0 })?;
        let process = Command::new(Program::Duologue.path()?)
            .args(args)
            .env_clear()
            .env("TERM", "xterm-256color")
            .stdin(line.try_clone()?)
            .stdout(line.try_clone()?)
            .stderr(line)
            .spawn()?;
        let (shown, piece) = (Vec::new(), vec![0; 64 * 1024]);
        let terminal = File::from(terminal);
        Ok(Self { process, terminal, shown, answered: 0, questions: 0, piece })
    }

    pub(crate) fn types(&mut self, keys: &str) -> io::Result<()> {
        self.terminal.write_all(keys.as_bytes())
    }

    /// Reads on until `text` is shown; forgets what was shown up to there.
    pub(crate) fn shows(&mut self, text: &str) -> io::Result<()> {
        let end = Instant::now() + PATIENCE;
        let mut from = 0;
        loop {
            let found = find(&self.shown[from..], text.as_bytes());
            if let Some(at) = found {
                self.forget(from + at + text.len());
                return Ok(());
            }
            from = self.shown.len().saturating_sub(text.len());
            if Instant::now() > end {
                return Err(io::Error::other(format!("the chat has not shown {text:?}")));
            }
            self.read(PATIENCE)?;
        }
    }

    /// Reads what is shown meanwhile.
    pub(crate) fn look_on(&mut self, time: Duration) -> io::Result<()> {
        let end = Instant::now() + time;
        while let Some(rest) = end.checked_duration_since(Instant::now()) {
            self.read(rest)?;
            self.forget(self.answered);
        }
        Ok(())
    }

    /// The share of memory that is this process's, in bytes.
    pub(crate) fn memory(&self) -> io::Result<f64> {
        Ok(pss_of(&self.process.id().to_string())? * 1024.0 * 1024.0)
    }

    fn read(&mut self, most: Duration) -> io::Result<()> {
        let time = Timespec::try_from(most).map_err(io::Error::other)?;
        let mut files = [PollFd::new(&self.terminal, PollFlags::IN)];
        if poll(&mut files, Some(&time))? == 0 {
            return Ok(());
        }
        let bytes = self.terminal.read(&mut self.piece)?;
        self.shown.extend_from_slice(&self.piece[..bytes]);
        while let Some(at) = find(&self.shown[self.answered..], QUESTION) {
            self.answered += at + QUESTION.len();
            self.questions += 1;
            let answer =
                if self.questions.is_multiple_of(2) { "\x1b[24;80R" } else { "\x1b[23;3R" };
            self.terminal.write_all(answer.as_bytes())?;
        }
        // The beginning of a question may be the last that was read.
        self.answered = self.answered.max(self.shown.len().saturating_sub(QUESTION.len() - 1));
        Ok(())
    }

    fn forget(&mut self, bytes: usize) {
        self.shown.drain(..bytes);
        self.answered = self.answered.saturating_sub(bytes);
    }
}

impl Drop for PseudoTerminal {
    fn drop(&mut self) {
        // One that has ended already is all the better.
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

fn find(text: &[u8], part: &[u8]) -> Option<usize> {
    text.windows(part.len()).position(|window| window == part)
}
