//! Backend events: the closed list of what can happen in a run, in the order in which it happens.
//! Everything a person or a model sees of a conversation is projected from them.

use super::choices::Choices;
use super::compaction::CompactionEvent;
use super::transcript::Turn;
use super::usage::Spent;
use crate::protocol::any::{Any, Struct};
use crate::protocol::attachment::Attachment;
use crate::protocol::command::Decision;
use crate::protocol::constants::{ending, finish, role, tool_result};
use crate::protocol::id::{Ordinal, RunId, ToolCallId};
use crate::protocol::proto::frontendtools::FrontendToolManifestUpdated;
use crate::protocol::proto::provider::ModelSwitched;
use crate::protocol::proto::rpc::SnapshotEntity;
use crate::protocol::proto::session::{BudgetNearlySpent, StoreDegraded, TokenCounts};
use crate::protocol::proto::tools::ToolServerChanged;
use crate::support::named::named_enum;
use crate::support::text::Text;
use std::fmt;
use std::sync::Arc;

/// An event with its place in the conversation.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Recorded {
    /// Its ordinal.
    pub ordinal: Ordinal,
    /// The run, turn and provider call it belongs to; [`Scope::OUTSIDE`] of the session's own events.
    pub scope: Scope,
    /// The event.
    pub event: Event,
}

/// The images and files of a prompt. Clones share them.
pub(crate) type Attachments = Arc<[Attachment]>;

/// The run, turn and provider call that an event belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Scope {
    /// The run.
    pub run: RunId,
    /// Number of the turn in the conversation, from 1.
    pub turn: u32,
    /// Number of the provider call in the run, from 1; 0 outside of any.
    pub call: u32,
}

