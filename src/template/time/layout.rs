//! Wall-clock times, and Go's layouts, which are written as one reference time:
//! <https://pkg.go.dev/time#pkg-constants>.

use super::{GoTime, month_name, weekday_name};
use jiff::civil::{Date, DateTime, Time};
use jiff::tz::{Offset, TimeZone};

/// A point in time as a wall clock shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::template) struct Moment {
    at: DateTime,
    /// Seconds by which the clock is ahead of UTC.
    offset_seconds: i32,
    /// `CET`; empty if only the offset is known.
    zone_name: String,
}

/// The elements of layouts; of two that match, the first is used.
const ELEMENTS: [&str; 37] = [
    "January",
    "Jan",
    "Monday",
    "Mon",
    "MST",
    "2006",
    "-070000",
    "-07:00:00",
    "-0700",
    "-07:00",
    "-07",
    "Z070000",
    "Z07:00:00",
    "Z0700",
    "Z07:00",
    "Z07",
    "__2",
    "002",
    "01",
    "02",
    "03",
    "04",
    "05",
    "06",
    "_2",
    "15",
    "PM",
    "pm",
    "1",
    "2",
    "3",
    "4",
    "5",
    ".0",
    ",0",
    ".9",
    ",9",
];

impl Moment {
    /// Parses RFC 3339, or a day alone.
    pub(in crate::template) fn read(text: &str) -> Option<Self> {
        let (date, time) = match text.split_once(['T', 't', ' ']) {
            Some((date, time)) => (date, Some(time)),
            None => (text, None),
        };
        let [year, month, day] = numbers(date, '-', [4, 2, 2])?;
        let date = Date::new(i16::try_from(year).ok()?, small(month)?, small(day)?).ok()?;
        let (time, offset_seconds) = match time {
            Some(time) => clock(time)?,
            None => (Time::midnight(), 0),
        };
        Some(Self { at: date.to_datetime(time), offset_seconds, zone_name: String::new() })
    }

    /// The wall-clock time in its zone.
    pub(in crate::template) fn of(time: &GoTime) -> Self {
        let offset_seconds = time.offset().seconds();
        Self { at: time.at(), offset_seconds, zone_name: zone_name(time) }
    }

    /// The point in time, for calculations; `None` if no zone has such an offset.
    pub(in crate::template) fn time(&self) -> Option<GoTime> {
        let offset = Offset::from_seconds(self.offset_seconds).ok()?;
        Some(GoTime::new(self.at, &TimeZone::fixed(offset)))
    }

    /// Whether the year has four digits, as RFC 3339 requires.
    pub(in crate::template) fn is_common(&self) -> bool {
        self.at.year() >= 0
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
            let element = ELEMENTS.iter().find(|element| starts(rest, element));
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
        let at = self.at;
        let month = month_name(at.month().into());
        let day = weekday_name(at.weekday().to_sunday_zero_offset().into());
        let hour = if at.hour() % 12 == 0 { 12 } else { at.hour() % 12 };
        let is_morning = at.hour() < 12;
        out.push_str(&match element {
            "January" => month,
            "Jan" => month[..3].to_owned(),
            "Monday" => day,
            "Mon" => day[..3].to_owned(),
            "2006" => format!("{:04}", at.year()),
            "06" => format!("{:02}", at.year() % 100),
            "01" => format!("{:02}", at.month()),
            "1" => at.month().to_string(),
            "02" => format!("{:02}", at.day()),
            "_2" => format!("{:2}", at.day()),
            "2" => at.day().to_string(),
            "002" => format!("{:03}", at.day_of_year()),
            "__2" => format!("{:3}", at.day_of_year()),
            "15" => format!("{:02}", at.hour()),
            "03" => format!("{hour:02}"),
            "3" => hour.to_string(),
            "04" => format!("{:02}", at.minute()),
            "4" => at.minute().to_string(),
            "05" => format!("{:02}", at.second()),
            "5" => at.second().to_string(),
            "PM" => (if is_morning { "AM" } else { "PM" }).to_owned(),
            "pm" => (if is_morning { "am" } else { "pm" }).to_owned(),
            "MST" if !self.zone_name.is_empty() => self.zone_name.clone(),
            "MST" if self.offset_seconds == 0 => "UTC".to_owned(),
            _ if element.starts_with('Z') && self.offset_seconds == 0 => "Z".to_owned(),
            "-07:00:00" | "Z07:00:00" => self.zone(":") + &format!(":{:02}", self.odd_seconds()),
            "-070000" | "Z070000" => self.zone("") + &format!("{:02}", self.odd_seconds()),
            "-07:00" | "Z07:00" => self.zone(":"),
            "-0700" | "Z0700" | "MST" => self.zone(""),
            "-07" | "Z07" => self.zone("")[..3].to_owned(),
            _ => return self.write_fraction(out, layout),
        });
        element.len()
    }

