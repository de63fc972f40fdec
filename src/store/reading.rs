//! The log of a session as its rows are read, whatever kind of database it is: each row is checked, and its
//! events are folded. Pure.

use super::batch::Tail;
use super::codec::{Blobs, RowReader, Unreadable, add_lost, hash, read_start};
use super::row::{Hash, StoredRow};
use super::search::Search;
use crate::conversation::event::Recorded;
use crate::conversation::log::{Loss, Restored, SessionStart};
use crate::conversation::projections::Projections;
use crate::protocol::id::{Ordinal, SessionId};
use std::collections::BTreeSet;
use std::fmt;

/// Bytes of an event, on average, in a row that has many: no run makes smaller ones, and an event takes several
/// hundred bytes of memory.
const EVENT_BYTES_MIN: usize = 24;

/// Events that any row may have.
const EVENTS_MIN: usize = 50_000;

/// What is wanted of a log.
#[derive(Clone, Debug)]
pub(super) enum Sink {
    /// Its projections.
    Fold(Box<Projections>),
    /// Its projections, with what is exported beside the conversation.
    Export(Box<Projections>),
    /// Its events after what another store has.
    Events(Known, Vec<Recorded>),
    /// Where words are in it.
    Search(Search),
    /// Whether it is whole.
    Check,
}

/// What another store has of a log.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Known {
    /// Ordinal of its last event.
    pub(super) last: Ordinal,
    /// Number and hash of its last sealed row, which is the same in both; `None` if it has nothing.
    pub(super) sealed: Option<(i64, Hash)>,
}

/// The row of a session.
#[derive(Clone, Debug, Default)]
pub(super) struct SessionRow<'a> {
    pub(super) last: i64,
    pub(super) turns: u32,
    /// A `StoredStart`.
    pub(super) start: &'a [u8],
    /// How many rows its log has.
    pub(super) rows: i64,
    /// The hash of the last of them.
    pub(super) head: &'a [u8],
}

/// A log on its way from a store.
#[derive(Debug)]
pub(super) struct Reading {
    session: SessionId,
    /// The store, for people.
    place: String,
    /// What the session began with; `None` if it is not in the store.
    pub(super) start: Option<SessionStart>,
    pub(super) sink: Sink,
    pub(super) tail: Tail,
    /// The events after the last end of a turn.
    open: Vec<Recorded>,
    /// The events of one row, in a list that is used again for the next row.
    buffer: Vec<Recorded>,
    pub(super) loss: Option<Loss>,
    /// The bytes of attachments.
    pub(super) blobs: Blobs,
    /// The hashes of attachments whose bytes are not there: of those that the store lists for the session, and of those
    /// that its events name, as a copy lists none that the other session had lost.
    lost_blobs: BTreeSet<String>,
    /// Ordinal of the last event that was written, and number of the last turn.
    pub(super) last: Ordinal,
    turns: u32,
    /// The rows that there must be, and the hash of the last of them.
    expected: (i64, Hash),
    missing: i64,
    unread: Unread,
    /// The other store has something else.
    pub(super) is_other: bool,
    /// A row is lost after the last sealed one: those after it say something else without it.
    is_open_lost: bool,
}

/// Rows that could not be read.
#[derive(Debug, Default)]
pub(super) struct Unread {
    rows: u64,
    /// There may be more, whose numbers are not known.
    pub(super) has_more: bool,
    /// The first error, for people.
    why: Option<String>,
}

impl Reading {
    /// Reads the log of a session from the store `place`.
    pub(super) fn new(session: &SessionId, place: String, sink: Sink) -> Self {
        Self {
            session: session.clone(),
            place,
            start: None,
            sink,
            tail: Tail::default(),
            open: Vec::new(),
            buffer: Vec::new(),
            loss: None,
            blobs: Blobs::new(),
            lost_blobs: BTreeSet::new(),
            last: Ordinal::default(),
            turns: 0,
            expected: Default::default(),
            missing: 0,
            unread: Unread::default(),
            is_other: false,
            is_open_lost: false,
        }
    }

