//! The outbox against a reader that takes at random moments: whatever merges, nothing is lost.

use super::coalescing::{COALESCED_TEXT_BYTES_MAX, payload};
use super::*;
use crate::protocol::any::{Any, Shared};
use crate::protocol::id::{RequestId, SessionId};
use crate::protocol::json;
use crate::protocol::proto::chat::{
    ChatMessageEntity, ChatReasoningPatch, ChatReasoningSegmentFinished, ChatRunStarted,
    ChatStreamPatchMode, ChatTextPatch, ChatTextSegmentFinished, ChatUserMessageAccepted,
};
use crate::protocol::proto::rpc::{SnapshotEntity, SnapshotFrame, UiEventFrame};
use crate::support::fail_point::{Faults, Place};
use crate::support::text::Text;
use proptest::collection::vec;
use proptest::prelude::*;

/// A frame, as JSON, a line.
struct Lines;

impl Codec for Lines {
    fn frame(&mut self, _: Uptime, frame: &Frame, out: &mut Vec<u8>) -> Result<(), Unencodable> {
        json::write_line(frame, out).map_err(|_| Unencodable)
    }

    fn end(&mut self, _: Uptime, _: ExitCode, _: &mut Vec<u8>) -> Result<(), Unencodable> {
        Ok(())
    }

    fn is_stateless(&self) -> bool {
        true
    }

    fn text(&mut self, piece: &str, out: &mut Vec<u8>) {
        json::write_escaped(piece, out);
    }
}

/// What is put in and taken out, in order.
#[derive(Clone, Debug)]
enum Action {
    /// A delta of `bytes` bytes.
    Say {
        segment: u8,
        bytes: usize,
    },
    /// Another frame, of a size that fills the outbox sooner or later.
    Frame {
        kind: Kind,
        bytes: usize,
    },
    Take,
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    Event,
    Snapshot,
    Error,
    Done,
}

/// A segment's message as it grows.
#[derive(Clone, Debug, Default)]
struct Grown {
    text: String,
    sequence: u64,
}

/// Makes frames as a session does.
#[derive(Debug, Default)]
struct Source {
    mode: ChatStreamPatchMode,
    ordinal: u64,
    segments: [Grown; 4],
}

impl Source {
    fn new(mode: ChatStreamPatchMode) -> Self {
        Self { mode, ..Self::default() }
    }

    fn event(&mut self, payload: Any) -> Frame {
        self.ordinal += 1;
        let name = payload.name().to_owned();
        frame(Body::UiEvent(UiEventFrame { ordinal: self.ordinal, name, payload: Some(payload) }))
    }

    /// Segments 0 and 1 are text, 2 and 3 reasoning.
    fn say(&mut self, segment: u8, bytes: usize) -> Frame {
        let grown = &mut self.segments[usize::from(segment)];
        let before = grown.text.len();
        // Two bytes a character, and no two deltas alike.
        let piece = ["\u{e9}", "\u{2028}", "z"][(self.ordinal % 3) as usize];
        grown.text += &piece.repeat(bytes / piece.len() + 1);
        grown.sequence += 1;
        let (offset, text) = match self.mode {
            ChatStreamPatchMode::Snapshot => (0, grown.text.clone()),
            ChatStreamPatchMode::Append
            | ChatStreamPatchMode::Replace
            | ChatStreamPatchMode::Unspecified => (before as u64, grown.text[before..].to_owned()),
        };
        let (message_id, sequence) = (format!("segment-{segment}"), grown.sequence);
        let mode = self.mode.into();
        self.event(if segment < 2 {
            let patch =
                ChatTextPatch { message_id, sequence, offset, text, mode, ..Default::default() };
            patch.into()
        } else {
            let patch = ChatReasoningPatch {
                message_id,
                sequence,
                offset,
                text,
                mode,
                ..Default::default()
            };
            patch.into()
        })
    }

    fn next(&mut self, kind: Kind, bytes: usize) -> Frame {
        let text = "t".repeat(bytes);
        match kind {
            Kind::Event => {
                self.event(ChatTextSegmentFinished { text, ..Default::default() }.into())
            }
            Kind::Snapshot => {
                let snapshot_ordinal = self.ordinal;
                frame(wire::snapshot(SnapshotFrame { snapshot_ordinal, entities: Vec::new() }))
            }
            Kind::Error => frame(wire::error(ClientError {
                message: text,
                detail: "more".to_owned(),
                ..defect()
            })),
            Kind::Done => frame(wire::done(Done::Ok)),
        }
    }
}

