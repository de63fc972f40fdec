//! Violations planted in correct streams: each is found in its line.

mod frames;

use super::a_loop::a_loop;
use super::sample::{
    STDIN, Stream, cancelled, check_lines, done, error, hello, refused, run, state,
};
use super::{Checker, Rule, asked_again};
use serde_json::json;
use std::collections::BTreeSet;

/// A stream with a violation, the line of the violation, and its rule.
type Planted = (Stream, u64, Rule);

fn planted() -> Vec<Planted> {
    let again = refused().inserted(6, error("c", "no_active_request"));
    let again = vec![(again, 7, Rule::AnswerAgain)];
    let of_frames = [frames::planted(), planted_in_payloads(), again].concat();
    [of_frames, planted_in_answers(), planted_in_a_loop(), asked_again::planted()].concat()
}

/// Violations in the events of tools and of extensions.
fn planted_in_a_loop() -> Vec<Planted> {
    let payload = |at: usize, field: &str, value: &str| {
        a_loop().with(at, &format!("/uiEvent/payload/{field}"), json!(value))
    };
    let (approval, frontend, resolved, denied) = (15, 17, 19, 22);
    let (answered, prompt, steered) = (26, 35, 36);
    vec![
        (a_loop().without(1), 2, Rule::UnannouncedExtension),
        (a_loop().without(3), 17, Rule::EventOrder),
        (a_loop().with(2, "/uiEvent/payload/state", json!(null)), 3, Rule::MissingField),
        (payload(2, "server", ""), 3, Rule::MissingField),
        (a_loop().with(2, "/uiEvent/payload/tools", json!([""])), 3, Rule::MissingField),
        (a_loop().with(3, "/uiEvent/payload/tools/0/name", json!("")), 4, Rule::MissingField),
        (a_loop().with(4, "/done/status", json!("failed")), 5, Rule::DoneStatus),
        (payload(approval, "input", "{}"), approval as u64 + 1, Rule::FieldChanged),
        (payload(approval, "toolCallId", "z"), approval as u64 + 1, Rule::EventOrder),
        (payload(approval, "server", ""), approval as u64 + 1, Rule::MissingField),
        (a_loop().without(approval), resolved as u64, Rule::EventOrder),
        (a_loop().without(resolved), resolved as u64 + 1, Rule::EventOrder),
        (payload(resolved, "decision", "DENY"), resolved as u64 + 2, Rule::EventOrder),
        (payload(resolved, "decision", "PERHAPS"), resolved as u64 + 1, Rule::WrongValue),
        (
            a_loop().with(resolved, "/uiEvent/payload/decision", json!(null)),
            resolved as u64 + 1,
            Rule::MissingField,
        ),
        (payload(denied + 1, "status", "success"), denied as u64 + 2, Rule::FieldChanged),
        (
            a_loop().with(frontend, "/uiEvent/payload/input/z", json!(2)),
            frontend as u64 + 1,
            Rule::FieldChanged,
        ),
        (payload(frontend, "toolName", "other"), frontend as u64 + 1, Rule::FieldChanged),
        (
            a_loop().with(frontend, "/uiEvent/payload/mode", json!(null)),
            frontend as u64 + 1,
            Rule::MissingField,
        ),
        (a_loop().without(frontend), answered as u64, Rule::EventOrder),
        (a_loop().without(answered), answered as u64 + 1, Rule::FieldChanged),
        (payload(answered, "status", "error"), answered as u64 + 2, Rule::FieldChanged),
        (payload(answered, "status", "pending"), answered as u64 + 1, Rule::WrongWord),
        (a_loop().inserted(31, error("z", "session_busy")), 33, Rule::DoneStatus),
        (payload(prompt, "messageId", "chat-msg-1-user-3"), prompt as u64 + 1, Rule::MessageId),
        (payload(prompt, "messageId", "chat-msg-1-user-1"), prompt as u64 + 1, Rule::MessageId),
        (payload(prompt, "messageId", "chat-msg-1-user"), prompt as u64 + 1, Rule::MessageId),
        (a_loop().without(34), prompt as u64, Rule::EventOrder),
        (a_loop().without(prompt), steered as u64, Rule::EventOrder),
        (a_loop().without(steered), steered as u64 + 2, Rule::EventOrder),
        (payload(steered, "targetRequestId", "m"), steered as u64 + 1, Rule::EventOrder),
        (payload(steered, "messageId", "chat-msg-1-user"), steered as u64 + 1, Rule::EventOrder),
        (payload(steered, "correlation/runId", "run-2"), steered as u64 + 1, Rule::Correlation),
        (a_loop().with(37, "/done/status", json!("stopped")), 38, Rule::DoneStatus),
        (payload(40, "finishReason", "length"), 42, Rule::FieldChanged),
        (a_loop().with(40, "/uiEvent/payload/final", json!(false)), 41, Rule::WrongWord),
        (a_loop().without(34), 38, Rule::LeftOpen),
    ]
}

