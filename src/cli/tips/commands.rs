//! Suggestions for a word that names no command.

use crate::cli::Cli;
use crate::profile::files::Places;
use crate::support::files::WorkFolder;
use crate::support::nearest::nearest;
use crate::support::terminal::escape_control;
use clap::{Command, CommandFactory};

/// Commands that people try first, as other programs have them, and their equivalents here.
struct Tried {
    /// The command they are tried of; that of the program itself is empty.
    of: &'static str,
    names: &'static [&'static str],
    tip: &'static str,
}

const fn tried_of(of: &'static str, names: &'static [&'static str], tip: &'static str) -> Tried {
    Tried { of, names, tip }
}

/// Stands in a tip for the file of the user's own profiles.
const PROFILES_FILE: &str = "{file}";

const TRIED: [Tried; 10] = [
    tried_of(
        "",
        &["init", "setup", "configure", "keys", "key", "auth"],
        "'duologue profiles init' asks for provider, key and model, and writes them into your profiles",
    ),
    tried_of(
        "",
        &["login", "logout"],
        "'duologue mcp login' and 'mcp logout' are for a tool server; 'duologue profiles init' asks for the key \
         of a provider",
    ),
    tried_of(
        "",
        &["config", "settings"],
        "'duologue doctor' reports what is configured, and 'duologue profiles init' configures a provider",
    ),
    tried_of("", &["version"], "'duologue --version' prints the version"),
    tried_of("profiles", &["list", "ls"], "'duologue profiles' lists them"),
    tried_of(
        "profiles",
        &["delete", "remove", "rm", "edit", "set", "use", "default"],
        "your profiles are in {file}; edit that file, in which `default: NAME` names the one that is used",
    ),
    tried_of("sessions", &["rm", "remove", "clear"], "'duologue sessions delete ID' deletes one"),
    tried_of("sessions", &["ls"], "'duologue sessions list' lists them"),
    tried_of(
        "sessions",
        &["resume", "open", "continue", "load"],
        "'duologue chat --session ID' resumes a session",
    ),
    tried_of(
        "mcp",
        &["list", "ls", "tools", "add"],
        "'duologue tools' lists the tools of the servers that --mcp or --mcp-config names; a conversation takes \
         the same options",
    ),
];

/// Most words of a command that was tried; more of them are a question.
const WORDS_MAX: usize = 3;

/// The command that the words before `wrong` name, with its name after that of the program.
pub(super) fn command_before(wrong: &str, words: &[&str]) -> (String, Command) {
    let (mut names, mut command) = (Vec::new(), Cli::command());
    for word in words.iter().skip(1).take_while(|word| **word != wrong) {
        if let Some(inner) = command.find_subcommand(word).cloned() {
            names.push(*word);
            command = inner;
        }
    }
    (names.join(" "), command)
}

/// The equivalent of the command `wrong` of `parent`, which other programs have; without a parent, `words` may be a
/// question that begins with it.
pub(super) fn tried(wrong: &str, parent: &str, words: &[&str]) -> Option<String> {
    let is_command = !parent.is_empty() || is_first_of_few(wrong, words);
    let mut tried = TRIED.iter().filter(|tried| is_command && tried.of == parent);
    let tip = tried.find(|tried| tried.names.contains(&wrong))?.tip;
    Some(match tip.contains(PROFILES_FILE) {
        true => tip.replace(PROFILES_FILE, &profiles_file()),
        false => tip.to_owned(),
    })
}

/// Whether `words` are a misspelt command of the program rather than a question.
pub(super) fn is_misspelt(wrong: &str, words: &[&str]) -> bool {
    let program = Cli::command();
    let is_spelt_so = wrong.chars().all(|char| char.is_ascii_lowercase() || char == '-');
    let mut names = program.get_subcommands().map(Command::get_name);
    is_first_of_few(wrong, words)
        && (words.len() == 2 || is_spelt_so && names.any(|name| nearest(wrong, [name]).is_some()))
}

fn is_first_of_few(wrong: &str, words: &[&str]) -> bool {
    words.get(1) == Some(&wrong) && words.len() <= 1 + WORDS_MAX
}

/// The commands of `parent`, of which `wrong` is none.
pub(super) fn of_parent(wrong: &str, name: &str, parent: &Command) -> String {
    let names = parent.get_subcommands().filter(|command| !command.is_hide_set());
    let names: Vec<_> = names.map(Command::get_name).collect();
    if let Some(near) = nearest(wrong, names.iter().copied()) {
        return format!("a similar command exists: 'duologue {name} {near}'");
    }
    let (last, before) = names.split_last().unwrap_or((&"", &[]));
    format!("the commands of 'duologue {name}' are {} and {last}", before.join(", "))
}

fn profiles_file() -> String {
    let places = Places::find(&[], &WorkFolder::default());
    let file = places.user().map(|path| escape_control(&path.display().to_string()));
    file.unwrap_or_else(|| "profiles.yaml".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_tried_is_no_command_and_leads_to_commands() {
        for Tried { of, names, tip } in &TRIED {
            let (_, parent) = command_before("", &["duologue", of]);
            for name in *names {
                assert!(parent.find_subcommand(name).is_none(), "{of} {name}");
            }
            let named = tip.split('\'').skip(1).step_by(2);
            for command in named.filter(|text| text.starts_with("duologue ")) {
                let words: Vec<_> = command.split(' ').collect();
                let is_option = words[1].starts_with("--");
                assert!(is_option || !command_before("", &words).0.is_empty(), "{command}");
            }
        }
    }
}
