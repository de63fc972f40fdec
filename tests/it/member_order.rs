//! Members of a JSON object stay in the order in which a person or a program wrote them: models write
//! an answer in the order of its schema. In each pair here the name that ends in `_z` is written first.

use crate::client_tools::calls;
use crate::frames::{Frame, snapshot, submit};
use crate::mcp_servers::{assert_gone, config, log, mark};
use crate::once::{Once, duologue, run};
use crate::postgres_server::Database;
use crate::provider::{Provider, Step, says};
use crate::server::{Folder, KEY, Launch, Server};
use crate::store::wait_state;
use serde_json::{Value, json};
use std::fs;

/// The answer of an engine's server that is this call of a tool and no more.
type Calling = fn(&Value) -> Vec<Step>;

/// Each engine, and such an answer.
const ENGINES: [(&str, Calling); 5] = [
    ("openai", |call| calls(&[("call_1", text(&call["name"]), &call["arguments"].to_string())])),
    ("responses", |call| {
        let item = json!({ "type": "function_call", "id": "fc_1", "call_id": "call_1",
            "name": call["name"], "arguments": call["arguments"].to_string() });
        let response = json!({ "status": "completed", "output": [item] });
        vec![event(&json!({ "type": "response.completed", "response": response }))]
    }),
    ("anthropic", |call| {
        let block =
            json!({ "type": "tool_use", "id": "call_1", "name": call["name"], "input": {} });
        let json = call["arguments"].to_string();
        let delta = json!({ "type": "input_json_delta", "partial_json": json });
        vec![
            event(&json!({ "type": "message_start", "message": { "content": [], "usage": {} } })),
            event(&json!({ "type": "content_block_start", "index": 0, "content_block": block })),
            event(&json!({ "type": "content_block_delta", "index": 0, "delta": delta })),
            event(&json!({ "type": "content_block_stop", "index": 0 })),
            event(&json!({ "type": "message_delta", "delta": { "stop_reason": "tool_use" } })),
            event(&json!({ "type": "message_stop" })),
        ]
    }),
    ("gemini", |call| {
        let made = json!({ "id": "call_1", "name": call["name"], "args": call["arguments"] });
        let content = json!({ "role": "model", "parts": [{ "functionCall": made }] });
        let candidate = json!({ "content": content, "finishReason": "STOP" });
        vec![event(&json!({ "candidates": [candidate] }))]
    }),
    ("ollama", |call| {
        let made = json!({ "name": call["name"], "arguments": call["arguments"] });
        let message = json!({ "role": "assistant", "tool_calls": [{ "function": made }] });
        let line = json!({ "message": message, "done": true, "done_reason": "stop" });
        vec![Step::Bytes((line.to_string() + "\n").into_bytes())]
    }),
];

fn event(event: &Value) -> Step {
    Step::Event(event.to_string())
}

fn text(value: &Value) -> &str {
    value.as_str().expect("a text")
}

/// A call with arguments in order.
fn call(tool: &str) -> Value {
    json!({ "name": tool,
        "arguments": { "argument_z": { "inner_z": 1, "inner_a": 2 }, "argument_a": [], "text": "ordered" } })
}

/// Each of these has a pair of names in `json`, and in order.
#[track_caller]
fn check_order(json: &str, pairs: &[&str]) {
    for name in pairs {
        let place = |end: &str| json.find(&format!("{name}_{end}"));
        assert!(place("z").is_some() && place("z") < place("a"), "{name} in {json}");
    }
}

fn declare(server: &mut Server) {
    let schema = json!({ "type": "object", "properties": { "tool_z": {}, "tool_a": {} } });
    let tool = json!({ "name": "ask", "description": "Asks.", "inputSchema": schema });
    let declare = json!({ "tools": [tool], "revision": 1 });
    server.send(json!({ "requestId": "t", "declareTools": declare }).to_string());
    assert_eq!(server.wait_done("t"), "ok");
}

/// A prompt with a schema and with an addition to the request.
fn ask(server: &mut Server, id: &str) {
    let schema = json!({ "type": "object", "additionalProperties": false,
        "properties": { "schema_z": { "type": "string" }, "schema_a": { "type": "string" } },
        "required": ["schema_z", "schema_a"] });
    let settings =
        json!({ "extra_body": { "extra_z": { "deep_z": 1, "deep_a": 2 }, "extra_a": 3 } });
    let submit = json!({ "prompt": "hi", "responseSchema": schema, "settings": settings });
    server.send(json!({ "requestId": id, "submit": submit }).to_string());
}

