//! The task of one conversation: owns its host, and passes frames of the host to its clients. The conversation outlives
//! its clients: a run goes on without them for a while, and the task ends once nobody has asked for anything for
//! longer. A failure ends this task alone, and touches no other conversation. `requests` takes the requests of the
//! clients, `showing` passes them the frames of the host, and `questions` answers for clients that have left.

mod questions;
mod requests;
mod showing;
#[cfg(test)]
mod tests;

use super::calls::OpenCalls;
use super::client::{Attach, Client, ClientId, Past};
use super::counts::Counts;
use super::frame_log::{FrameLog, Position};
use super::refusal::{Refusal, RefusalKind};
use super::request_log::RequestLog;
use super::services::Times;
use super::tenants::{MemoryReservation, RETRY_AFTER, Tenant};
use super::traces::Spans;
use crate::host::{Effects, Host, HostSettings};
use crate::protocol::command::{Cancel, Command, Enable, Page};
use crate::protocol::event_filter::EventFilter;
use crate::protocol::id::{Ordinal, SessionId};
use crate::protocol::wire::{BadLine, Frame, Request};
use crate::session::{Input, Signal};
use crate::store::OpenMode;
use crate::support::sleep_until;
use questions::Unanswered;
use std::collections::HashSet;
use std::convert::Infallible;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, mpsc, oneshot};
use tokio::task::consume_budget;
use tokio::time::Instant;
use tracing::Span;

/// Engine events that are handled before messages of clients are looked at again.
const EVENTS_AT_ONCE_MAX: usize = 64;

/// A message for a conversation. Large members are boxed: a mailbox has memory for many messages from its beginning.
#[derive(Debug)]
pub(super) enum Mail {
    Attach(Box<Attach>),
    Request(Box<Sent>),
    /// The client sends no more requests.
    HalfClosed(ClientId),
    /// Leave memory after the active run.
    HandOver,
    /// Leave memory if nobody uses the conversation and nothing is lost with it, as others need its place; the reply
    /// says whether it does.
    MakeRoom(oneshot::Sender<bool>),
    /// End now: the run is stopped.
    Stop,
    /// End at once with this refusal for the clients, without further frames of the host.
    Fail(Box<Refusal>),
}

/// A request of a client.
#[derive(Debug)]
pub(super) struct Sent {
    pub(super) client: ClientId,
    pub(super) request: Result<Request, BadLine>,
    /// Hash of what the request asks for.
    pub(super) content: u64,
    /// Bytes of the request.
    pub(super) reservation: MemoryReservation,
    /// Set if the request is beyond a limit of its tenant: it is refused unless it was seen before. The client waits
    /// until the sender is dropped.
    pub(super) refused: Option<(Refusal, oneshot::Sender<Infallible>)>,
}

/// All that a conversation is opened with.
#[derive(Debug)]
pub(super) struct Opened {
    pub(super) session: SessionId,
    pub(super) settings: HostSettings,
    pub(super) mail: mpsc::Receiver<Mail>,
    /// Notified when a client has room.
    pub(super) room: Arc<Notify>,
    /// Shows the node whether somebody uses the conversation.
    pub(super) idle: Arc<Idle>,
    /// Permits for runs: those of the node, and those of its tenant. A run needs one of each.
    pub(super) runs: [Arc<Semaphore>; 2],
    pub(super) tenant: Arc<Tenant>,
    /// A store has the conversation, so that it is not lost when it leaves memory.
    pub(super) is_stored: bool,
    pub(super) times: Times,
    pub(super) counts: Arc<Counts>,
    /// Traces of the conversation, if there is a collector.
    pub(super) spans: Option<Spans>,
}

/// Whether a conversation may leave memory for another one.
#[derive(Debug, Default)]
pub(super) struct Idle {
    /// Since when nobody uses the conversation, as a number that rises from one idle conversation to the next; 0:
    /// somebody does.
    since: AtomicU64,
    /// The conversation was only watched, so that nothing is lost with it.
    is_empty: AtomicBool,
}

