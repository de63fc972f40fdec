//! Conversations that do not begin with the first prompt: what was said before comes from a command
//! file or from `--history`, reaches the provider in an order that providers take, and is in the first
//! snapshot as it was written.

use crate::frames::{Frame, snapshot};
use crate::once::{Once, duologue, run};
use crate::oracle::Answers;
use crate::provider::{Provider, says};
use crate::server::{Folder, KEY, Launch, Transcript, openai};
use serde_json::{Value, json};
use std::fs;
use std::process::Command;

/// Two messages that a client can see, and one that it can't.
const HISTORY: &str = r#"{"role":"system","text":"Be brief."}
{"role":"user","text":"What is {{ this }}?"}

{"role":"assistant","content":"A Go template."}
"#;

/// The same messages as a provider gets them.
fn sent() -> Vec<Value> {
    vec![
        json!({"role": "system", "content": "Be brief."}),
        json!({"role": "user", "content": "What is {{ this }}?"}),
        json!({"role": "assistant", "content": "A Go template."}),
    ]
}

fn user(text: &str) -> Value {
    json!({"role": "user", "content": text})
}

/// What stands where a conversation has no message of the user, and providers require one.
fn begin() -> Value {
    user("[The user sent no text. Go on.]")
}

/// A folder with a file of this name and text.
fn folder(name: &str, text: &str) -> Folder {
    let folder = Folder::new();
    fs::write(folder.path(name), text).expect("a file");
    folder
}

/// `duologue run-command <file> <words>` with `provider`, to its end.
fn run_command(provider: &Provider, file: &str, words: &[&str]) -> Transcript {
    let base_url = provider.base_url();
    let engine = ["--engine", "openai", "--model", "m", "--base-url", &base_url];
    let words = [&["run-command", file], words, &engine].concat();
    let mut server = Launch::new(&words).secret("DUOLOGUE_API_KEY", KEY).start();
    server.close_stdin();
    server.finish_with(0, Answers::AllAndFarewell)
}

fn messages(provider: &Provider) -> Value {
    provider.wait_request(1).body["messages"].clone()
}

fn first_snapshot(frames: &[Frame]) -> &Frame {
    frames.iter().find(|frame| frame.is_snapshot()).expect("a snapshot")
}

/// Each message has an id of its own, and no ordinal: it is older than the first event, which has 1.
#[track_caller]
fn check_entities(frames: &[Frame], count: usize) {
    let snapshot = first_snapshot(frames);
    let entities = snapshot.0["snapshot"]["entities"].as_array().expect("entities");
    assert_eq!(entities.len(), count, "{snapshot:?}");
    for entity in entities {
        assert_eq!(entity["kind"], "ChatMessage", "{entity}");
        assert_eq!(entity["payload"]["messageId"], entity["id"], "{entity}");
        assert!(entity.get("createdOrdinal").is_none(), "{entity}");
        assert!(entity.get("lastEventOrdinal").is_none(), "{entity}");
        let others = entities.iter().filter(|other| other["id"] == entity["id"]);
        assert_eq!(others.count(), 1, "{entity}");
    }
    assert_eq!(snapshot.text("/snapshot/snapshotOrdinal"), "");
    assert_eq!(frames.iter().find_map(Frame::ordinal), Some(1));
}

#[test]
fn a_history_begins_the_conversation_of_a_server() {
    let folder = folder("history.jsonl", HISTORY);
    let provider = Provider::start(vec![says("fine")]);
    let history = folder.name("history.jsonl");
    let mut server = openai(&provider, &["--history", &history]).start();
    server.send(snapshot("s"));
    assert_eq!(server.wait_done("s"), "ok");
    assert_eq!(server.turn("r", "And {{ that }}?"), "ok");
    let frames = server.finish().frames;
    let first = first_snapshot(&frames);
    let expected = [("user", "What is {{ this }}?"), ("assistant", "A Go template.")];
    assert_eq!(first.messages(), expected);
    check_entities(&frames, 2);
    assert_eq!(messages(&provider), json!([sent(), vec![user("And {{ that }}?")]].concat()));
}

/// A history may be a named pipe whose writer never writes.
#[test]
fn a_process_that_waits_for_a_history_ends_with_its_reader() {
    let folder = Folder::new();
    folder.fifo("history");
    let history = folder.path("history");
    let _writer = fs::File::options().read(true).write(true).open(history).expect("a pipe");
    fs::write(folder.path("f.yaml"), "prompt: hi").expect("a file");
    for words in [&["rpc"][..], &["exec", "hi"], &["run-command", "f.yaml"]] {
        let words = [words, &["--engine", "echo", "--history", "history"]].concat();
        let (once, stdout) = Once::start_unread(duologue(&folder, &words));
        drop(stdout);
        let ended = once.finish();
        assert_eq!((ended.status, ended.stderr.as_str()), (0, ""), "{words:?}");
    }
}

