//! The loop: reads messages, gives each session its own, and writes what they have to say, each in its
//! turn.

use super::connection::{Action, Connection, ToOpen};
use super::dialog::{Beginning, How};
use super::jsonrpc::{self, BadMessage, Id, Message, RpcError};
use super::schema::ListParams;
use super::services::{Opening, Services};
use super::session::{Mail, Outlet, Packet, Request, Rest, Session};
use super::sessions;
use crate::protocol::id::SessionId;
use crate::protocol::wire::Frame;
use crate::session::{ExitCode, Signal, Uptime};
use crate::support::fail_point::Faults;
use crate::support::sleep_until;
use crate::support::threads;
use crate::transport::{
    Codec, Finish, Incoming, Outgoing, RawLine, Received, Signals, Stdio, Unencodable,
};
use serde_json::Value;
use std::collections::BTreeMap;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::mpsc::{self, error::SendError};
use tokio::task::{JoinSet, yield_now};
use tokio::time::Instant;

/// Batches of sessions that wait to be queued for the client.
const PACKETS_MAX: usize = 16;

/// Bytes that wait in all sessions, from which on no more messages are read.
const BACKLOG_BYTES_MAX: usize = 8 * 1024 * 1024;

/// How long the sessions may take to end with the process.
const ENDING_MAX: Duration = Duration::from_secs(10);

/// How long they may take after a signal.
const INTERRUPTED_MAX: Duration = Duration::from_secs(6);

/// Serves the client, from its first message to the end of the process.
pub(crate) async fn serve(stdio: Stdio, signals: &mut Signals, services: Services) -> Finish {
    let Stdio { input, output } = stdio;
    let (outgoing, unwatched) = Outgoing::start(output, Lines, Vec::new(), &Faults::default());
    let incoming = Incoming::start(input, services.line_bytes_max);
    let incoming = match (incoming, unwatched) {
        (Ok(incoming), None) => incoming,
        (Err(error), _) | (Ok(_), Some(error)) => {
            let complaint = Some(error.to_string());
            return Finish { status: ExitCode::Internal.number(), complaint };
        }
    };
    let mut shell = Box::new(Shell {
        signals,
        incoming,
        outgoing,
        connection: Connection::new(services.library.is_some()),
        services: Arc::new(services),
        mailboxes: BTreeMap::new(),
        tasks: JoinSet::new(),
        numbers: BTreeMap::new(),
        packets: mpsc::channel(PACKETS_MAX),
        backlog: Arc::default(),
        replies: mpsc::unbounded_channel(),
        awaited_replies: 0,
        late: BTreeMap::new(),
        deletions: BTreeMap::new(),
        ending: None,
    });
    let code = shell.run().await;
    let status = code.number();
    tracing::info!(status, "the process ends");
    Finish { status, complaint: None }
}

/// Messages are encoded where they are made, and stand in the outbox as lines.
#[derive(Debug)]
struct Lines;

impl Codec for Lines {
    fn frame(&mut self, _: Uptime, _: &Frame, _: &mut Vec<u8>) -> Result<(), Unencodable> {
        Err(Unencodable)
    }

    fn end(&mut self, _: Uptime, _: ExitCode, _: &mut Vec<u8>) -> Result<(), Unencodable> {
        Ok(())
    }

    fn is_stateless(&self) -> bool {
        true
    }

    fn text(&mut self, _: &str, _: &mut Vec<u8>) {}
}

/// An answer that a thread has found, and the requests that it is for.
type Reply = (Vec<Id>, Result<Value, RpcError>);

struct Shell<'a> {
    signals: &'a mut Signals,
    incoming: Incoming,
    outgoing: Outgoing<Lines>,
    connection: Connection,
    services: Arc<Services>,
    mailboxes: BTreeMap<i64, mpsc::UnboundedSender<Mail>>,
    tasks: JoinSet<()>,
    /// The session of each task.
    numbers: BTreeMap<tokio::task::Id, i64>,
    packets: (mpsc::Sender<Packet>, mpsc::Receiver<Packet>),
    backlog: Arc<AtomicUsize>,
    replies: (mpsc::UnboundedSender<Reply>, mpsc::UnboundedReceiver<Reply>),
    /// Threads that have not replied yet.
    awaited_replies: usize,
    /// Requests for sessions whose end is not reported yet.
    late: BTreeMap<i64, Vec<Request>>,
    /// Sessions that are deleted once they have ended, with the requests that want it: a client may repeat one.
    deletions: BTreeMap<i64, (SessionId, Vec<Id>)>,
    ending: Option<Ending>,
}

/// The process is to end: how, and when at the latest.
#[derive(Clone, Copy)]
struct Ending {
    code: ExitCode,
    until: Instant,
    is_aborted: bool,
}

