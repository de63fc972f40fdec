//! The effect of an event on the state of a run.

use super::calls::Retry;
use super::text::Patch;
use crate::protocol::any::{Any, Struct};
use crate::protocol::constants::{REASON_OF_REASONING, ending};
use crate::protocol::proto::chat::UsageInfo;
use crate::protocol::proto::session::UsageTotals;
use crate::protocol::proto::tools::ApprovalDecision;

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RunEnd {
    Finished,
    Stopped,
    Failed,
}

impl RunEnd {
    /// The status of such a run.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Finished => ending::FINISHED,
            Self::Stopped => ending::STOPPED,
            Self::Failed => ending::FAILED,
        }
    }

    /// The end of a run in which a segment has this status, if the run cut the segment off.
    pub(super) fn of_cut(status: &str) -> Option<Self> {
        match status {
            ending::STOPPED => Some(Self::Stopped),
            ending::FAILED => Some(Self::Failed),
            _ => None,
        }
    }
}

/// An event, as far as the order of a run is concerned.
#[derive(Clone, Copy, Debug)]
pub(super) enum RunEvent<'a> {
    PromptAccepted {
        id: &'a str,
    },
    RunStarted,
    CallStarted,
    CallUpdated {
        reason: &'a str,
    },
    CallFinished {
        class: &'a str,
        reason: &'a str,
        usage: Option<&'a UsageInfo>,
    },
    /// The request of a call is sent again.
    Retried(Retry),
    /// The answer of the call was cut off.
    Truncated {
        class: &'a str,
        reason: &'a str,
    },
    /// How soon the call was answered.
    Timed {
        first_byte_ms: Option<u64>,
        first_token_ms: Option<u64>,
    },
    /// The token counts of the call.
    Counted(&'a UsageTotals),
    /// The model is asked for another answer.
    Rejected {
        repair: u32,
        repairs_max: u32,
    },
    Segment(&'a str, SegmentEvent<'a>),
    Tool(&'a str, ToolEvent<'a>),
    RunEnded {
        end: RunEnd,
        error: &'a str,
    },
    /// May occur anywhere: older forms of events, and extensions.
    Other,
}

/// A change of a segment.
#[derive(Clone, Copy, Debug)]
pub(super) enum SegmentEvent<'a> {
    Started,
    Patched(Patch<'a>),
    Finished { text: &'a str, status: &'a str, reason: &'a str },
}

/// A change of a tool call.
#[derive(Clone, Copy, Debug)]
pub(super) enum ToolEvent<'a> {
    Started,
    Patched(Patch<'a>),
    Requested {
        input: &'a str,
    },
    ApprovalRequested {
        input: &'a str,
    },
    ApprovalResolved {
        is_allowed: bool,
    },
    Executing {
        input: &'a str,
    },
    /// The client is to run it.
    ClientAsked {
        input: Option<&'a Struct>,
    },
    ClientAnswered {
        status: &'a str,
    },
    Returned {
        status: &'a str,
    },
    Finished,
}

impl<'a> RunEvent<'a> {
    /// Whether it may occur between the end of a provider call and a report on that call.
    pub(super) fn reports_on_call(&self) -> bool {
        matches!(self, Self::Truncated { .. } | Self::Timed { .. } | Self::Counted(_) | Self::Other)
    }

    pub(super) fn of(payload: &'a Any) -> Self {
        of_run(payload)
            .or_else(|| of_text(payload))
            .or_else(|| of_reasoning(payload))
            .or_else(|| of_tool(payload))
            .or_else(|| of_approval(payload))
            .or_else(|| of_client_tool(payload))
            .or_else(|| of_call(payload))
            .unwrap_or(Self::Other)
    }
}

fn of_run(payload: &Any) -> Option<RunEvent<'_>> {
    if let Any::ChatProviderCallFinished(it) = payload {
        let (class, reason) = (&it.finish_class, &it.stop_reason);
        return Some(RunEvent::CallFinished { class, reason, usage: it.usage.as_ref() });
    }
    if let Any::ChatProviderCallMetadataUpdated(it) = payload {
        return Some(RunEvent::CallUpdated { reason: &it.stop_reason });
    }
    if let Any::ChatUserMessageAccepted(it) = payload {
        return Some(RunEvent::PromptAccepted { id: &it.message_id });
    }
    if let Any::ChatRunFinished(it) = payload {
        return Some(RunEvent::RunEnded { end: RunEnd::Finished, error: &it.error });
    }
    // By name: no other field matters here.
    Some(match payload.name() {
        "ChatRunStarted" => RunEvent::RunStarted,
        "ChatProviderCallStarted" => RunEvent::CallStarted,
        "ChatRunStopped" => RunEvent::RunEnded { end: RunEnd::Stopped, error: "" },
        "ChatRunFailed" => RunEvent::RunEnded { end: RunEnd::Failed, error: "" },
        _ => return None,
    })
}

