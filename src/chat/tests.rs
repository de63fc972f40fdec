//! All projections, applied to the same short conversations.

use super::event::{
    Ending, Event, FinishClass, Recorded, Scope, Segment, SegmentKind, ToolCall, ToolResult, Usage,
};
use super::patch::{PatchFields, PatchMode, Patches};
use super::timeline::{Span, Timeline};
use super::transcript::{INTERRUPTED_MARK, INTERRUPTED_TOOL, Message, Preamble, Transcript};
use super::ui::Ui;
use crate::protocol::any::Any;
use crate::protocol::id::{Ids, Ordinal, RunId, SessionId, ToolCallId};
use crate::protocol::proto::chat::ChatStreamPatchMode;
use crate::protocol::proto::rpc::SnapshotFrame;
use crate::support::text::Text;
use std::sync::Arc;

/// Records events with their ordinals and scopes.
struct Recorder {
    ids: Ids,
    scope: Scope,
    recorded: Vec<Recorded>,
}

impl Recorder {
    fn new() -> Self {
        let mut ids = Ids::new(1);
        let scope = Scope { run: ids.run(), turn: 0, call: 0 };
        Self { ids, scope, recorded: Vec::new() }
    }

    fn event(&mut self, event: Event) {
        let ordinal = Ordinal(self.recorded.len() as u64 + 1);
        self.recorded.push(Recorded { ordinal, scope: self.scope, event });
    }

    /// A turn with one provider call, up to just before its end.
    fn turn(&mut self, prompt: &str, said: &[ModelStep]) {
        self.scope = Scope { run: self.ids.run(), turn: self.scope.turn + 1, call: 0 };
        self.event(Event::PromptAccepted { prompt: prompt.into(), attachments: Arc::new([]) });
        self.event(Event::RunStarted { prompt: prompt.into() });
        self.scope.call = 1;
        self.event(Event::CallStarted);
        for (at, said) in said.iter().enumerate() {
            self.said(said, at as u32 + 1);
        }
    }

    fn said(&mut self, said: &ModelStep, number: u32) {
        match said {
            ModelStep::Text(pieces) => {
                self.segment(Segment { number, kind: SegmentKind::Text }, pieces)
            }
            ModelStep::Thought(pieces) => self.segment(thinking(number), pieces),
            ModelStep::Call(id) => self.call(id),
            ModelStep::Round => {
                self.scope.call += 1;
                self.event(Event::CallStarted);
            }
            ModelStep::Result(id, text) => {
                let (tool, result) = (tool(id), ToolResult::Success((*text).to_owned()));
                self.event(Event::ToolResultReady { tool: tool.clone(), result });
                self.event(Event::ToolCallFinished { tool });
            }
        }
    }

    fn segment(&mut self, segment: Segment, pieces: &[&str]) {
        self.event(Event::SegmentStarted { segment, prompt: Text::default() });
        let mut whole = String::new();
        for (at, piece) in pieces.iter().enumerate() {
            self.event(Event::SegmentPatched {
                segment,
                sequence: at as u64 + 1,
                offset_bytes: whole.len() as u64,
                text: (*piece).to_owned(),
            });
            whole += piece;
        }
        self.event(Event::SegmentFinished {
            segment,
            status: Ending::Finished,
            prompt: Text::default(),
            text: whole.into(),
            finish_reason: String::new(),
            is_cut_off: false,
        });
    }

    fn call(&mut self, id: &str) {
        let input = "{}".to_owned();
        self.event(Event::ToolCallStarted { tool: tool(id) });
        self.event(Event::ToolArgumentsPatched {
            tool: tool(id),
            sequence: 1,
            offset_bytes: 0,
            text: input.clone(),
        });
        self.event(Event::ToolCallRequested { tool: tool(id), input: input.clone() });
        self.event(Event::ToolExecutionStarted { tool: tool(id), input });
    }

    fn end(&mut self, ending: Ending) {
        self.event(Event::CallMetadataUpdated {
            stop_reason: "stop".to_owned(),
            usage: Usage::default(),
        });
        self.event(Event::CallFinished {
            stop_reason: "stop".to_owned(),
            class: FinishClass::Completed,
            usage: None,
            duration_ms: 1,
            has_tool_calls: false,
            provider_data: None,
        });
        self.scope.call = 0;
        self.event(match ending {
            Ending::Finished => Event::RunFinished { duration_ms: 2, cut_off: None },
            Ending::Stopped => Event::RunStopped { reason: "cancelled".to_owned() },
            Ending::Failed => Event::RunFailed { error: "broken".to_owned() },
        });
    }
}

