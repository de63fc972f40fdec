//! Checks the events of one run: their order, that everything opened is closed, and that text adds
//! up.

use super::calls::{Calls, SessionCalls};
use super::fields::is_cancelled;
use super::identity::Identity;
use super::names::{Name, Namer, shown};
use super::rule::{Report, Rule};
use super::step::{RunEnd, SegmentStep, Step, ToolStep};
use super::text::Text;
use super::usage::call_usage;
use crate::protocol::any::Struct;
use crate::protocol::words::tool_result;

/// Most open segments, or tool calls, of one run that are tracked. A run with more of them is not
/// tracked any further.
const OPEN_MAX: usize = 1024;

/// Most bytes of open text of a run that are kept for comparison with the complete text at its end;
/// beyond that only lengths are compared. Equal to this server's limit for an answer.
const TEXT_BYTES_MAX: usize = crate::session::ANSWER_BYTES_MAX;

/// A run, from its first event to its request's `done`.
#[derive(Clone, Debug)]
pub(super) struct Run {
    pub(super) request: Name,
    /// What its events repeat.
    pub(super) identity: Identity,
    /// A request to cancel it was answered.
    pub(super) is_cancelled: bool,
    pub(super) calls: Calls,
    stage: RunStage,
    has_call: bool,
    /// The finish reason of its last call, as far as it was shown.
    reason: Option<Name>,
    /// Prompts in it.
    prompts: u32,
    /// The prompt that has joined it and has no SteeringAccepted yet.
    joined: Option<Name>,
    /// How a segment of its open call was cut off.
    segment_end: Option<RunEnd>,
    /// How it must end, given what was cut off in it.
    expected_end: Option<RunEnd>,
    segments: Vec<Segment>,
    tools: Vec<Tool>,
    is_too_wide: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RunStage {
    Accepted,
    Started,
    Ended(RunEnd),
}

#[derive(Clone, Debug)]
struct Segment {
    name: Name,
    text: Text,
}

#[derive(Clone, Debug)]
struct Tool {
    name: Name,
    stage: ToolStage,
    input: Text,
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

impl Run {
    /// A run whose first event is `step`.
    pub(super) fn begin(request: Name, step: &Step<'_>, report: &mut Report) -> Self {
        let is_first = matches!(step, Step::PromptAccepted { .. });
        if !is_first {
            let message = "a run begins with ChatUserMessageAccepted, not with this event";
            report.add(Rule::EventOrder, message);
        }
        // Continue in a state that makes later reports useful.
        let is_started = !is_first && !matches!(step, Step::RunStarted);
        Self {
            request,
            identity: Identity::default(),
            is_cancelled: false,
            calls: Calls::new(),
            segment_end: None,
            expected_end: None,
            stage: if is_started { RunStage::Started } else { RunStage::Accepted },
            has_call: is_started && !matches!(step, Step::CallStarted),
            reason: None,
            prompts: 1,
            joined: None,
            segments: Vec::new(),
            tools: Vec::new(),
            is_too_wide: false,
        }
    }

    pub(super) fn end(&self) -> Option<RunEnd> {
        match self.stage {
            RunStage::Ended(end) => Some(end),
            RunStage::Accepted | RunStage::Started => None,
        }
    }

    /// The text so far of an open segment.
    pub(super) fn open_text(&self, segment: &Name) -> Option<&Text> {
        self.segments.iter().find(|open| open.name == *segment).map(|open| &open.text)
    }

