//! Whatever happened in a conversation, its next request is one that every provider takes: models that
//! say things in any order, answers that are withheld, cut off or broken off, cancels, steering, edits,
//! switches to another provider, processes that are killed, and whatever was said before.

mod talk;

use crate::conversation::transcript::{HistoryMessage, NO_TEXT, Preamble};
use crate::engine::dialects::{AnswerEnd, Dialect, Said};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use talk::{Happening, Talk};

/// Random conversations.
const CASES: u32 = 400;

/// What happens in one of them, at most.
const HAPPENINGS_MAX: usize = 60;

/// Things that a model says in one of the short answers.
const SAID_MAX: usize = 3;

const LONG_ID: &str = "call_0123456789012345678901234567890123456789012345678901234567890123456789";

/// What the model says in short answers: what is good, what is blank, and what it made up.
const SHORT: [Said; 5] = [
    Said::Text("Well."),
    Said::Text("\n"),
    Said::Thinking,
    Said::Call("call_a", "get_time", "{}"),
    Said::Call("a:1", "functions.get_time", "[1]"),
];

/// What it says besides in long conversations.
const MORE: [Said; 7] = [
    Said::Call("call_7", "7zip", "{}"),
    Said::Call("a_1", "get_time", "{\"a\": 1}"),
    Said::Call("", "get_time", ""),
    Said::Call(LONG_ID, "get_time", "{\"a"),
    Said::Call("D681PevKs", "2 times/\u{e9}", "null"),
    Said::Call("call_a", "get_time", "{}"),
    Said::Text("And \u{1F600}"),
];

/// Makes a message of one role.
type MakeMessage = fn(String) -> HistoryMessage;

/// Messages from before the session.
const EARLIER: [(MakeMessage, &str); 6] = [
    (HistoryMessage::ByUser, "Hi."),
    (HistoryMessage::ByUser, " \n"),
    (HistoryMessage::ByModel, "The answer is \n"),
    (HistoryMessage::ByModel, " "),
    (HistoryMessage::BySystem, "Be exact."),
    (HistoryMessage::BySystem, ""),
];

/// Of these in the exhaustive test.
const EARLIER_MAX: usize = 3;

const ENDS: [Happening; 6] = [
    Happening::Ends(AnswerEnd::Whole),
    Happening::Ends(AnswerEnd::Withheld),
    Happening::Ends(AnswerEnd::CutOff),
    Happening::Ends(AnswerEnd::Broken),
    Happening::Cancel,
    Happening::Crash,
];

/// Every answer of up to `left` more things.
fn answers(left: usize) -> Vec<Vec<Said>> {
    let mut all = vec![Vec::new()];
    if left > 0 {
        for rest in answers(left - 1) {
            all.extend(SHORT.iter().map(|said| [&[*said], &rest[..]].concat()));
        }
    }
    all
}

/// Has `dialect` give every answer of up to `said_max` things, with every end, and goes on; each request
/// is checked in the dialects `checked`.
fn check_answers(dialect: Dialect, said_max: usize, checked: &'static [Dialect]) {
    for said in answers(said_max) {
        let says: Vec<_> = said.iter().map(|said| Happening::Says(*said)).collect();
        for end in ENDS {
            let mut talk = Talk::with(dialect, checked);
            let after = [Happening::ClientAnswers, Happening::Submit];
            let all = [&[Happening::Submit], &says[..], &[end], &after].concat();
            for happening in &all {
                talk.play(*happening).unwrap_or_else(|why| panic!("{dialect:?} {all:?}: {why}"));
            }
            assert!(talk.requests() > 1, "{all:?}");
        }
    }
}

#[test]
fn after_every_short_answer_the_next_requests_to_its_provider_are_valid() {
    for at in 0..Dialect::ALL.len() {
        let own = &Dialect::ALL[at..=at];
        check_answers(own[0], SAID_MAX, own);
    }
}

#[test]
fn after_every_short_answer_the_next_requests_to_other_providers_are_valid() {
    for dialect in Dialect::ALL {
        check_answers(dialect, SAID_MAX - 1, &Dialect::ALL);
    }
}

/// Every history of up to `left` messages.
fn histories(left: usize) -> Vec<Vec<HistoryMessage>> {
    let mut all = vec![Vec::new()];
    if left > 0 {
        for rest in histories(left - 1) {
            let longer = |(by, text): &(fn(String) -> HistoryMessage, &str)| {
                [vec![by((*text).to_owned())], rest.clone()].concat()
            };
            all.extend(EARLIER.iter().map(longer));
        }
    }
    all
}

