//! Documents as a person sees them, and as they stream.

use super::*;
use crate::tui::text::Cleaner;
use crate::tui::text::Line;

mod properties;

const DARK: Theme = Theme { tone: Tone::Dark, colours: Colours::True, has_links: false };
const PLAIN: Theme = Theme { tone: Tone::Dark, colours: Colours::Plain, has_links: false };

fn read(document: &str) -> Vec<Block> {
    let mut markdown = Markdown::default();
    markdown.push(document);
    markdown.finish();
    markdown.take_closed()
}

fn draw(blocks: &[Block], width: usize, theme: &Theme) -> Vec<Line> {
    blocks.iter().flat_map(|block| render(block, width, theme)).collect()
}

fn text(lines: &[Line]) -> String {
    let line =
        |line: &Line| line.spans.iter().map(|span| &*span.content).collect::<String>() + "\n";
    lines.iter().map(line).collect()
}

fn picture(document: &str, width: usize, theme: &Theme) -> String {
    text(&draw(&read(document), width, theme))
}

#[test]
fn code_blocks_are_found_without_their_fences() {
    let check = |markdown: &str, expected: &[&str]| {
        assert_eq!(code_blocks(markdown), expected, "{markdown:?}");
    };
    check("text", &[]);
    check("a\n```rust\nfn f() {}\n```\nb\n~~~\nx\n~~~\n", &["fn f() {}\n", "x\n"]);
    check("````\n```\n````\n", &["```\n"]);
    check("```\nunfinished", &["unfinished"]);
    check("```\n```\n", &[""]);
    // In an item and in a quote.
    check("1. a\n\n   ```sh\n   ls\n     -l\n   ```\n2. b\n", &["ls\n  -l\n"]);
    check("- ```\n  x\n  ```\n", &["x\n"]);
    check("> ```\n> x\n> ```\n", &["x\n"]);
    // What begins a line and is no fence.
    check("```not code``` is text\n\n```\nx\n```\n", &["x\n"]);
    // It is drawn alike.
    check("a\n\n    x\n    y\n\nb", &["x\ny\n"]);
}

#[test]
fn every_kind_of_block_has_its_picture() {
    let source = include_str!("pictures/source.md");
    let pictures = [
        (20, DARK, include_str!("pictures/20.txt")),
        (40, DARK, include_str!("pictures/40.txt")),
        (80, DARK, include_str!("pictures/80.txt")),
        (80, PLAIN, include_str!("pictures/plain.txt")),
    ];
    for (width, theme, expected) in pictures {
        let drawn = picture(source, width, &theme);
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            let name = if theme == PLAIN { "plain".to_owned() } else { width.to_string() };
            let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/tui/markdown/pictures");
            std::fs::write(format!("{folder}/{name}.txt"), &drawn).expect("a picture is written");
            continue;
        }
        assert_eq!(drawn, expected, "{width} columns, {theme:?}\n{drawn}");
    }
}

/// What LaTeX writes around a formula are escapes in Markdown.
#[test]
fn formulas_are_shown_as_they_are_written() {
    let rows = [
        (r"A \(x^2\) and \[ y \] math.", r"A \(x^2\) and \[ y \] math."),
        (r"\(\{a\}\,b\)\*", r"\(\{a\}\,b\)*"),
        (r"1\) is no list, \*x\* no stress", "1) is no list, *x* no stress"),
        (r"a \\(y) `\(x\)`", r"a \(y) \(x\)"),
        (r"See \(x", r"See \(x"),
        (r"(\(x\)), **\(y\,z\)**", r"(\(x\)), \(y\,z\)"),
        (r"其中\(x\,y\)是", r"其中\(x\,y\)是"),
        (r"array\[0\] but 5 \* 3", "array[0] but 5 * 3"),
        ("See \\(x\nand 5 \\* 3", "See \\(x\nand 5 * 3"),
        ("\\[\na \\, b\n\\]", "\\[\na \\, b\n\\]"),
    ];
    for (document, expected) in rows {
        assert_eq!(picture(document, 40, &DARK), format!("{expected}\n"), "{document:?}");
    }
}

