//! The profile that is used where none is chosen, and `profiles init`, which writes one.

use crate::chat::Person;
use crate::once::Ended;
use crate::process::eventually;
use crate::profile_commands::answers;
use crate::profiles::{KEY, Scene};
use crate::provider::{Provider, Step, says};
use serde_json::Value;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::Command;

const DEMO: &str =
    "default: demo\nprofiles:\n  demo: {engine: echo}\n  other: {engine: echo, system: Be kind.}\n";

fn user_file(scene: &Scene) -> String {
    fs::read_to_string(scene.folder.path("config/duologue/profiles.yaml")).expect("the file")
}

fn mode(scene: &Scene, path: &str) -> u32 {
    let about = fs::metadata(scene.folder.path(path)).expect("the file");
    about.permissions().mode() & 0o777
}

#[track_caller]
fn answered(ended: &Ended) {
    assert_eq!((ended.status, ended.stderr.as_str()), (0, ""), "{ended:?}");
    assert!(ended.stdout.contains("You said: hi"), "{ended:?}");
}

#[test]
fn the_default_profile_is_used_where_nothing_else_chooses_a_provider() {
    let provider = Provider::start(vec![says("by default"), says("by profile"), says("again")]);
    let url = provider.base_url();
    let user = format!(
        "default: work\nprofiles:\n  work: {{engine: openai, model: m, base-url: \"{url}\", \
         key-variable: WORK_KEY}}\n  none: {{engine: echo}}\n"
    );
    let scene = Scene::new(&user, "");
    let run = |words: &[&str], variables: &[(&str, &str)]| {
        let mut command = scene.command(words);
        command.env("WORK_KEY", KEY).envs(variables.iter().copied());
        crate::once::Once::start(command).finish()
    };
    assert_eq!(run(&["exec", "hi"], &[]).stdout, "by default\n");
    let request = provider.wait_request(1);
    assert_eq!(request.body["model"], "m");
    assert_eq!(request.header("authorization"), Some(format!("Bearer {KEY}").as_str()));
    // A model alone is one of the default's provider, and a key for another one chooses nothing.
    let ended = run(&["exec", "hi", "--model", "n"], &[("ANTHROPIC_API_KEY", "other")]);
    assert_eq!(ended.stdout, "by profile\n", "{ended:?}");
    assert_eq!(provider.wait_request(2).body["model"], "n");
    answered(&run(&["exec", "hi", "--engine", "echo"], &[]));
    answered(&run(&["exec", "hi", "--profile", "none"], &[]));
    answered(&run(&["exec", "hi"], &[("DUOLOGUE_PROFILE", "none")]));
    let doctor = run(&["doctor", "--offline"], &[]);
    assert!(doctor.stdout.contains("profile: work, of "), "{doctor:?}");
    let mut server = scene.launch(&["rpc"]).secret("WORK_KEY", KEY).start();
    assert_eq!(server.turn("a", "hi"), "ok");
    let frames = server.finish().frames;
    let capabilities = frames[0].0["hello"]["capabilities"].to_string();
    assert!(capabilities.contains("engine=openai") && capabilities.contains("model=m"));
    assert_eq!(provider.requests(), 3);
}

#[test]
fn later_files_have_the_default_and_one_that_is_not_trusted_has_none() {
    let scene = Scene::new(DEMO, "default: other\nprofiles:\n  mine: {engine: echo}\n");
    let system = |scene: &Scene, words: &[&str]| {
        let ended = scene.run(&[&["profiles"], words].concat());
        ended.stdout.lines().last().unwrap_or_default().to_owned()
    };
    let listed = system(&scene, &[]);
    assert!(listed.starts_with("default: demo  (user, "), "{listed}");
    let file = scene.project_file();
    let ended = scene.run(&["exec", "hi"]);
    let left_out = format!("{file}:1: `default` is left out, because the file is not trusted");
    assert!(ended.status == 0 && ended.stderr.contains(&left_out), "{ended:?}");
    let doctor = scene.run(&["doctor", "--offline"]);
    assert!(doctor.stdout.contains(&format!("note   ignored: {left_out}")), "{doctor:?}");
    assert_eq!(scene.run(&["profiles", "trust", &file]).status, 0);
    let listed = system(&scene, &[]);
    assert!(listed.starts_with("default: other  (project, "), "{listed}");
    answered(&scene.run(&["exec", "hi"]));
    let named = scene.folder.name("named.yaml");
    fs::write(&named, "default: demo\nprofiles: {}\n").expect("a file");
    let listed = system(&scene, &["--profile-registries", &named]);
    assert_eq!(listed, format!("default: demo  (named, {named}:1)"));
    let json = scene.run(&["profiles", "--output", "json"]).stdout;
    let json: Value = serde_json::from_str(&json).expect("JSON");
    let defaults: Vec<_> =
        json["data"].as_array().expect("a list").iter().map(|row| &row["default"]).collect();
    assert_eq!(defaults, [false, false, true]);
}

