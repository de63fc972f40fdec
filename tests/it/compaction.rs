//! Conversations that become too long for the model: what is sent to providers in place of the earlier turns, and
//! what clients see of it.

use crate::anthropic::ANTHROPIC;
use crate::client_tools::calls;
use crate::frames::{Frame, cancel, errors, finished_text, snapshot, submit};
use crate::interface::Interface;
use crate::once::{Once, duologue};
use crate::provider::{Provider, Request, Step};
use crate::server::{Folder, KEY, Server, echo, openai};
use crate::sessions::sessions;
use crate::store::{events, kill};
use serde_json::{Value, json};

/// Every answer is counted as 122 tokens, with its request: with the next prompt more than 85 % of these.
pub(crate) const TOO_LONG: [&str; 6] =
    ["--context-tokens", "150", "--retries", "0", "--compact-prompt", "Summarize it."];

const OPENAI: Interface = Interface { engine: "openai", launch: openai, says };

pub(crate) fn says(text: &str) -> Vec<Step> {
    vec![Step::Text(text.to_owned()), Step::Finish("stop", Some((110, 12))), Step::Done]
}

fn too_long() -> Vec<Step> {
    let body = json!({ "error": { "message": "too long", "code": "context_length_exceeded",
        "type": "invalid_request_error" } });
    vec![Step::Status(400, Vec::new(), body.to_string())]
}

/// Groq refuses what alone has more tokens than a minute may have.
fn over_the_rate() -> Vec<Step> {
    let body = json!({ "error": { "message": "Request too large for model `scripted` on tokens per minute (TPM): \
        Limit 6000, Requested 7000", "type": "tokens", "code": "rate_limit_exceeded" } });
    vec![Step::Status(413, Vec::new(), body.to_string())]
}

/// OpenAI refuses it with the status of any limit of its rate, after which a call is made again where it may succeed.
fn over_the_rate_of_openai() -> Vec<Step> {
    let body = json!({ "error": { "message": "Request too large for scripted in organization org-1 on tokens per min \
        (TPM): Limit 30000, Requested 45000.", "type": "tokens", "code": "rate_limit_exceeded" } });
    vec![Step::Status(429, Vec::new(), body.to_string())]
}

/// A summary that is longer than what it would stand for.
fn rambling() -> String {
    "and so on ".repeat(2_000)
}

/// The provider is asked how much the model can be sent, and does not say.
fn no_list() -> Vec<Step> {
    vec![Step::Status(404, Vec::new(), String::new())]
}

/// A prompt that is worth to be summarized, and ends so.
pub(crate) fn long(prompt: &str) -> String {
    format!("{}{prompt}", "more and ".repeat(10))
}

fn compact(id: &str, members: Value) -> String {
    json!({ "requestId": id, "compact": members }).to_string()
}

fn enable(server: &mut Server, extension: &str) {
    let request = json!({ "requestId": "e", "enable": { "extensions": [extension] } });
    server.send(request.to_string());
    assert_eq!(server.wait_done("e"), "ok");
}

/// The texts of the messages of a request, without system prompts.
fn texts(request: &Request) -> Vec<String> {
    let messages = request.body["messages"].as_array().expect("messages");
    let said = messages.iter().filter(|it| it["role"] != "system" && it["role"] != "developer");
    let text = |content: &Value| match content.as_array() {
        Some(parts) => {
            let texts = parts.iter().filter_map(|part| part["text"].as_str());
            texts.collect::<Vec<_>>().join("\n\n")
        }
        None => content.as_str().unwrap_or_default().to_owned(),
    };
    said.map(|it| text(&it["content"])).collect()
}

fn is_of_compaction(frame: &Frame) -> bool {
    frame.event().is_some_and(|name| name.starts_with("Compact"))
}

fn compactions(frames: &[Frame]) -> Vec<(&str, &str)> {
    let of = frames.iter().filter(|frame| is_of_compaction(frame));
    of.map(|frame| (frame.id(), frame.event().expect("an event"))).collect()
}

#[test]
fn a_call_that_would_be_too_long_is_sent_a_summary_in_place_of_earlier_turns() {
    for Interface { engine, launch, says } in [OPENAI, ANTHROPIC] {
        let script = ["one", "THE SUMMARY", "two"].map(says).to_vec();
        let provider = Provider::start(script);
        let mut server = launch(&provider, &TOO_LONG).start();
        assert_eq!(server.turn("r1", &long("first prompt")), "ok");
        assert_eq!(server.turn("r2", &long("second prompt")), "ok", "{engine}");
        let frames = server.finish().frames;
        assert_eq!(finished_text(&frames, "r2"), "two");
        // A client that has not asked sees a provider call more, and all that was said.
        assert_eq!(compactions(&frames), [], "{engine}");
        let last = frames.iter().rfind(|frame| frame.is_snapshot()).expect("a snapshot");
        let said: Vec<_> = last.messages().into_iter().map(|(_, text)| text.to_owned()).collect();
        assert_eq!(
            said,
            [&*long("first prompt"), "one", &long("second prompt"), "two"],
            "{engine}"
        );
        let summary = provider.wait_request(2);
        let [first, one, wanted] = &texts(&summary)[..] else { panic!("{summary:?}") };
        assert_eq!(
            (first.as_str(), one.as_str()),
            (&*long("first prompt"), "one"),
            "as it was sent before"
        );
        assert!(wanted.contains("Summarize it"), "{wanted}");
        let answer = provider.wait_request(3);
        let [sent] = &texts(&answer)[..] else { panic!("{answer:?}") };
        assert!(sent.contains("THE SUMMARY") && sent.ends_with("second prompt"), "{sent}");
        assert!(!sent.contains("first prompt"), "{sent}");
    }
}

/// What is sent afterwards begins with what was sent before, for the provider's cache.
#[test]
fn after_it_requests_stay_prefixes_of_the_next_ones() {
    let few = |text: &str| {
        vec![Step::Text(text.to_owned()), Step::Finish("stop", Some((30, 5))), Step::Done]
    };
    let script = vec![says("one"), says("SUMMARY"), few("two"), few("three"), few("four")];
    let provider = Provider::start(script);
    let mut server = openai(&provider, &TOO_LONG).start();
    for turn in 1..=4 {
        assert_eq!(server.turn(&format!("r{turn}"), &long(&turn.to_string())), "ok");
    }
    server.finish();
    let sent: Vec<_> = (3..=5).map(|number| texts(&provider.wait_request(number))).collect();
    assert!(sent[1].starts_with(&sent[0]) && sent[2].starts_with(&sent[1]), "{sent:?}");
    assert!(sent[2][0].contains("SUMMARY") && sent[2].len() == 5, "{sent:?}");
}

#[test]
fn a_refused_call_is_made_again_once_after_a_compaction() {
    for (refused, last, done, codes) in [
        (too_long(), says("two"), "ok", &[][..]),
        (too_long(), too_long(), "failed", &["run_failed"]),
        (over_the_rate(), says("two"), "ok", &[]),
        (over_the_rate_of_openai(), says("two"), "ok", &[]),
    ] {
        let script = vec![says("one"), refused, no_list(), says("SUMMARY"), last];
        let provider = Provider::start(script);
        let mut server = openai(&provider, &["--compact", "auto", "--retries", "0"]).start();
        enable(&mut server, "compaction");
        assert_eq!(server.turn("r1", "first prompt"), "ok");
        assert_eq!(server.turn("r2", "second prompt"), done);
        let frames = server.finish().frames;
        assert_eq!(errors(&frames, "r2"), codes);
        assert_eq!(compactions(&frames), [("r2", "CompactionStarted"), ("r2", "Compacted")]);
        assert_eq!(provider.requests(), 5);
        let [sent] = &texts(&provider.wait_request(5))[..] else { panic!("one message") };
        assert!(sent.contains("SUMMARY") && sent.ends_with("second prompt"), "{sent}");
    }
}

