//! Values validated against schemas, and schemas that can't be used.

use super::*;
use crate::protocol::json::DEPTH_MAX;
use serde_json::{Map, json};

const BRIEF: &str = "the place of the error would take too long to find";

/// What is wrong with a value; empty if nothing is.
fn fault(schema: &Value, value: &Value) -> String {
    let schema = Schema::compile(schema).expect("a schema");
    let text = value.to_string();
    match schema.check(value, text.len()) {
        Ok(()) => String::new(),
        Err(reason) => reason.to_string().replace("does not match the schema: ", ""),
    }
}

#[track_caller]
fn check_fault(schema: &Value, value: &Value, expected: &str) {
    assert_eq!(fault(schema, value), expected, "{value} as {schema}");
}

#[track_caller]
fn check_refused(schema: &Value, expected: &str) {
    let refused = Schema::compile(schema).map(|_| ()).map_err(|error| error.to_string());
    assert_eq!(refused, Err(expected.to_owned()), "{schema}");
}

#[test]
fn faults_say_where_and_what() {
    let schema = json!({
        "type": "object",
        "properties": {"a/b": {"type": "array", "items": {"type": "string", "pattern": "^x"}}},
        "required": ["a/b"],
    });
    check_fault(&schema, &json!({"a/b": ["x", "xy"], "c": 1}), "");
    check_fault(&schema, &json!({"a/b": ["x", 1]}), "1 is not of type \"string\" (at /a~1b/1)");
    check_fault(&schema, &json!({"a/b": ["y"]}), "\"y\" does not match \"^x\" (at /a~1b/0)");
    check_fault(&schema, &json!({}), "\"a/b\" is a required property");
    check_fault(&schema, &json!([]), "[] is not of type \"object\"");
}

