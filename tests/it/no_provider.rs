//! Runs without a provider: the built-in engine answers for a person who tries the program out, and
//! says so in every output; a job that lost a part of its configuration gets an error.

use crate::chat::Person;
use crate::once::{Ended, Once, duologue, run};
use crate::provider::{Provider, says};
use crate::server::{Folder, KEY};
use serde_json::Value;
use std::fs;

fn exec(folder: &Folder, options: &[&str], variables: &[(&str, &str)]) -> Ended {
    let mut command = duologue(folder, &[&["exec", "hi"], options].concat());
    command.env("HOME", folder.path("")).envs(variables.iter().copied());
    let mut once = Once::start(command);
    once.close_stdin();
    once.finish()
}

#[test]
fn the_answer_of_the_built_in_engine_comes_with_a_warning() {
    let folder = Folder::new();
    let ended = exec(&folder, &["--output", "json"], &[]);
    assert_eq!(ended.status, 0, "{ended:?}");
    let document: Value = serde_json::from_str(&ended.stdout).expect("JSON");
    assert_eq!(document["warnings"][0]["code"], "no_provider", "{document}");
    let message = document["warnings"][0]["message"].to_string();
    assert!(message.contains("--base-url"), "{document}");
    let yaml = exec(&folder, &["--output", "yaml"], &[]).stdout;
    assert!(yaml.contains("code: no_provider"), "{yaml}");
    let stream = exec(&folder, &["--json-stream"], &[]).stdout;
    let events: Vec<Value> =
        stream.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(events[0]["type"], "start", "{stream}");
    assert_eq!(events[1]["payload"]["status"], "warning", "{stream}");
    // Who asks for this engine knows.
    let named = exec(&folder, &["--output", "json", "--engine", "echo"], &[]);
    let document: Value = serde_json::from_str(&named.stdout).expect("JSON");
    assert_eq!((named.status, document["warnings"].as_array().map(Vec::len)), (0, Some(0)));
}

/// A job can refuse to take the words of the built-in engine for an answer.
#[test]
fn a_provider_can_be_required() {
    let folder = Folder::new();
    let refused = |ended: Ended| {
        assert_eq!((ended.status, ended.stdout.as_str()), (2, ""), "{ended:?}");
        assert!(ended.stderr.contains("no provider is configured"), "{ended:?}");
    };
    refused(exec(&folder, &["--require-provider"], &[]));
    refused(exec(&folder, &[], &[("DUOLOGUE_REQUIRE_PROVIDER", "true")]));
    refused(run(&folder, &["chat", "--require-provider", "--plain"]));
    assert_eq!(exec(&folder, &["--require-provider", "--engine", "echo"], &[]).status, 0);
    let mut command = duologue(&folder, &["rpc", "--require-provider"]);
    command.env("HOME", folder.path(""));
    let mut once = Once::start(command);
    once.offer("{\"submit\":{\"prompt\":\"hi\"}}\n");
    let ended = once.finish();
    assert!(ended.status == 2 && ended.stdout.contains("no provider is configured"), "{ended:?}");
}

/// A part of a provider's configuration is an error that names it, unless the engine is named.
#[track_caller]
fn check_incomplete(folder: &Folder, options: &[&str], variable: (&str, &str), part: &str) {
    for output in ["text", "json"] {
        let options = [options, &["--output", output]].concat();
        let ended = exec(folder, &options, &[variable]);
        assert_eq!(ended.status, 2, "{variable:?}: {ended:?}");
        assert!(ended.stderr.contains(part), "{variable:?} {part}: {ended:?}");
        assert!(!ended.stdout.contains("You said"), "{variable:?}: {ended:?}");
        assert_eq!(ended.stdout.contains("\"ok\": false"), output == "json", "{ended:?}");
        let named = exec(folder, &[&options[..], &["--engine", "echo"]].concat(), &[variable]);
        assert_eq!(named.status, 0, "{variable:?}: {named:?}");
        assert!(named.stdout.contains("You said: hi"), "{variable:?}: {named:?}");
    }
}