/// Backend events.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Event {
    /// A prompt was added to the conversation.
    PromptAccepted {
        /// The prompt as written by the client.
        prompt: Text,
        /// What goes with it.
        attachments: Attachments,
    },
    /// A prompt joined the run after it began.
    PromptJoined {
        /// The prompt as written by the client.
        prompt: Text,
        /// What goes with it.
        attachments: Attachments,
        /// Number of the prompt in its run, from 2.
        number: u32,
    },
    /// The answer does not match its schema, and another one is asked for.
    RepairRequested {
        /// Why it does not match, for the model.
        reason: String,
        /// Number of the repair in its run, from 1.
        number: u32,
        /// How many repairs there are at most.
        max: u32,
    },
    /// The run began.
    RunStarted {
        /// The prompt that started it.
        prompt: Text,
        /// The choices in effect, if they differ from those in the log.
        choices: Option<Arc<Choices>>,
        /// What answers.
        answerer: Answerer,
        /// The request that started it, where clients may send a request again; empty elsewhere.
        request: Text,
    },
    /// A call to the provider began.
    CallStarted,
    /// A segment of text or reasoning began.
    SegmentStarted {
        /// The segment.
        segment: Segment,
        /// The prompt that the text answers; empty where it is not repeated.
        prompt: Text,
    },
    /// A piece of the open segment arrived.
    SegmentPatched {
        /// The segment.
        segment: Segment,
        /// Sequence number of the piece in its segment, from 1.
        sequence: u64,
        /// Offset of the piece in its segment, in bytes.
        offset_bytes: u64,
        /// The text of the piece.
        text: String,
    },
    /// The open segment ended.
    SegmentFinished {
        /// The segment.
        segment: Segment,
        /// How it ended.
        status: Ending,
        /// The prompt that the text answers; empty where it is not repeated.
        prompt: Text,
        /// The full text.
        text: Text,
        /// The provider's own finish reason; empty if not known here.
        finish_reason: String,
        /// The segment ends where the provider cut the answer off.
        is_cut_off: bool,
    },
    /// The model began a tool call.
    ToolCallStarted {
        /// The tool call.
        tool: ToolCall,
    },
    /// A piece of a tool call's arguments arrived.
    ToolArgumentsPatched {
        /// The tool call.
        tool: ToolCall,
        /// Sequence number of the piece in its call, from 1.
        sequence: u64,
        /// Offset of the piece in the arguments, in bytes.
        offset_bytes: u64,
        /// The piece of JSON text.
        text: String,
    },
    /// The arguments of a tool call are complete.
    ToolCallRequested {
        /// The tool call.
        tool: ToolCall,
        /// The arguments, as JSON text.
        input: String,
    },
    /// The tool call waits for the client's approval.
    ApprovalRequested {
        /// The tool call.
        tool: ToolCall,
        /// Name of the server that runs the tool.
        server: String,
        /// The arguments, as JSON text.
        input: String,
    },
    /// The tool call waits for approval no more.
    ApprovalResolved {
        /// The tool call.
        tool: ToolCall,
        /// The decision.
        decision: Decision,
    },
    /// The client is asked to run the tool.
    ClientCallRequested {
        /// The tool call.
        tool: ToolCall,
        /// The arguments.
        input: Struct,
        /// A person answers it.
        is_human: bool,
    },
    /// The client gave the result of the tool.
    ClientResultReceived {
        /// The tool call.
        tool: ToolCall,
        /// What the tool returned.
        result: Option<Struct>,
        /// Why it failed; empty if it succeeded.
        error: String,
    },
    /// The tool was started.
    ToolExecutionStarted {
        /// The tool call.
        tool: ToolCall,
        /// The arguments, as JSON text.
        input: String,
    },
    /// The server that runs the tool reported how far it is.
    ToolProgressed {
        /// The tool call.
        tool: ToolCall,
        /// How far it is.
        progress: CallProgress,
    },
    /// The tool returned a result.
    ToolResultReady {
        /// The tool call.
        tool: ToolCall,
        /// The result: one text for all that remember it.
        result: Arc<ToolResult>,
    },
    /// The tool call is finished.
    ToolCallFinished {
        /// The tool call.
        tool: ToolCall,
        /// The arguments as far as the model wrote them, if they never were complete: patches do not stay
        /// in the log.
        partial_input: String,
    },
    /// The provider reported its token counts.
    CallMetadataUpdated {
        /// The provider's own finish reason; empty if not known yet.
        stop_reason: String,
        /// The token counts.
        usage: Usage,
    },
    /// The call to the provider ended.
    CallFinished {
        /// The provider's own finish reason; empty if the call was cut off.
        stop_reason: String,
        /// The finish reason in the protocol's terms.
        class: FinishClass,
        /// Token counts, if the provider reported them.
        usage: Option<Usage>,
        /// Duration of the call.
        duration_ms: u64,
        /// The answer contains tool calls.
        has_tool_calls: bool,
        /// Data that the provider needs back together with the answer.
        provider_data: Option<ProviderData>,
        /// What else is known of what it used.
        spent: Spent,
    },
    /// The run ended normally.
    RunFinished {
        /// Duration of the run.
        duration_ms: u64,
        /// Why the answer was cut off, in the provider's word; `None` if it was not.
        cut_off: Option<String>,
    },
    /// The last turns were dropped, from that of the event's scope on. Outside of runs.
    TurnDropped {
        /// The ids of their messages, oldest first.
        message_ids: Vec<String>,
        /// The ids of their tool calls.
        tool_call_ids: Vec<String>,
        /// Their numbers, in order.
        turns: Vec<u32>,
    },
    /// The run was stopped.
    RunStopped {
        /// The reason, for people.
        reason: String,
    },
    /// The run failed.
    RunFailed {
        /// The error message.
        error: String,
    },
    /// A turn of a recording was added, as a whole. Before the first run of a session that begins with it.
    TurnImported(Box<ImportedTurn>),
    /// Something becomes of a compaction: what the model is sent in place of earlier turns and results.
    Compaction(CompactionEvent),
    /// Something about a provider call that changes nothing of the conversation.
    Call(CallReport),
    /// Something happened to the session, outside of its runs.
    Session(SessionEvent),
}

/// A turn that frames have shown, whichever program wrote them.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ImportedTurn {
    /// Its entities, as people see it.
    pub entities: Vec<SnapshotEntity>,
    /// Its form for the model; `None` if the model does not get it.
    pub turn: Option<Arc<Turn>>,
}

/// What answers in a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Answerer {
    /// The engine.
    pub engine: Arc<str>,
    /// The model; empty if the engine has none.
    pub model: String,
    /// When the run began, in milliseconds since 1970. Noted when the event is stored: a session has no
    /// calendar.
    pub started_ms: Option<i64>,
}