fn frame(body: Body) -> Frame {
    let session = SessionId::new("s").expect("a name");
    wire::frame(&session, RequestId::new("r").as_ref(), body)
}

fn parse(lines: &[u8]) -> Vec<Frame> {
    let text = std::str::from_utf8(lines).expect("UTF-8");
    assert!(text.is_empty() || text.ends_with('\n'), "a line without its end");
    text.lines().map(|line| serde_json::from_str(line).expect("a frame")).collect()
}

/// What a frame with a patch says.
#[derive(Clone, Debug, PartialEq)]
struct TaggedEvent {
    segment: String,
    sequence: u64,
    offset: u64,
    text: String,
}

#[expect(clippy::wildcard_enum_match_arm, reason = "only these two are looked for")]
fn said(frame: &Frame) -> Option<TaggedEvent> {
    let (segment, sequence, offset, text) = match payload(frame)? {
        Any::ChatTextPatch(m) => (&m.message_id, m.sequence, m.offset, &m.text),
        Any::ChatReasoningPatch(m) => (&m.message_id, m.sequence, m.offset, &m.text),
        _ => return None,
    };
    Some(TaggedEvent { segment: segment.clone(), sequence, offset, text: text.clone() })
}

fn ordinal(frame: &Frame) -> Option<u64> {
    let Some(Body::UiEvent(event)) = &frame.frame else { return None };
    Some(event.ordinal)
}

/// Checks that `written` says what `pushed` says, with patches merged or not.
fn check(mode: ChatStreamPatchMode, pushed: &[Frame], written: &[Frame]) {
    let mut pushed = pushed.iter().peekable();
    let mut last_ordinal = 0;
    for line in written {
        let ordinal = ordinal(line);
        assert!(ordinal.is_none_or(|ordinal| ordinal > last_ordinal), "ordinals do not rise");
        last_ordinal = ordinal.unwrap_or(last_ordinal);
        let first = pushed.next().expect("a frame that was pushed");
        let Some(line_says) = said(line) else {
            assert_eq!(line, first);
            continue;
        };
        let mut merged = said(first).expect("a patch");
        let mut covered = self::ordinal(first);
        while covered < ordinal {
            let next = pushed.next().expect("a patch that was merged");
            let next_says = said(next).expect("nothing but patches merges");
            assert_eq!(next_says.segment, merged.segment);
            match mode {
                ChatStreamPatchMode::Snapshot => merged.text = next_says.text,
                ChatStreamPatchMode::Append
                | ChatStreamPatchMode::Replace
                | ChatStreamPatchMode::Unspecified => merged.text += &next_says.text,
            }
            merged.sequence = next_says.sequence;
            covered = self::ordinal(next);
        }
        assert_eq!(line_says, merged);
    }
    assert_eq!(pushed.next(), None, "a frame that was not written");
}

fn action() -> impl Strategy<Value = Action> {
    let kind = prop_oneof![
        4 => Just(Kind::Event),
        1 => Just(Kind::Snapshot),
        1 => Just(Kind::Error),
        1 => Just(Kind::Done),
    ];
    prop_oneof![
        40 => (0..4_u8, 0..400_usize).prop_map(|(segment, bytes)| Action::Say { segment: segment / 3 * 2, bytes }),
        2 => (0..4_u8, 0..40_000_usize).prop_map(|(segment, bytes)| Action::Say { segment, bytes }),
        2 => (kind, 0..20_000_usize).prop_map(|(kind, bytes)| Action::Frame { kind, bytes }),
        1 => Just(Action::Take),
    ]
}

fn mode() -> impl Strategy<Value = ChatStreamPatchMode> {
    prop_oneof![Just(ChatStreamPatchMode::Append), Just(ChatStreamPatchMode::Snapshot)]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, failure_persistence: None, ..Default::default() })]

    #[test]
    fn what_is_taken_says_what_was_pushed(mode in mode(), actions in vec(action(), 0..200)) {
        let mut source = Source::new(mode);
        let mut outbox = Outbox::new(Lines, FailPoint::default());
        let (mut pushed, mut written) = (Vec::new(), Vec::new());
        for action in actions {
            let frame = match action {
                Action::Say { segment, bytes } => source.say(segment, bytes),
                Action::Frame { kind, bytes } => source.next(kind, bytes),
                Action::Take => {
                    written.extend(parse(&outbox.take(Vec::new())));
                    prop_assert!(outbox.is_empty());
                    continue;
                }
            };
            pushed.push(frame.clone());
            outbox.push(Uptime(0), frame);
            prop_assert!(!outbox.is_empty());
        }
        written.extend(parse(&outbox.take(Vec::new())));
        check(mode, &pushed, &written);
    }
}

