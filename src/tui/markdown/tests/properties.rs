//! What holds for every document and every way in which it is cut into pieces.

use super::super::blocks::{self, Before};
use super::*;
use crate::tui::text::width;
use proptest::prelude::*;
use proptest::sample::{Index, select};

/// Lines and parts of lines of which documents are made at random.
const PARTS: [&str; 44] = [
    "\n",
    "\n",
    "\n",
    "\n\n",
    "text",
    "more text\n",
    "word ",
    "- item\n",
    "- ",
    "  - nested\n",
    "* x\n",
    "1. one\n",
    "2) two\n",
    "10. ten\n",
    "   ",
    "    code\n",
    "\t",
    "```rust\n",
    "```\n",
    "~~~\n",
    "`",
    "> quote\n",
    "> ",
    "===\n",
    "---\n",
    "* * *\n",
    "# Heading\n",
    "| a | b |\n",
    "|---|:-:|\n",
    "| 1 | 2 |\n",
    "a | b\n",
    "<div>\n",
    "<!-- x\n",
    "-->\n",
    "**bold",
    "_em_ ",
    "[l](u) ",
    "![i](j)",
    "- [ ] task\n",
    "\\",
    "&#27;",
    "日本",
    "\r\n",
    "<br>",
];

fn document() -> impl Strategy<Value = String> {
    let part = prop_oneof![9 => select(&PARTS[..]), 1 => Just("[r]: /u\n")];
    proptest::collection::vec(part, 0..24).prop_map(|parts| parts.concat())
}

/// Definitions that come later change links in a whole document, but nothing in a stream.
fn document_without_definitions() -> impl Strategy<Value = String> {
    proptest::collection::vec(select(&PARTS[..]), 0..24).prop_map(|parts| parts.concat())
}

