//! What the model sees of a conversation.

use super::*;
use crate::conversation::compaction::{Compaction, CompactionEvent};

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

/// What a call costs does not grow with what was said before a summary.
#[test]
fn a_call_is_given_the_turns_that_it_is_sent_and_no_others() {
    let mut recorder = Recorder::new();
    for prompt in ["one", "two", "three"] {
        recorder.turn(prompt, &[ModelStep::Text(&["Yes."])]);
        recorder.end(Ending::Finished);
    }
    let mut transcript = transcript(&recorder, Some("Be brief."));
    assert_eq!(transcript.sent(), transcript);
    let made = Compaction { through: 2, summary: "They talked.".into(), ..Compaction::default() };
    let last = recorder.recorded.last().expect("an event");
    transcript.compaction(last, &CompactionEvent::Done(Arc::new(made)));
    let sent = transcript.sent();
    assert_eq!(messages(&sent), messages(&transcript));
    assert_eq!((sent.turns().len(), sent.turn_count()), (1, 3));
    let asking = transcript.asking("Sum it up.", 3, None);
    assert_eq!((asking.turns().len(), asking.turn_count()), (2, 4));
    assert_eq!(transcript.numbers_from(3).collect::<Vec<_>>(), [3]);
    assert_eq!(transcript.last_number(), Some(3));
}

/// Whatever the turns have in them, the call for a summary has room, and each call in it a result.
#[test]
fn what_a_summary_is_asked_of_is_reduced_until_it_has_room() {
    let mut recorder = Recorder::new();
    let long: &str = "word ".repeat(2_000).leak();
    recorder.turn(long, &[ModelStep::Text(vec![long].leak())]);
    recorder.end(Ending::Finished);
    let ids = (0..200).map(|number| &*format!("call-{number}").leak());
    let steps = ids.flat_map(|id| [ModelStep::Call(id), ModelStep::Result(id, long)]);
    recorder.turn("hi", &steps.collect::<Vec<_>>());
    recorder.end(Ending::Finished);
    let transcript = transcript(&recorder, None);
    assert_eq!(transcript.asking("Sum it up.", 2, None).messages().len(), 2 + 2 + 200 + 1);
    for room in [700_000, 100_000, 10_000, 2_000, 500] {
        let asking = transcript.asking("Sum it up.", 2, Some(room));
        assert!(asking.estimate() <= room, "{room}: {}", asking.estimate());
        let messages = messages(&asking);
        let models = messages.iter().filter(|line| line.starts_with("model"));
        let called: usize = models.map(|line| line.matches(" call-").count()).sum();
        let returned = messages.iter().filter(|line| line.starts_with("tool call-")).count();
        assert_eq!(called, returned, "{room}");
        assert_eq!(messages.last().map(|line| &**line), Some("user: Sum it up."), "{room}");
    }
    let (all, first, none) = (1_000_000, 10_000, 10);
    let prompt = "Sum it up.";
    let askable = [all, first, none].map(|room| transcript.askable(prompt, 2, room));
    assert_eq!(askable, [2, 1, 1]);
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
fn text_after_and_between_the_calls_of_an_answer_stands_before_their_results() {
    let said = [
        ModelStep::Call("t1"),
        ModelStep::Text(&["And ", "the other."]),
        ModelStep::Call("t2"),
        ModelStep::Text(&["Let me see."]),
        ModelStep::Result("t1", "one"),
        ModelStep::Result("t2", "two"),
        ModelStep::Round,
        ModelStep::Text(&["Done."]),
    ];
    let answer = "model: And the other.\n\nLet me see. t1({}) t2({})";
    let results = ["tool t1: one", "tool t2: two"];
    let whole = ["user: hi", answer, results[0], results[1], "model: Done."];
    check(&said, Ending::Finished, &whole);
    let missing = ["user: hi", answer, "tool t1: NO RESULT", "tool t2: NO RESULT", "model: MARK"];
    check(&said[..4], Ending::Stopped, &missing);
    // A request that goes on with the answer ends with its results.
    let mut recorder = Recorder::new();
    recorder.turn("hi", &said[..6]);
    assert_eq!(messages(&transcript(&recorder, None)), whole[..4]);
}

/// Of a conversation that was copied from what frames showed, the request for another answer is not
/// known.
#[test]
fn answers_and_prompts_with_nothing_between_them_are_one_message() {
    let said = [
        ModelStep::Text(&["One."]),
        ModelStep::Round,
        ModelStep::Text(&["Two."]),
        ModelStep::Round,
        ModelStep::Text(&["Three."]),
        ModelStep::Call("t1"),
    ];
    let answer = "model: One.\n\nTwo.\n\nThree. t1({})";
    check(&said, Ending::Finished, &["user: hi", answer, "tool t1: NO RESULT"]);
    check(&said[..3], Ending::Stopped, &["user: hi", "model: One.\n\nTwo.\n\nMARK"]);
}

#[test]
fn a_tool_id_used_again_in_a_later_round_gets_its_own_result() {
    check(
        &[
            ModelStep::Call("t"),
            ModelStep::Result("t", "one"),
            ModelStep::Round,
            ModelStep::Text(&["And again."]),
            ModelStep::Call("t"),
            ModelStep::Result("t", "two"),
        ],
        Ending::Finished,
        &["user: hi", "model:  t({})", "tool t: one", "model: And again. t({})", "tool t: two"],
    );
}

/// The provider would refuse the later prompts, too; the turn can be asked again all the same.
#[test]
fn a_turn_that_was_refused_is_known_and_not_sent() {
    let counted = |recorder: &mut Recorder, class: FinishClass, input_tokens: i32| {
        recorder.event(Event::CallFinished {
            stop_reason: "stop".to_owned(),
            class,
            usage: Some(Usage { input_tokens, ..Usage::default() }),
            duration_ms: 1,
            has_tool_calls: false,
            provider_data: None,
            spent: Spent::default(),
        });
        recorder.event(Event::RunFinished { duration_ms: 2, cut_off: None });
    };
    let mut recorder = Recorder::new();
    recorder.turn("hi", &[ModelStep::Text(&["Hello"])]);
    counted(&mut recorder, FinishClass::Completed, 100);
    let before = transcript(&recorder, None);
    let long = "bad ".repeat(300);
    recorder.turn(&long, &[]);
    let joined = "bad, too".into();
    recorder.event(Event::PromptJoined { prompt: joined, attachments: Arc::new([]), number: 2 });
    recorder.said(&ModelStep::Text(&[" "]), 1);
    let asked = transcript(&recorder, None).tokens();
    assert!(asked > before.tokens() + 300, "{asked}");
    counted(&mut recorder, FinishClass::ContentFilter, i32::try_from(asked).expect("a count"));
    recorder.turn("next", &[]);
    let after = transcript(&recorder, None);
    assert_eq!(messages(&after), ["user: hi", "model: Hello", "user: next"]);
    assert_eq!(messages(&after.sent()), messages(&after));
    assert_eq!((after.sent().turns().len(), after.sent().turn_count()), (2, 3));
    assert_eq!(after.numbers_from(2).collect::<Vec<_>>(), [2, 3]);
    assert!(after.turn(2).is_some_and(|turn| turn.prompt.as_str() == long));
    assert!(after.tokens() < before.tokens() + 50, "{} {}", after.tokens(), before.tokens());
    assert!(!messages(&after.asking("Sum it up.", 3, None)).concat().contains("bad"));
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
