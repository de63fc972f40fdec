//! What a client has chosen in a stored session goes on with it: the model that it switched to, and the
//! tools that it declared.

use crate::client_tools::calls;
use crate::frames::{Frame, submit};
use crate::once::{Once, duologue};
use crate::profiles::{Scene, with_command};
use crate::provider::{Provider, Step, says};
use crate::server::{Folder, KEY, Launch, Server, echo};
use crate::store::{stored, wait_state};
use serde_json::{Value, json};

/// Options of a process with `provider`, as variables: nothing of the model is typed.
fn unnamed(provider: &Provider, args: &[&str]) -> Launch {
    let launch = Launch::new(&[&["rpc"], args].concat()).secret("DUOLOGUE_API_KEY", KEY);
    let launch = launch.env("DUOLOGUE_ENGINE", "openai").env("DUOLOGUE_MODEL", "scripted");
    launch.env("DUOLOGUE_BASE_URL", provider.base_url())
}

fn session<'a>(place: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    [&["--store", place, "--session-id", "s"], more].concat()
}

#[track_caller]
fn switch(server: &mut Server, choice: Value) {
    server.send(json!({ "requestId": "switch", "switchModel": choice }).to_string());
    assert_eq!(server.wait_done("switch"), "ok");
}

/// Begins the session with a turn after this switch.
#[track_caller]
fn begin(provider: &Provider, place: &str, choice: Value) {
    let mut server = unnamed(provider, &session(place, &[])).start();
    switch(&mut server, choice);
    assert_eq!(server.turn("r", "one"), "ok");
    server.finish();
}

fn body(provider: &Provider, request: usize) -> Value {
    provider.wait_request(request).body
}

#[test]
fn a_model_that_was_switched_to_goes_on_unless_another_one_is_typed() {
    let folder = Folder::new();
    let place = folder.name("store");
    let provider = Provider::start((0..5).map(|_| says("yes")).collect());
    let headers = json!({ "temperature": 0.5, "extra_headers": { "X-Key": "of-the-client" } });
    begin(&provider, &place, json!({ "model": "large", "settings": headers }));
    let shown = ["--resume", "--extensions", "switch-model"];
    let mut server = unnamed(&provider, &session(&place, &shown)).start();
    wait_state(&mut server);
    let switched = server.wait_event("ModelSwitched");
    assert_eq!(switched.payload("model"), "large");
    assert_eq!(server.turn("r", "two"), "ok");
    let stderr = server.finish().stderr;
    assert!(stderr.contains("may hold a key"), "{stderr}");
    let asked = provider.wait_request(2);
    assert_eq!((&asked.body["model"], &asked.body["temperature"]), (&json!("large"), &json!(0.5)));
    assert_eq!(asked.header("x-key"), None, "what may be a key is not stored");
    let bytes = std::fs::read(folder.path("store")).expect("a store");
    assert!(!bytes.windows(13).any(|it| it == b"of-the-client"));
    // A single run goes on with it, too.
    let exec = ["exec", "three", "--store", &place, "--session-id", "s", "--resume"];
    let once = |words: &[&str]| {
        let mut command = duologue(&folder, words);
        command.env("DUOLOGUE_API_KEY", KEY).env("DUOLOGUE_BASE_URL", provider.base_url());
        command.env("DUOLOGUE_ENGINE", "openai").env("DUOLOGUE_MODEL", "scripted");
        let ended = Once::start(command).finish();
        assert_eq!(ended.status, 0, "{ended:?}");
    };
    once(&exec);
    assert_eq!(body(&provider, 3)["model"], "large");
    once(&[&exec[..], &["--model", "typed"]].concat());
    assert_eq!(body(&provider, 4)["model"], "typed");
    // The conversation has the typed model from here on. A setting that is typed is for its process.
    once(&[&exec[..], &["--temperature", "0.9"]].concat());
    let asked = body(&provider, 5);
    assert_eq!((&asked["model"], &asked["temperature"]), (&json!("typed"), &json!(0.9)));
}

#[test]
fn a_profile_that_was_switched_to_goes_on() {
    let provider = Provider::start((0..2).map(|_| says("yes")).collect());
    let scene = Scene::new(&with_command(&provider), "");
    let (folder, mut models) = (Folder::new(), Vec::new());
    let place = folder.name("store");
    for (number, more) in [&[][..], &["--resume"]].into_iter().enumerate() {
        let words = [&["rpc"], &session(&place, more)[..]].concat();
        let mut server = scene.launch(&words).start();
        if number == 0 {
            switch(&mut server, json!({ "profile": "work" }));
        } else {
            wait_state(&mut server);
        }
        assert_eq!(server.turn("r", "hi"), "ok");
        server.finish();
        models.push(body(&provider, number + 1)["model"].clone());
    }
    assert_eq!(models, ["scripted", "scripted"]);
}

#[test]
fn a_provider_that_can_not_be_used_is_not_replaced_by_that_of_the_environment() {
    let (folder, provider) = (Folder::new(), Provider::start(vec![says("yes"), says("again")]));
    let place = folder.name("store");
    begin(&provider, &place, json!({ "model": "large" }));
    // Without the key, and in an environment of another provider.
    let mut server = Launch::new(&[&["rpc"], &session(&place, &["--resume"])[..]].concat())
        .env("DUOLOGUE_ENGINE", "echo")
        .start();
    wait_state(&mut server);
    assert_eq!(server.turn("r", "two"), "failed");
    let stderr = server.finish().stderr;
    assert!(stderr.contains("the key that the conversation had"), "{stderr}");
    let other = Provider::start(vec![says("no")]);
    let mut server = unnamed(&other, &session(&place, &["--resume"])).start();
    wait_state(&mut server);
    assert_eq!(server.turn("r", "three"), "ok");
    let stderr = server.finish().stderr;
    assert_eq!(stderr, "");
    assert_eq!((body(&provider, 2)["model"].clone(), other.requests()), (json!("large"), 0));
}

