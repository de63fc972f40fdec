//! Dates of a fixed form: a day in numbers or with the name of its month, optionally followed by a
//! time and a zone.

use super::WEEKDAYS;
use crate::template::time::GoTime;
use jiff::Timestamp;
use jiff::civil::{Date, DateTime};
use jiff::tz::{Offset, TimeZone};

/// Forms of a day with a four-digit year. Where the order of numbers is ambiguous, the
/// month comes first.
const DAYS: [&str; 14] = [
    "%Y-%m-%d", "%Y/%m/%d", "%Y.%m.%d", "%Y:%m:%d", "%m/%d/%Y", "%m.%d.%Y", "%d %b %Y", "%d %B %Y",
    "%b %d %Y", "%B %d %Y", "%d-%b-%Y", "%Y-%b-%d", "%d/%b/%Y", "%Y%m%d",
];

/// Forms of a day with a two-digit year, from 1969 on.
const SHORT_DAYS: [&str; 7] =
    ["%m/%d/%y", "%m.%d.%y", "%d-%b-%y", "%d %b %y", "%d %B %y", "%b %d %y", "%B %d %y"];

/// Forms of a time after a day.
const TIMES: [&str; 4] = [" %H:%M:%S%.f", " %H:%M", " %I:%M:%S %p", " %I:%M %p"];

/// Forms with the time inside the date.
const WITH_TIME: [&str; 2] = ["%b %d %H:%M:%S %Y", "%d/%b/%Y:%H:%M:%S"];

/// The first year that has four digits without a leading zero.
const FULL_YEAR_MIN: i16 = 1000;

/// Digits of a full year.
const YEAR_DIGITS: usize = 4;

/// The date, in the zone that the text names, or in `zone`.
pub(super) fn read(text: &str, zone: &TimeZone) -> Option<GoTime> {
    if text.bytes().all(|byte| byte.is_ascii_digit()) {
        return digits(text, zone);
    }
    if let Some(time) = standard(text, zone) {
        return Some(time);
    }
    let text = zone_last(plain(text));
    let (time, offset) = without_zone(&text);
    if let Some(offset) = offset {
        return Some(GoTime::new(civil(time)?, &TimeZone::fixed(offset)));
    }
    let here = |text: &str| Some(GoTime::new(civil(text)?, zone));
    here(&text).or_else(|| {
        // The zone's own name, as in `CET`.
        let (time, name) = text.rsplit_once(' ')?;
        let time = here(time)?;
        let info = zone.to_offset_info(time.timestamp());
        (info.abbreviation() == name).then_some(time)
    })
}

/// A year, a day, a time to the second, or a time since 1970, distinguished by length.
fn digits(text: &str, zone: &TimeZone) -> Option<GoTime> {
    let number: i64 = text.parse().ok()?;
    let since_1970 = match text.len() {
        4 => {
            let year = Date::new(i16::try_from(number).ok()?, 1, 1).ok()?;
            return Some(GoTime::new(year.into(), zone));
        }
        8 => return Some(GoTime::new(Date::strptime("%Y%m%d", text).ok()?.into(), zone)),
        14 => {
            let time = DateTime::strptime("%Y%m%d%H%M%S", text).ok()?;
            return Some(GoTime::new(time, zone));
        }
        10 => Timestamp::from_second(number),
        13 => Timestamp::from_millisecond(number),
        16 => Timestamp::from_microsecond(number),
        19 => Timestamp::from_nanosecond(number.into()),
        _ => return None,
    };
    Some(GoTime::of(&since_1970.ok()?.to_zoned(zone.clone())))
}

/// ISO 8601 and RFC 2822.
fn standard(text: &str, zone: &TimeZone) -> Option<GoTime> {
    let pieces = jiff::fmt::temporal::DateTimeParser::new().parse_pieces(text);
    if let Ok(pieces) = pieces
        && let (Some(time), Some(offset)) = (pieces.time(), pieces.to_numeric_offset())
    {
        let time = DateTime::from_parts(pieces.date(), time);
        return Some(GoTime::new(time, &TimeZone::fixed(offset)));
    }
    if let Ok(time) = text.parse::<DateTime>() {
        return Some(GoTime::new(time, zone));
    }
    jiff::fmt::rfc2822::parse(text).ok().map(|time| GoTime::of(&time))
}

