//! `--patch-fields lean`: patches without the fields that their segment's first event has.

use crate::frames::{cancel, finished_text, patched_text, submit};
use crate::once::{duologue, run};
use crate::oracle::{Answers, Output, check_output};
use crate::provider::{Provider, Step};
use crate::server::{Folder, Reading, openai};
use crate::tools;
use serde_json::Value;
use std::time::Duration;

/// Bytes of a line with a lean patch of a word, the line feed included: 55 of them are the
/// generated `requestId`, which a client may make shorter.
const LINE_BYTES_MAX: usize = 340;

/// Deltas of 10 kB: far more than what can wait between a provider and a reader.
const DELTAS: usize = 100_000;

const PROMPT: &str = "a prompt of several words, which the echo engine repeats one by one";

fn is_patch(line: &str) -> bool {
    let frame: Value = serde_json::from_str(line).expect("JSON");
    frame["uiEvent"]["name"].as_str().is_some_and(|name| name.ends_with("Patch"))
}

#[test]
fn a_line_is_short_and_its_text_still_adds_up() {
    let folder = Folder::new();
    for extra in [&[][..], &["--patch-mode", "snapshot"]] {
        let words = ["exec", "--rpc", "--engine", "echo", "--echo-reasoning", PROMPT];
        let lean = ["--patch-fields", "lean"];
        let ended = run(&folder, &[&words[..], &lean, extra].concat());
        assert_eq!(ended.status, 0, "{}", ended.stderr);
        let lines: Vec<_> = ended.stdout.lines().map(|line| line.as_bytes().to_vec()).collect();
        let frames = check_output(&Output { lines, rest: Vec::new() }, 1, Answers::All);
        let hello = frames[0].0["hello"]["capabilities"].as_array().expect("a list");
        assert!(hello.contains(&"lean-patches".into()), "{hello:?}");
        let patches: Vec<_> = ended.stdout.lines().filter(|line| is_patch(line)).collect();
        assert!(patches.len() > 15, "{}", ended.stdout);
        if extra.is_empty() {
            let longest = patches.iter().map(|line| line.len() + 1).max();
            assert!(longest < Some(LINE_BYTES_MAX), "{longest:?}");
        }
        let id = frames.last().expect("done").id();
        let (patched, finished) = (patched_text(&frames, id), finished_text(&frames, id));
        assert!(finished.ends_with(PROMPT), "{finished}");
        assert!(patched.ends_with(&finished), "{patched}");
        assert_eq!(patched == finished, extra.is_empty());
    }
}

#[test]
fn patches_are_full_unless_asked_otherwise() {
    let folder = Folder::new();
    let words = ["exec", "--rpc", "--engine", "echo", PROMPT];
    let full = run(&folder, &words);
    assert!(!full.stdout.contains("lean-patches"));
    let mut by_variable = duologue(&folder, &words);
    by_variable.env("DUOLOGUE_PATCH_FIELDS", "lean");
    let by_variable = by_variable.output().expect("the binary starts");
    let lean = String::from_utf8(by_variable.stdout).expect("UTF-8");
    assert!(lean.contains("lean-patches"), "{lean}");
    for (stdout, is_lean) in [(&full.stdout, false), (&lean, true)] {
        for line in stdout.lines().filter(|line| is_patch(line)) {
            let frame: Value = serde_json::from_str(line).expect("JSON");
            let payload = &frame["uiEvent"]["payload"];
            assert_eq!(frame.get("sessionId").is_none(), is_lean, "{line}");
            assert!(payload["messageId"].is_string(), "{line}");
            assert_eq!(payload.get("correlation").is_none(), is_lean, "{line}");
            assert_eq!(payload.get("mode").is_none(), is_lean, "{line}");
            assert!(payload["sequence"].is_string(), "{line}");
        }
    }
}

#[test]
fn check_accepts_lean_patches_only_where_hello_reports_them() {
    let requests = [submit("r", PROMPT)];
    let stream = tools::stream(&["--patch-fields", "lean", "--echo-reasoning"], &requests);
    let right = tools::run(&["check"], &stream);
    assert_eq!(right.status.code(), Some(0), "{}", tools::text(&right.stdout));
    let unannounced = tools::text(&stream).replace("\"lean-patches\"", "\"other\"");
    let wrong = tools::run(&["check"], unannounced.as_bytes());
    assert_eq!(wrong.status.code(), Some(1), "{}", tools::text(&wrong.stdout));
}

/// The reader takes nothing until the provider has to wait, so that patches merge.
#[test]
fn lean_patches_merge_for_a_slow_reader_and_lose_nothing() {
    let piece = "word ".repeat(2_000);
    let (reasoning, text) = (Step::Reasoning(piece.clone()), Step::Text(piece.clone()));
    let drip = Step::Drip { text: piece.clone(), times: DELTAS, pause: Duration::ZERO };
    let provider = Provider::start(vec![vec![reasoning, text, drip]]);
    let args = ["--patch-fields", "lean", "--final-snapshot", "none"];
    let mut server = openai(&provider, &args).stdout(Reading::Held).start();
    server.send(submit("r", "hello"));
    provider.wait_blocked();
    server.send(cancel("c"));
    provider.wait_disconnect();
    server.read_on(Reading::Eager);
    assert_eq!(server.wait_done("r"), "stopped");
    let frames = server.finish().frames;
    let text = patched_text(&frames, "r");
    let patches = frames.iter().filter(|frame| frame.is_event("ChatTextPatch")).count();
    assert!(patches < text.len() / piece.len(), "{patches} patches: nothing merged");
    assert!(text.len().is_multiple_of(piece.len()), "{}", text.len());
    assert!(text == finished_text(&frames, "r"), "the text is not whole");
}
