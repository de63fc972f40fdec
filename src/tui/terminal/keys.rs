//! Parses the bytes of a terminal into keys and pasted text (ECMA-48, xterm's control sequences, and kitty's
//! keyboard protocol). Pure: the caller reads the bytes and detects pauses.

mod codes;

use codes::Codes;
use std::iter;

/// Most bytes of one paste; the rest of it is dropped, which [`Typed::PasteCut`] says.
pub(crate) const PASTE_BYTES_MAX: usize = 16 * 1024 * 1024;

/// A sequence that is longer than this is none.
const SEQUENCE_BYTES_MAX: usize = 64;

const ESC: u8 = 0x1b;
const PASTE_END: &[u8] = b"\x1b[201~";

/// A key without its modifiers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Key {
    Char(char),
    Enter,
    Esc,
    Tab,
    Backspace,
    Delete,
    Up,
    Down,
    Left,
    Right,
    Home,
    End,
    PageUp,
    PageDown,
    Function(u8),
}

/// A key that was pressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Press {
    pub(crate) key: Key,
    pub(crate) ctrl: bool,
    pub(crate) alt: bool,
    pub(crate) shift: bool,
}

/// A typed key, or pasted text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Typed {
    Press(Press),
    /// Pasted text, with line feeds.
    Paste(String),
    /// The paste before this was longer than [`PASTE_BYTES_MAX`], and has lost its end.
    PasteCut,
    /// The terminal reports a place on the screen, counted from 1.
    Place {
        row: usize,
        column: usize,
    },
    /// The window is looked at from now on, or not any more.
    Focus(bool),
}

impl Typed {
    /// Enter, with or without modifiers: it may be the end of a prompt.
    pub(crate) fn is_enter(&self) -> bool {
        matches!(self, Self::Press(Press { key: Key::Enter, .. }))
    }

    /// Esc or Ctrl-C.
    pub(crate) fn takes_back(&self) -> bool {
        match self {
            Self::Press(press) => press.takes_back(),
            Self::Paste(_) | Self::PasteCut | Self::Place { .. } | Self::Focus(_) => false,
        }
    }
}

/// Parses keys. Bytes that may be the beginning of a sequence are pending.
#[derive(Debug, Default)]
pub(crate) struct Keys {
    bytes: Vec<u8>,
    /// A paste whose end has not come.
    paste: Option<Paste>,
}

/// What has come of a paste.
#[derive(Debug, Default)]
struct Paste {
    /// Its first bytes, at most [`PASTE_BYTES_MAX`].
    bytes: Vec<u8>,
    /// More have come.
    is_cut: bool,
}

/// The first key or sequence of some bytes.
enum Read {
    /// Something that takes so many bytes; `None` if it means nothing here.
    Whole(Option<Press>, usize),
    /// A report of the terminal that takes so many bytes.
    Report(Typed, usize),
    PasteBegins(usize),
    /// More bytes decide.
    Part,
}

impl Press {
    /// A key alone.
    pub(crate) fn plain(key: Key) -> Self {
        Self { key, ctrl: false, alt: false, shift: false }
    }

    /// A letter with Ctrl.
    pub(crate) fn ctrl(char: char) -> Self {
        Self { ctrl: true, ..Self::plain(Key::Char(char)) }
    }

    /// A key with modifiers as xterm and kitty encode them: one more than a sum of 1 for Shift, 2 for Alt, 4 for
    /// Ctrl, 8 for Super, 16 for Hyper, 32 for Meta. With one of the last three a key means nothing here: without
    /// it, Super-Y would be the letter that allows a call.
    fn modified(key: Key, modifiers: u32) -> Option<Self> {
        let bits = modifiers.saturating_sub(1);
        let is_others = bits & 0b11_1000 != 0;
        (!is_others).then_some(Self {
            key,
            shift: bits & 1 != 0,
            alt: bits & 2 != 0,
            ctrl: bits & 4 != 0,
        })
    }

    fn takes_back(&self) -> bool {
        self.key == Key::Esc || *self == Self::ctrl('c')
    }
}

