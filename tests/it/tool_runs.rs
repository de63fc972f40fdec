//! Tools of MCP servers in a conversation: approval, faults in the middle of a call, and processes
//! that must not be left behind.

use crate::client_tools::calls;
use crate::frames::{Frame, cancel, errors, finished_text, snapshot, submit};
use crate::mcp_servers::{assert_gone, config, log, mark};
use crate::once::{Ended, Once, duologue, run};
use crate::oracle::Answers;
use crate::provider::{Provider, Step, says};
use crate::server::{Folder, KEY, Reading, Server, echo, openai};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::fs;

/// Cancels of one conversation.
const CANCELS: usize = 1_000;

/// A conversation whose engine plays a script, with servers of the fixture.
struct Scene {
    mark: String,
    folder: Folder,
}

impl Scene {
    /// `calls` are the tool calls of the first answer: name and text of each.
    fn new(faults: &[&str], calls: &[(&str, &str)]) -> Self {
        Self::with(faults, &[calls])
    }

    /// The same with several answers that call tools.
    fn with(faults: &[&str], answers: &[&[(&str, &str)]]) -> Self {
        let (mark, folder) = (mark(), Folder::new());
        fs::write(folder.path("servers"), config(&mark, faults, &json!({}))).expect("a file");
        let call =
            |(name, text): &(&str, &str)| json!({ "name": name, "arguments": { "text": text } });
        let answer = |calls: &&[(&str, &str)]| {
            let tools: Vec<Value> = calls.iter().map(call).collect();
            json!({ "text": "Let me look.", "tools": tools }).to_string()
        };
        let mut script: Vec<String> = answers.iter().map(answer).collect();
        script.push(json!({ "text": "Done." }).to_string());
        fs::write(folder.path("script"), script.join("\n")).expect("a file");
        Self { mark, folder }
    }

    /// The same with a defect at the `nth` event of the conversation.
    #[cfg(debug_assertions)]
    fn start_planted(&self, nth: usize, args: &[&str]) -> Server {
        let words = self.words();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let launch = echo(&[words.as_slice(), args].concat());
        launch.env("DUOLOGUE_FAULT", format!("project:{nth}")).start()
    }

    fn words(&self) -> [String; 4] {
        let (servers, script) = (self.folder.name("servers"), self.folder.name("script"));
        ["--mcp-config".to_owned(), servers, "--echo-script".to_owned(), script]
    }

    fn start(&self, args: &[&str]) -> Server {
        let words = self.words();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        echo(&[words.as_slice(), args].concat()).start()
    }

    /// What the servers were sent.
    fn sent(&self) -> String {
        fs::read_to_string(log(&self.mark)).unwrap_or_default()
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        fs::remove_file(log(&self.mark)).ok();
        if !std::thread::panicking() {
            assert_gone(&self.mark);
        }
    }
}

/// A script reads what was not made, and the rule that would allow it.
#[test]
fn a_call_that_nobody_could_approve_is_among_the_warnings() {
    let scene = Scene::new(&["none"], &[("echo", "one")]);
    let options = scene.words();
    let options: Vec<&str> = options.iter().map(String::as_str).collect();
    let words = ["exec", "hi", "--engine", "echo", "--output", "json"];
    let ended = run(&scene.folder, &[&words, &options[..]].concat());
    let document: Value = serde_json::from_str(&ended.stdout).expect("JSON");
    let warning = &document["warnings"][0];
    assert_eq!(warning["code"], "tool_not_approved", "{document}");
    let message = warning["message"].as_str().expect("a text");
    assert!(message.contains("--allow '") && ended.stderr.contains(message), "{ended:?}");
}

/// `duologue exec hi <words>`: the model calls this tool of the fixture with `text`, and says nothing about its result.
fn exec_without_words(tool: &str, text: &str, words: &[&str]) -> Ended {
    let scene = Scene::new(&["none"], &[("echo", "one")]);
    let arguments = json!({ "text": text }).to_string();
    let silent = vec![Step::Finish("stop", Some((3, 0))), Step::Done];
    let provider = Provider::start(vec![calls(&[("a", tool, &arguments)]), silent]);
    let (servers, base_url) = (scene.folder.name("servers"), provider.base_url());
    let model = ["exec", "hi", "--model", "scripted", "--base-url", &base_url];
    let tools = ["--mcp-config", &servers, "--allow", "*"];
    let mut command = duologue(&scene.folder, &[&model[..], &tools, words].concat());
    command.env("DUOLOGUE_API_KEY", KEY);
    let mut once = Once::start(command);
    once.close_stdin();
    once.finish()
}