impl Idle {
    /// Since when nobody uses the conversation, as a number that rises; `None` if somebody does.
    pub(super) fn since(&self) -> Option<u64> {
        Some(self.since.load(Ordering::Relaxed)).filter(|since| *since > 0)
    }

    /// Whether nothing is lost with the conversation, also without a store.
    pub(super) fn is_empty(&self) -> bool {
        self.is_empty.load(Ordering::Relaxed)
    }

    /// Notes whether somebody uses the conversation. A conversation that was idle before keeps its number.
    fn note(&self, is_idle: bool, is_empty: bool) {
        static LAST: AtomicU64 = AtomicU64::new(0);
        self.is_empty.store(is_empty, Ordering::Relaxed);
        match (is_idle, self.since()) {
            (true, None) => {
                self.since.store(LAST.fetch_add(1, Ordering::Relaxed) + 1, Ordering::Relaxed);
            }
            (false, Some(_)) => self.since.store(0, Ordering::Relaxed),
            (true, Some(_)) | (false, None) => {}
        }
    }

    /// Notes that the conversation is about to be asked to leave, so that it is chosen for one client alone.
    pub(super) fn claim(&self) {
        self.since.store(0, Ordering::Relaxed);
    }
}

/// Why a conversation ends.
#[derive(Debug)]
enum Ending {
    /// The conversation leaves memory after the active run.
    Leaving(Refusal),
    /// The conversation ends at once, and shows nothing more.
    Now(Refusal),
}

/// The part of a conversation in the gauges of its node.
#[derive(Clone, Copy, Debug, Default)]
struct Counted {
    clients: u64,
    behind: u64,
    runs: u64,
}

/// The span of the log lines of the run that goes on.
#[derive(Debug)]
struct RunSpan {
    /// The request that has begun the run.
    request: String,
    span: Span,
}

pub(super) struct Conversation {
    session: SessionId,
    host: Box<Host>,
    hello: Frame,
    mail: mpsc::Receiver<Mail>,
    room: Arc<Notify>,
    idle: Arc<Idle>,
    runs: [Arc<Semaphore>; 2],
    tenant: Arc<Tenant>,
    is_stored: bool,
    /// Bytes of the conversation in memory.
    reservation: MemoryReservation,
    /// Bytes of what was said.
    said_bytes: usize,
    /// Permits of the active run.
    permits: Vec<OwnedSemaphorePermit>,
    times: Times,
    counts: Arc<Counts>,
    log: FrameLog,
    requests: RequestLog,
    clients: Vec<Client>,
    /// The newest snapshot, and where the log ended then. Clients that attach there share it.
    cached_snapshot: (Position, Weak<Frame>),
    /// Events for clients that have named none.
    events: EventFilter,
    /// Ids of the requests of this task itself: for a snapshot for a client, or for something that nobody waits for.
    own: HashSet<String>,
    /// Prompts that came too late: their clients send them again, to where the conversation goes on.
    late: HashSet<String>,
    is_open: bool,
    /// A client was attached.
    has_begun: bool,
    /// A client has created the conversation.
    is_created: bool,
    counted: Counted,
    open_calls: OpenCalls,
    unanswered: Unanswered,
    spans: Option<Spans>,
    run_span: Option<RunSpan>,
    /// When the run that goes on is stopped.
    run_until: Option<Instant>,
    /// When nobody was attached any more.
    alone_since: Option<Instant>,
    /// When nothing was asked for any more.
    idle_since: Instant,
    ending: Option<Ending>,
    has_exited: bool,
}

