//! The inputs, the outputs and the configuration of a session.

use super::{ExitCode, Extraction, Hints, Signal};
use crate::conversation::choices::Origin;
use crate::conversation::event::{CallProgress, ToolResult};
use crate::conversation::log::{Record, Restored, StoreFailure};
use crate::conversation::patch::Patches;
use crate::conversation::transcript::Preamble;
use crate::conversation::usage::Cost;
use crate::protocol::attachment::Attachment;
use crate::protocol::command::{Extension, ModelChoice};
use crate::protocol::event_filter::EventFilter;
use crate::protocol::id::{SessionId, TaskId};
use crate::protocol::wire::{BadLine, ClientError, Frame, Request};
use crate::session::approval::ApprovalRules;
use crate::session::compaction::CompactionRules;
use crate::session::prices::PriceList;
use crate::support::millis;
use crate::task::call::{CallSpec, EngineFacts, EngineRef};
use crate::task::limits::ToolLimits;
use crate::task::report::{CallEnd, EngineEvent};
use crate::task::server::ServerCall;
use crate::task::server::ServerChange;
use crate::task::server::ServerName;
use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU64;

/// Default silence in a run before a sign of life, in milliseconds.
pub const HEARTBEAT_MS: NonZeroU64 = NonZeroU64::MIN.saturating_add(9_999);

/// Milliseconds since the process began. Never goes back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Uptime(pub u64);

/// Everything that can happen to a session.
#[derive(Clone, Debug)]
pub enum Input {
    /// A valid request arrived.
    Request(Request),
    /// An invalid line arrived.
    BadLine(BadLine),
    /// The input has ended.
    InputEnded,
    /// Reading the input failed, and it has ended.
    InputFailed {
        /// Why.
        reason: String,
    },
    /// A task of the session reports something.
    Task(TaskId, TaskEvent),
    /// The files that a request names have been read; or why one of them can't be used.
    FilesRead(TaskId, Result<Vec<Attachment>, String>),
    /// The deadline of the session has passed.
    DeadlineReached,
    /// A tool server has changed its state or its tools.
    ServerChanged(ServerChange),
    /// The store is open; with the stored conversation that goes on, or nothing if this one begins. Before any
    /// request.
    Restored(Option<Box<Restored>>),
    /// The conversation can't be stored any more.
    StoreFailed(StoreFailure),
    /// The process must end.
    Interrupted(Signal),
    /// The reader of the output is gone.
    ReaderGone,
    /// There is nothing to ask: the command line, or a file that it names, is wrong.
    Refused(ClientError),
}

/// A report of a task: an event, or its end.
#[derive(Clone, Debug)]
pub enum TaskEvent {
    /// Something happened in a provider call.
    Engine(EngineEvent),
    /// The provider call has ended.
    CallEnded(CallEnd),
    /// The tool goes on, and its server says how far it is.
    ToolProgressed(CallProgress),
    /// The tool has returned.
    ToolEnded(ToolResult),
}

/// Everything a session can want done, in this order.
#[must_use]
#[derive(Clone, Debug)]
pub(crate) enum Output {
    /// Store this before the frames that follow are written.
    Persist(Record),
    /// Write this.
    Frame(Frame),
    /// Have the engine make a provider call.
    StartCall(TaskId, CallSpec),
    /// Have a server run a tool.
    StartTool(TaskId, ServerCall),
    /// Read the files among these attachments.
    ReadFiles(TaskId, Vec<Attachment>),
    /// Drop this task; the session has ended it already.
    CancelTask(TaskId),
    /// Report this to the person who runs the process.
    Warning(Warning),
    /// Write the queued frames, then end the process.
    Exit(ExitCode),
    /// End the process now.
    Abort(ExitCode),
}

/// A line for the person who runs the process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Warning {
    /// The message.
    pub(crate) text: String,
    /// An event says it as well, so a front end that shows events can leave it out.
    pub(crate) has_event: bool,
    /// Its stable name, for outputs that list warnings.
    pub(crate) code: Option<&'static str>,
}

impl From<String> for Warning {
    fn from(text: String) -> Self {
        Self { text, has_event: false, code: None }
    }
}

/// The treatment of a submit while a run is active.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnBusy {
    /// Refuse it.
    #[default]
    Reject,
    /// Queue it.
    Queue,
}

/// The content of the snapshot at the end of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FinalSnapshot {
    /// The whole conversation.
    #[default]
    Full,
    /// The whole conversation, until a stored session has more than
    /// [`FULL_SNAPSHOT_ENTITIES_MAX`](super::FULL_SNAPSHOT_ENTITIES_MAX) messages and tool calls; from
    /// there on what the run added.
    FullUntilLong,
    /// The entities that the run added.
    Turn,
    /// No snapshot.
    None,
}

/// How long a process talks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SessionMode {
    /// Until the input ends. Errors belong to their requests, and the exit status is 0.
    #[default]
    Conversation,
    /// For one prompt. Errors are terminal, and the status of the process reports them.
    OneShot,
}

