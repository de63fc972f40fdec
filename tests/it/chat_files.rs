//! Chats without a terminal, and command files that begin one.

use crate::chat::{Person, chat};
use crate::chat_lines::piped;
use crate::once::{Once, duologue};
use crate::process::eventually;
use crate::server::Folder;
use crate::tools::run;
use std::fs;

#[test]
fn without_a_terminal_lines_are_asked_in_turn() {
    let folder = Folder::new();
    let ended = piped(&folder, &[], "one\n\ntwo\n/dance\n");
    let expected = "\
You: one

Turn 1. You said: one

You: two

Turn 2. You said: two
Before that you said: one

Error: there is no command /dance; /help lists the commands
";
    assert_eq!(ended.stdout, expected);
    assert_eq!((ended.status, ended.stderr.as_str()), (1, ""), "there is no such command");
}

#[test]
fn what_the_chat_receives_is_recorded() {
    let folder = Folder::new();
    let ended = piped(&folder, &["--debug-events-jsonl", "events"], "hello\n");
    assert_eq!(ended.status, 0);
    let events = fs::read_to_string(folder.path("events")).expect("the file");
    assert!(events.starts_with("{\"version\":1,") && events.contains("\"hello\":"), "{events}");
    for name in ["ChatUserMessageAccepted", "ChatTextPatch", "ChatRunFinished"] {
        assert!(events.contains(&format!("\"name\":\"{name}\"")), "{name}");
    }
}

#[test]
fn a_terminal_that_knows_no_escapes_and_a_screen_reader_get_none() {
    let folder = Folder::new();
    for (term, options) in [("dumb", &[][..]), ("xterm", &["--plain"])] {
        let mut command = chat(&folder, options);
        command.env("TERM", term);
        let mut person = Person::start(command);
        person.types("hello\n");
        person.sees("Turn 1. You said: hello");
        person.types("\u{4}");
        let bytes = person.bytes();
        assert!(!bytes.contains('\u{1b}'), "{bytes:?}");
        let (status, screen) = person.ends();
        assert_eq!(status, 0);
        assert!(!screen.text().contains("You: hello"), "the terminal has shown it already");
    }
}

#[test]
fn without_colours_there_are_attributes_only() {
    let folder = Folder::new();
    let mut command = chat(&folder, &["hello"]);
    command.env("NO_COLOR", "1");
    let mut person = Person::start(command);
    person.answered("You said: hello");
    person.types("/quit\r");
    let bytes = person.bytes();
    assert!(!bytes.contains("\u{1b}[0;3") && !bytes.contains(";38;"), "{bytes:?}");
    assert_eq!(person.ends().0, 0);
}

const COMMAND_FILE: &str = "name: ask\nshort: Ask\nprompt: Explain ports.\n";

/// An answer of a chat is for a person.
#[test]
fn a_chat_says_that_the_answer_need_not_match_a_schema() {
    let folder = Folder::new();
    let said = |more: &str| {
        fs::write(folder.path("ask.yaml"), format!("{COMMAND_FILE}{more}")).expect("a file");
        let mut command =
            duologue(&folder, &["run-command", "ask.yaml", "--engine", "echo", "--chat"]);
        command.env("HOME", folder.path(""));
        let ended = Once::start(command).finish();
        assert_eq!(ended.status, 0, "{ended:?}");
        let shown = format!("{}{}", ended.stdout, ended.stderr);
        let shown = shown.split_whitespace().collect::<Vec<_>>().join(" ");
        shown.contains("`response-type` and `schema` do not apply in a chat")
    };
    assert!(said("response-type: jsonl\n") && said("schema: {type: array}\n"));
    assert!(!said(""));
}