/// A report about a provider call to clients that follow it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum CallReport {
    /// A request failed and will be sent again.
    RetryScheduled {
        /// Number of the attempt that follows, from 2.
        attempt: u32,
        /// How many attempts there are at most.
        attempts_max: u32,
        /// Milliseconds until then.
        wait_ms: u64,
        /// Class of the error.
        error_class: String,
        /// What happened, for people.
        reason: String,
    },
    /// The request is sent again.
    RetryStarted {
        /// Number of the attempt, from 2.
        attempt: u32,
        /// How many attempts there are at most.
        attempts_max: u32,
    },
    /// The answer was cut off.
    Truncated {
        /// Why, in the provider's word.
        stop_reason: String,
        /// The class of the reason.
        class: FinishClass,
    },
    /// How soon the call was answered.
    Timed {
        /// Milliseconds to the first byte of a successful response, if there was one.
        first_byte_ms: Option<u64>,
        /// Milliseconds to the first token, if there was one.
        first_token_ms: Option<u64>,
    },
    /// Token counts after the call.
    Counted(Box<CallCounts>),
    /// Most of the budget is spent.
    BudgetNearlySpent(Box<BudgetNearlySpent>),
}

/// Token counts up to the end of a provider call.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct CallCounts {
    /// The counts of the call.
    pub call: TokenCounts,
    /// The counts of the run so far.
    pub run: TokenCounts,
    /// The counts of the session so far.
    pub session: TokenCounts,
}

/// What happens to a session outside of its runs.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum SessionEvent {
    /// The model is offered these tools of the client.
    ToolsDeclared {
        /// The tools.
        tools: FrontendToolManifestUpdated,
        /// The choices from then on; `None` if they are unchanged.
        choices: Option<Arc<Choices>>,
    },
    /// Another model answers.
    ModelSwitched {
        /// The model.
        model: ModelSwitched,
        /// The choices from then on; `None` if they are unchanged.
        choices: Option<Arc<Choices>>,
    },
    /// A tool server is in another state.
    ServerChanged(ToolServerChanged),
    /// Something of the conversation is not stored.
    StoreDegraded(StoreDegraded),
    /// The person has given the conversation this title. No client sees it as it happens.
    Renamed(String),
}

/// A segment: consecutive text or reasoning within a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Segment {
    /// Number in the run, from 1, counted over both kinds.
    pub number: u32,
    /// The kind of its content.
    pub kind: SegmentKind,
}

/// Kinds of segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SegmentKind {
    /// Text of the answer.
    Text,
    /// The model's reasoning.
    Thinking,
}

named_enum! {
    /// How a segment or a message ended.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(crate) enum Ending {
        /// Normally.
        Finished = ending::FINISHED,
        /// The run was stopped.
        Stopped = ending::STOPPED,
        /// The run failed.
        Failed = ending::FAILED,
    }
}

/// A call of a tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolCall {
    /// The id given by the model.
    pub id: ToolCallId,
    /// The tool's name.
    pub name: String,
}

/// How far a call is, as its server reports it.
#[derive(Clone, Debug, PartialEq)]
pub struct CallProgress {
    /// What is done, in units of the server's own.
    pub progress: f64,
    /// What there is to do, in the same units, if the server knows.
    pub total: Option<f64>,
    /// What is being done; the server's text, which may be empty.
    pub message: String,
}

/// The result of a tool.
#[derive(Clone, Debug, PartialEq)]
pub enum ToolResult {
    /// The tool succeeded; its output.
    Success(String),
    /// The tool succeeded, and its output has images.
    WithImages {
        /// The output, with a note in the place of each image.
        text: String,
        /// The images, in order.
        images: Arc<[Attachment]>,
    },
    /// The tool failed; its error message.
    Error(String),
}

/// Data of one provider call that only its provider can read, as signatures of reasoning: kept, and
/// sent back with the answer on the next call to the same provider and model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProviderData {
    /// Name of the engine that wrote it and can read it.
    pub engine: Arc<str>,
    /// Host of the provider that it came from, with its port if that is not the scheme's default.
    pub host: Arc<str>,
    /// Model that it belongs to.
    pub model: Arc<str>,
    /// The data, as JSON text.
    pub json: Arc<str>,
}

/// Token counts of one provider call, as the provider counts them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Tokens of the request.
    pub input_tokens: i32,
    /// Tokens of the answer.
    pub output_tokens: i32,
    /// Input tokens that were served from a provider cache.
    pub cached_tokens: i32,
    /// Input tokens that were written to the provider's cache; 0 if not reported.
    pub cache_creation_tokens: i32,
    /// Input tokens that were read from it, where a provider reports them under that name.
    pub cache_read_tokens: i32,
    /// Tokens of the answer used for reasoning, where the provider reports them.
    pub reasoning_tokens: Option<i32>,
}

