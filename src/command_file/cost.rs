//! Estimates the memory that the values in a file will take, before they are parsed.

use crate::protocol::json::{allocated, places};
use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use std::fmt;

/// Most memory for the values of a file, per byte of the file.
const MEMORY_PER_BYTE_MAX: usize = 20;

/// Times that the text of a file is held besides its values: as it was read, without leading blanks,
/// and by a template.
const TEXT_COPIES_MAX: usize = 4;

/// Memory that the values of any file may take, however short it is.
const MEMORY_BYTES_MIN: usize = 32 * 1024 * 1024;

/// Memory of a value as JSON, and in a template.
const JSON_BYTES: usize = size_of::<serde_json::Value>();
const VALUE_BYTES: usize = 24;

/// Memory of a list without its items, as JSON and in a template.
const LIST_BYTES: usize = JSON_BYTES + VALUE_BYTES + 40;

/// Memory of a map without its members, as JSON and in a template.
const MAP_BYTES: usize = JSON_BYTES + VALUE_BYTES + 64;

/// Memory of a member of a map in a template, besides its value.
const MEMBER_BYTES: usize = 24;

/// Memory of a place in serde_json's maps besides the member in it: a hash, an index, a control byte.
const PLACE_BYTES: usize = 17;

/// Memory of a key in serde_json's maps without its text.
const KEY_BYTES: usize = size_of::<String>();

/// Memory of a record without its values: itself, a list item and a map in a
/// template.
const RECORD_BYTES: usize = 136;

/// The memory limit for the values of one file, as far as it is not used up.
#[derive(Debug)]
pub(super) struct Room {
    left_bytes: usize,
    all_bytes: usize,
}

/// The values would take more memory than the limit.
#[derive(Debug)]
pub(super) struct NoRoom {
    bytes: usize,
}

impl fmt::Display for NoRoom {
    fn fmt(&self, out: &mut fmt::Formatter) -> fmt::Result {
        let mib = self.bytes / (1024 * 1024);
        write!(
            out,
            "holds so many small values that they would take more than {mib} MiB of memory; give a \
             file with fewer of them"
        )
    }
}

impl Room {
    /// The limit for a file of this many bytes.
    pub(super) fn of_file(bytes: usize) -> Self {
        let values = bytes.saturating_mul(MEMORY_PER_BYTE_MAX - TEXT_COPIES_MAX);
        let all_bytes = values.max(MEMORY_BYTES_MIN);
        Self { left_bytes: all_bytes, all_bytes }
    }

    /// Uses up this cost.
    pub(super) fn take(&mut self, cost_bytes: usize) -> Result<(), NoRoom> {
        let left = self.left_bytes.checked_sub(cost_bytes);
        self.left_bytes = left.ok_or(NoRoom { bytes: self.all_bytes })?;
        Ok(())
    }
}

/// The cost of a string of this many bytes, as JSON and in a template.
pub(super) fn of_text(bytes: usize) -> usize {
    JSON_BYTES + allocated(bytes) + VALUE_BYTES + shared(bytes)
}

/// The cost of a row of strings of these lengths.
pub(super) fn of_row(texts: impl Iterator<Item = usize>) -> usize {
    texts.map(|bytes| VALUE_BYTES + shared(bytes)).fold(RECORD_BYTES, usize::saturating_add)
}

/// The memory taken by a shared string of this many bytes.
fn shared(bytes: usize) -> usize {
    const COUNTS_BYTES: usize = 16;
    allocated(bytes.saturating_add(COUNTS_BYTES))
}

/// The memory that the values in a document will take as JSON and in a template.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Cost(pub(super) usize);

/// The cost of a document that is a map or a list of maps, which become records.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RecordsCost(pub(super) usize);

impl<'de> Deserialize<'de> for Cost {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Counter::Plain).map(Self)
    }
}

/// The bytes that the values in a document will take if a template reads them from its text.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct TemplateCost(pub(super) usize);

impl<'de> Deserialize<'de> for TemplateCost {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Counter::Template).map(Self)
    }
}

impl<'de> Deserialize<'de> for RecordsCost {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Counter::Records).map(Self)
    }
}

