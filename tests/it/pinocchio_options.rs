//! Options that people know from Pinocchio's `run-command`: those that choose a provider, a model, a key
//! or a setting are taken, the others are refused with what to write in their place.

use crate::once::{Ended, Once, duologue, run};
use crate::provider::{Provider, says};
use crate::server::{Folder, KEY};
use serde_json::json;
use std::fs;

/// Options that are taken, and a value.
const TAKEN: [(&str, &str); 40] = [
    ("ai-engine", "m"),
    ("ai-api-type", "openai-responses"),
    ("ai-api-type", "open-responses"),
    ("ai-api-type", "claude"),
    ("ai-temperature", "0.5"),
    ("ai-top-p", "0.5"),
    ("ai-max-response-tokens", "9"),
    ("ai-stop", "END"),
    ("inference-temperature", "0.5"),
    ("inference-top-p", "0.5"),
    ("inference-max-response-tokens", "9"),
    ("inference-stop", "END"),
    ("inference-seed", "7"),
    ("inference-reasoning-effort", "low"),
    ("inference-thinking-budget", "1024"),
    ("openai-reasoning-effort", "low"),
    ("openai-chat-reasoning-effort", "low"),
    ("gemini-thinking-level", "low"),
    ("gemini-thinking-budget", "1024"),
    ("openai-api-key", "k"),
    ("claude-api-key", "k"),
    ("gemini-api-key", "k"),
    ("openai-base-url", "http://127.0.0.1:9/v1"),
    ("claude-base-url", "http://127.0.0.1:9"),
    ("gemini-base-url", "http://127.0.0.1:9"),
    ("timeout", "60"),
    ("profile-registries", "none.yaml"),
    ("config-file", "x.yaml"),
    ("system", "Be brief."),
    ("images", "a.png"),
    ("turns-db", "turns.db"),
    ("turns-dsn", "file:turns.db?_journal_mode=WAL"),
    ("timeline-db", "timeline.db"),
    ("timeline-dsn", "file:timeline.db"),
    ("session-id", "s"),
    ("output", "text"),
    ("debug-events-jsonl", "events.jsonl"),
    ("log-level", "debug"),
    ("log-file", "log.txt"),
    ("log-format", "json"),
];

/// Options without a value that are taken.
const TAKEN_ALONE: [&str; 4] = ["interactive", "non-interactive", "log-to-stdout", "with-caller"];

/// Options that are refused, and words of what is to be written in their place.
const REFUSED: [(&str, &str); 67] = [
    ("ai-cache-type", "not cached"),
    ("ai-cache-max-size", "not cached"),
    ("ai-cache-max-entries", "not cached"),
    ("ai-cache-directory", "not cached"),
    ("ai-structured-output-mode", "--schema FILE"),
    ("ai-structured-output-name", "--schema FILE"),
    ("ai-structured-output-description", "--schema FILE"),
    ("ai-structured-output-schema", "--schema FILE"),
    ("ai-structured-output-strict", "--schema FILE"),
    ("ai-structured-output-require-valid", "--schema FILE"),
    ("organization", "OpenAI-Organization"),
    ("user-agent", "--header 'User-Agent"),
    ("proxy-url", "HTTPS_PROXY"),
    ("proxy-from-environment", "NO_PROXY"),
    ("claude-top-k", "top_k"),
    ("claude-user-id", "user_id"),
    ("gemini-api-version", "--base-url"),
    ("gemini-include-thoughts", "leave it out"),
    ("openai-n", "leave it out"),
    ("openai-presence-penalty", "presence_penalty"),
    ("openai-frequency-penalty", "frequency_penalty"),
    ("openai-logit-bias", "logit_bias"),
    ("openai-thinking-type", "thinking"),
    ("openai-parallel-tool-calls", "parallel_tool_calls"),
    ("openai-reasoning-summary", "summary"),
    ("openai-include-reasoning-encrypted", "leave it out"),
    ("openai-stream-include-usage", "leave it out"),
    ("inference-thinking-type", "thinking"),
    ("inference-reasoning-summary", "summary"),
    ("embeddings-type", "no embeddings"),
    ("embeddings-engine", "no embeddings"),
    ("embeddings-dimensions", "no embeddings"),
    ("embeddings-cache-type", "no embeddings"),
    ("embeddings-cache-max-size", "no embeddings"),
    ("embeddings-cache-max-entries", "no embeddings"),
    ("embeddings-cache-directory", "no embeddings"),
    ("rerank-type", "no reranking"),
    ("rerank-engine", "no reranking"),
    ("rerank-max-request-bytes", "no reranking"),
    ("rerank-max-response-bytes", "no reranking"),
    ("message-file", "--history FILE"),
    ("append-message-file", "--history FILE"),
    ("print-inference-settings", "duologue doctor"),
    ("turns-backend", "--turns-dsn"),
    ("timeline-backend", "--timeline-dsn"),
    ("autosave", "--store FILE"),
    ("with-metadata", "--output json"),
    ("full-output", "--output json"),
    ("create-command", "copy the command file"),
    ("create-alias", "copy the command file"),
    ("create-cliopatra", "copy the command file"),
    ("print-yaml", "copy the command file"),
    ("print-parsed-fields", "--print-prompt"),
    ("print-parsed-parameters", "--print-prompt"),
    ("print-schema", "--help"),
    ("long-help", "--help"),
    ("load-fields-from-file", "`default`"),
    ("load-parameters-from-json", "`default`"),
    ("profile-file", "--profile-registries"),
    ("log-config", "--log-level"),
    ("log-area", "--log-level"),
    ("areas", "--log-level"),
    ("strict-log-areas", "--log-level"),
    ("logstash-host", "--log-file"),
    ("api-key", "OPENAI_API_KEY"),
    ("anthropic-api-key", "ANTHROPIC_API_KEY"),
    ("token", "OPENAI_API_KEY"),
];

