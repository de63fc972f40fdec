//! Functions on numbers: <https://masterminds.github.io/sprig/math.html>.
//!
//! Sprig truncates floats to integers before it adds them. Glazed replaces `add`, `sub`, `mul` and
//! `div` by functions that don't, and that return nil for an operand that is not a number.

use super::decimals::Decimal;
use super::{ANY, Function, FunctionCall, function};
use crate::support::strconv::{parse_float, parse_int};
use crate::template::types::IntType;
use crate::template::value::Value;

pub(super) const FUNCTIONS: &[Function] = &[
    function("add", (1, ANY), |call| fold(call, i64::checked_add, |left, right| left + right)),
    function("sub", (2, 2), |call| fold(call, i64::checked_sub, |left, right| left - right)),
    function("mul", (1, ANY), |call| fold(call, i64::checked_mul, |left, right| left * right)),
    function("div", (2, 2), |call| fold(call, i64::checked_div, |left, right| left / right)),
    function("mod", (2, 2), |call| ints(call, i64::checked_rem)),
    function("add1", (1, 1), |call| match whole(call.arg(0)).checked_add(1) {
        Some(number) => Ok(Value::int64(number)),
        None => Err(OVERFLOW.into()),
    }),
    function("add1f", (1, 1), |call| Ok(Value::Float(real(call.arg(0)) + 1.0))),
    function("toDecimal", (1, 1), |call| {
        // Parses octal digits; anything else counts as zero, as in sprig.
        Ok(Value::int64(i64::from_str_radix(&call.shown(0)?, 8).unwrap_or(0)))
    }),
    function("max", (1, ANY), |call| ints(call, |left, right| Some(left.max(right)))),
    function("min", (1, ANY), |call| ints(call, |left, right| Some(left.min(right)))),
    function("biggest", (1, ANY), |call| ints(call, |left, right| Some(left.max(right)))),
    function("maxf", (1, ANY), |call| floats(call, f64::max)),
    function("minf", (1, ANY), |call| floats(call, f64::min)),
    function("addf", (1, ANY), |call| decimals(call, Decimal::sum, |left, right| left + right)),
    function("subf", (1, ANY), |call| {
        decimals(call, Decimal::difference, |left, right| left - right)
    }),
    function("mulf", (1, ANY), |call| decimals(call, Decimal::product, |left, right| left * right)),
    function("divf", (1, ANY), |call| {
        if call.args[1..].iter().any(|arg| real(arg) == 0.0) {
            return Err("a division by 0".into());
        }
        decimals(call, Decimal::quotient, |left, right| left / right)
    }),
    function("floor", (1, 1), |call| Ok(Value::Float(real(call.arg(0)).floor()))),
    function("ceil", (1, 1), |call| Ok(Value::Float(real(call.arg(0)).ceil()))),
    function("round", (2, 3), round),
    function("int", (1, 1), |call| Ok(Value::Int(whole(call.arg(0))))),
    function("int64", (1, 1), |call| Ok(Value::int64(whole(call.arg(0))))),
    function("float64", (1, 1), |call| Ok(Value::Float(real(call.arg(0))))),
    function("atoi", (1, 1), |call| Ok(Value::Int(call.text(0)?.parse().unwrap_or(0)))),
    function("parseInt", (1, 1), |call| Ok(Value::int64(call.text(0)?.parse().unwrap_or(0)))),
    function("parseFloat", (1, 1), |call| Ok(Value::Float(call.text(0)?.parse().unwrap_or(0.0)))),
];

const OVERFLOW: &str = "the result is not a number, or does not fit in 64 bits";

/// A value as an integer: values that are no numbers count as zero, as in sprig. A text is read as
/// `cast.ToInt64` reads it: as in Go's source code, so that `010` is 8, after its `.0` was cut off.
pub(super) fn whole(value: &Value) -> i64 {
    match value {
        Value::Int(number) | Value::Named(_, number) => *number,
        Value::Bool(truth) => i64::from(*truth),
        Value::Text(text) => parse_int(without_zeros(text)).unwrap_or(0),
        Value::Float(number) => truncated(*number),
        Value::Nil
        | Value::Time(_)
        | Value::Version(_)
        | Value::Error(_)
        | Value::List(_)
        | Value::Map(_) => 0,
    }
}