#[test]
fn without_a_known_limit_and_where_it_is_off_nothing_is_compacted() {
    for (options, requests) in [
        // Where it may be compacted, the provider's list was asked in vain.
        (&["--retries", "0"][..], 3),
        (&["--retries", "0", "--compact", "off", "--context-tokens", "140"], 2),
        // The client can't decide.
        (&["--retries", "0", "--compact", "ask"], 3),
    ] {
        let other = r#"{"data":[{"id":"another","context_length":9}]}"#.to_owned();
        let list = vec![Step::Status(200, Vec::new(), other)];
        let provider = Provider::start(vec![says("one"), too_long(), list]);
        let mut server = openai(&provider, options).start();
        assert_eq!(server.turn("r1", "first prompt"), "ok");
        assert_eq!(server.turn("r2", "second prompt"), "failed");
        let frames = server.finish().frames;
        let error = frames.iter().find(|frame| frame.error().is_some()).expect("an error");
        assert!(error.text("/error/detail").starts_with("context_overflow"), "{error:?}");
        let advice = "; earlier turns can be summarized instead (--compact auto; in a chat /compact); \
                      the provider says: too long";
        assert!(error.text("/error/message").ends_with(advice), "{error:?}");
        assert_eq!(provider.requests(), requests);
    }
}

/// A provider that says in its list how much the model can be sent is asked for that when it refuses a call.
#[test]
fn what_the_provider_lists_is_a_known_limit() {
    let listed = r#"{"data":[{"id":"another"},{"id":"scripted","max_model_len":140}]}"#;
    let list = vec![Step::Status(200, Vec::new(), listed.to_owned())];
    let first = [says("one"), too_long(), list, says("SUMMARY"), says("two")];
    // From then on it is compacted before a call is refused.
    let provider = Provider::start([first.to_vec(), ["NEXT", "three"].map(says).to_vec()].concat());
    let mut server = openai(&provider, &["--retries", "0"]).start();
    enable(&mut server, "compaction");
    for (turn, prompt) in [("r1", "first"), ("r2", "second"), ("r3", "third")] {
        assert_eq!(server.turn(turn, &long(prompt)), "ok", "{turn}");
    }
    let frames = server.finish().frames;
    assert_eq!(finished_text(&frames, "r3"), "three");
    let begun = frames.iter().filter(|frame| frame.event() == Some("CompactionStarted"));
    let causes: Vec<_> = begun
        .map(|it| (it.text("/uiEvent/payload/cause"), it.text("/uiEvent/payload/contextTokens")))
        .collect();
    assert_eq!(causes, [("OVERFLOW", "140"), ("LIMIT", "140")]);
    assert_eq!(provider.wait_request(3).path, "/v1/models");
    assert_eq!(provider.requests(), 7);
}

#[test]
fn a_cancelled_compaction_leaves_the_conversation_as_it_was() {
    let script = vec![
        says("one"),
        too_long(),
        no_list(),
        vec![Step::Text("half a".into()), Step::Stall],
        says("three"),
    ];
    let provider = Provider::start(script);
    let mut server =
        openai(&provider, &["--compact", "auto", "--extensions", "compaction"]).start();
    assert_eq!(server.turn("r1", "first prompt"), "ok");
    server.send(submit("r2", "second prompt"));
    server.wait_event("CompactionStarted");
    provider.wait_request(4);
    server.send(cancel("c"));
    assert_eq!(server.wait_done("r2"), "stopped");
    provider.wait_disconnect();
    assert_eq!(server.turn("r3", "third prompt"), "ok");
    let frames = server.finish().frames;
    assert_eq!(compactions(&frames), [("r2", "CompactionStarted"), ("r2", "CompactionFailed")]);
    let sent = texts(&provider.wait_request(5));
    assert_eq!(
        (&*sent[0], &*sent[1], sent.last().map(|it| &**it)),
        ("first prompt", "one", Some("third prompt"))
    );
}

#[test]
fn a_failing_summary_leaves_the_conversation_as_it_was() {
    let broken = || vec![Step::Status(500, Vec::new(), String::new())];
    // Before a call that would be long it is made as it is.
    for Interface { engine, launch, says } in [OPENAI, ANTHROPIC] {
        let provider = Provider::start(vec![says("one"), broken(), says("two")]);
        let mut server = launch(&provider, &TOO_LONG).start();
        assert_eq!(server.turn("r1", &long("first prompt")), "ok");
        assert_eq!(server.turn("r2", &long("second prompt")), "ok", "{engine}");
        let ended = server.finish();
        assert!(ended.stderr.contains("could not be compacted"), "{}", ended.stderr);
        assert_eq!(
            texts(&provider.wait_request(3)),
            [long("first prompt"), "one".to_owned(), long("second prompt")]
        );
    }
    // After one that was too long, the run fails as it would have without.
    let empty = vec![Step::Finish("stop", Some((9, 0))), Step::Done];
    for summary in [broken(), empty, says(&rambling())] {
        let provider = Provider::start(vec![says("one"), too_long(), no_list(), summary]);
        let mut server = openai(&provider, &["--compact", "auto", "--retries", "0"]).start();
        assert_eq!(server.turn("r1", &long("first prompt")), "ok");
        assert_eq!(server.turn("r2", &long("second prompt")), "failed");
        let frames = server.finish().frames;
        let error = frames.iter().find(|frame| frame.error().is_some()).expect("an error");
        assert!(error.text("/error/detail").starts_with("context_overflow"), "{error:?}");
    }
}

/// The next compaction finds the conversation as it was.
#[test]
fn a_summary_that_makes_the_conversation_longer_is_not_used() {
    let script = ["one", &rambling(), "two", "SUMMARY", "three"].map(says).to_vec();
    let provider = Provider::start(script);
    let options = [&TOO_LONG[..], &["--extensions", "compaction"]].concat();
    let mut server = openai(&provider, &options).start();
    for (turn, prompt) in [("r1", "first"), ("r2", "second"), ("r3", "third")] {
        assert_eq!(server.turn(turn, &long(prompt)), "ok", "{turn}");
    }
    let ended = server.finish();
    let (begun, made) = ("CompactionStarted", "Compacted");
    let expected = [("r2", begun), ("r2", "CompactionFailed"), ("r3", begun), ("r3", made)];
    assert_eq!(compactions(&ended.frames), expected);
    let why = "the summary is longer than what it would stand for";
    assert_eq!(ended.stderr.matches(why).count(), 1, "{}", ended.stderr);
    assert_eq!(texts(&provider.wait_request(3)), [long("first"), "one".to_owned(), long("second")]);
    let [sent] = &texts(&provider.wait_request(5))[..] else { panic!("one message") };
    assert!(sent.contains("SUMMARY") && sent.ends_with("third"), "{sent}");
}

/// The model that is to write summaries may be one that this provider does not have, one that writes none, and one that
/// can be sent less than the conversation.
#[test]
fn a_summary_that_its_own_model_can_not_write_is_asked_of_the_one_that_answers() {
    let refused = vec![Step::Status(401, Vec::new(), String::new())];
    let ends = |text: &str, reason: &'static str| {
        vec![Step::Text(text.to_owned()), Step::Finish(reason, Some((110, 12))), Step::Done]
    };
    let called = calls(&[("a", "get_time", "{}")]);
    for failed in [
        refused,
        ends(" ", "stop"),
        ends("What was", "length"),
        ends("What was", "content_filter"),
        says(&rambling()),
        called,
        too_long(),
    ] {
        let script = vec![says("one"), failed, says("SUMMARY"), says("two")];
        let provider = Provider::start(script);
        let own = ["--compact-model", "small", "--extensions", "compaction"];
        let mut server = openai(&provider, &[&TOO_LONG[..], &own].concat()).start();
        assert_eq!(server.turn("r1", &long("first prompt")), "ok");
        assert_eq!(server.turn("r2", &long("second prompt")), "ok");
        let ended = server.finish();
        assert_eq!(compactions(&ended.frames), [("r2", "CompactionStarted"), ("r2", "Compacted")]);
        assert!(!ended.frames.iter().any(|frame| frame.is_event("AnswerTruncated")));
        let told = "the model small could not summarize the conversation, so scripted is asked";
        assert_eq!(ended.stderr.matches(told).count(), 1, "{}", ended.stderr);
        let model = |number| provider.wait_request(number).body["model"].clone();
        assert_eq!([1, 2, 3, 4].map(model), ["scripted", "small", "scripted", "scripted"]);
        let [sent] = &texts(&provider.wait_request(4))[..] else { panic!("one message") };
        assert!(sent.contains("SUMMARY") && sent.ends_with("second prompt"), "{sent}");
    }
}

