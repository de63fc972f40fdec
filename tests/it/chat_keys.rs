//! Keys, commands and modes of a chat at a terminal.

use crate::chat::{Person, chat};
use crate::chat_lines::piped;
use crate::mcp_servers::{assert_gone, config, mark};
use crate::once::{Once, duologue};
use crate::process::eventually;
use crate::profiles::Scene;
use crate::provider::{Provider, Step, says};
use crate::server::{Folder, KEY};
use crate::terminal::{in_session, read_until, with_terminal};
use crate::tools::run;
use serde_json::json;
use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

/// Bracketed paste is always on; the mouse never is.
#[test]
fn pasted_text_is_marked_and_the_mouse_is_the_terminals() {
    for (options, modes) in
        [(&[][..], &["1004", "2004"][..]), (&["--fullscreen"], &["1049", "1004", "2004"])]
    {
        let folder = Folder::new();
        let mut person = Person::start(chat(&folder, options));
        person.sees("/help");
        person.types("hello\r");
        person.answered("You said: hello");
        let mut screen = person.screen();
        // The picture that is being drawn may have more.
        screen.modes.retain(|mode| !["25", "2026"].contains(&mode.as_str()));
        assert_eq!(
            (screen.modes, screen.keyboard),
            (modes.iter().map(|&it| it.to_owned()).collect(), 1)
        );
        person.types("/quit\r");
        assert_eq!(person.ends().0, 0);
    }
}

#[test]
fn every_key_for_a_line_begins_a_line() {
    let folder = Folder::new();
    let mut person = Person::start(chat(&folder, &[]));
    person.sees("/help");
    // Ctrl-J, Alt-Enter, Shift-Enter as kitty and as xterm send it, and a backslash before Enter.
    person.types("a\nb\u{1b}\rc\u{1b}[13;2ud\u{1b}[27;2;13~e\\\rf");
    person.sees("> a\n  b\n  c\n  d\n  e\n  f");
    person.types("\r");
    person.answered("You said: a\nb\nc\nd\ne\nf");
    person.types("/quit\r");
    assert_eq!(person.ends().0, 0);
}

/// As a terminal sends them that knows kitty's protocol.
#[test]
fn keys_mean_the_same_on_every_keyboard() {
    let folder = Folder::new();
    let mut person = Person::start(chat(&folder, &[]));
    person.sees("/help");
    // Ctrl-U on a Cyrillic keyboard, Ctrl-_ and Ctrl-U again.
    person.types("gone\u{1b}[1075::117;5u");
    person.types("back\u{1b}[1075::117;5u\u{1b}[45:95;6u");
    // Super-X, Left on the numeric keypad, and F1 on the console of Linux.
    person.types("\u{1b}[120;9u\u{1b}[57419u\u{1b}[57420u\u{1b}[57417uX");
    person.sees("> bacXk");
    person.types("\u{1b}[[A");
    person.sees("Ctrl-L: draw the screen again");
    // Ctrl-M.
    person.types("\u{1b}[109;5u");
    person.answered("You said: bacXk");
    person.types("/quit\r");
    assert_eq!(person.ends().0, 0);
}

#[test]
fn a_prompt_joins_the_answer_visibly() {
    let folder = Folder::new();
    let mut person = Person::start(chat(&folder, &["--echo-delay-ms", "60000"]));
    person.sees("/help");
    person.types("slow\r");
    person.sees("Esc stops");
    person.types("and this\u{13}");
    person.sees("joins the answer: and this");
    person.types("later\r");
    person.sees("waits: later");
    // The last one comes back.
    person.types("\u{1b}[1;3A");
    person.sees("> later");
    person.types("\u{3}\u{3}");
    person.sees("· stopped");
    // The prompt that was to join comes back.
    person.sees("> and this");
    person.types("\u{3}\u{4}");
    assert_eq!(person.ends().0, 0);
}