/// Verses, and facts a line each.
#[test]
fn a_line_of_the_source_is_a_line_on_the_screen() {
    let rows = [
        ("Roses are red,\nViolets are blue,\n", "Roses are red,\nViolets are blue,\n"),
        ("**Name:** Ada\n**Born:** 1815\n", "Name: Ada\nBorn: 1815\n"),
        ("- one\n  and more\n- two\n", "• one\n  and more\n• two\n"),
        ("> one\n> two\n", "│ one\n│ two\n"),
        ("a<br>\nb  \nc\\\nd\n", "a\nb\nc\nd\n"),
        ("See [the\ndocs](/x).\n", "See the\ndocs (/x).\n"),
    ];
    for (document, expected) in rows {
        assert_eq!(picture(document, 40, &DARK), expected, "{document:?}");
    }
}

/// Each part of a line with what it looks like, for a look at a few.
fn looks(document: &str, theme: &Theme) -> Vec<(String, String)> {
    let spans = draw(&read(document), 80, theme).into_iter().flat_map(|line| line.spans);
    let name = |role| format!("{:?}", theme.style(role));
    let roles =
        [Role::Title, Role::Strong, Role::InlineCode, Role::Link, Role::Address, Role::Marker];
    let spans = spans.map(|span| {
        let look = format!("{:?}", span.style);
        let role = roles.iter().find(|role| name(**role) == look);
        (span.content, role.map_or(String::new(), |role| format!("{role:?}")))
    });
    spans.collect()
}

#[test]
fn parts_look_like_what_they_are() {
    let parts = looks("- a **b** `c` [d](e)", &DARK);
    let expected = [
        ("• ", "Marker"),
        ("a ", ""),
        ("b", "Strong"),
        (" ", ""),
        ("c", "InlineCode"),
        (" ", ""),
        ("d", "Link"),
        (" ", ""),
        ("(e)", "Address"),
    ];
    let expected = expected.map(|(text, look)| (text.to_owned(), look.to_owned()));
    assert_eq!(parts, expected);
    for theme in [DARK, PLAIN] {
        let title = &looks("# T", &theme)[usize::from(theme == PLAIN)];
        assert_eq!(title.0, "T", "{theme:?}");
    }
    let lines = draw(&read("# a\n*b* `c`\n> - d\n\n```rust\nfn\n```\n"), 80, &PLAIN);
    let mut spans = lines.iter().flat_map(|line| &line.spans);
    assert!(spans.all(|span| span.style == ratatui_core::style::Style::new()));
}

#[test]
fn what_the_terminal_would_obey_is_not_in_any_block() {
    let bad = "\x1b[2J\x1b]52;c;aGk=\x07\u{202e}\u{9b}x&#27;[1m&#x9b;&#x202e;";
    let document = format!(
        "# {bad}\n- {bad}\n> {bad}\n\n|{bad}|\n|-|\n|{bad}|\n\n```{bad}\n{bad}\n```\n[{bad}](<{bad}>)\n\
         ![](<{bad}>) `{bad}` <b {bad}>\n\n<div {bad}>\n\n[{bad}]: <{bad}>\n"
    );
    for width in [5, 80] {
        for line in draw(&read(&document), width, &DARK) {
            for span in &line.spans {
                assert_eq!(Cleaner::default().push(&span.content), *span.content, "{line:?}");
            }
        }
    }
}

#[test]
fn definitions_and_references_are_shown_as_they_are_written() {
    let rows = [
        ("[a][1]\n\nb\n\n[1]: /x\n", "[a][1]\n\nb\n\n[1]: /x\n"),
        ("- a\n\n  [1]: /x\n- b\n\nc\n", "• a\n\n  [1]: /x\n• b\n\nc\n"),
        ("> a\n>\n> [1]: /x\n", "│ a\n│\n│ [1]: /x\n"),
        ("[1]: /x\n[2]: /y\ntext\n", "[1]: /x\n[2]: /y\n\ntext\n"),
        ("a[^1]\n\n[^1]: Note it.\n", "a[^1]\n\n[^1]: Note it.\n"),
        ("![plot](a.png) ![](b.png)\n", "plot (a.png) b.png\n"),
    ];
    for (document, expected) in rows {
        assert_eq!(picture(document, 40, &DARK), expected, "{document:?}");
    }
}

