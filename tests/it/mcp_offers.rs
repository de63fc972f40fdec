//! What MCP servers offer to people: lists of resources and prompts, and prompts in a chat.

use crate::chat::{Person, chat};
use crate::chat_lines::piped;
use crate::mcp_command::command;
use crate::mcp_servers::{assert_gone, config, mark};
use crate::server::Folder;
use crate::terminal::on_terminal;
use serde_json::{Value, json};
use std::fs;
use std::process::Output;

/// `duologue mcp <words>` with the servers of `faults`.
fn mcp(faults: &[&str], words: &[&str]) -> Output {
    let mark = mark();
    let output =
        command(&mark, faults, &["mcp", words[0]], &words[1..]).output().expect("the binary");
    assert_gone(&mark);
    output
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("UTF-8")
}

#[test]
fn resources_are_listed_as_they_are_named() {
    let output = mcp(&["docs", "none"], &["resources"]);
    let expected = "docs:note://1\n    The first (text/plain)\n    A note.\n    \\x1b[31mred\n\
                    docs:note://image\n    image (image/png)\n";
    assert_eq!(text(&output.stdout), expected);
    let warning = "MCP server docs: one of its resources has no usable uri";
    assert!(text(&output.stderr).contains(warning), "{output:?}");
    assert_eq!(output.status.code(), Some(0));
    let output = mcp(&["docs"], &["resources", "docs", "--output", "json"]);
    let listed: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let first = json!({
        "server": "docs", "uri": "note://1", "name": "The first", "mimeType": "text/plain",
        "description": "A note.\n\u{1b}[31mred",
    });
    assert_eq!(
        (&listed["ok"], &listed["data"][0], &listed["meta"]["total"]),
        (&json!(true), &first, &json!(2))
    );
}

#[test]
fn prompts_are_listed_with_their_arguments() {
    let output = mcp(&["docs"], &["prompts"]);
    let expected = "docs:sum\n    Sums a file up.\n    path: The file.\n    style (optional)\n\
                    docs:talk\ndocs:look\n";
    assert_eq!(text(&output.stdout), expected);
    let output = mcp(&["docs"], &["prompts", "--no-stream"]);
    let listed: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let arguments = json!([
        {"name": "path", "description": "The file.", "required": true},
        {"name": "style", "description": "", "required": false},
    ]);
    assert_eq!(listed["data"][0]["arguments"], arguments);
}

#[test]
fn a_server_that_can_not_be_asked_is_named() {
    let output = mcp(&["crash-at-init", "docs"], &["prompts", "--output", "json"]);
    assert_eq!(output.status.code(), Some(1));
    let why = "the MCP server `crash-at-init` is not running: it ended with status 4";
    assert!(text(&output.stderr).ends_with(&format!("duologue: {why}\n")), "{output:?}");
    let listed: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(
        (&listed["error"]["detail"], &listed["data"][0]["name"]),
        (&json!(why), &json!("sum"))
    );
    let output = mcp(&["docs"], &["resources", "other"]);
    assert_eq!(output.status.code(), Some(2));
    let why = "there is no MCP server \"other\"; there are: docs";
    assert!(text(&output.stderr).contains(why), "{output:?}");
    // It answers with nothing that is a list.
    let output = mcp(&["docs-without-lists"], &["resources"]);
    let why = "duologue: the MCP server `docs-without-lists`: its resources can't be listed: its answer \
               to resources/list has no list of resources\n";
    assert_eq!((text(&output.stderr), output.status.code()), (why, Some(1)));
}

#[test]
fn resources_are_listed_though_prompts_are_not() {
    for (server, status, why) in [
        ("docs-without-prompts", 0, ""),
        (
            "docs-with-broken-prompts",
            1,
            "duologue: the MCP server `docs-with-broken-prompts`: its prompts can't be listed: the server \
             answered with error -32000: no disk\n",
        ),
    ] {
        let output = mcp(&[server], &["resources"]);
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        assert!(text(&output.stdout).starts_with(&format!("{server}:note://1\n")), "{output:?}");
        let output = mcp(&[server], &["prompts"]);
        assert_eq!((output.status.code(), text(&output.stderr)), (Some(status), why));
        assert_eq!(text(&output.stdout), "");
    }
    // A person at a terminal is told why nothing is listed.
    let mark = mark();
    let prompts = command(&mark, &["docs-without-prompts"], &["mcp", "prompts"], &[]);
    let seen = on_terminal(prompts, false);
    assert!(seen.contains("no MCP server here offers prompts: docs-without-prompts"), "{seen:?}");
    assert_gone(&mark);
    let shown = chatted_with("docs-with-broken-prompts", 0, "/tools\n/mcp\n");
    let shown = shown.split_whitespace().collect::<Vec<_>>().join(" ");
    for part in ["@docs-with-broken-prompts:note://1 The first", "its prompts can't be listed: "] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
}

