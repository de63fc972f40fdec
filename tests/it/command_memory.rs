//! Files that command files read take memory in proportion to their size.

use crate::once::run;
use crate::oracle::Answers;
use crate::server::{Folder, Launch};
use std::fmt::Write;
use std::fs;

/// Memory for each byte of a file.
const MEMORY_PER_BYTE_MAX: u64 = 20;

/// Memory that any file may take, and what differs from run to run.
const SLACK_BYTES: u64 = 10 * 1024 * 1024;

const COMMAND: &str =
    "prompt: \"{{ if .rows }}read{{ end }}\"\nflags: [{name: rows, type: TYPE, required: true}]\n";

/// The most memory of a process that has read `file` into a flag of this type and rendered a prompt.
#[track_caller]
fn peak_bytes(folder: &Folder, kind: &str, file: &str) -> u64 {
    fs::write(folder.path("f.yaml"), COMMAND.replace("TYPE", kind)).expect("a file");
    let (command, file) = (folder.name("f.yaml"), folder.name(file));
    let words =
        ["run-command", &command, "--rows", &file, "--rpc", "--stdin-rpc", "--engine", "echo"];
    let mut server = Launch::new(&words).start();
    server.wait_hello();
    let peak_bytes = server.process().peak_memory_bytes();
    let frames = server.finish_with(0, Answers::All).frames;
    assert_eq!(frames.len(), 1, "{frames:?}");
    peak_bytes
}

fn lines(count: usize, line: impl Fn(usize) -> String) -> String {
    let mut text = String::new();
    for number in 0..count {
        writeln!(text, "{}", line(number)).expect("written");
    }
    text
}

#[test]
fn memory_is_in_proportion_to_the_file() {
    let folder = Folder::new();
    let heading = "h".repeat(55_000);
    let row = |number| format!("{number:06},some text {number:04}");
    let record = |number| {
        format!(
            r#"{{"id":1{number:06},"name":"Ada Lovelace","tags":["a","b"],"note":"a line of some length, as notes have"}}"#
        )
    };
    let records = lines(20_000, record);
    let files = [
        ("heading.csv", "objectListFromFile", format!("{heading}\n{}", "x\n".repeat(27_500))),
        ("rows.csv", "objectListFromFile", format!("id,text\n{}", lines(75_000, row))),
        ("rows.jsonl", "objectListFromFile", records.clone()),
        ("rows.json", "objectListFromFile", format!("[{}]", records.trim_end().replace('\n', ","))),
        (
            "rows.yaml",
            "objectListFromFile",
            lines(20_000, |number| format!("- {}", record(number))),
        ),
        ("small.yaml", "objectListFromFile", "- {a: x1, b: y, c: z}\n".repeat(25_000)),
        ("data.yaml", "file", lines(7_500, |number| format!("- {}", record(number)))),
        (
            "lines.txt",
            "stringListFromFile",
            lines(50_000, |number| format!("line number {number}")),
        ),
        ("data.json", "file", format!("[{}]", records.trim_end().replace('\n', ","))),
        ("data.csv", "file", format!("id,text\n{}", lines(50_000, row))),
    ];
    fs::write(folder.path("none.csv"), "a\n").expect("a file");
    let idle_bytes = peak_bytes(&folder, "objectListFromFile", "none.csv");
    for (name, kind, text) in files {
        fs::write(folder.path(name), &text).expect("a file");
        let grown_bytes = peak_bytes(&folder, kind, name).saturating_sub(idle_bytes);
        let file_bytes = u64::try_from(text.len()).expect("a size");
        let most = file_bytes * MEMORY_PER_BYTE_MAX + SLACK_BYTES;
        assert!(grown_bytes < most, "{name} of {file_bytes} bytes takes {grown_bytes}");
    }
}

/// Megabytes of the smallest records there are.
#[test]
fn too_many_values_are_refused() {
    let folder = Folder::new();
    let files = [
        ("objectListFromFile", "rows.jsonl", "{\"a\":1}\n".repeat(1_000_000)),
        ("objectListFromFile", "rows.json", format!("[{{}}{}]", ",{}".repeat(2_000_000))),
        ("objectListFromFile", "rows.csv", format!("a\n{}", "1\n".repeat(2_000_000))),
        ("file", "data.json", format!("[{{}}{}]", ",{}".repeat(2_000_000))),
        ("file", "data.csv", "1\n".repeat(2_000_000)),
        ("objectListFromFile", "rows.yaml", "- {a: 1}\n".repeat(300_000)),
    ];
    for (kind, name, text) in files {
        fs::write(folder.path("f.yaml"), COMMAND.replace("TYPE", kind)).expect("a file");
        fs::write(folder.path(name), text).expect("a file");
        let ended = run(&folder, &["run-command", "f.yaml", "--rows", name, "--print-prompt"]);
        assert_eq!(ended.status, 2, "{name} {ended:?}");
        let error = format!("--rows: {name} holds so many small values that they would take more");
        assert!(ended.stderr.contains(&error), "{name} {ended:?}");
    }
}