impl Shell<'_> {
    async fn run(&mut self) -> ExitCode {
        loop {
            self.outgoing.flush();
            if let Some(code) = self.is_over() {
                return code;
            }
            let takes_lines = self.takes_lines();
            if takes_lines && let Some(line) = self.incoming.pop() {
                self.line(line);
                if self.incoming.owes_engine_a_turn(None) {
                    self.incoming.engine_had_its_turn();
                    yield_now().await;
                }
                continue;
            }
            self.wait(takes_lines).await;
        }
    }

    fn takes_lines(&self) -> bool {
        let has_room = self.outgoing.outbox.has_room_for_engine();
        self.ending.is_none()
            && has_room
            && self.backlog.load(Ordering::Relaxed) < BACKLOG_BYTES_MAX
    }

    fn is_over(&self) -> Option<ExitCode> {
        let Ending { code, until, is_aborted } = self.ending?;
        let is_said = self.packets.1.is_empty() && self.outgoing.is_flushed();
        let has_ended = self.tasks.is_empty() && self.awaited_replies == 0 && is_said;
        (has_ended || is_aborted || until <= Instant::now()).then_some(code)
    }

    async fn wait(&mut self, takes_lines: bool) {
        let has_room = self.outgoing.has_room_for_engine();
        let awaits = self.outgoing.awaits_reader().map(Instant::from);
        let until = self.ending.map(|ending| ending.until);
        let wake_at = [awaits, until].into_iter().flatten().min();
        tokio::select! {
            biased;
            signal = self.signals.next() => self.interrupted(signal),
            () = sleep_until(wake_at) => {}
            written = self.outgoing.written() => {
                if let Err(error) = written {
                    self.reader_gone(&error);
                }
            }
            () = self.incoming.read(None), if takes_lines => {}
            Some(packet) = self.packets.1.recv(), if has_room => self.packet(packet),
            Some((ids, outcome)) = self.replies.1.recv() => {
                self.awaited_replies -= 1;
                self.respond_all(&ids, &outcome);
            }
            Some(ended) = self.tasks.join_next_with_id() => match ended {
                Ok((task, ())) => self.ended(task, false),
                Err(error) => self.ended(error.id(), true),
            },
        }
    }

    fn line(&mut self, line: Received) {
        let read = match line {
            Received::Line(RawLine::Whole(line)) => jsonrpc::read(&line),
            Received::Line(RawLine::TooLong { start, end, bytes_max }) => {
                jsonrpc::too_long(&start, &end, bytes_max)
            }
            Received::Ended => return self.end(None, ExitCode::Ok, ENDING_MAX),
            Received::Failed(error) => {
                tracing::error!(%error, "standard input could not be read; the process ends");
                return self.end(None, ExitCode::InputFailed, ENDING_MAX);
            }
        };
        match read {
            Ok(message) => self.message(message),
            Err(BadMessage { id, error }) => self.respond(&id, Err(error)),
        }
    }

    fn act(&mut self, action: Action) {
        match action {
            Action::Respond(id, outcome) => self.respond(&id, outcome),
            Action::Open(to_open) => self.open(*to_open),
            Action::Pass(number, mail) => self.pass(number, mail),
            Action::PassAll(mail) => {
                for mailbox in self.mailboxes.values() {
                    // One that has ended is about to be reported.
                    mailbox.send(mail.clone()).ok();
                }
            }
            Action::List(id, params) => self.list(id, params),
            Action::Delete(id, session) => match self.connection.open_session(&session) {
                Some(number) => {
                    let deletion = self.deletions.entry(number);
                    deletion.or_insert_with(|| (session, Vec::new())).1.push(id);
                    self.pass(number, Mail::End(None));
                }
                None => self.delete(vec![id], session),
            },
        }
    }

    fn pass(&mut self, number: i64, mail: Mail) {
        let Some(mailbox) = self.mailboxes.get(&number) else { return };
        let sent = mailbox.send(mail);
        if let Err(SendError(Mail::Request(request) | Mail::Reopen(request))) = sent {
            self.late.entry(number).or_default().push(request);
        }
    }

    fn open(&mut self, to_open: ToOpen) {
        let ToOpen { request, how, number, session, folder, servers, notices } = to_open;
        let beginning = Beginning {
            session: session.as_str().to_owned(),
            number,
            tag: sessions::fresh_tag(),
            client: self.connection.client,
            folder: folder.clone(),
            request,
            how,
            notices,
        };
        let goes_on = how != How::New;
        let opening = Opening { session, goes_on, folder, servers };
        let outlet = Outlet { packets: self.packets.0.clone(), backlog: Arc::clone(&self.backlog) };
        let (mailbox, mail) = mpsc::unbounded_channel();
        let session = Session::new(beginning, opening, Arc::clone(&self.services), mail, outlet);
        let task = self.tasks.spawn(session.hold());
        self.numbers.insert(task.id(), number);
        if self.ending.is_some() {
            mailbox.send(Mail::End(None)).ok();
        }
        self.mailboxes.insert(number, mailbox);
    }

    fn packet(&mut self, packet: Packet) {
        let Packet { number, batch, rest } = packet;
        self.append(&batch.lines);
        self.connection.answered(number, batch.answered);
        if let Rest::Nothing(late) = rest {
            self.forget(number, late);
        }
    }

    /// A session has ended; `is_defect`: by a panic.
    fn ended(&mut self, task: tokio::task::Id, is_defect: bool) {
        let Some(number) = self.numbers.remove(&task) else { return };
        if is_defect {
            self.forget(number, Vec::new());
        }
    }

    /// The session is not open any more; what it has not answered has an error, but for the requests that
    /// came too `late` for it.
    fn forget(&mut self, number: i64, mut late: Vec<Request>) {
        self.mailboxes.remove(&number);
        late.extend(self.late.remove(&number).unwrap_or_default());
        self.connection.answered(number, late.iter().map(|request| request.id.clone()));
        for id in self.connection.ended(number) {
            let why = "the session met a defect of this program and was ended; please report it";
            self.respond(&id, Err(RpcError::failed(why)));
        }
        if let Some((session, ids)) = self.deletions.remove(&number) {
            self.delete(ids, session);
        }
        for Request { id, method, params } in late {
            self.message(Message::Request { id, method, params });
        }
    }

    fn message(&mut self, message: Message) {
        for action in self.connection.message(message, sessions::fresh_id) {
            self.act(action);
        }
    }

    fn respond(&mut self, id: &Id, outcome: Result<Value, RpcError>) {
        let mut line = Vec::new();
        jsonrpc::response(id, &outcome, &mut line);
        self.append(&line);
    }

    fn respond_all(&mut self, ids: &[Id], outcome: &Result<Value, RpcError>) {
        for id in ids {
            self.respond(id, outcome.clone());
        }
    }

    fn append(&mut self, lines: &[u8]) {
        self.outgoing.append(|_, out| {
            out.extend_from_slice(lines);
            Ok(())
        });
    }

    fn list(&mut self, id: Id, params: ListParams) {
        let Some(library) = self.services.library.clone() else { return };
        self.find(vec![id], move || sessions::list(&library, &params));
    }

    fn delete(&mut self, ids: Vec<Id>, session: SessionId) {
        let Some(library) = self.services.library.clone() else { return };
        self.find(ids, move || sessions::delete(&library, &session));
    }

    /// Answers the requests `ids` with what a thread finds.
    fn find(
        &mut self,
        ids: Vec<Id>,
        work: impl FnOnce() -> Result<Value, RpcError> + Send + 'static,
    ) {
        let (replies, requests) = (self.replies.0.clone(), ids.clone());
        let work = move || {
            let defect =
                |_| Err(RpcError::failed("this met a defect of the program; please report it"));
            let found = catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(defect);
            // At the end of the process nobody may wait for the reply.
            drop(replies.send((requests, found)));
        };
        match threads::spawn("acp-store", work) {
            Ok(()) => self.awaited_replies += 1,
            Err(error) => self.respond_all(&ids, &Err(RpcError::failed(error.to_string()))),
        }
    }

    /// The first signal ends the sessions in order; the second does not wait for them.
    fn interrupted(&mut self, signal: Signal) {
        let code = ExitCode::Interrupted(signal);
        match &mut self.ending {
            Some(ending) if matches!(ending.code, ExitCode::Interrupted(_)) => {
                ending.is_aborted = true
            }
            Some(_) | None => self.end(Some(signal), code, INTERRUPTED_MAX),
        }
    }

    fn reader_gone(&mut self, error: &io::Error) {
        if self.ending.is_some() {
            return;
        }
        let is_reader_gone = error.kind() == io::ErrorKind::BrokenPipe;
        if !is_reader_gone {
            tracing::error!(%error, "standard output could not be written; the process ends");
        }
        let code = if is_reader_gone { ExitCode::Ok } else { ExitCode::OutputFailed };
        self.end(None, code, ENDING_MAX);
    }

    /// Ends all sessions, and then the process.
    fn end(&mut self, signal: Option<Signal>, code: ExitCode, max: Duration) {
        for mailbox in self.mailboxes.values() {
            mailbox.send(Mail::End(signal)).ok();
        }
        self.ending = Some(Ending { code, until: Instant::now() + max, is_aborted: false });
    }
}
