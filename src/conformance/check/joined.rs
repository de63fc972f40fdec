//! Checks a stream that begins when its conversation is under way, as that of a client that attaches to a node after
//! an event. Of a run whose beginning it does not have, each frame is checked, but not what follows what.

use super::fields::PROMPT_SUFFIX;
use super::line::Read;
use super::names::Name;
use super::rule::{Report, Rule};
use super::run_event::RunEvent;
use super::runs::Activity;
use super::{Checker, Conversation};
use crate::protocol::any::Any;
use crate::protocol::proto::rpc::rpc_line::Frame as Body;
use crate::protocol::proto::rpc::{SnapshotFrame, UiEventFrame};
use serde_json::{Map, Value};

/// Whether the frame reports that its prompt has joined the run of another request.
fn joins_run(body: &Body) -> bool {
    matches!(body, Body::UiEvent(event) if matches!(event.payload, Some(Any::SteeringAccepted(_))))
}

/// What such a stream has not seen begin.
#[derive(Clone, Debug, Default)]
pub(super) struct Joined {
    /// The request of the run that is under way, if the stream does not have its beginning.
    run: Option<Name>,
    /// How many such runs there were.
    runs: u64,
    /// The node has said why it ends the stream.
    is_over: bool,
}

/// Whether a line is the last one of a stream that a node ends early, which is no frame.
fn is_refusal(line: &[u8]) -> bool {
    let member = line.trim_ascii_start().strip_prefix(b"{").map(<[u8]>::trim_ascii_start);
    member.is_some_and(|it| it.starts_with(br#""refused""#))
        && serde_json::from_slice::<Map<String, Value>>(line)
            .is_ok_and(|members| members.len() == 1)
}

impl Joined {
    /// What was not checked, for the summary.
    pub(super) fn note(&self) -> Option<String> {
        let runs = self.runs;
        let note = || {
            format!(
                "{runs} runs began before the stream; the order of their events was not checked"
            )
        };
        (runs > 0).then(note)
    }
}

impl Checker {
    /// A checker for a stream that may begin in the middle of a run, that may go on with a snapshot in the place of
    /// frames which it does not have, and that its reader may leave at any time.
    pub fn joined() -> Self {
        let mut checker = Self { joined: Some(Joined::default()), ..Self::default() };
        checker.runs.calls.forget_totals();
        // It may have turned on any extension.
        checker.process.other_answer();
        checker
    }

    /// Whether the node has ended the stream, by this line or by one before it.
    pub(super) fn has_ended(&mut self, line: &[u8], report: &mut Report) -> bool {
        let Some(joined) = &mut self.joined else { return false };
        if joined.is_over {
            report.add(Rule::AfterEnd, "a line after the one that says why the stream ends");
        }
        joined.is_over |= is_refusal(line);
        joined.is_over
    }

    /// Whether the node has said why it ends the stream.
    pub(super) fn is_refused(&self) -> bool {
        self.joined.as_ref().is_some_and(|joined| joined.is_over)
    }

    /// Checks the frame for itself alone, if it is of what began before the stream; else false.
    pub(super) fn check_joined(
        &mut self,
        (name, id): (&Name, &str),
        read: &Read,
        report: &mut Report,
    ) -> bool {
        let (Some(joined), Some(body)) = (&self.joined, &read.frame.frame) else { return false };
        if let (true, Body::Snapshot(snapshot)) = (id.is_empty(), body) {
            self.begin_again(snapshot, report);
            return false;
        }
        let begun_before = self.begun_before(name, body);
        if let Some(run) = &begun_before {
            let (run, runs) = (Some(run.clone()), joined.runs + 1);
            self.joined = Some(Joined { run, runs, ..*joined });
        }
        let run = begun_before.or_else(|| self.joined.as_ref()?.run.clone());
        let is_of_run = run.as_ref() == Some(name);
        let is_alone =
            is_of_run || run.is_some() && joins_run(body) || self.is_answer_to_what_was(body);
        if is_alone {
            self.check_partial(name, id, read, report);
            if let Body::UiEvent(UiEventFrame { payload: Some(payload), .. }) = body {
                self.conversation.forget(payload);
            }
        }
        if is_of_run && matches!(body, Body::Done(_)) {
            self.joined.iter_mut().for_each(|joined| joined.run = None);
            self.runs.calls.forget_totals();
        }
        is_alone
    }

    /// The request of the run that the frame is an event of, if that is under way and the stream has not seen it begin.
    fn begun_before(&self, request: &Name, body: &Body) -> Option<Name> {
        if self.activity() != Activity::Idle || self.runs.has(request) {
            return None;
        }
        let Body::UiEvent(UiEventFrame { payload: Some(payload), .. }) = body else { return None };
        if let Any::SteeringAccepted(joined) = payload {
            return Some(self.namer.name(joined.target_request_id.trim()));
        }
        let event = RunEvent::of(payload);
        // The first prompt of a run begins it.
        let begins =
            matches!(event, RunEvent::PromptAccepted { id } if id.ends_with(PROMPT_SUFFIX));
        (!begins && !matches!(event, RunEvent::Other)).then(|| request.clone())
    }

    /// Whether the frame may answer a request whose events were all before the stream.
    fn is_answer_to_what_was(&self, body: &Body) -> bool {
        matches!(body, Body::Error(_) | Body::Done(_)) && !self.order.has_events()
    }

    /// A snapshot stands for everything before it.
    fn begin_again(&mut self, snapshot: &SnapshotFrame, report: &mut Report) {
        self.order.begin_again(snapshot, report);
        self.requests.begin_again();
        self.runs.begin_again();
        self.conversation = Conversation::default();
        self.is_compacting = false;
        self.joined.iter_mut().for_each(|joined| joined.run = None);
    }

    /// Whether a run goes on in which no call is under way, as far as the stream shows.
    pub(super) fn may_be_between_calls(&self) -> bool {
        let has_joined = self.joined.as_ref().is_some_and(|joined| joined.run.is_some());
        has_joined || self.runs.is_between_calls()
    }

    /// Whether a run is active, also if the stream does not have its beginning.
    pub(super) fn activity(&self) -> Activity {
        match self.joined.as_ref().is_some_and(|joined| joined.run.is_some()) {
            true => Activity::Running,
            false => self.runs.activity(),
        }
    }
}