    /// `.000` with this many digits, `.999` without trailing zeros.
    fn write_fraction(&self, out: &mut String, layout: &str) -> usize {
        let places = layout[1..].chars().take_while(|char| *char == layout_digit(layout)).count();
        let digits = format!("{:09}", self.at.subsec_nanosecond());
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

    /// Hours and whole minutes of the offset: the clocks before standard time were ahead by odd seconds.
    fn zone(&self, between: &str) -> String {
        let minutes = self.offset_seconds / 60;
        let sign = if minutes < 0 { '-' } else { '+' };
        let minutes = minutes.unsigned_abs();
        format!("{sign}{:02}{between}{:02}", minutes / 60, minutes % 60)
    }

    /// The seconds of the offset beyond whole minutes.
    fn odd_seconds(&self) -> u32 {
        self.offset_seconds.unsigned_abs() % 60
    }
}

/// A time of day, and the seconds by which its zone is ahead of UTC.
fn clock(text: &str) -> Option<(Time, i32)> {
    let zone = text.find(['Z', 'z', '+', '-'])?;
    let (time, zone) = text.split_at(zone);
    let (time, fraction) = time.split_once('.').unwrap_or((time, "0"));
    let [hour, minute, second] = numbers(time, ':', [2, 2, 2])?;
    let is_fraction = (1..=9).contains(&fraction.len());
    let nanosecond = digits(&is_fraction.then(|| format!("{fraction:0<9}"))?)?;
    let offset_seconds = match zone.split_at(1) {
        ("Z" | "z", "") => 0,
        (sign @ ("+" | "-"), zone) => {
            // Seconds are not of RFC 3339: a zone's own time before standard time has them.
            let [hours, minutes, seconds] = numbers(zone, ':', [2, 2, 2]).or_else(|| {
                numbers(zone, ':', [2, 2]).map(|[hours, minutes]| [hours, minutes, 0])
            })?;
            let seconds = i32::try_from((hours * 60 + minutes) * 60 + seconds).ok()?;
            if sign == "-" { -seconds } else { seconds }
        }
        _ => return None,
    };
    let nanosecond = i32::try_from(nanosecond).ok()?;
    let time = Time::new(small(hour)?, small(minute)?, small(second)?, nanosecond).ok()?;
    Some((time, offset_seconds))
}

fn small(number: u32) -> Option<i8> {
    i8::try_from(number).ok()
}

/// The name of the zone at that time. An offset alone has none.
fn zone_name(time: &GoTime) -> String {
    let zone = time.zone();
    if zone.is_unknown() || zone.to_fixed_offset().is_ok_and(|offset| offset == Offset::UTC) {
        return "UTC".to_owned();
    }
    if zone.iana_name().is_none() && zone.to_fixed_offset().is_ok() {
        return String::new();
    }
    zone.to_offset_info(time.timestamp()).abbreviation().to_owned()
}

fn layout_digit(layout: &str) -> char {
    layout.chars().nth(1).unwrap_or('0')
}

/// Whether `layout` continues with this element. A fraction is not followed by further digits, a short name
/// by a lower-case letter, and `_2006` is a year after a literal `_`.
fn starts(layout: &str, element: &str) -> bool {
    let Some(after) = layout.strip_prefix(element) else { return false };
    match element {
        ".0" | ",0" | ".9" | ",9" => !after
            .trim_start_matches(layout_digit(layout))
            .starts_with(|char: char| char.is_ascii_digit()),
        "Jan" | "Mon" => !after.starts_with(|char: char| char.is_ascii_lowercase()),
        "_2" => !after.starts_with("006"),
        _ => true,
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
