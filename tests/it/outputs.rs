//! Every output of a single run, for every way in which a run can end: what a reader of each gets,
//! kept as text.

use crate::frames::submit;
use crate::golden::{compare, section};
use crate::once::{Ended, Once, duologue, normal, run};
use crate::process::eventually;
use crate::provider::{Provider, Step, says};
use crate::server::{Folder, KEY};
use crate::shape::Shape;
use rustix::process::Signal;
use serde_json::{Value, json};
use std::fs;
use std::io::{Read, Write};
use std::process::{Command, Stdio};

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
const RUNS: [(&[&str], Shape); 14] = [
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
    (&["run-command", "extended.yaml", "--output", "jsonl"], Shape::OneShot),
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

/// Processes that write into one pipe: whole lines, in whatever order, also where the pipe is nearly full.
#[test]
fn lines_of_several_processes_in_one_pipe_are_whole() {
    const PROCESSES: usize = 8;
    const VALUES: usize = 300;
    let folder = folder();
    // Long ones, so that most of what is written at once does not fit, but none of more than 4,096 bytes.
    let value = |number: usize| format!("{{\"entity\":\"{}\"}}\n", "x".repeat(37 * number % 3900));
    let values: String = (0..VALUES).map(value).collect();
    fs::write(folder.path("values.txt"), &values).expect("a file");
    let program = env!("CARGO_BIN_EXE_duologue");
    let script = format!(
        "seq {PROCESSES} | xargs -P {PROCESSES} -I{{}} {program} run-command list.yaml --engine echo \
         --echo-answer values.txt --output objects"
    );
    let mut shell = Command::new("sh")
        .args(["-c", &script])
        .current_dir(folder.path(""))
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("a shell");
    let mut output = shell.stdout.take().expect("a pipe");
    // Small reads are slower than what is written.
    let (mut all, mut piece) = (Vec::new(), [0; 512]);
    while let bytes @ 1.. = output.read(&mut piece).expect("data") {
        all.extend_from_slice(&piece[..bytes]);
    }
    assert!(shell.wait().expect("its end").success());
    let lines = String::from_utf8(all).expect("UTF-8");
    let whole = lines.lines().map(|line| serde_json::from_str(line).expect(line));
    let entities = whole.filter(|value: &Value| value.get("entity").is_some());
    assert_eq!(entities.count(), PROCESSES * VALUES);
}

/// A folder with the command files that are run.
pub(crate) fn folder() -> Folder {
    let folder = Folder::new();
    fs::write(folder.path("list.yaml"), LIST).expect("a file");
    let document = LIST.replace("response-type: jsonl", "response-type: json");
    fs::write(folder.path("document.yaml"), document).expect("a file");
    let extended = format!("{LIST}extensions: [extract]\n");
    fs::write(folder.path("extended.yaml"), extended).expect("a file");
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
            if !matches!(shape, Shape::Conversation(_) | Shape::Frames) {
                once.close_stdin();
            }
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

/// The built-in engine calls a tool, and there is none.
#[test]
fn a_tool_that_is_not_offered() {
    let folder = folder();
    let call = r#"{"reasoning":"Hm.","text":"Let me look.","tools":[{"name":"get_time","arguments":{"zone":"UTC"}}]}"#;
    fs::write(folder.path("script.jsonl"), call).expect("a file");
    let mut golden = String::new();
    for (words, shape) in RUNS {
        let words = [words, &["--engine", "echo", "--echo-script", "script.jsonl"]].concat();
        let mut once = Once::start(duologue(&folder, &words));
        if let Shape::Conversation(_) | Shape::Frames = shape {
            writeln!(once.stdin(), "{}", submit("r1", "hello")).expect("the process reads");
        }
        once.close_stdin();
        let ended = once.finish();
        shape.check(&ended);
        golden += &section(&words, &ended, &folder);
    }
    compare("tool_not_offered", &golden);
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

/// Without a line that names the format no line reports an error either.
#[test]
fn objects_come_alone_if_that_is_wanted() {
    let folder = folder();
    fs::write(folder.path("answer"), "{\"entity\":\"DNA\"}\n").expect("a file");
    fs::write(folder.path("bytes"), [0xff]).expect("a file");
    let words = ["run-command", "list.yaml", "--output", "objects", "--no-preamble"];
    for (answer, status, stdout) in [("answer", 0, "{\"entity\":\"DNA\"}\n"), ("bytes", 1, "")] {
        let echo = ["--engine", "echo", "--echo-answer", answer];
        let ended = run(&folder, &[&words[..], &echo].concat());
        assert_eq!((ended.status, ended.stdout.as_str()), (status, stdout), "{ended:?}");
    }
}

/// Answers that a careless writer of YAML would change.
const ODD_ANSWERS: [&str; 24] = [
    "null",
    "~",
    "yes",
    "0x10",
    "1e3",
    ".inf",
    "- a",
    "a: b",
    "# c",
    "a #b",
    "'q'",
    "&a",
    "|",
    "%d",
    "\ta",
    " a ",
    "\n",
    "\n\na\n\n",
    "---\na\n...\n",
    "a\r\nb\rc",
    "a\u{2028}b\u{85}c\u{feff}",
    "\u{7}\u{7f}\u{fffe}",
    "a  \n    b\n",
    "=",
];

#[test]
fn yaml_and_json_say_what_the_model_said() {
    let folder = folder();
    for answer in ODD_ANSWERS {
        fs::write(folder.path("answer"), answer).expect("a file");
        let words = ["exec", "hello", "--engine", "echo", "--echo-answer", "answer", "--output"];
        let print = |output| run(&folder, &[&words[..], &[output]].concat()).stdout;
        let from_json: Value = serde_json::from_str(&print("json")).expect("JSON");
        let from_yaml: Value = serde_saphyr::from_str(&print("yaml")).expect("YAML");
        assert_eq!((&from_json["data"], &from_yaml["data"]), (&json!(answer), &json!(answer)));
        let end = if answer.ends_with('\n') { "" } else { "\n" };
        assert_eq!(print("text"), format!("{answer}{end}"));
    }
}

/// Readers that take U+2028 for the end of a line see each line whole.
#[test]
fn names_and_prompts_are_on_one_line_for_every_reader() {
    let folder = folder();
    let odd = "name: \"a\\u2028b\"\nresponse-type: jsonl\nprompt: \"c\\u2028d\"\n";
    fs::write(folder.path("odd.yaml"), odd).expect("a file");
    let words = ["run-command", "odd.yaml", "--engine", "echo", "--output", "objects"];
    for (option, escaped) in [("--echo-reasoning", "a\\u2028b"), ("--print-prompt", "c\\u2028d")] {
        let stdout = run(&folder, &[&words[..], &[option]].concat()).stdout;
        assert!(!stdout.contains('\u{2028}') && stdout.contains(escaped), "{stdout}");
    }
}

/// However much is logged, standard output is the reader's.
#[test]
fn logs_never_reach_standard_output() {
    let folder = folder();
    fs::write(folder.path("answer"), "{\"entity\":\"DNA\"}\nand so on\n").expect("a file");
    let echo = ["--engine", "echo", "--echo-answer", "answer", "--log-level"];
    for (words, shape) in RUNS {
        let print = |level| run(&folder, &[words, &echo, &[level]].concat());
        let (quiet, loud) = (print("off"), print("trace"));
        assert_eq!(normal(&quiet.stdout, &folder), normal(&loud.stdout, &folder), "{words:?}");
        assert!(loud.stderr.contains("the process ends"), "{loud:?}");
        if !matches!(shape, Shape::Conversation(_)) {
            shape.check(&quiet);
        }
    }
}
