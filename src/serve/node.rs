//! The conversations that are open in this process, and how clients come to them: to a conversation in memory, to one
//! that is opened for them (`open_conversation`), or to one that another node of the fleet holds.

mod open_conversation;

use super::attached::{Attached, Source, To};
use super::auth::Caller;
use super::client::{Attach, ClientId, OPEN_MAX, Past};
use super::conversation::{Idle, Mail};
use super::counts::Counts;
use super::forwarded::Forwarding;
use super::peers::{Peers, Remote};
use super::refusal::{Refusal, RefusalKind};
use super::services::Services;
use super::stream::Frames;
use super::tenants::{RETRY_AFTER, Tenant, Tenants};
use super::traces::{Parent, Traces};
use super::turns::Turns;
use crate::protocol::command::Extension;
use crate::protocol::id::{Ids, SessionId};
use crate::store::{Namespace, OpenMode, StorePlace};
use crate::support::lock;
use futures_util::StreamExt;
use open_conversation::{OpenConversation, open_and_drive};
use std::collections::{BTreeSet, HashMap, HashSet};
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use tokio::sync::{Notify, Semaphore, mpsc, oneshot, watch};
use tokio::time::{Instant, sleep, timeout};
use uuid::Uuid;

/// Messages that wait for a conversation.
const MAIL_MAX: usize = 64;

/// How long attempts are repeated for a conversation that is leaving memory, or whose node does not answer: longer than
/// the leases of a node that has died are valid.
pub(super) const TAKE_OVER_MAX: Duration = Duration::from_secs(15);

/// Conversations whose settings are made at the same time: each takes a thread, and a connection to the store.
const OPENINGS_MAX: usize = 4;

/// Lists, exports, copies and deletions at the same time: each takes a thread and a connection to the store as well.
const LOOKUPS_MAX: usize = 4;

/// Time between two attempts.
pub(super) const ATTEMPT_INTERVAL: Duration = Duration::from_millis(200);

/// The conversations of this process.
pub(super) struct Node {
    pub(super) services: Services,
    pub(super) counts: Arc<Counts>,
    pub(super) peers: Peers,
    forwarding: Forwarding,
    pub(super) tenants: Tenants,
    pub(super) turns: Arc<Turns>,
    pub(super) traces: Option<Traces>,
    handles: Mutex<HashMap<Key, ConversationHandle>>,
    /// The conversations that are being deleted, once for each call that deletes them.
    deleting: Mutex<Vec<Key>>,
    /// Runs that the node may still begin.
    runs: Arc<Semaphore>,
    openings: Semaphore,
    pub(super) lookups: Arc<Semaphore>,
    is_draining: AtomicBool,
    /// Notified when a conversation has ended.
    ended: Notify,
}

/// A conversation of a tenant.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Key {
    pub(super) namespace: Namespace,
    pub(super) session: SessionId,
}

/// The mailbox of an open conversation, and what else the node knows of it.
#[derive(Clone, Debug)]
struct ConversationHandle {
    mail: mpsc::Sender<Mail>,
    room: Arc<Notify>,
    idle: Arc<Idle>,
    /// Closed once the conversation has ended and has left the node's handles.
    ended: watch::Receiver<()>,
}

/// Why a conversation is not opened.
enum NotOpened {
    Refused(Refusal),
    /// No room for another conversation; this one is idle and can be evicted.
    NoRoom(ConversationHandle),
}

/// Marks a conversation as being deleted until this is dropped.
pub(super) struct Deleting {
    node: Arc<Node>,
    key: Key,
}

impl Drop for Deleting {
    fn drop(&mut self) {
        let mut all = self.node.lock_deleting();
        if let Some(at) = all.iter().position(|key| *key == self.key) {
            all.swap_remove(at);
        }
    }
}

/// A request to attach a client.
#[derive(Debug)]
pub(super) struct Wanted {
    /// `None`: a new conversation.
    pub(super) session: Option<SessionId>,
    pub(super) mode: OpenMode,
    pub(super) extensions: BTreeSet<Extension>,
    pub(super) past: Past,
    pub(super) is_own_only: bool,
    /// The caller's span.
    pub(super) parent: Parent,
}