/// An assistant's greeting comes first, and a message may have been split into two.
#[test]
fn a_history_that_begins_with_the_model_is_one_that_providers_take() {
    let greeting = r#"{"role":"assistant","text":"Hello."}
{"role":"assistant","text":"How can I help?"}
"#;
    let folder = folder("history.jsonl", greeting);
    let history = folder.name("history.jsonl");
    let provider = Provider::start(vec![says("fine"), says("fine again")]);
    let mut server = openai(&provider, &["--history", &history]).start();
    server.send(snapshot("s"));
    assert_eq!(server.wait_done("s"), "ok");
    assert_eq!(server.turn("r1", "one"), "ok");
    assert_eq!(server.turn("r2", "two"), "ok");
    let frames = server.finish().frames;
    let expected = [("assistant", "Hello."), ("assistant", "How can I help?")];
    assert_eq!(first_snapshot(&frames).messages(), expected, "people see what was written");
    let model = |text: &str| json!({"role": "assistant", "content": text});
    let first = [begin(), model("Hello.\n\nHow can I help?"), user("one")];
    assert_eq!(messages(&provider), json!(first));
    let second = provider.wait_request(2).body["messages"].clone();
    assert_eq!(second, json!([&first[..], &[model("fine"), user("two")]].concat()));
}

/// The model goes on with an answer that a command file begins.
#[test]
fn an_answer_that_a_command_file_begins_stays_last() {
    let text = "messages: [How much is it?, {role: assistant, text: 'The answer is '}]\n";
    let folder = folder("f.yaml", text);
    // A rule that is broken on purpose: the last message is the user's.
    let provider = Provider::start(vec![says("42")]).taking_any_request();
    run_command(&provider, &folder.name("f.yaml"), &["--rpc"]);
    let begun = json!({"role": "assistant", "content": "The answer is "});
    assert_eq!(messages(&provider), json!([user("How much is it?"), begun]));
}

#[test]
fn exec_takes_up_a_history() {
    let folder = folder("history.jsonl", HISTORY);
    let provider = Provider::start(vec![says("fine")]);
    let base_url = provider.base_url();
    let words = ["exec", "And?", "--history", "history.jsonl", "--model", "m", "--base-url"];
    let ended = run(&folder, &[&words[..], &[&base_url]].concat());
    assert_eq!((ended.status, ended.stdout.as_str()), (0, "fine\n"), "{ended:?}");
    assert_eq!(messages(&provider), json!([sent(), vec![user("And?")]].concat()));
}

/// A chat is prepared apart from a single run, and reads what a shell's `<(command)` gives no second time.
#[test]
fn a_chat_that_begins_with_a_command_file_takes_up_a_history_from_a_pipe() {
    let folder = folder("f.yaml", "prompt: And?");
    let provider = Provider::start(vec![says("fine")]);
    let base_url = provider.base_url();
    let words = ["run-command", "f.yaml", "--chat", "--history", "/dev/fd/9", "--engine", "openai"];
    let words = [&words[..], &["--model", "m", "--base-url", &base_url]].concat();
    let mut command = with_input_as_nine(&duologue(&folder, &words));
    command.env("DUOLOGUE_API_KEY", KEY);
    let mut once = Once::start(command);
    once.write(HISTORY);
    let ended = once.finish();
    assert_eq!(ended.status, 0, "{ended:?}");
    assert_eq!(messages(&provider), json!([sent(), vec![user("And?")]].concat()));
}

/// `command` with what is written to it in descriptor 9, and nothing on standard input.
fn with_input_as_nine(command: &Command) -> Command {
    let mut shell = Command::new("sh");
    shell.args(["-c", "exec 9<&0 </dev/null; exec \"$0\" \"$@\""]);
    shell.arg(command.get_program()).args(command.get_args()).env_clear();
    shell.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    shell.current_dir(command.get_current_dir().expect("a folder"));
    shell
}

/// The file's own messages are the older ones.
#[test]
fn a_command_file_takes_up_a_history() {
    let folder = folder("history.jsonl", HISTORY);
    fs::write(folder.path("f.yaml"), "messages: [Hi]\nprompt: And?").expect("a file");
    let provider = Provider::start(vec![says("fine")]);
    let history = folder.name("history.jsonl");
    let words = ["--rpc", "--history", &history];
    let frames = run_command(&provider, &folder.name("f.yaml"), &words).frames;
    check_entities(&frames, 3);
    assert_eq!(messages(&provider), json!([vec![user("Hi")], sent(), vec![user("And?")]].concat()));
}

