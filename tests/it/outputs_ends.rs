//! A single run that is ended from outside: by a signal before anything was asked, by a reader who
//! leaves, by a device that is full; and the copy of the frames that is kept in each output.

use crate::once::{Ended, Once, duologue, run};
use crate::process::{Process, eventually};
use crate::provider::{Provider, Step};
use crate::server::Folder;
use crate::shape::{Shape, check_protocol};
use rustix::process::Signal;
use std::fs;
use std::io::Read;
use std::process::Command;

/// The outputs of a single run.
const OUTPUTS: [(&[&str], Shape); 6] = [
    (&[], Shape::Text),
    (&["--output", "json"], Shape::Json),
    (&["--output", "yaml"], Shape::Yaml),
    (&["--output", "jsonl"], Shape::OneShot),
    (&["--output", "objects"], Shape::Objects),
    (&["--json-stream"], Shape::Events),
];

/// A command file whose answer is a list.
const LIST: &str = "name: extract\nresponse-type: jsonl\nprompt: Name the entities.\n";

/// The status of a process that a signal ended.
fn interrupted(shape: Shape, signal: i32) -> i32 {
    if shape == Shape::Events { 1 } else { 128 + signal }
}

impl Process {
    /// The process has a thread of this name.
    fn has_thread(self, wanted: &str) -> bool {
        let threads = fs::read_dir(format!("/proc/{}/task", self.0));
        threads.into_iter().flatten().filter_map(Result::ok).any(|thread| {
            let name = fs::read_to_string(thread.path().join("comm")).unwrap_or_default();
            name.trim_end() == wanted
        })
    }
}

/// Interrupts a process that waits for what it is to ask; every reader gets the usual form.
#[track_caller]
fn check_interrupted_early(words: &[&str], signal: Signal, number: i32) {
    let folder = Folder::new();
    folder.fifo("pipe");
    for (options, shape) in OUTPUTS {
        // Refused: standard input belongs to the requests.
        let is_taken = words.contains(&"-") && options.contains(&"--stdin-rpc");
        // Refused: only a command file says what to find.
        let is_not_said = words[0] == "exec" && shape == Shape::Objects;
        if is_taken || is_not_said {
            continue;
        }
        let mut once = Once::start(duologue(&folder, &[words, options].concat()));
        once.keep_stdin();
        let waits = || {
            let process = once.process();
            (process.has_thread("prepare") || process.has_thread("prompt")).then_some(())
        };
        eventually("it gets ready", waits);
        once.signal(signal);
        let ended = once.finish();
        assert_eq!(ended.status, interrupted(shape, number), "{options:?}: {ended:?}");
        if shape != Shape::Text {
            assert!(ended.stdout.contains("the process was ended by SIG"), "{ended:?}");
        }
        check_reported(shape, &ended);
    }
}

/// A signal that came before there was anything to ask is reported on standard output; on standard
/// error once or not at all: its sender knows.
#[track_caller]
fn check_reported(shape: Shape, ended: &Ended) {
    let is_reported = ended.stderr.starts_with("duologue: the process was ended by SIG");
    assert!(
        ended.stderr.is_empty() || is_reported && ended.stderr.lines().count() == 1,
        "{ended:?}"
    );
    let complaint = "duologue: interrupted\n".to_owned();
    shape.check(&Ended { stderr: complaint, ..ended.clone() });
}

#[test]
fn a_signal_ends_the_wait_for_a_prompt() {
    check_interrupted_early(&["exec", "-"], Signal::INT, 2);
    check_interrupted_early(&["exec", "--prompt-file", "pipe"], Signal::TERM, 15);
}

#[test]
fn a_signal_ends_the_wait_for_a_command_file() {
    check_interrupted_early(&["run-command", "pipe"], Signal::TERM, 15);
    check_interrupted_early(&["run-command", "-"], Signal::HUP, 1);
}

/// A folder with a command file and a long answer for the echo engine.
fn with_long_answer() -> Folder {
    let folder = Folder::new();
    fs::write(folder.path("list.yaml"), LIST).expect("a file");
    fs::write(folder.path("answer"), "{\"a\":1}\n".repeat(20_000)).expect("a file");
    folder
}

