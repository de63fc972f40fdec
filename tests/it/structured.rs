//! Answers that must match a schema: of a file, or of a request; checked, and asked for once more.

use crate::frames::errors;
use crate::once::{Ended, Once, duologue};
use crate::provider::{Provider, Step, says};
use crate::server::{Folder, KEY, openai};
use serde_json::{Value, json};
use std::fs;

const SCHEMA: &str = r#"{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}"#;

/// A folder with the schema, and a script of these answers for the built-in engine.
fn folder(answers: &[&str]) -> Folder {
    let folder = Folder::new();
    fs::write(folder.path("schema.json"), SCHEMA).expect("a file");
    let script = answers.iter().map(|text| format!("{}\n", json!({ "text": text })));
    fs::write(folder.path("script.jsonl"), script.collect::<String>()).expect("a file");
    folder
}

fn exec(folder: &Folder, options: &[&str]) -> Ended {
    let answers = ["--engine", "echo", "--echo-script", "script.jsonl"];
    let words = [&["exec", "a number", "--schema", "schema.json"], &answers[..]].concat();
    Once::start(duologue(folder, &[&words, options].concat())).finish()
}

#[test]
fn an_answer_that_does_not_match_is_asked_for_again() {
    let folder = folder(&["{\"m\":1}", "{\"n\":1}"]);
    let ended = exec(&folder, &[]);
    assert_eq!(ended.status, 1, "{ended:?}");

    let repaired = exec(&folder, &["--repair", "1"]);
    assert_eq!((repaired.status, repaired.stdout.as_str()), (0, "{\"n\":1}\n"), "{repaired:?}");
    let again = "the answer is asked for again: ";
    assert!(repaired.stderr.contains(again), "{repaired:?}");

    let ended = exec(&folder, &["--repair", "1", "--output", "json"]);
    let document: Value = serde_json::from_str(&ended.stdout).expect("JSON");
    assert_eq!((&document["ok"], &document["data"]), (&json!(true), &json!({ "n": 1 })));
    assert_eq!(document["warnings"][0]["code"], "answer_rejected", "{document}");

    let ended = exec(&folder, &["--repair", "1", "--output", "objects", "--no-preamble"]);
    assert_eq!(ended.stdout, "{\"n\":1}\n");
    assert!(ended.stderr.contains(again), "{ended:?}");
    let ended = exec(&folder, &["--repair", "1", "--json-stream"]);
    assert!(!ended.stderr.contains(again), "{ended:?}");
    assert!(ended.stdout.contains("\"repairing\""), "{ended:?}");
    let done = ended.stdout.lines().last().expect("done");
    assert!(
        done.contains("\"type\":\"done\"") && done.contains("\"document\":{\"n\":1}"),
        "{done}"
    );
}

/// Of a list the lines that match are used; who wants it whole asks for a document.
#[test]
fn lines_are_not_asked_for_again_which_a_warning_says() {
    let folder = folder(&["{\"m\":1}\n{\"n\":1}"]);
    let file = format!("prompt: numbers\nresponse-type: jsonl\nschema: {SCHEMA}\n");
    fs::write(folder.path("list.yaml"), file).expect("a file");
    let list = |more: &[&str], variable: &str| {
        let words = ["run-command", "list.yaml", "--engine", "echo", "--echo-script"];
        let mut command = duologue(&folder, &[&words[..], &["script.jsonl"], more].concat());
        command.env("DUOLOGUE_REPAIR", variable);
        let mut once = Once::start(command);
        once.close_stdin();
        once.finish().stderr
    };
    let typed = list(&["--repair", "2"], "");
    assert!(typed.contains("--repair changes nothing"), "{typed}");
    for (more, variable) in [(&[][..], "2"), (&["--repair", "0"], "")] {
        let stderr = list(more, variable);
        assert!(!stderr.contains("--repair"), "{stderr}");
    }
}

