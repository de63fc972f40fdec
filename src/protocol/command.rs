//! The commands of requests, those of the extensions included: read from the members of a request
//! line and checked as far as that is possible without a session. Pure.

mod edit;
mod read;

pub use edit::{Edit, Replacement};

use crate::protocol::any::Struct;
use crate::protocol::attachment::Attachment;
use crate::protocol::constants::capability;
use crate::protocol::event_filter::EventFilter;
use crate::protocol::id::{IdTooLong, Ordinal, RequestId, ToolCallId};
use crate::protocol::proto::frontendtools::FrontendToolManifestCommand;
use crate::protocol::proto::rpc::SnapshotRequest;
use crate::support::named::named_enum;
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use std::num::NonZeroU32;
use std::sync::Arc;

/// Longest name of a tool, in bytes: the limit of the strictest provider.
pub const TOOL_NAME_BYTES_MAX: usize = 64;

/// Tools that a client may declare.
pub const CLIENT_TOOLS_MAX: usize = 256;

/// Commands of requests.
#[derive(Clone, Debug, PartialEq)]
pub enum Command {
    /// Start a run, or join one.
    Submit(Submit),
    /// Stop a run, or withdraw submits that wait.
    Cancel(Cancel),
    /// Report the state of the conversation, or of a part of it.
    Snapshot(Page),
    /// End the process after the active run.
    Shutdown,
    /// Turn extensions on, and choose the events that are written.
    Enable(Enable),
    /// Replace the tools that the client runs.
    DeclareTools(ToolManifest),
    /// The result of a tool that the client ran.
    ToolResult(ClientToolResult),
    /// Decide about a tool call.
    Approve(Approve),
    /// Choose the model that answers from the next submit on.
    SwitchModel(ModelChoice),
    /// Change the end of the conversation.
    Edit(Edit),
    /// Have the model sent a summary in place of the earlier turns.
    Compact(Compact),
    /// Give the conversation this title. Only front ends within the program have it: no request line does.
    Rename(String),
    /// Store with the conversation what happens to tool calls for which no rule decides, by its name on the
    /// command line. Only front ends within the program have it, which do it themselves: while no tool is to be
    /// called, they are asked also about those that were allowed for the session.
    NoteApproval(&'static str),
}

/// What is shown from here on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Enable {
    /// The extensions that are turned on.
    pub extensions: BTreeSet<Extension>,
    /// The events that are written; `None` for those of before.
    pub events: Option<EventFilter>,
}

/// A prompt for the model.
#[derive(Clone, Debug, PartialEq)]
pub struct Submit {
    /// The prompt.
    pub prompt: Prompt,
    /// The request whose run it joins; `None` for a run of its own.
    pub joins: Option<RequestId>,
    /// Images and files that go with it.
    pub attachments: Vec<Attachment>,
    /// The model and settings of its turn; `None` for those of the session.
    pub choice: Option<Box<ModelChoice>>,
    /// The JSON Schema that the answer must match.
    pub schema: Option<Box<Map<String, Value>>>,
}

/// How the conversation is compacted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Compact {
    /// What the summary should keep or leave out.
    pub instructions: String,
    /// How many of the last turns are sent as they are; 0 for as many as have room.
    pub keep_turns: u32,
    /// It is not.
    pub decline: bool,
}

/// The choice of a model and its settings. Empty members change nothing.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ModelChoice {
    /// A profile, with its engine, model and settings.
    pub profile: String,
    /// An engine.
    pub engine: String,
    /// A model.
    pub model: String,
    /// Settings of the calls, by name.
    pub settings: Map<String, Value>,
}

/// A prompt, unchanged; blank only if the model is called without one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prompt(String);

/// The target of a cancel. With neither member set, the active run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cancel {
    /// The request to stop or withdraw.
    pub target: Option<RequestId>,
    /// Every submit that waits is withdrawn.
    pub waiting: bool,
}

/// The client's decision on a tool call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Approve {
    /// The call.
    pub call: ToolCallId,
    /// The decision.
    pub decision: Decision,
}