/// What a model does in a turn.
enum ModelStep {
    Text(&'static [&'static str]),
    Thought(&'static [&'static str]),
    Call(&'static str),
    Result(&'static str, &'static str),
    /// The end of a provider call and the start of another.
    Round,
}

fn tool(id: &str) -> ToolCall {
    ToolCall { id: ToolCallId(id.to_owned()), name: "clock".to_owned() }
}

fn thinking(number: u32) -> Segment {
    Segment { number, kind: SegmentKind::Thinking }
}

fn session() -> SessionId {
    SessionId::new("s").expect("a name")
}

fn transcript(recorder: &Recorder, system: Option<&str>) -> Transcript {
    let mut transcript =
        Transcript::new(Preamble { system: system.map(str::to_owned), history: Vec::new() });
    recorder.recorded.iter().for_each(|recorded| transcript.apply(recorded));
    transcript
}

/// The messages of a provider request, one per line.
fn messages(transcript: &Transcript) -> Vec<String> {
    let line = |message: &Message<'_>| match message {
        Message::System(text) => format!("system: {text}"),
        Message::User { text, .. } => format!("user: {text}"),
        Message::Assistant { text, calls, .. } => {
            let calls = calls.iter().map(|(tool, input)| format!(" {}({input})", tool.id.0));
            format!("model: {text}{}", calls.collect::<String>())
        }
        Message::Tool { tool, result, .. } => format!("tool {}: {result}", tool.id.0),
    };
    transcript.messages().iter().map(line).collect()
}

/// Checks the next request to the model, after a turn of `said` with this ending and the prompt
/// "next".
fn check(said: &[ModelStep], ending: Ending, expected: &[&str]) {
    let mut recorder = Recorder::new();
    recorder.turn("hi", said);
    recorder.end(ending);
    recorder.turn("next", &[]);
    let messages = messages(&transcript(&recorder, None));
    let marks = [("MARK", INTERRUPTED_MARK), ("NO RESULT", INTERRUPTED_TOOL)];
    let fill = |line: &&str| marks.iter().fold((*line).to_owned(), |l, (to, by)| l.replace(to, by));
    let expected: Vec<_> = expected.iter().chain(&["user: next"]).map(fill).collect();
    assert_eq!(messages, expected);
}

#[test]
fn a_finished_turn_is_kept_whole() {
    check(&[ModelStep::Text(&["Hel", "lo"])], Ending::Finished, &["user: hi", "model: Hello"]);
    check(
        &[ModelStep::Text(&["One. "]), ModelStep::Thought(&["hm"]), ModelStep::Text(&["Two."])],
        Ending::Finished,
        &["user: hi", "model: One. Two."],
    );
}

#[test]
fn a_stopped_turn_keeps_its_prompt_its_words_and_a_mark() {
    check(&[ModelStep::Text(&["Hel"])], Ending::Stopped, &["user: hi", "model: Hel\n\nMARK"]);
    check(&[], Ending::Stopped, &["user: hi", "model: MARK"]);
    check(&[ModelStep::Thought(&["hm"])], Ending::Stopped, &["user: hi", "model: MARK"]);
}

#[test]
fn a_failed_turn_is_kept_like_a_stopped_one_unless_it_said_nothing() {
    check(&[ModelStep::Text(&["Hel"])], Ending::Failed, &["user: hi", "model: Hel\n\nMARK"]);
    check(&[], Ending::Failed, &[]);
    check(&[ModelStep::Thought(&["hm"])], Ending::Failed, &[]);
}