/// What a reader shows now: what it has closed, then what is open.
fn shown(markdown: &mut Markdown, closed: &mut Vec<Block>) -> Vec<Block> {
    closed.extend(markdown.take_closed());
    closed.iter().cloned().chain(markdown.open()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn cuts_change_nothing(document in document(), cuts in proptest::collection::vec(any::<Index>(), 0..6)) {
        let ends: Vec<_> = document.char_indices().map(|(at, _)| at).chain([document.len()]).collect();
        let mut cuts: Vec<_> = cuts.iter().map(|cut| *cut.get(&ends)).collect();
        cuts.sort_unstable();
        cuts.push(document.len());
        let (mut markdown, mut closed) = (Markdown::default(), Vec::new());
        let mut start = 0;
        for end in cuts {
            markdown.push(&document[start..end]);
            let (mut whole, mut whole_closed) = (Markdown::default(), Vec::new());
            whole.push(&document[..end]);
            let shown_now = shown(&mut markdown, &mut closed);
            prop_assert_eq!(shown_now, shown(&mut whole, &mut whole_closed));
            prop_assert_eq!(&closed, &whole_closed);
            start = end;
        }
        markdown.finish();
        closed.extend(markdown.take_closed());
        prop_assert_eq!(closed, read(&document));
        prop_assert!(markdown.open().is_empty());
    }

    #[test]
    fn what_is_closed_is_what_the_whole_document_says(document in document_without_definitions()) {
        // In code, the parser takes a tab that ends a document for a line, but not spaces.
        let document = document.trim_end_matches([' ', '\t']).replace("\r\n", "\n");
        let whole = blocks::read(&document, Before::default());
        let whole: Vec<_> = whole.into_iter().flat_map(|top| top.blocks).collect();
        prop_assert_eq!(read(&document), whole, "{:?}", document);
    }

    #[test]
    fn no_line_is_wider_than_the_screen(document in document(), width in 2_usize..50) {
        for theme in [DARK, PLAIN] {
            for line in draw(&read(&document), width, &theme) {
                prop_assert!(line.width() <= width, "{:?}", line);
            }
        }
    }

    #[test]
    fn any_bytes_can_be_read(bytes in proptest::collection::vec(any::<u8>(), 0..300), columns in 1_usize..30) {
        let document = String::from_utf8_lossy(&bytes).into_owned();
        for line in draw(&read(&document), columns, &DARK) {
            let one = line.spans.iter().map(|span| width(&span.content)).filter(|it| *it > 0).count() <= 1;
            prop_assert!(line.width() <= columns || one);
        }
    }

    #[test]
    fn every_word_is_shown(
        shapes in proptest::collection::vec(select(&SHAPES[..]), 1..12),
        width in 3_usize..60,
    ) {
        let mut words = Vec::new();
        let mut document = String::new();
        for shape in shapes {
            for part in shape.split_inclusive('W') {
                document.push_str(part.trim_end_matches('W'));
                if part.ends_with('W') {
                    words.push(format!("w{}w", words.len()));
                    document.push_str(&words[words.len() - 1]);
                }
            }
        }
        let drawn: String = picture(&document, width, &DARK).split_whitespace().collect();
        for word in words {
            prop_assert!(drawn.contains(&word), "{:?} in {:?}", word, document);
        }
    }
}

/// Tables with rows of any length, also of more than is kept open of a block. The cells have words that are told
/// apart.
fn long_tables() -> impl Strategy<Value = String> {
    let row = prop_oneof![6 => 1..8_usize, 2 => 40..90_usize, 1 => 500..3_000_usize];
    proptest::collection::vec(row, 1..70).prop_map(|rows| {
        let (mut document, mut number) = ("| head | line |\n|---|---|\n".to_owned(), 0);
        for count in rows {
            let words: Vec<_> = (number..number + count).map(|at| format!("w{at}x")).collect();
            number += count;
            document.push_str(&format!("| {} | cell |\n", words.join(" ")));
        }
        document
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(30))]

    #[test]
    fn a_table_with_rows_of_any_length_is_shown_once(
        document in long_tables(), cuts in proptest::collection::vec(any::<Index>(), 0..6),
    ) {
        let mut markdown = Markdown::default();
        cut(&document, &cuts).into_iter().for_each(|piece| markdown.push(piece));
        markdown.finish();
        let blocks = markdown.take_closed();
        prop_assert_eq!(&blocks, &read(&document));
        let drawn = text(&draw(&blocks, 60, &DARK));
        let is_word = |word: &&str| word.starts_with('w') && word.ends_with('x');
        let words: Vec<_> = drawn.split_whitespace().filter(is_word).collect();
        let expected: Vec<_> = document.split_whitespace().filter(is_word).collect();
        prop_assert_eq!(words, expected);
    }
}

/// Documents with words where each `W` is.
const SHAPES: [&str; 16] = [
    "W W\nW\n\n",
    "# W\n",
    "W\n===\n",
    "- W\n  W\n\n  - W\n",
    "1. W\n",
    "> W\n> - W\nW\n\n",
    "```\nW  W\n```\n",
    "    W\n\n",
    "<p W>\nW\n\n",
    "[W](W) ![W](u) `W` <b W>\n\n",
    "**W *W ~~W\n\n",
    "\n[W]: /W 'W'\n\n",
    "- [ ] W\n",
    "\n| W | W |\n|---|---|\n| W | `W` |\n| W | <i>W |\n\n",
    "W<br>W\\\nW  \nW\n\n",
    "> ~~~\n> W\n> ~~~\n\n",
];

/// The lines of a document that streams in these pieces, printed as they settle. After each piece, `also`
/// chooses how many more lines are printed, and the width.
fn printed_as_it_streams(
    pieces: &[&str],
    mut also: impl FnMut(usize) -> (usize, usize),
) -> Vec<Line> {
    let (mut markdown, mut committed) = (Markdown::default(), Committed::default());
    let mut lines = Vec::new();
    let mut width = 40;
    for piece in pieces {
        markdown.push(piece);
        for block in markdown.take_closed() {
            lines.extend(committed.complete(&block, width, &DARK));
        }
        let rest = committed.rest(&markdown.open(), width, &DARK);
        let (more, next_width) = also(rest.lines.len());
        let count = rest.settled_lines().max(more);
        let count = rest.place_after(count).unwrap_or(rest.settled_lines());
        committed.commit(&rest, count);
        lines.extend(rest.lines.into_iter().take(count));
        width = next_width;
    }
    markdown.finish();
    for block in markdown.take_closed() {
        lines.extend(committed.complete(&block, width, &DARK));
    }
    lines
}

fn cut<'a>(document: &'a str, cuts: &[Index]) -> Vec<&'a str> {
    let ends: Vec<_> = document.char_indices().map(|(at, _)| at).chain([document.len()]).collect();
    let mut cuts: Vec<_> = cuts.iter().map(|cut| *cut.get(&ends)).collect();
    cuts.extend([0, document.len()]);
    cuts.sort_unstable();
    cuts.windows(2).map(|pair| &document[pair[0]..pair[1]]).collect()
}

