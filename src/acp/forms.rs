//! Forms of MCP servers (elicitation) as clients take them: the schema of a field in the words of the Agent Client
//! Protocol, which has fewer than JSON Schema. Pure.

use serde_json::{Map, Number, Value, json};

/// Schemas that stand within one another around the type of a field: a reference, a union with null.
const LAYERS_MAX: usize = 8;

/// Members of a schema that have the type of a field in their place.
const LAYERS: [&str; 4] = ["$ref", "anyOf", "oneOf", "allOf"];

/// What a client can't show, and so can't ask.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Unfit {
    /// The form as a whole.
    Form,
    /// The field of this name.
    Field(String),
}

/// Gives `params`, those of `elicitation/create`, the mode that a client has to know, and a form that it can show.
///
/// # Errors
/// If the form has something for which the protocol has no words.
pub(super) fn fit(params: &mut Map<String, Value>) -> Result<(), Unfit> {
    let is_form = match params.get("mode").and_then(Value::as_str) {
        Some(mode) => mode == "form",
        None => !params.contains_key("url"),
    };
    if !is_form {
        params.entry("mode").or_insert_with(|| json!("url"));
        return Ok(());
    }
    params.insert("mode".to_owned(), json!("form"));
    let schema = params.get("requestedSchema").and_then(Value::as_object).ok_or(Unfit::Form)?;
    let schema = form(schema)?;
    params.insert("requestedSchema".to_owned(), Value::Object(schema));
    Ok(())
}

fn form(schema: &Map<String, Value>) -> Result<Map<String, Value>, Unfit> {
    let mut fields = Map::new();
    let named = schema.get("properties").and_then(Value::as_object);
    for (name, given) in named.into_iter().flatten() {
        let fitted = field(given, schema).ok_or_else(|| Unfit::Field(name.clone()))?;
        fields.insert(name.clone(), Value::Object(fitted));
    }
    let mut form = texts(schema, &["title", "description"]);
    form.insert("type".to_owned(), json!("object"));
    form.insert("properties".to_owned(), Value::Object(fields));
    if let Some(required) = schema.get("required").filter(|it| is_texts(it)) {
        form.insert("required".to_owned(), required.clone());
    }
    Ok(form)
}

/// A field of the form `root`; `None` if no client can show it.
fn field(given: &Value, root: &Map<String, Value>) -> Option<Map<String, Value>> {
    let given = plain(given, root)?;
    let kind = match given.get("type") {
        Some(kind) => kind.as_str()?,
        // Choices of texts, as some write them.
        None if given.contains_key("enum") || given.contains_key("oneOf") => "string",
        None => return None,
    };
    let mut field = texts(&given, &["title", "description"]);
    field.insert("type".to_owned(), json!(kind));
    let default = given.get("default");
    let default = match kind {
        "string" => {
            field.extend(text_field(&given)?);
            default.filter(|it| it.is_string()).cloned()
        }
        "integer" => {
            put(&mut field, "minimum", bound(&given, "minimum", f64::ceil));
            put(&mut field, "maximum", bound(&given, "maximum", f64::floor));
            default.filter(|it| is_whole(it)).and_then(|it| whole(it, f64::round))
        }
        "number" => {
            for name in ["minimum", "maximum"] {
                put(&mut field, name, given.get(name).filter(|it| it.is_number()).cloned());
            }
            default.filter(|it| it.is_number()).cloned()
        }
        "boolean" => default.filter(|it| it.is_boolean()).cloned(),
        "array" => {
            field.insert("items".to_owned(), items(given.get("items")?)?);
            put(&mut field, "minItems", count(&given, "minItems", f64::ceil));
            put(&mut field, "maxItems", count(&given, "maxItems", f64::floor));
            default.filter(|it| is_texts(it)).cloned()
        }
        _ => return None,
    };
    put(&mut field, "default", default);
    Some(field)
}

/// `given` without what stands around its type: a reference within `root`, a union with null, a list of one.
fn plain(given: &Value, root: &Map<String, Value>) -> Option<Map<String, Value>> {
    let mut plain = given.as_object()?.clone();
    for _ in 0..LAYERS_MAX {
        if let Some(Value::Array(kinds)) = plain.get("type") {
            let mut kinds = kinds.iter().filter(|kind| *kind != "null");
            let (Some(kind), None) = (kinds.next().cloned(), kinds.next()) else { return None };
            plain.insert("type".to_owned(), kind);
        }
        let Some(name) = LAYERS.into_iter().find(|name| is_layer(&plain, name)) else {
            return Some(plain);
        };
        let layer = plain.shift_remove(name)?;
        let inner = match layer.as_array() {
            Some(all) => only(all)?.as_object()?,
            None => found(&layer, root)?,
        };
        // The text beside it is more about this field.
        for (name, value) in inner {
            plain.entry(name).or_insert_with(|| value.clone());
        }
    }
    None
}

