//! Checks the life of the process that writes the stream: it writes `hello`, answers one or more
//! requests, and ends once.

use super::names::{Name, shown};
use super::outcome::needs_no_request;
use super::rule::{Report, Rule, Violation};
use super::session::check_hello;
use crate::protocol::command::Extension;
use crate::protocol::constants::{capability, code, done};
use crate::protocol::proto::rpc::rpc_line::Frame as Body;
use crate::protocol::proto::rpc::{DoneFrame, ErrorFrame, HelloFrame};
use std::sync::Arc;

/// The process that writes the stream.
#[derive(Clone, Debug, Default)]
pub(super) struct Process {
    mode: Mode,
    /// The capabilities in `hello`.
    words: Arc<[String]>,
    end: End,
    /// It has reported an internal error that ends it, and its run.
    pub(super) is_defective: bool,
    /// A request was answered that is neither a submit nor a snapshot.
    has_other_answers: bool,
    /// A client uses requests that the published contract doesn't have.
    uses_extensions: bool,
    /// An extension that `hello` does not announce was turned on by a request.
    pub(super) has_unannounced: bool,
    /// The states of tool servers come before the `done` of the first `enable`: what is wrong if that
    /// does not follow.
    unless_enabled: Option<Violation>,
}

/// The kind of process, from `hello`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Mode {
    /// There was no frame yet.
    #[default]
    Unknown,
    /// It reads requests.
    Stdin,
    /// It has one request, from the command line.
    OneShot(OneShot),
}

/// The progress of a process of one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OneShot {
    /// The snapshot before the run is expected.
    Begins,
    /// The snapshot before the run was written.
    Waits,
    Runs,
    /// The snapshot after the run is expected, unless it is turned off.
    Ended,
    /// The snapshot after the run was written.
    Reported,
}

/// How close the process is to its end.
#[derive(Clone, Debug, Default)]
enum End {
    #[default]
    Open,
    /// A `shutdown` was answered. Others may be too, and an error may end the process.
    ShutDown,
    /// The only request has its `done`. Only an error that ends the process may follow.
    Answered,
    /// A terminal error of this request was written.
    Terminal(Name),
    Over,
}

impl Process {
    /// Whether it reads requests, as far as is known.
    pub(super) fn reads_requests(&self) -> bool {
        self.mode == Mode::Stdin
    }

    /// `hello` comes first and once.
    pub(super) fn begin(&mut self, body: &Body, report: &mut Report) {
        match (self.mode, body) {
            (Mode::Unknown, Body::Hello(hello)) => self.hello(hello, report),
            (Mode::Unknown, _) => {
                report.add(Rule::HelloFirst, "the first frame is not hello");
                self.mode = Mode::Stdin;
            }
            (Mode::Stdin | Mode::OneShot(_), Body::Hello(hello)) => {
                report.add(Rule::HelloAgain, "a second hello; a process writes one");
                self.hello(hello, report);
            }
            (Mode::Stdin | Mode::OneShot(_), _) => {}
        }
    }

    /// `hello` answers no request.
    pub(super) fn check_request(&self, request: &str, body: &Body, report: &mut Report) {
        if matches!(body, Body::Hello(_)) && !request.is_empty() {
            let request = shown(request);
            report.add(Rule::HelloRequest, format!("hello has the requestId {request:?}"));
        }
    }

    fn hello(&mut self, hello: &HelloFrame, report: &mut Report) {
        check_hello(hello, report);
        self.words = hello.capabilities.as_slice().into();
        self.uses_extensions = self.words.iter().any(|word| Extension::named(word).is_some());
        let reads_requests = self.words.iter().any(|word| word == capability::STDIN_RPC);
        self.mode = if reads_requests { Mode::Stdin } else { Mode::OneShot(OneShot::Begins) };
    }

