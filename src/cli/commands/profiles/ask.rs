//! Questions at a terminal. They go to standard error, so that standard output has the result alone.

use anyhow::{Context, Result, bail};
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};
use std::io::{self, BufRead, IsTerminal, Read, Stderr, Stdin, Write};

/// Bytes of a line that is typed.
const LINE_BYTES_MAX: u64 = 64 * 1024;

/// What a terminal sends for keys, where it does not act on them itself.
const CTRL_C: u8 = 0x03;
const CTRL_D: u8 = 0x04;
const CTRL_U: u8 = 0x15;
const BACKSPACE: [u8; 2] = [0x08, 0x7f];

const CANCELLED: &str =
    "the input ended before all questions were answered, so nothing was written";

/// A person at a terminal.
pub(super) struct Person {
    input: Stdin,
    output: Stderr,
}

impl Person {
    /// The person at this terminal; `None` if standard input or standard error is none.
    pub(super) fn at_terminal() -> Option<Self> {
        let (input, output) = (io::stdin(), io::stderr());
        (input.is_terminal() && output.is_terminal()).then_some(Self { input, output })
    }

    /// The answer to `question`; `default` if nothing is typed.
    ///
    /// # Errors
    /// If the input ends, or the terminal can't be used.
    pub(super) fn ask(&mut self, question: &str, default: &str) -> Result<String> {
        let hint = if default.is_empty() { String::new() } else { format!(" [{default}]") };
        self.say(&format!("{question}{hint}: "))?;
        let mut line = String::new();
        let read = self.input.lock().take(LINE_BYTES_MAX).read_line(&mut line);
        if read.context("the terminal can't be read")? == 0 {
            self.say("\n")?;
            bail!(CANCELLED);
        }
        let answer = line.trim();
        Ok(if answer.is_empty() { default } else { answer }.to_owned())
    }

    /// Like [`Self::ask`], until `read` takes the answer; says why it does not.
    ///
    /// # Errors
    /// As [`Self::ask`].
    pub(super) fn ask_until<T>(
        &mut self,
        question: &str,
        default: &str,
        mut read: impl FnMut(&str) -> Result<T, String>,
    ) -> Result<T> {
        loop {
            match read(&self.ask(question, default)?) {
                Ok(answer) => return Ok(answer),
                Err(why) => self.say(&format!("{why}\n"))?,
            }
        }
    }

    /// The answer to `question`, of which nothing is shown.
    ///
    /// # Errors
    /// As [`Self::ask`], and if it is blank.
    pub(super) fn ask_secretly(&mut self, question: &str) -> Result<String> {
        // Before the question: nothing that is typed in answer to it can be shown.
        let quiet = Quiet::new()?;
        self.say(&format!("{question} (it is not shown): "))?;
        let mut typed = Vec::new();
        let mut keys = self.input.lock().bytes();
        let is_whole = loop {
            match keys.next().transpose().context("the terminal can't be read")? {
                None | Some(CTRL_C | CTRL_D) => break false,
                Some(b'\r' | b'\n') => break true,
                Some(CTRL_U) => typed.clear(),
                Some(key) if BACKSPACE.contains(&key) => drop(typed.pop()),
                // Ctrl-Z and the like are no part of a key.
                Some(key) if key.is_ascii_control() => {}
                Some(key) => typed.push(key),
            }
        };
        drop(quiet);
        self.say("\n")?;
        let typed = String::from_utf8(typed).ok().filter(|_| is_whole).context(CANCELLED)?;
        if typed.trim().is_empty() {
            bail!("no key was typed, so nothing was written");
        }
        Ok(typed.trim().to_owned())
    }

    /// Shows `text`.
    ///
    /// # Errors
    /// If the terminal can't be used.
    pub(super) fn say(&mut self, text: &str) -> Result<()> {
        let said = self.output.write_all(text.as_bytes()).and_then(|()| self.output.flush());
        said.context("the terminal can't be written")
    }
}

/// A terminal that shows nothing of what is typed, until this is dropped. Each key is read as it comes,
/// so that Ctrl-C ends the question and not the process, which would leave the terminal so.
struct Quiet {
    before: Termios,
}

impl Quiet {
    fn new() -> Result<Self> {
        let before = tcgetattr(io::stdin())?;
        let mut modes = before.clone();
        modes.local_modes -= LocalModes::ECHO | LocalModes::ICANON | LocalModes::ISIG;
        tcsetattr(io::stdin(), OptionalActions::Flush, &modes)?;
        Ok(Self { before })
    }
}

impl Drop for Quiet {
    fn drop(&mut self) {
        // There is nothing else that could be done.
        tcsetattr(io::stdin(), OptionalActions::Now, &self.before).ok();
    }
}