/// Violations in the answers to clients of a server that is idle, running or ending.
fn planted_in_answers() -> Vec<Planted> {
    let stopped = |end: &str| {
        let name = format!("ChatRun{end}");
        let at = format!("type.googleapis.com/pinocchio.chatapp.v1.{name}");
        cancelled()
            .with(8, "/uiEvent/name", json!(name))
            .with(8, "/uiEvent/payload/@type", json!(at))
            .with(8, "/uiEvent/payload/status", json!(end.to_lowercase()))
    };
    vec![
        (refused().with(5, "/error/code", json!("session_busy")), 6, Rule::ErrorState),
        (refused().with(5, "/error/code", json!("empty_prompt")), 7, Rule::DoneStatus),
        (refused().with(6, "/done/status", json!("failed")), 7, Rule::DoneStatus),
        (refused().with(5, "/error/message", json!("")), 6, Rule::MissingField),
        (refused().with(5, "/error/terminal", json!(true)), 6, Rule::ErrorState),
        (refused().with(5, "/requestId", json!("")), 6, Rule::NamelessFrame),
        (refused().with(6, "/requestId", json!("")), 7, Rule::NamelessFrame),
        (cancelled().with(11, "/error/code", json!("run_failed")), 12, Rule::ErrorState),
        (cancelled().with(4, "/error/code", json!("no_active_request")), 6, Rule::DoneStatus),
        (cancelled().with(6, "/done/status", json!("failed")), 7, Rule::DoneStatus),
        (cancelled().with(13, "/done/status", json!("failed")), 14, Rule::DoneStatus),
        (cancelled().swapped(7, 9), 8, Rule::EventOrder),
        (cancelled().with(7, "/uiEvent/payload/finishClass", json!("late")), 8, Rule::WrongWord),
        (stopped("Finished"), 9, Rule::EndMismatch),
        (stopped("Failed"), 9, Rule::EndMismatch),
        (run().inserted(8, state("r", 7, vec![])), 9, Rule::EventOrder),
    ]
}

/// Violations in the fields of payloads.
fn planted_in_payloads() -> Vec<Planted> {
    let payload = |at: usize, field: &str, value: &str| {
        run().with(at, &format!("/uiEvent/payload/{field}"), json!(value))
    };
    let entity = |at: usize, field: &str, value: serde_json::Value| {
        run().with(16, &format!("/snapshot/entities/{at}/{field}"), value)
    };
    vec![
        (run().with(0, "/hello/server", json!("")), 1, Rule::HelloServer),
        (run().with(0, "/hello/capabilities", json!(&STDIN[1..])), 1, Rule::HelloCapabilities),
        (
            run().with(
                0,
                "/hello/capabilities",
                json!([&STDIN[..], &["max-request-bytes="]].concat()),
            ),
            1,
            Rule::HelloCapabilities,
        ),
        (payload(1, "role", ""), 2, Rule::MissingField),
        (payload(1, "prompt", "other"), 2, Rule::TextContent),
        (payload(2, "messageId", "chat-msg-2"), 3, Rule::MessageId),
        (payload(2, "messageId", "2"), 3, Rule::MessageId),
        (payload(2, "prompt", "other"), 3, Rule::FieldChanged),
        (payload(2, "correlation/turnId", ""), 3, Rule::Correlation),
        (payload(4, "correlation/segmentId", "segment-2"), 5, Rule::MessageId),
        (payload(4, "prompt", "other"), 5, Rule::FieldChanged),
        (payload(5, "correlation/providerCallId", "other"), 6, Rule::Correlation),
        (payload(6, "mode", "CHAT_STREAM_PATCH_MODE_SNAPSHOT"), 7, Rule::PatchMode),
        (payload(5, "mode", "CHAT_STREAM_PATCH_MODE_REPLACE"), 6, Rule::PatchMode),
        (payload(5, "status", ""), 6, Rule::MissingField),
        (payload(7, "content", ""), 8, Rule::TextContent),
        (payload(7, "status", "stopped"), 12, Rule::EndMismatch),
        (payload(7, "status", "stopped"), 16, Rule::EndMismatch),
        (payload(9, "toolName", "other"), 10, Rule::FieldChanged),
        (payload(9, "correlation/toolCallId", "d"), 10, Rule::Correlation),
        (payload(11, "finishClass", "cancelled"), 16, Rule::EndMismatch),
        (payload(12, "input", "[]"), 13, Rule::FieldChanged),
        (payload(14, "correlation/providerCallId", "other"), 15, Rule::Correlation),
        (entity(0, "createdOrdinal", json!("0")), 17, Rule::SnapshotEntity),
        (entity(0, "payload/messageId", json!("chat-msg-2-user")), 17, Rule::MessageId),
        (entity(0, "payload/content", json!("")), 17, Rule::TextContent),
        (entity(1, "payload/prompt", json!("other")), 17, Rule::FieldChanged),
        (entity(1, "payload/segment", json!(2)), 17, Rule::SnapshotEntity),
        (entity(1, "payload/segmentType", json!("")), 17, Rule::WrongWord),
        (entity(1, "payload/status", json!("stopped")), 17, Rule::SnapshotEntity),
        (entity(1, "payload/parentMessageId", json!("")), 17, Rule::MessageId),
        (entity(1, "kind", json!("Poem")), 17, Rule::SnapshotEntity),
        (entity(2, "payload/toolCallId", json!("d")), 17, Rule::MessageId),
        (entity(2, "payload/executing", json!(true)), 17, Rule::WrongWord),
    ]
}

