//! What the tests of the tools share: the binary with bytes on its standard input, and streams.

use crate::frames::{cancel, shutdown, snapshot, submit};
use serde_json::Value;
use std::io::Write;
use std::process::{Command, Output, Stdio};
use std::thread;

/// `duologue <args>`, fed with `input`.
pub(crate) fn run(args: &[&str], input: &[u8]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_duologue"));
    command.env_clear().args(args);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the binary starts");
    let mut stdin = child.stdin.take().expect("a pipe");
    let input = input.to_vec();
    // A program that does not read all breaks the pipe.
    let feeding = thread::spawn(move || stdin.write_all(&input).ok());
    let output = child.wait_with_output().expect("the binary ends");
    feeding.join().expect("the feeder ends");
    output
}

pub(crate) fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("UTF-8")
}

/// What a tool printed, as one JSON value.
pub(crate) fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stdout)))
}

/// The stream of a server that is given `lines`.
pub(crate) fn stream(args: &[&str], lines: &[String]) -> Vec<u8> {
    let args = [&["rpc", "--engine", "echo"], args].concat();
    let output = run(&args, (lines.join("\n") + "\n").as_bytes());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

/// A stream with a turn in it.
pub(crate) fn turn() -> Vec<u8> {
    stream(&[], &[submit("r", "Grüße \u{2028} dich")])
}

/// Streams of all kinds: patches of both modes, reasoning, a queue, cancels, snapshots, lines that
/// are wrong in every way.
pub(crate) fn streams() -> Vec<Vec<u8>> {
    let turns: Vec<_> = (0..5).map(|turn| submit(&format!("r{turn}"), "some words")).collect();
    let wrong = [
        "no JSON",
        r#"{"requestId":"w1"}"#,
        r#"{"requestId":"w2","version":7,"cancel":{}}"#,
        r#"{"requestId":"w3","submit":{"prompt":" "}}"#,
        r#"{"requestId":"w4","cancel":{}}"#,
        r#"{"sessionId":"mine","requestId":"w5","snapshot":{}}"#,
        r#"{"sessionId":"other","requestId":"w6","snapshot":{}}"#,
        "\u{1f}",
        r#"{"requestId":"w7","submit":{"prompt":"hi"}}"#,
    ];
    let mixed = [
        submit("a", "some words"),
        submit("b", "while it runs"),
        snapshot("c"),
        cancel("d"),
        shutdown("e"),
        submit("f", "too late"),
        snapshot("g"),
        shutdown("h"),
    ];
    vec![
        stream(&[], &[]),
        turn(),
        stream(&["--on-busy", "queue"], &turns),
        stream(&["--on-busy", "queue", "--final-snapshot", "none"], &turns),
        stream(&["--on-busy", "queue", "--patch-mode", "snapshot", "--echo-reasoning"], &turns),
        stream(&["--on-busy", "queue", "--patch-fields", "lean", "--echo-reasoning"], &turns),
        stream(&["--final-snapshot", "turn", "--echo-reasoning"], &turns),
        stream(&[], &wrong.map(str::to_owned)),
        stream(&["--max-request-bytes", "60"], &wrong.map(str::to_owned)),
        stream(&["--session-id", "mine"], &wrong.map(str::to_owned)),
        stream(&["--echo-delay-ms", "1"], &mixed),
        stream(&["--on-busy", "queue", "--echo-delay-ms", "1"], &mixed),
    ]
}
