//! Suggestions for a wrong command line, where the intention can be guessed.

mod commands;
mod options;

use crate::cli::commands::{Helped, helped};
use crate::cli::variables::PREFIX;
use crate::cli::{RUN_COMMAND, first_argument, foreign, named};
use crate::command_file::CommandFile;
use crate::support::shorten::first_chars;
use crate::support::terminal::escape_control;
use clap::Error;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use commands::command_before;
use std::ffi::OsString;

pub(super) const KEY_TIP: &str = "set the variable DUOLOGUE_API_KEY, OPENAI_API_KEY, ANTHROPIC_API_KEY or GEMINI_API_KEY \
     instead; other users of the machine can see the options of a process";

const TEMPERATURE_TIP: &str = "the temperature is set by --temperature, as in --temperature 0.2";

/// The command that prints help and pages.
const HELP: &str = "help";

/// Longest question repeated in a tip, in characters.
const QUESTION_CHARS_MAX: usize = 60;

/// Adds a suggestion to `error`, which is about `words`. `file` is the command file they run.
pub(super) fn advise(error: Error, words: &[OsString], file: Option<&CommandFile>) -> Error {
    if error.kind() == ErrorKind::InvalidUtf8 {
        return not_text(error, words);
    }
    let mut error = without_unlike(as_unexpected(error));
    let wrong = [ContextKind::InvalidArg, ContextKind::InvalidSubcommand];
    let wrong = wrong.into_iter().find_map(|kind| text(&error, kind));
    let (Some(wrong), Some(words)) = (wrong, all_text(words)) else { return error };
    if let Some(tip) = of_variable(&error, &wrong, &words) {
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
        return error;
    }
    let is_help = words.get(1).is_some_and(|word| *word == HELP);
    let tip = if error.kind() == ErrorKind::InvalidSubcommand && is_help {
        Some(topic(&wrong, &words))
    } else if error.kind() == ErrorKind::InvalidSubcommand {
        let has_similar = error.get(ContextKind::SuggestedSubcommand).is_some();
        no_command(&wrong, &words, has_similar)
    } else if error.kind() == ErrorKind::UnknownArgument {
        unknown(&wrong, &words, file)
    } else {
        format_of_export(&error, &wrong, &words)
    };
    if let Some(tip) = tip {
        if !is_declared_elsewhere(&wrong, file) {
            error.remove(ContextKind::SuggestedArg);
        }
        error.remove(ContextKind::SuggestedSubcommand);
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
    }
    error
}

/// Suggests options that are like what was typed; of those that are not in help, the ones that begin as that.
fn without_unlike(mut error: Error) -> Error {
    let suggested = text(&error, ContextKind::SuggestedArg).unwrap_or_default();
    let wrong = text(&error, ContextKind::InvalidArg).unwrap_or_default();
    if !foreign::is_suggested(&suggested, &wrong) || !options::is_like(&suggested, &wrong) {
        error.remove(ContextKind::SuggestedArg);
    }
    error
}

/// The second word of an unquoted prompt is not a misspelt `-`.
fn as_unexpected(error: Error) -> Error {
    let is_second = text(&error, ContextKind::InvalidArg).is_some_and(|arg| arg == "[-]");
    let Some(value) = text(&error, ContextKind::InvalidValue).filter(|_| is_second) else {
        return error;
    };
    let mut unexpected = Error::new(ErrorKind::UnknownArgument);
    unexpected.insert(ContextKind::InvalidArg, ContextValue::String(value));
    unexpected
}

/// The variable with the wrong value of the option `wrong`, if that option was not typed.
fn of_variable(error: &Error, wrong: &str, words: &[&str]) -> Option<String> {
    let is_value = matches!(error.kind(), ErrorKind::InvalidValue | ErrorKind::ValueValidation);
    let name = wrong.split([' ', '=']).next().filter(|_| is_value)?.strip_prefix("--")?;
    variable_of(name, words).map(|variable| from_variable(&variable))
}

/// `message`, and where the value comes from if it begins with an option that a variable sets. A person who typed no
/// option does not know its name.
pub(super) fn with_variable(message: String) -> String {
    let words: Vec<_> =
        std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect();
    let words: Vec<_> = words.iter().map(String::as_str).collect();
    let is_of_name = |c: char| c.is_ascii_lowercase() || c == '-';
    let name =
        message.strip_prefix("--").and_then(|rest| rest.split(|c: char| !is_of_name(c)).next());
    match name.and_then(|name| variable_of(name, &words)) {
        Some(variable) => format!("{message}; {}", from_variable(&variable)),
        None => message,
    }
}

fn from_variable(variable: &str) -> String {
    format!("the value comes from the variable {variable}; correct it or unset it")
}

/// The variable that sets the option `name`, if no word may do so.
fn variable_of(name: &str, words: &[&str]) -> Option<String> {
    let variable = format!("{PREFIX}{}", name.replace('-', "_").to_ascii_uppercase());
    let is_set = std::env::var_os(&variable).is_some_and(|value| !value.is_empty());
    (is_set && !words.iter().any(|word| may_set(word, name))).then_some(variable)
}

