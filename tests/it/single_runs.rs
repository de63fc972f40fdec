//! A single run at a terminal: what its answer looks like there, who is asked about tool calls, and the file that
//! gets the last message.

use crate::chat::Person;
use crate::mcp_servers::{assert_gone, config, mark};
use crate::once::{Once, duologue, run};
use crate::server::Folder;
use crate::terminal::{HOSTILE, controls, on_terminal};
use crate::vt::Vt;
use rustix::process::geteuid;
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::Command;

const MARKDOWN: &str = "# Ports\n\nUse **one** of `these`, which a line that is longer than the screen is wide shows \
                        in two rows:\n\n- ss\n- lsof\n\n```sh\nss -tlnp\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\nThe end";

const DRAWN: &str = "Ports\n\nUse one of these, which a line that is longer than the screen is wide shows in\n\
                     two rows:\n\n• ss\n• lsof\n\nss -tlnp\n";

fn answering(folder: &Folder, answer: &str, options: &[&str]) -> Command {
    fs::write(folder.path("answer"), answer).expect("a file");
    let words = ["exec", "go", "--engine", "echo", "--echo-answer", "answer"];
    duologue(folder, &[&words, options].concat())
}

#[test]
fn an_answer_is_drawn_as_a_chat_draws_it() {
    let folder = Folder::new();
    for options in [&[][..], &["--echo-delay-ms", "3"]] {
        let seen = on_terminal(answering(&folder, MARKDOWN, options), true);
        let screen = Vt::showing(&seen, 80, 24).text();
        assert!(screen.starts_with(DRAWN), "{screen}\n{seen:?}");
        assert!(screen.trim_end().ends_with("\n\nThe end") && screen.contains("─"), "{screen}");
        assert!(!screen.contains(['#', '*', '`']) && !screen.contains("receiving"), "{screen}");
    }
    let mut without_colour = answering(&folder, MARKDOWN, &[]);
    let seen = on_terminal(
        {
            without_colour.env("NO_COLOR", "1");
            without_colour
        },
        true,
    );
    assert!(
        seen.contains("\u{1b}[0;1m") && !seen.contains(";3") && !seen.contains(";9"),
        "{seen:?}"
    );
}

/// A table whose later rows are wider is aligned, and is not printed before its columns are known; a long one
/// keeps the columns that it began with.
#[test]
fn a_table_that_streams_is_aligned() {
    let folder = Folder::new();
    let table =
        "Here:\n\n| a | b |\n|---|---|\n| 1 | 2 |\n| wider than the others | 3 |\n| 4 | 5 |\n\nEnd";
    let seen = on_terminal(answering(&folder, table, &["--echo-delay-ms", "3"]), true);
    let aligned = "Here:\n\na                      b\n─────────────────────  ─\n1                      2\n\
                   wider than the others  3\n4                      5\n\nEnd";
    assert_eq!(Vt::showing(&seen, 80, 24).text(), aligned, "{seen:?}");
    let rows: String =
        (0..40).map(|row| format!("| {row} | {} |\n", "word ".repeat(row / 20 * 3))).collect();
    let long = format!("| a | b |\n|---|---|\n{rows}");
    let seen = on_terminal(answering(&folder, &long, &["--echo-delay-ms", "1"]), true);
    let screen = Vt::showing(&seen, 80, 24).text();
    assert_eq!(
        screen.matches('─').count(),
        screen.lines().nth(1).unwrap_or_default().matches('─').count()
    );
    for row in 0..40 {
        assert_eq!(
            screen.lines().filter(|line| line.split(' ').next() == Some(&row.to_string())).count(),
            1,
            "{screen}"
        );
    }
}

/// In a window that gets narrower, a row of the progress line never becomes two, of which the first would stay.
#[test]
fn the_progress_line_has_no_blanks_at_its_end() {
    let folder = Folder::new();
    let seen = on_terminal(answering(&folder, MARKDOWN, &["--echo-delay-ms", "20"]), true);
    assert!(seen.contains("waiting for the model") && !seen.contains(&" ".repeat(20)), "{seen:?}");
}

#[test]
fn what_is_no_persons_is_as_the_model_wrote_it() {
    let folder = Folder::new();
    let written = MARKDOWN.to_owned() + "\n";
    let is_raw = |seen: String| assert!(seen.replace("\r\n", "\n").ends_with(&written), "{seen:?}");
    is_raw(on_terminal(answering(&folder, MARKDOWN, &["--raw"]), true));
    let mut dumb = answering(&folder, MARKDOWN, &[]);
    is_raw(on_terminal(
        {
            dumb.env("TERM", "dumb");
            dumb
        },
        true,
    ));
    assert_eq!(Once::start(answering(&folder, MARKDOWN, &[])).finish().stdout, written);
    // JSON is no Markdown.
    let json = r#"{"a": "*b* _c_"}"#;
    fs::write(folder.path("any.json"), "{}").expect("a file");
    let seen = on_terminal(answering(&folder, json, &["--schema", "any.json"]), true);
    assert!(seen.ends_with(&format!("{json}\r\n")), "{seen:?}");
}

