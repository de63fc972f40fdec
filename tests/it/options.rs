//! Options, their variables, help, and how the command line is refused.

use crate::frames::{Frame, finished_text, submit};
use crate::oracle::Answers;
use crate::provider::{Provider, says};
use crate::server::{Folder, Launch, Server};
use clap::CommandFactory;
use duologue::cli::Cli;
use serde_json::{Value, json};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::process::{Command, Output, Stdio};

/// Variables that other programs read as well.
const COMMON_VARIABLES: [&str; 9] = [
    "OPENAI_API_KEY",
    "OPENAI_BASE_URL",
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_BASE_URL",
    "GEMINI_API_KEY",
    "GOOGLE_API_KEY",
    "GEMINI_BASE_URL",
    "OLLAMA_HOST",
    "OLLAMA_API_KEY",
];

/// A turn of a server that was set up by a variable; gives its frames.
fn with_variable(name: &str, value: &str) -> Vec<Frame> {
    let mut server = Launch::new(&["rpc"]).env(name, value).start();
    server.turn("r", "hello there");
    server.finish().frames
}

fn count(frames: &[Frame], name: &str) -> usize {
    frames.iter().filter(|frame| frame.is_event(name)).count()
}

#[test]
fn variables_say_what_options_say() {
    let hello = |name, value| with_variable(name, value)[0].0.to_string();
    assert!(hello("DUOLOGUE_ENGINE", "echo").contains("engine=echo"));
    assert!(hello("DUOLOGUE_SESSION_ID", "mine").contains(r#""sessionId":"mine""#));
    assert!(hello("DUOLOGUE_MAX_REQUEST_BYTES", "4321").contains("max-request-bytes=4321"));
    assert!(hello("DUOLOGUE_ON_BUSY", "queue").contains(r#""queue""#));

    let patches = with_variable("DUOLOGUE_PATCH_MODE", "snapshot");
    assert!(patches.iter().any(|frame| frame.payload("mode").ends_with("_SNAPSHOT")));
    let none = with_variable("DUOLOGUE_FINAL_SNAPSHOT", "none");
    assert!(!none.iter().any(Frame::is_snapshot));
    let reasons = with_variable("DUOLOGUE_ECHO_REASONING", "true");
    assert_eq!(count(&reasons, "ChatReasoningSegmentFinished"), 1);
    assert_eq!(count(&with_variable("DUOLOGUE_ECHO_DELAY_MS", "1"), "ChatRunFinished"), 1);
}

/// A misspelt variable would change nothing, unnoticed.
#[test]
fn a_misspelt_variable_is_reported_with_the_one_that_was_meant() {
    let server = Launch::new(&["rpc"]).env("DUOLOGUE_ENGINE", "echo");
    let server = server.env("DUOLOGUE_MODLE", "m").env("DUOLOGUE_BIN", "x").start();
    let stderr = server.finish().stderr;
    let expected = "the variable DUOLOGUE_MODLE sets nothing; did you mean DUOLOGUE_MODEL?";
    assert!(stderr.contains(expected), "{stderr}");
    assert_eq!(stderr.lines().count(), 1, "{stderr}");
}

#[test]
fn variables_name_files() {
    let folder = Folder::new();
    let events = folder.name("events.jsonl");
    let frames = with_variable("DUOLOGUE_DEBUG_EVENTS_JSONL", &events);
    let copied = fs::read_to_string(&events).expect("the debug file");
    assert_eq!(copied.lines().count(), frames.len());

    let log = folder.name("log");
    let server = Launch::new(&["rpc"]).env("DUOLOGUE_LOG_FILE", &log);
    let server = server.env("DUOLOGUE_LOG_LEVEL", "warn").start();
    assert_eq!(server.finish().stderr.trim(), "");
    assert!(fs::read_to_string(&log).expect("the log").contains("echo engine answers"));
}

#[test]
fn variables_set_up_a_provider() {
    let provider = Provider::start(vec![says("hello")]);
    let mut server = Launch::new(&["rpc"])
        .env("DUOLOGUE_BASE_URL", provider.base_url())
        .env("DUOLOGUE_MODEL", "the-model")
        .env("DUOLOGUE_SYSTEM", "Be brief.")
        .env("DUOLOGUE_RETRIES", "0")
        .env("DUOLOGUE_CONNECT_TIMEOUT_MS", "5000")
        .env("DUOLOGUE_IDLE_TIMEOUT_MS", "5000")
        .env("DUOLOGUE_TOTAL_TIMEOUT_MS", "5000")
        .secret("OPENAI_API_KEY", "sk-from-the-common-variable")
        .start();
    let hello = server.wait_hello().0.to_string();
    assert!(hello.contains("engine=openai") && hello.contains("model=the-model"), "{hello}");
    assert_eq!(server.turn("r", "hello"), "ok");
    server.finish();
    let request = provider.wait_request(1);
    assert_eq!(request.header("authorization"), Some("Bearer sk-from-the-common-variable"));
    assert_eq!(request.body["model"], "the-model");
    assert_eq!(request.body["messages"][0]["content"], "Be brief.");
}

/// An empty one of a provider is a part of its configuration unless the engine is named.
#[test]
fn a_variable_that_is_empty_counts_as_not_set() {
    let command = Cli::command();
    let rpc = command.find_subcommand("rpc").expect("the command");
    let names = rpc.get_arguments().filter_map(|option| option.get_env()?.to_str());
    let names: Vec<_> = names.chain(["DUOLOGUE_API_KEY"]).chain(COMMON_VARIABLES).collect();
    assert!(names.len() > COMMON_VARIABLES.len() + 1);
    let named = Launch::new(&["rpc", "--engine", "echo"]);
    let launch = names.iter().fold(named, |launch, name| launch.env(name, ""));
    let mut server = launch.start();
    assert_eq!(server.turn("r", "hello"), "ok");
    let frames = server.finish().frames;
    assert_eq!(finished_text(&frames, "r"), "Turn 1. You said: hello");
}

#[test]
fn a_variable_that_is_not_text_is_named_and_not_shown() {
    for name in ["DUOLOGUE_API_KEY"].into_iter().chain(COMMON_VARIABLES) {
        let value = OsStr::from_bytes(b"sk-secret-\xff");
        // Variables of an engine that is not chosen by them are read where it is named.
        let engine = match name.split_once('_') {
            Some(("GEMINI" | "GOOGLE", _)) => &["rpc", "--engine", "gemini"][..],
            Some(("OLLAMA", _)) => &["rpc", "--engine", "ollama"],
            Some(_) | None => &["rpc"],
        };
        let server = Launch::new(engine).env(name, value).start();
        let transcript = server.finish_with(2, Answers::AllAndFarewell);
        let reported = transcript.stderr;
        assert!(reported.contains(name) && !reported.contains("secret"), "{reported}");
        let error = transcript.frames[1].0["error"].to_string();
        assert!(error.contains(name) && !error.contains("secret"), "{error}");
    }
}

#[test]
fn a_word_that_is_not_text_is_shown_with_its_option() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_duologue"));
    command.args(["rpc", "--store"]).arg(OsStr::from_bytes(b"\xff.db")).stdin(Stdio::null());
    let ended = command.output().expect("it runs");
    let said = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(2), "{said}");
    assert!(said.contains("the word '\u{fffd}.db' after --store is not UTF-8"), "{said}");
}

#[test]
fn an_option_wins_over_its_variable() {
    let server = Launch::new(&["rpc", "--session-id", "option"]);
    let mut server = server.env("DUOLOGUE_SESSION_ID", "variable").start();
    assert_eq!(server.wait_hello().text("/sessionId"), "option");
    server.finish();
}

/// The command may be left out.
#[test]
fn without_a_command_the_program_does_what_rpc_does() {
    for args in [&[][..], &["--session-id", "mine"]] {
        let mut server = Launch::new(args).start();
        assert_eq!(server.turn("r", "hello"), "ok");
        let frames = server.finish().frames;
        assert_eq!(finished_text(&frames, "r"), "Turn 1. You said: hello");
    }
}

/// Without any setting the program answers, and says who does.
#[test]
fn without_a_provider_the_echo_engine_answers_and_says_so() {
    let mut server = Launch::new(&["rpc"]).start();
    server.send(submit("r", "hello"));
    let hello = server.wait_hello().0.to_string();
    assert!(hello.contains("engine=echo"), "{hello}");
    let transcript = server.finish_with(0, Answers::All);
    assert!(transcript.stderr.contains("no provider is configured"), "{}", transcript.stderr);
    let quiet = Server::start(&[]).finish().stderr;
    assert_eq!(quiet.trim(), "", "who asked for the echo engine knows");
}

fn run(args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_duologue"));
    command.env_clear().args(args).output().expect("the binary runs")
}

#[test]
fn help_tells_that_the_command_streams_json_lines() {
    for args in [&["rpc", "--help"][..], &["--help"], &["help", "rpc"]] {
        let output = run(args);
        let help = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && help.contains("JSON Lines"), "{args:?}: {help}");
        assert!(help.contains("Exit status"), "{args:?}");
    }
    assert!(String::from_utf8_lossy(&run(&["rpc", "-h"]).stdout).contains("JSON Lines"));
    let version = run(&["--version"]).stdout;
    assert!(String::from_utf8_lossy(&version).starts_with("duologue "));
}

/// Rows and columns of two screens of a terminal.
const TWO_SCREENS: (usize, usize) = (2 * 24, 80);

/// What `-h` prints after `words` on a terminal of 80 columns.
fn short_help(words: &[&str]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_duologue"));
    command.env_clear().env("COLUMNS", "80").args(words).arg("-h");
    let output = command.output().expect("the binary runs");
    assert!(output.status.success(), "{words:?}");
    String::from_utf8(output.stdout).expect("UTF-8")
}

#[test]
fn short_help_fits_two_screens() {
    let check = |words: &[&str]| {
        let help = short_help(words);
        let columns = help.lines().map(|line| line.chars().count()).max();
        assert!(help.lines().count() <= TWO_SCREENS.0, "{words:?}: {help}");
        assert!(columns.is_some_and(|columns| columns <= TWO_SCREENS.1), "{words:?}: {help}");
    };
    check(&[]);
    for command in Cli::command().get_subcommands() {
        check(&[command.get_name()]);
        for below in command.get_subcommands() {
            check(&[command.get_name(), below.get_name()]);
        }
    }
    check(&["run-command", "examples/summarize.yaml"]);
}

#[test]
fn short_help_has_the_common_options_and_long_help_all_of_them_in_groups() {
    let short = short_help(&["exec"]);
    for option in ["--file", "--model", "--profile", "--save", "--mcp", "--store", "--help"] {
        assert!(short.contains(option), "{option}: {short}");
    }
    assert!(!short.contains("--patch-mode") && short.contains("`duologue exec --help`"), "{short}");
    assert!(short.contains("git diff | duologue exec"), "{short}");
    let long = String::from_utf8_lossy(&run(&["exec", "--help"]).stdout).into_owned();
    for heading in ["Output", "Provider", "Protocol", "Log", "Store", "Tool", "Call", "Engine"] {
        assert!(long.contains(&format!("\n{heading} options:\n")), "{heading}: {long}");
    }
    let command = Cli::command();
    let exec = command.find_subcommand("exec").expect("the command");
    let shown =
        exec.get_arguments().filter(|arg| !arg.is_hide_set()).filter_map(|arg| arg.get_long());
    for name in shown {
        assert!(long.contains(&format!("--{name}")), "{name}");
    }
    // The flags of a command file are all there.
    let of_file = short_help(&["run-command", "examples/extract/extract-topics.yaml"]);
    assert!(of_file.contains("--text") && !of_file.contains("--patch-mode"), "{of_file}");
    let whole = short_help(&[]);
    assert!(whole.contains("run-command") && !whole.contains("--model"), "{whole}");
}

#[test]
fn an_unknown_command_has_status_2_and_nothing_on_standard_output() {
    let output = run(&["dance"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(output.stdout.is_empty());
    assert!(!output.stderr.is_empty());
}

/// `engine_init_failed` is of conversations: the other commands have no engine.
#[test]
fn a_wrong_command_line_of_another_command_is_usage() {
    let wrong: &[&[&str]] = &[
        &["check", "--nope"],
        &["list-events", "--nope"],
        &["tools", "--nope"],
        &["mcp", "login", "--nope"],
        &["profiles", "show"],
        &["models", "--nope"],
        &["doctor", "--nonsense"],
        &["sessions", "show"],
        &["sessions", "export", "s", "--format", "bad"],
        &["sessions", "import", "/proc/nowhere/lines.jsonl", "--store", "/proc/nowhere/store"],
        &["schema", "nope"],
        &["completions", "abacus"],
        &["man", "--nope"],
    ];
    for args in wrong {
        let output = run(&[args, &["--output", "json"][..]].concat());
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        let document: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let error = &document["error"];
        assert_eq!((&error["code"], &error["class"]), (&json!("usage"), &json!("config")));
        assert!(!output.stderr.is_empty(), "{args:?}");
    }
    let output = run(&["exec", "hi", "--nope", "--output", "json"]);
    let document: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(document["error"]["code"], "engine_init_failed");
}

/// A client that reads the protocol gets the error in the protocol.
#[test]
fn a_wrong_command_line_has_status_2_and_a_terminal_error() {
    let wrong: &[&[&str]] = &[
        &["--dance"],
        &["rpc", "--dance"],
        &["rpc", "--engine", "abacus"],
        &["rpc", "--max-request-bytes", "many"],
        &["rpc", "--echo-delay-ms", "-1"],
        &["rpc", "--session-id", " "],
        &["rpc", "--session-id", &"x".repeat(1025)],
        &["rpc", "--debug-events-jsonl", "/proc/nowhere/events"],
        &["rpc", "--log-file", "/proc/nowhere/log"],
        &["rpc", "--max-request-bytes", "0"],
        &["rpc", "--max-request-bytes", "1073741825"],
        &["rpc", "--connect-timeout-ms", "0"],
        &["rpc", "--idle-timeout-ms", "0"],
        &["rpc", "--total-timeout-ms", "0"],
        &["rpc", "--retries", "11"],
        &["rpc", "prompt"],
    ];
    for args in wrong {
        let output = run(args);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        let lines = output.stdout.split_inclusive(|byte| *byte == b'\n');
        let frames: Vec<_> = lines.map(|line| Frame::parse(line.trim_ascii_end())).collect();
        assert!(frames[0].0.get("hello").is_some(), "{args:?}");
        assert_eq!(frames[1].0["error"]["code"], "engine_init_failed", "{args:?}");
        assert_eq!(frames[1].0["error"]["terminal"], true, "{args:?}");
        assert_eq!(frames[2].done(), Some("failed"), "{args:?}");
        assert_eq!(frames.len(), 3, "{args:?}");
        assert!(!output.stderr.is_empty(), "{args:?}");
    }
}
