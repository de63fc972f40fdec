//! How a chat ends, and what is kept: by keys, by signals, by a defect, and with a command to go on.

use crate::chat::{Person, REPLY, chat};
use crate::mcp_servers::{MARK_VARIABLE, assert_gone, config, mark};
use crate::once::{Once, duologue};
use crate::process::{Process, eventually};
use crate::server::Folder;
use crate::vt::Vt;
use rustix::process::Signal;
use serde_json::json;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::{Duration, Instant};

const CTRL_C: &str = "\u{3}";
const UP: &str = "\u{1b}[A";

/// Longer than a chat that a signal ends waits for a terminal that takes nothing.
const STALL_TIME: Duration = Duration::from_secs(2);

/// Paragraphs of an answer that a terminal does not hold which nobody reads.
const PARAGRAPHS: usize = 1_500;

/// The command that the chat has printed to go on.
#[track_caller]
fn printed_command<'a>(screen: &'a Vt, which: &str) -> &'a str {
    let hint = format!("to go on with {which}: ");
    let (_, command) = screen.written.split_once(&hint).expect("a hint");
    command.lines().next().unwrap_or_default().trim_end()
}

/// A shell in which `duologue` is the binary of this test, with the built-in engine, and which runs
/// `line`.
fn pasted(folder: &Folder, line: &str) -> Command {
    let like = duologue(folder, &[]);
    let mut command = Command::new("bash");
    let script = format!("duologue() {{ \"$BINARY\" \"$@\" --engine echo; }}; {line}");
    command.args(["-c", &script]).current_dir(folder.path("")).env_clear();
    let variables = like.get_envs().filter_map(|(name, value)| Some((name, value?)));
    command
        .envs(variables)
        .env("BINARY", env!("CARGO_BIN_EXE_duologue"))
        .env("HOME", folder.path(""));
    command
}

/// The prompts that the next chat has, the newest last.
fn remembered(folder: &Folder) -> Vec<String> {
    let text = fs::read_to_string(folder.path(".local/state/duologue/prompts.jsonl"));
    let text = text.unwrap_or_default();
    text.lines().map(|line| serde_json::from_str(line).expect("a JSON string")).collect()
}

#[test]
fn what_is_printed_to_go_on_can_be_pasted_whatever_the_id_is() {
    for id in ["plain", "it's an id", "a\u{1b}]0;title\u{7}\nb\u{202e}c\u{9b}2J"] {
        let folder = Folder::new();
        let options = ["--store", "chat.db", "--session-id", id];
        let mut person = Person::start(chat(&folder, &options));
        person.sees("/help");
        person.types("remember me\r");
        person.answered("You said: remember me");
        person.types("/quit\r");
        let (status, screen) = person.ends();
        assert_eq!(status, 0);
        let command = printed_command(&screen, "this conversation").to_owned();
        assert!(
            !command.contains(|char: char| char.is_control() || char == '\u{202e}'),
            "{command:?}"
        );
        let mut person = Person::start(pasted(&folder, &command));
        person.answered("> remember me\n\nTurn 1. You said: remember me");
        person.types("more\r");
        person.answered("Turn 2. You said: more");
        person.types("/quit\r");
        assert_eq!(person.ends().0, 0);
    }
}

#[test]
fn leaving_names_the_conversation_in_which_something_was_said() {
    let folder = Folder::new();
    let store = |command: &mut Command| {
        command.env("DUOLOGUE_STORE", folder.path("chat.db"));
    };
    let mut command = chat(&folder, &["--session-id", "first"]);
    store(&mut command);
    let mut person = Person::start(command);
    person.sees("/help");
    person.types("hello\r");
    person.answered("You said: hello");
    // In the new one nothing is said.
    person.types("/new\r");
    person.sees("another conversation begins");
    person.types("/quit\r");
    let screen = person.ends().1;
    assert!(printed_command(&screen, "the conversation before").contains(" --session first"));
    let mut command = chat(&folder, &["-c"]);
    store(&mut command);
    let mut person = Person::start(command);
    person.answered("You said: hello");
    person.types("\u{4}");
    let screen = person.ends().1;
    assert!(printed_command(&screen, "this conversation").contains(" --session first"));
    let mut command = chat(&folder, &["-c"]);
    store(&mut command);
    let mut person = Person::start(command);
    person.answered("You said: hello");
    person.types("/fork\r");
    person.sees("stays as it was");
    person.types("/quit\r");
    let screen = person.ends().1;
    let command = printed_command(&screen, "this conversation");
    assert!(!command.contains("first") && command.contains("--store "), "{command}");
    let mut person = Person::start(chat(&folder, &["--store", "chat.db"]));
    person.sees("/help");
    person.types("/quit\r");
    assert!(!person.ends().1.written.contains("to go on"), "nothing was said");
}