#[test]
fn a_drawn_answer_can_not_control_a_terminal() {
    let folder = Folder::new();
    let seen = on_terminal(answering(&folder, HOSTILE, &[]), true);
    // The terminal of this test fails at anything that the program does not use itself.
    let screen = Vt::showing(&seen, 80, 24);
    assert_eq!(screen.clipboard, None);
    let (_, answer) = seen.split_once("waiting for the model").unwrap_or(("", &seen));
    let plain = answer.replace("\u{1b}[2K", "").replace("\u{1b}[0m", "").replace('\r', "");
    assert!(!plain.contains(controls) && plain.contains("desrever"), "{seen:?}");
}

/// Links lead to their addresses, if a terminal may open these; the address stays in sight.
#[test]
fn a_link_is_one_for_the_terminal() {
    let folder = Folder::new();
    let links = "See [the docs](https://a.example/caf\u{e9}?b;c), <mailto:me@b.example>, [no](javascript:alert(1)), \
                 and [bad](https://b.example/&#27;]8;;x&#7;).\n";
    let on = |variable: (&str, &str)| {
        let mut command = answering(&folder, links, &[]);
        command.env(variable.0, variable.1);
        let seen = on_terminal(command, true);
        let screen = Vt::showing(&seen, 200, 24);
        assert!(
            screen.text().contains("See the docs (https://a.example/caf\u{e9}?b;c), "),
            "{seen:?}"
        );
        screen.links
    };
    let shown = on(("LANG", "C"));
    let expected = [
        ("the docs(https://a.example/caf\u{e9}?b;c)", "https://a.example/caf%C3%A9?b;c"),
        ("mailto:me@b.example", "mailto:me@b.example"),
    ];
    assert_eq!(shown, expected.map(|(text, target)| (text.to_owned(), target.to_owned())));
    for off in [("FORCE_HYPERLINK", "0"), ("TERM", "linux")] {
        assert_eq!(on(off), [], "{off:?}");
    }
}

#[test]
fn the_name_alone_at_a_terminal_says_what_to_type() {
    let folder = Folder::new();
    let (status, screen) = Person::start(duologue(&folder, &[])).ends();
    let text = screen.text();
    assert!(
        status == 0 && text.starts_with("duologue chat ") && text.contains("duologue exec"),
        "{text}"
    );
    // With an option it is a conversation, as anywhere else.
    let mut person = Person::start(duologue(&folder, &["--engine", "echo"]));
    person.sees_words("requests are read from this terminal");
    person.types("\u{4}");
    assert_eq!(person.ends().0, 0);
}

/// A run whose model calls the tool `act` twice, at a terminal.
fn acting(folder: &Folder, mark: &str, options: &[&str]) -> Command {
    fs::write(folder.path("servers"), config(mark, &["echo"], &json!({}))).expect("a file");
    let call = |text: &str| json!({"name": "act", "arguments": {"text": text}});
    let script = format!(
        "{}\n{}\n{}\n",
        json!({"text": "Look.", "tools": [call("one\u{202e}"), call("two")]}),
        json!({"text": "Again.", "tools": [call("three")]}),
        json!({"text": "Done."})
    );
    fs::write(folder.path("script"), script).expect("a file");
    let words =
        ["exec", "go", "--engine", "echo", "--mcp-config", "servers", "--echo-script", "script"];
    duologue(folder, &[&words, options].concat())
}

