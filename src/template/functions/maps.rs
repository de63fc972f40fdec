//! Functions on maps: <https://masterminds.github.io/sprig/dicts.html>. Keys are sorted.

use super::{ANY, Function, FunctionCall, function};
use crate::template::value::{Heap, Map, MapId, VALUE_LEVELS_MAX, Value, check_levels};
use std::sync::Arc;

pub(super) const FUNCTIONS: &[Function] = &[
    function("dict", (0, ANY), |call| {
        let mut map = Map::new();
        for pair in call.args.chunks(2) {
            let key = call.show(&pair[0])?;
            map.insert(key, pair.get(1).cloned().unwrap_or_else(|| Value::text("")));
        }
        call.heap.map(map)
    }),
    function("get", (2, 2), |call| {
        let found = call.heap.read(call.map(0)?).get(&**call.text(1)?).cloned();
        Ok(found.unwrap_or_else(|| Value::text("")))
    }),
    function("set", (3, 3), |call| {
        let (id, key) = (call.map(0)?, call.text(1)?.clone());
        let value = call.arg(2).clone();
        call.heap.charge_items(1)?;
        call.heap.write(id).insert(key, value);
        Ok(Value::Map(id))
    }),
    function("unset", (2, 2), |call| {
        let (id, key) = (call.map(0)?, call.text(1)?);
        call.heap.write(id).remove(&**key);
        Ok(Value::Map(id))
    }),
    function("hasKey", (2, 2), |call| {
        Ok(Value::Bool(call.heap.read(call.map(0)?).contains_key(&**call.text(1)?)))
    }),
    function("keys", (0, ANY), |call| {
        let mut keys = Vec::new();
        for index in 0..call.args.len() {
            let members = call.heap.members(call.map(index)?)?;
            keys.extend(members.into_iter().map(|(key, _)| key));
        }
        call.heap.texts(keys)
    }),
    function("values", (1, 1), |call| {
        let members = call.heap.members(call.map(0)?)?;
        call.heap.list(members.into_iter().map(|(_, value)| value).collect())
    }),
    function("pick", (1, ANY), |call| members_of(call, true)),
    function("omit", (1, ANY), |call| members_of(call, false)),
    function("pluck", (1, ANY), |call| {
        let key = call.text(0)?;
        let mut found = Vec::new();
        for index in 1..call.args.len() {
            found.extend(call.heap.read(call.map(index)?).get(&**key).cloned());
        }
        call.heap.list(found)
    }),
    function("dig", (3, ANY), dig),
    function("merge", (1, ANY), |call| merge_all(call, false)),
    function("mergeOverwrite", (1, ANY), |call| merge_all(call, true)),
    function("deepCopy", (1, 1), |call| {
        let value = call.arg(0);
        copied(call.heap, value, 0)
    }),
];

/// A deep copy of a value.
fn copied(heap: &mut Heap, value: &Value, level: usize) -> Result<Value, String> {
    check_levels(level)?;
    heap.visit()?;
    if let Value::List(list) = value {
        let items = list.iter().map(|item| copied(heap, item, level + 1));
        let items = items.collect::<Result<_, _>>()?;
        return heap.list_of(list.kind(), items);
    }
    if let Value::Map(id) = value {
        let members = heap.copy(*id)?.into_iter();
        let members = members.map(|(key, member)| Ok((key, copied(heap, &member, level + 1)?)));
        let map = members.collect::<Result<_, String>>()?;
        return heap.map_of(id.kind(), map);
    }
    Ok(value.clone())
}

/// A map of the members that the other arguments name, or of those that they don't.
fn members_of(call: &mut FunctionCall<'_>, is_named: bool) -> Result<Value, String> {
    let mut map = call.map_copy(0)?;
    let names = (1..call.args.len()).map(|index| call.text(index));
    let names = names.collect::<Result<Vec<&Arc<str>>, _>>()?;
    map.retain(|key, _| names.contains(&key) == is_named);
    call.heap.map(map)
}

/// `dig "a" "b" fallback map`: the value of `.a.b`, or the fallback.
fn dig(call: &mut FunctionCall<'_>) -> Result<Value, String> {
    let last = call.args.len() - 1;
    let mut value = Value::Map(call.map(last)?);
    for index in 0..last - 1 {
        let key = call.text(index)?;
        let Value::Map(id) = value else {
            return Err(format!("{key:?} is looked up in a {}", value.type_name()));
        };
        let Some(found) = call.heap.read(id).get(&**key) else {
            return Ok(call.arg(last - 1).clone());
        };
        value = found.clone();
    }
    Ok(value)
}

/// Changes the first map, as sprig does: it gets the members that it lacks from the others, in
/// their order, or all of theirs if `overwrites`.
fn merge_all(call: &mut FunctionCall<'_>, overwrites: bool) -> Result<Value, String> {
    let into = call.map(0)?;
    for index in 1..call.args.len() {
        let from = call.map(index)?;
        merge(call.heap, into, from, overwrites, 0)?;
    }
    Ok(Value::Map(into))
}

fn merge(
    heap: &mut Heap,
    into: MapId,
    from: MapId,
    overwrites: bool,
    level: usize,
) -> Result<(), String> {
    if level > VALUE_LEVELS_MAX {
        return Err("maps are nested too deeply".into());
    }
    for (key, value) in heap.copy(from)? {
        let known = heap.read(into).get(&key).cloned().unwrap_or(Value::Nil);
        match (&known, &value) {
            (Value::Map(known), Value::Map(from)) => {
                merge(heap, *known, *from, overwrites, level + 1)?;
            }
            // An empty value counts as missing, on either side.
            _ if !known.is_true(heap) || (overwrites && value.is_true(heap)) => {
                heap.charge_items(1)?;
                heap.write(into).insert(key, value);
            }
            _ => {}
        }
    }
    Ok(())
}
