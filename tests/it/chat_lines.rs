//! Chats over a pipe: each line is handled when what was asked before it has ended.

use crate::chat::{Person, chat};
use crate::frames::Frame;
use crate::mcp_servers::{assert_gone, config, mark};
use crate::once::{Ended, Once, duologue};
use crate::process::eventually;
use crate::provider::{Provider, Step, says};
use crate::server::{Folder, KEY};
use crate::tools::run;
use serde_json::json;
use std::fs;

pub(crate) fn piped(folder: &Folder, options: &[&str], lines: &str) -> Ended {
    let mut once = Once::start(chat(folder, options));
    once.write(lines);
    once.finish()
}

#[test]
fn a_command_waits_for_the_answer_before_it() {
    let folder = Folder::new();
    let lines = "hi\n/save one\nmore\n/save two\n/export all.md\n";
    let ended = piped(&folder, &["--echo-delay-ms", "5"], lines);
    assert_eq!((ended.status, ended.stderr.as_str()), (0, ""));
    let read = |name| fs::read_to_string(folder.path(name)).expect("a file");
    assert_eq!(read("one"), "Turn 1. You said: hi\n");
    assert!(read("two").starts_with("Turn 2. You said: more"));
    assert_eq!(read("all.md").matches("## You").count(), 2);
    let expected = "\
You: hi

Turn 1. You said: hi

one was written

You: more
";
    assert!(ended.stdout.starts_with(expected), "{}", ended.stdout);
}

/// What was said and can't be written is no success, also where that is found at the very end.
#[test]
fn a_full_disk_is_a_failure() {
    for options in [&[][..], &["--plain"], &["--echo-delay-ms", "5"]] {
        let folder = Folder::new();
        fs::write(folder.path("lines"), "hi\nmore\n").expect("a file");
        let mut command = chat(&folder, options);
        command.stdin(fs::File::open(folder.path("lines")).expect("a file"));
        let full = fs::File::options().write(true).open("/dev/full").expect("Linux has it");
        let ended = command.stdout(full).output().expect("it ends");
        let stderr = String::from_utf8_lossy(&ended.stderr);
        assert_eq!(ended.status.code(), Some(74), "{options:?}: {stderr}");
        assert!(stderr.contains("No space left on device"), "{options:?}: {stderr}");
    }
}

#[test]
fn plain_lines_follow_the_width_of_the_terminal() {
    let folder = Folder::new();
    let mut person = Person::sized(chat(&folder, &["--plain"]), 100, 24);
    let prompt = format!("{}\r", ["word"; 30].join(" "));
    // The widest line of an answer, from the end of its first words on.
    let widest = |person: &Person, start: &str, until: &str| {
        eventually(&format!("{start} is answered"), || {
            let shown = person.bytes();
            let (_, answer) = shown.split_once(start)?;
            let (answer, _) = answer.split_once(until)?;
            answer.lines().map(str::len).max()
        })
    };
    person.types(&prompt);
    let wide = widest(&person, "Turn 1. You said: ", "\n");
    assert!(wide > 40, "{wide}");
    person.resizes(40, 24);
    person.types(&prompt);
    let narrow = widest(&person, "Turn 2. You said: ", "Before that");
    assert!(narrow <= 40, "{narrow}");
    person.types("/quit\r");
    assert_eq!(person.ends().0, 0);
}

#[test]
fn input_that_can_not_be_read_is_a_failure() {
    let folder = Folder::new();
    let mut command = chat(&folder, &["hello"]);
    command.stdin(fs::File::open(folder.path("")).expect("a folder"));
    let ended = command.output().expect("it ends");
    let stdout = String::from_utf8_lossy(&ended.stdout);
    assert_eq!(ended.status.code(), Some(1), "{ended:?}");
    assert!(stdout.contains("Turn 1. You said: hello"), "{stdout}");
    assert!(stdout.contains("standard input could not be read"), "{stdout}");
    assert_eq!(stdout.matches("Is a directory").count(), 1, "{stdout}");
}

#[test]
fn two_slashes_begin_a_prompt_with_one() {
    let folder = Folder::new();
    let ended = piped(&folder, &[], "//usr is a folder\n");
    assert!(ended.stdout.contains("You said: /usr is a folder"), "{}", ended.stdout);
}

