//! Functions on dates: <https://masterminds.github.io/sprig/date.html>. A date is a string, RFC 3339
//! or a day alone; it is shown in its own time zone. What the time is now, no template can ask.

use super::layout::Moment;
use super::{Call, Function, function};
use crate::template::value::Value;

pub(super) const FUNCTIONS: &[Function] = &[
    function("date", (2, 2), |call| {
        let (layout, moment) = (call.text(0)?, moment(call, 1)?);
        Ok(Value::text(moment.written(layout)))
    }),
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
