//! The parts of JSON Schema that providers take. Each is a list of what is allowed, because a provider
//! refuses the whole request for one word that it does not know.

use crate::task::call::ResponseSchema;
use serde_json::{Map, Value};

/// Levels of a schema. OpenAI allows 10.
const DEPTH_MAX: usize = 10;

/// Words that hold the schemas of other places.
const DEFINITIONS: [&str; 2] = ["$defs", "definitions"];

/// Keywords that every provider accepts.
const COMMON_WORDS: [&str; 13] = [
    "$defs",
    "$ref",
    "additionalProperties",
    "anyOf",
    "const",
    "definitions",
    "description",
    "enum",
    "format",
    "items",
    "properties",
    "required",
    "title",
];

/// The formats of texts that every provider takes.
const FORMATS: [&str; 9] =
    ["date", "date-time", "duration", "email", "hostname", "ipv4", "ipv6", "time", "uuid"];

const TYPES: [&str; 7] = ["array", "boolean", "integer", "null", "number", "object", "string"];

/// The part of JSON Schema that a provider takes.
struct Subset {
    /// Beside `type` and those that all take.
    words: &'static [&'static str],
    /// All properties have to be required.
    requires_all: bool,
    /// A schema may refer to itself.
    has_recursion: bool,
}

/// OpenAI's strict mode (<https://platform.openai.com/docs/guides/structured-outputs>).
const OPENAI_STRICT: Subset = Subset {
    words: &[
        "$schema",
        "exclusiveMaximum",
        "exclusiveMinimum",
        "maxItems",
        "maximum",
        "minItems",
        "minimum",
        "multipleOf",
        "pattern",
    ],
    requires_all: true,
    has_recursion: true,
};

/// Anthropic's (<https://platform.claude.com/docs/en/build-with-claude/structured-outputs>): no limits of
/// numbers, texts and lists.
const ANTHROPIC: Subset = Subset { words: &["default"], requires_all: false, has_recursion: false };

impl ResponseSchema {
    /// Whether the answer has to be an object: OpenAI's interfaces have no place for others.
    pub(in crate::engine) fn is_of_object(&self) -> bool {
        self.schema.get("type").is_some_and(|kind| kind == "object")
    }

    /// Whether OpenAI's strict mode takes the schema: every object has all its properties required
    /// and allows no others, and all its words are known there.
    pub(in crate::engine) fn is_strict(&self) -> bool {
        OPENAI_STRICT.has(&self.schema)
    }

    /// Whether the schema is in the part of JSON Schema that Anthropic takes.
    pub(in crate::engine) fn is_for_anthropic(&self) -> bool {
        ANTHROPIC.has(&self.schema)
    }
}

impl Subset {
    /// Whether a provider takes `schema` for an answer, which has to be an object.
    pub(super) fn has(&self, schema: &Map<String, Value>) -> bool {
        let is_object = schema.get("type").is_some_and(|kind| kind == "object");
        is_object && !schema.contains_key("anyOf") && self.has_object(schema, 1, false)
    }

    fn has_value(&self, schema: &Value, depth: usize, in_definition: bool) -> bool {
        schema.as_object().is_some_and(|schema| self.has_object(schema, depth, in_definition))
    }

    fn has_object(&self, schema: &Map<String, Value>, depth: usize, in_definition: bool) -> bool {
        let is_known = |word: &String| {
            let word = word.as_str();
            word == "type" || COMMON_WORDS.contains(&word) || self.words.contains(&word)
        };
        let has = |schema: &Value| self.has_value(schema, depth + 1, in_definition);
        let is_format = |format: &Value| format.as_str().is_some_and(|it| FORMATS.contains(&it));
        let is_any =
            |any: &Value| any.as_array().is_some_and(|any| !any.is_empty() && any.iter().all(has));
        let are_definitions = |all: &Value| {
            let all = all.as_object();
            all.is_some_and(|all| all.values().all(|it| self.has_value(it, depth + 1, true)))
        };
        let fits = |word: &str, fits: &dyn Fn(&Value) -> bool| schema.get(word).is_none_or(fits);
        depth <= DEPTH_MAX
            && schema.keys().all(is_known)
            && fits("format", &is_format)
            && fits("anyOf", &is_any)
            && DEFINITIONS.iter().all(|word| fits(word, &are_definitions))
            && fits("$ref", &|target| self.has_target(target, in_definition))
            && self.has_type(schema, &has)
    }

