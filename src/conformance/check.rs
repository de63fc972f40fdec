//! Reads a stream of the protocol, as a server writes it, and reports every violation of the
//! contract. Pure; memory is bounded, however long the stream is.
//!
//! [`Rule`] lists what is checked. A stream may end in the middle of its last line, as when its
//! writer was killed: that is noted, and open requests then need no `done`.

mod answers;
mod attachments;
mod calls;
mod change;
mod conversation;
mod entity;
mod extension;
mod fields;
mod hello;
mod identity;
mod lean;
mod line;
mod names;
mod order;
mod process;
mod requests;
mod rule;
mod run;
mod runs;
mod session;
mod step;
mod text;
mod usage;

pub(crate) use line::is_cut_off;
pub use rule::{Rule, Violation};

use crate::protocol::any::Any;
use crate::protocol::proto::chat::ChatStreamPatchMode;
use crate::protocol::proto::rpc::rpc_line::Frame as Body;
use crate::protocol::proto::rpc::{
    BackendEventFrame, DoneFrame, RpcLine, SnapshotFrame, UiEventFrame,
};
use crate::protocol::wire;
use crate::protocol::words::{capability, code, done};
use answers::{Answer, check_error};
use attachments::check_attachments;
use conversation::{Conversation, Position};
use entity::check_entities;
use extension::check_extension_fields;
use fields::{Context, Fields};
use lean::LeanPatches;
use line::{Read, Reader};
use names::{Name, Namer, check_event_name};
use order::Order;
use process::Process;
use requests::Requests;
use rule::Report;
use runs::{Activity, RunSeen, Runs};
use session::Session;
use std::collections::HashMap;
use step::Step;

/// Checks a stream line by line.
#[derive(Clone, Debug)]
pub struct Checker {
    reader: Reader,
    lean: LeanPatches,
    /// Messages of extensions: name → extension.
    extensions: HashMap<String, String>,
    namer: Namer,
    summary: Summary,
    process: Process,
    session: Session,
    requests: Requests,
    order: Order,
    runs: Runs,
    conversation: Conversation,
    /// The mode of the patches of segments.
    mode: Option<i32>,
    /// The client has declared tools.
    has_client_tools: bool,
    /// The last frame is the answer to a cancel that may have withdrawn submits.
    withdraws: bool,
}

/// Counts of what was read, and notes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Lines, including an incomplete last line.
    pub lines: u64,
    /// Lines that are frames.
    pub frames: u64,
    /// UI events among them.
    pub events: u64,
    /// Requests that have their `done`.
    pub requests: u64,
    /// Violations.
    pub violations: u64,
    /// Notes for people: an incomplete last line, and what was not checked.
    pub notes: Vec<String>,
}

/// The frame of a line, as a [`Checker`] reads it: what a reader of the protocol can understand, though
/// it may break the contract.
///
/// # Errors
/// If the line is no frame, why not.
pub(crate) fn read_frame(line: &[u8]) -> Result<RpcLine, String> {
    let mut report = Report::new(0);
    match Reader::new().read(line, &mut report) {
        Some(read) => Ok(read.frame),
        None => {
            let first = report.into_violations().into_iter().next();
            Err(first.map_or_else(String::new, |violation| violation.message))
        }
    }
}

impl Default for Checker {
    fn default() -> Self {
        Self::new()
    }
}

impl Checker {
    /// A checker for one stream.
    pub fn new() -> Self {
        let reader = Reader::new();
        let names = reader.types().payloads().filter_map(|full| {
            let name = full.rsplit('.').next()?.to_owned();
            Some((name, line::extension(full)?.to_owned()))
        });
        Self {
            extensions: names.collect(),
            reader,
            lean: LeanPatches::default(),
            namer: Namer::default(),
            summary: Summary::default(),
            process: Process::new(),
            session: Session::Unknown,
            requests: Requests::new(),
            order: Order::default(),
            runs: Runs::new(),
            conversation: Conversation::default(),
            mode: None,
            has_client_tools: false,
            withdraws: false,
        }
    }

    /// Checks the next line, without its line feed.
    pub fn line(&mut self, line: &[u8]) -> Vec<Violation> {
        let mut report = self.next_line();
        if let Some(mut read) = self.reader.read(line, &mut report) {
            self.lean.complete(&mut read.frame);
            self.frame(&read, &mut report);
        }
        self.finish_report(report)
    }

    /// Reports a line of more than `bytes_max` bytes, which was not kept.
    pub fn long_line(&mut self, bytes_max: usize) -> Vec<Violation> {
        let mut report = self.next_line();
        let message = format!("the line has more than {bytes_max} bytes and was not checked");
        report.add(Rule::LineTooLong, message);
        self.finish_report(report)
    }

