//! What a profile does not do: send its key to another address, or another profile's key to its own;
//! wait for files before `hello`; lose what was typed.

use crate::once::{Ended, Once};
use crate::profiles::{KEY, Scene, with_command};
use crate::provider::{Provider, says};
use serde_json::json;
use std::fs;
use std::os::unix::fs::PermissionsExt;

/// Each engine with its variable for an address, that for a key, and the provider's own host.
const ENGINES: [(&str, &str, &str, &str); 5] = [
    ("openai", "OPENAI_BASE_URL", "OPENAI_API_KEY", "api.openai.com"),
    ("responses", "OPENAI_BASE_URL", "OPENAI_API_KEY", "api.openai.com"),
    ("anthropic", "ANTHROPIC_BASE_URL", "ANTHROPIC_API_KEY", "api.anthropic.com"),
    ("gemini", "GEMINI_BASE_URL", "GEMINI_API_KEY", "generativelanguage.googleapis.com"),
    ("ollama", "OLLAMA_HOST", "OLLAMA_API_KEY", "127.0.0.1:11434"),
];

fn run_with(scene: &Scene, words: &[&str], variables: &[(&str, &str)]) -> Ended {
    let mut command = scene.command(words);
    command.envs(variables.iter().copied());
    let mut once = Once::start(command);
    once.close_stdin();
    once.finish()
}

fn switch(profile: &str) -> String {
    json!({ "requestId": format!("s-{profile}"), "switchModel": { "profile": profile } })
        .to_string()
}

#[test]
fn a_variable_with_an_address_gets_nothing_of_a_profile() {
    for (engine, address, _, host) in ENGINES {
        for own in
            ["key-command: [echo, k]", "extra-headers: {X-A: b}", "settings: {extra-body: {a: 1}}"]
        {
            let base = format!("profiles:\n  p:\n    engine: {engine}\n    model: m\n");
            let scene = Scene::new(&format!("{base}    {own}\n"), "");
            let other = [(address, "http://127.0.0.1:9")];
            let words = ["doctor", "--offline", "--profile", "p"];
            let shown = run_with(&scene, &words, &other).stdout;
            assert!(shown.contains(&format!("provider: {host} (")), "{engine}, {own}: {shown}");
            let mut server = scene
                .launch(&["rpc", "--engine", "echo"])
                .env(address, "http://127.0.0.1:9")
                .start();
            server.send(switch("p"));
            assert_eq!(server.wait_done("s-p"), "ok");
            let frames = server.finish().frames;
            let switched = frames.iter().find(|it| it.is_event("ModelSwitched")).expect("a switch");
            assert_eq!(switched.0["uiEvent"]["payload"]["host"], host, "{engine}, {own}");
        }
        // Without anything of its own the variable counts.
        let scene = Scene::new(&format!("profiles: {{p: {{engine: {engine}, model: m}}}}"), "");
        let words = ["doctor", "--offline", "--profile", "p"];
        let shown = run_with(&scene, &words, &[(address, "http://127.0.0.1:9")]).stdout;
        assert!(shown.contains("provider: 127.0.0.1:9 ("), "{engine}: {shown}");
    }
}

#[test]
fn the_key_in_a_provider_s_variable_goes_to_no_address_of_a_profile() {
    for (engine, address, key, _) in ENGINES {
        let provider = Provider::start(vec![]);
        let url = provider.base_url();
        let user =
            format!("profiles: {{local: {{engine: {engine}, model: m, base-url: '{url}'}}}}");
        let scene = Scene::new(&user, "");
        let words = ["exec", "hi", "--profile", "local", "--retries", "0"];
        let mut server =
            scene.launch(&["rpc", "--engine", "echo", "--retries", "0"]).secret(key, KEY).start();
        server.send(switch("local"));
        assert_eq!(server.wait_done("s-local"), "ok");
        server.turn("r1", "hi");
        server.finish();
        run_with(&scene, &words, &[(key, KEY)]);
        for number in [1, 2] {
            let request = provider.wait_request(number);
            let headers = ["authorization", "x-api-key", "x-goog-api-key"];
            assert!(
                headers.iter().all(|name| request.header(name).is_none()),
                "{engine}, {number}"
            );
        }
        // The variable beside it names the same address.
        run_with(&scene, &words, &[(key, KEY), (address, &url)]);
        let request = provider.wait_request(3);
        let headers = ["authorization", "x-api-key", "x-goog-api-key"];
        assert!(headers.iter().any(|name| request.header(name).is_some()), "{engine}");
    }
}

