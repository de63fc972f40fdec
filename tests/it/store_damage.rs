//! A store that is cut anywhere: whole records are read, the loss is reported, and nothing is replaced.

use crate::frames::Frame;
use crate::oracle::Answers;
use crate::server::{Folder, echo};
use crate::store::{kill, stored, wait_state};
use std::fs;

/// Turns of the session that is damaged.
const TURNS: usize = 6;

/// Bytes between two cuts.
const CUT_STEP: usize = 4_999;

/// Bytes of a page of the database.
const PAGE_BYTES: usize = 4096;

/// The texts of a conversation of [`TURNS`] turns in the store of `folder`.
fn conversation(folder: &Folder, is_killed: bool) -> Vec<(String, String)> {
    let mut server = stored(folder, &["--final-snapshot", "none"]).start();
    for turn in 0..TURNS {
        let prompt = format!("prompt {turn} {}", "word ".repeat(300));
        assert_eq!(server.turn(&format!("r{turn}"), &prompt), "ok");
    }
    server.send(crate::frames::snapshot("all"));
    let state = server.wait("the state", Frame::is_snapshot);
    if is_killed {
        kill(server);
    } else {
        server.finish();
    }
    owned(&state)
}

fn owned(state: &Frame) -> Vec<(String, String)> {
    state.messages().into_iter().map(|(role, text)| (role.to_owned(), text.to_owned())).collect()
}

#[test]
fn a_database_that_is_cut_gives_what_can_be_read() {
    let folder = Folder::new();
    let whole = conversation(&folder, false);
    let bytes = fs::read(folder.path("store")).expect("a store");
    let mut best = 0;
    // The last page may be free: to lose a part of it is no loss.
    for (number, length) in (1..bytes.len() - PAGE_BYTES).rev().step_by(CUT_STEP).enumerate() {
        let name = format!("cut-{number}");
        fs::write(folder.path(&name), &bytes[..length]).expect("a file");
        let place = folder.name(&name);
        let args = ["--store", &place, "--session-id", "s", "--resume", "--extensions", "store"];
        let mut server = echo(&args).start();
        let state = owned(&wait_state(&mut server));
        assert!(whole.starts_with(&state), "at {length}: {state:?}");
        best = best.max(state.len());
        assert_eq!(server.turn("r", "go on"), "ok", "at {length}");
        let ended = server.finish();
        assert!(ended.stderr.contains("is damaged"), "at {length}: {}", ended.stderr);
        assert!(ended.frames.iter().any(|frame| frame.is_event("StoreDegraded")), "at {length}");
        let after = fs::read(folder.path(&name)).expect("the file is there");
        assert_eq!(after, bytes[..length], "the file is left as it is");
    }
    assert!(best > 0, "nothing could be read of any cut");
}

#[test]
fn a_log_that_is_cut_gives_whole_turns() {
    let folder = Folder::new();
    let whole = conversation(&folder, true);
    let (base, log) = (fs::read(folder.path("store")), fs::read(folder.path("store-wal")));
    let (base, log) = (base.expect("a store"), log.expect("a log"));
    assert!(log.len() > 10 * CUT_STEP, "{} bytes", log.len());
    let mut lengths = Vec::new();
    for (number, length) in (1..=log.len()).rev().step_by(CUT_STEP * 7).enumerate() {
        let name = format!("cut-{number}");
        fs::write(folder.path(&name), &base).expect("a file");
        fs::write(folder.path(&format!("{name}-wal")), &log[..length]).expect("a file");
        let place = folder.name(&name);
        let args = ["--store", &place, "--session-id", "s", "--resume"];
        let mut server = echo(&args).start();
        server.wait_hello();
        let first = server.wait("the state, or why there is none", |_| true);
        if first.is_snapshot() {
            let state = owned(&first);
            let as_before = state.iter().zip(&whole).all(|(now, then)| then.1.starts_with(&now.1));
            assert!(as_before && state.len() <= whole.len(), "at {length}");
            lengths.push(state.len());
            assert_eq!(server.turn("r", "go on"), "ok", "at {length}");
            server.finish();
        } else {
            // Cut before the session began.
            assert_eq!(first.error(), Some("store_failed"), "at {length}");
            server.finish_with(2, Answers::AllAndFarewell);
        }
    }
    assert_eq!(lengths.first(), Some(&whole.len()), "the whole log gives all");
    assert!(lengths.windows(2).all(|pair| pair[0] >= pair[1]), "{lengths:?}");
}
