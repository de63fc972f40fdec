//! Values that format themselves: those with a method `String` or `Error` in Go.

use crate::template::time::{self, durations};
use crate::template::types::IntType;
use crate::template::value::Value;

/// The result of a value's own method `String` or `Error`, for verbs that use it.
pub(super) fn own_text(value: &Value, verb: char) -> Option<String> {
    if !matches!(verb, 'v' | 's' | 'q' | 'x' | 'X') {
        return None;
    }
    if let Value::Named(kind, number) = value {
        let is_plain = matches!(kind, IntType::Int64 | IntType::Uint64 | IntType::Uint8);
        return (!is_plain).then(|| written_integer(*kind, *number));
    }
    if let Value::Time(at) = value {
        return Some(time::string(at));
    }
    if let Value::Version(version) = value {
        return Some(version.to_string());
    }
    if let Value::Error(Some(message)) = value { Some(message.to_string()) } else { None }
}

/// An integer as its type formats it.
pub(in crate::template) fn written_integer(kind: IntType, number: i64) -> String {
    match kind {
        IntType::Int64 | IntType::Uint8 => number.to_string(),
        IntType::Uint64 => number.cast_unsigned().to_string(),
        IntType::Month => time::month_name(number),
        IntType::Weekday => time::weekday_name(number),
        IntType::Duration => durations::written(number),
        IntType::FileMode => permissions(number),
    }
}

/// Permissions as Go prints them: `-rw-r--r--`.
pub(crate) fn permissions(mode: i64) -> String {
    let letters = "rwxrwxrwx".chars().enumerate();
    let bits =
        letters.map(|(index, letter)| if mode >> (8 - index) & 1 == 1 { letter } else { '-' });
    std::iter::once('-').chain(bits).collect()
}