#[test]
fn quit_ends_a_file_after_the_answers_before_it() {
    let folder = Folder::new();
    let ended = piped(&folder, &["--echo-delay-ms", "5"], "one\n/quit\ntwo\n");
    assert_eq!(ended.status, 0);
    assert!(ended.stdout.ends_with("Turn 1. You said: one\n"), "{}", ended.stdout);
}

#[test]
fn the_prompt_of_the_command_line_begins_a_stored_conversation() {
    for options in [&["--store", "chat.db"][..], &["--store", "chat.db", "--session-id", "named"]] {
        let folder = Folder::new();
        fs::write(folder.path("notes.txt"), "some notes").expect("a file");
        let first = ["first of all", "--attach", "notes.txt", "--debug-events-jsonl", "frames"];
        let ended = piped(&folder, &[options, &first].concat(), "then this\n");
        assert_eq!(ended.status, 0, "{ended:?}");
        let (first, second) = ("Turn 1. You said: first of all", "Turn 2. You said: then this");
        let (before, _) = ended.stdout.split_once(second).expect("a second answer");
        assert!(before.contains(first), "{options:?}: {}", ended.stdout);
        let frames = fs::read_to_string(folder.path("frames")).expect("the frames");
        assert!(frames.contains("notes.txt"), "{frames}");

        let mut person = Person::start(chat(&folder, &["--store", "other.db", "a first prompt"]));
        person.answered("Turn 1. You said: a first prompt");
        person.types("/quit\r");
        assert_eq!(person.ends().0, 0);
    }
}

#[test]
fn a_line_waits_for_a_conversation_that_is_loaded_or_opened() {
    let folder = Folder::new();
    let store = ["--store", "chat.db", "--session-id", "kept"];
    assert_eq!(piped(&folder, &store, "remember me\n").status, 0);
    let lines = "/save answer\n/new\nnew here\n/resume kept\nback\n";
    let ended = piped(&folder, &[&store[..], &["--resume"]].concat(), lines);
    assert_eq!(ended.status, 0, "{ended:?}");
    let saved = fs::read_to_string(folder.path("answer")).expect("the file");
    assert_eq!(saved, "Turn 1. You said: remember me\n");
    assert!(ended.stdout.contains("Turn 1. You said: new here"), "{}", ended.stdout);
    assert!(ended.stdout.contains("Turn 2. You said: back"), "{}", ended.stdout);
}

#[test]
fn help_is_about_lines() {
    let help = piped(&Folder::new(), &[], "/help\n").stdout;
    for word in ["/allow", "/always", "/deny", "/stop", "/quit"] {
        assert!(help.contains(&format!("\n  {word}")), "{word}: {help}");
    }
    assert!(!help.contains("Ctrl-"), "{help}");
}