impl Conversation {
    pub(super) fn new(opened: Opened) -> Self {
        let Opened {
            session,
            mut settings,
            mail,
            room,
            idle,
            runs,
            tenant,
            is_stored,
            times,
            counts,
            spans,
        } = opened;
        // A filter is for clients alone: the node itself reads in the frames of all events what goes on.
        let events = std::mem::take(&mut settings.rules.events);
        let (mut host, greeting) = Host::new(settings);
        host.observe();
        // Without this a node that has lost the conversation would run a request that another node has run already.
        host.store_before_starts();
        host.start_servers_with_prompt();
        let hello = greeting.into_iter().next().unwrap_or_default();
        let now = Instant::now();
        Self {
            session,
            host: Box::new(host),
            hello,
            mail,
            room,
            idle,
            runs,
            reservation: tenant.reserve(),
            tenant,
            is_stored,
            said_bytes: 0,
            permits: Vec::new(),
            times,
            counts,
            log: FrameLog::default(),
            requests: RequestLog::default(),
            clients: Vec::new(),
            cached_snapshot: Default::default(),
            events,
            own: HashSet::new(),
            late: HashSet::new(),
            is_open: false,
            has_begun: false,
            is_created: false,
            counted: Counted::default(),
            open_calls: OpenCalls::default(),
            unanswered: Unanswered::default(),
            spans,
            run_span: None,
            run_until: None,
            alone_since: None,
            idle_since: now,
            ending: None,
            has_exited: false,
        }
    }

    /// Drives the conversation to its end.
    pub(super) async fn drive(mut self) {
        while !self.is_over() {
            consume_budget().await;
            self.open();
            self.serve();
            if self.is_over() {
                break;
            }
            // Effects of an answer are shown before anything is waited for.
            if !self.answer_for_absent() {
                self.wait().await;
            }
        }
        self.finish().await;
    }

    fn is_over(&self) -> bool {
        self.has_exited || matches!(self.ending, Some(Ending::Now(_)))
    }

    /// Notes that the session is open: from then on the past is known.
    fn open(&mut self) {
        self.is_open |= !self.host.is_opening() && !self.has_exited;
    }

    async fn wait(&mut self) {
        // A client that is slow makes only its own requests wait: the mailbox is not full of them.
        let takes_mail = self.is_open && self.host.wants_input();
        let has_room = self.has_room();
        let wake_at = self.wake_at();
        tokio::select! {
            biased;
            mail = self.mail.recv(), if takes_mail => {
                self.received(mail.unwrap_or(Mail::HandOver));
            }
            () = self.room.notified() => {}
            () = sleep_until(wake_at) => self.look_at_clock(),
            effects = within(self.run_span.as_ref(), self.host.next(has_room)) => {
                self.on_engine(effects);
            }
        }
    }

    fn on_engine(&mut self, effects: Effects) {
        self.perform(effects);
        for _ in 0..EVENTS_AT_ONCE_MAX {
            // Large frames are given to the clients before more of them come.
            if !self.has_room() {
                return;
            }
            let effects = in_scope(self.run_span.as_ref(), || self.host.try_next());
            let Some(effects) = effects else { return };
            self.perform(effects);
        }
    }

    /// Whether the engine need not wait for the clients that follow its runs.
    fn has_room(&self) -> bool {
        let mut following =
            self.clients.iter().filter(|it| it.follows_runs(&self.requests)).peekable();
        following.peek().is_none() || following.any(|it| it.keeps_up(&self.log))
    }

    /// When the next deadline is due: of a stream that nobody reads, of a run, or of a conversation without clients.
    fn wake_at(&self) -> Option<Instant> {
        let unread = self.clients.iter().filter_map(Client::unread_since).min();
        let unread = unread.map(|since| since + self.times.unread);
        let unanswered = self.unanswered_until();
        [unread, self.run_until, self.alone_until(), unanswered].into_iter().flatten().min()
    }

