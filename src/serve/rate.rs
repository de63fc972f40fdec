//! How many requests a second are taken: the generic cell rate algorithm, a leaky bucket without a timer. Pure.

use std::time::Duration;
use tokio::time::Instant;

/// Requests a second, and as many at once after a second without any.
#[derive(Debug)]
pub(super) struct Rate {
    /// Time that a request takes up.
    interval: Duration,
    /// Requests that may come at once.
    burst: u32,
    /// When all requests that were taken will have had their time.
    busy_until: Instant,
}

impl Rate {
    pub(super) fn new(per_second: u32, now: Instant) -> Self {
        let burst = per_second.max(1);
        Self { interval: Duration::from_secs(1) / burst, burst, busy_until: now }
    }

    /// Takes so many requests, or none of them. More than a second's are taken where nothing else was, and what
    /// follows waits for longer.
    ///
    /// # Errors
    /// The time after which they would be taken.
    pub(super) fn take(&mut self, requests: u32, now: Instant) -> Result<(), Duration> {
        let from = self.busy_until.max(now);
        let room = now + self.interval * self.burst;
        let wanted = from + self.interval * requests.min(self.burst);
        match wanted.checked_duration_since(room) {
            Some(wait) if !wait.is_zero() => Err(wait),
            Some(_) | None => {
                self.busy_until = from + self.interval.saturating_mul(requests);
                Ok(())
            }
        }
    }

    /// Whether it has room as if nothing was ever taken.
    pub(super) fn is_unused(&self, now: Instant) -> bool {
        self.busy_until <= now
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn a_burst_is_taken_and_then_one_after_the_other() {
        let begin = Instant::now();
        let mut rate = Rate::new(10, begin);
        for number in 0..10 {
            assert_eq!(rate.take(1, begin), Ok(()), "{number}");
        }
        assert_eq!(rate.take(1, begin), Err(100 * MS));
        assert_eq!(rate.take(1, begin + 99 * MS), Err(MS));
        assert_eq!(rate.take(1, begin + 100 * MS), Ok(()));
        assert_eq!(rate.take(2, begin + 200 * MS), Err(100 * MS), "all or none");
        assert!(!rate.is_unused(begin + 200 * MS) && rate.is_unused(begin + 1100 * MS));
    }

    #[test]
    fn over_any_time_no_more_are_taken_than_the_rate_and_a_burst() {
        let begin = Instant::now();
        let mut rate = Rate::new(7, begin);
        let taken = (0..5000).filter(|ms| rate.take(1, begin + *ms * MS).is_ok()).count();
        assert!((35..=42).contains(&taken), "{taken}");
    }

    #[test]
    fn more_than_a_burst_is_taken_at_last() {
        let begin = Instant::now();
        let mut rate = Rate::new(2, begin);
        assert_eq!(rate.take(6, begin), Ok(()), "nothing else was taken");
        assert_eq!(rate.take(1, begin), Err(2500 * MS));
        assert_eq!(rate.take(1, begin + 2500 * MS), Ok(()));
    }
}
