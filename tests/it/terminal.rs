//! What a person at a terminal sees, and that nobody else sees it.

use crate::once::{Once, duologue, run};
use crate::process::Process;
use crate::provider::{Provider, Step};
use crate::screen::Screen;
use crate::server::Folder;
use crate::vt::Vt;
use rustix::fs::{Mode, OFlags, open};
use rustix::process::Signal;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use serde_json::Value;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::process::{Command, ExitStatus};
use std::thread;

/// The escape that begins every colour and every move of the cursor.
const ESCAPE: char = '\u{1b}';

/// A terminal: the side that a person looks at, and the side that a program writes to.
pub(crate) fn terminal() -> (File, OwnedFd) {
    // Programs that other tests start meanwhile must not get it.
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    let shown = openpt(flags).expect("a terminal");
    grantpt(&shown).expect("a terminal");
    unlockpt(&shown).expect("a terminal");
    let name = ptsname(&shown, Vec::new()).expect("its name");
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
    let written = open(name, flags, Mode::empty()).expect("a terminal");
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
pub(crate) fn on_terminal(command: Command, is_shown: bool) -> String {
    let (status, seen) = ended_on_terminal(command, is_shown);
    assert!(status.success(), "{status}");
    seen
}

/// The same, with the status.
fn ended_on_terminal(mut command: Command, is_shown: bool) -> (ExitStatus, String) {
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
    (status, reading.join().expect("no panic"))
}

/// The answer ends without a line feed, so that the row has text when the warning comes.
#[test]
fn a_warning_leaves_the_answer_on_the_screen() {
    const RUNS: usize = 10;
    let folder = Folder::new();
    for _ in 0..RUNS {
        let steps =
            [Step::Text("a short answer".to_owned()), Step::Finish("length", None), Step::Done];
        let provider = Provider::start(vec![steps.to_vec()]);
        let url = provider.base_url();
        let words = ["exec", "hi", "--engine", "openai", "--model", "m", "--base-url", &url];
        let mut command = duologue(&folder, &words);
        command.env("DUOLOGUE_API_KEY", "key-of-the-test");
        let (status, seen) = ended_on_terminal(command, true);
        assert_eq!(status.code(), Some(3), "{seen:?}");
        let screen = Vt::showing(&seen, 80, 24).text();
        // Standard error has its own pace: which of the two comes first is a matter of chance.
        let rows: Vec<_> = screen.lines().filter(|row| !row.trim().is_empty()).collect();
        let is_there = |wanted: &str| rows.iter().any(|row| row.contains(wanted));
        assert!(
            rows.len() == 2 && is_there("a short answer") && is_there("cut off"),
            "{screen}\n{seen:?}"
        );
    }
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

/// A pipe's reader may write to the terminal.
#[test]
fn nothing_is_drawn_once_something_was_written_to_a_pipe() {
    let folder = Folder::new();
    let binary = env!("CARGO_BIN_EXE_duologue");
    let seen = |options: &str, command: &str| {
        let run = format!("\"$0\" exec 'hello there' --engine echo --echo-delay-ms 5 {options}");
        let script = format!("{run} | {command}");
        let mut command = in_session(&folder, &["bash", "-c", &script, binary]);
        let (status, seen) = with_terminal(80, &mut command, |_| String::new());
        assert_eq!(status, Some(0), "{seen:?}");
        seen
    };
    for (options, start) in [("", "Turn"), ("--output json", "{")] {
        let seen = seen(options, "cat");
        assert!(seen.contains("waiting for the model"), "{options}: {seen:?}");
        let (_, written) = seen.split_once(start).expect("an answer");
        assert!(!written.contains(ESCAPE), "{options}: {seen:?}");
    }
    assert!(!seen("--json-stream", "cat").contains(ESCAPE));
}

/// A document on the same terminal comes once the line is gone, however the run ends. Without that
/// order it is a matter of chance, so it is looked at several times.
#[test]
fn a_document_comes_after_the_line_is_cleared() {
    const RUNS: usize = 20;
    let folder = Folder::new();
    for (format, start) in [("json", "{"), ("yaml", "ok:")] {
        for _ in 0..RUNS {
            let seen = on_terminal(exec(&folder, &["--output", format]), true);
            let at = seen.find(start).expect("a document");
            assert!(seen[..at].ends_with("\r\u{1b}[2K"), "{seen:?}");
        }
    }
    for _ in 0..RUNS {
        let seen = interrupted_document(&folder);
        let at = seen.find("{\r\n").expect("a document");
        assert!(seen[..at].ends_with("\r\u{1b}[2K"), "{seen:?}");
    }
}

/// What a terminal shows of a run that a signal ends while the line is there.
fn interrupted_document(folder: &Folder) -> String {
    let (mut shown, written) = terminal();
    let words = ["exec", "hello there", "--engine", "echo", "--echo-delay-ms", "60000"];
    let mut command = duologue(folder, &[&words[..], &["--output", "json"]].concat());
    command.env("TERM", "xterm").stdin(std::process::Stdio::null());
    command.stdout(written.try_clone().expect("a terminal")).stderr(written);
    let mut child = command.spawn().expect("the binary runs");
    drop(command);
    let (mut seen, mut piece) = (Vec::new(), [0; 256]);
    while !String::from_utf8_lossy(&seen).contains("waiting") {
        let bytes = shown.read(&mut piece).expect("a terminal");
        seen.extend_from_slice(&piece[..bytes]);
    }
    Process(child.id()).send(Signal::INT);
    let rest = read(shown);
    child.wait().expect("our own child");
    String::from_utf8_lossy(&seen).into_owned() + &rest
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

/// What a model might write to control a terminal: clear the screen, set the title, fill the
/// clipboard, colour what follows, go back over the line, and turn the order of the text round.
pub(crate) const HOSTILE: &str = "\u{1b}[2J\u{1b}]0;title\u{7} \u{1b}]52;c;eA==\u{1b}\\ \u{9b}31m over\rwritten \
     \u{8}\u{7f}\u{202e}desrever\u{2066}\u{200f}\n\tplain \u{e9}\n";

/// Whether a terminal may do something at `char` but go on.
pub(crate) fn controls(char: char) -> bool {
    let is_bidi = matches!(char, '\u{61c}' | '\u{200e}' | '\u{200f}')
        || matches!(char, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    is_bidi || char.is_control() && !matches!(char, '\n' | '\t')
}

/// A folder with a model's answer, and a command file that takes values from answers.
fn hostile() -> Folder {
    let folder = Folder::new();
    let line = serde_json::to_string(HOSTILE).expect("JSON");
    fs::write(folder.path("answer.txt"), HOSTILE).expect("a file");
    fs::write(folder.path("answer.jsonl"), format!("{{\"text\": {line}}}\n")).expect("a file");
    fs::write(folder.path("list.yaml"), "prompt: hello\nresponse-type: jsonl\n").expect("a file");
    folder
}

const TEXT: [&str; 6] = ["exec", "hello", "--engine", "echo", "--echo-answer", "answer.txt"];
const LIST: [&str; 6] =
    ["run-command", "list.yaml", "--engine", "echo", "--echo-answer", "answer.jsonl"];

/// What is shown on a terminal that is written to by nobody else; a terminal ends lines with CR LF.
fn shown(folder: &Folder, words: &[&str], options: &[&str]) -> String {
    let mut command = duologue(folder, &[words, options].concat());
    command.env("TERM", "dumb");
    on_terminal(command, true).replace("\r\n", "\n")
}

#[test]
fn an_answer_can_not_control_a_terminal() {
    let folder = hostile();
    for (words, options) in [
        (TEXT, &[][..]),
        (TEXT, &["--output", "json"]),
        (TEXT, &["--output", "yaml"]),
        (TEXT, &["--json-stream"]),
        (TEXT, &["--rpc"]),
        (LIST, &["--output", "objects"]),
        (LIST, &["--output", "json"]),
    ] {
        let seen = shown(&folder, &words, options);
        assert!(
            seen.contains("desrever") && seen.contains("plain \u{e9}"),
            "{options:?}: {seen:?}"
        );
        assert!(!seen.contains(controls), "{options:?}: {seen:?}");
    }
    let text = shown(&folder, &TEXT, &[]);
    assert!(text.starts_with("\\x1b[2J\\x1b]0;title\\x07 "), "{text:?}");
    assert!(text.ends_with("\n\tplain \u{e9}\n"), "{text:?}");
}

/// What is JSON stays the same JSON.
#[test]
fn an_answer_is_the_same_for_a_program_wherever_it_is_printed() {
    let folder = hostile();
    let seen = shown(&folder, &TEXT, &["--output", "json"]);
    let document: Value = serde_json::from_str(&seen).expect("JSON");
    assert_eq!(document["data"], HOSTILE);
    let piped = Once::start(duologue(&folder, &TEXT)).finish();
    assert_eq!(piped.stdout, HOSTILE, "a pipe gets what the model wrote");
    let piped = Once::start(duologue(&folder, &[&LIST[..], &["--output", "objects"]].concat()));
    assert!(piped.finish().stdout.contains("\u{9b}31m"), "a pipe gets what the model wrote");
}

#[test]
fn a_prompt_that_is_printed_can_not_control_a_terminal() {
    let folder = hostile();
    for options in [&[][..], &["--output", "json"]] {
        let words = ["exec", "--prompt-file", "answer.txt", "--print-prompt"];
        let seen = shown(&folder, &words, options);
        assert!(seen.contains("desrever") && !seen.contains(controls), "{options:?}: {seen:?}");
    }
}

/// A terminal of its own for `command`, which a person can interrupt; `script` sees what is shown
/// and may type. Gives the whole of it.
pub(crate) fn with_terminal(
    columns: u16,
    command: &mut Command,
    script: impl FnOnce(&mut File) -> String,
) -> (Option<i32>, String) {
    let (mut shown, written) = terminal();
    let size = Winsize { ws_row: 24, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(&written, size).expect("a terminal");
    let copy = || written.try_clone().expect("a terminal");
    command.stdin(copy()).stdout(copy()).stderr(copy()).env("TERM", "xterm");
    let mut child = command.spawn().expect("setsid of util-linux runs");
    // The command holds the other side of the terminal.
    drop(std::mem::replace(command, Command::new("true")));
    drop(written);
    let mut seen = script(&mut shown);
    seen += &read(shown);
    (child.wait().expect("our own child").code(), seen)
}

/// Reads what is shown until `text` is.
pub(crate) fn read_until(shown: &mut File, text: &str) -> String {
    let mut seen = Vec::new();
    while !String::from_utf8_lossy(&seen).contains(text) {
        let mut bytes = [0; 1024];
        let count = shown.read(&mut bytes).expect("it is shown before the end");
        seen.extend_from_slice(&bytes[..count]);
    }
    String::from_utf8_lossy(&seen).into_owned()
}

/// `words` in a session of its own, whose terminal is standard input.
pub(crate) fn in_session(folder: &Folder, words: &[&str]) -> Command {
    let mut command = duologue(folder, &[]);
    let owned =
        |(name, value): (&OsStr, Option<&OsStr>)| Some((name.to_owned(), value?.to_owned()));
    let environment: Vec<_> = command.get_envs().filter_map(owned).collect();
    command = Command::new("setsid");
    command.args(["--ctty", "--wait"]).args(words).current_dir(folder.path("")).env_clear();
    command.envs(environment);
    command
}

/// As a person sees it: no trace of the line, however narrow the terminal is.
#[test]
fn the_line_is_gone_after_an_interrupt_at_any_width() {
    let folder = Folder::new();
    let binary = env!("CARGO_BIN_EXE_duologue");
    for columns in [12, 13, 20, 28, 29, 30, 80] {
        let words =
            [binary, "exec", "hello there", "--engine", "echo", "--echo-delay-ms", "3600000"];
        let (status, seen) = with_terminal(columns, &mut in_session(&folder, &words), |shown| {
            let seen = read_until(shown, "0s w");
            shown.write_all(b"\x03").expect("it is typed");
            seen
        });
        assert_eq!(status, Some(130), "{columns}: {seen:?}");
        let screen = Screen::showing(&seen, usize::from(columns));
        assert!(!screen.text().contains("0s w"), "{columns}: {screen:?}");
        assert!(screen.text().contains("duologue:"), "{columns}: {screen:?}");
    }
}

#[test]
fn a_narrow_terminal_shows_the_line_in_one_row() {
    let folder = Folder::new();
    let binary = env!("CARGO_BIN_EXE_duologue");
    let words = [binary, "exec", "hello there", "--engine", "echo", "--echo-delay-ms", "3600000"];
    let (_, seen) = with_terminal(20, &mut in_session(&folder, &words), |shown| {
        let seen = read_until(shown, "0s w");
        shown.write_all(b"\x03").expect("it is typed");
        seen
    });
    let (drawn, _) = seen.split_once("^C").expect("an interrupt");
    let screen = Screen::showing(drawn, 20);
    assert!(screen.text().contains("waiting for"), "{screen:?}");
    assert_eq!(screen.rows(), 1, "{screen:?}");
}

/// It shares the terminal with what the person does there meanwhile.
#[test]
fn a_background_job_draws_nothing() {
    let folder = Folder::new();
    let binary = env!("CARGO_BIN_EXE_duologue");
    let run = "\"$0\" exec 'hello there' --engine echo --echo-delay-ms 1 >/dev/null";
    let seen = |script: &str| {
        let mut command = in_session(&folder, &["bash", "-c", script, binary]);
        let (status, seen) = with_terminal(80, &mut command, |_| String::new());
        assert_eq!(status, Some(0), "{seen:?}");
        seen
    };
    let background = seen(&format!("set -m; {run} & wait $!"));
    assert!(!background.contains(ESCAPE), "{background:?}");
    assert!(!background.contains("waiting for"), "{background:?}");
    let foreground = seen(&format!("set -m; {run}; true"));
    assert!(foreground.contains("waiting for the model"), "{foreground:?}");
}

/// Where a program reads, an empty list is no output at all.
#[test]
fn an_empty_list_says_at_a_terminal_what_there_is_not() {
    let folder = Folder::new();
    let seen = |words: &[&str]| on_terminal(duologue(&folder, words), false);
    let listed = seen(&["sessions", "list"]);
    assert!(listed.contains("duologue: there are no sessions in "), "{listed:?}");
    assert!(listed.contains("sessions.db; chat stores its conversations there"), "{listed:?}");
    assert_eq!(seen(&["sessions", "list", "--output", "json"]), "");
    run(&folder, &["exec", "hello", "--engine", "echo", "--store", "chat.db"]);
    let store = ["--store", "chat.db"];
    assert_eq!(seen(&[&["sessions", "list"][..], &store].concat()), "");
    assert_eq!(seen(&[&["sessions", "search", "hello"][..], &store].concat()), "");
    let searched = seen(&[&["sessions", "search", "goodbye"][..], &store].concat());
    assert!(searched.contains("no message has all of these words in "), "{searched:?}");
    for words in [&["sessions", "list"][..], &["sessions", "search", "goodbye"]] {
        let piped = run(&folder, words);
        assert_eq!((piped.status, &*piped.stdout, &*piped.stderr), (0, "", ""), "{words:?}");
    }
}

/// A program that reads pipes gets the error as a frame.
#[test]
fn a_wrong_option_without_a_command_is_no_frame_at_a_terminal() {
    let folder = Folder::new();
    let words = [env!("CARGO_BIN_EXE_duologue"), "--bogus"];
    let mut command = in_session(&folder, &words);
    command.env("NO_COLOR", "1");
    let (status, seen) = with_terminal(80, &mut command, |_| String::new());
    assert_eq!(status, Some(2), "{seen:?}");
    assert!(seen.starts_with("error: unexpected argument '--bogus' found"), "{seen:?}");
    assert!(!seen.contains("\"hello\""), "{seen:?}");
    let piped = run(&folder, &["--bogus"]);
    assert!(piped.status == 2 && piped.stdout.contains("\"hello\""), "{piped:?}");
}