    /// When a run without clients ends, or a conversation that nobody uses.
    fn alone_until(&self) -> Option<Instant> {
        let is_leaving = self.ending.is_some();
        match self.alone_since {
            None => None,
            // Nobody can attach before the session is open.
            Some(_) if !self.is_open => None,
            Some(since) if self.requests.open() > 0 => Some(since + self.times.detached),
            Some(_) if is_leaving => None,
            // The client that had the conversation opened is about to attach.
            Some(since) if !self.has_begun => Some(since + self.times.idle.max(self.times.flush)),
            // Nothing is lost with a conversation that was only watched.
            Some(since) if !self.is_there() => Some(since + self.times.idle.min(self.times.flush)),
            Some(since) => Some(since.max(self.idle_since) + self.times.idle),
        }
    }

    fn look_at_clock(&mut self) {
        let now = Instant::now();
        let is_due = |at: Option<Instant>| at.is_some_and(|at| at <= now);
        self.end_unread(now);
        if is_due(self.run_until) {
            self.run_until = None;
            self.stop_run("a run has gone on for as long as one may, and is stopped");
        }
        if !is_due(self.alone_until()) {
            return;
        }
        if self.requests.open() == 0 {
            let why = "the conversation has left memory; attach again";
            return self.leave(Refusal::new(RefusalKind::Ending, why));
        }
        // The run has gone on without clients for long enough.
        self.alone_since = Some(now);
        self.ask_own(Command::Cancel(Cancel { target: None, waiting: true }));
        self.stop_run("a run without clients is stopped");
    }

    fn stop_run(&mut self, why: &str) {
        in_scope(self.run_span.as_ref(), || tracing::info!("{why}"));
        self.ask_own(Command::Cancel(Cancel::default()));
    }

    /// Ends the streams that have taken nothing for too long.
    fn end_unread(&mut self, now: Instant) {
        let unread = self.times.unread;
        let ended = &self.counts.unread_total;
        self.clients.retain(|client| {
            if client.unread_since().is_none_or(|since| now < since + unread) {
                return true;
            }
            let why = format!(
                "the client has taken nothing of its stream for {} ms (--unread-ms), so it was ended; the conversation \
                 goes on: attach again, with since_ordinal",
                unread.as_millis()
            );
            ended.fetch_add(1, Ordering::Relaxed);
            tracing::info!("a stream that its client does not read was ended");
            client.end_unread(Refusal::exhausted(why, RETRY_AFTER));
            false
        });
    }

    fn received(&mut self, mail: Mail) {
        match mail {
            Mail::Attach(attach) => self.attach(*attach),
            Mail::Request(sent) => self.asked(*sent),
            Mail::HalfClosed(client) => {
                if let Some(client) = self.client(client) {
                    client.half_close();
                }
            }
            Mail::HandOver => {
                let why = "the node ends and has handed the conversation over; attach again";
                self.leave(Refusal::unavailable(why));
            }
            Mail::MakeRoom(answer) => {
                // A client may have come and left since the node has looked at it.
                let may_leave = self.is_idle() && (self.is_stored || !self.is_there());
                if may_leave {
                    let why = "the conversation has left memory; attach again";
                    self.leave(Refusal::new(RefusalKind::Ending, why));
                }
                // The client that needs the room may have left.
                answer.send(may_leave).ok();
            }
            Mail::Stop => {
                let why = "the node ends, and has stopped the run; attach again";
                self.ending.get_or_insert_with(|| Ending::Leaving(Refusal::unavailable(why)));
                let effects = self.host.handle(Input::Interrupted(Signal::Terminate));
                self.perform(effects);
            }
            Mail::Fail(refusal) => self.ending = Some(Ending::Now(*refusal)),
        }
    }

    /// Whether nobody uses the conversation, and nobody is about to.
    fn is_idle(&self) -> bool {
        let is_used = !self.clients.is_empty() || self.requests.open() > 0;
        self.has_begun && self.ending.is_none() && !is_used
    }

    fn client(&mut self, id: ClientId) -> Option<&mut Client> {
        self.clients.iter_mut().find(|client| client.id() == id)
    }