    /// An extension is on if `hello` announces it, or if a request has turned it on. The stream
    /// doesn't contain requests, but it contains their answers.
    pub(super) fn need_extension(&mut self, extension: &str, report: &mut Report) {
        // A submit with a schema turns on the events of the values, too.
        let by_request = match extension {
            capability::EXTRACT => Some(Extension::Structured),
            extension => Extension::named(extension),
        };
        let by_request = by_request.filter(|_| self.reads_requests());
        self.uses_extensions |= by_request.is_some();
        let is_announced = self.announces(extension);
        self.has_unannounced |= by_request.is_some() && !is_announced;
        if is_announced || by_request.is_some_and(|extension| self.may_be_on(extension)) {
            return;
        }
        let extension = shown(extension);
        let message = match by_request {
            None => format!("hello does not announce the extension {extension}"),
            Some(_) => format!(
                "hello does not announce the extension {extension}, and no request has been \
                 answered that can have turned it on"
            ),
        };
        let violation =
            Violation { line: report.line(), rule: Rule::UnannouncedExtension, message };
        if by_request == Some(Extension::ToolServers) {
            self.unless_enabled.get_or_insert(violation);
        } else {
            report.add_earlier(violation);
        }
    }

    /// Whether `hello` has the name of an extension.
    pub(super) fn announces(&self, extension: &str) -> bool {
        self.words.iter().any(|word| word == extension)
    }

    /// Reports the states of tool servers that came though no request has turned them on;
    /// `is_enabled`: this is the `done` of a request that can have.
    pub(super) fn settle_servers(&mut self, is_enabled: bool, report: &mut Report) {
        let violation = self.unless_enabled.take().filter(|_| !is_enabled);
        violation.into_iter().for_each(|violation| report.add_earlier(violation));
    }

    /// Whether a request can have turned the extension on by now.
    fn may_be_on(&self, extension: Extension) -> bool {
        match extension {
            // By the request that the event answers.
            Extension::Attachments
            | Extension::ClientTools
            | Extension::Compaction
            | Extension::Edit
            | Extension::History
            | Extension::Resources
            | Extension::Settings
            | Extension::Steer
            | Extension::Structured
            | Extension::SwitchModel
            | Extension::TargetedCancel => true,
            // By `enable`, or by an `approve` that came too early.
            Extension::Approvals
            | Extension::Heartbeats
            | Extension::Retries
            | Extension::Store
            | Extension::Timing
            | Extension::ToolProgress
            | Extension::ToolServers
            | Extension::Usage => self.has_other_answers,
        }
    }

    /// Records an answer that only the request of an extension has.
    pub(super) fn extension_used(&mut self) {
        self.uses_extensions = true;
    }

    /// Whether a `done` alone, during a run, must be the answer to a cancel of that run. Once a
    /// client uses extensions it may be that to an `approve`, or to a cancel of something else.
    pub(super) fn is_cancelled_by_done(&self) -> bool {
        !self.uses_extensions
    }

    /// Records an answer to a request that is neither a submit nor a snapshot.
    pub(super) fn other_answer(&mut self) {
        self.has_other_answers = true;
    }

    /// Checks which frames may come close to the end of the process.
    pub(super) fn check_end(&mut self, name: &Name, body: &Body, report: &mut Report) {
        match (&self.end, body) {
            (End::Open, _) => {}
            (End::ShutDown, Body::Done(done)) if done.status == done::SHUTDOWN => {}
            (End::ShutDown | End::Answered, Body::Error(error)) if error.terminal => {}
            (End::Terminal(of), Body::Done(_)) if of == name => self.end = End::Over,
            (End::Terminal(_), _) => {
                let message = "a frame other than its done after a terminal error";
                report.add(Rule::AfterTerminal, message);
            }
            (End::ShutDown | End::Answered | End::Over, _) => {
                report.add(Rule::AfterEnd, "a frame after the end of the process");
            }
        }
    }

    /// Whether it is the first snapshot of a process of one request.
    pub(super) fn begins_with(&self, body: &Body) -> bool {
        self.mode == Mode::OneShot(OneShot::Begins) && matches!(body, Body::Snapshot(_))
    }