/// The pieces are what the model wrote; `done` has the document, as it was found and checked.
#[test]
fn the_last_event_has_the_document() {
    let folder =
        folder(&["Here it is: ```json\n{\"n\": 1.0}\n``` Anything else?", "There is none."]);
    let done = |options: &[&str]| {
        let ended = exec(&folder, &[&["--json-stream"], options].concat());
        ended.stdout.lines().last().expect("done").to_owned()
    };
    assert!(done(&[]).contains("\"document\":{\"n\": 1.0}"), "{}", done(&[]));
    let empty = exec(&self::folder(&["There is none."]), &["--json-stream"]).stdout;
    assert!(!empty.contains("\"document\""), "{empty}");
    let plain = ["exec", "hi", "--engine", "echo", "--json-stream"];
    let plain = Once::start(duologue(&folder, &plain)).finish().stdout;
    assert!(!plain.contains("\"document\""), "{plain}");
}

/// The protocol reports the document to a client that asked for it.
#[test]
fn a_single_run_reports_the_document_where_the_extension_is_on() {
    let folder = folder(&["{\"n\":1}"]);
    for name in ["structured", "extract"] {
        let ended = exec(&folder, &["--rpc", "--extensions", name]);
        let is_in = |word: &str| ended.stdout.lines().any(|line| line.contains(word));
        assert!(ended.status == 0 && is_in("\"name\":\"ObjectExtracted\""), "{ended:?}");
        assert!(is_in("\"extract\"") && is_in("ExtractionFinished"), "{ended:?}");
    }
    let ended = exec(&folder, &["--rpc"]);
    assert!(ended.status == 0 && !ended.stdout.contains("xtract"), "{ended:?}");
}

/// YAML has the integers that JSON has.
#[test]
fn yaml_has_all_digits_of_integers() {
    let big = "{\"n\": 123456789012345678901234567890, \"b\": [18446744073709551615, 1.5]}";
    let folder = folder(&[big]);
    let ended = exec(&folder, &["--output", "yaml"]);
    for part in ["  \"n\": 123456789012345678901234567890\n", "- 18446744073709551615\n", "- 1.5\n"]
    {
        assert!(ended.stdout.contains(part), "{part}: {ended:?}");
    }
}

/// What is sent with the prompt is shown with it.
#[test]
fn a_prompt_is_printed_with_the_schema_of_its_answer() {
    let folder = folder(&[]);
    fs::write(
        folder.path("ask.yaml"),
        format!("prompt: a number\nresponse-type: json\nschema: {SCHEMA}\n"),
    )
    .expect("a file");
    for words in
        [&["exec", "a number", "--schema", "schema.json"][..], &["run-command", "ask.yaml"]]
    {
        let shown = |options: &[&str]| {
            let words = [words, &["--print-prompt"], options].concat();
            let ended = Once::start(duologue(&folder, &words)).finish();
            assert_eq!((ended.status, ended.stderr.as_str()), (0, ""), "{ended:?}");
            ended.stdout
        };
        let expected = format!("[user]\na number\n\n[schema]\n{SCHEMA}\n");
        assert_eq!(shown(&[]).trim_end(), expected.trim_end(), "{words:?}");
        let document: Value = serde_json::from_str(&shown(&["--no-stream"])).expect("JSON");
        let schema: Value = serde_json::from_str(SCHEMA).expect("JSON");
        assert_eq!(document["data"]["schema"], schema, "{words:?}");
    }
}