    fn attach(&mut self, attach: Attach) {
        let refuse = |refusal| attach.link.end(Err(refusal));
        let is_there = self.is_there();
        match attach.mode {
            OpenMode::New if is_there => return refuse(Refusal::exists()),
            OpenMode::Resume if !is_there => return refuse(Refusal::not_found()),
            OpenMode::New | OpenMode::Resume | OpenMode::Either => {}
        }
        // A run that has its time to end may need its client, for the result of a tool.
        if self.ending.is_some() && self.requests.open() == 0 {
            return refuse(Refusal::new(RefusalKind::Ending, "the conversation leaves memory"));
        }
        self.has_begun = true;
        // Each snapshot is as long as the conversation, and there may be any number of clients who take none.
        if self.start_of(attach.past).is_none()
            && self.unwritten_snapshot_bytes() > 0
            && let Err(refusal) = self.tenant.check_bytes()
        {
            return refuse(refusal);
        }
        // Requests over HTTP that are refused may come again, with the same opening.
        self.is_created |= attach.mode == OpenMode::New && !attach.is_own_only;
        if !attach.extensions.is_empty() {
            let extensions = attach.extensions.clone();
            self.invalidate_snapshot();
            self.ask_own(Command::Enable(Enable { extensions, events: None }));
        }
        let start = self.start_of(attach.past).ok_or_else(|| self.host.fresh_id());
        let asked = start.as_ref().err().cloned();
        let mut client = Client::new(attach, &self.hello, start);
        client.show_events(self.events.clone());
        let asked = match (asked, self.shared_snapshot()) {
            (Some(_), Some(snapshot)) => {
                client.on_snapshot(snapshot, self.log.end(), &self.requests);
                None
            }
            (asked, _) => asked,
        };
        self.clients.push(client);
        self.note_answerers();
        if let Some(id) = asked {
            self.own.insert(id.as_str().to_owned());
            self.ask(id, Command::Snapshot(Page::default()));
        }
    }

    /// First frame for a client that wants this much of the past; `None`: it begins with a snapshot.
    fn start_of(&self, past: Past) -> Option<Position> {
        match past {
            Past::Nothing => Some(self.log.end()),
            Past::Since(ordinal) => self.log.after(ordinal),
            Past::Snapshot => None,
        }
    }

    /// Whether there is something to go on with: a conversation that was only watched can still be created.
    fn is_there(&self) -> bool {
        self.is_created
            || self.clients.iter().any(Client::begins)
            || self.host.is_resumed()
            || self.log.newest() > Ordinal::default()
            || !self.requests.is_empty()
    }

    /// Leaves memory after the run that goes on, and tells the clients why.
    fn leave(&mut self, refusal: Refusal) {
        if self.ending.is_none() {
            self.ending = Some(Ending::Leaving(refusal));
            self.ask_own(Command::Shutdown);
        }
    }

    /// Closes the host, and tells the clients why their streams end.
    async fn finish(mut self) {
        self.mail.close();
        if self.has_exited && !matches!(self.ending, Some(Ending::Now(_))) {
            self.flush().await;
        }
        self.host.close().await;
        let refusal = match self.ending.take() {
            Some(Ending::Leaving(refusal) | Ending::Now(refusal)) => refusal,
            None => Refusal::conversation_defect(),
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
}

/// Polls `future` in the span of a run, as `Instrument` does, without another handle of the span for each wait.
async fn within<F: Future>(run: Option<&RunSpan>, future: F) -> F::Output {
    let mut future = pin!(future);
    poll_fn(|context| in_scope(run, || future.as_mut().poll(context))).await
}

/// Does `work` in the span of a run, if one goes on.
fn in_scope<T>(run: Option<&RunSpan>, work: impl FnOnce() -> T) -> T {
    match run {
        Some(run) => run.span.in_scope(work),
        None => work(),
    }
}

impl Drop for Conversation {
    fn drop(&mut self) {
        // Also a run that was given up.
        self.show_counts(Counted::default());
    }
}
