//! Patches of texts, in every mode.

use super::*;

/// A patch on the wire: message, sequence, offset, text, mode.
type Patch = (String, u64, u64, String, ChatStreamPatchMode);

#[expect(clippy::wildcard_enum_match_arm, reason = "only these two are looked for")]
fn patches(mode: PatchMode, recorded: &[Recorded]) -> Vec<Patch> {
    let mut ui = Ui::new(session(), Patches { mode, ..Patches::default() });
    let patch = |recorded: &Recorded| match ui.project(recorded.clone())? {
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

/// Sequence, offset and text of each patch.
fn shown(mode: PatchMode, on_wire: ChatStreamPatchMode) -> Vec<(u64, u64, String)> {
    let patches = patches(mode, &multi_byte());
    assert!(patches.iter().all(|(.., mode)| *mode == on_wire));
    patches.into_iter().map(|(_, sequence, offset, text, _)| (sequence, offset, text)).collect()
}

#[test]
fn appended_patches_make_up_the_text_and_count_bytes() {
    assert_eq!(
        shown(PatchMode::Append, ChatStreamPatchMode::Append),
        [
            (1, 0, "\u{e9}".to_owned()),
            (2, 2, "\u{2028}".to_owned()),
            (3, 5, "x".to_owned()),
            (1, 0, "\u{1F600}".to_owned()),
            (2, 4, "y".to_owned()),
            (3, 5, "\u{0}\u{e9}".to_owned()),
        ]
    );
}

#[test]
fn snapshot_patches_carry_the_text_so_far_of_their_own_segment() {
    assert_eq!(
        shown(PatchMode::Snapshot, ChatStreamPatchMode::Snapshot),
        [
            (1, 0, "\u{e9}".to_owned()),
            (2, 0, "\u{e9}\u{2028}".to_owned()),
            (3, 0, "\u{e9}\u{2028}x".to_owned()),
            (1, 0, "\u{1F600}".to_owned()),
            (2, 0, "\u{1F600}y".to_owned()),
            (3, 0, "\u{1F600}y\u{0}\u{e9}".to_owned()),
        ]
    );
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
        let kept = ["@type", id, "sequence", "offset", "text", "arguments"];
        let mut expected = full.clone();
        expected.as_object_mut().expect("an object").retain(|key, _| kept.contains(&key.as_str()));
        assert_eq!(expected, lean);
    }
    assert_eq!(patches, 7);
}

#[test]
fn patches_of_one_text_are_coalesced_and_others_are_not() {
    let scope = Scope { run: Ids::new(1).run(), turn: 1, call: 1 };
    let patch = |ordinal: u64, number: u32, offset_bytes: u64, text: &str| {
        let segment = Segment { number, kind: SegmentKind::Text };
        let (sequence, text) = (ordinal, text.to_owned());
        let event = Event::SegmentPatched { segment, sequence, offset_bytes, text };
        Recorded { ordinal: Ordinal(ordinal), scope, event }
    };
    let mut open = patch(4, 1, 0, "one ");
    assert!(open.coalesce(&patch(5, 1, 4, "two")) && !open.coalesce(&patch(6, 2, 0, "three")));
    assert_eq!(open, patch(5, 1, 0, "one two"));
    let elsewhere = Recorded { scope: Scope { call: 2, ..scope }, ..patch(6, 1, 7, "four") };
    assert!(!open.coalesce(&elsewhere));
    let other = Recorded { ordinal: Ordinal(7), scope, event: Event::CallStarted };
    assert!(!open.coalesce(&other) && !other.clone().coalesce(&other));
    let arguments = |id: &str, text: &str| {
        let tool = ToolCall { id: ToolCallId(id.to_owned()), name: "sum".to_owned() };
        let (sequence, offset_bytes, text) = (1, 0, text.to_owned());
        let event = Event::ToolArgumentsPatched { tool, sequence, offset_bytes, text };
        Recorded { ordinal: Ordinal(8), scope, event }
    };
    let mut open = arguments("a", "{");
    assert!(open.coalesce(&arguments("a", "}")) && !open.coalesce(&arguments("b", "{}")));
    assert_eq!(open, arguments("a", "{}"));
}
