//! The input of a person: keys of a terminal in raw mode, or whole lines.

use super::Screen;
use crate::support::threads::{self, NoThread};
use crate::tui::terminal::keys::{Keys, Typed, ends_paste};
use rustix::termios::{LocalModes, tcgetattr};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read as _};
use std::time::{Duration, Instant};
use tokio::sync::mpsc;

/// Time limit for the rest of a key's sequence, which arrives in pieces over a slow connection.
const SEQUENCE_TIME: Duration = Duration::from_millis(100);

/// How long the rest of a paste may take before its end counts as lost.
const PASTE_TIME: Duration = Duration::from_secs(3);

/// Pause before a key that is pressed in a paste: a terminal sends pasted text without pauses.
const PASTE_PAUSE: Duration = Duration::from_millis(100);

/// Lines that are read ahead.
const LINES_AHEAD_MAX: usize = 16;

/// Bytes of a line; the rest is another line.
const LINE_BYTES_MAX: u64 = 10 * 1024 * 1024;

/// Bytes of a line that a terminal hands over at once, without the line feed: of a longer line the rest is lost (the
/// buffer of Linux's `N_TTY`; other systems take no more keys once theirs, which is smaller, is full).
const TERMINAL_LINE_BYTES_MAX: usize = 4_095;

/// Where input comes from.
pub(crate) enum Source {
    Keys {
        keys: Keys,
        /// When something was read last.
        last: Instant,
        /// An ESC that may be the key: it ends a paste unless more bytes follow at once.
        has_escape: bool,
    },
    Lines(mpsc::Receiver<io::Result<Read>>),
    Ended,
}

/// Input that was read.
pub(crate) enum Read {
    Typed(Vec<Typed>),
    Line(String),
    /// A line of which the terminal has lost the end.
    LineCut,
    Ended,
}

impl Source {
    /// The keys of the screen's terminal.
    pub(crate) fn keys() -> Self {
        Self::Keys { keys: Keys::default(), last: Instant::now(), has_escape: false }
    }

    /// The lines of `input`.
    ///
    /// # Errors
    /// If the system has no thread to read them.
    pub(crate) fn lines(input: File) -> Result<Self, NoThread> {
        let (sender, lines) = mpsc::channel(LINES_AHEAD_MAX);
        let read = move || {
            let mut input = BufReader::new(Pieces { input, is_cut: false });
            while let Some(line) = line(&mut input).transpose() {
                // What can't be read once may be an error for ever.
                let is_last = line.is_err();
                if sender.blocking_send(line).is_err() || is_last {
                    return;
                }
            }
        };
        threads::spawn("lines", read)?;
        Ok(Self::Lines(lines))
    }

    /// # Errors
    /// If the terminal is gone, or lines can't be read; then their end comes next.
    pub(super) async fn next(&mut self, screen: &mut Screen) -> io::Result<Read> {
        match self {
            Self::Keys { .. } => {
                let bytes = screen.read().await?;
                if bytes.is_empty() {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
                Ok(Read::Typed(self.typed(&bytes, Instant::now())))
            }
            Self::Lines(lines) => match lines.recv().await {
                Some(read) => read,
                None => {
                    *self = Self::Ended;
                    Ok(Read::Ended)
                }
            },
            Self::Ended => std::future::pending().await,
        }
    }

    /// Parses bytes that were read together into keys.
    fn typed(&mut self, bytes: &[u8], now: Instant) -> Vec<Typed> {
        let Self::Keys { keys, last, has_escape } = self else { return Vec::new() };
        let is_pause = now.duration_since(*last) >= PASTE_PAUSE;
        *last = now;
        *has_escape = is_pause && bytes == b"\x1b";
        match is_pause && keys.is_pasting() && ends_paste(bytes) {
            true => keys.end_paste(),
            false => keys.push(bytes),
        }
    }

    /// The deadline for the rest of an incomplete key sequence.
    pub(super) fn wake_at(&self) -> Option<Instant> {
        match self {
            Self::Keys { keys, last, has_escape } if keys.waits() => {
                let is_paste = keys.is_pasting() && !has_escape;
                Some(*last + if is_paste { PASTE_TIME } else { SEQUENCE_TIME })
            }
            Self::Keys { .. } | Self::Lines(_) | Self::Ended => None,
        }
    }

    /// The incomplete key sequence, after its deadline.
    pub(super) fn give_up(&mut self, now: Instant) -> Vec<Typed> {
        let is_due = self.wake_at().is_some_and(|at| at <= now);
        match self {
            Self::Keys { keys, has_escape: true, .. } if is_due && keys.is_pasting() => {
                keys.end_paste()
            }
            Self::Keys { keys, .. } if is_due => keys.give_up(),
            Self::Keys { .. } | Self::Lines(_) | Self::Ended => Vec::new(),
        }
    }
}

impl Source {
    /// Bytes of an open paste.
    pub(super) fn pasting_bytes(&self) -> Option<usize> {
        match self {
            Self::Keys { keys, .. } => keys.pasting_bytes(),
            Self::Lines(_) | Self::Ended => None,
        }
    }
}

/// Input as it is handed over. A terminal that edits lines hands over at most one at once.
struct Pieces {
    input: File,
    /// A terminal may have cut the last line.
    is_cut: bool,
}

impl io::Read for Pieces {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.input.read(buffer)?;
        let piece = buffer[..count].strip_suffix(b"\n").unwrap_or(&buffer[..count]);
        self.is_cut |= piece.len() >= TERMINAL_LINE_BYTES_MAX && edits_lines(&self.input);
        Ok(count)
    }
}

