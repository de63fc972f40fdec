//! Wall-clock times, and Go's layouts, which are written as one reference time:
//! <https://pkg.go.dev/time#pkg-constants>.

use jiff::Zoned;
use jiff::civil::{Date, Time};
use jiff::tz::{Offset, TimeZone};

/// A point in time as a wall clock shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::template) struct Moment {
    year: i64,
    month: u32,
    day: u32,
    hour: u32,
    minute: u32,
    second: u32,
    nanosecond: u32,
    /// Minutes by which the clock is ahead of UTC.
    offset_minutes: i32,
    /// `CET`; empty if only the offset is known.
    zone_name: String,
}

pub(super) const MONTHS: [&str; 12] = [
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

pub(super) const DAYS: [&str; 7] =
    ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];

/// The elements of layouts; of two that match, the first is used.
const ELEMENTS: [&str; 31] = [
    "January", "Jan", "Monday", "Mon", "MST", "2006", "-07:00", "-0700", "-07", "Z07:00", "Z0700",
    "__2", "002", "01", "02", "03", "04", "05", "06", "_2", "15", "PM", "pm", "1", "2", "3", "4",
    "5", ".0", ",0", ".9",
];

impl Moment {
    /// Parses RFC 3339, or a day alone.
    pub(in crate::template) fn read(text: &str) -> Option<Self> {
        let (date, time) = match text.split_once(['T', 't', ' ']) {
            Some((date, time)) => (date, Some(time)),
            None => (text, None),
        };
        let [year, month, day] = numbers(date, '-', [4, 2, 2])?;
        let day_only = Self {
            year: i64::from(year),
            month,
            day,
            hour: 0,
            minute: 0,
            second: 0,
            nanosecond: 0,
            offset_minutes: 0,
            zone_name: String::new(),
        };
        let moment = match time {
            Some(time) => day_only.at(time)?,
            None => day_only,
        };
        let is_day = (1..=12).contains(&month) && (1..=days_of(year, month)).contains(&day);
        let is_time = moment.hour < 24 && moment.minute < 60 && moment.second < 60;
        (is_day && is_time).then_some(moment)
    }

    fn at(self, text: &str) -> Option<Self> {
        let zone = text.find(['Z', 'z', '+', '-'])?;
        let (time, zone) = text.split_at(zone);
        let (time, fraction) = time.split_once('.').unwrap_or((time, "0"));
        let [hour, minute, second] = numbers(time, ':', [2, 2, 2])?;
        let is_fraction = (1..=9).contains(&fraction.len());
        let nanosecond = is_fraction.then(|| format!("{fraction:0<9}"))?;
        let offset_minutes = match zone.split_at(1) {
            ("Z" | "z", "") => 0,
            (sign @ ("+" | "-"), zone) => {
                let [hours, minutes] = numbers(zone, ':', [2, 2])?;
                let minutes = i32::try_from(hours * 60 + minutes).ok()?;
                if sign == "-" { -minutes } else { minutes }
            }
            _ => return None,
        };
        let nanosecond = digits(&nanosecond)?;
        Some(Self { hour, minute, second, nanosecond, offset_minutes, ..self })
    }

    /// The wall-clock time in that zone.
    pub(in crate::template) fn of(zoned: &Zoned) -> Self {
        let unsigned = |number: i8| u32::from(number.unsigned_abs());
        Self {
            year: zoned.year().into(),
            month: unsigned(zoned.month()),
            day: unsigned(zoned.day()),
            hour: unsigned(zoned.hour()),
            minute: unsigned(zoned.minute()),
            second: unsigned(zoned.second()),
            nanosecond: u32::try_from(zoned.subsec_nanosecond()).unwrap_or(0),
            offset_minutes: zoned.offset().seconds() / 60,
            zone_name: zone_name(zoned),
        }
    }

    /// The point in time, for calculations; `None` at an end of the calendar.
    pub(in crate::template) fn zoned(&self) -> Option<Zoned> {
        let short = |number: u32| i8::try_from(number).ok();
        let date = Date::new(i16::try_from(self.year).ok()?, short(self.month)?, short(self.day)?);
        let nanosecond = i32::try_from(self.nanosecond).ok()?;
        let (hour, minute, second) = (short(self.hour)?, short(self.minute)?, short(self.second)?);
        let time = Time::new(hour, minute, second, nanosecond).ok()?;
        let offset = Offset::from_seconds(self.offset_minutes * 60).ok()?;
        date.ok()?.to_datetime(time).to_zoned(TimeZone::fixed(offset)).ok()
    }

    /// Whether the year has four digits, as RFC 3339 requires.
    pub(in crate::template) fn is_common(&self) -> bool {
        (0..=9999).contains(&self.year)
    }

    /// The time as the layout without changes.
    pub(in crate::template) fn rfc3339(&self) -> String {
        self.written("2006-01-02T15:04:05.999999999Z07:00")
    }

    /// Formats the time in a layout.
    pub(in crate::template) fn written(&self, layout: &str) -> String {
        let mut out = String::new();
        let mut rest = layout;
        while let Some(char) = rest.chars().next() {
            let element = ELEMENTS.iter().find(|element| starts(rest, element, &out));
            if let Some(element) = element {
                let length = self.write(&mut out, element, rest);
                rest = &rest[length..];
            } else {
                out.push(char);
                rest = &rest[char.len_utf8()..];
            }
        }
        out
    }