named_enum! {
    /// Why a provider call ended.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum FinishClass {
        /// The model ended its answer.
        Completed = finish::COMPLETED,
        /// A token limit cut the answer.
        MaxTokens = finish::MAX_TOKENS,
        /// The model requests tool calls.
        ToolCalls = finish::TOOL_CALLS,
        /// The provider withheld the rest of the answer.
        ContentFilter = finish::CONTENT_FILTER,
        /// The run was stopped.
        Cancelled = finish::CANCELLED,
        /// The call failed.
        Failed = finish::FAILED,
        /// The provider gave a reason that is not in this list.
        Other = finish::OTHER,
    }
}

impl ImportedTurn {
    /// The prompt with which it began, as people see it; else as the model is sent it.
    pub(crate) fn prompt(&self) -> Option<&str> {
        let shown = self.entities.iter().find_map(|entity| match &entity.payload {
            Some(Any::ChatMessageEntity(it)) if it.role == role::USER => Some(it.text.as_str()),
            Some(_) | None => None,
        });
        shown.or(self.turn.as_ref().map(|turn| turn.prompt.as_str()))
    }
}

impl Scope {
    /// The scope of events outside of runs.
    pub(crate) const OUTSIDE: Self = Self { run: RunId::NONE, turn: 0, call: 0 };

    /// The scope, if it is that of a run.
    pub(crate) fn of_run(self) -> Option<Self> {
        (self != Self::OUTSIDE).then_some(self)
    }
}

impl Event {
    /// The choices from this event on, if it changes them.
    pub(crate) fn choices(&self) -> Option<&Arc<Choices>> {
        if let Self::RunStarted { choices, .. }
        | Self::Session(
            SessionEvent::ToolsDeclared { choices, .. }
            | SessionEvent::ModelSwitched { choices, .. },
        ) = self
        {
            return choices.as_ref();
        }
        None
    }

    /// Whether this is the last event of its run.
    pub(crate) fn ends_run(&self) -> bool {
        matches!(self, Self::RunFinished { .. } | Self::RunStopped { .. } | Self::RunFailed { .. })
    }

    /// Whether it is the last event of its turn.
    pub(crate) fn ends_turn(&self) -> bool {
        self.ends_run() || matches!(self, Self::TurnImported(_))
    }

    /// Whether it is a piece of a text that a later event of the same run has as a whole, or progress that is of no
    /// use once there is a result.
    pub(crate) fn is_patch(&self) -> bool {
        matches!(
            self,
            Self::SegmentPatched { .. }
                | Self::ToolArgumentsPatched { .. }
                | Self::ToolProgressed { .. }
        )
    }
}

impl Recorded {
    /// Coalesces the patch `next` into this one, if both are of one text and follow each other: one patch
    /// with the text of both. Returns whether it did.
    pub(crate) fn coalesce(&mut self, next: &Self) -> bool {
        if self.scope != next.scope {
            return false;
        }
        let (sequence, text, more) = match (&mut self.event, &next.event) {
            (
                Event::SegmentPatched { segment, sequence, text, .. },
                Event::SegmentPatched { segment: other, sequence: last, text: more, .. },
            ) if segment == other => ((sequence, last), text, more),
            (
                Event::ToolArgumentsPatched { tool, sequence, text, .. },
                Event::ToolArgumentsPatched { tool: other, sequence: last, text: more, .. },
            ) if tool == other => ((sequence, last), text, more),
            (_, _) => return false,
        };
        text.push_str(more);
        *sequence.0 = *sequence.1;
        self.ordinal = next.ordinal;
        true
    }
}

impl FinishClass {
    /// Whether the answer is incomplete although the provider reports no error.
    pub(crate) fn cuts_off(self) -> bool {
        match self {
            Self::MaxTokens | Self::ContentFilter => true,
            Self::Completed | Self::ToolCalls | Self::Cancelled | Self::Failed | Self::Other => {
                false
            }
        }
    }
}

impl ToolResult {
    /// The tool's output or error message.
    pub(crate) fn text(&self) -> &str {
        match self {
            Self::Success(text) | Self::WithImages { text, .. } | Self::Error(text) => text,
        }
    }

    /// Whether the tool failed.
    pub(crate) fn is_error(&self) -> bool {
        match self {
            Self::Success(_) | Self::WithImages { .. } => false,
            Self::Error(_) => true,
        }
    }

    /// The value on the wire.
    pub(crate) fn status(&self) -> &'static str {
        match self {
            Self::Success(_) | Self::WithImages { .. } => tool_result::SUCCESS,
            Self::Error(_) => tool_result::ERROR,
        }
    }
}

impl AsRef<[u8]> for ToolResult {
    fn as_ref(&self) -> &[u8] {
        self.text().as_bytes()
    }
}

impl fmt::Display for Segment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "segment-{}", self.number)
    }
}