    /// Checks an event other than the run's first.
    pub(super) fn step(
        &mut self,
        step: Step<'_>,
        session: &mut SessionCalls,
        namer: &Namer,
        report: &mut Report,
    ) {
        if let (RunStage::Ended(_), false) = (self.stage, matches!(step, Step::Other)) {
            return report.add(Rule::EventOrder, "an event after the end of its run");
        }
        if self.joined.take().is_some() {
            let message = "a prompt has joined the run, but its SteeringAccepted does not follow";
            report.add(Rule::EventOrder, message);
        }
        if !matches!(step, Step::Truncated { .. } | Step::Counted(_) | Step::Other) {
            self.calls.settle(session, report);
        }
        match step {
            Step::PromptAccepted { id } => self.join(namer.name(id), id, report),
            Step::RunStarted => self.start(report),
            Step::CallStarted => {
                self.start_call(report);
                self.calls.start(session);
            }
            Step::CallUpdated { reason } => {
                self.need_call("ChatProviderCallMetadataUpdated", report);
                self.check_reason(reason, namer, report);
            }
            Step::CallFinished { class, reason, usage } => {
                self.check_last_reason(reason, namer, report);
                self.finish_call(class, report);
                self.calls.finish(class, reason, call_usage(usage), namer);
            }
            Step::Retried(retry) => self.calls.retry(retry, session, report),
            Step::Truncated { class, reason } => {
                self.calls.truncated((class, reason), session, namer, report);
            }
            Step::Counted(totals) => self.calls.counted(totals, session, namer, report),
            Step::Rejected { repair, repairs_max } => {
                let is_between = self.tools.is_empty();
                self.calls.rejected((repair, repairs_max), is_between, report);
            }
            Step::Segment(id, step) => {
                if let SegmentStep::Finished { reason, .. } = step {
                    self.check_reason(reason, namer, report);
                }
                self.calls.answer(report);
                self.segment(namer.name(id), step, report);
            }
            Step::Tool(id, step) => {
                self.calls.answer(report);
                self.tool(namer.name(id), step, namer, report);
            }
            Step::RunEnded { end, error } => {
                self.finish(end, report);
                self.calls.run_ended(end, error, report);
            }
            Step::Other => {}
        }
    }

    fn start(&mut self, report: &mut Report) {
        if self.stage != RunStage::Accepted {
            report.add(Rule::EventOrder, "ChatRunStarted in a run that has started");
        }
        self.stage = RunStage::Started;
    }

    /// Another prompt joins the run, at a boundary: no provider call and no tool is open.
    fn join(&mut self, name: Name, id: &str, report: &mut Report) {
        self.prompts += 1;
        let number = self.prompts;
        if self.stage != RunStage::Started || self.has_call || !self.tools.is_empty() {
            let message = "ChatUserMessageAccepted in a run that is not between provider calls";
            report.add(Rule::EventOrder, message);
        }
        if !id.ends_with(&format!("-user-{number}")) {
            let message = format!("prompt {number} of the run has the id {}", name.shown);
            report.add(Rule::MessageId, message);
        }
        self.joined = Some(name);
    }

    /// Whether this prompt has just joined the run, for the event that says so.
    pub(super) fn has_joined(&mut self, message: &Name) -> bool {
        self.joined.take_if(|joined| joined == message).is_some()
    }

    /// Compares a finish reason with the earlier ones of its provider call; it may be unknown.
    fn check_reason(&mut self, reason: &str, namer: &Namer, report: &mut Report) {
        if !reason.is_empty() {
            self.check_last_reason(reason, namer, report);
            self.reason.get_or_insert_with(|| namer.name(reason));
        }
    }

    fn check_last_reason(&self, reason: &str, namer: &Namer, report: &mut Report) {
        if let Some(known) = self.reason.as_ref().filter(|known| known.key() != namer.key(reason)) {
            let (reason, known) = (shown(reason), &known.shown);
            let message = format!("the finish reason of the call is {reason:?}; it was {known:?}");
            report.add(Rule::FieldChanged, message);
        }
    }

    fn start_call(&mut self, report: &mut Report) {
        if self.stage != RunStage::Started {
            let message = "ChatProviderCallStarted before ChatRunStarted";
            report.add(Rule::EventOrder, message);
            self.stage = RunStage::Started;
        }
        if self.has_call {
            let message = "ChatProviderCallStarted before the previous call has finished";
            report.add(Rule::EventOrder, message);
        }
        for tool in &self.tools {
            let message =
                format!("a provider call starts but tool call {} is open", tool.name.shown);
            report.add(Rule::LeftOpen, message);
        }
        self.has_call = true;
        self.reason = None;
    }

    fn finish_call(&mut self, class: &str, report: &mut Report) {
        self.need_call("ChatProviderCallFinished", report);
        self.has_call = false;
        let is_right = match self.segment_end.take() {
            None => true,
            Some(RunEnd::Stopped) => is_cancelled(class),
            Some(end @ (RunEnd::Finished | RunEnd::Failed)) => class == end.as_str(),
        };
        if !is_right {
            let class = shown(class);
            let message =
                format!("a segment of the provider call was cut off, but its class is {class:?}");
            report.add(Rule::EndMismatch, message);
        }
        if is_cancelled(class) {
            self.expected_end = Some(RunEnd::Stopped);
        }
        self.close_segments("the provider call", report);
    }

