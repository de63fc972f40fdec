//! Values that templates are rendered with, as callers pass them.

use super::value::{Value, floats};
use crate::yaml::data as yaml;
use serde_json::Value as Json;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Values by their names.
pub(crate) type Values = BTreeMap<String, Data>;

/// One value.
#[derive(Clone, Debug)]
pub enum Data {
    /// Any JSON value.
    Json(Json),
    /// A list of maps, such as the rows of a table.
    Records(Vec<Record>),
    /// The content of a YAML file.
    Yaml(Yaml),
}

/// A value of YAML, which may have times in it, and numbers that JSON does not have.
#[derive(Clone, Debug)]
pub struct Yaml(pub(crate) yaml::Data);

/// Keys of [`Record`]s, sorted and without duplicates.
pub(crate) type Keys = Arc<[Arc<str>]>;

/// A map that shares its keys with other records, and its values with the templates that use it.
#[derive(Clone, Debug)]
pub struct Record {
    pub(super) shared: Shared,
    /// The values that are lists or maps, with their indices; each template copies these.
    pub(super) nested: Option<Box<[(usize, Part)]>>,
}

/// A value that each template computes again.
#[derive(Clone, Debug)]
pub(super) enum Part {
    Json(Json),
    Yaml(yaml::Data),
}

/// The members of an unchanged map.
#[derive(Clone, Debug)]
pub(super) struct Shared {
    pub(super) keys: Keys,
    pub(super) values: Arc<[Value]>,
}

impl Record {
    /// A record; `values` has one for each key.
    pub fn new(keys: Keys, values: impl Iterator<Item = Json>) -> Self {
        let mut nested = Vec::new();
        let value = |(place, value)| match value {
            Json::Null => Value::Nil,
            Json::Bool(truth) => Value::Bool(truth),
            Json::Number(number) => Value::number(&number),
            Json::String(text) => Value::Text(text.into()),
            Json::Array(_) | Json::Object(_) => {
                nested.push((place, Part::Json(value)));
                Value::Nil
            }
        };
        let values = values.enumerate().map(value).collect();
        Self::with(keys, values, nested)
    }

    /// Like [`Self::new`], for values of YAML.
    pub(crate) fn of_yaml(keys: Keys, values: impl Iterator<Item = yaml::Data>) -> Self {
        let mut nested = Vec::new();
        let value = |(place, value)| match value {
            yaml::Data::Nothing => Value::Nil,
            yaml::Data::Bool(truth) => Value::Bool(truth),
            yaml::Data::Int(number) => Value::Int(number),
            yaml::Data::Float(number) => Value::Float(number),
            yaml::Data::Text(text) => Value::Text(text.into()),
            // The zone of a time is that of the template.
            yaml::Data::Time(_)
            | yaml::Data::Uint(_)
            | yaml::Data::List(_)
            | yaml::Data::Map(_)
            | yaml::Data::IntMap(_) => {
                nested.push((place, Part::Yaml(value)));
                Value::Nil
            }
        };
        let values = values.enumerate().map(value).collect();
        Self::with(keys, values, nested)
    }

    fn with(keys: Keys, values: Arc<[Value]>, nested: Vec<(usize, Part)>) -> Self {
        let nested = (!nested.is_empty()).then(|| nested.into_boxed_slice());
        Self { shared: Shared { keys, values }, nested }
    }

    /// Converts every number to a float.
    pub fn with_floats(self) -> Self {
        let Self { shared: Shared { keys, values }, nested } = self;
        let float = |value: &Value| match value.integer() {
            Some(number) => Value::Float(number as f64),
            None => value.clone(),
        };
        let values = values.iter().map(float).collect();
        let nested = nested.map(|nested| {
            let float = |part| match part {
                Part::Json(value) => Part::Json(floats(value)),
                Part::Yaml(_) => part,
            };
            nested.into_iter().map(|(place, part)| (place, float(part))).collect()
        });
        Self { shared: Shared { keys, values }, nested }
    }

    /// Its keys and values.
    pub fn members(&self) -> impl Iterator<Item = (String, Json)> {
        let places = self.shared.keys.iter().zip(self.shared.values.iter()).enumerate();
        places.map(|(place, (key, value))| (key.to_string(), self.json(place, value)))
    }

    fn json(&self, place: usize, value: &Value) -> Json {
        match value {
            // Records only contain plain types.
            Value::Nil
            | Value::Named(..)
            | Value::Time(_)
            | Value::Version(_)
            | Value::Error(_)
            | Value::List(_)
            | Value::Map(_) => {
                let nested = self.nested.iter().flatten().find(|(at, _)| *at == place);
                nested.map_or(Json::Null, |(_, part)| part.json())
            }
            Value::Bool(truth) => Json::from(*truth),
            Value::Int(number) => Json::from(*number),
            Value::Float(number) => Json::from(*number),
            Value::Text(text) => Json::from(&**text),
        }
    }
}

impl Data {
    /// The values as JSON.
    pub fn json(&self) -> Json {
        match self {
            Self::Json(value) => value.clone(),
            Self::Records(records) => {
                let map = |record: &Record| Json::Object(record.members().collect());
                records.iter().map(map).collect()
            }
            Self::Yaml(Yaml(value)) => value.json(),
        }
    }
}

impl Part {
    fn json(&self) -> Json {
        match self {
            Self::Json(value) => value.clone(),
            Self::Yaml(value) => value.json(),
        }
    }
}

impl Shared {
    pub(super) fn get(&self, key: &str) -> Option<&Value> {
        let place = self.keys.binary_search_by(|known| (**known).cmp(key)).ok()?;
        self.values.get(place)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&Arc<str>, &Value)> {
        self.keys.iter().zip(self.values.iter())
    }
}
