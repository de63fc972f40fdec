//! JSON text read into values, with no tree in between: a tree takes several times the memory.

use super::super::{Heap, Map, Value, check_levels};
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

/// The value of `text`. Every number is a float, as in Go.
pub(super) fn read(heap: &mut Heap, text: &str) -> Result<Value, String> {
    if text.is_empty() {
        return Ok(Value::Nil);
    }
    let mut keys = HashSet::new();
    let seed = ValueSeed { heap, keys: &mut keys, level: 0 };
    seed.deserialize(&mut serde_json::Deserializer::from_str(text))
        .map_err(|error| error.to_string())
}

struct ValueSeed<'a> {
    heap: &'a mut Heap,
    /// Keys of maps, each of which is held once.
    keys: &'a mut HashSet<Arc<str>>,
    level: usize,
}

impl ValueSeed<'_> {
    fn inner(&mut self) -> ValueSeed<'_> {
        ValueSeed { heap: self.heap, keys: self.keys, level: self.level + 1 }
    }

    fn key(&mut self, key: &str) -> Arc<str> {
        if let Some(known) = self.keys.get(key) {
            return Arc::clone(known);
        }
        let new: Arc<str> = key.into();
        self.keys.insert(Arc::clone(&new));
        new
    }
}

impl<'de> DeserializeSeed<'de> for ValueSeed<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        check_levels(self.level).map_err(D::Error::custom)?;
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for ValueSeed<'_> {
    type Value = Value;

    fn expecting(&self, out: &mut fmt::Formatter) -> fmt::Result {
        out.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Nil)
    }

    fn visit_bool<E>(self, truth: bool) -> Result<Value, E> {
        Ok(Value::Bool(truth))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Value, E> {
        Ok(Value::Float(number as f64))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Value, E> {
        Ok(Value::Float(number as f64))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Value, E> {
        Ok(Value::Float(number))
    }

    fn visit_str<E>(self, text: &str) -> Result<Value, E> {
        Ok(Value::text(text))
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(self.inner())? {
            list.push(item);
        }
        list.shrink_to_fit();
        self.heap.list(list).map_err(A::Error::custom)
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut members: A) -> Result<Value, A::Error> {
        let mut entries = Vec::new();
        while let Some(key) = members.next_key::<String>()? {
            let key = self.key(&key);
            entries.push((key, members.next_value_seed(self.inner())?));
        }
        self.heap.map(entries.into_iter().collect::<Map>()).map_err(A::Error::custom)
    }
}
