//! Keys of profiles, from commands and files: where they go, and what is shown of them.

use crate::process::eventually;
use crate::profiles::{KEY, Scene, with_command};
use crate::provider::{Provider, Step, says};
use crate::server::Launch;
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::PermissionsExt;

/// The key and the headers of a profile are for its provider alone.
#[test]
fn another_address_gets_no_key_of_the_profile() {
    let provider = Provider::start(vec![]);
    let other = Provider::start(vec![says("hello")]);
    let scene = Scene::new(&with_command(&provider), "");
    let url = other.base_url();
    let ended = scene.run(&["exec", "hi", "--profile", "work", "--base-url", &url]);
    assert_eq!(ended.status, 0, "{ended:?}");
    let request = other.wait_request(1);
    assert_eq!(request.header("authorization"), None);
    assert_eq!(request.header("x-team"), None);
    assert_eq!(provider.requests(), 0);
}

/// A key that has been changed since it was got is got again, and the request is sent once more.
#[test]
fn a_refused_key_is_got_once_more() {
    let refused = || vec![Step::Status(401, Vec::new(), "{}".to_owned())];
    let provider = Provider::start(vec![refused(), says("one"), refused(), says("never")]);
    let user = with_command(&provider);
    let scene = Scene::new(&user, "");
    let mark = scene.folder.name("mark");
    let first = format!("test -e {mark} || {{ touch {mark}; echo sk-the-old-key; exit; }}; echo ");
    let changing = user.replace("echo ", &first);
    fs::write(scene.folder.path("config/duologue/profiles.yaml"), changing).expect("a file");
    let mut server = scene.launch(&["rpc", "--profile", "work"]).start();
    assert_eq!(server.turn("r1", "hi"), "ok");
    // The same key again is no reason to ask again.
    assert_eq!(server.turn("r2", "hi"), "failed");
    let shown = format!("{:?}", server.finish().frames);
    assert!(!shown.contains(KEY) && !shown.contains("sk-the-old-key"), "{shown}");
    let sent =
        [1, 2, 3].map(|n| provider.wait_request(n).header("authorization").map(str::to_owned));
    let bearer = |key: &str| Some(format!("Bearer {key}"));
    assert_eq!(sent, [bearer("sk-the-old-key"), bearer(KEY), bearer(KEY)]);
    assert_eq!(provider.requests(), 3);
}

/// A key that no header can hold, and a model that would be another address.
#[test]
fn a_key_or_a_model_that_cannot_be_sent_is_in_hello() {
    let check = |engine: &str, model: &str, key: &str, expected: &str| {
        let words =
            ["rpc", "--engine", engine, "--model", model, "--base-url", "http://127.0.0.1:1"];
        let mut server = Launch::new(&words).secret("DUOLOGUE_API_KEY", key).start();
        let hello = server.wait_hello().0.to_string();
        server.finish();
        assert!(hello.contains("config-error=") && hello.contains(expected), "{hello}");
    };
    check("openai", "m", "sk-caf\u{e9}-0123456789", "no key can hold");
    check("gemini", "a/../b", "sk-0123456789", "be the name of a model");
    check("gemini", "m?alt=json", "sk-0123456789", "be the name of a model");
}

