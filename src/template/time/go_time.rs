//! A time in a zone, for every year of four digits.

use jiff::civil::DateTime;
use jiff::tz::{Offset, TimeZone};
use jiff::{SignedDuration, Timestamp, Zoned};

const NANOSECONDS_OF_SECOND: i128 = 1_000_000_000;

/// 1970, Unix's zero time, in UTC.
const UNIX_ZERO: DateTime = DateTime::constant(1970, 1, 1, 0, 0, 0, 0);

/// A point in time and the clock that shows it. Jiff's own `Zoned` ends a day before the last year does, so that it has
/// room for every offset, and the last day, 9999-12-31, is how people write "for ever".
#[derive(Clone, Debug)]
pub(crate) struct GoTime {
    at: DateTime,
    offset: Offset,
    zone: TimeZone,
}

impl GoTime {
    /// The time at which a clock in `zone` shows `at`.
    pub(crate) fn new(at: DateTime, zone: &TimeZone) -> Self {
        match at.to_zoned(zone.clone()) {
            Ok(zoned) => Self::of(&zoned),
            // On the last day no zone sets its clocks.
            Err(_) => Self { at, offset: zone.to_offset(end(at >= UNIX_ZERO)), zone: zone.clone() },
        }
    }

    pub(crate) fn of(zoned: &Zoned) -> Self {
        let (at, offset) = (zoned.datetime(), zoned.offset());
        Self { at, offset, zone: zoned.time_zone().clone() }
    }

    /// The time so many nanoseconds after 1970. `None` beyond the calendar.
    pub(in crate::template) fn since_unix(nanoseconds: i128, zone: &TimeZone) -> Option<Self> {
        if let Ok(time) = Timestamp::from_nanosecond(nanoseconds) {
            return Some(Self::of(&time.to_zoned(zone.clone())));
        }
        let offset = zone.to_offset(end(nanoseconds >= 0));
        let shown = nanoseconds + nanoseconds_of(offset);
        let at = UNIX_ZERO.checked_add(SignedDuration::try_from_nanos_i128(shown)?).ok()?;
        Some(Self { at, offset, zone: zone.clone() })
    }

    /// What its clock shows.
    pub(crate) fn at(&self) -> DateTime {
        self.at
    }

    /// By how much its clock is ahead of UTC.
    pub(crate) fn offset(&self) -> Offset {
        self.offset
    }

    pub(crate) fn zone(&self) -> &TimeZone {
        &self.zone
    }

    /// Nanoseconds since 1970.
    pub(in crate::template) fn nanoseconds(&self) -> i128 {
        self.at.duration_since(UNIX_ZERO).as_nanos() - nanoseconds_of(self.offset)
    }

    /// The time, or the nearest one that jiff has: to look up what a zone says of it.
    pub(crate) fn timestamp(&self) -> Timestamp {
        let nanoseconds = self.nanoseconds();
        Timestamp::from_nanosecond(nanoseconds).unwrap_or_else(|_| end(nanoseconds >= 0))
    }

    /// Converts the time to a clock in `zone`; `None` where that shows a day beyond the calendar.
    pub(in crate::template) fn in_zone(&self, zone: &TimeZone) -> Option<Self> {
        Self::since_unix(self.nanoseconds(), zone)
    }

    /// Converts the time to a clock in `zone`; it keeps its own where that one shows a day beyond the calendar.
    pub(in crate::template) fn here(self, zone: &TimeZone) -> Self {
        self.in_zone(zone).unwrap_or(self)
    }
}

/// Go's `==` of times: their clocks show the same, with the same offset.
impl PartialEq for GoTime {
    fn eq(&self, other: &Self) -> bool {
        (self.at, self.offset) == (other.at, other.offset)
    }
}

fn end(is_last: bool) -> Timestamp {
    if is_last { Timestamp::MAX } else { Timestamp::MIN }
}

fn nanoseconds_of(offset: Offset) -> i128 {
    i128::from(offset.seconds()) * NANOSECONDS_OF_SECOND
}
