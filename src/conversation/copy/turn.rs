//! A turn as the model is sent it, made of the entities that people see.

use super::super::attached;
use super::super::entities::{End, number_at_end, result_id};
use super::super::event::{Attachments, ToolCall, ToolResult};
use super::super::transcript::{
    INTERRUPTED_TOOL, LOST_ATTACHMENTS, Turn, TurnItem, TurnState, is_answered,
};
use crate::protocol::any::Any;
use crate::protocol::attachment::Attachment;
use crate::protocol::constants::{kind, message, role, tool_call, tool_result};
use crate::protocol::id::ToolCallId;
use crate::protocol::proto::chat::{
    ChatAttachment, ChatMessageEntity, CorrelationInfo, ToolCallEntity, ToolResultEntity,
};
use crate::protocol::proto::rpc::SnapshotEntity;
use std::collections::HashMap;
use std::sync::Arc;

/// Ends what is open in the entities of a run, as the end of a process does. `ordinal` is that of the
/// last event. Returns whether something was open.
pub(super) fn close(entities: &mut Vec<SnapshotEntity>, ordinal: &mut u64) -> bool {
    let ids = entities.iter().map(|entity| entity.id.clone()).collect::<Vec<_>>();
    let (mut was_open, mut results) = (false, Vec::new());
    for entity in entities.iter_mut() {
        match &mut entity.payload {
            Some(Any::ChatMessageEntity(it)) if it.status == message::STREAMING => {
                message::STOPPED.clone_into(&mut it.status);
                (it.streaming, it.r#final) = (false, true);
            }
            Some(Any::ToolCallEntity(it)) if it.status != tool_call::COMPLETED => {
                let id = result_id(&it.tool_call_id);
                if was_requested(it) && !ids.contains(&id) {
                    *ordinal += 1;
                    results.push(interrupted(it, id, *ordinal));
                }
                tool_call::COMPLETED.clone_into(&mut it.status);
                it.executing = false;
            }
            Some(_) | None => continue,
        }
        was_open = true;
        *ordinal += 1;
        entity.last_event_ordinal = *ordinal;
    }
    entities.extend(results);
    was_open
}

/// Whether the arguments of an open call are complete.
fn was_requested(call: &ToolCallEntity) -> bool {
    match call.status.as_str() {
        tool_call::EXECUTING => true,
        tool_call::PENDING => !call.input.is_empty(),
        _ => false,
    }
}

/// The result of a call that has none.
fn interrupted(call: &ToolCallEntity, id: String, ordinal: u64) -> SnapshotEntity {
    let result = ToolResultEntity {
        message_id: call.message_id.clone(),
        tool_call_id: call.tool_call_id.clone(),
        tool_name: call.tool_name.clone(),
        result: INTERRUPTED_TOOL.to_owned(),
        status: tool_result::ERROR.to_owned(),
        correlation: call.correlation.clone(),
    };
    SnapshotEntity::new(kind::TOOL_RESULT, id, (ordinal, ordinal), Some(result.into()))
}

/// How a run ended, of which only the entities are known: with a partial or without any answer it was
/// stopped.
pub(super) fn end_of(entities: &[SnapshotEntity]) -> End {
    let (mut has_answer, mut is_partial) = (false, false);
    for entity in entities {
        if let Some(Any::ChatMessageEntity(it)) = &entity.payload {
            if it.role == role::ERROR {
                return End::Failed(it.text.clone());
            }
            has_answer |= it.role == role::ASSISTANT;
            is_partial |= it.status == message::STOPPED || it.status == message::FAILED;
        }
    }
    if has_answer && !is_partial { End::Finished } else { End::Stopped }
}

/// The turn of these entities; `None` if it failed before it had an answer, and so is not sent to the
/// model.
pub(super) fn turn_of(number: u32, entities: &[SnapshotEntity], end: &End) -> Option<Turn> {
    let results: HashMap<&str, &ToolResultEntity> = entities
        .iter()
        .filter_map(|entity| match &entity.payload {
            Some(Any::ToolResultEntity(it)) => Some((it.tool_call_id.as_str(), &**it)),
            Some(_) | None => None,
        })
        .collect();
    let mut prompt = None;
    let mut items = Vec::new();
    for entity in entities {
        match &entity.payload {
            Some(Any::ChatMessageEntity(it)) if it.role == role::USER => {
                let attachments = attachments(&it.attachments);
                let said = (text_of(it, &attachments).into(), attachments);
                match prompt {
                    None => prompt = Some(said),
                    Some(_) => items.push(TurnItem::Prompt(said.0, said.1)),
                }
            }
            Some(Any::ChatMessageEntity(it)) if it.role == role::ASSISTANT => {
                let round = round(it.correlation.as_ref());
                let text = it.text.as_str();
                items.extend(
                    (!text.is_empty()).then(|| TurnItem::Text { round, text: text.into() }),
                );
            }
            Some(Any::ToolCallEntity(it)) => items.extend(called(it, &results)),
            Some(_) | None => {}
        }
    }
    let (prompt, attachments) = prompt.unwrap_or_default();
    let state = match end {
        End::Withheld if !is_answered(&items) => TurnState::Refused,
        End::Finished | End::Withheld => TurnState::Finished,
        End::Failed(_) if items.iter().all(TurnItem::is_blank) => return None,
        End::Stopped | End::Failed(_) => TurnState::Interrupted,
    };
    Some(Turn { number, prompt, attachments, items, state })
}

/// The call, if the model has made it: it has a result, as its arguments were complete.
fn called(call: &ToolCallEntity, results: &HashMap<&str, &ToolResultEntity>) -> Option<TurnItem> {
    let returned = results.get(call.tool_call_id.as_str())?;
    let result = match returned.status == tool_result::ERROR {
        true => ToolResult::Error(returned.result.clone()),
        false => ToolResult::Success(returned.result.clone()),
    };
    Some(TurnItem::Called {
        round: round(call.correlation.as_ref()).unwrap_or(1),
        tool: ToolCall { id: ToolCallId(call.tool_call_id.clone()), name: call.tool_name.clone() },
        input: call.input.clone(),
        result: Some(Arc::new(result)),
    })
}

/// Number of the provider call of an entity.
fn round(ids: Option<&CorrelationInfo>) -> Option<u32> {
    number_at_end(&ids?.provider_call_id)
}

/// The text of a prompt whose attachments are reduced to `remaining`, as it is sent to the model: an
/// empty prompt without attachments would be no message.
pub(super) fn text_of<'a>(prompt: &'a ChatMessageEntity, remaining: &[Attachment]) -> &'a str {
    let is_lost = remaining.is_empty() && !prompt.attachments.is_empty();
    if is_lost && prompt.text.trim().is_empty() { LOST_ATTACHMENTS } else { &prompt.text }
}

/// The attachments whose content, or its address, is in the frames.
fn attachments(shown: &[ChatAttachment]) -> Attachments {
    shown.iter().filter_map(attached::given).collect()
}