/// The debug file has the extension only if it was named. A checker reads it either way.
#[test]
fn a_prompt_that_joined_an_answer_is_in_the_debug_file() {
    for (options, events) in [(&[][..], 0), (&["--extensions", "steer"], 1)] {
        let folder = Folder::new();
        let first = vec![Step::Text("One.".to_owned()), Step::Gate, Step::Done];
        let provider = Provider::start(vec![first, says("Two.")]);
        let words = ["chat", "--engine", "openai", "--debug-events-jsonl", "frames"];
        let mut command = duologue(&folder, &[&words[..], options].concat());
        command.env("HOME", folder.path("")).env("DUOLOGUE_MODEL", "m");
        command.env("OPENAI_API_KEY", KEY).env("OPENAI_BASE_URL", provider.base_url());
        let mut person = Person::start(command);
        person.sees("/help");
        person.types("first\r");
        provider.wait_request(1);
        person.types("second\u{13}");
        person.sees("joins the answer: second");
        provider.open_gate();
        person.answered("Two.");
        person.types("/quit\r");
        assert_eq!(person.ends().0, 0);
        let file = fs::read_to_string(folder.path("frames")).expect("the debug file");
        let checked = run(&["check"], file.as_bytes());
        assert!(checked.status.success(), "{checked:?}\n{file}");
        assert_eq!(file.matches("\"name\":\"ChatUserMessageAccepted\"").count(), 2, "{file}");
        assert_eq!(file.matches("\"name\":\"SteeringAccepted\"").count(), events, "{file}");
        let is_noted = format!("{checked:?}").contains("joined a run without a SteeringAccepted");
        assert_eq!(is_noted, events == 0, "{checked:?}");
    }
}

#[test]
fn earlier_prompts_are_searched() {
    let folder = Folder::new();
    let mut person = Person::start(chat(&folder, &[]));
    person.sees("/help");
    for prompt in ["about ports", "about ships"] {
        person.types(&format!("{prompt}\r"));
        person.answered(&format!("You said: {prompt}"));
    }
    person.types("\u{12}");
    person.sees("type to search");
    person.types("port\r");
    person.sees("\n> about ports\necho");
    person.types("\u{3}/quit\r");
    assert_eq!(person.ends().0, 0);
}

/// While the editor runs, every key is the editor's.
#[test]
fn keys_for_the_persons_editor_reach_it() {
    let folder = Folder::new();
    let script =
        "#!/bin/sh\necho the editor waits\nread line\nprintf 'typed %s' \"$line\" > \"$1\"\n";
    fs::write(folder.path("edit"), script).expect("a file");
    fs::set_permissions(folder.path("edit"), fs::Permissions::from_mode(0o700)).expect("a mode");
    let mut command = chat(&folder, &[]);
    command.env("EDITOR", "./edit");
    let mut person = Person::start(command);
    person.sees("/help");
    person.types("a draft\u{18}\u{5}");
    person.sees("the editor waits");
    for key in ["o", "n", "e", "\r"] {
        person.types(key);
    }
    person.sees("> typed one");
    person.types("\r");
    person.answered("You said: typed one");
    person.types("/quit\r");
    assert_eq!(person.ends().0, 0);
}

/// A chat whose editor is this script; its files are in the folder `temporary`.
fn with_editor(folder: &Folder, script: &str) -> Command {
    fs::write(folder.path("edit"), format!("#!/bin/sh\n{script}\n")).expect("a file");
    fs::set_permissions(folder.path("edit"), fs::Permissions::from_mode(0o700)).expect("a mode");
    fs::create_dir(folder.path("temporary")).expect("a folder");
    let mut command = chat(folder, &[]);
    command.env("EDITOR", "./edit").env("TMPDIR", folder.path("temporary"));
    command
}

fn left_by_editor(folder: &Folder) -> Vec<Vec<u8>> {
    let files = fs::read_dir(folder.path("temporary")).expect("a folder");
    files.map(|file| fs::read(file.expect("a file").path()).expect("its bytes")).collect()
}

#[test]
fn what_an_editor_has_saved_in_another_encoding_stays_in_its_file() {
    for (end, why) in
        [("", "it is not UTF-8; it is in /"), ("; exit 1", "saved in the editor is in /")]
    {
        let folder = Folder::new();
        let script = format!("printf 'caf\\351' > \"$1\"{end}");
        let mut person = Person::start(with_editor(&folder, &script));
        person.sees("/help");
        person.types("a draft\u{18}\u{5}");
        person.sees_words(why);
        person.sees("> a draft");
        assert_eq!(left_by_editor(&folder), [b"caf\xe9"], "{end}");
        person.types("\u{3}/quit\r");
        assert_eq!(person.ends().0, 0);
    }
}

#[test]
fn what_was_saved_in_an_editor_that_fails_can_be_had_back() {
    let folder = Folder::new();
    let script = "printf 'saved there\\n' > \"$1\"; exit 1";
    let mut person = Person::start(with_editor(&folder, script));
    person.sees("/help");
    person.types("a draft\u{18}\u{5}");
    person.sees_words("the up key brings back what was saved in the editor");
    person.sees("> a draft");
    assert!(left_by_editor(&folder).is_empty());
    person.types("\u{1b}[A");
    person.sees("> saved there");
    person.types("\u{3}/quit\r");
    assert_eq!(person.ends().0, 0);
}

