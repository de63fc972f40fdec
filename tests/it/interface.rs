//! What every interface must do, whatever its bytes are: checked with the scripts of each.

use crate::attachments::PNG;
use crate::frames::{Frame, cancel, errors, finished_text, patched_text, submit};
use crate::once::run;
use crate::provider::{Provider, Request, Step};
use crate::server::{Folder, Launch, Server};
use data_encoding::BASE64;
use serde_json::{Value, json};

/// An interface: how the binary is started for a provider that has it, and its plainest answer.
pub(crate) struct Interface {
    pub(crate) engine: &'static str,
    pub(crate) launch: fn(&Provider, &[&str]) -> Launch,
    pub(crate) says: fn(&str) -> Vec<Step>,
}

impl Interface {
    /// Makes a turn with the system prompt "be brief" and the prompt "hi", which `script` answers with
    /// "hello" and the reasoning "hm". Gives the payload of the finished call, and the request.
    pub(crate) fn check_first_turn(&self, script: Vec<Step>) -> (Value, Request) {
        let provider = Provider::start(vec![script]);
        let mut server = (self.launch)(&provider, &["--system", "be brief"]).start();
        let hello = server.wait_hello();
        let capabilities = hello.0["hello"]["capabilities"].to_string();
        for capability in [&format!("engine={}", self.engine), "model=scripted"] {
            assert!(capabilities.contains(capability), "{capabilities}");
        }
        assert_eq!(server.turn("r1", "hi"), "ok");
        let frames = server.finish().frames;
        assert_eq!(patched_text(&frames, "r1"), "hello");
        let reasoning = frames.iter().filter(|frame| frame.is_event("ChatReasoningPatch"));
        assert_eq!(reasoning.map(|frame| frame.payload("text")).collect::<String>(), "hm");
        let payload = finished_call(&frames).0["uiEvent"]["payload"].clone();
        (payload, provider.wait_request(1))
    }

    /// Each script fails with its class: (name, script, class).
    pub(crate) fn check_failures(
        &self,
        cases: impl IntoIterator<Item = (&'static str, Vec<Step>, &'static str)>,
    ) {
        for (name, steps, class) in cases {
            let provider = Provider::start(vec![steps, (self.says)("better now")]);
            let mut server =
                (self.launch)(&provider, &["--retries", "0", "--compact", "off"]).start();
            assert_eq!(server.turn("r1", "hello"), "failed", "{name}");
            assert_eq!(server.turn("r2", "again"), "ok", "{name}");
            let frames = server.finish().frames;
            assert_eq!(errors(&frames, "r1"), ["run_failed"], "{name}");
            let error = frames.iter().find(|frame| frame.error().is_some()).expect("an error");
            assert!(error.text("/error/detail").starts_with(class), "{name}: {error:?}");
            assert_eq!(patched_text(&frames, "r1"), finished_text(&frames, "r1"), "{name}");
            assert_eq!(finished_text(&frames, "r2"), "better now", "{name}");
        }
    }

    /// The scripts `failing` are tried again, and the turn gets its answer.
    #[track_caller]
    pub(crate) fn check_retries(&self, failing: Vec<Vec<Step>>) {
        let retries = failing.len();
        let provider = Provider::start([failing, vec![(self.says)("now")]].concat());
        let mut server = (self.launch)(&provider, &[]).start();
        assert_eq!(server.turn("r1", "hello"), "ok");
        let transcript = server.finish();
        assert_eq!(provider.requests(), retries + 1);
        assert_eq!(finished_text(&transcript.frames, "r1"), "now");
        let stderr = &transcript.stderr;
        assert_eq!(stderr.matches("trying again").count(), retries, "{stderr}");
    }

    /// The answer of `script` ends with this reason of the provider and its class.
    #[track_caller]
    pub(crate) fn check_end(&self, script: Vec<Step>, reason: &str, class: &str) {
        let provider = Provider::start(vec![script]);
        let mut server = (self.launch)(&provider, &[]).start();
        assert_eq!(server.turn("r1", "hello"), "ok", "{reason}");
        let frames = server.finish().frames;
        let finished = finished_call(&frames);
        let found = (finished.payload("stopReason"), finished.payload("finishClass"));
        assert_eq!(found, (reason, class));
    }

