//! What a line of `--json-stream` must be, by the tables of its documentation: fields, their types,
//! the known words, and the order of events. Written strictly: a field that is not in the tables is
//! an error.

use crate::once::is_uuid;
use serde_json::{Map, Value};
use std::collections::HashSet;

/// The words for what went wrong.
const CODES: [&str; 8] = [
    "CLI_NOT_FOUND",
    "AUTH_EXPIRED",
    "NETWORK_TIMEOUT",
    "CONTEXT_LIMIT",
    "MALFORMED_EVENT",
    "PROCESS_CRASHED",
    "SESSION_NOT_FOUND",
    "UNKNOWN",
];

/// A field of a payload: its name, the type of its value, whether it may be left out.
type Field = (&'static str, Type, bool);

#[derive(Clone, Copy, Debug)]
enum Type {
    Text,
    /// Whole, and not negative.
    Number,
    Truth,
    Object,
    Texts,
    Error,
}

/// The payload of each type of event.
const PAYLOADS: [(&str, &[Field]); 8] = [
    (
        "start",
        &[
            ("command", Type::Text, false),
            ("model", Type::Text, true),
            ("provider", Type::Text, true),
            ("cwd", Type::Text, true),
        ],
    ),
    ("text_delta", &[("content", Type::Text, false)]),
    ("thinking", &[("content", Type::Text, true)]),
    (
        "tool_started",
        &[
            ("tool", Type::Text, false),
            ("toolId", Type::Text, false),
            ("parameters", Type::Object, false),
        ],
    ),
    (
        "tool_completed",
        &[
            ("tool", Type::Text, false),
            ("toolId", Type::Text, false),
            ("success", Type::Truth, false),
            ("duration", Type::Number, true),
            ("error", Type::Text, true),
        ],
    ),
    ("status", &[("status", Type::Text, false), ("message", Type::Text, false)]),
    ("error", &[("error", Type::Error, false)]),
    (
        "done",
        &[
            ("exitCode", Type::Number, false),
            ("duration", Type::Number, false),
            ("toolsUsed", Type::Texts, true),
            ("tokensUsed", Type::Number, true),
            ("reasoningTokens", Type::Number, true),
            ("success", Type::Truth, false),
        ],
    ),
];

const ERROR: [Field; 5] = [
    ("code", Type::Text, false),
    ("class", Type::Text, true),
    ("message", Type::Text, false),
    ("detail", Type::Text, true),
    ("recoverable", Type::Truth, false),
];

const ENVELOPE: [Field; 5] = [
    ("protocol", Type::Number, false),
    ("type", Type::Text, false),
    ("sessionId", Type::Text, false),
    ("timestamp", Type::Number, false),
    ("payload", Type::Object, false),
];

/// The events of a process that ended with `status`; what is wrong with them, if anything is.
pub(crate) fn events(stdout: &str, status: i32) -> Result<Vec<Value>, String> {
    let rest = stdout.rsplit('\n').next().unwrap_or_default();
    expect(rest.is_empty(), || format!("the last line has no end: {rest}"))?;
    let mut events = Vec::new();
    for line in stdout.lines() {
        let event = serde_json::from_str(line).map_err(|error| format!("{error}: {line}"))?;
        check_event(&event).map_err(|why| format!("{why}: {line}"))?;
        events.push(event);
    }
    check_order(&events, status)?;
    Ok(events)
}

fn check_event(event: &Value) -> Result<(), String> {
    check_fields(event, &ENVELOPE)?;
    expect(event["protocol"] == 1, || "another protocol".to_owned())?;
    expect(event["sessionId"].as_str().is_some_and(is_uuid), || "no session".to_owned())?;
    let named = PAYLOADS.iter().find(|(name, _)| event["type"] == *name);
    let (_, fields) = named.ok_or_else(|| format!("an unknown event: {}", event["type"]))?;
    check_fields(&event["payload"], fields)
}

fn check_fields(value: &Value, fields: &[Field]) -> Result<(), String> {
    let none = Map::new();
    let members = value.as_object().unwrap_or(&none);
    for (name, kind, is_optional) in fields {
        match members.get(*name) {
            None => expect(*is_optional, || format!("no {name}"))?,
            Some(value) => kind.check(value).map_err(|why| format!("{name}: {why}"))?,
        }
    }
    let unknown = members.keys().find(|key| !fields.iter().any(|(name, ..)| key == name));
    expect(unknown.is_none(), || format!("an unknown field: {unknown:?}"))
}

impl Type {
    fn check(self, value: &Value) -> Result<(), String> {
        let texts = |all: &Vec<Value>| all.iter().all(Value::is_string);
        let is_it = match self {
            Self::Text => value.is_string(),
            Self::Number => value.is_u64(),
            Self::Truth => value.is_boolean(),
            Self::Object => value.is_object(),
            Self::Texts => value.as_array().is_some_and(texts),
            Self::Error => {
                check_fields(value, &ERROR)?;
                CODES.iter().any(|code| value["code"] == *code)
            }
        };
        expect(is_it, || format!("{value} is no {self:?}"))
    }
}

fn check_order(events: &[Value], status: i32) -> Result<(), String> {
    let mut started: HashSet<String> = HashSet::new();
    let mut before = 0;
    for (number, event) in events.iter().enumerate() {
        let at = |what: &str| format!("event {number}: {what}");
        let is = |name: &str| event["type"] == name;
        let is_last = number + 1 == events.len();
        expect(is("start") == (number == 0), || at("start is first, once"))?;
        expect(is("done") == is_last, || at("done is last, once"))?;
        expect(event["sessionId"] == events[0]["sessionId"], || at("another session"))?;
        let now = event["timestamp"].as_u64().unwrap_or_default();
        expect(now >= before, || at("before the one before"))?;
        before = now;
        let tool = event["payload"]["toolId"].to_string();
        if is("tool_started") {
            expect(started.insert(tool), || at("started twice"))?;
        } else if is("tool_completed") {
            expect(started.remove(&tool), || at("completed, and never started"))?;
        }
        if is("error") && event["payload"]["error"]["recoverable"] == false {
            let next = events.get(number + 1);
            expect(next.is_some_and(|next| next["type"] == "done"), || at("no done follows"))?;
        }
    }
    let end = events.last().ok_or("there are no events")?;
    let (code, success) = (&end["payload"]["exitCode"], &end["payload"]["success"]);
    expect(*code == status, || format!("exitCode {code}, but the status is {status}"))?;
    let has_error = events.iter().any(|event| event["type"] == "error");
    expect(has_error == (status != 0), || format!("an error is {has_error}"))?;
    expect(*success == (status == 0), || format!("success is {success}"))
}

fn expect(is_so: bool, otherwise: impl FnOnce() -> String) -> Result<(), String> {
    if is_so { Ok(()) } else { Err(otherwise()) }
}

/// Each of these breaks one rule.
#[test]
fn what_is_against_the_tables_is_seen() {
    let id = "0f0f0f0f-1234-4abc-8def-000000000001";
    let line = |kind: &str, payload: &str| {
        format!(
            "{{\"protocol\":1,\"type\":\"{kind}\",\"sessionId\":\"{id}\",\"timestamp\":5,\
             \"payload\":{payload}}}\n"
        )
    };
    let start = line("start", "{\"command\":\"exec\"}");
    let done = line("done", "{\"exitCode\":0,\"duration\":1,\"success\":true}");
    let text = line("text_delta", "{\"content\":\"a\"}");
    let fatal =
        line("error", "{\"error\":{\"code\":\"UNKNOWN\",\"message\":\"m\",\"recoverable\":false}}");
    assert!(events(&(start.clone() + &text + &done), 0).is_ok());
    let wrong = [
        start.clone(),
        done.clone(),
        text.clone() + &start + &done,
        start.clone() + &done + &text,
        start.clone() + &done + &done,
        start.clone() + &fatal + &text + &done,
        start.clone() + &fatal + &done,
        start.clone() + &line("text_delta", "{}") + &done,
        start.clone() + &line("text_delta", "{\"content\":1}") + &done,
        start.clone() + &line("status", "{\"status\":\"s\",\"message\":\"m\",\"x\":1}") + &done,
        start.clone() + &line("news", "{}") + &done,
        start.clone() + &fatal.replace("UNKNOWN", "OTHER") + &done,
        start.clone()
            + &line("tool_completed", "{\"tool\":\"t\",\"toolId\":\"1\",\"success\":true}")
            + &done,
        start.clone() + &text.replace(id, "another") + &done,
        start.clone() + &text.replace(":5", ":4") + &done,
        start.clone() + &done.replace("\"exitCode\":0", "\"exitCode\":1"),
        start + done.trim_end(),
    ];
    for stream in wrong {
        assert!(events(&stream, 0).is_err(), "{stream}");
    }
}
