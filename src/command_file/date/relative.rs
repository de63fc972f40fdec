//! Dates in words, relative to now: `last monday`, `3 days ago`, `tomorrow at 5pm`. Past and next
//! days and weeks begin at midnight; spans from now keep the time, as in `go-naturaldate`. Words
//! that it ignores, so that the result is now, are refused here.

use super::WEEKDAYS;
use crate::template::time::{MONTHS, add_date};
use jiff::civil::{Time, Weekday};
use jiff::{SignedDuration, Span, ToSpan, Zoned};

/// Words without effect.
const FILLERS: [&str; 7] = ["at", "on", "the", "this", "of", "and", "right"];

/// Numbers written as words.
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

const MONTHS_OF_YEAR: i64 = 12;

/// The date that the words describe; `None` if one of them is unknown.
pub(super) fn read(text: &str, now: &Zoned) -> Option<Zoned> {
    let text = text.to_lowercase().replace(',', " ");
    let words: Vec<&str> = text.split_whitespace().collect();
    let mut reader = Reader { words: &words, at: now.clone(), time: None };
    if words.is_empty() || words.iter().all(|word| FILLERS.contains(word)) {
        return None;
    }
    while !reader.words.is_empty() {
        reader.step()?;
    }
    match reader.time {
        Some(time) => reader.at.with().time(time).build().ok(),
        None => Some(reader.at),
    }
}

/// The direction of a span.
#[derive(Clone, Copy)]
enum Way {
    Back,
    Forth,
    /// Forward, without rounding to midnight.
    FromNow,
}

#[derive(Clone, Copy)]
enum Unit {
    Second,
    Minute,
    Hour,
    Day,
    Week,
    Month,
    Year,
}

/// Parses the words one after another.
struct Reader<'w> {
    words: &'w [&'w str],
    at: Zoned,
    /// The time of day, which is applied at the end, wherever it is in the text.
    time: Option<Time>,
}

impl<'w> Reader<'w> {
    fn step(&mut self) -> Option<()> {
        let (word, rest) = self.words.split_first()?;
        match (*word, rest) {
            ("now", _) => self.go_on(1, self.at.clone()),
            ("today", _) => self.go_on(1, midnight(&self.at, 0)?),
            ("yesterday", _) => self.go_on(1, midnight(&self.at, -1)?),
            ("tomorrow", _) => self.go_on(1, midnight(&self.at, 1)?),
            ("noon", _) => self.clock(1, Time::constant(12, 0, 0, 0)),
            ("midnight", _) => self.clock(1, Time::midnight()),
            ("last" | "past" | "previous", rest) => self.beside(rest, Way::Back),
            ("next", rest) => self.beside(rest, Way::Forth),
            ("in", rest) => self.ahead(rest),
            ("this", [word, ..]) if unit(word).is_some() => self.go_on(2, self.at.clone()),
            ("at", [hour, rest @ ..]) if hour.parse::<i8>().is_ok() => {
                let (time, length) = clock(hour, rest, true)?;
                self.clock(1 + length, time)
            }
            (word, _) if FILLERS.contains(&word) => self.go_on(1, self.at.clone()),
            (word, rest) => self.other(word, rest),
        }
    }

    /// A number, a day of the week or a month, and what follows it.
    fn other(&mut self, word: &str, rest: &[&str]) -> Option<()> {
        if let Some((time, length)) = clock(word, rest, false) {
            return self.clock(length, time);
        }
        if let Some(day) = ordinal(word) {
            let at = self.at.with().day(day).build().ok()?;
            return self.go_on(1, at);
        }
        if let (Some(count), [word, rest @ ..]) = (count(word), rest) {
            let (way, length) = match rest {
                ["ago", ..] => (Way::Back, 3),
                ["from", "now", ..] => (Way::FromNow, 4),
                _ => (Way::Back, 2),
            };
            let at = moved(&self.at, count, unit(word)?, way)?;
            return self.go_on(length, at);
        }
        let at = named(&self.at, word, Way::Back)?;
        self.go_on(1, at)
    }

    /// The words after `last` or `next`.
    fn beside(&mut self, rest: &[&str], way: Way) -> Option<()> {
        let (word, rest) = rest.split_first()?;
        if let Some(at) = named(&self.at, word, way) {
            return self.go_on(2, at);
        }
        if let Some(unit) = unit(word) {
            return self.go_on(2, moved(&self.at, 1, unit, way)?);
        }
        let (count, unit) = (count(word)?, unit(rest.first()?)?);
        self.go_on(3, moved(&self.at, count, unit, way)?)
    }

    /// The words after `in`.
    fn ahead(&mut self, rest: &[&str]) -> Option<()> {
        let [word, unit_word, rest @ ..] = rest else { return None };
        let at = moved(&self.at, count(word)?, unit(unit_word)?, Way::FromNow)?;
        self.go_on(if rest.starts_with(&["from", "now"]) { 5 } else { 3 }, at)
    }

    fn go_on(&mut self, length: usize, at: Zoned) -> Option<()> {
        self.words = self.words.get(length..)?;
        self.at = at;
        Some(())
    }

