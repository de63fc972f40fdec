//! Reads the commands from the messages of request lines. Pure.

use super::{
    Approve, CLIENT_TOOLS_MAX, Cancel, ClientTool, ClientToolResult, Command, CommandFault,
    Compact, Decision, Edit, Enable, Extension, ModelChoice, Page, Prompt, ReturnedObject, Submit,
    ToolManifest, is_tool_name,
};
use crate::protocol::any::Struct;
use crate::protocol::attachment;
use crate::protocol::constants::tool_result;
use crate::protocol::event_filter::EventFilter;
use crate::protocol::id::{RequestId, ToolCallId};
use crate::protocol::proto::frontendtools::{
    FrontendToolDescriptor, FrontendToolManifestCommand, FrontendToolResultCommand,
    ToolExecutionMode,
};
use crate::protocol::proto::rpc::rpc_request_line::Request as Member;
use crate::protocol::proto::rpc::{
    ApproveRequest, CancelRequest, CompactRequest, EnableRequest, SubmitPromptRequest,
    SwitchModelRequest,
};
use crate::protocol::proto::tools::ApprovalDecision;
use serde_json::{Map, Value, json};
use std::collections::HashSet;
use std::sync::Arc;

impl Command {
    /// The command of a request line's member.
    ///
    /// # Errors
    /// The error in the member.
    pub(in crate::protocol) fn new(member: Member) -> Result<Self, CommandFault> {
        Ok(match member {
            Member::Submit(submit) => Self::Submit(Submit::try_from(submit)?),
            Member::Cancel(cancel) => Self::Cancel(Cancel::try_from(cancel)?),
            Member::Snapshot(snapshot) => Self::Snapshot(Page::from(snapshot)),
            Member::Shutdown(_) => Self::Shutdown,
            Member::Enable(enable) => Self::Enable(Enable::try_from(enable)?),
            Member::DeclareTools(message) => Self::DeclareTools(ToolManifest::try_from(message)?),
            Member::ToolResult(result) => Self::ToolResult(ClientToolResult::try_from(result)?),
            Member::Approve(approve) => Self::Approve(Approve::try_from(approve)?),
            Member::SwitchModel(switch) => Self::SwitchModel(ModelChoice::try_from(switch)?),
            Member::Edit(edit) => Self::Edit(Edit::try_from(edit)?),
            Member::Compact(CompactRequest { instructions, keep_turns, decline }) => {
                Self::Compact(Compact { instructions, keep_turns, decline })
            }
        })
    }
}

impl TryFrom<SubmitPromptRequest> for Submit {
    type Error = CommandFault;

    fn try_from(submit: SubmitPromptRequest) -> Result<Self, CommandFault> {
        let joins = target(&submit.target_request_id)?;
        let attachments = attachment::requested(submit.attachments, submit.resources);
        let (prompt, attachments) = Prompt::with(submit.prompt, attachments)?;
        let choice = submit.settings.map(|settings| members(&settings, "settings"));
        let choice = choice.transpose()?.map(ModelChoice::from_settings).transpose()?.map(Box::new);
        let schema = submit.response_schema.map(|schema| members(&schema, "responseSchema"));
        let schema = schema.transpose()?.map(Box::new);
        Ok(Self { prompt, joins, attachments, choice, schema })
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
        let mut name = |member: &str| match settings.shift_remove(member) {
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

impl TryFrom<EnableRequest> for Enable {
    type Error = CommandFault;

    fn try_from(enable: EnableRequest) -> Result<Self, CommandFault> {
        let known = |name: &String| {
            Extension::named(name).ok_or_else(|| CommandFault::UnknownExtension(name.clone()))
        };
        let extensions = enable.extensions.iter().map(known).collect::<Result<_, _>>()?;
        let names = enable.events.iter().map(String::as_str);
        let events = (!enable.events.is_empty()).then(|| EventFilter::new(names)).transpose();
        let events = events.map_err(|reason| {
            CommandFault::InvalidValue(format!("enable.events: {reason}; nothing was turned on"))
        })?;
        Ok(Self { extensions, events })
    }
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
        let result = message.result.map(ReturnedObject::try_from).transpose();
        let result = result
            .map_err(|error| CommandFault::InvalidValue(format!("toolResult.result: {error}")))?;
        Ok(Self {
            call: ToolCallId(message.tool_call_id),
            tool_name: (!message.tool_name.is_empty()).then_some(message.tool_name),
            result,
            error,
        })
    }
}

impl TryFrom<Struct> for ReturnedObject {
    type Error = serde_json::Error;

    fn try_from(message: Struct) -> Result<Self, serde_json::Error> {
        let json = serde_json::to_string(&message)?;
        Ok(Self { message, json })
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
        let mut tools = Vec::with_capacity(message.tools.len());
        for declared in &message.tools {
            let is_offered = declared.available || !uses_available;
            // Tools that are not offered are checked, too: the list is stored and shown as it was sent.
            let tool = ClientTool::new(declared, is_offered)?;
            if is_offered {
                tools.push(tool);
            }
        }
        Ok(Self { tools, message })
    }
}

impl ClientTool {
    /// A tool that this process runs may stand in a list, but is not offered.
    fn new(declared: &FrontendToolDescriptor, is_offered: bool) -> Result<Self, CommandFault> {
        let name = &declared.name;
        let invalid = |reason: &str| CommandFault::InvalidTools(format!("tool {name:?}: {reason}"));
        if !is_tool_name(name) {
            return Err(invalid("a name has 1 to 64 letters, digits, \"_\" and \"-\""));
        }
        let is_human = match ToolExecutionMode::try_from(declared.mode) {
            Ok(ToolExecutionMode::Unspecified | ToolExecutionMode::FrontendAuto) => false,
            Ok(ToolExecutionMode::FrontendHuman) => true,
            Ok(ToolExecutionMode::Backend) if !is_offered => false,
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