#[test]
fn an_answer_of_white_space_is_no_message() {
    let model = |said: &[ModelStep], ending| {
        let mut recorder = Recorder::new();
        recorder.turn("hi", said);
        recorder.end(ending);
        recorder.turn("next", &[]);
        let messages = messages(&transcript(&recorder, None));
        messages.into_iter().filter(|line| line.starts_with("model")).collect::<Vec<_>>()
    };
    let blank = [ModelStep::Text(&[" ", "\n"])];
    assert!(model(&blank, Ending::Finished).is_empty());
    assert_eq!(model(&blank, Ending::Stopped), [format!("model: {INTERRUPTED_MARK}")]);
    let called = [
        ModelStep::Text(&["\n"]),
        ModelStep::Call("a"),
        ModelStep::Result("a", "x"),
        ModelStep::Text(&[" "]),
    ];
    assert_eq!(model(&called, Ending::Finished), ["model:  a({})"]);
    // Between words it is part of them.
    let parts = [
        ModelStep::Text(&["a"]),
        ModelStep::Thought(&["hm"]),
        ModelStep::Text(&["\n"]),
        ModelStep::Text(&["b"]),
    ];
    assert_eq!(model(&parts, Ending::Finished), ["model: a\nb"]);
    check(&blank, Ending::Failed, &[]);
}

#[test]
fn a_tool_call_always_has_a_result() {
    for ending in [Ending::Stopped, Ending::Failed] {
        check(
            &[ModelStep::Text(&["I look."]), ModelStep::Call("t1")],
            ending,
            &["user: hi", "model: I look. t1({})", "tool t1: NO RESULT", "model: MARK"],
        );
    }
    check(
        &[ModelStep::Call("t1"), ModelStep::Call("t2"), ModelStep::Result("t2", "noon")],
        Ending::Stopped,
        &[
            "user: hi",
            "model:  t1({}) t2({})",
            "tool t1: NO RESULT",
            "tool t2: noon",
            "model: MARK",
        ],
    );
    check(
        &[ModelStep::Call("t1")],
        Ending::Finished,
        &["user: hi", "model:  t1({})", "tool t1: NO RESULT"],
    );
}

#[test]
fn rounds_of_tool_calls_are_in_order() {
    check(
        &[
            ModelStep::Text(&["First."]),
            ModelStep::Call("t1"),
            ModelStep::Call("t2"),
            ModelStep::Result("t2", "two"),
            ModelStep::Result("t1", "one"),
            ModelStep::Round,
            ModelStep::Call("t3"),
            ModelStep::Result("t3", "three"),
            ModelStep::Round,
            ModelStep::Text(&["Done."]),
        ],
        Ending::Finished,
        &[
            "user: hi",
            "model: First. t1({}) t2({})",
            "tool t1: one",
            "tool t2: two",
            "model:  t3({})",
            "tool t3: three",
            "model: Done.",
        ],
    );
}

#[test]
fn a_tool_id_used_again_in_a_later_round_gets_its_own_result() {
    check(
        &[
            ModelStep::Call("t"),
            ModelStep::Result("t", "one"),
            ModelStep::Text(&["And again."]),
            ModelStep::Call("t"),
            ModelStep::Result("t", "two"),
        ],
        Ending::Finished,
        &["user: hi", "model:  t({})", "tool t: one", "model: And again. t({})", "tool t: two"],
    );
}

#[test]
fn a_turn_without_an_end_counts_as_cut_off() {
    let mut recorder = Recorder::new();
    recorder.turn("lost", &[]);
    recorder.turn("cut", &[ModelStep::Text(&["Hel"])]);
    recorder.turn("next", &[]);
    let marked = format!("model: Hel\n\n{INTERRUPTED_MARK}");
    let shown = messages(&transcript(&recorder, None));
    assert_eq!(shown, ["user: cut", &marked, "user: next"]);
}

#[test]
fn the_system_prompt_comes_first_and_once() {
    let mut recorder = Recorder::new();
    recorder.turn("hi", &[ModelStep::Text(&["Hello"])]);
    recorder.end(Ending::Finished);
    recorder.turn("next", &[]);
    let shown = messages(&transcript(&recorder, Some("Be brief.")));
    assert_eq!(shown, ["system: Be brief.", "user: hi", "model: Hello", "user: next"]);
}

#[test]
fn a_transcript_handed_out_does_not_change() {
    let mut recorder = Recorder::new();
    recorder.turn("hi", &[]);
    let mut growing = transcript(&recorder, None);
    let handed_out = growing.clone();
    let before = messages(&handed_out);
    let known = recorder.recorded.len();
    recorder.said(&ModelStep::Text(&["Hello"]), 1);
    recorder.end(Ending::Finished);
    recorder.recorded[known..].iter().for_each(|recorded| growing.apply(recorded));
    assert_eq!(messages(&handed_out), before);
    assert_eq!(messages(&growing), ["user: hi", "model: Hello"]);
}

