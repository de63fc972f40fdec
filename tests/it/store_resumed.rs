//! A stored conversation goes on with the provider, the model and the tools that it had.

use crate::chat::{Person, chat};
use crate::mcp_servers::{assert_gone, config, mark};
use crate::once::{Ended, Once, duologue, run};
use crate::provider::{Provider, says};
use crate::server::{Folder, KEY};
use serde_json::{Value, json};
use std::fs;
use std::process::Command;

/// `duologue <words>` in an environment that leads to `provider`, with this key.
fn at(folder: &Folder, provider: &Provider, key: &str, words: &[&str]) -> Command {
    let mut command = duologue(folder, words);
    command.env("HOME", folder.path("")).env("DUOLOGUE_STORE", folder.path("s.db"));
    command.env("OPENAI_API_KEY", key).env("OPENAI_BASE_URL", provider.base_url());
    command.env("DUOLOGUE_MODEL", "of-environment");
    command
}

fn ended(command: Command) -> Ended {
    Once::start(command).finish()
}

/// A conversation with `provider` and the model `first`.
fn begun(folder: &Folder, provider: &Provider) {
    // None of this folder can be continued, so one begins.
    let words = ["exec", "-c", "my secret", "--engine", "openai", "--model", "first"];
    let ended = ended(at(folder, provider, KEY, &words));
    assert_eq!(ended.status, 0, "{ended:?}");
    assert!(ended.stderr.contains("so a new one begins"), "{ended:?}");
}

fn models(provider: &Provider) -> Vec<Value> {
    let numbers = 1..=provider.requests();
    numbers.map(|number| provider.wait_request(number).body["model"].clone()).collect()
}

fn warnings(ended: &Ended) -> Vec<Value> {
    let document: Value = serde_json::from_str(&ended.stdout).expect("a document");
    let warnings = document["warnings"].as_array().cloned().unwrap_or_default();
    warnings.iter().map(|it| it["code"].clone()).collect()
}

#[test]
fn the_environment_of_another_provider_gets_nothing() {
    let folder = Folder::new();
    let (one, other) =
        (Provider::start(vec![says("a"), says("b"), says("c")]), Provider::start(vec![]));
    begun(&folder, &one);
    let words = ["exec", "-c", "again", "--output", "json"];
    let again = ended(at(&folder, &other, KEY, &words));
    assert_eq!((again.status, again.stderr.as_str()), (0, ""), "{again:?}");
    assert_eq!(warnings(&again), [json!(null); 0]);
    // Also where the other environment has another engine.
    let mut command = duologue(&folder, &["exec", "-c", "and again"]);
    command.env("DUOLOGUE_STORE", folder.path("s.db")).env("OPENAI_API_KEY", KEY);
    command.env("DUOLOGUE_ENGINE", "anthropic").env("ANTHROPIC_API_KEY", "sk-other");
    assert_eq!(ended(command).status, 0);
    assert_eq!((models(&one), other.requests()), (vec![json!("first"); 3], 0));
    assert_eq!(one.wait_request(3).body["messages"].as_array().map(Vec::len), Some(5));
}

/// A key is sent where the conversation had it, or to the address that it is meant for.
#[test]
fn another_key_is_not_sent_to_the_provider_of_the_conversation() {
    let folder = Folder::new();
    let (one, other) = (Provider::start(vec![says("a"), says("b")]), Provider::start(vec![]));
    begun(&folder, &one);
    let refused = ended(at(&folder, &other, "sk-of-another-provider", &["exec", "-c", "again"]));
    assert_eq!((refused.status, one.requests(), other.requests()), (2, 1, 0), "{refused:?}");
    assert!(refused.stderr.contains("OPENAI_API_KEY"), "{refused:?}");
    assert!(!refused.stderr.contains("sk-of"), "{refused:?}");
    // The environment names the same address, so the key is for it.
    let renewed = ended(at(&folder, &one, "sk-renewed", &["exec", "-c", "again"]));
    assert_eq!(renewed.status, 0, "{renewed:?}");
    assert_eq!(one.wait_request(2).header("authorization"), Some("Bearer sk-renewed"));
    let stored = fs::read(folder.path("s.db")).expect("the store");
    for key in [KEY, "sk-renewed"] {
        let has_key = stored.windows(key.len()).any(|bytes| bytes == key.as_bytes());
        assert!(!has_key, "a key is stored");
    }
}

