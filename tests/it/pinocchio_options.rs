//! Options that people know from Pinocchio's `run-command`: those that choose a provider, a model, a key
//! or a setting are taken, the others are refused with what to write in their place.

use crate::once::{Ended, Once, duologue, run};
use crate::provider::{Provider, Step, says};
use crate::server::{Folder, KEY};
use serde_json::json;
use std::fs;

/// Options that are taken, and a value.
const TAKEN: [(&str, &str); 43] = [
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
    ("timeout", "0"),
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
    ("log-level", "DEBUG"),
    ("log-level", "fatal"),
    ("log-file", "log.txt"),
    ("log-format", "json"),
];

/// Options without a value that are taken.
const TAKEN_ALONE: [&str; 4] = ["interactive", "non-interactive", "log-to-stdout", "with-caller"];

/// Options that Pinocchio takes with `=true` and `=false`, too.
const SWITCHES: [&str; 10] = [
    "chat",
    "force-interactive",
    "interactive",
    "log-to-stdout",
    "non-interactive",
    "print-prompt",
    "resume",
    "rpc",
    "stdin-rpc",
    "with-caller",
];

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
    ("openai-reasoning-summary", "use --reasoning-summary WORD"),
    ("openai-include-reasoning-encrypted", "leave it out"),
    ("openai-stream-include-usage", "leave it out"),
    ("inference-thinking-type", "thinking"),
    ("inference-reasoning-summary", "use --reasoning-summary WORD"),
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

#[test]
fn a_switch_may_have_a_value() {
    let folder = folder();
    let file = ["run-command", "f.yaml", "--engine", "echo"];
    for name in SWITCHES {
        let ended = run(&folder, &[&file[..], &[&format!("--{name}=false")]].concat());
        let seen = (ended.status, ended.stdout.as_str(), ended.stderr.as_str());
        assert_eq!(seen, (0, "Turn 1. You said: hi\n", ""), "{name}");
    }
    let shown = run(&folder, &[&file[..], &["--print-prompt=T"]].concat());
    assert_eq!((shown.status, shown.stdout.as_str()), (0, "hi\n"), "{shown:?}");
    let frames = run(&folder, &[&file[..], &["--rpc=true"]].concat());
    assert!(frames.stdout.starts_with("{\"version\":1,"), "{frames:?}");
    let wrong = run(&folder, &[&file[..], &["--print-prompt=perhaps"]].concat());
    assert_eq!((wrong.status, wrong.stdout.as_str()), (2, ""), "{wrong:?}");
    // The file has a flag of that name, and another whose value looks like one.
    let file = "prompt: '{{ .chat }} {{ .text }}'\n\
                flags: [{name: chat, type: string}, {name: text, type: string}]\n";
    fs::write(folder.path("own.yaml"), file).expect("a file");
    let words = ["--chat=false", "--text", "--resume=true", "--print-prompt"];
    let ended = run(&folder, &[&["run-command", "own.yaml"], &words[..]].concat());
    assert_eq!((ended.status, ended.stdout.as_str()), (0, "false --resume=true\n"), "{ended:?}");
}

