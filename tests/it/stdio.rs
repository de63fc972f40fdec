//! Standard input and output belong to the protocol alone, and the death of a client ends the
//! process.

use crate::frames::{Frame, ends, submit};
use crate::oracle::Answers;
use crate::process::eventually;
use crate::provider::{Provider, Step};
use crate::server::{Folder, KEY, Launch, Reading, Server, openai};
use crate::store::{events, resumed, wait_state};
use rustix::process::Signal;
use std::fs;
use std::time::Duration;

/// CPU time that a process may spend while it waits for a second.
const IDLE_CPU_MAX: Duration = Duration::from_millis(150);

/// An answer that takes long: with `--echo-delay-ms 100` longer than any test.
const LONG_PROMPT: &str = "1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27";

/// Runs a server whose client, a shell, is killed: `$1` is a folder, the rest are options.
const CLIENT: &str = r#"
    cd "$1" && mkfifo in out; shift
    "$0" rpc "$@" <in >out &
    exec 3>in 4<out
    cat requests >&3
    while read -r line <&4; do printf '%s\n' "$line"; done
"#;

/// A library or a child that writes to fd 1 or reads fd 0 does not touch the protocol.
#[test]
fn the_protocol_has_pipes_of_its_own() {
    let mut server = Server::start(&["--echo-delay-ms", "3600000"]);
    server.send(submit("r", "hello"));
    server.wait_event("ChatRunStarted");
    let [requests, frames, log] = server.pipes.clone();
    let process = server.process();
    let files = process.files();
    assert!(files.contains(&(0, "/dev/null".to_owned())), "who reads standard input finds its end");
    assert!(files.contains(&(1, log.clone())), "what is printed goes to standard error");
    assert!(files.contains(&(2, log)));
    for pipe in [requests, frames] {
        let open: Vec<_> = files.iter().filter(|(_, target)| *target == pipe).collect();
        assert!(!open.is_empty(), "{pipe} is in use");
        for (number, _) in open {
            assert!(*number > 2 && process.is_private(*number), "a child would get {number}");
        }
    }
    server.signal(Signal::TERM);
    server.finish_with(143, Answers::AllAndFarewell);
}

#[test]
fn a_run_that_waits_after_the_end_of_input_spends_no_cpu_time() {
    let mut server = Server::start(&["--echo-delay-ms", "200"]);
    server.send(submit("r", "six words for a whole second"));
    server.close_stdin();
    server.wait_event("ChatTextPatch");
    let begun = server.process().cpu_time();
    server.wait("the text \"whole \"", |frame| frame.payload("text") == "whole ");
    let spent = server.process().cpu_time() - begun;
    assert!(spent < IDLE_CPU_MAX, "{spent:?}");
    server.finish();
}

/// Kills the client of a server that answers, and waits for the end of the server.
#[track_caller]
fn kill_client(folder: &Folder, args: &[&str]) {
    let provider = Provider::start(vec![vec![Step::Text("begun".to_owned()), Step::Stall]]);
    fs::write(folder.path("requests"), submit("r", "hello") + "\n").expect("a file");
    let (home, url) = (folder.name(""), provider.base_url());
    let own = [&home, "--engine", "openai", "--model", "m", "--base-url", &url];
    let args = [&own[..], args].concat();
    let mut client = Launch::shell(CLIENT, &args).secret("DUOLOGUE_API_KEY", KEY).start();
    client.wait_event("ChatTextPatch");
    let server = client.descendant();
    client.signal(Signal::KILL);
    provider.wait_disconnect();
    eventually("the server has ended", || server.name().is_empty().then_some(()));
    client.expect_requests(1);
    client.finish_with(137, Answers::Cut);
}

/// SIGKILL of the client, whatever the run waits for: no process is left.
#[test]
fn a_client_that_is_killed_takes_its_server_with_it() {
    let folder = Folder::new();
    let events = folder.name("events.jsonl");
    kill_client(&folder, &["--debug-events-jsonl", &events]);
    let events = fs::read(&events).expect("the debug file");
    let lines = events.split(|&byte| byte == b'\n').filter(|line| !line.is_empty());
    let frames: Vec<_> = lines.map(Frame::parse).collect();
    assert!(frames.iter().any(|frame| frame.is_event("ChatRunStopped")));
    assert_eq!(ends(&frames), [("r".to_owned(), "stopped".to_owned())]);
}

#[test]
fn the_run_of_a_client_that_is_killed_is_stopped_in_the_store() {
    let folder = Folder::new();
    kill_client(&folder, &["--store", &folder.name("store"), "--session-id", "s"]);
    let mut server = resumed(&folder, &[]).start();
    let state = wait_state(&mut server);
    assert_eq!(state.messages(), [("user", "hello"), ("assistant", "begun")]);
    let entities = state.0["snapshot"]["entities"].as_array().expect("entities");
    let answer = entities.iter().find(|it| it["payload"]["text"] == "begun").expect("the answer");
    assert_eq!(answer["payload"]["status"], "stopped");
    server.finish();
    let stored = events(&folder.path("store"));
    assert_eq!(stored.iter().filter(|event| event.1 == "run_stopped").count(), 1, "{stored:?}");
}

