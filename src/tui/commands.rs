//! The commands that a person can write in place of a prompt: a slash, a name, and perhaps more. Pure.

use crate::support::nearest::nearest;
use std::path::PathBuf;

/// Names of commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Name {
    Help,
    New,
    Resume,
    Fork,
    Rename,
    Model,
    Profile,
    Tools,
    Mcp,
    System,
    Copy,
    Save,
    Export,
    Undo,
    Retry,
    Edit,
    Compact,
    Quit,
}

/// A command with what it needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Command {
    Help,
    /// Begin another conversation.
    New,
    /// Choose a stored conversation to go on with; the words are searched for.
    Resume(String),
    /// Copy the conversation and go on in the copy.
    Fork,
    /// Give the conversation a title.
    Rename(String),
    /// Choose a model, or show which one answers.
    Model(Option<String>),
    Profile(Option<String>),
    Tools,
    /// Start the tool server of this name again, or list the states of all.
    Mcp(Option<String>),
    /// Begin another conversation with this system prompt, or show the one there is.
    System(Option<String>),
    /// Copy the last answer, or the code block of this number in it.
    Copy(Option<usize>),
    /// Write the last answer to a file.
    Save(PathBuf),
    /// Write the conversation to a file.
    Export(PathBuf),
    /// Drop the last turns, so many.
    Undo(usize),
    /// Answer the last prompt again.
    Retry,
    /// Write the last prompt again, or replace it with this text.
    Edit(Option<String>),
    /// Have the model sent a summary in place of the earlier turns; what that is to keep.
    Compact(String),
    Quit,
}

/// Why a text is no command.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Wrong {
    #[error("{}", unknown(.0))]
    Unknown(String),
    #[error("/{0} needs the name of a file, as in /{0} answer.md")]
    NoFile(&'static str),
    #[error("/copy takes the number of a code block, as in /copy 1")]
    NoNumber,
    #[error("/undo takes the number of turns to drop, as in /undo 3")]
    NoCount,
    #[error("/rename needs a title, as in /rename Ports of the mail server")]
    NoTitle,
    #[error("/mcp alone lists the tool servers, and /mcp restart NAME starts one of them again")]
    NoServer,
    #[error("/{0} takes nothing after its name; to send a prompt that begins like it, write //{0}")]
    TakesNothing(&'static str),
}

/// Commands of other programs, and their equivalents here.
const ELSEWHERE: [(&[&str], &str); 3] = [
    (&["clear", "reset"], "/new begins another conversation"),
    (&["history", "sessions", "load"], "/resume lists the stored conversations"),
    (&["attach", "image", "file"], "@FILE in a prompt attaches a file"),
];

/// What is said of a word that is no command.
fn unknown(word: &str) -> String {
    if let Some((_, here)) = ELSEWHERE.iter().find(|(names, _)| names.contains(&word)) {
        return format!("there is no command /{word}; {here}, and /help lists the commands");
    }
    let near = nearest(word, Name::ALL.into_iter().map(Name::as_str));
    let near = near.map(|name| format!("did you mean /{name}? ")).unwrap_or_default();
    format!("there is no command /{word}; {near}/help lists the commands")
}

impl Name {
    pub(crate) const ALL: [Self; 18] = [
        Self::Help,
        Self::New,
        Self::Resume,
        Self::Fork,
        Self::Rename,
        Self::Model,
        Self::Profile,
        Self::Tools,
        Self::Mcp,
        Self::System,
        Self::Copy,
        Self::Save,
        Self::Export,
        Self::Undo,
        Self::Retry,
        Self::Edit,
        Self::Compact,
        Self::Quit,
    ];

    /// The name, what may stand after it, and what the command does.
    fn texts(self) -> (&'static str, &'static str, &'static str) {
        match self {
            Self::Help => ("help", "", "list commands and keys"),
            Self::New => ("new", "", "begin another conversation"),
            Self::Resume => ("resume", "[WORDS]", "choose a stored conversation and go on with it"),
            Self::Fork => ("fork", "", "copy the stored conversation and go on in the copy"),
            Self::Rename => ("rename", "TITLE", "give the stored conversation a title"),
            Self::Model => ("model", "[NAME]", "choose the model, from a list without a name"),
            Self::Profile => ("profile", "[NAME]", "choose a profile, from a list without a name"),
            Self::Tools => ("tools", "", "list the tool servers and their tools"),
            Self::Mcp => (
                "mcp",
                "[restart NAME]",
                "list the tool servers with their resources and prompts, or start one again",
            ),
            Self::System => (
                "system",
                "[TEXT]",
                "begin another conversation with this system prompt, or show it",
            ),
            Self::Copy => ("copy", "[NUMBER]", "copy the last answer, or one of its code blocks"),
            Self::Save => ("save", "FILE", "write the last answer to a file"),
            Self::Export => ("export", "FILE", "write the conversation to a file, as Markdown"),
            Self::Undo => ("undo", "[NUMBER]", "drop the last turn, or the last turns"),
            Self::Retry => ("retry", "", "answer the last prompt again"),
            Self::Edit => {
                ("edit", "[TEXT]", "write the last prompt again, or replace it with a text")
            }
            Self::Compact => (
                "compact",
                "[WORDS]",
                "summarize the earlier turns for the model, which is sent them no more",
            ),
            Self::Quit => ("quit", "", "leave"),
        }
    }

    pub(crate) fn as_str(self) -> &'static str {
        self.texts().0
    }

    /// What may stand after the name.
    pub(crate) fn parameter(self) -> &'static str {
        self.texts().1
    }

    pub(crate) fn about(self) -> &'static str {
        self.texts().2
    }

    /// Whether it does something where lines are read in place of keys: there is no clipboard there.
    pub(crate) fn takes_lines(self) -> bool {
        self != Self::Copy
    }
}

