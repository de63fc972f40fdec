//! Holds effects back until the records before them are durable, and then gives them to the front end
//! in their order.
//!
//! One write batch is in flight at a time; records that come meanwhile are the next one. So a store
//! that is slower than an engine writes larger batches, and not more of them.

use super::{Effect, Effects};
use crate::conversation::log::{Record, StoreFailure, first_ordinal};
use crate::protocol::id::{Ordinal, RequestId, SessionId};
use crate::store::{Report, Request, SessionStore, StoreSettings, now_ms};
use crate::support::fail_point::Faults;
use crate::support::threads::NoThread;
use std::collections::VecDeque;
use std::future::pending;
use std::time::Duration;
use tokio::time::{Instant, timeout};

/// Inputs that are handled before the records of the first of them are stored: backpressure on the
/// front end.
const EFFECTS_HELD_MAX: usize = 4096;

/// Bytes of patches and tool results that wait for the store before nothing more is handled. Each is there
/// several times on its way, as a frame, a step and rows.
const TEXT_BYTES_HELD_MAX: usize = 4 * 1024 * 1024;

/// Records that are given to the store at once while there is more to record. A batch costs the same
/// whether it has one record or a thousand.
const RECORDS_DUE: u64 = 1024;

/// How long after a signal the store is waited for. The last frames wait with what is not stored yet.
const SIGNAL_WAIT_MAX: Duration = Duration::from_secs(4);

/// How long the end of a conversation waits for databases that do nothing, as many conversations may end at the
/// same time; after a signal, how long it waits at all.
const CLOSE_MAX: Duration = Duration::from_secs(5);

#[derive(Debug, Default)]
pub(super) struct PersistGate {
    state: State,
    /// The session has its id from the start.
    is_known: bool,
    /// The session was in the store before.
    is_resumed: bool,
    settings: Option<StoreSettings>,
    faults: Faults,
    store: Option<SessionStore>,
    /// Records that the store was not given yet.
    unsent: Vec<Record>,
    /// Records so far, and of those the ones that the store was given.
    recorded: u64,
    sent: u64,
    /// Records that are stored once the batch is.
    in_flight: Option<u64>,
    /// Records that are stored.
    stored: u64,
    /// Bytes of the patches and results among the records that the store was not given yet.
    unsent_bytes: usize,
    /// Bytes of the patches and results in the batch in flight.
    in_flight_bytes: usize,
    /// Effects, each with how many records must be stored first.
    held: VecDeque<(u64, Effects)>,
    /// Ordinal of the first event that the store was given and has not stored.
    first_sent: Option<Ordinal>,
    signaled_at: Option<Instant>,
    /// The store has not answered in time; its thread ends with the process.
    is_stuck: bool,
}

#[derive(Debug, Default, PartialEq, Eq)]
enum State {
    /// Nothing is stored.
    #[default]
    Off,
    /// The store is opened, and a session that has its id is locked and loaded, before its first
    /// input: what can't be stored is not begun.
    Opening { is_asked: bool },
    /// What is recorded is stored.
    On,
}

impl PersistGate {
    /// `is_known`: the session has its id from the start, and is locked and loaded before its first
    /// input. Any other is locked with its first record.
    pub(super) fn new(settings: Option<StoreSettings>, is_known: bool, faults: Faults) -> Self {
        let state = match &settings {
            None => State::Off,
            Some(_) => State::Opening { is_asked: false },
        };
        Self { state, is_known, settings, faults, ..Self::default() }
    }

    /// Whether a process that comes later can go on with the session.
    pub(super) fn can_resume(&self) -> bool {
        self.state == State::On && (self.is_resumed || self.recorded > 0)
    }

    pub(super) fn is_opening(&self) -> bool {
        matches!(self.state, State::Opening { .. })
    }

    /// Whether the session was in the store before.
    #[cfg(feature = "serve")]
    pub(super) fn is_resumed(&self) -> bool {
        self.is_resumed
    }

