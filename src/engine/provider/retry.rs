//! When to send a request again.
//!
//! A request is sent again only while nothing of its answer has been given on, after a broken or
//! refused connection and after a status that stands for a temporary error. Time-outs are not tried
//! again: the user has waited long enough, and the provider may still be working on the request.

use super::optional::Suspects;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use std::time::{Duration, SystemTime};

/// The wait before the first retry, before its jitter; doubles with each.
const BACKOFF_FIRST: Duration = Duration::from_millis(500);

/// Back-off grows no longer than this.
const BACKOFF_MAX: Duration = Duration::from_secs(8);

/// The longest time that chance adds to the wait that a provider requests, and by which that wait grows
/// with each retry.
const SPREAD_MAX: Duration = Duration::from_secs(2);

/// A requested wait grows no more often than this.
const SPREADS_MAX: u32 = 8;

/// If a provider requests a longer wait than this, the call fails instead.
pub(in crate::engine) const RETRY_AFTER_MAX: Duration = Duration::from_secs(60);

/// The forms of a date in a header (RFC 9110, section 5.6.7); the last two are obsolete.
const DATES: [&str; 3] = ["%a, %d %b %Y %T GMT", "%A, %d-%b-%y %T GMT", "%a %b %e %T %Y"];

/// Whether a failed request may be sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::engine) enum Retry {
    /// A retry would fail again, or do harm.
    Never,
    /// After a while of our choice.
    Backoff,
    /// After the wait that the provider requests, at least.
    After(Duration),
    /// With another key, if there is one.
    OtherKey,
    /// Without these parts, if the request has them.
    Without(Suspects),
}

impl Retry {
    /// The wait before retry number `retry` (from 1); `None` if it is not to be sent again.
    /// `seed` spreads the retries of many processes. The wait that the provider requests is a minimum,
    /// as it requests the same of all processes, and the same each time: the wait is never shorter than
    /// the back-off without a request, and grows with each retry.
    pub(in crate::engine) fn wait(self, retry: u32, seed: u64) -> Option<Duration> {
        match self {
            Self::Never | Self::OtherKey | Self::Without(_) => None,
            Self::Backoff => Some(backoff(retry, seed)),
            Self::After(wait) if wait > RETRY_AFTER_MAX => None,
            Self::After(wait) => Some(spread(wait, retry, seed).max(backoff(retry, seed))),
        }
    }
}