#[test]
fn a_value_that_fits_none_of_several_has_the_error_of_the_one_it_names() {
    let kinds = json!([
        {
            "type": "object",
            "properties": {"type": {"const": "a"}, "x": {"type": "string"}},
            "required": ["type", "x"],
        },
        {"type": "object", "properties": {"type": {"const": "b"}}, "required": ["type"]},
    ]);
    let known = "it must be one of \"a\", \"b\"";
    let by_reference = json!([{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/b"}]);
    for (key, listed) in [("oneOf", &kinds), ("anyOf", &kinds), ("oneOf", &by_reference)] {
        let at_root = json!({key: listed, "$defs": {"a": kinds[0], "b": kinds[1]}});
        let inside = json!({
            "properties": {"p": {"$ref": "#/$defs/k"}},
            "$defs": {"a": kinds[0], "b": kinds[1], "k": {key: listed}},
        });
        for (value, expected) in [
            (json!({"type": "a", "x": "y"}), String::new()),
            (json!({"type": "b"}), String::new()),
            (json!({"type": "a"}), "\"x\" is a required property".to_owned()),
            (json!({"type": "c"}), format!("unknown type \"c\"; {known}")),
            (json!({"x": "y"}), format!("no type; {known}")),
            (json!({"type": 1}), format!("no type; {known}")),
            (json!("a"), format!("not an object with a type; {known}")),
        ] {
            check_fault(&at_root, &value, &expected);
            let expected = if expected.is_empty() { expected } else { expected + " (at /p)" };
            check_fault(&inside, &json!({"p": value}), &expected);
        }
        let value = json!({"type": "a", "x": 1});
        check_fault(&at_root, &value, "1 is not of type \"string\" (at /x)");
    }
    let plain = json!({"anyOf": [{"type": "string"}, {"type": "integer"}]});
    let each = "true is not of type \"string\"; or true is not of type \"integer\"";
    check_fault(&plain, &json!(true), each);
}

/// As Pydantic writes `Optional`.
#[test]
fn a_value_that_may_also_be_null_has_the_error_of_its_type() {
    let or_null =
        |name: &str| json!({"anyOf": [{"$ref": format!("#/$defs/{name}")}, {"type": "null"}]});
    let schema = json!({
        "type": "object",
        "properties": {"a": {"type": "integer"}, "addr": or_null("Address")},
        "$defs": {
            "Address": {
                "type": "object",
                "properties": {"street": {"type": "string"}, "geo": or_null("Geo")},
            },
            "Geo": {"type": "object", "properties": {"lat": {"type": "number"}}},
        },
    });
    for (addr, expected) in [
        (json!({"street": "x", "geo": null}), ""),
        (json!({"street": 1}), "1 is not of type \"string\" (at /addr/street)"),
        (json!({"geo": {"lat": "x"}}), "\"x\" is not of type \"number\" (at /addr/geo/lat)"),
        (json!(1), "1 is not of type \"object\"; or 1 is not of type \"null\" (at /addr)"),
    ] {
        check_fault(&schema, &json!({"a": 5, "addr": addr}), expected);
    }
    let object = json!({"type": "object", "properties": {"a": {"type": "string"}}});
    let of_five = "5 is not of type \"object\"";
    let letters = json!({"enum": ["a", "b"], "type": "string"});
    let of_letter = "\"c\" is not one of \"a\" or \"b\"";
    for (other, schema, value, expected) in [
        (json!({"const": null}), &object, json!(5), format!("null was expected; or {of_five}")),
        (json!({"enum": ["x"]}), &object, json!(5), format!("5 is not one of \"x\"; or {of_five}")),
        (
            json!({"const": null}),
            &object,
            json!({"a": 1}),
            "1 is not of type \"string\" (at /a)".to_owned(),
        ),
        (json!({"type": "null"}), &letters, json!("c"), of_letter.to_owned()),
        (json!({"const": null}), &letters, json!("c"), of_letter.to_owned()),
    ] {
        check_fault(&json!({"anyOf": [other, schema]}), &value, &expected);
    }
}

/// A reference by name is one to a part of the schema, and no reason to explain nothing.
#[test]
fn schemas_that_refer_to_their_parts_by_name_are_explained() {
    let node = json!({
        "$id": "Node",
        "type": "object",
        "properties": {
            "v": {"type": "string"},
            "nodes": {"type": "array", "items": {"$ref": "Node"}},
        },
    });
    let value = json!({"nodes": [{"nodes": [{"v": 1}]}]});
    check_fault(&node, &value, "1 is not of type \"string\" (at /nodes/0/nodes/0/v)");
    let by_address = json!({
        "$id": "https://example.com/root.json",
        "properties": {"a": {"$ref": "https://example.com/root.json#/definitions/a"}},
        "definitions": {"a": {"type": "string"}},
    });
    let bundled = json!({
        "properties": {"a": {"$ref": "https://example.com/a"}},
        "$defs": {"a": {"$id": "https://example.com/a", "type": "string"}},
    });
    for schema in [by_address, bundled] {
        check_fault(&schema, &json!({"a": 1}), "1 is not of type \"string\" (at /a)");
    }
    let meta = json!({"$ref": "https://json-schema.org/draft/2020-12/schema"});
    check_fault(&meta, &json!({"type": 1}), BRIEF);
}

#[test]
fn the_draft_is_2020_12_unless_another_is_named() {
    let tuple = json!({"prefixItems": [{"type": "string"}]});
    check_fault(&tuple, &json!([1]), "1 is not of type \"string\" (at /0)");
    let mut old = tuple;
    old["$schema"] = json!("http://json-schema.org/draft-07/schema#");
    check_fault(&old, &json!([1]), "");
    check_fault(&json!({"format": "email"}), &json!("no address"), "");
}

#[test]
fn what_is_no_schema() {
    check_refused(&json!(3), "the schema is wrong: 3 is not of types \"boolean\", \"object\"");
    check_refused(
        &json!({"properties": {"a": {"type": "strin"}}}),
        "the schema is wrong (at /properties/a/type): \"strin\" is not one of \"array\", \"boolean\" \
         or 5 other candidates; or \"strin\" is not of type \"array\"",
    );
    check_refused(
        &json!({"$ref": "#/$defs/x"}),
        "the schema is wrong (at /$ref): Pointer '/$defs/x' does not exist",
    );
    for pattern in ["(", "(?=a)", "(a)\\1", "((a{1000}){1000}){1000}"] {
        let quoted = json!(pattern);
        let expected = format!(
            "the schema is wrong (at /pattern): {quoted} is not a valid pattern, uses look-around, or is \
             too large"
        );
        check_refused(&json!({"pattern": pattern}), &expected);
    }
    check_refused(
        &json!({"$schema": "https://example.com/x"}),
        "the schema's $schema is https://example.com/x, which is not a known draft of JSON Schema; \
         leave it out for draft 2020-12",
    );
}

#[test]
fn nothing_is_fetched() {
    for (schema, uri, pointer) in [
        (json!({"$ref": "http://example.com/a"}), "http://example.com/a", "/$ref"),
        (
            json!({"not": {"$ref": "https://example.com/a#/b"}}),
            "https://example.com/a",
            "/not/$ref",
        ),
        (json!({"$ref": "file:///etc/passwd"}), "file:///etc/passwd", "/$ref"),
        (json!({"$ref": "other.json#/a"}), "other.json#/a", "/$ref"),
        (json!({"$id": "http://x/y", "$ref": "z"}), "http://x/z", "/$ref"),
        (
            json!({"$id": "file:///etc/", "items": {"$ref": "passwd#"}}),
            "file:///etc/passwd",
            "/items/$ref",
        ),
        (json!({"items": {"$dynamicRef": "http://e/x#y"}}), "http://e/x", "/items/$dynamicRef"),
        (
            json!({"$ref": "#/$defs/a", "$defs": {"a": {"$id": "http://e/", "$ref": "b"}}}),
            "http://e/b",
            "/$defs/a/$ref",
        ),
        (
            json!({"$defs": {"never used": {"$ref": "urn:x:y"}}}),
            "urn:x:y",
            "/$defs/never used/$ref",
        ),
    ] {
        let refused = Schema::compile(&schema).map(|_| ());
        let expected = SchemaError::Remote { pointer: pointer.to_owned(), uri: uri.to_owned() };
        assert_eq!(refused, Err(expected), "{schema}");
    }
}

/// An unknown keyword refers to nothing, but was meant to.
#[test]
fn nothing_is_fetched_in_any_draft() {
    for draft in ["draft-04/schema#", "draft-07/schema#", "draft/2019-09/schema"] {
        let prefix = if draft.contains('#') { "http" } else { "https" };
        let uri = format!("{prefix}://json-schema.org/{draft}");
        for key in ["$dynamicRef", "$recursiveRef"] {
            let schema = json!({"$schema": uri, "properties": {"a": {key: "http://e/x"}}});
            let refused = Schema::compile(&schema).map(|_| ());
            let (pointer, uri) = (format!("/properties/a/{key}"), "http://e/x".to_owned());
            assert_eq!(refused, Err(SchemaError::Remote { pointer, uri }), "{schema}");
        }
    }
}

/// Data is not a schema, whatever it looks like.
#[test]
fn data_refers_to_nothing() {
    let like = json!({"$ref": "http://example.com/data", "$recursiveRef": "http://e/x"});
    let circle = json!({"$ref": "#/const", "$id": "x"});
    for data in [like, circle] {
        for schema in [
            json!({"const": data}),
            json!({"enum": [data, data]}),
            json!({"properties": {"a": {"const": data}}, "default": data, "examples": [data]}),
            json!({"$schema": "http://json-schema.org/draft-07/schema#", "const": {"a": [data]}}),
        ] {
            check_fault(&json!({"anyOf": [schema, true]}), &json!(1), "");
        }
        check_fault(&json!({"const": data}), &data, "");
    }
    let named =
        json!({"properties": {"const": {"type": "null"}, "a": {"$ref": "#/properties/const"}}});
    check_fault(&named, &json!({"a": 1}), "1 is not of type \"null\" (at /a)");
    check_refused(
        &json!({"items": {"$ref": "#/examples/0"}, "examples": [{"type": "null"}]}),
        "the schema is wrong (at /items/$ref): #/examples/0 is in a const, enum, default or \
         examples, which contain data and no schema",
    );
}

#[test]
fn names_are_those_of_one_schema() {
    let same = |a: Value, b: Value| json!({"$defs": {"a": a, "b": b}});
    for (a, b) in [("x", "x"), ("http://e/x", "http://e/x#"), ("urn:x:y", "urn:x:y")] {
        check_refused(
            &same(json!({"$id": a, "type": "null"}), json!({"$id": b})),
            "the schema is wrong (at /$defs/b/$id): it is the same as /$defs/a/$id; give each \
             schema a different one, or none",
        );
    }
    let inside = |base: &str| json!({"$id": base, "$defs": {"c": {"$id": "x"}}});
    for schema in [
        same(json!({"$id": "x"}), json!({"$id": "y"})),
        same(inside("http://e/"), inside("http://f/")),
        same(json!({"properties": {"$id": true}}), json!({"properties": {"$id": true}})),
    ] {
        check_fault(&schema, &json!(1), "");
    }
}

#[test]
fn what_needs_no_network_may_be_referred_to() {
    for schema in [
        json!({"$ref": "https://json-schema.org/draft/2020-12/schema"}),
        json!({"$id": "http://x/y", "$ref": "z", "$defs": {"a": {"$id": "z", "type": "object"}}}),
        json!({"$ref": "#a", "$defs": {"a": {"$anchor": "a", "type": "object"}}}),
        json!({"$ref": "#/$defs/a%20~1%25", "$defs": {"a /%": {"type": "object"}}}),
        json!({"const": {"$ref": "http://example.com/data"}}),
    ] {
        assert_ne!(fault(&schema, &json!(1)), "", "{schema}");
    }
}

/// A tree of `anyOf` with the same schema twice would take a year to check in each of its branches.
#[test]
fn schemas_that_come_back_to_themselves() {
    let list = json!({
        "type": "object",
        "properties": {"next": {"$ref": "#"}, "n": {"type": "integer"}},
        "required": ["n"],
    });
    let mut value = json!({"n": "x"});
    for n in 0..120 {
        value = json!({"n": n, "next": value});
    }
    let expected = format!("\"x\" is not of type \"integer\" (at {}/n)", "/next".repeat(120));
    let message = fault(&list, &value);
    assert!(message.starts_with("\"x\" is not of type \"integer\" (at /next/next"), "{message}");
    assert!(message.len() < expected.len(), "cut");
    for key in ["anyOf", "oneOf", "allOf"] {
        let child = json!({key: [{"$ref": "#"}, {"$ref": "#"}]});
        let tree =
            json!({"type": "object", "properties": {"next": child, "n": {"type": "integer"}}});
        check_fault(&tree, &value, BRIEF);
    }
    let kinds = ["a", "b"].map(|kind| {
        json!({
            "type": "object",
            "properties": {"type": {"const": kind}, "next": {"$ref": "#"}},
            "required": ["type", "next"],
        })
    });
    let kinds = json!({"oneOf": kinds});
    let nested =
        |levels: usize| (0..levels).fold(json!(1), |inner, _| json!({"type": "a", "next": inner}));
    check_fault(&kinds, &nested(100), BRIEF);
    let what = "not an object with a type; it must be one of \"a\", \"b\" (at /next/next)";
    check_fault(&kinds, &nested(2), what);
}

/// What is too deep for the stack is refused as a schema or as a value; the test's thread has 2
/// MiB.
#[test]
fn the_stack_holds_whatever_is_taken() {
    for levels in [0, 1, 5, 20, 45, 60] {
        for key in ["allOf", "anyOf", "not", "unevaluatedProperties"] {
            let mut schema = json!({"type": "object", "properties": {"a": {"$ref": "#"}}});
            for _ in 0..levels {
                schema = match key {
                    "not" => json!({"not": schema}),
                    "unevaluatedProperties" => json!({"allOf": [schema], key: false}),
                    _ => json!({key: [schema]}),
                };
            }
            let Ok(compiled) = Schema::compile(&schema) else {
                assert!(levels > 45, "{levels} of {key}");
                continue;
            };
            let mut value = json!(1);
            for depth in 1..=DEPTH_MAX {
                value = json!({"a": value});
                if depth % 6 == 1 {
                    // Reported briefly, and reported in full.
                    let brief = compiled.check(&value, usize::MAX);
                    assert_eq!(
                        compiled.check(&value, 1).is_ok(),
                        brief.is_ok(),
                        "{schema} {depth}"
                    );
                }
            }
        }
    }
}

/// Each level is checked twice as often as the one above, which is too often for one in thirty,
/// by whichever way one schema leads to the next. No value is validated against it for long.
#[test]
fn looks_are_counted() {
    const SPENT: &str = "too much work for this schema, whose parts apply to the same value again \
                         and again; make it simpler, or have each kind of object require its type";
    let nested = |levels| (0..levels).fold(json!({}), |inner, _| json!({"a": inner}));
    for key in ["allOf", "anyOf", "oneOf", "not"] {
        let level = |at: usize| {
            let next = json!({"$ref": format!("#/$defs/{}", at + 1)});
            match key {
                "anyOf" => json!({"properties": {"a": {key: [{"allOf": [next, false]}, next]}}}),
                "not" => json!({"properties": {"a": {"allOf": [{"not": {"not": next}}, next]}}}),
                _ => json!({"properties": {"a": {key: [next, next]}}}),
            }
        };
        let mut levels: Map<String, Value> =
            (0..40).map(|at| (at.to_string(), level(at))).collect();
        levels.insert("40".to_owned(), json!({"type": "object"}));
        let schema = json!({"$ref": "#/$defs/0", "$defs": levels});
        let few = if key == "oneOf" { BRIEF } else { "" };
        let message = fault(&schema, &nested(8));
        assert!(few.is_empty() == message.is_empty() && message != SPENT, "{key}: {message}");
        if key == "oneOf" {
            // The first that both fit ends it.
            continue;
        }
        check_fault(&schema, &nested(40), SPENT);
    }
    // Unevaluated parts cause repeated checks of the schemas next to them, too.
    let open = |levels| {
        (0..levels).fold(
            json!({"properties": {"a": true}}),
            |inner, _| json!({"anyOf": [inner, false], "unevaluatedProperties": false}),
        )
    };
    check_fault(&open(5), &json!({"a": 1}), "");
    check_fault(&open(30), &json!({"a": 1}), SPENT);
}

/// Realistic schemas need few accesses, though the worst case is high.
#[test]
fn schemas_of_many_kinds_are_held_against_deep_values() {
    let kind = |at: usize| {
        json!({
            "type": "object",
            "properties": {
                "child": {"$ref": "#/$defs/any"},
                "children": {"type": "array", "items": {"$ref": "#/$defs/any"}},
                "type": {"const": format!("k{at}")},
                "name": {"type": "string", "minLength": 1},
            },
            "required": ["type", "name"],
            "additionalProperties": false,
        })
    };
    for key in ["oneOf", "anyOf"] {
        let kinds: Vec<Value> = (0..50).map(kind).collect();
        let schema = json!({"$ref": "#/$defs/any", "$defs": {"any": {key: kinds}}});
        let leaf = json!({"type": "k49", "name": "x"});
        let tree = (0..4).fold(leaf, |inner, _| {
            json!({"type": "k49", "name": "x", "child": inner, "children": [inner, inner]})
        });
        check_fault(&schema, &tree, "");
    }
}

#[test]
fn schemas_that_would_take_too_long() {
    let chain = |links: usize, link: &dyn Fn(Value) -> Value| {
        let next = |at: usize| json!({"$ref": format!("#/$defs/{at}")});
        let mut links: Map<String, Value> =
            (0..links).map(|at| (at.to_string(), link(next(at + 1)))).collect();
        links.insert(links.len().to_string(), json!({"type": "object"}));
        json!({"$ref": "#/$defs/0", "$defs": links})
    };
    let twice = |next: Value| json!({"allOf": [next, next]});
    let parts = |next: Value| json!({"properties": {"a": next, "b": next}, "items": next});
    let patterns = |count: usize| vec![json!({"pattern": "a"}); count];
    for (schema, is_taken) in [
        (chain(62, &|next| next), true),
        (chain(63, &|next| next), false),
        (chain(5_000, &|next| next), false),
        (chain(5, &twice), true),
        (chain(60, &twice), false),
        (chain(500, &parts), true),
        (chain(1, &|_| json!({"$ref": "#"})), false),
        (json!({"$ref": "#"}), false),
        (json!({"items": {"$ref": "#"}}), true),
        (json!({"items": patterns(100)}), false),
        (json!({"prefixItems": patterns(100)}), true),
        (json!({"prefixItems": patterns(101)}), false),
        (json!({"enum": ["x".repeat(SCHEMA_BYTES_MAX - 100)]}), true),
        (json!({"enum": ["x".repeat(SCHEMA_BYTES_MAX)]}), false),
    ] {
        let compiled = Schema::compile(&schema);
        let shown: String = schema.to_string().chars().take(100).collect();
        assert_eq!(compiled.is_ok(), is_taken, "{shown}: {:?}", compiled.err());
    }
}

#[test]
fn patterns_take_linear_time() {
    let value = "a".repeat(100_000) + "!";
    for pattern in ["^(a+)+$", "^(a|a)*$", "(a*)*b"] {
        assert_ne!(fault(&json!({"pattern": pattern}), &json!(value)), "", "{pattern}");
    }
}

/// An error that occurs a million times is reported as briefly as a single one.
#[test]
fn faults_of_large_values_are_brief() {
    let schema = json!({"oneOf": [{"items": {"type": "string"}}, {"type": "object"}]});
    check_fault(&schema, &json!(vec![1; 200_000]), BRIEF);
    check_fault(&json!({"type": "null"}), &json!("x".repeat(2_000_000)), BRIEF);
    let message = fault(&json!({"type": "null"}), &json!("x".repeat(100_000)));
    assert!(message.starts_with("\"xxx") && message.len() < 300, "{message}");
}
