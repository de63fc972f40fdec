//! What a terminal shows after it was written to: as much of ECMA-48 as the program uses.

use std::iter::Peekable;
use std::str::Chars;

/// The rows of a terminal.
#[derive(Debug)]
pub(crate) struct Screen {
    columns: usize,
    rows: Vec<Vec<char>>,
    row: usize,
    column: usize,
}

impl Screen {
    /// A terminal of so many columns that was empty before `written`.
    pub(crate) fn showing(written: &str, columns: usize) -> Self {
        let mut screen = Self { columns, rows: vec![Vec::new()], row: 0, column: 0 };
        let mut chars = written.chars().peekable();
        while let Some(char) = chars.next() {
            match char {
                '\r' => screen.column = 0,
                '\n' => screen.next_row(),
                '\u{1b}' => screen.sequence(&mut chars),
                char => screen.put(char),
            }
        }
        screen
    }

    /// All that is shown, as one text: what was wrapped is in one piece.
    pub(crate) fn text(&self) -> String {
        self.rows.iter().flatten().collect()
    }

    /// Rows with something on them.
    pub(crate) fn rows(&self) -> usize {
        self.rows.iter().filter(|row| row.iter().any(|char| *char != ' ')).count()
    }

    fn next_row(&mut self) {
        self.row += 1;
        if self.row == self.rows.len() {
            self.rows.push(Vec::new());
        }
    }

    fn put(&mut self, char: char) {
        if self.column == self.columns {
            self.next_row();
            self.column = 0;
        }
        let row = &mut self.rows[self.row];
        if row.len() <= self.column {
            row.resize(self.column + 1, ' ');
        }
        row[self.column] = char;
        self.column += 1;
    }

    /// A control sequence: parameters, and the letter that says what it does.
    fn sequence(&mut self, chars: &mut Peekable<Chars<'_>>) {
        assert_eq!(chars.next(), Some('['), "a control sequence");
        let mut parameters = String::new();
        while let Some(char) = chars.next_if(|char| !char.is_ascii_alphabetic()) {
            parameters.push(char);
        }
        match (chars.next(), parameters.as_str()) {
            (Some('K'), "2") => self.rows[self.row].clear(),
            (Some('m'), _) => {}
            (letter, _) => panic!("what does {parameters:?} {letter:?} do?"),
        }
    }
}

#[test]
fn a_screen_wraps_and_clears() {
    let screen = Screen::showing("abcd\refg\r\n12\r\u{1b}[2K34567", 4);
    assert_eq!(screen.text(), "efgd34567");
    assert_eq!(screen.rows(), 3);
    assert_eq!(Screen::showing("\u{1b}[32mab\r\u{1b}[2K", 4).rows(), 0);
}