/// A folder with a command file.
fn folder() -> Folder {
    let folder = Folder::new();
    fs::write(folder.path("f.yaml"), "prompt: hi\n").expect("a file");
    fs::write(folder.path("none.yaml"), "profiles: {}\n").expect("a file");
    fs::write(folder.path("a.png"), b"\x89PNG\r\n\x1a\n").expect("a file");
    folder
}

#[test]
fn each_option_of_pinocchio_is_taken_or_refused_with_advice() {
    let folder = folder();
    let shown = ["run-command", "f.yaml", "--print-prompt"];
    for (name, value) in TAKEN {
        let option = format!("--{name}");
        let ended = run(&folder, &[&shown[..], &[&option, value]].concat());
        assert_eq!(ended.status, 0, "{name} {ended:?}");
    }
    for name in TAKEN_ALONE {
        let option = format!("--{name}");
        let ended = run(&folder, &["run-command", "f.yaml", "--engine", "echo", &option]);
        assert_eq!(ended.status, 0, "{name} {ended:?}");
    }
    for (name, advice) in REFUSED {
        let option = format!("--{name}");
        let ended = run(&folder, &[&shown[..], &[&option, "1"]].concat());
        assert_eq!((ended.status, ended.stdout.as_str()), (2, ""), "{name} {ended:?}");
        let text = ended.stderr.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(text.contains(advice) && !text.contains("declares no such flag"), "{text}");
    }
}

/// A flag of the file has its name, also where that is an option of Pinocchio.
#[test]
fn a_flag_of_a_file_keeps_its_name() {
    let folder = Folder::new();
    let file = "prompt: '{{ .autosave }} {{ index . \"openai-api-key\" }}'\n\
                flags: [{name: autosave, type: string}, {name: openai-api-key, type: string}]\n";
    fs::write(folder.path("f.yaml"), file).expect("a file");
    let words = ["run-command", "f.yaml", "--autosave", "a", "--openai-api-key", "b"];
    let ended = run(&folder, &[&words[..], &["--print-prompt"]].concat());
    assert_eq!((ended.status, ended.stdout.trim_end()), (0, "a b"), "{ended:?}");
}

fn exec(folder: &Folder, words: &[&str], variables: &[(&str, &str)]) -> Ended {
    let mut command = duologue(folder, &[&["exec", "hi"], words].concat());
    command.envs(variables.iter().copied());
    Once::start(command).finish()
}

