//! An answer that is only passed on is not kept: it may be larger than memory.

use crate::once::{Once, duologue};
use crate::provider::{Provider, Step};
use crate::server::Folder;
use rustix::process::Signal;
use std::fs;
use std::io::{BufRead, BufReader};
use std::time::Duration;

/// Bytes of a line of the answer.
const LINE_BYTES: usize = 4096;

/// Lines of a small answer and of a large one, of 4 MiB.
const SMALL: usize = 64;
const LARGE: usize = 1024;

/// Memory that the large answer may take beyond the small one.
const GROWTH_BYTES_MAX: u64 = 2 * 1024 * 1024;

/// The most memory that a process uses for an answer of so many lines.
#[track_caller]
fn peak_bytes(folder: &Folder, words: &[&str], lines: usize) -> u64 {
    let line = format!("{{\"entity\":\"{}\"}}\n", "x".repeat(LINE_BYTES));
    let drip = Step::Drip { text: line, times: lines, pause: Duration::ZERO };
    let provider = Provider::start(vec![vec![drip, Step::Stall]]);
    let base_url = provider.base_url();
    let engine = ["--engine", "openai", "--model", "m", "--base-url", &base_url];
    let (once, stdout) = Once::start_unread(duologue(folder, &[words, &engine].concat()));
    let mut seen = 0;
    let mut line = String::new();
    let mut stdout = BufReader::new(stdout);
    while seen < lines {
        line.clear();
        assert!(stdout.read_line(&mut line).expect("UTF-8") > 0, "only {seen} lines");
        seen += line.matches("entity").count();
    }
    let peak_bytes = once.process().peak_memory_bytes();
    once.signal(Signal::TERM);
    drop(stdout);
    once.finish();
    peak_bytes
}

#[test]
fn answers_that_are_passed_on_are_not_kept() {
    let folder = Folder::new();
    let list = "response-type: jsonl\nschema: { type: object }\nprompt: Name the entities.\n";
    fs::write(folder.path("list.yaml"), list).expect("a file");
    for words in [&["exec", "hello"][..], &["run-command", "list.yaml", "--output", "objects"]] {
        let small = peak_bytes(&folder, words, SMALL);
        let grown = peak_bytes(&folder, words, LARGE).saturating_sub(small);
        assert!(grown < GROWTH_BYTES_MAX, "{words:?} grew by {grown} bytes from {small}");
    }
}
