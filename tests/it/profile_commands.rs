//! `duologue profiles` and `models`, and the certificates that they trust.

use crate::once::Once;
use crate::profiles::{KEY, Scene, with_command};
use crate::provider::{Provider, Step};
use crate::server::Folder;
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::symlink;

#[test]
fn profiles_are_listed_and_shown_without_their_keys() {
    let provider = Provider::start(vec![]);
    let witness = Folder::new();
    let ran = witness.name("ran");
    let user = with_command(&provider).replace("echo ", &format!("touch {ran}; echo "))
        + "  none:\n    base-url: http://127.0.0.1:9/v1\n  unset:\n    inherits: none\n    \
           model: small\n    key-variable: NOT_SET\n";
    let scene = Scene::new(&user, "profiles:\n  mine: {engine: echo}\n  work: {model: other}\n");
    let listed = scene.run(&["profiles"]);
    assert_eq!(listed.status, 0, "{listed:?}");
    let lines: Vec<_> = listed.stdout.lines().collect();
    let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(words(lines[0]), ["NAME", "ENGINE", "MODEL", "LAYER", "COMPLETE"]);
    assert_eq!(words(lines[1])[..5], ["mine", "echo", "echo", "project", "yes:"]);
    assert!(
        lines[2].starts_with("none") && lines[2].contains("no: no model is named"),
        "{lines:?}"
    );
    assert_eq!(words(lines[3])[..5], ["unset", "openai", "small", "user", "no:"]);
    assert!(lines[3].contains("NOT_SET"), "{lines:?}");
    assert_eq!(words(lines[4])[..5], ["work", "openai", "other", "project", "yes:"]);
    assert!(lines[4].ends_with("the key comes from a command"), "{lines:?}");
    let json = scene.run(&["profiles", "--output", "json"]).stdout;
    let json: Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(json["data"][2]["canAnswer"], false);
    assert_eq!(json["data"][3]["model"], "other");

    let shown = scene.run(&["profiles", "show", "work"]).stdout;
    let user = scene.folder.name("config/duologue/profiles.yaml");
    let project = scene.project_file();
    for line in [
        format!("engine: openai  (user, {user}:3)"),
        format!("key-command: the output of sh  (user, {user}:7)"),
        format!("extra-headers.X-Team: [not shown]  (user, {user}:8)"),
        format!("model: other  (project, {project}:3)"),
    ] {
        assert!(shown.lines().any(|it| it == line), "{line}: {shown}");
    }
    assert!(!shown.contains("blue"), "{shown}");
    let json = scene.run(&["profiles", "show", "work", "--output", "json"]).stdout;
    let json: Value = serde_json::from_str(&json).expect("JSON");
    let values = json["data"]["values"].as_array().expect("a list");
    let model = values.iter().find(|value| value["field"] == "model").expect("a model");
    assert_eq!((&model["value"], &model["layer"]), (&"other".into(), &"project".into()));
    assert_eq!(scene.run(&["profiles", "show", "nothing"]).status, 2);
    assert!(fs::metadata(&ran).is_err(), "listing ran a key command");
    assert_eq!(provider.connections(), 0);

    let empty = Scene::new("", "");
    let nothing = empty.run(&["profiles"]);
    assert!(nothing.stdout.contains("config/duologue/profiles.yaml"), "{nothing:?}");
}

/// Whoever copies one has profiles that are complete.
#[test]
fn each_file_on_the_page_can_be_used() {
    let page = include_str!("../../docs/profiles.md");
    let blocks = page.split("```yaml\n").skip(1).filter_map(|rest| rest.split("```").next());
    let files: Vec<_> = blocks.filter(|block| block.contains("profiles:\n")).collect();
    assert!(!files.is_empty());
    for file in files {
        let scene = Scene::new(file, "");
        let listed = scene.run(&["profiles", "--output", "json"]);
        let listed: Value = serde_json::from_str(&listed.stdout).expect("JSON");
        let profiles = listed["data"].as_array().expect("a list");
        assert!(!profiles.is_empty(), "{listed}");
        for profile in profiles {
            assert_eq!(profile["canAnswer"], true, "{profile}");
            let name = profile["name"].as_str().expect("a name");
            let shown = scene.run(&["profiles", "show", name]);
            assert_eq!(shown.status, 0, "{shown:?}");
        }
    }
}