fn of_text(payload: &Any) -> Option<RunEvent<'_>> {
    if let Any::ChatTextPatch(it) = payload {
        let (sequence, offset, mode) = (it.sequence, it.offset, it.mode);
        let patch = Patch { sequence, offset, mode, text: &it.text };
        return Some(RunEvent::Segment(&it.message_id, SegmentEvent::Patched(patch)));
    }
    if let Any::ChatTextSegmentStarted(it) = payload {
        return Some(RunEvent::Segment(&it.message_id, SegmentEvent::Started));
    }
    if let Any::ChatTextSegmentFinished(it) = payload {
        let end = SegmentEvent::Finished {
            text: &it.text,
            status: &it.status,
            reason: &it.finish_reason,
        };
        return Some(RunEvent::Segment(&it.message_id, end));
    }
    None
}

fn of_reasoning(payload: &Any) -> Option<RunEvent<'_>> {
    if let Any::ChatReasoningPatch(it) = payload {
        let (sequence, offset, mode) = (it.sequence, it.offset, it.mode);
        let patch = Patch { sequence, offset, mode, text: &it.text };
        return Some(RunEvent::Segment(&it.message_id, SegmentEvent::Patched(patch)));
    }
    if let Any::ChatReasoningSegmentStarted(it) = payload {
        return Some(RunEvent::Segment(&it.message_id, SegmentEvent::Started));
    }
    if let Any::ChatReasoningSegmentFinished(it) = payload {
        // Where an answer follows, it is not yet known why the call will end.
        let reason = match &*it.finish_reason {
            REASON_OF_REASONING => "",
            reason => reason,
        };
        let end = SegmentEvent::Finished { text: &it.text, status: &it.status, reason };
        return Some(RunEvent::Segment(&it.message_id, end));
    }
    None
}

fn of_tool(payload: &Any) -> Option<RunEvent<'_>> {
    if let Any::ChatToolArgumentsPatch(it) = payload {
        let (sequence, offset, mode) = (it.sequence, it.offset, it.mode);
        let patch = Patch { sequence, offset, mode, text: &it.arguments };
        return Some(RunEvent::Tool(&it.tool_call_id, ToolEvent::Patched(patch)));
    }
    if let Any::ChatToolCallStarted(it) = payload {
        return Some(RunEvent::Tool(&it.tool_call_id, ToolEvent::Started));
    }
    if let Any::ChatToolCallRequested(it) = payload {
        return Some(RunEvent::Tool(&it.tool_call_id, ToolEvent::Requested { input: &it.input }));
    }
    if let Any::ChatToolExecutionStarted(it) = payload {
        return Some(RunEvent::Tool(&it.tool_call_id, ToolEvent::Executing { input: &it.input }));
    }
    if let Any::ChatToolResultReady(it) = payload {
        return Some(RunEvent::Tool(&it.tool_call_id, ToolEvent::Returned { status: &it.status }));
    }
    if let Any::ChatToolCallFinished(it) = payload {
        return Some(RunEvent::Tool(&it.tool_call_id, ToolEvent::Finished));
    }
    None
}

fn of_approval(payload: &Any) -> Option<RunEvent<'_>> {
    if let Any::ToolApprovalRequested(it) = payload {
        return Some(RunEvent::Tool(
            &it.tool_call_id,
            ToolEvent::ApprovalRequested { input: &it.input },
        ));
    }
    if let Any::ToolApprovalResolved(it) = payload {
        let is_allowed = match it.decision() {
            ApprovalDecision::AllowOnce | ApprovalDecision::AllowSession => true,
            ApprovalDecision::Deny | ApprovalDecision::Unspecified => false,
        };
        return Some(RunEvent::Tool(&it.tool_call_id, ToolEvent::ApprovalResolved { is_allowed }));
    }
    None
}

fn of_client_tool(payload: &Any) -> Option<RunEvent<'_>> {
    if let Any::FrontendToolCallRequested(it) = payload {
        let input = it.input.as_ref();
        return Some(RunEvent::Tool(&it.tool_call_id, ToolEvent::ClientAsked { input }));
    }
    if let Any::FrontendToolResultReceived(it) = payload {
        let answered = ToolEvent::ClientAnswered { status: &it.status };
        return Some(RunEvent::Tool(&it.tool_call_id, answered));
    }
    None
}

/// What extensions report of a provider call.
fn of_call(payload: &Any) -> Option<RunEvent<'_>> {
    if let Any::RetryScheduled(it) = payload {
        let (attempt, attempts_max) = (it.attempt, it.attempts_max);
        return Some(RunEvent::Retried(Retry { attempt, attempts_max, is_started: false }));
    }
    if let Any::RetryStarted(it) = payload {
        let (attempt, attempts_max) = (it.attempt, it.attempts_max);
        return Some(RunEvent::Retried(Retry { attempt, attempts_max, is_started: true }));
    }
    if let Any::AnswerTruncated(it) = payload {
        return Some(RunEvent::Truncated { class: &it.finish_class, reason: &it.stop_reason });
    }
    if let Any::CallTiming(it) = payload {
        let (first_byte_ms, first_token_ms) = (it.first_byte_ms, it.first_token_ms);
        return Some(RunEvent::Timed { first_byte_ms, first_token_ms });
    }
    if let Any::UsageTotals(it) = payload {
        return Some(RunEvent::Counted(it));
    }
    if let Any::AnswerRejected(it) = payload {
        return Some(RunEvent::Rejected { repair: it.repair, repairs_max: it.repairs_max });
    }
    None
}
