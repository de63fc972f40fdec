//! The end of a stream: cut off, empty, or followed by something other than a frame.

use super::sample::{check_lines, run};
use super::{Checker, Rule};

/// A correct stream cut off anywhere is the beginning of a correct stream.
#[test]
fn a_stream_that_is_cut_off_has_no_violation() {
    let whole: Vec<u8> =
        run().lines().iter().flat_map(|line| [line.as_slice(), b"\n"].concat()).collect();
    for end in (1..whole.len()).step_by(11).chain(whole.len() - 20..whole.len()) {
        let mut lines: Vec<_> = whole[..end].split(|&byte| byte == b'\n').collect();
        let tail = lines.pop().expect("one at least");
        let mut checker = Checker::new();
        let mut found: Vec<_> = lines.iter().flat_map(|line| checker.line(line)).collect();
        found.extend(checker.finish(Some(tail)));
        let is_whole = whole.get(end) == Some(&b'\n');
        let is_in_hello = lines.is_empty();
        found.retain(|violation| violation.rule != Rule::UnfinishedRequest || !tail.is_empty());
        let rules: Vec<_> = found.iter().map(|violation| violation.rule).collect();
        let is_right = rules.iter().all(|rule| {
            let is_first = is_in_hello && !is_whole && *rule == Rule::HelloFirst;
            let is_last = matches!(rule, Rule::NoLineFeed | Rule::UnfinishedRequest);
            is_first || is_whole && is_last
        });
        assert!(is_right, "cut at {end}: {rules:?}");
        assert_eq!(checker.summary().notes.is_empty(), tail.is_empty() || is_whole, "at {end}");
    }
}

#[test]
fn an_empty_stream_lacks_its_hello() {
    assert_eq!(check_lines(&[], None), [(0, Rule::HelloFirst)]);
}

/// A producer that crashed in its first write must not pass.
#[test]
fn a_stream_without_a_frame_lacks_its_hello() {
    for tail in ["{\"ver", "{", "{\"hello\":{\"ser", "  {"] {
        assert_eq!(check_lines(&[], Some(tail.as_bytes())), [(1, Rule::HelloFirst)], "{tail}");
    }
    let lines = [b"no JSON".to_vec()];
    assert_eq!(check_lines(&lines, None), [(1, Rule::InvalidJson), (1, Rule::HelloFirst)]);
}

/// Only what could become a frame counts as cut off.
#[test]
fn a_tail_that_cannot_become_a_frame_is_a_violation() {
    let lines = run().lines();
    for tail in ["garbage", "[", "\"", "tru", "-", " ", "{]", "{\"a\":1}}", "\u{1f}"] {
        let found = check_lines(&lines, Some(tail.as_bytes()));
        assert!(found.iter().any(|(line, _)| *line == 20), "{tail:?}: {found:?}");
    }
    for tail in [&b"{"[..], b"{\"a\":[[", b"{\"a\":tr", b"{\"a\":\"\\u00", b"{\"a\":\"\xc3"] {
        assert_eq!(check_lines(&lines, Some(tail)), [], "{tail:?}");
    }
}
