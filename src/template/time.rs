//! Points in time like Go's `time.Time`: <https://pkg.go.dev/time#Time>.

pub(super) mod durations;
mod go_time;
mod layout;

pub(crate) use go_time::GoTime;
pub(super) use layout::Moment;

use jiff::ToSpan;
use jiff::civil::{Date, DateTime};
use jiff::tz::TimeZone;

pub(crate) const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

const DAYS: [&str; 7] =
    ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];

/// Nanoseconds from the year 1, Go's zero time, to 1970, Unix's.
const ZERO_TO_UNIX_NANOSECONDS: i128 = 62_135_596_800 * 1_000_000_000;

/// Parses RFC 3339. `Z` is UTC; another offset that the local zone has at that time is the local
/// zone, as in Go.
pub(super) fn read(text: &str, local: &TimeZone) -> Option<GoTime> {
    let time = Moment::read(text)?.time()?;
    let zone = if text.ends_with(['Z', 'z']) { &TimeZone::UTC } else { local };
    let here = time.in_zone(zone).filter(|here| here.offset() == time.offset());
    Some(here.unwrap_or(time))
}

/// Formats as RFC 3339 with as many digits of the second as needed.
pub(super) fn rfc3339(time: &GoTime) -> String {
    Moment::of(time).rfc3339()
}

/// Formats like `Time.String`.
pub(super) fn string(time: &GoTime) -> String {
    Moment::of(time).written("2006-01-02 15:04:05.999999999 -0700 MST")
}

/// Formats like `Time.GoString`, and so `%#v`.
pub(super) fn go_string(time: &GoTime, local: &TimeZone) -> String {
    let (zone, at) = (time.zone(), time.at());
    let location = if zone == &TimeZone::UTC && local != &TimeZone::UTC {
        "time.UTC".to_owned()
    } else if zone == local {
        "time.Local".to_owned()
    } else {
        format!("time.Location({:?})", zone.iana_name().unwrap_or_default())
    };
    format!(
        "time.Date({}, time.{}, {}, {}, {}, {}, {}, {location})",
        at.year(),
        month_name(at.month().into()),
        at.day(),
        at.hour(),
        at.minute(),
        at.second(),
        at.subsec_nanosecond()
    )
}

/// `January` for 1.
pub(super) fn month_name(month: i64) -> String {
    let name = usize::try_from(month).ok().and_then(|month| MONTHS.get(month.wrapping_sub(1)));
    name.map_or_else(|| format!("%!Month({month})"), |name| (*name).to_owned())
}

/// `Sunday` for 0.
pub(super) fn weekday_name(day: i64) -> String {
    let name = usize::try_from(day).ok().and_then(|day| DAYS.get(day));
    name.map_or_else(|| format!("%!Weekday({day})"), |name| (*name).to_owned())
}

/// Adds years, months and days, where a day that a month does not have is in the next
/// one: a month after October 31 is December 1. `None` beyond the calendar.
pub(crate) fn add_date(at: DateTime, years: i64, months: i64, days: i64) -> Option<DateTime> {
    let month = i64::from(at.month()) - 1;
    let months = months.checked_add(years.checked_mul(12)?)?.checked_add(month)?;
    let year = i64::from(at.year()).checked_add(months.div_euclid(12))?;
    let month = i8::try_from(months.rem_euclid(12) + 1).ok()?;
    let first = Date::new(i16::try_from(year).ok()?, month, 1).ok()?;
    let days = days.checked_add(i64::from(at.day()) - 1)?;
    let date = first.checked_add(0.days().try_days(days).ok()?).ok()?;
    Some(date.to_datetime(at.time()))
}

/// Adds nanoseconds. `None` beyond the calendar.
pub(super) fn add(time: &GoTime, nanoseconds: i64) -> Option<GoTime> {
    GoTime::since_unix(time.nanoseconds() + i128::from(nanoseconds), time.zone())
}

/// Nanoseconds from `earlier` to `time`, saturating.
pub(super) fn sub(time: &GoTime, earlier: &GoTime) -> i64 {
    let span = time.nanoseconds() - earlier.nanoseconds();
    i64::try_from(span).unwrap_or(if span < 0 { i64::MIN } else { i64::MAX })
}

/// Whether it is Go's zero time.
pub(super) fn is_zero(time: &GoTime) -> bool {
    time.nanoseconds() == -ZERO_TO_UNIX_NANOSECONDS
}

/// The last multiple of `unit` nanoseconds since the year 1, or the nearest one if `rounds`.
pub(super) fn truncate(time: &GoTime, unit: i64, rounds: bool) -> Option<GoTime> {
    let unit = i128::from(unit);
    if unit <= 0 {
        return Some(time.clone());
    }
    let rest = (time.nanoseconds() + ZERO_TO_UNIX_NANOSECONDS).rem_euclid(unit);
    let change = if rounds && rest * 2 >= unit { unit - rest } else { -rest };
    add(time, i64::try_from(change).ok()?)
}

/// A duration in nanoseconds as a multiple of `unit`: truncated towards zero, or, if `rounds`, the
/// nearest, where a half is rounded away from zero.
pub(super) fn truncate_span(span: i64, unit: i64, rounds: bool) -> i64 {
    if unit <= 0 {
        return span;
    }
    let (size, unit) = (i128::from(span).abs(), i128::from(unit));
    let rest = size % unit;
    let size = if rounds && rest * 2 >= unit { size - rest + unit } else { size - rest };
    let limit = if span < 0 { i64::MIN } else { i64::MAX };
    i64::try_from(if span < 0 { -size } else { size }).unwrap_or(limit)
}
