//! A map with string keys that takes little memory if it has few entries.

use super::data::Shared;
use super::value::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Most entries of a map stored as a sorted list. A table has a map for each row, and a `BTreeMap`
/// of one entry takes ten times the memory.
const FEW_MAX: usize = 32;

/// A map, in the order of its keys.
#[derive(Clone, Debug)]
pub(super) enum Map {
    /// The members of an unchanged record.
    Shared(Shared),
    /// At most [`FEW_MAX`], sorted.
    Few(Vec<(Arc<str>, Value)>),
    Many(BTreeMap<Arc<str>, Value>),
}

impl Default for Map {
    fn default() -> Self {
        Self::Few(Vec::new())
    }
}

impl Map {
    pub(super) fn new() -> Self {
        Self::default()
    }

    pub(super) fn len(&self) -> usize {
        match self {
            Self::Shared(shared) => shared.keys.len(),
            Self::Few(entries) => entries.len(),
            Self::Many(entries) => entries.len(),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(super) fn get(&self, key: &(impl AsRef<str> + ?Sized)) -> Option<&Value> {
        let key = key.as_ref();
        match self {
            Self::Shared(shared) => shared.get(key),
            Self::Few(entries) => place(entries, key).ok().map(|at| &entries[at].1),
            Self::Many(entries) => entries.get(key),
        }
    }

    pub(super) fn contains_key(&self, key: &(impl AsRef<str> + ?Sized)) -> bool {
        self.get(key).is_some()
    }

    pub(super) fn insert(&mut self, key: Arc<str>, value: Value) {
        match self.own() {
            Self::Shared(_) => {}
            Self::Few(entries) => match place(entries, &key) {
                Ok(at) => entries[at].1 = value,
                Err(at) if entries.len() < FEW_MAX => entries.insert(at, (key, value)),
                Err(_) => {
                    let mut many: BTreeMap<_, _> = std::mem::take(entries).into_iter().collect();
                    many.insert(key, value);
                    *self = Self::Many(many);
                }
            },
            Self::Many(entries) => {
                entries.insert(key, value);
            }
        }
    }

    pub(super) fn remove(&mut self, key: &(impl AsRef<str> + ?Sized)) {
        let key = key.as_ref();
        match self.own() {
            Self::Shared(_) => {}
            Self::Few(entries) => {
                if let Ok(at) = place(entries, key) {
                    entries.remove(at);
                }
            }
            Self::Many(entries) => {
                entries.remove(key);
            }
        }
    }

    pub(super) fn retain(&mut self, mut keep: impl FnMut(&Arc<str>, &Value) -> bool) {
        match self.own() {
            Self::Shared(_) => {}
            Self::Few(entries) => entries.retain(|(key, value)| keep(key, value)),
            Self::Many(entries) => entries.retain(|key, value| keep(key, value)),
        }
    }

    /// The entries, for changing them.
    fn own(&mut self) -> &mut Self {
        if let Self::Shared(shared) = self {
            let entries = shared.iter().map(|(key, value)| (Arc::clone(key), value.clone()));
            *self = if shared.keys.len() > FEW_MAX {
                Self::Many(entries.collect())
            } else {
                Self::Few(entries.collect())
            };
        }
        self
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&Arc<str>, &Value)> {
        let (shared, few, many) = match self {
            Self::Shared(shared) => (Some(shared.iter()), None, None),
            Self::Few(entries) => (None, Some(entries.iter()), None),
            Self::Many(entries) => (None, None, Some(entries.iter())),
        };
        let few = few.into_iter().flatten().map(|(key, value)| (key, value));
        shared.into_iter().flatten().chain(few).chain(many.into_iter().flatten())
    }
}

/// The position of the key, or where to insert it.
fn place(entries: &[(Arc<str>, Value)], key: &str) -> Result<usize, usize> {
    entries.binary_search_by(|(known, _)| (**known).cmp(key))
}

impl FromIterator<(Arc<str>, Value)> for Map {
    fn from_iter<I: IntoIterator<Item = (Arc<str>, Value)>>(entries: I) -> Self {
        let entries = entries.into_iter();
        let mut map = Self::Few(Vec::with_capacity(entries.size_hint().0.min(FEW_MAX)));
        for (key, value) in entries {
            map.insert(key, value);
        }
        map
    }
}

impl IntoIterator for Map {
    type Item = (Arc<str>, Value);
    type IntoIter = Box<dyn Iterator<Item = Self::Item>>;

    fn into_iter(self) -> Self::IntoIter {
        match self {
            Self::Shared(Shared { keys, values }) => {
                Box::new((0..keys.len()).filter_map(move |at| {
                    Some((Arc::clone(keys.get(at)?), values.get(at)?.clone()))
                }))
            }
            Self::Few(entries) => Box::new(entries.into_iter()),
            Self::Many(entries) => Box::new(entries.into_iter()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_map_grows_and_shrinks_in_the_order_of_its_keys() {
        let mut map = Map::new();
        for number in (0..FEW_MAX * 3).rev() {
            map.insert(format!("k{number:03}").into(), Value::Int(0));
            map.insert(format!("k{number:03}").into(), Value::Int(1));
        }
        assert_eq!(map.len(), FEW_MAX * 3);
        map.remove("k001");
        map.remove("k999");
        map.retain(|key, _| &**key != "k002");
        assert!(map.contains_key("k000") && !map.contains_key("k001") && !map.contains_key("k002"));
        assert!(matches!(map.get("k003"), Some(Value::Int(1))));
        let keys: Vec<_> = map.iter().map(|(key, _)| key.to_string()).collect();
        assert!(keys.is_sorted() && keys.len() == FEW_MAX * 3 - 2, "{keys:?}");
        assert_eq!(map.into_iter().count(), FEW_MAX * 3 - 2);
    }
}