#[test]
fn a_document_says_that_the_conversation_was_not_compacted() {
    let folder = Folder::new();
    let place = folder.name("store");
    let broken = vec![Step::Status(500, Vec::new(), String::new())];
    let provider = Provider::start(vec![says("one"), broken, says("two")]);
    let ask = |prompt: &str| {
        let prompt = long(prompt);
        let words = ["exec", &*prompt, "--output", "json", "--store", &place, "--session", "s"];
        let mut exec = duologue(&folder, &[&words[..], &TOO_LONG].concat());
        exec.env("DUOLOGUE_API_KEY", KEY).env("DUOLOGUE_BASE_URL", provider.base_url());
        exec.env("DUOLOGUE_MODEL", "scripted");
        let mut exec = Once::start(exec);
        exec.close_stdin();
        let ended = exec.finish();
        serde_json::from_str::<Value>(&ended.stdout).unwrap_or_else(|_| panic!("{ended:?}"))
    };
    assert_eq!(ask("first")["warnings"], json!([]));
    let second = ask("second");
    assert_eq!((&second["data"], &second["ok"]), (&json!("two"), &json!(true)), "{second}");
    assert_eq!(second["warnings"][0]["code"], "not_compacted", "{second}");
}

/// A text that was cut off, or only introduces a call, does not stand for the earlier turns.
#[test]
fn a_summary_that_is_not_whole_is_none() {
    let ends = |reason: &'static str| {
        vec![Step::Text("What was".into()), Step::Finish(reason, Some((110, 12))), Step::Done]
    };
    let mut called = vec![Step::Text("Let me look.".to_owned())];
    called.extend(calls(&[("a", "get_time", "{}")]));
    for flawed in [ends("length"), ends("content_filter"), called] {
        let provider = Provider::start(vec![says("one"), flawed.clone(), flawed, says("two")]);
        let own = ["--max-tokens", "20", "--extensions", "compaction,retries"];
        let mut server = openai(&provider, &[&TOO_LONG[..], &own].concat()).start();
        assert_eq!(server.turn("r1", &long("first prompt")), "ok");
        server.send(compact("c", json!({})));
        assert_eq!(server.wait_done("c"), "failed");
        assert_eq!(server.turn("r2", &long("second prompt")), "ok");
        let frames = server.finish().frames;
        assert_eq!(errors(&frames, "c"), ["compaction_failed"]);
        assert!(!frames.iter().any(|frame| frame.is_event("AnswerTruncated")), "no answer was cut");
        let expected = ["c", "r2"].map(|id| [(id, "CompactionStarted"), (id, "CompactionFailed")]);
        assert_eq!(compactions(&frames), expected.concat());
        assert_eq!(
            texts(&provider.wait_request(4)),
            [long("first prompt"), "one".to_owned(), long("second prompt")]
        );
        // The limit is one of answers.
        let limit = |number| {
            let body = provider.wait_request(number).body;
            ["max_tokens", "max_completion_tokens"].iter().find_map(|name| body[name].as_u64())
        };
        assert_eq!([1, 2, 3, 4].map(limit), [Some(20), None, None, Some(20)]);
    }
}

/// A summary stands for the messages from before the session, too.
#[test]
fn earlier_messages_count_as_left_out() {
    let folder = Folder::new();
    let message = |by: &str| json!({ "role": by, "text": "x".repeat(3000) }).to_string() + "\n";
    let earlier = message("user") + &message("assistant");
    std::fs::write(folder.path("history"), earlier).expect("a file");
    let long = vec![Step::Text("one".into()), Step::Finish("stop", Some((1900, 10))), Step::Done];
    let provider = Provider::start(vec![long, says("SUMMARY"), says("two")]);
    let history = folder.name("history");
    let options = ["--history", &history, "--context-tokens", "2000", "--extensions", "compaction"];
    let mut server = openai(&provider, &options).start();
    assert_eq!(server.turn("r1", "first prompt"), "ok");
    assert_eq!(server.turn("r2", "second prompt"), "ok");
    let frames = server.finish().frames;
    let compacted = frames.iter().find(|frame| frame.is_event("Compacted")).expect("an event");
    let after: u64 = compacted.payload("tokensAfter").parse().expect("a number");
    assert!(after < 200, "{compacted:?}");
    assert_eq!(texts(&provider.wait_request(3)).len(), 1);
}