/// A chat with the fixture, to which these lines are piped; what it printed.
fn chatted(lines: &str) -> String {
    chatted_to(0, lines)
}

/// Like [`chatted`], for a chat that ends with `status`.
fn chatted_to(status: i32, lines: &str) -> String {
    chatted_with("docs", status, lines)
}

/// Like [`chatted_to`], for the fixture with the fault `server`.
fn chatted_with(server: &str, status: i32, lines: &str) -> String {
    let (folder, mark) = (Folder::new(), mark());
    fs::write(folder.path("servers"), config(&mark, &[server], &json!({}))).expect("a file");
    let ended = piped(&folder, &["--mcp-config", "servers"], lines);
    assert_gone(&mark);
    assert_eq!((ended.status, ended.stderr.as_str()), (status, ""), "{}", ended.stdout);
    ended.stdout
}

#[test]
fn a_chat_lists_what_servers_offer() {
    // The first of them waits until the server is ready.
    let shown = chatted("/tools\n/mcp\n");
    let expected = "docs (ready), 2 tools\n  @docs:note://1  The first\n  @docs:note://image  image\n  \
                    /docs:sum path=… [style=…]  Sums a file up.\n  /docs:talk\n  /docs:look\n";
    assert!(shown.contains(expected), "{shown}");
}

#[test]
fn a_prompt_of_a_server_is_asked_in_a_chat() {
    let shown = chatted("/docs:sum \"my notes.txt\" style=short\n/docs:talk\n");
    assert!(shown.contains("Turn 1. You said: Sum up my notes.txt in style short."), "{shown}");
    // What a server says that the model has said is no message of the model.
    assert!(shown.contains("Turn 2. You said: User: Hi."), "{shown}");
    assert!(shown.contains("Assistant: Hello."), "{shown}");
    let shown = chatted("/docs:look\nand on\n");
    assert!(shown.contains("Turn 1. You said: /quit @look"), "a text is no command: {shown}");
    assert!(shown.contains("attached: image") && shown.contains("attached: note://1"), "{shown}");
    assert!(shown.contains("Turn 2. You said: and on"), "{shown}");
}

#[test]
fn a_prompt_that_can_not_be_made_says_why() {
    let shown = chatted_to(1, "/docs:sum\n/docs:sum a b c\n/docs:none\n/docs:sum \"a\nhi\n");
    for why in [
        "the MCP server `docs`: it needs `path`; it takes path=… [style=…]",
        "it takes no more arguments, but \"c\" follows",
        "it has no prompt `none`; it has sum, talk, look",
        "the arguments have quotes that don't match",
    ] {
        assert!(
            shown.split_whitespace().collect::<Vec<_>>().join(" ").contains(why),
            "{why}: {shown}"
        );
    }
    assert!(shown.contains("Turn 1. You said: hi"), "{shown}");
}

#[test]
fn resources_are_attached_in_a_chat_beside_files() {
    let shown = chatted("see @docs:note://1.\nand (@docs:note://image)\n");
    assert!(
        shown.contains("attached: note://1") && shown.contains("attached: note://image"),
        "{shown}"
    );
    // It is no command, whatever it has.
    assert!(shown.contains("Turn 2. You said: and"), "{shown}");
}

#[test]
fn resources_and_prompts_are_completed() {
    let (folder, mark) = (Folder::new(), mark());
    fs::write(folder.path("servers"), config(&mark, &["docs"], &json!({}))).expect("a file");
    let mut person = Person::start(chat(&folder, &["--mcp-config", "servers"]));
    person.sees("/help");
    // Once it is listed, it is known.
    person.types("/tools\r");
    person.sees("docs (ready)");
    person.types("/mcp\r");
    person.sees("@docs:note://image");
    person.types("see @docs:note://i\t");
    person.sees("> see @docs:note://image");
    person.types("\u{15}/docs:su\t");
    person.sees("> /docs:sum");
    person.types("a.txt\r");
    person.answered("You said: Sum up a.txt in style none.");
    person.types("/quit\r");
    assert_eq!(person.ends().0, 0);
    assert_gone(&mark);
}