#[test]
fn keys_and_settings_of_options_reach_the_provider() {
    let folder = Folder::new();
    let provider = Provider::start(vec![says("one"), says("two"), says("three")]);
    let url = provider.base_url();
    let at = ["--ai-engine", "m", "--openai-base-url", &url];
    let of_openai = [&["--openai-api-key", KEY], &at[..]].concat();
    let settings = [
        "--inference-temperature",
        "0.5",
        "--inference-max-response-tokens",
        "9",
        "--inference-seed",
        "7",
    ];
    let ended =
        exec(&folder, &[&of_openai[..], &settings].concat(), &[("OPENAI_API_KEY", "other")]);
    assert_eq!((ended.status, ended.stdout.as_str()), (0, "one\n"), "{ended:?}");
    assert!(ended.stderr.contains("set OPENAI_API_KEY instead"), "{ended:?}");
    assert!(!ended.stderr.contains(KEY), "{ended:?}");
    let request = provider.wait_request(1);
    assert_eq!(request.header("authorization"), Some(format!("Bearer {KEY}").as_str()));
    assert_eq!((&request.body["temperature"], &request.body["seed"]), (&json!(0.5), &json!(7)));
    // It is typed, and so wins over the variable for any provider.
    let ended = exec(&folder, &of_openai, &[("DUOLOGUE_API_KEY", "general")]);
    assert_eq!((ended.status, ended.stdout.as_str()), (0, "two\n"), "{ended:?}");
    let request = provider.wait_request(2);
    assert_eq!(request.header("authorization"), Some(format!("Bearer {KEY}").as_str()));
    // A key of another provider is not sent.
    let words = [&["--engine", "openai", "--claude-api-key", KEY], &at[..]].concat();
    let ended = exec(&folder, &words, &[("OPENAI_API_KEY", "other")]);
    assert_eq!((ended.status, ended.stdout.as_str()), (0, "three\n"), "{ended:?}");
    let request = provider.wait_request(3);
    assert_eq!(request.header("authorization"), Some("Bearer other"));
}

#[test]
fn a_key_chooses_its_provider() {
    let folder = Folder::new();
    for (option, engine) in [
        ("--openai-api-key", "openai"),
        ("--claude-api-key", "anthropic"),
        ("--gemini-api-key", "gemini"),
    ] {
        let ended = run(&folder, &["doctor", option, KEY, "--base-url", "http://127.0.0.1:9/v1"]);
        let chosen = if option == "--openai-api-key" { engine } else { "openai" };
        assert!(ended.stdout.contains(chosen), "{option} {ended:?}");
        assert!(!ended.stdout.contains(KEY) && !ended.stderr.contains(KEY), "{ended:?}");
    }
    let empty = run(&folder, &["exec", "hi", "--openai-api-key", ""]);
    assert!(empty.status == 2 && empty.stderr.contains("leave the option out"), "{empty:?}");
}

/// SQLite's own addresses, as Pinocchio's databases are named.
#[test]
fn a_dsn_of_sqlite_is_a_file() {
    let folder = Folder::new();
    let store = |words: &[&str]| {
        run(&folder, &[&["exec", "hi", "--engine", "echo", "--session-id", "s"], words].concat())
    };
    let dsn = ["--turns-dsn", "file:turns.db?_journal_mode=WAL&_busy_timeout=5000"];
    let ended =
        store(&[&dsn[..], &["--timeline-dsn", "file:timeline%20x.db?cache=shared"]].concat());
    assert_eq!(ended.status, 0, "{ended:?}");
    assert!(folder.path("turns.db").exists() && folder.path("timeline x.db").exists());
    let again = store(&["--turns-db", "turns.db", "--timeline-db", "timeline x.db", "--resume"]);
    assert!(again.stdout.starts_with("Turn 2."), "{again:?}");
    for (dsn, expected) in [
        ("file::memory:?cache=shared", "a database in memory"),
        ("file:x.db?mode=memory", "a database in memory"),
        ("file:x.db?_pragma_key=s3cret", "the parameter _pragma_key"),
        ("file://elsewhere/x.db", "no other host"),
    ] {
        let ended = store(&["--turns-dsn", dsn]);
        assert_eq!(ended.status, 2, "{dsn} {ended:?}");
        assert!(ended.stderr.contains(expected), "{dsn} {ended:?}");
        assert!(
            !ended.stderr.contains("s3cret") && !ended.stderr.contains("PostgreSQL"),
            "{ended:?}"
        );
    }
    assert!(!folder.path("x.db").exists());
}
