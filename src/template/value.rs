//! Values during rendering, and the store of their maps.

mod exchange;

pub(super) use super::map::Map;
pub(crate) use exchange::floats;

use super::semver::Version;
use super::time::GoTime;
use super::types::{IntType, ListType, MapType};
use jiff::tz::TimeZone;
use std::sync::Arc;

/// Most bytes that the functions of one rendering may read and write in total. This also limits
/// memory, as everything that is created is counted here.
pub(super) const WORK_BYTES_MAX: usize = 256 * 1024 * 1024;

/// Deepest nesting of lists and maps.
pub(super) const VALUE_LEVELS_MAX: usize = 128;

/// The cost of copying an item of a list or a map, in bytes of work.
const ITEM_BYTES: usize = 16;

/// The cost of descending into an item to write or compare it, in bytes of work.
const VISIT_BYTES: usize = 128;

/// The cost of comparing two scalars, in bytes of work.
const COMPARE_BYTES: usize = 4;

/// The field of a file that is created on first use.
const RAW_CONTENT: &str = "RawContent";

/// A value in a template.
#[derive(Clone, Debug)]
pub(super) enum Value {
    Nil,
    Bool(bool),
    /// Go's `int`.
    Int(i64),
    /// An integer of another type.
    Named(IntType, i64),
    Float(f64),
    Text(Arc<str>),
    Time(Arc<GoTime>),
    Version(Arc<Version>),
    /// Go's `error`. Without a message it is nil, and is printed as `<nil>` where other missing
    /// values are `<no value>`.
    Error(Option<Arc<str>>),
    List(Arc<List>),
    Map(MapId),
}

/// Items that don't change any more.
#[derive(Debug)]
pub(super) struct List {
    items: Vec<Value>,
    kind: ListType,
    /// Nesting of lists, this one included: bounds the stack that dropping them needs.
    levels: usize,
}

impl List {
    pub(super) fn kind(&self) -> ListType {
        self.kind
    }
}

impl std::ops::Deref for List {
    type Target = [Value];

    fn deref(&self) -> &[Value] {
        &self.items
    }
}

/// Identifies a map: `set` changes the map for all references to it, as in Go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct MapId(usize, MapType);

impl MapId {
    pub(super) fn kind(self) -> MapType {
        self.1
    }
}

impl MapId {
    /// A key of this map as a value.
    pub(super) fn key(self, text: Arc<str>) -> Value {
        let int = text.parse().ok().filter(|_| self.kind() == MapType::IntKeys);
        int.map_or(Value::Text(text), Value::Int)
    }
}

/// All maps of one rendering, and its remaining work. Maps that refer to each other in a
/// ring, or in a long chain, are freed with it, one after the other.
#[derive(Debug)]
pub(super) struct Heap {
    maps: Vec<Map>,
    work_bytes_left: usize,
    /// The local zone.
    zone: TimeZone,
}

impl Heap {
    pub(super) fn new(work_bytes: usize, zone: TimeZone) -> Self {
        Self { maps: Vec::new(), work_bytes_left: work_bytes, zone }
    }

    /// The local zone.
    pub(super) fn zone(&self) -> &TimeZone {
        &self.zone
    }

    /// Counts work before it is done.
    pub(super) fn charge(&mut self, bytes: usize) -> Result<(), String> {
        let left = self.work_bytes_left.checked_sub(bytes);
        self.work_bytes_left = left.ok_or_else(|| {
            format!(
                "too much work: functions may read and write {} MiB in total",
                WORK_BYTES_MAX / 1024 / 1024
            )
        })?;
        Ok(())
    }

    /// Counts the work of creating or reading `count` items.
    pub(super) fn charge_items(&mut self, count: usize) -> Result<(), String> {
        self.charge(count.saturating_mul(ITEM_BYTES))
    }

    /// Counts the work of descending into an item.
    pub(super) fn visit(&mut self) -> Result<(), String> {
        self.charge(VISIT_BYTES)
    }