impl Command {
    /// The command in `text`; `None` if it is a prompt. Two slashes begin a prompt with one.
    pub(crate) fn read(text: &str) -> Option<Result<Self, Wrong>> {
        let rest = text.strip_prefix('/').filter(|rest| !rest.starts_with('/'))?;
        let (word, parameter) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
        // The path of a file is no command.
        if word.contains('/') {
            return None;
        }
        let parameter = parameter.trim();
        // What other programs call it.
        let word = if word == "exit" { Name::Quit.as_str() } else { word };
        let name = Name::ALL.into_iter().find(|name| name.as_str() == word);
        let Some(name) = name else { return Some(Err(Wrong::Unknown(word.to_owned()))) };
        Some(Self::new(name, parameter))
    }

    /// Whether the provider gets the conversation with it.
    pub(crate) fn sends(&self) -> bool {
        matches!(self, Self::Retry | Self::Edit(Some(_)) | Self::Compact(_))
    }

    /// Whether it is carried out only while the model is silent.
    pub(crate) fn wants_silence(&self) -> bool {
        matches!(
            self,
            Self::New
                | Self::System(Some(_))
                | Self::Fork
                | Self::Undo(_)
                | Self::Retry
                | Self::Edit(_)
                | Self::Compact(_)
        )
    }

