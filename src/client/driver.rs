//! The task that owns the process: it reads frames, gives each to the request that it belongs to, has tools called, and
//! ends the process. What sends to it is the [`Link`](super::link::Link).

use super::builder::Builder;
use super::error::Error;
use super::event::{Event, Snapshot, read_frame};
use super::lines::{Line, Lines};
use super::link::{RESULT_OF, Shared, goodbye, line, lock, result_line};
use super::process::Process;
use super::request::Flight;
use super::tools;
use crate::protocol::any::Any;
use crate::protocol::constants::code;
use crate::protocol::error_text::with_detail;
use crate::protocol::proto::frontendtools::FrontendToolResultCommand;
use crate::protocol::proto::rpc::rpc_line::Frame;
use crate::protocol::proto::rpc::rpc_request_line::Request as Body;
use crate::protocol::proto::rpc::{CancelRequest, ErrorFrame, HelloFrame, RpcLine, UiEventFrame};
use crate::protocol::wire::PROTOCOL;
use semver::Version;
use std::collections::{HashMap, HashSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::AsyncReadExt;
use tokio::sync::{Notify, mpsc, oneshot, watch};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::timeout;

/// The oldest server that is taken.
const VERSION_MIN: &str = "0.1.0";

/// Bytes that are read at once.
const READ_BYTES: usize = 256 * 1024;

/// Characters of a line that is no frame which its error shows.
const EXCERPT_CHARS: usize = 200;

/// What the driver is to do.
#[derive(Debug)]
pub(super) enum Order {
    /// A request is written after this.
    Begin(Box<Flight>),
    /// Nobody waits for the run any more.
    Abandon(String),
    /// This run is stopped, or whichever is active: the next prompt waits for its end.
    Stop(Option<String>),
    /// Say when runs that were stopped, or that nobody waits for, have ended.
    Settle(oneshot::Sender<()>),
    /// End the process.
    Close,
}

/// See the module.
pub(super) struct Driver {
    options: Builder,
    process: Process,
    /// `None` once nothing more is written.
    lines: Option<mpsc::Sender<Vec<u8>>>,
    read: Lines,
    flights: HashMap<String, Flight>,
    /// Runs that nobody waits for any more, and that have not ended.
    abandoned: HashSet<String>,
    /// Those that were stopped.
    stopped: HashSet<String>,
    settling: Vec<oneshot::Sender<()>>,
    tasks: JoinSet<()>,
    /// The tasks of tool calls and approvals by their ids, each with the request of its run.
    calls: HashMap<String, (String, AbortHandle)>,
    begun: Option<oneshot::Sender<Result<(), Error>>>,
    shared: Arc<Mutex<Shared>>,
    flow: Arc<Notify>,
}

impl Driver {
    pub(super) fn new(
        options: Builder,
        (process, lines): (Process, mpsc::Sender<Vec<u8>>),
        begun: oneshot::Sender<Result<(), Error>>,
        (shared, flow): (Arc<Mutex<Shared>>, Arc<Notify>),
    ) -> Self {
        Self {
            read: Lines::new(options.line_bytes_max),
            options,
            process,
            lines: Some(lines),
            flights: HashMap::new(),
            abandoned: HashSet::new(),
            stopped: HashSet::new(),
            settling: Vec::new(),
            tasks: JoinSet::new(),
            calls: HashMap::new(),
            begun: Some(begun),
            shared,
            flow,
        }
    }

    pub(super) async fn run(
        mut self,
        mut orders: mpsc::UnboundedReceiver<Order>,
        over: watch::Sender<bool>,
    ) {
        let mut piece = vec![0; READ_BYTES];
        let failure = loop {
            let is_held = self.is_held_back();
            tokio::select! {
                biased;
                order = orders.recv() => match order {
                    Some(Order::Close) | None => break Error::Closed,
                    Some(order) => self.order(order),
                },
                () = self.flow.notified() => {}
                Some(_) = self.tasks.join_next() => {}
                read = self.process.stdout.read(&mut piece), if !is_held => match read {
                    Ok(bytes @ 1..) => {
                        if let Err(failure) = self.bytes(&piece[..bytes]) {
                            break failure;
                        }
                    }
                    Ok(0) | Err(_) => break Error::ProcessEnded { status: None, stderr: String::new() },
                },
            }
        };
        self.end(failure, &mut piece).await;
        over.send_replace(true);
    }

    /// Whether nothing is read, because a stream is behind and nobody waits for anything else. The end of a run may be
    /// waited for.
    fn is_held_back(&self) -> bool {
        let mut flights = self.flights.values();
        let is_waited_for = |flight: &Flight| !flight.is_streamed() || flight.is_starved();
        self.is_settled()
            && flights.any(Flight::is_behind)
            && !self.flights.values().any(is_waited_for)
    }

    fn order(&mut self, order: Order) {
        match order {
            Order::Begin(flight) => drop(self.flights.insert(flight.id.clone(), *flight)),
            Order::Abandon(id) => self.abandon(&id),
            Order::Stop(id) => {
                let is_meant = |flight: &&Flight| {
                    flight.is_run() && id.as_ref().is_none_or(|id| flight.id == *id)
                };
                let stopped = self.flights.values().filter(is_meant);
                self.stopped.extend(stopped.map(|flight| flight.id.clone()));
            }
            Order::Settle(settled) => self.settling.push(settled),
            // It ends the loop.
            Order::Close => {}
        }
        self.report_settled();
    }

    fn abandon(&mut self, id: &str) {
        let Some(flight) = self.flights.get_mut(id) else { return };
        flight.drop_events();
        if self.abandoned.insert(id.to_owned()) {
            let target_request_id = id.to_owned();
            self.write(Body::Cancel(CancelRequest { target_request_id, waiting: false }));
        }
    }

    /// Whether the runs that were stopped, or that nobody waits for any more, have ended.
    fn is_settled(&self) -> bool {
        self.abandoned.is_empty() && self.stopped.is_empty()
    }

    fn report_settled(&mut self) {
        if self.is_settled() {
            for settled in self.settling.drain(..) {
                settled.send(()).ok();
            }
        }
    }

    /// Writes a request whose answer nobody waits for.
    fn write(&mut self, body: Body) {
        let Some(lines) = self.lines.clone() else { return };
        if let Ok(line) = line("rs-own", body) {
            // The pipe may be full, and frames are read meanwhile.
            self.tasks.spawn(async move { drop(lines.send(line).await) });
        }
    }

    fn bytes(&mut self, mut piece: &[u8]) -> Result<(), Error> {
        while let Some(line) = self.read.next(&mut piece) {
            match line {
                Line::Whole(line) => self.line(&line)?,
                Line::Overlong(head) => self.overlong(&head),
            }
        }
        Ok(())
    }

    fn line(&mut self, line: &[u8]) -> Result<(), Error> {
        let is_no_frame = |why: String| {
            let excerpt: String =
                String::from_utf8_lossy(line).chars().take(EXCERPT_CHARS).collect();
            Error::Protocol(format!(
                "the process wrote a line that is no frame ({why}): {excerpt:?}"
            ))
        };
        let text = str::from_utf8(line).map_err(|_| is_no_frame("not UTF-8".into()))?;
        let frame = read_frame(text).map_err(is_no_frame)?;
        if self.begun.is_some() {
            return self.greet(frame);
        }
        self.frame(text, frame);
        self.report_settled();
        Ok(())
    }

    /// Takes the first frame.
    fn greet(&mut self, line: RpcLine) -> Result<(), Error> {
        let Some(Frame::Hello(HelloFrame { protocol, capabilities, .. })) = line.frame else {
            return Err(Error::Protocol("the process does not begin with `hello`".to_owned()));
        };
        if protocol != PROTOCOL {
            let text = format!("the process speaks {protocol}, and this library {PROTOCOL}");
            return Err(Error::Protocol(text));
        }
        let mut shared = lock(&self.shared);
        (shared.session, shared.capabilities) = (line.session_id, capabilities);
        let version = shared.capability("server-version").unwrap_or("(unknown)").to_owned();
        drop(shared);
        let least = Version::parse(VERSION_MIN).ok();
        let own = Version::parse(&version).ok();
        if own.is_none_or(|own| least.is_some_and(|least| own < least)) {
            return Err(Error::TooOld { version, least: VERSION_MIN });
        }
        if let Some(begun) = self.begun.take() {
            drop(begun.send(Ok(())));
        }
        Ok(())
    }

    fn frame(&mut self, text: &str, line: RpcLine) {
        let RpcLine { request_id: id, frame, session_id, .. } = line;
        match frame {
            Some(Frame::UiEvent(event)) => self.event(&id, text, event),
            Some(Frame::Snapshot(frame)) => {
                self.snapshot(&id, session_id, Snapshot::new(frame, text));
            }
            Some(Frame::Error(error)) => self.error(&id, error),
            Some(Frame::Done(done)) => self.done(&id, done.status),
            // A frame of a later version, or one that was not asked for.
            Some(Frame::Hello(_) | Frame::BackendEvent(_)) | None => {}
        }
    }

    fn snapshot(&mut self, id: &str, session: String, snapshot: Snapshot) {
        if let Some(flight) = self.flights.get_mut(id) {
            flight.snapshot = Some(snapshot);
        } else if id.is_empty() {
            let mut shared = lock(&self.shared);
            shared.session = session;
            shared.ordinal = shared.ordinal.max(snapshot.ordinal);
            shared.initial = Some(snapshot);
        }
    }

    fn error(&mut self, id: &str, error: ErrorFrame) {
        if error.terminal {
            lock(&self.shared).fatal = Some(error.clone());
        }
        match self.flights.get_mut(id) {
            Some(flight) => flight.fail(error.into()),
            None if id.is_empty() => self.notice(Err(error.into())),
            None => self.result_refused(id, &error),
        }
    }

    /// The server does not take the result of a tool: the model has to know, and the run would wait. A call that is not
    /// known does not wait any more.
    fn result_refused(&mut self, id: &str, ErrorFrame { code, message, detail, .. }: &ErrorFrame) {
        let Some(call) = id.strip_prefix(RESULT_OF) else { return };
        if code != code::UNKNOWN_TOOL_CALL {
            let command =
                FrontendToolResultCommand { tool_call_id: call.to_owned(), ..Default::default() };
            let why = with_detail(message, detail);
            let why = format!("the server does not take the result: {why}");
            self.write(Body::ToolResult(tools::failed(command, why)));
        }
    }

    fn done(&mut self, id: &str, status: String) {
        self.abandoned.remove(id);
        self.stopped.remove(id);
        for (_, (_, task)) in self.calls.extract_if(|_, (run, _)| run == id) {
            task.abort();
        }
        let Some(flight) = self.flights.remove(id) else { return };
        // One that was refused says nothing about the run that goes on.
        if flight.is_run() && flight.has_begun {
            lock(&self.shared).shown.clear();
        }
        flight.done(status);
    }

    fn event(&mut self, id: &str, text: &str, event: UiEventFrame) {
        let is_shown = self.flights.get(id).is_some_and(Flight::is_streamed);
        lock(&self.shared).note(event.ordinal, event.payload.as_ref(), is_shown);
        if !self.flights.contains_key(id) {
            if id.is_empty() {
                if let Some(Any::FrontendToolManifestUpdated(list)) = &event.payload {
                    lock(&self.shared).has_earlier_tools = !list.tools.is_empty();
                }
                self.notice(Ok(Event::new(event, text)));
            }
            return;
        }
        self.answer(id, event.payload.as_ref());
        let Some(flight) = self.flights.get_mut(id) else { return };
        if flight.has_notices() {
            flight.note(event.payload.as_ref());
            return self.notice(Ok(Event::new(event, text)));
        }
        let had_failed = flight.has_failed();
        flight.event(event, text);
        if flight.has_failed() && !had_failed {
            self.abandon(id);
        }
    }

    /// Has a tool called or a decision made, and drops those that nobody waits for any more.
    fn answer(&mut self, run: &str, payload: Option<&Any>) {
        let Some(lines) = &self.lines else { return };
        if let Some(Any::FrontendToolCallRequested(asked)) = payload {
            let tool = self.options.tools.iter().find(|it| it.name == asked.tool_name).cloned();
            let bytes_max = lock(&self.shared).request_bytes_max();
            let (call, asked, lines) = (asked.tool_call_id.clone(), asked.clone(), lines.clone());
            let work = async move {
                if let Some(line) = result_line(tools::call(tool, *asked).await, bytes_max) {
                    drop(lines.send(line).await);
                }
            };
            self.calls.insert(call, (run.to_owned(), self.tasks.spawn(work)));
        } else if let Some(Any::ToolApprovalRequested(asked)) = payload {
            let (approve, time) = (self.options.approve.clone(), self.options.approve_time);
            let call = approval_id(&asked.tool_call_id);
            let (asked, lines) = (asked.clone(), lines.clone());
            let work = async move {
                let decision = tools::decide(approve, *asked, time).await;
                if let Ok(line) = line("rs-approval", Body::Approve(decision)) {
                    drop(lines.send(line).await);
                }
            };
            self.calls.insert(call, (run.to_owned(), self.tasks.spawn(work)));
        } else if let Some(Any::ToolApprovalResolved(it)) = payload {
            self.stop(&approval_id(&it.tool_call_id));
        } else if let Some(Any::ChatToolResultReady(it)) = payload {
            self.stop(&it.tool_call_id);
        }
    }

    fn stop(&mut self, call: &str) {
        if let Some((_, task)) = self.calls.remove(call) {
            task.abort();
        }
    }

    fn notice(&self, notice: Result<Event, Error>) {
        if let Some(on_notice) = &self.options.on_notice {
            // A panic has been reported by then, and does not end the conversation.
            drop(catch_unwind(AssertUnwindSafe(|| on_notice(notice))));
        }
    }

    /// A line was too long: the requests that it may belong to fail.
    fn overlong(&mut self, head: &[u8]) {
        let head = String::from_utf8_lossy(head);
        let of = |id: &&String| head.contains(&format!("\"requestId\":\"{id}\""));
        let named: Vec<_> = self.flights.keys().filter(of).cloned().collect();
        let ids = if named.is_empty() { self.flights.keys().cloned().collect() } else { named };
        let bytes_max = self.options.line_bytes_max;
        for id in ids {
            if let Some(flight) = self.flights.get_mut(&id) {
                flight.fail(Error::TooLong(format!(
                    "the server wrote a line of more than {bytes_max} bytes"
                )));
                if flight.is_run() {
                    self.abandon(&id);
                }
            }
        }
    }

    /// Reads to the end of standard output, so that the process can write what it has, and end. After a close the runs
    /// that it stops have their frames there.
    async fn drain(&mut self, piece: &mut [u8], mut is_read: bool) {
        while let Ok(bytes @ 1..) = self.process.stdout.read(piece).await {
            is_read = is_read && self.bytes(&piece[..bytes]).is_ok();
        }
    }

    /// Ends the process, and everything that waits.
    async fn end(mut self, failure: Error, piece: &mut [u8]) {
        self.tasks.shutdown().await;
        let is_ended = matches!(failure, Error::ProcessEnded { .. });
        let is_closed = failure == Error::Closed;
        // After any other failure it writes what can't be read.
        let time = if is_closed || is_ended { self.options.close_time } else { Duration::ZERO };
        let goodbye = if is_closed { goodbye() } else { Vec::new() };
        let lines = self.lines.take();
        let writing = async {
            if let Some(lines) = lines {
                // An empty line closes the pipe.
                for line in goodbye.into_iter().chain([Vec::new()]) {
                    drop(lines.send(line).await);
                }
            }
        };
        let ending = async { tokio::join!(writing, self.drain(piece, is_closed)) };
        let is_drained = timeout(time, ending).await.is_ok();
        let status = self.process.end(if is_drained { time } else { Duration::ZERO }).await;
        let failure = match is_ended {
            true => Error::ProcessEnded { status, stderr: self.process.last_words().await },
            false => failure,
        };
        lock(&self.shared).failure = Some(failure.clone());
        if let Some(begun) = self.begun.take() {
            drop(begun.send(Err(failure.clone())));
        }
        for (_, flight) in self.flights.drain() {
            flight.end(failure.clone());
        }
    }
}

fn approval_id(call: &str) -> String {
    format!("{call}:approval")
}