/// What called the program can tell an answer without words from one that is missing.
#[test]
fn an_answer_without_words_after_a_tool_is_complete_and_warned_of() {
    let words = "ended its answer without any text";
    let ended = exec_without_words("echo", "done", &[]);
    assert_eq!((ended.status, ended.stdout.as_str()), (0, ""), "{ended:?}");
    assert!(ended.stderr.contains(words), "{ended:?}");
    let ended = exec_without_words("echo", "done", &["--output", "json"]);
    let document: Value = serde_json::from_str(&ended.stdout).expect("JSON");
    assert_eq!((&document["ok"], &document["data"]), (&json!(true), &Value::Null), "{document}");
    let warnings = document["warnings"].as_array().expect("a list");
    assert!(warnings.len() == 1 && warnings[0]["code"] == "blank_answer", "{document}");
    let ended = exec_without_words("echo", "done", &["--json-stream"]);
    let events =
        ended.stdout.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    let warns = |event: &Value| event["type"] == "status" && event.to_string().contains(words);
    assert_eq!(events.filter(warns).count(), 1, "{ended:?}");
    // The tool has failed, and so has the run.
    let ended = exec_without_words("act", "error", &["--output", "json"]);
    let document: Value = serde_json::from_str(&ended.stdout).expect("JSON");
    assert_eq!((&document["ok"], ended.status), (&json!(false), 1), "{document}");
}

/// A rule that names no tool is mistyped, and a run that must have its tools does not go without them.
#[test]
fn rules_without_a_tool_are_reported_and_servers_can_be_required() {
    let scene = Scene::new(&["none"], &[("echo", "one")]);
    let run = |scene: &Scene, more: &[&str]| {
        let options = scene.words();
        let options: Vec<&str> = options.iter().map(String::as_str).collect();
        let words = ["exec", "hi", "--engine", "echo", "--output", "json"];
        let ended = run(&scene.folder, &[&words, &options[..], more].concat());
        (ended.status, serde_json::from_str::<Value>(&ended.stdout).expect("JSON"))
    };
    let (_, document) = run(&scene, &["--allow", "ecko", "--deny", "none__rm", "--allow", "echo"]);
    let warnings = document["warnings"].as_array().expect("a list");
    let texts: Vec<_> = warnings.iter().map(|it| it["message"].as_str().expect("it")).collect();
    assert!(warnings.iter().all(|it| it["code"] == "rule_without_tool"), "{document}");
    assert!(texts.len() == 2 && texts[0].starts_with("--allow 'ecko' names no tool"), "{texts:?}");
    assert!(texts[1].starts_with("--deny 'none__rm'") && texts[1].contains("echo"), "{texts:?}");
    let (status, _) = run(&scene, &["--require-tools", "--allow", "*"]);
    assert_eq!(status, 0);
    let broken = Scene::new(&["none", "crash-at-init"], &[("echo", "one")]);
    let (status, document) = run(&broken, &["--require-tools", "--allow", "*"]);
    assert_eq!((status, &document["error"]["class"]), (1, &json!("tool")), "{document}");
    let message = document["error"]["message"].as_str().expect("a text");
    assert!(message.contains("crash-at-init (it ended with status 4)"), "{document}");
    assert!(message.ends_with("mend the server, or leave out --require-tools"), "{document}");
    assert!(document["data"].is_null(), "{document}");
}

fn approve(id: &str, call: &str, decision: &str, reason: &str) -> String {
    let approve = json!({ "toolCallId": call, "decision": decision, "reason": reason });
    json!({ "requestId": id, "approve": approve }).to_string()
}

fn results(frames: &[Frame]) -> Vec<(&str, &str)> {
    let ready = frames.iter().filter(|frame| frame.is_event("ChatToolResultReady"));
    ready.map(|frame| (frame.payload("status"), frame.payload("result"))).collect()
}

fn count(frames: &[Frame], event: &str) -> usize {
    frames.iter().filter(|frame| frame.is_event(event)).count()
}

