//! What templates compute with, and the place where their maps live.

use super::data::{Data, Record, Values};
pub(super) use super::map::Map;
use serde_json::Value as Json;
use std::sync::Arc;

/// Bytes that the functions of one rendering may read and write, all together. Memory, too, stays
/// below it, since nothing is made that is not counted here.
pub(super) const WORK_BYTES_MAX: usize = 256 * 1024 * 1024;

/// Levels of lists and maps within each other.
pub(super) const VALUE_LEVELS_MAX: usize = 128;

/// What copying an item of a list or a map counts as, in bytes of work.
const ITEM_BYTES: usize = 16;

/// What going into an item to write or compare it counts as, in bytes of work.
const VISIT_BYTES: usize = 128;

/// What comparing two values without parts counts as, in bytes of work.
const COMPARE_BYTES: usize = 4;

/// A value of a template.
#[derive(Clone, Debug)]
pub(super) enum Value {
    Nil,
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(Arc<str>),
    List(Arc<List>),
    Map(MapId),
}

/// Items that don't change any more.
#[derive(Debug)]
pub(super) struct List {
    items: Vec<Value>,
    /// Lists within lists, this one included: bounds the stack that dropping them needs.
    levels: usize,
}

impl std::ops::Deref for List {
    type Target = [Value];

    fn deref(&self) -> &[Value] {
        &self.items
    }
}

/// Says which map, not what is in it: `set` changes the map for everyone who holds it, as in Go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct MapId(usize);

/// All maps of one rendering, and the work it may still do. Maps that refer to each other in a
/// ring, or in a long chain, are freed with it, one after the other.
#[derive(Debug)]
pub(super) struct Heap {
    maps: Vec<Map>,
    work_bytes_left: usize,
}

impl Heap {
    pub(super) fn new(work_bytes: usize) -> Self {
        Self { maps: Vec::new(), work_bytes_left: work_bytes }
    }

    /// Counts work that is to be done.
    pub(super) fn charge(&mut self, bytes: usize) -> Result<(), String> {
        let left = self.work_bytes_left.checked_sub(bytes);
        self.work_bytes_left = left.ok_or_else(|| {
            format!(
                "too much to compute: functions may read and write {} MiB in all",
                WORK_BYTES_MAX / 1024 / 1024
            )
        })?;
        Ok(())
    }

    /// Counts the work of making or reading `count` items.
    pub(super) fn charge_items(&mut self, count: usize) -> Result<(), String> {
        self.charge(count.saturating_mul(ITEM_BYTES))
    }

    /// Counts the work of going into an item.
    pub(super) fn visit(&mut self) -> Result<(), String> {
        self.charge(VISIT_BYTES)
    }

    pub(super) fn list(&mut self, items: Vec<Value>) -> Result<Value, String> {
        self.charge_items(items.len())?;
        let below = items.iter().map(|item| match item {
            Value::List(list) => list.levels,
            Value::Nil
            | Value::Bool(_)
            | Value::Int(_)
            | Value::Float(_)
            | Value::Text(_)
            | Value::Map(_) => 0,
        });
        let levels = below.max().unwrap_or(0) + 1;
        check_levels(levels)?;
        Ok(Value::List(Arc::new(List { items, levels })))
    }

    /// The list with one item more. If nobody else holds the list, no other item is touched.
    pub(super) fn pushed(&mut self, mut list: Arc<List>, item: Value) -> Result<Value, String> {
        let Some(own) = Arc::get_mut(&mut list) else {
            let mut items = list.to_vec();
            items.push(item);
            return self.list(items);
        };
        // Growing, the list is copied from time to time: less than twice per item.
        self.charge_items(3)?;
        if let Value::List(item) = &item {
            check_levels(item.levels + 1)?;
            own.levels = own.levels.max(item.levels + 1);
        }
        own.items.push(item);
        Ok(Value::List(list))
    }

    pub(super) fn texts<T: AsRef<str>>(
        &mut self,
        texts: impl IntoIterator<Item = T>,
    ) -> Result<Value, String> {
        let items = texts.into_iter().map(|text| Value::Text(text.as_ref().into())).collect();
        self.list(items)
    }