/// Pushes deltas of one segment behind `waiting_bytes` of other frames.
fn deltas_behind(
    mode: ChatStreamPatchMode,
    waiting_bytes: usize,
    deltas: &[usize],
) -> Vec<TaggedEvent> {
    let mut source = Source::new(mode);
    let mut outbox = Outbox::new(Lines, FailPoint::default());
    outbox.push(Uptime(0), source.next(Kind::Event, waiting_bytes));
    for bytes in deltas {
        outbox.push(Uptime(0), source.say(0, *bytes));
    }
    parse(&outbox.take(Vec::new())).iter().filter_map(said).collect()
}

#[test]
fn a_reader_that_keeps_up_gets_each_delta() {
    let said = deltas_behind(ChatStreamPatchMode::Append, 0, &[5; 100]);
    assert_eq!(said.len(), 100);
}

#[test]
fn deltas_merge_for_a_reader_that_is_behind() {
    for mode in [ChatStreamPatchMode::Append, ChatStreamPatchMode::Snapshot] {
        let said = deltas_behind(mode, COALESCE_FROM_BYTES, &[5; 100]);
        assert_eq!(said.len(), 1, "{mode:?}");
        assert_eq!((said[0].offset, said[0].sequence), (0, 100), "{mode:?}");
    }
}

#[test]
fn merged_text_is_bounded() {
    let deltas = [COALESCED_TEXT_BYTES_MAX / 10; 100];
    let said = deltas_behind(ChatStreamPatchMode::Append, COALESCE_FROM_BYTES, &deltas);
    assert!(said.len() > 1);
    assert!(said.iter().all(|said| said.text.len() <= COALESCED_TEXT_BYTES_MAX));
    // A delta that is longer on its own is left whole.
    let long = [COALESCED_TEXT_BYTES_MAX * 2; 2];
    assert_eq!(deltas_behind(ChatStreamPatchMode::Append, COALESCE_FROM_BYTES, &long).len(), 2);
}

#[test]
fn text_so_far_takes_the_place_of_shorter_text_at_any_length() {
    let deltas = [COALESCED_TEXT_BYTES_MAX / 2; 20];
    let said = deltas_behind(ChatStreamPatchMode::Snapshot, COALESCE_FROM_BYTES, &deltas);
    assert_eq!(said.len(), 1);
}

#[test]
fn an_engine_waits_for_a_reader_that_is_a_megabyte_behind() {
    let mut source = Source::new(ChatStreamPatchMode::Append);
    let mut outbox = Outbox::new(Lines, FailPoint::default());
    let mut pushed_bytes = 0;
    while outbox.has_room_for_engine() {
        outbox.push(Uptime(0), source.say(0, 999));
        pushed_bytes += 999;
    }
    assert!(pushed_bytes >= ENGINE_BYTES_MAX / 2, "{pushed_bytes}");
    assert!(outbox.has_room_for_answers(), "deltas leave room for answers");
    let lines = outbox.take(Vec::new());
    assert!(lines.len() < ENGINE_BYTES_MAX * 2, "{}", lines.len());
    assert!(outbox.has_room_for_engine());
}

#[test]
fn answers_are_bounded_by_number_and_by_bytes() {
    for (kind, bytes, answers) in
        [(Kind::Done, 0, ANSWERS_MAX), (Kind::Error, ANSWER_BYTES_MAX / 8, 8)]
    {
        let mut source = Source::new(ChatStreamPatchMode::Append);
        let mut outbox = Outbox::new(Lines, FailPoint::default());
        for _ in 0..answers {
            assert!(outbox.has_room_for_answers(), "{kind:?}");
            outbox.push(Uptime(0), source.next(kind, bytes));
        }
        assert!(!outbox.has_room_for_answers(), "{kind:?}");
        drop(outbox.take(Vec::new()));
        assert!(outbox.has_room_for_answers(), "{kind:?}");
    }
}