#[test]
fn a_default_that_is_missing_and_a_file_that_can_not_be_read_are_errors() {
    let missing = Scene::new("default: nope\nprofiles:\n  demo: {engine: echo}\n", "");
    let ended = missing.run(&["exec", "hi"]);
    let says = "profiles.yaml:1: `default`: there is no profile `nope`; there are demo";
    assert!(ended.status == 2 && ended.stderr.contains(says), "{ended:?}");
    let broken = Scene::new("profiles: [", "");
    let mut command = broken.command(&["exec", "hi"]);
    command.env("OPENAI_API_KEY", "another-provider-s");
    let ended = crate::once::Once::start(command).finish();
    assert!(ended.status == 2 && ended.stderr.contains("profiles.yaml:1: "), "{ended:?}");
    answered(&broken.run(&["exec", "hi", "--engine", "echo"]));
}

#[test]
fn the_warning_without_a_provider_names_the_command_that_writes_a_profile() {
    let scene = Scene::new("", "");
    let ended = scene.run(&["exec", "hi"]);
    assert!(ended.stderr.contains("run `duologue profiles init`"), "{ended:?}");
}

#[test]
fn options_say_all_that_a_profile_needs() {
    let scene = Scene::new("", "");
    let init = |words: &[&str]| scene.run(&[&["profiles", "init"], words].concat());
    for (words, says) in [
        (&[][..], "there is no terminal to ask at"),
        (&["--provider", "openai"], "say where the key is: --key-env NAME"),
        (&["--base-url", "http://h/v1"], "name one with --model"),
        (&["--provider", "openai", "--key-env", "sk-0/1"], "duologue: --key-env: that is no name"),
        (&["--provider", "openai", "--key-env", "gsk_0123"], "--key-env: that is no name"),
        (&["--provider", "openai", "--key-env", ""], "--key-env: that is no name"),
        (&["--provider", "openai", "--key-file", "missing"], "missing"),
        (&["--provider", "openai", "--key-command", "no-such-program-here x"], "is not found"),
    ] {
        let ended = init(words);
        assert!(ended.status == 2 && ended.stderr.contains(says), "{words:?}: {ended:?}");
        assert!(fs::metadata(scene.folder.path("config/duologue/profiles.yaml")).is_err());
    }
    let ended = init(&["--provider", "anthropic", "--key-env", "WORK_KEY"]);
    assert_eq!(ended.status, 0, "{ended:?}");
    let path = scene.folder.name("config/duologue/profiles.yaml");
    let shown = format!("the profile `anthropic` is in {path}; it is the default\n");
    assert!(ended.stdout.starts_with(&shown), "{ended:?}");
    assert!(ended.stdout.contains("it can't answer yet: "), "{ended:?}");
    assert!(!ended.stdout.contains("try it"), "{ended:?}");
    let first = "default: anthropic\nprofiles:\n  anthropic:\n    engine: anthropic\n    model: \
                 claude-sonnet-5\n    key-variable: WORK_KEY\n";
    assert_eq!(user_file(&scene), first);
    assert_eq!(mode(&scene, "config/duologue/profiles.yaml"), 0o600);
    // What is there stays as it is.
    let again = init(&["--engine", "anthropic", "--key-env", "OTHER"]);
    assert!(again.status == 2 && again.stderr.contains("`anthropic` already"), "{again:?}");
    assert!(again.stderr.contains(&path) && again.stderr.contains("or edit the file"), "{again:?}");
    assert_eq!(user_file(&scene), first);
    let key = scene.folder.name("key");
    fs::write(&key, KEY).expect("a file");
    fs::set_permissions(&key, fs::Permissions::from_mode(0o644)).expect("our own file");
    let local = ["local", "--base-url", "http://127.0.0.1:1/v1", "-m", "small", "--key-file", &key];
    let open = init(&local);
    assert!(open.status == 2 && open.stderr.contains("chmod 600"), "{open:?}");
    assert_eq!(user_file(&scene), first);
    fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).expect("our own file");
    let ended = init(&[&local[..], &["--output", "json"]].concat());
    let document: Value = serde_json::from_str(&ended.stdout).expect("JSON");
    assert_eq!((&document["ok"], &document["data"]["default"]), (&true.into(), &false.into()));
    let second = format!(
        "  local:\n    engine: openai\n    model: small\n    base-url: http://127.0.0.1:1/v1\n    \
         key-file: {key}\n"
    );
    let (head, rest) = first.split_at("default: anthropic\nprofiles:\n".len());
    assert_eq!(user_file(&scene), format!("{head}{second}{rest}"));
    let listed = scene.run(&["profiles"]).stdout;
    assert!(listed.contains("local      openai     small"), "{listed}");
}