/// `run-command list.yaml <options>`, with the echo engine.
fn list(folder: &Folder, options: &[&str]) -> Command {
    let words = ["run-command", "list.yaml", "--engine", "echo", "--echo-answer", "answer"];
    duologue(folder, &[&words, options].concat())
}

#[test]
fn a_reader_that_leaves_ends_the_run_without_a_word() {
    let folder = with_long_answer();
    for (options, shape) in OUTPUTS {
        let (once, mut stdout) = Once::start_unread(list(&folder, options));
        if !matches!(shape, Shape::Json | Shape::Yaml) {
            stdout.read_exact(&mut [0]).expect("a byte");
        }
        drop(stdout);
        let ended = once.finish();
        assert_eq!((ended.status, ended.stderr.as_str()), (0, ""), "{options:?}");
    }
}

/// `duologue` with its standard streams changed as `redirection` says.
fn redirected(folder: &Folder, words: &[&str], redirection: &str) -> Ended {
    let mut shell = Command::new("/bin/sh");
    shell.args([
        "-c",
        &format!("exec \"$0\" \"$@\" {redirection}"),
        env!("CARGO_BIN_EXE_duologue"),
    ]);
    shell.args(words).current_dir(folder.path("")).env_clear();
    Once::start(shell).finish()
}

#[test]
fn a_full_device_has_its_status() {
    let folder = with_long_answer();
    for (options, _) in OUTPUTS {
        let words = ["run-command", "list.yaml", "--engine", "echo", "--echo-answer", "answer"];
        let ended = redirected(&folder, &[&words, options].concat(), ">/dev/full");
        assert_eq!(ended.status, 74, "{options:?}: {ended:?}");
        let reported = ended.stderr.matches("standard output could not be written").count();
        assert_eq!((reported, ended.stderr.lines().count()), (1, 1), "{options:?}: {ended:?}");
    }
    let ended = redirected(&folder, &["exec", "hello", "--print-prompt"], ">/dev/full");
    assert_eq!((ended.status, ended.stderr.lines().count()), (74, 1), "{ended:?}");
}

/// A printed status stays the same, whatever signal comes while it is written.
#[test]
fn a_status_that_was_printed_stands() {
    let folder = Folder::new();
    fs::write(folder.name("answer"), "a line of an answer\n".repeat(5_000)).expect("a file");
    let run = ["exec", "hello", "--engine", "echo", "--echo-answer", "answer"];
    let log = ["--log-level", "info", "--log-file", "log"];
    for (option, reported) in
        [("--json-stream", "\"exitCode\":0"), ("--no-stream", "\"exit_code\": 0")]
    {
        fs::remove_file(folder.name("log")).ok();
        let words = [&run[..], &log, &[option]].concat();
        let (once, mut unread) = Once::start_unread(duologue(&folder, &words));
        let logged = |text: &str| {
            let log = fs::read_to_string(folder.name("log")).unwrap_or_default();
            log.contains(text).then_some(())
        };
        eventually("all is printed", || logged("the engine has answered"));
        once.signal(Signal::INT);
        eventually("the signal is heard", || logged("a signal"));
        let mut text = String::new();
        unread.read_to_string(&mut text).expect("UTF-8");
        assert!(text.contains(reported), "{option}: {}", &text[text.len().saturating_sub(300)..]);
        assert_eq!(once.finish().status, 0, "{option}");
    }
}

/// A prompt that is only shown may be more than its reader takes.
#[test]
fn a_signal_ends_the_wait_for_the_reader_of_a_prompt() {
    let folder = Folder::new();
    fs::write(folder.name("long"), "word ".repeat(1_000_000)).expect("a file");
    let words = ["exec", "--prompt-file", "long", "--print-prompt"];
    let (once, unread) = Once::start_unread(duologue(&folder, &words));
    eventually("it prints", || once.process().has_thread("print").then_some(()));
    once.signal(Signal::TERM);
    let ended = once.finish();
    assert_eq!((ended.status, ended.stderr.as_str()), (143, ""));
    drop(unread);
}