/// A prompt comes from the client, as a request does; what ends a segment comes from the engine.
#[test]
fn prompts_that_are_shown_count_as_answers_and_segments_do_not() {
    const BYTES: usize = ANSWER_BYTES_MAX / 8;
    let text = || "t".repeat(BYTES);
    let check = |payload: &dyn Fn() -> Any, is_answer: bool| {
        let mut source = Source::new(ChatStreamPatchMode::Append);
        let mut outbox = Outbox::new(Lines, FailPoint::default());
        for _ in 0..8 {
            assert!(outbox.has_room_for_answers(), "{}", payload().name());
            outbox.push(Uptime(0), source.event(payload()));
        }
        assert_eq!(outbox.has_room_for_answers(), !is_answer, "{}", payload().name());
    };
    check(&|| ChatUserMessageAccepted { text: text(), ..Default::default() }.into(), true);
    check(&|| ChatRunStarted { prompt: text(), ..Default::default() }.into(), true);
    let shared = || (Text::default(), Text::from(text()));
    check(
        &|| {
            let (prompt, text) = shared();
            Shared::payload(ChatTextSegmentFinished::default(), prompt, text)
        },
        false,
    );
    check(
        &|| {
            let (prompt, text) = shared();
            Shared::payload(ChatReasoningSegmentFinished::default(), prompt, text)
        },
        false,
    );
}

#[test]
fn a_buffer_given_back_is_emptied() {
    let mut outbox = Outbox::new(Lines, FailPoint::default());
    drop(outbox.take(b"old lines\n".to_vec()));
    assert!(outbox.take(Vec::new()).is_empty());
}

#[test]
fn a_frame_that_cannot_be_encoded_ends_in_an_error_and_nothing_after_it() {
    for nth in 1..=4 {
        let mut source = Source::new(ChatStreamPatchMode::Append);
        let mut outbox = Outbox::new(Lines, Faults::new(Place::Encode, nth).at(Place::Encode));
        for _ in 0..2 {
            outbox.push(Uptime(0), source.say(0, 5));
            outbox.push(Uptime(0), source.next(Kind::Done, 0));
        }
        let lines = parse(&outbox.take(Vec::new()));
        assert!(outbox.is_defective());
        let whole = nth as usize - 1;
        assert_eq!(lines.len(), whole + 2, "fault {nth}");
        let [.., error, done] = lines.as_slice() else { panic!("{lines:?}") };
        let Some(Body::Error(error)) = &error.frame else { panic!("{error:?}") };
        assert_eq!((error.code.as_str(), error.terminal), ("internal", true));
        assert_eq!(done.frame, Some(wire::done(Done::Failed)));
        assert_eq!(done.request_id, "r");
        outbox.push(Uptime(0), source.next(Kind::Done, 0));
        assert!(outbox.take(Vec::new()).is_empty());
    }
}

/// A frame with a long text of the conversation, which ends a segment.
fn long(source: &mut Source, text: &Text) -> Frame {
    let message = ChatTextSegmentFinished::default();
    source.event(Shared::payload(message, Text::default(), text.clone()))
}

fn ordinals(lines: &[u8]) -> Vec<Option<u64>> {
    parse(lines).iter().map(ordinal).collect()
}

#[test]
fn frames_with_long_texts_are_taken_one_by_one_and_in_order() {
    let mut source = Source::new(ChatStreamPatchMode::Append);
    let mut outbox = Outbox::new(Lines, FailPoint::default());
    let text = Text::from("t".repeat(DEFERRED_FROM_BYTES));
    outbox.push(Uptime(0), source.say(0, 5));
    outbox.push(Uptime(0), long(&mut source, &text));
    outbox.push(Uptime(0), long(&mut source, &text));
    outbox.push(Uptime(0), source.say(1, 5));
    outbox.push(Uptime(0), source.next(Kind::Done, 0));
    assert_eq!(ordinals(&outbox.take(Vec::new())), [Some(1)]);
    assert_eq!(ordinals(&take_line(&mut outbox)), [Some(2)]);
    assert_eq!(ordinals(&take_line(&mut outbox)), [Some(3), Some(4), None]);
    assert!(outbox.is_empty() && outbox.take(Vec::new()).is_empty());
}

/// Takes pieces up to the end of a line.
fn take_line(outbox: &mut Outbox<Lines>) -> Vec<u8> {
    let mut lines = Vec::new();
    while !lines.ends_with(b"\n") {
        let piece = outbox.take(Vec::new());
        assert!(!piece.is_empty());
        lines.extend(piece);
    }
    lines
}

