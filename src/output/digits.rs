//! JSON text as values for a writer of YAML: members in their order, and integers with all their digits, which a
//! parsed number does not have beyond 64 bits.

use serde::de::{MapAccess, Visitor};
use serde::ser::{Error as _, SerializeMap};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;
use serde_saphyr::DoubleQuoted;
use std::fmt;

/// Deepest nesting, as of the readers of JSON, and of the lists and objects of the document around a value.
const LEVELS_MAX: usize = 128 + 8;

/// A JSON text at this depth of its document.
pub(super) struct Digits<'a>(pub(super) &'a RawValue, usize);

/// The members of an object, in their order.
struct Members<'a>(Vec<(String, &'a RawValue)>);

impl<'a> Digits<'a> {
    pub(super) fn of(text: &'a RawValue) -> Self {
        Self(text, 0)
    }
}

impl Serialize for Digits<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let Self(text, level) = self;
        if *level > LEVELS_MAX {
            return Err(S::Error::custom("it is nested too deep"));
        }
        let (text, below) = (text.get(), level + 1);
        match text.bytes().next() {
            Some(b'{') => {
                let Members(members) = serde_json::from_str(text).map_err(S::Error::custom)?;
                let mut map = to.serialize_map(Some(members.len()))?;
                for (name, value) in &members {
                    map.serialize_entry(name, &Digits(value, below))?;
                }
                map.end()
            }
            Some(b'[') => {
                let items: Vec<&RawValue> = serde_json::from_str(text).map_err(S::Error::custom)?;
                to.collect_seq(items.into_iter().map(|item| Digits(item, below)))
            }
            Some(b'"') => {
                let text: String = serde_json::from_str(text).map_err(S::Error::custom)?;
                match begins_with_tab(&text) {
                    true => DoubleQuoted(text).serialize(to),
                    false => text.serialize(to),
                }
            }
            Some(_) | None => match text.parse::<i128>() {
                Ok(number) => number.serialize(to),
                Err(_) => {
                    let value: Value = serde_json::from_str(text).map_err(S::Error::custom)?;
                    value.serialize(to)
                }
            },
        }
    }
}

/// Whether the first line of a text that isn't blank begins with a tab. As a block scalar such a text is YAML that
/// libyaml and yaml.v3 refuse: they take the tab for indentation.
fn begins_with_tab(text: &str) -> bool {
    text.trim_start_matches([' ', '\n']).starts_with('\t')
}

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Reading;
        impl<'de> Visitor<'de> for Reading {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }
        from.deserialize_map(Reading)
    }
}
