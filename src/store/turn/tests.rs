//! Turns as messages, and back.

use super::*;
use crate::protocol::proto::chat::ChatAttachment;
use prost::Message;

fn attached(content: Content) -> Attachments {
    let shown = ChatAttachment { filename: "a.png".to_owned(), ..ChatAttachment::default() };
    [Attachment { shown, content }].into()
}

fn steps() -> Vec<Step> {
    let tool = || ToolCall { id: ToolCallId("c1".to_owned()), name: "sum".to_owned() };
    let called = |result| Step::Called { round: 2, tool: tool(), input: "{}".to_owned(), result };
    vec![
        Step::Text { round: Some(2), text: "Let me see.".into() },
        called(Some(ToolResult::Success("42".to_owned()).into())),
        called(Some(ToolResult::Error("no".to_owned()).into())),
        called(None),
        Step::ProviderData(ProviderData {
            engine: "anthropic",
            host: "host".into(),
            model: "m".into(),
            json: "[]".into(),
        }),
        Step::Prompt("and?".into(), attached(Content::Url("https://e.org".to_owned()))),
    ]
}

#[test]
fn a_turn_is_the_same_after_it_was_stored() {
    let attachments = || attached(Content::Data(b"bytes".as_slice().into()));
    for state in [TurnState::Finished, TurnState::Interrupted] {
        let (prompt, steps) = ("why?".into(), steps());
        let before = Turn { number: 3, prompt, attachments: attachments(), steps, state };
        let mut blobs = Blobs::new();
        add_blobs(&TurnChange::Ended(Some(Arc::new(before.clone()))), &mut blobs);
        let message = crate::store::content::Content::Turn(&before).whole().into_vec();
        let message = StoredTurn::decode(&*message).expect("the message of a turn");
        assert_eq!(hashes_of_turn(&message).len(), 1);
        assert_eq!(turn(3, message, &blobs), before);
    }
    let system = Some("be brief".to_owned());
    let history = vec![
        HistoryMessage::ByUser("a".to_owned()),
        HistoryMessage::ByModel("b".to_owned()),
        HistoryMessage::BySystem("c".to_owned()),
    ];
    for before in [Preamble { system, history }, Preamble::default()] {
        assert_eq!(preamble(preamble_message(&before)), before);
    }
}

#[test]
fn a_turn_that_was_cut_off_has_the_steps_so_far() {
    let mut blobs = Blobs::new();
    let text = |text: &str| TurnChange::Piece { round: 3, text: text.to_owned() };
    let attachments = attached(Content::Data(b"bytes".as_slice().into()));
    let mut changes = vec![TurnChange::Began { prompt: "why?".into(), attachments }];
    changes.extend([text("Let "), text("me see.")]);
    let given = |step: &Step| match step {
        Step::Called { tool, result: Some(result), .. } => {
            Some(TurnChange::Result(tool.id.clone(), result.clone()))
        }
        Step::Called { result: None, .. }
        | Step::Text { .. }
        | Step::Prompt(..)
        | Step::ProviderData(_) => None,
    };
    for step in steps().into_iter().take(2) {
        let result = given(&step);
        let step = match step {
            Step::Called { round, tool, input, .. } => {
                Step::Called { round, tool, input, result: None }
            }
            step @ (Step::Text { .. } | Step::Prompt(..) | Step::ProviderData(_)) => step,
        };
        changes.push(TurnChange::Step(step));
        changes.extend(result);
    }
    changes.extend([text("It "), text("is")]);
    let mut open = OpenTurn::default();
    for change in &changes {
        add_blobs(change, &mut blobs);
        let stored = change_pieces(change).expect("not the end").into_vec();
        open.add(StoredStep::decode(&*stored).expect("a step"));
    }
    let cut = turn(1, open.cut_off(), &blobs);
    let mut expected: Vec<_> = steps().into_iter().take(2).collect();
    expected.push(Step::Text { round: Some(3), text: "It is".into() });
    assert_eq!((cut.prompt.as_str(), cut.steps), ("why?", expected));
    assert_eq!(cut.state, TurnState::Interrupted);
    assert_eq!(cut.attachments[0].content, Content::Data(b"bytes".as_slice().into()));
}

/// Texts that are shared have the place and the form that they have in the messages.
#[test]
fn steps_are_written_as_their_messages() {
    let attachments = || attached(Content::Url("https://e.org".to_owned()));
    let stored = |text: &str| StoredPrompt {
        text: text.to_owned(),
        attachments: attachments_message(&attachments()),
    };
    for text in ["", "short", &"long ".repeat(1000)] {
        let said = |round| TurnChange::Step(Step::Text { round, text: text.into() });
        let began = TurnChange::Began { prompt: text.into(), attachments: attachments() };
        let joined = TurnChange::Step(Step::Prompt(text.into(), attachments()));
        for (change, kind, text_round) in [
            (said(Some(3)), Kind::Text(text.to_owned()), 3),
            (said(None), Kind::Text(text.to_owned()), 0),
            (
                TurnChange::Piece { round: 2, text: text.to_owned() },
                Kind::Piece(text.to_owned()),
                2,
            ),
            (began, Kind::Began(stored(text)), 0),
            (joined, Kind::Prompt(stored(text)), 0),
        ] {
            let message = StoredStep { step: Some(kind), text_round };
            let pieces = change_pieces(&change).expect("a step");
            assert_eq!(pieces.into_vec(), message.encode_to_vec());
        }
    }
}

#[test]
fn a_text_that_was_stored_without_its_provider_call_has_none() {
    let stored = StoredStep { step: Some(Kind::Text("a".to_owned())), text_round: 0 };
    let expected = Step::Text { round: None, text: "a".into() };
    assert_eq!(step(stored, &Blobs::new()), Some(expected));
}

#[test]
fn the_names_of_engines_are_kept_once() {
    let one = engine_name("of-a-test").expect("there is room");
    let two = engine_name("of-a-test").expect("there is room");
    assert_eq!(one.as_ptr(), two.as_ptr());
}
