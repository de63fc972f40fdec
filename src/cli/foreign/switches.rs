//! Options without a value, which Go's programs also take with one: `--rpc=true`, `--rpc=false`.

use crate::command_file::{CommandFile, Type, truth};
use std::ffi::OsString;

/// The options without a value that Pinocchio has, too.
const SWITCHES: [&str; 10] = [
    "chat",
    "force-interactive",
    "interactive",
    "log-to-stdout",
    "non-interactive",
    "print-prompt",
    "resume",
    "rpc",
    "stdin-rpc",
    "with-caller",
];

/// `words` with each such option as it is written here: alone if it is true, and left out if it is
/// false. What is a flag of `file`, or the value of one, stays as it is.
pub(crate) fn without_values(words: &[OsString], file: &CommandFile) -> Vec<OsString> {
    let mut kept = Vec::with_capacity(words.len());
    let mut words = words.iter();
    while let Some(word) = words.next() {
        match word.to_str() {
            Some("--") => {
                kept.push(word.clone());
                kept.extend(words.by_ref().cloned());
            }
            Some(text) if takes_next(text, file) => {
                kept.push(word.clone());
                kept.extend(words.next().cloned());
            }
            Some(text) => match switch(text, file) {
                Some((name, true)) => kept.push(format!("--{name}").into()),
                Some((_, false)) => {}
                None => kept.push(word.clone()),
            },
            None => kept.push(word.clone()),
        }
    }
    kept
}

/// `words` up to a `--`, after which there are no options. One that is the value of a flag of `file` ends
/// nothing.
pub(in crate::cli) fn options<'a>(
    words: &'a [OsString],
    file: Option<&CommandFile>,
) -> &'a [OsString] {
    let takes_next = |word: &OsString| {
        file.zip(word.to_str()).is_some_and(|(file, word)| takes_next(word, file))
    };
    let mut end = 0;
    while let Some(word) = words.get(end).filter(|word| *word != "--") {
        end += if takes_next(word) { 2 } else { 1 };
    }
    words.get(..end).unwrap_or(words)
}

/// Whether the word after `word` is the value of a flag of `file`, whatever it begins with.
fn takes_next(word: &str, file: &CommandFile) -> bool {
    let mut flags = file.flags.iter().filter(|flag| flag.kind != Type::Bool);
    let letter = word.strip_prefix('-').filter(|letter| letter.chars().count() == 1);
    flags.any(|flag| {
        word.strip_prefix("--").is_some_and(|name| name == flag.option())
            || letter.is_some_and(|letter| letter.chars().next() == flag.short)
    })
}

/// The switch in `word` and its value.
fn switch<'a>(word: &'a str, file: &CommandFile) -> Option<(&'a str, bool)> {
    let (name, value) = word.strip_prefix("--")?.split_once('=')?;
    let is_own = SWITCHES.contains(&name.strip_prefix("duologue-").unwrap_or(name));
    let is_of_file = file.flags.iter().any(|flag| flag.option() == name);
    let value = truth(value).ok().filter(|_| is_own && !is_of_file)?;
    Some((name, value))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn a_switch_has_no_value() {
        let file = "prompt: hi\nflags: [{name: rpc, type: string}, {name: text, type: string, shortFlag: t}, \
                    {name: fast, type: bool}]\n";
        let file = CommandFile::parse(Path::new("f.yaml"), file).expect("a command file");
        let check = |typed: &str, expected: &str| {
            let words: Vec<OsString> = typed.split(' ').map(OsString::from).collect();
            let expected: Vec<OsString> = expected.split_whitespace().map(OsString::from).collect();
            assert_eq!(without_values(&words, &file), expected, "{typed}");
        };
        check("--interactive=true --resume=FALSE x --chat=1", "--interactive x --chat");
        check("--interactive=perhaps --model=true", "--interactive=perhaps --model=true");
        // The file has a flag of this name, and the option another one.
        check("--rpc=true --duologue-rpc=true --duologue-rpc=f", "--rpc=true --duologue-rpc");
        check("--text --chat=false -t --chat=false", "--text --chat=false -t --chat=false");
        check("--text=a --chat=false --fast --chat=false", "--text=a --fast");
        check("--fast -- --chat=false", "--fast -- --chat=false");
    }
}
