//! Limits that the system sets: a process that can't have what it needs says so, in its frames and
//! with its status, and never hangs or ends in silence.

use crate::frames::{Frame, errors, shutdown, submit};
use crate::once::{Ended, Once, duologue};
use crate::oracle::Answers;
use crate::provider::{Provider, says};
use crate::server::{Folder, KEY, Launch, Reading, echo};
use crate::tools::turn;
use std::fs;
use std::process::{Child, Command, Stdio};

/// `duologue <words>` under limits that a shell sets.
fn limited(folder: &Folder, limits: &str, words: &[&str]) -> Command {
    let mut shell = Command::new("/bin/sh");
    let script = format!("{limits}; exec \"$0\" \"$@\"");
    shell.args(["-c", &script, env!("CARGO_BIN_EXE_duologue")]).args(words);
    shell.current_dir(folder.path("")).env_clear();
    shell
}

/// What came of one request, sent to a server.
fn ask(command: Command, request: &str) -> Ended {
    let mut once = Once::start(command);
    // A process that has ended already reads nothing.
    std::io::Write::write_all(once.stdin(), format!("{request}\n").as_bytes()).ok();
    once.close_stdin();
    once.finish()
}

/// Either the process could not start, and said so in every way, or all went well.
#[track_caller]
fn check_whole(ended: &Ended, what: &str) {
    let frames: Vec<_> = ended.stdout.lines().map(|line| Frame::parse(line.as_bytes())).collect();
    let last = frames.last().unwrap_or_else(|| panic!("{what}: no frames: {ended:?}"));
    assert!(frames[0].0.get("hello").is_some(), "{what}: {ended:?}");
    if ended.status == 70 {
        let error = &frames[frames.len() - 2];
        assert_eq!((error.error(), last.done()), (Some("internal"), Some("failed")), "{what}");
        assert!(ended.stderr.starts_with("duologue: "), "{what}: {ended:?}");
        assert!(ended.stderr.contains("ulimit"), "{what}: {ended:?}");
        assert_eq!(ended.stderr.lines().count(), 1, "{what}: {ended:?}");
    } else {
        assert_eq!((ended.status, last.done()), (0, Some("ok")), "{what}: {ended:?}");
    }
}

#[test]
fn a_process_that_may_open_few_files_says_so() {
    let folder = Folder::new();
    let mut statuses = Vec::new();
    for files in 4..=20 {
        let limits = format!("ulimit -n {files}");
        let rpc = limited(&folder, &limits, &["rpc", "--engine", "echo"]);
        let ended = ask(rpc, &submit("r", "hello"));
        check_whole(&ended, &format!("rpc with {files} files"));
        statuses.push(ended.status);
        let exec = limited(&folder, &limits, &["exec", "hello", "--rpc", "--engine", "echo"]);
        check_whole(&Once::start(exec).finish(), &format!("exec with {files} files"));
    }
    assert_eq!((statuses.first(), statuses.last()), (Some(&70), Some(&0)), "{statuses:?}");
}

/// A run that gets no socket fails; the conversation does not.
#[test]
fn a_run_that_gets_no_socket_has_its_done() {
    let folder = Folder::new();
    let mut failed = 0;
    for files in 10..=20 {
        let provider = Provider::start(vec![says("hello"), says("hello"), says("hello")]);
        let url = provider.base_url();
        let words = ["rpc", "--engine", "openai", "--model", "m", "--base-url", &url];
        let mut rpc = limited(&folder, &format!("ulimit -n {files}"), &words);
        rpc.env("DUOLOGUE_API_KEY", KEY);
        let ended = ask(rpc, &submit("r", "hello"));
        let frames = ended.stdout.lines().map(|line| Frame::parse(line.as_bytes()));
        match ended.status {
            70 => check_whole(&ended, &format!("{files} files")),
            status => {
                assert_eq!(status, 0, "{files} files: {ended:?}");
                let ends = frames.filter(|frame| frame.ends("r")).count();
                assert_eq!(ends, 1, "{files} files: {ended:?}");
                // Another attempt may find one that was closed meanwhile.
                failed += usize::from(ended.stderr.contains("open no more files: raise the limit"));
            }
        }
    }
    assert!(failed > 0, "some of them are too few");
}

/// SQLite says no more than that it can't open a file.
#[test]
fn a_store_that_gets_no_files_says_why() {
    let mut failed = 0;
    for files in 8..=24 {
        let folder = Folder::new();
        let words = ["rpc", "--engine", "echo", "--store", "store", "--session-id", "s"];
        let rpc = limited(&folder, &format!("ulimit -n {files}"), &words);
        let ended = ask(rpc, &submit("r", "hello"));
        let frames: Vec<_> =
            ended.stdout.lines().map(|line| Frame::parse(line.as_bytes())).collect();
        let errors = frames.iter().filter(|frame| frame.error() == Some("store_failed"));
        for message in errors.map(|error| error.text("/error/message")) {
            if message.contains("unable to open database file") {
                assert!(message.contains("ulimit -n"), "{files} files: {message}");
                failed += 1;
            }
        }
    }
    assert!(failed > 0, "some of them are too few");
}

