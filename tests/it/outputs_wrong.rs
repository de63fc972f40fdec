//! Command lines that ask for nothing that can be done: what a reader of each output gets.

use crate::golden::{compare, section};
use crate::once::{Once, duologue, run};
use crate::outputs::folder;
use crate::provider::{Provider, Step};
use crate::server::Folder;
use crate::shape::Shape;
use serde_json::Value;
use std::fs;

/// Outputs that are asked for where nothing can be asked.
const WANTED: [(&[&str], Shape); 7] = [
    (&[], Shape::Text),
    (&["--output", "json"], Shape::Json),
    (&["-oyaml"], Shape::Yaml),
    (&["--rpc"], Shape::OneShot),
    (&["--output=objects"], Shape::Objects),
    (&["--json-stream"], Shape::Events),
    (&["--rpc", "--stdin-rpc"], Shape::Conversation(0)),
];

/// Command lines that ask for nothing that can be done.
const WRONG: &[(&str, &[&str])] = &[
    ("blank_prompt", &["exec", " \n"]),
    ("empty_input", &["exec", "-"]),
    ("unknown_option", &["exec", "hello", "--bogus"]),
    ("unknown_engine", &["exec", "hello", "--engine", "bogus"]),
    ("no_prompt_file", &["exec", "--prompt-file", "nothing.txt"]),
    ("prompt_file_is_no_text", &["exec", "--prompt-file", "bytes"]),
    ("unwritable_debug_file", &["exec", "hello", "--debug-events-jsonl", "list.yaml/events"]),
    ("no_echo_answer", &["exec", "hello", "--engine", "echo", "--echo-answer", "nothing.txt"]),
    ("echo_answer_is_no_text", &["exec", "hello", "--engine", "echo", "--echo-answer", "bytes"]),
    ("no_command_file_named", &["run-command"]),
    ("no_command_file", &["run-command", "nothing.yaml"]),
    ("command_file_is_a_folder", &["run-command", "."]),
    ("oversized_command_file", &["run-command", "large.yaml"]),
    ("wrong_yaml", &["run-command", "wrong_yaml.yaml"]),
    ("wrong_template", &["run-command", "wrong_template.yaml"]),
    ("template_fails", &["run-command", "template_fails.yaml"]),
    ("wrong_schema", &["run-command", "wrong_schema.yaml"]),
    ("remote_schema", &["run-command", "remote_schema.yaml"]),
    ("nothing_to_ask", &["run-command", "nothing_to_ask.yaml"]),
    ("blank_rendered_prompt", &["run-command", "blank.yaml"]),
    ("missing_flag", &["run-command", "flags.yaml"]),
    ("unknown_flag", &["run-command", "flags.yaml", "--who", "me", "--bogus"]),
    ("wrong_flag_value", &["run-command", "flags.yaml", "--who", "me", "--times", "many"]),
];

/// The files they name.
const FILES: [(&str, &str); 8] = [
    ("wrong_yaml.yaml", "name: wrong\nprompt: [1\n"),
    ("wrong_template.yaml", "name: wrong\nprompt: |\n  Hello {{ .who\n"),
    ("template_fails.yaml", "name: wrong\nprompt: |\n  Hello {{ index .who 5 }}\n"),
    ("wrong_schema.yaml", "prompt: hello\nresponse-type: json\nschema: { type: 5 }\n"),
    (
        "remote_schema.yaml",
        "prompt: hello\nresponse-type: jsonl\nschema: { $ref: \"https://example.com/a.json\" }\n",
    ),
    ("nothing_to_ask.yaml", "name: nothing\n"),
    ("blank.yaml", "flags: [{ name: who, type: string, default: \"\" }]\nprompt: \"{{ .who }}\"\n"),
    (
        "flags.yaml",
        "flags:\n  - { name: who, type: string, required: true }\n  - { name: times, type: int }\n\
         prompt: Hello {{ .who }}.\n",
    ),
];

#[test]
fn command_lines_that_ask_for_nothing() {
    let folder = folder();
    for (name, text) in FILES {
        fs::write(folder.path(name), text).expect("a file");
    }
    fs::write(folder.path("bytes"), [b'a', 0xff]).expect("a file");
    let large = format!("name: large\nprompt: {}\n", "x".repeat(1024 * 1024));
    fs::write(folder.path("large.yaml"), large).expect("a file");
    for (name, words) in WRONG {
        let mut golden = String::new();
        for (options, shape) in WANTED {
            let words = [words, options].concat();
            let ended = run(&folder, &words);
            shape.check(&ended);
            golden += &section(&words, &ended, &folder);
        }
        compare(&format!("wrong_{name}"), &golden);
    }
}

