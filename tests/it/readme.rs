//! Every transcript in the README and in `docs/` is what its command prints.

use crate::server::Folder;
use std::fmt::Write;
use std::path::Path;
use std::process::Command;

const README: &str = include_str!("../../README.md");

/// Each text with transcripts, and how many it has at least: without jq, and with it.
const TEXTS: [(&str, usize, usize); 10] = [
    (README, 3, 2),
    (include_str!("../../docs/protocol.md"), 2, 2),
    (include_str!("../../docs/command-files.md"), 2, 0),
    (include_str!("../../docs/outputs.md"), 2, 1),
    (include_str!("../../docs/clients.md"), 1, 1),
    (include_str!("../../docs/profiles.md"), 4, 0),
    (include_str!("../../docs/cookbook.md"), 1, 28),
    (include_str!("../../docs/options.md"), 1, 0),
    (include_str!("../../docs/sessions.md"), 1, 0),
    (include_str!("../../docs/tools.md"), 0, 1),
];

/// What the README calls the program where nothing is installed yet.
const FROM_A_CLONE: &str = "cargo run -- ";

#[derive(Debug, PartialEq)]
struct Transcript {
    command: String,
    output: String,
}

#[test]
fn transcripts_are_what_their_commands_print() {
    for (text, least, _) in TEXTS {
        check(text, |command| !needs_tools(command), least);
    }
}

#[test]
fn transcripts_with_other_programs_are_what_their_commands_print() {
    needs!(Jq, Python);
    for (text, _, least) in TEXTS {
        check(text, needs_tools, least);
    }
}

#[test]
fn the_first_command_needs_nothing_but_cargo() {
    let first = &transcripts(README)[0];
    assert!(first.command.contains(FROM_A_CLONE), "{first:?}");
    assert!(!needs_tools(&first.command));
}

/// The examples are run by tests of their own.
#[test]
fn the_client_is_the_example() {
    let code = README.split("```python\n").nth(1).and_then(|rest| rest.split("```").next());
    assert_eq!(code, Some(include_str!("../../examples/minimal.py")));
}

/// Runs the transcripts of `text` that are `wanted`, of which there are at least `least`.
fn check(text: &str, wanted: impl Fn(&str) -> bool, least: usize) {
    let transcripts = transcripts(text).into_iter().filter(|it| wanted(&it.command));
    let mut seen = 0;
    // What one of them stores without naming a store is there for the next.
    let home = Folder::new();
    for Transcript { command, output } in transcripts {
        assert_eq!(stable(&run(&command, &home)), stable(&output), "\n$ {command}");
        seen += 1;
    }
    assert!(seen >= least, "only {seen} transcripts were found");
}

/// Whether it needs a program that not every machine has.
fn needs_tools(command: &str) -> bool {
    ["jq ", "python3 ", "bash "].iter().any(|program| command.contains(program))
}

fn run(command: &str, home: &Folder) -> String {
    let command = command.replace(FROM_A_CLONE, "duologue ");
    let program = Path::new(env!("CARGO_BIN_EXE_duologue"));
    let folder = program.parent().expect("a program is in a folder");
    let own = std::env::var("PATH").unwrap_or_default();
    let path = format!("{}:{own}", folder.display());
    let output = Command::new("sh")
        .args(["-c", &command])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .env_clear()
        .env("PATH", path)
        .env("XDG_DATA_HOME", home.path(""))
        .output()
        .expect("sh runs");
    String::from_utf8(output.stdout).expect("UTF-8")
}

/// The blocks of `console`: a command after `$ `, on more lines if these are indented, and what it
/// prints.
fn transcripts(text: &str) -> Vec<Transcript> {
    let mut transcripts: Vec<Transcript> = Vec::new();
    let mut is_console = false;
    let mut is_command = false;
    for line in text.lines() {
        if line.starts_with("```") {
            is_console = line == "```console";
            continue;
        }
        if !is_console {
            continue;
        }
        if let Some(command) = line.strip_prefix("$ ") {
            transcripts.push(Transcript { command: command.to_owned(), output: String::new() });
            is_command = true;
            continue;
        }
        let last = transcripts.last_mut().expect("a transcript begins with its command");
        is_command &= line.starts_with("    ");
        let to = if is_command { &mut last.command } else { &mut last.output };
        let before = if is_command { "\n" } else { "" };
        let after = if is_command { "" } else { "\n" };
        write!(to, "{before}{line}{after}").expect("a String takes all");
    }
    transcripts
}

/// `text` with the same id in place of each: they differ from run to run.
fn stable(text: &str) -> String {
    const UUID_BYTES: usize = 36;
    let mut rest = text;
    let mut stable = String::new();
    while let Some(first) = rest.chars().next() {
        if rest.get(..UUID_BYTES).is_some_and(is_uuid) {
            stable += "<uuid>";
            rest = &rest[UUID_BYTES..];
        } else {
            stable.push(first);
            rest = &rest[first.len_utf8()..];
        }
    }
    stable
}

fn is_uuid(text: &str) -> bool {
    text.bytes().enumerate().all(|(at, byte)| match at {
        8 | 13 | 18 | 23 => byte == b'-',
        _ => byte.is_ascii_hexdigit(),
    })
}

#[test]
fn ids_are_not_compared() {
    let id = "0f0f0f0f-1234-4abc-8def-000000000001";
    assert_eq!(stable(&format!("\"run-{id}:call-1\" \u{e9}")), "\"run-<uuid>:call-1\" \u{e9}");
}
