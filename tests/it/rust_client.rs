//! The client library of this crate: with the program itself, and with a server that makes it difficult.

use duologue::client::{
    Answer, Any, Approval, Builder, Duologue, Error, HasSchema, OnBusy, Prompt, Tool,
};
use duologue::protocol::proto::rpc::SnapshotRequest;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::io::Write;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

#[path = "../../examples/client.rs"]
#[expect(dead_code, reason = "its `main` is not called")]
mod client;

const BINARY: &str = env!("CARGO_BIN_EXE_duologue");
const DIFFICULT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/clients/difficult_server.py");
const CLOCK: &str = concat!("python3 ", env!("CARGO_MANIFEST_DIR"), "/examples/clock.py");

fn real() -> Builder {
    Duologue::builder().binary(BINARY).engine("echo")
}

fn difficult(how: &str) -> Builder {
    Duologue::builder().binary(DIFFICULT).env("DIFFICULT", how)
}

/// The built-in engine plays these calls of a model.
fn played(name: &str, calls: &[Value]) -> (Builder, Scratch) {
    let scratch = Scratch::new(name);
    let path = scratch.0.join("calls.jsonl");
    let mut file = std::fs::File::create(&path).expect("a file");
    for call in calls {
        writeln!(file, "{call}").expect("room");
    }
    (real().args([format!("--echo-script={}", path.display())]), scratch)
}

fn calls_of(names: &[&str]) -> Vec<Value> {
    let tools: Vec<_> =
        names.iter().map(|name| json!({"name": name, "arguments": {"city": "Berlin"}})).collect();
    vec![json!({"text": "Let me look.", "tools": tools}), json!({"text": "It is noon."})]
}

/// A folder that goes with the test.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let path =
            std::env::temp_dir().join(format!("duologue-client-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a folder");
        Self(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).ok();
    }
}

fn no_parameters() -> Map<String, Value> {
    Map::new()
}

#[tokio::test]
async fn a_run_has_an_answer_and_a_stream_ends_at_its_done() {
    let chat = real().args(["--echo-reasoning"]).start().await.expect("a process");
    let answer = chat.run("hello").await.expect("an answer");
    assert_eq!((answer.status.as_str(), answer.text.as_str()), ("ok", "Turn 1. You said: hello"));
    assert_eq!(answer.reasoning, "This is turn 1. I repeat what I was told.");
    assert_eq!(answer.finish_class, "completed");
    let mut stream = chat.stream("again");
    let (mut text, mut names) = (String::new(), Vec::new());
    while let Some(event) = stream.next().await {
        let event = event.expect("an event");
        if let Some(Any::ChatTextPatch(patch)) = &event.payload {
            text.push_str(&patch.text);
        }
        names.push(event.name);
    }
    let answer = stream.answer().cloned().expect("an answer");
    assert_eq!(answer.text, text);
    let ends = (names.first().map(String::as_str), names.last().map(String::as_str));
    assert_eq!(ends, (Some("ChatUserMessageAccepted"), Some("ChatRunFinished")));
    assert!(stream.next().await.is_none(), "the end is the end");
    chat.close().await;
}

#[tokio::test]
async fn a_stream_that_is_dropped_stops_its_run_and_the_next_prompt_works() {
    let chat = real().args(["--echo-delay-ms=20"]).start().await.expect("a process");
    let mut stream = chat.stream("one ".repeat(1000));
    while let Some(event) = stream.next().await {
        if let Some(Any::ChatTextPatch(_)) = event.expect("an event").payload {
            break;
        }
    }
    drop(stream);
    let answer = chat.run("two").await.expect("an answer");
    assert!(answer.text.starts_with("Turn 2. You said: two"), "{}", answer.text);
    let statuses: Vec<_> =
        chat.history().await.expect("a history").into_iter().map(status_of).collect();
    assert_eq!(statuses, ["accepted", "stopped", "accepted", "finished"]);
}

fn status_of(entity: duologue::protocol::proto::rpc::SnapshotEntity) -> String {
    match entity.payload {
        Some(Any::ChatMessageEntity(message)) => message.status,
        other => format!("{other:?}"),
    }
}