#[test]
fn options_that_contradict_each_other() {
    let folder = folder();
    // The error has the form of the one whose reader needs it most.
    let pairs: [(&[&str], Shape); 4] = [
        (&["--output", "yaml", "--rpc"], Shape::OneShot),
        (&["--output", "json", "--json-stream"], Shape::Events),
        (&["--json-stream", "--stdin-rpc"], Shape::Events),
        (&["--rpc", "--json-stream"], Shape::Events),
    ];
    let mut golden = String::new();
    for (options, shape) in pairs {
        for words in [&["exec", "hello"], &["run-command", "list.yaml"]] {
            let words = [words, options].concat();
            let ended = run(&folder, &words);
            assert_eq!(ended.status, 2, "{words:?}");
            shape.check(&ended);
            golden += &section(&words, &ended, &folder);
        }
    }
    compare("contradiction", &golden);
}

/// A program that reads only one document appends `--no-stream` to all other options.
#[test]
fn a_document_is_printed_whatever_else_is_asked_for() {
    let folder = folder();
    for options in [&["--rpc"][..], &["--json-stream"], &["-ojsonl"], &["-otext"], &["-oobjects"]] {
        let words = [&["exec", "hello", "--engine", "echo", "--no-stream"], options].concat();
        let ended = run(&folder, &words);
        assert_eq!(ended.status, 0, "{words:?}: {ended:?}");
        Shape::Json.check(&ended);
    }
    let ended = run(&folder, &["exec", "hello", "--engine", "echo", "--no-stream", "-oyaml"]);
    Shape::Yaml.check(&ended);
}

/// What has no end is read as far as there is room for it.
#[test]
fn endless_files_are_refused() {
    let folder = folder();
    for words in [
        &["exec", "--prompt-file", "/dev/zero", "--output", "json"][..],
        &["run-command", "/dev/zero", "--output", "json"],
    ] {
        let ended = run(&folder, words);
        assert_eq!(ended.status, 2, "{ended:?}");
        assert!(ended.stderr.contains("it has more than"), "{ended:?}");
        Shape::Json.check(&ended);
    }
}

/// Requests and something else can't both come from standard input, and waiting for it would never
/// end.
#[test]
fn standard_input_holds_requests_or_something_else() {
    let folder = Folder::new();
    fs::write(folder.name("file.yaml"), "prompt: a\nflags: [{name: text, type: stringFromFile}]\n")
        .expect("a file");
    for words in [
        &["exec", "-"][..],
        &["exec", "--prompt-file", "-"],
        &["run-command", "-"],
        &["run-command", "file.yaml", "--text", "-"],
    ] {
        let once = Once::start(duologue(&folder, &[words, &["--rpc", "--stdin-rpc"]].concat()));
        let ended = once.finish();
        assert_eq!(ended.status, 2, "{words:?}: {ended:?}");
        assert!(ended.stderr.contains("standard input"), "{words:?}: {ended:?}");
        assert!(ended.stdout.contains("\"terminal\":true"), "{words:?}: {ended:?}");
    }
}

#[test]
fn an_error_has_the_form_that_was_asked_for_wherever_it_was_asked_for() {
    let folder = Folder::new();
    fs::write(folder.name("wrong.yaml"), "prompt: a\nresponse-type: jsonl\nschema: 5\n")
        .expect("a file");
    let check = |words: &[&str], begins: &str| {
        let ended = run(&folder, words);
        assert_eq!(ended.status, 2, "{words:?}: {ended:?}");
        assert!(ended.stdout.starts_with(begins), "{words:?}: {ended:?}");
        assert_eq!(ended.stdout.is_empty(), begins.is_empty(), "{words:?}: {ended:?}");
    };
    check(&["rpc", "--no-stream", "--bogus"], "{\n  \"ok\": false");
    check(&["--no-stream", "--bogus"], "{\n  \"ok\": false");
    check(&["--engine", "echo", "exec", "hello"], "");
    check(&["--engine", "echo", "exec", "hello", "--json-stream"], "{\"protocol\":1");
    check(&["exec", "hello", "-o=json", "--bogus"], "{\n  \"ok\": false");
    // Behind `--` there are no options, but a flag may have it as its value.
    check(&["exec", "--engine", "bogus", "--", "--json-stream"], "");
    check(&["exec", "--engine", "bogus", "-ojson", "--", "-oyaml"], "{\n  \"ok\": false");
    fs::write(folder.name("flag.yaml"), "prompt: a\nflags: [{name: text, type: string}]\n")
        .expect("a file");
    let flag = ["run-command", "flag.yaml", "--engine", "bogus", "--text", "--"];
    check(&[&flag[..], &["--json-stream"]].concat(), "{\"protocol\":1");
    check(&[&flag[..], &["--", "--json-stream"]].concat(), "");
    let objects = ["run-command", "wrong.yaml", "--output", "objects"];
    check(&objects, "{\"_format\"");
    check(&[&objects[..], &["--no-preamble"]].concat(), "");
}