/// Decisions about a tool call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Run this call.
    AllowOnce,
    /// Run this call and every later one of the same tool.
    AllowSession,
    /// Don't run it.
    Deny {
        /// Why, for the model; may be empty.
        reason: String,
    },
}

/// The tools that a client runs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ToolManifest {
    /// The tools that can be called, each with its own name.
    pub tools: Vec<ClientTool>,
    /// The message as it was sent.
    pub message: FrontendToolManifestCommand,
}

/// A tool that a client runs.
#[derive(Clone, Debug, PartialEq)]
pub struct ClientTool {
    /// Its name, valid for every provider.
    pub name: String,
    /// Its description, for the model.
    pub description: String,
    /// JSON Schema of the arguments.
    pub input_schema: Arc<Map<String, Value>>,
    /// A person answers it, and may take as long as a person does.
    pub is_human: bool,
}

/// The result of a tool that a client ran.
#[derive(Clone, Debug, PartialEq)]
pub struct ClientToolResult {
    /// The call.
    pub call: ToolCallId,
    /// The tool, if the client named it.
    pub tool_name: Option<String>,
    /// The result.
    pub result: Option<ReturnedObject>,
    /// Why it failed; `None` if it succeeded.
    pub error: Option<String>,
}

/// An object that a client's tool returned, of which there is JSON: in protobuf's binary form a number may be
/// none. Made from a [`Struct`].
#[derive(Clone, Debug, PartialEq)]
pub struct ReturnedObject {
    /// The object as it was sent.
    pub(crate) message: Struct,
    /// The object as JSON, for the model.
    pub(crate) json: String,
}

named_enum! {
    /// Extensions that a request or an option can turn on.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum Extension {
        /// The client decides about tool calls.
        Approvals = capability::APPROVALS,
        /// Images and files go with a prompt.
        Attachments = capability::ATTACHMENTS,
        /// The model is sent a summary in place of earlier turns.
        Compaction = capability::COMPACTION,
        /// The client offers tools and runs them.
        ClientTools = capability::CLIENT_TOOLS,
        /// The client drops turns, or has them answered anew.
        Edit = capability::EDIT,
        /// Events report what a run waits for in which nothing else happens.
        Heartbeats = capability::HEARTBEATS,
        /// A snapshot has a part of the conversation.
        History = capability::HISTORY,
        /// Resources of tool servers go with a prompt.
        Resources = capability::RESOURCES,
        /// Events report retries of provider calls, and answers that were cut off.
        Retries = capability::RETRIES,
        /// A submit has settings of its own.
        Settings = capability::SETTINGS,
        /// A submit joins the run that it names.
        Steer = capability::STEER,
        /// Events report that the conversation is not stored any more.
        Store = capability::STORE,
        /// A submit has a schema that its answer must match.
        Structured = capability::STRUCTURED,
        /// A request chooses the model.
        SwitchModel = capability::SWITCH_MODEL,
        /// A cancel names its target.
        TargetedCancel = capability::TARGETED_CANCEL,
        /// Events report how soon provider calls were answered.
        Timing = capability::TIMING,
        /// Events report how far tool calls are.
        ToolProgress = capability::TOOL_PROGRESS,
        /// Events report the state of tool servers.
        ToolServers = capability::TOOL_SERVERS,
        /// Events report token counts and costs.
        Usage = capability::USAGE,
    }
}

/// Why the member of a request line is no command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CommandFault {
    /// The prompt is blank.
    EmptyPrompt,
    /// An id is longer than the limit.
    IdTooLong(&'static str, IdTooLong),
    /// There is no such extension.
    UnknownExtension(String),
    /// The list of tools can't be used.
    InvalidTools(String),
    /// An attachment can't be used.
    InvalidAttachment(String),
    /// Settings, a choice of a model or a schema can't be used.
    InvalidSettings(String),
    /// A value is not one of those that the field allows.
    InvalidValue(String),
}