#[test]
fn an_option_that_is_not_in_help_is_suggested_only_for_one_like_it() {
    for (typed, suggested) in [
        // Who followed that tip would lose the conversation.
        ("--no-stream", None),
        ("--timeout-s", None),
        ("--base-ulr", Some("'--base-url'")),
        ("--ai-temprature", Some("'--ai-temperature'")),
        ("--claude-base", Some("'--claude-base-url'")),
    ] {
        let ended = run(&Folder::new(), &["chat", "hi", typed]);
        assert_eq!(ended.status, 2, "{ended:?}");
        let tip = ended.stderr.lines().find(|line| line.contains("similar argument"));
        assert_eq!(tip.is_some(), suggested.is_some(), "{typed} {ended:?}");
        assert!(
            tip.is_none_or(|tip| suggested.is_some_and(|name| tip.ends_with(name))),
            "{ended:?}"
        );
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

/// A provider that refuses each of so many requests.
fn refusing(requests: usize) -> Provider {
    Provider::start(vec![vec![Step::Status(401, Vec::new(), "{}".to_owned())]; requests])
}

#[test]
fn an_address_is_for_its_own_provider() {
    let folder = Folder::new();
    let openai = Provider::start(vec![says("one")]);
    let claude = refusing(5);
    let (url, other) = (openai.base_url(), claude.base_url());
    let both = ["--ai-engine", "m", "--openai-base-url", &url, "--claude-base-url", &other];
    let keys = [("OPENAI_API_KEY", "of-openai"), ("ANTHROPIC_API_KEY", KEY)];
    let asked = |words: &[&str]| exec(&folder, words, &keys);
    let ended = asked(&both);
    assert_eq!((ended.status, ended.stdout.as_str()), (0, "one\n"), "{ended:?}");
    assert!(ended.stderr.contains("--claude-base-url is not used"), "{ended:?}");
    let profiles = "profiles: {c: {engine: anthropic, model: m}}\n";
    fs::write(folder.path("p.yaml"), profiles).expect("a file");
    let cases: [&[&str]; 4] = [
        &[&["--ai-api-type", "claude"], &both[..]].concat(),
        &[&["--profile-registries", "p.yaml", "--profile", "c"], &both[..]].concat(),
        // It chooses its provider, so that no other key is sent there.
        &["--ai-engine", "m", "--claude-base-url", &other],
        // The option for any provider wins.
        &["--ai-api-type=claude", "--base-url", &other, "--claude-base-url", &url, "-m", "m"],
    ];
    for (number, words) in cases.into_iter().enumerate() {
        let ended = asked(words);
        assert_eq!(ended.status, 1, "{words:?} {ended:?}");
        let request = claude.wait_request(number + 1);
        assert!(request.path.ends_with("/messages"), "{words:?} {request:?}");
        assert_eq!(request.header("x-api-key"), Some(KEY), "{words:?}");
        assert_eq!(request.header("authorization"), None, "{words:?}");
    }
    // So does the engine that a command file is written for.
    let file = "prompt: hi\nfactories: {chat: {api_type: claude, engine: m}}\n";
    fs::write(folder.path("f.yaml"), file).expect("a file");
    let mut command = duologue(&folder, &[&["run-command", "f.yaml"], &both[2..]].concat());
    let ended = Once::start({
        command.envs(keys);
        command
    });
    assert_eq!(ended.finish().status, 1);
    assert!(claude.wait_request(5).path.ends_with("/messages"));
    let doctor =
        run(&folder, &[&["doctor", "--offline", "--ai-api-type=claude"], &both[..]].concat());
    assert!(doctor.stdout.contains("(--claude-base-url)"), "{doctor:?}");
}

#[test]
fn a_source_of_profiles_may_have_its_kind() {
    let folder = Folder::new();
    let profiles = "slug: r\nprofiles:\n  a:\n    slug: a\n    inference_settings:\n      chat: {engine: tiny, \
                    api_type: gemini}\n";
    fs::write(folder.path("r.yaml"), profiles).expect("a file");
    fs::write(folder.path("r.db"), b"SQLite format 3\0\x10\0\xff").expect("a file");
    let shown =
        |source: &str| run(&folder, &["profiles", "show", "a", "--profile-registries", source]);
    for source in ["r.yaml", "yaml:r.yaml", "yaml://r.yaml"] {
        let ended = shown(source);
        assert!(ended.status == 0 && ended.stdout.contains("tiny"), "{source} {ended:?}");
    }
    for source in ["r.db", "sqlite:r.db", "sqlite-dsn:file:r.db"] {
        let ended = shown(source);
        assert!(ended.status == 2 && ended.stderr.contains("it is a database"), "{ended:?}");
    }
    assert!(shown("yaml:").stderr.contains("it names no file"));
}

#[test]
fn the_default_profile_of_a_named_file_is_used_where_nothing_else_is_chosen() {
    let folder = Folder::new();
    let provider = Provider::start(vec![says("one"), says("two"), says("three")]);
    let url = provider.base_url();
    let profiles = format!(
        "slug: r\nprofiles:\n  default:\n    slug: default\n    inference_settings:\n      chat: {{engine: \
         tiny, api_type: openai}}\n      api: {{base_urls: {{openai-base-url: '{url}'}}}}\n"
    );
    fs::write(folder.path("r.yaml"), &profiles).expect("a file");
    let named = ["--profile-registries", "r.yaml"];
    let ended = exec(&folder, &named, &[]);
    assert_eq!((ended.status, ended.stdout.as_str()), (0, "one\n"), "{ended:?}");
    assert_eq!(provider.wait_request(1).body["model"], "tiny");
    let ended = exec(&folder, &[&named[..], &["--ai-engine", "other"]].concat(), &[]);
    assert_eq!((ended.status, ended.stdout.as_str()), (0, "two\n"), "{ended:?}");
    assert_eq!(provider.wait_request(2).body["model"], "other");
    let chosen = [&named[..], &["--engine", "openai", "-m", "m", "--base-url", &url]].concat();
    assert_eq!(exec(&folder, &chosen, &[]).stdout, "three\n");
    assert_eq!(provider.wait_request(3).body["model"], "m");
    assert!(exec(&folder, &["--engine", "echo"], &[]).stdout.starts_with("Turn 1."));
    let doctor = run(&folder, &[&["doctor", "--offline"], &named[..]].concat());
    assert!(doctor.stdout.contains("model: tiny (profile default"), "{doctor:?}");
    // That of a project was not named.
    fs::create_dir(folder.path(".duologue")).expect("a folder");
    fs::rename(folder.path("r.yaml"), folder.path(".duologue/profiles.yaml")).expect("a file");
    fs::write(folder.path("none.yaml"), "profiles: {}\n").expect("a file");
    let ended = exec(&folder, &["--profile-registries", "none.yaml"], &[]);
    assert!(ended.status == 2 && ended.stderr.contains("no profile is chosen"), "{ended:?}");
}

/// It may hold all that is needed, so the built-in engine does not answer in its place.
#[test]
fn a_file_of_settings_that_is_not_read_is_an_error_where_nothing_else_is() {
    let folder = folder();
    let words = ["run-command", "f.yaml", "--config-file", "x.yaml"];
    let ended = run(&folder, &words);
    assert_eq!((ended.status, ended.stdout.as_str()), (2, ""), "{ended:?}");
    assert!(ended.stderr.contains("--config-file names Pinocchio's settings"), "{ended:?}");
    assert_eq!(run(&folder, &[&words[..], &["--engine", "echo"]].concat()).status, 0);
}

#[test]
fn an_address_that_is_lost_is_an_error() {
    let ended = run(&Folder::new(), &["exec", "hi", "--openai-base-url", ""]);
    assert!(ended.status == 2 && ended.stdout.is_empty(), "{ended:?}");
    assert!(ended.stderr.contains("'--openai-base-url <URL>': it is empty"), "{ended:?}");
}

#[test]
fn a_setting_of_one_engine_is_not_for_another() {
    let folder = Folder::new();
    let provider = Provider::start(vec![
        says("one"),
        vec![Step::Status(401, Vec::new(), "{}".to_owned())],
        says("three"),
    ]);
    let url = provider.base_url();
    let efforts = [
        "--openai-chat-reasoning-effort",
        "high",
        "--openai-reasoning-effort",
        "low",
        "--gemini-thinking-level",
        "MINIMAL",
    ];
    let at = ["--ai-engine", "m", "--openai-base-url", &url];
    let asked = |words: &[&str]| {
        exec(&folder, &[&at[..], &efforts, words].concat(), &[("OPENAI_API_KEY", KEY)])
    };
    let twice = ["--ai-temperature", "0.1", "--inference-temperature", "0.2"];
    let ended = asked(&[&twice[..], &["--ai-stop", "a,b", "--ai-stop", "\"c,d\""]].concat());
    assert_eq!((ended.status, ended.stdout.as_str()), (0, "one\n"), "{ended:?}");
    let warning = "--openai-reasoning-effort is not used: it is for the engine responses, and the \
                   engine is openai";
    assert!(ended.stderr.contains(warning), "{ended:?}");
    let body = provider.wait_request(1).body;
    assert_eq!(body["reasoning_effort"], "high", "{body}");
    assert_eq!((&body["temperature"], &body["stop"]), (&json!(0.2), &json!(["a", "b", "c,d"])));
    assert_eq!(asked(&["--ai-api-type", "open-responses"]).status, 1);
    assert_eq!(provider.wait_request(2).body["reasoning"]["effort"], "low");
    // That of every engine wins.
    let ended = asked(&["--inference-reasoning-effort", "medium"]);
    assert_eq!(ended.status, 0, "{ended:?}");
    assert_eq!(provider.wait_request(3).body["reasoning_effort"], "medium");
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