/// Each of several processes that change one file at the same time reports success only of what is in it afterwards.
#[test]
fn profiles_that_are_trusted_and_made_at_once_are_all_there() {
    const PROCESSES: usize = 8;
    let scene = Scene::new("", "");
    let at_once = |commands: Vec<Vec<String>>| {
        let start = |words: &Vec<String>| {
            let words: Vec<_> = words.iter().map(String::as_str).collect();
            Once::start(scene.command(&words))
        };
        let started: Vec<_> = commands.iter().map(start).collect();
        for (once, words) in started.into_iter().zip(commands) {
            let ended = once.finish();
            assert_eq!(ended.status, 0, "{words:?}: {ended:?}");
        }
    };
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    let names: Vec<_> = (1..=PROCESSES).map(|number| format!("p{number}")).collect();
    let files: Vec<_> =
        names.iter().map(|name| scene.folder.name(&format!("{name}.yaml"))).collect();
    files.iter().for_each(|file| fs::write(file, "profiles: {}\n").expect("a file"));
    at_once(files.iter().map(|file| words(&["profiles", "trust", file])).collect());
    let list = fs::read_to_string(scene.folder.path("state/duologue/trusted-profiles.json"));
    let list: Value = serde_json::from_str(&list.expect("a list")).expect("JSON");
    assert_eq!(list["files"].as_object().expect("a map").len(), PROCESSES, "{list}");
    // Each adds a profile to what the others have written.
    let init = ["profiles", "init", "--provider", "anthropic", "--key-env", "KEY"];
    at_once(names.iter().map(|name| words(&[&init[..], &[name]].concat())).collect());
    let listed = scene.run(&["profiles", "--output", "json"]).stdout;
    let listed: Value = serde_json::from_str(&listed).expect("JSON");
    let listed = listed["data"].as_array().expect("a list");
    assert_eq!(listed.iter().map(|it| it["name"].clone()).collect::<Vec<_>>(), names);
}

/// As the file of profiles of many is: in a folder that is copied from machine to machine.
#[test]
fn a_link_to_a_file_of_profiles_that_is_made_stays() {
    let scene = Scene::new("", "");
    fs::create_dir(scene.folder.path("dotfiles")).expect("a folder");
    let link = scene.folder.path("config/duologue/profiles.yaml");
    symlink("../../dotfiles/profiles.yaml", &link).expect("a link");
    let words = ["profiles", "init", "--provider", "anthropic", "--key-env", "KEY"];
    let ended = scene.run(&words);
    assert_eq!(ended.status, 0, "{ended:?}");
    assert!(link.is_symlink());
    let made = fs::read_to_string(scene.folder.path("dotfiles/profiles.yaml")).expect("a file");
    assert!(made.contains("key-variable: KEY"), "{made}");
}

pub(crate) fn answers(body: &str) -> Vec<Step> {
    vec![Step::Status(200, Vec::new(), body.to_owned())]
}

