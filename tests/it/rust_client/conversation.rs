//! Conversations with the program itself: runs, streams, what stops them, and sessions.

use super::ends::start_program;
use super::{
    BINARY, Scratch, endless, kill, process_of, read_to, real, rest, run, start,
    texts_and_statuses, unreachable, until,
};
use duologue::client::{Answer, Any, Duologue, Entity, Error, Event, OnBusy, Prompt, Refused};
use duologue::protocol::proto::rpc::rpc_request_line::Request as Body;
use duologue::protocol::proto::rpc::{CompactRequest, SnapshotRequest, SwitchModelRequest};
use serde_json::Value;
use std::fs;
use std::sync::{Arc, Mutex};

/// What the text of an error is, for the libraries of all languages.
const ERROR_TEXTS: &str = include_str!("../../../clients/error_texts.json");

/// Details of failed runs, and whether the same prompt may succeed later.
const RETRYABLE_ERRORS: &str = include_str!("../../../clients/retryable_errors.json");

#[tokio::test]
async fn a_run_has_an_answer() {
    let chat = start(real().args(["--echo-reasoning"])).await;
    let answer = run(&chat, "hello").await;
    assert_eq!((answer.status.as_str(), answer.text.as_str()), ("ok", "Turn 1. You said: hello"));
    assert_eq!(answer.reasoning, "This is turn 1. I repeat what I was told.");
    assert_eq!(answer.finish_class, "completed");
}

#[tokio::test]
async fn a_stream_has_typed_events_and_ends_at_its_done() {
    let chat = start(real()).await;
    let mut stream = chat.stream("hello");
    let (mut text, mut names) = (String::new(), Vec::new());
    while let Some(event) = stream.next().await {
        let event = event.expect("an event");
        assert_eq!(event.payload.as_ref().map(Any::name), Some(event.name.as_str()));
        if let Some(Any::ChatTextPatch(patch)) = &event.payload {
            text.push_str(&patch.text);
        }
        names.push(event.name);
    }
    assert_eq!(text, "Turn 1. You said: hello");
    assert_eq!(stream.answer().expect("an answer").text, text);
    let ends = (names.first().map(String::as_str), names.last().map(String::as_str));
    assert_eq!(ends, (Some("ChatUserMessageAccepted"), Some("ChatRunFinished")));
    assert!(stream.next().await.is_none(), "the end is the end");
}

#[test]
fn events_of_the_environment_are_not_filtered() {
    let of_scripts = [("DUOLOGUE_EVENTS", "ChatRun*"), ("DUOLOGUE_PATCH_MODE", "snapshot")];
    let variables = [("DUOLOGUE_BIN", BINARY), of_scripts[0], of_scripts[1]];
    let (mut program, said) = start_program("unnamed", &variables);
    assert!(program.wait().expect("an end").success());
    assert_eq!(said, "Turn 1. You said: x");
}

#[tokio::test]
async fn requests_in_flight_get_their_own_frames() {
    let chat = start(real().args(["--echo-delay-ms=1"]).on_busy(OnBusy::Queue)).await;
    let mut first = chat.stream("one");
    read_to(&mut first, "ChatTextSegmentStarted").await;
    let (second, shown, (texts, error)) =
        tokio::join!(chat.run("two"), chat.snapshot(SnapshotRequest::default()), rest(&mut first),);
    assert_eq!((texts.concat().as_str(), error), ("Turn 1. You said: one", None));
    let second = second.expect("an answer").text;
    assert!(second.starts_with("Turn 2. You said: two"), "{second}");
    let shown = shown.expect("a snapshot");
    let Some(Any::ChatMessageEntity(prompt)) = &shown.entities[0].payload else {
        panic!("{shown:?}")
    };
    assert_eq!(prompt.text, "one");
}

#[tokio::test]
async fn leaving_a_stream_stops_its_run_and_the_next_prompt_works() {
    let chat = start(real().args(["--echo-delay-ms=20"])).await;
    let mut stream = chat.stream("one ".repeat(1000));
    read_to(&mut stream, "ChatTextPatch").await;
    drop(stream);
    let text = run(&chat, "two").await.text;
    assert!(text.starts_with("Turn 2. You said: two"), "{text}");
    let statuses: Vec<_> = texts_and_statuses(&chat).await.into_iter().map(|it| it.1).collect();
    assert_eq!(statuses, ["accepted", "stopped", "accepted", "finished"]);
}

