//! Methods of values: those of Go's `time.Time`, `time.Duration`, `time.Month`, `time.Weekday`,
//! `fs.FileMode` and `error`, and of sprig's versions.

use super::time::GoTime;
use super::types::IntType;
use super::value::Value;
use super::{format, time};
use jiff::Zoned;
use jiff::tz::TimeZone;
use std::cmp::Ordering;

/// The permission bits of a file's mode.
const PERMISSIONS: i64 = 0o777;

/// A method call.
struct Method<'c> {
    name: &'c str,
    args: &'c [Value],
    local: &'c TimeZone,
}

/// The result of a method. The zone of `now` is the local one.
pub(super) fn call(
    receiver: &Value,
    name: &str,
    args: &[Value],
    now: &Zoned,
) -> Result<Value, String> {
    let method = Method { name, args, local: now.time_zone() };
    let found = match receiver {
        Value::Time(time) => method.of_time(time)?,
        Value::Named(kind, number) => method.of_integer(*kind, *number)?,
        Value::Version(version) => method.of_version(version)?,
        Value::Error(Some(message)) if name == "Error" => {
            Some(method.none(|| Value::Text(message.clone()))?)
        }
        Value::Nil
        | Value::Bool(_)
        | Value::Int(_)
        | Value::Float(_)
        | Value::Text(_)
        | Value::Error(_)
        | Value::List(_)
        | Value::Map(_) => None,
    };
    found.ok_or_else(|| format!("can't take .{name} of a {}", receiver.type_name()))
}