    pub(super) fn map(&mut self, map: Map) -> Result<Value, String> {
        self.charge_items(map.len() + 1)?;
        self.maps.push(map);
        Ok(Value::Map(MapId(self.maps.len() - 1)))
    }

    /// What is in a map.
    pub(super) fn read(&self, id: MapId) -> &Map {
        &self.maps[id.0]
    }

    /// What is in a map, to be changed.
    pub(super) fn write(&mut self, id: MapId) -> &mut Map {
        &mut self.maps[id.0]
    }

    /// Takes in a value from outside. Integers that don't fit become floats, as in Go.
    pub(super) fn take(&mut self, json: &Json) -> Result<Value, String> {
        self.take_level(json, 0)
    }

    /// Takes in the values of a rendering, as a map.
    pub(super) fn take_values(&mut self, values: &Values) -> Result<Value, String> {
        let taken = values.iter().map(|(name, data)| {
            let value = match data {
                Data::Json(json) => self.take_level(json, 1)?,
                Data::Records(records) => {
                    let mut list = Vec::with_capacity(records.len());
                    for record in records {
                        list.push(self.take_record(record)?);
                    }
                    self.list(list)?
                }
            };
            Ok((Arc::from(name.as_str()), value))
        });
        let map = taken.collect::<Result<_, String>>()?;
        self.map(map)
    }

    fn take_record(&mut self, record: &Record) -> Result<Value, String> {
        let mut map = Map::Shared(record.shared.clone());
        for (place, value) in record.nested.iter().flatten() {
            let value = self.take_level(value, 3)?;
            map.insert(Arc::clone(&record.shared.keys[*place]), value);
        }
        self.map(map)
    }

    fn take_level(&mut self, json: &Json, level: usize) -> Result<Value, String> {
        check_levels(level)?;
        Ok(match json {
            Json::Null => Value::Nil,
            Json::Bool(truth) => Value::Bool(*truth),
            Json::Number(number) => Value::number(number),
            Json::String(text) => Value::Text(text.as_str().into()),
            Json::Array(items) => {
                let items = items.iter().map(|item| self.take_level(item, level + 1));
                let items = items.collect::<Result<_, _>>()?;
                self.list(items)?
            }
            Json::Object(members) => {
                let members = members.iter().map(|(key, member)| {
                    Ok((Arc::from(key.as_str()), self.take_level(member, level + 1)?))
                });
                let map = members.collect::<Result<_, String>>()?;
                self.map(map)?
            }
        })
    }

    /// The same for JSON that a template reads, where every number is a float, as in Go.
    pub(super) fn take_floats(&mut self, json: &Json) -> Result<Value, String> {
        let mut json = json.clone();
        let mut open = vec![&mut json];
        while let Some(next) = open.pop() {
            match next {
                Json::Number(number) => {
                    let float = number.as_f64().and_then(serde_json::Number::from_f64);
                    if let Some(float) = float {
                        *number = float;
                    }
                }
                Json::Array(items) => open.extend(items),
                Json::Object(members) => open.extend(members.values_mut()),
                Json::Null | Json::Bool(_) | Json::String(_) => {}
            }
        }
        self.take(&json)
    }

    /// Gives a value away.
    pub(super) fn give(&mut self, value: &Value) -> Result<Json, String> {
        self.give_level(value, 0)
    }

    fn give_level(&mut self, value: &Value, level: usize) -> Result<Json, String> {
        check_levels(level)?;
        self.visit()?;
        Ok(match value {
            Value::Nil => Json::Null,
            Value::Bool(truth) => Json::Bool(*truth),
            Value::Int(number) => Json::from(*number),
            Value::Float(number) => match serde_json::Number::from_f64(*number) {
                Some(number) => Json::Number(number),
                None => return Err(format!("{number} is no number that JSON or YAML can hold")),
            },
            Value::Text(text) => {
                self.charge(text.len())?;
                Json::String(text.to_string())
            }
            Value::List(list) => {
                let items = list.iter().map(|item| self.give_level(item, level + 1));
                Json::Array(items.collect::<Result<_, _>>()?)
            }
            Value::Map(id) => {
                let map = self.copy(*id)?;
                let members = map
                    .iter()
                    .map(|(key, value)| Ok((key.to_string(), self.give_level(value, level + 1)?)));
                Json::Object(members.collect::<Result<_, String>>()?)
            }
        })
    }