fn at_terminal(scene: &Scene, words: &[&str]) -> Person {
    let mut command: Command = scene.command(&[&["profiles", "init"], words].concat());
    command.env("TERM", "xterm");
    Person::start(command)
}

/// A key that is typed is on no screen, and in a file that its owner alone can read.
#[test]
fn a_person_is_asked_and_a_typed_key_is_not_shown() {
    let scene = Scene::new("", "");
    let mut person = at_terminal(&scene, &[]);
    person.sees("Provider (openai, anthropic, gemini, ollama, or a base URL) [openai]:");
    person.types("carrot\n");
    person.sees("\"carrot\" is none of these");
    let list = r#"{"data":[{"id":"small"},{"id":"large"}]}"#;
    let provider = Provider::start(vec![answers(list), says("asked")]);
    person.types(&format!("{}\n", provider.base_url()));
    person.sees_words("or none [none]:");
    person.types("file\n");
    person.sees_words("or nothing to type the key now:");
    person.types("\n");
    person.sees("(it is not shown):");
    person.types(&format!("wrong\u{15}{KEY}x\u{7f}\r"));
    person.sees("Model:");
    person.types("\n");
    person.sees("this server has no default model");
    person.types("smal\n");
    person.sees_words("the server lists no model \"smal\", but large, small; write it once more");
    person.types("small\n");
    person.sees("Name of the profile [openai]:");
    person.types("my own\n");
    person.sees("try it: duologue exec hello");
    let bytes = person.bytes();
    assert!(!bytes.contains(KEY) && !bytes.contains("wrong"), "{bytes:?}");
    assert_eq!(person.ends().0, 0);
    let written = user_file(&scene);
    assert!(written.contains("  \"my own\":\n") && written.contains("key-file: keys/my_own\n"));
    assert!(!written.contains(KEY), "{written}");
    let key = fs::read_to_string(scene.folder.path("config/duologue/keys/my_own"));
    assert_eq!(key.expect("the key"), format!("{KEY}\n"));
    assert_eq!(mode(&scene, "config/duologue/keys/my_own"), 0o600);
    assert_eq!(mode(&scene, "config/duologue/keys"), 0o700);
    assert_eq!(scene.run(&["exec", "hi"]).stdout, "asked\n");
    for number in [1, 2] {
        let sent = provider.wait_request(number);
        assert_eq!(sent.header("authorization"), Some(format!("Bearer {KEY}").as_str()));
    }
}

