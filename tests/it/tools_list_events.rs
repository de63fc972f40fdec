//! `duologue list-events`, as programs that expect one JSON value meet it, and as those do that read
//! lines.

use crate::tools::{json, run, stream, text, turn};
use serde_json::{Value, json};
use std::fs;
use std::process::Command;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

const BINARY: &str = env!("CARGO_BIN_EXE_duologue");

#[test]
fn a_listing_is_a_preamble_and_a_line_for_each_event() {
    let stream = turn();
    let output = run(&["list-events"], &stream);
    assert!(output.status.success());
    assert_eq!(text(&output.stderr), "");
    let mut lines = text(&output.stdout).lines();
    let preamble = r#"{"_format": "jsonl", "_schema": "EventEntry", "_version": 1}"#;
    assert_eq!(lines.next(), Some(preamble));
    let entries: Vec<Value> = lines.map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let events = text(&stream).matches("\"uiEvent\"").count();
    assert_eq!(entries.len(), events);
    assert_eq!(entries[0]["id"], "e1");
    assert_eq!(entries[0]["type"], "ChatUserMessageAccepted");
    assert_eq!(entries[0]["line"], 2);
    assert!(entries[0]["ts"].as_u64().is_some_and(|ts| ts > 1_700_000_000), "{}", entries[0]);
    let is_sorted = entries.is_sorted_by_key(|entry| entry["ts"].as_u64());
    assert!(is_sorted, "{entries:?}");
    assert_eq!(entries[0]["textBytes"], "Grüße \u{2028} dich".len());
    assert!(entries.iter().all(|entry| entry["requestId"] == "r"));
    let flat = |entry: &Value| entry.as_object().expect("an object").values().all(is_scalar);
    assert!(entries.iter().all(flat));
}

fn is_scalar(value: &Value) -> bool {
    !value.is_array() && !value.is_object() && !value.is_null()
}

#[test]
fn without_a_stream_a_listing_is_one_object() {
    let stream = turn();
    let folder = crate::server::Folder::new();
    let path = folder.name("stream");
    fs::write(&path, &stream).expect("a file");
    let lines: Vec<Value> = text(&run(&["list-events", &path], b"").stdout)
        .lines()
        .skip(1)
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    for option in [&["--no-stream"][..], &["--output", "json"]] {
        let output = run(&[&["list-events"], option, &[&path]].concat(), b"");
        assert!(output.status.success());
        assert!(text(&output.stdout).starts_with("{\"ok\":true,\"data\":[{\"id\":\"e1\","));
        let mut envelope = json(&output);
        assert_eq!(envelope["data"], Value::from(lines.clone()));
        assert!(envelope["meta"]["duration_ms"].is_u64());
        envelope["meta"]["duration_ms"] = 0.into();
        envelope["data"] = json!([]);
        let expected = json!({
            "ok": true, "data": [], "error": null, "warnings": [],
            "meta": { "total": lines.len(), "duration_ms": 0 },
        });
        assert_eq!(envelope, expected);
    }
    let empty = run(&["list-events", "--no-stream"], &stream_without_events());
    assert_eq!(json(&empty)["data"], json!([]));
}

/// A stream has no times: a file's events happened by its last modification, those of a pipe by now.
#[test]
fn events_have_the_latest_time_at_which_they_can_have_happened() {
    let folder = crate::server::Folder::new();
    let path = folder.name("stream");
    fs::write(&path, turn()).expect("a file");
    let file = fs::File::options().write(true).open(&path).expect("the file");
    let time = UNIX_EPOCH + Duration::from_secs(1_700_000_042);
    file.set_modified(time).expect("files have times");
    let times = |output: &std::process::Output| -> Vec<u64> {
        let events = json(output)["data"].as_array().expect("a list").clone();
        events.iter().map(|event| event["ts"].as_u64().expect("a time")).collect()
    };
    let from_file = times(&run(&["list-events", "--no-stream", &path], b""));
    assert!(from_file.len() > 5 && from_file.iter().all(|ts| *ts == 1_700_000_042));
    let seconds = || SystemTime::now().duration_since(UNIX_EPOCH).expect("a time").as_secs();
    let before = seconds();
    let from_pipe = times(&run(&["list-events", "--no-stream"], &turn()));
    let after = seconds();
    assert!(from_pipe.iter().all(|ts| (before..=after).contains(ts)), "{from_pipe:?}");
}

fn stream_without_events() -> Vec<u8> {
    stream(&[], &[])
}

