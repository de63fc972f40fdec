//! What people see of a tool call: a title, its kind, the files it is about, its arguments and its result.
//! Pure.

use super::schema::{Location, ToolCall, ToolContent, ToolKind, ToolStatus};
use crate::protocol::json::object_in_string;
use crate::protocol::proto::session::{CompactionCause, CompactionProposed};
use crate::support::shorten::first_chars;
use crate::support::terminal::escape_control;
use serde_json::{Map, Value};
use std::path::Path;
use url::Url;

/// Bytes of a result that the client is shown; the model gets the whole result, within its own limit.
const RESULT_BYTES_MAX: usize = 32 * 1024;

/// Bytes of the arguments in a question to the person.
const ARGUMENTS_BYTES_MAX: usize = 32 * 1024;

/// Characters of an argument in a title.
const TITLE_CHARS_MAX: usize = 80;

/// Files that a call names.
const LOCATIONS_MAX: usize = 32;

/// Arguments that name a file, or several.
const PATH_NAMES: [&str; 11] = [
    "path",
    "file",
    "file_path",
    "filepath",
    "filename",
    "uri",
    "source",
    "destination",
    "paths",
    "files",
    "old_path",
];

/// Arguments with the number of a line, from 1.
const LINE_NAMES: [&str; 4] = ["line", "line_number", "start_line", "startline"];

/// Arguments that say most about a call, the first one first.
const TELLING_NAMES: [&str; 9] =
    ["command", "cmd", "query", "pattern", "url", "path", "file_path", "file", "uri"];

/// Telling arguments that a tool runs.
const COMMAND_NAMES: [&str; 2] = ["command", "cmd"];

/// Words in the names of tools, and the kind that they mean. The first word that is found counts.
const KINDS: [(&[&str], ToolKind); 8] = [
    (&["delete", "remove", "rm", "unlink", "drop"], ToolKind::Delete),
    (&["move", "rename", "mv"], ToolKind::Move),
    (
        &[
            "write", "edit", "create", "update", "patch", "insert", "replace", "append", "set",
            "save",
        ],
        ToolKind::Edit,
    ),
    (&["search", "find", "grep", "glob", "query", "lookup"], ToolKind::Search),
    (
        &["execute", "exec", "run", "shell", "bash", "command", "terminal", "eval"],
        ToolKind::Execute,
    ),
    (&["fetch", "http", "download", "browse", "navigate", "crawl", "curl"], ToolKind::Fetch),
    (&["think", "thinking", "reason", "plan"], ToolKind::Think),
    (&["read", "get", "list", "ls", "cat", "view", "show", "open", "stat", "tree"], ToolKind::Read),
];

/// A call of the tool `name` when the model has begun to write it.
pub(super) fn begun(id: &str, name: &str) -> ToolCall {
    ToolCall {
        tool_call_id: id.to_owned(),
        title: Some(shown_name(name)),
        name: Some(name.to_owned()),
        kind: Some(kind(name)),
        ..ToolCall::default()
    }
}

/// What is new of a call when the model has written its arguments, `input`.
pub(super) fn requested(id: &str, name: &str, input: &str, folder: &Path) -> ToolCall {
    let arguments = arguments(input);
    ToolCall {
        tool_call_id: id.to_owned(),
        title: Some(title(name, &arguments)),
        locations: locations(&arguments, folder),
        raw_input: Some(arguments),
        ..ToolCall::default()
    }
}

/// A call as a question to the person has it: whole, with its arguments as text.
pub(super) fn asked(id: &str, name: &str, server: &str, input: &str, folder: &Path) -> ToolCall {
    let call = requested(id, name, input, folder);
    let server = match server {
        "" => String::new(),
        server => format!("{} of the MCP server {}", shown_name(name), escape_control(server)),
    };
    let text = call.raw_input.as_ref().map(pretty).unwrap_or_default();
    let text = format!("{server}\n\n{}", fenced(&text));
    ToolCall {
        name: Some(name.to_owned()),
        kind: Some(kind(name)),
        content: vec![ToolContent::text(text.trim_start())],
        ..call
    }
}

