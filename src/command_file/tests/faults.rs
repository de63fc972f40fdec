//! What is wrong with command files: the file, the line and what to do.

use super::{parse, run};
use crate::command_file::{CommandFile, ResponseType};
use serde_json::json;

/// The file is refused, and the error begins and goes on so.
#[track_caller]
fn refused(text: &str, place: &str, message: &str) {
    let error = parse(text).expect_err(text);
    assert!(error.starts_with(&format!("dir/cmd.yaml{place}: ")), "{text}\n{error}");
    assert!(error.contains(message), "{text}\n{error}\nexpected {message}");
}

#[test]
fn files() {
    refused("", "", "it has no `prompt`, no `messages` and no `system-prompt`");
    refused("name: x", "", "add a `prompt`");
    refused("prompt: ' '", "", "nothing to send");
    // Something that is missing may be there under another name.
    let misspelt = "line 2: the key `prompts` is unknown and ignored; did you mean `prompt`?";
    refused("name: x\nprompts: hi", "", misspelt);
    refused("name: x\nprompts: hi", "", "it has no `prompt`");
    refused("lables: [a]\nprompt: [a]", ":2", "line 1: the key `lables` is unknown");
    refused("- a", ":1", "it holds a list, and a command file is a map");
    refused("just text", ":1", "it holds a string");
    refused("prompt: a\nprompt: b", ":2", "the key `prompt` occurs a second time");
    refused("prompt: [", ":1", "it is not valid YAML");
    refused("prompt: a\nmessages-template: 7", ":2", "`messages-template` must be true or false");
    refused("prompt: [a]", ":1", "`prompt` must be a string, not a list");
    refused(
        "prompt: {{ .x }}",
        ":1",
        "`prompt` must be a string, not a map; put a text that begins with `{`",
    );
    let alias = "name: x\nflags: {a: b}\naliasFor: [code, go]\narguments: [c]";
    refused(alias, ":3", "flags for the command `code go` and no prompt of its own");
    refused("aliasFor: y", ":1", "run that command's file with these flags");
    refused(&"a".repeat((1 << 20) + 1), "", "it has more than 1 MiB");
}

#[test]
fn messages() {
    refused("messages: a", ":1", "`messages` must be a list, not a string");
    refused(
        "messages:\n- {role: tool, text: a}",
        ":2",
        "`role` of `messages[0]` must be system, user or assistant",
    );
    refused("messages:\n- a\n- {role: user}", ":3", "`messages[1]` has no `text`");
    refused("messages:\n- [a]", ":2", "`messages[0]` must be a string, not a list");
}

#[test]
fn flags() {
    let flags = |flags: &str| format!("prompt: a\nflags:\n{flags}");
    refused("prompt: a\nflags: b", ":2", "`flags` must be a list, not a string");
    refused(&flags("- a"), ":3", "a flag is a map with `name` and `type`; this is a string");
    refused(&flags("- type: int"), ":3", "a flag here has no `name`");
    refused(&flags("- name: x"), ":3", "flag `x`: it has no `type`; known are string, secret");
    refused(
        &flags("- {name: x, type: boolean}"),
        ":3",
        "flag `x`: unknown type `boolean`; known are string",
    );
    refused(&flags("- {name: a b, type: int}"), ":3", "`a b` can't be the name of a flag");
    refused(&flags("- {name: --x, type: int}"), ":3", "begins with a letter or digit");
    refused(&flags("- {name: '', type: int}"), ":3", "can't be the name");
    refused(
        &flags("- {name: x, type: int, shortFlag: xy}"),
        ":3",
        "`shortFlag` must be one letter",
    );
    refused(&flags("- {name: x, type: choice, choices: a}"), ":3", "`choices` must be a list");
    refused(
        &flags("- {name: a_b, type: int}\n- {name: a-b, type: int}"),
        ":4",
        "the name `a-b` is taken: `a_b` in line 3 is typed the same way",
    );
    refused(
        &flags("- {name: a, type: int, shortFlag: q}\n- {name: b, type: int, shortFlag: q}"),
        ":4",
        "flag `b` has the same letter as `a` in line 3",
    );
    refused(&flags("- {name: a, type: int}\narguments: [{name: a, type: int}]"), ":4", "is taken");
}