#[tokio::test]
async fn a_dropped_future_stops_its_run() {
    let chat = start(endless().on_busy(OnBusy::Queue)).await;
    let mut first = chat.stream("one");
    read_to(&mut first, "ChatProviderCallStarted").await;
    tokio::select! {
        biased;
        answer = chat.run("two") => panic!("it waits for the first: {answer:?}"),
        // The server has read the prompt before it answers this.
        shown = chat.snapshot(SnapshotRequest::default()) => drop(shown.expect("a snapshot")),
    }
    for _ in 0..2 {
        // The first one may be written before the cancel.
        chat.snapshot(SnapshotRequest::default()).await.expect("a snapshot");
    }
    first.cancel().await.expect("a cancel");
    assert_eq!(rest(&mut first).await.1, None);
    assert!(first.answer().is_some_and(Answer::is_stopped));
    assert!(!chat.cancel().await.expect("nothing to stop"));
    assert_eq!(texts_and_statuses(&chat).await.len(), 1, "the second never began");

    let chat = start(endless()).await;
    tokio::select! {
        answer = chat.run("one") => panic!("it goes on: {answer:?}"),
        () = until(|| chat.ordinal() >= 3) => {}
    }
    // The next prompt is not refused.
    read_to(&mut chat.stream("two"), "ChatProviderCallStarted").await;
}

#[tokio::test]
async fn a_cancel_is_a_status_and_no_error() {
    let chat = start(endless()).await;
    for is_own in [true, false] {
        let mut stream = chat.stream("one");
        read_to(&mut stream, "ChatProviderCallStarted").await;
        match is_own {
            true => stream.cancel().await.expect("a cancel"),
            false => assert!(chat.cancel().await.expect("a cancel")),
        }
        assert_eq!(rest(&mut stream).await.1, None);
        assert!(stream.answer().is_some_and(Answer::is_stopped));
    }
    assert!(!chat.cancel().await.expect("nothing to stop"));
}

type Names = Arc<Mutex<Vec<String>>>;

/// The names of the events that come as notices, and what notes them.
fn noted() -> (Names, impl Fn(Result<Event, Error>)) {
    let names = Names::default();
    let list = Arc::clone(&names);
    let on_notice = move |notice: Result<Event, Error>| {
        list.lock().expect("a list").push(notice.expect("an event").name);
    };
    (names, on_notice)
}

#[tokio::test]
async fn a_compaction_is_stopped_like_a_run() {
    let scratch = Scratch::new("stopped-compaction");
    let chat = start(scratch.stored()).await;
    run(&chat, "one").await;
    chat.close().await;
    let (names, on_notice) = noted();
    let slow = scratch.stored().args(["--echo-delay-ms=60000"]);
    let chat = start(slow.on_notice(on_notice)).await;
    let begun = |count| {
        let names = names.lock().expect("a list");
        names.iter().filter(|name| *name == "CompactionStarted").count() == count
    };
    let mut stream = chat.compact("", 0);
    read_to(&mut stream, "CompactionStarted").await;
    stream.cancel().await.expect("a cancel");
    assert_eq!(rest(&mut stream).await.1, None);
    assert!(stream.answer().is_some_and(Answer::is_stopped));
    tokio::select! {
        ended = chat.compact("", 0).finish() => panic!("it goes on: {ended:?}"),
        () = until(|| begun(1)) => {}
    }
    tokio::select! {
        ended = chat.send(Body::Compact(CompactRequest::default())) => panic!("it goes on: {ended:?}"),
        () = until(|| begun(2)) => {}
    }
    // The next prompt is not refused.
    read_to(&mut chat.stream("two"), "ChatProviderCallStarted").await;
}

#[tokio::test]
async fn events_of_other_requests_are_notices() {
    let (names, on_notice) = noted();
    let chat = start(real().on_notice(on_notice)).await;
    run(&chat, "one").await;
    chat.compact("", 0).finish().await.expect("a summary");
    let echo = SwitchModelRequest { engine: "echo".to_owned(), ..Default::default() };
    chat.switch_model(echo).await.expect("a model");
    chat.drop_last_turn().await.expect("an edit");
    let expected =
        ["CompactionStarted", "UsageTotals", "Compacted", "ModelSwitched", "TurnDropped"];
    assert_eq!(*names.lock().expect("a list"), expected);
}

