//! What a terminal with a scrollback shows after it was written to: as much of ECMA-48 and of xterm's
//! sequences as the chat uses.

use std::iter::Peekable;
use std::str::Chars;

/// A terminal.
#[derive(Debug)]
pub(crate) struct Vt {
    pub(crate) written: String,
    columns: usize,
    rows: usize,
    /// The rows that have left the screen, and then those of the screen.
    lines: Vec<Vec<char>>,
    /// The first row of the screen.
    top: usize,
    row: usize,
    column: usize,
    /// Where the cursor was when its place was saved.
    saved: (usize, usize),
    wraps: bool,
    /// What was on the screen before the alternate one.
    other: Option<(Vec<Vec<char>>, usize, usize, usize)>,
    /// Modes that are on, by their numbers.
    pub(crate) modes: Vec<String>,
    /// Keys report all their modifiers: how often it was asked for.
    pub(crate) keyboard: usize,
    pub(crate) clipboard: Option<String>,
}

impl Vt {
    /// A terminal of this size that was empty before `written`.
    pub(crate) fn showing(written: &str, columns: usize, rows: usize) -> Self {
        let mut vt = Self {
            written: written.to_owned(),
            columns,
            rows,
            lines: vec![Vec::new(); rows],
            top: 0,
            row: 0,
            column: 0,
            saved: (0, 0),
            wraps: true,
            other: None,
            modes: Vec::new(),
            keyboard: 0,
            clipboard: None,
        };
        let mut chars = written.chars().peekable();
        while let Some(char) = chars.next() {
            match char {
                '\r' => vt.column = 0,
                '\n' => vt.down(),
                '\u{1b}' => vt.escape(&mut chars),
                '\u{7}' => {}
                '\u{8}' => vt.column = vt.column.saturating_sub(1),
                char => vt.put(char),
            }
        }
        vt
    }

    /// All lines, those of the scrollback first, without blanks at their ends and empty lines at the
    /// end.
    pub(crate) fn text(&self) -> String {
        let lines = self.lines.iter().map(|line| line.iter().collect::<String>());
        let lines: Vec<_> = lines.map(|line| line.trim_end().to_owned()).collect();
        lines.join("\n").trim_end().to_owned()
    }

    fn down(&mut self) {
        if self.row + 1 < self.rows {
            self.row += 1;
        } else {
            self.lines.push(Vec::new());
            self.top += 1;
        }
    }

    fn line(&mut self) -> &mut Vec<char> {
        let at = self.top + self.row;
        &mut self.lines[at]
    }

    fn put(&mut self, char: char) {
        if self.column >= self.columns {
            if self.wraps {
                self.column = 0;
                self.down();
            } else {
                self.column = self.columns - 1;
            }
        }
        let column = self.column;
        let line = self.line();
        if line.len() <= column {
            line.resize(column + 1, ' ');
        }
        line[column] = char;
        self.column += 1;
    }

    fn escape(&mut self, chars: &mut Peekable<Chars<'_>>) {
        match chars.next() {
            Some('[') => {}
            Some(']') => return self.command(chars),
            Some('7') => return self.saved = (self.row, self.column),
            Some('8') => return (self.row, self.column) = self.saved,
            other => panic!("what does ESC {other:?} do?"),
        }
        let mut parameters = String::new();
        while let Some(char) = chars.next_if(|char| !char.is_ascii_alphabetic()) {
            parameters.push(char);
        }
        let number = |usual: usize| parameters.parse().unwrap_or(usual);
        match (chars.next(), parameters.as_str()) {
            (Some('A'), _) => self.row = self.row.saturating_sub(number(1)),
            (Some('B'), _) => self.row = (self.row + number(1)).min(self.rows - 1),
            (Some('C'), _) => self.column = (self.column + number(1)).min(self.columns - 1),
            (Some('H'), place) => {
                let (row, column) = place.split_once(';').unwrap_or(("1", "1"));
                let number = |text: &str| text.parse::<usize>().map_or(0, |number| number - 1);
                (self.row, self.column) = (number(row).min(self.rows - 1), number(column));
            }
            (Some('J'), "2") => {
                for row in 0..self.rows {
                    self.lines[self.top + row].clear();
                }
            }
            (Some('J'), "" | "0") => {
                let column = self.column;
                self.line().truncate(column);
                let below = self.top + self.row + 1;
                self.lines[below..].iter_mut().for_each(Vec::clear);
            }
            (Some('K'), "2") => self.line().clear(),
            (Some('m'), _) => {}
            (Some('h'), mode) => self.mode(mode.trim_start_matches('?'), true),
            (Some('l'), mode) => self.mode(mode.trim_start_matches('?'), false),
            (Some('u'), change) if change.starts_with('>') => self.keyboard += 1,
            (Some('u'), "<") => self.keyboard = self.keyboard.saturating_sub(1),
            (letter, parameters) => panic!("what does {parameters:?} {letter:?} do?"),
        }
    }

    /// An operating system command: the only one is for the clipboard.
    fn command(&mut self, chars: &mut Peekable<Chars<'_>>) {
        let text: String = chars.take_while(|char| *char != '\u{7}').collect();
        let copied = text.strip_prefix("52;c;");
        self.clipboard =
            Some(copied.unwrap_or_else(|| panic!("what does {text:?} do?")).to_owned());
    }

    fn mode(&mut self, mode: &str, is_on: bool) {
        match (mode, is_on) {
            ("7", is_on) => return self.wraps = is_on,
            ("1049", true) if self.other.is_none() => {
                let empty = vec![Vec::new(); self.rows];
                let lines = std::mem::replace(&mut self.lines, empty);
                self.other = Some((lines, self.top, self.row, self.column));
                self.top = 0;
            }
            ("1049", false) => {
                if let Some((lines, top, row, column)) = self.other.take() {
                    (self.lines, self.top, self.row, self.column) = (lines, top, row, column);
                }
            }
            _ => {}
        }
        self.modes.retain(|other| other != mode);
        // The cursor is seen and updates are shown at once unless something else is asked for.
        let usual = mode == "25";
        if is_on != usual {
            self.modes.push(mode.to_owned());
        }
    }
}

#[test]
fn a_terminal_scrolls_wraps_and_moves() {
    let vt = Vt::showing("one\r\ntwo\r\nthree\r\nfour", 3, 3);
    assert_eq!(vt.text(), "one\ntwo\nthr\nee\nfou\nr");
    let vt = Vt::showing("\u{1b}[?7labcd\u{1b}[?7h\r\nx\r\u{1b}[1A\u{1b}[2CZ\r\n\u{1b}[J", 3, 3);
    assert_eq!(vt.text(), "abZ");
    let vt = Vt::showing("kept\u{1b}[?1049h\u{1b}[2J\u{1b}[2;2Hgone\u{1b}[?1049l", 8, 3);
    assert_eq!((vt.text().as_str(), vt.modes.len()), ("kept", 0));
    let vt = Vt::showing("\u{1b}[?2004h\u{1b}[?25l\u{1b}[>1u\u{1b}]52;c;eA==\u{7}", 8, 3);
    assert_eq!((vt.modes, vt.keyboard), (vec!["2004".to_owned(), "25".to_owned()], 1));
    assert_eq!(vt.clipboard.as_deref(), Some("eA=="));
}