#[test]
fn a_line_that_is_no_message_is_refused_with_its_number() {
    let folder =
        folder("history.jsonl", &format!("{HISTORY}{{\"role\":\"tool\",\"text\":\"x\"}}\n"));
    fs::write(folder.path("f.yaml"), "prompt: hi").expect("a file");
    for words in [&["rpc"][..], &["exec", "hi"], &["run-command", "f.yaml"]] {
        let ended = run(&folder, &[words, &["--history", "history.jsonl"]].concat());
        assert_eq!(ended.status, 2, "{words:?} {ended:?}");
        let error = "history.jsonl:5: `role` is \"tool\"; it can be user, assistant or system";
        assert!(ended.stderr.contains(error), "{words:?} {ended:?}");
    }
    for (name, error) in [("nothing", "check its name"), ("-", "name that")] {
        let ended = run(&folder, &["exec", "hi", "--history", name]);
        assert_eq!(ended.status, 2, "{ended:?}");
        assert!(ended.stderr.contains(error), "{ended:?}");
    }
}

#[test]
fn messages_of_a_command_file_are_sent_in_their_order() {
    let text = "
system-prompt: Be {{ .how }}.
flags: [{name: how, type: string, default: brief}]
messages:
  - {text: 'first {{ .how }}'}
  - second, {{ .how }}
  - {role: assistant, text: third}
  - {role: system, text: fourth}
prompt: 'fifth, {{ .how }}'
";
    let folder = folder("f.yaml", text);
    let provider = Provider::start(vec![says("fine")]);
    let transcript = run_command(&provider, &folder.name("f.yaml"), &["--rpc"]);
    let expected = json!([
        {"role": "system", "content": "Be brief."},
        user("first {{ .how }}\n\nsecond, brief"),
        {"role": "assistant", "content": "third"},
        {"role": "system", "content": "fourth"},
        user("fifth, brief"),
    ]);
    assert_eq!(messages(&provider), expected);
    check_entities(&transcript.frames, 3);
    let warning = "f.yaml:5: `messages[0]` looks like a template and is sent as it is written";
    assert!(transcript.stderr.contains(warning), "{}", transcript.stderr);
}

#[test]
fn messages_are_templates_where_the_file_says_so() {
    let text = "
flags: [{name: how, type: string, default: brief}]
messages-template: true
messages: [{text: 'first {{ .how }}'}, 'second {{ .how }}']
";
    let folder = folder("f.yaml", text);
    let provider = Provider::start(vec![says("fine")]);
    let transcript = run_command(&provider, &folder.name("f.yaml"), &["--rpc"]);
    assert_eq!(messages(&provider), json!([user("first brief\n\nsecond brief")]));
    assert_eq!(transcript.stderr, "");
}

#[test]
fn a_system_prompt_alone_is_answered() {
    let folder = folder("f.yaml", "system-prompt: Tell a joke.\n");
    let provider = Provider::start(vec![says("Knock, knock."), says("Knock, knock.")]);
    let frames = run_command(&provider, &folder.name("f.yaml"), &["--rpc"]).frames;
    assert_eq!(frames.last().and_then(Frame::done), Some("ok"));
    assert_eq!(
        messages(&provider),
        json!([{"role": "system", "content": "Tell a joke."}, begin()])
    );
    let base_url = provider.base_url();
    let words = ["run-command", "f.yaml", "--model", "m", "--base-url", &base_url];
    let ended = run(&folder, &words);
    assert_eq!((ended.status, ended.stdout.as_str()), (0, "Knock, knock.\n"), "{ended:?}");
}

/// A prompt of nothing is still refused where there is nothing else to answer.
#[test]
fn a_prompt_that_is_all_there_is_must_say_something() {
    let folder =
        folder("f.yaml", "prompt: '{{ .x }}'\nflags: [{name: x, type: string, default: ''}]");
    let ended = run(&folder, &["run-command", "f.yaml"]);
    assert_eq!(ended.status, 2, "{ended:?}");
    assert!(ended.stderr.contains("the prompt is blank"), "{ended:?}");
}