#[tokio::test]
async fn a_failed_run_is_an_error_after_its_events() {
    let chat = start(unreachable()).await;
    let mut stream = chat.stream("hello");
    read_to(&mut stream, "ChatRunFailed").await;
    match stream.next().await {
        Some(Err(Error::Provider(refused))) => {
            assert_eq!((refused.class(), refused.is_retryable()), ("network", true));
        }
        other => panic!("{other:?}"),
    }
    assert!(stream.next().await.is_none(), "the error is the end");
    assert_eq!(stream.answer(), None);
    assert!(matches!(chat.run("hello").await, Err(Error::Provider(_))));
}

#[tokio::test]
async fn a_prompt_during_a_run_is_refused() {
    let chat = start(endless()).await;
    let mut first = chat.stream("one");
    assert!(first.next().await.is_some());
    assert!(matches!(chat.run("two").await, Err(Error::Busy(_))));
}

#[tokio::test]
async fn settings_and_attachments_go_along() {
    let scratch = Scratch::new("attachments");
    let path = scratch.0.join("note.txt");
    fs::write(&path, "a note").expect("a file");
    let chat = start(real()).await;
    let prompt = Prompt::from("read this").attach(path.display().to_string());
    chat.run(prompt).await.expect("an answer");
    let shown = chat.snapshot(SnapshotRequest::default()).await.expect("a snapshot");
    let Some(Any::ChatMessageEntity(message)) = &shown.entities[0].payload else {
        panic!("{shown:?}")
    };
    assert_eq!(message.attachments.len(), 1);
    let nonsense = [("nonsense".to_owned(), 1.into())].into_iter().collect();
    let refused = chat.run(Prompt::from("x").settings(nonsense)).await.expect_err("a refusal");
    assert_eq!(refused.code(), "invalid_settings");
}

#[tokio::test]
async fn the_text_of_an_error_has_its_reason() {
    let chat = start(real()).await;
    let nonsense = [("temprature".to_owned(), 1.into())].into_iter().collect();
    let refused = chat.run(Prompt::from("x").settings(nonsense)).await.expect_err("a refusal");
    let text = refused.to_string();
    assert!(text.contains(" (there is no setting \"temprature\"; the settings are "), "{text}");
    let error = refused.refused().expect("an error of the server");
    assert_eq!(text, format!("{} ({})", error.message, error.detail));
    // What the message has is not said again.
    let wrong = real().args(["--nonsense"]).start().await.expect_err("a refusal").to_string();
    assert_eq!(wrong.matches("--nonsense").count(), 1, "{wrong}");
    let cases: Value = serde_json::from_str(ERROR_TEXTS).expect("JSON");
    for case in cases.as_array().expect("cases") {
        let [message, detail, text] =
            ["message", "detail", "text"].map(|member| case[member].as_str().expect("a text"));
        let (message, detail) = (message.to_owned(), detail.to_owned());
        let error = Refused { message, detail, ..Refused::default() };
        assert_eq!(error.to_string(), text, "{}", error.detail);
    }
}

#[test]
fn an_account_without_credit_is_not_retryable() {
    let cases: Value = serde_json::from_str(RETRYABLE_ERRORS).expect("JSON");
    for case in cases.as_array().expect("cases") {
        let detail = case["detail"].as_str().expect("a text").to_owned();
        let error = Refused { detail, ..Refused::default() };
        assert_eq!(case["isRetryable"], error.is_retryable(), "{}", error.detail);
    }
}

#[tokio::test]
async fn an_attachments_path_is_the_programs_own() {
    let chat = start(real().folder("/")).await;
    let answer = chat.run(Prompt::from("x").attach("examples/squares.png")).await;
    let text = answer.expect("an answer").text;
    assert!(text.contains("squares.png (image/png"), "{text}");
    let answer = chat.run(Prompt::from("x").attach("DATA:text/plain,a")).await;
    assert_eq!(answer.expect("an answer").status, "ok");
}

#[tokio::test]
async fn requests_past_the_limit_of_the_server_are_not_sent() {
    let chat = start(real().args(["--max-request-bytes=1000"])).await;
    let refused = chat.run("x".repeat(1000)).await;
    assert!(matches!(refused, Err(Error::TooLong(_))), "{refused:?}");
    assert_eq!(run(&chat, "x").await.text, "Turn 1. You said: x");
}