/// Whether `word` sets the option `name`, or may: by its letter, under a name of Pinocchio, or under the one that it
/// has beside a flag of a command file.
fn may_set(word: &str, name: &str) -> bool {
    let Some(long) = word.strip_prefix("--") else {
        let letter = word.strip_prefix('-').and_then(|rest| rest.chars().next());
        return letter.is_some_and(|letter| name.starts_with(letter));
    };
    let long = long.split('=').next().unwrap_or(long);
    let is_alike =
        long.strip_suffix(name).is_some_and(|rest| rest.is_empty() || rest.ends_with('-'));
    is_alike || ["ai-", "inference-"].iter().any(|start| long.starts_with(start))
}

/// Names the word that is not UTF-8; if all are, the variables whose value may be it.
fn not_text(mut error: Error, words: &[OsString]) -> Error {
    let is_wrong = |value: &OsString| value.to_str().is_none();
    if let Some(at) = words.iter().position(is_wrong) {
        let word = escape_control(&words[at].to_string_lossy());
        let word: String = word.chars().take(QUESTION_CHARS_MAX).collect();
        let option =
            words[..at].last().and_then(|it| it.to_str()).filter(|it| it.starts_with("--"));
        let place = option.map(|option| format!(" after {option}")).unwrap_or_default();
        let tip =
            format!("the word '{word}'{place} is not UTF-8; name it in UTF-8, or rename the file");
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
        return error;
    }
    let names = std::env::vars_os().filter(|(_, value)| is_wrong(value));
    let names = names.filter_map(|(name, _)| name.into_string().ok());
    let names: Vec<_> =
        names.filter(|name| name.starts_with(PREFIX)).map(|name| escape_control(&name)).collect();
    if !names.is_empty() {
        let names = names.join(", or of ");
        let tip = format!("the value of the variable {names} is not UTF-8; correct it or unset it");
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
    }
    error
}

/// A flag of a command file may be misspelt or not defined yet: both get a suggestion.
fn is_declared_elsewhere(wrong: &str, file: Option<&CommandFile>) -> bool {
    file.is_some() && wrong.starts_with("--") && options::own(wrong, RUN_COMMAND).is_none()
}

/// The suggestion for the word `wrong`, which is no command; `None` if the suggestions of clap are better.
fn no_command(wrong: &str, words: &[&str], has_similar: bool) -> Option<String> {
    let (parent, command) = command_before(wrong, words);
    if let Some(tip) = commands::tried(wrong, &parent, words) {
        return Some(tip);
    }
    if !parent.is_empty() {
        return Some(commands::of_parent(wrong, &parent, &command));
    }
    let is_misspelt = has_similar && commands::is_misspelt(wrong, words);
    let start = words.iter().position(|word| *word == wrong).unwrap_or(1);
    (!is_misspelt).then(|| question(words, start))
}

/// What `sessions export` has in place of an output format.
fn format_of_export(error: &Error, wrong: &str, words: &[&str]) -> Option<String> {
    let (command, _) = command_before(wrong, words);
    let value = text(error, ContextKind::InvalidValue)?;
    let format = match value.as_str() {
        "md" | "markdown" => "markdown",
        "html" => "html",
        "jsonl" => "jsonl",
        _ => return None,
    };
    let is_wrong = error.kind() == ErrorKind::InvalidValue && wrong.starts_with("--output");
    let is_output = is_wrong && command == "sessions export";
    is_output.then(|| format!("the format of an export is named by --format {format}"))
}

/// The suggestion for the word `wrong` after `help`, which is about no command and no topic.
fn topic(wrong: &str, words: &[&str]) -> String {
    let is_first = words.get(2) == Some(&wrong);
    match is_first.then(|| helped(wrong)).flatten() {
        Some(Helped::Topic(name)) if name == wrong => {
            format!("'help {name}' takes nothing more; leave the rest out")
        }
        Some(Helped::Topic(name)) => format!("a similar topic exists: '{name}'"),
        Some(Helped::Command(name)) => format!("a similar command exists: '{name}'"),
        None => "duologue --help lists the commands and the topics of help".to_owned(),
    }
}