/// A compaction as a question to the person has it: clients ask about tool calls alone.
pub(super) fn asked_compaction(id: &str, proposed: &CompactionProposed) -> ToolCall {
    let what = match proposed.cause() {
        CompactionCause::Overflow => {
            "The conversation is too long for the model, which has refused it"
        }
        CompactionCause::Limit | CompactionCause::Request | CompactionCause::Unspecified => {
            "The conversation will soon be too long for the model"
        }
    };
    let tokens = match (proposed.tokens, proposed.context_tokens) {
        (0, _) => String::new(),
        (tokens, 0) => format!(" (about {tokens} tokens)"),
        (tokens, most) => format!(" (about {tokens} of {most} tokens)"),
    };
    let text = format!(
        "{what}{tokens}. A summary can stand for the earlier turns in what the model is sent; you see all \
         of them as before. Without one, the prompt is sent as it is, which the provider may refuse."
    );
    ToolCall {
        tool_call_id: id.to_owned(),
        title: Some("Summarize the earlier turns for the model?".to_owned()),
        kind: Some(ToolKind::Think),
        status: Some(ToolStatus::Pending),
        content: vec![ToolContent::text(text)],
        ..ToolCall::default()
    }
}

/// A result as people see it.
pub(super) fn result(text: &str) -> Vec<ToolContent> {
    if text.is_empty() {
        return Vec::new();
    }
    vec![ToolContent::text(cut(text, RESULT_BYTES_MAX))]
}

fn arguments(input: &str) -> Value {
    let object = object_in_string(input);
    let input = object.as_deref().unwrap_or(input);
    if input.trim().is_empty() {
        return Value::Object(Map::new());
    }
    serde_json::from_str(input).unwrap_or_else(|_| Value::String(input.to_owned()))
}

/// Arguments over several lines.
fn pretty(arguments: &Value) -> String {
    let text = serde_json::to_string_pretty(arguments).unwrap_or_default();
    cut(&text, ARGUMENTS_BYTES_MAX)
}

/// `text` in a code block that it can't end.
fn fenced(text: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat((longest + 1).max(3));
    format!("{fence}json\n{text}\n{fence}")
}

fn cut(text: &str, bytes_max: usize) -> String {
    if text.len() <= bytes_max {
        return text.to_owned();
    }
    let shown = &text[..text.floor_char_boundary(bytes_max)];
    format!("{shown}\n[{} bytes more are not shown here]", text.len() - shown.len())
}

fn title(name: &str, arguments: &Value) -> String {
    let name = shown_name(name);
    let Some(line) = telling(arguments) else { return name };
    format!("{name}: {}", escape_control(&first_chars(&line, TITLE_CHARS_MAX)))
}

/// What says most about a call, on one line: one of its arguments, or all of them. Some clients show nothing else of
/// a question, and a person must not allow a command without a sign of all that it runs.
fn telling(arguments: &Value) -> Option<String> {
    let members = arguments.as_object().filter(|it| !it.is_empty())?;
    let has_command = COMMAND_NAMES.iter().any(|key| members.contains_key(*key));
    let is_plain = |key: &str, value: &Value| match value {
        Value::String(_) => true,
        Value::Null | Value::Bool(_) | Value::Number(_) => !COMMAND_NAMES.contains(&key),
        // The words of the command, or its environment.
        Value::Array(_) | Value::Object(_) => false,
    };
    let is_one_enough = !has_command || members.iter().all(|(key, it)| is_plain(key, it));
    let one = TELLING_NAMES.iter().find_map(|key| members.get(*key)?.as_str());
    let one = one.map(str::trim).filter(|text| is_one_enough && !text.is_empty());
    let Some(one) = one else { return Some(arguments.to_string()) };
    let line = one.lines().collect::<Vec<_>>().join(" ⏎ ");
    Some(if has_command && members.len() > 1 { line + " …" } else { line })
}

