//! The effect of an event on the state of a run.

use super::text::Patch;
use crate::protocol::any::Any;
use crate::protocol::words::ending;

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
pub(super) enum Step<'a> {
    PromptAccepted,
    RunStarted,
    CallStarted,
    CallUpdated,
    CallFinished {
        class: &'a str,
    },
    Segment(&'a str, SegmentStep<'a>),
    Tool(&'a str, ToolStep<'a>),
    RunEnded(RunEnd),
    /// May occur anywhere: older forms of events, and extensions.
    Other,
}

/// A change of a segment.
#[derive(Clone, Copy, Debug)]
pub(super) enum SegmentStep<'a> {
    Started,
    Patched(Patch<'a>),
    Finished { text: &'a str, status: &'a str },
}

/// A change of a tool call.
#[derive(Clone, Copy, Debug)]
pub(super) enum ToolStep<'a> {
    Started,
    Patched(Patch<'a>),
    Requested { input: &'a str },
    Executing { input: &'a str },
    Returned,
    Finished,
}

impl<'a> Step<'a> {
    pub(super) fn of(payload: &'a Any) -> Self {
        of_run(payload)
            .or_else(|| of_text(payload))
            .or_else(|| of_reasoning(payload))
            .or_else(|| of_tool(payload))
            .unwrap_or(Self::Other)
    }
}

fn of_run(payload: &Any) -> Option<Step<'_>> {
    if let Any::ChatProviderCallFinished(it) = payload {
        return Some(Step::CallFinished { class: &it.finish_class });
    }
    // By name: no other field matters here.
    Some(match payload.name() {
        "ChatUserMessageAccepted" => Step::PromptAccepted,
        "ChatRunStarted" => Step::RunStarted,
        "ChatProviderCallStarted" => Step::CallStarted,
        "ChatProviderCallMetadataUpdated" => Step::CallUpdated,
        "ChatRunFinished" => Step::RunEnded(RunEnd::Finished),
        "ChatRunStopped" => Step::RunEnded(RunEnd::Stopped),
        "ChatRunFailed" => Step::RunEnded(RunEnd::Failed),
        _ => return None,
    })
}

fn of_text(payload: &Any) -> Option<Step<'_>> {
    if let Any::ChatTextPatch(it) = payload {
        let (sequence, offset, mode) = (it.sequence, it.offset, it.mode);
        let patch = Patch { sequence, offset, mode, text: &it.text };
        return Some(Step::Segment(&it.message_id, SegmentStep::Patched(patch)));
    }
    if let Any::ChatTextSegmentStarted(it) = payload {
        return Some(Step::Segment(&it.message_id, SegmentStep::Started));
    }
    if let Any::ChatTextSegmentFinished(it) = payload {
        let end = SegmentStep::Finished { text: &it.text, status: &it.status };
        return Some(Step::Segment(&it.message_id, end));
    }
    None
}

fn of_reasoning(payload: &Any) -> Option<Step<'_>> {
    if let Any::ChatReasoningPatch(it) = payload {
        let (sequence, offset, mode) = (it.sequence, it.offset, it.mode);
        let patch = Patch { sequence, offset, mode, text: &it.text };
        return Some(Step::Segment(&it.message_id, SegmentStep::Patched(patch)));
    }
    if let Any::ChatReasoningSegmentStarted(it) = payload {
        return Some(Step::Segment(&it.message_id, SegmentStep::Started));
    }
    if let Any::ChatReasoningSegmentFinished(it) = payload {
        let end = SegmentStep::Finished { text: &it.text, status: &it.status };
        return Some(Step::Segment(&it.message_id, end));
    }
    None
}

fn of_tool(payload: &Any) -> Option<Step<'_>> {
    if let Any::ChatToolArgumentsPatch(it) = payload {
        let (sequence, offset, mode) = (it.sequence, it.offset, it.mode);
        let patch = Patch { sequence, offset, mode, text: &it.arguments };
        return Some(Step::Tool(&it.tool_call_id, ToolStep::Patched(patch)));
    }
    if let Any::ChatToolCallStarted(it) = payload {
        return Some(Step::Tool(&it.tool_call_id, ToolStep::Started));
    }
    if let Any::ChatToolCallRequested(it) = payload {
        return Some(Step::Tool(&it.tool_call_id, ToolStep::Requested { input: &it.input }));
    }
    if let Any::ChatToolExecutionStarted(it) = payload {
        return Some(Step::Tool(&it.tool_call_id, ToolStep::Executing { input: &it.input }));
    }
    if let Any::ChatToolResultReady(it) = payload {
        return Some(Step::Tool(&it.tool_call_id, ToolStep::Returned));
    }
    if let Any::ChatToolCallFinished(it) = payload {
        return Some(Step::Tool(&it.tool_call_id, ToolStep::Finished));
    }
    None
}