/// Longer than a prompt that later chats have.
#[test]
fn a_long_text_that_was_saved_in_an_editor_that_fails_stays_in_its_file() {
    const BYTES: usize = 70_000;
    let folder = Folder::new();
    let script = format!("head -c {BYTES} /dev/zero | tr '\\0' x > \"$1\"; exit 1");
    let mut person = Person::start(with_editor(&folder, &script));
    person.sees("/help");
    person.types("a draft\u{18}\u{5}");
    person.sees_words("saved in the editor is in /");
    person.sees("> a draft");
    assert_eq!(left_by_editor(&folder), [vec![b'x'; BYTES]]);
    person.types("\u{3}/quit\r");
    assert_eq!(person.ends().0, 0);
}

/// The next chat has the draft that another prompt took the place of.
#[test]
fn a_draft_that_was_put_aside_is_remembered() {
    let folder = Folder::new();
    let mut person = Person::start(chat(&folder, &[]));
    person.sees("/help");
    person.types("old\r");
    person.answered("Turn 1. You said: old");
    person.types("precious draft\u{1b}[A, changed\r");
    person.answered("Turn 2. You said: old, changed");
    person.types("/quit\r");
    assert_eq!(person.ends().0, 0);
    let stored = fs::read_to_string(folder.path(".local/state/duologue/prompts.jsonl"));
    assert_eq!(stored.expect("the prompts"), "\"old\"\n\"precious draft\"\n\"old, changed\"\n");
    let mut person = Person::start(chat(&folder, &[]));
    person.sees("/help");
    person.types("\u{1b}[A\u{1b}[A");
    person.sees("> precious draft");
    person.types("\u{3}/quit\r");
    assert_eq!(person.ends().0, 0);
}

/// The editor may be used for as long as it takes: the answer goes on meanwhile.
#[test]
fn an_answer_goes_on_while_the_persons_editor_runs() {
    let folder = Folder::new();
    let script = "#!/bin/sh\necho the editor waits\nread line\nprintf 'next' > \"$1\"\n";
    fs::write(folder.path("edit"), script).expect("a file");
    fs::set_permissions(folder.path("edit"), fs::Permissions::from_mode(0o700)).expect("a mode");
    let options = ["--echo-delay-ms", "40", "--debug-events-jsonl", "frames"];
    let mut command = chat(&folder, &options);
    command.env("EDITOR", "./edit");
    let mut person = Person::start(command);
    person.sees("/help");
    person.types(&format!("{}\r", "word ".repeat(40)));
    person.sees("Turn 1.");
    person.types("\u{18}\u{5}");
    person.sees("the editor waits");
    eventually("the answer has its end", || {
        let frames = fs::read_to_string(folder.path("frames")).expect("the debug file");
        frames.contains("\"done\":{").then_some(())
    });
    person.types("\r");
    person.sees("> next");
    person.types("\r");
    person.answered("You said: next");
    person.types("/quit\r");
    assert_eq!(person.ends().0, 0);
}

/// Without marks around it, a paste is as many keys as it has characters. What is read together is drawn together.
#[test]
fn keys_that_come_together_are_drawn_together() {
    const KEYS: usize = 2_000;
    let folder = Folder::new();
    let mut person = Person::start(chat(&folder, &[]));
    person.sees("/help");
    let pictures = |person: &Person| person.bytes().matches("\u{1b}[?2026h").count();
    let before = pictures(&person);
    person.types(&format!("{}end", "x".repeat(KEYS)));
    person.sees("xend");
    let drawn = pictures(&person) - before;
    assert!(drawn < KEYS / 10, "{drawn} pictures");
    person.types("\u{3}\u{4}");
    assert_eq!(person.ends().0, 0);
}

/// A shell without job control stops nobody: the chat gives the terminal back and takes it again.
#[test]
fn a_chat_that_can_not_be_suspended_goes_on() {
    const ON: &str = "\u{1b}[?2004h\u{1b}[>5u";
    let folder = Folder::new();
    let binary = env!("CARGO_BIN_EXE_duologue");
    let words = [binary, "chat", "--engine", "echo"];
    let mut command = in_session(&folder, &words);
    command.env("HOME", folder.path(""));
    let (status, seen) = with_terminal(80, &mut command, |shown| {
        let mut seen = read_until(shown, "/help");
        shown.write_all(b"a draft\x1a").expect("it is typed");
        seen += &read_until(shown, "\u{1b}[<u");
        seen += &read_until(shown, ON);
        shown.write_all(b"\r").expect("it is typed");
        seen += &read_until(shown, "You said: a draft");
        shown.write_all(b"/quit\r").expect("it is typed");
        seen
    });
    assert_eq!(status, Some(0), "{seen:?}");
    assert_eq!(seen.matches(ON).count(), 2, "{seen:?}");
    assert_eq!(seen.matches("\u{1b}[<u").count(), 2, "{seen:?}");
}

