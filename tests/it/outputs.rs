//! Every output of a single run, for every way in which a run can end: what a reader of each gets,
//! kept as text in `tests/golden_outputs`.
//!
//! `UPDATE_GOLDEN=1` writes these files anew; look at the difference before it is kept.

use crate::frames::submit;
use crate::once::{Ended, Once, duologue, normal, run};
use crate::process::eventually;
use crate::provider::{Provider, Step, says};
use crate::server::{Folder, KEY};
use crate::shape::Shape;
use rustix::process::Signal;
use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::Path;

const GOLDEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden_outputs");

/// A command file that asks for a JSON object on each line.
const LIST: &str = "\
name: extract
short: Name the entities
response-type: jsonl
schema:
  type: object
  properties:
    entity: { type: string }
  required: [entity]
prompt: Name the entities.
";

/// What is run, and what its standard output is.
const RUNS: [(&[&str], Shape); 13] = [
    (&["exec", "hello"], Shape::Text),
    (&["exec", "hello", "--output", "json"], Shape::Json),
    (&["exec", "hello", "--output", "yaml"], Shape::Yaml),
    (&["exec", "hello", "--output", "jsonl"], Shape::OneShot),
    (&["exec", "hello", "--json-stream"], Shape::Events),
    (&["exec", "--rpc", "--stdin-rpc"], Shape::Conversation(1)),
    (&["exec", "--stdin-rpc", "--no-stream"], Shape::Frames),
    (&["run-command", "list.yaml", "--output", "objects"], Shape::Objects),
    (&["run-command", "list.yaml", "--output", "json"], Shape::Json),
    (&["run-command", "list.yaml", "--json-stream"], Shape::Events),
    (&["run-command", "list.yaml"], Shape::Text),
    (&["run-command", "document.yaml", "--output", "json"], Shape::Json),
    (&["run-command", "document.yaml", "--output", "jsonl"], Shape::OneShot),
];

/// How a run ends.
#[derive(Clone, Copy)]
enum End {
    /// The provider ends it.
    ByItself,
    /// A signal comes once some of the answer has.
    By(Signal),
}

fn text(text: &str) -> Step {
    Step::Text(text.to_owned())
}

/// A folder with the command files that are run.
fn folder() -> Folder {
    let folder = Folder::new();
    fs::write(folder.path("list.yaml"), LIST).expect("a file");
    let document = LIST.replace("response-type: jsonl", "response-type: json");
    fs::write(folder.path("document.yaml"), document).expect("a file");
    folder
}

/// Runs everything against a provider with this script, and holds it against the golden file.
#[track_caller]
fn check(name: &str, script: &[Step], end: End) {
    let folder = folder();
    let mut golden = String::new();
    for (words, shape) in RUNS {
        let ended = play(&folder, words, script, end, shape);
        shape.check(&ended);
        golden += &section(words, &ended, &folder);
    }
    compare(name, &golden);
}

#[track_caller]
fn play(folder: &Folder, words: &[&str], script: &[Step], end: End, shape: Shape) -> Ended {
    let provider = Provider::start(vec![script.to_vec()]);
    let base_url = provider.base_url();
    let log = folder.name("log");
    let mut words = words.to_vec();
    words.extend(["--engine", "openai", "--model", "scripted", "--base-url", &base_url]);
    words.extend(["--retries", "0"]);
    if let End::By(_) = end {
        words.extend(["--log-level", "trace", "--log-file", &log]);
    }
    let mut command = duologue(folder, &words);
    command.env("DUOLOGUE_API_KEY", KEY);
    let mut once = Once::start(command);
    if let Shape::Conversation(_) | Shape::Frames = shape {
        writeln!(once.stdin(), "{}", submit("r1", "hello")).expect("the process reads");
    }
    match end {
        End::ByItself => once.close_stdin(),
        End::By(signal) => {
            eventually("some of the answer has come", || {
                let log = fs::read_to_string(&log).unwrap_or_default();
                log.contains("event=\"text\"").then_some(())
            });
            once.signal(signal);
        }
    }
    let ended = once.finish();
    drop(fs::remove_file(log));
    assert!(!format!("{ended:?}").contains(KEY), "a secret");
    ended
}

/// What a process printed, as people read it.
fn section(words: &[&str], ended: &Ended, folder: &Folder) -> String {
    let quoted =
        |word: &&str| if word.trim() == *word { (*word).to_owned() } else { format!("{word:?}") };
    let words: Vec<_> = words.iter().map(quoted).collect();
    let mut section = format!("$ duologue {}\n", words.join(" "));
    for (name, text) in [("stdout", &ended.stdout), ("stderr", &ended.stderr)] {
        let text = normal(text, folder);
        let end = if text.is_empty() || text.ends_with('\n') { "" } else { " (no line end)\n" };
        write!(section, "--- {name}\n{text}{end}").expect("a String takes all");
    }
    section + &format!("--- status {}\n\n", ended.status)
}

#[track_caller]
fn compare(name: &str, actual: &str) {
    let path = Path::new(GOLDEN).join(format!("{name}.txt"));
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::create_dir_all(GOLDEN).expect("a folder");
        fs::write(&path, actual).expect("a file");
    }
    let expected = fs::read_to_string(&path).unwrap_or_default();
    for (expected, actual) in expected.lines().zip(actual.lines()) {
        assert_eq!(actual, expected, "{}", path.display());
    }
    assert_eq!(actual.lines().count(), expected.lines().count(), "{}", path.display());
}