#[test]
fn an_allowed_tool_runs_and_its_result_reaches_the_model() {
    let scene = Scene::new(&["none"], &[("echo", "hello"), ("echo", "again")]);
    let mut server = scene.start(&["--allow", "echo"]);
    server.send(submit("run", "go"));
    assert_eq!(server.wait_done("run"), "ok");
    let frames = server.finish().frames;
    let mut all = results(&frames);
    all.sort_unstable();
    assert_eq!(all, [("success", "again"), ("success", "hello")]);
    assert_eq!(finished_text(&frames, "run"), "Let me look.Done.");
    assert_eq!(count(&frames, "ToolApprovalRequested"), 0);
    assert_eq!(count(&frames, "ToolServerChanged"), 0);
}

#[test]
fn without_anybody_to_ask_a_tool_does_not_run() {
    let scene = Scene::new(&["none"], &[("echo", "hello")]);
    let mut server = scene.start(&[]);
    server.send(submit("run", "go"));
    assert_eq!(server.wait_done("run"), "ok");
    let transcript = server.finish();
    let all = results(&transcript.frames);
    assert!(all[0].0 == "error" && all[0].1.contains("approval"), "{all:?}");
    assert!(transcript.stderr.contains("--allow 'none__echo'"), "{}", transcript.stderr);
    assert!(!scene.sent().contains("hello"));
}

