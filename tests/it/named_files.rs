//! Files named on the command line that are no files: named pipes, and the standard streams.

use crate::frames::{Frame, cancel, snapshot, submit};
use crate::once::{Once, duologue};
use crate::oracle::Answers;
use crate::server::{Folder, Launch, Reading, Server, echo};
use rustix::fs::{Mode, OFlags, open};
use rustix::process::Signal;
use std::fs::{self, File};
use std::io::Read;
use std::process::Command;
use std::thread;

/// A named pipe that is open for reading.
fn fifo(folder: &Folder, name: &str) -> (String, File) {
    let path = folder.fifo(name);
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let reader = open(&path, flags, Mode::empty()).expect("a named pipe");
    rustix::fs::fcntl_setfl(&reader, OFlags::empty()).expect("a named pipe");
    (path, reader.into())
}

/// More frames and more log than a pipe takes, then all that a client may want.
fn converse(server: &mut Server) {
    assert_eq!(server.turn("long", &"word ".repeat(5_000)), "ok");
    server.send_together(&[submit("cut", "hello"), cancel("c")]);
    assert_eq!(server.wait_done("cut"), "stopped");
    server.send(snapshot("s"));
    assert_eq!(server.wait_done("s"), "ok");
    server.signal(Signal::TERM);
    server.wait_done("");
}

#[test]
fn files_that_nobody_reads_hold_up_the_end_for_a_moment_only() {
    let folder = Folder::new();
    let (events, _unread_events) = fifo(&folder, "events");
    let (log, _unread_log) = fifo(&folder, "log");
    let args = ["--debug-events-jsonl", &events, "--log-file", &log, "--log-level", "trace"];
    let mut server = Server::start(&args);
    converse(&mut server);
    server.finish_with(143, Answers::AllAndFarewell);
}

#[test]
fn a_second_signal_ends_the_wait_for_a_debug_file_that_nobody_reads() {
    let folder = Folder::new();
    let (events, _unread) = fifo(&folder, "events");
    let mut server = Server::start(&["--debug-events-jsonl", &events]);
    converse(&mut server);
    server.signal(Signal::INT);
    let log = server.finish_with(130, Answers::AllAndFarewell).stderr;
    assert!(!log.contains("did not take its last lines"), "{log}");
}

#[test]
fn a_log_that_is_read_late_is_made_of_whole_lines_and_tells_what_is_missing() {
    let folder = Folder::new();
    let (path, mut unread) = fifo(&folder, "log");
    let mut server = Server::start(&["--log-file", &path, "--log-level", "trace"]);
    assert_eq!(server.turn("r", &"word ".repeat(5_000)), "ok");
    let reading = thread::spawn(move || {
        let mut log = String::new();
        unread.read_to_string(&mut log).map(|_| log)
    });
    server.finish();
    let log = reading.join().expect("no panic").expect("UTF-8");
    let is_whole = |line: &str| {
        line.contains("Z TRACE ") || line.contains("Z DEBUG ") || line.contains("Z  INFO ")
    };
    let notes: Vec<_> = log.lines().filter(|line| !is_whole(line)).collect();
    let is_note =
        |note: &&str| note.ends_with("more lines were lost: the log was not read in time");
    assert!(!notes.is_empty() && notes.iter().all(is_note), "{notes:?}");
    assert!(log.ends_with('\n'));
}

#[test]
fn a_named_pipe_without_a_reader_is_refused_in_clear_words() {
    for option in ["--debug-events-jsonl", "--log-file"] {
        let folder = Folder::new();
        let path = folder.fifo("pipe");
        let mut command = Command::new(env!("CARGO_BIN_EXE_duologue"));
        let output = command.args(["rpc", option, &path]).output().expect("the binary runs");
        let reported = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{reported}");
        let error = String::from_utf8_lossy(&output.stdout);
        for part in [option, &path, "a named pipe without a reader"] {
            assert!(reported.contains(part) && error.contains(part), "{reported}{error}");
        }
    }
}

