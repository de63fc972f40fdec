//! Converts values passed in, which are JSON with types, or YAML.

mod json;

use super::super::data::{Data, Part, Record, Values, Yaml};
use super::super::time;
use super::super::types::{IntType, ListType, MapType, Type, Types};
use super::{Heap, Map, Value, check_levels};
use crate::yaml::data as yaml;
use serde_json::{Map as Members, Value as Json};
use std::sync::Arc;

impl Heap {
    /// Converts values by their names.
    pub(in crate::template) fn take_typed(
        &mut self,
        json: &Json,
        types: &Types,
    ) -> Result<Value, String> {
        let Json::Object(members) = json else { return self.take(json) };
        let members = members.iter().map(|(name, member)| {
            let kind = types.get(name).copied().unwrap_or(Type::Plain);
            Ok((Arc::from(name.as_str()), self.take_as(member, kind)?))
        });
        let map = members.collect::<Result<_, String>>()?;
        self.map(map)
    }

    /// Like `take_typed`, for values that may share equal parts.
    pub(in crate::template) fn take_values(
        &mut self,
        values: &Values,
        types: &Types,
    ) -> Result<Value, String> {
        let taken = values.iter().map(|(name, data)| {
            let kind = types.get(name).copied().unwrap_or(Type::Plain);
            let value = match data {
                Data::Json(json) => self.take_as(json, kind)?,
                Data::Records(records) => self.take_records(records)?,
                Data::Yaml(Yaml(value)) => self.take_yaml(value, 0)?,
            };
            Ok((Arc::from(name.as_str()), value))
        });
        let map = taken.collect::<Result<_, String>>()?;
        self.map(map)
    }

    fn take_records(&mut self, records: &[Record]) -> Result<Value, String> {
        let mut list = Vec::with_capacity(records.len());
        for record in records {
            let mut map = Map::Shared(record.shared.clone());
            for (place, part) in record.nested.iter().flatten() {
                let value = match part {
                    Part::Json(value) => self.take_level(value, 3)?,
                    Part::Yaml(value) => self.take_yaml(value, 3)?,
                };
                map.insert(Arc::clone(&record.shared.keys[*place]), value);
            }
            list.push(self.map(map)?);
        }
        self.list_of(ListType::Maps, list)
    }

    /// A value that does not fit its type is converted as plain JSON.
    fn take_as(&mut self, json: &Json, kind: Type) -> Result<Value, String> {
        match (kind, json) {
            (Type::Float, Json::String(text)) => Ok(Value::Float(text.parse().unwrap_or(f64::NAN))),
            (Type::Time, Json::String(text)) => Ok(match time::read(text, self.zone()) {
                Some(time) => Value::Time(Arc::new(time)),
                None => Value::text(text.as_str()),
            }),
            (Type::Strings, Json::Array(items)) => {
                self.take_items(items, ListType::Strings, Type::Plain)
            }
            (Type::Ints, Json::Array(items)) => self.take_items(items, ListType::Ints, Type::Plain),
            (Type::Floats, Json::Array(items)) => {
                self.take_items(items, ListType::Floats, Type::Float)
            }
            (Type::Maps, Json::Array(items)) => self.take_items(items, ListType::Maps, Type::Plain),
            (Type::Files, Json::Array(items)) => {
                self.take_items(items, ListType::Files, Type::File)
            }
            (Type::StringMap, Json::Object(members)) => {
                let map = self.take_members(members)?;
                self.map_of(MapType::Strings, map)
            }
            (Type::File, Json::Object(members)) => self.take_file(members),
            (_, json) => self.take(json),
        }
    }

    fn take_items(&mut self, items: &[Json], kind: ListType, item: Type) -> Result<Value, String> {
        let items = items.iter().map(|json| self.take_as(json, item));
        let items = items.collect::<Result<_, _>>()?;
        self.list_of(kind, items)
    }

    /// glazed's `FileData`.
    fn take_file(&mut self, members: &Members<String, Json>) -> Result<Value, String> {
        let mut map = Map::new();
        for (name, member) in members {
            let value = match (name.as_str(), member) {
                ("Size", Json::Number(size)) => Value::int64(size.as_i64().unwrap_or(i64::MAX)),
                // It is in UTC; Go has it in the local zone.
                ("LastModifiedTime", Json::String(text)) => match time::read(text, self.zone()) {
                    Some(time) => Value::Time(Arc::new(time.here(self.zone()))),
                    None => Value::text(text.as_str()),
                },
                ("Permissions", Json::String(text)) => Value::Named(IntType::FileMode, mode(text)),
                ("ParseError", Json::Null) => Value::Error(None),
                ("ParseError", Json::String(text)) => Value::Error(Some(text.as_str().into())),
                ("ParsedContent", parsed) => self.take_parsed(members, parsed)?,
                (_, member) => self.take(member)?,
            };
            map.insert(name.as_str().into(), value);
        }
        // The same text under both names, and held once.
        if let Some(content) = map.get("Content").cloned() {
            map.insert("StringContent".into(), content);
        }
        self.map_of(MapType::File, map)
    }

