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
#[ignore = "needs jq"]
fn the_examples_of_the_event_stream_work() {
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

/// The codes that its readers know, for what a provider can do wrong.
#[test]
fn errors_of_providers_have_the_documented_codes() {
    let status = |status, body: &str| vec![Step::Status(status, Vec::new(), body.to_owned())];
    let too_long = r#"{"error":{"message":"too long","code":"context_length_exceeded"}}"#;
    let cases = [
        (status(401, "{}"), "AUTH_EXPIRED"),
        (status(400, too_long), "CONTEXT_LIMIT"),
        (status(400, "{}"), "UNKNOWN"),
        (vec![Step::Text("a".to_owned()), Step::Cut], "NETWORK_TIMEOUT"),
        (vec![Step::Event("{".to_owned()), Step::Done], "MALFORMED_EVENT"),
    ];
    let folder = Folder::new();
    for (script, code) in cases {
        let provider = Provider::start(vec![script.clone()]);
        let base_url = provider.base_url();
        let words = ["exec", "hello", "--json-stream", "--model", "m", "--base-url", &base_url];
        let mut command = duologue(&folder, &[&words[..], &["--retries", "0"]].concat());
        command.env("DUOLOGUE_API_KEY", KEY);
        let ended = Once::start(command).finish();
        assert_eq!(ended.status, 1, "{ended:?}");
        let events = stream_events::events(&ended.stdout, 1).expect("as documented");
        let error = &events[events.len() - 2]["payload"]["error"];
        assert_eq!(error["code"], code, "{script:?}: {error}");
        assert!(ended.stderr.starts_with("duologue: "), "{ended:?}");
    }
}

// The envelope.

#[test]
#[ignore = "needs python3"]
fn output_that_is_not_streamed_is_one_json_document() {
    let parse = r#"python3 -c "import sys,json; json.loads(sys.stdin.read())""#;
    for command in [
        r#"duologue exec --no-stream "x""#,
        r#"duologue exec --output json "x""#,
        "duologue exec --no-stream ' ' 2>/dev/null",
        "duologue exec --no-stream --bogus 2>/dev/null",
        "duologue run-command ./my-command.yaml --no-stream",
        "duologue run-command ./nothing.yaml --no-stream 2>/dev/null",
        "duologue rpc --no-stream </dev/null",
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
    let script = "mkdir tmp && duologue run-command ./my-command.yaml \\
  --debug-events-jsonl tmp/pinocchio-events.jsonl";
    let ended = shell(&folder, script);
    assert_eq!((ended.status, ended.stderr.as_str()), (0, ""));
    assert!(ended.stdout.starts_with("Turn 1. You said: And what is two and two?"), "{ended:?}");
    let copy = fs::read_to_string(folder.path("tmp/pinocchio-events.jsonl")).expect("the copy");
    check_protocol(&copy, 1, true);
}

/// The recipes of the protocol's documentation.
#[test]
#[ignore = "needs jq"]
fn the_recipes_of_the_protocol_work() {
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

/// What the model was told, in the provider's words.
fn told(provider: &Provider, request: usize) -> Value {
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

#[track_caller]
fn check_context(file: &str, options: &[&str], context: &Value) {
    let provider = Provider::start(vec![says("first answer"), says("second answer")]);
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
    assert_eq!(told(&provider, 1), Value::from(expected.clone()), "{options:?}");
    expected.push(json!(["assistant", "first answer"]));
    expected.push(json!(["user", "follow-up question"]));
    assert_eq!(told(&provider, 2), Value::from(expected.clone()), "{options:?}");
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
    let provider = Provider::start(vec![says("an answer")]);
    let base_url = provider.base_url();
    let words = ["exec", "The topic is numbers.", "--rpc", "--stdin-rpc", "--system", "Be brief."];
    let engine = ["--engine", "openai", "--model", "m", "--base-url", &base_url];
    let mut server =
        Launch::new(&[&words[..], &engine].concat()).secret("DUOLOGUE_API_KEY", KEY).start();
    server.send(submit("r1", "a question"));
    assert_eq!(server.wait_done("r1"), "ok");
    let frames = server.finish().frames;
    assert!(frames.iter().all(|frame: &Frame| frame.error().is_none()));
    let (topic, asked) = (["user", "The topic is numbers."], ["user", "a question"]);
    assert_eq!(told(&provider, 1), json!([["system", "Be brief."], topic, asked]));
}
