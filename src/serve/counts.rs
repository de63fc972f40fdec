//! Counters that the conversations of a node share, for its metrics.

use super::calls::Calls;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};
use tokio::time::Instant;

/// Counters of a node.
#[derive(Debug, Default)]
pub(super) struct Counts {
    pub(super) clients: AtomicU64,
    /// Clients whose streams are full.
    pub(super) behind: AtomicU64,
    pub(super) runs: AtomicU64,
    pub(super) runs_total: AtomicU64,
    pub(super) frames_total: AtomicU64,
    pub(super) deltas_total: AtomicU64,
    pub(super) attached_total: AtomicU64,
    pub(super) refused_total: AtomicU64,
    pub(super) forwarded_total: AtomicU64,
    /// Streams that were ended because nobody read them.
    pub(super) unread_total: AtomicU64,
    /// Calls and requests that were refused because of a limit.
    pub(super) limited_total: Arc<AtomicU64>,
    /// Calls that were not authenticated, and when the last warning about one was logged.
    pub(super) unauthenticated_total: AtomicU64,
    pub(super) unauthenticated_warned: Mutex<Option<Instant>>,
    pub(super) calls: Calls,
}
