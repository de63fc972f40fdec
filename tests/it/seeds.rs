//! The examples of the documents that this program implements, word for word but for its name.

use crate::frames::{Frame, ends, finished_text, shutdown, submit};
use crate::once::{Ended, Once, duologue, run};
use crate::oracle::Answers;
use crate::provider::{Provider, Step, says};
use crate::server::{Folder, KEY, Launch};
use crate::shape::{Shape, check_protocol};
use crate::stream_events;
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use std::process::Command;

/// The command file of the protocol's documentation has no text there; this one is ours.
const MY_COMMAND: &str = "\
name: my-command
short: Ask a question
system-prompt: Be brief.
messages:
  - What is one and one?
  - role: assistant
    text: Two.
  - And what is two and two?
";

/// A script in a folder with `my-command.yaml`, run by a shell that finds the program; the echo
/// engine answers.
fn shell(folder: &Folder, script: &str) -> Ended {
    fs::write(folder.path("my-command.yaml"), MY_COMMAND).expect("a file");
    let program = Path::new(env!("CARGO_BIN_EXE_duologue")).parent().expect("a folder");
    let path = std::env::var("PATH").unwrap_or_default();
    let mut command = Command::new("/bin/sh");
    command.args(["-c", script]).current_dir(folder.path("")).env_clear();
    command.env("PATH", format!("{}:{path}", program.display()));
    command.envs(std::env::var_os("HOME").map(|home| ("HOME", home)));
    command.env("XDG_DATA_HOME", folder.path("data")).env("DUOLOGUE_NO_STORE", "1");
    command.env("DUOLOGUE_ENGINE", "echo");
    Once::start(command).finish()
}

/// What a script prints that goes well.
#[track_caller]
fn prints(script: &str) -> String {
    let folder = Folder::new();
    let ended = shell(&folder, script);
    assert_eq!((ended.status, ended.stderr.as_str()), (0, ""), "{script}\n{}", ended.stdout);
    ended.stdout
}

/// The JSON values in a text that jq has printed.
fn values(text: &str) -> Vec<Value> {
    let values = serde_json::Deserializer::from_str(text).into_iter();
    values.map(|value| value.expect("JSON")).collect()
}

// The stream of events.

#[test]
fn every_line_of_the_event_stream_is_as_documented() {
    let folder = Folder::new();
    for prompt in ["explain the auth flow", "\u{2028}\u{1F600}\"\\\nx"] {
        let words = ["exec", "--json-stream", prompt, "--engine", "echo", "--echo-reasoning"];
        let ended = run(&folder, &words);
        let events = stream_events::events(&ended.stdout, ended.status).expect("as documented");
        let content = |name: &str| -> String {
            let wanted = events.iter().filter(|event| event["type"] == name);
            wanted.filter_map(|event| event["payload"]["content"].as_str()).collect()
        };
        assert_eq!(content("text_delta"), format!("Turn 1. You said: {prompt}"));
        assert_eq!(content("thinking"), "This is turn 1. I repeat what I was told.");
        assert_eq!(events[0]["payload"]["command"], "exec");
        assert_eq!(events[0]["payload"]["cwd"], folder.name("").trim_end_matches('/'));
    }
}