#[test]
fn a_typed_address_or_model_is_used_and_reported() {
    let folder = Folder::new();
    let one = Provider::start(vec![says("a"), says("b")]);
    let other = Provider::start(vec![says("c"), says("d")]);
    begun(&folder, &one);
    let words = ["exec", "-c", "again", "--output", "json"];
    let typed = ["--model", "second"];
    let changed = ended(at(&folder, &other, KEY, &[&words[..], &typed].concat()));
    assert_eq!(
        (warnings(&changed), one.requests()),
        (vec![json!("model_changed")], 2),
        "{changed:?}"
    );
    let base_url = other.base_url();
    let typed = ["--base-url", &base_url];
    let changed = ended(at(&folder, &one, KEY, &[&words[..], &typed].concat()));
    assert_eq!(warnings(&changed), [json!("provider_changed")], "{changed:?}");
    assert!(changed.stderr.contains("gets all of it"), "{changed:?}");
    // From here on it is with the other one.
    let again = ended(at(&folder, &one, KEY, &words));
    assert_eq!(warnings(&again), [json!(null); 0], "{again:?}");
    assert_eq!((models(&one).len(), models(&other)), (2, vec![json!("second"); 2]));
}

/// A model in a command file wins over the stored one, unless the file is written for another engine.
#[test]
fn the_model_of_a_command_file_is_used_or_a_line_says_why_not() {
    let folder = Folder::new();
    let provider = Provider::start(vec![says("a"), says("b"), says("c")]);
    begun(&folder, &provider);
    let own = "name: ask\nprompt: again\nsettings: {model: m9, temperature: 0.3}\n";
    fs::write(folder.path("own.yaml"), own).expect("a file");
    let file = folder.name("own.yaml");
    let words = ["run-command", &file, "--continue", "--output", "json"];
    let changed = ended(at(&folder, &provider, KEY, &words));
    assert_eq!((changed.status, warnings(&changed)), (0, vec![json!("model_changed")]));
    assert_eq!(provider.wait_request(2).body["temperature"], json!(0.3));
    let foreign =
        "name: ask\nprompt: again\nfactories: {chat: {engine: claude-x, api_type: claude}}\n";
    fs::write(folder.path("foreign.yaml"), foreign).expect("a file");
    let file = folder.name("foreign.yaml");
    let kept = ended(at(&folder, &provider, KEY, &["run-command", &file, "--continue"]));
    assert_eq!(kept.status, 0, "{kept:?}");
    assert!(kept.stderr.contains("claude-x of the engine anthropic"), "{kept:?}");
    assert_eq!(models(&provider), ["first", "m9", "m9"]);
}

/// As one that was imported: frames name no provider.
#[test]
fn a_session_that_does_not_say_its_provider_says_which_one_it_goes_on_with() {
    let folder = Folder::new();
    let asked = ["exec", "--rpc", "hello", "--engine", "echo"];
    fs::write(folder.path("lines"), run(&folder, &asked).stdout).expect("a file");
    let imported = ["sessions", "import", "lines", "--as", "s", "--store", &folder.name("s.db")];
    assert_eq!(run(&folder, &imported).status, 0);
    let provider = Provider::start(vec![says("a"), says("b")]);
    let words = ["exec", "again", "--session-id", "s", "--resume", "--output", "json"];
    let first = ended(at(&folder, &provider, KEY, &words));
    assert_eq!((first.status, warnings(&first)), (0, vec![json!("provider_unrecorded")]));
    let host = provider.base_url().replace("http://", "").replace("/v1", "");
    for part in ["without the name of a provider", &host, "openai", "of-environment"] {
        assert!(first.stderr.contains(part), "{part}: {first:?}");
    }
    assert_eq!(first.stderr.lines().count(), 1, "{first:?}");
    // From here on it says so.
    let again = ended(at(&folder, &provider, KEY, &words));
    assert_eq!((again.status, again.stderr.as_str()), (0, ""), "{again:?}");
    assert_eq!(warnings(&again), [json!(null); 0]);
}