/// The text with single spaces and without decoration: commas, `at`, the day of the week, the `st`
/// of `1st`, an apostrophe before a year.
fn plain(text: &str) -> String {
    let words = text.split([' ', '\t', '\n', '\r']).map(|word| word.trim_end_matches(','));
    let words = words.filter(|word| !word.is_empty()).enumerate();
    let mut kept = Vec::new();
    for (index, word) in words {
        let lower = word.to_ascii_lowercase();
        let is_weekday = |name: &&str| lower == *name || lower == name[..3];
        if index == 0 && WEEKDAYS.iter().any(is_weekday) || lower == "at" {
            continue;
        }
        let word = word.strip_prefix('\'').unwrap_or(word);
        kept.push(without_ordinal(word).replace(',', "."));
    }
    kept.join(" ")
}

/// `Mar 1 10:00:00 2024 UTC` for `Mar 1 10:00:00 UTC 2024`.
fn zone_last(text: String) -> String {
    let mut words: Vec<&str> = text.split(' ').collect();
    let is_digit = |byte: u8| byte.is_ascii_digit();
    match words.as_mut_slice() {
        [.., zone, year]
            if (matches!(*zone, "UTC" | "GMT") || offset(zone).is_some())
                && year.len() == YEAR_DIGITS
                && year.bytes().all(is_digit) =>
        {
            std::mem::swap(zone, year);
            words.join(" ")
        }
        _ => text,
    }
}

/// `1` for `1st`.
fn without_ordinal(word: &str) -> &str {
    let end = word.find(|char: char| !char.is_ascii_digit()).unwrap_or(word.len());
    match word.split_at(end) {
        ("", _) => word,
        (number, "st" | "nd" | "rd" | "th") => number,
        _ => word,
    }
}

/// The text before a zone that is UTC or an offset, and that offset.
fn without_zone(text: &str) -> (&str, Option<Offset>) {
    for utc in [" UTC", " GMT", "Z"] {
        if let Some(rest) = text.strip_suffix(utc) {
            let rest = rest.strip_suffix(" +0000").unwrap_or(rest);
            return (rest.trim_end(), Some(Offset::UTC));
        }
    }
    let Some(time) = text.find(':') else { return (text, None) };
    let Some(sign) = text.rfind(['+', '-']).filter(|sign| *sign > time) else {
        return (text, None);
    };
    match offset(&text[sign..]) {
        Some(offset) => (text[..sign].trim_end(), Some(offset)),
        None => (text, None),
    }
}

/// `+0100`, `+01:00`.
fn offset(text: &str) -> Option<Offset> {
    let (sign, digits) = text.split_at_checked(1).filter(|(sign, _)| matches!(*sign, "+" | "-"))?;
    let digits = digits.replace(':', "");
    let (hours, minutes) = digits.split_at_checked(2).filter(|_| digits.len() == 4)?;
    let seconds = hours.parse::<i32>().ok()? * 3600 + minutes.parse::<i32>().ok()? * 60;
    Offset::from_seconds(if sign == "-" { -seconds } else { seconds }).ok()
}

/// A day, optionally with a time.
fn civil(text: &str) -> Option<DateTime> {
    let text = &with_blank(text);
    let mut numbers = text.split(|char: char| !char.is_ascii_digit());
    let has_year = numbers.any(|number| number.len() >= YEAR_DIGITS);
    let days: &[&str] = if has_year { &DAYS } else { &SHORT_DAYS };
    let day_and_time = days.iter().find_map(|day| {
        let whole = Date::strptime(day, text).ok().map(DateTime::from);
        whole.or_else(|| {
            TIMES.iter().find_map(|time| DateTime::strptime(format!("{day}{time}"), text).ok())
        })
    });
    let mixed = || WITH_TIME.iter().find_map(|form| DateTime::strptime(form, text).ok());
    // The year must have four digits; the parser would accept `20`.
    let is_full = |time: &DateTime| time.year() >= FULL_YEAR_MIN;
    day_and_time.or_else(mixed).filter(is_full).or_else(|| month(text))
}

/// The first day of a month such as `2024-03` or `2024/03`.
fn month(text: &str) -> Option<DateTime> {
    let (year, month) =
        text.split_once(['-', '/']).filter(|(year, _)| year.len() == YEAR_DIGITS)?;
    let date = Date::new(year.parse().ok()?, month.parse().ok()?, 1).ok()?;
    Some(date.into())
}

/// Replaces the `T` between a day and a time by a space.
fn with_blank(text: &str) -> String {
    match text.split_once(['T', 't']) {
        Some((day, time))
            if day.ends_with(|char: char| char.is_ascii_digit())
                && time.starts_with(|char: char| char.is_ascii_digit()) =>
        {
            format!("{day} {time}")
        }
        _ => text.to_owned(),
    }
}
