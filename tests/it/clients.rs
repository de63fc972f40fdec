//! Programs that are not ours on both sides of the binary: clients built on other protobuf libraries
//! read its frames, and it drives a provider that somebody else wrote.
//!
//! `tests/clients/README.md` says what each is; `tests/clients/install.sh` installs them.

mod descriptors;
mod follow;
mod interfaces;
mod mcp;
mod schema;
mod sdks;
mod server;
mod third_party;

use self::descriptors::DESCRIPTORS_FILE;
use self::server::{Server, submit};
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

pub(crate) const SOURCES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/clients");
const GOLDEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden");

/// All that readers take for the end of a line, and what JSON escapes, in words that run together.
const ODD_LETTERS: &str = "a\u{2028}b\u{2029}c\u{85}d\0e\rf\ng\u{b}h\u{1f}i\u{1F600}\u{1F468}\u{200D}\u{1F469}\u{FEFF}\u{FFFD}\"\\/";

#[test]
fn the_python_client_reads_every_frame() -> Result<()> {
    needs!(PythonProtobuf);
    read_every_frame(python_client)
}

#[test]
fn the_node_client_reads_every_frame() -> Result<()> {
    needs!(NodeProtobuf);
    read_every_frame(node_client)
}

#[test]
fn the_go_client_reads_every_frame() -> Result<()> {
    needs!(GoProtobuf);
    read_every_frame(go_client)
}

/// Runs a client over the samples and over real streams.
fn read_every_frame(client: fn() -> Command) -> Result<()> {
    run_client(client(), &["--self-test", &format!("{SOURCES}/samples")], b"")?;
    for (stream, frames) in streams()? {
        run_client(client(), &[], &frames).context(stream)?;
    }
    Ok(())
}

/// Gives what the client prints.
fn run_client(mut command: Command, arguments: &[&str], input: &[u8]) -> Result<String> {
    command.arg(&*DESCRIPTORS_FILE).args(arguments);
    run_with(command, input)
}

/// Gives what a program prints that succeeds.
fn run_with(mut command: Command, input: &[u8]) -> Result<String> {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut client =
        command.spawn().with_context(|| format!("{command:?}: see tests/clients/README.md"))?;
    // A client reads to the end before it writes, and may be gone before that: its status says why.
    client.stdin.take().context("stdin")?.write_all(input).ok();
    let output = client.wait_with_output()?;
    let said = [output.stdout.as_slice(), &output.stderr].concat();
    ensure!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&said));
    Ok(String::from_utf8(output.stdout)?)
}

/// What the server writes: from runs of the binary, and from golden files.
fn streams() -> Result<Vec<(String, Vec<u8>)>> {
    let mut streams = Vec::new();
    for patch_mode in ["append", "snapshot"] {
        let mut server = Server::start(&["--on-busy", "queue", "--patch-mode", patch_mode], &[])?;
        let lines = request_lines();
        for line in &lines {
            server.send_line(line)?;
        }
        let output = server.output_to_end()?;
        assert_covers_the_protocol(&output, lines.len());
        streams.push((format!("--patch-mode {patch_mode}"), output));
    }
    streams.extend(golden_streams()?);
    Ok(streams)
}

/// So that the clients are not shown less than the test means to show them.
fn assert_covers_the_protocol(output: &[u8], request_count: usize) {
    let output = String::from_utf8_lossy(output);
    let count = |part: &str| output.matches(part).count();
    assert_eq!(count("\"done\":{"), request_count, "each line has one done:\n{output}");
    for name in ["ChatReasoningPatch", "ChatTextPatch", "ChatRunFinished"] {
        assert!(count(&format!("\"name\":\"{name}\"")) > 0, "no {name}:\n{output}");
    }
    assert!(count("\"snapshot\":{") > 0 && count("\"error\":{") > 0, "{output}");
}

fn request_lines() -> Vec<String> {
    let mut lines: Vec<String> = [
        submit("r1", "first question"),
        submit("r2", ODD_LETTERS),
        json!({"version": 1, "requestId": "r3", "snapshot": {}}),
        submit("r4", " \n"),
        json!({"version": 1, "sessionId": "another", "requestId": "r5", "snapshot": {}}),
        json!({"version": 99, "requestId": "r6", "snapshot": {}}),
        json!({"version": 1, "requestId": "r7"}),
        json!({"requestId": "r8", "submit": {"prompt": 5}}),
        submit("r9", &"long ".repeat(2_000)),
        json!({"version": 1, "requestId": "r10", "cancel": {}}),
        submit("", "no name"),
        submit(ODD_LETTERS, "an odd name"),
    ]
    .iter()
    .map(Value::to_string)
    .collect();
    lines.extend(["{".to_owned(), "null".to_owned(), "half\u{2028}{a line".to_owned()]);
    lines.push(json!({"version": 1, "requestId": "last", "shutdown": {}}).to_string());
    lines
}

fn golden_streams() -> Result<Vec<(String, Vec<u8>)>> {
    let Ok(entries) = std::fs::read_dir(GOLDEN) else { return Ok(Vec::new()) };
    let mut streams = Vec::new();
    for entry in entries {
        let path = entry?.path();
        if path.to_string_lossy().ends_with(".frames.jsonl") {
            streams.push((path.display().to_string(), std::fs::read(&path)?));
        }
    }
    Ok(streams)
}

fn python_client() -> Command {
    python("check_frames.py")
}

fn node_client() -> Command {
    node("check_frames.mjs")
}

fn go_client() -> Command {
    go(".")
}

fn python(script: &str) -> Command {
    let mut command = Command::new(python_with_protobuf());
    command.arg(format!("{SOURCES}/python/{script}"));
    command
}

fn node(script: &str) -> Command {
    let mut command = Command::new("node");
    // The script is linked beside the packages it needs, and looks for them there.
    command.arg("--preserve-symlinks-main").arg(installed(&format!("node/{script}")));
    command
}

fn go(package: &str) -> Command {
    let mut command = Command::new("go");
    command.args(["run", "-C", &format!("{SOURCES}/go"), package]);
    command
}

/// A Python that has the packages of `python/requirements.txt`, if they are installed.
pub(crate) fn python_with_protobuf() -> PathBuf {
    let named = std::env::var_os("DUOLOGUE_TEST_PYTHON").map(PathBuf::from);
    named.unwrap_or_else(|| installed("python/bin/python"))
}

/// `target/clients`, where `install.sh` puts things.
pub(crate) fn installed(name: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("clients").join(name)
}