impl Method<'_> {
    fn of_time(&self, this: &GoTime) -> Result<Option<Value>, String> {
        let int = |number: i64| self.none(|| Value::Int(number));
        let int64 = |number: i64| self.none(|| Value::int64(number));
        let (at, nanoseconds) = (this.at(), this.nanoseconds());
        let since_1970 =
            |unit: i128| int64(i64::try_from(nanoseconds.div_euclid(unit)).unwrap_or(0));
        Ok(Some(match self.name {
            "Year" => int(at.year().into())?,
            "Month" => self.none(|| Value::Named(IntType::Month, at.month().into()))?,
            "Day" => int(at.day().into())?,
            "Hour" => int(at.hour().into())?,
            "Minute" => int(at.minute().into())?,
            "Second" => int(at.second().into())?,
            "Nanosecond" => int(at.subsec_nanosecond().into())?,
            "YearDay" => int(at.day_of_year().into())?,
            "Weekday" => {
                let day = at.weekday().to_sunday_zero_offset().into();
                self.none(|| Value::Named(IntType::Weekday, day))?
            }
            "Unix" => since_1970(1_000_000_000)?,
            "UnixMilli" => since_1970(1_000_000)?,
            "UnixMicro" => since_1970(1_000)?,
            "UnixNano" => since_1970(1)?,
            "String" => self.none(|| Value::text(time::string(this)))?,
            "GoString" => self.none(|| Value::text(time::go_string(this, self.local)))?,
            "Location" => self.none(|| Value::text(location(this)))?,
            "UTC" => self.utc(this)?,
            "Local" => self.none(|| Value::Time(this.clone().here(self.local).into()))?,
            "IsZero" => self.none(|| Value::Bool(time::is_zero(this)))?,
            _ => return self.of_time_with_args(this),
        }))
    }

    fn of_time_with_args(&self, this: &GoTime) -> Result<Option<Value>, String> {
        let time = |time: Option<GoTime>| time.map(|it| Value::Time(it.into())).ok_or_else(far);
        let compared = || Ok::<_, String>(this.nanoseconds().cmp(&self.time()?.nanoseconds()));
        let order = |is_it: fn(Ordering) -> bool| Ok(Value::Bool(is_it(compared()?)));
        let value = match self.name {
            "Format" => Ok(Value::text(time::Moment::of(this).written(self.text()?))),
            "Add" => time(time::add(this, self.int(0, 1)?)),
            "AddDate" => {
                let (years, months) = (self.int(0, 3)?, self.int(1, 3)?);
                let date = time::add_date(this.at(), years, months, self.int(2, 3)?);
                time(date.map(|date| GoTime::new(date, this.zone())))
            }
            "Truncate" => time(time::truncate(this, self.int(0, 1)?, false)),
            "Round" => time(time::truncate(this, self.int(0, 1)?, true)),
            "Sub" => Ok(Value::Named(IntType::Duration, time::sub(this, self.time()?))),
            "Before" => order(Ordering::is_lt),
            "After" => order(Ordering::is_gt),
            "Equal" => order(Ordering::is_eq),
            "Compare" => Ok(sign(compared()?)),
            _ => return Ok(None),
        };
        value.map(Some)
    }

    fn of_integer(&self, kind: IntType, this: i64) -> Result<Option<Value>, String> {
        match (kind, self.name) {
            (IntType::Int64 | IntType::Uint64 | IntType::Uint8, _) => Ok(None),
            (_, "String") => {
                self.none(|| Value::text(format::written_integer(kind, this))).map(Some)
            }
            (IntType::Duration, _) => self.of_duration(this),
            (IntType::FileMode, "Perm") => {
                self.none(|| Value::Named(kind, this & PERMISSIONS)).map(Some)
            }
            (IntType::FileMode | IntType::Month | IntType::Weekday, _) => Ok(None),
        }
    }

    fn of_duration(&self, this: i64) -> Result<Option<Value>, String> {
        // As in Go: whole units and the fraction separately, so that both are exact.
        let float = |unit: i64| {
            self.none(|| Value::Float((this / unit) as f64 + (this % unit) as f64 / unit as f64))
        };
        let whole = |unit: i64| self.none(|| Value::int64(this / unit));
        let span = |span: i64| Ok(Value::Named(IntType::Duration, span));
        let value = match self.name {
            "Hours" => float(3_600_000_000_000),
            "Minutes" => float(60_000_000_000),
            "Seconds" => float(1_000_000_000),
            "Milliseconds" => whole(1_000_000),
            "Microseconds" => whole(1_000),
            "Nanoseconds" => whole(1),
            "Abs" => self.none(|| Value::Named(IntType::Duration, this.saturating_abs())),
            "Truncate" => span(time::truncate_span(this, self.int(0, 1)?, false)),
            "Round" => span(time::truncate_span(this, self.int(0, 1)?, true)),
            _ => return Ok(None),
        };
        value.map(Some)
    }

    fn of_version(&self, this: &super::semver::Version) -> Result<Option<Value>, String> {
        let number =
            |number: u64| self.none(|| Value::int64(i64::try_from(number).unwrap_or(i64::MAX)));
        let order = |is_it: fn(Ordering) -> bool| match self.args {
            [Value::Version(other)] => Ok(Value::Bool(is_it(this.compare(other)))),
            _ => Err(self.wanted("a version")),
        };
        let value = match (self.name, self.args) {
            ("Major", _) => number(this.major()),
            ("Minor", _) => number(this.minor()),
            ("Patch", _) => number(this.patch()),
            ("Prerelease", _) => self.none(|| Value::text(this.prerelease())),
            ("Metadata", _) => self.none(|| Value::text(this.metadata())),
            ("Original", _) => self.none(|| Value::text(this.original.as_str())),
            ("String", _) => self.none(|| Value::text(this.to_string())),
            ("Compare", [Value::Version(other)]) => Ok(sign(this.compare(other))),
            ("Compare", _) => Err(self.wanted("a version")),
            ("LessThan", _) => order(Ordering::is_lt),
            ("GreaterThan", _) => order(Ordering::is_gt),
            ("Equal", _) => order(Ordering::is_eq),
            _ => return Ok(None),
        };
        value.map(Some)
    }

    /// The result of a method without arguments.
    fn none(&self, value: impl FnOnce() -> Value) -> Result<Value, String> {
        self.count(0)?;
        Ok(value())
    }

    fn count(&self, wanted: usize) -> Result<(), String> {
        if self.args.len() == wanted {
            return Ok(());
        }
        let got = self.args.len();
        Err(format!("wrong number of arguments for .{}: want {wanted}, got {got}", self.name))
    }

    fn wanted(&self, what: &str) -> String {
        format!(".{} takes {what}", self.name)
    }

    fn int(&self, index: usize, count: usize) -> Result<i64, String> {
        self.count(count)?;
        let number = self.args.get(index).and_then(Value::integer);
        number.ok_or_else(|| self.wanted(if count == 1 { "an integer" } else { "integers" }))
    }

    fn text(&self) -> Result<&str, String> {
        self.count(1)?;
        match self.args {
            [Value::Text(text)] => Ok(text),
            _ => Err(self.wanted("a layout, as in \"2006-01-02\"")),
        }
    }

    fn utc(&self, time: &GoTime) -> Result<Value, String> {
        self.count(0)?;
        time.in_zone(&TimeZone::UTC).map(|time| Value::Time(time.into())).ok_or_else(far)
    }

    fn time(&self) -> Result<&GoTime, String> {
        self.count(1)?;
        match self.args {
            [Value::Time(time)] => Ok(time),
            _ => Err(self.wanted("a date")),
        }
    }
}

fn far() -> String {
    "the date is out of range".to_owned()
}

fn location(time: &GoTime) -> String {
    let zone = time.zone();
    zone.iana_name().filter(|_| !zone.is_unknown()).unwrap_or_default().to_owned()
}

fn sign(order: Ordering) -> Value {
    Value::Int(match order {
        Ordering::Less => -1,
        Ordering::Equal => 0,
        Ordering::Greater => 1,
    })
}