    /// A prompt of an image alone is sent without a text: the request.
    pub(crate) fn with_image_alone(&self) -> Value {
        let provider = Provider::start(vec![(self.says)("a cat")]);
        let mut server = (self.launch)(&provider, &[]).start();
        let url = format!("data:image/png;base64,{}", BASE64.encode(PNG));
        let submit = json!({ "prompt": " ", "attachments": [{ "url": url }] });
        server.send(json!({ "requestId": "r1", "submit": submit }).to_string());
        assert_eq!(server.wait_done("r1"), "ok");
        server.finish();
        provider.wait_request(1).body
    }

    /// Gives the request that follows `script`, an answer with these calls, and their results.
    pub(crate) fn with_results(&self, script: Vec<Step>, calls: &[&str]) -> Value {
        let provider = Provider::start(vec![script, (self.says)("done")]);
        let mut server = (self.launch)(&provider, &[]).start();
        declare_get_time(&mut server);
        server.send(submit("r1", "hi"));
        return_results(&mut server, calls);
        assert_eq!(server.wait_done("r1"), "ok");
        server.finish();
        provider.wait_request(2).body
    }

    /// After `called`, an answer with the call `id`, the model has nothing to add to the result, as in `silent`: the
    /// run is complete, and the conversation goes on, also in another process.
    #[track_caller]
    pub(crate) fn check_silence_after_results(
        &self,
        called: Vec<Step>,
        id: &str,
        silent: Vec<Step>,
    ) {
        let scripts = vec![called, silent, (self.says)("two"), (self.says)("three")];
        let provider = Provider::start(scripts);
        let folder = Folder::new();
        let store = folder.name("store");
        // What may be empty by chance is asked for again before.
        let stored = ["--store", &store, "--session-id", "s", "--retries", "0"];
        let mut server = (self.launch)(&provider, &stored).start();
        declare_get_time(&mut server);
        server.send(submit("r1", "hi"));
        return_results(&mut server, &[id]);
        assert_eq!(server.wait_done("r1"), "ok");
        assert_eq!(server.turn("r2", "and?"), "ok");
        let frames = server.finish().frames;
        assert!(errors(&frames, "r1").is_empty(), "{frames:?}");
        assert_eq!(finished_text(&frames, "r1"), "");
        assert_eq!(finished_text(&frames, "r2"), "two");
        let mut server = (self.launch)(&provider, &[&stored[..], &["--resume"]].concat()).start();
        declare_get_time(&mut server);
        assert_eq!(server.turn("r3", "and now?"), "ok");
        server.finish();
        assert_eq!(provider.requests(), 4);
        for number in [3, 4] {
            let body = provider.wait_request(number).body.to_string();
            assert!(body.contains("and?") && !body.contains("interrupted"), "{body}");
        }
    }

    /// A cancel closes the connection, before an answer and after its beginning.
    pub(crate) fn check_cancels(&self, begun: Vec<Step>) {
        let middle = [begun, vec![Step::Stall]].concat();
        for (steps, has_text) in [(vec![Step::Stall], false), (middle, true)] {
            let provider = Provider::start(vec![steps]);
            let mut server = (self.launch)(&provider, &[]).start();
            server.send(submit("r1", "hello"));
            match has_text {
                true => drop(server.wait_event("ChatTextPatch")),
                false => drop(provider.wait_request(1)),
            }
            server.send(cancel("c"));
            assert_eq!(server.wait_done("r1"), "stopped");
            provider.wait_disconnect();
            server.finish();
        }
    }

