//! What a person types: keys of a terminal in raw mode, or whole lines.

use super::Screen;
use crate::support::threads::{self, NoThread};
use crate::tui::terminal::keys::{Keys, Typed};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read as _};
use std::time::{Duration, Instant};
use tokio::sync::mpsc;

/// How long the rest of a key's sequence may take. Over a slow connection it comes in pieces.
const SEQUENCE_TIME: Duration = Duration::from_millis(100);

/// How long the rest of a paste may take before its end counts as lost.
const PASTE_TIME: Duration = Duration::from_secs(2);

/// Lines that are read ahead.
const LINES_AHEAD_MAX: usize = 16;

/// Bytes of a line; the rest is another line.
const LINE_BYTES_MAX: u64 = 10 * 1024 * 1024;

/// Where input comes from.
pub(crate) enum Source {
    Keys { keys: Keys, last: Instant },
    Lines(mpsc::Receiver<io::Result<String>>),
    Ended,
}

/// What was read.
pub(super) enum Read {
    Typed(Vec<Typed>),
    Line(String),
    Ended,
}

impl Source {
    /// The keys of the screen's terminal.
    pub(crate) fn keys() -> Self {
        Self::Keys { keys: Keys::default(), last: Instant::now() }
    }

    /// The lines of `input`.
    ///
    /// # Errors
    /// If the system has no thread to read them.
    pub(crate) fn lines(input: File) -> Result<Self, NoThread> {
        let (sender, lines) = mpsc::channel(LINES_AHEAD_MAX);
        let read = move || {
            let mut input = BufReader::new(input);
            while let Some(line) = line(&mut input).transpose() {
                if sender.blocking_send(line).is_err() {
                    return;
                }
            }
        };
        threads::spawn("lines", read)?;
        Ok(Self::Lines(lines))
    }

    /// # Errors
    /// If the terminal is gone.
    pub(super) async fn next(&mut self, screen: &mut Screen) -> io::Result<Read> {
        match self {
            Self::Keys { keys, last } => {
                let bytes = screen.read().await?;
                if bytes.is_empty() {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
                *last = Instant::now();
                Ok(Read::Typed(keys.push(&bytes)))
            }
            Self::Lines(lines) => match lines.recv().await {
                Some(line) => Ok(Read::Line(line?)),
                None => {
                    *self = Self::Ended;
                    Ok(Read::Ended)
                }
            },
            Self::Ended => std::future::pending().await,
        }
    }

    /// When what was read in part counts as whole.
    pub(super) fn wake_at(&self) -> Option<Instant> {
        match self {
            Self::Keys { keys, last } if keys.waits() => {
                let time = if keys.is_pasting() { PASTE_TIME } else { SEQUENCE_TIME };
                Some(*last + time)
            }
            Self::Keys { .. } | Self::Lines(_) | Self::Ended => None,
        }
    }

    /// What was read in part, if its time is up.
    pub(super) fn give_up(&mut self, now: Instant) -> Vec<Typed> {
        let is_due = self.wake_at().is_some_and(|at| at <= now);
        match self {
            Self::Keys { keys, .. } if is_due => keys.give_up(),
            Self::Keys { .. } | Self::Lines(_) | Self::Ended => Vec::new(),
        }
    }
}

/// The next line, without its end; `None` after the last.
fn line(input: &mut impl BufRead) -> io::Result<Option<String>> {
    let mut bytes = Vec::new();
    if input.take(LINE_BYTES_MAX).read_until(b'\n', &mut bytes)? == 0 {
        return Ok(None);
    }
    let text = String::from_utf8_lossy(&bytes);
    Ok(Some(text.trim_end_matches(['\n', '\r']).to_owned()))
}
