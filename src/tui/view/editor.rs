//! The text that is being written, with the cursor in it.

use super::look::{Look, Part};
use crate::tui::input::Editor;
use crate::tui::text::{Line, Span, cut, width};

/// The rows of an editor, and where the cursor is.
#[derive(Debug)]
pub(super) struct Written {
    pub(super) lines: Vec<Line>,
    pub(super) row: usize,
    pub(super) column: usize,
}

/// Draws at most `rows_max` rows of the text, among them that of the cursor.
pub(super) fn written(editor: &Editor, look: &Look, columns: usize, rows_max: usize) -> Written {
    // A column stays free for the cursor at the end of a full row.
    let (sign, indent) = if columns > 8 { ("> ", "  ") } else { ("", "") };
    let room = columns.saturating_sub(width(sign) + 1).max(1);
    let (shown, cursor) = editor.shown();
    let text = visible(&shown);
    let cursor = visible(&shown[..cursor]).len();
    let mut rows = Vec::new();
    let (mut row, mut column) = (0, 0);
    let mut start = 0;
    for line in text.split('\n') {
        for range in cut(line, room) {
            let at = start + range.start..start + range.end;
            // At the border of two rows the cursor is at the beginning of the later one.
            if at.start <= cursor && cursor <= at.end {
                row = rows.len();
                column = width(sign) + width(&text[at.start..cursor]);
            }
            rows.push(at);
        }
        start += line.len() + 1;
    }
    let first = (row + 1).saturating_sub(rows_max.max(1));
    let lines = rows.iter().enumerate().skip(first).take(rows_max.max(1)).map(|(number, at)| {
        let before = if number == 0 { sign } else { indent };
        let before = Span::styled(before, look.style(Part::Prompt));
        Line::from(vec![before, Span::raw(text[at.clone()].to_owned())])
    });
    Written { lines: lines.collect(), row: row - first, column }
}

/// The text with a visible sign for each control character, so that the text before the cursor does not
/// depend on the text after it.
fn visible(text: &str) -> String {
    let sign = |char: char| match char {
        '\n' => '\n',
        '\t' => ' ',
        '\u{61c}'
        | '\u{200b}'
        | '\u{200e}'
        | '\u{200f}'
        | '\u{202a}'..='\u{202e}'
        | '\u{2066}'..='\u{2069}' => '�',
        char if char.is_control() => '�',
        char => char,
    };
    text.chars().map(sign).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tui::input::Move;
    use crate::tui::markdown::{Colours, Theme, Tone};

    #[test]
    fn the_cursor_is_where_the_next_character_goes() {
        let look = Look::new(Theme { tone: Tone::Dark, colours: Colours::Plain, has_links: false });
        let check = |text: &str, columns, rows, expected: (usize, usize, usize)| {
            let mut editor = Editor::default();
            editor.set(text.to_owned());
            let written = written(&editor, &look, columns, rows);
            assert_eq!((written.lines.len(), written.row, written.column), expected, "{text:?}");
        };
        check("", 20, 5, (1, 0, 2));
        check("ab", 20, 5, (1, 0, 4));
        check("ab\n", 20, 5, (2, 1, 2));
        check("日本", 20, 5, (1, 0, 6));
        check("a\nb\nc\nd", 20, 2, (2, 1, 3));
        check("12345678901234567890", 20, 5, (2, 1, 5));
        check("abc", 1, 5, (3, 2, 1));
        let mut editor = Editor::default();
        editor.set("a\nb\nc\nd".to_owned());
        editor.go(Move::Start);
        assert_eq!(written(&editor, &look, 20, 2).row, 0);
    }
}