/// What is the process's own standard output by its name is not the reader's.
#[test]
fn files_that_are_standard_output_are_not_the_protocol() {
    for path in ["/dev/stdout", "/proc/self/fd/1", "/dev/fd/1"] {
        let args = ["--log-level", "trace", "--log-file", path, "--debug-events-jsonl", path];
        let mut server = Server::start(&args);
        assert_eq!(server.turn("r", "a few words"), "ok");
        let transcript = server.finish();
        let copied: Vec<_> =
            transcript.stderr.lines().filter(|line| line.starts_with('{')).collect();
        let copied: Vec<_> = copied.iter().map(|line| Frame::parse(line.as_bytes())).collect();
        assert_eq!(copied, transcript.frames, "{path}");
        assert!(transcript.stderr.contains("engine event"), "{path}");
    }
}

/// A debug file is whole although the output that it copies could not be written.
/// It holds the prompt, or the requests, and not what is read beside them.
#[test]
fn a_file_that_is_standard_input_is_refused_with_what_to_write_instead() {
    let folder = Folder::new();
    fs::write(folder.path("ask.yaml"), "prompt: hello\n").expect("a file");
    let options = [
        "--system-file",
        "--history",
        "--prices",
        "--mcp-config",
        "--key-file",
        "--profile-registries",
        "--echo-answer",
        "--echo-script",
        "--schema",
    ];
    for (option, name) in options.into_iter().flat_map(|it| [(it, "-"), (it, "/dev/stdin")]) {
        for command in [&["exec", "hi"][..], &["run-command", "ask.yaml"], &["rpc"]] {
            if option == "--schema" && command[0] != "exec" {
                continue;
            }
            let words = [command, &["--engine", "echo", option, name]].concat();
            let mut once = Once::start(duologue(&folder, &words));
            once.offer("{\"submit\":{\"prompt\":\"Be terse.\"}}\n");
            let ended = once.finish();
            assert_eq!(ended.status, 2, "{words:?}: {ended:?}");
            let said = format!("{option} can't be standard input");
            assert!(ended.stderr.contains(&said), "{words:?}: {ended:?}");
            assert!(!ended.stdout.contains("You said"), "{words:?}: {ended:?}");
            let is_system = option == "--system-file";
            assert_eq!(ended.stderr.contains("--system \"$(cat)\""), is_system, "{ended:?}");
        }
    }
}

#[test]
fn a_debug_file_is_written_to_its_end_when_standard_output_fails() {
    let folder = Folder::new();
    let events = folder.name("events");
    let script = r#"exec "$0" rpc --engine echo --debug-events-jsonl "$1" >/dev/full"#;
    let mut shell = Launch::shell(script, &[&events]).stdout(Reading::Eager).start();
    shell.send(submit("r", "hello"));
    shell.wait_end();
    shell.finish_with(74, Answers::Some);
    let copied = std::fs::read(&events).expect("the debug file");
    assert!(
        copied.ends_with(b"\n")
            && Frame::parse(copied.split(|&byte| byte == b'\n').next().expect("a line"))
                .0
                .get("hello")
                .is_some()
    );
}

/// The levels of the log say more and more, and never what was said.
#[test]
fn each_log_level_shows_more_and_none_shows_what_was_said() {
    const LEVELS: [(&str, &[&str]); 3] = [
        ("info", &["a provider call starts", "the engine has answered", "the process ends"]),
        ("debug", &["received a request", "invalid request line"]),
        ("trace", &["engine event"]),
    ];
    for (at, (level, _)) in LEVELS.iter().enumerate() {
        let mut server = echo(&["--log-level", level, "--echo-reasoning"])
            .secret("DUOLOGUE_SYSTEM", "a-secret-instruction")
            .start();
        server.send("{\"a-secret-line\":");
        assert_eq!(server.turn("r", "a-secret-prompt"), "ok");
        server.send_together(&[submit("cut", "another-secret-prompt"), cancel("c")]);
        let log = server.finish().stderr;
        assert!(!log.contains("secret"), "{level}: {log}");
        for (number, (_, parts)) in LEVELS.iter().enumerate() {
            for part in *parts {
                assert_eq!(log.contains(part), number <= at, "{part:?} at {level}: {log}");
            }
        }
    }
}
