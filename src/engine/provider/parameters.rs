//! The schemas of tools in the form that providers take: one tool that they refuse would have them refuse the whole
//! request.

use serde_json::{Map, Value, json};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

/// Words that providers refuse at the top of a schema.
const NOT_AT_TOP: [&str; 6] = ["$ref", "allOf", "anyOf", "enum", "not", "oneOf"];

/// The word of the definitions in a schema.
const DEFINITIONS: &str = "$defs";

/// Schemas that the top of one schema is put together from, and those that are kept for references; further ones are
/// left out.
const PARTS_MAX: usize = 64;

/// The schema of an object, with its properties, and with the items of each array. Providers want both.
pub(in crate::engine) fn parameters(schema: &Map<String, Value>) -> Cow<'_, Map<String, Value>> {
    let is_fine = schema.get("type").is_some_and(|kind| kind == "object")
        && schema.get("properties").is_some_and(Value::is_object)
        && NOT_AT_TOP.iter().all(|word| !schema.contains_key(*word));
    match is_fine {
        true => with_items(schema),
        false => Cow::Owned(with_items(&with_targets(schema, merged(schema))).into_owned()),
    }
}

/// `schema` without the keywords that providers refuse at its top: the properties of its reference and branches become
/// its own. It allows all that `schema` allows, and more: the tool checks its arguments.
fn merged(schema: &Map<String, Value>) -> Map<String, Value> {
    let mut top = Top { root: schema, forms: Map::new(), left: PARTS_MAX };
    let required = top.add(schema);
    let one_form = |(name, mut forms): (String, Value)| {
        let only = forms.as_array_mut().filter(|forms| forms.len() == 1).and_then(Vec::pop);
        (name, only.unwrap_or_else(|| json!({ "anyOf": forms })))
    };
    let properties: Map<_, _> = top.forms.into_iter().map(one_form).collect();
    let mut merged = schema.clone();
    merged.retain(|word, _| !NOT_AT_TOP.contains(&word.as_str()));
    merged.insert("type".to_owned(), json!("object"));
    merged.insert("properties".to_owned(), properties.into());
    if !required.is_empty() {
        merged.insert("required".to_owned(), json!(required));
    }
    merged
}

/// The properties of an object as they are put together from the parts of its schema.
struct Top<'a> {
    /// The whole schema, in which references point.
    root: &'a Map<String, Value>,
    /// The different forms of each property, as a list.
    forms: Map<String, Value>,
    /// Parts that may be added.
    left: usize,
}

impl<'a> Top<'a> {
    /// Adds the properties of `schema` and of its parts; returns the names that it requires.
    fn add(&mut self, schema: &'a Map<String, Value>) -> BTreeSet<&'a str> {
        let properties = schema.get("properties").and_then(Value::as_object);
        for (name, form) in properties.into_iter().flatten() {
            let forms = self.forms.entry(name.as_str()).or_insert_with(|| json!([]));
            if let Value::Array(forms) = forms
                && !forms.contains(form)
            {
                forms.push(form.clone());
            }
        }
        let mut required: BTreeSet<_> =
            list(schema, "required").iter().filter_map(Value::as_str).collect();
        for part in self.target(schema).into_iter().chain(list(schema, "allOf")) {
            required.extend(self.add_part(part));
        }
        // One of the branches holds: it is required what all of them require.
        for word in ["oneOf", "anyOf"] {
            let branches = list(schema, word).iter().map(|branch| self.add_part(branch));
            let common = branches.reduce(|one, other| one.intersection(&other).copied().collect());
            required.extend(common.unwrap_or_default());
        }
        required
    }

    fn add_part(&mut self, part: &'a Value) -> BTreeSet<&'a str> {
        match (part, self.left.checked_sub(1)) {
            (Value::Object(part), Some(left)) => {
                self.left = left;
                self.add(part)
            }
            _ => BTreeSet::new(),
        }
    }

    /// The schema that `schema` refers to, in the same document.
    fn target(&self, schema: &Map<String, Value>) -> Option<&'a Value> {
        at(self.root, own_reference(schema)?)
    }
}

/// The path of the reference in `schema` to a part of the same document.
fn own_reference(schema: &Map<String, Value>) -> Option<&str> {
    schema.get("$ref")?.as_str()?.strip_prefix("#/")
}

/// What is at `path` in `root`.
fn at<'a>(root: &'a Map<String, Value>, path: &str) -> Option<&'a Value> {
    match path.split_once('/') {
        Some((first, rest)) => root.get(first)?.pointer(&format!("/{rest}")),
        None => root.get(path),
    }
}

