//! What a terminal with a scrollback shows after it was written to: as much of ECMA-48 and of xterm's
//! sequences as the chat uses. It wraps its lines again when it is resized, as tmux does.

use std::iter::Peekable;
use std::str::Chars;
use unicode_width::UnicodeWidthChar;

/// A terminal.
#[derive(Debug)]
pub(crate) struct Vt {
    pub(crate) written: String,
    columns: usize,
    rows: usize,
    /// The rows that have left the screen, and then those of the screen.
    lines: Vec<Row>,
    /// The first row of the screen.
    top: usize,
    /// Rows that went up because something was written below them; those come back to a higher screen.
    scrolled: usize,
    row: usize,
    column: usize,
    /// Where the cursor was when its place was saved.
    saved: (usize, usize),
    wraps: bool,
    /// What was on the screen before the alternate one.
    other: Option<(Vec<Row>, usize, usize, usize)>,
    /// Modes that are on, by their numbers.
    pub(crate) modes: Vec<String>,
    /// Keys report all their modifiers: how often it was asked for.
    pub(crate) keyboard: usize,
    pub(crate) clipboard: Option<String>,
    /// The target of the link that is open; blank if none is.
    target: String,
    /// The texts that are links, with their targets.
    pub(crate) links: Vec<(String, String)>,
    /// What the terminal has answered to questions.
    pub(crate) answers: String,
}

/// A row. A wide character has an empty cell after its own.
#[derive(Clone, Debug, Default, PartialEq)]
struct Row {
    cells: Vec<String>,
    /// The line goes on in the next row.
    is_wrapped: bool,
}

impl Row {
    /// The columns of the cell at this place: two if it is wide.
    fn columns_at(&self, at: usize) -> usize {
        if self.cells.get(at + 1).is_some_and(String::is_empty) { 2 } else { 1 }
    }

    fn text(&self) -> String {
        self.cells.concat()
    }
}

impl Vt {
    /// An empty terminal.
    pub(crate) fn new(columns: usize, rows: usize) -> Self {
        Self {
            written: String::new(),
            columns,
            rows,
            lines: vec![Row::default(); rows],
            top: 0,
            scrolled: 0,
            row: 0,
            column: 0,
            saved: (0, 0),
            wraps: true,
            other: None,
            modes: Vec::new(),
            keyboard: 0,
            clipboard: None,
            target: String::new(),
            links: Vec::new(),
            answers: String::new(),
        }
    }

    /// A terminal of this size that was empty before `written`.
    pub(crate) fn showing(written: &str, columns: usize, rows: usize) -> Self {
        let mut vt = Self::new(columns, rows);
        vt.write(written);
        vt
    }

    /// Shows what a program writes; no sequence may be cut.
    pub(crate) fn write(&mut self, text: &str) {
        self.written.push_str(text);
        let mut chars = text.chars().peekable();
        while let Some(char) = chars.next() {
            match char {
                '\r' => self.column = 0,
                '\n' => self.down(),
                '\u{1b}' => self.escape(&mut chars),
                '\u{7}' => {}
                '\u{8}' => self.column = self.column.saturating_sub(1),
                char => self.put(char),
            }
        }
    }

    /// All rows, those of the scrollback first, without blanks at their ends and empty ones at the end.
    pub(crate) fn text(&self) -> String {
        joined(self.lines.iter().map(Row::text))
    }

    /// The rows of the screen.
    pub(crate) fn screen(&self) -> String {
        joined(self.lines[self.top..].iter().map(Row::text))
    }

    /// The row and the column of the cursor on the screen.
    pub(crate) fn cursor(&self) -> (usize, usize) {
        (self.row, self.column)
    }

    /// All lines, as they were before they were wrapped.
    pub(crate) fn lines(&self) -> String {
        let mut lines = vec![String::new()];
        for row in &self.lines {
            if let Some(line) = lines.last_mut() {
                line.push_str(&row.text());
            }
            if !row.is_wrapped {
                lines.push(String::new());
            }
        }
        joined(lines.into_iter())
    }

    /// Another size. As in tmux: a lower screen first loses the rows below the cursor; then lines are wrapped
    /// again, and the last rows are on the screen.
    pub(crate) fn resize(&mut self, columns: usize, rows: usize) {
        let mut cursor = self.top + self.row;
        if rows < self.rows {
            let needed = self.rows - rows;
            let below = needed.min(self.rows - 1 - self.row);
            self.lines.truncate(self.lines.len() - below);
            self.scrolled += needed - below;
        } else {
            let back = self.scrolled.min(rows - self.rows);
            self.scrolled -= back;
            let added = rows - self.rows - back;
            self.lines.extend(vec![Row::default(); added]);
        }
        self.rows = rows;
        if columns != self.columns {
            cursor = self.reflow(columns, cursor);
        }
        self.lines.extend(vec![Row::default(); rows.saturating_sub(self.lines.len())]);
        self.top = self.lines.len() - rows;
        self.scrolled = self.scrolled.min(self.top);
        // A cursor that is above the screen goes to its first cell.
        if cursor < self.top {
            self.column = 0;
        }
        self.row = cursor.saturating_sub(self.top);
    }