#[test]
fn arguments() {
    let two = |one: &str, two: &str| {
        format!("prompt: a\narguments:\n- {{name: a, {one}}}\n- {{name: b, {two}}}\n")
    };
    refused(&two("type: stringList", "type: int"), ":4", "argument `a` takes all remaining values");
    refused(
        &two("type: int", "type: int, required: true"),
        ":4",
        "argument `b` is required and follows `a`",
    );
}

#[test]
fn answers() {
    let found = |text: &str| {
        let file = parse(&format!("prompt: a\n{text}")).expect(text);
        (file.response, file.schema, file.extensions)
    };
    assert_eq!(found(""), (ResponseType::Text, None, vec![]));
    assert_eq!(found("response-type: jsonl"), (ResponseType::Jsonl, None, vec![]));
    let schema = json!({"type": "object", "required": ["a"]});
    let text = "schema: {type: object, required: [a]}\nextensions: [extract]";
    assert_eq!(found(text), (ResponseType::Json, Some(schema), vec!["extract".to_owned()]));
    refused(
        "prompt: a\nresponse-type: xml",
        ":2",
        "`response-type` is `xml`; it can be text, json or jsonl",
    );
    refused("prompt: a\nschema: b", ":2", "`schema` is a string; a JSON Schema is a map");
    refused(
        "schema: {}\nprompt: a\nresponse-type: text",
        ":3",
        "make it json or jsonl, or leave the schema out",
    );
}

#[test]
fn what_is_not_known_is_reported() {
    let text = "
name: x
system_prompt: be kind
factories: {openai: {}}
type: pinocchio
tags: [a]
prompt: a
flags:
  - {name: f, type: int, description: f}
mood: good
";
    let file: CommandFile = parse(text).expect("a file");
    let warnings: Vec<String> = file.warnings.iter().map(ToString::to_string).collect();
    assert_eq!(warnings.len(), 3, "{warnings:?}");
    assert_eq!(
        warnings[0],
        "dir/cmd.yaml:3: the key `system_prompt` is unknown and ignored; did you mean `system-prompt`?"
    );
    assert!(
        warnings[1].starts_with(
            "dir/cmd.yaml:9: the key `description` is unknown and ignored; did you mean `help`?"
        ),
        "{warnings:?}"
    );
    assert!(warnings[2].starts_with("dir/cmd.yaml:10: the key `mood` is unknown"), "{warnings:?}");
}

#[test]
fn warnings_have_an_end() {
    let text: String = (0..1000).map(|number| format!("k{number}: 1\n")).collect();
    let file = parse(&format!("prompt: a\n{text}")).expect("a file");
    assert_eq!(file.warnings.len(), 21);
    let last = file.warnings.last().map(ToString::to_string).unwrap_or_default();
    assert_eq!(last, "dir/cmd.yaml:22: more keys from here on are unknown and ignored");
}

#[test]
fn lists_have_an_end() {
    let many = |item: &str, count: usize| format!("[{}]", vec![item; count].join(", "));
    let flags: Vec<String> =
        (0..1001).map(|number| format!("{{name: f{number}, type: int}}")).collect();
    let list = |flags: &[String]| format!("prompt: a\nflags: [{}]", flags.join(", "));
    assert!(parse(&list(&flags[..1000])).is_ok());
    refused(&list(&flags), ":2", "`flags` has more than 1000 items; remove some");
    let choices = many("a", 1001);
    let text = format!("prompt: a\nflags: [{{name: x, type: choice, choices: {choices}}}]");
    refused(&text, ":2", "flag `x`: `choices` has more than 1000 items");
}

#[test]
fn templates() {
    let line = |text: &str| run(text, &[]).expect_err(text);
    let table = [
        ("prompt: |\n  one\n  {{ if }}\n", "dir/cmd.yaml:3: the template in `prompt`: "),
        (
            "system-prompt: '{{ nope'\nprompt: a",
            "dir/cmd.yaml:1: the template in `system-prompt`: ",
        ),
        (
            "prompt: >\n  one\n  {{ if }}\n",
            "dir/cmd.yaml:2: the template in `prompt`, which begins in this line: ",
        ),
        (
            "messages:\n  - a\n  - role: user\n    text: |\n      b\n      {{ if }}\n",
            "dir/cmd.yaml:6: the template in `messages[1]`: ",
        ),
    ];
    for (text, expected) in table {
        assert!(line(text).starts_with(expected), "{text}\n{}", line(text));
    }
}