#[test]
fn hidden_characters_of_a_call_are_seen_before_it_is_allowed() {
    let (folder, mark) = (Folder::new(), mark());
    fs::write(folder.path("servers"), config(&mark, &["echo"], &json!({}))).expect("a file");
    let call = json!({"name": "act", "arguments": {"text": "a\u{202e}b\u{200b}c\u{1b}[2J"}});
    let script = format!("{}\n{}\n", json!({"tools": [call]}), json!({"text": "Done."}));
    fs::write(folder.path("script"), script).expect("a file");
    let options = ["--mcp-config", "servers", "--echo-script", "script"];
    let mut person = Person::start(chat(&folder, &options));
    person.sees("/help");
    person.types("go\r");
    person.sees("Ctrl-G to answer");
    let shown = person.screen().text();
    assert!(
        shown.contains(
            "act of echo asks to run with {\"text\":\"a\\u{202e}b\\u{200b}c\\u001b[2J\"}"
        ),
        "{shown}"
    );
    person.types("\u{7}n");
    person.answered("Done.");
    assert!(!person.bytes().contains('\u{202e}'));
    person.types("/quit\r");
    assert_eq!(person.ends().0, 0);
    assert_gone(&mark);
}

#[test]
fn model_profile_and_system_prompt_are_chosen_and_shown() {
    let provider = Provider::start(vec![says("one"), says("two"), says("three")]);
    let base_url = provider.base_url();
    let small = format!("engine: openai\n    model: tiny\n    base-url: {base_url}\n");
    let scene = Scene::new(&format!("profiles:\n  small:\n    {small}"), "");
    let words = ["chat", "--engine", "openai", "--model", "scripted", "--base-url", &base_url];
    let mut command = scene.command(&words);
    command.env("DUOLOGUE_API_KEY", KEY);
    let mut once = Once::start(command);
    once.write("a\n/model large\n/model\nb\n/system Be brief.\n/system\nc\n/profile small\n/profile none\n");
    let ended = once.finish();
    assert_eq!(ended.status, 1, "there is no profile none: {ended:?}");
    for shown in [
        "openai · large answers from the next prompt on",
        "openai · large answers\n",
        "another conversation begins, with this system prompt\nBe brief.\n",
        "small · openai · tiny answers from the next prompt on",
        "Error: ",
    ] {
        assert!(ended.stdout.contains(shown), "{shown}: {}", ended.stdout);
    }
    let models = (1..=3).map(|number| provider.wait_request(number).body["model"].clone());
    assert_eq!(models.collect::<Vec<_>>(), [json!("scripted"), json!("large"), json!("large")]);
    let system = &provider.wait_request(3).body["messages"][0];
    assert_eq!((&system["role"], &system["content"]), (&json!("system"), &json!("Be brief.")));
}

#[test]
fn the_tools_of_servers_are_listed() {
    let (folder, mark) = (Folder::new(), mark());
    fs::write(folder.path("servers"), config(&mark, &["echo"], &json!({}))).expect("a file");
    let ended = piped(&folder, &["--mcp-config", "servers"], "hi\n/tools\n");
    assert!(ended.stdout.contains("\necho (ready)\n  act\n"), "{}", ended.stdout);
    assert_eq!(ended.status, 0);
    assert_gone(&mark);
}

#[test]
fn stores_of_turns_and_timeline_go_on_as_it_is_printed() {
    let folder = Folder::new();
    let options = ["--turns-db", "a.db", "--timeline-db", "b.db", "--session-id", "s"];
    let ended = piped(&folder, &options, "hello\n");
    let [turns, timeline] = ["a.db", "b.db"].map(|name| folder.name(name));
    let command = format!("duologue chat --turns-db {turns} --timeline-db {timeline} --session s");
    assert_eq!(ended.stderr, format!("to go on with this conversation: {command}\n"));
    let words: Vec<_> = command.split(' ').skip(2).collect();
    let ended = piped(&folder, &words, "more\n");
    assert!(ended.stdout.contains("Turn 2. You said: more"), "{}", ended.stdout);
}