/// The text without a decimal part that is nothing but zeros.
fn without_zeros(text: &str) -> &str {
    let rest = text.trim_end_matches('0');
    if rest.len() < text.len() { rest.strip_suffix('.').unwrap_or(text) } else { text }
}

/// The integer part, or the integer nearest to it.
fn truncated(number: f64) -> i64 {
    // A float below 2^63 without a fraction is printed in full.
    let digits = format!("{:.0}", number.trunc());
    let limit = if number < 0.0 { i64::MIN } else { i64::MAX };
    if number.is_nan() { 0 } else { digits.parse().unwrap_or(limit) }
}

/// A value as a float: values that are no numbers count as zero, as in sprig.
pub(super) fn real(value: &Value) -> f64 {
    match value {
        Value::Float(number) => *number,
        Value::Text(text) => parse_float(text).unwrap_or(0.0),
        Value::Named(IntType::Uint64, number) => number.cast_unsigned() as f64,
        // An integer is converted to the nearest float.
        Value::Int(number) | Value::Named(_, number) => number.to_string().parse().unwrap_or(0.0),
        Value::Bool(truth) => f64::from(u8::from(*truth)),
        Value::Nil
        | Value::Time(_)
        | Value::Version(_)
        | Value::Error(_)
        | Value::List(_)
        | Value::Map(_) => 0.0,
    }
}

/// Integers if all operands are; floats if one is; `None` if one is not a number.
fn fold(
    call: &mut FunctionCall<'_>,
    whole_step: fn(i64, i64) -> Option<i64>,
    real_step: fn(f64, f64) -> f64,
) -> Result<Value, String> {
    let is_float = |arg: &Value| matches!(arg, Value::Float(_));
    if !call.args.iter().all(|arg| is_float(arg) || arg.integer().is_some()) {
        return Ok(Value::Nil);
    }
    if call.args.iter().any(is_float) {
        return floats(call, real_step);
    }
    ints(call, whole_step)
}

fn ints(call: &mut FunctionCall<'_>, step: fn(i64, i64) -> Option<i64>) -> Result<Value, String> {
    let mut result = whole(call.arg(0));
    for arg in &call.args[1..] {
        result = step(result, whole(arg)).ok_or(OVERFLOW)?;
    }
    Ok(Value::int64(result))
}

fn floats(call: &mut FunctionCall<'_>, step: fn(f64, f64) -> f64) -> Result<Value, String> {
    let rest = call.args[1..].iter().map(real);
    Ok(Value::Float(rest.fold(real(call.arg(0)), step)))
}

/// Like [`floats`], with the result of decimal numbers where their digits fit.
fn decimals(
    call: &mut FunctionCall<'_>,
    step: fn(Decimal, Decimal) -> Option<Decimal>,
    real_step: fn(f64, f64) -> f64,
) -> Result<Value, String> {
    let mut numbers = call.args.iter().map(|arg| Decimal::of(real(arg)));
    let first = numbers.next().flatten();
    let exact = numbers.fold(first, |left, right| step(left?, right?));
    match exact.and_then(Decimal::to_float) {
        Some(number) => Ok(Value::Float(number)),
        None => floats(call, real_step),
    }
}

/// Rounds to this many places; a half is rounded up, or the fraction given as third argument.
fn round(call: &mut FunctionCall<'_>) -> Result<Value, String> {
    let places = i32::try_from(call.int(1)?).map_err(|_| "too many places".to_owned())?;
    let half = call.args.get(2).map_or(0.5, real);
    let scale = 10_f64.powi(places);
    let scaled = real(call.arg(0)) * scale;
    let rounded = if scaled.fract() >= half { scaled.ceil() } else { scaled.floor() };
    let result = rounded / scale;
    Ok(Value::Float(if result.is_finite() { result } else { real(call.arg(0)) }))
}