/// The part of the model's output that a session retains.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Retention {
    /// Everything: for snapshots, and for the model.
    #[default]
    Everything,
    /// Nothing: a client that reads the pieces needs no more, and an answer may be larger than memory.
    /// There are no snapshots, and segments finish without their text.
    Nothing,
}

/// How a session is to behave.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    /// How long the process talks.
    pub mode: SessionMode,
    /// The retained part of the model's output.
    pub retention: Retention,
    /// The session the process is bound to from the start.
    pub session: Option<SessionId>,
    /// The system prompt, and the messages before the first turn.
    pub preamble: Preamble,
    /// The extraction from answers.
    pub extraction: Option<Extraction>,
    /// The last message of a run is kept for a file of its own.
    pub keeps_last_message: bool,
    /// The treatment of a submit during a run.
    pub on_busy: OnBusy,
    /// How text is streamed.
    pub patches: Patches,
    /// The content of the snapshot at the end of a run.
    pub final_snapshot: FinalSnapshot,
    /// The extensions that are on from the start.
    pub extensions: BTreeSet<Extension>,
    /// The events that are written.
    pub events: EventFilter,
    /// Which tool calls may run, and how much of them.
    pub tools: ToolRules,
    /// The engines that requests can choose, the initial one included. They are those of the host.
    pub engines: BTreeMap<EngineRef, EngineFacts>,
    /// The initial choice in place of the initial engine. The host adds its engine to the known ones.
    pub choice: Option<ModelChoice>,
    /// The provider and the model of this process, as they are stored; `None` if they are not.
    pub origin: Option<Origin>,
    /// The model was chosen for this process: a switch of the stored session is not restored.
    pub is_model_typed: bool,
    /// Names of settings that were chosen for this process: they win over those of a stored switch.
    pub typed_settings: Vec<String>,
    /// The prices of tokens.
    pub prices: PriceList,
    /// What the session may cost, in the currency of the prices.
    pub budget: Option<Cost>,
    /// How conversations are compacted that are too long for the model.
    pub compaction: CompactionRules,
    /// Milliseconds of silence in a run before a sign of life, where a client wants one; `None` for
    /// [`HEARTBEAT_MS`].
    pub heartbeat_ms: Option<NonZeroU64>,
    /// How many repairs of an answer the model is asked for that does not match its schema.
    pub repairs: u32,
    /// The events that are recorded.
    pub log: LogRules,
    /// The hints of the front end for errors and results.
    pub hints: Hints,
}

/// The events of a session that are recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LogRules {
    /// Events are stored. Set by the host if it has a store.
    pub is_stored: bool,
    /// The session may go on with a stored conversation: the state that it begins with comes once the store is
    /// open. Set by the host.
    pub may_resume: bool,
    /// Each event is also shown as it is recorded.
    pub backend_events: bool,
    /// A client may send a request again: one that has started a run starts no other, also in a later process.
    pub has_request_ids: bool,
}

/// Which tool calls may run, and how much a run may do with tools.
#[derive(Clone, Debug)]
pub struct ToolRules {
    /// Servers that are being started when the session begins.
    pub servers: Vec<ServerName>,
    /// Which calls need approval.
    pub approval: ApprovalRules,
    /// The rules of `approval` that were typed for this very session: each should name a tool.
    pub typed: ApprovalRules,
    /// A run fails if the tools of a server are missing.
    pub requires_servers: bool,
    /// Rounds of tool calls in one run.
    pub rounds_max: u32,
    /// Tool calls in one answer.
    pub calls_per_round_max: usize,
    /// Milliseconds that a tool may take.
    pub call_ms: u64,
    /// Milliseconds that a person may take to approve a call, or to answer one.
    pub ask_ms: u64,
    /// Milliseconds that the first provider call waits for servers that are being started.
    pub start_ms: u64,
    /// Bytes of a result; the rest is cut.
    pub result_bytes_max: usize,
    /// Bytes of the arguments of a call.
    pub argument_bytes_max: usize,
}

impl ToolRules {
    /// Rules with these limits. The servers are those of the host.
    pub fn new(approval: ApprovalRules, limits: &ToolLimits) -> Self {
        Self {
            servers: Vec::new(),
            approval,
            typed: ApprovalRules::default(),
            requires_servers: false,
            rounds_max: limits.rounds,
            calls_per_round_max: usize::try_from(limits.calls).unwrap_or(usize::MAX),
            call_ms: millis(limits.call_time),
            ask_ms: millis(limits.ask_time),
            start_ms: millis(limits.start_wait),
            result_bytes_max: limits.result_bytes,
            argument_bytes_max: limits.argument_bytes,
        }
    }
}

impl Default for ToolRules {
    fn default() -> Self {
        Self::new(ApprovalRules::default(), &ToolLimits::default())
    }
}