fn edits_lines(input: &File) -> bool {
    tcgetattr(input).is_ok_and(|modes| modes.local_modes.contains(LocalModes::ICANON))
}

/// The next line, without its end; `None` after the last.
fn line(input: &mut BufReader<Pieces>) -> io::Result<Option<Read>> {
    let mut bytes = Vec::new();
    if input.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', &mut bytes)? == 0 {
        return Ok(None);
    }
    if std::mem::take(&mut input.get_mut().is_cut) {
        return Ok(Some(Read::LineCut));
    }
    let text = String::from_utf8_lossy(&bytes);
    Ok(Some(Read::Line(text.trim_end_matches(['\n', '\r']).to_owned())))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads pieces, each so many milliseconds after the one before; then nothing for as long as something
    /// is waited for.
    fn typed(pieces: &[(u64, &str)]) -> Vec<Typed> {
        let mut now = Instant::now();
        let mut source = Source::Keys { keys: Keys::default(), last: now, has_escape: false };
        let mut typed = Vec::new();
        for (millis, bytes) in pieces {
            now += Duration::from_millis(*millis);
            typed.extend(source.give_up(now));
            typed.extend(source.typed(bytes.as_bytes(), now));
        }
        typed.extend(source.give_up(now + PASTE_TIME));
        typed
    }

    fn paste(text: &str) -> Typed {
        Typed::Paste(text.to_owned())
    }

    #[test]
    fn a_paste_without_an_end_is_ended_by_a_key_or_by_time() {
        let press = |char: char| {
            Typed::Press(crate::tui::terminal::keys::Press::plain(
                crate::tui::terminal::keys::Key::Char(char),
            ))
        };
        for key in ["\x1b", "\x1b[27u", "\x03", "\x1b[99;5u"] {
            let typed = typed(&[(0, "\x1b[200~some text"), (200, key), (200, "x")]);
            assert_eq!(typed, [paste("some text"), press('x')], "{key:?}");
        }
        let by_time = typed(&[(0, "\x1b[200~some"), (2_000, " text"), (3_000, "x")]);
        assert_eq!(by_time, [paste("some text"), press('x')]);
    }

    /// Over a slow connection a paste arrives in pieces, cut anywhere.
    #[test]
    fn a_piece_of_a_paste_is_no_key() {
        let cut = typed(&[(0, "\x1b[200~one"), (500, "\x1b"), (50, "[201~")]);
        assert_eq!(cut, [paste("one")]);
        let control = typed(&[(0, "\x1b[200~a"), (10, "\x03"), (10, "b\x1b[201~")]);
        assert_eq!(control, [paste("a\u{3}b")]);
    }

    #[test]
    fn bytes_of_a_paste_that_goes_on_are_counted() {
        let mut source = Source::keys();
        source.typed(b"x\x1b[200~abcdefgh", Instant::now());
        assert_eq!(source.pasting_bytes(), Some(8));
        source.typed(b"\x1b[201~", Instant::now());
        assert_eq!(source.pasting_bytes(), None);
    }
}