impl Keys {
    /// Reads more bytes.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> Vec<Typed> {
        self.bytes.extend_from_slice(bytes);
        let mut typed = Vec::new();
        loop {
            if self.paste.is_some() {
                match self.paste_goes_on() {
                    Some(paste) => typed.extend(paste.typed()),
                    None => return typed,
                }
            }
            match read(&self.bytes) {
                _ if self.bytes.is_empty() => return typed,
                Read::Whole(press, length) => {
                    self.bytes.drain(..length);
                    typed.extend(press.map(Typed::Press));
                }
                Read::Report(report, length) => {
                    self.bytes.drain(..length);
                    typed.push(report);
                }
                Read::PasteBegins(length) => {
                    self.bytes.drain(..length);
                    self.paste = Some(Paste::default());
                }
                Read::Part => return typed,
            }
        }
    }

    /// Whether something waits for more bytes.
    pub(crate) fn waits(&self) -> bool {
        self.paste.is_some() || !self.bytes.is_empty()
    }

    /// Whether a paste waits for its end.
    pub(crate) fn is_pasting(&self) -> bool {
        self.paste.is_some()
    }

    /// Bytes of a paste whose end has not come.
    pub(crate) fn pasting_bytes(&self) -> Option<usize> {
        self.paste.as_ref().map(|paste| paste.bytes.len() + self.bytes.len())
    }

    /// Ends an open paste. The key that ended it is removed from it.
    pub(crate) fn end_paste(&mut self) -> Vec<Typed> {
        if self.bytes.last() == Some(&ESC) {
            self.bytes.pop();
        }
        self.give_up()
    }

    /// After a pause without input, pending bytes are not an escape sequence; emits them as keys. A paste has lost
    /// its end.
    pub(crate) fn give_up(&mut self) -> Vec<Typed> {
        let bytes = std::mem::take(&mut self.bytes);
        if let Some(mut paste) = self.paste.take() {
            paste.push(&bytes);
            return paste.typed().collect();
        }
        match bytes.split_first() {
            Some((&ESC, rest)) => {
                // The rest can't begin with ESC: that would have been parsed.
                let alt = rest.first().filter(|byte| byte.is_ascii_graphic());
                let key = alt.map_or(Key::Esc, |byte| Key::Char(char::from(*byte)));
                vec![Typed::Press(Press { alt: alt.is_some(), ..Press::plain(key) })]
            }
            Some(_) | None => Vec::new(),
        }
    }

    /// Moves bytes to the paste, which is returned once it has ended.
    fn paste_goes_on(&mut self) -> Option<Paste> {
        let paste = self.paste.as_mut()?;
        let end = self.bytes.windows(PASTE_END.len()).position(|bytes| bytes == PASTE_END);
        // The input may end within the end marker.
        let until = end.unwrap_or(self.bytes.len().saturating_sub(PASTE_END.len() - 1));
        paste.push(&self.bytes[..until]);
        self.bytes.drain(..until);
        end?;
        self.bytes.drain(..PASTE_END.len());
        self.paste.take()
    }
}

impl Paste {
    /// Takes more bytes, as far as there is room.
    fn push(&mut self, bytes: &[u8]) {
        let room = PASTE_BYTES_MAX.saturating_sub(self.bytes.len()).min(bytes.len());
        self.bytes.extend_from_slice(&bytes[..room]);
        self.is_cut |= room < bytes.len();
    }

    fn typed(&self) -> impl Iterator<Item = Typed> + use<> {
        let cut = self.is_cut.then_some(Typed::PasteCut);
        iter::once(Typed::Paste(pasted(&self.bytes))).chain(cut)
    }
}

/// Whether `bytes`, read together, are a key that ends a paste: Ctrl-C, or Esc as it is sent where keys have
/// all their modifiers. Elsewhere Esc is one byte, which may as well begin the end of the paste.
pub(crate) fn ends_paste(bytes: &[u8]) -> bool {
    match read(bytes) {
        Read::Whole(Some(press), length) => length == bytes.len() && press.takes_back(),
        Read::Whole(None, _) | Read::Report(..) | Read::PasteBegins(_) | Read::Part => false,
    }
}

/// Pasted text: terminals send a carriage return where a line ends.
fn pasted(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).replace("\r\n", "\n").replace('\r', "\n")
}

fn read(bytes: &[u8]) -> Read {
    match bytes {
        [] | [ESC] => Read::Part,
        [ESC, b'[', rest @ ..] => control_sequence(rest),
        [ESC, b'O', rest @ ..] => single_shift(rest),
        [ESC, ESC, ..] => Read::Whole(Some(Press::plain(Key::Esc)), 1),
        [ESC, rest @ ..] => match read(rest) {
            Read::Whole(press, length) => {
                Read::Whole(press.map(|press| Press { alt: true, ..press }), length + 1)
            }
            Read::Report(report, length) => Read::Report(report, length + 1),
            Read::PasteBegins(length) => Read::PasteBegins(length + 1),
            Read::Part => Read::Part,
        },
        [byte, ..] if byte.is_ascii() => Read::Whole(control(*byte), 1),
        _ => character(bytes),
    }
}

fn control(byte: u8) -> Option<Press> {
    let letter = |offset: u8| Press::ctrl(char::from(byte + offset));
    Some(match byte {
        b'\r' => Press::plain(Key::Enter),
        b'\t' => Press::plain(Key::Tab),
        0x7f | 0x08 => Press::plain(Key::Backspace),
        0 => Press::ctrl(' '),
        1..=26 => letter(b'a' - 1),
        0x1c..=0x1f => letter(b'4' - 0x1c),
        byte => Press::plain(Key::Char(char::from(byte))),
    })
}

