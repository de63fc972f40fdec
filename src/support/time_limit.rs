//! Time limits of a process that may be stopped meanwhile, as by Ctrl-Z, `docker pause` or SIGSTOP. When it goes on,
//! the timer of a limit is due at once, and what has arrived in sockets and pipes is not read yet.

use std::time::Duration;
use tokio::time::{Instant, sleep, sleep_until};

/// A timer that fires later than this after its time shows that the process stood still.
const LATE_MIN: Duration = Duration::from_secs(1);

/// The time in which what has arrived meanwhile is read, before a limit is acted on.
const READING_TIME: Duration = Duration::from_secs(1);

/// When a limit that was due at `deadline` is to be acted on, if the process stood still until now; else `None`: it is
/// due. To be asked once for each limit.
pub(crate) fn put_off(deadline: Instant) -> Option<Instant> {
    let now = Instant::now();
    (now.saturating_duration_since(deadline) > LATE_MIN).then(|| now + READING_TIME)
}

/// Waits for `limit`; longer if the process stood still at its end.
pub(crate) async fn time_limit(limit: Duration) {
    let due = sleep(limit);
    let deadline = due.deadline();
    due.await;
    if let Some(later) = put_off(deadline) {
        sleep_until(later).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::pin::pin;
    use std::task::{Context, Waker};
    use tokio::time::advance;

    const LIMIT: Duration = Duration::from_secs(3);

    #[tokio::test(start_paused = true)]
    async fn a_limit_is_put_off_after_a_standstill_alone() {
        for (standstill, later) in [(Duration::ZERO, Duration::ZERO), (LATE_MIN * 5, READING_TIME)]
        {
            let mut limit = pin!(time_limit(LIMIT));
            let begin = Instant::now();
            let polled = limit.as_mut().poll(&mut Context::from_waker(Waker::noop()));
            assert!(polled.is_pending());
            advance(LIMIT + standstill).await;
            limit.await;
            let waited = begin.elapsed().saturating_sub(LIMIT + standstill);
            // Timers are as exact as a millisecond.
            let millisecond = Duration::from_millis(1);
            assert!(
                waited + millisecond >= later && waited <= later + 2 * millisecond,
                "{waited:?}"
            );
        }
    }
}
