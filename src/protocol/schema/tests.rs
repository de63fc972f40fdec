//! Everything that is written and accepted matches its schema; what is rejected does not.

use super::*;
use jsonschema::Validator;
use prost::Message;
use prost_types::FileDescriptorSet;
use serde_json::json;
use std::path::Path;

fn validator(schema: Value) -> Validator {
    jsonschema::draft202012::meta::validate(&schema).expect("a schema");
    jsonschema::draft202012::new(&schema).expect("a schema")
}

#[test]
fn all_files_are_there() {
    let set = FileDescriptorSet::decode(descriptors()).expect("descriptors");
    let mut known: Vec<_> = PROTO_FILES.iter().map(|(name, _)| *name).collect();
    let built = set.file.iter().map(|file| file.name());
    let mut built: Vec<_> = built.filter(|name| !name.starts_with("google/")).collect();
    known.sort_unstable();
    built.sort_unstable();
    assert_eq!(known, built, "a file in build.rs that PROTO_FILES lacks, or the other way round");
    let text = proto_text();
    assert_eq!(text.matches("syntax = \"proto3\";").count(), PROTO_FILES.len());
    assert!(text.starts_with("// ==== pinocchio/chatapp/v1/chat.proto ====\n\n// What happens"));
}

/// Go's generator requires it.
#[test]
fn every_file_names_its_go_package() {
    let set = FileDescriptorSet::decode(descriptors()).expect("descriptors");
    for file in set.file.iter().filter(|file| !file.name().starts_with("google/")) {
        let package = file.options.as_ref().map_or("", |options| options.go_package());
        let (path, name) = package.split_once(';').expect("a path and a name");
        let folder = file.name().rsplit_once('/').expect("a folder").0;
        assert!(path.ends_with(&format!("/{folder}")) && name.ends_with("v1"), "{package}");
    }
}

#[test]
fn schemas_are_schemas() {
    for schema in [frame(), request(), json_stream(), envelope(), list_events(), manifest()] {
        assert!(schema["title"].is_string(), "{schema}");
        validator(schema);
    }
}

/// Every frame of the recorded conversations.
#[test]
fn frames_fit_their_schema() {
    let frames = validator(frame());
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let mut count = 0;
    for file in std::fs::read_dir(folder).expect("the folder") {
        let text = std::fs::read_to_string(file.expect("a file").path()).expect("a conversation");
        for line in text.lines().filter_map(|line| line.strip_prefix("< ")) {
            let frame: Value = serde_json::from_str(line).expect("JSON");
            let errors: Vec<_> =
                frames.iter_errors(&frame).map(|error| error.to_string()).collect();
            assert_eq!(errors, [""; 0], "{line}");
            count += 1;
        }
    }
    assert!(count > 100, "only {count} frames");
}

/// A frame with an event.
fn event(ordinal: Value, name: &str, payload: Value) -> Value {
    let event = json!({ "ordinal": ordinal, "name": name, "payload": payload });
    json!({ "version": 1, "sessionId": "s", "requestId": "r", "uiEvent": event })
}

fn payload(name: &str, field: &str, value: Value) -> Value {
    json!({ "@type": format!("type.googleapis.com/pinocchio.chatapp.v1.{name}"), field: value })
}

/// A frame with `body` and the common fields.
fn line(body: Value) -> Value {
    let mut line = json!({ "version": 1, "sessionId": "s" });
    let members = body.as_object().expect("an object").clone();
    line.as_object_mut().expect("an object").extend(members);
    line
}

#[test]
fn only_a_lean_patch_leaves_its_session_out() {
    let frames = validator(frame());
    let text = json!("hi");
    let of = |name: &str, field: &str| {
        let mut event = event(json!("1"), name, payload(name, field, text.clone()));
        event.as_object_mut().expect("an object").shift_remove("sessionId");
        event
    };
    let lean = [
        of("ChatTextPatch", "text"),
        of("ChatReasoningPatch", "text"),
        of("ChatToolArgumentsPatch", "arguments"),
    ];
    for lean in lean {
        assert!(frames.is_valid(&lean), "{:?}", frames.validate(&lean));
    }
    assert!(!frames.is_valid(&of("ChatTextSegmentFinished", "text")));
    assert!(!frames.is_valid(&json!({ "version": 1, "done": { "status": "ok" } })));
}

