//! Dates as people write them: the forms accepted by glazed's libraries, `araddon/dateparse` and
//! `tj/go-naturaldate`.

mod forms;
mod relative;

use crate::template::time::GoTime;
use jiff::fmt::strtime::BrokenDownTime;
use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};
use std::ops::RangeInclusive;

/// Description of accepted dates, for messages.
pub(super) const EXPECTED: &str = "a date such as 2024-01-31, 2024-01-31T14:30:00Z, 31 Jan 2024, 2024, 15:04, last monday, \
     tomorrow at 5pm or 3 days ago";

/// Longest accepted date, in bytes; the longest form is much shorter.
const BYTES_MAX: usize = 100;

/// In the order of `Weekday::to_monday_zero_offset`.
const WEEKDAYS: [&str; 7] =
    ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"];

/// Lengths of a zone's own name, as in `CET` or `+0330`, in bytes: POSIX wants three, and the list of zones
/// has no longer ones.
const ZONE_NAME_BYTES: RangeInclusive<usize> = 3..=6;

/// Whether the text is an accepted date, as far as that can be said without the local zone: a word after it may
/// be that zone's own name, which [`rfc3339`] compares.
pub(super) fn is_date(text: &str) -> bool {
    let now = Zoned::new(Timestamp::UNIX_EPOCH, TimeZone::UTC);
    let zoned = |text: &str| rfc3339(text, &now).is_some();
    let without_name = text.trim_end().rsplit_once(' ').filter(|(_, name)| is_zone_name(name));
    zoned(text) || without_name.is_some_and(|(time, _)| zoned(time))
}

fn is_zone_name(word: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-');
    ZONE_NAME_BYTES.contains(&word.len())
        && !word.starts_with(|char: char| char.is_ascii_digit())
        && word.bytes().all(is_part)
}

/// The date as RFC 3339, where `Z` is UTC and `+00:00` another zone; an offset before standard time has seconds
/// besides, as in `+00:53:28`. A relative date counts from
/// `now`; a date without a zone is in the zone of `now`.
pub(super) fn rfc3339(text: &str, now: &Zoned) -> Option<String> {
    let text = text.trim();
    if text.len() > BYTES_MAX {
        return None;
    }
    let relative = || relative::read(text, now).map(|time| GoTime::of(&time));
    let time = forms::read(text, now.time_zone()).or_else(relative)?;
    let zone = if time.zone() == &TimeZone::UTC { "Z" } else { "%:z" };
    let mut parts = BrokenDownTime::from(time.at());
    parts.set_offset(Some(time.offset()));
    parts.to_string(format!("%Y-%m-%dT%H:%M:%S%.f{zone}")).ok()
}