#[tokio::test]
async fn a_session_goes_on() {
    let scratch = Scratch::new("goes-on");
    let chat = start(scratch.stored()).await;
    run(&chat, "one").await;
    let seen = chat.ordinal();
    chat.close().await;
    let chat = start(scratch.stored()).await;
    let initial = chat.initial().expect("a conversation").entities.len();
    assert_eq!((chat.session_id().as_str(), chat.ordinal(), initial), ("ada", seen, 2));
    let text = run(&chat, "two").await.text;
    assert!(text.starts_with("Turn 2. You said: two"), "{text}");
    let since = SnapshotRequest { since_ordinal: seen, ..SnapshotRequest::default() };
    assert_eq!(chat.snapshot(since).await.expect("a snapshot").entities.len(), 2);
    let last = SnapshotRequest { limit: 1, ..SnapshotRequest::default() };
    assert_eq!(chat.snapshot(last).await.expect("a snapshot").entities.len(), 1);
    assert_eq!(texts_and_statuses(&chat).await.len(), 4);
}

#[tokio::test]
async fn a_history_in_pages_is_that_of_a_snapshot() {
    let chat = start(real().page_entities(2)).await;
    for turn in 0..4 {
        run(&chat, "x").await;
        if turn > 1 {
            chat.compact("", 1).finish().await.expect("a summary");
        }
    }
    let entities = chat.snapshot(SnapshotRequest::default()).await.expect("a snapshot").entities;
    let ids = |of: &[Entity]| of.iter().map(|it| it.id.clone()).collect::<Vec<_>>();
    assert_eq!(ids(&chat.history().await.expect("a history")), ids(&entities));
    let is_compaction: Vec<_> = entities.iter().map(|it| it.kind == "Compaction").collect();
    assert_eq!(is_compaction, [vec![false; 8], vec![true; 2]].concat());
}

#[tokio::test]
async fn the_end_of_a_conversation_is_edited_and_a_session_is_copied() {
    let scratch = Scratch::new("edits");
    let chat = start(scratch.stored()).await;
    let first = run(&chat, "one").await.message_id;
    run(&chat, "two").await;
    let copy = start(chat.fork(Some(1)).await.expect("a copy")).await;
    assert_eq!(texts_and_statuses(&copy).await.len(), 2);
    assert_ne!(copy.session_id(), chat.session_id());
    let again = chat.regenerate().finish().await.expect("an answer").text;
    assert!(again.starts_with("Turn 2. You said: two"), "{again}");
    chat.replace(first, "three").finish().await.expect("an answer");
    let texts: Vec<_> = texts_and_statuses(&chat).await.into_iter().map(|it| it.0).collect();
    assert_eq!(texts, ["three", "Turn 1. You said: three"]);
    chat.drop_last_turn().await.expect("an edit");
    assert!(texts_and_statuses(&chat).await.is_empty());
}

#[tokio::test]
async fn a_store_that_fails_is_a_notice() {
    let scratch = Scratch::new("failing-store");
    let notices: Arc<Mutex<Vec<Error>>> = Arc::default();
    let noted = Arc::clone(&notices);
    let on_notice = move |notice| {
        if let Err(error) = notice {
            noted.lock().expect("a list").push(error);
        }
    };
    let chat = start(scratch.stored().on_notice(on_notice)).await;
    run(&chat, "one").await;
    fs::remove_file(scratch.0.join("chat.db")).expect("a file");
    assert_eq!(run(&chat, "two").await.status, "ok");
    // The error comes before the answer to a later request.
    assert_eq!(texts_and_statuses(&chat).await.len(), 4);
    let notices = notices.lock().expect("a list");
    let is_store = |it: &Error| matches!(it, Error::Store(_)) && it.code() == "store_failed";
    assert!(notices.last().is_some_and(is_store), "{notices:?}");
}

#[tokio::test]
async fn a_notice_that_panics_ends_nothing() {
    let count: Arc<Mutex<usize>> = Arc::default();
    let counted = Arc::clone(&count);
    let on_notice = move |notice: Result<Event, Error>| {
        let name = notice.expect("an event").name;
        *counted.lock().expect("a count") += usize::from(name == "FrontendToolManifestUpdated");
        panic!("a defect of the program");
    };
    let chat = start(real().on_notice(on_notice)).await;
    for _ in 0..2 {
        chat.send(Body::DeclareTools(Default::default())).await.expect("a list of no tools");
    }
    assert_eq!(*count.lock().expect("a count"), 2);
    assert_eq!(run(&chat, "one").await.status, "ok");
}

