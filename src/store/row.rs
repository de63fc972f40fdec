//! A row of the log: a stretch of consecutive events. Rows are numbered from 1, and each has the hash of the
//! row before it, so that one which was changed, is missing or stands in another place can be proved. Pure.

use crate::protocol::pieces::Pieces;
use data_encoding::HEXLOWER;
use ring::digest::{Context, SHA256, SHA256_OUTPUT_LEN};
use std::fmt;
use std::sync::Arc;

/// The SHA-256 hash of a row, or of what a session began with.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Hash([u8; SHA256_OUTPUT_LEN]);

impl fmt::Debug for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&HEXLOWER.encode(&self.0))
    }
}

impl Hash {
    /// The hash of the session's start, to which the first row is chained.
    pub(super) fn of_start(start: &[u8]) -> Self {
        let mut context = Context::new(&SHA256);
        context.update(start);
        Self::finish(context)
    }

    pub(super) fn of_bytes(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self)
    }

    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    fn finish(context: Context) -> Self {
        Self::of_bytes(context.finish().as_ref()).unwrap_or_default()
    }
}

/// What is known of a row beside its events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct RowHead {
    /// Its place in the log, from 1.
    pub(super) number: i64,
    /// Ordinals of its first and of its last event.
    pub(super) first: i64,
    pub(super) last: i64,
    /// It ends with a turn, and is not replaced any more.
    pub(super) is_sealed: bool,
    /// The hash of the row before it.
    pub(super) previous: Hash,
}

impl RowHead {
    /// The hash of the row with these events.
    pub(super) fn hash<'a>(&self, events: impl Iterator<Item = &'a [u8]>) -> Hash {
        let Self { number, first, last, is_sealed, previous } = self;
        let mut context = Context::new(&SHA256);
        context.update(&previous.0);
        for number in [*number, *first, *last, i64::from(*is_sealed)] {
            context.update(&number.to_be_bytes());
        }
        events.for_each(|piece| context.update(piece));
        Hash::finish(context)
    }
}

/// A row that is written.
#[derive(Clone, Debug)]
pub(super) struct NewRow {
    pub(super) head: RowHead,
    pub(super) hash: Hash,
    /// A `StoredEvents`.
    pub(super) events: Arc<Pieces>,
}

/// A row that is read.
#[derive(Debug)]
pub(super) struct StoredRow<'a> {
    pub(super) head: RowHead,
    pub(super) hash: Hash,
    pub(super) events: &'a [u8],
}

impl StoredRow<'_> {
    /// Whether it is as it was written.
    pub(super) fn is_whole(&self) -> bool {
        self.head.hash(std::iter::once(self.events)) == self.hash
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_that_was_changed_anywhere_is_known() {
        let head = RowHead { number: 2, first: 3, last: 9, is_sealed: true, ..RowHead::default() };
        let hash = head.hash([b"ev".as_slice(), b"ents"].into_iter());
        let is_whole = |head, events| StoredRow { head, hash, events }.is_whole();
        assert!(is_whole(head, b"events"), "however it is cut into pieces");
        assert!(!is_whole(head, b"event"));
        let previous = Hash::of_start(b"another");
        for changed in [
            RowHead { number: 3, ..head },
            RowHead { first: 4, ..head },
            RowHead { last: 8, ..head },
            RowHead { is_sealed: false, ..head },
            RowHead { previous, ..head },
        ] {
            assert!(!is_whole(changed, b"events"), "{changed:?}");
        }
    }
}