/// A compaction belongs to the last turn that is still there.
#[test]
fn a_compaction_after_a_dropped_turn_is_copied() {
    let folder = Folder::new();
    let place = folder.name("store");
    let store = ["--store", &place, "--session", "s", "--extensions", "compaction,edit"];
    let provider = Provider::start(["one", "two", "SUMMARY"].map(says).to_vec());
    let mut server = openai(&provider, &store).start();
    assert_eq!(server.turn("r1", "first prompt"), "ok");
    assert_eq!(server.turn("r2", "second prompt"), "ok");
    server.send(r#"{"requestId":"x","edit":{"dropLastTurn":{}}}"#);
    assert_eq!(server.wait_done("x"), "ok");
    server.send(compact("c", json!({})));
    assert_eq!(server.wait_done("c"), "ok");
    let frames = server.finish().frames;
    let compacted = frames.iter().find(|frame| frame.is_event("Compacted")).expect("an event");
    assert_eq!(compacted.payload("correlation/turnId"), "turn-1");
    let forked = sessions(&folder, &["fork", "s", "--as", "copy"]);
    assert_eq!(forked.status, 0, "{forked:?}");
    let provider = Provider::start(vec![says("three")]);
    let mut server = openai(&provider, &["--store", &place, "--session", "copy"]).start();
    assert_eq!(server.turn("r3", "third prompt"), "ok");
    server.finish();
    let [sent] = &texts(&provider.wait_request(1))[..] else { panic!("one message") };
    assert!(sent.contains("SUMMARY") && sent.ends_with("third prompt"), "{sent}");
}

#[test]
fn a_client_asks_for_it_and_the_snapshot_has_it() {
    let provider = Provider::start(vec![says("one"), says("SUMMARY"), says("two")]);
    let options = ["--compact-prompt", "Be short.", "--compact-model", "small"];
    let mut server = openai(&provider, &options).start();
    server.send(compact("c0", json!({})));
    assert_eq!(server.wait_done("c0"), "failed");
    assert_eq!(server.turn("r1", "first prompt"), "ok");
    server.send(compact("c1", json!({ "instructions": "Keep the names.", "keepTurns": 1 })));
    assert_eq!(server.wait_done("c1"), "failed", "there is one turn");
    server.send(compact("c2", json!({ "instructions": "Keep the names." })));
    assert_eq!(server.wait_done("c2"), "ok");
    server.send(compact("c3", json!({})));
    assert_eq!(server.wait_done("c3"), "failed", "it was summarized");
    assert_eq!(server.turn("r2", "second prompt"), "ok");
    server.send(snapshot("s"));
    assert_eq!(server.wait_done("s"), "ok");
    let frames = server.finish().frames;
    for id in ["c0", "c1", "c3"] {
        assert_eq!(errors(&frames, id), ["nothing_to_compact"], "{id}");
    }
    assert_eq!(compactions(&frames), [("c2", "CompactionStarted"), ("c2", "Compacted")]);
    let wanted = provider.wait_request(2);
    assert_eq!(wanted.body["model"], "small");
    assert_eq!(texts(&wanted).last().map(|it| &**it), Some("Be short.\n\nKeep the names."));
    assert_eq!(provider.wait_request(3).body["model"], "scripted");
    let compacted = frames.iter().find(|frame| frame.is_event("Compacted")).expect("an event");
    assert_eq!(compacted.payload("summary"), "SUMMARY");
    assert_eq!(compacted.payload("throughTurnId"), "turn-1");
    assert_eq!(compacted.payload("tokensBefore"), "122");
    let last = frames.iter().rfind(|frame| frame.is_snapshot()).expect("a snapshot");
    let entities = last.0["snapshot"]["entities"].as_array().expect("a list");
    let of_it: Vec<_> = entities.iter().filter(|it| it["kind"] == "Compaction").collect();
    assert_eq!((of_it.len(), entities.len()), (1, 5), "{entities:?}");
    assert_eq!(of_it[0]["payload"], compacted.0["uiEvent"]["payload"]);
}

/// A summary may be as long as many messages.
#[test]
fn each_compaction_is_in_one_page_of_a_snapshot() {
    let script = ["one", "SUMMARY", "two", "SUMMARY", "three", "SUMMARY"].map(says).to_vec();
    let provider = Provider::start(script);
    let mut server = openai(&provider, &[]).start();
    for turn in ["1", "2", "3"] {
        assert_eq!(server.turn(&format!("r{turn}"), "a prompt"), "ok");
        server.send(compact(&format!("c{turn}"), json!({})));
        assert_eq!(server.wait_done(&format!("c{turn}")), "ok");
    }
    server.send(snapshot("whole"));
    assert_eq!(server.wait_done("whole"), "ok");
    // Four pages at most, each as long as its limit.
    for limit in [2, 3] {
        let mut before = "0".to_owned();
        for number in 0..4 {
            let id = format!("p{limit}{number}");
            let page = json!({ "limit": limit, "beforeOrdinal": before });
            server.send(json!({ "requestId": id, "snapshot": page }).to_string());
            let page = server.wait("a page", |frame| frame.id() == id && frame.is_snapshot());
            let entities = page.0["snapshot"]["entities"].as_array().cloned().unwrap_or_default();
            let messages: Vec<_> =
                entities.iter().filter(|it| it["kind"] != "Compaction").collect();
            assert!(entities.len() <= limit + 2, "{entities:?}");
            if messages.len() < limit {
                break;
            }
            before = messages[0]["createdOrdinal"].as_str().expect("an ordinal").to_owned();
        }
    }
    let frames = server.finish().frames;
    let ids = |start: &str| {
        let of = frames.iter().filter(|it| it.is_snapshot() && it.id().starts_with(start));
        let entities = of.filter_map(|it| it.0["snapshot"]["entities"].as_array()).flatten();
        let mut ids: Vec<_> = entities.map(|it| it["id"].clone().to_string()).collect();
        ids.sort_unstable();
        ids
    };
    let whole = ids("whole");
    assert_eq!(whole.iter().filter(|id| id.contains("compaction-")).count(), 3, "{whole:?}");
    assert_eq!((ids("p2"), ids("p3")), (whole.clone(), whole));
}

#[test]
fn a_request_for_it_can_be_cancelled_and_fails_without_a_summary() {
    let broken = vec![Step::Status(500, Vec::new(), String::new())];
    let provider = Provider::start(vec![says("one"), vec![Step::Stall], broken, says("two")]);
    let mut server = openai(&provider, &["--retries", "0"]).start();
    assert_eq!(server.turn("r1", "first prompt"), "ok");
    server.send(compact("c1", json!({})));
    provider.wait_request(2);
    server.send(submit("busy", "now"));
    assert_eq!(server.wait_done("busy"), "failed");
    server.send(compact("busy too", json!({})));
    assert_eq!(server.wait_done("busy too"), "failed");
    server.send(cancel("stop"));
    assert_eq!(server.wait_done("c1"), "stopped");
    server.send(compact("c2", json!({})));
    assert_eq!(server.wait_done("c2"), "failed");
    assert_eq!(server.turn("r2", "second prompt"), "ok");
    let frames = server.finish().frames;
    assert_eq!(errors(&frames, "busy"), ["session_busy"]);
    // No queue of submits would help a compact.
    let error = frames.iter().find(|it| it.id() == "busy too" && it.error().is_some());
    let error = error.expect("an error").text("/error/message").to_owned();
    assert!(error.contains("send the compact again") && !error.contains("on-busy"), "{error}");
    assert_eq!(errors(&frames, "c2"), ["compaction_failed"]);
    assert_eq!(texts(&provider.wait_request(4)), ["first prompt", "one", "second prompt"]);
}

/// The line of the script would be the tool call alone, which is no summary.
#[test]
fn a_conversation_with_a_script_that_begins_with_a_tool_call_can_be_compacted() {
    let folder = Folder::new();
    let script = folder.name("script");
    let lines = "{\"tools\":[{\"name\":\"get_time\"}]}\n{\"text\":\"It is noon.\"}\n";
    std::fs::write(&script, lines).expect("a file");
    let options = ["--echo-script", &script, "--compact-prompt", "Sum up."];
    let mut server = echo(&[&options[..], &["--extensions", "compaction"]].concat()).start();
    server.send(r#"{"requestId":"d","declareTools":{"tools":[{"name":"get_time"}]}}"#);
    assert_eq!(server.wait_done("d"), "ok");
    server.send(submit("r1", &long(&long(&long(&long("Noon?"))))));
    server.wait_event("FrontendToolCallRequested");
    let result = json!({ "toolCallId": "call_1", "result": { "text": "12:00" } });
    server.send(json!({ "requestId": "t", "toolResult": result }).to_string());
    assert_eq!(server.wait_done("r1"), "ok");
    server.send(compact("c1", json!({})));
    assert_eq!(server.wait_done("c1"), "ok");
    let frames = server.finish().frames;
    let compacted = frames.iter().find(|frame| frame.is_event("Compacted")).expect("an event");
    assert!(compacted.payload("summary").contains("Sum up."), "{compacted:?}");
}

#[test]
fn a_client_that_is_asked_decides() {
    let script = vec![says("one"), says("two"), says("SUMMARY"), says("three")];
    let provider = Provider::start(script);
    let ask = [&["--compact", "ask"][..], &TOO_LONG, &["--extensions", "compaction"]].concat();
    let mut server = openai(&provider, &ask).start();
    assert_eq!(server.turn("r1", &long("first prompt")), "ok");
    server.send(submit("r2", &long("second prompt")));
    server.wait_event("CompactionProposed");
    server.send(compact("no", json!({ "decline": true })));
    assert_eq!(server.wait_done("no"), "ok");
    assert_eq!(server.wait_done("r2"), "ok");
    server.send(submit("r3", "third prompt"));
    server.wait_event("CompactionProposed");
    server.send(compact("yes", json!({})));
    assert_eq!(server.wait_done("yes"), "ok");
    assert_eq!(server.wait_done("r3"), "ok");
    let frames = server.finish().frames;
    let of = |id: &'static str| {
        let of = compactions(&frames).into_iter().filter(move |(of, _)| *of == id);
        of.map(|(_, name)| name.to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(of("r2"), ["CompactionProposed", "CompactionFailed"]);
    assert_eq!(of("r3"), ["CompactionProposed", "CompactionStarted", "Compacted"]);
    assert_eq!(
        texts(&provider.wait_request(2)),
        [long("first prompt"), "one".to_owned(), long("second prompt")]
    );
    let [sent] = &texts(&provider.wait_request(4))[..] else { panic!("one message") };
    assert!(sent.contains("SUMMARY") && sent.ends_with("third prompt"), "{sent}");
    // Nobody can be asked: it is as if it were off.
    let provider = Provider::start(vec![says("one"), says("two")]);
    let mut server = openai(&provider, &ask[..8]).start();
    assert_eq!(server.turn("r1", &long("first prompt")), "ok");
    assert_eq!(server.turn("r2", &long("second prompt")), "ok");
    server.finish();
}

/// Four of the turns that have ended have room, of which two would be kept by themselves.
#[test]
fn a_client_that_decides_says_how_many_turns_are_kept() {
    let provider = counting(0, 100_000);
    let options = ["--compact", "ask", "--context-tokens", "6000", "--extensions", "compaction"];
    let mut server = openai(&provider, &options).start();
    for (turn, bytes) in [12_000, 600, 600, 600, 600].into_iter().enumerate() {
        assert_eq!(server.turn(&format!("r{turn}"), &"x".repeat(bytes)), "ok");
    }
    server.send(submit("last", &"x".repeat(1_500)));
    server.wait_event("CompactionProposed");
    server.send(compact("yes", json!({ "keepTurns": 4 })));
    assert_eq!(server.wait_done("yes"), "ok");
    assert_eq!(server.wait_done("last"), "ok");
    let frames = server.finish().frames;
    let compacted = frames.iter().find(|frame| frame.is_event("Compacted")).expect("an event");
    assert_eq!(compacted.payload("throughTurnId"), "turn-1");
}

/// Results of tools are left out first, oldest first, each with a note beside its call; and those of the run that
/// goes on are not.
#[test]
fn old_results_of_tools_are_left_out_before_turns_are() {
    let result = "result ".repeat(1000);
    let call = |id: &str| calls(&[(id, "get_time", "{}")]);
    let counted = |text: &str| {
        vec![Step::Text(text.to_owned()), Step::Finish("stop", Some((5_500, 10))), Step::Done]
    };
    let script = vec![call("a"), counted("one"), call("b"), says("two")];
    let provider = Provider::start(script);
    let options = ["--context-tokens", "6000", "--extensions", "compaction"];
    let mut server = openai(&provider, &options).start();
    server.send(r#"{"requestId":"d","declareTools":{"tools":[{"name":"get_time"}]}}"#);
    assert_eq!(server.wait_done("d"), "ok");
    for (run, call) in [("r1", "a"), ("r2", "b")] {
        server.send(submit(run, run));
        server.wait(run, |it| it.is_event("FrontendToolCallRequested") && it.id() == run);
        let answer = json!({ "toolCallId": call, "result": { "text": result } });
        server.send(json!({ "requestId": format!("{run}-t"), "toolResult": answer }).to_string());
        assert_eq!(server.wait_done(run), "ok");
    }
    let frames = server.finish().frames;
    let compacted = frames.iter().find(|frame| frame.is_event("Compacted")).expect("an event");
    assert_eq!(compacted.0["uiEvent"]["payload"]["clearedToolCallIds"], json!(["a"]));
    assert_eq!(compacted.payload("summary"), "");
    assert_eq!(provider.requests(), 4, "no summary was needed");
    let results = |number| {
        let request = provider.wait_request(number);
        let messages = request.body["messages"].as_array().expect("messages").clone();
        let of = messages.into_iter().filter(|it| it["role"] == "tool");
        of.map(|it| it["content"].as_str().expect("a text").to_owned()).collect::<Vec<_>>()
    };
    let [first] = &results(3)[..] else { panic!("one result") };
    assert!(first.contains("left out"), "{first}");
    let [first, second] = &results(4)[..] else { panic!("two results") };
    assert!(first.contains("left out") && second.contains("result result"), "{first} {second}");
}

/// A provider that counts as the program does, after so many tokens for tools and the like, and refuses what is more
/// than it takes. It answers what it is asked for a summary with `SUMMARY`, and everything else with `answer`.
fn counting(fixed: usize, takes: usize) -> Provider {
    Provider::deciding(move |request| {
        if request.method == "GET" {
            return vec![Step::Status(404, Vec::new(), String::new())];
        }
        let tokens = counted(request, fixed);
        if tokens > takes {
            return too_long();
        }
        let is_summary = texts(request).last().is_some_and(|it| it.contains("Summarize it"));
        let text = if is_summary { "SUMMARY" } else { "answer" };
        let counts = Some((u32::try_from(tokens).expect("few"), 3));
        vec![Step::Text(text.to_owned()), Step::Finish("stop", counts), Step::Done]
    })
}

fn counted(request: &Request, fixed: usize) -> usize {
    let messages = request.body["messages"].as_array().expect("messages");
    let calls = messages.iter().flat_map(|it| it["tool_calls"].as_array().into_iter().flatten());
    let calls = calls.filter_map(|call| call["function"]["arguments"].as_str().map(str::len));
    let texts = texts(request).into_iter().map(|text| text.len());
    fixed + calls.chain(texts).map(|bytes| bytes / 3 + 5).sum::<usize>()
}

/// Goes on with a session of `folder` whose model takes 3000 tokens, and is told so or not.
#[track_caller]
fn go_on_with_less(folder: &Folder, session: &str, known: bool) {
    let place = folder.name("store");
    let provider = counting(0, 3_000);
    let told: &[&str] = if known { &["--context-tokens", "3000"] } else { &["--compact", "auto"] };
    let own = ["--store", &place, "--session", session, "--extensions", "compaction"];
    let mut server = openai(&provider, &[&own[..], &["--retries", "0"], told].concat()).start();
    assert_eq!(server.turn("next", "next prompt"), "ok", "{session} {known}");
    assert_eq!(server.turn("last", "last prompt"), "ok", "{session} {known}");
    let frames = server.finish().frames;
    let made = compactions(&frames);
    let (begun, done): (Vec<_>, Vec<_>) =
        made.iter().copied().partition(|it| it.1 == "CompactionStarted");
    assert!(!done.is_empty() && begun.len() == done.len(), "{session} {known}: {made:?}");
    assert!(done.iter().all(|it| *it == ("next", "Compacted")), "{session} {known}: {made:?}");
    let last = texts(&provider.wait_request(provider.requests()));
    assert_eq!(last.last().map(|it| &**it), Some("last prompt"), "{session} {known}");
    if known {
        // No call is made that the model does not take.
        for number in 1..=provider.requests() {
            let tokens = counted(&provider.wait_request(number), 0);
            assert!(tokens <= 3_000, "{session}: {tokens}");
        }
    }
}

/// A session of turns with these prompts, with a model that takes more than all of them.
fn talked(folder: &Folder, session: &str, prompts: &[String]) {
    let place = folder.name("store");
    let provider = counting(0, 1_000_000);
    let mut server = openai(&provider, &["--store", &place, "--session", session]).start();
    for (number, prompt) in prompts.iter().enumerate() {
        assert_eq!(server.turn(&format!("r{number}"), prompt), "ok");
    }
    server.finish();
}

#[test]
fn a_conversation_past_the_limit_of_another_model_is_summarized_in_parts() {
    let folder = Folder::new();
    let prompts: Vec<_> = (0..14).map(|turn| format!("{turn} {}", "word ".repeat(200))).collect();
    talked(&folder, "turns", &prompts);
    for (known, session) in [(true, "known"), (false, "unknown")] {
        assert_eq!(sessions(&folder, &["fork", "turns", "--as", session]).status, 0);
        go_on_with_less(&folder, session, known);
    }
    // A copy of what was shown, as of a session that was compacted, has no compactions.
    let lines = sessions(&folder, &["export", "turns", "--format", "jsonl"]).stdout;
    std::fs::write(folder.path("lines"), lines).expect("a file");
    let lines = folder.name("lines");
    assert_eq!(sessions(&folder, &["import", &lines, "--as", "imported"]).status, 0);
    go_on_with_less(&folder, "imported", true);
}

/// Where it is not known how much the model takes, half of what was refused may be too much as well.
#[test]
fn a_call_that_is_refused_after_a_compaction_is_compacted_again() {
    let folder = Folder::new();
    let prompts: Vec<_> = (0..12).map(|turn| format!("{turn} {}", "word ".repeat(1_130))).collect();
    talked(&folder, "turns", &prompts);
    go_on_with_less(&folder, "turns", false);
}

#[test]
fn a_turn_that_is_past_the_limit_by_itself_is_summarized() {
    let folder = Folder::new();
    talked(&folder, "large", &["small".to_owned(), "word ".repeat(4_000)]);
    for (known, session) in [(true, "known"), (false, "unknown")] {
        assert_eq!(sessions(&folder, &["fork", "large", "--as", session]).status, 0);
        go_on_with_less(&folder, session, known);
    }
}

#[test]
fn a_turn_with_many_calls_of_tools_is_summarized() {
    let folder = Folder::new();
    let place = folder.name("store");
    // As much in the arguments as in the results, which can be left out.
    let arguments = json!({ "text": "word ".repeat(200) }).to_string();
    let ids: Vec<_> = (0..12).map(|number| format!("call-{number}")).collect();
    let script = ids.iter().map(|id| calls(&[(id, "get_time", &arguments)]));
    let counts = Some((8_600, 3));
    let done = vec![Step::Text("done".to_owned()), Step::Finish("stop", counts), Step::Done];
    let provider = Provider::start(script.chain([done]).collect());
    let mut server = openai(&provider, &["--store", &place, "--session", "agent"]).start();
    server.send(r#"{"requestId":"d","declareTools":{"tools":[{"name":"get_time"}]}}"#);
    assert_eq!(server.wait_done("d"), "ok");
    server.send(submit("r", "go"));
    for id in &ids {
        server.wait("a call", |it| {
            it.is_event("FrontendToolCallRequested") && it.payload("toolCallId") == *id
        });
        let answer = json!({ "toolCallId": id, "result": { "text": "result ".repeat(150) } });
        server.send(json!({ "requestId": format!("t-{id}"), "toolResult": answer }).to_string());
    }
    assert_eq!(server.wait_done("r"), "ok");
    server.finish();
    for (known, session) in [(true, "known"), (false, "unknown")] {
        assert_eq!(sessions(&folder, &["fork", "agent", "--as", session]).status, 0);
        go_on_with_less(&folder, session, known);
    }
}

/// No turn was answered with which a summary could stand for them. Where the prompt is too long they are not named.
#[test]
fn earlier_messages_that_are_too_long_are_told() {
    let unknown = ["--compact", "auto", "--retries", "0"];
    for (options, earlier, prompt, times) in [
        (&TOO_LONG[..], 3000, 3, 1),
        (&TOO_LONG, 3, 3000, 0),
        (&unknown, 3000, 3, 1),
        (&unknown, 3, 3000, 0),
    ] {
        let refused =
            if options == TOO_LONG { vec![too_long()] } else { vec![too_long(), no_list()] };
        let provider = Provider::start([refused.clone(), refused].concat());
        let folder = Folder::new();
        let message =
            |by: &str| json!({ "role": by, "text": "x".repeat(earlier) }).to_string() + "\n";
        std::fs::write(folder.path("history"), message("user") + &message("assistant"))
            .expect("a file");
        let history = folder.name("history");
        let mut server = openai(&provider, &[options, &["--history", &history]].concat()).start();
        for turn in ["r1", "r2"] {
            assert_eq!(server.turn(turn, &"x".repeat(prompt)), "failed");
        }
        server.send(compact("c", json!({})));
        assert_eq!(server.wait_done("c"), "failed");
        let ended = server.finish();
        assert_eq!(errors(&ended.frames, "c"), ["nothing_to_compact"]);
        let told = "summarized only together with a turn that was answered, and none was;";
        assert_eq!(ended.stderr.matches(told).count(), times, "{}", ended.stderr);
    }
}

/// What providers count beside the conversation stays the same whatever is left out of it.
#[test]
fn nothing_is_summarized_where_that_makes_no_room() {
    let provider = counting(7_000, 100_000);
    let options = ["--context-tokens", "8000", "--extensions", "compaction"];
    let mut server = openai(&provider, &options).start();
    for turn in 1..=4 {
        assert_eq!(server.turn(&format!("r{turn}"), "a prompt"), "ok");
    }
    let ended = server.finish();
    assert_eq!(compactions(&ended.frames), []);
    assert_eq!(provider.requests(), 4);
    let warned = ended.stderr.matches("system prompt and tools take about ").count();
    assert_eq!(warned, 1, "{}", ended.stderr);
}

#[test]
fn a_text_that_goes_with_a_prompt_counts_by_its_size() {
    for (repeats, begins) in [(16_000, true), (1, false)] {
        let provider = Provider::start(["one", "SUMMARY", "two"].map(says).to_vec());
        let folder = Folder::new();
        std::fs::write(folder.path("a.txt"), "word ".repeat(repeats)).expect("a file");
        let options = ["--context-tokens", "20000", "--extensions", "compaction,attachments"];
        let mut server = openai(&provider, &options).start();
        assert_eq!(server.turn("r1", &"word ".repeat(4_000)), "ok");
        let attachments = json!([{ "url": folder.name("a.txt") }]);
        let submit = json!({ "prompt": "read it", "attachments": attachments });
        server.send(json!({ "requestId": "r2", "submit": submit }).to_string());
        assert_eq!(server.wait_done("r2"), "ok");
        let frames = server.finish().frames;
        assert_eq!(!compactions(&frames).is_empty(), begins, "{repeats}");
    }
}

/// The call of a compaction after a dropped turn belongs to the turn before that.
#[test]
fn a_turn_has_the_usage_of_its_own_calls() {
    let folder = Folder::new();
    let place = folder.name("store");
    let counted = |counts| {
        vec![Step::Text("text".to_owned()), Step::Finish("stop", Some(counts)), Step::Done]
    };
    let provider = Provider::start([(100, 1), (2_000, 20), (50, 5)].map(counted).to_vec());
    let mut server = openai(&provider, &["--store", &place, "--session", "s"]).start();
    assert_eq!(server.turn("r1", "first prompt"), "ok");
    assert_eq!(server.turn("r2", "second prompt"), "ok");
    server.send(r#"{"requestId":"x","edit":{"dropLastTurn":{}}}"#);
    assert_eq!(server.wait_done("x"), "ok");
    server.send(compact("c", json!({})));
    assert_eq!(server.wait_done("c"), "ok");
    server.finish();
    assert_eq!(sessions(&folder, &["fork", "s", "--as", "copy"]).status, 0);
    for session in ["s", "copy"] {
        let exported = sessions(&folder, &["export", session, "--format", "json"]);
        let exported: Value = serde_json::from_str(&exported.stdout).expect("JSON");
        let usage = &exported["turns"][0]["usage"];
        let counts = (&usage["inputTokens"], &usage["outputTokens"]);
        assert_eq!(counts, (&json!("150"), &json!("6")), "{session}: {exported}");
    }
}

/// A process that is killed while it compacts leaves a call, which the next one closes and counts once.
#[test]
fn a_compaction_that_a_kill_cuts_off_is_closed() {
    let folder = Folder::new();
    let place = folder.name("store");
    let store = ["--store", &place, "--session", "s", "--extensions", "compaction,usage"];
    let provider = Provider::start(vec![says("one"), vec![Step::Text("half".into()), Step::Stall]]);
    let mut server = openai(&provider, &store).start();
    assert_eq!(server.turn("r1", "first prompt"), "ok");
    server.send(compact("c", json!({})));
    server.wait_event("CompactionStarted");
    provider.wait_request(2);
    kill(server);
    // Twice: what the first process closes is closed for the second one.
    for (number, id) in ["r2", "r3"].into_iter().enumerate() {
        let provider = Provider::start(vec![says("next")]);
        let mut server = openai(&provider, &store).start();
        assert_eq!(server.turn(id, "next prompt"), "ok");
        let frames = server.finish().frames;
        let totals = frames.iter().rfind(|it| it.is_event("UsageTotals")).expect("counts");
        let session = &totals.0["uiEvent"]["payload"]["session"];
        assert_eq!(session["uncountedCalls"], 1, "{totals:?}");
        assert_eq!(session["providerCalls"], number + 2, "{totals:?}");
    }
    let log: Vec<_> =
        events(&folder.path("store")).into_iter().map(|it| it.2.to_string()).collect();
    let failed = log.iter().filter(|it| it.contains("the run has ended")).count();
    assert_eq!(failed, 1, "{log:?}");
}

/// The turns that have room are sent as they are.
#[test]
fn the_last_turns_are_kept_if_there_is_room() {
    let counted = |text: &str| {
        vec![Step::Text(text.to_owned()), Step::Finish("stop", Some((34_000, 10))), Step::Done]
    };
    let provider =
        Provider::start(vec![says("one"), counted("two"), says("SUMMARY"), says("three")]);
    let mut server = openai(&provider, &["--context-tokens", "38000"]).start();
    assert_eq!(server.turn("r1", &"long ".repeat(20_000)), "ok");
    assert_eq!(server.turn("r2", "second prompt"), "ok");
    assert_eq!(server.turn("r3", "third prompt"), "ok");
    server.finish();
    let sent = texts(&provider.wait_request(4));
    assert_eq!(sent[1..], ["two", "third prompt"], "{sent:?}");
    assert!(sent[0].contains("SUMMARY") && sent[0].ends_with("second prompt"), "{sent:?}");
    let summarized = texts(&provider.wait_request(3));
    assert_eq!((summarized.len(), &*summarized[1]), (3, "one"), "the turn that it stands for");
}

#[test]
fn resume_forks_exports_and_edits_have_it() {
    let folder = Folder::new();
    let place = folder.name("store");
    let store = ["--store", &place, "--session", "s", "--final-snapshot", "none"];
    let talk = |provider: &Provider, options: &[&str]| {
        openai(provider, &[&store, options].concat()).start()
    };
    let provider = Provider::start(vec![says("one"), says("SUMMARY"), says("two")]);
    let mut server = talk(&provider, &TOO_LONG);
    assert_eq!(server.turn("r1", &long("first prompt")), "ok");
    assert_eq!(server.turn("r2", &long("second prompt")), "ok");
    server.finish();
    let has = |request: &Request, summary: &str| texts(request)[0].contains(summary);
    // In the next process, which makes another one between two turns.
    let provider = Provider::start(vec![says("three"), says("NEWER")]);
    let mut server = talk(&provider, &["--extensions", "compaction"]);
    let state = server.wait("the state", Frame::is_snapshot);
    let entities = state.0["snapshot"]["entities"].as_array().expect("a list");
    let of_it = entities.iter().filter(|it| it["kind"] == "Compaction").count();
    assert_eq!((of_it, entities.len()), (1, 5), "{entities:?}");
    let first = entities[0]["id"].as_str().expect("an id").to_owned();
    assert_eq!(server.turn("r3", "third prompt"), "ok");
    server.send(compact("c", json!({})));
    assert_eq!(server.wait_done("c"), "ok");
    server.finish();
    assert!(has(&provider.wait_request(1), "SUMMARY"), "{:?}", provider.wait_request(1));
    // In a copy, and in an export.
    let forked = sessions(&folder, &["fork", "s", "--as", "copy"]);
    assert_eq!(forked.status, 0, "{forked:?}");
    let provider = Provider::start(vec![says("four")]);
    let copy = ["--store", &place, "--session", "copy"];
    let mut server = openai(&provider, &copy).start();
    assert_eq!(server.turn("r4", "fourth prompt"), "ok");
    server.finish();
    assert!(has(&provider.wait_request(1), "NEWER"), "{:?}", provider.wait_request(1));
    let exported = sessions(&folder, &["export", "s", "--format", "json"]);
    let exported: Value = serde_json::from_str(&exported.stdout).expect("JSON");
    assert_eq!(exported["compactions"][0]["payload"]["summary"], "SUMMARY");
    assert!(exported["entities"].as_array().is_some_and(|it| it.len() == 6), "{exported}");
    // An edit of a turn before it undoes it.
    let provider = Provider::start(vec![says("anew")]);
    let mut server = talk(&provider, &[]);
    let replace = json!({ "messageId": first, "prompt": "another" });
    server.send(json!({ "requestId": "x", "edit": { "replace": replace } }).to_string());
    assert_eq!(server.wait_done("x"), "ok");
    server.finish();
    assert_eq!(texts(&provider.wait_request(1)), ["another"]);
}

/// An edit after the compaction leaves it, one of the turn in which it was made does not.
#[test]
fn an_edit_undoes_a_compaction_that_was_made_after_it() {
    let script =
        ["one", "SUMMARY", "two", "three", "again", "SUMMARY 2", "anew"].map(says).to_vec();
    let provider = Provider::start(script);
    let mut server = openai(&provider, &["--extensions", "compaction,edit"]).start();
    assert_eq!(server.turn("r1", "first prompt"), "ok");
    server.send(compact("c", json!({})));
    assert_eq!(server.wait_done("c"), "ok");
    assert_eq!(server.turn("r2", "second prompt"), "ok");
    assert_eq!(server.turn("r3", "third prompt"), "ok");
    server.send(r#"{"requestId":"x1","edit":{"regenerate":{}}}"#);
    assert_eq!(server.wait_done("x1"), "ok");
    assert!(texts(&provider.wait_request(5))[0].contains("SUMMARY"));
    for id in ["d1", "d2", "d3"] {
        server.send(format!(r#"{{"requestId":"{id}","edit":{{"dropLastTurn":{{}}}}}}"#));
        assert_eq!(server.wait_done(id), "ok");
    }
    server.send(snapshot("s"));
    assert_eq!(server.wait_done("s"), "ok");
    server.send(r#"{"requestId":"since","snapshot":{"sinceOrdinal":"1"}}"#);
    assert_eq!(server.wait_done("since"), "ok");
    let frames = server.finish().frames;
    let of = |id: &str| frames.iter().find(|it| it.is_snapshot() && it.id() == id).expect("one");
    assert_eq!(of("s").0["snapshot"].get("entities"), None, "{:?}", of("s"));
    // A client that asks for changes drops it.
    let compacted = frames.iter().find(|frame| frame.is_event("Compacted")).expect("an event");
    let entities = of("since").0["snapshot"]["entities"].as_array().expect("a list").clone();
    let of_it: Vec<_> = entities.iter().filter(|it| it["kind"] == "Compaction").collect();
    let [gone] = of_it[..] else { panic!("{entities:?}") };
    assert_eq!((&gone["tombstone"], gone.get("payload")), (&json!(true), None), "{gone}");
    assert_eq!(gone["id"], compacted.payload("compactionId"));
}

/// A budget counts what earlier processes have spent, and refuses the call that would pass it.
#[test]
fn a_budget_is_kept_over_processes() {
    let folder = Folder::new();
    let prices =
        json!({ "currency": "EUR", "models": { "scripted": { "input": 1000, "output": 1000 } } });
    std::fs::write(folder.path("prices"), prices.to_string()).expect("a file");
    let (place, prices) = (folder.name("store"), folder.name("prices"));
    // Each call of 122 tokens costs 0.122; the next request costs as much again.
    let budget = ["--prices", &prices, "--budget", "0.3", "--store", &place, "--session", "s"];
    let provider = Provider::start(vec![says("one"), says("two")]);
    let mut server = openai(&provider, &budget).start();
    assert_eq!(server.turn("r1", "first prompt"), "ok");
    server.finish();
    let usage = ["--extensions", "usage"];
    let mut server = openai(&provider, &[&budget[..], &usage].concat()).start();
    assert_eq!(server.turn("r2", "second prompt"), "ok");
    assert_eq!(server.turn("r3", "third prompt"), "failed");
    let ended = server.finish();
    assert_eq!(errors(&ended.frames, "r3"), ["budget_exhausted"]);
    let error = ended.frames.iter().find(|it| it.error().is_some()).expect("an error");
    let told = "would pass the budget of 0.300000 EUR, of which 0.244000 EUR are spent";
    assert!(error.text("/error/message").contains(told), "{error:?}");
    let warned: Vec<_> =
        ended.frames.iter().filter(|it| it.is_event("BudgetNearlySpent")).collect();
    let [warned] = warned[..] else { panic!("{warned:?}") };
    assert_eq!(warned.payload("budget"), "0.300000");
    assert_eq!(warned.payload("cost"), "0.244000");
    assert!(ended.stderr.contains("of the budget of 0.300000 are spent"), "{}", ended.stderr);
    assert_eq!(provider.requests(), 2);
    // A model without a price is not asked.
    let mut server = openai(&provider, &["--budget", "5"]).start();
    assert_eq!(server.turn("r", "hi"), "failed");
    assert_eq!(errors(&server.finish().frames, "r"), ["budget_exhausted"]);
}

/// What earlier processes have spent without a price, or in another currency, is not added to what is spent now.
#[test]
fn a_budget_says_what_it_does_not_count() {
    let folder = Folder::new();
    for currency in ["EUR", "JPY"] {
        let prices = json!({ "currency": currency,
            "models": { "scripted": { "input": 1000, "output": 1000 } } });
        std::fs::write(folder.path(currency), prices.to_string()).expect("a file");
    }
    let (place, euros, yens) = (folder.name("store"), folder.name("EUR"), folder.name("JPY"));
    let stored = ["--store", &place, "--session", "s"];
    let provider = Provider::start(vec![says("one"), says("two"), says("three"), says("four")]);
    let mut server = openai(&provider, &stored).start();
    assert_eq!(server.turn("r1", "first prompt"), "ok");
    server.finish();
    let budget = ["--prices", &euros, "--budget", "0.9"];
    let mut server = openai(&provider, &[&stored[..], &budget].concat()).start();
    assert_eq!(server.turn("r2", "second prompt"), "ok");
    assert_eq!(server.turn("r3", "third prompt"), "ok");
    let ended = server.finish();
    let told = "the budget of 0.900000 EUR does not count all of this conversation";
    assert_eq!(ended.stderr.matches(told).count(), 1, "{}", ended.stderr);
    // 0.244 EUR are no JPY.
    let budget = ["--prices", &yens, "--budget", "0.3"];
    let mut server = openai(&provider, &[&stored[..], &budget].concat()).start();
    assert_eq!(server.turn("r4", "fourth prompt"), "ok");
    let ended = server.finish();
    let told = "the budget of 0.300000 JPY does not count all of this conversation";
    assert_eq!(ended.stderr.matches(told).count(), 1, "{}", ended.stderr);
    assert!(!ended.stderr.contains("are spent"), "{}", ended.stderr);
}

/// A file of prices: what a call of `scripted` and of `small` costs.
fn prices(folder: &Folder) -> String {
    let models = json!({
        "scripted": { "input": 1000, "output": 1000 },
        "small": { "input": 1, "output": 1 },
    });
    let prices = json!({ "currency": "EUR", "models": models });
    std::fs::write(folder.path("prices"), prices.to_string()).expect("a file");
    folder.name("prices")
}

/// A compaction that is asked for hides its call, and neither what it costs nor what happens to the session.
#[test]
fn what_happens_during_a_compaction_is_shown() {
    let folder = Folder::new();
    let prices = prices(&folder);
    let gated = |text: &str| [vec![Step::Gate], says(text)].concat();
    let provider = Provider::start(vec![says("one"), gated("SUMMARY")]);
    let args = ["--prices", &prices, "--budget", "0.3", "--extensions", "compaction,usage"];
    let mut server = openai(&provider, &args).start();
    assert_eq!(server.turn("r1", "first prompt"), "ok");
    server.send(compact("c", json!({})));
    server.wait_event("CompactionStarted");
    server.send(r#"{"requestId":"d","declareTools":{"tools":[{"name":"get_time"}]}}"#);
    assert_eq!(server.wait_done("d"), "ok");
    provider.open_gate();
    assert_eq!(server.wait_done("c"), "ok");
    let frames = server.finish().frames;
    let has = |id: &str, name: &str| frames.iter().any(|it| it.id() == id && it.is_event(name));
    assert!(has("d", "FrontendToolManifestUpdated"));
    assert!(has("c", "BudgetNearlySpent"));
    let totals = frames.iter().rfind(|it| it.is_event("UsageTotals")).expect("counts");
    assert_eq!((totals.id(), totals.payload("session/cost")), ("c", "0.244000"), "{totals:?}");
    // It is a run of its own.
    assert_eq!(totals.payload("run/cost"), "0.122000", "{totals:?}");
    assert!(!has("c", "ChatProviderCallStarted"));
}

/// A summary costs what its model costs, and the answer after it is not made if that passes the budget.
#[test]
fn a_budget_counts_the_summary() {
    let folder = Folder::new();
    let prices = prices(&folder);
    // Each call costs 0.122, or hardly anything with the small model.
    for (model, budget, done) in [("small", "0.5", "ok"), ("scripted", "0.39", "failed")] {
        let provider = Provider::start(vec![says("one"), says("SUMMARY"), says("two")]);
        let own = ["--prices", &prices, "--budget", budget, "--compact-model", model];
        let args = [&TOO_LONG[..], &own, &["--extensions", "usage"]].concat();
        let mut server = openai(&provider, &args).start();
        assert_eq!(server.turn("r1", &long("first prompt")), "ok");
        assert_eq!(server.turn("r2", &"second prompt ".repeat(30)), done, "{model}");
        let frames = server.finish().frames;
        match done {
            "ok" => {
                let last = frames.iter().rfind(|it| it.is_event("UsageTotals")).expect("counts");
                assert_eq!(last.payload("session/cost"), "0.244122", "{last:?}");
            }
            _ => assert_eq!(errors(&frames, "r2"), ["budget_exhausted"]),
        }
        assert_eq!(provider.requests(), if done == "ok" { 3 } else { 2 });
    }
}

/// A summary whose price is not known is not asked for, and the person is told so once.
#[test]
fn a_budget_says_why_the_conversation_is_not_compacted() {
    let folder = Folder::new();
    let prices = prices(&folder);
    let provider = Provider::start(["one", "two", "three"].map(says).to_vec());
    let own = ["--prices", &prices, "--budget", "5", "--compact-model", "unpriced"];
    let mut server = openai(&provider, &[&TOO_LONG[..], &own].concat()).start();
    for turn in ["r1", "r2", "r3"] {
        assert_eq!(server.turn(turn, &long("prompt")), "ok", "{turn}");
    }
    let ended = server.finish();
    let told = "could not be compacted: the price of model unpriced is not known";
    assert_eq!(ended.stderr.matches(told).count(), 1, "{}", ended.stderr);
    assert_eq!(provider.requests(), 3);
}

/// The prompt counts, and what it replaces does not.
#[test]
fn a_budget_is_asked_for_what_would_be_sent() {
    let folder = Folder::new();
    let prices = prices(&folder);
    let provider = Provider::start(vec![says("one"), says("two")]);
    let args = ["--prices", &prices, "--budget", "0.5"];
    let mut server = openai(&provider, &args).start();
    assert_eq!(server.turn("large", &"x".repeat(3000)), "failed");
    assert_eq!(provider.requests(), 0);
    assert_eq!(server.turn("r", &"x".repeat(900)), "ok");
    server.send(r#"{"requestId":"e","edit":{"regenerate":{}}}"#);
    assert_eq!(server.wait_done("e"), "ok", "what it drops is not sent");
    let frames = server.finish().frames;
    assert_eq!(errors(&frames, "large"), ["budget_exhausted"]);
}

/// A run that has called tools ends before the call that would pass it.
#[test]
fn a_budget_ends_a_run_between_its_calls() {
    let folder = Folder::new();
    let prices =
        json!({ "currency": "EUR", "models": { "scripted": { "input": 1000, "output": 1000 } } });
    std::fs::write(folder.path("prices"), prices.to_string()).expect("a file");
    let prices = folder.name("prices");
    let mut called = calls(&[("a", "get_time", "{}")]);
    called[1] = Step::Finish("tool_calls", Some((110, 12)));
    let provider = Provider::start(vec![called]);
    let mut server = openai(&provider, &["--prices", &prices, "--budget", "0.2"]).start();
    server.send(r#"{"requestId":"d","declareTools":{"tools":[{"name":"get_time"}]}}"#);
    assert_eq!(server.wait_done("d"), "ok");
    server.send(submit("r", "what time is it?"));
    server.wait_event("FrontendToolCallRequested");
    server.send(r#"{"requestId":"t","toolResult":{"toolCallId":"a","result":{}}}"#);
    assert_eq!(server.wait_done("r"), "failed");
    assert_eq!(errors(&server.finish().frames, "r"), ["budget_exhausted"]);
    assert_eq!(provider.requests(), 1);
}
