//! What a scalar is, as the function `resolve` of Go's yaml.v2 and yaml.v3 has it.

use super::{Data, Reader};
use crate::support::strconv::{parse_float, parse_int, parse_uint};
use jiff::civil::DateTime;
use jiff::tz::Offset;

/// The value of a scalar that is not quoted, or that has this tag of YAML's own.
///
/// # Errors
/// If it is not what the tag says.
pub(super) fn resolved(text: &str, tag: Option<&str>, reader: Reader) -> Result<Data, String> {
    let known = word(text, reader);
    let data = match known {
        Some(data) => data,
        None => number(text, tag, reader).unwrap_or_else(|| Data::Text(text.to_owned())),
    };
    let is_it = match (tag, &data) {
        (Some("float"), Data::Int(number)) => return Ok(Data::Float(*number as f64)),
        (Some("null"), data) => *data == Data::Nothing,
        (Some("bool"), data) => matches!(data, Data::Bool(_)),
        (Some("int"), data) => matches!(data, Data::Int(_) | Data::Uint(_)),
        (Some("float"), data) => matches!(data, Data::Float(_)),
        // In yaml.v2 a time is a string where no type is expected.
        (Some("timestamp"), _) => time(text).is_some(),
        (Some(_) | None, _) => true,
    };
    match (is_it, tag) {
        (false, Some(tag)) => Err(format!("`{text}` is not what its tag !!{tag} says")),
        (true, _) | (false, None) => Ok(data),
    }
}

fn word(text: &str, reader: Reader) -> Option<Data> {
    Some(match text {
        "" | "~" | "null" | "Null" | "NULL" => Data::Nothing,
        "true" | "True" | "TRUE" => Data::Bool(true),
        "false" | "False" | "FALSE" => Data::Bool(false),
        ".nan" | ".NaN" | ".NAN" => Data::Float(f64::NAN),
        ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" => Data::Float(f64::INFINITY),
        "-.inf" | "-.Inf" | "-.INF" => Data::Float(f64::NEG_INFINITY),
        "y" | "Y" | "yes" | "Yes" | "YES" | "on" | "On" | "ON" if reader == Reader::V2 => {
            Data::Bool(true)
        }
        "n" | "N" | "no" | "No" | "NO" | "off" | "Off" | "OFF" if reader == Reader::V2 => {
            Data::Bool(false)
        }
        _ => return None,
    })
}

fn number(text: &str, tag: Option<&str>, reader: Reader) -> Option<Data> {
    if text.starts_with('.') {
        return parse_float(text).map(Data::Float);
    }
    if !text.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '+' | '-')) {
        return None;
    }
    if reader == Reader::V3
        && matches!(tag, None | Some("timestamp"))
        && let Some(time) = time(text)
    {
        return Some(Data::Time(time));
    }
    let plain = text.replace('_', "");
    let whole = parse_int(&plain).map(Data::Int).or_else(|| parse_uint(&plain).map(Data::Uint));
    whole.or_else(|| {
        let is_float = is_style_of_yaml(&plain);
        parse_float(&plain).filter(|_| is_float).map(Data::Float)
    })
}

/// `[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?`
fn is_style_of_yaml(text: &str) -> bool {
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let text = text.strip_prefix(['+', '-']).unwrap_or(text);
    let (size, power) = match text.split_once(['e', 'E']) {
        Some((size, power)) => (size, Some(power.strip_prefix(['+', '-']).unwrap_or(power))),
        None => (text, None),
    };
    let (whole, fraction) = size.split_once('.').unwrap_or((size, ""));
    let has_digits = !whole.is_empty() || !fraction.is_empty();
    has_digits
        && digits(whole)
        && digits(fraction)
        && power.is_none_or(|power| !power.is_empty() && digits(power))
}

/// The time in one of the forms that yaml.v3 knows, in RFC 3339: `2024-1-2`, `2024-1-2 15:4:5.5`, and
/// `2024-1-2T15:4:5.5Z` with any offset. A time without a zone is in UTC.
fn time(text: &str) -> Option<String> {
    let (year, rest) = text.split_at_checked(4).filter(|(_, rest)| rest.starts_with('-'))?;
    let year = whole(year)?;
    let (month, rest) = field(&rest[1..])?;
    let (day, rest) = field(rest.strip_prefix('-')?)?;
    let (separator, clock) = match rest.chars().next() {
        None => (None, ""),
        Some(sign @ ('T' | 't')) => (Some(sign), &rest[1..]),
        // Go takes several spaces for one.
        Some(' ') => (Some(' '), rest.trim_start_matches(' ')),
        Some(_) => return None,
    };
    let (hour, minute, second, nanosecond, rest) = match separator {
        None => (0, 0, 0, 0, ""),
        Some(_) => time_of_day(clock)?,
    };
    // Checks that the calendar has it.
    DateTime::new(i16::try_from(year).ok()?, month, day, hour, minute, second, nanosecond).ok()?;
    let ending = match (separator, rest) {
        (None | Some(' '), "") | (Some('T' | 't'), "Z") => "Z",
        (Some('T' | 't'), ending) => offset(ending).map(|_| ending)?,
        (None | Some(_), _) => return None,
    };
    let fraction = match nanosecond {
        0 => String::new(),
        _ => format!(".{nanosecond:09}").trim_end_matches('0').to_owned(),
    };
    Some(format!(
        "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}{fraction}{ending}"
    ))
}