    /// Ends the stream. `tail` is the text after the last line feed, if any: a whole line there is
    /// a violation, a part of one is noted. In a stream that is cut off, requests without a `done`
    /// are no violation.
    pub fn finish(&mut self, tail: Option<&[u8]>) -> Vec<Violation> {
        let tail = tail.filter(|tail| !tail.is_empty());
        let is_cut = tail.is_some_and(line::is_cut_off);
        let mut violations = match tail {
            None => Vec::new(),
            Some(tail) if is_cut => {
                self.summary.lines += 1;
                let (line, bytes) = (self.summary.lines, tail.len());
                self.note(format!("line {line} is cut off after {bytes} bytes"));
                Vec::new()
            }
            Some(tail) => self.last_line(tail),
        };
        violations.extend(self.last_words(is_cut));
        violations
    }

    /// Counts and notes so far.
    pub fn summary(&self) -> Summary {
        let mut summary = self.summary.clone();
        summary.requests = self.requests.done;
        summary.notes.extend(self.requests.notes());
        summary.notes.extend(self.conversation.note());
        summary
    }

    fn next_line(&mut self) -> Report {
        self.summary.lines += 1;
        Report::new(self.summary.lines)
    }

    fn finish_report(&mut self, report: Report) -> Vec<Violation> {
        let violations = report.into_violations();
        self.summary.violations += violations.len() as u64;
        violations
    }

    fn note(&mut self, note: String) {
        self.summary.notes.push(note);
    }

    fn last_line(&mut self, tail: &[u8]) -> Vec<Violation> {
        let mut violations = self.line(tail);
        let mut report = Report::new(self.summary.lines);
        report.add(Rule::NoLineFeed, "the last line has no line feed");
        violations.extend(self.finish_report(report));
        violations
    }

    fn last_words(&mut self, is_cut: bool) -> Vec<Violation> {
        let mut report = Report::new(self.summary.lines);
        // A server that is killed while it writes its first frame has written none.
        if self.summary.frames == 0 {
            report.add(Rule::HelloFirst, "the stream has no frame; it must begin with hello");
        }
        let mut violations = self.finish_report(report);
        let open = self.requests.open();
        if is_cut || self.process.is_defective {
            if !open.is_empty() {
                let count = open.len();
                self.note(format!("{count} requests were open when the stream ended early"));
            }
            return violations;
        }
        let unfinished = open.into_iter().map(|(line, id)| Violation {
            line,
            rule: Rule::UnfinishedRequest,
            message: match id {
                "" => "a frame without a requestId is not followed by its done".to_owned(),
                id => format!("request {id}, first answered here, has no done"),
            },
        });
        let unfinished: Vec<_> = unfinished.collect();
        self.summary.violations += unfinished.len() as u64;
        violations.extend(unfinished);
        violations
    }

