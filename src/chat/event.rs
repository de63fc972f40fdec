//! Backend events: the closed list of things that can happen in a run, in the order they happened.
//! Everything a person or a model sees of a conversation is projected from them.

use crate::protocol::id::{Ordinal, RunId, ToolCallId};
use crate::protocol::words::{ending, finish, tool_result};
use crate::support::text::Text;
use std::fmt;

/// An event with its place in the conversation.
#[derive(Clone, Debug, PartialEq)]
pub struct Recorded {
    /// Its number.
    pub ordinal: Ordinal,
    /// Where it belongs.
    pub scope: Scope,
    /// What happened.
    pub event: Event,
}

/// The run, turn and provider call that an event belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scope {
    /// The run.
    pub run: RunId,
    /// Number of the turn in the conversation, from 1.
    pub turn: u32,
    /// Number of the provider call in the run, from 1; 0 outside of any.
    pub call: u32,
}

/// One thing that happened.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// A prompt was taken into the conversation.
    PromptAccepted {
        /// As written.
        prompt: Text,
    },
    /// The run began.
    RunStarted {
        /// The prompt that started it.
        prompt: Text,
    },
    /// A call to the provider began.
    CallStarted,
    /// A stretch of text or reasoning began.
    SegmentStarted {
        /// Which.
        segment: Segment,
        /// The prompt that the text answers; empty where it is not repeated.
        prompt: Text,
    },
    /// A piece of the open segment arrived.
    SegmentPatched {
        /// Which.
        segment: Segment,
        /// Number of the piece in its segment, from 1.
        sequence: u64,
        /// Bytes of the segment before this piece.
        offset_bytes: u64,
        /// The piece.
        text: String,
    },
    /// The open segment ended.
    SegmentFinished {
        /// Which.
        segment: Segment,
        /// How.
        status: Ending,
        /// The prompt that the text answers; empty where it is not repeated.
        prompt: Text,
        /// All its text.
        text: Text,
        /// Why the model stopped, in the provider's words; empty if not known here.
        finish_reason: String,
    },
    /// The model named a tool.
    ToolCallStarted {
        /// The call.
        tool: ToolCall,
    },
    /// A piece of a call's arguments arrived.
    ToolArgumentsPatched {
        /// The call.
        tool: ToolCall,
        /// Number of the piece in its call, from 1.
        sequence: u64,
        /// Bytes of the arguments before this piece.
        offset_bytes: u64,
        /// The piece, of JSON text.
        text: String,
    },
    /// A call's arguments are whole.
    ToolCallRequested {
        /// The call.
        tool: ToolCall,
        /// The arguments, as JSON text.
        input: String,
    },
    /// The tool began to run.
    ToolExecutionStarted {
        /// The call.
        tool: ToolCall,
        /// The arguments, as JSON text.
        input: String,
    },
    /// The tool returned.
    ToolResultReady {
        /// The call.
        tool: ToolCall,
        /// What it returned.
        result: ToolResult,
    },
    /// Nothing more comes of the call.
    ToolCallFinished {
        /// The call.
        tool: ToolCall,
    },
    /// The provider told its token counts.
    CallMetadataUpdated {
        /// Why the model stopped, in the provider's words; empty if not known yet.
        stop_reason: String,
        /// The counts.
        usage: Usage,
    },
    /// The call to the provider ended.
    CallFinished {
        /// Why the model stopped, in the provider's words; empty if it was cut off.
        stop_reason: String,
        /// The same, in words that do not depend on the provider.
        class: FinishClass,
        /// Token counts, if the provider told them.
        usage: Option<Usage>,
        /// How long the call took.
        duration_ms: u64,
        /// The answer asks for tools.
        has_tool_calls: bool,
    },
    /// The run ended by itself.
    RunFinished {
        /// How long it took.
        duration_ms: u64,
    },
    /// The run was stopped.
    RunStopped {
        /// By whom or what, for people.
        reason: String,
    },
    /// The run failed.
    RunFailed {
        /// Why, for people.
        error: String,
    },
}

/// A stretch of text or reasoning within a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Number in the run, from 1, counted over both kinds.
    pub number: u32,
    /// What it holds.
    pub kind: SegmentKind,
}

/// What a segment holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SegmentKind {
    /// The answer.
    Text,
    /// The model's reasoning.
    Thinking,
}

/// How a segment or a message ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// By itself.
    Finished,
    /// The run was stopped.
    Stopped,
    /// The run failed.
    Failed,
}

/// A call of a tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolCall {
    /// As the model gave it.
    pub id: ToolCallId,
    /// The tool's name.
    pub name: String,
}

/// What a tool returned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToolResult {
    /// It did what it was asked to.
    Success(String),
    /// It could not; the text says why.
    Error(String),
}

/// Token counts of one provider call, as the provider counts them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Tokens of the request.
    pub input_tokens: i32,
    /// Tokens of the answer.
    pub output_tokens: i32,
    /// Input tokens that a provider cache answered.
    pub cached_tokens: i32,
    /// Input tokens that were written into the provider's cache; 0 if not reported.
    pub cache_creation_tokens: i32,
    /// Input tokens that were read from it, where a provider reports them under that name.
    pub cache_read_tokens: i32,
    /// Tokens of the answer that the model reasoned with, where the provider reports them.
    pub reasoning_tokens: Option<i32>,
}

/// Why a provider call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FinishClass {
    /// The model had nothing more to say.
    Completed,
    /// A token limit cut the answer.
    MaxTokens,
    /// The model waits for tools.
    ToolCalls,
    /// The provider withheld the rest.
    ContentFilter,
    /// The run was stopped.
    Cancelled,
    /// The call failed.
    Failed,
    /// The provider gave a reason this list doesn't know.
    Other,
}

impl Event {
    /// Nothing of the run comes after it.
    pub fn ends_run(&self) -> bool {
        matches!(self, Self::RunFinished { .. } | Self::RunStopped { .. } | Self::RunFailed { .. })
    }
}

impl Ending {
    /// The word on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Finished => ending::FINISHED,
            Self::Stopped => ending::STOPPED,
            Self::Failed => ending::FAILED,
        }
    }
}

impl FinishClass {
    /// The answer is not whole, though the provider sees nothing wrong with that.
    pub fn cuts_off(self) -> bool {
        match self {
            Self::MaxTokens | Self::ContentFilter => true,
            Self::Completed | Self::ToolCalls | Self::Cancelled | Self::Failed | Self::Other => {
                false
            }
        }
    }

    /// The word on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Completed => finish::COMPLETED,
            Self::MaxTokens => finish::MAX_TOKENS,
            Self::ToolCalls => finish::TOOL_CALLS,
            Self::ContentFilter => finish::CONTENT_FILTER,
            Self::Cancelled => finish::CANCELLED,
            Self::Failed => ending::FAILED,
            Self::Other => finish::OTHER,
        }
    }
}

impl ToolResult {
    /// What the tool said.
    pub fn text(&self) -> &str {
        match self {
            Self::Success(text) | Self::Error(text) => text,
        }
    }

    /// What the tool said, to keep.
    pub fn into_text(self) -> String {
        match self {
            Self::Success(text) | Self::Error(text) => text,
        }
    }

    /// The word on the wire.
    pub fn status(&self) -> &'static str {
        match self {
            Self::Success(_) => tool_result::SUCCESS,
            Self::Error(_) => tool_result::ERROR,
        }
    }
}

impl fmt::Display for Segment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "segment-{}", self.number)
    }
}
