//! The conversation as a stream of changes: one UI event for each backend event.

use super::event::{
    Attachments, Ending, Event, Recorded, Scope, Segment, SegmentKind, ToolCall, ToolResult, Usage,
};
use super::patch::{PatchFields, PatchMode, Patches, Piece, lean_arguments_patch, lean_patch};
use super::timeline::turn_id;
use crate::protocol::any::{Any, Shared, Struct};
use crate::protocol::attachment::Attachment;
use crate::protocol::command::Decision;
use crate::protocol::id::SessionId;
use crate::protocol::proto::chat::{self, ChatStreamPatchMode, CorrelationInfo};
use crate::protocol::proto::extract;
use crate::protocol::proto::frontendtools::{self, ToolExecutionMode};
use crate::protocol::proto::session;
use crate::protocol::proto::tools::{self, ApprovalDecision};
use crate::protocol::words::{SOURCE, SOURCE_AT_START, message, role, tool_call, tool_result};
use crate::support::text::Text;

/// The projection. Holds what it must know of earlier events: the names of the current run and, in
/// snapshot mode, the text of the open segment.
#[derive(Clone, Debug)]
pub(crate) struct Ui {
    patches: Patches,
    names: Names,
    so_far: String,
}

/// The ids of a scope, formatted once and not for each of its thousands of patches.
#[derive(Clone, Debug)]
struct Names {
    session: SessionId,
    scope: Option<Scope>,
    root: String,
    correlation: CorrelationInfo,
}

impl Ui {
    /// A projection for one session.
    pub(crate) fn new(session: SessionId, patches: Patches) -> Self {
        Self { patches, names: Names::new(session), so_far: String::new() }
    }

    /// The UI event for `recorded`. Events must come in the order of their ordinals.
    pub(crate) fn project(&mut self, recorded: Recorded) -> Any {
        self.names.enter(recorded.scope);
        let names = &self.names;
        match recorded.event {
            Event::PromptAccepted { prompt, attachments } => {
                names.prompt_accepted(prompt, &attachments, FIRST_PROMPT)
            }
            Event::PromptJoined { prompt, attachments, number } => {
                names.prompt_accepted(prompt, &attachments, number)
            }
            Event::RunStarted { prompt } => names.run_started(prompt),
            Event::CallStarted => {
                chat::ChatProviderCallStarted { correlation: names.call() }.into()
            }
            Event::SegmentStarted { segment, prompt } => self.segment_started(segment, prompt),
            Event::SegmentPatched { segment, sequence, offset_bytes, text } => {
                let piece = self.piece(Piece { sequence, offset_bytes, text });
                match self.patches.fields {
                    PatchFields::Full => self.segment_patched(segment, piece),
                    PatchFields::Lean => {
                        let message_id = self.names.message(segment);
                        lean_patch(message_id, segment.kind, self.patches.mode, piece)
                    }
                }
            }
            Event::SegmentFinished { segment, status, prompt, text, finish_reason, .. } => {
                self.segment_finished((segment, status), (prompt, text), finish_reason)
            }
            Event::ToolCallStarted { tool } => names.tool_started(tool),
            Event::ToolArgumentsPatched { tool, sequence, offset_bytes, text } => {
                let piece = Piece { sequence, offset_bytes, text };
                match self.patches.fields {
                    PatchFields::Full => names.arguments_patched(tool, piece),
                    PatchFields::Lean => lean_arguments_patch(tool, piece),
                }
            }
            Event::ToolCallRequested { tool, input } => names.tool_requested(tool, input),
            Event::ApprovalRequested { tool, server, input } => {
                names.approval_requested(tool, server, input)
            }
            Event::ApprovalResolved { tool, decision } => names.approval_resolved(tool, decision),
            Event::ClientCallRequested { tool, input, is_human } => {
                names.client_call_requested(tool, input, is_human)
            }
            Event::ClientResultReceived { tool, result, error } => {
                names.client_result_received(tool, result, error)
            }
            Event::ToolExecutionStarted { tool, input } => names.tool_executing(tool, input),
            Event::ToolResultReady { tool, result } => names.tool_returned(tool, result),
            Event::ToolCallFinished { tool } => names.tool_finished(tool),
            Event::CallMetadataUpdated { stop_reason, usage } => {
                let usage = Some(usage.on_wire());
                let correlation = names.call();
                chat::ChatProviderCallMetadataUpdated { stop_reason, usage, correlation }.into()
            }
            Event::CallFinished {
                stop_reason, class, usage, duration_ms, has_tool_calls, ..
            } => chat::ChatProviderCallFinished {
                stop_reason,
                finish_class: class.as_str().to_owned(),
                usage: usage.map(Usage::on_wire),
                duration_ms: Some(signed(duration_ms)),
                has_tool_calls,
                correlation: names.call(),
            }
            .into(),
            Event::RepairRequested { reason, number, max } => extract::AnswerRejected {
                message_id: names.root.clone(),
                reason,
                repair: number,
                repairs_max: max,
                correlation: names.run(),
            }
            .into(),
            Event::RunFinished { duration_ms, cut_off } => {
                names.run_finished(duration_ms, cut_off.as_deref())
            }
            Event::TurnDropped { message_ids, tool_call_ids, turns } => session::TurnDropped {
                prompt_message_id: message_ids.first().cloned().unwrap_or_default(),
                message_ids,
                tool_call_ids,
                turn_ids: turns.into_iter().map(turn_id).collect(),
            }
            .into(),
            Event::RunStopped { reason } => names.run_stopped(reason),
            Event::RunFailed { error } => names.run_failed(error),
        }
    }