/// With a schema standard output is the document alone, as it was found and checked.
#[test]
fn text_with_a_schema_is_the_document() {
    for prose in [
        "Here it is:\n```json\n{\"n\": 1.0}\n```\nAnything else?",
        "Sure! Here: ```json\n{\"n\": 1.0}\n``` Anything else?",
        "{\"n\": 1.0}\n",
        "Sure!\n{\"n\": 1.0}\nHope it helps",
        "<think>\nhm\n</think>\n{\"n\": 1.0}",
        "Sure:\n\n{\"n\": 1.0}\n\n```python\nprint(1)\n```",
        "Text\n{\"n\": 1.0}\n```",
        "~~~json\n{\"n\": 1.0}\n~~~",
    ] {
        let folder = folder(&[prose]);
        let ended = exec(&folder, &[]);
        assert_eq!((ended.status, ended.stdout.as_str()), (0, "{\"n\": 1.0}\n"), "{ended:?}");
        fs::write(
            folder.path("ask.yaml"),
            format!("prompt: a number\nresponse-type: json\nschema: {SCHEMA}\n"),
        )
        .expect("a file");
        let words = ["run-command", "ask.yaml", "--echo-script", "script.jsonl"];
        let ended = Once::start(duologue(&folder, &words)).finish();
        assert_eq!((ended.status, ended.stdout.as_str()), (0, "{\"n\": 1.0}\n"), "{ended:?}");
    }
    for prose in ["There is none.", "Here it is: {\"n\": \"one\"}"] {
        let ended = exec(&folder(&[prose]), &[]);
        assert_eq!((ended.status, ended.stdout), (1, format!("{prose}\n")));
    }
}

/// A draft in the reasoning is not the document; the reasoning goes back to its model as it came.
#[test]
fn a_think_tag_in_the_text_is_reasoning() {
    let answer =
        "<think>\nMaybe\n```json\n{\"n\": 1}\n```\nno, 2\n</think>\n```json\n{\"n\": 2}\n```";
    let provider = Provider::start(vec![says(answer), says(answer), says("{\"n\":3}")]);
    let base_url = provider.base_url();
    let folder = folder(&[]);
    let words = ["exec", "a number", "--schema", "schema.json", "--output", "json"];
    let options = ["--model", "m", "--base-url", &base_url];
    let mut command = duologue(&folder, &[&words[..], &options].concat());
    command.env("DUOLOGUE_API_KEY", KEY);
    let ended = Once::start(command).finish();
    let document: Value = serde_json::from_str(&ended.stdout).expect("JSON");
    assert_eq!((ended.status, &document["data"]), (0, &json!({ "n": 2 })), "{ended:?}");

    let mut server = openai(&provider, &[]).start();
    assert_eq!(server.turn("a", "a number"), "ok");
    assert_eq!(server.turn("b", "another"), "ok");
    server.finish();
    let sent = provider.wait_request(3).body["messages"].clone();
    let said = sent.as_array().expect("messages").iter().find(|it| it["role"] == "assistant");
    assert_eq!(said.expect("an answer")["content"], answer, "{sent}");
}

#[test]
fn only_so_many_repairs_are_made() {
    let folder = folder(&["one", "two", "{\"n\":1}"]);
    let ended = exec(&folder, &["--repair", "1"]);
    assert_eq!((ended.status, ended.stdout.as_str()), (1, "two\n"), "{ended:?}");
    let ended = exec(&folder, &["--repair", "2"]);
    assert_eq!((ended.status, ended.stdout.as_str()), (0, "{\"n\":1}\n"), "{ended:?}");
}

