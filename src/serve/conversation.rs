//! The task of one conversation: owns its host, and gives its clients what the host shows. The conversation
//! outlives its clients: a run goes on without them for a while, and the task ends once nobody has
//! asked for anything for longer. It ends alone: whatever happens in it touches no other conversation.

use super::client::{Attach, Client, ClientId, Past, Refusal, RefusalKind, Served};
use super::frame_log::{Audience, FrameLog};
use super::requests::{Requests, Seen};
use super::services::Times;
use super::visible::extensions_of;
use crate::host::{Effect, Effects, Host, HostSettings};
use crate::protocol::command::{Cancel, Command, Enable, Page};
use crate::protocol::constants::{SESSION_NOT_FOUND, code};
use crate::protocol::id::{Ordinal, RequestId, SessionId};
use crate::protocol::proto::rpc::ErrorFrame;
use crate::protocol::proto::rpc::rpc_line::Frame as Body;
use crate::protocol::wire::{self, BadLine, ClientError, Code, Done, Frame, Request};
use crate::session::{Input, Signal};
use crate::store::{EXISTS, HELD_BY};
use crate::support::sleep_until;
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::task::consume_budget;
use tokio::time::Instant;

/// Engine events that are handled before messages of clients are looked at again.
const EVENTS_AT_ONCE_MAX: usize = 64;

/// A message for a conversation.
#[derive(Debug)]
pub(super) enum Mail {
    Attach(Box<Attach>),
    /// A request of a client, and a hash of what it asks for.
    Request(ClientId, Result<Request, BadLine>, u64),
    /// The client sends no more requests.
    HalfClosed(ClientId),
    /// It is to leave memory, after the run that goes on.
    HandOver,
    /// It is to end now: the run is stopped.
    Stop,
    /// Its clients get this error, and it ends without frames of the host.
    Fail(Refusal),
}

/// What of a conversation its node counts.
#[derive(Debug, Default)]
pub(super) struct Counts {
    pub(super) clients: AtomicU64,
    pub(super) runs: AtomicU64,
    pub(super) runs_total: AtomicU64,
    pub(super) frames_total: AtomicU64,
    pub(super) attached_total: AtomicU64,
    pub(super) refused_total: AtomicU64,
    pub(super) forwarded_total: AtomicU64,
}

/// What a conversation is given when it is opened.
#[derive(Debug)]
pub(super) struct Opened {
    pub(super) session: SessionId,
    pub(super) settings: HostSettings,
    pub(super) mail: mpsc::Receiver<Mail>,
    /// Wakes it when a client has room.
    pub(super) room: Arc<Notify>,
    /// What a run needs a permit of: of the node, and of its tenant.
    pub(super) runs: [Arc<Semaphore>; 2],
    pub(super) times: Times,
    pub(super) counts: Arc<Counts>,
}

/// Why it ends.
#[derive(Debug)]
enum Ending {
    /// It leaves memory after the run that goes on.
    Leaving(Refusal),
    /// Nothing more is shown.
    Now(Refusal),
}

pub(super) struct Conversation {
    session: SessionId,
    host: Box<Host>,
    hello: Frame,
    mail: mpsc::Receiver<Mail>,
    room: Arc<Notify>,
    runs: [Arc<Semaphore>; 2],
    /// Those of the run that goes on.
    permits: Vec<OwnedSemaphorePermit>,
    times: Times,
    counts: Arc<Counts>,
    log: FrameLog,
    requests: Requests,
    clients: Vec<Client>,
    /// What this task has asked the session for: a snapshot for a client, or something that nobody waits for.
    own: HashSet<String>,
    is_open: bool,
    has_begun: bool,
    counted: (u64, u64),
    /// When nobody was attached any more.
    alone_since: Option<Instant>,
    /// When nothing was asked for any more.
    idle_since: Instant,
    ending: Option<Ending>,
    has_exited: bool,
}

impl Conversation {
    pub(super) fn new(opened: Opened) -> Self {
        let Opened { session, settings, mail, room, runs, times, counts } = opened;
        let (host, greeting) = Host::new(settings);
        let hello = greeting.into_iter().next().unwrap_or_default();
        let now = Instant::now();
        Self {
            session,
            host: Box::new(host),
            hello,
            mail,
            room,
            runs,
            permits: Vec::new(),
            times,
            counts,
            log: FrameLog::default(),
            requests: Requests::default(),
            clients: Vec::new(),
            own: HashSet::new(),
            is_open: false,
            has_begun: false,
            counted: (0, 0),
            alone_since: None,
            idle_since: now,
            ending: None,
            has_exited: false,
        }
    }