    pub(super) fn list(&mut self, items: Vec<Value>) -> Result<Value, String> {
        self.list_of(ListType::Any, items)
    }

    pub(super) fn list_of(&mut self, kind: ListType, items: Vec<Value>) -> Result<Value, String> {
        self.charge_items(items.len())?;
        let levels = items.iter().map(levels).max().unwrap_or(0) + 1;
        check_levels(levels)?;
        Ok(Value::List(Arc::new(List { items, kind, levels })))
    }

    /// The list with one more item. If nothing else refers to the list, no other item is touched.
    pub(super) fn pushed(&mut self, mut list: Arc<List>, item: Value) -> Result<Value, String> {
        let Some(own) = Arc::get_mut(&mut list) else {
            let mut items = list.to_vec();
            items.push(item);
            return self.list(items);
        };
        // A growing list is copied from time to time: less than twice per item.
        self.charge_items(3)?;
        if let Value::List(item) = &item {
            check_levels(item.levels + 1)?;
            own.levels = own.levels.max(item.levels + 1);
        }
        own.kind = ListType::Any;
        own.items.push(item);
        Ok(Value::List(list))
    }

    pub(super) fn texts<T: AsRef<str>>(
        &mut self,
        texts: impl IntoIterator<Item = T>,
    ) -> Result<Value, String> {
        let items = texts.into_iter().map(|text| Value::Text(text.as_ref().into())).collect();
        self.list_of(ListType::Strings, items)
    }

    pub(super) fn map(&mut self, map: Map) -> Result<Value, String> {
        self.map_of(MapType::Any, map)
    }

    pub(super) fn map_of(&mut self, kind: MapType, map: Map) -> Result<Value, String> {
        self.charge_items(map.len() + 1)?;
        self.maps.push(map);
        Ok(Value::Map(MapId(self.maps.len() - 1, kind)))
    }

    /// The members of a map.
    pub(super) fn read(&self, id: MapId) -> &Map {
        &self.maps[id.0]
    }

    /// The field of a file, or the member of another map; nil if it is missing.
    pub(super) fn field(&mut self, id: MapId, name: &str) -> Result<Value, String> {
        if id.kind() == MapType::File && name == RAW_CONTENT {
            let content = self.read(id).get("Content").cloned();
            let Some(Value::Text(text)) = content else { return Ok(Value::Nil) };
            let bytes = text.bytes().map(|byte| Value::Named(IntType::Uint8, byte.into()));
            self.charge_items(text.len())?;
            return self.list_of(ListType::Bytes, bytes.collect());
        }
        match self.read(id).get(name) {
            Some(value) => Ok(value.clone()),
            None if id.kind() == MapType::File => Err(format!(
                "a file has no .{name}; it has .Path, .BaseName, .Content, .ParsedContent and others"
            )),
            None => Ok(Value::Nil),
        }
    }

    /// The members of a map, for changing them.
    pub(super) fn write(&mut self, id: MapId) -> &mut Map {
        &mut self.maps[id.0]
    }

    /// A copy of a map, which is cheap apart from its number of members.
    pub(super) fn copy(&mut self, id: MapId) -> Result<Map, String> {
        self.charge_items(self.read(id).len())?;
        Ok(self.read(id).clone())
    }

    /// The members of a map in the order in which they are printed: by their keys, integers by their size.
    pub(super) fn members(&mut self, id: MapId) -> Result<Vec<(Arc<str>, Value)>, String> {
        let mut members: Vec<_> = self.copy(id)?.into_iter().collect();
        if id.kind() == MapType::IntKeys {
            // `set` adds keys of any kind; such are last.
            let int = |key: &str| key.parse::<i64>().ok();
            members.sort_by_cached_key(|(key, _)| (int(key).is_none(), int(key)));
        }
        Ok(members)
    }

