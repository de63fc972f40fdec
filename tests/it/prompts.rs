//! What `exec` asks: what is typed, what is piped in, and files; and what becomes of standard input
//! that is not asked for.

use crate::once::{Ended, Once, duologue, run};
use crate::provider::{Provider, says};
use crate::server::{Folder, Launch};
use rustix::pipe::pipe;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::process::Stdio;

/// What begins every line about standard input that is not read.
const UNREAD: &str = "standard input has data";

fn folder() -> Folder {
    let folder = Folder::new();
    fs::write(folder.path("a.txt"), "one\ntwo\n").expect("a file");
    fs::write(folder.path("b c.txt"), "three").expect("a file");
    fs::write(folder.path("bytes"), [b'a', 0xff]).expect("a file");
    folder
}

/// What is asked by `words` with `piped` on standard input.
#[track_caller]
fn asked(folder: &Folder, words: &[&str], piped: &str) -> String {
    let words = [&["exec"][..], words, &["--print-prompt"]].concat();
    let mut once = Once::start(duologue(folder, &words));
    once.write(piped);
    let ended = once.finish();
    assert_eq!((ended.status, ended.stderr.as_str()), (0, ""), "{words:?}: {ended:?}");
    ended.stdout
}

#[test]
fn piped_text_comes_after_the_prompt() {
    let folder = folder();
    assert_eq!(asked(&folder, &["Review this", "-"], "-a\n+b\n"), "Review this\n\n-a\n+b\n");
    assert_eq!(asked(&folder, &["Review this", "-", "--allow-empty"], ""), "Review this\n");
    assert_eq!(asked(&folder, &["-"], "-a\n"), "-a\n");
    // The whole way to the answer, too.
    let words = ["exec", "Review this", "-", "--engine", "echo"];
    let mut once = Once::start(duologue(&folder, &words));
    once.write("the diff\n");
    assert_eq!(once.finish().stdout, "Turn 1. You said: Review this\n\nthe diff\n");
}

#[test]
fn empty_text_that_was_requested_is_an_error() {
    let folder = folder();
    fs::write(folder.path("blank"), " \n").expect("a file");
    let ask = |words: &[&str], piped: &str| {
        let words = [&["exec", "--engine", "echo"][..], words].concat();
        let mut once = Once::start(duologue(&folder, &words));
        once.write(piped);
        once.finish()
    };
    let from_file = ["--prompt-file", "blank", "--file", "a.txt"];
    for (words, piped, part) in [
        (&["Review.", "-"][..], "", "standard input is empty"),
        (&["Review.", "-"], " \n\n", "standard input is empty"),
        (&["-", "--file", "a.txt"], "", "standard input is empty"),
        (&["--prompt-file", "-", "--file", "a.txt"], "", "standard input is empty"),
        (&["Review.", "-", "--print-prompt"], "", "standard input is empty"),
        (&from_file, "", "--prompt-file: blank is empty"),
    ] {
        let ended = ask(words, piped);
        assert_eq!((ended.status, ended.stdout.as_str()), (2, ""), "{words:?}: {ended:?}");
        assert!(ended.stderr.contains(part), "{words:?}: {ended:?}");
        assert!(ended.stderr.contains("--allow-empty"), "{words:?}: {ended:?}");
        let document = ask(&[words, &["--output", "json"]].concat(), piped).stdout;
        assert!(document.contains("\"code\": \"empty_prompt\""), "{words:?}: {document}");
        let permitted = ask(&[words, &["--allow-empty"]].concat(), piped);
        assert_eq!(permitted.status, 0, "{words:?}: {permitted:?}");
    }
    // Without anything to ask there is nothing to permit.
    assert_eq!(ask(&["-", "--allow-empty"], "").status, 2);
}

/// The same where a flag of a command file names standard input.
#[test]
fn a_flag_that_reads_empty_standard_input_is_an_error() {
    let folder = folder();
    let file = "name: c\nshort: c\nflags:\n  - {name: text, type: stringFromFile, help: h}\nprompt: \"Sum \
                up: {{ .text }}\"\n";
    fs::write(folder.path("c.yaml"), file).expect("a file");
    fs::write(folder.path("blank"), "").expect("a file");
    let ask = |words: &[&str], piped: &str| {
        let words = [&["run-command", "c.yaml", "--engine", "echo"][..], words].concat();
        let mut once = Once::start(duologue(&folder, &words));
        once.write(piped);
        once.finish()
    };
    for (more, piped) in [(&[][..], ""), (&[], " \n"), (&["--print-prompt"], "")] {
        let words = [&["--text", "-"], more].concat();
        let ended = ask(&words, piped);
        assert_eq!((ended.status, ended.stdout.as_str()), (2, ""), "{words:?}: {ended:?}");
        assert!(ended.stderr.contains("standard input is empty"), "{words:?}: {ended:?}");
        let document = ask(&[&words[..], &["--output", "json"]].concat(), piped).stdout;
        assert!(document.contains("\"code\": \"empty_prompt\""), "{words:?}: {document}");
        let permitted = ask(&[&words[..], &["--allow-empty"]].concat(), piped);
        assert_eq!(permitted.status, 0, "{words:?}: {permitted:?}");
    }
    assert!(ask(&["--text", "-"], "words").stdout.ends_with("Sum up: words\n"));
    // A file is read, and nobody failed to write it just now.
    assert_eq!(ask(&["--text", "blank"], "").status, 0);
}

