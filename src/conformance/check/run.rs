//! Checks the events of one run: their order, that everything opened is closed, and that text adds
//! up.

mod open;
mod tool;

use super::calls::{Calls, SessionCalls};
use super::identity::Identity;
use super::names::{Name, Namer, shown};
use super::rule::{Report, Rule};
use super::run_event::{RunEnd, RunEvent, SegmentEvent};
use super::text::Text;
use super::usage::call_usage;
use crate::protocol::constants::finish;
use tool::Tool;

/// A run, from its first event to its request's `done`.
#[derive(Clone, Debug)]
pub(super) struct Run {
    pub(super) request: Name,
    /// What its events repeat.
    pub(super) identity: Identity,
    /// A `done` alone came during it, as the answer to a cancel of the run would.
    pub(super) is_cancelled: bool,
    pub(super) calls: Calls,
    stage: RunStage,
    has_call: bool,
    /// The finish reason of its last call, as far as it was shown.
    reason: Option<Name>,
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

impl Run {
    /// A run whose first event is `event`.
    pub(super) fn begin(request: Name, event: &RunEvent<'_>, report: &mut Report) -> Self {
        let is_first = matches!(event, RunEvent::PromptAccepted { .. });
        if !is_first {
            let message = "a run begins with ChatUserMessageAccepted, not with this event";
            report.add(Rule::EventOrder, message);
        }
        // Continue in a state that makes later reports useful.
        let is_started = !is_first && !matches!(event, RunEvent::RunStarted);
        Self {
            request,
            identity: Identity::default(),
            is_cancelled: false,
            calls: Calls::default(),
            segment_end: None,
            expected_end: None,
            stage: if is_started { RunStage::Started } else { RunStage::Accepted },
            has_call: is_started && !matches!(event, RunEvent::CallStarted),
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

    /// The text so far of an open segment, or the arguments so far of an open tool call.
    pub(super) fn open_text(&self, open: &Name) -> Option<&Text> {
        let segments = self.segments.iter().map(|it| (&it.name, &it.text));
        let mut all = segments.chain(self.tools.iter().map(|it| (&it.name, &it.input)));
        all.find(|(name, _)| *name == open).map(|(_, text)| text)
    }

    /// Checks an event other than the run's first.
    pub(super) fn event(
        &mut self,
        event: RunEvent<'_>,
        session: &mut SessionCalls,
        namer: &Namer,
        report: &mut Report,
    ) {
        if let (RunStage::Ended(_), false) = (self.stage, matches!(event, RunEvent::Other)) {
            return report.add(Rule::EventOrder, "an event after the end of its run");
        }
        if !event.reports_on_call() {
            // A run may fail, or be stopped, between a summary and the call that is to answer.
            let is_answer = matches!(
                event,
                RunEvent::Rejected { .. } | RunEvent::RunEnded { end: RunEnd::Finished, .. }
            );
            self.calls.settle(is_answer, session, report);
        }
        match event {
            RunEvent::PromptAccepted { id } => self.join(namer.name(id), id, report),
            RunEvent::RunStarted => self.start(report),
            RunEvent::CallStarted => {
                self.start_call(report);
                self.calls.start(session);
            }
            RunEvent::CallUpdated { reason } => {
                self.need_call("ChatProviderCallMetadataUpdated", report);
                self.check_reason(reason, namer, report);
            }
            RunEvent::CallFinished { class, reason, usage } => {
                self.check_last_reason(reason, namer, report);
                self.finish_call(class, report);
                self.calls.finish(class, reason, call_usage(usage), namer);
            }
            RunEvent::Retried(retry) => self.calls.retry(retry, session, report),
            RunEvent::Truncated { class, reason } => {
                self.calls.truncated((class, reason), session, namer, report);
            }
            RunEvent::Timed { first_byte_ms, first_token_ms } => {
                self.calls.timed((first_byte_ms, first_token_ms), session, report);
            }
            RunEvent::Counted(totals) => self.calls.counted(totals, session, namer, report),
            RunEvent::Rejected { repair, repairs_max } => {
                let is_between = self.tools.is_empty();
                self.calls.rejected((repair, repairs_max), is_between, report);
            }
            RunEvent::Segment(id, event) => {
                if let SegmentEvent::Finished { reason, .. } = event {
                    self.check_reason(reason, namer, report);
                }
                self.calls.answer(report);
                self.segment(namer.name(id), event, report);
            }
            RunEvent::Tool(id, event) => {
                self.calls.answer(report);
                self.tool(namer.name(id), event, namer, report);
            }
            RunEvent::RunEnded { end, error } => {
                self.finish(end, report);
                self.calls.run_ended(end, error, report);
            }
            RunEvent::Other => {}
        }
    }

    fn start(&mut self, report: &mut Report) {
        if self.stage != RunStage::Accepted {
            report.add(Rule::EventOrder, "ChatRunStarted in a run that has started");
        }
        self.stage = RunStage::Started;
    }

    /// Whether the run goes on, and neither the model nor a tool is called.
    pub(super) fn is_between_calls(&self) -> bool {
        self.stage == RunStage::Started && !self.has_call && self.tools.is_empty()
    }

    /// Another prompt joins the run, at a boundary: no provider call and no tool is open.
    fn join(&mut self, name: Name, id: &str, report: &mut Report) {
        self.prompts += 1;
        let number = self.prompts;
        if !self.is_between_calls() {
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

    /// Whether a prompt has joined it whose SteeringAccepted is not the next event.
    pub(super) fn take_unreported_join(&mut self) -> bool {
        self.joined.take().is_some()
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
            Some(RunEnd::Stopped) => class == finish::CANCELLED,
            Some(end @ (RunEnd::Finished | RunEnd::Failed)) => class == end.as_str(),
        };
        if !is_right {
            let class = shown(class);
            let message =
                format!("a segment of the provider call was cut off, but its class is {class:?}");
            report.add(Rule::EndMismatch, message);
        }
        if class == finish::CANCELLED {
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
    }
}