/// Two turns with one of everything.
fn conversation() -> Recorder {
    let mut recorder = Recorder::new();
    recorder.turn(
        "hi",
        &[
            ModelStep::Thought(&["h", "m"]),
            ModelStep::Text(&["I ", "look."]),
            ModelStep::Call("t1"),
            ModelStep::Call("t2"),
            ModelStep::Result("t2", "noon"),
            ModelStep::Result("t1", "one"),
        ],
    );
    recorder.end(Ending::Finished);
    recorder.turn("again", &[ModelStep::Text(&["It"])]);
    recorder.end(Ending::Failed);
    recorder
}

fn timeline(recorded: &[Recorded]) -> Timeline {
    let mut timeline = Timeline::default();
    recorded.iter().for_each(|recorded| timeline.apply(recorded));
    timeline
}

#[test]
fn replaying_the_events_so_far_gives_the_state_so_far() {
    let recorded = conversation().recorded;
    let (mut growing, mut transcript) = (Timeline::default(), Transcript::new(Preamble::default()));
    for (at, next) in recorded.iter().enumerate() {
        growing.apply(next);
        transcript.apply(next);
        let replayed = timeline(&recorded[..=at]);
        for span in [Span::Conversation, Span::LastTurn] {
            let snapshot = growing.snapshot(&session(), span);
            assert_eq!(snapshot, replayed.snapshot(&session(), span));
            assert_eq!(snapshot.snapshot_ordinal, next.ordinal.0);
        }
        let mut replayed = Transcript::new(Preamble::default());
        recorded[..=at].iter().for_each(|recorded| replayed.apply(recorded));
        assert_eq!(transcript, replayed);
    }
}

/// A snapshot, one entity a line: kind, id, ordinals, role or tool, status, text.
fn entities(snapshot: &SnapshotFrame, runs: &[RunId]) -> Vec<String> {
    let line = |entity: &crate::protocol::proto::rpc::SnapshotEntity| {
        let whole = entity.payload.clone().map(|payload| payload.into_whole());
        let (who, status, text) = match whole.as_ref() {
            Some(Any::ChatMessageEntity(m)) => (&m.role, &m.status, &m.text),
            Some(Any::ToolCallEntity(m)) => (&m.tool_name, &m.status, &m.input),
            Some(Any::ToolResultEntity(m)) => (&m.tool_name, &m.status, &m.result),
            other => panic!("no entity: {other:?}"),
        };
        let named =
            |id: String, (at, run): (usize, &RunId)| id.replace(&run.root(), &format!("run{at}"));
        let id = runs.iter().enumerate().fold(entity.id.clone(), named);
        let (from, to) = (entity.created_ordinal, entity.last_event_ordinal);
        format!("{} {id} {from}-{to} {who} {status}: {text}", entity.kind)
    };
    snapshot.entities.iter().map(line).collect()
}

#[test]
fn a_snapshot_shows_all_or_the_last_turn() {
    let recorder = conversation();
    let mut runs: Vec<RunId> =
        recorder.recorded.iter().map(|recorded| recorded.scope.run).collect();
    runs.dedup();
    let timeline = timeline(&recorder.recorded);
    let all = entities(&timeline.snapshot(&session(), Span::Conversation), &runs);
    let last = entities(&timeline.snapshot(&session(), Span::LastTurn), &runs);
    assert_eq!(
        all,
        [
            "ChatMessage run0-user 1-1 user accepted: hi",
            "ChatMessage run0:thinking:segment-1 4-7 thinking finished: hm",
            "ChatMessage run0:text:segment-2 8-11 assistant finished: I look.",
            "ChatToolCall t1 12-23 clock completed: {}",
            "ChatToolCall t2 16-21 clock completed: {}",
            "ChatToolResult t2:result 20-20 clock success: noon",
            "ChatToolResult t1:result 22-22 clock success: one",
            "ChatMessage run1-user 27-27 user accepted: again",
            "ChatMessage run1:text:segment-1 30-32 assistant finished: It",
            "ChatMessage run1 35-35 error failed: broken",
        ]
    );
    assert_eq!(last, all[7..]);
}

