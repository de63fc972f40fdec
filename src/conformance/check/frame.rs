//! Checks each frame: whether its request may get it, and what it changes for those after it.

use super::Checker;
use super::attachments::check_attachments;
use super::conversation::SnapshotOf;
use super::entity::check_entities;
use super::fields::Fields;
use super::line::Read;
use super::names::Name;
use super::outcome::{RequestOutcome, check_error};
use super::rule::{Report, Rule};
use super::runs::{Activity, RunSeen};
use crate::protocol::any::Any;
use crate::protocol::constants::capability::EVENTS;
use crate::protocol::constants::{capability, code, done, extension_of};
use crate::protocol::proto::rpc::rpc_line::Frame as Body;
use crate::protocol::proto::rpc::{DoneFrame, SnapshotFrame};
use crate::protocol::wire;

impl Checker {
    pub(super) fn check_frame(&mut self, read: &Read, report: &mut Report) {
        let Some(body) = &read.frame.frame else { return };
        self.summary.frames += 1;
        if read.frame.version != wire::VERSION {
            let version = read.frame.version;
            report.add(Rule::WrongVersion, format!("version {version}, not {}", wire::VERSION));
        }
        self.process.begin(body, report);
        self.session.check(&read.frame.session_id, body, report);
        self.check_strange(&read.strange, report);
        let id = read.frame.request_id.trim();
        self.process.check_request(id, body, report);
        let name = self.namer.name(id);
        if let Body::Hello(hello) = body {
            let has = |word: &str| hello.capabilities.iter().any(|given| given == word);
            self.runs.calls.announced(has);
            self.runs.has_steering = has(capability::STEER);
            let mut words = hello.capabilities.iter();
            self.events = words.find_map(|word| Some(word.strip_prefix(EVENTS)?.to_owned()));
            return;
        }
        if self.events.is_some() {
            return self.check_partial(&name, id, read, report);
        }
        if self.check_joined((&name, id), read, report) {
            return;
        }
        self.process.check_end(&name, body, report);
        // A process of one request begins with it, and so does a stored conversation that goes on.
        let is_first_state = self.process.begins_with(body) || self.is_restored(id, body);
        let is_of_process = is_of_process(body);
        if !is_of_process {
            self.process.check_one_shot(body, report);
        }
        if !(is_of_process && id.is_empty() || matches!(body, Body::Done(_))) {
            self.process.settle_servers(false, report);
        }
        if !self.is_expected(&name, id, body, report) {
            return;
        }
        // The first frames of a process of one request belong to no request.
        if !((is_first_state || is_of_process) && id.is_empty()) {
            self.requests.see(&name, self.summary.lines);
        }
        self.body(&name, id.is_empty(), body, read, report);
    }

    fn body(
        &mut self,
        name: &Name,
        is_nameless: bool,
        body: &Body,
        read: &Read,
        report: &mut Report,
    ) {
        if !self.process.is_cancelled_by_done() {
            self.runs.forget_cancels();
        }
        match body {
            Body::Hello(_) => {}
            Body::Snapshot(frame) => self.snapshot(name, frame, read, report),
            Body::UiEvent(frame) => self.event(name, frame, read, report),
            Body::BackendEvent(frame) => self.backend_event(frame, read.strange.first(), report),
            Body::Error(frame) => {
                let id = read.frame.request_id.trim();
                self.process.check_terminal(id, frame, report);
                let activity = match self.is_compacting {
                    true => Activity::Running,
                    false => self.activity(),
                };
                check_error(frame, (self.runs.seen(name), activity), report);
                if is_error_of_extension(&frame.code, activity) {
                    self.process.extension_used();
                }
                if self.requests.error(name, frame) {
                    let message = "a second error for the same request";
                    report.add(Rule::AnswerAgain, message);
                }
                self.process.error(name, frame);
            }
            Body::Done(frame) => return self.done(name, is_nameless, frame, report),
        }
        self.withdraws = false;
    }

    fn check_strange(&mut self, strange: &[String], report: &mut Report) {
        for name in strange {
            if let Some(extension) = extension_of(name) {
                self.process.need_extension(extension, report);
            }
        }
    }

    /// Whether the request may still get this frame.
    pub(super) fn is_expected(
        &mut self,
        name: &Name,
        id: &str,
        body: &Body,
        report: &mut Report,
    ) -> bool {
        if !self.requests.is_open(name) {
            let id = &name.shown;
            match body {
                Body::Done(_) => {
                    let message =
                        format!("request {id} already has a done, or two requests have this id");
                    report.add(Rule::DoneAgain, message);
                }
                Body::Hello(_)
                | Body::Snapshot(_)
                | Body::UiEvent(_)
                | Body::BackendEvent(_)
                | Body::Error(_) => {
                    let message =
                        format!("after the done of request {id}, or two requests have this id");
                    report.add(Rule::AfterDone, message);
                }
            }
            return false;
        }
        let is_of_request =
            matches!(body, Body::Snapshot(_) | Body::UiEvent(_) | Body::BackendEvent(_));
        let is_missing =
            id.is_empty() && is_of_request && !is_of_process(body) && !self.is_restored(id, body);
        if is_missing && self.process.reads_requests() {
            report.add(Rule::NamelessFrame, "the frame does not name its request");
            return false;
        }
        true
    }

    /// Whether it is the state of a stored conversation, before anything happened in this process.
    fn is_restored(&self, id: &str, body: &Body) -> bool {
        id.is_empty() && matches!(body, Body::Snapshot(_)) && self.order.is_new()
    }

