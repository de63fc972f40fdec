//! Words of a command line as a shell reads them: of commands that are printed to be pasted, and of what a person
//! writes after the name of a prompt. Pure.

use super::hidden::is_hidden;

/// `words` as one line that bash, zsh and ksh read as the same words. No character of it acts on a terminal
/// or is hidden in it: a word that has such characters is written as `$'…'` with ASCII escapes
/// (POSIX.1-2024, 2.2.4). `None` if a word holds a NUL, which no word can.
pub(crate) fn joined<'a>(words: impl IntoIterator<Item = &'a str>) -> Option<String> {
    let quoted: Option<Vec<String>> = words.into_iter().map(quoted).collect();
    Some(quoted?.join(" "))
}

fn quoted(word: &str) -> Option<String> {
    if !word.contains(is_hidden) {
        return shlex::try_quote(word).ok().map(Into::into);
    }
    if word.contains('\0') {
        return None;
    }
    let mut quoted = "$'".to_owned();
    for char in word.chars() {
        match char {
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            '\'' | '\\' => quoted.extend(['\\', char]),
            // Bytes in octal: they have at most three digits, whatever stands after them, and mean the
            // same in every locale.
            char if is_hidden(char) => {
                let mut bytes = [0; 4];
                let bytes = char.encode_utf8(&mut bytes).bytes();
                quoted.extend(bytes.map(|byte| format!("\\{byte:03o}")));
            }
            char => quoted.push(char),
        }
    }
    quoted.push('\'');
    Some(quoted)
}

/// The words of `line`, as a shell reads them but for comments, which a line has none of: `#42` is a word. `None` if a
/// quote or a backslash has nothing after it.
pub(crate) fn split(line: &str) -> Option<Vec<String>> {
    shlex::split(&without_comments(line))
}

/// `line` with a backslash before each `#` that would begin a comment.
fn without_comments(line: &str) -> String {
    let mut escaped = String::with_capacity(line.len());
    let (mut quote, mut is_escaped, mut begins_word) = (None, false, true);
    for char in line.chars() {
        let is_blank = matches!(char, ' ' | '\t' | '\n');
        if char == '#' && begins_word {
            escaped.push('\\');
        }
        escaped.push(char);
        begins_word = quote.is_none() && !is_escaped && is_blank;
        match (quote, char) {
            (_, _) if is_escaped => is_escaped = false,
            (None | Some('"'), '\\') => is_escaped = true,
            (None, '"' | '\'') => quote = Some(char),
            (Some(open), close) if open == close => quote = None,
            (None | Some(_), _) => {}
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn a_line_has_words_and_no_comments() {
        let check = |line: &str, expected: &[&str]| {
            let words = split(line).expect("words");
            assert_eq!(words, expected, "{line:?}");
        };
        check("why is #42 open # or not", &["why", "is", "#42", "open", "#", "or", "not"]);
        check("#", &["#"]);
        check("a#b  ##c\t#d\n#e", &["a#b", "##c", "#d", "#e"]);
        check("'a #b' \"c #d\" \"\\\" #e\" #f", &["a #b", "c #d", "\" #e", "#f"]);
        check("\\# a\\ #b it\\'s #c", &["#", "a #b", "it's", "#c"]);
        check("'it'\\''s' #1 ''#2", &["it's", "#1", "#2"]);
        for line in ["'a", "a\"", "a\\", "#'"] {
            assert_eq!(split(line), None, "{line:?}");
        }
    }

    #[test]
    fn a_word_that_acts_on_a_terminal_is_written_in_escapes() {
        let check = |words: &[&str], expected: &str| {
            assert_eq!(joined(words.iter().copied()).as_deref(), Some(expected));
        };
        check(&["duologue", "an id", "it's"], "duologue 'an id' \"it's\"");
        check(&["a\nb"], "$'a\\nb'");
        check(&["\u{1b}[2J1"], "$'\\033[2J1'");
        check(&["it's \\ \u{202e}x"], "$'it\\'s \\\\ \\342\\200\\256x'");
        assert_eq!(joined(["a\0b"]), None);
    }

    #[test]
    fn a_shell_reads_the_same_words() {
        let words =
            ["plain", "", "a\n\tb", "\u{1b}]0;t\u{7}7", "it's \"$x\" \\\u{202e}é", "\u{9b}7日"];
        let line = joined(words).expect("no NUL");
        assert!(line.chars().all(|char| !is_hidden(char)), "{line:?}");
        let script = format!("printf '%s\\0' {line}");
        let output = Command::new("bash").args(["-c", &script]).output().expect("bash runs");
        let read = String::from_utf8(output.stdout).expect("UTF-8");
        assert_eq!(read.split_terminator('\0').collect::<Vec<_>>(), words);
    }
}