    /// Gives the request to a second server with the same model name, after a turn at the first that
    /// `script` answered.
    pub(crate) fn switched(&self, script: Vec<Step>) -> Request {
        let [first, second] =
            [script, (self.says)("two")].map(|script| Provider::start(vec![script]));
        let folder = Folder::new();
        let other = format!(
            "profiles:\n  other: {{engine: {}, model: scripted, base-url: '{}'}}\n",
            self.engine,
            second.base_url()
        );
        std::fs::write(folder.path("profiles.yaml"), other).expect("a file");
        let registries = folder.name("profiles.yaml");
        let mut server = (self.launch)(&first, &["--profile-registries", &registries]).start();
        assert_eq!(server.turn("r1", "hi"), "ok");
        server.send(r#"{"requestId":"s","switchModel":{"profile":"other"}}"#);
        assert_eq!(server.wait_done("s"), "ok");
        assert_eq!(server.turn("r2", "again"), "ok");
        server.finish();
        let request = second.wait_request(1);
        assert_eq!(request.body["model"], "scripted");
        request
    }

    /// After `script`, an answer that calls a tool by a name that the model made up, the conversation
    /// goes on: the provider checks each request.
    #[track_caller]
    pub(crate) fn check_made_up_call(&self, script: Vec<Step>) {
        let scripts = vec![script, (self.says)("one"), (self.says)("two")];
        let provider = Provider::start(scripts);
        let mut server = (self.launch)(&provider, &[]).start();
        declare_get_time(&mut server);
        for turn in ["r1", "r2"] {
            assert_eq!(server.turn(turn, "hi"), "ok", "{turn}");
        }
        server.finish();
        let body = provider.wait_request(3).body.to_string();
        assert!(body.contains("functions_get_time"), "{body}");
    }

    /// A server that refuses, with these words, what the request after `script` sends back of its
    /// reasoning, gets the request once more without it, and every later one, too. `kept` is a part of
    /// that reasoning.
    #[track_caller]
    pub(crate) fn check_refused_reasoning(&self, script: Vec<Step>, words: &str, kept: &str) {
        let refusal = json!({ "error": { "message": words, "type": "invalid_request_error" } });
        let refusal = vec![Step::Status(400, Vec::new(), refusal.to_string())];
        let scripts = vec![script, refusal, (self.says)("two"), (self.says)("three")];
        let provider = Provider::start(scripts);
        let mut server = (self.launch)(&provider, &[]).start();
        for turn in ["r1", "r2", "r3"] {
            assert_eq!(server.turn(turn, "hi"), "ok", "{turn}");
        }
        let transcript = server.finish();
        assert_eq!(finished_text(&transcript.frames, "r2"), "two");
        let has_kept = |number| {
            let body = provider.wait_request(number).body;
            body.to_string().contains(kept)
        };
        assert_eq!([1, 2, 3, 4].map(has_kept), [false, true, false, false]);
        let line = "may refuse: the reasoning of earlier answers";
        assert_eq!(transcript.stderr.matches(line).count(), 1, "{}", transcript.stderr);
        let started = transcript.frames.iter().filter(|it| it.is_event("ChatProviderCallStarted"));
        assert_eq!(started.count(), 3, "one call for each turn");
    }

    /// With these options and no variables a run fails with an error that begins with `expected`.
    #[track_caller]
    pub(crate) fn check_unusable(&self, args: &[&str], expected: &str) {
        let ended =
            run(&Folder::new(), &[&["exec", "hello", "--engine", self.engine], args].concat());
        assert_eq!(ended.status, 1, "{args:?}");
        assert!(ended.stderr.starts_with(expected), "{args:?}: {}", ended.stderr);
    }
}

/// Variables, options, and the engine that they choose.
pub(crate) type Choice =
    (&'static [(&'static str, &'static str)], &'static [&'static str], &'static str);

/// Which engine answers if none is named, by what is set.
pub(crate) fn check_choices(cases: &[Choice]) {
    for (variables, args, engine) in cases {
        let mut launch = Launch::new(&[&["rpc"], *args].concat());
        for (name, value) in *variables {
            launch = launch.env(name, value);
        }
        let mut server = launch.start();
        let hello = server.wait_hello();
        let capabilities = hello.0["hello"]["capabilities"].to_string();
        let expected = format!("engine={engine}");
        assert!(capabilities.contains(&expected), "{variables:?} {args:?}: {capabilities}");
        server.finish();
    }
}

fn finished_call(frames: &[Frame]) -> &Frame {
    let finished = frames.iter().find(|frame| frame.is_event("ChatProviderCallFinished"));
    finished.expect("a finished call")
}

/// The schema of the tool that [`declare_get_time`] declares.
pub(crate) fn get_time_schema() -> Value {
    json!({ "type": "object", "properties": { "city": { "type": "string" } } })
}

/// Declares a tool of the client.
pub(crate) fn declare_get_time(server: &mut Server) {
    let declared = json!({ "name": "get_time", "description": "The time.",
        "inputSchema": get_time_schema() });
    let declare = json!({ "tools": [declared], "revision": 1 });
    server.send(json!({ "requestId": "t", "declareTools": declare }).to_string());
}

/// Waits for the calls of a round and answers them in the reverse order; `calls` are their ids, which
/// the results repeat.
pub(crate) fn return_results(server: &mut Server, calls: &[&str]) {
    for call in calls {
        server.wait("the request of a call", |frame| {
            frame.is_event("FrontendToolCallRequested") && frame.payload("toolCallId") == *call
        });
    }
    for call in calls.iter().rev() {
        let result = json!({ "toolCallId": call, "result": { "of": call } });
        server
            .send(json!({ "requestId": format!("for-{call}"), "toolResult": result }).to_string());
    }
}
