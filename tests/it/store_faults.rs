//! A store that fails: the conversation goes on, and says what is not stored (fault 25).

use crate::frames::{Frame, errors, snapshot};
use crate::server::{Folder, Launch, Transcript};
use crate::store::{events, resumed, stored, wait_state};

/// Statements that write in one short turn, and some more.
#[cfg(debug_assertions)]
const STATEMENTS: u32 = 40;

/// The parts of a failure that hold wherever it happens; gives the first event that is not stored.
#[track_caller]
fn check(ended: &Transcript, what: &str) -> u64 {
    assert_eq!(errors(&ended.frames, ""), ["store_failed"], "{what}");
    let error = ended.frames.iter().find(|it| it.error().is_some()).expect("an error");
    assert_ne!(error.0["error"]["terminal"], true, "{what}");
    assert!(ended.stderr.contains("not stored any more"), "{what}: {}", ended.stderr);
    let degraded = ended.frames.iter().find(|it| it.is_event("StoreDegraded")).expect("an event");
    degraded.payload("firstMissingOrdinal").parse().expect("a number")
}

/// What was stored goes on in another process.
#[track_caller]
fn check_rest(folder: &Folder, missing: u64, what: &str) {
    let stored = events(&folder.path("store"));
    assert!(stored.iter().all(|event| event.0 < missing), "{what}: {missing} is missing");
    if stored.is_empty() {
        return;
    }
    let mut next = resumed(folder, &[]).start();
    wait_state(&mut next);
    assert_eq!(next.turn("r9", "go on"), "ok", "{what}");
    assert_eq!(errors(&next.finish().frames, ""), [""; 0], "{what}");
}

#[cfg(debug_assertions)]
#[test]
fn the_nth_write_fails_for_every_n() {
    let mut hits = 0;
    for nth in 1..=STATEMENTS {
        let folder = Folder::new();
        let launch = stored(&folder, &["--extensions", "store"]);
        let mut server = launch.env("DUOLOGUE_FAULT", format!("store:{nth}")).start();
        assert_eq!(server.turn("r1", "two words"), "ok", "at write {nth}");
        assert_eq!(server.turn("r2", "again"), "ok", "at write {nth}");
        server.send(snapshot("s"));
        let state = server.wait("the state", Frame::is_snapshot);
        assert_eq!(state.messages().len(), 4, "at write {nth}");
        let ended = server.finish();
        if errors(&ended.frames, "").is_empty() {
            continue;
        }
        hits += 1;
        let what = format!("at write {nth}");
        check_rest(&folder, check(&ended, &what), &what);
    }
    assert!(hits > 20, "{hits} of the writes failed");
}

#[cfg(debug_assertions)]
#[test]
fn a_defect_while_an_event_is_stored_ends_only_the_storing() {
    for nth in 1..=3 {
        let folder = Folder::new();
        let launch = stored(&folder, &["--extensions", "store"]);
        let mut server = launch.env("DUOLOGUE_FAULT", format!("persist:{nth}")).start();
        for turn in 1..=3 {
            assert_eq!(server.turn(&format!("r{turn}"), "two words"), "ok", "at batch {nth}");
        }
        let ended = server.finish();
        let what = format!("at batch {nth}");
        check_rest(&folder, check(&ended, &what), &what);
    }
}

/// The system refuses to let the files grow, wherever the store is at that moment.
#[test]
fn a_disk_that_is_full_ends_only_the_storing() {
    for blocks in [150, 200, 300, 500] {
        let folder = Folder::new();
        let place = folder.name("store");
        let script = format!("ulimit -f {blocks}; exec \"$0\" \"$@\"");
        let args = ["rpc", "--engine", "echo", "--store", &place, "--session-id", "s"];
        let more = ["--extensions", "store", "--final-snapshot", "none"];
        let mut server = Launch::shell(&script, &[&args[..], &more[..]].concat()).start();
        for turn in 1..=3 {
            let prompt = "word ".repeat(20_000);
            assert_eq!(server.turn(&format!("r{turn}"), &prompt), "ok", "{blocks} blocks");
        }
        let ended = server.finish();
        let what = format!("{blocks} blocks");
        check_rest(&folder, check(&ended, &what), &what);
    }
}
