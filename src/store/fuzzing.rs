//! What fuzz targets check of the rows of a log.

use super::codec::{Blobs, RowReader, RowWriter, add_blobs, read_start, start_message};
use super::reading::{Reading, SessionRow, Sink};
use super::row::{Hash, RowHead, StoredRow};
use crate::conversation::event::Recorded;
use crate::conversation::log::{Record, SessionStart};
use crate::conversation::projections::Projections;
use crate::protocol::id::SessionId;
use prost::Message;

/// Checks that the events of a row which can be read come back from the row that they are written into, and
/// that a log of it can be read.
pub(crate) fn row(bytes: &[u8]) {
    let blobs = Blobs::new();
    let events: Result<Vec<_>, _> = RowReader::new(bytes, &blobs).collect();
    if let Ok(events) = events {
        round_trip(&events);
    }
    let session = SessionId::new("s").unwrap_or_else(|| unreachable!("it is an id"));
    if let Ok(start) = read_start(&session, bytes) {
        let written = start_message(&start).encode_to_vec();
        let again =
            read_start(&session, &written).map(|start| start_message(&start).encode_to_vec());
        assert_eq!(again, Ok(written));
    }
    log(&session, bytes);
}

/// Checks that records come back from the rows that they are written into.
pub(crate) fn records(records: Vec<Record>) {
    let events = records.into_iter().filter_map(|record| match record {
        Record::Start(_) => None,
        Record::Event(recorded) => Some(recorded),
    });
    round_trip(&events.collect::<Vec<_>>());
}

fn round_trip(events: &[Recorded]) {
    let (bytes, blobs) = written(events);
    let again: Result<Vec<_>, _> = RowReader::new(&bytes, &blobs).collect();
    // Compared as bytes, in which a number that is none equals itself.
    assert_eq!(again.map(|events| written(&events).0), Ok(bytes));
}

fn written(events: &[Recorded]) -> (Vec<u8>, Blobs) {
    let (mut row, mut blobs) = (RowWriter::default(), Blobs::new());
    for recorded in events {
        row.add(recorded);
        add_blobs(&recorded.event, &mut blobs);
    }
    (row.finish().to_vec(), blobs)
}

/// Folds the row as the only one of a log.
fn log(session: &SessionId, events: &[u8]) {
    let projections = Projections::of_export(&SessionStart::empty(session.clone()));
    let mut reading = Reading::new(session, "it".to_owned(), Sink::Export(projections.into()));
    let start = Hash::of_start(&[]);
    let head = RowHead { number: 1, first: 1, last: 1, is_sealed: false, previous: start };
    let hash = head.hash(std::iter::once(events));
    reading.begin(&SessionRow { last: 1, turns: 1, start: &[], rows: 1, head: hash.as_bytes() });
    reading.row(&StoredRow { head, hash, events });
    reading.end();
    let restored = reading.restored().unwrap_or_else(|| unreachable!("projections were wanted"));
    assert_eq!(restored.session, *session);
}

/// Reads a row as the only one of a log, for measurements.
#[cfg(test)]
pub(crate) fn read(bytes: &[u8]) {
    log(&SessionId::new("s").expect("an id"), bytes);
}
