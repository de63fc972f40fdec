//! Settings of one turn, models that a client switches to, token counts and retries, with a scripted
//! provider.

use crate::frames::{Frame, errors};
use crate::once::{Once, duologue};
use crate::provider::{Provider, Step, says};
use crate::server::{Folder, KEY, echo, openai};
use serde_json::{Value, json};
use std::fs;

const PRICES: &str = "currency: EUR\nmodels:\n  scripted: {input: 2, output: 8, cached-input: 1}\n";

fn submit(id: &str, prompt: &str, members: Value) -> String {
    let mut submit = members;
    submit["prompt"] = prompt.into();
    json!({ "requestId": id, "submit": submit }).to_string()
}

fn payload<'a>(frames: &'a [Frame], name: &str) -> &'a Value {
    let frame = frames.iter().find(|frame| frame.is_event(name)).expect(name);
    &frame.0["uiEvent"]["payload"]
}

#[test]
fn settings_hold_for_their_turn_and_a_switch_until_the_next() {
    let provider = Provider::start(vec![says("one"), says("two"), says("three")]);
    let mut server = openai(&provider, &[]).start();
    let settings = json!({ "settings": {
        "model": "tiny", "temperature": 0.5, "extra_body": { "logit_bias": { "1": 2 } },
        "extra_headers": { "X-Team": "blue-headed" },
    } });
    server.send(submit("a", "one", settings));
    assert_eq!(server.wait_done("a"), "ok");
    server.send(submit("b", "two", json!({})));
    assert_eq!(server.wait_done("b"), "ok");
    server.send(json!({ "requestId": "s", "switchModel": { "model": "large" } }).to_string());
    assert_eq!(server.wait_done("s"), "ok");
    server.send(submit("c", "three", json!({})));
    assert_eq!(server.wait_done("c"), "ok");
    let wrong = json!({ "settings": { "temperature": 7, "extra_headers": { "X": "topsecret" } } });
    server.send(submit("d", "four", wrong));
    assert_eq!(server.wait_done("d"), "failed");
    let transcript = server.finish();
    assert_eq!(errors(&transcript.frames, "d"), ["invalid_settings"]);
    let switched = payload(&transcript.frames, "ModelSwitched");
    assert_eq!((&switched["engine"], &switched["model"]), (&json!("openai"), &json!("large")));
    let models = (1..=3).map(|number| provider.wait_request(number).body["model"].clone());
    assert_eq!(models.collect::<Vec<_>>(), [json!("tiny"), json!("scripted"), json!("large")]);
    let first = provider.wait_request(1);
    assert_eq!(first.body["temperature"], 0.5);
    assert_eq!(first.body["logit_bias"], json!({ "1": 2 }));
    assert_eq!(first.header("x-team"), Some("blue-headed"));
    assert_eq!(provider.wait_request(2).body.get("temperature"), None);
    // A header may be a key, as far as we know.
    let frames = transcript.frames.iter().map(|frame| frame.0.to_string());
    let shown = frames.chain([transcript.stderr]).collect::<String>();
    assert!(!shown.contains("blue-headed") && !shown.contains("topsecret"));
}

#[test]
fn counts_and_costs_are_reported_where_they_are_asked_for() {
    let folder = Folder::new();
    fs::write(folder.path("prices.yaml"), PRICES).expect("a file");
    let provider = Provider::start(vec![says("one"), says("two"), says("three")]);
    let prices = folder.name("prices.yaml");
    let mut server = openai(&provider, &["--prices", &prices, "--extensions", "usage"]).start();
    assert_eq!(server.turn("a", "hi"), "ok");
    assert_eq!(server.turn("b", "hi"), "ok");
    let frames = server.finish().frames;
    let totals = frames.iter().rev().find(|frame| frame.is_event("UsageTotals")).expect("totals");
    let totals = &totals.0["uiEvent"]["payload"];
    let counts = |calls: u32, input: &str, output: &str, cost: &str| {
        json!({ "providerCalls": calls, "inputTokens": input, "outputTokens": output,
                "cost": cost, "currency": "EUR" })
    };
    assert_eq!(totals["run"], counts(1, "3", "2", "0.000022"));
    assert_eq!(totals["session"], counts(2, "6", "4", "0.000044"));

    let mut exec =
        duologue(&folder, &["exec", "hi", "--output", "json", "--prices", "prices.yaml"]);
    exec.env("DUOLOGUE_API_KEY", KEY).env("DUOLOGUE_BASE_URL", provider.base_url());
    exec.env("DUOLOGUE_MODEL", "scripted");
    let ended = Once::start(exec).finish();
    let document: Value = serde_json::from_str(&ended.stdout).expect("JSON");
    assert_eq!(document["meta"]["cost"], json!({ "amount": "0.000022", "currency": "EUR" }));
}

