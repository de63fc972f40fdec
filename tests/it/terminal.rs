//! What a person at a terminal sees, and that nobody else sees it.

use crate::once::{Once, duologue};
use crate::server::Folder;
use rustix::fs::{Mode, OFlags, open};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use std::fs::File;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::process::Command;
use std::thread;

/// The escape that begins every colour and every move of the cursor.
const ESCAPE: char = '\u{1b}';

/// A terminal: the side that a person looks at, and the side that a program writes to.
pub(crate) fn terminal() -> (File, OwnedFd) {
    let shown = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
    grantpt(&shown).expect("a terminal");
    unlockpt(&shown).expect("a terminal");
    let name = ptsname(&shown, Vec::new()).expect("its name");
    let written = open(name, OFlags::RDWR | OFlags::NOCTTY, Mode::empty()).expect("a terminal");
    (File::from(shown), written)
}

/// All that is shown until nobody can write any more.
fn read(mut shown: File) -> String {
    let mut text = Vec::new();
    // When the last writer has gone, a terminal gives an error in place of an end.
    shown.read_to_end(&mut text).ok();
    String::from_utf8_lossy(&text).into_owned()
}

/// Runs `command` with standard error, and standard output too if `is_shown`, on a terminal; gives
/// what is shown there.
fn on_terminal(mut command: Command, is_shown: bool) -> String {
    let (shown, written) = terminal();
    let reading = thread::spawn(move || read(shown));
    if !command.get_envs().any(|(name, _)| name == "TERM") {
        command.env("TERM", "xterm");
    }
    command.stdin(std::process::Stdio::null());
    if is_shown {
        command.stdout(written.try_clone().expect("a terminal"));
    } else {
        command.stdout(std::process::Stdio::null());
    }
    command.stderr(written);
    let status = command.status().expect("the binary runs");
    // The command holds the other side of the terminal.
    drop(command);
    assert!(status.success(), "{status}");
    reading.join().expect("no panic")
}

#[test]
fn a_terminal_that_knows_no_escapes_gets_none() {
    let folder = Folder::new();
    for words in [&["exec", "hello"][..], &["exec", "--help"]] {
        let mut command = duologue(&folder, words);
        command.env("TERM", "dumb");
        let seen = on_terminal(command, true);
        assert!(!seen.contains(ESCAPE), "{words:?}: {seen:?}");
    }
}

fn exec(folder: &Folder, options: &[&str]) -> Command {
    let words = ["exec", "hello there", "--engine", "echo", "--echo-delay-ms", "1"];
    duologue(folder, &[&words, options].concat())
}

#[test]
fn a_person_sees_that_the_model_is_at_work_and_then_the_answer_alone() {
    let folder = Folder::new();
    let seen = on_terminal(exec(&folder, &[]), true);
    assert!(seen.contains("waiting for the model"), "{seen:?}");
    // The line is cleared before the answer begins, and does not come back.
    let (_, answer) = seen.rsplit_once(ESCAPE).expect("a cleared line");
    assert!(answer.ends_with("Turn 1. You said: hello there\r\n"), "{seen:?}");
}

#[test]
fn a_person_sees_how_far_an_answer_is_that_goes_elsewhere() {
    let folder = Folder::new();
    for options in [&[][..], &["--output", "json"], &["--json-stream"]] {
        let seen = on_terminal(exec(&folder, options), false);
        assert!(seen.contains("waiting for the model"), "{options:?}: {seen:?}");
        assert!(!seen.contains("Turn 1."), "{options:?}: {seen:?}");
    }
    assert_eq!(on_terminal(exec(&folder, &["--rpc"]), false), "", "a client is no person");
}

#[test]
fn colours_are_for_terminals_and_for_who_wants_them() {
    let folder = Folder::new();
    let help = |command: &mut Command| {
        command.arg("--help");
    };
    let mut coloured = duologue(&folder, &["exec"]);
    help(&mut coloured);
    assert!(on_terminal(coloured, true).contains(ESCAPE));
    let mut plain = duologue(&folder, &["exec"]);
    help(plain.env("NO_COLOR", "1"));
    assert!(!on_terminal(plain, true).contains(ESCAPE));
    let piped = Once::start(duologue(&folder, &["exec", "--help"])).finish();
    assert!(!piped.stdout.contains(ESCAPE) && piped.status == 0);
    let wrong = Once::start(duologue(&folder, &["exec", "--bogus"])).finish();
    assert!(!wrong.stderr.contains(ESCAPE) && wrong.status == 2, "{wrong:?}");
}