impl Node {
    pub(super) fn new(services: Services, traces: Option<Traces>) -> Arc<Self> {
        let counts = Arc::<Counts>::default();
        Arc::new(Self {
            tenants: Tenants::new(services.limits, Arc::clone(&counts.limited_total)),
            counts,
            peers: Peers::new(services.peers.clone()),
            forwarding: Forwarding::default(),
            turns: Arc::default(),
            traces,
            handles: Mutex::default(),
            deleting: Mutex::default(),
            runs: Arc::new(Semaphore::new(services.limits.runs)),
            openings: Semaphore::new(OPENINGS_MAX),
            lookups: Arc::new(Semaphore::new(LOOKUPS_MAX)),
            is_draining: AtomicBool::new(false),
            ended: Notify::new(),
            services,
        })
    }

    /// Attaches a client to a conversation, which is opened if it is not in memory, here or at another node.
    pub(super) async fn attach(
        self: &Arc<Self>,
        caller: &Caller,
        mut wanted: Wanted,
    ) -> Result<Attached, Refusal> {
        if wanted.session.is_none() && wanted.mode == OpenMode::Resume {
            let why = "a conversation that goes on needs its id; name it, or begin one";
            return Err(Refusal::new(RefusalKind::Invalid, why));
        }
        let session = wanted.session.take();
        let session = session.unwrap_or_else(|| Ids::new(Uuid::new_v4().as_u128()).session());
        let key = Key { namespace: caller.tenant.clone(), session };
        self.check_new(&key)?;
        let attached = self.attach_to(key, caller.is_node, &wanted).await;
        match &attached {
            Ok(_) => &self.counts.attached_total,
            Err(_) => &self.counts.refused_total,
        }
        .fetch_add(1, Ordering::Relaxed);
        attached
    }

    /// Checks that a conversation may begin with this id, which every kind of store must take.
    pub(super) fn check_new(&self, key: &Key) -> Result<(), Refusal> {
        if key.session.as_str().contains('\0') {
            return has_zero();
        }
        self.check(key)
    }

    /// Checks that the id has no prefix reserved for the store, and that the configured stores can hold it: only files
    /// can hold an id with a NUL.
    pub(super) fn check(&self, key: &Key) -> Result<(), Refusal> {
        let invalid = |why: &str| Err(Refusal::new(RefusalKind::Invalid, why));
        if key.session.as_str().contains('\0') && !self.takes_zeros() {
            return has_zero();
        }
        if key.namespace.shown(key.namespace.stored(&key.session).as_str()).is_some() {
            return Ok(());
        }
        invalid("the id of a conversation does not begin with \"tenant:\"; choose another one")
    }

    /// Whether the stores take ids with a NUL: PostgreSQL has no text with one.
    pub(super) fn takes_zeros(&self) -> bool {
        let is_postgres = |place: &StorePlace| matches!(place, StorePlace::Postgres(_));
        !self.services.places.iter().any(is_postgres)
    }

    async fn attach_to(
        self: &Arc<Self>,
        key: Key,
        is_forwarded: bool,
        wanted: &Wanted,
    ) -> Result<Attached, Refusal> {
        let until = Instant::now() + TAKE_OVER_MAX;
        loop {
            let refusal = match self.attach_here(&key, is_forwarded, wanted).await {
                Err(refusal) if is_forwarded => return Err(refusal),
                Err(refusal) => refusal,
                attached => return attached,
            };
            let refusal = match self.attach_at_holder(refusal, &key, wanted).await {
                ControlFlow::Break(attached) => return attached,
                ControlFlow::Continue(refusal) => refusal,
            };
            if Instant::now() >= until {
                return Err(refusal);
            }
            sleep(ATTEMPT_INTERVAL).await;
        }
    }

    /// Attaches a client that this node has refused at the node that holds the conversation, if there is another.
    /// `Continue`: an attempt a little later may succeed.
    async fn attach_at_holder(
        &self,
        refusal: Refusal,
        key: &Key,
        wanted: &Wanted,
    ) -> ControlFlow<Result<Attached, Refusal>, Refusal> {
        match (refusal.kind, refusal.holder.as_deref()) {
            (RefusalKind::Locked, Some(holder)) if self.peers.is_fleet() => {
                match self.attach_there(holder, key, wanted).await {
                    Err(there) if there.may_pass() || is_of_another(&there, wanted.mode) => {
                        ControlFlow::Continue(there)
                    }
                    attached => ControlFlow::Break(attached),
                }
            }
            (RefusalKind::Ending, _) => {
                ControlFlow::Continue(Refusal::unavailable(refusal.message))
            }
            (_, _) if is_of_another(&refusal, wanted.mode) => ControlFlow::Continue(refusal),
            (_, _) => ControlFlow::Break(Err(refusal)),
        }
    }