#[test]
fn tools_that_were_declared_go_on_once_the_client_takes_calls() {
    let folder = Folder::new();
    let place = folder.name("store");
    let call = calls(&[("c1", "get_time", "{}")]);
    let script: Vec<Vec<Step>> = vec![says("one"), says("two"), call, says("noon")];
    let provider = Provider::start(script);
    let mut server = unnamed(&provider, &session(&place, &[])).start();
    let tools = json!({ "tools": [{ "name": "get_time" }], "revision": 3 });
    server.send(json!({ "requestId": "d", "declareTools": tools }).to_string());
    assert_eq!(server.wait_done("d"), "ok");
    assert_eq!(server.turn("r", "one"), "ok");
    server.finish();
    let mut server = unnamed(&provider, &session(&place, &["--resume"])).start();
    wait_state(&mut server);
    // A client that has not asked for the extension could not run them.
    assert_eq!(server.turn("r1", "two"), "ok");
    let enable = json!({ "requestId": "e", "enable": { "extensions": ["client-tools"] } });
    server.send(enable.to_string());
    let updated = server.wait_event("FrontendToolManifestUpdated");
    assert_eq!(updated.payload("revision"), "3");
    assert_eq!(server.wait_done("e"), "ok");
    server.send(submit("r2", "time?"));
    let asked = server.wait_event("FrontendToolCallRequested");
    assert_eq!(asked.payload("toolCallId"), "c1");
    let result = json!({ "toolCallId": "c1", "result": { "time": "noon" } });
    server.send(json!({ "requestId": "t", "toolResult": result }).to_string());
    assert_eq!(server.wait_done("r2"), "ok");
    server.finish();
    let names = [1, 2, 3].map(|number| body(&provider, number)["tools"][0]["function"].clone());
    let names = names.map(|tool| tool["name"].clone());
    assert_eq!(names, [json!("get_time"), Value::Null, json!("get_time")]);
}

#[test]
fn a_copy_of_a_session_has_what_was_chosen() {
    let (folder, provider) = (Folder::new(), Provider::start(vec![says("a"), says("b")]));
    let place = folder.name("store");
    begin(&provider, &place, json!({ "model": "large" }));
    let fork = ["sessions", "fork", "s", "--as", "t", "--store", &place];
    assert_eq!(crate::once::run(&folder, &fork).status, 0);
    let args = ["--store", &place, "--session-id", "t", "--resume"];
    let mut server = unnamed(&provider, &args).start();
    wait_state(&mut server);
    assert_eq!(server.turn("r", "two"), "ok");
    server.finish();
    assert_eq!(body(&provider, 2)["model"], "large");
}

/// Every call counts, whether it gave an answer or not; one that was refused has used nothing.
#[test]
fn token_counts_of_a_run_without_an_answer_go_on() {
    let folder = Folder::new();
    let place = folder.name("store");
    let refused = || vec![Step::Status(400, Vec::new(), "{}".to_owned())];
    let provider = Provider::start(vec![refused(), says("yes")]);
    let usage = ["--extensions", "usage"];
    let mut server = unnamed(&provider, &session(&place, &usage)).start();
    assert_eq!(server.turn("r", "one"), "failed");
    server.finish();
    let resumed = [&usage[..], &["--resume"]].concat();
    let mut server = unnamed(&provider, &session(&place, &resumed)).start();
    wait_state(&mut server);
    assert_eq!(server.turn("r", "two"), "ok");
    let frames = server.finish().frames;
    let is_total = |frame: &&Frame| frame.is_event("UsageTotals");
    let totals = frames.iter().rev().find(is_total).expect("totals");
    let session = &totals.0["uiEvent"]["payload"]["session"];
    assert_eq!((&session["providerCalls"], &session["uncountedCalls"]), (&json!(2), &Value::Null));
}

/// Turns that were dropped are not counted in a list.
#[test]
fn a_list_counts_the_turns_that_are_left() {
    let folder = Folder::new();
    let mut server = stored(&folder, &[]).start();
    for (id, prompt) in [("r1", "one"), ("r2", "two"), ("r3", "three")] {
        assert_eq!(server.turn(id, prompt), "ok");
    }
    for id in ["e1", "e2"] {
        server.send(json!({ "requestId": id, "edit": { "regenerate": {} } }).to_string());
        assert_eq!(server.wait_done(id), "ok");
    }
    server.send(json!({ "requestId": "e3", "edit": { "dropLastTurn": {} } }).to_string());
    assert_eq!(server.wait_done("e3"), "ok");
    server.finish();
    let place = folder.name("store");
    let words = ["sessions", "list", "--store", &place, "--output", "json"];
    let ended = crate::once::run(&folder, &words);
    let listed: Value = serde_json::from_str(&ended.stdout).expect("JSON");
    assert_eq!(listed["data"][0]["turns"], 2, "{listed}");
    let mut server = echo(&["--store", &place, "--session-id", "s", "--resume"]).start();
    assert_eq!(wait_state(&mut server).messages().len(), 4);
    assert_eq!(server.turn("r", "four"), "ok");
    let answer = crate::frames::patched_text(&server.finish().frames, "r");
    assert!(answer.starts_with("Turn "), "{answer}");
}