#[test]
fn an_answer() {
    let script = [
        Step::Reasoning("Hm.".to_owned()),
        text("{\"entity\":\"D"),
        text("NA\"}\n"),
        Step::Finish("stop", Some((3, 2))),
        Step::Done,
    ];
    check("answer", &script, End::ByItself);
}

#[test]
fn an_answer_that_is_not_what_was_asked_for() {
    let lines = "Here they are:\n{\"name\":\"DNA\"}\n\n{\"entity\":5}\n";
    check("other_answer", &says(lines), End::ByItself);
}

#[test]
fn an_answer_of_nothing() {
    check("empty_answer", &[Step::Finish("stop", None), Step::Done], End::ByItself);
}

#[test]
fn an_answer_that_is_cut_off_at_a_token_limit() {
    let script = [
        text("{\"entity\":\"DNA\"}\n"),
        text("{\"enti"),
        Step::Finish("length", Some((3, 2))),
        Step::Done,
    ];
    check("token_limit", &script, End::ByItself);
}

#[test]
fn an_answer_that_is_cut_off_within_its_first_value() {
    let script = [text("{\"entity\":\"D"), Step::Finish("length", None), Step::Done];
    check("token_limit_at_once", &script, End::ByItself);
}

#[test]
fn a_provider_that_refuses_the_key() {
    let body =
        r#"{"error":{"message":"Incorrect API key provided","type":"invalid_request_error"}}"#;
    check("refused_key", &[Step::Status(401, Vec::new(), body.to_owned())], End::ByItself);
}

#[test]
fn a_provider_that_leaves_in_the_middle() {
    let script = [text("{\"entity\":\"DNA\"}\n"), text("{\"enti"), Step::Cut];
    check("disconnect", &script, End::ByItself);
}

#[test]
fn a_run_that_is_interrupted() {
    let script = [text("{\"entity\":\"DNA\"}\n{\"enti"), Step::Stall];
    check("interrupt", &script, End::By(Signal::INT));
}

#[test]
fn a_run_that_is_terminated() {
    let script = [text("{\"entity\":\"DNA\"}\n{\"enti"), Step::Stall];
    check("terminate", &script, End::By(Signal::TERM));
}

/// Options that say the same print the same.
#[test]
fn options_have_other_names() {
    let folder = folder();
    for (one, other) in [
        (["--rpc"].as_slice(), ["--output", "jsonl"].as_slice()),
        (&["--rpc", "--output", "jsonl"], &["--rpc"]),
        (&["--no-stream"], &["--output", "json"]),
        (&["--no-stream", "--output", "yaml"], &["--output", "yaml"]),
        (&["-o", "text"], &[]),
        (&["--output=json"], &["--no-stream"]),
    ] {
        let print = |options: &[&str]| {
            let words = [&["exec", "hello there", "--engine", "echo"], options].concat();
            normal(&run(&folder, &words).stdout, &folder)
        };
        assert_eq!(print(one), print(other), "{one:?}");
    }
}

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
    let pairs: [(&[&str], Shape); 6] = [
        (&["--output", "text", "--no-stream"], Shape::Text),
        (&["--output", "yaml", "--rpc"], Shape::Text),
        (&["--output", "json", "--json-stream"], Shape::Text),
        (&["--json-stream", "--stdin-rpc"], Shape::Text),
        (&["--rpc", "--json-stream"], Shape::Text),
        (&["--rpc", "--no-stream"], Shape::Text),
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

/// Nobody is asked, and so nobody is needed.
#[test]
fn prompts_are_shown_and_not_asked() {
    let folder = folder();
    let said = "system-prompt: Be {{ .how }}.\nmessages: [Hi, { role: assistant, text: Ho }, Well?]\n\
                flags: [{ name: how, type: string, default: brief }]\n";
    fs::write(folder.path("said.yaml"), said).expect("a file");
    let provider = Provider::start(Vec::new());
    let base_url = provider.base_url();
    let mut golden = String::new();
    for words in [
        &["exec", "hello"][..],
        &["exec", "hello", "--system", "Be brief.", "--output", "json"],
        &["exec", "hello", "--rpc", "--stdin-rpc"],
        &["run-command", "list.yaml"],
        &["run-command", "said.yaml", "--how", "long"],
        &["run-command", "said.yaml", "--system", "Be wise.", "--json-stream"],
        &["run-command", "said.yaml", "--no-stream"],
        &["run-command", "said.yaml", "--output", "yaml"],
        &["run-command", "list.yaml", "--output", "objects"],
    ] {
        let words = [words, &["--print-prompt"]].concat();
        let ended = run(&folder, &[&words, &["--base-url", &base_url][..]].concat());
        assert_eq!(ended.status, 0, "{ended:?}");
        golden += &section(&words, &ended, &folder);
    }
    assert_eq!(provider.connections(), 0);
    compare("print_prompt", &golden);
}

/// Without a line that names the format there is none that tells of an error either.
#[test]
fn objects_come_alone_if_that_is_wanted() {
    let folder = folder();
    fs::write(folder.path("answer"), "{\"entity\":\"DNA\"}\n").expect("a file");
    let words = ["run-command", "list.yaml", "--output", "objects", "--no-preamble"];
    for (answer, status, stdout) in [("answer", 0, "{\"entity\":\"DNA\"}\n"), ("nothing", 1, "")] {
        let echo = ["--engine", "echo", "--echo-answer", answer];
        let ended = run(&folder, &[&words[..], &echo].concat());
        assert_eq!((ended.status, ended.stdout.as_str()), (status, stdout), "{ended:?}");
    }
}