    /// Attaches a client to a conversation that another node holds.
    async fn attach_there(
        &self,
        holder: &str,
        key: &Key,
        wanted: &Wanted,
    ) -> Result<Attached, Refusal> {
        if self.peers.is_own(holder) {
            return Err(Refusal::unavailable("the conversation leaves memory; attach again"));
        }
        // First, as the tenant may not be served any more by the time that the other node answers.
        let open = self.forwarding.open(&key.namespace);
        let remote = self.peers.attach(holder, key, wanted).await?;
        self.counts.forwarded_total.fetch_add(1, Ordering::Relaxed);
        let Remote { hello, frames, requests, place } = remote;
        let frames = self.forwarding.frames(frames, Arc::clone(&open), place);
        let (from, to) = (Source::There(Box::new(frames)), To::There { requests, open });
        let tenant = self.tenants.get_or_insert(&key.namespace);
        Ok(Attached::new(Arc::new(hello), from, to, tenant, false))
    }

    /// Attaches a client to a conversation in this process. For a client that another node has passed on none is
    /// opened.
    async fn attach_here(
        self: &Arc<Self>,
        key: &Key,
        is_forwarded: bool,
        wanted: &Wanted,
    ) -> Result<Attached, Refusal> {
        let mut handle = self.open_or_get(key, wanted.mode, is_forwarded).await?;
        let (client, (to, mut frames)) = (ClientId::fresh(), Frames::new(Arc::clone(&handle.room)));
        let room = Arc::new(Semaphore::new(OPEN_MAX));
        let attach = Attach {
            client,
            extensions: wanted.extensions.clone(),
            past: wanted.past,
            is_own_only: wanted.is_own_only,
            to,
            link: frames.link(),
            room: Arc::clone(&room),
            mode: wanted.mode,
            parent: wanted.parent.clone(),
        };
        let first = match handle.mail.send(Mail::Attach(Box::new(attach))).await {
            Ok(()) => frames.next().await,
            Err(_) => None,
        };
        match first {
            Some(Ok(hello)) => {
                let (from, to) =
                    (Source::Here(frames), To::Here { client, mail: handle.mail, room });
                let tenant = self.tenants.get_or_insert(&key.namespace);
                Ok(Attached::new(hello, from, to, tenant, is_forwarded))
            }
            Some(Err(refusal)) if refusal.kind != RefusalKind::Ending => Err(refusal),
            Some(Err(_)) | None => {
                // Waits until the conversation has released its session in the store.
                handle.ended.changed().await.ok();
                let why = "the conversation leaves memory; attach again";
                Err(Refusal::new(RefusalKind::Ending, why))
            }
        }
    }