#[test]
fn what_is_no_frame_is_warned_of() {
    let mut damaged = b"no JSON\n{}\n".to_vec();
    damaged.extend(turn());
    let events = json(&run(&["list-events", "--no-stream"], &turn()))["meta"]["total"].clone();
    let output = run(&["list-events", "--no-stream"], &damaged);
    assert_eq!(output.status.code(), Some(1));
    let envelope = json(&output);
    assert_eq!(envelope["meta"]["total"], events, "the others are listed");
    assert_eq!(envelope["error"]["code"], "bad_lines");
    let detail = envelope["error"]["detail"].as_str().expect("the first of them");
    assert!(detail.starts_with("line 1: "), "{detail}");
    assert_eq!(envelope["warnings"].as_array().map(Vec::len), Some(2));

    let output = run(&["list-events"], &damaged);
    assert_eq!(output.status.code(), Some(1));
    let reported = text(&output.stderr);
    assert!(reported.contains("line 1: ") && reported.contains("line 2: "), "{reported}");
    let last = last_line(&output);
    assert_eq!((&last["_error"], &last["_format"]), (&envelope["error"], &json!("jsonl")));
}

/// A program that was killed while it wrote leaves a piece of a line; all else is listed.
#[test]
fn a_tail_that_is_cut_off_is_warned_of() {
    let whole = turn();
    let cut = &whole[..whole.len() - 5];
    let output = run(&["list-events", "--no-stream"], cut);
    assert!(output.status.success());
    let envelope = json(&output);
    assert_eq!(envelope["ok"], true);
    let warnings = envelope["warnings"].to_string();
    assert!(warnings.contains("the last line is cut off"), "{warnings}");
    let output = run(&["list-events"], cut);
    assert!(output.status.success());
    assert!(text(&output.stderr).contains("the last line is cut off"));
}

#[test]
fn what_cannot_be_read_has_status_2_and_an_envelope() {
    let output = run(&["list-events", "--no-stream", "/proc/nowhere"], b"");
    assert_eq!(output.status.code(), Some(2));
    let envelope = json(&output);
    crate::tools_check::check_unread(&envelope, "/proc/nowhere");
}

fn last_line(output: &std::process::Output) -> Value {
    serde_json::from_str(text(&output.stdout).lines().last().expect("a line")).expect("JSON")
}

/// A program that reads lines finds the same first one in every case, and the error in the last.
#[test]
fn the_preamble_comes_first_even_if_nothing_can_be_read() {
    for path in ["/proc/nowhere", "/"] {
        let output = run(&["list-events", path], b"");
        assert_eq!(output.status.code(), Some(2));
        assert_eq!(text(&output.stdout).lines().count(), 2);
        assert!(text(&output.stdout).starts_with(duologue::conformance::events::PREAMBLE));
        assert_eq!(last_line(&output)["_error"]["code"], "read_failed");
        assert!(text(&output.stderr).contains(&format!("{path} can't be read: ")));
    }
}

#[test]
fn help_says_that_it_streams() {
    for help in ["--help", "-h"] {
        let output = run(&["list-events", help], b"");
        let reported = text(&output.stdout);
        assert!(
            reported.contains("streams JSON Lines") && reported.contains("--no-stream"),
            "{reported}"
        );
    }
}

/// An agent's own code, as agents have it: it asks the manifest, and falls back to lines.
const AGENT: &str = r#"
import subprocess, json, sys

def parse_output(stdout):
    stripped = stdout.strip()
    if not stripped:
        return {}
    try:
        return json.loads(stripped)
    except json.JSONDecodeError:
        pass
    lines = [l for l in stripped.splitlines() if l.strip()]
    objects = [json.loads(l) for l in lines]
    return [o for o in objects if not o.get("_format")]

tool, stream = sys.argv[1:]
manifest = json.loads(
    subprocess.run([tool, "--manifest"], capture_output=True, text=True).stdout
)
cmd_meta = next(
    (c for c in manifest.get("commands", []) if c["name"] == "list-events"), {}
)
assert cmd_meta.get("streaming_default") and cmd_meta.get("supports_streaming")
def stdout(*args):
    return subprocess.run([tool, "list-events", *args, stream], capture_output=True, text=True).stdout
whole = json.loads(stdout("--no-stream"))
assert whole["ok"] and len(whole["data"]) == whole["meta"]["total"] > 5
assert parse_output(stdout()) == whole["data"]
assert parse_output(stdout("--no-stream"))["data"] == whole["data"]
print("fine")
"#;

#[test]
fn an_agent_reads_a_listing_either_way() {
    needs!(Python);
    let folder = crate::server::Folder::new();
    let path = folder.name("stream");
    fs::write(&path, turn()).expect("a file");
    let output =
        Command::new("python3").args(["-c", AGENT, BINARY, &path]).output().expect("python3 runs");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    assert_eq!(text(&output.stdout), "fine\n");
}