/// The suggestion for the unknown argument `wrong`.
fn unknown(wrong: &str, words: &[&str], file: Option<&CommandFile>) -> Option<String> {
    let command = words.iter().skip(1).find_map(|word| named(word)).unwrap_or("rpc");
    let path = file.map(|file| escape_control(&file.path.to_string_lossy()));
    if let Some(tip) = options::own(wrong, command) {
        return Some(tip.to_owned());
    }
    let is_text = !wrong.starts_with('-');
    match (command, path, wrong.strip_prefix("--")) {
        ("exec" | RUN_COMMAND | "chat" | "rpc", _, None)
            if wrong == "-t" && words.contains(&wrong) =>
        {
            Some(TEMPERATURE_TIP.to_owned())
        }
        (_, Some(path), Some(name)) => Some(format!(
            "{path} declares no such flag; to add it, put `- {{name: {}, type: string}}` under \
             its `flags:`",
            escape_control(name)
        )),
        (_, Some(path), None) if is_text => Some(format!(
            "{path} takes no more arguments; quote a value of several words, or add to its \
             `arguments:`"
        )),
        ("exec", None, _) if let Some(prompt) = prompt_like(wrong, words) => Some(format!(
            "to ask a prompt that begins with -, write -- before it: duologue exec -- \"{}\"",
            quotable(&escape_control(prompt))
        )),
        ("exec" | "chat", None, None) if is_text => Some(unquoted(command, words)),
        ("rpc", None, None) if is_text => {
            let start = words.iter().position(|word| *word == wrong).unwrap_or_default();
            Some(question(words, start))
        }
        (_, None, _) if !is_text => {
            let (_, command) = command_before("", words);
            options::common(wrong, &command).map(str::to_owned)
        }
        (_, _, _) => None,
    }
}

/// The suggestion for a prompt that the shell has made several words of.
fn unquoted(command: &str, words: &[&str]) -> String {
    let (_, definition) = command_before("", words);
    let at = words.iter().position(|word| *word == command).unwrap_or(1);
    let words = words.get(at.saturating_sub(1)..).unwrap_or_default();
    let start = first_argument(words, &definition).unwrap_or(words.len());
    let before = words.get(2..start).unwrap_or_default();
    if let (Some(&"--resume"), false) = (before.last(), words.contains(&"--session-id")) {
        let name = words.get(start).copied().filter(|name| is_plain(name)).unwrap_or("NAME");
        return format!(
            "--resume takes no value; --session {name} resumes the session of that name"
        );
    }
    let options = match before {
        [] => String::new(),
        // What was typed may have to be quoted, or be a secret.
        _ if !before.iter().all(|word| is_plain(word)) || has_key(before) => "… ".to_owned(),
        _ => before.join(" ") + " ",
    };
    let rest = if words.iter().skip(start).any(|it| it.starts_with('-')) { " …" } else { "" };
    format!(
        "put the prompt in quotes: duologue {command} {options}\"{}\"{rest}",
        prompt(words, start)
    )
}

/// Whether an option among `words` holds a key, under the names that other programs have for it, too.
fn has_key(words: &[&str]) -> bool {
    let is_secret =
        |word: &str| ["key", "token", "secret", "password"].iter().any(|it| word.contains(it));
    words.iter().any(|word| word.starts_with('-') && is_secret(&word.to_ascii_lowercase()))
}

/// Whether `word` is the same in a shell, and is no header and no address.
fn is_plain(word: &str) -> bool {
    !word.is_empty() && word.chars().all(|c| c.is_ascii_alphanumeric() || "-_./=".contains(c))
}

/// The word in `words` that was read as the unknown option `wrong`, if it is no option but a text.
fn prompt_like<'a>(wrong: &str, words: &[&'a str]) -> Option<&'a str> {
    let is_it = |word: &&&str| wrong.starts_with('-') && word.starts_with(wrong);
    words.iter().find(is_it).copied().filter(|word| word.contains(char::is_whitespace))
}

fn question(words: &[&str], start: usize) -> String {
    format!("to ask the model a question, write duologue exec \"{}\"", prompt(words, start))
}

/// The words from `start` up to the next option as one prompt, for a command between quotes.
fn prompt(words: &[&str], start: usize) -> String {
    let words = words.get(start..).unwrap_or_default();
    let words: Vec<_> = words.iter().take_while(|word| !word.starts_with('-')).copied().collect();
    quotable(&escape_control(&words.join(" ")))
}

/// The beginning of `question`, if it can stand between quotes.
fn quotable(question: &str) -> String {
    let question = first_chars(question, QUESTION_CHARS_MAX);
    let is_plain = !question.is_empty() && !question.contains(['"', '$', '`', '\\', '!']);
    if is_plain { question.into_owned() } else { "…".to_owned() }
}

fn text(error: &Error, kind: ContextKind) -> Option<String> {
    match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.clone()),
        Some(_) | None => None,
    }
}

fn all_text(words: &[OsString]) -> Option<Vec<&str>> {
    words.iter().map(|word| word.to_str()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_may_set_an_option_under_several_names() {
        for word in ["--seed", "--seed=1", "--inference-seed", "--duologue-seed=1", "-s", "-s1"] {
            assert!(may_set(word, "seed"), "{word}");
        }
        assert!(may_set("--ai-max-response-tokens", "max-tokens"));
        for word in ["seed", "--seeds", "--no-seeds", "-m", "-", "--", "--top-p", "reseed"] {
            assert!(!may_set(word, "seed"), "{word}");
        }
    }
}
