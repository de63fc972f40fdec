//! Characters that a reader does not see, or that a terminal obeys. Pure.

/// Whether `char` is not seen where it stands: control characters, line breaks among them, and the
/// characters that Unicode calls default ignorable, such as marks that reorder text, joiners, variation
/// selectors and tags (`Default_Ignorable_Code_Point` of UAX #44).
pub(crate) fn is_hidden(char: char) -> bool {
    char.is_control()
        || matches!(char,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
            | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}'
            | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{1bca0}'..='\u{1bca3}'
            | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

/// `text` with each hidden character as its escape, `\u{202e}`; line feeds stay.
pub(crate) fn revealed(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for char in text.chars() {
        match char {
            '\n' => shown.push(char),
            '\t' => shown.push_str("\\t"),
            '\r' => shown.push_str("\\r"),
            char if is_hidden(char) => shown.extend(char.escape_unicode()),
            char => shown.push(char),
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_seen_is_shown_as_its_escape() {
        let check = |text, shown| assert_eq!(revealed(text), shown, "{text:?}");
        check("{\"zone\": \"Zürich 日本\"}\n", "{\"zone\": \"Zürich 日本\"}\n");
        check("rm \u{202e}fdp.\u{2066}x", "rm \\u{202e}fdp.\\u{2066}x");
        check("a\u{200b}b\u{e0041}c\u{feff}", "a\\u{200b}b\\u{e0041}c\\u{feff}");
        check("\u{1b}[2J\u{9b}\u{7f}\t\r", "\\u{1b}[2J\\u{9b}\\u{7f}\\t\\r");
        check("a\u{2028}b\u{85}c", "a\\u{2028}b\\u{85}c");
    }
}
