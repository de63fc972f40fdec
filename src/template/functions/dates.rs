//! Functions on dates: <https://masterminds.github.io/sprig/date.html>. A date is a string, RFC 3339
//! or a day alone; it is shown in its own time zone. The time now is the one that rendering began
//! at, in the zone of whoever asks.

use super::durations;
use super::layout::Moment;
use super::{Call, Function, function};
use crate::template::value::Value;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Zoned};

/// What a day is written as.
const DAY: &str = "2006-01-02";

pub(super) const FUNCTIONS: &[Function] = &[
    function("now", (0, 0), |call| Ok(Value::text(Moment::of(call.now).rfc3339()))),
    function("date", (2, 2), |call| {
        let (layout, moment) = (call.text(0)?, moment(call, 1)?);
        Ok(Value::text(moment.written(layout)))
    }),
    function("dateInZone", (3, 3), date_in_zone),
    function("date_in_zone", (3, 3), date_in_zone),
    function("htmlDate", (1, 1), |call| Ok(Value::text(moment(call, 0)?.written(DAY)))),
    function("htmlDateInZone", (2, 2), |call| in_zone(call, DAY, 0)),
    function("dateModify", (2, 2), date_modify),
    function("date_modify", (2, 2), date_modify),
    function("must_date_modify", (2, 2), date_modify),
    function("unixEpoch", (1, 1), |call| {
        Ok(Value::text(zoned(call, 0)?.timestamp().as_second().to_string()))
    }),
    function("ago", (1, 1), |call| {
        let since = since(call, &zoned(call, 0)?)?;
        let seconds = since / durations::SECOND * durations::SECOND;
        Ok(Value::text(durations::written(seconds)))
    }),
    function("duration", (1, 1), duration),
    function("durationRound", (1, 1), duration_round),
    // Glazed's, not sprig's: the day of a date.
    function("toDate", (1, 1), |call| {
        Ok(Value::text(call.text(0)?.split('T').next().unwrap_or_default()))
    }),
];

fn moment(call: &Call<'_>, index: usize) -> Result<Moment, String> {
    let text = call.text(index)?;
    Moment::read(text).ok_or_else(|| {
        format!("{text:?} is no date; give it as in 2006-01-02 or 2006-01-02T15:04:05Z")
    })
}

fn zoned(call: &Call<'_>, index: usize) -> Result<Zoned, String> {
    moment(call, index)?.zoned().ok_or_else(|| TOO_FAR.to_owned())
}

const TOO_FAR: &str = "the date or the span is too far away to compute with; take a nearer one";

fn date_in_zone(call: &mut Call<'_>) -> Result<Value, String> {
    in_zone(call, call.text(0)?, 1)
}

/// The date at `index` in the zone that is the argument behind it.
fn in_zone(call: &Call<'_>, layout: &str, index: usize) -> Result<Value, String> {
    let (date, name) = (zoned(call, index)?, call.text(index + 1)?);
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
    Ok(Value::text(Moment::of(&date.with_time_zone(zone)).written(layout)))
}

/// The date so much later, or earlier.
fn date_modify(call: &mut Call<'_>) -> Result<Value, String> {
    let (text, date) = (call.text(0)?, zoned(call, 1)?);
    let span = durations::read(text)
        .ok_or_else(|| format!("{text:?} is no span of time; give it as in 24h or -1h30m"))?;
    let date = date.checked_add(SignedDuration::from_nanos(span)).map_err(|_| TOO_FAR)?;
    // The calendar reaches further back than four digits tell.
    let moment = Moment::of(&date);
    Ok(Value::text(moment.is_common().then(|| moment.rfc3339()).ok_or(TOO_FAR)?))
}

/// Nanoseconds from a date up to now.
fn since(call: &Call<'_>, date: &Zoned) -> Result<i64, String> {
    let since = call.now.duration_since(date).as_nanos();
    i64::try_from(since).map_err(|_| TOO_FAR.to_owned())
}

/// So many seconds, as hours, minutes and seconds.
fn duration(call: &mut Call<'_>) -> Result<Value, String> {
    let seconds = super::numbers::whole(call.arg(0));
    let span = seconds.checked_mul(durations::SECOND).ok_or(TOO_FAR)?;
    Ok(Value::text(durations::written(span)))
}

/// A span, nanoseconds, or the time since a date, in its largest unit.
fn duration_round(call: &mut Call<'_>) -> Result<Value, String> {
    let span = if let Value::Int(nanoseconds) = call.arg(0) {
        *nanoseconds
    } else if let Some(span) = durations::read(call.text(0)?) {
        span
    } else {
        since(call, &zoned(call, 0)?)?
    };
    Ok(Value::text(durations::rounded(span)))
}
