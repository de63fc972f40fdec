//! `duologue sessions export`: what each format has of a conversation.

use crate::once::{Ended, Once, duologue, run};
use crate::provider::{Provider, says};
use crate::server::{Folder, KEY};
use crate::sessions::{ask, envelope, sessions};
use serde_json::{Value, json};
use std::fs;

const PRICES: &str = "currency: EUR\nmodels:\n  scripted: {input: 2, output: 8}\n";

/// Has a provider answer a turn of the session `s`.
#[track_caller]
fn asked(folder: &Folder, answer: &str, options: &[&str]) -> Ended {
    fs::write(folder.path("prices.yaml"), PRICES).expect("a file");
    let provider = Provider::start(vec![says(answer)]);
    let place = folder.name("store");
    let words = ["exec", "hi", "--store", &place, "--session-id", "s", "--prices", "prices.yaml"];
    let mut exec = duologue(folder, &[&words[..], options].concat());
    exec.env("DUOLOGUE_API_KEY", KEY).env("DUOLOGUE_BASE_URL", provider.base_url());
    exec.env("DUOLOGUE_MODEL", "scripted");
    let ended = Once::start(exec).finish();
    assert_eq!(ended.status, 0, "{ended:?}");
    ended
}

/// An RFC 3339 time in UTC, to the second.
fn is_time(text: &str) -> bool {
    let shape = text.chars().map(|char| if char.is_ascii_digit() { '0' } else { char });
    shape.collect::<String>() == "0000-00-00T00:00:00Z"
}

#[test]
fn each_format_says_what_answered_in_a_turn_when_and_for_how_much() {
    let folder = Folder::new();
    asked(&folder, "one", &[]);
    asked(&folder, "two", &["--resume", "--base-url", "http://127.0.0.1:9/v1", "--engine", "echo"]);
    let object = sessions(&folder, &["export", "s", "--format", "json"]).stdout;
    let object: Value = serde_json::from_str(&object).expect("JSON");
    let [first, second] = [0, 1].map(|turn| object["turns"][turn].clone());
    assert_eq!((&first["engine"], &first["model"]), (&json!("openai"), &json!("scripted")));
    assert_eq!(second["engine"], "echo");
    let paid = json!({ "providerCalls": 1, "inputTokens": "3", "outputTokens": "2",
                       "cost": "0.000022", "currency": "EUR" });
    assert_eq!(first["usage"], paid);
    assert!(is_time(first["startedAt"].as_str().expect("a time")), "{first}");
    assert!(first["durationMs"].is_string() && second["durationMs"].is_string(), "{object}");
    assert_eq!(first["correlation"]["turnId"], "turn-1");
    assert_eq!(object["usage"]["uncountedCalls"], 1);
    assert_eq!(object["usage"]["inputTokens"], "3");

    let plain = sessions(&folder, &["export", "s"]).stdout;
    assert_eq!(plain.lines().count(), 2, "nothing that was not asked for: {plain}");
    let lines = sessions(&folder, &["export", "s", "--turn-summaries"]).stdout;
    let frames: Vec<Value> =
        lines.lines().map(|line| serde_json::from_str(line).expect("a frame")).collect();
    assert_eq!(frames.len(), 4, "{lines}");
    for (frame, summary) in frames[1..3].iter().zip([&first, &second]) {
        let mut payload = frame["uiEvent"]["payload"].clone();
        let payload = payload.as_object_mut().expect("an event");
        payload.shift_remove("@type");
        assert_eq!(&Value::Object(payload.clone()), summary);
    }
    let words = frames[0]["hello"]["capabilities"].as_array().expect("a list");
    assert!(words.contains(&json!("turn-summaries")), "{lines}");

    let markdown = sessions(&folder, &["export", "s", "--format", "markdown"]).stdout;
    let html = sessions(&folder, &["export", "s", "--format", "html"]).stdout;
    for text in [markdown, html] {
        let has = |part: &str| assert!(text.contains(part), "{part}: {text}");
        has("scripted (openai) \u{b7} 20");
        has(" UTC \u{b7} ");
        has("3 tokens in, 2 out \u{b7} 0.000022 EUR");
        has("2 turns \u{b7} ");
    }
}

/// The settings of one turn are not those of the session.
#[test]
fn a_turn_with_a_model_of_its_own_is_said_to_have_it() {
    let folder = Folder::new();
    let place = folder.name("store");
    let words = ["--store", &place, "--session-id", "s"];
    let mut server =
        crate::server::Launch::new(&[&["rpc", "--engine", "echo"], &words[..]].concat()).start();
    let settings = json!({ "model": "another" });
    let submit = json!({ "prompt": "hi", "settings": settings });
    server.send(json!({ "requestId": "a", "submit": submit }).to_string());
    assert_eq!(server.wait_done("a"), "ok");
    assert_eq!(server.turn("b", "hi"), "ok");
    server.finish();
    let (object, _) = envelope(&folder, &["export", "s", "--format", "json"]);
    let models = [0, 1].map(|turn| object["data"]["turns"][turn]["model"].clone());
    assert_eq!(models, [json!("another"), json!("echo")]);
}

