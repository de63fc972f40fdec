//! Go's own functions: <https://pkg.go.dev/text/template#hdr-Functions>.

use super::{ANY, Function, FunctionCall, function};
use crate::template::format;
use crate::template::types::{IntType, MapType};
use crate::template::value::Value;
use std::cmp::Ordering;

pub(super) const FUNCTIONS: &[Function] = &[
    function("eq", (2, ANY), eq),
    function("ne", (2, 2), |call| Ok(Value::Bool(!equal(call.arg(0), call.arg(1))?))),
    function("lt", (2, 2), |call| order(call, Ordering::is_lt)),
    function("le", (2, 2), |call| order(call, Ordering::is_le)),
    function("gt", (2, 2), |call| order(call, Ordering::is_gt)),
    function("ge", (2, 2), |call| order(call, Ordering::is_ge)),
    // With arguments, the executor runs these, so that it can skip arguments.
    function("and", (1, ANY), |call| Ok(call.arg(0).clone())),
    function("or", (1, ANY), |call| Ok(call.arg(0).clone())),
    function("not", (1, 1), |call| Ok(Value::Bool(!call.arg(0).is_true(call.heap)))),
    function("print", (0, ANY), |call| format::print(call.heap, call.args).map(Value::text)),
    function("println", (0, ANY), |call| format::println(call.heap, call.args).map(Value::text)),
    function("printf", (1, ANY), |call| {
        let text = call.text(0)?;
        format::printf(call.heap, text, &call.args[1..]).map(Value::text)
    }),
    function("len", (1, 1), len),
    function("index", (1, ANY), index),
    function("slice", (1, 4), slice),
    function("html", (0, ANY), |call| escape(call, gotmpl::html_escape)),
    function("js", (0, ANY), |call| escape(call, gotmpl::js_escape)),
    function("urlquery", (0, ANY), |call| escape(call, gotmpl::url_encode)),
];

fn eq(call: &mut FunctionCall<'_>) -> Result<Value, String> {
    for other in &call.args[1..] {
        if equal(call.arg(0), other)? {
            return Ok(Value::Bool(true));
        }
    }
    Ok(Value::Bool(false))
}

fn equal(left: &Value, right: &Value) -> Result<bool, String> {
    const NIL: fn(&Value) -> bool = |value| matches!(value, Value::Nil | Value::Error(None));
    if let (Some(left), Some(right)) = (left.wide_integer(), right.wide_integer()) {
        return Ok(left == right);
    }
    match (left, right) {
        (left, right) if NIL(left) || NIL(right) => Ok(NIL(left) && NIL(right)),
        (Value::Bool(left), Value::Bool(right)) => Ok(left == right),
        (Value::Time(left), Value::Time(right)) => Ok(left == right),
        (Value::Version(left), Value::Version(right)) => Ok(left == right),
        (Value::Float(left), Value::Float(right)) => Ok(left == right),
        (Value::Text(left), Value::Text(right)) => Ok(left == right),
        (Value::List(_), Value::List(_)) | (Value::Map(_), Value::Map(_)) => {
            Err(format!("a {} can't be compared; use deepEqual", left.type_name()))
        }
        (left, right) => Err(incompatible(left, right)),
    }
}

fn order(call: &FunctionCall<'_>, is_it: fn(Ordering) -> bool) -> Result<Value, String> {
    let (left, right) = (call.arg(0), call.arg(1));
    if let (Some(left), Some(right)) = (left.wide_integer(), right.wide_integer()) {
        return Ok(Value::Bool(is_it(left.cmp(&right))));
    }
    let ordering = match (left, right) {
        (Value::Float(left), Value::Float(right)) => left.partial_cmp(right),
        (Value::Text(left), Value::Text(right)) => Some(left.cmp(right)),
        (left, right) if left.type_name() == right.type_name() => {
            let hint = if matches!(left, Value::Time(_)) { "; use .Before or .After" } else { "" };
            return Err(format!("a {} has no order{hint}", left.type_name()));
        }
        (left, right) => return Err(incompatible(left, right)),
    };
    // NaN is neither less nor greater than anything.
    Ok(Value::Bool(ordering.is_some_and(is_it)))
}

fn incompatible(left: &Value, right: &Value) -> String {
    format!(
        "a {} and a {} can't be compared; turn one of them into the other, as with int, float64 or \
         toString",
        left.type_name(),
        right.type_name()
    )
}

