//! The time that a provider takes, apart from the time that the reader of its answer takes.

use super::failure::Elapsed;
use crate::support::time_limit::put_off;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::time::Duration;
use tokio::task::coop::{consume_budget, unconstrained};
use tokio::time::{Instant, Sleep, sleep_until};

/// A wait for the reader that is not longer is no pause of the reader's: it counts. Otherwise a
/// provider that floods the connection could stretch its time with the work that it causes.
const READER_WAIT_COUNTED_MAX: Duration = Duration::from_millis(100);

/// Counts the time of a call, but for the time that the reader of its answer takes.
#[derive(Debug)]
pub(in crate::engine) struct Clock {
    total: Duration,
    begin: Instant,
    /// Time that does not count.
    apart: Duration,
    /// Shared by all waits: a timer that is put off costs the runtime nothing, and a new one a system
    /// call that wakes its own thread.
    timer: Option<Pin<Box<Sleep>>>,
}

impl Clock {
    /// A clock for one call with its retries, which begins now and may take `total`.
    pub(in crate::engine) fn new(total: Duration) -> Self {
        Self { total, begin: Instant::now(), apart: Duration::ZERO, timer: None }
    }

    /// The time that the call has taken.
    pub(in crate::engine) fn counted(&self) -> Duration {
        self.begin.elapsed().saturating_sub(self.apart)
    }

    /// The time that is left for the call.
    pub(in crate::engine) fn left(&self) -> Duration {
        self.total.saturating_sub(self.counted())
    }

    /// Awaits `future` until `limit`, or until the time limit of the call.
    pub(in crate::engine) async fn wait<T>(
        &mut self,
        limit: Duration,
        future: impl Future<Output = T>,
    ) -> Result<T, Elapsed> {
        let limit_now = limit.min(self.left());
        let done = match limit_now.is_zero() {
            true => None,
            // By reference, as each future that has another one inside would have room for it.
            false => self.within(limit_now, pin!(future)).await,
        };
        done.ok_or_else(|| match self.left().is_zero() {
            true => Elapsed::Total(self.total),
            false => Elapsed::Idle(limit),
        })
    }

    /// Waits for `future`, which is not the provider's: for the reader of the answer, or for a person
    /// who is asked for a key.
    pub(in crate::engine) async fn apart<T>(&mut self, future: impl Future<Output = T>) -> T {
        let begin = Instant::now();
        let output = future.await;
        self.apart += begin.elapsed().saturating_sub(READER_WAIT_COUNTED_MAX);
        output
    }

    /// The output of `future`, unless it takes longer than `limit`. A future that is ready at once is let
    /// through, however little time is left. Time in which the process stood still does not count.
    async fn within<T>(&mut self, limit: Duration, future: impl Future<Output = T>) -> Option<T> {
        let mut future = pin!(future);
        // A provider that floods the connection must not starve other tasks.
        consume_budget().await;
        let (mut deadline, mut is_put_off) = (None, false);
        poll_fn(|context| {
            let polled = future.as_mut().poll(context).map(Some);
            if polled.is_ready() && (deadline.is_none() || is_put_off) {
                return polled;
            }
            // What has come already needs no timer.
            let mut at = *deadline.get_or_insert_with(|| Instant::now() + limit);
            if !is_put_off && let Some(later) = put_off(at) {
                self.apart += later - at;
                (at, deadline, is_put_off) = (later, Some(later), true);
            }
            if polled.is_ready() {
                return polled;
            }
            let timer = self.timer.get_or_insert_with(|| Box::pin(sleep_until(at)));
            if timer.deadline() != at {
                timer.as_mut().reset(at);
            }
            // A future that is always ready must not starve the deadline.
            pin!(unconstrained(timer.as_mut())).poll(context).map(|()| None)
        })
        .await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::pending;
    use std::task::{Context, Poll, Waker};
    use tokio::sync::oneshot;
    use tokio::time::advance;

    const IDLE: Duration = Duration::from_secs(60);
    const TOTAL: Duration = Duration::from_secs(600);
    const STANDSTILL: Duration = Duration::from_secs(3_600);

    fn poll_once<F: Future>(future: Pin<&mut F>) -> Poll<F::Output> {
        future.poll(&mut Context::from_waker(Waker::noop()))
    }

    #[tokio::test(start_paused = true)]
    async fn what_comes_while_the_process_stands_still_is_in_time() {
        for is_read_at_once in [true, false] {
            let mut clock = Clock::new(TOTAL);
            let (sender, receiver) = oneshot::channel();
            {
                let mut wait = pin!(clock.wait(IDLE, receiver));
                assert!(poll_once(wait.as_mut()).is_pending());
                advance(STANDSTILL).await;
                if !is_read_at_once {
                    assert!(poll_once(wait.as_mut()).is_pending());
                }
                sender.send(7).expect("it is waited for");
                assert!(matches!(wait.await, Ok(Ok(7))));
            }
            assert!(clock.left() >= TOTAL - IDLE, "{:?}", clock.left());
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_provider_that_stays_silent_after_a_standstill_has_its_limit() {
        let mut clock = Clock::new(TOTAL);
        let begin = Instant::now();
        let mut wait = pin!(clock.wait(IDLE, pending::<()>()));
        assert!(poll_once(wait.as_mut()).is_pending());
        advance(STANDSTILL).await;
        assert!(matches!(wait.await, Err(Elapsed::Idle(IDLE))));
        assert!(begin.elapsed() < STANDSTILL + IDLE / 2, "{:?}", begin.elapsed());
    }
}