/// Whether the member `name` of `given` has its type. One of several titled texts is a choice of the person.
fn is_layer(given: &Map<String, Value>, name: &str) -> bool {
    let is_choice = |it: &Value| it.get("const").is_some();
    given.get(name).is_some_and(|it| {
        name != "oneOf" || !it.as_array().is_some_and(|all| all.iter().all(is_choice))
    })
}

/// The only schema of a list that is not that of null.
fn only(all: &[Value]) -> Option<&Value> {
    let mut some = all.iter().filter(|it| it["type"] != "null");
    some.next().filter(|_| some.next().is_none())
}

/// The schema within `root` that a reference leads to.
fn found<'a>(reference: &Value, root: &'a Map<String, Value>) -> Option<&'a Map<String, Value>> {
    let path = reference.as_str()?.strip_prefix("#/")?;
    path.split('/').try_fold(root, |at, name| at.get(name)?.as_object())
}

/// What a field for a text has beside its title.
fn text_field(given: &Map<String, Value>) -> Option<Map<String, Value>> {
    let mut field = texts(given, &["pattern"]);
    let formats = ["email", "uri", "date", "date-time"];
    let format = given.get("format").filter(|it| formats.iter().any(|format| it == format));
    put(&mut field, "format", format.cloned());
    put(&mut field, "minLength", count(given, "minLength", f64::ceil));
    put(&mut field, "maxLength", count(given, "maxLength", f64::floor));
    if let Some(choices) = given.get("enum") {
        field.insert("enum".to_owned(), choice_texts(choices)?);
    } else if let Some(only) = given.get("const") {
        field.insert("enum".to_owned(), json!([only.as_str()?]));
    }
    if let Some(choices) = given.get("oneOf") {
        field.insert("oneOf".to_owned(), titled(choices)?);
    }
    Some(field)
}

/// What a person may choose several of. Texts that are not in a list are no choice.
fn items(given: &Value) -> Option<Value> {
    match (given.get("enum"), given.get("anyOf").or_else(|| given.get("oneOf"))) {
        (Some(choices), _) => Some(json!({ "type": "string", "enum": choice_texts(choices)? })),
        (None, Some(choices)) => Some(json!({ "anyOf": titled(choices)? })),
        (None, None) => None,
    }
}

/// The choices in a list of texts, in which null stands for no choice.
fn choice_texts(choices: &Value) -> Option<Value> {
    let choices = choices.as_array()?.iter().filter(|it| !it.is_null()).cloned().collect();
    Some(Value::Array(choices)).filter(is_texts)
}

/// Choices with their titles.
fn titled(choices: &Value) -> Option<Value> {
    let titled = choices.as_array()?.iter().map(|choice| {
        let value = choice.get("const")?.as_str()?;
        let title = choice.get("title").and_then(Value::as_str).unwrap_or(value);
        Some(json!({ "const": value, "title": title }))
    });
    titled.collect::<Option<Vec<_>>>().map(Value::Array)
}

/// The members of these names that are texts.
fn texts(of: &Map<String, Value>, names: &[&str]) -> Map<String, Value> {
    let found = names.iter().filter_map(|name| Some((*name, of.get(*name)?)));
    let found = found.filter(|(_, value)| value.is_string());
    found.map(|(name, value)| (name.to_owned(), value.clone())).collect()
}

fn is_texts(value: &Value) -> bool {
    value.as_array().is_some_and(|all| all.iter().all(Value::is_string))
}

fn put(to: &mut Map<String, Value>, name: &str, value: Option<Value>) {
    if let Some(value) = value {
        to.insert(name.to_owned(), value);
    }
}

/// A bound of whole numbers: the next one within it.
fn bound(of: &Map<String, Value>, name: &str, inwards: fn(f64) -> f64) -> Option<Value> {
    whole(of.get(name)?, inwards)
}

/// A bound of a number of things.
fn count(of: &Map<String, Value>, name: &str, inwards: fn(f64) -> f64) -> Option<Value> {
    let count = bound(of, name, inwards)?.as_i64()?;
    u32::try_from(count).ok().map(Value::from)
}

