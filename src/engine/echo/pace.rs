//! The time between the pieces of an answer.

use std::mem::swap;
use std::pin::Pin;
use std::time::Duration;
use tokio::time::{Instant, Sleep, sleep_until};

/// Longest time between two pieces: a day, so that no moment is out of range.
const DELAY_MAX: Duration = Duration::from_secs(24 * 60 * 60);

/// Releases a piece at each tick of an interval. A delayed piece restarts the interval, so that pieces never
/// come in a burst.
pub(super) struct Pace {
    delay: Duration,
    timers: Option<Timers>,
}

/// The timer that is waited for and the one after it, which runs already: the runtime wakes its own
/// thread, with a system call, for each new timer that is earlier than all others.
struct Timers {
    next: Pin<Box<Sleep>>,
    following: Pin<Box<Sleep>>,
}

impl Pace {
    /// `delay` between two pieces, and before the first; may be zero.
    pub(super) fn new(delay: Duration) -> Self {
        Self { delay: delay.min(DELAY_MAX), timers: None }
    }

    /// Waits for the tick of the next piece.
    pub(super) async fn wait(&mut self) {
        let delay = self.delay;
        if delay.is_zero() {
            return;
        }
        let now = Instant::now();
        let timers = self.timers.get_or_insert_with(|| Timers::new(now, delay));
        if timers.next.deadline() <= now {
            *timers = Timers::new(now, delay);
        }
        timers.wait().await;
        let deadline = timers.following.deadline() + delay;
        swap(&mut timers.next, &mut timers.following);
        timers.following.as_mut().reset(deadline);
    }
}

impl Timers {
    fn new(now: Instant, delay: Duration) -> Self {
        let timer = |delays| Box::pin(sleep_until(now + delay * delays));
        Self { next: timer(1), following: timer(2) }
    }

    async fn wait(&mut self) {
        let Self { next, following } = self;
        tokio::select! {
            biased;
            () = next.as_mut() => {}
            // The later timer, which only runs once it is polled.
            () = following.as_mut(), if !following.is_elapsed() => next.as_mut().await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::time::sleep;

    const DELAY: Duration = Duration::from_millis(5);

    /// The times of the next `pieces`, after `begin`.
    async fn times(pace: &mut Pace, begin: Instant, pieces: usize) -> Vec<u128> {
        let mut times = Vec::new();
        for _ in 0..pieces {
            pace.wait().await;
            times.push(begin.elapsed().as_millis());
        }
        times
    }

    #[tokio::test(start_paused = true)]
    async fn pieces_come_at_multiples_of_the_delay() {
        let begin = Instant::now();
        let mut pace = Pace::new(DELAY);
        assert_eq!(times(&mut pace, begin, 4).await, [5, 10, 15, 20]);
        // A piece that takes less than the delay does not move the next one.
        sleep(DELAY / 2).await;
        assert_eq!(times(&mut pace, begin, 3).await, [25, 30, 35]);
    }

    #[tokio::test(start_paused = true)]
    async fn after_a_piece_that_was_held_up_the_time_begins_anew() {
        let begin = Instant::now();
        let mut pace = Pace::new(DELAY);
        assert_eq!(times(&mut pace, begin, 2).await, [5, 10]);
        sleep(DELAY * 10).await;
        assert_eq!(times(&mut pace, begin, 3).await, [65, 70, 75]);
    }

    #[tokio::test(start_paused = true)]
    async fn any_delay_is_possible() {
        let begin = Instant::now();
        assert_eq!(times(&mut Pace::new(Duration::ZERO), begin, 3).await, [0, 0, 0]);
        let longest = DELAY_MAX.as_millis();
        assert_eq!(times(&mut Pace::new(Duration::MAX), begin, 1).await, [longest]);
    }
}