/// `merged`, in which each reference leads to what it leads to in `root`: providers refuse one that leads nowhere.
/// What is no longer in its place is kept as a definition.
fn with_targets(root: &Map<String, Value>, mut merged: Map<String, Value>) -> Map<String, Value> {
    let before = merged.clone();
    let taken = before.get(DEFINITIONS).and_then(Value::as_object);
    let mut targets =
        Targets { root, merged: &before, taken, names: BTreeMap::new(), left: Vec::new() };
    targets.redirect(&mut merged);
    let mut kept = Map::new();
    while let Some((name, target)) = targets.left.pop() {
        let mut target = target.clone();
        targets.redirect_in(&mut target);
        kept.insert(name, target);
    }
    if !kept.is_empty() {
        let definitions = merged.entry(DEFINITIONS).or_insert_with(|| json!({}));
        if let Some(definitions) = definitions.as_object_mut() {
            definitions.append(&mut kept);
        }
    }
    merged
}

/// The targets of references that are no longer in their place.
struct Targets<'a> {
    root: &'a Map<String, Value>,
    /// The new top, as it was before.
    merged: &'a Map<String, Value>,
    /// The definitions that it has.
    taken: Option<&'a Map<String, Value>>,
    /// The names of the definitions that are added, by the paths of their targets.
    names: BTreeMap<String, String>,
    /// Definitions that are not added yet.
    left: Vec<(String, &'a Value)>,
}

impl Targets<'_> {
    /// Has each reference in `schema` lead to its target; one without a target is left out.
    fn redirect(&mut self, schema: &mut Map<String, Value>) {
        if let Some(path) = own_reference(schema).map(str::to_owned)
            && !self.is_in_place(&path)
        {
            match self.name(&path) {
                Some(name) => {
                    schema.insert("$ref".to_owned(), json!(format!("#/{DEFINITIONS}/{name}")))
                }
                None => schema.shift_remove("$ref"),
            };
        }
        for (word, value) in schema {
            match (holds(word), value) {
                (Holds::Schemas, value) => self.redirect_in(value),
                (Holds::NamedSchemas, Value::Object(named)) => {
                    named.values_mut().for_each(|value| self.redirect_in(value));
                }
                (Holds::NamedSchemas | Holds::NoSchema, _) => {}
            }
        }
    }

    /// Redirects the references in `value`, one schema or a list of schemas.
    fn redirect_in(&mut self, value: &mut Value) {
        match value {
            Value::Object(schema) => self.redirect(schema),
            Value::Array(schemas) => schemas.iter_mut().for_each(|value| self.redirect_in(value)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    /// Whether `path` leads in the new top to what it led to. A path that is written in another way than it is read
    /// here, as with `%20`, is in its place unless it begins with a word that is no longer there.
    fn is_in_place(&self, path: &str) -> bool {
        match (at(self.root, path), at(self.merged, path)) {
            (None, _) => {
                let first = path.split('/').next().unwrap_or_default();
                !NOT_AT_TOP.contains(&first)
            }
            (Some(old), new) => new == Some(old),
        }
    }

    /// The name of the definition of what is at `path`.
    fn name(&mut self, path: &str) -> Option<String> {
        if let Some(name) = self.names.get(path) {
            return Some(name.clone());
        }
        let target = at(self.root, path).filter(|_| self.names.len() < PARTS_MAX)?;
        let is_free = |name: &String| {
            self.taken.is_none_or(|taken| !taken.contains_key(name))
                && !self.names.values().any(|it| it == name)
        };
        let name = (0..).map(|number: usize| number.to_string()).find(is_free)?;
        self.names.insert(path.to_owned(), name.clone());
        self.left.push((name.clone(), target));
        Some(name)
    }
}

/// What the value of a word of a schema holds.
enum Holds {
    /// One schema, or a list of schemas.
    Schemas,
    /// An object whose values are schemas.
    NamedSchemas,
    NoSchema,
}

fn holds(word: &str) -> Holds {
    match word {
        "$defs" | "definitions" | "dependentSchemas" | "patternProperties" | "properties" => {
            Holds::NamedSchemas
        }
        "additionalProperties"
        | "allOf"
        | "anyOf"
        | "contains"
        | "else"
        | "if"
        | "items"
        | "not"
        | "oneOf"
        | "prefixItems"
        | "then" => Holds::Schemas,
        _ => Holds::NoSchema,
    }
}

fn list<'a>(schema: &'a Map<String, Value>, word: &str) -> &'a [Value] {
    schema.get(word).and_then(Value::as_array).map_or(&[][..], Vec::as_slice)
}