    /// Checks the order of frames of a process of one request.
    pub(super) fn check_one_shot(&mut self, body: &Body, report: &mut Report) {
        let Mode::OneShot(stage) = self.mode else { return };
        let (next, wrong) = match (body, stage) {
            (Body::Hello(_), _) => return,
            (Body::Error(error), _) => {
                let wrong = "an error ends a process of one request, so it must be terminal";
                // A process that can't start writes no snapshot.
                let next = if stage == OneShot::Begins { OneShot::Waits } else { stage };
                (next, (!error.terminal).then_some(wrong))
            }
            (Body::Snapshot(_), OneShot::Begins) => (OneShot::Waits, None),
            (Body::Snapshot(_), OneShot::Ended) => (OneShot::Reported, None),
            (Body::Snapshot(_), OneShot::Waits | OneShot::Runs | OneShot::Reported) => {
                let wrong = "a process of one request writes a snapshot before its run and one \
                             after it, and no other";
                (stage, Some(wrong))
            }
            (Body::UiEvent(_) | Body::BackendEvent(_) | Body::Done(_), OneShot::Begins) => {
                (OneShot::Runs, Some("a process of one request begins with hello and a snapshot"))
            }
            (Body::UiEvent(_) | Body::BackendEvent(_), OneShot::Waits) => (OneShot::Runs, None),
            (Body::UiEvent(_) | Body::BackendEvent(_) | Body::Done(_), _) => return,
        };
        self.mode = Mode::OneShot(next);
        if let Some(wrong) = wrong {
            report.add(Rule::OneShotOrder, wrong);
        }
    }

    /// Its run, or one of them, has ended.
    pub(super) fn run_ended(&mut self) {
        if let Mode::OneShot(_) = self.mode {
            self.mode = Mode::OneShot(OneShot::Ended);
        }
    }

    /// An error that ends a server which reads requests names no request.
    pub(super) fn check_terminal(&self, request: &str, error: &ErrorFrame, report: &mut Report) {
        if !self.reads_requests() {
            return;
        }
        let ends_process = matches!(&*error.code, code::INTERRUPTED | code::STDIN_READ_FAILED);
        match (error.terminal, request.is_empty()) {
            // A defect ends the process in the middle of an answer.
            (true, false) if error.code != code::INTERNAL => {
                let message = "a terminal error of a server that reads requests names a request";
                report.add(Rule::ErrorState, message);
            }
            (false, true) if !needs_no_request(&error.code) && !ends_process => {
                report.add(Rule::NamelessFrame, "the error does not name its request");
            }
            (false, _) if ends_process => {
                let message = format!("{} ends the process, so it must be terminal", error.code);
                report.add(Rule::ErrorState, message);
            }
            (true | false, true | false) => {}
        }
    }

    /// The `done` without a request id after an unreadable line, or after a terminal
    /// error, never reports success.
    pub(super) fn check_nameless_done(&self, done: &DoneFrame, report: &mut Report) {
        if self.reads_requests() && matches!(&*done.status, done::OK | done::SHUTDOWN) {
            report.add(Rule::NamelessFrame, "the done does not name the request it ends");
        }
    }

    /// Records an error of the request `name`.
    pub(super) fn error(&mut self, name: &Name, error: &ErrorFrame) {
        if error.terminal {
            self.end = End::Terminal(name.clone());
            self.is_defective |= error.code == code::INTERNAL;
        }
    }

    /// Records the end of a request.
    pub(super) fn done(&mut self, done: &DoneFrame) {
        match (&self.end, self.mode) {
            (End::Open, _) if done.status == done::SHUTDOWN => self.end = End::ShutDown,
            (End::Open, Mode::OneShot(_)) => self.end = End::Answered,
            (End::Open | End::ShutDown | End::Answered | End::Terminal(_) | End::Over, _) => {}
        }
    }
}
