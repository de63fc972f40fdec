//! The time that a provider takes, apart from the time that the reader of its answer takes.

use super::failure::Elapsed;
use std::time::Duration;
use tokio::time::{Instant, timeout};

/// The time that the provider has taken since its answer last got further.
#[derive(Debug, Default)]
pub(in crate::engine) struct Quiet {
    pub(in crate::engine) time: Duration,
    /// Bytes came meanwhile.
    pub(in crate::engine) has_pings: bool,
}

/// Counts the time that the provider takes, and no other.
#[derive(Debug)]
pub(in crate::engine) struct Clock {
    total: Duration,
    left: Duration,
}

impl Clock {
    /// A clock for one call with its retries, which may take `total`.
    pub(in crate::engine) fn new(total: Duration) -> Self {
        Self { total, left: total }
    }

    /// What the call may still take.
    pub(in crate::engine) fn left(&self) -> Duration {
        self.left
    }

    /// Waits for `future`, for `limit` and for what is left of the call.
    pub(in crate::engine) async fn wait<T>(
        &mut self,
        limit: Duration,
        future: impl Future<Output = T>,
    ) -> Result<T, Elapsed> {
        let begin = Instant::now();
        let limit_now = limit.min(self.left);
        // A timeout lets a future through that is ready at once, however little time is left.
        let done = match limit_now.is_zero() {
            true => None,
            false => timeout(limit_now, future).await.ok(),
        };
        self.left = self.left.saturating_sub(begin.elapsed());
        done.ok_or_else(|| match self.left.is_zero() {
            true => Elapsed::Total(self.total),
            false => Elapsed::Idle(limit),
        })
    }

    /// Lets `wait` pass, which counts too.
    pub(in crate::engine) async fn sleep(&mut self, wait: Duration) {
        tokio::time::sleep(wait).await;
        self.left = self.left.saturating_sub(wait);
    }
}
