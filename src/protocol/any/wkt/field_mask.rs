//! `FieldMask`: in JSON one string, with the names in lowerCamelCase.

use serde::de::{self, Deserializer};
use serde::ser::{self, Serializer};
use serde::{Deserialize, Serialize};

/// Field names, as paths in a message.
#[derive(Clone, PartialEq, Eq, Hash, prost::Message)]
pub struct FieldMask {
    /// In the spelling of the `.proto` file: `session_id`, `entity.last_event_ordinal`.
    #[prost(string, repeated, tag = "1")]
    pub paths: Vec<String>,
}

/// One string, the paths in lowerCamelCase with commas between them.
impl Serialize for FieldMask {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut text = String::new();
        for (index, path) in self.paths.iter().enumerate() {
            let camel = camel_case(path);
            if snake_case(&camel).as_ref() != Some(path) {
                let why = format_args!("no JSON for the field path {path:?}");
                return Err(ser::Error::custom(why));
            }
            text.push_str(if index == 0 { "" } else { "," });
            text.push_str(&camel);
        }
        serializer.serialize_str(&text)
    }
}

impl<'de> Deserialize<'de> for FieldMask {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        if text.is_empty() {
            return Ok(Self::default());
        }
        let paths = text.split(',').map(snake_case).collect::<Option<_>>();
        paths.map(|paths| Self { paths }).ok_or_else(|| {
            de::Error::invalid_value(de::Unexpected::Str(&text), &"field paths in lowerCamelCase")
        })
    }
}

fn camel_case(path: &str) -> String {
    let mut camel = String::new();
    let mut capital = false;
    for letter in path.chars() {
        match letter {
            '_' => capital = true,
            _ if capital => {
                camel.push(letter.to_ascii_uppercase());
                capital = false;
            }
            _ => camel.push(letter),
        }
    }
    camel
}

/// `None` for what can't be the JSON name of a field.
fn snake_case(path: &str) -> Option<String> {
    let mut snake = String::new();
    for letter in path.chars() {
        match letter {
            'A'..='Z' => snake.extend(['_', letter.to_ascii_lowercase()]),
            'a'..='z' | '0'..='9' | '.' => snake.push(letter),
            _ => return None,
        }
    }
    (!snake.is_empty()).then_some(snake)
}