    /// Holds the conversation to its end.
    pub(super) async fn hold(mut self) {
        while !self.is_over() {
            consume_budget().await;
            self.open();
            self.serve();
            if self.is_over() {
                break;
            }
            self.wait().await;
        }
        self.finish().await;
    }

    fn is_over(&self) -> bool {
        self.has_exited || matches!(self.ending, Some(Ending::Now(_)))
    }

    /// From here on it is known what was said before.
    fn open(&mut self) {
        self.is_open |= !self.host.is_opening() && !self.has_exited;
    }

    async fn wait(&mut self) {
        // A client that is slow makes only its own requests wait: the mailbox is not full of them.
        let takes_mail = self.is_open && self.host.wants_input();
        let end = self.log.end();
        let has_room = self.clients.is_empty() || self.clients.iter().any(|it| it.keeps_up(end));
        let wake_at = self.wake_at();
        tokio::select! {
            biased;
            mail = self.mail.recv(), if takes_mail => {
                self.received(mail.unwrap_or(Mail::HandOver));
            }
            () = self.room.notified() => {}
            () = sleep_until(wake_at) => self.look_at_clock(),
            effects = self.host.next(has_room) => self.went_on(effects),
        }
    }

    fn went_on(&mut self, effects: Effects) {
        self.perform(effects);
        for _ in 0..EVENTS_AT_ONCE_MAX {
            let Some(effects) = self.host.try_next() else { return };
            self.perform(effects);
        }
    }

    /// When something is due: the end of a run without clients, or of a conversation that nobody uses.
    fn wake_at(&self) -> Option<Instant> {
        let is_leaving = self.ending.is_some();
        match self.alone_since {
            None => None,
            // Whoever has had it opened is about to attach.
            Some(since) if !self.has_begun => Some(since + self.times.idle.max(self.times.flush)),
            Some(since) if self.requests.open() > 0 => Some(since + self.times.detached),
            Some(since) if !is_leaving => Some(since.max(self.idle_since) + self.times.idle),
            Some(_) => None,
        }
    }

    fn look_at_clock(&mut self) {
        if self.requests.open() == 0 {
            let why = "the conversation has left memory; attach again";
            return self.leave(Refusal::new(RefusalKind::Ending, why));
        }
        // The run has gone on without clients for long enough.
        self.alone_since = Some(Instant::now());
        tracing::info!(session = self.session.as_str(), "a run without clients is stopped");
        self.ask_own(Command::Cancel(Cancel { target: None, waiting: true }));
        self.ask_own(Command::Cancel(Cancel::default()));
    }

    fn received(&mut self, mail: Mail) {
        match mail {
            Mail::Attach(attach) => self.attach(*attach),
            Mail::Request(client, request, content) => self.asked(client, request, content),
            Mail::HalfClosed(client) => {
                if let Some(client) = self.client(client) {
                    client.half_close();
                }
            }
            Mail::HandOver => {
                let why = "the node ends and has handed the conversation over; attach again";
                self.leave(Refusal::unavailable(why));
            }
            Mail::Stop => {
                let why = "the node ends, and has stopped the run; attach again";
                self.ending.get_or_insert_with(|| Ending::Leaving(Refusal::unavailable(why)));
                let effects = self.host.handle(Input::Interrupted(Signal::Terminate));
                self.perform(effects);
            }
            Mail::Fail(refusal) => self.ending = Some(Ending::Now(refusal)),
        }
    }

    fn client(&mut self, id: ClientId) -> Option<&mut Client> {
        self.clients.iter_mut().find(|client| client.id() == id)
    }