#[test]
fn a_schema_that_cannot_be_used_is_refused_before_anything_is_asked() {
    let folder = folder(&["{}"]);
    fs::write(folder.path("schema.json"), r#"{"type":"objekt"}"#).expect("a file");
    let ended = exec(&folder, &[]);
    assert_eq!((ended.status, ended.stdout.as_str()), (2, ""), "{ended:?}");
    assert!(ended.stderr.contains("--schema: schema.json"), "{ended:?}");
    fs::write(folder.path("schema.json"), "{\"type\": \"object\",\n").expect("a file");
    let ended = exec(&folder, &[]);
    let place = "--schema: schema.json: line ";
    assert!(ended.status == 2 && ended.stderr.contains(place), "{ended:?}");
    assert!(!ended.stderr.contains("-->") && ended.stderr.lines().count() == 1, "{ended:?}");
}

#[test]
fn a_request_may_have_a_schema() {
    let provider = Provider::start(vec![says("none"), says("{\"n\":2}"), says("none")]);
    let mut server = openai(&provider, &["--repair", "1"]).start();
    let schema: Value = serde_json::from_str(SCHEMA).expect("JSON");
    let submit = |id: &str, schema: Value| {
        let submit = json!({ "prompt": "a number", "responseSchema": schema });
        json!({ "requestId": id, "submit": submit }).to_string()
    };
    server.send(submit("a", schema));
    assert_eq!(server.wait_done("a"), "ok");
    assert_eq!(server.turn("b", "thanks"), "ok");
    server.send(submit("c", json!({ "type": 7 })));
    assert_eq!(server.wait_done("c"), "failed");
    let frames = server.finish().frames;
    assert_eq!(errors(&frames, "c"), ["invalid_settings"]);
    let names = ["AnswerRejected", "ObjectExtracted", "ExtractionFinished"];
    for name in names {
        let ids = frames.iter().filter(|frame| frame.is_event(name)).map(|frame| frame.id());
        assert_eq!(ids.collect::<Vec<_>>(), ["a"], "{name}");
    }
    // The model reads why.
    let repair = provider.wait_request(2).body["messages"].to_string();
    assert!(repair.contains("can't be used: line 1: not JSON"), "{repair}");
}

/// A document may have no schema.
#[test]
fn an_answer_without_a_schema_is_not_held_against_one() {
    let folder = folder(&["none", "{\"n\":1}"]);
    fs::write(folder.path("any.yaml"), "prompt: any\nresponse-type: json\n").expect("a file");
    let words = ["run-command", "any.yaml", "--engine", "echo", "--echo-script", "script.jsonl"];
    let ended = Once::start(duologue(&folder, &words)).finish();
    assert_eq!(ended.status, 1, "{ended:?}");
    assert!(ended.stderr.contains("that response-type asks for;"), "{ended:?}");
    assert!(!ended.stderr.contains("schema"), "{ended:?}");

    let provider = Provider::start(vec![says("none"), says("{\"n\":1}")]);
    let base_url = provider.base_url();
    let words = ["run-command", "any.yaml", "--repair", "1", "--engine", "openai", "--model", "m"];
    let mut command = duologue(&folder, &[&words[..], &["--base-url", &base_url]].concat());
    command.env("DUOLOGUE_API_KEY", KEY);
    let ended = Once::start(command).finish();
    assert_eq!(ended.status, 0, "{ended:?}");
    let asked = provider.wait_request(2).body["messages"].to_string();
    assert!(asked.contains("which must match the schema if there is one"), "{asked}");
}

/// The place of an error is that in a line.
#[test]
fn a_repair_names_the_line_that_is_no_json() {
    let folder = folder(&["{\n \"m\": 1,\n \"n\": [\n 2,\n ]\n}", "{\"n\":1}"]);
    let ended = exec(&folder, &["--repair", "1", "--output", "json"]);
    let document: Value = serde_json::from_str(&ended.stdout).expect("JSON");
    let why = document["warnings"][0]["message"].as_str().unwrap_or_default();
    assert!(why.starts_with("line 5: not JSON: ") && why.ends_with("(byte 2)"), "{document}");
}

/// The answer that was to be repaired is all there is.
#[test]
fn an_answer_whose_repair_fails_is_kept() {
    let folder = folder(&[]);
    let refused = || {
        let why = json!({ "error": { "message": "no more" } });
        vec![Step::Status(400, Vec::new(), why.to_string())]
    };
    let failed = |options: &[&str]| {
        let provider = Provider::start(vec![says("{\"m\":1}"), refused()]);
        let base_url = provider.base_url();
        let words = ["exec", "a number", "--schema", "schema.json", "--repair", "1"];
        let more = ["--engine", "openai", "--model", "m", "--base-url", &base_url];
        let mut command = duologue(&folder, &[&words[..], &more, options].concat());
        command.env("DUOLOGUE_API_KEY", KEY);
        let ended = Once::start(command).finish();
        assert_eq!(ended.status, 1, "{ended:?}");
        ended
    };
    assert_eq!(failed(&[]).stdout, "{\"m\":1}\n");
    let ended = failed(&["--output", "json"]);
    let document: Value = serde_json::from_str(&ended.stdout).expect("JSON");
    assert_eq!(document["data"], "{\"m\":1}", "{document}");
    assert_eq!(document["meta"]["truncated"], false, "{document}");
}

/// A reader of events learns that the limit is to blame, as of any other answer.
#[test]
fn a_document_that_is_cut_at_a_token_limit_is_a_limit_in_events() {
    let folder = folder(&[]);
    let text = Step::Text("{\"n\":".to_owned());
    let provider =
        Provider::start(vec![vec![text, Step::Finish("length", Some((3, 2))), Step::Done]]);
    let base_url = provider.base_url();
    let words = ["exec", "a number", "--schema", "schema.json", "--json-stream"];
    let more = ["--engine", "openai", "--model", "m", "--base-url", &base_url];
    let mut command = duologue(&folder, &[&words[..], &more].concat());
    command.env("DUOLOGUE_API_KEY", KEY);
    let ended = Once::start(command).finish();
    assert_eq!(ended.status, 1, "{ended:?}");
    assert!(ended.stdout.contains("\"code\":\"CONTEXT_LIMIT\""), "{ended:?}");
}

/// What YAML 1.1 takes for a truth is a word in a schema, as in a command file; and JSON has its own limits.
#[test]
fn a_schema_is_read_as_it_is_written() {
    let status = |name: &str, schema: &str, answer: &str| {
        let folder = folder(&[answer]);
        fs::write(folder.path(name), schema).expect("a file");
        let words = ["exec", "hi", "--engine", "echo", "--echo-script", "script.jsonl"];
        let words = [&words[..], &["--schema", name]].concat();
        Once::start(duologue(&folder, &words)).finish()
    };
    let ended = status("s.yaml", "type: string\nenum: [yes, no]\n", "\"yes\"");
    assert_eq!((ended.status, ended.stdout.as_str()), (0, "\"yes\"\n"), "{ended:?}");
    let place = "type: object\nrequired: [x, y]\n---\nother: document\n";
    let ended = status("s.yaml", place, "{\"x\":1,\"y\":2}");
    assert_eq!(ended.status, 0, "{ended:?}");
    let deep = (0..40).fold(
        json!({"type": "string"}),
        |inner, _| json!({"type": "object", "properties": { "a": inner, "b".repeat(1100): true }}),
    );
    let ended = status("s.json", &deep.to_string(), "{}");
    assert_eq!(ended.status, 0, "{ended:?}");
    let twice = "{\"type\": \"string\", \"type\": \"object\"}";
    let ended = status("s.json", twice, "{}");
    assert!(ended.status == 2 && ended.stderr.contains("duplicate key \"type\""), "{ended:?}");
    let wrapped = json!({"name": "x", "strict": true, "schema": {"type": "object"}});
    let ended = status("s.json", &wrapped.to_string(), "{}");
    assert!(ended.status == 2 && ended.stderr.contains("under `schema`"), "{ended:?}");
}

/// Who drops the old pieces when the answer is asked for again has the new answer alone.
#[test]
fn a_repaired_answer_begins_with_itself() {
    let folder = folder(&["none", "{\"n\":1}"]);
    let ended = exec(&folder, &["--repair", "1", "--json-stream"]);
    let (_, repaired) = ended.stdout.split_once("\"repairing\"").expect("a repair");
    let events = repaired.lines().skip(1).map(serde_json::from_str::<Value>);
    let mut pieces =
        events.map(|event| event.expect("JSON")).filter(|it| it["type"] == "text_delta");
    let first = pieces.next().expect("a piece");
    assert!(first.to_string().contains("{\\\"n"), "{first}");
}