    fn lock_handles(&self) -> MutexGuard<'_, HashMap<Key, ConversationHandle>> {
        lock(&self.handles)
    }

    /// The handle of a conversation, which is opened if it is not open. Idle conversations are evicted to make room for
    /// it.
    async fn open_or_get(
        self: &Arc<Self>,
        key: &Key,
        mode: OpenMode,
        is_forwarded: bool,
    ) -> Result<ConversationHandle, Refusal> {
        loop {
            let idle = match self.try_open_or_get(key, mode, is_forwarded) {
                Ok(handle) => return Ok(handle),
                Err(NotOpened::Refused(refusal)) => return Err(refusal),
                Err(NotOpened::NoRoom(idle)) => idle,
            };
            leave(idle).await;
        }
    }

    /// Evicts idle conversations of the tenant until there is room for so many bytes of a request for this
    /// conversation, which stays.
    pub(super) async fn make_room(&self, key: &Key, bytes: u64) {
        let tenant = self.tenants.get_or_insert(&key.namespace);
        if !tenant.may_ever_have(bytes) {
            return;
        }
        let is_other = |other: &Key| other.namespace == key.namespace && other != key;
        while tenant.lack(bytes).is_some() {
            let idle = self.longest_idle(&self.lock_handles(), is_other).cloned();
            let Some(idle) = idle else { return };
            leave(idle).await;
        }
    }

    /// The handle of a conversation, which is opened if it is not open and there is room for it.
    fn try_open_or_get(
        self: &Arc<Self>,
        key: &Key,
        mode: OpenMode,
        is_forwarded: bool,
    ) -> Result<ConversationHandle, NotOpened> {
        let mut all = self.lock_handles();
        if let Some(handle) = all.get(key) {
            return Ok(handle.clone());
        }
        if is_forwarded {
            let why = "this node does not hold the conversation";
            return Err(NotOpened::Refused(Refusal::new(RefusalKind::Locked, why)));
        }
        if self.lock_deleting().contains(key) {
            let why = "the conversation is being deleted; attach again to begin another one";
            return Err(NotOpened::Refused(Refusal::new(RefusalKind::Ending, why)));
        }
        let tenant = self.tenants.get_or_insert(&key.namespace);
        self.check_room(&all, key, &tenant, mode)?;
        let (mail, to_read) = mpsc::channel(MAIL_MAX);
        let (ending, ended) = watch::channel(());
        let handle = ConversationHandle { mail, room: Arc::default(), idle: Arc::default(), ended };
        all.insert(key.clone(), handle.clone());
        if tenant.begin() {
            self.turns.tenant(true);
        }
        drop(all);
        let node = Arc::clone(self);
        let open = OpenConversation { node, tenant, key: key.clone(), _ending: ending };
        let (room, idle) = (Arc::clone(&handle.room), Arc::clone(&handle.idle));
        let driven = open_and_drive(open, mode, to_read, room, idle);
        tokio::spawn(self.turns.take(key.namespace.clone(), driven));
        Ok(handle)
    }

    /// Whether there is room for this conversation beside `all` others.
    fn check_room(
        &self,
        all: &HashMap<Key, ConversationHandle>,
        key: &Key,
        tenant: &Tenant,
        mode: OpenMode,
    ) -> Result<(), NotOpened> {
        let limits = &self.services.limits;
        if self.is_draining() {
            let why = "the node is about to end and takes no more conversations; attach again, at another node";
            return Err(NotOpened::Refused(Refusal::unavailable(why)));
        }
        if self.services.places.is_empty() && mode == OpenMode::Resume {
            let why = "there is no such conversation in memory, and this node stores none (--store); begin one";
            return Err(NotOpened::Refused(Refusal::new(RefusalKind::NotFound, why)));
        }
        let is_own = |other: &Key| other.namespace == key.namespace;
        let (idle, why) = if tenant.conversations() >= limits.tenant_conversations {
            let why = "the tenant has as many conversations open as it may (--tenant-conversations); leave some, and \
                       try again later";
            (self.longest_idle(all, is_own), why.to_owned())
        } else if all.len() >= limits.conversations {
            let why = "the node holds as many conversations as it may (--max-conversations); try again later, or at \
                       another node";
            (self.longest_idle(all, |_| true), why.to_owned())
        } else if let Some(why) = tenant.lack(0) {
            (self.longest_idle(all, is_own), why)
        } else {
            return Ok(());
        };
        match idle {
            Some(idle) => Err(NotOpened::NoRoom(idle.clone())),
            None => Err(NotOpened::Refused(tenant.beyond(why, RETRY_AFTER))),
        }
    }

    /// The conversation that may leave memory and that nobody has used for the longest time, chosen for one client
    /// alone. Without a store only a conversation that was only watched is chosen, as any other would be lost.
    fn longest_idle<'a>(
        &self,
        all: &'a HashMap<Key, ConversationHandle>,
        may_leave: impl Fn(&Key) -> bool,
    ) -> Option<&'a ConversationHandle> {
        let is_stored = !self.services.places.is_empty();
        let idle = |(key, handle): (&Key, &'a ConversationHandle)| {
            let may_leave = (is_stored || handle.idle.is_empty()) && may_leave(key);
            let since = handle.idle.since().filter(|_| may_leave)?;
            Some((since, handle))
        };
        let (_, handle) = all.iter().filter_map(idle).min_by_key(|(since, _)| *since)?;
        handle.idle.claim();
        Some(handle)
    }

    /// Ends all conversations: the process was stopped for so long that other processes may have taken them.
    pub(super) fn was_paused(&self) {
        let why =
            "the node was stopped for a while and has let go of its conversations; attach again";
        self.tell_all(|| Mail::Fail(Box::new(Refusal::unavailable(why))));
    }

    /// Ends the conversations that another process has taken, by their stored ids.
    pub(super) fn has_lost(&self, sessions: &[String]) {
        let sessions: HashSet<&str> = sessions.iter().map(String::as_str).collect();
        let why = "another node has taken the conversation, as the database had not heard of this one for a while; \
                   attach again";
        let is_lost = |key: &Key| sessions.contains(key.namespace.stored(&key.session).as_str());
        self.tell(is_lost, || Mail::Fail(Box::new(Refusal::unavailable(why))));
    }

    pub(super) fn conversations(&self) -> usize {
        self.lock_handles().len()
    }

    /// Requests that wait for their conversations.
    pub(super) fn waiting(&self) -> u64 {
        self.lock_handles().values().map(|handle| (MAIL_MAX - handle.mail.capacity()) as u64).sum()
    }

    pub(super) fn is_draining(&self) -> bool {
        self.is_draining.load(Ordering::Relaxed)
    }

    /// Ends all conversations, and all clients that are passed on: each after its run, or at once when the time for
    /// that is over.
    pub(super) async fn drain(&self) {
        self.is_draining.store(true, Ordering::Relaxed);
        self.forwarding.end_idle();
        self.tell_all(|| Mail::HandOver);
        let times = self.services.times;
        if timeout(times.drain, self.emptied()).await.is_err() {
            self.forwarding.end_all();
            self.tell_all(|| Mail::Stop);
            // Time for stores and clients to take the last of it.
            timeout(times.flush, self.emptied()).await.ok();
        }
    }

    async fn emptied(&self) {
        loop {
            let ended = self.ended.notified();
            tokio::pin!(ended);
            ended.as_mut().enable();
            if self.conversations() == 0 {
                return self.forwarding.emptied().await;
            }
            ended.await;
        }
    }

    fn tell_all(&self, mail: impl Fn() -> Mail) {
        self.tell(|_| true, mail);
    }

    fn tell(&self, whom: impl Fn(&Key) -> bool, mail: impl Fn() -> Mail) {
        let to =
            |(key, handle): (&Key, &ConversationHandle)| whom(key).then(|| handle.mail.clone());
        let all: Vec<_> = self.lock_handles().iter().filter_map(to).collect();
        for to in all {
            // A conversation whose mailbox is full is told when it has read the messages in it.
            let mail = mail();
            if let Err(mpsc::error::TrySendError::Full(mail)) = to.try_send(mail) {
                tokio::spawn(async move { to.send(mail).await.ok() });
            }
        }
    }

    /// Keeps this node from opening the conversation until the result is dropped.
    pub(super) fn deleting(self: &Arc<Self>, key: &Key) -> Deleting {
        self.lock_deleting().push(key.clone());
        Deleting { node: Arc::clone(self), key: key.clone() }
    }

    fn lock_deleting(&self) -> MutexGuard<'_, Vec<Key>> {
        lock(&self.deleting)
    }

    /// Whether a conversation is in memory here.
    pub(super) fn is_open(&self, key: &Key) -> bool {
        self.lock_handles().contains_key(key)
    }

    /// Ends the conversations of tenants that are not served any more, and their clients that are passed on.
    pub(super) fn end_unserved(&self, is_served: impl Fn(&Namespace) -> bool) {
        self.forwarding.end_unserved(&is_served);
        let is_meant = |key: &Key| !is_served(&key.namespace);
        self.tell(is_meant, || Mail::Fail(Box::new(Refusal::unserved())));
    }

    /// Ends a conversation if it is open, and waits until it has released its session. Returns whether it was open.
    pub(super) async fn end(&self, key: &Key, refusal: Refusal) -> bool {
        let handle = self.lock_handles().get(key).cloned();
        let Some(mut handle) = handle else { return false };
        handle.mail.send(Mail::Fail(Box::new(refusal))).await.ok();
        handle.ended.changed().await.ok();
        true
    }
}