/// The name of a tool is the model's or a server's text.
fn shown_name(name: &str) -> String {
    match name {
        "" => "tool".to_owned(),
        name => escape_control(&name.chars().take(TITLE_CHARS_MAX).collect::<String>()),
    }
}

fn kind(name: &str) -> ToolKind {
    let words = words(name);
    let is_there =
        |known: &&[&str]| known.iter().any(|known| words.iter().any(|word| word == known));
    let found = KINDS.iter().find(|(known, _)| is_there(known));
    found.map_or(ToolKind::Other, |(_, kind)| *kind)
}

/// The words of `readFile`, `read_file` or `fs__read-file`, in lower case.
fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut was_lower = false;
    for c in name.chars() {
        let begins = !c.is_alphanumeric() || c.is_uppercase() && was_lower;
        if begins {
            words.push(String::new());
        }
        if let (true, Some(word)) = (c.is_alphanumeric(), words.last_mut()) {
            word.extend(c.to_lowercase());
        }
        was_lower = c.is_lowercase();
    }
    words
}

fn locations(arguments: &Value, folder: &Path) -> Vec<Location> {
    let Some(members) = arguments.as_object() else { return Vec::new() };
    let is_one_of = |key: &str, names: &[&str]| names.contains(&key.to_ascii_lowercase().as_str());
    let line = members.iter().find(|(key, _)| is_one_of(key, &LINE_NAMES));
    let line = line.and_then(|(_, line)| u32::try_from(line.as_u64()?).ok());
    let named = members.iter().filter(|(key, _)| is_one_of(key, &PATH_NAMES));
    let texts = named.flat_map(|(_, value)| match value {
        Value::Array(values) => values.iter().filter_map(Value::as_str).collect(),
        Value::String(text) => vec![text.as_str()],
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => Vec::new(),
    });
    let paths = texts.filter_map(|text| absolute(text, folder)).take(LOCATIONS_MAX);
    paths.map(|path| Location { path, line: line.filter(|line| *line > 0) }).collect()
}