impl Submit {
    /// A submit with a run of its own.
    pub fn new(prompt: Prompt) -> Self {
        Self { prompt, joins: None, attachments: Vec::new(), choice: None, schema: None }
    }
}

impl Prompt {
    /// The prompt, if it is not blank.
    pub fn new(text: String) -> Option<Self> {
        (!text.trim().is_empty()).then_some(Self(text))
    }

    /// No prompt: the model is called with the messages so far.
    pub fn nothing() -> Self {
        Self(String::new())
    }

    /// Its length in bytes.
    pub fn len_bytes(&self) -> usize {
        self.0.len()
    }

    /// The prompt and these attachments, which need no text.
    ///
    /// # Errors
    /// If an attachment can't be used, or there is neither.
    fn with(
        text: String,
        attachments: Result<Vec<Attachment>, String>,
    ) -> Result<(Self, Vec<Attachment>), CommandFault> {
        let attachments = attachments.map_err(CommandFault::InvalidAttachment)?;
        let nothing = || (!attachments.is_empty()).then(Self::nothing);
        let prompt = Self::new(text).or_else(nothing).ok_or(CommandFault::EmptyPrompt)?;
        Ok((prompt, attachments))
    }

    /// As written.
    pub fn into_string(self) -> String {
        self.0
    }
}

impl Extension {
    /// All of them, in the order of their names.
    pub const ALL: [Self; 19] = [
        Self::Approvals,
        Self::Attachments,
        Self::ClientTools,
        Self::Compaction,
        Self::Edit,
        Self::Heartbeats,
        Self::History,
        Self::Resources,
        Self::Retries,
        Self::Settings,
        Self::Steer,
        Self::Store,
        Self::Structured,
        Self::SwitchModel,
        Self::TargetedCancel,
        Self::Timing,
        Self::ToolProgress,
        Self::ToolServers,
        Self::Usage,
    ];

    /// The extension with that name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|extension| extension.as_str() == name)
    }
}

impl Command {
    /// The engine, model and settings that the command chooses.
    pub(crate) fn choice(&self) -> Option<&ModelChoice> {
        if let Self::SwitchModel(choice) = self {
            return Some(choice);
        }
        if let Self::Submit(submit) = self { submit.choice.as_deref() } else { None }
    }

    /// Bytes of the prompt in the command, if it has one.
    pub(crate) fn prompt_bytes(&self) -> usize {
        if let Self::Edit(Edit::Replace(replacement)) = self {
            return replacement.prompt.len_bytes();
        }
        if let Self::Submit(submit) = self { submit.prompt.len_bytes() } else { 0 }
    }

    /// The attachments of the prompt in the command, if it has one.
    pub(crate) fn attachments_mut(&mut self) -> Option<&mut Vec<Attachment>> {
        if let Self::Edit(Edit::Replace(replacement)) = self {
            return Some(&mut replacement.attachments);
        }
        if let Self::Submit(submit) = self { Some(&mut submit.attachments) } else { None }
    }
}

/// Whether every provider takes this as the name of a tool.
pub fn is_tool_name(name: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    (1..=TOOL_NAME_BYTES_MAX).contains(&name.len()) && name.bytes().all(is_allowed)
}

/// The part of a conversation that a snapshot shows; without any bound, all of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Page {
    /// Only entities that were changed, or dropped, after this event.
    pub since: Option<Ordinal>,
    /// Only entities that were created before this event.
    pub before: Option<Ordinal>,
    /// Maximum number of entities; the newest are returned. Entities from before the first event are
    /// never divided, so a page may have more.
    pub limit: Option<NonZeroU32>,
}

impl Page {
    /// Whether it is the whole conversation.
    pub fn is_everything(&self) -> bool {
        *self == Self::default()
    }
}

impl From<SnapshotRequest> for Page {
    fn from(request: SnapshotRequest) -> Self {
        let ordinal = |number: u64| (number != 0).then_some(Ordinal(number));
        Self {
            since: ordinal(request.since_ordinal),
            before: ordinal(request.before_ordinal),
            limit: NonZeroU32::new(request.limit),
        }
    }
}
