//! `duologue help TOPIC`: pages of the documentation, which is in the program.

use super::output::{Failure, Out, status};
use crate::cli::Cli;
use crate::support::nearest::nearest;
use clap::CommandFactory;
use std::ffi::OsString;

/// A page of the documentation.
struct Topic {
    name: &'static str,
    /// Its name among the documents, by which pages link to each other.
    file: &'static str,
    page: &'static str,
}

/// The page of the document `$file` under a name.
macro_rules! topic {
    ($name:literal, $file:literal) => {
        Topic { name: $name, file: $file, page: include_str!(concat!("../../../docs/", $file)) }
    };
}

/// Topics that have names of this program.
const OWN: usize = 16;

/// Topics and their pages. The last three have Pinocchio's names. Where a command has the name of a
/// page, `help` is about the command.
const TOPICS: [Topic; 19] = [
    topic!("chat-guide", "chat.md"),
    topic!("clients", "clients.md"),
    topic!("command-files", "command-files.md"),
    topic!("compatibility", "compatibility.md"),
    topic!("cookbook", "cookbook.md"),
    topic!("editors", "editors.md"),
    topic!("fleet", "fleet.md"),
    topic!("guarantees", "guarantees.md"),
    topic!("options", "options.md"),
    topic!("outputs", "outputs.md"),
    topic!("performance", "performance.md"),
    topic!("profile-guide", "profiles.md"),
    topic!("protocol", "protocol.md"),
    topic!("providers", "providers.md"),
    topic!("session-guide", "sessions.md"),
    topic!("tool-guide", "tools.md"),
    topic!("profile-resolution-runtime-switching", "profiles.md"),
    topic!("tui-integration-guide", "chat.md"),
    topic!("chatapp-protobuf-plugins", "protocol.md"),
];

/// The page that the command line `words` asks for, by its name or as another page links to it: `tools.md#resources`.
pub fn topic(words: &[OsString]) -> Option<&'static str> {
    let [_, help, name] = words else { return None };
    let name = name.to_str().filter(|_| help == "help")?;
    let file = name.split('#').next().unwrap_or(name);
    let topic = TOPICS.iter().find(|topic| topic.name == name || topic.file == file);
    topic.map(|topic| topic.page)
}

/// What has a page or a text in `help`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Helped {
    /// A page of the documentation.
    Topic(&'static str),
    /// A command.
    Command(String),
}

/// The names of the topics, for completions: without those of Pinocchio, which are pages that others have.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    TOPICS.iter().take(OWN).map(|topic| topic.name)
}

/// The topic or the command whose name is most like `word`, which names none, if one is like it.
pub(crate) fn helped(word: &str) -> Option<Helped> {
    let program = Cli::command();
    let commands = program.get_subcommands().filter(|command| !command.is_hide_set());
    let commands: Vec<_> = commands.map(|command| command.get_name().to_owned()).collect();
    let topics = TOPICS.iter().map(|topic| topic.name);
    let name = nearest(word, topics.chain(commands.iter().map(String::as_str)))?;
    let topic = TOPICS.iter().find(|topic| topic.name == name);
    Some(match topic {
        Some(topic) => Helped::Topic(topic.name),
        None => Helped::Command(name.to_owned()),
    })
}

/// Prints a page; returns the exit status.
pub fn page(page: &str) -> u8 {
    status(print(page))
}

fn print(page: &str) -> Result<u8, Failure> {
    let mut out = Out::new()?;
    out.write(page.as_bytes())?;
    out.flush()?;
    Ok(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_mistyped_is_near_to_a_topic_or_a_command() {
        assert_eq!(helped("chat-guid"), Some(Helped::Topic("chat-guide")));
        assert_eq!(helped("modles"), Some(Helped::Command("models".to_owned())));
        assert_eq!(helped("docter"), Some(Helped::Command("doctor".to_owned())));
        assert_eq!(helped("--help"), None);
    }

    #[test]
    fn topics_are_named_in_the_help_and_are_no_commands() {
        let command = Cli::command();
        for Topic { name, .. } in &TOPICS {
            assert!(command.find_subcommand(name).is_none(), "{name}");
        }
        let (own, others) = TOPICS.split_at(OWN);
        let help = command.get_long_about().expect("a text").to_string();
        assert!(own.iter().all(|topic| help.contains(topic.name)));
        assert!(others.iter().all(|topic| !help.contains(topic.name)));
    }

    #[test]
    fn a_page_that_another_links_to_is_there() {
        for Topic { name, page, .. } in &TOPICS {
            let links = page.split("](").skip(1).filter_map(|rest| rest.split(')').next());
            let is_page = |link: &&str| link.contains(".md") && !link.contains('/');
            for link in links.filter(is_page) {
                let words = ["duologue", "help", link].map(OsString::from);
                assert!(topic(&words).is_some(), "{name}: {link}");
            }
        }
    }
}