    /// Whether the store is so far behind that nothing more should be handled.
    pub(super) fn is_behind(&self) -> bool {
        self.held.len() >= EFFECTS_HELD_MAX
            || self.unsent_bytes + self.in_flight_bytes >= TEXT_BYTES_HELD_MAX
    }

    /// Has a record stored.
    pub(super) fn record(&mut self, mut record: Record) {
        if self.state != State::On {
            return;
        }
        record.note_start(now_ms);
        self.recorded += 1;
        self.unsent_bytes += record.text_bytes();
        // Coalesced here, so that the thread of the store does not get each of them to free.
        if let (Some(Record::Event(last)), Record::Event(next)) = (self.unsent.last_mut(), &record)
            && last.coalesce(next)
        {
            return;
        }
        self.unsent.push(record);
    }

    /// Gives the effects back if they may be performed now; otherwise they wait.
    pub(super) fn hold(&mut self, effects: Effects) -> Effects {
        let may_pass = self.held.is_empty() && self.stored == self.recorded;
        if may_pass || effects.list.is_empty() {
            return effects;
        }
        self.held.push_back((self.recorded, effects));
        Effects::default()
    }

    /// The next effects that waited long enough.
    pub(super) fn take_ready(&mut self) -> Option<Effects> {
        let stored = self.stored;
        let (_, effects) = self.held.pop_front_if(|(after, _)| *after <= stored)?;
        Some(effects)
    }

    /// Whether the store can be given something now. `may_wait`: something else can be done meanwhile,
    /// of which more may come for the same batch.
    pub(super) fn is_due(&self, may_wait: bool) -> bool {
        match self.state {
            State::Opening { is_asked } => !is_asked,
            State::On => {
                let unsent = self.recorded - self.sent;
                self.in_flight.is_none() && unsent >= if may_wait { RECORDS_DUE } else { 1 }
            }
            State::Off => false,
        }
    }

    /// Gives the store what it can take now.
    ///
    /// # Errors
    /// If its thread can't be started.
    pub(super) fn send(&mut self, session: &SessionId) -> Result<(), NoThread> {
        match &mut self.state {
            State::Opening { is_asked } if !*is_asked => {
                *is_asked = true;
                self.ask(match self.is_known {
                    true => Request::Open(session.clone()),
                    false => Request::Prepare,
                })
            }
            State::On if self.in_flight.is_none() && !self.unsent.is_empty() => {
                (self.in_flight, self.sent) = (Some(self.recorded), self.recorded);
                self.in_flight_bytes = std::mem::take(&mut self.unsent_bytes);
                let batch = std::mem::take(&mut self.unsent);
                self.first_sent = first_ordinal(&batch);
                self.ask(Request::Write(batch))
            }
            State::Opening { .. } | State::On | State::Off => Ok(()),
        }
    }

    fn ask(&mut self, request: Request) -> Result<(), NoThread> {
        if let Some(settings) = self.settings.take() {
            self.store = Some(SessionStore::new(settings, &self.faults));
        }
        match &mut self.store {
            Some(store) => store.ask(request),
            None => Ok(()),
        }
    }

    /// Waits for the store to report; for ever if it has nothing to do.
    pub(super) async fn report(&mut self) -> Report {
        let is_asked = self.in_flight.is_some() || self.state == State::Opening { is_asked: true };
        match &mut self.store {
            Some(store) if is_asked => store.report().await,
            Some(_) | None => pending().await,
        }
    }

    /// The session is open; `is_resumed`: it was in the store before.
    pub(super) fn opened(&mut self, is_resumed: bool) {
        (self.state, self.is_resumed) = (State::On, is_resumed);
    }

    /// The batch is stored.
    pub(super) fn written(&mut self) {
        if let Some(stored) = self.in_flight.take() {
            self.stored = stored;
            self.in_flight_bytes = 0;
        }
    }

    /// Nothing is stored from here on, and nothing waits for it.
    pub(super) fn give_up(&mut self) {
        self.state = State::Off;
        self.in_flight = None;
        self.unsent.clear();
        (self.unsent_bytes, self.in_flight_bytes) = (0, 0);
        (self.sent, self.stored) = (self.recorded, self.recorded);
    }