#[test]
fn closed_streams_are_no_defect() {
    let folder = Folder::new();
    let echo = ["exec", "hello", "--engine", "echo"];
    let without_stdin = redirected(&folder, &echo, "<&-");
    assert_eq!((without_stdin.status, without_stdin.stderr.as_str()), (0, ""));
    assert_eq!(without_stdin.stdout, "Turn 1. You said: hello\n");
    let without_prompt = redirected(&folder, &["exec", "-", "--output", "json"], "<&-");
    assert_eq!(without_prompt.status, 2, "{without_prompt:?}");
    Shape::Json.check(&without_prompt);
    assert_eq!(redirected(&folder, &echo, ">&-").status, 0);
    let without_stderr = redirected(&folder, &["exec", " ", "--output", "json"], "2>&-");
    assert_eq!(without_stderr.status, 2);
    assert!(without_stderr.stdout.contains("\"ok\": false"), "{without_stderr:?}");
}

/// The frames in the debug file; those of one run.
#[track_caller]
fn check_copy(path: &str, options: &[&str], last: &str) {
    let copy = fs::read_to_string(path).expect("the debug file");
    let frames = check_protocol(&copy, 1, true);
    assert!(frames[1].is_snapshot(), "{options:?}: {copy}");
    assert_eq!(frames.last().and_then(|frame| frame.done()), Some(last), "{options:?}: {copy}");
    let snapshots = frames.iter().filter(|frame| frame.is_snapshot()).count();
    assert_eq!(snapshots, 2, "the state before and after: {options:?}: {copy}");
}

#[test]
fn frames_are_copied_whole_in_every_output() {
    let folder = with_long_answer();
    fs::write(folder.path("answer"), "{\"a\":1}\n{\"a\":2}\n").expect("a file");
    fs::write(folder.path("bytes"), [0xff]).expect("a file");
    for (number, (options, shape)) in OUTPUTS.into_iter().enumerate() {
        let path = format!("events-{number}.jsonl");
        let copying = |words: &[&str]| run(&folder, &[words, options].concat());
        let words = ["run-command", "list.yaml", "--engine", "echo", "--debug-events-jsonl", &path];
        let ended = copying(&[&words[..], &["--echo-answer", "answer"]].concat());
        assert_eq!(ended.status, 0, "{ended:?}");
        shape.check(&ended);
        check_copy(&folder.name(&path), options, "ok");
        let copied = fs::read_to_string(folder.path(&path)).expect("the debug file");
        assert!(shape != Shape::OneShot || copied == ended.stdout, "{copied}\n{ended:?}");
        // The same file again: what was in it is gone.
        let ended = copying(&[&words[..], &["--echo-answer", "bytes"]].concat());
        assert_eq!(ended.status, 1, "{ended:?}");
        shape.check(&ended);
        check_copy(&folder.name(&path), options, "failed");
    }
}

#[test]
fn frames_are_copied_to_the_end_of_an_interrupted_run() {
    let folder = with_long_answer();
    for (options, shape) in OUTPUTS {
        let provider = Provider::start(vec![vec![Step::Text("{\"a\":1}\n".into()), Step::Stall]]);
        let (base_url, path) = (provider.base_url(), folder.name("events.jsonl"));
        let words = ["run-command", "list.yaml", "--engine", "openai", "--model", "scripted"];
        let more = ["--base-url", &base_url, "--debug-events-jsonl", &path];
        let once = Once::start(duologue(&folder, &[&words, &more[..], options].concat()));
        eventually("the text is copied", || {
            let copy = fs::read_to_string(&path).unwrap_or_default();
            (copy.contains("ChatTextPatch") && copy.ends_with('\n')).then_some(())
        });
        once.signal(Signal::INT);
        let ended = once.finish();
        assert_eq!(ended.status, interrupted(shape, 2), "{options:?}: {ended:?}");
        shape.check(&ended);
        check_copy(&path, options, "stopped");
        fs::remove_file(path).expect("the debug file");
    }
}
