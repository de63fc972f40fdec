//! The Markdown of a message, which must end with the message: what it leaves open is closed, and its
//! headings are not taken for those of the conversation. Pure.

use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag};
use std::collections::BTreeMap;
use std::ops::Range;

/// What follows a message in the document: a paragraph, unless the message has left something open.
const FOLLOWING: &str = "\n\nx";

/// Elements of HTML whose block goes on over blank lines until they are closed (CommonMark, section 4.6).
const RAW_ELEMENTS: [&str; 4] = ["pre", "script", "style", "textarea"];

/// `text` as a part of a document.
pub(super) fn contained(text: &str) -> String {
    let document = text.to_owned() + FOLLOWING;
    let (mut added, mut close) = (BTreeMap::new(), None);
    for (event, range) in Parser::new_ext(&document, Options::empty()).into_offset_iter() {
        let Event::Start(block) = event else { continue };
        let is_open = range.end == document.len();
        if let Tag::Heading { .. } = block {
            unmark(&document, &range, &mut added);
        } else if let (Tag::CodeBlock(CodeBlockKind::Fenced(_)), true) = (&block, is_open) {
            close = Some(fence(&document[range]));
        } else if let (Tag::HtmlBlock, true) = (&block, is_open) {
            close = end_of_html(&document[range]);
        }
    }
    let mut contained = String::with_capacity(text.len());
    let mut written = 0;
    for (at, addition) in added {
        contained += &text[written..at];
        contained += &addition;
        written = at;
    }
    contained += &text[written..];
    if let Some(close) = close {
        let line_end = if contained.ends_with('\n') { "" } else { "\n" };
        contained += line_end;
        contained += &close;
    }
    contained
}

/// Adds what makes a heading a paragraph: an escape of its `#`, or of the line below its words, and blank lines
/// around it, without which the lines beside it would be a part of the paragraph, or it of theirs.
fn unmark(document: &str, heading: &Range<usize>, added: &mut BTreeMap<usize, String>) {
    let words = document[heading.clone()].trim_end();
    let mark = match words.rfind(['\n', '\r']) {
        None => words.find('#'),
        Some(above) => words[above..].find(['-', '=']).map(|at| above + at),
    };
    let Some(mark) = mark else { return };
    let first = document[..heading.start].rfind('\n').map(|at| at + 1);
    add_blank_line(document, first, added);
    added.entry(heading.start + mark).or_default().push('\\');
    let end = heading.start + words.len();
    let next = document[end..].find('\n').map(|length| end + length + 1);
    add_blank_line(document, next, added);
}

/// Adds a blank line before the line that begins there, unless there is one beside it.
fn add_blank_line(document: &str, at: Option<usize>, added: &mut BTreeMap<usize, String>) {
    let Some(at) = at else { return };
    let is_blank = |line: Option<&str>| line.is_none_or(|line| line.trim().is_empty());
    if !is_blank(document[..at].lines().next_back()) && !is_blank(document[at..].lines().next()) {
        let addition = added.entry(at).or_default();
        if addition.is_empty() {
            addition.push('\n');
        }
    }
}

/// The line that closes a block of code.
fn fence(block: &str) -> String {
    let block = block.trim_start();
    let mark = block.chars().next().unwrap_or('`');
    block.chars().take_while(|char| *char == mark).collect()
}

/// What closes a block of HTML; `None` for one that a blank line ends.
fn end_of_html(block: &str) -> Option<String> {
    let begun = block.trim_start().strip_prefix('<')?;
    let ends = [("!--", "-->"), ("?", "?>"), ("![CDATA[", "]]>"), ("!", ">")];
    if let Some((_, end)) = ends.into_iter().find(|(start, _)| begun.starts_with(start)) {
        return Some(end.to_owned());
    }
    let name: String = begun.chars().take_while(char::is_ascii_alphabetic).collect();
    let name = name.to_ascii_lowercase();
    RAW_ELEMENTS.contains(&name.as_str()).then(|| format!("</{name}>"))
}

/// `text` on one line, with nothing in it that means something in Markdown.
pub(super) fn literal(text: &str) -> String {
    let mut literal = String::with_capacity(text.len());
    for char in text.chars().map(|char| if matches!(char, '\n' | '\r') { ' ' } else { char }) {
        if matches!(char, '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '&' | '~') {
            literal.push('\\');
        }
        literal.push(char);
    }
    literal
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_means_nothing_in_markdown() {
        assert_eq!(literal("a_*b*\n<c>"), "a\\_\\*b\\* \\<c\\>");
        assert_eq!(literal("a\r\n# b\rc"), "a  # b c");
    }

    #[test]
    fn a_message_ends_where_it_ends() {
        for (text, expected) in [
            ("plain # text\n\n", "plain # text\n\n"),
            ("## User\nno", "\\## User\n\nno"),
            ("a\n  # b", "a\n\n  \\# b"),
            ("```rust\n# a\n```\n# b", "```rust\n# a\n```\n\n\\# b"),
            ("```\nopen", "```\nopen\n```"),
            ("~~~~\n```\n~~~\n", "~~~~\n```\n~~~\n~~~~"),
            ("````\n```\n", "````\n```\n````"),
            ("```inline``` and on", "```inline``` and on"),
            ("    ```\n    # code", "    ```\n    # code"),
            ("- ```sh\n  ls\n  ```\n\nafter", "- ```sh\n  ls\n  ```\n\nafter"),
            ("1. ```\n   # a\n   ```\n# b", "1. ```\n   # a\n   ```\n\n\\# b"),
            ("> ```\n> open", "> ```\n> open"),
            ("- a\n  - ~~~\n    x\n    ~~~\n", "- a\n  - ~~~\n    x\n    ~~~\n"),
            ("- # a\n> ## b", "- \\# a\n\n> \\## b"),
            ("Title\n-----\nno", "Title\n\\-----\n\nno"),
            ("two\nlines\n  ===", "two\nlines\n  \\==="),
            ("> Title\n> ---\n", "> Title\n> \\---\n"),
            ("#no\n---", "#no\n\\---"),
            ("# a\n---\n---\n\n---", "\\# a\n\n---\n---\n\n---"),
            ("# a\n# b\n    code", "\\# a\n\n\\# b\n\n    code"),
            ("a\n\n---\n***", "a\n\n---\n***"),
            ("<!-- open\n\n# a", "<!-- open\n\n# a\n-->"),
            ("<!-- closed -->\n# a", "<!-- closed -->\n\n\\# a"),
            ("a <!-- b\n\nc", "a <!-- b\n\nc"),
            ("<Script>\n\n1", "<Script>\n\n1\n</script>"),
            ("<?php\n", "<?php\n?>"),
            ("<![CDATA[\n", "<![CDATA[\n]]>"),
            ("<!DOCTYPE", "<!DOCTYPE\n>"),
            ("<div>\na", "<div>\na"),
            ("```\n<!--\n```", "```\n<!--\n```"),
            ("", ""),
        ] {
            assert_eq!(contained(text), expected, "{text}");
            assert_eq!(contained(expected), expected, "{expected}");
        }
    }
}
