//! Correct streams have no violation; each planted violation is found in its line.

mod a_loop;
mod asked_again;
mod joined;
mod planted;
mod recorded;
mod sample;
mod snapshots;
mod structural;
mod tails;

use super::{Checker, Rule};
use a_loop::a_loop;
use asked_again::asked_again;
use sample::{
    STDIN, Stream, cancelled, check_lines, done, error, hello, one_shot, refused, run, state,
    terminal,
};
use serde_json::Value;
use std::collections::BTreeSet;

#[test]
fn right_streams_have_no_violation() {
    for stream in [run(), one_shot(), refused(), cancelled(), a_loop(), asked_again()] {
        assert_eq!(stream.check(), []);
    }
    // The snapshot at the end is an option.
    assert_eq!(one_shot().without(5).check(), []);
    let signalled = run().and([terminal("interrupted"), done("", "stopped")]);
    assert_eq!(signalled.check(), []);
}

/// A node answers it so.
#[test]
fn a_request_may_be_one_that_has_ended_before_the_stream() {
    for status in ["ok", "stopped", "failed"] {
        let again = [hello(&STDIN), state("", 7, vec![]), state("r", 7, vec![]), done("r", status)];
        assert_eq!(Stream(again.to_vec()).check(), [], "{status}");
    }
}

/// The default session is replaced by the first valid request's, even if others come before it.
#[test]
fn a_session_is_bound_once() {
    let mine = |mut frame: Value| {
        frame["sessionId"] = "mine".into();
        frame
    };
    let bound = Stream(vec![
        hello(&STDIN),
        error("", "invalid_request_json"),
        done("", "failed"),
        mine(state("a", 0, vec![])),
        mine(done("a", "ok")),
        mine(done("b", "shutdown")),
    ]);
    for code in ["unknown_extension", "invalid_tools", "invalid_attachment", "invalid_settings"] {
        let refused = bound.clone().inserted(3, done("z", "failed")).inserted(3, error("z", code));
        assert_eq!(refused.check(), [], "{code}");
    }
    assert_eq!(bound.check(), []);
    assert_eq!(
        bound.inserted(5, error("c", "no_active_request")).check().first(),
        Some(&(6, Rule::SessionChanged))
    );
    let asked =
        [hello(&STDIN), state("a", 0, vec![]), done("a", "ok"), mine(done("b", "shutdown"))];
    assert_eq!(Stream(asked.to_vec()).check(), [(4, Rule::SessionChanged)]);
}

#[test]
fn words_of_rules_are_each_their_own() {
    let words: BTreeSet<_> = Rule::ALL.into_iter().map(Rule::as_str).collect();
    assert_eq!(words.len(), Rule::ALL.len());
}

/// No content of a stream makes the checker fail.
#[test]
fn garbage_is_reported_and_survived() {
    let deep = "[".repeat(1_000_000);
    let nested = format!(r#"{{"version":1,"sessionId":"s","hello":{}"#, "{\"a\":".repeat(100_000));
    let wide = format!(r#"{{"done":{{"status":"{}"}}}}"#, "x".repeat(1_000_000));
    for line in [deep.as_str(), &nested, &wide, "null", "\u{feff}{}", "{}{}", "\0"] {
        let mut checker = Checker::new();
        let violations = checker.line(line.as_bytes());
        assert!(!violations.is_empty(), "{}", &line[..line.len().min(20)]);
        assert!(violations.iter().all(|violation| violation.message.len() < 2_000));
    }
}

mod random {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Frames are dropped, doubled or moved: no panic, and the line numbers are right.
        #[test]
        fn shuffled_streams_are_survived(picks in prop::collection::vec(0_usize..19, 0..60)) {
            let good = run().lines();
            let lines: Vec<_> = picks.iter().map(|&pick| good[pick].clone()).collect();
            let found = check_lines(&lines, None);
            prop_assert!(found.iter().all(|(line, _)| *line <= lines.len() as u64));
        }

        /// A changed byte is reported, or changes nothing that matters.
        #[test]
        fn damaged_lines_are_survived(line in 0_usize..19, at in 0_usize..400, byte: u8) {
            let mut lines = run().lines();
            let length = lines[line].len();
            lines[line][at % length] = byte;
            check_lines(&lines, None);
        }
    }
}
