//! Signals end the process in order, or at once.

use crate::frames::{Frame, ends, shutdown, submit};
use crate::oracle::Answers;
use crate::process::settled;
use crate::server::{Folder, Launch, Reading, Server, echo};
use rustix::process::Signal;
use std::fs;
use std::process::Command;

/// Each signal that asks the process to end, with its exit status.
const SIGNALS: [(Signal, i32); 3] = [(Signal::HUP, 129), (Signal::INT, 130), (Signal::TERM, 143)];

/// A piece of the echo engine's answer never comes.
const NEVER_MS: &str = "3600000";

const SMALL_PIPE_BYTES: usize = 4096;

/// What a process says last.
fn check_farewell(frames: &[Frame]) {
    let [.., error, done] = frames else { panic!("too few frames: {frames:?}") };
    assert_eq!((error.error(), error.id()), (Some("interrupted"), ""));
    assert_eq!(error.0["error"]["terminal"], true);
    assert_eq!((done.done(), done.id()), (Some("stopped"), ""));
}

#[test]
fn a_signal_ends_an_idle_process() {
    for (signal, status) in SIGNALS {
        let mut server = Server::start(&[]);
        server.wait_hello();
        server.signal(signal);
        server.wait_end();
        check_farewell(&server.finish_with(status, Answers::AllAndFarewell).frames);
    }
}

/// As a parent does that ends a process and then no longer writes to it.
#[test]
fn a_signal_counts_if_input_ends_right_after_it() {
    for (signal, status) in SIGNALS {
        let mut server = Server::start(&[]);
        server.wait_hello();
        server.signal(signal);
        server.close_stdin();
        server.wait_end();
        check_farewell(&server.finish_with(status, Answers::AllAndFarewell).frames);
    }
}

/// As some daemons leave it to the programs that they start: the system then forgets how a child has ended.
#[test]
fn a_child_is_waited_for_where_the_parent_ignores_the_end_of_its_own() {
    let folder = Folder::new();
    let servers = r#"{"mcpServers":{"x":{"command":"sh","args":["-c","exit 3"]}}}"#;
    fs::write(folder.path("servers.json"), servers).expect("a file");
    // dash does not pass an ignored SIGCHLD on.
    let script = r#"trap "" CHLD; exec "$0" tools --mcp-config "$1""#;
    let mut command = Command::new("bash");
    command.args(["-c", script, env!("CARGO_BIN_EXE_duologue"), &folder.name("servers.json")]);
    let said = command.output().expect("it runs").stderr;
    let said = String::from_utf8_lossy(&said);
    assert!(said.contains("it ended with status 3"), "{said}");
}

#[test]
fn a_signal_stops_a_run_and_tells_all_of_it() {
    for (signal, status) in SIGNALS {
        let mut server = Server::start(&["--echo-delay-ms", "20"]);
        server.send(submit("r", "a few words and no more than that"));
        server.wait_event("ChatTextPatch");
        server.signal(signal);
        server.wait_end();
        let frames = server.finish_with(status, Answers::AllAndFarewell).frames;
        check_farewell(&frames);
        check_stopped(&frames);
    }
}

fn check_stopped(frames: &[Frame]) {
    let names: Vec<_> = frames.iter().filter_map(Frame::event).collect();
    let last = ["ChatTextSegmentFinished", "ChatProviderCallFinished", "ChatRunStopped"];
    assert_eq!(names[names.len() - 3..], last);
    let stopped = ("r".to_owned(), "stopped".to_owned());
    assert_eq!(ends(frames)[0], stopped);
    assert!(frames.iter().any(Frame::is_snapshot));
}

/// The pipe is full when the signal arrives, and the reader then reads on.
#[test]
fn a_signal_cuts_no_frame_that_is_being_written() {
    for (signal, status) in SIGNALS {
        let mut server = blocked();
        server.signal(signal);
        server.wait_log("the task is cancelled");
        server.read_on(Reading::Eager);
        server.wait_end();
        let frames = server.finish_with(status, Answers::AllAndFarewell).frames;
        check_farewell(&frames);
        check_stopped(&frames);
    }
}

#[test]
fn a_second_signal_ends_the_process_at_once() {
    for (signal, status) in SIGNALS {
        let mut server = blocked();
        server.signal(Signal::TERM);
        server.wait_log("the task is cancelled");
        server.signal(signal);
        server.wait_end();
        server.read_on(Reading::Eager);
        server.finish_with(status, Answers::Cut);
    }
}