/// Adds up the cost of a value by what it is converted to.
#[derive(Clone, Copy)]
enum Counter {
    /// A JSON value.
    Plain,
    /// A member of a record.
    Member,
    /// A record, if it is a map.
    Record,
    /// Records, if it is a list of maps.
    Records,
    /// A value of a template, whose maps share their keys.
    Template,
}

impl Counter {
    /// The counter for the items of a list.
    fn of_items(self) -> Self {
        match self {
            Self::Records => Self::Record,
            Self::Template => Self::Template,
            Self::Plain | Self::Member | Self::Record => Self::Plain,
        }
    }

    /// The counter for the members of a map.
    fn of_members(self) -> Self {
        match self {
            Self::Record | Self::Records => Self::Member,
            Self::Template => Self::Template,
            Self::Plain | Self::Member => Self::Plain,
        }
    }

    /// The cost of a number, a boolean or null.
    fn of_scalar(self) -> usize {
        match self {
            Self::Member | Self::Template => VALUE_BYTES,
            Self::Plain | Self::Record | Self::Records => JSON_BYTES + VALUE_BYTES,
        }
    }

    fn of_map(self, keys: usize, members: usize, values: usize) -> usize {
        let map = match self {
            Self::Record | Self::Records => RECORD_BYTES,
            Self::Template => {
                let members = members.saturating_mul(MEMBER_BYTES);
                return MAP_BYTES.saturating_add(members).saturating_add(values);
            }
            Self::Plain | Self::Member => {
                // Members are counted by themselves: this adds the places, up to half of them free.
                let places = places(members);
                let free = places.saturating_sub(members).saturating_mul(KEY_BYTES + JSON_BYTES);
                MAP_BYTES.saturating_add(places.saturating_mul(PLACE_BYTES)).saturating_add(free)
            }
        };
        map.saturating_add(keys).saturating_add(values)
    }
}

impl<'de> DeserializeSeed<'de> for Counter {
    type Value = usize;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<usize, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Counter {
    type Value = usize;

    fn expecting(&self, out: &mut fmt::Formatter) -> fmt::Result {
        out.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<usize, E> {
        Ok(self.of_scalar())
    }

    fn visit_none<E>(self) -> Result<usize, E> {
        Ok(self.of_scalar())
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<usize, D::Error> {
        deserializer.deserialize_any(self)
    }

    fn visit_bool<E>(self, _: bool) -> Result<usize, E> {
        Ok(self.of_scalar())
    }

    fn visit_i64<E>(self, _: i64) -> Result<usize, E> {
        Ok(self.of_scalar())
    }

    fn visit_u64<E>(self, _: u64) -> Result<usize, E> {
        Ok(self.of_scalar())
    }

    fn visit_f64<E>(self, _: f64) -> Result<usize, E> {
        Ok(self.of_scalar())
    }

    fn visit_str<E>(self, text: &str) -> Result<usize, E> {
        Ok(match self {
            Self::Member | Self::Template => VALUE_BYTES + shared(text.len()),
            Self::Plain | Self::Record | Self::Records => of_text(text.len()),
        })
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<usize, A::Error> {
        let mut bytes = LIST_BYTES;
        while let Some(item) = items.next_element_seed(self.of_items())? {
            bytes = bytes.saturating_add(item);
        }
        Ok(bytes)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<usize, A::Error> {
        let (mut keys, mut count, mut values) = (0_usize, 0_usize, 0_usize);
        while let Some(Key(key)) = members.next_key()? {
            let value = members.next_value_seed(self.of_members())?;
            keys = keys.saturating_add(VALUE_BYTES + allocated(key)).saturating_add(shared(key));
            values = values.saturating_add(value);
            count = count.saturating_add(1);
        }
        Ok(self.of_map(keys, count, values))
    }
}

/// The length of a key.
struct Key(usize);

impl<'de> Deserialize<'de> for Key {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(KeyVisitor).map(Self)
    }
}

struct KeyVisitor;

impl Visitor<'_> for KeyVisitor {
    type Value = usize;

    fn expecting(&self, out: &mut fmt::Formatter) -> fmt::Result {
        out.write_str("a key")
    }

    fn visit_str<E>(self, key: &str) -> Result<usize, E> {
        Ok(key.len())
    }
}