fn has_zero() -> Result<(), Refusal> {
    let why = "the id of a conversation has no zero character; choose another one";
    Err(Refusal::new(RefusalKind::Invalid, why))
}

/// Has an idle conversation leave memory, and waits until it has; a conversation that somebody uses by now stays.
async fn leave(mut idle: ConversationHandle) {
    let (to, answer) = oneshot::channel();
    idle.mail.send(Mail::MakeRoom(to)).await.ok();
    // A conversation that has ended meanwhile gives no answer.
    if answer.await.unwrap_or(true) {
        idle.ended.changed().await.ok();
    }
}

/// Whether a refusal answers another client, which has had the conversation opened at the same moment in another mode:
/// in its own mode this client can't be refused so.
fn is_of_another(refusal: &Refusal, mode: OpenMode) -> bool {
    match refusal.kind {
        RefusalKind::NotFound => mode != OpenMode::Resume,
        RefusalKind::Exists => mode != OpenMode::New,
        RefusalKind::Invalid
        | RefusalKind::Locked
        | RefusalKind::Exhausted
        | RefusalKind::TooLarge
        | RefusalKind::Unavailable
        | RefusalKind::Ending
        | RefusalKind::NoStore
        | RefusalKind::Failed
        | RefusalKind::Internal => false,
    }
}