/// Gives the end of the answer that the killed process was at, as shown and as stored.
async fn reconnect(chat: &Duologue) -> (String, String) {
    let changes = chat.reconnect().await.expect("another process");
    let answer = changes.iter().find(|it| it.entity.id.contains(":text:")).expect("the answer");
    let Some(Any::ChatMessageEntity(message)) = &answer.entity.payload else {
        panic!("{answer:?}")
    };
    assert_eq!(message.status, "stopped");
    (answer.text.clone(), message.text.clone())
}

#[tokio::test]
async fn nothing_is_shown_twice_after_a_reconnect() {
    let scratch = Scratch::new("reconnect");
    let chat = start(scratch.stored().args(["--echo-delay-ms=1"])).await;
    assert!(matches!(chat.reconnect().await, Err(Error::Misuse(_))), "the process runs");
    run(&chat, "one").await;
    let prompt = "two ".repeat(10_000);
    let mut stream = chat.stream(prompt.as_str());
    read_to(&mut stream, "ChatTextSegmentStarted").await;
    let Some(Ok(event)) = stream.next().await else { panic!("a patch") };
    let Some(Any::ChatTextPatch(patch)) = event.payload else { panic!("{event:?}") };
    kill(process_of(&chat));
    let (texts, failure) = rest(&mut stream).await;
    assert!(matches!(failure, Some(Error::ProcessEnded { status: Some(_), .. })), "{failure:?}");
    assert!(matches!(chat.run("lost").await, Err(Error::ProcessEnded { .. })));
    let (unseen, stored) = reconnect(&chat).await;
    assert_eq!(patch.text + &texts.concat() + &unseen, stored);

    // Nobody has seen the text of a run without a stream.
    let before = chat.ordinal();
    let (failed, ()) = tokio::join!(chat.run(prompt), async {
        until(|| chat.ordinal() > before + 20).await;
        kill(process_of(&chat));
    });
    assert!(matches!(failed, Err(Error::ProcessEnded { .. })), "{failed:?}");
    let (unseen, stored) = reconnect(&chat).await;
    assert_eq!((unseen.is_empty(), unseen), (false, stored));
    assert!(run(&chat, "four").await.text.starts_with("Turn 4."));
}

#[tokio::test]
async fn a_prompt_during_a_reconnect_that_fails() {
    let scratch = Scratch::new("failing-reconnect");
    let chat = start(scratch.stored()).await;
    kill(process_of(&chat));
    assert!(matches!(chat.run("lost").await, Err(Error::ProcessEnded { .. })));
    // It holds the session now.
    let other = start(scratch.stored()).await;
    let (failed, prompt) = tokio::join!(chat.reconnect(), chat.run("lost"));
    assert!(matches!(failed, Err(Error::Store(_))), "{failed:?}");
    assert!(matches!(prompt, Err(Error::ProcessEnded { .. })), "{prompt:?}");
    other.close().await;
    chat.reconnect().await.expect("another process");
}

#[tokio::test]
async fn a_store_that_the_environment_names() {
    let scratch = Scratch::new("store-variable");
    let chat = start(real().env("DUOLOGUE_STORE", scratch.0.join("chat.db")).session("ada")).await;
    run(&chat, "one").await;
    let copy = start(chat.fork(None).await.expect("a copy")).await;
    assert_eq!(texts_and_statuses(&copy).await.len(), 2);
    kill(process_of(&chat));
    assert!(matches!(chat.run("lost").await, Err(Error::ProcessEnded { .. })));
    chat.reconnect().await.expect("another process");
    assert_eq!(texts_and_statuses(&chat).await.len(), 2);
    let chat = start(real().env("DUOLOGUE_STORE", "")).await;
    assert!(matches!(chat.fork(None).await, Err(Error::Misuse(_))));
}

#[tokio::test]
async fn reconnects_at_once_are_one() {
    let scratch = Scratch::new("reconnects");
    let chat = start(scratch.stored()).await;
    run(&chat, "one").await;
    let other = chat.clone();
    kill(process_of(&chat));
    let failures = tokio::join!(chat.run("lost"), other.run("lost"));
    assert!(failures.0.is_err() && failures.1.is_err(), "{failures:?}");
    let again = tokio::join!(chat.reconnect(), other.reconnect());
    assert_eq!(again.0.expect("another process"), again.1.expect("the same"));
    assert_eq!(chat.process_id(), other.process_id());
    assert!(run(&chat, "two").await.text.starts_with("Turn 2."));
    assert!(run(&other, "three").await.text.starts_with("Turn 3."));
    assert!(matches!(other.reconnect().await, Err(Error::Misuse(_))), "the process runs");
}