    /// The target of a reference is in the definitions of the schema itself.
    fn has_target(&self, target: &Value, in_definition: bool) -> bool {
        let Some(target) = target.as_str() else { return false };
        let is_definition = DEFINITIONS.iter().any(|word| {
            target.strip_prefix("#/").and_then(|path| path.strip_prefix(word)).is_some()
        });
        // A definition that refers to another may lead back to itself.
        match self.has_recursion {
            true => is_definition || target == "#",
            false => is_definition && !in_definition,
        }
    }

    /// What has to be there beside a type, and that there is one.
    fn has_type(&self, schema: &Map<String, Value>, has: &dyn Fn(&Value) -> bool) -> bool {
        let types: Vec<&str> = match schema.get("type") {
            Some(Value::String(one)) => vec![one],
            Some(Value::Array(several)) => several.iter().filter_map(Value::as_str).collect(),
            Some(_) => return false,
            None => {
                // Each of these says what the value is.
                let is_typed = ["anyOf", "$ref"].iter().any(|word| schema.contains_key(*word));
                let of_types = ["properties", "items", "required", "additionalProperties"];
                return is_typed && !of_types.iter().any(|word| schema.contains_key(*word));
            }
        };
        let is_object = types.contains(&"object");
        let items = schema.get("items");
        !types.is_empty()
            && types.iter().all(|kind| TYPES.contains(kind))
            && is_object == schema.contains_key("properties")
            && (!is_object || self.has_properties(schema, has))
            && types.contains(&"array") == items.is_some()
            && items.is_none_or(has)
    }