    /// Takes the row of the session, before those of its log.
    pub(super) fn begin(&mut self, row: &SessionRow<'_>) {
        self.last = ordinal(row.last);
        self.turns = row.turns;
        self.tail = Tail::of_start(row.start);
        self.compare((0, self.tail.head));
        self.expected = (row.rows, Hash::of_bytes(row.head).unwrap_or_default());
        let start = read_start(&self.session, row.start).unwrap_or_else(|error| {
            self.unread.left_out(1, &error);
            SessionStart::empty(self.session.clone())
        });
        match &mut self.sink {
            Sink::Fold(projections) => **projections = Projections::of_start(&start),
            Sink::Export(projections) => **projections = Projections::of_export(&start),
            Sink::Events(..) | Sink::Check => {}
            Sink::Search(search) => search.begin(&start.history),
        }
        self.start = Some(start);
    }

    /// Whether the bytes of attachments are wanted.
    pub(super) fn wants_blobs(&self) -> bool {
        match &self.sink {
            Sink::Fold(_) | Sink::Export(_) | Sink::Events(..) | Sink::Check => true,
            Sink::Search(_) => false,
        }
    }

    /// Takes the bytes of an attachment that the store lists for the session, before the rows of its log; `None` if
    /// they are not there.
    pub(super) fn blob(&mut self, sha256: String, data: Option<Vec<u8>>) {
        match data {
            Some(data) if hash(&data) == sha256 => drop(self.blobs.insert(sha256, data.into())),
            Some(_) => self.unread.left_out(1, &Unreadable::Checksum),
            None => drop(self.lost_blobs.insert(sha256)),
        }
    }

    /// Whether the session is in the store.
    pub(super) fn is_there(&self) -> bool {
        self.start.is_some()
    }

    /// The higher of two stores is whole, or else not damaged, or else has more events.
    pub(super) fn rank(&self) -> (bool, bool, bool, Ordinal) {
        let is_damaged = self.loss.as_ref().is_some_and(|loss| loss.is_closed);
        (self.is_there(), !is_damaged, self.loss.is_none(), self.last)
    }

    /// Takes the next row.
    pub(super) fn row(&mut self, row: &StoredRow<'_>) {
        let gap = row.head.number - self.tail.rows - 1;
        self.missing += gap.max(0);
        let is_linked = gap != 0 || row.head.previous == self.tail.head;
        if self.tail.sealed_rows == self.tail.rows && !row.head.is_sealed {
            // Also if the row before it is missing.
            self.tail.sealed_rows = row.head.number - 1;
            self.tail.sealed_head = row.head.previous;
        }
        self.tail.push(&row.head, row.hash);
        self.compare((row.head.number, row.hash));
        self.is_open_lost &= !row.head.is_sealed;
        self.is_open_lost |= gap > 0 && !row.head.is_sealed;
        let read = match is_linked && row.is_whole() {
            true => self.events(row),
            false => Err(Unreadable::Checksum),
        };
        if let Err(error) = read {
            self.is_open_lost |= !row.head.is_sealed;
            self.unread.left_out(1, &error);
        }
    }

    /// Compares a sealed row with that of another store.
    fn compare(&mut self, (number, hash): (i64, Hash)) {
        if let Sink::Events(Known { sealed: Some(known), .. }, _) = &self.sink {
            self.is_other |= known.0 == number && known.1 != hash;
        }
    }

    fn events(&mut self, row: &StoredRow<'_>) -> Result<(), Unreadable> {
        let mut events = std::mem::take(&mut self.buffer);
        let events_max = (row.events.len() / EVENT_BYTES_MIN).max(EVENTS_MIN);
        let read = RowReader::new(row.events, &self.blobs).try_for_each(|event| {
            events.push(event?);
            match events.len() > events_max {
                true => Err(Unreadable::Value("the number of events")),
                false => Ok(()),
            }
        });
        if read.is_ok() && !self.is_open_lost {
            self.take(&mut events, row.head.is_sealed);
        }
        events.clear();
        self.buffer = events;
        read
    }

