//! Maps with the same keys, stored with their keys once.

use crate::template::{Keys, Record};
use crate::yaml::data as yaml;
use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};
use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

/// Builds records; consecutive ones with the same keys share them.
#[derive(Debug, Default)]
pub(super) struct Maker {
    names: HashSet<Arc<str>>,
    last: Keys,
}

impl Maker {
    /// The record of a value, if that is a map.
    pub(super) fn record_of(&mut self, value: Value) -> Option<Record> {
        if let Value::Object(map) = value { Some(self.record(map)) } else { None }
    }

    pub(super) fn record(&mut self, mut map: Map<String, Value>) -> Record {
        map.sort_keys();
        self.share(map.keys().collect::<Vec<_>>().into_iter().map(String::as_str));
        Record::new(Arc::clone(&self.last), map.into_iter().map(|(_, value)| value))
    }

    fn record_of_yaml(&mut self, mut map: Vec<(String, yaml::Data)>) -> Record {
        map.sort_by(|(one, _), (other, _)| one.cmp(other));
        self.share(map.iter().map(|(key, _)| key.as_str()));
        Record::of_yaml(Arc::clone(&self.last), map.into_iter().map(|(_, value)| value))
    }

    /// Makes these the last keys.
    fn share<'a>(&mut self, keys: impl ExactSizeIterator<Item = &'a str> + Clone) {
        let is_same = self.last.len() == keys.len()
            && self.last.iter().zip(keys.clone()).all(|(known, key)| **known == *key);
        if !is_same {
            self.last = keys.map(|key| self.name(key)).collect();
        }
    }

    fn name(&mut self, key: &str) -> Arc<str> {
        if let Some(known) = self.names.get(key) {
            return Arc::clone(known);
        }
        let name: Arc<str> = key.into();
        self.names.insert(Arc::clone(&name));
        name
    }
}

/// A list of maps, or one map, which counts as a list of one; nothing else.
#[derive(Debug)]
pub(super) enum FoundRecords {
    Records(Vec<Record>),
    Other,
}

impl FoundRecords {
    /// The records of a YAML document.
    pub(super) fn of_yaml(data: yaml::Data) -> Self {
        let mut maker = Maker::default();
        let maps = if let yaml::Data::List(items) = data {
            items.into_iter().map(yaml::Data::into_map).collect()
        } else {
            data.into_map().map(|map| vec![map])
        };
        let mut records = |maps: Vec<_>| {
            maps.into_iter().map(|map| maker.record_of_yaml(map)).collect::<Vec<_>>()
        };
        maps.map_or(Self::Other, |maps| Self::Records(records(maps)))
    }
}

impl<'de> Deserialize<'de> for FoundRecords {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(FoundVisitor)
    }
}

struct FoundVisitor;

impl<'de> Visitor<'de> for FoundVisitor {
    type Value = FoundRecords;

    fn expecting(&self, out: &mut fmt::Formatter) -> fmt::Result {
        out.write_str("a list of maps")
    }

    fn visit_unit<E>(self) -> Result<FoundRecords, E> {
        Ok(FoundRecords::Other)
    }

    fn visit_none<E>(self) -> Result<FoundRecords, E> {
        Ok(FoundRecords::Other)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<FoundRecords, D::Error> {
        deserializer.deserialize_any(self)
    }

    fn visit_bool<E>(self, _: bool) -> Result<FoundRecords, E> {
        Ok(FoundRecords::Other)
    }

    fn visit_i64<E>(self, _: i64) -> Result<FoundRecords, E> {
        Ok(FoundRecords::Other)
    }

    fn visit_u64<E>(self, _: u64) -> Result<FoundRecords, E> {
        Ok(FoundRecords::Other)
    }

    fn visit_f64<E>(self, _: f64) -> Result<FoundRecords, E> {
        Ok(FoundRecords::Other)
    }

    fn visit_str<E>(self, _: &str) -> Result<FoundRecords, E> {
        Ok(FoundRecords::Other)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<FoundRecords, A::Error> {
        let mut maker = Maker::default();
        let mut records = Vec::new();
        let mut has_other = false;
        while let Some(item) = items.next_element::<Value>()? {
            match maker.record_of(item) {
                Some(record) => records.push(record),
                None => has_other = true,
            }
        }
        Ok(if has_other { FoundRecords::Other } else { FoundRecords::Records(records) })
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<FoundRecords, A::Error> {
        let mut map = Map::new();
        while let Some((key, value)) = members.next_entry()? {
            map.insert(key, value);
        }
        Ok(FoundRecords::Records(vec![Maker::default().record(map)]))
    }
}