/// `schema` in which each array says what its items are: OpenAI refuses one that does not.
fn with_items(schema: &Map<String, Value>) -> Cow<'_, Map<String, Value>> {
    let is_array = schema.get("type").is_some_and(|kind| {
        kind == "array" || kind.as_array().is_some_and(|kinds| kinds.iter().any(|it| it == "array"))
    });
    let mut written = Cow::Borrowed(schema);
    if is_array && !schema.contains_key("items") {
        written.to_mut().insert("items".to_owned(), json!({}));
    }
    for (word, value) in schema {
        let changed = match holds(word) {
            Holds::NamedSchemas => members_with_items(value),
            Holds::Schemas => value_with_items(value),
            Holds::NoSchema => None,
        };
        if let Some(changed) = changed {
            written.to_mut().insert(word.clone(), changed);
        }
    }
    written
}

/// `value`, one schema or a list of schemas, as [`with_items`] changes it; `None` if nothing is changed.
fn value_with_items(value: &Value) -> Option<Value> {
    match value {
        Value::Object(schema) => match with_items(schema) {
            Cow::Owned(schema) => Some(Value::Object(schema)),
            Cow::Borrowed(_) => None,
        },
        Value::Array(schemas) => {
            let changed: Vec<_> = schemas.iter().map(value_with_items).collect();
            let is_changed = changed.iter().any(Option::is_some);
            let all = changed.into_iter().zip(schemas);
            is_changed.then(|| all.map(|(new, old)| new.unwrap_or_else(|| old.clone())).collect())
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    }
}

/// `value`, an object of schemas, as [`with_items`] changes them; `None` if nothing is changed.
fn members_with_items(value: &Value) -> Option<Value> {
    let schemas = value.as_object()?;
    let mut written = Cow::Borrowed(schemas);
    for (name, schema) in schemas {
        if let Some(changed) = value_with_items(schema) {
            written.to_mut().insert(name.clone(), changed);
        }
    }
    match written {
        Cow::Owned(schemas) => Some(Value::Object(schemas)),
        Cow::Borrowed(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(schema: &Value, expected: &Value) {
        let schema = schema.as_object().expect("an object");
        assert_eq!(Value::Object(parameters(schema).into_owned()), *expected);
    }

    fn object(properties: Value) -> Value {
        json!({ "type": "object", "properties": properties })
    }

    #[test]
    fn a_tool_has_a_schema_that_the_provider_takes() {
        let whole = object(json!({ "a": { "anyOf": [] } }));
        check(&whole, &whole);
        check(&json!({}), &object(json!({})));
        check(
            &json!({ "oneOf": [{}], "anyOf": [{}], "required": ["a"], "properties": { "a": {} } }),
            &json!({ "type": "object", "required": ["a"], "properties": { "a": {} } }),
        );
    }

    /// "Invalid schema for function: array schema missing items."
    #[test]
    fn each_array_says_what_its_items_are() {
        let bare = json!({ "type": "array" });
        let written = json!({ "type": "array", "items": {} });
        let strings = json!({ "type": "array", "items": { "type": "string" } });
        check(&object(json!({ "a": strings })), &object(json!({ "a": strings })));
        for place in [
            |schema: &Value| json!({ "a": schema }),
            // A property may be called as a word is.
            |schema: &Value| json!({ "default": schema }),
            |schema: &Value| json!({ "a": object(json!({ "b": schema })) }),
            |schema: &Value| json!({ "a": { "type": "array", "items": schema } }),
            |schema: &Value| json!({ "a": { "anyOf": [{ "type": "string" }, schema] } }),
            |schema: &Value| json!({ "a": { "additionalProperties": schema } }),
        ] {
            check(&object(place(&bare)), &object(place(&written)));
        }
        let or_null = json!({ "type": ["array", "null"], "items": {} });
        check(
            &object(json!({ "a": { "type": ["array", "null"] } })),
            &object(json!({ "a": or_null })),
        );
        // A value is no schema.
        let values =
            json!({ "a": { "default": bare, "enum": [bare], "const": bare, "examples": [bare] } });
        check(&object(values.clone()), &object(values));
        let mut definitions = object(json!({}));
        definitions["$defs"] = json!({ "a": bare });
        let mut expected = definitions.clone();
        expected["$defs"]["a"] = written;
        check(&definitions, &expected);
    }

    #[test]
    fn branches_at_the_top_become_properties() {
        let add =
            json!({ "properties": { "op": { "const": "add" }, "x": {} }, "required": ["op", "x"] });
        let cut = json!({ "properties": { "op": { "const": "cut" }, "id": {} }, "required": ["op", "id"] });
        let op = json!({ "anyOf": [{ "const": "add" }, { "const": "cut" }] });
        let properties = json!({ "op": op, "x": {}, "id": {} });
        let with = |required: &[&str]| json!({ "type": "object", "properties": properties, "required": required });
        for word in ["oneOf", "anyOf"] {
            check(&json!({ "type": "object", word: [add, cut] }), &with(&["op"]));
        }
        check(&json!({ "type": "object", "allOf": [add, cut] }), &with(&["id", "op", "x"]));
        // A property that all have in one form keeps it, and what the schema itself requires is required.
        let one = json!({ "properties": { "a": { "type": "string" } } });
        let own = json!({ "properties": { "a": { "type": "string" } }, "required": ["a"], "oneOf": [one, one] });
        let expected = json!({ "type": "object", "properties": { "a": { "type": "string" } }, "required": ["a"] });
        check(&own, &expected);
    }

    /// As zod-to-json-schema writes a schema that it meets again.
    #[test]
    fn a_reference_into_a_branch_that_became_properties_leads_to_a_definition() {
        let place = json!({ "type": "object", "properties": { "x": { "type": "number" } } });
        let from = json!({ "properties": { "from": place } });
        let at = json!({ "properties": { "at": { "$ref": "#/anyOf/0/properties/from" } } });
        let expected = json!({
            "type": "object",
            "properties": { "from": place, "at": { "$ref": "#/$defs/0" } },
            "$defs": { "0": place },
        });
        check(&json!({ "type": "object", "anyOf": [from, at] }), &expected);

        // What it leads to has such references itself, and a definition of this name is there.
        let tree = object(json!({ "next": { "type": "array", "items": { "$ref": "#/anyOf/0" } } }));
        let kept = object(json!({ "next": { "type": "array", "items": { "$ref": "#/$defs/1" } } }));
        let expected = json!({
            "$defs": { "0": {}, "1": kept },
            "type": "object",
            "properties": kept["properties"],
        });
        check(&json!({ "$defs": { "0": {} }, "anyOf": [tree] }), &expected);

        // A property that has several forms now.
        let same = json!({ "$ref": "#/properties/a/properties/x" });
        let other = json!({ "properties": { "a": { "type": "null" } } });
        let several = json!({ "properties": { "a": place, "b": same }, "oneOf": [other] });
        let expected = json!({
            "type": "object",
            "properties": {
                "a": { "anyOf": [place, { "type": "null" }] },
                "b": { "$ref": "#/$defs/0" },
            },
            "$defs": { "0": { "type": "number" } },
        });
        check(&several, &expected);

        // A target that is nowhere, one at an address of its own, and a value, which is no schema.
        let value = json!({ "$ref": "#/anyOf/0" });
        let other = json!({ "$ref": "https://example.com/a" });
        let gone = json!({ "properties": {
            "a": { "$ref": "#/anyOf/7", "title": "A" }, "b": other, "c": { "default": value },
        } });
        let left = json!({ "a": { "title": "A" }, "b": other, "c": { "default": value } });
        check(&json!({ "anyOf": [gone] }), &object(left));
    }

    #[test]
    fn a_reference_at_the_top_is_followed() {
        let base = json!({ "properties": { "id": { "type": "integer" } }, "required": ["id"] });
        let foo = json!({
            "type": "object", "allOf": [{ "$ref": "#/definitions/Base" }],
            "properties": { "a": { "$ref": "#/definitions/A" } }, "required": ["a"],
        });
        let definitions = json!({ "Foo": foo, "Base": base, "A": { "type": "string" } });
        let schema = json!({
            "$ref": "#/definitions/Foo", "definitions": definitions, "type": "object", "properties": {},
        });
        let properties = json!({ "a": { "$ref": "#/definitions/A" }, "id": { "type": "integer" } });
        let expected = json!({
            "type": "object", "properties": properties, "required": ["a", "id"],
            "definitions": definitions,
        });
        check(&schema, &expected);
        // References that lead nowhere, to other documents or back to themselves.
        for target in ["#/$defs/b", "https://example.com/a", "#", "#/$defs/a"] {
            let definitions =
                json!({ "a": { "$ref": "#/$defs/a", "oneOf": [{ "$ref": "#/$defs/a" }] } });
            let schema = json!({ "$ref": target, "$defs": definitions });
            let expected = json!({ "type": "object", "properties": {}, "$defs": definitions });
            check(&schema, &expected);
        }
    }
}
