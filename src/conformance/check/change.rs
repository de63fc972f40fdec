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
pub(super) fn change_of(payload: &Any) -> Option<Change<'_>> {
    of_message(payload).or_else(|| of_tool(payload))
}

fn of_message(payload: &Any) -> Option<Change<'_>> {
    let message = |id, text, status| Some(Change::new(kind::MESSAGE, id, text, status));
    if let Any::ChatTextPatch(it) = payload {
        return message(&it.message_id, Text::Same, &it.status).map(Change::later);
    }
    if let Any::ChatReasoningPatch(it) = payload {
        return message(&it.message_id, Text::Same, &it.status).map(Change::later);
    }
    if let Any::ChatUserMessageAccepted(it) = payload {
        let change = message(&it.message_id, Text::Whole(&it.text), &it.status)?;
        return Some(change.repeating(&it.prompt));
    }
    if let Any::ChatTextSegmentStarted(it) = payload {
        return Some(message(&it.message_id, Text::Open, &it.status)?.repeating(&it.prompt));
    }
    if let Any::ChatReasoningSegmentStarted(it) = payload {
        return message(&it.message_id, Text::Open, &it.status);
    }
    if let Any::ChatTextSegmentFinished(it) = payload {
        return message(&it.message_id, Text::Whole(&it.text), &it.status).map(Change::later);
    }
    if let Any::ChatReasoningSegmentFinished(it) = payload {
        return message(&it.message_id, Text::Whole(&it.text), &it.status).map(Change::later);
    }
    if let Any::ChatRunFailed(it) = payload {
        return message(&it.message_id, Text::Whole(&it.error), &it.status);
    }
    None
}

fn of_tool(payload: &Any) -> Option<Change<'_>> {
    let call = |id, text, status| Change::new(kind::TOOL_CALL, id, text, status);
    if let Any::ChatToolArgumentsPatch(it) = payload {
        return Some(call(&it.tool_call_id, Text::Open, &it.status).later());
    }
    if let Any::ChatToolCallStarted(it) = payload {
        let change = call(&it.tool_call_id, Text::Unknown, &it.status);
        return Some(change.repeating(&it.tool_name));
    }
    if let Any::ChatToolCallRequested(it) = payload {
        return Some(call(&it.tool_call_id, Text::Whole(&it.input), &it.status).later());
    }
    if let Any::ChatToolExecutionStarted(it) = payload {
        return Some(call(&it.tool_call_id, Text::Same, &it.status).later());
    }
    if let Any::ChatToolCallFinished(it) = payload {
        return Some(call(&it.tool_call_id, Text::Same, &it.status).later());
    }
    if let Any::ChatToolResultReady(it) = payload {
        let change = Change {
            kind: kind::TOOL_RESULT,
            id: format!("{}:result", it.tool_call_id).into(),
            ..Change::new(kind::TOOL_RESULT, "", Text::Whole(&it.result), &it.status)
        };
        return Some(change.repeating(&it.tool_name));
    }
    None
}

/// The text of an entity.
pub(super) fn text_of(payload: &Any) -> Option<&str> {
    if let Any::ChatMessageEntity(it) = payload {
        return Some(&it.text);
    }
    if let Any::ToolCallEntity(it) = payload {
        return Some(&it.input);
    }
    if let Any::ToolResultEntity(it) = payload {
        return Some(&it.result);
    }
    None
}
