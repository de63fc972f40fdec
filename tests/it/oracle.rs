//! What every conversation must be, whatever happened in it: the contract, as `duologue check` has it,
//! and what it leaves open, as the checker knows neither the requests nor the server.

use crate::frames::Frame;
use duologue::conformance::check::{Checker, Rule, Violation};
use duologue::protocol::any::read_message;
use duologue::protocol::json;
use duologue::protocol::proto::rpc::RpcLine;
use serde_json::Value;

/// Which of the request lines have their `done`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answers {
    /// Each.
    All,
    /// Each, and the process said good-bye with a `done` of its own.
    AllAndFarewell,
    /// Not each: the process ended without reading or without writing all.
    Some,
    /// Not each, and the last line may be cut.
    Cut,
}

/// Everything a process wrote to standard output.
#[derive(Clone, Debug, Default)]
pub(crate) struct Output {
    /// Lines, without their ends.
    pub(crate) lines: Vec<Vec<u8>>,
    /// What follows the last line end.
    pub(crate) rest: Vec<u8>,
}

/// The frames of `output`. Panics if it breaks a rule of the protocol. `asked` is the number of
/// request lines.
pub(crate) fn check_output(output: &Output, asked: usize, answers: Answers) -> Vec<Frame> {
    let wrong = faults(output, asked, answers);
    assert!(wrong.is_empty(), "{wrong:#?}");
    output.lines.iter().map(|line| Frame::parse(line)).collect()
}

/// What is wrong with the output.
fn faults(output: &Output, asked: usize, answers: Answers) -> Vec<String> {
    let mut wrong = contract(output, answers);
    if !output.rest.is_empty() && answers != Answers::Cut {
        wrong.push(format!("cut off: {}", String::from_utf8_lossy(&output.rest)));
    }
    wrong.extend(output.lines.iter().filter_map(|line| rewritten(line)));
    if wrong.is_empty() {
        let frames: Vec<_> = output.lines.iter().map(|line| Frame::parse(line)).collect();
        wrong.extend(ordinals(&frames));
        wrong.extend(dones(&frames, asked, answers));
    }
    wrong
}

/// What the program's own checker reports.
fn contract(output: &Output, answers: Answers) -> Vec<String> {
    let mut checker = Checker::new();
    let mut violations: Vec<_> = output.lines.iter().flat_map(|line| checker.line(line)).collect();
    violations.extend(checker.finish(Some(&output.rest)));
    let is_right = |violation: &Violation| {
        violation.rule == Rule::UnfinishedRequest && matches!(answers, Answers::Some | Answers::Cut)
            // A server that wrote nothing.
            || violation.rule == Rule::HelloFirst && output.lines.is_empty()
    };
    let violations = violations.into_iter().filter(|violation| !is_right(violation));
    violations.map(|violation| format!("{violation:?}")).collect()
}

/// Each event has an ordinal of its own, where the contract lets events of one backend event share it: only
/// what an event brought to light has the event's ordinal, after a piece of text and before the end of a
/// run, and a prompt that joins a run is an event of two requests.
fn ordinals(frames: &[Frame]) -> Vec<String> {
    let mut wrong = Vec::new();
    let (mut ordinal, mut was_extracted) = (0, false);
    for frame in frames {
        // It is no event of the conversation, and has the ordinal of the one before it.
        let counted = frame.ordinal().filter(|_| !frame.is_event("Heartbeat"));
        let Some(next) = counted else { continue };
        let is_extracted = frame.payload("@type").contains("/duologue.extract.");
        let may_share = is_extracted || was_extracted || frame.is_event("SteeringAccepted");
        if next < ordinal || next == ordinal && !may_share {
            wrong.push(format!("ordinal {next} after {ordinal}"));
        }
        (ordinal, was_extracted) = (next, is_extracted);
    }
    wrong
}

/// There is one `done` for each request line.
fn dones(frames: &[Frame], asked: usize, answers: Answers) -> Option<String> {
    let dones = frames.iter().filter(|frame| frame.done().is_some()).count();
    let is_right = match answers {
        Answers::All => dones == asked,
        Answers::AllAndFarewell => dones == asked + 1,
        Answers::Some | Answers::Cut => dones <= asked + 1,
    };
    (!is_right).then(|| format!("{dones} dones for {asked} request lines, {answers:?}"))
}