    fn segment_started(&mut self, segment: Segment, prompt: Text) -> Any {
        self.so_far.clear();
        let message_id = self.names.message(segment);
        let status = message::STREAMING.to_owned();
        let correlation = self.names.segment(segment);
        match segment.kind {
            SegmentKind::Text => {
                let message = chat::ChatTextSegmentStarted {
                    message_id,
                    role: role::ASSISTANT.to_owned(),
                    prompt: String::new(),
                    status,
                    streaming: true,
                    correlation,
                };
                Shared::payload(message, prompt, Text::default())
            }
            SegmentKind::Thinking => chat::ChatReasoningSegmentStarted {
                message_id,
                parent_message_id: self.names.root.clone(),
                role: role::THINKING.to_owned(),
                status,
                streaming: true,
                source: SOURCE_AT_START.to_owned(),
                correlation,
            }
            .into(),
        }
    }

    fn segment_patched(&self, segment: Segment, piece: Piece) -> Any {
        let message_id = self.names.message(segment);
        let stream_id = message_id.clone();
        let status = message::STREAMING.to_owned();
        let correlation = self.names.segment(segment);
        match segment.kind {
            SegmentKind::Text => chat::ChatTextPatch {
                message_id,
                role: role::ASSISTANT.to_owned(),
                stream_id,
                sequence: piece.sequence,
                offset: piece.offset_bytes,
                text: piece.text,
                mode: self.patches.mode.on_wire().into(),
                status,
                correlation,
                ..Default::default()
            }
            .into(),
            SegmentKind::Thinking => chat::ChatReasoningPatch {
                message_id,
                parent_message_id: self.names.root.clone(),
                role: role::THINKING.to_owned(),
                stream_id,
                sequence: piece.sequence,
                offset: piece.offset_bytes,
                text: piece.text,
                mode: self.patches.mode.on_wire().into(),
                status,
                source: SOURCE.to_owned(),
                correlation,
                ..Default::default()
            }
            .into(),
        }
    }

    fn segment_finished(
        &mut self,
        (segment, status): (Segment, Ending),
        (prompt, text): (Text, Text),
        finish_reason: String,
    ) -> Any {
        self.so_far.clear();
        let status = status.as_str().to_owned();
        let message_id = self.names.message(segment);
        let correlation = self.names.segment(segment);
        match segment.kind {
            SegmentKind::Text => {
                let message = chat::ChatTextSegmentFinished {
                    message_id,
                    role: role::ASSISTANT.to_owned(),
                    status,
                    r#final: true,
                    finish_reason,
                    correlation,
                    ..Default::default()
                };
                Shared::payload(message, prompt, text)
            }
            SegmentKind::Thinking => {
                let message = chat::ChatReasoningSegmentFinished {
                    message_id,
                    parent_message_id: self.names.root.clone(),
                    role: role::THINKING.to_owned(),
                    status,
                    source: SOURCE.to_owned(),
                    finish_reason,
                    correlation,
                    ..Default::default()
                };
                Shared::payload(message, prompt, text)
            }
        }
    }

    fn piece(&mut self, piece: Piece) -> Piece {
        match self.patches.mode {
            PatchMode::Append => piece,
            PatchMode::Snapshot => {
                self.so_far += &piece.text;
                Piece { text: self.so_far.clone(), offset_bytes: 0, ..piece }
            }
        }
    }
}

