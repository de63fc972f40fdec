//! Checks that the ordinals of events and snapshots rise.

use super::names::{Name, shown};
use super::rule::{Report, Rule};
use crate::protocol::proto::rpc::SnapshotFrame;

/// Events of one ordinal whose names are compared.
const SHARING_MAX: usize = 64;

/// The ordinals so far.
#[derive(Clone, Debug, Default)]
pub(super) struct Order {
    last: u64,
    has_events: bool,
    /// The last event is a backend event, of which no UI event was seen.
    is_unshared: bool,
    snapshot: Option<u64>,
    backend: u64,
    /// The UI events that share the last ordinal, by their names and the hashes of their payloads, and
    /// the request they belong to.
    sharing: Vec<(String, u64)>,
    sharer: u64,
}

impl Order {
    /// Checks the ordinal of a UI event. Events of an extension may share theirs with others of
    /// their name: one backend event may result in several. `is_of_two`: it may also share that of
    /// another request.
    pub(super) fn event(
        &mut self,
        ordinal: u64,
        request: &Name,
        (name, payload): (&str, u64),
        (is_extension, is_of_two): (bool, bool),
        report: &mut Report,
    ) {
        if ordinal == 0 {
            report.add(Rule::OrdinalOrder, "an event without an ordinal; they begin at 1");
            return;
        }
        let last = self.last;
        // The first that is made of a backend event: that names no request.
        let is_of_backend = std::mem::take(&mut self.is_unshared) && ordinal == last;
        if ordinal < last {
            report.add(Rule::OrdinalOrder, format!("ordinal {ordinal} after {last}"));
        } else if ordinal > last || !self.has_events || is_of_backend {
            if ordinal == last && !is_of_backend {
                let message = format!("ordinal {ordinal} is in the snapshot before it");
                report.add(Rule::OrdinalOrder, message);
            }
            self.sharing.clear();
            self.sharer = request.key();
        } else if self.sharing.is_empty() {
            let message = format!("ordinal {ordinal} is in the snapshot before it");
            report.add(Rule::OrdinalOrder, message);
            self.sharer = request.key();
        } else if self.sharer != request.key() && !is_of_two {
            let message = format!("ordinal {ordinal} again, for another request");
            report.add(Rule::OrdinalOrder, message);
        } else if self
            .sharing
            .iter()
            .any(|(other, key)| other == name && (!is_extension || *key == payload))
        {
            let name = shown(name);
            report.add(Rule::OrdinalOrder, format!("ordinal {ordinal} again, for another {name}"));
        }
        self.has_events = true;
        self.last = last.max(ordinal);
        if self.sharing.len() < SHARING_MAX {
            self.sharing.push((shown(name), payload));
        }
    }

    /// Checks the ordinal of a sign of life: that of what was before it. An event that is not shown to every
    /// client may have one in between.
    pub(super) fn heartbeat(&self, ordinal: u64, report: &mut Report) {
        if ordinal != self.last && (self.has_events || self.snapshot.is_some()) {
            let last = self.last;
            let message = format!("a Heartbeat of ordinal {ordinal}, the last event is {last}");
            report.add(Rule::OrdinalOrder, message);
        }
    }

    /// Checks a snapshot in the place of events that are left out, after which the ordinals begin as with it.
    pub(super) fn begin_again(&mut self, frame: &SnapshotFrame, report: &mut Report) {
        let (ordinal, last) = (frame.snapshot_ordinal, self.last);
        if ordinal < last {
            let message = format!("a snapshot of ordinal {ordinal}, the last event is {last}");
            report.add(Rule::SnapshotOrdinal, message);
        }
        *self = Self::default();
    }

    pub(super) fn has_events(&self) -> bool {
        self.has_events
    }

    pub(super) fn has_snapshot(&self) -> bool {
        self.snapshot.is_some()
    }

    /// Whether the last snapshot, after events, was of the same ordinal.
    pub(super) fn is_snapshot_of(&self, frame: &SnapshotFrame) -> bool {
        self.has_events && self.snapshot == Some(frame.snapshot_ordinal)
    }

    /// Whether there was neither an event nor a snapshot.
    pub(super) fn is_new(&self) -> bool {
        !self.has_events && self.snapshot.is_none()
    }

    /// Checks the ordinal of a backend event, which it shares with the UI events made from it.
    pub(super) fn backend_event(&mut self, ordinal: u64, report: &mut Report) {
        if ordinal <= self.backend || ordinal < self.last {
            let last = self.last.max(self.backend);
            report.add(Rule::OrdinalOrder, format!("backend event {ordinal} after {last}"));
        }
        self.backend = self.backend.max(ordinal);
        self.last = self.last.max(ordinal);
        self.has_events = true;
        self.is_unshared = true;
        self.sharing.clear();
    }

    /// Checks a snapshot. The first one, before any event, may be of an earlier process. `has_unseen`: events may have
    /// happened that this client is not shown.
    pub(super) fn snapshot(
        &mut self,
        frame: &SnapshotFrame,
        has_unseen: bool,
        report: &mut Report,
    ) {
        let ordinal = frame.snapshot_ordinal;
        let before = self.snapshot.unwrap_or(0);
        if ordinal < before {
            let message = format!("a snapshot of ordinal {ordinal} after one of {before}");
            report.add(Rule::SnapshotOrdinal, message);
        }
        if self.has_events || self.snapshot.is_some() {
            let last = self.last;
            if ordinal > last && has_unseen {
                self.last = ordinal;
                self.backend = self.backend.max(ordinal);
                self.is_unshared = false;
                self.sharing.clear();
            } else if ordinal != last {
                let message = format!("a snapshot of ordinal {ordinal}, the last event is {last}");
                report.add(Rule::SnapshotOrdinal, message);
            }
        } else {
            self.last = ordinal;
        }
        self.snapshot = Some(before.max(ordinal));
    }
}
