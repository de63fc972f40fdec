//! Dates as people write them: the forms accepted by glazed's libraries, `araddon/dateparse` and
//! `tj/go-naturaldate`.

mod forms;
mod relative;

use jiff::fmt::strtime;
use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};

/// Description of accepted dates, for messages.
pub(super) const EXPECTED: &str = "a date such as 2024-01-31, 2024-01-31T14:30:00Z, 31 Jan 2024, 2024, 15:04, last monday, \
     tomorrow at 5pm or 3 days ago";

/// Longest accepted date, in bytes; the longest form is much shorter.
const BYTES_MAX: usize = 100;

/// In the order of `Weekday::to_monday_zero_offset`.
const WEEKDAYS: [&str; 7] =
    ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"];

/// Whether the text is an accepted date.
pub(super) fn is_date(text: &str) -> bool {
    rfc3339(text, &Zoned::new(Timestamp::UNIX_EPOCH, TimeZone::UTC)).is_some()
}

/// The date as RFC 3339, where `Z` is UTC and `+00:00` another zone. A relative date counts from
/// `now`; a date without a zone is in the zone of `now`.
pub(super) fn rfc3339(text: &str, now: &Zoned) -> Option<String> {
    let text = text.trim();
    if text.len() > BYTES_MAX {
        return None;
    }
    let zoned = forms::read(text, now.time_zone()).or_else(|| relative::read(text, now))?;
    let zone = if zoned.time_zone() == &TimeZone::UTC { "Z" } else { "%:z" };
    strtime::format(format!("%Y-%m-%dT%H:%M:%S%.f{zone}"), &zoned).ok()
}
