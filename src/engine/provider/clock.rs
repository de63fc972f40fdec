//! The time that a provider takes, apart from the time that the reader of its answer takes.

use super::failure::Elapsed;
use std::pin::Pin;
use std::time::Duration;
use tokio::task::coop::unconstrained;
use tokio::time::{Instant, Sleep, sleep_until};

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
    /// One for all waits: a timer that is put off costs the runtime nothing, and a new one a system
    /// call that wakes its own thread.
    timer: Option<Pin<Box<Sleep>>>,
}

impl Clock {
    /// A clock for one call with its retries, which may take `total`.
    pub(in crate::engine) fn new(total: Duration) -> Self {
        Self { total, left: total, timer: None }
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
        let done = match limit_now.is_zero() {
            true => None,
            false => self.within(begin + limit_now, future).await,
        };
        self.left = self.left.saturating_sub(begin.elapsed());
        done.ok_or_else(|| match self.left.is_zero() {
            true => Elapsed::Total(self.total),
            false => Elapsed::Idle(limit),
        })
    }

    /// The output of `future`, unless `deadline` comes first. A future that is ready at once is let
    /// through, however little time is left.
    async fn within<T>(&mut self, deadline: Instant, future: impl Future<Output = T>) -> Option<T> {
        let timer = self.timer.get_or_insert_with(|| Box::pin(sleep_until(deadline)));
        timer.as_mut().reset(deadline);
        // A future that is always ready must not keep the time limit from being seen.
        tokio::select! {
            biased;
            output = future => Some(output),
            () = unconstrained(timer.as_mut()) => None,
        }
    }

    /// Lets `wait` pass, which counts too.
    pub(in crate::engine) async fn sleep(&mut self, wait: Duration) {
        tokio::time::sleep(wait).await;
        self.left = self.left.saturating_sub(wait);
    }
}
