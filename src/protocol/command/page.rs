//! The part of a conversation that a snapshot is asked for.

use crate::protocol::id::Ordinal;
use crate::protocol::proto::rpc::SnapshotRequest;
use std::num::NonZeroU32;

/// A part of the conversation; without any bound, all of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Page {
    /// Only what was changed, or dropped, after this event.
    pub since: Option<Ordinal>,
    /// Only what was created before this event.
    pub before: Option<Ordinal>,
    /// Only so many entities, those that were created last. What was there before the first event
    /// is never divided, so that there may be more.
    pub limit: Option<NonZeroU32>,
}

impl Page {
    /// Whether it is the whole conversation.
    pub fn is_everything(&self) -> bool {
        *self == Self::default()
    }
}

impl From<SnapshotRequest> for Page {
    fn from(request: SnapshotRequest) -> Self {
        let ordinal = |number: u64| (number != 0).then_some(Ordinal(number));
        Self {
            since: ordinal(request.since_ordinal),
            before: ordinal(request.before_ordinal),
            limit: NonZeroU32::new(request.limit),
        }
    }
}
