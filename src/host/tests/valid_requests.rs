//! Whatever happened in a conversation, its next request is one that every provider takes: models that
//! say things in any order, answers that are withheld, cut off or broken off, cancels, steering, edits,
//! switches to another provider, and processes that are killed.

mod talk;

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

fn happening() -> impl Strategy<Value = Happening> {
    let said: Vec<_> = SHORT.iter().chain(&MORE).map(|said| Happening::Says(*said)).collect();
    let between = vec![
        Happening::Submit,
        Happening::SubmitImage,
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

/// The same conversations each time.
#[test]
fn whatever_happens_the_next_request_is_valid() {
    let config = Config { cases: CASES, failure_persistence: None, ..Config::default() };
    let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let mut runner = TestRunner::new_with_rng(config, rng);
    let conversation =
        (prop::sample::select(&Dialect::ALL[..]), vec(happening(), 0..HAPPENINGS_MAX));
    let held = runner.run(&conversation, |(dialect, happenings)| {
        let mut talk = Talk::with(dialect, &Dialect::ALL);
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