fn launch(engine: &str, provider: &Provider, folder: &Folder, args: &[&str]) -> Launch {
    let (base_url, store, servers) =
        (provider.base_url(), folder.name("store"), folder.name("servers"));
    let words = ["rpc", "--engine", engine, "--model", "gpt-5-mini", "--base-url", &base_url];
    let more = ["--store", &store, "--session-id", "s", "--mcp-config", &servers];
    let words = [&words, &more[..], &["--approval", "auto"], args].concat();
    Launch::new(&words).secret("DUOLOGUE_API_KEY", KEY)
}

/// A refusal that is not tried again.
fn gone() -> Vec<Step> {
    vec![Step::Status(404, Vec::new(), "{}".to_owned())]
}

/// The result of the client's tool, once it is asked for.
fn return_result(server: &mut Server) -> Frame {
    let asked = server.wait_event("FrontendToolCallRequested");
    let result = json!({ "toolCallId": asked.payload("toolCallId"),
        "result": { "answer_z": 1, "answer_a": 2 } });
    server.send(json!({ "requestId": "f", "toolResult": result }).to_string());
    asked
}

#[test]
fn schemas_arguments_results_and_additions_reach_every_provider_as_they_were_written() {
    for (engine, calling) in ENGINES {
        let (folder, mark) = (Folder::new(), mark());
        fs::write(folder.path("servers"), config(&mark, &["ordered"], &json!({}))).expect("a file");
        let script = [calling(&call("act")), calling(&call("ask")), gone(), gone()];
        let provider = Provider::start(script.to_vec());
        let mut server = launch(engine, &provider, &folder, &[]).start();
        declare(&mut server);
        ask(&mut server, "r1");
        let asked = return_result(&mut server);
        check_order(&asked.0.to_string(), &["argument", "inner"]);
        server.wait_done("r1");
        server.send(snapshot("n"));
        let shown = server.wait("the state", |frame| frame.is_snapshot() && frame.id() == "n");
        server.finish();
        let sent = [1, 2, 3].map(|at| provider.wait_request(at).body.to_string());
        check_order(&sent[0], &["schema", "tool", "mcp", "extra", "deep"]);
        check_order(&sent[1], &["schema", "tool", "mcp", "extra", "deep", "argument", "inner"]);
        check_order(&sent[1], &["result"]);
        check_order(&sent[2], &["answer"]);
        let to_server = fs::read_to_string(log(&mark)).expect("a log");
        check_order(&to_server, &["argument", "inner"]);

        let mut again = launch(engine, &provider, &folder, &["--resume"]).start();
        let state = wait_state(&mut again);
        assert_eq!(
            state.0["snapshot"]["entities"].to_string(),
            shown.0["snapshot"]["entities"].to_string()
        );
        declare(&mut again);
        ask(&mut again, "r2");
        again.wait_done("r2");
        again.finish();
        let resumed = provider.wait_request(provider.requests()).body.to_string();
        check_order(&resumed, &["schema", "tool", "mcp", "extra", "deep", "argument", "inner"]);
        check_order(&resumed, &["result", "answer"]);
        fs::remove_file(log(&mark)).ok();
        assert_gone(&mark);
    }
}

/// A folder with a script of the built-in engine whose answer is `answer`, and a schema of a file.
fn folder(answer: &str) -> Folder {
    let folder = Folder::new();
    let schema = r#"{"type":"object","properties":{"value_z":{},"value_a":{}}}"#;
    fs::write(folder.path("schema.json"), schema).expect("a file");
    let script = json!({ "text": answer }).to_string() + "\n";
    fs::write(folder.path("script"), script).expect("a file");
    folder
}

#[test]
fn values_found_in_an_answer_are_printed_as_they_were_written() {
    let folder =
        folder("```json\n{\"value_z\": {\"inner_z\": 1, \"inner_a\": 2}, \"value_a\": 3}\n```");
    let outputs: [&[&str]; 7] = [
        &[],
        &["--output", "json"],
        &["--output", "yaml"],
        &["--output", "jsonl"],
        &["--output", "objects"],
        &["--json-stream"],
        &["--rpc"],
    ];
    let words =
        ["exec", "hi", "--schema", "schema.json", "--engine", "echo", "--echo-script", "script"];
    for output in outputs {
        let ended = Once::start(duologue(&folder, &[&words, output].concat())).finish();
        assert_eq!(ended.status, 0, "{ended:?}");
        check_order(&ended.stdout, &["value", "inner"]);
    }
}