/// A conversation with the built-in engine says nothing while it stays with it, and names the provider
/// that gets it later.
#[test]
fn a_session_without_a_provider_goes_on_quietly_until_it_has_one() {
    let folder = Folder::new();
    let run = |words: &[&str]| ended(duologue(&folder, &[words, &["--store", "s.db"]].concat()));
    assert_eq!(run(&["exec", "hi", "--session-id", "s"]).status, 0);
    for _ in 0..2 {
        let again = run(&["exec", "again", "--session-id", "s", "--resume"]);
        assert_eq!(
            (again.status, again.stderr.contains("gets all of it")),
            (0, false),
            "{again:?}"
        );
    }
    let provider = Provider::start(vec![says("a")]);
    let words = ["exec", "again", "--session-id", "s", "--resume", "--output", "json"];
    let with = ended(at(&folder, &provider, KEY, &words));
    assert_eq!((with.status, warnings(&with)), (0, vec![json!("provider_unrecorded")]));
}

#[test]
fn a_profile_goes_on_or_its_absence_is_an_error() {
    let folder = Folder::new();
    let provider = Provider::start(["a", "b", "c", "d"].map(says).to_vec());
    let profile = format!(
        "profiles:\n  mine:\n    engine: openai\n    model: m\n    base-url: {}\n    key-variable: MY_KEY\n",
        provider.base_url()
    );
    fs::write(folder.path("profiles.yaml"), profile).expect("a file");
    let run = |words: &[&str]| {
        let mut command = duologue(&folder, words);
        command.env("DUOLOGUE_STORE", folder.path("s.db")).env("MY_KEY", "sk-mine");
        command.env("HOME", folder.path("")).env("OPENAI_API_KEY", "sk-other");
        ended(command)
    };
    let typed = ["--profile", "mine", "--profile-registries", "profiles.yaml"];
    let begun = run(&[&["exec", "-c", "hi"], &typed[..]].concat());
    assert_eq!(begun.status, 0, "{begun:?}");
    assert_eq!(run(&["exec", "-c", "again"]).status, 0);
    let key = |number| provider.wait_request(number).header("authorization").map(str::to_owned);
    assert_eq!(
        [key(1), key(2)],
        [Some("Bearer sk-mine".to_owned()), Some("Bearer sk-mine".to_owned())]
    );
    fs::write(folder.path("profiles.yaml"), "profiles: {}\n").expect("a file");
    let gone = run(&["exec", "-c", "again"]);
    assert_eq!((gone.status, provider.requests()), (2, 2), "{gone:?}");
    assert!(gone.stderr.contains("begun with the profile `mine`, which is gone"), "{gone:?}");
    assert!(gone.stderr.contains("or --engine, --base-url and --model"), "{gone:?}");
    // What is said there can be done, also with the engine that the profile had.
    let url = provider.base_url();
    let typed = ["--engine", "openai", "--base-url", &url, "--model", "m"];
    for missing in ["an empty file", "no file"] {
        let again = run(&[&["exec", "-c", "again"], &typed[..]].concat());
        assert_eq!(again.status, 0, "{missing}: {again:?}");
        fs::remove_file(folder.path("profiles.yaml")).ok();
    }
}

#[test]
fn tool_servers_go_on_and_a_printed_command_works_elsewhere() {
    let (folder, elsewhere, mark) = (Folder::new(), Folder::new(), mark());
    fs::write(folder.path("servers"), config(&mark, &["echo"], &json!({}))).expect("a file");
    let options = ["--mcp-config", "servers", "--deny", "act*", "--store", "chat.db"];
    let mut once = Once::start(chat(&folder, &options));
    once.write("hello\n");
    let begun = once.finish();
    let command = begun.stderr.lines().last().and_then(|line| line.split_once("duologue "));
    let words: Vec<_> = command.expect("the command").1.split(' ').collect();
    let mut once = Once::start(duologue(&elsewhere, &words));
    once.write("/tools\nmore\n");
    let again = once.finish();
    assert!(again.stdout.contains("echo (ready)\n  act\n"), "{again:?}");
    assert!(again.stdout.contains("Turn 2. You said: more"), "{again:?}");
    assert_gone(&mark);
}

