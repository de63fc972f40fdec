//! What the stores of this process have done, for metrics.

use crate::support::histogram::Histogram;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The counts of all databases of this process.
pub(crate) static COUNTS: Counts = Counts::new();

/// Counts.
#[derive(Debug)]
pub(crate) struct Counts {
    /// Commands that wait for the threads that write.
    pub(crate) waiting: AtomicU64,
    /// Batches that were written, and transactions that wrote them.
    pub(crate) batches: AtomicU64,
    pub(crate) transactions: AtomicU64,
    /// Batches that could not be written.
    pub(crate) failed: AtomicU64,
    /// Sessions that were taken from processes that had ended.
    pub(crate) takeovers: AtomicU64,
    /// How long transactions took.
    pub(crate) times: Histogram,
}

impl Counts {
    const fn new() -> Self {
        Self {
            waiting: AtomicU64::new(0),
            batches: AtomicU64::new(0),
            transactions: AtomicU64::new(0),
            failed: AtomicU64::new(0),
            takeovers: AtomicU64::new(0),
            times: Histogram::new(),
        }
    }

    /// A transaction has written so many batches, and so many others could not be written.
    pub(super) fn wrote(&self, batches: usize, failed: usize, time: Duration) {
        self.batches.fetch_add(batches as u64, Ordering::Relaxed);
        self.failed.fetch_add(failed as u64, Ordering::Relaxed);
        self.transactions.fetch_add(1, Ordering::Relaxed);
        self.times.note(time);
    }
}