    fn need_call(&mut self, event: &str, report: &mut Report) {
        if !self.has_call {
            report.add(Rule::EventOrder, format!("{event} outside of a provider call"));
            self.has_call = true;
        }
    }

    fn finish(&mut self, end: RunEnd, report: &mut Report) {
        if self.stage == RunStage::Accepted {
            report.add(Rule::EventOrder, "the run ends before ChatRunStarted");
        }
        if self.has_call {
            report.add(Rule::LeftOpen, "the run ends but its provider call has not finished");
        }
        self.close_segments("the run", report);
        for tool in self.tools.drain(..) {
            let message = format!("the run ends but tool call {} is open", tool.name.shown);
            report.add(Rule::LeftOpen, message);
        }
        self.has_call = false;
        self.stage = RunStage::Ended(end);
        if let Some(expected) = self.expected_end.filter(|expected| *expected != end) {
            let (end, expected) = (end.as_str(), expected.as_str());
            let message = format!("the run is {end}, but what it had open is {expected}");
            report.add(Rule::EndMismatch, message);
        }
        if self.is_cancelled && end != RunEnd::Stopped {
            let end = end.as_str();
            let message = format!("a cancel of the run succeeded, but the run is {end}");
            report.add(Rule::CancelIgnored, message);
        }
    }

    fn close_segments(&mut self, what: &str, report: &mut Report) {
        for segment in self.segments.drain(..) {
            let message = format!("{what} ends but segment {} is open", segment.name.shown);
            report.add(Rule::LeftOpen, message);
        }
    }

    fn segment(&mut self, name: Name, step: SegmentStep<'_>, report: &mut Report) {
        let at = self.segments.iter().position(|open| open.name == name);
        let shown = format!("segment {}", name.shown);
        match (step, at) {
            (SegmentStep::Started, Some(_)) => {
                report.add(Rule::EventOrder, format!("{shown} starts twice"));
            }
            (SegmentStep::Started, None) => {
                self.need_call("a segment", report);
                if self.has_room_for(self.segments.len()) {
                    self.segments.push(Segment { name, text: Text::new() });
                }
            }
            (SegmentStep::Patched(patch), Some(at)) => {
                self.segments[at].text.patch(&shown, patch, report);
                self.limit_text();
            }
            (SegmentStep::Finished { text, status, .. }, Some(at)) => {
                let open = self.segments.remove(at);
                open.text.finish(&shown, text, report);
                if let Some(end) = RunEnd::of_cut(status) {
                    self.segment_end = Some(end);
                    self.expected_end = Some(end);
                }
            }
            (SegmentStep::Patched(_) | SegmentStep::Finished { .. }, None) => {
                self.not_open(&shown, report);
            }
        }
    }

    fn tool(&mut self, name: Name, step: ToolStep<'_>, namer: &Namer, report: &mut Report) {
        let at = self.tools.iter().position(|open| open.name == name);
        let shown = format!("tool call {}", name.shown);
        match (step, at) {
            (ToolStep::Started, Some(_)) => {
                report.add(Rule::EventOrder, format!("{shown} starts twice"));
            }
            (ToolStep::Started, None) => {
                self.need_call("a tool call", report);
                if self.has_room_for(self.tools.len()) {
                    let (stage, input) = (ToolStage::Started, Text::new());
                    let (requested, arguments) = (None, None);
                    self.tools.push(Tool { name, stage, input, requested, arguments });
                }
            }
            (ToolStep::Finished, Some(at)) => {
                let open = self.tools.remove(at);
                if !matches!(open.stage, ToolStage::Started | ToolStage::Returned) {
                    let message = format!("{shown} finishes without a result");
                    report.add(Rule::EventOrder, message);
                }
            }
            (step, Some(at)) => {
                self.tools[at].step(&shown, step, namer, report);
                self.limit_text();
            }
            (_, None) => self.not_open(&shown, report),
        }
    }