/// A run that a signal cuts off was asked for, and goes on.
#[test]
fn a_conversation_whose_first_answer_was_cut_off_can_go_on() {
    let folder = Folder::new();
    let options = ["--store", "chat.db", "--session-id", "cut", "--echo-delay-ms", "60000"];
    let recorded = ["--debug-events-jsonl", "frames"];
    let mut person = Person::start(chat(&folder, &[&options[..], &recorded].concat()));
    person.sees("/help");
    person.types("hello\r");
    // Frames are shown once what they report is stored.
    eventually("the run begins", || {
        let frames = fs::read_to_string(folder.path("frames")).unwrap_or_default();
        frames.contains("ChatRunStarted").then_some(())
    });
    person.process().send(Signal::TERM);
    let (status, screen) = person.ends();
    assert_eq!(status, 143);
    assert!(printed_command(&screen, "this conversation").contains(" --session cut"));
}

/// `command` with the default action of every signal, also of those that are ignored where the tests run: a
/// signal that was ignored at the start stays ignored.
fn with_default_signals(command: &Command) -> Command {
    let mut with = Command::new("env");
    with.env_clear().arg("--default-signal").arg(command.get_program()).args(command.get_args());
    with.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    if let Some(folder) = command.get_current_dir() {
        with.current_dir(folder);
    }
    with
}

#[test]
fn a_signal_keeps_the_draft_and_the_prompts_that_wait() {
    let ending = [Signal::TERM, Signal::HUP, Signal::INT];
    let of_chats = [Signal::QUIT, Signal::ABORT, Signal::USR1, Signal::USR2];
    for (signal, screen) in
        ending.iter().chain(&of_chats).flat_map(|it| [(*it, ""), (*it, "--fullscreen")])
    {
        let folder = Folder::new();
        let options = ["--echo-delay-ms", "60000", screen];
        let options: Vec<_> = options.into_iter().filter(|it| !it.is_empty()).collect();
        let mut person = Person::start(with_default_signals(&chat(&folder, &options)));
        person.sees("/help");
        person.types("slow\r");
        person.sees("Esc stops");
        person.types("later\r");
        person.sees("waits: later");
        person.types("a draft\u{1b}\rof two lines");
        person.sees("of two lines");
        person.process().send(signal);
        let (status, shown) = person.ends();
        assert_eq!(status, 128 + signal.as_raw());
        // The live region is gone, and the modes of the terminal were compared.
        assert!(!shown.text().contains("/help"), "{signal:?} {screen}: {}", shown.text());
        let expected = ["slow", "later", "a draft\nof two lines"];
        assert_eq!(remembered(&folder), expected, "{signal:?}");
        let mut person = Person::start(chat(&folder, &[]));
        person.sees("/help");
        person.types(UP);
        person.sees("> a draft\n  of two lines");
        person.types(&format!("{UP}{UP}"));
        person.sees("> later");
        person.types("\u{3}/quit\r");
        assert_eq!(person.ends().0, 0);
    }
}

/// As behind a connection that hangs: what is drawn must not hold up the end.
#[test]
fn a_signal_ends_a_chat_whose_terminal_takes_nothing() {
    for (signal, expected) in [(Signal::TERM, 143), (Signal::HUP, 129)] {
        let folder = Folder::new();
        let person = Person::unread(with_default_signals(&answering_at_length(&folder)));
        person.fills_terminal();
        person.process().send(signal);
        assert_eq!(person.ends_unread(), expected);
    }
}

/// A chat whose first answer has all [`PARAGRAPHS`].
fn answering_at_length(folder: &Folder) -> Command {
    let paragraphs = (0..PARAGRAPHS).map(|n| format!("Paragraph {n} of an answer.\n\n"));
    fs::write(folder.path("answer"), paragraphs.collect::<String>()).expect("a file");
    chat(folder, &["--echo-answer", "answer", "go"])
}

