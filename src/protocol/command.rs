//! The commands of requests, those of the extensions included: read from the members of a request
//! line and checked as far as that is possible without a session. Pure.

use crate::protocol::any::Struct;
use crate::protocol::id::{IdTooLong, RequestId, ToolCallId};
use crate::protocol::proto::frontendtools::{
    FrontendToolDescriptor, FrontendToolManifestCommand, FrontendToolResultCommand,
    ToolExecutionMode,
};
use crate::protocol::proto::rpc::rpc_request_line::Request as Member;
use crate::protocol::proto::rpc::{ApproveRequest, CancelRequest, SubmitPromptRequest};
use crate::protocol::proto::tools::ApprovalDecision;
use crate::protocol::words::{capability, tool_result};
use serde_json::{Map, Value, json};
use std::collections::{BTreeSet, HashSet};
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
    /// Report the state of the conversation.
    Snapshot,
    /// End the process after the active run.
    Shutdown,
    /// Turn extensions on.
    Enable(BTreeSet<Extension>),
    /// Replace the tools that the client runs.
    DeclareTools(ToolManifest),
    /// The result of a tool that the client ran.
    ToolResult(ClientToolResult),
    /// Decide about a tool call.
    Approve(Approve),
}

/// A prompt for the model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Submit {
    /// The prompt.
    pub prompt: Prompt,
    /// The request whose run it joins; `None` for a run of its own.
    pub joins: Option<RequestId>,
}

/// A prompt: kept as written; blank only if the model is called without one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prompt(String);

/// What a cancel stops. With neither member set, the active run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cancel {
    /// The request to stop or withdraw.
    pub target: Option<RequestId>,
    /// Every submit that waits is withdrawn.
    pub waiting: bool,
}

/// What the client decides about a tool call.
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
    /// What it does, for the model.
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
    /// What it returned.
    pub result: Option<Struct>,
    /// Why it failed; `None` if it succeeded.
    pub error: Option<String>,
}

/// Extensions that a request or an option can turn on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Extension {
    /// The client decides about tool calls.
    Approvals,
    /// The client offers tools and runs them.
    ClientTools,
    /// A submit joins the run that it names.
    Steer,
    /// A cancel names what it stops.
    TargetedCancel,
    /// Events report the state of tool servers.
    ToolServers,
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
    /// A value is not one of those that the field allows.
    InvalidValue(String),
}

impl Submit {
    /// A submit with a run of its own.
    pub fn new(prompt: Prompt) -> Self {
        Self { prompt, joins: None }
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

    /// As written.
    pub fn into_string(self) -> String {
        self.0
    }
}

impl Extension {
    /// All of them, in the order of their names.
    pub const ALL: [Self; 5] =
        [Self::Approvals, Self::ClientTools, Self::Steer, Self::TargetedCancel, Self::ToolServers];

    /// The name in `hello`, in `enable` and as an option.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Approvals => capability::APPROVALS,
            Self::ClientTools => capability::CLIENT_TOOLS,
            Self::Steer => capability::STEER,
            Self::TargetedCancel => capability::TARGETED_CANCEL,
            Self::ToolServers => capability::TOOL_SERVERS,
        }
    }

    /// The extension with that name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|extension| extension.as_str() == name)
    }
}

impl Command {
    /// The command of a request line's member.
    ///
    /// # Errors
    /// What is wrong with the member.
    pub(super) fn new(member: Member) -> Result<Self, CommandFault> {
        Ok(match member {
            Member::Submit(submit) => Self::Submit(Submit::try_from(submit)?),
            Member::Cancel(cancel) => Self::Cancel(Cancel::try_from(cancel)?),
            Member::Snapshot(_) => Self::Snapshot,
            Member::Shutdown(_) => Self::Shutdown,
            Member::Enable(enable) => Self::Enable(extensions(&enable.extensions)?),
            Member::DeclareTools(message) => Self::DeclareTools(ToolManifest::try_from(message)?),
            Member::ToolResult(result) => Self::ToolResult(ClientToolResult::try_from(result)?),
            Member::Approve(approve) => Self::Approve(Approve::try_from(approve)?),
        })
    }
}

impl TryFrom<SubmitPromptRequest> for Submit {
    type Error = CommandFault;

    fn try_from(submit: SubmitPromptRequest) -> Result<Self, CommandFault> {
        let joins = target(&submit.target_request_id)?;
        let prompt = Prompt::new(submit.prompt).ok_or(CommandFault::EmptyPrompt)?;
        Ok(Self { prompt, joins })
    }
}

impl TryFrom<CancelRequest> for Cancel {
    type Error = CommandFault;

    fn try_from(cancel: CancelRequest) -> Result<Self, CommandFault> {
        Ok(Self { target: target(&cancel.target_request_id)?, waiting: cancel.waiting })
    }
}