    /// Sets the time of day; `None` if it was already set.
    fn clock(&mut self, length: usize, time: Time) -> Option<()> {
        self.words = self.words.get(length..)?;
        self.time.replace(time).is_none().then_some(())
    }
}

fn midnight(at: &Zoned, days: i64) -> Option<Zoned> {
    at.checked_add(days.days()).ok()?.start_of_day().ok()
}

fn count(word: &str) -> Option<i64> {
    let named = COUNTS.iter().find(|(name, _)| *name == word).map(|(_, count)| *count);
    named.or_else(|| word.parse().ok().filter(|count| *count >= 0))
}

fn unit(word: &str) -> Option<Unit> {
    Some(match word.strip_suffix('s').unwrap_or(word) {
        "second" => Unit::Second,
        "minute" => Unit::Minute,
        "hour" => Unit::Hour,
        "day" => Unit::Day,
        "week" => Unit::Week,
        "month" => Unit::Month,
        "year" => Unit::Year,
        _ => return None,
    })
}

/// The date this many units away.
fn moved(at: &Zoned, count: i64, unit: Unit, way: Way) -> Option<Zoned> {
    let (count, is_kept) = match way {
        Way::Back => (-count, false),
        Way::Forth => (count, false),
        Way::FromNow => (count, true),
    };
    let seconds =
        |seconds: i64| at.checked_add(SignedDuration::from_secs(count.checked_mul(seconds)?)).ok();
    let days = |days: i64| {
        let at = at.checked_add(Span::new().try_days(count.checked_mul(days)?).ok()?).ok()?;
        if is_kept { Some(at) } else { at.start_of_day().ok() }
    };
    match unit {
        Unit::Second => seconds(1),
        Unit::Minute => seconds(60),
        Unit::Hour => seconds(3600),
        Unit::Day => days(1),
        Unit::Week => days(7),
        Unit::Month => months_on(at, count),
        Unit::Year => months_on(at, count.checked_mul(MONTHS_OF_YEAR)?),
    }
}

fn months_on(at: &Zoned, months: i64) -> Option<Zoned> {
    add_date(at.datetime(), 0, months, 0)?.to_zoned(at.time_zone().clone()).ok()
}

/// The nearest day of the week or month of this name before or after the date, excluding the date
/// itself.
fn named(at: &Zoned, word: &str, way: Way) -> Option<Zoned> {
    let is_back = matches!(way, Way::Back);
    // From 1 to `round` steps on.
    let steps = |from: i64, to: i64, round: i64| {
        let away = (if is_back { from - to } else { to - from }).rem_euclid(round);
        let away = if away == 0 { round } else { away };
        if is_back { -away } else { away }
    };
    if let Some(day) = WEEKDAYS.iter().position(|name| *name == word) {
        let day = Weekday::from_monday_zero_offset(i8::try_from(day).ok()?).ok()?;
        let day = i64::from(day.to_monday_zero_offset());
        let today = i64::from(at.weekday().to_monday_zero_offset());
        return midnight(at, steps(today, day, 7));
    }
    let month = MONTHS.iter().position(|name| name.eq_ignore_ascii_case(word))?;
    let month = i64::try_from(month).ok()? + 1;
    let at = at.with().subsec_nanosecond(0).build().ok()?;
    months_on(&at, steps(at.month().into(), month, MONTHS_OF_YEAR))
}

/// `23` for `23rd`.
fn ordinal(word: &str) -> Option<i8> {
    let end = word.find(|char: char| !char.is_ascii_digit())?;
    match word.split_at(end) {
        (number, "st" | "nd" | "rd" | "th") => number.parse().ok(),
        _ => None,
    }
}

/// A time of day such as `15:04`, `15:04:05`, `5pm` or `5:30 pm`, and its number of words. A plain
/// number counts as one if `is_bare`.
fn clock(word: &str, rest: &[&str], is_bare: bool) -> Option<(Time, usize)> {
    let attached = ["am", "pm"].iter().find_map(|half| Some((word.strip_suffix(half)?, *half)));
    let (digits, half, length) = match (attached, rest) {
        (Some((digits, half)), _) => (digits, Some(half), 1),
        (None, [half @ ("am" | "pm"), ..]) => (word, Some(*half), 2),
        (None, _) => (word, None, 1),
    };
    let mut numbers = digits.split(':').map(|number| number.parse::<i8>().ok());
    let hour = numbers.next()??;
    let minute = numbers.next();
    if minute.is_none() && half.is_none() && !is_bare {
        return None;
    }
    let minute = minute.unwrap_or(Some(0))?;
    let second = numbers.next().unwrap_or(Some(0))?;
    let hour = match half {
        Some(_) if !(1..=12).contains(&hour) => return None,
        Some("am") => hour % 12,
        Some(_) => hour % 12 + 12,
        None => hour,
    };
    let time = Time::new(hour, minute, second, 0).ok()?;
    numbers.next().is_none().then_some((time, length))
}