/// Hour, minute, second and nanosecond, and what follows them.
fn time_of_day(text: &str) -> Option<(i8, i8, i8, i32, &str)> {
    let (hour, rest) = field(text)?;
    let (minute, rest) = field(rest.strip_prefix(':')?)?;
    let (second, rest) = field(rest.strip_prefix(':')?)?;
    let is_fraction =
        rest.starts_with(['.', ',']) && rest[1..].starts_with(|c: char| c.is_ascii_digit());
    if !is_fraction {
        return Some((hour, minute, second, 0, rest));
    }
    let digits = &rest[1..];
    let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
    let (digits, rest) = digits.split_at(end);
    let nanosecond = digits.chars().chain("000000000".chars()).take(9).collect::<String>();
    Some((hour, minute, second, nanosecond.parse().ok()?, rest))
}

/// A field of one digit or two, and what follows it.
fn field(text: &str) -> Option<(i8, &str)> {
    let count = text.bytes().take(2).take_while(u8::is_ascii_digit).count();
    let (digits, rest) = text.split_at(count);
    Some((digits.parse().ok()?, rest))
}

fn whole(digits: &str) -> Option<u16> {
    digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok()).flatten()
}

/// An offset such as `+02:00`.
fn offset(text: &str) -> Option<Offset> {
    let sign = match text.as_bytes().first()? {
        b'+' => 1,
        b'-' => -1,
        _ => return None,
    };
    let (hours, minutes) = text.get(1..).filter(|rest| rest.len() == 5)?.split_once(':')?;
    let (hours, minutes) = (whole(hours)?, whole(minutes)?);
    if hours > 24 || minutes > 60 {
        return None;
    }
    Offset::from_seconds(sign * (i32::from(hours) * 60 + i32::from(minutes)) * 60).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each scalar, and what yaml.v3 3.0.1 and yaml.v2 2.4.0 make of it: printed as `%T %v`.
    const RECORDED: &str = include_str!("recorded.txt");

    /// As Go's `%T %v` prints it, a time in RFC 3339.
    fn shown(data: &Result<Data, String>) -> String {
        match data {
            Err(_) => "error".to_owned(),
            Ok(Data::Nothing) => "<nil> <nil>".to_owned(),
            Ok(Data::Bool(truth)) => format!("bool {truth}"),
            Ok(Data::Int(number)) => format!("int {number}"),
            Ok(Data::Uint(number)) => format!("uint64 {number}"),
            Ok(Data::Float(number)) => format!("float64 {:016x}", number.to_bits()),
            Ok(Data::Text(text)) => format!("string {text}"),
            Ok(Data::Time(text)) => {
                // Go prints an offset of zero as UTC where that is the local zone.
                let in_utc = text.strip_suffix("+00:00").or(text.strip_suffix("-00:00"));
                let text = in_utc.map_or_else(|| text.clone(), |text| format!("{text}Z"));
                format!("time.Time {text}")
            }
            Ok(Data::List(_) | Data::Map(_) | Data::IntMap(_)) => "other".to_owned(),
        }
    }

    #[test]
    fn scalars_are_what_go_makes_of_them() {
        let mut lines = RECORDED.lines();
        let mut count = 0;
        while let (Some(text), Some(v3), Some(v2)) = (lines.next(), lines.next(), lines.next()) {
            for (reader, expected) in [(Reader::V3, v3), (Reader::V2, v2)] {
                let data = super::super::read(&format!("x: {text}"), reader);
                let value = data.map(|data| {
                    data.into_map()
                        .and_then(|mut map| map.pop())
                        .map_or(Data::Nothing, |(_, it)| it)
                });
                assert_eq!(shown(&value), expected, "{text} with {reader:?}");
            }
            count += 1;
        }
        assert!(count > 100, "only {count}");
    }
}