impl Usage {
    /// The message that carries it.
    pub(super) fn on_wire(self) -> chat::UsageInfo {
        chat::UsageInfo {
            input_tokens: self.input_tokens,
            output_tokens: self.output_tokens,
            cached_tokens: self.cached_tokens,
            cache_creation_input_tokens: self.cache_creation_tokens,
            cache_read_input_tokens: self.cache_read_tokens,
        }
    }
}

/// Milliseconds as `int64`. A duration that does not fit is 292 million years long.
fn signed(duration_ms: u64) -> i64 {
    i64::try_from(duration_ms).unwrap_or(i64::MAX)
}

/// What people read of an answer that was cut off for this reason.
pub(super) fn cut_off_text(reason: &str) -> String {
    format!("the answer was cut off: {reason}")
}

/// Attachments as events and snapshots show them.
pub(super) fn shown(attachments: &[Attachment]) -> Vec<chat::ChatAttachment> {
    attachments.iter().map(|attachment| attachment.shown.clone()).collect()
}

impl Names {
    fn new(session: SessionId) -> Self {
        Self { session, scope: None, root: String::new(), correlation: Default::default() }
    }

    fn enter(&mut self, scope: Scope) {
        if self.scope != Some(scope) {
            self.scope = Some(scope);
            self.root = scope.run.root();
            self.correlation = correlation(&self.session, scope);
        }
    }

    fn message(&self, segment: Segment) -> String {
        message_id(&self.root, segment)
    }

    /// Correlation of an event of the whole run.
    fn run(&self) -> Option<CorrelationInfo> {
        let provider_call_id = String::new();
        Some(CorrelationInfo { provider_call_id, ..self.correlation.clone() })
    }

    /// Correlation of an event of the provider call.
    fn call(&self) -> Option<CorrelationInfo> {
        Some(self.correlation.clone())
    }

    fn segment(&self, segment: Segment) -> Option<CorrelationInfo> {
        Some(CorrelationInfo { segment_id: segment.to_string(), ..self.correlation.clone() })
    }

    fn tool(&self, tool: &ToolCall) -> Option<CorrelationInfo> {
        Some(CorrelationInfo { tool_call_id: tool.id.0.clone(), ..self.correlation.clone() })
    }

    fn prompt_accepted(&self, prompt: Text, attachments: &Attachments, number: u32) -> Any {
        let message = chat::ChatUserMessageAccepted {
            message_id: user_message_id(&self.root, number),
            role: role::USER.to_owned(),
            status: message::ACCEPTED.to_owned(),
            attachments: shown(attachments),
            ..Default::default()
        };
        Shared::payload(message, prompt.clone(), prompt)
    }

    fn run_started(&self, prompt: Text) -> Any {
        let (message_id, correlation) = (self.root.clone(), self.run());
        chat::ChatRunStarted { message_id, prompt: prompt.as_str().to_owned(), correlation }.into()
    }

    fn run_finished(&self, duration_ms: u64, cut_off: Option<&str>) -> Any {
        chat::ChatRunFinished {
            message_id: self.root.clone(),
            status: Ending::Finished.as_str().to_owned(),
            error: cut_off.map_or(String::new(), cut_off_text),
            duration_ms: Some(signed(duration_ms)),
            correlation: self.run(),
        }
        .into()
    }

    fn run_stopped(&self, error: String) -> Any {
        let (message_id, correlation) = (self.root.clone(), self.run());
        let status = Ending::Stopped.as_str().to_owned();
        chat::ChatRunStopped { message_id, status, error, correlation }.into()
    }

    fn run_failed(&self, error: String) -> Any {
        let (message_id, correlation) = (self.root.clone(), self.run());
        let status = Ending::Failed.as_str().to_owned();
        chat::ChatRunFailed { message_id, status, error, correlation }.into()
    }

    fn tool_started(&self, tool: ToolCall) -> Any {
        chat::ChatToolCallStarted {
            message_id: self.root.clone(),
            correlation: self.tool(&tool),
            tool_call_id: tool.id.0,
            tool_name: tool.name,
            input: String::new(),
            executing: false,
            status: tool_call::PENDING.to_owned(),
        }
        .into()
    }

    /// Several calls can be open at once, so arguments are sent as pieces in both patch modes.
    fn arguments_patched(&self, tool: ToolCall, piece: Piece) -> Any {
        chat::ChatToolArgumentsPatch {
            message_id: self.root.clone(),
            correlation: self.tool(&tool),
            stream_id: tool.id.0.clone(),
            tool_call_id: tool.id.0,
            tool_name: tool.name,
            sequence: piece.sequence,
            offset: piece.offset_bytes,
            arguments: piece.text,
            mode: ChatStreamPatchMode::Append.into(),
            status: tool_call::STREAMING_ARGS.to_owned(),
            r#final: false,
        }
        .into()
    }

