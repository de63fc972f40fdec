//! `duologue check` over streams of the real binary, over files, and as they come.

use crate::frames::submit;
use crate::server::{Folder, Server};
use crate::tools::{json, run, stream, streams, text, turn};
use serde_json::{Value, json};
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

#[test]
fn live_streams_have_no_violation() {
    for stream in streams() {
        let output = run(&["check"], &stream);
        let reported = text(&output.stdout);
        assert_eq!(output.status.code(), Some(0), "{reported}\n{}", text(&stream));
        assert!(reported.starts_with("-: violations: 0; lines: "), "{reported}");
        assert_eq!(reported.lines().count(), 1, "{reported}");
        assert_eq!(text(&output.stderr), "");
    }
}

#[test]
fn a_debug_file_has_no_violation() {
    let folder = Folder::new();
    let path = folder.name("events.jsonl");
    let mut server = Server::start(&["--debug-events-jsonl", &path]);
    server.turn("r", "hello");
    server.send("not JSON");
    server.finish();
    let output = run(&["check", &path], b"");
    let expected = format!("{path}: violations: 0; lines: ");
    assert!(text(&output.stdout).starts_with(&expected), "{}", text(&output.stdout));
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn violations_are_reported_with_their_place_and_rule() {
    let folder = Folder::new();
    let path = folder.name("stream");
    let stream = text(&turn()).replace("\"status\":\"ok\"", "\"status\":\"failed\"");
    fs::write(&path, format!("{stream}no JSON\n")).expect("a file");
    let output = run(&["check", &path], b"");
    assert_eq!(output.status.code(), Some(1));
    let reported: Vec<_> = text(&output.stdout).lines().collect();
    let last = stream.lines().count();
    assert!(reported[0].starts_with(&format!("{path}:{last}: done-status: ")), "{reported:?}");
    assert!(
        reported[1].starts_with(&format!("{path}:{}: invalid-json: ", last + 1)),
        "{reported:?}"
    );
    assert!(
        reported[2].starts_with(&format!("{path}: violations: 2; lines: {}", last + 1)),
        "{reported:?}"
    );
    assert_eq!(reported.len(), 3);
}

#[test]
fn an_object_holds_what_lines_tell() {
    let stream = text(&turn()).replace("\"ordinal\":\"3\"", "\"ordinal\":\"1\"");
    for option in [&["--output", "json"][..], &["--no-stream"]] {
        let output = run(&[&["check"], option].concat(), stream.as_bytes());
        assert_eq!(output.status.code(), Some(1));
        assert!(text(&output.stdout).starts_with("{\"ok\":false,\"data\":[{\"line\":4,"));
        let reported = json(&output);
        assert_eq!(reported["data"][0]["rule"], "ordinal-order");
        assert_eq!(reported["error"]["code"], "contract_broken");
        let detail = reported["error"]["detail"].as_str().expect("the first violation");
        assert!(detail.starts_with("line 4: ordinal-order: "), "{detail}");
        assert_eq!(reported["meta"]["total"], 1);
        assert_eq!(reported["meta"]["lines"], stream.lines().count());
    }
    let right = json(&run(&["check", "--no-stream", "-"], &turn()));
    assert_eq!((&right["ok"], right["data"].as_array().map(Vec::len)), (&true.into(), Some(0)));
    assert!(right["error"].is_null());
}

#[test]
fn a_stream_that_is_cut_off_is_noted() {
    let whole = turn();
    let output = run(&["check"], &whole[..whole.len() - 9]);
    let reported = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{reported}");
    assert!(reported.contains("note: line") && reported.contains("is cut off after"), "{reported}");
    let output = run(&["check"], &whole[..whole.len() - 1]);
    assert!(text(&output.stdout).contains("no-line-feed"));
    let lines: Vec<_> = text(&whole).lines().collect();
    let unfinished = lines[..lines.len() - 1].join("\n") + "\n";
    let reported = run(&["check"], unfinished.as_bytes());
    assert!(
        text(&reported.stdout).starts_with("-:2: unfinished-request: "),
        "{}",
        text(&reported.stdout)
    );
}

/// A producer that crashed in its first write must not pass.
#[test]
fn a_stream_without_a_frame_is_a_violation() {
    for input in [&b""[..], b"{", b"{\"a\":", b"garbage", b"garbage\n"] {
        let output = run(&["check"], input);
        let reported = text(&output.stdout);
        assert_eq!(output.status.code(), Some(1), "{reported}");
        assert!(reported.contains(": hello-first: the stream has no frame"), "{reported}");
    }
}

/// What may follow the last line feed is the same for both readers of a stream.
#[test]
fn tails_are_judged_alike() {
    let whole = turn();
    let tails: [(&[u8], i32); 7] = [
        (b"{", 0),
        (b"{\"version\":1,\"ses", 0),
        (b"{\"a\":\"\xc3", 0),
        (b"garbage", 1),
        (b"[1", 1),
        (b"\"", 1),
        (b"{\"a\":1}}", 1),
    ];
    for (tail, status) in tails {
        let input = [&whole, tail].concat();
        for tool in ["check", "list-events"] {
            let output = run(&[tool], &input);
            let tail = String::from_utf8_lossy(tail);
            assert_eq!(output.status.code(), Some(status), "{tool}: {tail}");
        }
    }
}

/// Some shells write a byte order mark before a stream that they save.
#[test]
fn a_saved_stream_may_begin_with_a_byte_order_mark() {
    let input = [&b"\xEF\xBB\xBF"[..], &turn()].concat();
    for tool in ["check", "list-events"] {
        let output = run(&[tool], &input);
        assert_eq!(output.status.code(), Some(0), "{tool}: {}", text(&output.stdout));
    }
}

/// The program's own option is no violation of its own contract.
#[test]
fn a_single_run_may_tell_no_snapshot_at_its_end() {
    for span in ["full", "turn", "none"] {
        let args = ["exec", "--engine", "echo", "--rpc", "--final-snapshot", span, "hello"];
        let output = run(&["check"], &run(&args, b"").stdout);
        assert_eq!(output.status.code(), Some(0), "{span}: {}", text(&output.stdout));
    }
}

/// What is changed in a stream that is right, so that it is of somebody else.
#[test]
fn what_is_of_somebody_else_is_a_violation() {
    let stream = text(&stream(&["--on-busy", "queue"], &[submit("r", "hello you")])).to_owned();
    let said = "\"Turn 1. You said: hello you\"";
    let whole = format!("\"text\":{said},\"content\":{said},\"status\":\"finished\",\"parent");
    let changes = [
        ("\"hello\":{", "\"requestId\":\"r\",\"hello\":{", "hello-request"),
        ("\"role\":\"assistant\",\"streamId\"", "\"role\":\"user\",\"streamId\"", "wrong-word"),
        ("\"streamId\":\"", "\"streamId\":\"x", "patch-stream"),
        ("\"runId\":\"", "\"runId\":\"x", "correlation"),
        ("\"correlation\":{\"sessionId\":\"", "\"correlation\":{\"sessionId\":\"x", "correlation"),
        ("\"server\":\"duologue\",", "", "hello-server"),
        ("\"turnId\":\"turn-1\"", "\"turnId\":\"turn-9\"", "correlation"),
        ("\"providerCallId\":\"", "\"providerCallId\":\"x", "correlation"),
        ("\"segmentId\":\"", "\"segmentId\":\"x", "message-id"),
        ("\"mode\":\"CHAT_STREAM_PATCH_MODE_APPEND\",", "", "patch-mode"),
        ("\"role\":\"user\",", "", "missing-field"),
        ("{\"status\":\"ok\"}", "{\"status\":\"failed\"}", "done-status"),
        (&whole, &whole.replace("you", "me"), "snapshot-text"),
        (&whole, &whole.replacen("you", "me", 1), "text-content"),
    ];
    for (from, to, rule) in changes {
        let changed = stream.replacen(from, to, 1);
        assert!(changed != stream, "{from}");
        let output = run(&["check"], changed.as_bytes());
        let reported = text(&output.stdout);
        assert_eq!(output.status.code(), Some(1), "{from}: {reported}");
        assert!(reported.contains(&format!(": {rule}: ")), "{from}: {reported}");
    }
}

#[test]
fn what_cannot_be_read_has_status_2() {
    for path in ["/proc/nowhere/stream", "/"] {
        let output = run(&["check", path], b"");
        assert_eq!(output.status.code(), Some(2), "{path}");
        assert!(text(&output.stderr).contains(&format!("{path} can't be read: ")));
        let output = run(&["check", "--no-stream", path], b"");
        assert_eq!(output.status.code(), Some(2), "{path}");
        check_unread(&json(&output), path);
    }
    assert_eq!(run(&["check", "--dance"], b"").status.code(), Some(2));
}

/// The object of a stream that can't be read has every member that others have.
#[track_caller]
pub(crate) fn check_unread(envelope: &Value, path: &str) {
    assert_eq!((&envelope["ok"], &envelope["data"]), (&json!(false), &json!([])));
    assert_eq!(envelope["error"]["code"], "read_failed");
    let (message, detail) = (&envelope["error"]["message"], &envelope["error"]["detail"]);
    let detail = detail.as_str().expect("what the system says");
    assert_eq!(*message, format!("{path} can't be read: {detail}"));
    assert_eq!((&envelope["warnings"], &envelope["meta"]["total"]), (&json!([]), &json!(0)));
    assert!(envelope["meta"]["duration_ms"].is_u64());
}

/// A violation is reported before the stream ends.
#[test]
fn violations_are_reported_as_they_come() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_duologue"));
    let mut child = command
        .args(["check", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the binary starts");
    let mut stdin = child.stdin.take().expect("a pipe");
    let mut reported = BufReader::new(child.stdout.take().expect("a pipe"));
    for line in 1..4 {
        stdin.write_all(b"no JSON\n").expect("it reads");
        let mut violation = String::new();
        reported.read_line(&mut violation).expect("a line");
        assert!(violation.starts_with(&format!("-:{line}: invalid-json: ")), "{violation}");
    }
    drop(stdin);
    assert_eq!(child.wait().expect("it ends").code(), Some(1));
}

/// The status of a tool whose reader is gone, and of one whose disk is full.
#[test]
fn output_that_cannot_be_written_has_its_status() {
    let tools: [&[&str]; 9] = [
        &["check", "/dev/null"],
        &["check", "--no-stream", "/dev/null"],
        &["list-events", "/dev/null"],
        &["list-events", "--no-stream", "/dev/null"],
        &["schema", "json"],
        &["man"],
        &["completions", "bash"],
        &["--manifest"],
        &["doctor", "--engine", "echo"],
    ];
    for args in tools {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        for (output, status) in [(Stdio::from(writer), 0), (full(), 74)] {
            let mut command = Command::new(env!("CARGO_BIN_EXE_duologue"));
            command.args(args).stdout(output).stderr(Stdio::piped());
            let ended = command.output().expect("it ends");
            assert_eq!(ended.status.code(), Some(status), "{args:?}");
            assert_eq!(ended.stderr.is_empty(), status == 0, "{}", text(&ended.stderr));
        }
    }
}

/// Has no room, ever.
fn full() -> Stdio {
    File::options().write(true).open("/dev/full").expect("Linux has it").into()
}

/// Long streams take time in proportion, and no more memory.
#[test]
fn a_long_stream_is_checked() {
    // Answers of which none is coalesced, however slowly they are read.
    let part = |number| json!({ "requestId": format!("s{number}"), "snapshot": { "limit": 1 } });
    let parts = (0..5_001).map(|number| part(number).to_string());
    let lines: Vec<_> = [submit("r", "hello")].into_iter().chain(parts).collect();
    let long = stream(&["--final-snapshot", "turn"], &lines);
    let output = run(&["check"], &long);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stdout));
    assert!(text(&long).lines().count() > 10_000);
}
