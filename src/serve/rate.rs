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
        self.take_within(self.burst, requests, now)
    }

    /// Takes so many more requests of a call that has just been taken as one itself, or none of them.
    ///
    /// # Errors
    /// The time after which they would be taken, of a call that comes again.
    pub(super) fn take_more(&mut self, requests: u32, now: Instant) -> Result<(), Duration> {
        let taken = self.take_within(self.burst - 1, requests, now);
        // That call is counted once more.
        taken.map_err(|wait| wait + self.interval)
    }

    /// Takes one request of those that wait for the rate, as long as half of what may come at once stays free: the
    /// calls that are refused instead of waiting find room there. Of one at once nothing would stay, so that the rate
    /// is left unused between two such requests for as long as one takes up.
    ///
    /// # Errors
    /// The time after which it would be taken.
    pub(super) fn take_waiting(&mut self, now: Instant) -> Result<(), Duration> {
        let room = now + self.interval * (self.burst / 2);
        match (self.busy_until + self.interval).checked_duration_since(room) {
            Some(wait) if !wait.is_zero() => Err(wait),
            Some(_) | None => {
                self.busy_until = self.busy_until.max(now) + self.interval;
                Ok(())
            }
        }
    }

    /// Takes so many requests where there is room for them, or for `most`.
    fn take_within(&mut self, most: u32, requests: u32, now: Instant) -> Result<(), Duration> {
        let from = self.busy_until.max(now);
        let room = now + self.interval * self.burst;
        let wanted = from + self.interval * requests.min(most);
        match wanted.checked_duration_since(room) {
            Some(wait) if !wait.is_zero() => Err(wait),
            Some(_) | None => {
                self.busy_until = from + self.interval.saturating_mul(requests);
                Ok(())
            }
        }
    }

    /// Gives back requests that were taken then and came to nothing, but for the time that they have had since.
    pub(super) fn give_back(&mut self, requests: u32, taken: Instant, now: Instant) {
        let had = now.saturating_duration_since(taken);
        let unused = self.interval.saturating_mul(requests).saturating_sub(had);
        self.busy_until = self.busy_until.checked_sub(unused).unwrap_or(now);
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

    #[test]
    fn what_is_given_back_is_taken_again_but_for_the_time_that_has_passed() {
        let begin = Instant::now();
        let mut rate = Rate::new(10, begin);
        for ms in [0, 400, 700] {
            let now = begin + ms * MS;
            assert_eq!(rate.take(10, now), Ok(()), "{ms}");
            assert!(rate.take(1, now).is_err());
            rate.give_back(10, now, now + 300 * MS);
            assert!(rate.is_unused(now + 300 * MS));
        }
        let now = begin + 1000 * MS;
        assert_eq!(rate.take(5, now), Ok(()));
        // Their time is over: nothing of what others have taken since is given back.
        let later = now + 500 * MS;
        assert_eq!(rate.take(10, later), Ok(()));
        rate.give_back(5, now, later);
        assert_eq!(rate.take(1, later), Err(100 * MS));
    }

    #[test]
    fn a_request_that_waits_leaves_room_for_calls() {
        for burst in [1, 2, 3, 10] {
            let begin = Instant::now();
            let mut rate = Rate::new(burst, begin);
            let (mut taken, mut asks_at) = (0, begin);
            // A request that waits takes as often as it may.
            let mut wait_until = |rate: &mut Rate, until: Instant| {
                while asks_at <= until {
                    match rate.take_waiting(asks_at) {
                        Ok(()) => taken += 1,
                        Err(wait) => asks_at += wait,
                    }
                }
            };
            for number in 1..=20 {
                let mut now = begin + 2500 * MS * number;
                wait_until(&mut rate, now);
                let mut called = rate.take(1, now);
                // A burst of one is used up by any request.
                if let (1, Err(wait)) = (burst, called) {
                    now += wait;
                    wait_until(&mut rate, now);
                    called = rate.take(1, now);
                }
                assert_eq!(called, Ok(()), "call {number} of a burst of {burst}");
            }
            // The waiting requests wait for the calls in turn, and not for ever.
            assert!(taken >= 10, "{taken} of a burst of {burst}");
        }
    }

    #[test]
    fn a_call_with_more_than_a_burst_is_taken_when_it_comes_again_in_time() {
        for (burst, more) in [(1, 0), (1, 4), (3, 2), (3, 3), (3, 7)] {
            let begin = Instant::now();
            let mut rate = Rate::new(burst, begin);
            let mut call = |now| rate.take(1, now).and_then(|()| rate.take_more(more, now));
            assert_eq!(call(begin), Ok(()), "{more} more of {burst}");
            let wait = call(begin).expect_err("the rate is used up");
            let again = call(begin + wait);
            // A call is refused by itself, or for the requests that it brings, once each.
            let taken = again.or_else(|further| call(begin + wait + further));
            assert_eq!(taken, Ok(()), "{more} more of {burst}");
        }
    }
}