#[test]
fn calls_are_asked_about_one_after_the_other() {
    let (folder, mark) = (Folder::new(), mark());
    fs::write(folder.path("servers"), config(&mark, &["echo"], &json!({}))).expect("a file");
    let call = |text: &str| json!({"name": "act", "arguments": {"text": text}});
    let calls = json!({"tools": [call("first"), call("second \u{202e}x")]});
    fs::write(folder.path("script"), format!("{calls}\n{}\n", json!({"text": "Done."})))
        .expect("a file");
    let options = ["--mcp-config", "servers", "--echo-script", "script"];
    let ended = piped(&folder, &options, "go\n/allow\n/deny\n");
    let at =
        |text: &str| ended.stdout.find(text).unwrap_or_else(|| panic!("{text}: {}", ended.stdout));
    let order = [
        at(r#"May act of echo run with {"text":"first"}?"#),
        at("act: allowed"),
        // The text would be shown in another order than it is sent.
        at(r#"May act of echo run with {"text":"second \u{202e}x"}?"#),
        at("act: denied"),
        at("Done."),
    ];
    assert!(order.is_sorted(), "{}", ended.stdout);
    assert!(!ended.stdout.contains('\u{202e}'));
    assert_eq!(ended.status, 0);
    assert_gone(&mark);
}

#[test]
fn a_question_that_nobody_can_answer_is_denied() {
    let (folder, mark) = (Folder::new(), mark());
    fs::write(folder.path("servers"), config(&mark, &["echo"], &json!({}))).expect("a file");
    let calls = json!({"tools": [{"name": "act", "arguments": {"text": "x"}}]});
    fs::write(folder.path("script"), format!("{calls}\n{}\n", json!({"text": "Done."})))
        .expect("a file");
    let options = ["--mcp-config", "servers", "--echo-script", "script"];
    let ended = piped(&folder, &options, "go\nmore\n");
    assert!(ended.stdout.contains("nobody can answer"), "{}", ended.stdout);
    assert!(ended.stdout.contains("You: more"), "{}", ended.stdout);
    assert_eq!(ended.status, 0);
    assert_gone(&mark);
}

#[test]
fn a_file_is_attached_whatever_stands_after_its_name() {
    let folder = Folder::new();
    for name in ["photo.png", "my photo.png", "what?"] {
        fs::write(folder.path(name), b"\x89PNG\r\n\x1a\n").expect("a file");
    }
    let check = |prompt: &str, attached: &[&str]| {
        let stdout = piped(&folder, &[], &format!("{prompt}\n")).stdout;
        let names = stdout.lines().filter_map(|line| line.trim().strip_prefix("attached: "));
        assert_eq!(names.collect::<Vec<_>>(), attached, "{prompt}: {stdout}");
    };
    for after in ["?", ",", ".", ":", ";", "!", ")", "\"", "'", "?!", ".)"] {
        check(&format!("What is in @photo.png{after} Tell me"), &["photo.png"]);
    }
    check("What is (@photo.png), and \"@my\" \"@photo.png\"?", &["photo.png", "photo.png"]);
    check("And @\"my photo.png\"?", &["my photo.png"]);
    check("The name itself: @what?", &["what?"]);
    check("me@photo.png @photo.pn", &[]);
}

#[test]
fn a_prompt_that_was_not_answered_is_in_the_exit_status() {
    let folder = Folder::new();
    let provider = Provider::start(vec![refused(400, "no"), says("Hello.")]);
    let mut once = Once::start(with_provider(&folder, &provider));
    once.write("hi\nagain\n");
    let ended = once.finish();
    assert!(ended.stdout.contains("Hello."), "the lines after it are asked: {}", ended.stdout);
    assert_eq!((ended.status, ended.stderr.as_str()), (1, ""));
}

#[test]
fn a_command_that_fails_is_in_the_exit_status() {
    let folder = Folder::new();
    fs::write(folder.path("there"), "mine").expect("a file");
    for wrong in ["/save there", "/bogus", "/rename", "/undo abc", "/mcp restart nope", "/fork"] {
        let ended = piped(&folder, &[], &format!("hi\n{wrong}\n"));
        assert!(ended.stdout.contains("Turn 1. You said: hi"), "{wrong}: {ended:?}");
        assert!(ended.stdout.contains("\nError: "), "{wrong}: {ended:?}");
        assert_eq!((ended.status, ended.stderr.as_str()), (1, ""), "{wrong}: {ended:?}");
    }
    assert_eq!(fs::read_to_string(folder.path("there")).expect("a file"), "mine");
}

/// What was meant for another provider is sent to nobody.
#[test]
fn nothing_is_asked_after_a_choice_that_fails() {
    for wrong in ["/profile wrok", "/resume wrok", "/fork"] {
        let folder = Folder::new();
        let provider = Provider::start(vec![says("Hello.")]);
        let mut once = Once::start(with_provider(&folder, &provider));
        once.write(&format!("{wrong}\nsecret question\nand more\n"));
        let ended = once.finish();
        assert_eq!((ended.status, provider.requests()), (1, 0), "{wrong}: {ended:?}");
        assert!(ended.stdout.contains("nothing after this line is read"), "{wrong}: {ended:?}");
    }
}

fn with_provider(folder: &Folder, provider: &Provider) -> std::process::Command {
    let base_url = provider.base_url();
    let words = ["chat", "--engine", "openai", "--model", "scripted", "--base-url", &base_url];
    let mut command = duologue(folder, &words);
    command.env("DUOLOGUE_API_KEY", KEY).env("HOME", folder.path(""));
    command
}

#[test]
fn a_prompt_waits_for_a_tool_server_that_is_started_again() {
    let (folder, mark) = (Folder::new(), mark());
    fs::write(folder.path("servers"), config(&mark, &["echo"], &json!({}))).expect("a file");
    let provider = Provider::start(vec![says("One."), says("Two.")]);
    let mut command = with_provider(&folder, &provider);
    command.args(["--mcp-config", "servers"]);
    let mut once = Once::start(command);
    once.write("one\n/mcp restart echo\ntwo\n");
    let ended = once.finish();
    assert_eq!(ended.status, 0, "{ended:?}");
    assert!(!ended.stdout.contains("is gone"), "{}", ended.stdout);
    let tools = |number| provider.wait_request(number).body["tools"].clone();
    assert_eq!(tools(1), tools(2));
    assert!(tools(2).is_array());
    assert_gone(&mark);
}

fn refused(status: u16, body: &str) -> Vec<Step> {
    vec![Step::Status(status, vec![("retry-after", "1".to_owned())], body.to_owned())]
}

#[test]
fn a_retry_is_one_line_and_nothing_else() {
    let folder = Folder::new();
    let provider = Provider::start(vec![refused(503, "busy"), says("Hello.")]);
    let mut once = Once::start(with_provider(&folder, &provider));
    once.write("hi\n");
    let ended = once.finish();
    // The wait is a second and a bit: chance is added to what the provider requests.
    let retries = ended.stdout.lines().filter(|it| it.starts_with("retrying in "));
    assert_eq!(retries.count(), 1, "{}", ended.stdout);
    assert!(ended.stdout.contains("Hello."), "{}", ended.stdout);
    assert_eq!((ended.status, ended.stderr.as_str()), (0, ""));
}

#[test]
fn a_log_file_has_the_retries() {
    let folder = Folder::new();
    let provider = Provider::start(vec![refused(503, "busy"), says("Hello.")]);
    let mut command = with_provider(&folder, &provider);
    command.args(["--log-file", "log"]);
    let mut once = Once::start(command);
    once.write("hi\n");
    assert_eq!(once.finish().status, 0);
    let log = fs::read_to_string(folder.path("log")).expect("the log");
    assert!(log.contains("attempt 1 of"), "{log}");
}

#[test]
fn a_server_that_can_not_be_started_is_reported_once() {
    let folder = Folder::new();
    let servers = json!({"mcpServers": {"broken": {"command": "/no/such/program"}}});
    fs::write(folder.path("servers"), servers.to_string()).expect("a file");
    let ended = piped(&folder, &["--mcp-config", "servers"], "hi\n");
    let all = format!("{}{}", ended.stdout, ended.stderr);
    assert_eq!(all.matches("/no/such/program").count(), 1, "{all}");
    assert!(ended.stdout.contains("tool server broken is unavailable"), "{all}");
}

/// The chat uses extensions that nobody named. A client of the published protocol reads its debug file.
#[test]
fn the_debug_file_has_only_extensions_that_were_named() {
    let lines = "one\n/undo\n/model other\ntwo\n";
    let debug = |extensions: &[&str]| {
        let folder = Folder::new();
        let options = [&["--debug-events-jsonl", "frames.jsonl"][..], extensions].concat();
        assert_eq!(piped(&folder, &options, lines).status, 0);
        let file = fs::read_to_string(folder.path("frames.jsonl")).expect("the debug file");
        let checked = run(&["check"], file.as_bytes());
        assert!(checked.status.success(), "{checked:?}\n{file}");
        let frames: Vec<Frame> = file.lines().map(|line| Frame::parse(line.as_bytes())).collect();
        frames
    };
    let names = |frame: &Frame| frame.0["hello"]["capabilities"].to_string();
    let frames = debug(&[]);
    for word in ["edit", "queue", "usage", "switch-model"] {
        assert!(!names(&frames[0]).contains(&format!("{word:?}")), "{:?}", frames[0]);
    }
    assert_eq!(frames[1].0["snapshot"], json!({}), "the state before the first prompt");
    assert_eq!(frames[1].0.get("requestId"), None);
    let is_of_extension = |frame: &&Frame| frame.0.to_string().contains("duologue.");
    assert_eq!(frames.iter().find(is_of_extension), None);
    assert_eq!(frames.iter().filter(|frame| frame.is_event("ChatRunFinished")).count(), 2);

    let frames = debug(&["--extensions", "edit,usage"]);
    assert!(names(&frames[0]).contains("\"edit\""), "{:?}", frames[0]);
    for (name, count) in [("TurnDropped", 1), ("UsageTotals", 2), ("ModelSwitched", 0)] {
        assert_eq!(frames.iter().filter(|frame| frame.is_event(name)).count(), count, "{name}");
    }
}

/// A client reads one conversation in a file.
#[test]
fn each_conversation_of_a_chat_has_a_debug_file_of_its_own() {
    let folder = Folder::new();
    fs::write(folder.path("frames-2.jsonl"), "mine").expect("a file");
    let lines = "one\n/new\ntwo\n/new\n/undo\nthree\n/fork\nfour\n";
    let options = ["--debug-events-jsonl", "frames.jsonl", "--store", "store"];
    let ended = piped(&folder, &options, lines);
    assert_eq!(ended.status, 1, "there is nothing to undo: {ended:?}");
    let read = |name: &str| fs::read_to_string(folder.path(name)).expect(name);
    assert_eq!(read("frames-2.jsonl"), "mine");
    let names = ["frames.jsonl", "frames-3.jsonl", "frames-4.jsonl", "frames-5.jsonl"];
    for (name, prompts) in names.into_iter().zip([&["one"][..], &["two"], &["three"], &["four"]]) {
        let file = read(name);
        let checked = run(&["check"], file.as_bytes());
        assert!(checked.status.success(), "{checked:?}\n{file}");
        let frames: Vec<Frame> = file.lines().map(|line| Frame::parse(line.as_bytes())).collect();
        let accepted = frames.iter().filter(|frame| frame.is_event("ChatUserMessageAccepted"));
        let accepted: Vec<_> = accepted.map(|frame| frame.payload("text")).collect();
        assert_eq!(accepted, prompts, "{name}");
        let line = format!("are copied to {name}");
        let is_said = format!("{}{}", ended.stdout, ended.stderr).matches(&line).count();
        assert_eq!(is_said, usize::from(name != names[0]), "{ended:?}");
    }
    assert!(!folder.path("frames-6.jsonl").exists());
}

/// The terminal has shown what was typed there, and nothing else.
#[test]
fn prompts_that_nobody_has_typed_are_printed_at_a_terminal_too() {
    let folder = Folder::new();
    fs::write(folder.path("notes.txt"), "text").expect("a file");
    let store = ["--store", "chat.db", "--session-id", "kept"];
    assert_eq!(piped(&folder, &store, "remember me\n").status, 0);
    let options = [&store[..], &["--plain", "--resume", "of the command line"]].concat();
    let mut person = Person::start(chat(&folder, &options));
    person.sees("You: remember me");
    person.sees("You: of the command line");
    person.sees("Turn 2. You said: of the command line");
    person.types("typed with @notes.txt\n");
    person.sees("typed with @notes.txt\n  attached: notes.txt\n");
    person.sees_words("Turn 3. You said: typed with @notes.txt");
    assert!(!person.bytes().contains("You: typed"), "{}", person.bytes());
    person.types("/retry\n");
    person.sees("You: typed with @notes.txt");
    person.types("\u{4}");
    assert_eq!(person.ends().0, 0);
}

/// A terminal that edits lines hands over 4,095 bytes of one.
#[cfg(target_os = "linux")]
#[test]
fn a_line_whose_end_the_terminal_has_lost_is_not_sent() {
    let folder = Folder::new();
    let mut person = Person::start(chat(&folder, &["--plain"]));
    let line = |char: &str, count: usize| format!("{}\n", char.repeat(count));
    person.types(&line("x", 6_000));
    person.sees_words("Error: the line was not sent, as its end is lost");
    person.types(&line("y", 4_094));
    person.sees_words("Turn 1. You said: y");
    // Programs send a long line in parts, each with Ctrl-D after it.
    person.types(&format!("{}\u{4}{}", "z".repeat(3_000), line("z", 3_000)));
    person.sees_words("Turn 2. You said: z");
    person.types("\u{4}");
    assert_eq!(person.ends().0, 0);
}
