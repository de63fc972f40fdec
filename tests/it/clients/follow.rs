//! The programs that `docs/clients.md` quotes rebuild a conversation from its frames, also from those
//! of a newer server.

use super::server::Server;
use super::{ODD_LETTERS, SOURCES, go, node, python, run_client, run_with};
use crate::server::Folder;
use anyhow::{Context, Result, ensure};
use duologue::protocol::proto::DESCRIPTORS;
use serde_json::{Value, json};
use std::process::Command;

const DOCUMENT: &str = include_str!("../../../docs/clients.md");

/// The programs, by the name of their language in the document.
const PROGRAMS: [(&str, &str); 3] = [
    (
        "python",
        concat!(
            include_str!("../../../examples/editor.py"),
            include_str!("../../clients/python/editor_pb.py"),
            include_str!("../../clients/python/follow.py")
        ),
    ),
    ("js", include_str!("../../clients/node/follow.mjs")),
    ("go", include_str!("../../clients/go/follow/main.go")),
];

#[test]
fn the_document_quotes_the_programs() {
    for (language, program) in PROGRAMS {
        let fence = format!("```{language}\n");
        let blocks = DOCUMENT.split(&fence).skip(1);
        let blocks = blocks.filter_map(|rest| rest.split_once("```").map(|(block, _)| block));
        let blocks: Vec<_> = blocks.collect();
        assert!(blocks.len() >= 2, "only {} blocks of {language}", blocks.len());
        for block in blocks {
            assert!(program.contains(block), "not in the {language} program:\n{block}");
        }
    }
}

#[test]
fn the_python_program_follows_a_conversation() -> Result<()> {
    needs!(PythonProtobuf);
    follow(|| python("follow.py"))
}

#[test]
fn the_node_program_follows_a_conversation() -> Result<()> {
    needs!(NodeProtobuf);
    follow(|| node("follow.mjs"))
}

#[test]
fn the_go_program_follows_a_conversation() -> Result<()> {
    needs!(GoProtobuf);
    follow(|| go("./follow"))
}

fn follow(program: impl Fn() -> Command) -> Result<()> {
    let view = |frames: &[u8]| run_client(program(), &[], frames);
    // What it does not know, a snapshot within a run, and frames that are older than that.
    let newer = std::fs::read(format!("{SOURCES}/follow/frames.jsonl"))?;
    let expected = std::fs::read_to_string(format!("{SOURCES}/follow/view.txt"))?;
    ensure!(view(&newer)? == expected, "{}", view(&newer)?);
    for options in [&[][..], &["--patch-mode", "snapshot"], &["--final-snapshot", "turn"]] {
        let (events, snapshot, all) = conversation(options)?;
        let from_snapshot = view(&snapshot)?;
        ensure!(
            from_snapshot.contains("thinking finished: ") && from_snapshot.contains(ODD_LETTERS)
        );
        ensure!(view(&events)? == from_snapshot, "{options:?}: {}", view(&events)?);
        ensure!(view(&all)? == from_snapshot, "{options:?}: {}", view(&all)?);
    }
    Ok(())
}

/// A view with tools, approvals and a crash, as the client in plain JSON has it.
#[test]
fn the_python_editor_prints_what_the_one_without_a_library_does() -> Result<()> {
    needs!(PythonProtobuf, Python);
    let words =
        ["--echo-script", "examples/tool_calls.jsonl", "--mcp", "python3 examples/clock.py"];
    let words = [&[env!("CARGO_BIN_EXE_duologue"), "rpc", "--engine", "echo"], &words[..]].concat();
    let started = |mut command: Command| {
        command.current_dir(env!("CARGO_MANIFEST_DIR"));
        command
    };
    // With all fields of requests: those of extensions are no part of a strict client's descriptors.
    let folder = Folder::new();
    std::fs::write(folder.path("d.pb"), DESCRIPTORS)?;
    let mut typed = started(python("editor_pb.py"));
    typed.arg(folder.path("d.pb")).args(&words);
    let printed = run_with(typed, b"")?;
    let mut plain = started(Command::new("python3"));
    plain.arg("examples/editor.py").args(&words);
    ensure!(
        printed == run_with(plain, b"")? && printed.ends_with("('shutdown', 0)\n"),
        "{printed}"
    );
    Ok(())
}

/// The frames of a conversation: those without a snapshot, the last snapshot, and all.
fn conversation(options: &[&str]) -> Result<(Vec<u8>, Vec<u8>, Vec<u8>)> {
    let mut server = Server::start(options, &[("DUOLOGUE_ENGINE", "echo")])?;
    server.turn("r1", ODD_LETTERS)?;
    server.turn("r2", "and so on")?;
    server.send(&json!({ "requestId": "r3", "snapshot": {} }))?;
    let all = server.output_to_end()?;
    let is_snapshot = |line: &&[u8]| {
        serde_json::from_slice(line).is_ok_and(|frame: Value| frame.get("snapshot").is_some())
    };
    let lines = || all.split_inclusive(|byte| *byte == b'\n');
    let events = lines().filter(|line| !is_snapshot(line)).collect::<Vec<_>>().concat();
    let snapshot = lines().rfind(is_snapshot).context("a snapshot")?.to_vec();
    Ok((events, snapshot, all))
}