    /// Folds the events of a row.
    fn take(&mut self, events: &mut Vec<Recorded>, is_sealed: bool) {
        // A large turn may be sealed in parts.
        let ends_turn = events.last().is_some_and(|recorded| recorded.event.ends_turn());
        match &mut self.sink {
            Sink::Fold(projections) | Sink::Export(projections) => {
                events.iter().for_each(|recorded| projections.apply(recorded, true));
            }
            Sink::Events(known, all) => {
                let new = events.iter().filter(|recorded| recorded.ordinal > known.last);
                all.extend(new.cloned());
            }
            Sink::Search(search) => search.row(events, ends_turn),
            Sink::Check => {}
        }
        events.iter().for_each(|recorded| self.tail.note(&recorded.event));
        if self.wants_blobs() {
            events.iter().for_each(|recorded| add_lost(&recorded.event, &mut self.lost_blobs));
        }
        if !is_sealed {
            events.iter().for_each(|recorded| self.tail.open(recorded));
        }
        match ends_turn {
            true => self.open.clear(),
            false => self.open.append(events),
        }
    }

    /// Notes rows that the database can't give.
    pub(super) fn unread(&mut self) -> &mut Unread {
        &mut self.unread
    }

    /// All rows were taken.
    pub(super) fn end(&mut self) {
        let (rows, head) = self.expected;
        if self.is_there() && self.unread.is_nothing() {
            self.missing += (rows - self.tail.rows).max(0);
            if self.missing == 0 && self.tail.head != head {
                self.unread.left_out(1, &Unreadable::Checksum);
            }
        }
        self.tail.end(rows, head, self.turns);
        if let Sink::Fold(projections) | Sink::Export(projections) = &mut self.sink {
            projections.ordinal = projections.ordinal.max(self.last);
            projections.turns = projections.turns.max(self.turns);
        }
        if !self.unread.is_nothing() {
            let (place, unread) = (&self.place, &self.unread);
            let reason = format!(
                "the store {place} is damaged: {unread}; what could be read was loaded, and the store is \
                 left as it is"
            );
            self.lost(reason, true);
        } else if self.missing > 0 || !self.lost_blobs.is_empty() {
            let reason = missing(self.missing, self.lost_blobs.len(), &self.place);
            self.lost(reason, false);
        }
    }

    pub(super) fn lost(&mut self, reason: String, is_closed: bool) {
        self.loss.get_or_insert(Loss { reason, is_closed });
    }

    /// The session as a process continues it; `None` if its projections were not wanted.
    pub(super) fn restored(self) -> Option<Restored> {
        let Self { session, open, loss, sink, .. } = self;
        let (Sink::Fold(projections) | Sink::Export(projections)) = sink else { return None };
        Some(Restored { session, projections, open, loss })
    }
}

/// What it means that rows, or the bytes of attachments, are missing which were written.
fn missing(rows: i64, blobs: usize, place: &str) -> String {
    if rows == 0 {
        let attachments = match blobs {
            1 => "an attachment".to_owned(),
            blobs => format!("{blobs} attachments"),
        };
        return format!(
            "the bytes of {attachments} of the session are missing in the store {place}, deleted by another \
             program or lost before the session was copied: the model may be sent less than before"
        );
    }
    let records = match rows.saturating_add_unsigned(blobs as u64) {
        1 => "a record of the session is".to_owned(),
        records => format!("{records} records of the session are"),
    };
    format!(
        "{records} missing in the store {place}, deleted by another program: people may see, and the model \
         may be sent, less than before"
    )
}

/// An ordinal of the integer of a database.
fn ordinal(number: i64) -> Ordinal {
    Ordinal(u64::try_from(number).unwrap_or_default())
}

impl fmt::Display for Unread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let why = self.why.as_deref().unwrap_or_default();
        match (self.rows, self.has_more) {
            (0, _) => write!(f, "an unknown number of its records can't be read ({why})"),
            (1, false) => write!(f, "one of its records can't be read ({why})"),
            (rows, false) => write!(f, "{rows} of its records can't be read ({why})"),
            (rows, true) => write!(f, "{rows} of its records, or more, can't be read ({why})"),
        }
    }
}

impl Unread {
    pub(super) fn is_nothing(&self) -> bool {
        self.why.is_none()
    }

    pub(super) fn why(&mut self, error: &impl fmt::Display) {
        self.why.get_or_insert_with(|| error.to_string());
    }

    /// Rows that the database gave, and that can't be read.
    pub(super) fn left_out(&mut self, rows: u64, error: &impl fmt::Display) {
        self.rows += rows;
        self.why(error);
    }

    /// Nothing is read after an error.
    pub(super) fn stopped(&mut self, error: &impl fmt::Display) {
        self.has_more = true;
        self.why(error);
    }
}