/// However the process ends, neither a child nor a connection is left.
#[test]
fn a_server_that_is_killed_leaves_no_connection() {
    let provider = Provider::start(vec![vec![Step::Text("begun".to_owned()), Step::Stall]]);
    let mut server = openai(&provider, &[]).start();
    server.send(submit("r", "hello"));
    server.wait_event("ChatTextPatch");
    server.signal(Signal::KILL);
    provider.wait_disconnect();
    server.finish_with(137, Answers::Cut);
}

#[test]
fn a_server_that_is_terminated_leaves_no_connection() {
    let provider = Provider::start(vec![vec![Step::Text("begun".to_owned()), Step::Stall]]);
    let mut server = openai(&provider, &[]).start();
    server.send(submit("r", "hello"));
    server.wait_event("ChatTextPatch");
    server.signal(Signal::TERM);
    provider.wait_disconnect();
    server.finish_with(143, Answers::AllAndFarewell);
}

#[test]
fn a_server_without_a_reader_leaves_no_connection_at_the_end_of_input() {
    let provider = Provider::start(vec![vec![Step::Text("begun".to_owned()), Step::Stall]]);
    let mut server = openai(&provider, &[]).stdout(Reading::Until("ChatTextPatch")).start();
    server.send(submit("r", "hello"));
    server.close_stdin();
    provider.wait_disconnect();
    server.finish_with(0, Answers::Some);
}

/// `… | head -n 1` on a long stream.
#[test]
fn a_reader_that_takes_one_line_ends_the_process_without_a_word() {
    for (ignored, log_level) in [(false, "warn"), (true, "warn"), (false, "info")] {
        let (status, log) = head(ignored, log_level);
        assert_eq!(status, "0\n", "SIGPIPE ignored: {ignored}");
        let count = log.matches("nobody reads standard output any more").count();
        assert_eq!(count, usize::from(log_level == "info"), "{log}");
        assert!(log_level == "info" || log.is_empty(), "{log}");
    }
}

/// Runs `duologue rpc … | head -n 1` in a shell; gives the status of the former, and the log.
fn head(is_ignored: bool, log_level: &str) -> (String, String) {
    let script = r#"
        if [ "$2" = ignore ]; then trap '' PIPE; fi
        { "$0" rpc --engine echo --echo-delay-ms 5 --log-level "$3"; echo $? >"$1"; } | head -n 1
    "#;
    let folder = Folder::new();
    let status = folder.name("status");
    let signal = if is_ignored { "ignore" } else { "default" };
    let mut server = Launch::shell(script, &[&status, signal, log_level]).start();
    server.send(submit("r", LONG_PROMPT));
    server.wait_hello();
    let transcript = server.finish_with(0, Answers::Some);
    assert_eq!(transcript.frames.len(), 1);
    (fs::read_to_string(&status).expect("the status"), transcript.stderr)
}

#[test]
fn a_reader_that_leaves_in_mid_stream_closes_the_connection_to_the_provider() {
    let provider = Provider::start(vec![vec![Step::Flood(1024 * 1024 * 1024)]]);
    let mut server = openai(&provider, &[]).stdout(Reading::Until("ChatTextPatch")).start();
    server.send(submit("r", "hello"));
    provider.wait_disconnect();
    server.wait_end();
    server.finish_with(0, Answers::Cut);
}

/// A reader that leaves while nothing is being written is noticed as well.
#[test]
fn a_reader_that_leaves_a_silent_run_ends_it() {
    let provider = Provider::start(vec![vec![Step::Stall]]);
    let mut server = openai(&provider, &[]).stdout(Reading::Held).start();
    server.send(submit("r", "hello"));
    provider.wait_request(1);
    server.close_stdout();
    provider.wait_disconnect();
    server.wait_end();
    server.finish_with(0, Answers::Some);
}

/// What a shell may make of the standard streams, and the exit status.
#[test]
fn streams_that_are_no_pipes_have_their_documented_status() {
    let cases = [
        ("<requests >answers", 0),
        ("<requests >/dev/null", 0),
        ("<requests >&-", 0),
        ("<requests >answers 2>&-", 0),
        ("<requests >answers 2>/dev/full", 0),
        ("<&- >answers", 0),
        ("</dev/null >answers", 0),
        ("<. >answers", 1),
        ("<requests >/dev/full", 74),
    ];
    for (streams, status) in cases {
        let folder = Folder::new();
        fs::write(folder.path("requests"), submit("r", "hello") + "\n").expect("a file");
        let script = format!(r#"cd "$1"; exec "$0" rpc --engine echo {streams}"#);
        let shell = Launch::shell(&script, &[&folder.name("")]).start();
        shell.finish_with(status, Answers::All);
        let answers = fs::read(folder.path("answers")).unwrap_or_default();
        assert!(answers.is_empty() || answers.ends_with(b"\n"), "{streams}");
        let is_answered = String::from_utf8_lossy(&answers).contains(r#""done":{"status":"ok"}"#);
        assert_eq!(is_answered, streams.starts_with("<requests >answers"), "{streams}");
    }
}