#[test]
fn a_command_files_prompt_begins_a_chat() {
    let folder = Folder::new();
    fs::write(folder.path("ask.yaml"), COMMAND_FILE).expect("a file");
    let run = |options: &[&str]| {
        let words = [&["run-command", "ask.yaml", "--engine", "echo"][..], options].concat();
        let mut command = duologue(&folder, &words);
        command.env("HOME", folder.path(""));
        command
    };
    for option in ["--chat", "--force-interactive", "--interactive"] {
        let mut person = Person::start(run(&[option]));
        person.answered("Turn 1. You said: Explain ports.");
        person.types("more\r");
        person.answered("Turn 2. You said: more");
        person.types("/quit\r");
        assert_eq!(person.ends().0, 0, "{option}");
    }
    for options in [&["--non-interactive"][..], &["--chat", "--non-interactive"]] {
        let person = Person::start(run(options));
        assert_eq!(person.ends().0, 0, "{options:?}");
    }
    // Without a terminal, only what asks for a chat begins one.
    let piped = |options: &[&str]| {
        let mut once = Once::start(run(options));
        once.write("more\n");
        once.finish()
    };
    // Anything else takes what is piped as a part of the prompt.
    assert_eq!(piped(&["--interactive"]).stdout, "Turn 1. You said: Explain ports.\n\nmore\n");
    let chat = piped(&["--chat"]).stdout;
    assert!(chat.contains("Turn 2. You said: more"), "{chat}");
    let wrong = piped(&["--chat", "--output", "json"]);
    assert_eq!(wrong.status, 2);
    assert!(wrong.stderr.contains("a chat is for a person"), "{}", wrong.stderr);
}

#[test]
fn an_attachment_without_a_prompt_is_refused() {
    let folder = Folder::new();
    fs::write(folder.path("a.txt"), "text").expect("a file");
    let ended = piped(&folder, &["--attach", "a.txt"], "");
    assert_eq!((ended.status, ended.stdout.as_str()), (2, ""));
    assert!(ended.stderr.contains("an attachment goes with a prompt"), "{}", ended.stderr);
    let file = "flags:\n  - {name: text, type: string}\nprompt: '{{ .text }}'\n";
    fs::write(folder.path("text.yaml"), file).expect("a file");
    let blank = ["run-command", "text.yaml", "--text", " ", "--chat", "--attach", "a.txt"];
    let ended = Once::start(duologue(&folder, &[&blank[..], &["--engine", "echo"]].concat()));
    let ended = ended.finish();
    assert_eq!((ended.status, ended.stdout.as_str()), (2, ""));
    assert!(ended.stderr.contains("an attachment goes with a prompt, and"), "{}", ended.stderr);
}

/// A picture of 1.2 MB, as far as anybody looks.
fn large_picture(folder: &Folder) {
    let mut picture = b"\x89PNG\r\n\x1a\n".to_vec();
    picture.resize(1_200_000, 0);
    fs::write(folder.path("big.png"), picture).expect("a file");
}

#[test]
fn a_file_that_is_not_found_is_said_before_enter() {
    let folder = Folder::new();
    fs::write(folder.path("notes.txt"), "text").expect("a file");
    let mut person = Person::start(chat(&folder, &[]));
    person.sees("/help");
    person.types("mail me@example.com, see @zzz");
    person.sees("no file zzz ·");
    person.types("\u{7f}\u{7f}\u{7f}notes.txt");
    let last_row = |person: &Person| {
        person.screen().text().trim_end().lines().last().unwrap_or_default().to_owned()
    };
    eventually("the file is found", || last_row(&person).starts_with("echo").then_some(()));
    person.types(" and @\"no such\"!");
    person.sees("no file no such ·");
    person.types("\r");
    person.sees("attached: notes.txt");
    eventually("the row is clear", || last_row(&person).starts_with("echo").then_some(()));
    person.types("/quit\r");
    assert_eq!(person.ends().0, 0);
}