/// A chat at a terminal that takes nothing for a while from when it is full and these keys are typed.
#[track_caller]
fn stalls(command: Command, keys: &str) -> Person {
    let mut person = Person::unread(command);
    person.fills_terminal();
    person.types(keys);
    let typed = Instant::now();
    eventually("time has passed", || (typed.elapsed() > STALL_TIME).then_some(()));
    person.reads();
    person
}

/// The chat goes on: it has shown all of the answer, and gave the terminal back before this was written.
#[track_caller]
fn has_lost_nothing(mut person: Person, written: &str) {
    person.answered(&format!("Paragraph {} of an answer.", PARAGRAPHS - 1));
    let (bytes, text) = (person.bytes(), person.screen().text());
    let lost: Vec<_> =
        (0..PARAGRAPHS).filter(|n| !text.contains(&format!("Paragraph {n} of"))).collect();
    assert_eq!(lost, [0; 0]);
    let (_, taken) = bytes.split_once(KEYS_ON).expect("the modes of the chat");
    let (before, _) = taken.split_once(written).expect("what is written after them");
    assert!(before.contains(KEYS_OFF), "{before:?}");
    person.types("/quit\r");
    assert_eq!(person.ends().0, 0);
}

/// Keys with all their modifiers (kitty), and their end.
const KEYS_ON: &str = "\u{1b}[>5u";
const KEYS_OFF: &str = "\u{1b}[<u";

#[test]
fn a_terminal_that_takes_nothing_for_a_while_gets_all_before_the_editor_has_it() {
    let folder = Folder::new();
    let mut command = answering_at_length(&folder);
    command.env("EDITOR", "echo the editor is here; :");
    has_lost_nothing(stalls(command, "\u{18}\u{5}"), "the editor is here");
}

#[test]
fn a_terminal_that_takes_nothing_for_a_while_gets_all_before_the_chat_is_suspended() {
    let folder = Folder::new();
    let mut command = answering_at_length(&folder);
    // The whole group is stopped.
    command.process_group(0);
    let person = stalls(command, "\u{1a}");
    eventually("the chat has the terminal again", || {
        if person.process().is_stopped() {
            person.process().send(Signal::CONT);
        }
        (person.bytes().matches(KEYS_ON).count() > 1).then_some(())
    });
    has_lost_nothing(person, KEYS_ON);
}

/// `ends` looks at the modes.
#[test]
fn a_terminal_that_takes_nothing_for_a_while_is_as_it_was_when_a_person_leaves() {
    let folder = Folder::new();
    let person = stalls(answering_at_length(&folder), "/quit\r");
    let (status, screen) = person.ends();
    assert_eq!(status, 0);
    assert!(screen.text().contains("Paragraph 99 of an answer."), "{}", screen.text());
}

/// More bytes than are shown of an answer before it is complete.
const SHOWN_BYTES: usize = 50_000;

/// Longer than a chat that a person leaves handles a key and draws, and shorter than it waits for a reply.
const SLOW_TIME: Duration = Duration::from_millis(500);

#[track_caller]
fn is_slow() {
    let since = Instant::now();
    eventually("time has passed", || (since.elapsed() > SLOW_TIME).then_some(()));
}

/// Another program would read the reply as keys.
#[test]
fn a_slow_terminal_is_given_back_once_it_has_replied() {
    let folder = Folder::new();
    let lines = "a line of an answer\n\n".repeat(8 * PARAGRAPHS);
    fs::write(folder.path("answer"), lines).expect("a file");
    let mut person = Person::unread(chat(&folder, &["--echo-answer", "answer", "go"]));
    let replies = person.replies(SHOWN_BYTES);
    // The next query is behind the answer.
    person.fills_terminal();
    person.types("/quit\r");
    is_slow();
    person.reads();
    eventually("the terminal has the query", || (person.queries() > replies).then_some(()));
    is_slow();
    person.types(REPLY);
    let (status, screen) = person.ends();
    assert_eq!(status, 0);
    // A terminal that was given back echoes what is typed.
    assert!(!screen.written.contains("^["), "the shell was given the reply");
}

#[test]
fn ctrl_c_clears_stops_and_leaves_one_after_the_other() {
    let folder = Folder::new();
    let mut person = Person::start(chat(&folder, &["--echo-delay-ms", "60000"]));
    person.sees("/help");
    person.types("slow\r");
    person.sees("Esc stops");
    person.types("a draft");
    person.sees("> a draft");
    person.types(CTRL_C);
    person.sees("the up key brings the text back; Ctrl-C again stops the answer");
    person.types(CTRL_C);
    person.sees("· stopped");
    person.sees("not stored · /help");
    person.types(CTRL_C);
    person.sees("press Ctrl-C again to leave");
    person.types(CTRL_C);
    assert_eq!(person.ends().0, 0);
    assert_eq!(remembered(&folder), ["slow", "a draft"]);
}

