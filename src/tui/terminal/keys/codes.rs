//! Keys by their Unicode codes, as kitty's `CSI u` and xterm's modifyOtherKeys report them.

use super::{Key, Press};

/// The end of the Latin letters (Unicode's blocks up to Latin Extended-B). A keyboard that has them has a key of its
/// own for each ASCII character.
const LATIN_END: u32 = 0x250;

/// The codes of a key (kitty's keyboard protocol, "Key codes").
#[derive(Clone, Copy, Debug)]
pub(super) struct Codes {
    code: u32,
    /// The code with Shift.
    shifted: Option<u32>,
    /// The code of the key in its place on a keyboard of the United States.
    base: Option<u32>,
}

impl Codes {
    /// The codes of a parameter, separated by colons; only the first one is always there.
    pub(super) fn read(parameter: &str) -> Option<Self> {
        let mut codes = parameter.split(':').map(|code| code.parse().ok());
        let code = codes.next().flatten()?;
        Some(Self { code, shifted: codes.next().flatten(), base: codes.next().flatten() })
    }

    /// The key with these modifiers; `None` if it means nothing here.
    pub(super) fn press(self, modifiers: u32) -> Option<Press> {
        let press = Press::modified(key(self.code)?, modifiers)?;
        let Key::Char(char) = press.key else { return Some(press) };
        if press.ctrl || press.alt {
            return Some(self.shortcut(char, press));
        }
        if !press.shift {
            return Some(press);
        }
        let char = self.shifted_sign(char).unwrap_or_else(|| upper(char));
        Some(Press { key: Key::Char(char), shift: false, ..press })
    }

    /// A character with Ctrl or Alt. Without the code of Shift, that of a sign stays as it is.
    fn shortcut(self, char: char, press: Press) -> Press {
        let shifted = self.shifted_sign(char).filter(|_| press.shift);
        let char = self.base_char().or(shifted).unwrap_or(char);
        let shift = press.shift && shifted.is_none();
        match of_control(char).filter(|key| press.ctrl && !(shift && *key == Key::Esc)) {
            Some(key) => Press { key, ctrl: false, shift: false, ..press },
            None if shift && !press.ctrl && upper(char) != char => {
                Press { key: Key::Char(upper(char)), shift: false, ..press }
            }
            None => Press { key: Key::Char(char), shift, ..press },
        }
    }

    /// What a key with a sign has with Shift. A letter is the same key in either case.
    fn shifted_sign(self, char: char) -> Option<char> {
        self.shifted.and_then(printed).filter(|_| !char.is_alphabetic())
    }

    /// The ASCII character at the place of a letter that is not Latin: shortcuts are at the same place on all
    /// keyboards.
    fn base_char(self) -> Option<char> {
        self.base.and_then(printed).filter(|base| self.code >= LATIN_END && base.is_ascii())
    }
}

/// The key of a code.
fn key(code: u32) -> Option<Key> {
    Some(match code {
        13 => Key::Enter,
        27 => Key::Esc,
        9 => Key::Tab,
        127 | 8 => Key::Backspace,
        // Unicode's private characters.
        57344..=63743 => return of_keypad(code),
        code => Key::Char(printed(code)?),
    })
}

/// The key of the numeric keypad: some terminals report its characters, too.
fn of_keypad(code: u32) -> Option<Key> {
    Some(match code {
        57399..=57408 => Key::Char(char::from_digit(code - 57399, 10)?),
        57409 => Key::Char('.'),
        57410 => Key::Char('/'),
        57411 => Key::Char('*'),
        57412 => Key::Char('-'),
        57413 => Key::Char('+'),
        57414 => Key::Enter,
        57415 => Key::Char('='),
        57416 => Key::Char(','),
        57417 => Key::Left,
        57418 => Key::Right,
        57419 => Key::Up,
        57420 => Key::Down,
        57421 => Key::PageUp,
        57422 => Key::PageDown,
        57423 => Key::Home,
        57424 => Key::End,
        57426 => Key::Delete,
        _ => return None,
    })
}

/// The key that other terminals send for this character with Ctrl: it is the same byte.
fn of_control(char: char) -> Option<Key> {
    Some(match char {
        '[' => Key::Esc,
        'h' => Key::Backspace,
        'i' => Key::Tab,
        'm' => Key::Enter,
        _ => return None,
    })
}

fn printed(code: u32) -> Option<char> {
    char::from_u32(code).filter(|char| !char.is_control())
}

fn upper(char: char) -> char {
    char.to_uppercase().next().unwrap_or(char)
}