/// By the host of the provider, which is reached through a proxy here.
#[test]
fn prices_of_well_known_models_come_with_the_program() {
    let folder = Folder::new();
    fs::write(folder.path("prices.yaml"), PRICES).expect("a file");
    let proxy = Provider::start((0..6).map(|_| says("one")).collect());
    let known = ["--base-url", "http://api.openai.com/v1", "--model", "gpt-5-mini-2025-08-07"];
    let other = ["--base-url", "http://api.openai.com/v1", "--model", "gpt-5-unknown"];
    let elsewhere = ["--base-url", "http://models.invalid/v1", "--model", "gpt-5-mini"];
    let run = |words: &[&str], options: &[&str], input: &str| {
        let words = [words, options, &["--engine", "openai"]].concat();
        let mut command = duologue(&folder, &words);
        command.env("OPENAI_API_KEY", KEY).env("HTTP_PROXY", proxy.base_url());
        let mut once = Once::start(command);
        once.write(input);
        once.finish().stdout
    };
    let cost = |options: &[&str]| {
        let document = run(&["exec", "hi", "--output", "json"], options, "");
        let document: Value = serde_json::from_str(&document).expect("JSON");
        document["meta"]["cost"].clone()
    };
    assert_eq!(cost(&known), json!({ "amount": "0.000005", "currency": "USD" }));
    assert_eq!(cost(&other), Value::Null);
    assert_eq!(cost(&elsewhere), Value::Null);
    assert_eq!(cost(&[&known[..], &["--prices", "prices.yaml"]].concat()), Value::Null);
    // A client that asked for no counts sees none, and one that did sees what they cost.
    let request = "{\"requestId\":\"a\",\"submit\":{\"prompt\":\"hi\"}}\n";
    let silent = run(&["rpc"], &known, request);
    assert!(!silent.contains("UsageTotals") && !silent.contains("USD"), "{silent}");
    let asked = run(&["rpc", "--extensions", "usage"], &known, request);
    assert!(asked.contains("\"cost\":\"0.000005\",\"currency\":\"USD\""), "{asked}");
}

/// Refused requests cost nothing, and what a cancelled one has cost is in no sum.
#[test]
fn a_refused_and_a_cancelled_call_leave_the_cost_of_the_others() {
    let folder = Folder::new();
    fs::write(folder.path("prices.yaml"), PRICES).expect("a file");
    let status = |status| vec![Step::Status(status, Vec::new(), "{}".to_owned())];
    let script =
        vec![says("one"), status(400), status(429), vec![Step::Stall], says("two"), status(500)];
    let provider = Provider::start(script);
    let prices = folder.name("prices.yaml");
    let args = ["--prices", &prices, "--extensions", "usage", "--retries", "0"];
    let mut server = openai(&provider, &args).start();
    assert_eq!(server.turn("a", "hi"), "ok");
    assert_eq!(server.turn("b", "hi"), "failed");
    assert_eq!(server.turn("c", "hi"), "failed");
    server.send(submit("d", "hi", json!({})));
    provider.wait_request(4);
    server.send(json!({ "requestId": "x", "cancel": {} }).to_string());
    assert_eq!(server.wait_done("d"), "stopped");
    assert_eq!(server.turn("e", "hi"), "ok");
    assert_eq!(server.turn("f", "hi"), "failed");
    // The end of the server has its stream checked.
    let frames = server.finish().frames;
    let totals = frames.iter().filter(|frame| frame.is_event("UsageTotals"));
    let shown: Vec<_> = totals
        .map(|frame| {
            let counts = |of: &str| frame.0["uiEvent"]["payload"][of].clone();
            let (call, session) = (counts("call"), counts("session"));
            [call["cost"].clone(), session["cost"].clone(), session["uncountedCalls"].clone()]
        })
        .collect();
    let (one, two, none) = (json!("0.000022"), json!("0.000044"), Value::Null);
    let free = json!("0.000000");
    let expected = [
        [one.clone(), one.clone(), none.clone()],
        [free.clone(), one.clone(), none.clone()],
        [free, one.clone(), none.clone()],
        [none.clone(), one.clone(), json!(1)],
        [one, two.clone(), json!(1)],
        [none, two, json!(2)],
    ];
    assert_eq!(shown, expected);
}

