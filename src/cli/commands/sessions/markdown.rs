//! The Markdown of a message, which must end with the message: what it leaves open is closed, and its
//! headings are not taken for those of the conversation. Pure.

/// Spaces from which on a line is code, whatever it begins with.
const CODE_INDENT: usize = 4;

/// `text` as a part of a document.
pub(super) fn contained(text: &str) -> String {
    let mut contained = String::with_capacity(text.len());
    let mut open: Option<(char, usize)> = None;
    for line in text.split_inclusive('\n') {
        let begun = line.trim_start_matches(' ');
        let indent = line.len() - begun.len();
        let mark = begun.chars().next().filter(|_| indent < CODE_INDENT).unwrap_or(' ');
        let run = begun.chars().take_while(|char| *char == mark).count();
        let rest = begun.trim_start_matches(mark);
        let is_fence = run >= 3 && (mark == '~' || mark == '`' && !rest.contains('`'));
        match open {
            None if mark == '#' => contained += &format!("{}\\", &line[..indent]),
            None if is_fence => open = Some((mark, run)),
            Some((opener, length)) if mark == opener && run >= length && rest.trim().is_empty() => {
                open = None;
            }
            None | Some(_) => {}
        }
        contained += if open.is_none() && mark == '#' { begun } else { line };
    }
    if let Some((opener, length)) = open {
        let line_end = if contained.ends_with('\n') { "" } else { "\n" };
        contained += line_end;
        contained.extend(std::iter::repeat_n(opener, length));
    }
    contained
}

/// `text` on one line, with nothing in it that means something in Markdown.
pub(super) fn literal(text: &str) -> String {
    let mut literal = String::with_capacity(text.len());
    for char in text.chars().map(|char| if char == '\n' { ' ' } else { char }) {
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
    }

    #[test]
    fn a_message_ends_where_it_ends() {
        for (text, expected) in [
            ("plain # text\n\n", "plain # text\n\n"),
            ("## User\nno", "\\## User\nno"),
            ("a\n  # b", "a\n  \\# b"),
            ("```rust\n# a\n```\n# b", "```rust\n# a\n```\n\\# b"),
            ("```\nopen", "```\nopen\n```"),
            ("~~~~\n```\n~~~\n", "~~~~\n```\n~~~\n~~~~"),
            ("````\n```\n", "````\n```\n````"),
            ("```inline``` and on", "```inline``` and on"),
            ("    ```\n    # code", "    ```\n    # code"),
        ] {
            assert_eq!(contained(text), expected, "{text}");
        }
    }
}