#[test]
fn a_part_of_a_configuration_is_an_error_where_nobody_is_at_a_terminal() {
    let folder = Folder::new();
    for name in [
        "DUOLOGUE_API_KEY",
        "OPENAI_API_KEY",
        "OPENAI_BASE_URL",
        "ANTHROPIC_API_KEY",
        "GEMINI_API_KEY",
        "DUOLOGUE_MODEL",
        "DUOLOGUE_BASE_URL",
        "DUOLOGUE_PROFILE",
    ] {
        check_incomplete(&folder, &[], (name, ""), name);
        check_incomplete(&folder, &[], (name, " "), "is set but empty");
    }
    check_incomplete(&folder, &[], ("DUOLOGUE_ENGINE", ""), "DUOLOGUE_ENGINE is set but empty");
    let url = "http://127.0.0.1:1";
    for (name, choice) in [
        ("ANTHROPIC_BASE_URL", "--engine anthropic"),
        ("GEMINI_BASE_URL", "--engine gemini"),
        ("GEMINI_MODEL", "--engine gemini"),
        ("OLLAMA_HOST", "--engine ollama"),
        ("OLLAMA_API_KEY", "--engine ollama"),
        ("GOOGLE_API_KEY", "--engine gemini"),
        ("AZURE_OPENAI_API_KEY", "its key goes into DUOLOGUE_API_KEY"),
    ] {
        let part = format!("{name} is set, but no engine is chosen ({choice}");
        check_incomplete(&folder, &[], (name, url), &part);
    }
}

/// A person at a terminal is answered, and `doctor` there says that a program would not be.
#[test]
fn doctor_at_a_terminal_says_what_a_prompt_there_does() {
    let folder = Folder::new();
    let at_terminal = |words: &[&str]| {
        let mut command = duologue(&folder, words);
        command.env("HOME", folder.path("")).env("GOOGLE_API_KEY", "x").env("TERM", "xterm");
        let person = Person::sized(command, 240, 40);
        let (status, screen) = person.ends();
        (status, screen.lines())
    };
    let (status, asked) = at_terminal(&["exec", "hi"]);
    assert!(status == 0 && asked.contains("You said: hi"), "{asked}");
    let (status, doctor) = at_terminal(&["doctor", "--offline"]);
    assert!(status == 0 && doctor.contains("note   settings: no provider is"), "{doctor}");
    assert!(doctor.contains("GOOGLE_API_KEY is set"), "{doctor}");
    let (status, required) = at_terminal(&["doctor", "--offline", "--require-provider"]);
    assert!(status == 1 && required.contains("wrong  settings: no provider is"), "{required}");
}

/// The value of an option is lost, as where a shell's variable is not set: no other provider gets the prompt.
#[test]
fn an_option_that_is_typed_and_empty_is_an_error_whatever_else_is_configured() {
    let folder = Folder::new();
    let provider = Provider::start(vec![says("another provider")]);
    let check = |words: &[&str], option: &str, value: &str| {
        let mut command = duologue(&folder, &[words, &[option, value]].concat());
        command.env("HOME", folder.path("")).env("OPENAI_API_KEY", KEY);
        command.env("OPENAI_BASE_URL", provider.base_url());
        let mut once = Once::start(command);
        match words[0] {
            "rpc" => once.offer("{\"requestId\":\"r\",\"submit\":{\"prompt\":\"hi\"}}\n"),
            _ => once.close_stdin(),
        }
        let ended = once.finish();
        assert_eq!(ended.status, 2, "{words:?} {option}: {ended:?}");
        let all = format!("{}{}", ended.stdout, ended.stderr);
        assert!(
            all.contains(option) && all.contains("it is empty"),
            "{words:?} {option}: {ended:?}"
        );
    };
    for option in [
        "--base-url",
        "--profile",
        "--model",
        "--temperature",
        "--top-p",
        "--max-tokens",
        "--seed",
        "--reasoning-effort",
        "--reasoning-budget",
        "--reasoning-summary",
        "--compact-model",
        "--openai-base-url",
    ] {
        check(&["exec", "hi"], option, "");
        check(&["exec", "hi", "--engine", "echo"], option, " ");
        check(&["rpc"], option, "");
    }
    check(&["rpc"], "--base-url", " ");
    assert_eq!(provider.requests(), 0);
}

