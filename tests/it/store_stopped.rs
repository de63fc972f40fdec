//! What has no whole answer shows that later: in a chat that goes on with it, and in exports.

use crate::chat_lines::piped;
use crate::client_tools::calls;
use crate::frames::{Frame, cancel, submit};
use crate::interface::{declare_get_time, return_results};
use crate::once::run;
use crate::provider::{Provider, Step, says};
use crate::server::{Folder, openai};
use crate::store::{kill, resumed, wait_state};
use std::fs;

/// What a prompt is marked with that has no answer.
const UNANSWERED: &str = "stopped before an answer";

/// What the answer is marked with that a crash cut off.
const CRASHED: &str = "stopped: the answer was cut off: the process ended before the run did";

/// What `duologue sessions <words>` prints about the session `s`.
#[track_caller]
fn sessions(folder: &Folder, words: &[&str]) -> String {
    let ended = run(folder, &[&["sessions"], words, &["--store", "store"]].concat());
    assert_eq!((ended.status, ended.stderr.as_str()), (0, ""), "{ended:?}");
    ended.stdout
}

/// What a chat that goes on with the session prints first, and its export.
#[track_caller]
fn chat(folder: &Folder) -> (String, String) {
    let options = ["--store", "store", "--session-id", "s", "--resume"];
    let ended = piped(folder, &options, "/export all.md\n");
    assert_eq!(ended.status, 0, "{ended:?}");
    (ended.stdout, fs::read_to_string(folder.path("all.md")).expect("the export"))
}

/// Checks that these texts follow one another.
#[track_caller]
fn follow(text: &str, parts: &[&str]) {
    let mut rest = text;
    for part in parts {
        rest = rest.split_once(part).unwrap_or_else(|| panic!("no {part:?} there: {text}")).1;
    }
}

#[test]
fn a_prompt_that_was_stopped_before_its_first_token_shows_that() {
    let folder = Folder::new();
    let place = folder.name("store");
    let provider = Provider::start(vec![vec![Step::Stall], says("Four.")]);
    let mut server = openai(&provider, &["--store", &place, "--session-id", "s"]).start();
    server.send(submit("r1", "first"));
    provider.wait_request(1);
    server.send(cancel("c"));
    assert_eq!(server.wait_done("r1"), "stopped");
    assert_eq!(server.turn("r2", "second"), "ok");
    // For other clients the prompt is what it was.
    let frames = server.finish().frames;
    let state = frames.iter().rfind(|frame| frame.is_snapshot()).expect("a snapshot");
    assert_eq!(state.0["snapshot"]["entities"][0]["payload"]["status"], "accepted");

    let expected = format!("user: first\n    [{UNANSWERED}]\n\nuser: second\n\nassistant: Four.\n");
    assert_eq!(sessions(&folder, &["show", "s"]), expected);
    let markdown = sessions(&folder, &["export", "s", "--format", "markdown"]);
    let first = format!("## User\n\nfirst\n\n*({UNANSWERED})*\n\n*scripted (openai)");
    for expected in [&*first, "## User\n\nsecond\n\n\n## Assistant"] {
        assert!(markdown.contains(expected), "{markdown}");
    }
    let html = sessions(&folder, &["export", "s", "--format", "html"]);
    follow(&html, &["first", UNANSWERED, "second", "Four."]);
    let (printed, exported) = chat(&folder);
    follow(&printed, &["first", UNANSWERED, "second", "Four."]);
    follow(&exported, &["## You\n\nfirst", &format!("*({UNANSWERED})*"), "second", "Four."]);
    for text in [&markdown, &html, &printed, &exported] {
        assert_eq!(text.matches(UNANSWERED).count(), 1, "{text}");
    }
}

#[test]
fn an_answer_that_a_crash_cut_off_shows_that() {
    let folder = Folder::new();
    let place = folder.name("store");
    let store = ["--store", &place, "--session-id", "s"];
    let half = vec![Step::Text("Half".to_owned()), Step::Stall];
    let provider = Provider::start(vec![half, says("Whole.")]);
    let mut server = openai(&provider, &store).start();
    server.send(submit("r1", "tell me"));
    server.wait("the text", |frame| frame.payload("text") == "Half");
    kill(server);

    let expected = format!("user: tell me\n\nassistant: Half\n    [{CRASHED}]\n");
    // Before it is resumed, and after that.
    for _ in 0..2 {
        assert_eq!(sessions(&folder, &["show", "s"]), expected);
        let markdown = sessions(&folder, &["export", "s", "--format", "markdown"]);
        follow(&markdown, &["tell me", "Half", &format!("*({CRASHED})*")]);
        let mut server = openai(&provider, &[&store[..], &["--resume"]].concat()).start();
        let state = wait_state(&mut server);
        assert_eq!(state.messages(), [("user", "tell me"), ("assistant", "Half")]);
        server.finish();
    }
    let (printed, exported) = chat(&folder);
    follow(&printed, &["tell me", "Half", CRASHED]);
    follow(&exported, &["## You\n\ntell me", "## Model\n\nHalf", &format!("*({CRASHED})*")]);
}

