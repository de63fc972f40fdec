//! Entities as messages of a snapshot.

use super::{Body, Entity, HISTORY_TURN, SegmentState, ToolState};
use crate::conversation::event::{Ending, Segment, SegmentKind, ToolCall, ToolResult};
use crate::conversation::log::CUT_OFF;
use crate::conversation::ui::{correlation, cut_off_text, message_id, user_message_id};
use crate::protocol::any::{Any, Shared};
use crate::protocol::constants::{SEGMENT_REASONING, SEGMENT_TEXT, message, role, tool_call};
use crate::protocol::id::SessionId;
use crate::protocol::proto::chat::{self, ChatMessageEntity, CorrelationInfo};
use crate::protocol::proto::rpc::SnapshotEntity;
use crate::support::text::Text;

impl Entity {
    pub(super) fn on_wire(&self, session: &SessionId) -> SnapshotEntity {
        if let Body::Imported(entity) = &self.body {
            return (**entity).clone();
        }
        let (kind, id) = self.key();
        let ordinals = (self.created.0, self.changed.0);
        SnapshotEntity::new(kind, id, ordinals, self.payload(session))
    }

    fn payload(&self, session: &SessionId) -> Option<Any> {
        let root = self.scope.run.root();
        let ids = match self.scope.turn {
            // The entity is not from a run of this process.
            HISTORY_TURN => {
                CorrelationInfo { session_id: session.as_str().to_owned(), ..Default::default() }
            }
            _ => correlation(session, self.scope),
        };
        Some(match &self.body {
            Body::Prompt { text, attachments, number, is_cut_off } => {
                let mut message = prompt_message(ids, &root, *number);
                message.attachments = attachments.to_vec();
                if *is_cut_off {
                    message.error = cut_off_text(CUT_OFF);
                }
                Shared::payload(message, text.clone(), text.clone())
            }
            Body::Segment { segment, prompt, text, state } => {
                let message = segment_message(ids, &root, (*segment, state));
                Shared::payload(message, prompt.clone(), text.clone())
            }
            Body::Failure { error } => {
                let text = Text::from(error.as_str());
                Shared::payload(failure(ids, root, error), Text::default(), text)
            }
            Body::Tool { tool, input, state } => tool_call(ids, root, tool, (input, *state)),
            Body::ToolResult { tool, result } => tool_result(ids, root, tool, result),
            Body::Imported(entity) => return entity.payload.clone(),
        })
    }
}

fn prompt_message(ids: CorrelationInfo, root: &str, number: u32) -> ChatMessageEntity {
    ChatMessageEntity {
        message_id: user_message_id(root, number),
        role: role::USER.to_owned(),
        status: message::ACCEPTED.to_owned(),
        r#final: true,
        correlation: Some(ids),
        ..Default::default()
    }
}

fn segment_message(
    ids: CorrelationInfo,
    root: &str,
    (segment, state): (Segment, &SegmentState),
) -> ChatMessageEntity {
    let (role, segment_type) = match segment.kind {
        SegmentKind::Text => (role::ASSISTANT, SEGMENT_TEXT),
        SegmentKind::Thinking => (role::THINKING, SEGMENT_REASONING),
    };
    let (status, streaming, error) = match state {
        SegmentState::Streaming => (message::STREAMING, true, String::new()),
        SegmentState::Ended { ending, cut_off } => {
            let error = cut_off.as_deref().map_or(String::new(), cut_off_text);
            (ending.as_str(), false, error)
        }
    };
    let segment_id = segment.to_string();
    ChatMessageEntity {
        message_id: message_id(root, segment),
        role: role.to_owned(),
        status: status.to_owned(),
        streaming,
        error,
        parent_message_id: root.to_owned(),
        segment: i32::try_from(segment.number).unwrap_or(i32::MAX),
        segment_type: segment_type.to_owned(),
        r#final: !streaming,
        correlation: Some(CorrelationInfo { segment_id, ..ids }),
        ..Default::default()
    }
}

/// The error of a run is the run's root itself, and so has no parent.
fn failure(ids: CorrelationInfo, root: String, error: &str) -> ChatMessageEntity {
    ChatMessageEntity {
        message_id: root,
        role: role::ERROR.to_owned(),
        status: Ending::Failed.as_str().to_owned(),
        error: error.to_owned(),
        r#final: true,
        correlation: Some(ids),
        ..Default::default()
    }
}

fn tool_call(
    ids: CorrelationInfo,
    message_id: String,
    tool: &ToolCall,
    (input, state): (&str, ToolState),
) -> Any {
    let status = match state {
        ToolState::Pending => tool_call::PENDING,
        ToolState::StreamingArguments => tool_call::STREAMING_ARGS,
        ToolState::Executing => tool_call::EXECUTING,
        ToolState::Completed => tool_call::COMPLETED,
    };
    chat::ToolCallEntity {
        message_id,
        tool_call_id: tool.id.0.clone(),
        tool_name: tool.name.clone(),
        input: input.to_owned(),
        executing: state == ToolState::Executing,
        status: status.to_owned(),
        correlation: Some(of_tool(ids, tool)),
    }
    .into()
}

fn tool_result(
    ids: CorrelationInfo,
    message_id: String,
    tool: &ToolCall,
    result: &ToolResult,
) -> Any {
    chat::ToolResultEntity {
        message_id,
        tool_call_id: tool.id.0.clone(),
        tool_name: tool.name.clone(),
        result: result.text().to_owned(),
        status: result.status().to_owned(),
        correlation: Some(of_tool(ids, tool)),
    }
    .into()
}

fn of_tool(ids: CorrelationInfo, tool: &ToolCall) -> CorrelationInfo {
    CorrelationInfo { tool_call_id: tool.id.0.clone(), ..ids }
}