#[test]
fn the_examples_of_the_event_stream_work() {
    needs!(Jq);
    let lines = values(&prints(r#"duologue exec --json-stream "list all API routes" | jq ."#));
    assert_eq!(lines.first().map(|line| &line["type"]), Some(&json!("start")));
    assert_eq!(lines.last().map(|line| &line["type"]), Some(&json!("done")));
    let text = prints(
        r#"duologue exec --json-stream "explain auth" | jq -r 'select(.type == "text_delta") | .payload.content'"#,
    );
    assert_eq!(text, "Turn \n1. \nYou \nsaid: \nexplain \nauth\n");
    let tools = prints(
        r#"duologue exec --json-stream "refactor auth" | jq 'select(.type == "tool_started" or .type == "tool_completed")'"#,
    );
    assert_eq!(tools, "");
    let done = prints(r#"duologue exec --json-stream "fix bug" | jq 'select(.type == "done")'"#);
    let done = values(&done);
    assert_eq!(done.len(), 1, "{done:?}");
    assert_eq!(done[0]["payload"]["success"], true);
}

/// What a provider can do wrong; the class and the code of it, and whether to try again.
fn provider_errors() -> [(Vec<Step>, &'static str, &'static str, bool); 8] {
    let status = |status, body: &str| vec![Step::Status(status, Vec::new(), body.to_owned())];
    let too_long = r#"{"error":{"message":"too long","code":"context_length_exceeded"}}"#;
    let text = || Step::Text("a".to_owned());
    [
        (status(401, "{}"), "auth", "AUTH_EXPIRED", false),
        (status(429, "{}"), "rate_limited", "NETWORK_TIMEOUT", true),
        (status(400, too_long), "context_overflow", "CONTEXT_LIMIT", false),
        (status(400, "{}"), "provider", "UNKNOWN", false),
        (vec![text(), Step::Cut], "network", "NETWORK_TIMEOUT", true),
        (vec![text(), Step::Stall], "timeout", "NETWORK_TIMEOUT", true),
        (
            vec![Step::Event("{".to_owned()), Step::Done],
            "malformed_stream",
            "MALFORMED_EVENT",
            false,
        ),
        (vec![Step::Stall], "timeout", "NETWORK_TIMEOUT", true),
    ]
}

/// `exec hello <options>` with a provider that answers so.
fn exec(folder: &Folder, script: &[Step], options: &[&str]) -> (Ended, Provider) {
    asked(folder, &["exec", "hello"], script, options)
}

/// `<words> <options>` with a provider that answers so.
fn asked(folder: &Folder, words: &[&str], script: &[Step], options: &[&str]) -> (Ended, Provider) {
    let provider = Provider::start(vec![script.to_vec()]);
    let base_url = provider.base_url();
    let model = ["--model", "m", "--base-url", &base_url, "--retries", "0"];
    // Only a provider that stalls is ever waited for so long.
    let limit = ["--idle-timeout-ms", "500"];
    let mut command = duologue(folder, &[words, &model, &limit, options].concat());
    command.env("DUOLOGUE_API_KEY", KEY);
    (Once::start(command).finish(), provider)
}

/// The codes that its readers know; the class, which is finer; and whether to try again.
#[test]
fn errors_of_providers_have_the_documented_codes() {
    let folder = Folder::new();
    for (script, class, code, is_recoverable) in provider_errors() {
        let (ended, _) = exec(&folder, &script, &["--json-stream"]);
        let status = if is_recoverable { 75 } else { 1 };
        assert_eq!(ended.status, status, "{ended:?}");
        let events = stream_events::events(&ended.stdout, status).expect("as documented");
        let error = &events[events.len() - 2]["payload"]["error"];
        assert_eq!((&error["class"], &error["code"]), (&json!(class), &json!(code)), "{script:?}");
        assert_eq!(error["recoverable"], is_recoverable, "{script:?}: {error}");
        let detail = error["detail"].as_str().expect("a text");
        assert!(detail.starts_with(&format!("{class}:")), "{error}");
        assert!(ended.stderr.starts_with("duologue: "), "{ended:?}");
    }
}

/// Who reads events alone sees a cut-off answer as an error, right before `done`.
#[test]
fn an_answer_that_is_cut_off_has_an_error_in_the_event_stream() {
    let folder = Folder::new();
    for (reason, code) in [("length", "CONTEXT_LIMIT"), ("content_filter", "UNKNOWN")] {
        let script = [Step::Text("half an ans".to_owned()), Step::Finish(reason, None), Step::Done];
        let (ended, _) = exec(&folder, &script, &["--json-stream"]);
        let events = stream_events::events(&ended.stdout, 3).expect("as documented");
        let error = &events[events.len() - 2];
        assert_eq!(error["type"], "error", "{events:?}");
        assert_eq!(error["payload"]["error"]["code"], code, "{error}");
        assert_eq!(error["payload"]["error"]["recoverable"], false, "{error}");
        let errors = events.iter().filter(|event| event["type"] == "error").count();
        assert_eq!(errors, 1, "{events:?}");
    }
}

/// An answer may be reported as complete where its last value is not.
#[test]
fn an_answer_that_ends_inside_a_value_has_an_error_in_the_event_stream() {
    let folder = Folder::new();
    fs::write(folder.path("list.yaml"), "prompt: List.\nresponse-type: jsonl\n").expect("a file");
    fs::write(folder.path("answer.txt"), "{\"a\":1}\n{\"a\":").expect("a file");
    let words = ["run-command", "list.yaml", "--engine", "echo", "--echo-answer", "answer.txt"];
    let ended = run(&folder, &[&words[..], &["--json-stream"]].concat());
    let events = stream_events::events(&ended.stdout, 3).expect("as documented");
    let [.., status, error, _] = &events[..] else { panic!("{events:?}") };
    assert_eq!(status["payload"]["status"], "truncated", "{events:?}");
    let error = &error["payload"]["error"];
    assert_eq!((&error["code"], &error["detail"]), (&json!("UNKNOWN"), &json!("open_value")));
    assert_eq!(error["recoverable"], false, "{error}");
}

/// The host that is asked, and never what else stands in the address.
#[test]
fn the_event_stream_names_the_host_that_is_asked() {
    let folder = Folder::new();
    let (ended, provider) = exec(&folder, &says("an answer"), &["--json-stream"]);
    let provider_of = |ended: &Ended| {
        let events = stream_events::events(&ended.stdout, ended.status).expect("as documented");
        events[0]["payload"]["provider"].clone()
    };
    let base_url = provider.base_url();
    let host = base_url.trim_start_matches("http://").trim_end_matches("/v1");
    assert_eq!(provider_of(&ended), host);
    let of = |base_url: &str| {
        let words = ["exec", "hello", "--json-stream", "--model", "m", "--base-url", base_url];
        let ended = run(&folder, &[&words[..], &["--retries", "0"]].concat());
        assert!(!ended.stdout.contains("p4ss"), "{ended:?}");
        provider_of(&ended)
    };
    assert_eq!(of("http://user:p4ss@127.0.0.1:1/v1?key=p4ss"), "127.0.0.1:1");
    assert_eq!(of("http://user:pass/p4ss@127.0.0.1:1/v1"), Value::Null, "not an address");
    let echo = run(&folder, &["exec", "hello", "--json-stream", "--engine", "echo"]);
    assert_eq!(provider_of(&echo), "echo");
}

/// A prompt that is only printed is a whole stream as well.
#[test]
fn a_printed_prompt_is_a_whole_stream_of_events() {
    let folder = Folder::new();
    fs::write(folder.path("my-command.yaml"), MY_COMMAND).expect("a file");
    for words in [&["exec", "explain auth"][..], &["run-command", "my-command.yaml"]] {
        let options = ["--print-prompt", "--session-id", "0f0f0f0f-1234-4abc-8def-000000000001"];
        let printed = run(&folder, &[words, &options].concat());
        let ended = run(&folder, &[words, &options, &["--json-stream"]].concat());
        let events = stream_events::events(&ended.stdout, 0).expect("as documented");
        assert_eq!(events[0]["payload"]["command"], words[0]);
        assert_eq!(events[0]["sessionId"], options[2]);
        let text = events.iter().filter_map(|event| event["payload"]["content"].as_str());
        // The last line feed is that of the terminal.
        let text = text.collect::<String>();
        assert_eq!(text.trim_end_matches('\n'), printed.stdout.trim_end_matches('\n'));
    }
}

// The envelope.

/// The class of an error is a member of its own, in JSON and in YAML.
#[test]
fn errors_of_providers_have_a_class_in_the_envelope() {
    let folder = Folder::new();
    for (script, class, _, _) in provider_errors() {
        let (json, _) = exec(&folder, &script, &["--no-stream"]);
        let json: Value = serde_json::from_str(&json.stdout).expect("JSON");
        assert_eq!(json["error"]["class"], class, "{json}");
        assert_eq!(json["error"]["code"], "run_failed", "{json}");
        let (yaml, _) = exec(&folder, &script, &["--output", "yaml"]);
        let yaml: Value = serde_saphyr::from_str(&yaml.stdout).expect("YAML");
        assert_eq!(yaml["error"]["class"], class, "{yaml}");
    }
    let class = |words: &[&str]| {
        let ended = run(&folder, &[words, &["--no-stream"]].concat());
        let envelope: Value = serde_json::from_str(&ended.stdout).expect("JSON");
        envelope["error"]["class"].clone()
    };
    assert_eq!(class(&["exec", "hello", "--engine", "openai", "--model", "m"]), "auth");
    assert_eq!(class(&["exec", "hello", "--bogus"]), "config");
    assert_eq!(class(&["exec", " "]), Value::Null, "the code says it");
    assert_eq!(class(&["check", "nothing"]), Value::Null, "the code says it");
}

/// A run that failed is truncated if there is a part of its answer, in each form of an answer.
#[test]
fn a_failed_run_is_truncated_if_a_part_of_its_answer_came() {
    let folder = Folder::new();
    let partial = vec![Step::Text("{\"n\":1}\n{\"n\":".to_owned()), Step::Cut];
    let scripts: Vec<_> = provider_errors().into_iter().map(|(script, ..)| script).collect();
    let scripts = [scripts, vec![partial]].concat();
    // A line that is not whole is no value.
    for (kind, parts) in [("text", 3), ("json", 3), ("jsonl", 1)] {
        let file = format!("{kind}.yaml");
        let text = format!("prompt: hello\nresponse-type: {kind}\n");
        fs::write(folder.path(&file), text).expect("a file");
        let documents = scripts.iter().map(|script| {
            let (ended, _) = asked(&folder, &["run-command", &file], script, &["--output", "json"]);
            serde_json::from_str::<Value>(&ended.stdout).expect("JSON")
        });
        let truncated = documents.filter(|document| {
            let data = &document["data"];
            let has_part = !data.is_null() && *data != json!([]);
            assert_eq!(document["meta"]["truncated"], has_part, "{document}");
            has_part
        });
        assert_eq!(truncated.count(), parts, "{kind}");
    }
}

/// Each command, and the program without one, prints one document if `--no-stream` or
/// `--output json` is appended.
#[test]
fn every_command_prints_one_document_if_asked() {
    let folder = Folder::new();
    fs::write(folder.path("my-command.yaml"), MY_COMMAND).expect("a file");
    for words in [
        &[][..],
        &["rpc"],
        &["rpc", "--engine", "echo"],
        &["exec", "hello", "--engine", "echo"],
        &["exec", "hello", "--print-prompt"],
        &["run-command", "my-command.yaml", "--print-prompt"],
        &["list-events", "/dev/null"],
        &["schema"],
        &["schema", "json", "--for", "envelope"],
        &["schema", "descriptors"],
        &["schema", "--out", "protos"],
        &["man"],
        &["man", "--out", "pages"],
        &["completions", "bash"],
    ] {
        for option in [&["--no-stream"][..], &["--output", "json"], &["--output=json"]] {
            let words = [words, option].concat();
            let ended = run(&folder, &words);
            let envelope: Value = serde_json::from_str(&ended.stdout).expect("one document");
            assert_eq!((ended.status, &envelope["ok"]), (0, &json!(true)), "{words:?}: {ended:?}");
            assert!(!envelope["data"].is_null(), "{words:?}: {envelope}");
        }
    }
}

/// What goes wrong is in the document as well.
#[test]
fn every_command_prints_one_document_if_it_fails() {
    let folder = Folder::new();
    fs::write(folder.path("file"), "").expect("a file");
    for words in [
        &["--bogus"][..],
        &["rpc", "--bogus"],
        &["schema", "--bogus"],
        &["schema", "json", "--out", "protos"],
        &["schema", "--out", "file/protos"],
        &["man", "--bogus"],
        &["man", "--out", "file/pages"],
        &["completions", "abacus"],
        &["completions"],
    ] {
        for option in [&["--no-stream"][..], &["--output", "json"]] {
            let words = [words, option].concat();
            let ended = run(&folder, &words);
            let envelope: Value = serde_json::from_str(&ended.stdout).expect("one document");
            assert_eq!((ended.status, &envelope["ok"]), (2, &json!(false)), "{words:?}: {ended:?}");
            assert!(envelope["error"]["message"].is_string(), "{words:?}: {envelope}");
            assert!(!ended.stderr.is_empty(), "{words:?}");
        }
    }
}

/// A variable that says what `exec` prints is not about the protocol.
#[test]
fn the_variable_of_outputs_leaves_conversations_alone() {
    let folder = Folder::new();
    for words in [&["rpc"][..], &["rpc", "--bogus"], &[], &["--bogus"]] {
        let mut command = duologue(&folder, words);
        command.env("DUOLOGUE_OUTPUT", "json");
        let mut once = Once::start(command);
        once.close_stdin();
        let ended = once.finish();
        assert!(ended.stdout.starts_with("{\"version\":1,"), "{words:?}: {ended:?}");
    }
}

#[test]
fn output_that_is_not_streamed_is_one_json_document() {
    needs!(Python);
    let parse = r#"python3 -c "import sys,json; json.loads(sys.stdin.read())""#;
    for command in [
        r#"duologue exec --no-stream "x""#,
        r#"duologue exec --output json "x""#,
        "duologue exec --no-stream ' ' 2>/dev/null",
        "duologue exec --no-stream --bogus 2>/dev/null",
        "duologue run-command ./my-command.yaml --no-stream",
        "duologue run-command ./nothing.yaml --no-stream 2>/dev/null",
        "duologue rpc --no-stream </dev/null",
        "duologue rpc --output json </dev/null",
        "duologue --no-stream </dev/null",
        "duologue exec --print-prompt --no-stream x",
        "duologue schema --no-stream",
        "duologue man --no-stream",
        "duologue completions zsh --output json",
    ] {
        assert_eq!(prints(&format!("{command} | {parse}")), "", "{command}");
    }
    let folder = Folder::new();
    let streamed = shell(&folder, &format!("duologue exec --rpc x | {parse} 2>/dev/null"));
    assert_eq!(streamed.status, 1, "lines of JSON are no JSON document");
}

// The protocol's command lines.

#[test]
fn command_files_speak_the_protocol() {
    let jsonl = prints("duologue run-command ./my-command.yaml --output jsonl");
    let rpc = prints("duologue run-command ./my-command.yaml --rpc");
    for stdout in [&jsonl, &rpc] {
        let ended = Ended { status: 0, stdout: stdout.clone(), stderr: String::new() };
        Shape::OneShot.check(&ended);
    }
    assert_eq!(jsonl.lines().count(), rpc.lines().count());
    let frames = check_protocol(&rpc, 1, true);
    assert_eq!(rpc.matches("\"done\":{\"status\":\"ok\"}").count(), 1);
    let id = frames.last().expect("done").id().to_owned();
    assert!(finished_text(&frames, &id).contains("And what is two and two?"));
}

#[test]
fn text_is_printed_while_the_frames_are_copied() {
    let folder = Folder::new();
    let script = "duologue run-command ./my-command.yaml \\
  --debug-events-jsonl tmp/pinocchio-events.jsonl";
    let ended = shell(&folder, script);
    assert_eq!((ended.status, ended.stderr.as_str()), (0, ""));
    assert!(ended.stdout.starts_with("Turn 1. You said: And what is two and two?"), "{ended:?}");
    let copy = fs::read_to_string(folder.path("tmp/pinocchio-events.jsonl")).expect("the copy");
    check_protocol(&copy, 1, true);
}

/// The recipes of the protocol's documentation.
#[test]
fn the_recipes_of_the_protocol_work() {
    needs!(Jq);
    let recipe = |jq: &str| {
        prints(&format!("duologue run-command ./my-command.yaml --output jsonl \\\n  | {jq}"))
    };
    let answer = "Turn 1. You said: And what is two and two?";
    let ordinals = recipe("jq 'select(.uiEvent) | .uiEvent.ordinal | tonumber'");
    let ordinals: Vec<u64> = ordinals.lines().map(|line| line.parse().expect("a number")).collect();
    assert!(ordinals.is_sorted() && ordinals.first() == Some(&1), "{ordinals:?}");
    let joined = |lines: &str| lines.lines().collect::<String>();
    let patches = recipe(
        "jq -r '
      select(.uiEvent.name == \"ChatTextPatch\")
      | .uiEvent.payload.text
    '",
    );
    assert!(joined(&patches).starts_with(answer), "{patches}");
    let typed = recipe(
        "jq -r '
      select(.uiEvent.payload[\"@type\"] == \"type.googleapis.com/pinocchio.chatapp.v1.ChatTextPatch\")
      | .uiEvent.payload.text
    '",
    );
    assert_eq!(typed, patches);
    let last = recipe(
        "jq -r '
      select(.uiEvent.name == \"ChatTextSegmentFinished\")
      | select(.uiEvent.payload.role == \"assistant\")
      | .uiEvent.payload.content // .uiEvent.payload.text
    '",
    );
    assert!(last.starts_with(answer) && joined(&last) == joined(&patches), "{last}");
    // As it stands there: jq complains of frames that have no payload, and goes on.
    let tools = recipe(
        "jq 2>/dev/null '
      select(.uiEvent.payload[\"@type\"]? | test(\"pinocchio.chatapp.v1.ChatTool\"))
      | .uiEvent
    ' || true",
    );
    assert_eq!(tools, "");
    let done = values(&recipe("jq 'select(.done)'"));
    assert_eq!(done.len(), 1, "{done:?}");
    assert_eq!(recipe("jq 'select(.error.terminal == true) | .error'"), "");
    let failed = "duologue run-command ./my-command.yaml --echo-answer nothing --output jsonl \\
  2>/dev/null | jq 'select(.error.terminal == true) | .error'";
    assert_eq!(values(&prints(failed))[0]["code"], "engine_init_failed");
}

// A conversation that begins with a command file.

/// The messages that the model got, in the provider's words.
fn messages_of(provider: &Provider, request: usize) -> Value {
    let body = provider.wait_request(request).body;
    let message = |message: &Value| json!([message["role"], message["content"]]);
    body["messages"].as_array().map(|all| all.iter().map(message).collect()).unwrap_or_default()
}

/// The file's system prompt, messages and prompt are the context of the first turn, and stay.
#[test]
fn a_command_file_is_the_context_of_a_conversation() {
    let folder = Folder::new();
    let prompt = "system-prompt: Be brief.\nprompt: The topic is {{ .topic }}.\n\
                  flags: [{ name: topic, type: string, required: true }]\n";
    fs::write(folder.path("my-command.yaml"), MY_COMMAND).expect("a file");
    fs::write(folder.path("prompt.yaml"), prompt).expect("a file");
    let begun = json!([
        ["user", "What is one and one?"],
        ["assistant", "Two."],
        ["user", "And what is two and two?"],
        ["user", "first question"]
    ]);
    let topic = json!([["user", "The topic is numbers."], ["user", "first question"]]);
    let one = ("my-command.yaml", &[][..], begun);
    let other = ("prompt.yaml", &["--topic", "numbers"][..], topic);
    for (file, flags, context) in [one, other] {
        for options in [&["--rpc", "--stdin-rpc"][..], &["--output", "jsonl", "--stdin-rpc"]] {
            check_context(&folder.name(file), &[flags, options].concat(), &context);
        }
    }
}

/// Neighbours of one role are one message for a provider.
fn as_sent(messages: &[Value]) -> Value {
    let mut sent: Vec<Value> = Vec::new();
    for message in messages {
        match sent.last_mut() {
            Some(last) if last[0] == message[0] => {
                let texts = [&last[1], &message[1]].map(|text| text.as_str().unwrap_or_default());
                last[1] = texts.join("\n\n").into();
            }
            Some(_) | None => sent.push(message.clone()),
        }
    }
    sent.into()
}

#[track_caller]
fn check_context(file: &str, options: &[&str], context: &Value) {
    let provider = Provider::start(vec![says("first answer"), says("second answer")]);
    let provider = provider.taking_any_request();
    let base_url = provider.base_url();
    let words =
        ["run-command", file, "--engine", "openai", "--model", "m", "--base-url", &base_url];
    let mut server =
        Launch::new(&[&words, options].concat()).secret("DUOLOGUE_API_KEY", KEY).start();
    let hello = server.wait_hello();
    assert!(hello.0.to_string().contains("stdin-rpc"), "{hello:?}");
    assert_eq!(server.turn("r1", "first question"), "ok");
    assert_eq!(server.turn("r2", "follow-up question"), "ok");
    server.send(shutdown("r3"));
    let frames = server.finish_with(0, Answers::All).frames;
    assert_eq!(ends(&frames).last().map(|(_, how)| how.as_str()), Some("shutdown"));
    let mut expected = vec![json!(["system", "Be brief."])];
    expected.extend(context.as_array().cloned().unwrap_or_default());
    assert_eq!(messages_of(&provider, 1), as_sent(&expected), "{options:?}");
    expected.push(json!(["assistant", "first answer"]));
    expected.push(json!(["user", "follow-up question"]));
    assert_eq!(messages_of(&provider, 2), as_sent(&expected), "{options:?}");
    // All but the instructions to the model is part of the conversation.
    let snapshot = frames.iter().rfind(|frame| frame.is_snapshot()).expect("a snapshot");
    let shown = snapshot.messages().into_iter().map(|(role, text)| json!([role, text]));
    expected.remove(0);
    expected.push(json!(["assistant", "second answer"]));
    assert_eq!(shown.collect::<Vec<_>>(), expected);
}

/// A prompt that is typed is context as well.
#[test]
fn a_prompt_of_exec_is_the_context_of_a_conversation() {
    let provider = Provider::start(vec![says("an answer")]).taking_any_request();
    let base_url = provider.base_url();
    let words = ["exec", "The topic is numbers.", "--rpc", "--stdin-rpc", "--system", "Be brief."];
    let engine = ["--engine", "openai", "--model", "m", "--base-url", &base_url];
    let mut server =
        Launch::new(&[&words[..], &engine].concat()).secret("DUOLOGUE_API_KEY", KEY).start();
    server.send(submit("r1", "a question"));
    assert_eq!(server.wait_done("r1"), "ok");
    let frames = server.finish().frames;
    assert!(frames.iter().all(|frame: &Frame| frame.error().is_none()));
    let asked = ["user", "The topic is numbers.\n\na question"];
    assert_eq!(messages_of(&provider, 1), json!([["system", "Be brief."], asked]));
}

// What the documents refer to.

#[test]
fn the_topics_that_are_named_under_see_also_are_there() {
    let folder = Folder::new();
    for (topic, title) in [
        ("profile-resolution-runtime-switching", "# Profiles"),
        ("tui-integration-guide", "# A chat at a terminal"),
        ("chatapp-protobuf-plugins", "# The protocol"),
        ("outputs", "# Outputs"),
    ] {
        let ended = run(&folder, &["help", topic]);
        assert_eq!((ended.status, ended.stderr.as_str()), (0, ""), "{topic}");
        assert!(ended.stdout.starts_with(title), "{topic}: {}", &ended.stdout[..40]);
    }
    // As the pages link to each other, also where a command has the name.
    for link in ["profiles.md", "profiles.md#trust"] {
        assert!(run(&folder, &["help", link]).stdout.starts_with("# Profiles"), "{link}");
    }
    let chat = run(&folder, &["chat", "--help"]).stdout;
    assert!(chat.contains("See also:\n  duologue help chat-guide\n"), "{chat}");
    // Help about commands is as it was.
    let ended = run(&folder, &["help", "check"]);
    assert!(ended.stdout.starts_with("Check a stream"), "{}", ended.stdout);
    let ended = run(&folder, &["help", "no-such-topic"]);
    assert_eq!(ended.status, 2, "{ended:?}");
}