#[test]
fn a_key_command_is_run_once_and_its_failure_is_a_typed_error() {
    let provider = Provider::start(vec![says("one"), says("two")]);
    let user = with_command(&provider);
    let scene = Scene::new(&user, "");
    let count = scene.folder.name("count");
    let counting = user.replace("echo ", &format!("echo x >> {count}; echo "));
    fs::write(scene.folder.path("config/duologue/profiles.yaml"), counting).expect("a file");
    let mut server = scene.launch(&["rpc", "--profile", "work"]).start();
    let hello = server.wait_hello().0.to_string();
    assert!(hello.contains("host=127.0.0.1:") && !hello.contains("config-error"), "{hello}");
    assert!(fs::metadata(&count).is_err(), "the command was run before the first call");
    assert_eq!(server.turn("r1", "hi"), "ok");
    assert_eq!(server.turn("r2", "hi"), "ok");
    let transcript = server.finish();
    assert!(!format!("{:?}", transcript.frames).contains(KEY));
    assert_eq!(fs::read_to_string(&count).expect("it ran").lines().count(), 1);

    let failing = user.replace("echo ", "printf store-is-\\\\033[31mlocked >&2; exit 3; echo ");
    fs::write(scene.folder.path("config/duologue/profiles.yaml"), failing).expect("a file");
    let ended = scene.run(&["exec", "hi", "--profile", "work", "--output", "json"]);
    assert_eq!(ended.status, 1, "{ended:?}");
    assert!(
        ended.stdout.contains(r#""class":"auth""#) || ended.stdout.contains(r#""class": "auth""#),
        "{ended:?}"
    );
    assert!(ended.stdout.contains("the key command `sh` failed (exit status: 3)"), "{ended:?}");
    assert!(ended.stdout.contains("locked") && !ended.stdout.contains('\u{1b}'), "{ended:?}");
}

/// A script that reads classes and statuses tells a missing key from a wrong command, wherever the key was to be.
#[test]
fn a_variable_of_a_profile_that_is_not_set_is_a_missing_key() {
    let provider = Provider::start(vec![]);
    let user = with_command(&provider);
    let (head, rest) = user.split_once("    key-command").expect("a key");
    let rest = rest.split_once('\n').expect("a line").1;
    let scene = Scene::new(&format!("{head}    key-variable: NOT_SET\n{rest}"), "");
    let run = |words: &[&str]| {
        let ended = scene.run(&[&["exec", "hi", "--profile", "work"], words].concat());
        assert_eq!(ended.status, 1, "{ended:?}");
        ended.stdout
    };
    let events = run(&["--json-stream"]);
    let events = events.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    let error = events.map(|event| event["payload"]["error"].clone()).find(Value::is_object);
    let error = error.expect("an error");
    assert_eq!((&error["class"], &error["code"]), (&json!("auth"), &json!("AUTH_EXPIRED")));
    let document: Value = serde_json::from_str(&run(&["--output", "json"])).expect("JSON");
    let error = &document["error"];
    assert_eq!(error["class"], "auth", "{document}");
    assert!(error["message"].to_string().contains("the variable NOT_SET"), "{document}");
    assert_eq!(provider.requests(), 0);
}

#[test]
fn a_cancel_ends_the_key_command_at_once() {
    let provider = Provider::start(vec![]);
    let scene = Scene::new("", "");
    let pid_file = scene.folder.name("pid");
    let script = format!("sleep 1000 & echo $! > {pid_file}; wait");
    let command = format!("sh -c '{script}'");
    let url = provider.base_url();
    let words = ["rpc", "--engine", "openai", "--model", "m", "--base-url", &url];
    let mut server = scene.launch(&[&words[..], &["--key-command", &command]].concat()).start();
    server.send(crate::frames::submit("r1", "hi"));
    eventually("the command runs", || {
        fs::read_to_string(&pid_file).ok().filter(|text| text.ends_with('\n'))
    });
    server.send(r#"{"requestId":"c","cancel":{}}"#);
    assert_eq!(server.wait_done("r1"), "stopped");
    // That no process is left is checked here.
    server.finish();
    assert_eq!(provider.requests(), 0);
}

#[test]
fn a_key_file_must_be_private() {
    let provider = Provider::start(vec![says("hello")]);
    let scene = Scene::new("", "");
    let path = scene.folder.name("key");
    fs::write(&path, format!("{KEY}\n")).expect("a file");
    let url = provider.base_url();
    let words = ["exec", "hi", "--engine", "openai", "--model", "m", "--base-url", &url];
    let words = [&words[..], &["--key-file", &path]].concat();
    let mode = |mode| fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("ours");
    mode(0o644);
    let ended = scene.run(&words);
    assert_eq!(ended.status, 1, "{ended:?}");
    assert!(ended.stderr.contains(&format!("run `chmod 600 {path}`")), "{ended:?}");
    mode(0o600);
    assert_eq!(scene.run(&words).stdout, "hello\n");
    assert_eq!(provider.requests(), 1);
    let authorization = provider.wait_request(1).header("authorization").map(str::to_owned);
    assert_eq!(authorization, Some(format!("Bearer {KEY}")));
}

/// What a provider repeats of a key that was known only at the first call is hidden.
#[test]
fn a_key_that_is_known_late_is_hidden_in_errors() {
    let body = format!(r#"{{"error":{{"message":"bad key {KEY}","type":"invalid"}}}}"#);
    let provider = Provider::start(vec![vec![Step::Status(401, Vec::new(), body)]]);
    let scene = Scene::new(&with_command(&provider), "");
    let ended = scene.run(&["exec", "hi", "--profile", "work", "--output", "jsonl"]);
    assert_eq!(ended.status, 1, "{ended:?}");
    assert!(ended.stdout.contains("[redacted]"), "{ended:?}");
}
