//! What can happen to a chat, and what the shell is to do.

use super::Size;
use super::attaching::{Draft, Large};
use super::notices::Notice;
use super::pasting::PastedFile;
use super::picker::Choice;
use super::requests::Outgoing;
use super::shell_commands::CommandOutput;
use crate::protocol::wire::Frame;
use crate::task::server::FilledPrompt;
use crate::tool::servers::Offers;
use crate::tui::input::Candidates;
use crate::tui::terminal::keys::Typed;
use std::path::PathBuf;

/// The prompt that a line stands for.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Expansion {
    /// Its text, and what a server sends with it.
    pub(crate) prompt: FilledPrompt,
    /// The paths after `@` in the line, which go with the prompt of a command file.
    pub(crate) mentions: Vec<String>,
    /// What the person is told of the prompt.
    pub(crate) warnings: Vec<String>,
}

impl From<FilledPrompt> for Expansion {
    fn from(prompt: FilledPrompt) -> Self {
        Self { prompt, mentions: Vec::new(), warnings: Vec::new() }
    }
}

/// Everything that can happen to a chat.
#[derive(Clone, Debug)]
pub(crate) enum Event {
    Typed(Typed),
    /// A line was read where there are no keys.
    Line(String),
    /// The terminal has lost the end of a line.
    LineCut,
    /// Ctrl-C where lines are typed at a terminal, and nothing runs.
    LineInterrupted,
    /// The input has ended.
    InputEnded,
    Frame(Box<Frame>),
    /// A request was made, and its frames have this id.
    Sent(Outgoing, String),
    /// Time has passed.
    Tick,
    Resized(Size),
    /// A line of the log.
    Logged(String),
    /// The result of an action, or its error.
    Reported(Result<String, String>),
    /// The stored conversations.
    Sessions(Result<Vec<Choice>, String>),
    /// The names of the profiles.
    Profiles(Result<Vec<String>, String>),
    /// The prompt that the line of a command is, if it is one: one of a command file or of a server.
    Expanded {
        line: String,
        joins: bool,
        prompt: Result<Expansion, String>,
    },
    /// What a tool server offers to ask with, or why it can't say.
    Offered {
        server: String,
        offers: Result<Offers, String>,
    },
    /// The models that the provider lists.
    Models(Result<Vec<String>, String>),
    /// Files, or profiles, that the text before the cursor may name. `completes`: for the tab key.
    Files {
        found: Candidates,
        completes: bool,
    },
    /// Files that the draft names were looked for; these are missing, and these are of a type that no provider takes.
    FilesFound {
        looked_for: Vec<String>,
        missing: Vec<String>,
        unknown: Vec<String>,
    },
    /// The files that a draft names were measured.
    Measured {
        large: Vec<Large>,
        draft: Draft,
    },
    /// The files that a pasted text names; none if it names anything else.
    PastedFiles {
        text: String,
        files: Vec<PastedFile>,
    },
    /// The text as the editor of the person has left it.
    Edited(Result<String, EditorFailure>),
    /// The shell command of the person has ended, or could not be started.
    CommandEnded(Result<CommandOutput, String>),
    /// The conversation was copied, or why it was not.
    Forked(Result<Copied, String>),
    /// Another conversation has begun, and how that is announced.
    Opened(String),
    /// Another conversation could not begin, and why.
    NotOpened(String),
    /// Another process holds this conversation. `is_only`: there is no other one to stay in.
    SessionHeld {
        session: String,
        is_only: bool,
    },
    /// Another provider would get the conversation, as this text says.
    ProviderChanged(String),
    /// A paste has begun and not ended, and has so many bytes so far. `None`: it has ended.
    Pasting(Option<usize>),
}

/// Why the prompt is not what the editor of the person has left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct EditorFailure {
    pub(crate) why: String,
    /// What was saved in the editor all the same, if it is not what the editor was given.
    pub(crate) saved: Option<String>,
}

/// An action for the shell.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Action {
    Request(Outgoing),
    Open(Opening),
    /// The conversation that is being opened is not wanted any more.
    Stay,
    /// Copy the stored conversation of this id.
    Fork(String),
    ListSessions,
    ListProfiles,
    /// Make the prompt of a command file or of a server, which a line names.
    Expand {
        line: String,
        joins: bool,
    },
    /// List the models of the provider that answers.
    ListModels,
    /// List the profiles whose names begin with `part`, which stands at `start`.
    CompleteProfile {
        start: usize,
        part: String,
    },
    /// List the files that match `part`, which stands at `start`. `completes`: for the tab key.
    ListFiles {
        start: usize,
        part: String,
        completes: bool,
    },
    /// Look for the files that these mentions name.
    FindFiles(Vec<String>),
    /// Look for large ones before the draft is sent.
    Measure {
        mentions: Vec<String>,
        draft: Draft,
    },
    /// Look for the files that a pasted text names, before the next key.
    FindPasted(String),
    Edit(String),
    /// Run this shell command, which the person has typed.
    RunCommand(String),
    /// End it, with all that it has started.
    EndCommand,
    /// Start this tool server again.
    RestartServer(String),
    /// Have these tool servers list what they offer to ask with.
    AskServers(Vec<String>),
    Suspend,
    Redraw,
    Copy(String),
    /// Have the terminal say that something waits.
    Notify(Notice),
    Write {
        path: PathBuf,
        text: String,
    },
    /// Store a prompt for later chats.
    Remember(String),
    Scroll(Scroll),
    /// The folding of what was printed has changed.
    Fold,
    /// No more requests come: end once the waiting ones are answered.
    EndInput,
    /// Stop the run and end.
    Quit,
}

/// The copy of a conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Copied {
    pub(crate) session: String,
    /// Which turn was left out, and why, for people.
    pub(crate) omission: Option<String>,
}

/// Another conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Opening {
    New {
        system: Option<String>,
    },
    Stored {
        session: String,
    },
    /// A copy of the conversation before.
    Copied {
        session: String,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scroll {
    PageUp,
    PageDown,
    End,
}
