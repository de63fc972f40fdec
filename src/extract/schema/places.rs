//! Walks the places of a schema that may contain schemas, skipping data.

use serde_json::{Map, Value};

/// The kind of a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// A schema, or an array of schemas.
    Schema,
    /// A map of schemas by name.
    Named,
    /// The value of an unknown keyword: schemas may occur anywhere in it.
    Other,
}

/// A place in a schema.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place<'a> {
    /// The value there.
    pub(super) value: &'a Value,
    /// The index of the enclosing place, and the position in it; `None` for the whole schema.
    way: Option<(usize, PointerToken<'a>)>,
    /// The `$id` of the schema around it; empty if it has none.
    pub(super) base: &'a str,
    kind: Kind,
}

#[derive(Clone, Copy, Debug)]
enum PointerToken<'a> {
    Member(&'a str),
    Item(usize),
}

/// JSON pointer (RFC 6901) to one of these places. Computed on demand, as names may be long.
pub(super) fn pointer(places: &[Place<'_>], place: &Place<'_>) -> String {
    let mut steps = Vec::new();
    let mut way = place.way;
    while let Some((number, step)) = way {
        steps.push(match step {
            PointerToken::Member(name) => name.replace('~', "~0").replace('/', "~1"),
            PointerToken::Item(at) => at.to_string(),
        });
        way = places.get(number).and_then(|place| place.way);
    }
    steps.iter().rev().flat_map(|step| ["/", step]).collect()
}

/// Every place in a schema, the schema itself first. `const`, `enum`, `default` and
/// `examples` contain data: a `$ref` in them refers to nothing.
pub(super) fn places(schema: &Value) -> Vec<Place<'_>> {
    let root = Place { value: schema, way: None, base: "", kind: Kind::Schema };
    let mut found = vec![root];
    let mut done = 0;
    while let Some(place) = found.get(done).copied() {
        match place.value {
            Value::Array(items) => found.extend(items.iter().enumerate().map(|(at, value)| {
                Place { value, way: Some((done, PointerToken::Item(at))), ..place }
            })),
            Value::Object(members) => found.extend(inside(done, place, members)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
        done += 1;
    }
    found
}

fn inside<'a>(
    number: usize,
    place: Place<'a>,
    members: &'a Map<String, Value>,
) -> impl Iterator<Item = Place<'a>> {
    let id = members.get("$id").and_then(Value::as_str);
    let base = id.filter(|_| place.kind != Kind::Named).unwrap_or(place.base);
    members.iter().filter_map(move |(key, value)| {
        let kind = match place.kind {
            Kind::Schema => kind(key)?,
            Kind::Named => Kind::Schema,
            Kind::Other => Kind::Other,
        };
        Some(Place { value, way: Some((number, PointerToken::Member(key))), base, kind })
    })
}

/// The kind of a keyword's value; `None` if that is data.
fn kind(keyword: &str) -> Option<Kind> {
    match keyword {
        "const" | "enum" | "default" | "examples" => None,
        "properties" | "patternProperties" | "$defs" | "definitions" | "dependentSchemas"
        | "dependencies" => Some(Kind::Named),
        "allOf"
        | "anyOf"
        | "oneOf"
        | "not"
        | "if"
        | "then"
        | "else"
        | "items"
        | "prefixItems"
        | "additionalItems"
        | "unevaluatedItems"
        | "contains"
        | "additionalProperties"
        | "unevaluatedProperties"
        | "propertyNames"
        | "contentSchema" => Some(Kind::Schema),
        _ => Some(Kind::Other),
    }
}

impl<'a> Place<'a> {
    /// Whether this is a schema, as far as keywords show.
    pub(super) fn is_schema(&self) -> bool {
        self.kind == Kind::Schema
    }

    /// The string value of this keyword, if this may be a schema.
    pub(super) fn text(&self, keyword: &str) -> Option<&'a str> {
        self.value.get(keyword).filter(|_| self.kind != Kind::Named)?.as_str()
    }
}
