//! Functions on lists: <https://masterminds.github.io/sprig/lists.html>.

use super::{ANY, Function, FunctionCall, ITEMS_MAX, function};
use crate::template::types::ListType;
use crate::template::value::Value;

pub(super) const FUNCTIONS: &[Function] = &[
    function("list", (0, ANY), |call| call.heap.list(call.args.to_vec())),
    function("tuple", (0, ANY), |call| call.heap.list(call.args.to_vec())),
    function("first", (1, 1), |call| Ok(call.list(0)?.first().cloned().unwrap_or(Value::Nil))),
    function("last", (1, 1), |call| Ok(call.list(0)?.last().cloned().unwrap_or(Value::Nil))),
    function("rest", (1, 1), |call| {
        let items = call.list(0)?.get(1..).unwrap_or_default().to_vec();
        call.heap.list(items)
    }),
    function("initial", (1, 1), |call| {
        let items = call.list(0)?.split_last().map_or_else(Vec::new, |(_, items)| items.to_vec());
        call.heap.list(items)
    }),
    function("append", (2, 2), |call| joined(call, &[call.list(0)?, &call.args[1..]])),
    function("push", (2, 2), |call| joined(call, &[call.list(0)?, &call.args[1..]])),
    function("prepend", (2, 2), |call| joined(call, &[&call.args[1..], call.list(0)?])),
    function("concat", (0, ANY), |call| {
        let lists = (0..call.args.len()).map(|index| call.list(index));
        let lists = lists.collect::<Result<Vec<_>, _>>()?;
        joined(call, &lists)
    }),
    function("reverse", (1, 1), |call| {
        let items = call.list(0)?.iter().rev().cloned().collect();
        call.heap.list(items)
    }),
    function("uniq", (1, 1), |call| without(call, &[], true)),
    function("without", (1, ANY), |call| without(call, &call.args[1..], false)),
    function("has", (2, 2), |call| {
        if matches!(call.arg(1), Value::Nil) {
            return Ok(Value::Bool(false));
        }
        Ok(Value::Bool(is_in(call, call.arg(0), call.list(1)?)?))
    }),
    function("compact", (1, 1), |call| {
        let items = call.list(0)?.iter().filter(|item| item.is_true(call.heap));
        let items = items.cloned().collect();
        call.heap.list(items)
    }),
    function("chunk", (2, 2), |call| {
        let size = usize::try_from(call.int(0)?).unwrap_or(0).max(1);
        let chunks = call.list(1)?.chunks(size).map(|chunk| call.heap.list(chunk.to_vec()));
        let chunks = chunks.collect::<Result<_, _>>()?;
        call.heap.list(chunks)
    }),
    function("sortAlpha", (1, 1), |call| {
        let mut items = call.shown_items(0)?;
        items.sort();
        call.heap.texts(items)
    }),
    function("until", (1, 1), |call| {
        let end = call.int(0)?;
        steps(call, 0, end, if end < 0 { -1 } else { 1 })
    }),
    function("untilStep", (3, 3), |call| {
        let (start, end, step) = (call.int(0)?, call.int(1)?, call.int(2)?);
        steps(call, start, end, step)
    }),
    function("seq", (0, 3), seq),
    function("all", (0, ANY), |call| {
        Ok(Value::Bool(call.args.iter().all(|arg| arg.is_true(call.heap))))
    }),
    function("any", (0, ANY), |call| {
        Ok(Value::Bool(call.args.iter().any(|arg| arg.is_true(call.heap))))
    }),
    function("coalesce", (0, ANY), |call| {
        let found = call.args.iter().find(|arg| arg.is_true(call.heap));
        Ok(found.cloned().unwrap_or(Value::Nil))
    }),
    function("default", (1, 2), |call| {
        let given = call.args.get(1).filter(|given| given.is_true(call.heap));
        Ok(given.unwrap_or(call.arg(0)).clone())
    }),
    function("empty", (1, 1), |call| Ok(Value::Bool(!call.arg(0).is_true(call.heap)))),
    function("ternary", (3, 3), |call| {
        let Value::Bool(truth) = call.arg(2) else {
            return Err(super::mismatch(2, "a bool", call.arg(2)));
        };
        Ok(call.arg(if *truth { 0 } else { 1 }).clone())
    }),
    function("fail", (1, 1), |call| Err(call.text(0)?.to_string())),
    function("kindOf", (1, 1), |call| Ok(Value::text(call.arg(0).kind_name()))),
    function("kindIs", (2, 2), |call| Ok(Value::Bool(**call.text(0)? == *call.arg(1).kind_name()))),
    function("typeOf", (1, 1), |call| Ok(Value::text(call.arg(0).type_name()))),
    function("typeIs", (2, 2), |call| Ok(Value::Bool(**call.text(0)? == *call.arg(1).type_name()))),
    // Like `typeIs`, with or without the `*` of a pointer.
    function("typeIsLike", (2, 2), |call| {
        let (wanted, name) = (&**call.text(0)?, call.arg(1).type_name());
        Ok(Value::Bool(wanted == name || name.strip_prefix('*') == Some(wanted)))
    }),
    function("deepEqual", (2, 2), |call| {
        Ok(Value::Bool(call.heap.equal(call.arg(0), call.arg(1))?))
    }),
];

fn joined(call: &mut FunctionCall<'_>, lists: &[&[Value]]) -> Result<Value, String> {
    call.heap.list(lists.concat())
}

fn is_in(call: &mut FunctionCall<'_>, needle: &Value, items: &[Value]) -> Result<bool, String> {
    for item in items {
        if call.heap.equal(needle, item)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The items of the list that are not among `others`, each once if `is_once`.
fn without(call: &mut FunctionCall<'_>, others: &[Value], is_once: bool) -> Result<Value, String> {
    let mut items: Vec<Value> = Vec::new();
    for item in call.list(0)? {
        let is_left_out = is_in(call, item, others)? || is_once && is_in(call, item, &items)?;
        if !is_left_out {
            items.push(item.clone());
        }
    }
    call.heap.list(items)
}

fn steps(call: &mut FunctionCall<'_>, start: i64, end: i64, step: i64) -> Result<Value, String> {
    let mut items = Vec::new();
    let mut next = start;
    while (step > 0 && next < end) || (step < 0 && next > end) {
        if items.len() >= ITEMS_MAX {
            return Err(format!("a list of more than {ITEMS_MAX} numbers"));
        }
        items.push(Value::Int(next));
        let Some(after) = next.checked_add(step) else { break };
        next = after;
    }
    call.heap.list_of(ListType::Ints, items)
}

/// Numbers up to and including the end, as text separated by spaces.
fn seq(call: &mut FunctionCall<'_>) -> Result<Value, String> {
    let bounds = (0..call.args.len()).map(|index| call.int(index));
    let bounds = bounds.collect::<Result<Vec<_>, _>>()?;
    let towards = |start: i64, end: i64| if end < start { -1 } else { 1 };
    let (start, end, step) = match bounds[..] {
        [] => return Ok(Value::text("")),
        [end] => (1, end, towards(1, end)),
        [start, end] => (start, end, towards(start, end)),
        [start, step, end, ..] => (start, end, step),
    };
    if step != 0 && towards(start, end) != step.signum() && start != end {
        return Ok(Value::text(""));
    }
    let end = end.saturating_add(step.signum());
    let Value::List(numbers) = steps(call, start, end, step)? else {
        return Ok(Value::text(""));
    };
    let numbers = numbers.iter().map(|number| call.show(number)).collect::<Result<Vec<_>, _>>()?;
    Ok(Value::text(numbers.join(" ")))
}