    fn limit_text(&mut self) {
        let texts = || self.segments.iter().map(|open| &open.text);
        let inputs = || self.tools.iter().map(|open| &open.input);
        let bytes: usize = texts().chain(inputs()).map(Text::kept_bytes).sum();
        if bytes > TEXT_BYTES_MAX {
            self.segments.iter_mut().for_each(|open| open.text.forget());
            self.tools.iter_mut().for_each(|open| open.input.forget());
        }
    }

    fn not_open(&self, shown: &str, report: &mut Report) {
        if !self.is_too_wide {
            report.add(Rule::EventOrder, format!("{shown} is not open"));
        }
    }

    fn has_room_for(&mut self, open: usize) -> bool {
        self.is_too_wide |= open >= OPEN_MAX;
        !self.is_too_wide
    }
}

impl Tool {
    /// A step between the first and the last.
    fn step(&mut self, shown: &str, step: ToolStep<'_>, namer: &Namer, report: &mut Report) {
        if !self.stage.allows(step) {
            let message = format!("{shown}: a step out of order, after {}", self.stage.as_str());
            report.add(Rule::EventOrder, message);
        }
        match step {
            ToolStep::Patched(patch) => self.input.patch(shown, patch, report),
            ToolStep::Requested { input } => {
                self.requested = Some(namer.key(input));
                self.arguments = arguments(input).map(|arguments| namer.key(&arguments));
                if self.input.patches > 0 {
                    self.input.finish(shown, input, report);
                }
            }
            ToolStep::ApprovalRequested { input } | ToolStep::Executing { input } => {
                if self.requested.is_some_and(|requested| requested != namer.key(input)) {
                    let message = format!("the input of {shown} is not the one that was requested");
                    report.add(Rule::FieldChanged, message);
                }
            }
            ToolStep::ClientAsked { input } => {
                let input = input.map(written).unwrap_or_else(|| "{}".to_owned());
                if self.arguments.is_some_and(|arguments| arguments != namer.key(&input)) {
                    let message = format!("the client gets another input for {shown}");
                    report.add(Rule::FieldChanged, message);
                }
            }
            ToolStep::Returned { status } => self.check_result(shown, status, report),
            ToolStep::Started
            | ToolStep::ApprovalResolved { .. }
            | ToolStep::ClientAnswered { .. }
            | ToolStep::Finished => {}
        }
        self.stage = ToolStage::after(step);
    }

    /// The result agrees with the way the call ended.
    fn check_result(&self, shown: &str, status: &str, report: &mut Report) {
        let expected = match self.stage {
            // If the client has not answered, there is no result.
            ToolStage::Denied | ToolStage::AwaitsClient => false,
            ToolStage::Answered(is_success) => is_success,
            ToolStage::Started
            | ToolStage::Requested
            | ToolStage::AwaitsApproval
            | ToolStage::Allowed
            | ToolStage::Executing
            | ToolStage::Returned => return,
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
    fn after(step: ToolStep<'_>) -> Self {
        match step {
            ToolStep::Started | ToolStep::Patched(_) => Self::Started,
            ToolStep::Requested { .. } => Self::Requested,
            ToolStep::ApprovalRequested { .. } => Self::AwaitsApproval,
            ToolStep::ApprovalResolved { is_allowed: true } => Self::Allowed,
            ToolStep::ApprovalResolved { is_allowed: false } => Self::Denied,
            ToolStep::Executing { .. } => Self::Executing,
            ToolStep::ClientAsked { .. } => Self::AwaitsClient,
            ToolStep::ClientAnswered { status } => Self::Answered(status == tool_result::SUCCESS),
            ToolStep::Returned { .. } | ToolStep::Finished => Self::Returned,
        }
    }

    /// Whether such a step may come next.
    fn allows(self, step: ToolStep<'_>) -> bool {
        match step {
            ToolStep::Started
            | ToolStep::Patched(_)
            | ToolStep::Requested { .. }
            | ToolStep::Finished => self == Self::Started,
            ToolStep::ApprovalRequested { .. } => self == Self::Requested,
            ToolStep::ApprovalResolved { .. } => self == Self::AwaitsApproval,
            ToolStep::Executing { .. } => matches!(self, Self::Requested | Self::Allowed),
            ToolStep::ClientAsked { .. } => self == Self::Executing,
            ToolStep::ClientAnswered { .. } => self == Self::AwaitsClient,
            // A call may be refused, or its time may be up.
            ToolStep::Returned { .. } => matches!(
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