    fn frame(&mut self, read: &Read, report: &mut Report) {
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
            self.runs.calls.announced(has(capability::RETRIES), has(capability::USAGE));
            return;
        }
        self.process.check_end(&name, body, report);
        // A process of one request begins with it, and so does a stored conversation that goes on.
        let is_first_state = self.process.begins_with(body) || self.is_restored(id, body);
        let is_of_process = is_of_process(body);
        if !is_of_process {
            self.process.check_one_shot(body, report);
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
                let activity = self.runs.activity();
                check_error(frame, (self.runs.seen(name), activity), report);
                if is_error_of_extension(&frame.code, activity) {
                    self.process.extension_used();
                }
                self.requests.error(name, frame);
                self.process.error(name, frame);
            }
            Body::Done(frame) => return self.done(name, is_nameless, frame, report),
        }
        self.withdraws = false;
    }

    /// A prompt that joins the run of another request. Its event is of both.
    fn steered(&mut self, name: &Name, payload: &Any, report: &mut Report) -> Option<Name> {
        let Any::SteeringAccepted(joined) = payload else { return None };
        let message = self.namer.name(&joined.message_id);
        let target = self.namer.name(joined.target_request_id.trim());
        self.runs.steered(name, (&message, &target), report);
        Some(target)
    }

    /// Another model answers from the next submit on: not in the middle of a run.
    fn check_switch(&self, payload: &Any, report: &mut Report) {
        if let Any::ModelSwitched(_) = payload
            && self.runs.activity() == Activity::Running
        {
            report.add(Rule::EventOrder, "ModelSwitched while a run is under way");
        }
    }

    /// What is between the client and its tools.
    fn check_client_tools(&mut self, payload: &Any, report: &mut Report) {
        if let Any::FrontendToolManifestUpdated(_) = payload {
            self.has_client_tools = true;
        }
        if let Any::FrontendToolCallRequested(_) = payload
            && !self.has_client_tools
        {
            let message = "FrontendToolCallRequested before the client has declared tools";
            report.add(Rule::EventOrder, message);
        }
    }

    fn check_strange(&mut self, strange: &[String], report: &mut Report) {
        for name in strange {
            if let Some(extension) = line::extension(name) {
                self.process.need_extension(extension, report);
            }
        }
    }

    fn check_extension(&mut self, payload: &str, report: &mut Report) -> bool {
        let extension = self.extensions.get(payload);
        if let Some(extension) = extension {
            self.process.need_extension(extension, report);
        }
        extension.is_some()
    }

    /// Whether the request may still get this frame.
    fn is_expected(&mut self, name: &Name, id: &str, body: &Body, report: &mut Report) -> bool {
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
        let context = self.context(read);
        for payload in frame.entities.iter().filter_map(|entity| entity.payload.as_ref()) {
            self.check_extension(payload.name(), report);
            Fields::of(payload).check(context, report);
            check_attachments(payload, report);
        }
        if self.process.reads_requests() && self.runs.seen(name) == RunSeen::Live {
            report.add(Rule::EventOrder, "the snapshot of a run that has not ended");
        }
        self.requests.snapshot(name);
        check_entities(frame, !read.strange.is_empty(), report);
        // Tokens of an earlier process may be counted.
        if !self.order.has_events() && !frame.entities.is_empty() {
            self.runs.calls.forget_totals();
        }
        self.order.snapshot(frame, report);
        if read.strange.is_empty() {
            let run = Some(name).filter(|name| self.runs.has(name));
            self.conversation.snapshot(frame, run, (&self.runs, &self.namer), report);
        }
    }

    fn context<'a>(&self, read: &'a Read) -> Context<'a> {
        Context { session: &read.frame.session_id }
    }

    fn event(&mut self, name: &Name, frame: &UiEventFrame, read: &Read, report: &mut Report) {
        self.summary.events += 1;
        let (payload, strange) = (frame.payload.as_ref(), read.strange.first());
        let payload_name = payload.map_or("", |payload| payload.name());
        check_event_name(&frame.name, payload_name, strange, report);
        let is_extension = self.check_extension(payload_name, report) || strange.is_some();
        let is_of_two = matches!(payload, Some(Any::SteeringAccepted(_)));
        self.order.event(frame.ordinal, name, &frame.name, (is_extension, is_of_two), report);
        let Some(payload) = payload else { return };
        check_extension_fields(payload, report);
        check_attachments(payload, report);
        self.check_switch(payload, report);
        self.check_client_tools(payload, report);
        let target = self.steered(name, payload, report);
        let step = Step::of(payload);
        if let Step::RunEnded { .. } = step {
            self.process.run_ended();
        }
        self.runs.step(name, step, &self.namer, report);
        if !self.runs.has(name) {
            self.requests.event(name);
        }
        let fields = Fields::of(payload);
        fields.check(self.context(read), report);
        self.check_mode(&fields, report);
        self.runs.identify(target.as_ref().unwrap_or(name), &fields, &self.namer, report);
        let at = Position { request: name, ordinal: frame.ordinal, line: report.line() };
        self.conversation.event(at, payload, &fields);
    }

    /// The mode of patches is an option of the process. Patches that replace text may be among
    /// them.
    fn check_mode(&mut self, fields: &Fields<'_>, report: &mut Report) {
        let is_fixed = |mode: &i32| {
            [ChatStreamPatchMode::Append, ChatStreamPatchMode::Snapshot]
                .map(i32::from)
                .contains(mode)
        };
        let Some(mode) = fields.segment_mode().filter(is_fixed) else { return };
        if self.mode.is_some_and(|known| known != mode) {
            report.add(Rule::PatchMode, "the mode differs from that of the earlier patches");
        }
        self.mode = Some(mode);
    }

    fn backend_event(
        &mut self,
        frame: &BackendEventFrame,
        strange: Option<&String>,
        report: &mut Report,
    ) {
        let payload = frame.payload.as_ref().map_or("", |payload| payload.name());
        check_event_name(&frame.name, payload, strange, report);
        self.check_extension(payload, report);
        self.order.backend_event(frame.ordinal, report);
    }

    fn done(&mut self, name: &Name, is_nameless: bool, frame: &DoneFrame, report: &mut Report) {
        if is_nameless {
            self.process.check_nameless_done(frame, report);
        }
        let run = self.runs.end(name);
        let activity = self.runs.activity();
        let state = (run, activity, self.withdraws && !is_nameless);
        let answer = self.requests.done(name, is_nameless, state, frame, report);
        let is_bare = answer.as_ref().is_some_and(Answer::is_bare);
        let is_other = answer.as_ref().is_some_and(Answer::is_other);
        let is_ok = frame.status == done::OK;
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
        self.withdraws = was_withdrawn || is_other && is_ok && activity == Activity::Running;
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
    matches!(payload, Some(Any::ToolServerChanged(_) | Any::StoreDegraded(_)))
}

/// Whether only the request of an extension is answered so.
fn is_error_of_extension(code: &str, activity: Activity) -> bool {
    match code {
        code::UNKNOWN_EXTENSION
        | code::INVALID_TOOLS
        | code::UNKNOWN_TOOL_CALL
        | code::INVALID_SETTINGS
        | code::INVALID_ATTACHMENT => true,
        // A cancel that names a request.
        code::NO_ACTIVE_REQUEST => activity == Activity::Running,
        _ => false,
    }
}

#[cfg(test)]
mod tests;