    fn has_properties(&self, schema: &Map<String, Value>, has: &dyn Fn(&Value) -> bool) -> bool {
        let Some(properties) = schema.get("properties").and_then(Value::as_object) else {
            return false;
        };
        let required = schema.get("required").and_then(Value::as_array);
        let required = required.map_or(&[][..], Vec::as_slice);
        let is_required = |name: &String| required.iter().any(|it| it == name.as_str());
        let is_property =
            |name: &Value| name.as_str().is_some_and(|it| properties.contains_key(it));
        schema.get("additionalProperties") == Some(&Value::Bool(false))
            && required.iter().all(is_property)
            && (!self.requires_all || properties.keys().all(is_required))
            && properties.values().all(has)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn closed(properties: Value) -> Value {
        let names: Vec<_> = properties.as_object().expect("an object").keys().cloned().collect();
        json!({ "type": "object", "properties": properties, "required": names,
                "additionalProperties": false })
    }

    fn with(mut schema: Value, word: &str, value: Value) -> Value {
        schema.as_object_mut().expect("an object").insert(word.to_owned(), value);
        schema
    }

    #[track_caller]
    fn check(schema: &Value, openai: bool, anthropic: bool) {
        let schema_object = schema.as_object().expect("an object");
        assert_eq!(OPENAI_STRICT.has(schema_object), openai, "OpenAI {schema}");
        assert_eq!(ANTHROPIC.has(schema_object), anthropic, "Anthropic {schema}");
    }

    /// A schema in a property.
    #[track_caller]
    fn check_in(schema: Value, openai: bool, anthropic: bool) {
        check(&closed(json!({ "a": schema })), openai, anthropic);
    }

    #[test]
    fn closed_objects_are_taken() {
        let text = json!({ "type": "string" });
        let open = json!({ "type": "object", "properties": {} });
        let one = closed(json!({ "a": text }));
        check(&one, true, true);
        check(&closed(json!({})), true, true);
        check(&with(one.clone(), "required", json!([])), false, true);
        check(&with(one.clone(), "required", json!(["a", "b"])), false, false);
        check(&with(one.clone(), "additionalProperties", json!(true)), false, false);
        check(&with(one.clone(), "type", json!(["object", "null"])), false, false);
        check(&with(one.clone(), "anyOf", json!([one])), false, false);
        check(&with(one.clone(), "title", json!("it")), true, true);
        check(&with(one.clone(), "$schema", json!("https://x")), true, false);
        check(&open, false, false);
        check(&json!({ "type": "object" }), false, false);
        check(&json!({ "type": "array", "items": text }), false, false);
        check_in(one.clone(), true, true);
        check_in(open.clone(), false, false);
        check_in(with(open.clone(), "type", json!(["object", "null"])), false, false);
        check_in(with(one.clone(), "type", json!(["object", "null"])), true, true);
        check_in(json!({ "properties": { "b": text } }), false, false);
        check_in(json!({ "type": "array", "items": open }), false, false);
        check_in(json!({ "type": "array", "items": one }), true, true);
        check_in(json!({ "type": "array" }), false, false);
        check_in(json!({ "type": ["string", "null"] }), true, true);
        check_in(json!({ "type": "text" }), false, false);
        check_in(json!({ "anyOf": [text, { "type": "null" }] }), true, true);
        check_in(json!({ "anyOf": [open] }), false, false);
        check_in(json!({}), false, false);
        check_in(json!(true), false, false);
    }

    #[test]
    fn words_that_are_not_known_are_not_taken() {
        let text = json!({ "type": "string" });
        let list = json!({ "type": "array", "items": text });
        let one = closed(json!({ "a": text }));
        for word in ["oneOf", "allOf", "not", "if", "minLength", "maxLength", "examples", "new"] {
            check_in(with(text.clone(), word, json!([text])), false, false);
        }
        for word in ["prefixItems", "contains", "unevaluatedItems", "uniqueItems"] {
            check_in(with(list.clone(), word, json!(true)), false, false);
        }
        for word in
            ["dependentSchemas", "dependentRequired", "patternProperties", "unevaluatedProperties"]
        {
            check(&with(one.clone(), word, json!({})), false, false);
        }
        for (word, value) in [("minItems", json!(2)), ("maxItems", json!(2))] {
            check_in(with(list.clone(), word, value), true, false);
        }
        let number = json!({ "type": "number" });
        for word in ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"] {
            check_in(with(number.clone(), word, json!(1)), true, false);
        }
        check_in(with(text.clone(), "pattern", json!("a+")), true, false);
        check_in(with(text.clone(), "default", json!("a")), false, true);
        check_in(with(text.clone(), "format", json!("date")), true, true);
        check_in(with(text.clone(), "format", json!("uri-template")), false, false);
        check_in(with(text, "enum", json!(["a"])), true, true);
    }

    #[test]
    fn definitions_are_followed() {
        let open = json!({ "type": "object", "properties": {} });
        let one = closed(json!({}));
        for word in DEFINITIONS {
            let to = json!({ "$ref": format!("#/{word}/b") });
            let root = closed(json!({ "a": to }));
            check(&with(root.clone(), word, json!({ "b": one })), true, true);
            check(&with(root.clone(), word, json!({ "b": open })), false, false);
            let again = closed(json!({ "c": to }));
            check(&with(root, word, json!({ "b": again })), true, false);
        }
        check_in(json!({ "$ref": "#" }), true, false);
        check_in(json!({ "$ref": "https://schemas.example/a" }), false, false);
        let mut deep = closed(json!({}));
        for _ in 1..DEPTH_MAX {
            deep = closed(json!({ "a": deep }));
        }
        check(&deep, true, true);
        check(&closed(json!({ "a": deep })), false, false);
    }
}