#[test]
fn what_is_open_does_not_change_its_look_for_one_piece() {
    let open = |document: &str| {
        let mut markdown = Markdown::default();
        markdown.push(document);
        let mut blocks = markdown.take_closed();
        blocks.extend(markdown.open());
        text(&draw(&blocks, 40, &DARK))
    };
    let rows = [
        ("Text\n-", "Text\n"),
        ("Text\n- ", "Text\n"),
        ("Text\n- a", "Text\n\n• a\n"),
        ("Text\n---\n", "Text\n"),
        ("Text\n``", "Text\n"),
        ("Text\n```ru", "Text\n"),
        ("| a | b |\n|--", ""),
        ("| a | b |\n|---|---|\n", "a  b\n─  ─\n"),
        ("- a\n- b\n1", "• a\n• b\n"),
        ("```\na\nb", "a\nb\n"),
        ("```\na\n```", "a\n"),
        ("Text\n42", "Text\n"),
        ("42", "42\n"),
        // It may define what `[^1]` is, until a second word follows.
        ("Text[^1].\n\n[", "Text[^1].\n"),
        ("Text[^1].\n\n[^1]", "Text[^1].\n"),
        ("Text[^1].\n\n[^1]: The ", "Text[^1].\n"),
        ("Text[^1].\n\n[^1]: The n", "Text[^1].\n\n[^1]: The n\n"),
        ("Text[^1].\n\n[^1]: /url \"ti", "Text[^1].\n"),
        ("Text[^1].\n\n[^1](", "Text[^1].\n\n[^1](\n"),
        ("Text.\n\n[^1]: The", "Text.\n\n[^1]: The\n"),
    ];
    for (document, expected) in rows {
        assert_eq!(open(document), expected, "{document:?}");
    }
}

#[test]
fn blocks_close_as_soon_as_the_next_begins() {
    let closed = |document: &str| {
        let mut markdown = Markdown::default();
        markdown.push(document);
        markdown.take_closed().len()
    };
    let rows = [
        ("a\n\n", 0),
        ("a\n\nb", 0),
        ("a\n\nb\n", 1),
        ("- a\n- b\n- c\n", 2),
        ("```\na\nb\nc", 2),
        ("```\na\n```\n", 1),
        ("# a\n- b\n\nc\n", 2),
    ];
    for (document, expected) in rows {
        assert_eq!(closed(document), expected, "{document:?}");
    }
}

#[test]
fn items_keep_their_numbers_and_markers() {
    assert_eq!(
        picture("1. a\n1. b\n1. c\n\n   d\n1. e", 40, &DARK),
        "1. a\n2. b\n3. c\n\n   d\n4. e\n"
    );
    assert_eq!(picture("1. [x] a", 40, &DARK), "1. [x] a\n");
    assert_eq!(picture("- [x] a\n\n- b", 40, &DARK), "[x] a\n\n• b\n");
    assert_eq!(picture("-\n- ```\n  a\n  ```", 40, &DARK), "•\n•\n  a\n");
    for mark in ["> ", "- ", "1. ", "> - "] {
        let drawn = picture(&(mark.repeat(3000) + "deep"), 40, &DARK);
        assert_eq!(drawn.matches("deep").count(), 1, "{mark}");
    }
}

/// Endless documents, each of one kind of block: how it begins, and what is repeated.
const ENDLESS: [(&str, &str); 15] = [
    ("", "word "),
    ("", "word goes on\n"),
    ("", "1 number and the rest of a line, which no block can begin with, of the usual length\n"),
    ("```rust\n", "let x = 1; // note\n"),
    ("```\n", "x"),
    ("", "- item with *some* text\n"),
    ("", "> a line of a quote that goes on and on, and never ends, but has the usual length\n"),
    ("", "    indented code that goes on and on, and never ends, but has the usual length\n"),
    ("| a | b |\n|---|---|\n", "| 1 | 2 |\n"),
    // A row that never ends, after some that are whole; and rows of which less than a table of the usual number of
    // rows is kept open.
    ("| a | b |\n|---|---|\n| 1 | 2 |\n| 3 | 4 |\n| ", "x "),
    ("| a | b |\n|---|---|\n| 1 | 2 |\n| 3 | 4 |\n| ", "x"),
    (
        "| a | b |\n|---|---|\n",
        concat!(
            "| a row with a long text in its first cell, which goes on and on, and then goes on, and on, and ",
            "still has something to say, so that some dozens of rows are more than is kept open of a block, and ",
            "ends with its second cell, as the head of the table says that it does, and not before it has said ",
            "all that it has to say to who reads it | the second cell |\n",
        ),
    ),
    (
        "- a\n  ```\n",
        "  code in an item that goes on and on, and never ends, but has the usual length\n",
    ),
    (
        "- a\n",
        "  - an item in an item that goes on and on, and never ends, with the usual length\n",
    ),
    (
        "<!--\n",
        "a comment that goes on and on, and never ends, but has lines of the usual length\n",
    ),
];