#[test]
fn models_are_asked_for_with_the_key_of_the_profile() {
    let list = r#"{"data":[{"id":"b"},{"id":"scripted"},{"id":"a\u001b[31m"}]}"#;
    let refused = vec![Step::Status(401, Vec::new(), format!(r#"{{"error":"no: {KEY}"}}"#))];
    let anthropic = r#"{"data":[{"id":"c"}],"has_more":true,"last_id":"c"}"#;
    let last = r#"{"data":[{"id":"d"}],"has_more":false}"#;
    let redirect =
        vec![Step::Status(302, vec![("location", "http://other.example/".into())], String::new())];
    let script = vec![
        answers(list),
        answers("<html>"),
        refused,
        answers(anthropic),
        answers(last),
        redirect,
        answers(r#"{"data":[{"id":"b","context_length":8192},{"id":"a"}]}"#),
        answers(r#"[{"id":"b","context_length":131072},{"id":"a"}]"#),
    ];
    let provider = Provider::start(script);
    let scene = Scene::new(&with_command(&provider), "");
    let words = ["models", "--profile", "work"];
    let models = scene.run(&words);
    assert_eq!(
        (models.status, models.stdout.as_str()),
        (0, "a\\x1b[31m\nb\nscripted\n"),
        "{models:?}"
    );
    let request = provider.wait_request(1);
    assert_eq!((request.method.as_str(), request.path.as_str()), ("GET", "/v1/models"));
    assert_eq!(request.header("authorization"), Some(format!("Bearer {KEY}").as_str()));
    assert_eq!(request.header("x-team"), Some("blue"));
    let html = scene.run(&[&words[..], &["--header", "X-Gw: Bearer gw-key"]].concat());
    assert_eq!(provider.wait_request(2).header("x-gw"), Some("Bearer gw-key"));
    assert!(html.status == 1 && html.stderr.contains("not with a list of models"), "{html:?}");
    let refused = scene.run(&[&words[..], &["--output", "json"]].concat());
    assert!(refused.status == 1 && refused.stdout.contains("\"auth\""), "{refused:?}");
    let models = scene.run(
        &[&words[..], &["--engine", "anthropic", "--base-url", &provider.base_url()]].concat(),
    );
    assert_eq!(models.stdout, "c\nd\n", "{models:?}");
    assert_eq!(provider.wait_request(5).path, "/v1/models?limit=1000&after_id=c");
    // The headers of a profile are for its provider alone.
    assert_eq!(provider.wait_request(5).header("x-team"), None);
    // A redirect is reported and not followed.
    let redirected = scene.run(&words);
    assert!(
        redirected.status == 1 && redirected.stderr.contains("other.example"),
        "{redirected:?}"
    );
    // What the list says besides.
    let whole = scene.run(&[&words[..], &["--output", "json"]].concat());
    let whole: Value = serde_json::from_str(&whole.stdout).expect("a document");
    assert_eq!(whole["data"], json!([{ "id": "a" }, { "id": "b", "contextTokens": 8192 }]));
    // As Together has it.
    let bare = scene.run(&[&words[..], &["--output", "json"]].concat());
    let bare: Value = serde_json::from_str(&bare.stdout).expect("a document");
    assert_eq!(bare["data"], json!([{ "id": "a" }, { "id": "b", "contextTokens": 131072 }]));
}

/// Models that nobody named a provider for are those of the built-in engine, and a line says so.
#[test]
fn models_without_a_provider_are_noted() {
    let scene = Scene::new("", "");
    let models = scene.run(&["models"]);
    assert_eq!((models.status, models.stdout.as_str()), (0, "echo\n"), "{models:?}");
    assert!(models.stderr.contains("no provider is configured"), "{models:?}");
    let named = scene.run(&["models", "--engine", "echo"]);
    assert_eq!((named.status, named.stderr.as_str()), (0, ""), "{named:?}");
    let provider = Provider::start(vec![vec![Step::Status(503, Vec::new(), "{}".to_owned())]]);
    let words = ["models", "--engine", "openai", "--base-url", &provider.base_url()];
    assert_eq!(scene.run(&words).status, 75, "the same may succeed later");
}

/// `--tls-roots system` trusts what the folder that stands for the system's store has, and no more.
#[test]
fn the_system_s_certificates_are_trusted_by_option() {
    let scene = Scene::new("", "");
    let store = scene.folder.path("store");
    fs::create_dir_all(&store).expect("a folder");
    let url = "https://127.0.0.1:1/v1";
    let words = ["models", "--base-url", url, "--tls-roots", "system"];
    let run = || {
        let mut command = scene.command(&words);
        command.env("SSL_CERT_DIR", &store);
        let mut once = Once::start(command);
        once.close_stdin();
        once.finish()
    };
    let empty = run();
    assert!(
        empty.status == 1 && empty.stderr.contains("the system's store: it has no usable"),
        "{empty:?}"
    );
    let ca = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/tls/ca.pem");
    fs::copy(ca, store.join("ca.pem")).expect("a certificate");
    fs::copy(ca, store.join("0123abcd.0")).expect("a certificate");
    let read = run();
    assert!(read.status == 75 && read.stderr.contains("can't be reached"), "{read:?}");
}
