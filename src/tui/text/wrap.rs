//! Lines of a given width: by words for prose, by columns for code.

use super::grapheme_width;
use std::ops::Range;
use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthChar;

/// The columns of a wide character.
const WIDE: usize = 2;

/// Where the lines of `text` are, wrapped by words to `width` columns (at least 1).
///
/// A line breaks at spaces, which are left out, and beside wide characters, whose scripts write no
/// spaces. A word that is wider than a line is cut between graphemes, and a grapheme that is wider than
/// a line between its characters. Only a character that is itself wider than `width` makes a wider line.
/// The text stays in logical order, and there is at least one line.
pub(crate) fn wrap(text: &str, width: usize) -> Vec<Range<usize>> {
    let mut lines = Vec::new();
    let mut start = 0;
    for line in text.split('\n') {
        wrap_line(text, start..start + line.len(), width.max(1), &mut lines);
        start += line.len() + 1;
    }
    lines
}

fn wrap_line(text: &str, line: Range<usize>, width: usize, lines: &mut Vec<Range<usize>>) {
    let mut start = line.start;
    // Where the line may break: the end of what it would keep, and the start of the next.
    let mut place: Option<(usize, usize)> = None;
    let mut column = 0;
    let mut before = "";
    for Part { at, text: part, columns } in parts(&text[line.clone()], width) {
        let at = line.start + at;
        if is_space(part) {
            let end = if is_space(before) { place.map_or(at, |(end, _)| end) } else { at };
            place = Some((end, at + part.len()));
        } else {
            if breaks_between(before, part) {
                place = Some((at, at));
            }
            while column + columns > width && at > start {
                let (end, next) = place.take().filter(|it| it.1 > start).unwrap_or((at, at));
                // Where a line has had nothing but spaces, they are left out.
                if end > start {
                    lines.push(start..end);
                }
                start = next;
                column = super::width(&text[start..at]);
            }
        }
        column += columns;
        before = part;
    }
    let kept = text[start..line.end].trim_end_matches(is_space_character).len();
    lines.push(start..start + kept);
}

/// Where the lines of `text` are if it is cut each `width` columns (at least 1), spaces and all, as
/// [`wrap`] but for words.
pub(crate) fn cut(text: &str, width: usize) -> Vec<Range<usize>> {
    let mut lines = Vec::new();
    let (mut start, mut column) = (0, 0);
    for Part { at, text: part, columns } in parts(text, width) {
        let ends = part == "\n";
        if ends || (column + columns > width.max(1) && at > start) {
            lines.push(start..at);
            start = if ends { at + 1 } else { at };
            column = 0;
        }
        column += columns;
    }
    lines.push(start..text.len());
    lines
}

/// What stays in one line: a grapheme, or a character of one that is wider than a line.
struct Part<'a> {
    /// Where it begins.
    at: usize,
    text: &'a str,
    columns: usize,
}

/// The parts of `text` in lines of `width` columns.
///
/// A grapheme may have any number of columns: marks that take one join what is before them.
fn parts(text: &str, width: usize) -> impl Iterator<Item = Part<'_>> {
    text.grapheme_indices(true).flat_map(move |(start, grapheme)| {
        let columns = grapheme_width(grapheme);
        let is_cut = columns > width.max(WIDE);
        let mut at = 0;
        std::iter::from_fn(move || {
            let rest = &grapheme[at..];
            let text = if is_cut { first_character(rest) } else { rest };
            let columns = if is_cut { grapheme_width(text) } else { columns };
            let part = Part { at: start + at, text, columns };
            at += text.len();
            (!text.is_empty()).then_some(part)
        })
    })
}

/// The first character with those after it that take no column.
fn first_character(text: &str) -> &str {
    let next = text.char_indices().skip(1).find(|(_, character)| character.width() != Some(0));
    &text[..next.map_or(text.len(), |(at, _)| at)]
}

fn is_space(part: &str) -> bool {
    !part.is_empty() && part.chars().all(is_space_character)
}

/// Spaces at which a line may break; those that forbid it are not among them.
fn is_space_character(character: char) -> bool {
    character.is_whitespace() && !matches!(character, '\u{a0}' | '\u{2007}' | '\u{202f}')
}

