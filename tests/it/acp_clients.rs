//! Clients of the Agent Client Protocol on the libraries of others: each plays the scenarios that
//! `tests/clients/acp/README.md` lists against the real binary.

use crate::clients::{SOURCES, installed};
use anyhow::{Result, ensure};
use std::process::{Command, Stdio};

const SCENARIOS: &str = include_str!("../clients/acp/README.md");

#[test]
fn the_sdk_for_typescript_plays_the_scenarios() -> Result<()> {
    needs!(Python, AcpTypeScript);
    let mut node = Command::new("node");
    // The scripts are linked beside the packages they need, and look for them there.
    node.args(["--preserve-symlinks", "--preserve-symlinks-main"]);
    node.arg(installed("acp/node/scenarios.mjs"));
    play(node)
}

#[test]
fn the_sdk_for_python_plays_the_scenarios() -> Result<()> {
    needs!(Python, AcpPython);
    let mut python = Command::new(installed("acp/python/python/bin/python"));
    python.args(["-B", &format!("{SOURCES}/acp/python/scenarios.py")]);
    play(python)
}

#[test]
fn the_sdk_for_go_plays_the_scenarios() -> Result<()> {
    needs!(Python, AcpGo);
    play(Command::new(installed("acp/go/scenarios")))
}

#[test]
fn the_crate_for_rust_plays_the_scenarios() -> Result<()> {
    needs!(Python, AcpRust);
    play(Command::new(installed("acp/rust/debug/scenarios")))
}

/// Each scenario succeeds, and none is left out.
fn play(mut program: Command) -> Result<()> {
    program.args([env!("CARGO_BIN_EXE_duologue"), env!("CARGO_MANIFEST_DIR")]);
    program.env("TMPDIR", env!("CARGO_TARGET_TMPDIR"));
    let output = program.stdin(Stdio::null()).output()?;
    let said = String::from_utf8_lossy(&output.stdout);
    let expected: Vec<_> = names().map(|name| format!("ok {name}")).collect();
    let is_well = output.status.success() && said.lines().eq(expected.iter());
    ensure!(is_well, "{program:?}: {said}{}", String::from_utf8_lossy(&output.stderr));
    Ok(())
}

/// The scenarios in the order of the table.
fn names() -> impl Iterator<Item = &'static str> {
    let table = SCENARIOS.split("| scenario |").nth(1).unwrap_or_default();
    let table = table.split("\n\n").next().unwrap_or_default();
    table.lines().filter_map(|row| row.strip_prefix("| `")?.split('`').next())
}
