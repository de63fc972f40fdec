//! Tool calls in the stream of events, which no built-in engine makes.

use super::{Beginning, Format, JsonStream};
use crate::protocol::proto::chat::{ChatToolCallRequested, ChatToolResultReady};
use crate::protocol::wire;
use crate::session::{ExitCode, Uptime};
use serde_json::{Value, json};

fn requested(id: &str, input: &str) -> crate::protocol::any::Any {
    let (tool_call_id, tool_name) = (id.to_owned(), "clock".to_owned());
    let input = input.to_owned();
    ChatToolCallRequested { tool_call_id, tool_name, input, ..Default::default() }.into()
}

fn returned(id: &str, status: &str) -> crate::protocol::any::Any {
    let (tool_call_id, tool_name) = (id.to_owned(), "clock".to_owned());
    let (status, result) = (status.to_owned(), "noon".to_owned());
    ChatToolResultReady { tool_call_id, tool_name, status, result, ..Default::default() }.into()
}

/// The type and payload of each event written for these payloads, ten milliseconds apart.
fn events(payloads: Vec<crate::protocol::any::Any>) -> Vec<(String, Value)> {
    let mut format = Format::JsonStream(Box::new(JsonStream::new(Beginning::default())));
    let mut out = Vec::new();
    let session = crate::protocol::id::SessionId::new("mine").expect("a name");
    let mut now = Uptime::default();
    for payload in payloads {
        now.0 += 10;
        let event = wire::ui_event(crate::protocol::id::Ordinal(now.0), payload);
        let frame = wire::frame(&session, None, event);
        format.frame(now, &frame, &mut out).expect("it has a JSON form");
    }
    format.end(now, ExitCode::Ok, &mut out).expect("it has a JSON form");
    let lines = std::str::from_utf8(&out).expect("UTF-8").lines();
    let events = lines.map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    let typed = |event: &Value| event["type"].as_str().unwrap_or_default().to_owned();
    events.map(|event| (typed(&event), event["payload"].clone())).collect()
}

#[test]
fn tools_start_and_end_in_the_stream() {
    let written = events(vec![
        requested("1", "{\"zone\":\"UTC\"}"),
        returned("1", "success"),
        requested("2", "{}"),
        returned("2", "error"),
        returned("3", "success"),
    ]);
    let started = |id: &str, parameters: Value| {
        let payload = json!({ "tool": "clock", "toolId": id, "parameters": parameters });
        ("tool_started".to_owned(), payload)
    };
    let completed = |id: &str, success: bool| {
        let completed =
            json!({ "tool": "clock", "toolId": id, "success": success, "duration": 10 });
        ("tool_completed".to_owned(), completed)
    };
    let mut failed = completed("2", false);
    failed.1["error"] = "noon".into();
    let done = json!({ "exitCode": 0, "duration": 50, "toolsUsed": ["clock"], "success": true });
    let expected = [
        started("1", json!({ "zone": "UTC" })),
        completed("1", true),
        started("2", json!({})),
        failed,
        ("done".to_owned(), done),
    ];
    assert_eq!(written, expected);
}

#[test]
fn parameters_are_an_object_whatever_the_model_wrote() {
    for input in ["", "[1]", "5", "{\"a\":", "null"] {
        let written = events(vec![requested("1", input)]);
        assert_eq!(written[0].1["parameters"], json!({ "input": input }));
    }
}