    /// Wraps all lines for so many columns; gives the row of the cursor.
    fn reflow(&mut self, columns: usize, cursor: usize) -> usize {
        self.columns = columns;
        let mut rows = Vec::new();
        let (mut place, mut start) = (cursor, 0);
        while start < self.lines.len() {
            let wrapped = self.lines[start..].iter().take_while(|row| row.is_wrapped).count();
            let end = (start + wrapped + 1).min(self.lines.len());
            let line = &self.lines[start..end];
            let first = rows.len();
            rows.extend(split(line, columns));
            if (start..end).contains(&cursor) {
                let place_in_line = column_of(line, cursor - start, self.column);
                (place, self.column) = place_of(&rows[first..], place_in_line);
                place += first;
            }
            start = end;
        }
        self.lines = rows;
        place
    }

    fn down(&mut self) {
        if self.row + 1 < self.rows {
            self.row += 1;
        } else {
            self.lines.push(Row::default());
            self.top += 1;
            self.scrolled += 1;
        }
    }

    fn line(&mut self) -> &mut Row {
        let at = self.top + self.row;
        &mut self.lines[at]
    }

    fn put(&mut self, char: char) {
        if !self.target.is_empty() {
            match self.links.last_mut().filter(|(_, target)| *target == self.target) {
                Some((text, _)) => text.push(char),
                None => self.links.push((char.to_string(), self.target.clone())),
            }
        }
        let columns = char.width().unwrap_or(0);
        if columns == 0 {
            // It belongs to the character before it.
            let at = self.column.saturating_sub(1);
            if let Some(cell) = self.line().cells[..=at].iter_mut().rfind(|cell| !cell.is_empty()) {
                cell.push(char);
            }
            return;
        }
        if self.column + columns > self.columns {
            if self.wraps {
                self.line().is_wrapped = true;
                self.column = 0;
                self.down();
            } else {
                return;
            }
        }
        let column = self.column;
        let line = self.line();
        if line.cells.len() < column + columns {
            line.cells.resize(column + columns, " ".to_owned());
        }
        line.cells[column] = char.to_string();
        if columns == 2 {
            line.cells[column + 1].clear();
        }
        self.column += columns;
    }