/// Each line is printed once, as soon as the next one begins.
#[test]
fn a_verse_is_printed_line_by_line() {
    let verse = "Roses are red,\nViolets are blue,\n**sugar** is\nsweet.\n";
    let mut markdown = Markdown::default();
    let mut settled = |piece: &str| {
        markdown.push(piece);
        let rest = Committed::default().rest(&markdown.open(), 40, &DARK);
        (rest.lines.len(), rest.settled_lines())
    };
    assert_eq!(settled("Roses are red,"), (1, 0));
    assert_eq!(settled("\n"), (1, 0));
    assert_eq!(settled("Violets"), (2, 1));
    assert_eq!(settled(" are blue,\n"), (2, 1));
    let pieces: Vec<_> = verse.split_inclusive(' ').collect();
    let printed = printed_as_it_streams(&pieces, |_| (0, 40));
    assert_eq!(text(&printed), picture(verse, 40, &DARK));
}

const BEFORE_RUNS: [&str; 10] =
    ["\n\n", "\n\n- ", "\n- ", "\n> ", "\n  - ", " ", " ", " ", "\n", "\n\n## "];

/// Words that are told apart, in blocks and runs of every kind that can go on for several lines. The number of a
/// numbered item is text until its dot is there.
fn numbered() -> impl Strategy<Value = String> {
    let before = select(&BEFORE_RUNS[..]);
    let marks = select(&["", "", "", "", "**", "*", "`", "~~", "_"][..]);
    let run = (before, marks, 1..40_usize);
    proptest::collection::vec(run, 1..12).prop_map(|runs| {
        let (mut document, mut number) = (String::new(), 0);
        for (before, mark, count) in runs {
            let words: Vec<_> = (number..number + count).map(|at| format!("w{at}x")).collect();
            number += count;
            document.push_str(&format!("{before}{mark}{}{mark}", words.join(" ")));
        }
        document
    })
}

/// The letters and digits of lines.
fn letters(lines: &[Line]) -> String {
    text(lines).chars().filter(|char| char.is_alphanumeric()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Lines that were printed before their block was complete are those that the complete block has.
    #[test]
    fn lines_that_settle_do_not_change(
        document in numbered(), cuts in proptest::collection::vec(any::<Index>(), 0..60),
    ) {
        let lines = printed_as_it_streams(&cut(&document, &cuts), |_| (0, 40));
        prop_assert_eq!(text(&lines), picture(&document, 40, &DARK));
    }

    /// Whatever lines are printed early, and whatever the widths, each word is printed once.
    #[test]
    fn a_document_that_is_printed_in_parts_is_printed_once(
        document in numbered(),
        cuts in proptest::collection::vec(any::<Index>(), 0..60),
        choices in proptest::collection::vec((any::<Index>(), any::<bool>(), 12..80_usize), 64),
    ) {
        let mut choices = choices.iter().cycle();
        let lines = printed_as_it_streams(&cut(&document, &cuts), |lines| {
            let (more, prints, width) = choices.next().expect("a choice");
            (if *prints { more.index(lines + 1) } else { 0 }, *width)
        });
        let whole = draw(&read(&document), 40, &DARK);
        prop_assert_eq!(letters(&lines), letters(&whole), "{}", document);
    }

    #[test]
    fn any_document_is_printed_in_parts_without_a_loss(
        document in document_without_definitions(),
        cuts in proptest::collection::vec(any::<Index>(), 0..20),
    ) {
        let lines = printed_as_it_streams(&cut(&document, &cuts), |_| (0, 40));
        let whole = draw(&read(&document), 40, &DARK);
        prop_assert_eq!(letters(&lines), letters(&whole), "{:?}", document);
    }
}
