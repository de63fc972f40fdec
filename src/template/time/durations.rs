//! Formats and parses durations like Go: <https://pkg.go.dev/time#ParseDuration>.

use std::fmt::Write;

/// Nanoseconds of a second.
pub(in crate::template) const SECOND: i64 = 1_000_000_000;

const HOUR: i64 = 3600 * SECOND;
const DAY: i64 = 24 * HOUR;

/// The units of Go, in nanoseconds. Of two that match, the first one is used.
const UNITS: [(&str, i64); 8] = [
    ("ns", 1),
    ("us", 1_000),
    ("µs", 1_000),
    ("μs", 1_000),
    ("ms", 1_000_000),
    ("s", SECOND),
    ("m", 60 * SECOND),
    ("h", HOUR),
];

/// The units that durations are rounded to, in nanoseconds. A month has 30 days.
const ROUND: [(&str, i64); 6] = [
    ("y", 365 * DAY),
    ("mo", 30 * DAY),
    ("d", DAY),
    ("h", HOUR),
    ("m", 60 * SECOND),
    ("s", SECOND),
];

/// Digits after the point that count: a billionth of an hour is far less than a nanosecond.
const FRACTION_DIGITS_MAX: usize = 15;

/// Nanoseconds of a duration such as `-1.5h` or `2h45m`.
pub(in crate::template) fn read(text: &str) -> Option<i64> {
    let (sign, rest) = match text.split_at_checked(1) {
        Some(("-", rest)) => (-1, rest),
        Some(("+", rest)) => (1, rest),
        _ => (1, text),
    };
    if rest == "0" {
        return Some(0);
    }
    let (mut rest, mut total) = (Some(rest).filter(|rest| !rest.is_empty())?, 0_i64);
    while !rest.is_empty() {
        let end = rest.find(|char: char| !char.is_ascii_digit() && char != '.')?;
        let (number, after) = rest.split_at(end);
        let (unit, size) = UNITS.iter().find(|(unit, _)| after.starts_with(unit))?;
        total = total.checked_add(times(number, *size)?)?;
        rest = &after[unit.len()..];
    }
    Some(sign * total)
}

/// A number, with or without a point, times a unit.
fn times(number: &str, size: i64) -> Option<i64> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() && fraction.is_empty() || fraction.contains('.') {
        return None;
    }
    let whole: i64 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    let fraction = &fraction[..fraction.len().min(FRACTION_DIGITS_MAX)];
    let places = u32::try_from(fraction.len()).ok()?;
    let part: i128 = if fraction.is_empty() { 0 } else { fraction.parse().ok()? };
    let part = i64::try_from(part * i128::from(size) / 10_i128.pow(places)).ok()?;
    whole.checked_mul(size)?.checked_add(part)
}

/// As Go's `Duration.String`: `1h0m5.5s`.
pub(in crate::template) fn written(nanoseconds: i64) -> String {
    let size = nanoseconds.unsigned_abs();
    let second = SECOND.unsigned_abs();
    let mut out = if nanoseconds < 0 { "-".to_owned() } else { String::new() };
    if size < second {
        out.push_str(&match size {
            0 => "0s".to_owned(),
            1..1_000 => format!("{size}ns"),
            1_000..1_000_000 => decimal(size, 1_000) + "µs",
            _ => decimal(size, 1_000_000) + "ms",
        });
        return out;
    }
    let (minutes, rest) = (size / (60 * second), size % (60 * second));
    let (hours, minutes) = (minutes / 60, minutes % 60);
    // Writing into a string can't fail.
    if hours > 0 {
        write!(out, "{hours}h").unwrap_or_default();
    }
    if hours > 0 || minutes > 0 {
        write!(out, "{minutes}m").unwrap_or_default();
    }
    out + &decimal(rest, second) + "s"
}

/// A quotient without trailing zeros; `unit` is a power of ten.
fn decimal(number: u64, unit: u64) -> String {
    let places = unit.ilog10() as usize;
    let digits = format!("{}.{:0places$}", number / unit, number % unit);
    digits.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// The largest unit alone: `3mo`.
pub(in crate::template) fn rounded(nanoseconds: i64) -> String {
    let size = nanoseconds.unsigned_abs();
    let unit = ROUND.iter().find(|(_, unit)| size > unit.unsigned_abs());
    unit.map_or("0s".to_owned(), |(name, unit)| format!("{}{name}", size / unit.unsigned_abs()))
}