    fn new(name: Name, parameter: &str) -> Result<Self, Wrong> {
        let given = (!parameter.is_empty()).then(|| parameter.to_owned());
        // With or without quotes, as after `@`.
        let quoted = parameter.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
        let path = quoted.unwrap_or(parameter);
        let file =
            |name| (!path.is_empty()).then(|| PathBuf::from(path)).ok_or(Wrong::NoFile(name));
        if name.parameter().is_empty() && given.is_some() {
            return Err(Wrong::TakesNothing(name.as_str()));
        }
        Ok(match name {
            Name::Help => Self::Help,
            Name::New => Self::New,
            Name::Resume => Self::Resume(parameter.to_owned()),
            Name::Fork => Self::Fork,
            Name::Rename => Self::Rename(given.ok_or(Wrong::NoTitle)?),
            Name::Model => Self::Model(given),
            Name::Profile => Self::Profile(given),
            Name::Tools => Self::Tools,
            Name::Mcp => Self::Mcp(match parameter.split_once(char::is_whitespace) {
                _ if parameter.is_empty() => None,
                Some(("restart", server)) => Some(server.trim().to_owned()),
                Some(_) | None => return Err(Wrong::NoServer),
            }),
            Name::System => Self::System(given),
            Name::Copy => match given {
                None => Self::Copy(None),
                Some(number) => Self::Copy(Some(number.parse().map_err(|_| Wrong::NoNumber)?)),
            },
            Name::Save => Self::Save(file("save")?),
            Name::Export => Self::Export(file("export")?),
            Name::Undo => Self::Undo(match given {
                None => 1,
                Some(count) => {
                    let count = count.parse().ok().filter(|count| *count > 0);
                    count.ok_or(Wrong::NoCount)?
                }
            }),
            Name::Retry => Self::Retry,
            Name::Edit => Self::Edit(given),
            Name::Compact => Self::Compact(parameter.to_owned()),
            Name::Quit => Self::Quit,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slash_begins_a_command() {
        let check = |text: &str, expected| assert_eq!(Command::read(text), expected, "{text:?}");
        check("hello", None);
        check("/help", Some(Ok(Command::Help)));
        check("/model  gpt-5 ", Some(Ok(Command::Model(Some("gpt-5".to_owned())))));
        check("/model", Some(Ok(Command::Model(None))));
        check("/save a b.md", Some(Ok(Command::Save("a b.md".into()))));
        check("/save \"my notes.md\"", Some(Ok(Command::Save("my notes.md".into()))));
        check("/export \"all.md\"", Some(Ok(Command::Export("all.md".into()))));
        check("/save 5\" disk", Some(Ok(Command::Save("5\" disk".into()))));
        check("/save \"\"", Some(Err(Wrong::NoFile("save"))));
        check("/save", Some(Err(Wrong::NoFile("save"))));
        check("/copy 2", Some(Ok(Command::Copy(Some(2)))));
        check("/copy x", Some(Err(Wrong::NoNumber)));
        check("/undo", Some(Ok(Command::Undo(1))));
        check("/undo 3", Some(Ok(Command::Undo(3))));
        check("/rename", Some(Err(Wrong::NoTitle)));
        check("/rename My title", Some(Ok(Command::Rename("My title".to_owned()))));
        check("/mcp", Some(Ok(Command::Mcp(None))));
        check("/mcp restart my files", Some(Ok(Command::Mcp(Some("my files".to_owned())))));
        check("/mcp files", Some(Err(Wrong::NoServer)));
        check("/undo 0", Some(Err(Wrong::NoCount)));
        check("/undo all", Some(Err(Wrong::NoCount)));
        check("/new chapter", Some(Err(Wrong::TakesNothing("new"))));
        check("/dance", Some(Err(Wrong::Unknown("dance".to_owned()))));
        check("/exit", Some(Ok(Command::Quit)));
        check("//help", None);
        check("/usr/bin/env is a path", None);
    }

    #[test]
    fn a_misspelt_command_names_its_neighbour() {
        let check = |word: &str, expected: &str| {
            let Some(Err(wrong)) = Command::read(&format!("{word} x")) else { panic!("{word}") };
            assert_eq!(wrong.to_string(), format!("there is no command {word}; {expected}"));
        };
        check("/udno", "did you mean /undo? /help lists the commands");
        check("/Modle", "did you mean /model? /help lists the commands");
        check("/SAVE", "did you mean /save? /help lists the commands");
        check("/dance", "/help lists the commands");
        check("/clear", "/new begins another conversation, and /help lists the commands");
        check("/sessions", "/resume lists the stored conversations, and /help lists the commands");
        check("/image", "@FILE in a prompt attaches a file, and /help lists the commands");
    }

    #[test]
    fn every_name_is_read_as_itself() {
        for name in Name::ALL {
            let more = match name.parameter().is_empty() {
                true => "",
                false if name == Name::Mcp => " restart 1",
                false => " 1",
            };
            let text = format!("/{}{more}", name.as_str());
            assert!(matches!(Command::read(&text), Some(Ok(_))), "{text}");
        }
    }
}