/// A model may have read what it writes on a page of somebody else.
#[test]
fn a_page_has_the_markdown_of_a_model_and_nothing_that_it_made_up() {
    let folder = Folder::new();
    let answer = "## A *title*\n\n| a | b |\n|---|---|\n| 1 | `x < y` |\n\n\
                  <script>alert(1)</script>\n\n<img src=x onerror=alert(1)>\n\n\
                  ![pixel](https://example.com/pixel.png) [run](javascript:alert(1))\n\n\
                  ```html\n</code></pre><script>\n```\n";
    asked(&folder, answer, &[]);
    let html = sessions(&folder, &["export", "s", "--format", "html"]).stdout;
    for part in [
        "<h4>A <em>title</em></h4>",
        "<td><code>x &lt; y</code></td>",
        "&lt;script&gt;alert(1)&lt;/script&gt;",
        "&lt;img src=x onerror=alert(1)&gt;",
        "<a href=\"https://example.com/pixel.png\">pixel</a>",
        "&lt;/code&gt;&lt;/pre&gt;&lt;script&gt;",
        "default-src 'none'",
        "prefers-color-scheme: dark",
    ] {
        assert!(html.contains(part), "{part}: {html}");
    }
    for part in ["<script", "<img", "src=\"", "javascript:", "<link", "url(", "@import"] {
        assert!(!html.contains(part), "{part}: {html}");
    }
}

/// A new title is an event after the last turn.
#[test]
fn an_export_with_summaries_keeps_to_the_protocol_after_a_rename() {
    let folder = Folder::new();
    ask(&folder, "s", "a prompt");
    let renamed = sessions(&folder, &["rename", "s", "a title"]);
    assert_eq!(renamed.status, 0, "{renamed:?}");
    let lines = sessions(&folder, &["export", "s", "--turn-summaries"]);
    fs::write(folder.path("lines"), &lines.stdout).expect("a file");
    let checked = run(&folder, &["check", "lines"]);
    assert_eq!(checked.status, 0, "{checked:?}");
}

#[test]
fn what_is_exported_has_the_whole_conversation() {
    let folder = Folder::new();
    ask(&folder, "s", "a <b>bold</b> & ```fenced``` prompt");
    let lines = sessions(&folder, &["export", "s", "--turn-summaries"]);
    assert_eq!(lines.stdout.lines().count(), 3, "{lines:?}");
    fs::write(folder.path("lines"), &lines.stdout).expect("a file");
    let checked = run(&folder, &["check", "lines"]);
    assert_eq!(checked.status, 0, "{checked:?}");
    let object = sessions(&folder, &["export", "s", "--format", "json"]);
    let object: Value = serde_json::from_str(&object.stdout).expect("JSON");
    let snapshot: Value =
        serde_json::from_str(lines.stdout.lines().nth(2).expect("a line")).expect("JSON");
    assert_eq!(object["entities"], snapshot["snapshot"]["entities"]);
    assert_eq!(object["sessionId"], "s");
    let markdown = sessions(&folder, &["export", "s", "--format", "markdown"]).stdout;
    assert!(
        markdown.contains("\n## User\n\na <b>bold</b>") && markdown.contains("\n## Assistant\n")
    );
    let html = sessions(&folder, &["export", "s", "--format", "html"]).stdout;
    assert!(html.contains("a &lt;b&gt;bold&lt;/b&gt; &amp;") && !html.contains("<b>"), "{html}");
}

#[test]
fn an_export_is_one_json_object_where_that_is_asked_for() {
    let folder = Folder::new();
    ask(&folder, "s", "hello");
    let plain = |format: &str| sessions(&folder, &["export", "s", "--format", format]).stdout;
    let data = |format: &str| {
        let (whole, status) = envelope(&folder, &["export", "s", "--format", format]);
        assert_eq!((status, &whole["ok"], &whole["error"]), (0, &json!(true), &Value::Null));
        whole["data"].clone()
    };
    let frames: Vec<Value> =
        plain("jsonl").lines().map(|line| serde_json::from_str(line).expect("a frame")).collect();
    assert_eq!(data("jsonl"), json!(frames));
    assert_eq!(data("json"), serde_json::from_str::<Value>(&plain("json")).expect("JSON"));
    assert_eq!(data("markdown"), json!(plain("markdown")));
    assert_eq!(data("html"), json!(plain("html")));
    let (missing, status) = envelope(&folder, &["export", "other"]);
    assert_eq!((status, &missing["error"]["code"]), (1, &json!("session_not_found")));
    assert_eq!((&missing["ok"], &missing["data"]), (&json!(false), &Value::Null));
    let mut command = duologue(&folder, &["sessions", "export", "s", "--output", "json"]);
    command.env_remove("HOME").env_remove("XDG_DATA_HOME");
    let ended = Once::start(command).finish();
    assert_eq!(ended.status, 2, "{ended:?}");
    assert!(ended.stdout.contains("no store is named"), "{ended:?}");
}
