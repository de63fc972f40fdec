//! The commands of requests, those of the extensions included: read from the members of a request
//! line and checked as far as that is possible without a session. Pure.

mod edit;

mod page;

pub use edit::Edit;
pub use page::Page;

use crate::protocol::any::Struct;
use crate::protocol::attachment::{self, Attachment};
use crate::protocol::id::{IdTooLong, RequestId, ToolCallId};
use crate::protocol::proto::frontendtools::{
    FrontendToolDescriptor, FrontendToolManifestCommand, FrontendToolResultCommand,
    ToolExecutionMode,
};
use crate::protocol::proto::rpc::rpc_request_line::Request as Member;
use crate::protocol::proto::rpc::{
    ApproveRequest, CancelRequest, SubmitPromptRequest, SwitchModelRequest,
};
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
    /// Report the state of the conversation, or of a part of it.
    Snapshot(Page),
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
    /// Choose the model that answers from the next submit on.
    SwitchModel(ModelChoice),
    /// Change the end of the conversation.
    Edit(Edit),
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
    pub choice: Option<ModelChoice>,
    /// The JSON Schema that the answer must match.
    pub schema: Option<Map<String, Value>>,
}

/// The model that is to answer, and how. What is empty stays as it is.
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
    /// Images and files go with a prompt.
    Attachments,
    /// The client offers tools and runs them.
    ClientTools,
    /// The client drops turns, or has them answered anew.
    Edit,
    /// A snapshot has a part of the conversation.
    History,
    /// Events report retries of provider calls, and answers that were cut off.
    Retries,
    /// A submit has settings of its own.
    Settings,
    /// A submit joins the run that it names.
    Steer,
    /// Events report that the conversation is not stored any more.
    Store,
    /// A submit has a schema that its answer must match.
    Structured,
    /// A request chooses the model.
    SwitchModel,
    /// A cancel names what it stops.
    TargetedCancel,
    /// Events report the state of tool servers.
    ToolServers,
    /// Events report token counts and costs.
    Usage,
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

    /// As written.
    pub fn into_string(self) -> String {
        self.0
    }
}

impl Extension {
    /// All of them, in the order of their names.
    pub const ALL: [Self; 14] = [
        Self::Approvals,
        Self::Attachments,
        Self::ClientTools,
        Self::Edit,
        Self::History,
        Self::Retries,
        Self::Settings,
        Self::Steer,
        Self::Store,
        Self::Structured,
        Self::SwitchModel,
        Self::TargetedCancel,
        Self::ToolServers,
        Self::Usage,
    ];

    /// The name in `hello`, in `enable` and as an option.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Approvals => capability::APPROVALS,
            Self::Attachments => capability::ATTACHMENTS,
            Self::ClientTools => capability::CLIENT_TOOLS,
            Self::Edit => capability::EDIT,
            Self::History => capability::HISTORY,
            Self::Retries => capability::RETRIES,
            Self::Settings => capability::SETTINGS,
            Self::Steer => capability::STEER,
            Self::Store => capability::STORE,
            Self::Structured => capability::STRUCTURED,
            Self::SwitchModel => capability::SWITCH_MODEL,
            Self::TargetedCancel => capability::TARGETED_CANCEL,
            Self::ToolServers => capability::TOOL_SERVERS,
            Self::Usage => capability::USAGE,
        }
    }

    /// The extension with that name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|extension| extension.as_str() == name)
    }
}

impl Command {
    /// The profile that the command names.
    pub(crate) fn profile(&self) -> Option<&str> {
        let choice = match self {
            Self::Submit(submit) => submit.choice.as_ref(),
            Self::SwitchModel(choice) => Some(choice),
            Self::Cancel(_)
            | Self::Snapshot(_)
            | Self::Shutdown
            | Self::Enable(_)
            | Self::DeclareTools(_)
            | Self::ToolResult(_)
            | Self::Approve(_)
            | Self::Edit(_) => None,
        };
        choice.map(|choice| choice.profile.trim()).filter(|name| !name.is_empty())
    }

    /// The command of a request line's member.
    ///
    /// # Errors
    /// What is wrong with the member.
    pub(super) fn new(member: Member) -> Result<Self, CommandFault> {
        Ok(match member {
            Member::Submit(submit) => Self::Submit(Submit::try_from(submit)?),
            Member::Cancel(cancel) => Self::Cancel(Cancel::try_from(cancel)?),
            Member::Snapshot(snapshot) => Self::Snapshot(Page::from(snapshot)),
            Member::Shutdown(_) => Self::Shutdown,
            Member::Enable(enable) => Self::Enable(extensions(&enable.extensions)?),
            Member::DeclareTools(message) => Self::DeclareTools(ToolManifest::try_from(message)?),
            Member::ToolResult(result) => Self::ToolResult(ClientToolResult::try_from(result)?),
            Member::Approve(approve) => Self::Approve(Approve::try_from(approve)?),
            Member::SwitchModel(switch) => Self::SwitchModel(ModelChoice::try_from(switch)?),
            Member::Edit(edit) => Self::Edit(Edit::try_from(edit)?),
        })
    }
}

impl TryFrom<SubmitPromptRequest> for Submit {
    type Error = CommandFault;

    fn try_from(submit: SubmitPromptRequest) -> Result<Self, CommandFault> {
        let joins = target(&submit.target_request_id)?;
        let prompt = Prompt::new(submit.prompt).ok_or(CommandFault::EmptyPrompt)?;
        let attachments = attachment::requested(submit.attachments);
        let attachments = attachments.map_err(CommandFault::InvalidAttachment)?;
        let choice = submit.settings.map(|settings| members(&settings, "settings"));
        let choice = choice.transpose()?.map(ModelChoice::from_settings).transpose()?;
        let schema = submit.response_schema.map(|schema| members(&schema, "responseSchema"));
        Ok(Self { prompt, joins, attachments, choice, schema: schema.transpose()? })
    }
}

impl TryFrom<SwitchModelRequest> for ModelChoice {
    type Error = CommandFault;

    fn try_from(switch: SwitchModelRequest) -> Result<Self, CommandFault> {
        let SwitchModelRequest { profile, engine, model, settings } = switch;
        let settings = settings.map(|settings| members(&settings, "settings")).transpose()?;
        Ok(Self { profile, engine, model, settings: settings.unwrap_or_default() })
    }
}

impl ModelChoice {
    /// The choice in the settings of a submit, where the names of profile, engine and model stand
    /// beside the settings of the call.
    fn from_settings(mut settings: Map<String, Value>) -> Result<Self, CommandFault> {
        let mut name = |member: &str| match settings.remove(member) {
            None | Some(Value::Null) => Ok(String::new()),
            Some(Value::String(name)) => Ok(name),
            Some(_) => {
                Err(CommandFault::InvalidSettings(format!("settings.{member} must be a name")))
            }
        };
        let (profile, engine, model) = (name("profile")?, name("engine")?, name("model")?);
        Ok(Self { profile, engine, model, settings })
    }
}

/// The members of a `Struct` in the field of that name.
fn members(object: &Struct, field: &str) -> Result<Map<String, Value>, CommandFault> {
    match serde_json::to_value(object) {
        Ok(Value::Object(members)) => Ok(members),
        Ok(_) => Err(CommandFault::InvalidSettings(format!("{field} must be an object"))),
        Err(error) => Err(CommandFault::InvalidSettings(format!("{field}: {error}"))),
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
