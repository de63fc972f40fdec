//! Checks the payloads of extensions: the fields that no message of the published contract has.

use super::names::shown;
use super::rule::{Report, Rule};
use crate::protocol::any::Any;
use crate::protocol::constants::class;
use crate::protocol::proto::frontendtools::ToolExecutionMode;
use crate::protocol::proto::tools::{ApprovalDecision, ToolServerState};

/// Required fields of a payload of an extension.
pub(super) fn check_extension_fields(payload: &Any, report: &mut Report) {
    let mut need = |field: &str, is_set: bool| {
        if !is_set {
            report.add(Rule::MissingField, format!("{} has no {field}", payload.name()));
        }
    };
    if let Any::ToolApprovalRequested(it) = payload {
        need("server", !it.server.is_empty());
    }
    if let Any::ToolApprovalResolved(it) = payload {
        need("decision", it.decision() != ApprovalDecision::Unspecified);
    }
    if let Any::ToolServerChanged(it) = payload {
        need("server", !it.server.is_empty());
        need("state", it.state() != ToolServerState::Unspecified);
        need("name of a tool", it.tools.iter().all(|name| !name.is_empty()));
    }
    if let Any::FrontendToolManifestUpdated(it) = payload {
        need("name of a tool", it.tools.iter().all(|tool| !tool.name.is_empty()));
    }
    if let Any::FrontendToolCallRequested(it) = payload {
        need("mode", it.mode() != ToolExecutionMode::Unspecified);
    }
    if let Any::SteeringAccepted(it) = payload {
        need("targetRequestId", !it.target_request_id.is_empty());
    }
    if let Any::TurnDropped(it) = payload {
        need("turnIds", !it.turn_ids.is_empty());
        // Of turns that people do not see there is no message.
        let first = it.message_ids.first().map_or("", String::as_str);
        need("promptMessageId that is the first of its messageIds", it.prompt_message_id == first);
    }
    if let Any::ModelSwitched(it) = payload {
        need("engine", !it.engine.is_empty());
    }
    if let Any::RetryScheduled(it) = payload
        && !class::ALL.contains(&&*it.error_class)
    {
        let (given, known) = (shown(&it.error_class), class::ALL.join(", "));
        let message = format!("the errorClass of RetryScheduled, {given:?}, is none of {known}");
        report.add(Rule::ErrorClass, message);
    }
}