    fn snapshot(&mut self, name: &Name, frame: &SnapshotFrame, read: &Read, report: &mut Report) {
        for payload in frame.entities.iter().filter_map(|entity| entity.payload.as_ref()) {
            self.check_extension(payload.name(), report);
            Fields::of(payload).check(&read.frame.session_id, report);
            check_attachments(payload, report);
        }
        if self.process.reads_requests() && self.runs.seen(name) == RunSeen::Live {
            report.add(Rule::EventOrder, "the snapshot of a run that has not ended");
        }
        if self.requests.has_error(name) {
            report.add(Rule::EventOrder, "a snapshot after the error of its request");
        }
        let is_again = match self.process.reads_requests() {
            true => self.requests.snapshot(name),
            // The first one of a single run may have its name as well.
            false => self.requests.snapshot(name) && self.order.is_snapshot_of(frame),
        };
        if is_again {
            report.add(Rule::AnswerAgain, "a second snapshot for the same request");
        }
        check_entities(frame, !read.strange.is_empty(), report);
        // Tokens of an earlier process may be counted.
        if !self.order.has_events() && frame.snapshot_ordinal > 0 {
            self.runs.calls.forget_totals();
        }
        // Between the calls of a run it may be compacted, which is shown to clients that have turned that on. The
        // call for a compaction outside of runs is shown to no client.
        let is_hidden = !self.process.announces(capability::COMPACTION);
        // The summaries before the first snapshot are of earlier processes, and turns are not the last of their events.
        let is_summarized =
            self.process.announces(capability::TURN_SUMMARIES) && !self.order.has_snapshot();
        let has_unseen =
            is_hidden && self.may_be_between_calls() || self.is_compacting || is_summarized;
        self.order.snapshot(frame, has_unseen, report);
        if read.strange.is_empty() {
            let of = if self.runs.has(name) {
                SnapshotOf::Run(name)
            } else if self.process.reads_requests() && !read.frame.request_id.trim().is_empty() {
                SnapshotOf::Request(self.pages.get(&name.key()))
            } else {
                SnapshotOf::Process
            };
            self.conversation.snapshot(frame, of, (&self.runs, &self.namer), report);
        }
    }

    fn done(&mut self, name: &Name, is_nameless: bool, frame: &DoneFrame, report: &mut Report) {
        if is_nameless {
            self.process.check_nameless_done(frame, report);
        }
        let run = self.runs.end(name);
        let activity = self.activity();
        let state = (run, activity, self.withdraws && !is_nameless);
        let is_asked_for_snapshot = self.pages.remove(&name.key()).is_some();
        let outcome = self.requests.done(name, is_nameless, state, frame, report);
        if is_asked_for_snapshot
            && frame.status == done::OK
            && outcome.as_ref().is_some_and(|outcome| !outcome.has_snapshot)
        {
            report.add(Rule::SnapshotLost, "the request asks for a snapshot, and got none");
        }
        let is_bare = outcome.as_ref().is_some_and(RequestOutcome::is_bare);
        let is_other = outcome.as_ref().is_some_and(RequestOutcome::is_other);
        let is_ok = frame.status == done::OK;
        self.process.settle_servers(is_bare && is_ok, report);
        match (is_bare, &*frame.status) {
            // The cancel of a submit that waits.
            (true, done::STOPPED) => self.process.extension_used(),
            (true, done::OK)
                if activity == Activity::Running && self.process.is_cancelled_by_done() =>
            {
                self.runs.cancel();
            }
            (true, done::OK) if activity == Activity::Idle => self.process.extension_used(),
            _ => {}
        }
        if is_other {
            self.process.other_answer();
        }
        let was_withdrawn = self.withdraws && is_bare && frame.status == done::STOPPED;
        // Without a run, a cancel may have withdrawn a prompt whose files were being read.
        self.withdraws = was_withdrawn || is_other && is_ok;
        self.process.done(frame);
    }
}

/// Whether the frame is about the process and not about a request.
fn is_of_process(body: &Body) -> bool {
    let payload = match body {
        Body::UiEvent(event) => event.payload.as_ref(),
        Body::BackendEvent(event) => event.payload.as_ref(),
        Body::Error(error) => return error.code == code::STORE_FAILED && !error.terminal,
        Body::Hello(_) | Body::Snapshot(_) | Body::Done(_) => None,
    };
    let is_of_process = matches!(
        payload,
        // The last one is in an export, before the snapshot.
        Some(Any::ToolServerChanged(_) | Any::StoreDegraded(_) | Any::TurnSummary(_))
    );
    // What a client of an earlier process chose, as the session goes on with it.
    let goes_on =
        matches!(payload, Some(Any::ModelSwitched(_) | Any::FrontendToolManifestUpdated(_)));
    is_of_process || goes_on
}

/// Whether only the request of an extension is answered so.
fn is_error_of_extension(code: &str, activity: Activity) -> bool {
    match code {
        code::UNKNOWN_EXTENSION
        | code::INVALID_TOOLS
        | code::UNKNOWN_TOOL_CALL
        | code::INVALID_SETTINGS
        | code::INVALID_ATTACHMENT
        | code::UNKNOWN_MESSAGE => true,
        // A cancel that names a request.
        code::NO_ACTIVE_REQUEST => activity == Activity::Running,
        _ => false,
    }
}