/// The file is read by the name of the link, whose folder has the keys; that of its target is often published.
#[test]
fn a_typed_key_is_beside_the_link_to_the_file_of_profiles() {
    for text in [None, Some("profiles:\n  other: {engine: echo}\n")] {
        let scene = Scene::new("", "");
        let dotfiles = scene.folder.path("dotfiles");
        fs::create_dir(&dotfiles).expect("a folder");
        let target = dotfiles.join("profiles.yaml");
        text.into_iter().for_each(|text| fs::write(&target, text).expect("a file"));
        let link = scene.folder.path("config/duologue/profiles.yaml");
        symlink("../../dotfiles/profiles.yaml", &link).expect("a link");
        let words = ["own", "--base-url", "http://127.0.0.1:1/v1", "-m", "small"];
        let mut person = at_terminal(&scene, &words);
        person.sees_words("or none [none]:");
        person.types("type\n");
        person.sees("(it is not shown):");
        person.types(&format!("{KEY}\r"));
        let (status, screen) = person.ends();
        assert_eq!(status, 0, "{}", screen.text());
        assert!(link.is_symlink());
        let written = fs::read_to_string(&target).expect("the target");
        assert!(written.contains("key-file: keys/own\n"), "{written}");
        let shown = scene.run(&["profiles", "show", "own"]);
        assert!(shown.stdout.contains("\ncomplete: "), "{shown:?}");
        assert_eq!(mode(&scene, "config/duologue/keys/own"), 0o600);
        assert!(fs::metadata(dotfiles.join("keys")).is_err(), "{text:?}");
    }
}

