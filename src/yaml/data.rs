//! A document as Go's readers of YAML return it where no type is expected: with times, and with integers of
//! all 64 bits.

mod scalar;

use super::document;
use data_encoding::BASE64;
use scalar::resolved;
use serde_saphyr::granit_parser::{Event, Parser, ScalarStyle, Tag};
use std::collections::{HashMap, HashSet};

/// The reader that a document is meant for: they differ in a few scalars.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reader {
    /// `gopkg.in/yaml.v2`: `yes` and `on` are true, and times are strings.
    V2,
    /// `gopkg.in/yaml.v3`.
    V3,
}

/// A value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Data {
    Nothing,
    Bool(bool),
    Int(i64),
    /// An integer beyond `i64`.
    Uint(u64),
    Float(f64),
    Text(String),
    /// A time, in RFC 3339.
    Time(String),
    List(Vec<Data>),
    /// Without duplicates, merge keys expanded.
    Map(Vec<(String, Data)>),
    /// A map whose keys are integers, at least one; without duplicates.
    IntMap(Vec<(i64, Data)>),
}

/// Entries of a map.
type Entries = Vec<(Key, Data)>;

/// A key.
#[derive(Clone, Debug)]
struct Key {
    /// As it is written; of a list or a map, as JSON.
    text: String,
    /// The integer that it is.
    int: Option<i64>,
}

/// What a document is as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Root {
    List,
    Map,
    Other,
}

/// The first document of `text`, which has been read before by [`super::deserialize`]: that has checked
/// its syntax, its size with aliases expanded, and how deep it is nested.
///
/// # Errors
/// If a scalar is not what its tag says.
pub(crate) fn read(text: &str, reader: Reader) -> Result<Data, String> {
    let text = document::first(super::without_mark(text));
    let events = Parser::new_from_str(&text).map_while(Result::ok).map(|(event, _)| event);
    let aliased = aliased(&text);
    Builder { events, reader, aliased, anchors: HashMap::new() }.document()
}

/// The anchors that aliases refer to. Others are not held: a copy of each would multiply what is in nested ones.
fn aliased(text: &str) -> HashSet<usize> {
    if !text.contains('*') {
        return HashSet::new();
    }
    let events = Parser::new_from_str(text).map_while(Result::ok);
    events.filter_map(|(event, _)| event.alias_id()).collect()
}

/// What the first document of `text` is.
pub(crate) fn root(text: &str) -> Root {
    let events = Parser::new_from_str(super::without_mark(text)).map_while(Result::ok);
    for (event, _) in events {
        if let Event::SequenceStart(..) = event {
            return Root::List;
        } else if let Event::MappingStart(..) = event {
            return Root::Map;
        } else if let Event::Scalar(..) = event {
            return Root::Other;
        }
    }
    Root::Other
}

impl Data {
    /// The entries, if this is a map; integers as decimal digits.
    pub(crate) fn into_map(self) -> Option<Vec<(String, Self)>> {
        match self {
            Self::Map(entries) => Some(entries),
            Self::IntMap(entries) => {
                Some(entries.into_iter().map(|(key, value)| (key.to_string(), value)).collect())
            }
            Self::Nothing
            | Self::Bool(_)
            | Self::Int(_)
            | Self::Uint(_)
            | Self::Float(_)
            | Self::Text(_)
            | Self::Time(_)
            | Self::List(_) => None,
        }
    }

    fn into_entries(self) -> Option<Entries> {
        if let Self::IntMap(entries) = self {
            let key = |int: i64| Key { text: int.to_string(), int: Some(int) };
            return Some(entries.into_iter().map(|(int, value)| (key(int), value)).collect());
        }
        let entries = self.into_map()?.into_iter();
        Some(entries.map(|(text, value)| (Key { text, int: None }, value)).collect())
    }

    /// The map of these entries.
    fn of_entries(entries: Entries) -> Self {
        let ints: Option<HashSet<i64>> = entries.iter().map(|(key, _)| key.int).collect();
        // `1` and `0x1` are two keys to who has checked that none is there twice.
        if ints.is_some_and(|ints| !ints.is_empty() && ints.len() == entries.len()) {
            let entries = entries.into_iter();
            return Self::IntMap(
                entries.filter_map(|(key, value)| Some((key.int?, value))).collect(),
            );
        }
        Self::Map(entries.into_iter().map(|(key, value)| (key.text, value)).collect())
    }