#[test]
fn what_would_be_asked_is_shown_with_its_roles() {
    let folder = folder("history.jsonl", HISTORY);
    fs::write(folder.path("f.yaml"), "system-prompt: |\n  Be kind.\nmessages: [Hi]\nprompt: And?")
        .expect("a file");
    let words = ["run-command", "f.yaml", "--history", "history.jsonl", "--print-prompt"];
    let ended = run(&folder, &words);
    let expected = "[system]\nBe kind.\n\n[user]\nHi\n\n[system]\nBe brief.\n\n\
                    [user]\nWhat is {{ this }}?\n\n[assistant]\nA Go template.\n\n[user]\nAnd?\n";
    assert_eq!((ended.status, ended.stdout.as_str()), (0, expected), "{ended:?}");
    let ended = run(&folder, &["exec", "And?", "--history", "history.jsonl", "--print-prompt"]);
    assert!(ended.stdout.ends_with("[assistant]\nA Go template.\n\n[user]\nAnd?\n"), "{ended:?}");
    let mut command = duologue(&folder, &words);
    command.args(["--output", "json"]);
    let shown: Value =
        serde_json::from_slice(&command.output().expect("it runs").stdout).expect("JSON");
    assert_eq!(shown["data"]["messages"].as_array().map(Vec::len), Some(4), "{shown}");
}

#[test]
fn a_name_without_a_value_is_refused_where_that_is_wanted() {
    let text = "
flags: [{name: who, type: string}, {name: what, type: string}]
system-prompt: '{{ if .who }}Be {{ .who }}.{{ end }}'
prompt: |
  Tell me.
  {{ .what }}
";
    let folder = folder("f.yaml", text);
    let strict = ["run-command", "f.yaml", "--strict", "--print-prompt"];
    let ended = run(&folder, &strict);
    assert_eq!(ended.status, 2, "{ended:?}");
    let error = "f.yaml:6: the template in `prompt`: this prints a missing value";
    assert!(ended.stderr.contains(error), "{ended:?}");
    let ended = run(&folder, &[&strict[..], &["--what", "a joke"]].concat());
    assert_eq!((ended.status, ended.stdout.as_str()), (0, "Tell me.\na joke\n"), "{ended:?}");
    fs::write(folder.path("f.yaml"), text.replace("if .who", "if .whom")).expect("a file");
    let ended = run(&folder, &[&strict[..], &["--what", "a joke"]].concat());
    let error = "f.yaml:3: the template in `system-prompt`: there is no value named .whom";
    assert!(ended.status == 2 && ended.stderr.contains(error), "{ended:?}");
    let ended = run(&folder, &["run-command", "f.yaml", "--print-prompt"]);
    assert!(ended.status == 0 && ended.stdout.contains("<no value>"), "{ended:?}");
}

/// Messages that come later are no part of what was said before.
#[test]
fn a_session_goes_on_with_the_messages_that_it_began_with() {
    let own = "messages: [before, {role: assistant, text: so}]\nprompt: one\n";
    let folder = folder("own.yaml", own);
    fs::write(folder.path("other.yaml"), own.replace("before", "other")).expect("a file");
    let provider = Provider::start((1..=6).map(|number| says(&number.to_string())).collect());
    let base_url = provider.base_url();
    let ask = |words: &[&str], status: i32| {
        let options =
            ["--store", "s.db", "--engine", "openai", "--model", "m", "--base-url", &base_url];
        let mut command = duologue(&folder, &[words, &options].concat());
        command.env("DUOLOGUE_API_KEY", KEY);
        let mut once = Once::start(command);
        if words.contains(&"--stdin-rpc") {
            once.offer("{\"requestId\":\"r\",\"submit\":{\"prompt\":\"And?\"}}\n");
        }
        let ended = once.finish();
        assert_eq!(ended.status, status, "{words:?} {ended:?}");
        let is_refused = ended.stderr.contains("can't be put before what was said there")
            || ended.stdout.contains("can't be put before what was said there");
        assert_eq!(is_refused, status == 2, "{words:?} {ended:?}");
    };
    let sent = |number: usize| {
        let messages = provider.wait_request(number).body["messages"].clone();
        let messages = messages.as_array().expect("messages").iter();
        messages.map(|it| it["content"].as_str().expect("text").to_owned()).collect::<Vec<_>>()
    };
    ask(&["run-command", "own.yaml", "--session", "A"], 0);
    ask(&["run-command", "own.yaml", "--session", "A"], 0);
    ask(&["run-command", "other.yaml", "--session", "A"], 2);
    ask(&["exec", "two", "--session", "A"], 0);
    assert_eq!(sent(3), ["before", "so", "one", "1", "one", "2", "two"]);
    ask(&["exec", "one", "--session", "B"], 0);
    ask(&["run-command", "own.yaml", "--session", "B"], 2);
    ask(&["exec", "context", "--stdin-rpc", "--session", "B"], 2);
    ask(&["exec", "context", "--stdin-rpc", "--session", "C"], 0);
    ask(&["exec", "context", "--stdin-rpc", "--session", "C"], 0);
    ask(&["exec", "other", "--stdin-rpc", "--session", "C"], 2);
    assert_eq!(sent(6), ["context\n\nAnd?", "5", "And?"]);
    assert_eq!(provider.requests(), 6);
}
