//! Dates as people write them.

use jiff::civil::{Date, DateTime};
use jiff::fmt::strtime;
use jiff::tz::TimeZone;
use jiff::{Span, Timestamp, ToSpan, Zoned};

/// What a date can be, for people.
pub(super) const EXPECTED: &str =
    "a date such as 2024-01-31, 2024-01-31T14:30:00Z, 31 Jan 2024, today or 3 days ago";

/// Forms of a day, besides ISO 8601's.
const DAYS: [&str; 10] = [
    "%Y/%m/%d",
    "%m/%d/%Y",
    "%Y%m%d",
    "%d %b %Y",
    "%b %d, %Y",
    "%b %d %Y",
    "%d %B %Y",
    "%B %d, %Y",
    "%B %d %Y",
    "%d.%m.%Y",
];

/// Forms of a time after a day, with what stands between.
const TIMES: [&str; 4] = [" %H:%M:%S", " %H:%M", " %I:%M:%S %p", " %I:%M %p"];

/// Bytes a date may have; the longest form has far fewer.
const BYTES_MAX: usize = 100;

/// Whether the text can be read as a date.
pub(super) fn is_date(text: &str) -> bool {
    rfc3339(text, &Zoned::new(Timestamp::UNIX_EPOCH, TimeZone::UTC)).is_some()
}

/// The date as RFC 3339. What is relative counts from `now`; what names no zone is in `now`'s.
pub(super) fn rfc3339(text: &str, now: &Zoned) -> Option<String> {
    let text = text.trim();
    if text.len() > BYTES_MAX {
        return None;
    }
    let zone = now.time_zone();
    let zoned = timestamp(text)
        .map(|time| time.to_zoned(TimeZone::UTC))
        .or_else(|| with_zone(text))
        .or_else(|| without_zone(text)?.to_zoned(zone.clone()).ok())
        .or_else(|| relative(text, now))?;
    let out = strtime::format("%Y-%m-%dT%H:%M:%S%.f%:z", &zoned).ok()?;
    Some(out.strip_suffix("+00:00").map(|time| format!("{time}Z")).unwrap_or(out))
}

/// Seconds, or milliseconds, since 1970, as they are known by their lengths.
fn timestamp(text: &str) -> Option<Timestamp> {
    if !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let number = text.parse().ok()?;
    match text.len() {
        10 => Timestamp::from_second(number).ok(),
        13 => Timestamp::from_millisecond(number).ok(),
        _ => None,
    }
}

fn with_zone(text: &str) -> Option<Zoned> {
    if let Ok(pieces) = jiff::fmt::temporal::DateTimeParser::new().parse_pieces(text)
        && let (Some(time), Some(offset)) = (pieces.time(), pieces.to_numeric_offset())
    {
        let zone = TimeZone::fixed(offset);
        return DateTime::from_parts(pieces.date(), time).to_zoned(zone).ok();
    }
    jiff::fmt::rfc2822::parse(text).ok()
}

fn without_zone(text: &str) -> Option<DateTime> {
    if let Ok(time) = text.parse::<DateTime>() {
        return Some(time);
    }
    DAYS.iter().find_map(|day| {
        let whole = Date::strptime(day, text).ok().map(DateTime::from);
        whole.or_else(|| {
            TIMES.iter().find_map(|time| DateTime::strptime(format!("{day}{time}"), text).ok())
        })
    })
}

/// `today`, `3 days ago`, `in 2 weeks`, `next month`.
fn relative(text: &str, now: &Zoned) -> Option<Zoned> {
    let text = text.to_lowercase();
    let words: Vec<&str> = text.split_whitespace().collect();
    let midnight = |days: i64| now.start_of_day().ok()?.checked_add(days.days()).ok();
    match words.as_slice() {
        ["now"] => Some(now.clone()),
        ["today"] => midnight(0),
        ["yesterday"] => midnight(-1),
        ["tomorrow"] => midnight(1),
        [count, unit, "ago"] => now.checked_sub(span(count, unit)?).ok(),
        ["in", count, unit] | [count, unit, "from", "now"] => {
            now.checked_add(span(count, unit)?).ok()
        }
        ["last", unit] => now.checked_sub(span("1", unit)?).ok(),
        ["next", unit] => now.checked_add(span("1", unit)?).ok(),
        _ => None,
    }
}

/// Counts that are written as words.
const COUNTS: [(&str, i64); 12] = [
    ("a", 1),
    ("an", 1),
    ("one", 1),
    ("two", 2),
    ("three", 3),
    ("four", 4),
    ("five", 5),
    ("six", 6),
    ("seven", 7),
    ("eight", 8),
    ("nine", 9),
    ("ten", 10),
];

fn span(count: &str, unit: &str) -> Option<Span> {
    let word = COUNTS.iter().find(|(word, _)| *word == count).map(|(_, count)| *count);
    let count: i64 = word.or_else(|| count.parse().ok())?;
    let span = Span::new();
    let span = match unit.strip_suffix('s').unwrap_or(unit) {
        "second" => span.try_seconds(count),
        "minute" => span.try_minutes(count),
        "hour" => span.try_hours(count),
        "day" => span.try_days(count),
        "week" => span.try_weeks(count),
        "month" => span.try_months(count),
        "year" => span.try_years(count),
        _ => return None,
    };
    span.ok()
}