#[tokio::test]
async fn a_cancel_is_a_status_and_requests_in_flight_get_their_own_frames() {
    let chat = real()
        .args(["--echo-delay-ms=60000"])
        .on_busy(OnBusy::Queue)
        .start()
        .await
        .expect("a process");
    let mut first = chat.stream("one");
    while let Some(event) = first.next().await {
        if event.expect("an event").name == "ChatProviderCallStarted" {
            break;
        }
    }
    let queued = chat.run("two");
    tokio::pin!(queued);
    let shown = tokio::select! {
        _ = &mut queued => panic!("it waits for the first"),
        shown = chat.snapshot(SnapshotRequest::default()) => shown.expect("a snapshot"),
    };
    assert_eq!(shown.entities.len(), 1);
    first.cancel().await.expect("a cancel");
    while first.next().await.is_some() {}
    assert!(first.answer().is_some_and(Answer::is_stopped));
    let stop = async {
        // Until the second has begun there is nothing to stop.
        while !chat.cancel().await.expect("a cancel") {}
    };
    let (second, ()) = tokio::join!(queued, stop);
    assert!(second.expect("an answer").is_stopped());
    assert!(!chat.cancel().await.expect("nothing to stop"));
}

#[tokio::test]
async fn tools_are_functions_and_what_goes_wrong_is_a_result() {
    let (builder, _scratch) =
        played("tools", &calls_of(&["get_time", "broken", "defect", "slow", "nobody"]));
    let tool = |name: &str| {
        Tool::new(name, "", no_parameters(), |input: Value| async move {
            Ok::<_, String>(format!("12:00 in {}", input["city"].as_str().unwrap_or_default()))
        })
    };
    let broken =
        Tool::new("broken", "", no_parameters(), |_| async { Err::<Value, _>("no such city") });
    let defect = Tool::new("defect", "", no_parameters(), |input: Value| async move {
        assert!(input.is_null(), "a defect");
        Ok::<_, String>(1)
    });
    let slow =
        Tool::new("slow", "", no_parameters(), |_| std::future::pending::<Result<Value, String>>())
            .time_max(Duration::from_millis(10));
    let builder = [tool("get_time"), broken, defect, slow].into_iter().fold(builder, Builder::tool);
    let chat = builder.start().await.expect("a process");
    let answer = chat.run("What time is it?").await.expect("an answer");
    let results: Vec<_> =
        answer.tool_calls.iter().map(|it| (it.status.as_str(), it.result.as_str())).collect();
    assert_eq!(results[0], ("success", r#"{"result":"12:00 in Berlin"}"#));
    assert_eq!(results[1], ("error", "no such city"));
    assert_eq!(results[2], ("error", "the tool has a defect and panicked"));
    assert_eq!(results[3], ("error", "the tool took longer than 0.01 s"));
    assert_eq!(results[4].0, "error", "{results:?}");
    assert_eq!(answer.texts, ["Let me look.", "It is noon."]);
}

#[tokio::test]
async fn approvals_are_a_callback_and_without_one_calls_are_denied() {
    needs!(Python);
    for allowed in [true, false] {
        let (builder, _scratch) = played("approvals", &calls_of(&["get_time"]));
        let mut builder = builder.args(["--mcp", CLOCK]);
        let seen: Arc<Mutex<Vec<String>>> = Arc::default();
        if allowed {
            let seen = Arc::clone(&seen);
            builder = builder.approve(move |asked| {
                seen.lock().expect("a list").push(asked.input);
                async { Approval::AllowOnce }
            });
        }
        let chat = builder.start().await.expect("a process");
        let answer = chat.run("x").await.expect("an answer");
        let expected = if allowed { "success" } else { "error" };
        assert_eq!(answer.tool_calls[0].status, expected, "{answer:?}");
        assert_eq!(seen.lock().expect("a list").len(), usize::from(allowed));
    }
}

#[derive(Debug, Deserialize, PartialEq)]
struct City {
    name: String,
    population: u64,
}

impl HasSchema for City {
    fn schema() -> Map<String, Value> {
        let schema = json!({"type": "object", "required": ["name", "population"], "properties": {
            "name": {"type": "string"}, "population": {"type": "integer"}}});
        schema.as_object().cloned().unwrap_or_default()
    }
}

#[tokio::test]
async fn an_answer_can_be_a_value_of_a_type() {
    let value = json!({"name": "Berlin", "population": 9_007_199_254_740_993_u64}).to_string();
    let (builder, _scratch) = played("value", &[json!({"text": value})]);
    let chat = builder.start().await.expect("a process");
    let city = chat.ask::<City>("Where?").await.expect("a city").value;
    assert_eq!(city, City { name: "Berlin".to_owned(), population: 9_007_199_254_740_993 });
    let (builder, _scratch) = played("no-value", &[json!({"text": "Oz"})]);
    let chat = builder.start().await.expect("a process");
    match chat.ask::<City>("And now?").await {
        Err(Error::Answer { text, .. }) => assert_eq!(text, "Oz"),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_process_that_is_killed_is_replaced_and_nothing_is_shown_twice() {
    let scratch = Scratch::new("sessions");
    let builder =
        real().store(scratch.0.join("chat.db")).session("ada").args(["--echo-delay-ms=1"]);
    let mut chat = builder.clone().start().await.expect("a process");
    chat.run("one").await.expect("an answer");
    let mut stream = chat.stream("two ".repeat(10_000));
    let mut shown = String::new();
    let failure = loop {
        match stream.next().await {
            Some(Ok(event)) => {
                if let Some(Any::ChatTextPatch(patch)) = event.payload {
                    shown.push_str(&patch.text);
                    kill(&chat);
                }
            }
            Some(Err(error)) => break error,
            None => panic!("the process was killed"),
        }
    };
    assert!(matches!(failure, Error::ProcessEnded { status: Some(_), .. }), "{failure:?}");
    drop(stream);
    let changes = chat.reconnect().await.expect("another process");
    let answer = changes.iter().find(|it| it.entity.id.contains(":text:")).expect("the answer");
    let Some(Any::ChatMessageEntity(message)) = &answer.entity.payload else {
        panic!("{answer:?}")
    };
    assert_eq!(format!("{shown}{}", answer.text), message.text);
    assert!(chat.run("three").await.expect("an answer").text.starts_with("Turn 3."));
    let copy = chat.fork(Some(1)).await.expect("a copy").start().await.expect("a process");
    assert_eq!(copy.history().await.expect("a history").len(), 2);
    assert_ne!(copy.session_id(), chat.session_id());
    chat.regenerate().finish().await.expect("an answer");
    chat.drop_last_turn().await.expect("an edit");
    copy.close().await;
    chat.close().await;
}

fn kill(chat: &Duologue) {
    let process = chat.process_id().and_then(|id| i32::try_from(id).ok());
    let process = process.and_then(rustix::process::Pid::from_raw).expect("a process");
    rustix::process::kill_process(process, rustix::process::Signal::KILL).ok();
}

#[tokio::test]
async fn errors_have_their_types() {
    let missing = Duologue::builder().binary("/nowhere/duologue").start().await;
    assert!(matches!(missing, Err(Error::NotInstalled(_))), "{missing:?}");
    let wrong = real().args(["--no-such-option"]).start().await;
    assert!(
        matches!(wrong, Err(Error::ProcessEnded { .. } | Error::Config(_) | Error::Refused(_))),
        "{wrong:?}"
    );
    let unreachable = Duologue::builder().binary(BINARY).engine("openai").model("m");
    let unreachable = unreachable.args(["--base-url=http://127.0.0.1:9", "--retries=0"]);
    let chat = unreachable.start().await.expect("a process");
    match chat.run("x").await {
        Err(Error::Provider(refused)) => {
            assert_eq!((refused.class(), refused.is_retryable()), ("network", true))
        }
        other => panic!("{other:?}"),
    }
    let chat = real().args(["--echo-delay-ms=60000"]).start().await.expect("a process");
    let mut first = chat.stream("one");
    assert!(first.next().await.is_some());
    assert!(matches!(chat.run("two").await, Err(Error::Busy(_))));
}

#[tokio::test]
async fn a_server_that_makes_it_difficult_is_understood() {
    needs!(Python);
    let text = |answer: Result<Answer, Error>| answer.expect("an answer").text;
    for how in ["halves", "flood", "leftovers", "unknown", "burst:1000", "long:67108864"] {
        let chat = difficult(how).start().await.expect("a server");
        let said = text(chat.run("x").await);
        let (word, number) = how.split_once(':').unwrap_or((how, "0"));
        let expected = match word {
            "long" => number.parse().expect("a number"),
            "burst" => (0..1000).map(|at| format!("word {at} ").len()).sum(),
            _ => "Hello, wörld!".len(),
        };
        assert_eq!(said.len(), expected, "{how}");
        chat.close().await;
    }
}

#[tokio::test]
async fn what_is_newer_than_the_client_is_kept() {
    needs!(Python);
    let chat = difficult("unknown").start().await.expect("a server");
    let mut stream = chat.stream("x");
    let mut unknown = Vec::new();
    while let Some(event) = stream.next().await {
        let event = event.expect("an event");
        if event.payload.is_none() {
            unknown.push(event.raw()["mood"].clone());
        }
    }
    assert_eq!(unknown, [json!("curious")]);
    assert!(chat.capabilities().iter().any(|it| it == "telepathy"));
}

#[tokio::test]
async fn a_line_past_the_limit_fails_its_run_alone() {
    needs!(Python);
    let chat =
        difficult("long:4194304").line_bytes_max(1024 * 1024).start().await.expect("a server");
    for _ in 0..2 {
        assert!(matches!(chat.run("x").await, Err(Error::TooLong(_))));
    }
    chat.snapshot(SnapshotRequest::default()).await.expect("a snapshot");
}

#[tokio::test]
async fn a_server_that_dies_at_any_point_is_an_error_with_its_status_and_its_last_words() {
    needs!(Python);
    for lines in 0..9 {
        for how in ["die", "die-half"] {
            let started = difficult(&format!("{how}:{lines}")).start().await;
            let failed = match started {
                Ok(chat) => chat.run("x").await.map(drop),
                Err(error) => Err(error),
            };
            let Err(Error::ProcessEnded { status, stderr }) = failed else {
                panic!("{how}:{lines}: {failed:?}")
            };
            assert_eq!(status.and_then(|it| it.code()), Some(9), "{how}:{lines}");
            assert_eq!(stderr, "the difficult server has died", "{how}:{lines}");
        }
    }
}

#[tokio::test]
async fn a_server_that_is_none_is_an_error_at_once() {
    needs!(Python);
    for how in ["foreign", "no-hello"] {
        let started = difficult(how).start().await;
        assert!(matches!(started, Err(Error::Protocol(_))), "{how}: {started:?}");
    }
    assert!(matches!(difficult("old").start().await, Err(Error::TooOld { .. })));
    let mute = difficult("mute").start_time(Duration::from_millis(200)).start().await;
    assert!(matches!(mute, Err(Error::Protocol(_))), "{mute:?}");
    let chat = difficult("garbage").start().await.expect("a server");
    assert!(matches!(chat.run("x").await, Err(Error::Protocol(_))));
}

#[tokio::test]
async fn nothing_is_left_running() {
    needs!(Python);
    for how in ["normal", "endless", "stubborn", "deaf"] {
        let starting =
            difficult(how).close_time(Duration::from_millis(50)).start_time(Duration::from_secs(2));
        let Ok(chat) = starting.start().await else {
            // It answers nothing.
            assert_eq!(how, "deaf");
            continue;
        };
        let process = chat.process_id().expect("a process");
        let mut stream = chat.stream("x");
        assert!(stream.next().await.is_some(), "{how}");
        drop(stream);
        match how {
            "endless" => drop(chat),
            _ => chat.close().await,
        }
        while PathBuf::from(format!("/proc/{process}")).exists() {
            tokio::task::yield_now().await;
        }
    }
}

#[tokio::test]
async fn settings_and_attachments_go_along() {
    let scratch = Scratch::new("attachments");
    let path = scratch.0.join("note.txt");
    std::fs::write(&path, "a note").expect("a file");
    let chat = real().start().await.expect("a process");
    let prompt = Prompt::from("read this").attach(path.display().to_string());
    chat.run(prompt).await.expect("an answer");
    let shown = chat.snapshot(SnapshotRequest::default()).await.expect("a snapshot");
    let Some(Any::ChatMessageEntity(message)) = &shown.entities[0].payload else {
        panic!("{shown:?}")
    };
    assert_eq!(message.attachments.len(), 1);
}

#[tokio::test]
async fn the_example_prints_both_answers() {
    let chat = real().start().await.expect("a process");
    let mut out = Vec::new();
    client::converse(chat, &mut out).await.expect("two answers");
    let out = String::from_utf8(out).expect("text");
    assert!(
        out.starts_with("Turn 1. You said: What is a duologue?\nTurn 2. You said: Explain it"),
        "{out}"
    );
}
