//! Used by every layer. [`fail_point`] plants faults, `text` is shared text,
//! `line_queue` and [`stderr`] queue all writes to standard error.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

pub mod fail_point;

pub(crate) mod text;

pub(crate) mod fair_queue;
pub(crate) mod glob;
pub(crate) mod hidden;
pub(crate) mod histogram;
pub(crate) mod named;
pub(crate) mod nearest;
pub(crate) mod shell_words;
pub(crate) mod shorten;
pub(crate) mod strconv;

pub(crate) mod defect;

/// Targets of log lines, for what a log leaves out.
pub(crate) mod log_targets {
    /// Lines that say what an event says as well. A front end that shows the event leaves them out.
    pub(crate) const EVENT: &str = "duologue::event";

    /// Messages of providers, which may repeat what they were asked. The log of a node has none of them.
    pub(crate) const PROVIDER_WORDS: &str = "duologue::provider_words";

    /// The message of a provider, if the log may have it.
    pub(crate) fn words_of_provider(message: &str) -> Option<&str> {
        tracing::enabled!(target: PROVIDER_WORDS, tracing::Level::ERROR).then_some(message)
    }
}

pub(crate) mod threads;

/// Waits until `deadline`; for ever if there is none. Cancel-safe.
pub(crate) async fn sleep_until(deadline: Option<impl Into<tokio::time::Instant>>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline.into()).await,
        None => std::future::pending().await,
    }
}

pub(crate) mod time_limit;

/// Locks `mutex`. A panic while it was locked ended only what it happened in: the value is as the steps before left it.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The milliseconds of a time, as many as a number has room for.
pub(crate) fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// The next number that follows from `state`, and the next state, by SplitMix64 (Steele, Lea, Flood: "Fast splittable
/// pseudorandom number generators", 2014).
pub(crate) fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mut bits = *state;
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    bits ^ (bits >> 31)
}

pub(crate) mod files;
pub(crate) mod line_queue;
pub mod stderr;

pub mod secret;
pub(crate) mod terminal;

// Chance, worlds that follow from a number, and files, for tests.
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod cuts;
#[cfg(test)]
pub(crate) mod dice;
#[cfg(test)]
pub(crate) mod world_plan;

#[cfg(test)]
pub(crate) mod test_folder;