#[test]
fn a_snapshot_before_anything_happened_is_empty() {
    for span in [Span::Conversation, Span::LastTurn] {
        let snapshot = Timeline::default().snapshot(&session(), span);
        assert_eq!(snapshot, SnapshotFrame::default());
    }
}

/// A patch on the wire: message, sequence, offset, text, mode.
type Patch = (String, u64, u64, String, ChatStreamPatchMode);

#[expect(clippy::wildcard_enum_match_arm, reason = "only these two are looked for")]
fn patches(mode: PatchMode, recorded: &[Recorded]) -> Vec<Patch> {
    let mut ui = Ui::new(session(), Patches { mode, ..Patches::default() });
    let patch = |recorded: &Recorded| match ui.project(recorded.clone()) {
        Any::ChatTextPatch(m) => {
            let mode = m.mode();
            Some((m.message_id, m.sequence, m.offset, m.text, mode))
        }
        Any::ChatReasoningPatch(m) => {
            let mode = m.mode();
            Some((m.message_id, m.sequence, m.offset, m.text, mode))
        }
        _ => None,
    };
    recorded.iter().filter_map(patch).collect()
}

/// A thought and an answer, with characters of one to four bytes.
fn multi_byte() -> Vec<Recorded> {
    let mut recorder = Recorder::new();
    let thought = ModelStep::Thought(&["\u{e9}", "\u{2028}", "x"]);
    recorder.turn("hi", &[thought, ModelStep::Text(&["\u{1F600}", "y", "\u{0}\u{e9}"])]);
    recorder.recorded
}

#[test]
fn appended_patches_make_up_the_text_and_count_bytes() {
    let patches = patches(PatchMode::Append, &multi_byte());
    let shown: Vec<_> = patches
        .iter()
        .map(|(_, sequence, offset, text, _)| (*sequence, *offset, text.as_str()))
        .collect();
    assert_eq!(
        shown,
        [
            (1, 0, "\u{e9}"),
            (2, 2, "\u{2028}"),
            (3, 5, "x"),
            (1, 0, "\u{1F600}"),
            (2, 4, "y"),
            (3, 5, "\u{0}\u{e9}"),
        ]
    );
    assert!(patches.iter().all(|(.., mode)| *mode == ChatStreamPatchMode::Append));
}

#[test]
fn snapshot_patches_carry_the_text_so_far_of_their_own_segment() {
    let patches = patches(PatchMode::Snapshot, &multi_byte());
    let shown: Vec<_> = patches
        .iter()
        .map(|(_, sequence, offset, text, _)| (*sequence, *offset, text.as_str()))
        .collect();
    assert_eq!(
        shown,
        [
            (1, 0, "\u{e9}"),
            (2, 0, "\u{e9}\u{2028}"),
            (3, 0, "\u{e9}\u{2028}x"),
            (1, 0, "\u{1F600}"),
            (2, 0, "\u{1F600}y"),
            (3, 0, "\u{1F600}y\u{0}\u{e9}"),
        ]
    );
    assert!(patches.iter().all(|(.., mode)| *mode == ChatStreamPatchMode::Snapshot));
}

/// The rest is on the event that begins its segment or tool call.
#[test]
fn a_lean_patch_has_no_other_fields_than_those_that_change() {
    let project = |fields| {
        let mut ui = Ui::new(session(), Patches { fields, ..Patches::default() });
        let payloads = conversation().recorded.into_iter().map(|recorded| ui.project(recorded));
        payloads.map(|payload| serde_json::to_value(payload).expect("JSON")).collect::<Vec<_>>()
    };
    let mut patches = 0;
    for (full, lean) in project(PatchFields::Full).iter().zip(project(PatchFields::Lean)) {
        if !full["@type"].as_str().expect("a type").ends_with("Patch") {
            assert_eq!(*full, lean);
            continue;
        }
        patches += 1;
        // Several tool calls can be open in one message.
        let id = if full.get("toolCallId").is_some() { "toolCallId" } else { "messageId" };
        let kept = ["@type", id, "sequence", "offset", "text", "arguments", "mode"];
        let mut expected = full.clone();
        expected.as_object_mut().expect("an object").retain(|key, _| kept.contains(&key.as_str()));
        assert_eq!(expected, lean);
    }
    assert_eq!(patches, 7);
}
