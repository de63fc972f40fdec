//! The conversation as a stream of changes: one UI event for each backend event.

mod names;
mod runs;
mod segments;
mod tools;

use super::event::{Event, Recorded, Usage};
use super::patch::{Patches, Piece};
use crate::protocol::any::Any;
use crate::protocol::attachment::Attachment;
use crate::protocol::id::SessionId;
use crate::protocol::proto::chat;
use names::Names;
pub(crate) use names::{FIRST_PROMPT, correlation, message_id, user_message_id};

/// The projection. Holds what it must know of earlier events: the names of the current run and, in
/// snapshot mode, the text of the open segment.
#[derive(Clone, Debug)]
pub(crate) struct Ui {
    patches: Patches,
    names: Names,
    so_far: String,
}

impl Ui {
    /// A projection for one session.
    pub(crate) fn new(session: SessionId, patches: Patches) -> Self {
        Self { patches, names: Names::new(session), so_far: String::new() }
    }

    /// The UI event for `recorded`; `None` for one that no client sees as it happens. Events must come in the order
    /// of their ordinals.
    pub(crate) fn project(&mut self, recorded: Recorded) -> Option<Any> {
        self.names.enter(recorded.scope);
        let names = &self.names;
        let ordinal = recorded.ordinal;
        Some(match recorded.event {
            Event::PromptAccepted { prompt, attachments } => {
                names.prompt_accepted(prompt, &attachments, FIRST_PROMPT)
            }
            Event::PromptJoined { prompt, attachments, number } => {
                names.prompt_accepted(prompt, &attachments, number)
            }
            Event::RunStarted { prompt, .. } => names.run_started(prompt),
            Event::CallStarted => names.call_started(),
            Event::SegmentStarted { segment, prompt } => self.segment_started(segment, prompt),
            Event::SegmentPatched { segment, sequence, offset_bytes, text } => {
                self.segment_patched(segment, Piece { sequence, offset_bytes, text })
            }
            Event::SegmentFinished { segment, status, prompt, text, finish_reason, .. } => {
                self.segment_finished((segment, status), (prompt, text), finish_reason)
            }
            Event::ToolCallStarted { tool } => names.tool_started(tool),
            Event::ToolArgumentsPatched { tool, sequence, offset_bytes, text } => {
                let piece = Piece { sequence, offset_bytes, text };
                names.arguments_patched(tool, piece, self.patches.fields)
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
            Event::ToolProgressed { tool, progress } => names.tool_progressed(tool, progress),
            Event::ToolResultReady { tool, result } => names.tool_returned(tool, &result),
            Event::ToolCallFinished { tool, .. } => names.tool_finished(tool),
            Event::CallMetadataUpdated { stop_reason, usage } => {
                names.call_metadata(stop_reason, usage)
            }
            Event::CallFinished {
                stop_reason, class, usage, duration_ms, has_tool_calls, ..
            } => names.call_finished((stop_reason, class), usage, duration_ms, has_tool_calls),
            Event::RepairRequested { reason, number, max } => {
                names.repair_requested(reason, number, max)
            }
            Event::RunFinished { duration_ms, cut_off } => {
                names.run_finished(duration_ms, cut_off.as_deref())
            }
            Event::TurnDropped { message_ids, tool_call_ids, turns } => {
                runs::turns_dropped(message_ids, tool_call_ids, turns)
            }
            Event::RunStopped { reason } => names.run_stopped(reason),
            Event::RunFailed { error } => names.run_failed(error),
            Event::Compaction(event) => names.compaction(event, ordinal),
            Event::Call(report) => names.call_report(report),
            Event::Session(event) => runs::session_event(event)?,
            Event::TurnImported(_) => return None,
        })
    }
}

impl Ui {
    /// The UI event for `recorded` with all fields. Patches contain the new text alone, independent of
    /// the patch mode of clients.
    pub(crate) fn backend_event(&mut self, recorded: &Recorded) -> Option<Any> {
        let patches = std::mem::take(&mut self.patches);
        let payload = self.project(recorded.clone());
        self.patches = patches;
        payload
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

/// What people read of an answer that was cut off for this reason.
pub(super) fn cut_off_text(reason: &str) -> String {
    format!("the answer was cut off: {reason}")
}

/// Attachments as events and snapshots show them.
pub(super) fn shown(attachments: &[Attachment]) -> Vec<chat::ChatAttachment> {
    attachments.iter().map(|attachment| attachment.shown.clone()).collect()
}