#[test]
fn a_document_is_printed_by_every_command_that_is_wrong() {
    let folder = Folder::new();
    for words in [
        &["tools"][..],
        &["tools", "--mcp", "a 'b"],
        &["mcp", "prompts"],
        &["mcp", "resources"],
        &["mcp", "prompts", "--bogus"],
        &["run", "nothing"],
        &["nothing"],
    ] {
        let ended = run(&folder, &[words, &["--no-stream"]].concat());
        assert_eq!(ended.status, 2, "{words:?}: {ended:?}");
        let document: Value = serde_json::from_str(&ended.stdout).expect("JSON");
        assert_eq!(document["ok"], false, "{words:?}: {document}");
        assert!(document["error"]["message"].is_string(), "{words:?}: {document}");
        // Without the option nothing is printed.
        assert_eq!(run(&folder, words).stdout, "", "{words:?}");
    }
}

#[test]
fn an_option_wins_over_a_variable_that_makes_no_sense() {
    let folder = Folder::new();
    for (words, begins) in
        [(&["--rpc"][..], "{\"version\":1"), (&["--no-stream"], "{\n  \"ok\": true")]
    {
        let words = [&["exec", "hello", "--engine", "echo"], words].concat();
        let mut command = duologue(&folder, &words);
        command.env("DUOLOGUE_OUTPUT", "bogus");
        let ended = Once::start(command).finish();
        assert_eq!(ended.status, 0, "{words:?}: {ended:?}");
        assert!(ended.stdout.starts_with(begins), "{words:?}: {ended:?}");
    }
}

#[test]
fn standard_input_is_read_by_all_its_names() {
    let folder = Folder::new();
    for words in [&["exec", "-"][..], &["exec", "--prompt-file", "/dev/stdin"], &["exec"]] {
        let mut once = Once::start(duologue(&folder, &[words, &["--engine", "echo"]].concat()));
        once.write("hello");
        let ended = once.finish();
        assert_eq!(ended.stdout, "Turn 1. You said: hello\n", "{words:?}: {ended:?}");
    }
    let mut once =
        Once::start(duologue(&folder, &["run-command", "/dev/stdin", "--engine", "echo"]));
    once.write("prompt: hello");
    assert_eq!(once.finish().stdout, "Turn 1. You said: hello\n");
    let lost = run(&folder, &["exec", "a", "--engine", "echo", "--echo-answer", "/dev/stdin"]);
    assert_eq!(lost.status, 2, "{lost:?}");
}

/// A provider is not to clear a person's screen, or to write lines that look like ours.
#[test]
fn what_a_provider_says_can_do_nothing_to_a_terminal() {
    let body = r#"{"error":{"message":"b\u001b[2Jad\u0007\nduologue: forged\u009b31m"}}"#;
    let failing = || vec![Step::Status(500, Vec::new(), body.to_owned())];
    let provider = Provider::start(vec![failing(), failing()]);
    let folder = Folder::new();
    let url = provider.base_url();
    let words = ["exec", "hello", "--engine", "openai", "--model", "m", "--retries", "1"];
    let mut command = duologue(&folder, &[&words[..], &["--base-url", &url]].concat());
    command.env("DUOLOGUE_API_KEY", "sk-test");
    let ended = Once::start(command).finish();
    assert_eq!(ended.status, 75, "{ended:?}");
    let forged = ended.stderr.lines().filter(|line| line.starts_with("duologue: forged")).count();
    assert_eq!(forged, 0, "{ended:?}");
    let is_obeyed = |char: char| char.is_control() && char != '\n';
    assert!(!ended.stderr.contains(is_obeyed), "{ended:?}");
}

#[test]
fn an_answer_is_read_from_a_file_and_not_from_a_pipe_that_nobody_fills() {
    let folder = Folder::new();
    folder.fifo("pipe");
    let ended = run(&folder, &["exec", "a", "--engine", "echo", "--echo-answer", "pipe", "--rpc"]);
    assert_eq!(ended.status, 2, "{ended:?}");
    assert!(ended.stderr.contains("not a regular file"), "{ended:?}");
}