/// A character of several bytes. Invalid UTF-8 is ignored, byte by byte.
fn character(bytes: &[u8]) -> Read {
    let length = match bytes[0] {
        0xc2..=0xdf => 2,
        0xe0..=0xef => 3,
        0xf0..=0xf4 => 4,
        _ => return Read::Whole(None, 1),
    };
    let whole = &bytes[..length.min(bytes.len())];
    match std::str::from_utf8(whole) {
        Ok(text) => Read::Whole(text.chars().next().map(|it| Press::plain(Key::Char(it))), length),
        Err(error) if error.error_len().is_none() => Read::Part,
        Err(_) => Read::Whole(None, 1),
    }
}

/// The key after ESC O (SS3).
fn single_shift(rest: &[u8]) -> Read {
    let Some(last) = rest.first() else { return Read::Part };
    let key = match last {
        b'M' => Some(Key::Enter),
        b'P'..=b'S' => Some(Key::Function(last - b'P' + 1)),
        last => arrow(*last),
    };
    match key {
        Some(key) => Read::Whole(Some(Press::plain(key)), 3),
        // Alt with a capital O.
        None => Read::Whole(Some(Press { alt: true, ..Press::plain(Key::Char('O')) }), 2),
    }
}

fn arrow(last: u8) -> Option<Key> {
    Some(match last {
        b'A' => Key::Up,
        b'B' => Key::Down,
        b'C' => Key::Right,
        b'D' => Key::Left,
        b'H' => Key::Home,
        b'F' => Key::End,
        _ => return None,
    })
}

/// The sequence after ESC [ (CSI): parameters and the final byte.
fn control_sequence(rest: &[u8]) -> Read {
    if let [b'M', mouse @ ..] = rest {
        // An unsolicited report of the mouse in its oldest form.
        return if mouse.len() < 3 { Read::Part } else { Read::Whole(None, 6) };
    }
    if let [b'[', function @ ..] = rest {
        return function_of_linux(function);
    }
    let is_end = |byte: &u8| !matches!(byte, 0x20..=0x3f);
    let Some(at) = rest.iter().take(SEQUENCE_BYTES_MAX).position(is_end) else {
        let is_part = rest.len() < SEQUENCE_BYTES_MAX;
        return if is_part { Read::Part } else { Read::Whole(None, rest.len() + 2) };
    };
    let (last, length) = (rest[at], at + 3);
    if !(0x40..=0x7e).contains(&last) {
        // Cut off: the byte begins the next key.
        return Read::Whole(None, length - 1);
    }
    let text = std::str::from_utf8(&rest[..at]).unwrap_or_default();
    let parameters: Vec<&str> = text.split(';').collect();
    // Most parameters have one part.
    let number = |at: usize| parameters.get(at)?.split(':').next()?.parse::<u32>().ok();
    let codes = |at: usize| parameters.get(at).and_then(|parameter| Codes::read(parameter));
    if (last, number(0)) == (b'~', Some(200)) {
        return Read::PasteBegins(length);
    }
    // F3 with modifiers may look the same, and means nothing here.
    if let (b'R', Some(row), Some(column)) = (last, number(0), number(1)) {
        let place = |number: u32| usize::try_from(number).unwrap_or(usize::MAX);
        return Read::Report(Typed::Place { row: place(row), column: place(column) }, length);
    }
    if let (b'I' | b'O', "") = (last, text) {
        return Read::Report(Typed::Focus(last == b'I'), length);
    }
    let modifiers = number(1).unwrap_or(1);
    let press = match last {
        b'~' if number(0) == Some(27) => codes(2).and_then(|codes| codes.press(modifiers)),
        b'~' => number(0).and_then(numbered).and_then(|key| Press::modified(key, modifiers)),
        b'u' => codes(0).and_then(|codes| codes.press(modifiers)),
        b'Z' => Some(Press { shift: true, ..Press::plain(Key::Tab) }),
        b'P'..=b'S' if !text.is_empty() => {
            Press::modified(Key::Function(last - b'P' + 1), modifiers)
        }
        last => arrow(last).and_then(|key| Press::modified(key, modifiers)),
    };
    Read::Whole(press, length)
}

/// The key after ESC [ [, which is F1 to F5 on the console of Linux (console_codes(4)).
fn function_of_linux(rest: &[u8]) -> Read {
    match rest.first() {
        None => Read::Part,
        Some(last @ b'A'..=b'E') => {
            Read::Whole(Some(Press::plain(Key::Function(last - b'A' + 1))), 4)
        }
        Some(_) => Read::Whole(None, 3),
    }
}

/// The key of this number before `~`.
fn numbered(number: u32) -> Option<Key> {
    Some(match number {
        1 | 7 => Key::Home,
        3 => Key::Delete,
        4 | 8 => Key::End,
        5 => Key::PageUp,
        6 => Key::PageDown,
        11..=15 => Key::Function(u8::try_from(number - 10).ok()?),
        17..=21 => Key::Function(u8::try_from(number - 11).ok()?),
        23 | 24 => Key::Function(u8::try_from(number - 12).ok()?),
        _ => return None,
    })
}

#[cfg(test)]
mod tests;
