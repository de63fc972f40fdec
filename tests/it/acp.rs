//! `duologue acp` as an editor uses it: sessions, prompts and their answers. Each line that is written is
//! checked against the protocol's schema.

use crate::acp_client::{Client, bare_command, command, is_update, said, updates};
use crate::attachments::PNG;
use crate::provider::{Provider, Step, says};
use crate::server::Folder;
use data_encoding::BASE64;
use serde_json::{Value, json};
use std::fs;
use std::process::Command;

/// `duologue acp` with a scripted provider.
fn with_provider(folder: &Folder, provider: &Provider, args: &[&str]) -> Command {
    let mut command = bare_command(folder, args);
    command.args(["--engine", "openai", "--model", "scripted", "--retries", "0"]);
    command.args(["--base-url", &provider.base_url()]).env("DUOLOGUE_API_KEY", "sk-test");
    command
}

/// Where in `seen` a message is.
fn place(seen: &[Value], wanted: impl Fn(&Value) -> bool) -> usize {
    seen.iter().position(wanted).expect("the message")
}

#[test]
fn a_prompt_is_answered_in_chunks_of_one_message() {
    let folder = Folder::new();
    let mut client = Client::start(&folder, &[]);
    let session = client.session(&folder.path(""));
    let (reason, text) = client.turn(&session, "hello there");
    assert_eq!((reason.as_str(), text.as_str()), ("end_turn", "Turn 1. You said: hello there"));
    let (_, text) = client.turn(&session, "and now?");
    assert!(text.starts_with("Turn 2. You said: and now?"), "{text}");
    let seen = client.finish().seen;
    // Clients that are sent an update before the session show nothing of it.
    let answered = place(&seen, |it| it["result"]["sessionId"] == session.as_str());
    let first = place(&seen, |it| it["params"]["sessionId"] == session.as_str());
    assert!(answered < first, "{seen:?}");
    let chunks = updates(&seen, &session, "agent_message_chunk");
    let mut ids: Vec<_> =
        chunks.iter().map(|it| it["messageId"].as_str().expect("an id")).collect();
    ids.dedup();
    assert_eq!(ids.len(), 2, "{ids:?}");
    // The client shows the prompt itself.
    assert_eq!(updates(&seen, &session, "user_message_chunk"), Vec::<&Value>::new());
    let titles = updates(&seen, &session, "session_info_update");
    assert_eq!(titles.iter().map(|it| &it["title"]).collect::<Vec<_>>(), ["hello there"]);
}

#[test]
fn initialize_waits_for_nothing_and_session_new_for_no_server() {
    let folder = Folder::new();
    // What is wrong with the configuration is found when it is needed.
    let mut client = Client::spawn(command(&folder, &["--profile", "missing"]));
    let answered = client.initialize(json!({}));
    assert_eq!(answered["protocolVersion"], 1);
    assert_eq!(answered["agentInfo"]["name"], "duologue");
    let capabilities = &answered["agentCapabilities"];
    assert_eq!(capabilities["loadSession"], true);
    assert_eq!(
        capabilities["promptCapabilities"],
        json!({ "image": true, "audio": false, "embeddedContext": true })
    );
    assert_eq!(answered["authMethods"], json!([]));
    let session = client.session(&folder.path(""));
    let id = client.prompt(&session, "hi");
    let refused = client.answer(id).expect_err("there is no such profile");
    assert!(
        refused["data"]["details"].as_str().is_some_and(|it| it.contains("missing")),
        "{refused}"
    );
    client.finish();

    // A server that never comes.
    let mut client = Client::start(&folder, &["--mcp-wait-ms", "1"]);
    let server = json!([{ "name": "slow", "command": "sleep", "args": ["600"], "env": [] }]);
    let session = client.session_with(&folder.path(""), server);
    assert_eq!(client.turn(&session, "hi").0, "end_turn");
    client.finish();
}

#[test]
fn sessions_can_be_opened_all_at_once() {
    let folder = Folder::new();
    let mut client = Client::start(&folder, &[]);
    // Without servers, as some clients leave them out.
    let lines: Vec<_> =
        (0..8).map(|_| client.line("session/new", json!({ "cwd": folder.path("") }))).collect();
    let text: String = lines.iter().map(|(_, line)| line.as_str()).collect();
    client.send_raw(text.as_bytes());
    let ids =
        lines.iter().map(|(id, _)| client.answer(*id).expect("a session")["sessionId"].to_string());
    let mut ids: Vec<_> = ids.collect();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), 8);
    client.finish();
}

