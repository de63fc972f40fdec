//! Streams that are right have no breach; each breach that is planted is found, where it is.

use super::{Checker, Rule};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::Path;

const STDIN: [&str; 7] =
    ["ui-events", "snapshot", "done", "stdin-rpc", "single-session", "multi-turn", "cancel"];

/// The frames of a stream, each to be changed before it is checked.
#[derive(Clone)]
struct Stream(Vec<Value>);

impl Stream {
    fn lines(&self) -> Vec<Vec<u8>> {
        self.0.iter().map(|frame| frame.to_string().into_bytes()).collect()
    }

    fn check(&self) -> Vec<(u64, Rule)> {
        check_lines(&self.lines(), None)
    }

    /// Changes the value at `pointer` of one frame.
    fn with(mut self, frame: usize, pointer: &str, value: Value) -> Self {
        let (parent, key) = pointer.rsplit_once('/').expect("a pointer");
        let parent = self.0[frame].pointer_mut(parent).expect("it is there");
        parent[key] = value;
        self
    }

    fn without(mut self, frame: usize) -> Self {
        self.0.remove(frame);
        self
    }

    fn inserted(mut self, before: usize, frame: Value) -> Self {
        self.0.insert(before, frame);
        self
    }

    fn swapped(mut self, one: usize, other: usize) -> Self {
        self.0.swap(one, other);
        self
    }
}

fn check_lines(lines: &[Vec<u8>], tail: Option<&[u8]>) -> Vec<(u64, Rule)> {
    let mut checker = Checker::new();
    let mut found = Vec::new();
    for line in lines {
        found.extend(checker.line(line));
    }
    found.extend(checker.finish(tail));
    assert_eq!(checker.summary().breaches, found.len() as u64);
    assert!(found.iter().all(|breach| !breach.message.is_empty()));
    found.into_iter().map(|breach| (breach.line, breach.rule)).collect()
}

fn hello(words: &[&str]) -> Value {
    let hello = json!({
        "protocol": "pinocchio.chatapp.rpc.v1", "server": "duologue", "capabilities": words,
    });
    json!({ "version": 1, "sessionId": "s", "hello": hello })
}

fn frame(id: &str, name: &str, body: Value) -> Value {
    let mut frame = json!({ "version": 1, "sessionId": "s" });
    if !id.is_empty() {
        frame["requestId"] = id.into();
    }
    frame[name] = body;
    frame
}

fn event(id: &str, ordinal: u64, name: &str, mut payload: Value) -> Value {
    payload["@type"] = format!("type.googleapis.com/pinocchio.chatapp.v1.{name}").into();
    let event = json!({ "ordinal": ordinal.to_string(), "name": name, "payload": payload });
    frame(id, "uiEvent", event)
}

fn done(id: &str, status: &str) -> Value {
    frame(id, "done", json!({ "status": status }))
}

fn error(id: &str, code: &str) -> Value {
    frame(id, "error", json!({ "code": code, "message": "m", "detail": "network: d" }))
}

fn snapshot(id: &str, ordinal: u64) -> Value {
    let payload = json!({
        "@type": "type.googleapis.com/pinocchio.chatapp.v1.ChatMessageEntity", "messageId": "m-user",
    });
    let entity = json!({
        "kind": "ChatMessage", "id": "m-user", "createdOrdinal": "1",
        "lastEventOrdinal": "1", "payload": payload,
    });
    let entities = json!([entity]);
    frame(id, "snapshot", json!({ "snapshotOrdinal": ordinal.to_string(), "entities": entities }))
}

/// A correlation.
fn ids(session: &str, run: &str) -> Value {
    json!({ "sessionId": session, "runId": run })
}

/// An entity of the run below, with one field of its text.
fn entity(kind: &str, id: &str, name: &str, (field, text): (&str, &str)) -> Value {
    let payload = json!({
        "@type": format!("type.googleapis.com/pinocchio.chatapp.v1.{name}"), field: text,
    });
    json!({
        "kind": kind, "id": id, "createdOrdinal": "1", "lastEventOrdinal": "1", "payload": payload,
    })
}