#[test]
fn what_is_no_frame_does_not_fit() {
    let frames = validator(frame());
    let patch =
        |field, value| event(json!("1"), "ChatTextPatch", payload("ChatTextPatch", field, value));
    let ok = json!({ "status": "ok" });
    for right in [patch("text", json!("hi")), line(json!({ "done": ok }))] {
        assert!(frames.is_valid(&right), "{:?}", frames.validate(&right));
    }
    let text = || payload("ChatTextPatch", "text", json!("hi"));
    let wrong = [
        json!({}),
        line(json!({})),
        line(json!({ "version": "1", "done": ok })),
        line(json!({ "done": ok, "error": { "code": "internal" } })),
        line(json!({ "done": ok, "extra": 1 })),
        line(json!({ "done": { "status": "ok", "state": "ok" } })),
        line(json!({ "session_id": "s", "done": ok })),
        line(json!({ "version": -1, "done": ok })),
        event(json!(1), "ChatTextPatch", text()),
        event(json!("x"), "ChatTextPatch", text()),
        patch("text", json!(1)),
        patch("texts", json!("hi")),
        patch("mode", json!("OFTEN")),
        event(json!("1"), "ChatTextPath", payload("ChatTextPath", "text", json!("hi"))),
        event(json!("1"), "ChatTextPatch", json!({ "text": "hi" })),
    ];
    for frame in wrong {
        assert!(!frames.is_valid(&frame), "{frame}");
    }
}

/// What the contract fixes is fixed in the schema.
#[test]
fn what_is_fixed_fits_in_no_other_form() {
    let frames = validator(frame());
    let words = json!({ "protocol": crate::protocol::wire::PROTOCOL, "server": "duologue", "capabilities": [] });
    let patch =
        |field, value| event(json!("1"), "ChatTextPatch", payload("ChatTextPatch", field, value));
    let entity = |kind| json!({ "entities": [{ "kind": kind, "id": "i", "createdOrdinal": "1" }] });
    let pairs = [
        (
            line(json!({ "done": { "status": "ok" } })),
            line(json!({ "done": { "status": "fine" } })),
        ),
        (line(json!({ "done": { "status": "shutdown" } })), line(json!({ "done": {} }))),
        (line(json!({ "hello": words })), line(json!({ "version": 2, "hello": words }))),
        (line(json!({ "hello": words })), line(json!({ "requestId": "r", "hello": words }))),
        (line(json!({ "hello": words })), line(json!({ "sessionId": "", "hello": words }))),
        (line(json!({ "hello": words })), line(json!({ "hello": { "protocol": "other" } }))),
        (
            line(json!({ "error": { "code": "internal" } })),
            line(json!({ "error": { "code": "x" } })),
        ),
        (
            line(json!({ "snapshot": entity("ChatMessage") })),
            line(json!({ "snapshot": entity("Cat") })),
        ),
        (patch("role", json!("assistant")), patch("role", json!("user"))),
        (patch("status", json!("streaming")), patch("status", json!("finished"))),
        (
            event(json!("1"), "ChatRunStarted", payload("ChatRunStarted", "prompt", json!("hi"))),
            event(json!("1"), "ChatTextPatch", payload("ChatRunStarted", "prompt", json!("hi"))),
        ),
    ];
    for (right, wrong) in pairs {
        assert!(frames.is_valid(&right), "{:?}", frames.validate(&right));
        assert!(!frames.is_valid(&wrong), "{wrong}");
    }
}

/// The payloads of extensions have a schema like the others.
#[test]
fn events_of_extensions_fit() {
    let frames = validator(frame());
    let of = |package: &str, name: &str, field: &str, value: Value| {
        let payload = json!({
            "@type": format!("type.googleapis.com/{package}.v1.{name}"), field: value,
        });
        event(json!("1"), name, payload)
    };
    let (tools, session) = ("duologue.tools", "duologue.session");
    let client = "pinocchio.chatapp.frontendtools";
    let pairs = [
        (tools, "ToolApprovalRequested", "server", json!("s"), json!(1)),
        (tools, "ToolApprovalResolved", "decision", json!("DENY"), json!("MAYBE")),
        (tools, "ToolServerChanged", "state", json!("GONE"), json!(4)),
        (tools, "ToolServerChanged", "tools", json!(["t"]), json!("t")),
        (session, "SteeringAccepted", "targetRequestId", json!("r"), json!(["r"])),
        (client, "FrontendToolCallRequested", "status", json!("pending"), json!("success")),
        (client, "FrontendToolCallRequested", "input", json!({ "a": [1] }), json!("{}")),
        (client, "FrontendToolResultReceived", "status", json!("error"), json!("pending")),
        (client, "FrontendToolManifestUpdated", "revision", json!("1"), json!(1)),
    ];
    for (package, name, field, right, wrong) in pairs {
        let right = of(package, name, field, right);
        assert!(frames.is_valid(&right), "{right}");
        let wrong = of(package, name, field, wrong);
        assert!(!frames.is_valid(&wrong), "{wrong}");
    }
}