    /// Writes an element. Returns how much of the layout was used.
    fn write(&self, out: &mut String, element: &str, layout: &str) -> usize {
        let month = MONTHS.get(self.month as usize - 1).copied().unwrap_or_default();
        let day = DAYS[self.weekday()];
        let hour = if self.hour.is_multiple_of(12) { 12 } else { self.hour % 12 };
        let is_morning = self.hour < 12;
        out.push_str(&match element {
            "January" => month.to_owned(),
            "Jan" => month[..3].to_owned(),
            "Monday" => day.to_owned(),
            "Mon" => day[..3].to_owned(),
            "2006" => format!("{:04}", self.year),
            "06" => format!("{:02}", self.year % 100),
            "01" => format!("{:02}", self.month),
            "1" => self.month.to_string(),
            "02" => format!("{:02}", self.day),
            "_2" => format!("{:2}", self.day),
            "2" => self.day.to_string(),
            "002" => format!("{:03}", self.day_of_year()),
            "__2" => format!("{:3}", self.day_of_year()),
            "15" => format!("{:02}", self.hour),
            "03" => format!("{hour:02}"),
            "3" => hour.to_string(),
            "04" => format!("{:02}", self.minute),
            "4" => self.minute.to_string(),
            "05" => format!("{:02}", self.second),
            "5" => self.second.to_string(),
            "PM" => (if is_morning { "AM" } else { "PM" }).to_owned(),
            "pm" => (if is_morning { "am" } else { "pm" }).to_owned(),
            "MST" if !self.zone_name.is_empty() => self.zone_name.clone(),
            "MST" if self.offset_minutes == 0 => "UTC".to_owned(),
            "Z07:00" | "Z0700" if self.offset_minutes == 0 => "Z".to_owned(),
            "-07:00" | "Z07:00" => self.zone(":"),
            "-0700" | "Z0700" | "MST" => self.zone(""),
            "-07" => self.zone("")[..3].to_owned(),
            _ => return self.write_fraction(out, layout),
        });
        element.len()
    }

    /// `.000` with this many digits, `.999` without trailing zeros.
    fn write_fraction(&self, out: &mut String, layout: &str) -> usize {
        let places = layout[1..].chars().take_while(|char| *char == layout_digit(layout)).count();
        let digits = format!("{:09}", self.nanosecond);
        let digits = &digits[..places.min(9)];
        if layout_digit(layout) == '0' {
            out.push_str(&layout[..1]);
            out.push_str(digits);
        } else if !digits.trim_end_matches('0').is_empty() {
            out.push_str(&layout[..1]);
            out.push_str(digits.trim_end_matches('0'));
        }
        1 + places
    }

    fn zone(&self, between: &str) -> String {
        let sign = if self.offset_minutes < 0 { '-' } else { '+' };
        let minutes = self.offset_minutes.unsigned_abs();
        format!("{sign}{:02}{between}{:02}", minutes / 60, minutes % 60)
    }

    fn day_of_year(&self) -> u32 {
        let year = u32::try_from(self.year).unwrap_or(0);
        (1..self.month).map(|month| days_of(year, month)).sum::<u32>() + self.day
    }

    /// Days since a Sunday, by counting all days since the year 0.
    fn weekday(&self) -> usize {
        let before = self.year - 1;
        let leaps = before.div_euclid(4) - before.div_euclid(100) + before.div_euclid(400);
        let days = before * 365 + leaps + i64::from(self.day_of_year());
        usize::try_from(days.rem_euclid(7)).unwrap_or(0)
    }
}

/// The name of the zone at that time. An offset alone has none.
fn zone_name(zoned: &Zoned) -> String {
    let zone = zoned.time_zone();
    if zone.is_unknown() || zone.to_fixed_offset().is_ok_and(|offset| offset == Offset::UTC) {
        return "UTC".to_owned();
    }
    if zone.iana_name().is_none() && zone.to_fixed_offset().is_ok() {
        return String::new();
    }
    zone.to_offset_info(zoned.timestamp()).abbreviation().to_owned()
}

fn layout_digit(layout: &str) -> char {
    layout.chars().nth(1).unwrap_or('0')
}

/// Whether `layout` continues with this element. A fraction only follows a digit, and is not
/// followed by further digits.
fn starts(layout: &str, element: &str, before: &str) -> bool {
    let is_there = layout.starts_with(element);
    match element {
        ".0" | ",0" | ".9" => {
            let after = layout.get(1..).unwrap_or_default();
            let end = after.trim_start_matches(layout_digit(layout)).chars().next();
            is_there
                && before.ends_with(|char: char| char.is_ascii_digit())
                && !end.is_some_and(|end| end.is_ascii_digit())
        }
        "Jan" | "Mon" => {
            let next = layout.chars().nth(3);
            is_there && !(element == "Mon" && next.is_some_and(|char| char.is_lowercase()))
        }
        _ => is_there,
    }
}

fn days_of(year: u32, month: u32) -> u32 {
    let is_leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    match month {
        2 if is_leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

fn digits(text: &str) -> Option<u32> {
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
    if is_number { text.parse().ok() } else { None }
}

/// Numbers of the given numbers of digits.
fn numbers<const N: usize>(text: &str, between: char, lengths: [usize; N]) -> Option<[u32; N]> {
    let mut found = [0; N];
    let mut parts = text.split(between);
    for (number, length) in found.iter_mut().zip(lengths) {
        *number = digits(parts.next().filter(|part| part.len() == length)?)?;
    }
    parts.next().is_none().then_some(found)
}