/// Everything that the run below tells.
fn full_snapshot(id: &str, ordinal: u64) -> Value {
    let mut snapshot = snapshot(id, ordinal);
    let entities = snapshot["snapshot"]["entities"].as_array_mut().expect("a list");
    entities.push(entity("ChatMessage", "t", "ChatMessageEntity", ("text", "Grüße dich")));
    entities.push(entity("ChatToolCall", "c", "ToolCallEntity", ("input", "{}")));
    entities.push(entity("ChatToolResult", "c:result", "ToolResultEntity", ("result", "noon")));
    snapshot
}

fn patch(ordinal: u64, sequence: u64, offset: u64, text: &str) -> Value {
    let mut payload = json!({
        "messageId": "t", "sequence": sequence.to_string(), "text": text,
        "mode": "CHAT_STREAM_PATCH_MODE_APPEND",
    });
    if offset > 0 {
        payload["offset"] = offset.to_string().into();
    }
    event("r", ordinal, "ChatTextPatch", payload)
}

fn tool(ordinal: u64, name: &str, mut payload: Value) -> Value {
    payload["toolCallId"] = "c".into();
    event("r", ordinal, name, payload)
}

/// A run with text and a tool call, between `hello` and a shutdown.
fn run() -> Stream {
    let arguments = json!({ "sequence": "1", "arguments": "{}" });
    Stream(vec![
        hello(&STDIN),
        event("r", 1, "ChatUserMessageAccepted", json!({ "messageId": "m-user" })),
        event("r", 2, "ChatRunStarted", json!({ "messageId": "m" })),
        event("r", 3, "ChatProviderCallStarted", json!({})),
        event("r", 4, "ChatTextSegmentStarted", json!({ "messageId": "t" })),
        patch(5, 1, 0, "Grüße "),
        patch(6, 3, 8, "dich"),
        event("r", 7, "ChatTextSegmentFinished", json!({ "messageId": "t", "text": "Grüße dich" })),
        tool(8, "ChatToolCallStarted", json!({})),
        tool(9, "ChatToolArgumentsPatch", arguments),
        tool(10, "ChatToolCallRequested", json!({ "input": "{}" })),
        event("r", 11, "ChatProviderCallFinished", json!({})),
        tool(12, "ChatToolExecutionStarted", json!({})),
        tool(13, "ChatToolResultReady", json!({ "result": "noon" })),
        tool(14, "ChatToolCallFinished", json!({})),
        event("r", 15, "ChatRunFinished", json!({})),
        full_snapshot("r", 15),
        done("r", "ok"),
        done("q", "shutdown"),
    ])
}

/// A process of one request, which failed.
fn one_shot() -> Stream {
    let failed = json!({ "code": "run_failed", "detail": "network: d", "terminal": true });
    Stream(vec![
        hello(&["ui-events", "snapshot", "done"]),
        frame("", "snapshot", json!({})),
        event("", 1, "ChatUserMessageAccepted", json!({ "messageId": "m-user" })),
        event("", 2, "ChatRunStarted", json!({})),
        event("", 3, "ChatRunFailed", json!({})),
        snapshot("", 3),
        frame("", "error", failed),
        done("", "failed"),
    ])
}

#[test]
fn right_streams_have_no_breach() {
    assert_eq!(run().check(), []);
    assert_eq!(one_shot().check(), []);
    // Whoever starts it may want no snapshot at the end.
    assert_eq!(one_shot().without(5).check(), []);
    let refused = Stream(vec![
        hello(&STDIN),
        error("", "invalid_request_json"),
        done("", "failed"),
        error("", "line_too_long"),
        done("", "failed"),
        error("c", "no_active_request"),
        done("c", "ok"),
    ]);
    assert_eq!(refused.check(), []);
    let signal = frame("", "error", json!({ "code": "interrupted", "terminal": true }));
    let signalled = run().inserted(19, signal).inserted(20, done("", "stopped"));
    assert_eq!(signalled.check(), []);
}