/// Whether a line may break between two parts that no space separates.
fn breaks_between(before: &str, after: &str) -> bool {
    let (Some(last), Some(first)) = (before.chars().next(), after.chars().next()) else {
        return false;
    };
    if is_space(before) || closes(first) || opens(last) {
        return false;
    }
    is_wide(last) || is_wide(first) || last == '\u{200b}'
}

fn is_wide(character: char) -> bool {
    character.width() == Some(WIDE)
}

/// Punctuation that must not begin a line.
fn closes(character: char) -> bool {
    matches!(character, '、' | '。' | '，' | '．' | '！' | '？' | '：' | '；' | 'ー' | '々')
        || matches!(character, '」' | '』' | '）' | '］' | '｝' | '】' | '〉' | '》' | '〕')
        || matches!(character, '.' | ',' | '!' | '?' | ':' | ';' | ')' | ']' | '}' | '"' | '\'')
}

/// Punctuation that must not end a line.
fn opens(character: char) -> bool {
    matches!(
        character,
        '「' | '『' | '（' | '［' | '｛' | '【' | '〈' | '《' | '〔' | '(' | '[' | '{'
    )
}

#[cfg(test)]
mod tests {
    use super::super::width as text_width;
    use super::*;
    use proptest::prelude::*;

    fn lines(text: &str, width: usize) -> Vec<&str> {
        wrap(text, width).into_iter().map(|range| &text[range]).collect()
    }

    #[test]
    fn prose_breaks_at_words() {
        let rows: [(&str, usize, &[&str]); 16] = [
            ("", 5, &[""]),
            ("one two three", 7, &["one two", "three"]),
            ("one two three", 6, &["one", "two", "three"]),
            ("one   two", 5, &["one", "two"]),
            ("one\n\n two ", 9, &["one", "", " two"]),
            ("    one", 2, &["on", "e"]),
            ("https://example.org/a", 8, &["https://", "example.", "org/a"]),
            ("a extraordinary", 6, &["a", "extrao", "rdinar", "y"]),
            ("読んで、書く。", 7, &["読ん", "で、書", "く。"]),
            ("日本", 1, &["日", "本"]),
            ("👩‍👩‍👧‍👦👍🏽", 2, &["👩‍👩‍👧‍👦", "👍🏽"]),
            ("e\u{301}e\u{301}e\u{301}", 2, &["e\u{301}e\u{301}", "e\u{301}"]),
            ("並\u{abe}", 2, &["並", "\u{abe}"]),
            (
                "क\u{94d}ष\u{93e}\u{93e}\u{901}\u{93e}",
                3,
                &["क\u{94d}ष\u{93e}", "\u{93e}\u{901}\u{93e}"],
            ),
            ("a\u{a0}b c", 3, &["a\u{a0}b", "c"]),
            ("שלום עולם", 5, &["שלום", "עולם"]),
        ];
        for (text, width, expected) in rows {
            assert_eq!(lines(text, width), expected, "{text:?} at {width}");
        }
    }

    #[test]
    fn code_is_cut_by_columns() {
        let text = "  let a = 1;\n\nb";
        let pieces: Vec<_> = cut(text, 8).into_iter().map(|range| &text[range]).collect();
        assert_eq!(pieces, ["  let a ", "= 1;", "", "b"]);
    }

    fn without_spaces(text: &str) -> String {
        text.chars().filter(|character| !is_space_character(*character)).collect()
    }

    proptest! {
        #[test]
        fn no_line_is_wider_and_nothing_is_lost(
            text in " {0,9}[a-z日本。（👩\u{200d}\u{301}🏽 \n\u{a0}ש\u{abe}\u{93e}\u{94d}]{0,40}|\\PC{0,30}",
            width in 1_usize..12,
        ) {
            let wrapped = lines(&text, width);
            let pieces: Vec<_> = cut(&text, width).into_iter().map(|it| &text[it]).collect();
            for line in wrapped.iter().chain(&pieces) {
                let columns = text_width(line);
                let characters = line.chars().filter(|it| it.width().unwrap_or(0) > 0).count();
                let graphemes = line.graphemes(true).filter(|it| grapheme_width(it) > 0).count();
                let is_one = characters <= 1 || (graphemes == 1 && columns <= WIDE);
                prop_assert!(columns <= width || is_one, "{:?} at {}", line, width);
            }
            prop_assert_eq!(without_spaces(&wrapped.concat()), without_spaces(&text));
            prop_assert_eq!(pieces.concat(), text.replace('\n', ""));
        }
    }
}