fn is_whole(value: &Value) -> bool {
    value.is_i64() || value.as_f64().is_some_and(|it| it.fract() == 0.0)
}

/// The whole number that `inwards` makes of another one; `None` if it does not fit into 64 bits.
fn whole(value: &Value, inwards: fn(f64) -> f64) -> Option<Value> {
    if value.is_i64() {
        return Some(value.clone());
    }
    let rounded = inwards(value.as_f64()?);
    // By its digits: a conversion would turn any other number into the nearest one that fits.
    let number: Number = format!("{rounded:.0}").parse::<i64>().ok()?.into();
    Some(Value::Number(number))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fitted(schema: Value) -> Result<Value, Unfit> {
        let mut params = Map::new();
        params.insert("requestedSchema".to_owned(), schema);
        fit(&mut params)?;
        assert_eq!(params["mode"], "form");
        Ok(params["requestedSchema"].take())
    }

    #[track_caller]
    fn check(field: Value, expected: Value) {
        let schema = json!({ "$defs": { "Size": { "enum": ["s", "m"], "title": "Size" } },
            "properties": { "x": field } });
        let expected = json!({ "type": "object", "properties": { "x": expected } });
        assert_eq!(fitted(schema), Ok(expected));
    }

    #[test]
    fn a_field_has_the_words_that_clients_know() {
        let text = json!({ "type": "string" });
        for field in [
            json!({ "anyOf": [{ "type": "string" }, { "type": "null" }], "default": null }),
            json!({ "type": ["string", "null"] }),
            json!({ "allOf": [{ "type": "string" }] }),
            json!({ "type": "string", "format": "uuid", "minLength": -1, "examples": ["a"] }),
        ] {
            check(field, text.clone());
        }
        check(
            json!({ "anyOf": [{ "$ref": "#/$defs/Size" }, { "type": "null" }], "title": "Which?" }),
            json!({ "title": "Which?", "type": "string", "enum": ["s", "m"] }),
        );
        check(
            json!({ "type": "string", "format": "email", "minLength": 2.0, "default": "a@b" }),
            json!({ "type": "string", "format": "email", "minLength": 2, "default": "a@b" }),
        );
        check(
            json!({ "type": "integer", "minimum": 0.5, "maximum": 9.5, "default": 3.0 }),
            json!({ "type": "integer", "minimum": 1, "maximum": 9, "default": 3 }),
        );
        check(
            json!({ "type": "integer", "minimum": -1e300, "default": 2.5 }),
            json!({ "type": "integer" }),
        );
        check(
            json!({ "type": "number", "minimum": 0.5 }),
            json!({ "type": "number", "minimum": 0.5 }),
        );
        check(
            json!({ "oneOf": [{ "const": "a", "title": "A" }, { "const": "b" }] }),
            json!({ "type": "string",
                "oneOf": [{ "const": "a", "title": "A" }, { "const": "b", "title": "b" }] }),
        );
        check(
            json!({ "type": "array", "items": { "enum": ["a", "b"] }, "maxItems": 1 }),
            json!({ "type": "array", "items": { "type": "string", "enum": ["a", "b"] },
                "maxItems": 1 }),
        );
    }

    #[test]
    fn what_no_client_can_show_is_named() {
        for field in [
            json!({ "type": "object", "properties": {} }),
            json!({ "type": "array", "items": { "type": "string" } }),
            json!({ "anyOf": [{ "type": "string" }, { "type": "integer" }] }),
            json!({ "type": ["string", "integer"] }),
            json!({ "type": "string", "enum": [1, 2] }),
            json!({ "$ref": "#/properties/x" }),
            json!({ "$ref": "other.json" }),
            json!({}),
            json!(true),
        ] {
            let schema = json!({ "type": "object", "properties": { "x": field } });
            assert_eq!(fitted(schema.clone()), Err(Unfit::Field("x".to_owned())), "{schema}");
        }
        assert_eq!(fitted(json!("text")), Err(Unfit::Form));
    }

    #[test]
    fn an_address_and_a_mode_to_come_stay_as_they_are() {
        for (given, expected) in [
            (json!({ "url": "https://h" }), json!({ "url": "https://h", "mode": "url" })),
            (json!({ "mode": "url", "url": "u" }), json!({ "mode": "url", "url": "u" })),
            (json!({ "mode": "_other" }), json!({ "mode": "_other" })),
        ] {
            let Value::Object(mut params) = given else { panic!("{given}") };
            assert_eq!(fit(&mut params), Ok(()));
            assert_eq!(Value::Object(params), expected);
        }
    }
}