#[test]
fn a_person_is_asked_before_another_provider_gets_the_conversation() {
    let folder = Folder::new();
    let one = Provider::start(vec![says("a")]);
    let other = Provider::start(vec![says("there"), says("again")]);
    begun(&folder, &one);
    let base_url = other.base_url();
    let words = ["chat", "-c", "first thing", "--base-url", &base_url];
    let mut person = Person::start(at(&folder, &one, KEY, &words));
    person.sees_words("gets all of it");
    person.sees("> first thing");
    assert_eq!(other.requests(), 0);
    // Another key takes the question back.
    person.types("!");
    person.sees("> first thing!");
    person.types("\r");
    let hosts = [&one, &other].map(|it| it.base_url().replace("http://", "").replace("/v1", ""));
    person.sees_words(&format!(
        "Enter again sends the prompt, Esc does not: this conversation was with {} · openai · \
         first so far; from the next prompt on {} · openai · first gets all of it",
        hosts[0], hosts[1]
    ));
    assert_eq!(other.requests(), 0);
    crate::process::eventually("the question can be read, and is answered", || {
        person.types("\r");
        (other.requests() > 0).then_some(())
    });
    person.answered("there");
    person.types("more\r");
    person.answered("again");
    person.types("/quit\r");
    assert_eq!(person.ends().0, 0);
    assert_eq!((one.requests(), other.requests()), (1, 2));
}

/// An import does not say which provider had the conversation.
#[test]
fn a_person_is_asked_before_an_imported_conversation_goes_to_a_host() {
    let folder = Folder::new();
    let provider = Provider::start(vec![says("there")]);
    let recorded = ended(at(&folder, &provider, KEY, &["exec", "hi", "--engine", "echo", "--rpc"]));
    fs::write(folder.path("r.jsonl"), recorded.stdout).expect("a file");
    let imported = ["sessions", "import", "r.jsonl", "--as", "im"];
    let imported = ended(at(&folder, &provider, KEY, &imported));
    assert_eq!(imported.status, 0, "{imported:?}");
    let words = ["chat", "--session-id", "im", "--resume"];
    let mut person = Person::start(at(&folder, &provider, KEY, &words));
    person.sees_words("without the name of a provider");
    person.types("again\r");
    person.sees_words("Enter again sends the prompt, Esc does not");
    assert_eq!(provider.requests(), 0);
    crate::process::eventually("the question can be read, and is answered", || {
        person.types("\r");
        (provider.requests() > 0).then_some(())
    });
    person.answered("there");
    person.types("/quit\r");
    assert_eq!(person.ends().0, 0);
}

/// What was chosen is beside the log for speed alone: without it, it is made of the log.
#[test]
fn what_was_chosen_is_in_the_log() {
    for gone in ["NULL", "X'FF'"] {
        let folder = Folder::new();
        let provider = Provider::start(vec![says("a"), says("b")]);
        begun(&folder, &provider);
        let store = rusqlite::Connection::open(folder.path("s.db")).expect("a store");
        let sql = format!("UPDATE sessions SET choices = {gone}");
        assert_eq!(store.execute(&sql, []).expect("a row"), 1);
        drop(store);
        let again = ended(at(&folder, &provider, KEY, &["exec", "again", "--continue"]));
        assert_eq!((again.status, again.stderr.as_str()), (0, ""), "{again:?}");
        assert_eq!(models(&provider), ["first", "first"], "{gone}");
    }
}

/// What the person agrees to is what the line stands for.
#[test]
fn a_prompt_of_a_command_file_goes_to_another_provider_as_itself() {
    let folder = Folder::new();
    let one = Provider::start(vec![says("a")]);
    let other = Provider::start(vec![says("All of it.")]);
    begun(&folder, &one);
    let commands = folder.path(".config/duologue/commands");
    fs::create_dir_all(&commands).expect("a folder");
    fs::write(commands.join("sumup.yaml"), "prompt: Sum it up.\n").expect("a file");
    let base_url = other.base_url();
    let words = ["chat", "-c", "--plain", "--base-url", &base_url];
    let mut person = Person::start(at(&folder, &one, KEY, &words));
    person.sees_words("gets all of it");
    person.types("/sumup\n");
    person.sees_words("Write y to send the prompt, or n");
    assert_eq!(other.requests(), 0);
    person.types("y\n");
    person.sees("All of it.");
    let sent = other.wait_request(1).body["messages"].to_string();
    assert!(sent.contains("Sum it up.") && !sent.contains("/sumup"), "{sent}");
    person.types("\u{4}");
    assert_eq!(person.ends().0, 0);
}