/// A command file in YAML: its schema is sent as it stands there.
#[test]
fn a_schema_in_a_command_file_is_sent_as_it_stands_there() {
    let folder = Folder::new();
    let file = "prompt: hi\nresponse-type: json\nschema:\n  type: object\n  properties:\n    \
                schema_z: { type: string }\n    schema_a: { type: string }\n";
    fs::write(folder.path("ask.yaml"), file).expect("a file");
    let provider = Provider::start(vec![says("{}")]);
    let profile = format!(
        "profiles:\n  p:\n    engine: openai\n    model: gpt-5-mini\n    base-url: {}\n    \
         settings: {{extra_body: {{extra_z: {{deep_z: 1, deep_a: 2}}, extra_a: 3}}}}\n",
        provider.base_url()
    );
    fs::write(folder.path("profiles.yaml"), profile).expect("a file");
    let words =
        ["run-command", "ask.yaml", "--profile-registries", "profiles.yaml", "--profile", "p"];
    let mut command = duologue(&folder, &words);
    command.env("DUOLOGUE_API_KEY", KEY);
    let ended = Once::start(command).finish();
    assert_eq!(ended.status, 0, "{ended:?}");
    check_order(&provider.wait_request(1).body.to_string(), &["schema", "extra", "deep"]);
}

/// What a template is given is a map of Go, which it walks in the order of its keys.
#[test]
fn a_template_walks_maps_in_the_order_of_their_keys() {
    let folder = Folder::new();
    let prompt = "{{ range $k, $v := .one }}{{ $k }}={{ $v }} {{ end }}{{ .one.c }} \
                  {{ range .rows }}{{ .b }}{{ . }} {{ toJson . }}{{ end }} {{ toJson .one }}";
    let file = format!(
        "flags:\n- {{name: one, type: objectFromFile}}\n\
         - {{name: rows, type: objectListFromFile}}\nprompt: '{prompt}'\n"
    );
    fs::write(folder.path("f.yaml"), file).expect("a file");
    fs::write(folder.path("one.json"), r#"{"c":1,"a":2,"b":{"z":1,"y":2}}"#).expect("a file");
    let rows = [
        ("rows.json", r#"[{"c":1,"b":2,"a":3},{"b":5,"a":6,"c":4}]"#),
        ("rows.yaml", "- {c: 1, b: 2, a: 3}\n- {b: 5, a: 6, c: 4}\n"),
        ("rows.jsonl", "{\"c\":1,\"b\":2,\"a\":3}\n{\"b\":5,\"a\":6,\"c\":4}\n"),
    ];
    for (name, text) in rows {
        fs::write(folder.path(name), text).expect("a file");
        let words =
            ["run-command", "f.yaml", "--one", "one.json", "--rows", name, "--print-prompt"];
        let ended = run(&folder, &words);
        let expected = "a=2 b=map[y:2 z:1] c=1 1 2map[a:3 b:2 c:1] {\"a\":3,\"b\":2,\"c\":1}\
                        5map[a:6 b:5 c:4] {\"a\":6,\"b\":5,\"c\":4} \
                        {\"a\":2,\"b\":{\"y\":2,\"z\":1},\"c\":1}";
        assert_eq!((ended.status, ended.stdout.trim_end()), (0, expected), "{name} {ended:?}");
    }
}

#[test]
fn a_database_keeps_the_order() {
    needs!(Postgres);
    let (database, folder) = (Database::new(), Folder::new());
    let script = json!({ "tools": [call("ask")] }).to_string() + "\n{\"text\":\"done\"}\n";
    fs::write(folder.path("script"), script).expect("a file");
    let script = folder.name("script");
    let mut first = database.stored(&["--echo-script", &script]).start();
    declare(&mut first);
    first.send(submit("r1", "hi"));
    return_result(&mut first);
    assert_eq!(first.wait_done("r1"), "ok");
    first.finish();
    let mut again = database.resumed(&["--echo-script", &script]).start();
    let state = wait_state(&mut again).0.to_string();
    check_order(&state, &["argument", "inner", "answer"]);
    again.finish();
}

#[test]
fn equal_requests_have_equal_bytes() {
    let bodies = [0, 1].map(|_| {
        let provider = Provider::start(vec![says("{}")]);
        let base_url = provider.base_url();
        let words = ["rpc", "--engine", "openai", "--model", "gpt-5-mini", "--base-url", &base_url];
        let mut server = Launch::new(&words).secret("DUOLOGUE_API_KEY", KEY).start();
        declare(&mut server);
        ask(&mut server, "r1");
        server.wait_done("r1");
        server.finish();
        provider.wait_request(1).body.to_string()
    });
    assert_eq!(bodies[0], bodies[1]);
}