/// A process that gets so many threads and no more.
#[cfg(debug_assertions)]
#[test]
fn a_process_that_gets_few_threads_says_so_or_does_without() {
    let folder = Folder::new();
    for first in 1..=5 {
        let fault = format!("thread:{first}");
        let with_fault = |words: &[&str]| {
            let mut command = duologue(&folder, words);
            command.env("DUOLOGUE_FAULT", &fault);
            command
        };
        let rpc = with_fault(&["rpc", "--engine", "echo"]);
        let ended = ask(rpc, &submit("r", "hello"));
        check_whole(&ended, &format!("rpc: {fault}"));
        // Pipes need none.
        assert_eq!(ended.status, 0, "{ended:?}");
        fs::write(folder.path("requests"), submit("r", "hello") + "\n").expect("a file");
        let mut from_file = limited(&folder, "exec < requests", &["rpc", "--engine", "echo"]);
        from_file.env("DUOLOGUE_FAULT", &fault);
        let ended = Once::start(from_file).finish();
        check_whole(&ended, &format!("rpc from a file: {fault}"));
        assert_eq!(ended.status == 70, first == 1, "{ended:?}");
        let exec = with_fault(&["exec", "hello", "--rpc", "--engine", "echo"]);
        check_whole(&Once::start(exec).finish(), &format!("exec: {fault}"));
        let piped = ask(with_fault(&["exec", "--rpc", "--engine", "echo"]), "hello");
        check_whole(&piped, &format!("piped: {fault}"));
        let copying = ["rpc", "--engine", "echo", "--debug-events-jsonl", "copy"];
        fs::write(folder.path("copy"), "an earlier recording\n").expect("a file");
        let ended = ask(with_fault(&copying), &submit("r", "hello"));
        check_whole(&ended, &format!("copying: {fault}"));
        let copy = fs::read_to_string(folder.path("copy")).expect("the debug file");
        assert_eq!(copy.starts_with("an earlier recording"), ended.status == 70, "{copy}");
        let text = Once::start(with_fault(&["exec", "hello", "--engine", "echo"])).finish();
        assert!([0, 70].contains(&text.status), "{text:?}");
        assert_eq!(text.stderr.is_empty(), text.status == 0, "{text:?}");
        let json = Once::start(with_fault(&["exec", "hello", "--no-stream"])).finish();
        let is_ok = json.stdout.contains("\"ok\": true") || json.stdout.contains("\"ok\":true");
        assert_eq!(is_ok, json.status == 0, "{json:?}");
    }
}

/// The thread that writes long batches is one of those that can't be had: the loop does its work.
#[cfg(debug_assertions)]
#[test]
fn a_server_without_a_thread_to_write_loses_nothing() {
    for reading in [Reading::Eager, Reading::Pieces(1000)] {
        let launch = echo(&["--final-snapshot", "none"]).env("DUOLOGUE_FAULT", "thread:1");
        let mut server = launch.stdout(reading).start();
        let prompt = "many words ".repeat(1_000);
        server.send(submit("r", &prompt));
        assert_eq!(server.wait_done("r"), "ok");
        server.send(shutdown("q"));
        let frames = server.finish().frames;
        assert_eq!(
            crate::frames::patched_text(&frames, "r"),
            format!("Turn 1. You said: {prompt}")
        );
        assert!(errors(&frames, "r").is_empty());
    }
}

/// SIGXFSZ does not end the conversation; the file is written no longer, and that is reported.
#[test]
fn a_debug_file_that_may_not_grow_costs_only_itself() {
    let folder = Folder::new();
    let script = r#"ulimit -f 8; exec "$0" rpc --engine echo --debug-events-jsonl "$1""#;
    let mut server = Launch::shell(script, &[&folder.name("events")]).start();
    assert_eq!(server.turn("r1", &"word ".repeat(2_000)), "ok");
    server.wait_log("the debug file is no longer written");
    assert_eq!(server.turn("r2", "hello"), "ok");
    server.finish();
    let copied = fs::metadata(folder.path("events")).expect("the debug file").len();
    assert!(copied > 0, "what fits is there");
}

#[test]
fn standard_output_that_may_not_grow_has_its_status() {
    let folder = Folder::new();
    fs::write(folder.path("requests"), submit("r", &"word ".repeat(2_000)) + "\n").expect("a file");
    let script = r#"cd "$1"; ulimit -f 8; exec "$0" rpc --engine echo <requests >answers"#;
    let shell = Launch::shell(script, &[&folder.name("")]).start();
    let log = shell.finish_with(74, Answers::All).stderr;
    assert!(log.contains("standard output could not be written"), "{log}");
}

/// Of a tool, too: it reports what a full disk would make it report.
#[test]
fn a_tool_whose_output_may_not_grow_has_its_status() {
    let folder = Folder::new();
    fs::write(folder.path("stream"), turn().repeat(20)).expect("a file");
    let tools: [&[&str]; 7] = [
        &["--manifest"],
        &["--help"],
        &["schema", "json"],
        &["man"],
        &["completions", "bash"],
        &["list-events", "stream"],
        &["check", "stream"],
    ];
    for words in tools {
        let mut shell = limited(&folder, "ulimit -f 1", words);
        shell.stdout(fs::File::create(folder.path("printed")).expect("a file"));
        let output = shell.stdin(Stdio::null()).stderr(Stdio::piped()).spawn();
        let output = output.and_then(Child::wait_with_output).expect("a shell");
        let log = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(74), "{words:?}: {log}");
        assert!(log.contains("duologue: standard output"), "{words:?}: {log}");
    }
}

/// A signal that is ignored stays so in children; one that is taken does not.
#[test]
fn a_child_gets_the_default_action_of_the_file_size_signal() {
    let mut server = echo(&[]).start();
    server.wait_hello();
    let status = fs::read_to_string(format!("/proc/{}/status", server.process().0));
    let status = status.expect("a process that lives");
    let mask = |name: &str| {
        let mask = status.lines().find_map(|line| line.strip_prefix(name)).expect("a mask");
        u64::from_str_radix(mask.trim(), 16).expect("a hexadecimal number")
    };
    let bit = 1 << (rustix::process::Signal::XFSZ.as_raw() - 1);
    assert_eq!((mask("SigIgn:") & bit, mask("SigCgt:") & bit), (0, bit));
    server.finish();
}