#[test]
fn a_prompt_whose_process_crashed_before_the_first_token_shows_that() {
    let folder = Folder::new();
    let place = folder.name("store");
    let store = ["--store", &place, "--session-id", "s"];
    let provider = Provider::start(vec![vec![Step::Stall], says("Whole.")]);
    let mut server = openai(&provider, &store).start();
    server.send(submit("r1", "tell me"));
    provider.wait_request(1);
    server.wait_event("ChatProviderCallStarted");
    kill(server);

    let why = CRASHED.strip_prefix("stopped: ").expect("a reason");
    // Before it is resumed, and after that.
    for _ in 0..2 {
        assert_eq!(sessions(&folder, &["show", "s"]), format!("user: tell me\n    [{CRASHED}]\n"));
        let markdown = sessions(&folder, &["export", "s", "--format", "markdown"]);
        follow(&markdown, &["tell me", &format!("*({CRASHED})*")]);
        follow(&sessions(&folder, &["export", "s", "--format", "html"]), &["tell me", CRASHED]);
        let mut server = openai(&provider, &[&store[..], &["--resume"]].concat()).start();
        let state = wait_state(&mut server);
        assert_eq!(state.messages(), [("user", "tell me")]);
        assert_eq!(state.text("/snapshot/entities/0/payload/status"), "accepted");
        assert_eq!(state.text("/snapshot/entities/0/payload/error"), why);
        server.finish();
    }
    let (printed, exported) = chat(&folder);
    follow(&printed, &["tell me", CRASHED]);
    assert_eq!(exported, format!("## You\n\ntell me\n\n*({CRASHED})*\n"));
    // The conversation goes on, and the mark stays.
    let mut server = openai(&provider, &[&store[..], &["--resume"]].concat()).start();
    assert_eq!(server.turn("r2", "again"), "ok");
    server.finish();
    let shown = sessions(&folder, &["show", "s"]);
    follow(&shown, &["tell me", CRASHED, "user: again", "assistant: Whole."]);
    assert!(!shown.contains(UNANSWERED), "{shown}");
}

#[test]
fn a_result_that_a_crash_left_unanswered_shows_that() {
    let folder = Folder::new();
    let place = folder.name("store");
    let call = calls(&[("call_1", "get_time", "{}")]);
    let provider = Provider::start(vec![call, vec![Step::Stall]]);
    let mut server = openai(&provider, &["--store", &place, "--session-id", "s"]).start();
    declare_get_time(&mut server);
    server.send(submit("r1", "what time is it?"));
    return_results(&mut server, &["call_1"]);
    provider.wait_request(2);
    server.wait_event("ChatToolResultReady");
    server.wait_event("ChatProviderCallStarted");
    kill(server);
    let shown = sessions(&folder, &["show", "s"]);
    follow(&shown, &["user: what time is it?", "get_time -> ", CRASHED]);
    assert!(!shown.contains(UNANSWERED), "{shown}");
    let (printed, exported) = chat(&folder);
    follow(&printed, &["what time is it?", "get_time", CRASHED]);
    follow(&exported, &["what time is it?", "get_time", CRASHED]);
}

#[test]
fn an_answer_that_failed_or_was_stopped_shows_that() {
    let folder = Folder::new();
    let place = folder.name("store");
    let refusal = r#"{"error":{"message":"no such thing"}}"#.to_owned();
    let half = vec![Step::Text("Half".to_owned()), Step::Stall];
    let provider = Provider::start(vec![vec![Step::Status(400, vec![], refusal)], half]);
    let mut server = openai(&provider, &["--store", &place, "--session-id", "s"]).start();
    assert_eq!(server.turn("r1", "first"), "failed");
    server.send(submit("r2", "second"));
    server.wait("the text", |frame| frame.payload("text") == "Half");
    server.send(cancel("c"));
    assert_eq!(server.wait_done("r2"), "stopped");
    server.finish();

    let shown = sessions(&folder, &["show", "s"]);
    follow(
        &shown,
        &["user: first\n\nerror: ", "no such thing", "assistant: Half\n    [stopped]\n"],
    );
    assert!(!shown.contains(UNANSWERED), "{shown}");
    let (printed, exported) = chat(&folder);
    follow(&printed, &["first", "no such thing", "second", "Half", "stopped"]);
    follow(&exported, &["first", "*(failed: ", "no such thing", "Half", "*(stopped)*"]);
    assert!(!exported.contains(UNANSWERED), "{exported}");
    // A process that goes on with it shows a client of the protocol what it showed before.
    let mut server = resumed(&folder, &[]).start();
    let state = wait_state(&mut server);
    let is_whole = |frame: &Frame| frame.messages().len() == 4;
    assert!(is_whole(&state), "{state:?}");
    server.finish();
}

/// The chat in which it happened exports it, too.
#[test]
fn a_prompt_without_an_answer_is_marked_in_the_export_of_its_chat() {
    let folder = Folder::new();
    let exported = || fs::read_to_string(folder.path("all.md")).expect("the export");
    fs::write(folder.path("script"), "no answer\n").expect("a file");
    piped(&folder, &["--echo-script", "script"], "go\n/export all.md\n");
    follow(&exported(), &["## You\n\ngo", "*(failed: ", "can't be used", ")*"]);
    fs::remove_file(folder.path("all.md")).expect("a file");
    piped(&folder, &["--echo-delay-ms", "3600000"], "go\n/stop\n/export all.md\n");
    assert_eq!(exported(), "## You\n\ngo\n\n*(stopped)*\n");
}
