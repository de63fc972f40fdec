//! The clients in `examples/` hold a conversation.

use std::path::Path;
use std::process::Command;

/// A limit that each request is longer than, and what the error says, which has no further detail.
const BYTES_MAX: &str = "40";
const TOO_LONG: &str = "the line is longer than 40 bytes";

pub(crate) const CONVERSATION: &str = "\
you: What is a duologue?
it: Turn 1. You said: What is a duologue?
you: And what is it good for?
it: Turn 2. You said: And what is it good for?
Before that you said: What is a duologue?
";

#[test]
fn the_python_client_holds_a_conversation() {
    needs!(Python);
    check("python3", "examples/client.py");
    says_why_once("python3", "examples/client.py");
}

#[test]
fn the_node_client_holds_a_conversation() {
    needs!(Node);
    check("node", "examples/client.mjs");
    says_why_once("node", "examples/client.mjs");
}

#[test]
fn the_minimal_client_prints_an_answer() {
    needs!(Python);
    let output =
        in_path("python3", &["examples/minimal.py"]).env("DUOLOGUE_ENGINE", "echo").output();
    let output = output.expect("the interpreter runs");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "Turn 1. You said: What is a duologue?");
    assert!(output.status.success(), "{output:?}");
    let mut refused = in_path("python3", &["examples/minimal.py"]);
    refused.env("DUOLOGUE_ENGINE", "echo").env("DUOLOGUE_MAX_REQUEST_BYTES", BYTES_MAX);
    let output = refused.output().expect("the interpreter runs");
    let said = String::from_utf8_lossy(&output.stdout);
    assert_eq!((said.lines().count(), said.matches(TOO_LONG).count()), (1, 1), "{output:?}");
}

/// A script whose coprocess has ended says why, and does not end by a signal.
#[test]
fn a_script_reads_the_last_words_of_its_coprocess() {
    needs!(Jq);
    let words = ["examples/coprocess.bash", "--engine", "nonsense"];
    let output = in_path("bash", &words).output().expect("bash runs");
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        said.lines().last().is_some_and(|line| line.starts_with("invalid value 'nonsense'")),
        "{said}"
    );
}

/// `interpreter` with the program in its path.
fn in_path(interpreter: &str, words: &[&str]) -> Command {
    let program = Path::new(env!("CARGO_BIN_EXE_duologue"));
    let folder = program.parent().expect("a program is in a folder").display();
    let path = std::env::var("PATH").unwrap_or_default();
    let mut command = Command::new(interpreter);
    command.args(words).current_dir(env!("CARGO_MANIFEST_DIR"));
    command.env("PATH", format!("{folder}:{path}"));
    command
}

#[test]
fn the_python_client_runs_a_tool() {
    needs!(Python);
    runs_a_tool(
        "python3",
        "examples/tool_client.py",
        "Let me look.\n\
         [get_time {'city': 'Berlin'} -> {'time': '12:00'}]\n\n\
         [get_time {'city': 'Oz'} -> KeyError: 'Oz']\n\
         It is noon in Berlin. I found no city called Oz.\n",
    );
}

#[test]
fn the_node_client_runs_a_tool() {
    needs!(Node);
    runs_a_tool(
        "node",
        "examples/tool_client.mjs",
        "Let me look.\n\
         [get_time {\"city\":\"Berlin\"} -> {\"time\":\"12:00\"}]\n\n\
         [get_time {\"city\":\"Oz\"} -> \"no such city: Oz\"]\n\
         It is noon in Berlin. I found no city called Oz.\n",
    );
}

fn runs_a_tool(interpreter: &str, client: &str, expected: &str) {
    let script = ["--echo-script", "examples/tool_calls.jsonl"];
    let output = Command::new(interpreter)
        .args([client, env!("CARGO_BIN_EXE_duologue"), "rpc", "--engine", "echo"])
        .args(script)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("the interpreter runs");
    assert_eq!(String::from_utf8_lossy(&output.stdout), expected);
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    assert!(output.status.success());
}

fn check(interpreter: &str, client: &str) {
    let output = Command::new(interpreter)
        .args([client, env!("CARGO_BIN_EXE_duologue"), "rpc", "--engine", "echo"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("the interpreter runs");
    assert_eq!(String::from_utf8_lossy(&output.stdout), CONVERSATION);
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    assert!(output.status.success());
}

fn says_why_once(interpreter: &str, client: &str) {
    let output = Command::new(interpreter)
        .args([client, env!("CARGO_BIN_EXE_duologue"), "rpc", "--engine", "echo"])
        .args(["--max-request-bytes", BYTES_MAX])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("the interpreter runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(said.matches(TOO_LONG).count(), 1, "{said}");
}
