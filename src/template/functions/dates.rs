//! Functions on dates: <https://masterminds.github.io/sprig/date.html>. A date is a `time.Time`, a
//! number of seconds since 1970, or a string, RFC 3339 or a day alone. `date` formats the
//! first two in the local zone, as in sprig, and a string in its own. The current time is the start
//! of rendering, in the local zone.

use super::{Function, FunctionCall, function};
use crate::template::time::{self, GoTime, Moment, durations};
use crate::template::types::IntType;
use crate::template::value::Value;
use jiff::tz::TimeZone;
use std::sync::Arc;

/// The layout of a day.
const DAY: &str = "2006-01-02";

pub(super) const FUNCTIONS: &[Function] = &[
    function("now", (0, 0), |call| Ok(Value::Time(Arc::new(GoTime::of(call.now))))),
    function("date", (2, 2), |call| {
        let (layout, moment) = (call.text(0)?, local(call, 1)?);
        Ok(Value::text(moment.written(layout)))
    }),
    function("dateInZone", (3, 3), date_in_zone),
    function("date_in_zone", (3, 3), date_in_zone),
    function("htmlDate", (1, 1), |call| Ok(Value::text(local(call, 0)?.written(DAY)))),
    function("htmlDateInZone", (2, 2), |call| in_zone(call, DAY, 0)),
    function("dateModify", (2, 2), date_modify),
    function("date_modify", (2, 2), date_modify),
    function("must_date_modify", (2, 2), date_modify),
    function("unixEpoch", (1, 1), |call| {
        let nanoseconds = time(call, 0)?.nanoseconds();
        Ok(Value::text(nanoseconds.div_euclid(durations::SECOND.into()).to_string()))
    }),
    function("ago", (1, 1), |call| {
        let since = since(call, &time(call, 0)?)?;
        Ok(Value::text(durations::written(time::truncate_span(since, durations::SECOND, true))))
    }),
    function("duration", (1, 1), duration),
    function("durationRound", (1, 1), duration_round),
    // Glazed's, not sprig's: the day of a date.
    function("toDate", (1, 1), |call| {
        if let Value::Time(time) = call.arg(0) {
            return Ok(Value::text(Moment::of(time).written(DAY)));
        }
        Ok(Value::text(call.text(0)?.split('T').next().unwrap_or_default()))
    }),
];

const TOO_FAR: &str = "the date or the duration is out of range";

/// The wall-clock time of a date: in the local zone, or in the one that a string names.
fn local(call: &FunctionCall<'_>, index: usize) -> Result<Moment, String> {
    if let Value::Text(text) = call.arg(index) {
        return moment(text);
    }
    Ok(Moment::of(&time(call, index)?.here(call.now.time_zone())))
}

fn moment(text: &str) -> Result<Moment, String> {
    Moment::read(text).ok_or_else(|| {
        format!("{text:?} is not a date; write it as in 2006-01-02 or 2006-01-02T15:04:05Z")
    })
}

fn time(call: &FunctionCall<'_>, index: usize) -> Result<GoTime, String> {
    let zone = call.now.time_zone();
    if let Value::Time(time) = call.arg(index) {
        return Ok((**time).clone());
    }
    if let Value::Int(second) | Value::Named(IntType::Int64, second) = call.arg(index) {
        let nanoseconds = i128::from(*second) * i128::from(durations::SECOND);
        return GoTime::since_unix(nanoseconds, zone).ok_or_else(|| TOO_FAR.to_owned());
    }
    let text = call.text(index)?;
    let date = moment(text)?.time().ok_or_else(|| TOO_FAR.to_owned())?;
    // A day alone begins in the local zone.
    Ok(if text.contains(':') { date } else { GoTime::new(date.at(), zone) })
}

fn date_in_zone(call: &mut FunctionCall<'_>) -> Result<Value, String> {
    in_zone(call, call.text(0)?, 1)
}

/// The date at `index` in the zone given by the next argument.
fn in_zone(call: &FunctionCall<'_>, layout: &str, index: usize) -> Result<Value, String> {
    let (date, name) = (time(call, index)?, call.text(index + 1)?);
    let zone = match &**name {
        "" | "UTC" => TimeZone::UTC,
        "Local" => call.now.time_zone().clone(),
        name => TimeZone::get(name).map_err(|_| {
            format!(
                "the time zone {name:?} is not known on this machine; give one such as UTC or \
                 Europe/Berlin"
            )
        })?,
    };
    let there = date.in_zone(&zone).ok_or(TOO_FAR)?;
    Ok(Value::text(Moment::of(&there).written(layout)))
}

/// The date plus or minus a duration.
fn date_modify(call: &mut FunctionCall<'_>) -> Result<Value, String> {
    let (text, date) = (call.text(0)?, time(call, 1)?);
    let span = durations::read(text)
        .ok_or_else(|| format!("{text:?} is not a duration; write it as in 24h or -1h30m"))?;
    // The calendar reaches further back than four-digit years.
    let date = time::add(&date, span).filter(|date| Moment::of(date).is_common()).ok_or(TOO_FAR)?;
    Ok(Value::Time(Arc::new(date)))
}

/// Nanoseconds from a date to now.
fn since(call: &FunctionCall<'_>, date: &GoTime) -> Result<i64, String> {
    let since = GoTime::of(call.now).nanoseconds() - date.nanoseconds();
    i64::try_from(since).map_err(|_| TOO_FAR.to_owned())
}

/// A number of seconds as hours, minutes and seconds; in a text, decimal digits alone.
fn duration(call: &mut FunctionCall<'_>) -> Result<Value, String> {
    let seconds = if let Value::Text(text) = call.arg(0) {
        text.parse().unwrap_or(0)
    } else {
        super::numbers::whole(call.arg(0))
    };
    let span = seconds.checked_mul(durations::SECOND).ok_or(TOO_FAR)?;
    Ok(Value::text(durations::written(span)))
}

/// A duration in nanoseconds, or the time since a date, in its largest unit.
fn duration_round(call: &mut FunctionCall<'_>) -> Result<Value, String> {
    let span = if let Some(nanoseconds) = call.arg(0).integer() {
        nanoseconds
    } else if let Value::Text(text) = call.arg(0)
        && let Some(span) = durations::read(text)
    {
        span
    } else {
        since(call, &time(call, 0)?)?
    };
    Ok(Value::text(durations::rounded(span)))
}
