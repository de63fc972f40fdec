//! The change that an event makes to the conversation: which entity it creates or changes, and how.

use crate::protocol::any::Any;
use crate::protocol::constants::kind;
use std::borrow::Cow;

/// A change of one entity.
#[derive(Debug)]
pub(super) struct Change<'a> {
    pub(super) kind: &'static str,
    pub(super) id: Cow<'a, str>,
    /// The entity is created by this event.
    pub(super) is_new: bool,
    pub(super) text: Text<'a>,
    pub(super) status: &'a str,
    /// The prompt or the tool's name, which the entity repeats. Only for a new one.
    pub(super) repeated: &'a str,
}

/// The change of the entity's text.
#[derive(Clone, Copy, Debug)]
pub(super) enum Text<'a> {
    Unknown,
    Same,
    /// It is being streamed.
    Open,
    Whole(&'a str),
}

impl<'a> Change<'a> {
    fn new(kind: &'static str, id: &'a str, text: Text<'a>, status: &'a str) -> Self {
        Self { kind, id: id.into(), is_new: true, text, status, repeated: "" }
    }

    fn repeating(self, repeated: &'a str) -> Self {
        Self { repeated, ..self }
    }

    fn later(self) -> Self {
        Self { is_new: false, ..self }
    }
}

/// The change that an event makes, if any.
#[expect(clippy::wildcard_enum_match_arm, reason = "all others change no entity")]
pub(super) fn change_of(payload: &Any) -> Option<Change<'_>> {
    let message = |id, text, status| Change::new(kind::MESSAGE, id, text, status);
    let call = |id, text, status| Change::new(kind::TOOL_CALL, id, text, status);
    Some(match payload {
        Any::ChatTextPatch(it) => message(&it.message_id, Text::Same, &it.status).later(),
        Any::ChatReasoningPatch(it) => message(&it.message_id, Text::Same, &it.status).later(),
        Any::ChatUserMessageAccepted(it) => {
            message(&it.message_id, Text::Whole(&it.text), &it.status).repeating(&it.prompt)
        }
        Any::ChatTextSegmentStarted(it) => {
            message(&it.message_id, Text::Open, &it.status).repeating(&it.prompt)
        }
        Any::ChatReasoningSegmentStarted(it) => message(&it.message_id, Text::Open, &it.status),
        Any::ChatTextSegmentFinished(it) => {
            message(&it.message_id, Text::Whole(&it.text), &it.status).later()
        }
        Any::ChatReasoningSegmentFinished(it) => {
            message(&it.message_id, Text::Whole(&it.text), &it.status).later()
        }
        Any::ChatRunFailed(it) => message(&it.message_id, Text::Whole(&it.error), &it.status),
        Any::ChatToolCallStarted(it) => {
            call(&it.tool_call_id, Text::Unknown, &it.status).repeating(&it.tool_name)
        }
        Any::ChatToolArgumentsPatch(it) => call(&it.tool_call_id, Text::Open, &it.status).later(),
        Any::ChatToolCallRequested(it) => {
            call(&it.tool_call_id, Text::Whole(&it.input), &it.status).later()
        }
        Any::ChatToolExecutionStarted(it) => call(&it.tool_call_id, Text::Same, &it.status).later(),
        Any::ChatToolCallFinished(it) => call(&it.tool_call_id, Text::Same, &it.status).later(),
        Any::ChatToolResultReady(it) => Change {
            id: format!("{}:result", it.tool_call_id).into(),
            ..Change::new(kind::TOOL_RESULT, "", Text::Whole(&it.result), &it.status)
                .repeating(&it.tool_name)
        },
        _ => return None,
    })
}

/// The text of an entity.
#[expect(clippy::wildcard_enum_match_arm, reason = "all others are no entities with a text")]
pub(super) fn text_of(payload: &Any) -> Option<&str> {
    match payload {
        Any::ChatMessageEntity(it) => Some(&it.text),
        Any::ToolCallEntity(it) => Some(&it.input),
        Any::ToolResultEntity(it) => Some(&it.result),
        _ => None,
    }
}