/// Nobody reads, and nobody sends a second signal either.
#[test]
fn a_signal_ends_a_process_that_nobody_reads() {
    let mut server = blocked();
    server.signal(Signal::TERM);
    server.wait_end();
    server.read_on(Reading::Eager);
    let log = server.finish_with(143, Answers::Cut).stderr;
    assert!(log.contains("did not take the last frames"), "{log}");
}

/// A server in the middle of a run, whose pipe is full.
fn blocked() -> Server {
    let args = ["--log-level", "debug", "--echo-delay-ms", "1"];
    let mut server = echo(&args).stdout(Reading::Held).pipe_bytes(SMALL_PIPE_BYTES).start();
    server.send(submit("r", &format!("{} {}", "x".repeat(50_000), "word ".repeat(20_000))));
    settled("the pipe is full", || {
        rustix::io::ioctl_fionread(server.held_stdout()).expect("a pipe")
    });
    server
}

/// More than a pipe holds, and less than the server lets wait before the engine has to.
const ANSWER_BYTES: usize = 100_000;

/// A server that has answered everything to a reader that has read nothing, and that was sent a
/// signal.
fn answered(is_shut_down: bool) -> Server {
    let mut server = echo(&["--log-level", "info"]).stdout(Reading::Held).start();
    server.send(submit("r", &"x".repeat(ANSWER_BYTES)));
    if is_shut_down {
        server.send(shutdown("q"));
    } else {
        server.close_stdin();
    }
    server.wait_log("the engine has answered");
    server.signal(Signal::TERM);
    server.wait_log("a signal");
    server
}

#[test]
fn a_signal_after_the_last_request_leaves_a_late_reader_its_answers() {
    for is_shut_down in [false, true] {
        let mut server = answered(is_shut_down);
        server.read_on(Reading::Eager);
        let frames = server.finish_with(143, Answers::All).frames;
        assert!(frames.iter().any(|frame| frame.ends("r")));
    }
}

#[test]
fn a_second_signal_after_the_last_request_ends_the_process_at_once() {
    for is_shut_down in [false, true] {
        let mut server = answered(is_shut_down);
        server.signal(Signal::TERM);
        server.wait_end();
        server.read_on(Reading::Eager);
        let log = server.finish_with(143, Answers::Cut).stderr;
        assert!(!log.contains("did not take the last frames"), "{log}");
    }
}

/// What `nohup` and a shell's background jobs are given.
#[test]
fn a_signal_that_was_ignored_at_the_start_stays_ignored() {
    let script = r#"trap "" HUP INT; exec "$0" rpc --engine echo"#;
    let mut server = Launch::shell(script, &[]).start();
    server.wait_hello();
    server.signal(Signal::HUP);
    server.signal(Signal::INT);
    assert_eq!(server.turn("r", "hello"), "ok");
    server.signal(Signal::TERM);
    server.wait_end();
    check_farewell(&server.finish_with(143, Answers::AllAndFarewell).frames);
}

/// Under `nohup`, and as a script's background job, the tests themselves are started with signals
/// ignored; the servers that they start are not.
#[test]
fn tests_pass_where_signals_are_ignored() {
    let script = r#"trap "" HUP INT; exec "$0" --exact "$1""#;
    let tests = std::env::current_exe().expect("the tests");
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", script]).arg(tests).arg("signals::a_signal_ends_an_idle_process");
    let output = shell.output().expect("a shell");
    let shown = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && shown.contains("1 passed"), "{shown}");
}

#[test]
fn a_signal_refuses_what_waits() {
    let mut server = Server::start(&["--on-busy", "queue", "--echo-delay-ms", NEVER_MS]);
    server.send_together(&[submit("r", "one"), submit("waits", "two")]);
    server.wait_event("ChatRunStarted");
    server.send(crate::frames::snapshot("s"));
    server.wait_done("s");
    server.signal(Signal::INT);
    let frames = server.finish_with(130, Answers::AllAndFarewell).frames;
    check_farewell(&frames);
    assert!(ends(&frames).contains(&("waits".to_owned(), "failed".to_owned())));
    assert_eq!(crate::frames::errors(&frames, "waits"), ["shutting_down"]);
}