#[test]
fn options_of_one_conversation_are_refused() {
    let folder = Folder::new();
    for option in [
        &["--session", "s"][..],
        &["--session-id", "s"],
        &["--continue"],
        &["--history", "h"],
        // Those about frames, which would change nothing.
        &["--on-busy", "queue"],
        &["--extensions", "usage"],
        &["--events", "*"],
        &["--patch-mode", "snapshot"],
        &["--patch-fields", "lean"],
        &["--final-snapshot", "none"],
        &["--backend-events"],
    ] {
        let output = command(&folder, option).output().expect("it runs");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{stderr}");
        assert!(stderr.contains(option[0]) && stderr.contains("acp"), "{stderr}");
        // What is refused is not offered.
        let help = command(&folder, &["--help"]).output().expect("it runs");
        let help = String::from_utf8_lossy(&help.stdout).into_owned();
        let is_offered = |word: &str| word.trim_matches(',') == option[0];
        assert!(!help.split_whitespace().any(is_offered), "{option:?}: {help}");
        assert!(help.contains("--profile <NAME>"), "{help}");
    }
}

/// What a script pipes in is answered, and then the process ends.
#[test]
fn the_end_of_input_waits_for_answers() {
    let folder = Folder::new();
    let mut client = Client::start(&folder, &[]);
    let session = client.session(&folder.path(""));
    client.turn(&session, "hi");
    let listing = client.request("session/list", json!({}));
    let ended = client.finish();
    let listed = ended.seen.iter().find(|it| it["id"] == listing).expect("an answer");
    assert_eq!(listed["result"]["sessions"][0]["sessionId"], session.as_str());
}

#[test]
fn without_a_store_nothing_of_it_is_announced() {
    let folder = Folder::new();
    let mut client = Client::spawn(command(&folder, &["--no-store"]));
    let capabilities = client.initialize(json!({}))["agentCapabilities"].clone();
    assert_eq!(capabilities["loadSession"], false);
    assert_eq!(capabilities["sessionCapabilities"], json!({ "close": {} }));
    let session = client.session(&folder.path(""));
    assert_eq!(client.turn(&session, "hi").0, "end_turn");
    assert_eq!(client.refused("session/list", json!({}))["code"], -32601);
    client.finish();
    assert!(!folder.path("data").exists());
}

#[test]
fn reasoning_is_thought() {
    let folder = Folder::new();
    let mut client = Client::start(&folder, &["--echo-reasoning"]);
    let session = client.session(&folder.path(""));
    client.turn(&session, "hm");
    let seen = client.finish().seen;
    assert_ne!(said(&seen, &session, "agent_thought_chunk"), "");
    let ids =
        |kind| updates(&seen, &session, kind).into_iter().map(|it| it["messageId"].to_string());
    let thought: Vec<_> = ids("agent_thought_chunk").collect();
    assert!(ids("agent_message_chunk").all(|id| !thought.contains(&id)), "{thought:?}");
}