#[test]
fn a_person_is_asked_before_a_tool_runs() {
    let (folder, mark) = (Folder::new(), mark());
    let mut person = Person::start(acting(&folder, &mark, &["--debug-events-jsonl", "events"]));
    person.sees("Look.");
    person.is_asked(r#"act of echo asks to run with {"text":"one\u{202e}"}"#);
    assert_eq!(person.screen().text().matches("Look.").count(), 1);
    person.types("perhaps\r");
    person
        .sees("that is no answer; type y, a, n, or n and a reason, which the model reads\nrun it?");
    person.types("n because two is enough\r");
    person.is_asked(r#"act of echo asks to run with {"text":"two"}"#);
    person.types("a\r");
    let (status, screen) = person.ends();
    let text = screen.text();
    assert!(status == 0 && text.trim_end().ends_with("Done."), "{text}");
    // Each text of the model begins a line.
    assert!(
        ["Look.", "Again.", "Done."].iter().all(|it| text.lines().any(|line| line == *it)),
        "{text}"
    );
    // "a" holds for the third call.
    assert_eq!(text.matches("asks to run").count(), 2, "{text}");
    let events = fs::read_to_string(folder.path("events")).expect("a file");
    assert!(
        events.contains("because two is enough")
            && events.matches("ToolExecutionStarted").count() >= 2,
        "{events}"
    );
    let checked = run(&folder, &["check", "events"]);
    assert!(checked.status == 0 && checked.stdout.contains("violations: 0"), "{checked:?}");
    assert_gone(&mark);
}

#[test]
fn an_empty_line_and_an_interrupt_are_no_permission() {
    let (folder, mark) = (Folder::new(), mark());
    let mut person = Person::start(acting(&folder, &mark, &["--output", "json"]));
    let calls = [("Look.\n", r"one\u{202e}"), ("", "two"), ("Again.\n", "three")];
    for (said, call) in calls {
        person.is_asked(&format!("{said}act of echo asks to run with {{\"text\":\"{call}\"}}"));
        person.types("\r");
    }
    let (status, screen) = person.ends();
    let text = screen.text();
    let document = text.split_once("{\n").expect("a document").1;
    let document: Value = serde_json::from_str(&format!("{{\n{document}")).expect("JSON");
    assert_eq!((status, &document["data"]), (0, &json!("Look.\nAgain.\nDone.")), "{text}");
    let calls = document["meta"]["tool_calls"].as_array().expect("a list");
    assert!(calls.len() == 3 && calls.iter().all(|call| call["success"] == false), "{text}");
    assert_gone(&mark);
}

#[test]
fn nobody_is_asked_where_nobody_types() {
    let (folder, mark) = (Folder::new(), mark());
    let ended = Once::start(acting(&folder, &mark, &[])).finish();
    assert!(ended.status == 0 && !ended.stderr.contains("run it?"), "{ended:?}");
    assert!(ended.stderr.contains("--allow"), "{ended:?}");
    assert_gone(&mark);
}

#[test]
fn the_last_message_is_saved_if_the_run_has_succeeded() {
    let (folder, mark) = (Folder::new(), mark());
    let saved = || fs::read_to_string(folder.path("saved.md")).expect("a file");
    let options = ["--save", "saved.md", "--approval", "auto"];
    let ended = Once::start(acting(&folder, &mark, &options)).finish();
    assert_eq!(
        (ended.stdout.as_str(), saved().as_str()),
        ("Look.\nAgain.\nDone.\n", "Done.\n"),
        "{ended:?}"
    );
    assert_gone(&mark);
    let mode = fs::metadata(folder.path("saved.md")).expect("a file").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    for options in
        [&["--output", "json"][..], &["--rpc", "--patch-mode", "snapshot"], &["--json-stream"]]
    {
        let options = [options, &["--save", "new/saved.md"]].concat();
        let ended = Once::start(answering(&folder, MARKDOWN, &options)).finish();
        assert_eq!(ended.status, 0, "{ended:?}");
        let saved = fs::read_to_string(folder.path("new/saved.md")).expect("a file");
        assert_eq!(saved, MARKDOWN.to_owned() + "\n", "{options:?}");
        fs::remove_dir_all(folder.path("new")).expect("a folder");
    }
    // A link stays, and an answer that must be JSON is that alone.
    symlink("saved.md", folder.path("link")).expect("a link");
    fs::write(folder.path("any.json"), "{}").expect("a file");
    let options = ["--schema", "any.json", "--save", "link"];
    let fenced = "Here:\n```json\n{\"a\": 1.0}\n```\n";
    let ended = Once::start(answering(&folder, fenced, &options)).finish();
    assert_eq!(
        (saved().as_str(), ended.stdout.as_str()),
        ("{\"a\": 1.0}\n", "{\"a\": 1.0}\n"),
        "{ended:?}"
    );
    assert!(folder.path("link").is_symlink());
    // A run that fails leaves it as it is.
    let words = [
        "exec",
        "go",
        "--engine",
        "openai",
        "--model",
        "m",
        "--base-url",
        "http://127.0.0.1:9",
        "--retries",
        "0",
    ];
    let failed = run(&folder, &[&words[..], &["--save", "saved.md"]].concat());
    assert_eq!((failed.status, saved().as_str()), (75, "{\"a\": 1.0}\n"), "{failed:?}");
    assert_eq!(
        fs::read_dir(folder.path(""))
            .expect("a folder")
            .filter(|it| {
                it.as_ref().is_ok_and(|it| it.file_name().to_string_lossy().contains("new-"))
            })
            .count(),
        0
    );
}

#[test]
fn a_file_that_can_not_be_saved_to_is_reported_before_anything_is_asked() {
    let folder = Folder::new();
    fs::create_dir(folder.path("kept")).expect("a folder");
    let refused = |options: &[&str], part: &str| {
        let ended = run(&folder, &[&["exec", "go", "--engine", "echo"], options].concat());
        assert!(ended.status == 2 && ended.stderr.contains(part), "{options:?}: {ended:?}");
        assert!(!ended.stdout.contains("You said"), "{ended:?}");
    };
    refused(&["--save", "kept"], "--save: kept is no regular file");
    refused(&["--save", "/dev/null"], "--save: /dev/null is no regular file");
    refused(&["--save", "-"], "--save: - is no regular file");
    refused(&["--save", "/dev/stdout"], "--save: /dev/stdout is no regular file");
    let device = run(&folder, &["exec", "go", "--engine", "echo", "--save", "/dev/stdout"]);
    assert!(!device.stderr.contains("./-"), "{device:?}");
    refused(&["--save", "a.md", "--stdin-rpc"], "--save is for a single run");
    if !geteuid().is_root() {
        refused(&["--save", "/a.md"], "--save: /a.md can't be written");
    }
}