    /// The content of a file, in the types of Go's readers of JSON, YAML and CSV.
    fn take_parsed(
        &mut self,
        file: &Members<String, Json>,
        parsed: &Json,
    ) -> Result<Value, String> {
        match (file.get("FileType").and_then(Json::as_str), parsed) {
            (Some("JSON"), Json::Null) => self.read_file_json(file),
            (Some("JSON"), parsed) => self.take_floats(parsed),
            (Some("YAML"), Json::Null) => self.read_file_yaml(file),
            (Some("YAML"), parsed) => {
                let parsed = self.take(parsed)?;
                self.with_any_keys(parsed)
            }
            (Some("CSV"), Json::Array(rows)) => {
                let rows = rows.iter().map(|row| self.take_as(row, Type::Strings));
                let rows = rows.collect::<Result<_, _>>()?;
                self.list_of(ListType::Rows, rows)
            }
            (_, parsed) => self.take(parsed),
        }
    }

    /// The content of a JSON file; nothing, if that can't be read.
    fn read_file_json(&mut self, file: &Members<String, Json>) -> Result<Value, String> {
        let content = file.get("Content").and_then(Json::as_str).unwrap_or_default();
        match file.get("ParseError") {
            None | Some(Json::Null) => json::read(self, content.trim_start_matches('\u{feff}')),
            Some(_) => Ok(Value::Nil),
        }
    }

    /// The content of a YAML file; nothing, if that can't be read.
    fn read_file_yaml(&mut self, file: &Members<String, Json>) -> Result<Value, String> {
        let content = file.get("Content").and_then(Json::as_str).unwrap_or_default();
        match file.get("ParseError") {
            None | Some(Json::Null) => {
                let read = yaml::read(content, yaml::Reader::V2)?;
                let read = self.take_yaml(&read, 0)?;
                self.with_any_keys(read)
            }
            Some(_) => Ok(Value::Nil),
        }
    }

    /// Replaces the maps in `value` by those that yaml.v2 makes.
    fn with_any_keys(&mut self, value: Value) -> Result<Value, String> {
        if let Value::List(list) = &value {
            let items = list.iter().map(|item| self.with_any_keys(item.clone()));
            let items = items.collect::<Result<_, _>>()?;
            return self.list(items);
        }
        let Value::Map(id) = value else { return Ok(value) };
        let members = std::mem::take(self.write(id)).into_iter();
        let members = members.map(|(key, member)| Ok((key, self.with_any_keys(member)?)));
        let map = members.collect::<Result<_, String>>()?;
        let has_ints = id.kind() == MapType::IntKeys;
        self.map_of(if has_ints { MapType::IntKeys } else { MapType::AnyKeys }, map)
    }

    /// Converts a value passed in. Integers that don't fit become floats, as in Go.
    pub(in crate::template) fn take(&mut self, json: &Json) -> Result<Value, String> {
        self.take_level(json, 0)
    }

    fn take_members(&mut self, members: &Members<String, Json>) -> Result<Map, String> {
        let members = members.iter();
        members
            .map(|(key, member)| Ok((key.as_str().into(), self.take_level(member, 1)?)))
            .collect()
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

    /// Like `take_level`, for YAML, which has times and unsigned 64-bit integers.
    fn take_yaml(&mut self, yaml: &yaml::Data, level: usize) -> Result<Value, String> {
        check_levels(level)?;
        Ok(match yaml {
            yaml::Data::Nothing => Value::Nil,
            yaml::Data::Bool(truth) => Value::Bool(*truth),
            yaml::Data::Int(number) => Value::Int(*number),
            yaml::Data::Uint(number) => Value::Named(IntType::Uint64, number.cast_signed()),
            yaml::Data::Float(number) => Value::Float(*number),
            yaml::Data::Text(text) => Value::Text(text.as_str().into()),
            yaml::Data::Time(text) => match time::read(text, self.zone()) {
                Some(time) => Value::Time(Arc::new(time)),
                None => Value::text(text.as_str()),
            },
            yaml::Data::List(items) => {
                let items = items.iter().map(|item| self.take_yaml(item, level + 1));
                let items = items.collect::<Result<_, _>>()?;
                self.list(items)?
            }
            yaml::Data::Map(entries) => {
                let entries = entries.iter().map(|(key, value)| {
                    Ok((Arc::from(key.as_str()), self.take_yaml(value, level + 1)?))
                });
                let map = entries.collect::<Result<_, String>>()?;
                self.map(map)?
            }
            yaml::Data::IntMap(entries) => {
                let entries = entries.iter().map(|(key, value)| {
                    Ok((Arc::from(key.to_string()), self.take_yaml(value, level + 1)?))
                });
                let map = entries.collect::<Result<_, String>>()?;
                self.map_of(MapType::IntKeys, map)?
            }
        })
    }

    /// Like `take_level`, for JSON that a template reads: every number is a float, as in Go.
    pub(in crate::template) fn take_floats(&mut self, json: &Json) -> Result<Value, String> {
        self.take(&floats(json.clone()))
    }
}

/// JSON in which every number is a float, as Go reads it where no type is given.
pub(crate) fn floats(mut json: Json) -> Json {
    let mut open = vec![&mut json];
    while let Some(next) = open.pop() {
        match next {
            Json::Number(number) => {
                if let Some(float) = number.as_f64().and_then(serde_json::Number::from_f64) {
                    *number = float;
                }
            }
            Json::Array(items) => open.extend(items),
            Json::Object(members) => open.extend(members.values_mut()),
            Json::Null | Json::Bool(_) | Json::String(_) => {}
        }
    }
    json
}

/// The mode bits of permissions such as `-rw-r--r--`.
fn mode(text: &str) -> i64 {
    text.chars().skip(1).take(9).fold(0, |mode, letter| mode << 1 | i64::from(letter != '-'))
}