    /// A copy of a map, which is cheap in all but its number of members.
    pub(super) fn copy(&mut self, id: MapId) -> Result<Map, String> {
        self.charge_items(self.read(id).len())?;
        Ok(self.read(id).clone())
    }

    /// True for values that are alike all the way down.
    pub(super) fn equal(&mut self, left: &Value, right: &Value) -> Result<bool, String> {
        self.equal_level(left, right, 0)
    }

    fn equal_level(&mut self, left: &Value, right: &Value, level: usize) -> Result<bool, String> {
        check_levels(level)?;
        self.charge(COMPARE_BYTES)?;
        match (left, right) {
            (Value::List(left), Value::List(right)) => {
                self.visit()?;
                let mut is_equal = left.len() == right.len();
                for (left, right) in left.iter().zip(right.iter()) {
                    is_equal = is_equal && self.equal_level(left, right, level + 1)?;
                }
                Ok(is_equal)
            }
            (Value::Map(left), Value::Map(right)) => {
                let (left, right) = (self.copy(*left)?, self.copy(*right)?);
                let mut is_equal = left.len() == right.len();
                for ((left_key, left), (right_key, right)) in left.iter().zip(right.iter()) {
                    is_equal = is_equal
                        && left_key == right_key
                        && self.equal_level(left, right, level + 1)?;
                }
                Ok(is_equal)
            }
            _ => Ok(same(left, right)),
        }
    }
}

/// True for values without parts that are alike.
fn same(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Nil, Value::Nil) => true,
        (Value::Bool(left), Value::Bool(right)) => left == right,
        (Value::Int(left), Value::Int(right)) => left == right,
        (Value::Float(left), Value::Float(right)) => left == right,
        (Value::Text(left), Value::Text(right)) => left == right,
        _ => false,
    }
}

fn check_levels(levels: usize) -> Result<(), String> {
    if levels > VALUE_LEVELS_MAX {
        return Err(format!(
            "lists and maps stand in each other more than {VALUE_LEVELS_MAX} levels deep"
        ));
    }
    Ok(())
}

impl Value {
    /// A number from outside. An integer that doesn't fit becomes a float, as in Go.
    pub(super) fn number(number: &serde_json::Number) -> Self {
        match number.as_i64() {
            Some(number) => Self::Int(number),
            None => Self::Float(number.as_f64().unwrap_or(f64::NAN)),
        }
    }

    pub(super) fn text(text: impl Into<Arc<str>>) -> Self {
        Self::Text(text.into())
    }

    /// The type as Go's `%T` names it.
    pub(super) fn type_name(&self) -> &'static str {
        match self {
            Self::Nil => "<nil>",
            Self::Bool(_) => "bool",
            Self::Int(_) => "int",
            Self::Float(_) => "float64",
            Self::Text(_) => "string",
            Self::List(_) => "[]interface {}",
            Self::Map(_) => "map[string]interface {}",
        }
    }

    /// The kind as Go's `reflect` names it.
    pub(super) fn kind_name(&self) -> &'static str {
        match self {
            Self::Nil => "invalid",
            Self::Bool(_) => "bool",
            Self::Int(_) => "int",
            Self::Float(_) => "float64",
            Self::Text(_) => "string",
            Self::List(_) => "slice",
            Self::Map(_) => "map",
        }
    }

    /// What `if` decides by: false for nil, false, zero and whatever is empty.
    pub(super) fn is_true(&self, heap: &Heap) -> bool {
        match self {
            Self::Nil => false,
            Self::Bool(truth) => *truth,
            Self::Int(number) => *number != 0,
            Self::Float(number) => *number != 0.0,
            Self::Text(text) => !text.is_empty(),
            Self::List(list) => !list.is_empty(),
            Self::Map(id) => !heap.read(*id).is_empty(),
        }
    }
}