    /// Deep equality.
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

/// Equality of scalars. Integers of different types may be equal.
fn same(left: &Value, right: &Value) -> bool {
    if let (Some(left), Some(right)) = (left.wide_integer(), right.wide_integer()) {
        return left == right;
    }
    match (left, right) {
        (Value::Nil | Value::Error(None), Value::Nil | Value::Error(None)) => true,
        (Value::Bool(left), Value::Bool(right)) => left == right,
        (Value::Float(left), Value::Float(right)) => left == right,
        (Value::Text(left), Value::Text(right)) => left == right,
        (Value::Time(left), Value::Time(right)) => left == right,
        (Value::Version(left), Value::Version(right)) => left == right,
        (Value::Error(left), Value::Error(right)) => left == right,
        _ => false,
    }
}

/// Nesting of lists.
fn levels(value: &Value) -> usize {
    if let Value::List(list) = value { list.levels } else { 0 }
}

pub(super) fn check_levels(levels: usize) -> Result<(), String> {
    if levels > VALUE_LEVELS_MAX {
        return Err(format!("lists and maps are nested more than {VALUE_LEVELS_MAX} levels deep"));
    }
    Ok(())
}

impl Value {
    /// A number passed in. An integer that doesn't fit becomes a float, as in Go.
    pub(super) fn number(number: &serde_json::Number) -> Self {
        match number.as_i64() {
            Some(number) => Self::Int(number),
            None => Self::Float(number.as_f64().unwrap_or(f64::NAN)),
        }
    }

    pub(super) fn text(text: impl Into<Arc<str>>) -> Self {
        Self::Text(text.into())
    }

    pub(super) fn int64(number: i64) -> Self {
        Self::Named(IntType::Int64, number)
    }

    /// The number, if it is an integer of any type.
    pub(super) fn integer(&self) -> Option<i64> {
        if let Self::Int(number) | Self::Named(_, number) = self { Some(*number) } else { None }
    }

    /// Like [`Self::integer`], with room for unsigned 64-bit integers, for comparisons.
    pub(super) fn wide_integer(&self) -> Option<i128> {
        if let Self::Named(IntType::Uint64, number) = self {
            return Some(number.cast_unsigned().into());
        }
        self.integer().map(i128::from)
    }

    /// The type as Go's `%T` names it.
    pub(super) fn type_name(&self) -> &'static str {
        match self {
            Self::Nil | Self::Error(None) => "<nil>",
            Self::Bool(_) => "bool",
            Self::Int(_) => "int",
            Self::Named(kind, _) => kind.name(),
            Self::Float(_) => "float64",
            Self::Text(_) => "string",
            Self::Time(_) => "time.Time",
            Self::Version(_) => "*semver.Version",
            Self::Error(Some(_)) => "*errors.errorString",
            Self::List(list) => list.kind.name(),
            Self::Map(id) => id.kind().name(),
        }
    }

    /// The kind as Go's `reflect` names it.
    pub(super) fn kind_name(&self) -> &'static str {
        match self {
            Self::Nil | Self::Error(None) => "invalid",
            Self::Bool(_) => "bool",
            Self::Int(_) => "int",
            Self::Named(kind, _) => kind.kind(),
            Self::Float(_) => "float64",
            Self::Text(_) => "string",
            Self::Time(_) => "struct",
            Self::Version(_) | Self::Error(Some(_)) => "ptr",
            Self::List(_) => "slice",
            Self::Map(id) => id.kind().kind(),
        }
    }

    /// The truth of a value in `if`: false for nil, false, zero and whatever is empty.
    pub(super) fn is_true(&self, heap: &Heap) -> bool {
        match self {
            Self::Nil => false,
            Self::Bool(truth) => *truth,
            Self::Int(number) | Self::Named(_, number) => *number != 0,
            Self::Float(number) => *number != 0.0,
            Self::Text(text) => !text.is_empty(),
            Self::Time(_) | Self::Version(_) => true,
            Self::Error(message) => message.is_some(),
            Self::List(list) => !list.is_empty(),
            Self::Map(id) => !heap.read(*id).is_empty(),
        }
    }
}