/// The same in the document of a run whose second call fails in an unknown way.
#[test]
fn the_cost_of_a_document_names_the_calls_that_are_not_in_it() {
    let folder = Folder::new();
    fs::write(folder.path("prices.yaml"), PRICES).expect("a file");
    fs::write(folder.path("schema.json"), r#"{"type":"object"}"#).expect("a file");
    let down = vec![Step::Status(500, Vec::new(), "{}".to_owned())];
    let provider = Provider::start(vec![says("no object"), down]);
    let more = ["--prices", "prices.yaml", "--schema", "schema.json", "--repair", "1"];
    let words = ["exec", "hi", "--output", "json", "--retries", "0"];
    let mut exec = duologue(&folder, &[&words[..], &more].concat());
    exec.env("DUOLOGUE_API_KEY", KEY).env("DUOLOGUE_BASE_URL", provider.base_url());
    exec.env("DUOLOGUE_MODEL", "scripted");
    let ended = Once::start(exec).finish();
    let document: Value = serde_json::from_str(&ended.stdout).expect("JSON");
    let cost = json!({ "amount": "0.000022", "currency": "EUR", "uncountedCalls": 1 });
    assert_eq!(document["meta"]["cost"], cost, "{document}");
}

#[test]
fn a_price_list_that_cannot_be_used_is_refused() {
    let folder = Folder::new();
    fs::write(folder.path("prices.yaml"), "currency: EUR\nmodels: {a: {inptu: 1}}\n")
        .expect("a file");
    for (name, expected) in [("prices.yaml", "inptu"), ("missing.yaml", "can't be read")] {
        let words = ["exec", "hi", "--engine", "echo", "--prices", name];
        let ended = Once::start(duologue(&folder, &words)).finish();
        assert_eq!((ended.status, ended.stdout.as_str()), (2, ""), "{ended:?}");
        assert!(ended.stderr.contains(expected) && ended.stderr.contains("--prices"), "{ended:?}");
    }
}

#[test]
fn a_named_pipe_that_nobody_writes_to_is_refused_at_once() {
    let folder = Folder::new();
    let pipe = folder.fifo("pipe");
    for option in ["--prices", "--schema", "--history", "--system-file"] {
        let words = ["exec", "hi", "--engine", "echo", option, &pipe];
        let ended = Once::start(duologue(&folder, &words)).finish();
        assert_eq!((ended.status, ended.stdout.as_str()), (2, ""), "{ended:?}");
        assert!(ended.stderr.contains("a pipe that nobody writes to"), "{ended:?}");
    }
}

#[test]
fn null_leaves_a_setting_to_the_provider() {
    let provider = Provider::start(vec![says("one"), says("two"), says("three")]);
    let mut server = openai(&provider, &["--temperature", "0.5"]).start();
    server.send(submit("a", "one", json!({ "settings": { "temperature": null } })));
    assert_eq!(server.wait_done("a"), "ok");
    let switch = json!({ "switchModel": { "model": "other" }, "requestId": "s" });
    server.send(switch.to_string());
    assert_eq!(server.wait_done("s"), "ok");
    assert_eq!(server.turn("b", "two"), "ok");
    server.finish();
    assert_eq!(provider.wait_request(1).body.get("temperature"), None);
    let second = provider.wait_request(2);
    assert_eq!(
        (&second.body["temperature"], &second.body["model"]),
        (&json!(0.5), &json!("other"))
    );
}

#[test]
fn a_submit_that_joins_a_run_has_no_settings_of_its_own() {
    let provider = Provider::start(vec![vec![Step::Stall]]);
    let mut server = openai(&provider, &["--extensions", "steer"]).start();
    server.send(submit("a", "one", json!({})));
    server.wait_event("ChatProviderCallStarted");
    let schema = json!({ "responseSchema": { "type": "object" }, "targetRequestId": "a" });
    server.send(submit("b", "two", schema));
    assert_eq!(server.wait_done("b"), "failed");
    let settings = json!({ "settings": { "seed": 1 }, "targetRequestId": "a" });
    server.send(submit("c", "two", settings));
    assert_eq!(server.wait_done("c"), "failed");
    server.send(json!({ "requestId": "x", "cancel": {} }).to_string());
    assert_eq!(server.wait_done("a"), "stopped");
    let frames = server.finish().frames;
    assert_eq!(errors(&frames, "b"), ["invalid_settings"]);
    assert_eq!(errors(&frames, "c"), ["invalid_settings"]);
}

/// The wait that a provider requests is a minimum: with it too, waits grow and have a share of chance.
#[test]
fn waits_grow_whatever_the_provider_requests() {
    for (header, least) in [("0", 375), ("600", 600)] {
        let headers = vec![("retry-after-ms", header.to_owned())];
        let busy = || vec![Step::Status(503, headers.clone(), "{}".to_owned())];
        let provider = Provider::start(vec![busy(), busy(), says("hello")]);
        let mut server = openai(&provider, &["--extensions", "retries"]).start();
        assert_eq!(server.turn("a", "hi"), "ok");
        let frames = server.finish().frames;
        let scheduled = frames.iter().filter(|frame| frame.is_event("RetryScheduled"));
        let waits: Vec<u64> = scheduled
            .filter_map(|frame| frame.0["uiEvent"]["payload"]["waitMs"].as_str()?.parse().ok())
            .collect();
        let [first, second] = waits[..] else { panic!("{waits:?}") };
        assert!(least <= first && first < second, "{header}: {waits:?}");
    }
}

#[test]
fn a_client_that_asks_sees_retries_and_answers_that_were_cut_off() {
    let busy =
        || vec![Step::Status(429, vec![("retry-after-ms", "20".to_owned())], "{}".to_owned())];
    let cut = vec![Step::Text("hel".to_owned()), Step::Finish("length", Some((3, 2))), Step::Done];
    let provider = Provider::start(vec![busy(), cut.clone(), busy(), cut]);
    let mut server = openai(&provider, &[]).start();
    assert_eq!(server.turn("a", "hi"), "ok");
    server.send(json!({ "requestId": "e", "enable": { "extensions": ["retries"] } }).to_string());
    assert_eq!(server.wait_done("e"), "ok");
    assert_eq!(server.turn("b", "hi"), "ok");
    let frames = server.finish().frames;
    let of = |id: &str, name: &str| -> Vec<Value> {
        let of = frames.iter().filter(|frame| frame.id() == id && frame.is_event(name));
        of.map(|frame| frame.0["uiEvent"]["payload"].clone()).collect()
    };
    for name in ["RetryScheduled", "RetryStarted", "AnswerTruncated"] {
        assert_eq!((of("a", name).len(), of("b", name).len()), (0, 1), "{name}");
    }
    let scheduled = &of("b", "RetryScheduled")[0];
    assert_eq!(
        (&scheduled["attempt"], &scheduled["errorClass"]),
        (&json!(2), &json!("rate_limited"))
    );
    let wait_ms = scheduled["waitMs"].as_str().and_then(|wait| wait.parse().ok());
    // The provider requests less than the shortest back-off.
    assert!(wait_ms.is_some_and(|wait_ms| (375..=500).contains(&wait_ms)), "{scheduled}");
    assert_eq!(of("b", "AnswerTruncated")[0]["finishClass"], "max_tokens");
    for id in ["a", "b"] {
        assert_eq!(of(id, "ChatRunFinished")[0]["error"], "the answer was cut off: length");
        let snapshot = frames.iter().rfind(|frame| frame.id() == id && frame.is_snapshot());
        let shown = snapshot.expect("a snapshot").0["snapshot"].to_string();
        assert!(shown.contains("the answer was cut off: length"), "{shown}");
    }
}

#[test]
fn a_setting_in_the_wrong_place_is_reported_once() {
    let mut server = echo(&[]).start();
    let submit = |id: &str| submit(id, "hi", json!({ "temperature": 0.5, "note": "mine" }));
    server.send(submit("a"));
    assert_eq!(server.wait_done("a"), "ok");
    server.send(submit("b"));
    assert_eq!(server.wait_done("b"), "ok");
    let stderr = server.finish().stderr;
    assert_eq!(stderr.matches("submit.settings").count(), 1, "{stderr}");
    assert!(stderr.contains("\"temperature\"") && !stderr.contains("note"), "{stderr}");
}