#[test]
fn after_every_short_history_the_requests_are_valid() {
    let answer = [Happening::Says(SHORT[0]), Happening::Ends(AnswerEnd::Whole)];
    for history in histories(EARLIER_MAX) {
        for system in [None, Some("Be brief.".to_owned())] {
            for first in [Happening::Submit, Happening::SubmitImage, Happening::SubmitNothing] {
                let preamble = Preamble { system: system.clone(), history: history.clone() };
                let mut talk = Talk::after(preamble, Dialect::Anthropic, &Dialect::ALL);
                let all = [&[first], &answer[..], &[Happening::Submit]].concat();
                for happening in &all {
                    let played = talk.play(*happening);
                    played.unwrap_or_else(|why| panic!("{history:?} {system:?} {all:?}: {why}"));
                }
                assert_eq!(talk.requests(), 2, "{history:?} {all:?}");
            }
        }
    }
}

/// The conversation of a recording whose prompts were images alone.
#[test]
fn prompts_whose_attachments_are_gone_are_sent_as_words() {
    let mut talk = Talk::with(Dialect::Gemini, &Dialect::ALL);
    let turn =
        [Happening::SubmitImage, Happening::Says(SHORT[0]), Happening::Ends(AnswerEnd::Whole)];
    for happening in [&turn[..], &turn, &[Happening::Import, Happening::Submit]].concat() {
        talk.play(happening).expect("a valid request");
    }
    let lost = "user: [an attachment that was not kept]";
    let answer = "model: Well. + 0";
    let messages = talk.last_messages();
    assert_eq!(messages[..4], [lost, answer, lost, answer]);
    assert_eq!(messages.len(), 5, "{messages:?}");
}

/// A session that was stored without the words which stand for lost attachments.
#[test]
fn a_prompt_without_anything_is_sent_as_words() {
    let mut talk = Talk::with(Dialect::Anthropic, &Dialect::ALL);
    let turn =
        [Happening::SubmitNothing, Happening::Says(SHORT[0]), Happening::Ends(AnswerEnd::Whole)];
    for happening in [&turn[..], &turn, &[Happening::Submit]].concat() {
        talk.play(happening).expect("a valid request");
    }
    let (prompt, answer) = (format!("user: {NO_TEXT}"), "model: Well. + 0");
    assert_eq!(talk.last_messages()[..4], [&prompt, answer, &prompt, answer]);
}

fn earlier() -> impl Strategy<Value = Preamble> {
    let message = prop::sample::select(&EARLIER[..]).prop_map(|(by, text)| by(text.to_owned()));
    let system = prop::option::of(Just("Be brief.".to_owned()));
    (system, vec(message, 0..EARLIER_MAX))
        .prop_map(|(system, history)| Preamble { system, history })
}

fn happening() -> impl Strategy<Value = Happening> {
    let said: Vec<_> = SHORT.iter().chain(&MORE).map(|said| Happening::Says(*said)).collect();
    let between = vec![
        Happening::Submit,
        Happening::SubmitImage,
        Happening::SubmitNothing,
        Happening::Import,
        Happening::Steer,
        Happening::Cancel,
        Happening::DropLast,
        Happening::Regenerate,
        Happening::Switch,
        Happening::Crash,
        Happening::Expires,
    ];
    prop_oneof![
        12 => prop::sample::select(said),
        3 => Just(Happening::Ends(AnswerEnd::Whole)),
        3 => prop::sample::select(&ENDS[1..4]),
        3 => prop::sample::select(vec![Happening::ClientAnswers, Happening::ClientFails]),
        4 => Just(Happening::Submit),
        5 => prop::sample::select(between),
    ]
}

/// Each run of the test has equal conversations.
#[test]
fn whatever_happens_the_next_request_is_valid() {
    let config = Config { cases: CASES, failure_persistence: None, ..Config::default() };
    let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let mut runner = TestRunner::new_with_rng(config, rng);
    let conversation =
        (earlier(), prop::sample::select(&Dialect::ALL[..]), vec(happening(), 0..HAPPENINGS_MAX));
    let held = runner.run(&conversation, |(preamble, dialect, happenings)| {
        let mut talk = Talk::after(preamble, dialect, &Dialect::ALL);
        for happening in happenings {
            let played = talk.play(happening);
            prop_assert!(played.is_ok(), "{happening:?}: {}", played.expect_err("broken"));
        }
        Ok(())
    });
    held.unwrap_or_else(|why| panic!("{why}"));
}

/// A text that a crash cut off is of the answer that it was in, and not of one after it.
#[test]
fn a_text_that_a_crash_cut_off_stays_in_its_answer() {
    let mut talk = Talk::with(Dialect::Anthropic, &Dialect::ALL);
    let call = Said::Call("call_a", "get_time", "{}");
    let said = [call, Said::Text("Let me see.")].map(Happening::Says);
    let all = [&[Happening::Submit], &said[..], &[Happening::Crash, Happening::Submit]].concat();
    for happening in all {
        talk.play(happening).expect("a valid request");
    }
    let roles = ["user", "model: Let me see. + 1", "tool", "model: [", "user"];
    let messages = talk.last_messages();
    let is_so = messages.iter().zip(roles).all(|(message, role)| message.starts_with(role));
    assert!(is_so && messages.len() == roles.len(), "{messages:?}");
}
