//! Durations, counted in classes: what metrics say of how long something takes.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The upper limits of the classes in milliseconds. What is longer has a class of its own.
const LIMITS_MS: [u64; 15] =
    [1, 5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10_000, 30_000, 60_000, 300_000];

/// Durations in classes.
#[derive(Debug)]
pub(crate) struct Histogram {
    /// How many are in each class and in none before it; those without a limit are the last.
    classes: [AtomicU64; LIMITS_MS.len() + 1],
    sum_us: AtomicU64,
}

impl Histogram {
    pub(crate) const fn new() -> Self {
        Self {
            classes: [const { AtomicU64::new(0) }; LIMITS_MS.len() + 1],
            sum_us: AtomicU64::new(0),
        }
    }

    /// Counts a duration.
    pub(crate) fn note(&self, duration: Duration) {
        let class = LIMITS_MS.partition_point(|limit| Duration::from_millis(*limit) < duration);
        self.classes[class].fetch_add(1, Ordering::Relaxed);
        let us = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
        self.sum_us.fetch_add(us, Ordering::Relaxed);
    }

    /// Each limit in seconds with how many durations are within it.
    #[cfg(feature = "serve")]
    pub(crate) fn within(&self) -> impl Iterator<Item = (f64, u64)> {
        let classes = self.classes.iter().scan(0, |sum, class| {
            *sum += class.load(Ordering::Relaxed);
            Some(*sum)
        });
        let seconds = LIMITS_MS.iter().map(|limit| Duration::from_millis(*limit).as_secs_f64());
        seconds.zip(classes)
    }

    /// How many there are.
    #[cfg(feature = "serve")]
    pub(crate) fn count(&self) -> u64 {
        self.classes.iter().map(|class| class.load(Ordering::Relaxed)).sum()
    }

    /// What they add up to, in seconds.
    #[cfg(feature = "serve")]
    pub(crate) fn sum(&self) -> f64 {
        Duration::from_micros(self.sum_us.load(Ordering::Relaxed)).as_secs_f64()
    }
}

#[cfg(all(test, feature = "serve"))]
mod tests {
    use super::*;

    #[test]
    fn a_limit_belongs_to_its_class() {
        let histogram = Histogram::new();
        for ms in [0, 1, 2, 300_000, 300_001] {
            histogram.note(Duration::from_millis(ms));
        }
        let within: Vec<_> = histogram.within().map(|(_, count)| count).collect();
        assert_eq!((within[0], within[1], within[14], histogram.count()), (2, 3, 4, 5));
        assert_eq!(histogram.within().next().map(|it| it.0), Some(0.001));
        assert!((histogram.sum() - 600.004).abs() < 1e-6);
    }
}