#[test]
fn the_client_allows_once_for_the_session_or_not_at_all() {
    let one: &[(&str, &str)] = &[("echo", "one"), ("act", "error")];
    let two: &[(&str, &str)] = &[("echo", "two"), ("act", "error")];
    let scene = Scene::with(&["none"], &[one, two]);
    let mut server = scene.start(&["--extensions", "approvals"]);
    server.send(submit("run", "go"));
    let first = server.wait_event("ToolApprovalRequested");
    assert_eq!((first.payload("toolName"), first.payload("server")), ("echo", "none"));
    assert_eq!(first.payload("input"), r#"{"text":"one"}"#);
    let second = server.wait_event("ToolApprovalRequested");
    let (first, second) = (first.payload("toolCallId"), second.payload("toolCallId"));
    server.send(approve("unknown", "call_9", "ALLOW_ONCE", ""));
    server.send(approve("a", first, "ALLOW_SESSION", ""));
    server.send(approve("b", second, "DENY", "not today"));
    assert_eq!(server.wait_done("b"), "ok");
    server.send(approve("twice", second, "ALLOW_ONCE", ""));
    // In the second answer only the other tool is asked about.
    let third = server.wait_event("ToolApprovalRequested");
    assert_eq!(third.payload("toolName"), "act");
    server.send(approve("c", third.payload("toolCallId"), "ALLOW_ONCE", ""));
    assert_eq!(server.wait_done("run"), "ok");
    let frames = server.finish().frames;
    for id in ["unknown", "twice"] {
        assert_eq!(errors(&frames, id), ["unknown_tool_call"], "{id}");
    }
    assert_eq!(count(&frames, "ToolApprovalRequested"), 3);
    assert_eq!(count(&frames, "ToolApprovalResolved"), 3);
    let mut all = results(&frames);
    all.sort_unstable();
    let denied = "The call was not made: it was denied: not today";
    assert_eq!(all, [("error", denied), ("error", "no"), ("success", "one"), ("success", "two")]);
}

#[test]
fn a_cancel_resolves_an_approval_and_a_late_answer_is_an_error() {
    let scene = Scene::new(&["none"], &[("echo", "hello")]);
    let mut server = scene.start(&["--extensions", "approvals"]);
    server.send(submit("run", "go"));
    let asked = server.wait_event("ToolApprovalRequested");
    server.send(cancel("stop"));
    assert_eq!(server.wait_done("run"), "stopped");
    server.send(approve("late", asked.payload("toolCallId"), "ALLOW_ONCE", ""));
    assert_eq!(server.wait_done("late"), "failed");
    let frames = server.finish().frames;
    assert_eq!(count(&frames, "ToolApprovalResolved"), 1);
    assert!(!scene.sent().contains("hello"));
}

#[test]
fn the_end_of_input_denies_what_waits_for_approval() {
    let scene = Scene::new(&["none"], &[("echo", "hello")]);
    let mut server = scene.start(&["--extensions", "approvals"]);
    server.send(submit("run", "go"));
    server.wait_event("ToolApprovalRequested");
    server.close_stdin();
    assert_eq!(server.wait_done("run"), "ok");
    let frames = server.finish().frames;
    assert!(results(&frames)[0].1.contains("input has ended"), "{:?}", results(&frames));
}

#[test]
fn a_rule_denies_whatever_else_allows() {
    let scene = Scene::new(&["none"], &[("echo", "hello")]);
    let mut server = scene.start(&["--approval", "auto", "--allow", "*", "--deny", "e?ho"]);
    server.send(submit("run", "go"));
    assert_eq!(server.wait_done("run"), "ok");
    let frames = server.finish().frames;
    assert!(results(&frames)[0].1.contains("--deny 'e?ho'"), "{:?}", results(&frames));
}

/// A provider that refuses one tool refuses every request with it.
#[test]
fn a_tool_that_a_rule_denies_is_not_offered() {
    let offered = |words: &[&str]| {
        let scene = Scene::new(&["none"], &[]);
        let called = calls(&[("a", "echo", r#"{"text":"hello"}"#)]);
        let provider = Provider::start(vec![called, says("Done.")]);
        let servers = scene.folder.name("servers");
        let mut server = openai(&provider, &[&["--mcp-config", &servers], words].concat()).start();
        assert_eq!(server.turn("run", "go"), "ok");
        let frames = server.finish().frames;
        assert!(results(&frames)[0].1.contains("does not allow this tool"), "{frames:?}");
        assert!(!scene.sent().contains("hello"));
        let tools = provider.wait_request(1).body["tools"].clone();
        let name = |tool: &Value| tool["function"]["name"].as_str().unwrap_or_default().to_owned();
        tools.as_array().expect("tools").iter().map(name).collect::<Vec<_>>()
    };
    assert_eq!(offered(&["--allow", "*", "--deny", "echo"]), ["act"]);
    // The mode is about calls.
    assert_eq!(offered(&["--approval", "deny"]), ["act", "echo"]);
}

#[test]
fn faults_of_a_server_in_mid_call_cost_the_call_and_not_the_run() {
    for fault in ["crash", "close", "long", "stderr", "error"] {
        let scene = Scene::new(&["none"], &[("act", fault), ("echo", "fine")]);
        let mut server = scene.start(&["--allow", "*"]);
        server.send(submit("run", "go"));
        assert_eq!(server.wait_done("run"), "ok", "{fault}");
        let frames = server.finish().frames;
        assert_eq!(results(&frames).len(), 2, "{fault}");
        assert_eq!(finished_text(&frames, "run"), "Let me look.Done.", "{fault}");
    }
}

#[test]
fn a_tool_that_never_answers_is_ended_by_its_time_limit() {
    let scene = Scene::new(&["none"], &[("act", "nothing")]);
    let mut server = scene.start(&["--allow", "*", "--tool-timeout-ms", "200"]);
    server.send(submit("run", "go"));
    assert_eq!(server.wait_done("run"), "ok");
    let frames = server.finish().frames;
    let all = results(&frames);
    assert!(all[0].0 == "error" && all[0].1.contains("--tool-timeout"), "{all:?}");
}

#[test]
fn a_long_result_is_cut() {
    let scene = Scene::new(&["none"], &[("echo", &"x".repeat(500))]);
    let mut server = scene.start(&["--allow", "*", "--max-tool-result-bytes", "100"]);
    server.send(submit("run", "go"));
    assert_eq!(server.wait_done("run"), "ok");
    let frames = server.finish().frames;
    let text = results(&frames)[0].1;
    assert!(
        text.starts_with(&"x".repeat(100)) && text.len() < 300 && text.contains("500"),
        "{text}"
    );
}

#[test]
fn a_run_has_a_limit_on_its_rounds() {
    let again: &[(&str, &str)] = &[("echo", "again")];
    let scene = Scene::with(&["none"], &[again; 4]);
    let mut server = scene.start(&["--allow", "*", "--max-tool-rounds", "2"]);
    server.send(submit("run", "go"));
    assert_eq!(server.wait_done("run"), "failed");
    let frames = server.finish().frames;
    assert_eq!(errors(&frames, "run"), ["run_failed"]);
    let error = frames.iter().find(|frame| frame.error().is_some()).expect("an error");
    assert!(error.text("/error/detail").starts_with("tool: "), "{error:?}");
    assert_eq!(count(&frames, "ChatToolCallStarted"), 3);
    assert_eq!(count(&frames, "ChatToolResultReady"), 3);
}

#[test]
fn a_signal_in_mid_call_ends_everything() {
    for (signal, status) in [(Signal::TERM, 143), (Signal::INT, 130), (Signal::HUP, 129)] {
        let scene = Scene::new(&["none", "stubborn", "forks"], &[("none__act", "nothing")]);
        let mut server = scene.start(&["--allow", "*"]);
        server.send(submit("run", "go"));
        server.wait_event("ChatToolExecutionStarted");
        server.signal(signal);
        assert_eq!(server.wait_done("run"), "stopped");
        server.finish_with(status, Answers::AllAndFarewell);
        assert_gone(&scene.mark);
    }
}

#[test]
fn nothing_outlives_a_process_that_is_killed_in_mid_call() {
    let scene = Scene::new(&["none", "stubborn", "forks"], &[("none__act", "nothing")]);
    let mut server = scene.start(&["--allow", "*"]);
    server.send(submit("run", "go"));
    server.wait_event("ChatToolExecutionStarted");
    server.signal(Signal::KILL);
    server.finish_with(137, Answers::Some);
    crate::process::eventually("all are gone", || {
        let mark = format!("{}={}", crate::mcp_servers::MARK_VARIABLE, scene.mark);
        let left = crate::process::Process::marked(&mark);
        left.iter().all(|it| it.command_line().is_empty()).then_some(())
    });
}

#[test]
fn cancels_at_any_moment_leave_each_call_with_one_result() {
    let scene = Scene::new(&["none"], &[("echo", "one"), ("act", "error"), ("act", "nothing")]);
    let mut server = scene.start(&["--allow", "*", "--final-snapshot", "none"]);
    server.send(submit("first", "go"));
    server.wait_event("ChatToolExecutionStarted");
    server.send(cancel("stop-first"));
    assert_eq!(server.wait_done("first"), "stopped");
    for turn in 0..CANCELS {
        let (run, stop) = (format!("r{turn}"), format!("c{turn}"));
        server.send(submit(&run, "go"));
        // A run without its cancel waits after some twenty frames, for the call that never answers.
        let frames = turn % 20;
        for _ in 0..frames {
            server.wait("a frame of the run", |frame| frame.id() == run);
        }
        server.send(cancel(&stop));
        assert_eq!(server.wait_done(&stop), "ok");
        assert_eq!(server.wait_done(&run), "stopped");
    }
    server.send(snapshot("look"));
    server.wait_done("look");
    let frames = server.finish().frames;
    let look = frames.iter().find(|frame| frame.is_snapshot() && frame.id() == "look");
    let entities = look.expect("a snapshot").0["snapshot"]["entities"].clone();
    let entities = entities.as_array().expect("entities").clone();
    let of = |kind: &str| -> Vec<&Value> {
        entities.iter().filter(|entity| entity["kind"] == kind).collect()
    };
    for call in of("ChatToolCall") {
        assert_eq!(call["payload"]["status"], "completed");
    }
    assert!(of("ChatToolResult").len() > CANCELS / 4);
}

#[test]
fn changes_of_servers_are_events_where_the_extension_is_on() {
    let scene = Scene::new(&["none", "crash-at-init"], &[("echo", "hello")]);
    let mut server = scene.start(&["--allow", "*", "--extensions", "tool-servers"]);
    server.send(submit("run", "go"));
    assert_eq!(server.wait_done("run"), "ok");
    let frames = server.finish().frames;
    let changes = frames.iter().filter(|frame| frame.is_event("ToolServerChanged"));
    let changes: Vec<_> =
        changes.map(|frame| (frame.payload("server"), frame.payload("state"))).collect();
    assert!(changes.contains(&("none", "READY")), "{changes:?}");
    assert!(changes.contains(&("crash-at-init", "UNAVAILABLE")), "{changes:?}");
    assert_eq!(results(&frames), [("success", "hello")]);
}

/// The rule in a hint names the server as well: the name that the model sees may look like a rule for a tool
/// of another server.
#[test]
fn the_rule_that_a_hint_names_allows_the_call_that_was_refused() {
    for (faults, names, called, expected) in [
        (["none", "spoof"], ["none", "spoof"], "none__act", "spoof__none__act"),
        (["none", "crash-at-init"], ["a b", "a_b"], "echo", "a b__echo"),
        (["none", "none"], ["a b", "a_b"], "a_b__echo", "a b__echo"),
        (["none", "spoof"], ["spoof__none", "spoof"], "none__act", "spoof__none_?act"),
    ] {
        let scene = Scene::new(&["none"], &[(called, "hello")]);
        let servers: Value = serde_json::from_str(&config(&scene.mark, &faults, &json!({})))
            .expect("a configuration");
        let renamed: Vec<Value> =
            faults.iter().map(|fault| servers["mcpServers"][fault].clone()).collect();
        let servers = json!({ "mcpServers": { names[0]: renamed[0], names[1]: renamed[1] } });
        fs::write(scene.folder.path("servers"), servers.to_string()).expect("a file");
        let words = scene.words();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let exec = [&["exec", "--engine", "echo", "go"], words.as_slice()].concat();
        let refused = run(&scene.folder, &exec);
        let hint = format!("allow it with --allow '{expected}',");
        assert!(refused.stderr.contains(&hint), "{called}: {}", refused.stderr);
        let allowed = run(&scene.folder, &[exec.as_slice(), &["--allow", expected]].concat());
        assert!(!allowed.stderr.contains("needs approval"), "{called}: {}", allowed.stderr);
    }
}

#[test]
fn a_single_run_uses_tools_that_are_allowed() {
    let scene = Scene::new(&["none"], &[("echo", "hello")]);
    let words = scene.words();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let exec = [&["exec", "--engine", "echo", "go"], words.as_slice()].concat();
    let allowed = run(&scene.folder, &[exec.as_slice(), &["--allow", "echo"]].concat());
    assert_eq!((allowed.status, allowed.stderr.as_str()), (0, ""));
    assert!(allowed.stdout.contains("Done."), "{}", allowed.stdout);
    let asked = run(&scene.folder, &exec);
    assert_eq!(asked.status, 0);
    assert!(asked.stderr.contains("--allow 'none__echo'"), "{}", asked.stderr);
    let wrong = run(&scene.folder, &["exec", "go", "--mcp-config", "nowhere"]);
    assert_eq!(wrong.status, 2);
}

/// Each text counts to its end, and the list is of the last one.
#[test]
fn values_before_a_tool_call_are_complete_and_not_the_answer() {
    let scene = Scene::new(&["none"], &[]);
    let tools = json!([{ "name": "echo", "arguments": { "text": "hello" } }]);
    let first = json!({ "text": "{\"draft\":1}\n{\"draft\":2}", "tools": tools });
    let script = format!("{first}\n{}\n", json!({ "text": "Done." }));
    fs::write(scene.folder.path("script"), script).expect("a file");
    let file = scene.folder.name("file.yaml");
    fs::write(&file, "prompt: go\nresponse-type: jsonl\n").expect("a file");
    let words = scene.words();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let own = ["run-command", &file, "--engine", "echo", "--allow", "echo", "--no-preamble"];
    let run = |output| run(&scene.folder, &[&own, &words[..], &["--output", output]].concat());
    assert_eq!(run("objects").stdout, "{\"draft\":1}\n{\"draft\":2}\n");
    let document: Value = serde_json::from_str(&run("json").stdout).expect("JSON");
    assert_eq!(document["data"], json!([]), "{document}");
    let warnings = document["warnings"].as_array().expect("a list");
    let codes: Vec<_> = warnings.iter().map(|warning| &warning["code"]).collect();
    assert_eq!(codes, ["line_rejected", "nothing_found"], "{document}");
}

#[test]
fn a_server_that_can_not_be_used_is_among_the_warnings() {
    let scene = Scene::new(&["none", "crash-at-init"], &[("echo", "hello")]);
    let words = scene.words();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let exec = [&["exec", "--engine", "echo", "go", "--allow", "*"], words.as_slice()].concat();
    let ended = run(&scene.folder, &[exec.as_slice(), &["--output", "json"]].concat());
    assert_eq!(ended.status, 0, "{ended:?}");
    let document: Value = serde_json::from_str(&ended.stdout).expect("JSON");
    let warnings = document["warnings"].as_array().expect("a list");
    assert_eq!(warnings.len(), 1, "{document}");
    assert_eq!(warnings[0]["code"], "tool_server_unavailable", "{document}");
    let message = warnings[0]["message"].to_string();
    assert!(message.contains("crash-at-init") && message.contains("status 4"), "{message}");
    let stream = run(&scene.folder, &[exec.as_slice(), &["--json-stream"]].concat()).stdout;
    let events: Vec<Value> =
        stream.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(events[0]["type"], "start", "{stream}");
    let is_warning = |event: &&Value| event["payload"]["status"] == "warning";
    let warned: Vec<_> = events.iter().filter(is_warning).collect();
    assert_eq!(warned.len(), 1, "{stream}");
    assert!(warned[0]["payload"]["message"].to_string().contains("crash-at-init"), "{stream}");
}

/// Whether it fails before the model is called, or is not ready then.
#[test]
fn a_server_that_is_not_waited_for_is_among_the_warnings() {
    let folder = Folder::new();
    // `wc` reads to the end of its input and says nothing before.
    for (server, name) in [("/nowhere/missing", "missing"), ("wc -c", "wc")] {
        let words = ["exec", "--engine", "echo", "go", "--output", "json", "--mcp", server];
        let ended = run(&folder, &[&words[..], &["--mcp-wait-ms", "0"]].concat());
        assert_eq!(ended.status, 0, "{ended:?}");
        let document: Value = serde_json::from_str(&ended.stdout).expect("JSON");
        assert_eq!(document["warnings"][0]["code"], "tool_server_unavailable", "{document}");
        assert!(document["warnings"][0]["message"].to_string().contains(name), "{document}");
    }
}

/// The warning stands in the output of every form, though the run ends at once after the call.
#[test]
fn a_server_that_ends_in_the_run_is_among_the_warnings() {
    let scene = Scene::new(&["none"], &[("act", "crash")]);
    let words = scene.words();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let (schema, file) = (scene.folder.name("schema.json"), scene.folder.name("command.yaml"));
    fs::write(&schema, r#"{"type": "string"}"#).expect("a file");
    fs::write(&file, "name: c\nshort: c\nprompt: go\n").expect("a file");
    let engine = ["--engine", "echo", "--allow", "*"];
    for command in [&["exec", "go"][..], &["run-command", &file]] {
        let all = [command, &engine, &words].concat();
        let ended = run(&scene.folder, &[&all[..], &["--output", "json"]].concat());
        let document: Value = serde_json::from_str(&ended.stdout).expect("JSON");
        check_ended(&document["warnings"], &document);
        let ended = run(&scene.folder, &[&all[..], &["--json-stream"]].concat());
        let is_warning = |line: &&str| line.contains(r#""status":"warning""#);
        let warned: Vec<_> = ended.stdout.lines().filter(is_warning).collect();
        assert!(warned.len() == 1 && warned[0].contains("MCP server none can't"), "{ended:?}");
    }
    // Also where the answer is none.
    let exec = [&["exec", "go", "--schema", &schema, "--output", "json"], &engine[..], &words];
    let ended = run(&scene.folder, &exec.concat());
    let document: Value = serde_json::from_str(&ended.stdout).expect("JSON");
    assert_eq!((ended.status, &document["ok"]), (1, &json!(false)), "{document}");
    check_ended(&document["warnings"], &document);
}

#[track_caller]
fn check_ended(warnings: &Value, document: &Value) {
    let [warning] = &warnings.as_array().expect("a list")[..] else { panic!("{document}") };
    assert_eq!(warning["code"], "tool_server_unavailable", "{document}");
    let message = warning["message"].as_str().expect("a text");
    assert!(message.contains("none") && message.contains("status 5"), "{message}");
}

#[test]
fn a_rule_that_denies_holds_when_another_tool_takes_the_name() {
    let calls = [("none__echo", "one"), ("junk__echo", "two")];
    let scene = Scene::new(&["none", "junk"], &calls);
    let mut server = scene.start(&["--allow", "*", "--deny", "echo"]);
    server.send(submit("run", "go"));
    assert_eq!(server.wait_done("run"), "ok");
    let frames = server.finish().frames;
    let all = results(&frames);
    assert!(all.iter().all(|(_, text)| text.contains("--deny 'echo'")), "{all:?}");
}

#[test]
fn a_server_that_fails_is_warned_of_and_costs_no_run() {
    let scene = Scene::new(&["crash-at-init"], &[("echo", "hello")]);
    let mut server = scene.start(&["--allow", "*"]);
    server.send(submit("run", "go"));
    assert_eq!(server.wait_done("run"), "ok");
    let transcript = server.finish();
    assert!(results(&transcript.frames)[0].1.contains("There is no tool"), "the model reads why");
    assert!(transcript.stderr.contains("crash-at-init"), "{}", transcript.stderr);
}

#[test]
fn what_is_allowed_for_the_session_no_longer_waits() {
    let scene = Scene::new(&["none"], &[("echo", "one"), ("echo", "two"), ("act", "error")]);
    let mut server = scene.start(&["--extensions", "approvals", "--deny", "act"]);
    server.send(submit("run", "go"));
    let first = server.wait_event("ToolApprovalRequested");
    server.wait_event("ToolApprovalRequested");
    server.send(approve("a", first.payload("toolCallId"), "ALLOW_SESSION", ""));
    assert_eq!(server.wait_done("run"), "ok");
    let frames = server.finish().frames;
    assert_eq!(count(&frames, "ToolApprovalResolved"), 2);
    assert_eq!(results(&frames).iter().filter(|(status, _)| *status == "success").count(), 2);
}

#[test]
fn a_slow_reader_loses_no_result() {
    let calls = [("act", "wide"); 20];
    let scene = Scene::new(&["none"], &calls);
    let words = scene.words();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let args = [words.as_slice(), &["--allow", "*", "--tool-timeout-ms", "5000"]].concat();
    let mut server = echo(&args).stdout(Reading::Held).start();
    server.send(submit("run", "go"));
    // All calls have reached the server, and their results more than fill what may wait.
    crate::process::eventually("all calls are made", || {
        (scene.sent().matches("tools/call").count() == calls.len()).then_some(())
    });
    server.read_on(Reading::Eager);
    assert_eq!(server.wait_done("run"), "ok");
    let frames = server.finish().frames;
    let all = results(&frames);
    assert_eq!(all.len(), calls.len());
    assert!(all.iter().all(|(status, _)| *status == "success"), "a result was lost");
}

#[test]
fn the_second_signal_does_not_wait_for_servers() {
    let scene = Scene::new(&["stubborn"], &[("act", "nothing")]);
    let mut server = scene.start(&["--allow", "*"]);
    server.send(submit("run", "go"));
    server.wait_event("ChatToolExecutionStarted");
    let mark = format!("{}={}", crate::mcp_servers::MARK_VARIABLE, scene.mark);
    let marked = || crate::process::Process::marked(&mark);
    let is_guard = |process: &crate::process::Process| process.command_line().contains("__guard");
    let stubborn = marked().into_iter().find(|process| !is_guard(process)).expect("the server");
    server.signal(Signal::TERM);
    assert_eq!(server.wait_done("run"), "stopped");
    server.signal(Signal::TERM);
    server.exit_status();
    // It takes two seconds to end this one.
    assert!(!stubborn.command_line().is_empty(), "the exit has waited for the server");
    server.finish_with(143, Answers::AllAndFarewell);
    crate::process::eventually("all are gone", || {
        let left = marked();
        left.iter().all(|it| it.command_line().is_empty()).then_some(())
    });
}

#[test]
fn states_of_servers_wait_for_the_name_of_the_session() {
    let scene = Scene::new(&["none"], &[("echo", "hello")]);
    let mut server = scene.start(&["--allow", "*", "--extensions", "tool-servers"]);
    crate::process::eventually("the server is listed", || {
        scene.sent().contains("tools/list").then_some(())
    });
    let named = json!({ "requestId": "run", "sessionId": "mine", "submit": { "prompt": "go" } });
    server.send(named.to_string());
    assert_eq!(server.wait_done("run"), "ok");
    let frames = server.finish().frames;
    let changes = frames.iter().filter(|frame| frame.is_event("ToolServerChanged"));
    assert!(changes.clone().count() > 0);
    assert!(changes.clone().all(|frame| frame.text("/sessionId") == "mine"));
}

/// Also where its servers and their tools run at that moment.
#[test]
#[cfg(debug_assertions)]
fn a_defect_at_any_event_of_a_run_with_tools_ends_the_process_and_its_servers() {
    let scene = Scene::new(&["none"], &[("echo", "one"), ("act", "error")]);
    let mut server = scene.start(&["--allow", "*"]);
    assert_eq!(server.turn("run", "go"), "ok");
    let frames = server.finish().frames;
    let events = frames.iter().filter(|frame| frame.event().is_some()).count();
    for nth in 1..=events {
        let mut server = scene.start_planted(nth, &["--allow", "*"]);
        assert_eq!(server.turn("hit", "go"), "failed", "at event {nth}");
        server.finish_with(70, Answers::AllAndFarewell);
        assert_gone(&scene.mark);
    }
}
