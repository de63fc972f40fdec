//! For tests: a session that is loaded from the records that it wrote, without a database.

use super::batch::{Batch, Tail};
use super::reading::{Reading, SessionRow, Sink};
use super::row::StoredRow;
use crate::conversation::log::{Record, Restored};
use crate::protocol::id::SessionId;

/// What a new process is given of the session that wrote `records`.
pub(crate) fn restore(session: SessionId, records: &[Record]) -> Restored {
    let batch = Batch::of(&mut Tail::default(), records.to_vec());
    let mut reading = Reading::new(&session, "test".to_owned(), Sink::Fold(Box::default()));
    reading.blobs = batch.blobs.clone();
    reading.begin(&SessionRow {
        last: batch.last,
        turns: batch.turns,
        start: batch.start.as_deref().expect("the start of a session"),
        rows: batch.row_count,
        head: batch.head.as_bytes(),
    });
    for row in &batch.rows {
        let events = row.events.to_vec();
        reading.row(&StoredRow { head: row.head, hash: row.hash, events: &events });
    }
    reading.end();
    assert_eq!(reading.loss, None);
    reading.restored().expect("a session")
}