    /// The value as JSON, which has neither times nor NaN.
    pub(crate) fn json(&self) -> serde_json::Value {
        match self {
            Self::Nothing => serde_json::Value::Null,
            Self::Bool(truth) => (*truth).into(),
            Self::Int(number) => (*number).into(),
            Self::Uint(number) => (*number).into(),
            Self::Float(number) => (*number).into(),
            Self::Text(text) | Self::Time(text) => text.as_str().into(),
            Self::List(items) => items.iter().map(Self::json).collect(),
            Self::Map(entries) => {
                entries.iter().map(|(key, value)| (key.clone(), value.json())).collect()
            }
            Self::IntMap(entries) => {
                entries.iter().map(|(key, value)| (key.to_string(), value.json())).collect()
            }
        }
    }
}

struct Builder<E> {
    events: E,
    reader: Reader,
    aliased: HashSet<usize>,
    anchors: HashMap<usize, Data>,
}

/// A value, and whether it is the key that merges another map into its own.
struct Built {
    data: Data,
    /// The text of a scalar as it is written: a key is a string.
    text: Option<String>,
    is_merge: bool,
}

impl<'a, E: Iterator<Item = Event<'a>>> Builder<E> {
    fn document(mut self) -> Result<Data, String> {
        loop {
            match self.events.next() {
                None => return Ok(Data::Nothing),
                Some(event) if is_node(&event) => return self.node(event).map(|built| built.data),
                Some(_) => {}
            }
        }
    }

    /// The node that begins with `event`. Recursion is as deep as the nesting.
    fn node(&mut self, event: Event<'a>) -> Result<Built, String> {
        let (anchor, built) = if let Event::Scalar(text, style, anchor, tag) = event {
            (anchor, scalar(&text, style, tag.as_deref(), self.reader)?)
        } else if let Event::SequenceStart(_, anchor, _) = event {
            (anchor, Built::of(Data::List(self.items()?)))
        } else if let Event::MappingStart(_, anchor, _) = event {
            (anchor, Built::of(Data::of_entries(self.entries()?)))
        } else if let Event::Alias(anchor) = event {
            let data = self.anchors.get(&anchor).cloned();
            return Ok(Built::of(data.ok_or("it has an alias without an anchor")?));
        } else {
            return Err("it ends too early".to_owned());
        };
        if self.aliased.contains(&anchor) {
            self.anchors.insert(anchor, built.data.clone());
        }
        Ok(built)
    }

    /// The next node; `None` at the end of a list or map.
    fn next(&mut self) -> Result<Option<Built>, String> {
        loop {
            match self.events.next() {
                None => return Ok(None),
                Some(Event::SequenceEnd | Event::MappingEnd) => return Ok(None),
                Some(event) if is_node(&event) => return self.node(event).map(Some),
                Some(_) => {}
            }
        }
    }

    fn items(&mut self) -> Result<Vec<Data>, String> {
        let mut items = Vec::new();
        while let Some(built) = self.next()? {
            items.push(built.data);
        }
        Ok(items)
    }

    fn entries(&mut self) -> Result<Entries, String> {
        let (mut own, mut merged) = (Vec::new(), Vec::new());
        while let Some(key) = self.next()? {
            let value = self.next()?.ok_or("it ends too early")?.data;
            if key.is_merge {
                merged.extend(maps(value));
                continue;
            }
            let data = key.data;
            let int = if let Data::Int(int) = data { Some(int) } else { None };
            let text = key.text.unwrap_or_else(|| data.json().to_string());
            own.push((Key { text, int }, value));
        }
        if merged.is_empty() {
            return Ok(own);
        }
        // A map's own entries have precedence, then those of the map that is merged first.
        let mut seen: HashSet<String> = own.iter().map(|(key, _)| key.text.clone()).collect();
        for (key, value) in merged.into_iter().flatten() {
            if seen.insert(key.text.clone()) {
                own.push((key, value));
            }
        }
        Ok(own)
    }
}

impl Built {
    fn of(data: Data) -> Self {
        let text =
            if let Data::Text(text) | Data::Time(text) = &data { Some(text.clone()) } else { None };
        Self { data, text, is_merge: false }
    }
}

/// The maps that a merge key's value names: one, or a list.
fn maps(value: Data) -> Vec<Entries> {
    if let Data::List(items) = value {
        return items.into_iter().filter_map(Data::into_entries).collect();
    }
    value.into_entries().into_iter().collect()
}

