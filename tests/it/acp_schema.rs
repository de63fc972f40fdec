//! Checks messages against the official JSON Schema of the Agent Client Protocol, and more strictly: no
//! member that it does not have.

use jsonschema::Validator;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{LazyLock, Mutex, PoisonError};

/// The schema, in which objects have no unknown members.
static SCHEMA: LazyLock<Value> = LazyLock::new(|| {
    let mut schema: Value =
        serde_json::from_str(include_str!("../data/acp/schema.json")).expect("a schema");
    let definitions = schema["$defs"].take();
    let mut mixed_in = BTreeSet::new();
    note_mixed_in(&definitions, &mut mixed_in);
    let Value::Object(mut definitions) = definitions else { panic!("definitions") };
    for (name, definition) in &mut definitions {
        // What an elicitation is about is a part of it in another way.
        let is_part = mixed_in.contains(name.as_str()) || name.ends_with("Scope");
        close(definition, !is_part);
    }
    json!({ "$schema": schema["$schema"], "$defs": definitions })
});

/// Validators by the names of their definitions.
static VALIDATORS: LazyLock<Mutex<BTreeMap<String, Validator>>> = LazyLock::new(Mutex::default);

/// Names of the definitions that are parts of other objects.
fn note_mixed_in(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(members) => {
            if let (Some(Value::Array(parts)), true) = (members.get("allOf"), is_variant(members)) {
                let names =
                    parts.iter().filter_map(|part| part["$ref"].as_str()?.rsplit('/').next());
                found.extend(names.map(str::to_owned));
            }
            members.values().for_each(|member| note_mixed_in(member, found));
        }
        Value::Array(items) => items.iter().for_each(|item| note_mixed_in(item, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Whether it is one form of an object: a constant beside a definition.
fn is_variant(members: &Map<String, Value>) -> bool {
    let has_constant = |it: &Value| it.get("const").is_some();
    members.contains_key("allOf")
        && members
            .get("properties")
            .and_then(Value::as_object)
            .is_some_and(|it| it.values().any(has_constant))
}

/// Forbids unknown members in an object, unless it is a part of another one.
fn close(definition: &mut Value, is_whole: bool) {
    let Some(members) = definition.as_object_mut() else { return };
    if is_whole && members.contains_key("properties") {
        members.insert("unevaluatedProperties".to_owned(), json!(false));
        return;
    }
    for key in ["oneOf", "anyOf"] {
        for variant in members.get_mut(key).and_then(Value::as_array_mut).into_iter().flatten() {
            if variant.get("properties").is_some() {
                variant["unevaluatedProperties"] = json!(false);
            }
        }
    }
}

/// Checks `value` against the definition `name`.
#[track_caller]
pub(crate) fn check(name: &str, value: &Value) {
    let mut validators = VALIDATORS.lock().unwrap_or_else(PoisonError::into_inner);
    let validator = validators.entry(name.to_owned()).or_insert_with(|| {
        assert!(SCHEMA["$defs"].get(name).is_some(), "the schema has no {name}");
        let mut schema = SCHEMA.clone();
        schema["$ref"] = json!(format!("#/$defs/{name}"));
        jsonschema::draft202012::new(&schema).expect("a schema")
    });
    let errors: Vec<_> = validator.iter_errors(value).map(|error| error.to_string()).collect();
    drop(validators);
    assert!(errors.is_empty(), "{value} is no {name}: {errors:?}");
}

/// The definition of the result of a method.
pub(crate) fn result_of(method: &str) -> &'static str {
    match method {
        "initialize" => "InitializeResponse",
        "authenticate" => "AuthenticateResponse",
        "session/new" => "NewSessionResponse",
        "session/load" => "LoadSessionResponse",
        "session/resume" => "ResumeSessionResponse",
        "session/list" => "ListSessionsResponse",
        "session/delete" => "DeleteSessionResponse",
        "session/close" => "CloseSessionResponse",
        "session/prompt" => "PromptResponse",
        "session/set_mode" => "SetSessionModeResponse",
        "session/set_config_option" => "SetSessionConfigOptionResponse",
        other => panic!("the result of {other} is not known"),
    }
}

/// The definition of the parameters of a request or a notification that the program sends.
pub(crate) fn params_of(method: &str) -> &'static str {
    match method {
        "session/update" => "SessionNotification",
        "session/request_permission" => "RequestPermissionRequest",
        "fs/read_text_file" => "ReadTextFileRequest",
        "elicitation/create" => "CreateElicitationRequest",
        "elicitation/complete" => "CompleteElicitationNotification",
        "$/cancel_request" => "CancelRequestNotification",
        other => panic!("the program may not send {other}"),
    }
}

#[test]
fn what_the_schema_does_not_have_is_found() {
    let refused =
        |name: &str, value: Value| std::panic::catch_unwind(|| check(name, &value)).is_err();
    let chunk = |more: Value| {
        let mut update = json!({ "sessionUpdate": "agent_message_chunk",
            "content": { "type": "text", "text": "x" }, "messageId": "m" });
        update
            .as_object_mut()
            .expect("an object")
            .extend(more.as_object().expect("an object").clone());
        json!({ "sessionId": "s", "update": update })
    };
    check("SessionNotification", &chunk(json!({})));
    assert!(refused("SessionNotification", chunk(json!({ "made": "up" }))));
    assert!(refused("SessionNotification", chunk(json!({ "sessionUpdate": "made_up" }))));
    assert!(refused("PromptResponse", json!({ "stopReason": "made_up" })));
    assert!(refused("PromptResponse", json!({ "stopReason": "end_turn", "usage": 1 })));
    check("PromptResponse", &json!({ "stopReason": "end_turn", "_meta": { "x": 1 } }));
}
