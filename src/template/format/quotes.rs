//! Strings and characters as Go literals.

pub(super) fn can_backquote(text: &str) -> bool {
    text.chars()
        .all(|char| char == '\t' || (!char.is_control() && char != '`' && char != '\u{feff}'))
}

/// `%q` of a string: Go's syntax, on one line.
pub(in crate::template) fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    text.chars().for_each(|char| push_escaped(&mut out, char, '"'));
    out.push('"');
    out
}

pub(super) fn quoted_char(char: char) -> String {
    let mut out = String::from("'");
    push_escaped(&mut out, char, '\'');
    out.push('\'');
    out
}

fn push_escaped(out: &mut String, char: char, quote: char) {
    match char {
        '\\' => out.push_str("\\\\"),
        '\n' => out.push_str("\\n"),
        '\r' => out.push_str("\\r"),
        '\t' => out.push_str("\\t"),
        '\u{7}' => out.push_str("\\a"),
        '\u{8}' => out.push_str("\\b"),
        '\u{b}' => out.push_str("\\v"),
        '\u{c}' => out.push_str("\\f"),
        char if char == quote => out.extend(['\\', char]),
        char if is_shown(char) => out.push(char),
        char if char.is_ascii() => out.push_str(&format!("\\x{:02x}", u32::from(char))),
        char if u32::from(char) > 0xffff => {
            out.push_str(&format!("\\U{:08x}", u32::from(char)));
        }
        char => out.push_str(&format!("\\u{:04x}", u32::from(char))),
    }
}

/// False for what Go considers unprintable, as far as the standard library can determine.
fn is_shown(char: char) -> bool {
    let is_blank = char.is_whitespace() && char != ' ';
    let is_hidden = matches!(u32::from(char), 0xad | 0x200b..=0x200f | 0x202a..=0x202e
        | 0x2060..=0x206f | 0xe000..=0xf8ff | 0xfeff | 0xfff9..=0xfffb | 0xf_0000..);
    !char.is_control() && !is_blank && !is_hidden
}