#[test]
fn files_of_profiles_are_read_when_a_request_names_one() {
    let provider = Provider::start(vec![says("hello")]);
    let scene = Scene::new("", "x: [");
    let mut server = scene.launch(&["rpc", "--engine", "echo"]).start();
    server.wait_hello();
    let path = scene.folder.path("config/duologue/profiles.yaml");
    fs::write(path, with_command(&provider)).expect("a file");
    server.send(switch("work"));
    assert_eq!(server.wait_done("s-work"), "ok");
    assert_eq!(server.turn("r1", "hi"), "ok");
    server.finish();
    assert_eq!(provider.requests(), 1);
}

#[test]
fn a_project_s_file_that_can_not_be_read_leaves_the_others() {
    let provider = Provider::start(vec![says("a"), says("b")]);
    let scene = Scene::new(&with_command(&provider), "x: [");
    let path = scene.folder.path("project/.duologue/profiles.yaml");
    for text in [&b"x: ["[..], b"\xff"] {
        fs::write(&path, text).expect("a file");
        let ended = scene.run(&["exec", "hi", "--profile", "work"]);
        assert_eq!(ended.status, 0, "{ended:?}");
        assert!(ended.stderr.contains("left out"), "{ended:?}");
    }
}

#[test]
fn a_profile_without_a_provider_keeps_the_first_and_what_was_typed() {
    let provider = Provider::start(vec![says("one"), says("two")]);
    let user = "profiles:\n  plain:\n    model: other\n    system: Unused.\n    deny: [x]\n    \
                settings: {temperature: 1, top_p: 0.5}\n    extra-headers: {X-A: b}\n";
    let scene = Scene::new(user, "");
    let url = provider.base_url();
    let words = ["rpc", "--base-url", &url, "--model", "first", "--temperature", "0.3"];
    let words = [&words[..], &["-O", "max_tokens=77"]].concat();
    let mut server = scene.launch(&words).secret("DUOLOGUE_API_KEY", KEY).start();
    for id in ["r1", "r2"] {
        let request = switch("plain").replace("s-plain", &format!("s-{id}"));
        server.send(request);
        assert_eq!(server.wait_done(&format!("s-{id}")), "ok");
        assert_eq!(server.turn(id, "hi"), "ok");
    }
    let transcript = server.finish();
    let request = provider.wait_request(2);
    let body = &request.body;
    assert_eq!(
        (&body["model"], &body["temperature"], &body["top_p"]),
        (&json!("other"), &json!(0.3), &json!(0.5))
    );
    assert!(body.to_string().contains("77") && !body.to_string().contains("Unused"), "{body}");
    assert_eq!(request.header("authorization"), Some(format!("Bearer {KEY}").as_str()));
    assert_eq!(request.header("x-a"), None);
    let note =
        "the profile `plain` has system, deny, extra-headers, which a switch does not change";
    assert_eq!(transcript.stderr.matches(note).count(), 1, "{}", transcript.stderr);
}

#[test]
fn doctor_and_hello_look_for_what_gives_the_key() {
    let scene = Scene::new("", "");
    let file = scene.folder.name("key");
    let words = ["--engine", "openai", "--model", "m", "--key-file", &file];
    let hello = |is_fine: bool| {
        let mut server = scene.launch(&[&["rpc"], &words[..]].concat()).start();
        let hello = server.wait_hello().0.to_string();
        assert_eq!(!hello.contains("config-error=the key can't be had"), is_fine, "{hello}");
        server.finish();
    };
    let doctor = |words: &[&str], expected: &str| {
        let shown = scene.run(&[&["doctor", "--offline"], words].concat()).stdout;
        let line = shown.lines().find(|line| line.contains("  key: ")).expect("a line");
        assert!(line.contains(expected), "{line}");
    };
    hello(false);
    doctor(&words, "can't be read");
    fs::write(&file, KEY).expect("a file");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).expect("ours");
    doctor(&words, "can be read by other users");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).expect("ours");
    hello(true);
    doctor(
        &words,
        &format!("ok     key: the file {file}, which only its owner can read (--key-file)"),
    );
    let command = ["--engine", "openai", "--model", "m", "--key-command"];
    doctor(&[&command[..], &["no-such-program x"]].concat(), "wrong  key: the program");
    doctor(
        &[&command[..], &["sh x"]].concat(),
        "ok     key: the output of sh, which is run when a call needs the key (--key-command)",
    );
}
