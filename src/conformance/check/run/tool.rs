//! Checks the steps of one tool call.

use crate::conformance::check::names::{Name, Namer};
use crate::conformance::check::rule::{Report, Rule};
use crate::conformance::check::run_event::ToolEvent;
use crate::conformance::check::text::Text;
use crate::protocol::any::Struct;
use crate::protocol::constants::tool_result;

#[derive(Clone, Debug)]
pub(super) struct Tool {
    pub(super) name: Name,
    pub(super) input: Text,
    stage: ToolStage,
    /// The hash of the whole input.
    requested: Option<u64>,
    /// The hash of the whole input as the client of a tool gets it.
    arguments: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ToolStage {
    Started,
    Requested,
    AwaitsApproval,
    Allowed,
    Denied,
    Executing,
    AwaitsClient,
    /// The client has answered, with success or not.
    Answered(bool),
    Returned,
}

impl Tool {
    /// A call that the model has begun.
    pub(super) fn begin(name: Name) -> Self {
        let (stage, input) = (ToolStage::Started, Text::default());
        Self { name, input, stage, requested: None, arguments: None }
    }

    /// Whether it waits for the client's approval.
    pub(super) fn awaits_approval(&self) -> bool {
        self.stage == ToolStage::AwaitsApproval
    }

    /// Whether it may finish: before it was requested, or after its result.
    pub(super) fn may_finish(&self) -> bool {
        matches!(self.stage, ToolStage::Started | ToolStage::Returned)
    }

    /// An event between the first and the last.
    pub(super) fn event(
        &mut self,
        shown: &str,
        event: ToolEvent<'_>,
        namer: &Namer,
        report: &mut Report,
    ) {
        if !self.stage.allows(event) {
            let message = format!("{shown}: a step out of order, after {}", self.stage.as_str());
            report.add(Rule::EventOrder, message);
        }
        match event {
            ToolEvent::Patched(patch) => self.input.patch(shown, patch, report),
            ToolEvent::Requested { input } => {
                self.requested = Some(namer.key(input));
                self.arguments = arguments(input).map(|arguments| namer.key(&arguments));
                if self.input.patches > 0 {
                    self.input.finish(shown, input, report);
                }
            }
            ToolEvent::ApprovalRequested { input } | ToolEvent::Executing { input } => {
                if self.requested.is_some_and(|requested| requested != namer.key(input)) {
                    let message = format!("the input of {shown} is not the one that was requested");
                    report.add(Rule::FieldChanged, message);
                }
            }
            ToolEvent::ClientAsked { input } => {
                let input = input.map(written).unwrap_or_else(|| "{}".to_owned());
                if self.arguments.is_some_and(|arguments| arguments != namer.key(&input)) {
                    let message = format!("the client gets another input for {shown}");
                    report.add(Rule::FieldChanged, message);
                }
            }
            ToolEvent::Returned { status } => self.check_result(shown, status, report),
            ToolEvent::Started
            | ToolEvent::ApprovalResolved { .. }
            | ToolEvent::ClientAnswered { .. }
            | ToolEvent::Progressed
            | ToolEvent::Finished => {}
        }
        self.stage = ToolStage::after(event);
    }

    /// The result agrees with the way the call ended.
    fn check_result(&self, shown: &str, status: &str, report: &mut Report) {
        let expected = match self.stage {
            // If the client has not answered, there is no result.
            ToolStage::Denied | ToolStage::AwaitsClient => false,
            ToolStage::Answered(is_success) => is_success,
            // A call that was not run has an error for its result.
            ToolStage::Requested | ToolStage::AwaitsApproval | ToolStage::Allowed => {
                if status == tool_result::SUCCESS {
                    let message = format!("the result of {shown} is a success, but it was not run");
                    report.add(Rule::EventOrder, message);
                }
                return;
            }
            ToolStage::Started | ToolStage::Executing | ToolStage::Returned => return,
        };
        if expected != (status == tool_result::SUCCESS) {
            let before = self.stage.as_str();
            let message = format!("the result of {shown} does not agree with its status: {before}");
            report.add(Rule::FieldChanged, message);
        }
    }
}

/// The arguments that a model wrote, as the client of a tool gets them, if they are an object.
fn arguments(input: &str) -> Option<String> {
    match input.trim() {
        "" => Some("{}".to_owned()),
        input => serde_json::from_str(input).ok().as_ref().map(written),
    }
}

fn written(input: &Struct) -> String {
    serde_json::to_string(input).unwrap_or_default()
}

impl ToolStage {
    /// The stage after such a step.
    fn after(event: ToolEvent<'_>) -> Self {
        match event {
            ToolEvent::Started | ToolEvent::Patched(_) => Self::Started,
            ToolEvent::Requested { .. } => Self::Requested,
            ToolEvent::ApprovalRequested { .. } => Self::AwaitsApproval,
            ToolEvent::ApprovalResolved { is_allowed: true } => Self::Allowed,
            ToolEvent::ApprovalResolved { is_allowed: false } => Self::Denied,
            ToolEvent::Executing { .. } | ToolEvent::Progressed => Self::Executing,
            ToolEvent::ClientAsked { .. } => Self::AwaitsClient,
            ToolEvent::ClientAnswered { status } => Self::Answered(status == tool_result::SUCCESS),
            ToolEvent::Returned { .. } | ToolEvent::Finished => Self::Returned,
        }
    }

    /// Whether such a step may come next.
    fn allows(self, event: ToolEvent<'_>) -> bool {
        match event {
            ToolEvent::Started
            | ToolEvent::Patched(_)
            | ToolEvent::Requested { .. }
            | ToolEvent::Finished => self == Self::Started,
            ToolEvent::ApprovalRequested { .. } => self == Self::Requested,
            ToolEvent::ApprovalResolved { .. } => self == Self::AwaitsApproval,
            ToolEvent::Executing { .. } => matches!(self, Self::Requested | Self::Allowed),
            ToolEvent::ClientAsked { .. } | ToolEvent::Progressed => self == Self::Executing,
            ToolEvent::ClientAnswered { .. } => self == Self::AwaitsClient,
            // A call may be refused, or its time may be up.
            ToolEvent::Returned { .. } => matches!(
                self,
                Self::Requested
                    | Self::Denied
                    | Self::Executing
                    | Self::AwaitsClient
                    | Self::Answered(_)
            ),
        }
    }

    fn as_str(self) -> &'static str {
        match self {
            Self::Started => "its start",
            Self::Requested => "it was requested",
            Self::AwaitsApproval => "its approval was requested",
            Self::Allowed => "it was allowed",
            Self::Denied => "it was denied",
            Self::Executing => "it was started",
            Self::AwaitsClient => "the client was asked to run it",
            Self::Answered(true) => "the client returned a result",
            Self::Answered(false) => "the client returned an error",
            Self::Returned => "its result",
        }
    }
}