    fn tool_requested(&self, tool: ToolCall, input: String) -> Any {
        chat::ChatToolCallRequested {
            message_id: self.root.clone(),
            correlation: self.tool(&tool),
            tool_call_id: tool.id.0,
            tool_name: tool.name,
            input,
            executing: false,
            status: tool_call::PENDING.to_owned(),
        }
        .into()
    }

    fn approval_requested(&self, tool: ToolCall, server: String, input: String) -> Any {
        tools::ToolApprovalRequested {
            message_id: self.root.clone(),
            correlation: self.tool(&tool),
            tool_call_id: tool.id.0,
            tool_name: tool.name,
            server,
            input,
        }
        .into()
    }

    fn approval_resolved(&self, tool: ToolCall, decision: Decision) -> Any {
        let (decision, reason) = match decision {
            Decision::AllowOnce => (ApprovalDecision::AllowOnce, String::new()),
            Decision::AllowSession => (ApprovalDecision::AllowSession, String::new()),
            Decision::Deny { reason } => (ApprovalDecision::Deny, reason),
        };
        tools::ToolApprovalResolved {
            message_id: self.root.clone(),
            correlation: self.tool(&tool),
            tool_call_id: tool.id.0,
            tool_name: tool.name,
            decision: decision.into(),
            reason,
        }
        .into()
    }

    fn client_call_requested(&self, tool: ToolCall, input: Struct, is_human: bool) -> Any {
        let mode = match is_human {
            true => ToolExecutionMode::FrontendHuman,
            false => ToolExecutionMode::FrontendAuto,
        };
        frontendtools::FrontendToolCallRequested {
            message_id: self.root.clone(),
            tool_call_id: tool.id.0,
            tool_name: tool.name,
            input: Some(input),
            mode: mode.into(),
            status: tool_call::PENDING.to_owned(),
        }
        .into()
    }

    fn client_result_received(&self, tool: ToolCall, result: Option<Struct>, error: String) -> Any {
        let status = if error.is_empty() { tool_result::SUCCESS } else { tool_result::ERROR };
        frontendtools::FrontendToolResultReceived {
            message_id: self.root.clone(),
            tool_call_id: tool.id.0,
            tool_name: tool.name,
            result,
            status: status.to_owned(),
            error,
        }
        .into()
    }

    fn tool_executing(&self, tool: ToolCall, input: String) -> Any {
        chat::ChatToolExecutionStarted {
            message_id: self.root.clone(),
            correlation: self.tool(&tool),
            tool_call_id: tool.id.0,
            tool_name: tool.name,
            input,
            executing: true,
            status: tool_call::EXECUTING.to_owned(),
        }
        .into()
    }

    fn tool_returned(&self, tool: ToolCall, result: ToolResult) -> Any {
        chat::ChatToolResultReady {
            message_id: self.root.clone(),
            correlation: self.tool(&tool),
            tool_call_id: tool.id.0,
            tool_name: tool.name,
            status: result.status().to_owned(),
            result: result.into_text(),
        }
        .into()
    }

    fn tool_finished(&self, tool: ToolCall) -> Any {
        chat::ChatToolCallFinished {
            message_id: self.root.clone(),
            correlation: self.tool(&tool),
            tool_call_id: tool.id.0,
            tool_name: tool.name,
            status: tool_call::COMPLETED.to_owned(),
        }
        .into()
    }
}

/// Message id of a segment.
pub(crate) fn message_id(root: &str, segment: Segment) -> String {
    match segment.kind {
        SegmentKind::Text => format!("{root}:text:{segment}"),
        SegmentKind::Thinking => format!("{root}:thinking:{segment}"),
    }
}

/// Number of the prompt that began a run.
pub(crate) const FIRST_PROMPT: u32 = 1;

/// Message id of a prompt, by its number in the run.
pub(crate) fn user_message_id(root: &str, number: u32) -> String {
    match number {
        FIRST_PROMPT => format!("{root}-user"),
        _ => format!("{root}-user-{number}"),
    }
}

/// The ids of a scope in wire format.
pub(crate) fn correlation(session: &SessionId, scope: Scope) -> CorrelationInfo {
    let run_id = scope.run.to_string();
    let provider_call_id = match scope.call {
        0 => String::new(),
        call => format!("{run_id}:call-{call}"),
    };
    CorrelationInfo {
        session_id: session.as_str().to_owned(),
        run_id,
        turn_id: turn_id(scope.turn),
        provider_call_id,
        ..Default::default()
    }
}