    /// The request that the first of the frames answers that wait for the store.
    pub(super) fn held_request(&self) -> Option<RequestId> {
        let effects = self.held.iter().flat_map(|(_, effects)| &effects.list);
        effects.into_iter().find_map(|effect| match effect {
            Effect::Frame(frame) => RequestId::new(&frame.request_id),
            Effect::Usage(_)
            | Effect::ToolImages(_)
            | Effect::Warning(_)
            | Effect::Exit(_)
            | Effect::Abort(_) => None,
        })
    }

    /// Records so far.
    pub(super) fn recorded(&self) -> u64 {
        self.recorded
    }

    /// Whether so many records are stored, so that what waited for them is given to the front end.
    pub(super) fn has_stored(&self, records: u64) -> bool {
        self.stored >= records
    }

    /// Whether effects wait for the store.
    pub(super) fn has_waiting(&self) -> bool {
        !self.held.is_empty()
    }

    /// A signal ends the process: the store is not waited for as long as otherwise, and one that is being
    /// opened has nothing to be closed. Returns whether it is the first signal.
    pub(super) fn hurry(&mut self) -> bool {
        self.is_stuck |= self.is_opening();
        let is_first = self.signaled_at.is_none();
        self.signaled_at.get_or_insert_with(Instant::now);
        is_first
    }

    /// When the store is not waited for any more.
    pub(super) fn deadline(&self) -> Option<Instant> {
        let waits = self.state == State::On && self.stored < self.recorded;
        self.signaled_at.filter(|_| waits).map(|at| at + SIGNAL_WAIT_MAX)
    }

    /// The deadline has come.
    pub(super) fn out_of_time(&mut self) -> StoreFailure {
        self.is_stuck = true;
        let reason = format!(
            "the store had not answered {} s after the signal, so the end of the conversation may be \
             missing in it",
            SIGNAL_WAIT_MAX.as_secs()
        );
        let is_sent = self.in_flight.is_some();
        let sent = self.first_sent.filter(|_| is_sent);
        StoreFailure { reason, first_missing: sent.or_else(|| first_ordinal(&self.unsent)) }
    }

    /// Drops what waits: the process ends now.
    pub(super) fn abandon(&mut self) {
        self.give_up();
        self.held.clear();
    }

    /// Gives these effects before those that wait.
    pub(super) fn put_first(&mut self, effects: Effects) {
        self.held.push_front((0, effects));
    }

    /// Stores what is left, and closes the databases.
    pub(super) async fn close(&mut self, session: &SessionId) {
        if self.is_stuck {
            return;
        }
        let limit = self.signaled_at.map_or(CLOSE_MAX, |at| CLOSE_MAX.saturating_sub(at.elapsed()));
        loop {
            let steps = self.store_steps();
            // What it waits for when the limit is met is waited for again.
            let is_closed = timeout(limit, self.close_store(session)).await.is_ok();
            if is_closed {
                return;
            }
            if self.signaled_at.is_some() || self.store_steps() == steps {
                break;
            }
        }
        tracing::warn!(
            "the store was not closed in time: a file keeps its log beside it, and a server keeps the \
             session locked for some seconds"
        );
    }

    fn store_steps(&self) -> u64 {
        self.store.as_ref().map_or(0, SessionStore::steps)
    }

    /// May be called again if it was cancelled.
    async fn close_store(&mut self, session: &SessionId) {
        loop {
            if self.send(session).is_err() || self.in_flight.is_none() {
                break;
            }
            match self.report().await {
                Report::Written(Ok(())) => self.written(),
                Report::Written(Err(_)) | Report::Opened(_) | Report::Closed => break,
            }
        }
        if let Some(store) = &mut self.store
            && store.ask(Request::Close).is_ok()
        {
            while !matches!(store.report().await, Report::Closed) {}
        }
    }
}