fn len(call: &mut FunctionCall<'_>) -> Result<Value, String> {
    let length = match call.arg(0) {
        Value::Text(text) => text.len(),
        Value::List(list) => list.len(),
        Value::Map(id) if id.kind() == MapType::File => {
            return Err("a file has no length; use len .Content, or .Size".into());
        }
        Value::Map(id) => call.heap.read(*id).len(),
        Value::Nil | Value::Error(None) => return Err("a missing value has no length".into()),
        other @ (Value::Bool(_)
        | Value::Int(_)
        | Value::Named(..)
        | Value::Float(_)
        | Value::Time(_)
        | Value::Version(_)
        | Value::Error(Some(_))) => {
            return Err(format!("a {} has no length", other.type_name()));
        }
    };
    Ok(Value::Int(i64::try_from(length).unwrap_or(i64::MAX)))
}

fn index(call: &mut FunctionCall<'_>) -> Result<Value, String> {
    let mut value = call.arg(0).clone();
    for key in &call.args[1..] {
        value = match (&value, key) {
            (Value::Map(id), Value::Text(key)) => {
                let is_text = id.kind() == MapType::Strings;
                let zero = if is_text { Value::text("") } else { Value::Nil };
                call.heap.read(*id).get(key).cloned().unwrap_or(zero)
            }
            (Value::Map(id), Value::Int(key) | Value::Named(_, key))
                if id.kind() == MapType::IntKeys =>
            {
                let found = call.heap.read(*id).get(&key.to_string()).cloned();
                found.unwrap_or(Value::Nil)
            }
            (Value::List(list), Value::Int(index) | Value::Named(_, index)) => {
                list[place(*index, list.len())?].clone()
            }
            (Value::Text(text), Value::Int(index) | Value::Named(_, index)) => {
                let byte = text.as_bytes()[place(*index, text.len())?];
                Value::Named(IntType::Uint8, byte.into())
            }
            (Value::Nil, _) => return Err("a missing value can't be indexed".into()),
            (value, key) => {
                return Err(format!(
                    "a {} can't be indexed by a {}",
                    value.type_name(),
                    key.type_name()
                ));
            }
        };
    }
    Ok(value)
}

fn place(index: i64, length: usize) -> Result<usize, String> {
    let place = usize::try_from(index).ok().filter(|place| *place < length);
    place.ok_or_else(|| format!("index {index} is out of range, the length is {length}"))
}

/// Sprig's `slice`, which has no value for an empty list, whatever the bounds; and Go's for strings, which sprig's does
/// not take.
fn slice(call: &mut FunctionCall<'_>) -> Result<Value, String> {
    if matches!(call.arg(0), Value::List(list) if list.is_empty()) {
        return Ok(Value::Nil);
    }
    let length = match call.args {
        [Value::Text(text), ..] => text.len(),
        [Value::List(list), ..] => list.len(),
        _ => return Err(super::mismatch(0, "a list or a string", call.arg(0))),
    };
    let mut bounds = [0, length, length];
    for (bound, index) in bounds.iter_mut().zip(1..call.args.len()) {
        let number = call.int(index)?;
        let found = usize::try_from(number).ok().filter(|found| *found <= length);
        *bound = found
            .ok_or_else(|| format!("index {number} is out of range, the length is {length}"))?;
    }
    let [start, end, max] = bounds;
    if start > end || end > max {
        return Err(format!("index {start} is greater than index {end}"));
    }
    if let Value::List(list) = call.arg(0) {
        return call.heap.list_of(list.kind(), list[start..end].to_vec());
    }
    if call.args.len() == 4 {
        return Err("a string takes two indices".into());
    }
    let text = call.text(0)?.get(start..end);
    text.map(Value::text).ok_or("an index is inside a character".into())
}

fn escape(call: &mut FunctionCall<'_>, escape: fn(&str) -> String) -> Result<Value, String> {
    // A missing value is a text to Go here, also for the blanks between the arguments.
    let is_missing = |arg: &Value| matches!(arg, Value::Nil | Value::Error(None));
    let shown = |arg: &Value| if is_missing(arg) { Value::text("<no value>") } else { arg.clone() };
    let args: Vec<Value> = call.args.iter().map(shown).collect();
    let text = format::print(call.heap, &args)?;
    Ok(Value::text(escape(&text)))
}