/// What is wrong with a line that the program would not write so: it has a field that the contract does not
/// have, or one that is to be omitted.
fn rewritten(line: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(line).ok()?;
    let message: RpcLine = read_message(text).ok()?;
    let mut again = Vec::with_capacity(line.len() + 1);
    json::write_line(&message, &mut again).expect("what was read can be written");
    // Most lines are the same to the byte; if not, what they mean counts.
    let meaning = |line: &[u8]| serde_json::from_slice::<Value>(line).ok();
    let is_same = again.strip_suffix(b"\n") == Some(line) || meaning(&again) == meaning(line);
    (!is_same).then(|| format!("it is written otherwise: {text}"))
}

/// A fault in the lines of a conversation.
type Spoil = fn(&mut Vec<String>);

/// The line with this text.
fn at(lines: &[String], text: &str) -> usize {
    lines.iter().position(|line| line.contains(text)).expect("it is there")
}

fn change(lines: &mut [String], line: &str, from: &str, to: &str) {
    let at = at(lines, line);
    assert!(lines[at].contains(from), "{}", lines[at]);
    lines[at] = lines[at].replacen(from, to, 1);
}

/// What the oracle must see, each with a word of what it says of it.
const PLANTED: [(&str, Spoil); 17] = [
    ("HelloFirst", |lines| drop(lines.remove(0))),
    ("HelloAgain", |lines| lines.insert(1, lines[0].clone())),
    ("AfterDone", |lines| lines.push(lines[at(lines, "ChatTextPatch")].clone())),
    ("DoneAgain", |lines| lines.push(lines[at(lines, "\"done\":{")].clone())),
    ("UnfinishedRequest", |lines| drop(lines.remove(at(lines, "\"done\":{")))),
    ("NamelessFrame", |lines| change(lines, "ChatTextPatch", "\"requestId\":\"a\",", "")),
    ("WrongVersion", |lines| change(lines, "ChatRunStarted", "\"version\":1", "\"version\":2")),
    ("NoFrame", |lines| lines.push(r#"{"version":1,"sessionId":"s","requestId":"b"}"#.to_owned())),
    ("UnknownField", |lines| {
        change(lines, "ChatRunStarted", "\"version\"", "\"more\":1,\"version\"")
    }),
    ("InvalidJson", |lines| change(lines, "ChatRunStarted", "{", "[")),
    ("RawSeparator", |lines| change(lines, "ChatTextPatch", "Turn", "T\u{2028}urn")),
    ("DuplicateKey", |lines| {
        change(lines, "\"done\":{", "\"version\":1", "\"version\":1,\"version\":1")
    }),
    ("ordinal 1 after 1", |lines| change(lines, "ChatRunStarted", "\"2\"", "\"1\"")),
    ("OrdinalOrder", |lines| change(lines, "ChatProviderCallStarted", "\"3\"", "\"1\"")),
    ("AnswerAgain", |lines| {
        let error = lines.iter().position(|line| line.contains("\"error\":{")).expect("an error");
        lines.insert(error, lines[error].clone());
    }),
    ("2 dones for 3 request lines", |lines| {
        lines.retain(|line| !line.contains("\"requestId\":\"c\""));
    }),
    ("written otherwise", |lines| {
        change(lines, "\"error\":{", "\"code\"", "\"terminal\":false,\"code\"");
    }),
];

#[test]
fn planted_faults_are_seen() {
    use crate::frames::{cancel, submit};
    let mut server = crate::server::Server::start(&["--session-id", "s"]);
    assert_eq!(server.turn("a", "hi"), "ok");
    server.send_together(&["{".to_owned(), cancel("c")]);
    assert_eq!(server.wait_done("c"), "ok");
    let lines = server.lines();
    server.send(submit("d", "bye"));
    server.wait_done("d");
    server.finish();
    let output = |lines: &[String]| {
        let lines = lines.iter().map(|line| line.clone().into_bytes()).collect();
        Output { lines, rest: Vec::new() }
    };
    assert_eq!(faults(&output(&lines), 3, Answers::All), [""; 0]);
    for (word, spoil) in PLANTED {
        let mut spoiled = lines.clone();
        spoil(&mut spoiled);
        let wrong = faults(&output(&spoiled), 3, Answers::All).join("\n");
        assert!(wrong.contains(word), "{word}: {wrong:?}");
    }
    let cut = Output { rest: b"{".to_vec(), ..output(&lines) };
    assert!(faults(&cut, 3, Answers::All).concat().contains("cut off"));
    assert_eq!(faults(&cut, 3, Answers::Cut), [""; 0]);
    assert_ne!(faults(&output(&lines), 3, Answers::AllAndFarewell), [""; 0]);
}
