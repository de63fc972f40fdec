//! Completes lean patches, if `hello` announces them, from the event that began their segment or
//! tool call, so that every rule applies to a whole patch.

use crate::protocol::any::Any;
use crate::protocol::constants::{SOURCE, capability::LEAN_PATCHES, tool_call};
use crate::protocol::proto::chat::{
    ChatReasoningPatch, ChatReasoningSegmentStarted, ChatStreamPatchMode, ChatTextPatch,
    ChatTextSegmentStarted, ChatToolArgumentsPatch, ChatToolCallStarted,
};
use crate::protocol::proto::rpc::RpcLine;
use crate::protocol::proto::rpc::rpc_line::Frame as Body;
use std::collections::HashMap;

/// Tool calls of one run whose first event is remembered.
const TOOL_CALLS_MAX: usize = 1024;

/// The fields that lean patches leave out.
#[derive(Clone, Debug, Default)]
pub(super) struct LeanPatches {
    is_on: bool,
    session: String,
    segment: Option<Segment>,
    tools: HashMap<String, ChatToolCallStarted>,
}

/// The last segment that began.
#[derive(Clone, Debug)]
enum Segment {
    Text(ChatTextSegmentStarted),
    Reasoning(ChatReasoningSegmentStarted),
}

impl LeanPatches {
    /// Whether `hello` announces lean patches.
    pub(super) fn is_on(&self) -> bool {
        self.is_on
    }

    /// Adds the left-out fields to a patch; remembers the fields that later patches leave out.
    pub(super) fn complete(&mut self, frame: &mut RpcLine) {
        if let Some(Body::Hello(hello)) = &frame.frame {
            self.is_on = hello.capabilities.iter().any(|word| word == LEAN_PATCHES);
        }
        if !frame.session_id.is_empty() {
            self.session.clone_from(&frame.session_id);
        }
        let Some(Body::UiEvent(event)) = &mut frame.frame else { return };
        let Some(payload) = event.payload.as_mut().filter(|_| self.is_on) else { return };
        self.remember(payload);
        if self.fill(payload) && frame.session_id.is_empty() {
            frame.session_id.clone_from(&self.session);
        }
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "patches repeat fields of these alone")]
    fn remember(&mut self, payload: &Any) {
        match payload {
            Any::ChatRunStarted(_) => {
                self.segment = None;
                self.tools.clear();
            }
            Any::ChatTextSegmentStarted(it) => {
                // The prompt may be long, and patches never have it.
                let it = ChatTextSegmentStarted { prompt: String::new(), ..(**it).clone() };
                self.segment = Some(Segment::Text(it));
            }
            Any::ChatReasoningSegmentStarted(it) => {
                self.segment = Some(Segment::Reasoning((**it).clone()));
            }
            Any::ChatToolCallStarted(it) if self.tools.len() < TOOL_CALLS_MAX => {
                let it = ChatToolCallStarted { input: String::new(), ..(**it).clone() };
                self.tools.insert(it.tool_call_id.clone(), it);
            }
            _ => {}
        }
    }

    /// Whether the payload is a patch.
    fn fill(&self, payload: &mut Any) -> bool {
        match (payload, &self.segment) {
            (Any::ChatTextPatch(patch), Some(Segment::Text(of))) => fill_text(patch, of),
            (Any::ChatReasoningPatch(patch), Some(Segment::Reasoning(of))) => {
                fill_reasoning(patch, of);
            }
            (Any::ChatToolArgumentsPatch(patch), _) => {
                if let Some(of) = self.tools.get(&patch.tool_call_id) {
                    fill_arguments(patch, of);
                }
            }
            (Any::ChatTextPatch(_) | Any::ChatReasoningPatch(_), _) => {}
            _ => return false,
        }
        true
    }
}

fn fill_text(patch: &mut ChatTextPatch, of: &ChatTextSegmentStarted) {
    set_mode(&mut patch.mode);
    set(&mut patch.stream_id, &of.message_id);
    set(&mut patch.role, &of.role);
    set(&mut patch.status, &of.status);
    patch.correlation.get_or_insert_with(|| of.correlation.clone().unwrap_or_default());
}

fn fill_reasoning(patch: &mut ChatReasoningPatch, of: &ChatReasoningSegmentStarted) {
    set(&mut patch.parent_message_id, &of.parent_message_id);
    set_mode(&mut patch.mode);
    set(&mut patch.stream_id, &of.message_id);
    set(&mut patch.role, &of.role);
    set(&mut patch.status, &of.status);
    set(&mut patch.source, SOURCE);
    patch.correlation.get_or_insert_with(|| of.correlation.clone().unwrap_or_default());
}

fn fill_arguments(patch: &mut ChatToolArgumentsPatch, of: &ChatToolCallStarted) {
    set(&mut patch.message_id, &of.message_id);
    set(&mut patch.tool_name, &of.tool_name);
    set_mode(&mut patch.mode);
    set(&mut patch.stream_id, &of.tool_call_id);
    set(&mut patch.status, tool_call::STREAMING_ARGS);
    patch.correlation.get_or_insert_with(|| of.correlation.clone().unwrap_or_default());
}

/// A lean patch without a mode is a piece.
fn set_mode(mode: &mut i32) {
    if *mode == i32::from(ChatStreamPatchMode::Unspecified) {
        *mode = ChatStreamPatchMode::Append.into();
    }
}

fn set(field: &mut String, value: &str) {
    if field.is_empty() {
        value.clone_into(field);
    }
}