    fn escape(&mut self, chars: &mut Peekable<Chars<'_>>) {
        match chars.next() {
            Some('[') => {}
            Some(']') => return self.command(chars),
            Some('7') => return self.saved = (self.row, self.column),
            Some('8') => {
                (self.row, self.column) = self.saved;
                self.row = self.row.min(self.rows - 1);
                return;
            }
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
                self.row = number(row).min(self.rows - 1);
                self.column = number(column).min(self.columns - 1);
            }
            (Some('J'), "2") => self.erase(0, self.rows),
            (Some('J'), "" | "0") => {
                let column = self.column;
                self.line().cells.truncate(column);
                self.erase(self.row + 1, self.rows);
            }
            (Some('K'), "2") => self.erase(self.row, self.row + 1),
            (Some('m'), _) => {}
            (Some('n'), "6") => {
                let column = (self.column + 1).min(self.columns);
                self.answers.push_str(&format!("\u{1b}[{};{column}R", self.row + 1));
            }
            (Some('h'), mode) => self.mode(mode.trim_start_matches('?'), true),
            (Some('l'), mode) => self.mode(mode.trim_start_matches('?'), false),
            (Some('u'), change) if change.starts_with('>') => self.keyboard += 1,
            (Some('u'), "<") => self.keyboard = self.keyboard.saturating_sub(1),
            (letter, parameters) => panic!("what does {parameters:?} {letter:?} do?"),
        }
    }

    /// Empties rows of the screen. What stands before them is no part of their lines any more.
    fn erase(&mut self, from: usize, to: usize) {
        for row in self.top + from..self.top + to {
            self.lines[row] = Row::default();
            if let Some(before) = row.checked_sub(1) {
                self.lines[before].is_wrapped = false;
            }
        }
    }

    /// An operating system command: one is for the clipboard, and a notification changes nothing.
    fn command(&mut self, chars: &mut Peekable<Chars<'_>>) {
        let mut text = String::new();
        while let Some(char) = chars.next().filter(|char| *char != '\u{7}') {
            if char == '\u{1b}' {
                assert_eq!(chars.next(), Some('\\'), "a sequence within a sequence");
                break;
            }
            text.push(char);
        }
        if text.starts_with("9;") {
            return;
        }
        if let Some(target) = text.strip_prefix("8;;") {
            assert!(target.chars().all(|char| char.is_ascii_graphic()), "{target:?}");
            self.target = target.to_owned();
            return;
        }
        let copied = text.strip_prefix("52;c;");
        self.clipboard =
            Some(copied.unwrap_or_else(|| panic!("what does {text:?} do?")).to_owned());
    }

    fn mode(&mut self, mode: &str, is_on: bool) {
        match (mode, is_on) {
            ("7", is_on) => return self.wraps = is_on,
            ("1049", true) if self.other.is_none() => {
                let empty = vec![Row::default(); self.rows];
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

/// Rows without blanks at their ends, and without empty ones at the end.
fn joined(rows: impl Iterator<Item = String>) -> String {
    let rows: Vec<_> = rows.map(|row| row.trim_end().to_owned()).collect();
    rows.join("\n").trim_end().to_owned()
}

/// The rows of one line in so many columns.
fn split(line: &[Row], columns: usize) -> Vec<Row> {
    let mut rows = vec![Row::default()];
    for row in line {
        let mut at = 0;
        while at < row.cells.len() {
            let wide = row.columns_at(at);
            if rows.last().is_some_and(|row| row.cells.len() + wide > columns) {
                rows.last_mut().expect("a row").is_wrapped = true;
                rows.push(Row::default());
            }
            let cells = row.cells[at..at + wide].iter().cloned();
            rows.last_mut().expect("a row").cells.extend(cells);
            at += wide;
        }
    }
    rows.last_mut().expect("a row").is_wrapped = line.last().is_some_and(|row| row.is_wrapped);
    rows
}

/// The column in the whole line of a place in one of its rows; `None` is its end.
fn column_of(line: &[Row], row: usize, column: usize) -> Option<usize> {
    let before: usize = line[..row].iter().map(|row| row.cells.len()).sum();
    (column < line[row].cells.len()).then_some(before + column)
}

fn place_of(rows: &[Row], column: Option<usize>) -> (usize, usize) {
    let end = (rows.len() - 1, rows.last().map_or(0, |row| row.cells.len()));
    let Some(mut column) = column else { return end };
    for (number, row) in rows.iter().enumerate() {
        if column < row.cells.len() {
            return (number, column);
        }
        column -= row.cells.len();
    }
    end
}

#[test]
fn a_terminal_scrolls_wraps_and_moves() {
    let vt = Vt::showing("one\r\ntwo\r\nthree\r\nfour", 3, 3);
    assert_eq!(vt.text(), "one\ntwo\nthr\nee\nfou\nr");
    assert_eq!(
        (vt.screen().as_str(), vt.lines().as_str()),
        ("ee\nfou\nr", "one\ntwo\nthree\nfour")
    );
    let vt = Vt::showing("\u{1b}[?7labcd\u{1b}[?7h\r\nx\r\u{1b}[1A\u{1b}[2CZ\r\n\u{1b}[J", 3, 3);
    assert_eq!(vt.text(), "abZ");
    let vt = Vt::showing("kept\u{1b}[?1049h\u{1b}[2J\u{1b}[2;2Hgone\u{1b}[?1049l", 8, 3);
    assert_eq!((vt.text().as_str(), vt.modes.len()), ("kept", 0));
    let vt = Vt::showing("\u{1b}[?2004h\u{1b}[?25l\u{1b}[>5u\u{1b}]52;c;eA==\u{7}", 8, 3);
    assert_eq!((vt.modes, vt.keyboard), (vec!["2004".to_owned(), "25".to_owned()], 1));
    assert_eq!(vt.clipboard.as_deref(), Some("eA=="));
    let vt = Vt::showing("日本\u{1b}[6n\u{1b}[9;9H\u{1b}[6n", 8, 3);
    assert_eq!((vt.written.len(), vt.answers.as_str()), (20, "\u{1b}[1;5R\u{1b}[3;8R"));
}

#[test]
fn a_terminal_that_is_resized_wraps_its_lines_again() {
    let mut vt = Vt::showing("one two three\r\n日本語\r\n> x", 20, 4);
    vt.resize(5, 4);
    assert_eq!(vt.text(), "one t\nwo th\nree\n日本\n語\n> x");
    assert_eq!((vt.screen().as_str(), vt.cursor()), ("日本\n語\n> x", (2, 3)));
    vt.resize(20, 2);
    assert_eq!(vt.screen(), "日本語\n> x");
    vt.resize(20, 5);
    assert_eq!((vt.screen().as_str(), vt.row), ("one two three\n日本語\n> x", 2));
}