fn target(id: &str) -> Result<Option<RequestId>, CommandFault> {
    RequestId::parse(id).map_err(|error| CommandFault::IdTooLong("targetRequestId", error))
}

fn extensions(names: &[String]) -> Result<BTreeSet<Extension>, CommandFault> {
    let known = |name: &String| {
        Extension::named(name).ok_or_else(|| CommandFault::UnknownExtension(name.clone()))
    };
    names.iter().map(known).collect()
}

impl TryFrom<ApproveRequest> for Approve {
    type Error = CommandFault;

    fn try_from(approve: ApproveRequest) -> Result<Self, CommandFault> {
        let decision = match ApprovalDecision::try_from(approve.decision) {
            Ok(ApprovalDecision::AllowOnce) => Decision::AllowOnce,
            Ok(ApprovalDecision::AllowSession) => Decision::AllowSession,
            Ok(ApprovalDecision::Deny) => Decision::Deny { reason: approve.reason },
            Ok(ApprovalDecision::Unspecified) | Err(_) => {
                let reason = "approve.decision must be ALLOW_ONCE, ALLOW_SESSION or DENY";
                return Err(CommandFault::InvalidValue(reason.to_owned()));
            }
        };
        Ok(Self { call: ToolCallId(approve.tool_call_id), decision })
    }
}

impl TryFrom<FrontendToolResultCommand> for ClientToolResult {
    type Error = CommandFault;

    fn try_from(message: FrontendToolResultCommand) -> Result<Self, CommandFault> {
        let error = match message.status.as_str() {
            tool_result::ERROR => Some(message.error),
            tool_result::SUCCESS | "" => (!message.error.is_empty()).then_some(message.error),
            other => {
                let reason =
                    format!("toolResult.status is {other:?}; use \"success\" or \"error\"");
                return Err(CommandFault::InvalidValue(reason));
            }
        };
        Ok(Self {
            call: ToolCallId(message.tool_call_id),
            tool_name: (!message.tool_name.is_empty()).then_some(message.tool_name),
            result: message.result,
            error,
        })
    }
}

impl TryFrom<FrontendToolManifestCommand> for ToolManifest {
    type Error = CommandFault;

    fn try_from(message: FrontendToolManifestCommand) -> Result<Self, CommandFault> {
        if message.tools.len() > CLIENT_TOOLS_MAX {
            let count = message.tools.len();
            let reason = format!("{count} tools are declared; at most {CLIENT_TOOLS_MAX} can be");
            return Err(CommandFault::InvalidTools(reason));
        }
        let mut names = HashSet::new();
        if let Some(twice) = message.tools.iter().find(|tool| !names.insert(&tool.name)) {
            let reason = format!("the tool {:?} is declared twice", twice.name);
            return Err(CommandFault::InvalidTools(reason));
        }
        // A client that never sets the field does not mean that no tool can be called.
        let uses_available = message.tools.iter().any(|tool| tool.available);
        let callable = message.tools.iter().filter(|tool| tool.available || !uses_available);
        let tools = callable.map(ClientTool::new).collect::<Result<_, _>>()?;
        Ok(Self { tools, message })
    }
}

impl ClientTool {
    fn new(declared: &FrontendToolDescriptor) -> Result<Self, CommandFault> {
        let name = &declared.name;
        let invalid = |reason: &str| CommandFault::InvalidTools(format!("tool {name:?}: {reason}"));
        if !is_tool_name(name) {
            return Err(invalid("a name has 1 to 64 letters, digits, \"_\" and \"-\""));
        }
        let is_human = match ToolExecutionMode::try_from(declared.mode) {
            Ok(ToolExecutionMode::Unspecified | ToolExecutionMode::FrontendAuto) => false,
            Ok(ToolExecutionMode::FrontendHuman) => true,
            Ok(ToolExecutionMode::Backend) | Err(_) => {
                return Err(invalid(
                    "its mode must be TOOL_EXECUTION_MODE_FRONTEND_AUTO or \
                     TOOL_EXECUTION_MODE_FRONTEND_HUMAN",
                ));
            }
        };
        let input_schema = match &declared.input_schema {
            None => json!({ "type": "object", "properties": {} }),
            Some(schema) => serde_json::to_value(schema)
                .map_err(|error| invalid(&format!("its inputSchema is no JSON: {error}")))?,
        };
        let Value::Object(mut input_schema) = input_schema else {
            return Err(invalid("its inputSchema is no object"));
        };
        if input_schema.entry("type").or_insert_with(|| json!("object")) != "object" {
            return Err(invalid("its inputSchema must have \"type\": \"object\""));
        }
        Ok(Self {
            name: name.clone(),
            description: declared.description.clone(),
            input_schema: Arc::new(input_schema),
            is_human,
        })
    }
}

/// Whether every provider takes this as the name of a tool.
pub fn is_tool_name(name: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    (1..=TOOL_NAME_BYTES_MAX).contains(&name.len()) && name.bytes().all(is_allowed)
}