/// The wait that the headers request: `retry-after-ms`, as OpenAI sends it, else `Retry-After` in
/// seconds or as a date (RFC 9110, section 10.2.3). A date in the past is no wait.
pub(in crate::engine) fn retry_after(
    milliseconds: Option<&str>,
    after: Option<&str>,
    now: SystemTime,
) -> Option<Duration> {
    let number = |text: &str| text.trim().parse::<f64>().ok();
    let precise = milliseconds.and_then(number).map(|ms| ms / 1_000.0);
    if let Some(seconds) = precise.or_else(|| after.and_then(number)) {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    let date = DATES.iter().find_map(|form| DateTime::strptime(form, after?.trim()).ok())?;
    let date = SystemTime::from(date.to_zoned(TimeZone::UTC).ok()?);
    Some(date.duration_since(now).unwrap_or_default())
}

/// Doubles with each retry; the last quarter of it is chance.
fn backoff(retry: u32, seed: u64) -> Duration {
    let doublings = retry.saturating_sub(1).min(16);
    let full = (BACKOFF_FIRST * 2_u32.pow(doublings)).min(BACKOFF_MAX);
    full - share(full / 4, seed.wrapping_add(u64::from(retry)))
}

/// `wait` and up to a quarter more by chance; a whole quarter more with each retry.
fn spread(wait: Duration, retry: u32, seed: u64) -> Duration {
    let quarter = (wait / 4).min(SPREAD_MAX);
    let earlier = retry.saturating_sub(1).min(SPREADS_MAX);
    wait + quarter * earlier + share(quarter, seed.wrapping_add(u64::from(retry)))
}

/// A share of `whole` that depends on `seed`.
fn share(whole: Duration, seed: u64) -> Duration {
    // A multiplicative hash (Knuth, "The Art of Computer Programming", section 6.4).
    let chance = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 48;
    whole * u32::try_from(chance).unwrap_or_default() / (1 << 16)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backoff_doubles_up_to_its_limit_and_varies_with_the_seed() {
        for retry in 1..100 {
            let full = (BACKOFF_FIRST * 2_u32.pow((retry - 1).min(16))).min(BACKOFF_MAX);
            for seed in [0, 1, 7, u64::MAX] {
                let wait = backoff(retry, seed);
                assert!(wait <= full && wait >= full * 3 / 4, "{retry} {seed} {wait:?}");
            }
        }
        assert_eq!(backoff(2, 5), backoff(2, 5));
        assert_ne!(backoff(2, 5), backoff(2, 6));
    }

    #[test]
    fn a_wait_is_asked_for_in_seconds_milliseconds_or_by_date() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_777);
        let check = |ms: Option<&str>, after: Option<&str>, expected_ms: Option<u64>| {
            let expected = expected_ms.map(Duration::from_millis);
            assert_eq!(retry_after(ms, after, now), expected, "{ms:?} {after:?}");
        };
        check(None, None, None);
        check(None, Some("0"), Some(0));
        check(None, Some(" 3 "), Some(3_000));
        check(None, Some("1.5"), Some(1_500));
        check(Some("250"), Some("3"), Some(250));
        check(Some("soon"), Some("3"), Some(3_000));
        check(None, Some("Sun, 06 Nov 1994 08:49:47 GMT"), Some(10_000));
        check(None, Some("Sun, 06 Nov 1994 08:49:27 GMT"), Some(0));
        check(None, Some("Sunday, 06-Nov-94 08:49:47 GMT"), Some(10_000));
        check(None, Some("Sun Nov  6 08:49:47 1994"), Some(10_000));
        for odd in ["", "soon", "-1", "NaN", "inf", "1e300"] {
            check(None, Some(odd), None);
        }
    }

    #[test]
    fn a_long_wait_is_not_waited_for() {
        assert_eq!(Retry::Never.wait(1, 0), None);
        let longest = Retry::After(RETRY_AFTER_MAX).wait(1, 7).expect("a wait");
        assert!((RETRY_AFTER_MAX..=RETRY_AFTER_MAX + SPREAD_MAX).contains(&longest), "{longest:?}");
        assert_eq!(Retry::After(RETRY_AFTER_MAX + Duration::from_millis(1)).wait(1, 0), None);
        assert_eq!(Retry::Backoff.wait(3, 9), Some(backoff(3, 9)));
    }

    #[test]
    fn a_request_not_to_wait_changes_nothing() {
        for retry in 1..400 {
            let wait = Retry::After(Duration::ZERO).wait(retry, 5);
            assert_eq!(wait, Some(backoff(retry, 5)), "as without a request");
        }
    }

    #[test]
    fn a_requested_wait_is_a_minimum_that_grows_and_varies() {
        for milliseconds in [20, 1_000, 3_000, 30_000] {
            let requested = Duration::from_millis(milliseconds);
            let wait = |retry, seed| Retry::After(requested).wait(retry, seed).expect("a wait");
            for seed in [0, 1, 7, u64::MAX] {
                let waits = [1, 2, 3, 4, 5].map(|retry| wait(retry, seed));
                assert!(waits.iter().all(|wait| *wait >= requested), "{waits:?}");
                assert!(waits[0] <= (requested * 5 / 4).max(BACKOFF_FIRST), "{waits:?}");
                assert!(waits.is_sorted(), "{waits:?}");
                // The seed is another in each try.
                let (first, second) = (wait(1, seed), wait(2, !seed));
                assert!(first < second, "{first:?} {second:?}");
            }
            assert_ne!(wait(1, 5), wait(1, 6), "processes that were refused together");
        }
    }
}