#[test]
fn every_planted_violation_is_found() {
    for (stream, line, rule) in planted() {
        let found = stream.check();
        assert!(found.contains(&(line, rule)), "{rule} in line {line}; found: {found:?}");
    }
}

/// The stream has no requests: what may be the answer to one of an extension is no violation.
#[test]
fn a_done_alone_is_noted() {
    for stream in [refused().without(5), cancelled().without(11)] {
        let mut checker = Checker::new();
        let found: Vec<_> = stream.lines().iter().flat_map(|line| checker.line(line)).collect();
        assert_eq!(found, []);
        let notes = checker.summary().notes;
        assert!(notes[0].starts_with("1 requests got nothing but a done \"ok\""), "{notes:?}");
    }
}

/// The stream has no requests: a `done` alone in a run may answer a cancel of that run, or what an
/// extension has, which a client turns on by using it.
#[test]
fn a_run_that_goes_on_after_a_done_alone_is_noted() {
    let noted = |stream: &Stream| {
        let mut checker = Checker::new();
        let found: Vec<_> = stream.lines().iter().flat_map(|line| checker.line(line)).collect();
        assert_eq!(found, []);
        let notes = checker.summary().notes;
        notes.iter().any(|note| note.starts_with("1 runs went on"))
    };
    let plain = run().inserted(4, done("z", "ok"));
    assert!(noted(&plain));
    assert!(!noted(&run()) && !noted(&cancelled()));
    for sign in [done("y", "ok"), error("y", "unknown_tool_call")] {
        let frames = match sign.get("error") {
            None => vec![sign],
            Some(_) => vec![sign, done("y", "failed")],
        };
        let mut used = run().inserted(4, done("z", "ok"));
        used.0.splice(1..1, frames);
        assert!(!noted(&used));
    }
    // A submit that waits is withdrawn.
    let mut withdrawn = plain.clone();
    withdrawn.0.insert(5, done("y", "stopped"));
    assert!(!noted(&withdrawn));
    let mut announced = plain;
    announced.0[0] = hello(&[&STDIN[..], &["approvals"]].concat());
    assert!(!noted(&announced));
}

/// The states of tool servers come before the `done` of the `enable` that asks for them.
#[test]
fn servers_may_be_shown_before_the_done_of_their_enable() {
    assert_eq!(a_loop().swapped(1, 2).check(), []);
    let refused = a_loop().swapped(1, 2).with(2, "/done/status", json!("failed"));
    assert!(refused.check().contains(&(2, Rule::UnannouncedExtension)));
    let mut late = a_loop().swapped(1, 2);
    late.0.insert(2, state("t", 1, vec![]));
    late.0.insert(3, done("t", "ok"));
    assert!(late.check().contains(&(2, Rule::UnannouncedExtension)));
    let mut cut = a_loop();
    cut.0 = vec![cut.0[0].clone(), cut.0[2].clone()];
    assert_eq!(cut.check(), [(2, Rule::UnannouncedExtension)]);
}

/// Bytes that are not JSON, or not a line. With these, every rule has a test.
#[test]
fn every_rule_has_a_planted_violation() {
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
        .with(6, "/uiEvent/payload/mode", json!("CHAT_STREAM_PATCH_MODE_SNAPSHOT"))
        .with(6, "/uiEvent/payload/offset", json!("0"));
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