/// The picture is removed, and one line says what that means for the conversation.
#[cfg(debug_assertions)]
#[test]
fn a_defect_in_the_chat_restores_the_terminal_and_says_what_is_kept() {
    let stored = ["--store", "chat.db", "--session-id", "kept"];
    for (options, kept) in [
        (&stored[..], "the conversation is stored; to go on with it: duologue chat --store /"),
        (&[], "the conversation was not stored, so it is lost but for what the terminal shows"),
    ] {
        let folder = Folder::new();
        let mut command = chat(&folder, options);
        command.env("DUOLOGUE_FAULT", "draw:200");
        let mut person = Person::start(command);
        person.sees("/help");
        person.types("hello\r");
        person.answered("You said: hello");
        person.types_one_by_one('x', 200);
        let (status, screen) = person.ends();
        assert_eq!(status, 70);
        // However the terminal wraps it.
        let letters = |text: &str| text.split_whitespace().collect::<String>();
        let text = letters(&screen.text());
        for shown in ["the chat met a defect of this program", "planted fault (src/", kept] {
            assert!(text.contains(&letters(shown)), "{shown}: {text}");
        }
        assert!(text.contains("Yousaid:hello") && !text.contains("/help"), "{text}");
        let kept = remembered(&folder);
        assert!(kept.last().is_some_and(|draft| draft.starts_with("xxx")), "{kept:?}");
    }
}

/// The conversation can't go on; the chat says so, and how to go on in another.
#[cfg(debug_assertions)]
#[test]
fn a_defect_in_the_conversation_ends_the_chat_which_says_how_to_go_on() {
    let folder = Folder::new();
    let mut command = chat(&folder, &["--store", "chat.db", "--session-id", "kept"]);
    command.env("DUOLOGUE_FAULT", "project:20");
    let mut person = Person::start(command);
    person.sees("/help");
    person.types("hello\r");
    person.answered("You said: hello");
    person.types("again\r");
    let (status, screen) = person.ends();
    assert_eq!(status, 70);
    let letters = |text: &str| text.split_whitespace().collect::<String>();
    let text = letters(&screen.text());
    for shown in
        ["met a defect of this program and was ended", "to go on with this conversation: duologue"]
    {
        assert!(text.contains(&letters(shown)), "{shown}: {text}");
    }
    assert!(!text.contains("/help"), "{text}");
}

/// The screen on which it was said is gone then.
#[test]
fn a_chat_on_the_whole_screen_that_can_not_begin_says_why() {
    let folder = Folder::new();
    fs::write(folder.path("corrupt.db"), "no database").expect("a file");
    let missing = ["--store", "chat.db", "--session-id", "nope", "--resume"];
    for (options, why) in [
        (&missing[..], "the session nope is not in the store"),
        (&["--store", "corrupt.db"], "corrupt.db"),
    ] {
        let options = [options, &["--fullscreen"]].concat();
        let (status, screen) = Person::start(chat(&folder, &options)).ends();
        assert_eq!(status, 2, "{options:?}");
        // However the terminal wraps it.
        let letters = |text: &str| text.split_whitespace().collect::<String>();
        let text = letters(&screen.text());
        assert!(text.contains(&letters(why)), "{options:?}: {text}");
    }
}

/// A conversation that is lost is said to be lost where it can be read.
#[cfg(debug_assertions)]
#[test]
fn a_store_that_has_failed_is_named_when_the_whole_screen_is_gone() {
    let folder = Folder::new();
    let mut command = chat(&folder, &["--store", "chat.db", "--fullscreen"]);
    command.env("DUOLOGUE_FAULT", "persist:1");
    let mut person = Person::start(command);
    person.sees("/help");
    person.types("hello\r");
    person.sees_words("is not stored any more");
    person.answered("You said: hello");
    person.types("/quit\r");
    let (status, screen) = person.ends();
    assert_eq!(status, 0);
    let letters = screen.text().split_whitespace().collect::<String>();
    assert!(letters.contains("isnotstoredanymore"), "{}", screen.text());
}

