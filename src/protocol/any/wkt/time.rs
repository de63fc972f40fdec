//! `Timestamp` and `Duration`, in JSON as RFC 3339 and as seconds.

use serde::de::{self, Deserializer};
use serde::ser::{self, Serializer};
use serde::{Deserialize, Serialize};

/// A point in time, in Unix time.
#[derive(Clone, Copy, PartialEq, Eq, Hash, prost::Message)]
pub struct Timestamp {
    /// Seconds since 1970-01-01T00:00:00Z.
    #[prost(int64, tag = "1")]
    pub seconds: i64,
    /// Nanoseconds after that second, from 0 to 999,999,999.
    #[prost(int32, tag = "2")]
    pub nanos: i32,
}

/// The years 1 to 9999, in Unix time.
const TIMESTAMP_SECONDS: std::ops::RangeInclusive<i64> = -62_135_596_800..=253_402_300_799;

/// RFC 3339 in UTC, with 0, 3, 6 or 9 digits of a second.
impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { seconds, nanos } = *self;
        if !TIMESTAMP_SECONDS.contains(&seconds) || !(0..NANOS).contains(&nanos) {
            return Err(ser::Error::custom("a Timestamp out of range"));
        }
        serializer.collect_str(&prost_types::Timestamp { seconds, nanos })
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        // prost also accepts ISO 8601 dates, spaces and leap seconds.
        let time: Option<prost_types::Timestamp> = text.parse().ok().filter(|_| is_rfc_3339(&text));
        match time {
            Some(time) if TIMESTAMP_SECONDS.contains(&time.seconds) => {
                Ok(Self { seconds: time.seconds, nanos: time.nanos })
            }
            _ => Err(de::Error::invalid_value(de::Unexpected::Str(&text), &"a time of RFC 3339")),
        }
    }
}

/// Checks the form of `2024-02-29T12:00:00.5+01:00`, not whether there is such a day.
fn is_rfc_3339(text: &str) -> bool {
    const DATE_TIME: &str = "0000-00-00T00:00:00";
    let Some((date_time, rest)) = text.split_at_checked(DATE_TIME.len()) else { return false };
    let offset = match rest.strip_prefix('.') {
        Some(fraction) => {
            let digits = fraction.bytes().take_while(u8::is_ascii_digit).count();
            if !(1..=9).contains(&digits) {
                return false;
            }
            &fraction[digits..]
        }
        None => rest,
    };
    let minutes =
        matches!(offset.as_bytes().first(), Some(b'+' | b'-')) && has_shape(&offset[1..], "00:00");
    has_shape(date_time, DATE_TIME) && !date_time.ends_with(":60") && (offset == "Z" || minutes)
}

/// Whether there are digits where the shape has a `0`, and everything else is equal.
fn has_shape(text: &str, shape: &str) -> bool {
    let same = |(byte, wanted): (u8, u8)| match wanted {
        b'0' => byte.is_ascii_digit(),
        _ => byte == wanted,
    };
    text.len() == shape.len() && text.bytes().zip(shape.bytes()).all(same)
}

/// A span of time.
#[derive(Clone, Copy, PartialEq, Eq, Hash, prost::Message)]
pub struct Duration {
    /// Seconds; about 10,000 years at most, in either direction.
    #[prost(int64, tag = "1")]
    pub seconds: i64,
    /// Nanoseconds in addition, with the same sign.
    #[prost(int32, tag = "2")]
    pub nanos: i32,
}

const DURATION_SECONDS_MAX: i64 = 315_576_000_000;
const NANOS: i32 = 1_000_000_000;

impl Duration {
    fn in_range(self) -> bool {
        let seconds = -DURATION_SECONDS_MAX..=DURATION_SECONDS_MAX;
        let one_sign = i64::from(self.nanos.signum()) * self.seconds.signum() >= 0;
        seconds.contains(&self.seconds) && (1 - NANOS..NANOS).contains(&self.nanos) && one_sign
    }
}

/// Seconds with 0, 3, 6 or 9 digits after the point, and an `s`.
impl Serialize for Duration {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if !self.in_range() {
            return Err(ser::Error::custom("a Duration out of range"));
        }
        let Self { seconds, nanos } = *self;
        serializer.collect_str(&prost_types::Duration { seconds, nanos })
    }
}

impl<'de> Deserialize<'de> for Duration {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let span: Option<prost_types::Duration> = text.parse().ok().filter(|_| is_seconds(&text));
        span.map(|span| Self { seconds: span.seconds, nanos: span.nanos })
            .filter(|span| span.in_range())
            .ok_or_else(|| de::Error::invalid_value(de::Unexpected::Str(&text), &"seconds: `1.5s`"))
    }
}

/// Checks the form of `-1.5s`, with up to nine digits after the point.
fn is_seconds(text: &str) -> bool {
    let Some(number) = text.strip_suffix('s') else { return false };
    let number = number.strip_prefix('-').unwrap_or(number);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    digits(whole) && digits(fraction) && fraction.len() <= 9
}
