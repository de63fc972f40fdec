//! A chat at a terminal: one more front end of the host. `answer` draws that of a single run in the same way.

mod answer;
mod commands;
mod detached;
mod display;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod fuzzing;
mod input;
mod markdown;
mod model;
mod shell;
mod terminal;
mod text;
mod view;

// The terminal of the tests.
#[cfg(test)]
#[path = "../tests/it/vt.rs"]
mod vt;

pub(crate) use answer::AnswerLines;
pub use detached::DetachedChat;
pub(crate) use markdown::{Colours, Theme, Tone};
pub(crate) use model::Opening;
pub(crate) use shell::{
    Beginning, Bell, Chat, FirstPrompt, Forker, GoingOn, HistoryFile, NextConversation, Opener,
    ProfileNames, Screen, Services, Source, serve,
};
pub(crate) use terminal::Terminal;
pub(crate) use view::Look;