fn is_node(event: &Event<'_>) -> bool {
    matches!(
        event,
        Event::Scalar(..) | Event::SequenceStart(..) | Event::MappingStart(..) | Event::Alias(_)
    )
}

fn scalar(
    text: &str,
    style: ScalarStyle,
    tag: Option<&Tag>,
    reader: Reader,
) -> Result<Built, String> {
    const OF_YAML: &str = "tag:yaml.org,2002:";
    let is_plain = style == ScalarStyle::Plain;
    let full = tag.map(|tag| format!("{}{}", tag.handle(), tag.suffix()));
    let known = full.as_deref().and_then(|tag| tag.strip_prefix(OF_YAML));
    let is_merge = match (known, tag) {
        (Some(known), _) => known == "merge",
        (None, Some(_)) => false,
        (None, None) => is_plain && text == "<<",
    };
    let data = match (known, tag) {
        (Some("binary"), _) => {
            let bytes = text.split_ascii_whitespace().collect::<String>();
            let bytes =
                BASE64.decode(bytes.as_bytes()).map_err(|why| format!("!!binary: {why}"))?;
            Data::Text(String::from_utf8_lossy(&bytes).into_owned())
        }
        (Some(kind @ ("bool" | "float" | "int" | "merge" | "null" | "timestamp")), _) => {
            resolved(text, Some(kind), reader)?
        }
        (None, None) if is_plain => resolved(text, None, reader)?,
        // The tag `!` means none in yaml.v3.
        (None, Some(_)) if is_plain && full.as_deref() == Some("!") && reader == Reader::V3 => {
            resolved(text, None, reader)?
        }
        (Some(_) | None, _) => Data::Text(text.to_owned()),
    };
    Ok(Built { data, text: Some(text.to_owned()), is_merge })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: serde_json::Value) {
        for reader in [Reader::V2, Reader::V3] {
            let json = read(text, reader).map(|data| data.json());
            assert_eq!(json.as_ref(), Ok(&expected), "{text}");
            let is_other = !(expected.is_array() || expected.is_object());
            assert_eq!(root(text) == Root::Other, is_other, "{text}");
            assert_eq!(super::super::to_json(text).ok(), Some(expected.clone()), "{text}");
        }
    }

    #[test]
    fn maps_whose_keys_are_all_integers_have_integers() {
        let ints = |text: &str| match read(text, Reader::V3) {
            Ok(Data::IntMap(entries)) => entries.into_iter().map(|(key, _)| key).collect(),
            _ => vec![],
        };
        assert_eq!(ints("10: a\n2: b\n-1: c\n0x10: d\n1_0_0: e"), [10, 2, -1, 16, 100]);
        assert_eq!(ints("{<<: {3: c, 1: x}, 1: a}"), [1, 3]);
        for text in ["1: a\nb: c", "'1': a", "1.5: a", "true: a", "{}", "99999999999999999999: a"] {
            assert_eq!(ints(text), [0; 0], "{text}");
        }
        // One integer twice is no list of integers without duplicates.
        assert_eq!(ints("1: a\n0x1: b"), [0; 0]);
    }

    #[test]
    fn documents_have_the_structure_that_the_other_reader_finds() {
        use serde_json::json;
        check("", json!(null));
        check("# nothing\n", json!(null));
        check("a: 1\nb: [x, {c: null}]\n", json!({"a": 1, "b": ["x", {"c": null}]}));
        check(
            "a: &x {p: 1, q: 2}\nb: {<<: *x, q: 3}",
            json!({"a": {"p": 1, "q": 2}, "b": {"p": 1, "q": 3}}),
        );
        check(
            "a: &x {p: 1}\nb: &y {q: 2, p: 3}\nc: {<<: [*x, *y]}",
            json!({"a": {"p": 1}, "b": {"q": 2, "p": 3}, "c": {"p": 1, "q": 2}}),
        );
        check(
            "- &t |\n  text\n- *t\n- 'it''s'\n- \"\\u00e9\"\n",
            json!(["text\n", "text\n", "it's", "\u{e9}"]),
        );
        check("1: a\ntrue: b\n", json!({"1": "a", "true": "b"}));
        check("\u{feff}---\na: 1\n---\nb: 2\n", json!({"a": 1}));
        check("a: >\n  one\n  two", json!({"a": "one two"}));
        check("{a: b, c: }", json!({"a": "b", "c": null}));
    }
}
