//! The effect of an event on the state of a run.

use super::calls::Retry;
use super::text::Patch;
use crate::protocol::any::{Any, Struct};
use crate::protocol::constants::{REASON_OF_REASONING, ending};
use crate::protocol::proto::chat::UsageInfo;
use crate::protocol::proto::session::UsageTotals;
use crate::protocol::proto::tools::ApprovalDecision;
use crate::support::named::named_enum;

named_enum! {
    /// How a run ended.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(super) enum RunEnd {
        Finished = ending::FINISHED,
        Stopped = ending::STOPPED,
        Failed = ending::FAILED,
    }
}

impl RunEnd {
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
    Progressed,
    Returned {
        status: &'a str,
    },
    Finished,
}

impl<'a> SegmentEvent<'a> {
    fn patched(sequence: u64, offset: u64, mode: i32, text: &'a str) -> Self {
        Self::Patched(Patch { sequence, offset, mode, text })
    }
}

impl<'a> RunEvent<'a> {
    /// Whether it may occur between the end of a provider call and a report on that call.
    pub(super) fn reports_on_call(&self) -> bool {
        matches!(self, Self::Truncated { .. } | Self::Timed { .. } | Self::Counted(_) | Self::Other)
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "all others may occur anywhere")]
    pub(super) fn of(payload: &'a Any) -> Self {
        match payload {
            Any::ChatUserMessageAccepted(it) => Self::PromptAccepted { id: &it.message_id },
            Any::ChatRunStarted(_) => Self::RunStarted,
            Any::ChatProviderCallStarted(_) => Self::CallStarted,
            Any::ChatProviderCallMetadataUpdated(it) => {
                Self::CallUpdated { reason: &it.stop_reason }
            }
            Any::ChatProviderCallFinished(it) => {
                let (class, reason) = (&it.finish_class, &it.stop_reason);
                Self::CallFinished { class, reason, usage: it.usage.as_ref() }
            }
            Any::RetryScheduled(it) => Self::retried(it.attempt, it.attempts_max, false),
            Any::RetryStarted(it) => Self::retried(it.attempt, it.attempts_max, true),
            Any::AnswerTruncated(it) => {
                Self::Truncated { class: &it.finish_class, reason: &it.stop_reason }
            }
            Any::CallTiming(it) => {
                let (first_byte_ms, first_token_ms) = (it.first_byte_ms, it.first_token_ms);
                Self::Timed { first_byte_ms, first_token_ms }
            }
            Any::UsageTotals(it) => Self::Counted(it),
            Any::AnswerRejected(it) => {
                Self::Rejected { repair: it.repair, repairs_max: it.repairs_max }
            }
            Any::ChatRunFinished(it) => Self::RunEnded { end: RunEnd::Finished, error: &it.error },
            Any::ChatRunStopped(_) => Self::RunEnded { end: RunEnd::Stopped, error: "" },
            Any::ChatRunFailed(_) => Self::RunEnded { end: RunEnd::Failed, error: "" },
            _ => of_segment(payload).or_else(|| of_tool(payload)).unwrap_or(Self::Other),
        }
    }

    fn retried(attempt: u32, attempts_max: u32, is_started: bool) -> Self {
        Self::Retried(Retry { attempt, attempts_max, is_started })
    }
}

#[expect(clippy::wildcard_enum_match_arm, reason = "all others are of no segment")]
fn of_segment(payload: &Any) -> Option<RunEvent<'_>> {
    let (id, event) = match payload {
        Any::ChatTextPatch(it) => {
            (&it.message_id, SegmentEvent::patched(it.sequence, it.offset, it.mode, &it.text))
        }
        Any::ChatReasoningPatch(it) => {
            (&it.message_id, SegmentEvent::patched(it.sequence, it.offset, it.mode, &it.text))
        }
        Any::ChatTextSegmentStarted(it) => (&it.message_id, SegmentEvent::Started),
        Any::ChatReasoningSegmentStarted(it) => (&it.message_id, SegmentEvent::Started),
        Any::ChatTextSegmentFinished(it) => {
            let (text, status, reason) = (&it.text, &it.status, &it.finish_reason);
            (&it.message_id, SegmentEvent::Finished { text, status, reason })
        }
        Any::ChatReasoningSegmentFinished(it) => {
            // Where an answer follows, it is not yet known why the call will end.
            let reason = match &*it.finish_reason {
                REASON_OF_REASONING => "",
                reason => reason,
            };
            let (text, status) = (&it.text, &it.status);
            (&it.message_id, SegmentEvent::Finished { text, status, reason })
        }
        _ => return None,
    };
    Some(RunEvent::Segment(id, event))
}

#[expect(clippy::wildcard_enum_match_arm, reason = "all others are of no tool call")]
fn of_tool(payload: &Any) -> Option<RunEvent<'_>> {
    let (id, event) = match payload {
        Any::ChatToolCallStarted(it) => (&it.tool_call_id, ToolEvent::Started),
        Any::ChatToolArgumentsPatch(it) => {
            let (sequence, offset, mode) = (it.sequence, it.offset, it.mode);
            let patch = Patch { sequence, offset, mode, text: &it.arguments };
            (&it.tool_call_id, ToolEvent::Patched(patch))
        }
        Any::ChatToolCallRequested(it) => {
            (&it.tool_call_id, ToolEvent::Requested { input: &it.input })
        }
        Any::ToolApprovalRequested(it) => {
            (&it.tool_call_id, ToolEvent::ApprovalRequested { input: &it.input })
        }
        Any::ToolApprovalResolved(it) => {
            let is_allowed = match it.decision() {
                ApprovalDecision::AllowOnce | ApprovalDecision::AllowSession => true,
                ApprovalDecision::Deny | ApprovalDecision::Unspecified => false,
            };
            (&it.tool_call_id, ToolEvent::ApprovalResolved { is_allowed })
        }
        Any::ChatToolExecutionStarted(it) => {
            (&it.tool_call_id, ToolEvent::Executing { input: &it.input })
        }
        Any::ToolCallProgressed(it) => (&it.tool_call_id, ToolEvent::Progressed),
        Any::FrontendToolCallRequested(it) => {
            (&it.tool_call_id, ToolEvent::ClientAsked { input: it.input.as_ref() })
        }
        Any::FrontendToolResultReceived(it) => {
            (&it.tool_call_id, ToolEvent::ClientAnswered { status: &it.status })
        }
        Any::ChatToolResultReady(it) => {
            (&it.tool_call_id, ToolEvent::Returned { status: &it.status })
        }
        Any::ChatToolCallFinished(it) => (&it.tool_call_id, ToolEvent::Finished),
        _ => return None,
    };
    Some(RunEvent::Tool(id, event))
}
