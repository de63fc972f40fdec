//! A conversation as a list of what was said and called, in order. Pure.

use super::words::turn_words;
use crate::conversation::endings::{Endings, Unanswered, mark};
use crate::conversation::summaries::Summarized;
use crate::conversation::timeline::turn_number;
use crate::conversation::transcript::{Turn, TurnState};
use crate::protocol::any::Any;
use crate::protocol::attachment::shown_name;
use crate::protocol::constants::tool_result;
use crate::protocol::proto::session::TurnSummary;
use crate::store::Conversation;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// A part of a conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Said {
    /// A message of a person or of the model.
    Message {
        /// `user`, `assistant`, `thinking`, `warning` or `error`.
        role: String,
        text: String,
        /// Names of the files that go with it.
        files: Vec<String>,
        /// How it ended, if it did not end well.
        mark: Option<String>,
    },
    /// A call of a tool, with its arguments as JSON.
    Call { tool: String, input: String },
    /// The result of a tool.
    Result { tool: String, text: String, is_error: bool },
    /// How a prompt ended that has no answer.
    Ended(String),
    /// What answered in the turn before it, and what it took.
    Summary(String),
}

/// The conversation as it is exported: with a summary after each turn.
pub(super) fn summarized(found: &Conversation) -> Vec<Said> {
    parts(found, found.summaries.turns())
}

/// The conversation as it is stored. A turn that ended without an answer shows how it ended, unless it
/// finished.
pub(super) fn entries(found: &Conversation) -> Vec<Said> {
    parts(found, &[])
}

fn parts(found: &Conversation, summaries: &[Summarized]) -> Vec<Said> {
    let has_finished = |turn: &&Arc<Turn>| match turn.state {
        TurnState::Finished | TurnState::Refused => true,
        TurnState::Open | TurnState::Interrupted => false,
    };
    let finished = found.turns.iter().filter(has_finished);
    let finished: HashSet<u32> = finished.map(|turn| turn.number).collect();
    let is_stopped =
        |it: &Unanswered| turn_number(&it.turn).is_none_or(|turn| !finished.contains(&turn));
    let ended = |run: Option<Unanswered>| run.filter(is_stopped).map(|run| Said::Ended(run.how));
    let summaries: HashMap<u32, &TurnSummary> =
        summaries.iter().map(|it| (it.turn, &it.summary)).collect();
    let summary = |turn: u32| Some(Said::Summary(turn_words(summaries.get(&turn)?)));
    let mut said = Vec::new();
    let mut turn = None;
    let mut endings = Endings::default();
    for entity in &found.state.entities {
        let Some(payload) = entity.payload.clone().map(Any::into_whole) else { continue };
        said.extend(ended(endings.next(&payload)));
        let before = std::mem::replace(&mut turn, turn_of(&payload));
        said.extend(before.filter(|_| before != turn).and_then(summary));
        said.extend(entry(payload));
    }
    said.extend(ended(endings.finish()));
    said.extend(turn.and_then(summary));
    said
}

/// The number of the turn that an entity belongs to.
fn turn_of(payload: &Any) -> Option<u32> {
    let ids = if let Any::ChatMessageEntity(it) = payload {
        it.correlation.as_ref()
    } else if let Any::ToolCallEntity(it) = payload {
        it.correlation.as_ref()
    } else if let Any::ToolResultEntity(it) = payload {
        it.correlation.as_ref()
    } else {
        None
    };
    turn_number(&ids?.turn_id)
}

fn entry(payload: Any) -> Option<Said> {
    if let Any::ChatMessageEntity(it) = payload {
        let mark = mark(&it);
        let files = it.attachments.iter().map(shown_name).collect();
        let (role, text) = (it.role.clone(), it.text.clone());
        return Some(Said::Message { role, text, files, mark });
    }
    if let Any::ToolCallEntity(it) = payload {
        return Some(Said::Call { tool: it.tool_name.clone(), input: it.input.clone() });
    }
    if let Any::ToolResultEntity(it) = payload {
        let (tool, text) = (it.tool_name.clone(), it.result.clone());
        let is_error = it.status == tool_result::ERROR;
        return Some(Said::Result { tool, text, is_error });
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::proto::chat::{ChatAttachment, ChatMessageEntity};

    /// A `data:` URL names no file.
    #[test]
    fn an_attachment_without_a_name_is_shown_by_what_it_is() {
        let file = |filename: &str, media_type: &str| {
            let (filename, media_type) = (filename.to_owned(), media_type.to_owned());
            ChatAttachment { filename, media_type, ..ChatAttachment::default() }
        };
        let attachments = vec![
            file("a.png", "image/png"),
            file("", "image/png"),
            file("", "application/pdf"),
            file("", ""),
        ];
        let entity = ChatMessageEntity { attachments, ..ChatMessageEntity::default() };
        let Some(Said::Message { files, .. }) = entry(entity.into()) else { panic!("a message") };
        let expected = ["a.png", "image (image/png)", "document.pdf (application/pdf)", "file"];
        assert_eq!(files, expected);
    }
}