#[test]
fn work_grows_with_the_text_alone() {
    for (head, body) in ENDLESS {
        let work = |count: usize| {
            let mut markdown = Markdown::default();
            markdown.push(head);
            let mut longest = 0;
            let mut blocks = 0;
            for _ in 0..count {
                markdown.push(body);
                longest = longest.max(markdown.open_bytes());
                blocks += markdown.take_closed().len();
            }
            assert!(longest <= 16 * 1024, "{body:?} keeps {longest} bytes open");
            assert!(blocks > 0, "{body:?} closes nothing");
            markdown.parsed_bytes()
        };
        let half = 40_000 / body.len();
        let (once, twice) = (work(half), work(2 * half));
        // Twice the text is twice the work; with the square of it, it would be four times.
        assert!(twice < once * 5 / 2, "{body:?}: {once} bytes parsed, then {twice}");
    }
}

/// Short lines that continue a block are not read anew with each of them.
#[test]
fn lines_that_begin_no_block_are_read_a_few_times() {
    for line in ["> a\n", "[r1] a\n", "[r1]: a\n"] {
        let document = line.repeat(4_000);
        let mut markdown = Markdown::default();
        markdown.push(&document);
        markdown.finish();
        let parsed = markdown.parsed_bytes();
        assert!(parsed <= 4 * document.len(), "{line:?}: {parsed} bytes parsed");
    }
}

#[test]
fn a_long_block_of_code_in_an_item_stays_code() {
    let line = "  let a = *b* + 1;\n";
    let document = format!("- item\n\n  ```rust\n{}  ```\n\nend\n", line.repeat(2000));
    let blocks = read(&document);
    let code = blocks.iter().map(|block| {
        let content = if let Kind::Item { content, .. } = &block.kind { content } else { &vec![] };
        let blocks = content.iter().chain([block]);
        blocks.filter(|it| matches!(it.kind, Kind::CodeLine { .. })).count()
    });
    assert_eq!(code.sum::<usize>(), 2000);
    assert!(matches!(blocks[blocks.len() - 1].kind, Kind::Paragraph(_)));
}

#[test]
fn code_in_an_item_is_indented_with_it_and_what_its_fence_says_is_shown() {
    let code = "```python title=\"a.py\"\ndef f():\n    return 1\n```\n";
    let caption = "title=\"a.py\"\n";
    assert_eq!(
        picture(&format!("See\n\n{code}"), 40, &DARK),
        format!("See\n\n{caption}def f():\n    return 1\n")
    );
    let item = format!("1. see\n   {}", code.replace('\n', "\n   "));
    let expected = "1. see\n   title=\"a.py\"\n   def f():\n       return 1\n";
    assert_eq!(picture(&item, 40, &DARK), expected);
    for info in ["rust", "", "{ }"] {
        let drawn = picture(&format!("```{info}\nx\n```\n"), 40, &DARK);
        assert_eq!(drawn.trim_start_matches("{ }\n"), "x\n", "{info}");
    }
    assert_eq!(picture("```js:src/a.js\nx\n```\n", 40, &DARK), "src/a.js\nx\n");
    assert_eq!(picture("```rust,ignore\nx\n```\n", 40, &DARK), "ignore\nx\n");
}

#[test]
fn long_tables_have_their_head_again() {
    let row = |at: usize| format!("| {at} | x |\n");
    let rows: String = (0..120).map(row).collect();
    let drawn = picture(&format!("| a | b |\n|--:|---|\n{rows}\nend\n"), 40, &DARK);
    assert_eq!(drawn.matches("a  b").count(), 3);
    for at in 0..120 {
        assert_eq!(drawn.lines().filter(|it| it.trim() == format!("{at}  x")).count(), 1, "{at}");
    }
}
