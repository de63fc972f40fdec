//! Tools in an editor: the client's MCP servers beside the configured ones, permissions, what is shown of a
//! call.

use crate::acp_client::{Client, command, is_update, said, updates};
use crate::attachments::PNG;
use crate::mcp_fixture::{ASK_WITH, FAULT_VARIABLE, words};
use crate::server::Folder;
use data_encoding::BASE64;
use serde_json::{Value, json};
use std::fs;
use std::path::Path;

/// A server as a client configures it.
fn server(name: &str, fault: &str) -> Value {
    let words = words();
    let env = json!([{ "name": FAULT_VARIABLE, "value": fault }]);
    json!({ "name": name, "command": words[0], "args": words[1..], "env": env })
}

/// The options of an engine that makes these calls in each turn, one provider call after the other.
fn script(folder: &Folder, calls: &[Value]) -> String {
    let line = |call: &Value| json!({ "text": "Let me see. ", "tools": [call] }).to_string();
    let lines: Vec<_> = calls.iter().map(line).chain([r#"{"text":"Done."}"#.to_owned()]).collect();
    fs::write(folder.path("script"), lines.join("\n")).expect("a file");
    folder.name("script")
}

fn call(name: &str, text: &str) -> Value {
    json!({ "name": name, "arguments": { "text": text } })
}

/// A client with a session that has the fixture, whose model calls `act`.
fn asked(folder: &Folder, text: &str, args: &[&str]) -> (Client, String) {
    let script = script(folder, &[call("act", text)]);
    let mut client = Client::start(folder, &[&["--echo-script", &script], args].concat());
    let session = client.session_with(&folder.path(""), json!([server("fixture", "none")]));
    (client, session)
}

#[test]
fn a_permission_says_what_is_called_and_with_what() {
    let folder = Folder::new();
    let (mut client, session) = asked(&folder, "folder", &[]);
    let id = client.prompt(&session, "go");
    let question = client.permission();
    let params = &question["params"];
    let call = &params["toolCall"];
    assert_eq!((&call["rawInput"], &call["name"]), (&json!({ "text": "folder" }), &json!("act")));
    assert!(call["title"].as_str().is_some_and(|it| it.contains("act")), "{call}");
    let shown = call["content"][0]["content"]["text"].as_str().expect("a text");
    assert!(shown.contains("fixture") && shown.contains("\"text\": \"folder\""), "{shown}");
    let kinds: Vec<_> =
        params["options"].as_array().expect("options").iter().map(|it| &it["kind"]).collect();
    assert_eq!(kinds, ["allow_once", "allow_always", "reject_once", "reject_always"]);
    client.choose(&question, "allow_once");
    assert_eq!(client.answer(id).expect("an answer")["stopReason"], "end_turn");
    let seen = client.finish().seen;
    let begun = updates(&seen, &session, "tool_call");
    assert_eq!(begun.len(), 1);
    assert_eq!(begun[0]["toolCallId"], call["toolCallId"]);
    let changes = updates(&seen, &session, "tool_call_update");
    let statuses: Vec<_> = changes.iter().filter_map(|it| it["status"].as_str()).collect();
    assert_eq!(statuses, ["in_progress", "completed"]);
    // The server runs in the folder of the session, and its result is shown once.
    let results: Vec<_> =
        changes.iter().filter_map(|it| it["content"][0]["content"]["text"].as_str()).collect();
    let here = folder.path("").canonicalize().expect("a path");
    assert_eq!(results, [here.to_string_lossy()]);
    assert_eq!(said(&seen, &session, "agent_message_chunk"), "Let me see. Done.");
}

/// What a tool shows is shown, also when the session is loaded, or shown again.
#[test]
fn an_image_in_a_result_is_shown() {
    let folder = Folder::new();
    let images = |seen: &[Value], session: &str| {
        let changes = updates(seen, session, "tool_call_update").into_iter();
        let contents = changes.filter_map(|it| it["content"].as_array().cloned()).flatten();
        let contents = contents.map(|it| it["content"].clone());
        contents.filter(|it| it["type"] == "image").collect::<Vec<_>>()
    };
    let image = json!({ "type": "image", "mimeType": "image/png", "data": BASE64.encode(PNG) });
    let (mut client, session) = asked(&folder, "image", &["--allow", "*"]);
    client.turn(&session, "go");
    assert_eq!(images(&client.finish().seen, &session), std::slice::from_ref(&image));
    let mut client = Client::start(&folder, &[]);
    for shown in 1..=2 {
        let params = json!({ "sessionId": session, "cwd": folder.path(""), "mcpServers": [] });
        client.call("session/load", params);
        assert_eq!(images(&client.seen, &session), vec![image.clone(); shown]);
    }
    client.finish();
}

/// How far a call is stands in the place of its result, until that comes.
#[test]
fn the_progress_of_a_call_is_shown() {
    let folder = Folder::new();
    let (mut client, session) = asked(&folder, "progress-for-ever", &["--allow", "*"]);
    let id = client.prompt(&session, "go");
    let reported = client.wait("a report", |it| {
        is_update(it, &session, "tool_call_update") && it["params"]["update"]["content"].is_array()
    });
    let update = &reported["params"]["update"];
    let text = update["content"][0]["content"]["text"].as_str().expect("a text");
    assert!(update["status"] == "in_progress" && text.contains(" of 10, at it"), "{update}");
    assert!(!text.contains('\u{1b}'), "{text:?}");
    client.cancel(&session);
    assert_eq!(client.answer(id).expect("an answer")["stopReason"], "cancelled");
    client.finish();
}

/// Also where the tool returns nothing.
#[test]
fn the_result_takes_the_place_of_the_progress() {
    let folder = Folder::new();
    let (mut client, session) = asked(&folder, "progress-silent", &["--allow", "*"]);
    client.turn(&session, "go");
    let seen = client.finish().seen;
    let last = updates(&seen, &session, "tool_call_update").pop().expect("a result");
    let text = &last["content"][0]["content"]["text"];
    assert_eq!(
        (&last["status"], text),
        (&json!("completed"), &json!("[the tool returned nothing]"))
    );
}

#[test]
fn each_answer_to_a_question_means_what_it_says() {
    let folder = Folder::new();
    let check = |option: &str, statuses: &[&str], questions: usize| {
        let (mut client, session) = asked(&folder, "folder", &[]);
        for text in ["one", "two"] {
            let id = client.prompt(&session, text);
            let is_end = |it: &Value| it["id"] == id && it.get("result").is_some();
            let next = client.wait("a question or an end", |it| {
                it["method"] == "session/request_permission" || is_end(it)
            });
            if !is_end(&next) {
                client.choose(&next, option);
            }
            assert_eq!(client.answer(id).expect("an answer")["stopReason"], "end_turn");
        }
        let seen = client.finish().seen;
        let asked = seen.iter().filter(|it| it["method"] == "session/request_permission").count();
        let changes = updates(&seen, &session, "tool_call_update");
        let found: Vec<_> = changes.iter().filter_map(|it| it["status"].as_str()).collect();
        assert_eq!((found.as_slice(), asked), (statuses, questions), "{option}");
    };
    let ran = ["in_progress", "completed", "in_progress", "completed"];
    check("allow_once", &ran, 2);
    check("allow_always", &ran, 1);
    check("reject_once", &["failed", "failed"], 2);
    check("reject_always", &["failed", "failed"], 1);
    check("made up", &["failed", "failed"], 2);
}

#[test]
fn a_question_that_is_cancelled_ends_the_turn() {
    let folder = Folder::new();
    let (mut client, session) = asked(&folder, "folder", &[]);
    let id = client.prompt(&session, "go");
    let question = client.permission();
    client.reply(&question, json!({ "outcome": { "outcome": "cancelled" } }));
    assert_eq!(client.answer(id).expect("an answer")["stopReason"], "cancelled");
    let (id, question) = (client.prompt(&session, "again"), client.permission());
    // The client cancels, and the question is taken back: an answer to it is too late.
    client.cancel(&session);
    assert_eq!(client.answer(id).expect("an answer")["stopReason"], "cancelled");
    let taken_back = |it: &&Value| it["method"] == "$/cancel_request";
    let taken_back: Vec<_> =
        client.seen.iter().filter(taken_back).map(|it| &it["params"]["requestId"]).collect();
    assert_eq!(taken_back, [&question["id"]]);
    client.choose(&question, "allow_once");
    client.finish();
}

#[test]
fn a_client_that_does_not_answer_meets_the_time_limit() {
    let folder = Folder::new();
    let (mut client, session) = asked(&folder, "folder", &["--ask-timeout-ms", "1"]);
    let id = client.prompt(&session, "go");
    client.permission();
    assert_eq!(client.answer(id).expect("an answer")["stopReason"], "end_turn");
    let seen = client.finish().seen;
    assert!(seen.iter().any(|it| it["method"] == "$/cancel_request"));
    let changes = updates(&seen, &session, "tool_call_update");
    assert!(changes.iter().any(|it| it["status"] == "failed"));
}

#[test]
fn a_client_that_can_not_ask_denies() {
    let folder = Folder::new();
    let (mut client, session) = asked(&folder, "folder", &[]);
    let id = client.prompt(&session, "go");
    let question = client.permission();
    let error = json!({ "code": -32601, "message": "Method not found" });
    client.send(&json!({ "jsonrpc": "2.0", "id": question["id"], "error": error }));
    assert_eq!(client.answer(id).expect("an answer")["stopReason"], "end_turn");
    let seen = client.finish().seen;
    assert!(updates(&seen, &session, "tool_call_update").iter().any(|it| it["status"] == "failed"));
}

#[test]
fn the_mode_decides_whether_the_person_is_asked() {
    let folder = Folder::new();
    let (mut client, session) = asked(&folder, "folder", &[]);
    for (mode, status) in [("auto", "completed"), ("deny", "failed")] {
        client.call("session/set_mode", json!({ "sessionId": session, "modeId": mode }));
        let from = client.seen.len();
        client.turn(&session, mode);
        let seen = &client.seen[from..];
        assert!(!seen.iter().any(|it| it["method"] == "session/request_permission"), "{mode}");
        let changes = updates(seen, &session, "tool_call_update");
        assert_eq!(changes.last().expect("a change")["status"], status, "{mode}");
    }
    client.finish();
    // A rule needs no mode.
    let (mut client, session) = asked(&folder, "folder", &["--allow", "act"]);
    client.turn(&session, "go");
    let seen = client.finish().seen;
    assert!(!seen.iter().any(|it| it["method"] == "session/request_permission"));
}

/// What the person has said about a tool for the session holds in each mode that does not forbid it.
#[test]
fn always_is_neither_more_nor_less_than_the_mode_allows() {
    let folder = Folder::new();
    let cases: [(&str, &[(&str, &str)]); 2] = [
        ("allow_always", &[("deny", "failed"), ("ask", "completed"), ("auto", "completed")]),
        ("reject_always", &[("auto", "failed"), ("deny", "failed"), ("ask", "failed")]),
    ];
    for (option, modes) in cases {
        let (mut client, session) = asked(&folder, "folder", &[]);
        let id = client.prompt(&session, "go");
        let question = client.permission();
        client.choose(&question, option);
        assert_eq!(client.answer(id).expect("an answer")["stopReason"], "end_turn");
        for (mode, status) in modes {
            check_in_mode(&mut client, &session, mode, status, option);
        }
        client.finish();
    }
    // What a rule of the command line allows is allowed in each mode.
    let (mut client, session) = asked(&folder, "folder", &["--allow", "act"]);
    check_in_mode(&mut client, &session, "deny", "completed", "--allow");
    client.finish();
}

/// A call in this mode ends with `status`, and nobody is asked.
fn check_in_mode(client: &mut Client, session: &str, mode: &str, status: &str, why: &str) {
    client.call("session/set_mode", json!({ "sessionId": session, "modeId": mode }));
    let from = client.seen.len();
    client.turn(session, mode);
    let seen = &client.seen[from..];
    let is_asked = seen.iter().any(|it| it["method"] == "session/request_permission");
    assert!(!is_asked, "{why} {mode}");
    let changes = updates(seen, session, "tool_call_update");
    let statuses: Vec<_> = changes.iter().filter_map(|it| it["status"].as_str()).collect();
    let expected = match status {
        "failed" => vec!["failed"],
        status => vec!["in_progress", status],
    };
    assert_eq!(statuses, expected, "{why} {mode}");
}

/// The folder and the servers are those of the request, also if the session is open.
#[test]
fn an_open_session_is_opened_anew_for_another_folder() {
    let folder = Folder::new();
    let other = folder.path("other");
    fs::create_dir(&other).expect("a folder");
    let (mut client, session) = asked(&folder, "folder", &["--approval", "auto"]);
    let open = |cwd: &Path| json!({ "sessionId": session, "cwd": cwd, "mcpServers": [server("fixture", "none")] });
    // Nothing is stored of it yet, so it stays as it is.
    client.call("session/resume", open(&other));
    for (place, turn) in [(folder.path(""), "one"), (other.clone(), "two")] {
        let from = client.seen.len();
        client.turn(&session, turn);
        let results = updates(&client.seen[from..], &session, "tool_call_update");
        let shown = &results.last().expect("a result")["content"][0]["content"]["text"];
        assert_eq!(*shown, json!(place.canonicalize().expect("a path")), "{turn}");
        let before = client.seen.len();
        client.call("session/load", open(&other));
        let prompts = said(&client.seen[before..], &session, "user_message_chunk");
        assert!(prompts.ends_with(turn), "{prompts}");
    }
    // It waits for a decision, and goes on.
    client.call("session/set_mode", json!({ "sessionId": session, "modeId": "ask" }));
    let id = client.prompt(&session, "three");
    let question = client.permission();
    client.call("session/resume", open(&folder.path("")));
    client.choose(&question, "reject_once");
    assert_eq!(client.answer(id).expect("an answer")["stopReason"], "end_turn");
    let thoughts = said(&client.seen, &session, "agent_thought_chunk");
    assert_eq!(thoughts.matches("the session is open already").count(), 2, "{thoughts}");
    let refused = client.refused("session/load", open(&folder.path("none")));
    assert!(refused.to_string().contains("can't be used: there is none"), "{refused}");
    client.finish();
}

/// By the mode or by its option.
#[test]
fn a_mode_decides_about_what_was_asked_before() {
    let folder = Folder::new();
    let (mut client, session) = asked(&folder, "folder", &[]);
    let of_mode = |mode: &str| json!({ "sessionId": session, "modeId": mode });
    let of_option = |mode: &str| json!({ "sessionId": session, "configId": "mode", "value": mode });
    for (method, mode, params, status) in [
        ("session/set_mode", "auto", of_mode("auto"), "completed"),
        ("session/set_config_option", "deny", of_option("deny"), "failed"),
    ] {
        client.call("session/set_mode", of_mode("ask"));
        let from = client.seen.len();
        let id = client.prompt(&session, mode);
        let question = client.permission();
        client.call(method, params);
        assert_eq!(client.answer(id).expect("an answer")["stopReason"], "end_turn", "{mode}");
        let seen = &client.seen[from..];
        let taken_back: Vec<_> =
            seen.iter().filter(|it| it["method"] == "$/cancel_request").collect();
        assert_eq!(taken_back.len(), 1, "{mode}");
        assert_eq!(taken_back[0]["params"]["requestId"], question["id"], "{mode}");
        let changes = updates(seen, &session, "tool_call_update");
        assert_eq!(changes.last().expect("a change")["status"], status, "{mode}");
    }
    client.finish();
}

#[test]
fn the_clients_servers_and_the_configured_ones_are_all_there_for_their_own_session() {
    let folder = Folder::new();
    let of_client = call("act", "folder");
    let words = words();
    let configured = json!({ "mcpServers": { "base": { "command": words[0], "args": words[1..],
        "env": { FAULT_VARIABLE: "pages" } } } });
    fs::write(folder.path("servers"), configured.to_string()).expect("a file");
    let script = script(&folder, &[of_client, call("first", "x")]);
    let servers = folder.name("servers");
    let args = ["--echo-script", &script, "--mcp-config", &servers, "--approval", "auto"];
    let mut client = Client::start(&folder, &args);
    let both = client.session_with(&folder.path(""), json!([server("mine", "none")]));
    let one = client.session(&folder.path(""));
    client.turn(&both, "go");
    client.turn(&one, "go");
    let seen = client.finish().seen;
    let statuses = |session: &str| {
        let changes = updates(&seen, session, "tool_call_update").into_iter();
        changes.filter_map(|it| it["status"].as_str().map(str::to_owned)).collect::<Vec<_>>()
    };
    assert_eq!(statuses(&both), ["in_progress", "completed", "in_progress", "completed"]);
    // The other session has no tool of that name.
    assert_eq!(statuses(&one), ["failed", "in_progress", "completed"]);
}

#[test]
fn a_dead_server_is_named_and_harms_no_other_session() {
    let folder = Folder::new();
    let mut command = command(&folder, &["--log-level", "off"]);
    command.env("DUOLOGUE_MCP_WAIT_MS", "60000");
    let mut client = Client::start_with(command, json!({ "session": { "notices": {} } }));
    let dead = client.session_with(&folder.path(""), json!([server("dead", "crash-at-start")]));
    let fine = client.session(&folder.path(""));
    assert_eq!(client.turn(&dead, "hi").0, "end_turn");
    assert_eq!(client.turn(&fine, "hi").0, "end_turn");
    let seen = client.finish().seen;
    let notices = updates(&seen, &dead, "notice");
    assert!(
        notices.iter().any(|it| it["title"].as_str().is_some_and(|it| it.contains("dead"))),
        "{notices:?}"
    );
    assert_eq!(updates(&seen, &fine, "notice"), Vec::<&Value>::new());
}

#[test]
fn calls_are_loaded_with_their_ids_and_results() {
    let folder = Folder::new();
    let (mut client, session) = asked(&folder, "wide", &["--approval", "auto"]);
    client.turn(&session, "go");
    client.turn(&session, "again");
    let live = client.finish().seen;
    let mut client = Client::start(&folder, &[]);
    let params = json!({ "sessionId": session, "cwd": folder.path(""), "mcpServers": [] });
    client.call("session/load", params);
    let of = |seen: &[Value]| {
        let calls = updates(seen, &session, "tool_call").into_iter();
        let calls: Vec<_> = calls
            .map(|it| (it["toolCallId"].clone(), it["name"].clone(), it["kind"].clone()))
            .collect();
        let results = updates(seen, &session, "tool_call_update").into_iter();
        let results: Vec<_> = results
            .filter(|it| it["content"].is_array())
            .map(|it| (it["toolCallId"].clone(), it["content"].clone(), it["status"].clone()))
            .collect();
        (calls, results)
    };
    let loaded = client.seen.clone();
    assert_eq!(of(&live), of(&loaded));
    let (calls, results) = of(&loaded);
    assert_eq!((calls.len(), results.len()), (2, 2));
    assert_ne!(calls[0].0, calls[1].0, "each call has an id of its own");
    // 200 KiB, of which the client is sent the beginning.
    assert!(results[0].1.to_string().len() < 40_000);
    client.finish();
}

#[test]
fn a_question_of_a_server_is_asked_where_the_client_can() {
    let folder = Folder::new();
    let script = script(&folder, &[call("act", "ask")]);
    let args = ["--echo-script", &script, "--approval", "auto"];
    let results = |client: Client, session: &str| {
        let seen = client.finish().seen;
        let changes = updates(&seen, session, "tool_call_update").into_iter();
        let texts = changes.filter_map(|it| it["content"][0]["content"]["text"].as_str());
        texts.map(str::to_owned).collect::<Vec<_>>()
    };
    let start = |capabilities: Value| {
        let mut client = Client::start_with(command(&folder, &args), capabilities);
        let session = client.session_with(&folder.path(""), json!([server("fixture", "none")]));
        (client, session)
    };
    let (mut client, session) = start(json!({ "elicitation": { "form": {} } }));
    for answer in [
        json!({ "action": "accept", "content": { "name": "Ann" } }),
        json!({ "action": "decline" }),
    ] {
        let id = client.prompt(&session, "go");
        let question = client.wait("a question", |it| it["method"] == "elicitation/create");
        assert_eq!(question["params"]["message"], "fixture: Your name?");
        assert_eq!(question["params"]["requestedSchema"]["properties"]["name"]["type"], "string");
        client.reply(&question, answer);
        assert_eq!(client.answer(id).expect("an answer")["stopReason"], "end_turn");
    }
    let id = client.prompt(&session, "go");
    client.wait("a question", |it| it["method"] == "elicitation/create");
    client.cancel(&session);
    assert_eq!(client.answer(id).expect("an answer")["stopReason"], "cancelled");
    let accepted = r#"{"action":"accept","content":{"name":"Ann"}}"#;
    assert_eq!(results(client, &session)[..2], [accepted, r#"{"action":"decline"}"#]);
    // A client that can't ask is not asked.
    let (mut client, session) = start(json!({}));
    client.turn(&session, "go");
    assert_eq!(results(client, &session), [r#"{"action":"decline"}"#]);
}

/// Servers write JSON Schema, as the official SDK for Python does, and editors know less of it.
#[test]
fn a_form_has_the_words_of_the_protocol_or_is_declined() {
    let field = |field: Value| json!({ "type": "object", "properties": { "note": field } });
    let nothing = json!({ "type": "null" });
    let text = json!({ "type": "string" });
    let forms = [
        (field(json!({ "anyOf": [text, nothing], "default": null })), Some(text.clone())),
        (field(json!({ "type": ["string", "null"] })), Some(text.clone())),
        (field(json!({ "type": "string", "format": "uuid" })), Some(text.clone())),
        (
            field(json!({ "type": "integer", "minimum": 0.5 })),
            Some(json!({ "type": "integer", "minimum": 1 })),
        ),
        (json!({ "properties": { "note": text } }), Some(text)),
        (field(json!({ "type": "object", "properties": {} })), None),
    ];
    let folder = Folder::new();
    for (schema, shown) in forms {
        let script = script(&folder, &[call("act", &format!("{ASK_WITH}{schema}"))]);
        let command = command(&folder, &["--echo-script", &script, "--approval", "auto"]);
        let capabilities = json!({ "elicitation": { "form": {} }, "session": { "notices": {} } });
        let mut client = Client::start_with(command, capabilities);
        let session = client.session_with(&folder.path(""), json!([server("fixture", "none")]));
        let id = client.prompt(&session, "go");
        let answer = match &shown {
            Some(shown) => {
                let question = client.wait("a form", |it| it["method"] == "elicitation/create");
                let params = &question["params"];
                assert_eq!(params["mode"], "form");
                assert_eq!(params["requestedSchema"]["properties"]["note"], *shown, "{schema}");
                let answer = json!({ "action": "accept", "content": { "note": 1 } });
                client.reply(&question, answer.clone());
                answer
            }
            None => json!({ "action": "decline" }),
        };
        assert_eq!(client.answer(id).expect("an answer")["stopReason"], "end_turn");
        let seen = client.finish().seen;
        let results = updates(&seen, &session, "tool_call_update").into_iter();
        let results = results.filter_map(|it| it["content"][0]["content"]["text"].as_str());
        assert_eq!(results.collect::<Vec<_>>(), [answer.to_string()], "{schema}");
        let notices = updates(&seen, &session, "notice").into_iter();
        let titles = notices.filter_map(|it| it["title"].as_str());
        let named = titles.filter(|it| it.contains("fixture") && it.contains("\"note\""));
        assert_eq!(named.count(), usize::from(shown.is_none()), "{schema}");
    }
}

#[test]
fn a_question_that_its_server_cancels_is_taken_back() {
    let folder = Folder::new();
    let script = script(&folder, &[call("act", "ask twice")]);
    let command = command(&folder, &["--echo-script", &script, "--approval", "auto"]);
    let mut client = Client::start_with(command, json!({ "elicitation": { "form": {} } }));
    let session = client.session_with(&folder.path(""), json!([server("fixture", "none")]));
    let id = client.prompt(&session, "go");
    let is_question = |it: &Value| it["method"] == "elicitation/create";
    let questions = [client.wait("a question", is_question), client.wait("another", is_question)];
    client.reply(&questions[1], json!({ "action": "decline" }));
    let taken_back = client.wait("its end", |it| it["method"] == "$/cancel_request");
    assert_eq!(taken_back["params"]["requestId"], questions[0]["id"]);
    assert_eq!(client.answer(id).expect("an answer")["stopReason"], "end_turn");
    client.finish();
}

#[test]
fn an_address_of_a_server_is_opened_and_its_end_is_told_once() {
    let folder = Folder::new();
    let script = script(&folder, &[call("act", "open")]);
    let command = command(&folder, &["--echo-script", &script, "--approval", "auto"]);
    let mut client = Client::start_with(command, json!({ "elicitation": { "url": {} } }));
    let session = client.session_with(&folder.path(""), json!([server("fixture", "none")]));
    let id = client.prompt(&session, "go");
    let question = client.wait("a question", |it| it["method"] == "elicitation/create");
    assert_eq!(question["params"]["message"], "fixture: Sign in");
    assert_eq!(question["params"]["url"], "http://127.0.0.1/sign-in");
    client.reply(&question, json!({ "action": "accept" }));
    assert_eq!(client.answer(id).expect("an answer")["stopReason"], "end_turn");
    let seen = client.finish().seen;
    // Not of one that the client was not asked to open, and not twice.
    let completed = seen.iter().filter(|it| it["method"] == "elicitation/complete");
    let completed: Vec<_> = completed.map(|it| &it["params"]).collect();
    assert_eq!(completed, [&json!({ "elicitationId": "e-1" })]);
}

#[test]
fn too_many_rounds_of_tools_are_a_reason_to_stop() {
    let folder = Folder::new();
    let calls = [call("act", "folder"), call("act", "folder"), call("act", "folder")];
    let script = script(&folder, &calls);
    let args = ["--echo-script", &script, "--approval", "auto", "--max-tool-rounds", "1"];
    let mut client = Client::start(&folder, &args);
    let session = client.session_with(&folder.path(""), json!([server("fixture", "none")]));
    assert_eq!(client.turn(&session, "go").0, "max_turn_requests");
    client.finish();
}

#[test]
fn command_files_are_commands() {
    let folder = Folder::new();
    let commands = folder.path("config/duologue/commands");
    fs::create_dir_all(&commands).expect("a folder");
    let file = "name: sum\nshort: \"Sums \\e[2J up.\"\nflags:\n\
                \x20 - {name: words, type: int, default: 5}\n\
                arguments:\n  - {name: file, type: stringFromFile}\n\
                prompt: 'In {{ .words }} words: {{ .file }}'\n";
    fs::write(commands.join("sum.yaml"), file).expect("a file");
    fs::write(folder.path("a b.txt"), "the text").expect("a file");
    let mut client = Client::start(&folder, &[]);
    let session = client.session(&folder.path(""));
    let update = client.update(&session, "available_commands_update");
    let description = "Sums \\x1b[2J up.";
    let expected =
        json!({ "name": "sum", "description": description, "input": { "hint": "--words FILE" } });
    assert_eq!(update["availableCommands"][0], expected);
    assert_eq!(update["availableCommands"][1]["name"], "compact");
    // A path is relative to the folder of the session.
    let (_, text) = client.turn(&session, "/sum --words 3 'a b.txt'");
    assert_eq!(text, "Turn 1. You said: In 3 words: the text");
    let text = json!([{ "type": "text", "text": "/sum --made-up" }]);
    let refused = client.refused("session/prompt", json!({ "sessionId": session, "prompt": text }));
    assert!(refused["message"].as_str().is_some_and(|it| it.contains("--words FILE")), "{refused}");
    // The editor may send the text of a file along; the command reads it itself.
    let uri = format!("file://{}/a%20b.txt", folder.name(""));
    let file = json!({ "type": "resource", "resource": { "uri": uri, "text": "not saved" } });
    let prompt = json!([{ "type": "text", "text": "/sum --words 4 " }, file]);
    let from = client.seen.len();
    client.call("session/prompt", json!({ "sessionId": session, "prompt": prompt }));
    let text = said(&client.seen[from..], &session, "agent_message_chunk");
    assert!(text.starts_with("Turn 2. You said: In 4 words: the text\n"), "{text}");
    // What is no command is a prompt.
    assert!(client.turn(&session, "/other thing").1.contains("You said: /other thing"));
    client.finish();
}

/// Editors show no log.
#[test]
fn what_a_project_has_and_is_not_used_is_said() {
    let folder = Folder::new();
    for (path, text) in [
        ("config/duologue/commands/broken.yaml", "prompt: [\n"),
        ("config/duologue/commands/odd.yaml", "prompt: 'Odd {{ .nobody }}'\n"),
        ("config/duologue/profiles.yaml", "profiles:\n  mine: {engine: echo}\n"),
        ("p/.duologue/commands/review.yaml", "prompt: Review it.\n"),
        ("p/.duologue/profiles.yaml", "profiles:\n  mine: {allow: ['*']}\n"),
    ] {
        let path = folder.path(path);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, text).expect("a file");
    }
    let command = command(&folder, &["--profile", "mine"]);
    let mut client = Client::start_with(command, json!({ "session": { "notices": {} } }));
    let session = client.session(&folder.path("p"));
    client.turn(&session, "hi");
    client.turn(&session, "/odd");
    let ended = client.finish();
    let notices = updates(&ended.seen, &session, "notice").into_iter();
    let notices: Vec<_> = notices.filter_map(|it| it["title"].as_str()).collect();
    let is_missing = |text: &&str| text.contains("the prompt contains <no value>");
    assert!(notices.iter().any(is_missing), "{notices:?}");
    let review = folder.path("p/.duologue/commands/review.yaml");
    for parts in [
        ["/broken can't be used: ", "broken.yaml"],
        ["/review can't be used: ", &format!("duologue profiles trust {}", review.display())],
        ["`allow` is left out", "p/.duologue/profiles.yaml"],
    ] {
        let has_all = |text: &&str| parts.iter().all(|part| text.contains(part));
        assert!(notices.iter().any(has_all), "{parts:?}: {notices:?}");
        assert!(ended.stderr.lines().any(|line| has_all(&line)), "{parts:?}: {}", ended.stderr);
    }
}

#[test]
fn a_command_has_the_conversation_compacted() {
    let folder = Folder::new();
    let mut client = Client::start(&folder, &[]);
    let session = client.session(&folder.path(""));
    assert_eq!(client.turn(&session, "one").1, "Turn 1. You said: one");
    let (reason, text) = client.turn(&session, "/compact keep the names");
    assert_eq!((reason.as_str(), text.as_str()), ("end_turn", ""));
    let text = json!([{ "type": "text", "text": "/compact" }]);
    let refused = client.refused("session/prompt", json!({ "sessionId": session, "prompt": text }));
    assert!(refused.to_string().contains("nothing that a summary could stand for"), "{refused}");
    client.finish();
}