    fn attach(&mut self, attach: Attach) {
        let refuse = |refusal| attach.link.end(Err(refusal));
        if attach.creates && self.has_begun {
            let why =
                "there is a conversation of this id already; attach to it, or choose another id";
            return refuse(Refusal::new(RefusalKind::Exists, why));
        }
        if self.ending.is_some() {
            return refuse(Refusal::new(RefusalKind::Ending, "the conversation leaves memory"));
        }
        self.has_begun = true;
        if !attach.extensions.is_empty() {
            let extensions = attach.extensions.clone();
            self.ask_own(Command::Enable(Enable { extensions, events: None }));
        }
        let place = match attach.past {
            Past::Nothing => Some(self.log.end()),
            Past::Since(ordinal) => self.log.after(ordinal),
            Past::Snapshot => None,
        };
        let place = place.ok_or_else(|| self.next_own());
        let asked = place.as_ref().err().cloned();
        self.clients.push(Client::new(attach, &self.hello, place));
        if let Some(id) = asked {
            self.ask(id, Command::Snapshot(Page::default()));
        }
    }

    fn asked(&mut self, client: ClientId, mut request: Result<Request, BadLine>, content: u64) {
        self.idle_since = Instant::now();
        if let Ok(Request { command: Command::Enable(Enable { events, .. }), .. }) = &mut request
            && let Some(events) = events.take()
            && let Some(client) = self.client(client)
        {
            // Which events are written is for this client alone.
            client.show_events(events);
        }
        let id = match &request {
            Ok(request) => Some(request.id.clone()),
            Err(bad) => bad.id.clone(),
        };
        let Some(id) = id else { return };
        let at = self.log.end();
        let seen = self.requests.arrived(client, id.as_str(), content, at);
        let used = request.as_ref().map(|it| extensions_of(&it.command)).unwrap_or_default();
        let session = self.session.clone();
        let Self { clients, log, requests, .. } = self;
        let asker = clients.iter_mut().find(|it| it.id() == client);
        let is =
            |wanted: fn(&Command) -> bool| request.as_ref().is_ok_and(|it| wanted(&it.command));
        let is_prompt = is(|it| matches!(it, Command::Submit(_)));
        let may_run =
            is(|it| matches!(it, Command::Submit(_) | Command::Edit(_) | Command::Compact(_)));
        match (seen, asker) {
            // Who has gone meanwhile may come back for it.
            (Seen::No, asker) => {
                if let Some(asker) = asker {
                    asker.asked(&id, used);
                }
            }
            (_, None) => return,
            (Seen::Other, Some(asker)) => {
                for body in [wire::error(reused(&id)), wire::done(Done::Failed)] {
                    asker.tell(wire::frame(&session, Some(&id), body));
                }
                return;
            }
            (Seen::Open { first }, Some(asker)) => return asker.asked_while_open(&id, first, log),
            // What only reads is asked for again.
            (Seen::Ended { .. }, Some(asker)) if is(|it| matches!(it, Command::Snapshot(_))) => {
                asker.asked(&id, used);
                requests.reopen(client, id.as_str(), at);
            }
            (Seen::Ended { first, last }, Some(asker)) => {
                return asker.asked_again(&id, (first, &last), log);
            }
        }
        if let Ok(Request { command: Command::Shutdown, session: named, .. }) = &request
            && named.as_ref().is_none_or(|it| *it == self.session)
        {
            return self.shut_down(client, id);
        }
        let is_leaving = self.client(client).is_some_and(|it| it.is_shutting_down());
        if is_prompt && is_leaving {
            let message =
                "the client has asked for a shutdown and can't submit any more; attach again";
            return self.refuse(&id, Code::ShuttingDown, message);
        }
        if may_run && !self.takes_permits() {
            let message = "as many runs go on as the node, or the tenant, may have at once (--max-runs, \
                           --tenant-runs); nothing was run: send the request again a little later";
            return self.refuse(&id, Code::ResourceExhausted, message);
        }
        let effects = self.host.decoded(request);
        self.perform(effects);
    }

    /// A client wants to end. The conversation goes on for the others.
    fn shut_down(&mut self, client: ClientId, id: RequestId) {
        // It is answered by the client's end.
        self.show(wire::frame(&self.session, Some(&id), wire::done(Done::Shutdown)), true);
        if let Some(client) = self.client(client) {
            client.shut_down(id);
        }
    }

    /// Answers a request that the session does not get.
    fn refuse(&mut self, id: &RequestId, code: Code, message: &str) {
        let (message, detail) = (message.to_owned(), String::new());
        let error = ClientError { code, message, detail, terminal: false };
        for body in [wire::error(error), wire::done(Done::Failed)] {
            self.show(wire::frame(&self.session, Some(id), body), false);
        }
    }