#[test]
fn files_come_after_the_prompt_with_their_names() {
    let folder = folder();
    let a = "<file name=\"a.txt\">\none\ntwo\n</file>";
    let b = "<file name=\"b c.txt\">\nthree\n</file>";
    let both = ["--file", "a.txt", "-f", "b c.txt"];
    let check = |words: &[&str], piped, expected: String| {
        assert_eq!(asked(&folder, &[words, &both].concat(), piped), expected, "{words:?}");
    };
    check(&["Compare"], "", format!("Compare\n\n{a}\n\n{b}\n"));
    check(&["Compare", "-"], "piped\n", format!("Compare\n\npiped\n\n{a}\n\n{b}\n"));
    check(&["-"], "piped\n", format!("piped\n\n{a}\n\n{b}\n"));
    check(&["--prompt-file", "a.txt"], "", format!("one\ntwo\n\n{a}\n\n{b}\n"));
    check(&[], "", format!("{a}\n\n{b}\n"));
    check(&["-s", "Compare."], "", format!("[system]\nCompare.\n\n[user]\n{a}\n\n{b}\n"));
}

#[test]
fn a_file_that_can_not_be_asked_about_is_named() {
    let folder = folder();
    let check = |path: &str, part: &str| {
        let ended = run(&folder, &["exec", "hello", "--file", path, "--output", "json"]);
        assert_eq!(ended.status, 2, "{path}: {ended:?}");
        assert!(ended.stderr.contains(part), "{path}: {ended:?}");
        assert!(ended.stdout.contains("\"ok\": false"), "{path}: {ended:?}");
    };
    check("nothing", "--file: nothing can't be opened");
    check("bytes", "it is not UTF-8");
    check(".", "it is a folder");
    check("-", "write - after the prompt");
    check("/dev/zero", "it has more than");
}

/// Runs `words` with data on a pipe that stays open, so that reading all of it would never end.
fn with_waiting_pipe(folder: &Folder, words: &[&str], data: &str) -> Ended {
    let (reader, writer) = pipe().expect("a pipe");
    let mut writer = File::from(writer);
    writer.write_all(data.as_bytes()).expect("there is room");
    end(folder, words, Stdio::from(reader))
}

fn end(folder: &Folder, words: &[&str], stdin: Stdio) -> Ended {
    let mut command = duologue(folder, &[words, &["--engine", "echo"]].concat());
    let output = command.stdin(stdin).output().expect("the binary runs");
    Ended {
        status: output.status.code().expect("a status"),
        stdout: String::from_utf8(output.stdout).expect("UTF-8"),
        stderr: String::from_utf8(output.stderr).expect("UTF-8"),
    }
}

#[test]
fn data_on_standard_input_that_is_not_read_is_reported_in_one_line() {
    let folder = folder();
    fs::write(folder.path("ask.yaml"), "prompt: hello\n").expect("a file");
    for words in [
        &["exec", "hello"][..],
        &["exec", "hello", "--file", "a.txt"],
        &["exec", "--prompt-file", "a.txt", "--output", "json"],
        &["run-command", "ask.yaml"],
    ] {
        let ended = with_waiting_pipe(&folder, words, "the diff\n");
        assert_eq!(ended.status, 0, "{words:?}: {ended:?}");
        let lines: Vec<_> = ended.stderr.lines().collect();
        assert!(lines.len() == 1 && lines[0].contains(UNREAD), "{words:?}: {ended:?}");
        assert!(!ended.stdout.contains("the diff"), "{words:?}: {ended:?}");
    }
    let file = || Stdio::from(File::open(folder.path("a.txt")).expect("a file"));
    let ended = end(&folder, &["exec", "hello"], file());
    assert!(ended.status == 0 && ended.stderr.contains(UNREAD), "{ended:?}");
}

#[test]
fn standard_input_without_data_is_not_mentioned_and_not_waited_for() {
    let folder = folder();
    let words = &["exec", "hello"];
    let quiet = |ended: Ended| assert_eq!((ended.status, ended.stderr.as_str()), (0, ""));
    quiet(with_waiting_pipe(&folder, words, ""));
    quiet(end(&folder, words, Stdio::null()));
    // A loop reads the lines of a file, and asks about each.
    let mut lines = File::open(folder.path("a.txt")).expect("a file");
    lines.read_exact(&mut [0; 4]).expect("the first line");
    quiet(end(&folder, words, Stdio::from(lines)));
}

#[test]
fn options_have_short_forms() {
    let provider = Provider::start(vec![says("hello")]);
    let url = provider.base_url();
    let words = ["rpc", "--base-url", &url, "-m", "the-model", "-s", "Be brief."];
    let mut server = Launch::new(&words).secret("OPENAI_API_KEY", "sk-short").start();
    assert_eq!(server.turn("r", "hello"), "ok");
    server.finish();
    let body = provider.wait_request(1).body;
    assert_eq!(body["model"], "the-model");
    assert_eq!(body["messages"][0]["content"], "Be brief.");
    let folder = folder();
    let ended = run(&folder, &["exec", "hello", "-f", "a.txt", "-o", "json", "--engine", "echo"]);
    assert!(ended.stdout.contains("a.txt") && ended.stdout.starts_with('{'), "{ended:?}");
}
