//! Reads a stream of the protocol, as a server writes it, and reports every violation of the
//! contract. Pure; memory is bounded, however long the stream is.
//!
//! [`Rule`] lists what is checked. A stream may end in the middle of its last line, as when its
//! writer was killed: that is noted, and open requests then need no `done`.

mod attachments;
mod calls;
mod change;
mod conversation;
mod entity;
mod events;
mod extension;
mod fields;
mod frame;
mod identity;
mod joined;
mod lean;
mod line;
mod names;
mod order;
mod outcome;
mod partial;
mod process;
mod requests;
mod rule;
mod run;
mod run_event;
mod runs;
mod session;
mod text;
mod usage;

pub(crate) use line::is_cut_off;
pub use rule::{Rule, Violation};

use crate::protocol::any::Any;
use crate::protocol::command::Page;
use crate::protocol::constants::extension_of;
use crate::protocol::proto::rpc::RpcLine;
use crate::protocol::proto::rpc::rpc_line::Frame as Body;
use conversation::Conversation;
use joined::Joined;
use lean::LeanPatches;
use line::{Read, TYPES};
use names::Namer;
use order::Order;
use process::Process;
use requests::Requests;
use rule::Report;
use runs::Runs;
use session::Session;
use std::collections::HashMap;
use std::sync::LazyLock;

/// Messages of extensions: name → extension.
static EXTENSIONS: LazyLock<HashMap<&'static str, &'static str>> = LazyLock::new(|| {
    let names =
        TYPES.payloads().filter_map(|full| Some((full.rsplit('.').next()?, extension_of(full)?)));
    names.collect()
});

/// Checks a stream line by line.
#[derive(Clone, Debug, Default)]
pub struct Checker {
    /// The stream may begin when its conversation is under way.
    joined: Option<Joined>,
    lean: LeanPatches,
    namer: Namer,
    summary: Summary,
    process: Process,
    session: Session,
    requests: Requests,
    order: Order,
    runs: Runs,
    conversation: Conversation,
    /// Parts that requests without their `done` ask for, as far as they are known.
    pages: HashMap<u64, Page>,
    /// The mode of the patches of segments.
    mode: Option<i32>,
    /// The events that are written, if `hello` announces that these are not all.
    events: Option<String>,
    /// A request that is no run has the conversation compacted.
    is_compacting: bool,
    /// The client has declared tools.
    has_client_tools: bool,
    /// The last frame is the answer to a cancel that may have withdrawn submits.
    withdraws: bool,
}

/// Counts of lines and frames, and notes.
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
    line::read(line, &mut report).map(|read| read.frame).ok_or_else(|| {
        let first = report.into_violations().into_iter().next();
        first.map_or_else(String::new, |violation| violation.message)
    })
}

impl Checker {
    /// A checker for one stream.
    pub fn new() -> Self {
        Self::default()
    }

    /// Checks the next line, without its line feed.
    pub fn line(&mut self, line: &[u8]) -> Vec<Violation> {
        let mut report = self.next_line();
        if !self.has_ended(line, &mut report)
            && let Some(mut read) = line::read(line, &mut report)
        {
            self.lean.complete(&mut read.frame);
            self.check_frame(&read, &mut report);
        }
        self.finish_report(report)
    }

    /// Checks the next frame, where the frames are not written as lines.
    pub fn frame(&mut self, frame: RpcLine) -> Vec<Violation> {
        let mut report = self.next_line();
        let mut read = Read { frame: whole(frame), strange: Vec::new() };
        self.lean.complete(&mut read.frame);
        self.check_frame(&read, &mut report);
        self.finish_report(report)
    }

    /// Tells which part of the conversation the request asks for. The stream alone does not show it, so
    /// without this call the snapshot of a request may be any part.
    pub fn asked(&mut self, request: &str, page: Page) {
        self.pages.insert(self.namer.name(request.trim()).key(), page);
    }

    /// Reports a line of more than `bytes_max` bytes, which was not buffered.
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
        summary.notes.extend(self.runs.notes());
        summary.notes.extend(self.conversation.notes());
        summary.notes.extend(self.events.as_deref().map(partial::note));
        summary.notes.extend(self.joined.as_ref().and_then(Joined::note));
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
        if self.summary.frames == 0 && !self.is_refused() {
            report.add(Rule::HelloFirst, "the stream has no frame; it must begin with hello");
        }
        if !is_cut {
            self.process.settle_servers(false, &mut report);
        }
        let mut violations = self.finish_report(report);
        let open = self.requests.open();
        if is_cut || self.process.is_defective || self.joined.is_some() {
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
}

/// The frame with copies of the texts that it shares with others.
fn whole(mut frame: RpcLine) -> RpcLine {
    let make_whole = |payload: &mut Option<Any>| *payload = payload.take().map(Any::into_whole);
    match &mut frame.frame {
        Some(Body::UiEvent(event)) => make_whole(&mut event.payload),
        Some(Body::BackendEvent(event)) => make_whole(&mut event.payload),
        Some(Body::Snapshot(it)) => {
            it.entities.iter_mut().for_each(|it| make_whole(&mut it.payload))
        }
        Some(Body::Hello(_) | Body::Error(_) | Body::Done(_)) | None => {}
    }
    frame
}

#[cfg(test)]
mod tests;
