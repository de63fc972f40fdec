//! `duologue help TOPIC`: pages of the documentation, which is in the program.

use super::output::{Failure, Out, status};
use crate::cli::Cli;
use crate::support::nearest::nearest;
use clap::CommandFactory;
use std::ffi::OsString;

/// Topics that have names of this program.
const OWN: usize = 14;

/// Topics and their pages. The last three have Pinocchio's names. Where a command has the name of a
/// page, `help` is about the command.
const TOPICS: [(&str, &str); 17] = [
    ("chat-guide", include_str!("../../../docs/chat.md")),
    ("clients", include_str!("../../../docs/clients.md")),
    ("command-files", include_str!("../../../docs/command-files.md")),
    ("cookbook", include_str!("../../../docs/cookbook.md")),
    ("editors", include_str!("../../../docs/editors.md")),
    ("fleet", include_str!("../../../docs/fleet.md")),
    ("guarantees", include_str!("../../../docs/guarantees.md")),
    ("options", include_str!("../../../docs/options.md")),
    ("outputs", include_str!("../../../docs/outputs.md")),
    ("profile-guide", include_str!("../../../docs/profiles.md")),
    ("protocol", include_str!("../../../docs/protocol.md")),
    ("providers", include_str!("../../../docs/providers.md")),
    ("session-guide", include_str!("../../../docs/sessions.md")),
    ("tool-guide", include_str!("../../../docs/tools.md")),
    ("profile-resolution-runtime-switching", include_str!("../../../docs/profiles.md")),
    ("tui-integration-guide", include_str!("../../../docs/chat.md")),
    ("chatapp-protobuf-plugins", include_str!("../../../docs/protocol.md")),
];

/// The page that the command line `words` asks for.
pub fn topic(words: &[OsString]) -> Option<&'static str> {
    let [_, help, name] = words else { return None };
    let page = TOPICS.iter().find(|(topic, _)| help == "help" && name == topic);
    page.map(|(_, page)| *page)
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
    TOPICS.into_iter().take(OWN).map(|(name, _)| name)
}

/// The topic or the command whose name is most like `word`, which names none, if one is like it.
pub(crate) fn helped(word: &str) -> Option<Helped> {
    let program = Cli::command();
    let commands = program.get_subcommands().filter(|command| !command.is_hide_set());
    let commands: Vec<_> = commands.map(|command| command.get_name().to_owned()).collect();
    let topics = TOPICS.iter().map(|(name, _)| *name);
    let name = nearest(word, topics.chain(commands.iter().map(String::as_str)))?;
    let topic = TOPICS.iter().find(|(topic, _)| *topic == name);
    Some(match topic {
        Some((topic, _)) => Helped::Topic(topic),
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
        for (name, _) in TOPICS {
            assert!(command.find_subcommand(name).is_none(), "{name}");
        }
        let (own, others) = TOPICS.split_at(OWN);
        let help = command.get_long_about().expect("a text").to_string();
        assert!(own.iter().all(|(name, _)| help.contains(name)));
        assert!(others.iter().all(|(name, _)| !help.contains(name)));
    }
}