#[test]
fn what_is_wrong_is_answered_and_the_session_goes_on() {
    let folder = Folder::new();
    let mut client = Client::start(&folder, &["--max-request-bytes", "20000"]);
    let session = client.session(&folder.path(""));
    let blank = json!({ "sessionId": session, "prompt": [{ "type": "text", "text": " \n" }] });
    assert_eq!(client.refused("session/prompt", blank)["code"], -32602);
    let nobody = json!({ "sessionId": "nobody", "prompt": [{ "type": "text", "text": "x" }] });
    let refused = client.refused("session/prompt", nobody);
    assert_eq!(refused["code"], -32002);
    assert!(refused["message"].as_str().is_some_and(|it| it.contains("nobody")), "{refused}");
    assert_eq!(client.refused("session/fork", json!({}))["code"], -32601);
    assert_eq!(client.refused("session/new", json!({ "mcpServers": [] }))["code"], -32602);
    assert_eq!(
        client.refused("session/new", json!({ "cwd": "src", "mcpServers": [] }))["code"],
        -32602
    );
    let missing = json!({ "cwd": folder.path("none"), "mcpServers": [] });
    assert_eq!(client.refused("session/new", missing)["code"], -32603);
    let (id, line) = client
        .line("session/prompt", json!({ "sessionId": session, "prompt": "x".repeat(30_000) }));
    client.send_raw(line.as_bytes());
    assert_eq!(client.answer(id).expect_err("too long")["code"], -32600);
    // As the JSON encoder of Neovim writes it.
    let (id, _) = client.line("session/prompt", Value::Null);
    let params = json!({ "prompt": ["x".repeat(200_000), {}], "sessionId": session });
    let members =
        format!(r#""params":{params},"method":"session/prompt","id":{id},"jsonrpc":"2.0""#);
    client.send_raw(format!("{{{members}}}\n").as_bytes());
    assert_eq!(client.answer(id).expect_err("too long")["code"], -32600);
    for (line, code) in [("no JSON\n", -32700), ("\n  \r\n[{}]\n", -32600), ("{}\n", -32600)] {
        client.send_raw(line.as_bytes());
        let error = client.wait("an error", |it| it.get("error").is_some());
        assert_eq!((&error["id"], &error["error"]["code"]), (&Value::Null, &json!(code)), "{line}");
    }
    // Nobody waits for an answer to these.
    client.notify("made/up", json!({}));
    client.notify("session/cancel", json!({ "sessionId": "nobody" }));
    client.send(&json!({ "jsonrpc": "2.0", "id": 77, "result": {} }));
    assert_eq!(client.turn(&session, "still here?").0, "end_turn");
    client.finish();
}

#[test]
fn prompts_wait_for_their_turn_and_each_has_one_answer() {
    let folder = Folder::new();
    let mut client = Client::start(&folder, &["--echo-delay-ms", "1"]);
    let session = client.session(&folder.path(""));
    let ids: Vec<_> = (1..=5).map(|n| client.prompt(&session, &format!("number {n}"))).collect();
    for id in &ids {
        assert_eq!(client.answer(*id).expect("an answer")["stopReason"], "end_turn");
    }
    let seen = client.finish().seen;
    let ended: Vec<_> = seen.iter().filter(|it| it["result"].get("stopReason").is_some()).collect();
    assert_eq!(ended.iter().filter_map(|it| it["id"].as_i64()).collect::<Vec<_>>(), ids);
    let text = said(&seen, &session, "agent_message_chunk");
    assert!((1..=5).all(|n| text.contains(&format!("Turn {n}. You said: number {n}"))), "{text}");
}

#[test]
fn a_cancel_stops_what_runs_and_withdraws_what_waits() {
    let folder = Folder::new();
    let mut client = Client::start(&folder, &["--echo-delay-ms", "60000"]);
    let session = client.session(&folder.path(""));
    // With one write, so that nothing has begun.
    let text =
        |text: &str| json!({ "sessionId": session, "prompt": [{ "type": "text", "text": text }] });
    let (first, one) = client.line("session/prompt", text("one"));
    let (second, two) = client.line("session/prompt", text("two"));
    let cancel =
        json!({ "jsonrpc": "2.0", "method": "session/cancel", "params": { "sessionId": session } });
    client.send_raw(format!("{one}{two}{cancel}\n").as_bytes());
    for id in [first, second] {
        assert_eq!(client.answer(id).expect("an answer")["stopReason"], "cancelled");
    }
    // A cancel that comes too late is about nothing, and the next prompt has its own turn.
    client.cancel(&session);
    let third = client.prompt(&session, "three");
    client.cancel(&session);
    assert_eq!(client.answer(third).expect("an answer")["stopReason"], "cancelled");
    client.finish();
}

#[test]
fn a_cancel_acts_while_the_provider_is_silent_and_in_the_middle_of_an_answer() {
    let folder = Folder::new();
    let begun = vec![Step::Text("so far".to_owned()), Step::Stall];
    let provider = Provider::start(vec![vec![Step::Stall], begun, says("well")]);
    let mut client = Client::start_with(with_provider(&folder, &provider, &[]), json!({}));
    let session = client.session(&folder.path(""));
    let silent = client.prompt(&session, "one");
    provider.wait_request(1);
    client.cancel(&session);
    assert_eq!(client.answer(silent).expect("an answer")["stopReason"], "cancelled");
    let streaming = client.prompt(&session, "two");
    client.update(&session, "agent_message_chunk");
    client.cancel(&session);
    assert_eq!(client.answer(streaming).expect("an answer")["stopReason"], "cancelled");
    let (reason, text) = client.turn(&session, "three");
    assert_eq!((reason.as_str(), text.as_str()), ("end_turn", "well"));
    client.finish();
}

#[test]
fn a_request_of_its_own_cancels_one_prompt() {
    let folder = Folder::new();
    let mut client = Client::start(&folder, &["--echo-delay-ms", "60000"]);
    let session = client.session(&folder.path(""));
    let (first, second) = (client.prompt(&session, "one"), client.prompt(&session, "two"));
    let third = client.prompt(&session, "three");
    for id in [second, first] {
        client.notify("$/cancel_request", json!({ "requestId": id }));
        assert_eq!(client.answer(id).expect("an answer")["stopReason"], "cancelled");
    }
    client.cancel(&session);
    assert_eq!(client.answer(third).expect("an answer")["stopReason"], "cancelled");
    client.finish();
}

#[test]
fn sessions_are_answered_at_the_same_time() {
    let folder = Folder::new();
    let mut client = Client::start(&folder, &["--echo-delay-ms", "2"]);
    let sessions: Vec<_> = (0..100).map(|_| client.session(&folder.path(""))).collect();
    let words = "word ".repeat(40);
    let ids: Vec<_> = sessions.iter().map(|session| client.prompt(session, &words)).collect();
    for id in ids {
        assert_eq!(client.answer(id).expect("an answer")["stopReason"], "end_turn");
    }
    let seen = client.finish().seen;
    // Each has begun before the first has ended.
    let first_end = place(&seen, |it| it["result"].get("stopReason").is_some());
    for session in &sessions {
        let begun = place(&seen, |it| is_update(it, session, "agent_message_chunk"));
        assert!(begun < first_end, "{session}");
        let text = said(&seen, session, "agent_message_chunk");
        assert!(
            text.starts_with("Turn 1. You said: word") && text.trim_end().ends_with("word"),
            "{text}"
        );
    }
}

#[test]
fn files_images_and_links_go_with_the_prompt() {
    let folder = Folder::new();
    fs::write(folder.path("notes.txt"), "remember the milk").expect("a file");
    fs::write(folder.path("__init__.py"), "").expect("a file");
    // A long file, which has no blocks on the disk.
    let log = fs::File::create(folder.path("long.log"));
    log.and_then(|log| log.set_len(20 * 1024 * 1024 + 1)).expect("a file");
    let provider = Provider::start(vec![says("seen")]);
    let mut client = Client::start_with(with_provider(&folder, &provider, &[]), json!({}));
    let session = client.session(&folder.path(""));
    let link = |name: &str| format!("file://{}", folder.name(name));
    let prompt = json!([
        { "type": "text", "text": "Look at " },
        { "type": "resource_link", "uri": link("notes.txt"), "name": "notes.txt" },
        { "type": "resource_link", "uri": link(""), "name": "all" },
        { "type": "resource_link", "uri": link("__init__.py"), "name": "__init__.py" },
        { "type": "resource_link", "uri": link("long.log"), "name": "long.log" },
        { "type": "resource", "resource": { "uri": "file:///x/a.rs", "text": "fn a() {}" } },
        { "type": "image", "data": BASE64.encode(PNG), "mimeType": "image/png" },
    ]);
    let answer = client.call("session/prompt", json!({ "sessionId": session, "prompt": prompt }));
    assert_eq!(answer["stopReason"], "end_turn");
    let sent = provider.wait_request(1).body["messages"].to_string();
    for part in [
        "remember the milk",
        "fn a() {}",
        "data:image/png;base64,",
        "Look at [@notes.txt](file://",
        // Nothing is in it, or too much, so it is only named.
        "[@__init__.py](file://",
        "[@long.log](file://",
    ] {
        assert!(sent.contains(part), "{part}: {sent}");
    }
    let audio = json!([{ "type": "audio", "data": "AAEC", "mimeType": "audio/wav" }]);
    let refused =
        client.refused("session/prompt", json!({ "sessionId": session, "prompt": audio }));
    assert_eq!(refused["code"], -32602);
    let seen = client.finish().seen;
    let titles = updates(&seen, &session, "session_info_update");
    let titles: Vec<_> = titles.iter().map(|it| &it["title"]).collect();
    assert_eq!(titles, ["Look at @notes.txt@all@__init__.py@long.log@a.rs"]);
    let told = said(&seen, &session, "agent_thought_chunk");
    assert!(told.contains("long.log is only named to the model"), "{told}");
}

#[test]
fn an_unsaved_buffer_is_read_where_the_client_has_it() {
    let folder = Folder::new();
    fs::write(folder.path("a.rs"), "saved").expect("a file");
    fs::write(folder.path("b.rs"), "only saved").expect("a file");
    let provider = Provider::start(vec![says("seen")]);
    let capabilities = json!({ "fs": { "readTextFile": true, "writeTextFile": true } });
    let mut client = Client::start_with(with_provider(&folder, &provider, &[]), capabilities);
    let session = client.session(&folder.path(""));
    let link = |name: &str| json!({ "type": "resource_link", "uri": format!("file://{}", folder.name(name)), "name": name });
    let prompt = json!([{ "type": "text", "text": "Look" }, link("a.rs"), link("b.rs")]);
    let id = client.request("session/prompt", json!({ "sessionId": session, "prompt": prompt }));
    for _ in 0..2 {
        let asked = client.wait("a request", |it| it["method"] == "fs/read_text_file");
        if asked["params"]["path"] == folder.name("a.rs").as_str() {
            client.reply(&asked, json!({ "content": "not saved yet" }));
        } else {
            let error = json!({ "code": -32002, "message": "not open" });
            client.send(&json!({ "jsonrpc": "2.0", "id": asked["id"], "error": error }));
        }
    }
    assert_eq!(client.answer(id).expect("an answer")["stopReason"], "end_turn");
    let sent = provider.wait_request(1).body["messages"].to_string();
    assert!(sent.contains("not saved yet") && sent.contains("only saved"), "{sent}");
    client.finish();
}

/// A response that can't be read is not waited for.
#[test]
fn a_buffer_that_can_not_be_read_is_told_and_the_saved_file_is_sent() {
    let folder = Folder::new();
    fs::write(folder.path("a.rs"), "the saved text").expect("a file");
    for (content, why) in [("\\ud83d".to_owned(), "no JSON"), ("x".repeat(5000), "4000 bytes")] {
        let provider = Provider::start(vec![says("seen")]);
        let capabilities = json!({ "fs": { "readTextFile": true } });
        let command = with_provider(&folder, &provider, &["--max-request-bytes", "4000"]);
        let mut client = Client::start_with(command, capabilities);
        let session = client.session(&folder.path(""));
        let link = json!({ "type": "resource_link", "uri": format!("file://{}", folder.name("a.rs")), "name": "a.rs" });
        let params = json!({ "sessionId": session, "prompt": [link] });
        let id = client.request("session/prompt", params);
        let asked = client.wait("a request", |it| it["method"] == "fs/read_text_file");
        let (own, tail) = (&asked["id"], "\"}}\n");
        let head = format!("{{\"jsonrpc\":\"2.0\",\"id\":{own},\"result\":{{\"content\":\"");
        client.send_raw(format!("{head}{content}{tail}").as_bytes());
        assert_eq!(client.answer(id).expect("an answer")["stopReason"], "end_turn");
        let sent = provider.wait_request(1).body["messages"].to_string();
        assert!(sent.contains("the saved text"), "{sent}");
        let seen = client.finish().seen;
        let told = said(&seen, &session, "agent_thought_chunk");
        assert!(told.contains("a.rs is not sent") && told.contains(why), "{told}");
        // Neither a response to it nor the end of a wait.
        let responses = seen.iter().filter(|it| it["id"] == *own && it.get("method").is_none());
        assert_eq!(responses.count(), 0, "{seen:?}");
        assert!(seen.iter().all(|it| it["method"] != "$/cancel_request"), "{seen:?}");
    }
}

#[test]
fn a_call_that_fails_says_why_and_the_session_stays() {
    let folder = Folder::new();
    let wrong =
        |status| vec![Step::Status(status, Vec::new(), r#"{"error":{"message":"no"}}"#.to_owned())];
    let provider = Provider::start(vec![wrong(500), wrong(401), says("now")]);
    let mut client = Client::start_with(with_provider(&folder, &provider, &[]), json!({}));
    let session = client.session(&folder.path(""));
    for text in ["one", "two"] {
        let id = client.prompt(&session, text);
        let error = client.answer(id).expect_err("it failed");
        assert_eq!(error["code"], -32603, "{error}");
        assert_eq!(error["data"], json!({ "details": error["message"] }));
        assert!(!error.to_string().contains("sk-test"), "{error}");
    }
    assert_eq!(client.turn(&session, "three"), ("end_turn".to_owned(), "now".to_owned()));
    client.finish();
}

#[test]
fn a_missing_key_is_named_and_nothing_else_is() {
    let folder = Folder::new();
    let mut client =
        Client::start_with(bare_command(&folder, &["--engine", "anthropic"]), json!({}));
    let session = client.session(&folder.path(""));
    let id = client.prompt(&session, "hi");
    let error = client.answer(id).expect_err("no key");
    // Zed shows the details of this code, and nothing of the one that asks for a login.
    assert_eq!(error["code"], -32603, "{error}");
    let details = error["data"]["details"].as_str().expect("details");
    assert!(details.contains("ANTHROPIC_API_KEY"), "{error}");
    client.finish();
}

#[test]
fn an_answer_that_is_cut_off_says_so() {
    let folder = Folder::new();
    let cut = vec![Step::Text("half".to_owned()), Step::Finish("length", Some((3, 2))), Step::Done];
    let provider = Provider::start(vec![cut, says("whole")]);
    let args = ["--context-size", "1000"];
    let mut client = Client::start_with(with_provider(&folder, &provider, &args), json!({}));
    let session = client.session(&folder.path(""));
    assert_eq!(client.turn(&session, "one").0, "max_tokens");
    assert_eq!(client.turn(&session, "two").0, "end_turn");
    let seen = client.finish().seen;
    let usage = updates(&seen, &session, "usage_update");
    assert_eq!(
        usage.iter().map(|it| (&it["used"], &it["size"])).collect::<Vec<_>>(),
        [(&json!(5), &json!(1000)); 2]
    );
}

/// The list of prices says how much the model can be sent, and what all calls have cost, also the one of a summary.
#[test]
fn the_part_of_the_context_and_the_cost_come_by_the_list_of_prices() {
    let folder = Folder::new();
    let price = json!({ "input": 1000, "output": 1000, "context-window": 1000 });
    let prices = json!({ "currency": "EUR", "models": { "scripted": price } });
    fs::write(folder.path("prices"), prices.to_string()).expect("a file");
    let counted = |text: &str| {
        vec![Step::Text(text.to_owned()), Step::Finish("stop", Some((3, 2))), Step::Done]
    };
    let provider = Provider::start(vec![counted("one"), counted("SUMMARY")]);
    let args = ["--prices", &folder.name("prices")];
    let mut client = Client::start_with(with_provider(&folder, &provider, &args), json!({}));
    let session = client.session(&folder.path(""));
    assert_eq!(client.turn(&session, "hi").0, "end_turn");
    assert_eq!(client.turn(&session, "/compact").0, "end_turn");
    let seen = client.finish().seen;
    let usage = updates(&seen, &session, "usage_update").into_iter();
    let shown: Vec<_> = usage.map(|it| (it["size"].clone(), it["cost"].clone())).collect();
    let cost = |amount: f64| (json!(1000), json!({ "amount": amount, "currency": "EUR" }));
    // After the answer, and once the summary has taken the place of the turn.
    assert_eq!(shown, [cost(0.005), cost(0.01)]);
}

/// The call that makes a summary has other tokens than the conversation, in whose place they stayed if it failed.
#[test]
fn a_compaction_that_fails_leaves_what_is_in_use_and_adds_its_cost() {
    let folder = Folder::new();
    let price = json!({ "input": 1000, "output": 1000, "context-window": 1000 });
    let prices = json!({ "currency": "EUR", "models": { "scripted": price } });
    fs::write(folder.path("prices"), prices.to_string()).expect("a file");
    let one = vec![Step::Text("one".to_owned()), Step::Finish("stop", Some((30, 20))), Step::Done];
    let cut = vec![Step::Text("SUMM".to_owned()), Step::Finish("length", Some((3, 2))), Step::Done];
    let provider = Provider::start(vec![one, cut]);
    let args = ["--prices", &folder.name("prices")];
    let mut client = Client::start_with(with_provider(&folder, &provider, &args), json!({}));
    let session = client.session(&folder.path(""));
    assert_eq!(client.turn(&session, "hi").0, "end_turn");
    let compact = json!([{ "type": "text", "text": "/compact" }]);
    client.refused("session/prompt", json!({ "sessionId": session, "prompt": compact }));
    let seen = client.finish().seen;
    let usage = updates(&seen, &session, "usage_update").into_iter();
    let shown: Vec<_> =
        usage.map(|it| (it["used"].clone(), it["cost"]["amount"].clone())).collect();
    assert_eq!(shown, [(json!(50), json!(0.05)), (json!(50), json!(0.055))]);
}

#[test]
fn an_answer_that_the_provider_withheld_says_so() {
    let folder = Folder::new();
    let withheld = |text: &str| {
        let text = (!text.is_empty()).then(|| Step::Text(text.to_owned()));
        let end = [Step::Finish("content_filter", Some((3, 0))), Step::Done];
        text.into_iter().chain(end).collect::<Vec<_>>()
    };
    let why = "the provider withheld the answer, or the rest of it";
    for capabilities in [json!({}), json!({ "session": { "notices": {} } })] {
        let has_notices = capabilities != json!({});
        let provider = Provider::start(vec![withheld(""), withheld("half"), says("whole")]);
        let command = with_provider(&folder, &provider, &[]);
        let mut client = Client::start_with(command, capabilities);
        let session = client.session(&folder.path(""));
        // With the answer of its own prompt, and not of the next one.
        for (text, count) in [("", 1), ("half", 1), ("whole", 0)] {
            let from = client.seen.len();
            assert_eq!(client.turn(&session, "go"), ("end_turn".to_owned(), text.to_owned()));
            let seen = &client.seen[from..];
            let told = match has_notices {
                true => {
                    let notices = updates(seen, &session, "notice").into_iter();
                    notices.filter_map(|it| it["title"].as_str()).collect()
                }
                false => said(seen, &session, "agent_thought_chunk"),
            };
            assert_eq!(told.matches(why).count(), count, "{text:?}: {told}");
        }
        client.finish();
    }
}

/// The folder decides about profiles, whatever folder the process is in; and so do variables and options.
#[test]
fn a_session_belongs_to_its_folder() {
    let folder = Folder::new();
    let provider = Provider::start(vec![says("of the project")]);
    fs::create_dir_all(folder.path("p/.duologue")).expect("a folder");
    fs::create_dir_all(folder.path("config/duologue")).expect("a folder");
    let own = format!(
        "profiles:\n  mine: {{engine: openai, model: own, base-url: '{}', key-variable: OWN_KEY}}\n",
        provider.base_url()
    );
    fs::write(folder.path("config/duologue/profiles.yaml"), own).expect("a file");
    let profile = "profiles:\n  mine: {system: You know this project.}\n";
    fs::write(folder.path("p/.duologue/profiles.yaml"), profile).expect("a file");
    let trusted = Command::new(env!("CARGO_BIN_EXE_duologue"))
        .args(["profiles", "trust"])
        .arg(folder.path("p/.duologue/profiles.yaml"))
        .env("XDG_CONFIG_HOME", folder.path("config"))
        .env("XDG_DATA_HOME", folder.path("data"))
        .env("XDG_STATE_HOME", folder.path("state"))
        .env("HOME", folder.path("home"))
        .output();
    assert!(trusted.expect("it runs").status.success());
    let mut command = bare_command(&folder, &["--profile", "mine"]);
    command.env("XDG_STATE_HOME", folder.path("state")).env("OWN_KEY", "sk-own");
    let mut client = Client::start_with(command, json!({}));
    let session = client.session(&folder.path("p"));
    assert_eq!(client.turn(&session, "hi").1, "of the project");
    let body = provider.wait_request(1).body;
    assert_eq!(body["messages"][0]["content"], "You know this project.");
    client.finish();
}

#[test]
fn nothing_but_messages_is_written_to_standard_output() {
    let folder = Folder::new();
    // Without a provider there is a warning, and a thought that says so.
    let mut client =
        Client::start_with(bare_command(&folder, &["--log-level", "trace"]), json!({}));
    let session = client.session(&folder.path(""));
    let (_, text) = client.turn(&session, "hi");
    assert_eq!(text, "Turn 1. You said: hi");
    let ended = client.finish();
    assert!(
        said(&ended.seen, &session, "agent_thought_chunk").contains("no provider is configured")
    );
    assert!(ended.stderr.contains("TRACE") || ended.stderr.contains("DEBUG"), "{}", ended.stderr);
}

/// What is chosen of an option of a session.
fn chosen(session: &Value, id: &str) -> Value {
    let options = session["configOptions"].as_array().expect("options");
    options.iter().find(|it| it["id"] == id).expect(id)["currentValue"].clone()
}

/// What is shown is what the provider is sent, wherever it comes from.
#[test]
fn the_effort_of_a_variable_or_a_profile_is_shown() {
    let folder = Folder::new();
    let provider = Provider::start(vec![says("one"), says("two")]);
    let profiles = format!(
        "profiles:\n  deep: {{engine: openai, model: deep, base-url: '{}', key-variable: OWN_KEY, \
         settings: {{reasoning_effort: xhigh}}}}\n",
        provider.base_url()
    );
    fs::write(folder.path("profiles.yaml"), profiles).expect("a file");
    let registries = folder.name("profiles.yaml");
    let open = json!({ "cwd": folder.path(""), "mcpServers": [] });
    let args = ["--profile-registries", &registries];
    let mut command = with_provider(&folder, &provider, &args);
    command.env("OWN_KEY", "sk-own");
    let mut client = Client::start_with(command, json!({}));
    let opened = client.call("session/new", open.clone());
    assert_eq!(chosen(&opened, "thought_level"), "default");
    let session = opened["sessionId"].as_str().expect("an id").to_owned();
    client.turn(&session, "hi");
    let deep = json!({ "sessionId": session, "configId": "model", "value": "profile:deep" });
    let changed = client.call("session/set_config_option", deep);
    assert_eq!(chosen(&changed, "thought_level"), "xhigh");
    client.turn(&session, "hi");
    let sent = |number| provider.wait_request(number).body["reasoning_effort"].clone();
    assert_eq!((sent(1), sent(2)), (Value::Null, json!("xhigh")));
    client.finish();
    let mut command = with_provider(&folder, &provider, &args);
    command.env("OWN_KEY", "sk-own").env("DUOLOGUE_REASONING_EFFORT", "medium");
    let mut client = Client::start_with(command, json!({}));
    assert_eq!(chosen(&client.call("session/new", open), "thought_level"), "medium");
    client.finish();
}

/// What a person chose for a session wins over what the editor's configuration begins others with; and that the
/// store is made is no warning, which editors show.
#[test]
fn a_stored_effort_wins_over_that_of_the_command_line() {
    let folder = Folder::new();
    let provider = Provider::start(vec![says("one"), says("two"), says("three")]);
    let start = || {
        let command = with_provider(&folder, &provider, &["--reasoning-effort", "low"]);
        Client::start_with(command, json!({}))
    };
    let mut client = start();
    let opened = client.call("session/new", json!({ "cwd": folder.path(""), "mcpServers": [] }));
    assert_eq!(chosen(&opened, "thought_level"), "low");
    let session = opened["sessionId"].as_str().expect("an id").to_owned();
    client.turn(&session, "hi");
    let high = json!({ "sessionId": session, "configId": "thought_level", "value": "high" });
    client.call("session/set_config_option", high);
    client.turn(&session, "again");
    assert_eq!(client.finish().stderr, "");
    let mut client = start();
    let load = json!({ "sessionId": session, "cwd": folder.path(""), "mcpServers": [] });
    let loaded = client.call("session/load", load);
    assert_eq!(chosen(&loaded, "thought_level"), "high");
    client.turn(&session, "and again");
    client.finish();
    let efforts =
        (1..=3).map(|number| provider.wait_request(number).body["reasoning_effort"].clone());
    assert_eq!(efforts.collect::<Vec<_>>(), ["low", "high", "high"]);
}
