//! Checks the payloads of extensions: the fields that no message of the published contract has.

use super::names::shown;
use super::rule::{Report, Rule};
use crate::protocol::any::{Any, Kind, Value};
use crate::protocol::constants::class;
use crate::protocol::proto::frontendtools::ToolExecutionMode;
use crate::protocol::proto::session::{CompactionCause, WaitingFor};
use crate::protocol::proto::tools::{ApprovalDecision, ToolServerState};

/// Required fields of a payload of an extension.
#[expect(clippy::wildcard_enum_match_arm, reason = "all others have no fields to check")]
pub(super) fn check_extension_fields(payload: &Any, report: &mut Report) {
    let mut need = |field: &str, is_set: bool| {
        if !is_set {
            report.add(Rule::MissingField, format!("{} has no {field}", payload.name()));
        }
    };
    match payload {
        Any::ToolApprovalRequested(it) => need("server", !it.server.is_empty()),
        Any::ToolApprovalResolved(it) => {
            need("decision", it.decision() != ApprovalDecision::Unspecified);
        }
        Any::ToolCallProgressed(it) => {
            let is_number = |value: &Value| matches!(value.kind, Some(Kind::Number(_)));
            need("progress that is a number", it.progress.as_ref().is_some_and(is_number));
            need("total that is a number", it.total.as_ref().is_none_or(is_number));
        }
        Any::Heartbeat(it) => need("waitingFor", it.waiting_for() != WaitingFor::Unspecified),
        Any::CompactionProposed(it) => {
            need("cause", it.cause() != CompactionCause::Unspecified);
        }
        Any::CompactionStarted(it) => need("cause", it.cause() != CompactionCause::Unspecified),
        Any::Compacted(it) => {
            need("compactionId", !it.compaction_id.is_empty());
            need(
                "summary with its throughTurnId",
                it.summary.is_empty() == it.through_turn_id.is_empty(),
            );
        }
        Any::CompactionFailed(it) => need("reason", !it.reason.is_empty()),
        Any::BudgetNearlySpent(it) => need("budget", !it.budget.is_empty()),
        Any::ToolServerChanged(it) => {
            need("server", !it.server.is_empty());
            need("state", it.state() != ToolServerState::Unspecified);
            need("name of a tool", it.tools.iter().all(|name| !name.is_empty()));
        }
        Any::FrontendToolManifestUpdated(it) => {
            need("name of a tool", it.tools.iter().all(|tool| !tool.name.is_empty()));
        }
        Any::FrontendToolCallRequested(it) => {
            need("mode", it.mode() != ToolExecutionMode::Unspecified);
        }
        Any::SteeringAccepted(it) => need("targetRequestId", !it.target_request_id.is_empty()),
        Any::TurnDropped(it) => {
            need("turnIds", !it.turn_ids.is_empty());
            // Of turns that people do not see there is no message.
            let is_first =
                it.message_ids.first().map_or("", String::as_str) == it.prompt_message_id;
            need("promptMessageId that is the first of its messageIds", is_first);
        }
        Any::ModelSwitched(it) => need("engine", !it.engine.is_empty()),
        Any::RetryScheduled(it) if !class::ALL.contains(&&*it.error_class) => {
            let (given, known) = (shown(&it.error_class), class::ALL.join(", "));
            let message =
                format!("the errorClass of RetryScheduled, {given:?}, is none of {known}");
            report.add(Rule::ErrorClass, message);
        }
        _ => {}
    }
}
