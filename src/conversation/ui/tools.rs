//! UI events of tool calls. All but those of a patch have the same four fields first: which message,
//! which run, which call and which tool.

use super::names::Names;
use crate::conversation::event::{CallProgress, ToolCall, ToolResult};
use crate::conversation::patch::{PatchFields, Piece, lean_arguments_patch};
use crate::protocol::any::{Any, Kind, Struct, Value};
use crate::protocol::command::Decision;
use crate::protocol::constants::{tool_call, tool_result};
use crate::protocol::proto::chat::{self, ChatStreamPatchMode};
use crate::protocol::proto::frontendtools::{self, ToolExecutionMode};
use crate::protocol::proto::tools::{self, ApprovalDecision};

/// A message about the call `$tool`, with the fields that are its own.
macro_rules! about {
    ($names:expr, $tool:expr, $package:ident::$message:ident { $($field:tt)* }) => {
        $package::$message {
            message_id: $names.root.clone(),
            correlation: $names.tool(&$tool),
            tool_call_id: $tool.id.0,
            tool_name: $tool.name,
            $($field)*
        }
        .into()
    };
}

impl Names {
    pub(super) fn tool_started(&self, tool: ToolCall) -> Any {
        let (input, status) = (String::new(), tool_call::PENDING.to_owned());
        about!(self, tool, chat::ChatToolCallStarted { input, executing: false, status })
    }

    pub(super) fn arguments_patched(
        &self,
        tool: ToolCall,
        piece: Piece,
        fields: PatchFields,
    ) -> Any {
        match fields {
            PatchFields::Full => self.full_arguments_patch(tool, piece),
            PatchFields::Lean => lean_arguments_patch(tool, piece),
        }
    }

    /// Several calls can be open at once, so arguments are sent as pieces in both patch modes.
    fn full_arguments_patch(&self, tool: ToolCall, piece: Piece) -> Any {
        let stream_id = tool.id.0.clone();
        about!(
            self,
            tool,
            chat::ChatToolArgumentsPatch {
                stream_id,
                sequence: piece.sequence,
                offset: piece.offset_bytes,
                arguments: piece.text,
                mode: ChatStreamPatchMode::Append.into(),
                status: tool_call::STREAMING_ARGS.to_owned(),
                r#final: false,
            }
        )
    }

    pub(super) fn tool_requested(&self, tool: ToolCall, input: String) -> Any {
        let status = tool_call::PENDING.to_owned();
        about!(self, tool, chat::ChatToolCallRequested { input, executing: false, status })
    }

    pub(super) fn approval_requested(&self, tool: ToolCall, server: String, input: String) -> Any {
        about!(self, tool, tools::ToolApprovalRequested { server, input })
    }

    pub(super) fn approval_resolved(&self, tool: ToolCall, decision: Decision) -> Any {
        let (decision, reason) = match decision {
            Decision::AllowOnce => (ApprovalDecision::AllowOnce, String::new()),
            Decision::AllowSession => (ApprovalDecision::AllowSession, String::new()),
            Decision::Deny { reason } => (ApprovalDecision::Deny, reason),
        };
        let decision = decision.into();
        about!(self, tool, tools::ToolApprovalResolved { decision, reason })
    }

    pub(super) fn client_call_requested(
        &self,
        tool: ToolCall,
        input: Struct,
        is_human: bool,
    ) -> Any {
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

    pub(super) fn client_result_received(
        &self,
        tool: ToolCall,
        result: Option<Struct>,
        error: String,
    ) -> Any {
        let status = if error.is_empty() { tool_result::SUCCESS } else { tool_result::ERROR };
        frontendtools::FrontendToolResultReceived {
            message_id: self.root.clone(),
            tool_call_id: tool.id.0,
            tool_name: tool.name,
            result: result.and_then(Struct::if_sent),
            status: status.to_owned(),
            error,
        }
        .into()
    }

    pub(super) fn tool_executing(&self, tool: ToolCall, input: String) -> Any {
        let status = tool_call::EXECUTING.to_owned();
        about!(self, tool, chat::ChatToolExecutionStarted { input, executing: true, status })
    }

    pub(super) fn tool_progressed(&self, tool: ToolCall, progress: CallProgress) -> Any {
        let CallProgress { progress, total, message } = progress;
        let number = |number| Value { kind: Some(Kind::Number(number)) };
        let (progress, total) = (Some(number(progress)), total.map(number));
        about!(self, tool, tools::ToolCallProgressed { progress, total, message })
    }

    pub(super) fn tool_returned(&self, tool: ToolCall, result: &ToolResult) -> Any {
        let (status, result) = (result.status().to_owned(), result.text().to_owned());
        about!(self, tool, chat::ChatToolResultReady { status, result })
    }

    pub(super) fn tool_finished(&self, tool: ToolCall) -> Any {
        let status = tool_call::COMPLETED.to_owned();
        about!(self, tool, chat::ChatToolCallFinished { status })
    }
}