#[test]
fn a_frame_with_long_texts_is_taken_in_pieces_of_the_same_bytes() {
    const PIECE_BYTES_MAX: usize = 1024 * 1024;
    let texts = ["", "\u{2028}\u{7f}\"\\", "\u{1}\u{1f600}a", "t"]
        .map(|text| text.repeat(1_000_000 / text.len().max(1)));
    let mut source = Source::new(ChatStreamPatchMode::Append);
    for (prompt, text) in texts.iter().zip(texts.iter().cycle().skip(1)) {
        let shared = |text: &String| Text::from(text.as_str());
        let message =
            ChatTextSegmentFinished { message_id: "\u{2028}".to_owned(), ..Default::default() };
        let event = source.event(Shared::payload(message, shared(prompt), shared(text)));
        let mut entities = Vec::new();
        for texts in [(text, prompt), (&texts[3], text)] {
            let payload =
                Shared::payload(ChatMessageEntity::default(), shared(texts.0), shared(texts.1));
            entities.push(SnapshotEntity { payload: Some(payload), ..Default::default() });
        }
        let snapshot = frame(wire::snapshot(SnapshotFrame { snapshot_ordinal: 1, entities }));
        let mut outbox = Outbox::new(Lines, FailPoint::default());
        let (mut taken, mut expected) = (Vec::new(), Vec::new());
        for frame in [event, snapshot] {
            json::write_line(&frame, &mut expected).expect("JSON");
            outbox.push(Uptime(0), frame);
            outbox.push(Uptime(0), source.next(Kind::Done, 0));
            json::write_line(&self::frame(wire::done(Done::Ok)), &mut expected).expect("JSON");
        }
        while !outbox.is_empty() {
            let piece = outbox.take(Vec::new());
            assert!(piece.len() < PIECE_BYTES_MAX, "{}", piece.len());
            taken.extend(piece);
        }
        assert!(taken == expected, "{} bytes, not {}", taken.len(), expected.len());
        assert_eq!(outbox.waiting_bytes(), 0);
    }
}

#[test]
fn texts_that_wait_fill_the_outbox_before_they_are_encoded() {
    let mut source = Source::new(ChatStreamPatchMode::Append);
    let mut outbox = Outbox::new(Lines, FailPoint::default());
    let text = Text::from("t".repeat(ENGINE_BYTES_MAX / 2));
    outbox.push(Uptime(0), long(&mut source, &text));
    assert!(outbox.is_behind() && !outbox.has_room_for_engine());
    assert!(outbox.has_room_for_answers(), "what the engine said has a limit of its own");
    take_line(&mut outbox);
    assert!(!outbox.is_behind() && outbox.has_room_for_engine());
}

#[test]
fn a_long_frame_that_cannot_be_encoded_ends_in_an_error_and_nothing_after_it() {
    for nth in 1..=3 {
        let mut source = Source::new(ChatStreamPatchMode::Append);
        let mut outbox = Outbox::new(Lines, Faults::new(Place::Encode, nth).at(Place::Encode));
        let text = Text::from("t".repeat(DEFERRED_FROM_BYTES));
        for _ in 0..3 {
            outbox.push(Uptime(0), long(&mut source, &text));
        }
        let mut lines = Vec::new();
        while !outbox.is_empty() {
            lines.extend(outbox.take(Vec::new()));
        }
        let lines = parse(&lines);
        assert!(outbox.is_defective());
        assert_eq!(lines.len(), nth as usize - 1 + 2, "fault {nth}");
        assert_eq!(
            lines.last().and_then(|line| line.frame.clone()),
            Some(wire::done(Done::Failed))
        );
        assert!(outbox.has_room_for_engine());
    }
}

/// They don't name their segment, but what ends one and begins the next stands between.
#[test]
fn lean_patches_merge_within_their_segment() {
    let mut source = Source::new(ChatStreamPatchMode::Append);
    let mut outbox = Outbox::new(Lines, FailPoint::default());
    outbox.push(Uptime(0), source.next(Kind::Event, COALESCE_FROM_BYTES));
    for segment in 0..2 {
        for sequence in 1..=3 {
            let (text, offset) = (format!("{segment}{sequence} "), 3 * (sequence - 1));
            let patch = ChatTextPatch { sequence, offset, text, ..Default::default() };
            outbox.push(Uptime(0), source.event(patch.into()));
        }
        outbox.push(Uptime(0), source.next(Kind::Event, 1));
    }
    let lines = parse(&outbox.take(Vec::new()));
    let texts: Vec<_> = lines.iter().filter_map(said).map(|said| said.text).collect();
    assert_eq!(texts, ["01 02 03 ", "11 12 13 "]);
}