    fn next_own(&mut self) -> RequestId {
        let id = self.host.fresh_id();
        self.own.insert(id.as_str().to_owned());
        id
    }

    fn ask_own(&mut self, command: Command) {
        let id = self.next_own();
        self.ask(id, command);
    }

    fn ask(&mut self, id: RequestId, command: Command) {
        let effects = self.host.decoded(Ok(Request { session: None, id, command }));
        self.perform(effects);
    }

    /// Leaves memory after the run that goes on, and tells the clients why.
    fn leave(&mut self, refusal: Refusal) {
        if self.ending.is_none() {
            self.ending = Some(Ending::Leaving(refusal));
            self.ask_own(Command::Shutdown);
        }
    }

    fn perform(&mut self, effects: Effects) {
        for effect in effects.list {
            if matches!(self.ending, Some(Ending::Now(_))) {
                return;
            }
            match effect {
                Effect::Frame(frame) => self.show(frame, false),
                Effect::Usage(_) | Effect::ToolImages(_) | Effect::Warning(_) => {}
                Effect::Exit(_) | Effect::Abort(_) => self.has_exited = true,
            }
        }
        self.open();
    }

    /// Takes a frame of the host; `is_silent`: it is noted, and shown to nobody.
    fn show(&mut self, frame: Frame, is_silent: bool) {
        if frame.request_id.is_empty() {
            return self.show_nameless(frame);
        }
        if self.own.contains(&frame.request_id) {
            return self.answered_own(frame);
        }
        self.counts.frames_total.fetch_add(1, Ordering::Relaxed);
        let frame = Arc::new(frame);
        let audience = self.requests.frame(&frame);
        if !is_silent {
            self.log.push(frame, audience);
        }
    }

    fn show_nameless(&mut self, frame: Frame) {
        match &frame.frame {
            // What a stored conversation goes on from.
            Some(Body::Snapshot(snapshot)) => self.log.begin(Ordinal(snapshot.snapshot_ordinal)),
            Some(Body::Error(error)) if error.terminal => {
                let refusal = refusal(error);
                self.ending.get_or_insert(Ending::Now(refusal));
            }
            // Nothing is shown that is not stored: another node may go on from what is.
            Some(Body::Error(error)) if error.code == code::STORE_FAILED => {
                let why = format!(
                    "the conversation can't be stored here any more; attach again ({})",
                    error.message
                );
                self.ending = Some(Ending::Now(Refusal::unavailable(why)));
            }
            Some(Body::Done(_)) | None => {}
            Some(Body::Hello(_) | Body::UiEvent(_) | Body::BackendEvent(_) | Body::Error(_)) => {
                self.log.push(Arc::new(frame), Audience::All);
            }
        }
    }

    fn answered_own(&mut self, frame: Frame) {
        match &frame.frame {
            Some(Body::Done(_)) => drop(self.own.remove(&frame.request_id)),
            Some(Body::Snapshot(_)) => {
                let next = self.log.end();
                let Self { clients, requests, .. } = self;
                if let Some(client) = clients.iter_mut().find(|it| it.awaits(&frame.request_id)) {
                    client.snapshot(frame, next, requests);
                }
            }
            // What an extension shows belongs to all who have it.
            Some(Body::UiEvent(_) | Body::BackendEvent(_)) => {
                self.log.push(Arc::new(frame), Audience::All);
            }
            Some(Body::Hello(_) | Body::Error(_)) | None => {}
        }
    }

    /// Gives all clients what they take; lets those go that have all.
    fn serve(&mut self) {
        // Who was too slow for the log is given a snapshot, and then what follows it.
        while let Some(id) = self.serve_once() {
            let request = self.next_own();
            if let Some(client) = self.client(id) {
                client.await_snapshot(request.clone());
            }
            self.ask(request, Command::Snapshot(Page::default()));
        }
        let is_alone = self.clients.is_empty();
        match (is_alone, self.alone_since) {
            (true, None) => self.alone_since = Some(Instant::now()),
            (false, Some(_)) => self.alone_since = None,
            (true, Some(_)) | (false, None) => {}
        }
        if self.requests.open() == 0 {
            self.permits.clear();
        }
        self.count();
    }

