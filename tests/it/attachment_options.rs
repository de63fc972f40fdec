//! Images and files that options attach to the prompt of a single run.

use crate::attachments::PNG;
use crate::once::{Ended, Once, duologue, run};
use crate::server::Folder;
use serde_json::{Value, json};
use std::fs;

const COMMAND: &str = "flags:\n  - name: topic\n    type: string\nprompt: What is {{ .topic }}?\n";

/// A folder with an image, a text, and a command file.
fn folder() -> Folder {
    let folder = Folder::new();
    for (name, content) in
        [("cat.png", PNG), ("notes.md", b"# Notes\n"), ("ask.yaml", COMMAND.as_bytes())]
    {
        fs::write(folder.path(name), content).expect("a file");
    }
    folder
}

#[track_caller]
fn ok(folder: &Folder, words: &[&str]) -> String {
    let Ended { status, stdout, stderr } = run(folder, &[words, &["--engine", "echo"]].concat());
    assert_eq!(status, 0, "{stderr}");
    stdout
}

fn lines(stdout: &str) -> Vec<Value> {
    stdout.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

#[test]
fn both_options_may_be_repeated_and_images_come_first() {
    let folder = folder();
    let attached = "\nAttached: cat.png (image/png, 3x2, 33 bytes)\
                    \nAttached: dog.webp (image/webp, https://example.org/dog.webp)\
                    \nAttached: notes.md (text/markdown, 8 bytes)\
                    \nAttached: cat.png (image/png, 3x2, 33 bytes)";
    let words = [
        "--attach",
        "notes.md",
        "--image",
        "cat.png",
        "--attach",
        "cat.png",
        "--image",
        "https://example.org/dog.webp",
    ];
    let stdout = ok(&folder, &[&["exec", "What is it?"][..], &words].concat());
    assert_eq!(stdout.trim_end(), format!("Turn 1. You said: What is it?{attached}"));
    let stdout = ok(&folder, &[&["run-command", "ask.yaml", "--topic", "it"][..], &words].concat());
    assert_eq!(stdout.trim_end(), format!("Turn 1. You said: What is it?{attached}"));
}

#[test]
fn they_need_no_text() {
    let folder = folder();
    let attached = "Turn 1. You said: \nAttached: cat.png (image/png, 3x2, 33 bytes)\n";
    for words in [&[""][..], &[" "], &["", "-", "--allow-empty"], &["-", "--allow-empty"]] {
        let stdout = ok(&folder, &[&["exec", "--image", "cat.png"], words].concat());
        assert_eq!(stdout, attached, "{words:?}");
    }
    let file = "flags:\n  - {name: text, type: string}\nprompt: '{{ .text }}'\n";
    fs::write(folder.path("text.yaml"), file).expect("a file");
    let blank = ["run-command", "text.yaml", "--text", " "];
    let with_image = [&blank[..], &["--image", "cat.png"]].concat();
    assert_eq!(ok(&folder, &with_image), attached);
    let printed = ok(&folder, &[&with_image[..], &["--print-prompt"]].concat());
    assert_eq!(printed, "[attached]\ncat.png (image/png, 3x2, 33 bytes)\n");
    let blank = run(&folder, &[&blank[..], &["--engine", "echo"]].concat());
    assert!(blank.status == 2 && blank.stderr.contains("the prompt is blank"), "{blank:?}");
    // Text that was to be read may have been lost.
    for words in [&["-"][..], &["", "-"], &[]] {
        let words = [&["exec", "--engine", "echo", "--image", "cat.png"], words].concat();
        let ended = run(&folder, &words);
        assert_eq!((ended.status, ended.stdout.as_str()), (2, ""), "{words:?}");
    }
    let blank = run(&folder, &["exec", "", "--engine", "echo", "--allow-empty"]);
    assert!(blank.status == 2 && blank.stderr.contains("the prompt is blank"), "{blank:?}");
}

#[test]
fn a_prompt_that_is_read_later_has_them_too() {
    let folder = folder();
    let words = ["exec", "--engine", "echo", "--image", "cat.png", "--output", "json"];
    let mut once = Once::start(duologue(&folder, &words));
    once.write("What is it?\n");
    let ended = once.finish();
    assert_eq!(ended.status, 0, "{}", ended.stderr);
    assert!(ended.stdout.contains("Attached: cat.png (image/png, 3x2, 33 bytes)"), "{ended:?}");
}

#[test]
fn the_protocol_announces_the_extension_and_shows_what_was_attached() {
    let folder = folder();
    let frames = lines(&ok(&folder, &["exec", "--rpc", "--image", "cat.png", "What?"]));
    let words = frames[0]["hello"]["capabilities"].as_array().expect("words");
    assert!(words.contains(&json!("attachments")), "{words:?}");
    let accepted = frames.iter().find_map(|frame| frame.pointer("/uiEvent/payload/attachments"));
    assert_eq!(accepted.expect("attachments")[0]["width"], 3);
    let without = ok(&folder, &["exec", "--rpc", "What?"]);
    assert!(!without.contains("ttach"), "{without}");
}

#[test]
fn what_can_not_be_attached_is_status_2_in_every_format() {
    let folder = folder();
    folder.fifo("pipe");
    let check = |words: &[&str], expected: &str| {
        let exec = [&["exec", "What?", "--engine", "echo"], words].concat();
        let command = [&["run-command", "ask.yaml", "--topic", "it"], words].concat();
        for words in [exec, command] {
            let Ended { status, stdout, stderr } = run(&folder, &words);
            assert_eq!((status, stdout.as_str()), (2, ""), "{words:?}: {stderr}");
            assert!(stderr.contains(expected) && !stderr.contains("hush"), "{stderr}");
        }
    };
    check(&["--image", "none.png"], "--image none.png: it can't be read: No such file");
    check(&["--image", "notes.md"], "--image notes.md: it is text/markdown, not an image; attach");
    check(&["--attach", "pipe"], "--attach pipe: it is a pipe that nobody writes to");
    check(&["--attach", "."], "--attach .: it is a folder");
    check(&["--attach", "-"], "--attach can't be standard input; write it to a file first");
    check(&["--image", "/dev/stdin"], "--image can't be standard input");
    check(&["--image", "https://me:hush@e.org/"], "--image https:\u{2026}: its URL has a name");
    check(&["--image", "ftp://e.org/a.png"], "begins with \"ftp\"");
    check(&["--image", "cat.png", "--debug-events-jsonl", "cat.png"], "the same file as cat.png");
    assert_eq!(fs::read(folder.path("cat.png")).expect("an image"), PNG);

    let wrong = ["exec", "What?", "--engine", "echo", "--image", "none.png"];
    let json = run(&folder, &[&wrong[..], &["--output", "json"]].concat());
    let document: Value = serde_json::from_str(&json.stdout).expect("JSON");
    assert_eq!((json.status, &document["ok"]), (2, &json!(false)));
    let message = document["error"]["message"].as_str().expect("a message");
    assert!(message.starts_with("--image none.png: it can't be read"), "{message}");
    let rpc = run(&folder, &[&wrong[..], &["--rpc"]].concat());
    let frames = lines(&rpc.stdout);
    let error = frames.iter().find_map(|frame| frame.get("error")).expect("an error");
    assert_eq!((rpc.status, &error["terminal"]), (2, &json!(true)));
    let stdin = run(&folder, &["exec", "--rpc", "--stdin-rpc", "--image", "cat.png", "What?"]);
    assert!(stdin.status == 2 && stdin.stderr.contains("into the submit"), "{stdin:?}");
}

#[test]
fn the_option_of_pinocchio_is_taken_unless_the_file_has_it_itself() {
    let folder = folder();
    fs::copy(folder.path("cat.png"), folder.path("dog.png")).expect("a file");
    let words = ["run-command", "ask.yaml", "--topic", "it", "--images", "cat.png,dog.png"];
    let stdout = ok(&folder, &words);
    assert!(stdout.contains("Attached: cat.png (") && stdout.contains("Attached: dog.png ("));
    let own =
        "flags:\n  - name: images\n    type: stringList\nprompt: About {{ join \" \" .images }}\n";
    fs::write(folder.path("own.yaml"), own).expect("a file");
    let stdout = ok(&folder, &["run-command", "own.yaml", "--images", "a,b"]);
    assert_eq!(stdout.trim_end(), "Turn 1. You said: About a b");
    let words = ["run-command", "own.yaml", "--images", "a", "--duologue-images", "cat.png"];
    assert!(ok(&folder, &words).contains("Attached: cat.png ("));
}

#[test]
fn a_printed_prompt_names_what_would_go_with_it() {
    let folder = folder();
    let words = ["exec", "--print-prompt", "What?", "--image", "cat.png"];
    let stdout = ok(&folder, &words);
    assert_eq!(stdout, "[user]\nWhat?\n\n[attached]\ncat.png (image/png, 3x2, 33 bytes)\n");
    let stdout = ok(&folder, &[&words[..], &["--output", "json"]].concat());
    let document: Value = serde_json::from_str(&stdout).expect("JSON");
    assert_eq!(document["data"]["attachments"][0]["filename"], "cat.png");
}