#[cfg(debug_assertions)]
#[test]
fn a_defect_without_a_terminal_is_a_failure_that_says_so() {
    let folder = Folder::new();
    let mut command = chat(&folder, &["--echo-delay-ms", "50"]);
    command.env("DUOLOGUE_FAULT", "draw:1");
    let mut once = Once::start(command);
    once.write("hello\nmore\n");
    let ended = once.finish();
    assert_eq!(ended.status, 70);
    assert!(ended.stderr.contains("the chat met a defect of this program"), "{}", ended.stderr);
}

#[test]
fn a_tool_whose_process_is_killed_leaves_chat_and_terminal_as_they_were() {
    let (folder, mark) = (Folder::new(), mark());
    fs::write(folder.path("servers"), config(&mark, &["nothing"], &json!({}))).expect("a file");
    let call = json!({"name": "act", "arguments": {"text": "nothing"}});
    let script = format!("{}\n{}\n", json!({"tools": [call]}), json!({"text": "Done."}));
    fs::write(folder.path("script"), script).expect("a file");
    let options = ["--mcp-config", "servers", "--echo-script", "script", "--allow", "act"];
    let mut person = Person::start(chat(&folder, &options));
    person.sees("/help");
    person.types("go\r");
    person.sees("running tools");
    let servers = Process::marked(&format!("{MARK_VARIABLE}={mark}"));
    assert!(!servers.is_empty());
    servers.into_iter().for_each(|server| server.send(Signal::KILL));
    person.answered("Done.");
    person.types("/quit\r");
    let (status, screen) = person.ends();
    assert_eq!(status, 0);
    assert!(screen.text().contains("✗ act"), "{}", screen.text());
    assert_gone(&mark);
}

#[test]
fn a_paste_without_an_end_is_shown_and_ends() {
    let folder = Folder::new();
    let mut person = Person::start(chat(&folder, &[]));
    person.sees("/help");
    person.types("\u{1b}[200~some text");
    person.sees("pasting… 9 bytes so far · Esc ends it");
    person.sees("> some text");
    person.types("\r");
    person.answered("You said: some text");
    person.types("/quit\r");
    assert_eq!(person.ends().0, 0);
}

/// The editor ends with the chat, also where a shell waits for it.
#[test]
fn a_signal_keeps_what_was_saved_in_the_persons_editor() {
    for editor in ["./edit", "true && ./edit"] {
        let folder = Folder::new();
        let script = "#!/bin/sh\nprintf 'saved there\\n' > \"$1\"\necho $$ > pid\necho the editor waits\n\
                      read line\n";
        fs::write(folder.path("edit"), script).expect("a file");
        fs::set_permissions(folder.path("edit"), Permissions::from_mode(0o700)).expect("a mode");
        fs::create_dir(folder.path("temporary")).expect("a folder");
        let mut command = chat(&folder, &[]);
        command.env("EDITOR", editor).env("TMPDIR", folder.path("temporary"));
        let mut person = Person::start(with_default_signals(&command));
        person.sees("/help");
        person.types("a draft\u{18}\u{5}");
        person.sees("the editor waits");
        person.process().send(Signal::TERM);
        assert_eq!(person.ends().0, 143, "{editor}");
        assert_eq!(remembered(&folder), ["a draft", "saved there"], "{editor}");
        let pid = fs::read_to_string(folder.path("pid")).expect("a number");
        let process = Process(pid.trim().parse().expect("a number"));
        eventually("the editor has ended", || process.command_line().is_empty().then_some(()));
        let left = fs::read_dir(folder.path("temporary")).expect("a folder").count();
        assert_eq!(left, 0, "{editor}");
    }
}

#[test]
fn the_newest_prompts_are_remembered_where_there_are_too_many() {
    let folder = Folder::new();
    let path = folder.path(".local/state/duologue/prompts.jsonl");
    fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
    let long = (0..80).map(|number| format!("{number} {}", "x".repeat(60_000)));
    let prompts = long.chain(["the newest".to_owned()]);
    let lines: String = prompts.map(|prompt| format!("{}\n", json!(prompt))).collect();
    fs::write(&path, lines).expect("a file");
    let mut person = Person::start(chat(&folder, &[]));
    person.sees("/help");
    person.types(UP);
    person.sees("> the newest");
    person.types("\u{3}/quit\r");
    assert_eq!(person.ends().0, 0);
    let left = remembered(&folder);
    assert_eq!(left.last().map(String::as_str), Some("the newest"));
    assert!(left[0].starts_with("11 "), "{}", &left[0][..10]);
}