/// A name that is taken is refused before anything is asked; a model that is not listed is taken the second time.
#[test]
fn a_name_that_is_taken_is_refused_first() {
    let scene = Scene::new("profiles:\n  openai: {engine: echo}\n", "");
    let (status, screen) = at_terminal(&scene, &["openai"]).ends();
    let text = screen.lines();
    assert!(status == 2 && text.contains("there is a profile `openai` already"), "{text}");
    assert!(!text.contains("Provider ("), "{text}");
    let provider = Provider::start(vec![answers(r#"{"data":[{"id":"small"}]}"#)]);
    let mut person = at_terminal(&scene, &["--base-url", &provider.base_url(), "--no-key"]);
    person.sees("Model:");
    person.types("new\n");
    person.sees_words("write it once more");
    person.types("new\n");
    person.sees("Name of the profile:");
    person.types("openai\n");
    person.sees_words("there is a profile `openai` already");
    person.types("local\n");
    person.sees_words("it is complete: no key is sent");
    assert_eq!(person.ends().0, 0);
    assert!(user_file(&scene).contains("    model: new\n"), "{}", user_file(&scene));
    assert_eq!(provider.requests(), 1);
}

/// A key file is looked at before the next question. A key that the server refuses is said to be refused.
#[test]
fn a_key_that_is_missing_or_refused_is_reported_at_once() {
    let scene = Scene::new("", "");
    let key = scene.folder.path("key");
    fs::write(&key, KEY).expect("a file");
    fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).expect("our own file");
    let refused = Step::Status(401, Vec::new(), r#"{"error":{"message":"No."}}"#.to_owned());
    let again = refused.clone();
    let provider = Provider::start(vec![vec![refused], vec![again]]);
    let mut person = at_terminal(&scene, &["--base-url", &provider.base_url()]);
    person.sees_words("or none [none]:");
    person.types("file\n");
    person.sees_words("or nothing to type the key now:");
    person.types("keey\n");
    person.sees_words("(No such");
    person.types(&format!("{}\n", key.display()));
    person.sees("Model:");
    person.types("small\n");
    let check = format!("check the key file {}", key.display());
    // The rows of the screen cut words.
    let says = |person: &Person, text: &str| {
        eventually(text, || person.bytes().contains(text).then_some(()));
    };
    says(&person, &check);
    says(&person, "write the model once more");
    person.types("small\n");
    says(&person, "Name of the profile [openai]:");
    person.types("\n");
    says(&person, "it can't answer yet:");
    assert_eq!(person.ends().0, 0);
    let listed = scene.run(&["models"]);
    assert!(listed.stderr.contains(&check), "{listed:?}");
}

/// A base URL without `/v1` is no answer that is complete.
#[test]
fn a_base_url_that_lacks_its_path_is_said_before_the_profile_is_written() {
    let scene = Scene::new("", "");
    let missing = vec![Step::Status(404, Vec::new(), "404 page not found".to_owned())];
    let provider = Provider::start(vec![missing]);
    let url = format!("http://{}", provider.address());
    let mut person = at_terminal(&scene, &["--base-url", &url, "--no-key"]);
    person.sees("Model:");
    person.types("small\n");
    let says = |person: &Person, text: &str, count: usize| {
        eventually(text, || (person.bytes().matches(text).count() == count).then_some(()));
    };
    says(&person, &format!("ends in /v1: {url}/v1"), 1);
    says(&person, "write the model once more", 1);
    person.types("small\n");
    says(&person, "Name of the profile [openai]:", 1);
    person.types("\n");
    says(&person, "it can't answer yet: ", 1);
    says(&person, &format!("ends in /v1: {url}/v1"), 2);
    assert_eq!(person.ends().0, 0);
    assert_eq!(provider.requests(), 1);
}

/// Whoever has only the key finds out how to give it; it is on no screen a second time, and can be corrected.
#[test]
fn a_key_that_is_typed_is_tried_and_asked_for_again() {
    let scene = Scene::new("", "");
    let refused = Step::Status(401, Vec::new(), r#"{"error":{"message":"No."}}"#.to_owned());
    let list = r#"{"data":[{"id":"small"}]}"#;
    let provider = Provider::start(vec![vec![refused], answers(list)]);
    let mut person = at_terminal(&scene, &["--base-url", &provider.base_url()]);
    person
        .sees_words("Key: type it now, in a variable, in a file, from a command, or none [none]:");
    let shown = "sk-shown0";
    person.types(&format!("{shown}\n"));
    person.sees_words("the key itself does not belong here: answer `type`");
    person.types("file\n");
    person.sees_words("or nothing to type the key now:");
    person.types(&format!("{shown}\n"));
    let says = |person: &Person, text: &str, count: usize| {
        eventually(text, || (person.bytes().matches(text).count() == count).then_some(()));
    };
    says(&person, "does not belong here", 2);
    person.types("type\n");
    says(&person, "(it is not shown):", 1);
    person.types("wrong-key\r");
    says(&person, "type the key again", 1);
    says(&person, "(it is not shown):", 2);
    // Ctrl-Z is no part of it.
    person.types(&format!("{KEY}\u{1a}\r"));
    person.sees("Model:");
    person.types("small\n");
    person.sees("Name of the profile [openai]:");
    person.types("\n");
    says(&person, "try it: duologue exec hello", 1);
    let bytes = person.bytes();
    assert!(!bytes.contains(KEY) && !bytes.contains("wrong-key"), "{bytes:?}");
    assert_eq!(bytes.matches(shown).count(), 2, "as it was typed: {bytes:?}");
    assert_eq!(person.ends().0, 0);
    let key = fs::read_to_string(scene.folder.path("config/duologue/keys/openai"));
    assert_eq!(key.expect("the key"), format!("{KEY}\n"));
    assert_eq!(provider.requests(), 2);
}

#[test]
fn a_person_who_leaves_a_question_has_nothing_written_and_the_terminal_as_it_was() {
    let scene = Scene::new("", "");
    let mut person = at_terminal(&scene, &["--provider", "gemini"]);
    person.sees_words("or none [type]:");
    person.types("f\n");
    person.sees_words("or nothing to type the key now:");
    person.types("\n");
    person.sees("(it is not shown):");
    person.types("half\u{3}");
    // It is checked that the modes of the terminal are those before.
    let (status, screen) = person.ends();
    assert_eq!(status, 2);
    assert!(screen.text().contains("nothing was"), "{}", screen.text());
    assert!(fs::metadata(scene.folder.path("config/duologue/keys")).is_err());
    let mut person = at_terminal(&scene, &["--provider", "gemini"]);
    person.sees_words("or none [type]:");
    person.types("variable\n");
    person.sees("Name of the variable [GEMINI_API_KEY]:");
    person.types("\n");
    person.sees("Model [gemini-flash-latest]:");
    person.types("\u{4}");
    assert_eq!(person.ends().0, 2);
    assert!(fs::metadata(scene.folder.path("config/duologue/profiles.yaml")).is_err());
}

/// A server that is not there now may be there later.
#[test]
fn a_server_that_can_not_be_reached_is_said_to_be_so() {
    let scene = Scene::new("", "");
    let mut person = at_terminal(&scene, &["--base-url", "http://127.0.0.1:1/v1", "--no-key"]);
    person.sees("Model:");
    person.types("small\n");
    person.sees("Name of the profile [openai]:");
    person.types("local\n");
    person.sees_words("it can't answer yet: the server can't be reached now: ");
    person.sees_words("`duologue doctor` checks it");
    assert_eq!(person.ends().0, 0);
    assert!(user_file(&scene).contains("    model: small\n"), "{}", user_file(&scene));
}
