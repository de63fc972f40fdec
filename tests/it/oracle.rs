//! What every conversation must be, whatever happened in it.

use crate::frames::Frame;
use duologue::conformance::check::{Checker, Rule, Violation};
use duologue::protocol::any::read_message;
use duologue::protocol::json;
use duologue::protocol::proto::rpc::RpcLine;
use serde_json::Value;
use std::collections::HashMap;

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

/// What was seen of a request.
#[derive(Default)]
struct Request {
    is_done: bool,
}

/// The frames of `output`. Panics if it breaks a rule of the protocol. `asked` is the number of
/// request lines.
pub(crate) fn check_output(output: &Output, asked: usize, answers: Answers) -> Vec<Frame> {
    let frames: Vec<_> = output.lines.iter().map(|line| strict(line)).collect();
    let is_whole = output.rest.is_empty() || answers == Answers::Cut;
    assert!(is_whole, "cut off: {}", String::from_utf8_lossy(&output.rest));
    check_frames(&frames, asked, answers);
    check_contract(output, answers);
    frames
}

/// The program's own checker must have nothing to say.
fn check_contract(output: &Output, answers: Answers) {
    let mut checker = Checker::new();
    let mut violations: Vec<_> = output.lines.iter().flat_map(|line| checker.line(line)).collect();
    violations.extend(checker.finish(Some(&output.rest)));
    let is_right = |violation: &Violation| {
        violation.rule == Rule::UnfinishedRequest && matches!(answers, Answers::Some | Answers::Cut)
            // A server that wrote nothing.
            || violation.rule == Rule::HelloFirst && output.lines.is_empty()
    };
    violations.retain(|violation| !is_right(violation));
    assert_eq!(violations, []);
}

fn check_frames(frames: &[Frame], asked: usize, answers: Answers) {
    let mut requests: HashMap<String, Request> = HashMap::new();
    let (mut ordinal, mut was_extracted, mut dones) = (0, false, 0);
    let (mut nameless_errors, mut nameless_dones) = (0, 0);
    for (number, frame) in frames.iter().enumerate() {
        assert_eq!(number == 0, frame.0.get("hello").is_some(), "hello is first, once");
        if let Some(next) = frame.ordinal() {
            // What an event brought to light has the event's ordinal: after a piece of text, and
            // before the end of a run.
            let is_extracted = frame.payload("@type").contains("/duologue.extract.");
            // A prompt that joins a run is an event of two requests.
            let is_joined = frame.is_event("SteeringAccepted");
            let is_shared = next == ordinal && (is_extracted || was_extracted || is_joined);
            assert!(next > ordinal || is_shared, "ordinal {next} after {ordinal}");
            (ordinal, was_extracted) = (next, is_extracted);
        }
        dones += usize::from(frame.done().is_some());
        if frame.id().is_empty() {
            let is_store =
                frame.error() == Some("store_failed") && frame.0["error"]["terminal"] != true;
            nameless_errors += usize::from(frame.error().is_some() && !is_store);
            nameless_dones += usize::from(frame.done().is_some());
            let of_process = ["ToolServerChanged", "StoreDegraded"];
            // What a client of an earlier process chose, as the session goes on with it.
            let going_on = ["ModelSwitched", "FrontendToolManifestUpdated"];
            let is_of_process = of_process.iter().chain(&going_on).any(|name| frame.is_event(name));
            assert!(
                frame.event().is_none() || is_of_process,
                "an event that answers nobody: {frame:?}"
            );
            continue;
        }
        let request = requests.entry(frame.id().to_owned()).or_default();
        assert!(!request.is_done, "a frame after its request's done: {frame:?}");
        request.is_done = frame.done().is_some();
    }
    let open = || requests.iter().filter(|(_, request)| !request.is_done).map(|(id, _)| id);
    match answers {
        Answers::All | Answers::AllAndFarewell => {
            let farewell = usize::from(answers == Answers::AllAndFarewell);
            assert_eq!(open().count(), 0, "never done: {:?}", open().collect::<Vec<_>>());
            assert_eq!(dones, asked + farewell, "one done for each request line");
            assert_eq!(nameless_errors, nameless_dones, "a bad line has one error and one done");
        }
        Answers::Some | Answers::Cut => assert!(dones <= asked + 1, "more dones than requests"),
    }
}

/// The frame in `line`, if strict readers read it alike.
fn strict(line: &[u8]) -> Frame {
    let frame = Frame::parse(line);
    let text = std::str::from_utf8(line).expect("frames are UTF-8");
    let separators = ['\u{85}', '\u{2028}', '\u{2029}', '\r'];
    assert!(!text.contains(separators), "a reader would split this line: {text}");
    let message: RpcLine = read_message(text).unwrap_or_else(|error| panic!("{error}: {text}"));
    let mut again = Vec::with_capacity(line.len() + 1);
    json::write_line(&message, &mut again).expect("what was read can be written");
    // Most lines are the same to the byte; if not, what they mean counts.
    if again.strip_suffix(b"\n") != Some(line) {
        let again: Value = serde_json::from_slice(&again).expect("what was written can be read");
        assert_eq!(again, frame.0, "a field that the contract does not have");
    }
    assert_eq!(message.version, 1);
    // Whether it has to name its session, the checker knows.
    assert!(message.frame.is_some(), "{text}");
    frame
}
