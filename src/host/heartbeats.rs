//! When the client of a run that is silent gets a sign of life: what was given to the front end last, and when.

use super::{Effect, Effects, Host};
use crate::protocol::id::Ordinal;
use crate::protocol::proto::rpc::rpc_line::Frame as Body;
use crate::session::{Session, Uptime};

/// What the front end was given.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Heartbeats {
    /// How many records must be stored before the client knows that it gets them, as the answer to its request for them
    /// waits for these; `None` if it has not made one.
    known_after: Option<u64>,
    /// When it was given an event last.
    last: Uptime,
    /// The ordinal of that event.
    ordinal: Ordinal,
    /// When it was first held back from what has happened since, because that was not stored.
    unstored_since: Option<Uptime>,
}

impl Heartbeats {
    /// `are_announced`: by the first frame.
    pub(super) fn new(are_announced: bool) -> Self {
        Self { known_after: are_announced.then_some(0), ..Self::default() }
    }
}

impl Host {
    /// Notes what the front end is given at this time.
    pub(super) fn given(&mut self, effects: Effects) -> Effects {
        let ordinals = effects.list.iter().filter_map(|effect| {
            let Effect::Frame(frame) = effect else { return None };
            match &frame.frame {
                Some(Body::UiEvent(event)) => Some(event.ordinal),
                Some(Body::Snapshot(snapshot)) => Some(snapshot.snapshot_ordinal),
                Some(Body::Hello(_) | Body::BackendEvent(_) | Body::Error(_) | Body::Done(_))
                | None => None,
            }
        });
        if let Some(ordinal) = ordinals.max() {
            let ordinal = self.heartbeats.ordinal.0.max(ordinal);
            (self.heartbeats.last, self.heartbeats.ordinal) = (self.uptime(), Ordinal(ordinal));
        }
        let is_unstored = self.persist_gate.has_waiting();
        if self.supervisor.session().is_some_and(Session::has_heartbeats) {
            let recorded = self.persist_gate.recorded();
            self.heartbeats.known_after.get_or_insert(recorded);
        }
        let since = self.heartbeats.unstored_since.filter(|_| is_unstored);
        self.heartbeats.unstored_since = since.or_else(|| is_unstored.then(|| self.uptime()));
        effects
    }

    /// When the next sign of life is due, if nothing is given before.
    pub(super) fn next_heartbeat(&self) -> Option<Uptime> {
        let session = self.supervisor.session()?;
        let is_known =
            self.heartbeats.known_after.is_some_and(|it| self.persist_gate.has_stored(it));
        if !is_known {
            return None;
        }
        // What waits and answers nobody, as the state of a tool server, is no run that is silent.
        let is_awaited = self.persist_gate.held_request().is_some();
        let unstored = self.heartbeats.unstored_since.filter(|_| is_awaited);
        let began = session.heartbeats_from().or(unstored)?;
        Some(Uptime(self.heartbeats.last.max(began).0.saturating_add(session.heartbeat_ms())))
    }

    /// The sign of life that is due. It waits for no store: it shows nothing that could be stored.
    pub(super) fn heartbeat(&mut self) -> Effects {
        let at = self.uptime();
        self.heartbeats.last = at;
        let Heartbeats { ordinal, unstored_since, .. } = self.heartbeats;
        let unstored = unstored_since.zip(self.persist_gate.held_request());
        // Without an event before it, it would have no ordinal.
        let session = self.supervisor.session().filter(|_| ordinal != Ordinal::default());
        let frame = session.and_then(|it: &Session| it.heartbeat(at, ordinal, unstored));
        Effects { at, list: frame.map(Effect::Frame).into_iter().collect() }
    }
}