    /// Whether a run may begin, beside the others of the node and of its tenant.
    fn takes_permits(&mut self) -> bool {
        if self.permits.is_empty() {
            let acquire = |runs: &Arc<Semaphore>| Arc::clone(runs).try_acquire_owned();
            let acquired: Result<Vec<_>, _> = self.runs.iter().map(acquire).collect();
            self.permits = acquired.unwrap_or_default();
        }
        !self.permits.is_empty()
    }

    /// The same; gives a client that needs a snapshot.
    fn serve_once(&mut self) -> Option<ClientId> {
        let mut slow = None;
        let Self { clients, log, session, .. } = self;
        clients.retain_mut(|client| match client.serve(log, session) {
            Served::Yes => true,
            Served::NeedsSnapshot => {
                slow = Some(client.id());
                true
            }
            Served::Over => {
                client.end_with(Ok(()));
                false
            }
        });
        slow
    }

    fn count(&mut self) {
        let now = (self.clients.len() as u64, u64::from(self.requests.runs() > 0));
        let (clients, runs) = std::mem::replace(&mut self.counted, now);
        let counts = &self.counts;
        counts.clients.fetch_add(now.0.wrapping_sub(clients), Ordering::Relaxed);
        counts.runs.fetch_add(now.1.wrapping_sub(runs), Ordering::Relaxed);
        counts.runs_total.fetch_add(u64::from(now.1 > runs), Ordering::Relaxed);
    }

    /// Closes what the host holds, and tells the clients why they end.
    async fn finish(mut self) {
        self.mail.close();
        if self.has_exited && !matches!(self.ending, Some(Ending::Now(_))) {
            self.flush().await;
        }
        self.host.close().await;
        let refusal = match self.ending.take() {
            Some(Ending::Leaving(refusal) | Ending::Now(refusal)) => refusal,
            None => Refusal::new(
                RefusalKind::Internal,
                "the conversation met a defect of this program and was ended; attach again, and please \
                 report it",
            ),
        };
        for client in &self.clients {
            client.end_with(Err(refusal.clone()));
        }
        while let Ok(mail) = self.mail.try_recv() {
            if let Mail::Attach(attach) = mail {
                attach.link.end(Err(refusal.clone()));
            }
        }
        self.clients.clear();
        self.count();
    }

    /// Gives the clients their last frames, as long as they take some.
    async fn flush(&mut self) {
        let until = Instant::now() + self.times.flush;
        loop {
            self.serve();
            if !self.clients.iter().any(Client::is_behind) {
                return;
            }
            tokio::select! {
                biased;
                () = self.room.notified() => {}
                () = sleep_until(Some(until)) => return,
            }
        }
    }
}

impl Drop for Conversation {
    fn drop(&mut self) {
        self.clients.clear();
        self.count();
    }
}

/// The error of a request whose id another request had.
fn reused(id: &RequestId) -> ClientError {
    ClientError {
        code: Code::RequestIdReused,
        message: format!(
            "the conversation has had a request with the id {} that asks for something else, so this one \
             was not handled; send it with an id of its own",
            id.as_str()
        ),
        detail: String::new(),
        terminal: false,
    }
}

/// Why a conversation could not be opened, for its clients.
fn refusal(error: &ErrorFrame) -> Refusal {
    let kind = match error.code.as_str() {
        code::SESSION_LOCKED => RefusalKind::Locked,
        code::INTERNAL => RefusalKind::Internal,
        _ if error.detail == SESSION_NOT_FOUND => RefusalKind::NotFound,
        _ if error.message.contains(EXISTS) => RefusalKind::Exists,
        _ => RefusalKind::Failed,
    };
    let message = match kind {
        RefusalKind::NotFound => {
            "there is no such conversation; attach with the opening CREATE or EITHER to begin it"
                .to_owned()
        }
        RefusalKind::Exists => {
            "there is a conversation of this id already; attach to it, or choose another id"
                .to_owned()
        }
        RefusalKind::Invalid
        | RefusalKind::Locked
        | RefusalKind::Exhausted
        | RefusalKind::Unavailable
        | RefusalKind::Ending
        | RefusalKind::Failed
        | RefusalKind::Internal => error.message.clone(),
    };
    let holder = error.detail.strip_prefix(HELD_BY).map(str::to_owned);
    Refusal { kind, message, holder }
}