/// The absolute path that `text` names; `None` if it names none.
fn absolute(text: &str, folder: &Path) -> Option<String> {
    let is_path = !text.trim().is_empty() && !text.contains(char::is_control);
    let path = match text.contains("://") {
        true => Url::parse(text).ok()?.to_file_path().ok()?,
        false => folder.join(text),
    };
    (is_path && path.is_absolute()).then(|| path.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::acp::schema::ContentBlock;

    #[test]
    fn the_name_of_a_tool_says_its_kind() {
        let cases = [
            ("read_file", ToolKind::Read),
            ("fs__listDirectory", ToolKind::Read),
            ("writeFile", ToolKind::Edit),
            ("delete-row", ToolKind::Delete),
            ("move_file", ToolKind::Move),
            ("search_files", ToolKind::Search),
            ("run_command", ToolKind::Execute),
            ("fetch", ToolKind::Fetch),
            ("sequentialthinking", ToolKind::Other),
            ("sequential_thinking", ToolKind::Think),
            ("reader", ToolKind::Other),
            ("", ToolKind::Other),
        ];
        for (name, expected) in cases {
            assert_eq!(kind(name), expected, "{name}");
        }
    }

    #[test]
    fn files_in_arguments_are_found_with_their_lines() {
        let found = |input: &str| {
            let call = requested("c", "t", input, Path::new("/home/ann"));
            call.locations.into_iter().map(|it| (it.path, it.line)).collect::<Vec<_>>()
        };
        let path = |path: &str, line| (path.to_owned(), line);
        assert_eq!(found(r#"{"path":"a.rs","line":3}"#), [path("/home/ann/a.rs", Some(3))]);
        assert_eq!(found(r#"{"filePath":"/b","start_line":0}"#), [path("/b", None)]);
        assert_eq!(
            found(r#"{"paths":["a",2,"/b"]}"#),
            [path("/home/ann/a", None), path("/b", None)]
        );
        assert_eq!(found(r#"{"uri":"file:///x%20y"}"#), [path("/x y", None)]);
        for none in
            [r#"{"uri":"https://h/x"}"#, r#"{"path":""}"#, r#"{"path":"a\nb"}"#, "[1]", "{", ""]
        {
            assert_eq!(found(none), [], "{none}");
        }
    }

    #[test]
    fn a_question_has_the_whole_call() {
        let call = asked("c", "run", "shell", r#"{"command":"rm -r x\necho ```"}"#, Path::new("/"));
        assert_eq!(call.title.as_deref(), Some("run: rm -r x ⏎ echo ```"));
        let no_word_for_it = serde_json::json!({"city": "Berlin"});
        assert_eq!(title("get_time", &no_word_for_it), r#"get_time: {"city":"Berlin"}"#);
        assert_eq!(title("get_time", &serde_json::json!({})), "get_time");
        assert_eq!(call.kind, Some(ToolKind::Execute));
        assert_eq!(call.raw_input.as_ref().expect("arguments")["command"], "rm -r x\necho ```");
        let [ToolContent::Content { content: ContentBlock::Text { text } }] = &call.content[..]
        else {
            panic!("{call:?}")
        };
        assert!(text.starts_with("run of the MCP server shell\n\n````json\n{"), "{text}");
        assert!(text.contains("rm -r x\\necho ```") && text.ends_with("\n````"), "{text}");
        // An object within a string is what the tool gets.
        let within = Value::from(r#"{"path":"a.rs"}"#).to_string();
        let call = asked("c", "read", "", &within, Path::new("/home/ann"));
        assert_eq!(call.title.as_deref(), Some("read: a.rs"));
        assert_eq!(call.locations.first().map(|it| it.path.as_str()), Some("/home/ann/a.rs"));
        assert_eq!(call.raw_input, Some(serde_json::json!({ "path": "a.rs" })));
        // What is no JSON is shown as it is.
        let call = asked("c", "run", "", "{broken", Path::new("/"));
        assert_eq!(call.raw_input, Some(Value::String("{broken".to_owned())));
    }

    #[test]
    fn a_title_says_all_that_a_command_runs_or_that_there_is_more() {
        let titled = |input: &str| title("run", &arguments(input));
        let long = format!("{}\nrm -rf ~", "x".repeat(TITLE_CHARS_MAX));
        let cut = format!("run: {}…", "x".repeat(TITLE_CHARS_MAX));
        assert_eq!(title("run", &serde_json::json!({ "command": long })), cut);
        for (input, expected) in [
            (r#"{"command":"echo hi\nrm -rf ~"}"#, "run: echo hi ⏎ rm -rf ~"),
            (r#"{"command":"ls","timeout":5}"#, "run: ls …"),
            (r#"{"command":"rm","args":"-rf ~"}"#, "run: rm …"),
            (r#"{"path":"a.rs","line":3}"#, "run: a.rs"),
        ] {
            assert_eq!(titled(input), expected);
        }
        for whole in [
            r#"{"command":["rm","-rf","/home/me"],"path":"/tmp/x"}"#,
            r#"{"args":["-rf","~"],"command":"rm"}"#,
            r#"{"cmd":null,"path":"/tmp/x"}"#,
        ] {
            assert_eq!(titled(whole), format!("run: {whole}"));
        }
    }

    #[test]
    fn a_long_result_is_cut() {
        assert_eq!(result(""), []);
        let text = "é".repeat(RESULT_BYTES_MAX);
        let [ToolContent::Content { content: ContentBlock::Text { text } }] = &result(&text)[..]
        else {
            panic!("one text")
        };
        assert!(text.len() < RESULT_BYTES_MAX + 100, "{}", text.len());
        assert!(text.ends_with("[32768 bytes more are not shown here]"), "{text}");
    }
}