#[test]
fn a_large_file_is_attached_once_the_person_agrees() {
    let folder = Folder::new();
    large_picture(&folder);
    let question = "big.png has 1.2 MB";
    let mut person = Person::start(chat(&folder, &[]));
    person.sees("/help");
    person.types("What is @big.png?\r");
    person.sees(&format!("{question}: Enter again attaches it"));
    person.types("?");
    eventually("another key takes it back", || {
        let shown = person.screen().text();
        (shown.contains("> What is @big.png??") && !shown.contains(question)).then_some(())
    });
    person.types("\r");
    person.sees(question);
    eventually("the question can be read, and is answered", || {
        person.types("\r");
        person.screen().text().contains("attached: big.png").then_some(())
    });
    person.answered("You said: What is @big.png??");
    person.types("/quit\r");
    assert_eq!(person.ends().0, 0);

    let options = ["--plain", "--debug-events-jsonl", "frames"];
    let mut person = Person::start(chat(&folder, &options));
    person.types("What is @big.png?\n");
    person.sees_words(&format!("{question}. Write y to send the prompt with that, or n"));
    person.types("n\n");
    person.sees("nothing was sent");
    person.types("Once more: @big.png\n");
    eventually("it is asked again", || {
        (person.screen().text().matches(question).count() == 2).then_some(())
    });
    person.types("y\n");
    person.sees("You said: Once more: @big.png");
    person.types("\u{4}");
    assert_eq!(person.ends().0, 0);
    let frames = fs::read_to_string(folder.path("frames")).expect("the frames");
    let is_prompt = |line: &&str| line.contains("\"name\":\"ChatUserMessageAccepted\"");
    let mut prompts = frames.lines().filter(is_prompt);
    let prompt = prompts.next().expect("a prompt");
    assert!(prompt.contains("\"filename\":\"big.png\""), "{prompt}");
    assert_eq!(prompts.next(), None);

    // Nobody can be asked.
    let ended = piped(&folder, &[], "What is @big.png?\n");
    assert!(ended.stdout.contains("attached: big.png"), "{}", ended.stdout);
    assert_eq!(ended.status, 0);
}

#[test]
fn the_prompt_of_the_command_line_attaches_the_files_that_it_names() {
    let folder = Folder::new();
    for name in ["notes.txt", "build.log"] {
        fs::write(folder.path(name), "text").expect("a file");
    }
    let prompt = "What is in @notes.txt?";
    let options = [prompt, "--attach", "build.log", "--debug-events-jsonl", "frames"];
    let ended = piped(&folder, &options, "");
    let attached = "You: What is in @notes.txt?\n  attached: build.log\n  attached: notes.txt\n";
    assert!(ended.stdout.starts_with(attached), "{ended:?}");
    // No two of them have one id.
    let frames = fs::read(folder.path("frames")).expect("the frames");
    let checked = run(&["check"], &frames);
    assert!(checked.status.success(), "{checked:?}");

    // What a template was filled with may name a file by chance.
    fs::write(folder.path("ask.yaml"), "prompt: Explain @notes.txt.\n").expect("a file");
    let words = ["run-command", "ask.yaml", "--engine", "echo", "--chat"];
    let mut command = duologue(&folder, &words);
    command.env("HOME", folder.path(""));
    let ended = Once::start(command).finish();
    assert!(ended.stdout.contains("You said: Explain @notes.txt."), "{ended:?}");
    assert!(!ended.stdout.contains("attached"), "{ended:?}");
}

#[test]
fn a_large_file_of_the_command_lines_prompt_is_asked_about() {
    let folder = Folder::new();
    large_picture(&folder);
    let prompt = "What is @big.png?";
    let mut person = Person::start(chat(&folder, &[prompt]));
    person.sees("big.png has 1.2 MB: Enter again attaches it");
    eventually("the question can be read, and is answered", || {
        person.types("\r");
        person.screen().text().contains("attached: big.png").then_some(())
    });
    person.answered("You said: What is @big.png?");
    person.types("/quit\r");
    assert_eq!(person.ends().0, 0);

    // Whatever becomes of the prompt, what options attach goes with it.
    fs::write(folder.path("small.txt"), "text").expect("a file");
    let mut person = Person::start(chat(&folder, &[prompt, "--attach", "small.txt"]));
    person.sees("goes with the next prompt: small.txt");
    person.types("?");
    person.sees("> What is @big.png??");
    eventually("the question comes again, and is answered", || {
        person.types("\r");
        person.screen().text().contains("attached: big.png").then_some(())
    });
    person.sees("attached: small.txt");
    person.answered("You said: What is @big.png??");
    person.types("/quit\r");
    assert_eq!(person.ends().0, 0);

    let mut person = Person::start(chat(&folder, &["--plain", prompt]));
    person.sees_words("big.png has 1.2 MB. Write y to send the prompt with that, or n");
    person.types("y\n");
    person.sees("You: What is @big.png?\n  attached: big.png");
    person.sees("You said: What is @big.png?");
    person.types("\u{4}");
    assert_eq!(person.ends().0, 0);
}