/// A version matches if and only if it is accepted.
#[test]
fn versions_fit_if_they_are_taken() {
    let requests = validator(request());
    let taken = ["0", "1", "1.0", "1e0", "\"0\"", "\"1\"", "\"1.0\"", "\"1e0\"", "null"];
    let refused = ["2", "7", "-1", "0.5", "10", "\"2\"", "\"10\"", "\"01e1\"", "\"\"", "true"];
    for (version, fits) in
        taken.map(|it| (it, true)).into_iter().chain(refused.map(|it| (it, false)))
    {
        let line = format!(r#"{{"version":{version},"cancel":{{}}}}"#);
        let value: Value = serde_json::from_str(&line).expect("JSON");
        assert_eq!(requests.is_valid(&value), fits, "{line}");
        let read: Result<crate::protocol::proto::rpc::RpcRequestLine, _> =
            crate::protocol::any::read_message(&line);
        assert_eq!(
            read.is_ok_and(|line| line.version <= crate::protocol::wire::VERSION),
            fits,
            "{line}"
        );
    }
}

/// A request matches if and only if it is accepted.
#[test]
fn requests_fit_if_they_are_read() {
    let requests = validator(request());
    let lines = [
        (true, r#"{"version":1,"sessionId":"s","requestId":"r","submit":{"prompt":"hi"}}"#),
        (true, r#"{"session_id":"s","request_id":"r","cancel":{}}"#),
        (true, r#"{"version":"1","snapshot":{"unknown":[1]},"unknown":{}}"#),
        (true, r#"{"version":"1e0","snapshot":{}}"#),
        (true, r#"{"shutdown":{},"cancel":null,"requestId":null}"#),
        (true, r#"{"submit":{}}"#),
        (true, r#"{"submit":{"prompt":"p","targetRequestId":"r"}}"#),
        (true, r#"{"cancel":{"target_request_id":"r","waiting":true}}"#),
        (true, r#"{"enable":{"extensions":["steer"]}}"#),
        (true, r#"{"declareTools":{"tools":[{"name":"t","inputSchema":{"type":"object"}}]}}"#),
        (true, r#"{"tool_result":{"toolCallId":"c","result":{"a":null},"status":"success"}}"#),
        (true, r#"{"approve":{"toolCallId":"c","decision":"DENY","reason":"no"}}"#),
        (true, r#"{"approve":{"toolCallId":"c","decision":2}}"#),
        (false, r#"{"approve":{"toolCallId":"c","decision":"MAYBE"}}"#),
        (false, r#"{"enable":{"extensions":"steer"}}"#),
        (false, r#"{"cancel":{"waiting":"yes"}}"#),
        (false, r#"{"toolResult":{"result":[1]}}"#),
        (false, r#"{"declareTools":{},"enable":{}}"#),
        (false, r#"{"requestId":"r"}"#),
        (false, r#"{"cancel":null}"#),
        (false, r#"{"cancel":{},"submit":{"prompt":"hi"}}"#),
        (false, r#"{"cancel":1}"#),
        (false, r#"{"version":1.5,"cancel":{}}"#),
        (false, r#"{"version":-1,"cancel":{}}"#),
        (false, r#"{"requestId":1,"cancel":{}}"#),
        (false, r#"{"submit":{"prompt":["hi"]}}"#),
        (false, r#"[]"#),
    ];
    for (fits, line) in lines {
        let value: Value = serde_json::from_str(line).expect("JSON");
        assert_eq!(requests.is_valid(&value), fits, "{line}");
        let read: Result<crate::protocol::proto::rpc::RpcRequestLine, _> =
            crate::protocol::any::read_message(line);
        assert_eq!(read.is_ok_and(|line| line.request.is_some()), fits, "{line}");
    }
}

#[test]
fn events_of_the_json_stream_fit() {
    let events = validator(json_stream());
    let event = |kind: &str, payload: Value| {
        json!({
            "protocol": 1, "type": kind, "sessionId": "s", "timestamp": 1_707_700_000_000_u64,
            "payload": payload,
        })
    };
    let start = json!({ "command": "exec", "model": "m", "provider": "p", "cwd": "/" });
    let started = json!({ "tool": "Read", "toolId": "t", "parameters": {} });
    let completed = json!({ "tool": "Read", "toolId": "t", "success": false, "error": "no" });
    let error = json!({ "code": "UNKNOWN", "message": "m", "recoverable": false });
    let done = json!({ "exitCode": 0, "duration": 12345, "toolsUsed": ["Read"], "success": true });
    let right = [
        event("start", start),
        event("text_delta", json!({ "content": "hi" })),
        event("thinking", json!({})),
        event("tool_started", started),
        event("tool_completed", completed),
        event("status", json!({ "status": "streaming", "message": "m" })),
        event("error", json!({ "error": error })),
        event("done", done),
    ];
    for event in right {
        assert!(events.is_valid(&event), "{event}");
        let mut other = event.clone();
        other["protocol"] = 2.into();
        assert!(!events.is_valid(&other), "{other}");
    }
    let wrong = [
        event("start", json!({})),
        event("text_delta", json!({ "content": 1 })),
        event("dance", json!({})),
        event("error", json!({ "error": "no" })),
        event("done", json!({ "exitCode": 0 })),
    ];
    for event in wrong {
        assert!(!events.is_valid(&event), "{event}");
    }
}