/// `words` with a variable and with input: their status is 2 and `part` is in the error, and nothing is
/// answered; with the engine named, all is well.
#[track_caller]
fn check_conversation(folder: &Folder, words: &[&str], variable: (&str, &str), part: &str) {
    let start = |words: &[&str]| {
        let mut command = duologue(folder, words);
        command.env("HOME", folder.path("")).envs([variable]);
        let mut once = Once::start(command);
        once.offer(match words[0] {
            "chat" => "hi\n",
            _ => "{\"requestId\":\"r\",\"submit\":{\"prompt\":\"hi\"}}\n",
        });
        once.finish()
    };
    let ended = start(words);
    assert_eq!(ended.status, 2, "{words:?} {variable:?}: {ended:?}");
    assert!(ended.stderr.contains(part), "{words:?} {part}: {ended:?}");
    assert!(ended.stderr.contains("--engine echo"), "{words:?}: {ended:?}");
    assert!(!ended.stdout.contains("You said"), "{words:?}: {ended:?}");
    let named = start(&[words, &["--engine", "echo"]].concat());
    assert_eq!(named.status, 0, "{words:?}: {named:?}");
    assert!(named.stdout.contains("You said: hi"), "{words:?}: {named:?}");
}

#[test]
fn a_part_of_a_configuration_is_an_error_for_clients_and_piped_chats_too() {
    let with_stdin = ["exec", "--rpc", "--stdin-rpc"];
    let with_file = Folder::new();
    fs::create_dir_all(with_file.path(".config/duologue")).expect("a folder");
    let path = with_file.path(".config/duologue/profiles.yaml");
    fs::write(path, "profiles:\n  brief: {system: Be brief.}\n").expect("a file");
    for words in [&["rpc"][..], &["chat"], &with_stdin] {
        let folder = Folder::new();
        check_conversation(
            &folder,
            words,
            ("OPENAI_API_KEY", ""),
            "OPENAI_API_KEY is set but empty",
        );
        let url = ("ANTHROPIC_BASE_URL", "http://127.0.0.1:1");
        check_conversation(
            &folder,
            words,
            url,
            "ANTHROPIC_BASE_URL is set, but no engine is chosen",
        );
    }
    let none = ("DUOLOGUE_LOG_LEVEL", "warn");
    check_conversation(&with_file, &["chat"], none, "no profile is chosen");
}

#[test]
fn a_file_of_profiles_is_an_error_where_nobody_is_at_a_terminal() {
    let folder = Folder::new();
    let none = ("DUOLOGUE_LOG_LEVEL", "warn");
    fs::create_dir_all(folder.path(".config/duologue")).expect("a folder");
    let path = folder.path(".config/duologue/profiles.yaml");
    fs::write(&path, "profiles:\n  brief: {system: Be brief.}\n").expect("a file");
    check_incomplete(&folder, &[], none, "no profile is chosen");
    check_incomplete(&folder, &[], none, ".config/duologue/profiles.yaml");
    check_incomplete(&folder, &["--profile", "brief"], none, "the profile brief names no provider");
    fs::write(&path, "profiles: [").expect("a file");
    let ended = exec(&folder, &[], &[]);
    assert_eq!(ended.status, 2, "{ended:?}");
    assert!(ended.stderr.contains("profiles.yaml"), "{ended:?}");
}