/// The frames of the kept conversations, with what a server of requests says of itself.
#[test]
fn kept_conversations_have_no_breach() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let mut streams = 0;
    for file in std::fs::read_dir(folder).expect("the folder") {
        let path = file.expect("a file").path();
        let text = std::fs::read_to_string(&path).expect("a conversation");
        let words = format!("{:?}", STDIN);
        let lines = text.lines().filter_map(|line| line.strip_prefix("< "));
        let lines: Vec<_> = lines
            .map(|line| line.replace(r#"["single-session"]"#, &words))
            // These files are compared as JSON, and have separators as they are.
            .map(|line| line.replace('\u{2028}', "\\u2028").replace('\u{2029}', "\\u2029"))
            .map(|line| line.replace('\u{85}', "\\u0085").into_bytes())
            .collect();
        // Some stop in the middle.
        let mut found = check_lines(&lines, None);
        found.retain(|(_, rule)| *rule != Rule::UnfinishedRequest);
        assert_eq!(found, [], "{}", path.display());
        streams += usize::from(lines.len() > 2);
    }
    assert!(streams > 8, "only {streams} conversations");
}

/// The default session gives way to the first request's, even if bad lines come before it.
#[test]
fn a_session_is_bound_once() {
    let mine = |mut frame: Value| {
        frame["sessionId"] = "mine".into();
        frame
    };
    let bound = Stream(vec![
        hello(&STDIN),
        error("", "invalid_request_json"),
        done("", "failed"),
        mine(done("a", "ok")),
        mine(done("b", "ok")),
    ]);
    assert_eq!(bound.check(), []);
    assert_eq!(
        bound.inserted(4, done("c", "ok")).check().first(),
        Some(&(5, Rule::SessionChanged))
    );
    let late = Stream(vec![hello(&STDIN), done("a", "ok"), mine(done("b", "ok"))]);
    assert_eq!(late.check(), [(3, Rule::SessionChanged)]);
}

/// Each planted breach: the stream, and where what is found.
fn planted() -> Vec<(Stream, u64, Rule)> {
    let long = |text: &str| json!(text);
    let type_of = |name: &str| json!(format!("type.googleapis.com/{name}"));
    vec![
        (run().without(0), 1, Rule::HelloFirst),
        (run().inserted(1, hello(&STDIN)), 2, Rule::HelloAgain),
        (run().with(0, "/requestId", json!("r")), 1, Rule::HelloRequest),
        (run().with(0, "/hello/protocol", json!("other")), 1, Rule::HelloProtocol),
        (run().with(3, "/version", json!(2)), 4, Rule::WrongVersion),
        (run().with(3, "/sessionId", json!("")), 4, Rule::SessionMissing),
        (run().with(3, "/sessionId", json!("x")), 4, Rule::SessionChanged),
        (run().with(3, "/requestId", json!("")), 4, Rule::NamelessFrame),
        (run().with(3, "/extra", json!(1)), 4, Rule::UnknownField),
        (run().with(3, "/uiEvent/payload/extra", json!(1)), 4, Rule::UnknownField),
        (run().with(3, "/uiEvent/payload/@type", type_of("a.B")), 4, Rule::UnknownType),
        (run().with(3, "/uiEvent/ordinal", json!("x")), 4, Rule::WrongValue),
        (run().with(3, "/uiEvent/ordinal", json!(4)), 4, Rule::WrongValue),
        (run().with(5, "/uiEvent/payload/mode", json!(1)), 6, Rule::WrongValue),
        (run().with(5, "/uiEvent/payload/mode", json!("OFTEN")), 6, Rule::WrongValue),
        (run().with(3, "/uiEvent", json!(null)), 4, Rule::NoFrame),
        (run().with(3, "/done", json!({})), 4, Rule::TwoFrames),
        (run().with(3, "/uiEvent/name", long("ChatRunStarted")), 4, Rule::NameMismatch),
        (run().with(3, "/uiEvent/payload", json!(null)), 4, Rule::PayloadMissing),
        (run().with(3, "/uiEvent/ordinal", json!("1")), 4, Rule::OrdinalOrder),
        (run().with(6, "/uiEvent/ordinal", json!("5")), 7, Rule::OrdinalOrder),
        (run().with(3, "/uiEvent/ordinal", json!("0")), 4, Rule::OrdinalOrder),
        (run().with(16, "/snapshot/snapshotOrdinal", json!("16")), 17, Rule::SnapshotOrdinal),
        (
            run().with(16, "/snapshot/entities/0/lastEventOrdinal", json!("16")),
            17,
            Rule::SnapshotEntity,
        ),
        (
            run().with(16, "/snapshot/entities/0/kind", json!("ChatToolCall")),
            17,
            Rule::SnapshotEntity,
        ),
        (run().without(2), 3, Rule::EventOrder),
        (run().without(1), 2, Rule::EventOrder),
        (run().without(3), 4, Rule::EventOrder),
        (run().without(4), 5, Rule::EventOrder),
        (run().without(8), 9, Rule::EventOrder),
        (run().without(13), 14, Rule::EventOrder),
        (run().swapped(12, 13), 14, Rule::OrdinalOrder),
        (run().without(7), 11, Rule::LeftOpen),
        (run().without(14), 15, Rule::LeftOpen),
        (run().without(11), 15, Rule::LeftOpen),
        (run().without(15), 17, Rule::LeftOpen),
        (
            run().inserted(16, event("r", 16, "ChatProviderCallStarted", json!({}))),
            17,
            Rule::EventOrder,
        ),
        (run().with(6, "/uiEvent/payload/sequence", json!("1")), 7, Rule::PatchSequence),
        (run().with(6, "/uiEvent/payload/offset", json!("6")), 7, Rule::PatchOffset),
        (run().with(7, "/uiEvent/payload/text", long("Grüße")), 8, Rule::SegmentText),
        (run().with(10, "/uiEvent/payload/input", long("[]")), 11, Rule::SegmentText),
        (run().with(7, "/uiEvent/payload/content", long("other")), 8, Rule::SegmentText),
        (run().without(17), 2, Rule::UnfinishedRequest),
        (run().with(17, "/done/status", json!("fine")), 18, Rule::UnknownStatus),
        (run().with(17, "/done/status", json!("stopped")), 18, Rule::DoneStatus),
        (run().with(17, "/done/status", json!("failed")), 18, Rule::DoneStatus),
        (run().inserted(17, error("r", "snapshot_failed")), 19, Rule::DoneStatus),
        (run().inserted(18, done("z", "failed")), 19, Rule::DoneStatus),
        (run().inserted(18, done("z", "stopped")), 19, Rule::DoneStatus),
        (run().inserted(18, done("r", "ok")), 19, Rule::DoneAgain),
        (run().inserted(18, snapshot("r", 15)), 19, Rule::AfterDone),
        (run().inserted(19, done("z", "ok")), 20, Rule::AfterEnd),
        (run().inserted(18, error("z", "surprise")), 19, Rule::UnknownCode),
        (
            run().inserted(17, error("r", "run_failed")).with(17, "/error/detail", json!("odd: x")),
            18,
            Rule::ErrorClass,
        ),
        (run().with(5, "/uiEvent/payload/role", json!("user")), 6, Rule::WrongWord),
        (run().with(5, "/uiEvent/payload/status", json!("finished")), 6, Rule::WrongWord),
        (run().with(7, "/uiEvent/payload/status", json!("streaming")), 8, Rule::WrongWord),
        (run().with(15, "/uiEvent/payload/status", json!("failed")), 16, Rule::WrongWord),
        (run().with(16, "/snapshot/entities/0/payload/role", json!("poet")), 17, Rule::WrongWord),
        (run().with(5, "/uiEvent/payload/streamId", json!("m")), 6, Rule::PatchStream),
        (run().with(9, "/uiEvent/payload/streamId", json!("t")), 10, Rule::PatchStream),
        (run().with(5, "/uiEvent/payload/correlation", ids("x", "")), 6, Rule::Correlation),
        (
            run().with(16, "/snapshot/entities/0/payload/correlation", ids("x", "")),
            17,
            Rule::Correlation,
        ),
        (
            run().with(5, "/uiEvent/payload/correlation", ids("s", "a")).with(
                6,
                "/uiEvent/payload/correlation",
                ids("s", "b"),
            ),
            7,
            Rule::Correlation,
        ),
        (
            run().with(16, "/snapshot/entities/0/payload/text", json!("other")),
            17,
            Rule::SnapshotText,
        ),
        (
            run().with(16, "/snapshot/entities/1/payload/text", json!("Grüße")),
            17,
            Rule::SnapshotText,
        ),
        (run().with(16, "/snapshot/entities/2/payload/input", json!("[]")), 17, Rule::SnapshotText),
        (
            run().with(16, "/snapshot/entities/3/payload/result", json!("late")),
            17,
            Rule::SnapshotText,
        ),
        (run().with(16, "/snapshot/entities", json!([])), 17, Rule::SnapshotLost),
        (run().inserted(16, snapshot("z", 15)), 17, Rule::SnapshotLost),
        (
            run().inserted(16, event("q", 16, "ChatUserMessageAccepted", json!({}))),
            17,
            Rule::TwoRuns,
        ),
        (one_shot().inserted(7, snapshot("", 3)), 8, Rule::AfterTerminal),
        (one_shot().without(1), 2, Rule::OneShotOrder),
        (one_shot().with(6, "/error/terminal", json!(false)), 7, Rule::OneShotOrder),
        (one_shot().inserted(4, snapshot("", 2)), 5, Rule::OneShotOrder),
        (one_shot().inserted(2, frame("", "snapshot", json!({}))), 3, Rule::OneShotOrder),
        (one_shot().inserted(6, snapshot("", 3)), 7, Rule::OneShotOrder),
        (one_shot().inserted(8, done("", "failed")), 9, Rule::AfterEnd),
    ]
}

#[test]
fn every_planted_breach_is_found() {
    for (stream, line, rule) in planted() {
        let found = stream.check();
        assert!(found.contains(&(line, rule)), "{rule} in line {line}; found: {found:?}");
    }
}

/// What is not JSON, or not a line, is planted as bytes; with that, no rule is left without a test.
#[test]
fn every_rule_has_a_planted_breach() {
    let good = run().lines();
    let with = |at: usize, line: &[u8]| {
        let mut lines = good.clone();
        lines[at] = line.to_vec();
        lines
    };
    let raw = |text: &str| {
        String::from_utf8_lossy(&good[5]).replace("Gr", &format!("G{text}r")).into_bytes()
    };
    let twice =
        String::from_utf8_lossy(&good[17]).replace("{\"status\"", "{\"status\":\"\",\"status\"");
    let mut seen: BTreeSet<Rule> = planted().into_iter().map(|(_, _, rule)| rule).collect();
    let planted: [(usize, &[u8], Rule); 8] = [
        (5, b"\xff", Rule::InvalidUtf8),
        (5, b"", Rule::InvalidJson),
        (5, b"[1]", Rule::InvalidJson),
        (5, b"{\"version\":1", Rule::InvalidJson),
        (17, twice.as_bytes(), Rule::DuplicateKey),
        (5, &raw("\u{2028}"), Rule::RawSeparator),
        (5, &raw("\u{85}"), Rule::RawSeparator),
        (5, &[good[5].as_slice(), b"\r"].concat(), Rule::RawSeparator),
    ];
    for (at, line, rule) in planted {
        let found = check_lines(&with(at, line), None);
        assert!(found.contains(&(at as u64 + 1, rule)), "{rule}; found: {found:?}");
        seen.insert(rule);
    }
    let found = check_lines(&good[..18], good.last().map(Vec::as_slice));
    assert_eq!(found, [(19, Rule::NoLineFeed)]);
    let long = Checker::new().long_line(7);
    assert_eq!(long[0].rule, Rule::LineTooLong);
    let snapshots = run()
        .with(5, "/uiEvent/payload/mode", json!("CHAT_STREAM_PATCH_MODE_SNAPSHOT"))
        .with(6, "/uiEvent/payload/mode", json!("CHAT_STREAM_PATCH_MODE_SNAPSHOT"));
    assert_eq!(snapshots.check(), [(7, Rule::PatchText), (8, Rule::SegmentText)]);
    let accumulated = snapshots.with(6, "/uiEvent/payload/text", json!("Grüße dich"));
    assert_eq!(accumulated.check(), []);
    let extension = run().with(
        5,
        "/uiEvent/payload/@type",
        json!("type.googleapis.com/duologue.tea.v1.ChatTextPatch"),
    );
    assert!(extension.check().contains(&(6, Rule::UnannouncedExtension)));
    let mut announced = extension;
    announced.0[0] = hello(&[&STDIN[..], &["tea"]].concat());
    assert!(!announced.check().iter().any(|(line, _)| *line == 6), "{:?}", announced.check());
    seen.extend([Rule::NoLineFeed, Rule::LineTooLong, Rule::PatchText, Rule::UnannouncedExtension]);
    let missing: Vec<_> = Rule::ALL.into_iter().filter(|rule| !seen.contains(rule)).collect();
    assert_eq!(missing, []);
}

#[test]
fn words_of_rules_are_each_their_own() {
    let words: BTreeSet<_> = Rule::ALL.into_iter().map(Rule::as_str).collect();
    assert_eq!(words.len(), Rule::ALL.len());
}

/// Cut anywhere, a right stream is a right beginning of one.
#[test]
fn a_stream_that_is_cut_off_has_no_breach() {
    let whole: Vec<u8> =
        run().lines().iter().flat_map(|line| [line.as_slice(), b"\n"].concat()).collect();
    for end in (1..whole.len()).step_by(11).chain(whole.len() - 20..whole.len()) {
        let mut lines: Vec<_> = whole[..end].split(|&byte| byte == b'\n').collect();
        let tail = lines.pop().expect("one at least");
        let mut checker = Checker::new();
        let mut found: Vec<_> = lines.iter().flat_map(|line| checker.line(line)).collect();
        found.extend(checker.finish(Some(tail)));
        let is_whole = whole.get(end) == Some(&b'\n');
        let is_in_hello = lines.is_empty();
        found.retain(|breach| breach.rule != Rule::UnfinishedRequest || !tail.is_empty());
        let rules: Vec<_> = found.iter().map(|breach| breach.rule).collect();
        let is_right = rules.iter().all(|rule| {
            let is_first = is_in_hello && !is_whole && *rule == Rule::HelloFirst;
            let is_last = matches!(rule, Rule::NoLineFeed | Rule::UnfinishedRequest);
            is_first || is_whole && is_last
        });
        assert!(is_right, "cut at {end}: {rules:?}");
        assert_eq!(checker.summary().notes.is_empty(), tail.is_empty() || is_whole, "at {end}");
    }
}

#[test]
fn an_empty_stream_lacks_its_hello() {
    assert_eq!(check_lines(&[], None), [(0, Rule::HelloFirst)]);
}

/// A producer that crashed in its first write must not pass.
#[test]
fn a_stream_without_a_frame_lacks_its_hello() {
    for tail in ["{\"ver", "{", "{\"hello\":{\"ser", "  {"] {
        assert_eq!(check_lines(&[], Some(tail.as_bytes())), [(1, Rule::HelloFirst)], "{tail}");
    }
    let lines = [b"no JSON".to_vec()];
    assert_eq!(check_lines(&lines, None), [(1, Rule::InvalidJson), (1, Rule::HelloFirst)]);
}

/// Only what could become a frame was cut off; the rest is no frame, and never was.
#[test]
fn a_tail_that_cannot_become_a_frame_is_a_breach() {
    let lines = run().lines();
    for tail in ["garbage", "[", "\"", "tru", "-", " ", "{]", "{\"a\":1}}", "\u{1f}"] {
        let found = check_lines(&lines, Some(tail.as_bytes()));
        assert!(found.iter().any(|(line, _)| *line == 20), "{tail:?}: {found:?}");
    }
    for tail in [&b"{"[..], b"{\"a\":[[", b"{\"a\":tr", b"{\"a\":\"\\u00", b"{\"a\":\"\xc3"] {
        assert_eq!(check_lines(&lines, Some(tail)), [], "{tail:?}");
    }
}

/// Nothing a stream holds makes the checker fail.
#[test]
fn garbage_is_told_and_survived() {
    let deep = "[".repeat(1_000_000);
    let nested = format!(r#"{{"version":1,"sessionId":"s","hello":{}"#, "{\"a\":".repeat(100_000));
    let wide = format!(r#"{{"done":{{"status":"{}"}}}}"#, "x".repeat(1_000_000));
    for line in [deep.as_str(), &nested, &wide, "null", "\u{feff}{}", "{}{}", "\0"] {
        let mut checker = Checker::new();
        let breaches = checker.line(line.as_bytes());
        assert!(!breaches.is_empty(), "{}", &line[..line.len().min(20)]);
        assert!(breaches.iter().all(|breach| breach.message.len() < 2_000));
    }
}

mod snapshots;

mod random {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Whatever is dropped, doubled or moved: no panic, and the line numbers are the stream's.
        #[test]
        fn shuffled_streams_are_survived(picks in prop::collection::vec(0_usize..19, 0..60)) {
            let good = run().lines();
            let lines: Vec<_> = picks.iter().map(|&pick| good[pick].clone()).collect();
            let found = check_lines(&lines, None);
            prop_assert!(found.iter().all(|(line, _)| *line <= lines.len() as u64));
        }

        /// A byte that is changed is found, or changes nothing that matters.
        #[test]
        fn damaged_lines_are_survived(line in 0_usize..19, at in 0_usize..400, byte: u8) {
            let mut lines = run().lines();
            let length = lines[line].len();
            lines[line][at % length] = byte;
            check_lines(&lines, None);
        }
    }
}
