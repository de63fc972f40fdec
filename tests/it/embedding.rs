//! Conversations inside another program, through the in-memory front end.

// What the document shows is what runs.
#[path = "../../examples/embed.rs"]
#[expect(dead_code, reason = "its main is not called here")]
mod embed;

use crate::examples::CONVERSATION;
use duologue::conversation::event::{FinishClass, ToolCall};
use duologue::conversation::transcript::Message;
use duologue::engine::echo::Echo;
use duologue::engine::openai::{OpenAi, Settings};
use duologue::engine::{
    CallEnd, CallSpec, Engine, EngineEvent, Engines, ErrorClass, RunError, Running, Sink, Stage,
};
use duologue::host::memory::{Conversation, FRAMES_WAITING_MAX, RequestError};
use duologue::host::{FilePolicy, HostSettings};
use duologue::protocol::any::{Any, Struct};
use duologue::protocol::attachment::{Attachment, Content};
use duologue::protocol::command::{
    ClientTool, ClientToolResult, Command, Edit, Page, Prompt, Submit, ToolManifest,
};
use duologue::protocol::id::ToolCallId;
use duologue::protocol::proto::chat::ChatAttachment;
use duologue::protocol::proto::rpc::rpc_line::Frame as Body;
use duologue::protocol::wire::Frame;
use duologue::session::approval::ApprovalMode;
use duologue::session::{ExitCode, ToolRules};
use duologue::support::fail_point::{Faults, Place};
use std::future::{Future, pending};
use std::num::NonZeroU32;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::Duration;
use tokio::runtime::Builder;
use tokio::task::{JoinSet, yield_now};

fn start(engine: impl Into<Engines>) -> Conversation {
    Conversation::start(HostSettings { seed: 1, ..HostSettings::new(engine) })
}

async fn rest(conversation: &mut Conversation) -> Vec<Frame> {
    let mut frames = Vec::new();
    while let Some(frame) = conversation.next_frame().await {
        frames.push(frame);
    }
    frames
}

/// The pieces of the answer.
fn patches(frames: &[Frame]) -> Vec<&str> {
    frames
        .iter()
        .filter_map(|frame| match &frame.frame {
            Some(Body::UiEvent(event)) => match &event.payload {
                Some(Any::ChatTextPatch(patch)) => Some(patch.text.as_str()),
                Some(_) | None => None,
            },
            Some(_) | None => None,
        })
        .collect()
}

/// The frames that end requests: `error` codes and `done` statuses.
fn ends(frames: &[Frame]) -> Vec<&str> {
    frames
        .iter()
        .filter_map(|frame| match &frame.frame {
            Some(Body::Error(error)) => Some(error.code.as_str()),
            Some(Body::Done(done)) => Some(done.status.as_str()),
            Some(_) | None => None,
        })
        .collect()
}

#[tokio::test]
async fn the_example_holds_a_conversation() {
    let mut text = Vec::new();
    embed::converse(Echo::default(), &mut text).await.expect("an answer");
    assert_eq!(String::from_utf8_lossy(&text), CONVERSATION);
}

#[tokio::test]
async fn the_example_brings_an_engine_of_its_own() {
    let mut text = Vec::new();
    embed::converse(embed::WordCount, &mut text).await.expect("an answer");
    let expected = "you: What is a duologue?\nit: 4 words. \n\
                    you: And what is it good for?\nit: 4 words. 6 words. \n";
    assert_eq!(String::from_utf8_lossy(&text), expected);
}

/// An engine of this program. It calls the tool "look"; with the result it gives up, and names its
/// reason; a turn after that it never answers, until it is dropped.
#[derive(Clone, Debug, Default)]
struct Moody {
    dropped: Arc<AtomicUsize>,
}

/// Counts when it is dropped.
struct Held(Arc<AtomicUsize>);

impl Drop for Held {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

impl Engine for Moody {
    fn name(&self) -> &str {
        "moody"
    }

    fn model(&self) -> &str {
        "m"
    }

    fn start(&self, spec: CallSpec, sink: Sink) -> Running {
        let held = Held(Arc::clone(&self.dropped));
        Box::pin(async move {
            let _held = held;
            sink.send(EngineEvent::CallStarted).await;
            match spec.transcript.messages().as_slice() {
                [.., Message::Tool { tool, result, images: [], is_error: false }] => {
                    CallEnd::Failed(RunError {
                        stage: Stage::Run,
                        class: ErrorClass::RateLimited,
                        message: format!("enough of {}", tool.name),
                        detail: result.to_string(),
                    })
                }
                [Message::User { .. }] => call_look(spec, sink).await,
                _ => pending().await,
            }
        })
    }
}

async fn call_look(spec: CallSpec, sink: Sink) -> CallEnd {
    let name = &spec.tools.first().expect("a tool").name;
    let (id, name) = (ToolCallId("c".into()), name.as_str().into());
    sink.send(EngineEvent::ToolCallStarted(ToolCall { id: id.clone(), name })).await;
    sink.send(EngineEvent::ToolArguments { id: id.clone(), text: "{}".to_owned() }).await;
    sink.send(EngineEvent::ToolCallRequested { id }).await;
    let (stop_reason, class) = ("tools".to_owned(), FinishClass::ToolCalls);
    sink.send(EngineEvent::CallFinished { stop_reason, class, provider_data: None }).await;
    CallEnd::Finished
}

/// The trait can be an object, and the engine calls tools, fails with a class, and is dropped.
#[tokio::test]
async fn an_engine_of_the_program_calls_tools_fails_and_is_stopped() {
    let engine = Moody::default();
    let dropped = Arc::clone(&engine.dropped);
    let object: Arc<dyn Engine> = Arc::new(engine);
    assert_eq!((object.provider().as_str(), object.fault()), ("moody", None));
    let mut conversation = start(object);
    let look = ClientTool {
        name: "look".to_owned(),
        description: String::new(),
        input_schema: Arc::default(),
        is_human: false,
    };
    let manifest = ToolManifest { tools: vec![look], ..ToolManifest::default() };
    conversation.request(Command::DeclareTools(manifest)).expect("room");
    conversation.submit("first").expect("room");
    let mut frames = Vec::new();
    while !frames.iter().any(asks_for_a_result) {
        frames.extend(conversation.next_frame().await);
    }
    let result = ClientToolResult {
        call: ToolCallId("c".into()),
        tool_name: None,
        result: Some(Struct::default().try_into().expect("it has JSON")),
        error: None,
    };
    conversation.request(Command::ToolResult(result)).expect("room");
    while !ends(&frames).contains(&"failed") {
        frames.extend(conversation.next_frame().await);
    }
    let failed = frames.iter().find_map(|frame| match &frame.frame {
        Some(Body::Error(error)) => Some(error),
        Some(_) | None => None,
    });
    let failed = failed.expect("an error");
    assert_eq!((failed.code.as_str(), failed.message.as_str()), ("run_failed", "enough of look"));
    assert_eq!(failed.detail, "rate_limited: {}");
    assert_eq!(dropped.load(Ordering::Relaxed), 2);
    conversation.submit("second").expect("room");
    conversation.cancel().expect("room");
    assert_eq!(dropped.load(Ordering::Relaxed), 3, "a cancel drops the call at once");
    conversation.shutdown().expect("room");
    frames.extend(rest(&mut conversation).await);
    let expected = ["ok", "ok", "run_failed", "failed", "ok", "stopped", "shutdown"];
    assert_eq!(ends(&frames), expected);
}

fn asks_for_a_result(frame: &Frame) -> bool {
    match &frame.frame {
        Some(Body::UiEvent(event)) => event.name == "FrontendToolCallRequested",
        Some(_) | None => false,
    }
}

#[tokio::test]
async fn a_conversation_ends_with_a_status_and_takes_nothing_more() {
    let mut conversation = start(Echo::default());
    conversation.submit("hi").expect("room");
    conversation.shutdown().expect("room");
    assert_eq!(conversation.status(), None);
    let frames = rest(&mut conversation).await;
    assert!(matches!(frames[0].frame, Some(Body::Hello(_))));
    assert_eq!(patches(&frames).concat(), "Turn 1. You said: hi");
    assert_eq!(ends(&frames), ["ok", "shutdown"]);
    assert_eq!(conversation.status(), Some(ExitCode::Ok));
    assert_eq!(conversation.snapshot(), Err(RequestError::Ended));
    assert_eq!(conversation.next_frame().await, None);
}

#[tokio::test]
async fn a_blank_prompt_is_refused_and_changes_nothing() {
    let mut conversation = start(Echo::default());
    assert_eq!(conversation.submit(" \n"), Err(RequestError::BlankPrompt));
    conversation.shutdown().expect("room");
    assert_eq!(ends(&rest(&mut conversation).await), ["shutdown"]);
}

#[tokio::test]
async fn a_program_that_takes_no_frames_is_stopped_before_they_fill_memory() {
    let mut conversation = start(Echo::default());
    let refused = (0..=FRAMES_WAITING_MAX).find_map(|_| conversation.snapshot().err());
    assert_eq!(refused, Some(RequestError::NoRoom));
    while conversation.snapshot().is_err() {
        assert!(conversation.next_frame().await.is_some());
    }
}

/// The engine waits for an hour before each word: the cancel can't wait for it.
#[tokio::test]
async fn a_cancel_acts_at_once() {
    let delay = Duration::from_secs(3600);
    let mut conversation = start(Echo { delay, ..Echo::default() });
    conversation.submit("hi").expect("room");
    conversation.cancel().expect("room");
    conversation.submit("again").expect("room");
    conversation.cancel().expect("room");
    conversation.shutdown().expect("room");
    let frames = rest(&mut conversation).await;
    assert_eq!(ends(&frames), ["ok", "stopped", "ok", "stopped", "shutdown"]);
}

/// A wait for a frame that is given up again and again loses none and repeats none.
#[tokio::test]
async fn a_program_edits_and_looks_back_with_calls() {
    let mut conversation = start(Echo::default());
    assert!(conversation.edit(Edit::DropLastTurn).is_ok());
    conversation.submit("one").expect("room");
    let mut frames = Vec::new();
    while ends(&frames).len() < 3 {
        frames.extend(conversation.next_frame().await);
    }
    conversation.edit(Edit::Regenerate).expect("room");
    while ends(&frames).len() < 4 {
        frames.extend(conversation.next_frame().await);
    }
    let page = Page { limit: NonZeroU32::new(1), ..Page::default() };
    let id = conversation.history(page).expect("room");
    conversation.shutdown().expect("room");
    frames.extend(rest(&mut conversation).await);
    assert_eq!(ends(&frames), ["unknown_message", "failed", "ok", "ok", "ok", "shutdown"]);
    let shown = frames.iter().find(|frame| frame.request_id == id.as_str()).expect("a snapshot");
    let Some(Body::Snapshot(snapshot)) = &shown.frame else { panic!("{shown:?}") };
    assert_eq!(snapshot.entities.len(), 1, "the answer alone");
}

#[tokio::test]
async fn a_wait_that_is_dropped_loses_nothing() {
    let words = "word ".repeat(1000);
    let mut conversation = start(Echo { reasoning: true, ..Echo::default() });
    conversation.submit(&words).expect("room");
    conversation.shutdown().expect("room");
    let mut frames = Vec::new();
    let mut dropped = 0;
    while conversation.status().is_none() {
        let mut context = Context::from_waker(Waker::noop());
        match pin!(conversation.next_frame()).poll(&mut context) {
            Poll::Ready(frame) => frames.extend(frame),
            Poll::Pending => {
                dropped += 1;
                yield_now().await;
            }
        }
    }
    frames.extend(rest(&mut conversation).await);
    assert!(dropped > 0);
    assert_eq!(patches(&frames).concat(), format!("Turn 1. You said: {words}"));
    assert_eq!(ends(&frames), ["ok", "shutdown"]);
    let mut whole = start(Echo { reasoning: true, ..Echo::default() });
    whole.submit(&words).expect("room");
    whole.shutdown().expect("room");
    assert_eq!(patches(&frames), patches(&rest(&mut whole).await));
}

#[tokio::test]
async fn a_defect_of_the_engine_costs_its_run_and_no_other_conversation() {
    let settings = HostSettings::new(Echo::default());
    let faults = Faults::new(Place::Engine, 1);
    let mut broken = Conversation::start(HostSettings { faults, ..settings });
    broken.submit("hi").expect("room");
    while broken.next_frame().await.is_some_and(|frame| ends(&[frame]) != ["failed"]) {}
    broken.submit("again").expect("room");
    broken.shutdown().expect("room");
    let frames = rest(&mut broken).await;
    assert_eq!(ends(&frames), ["ok", "shutdown"]);
    assert!(patches(&frames).concat().contains("You said: again"));
}

/// A panic in the state of a conversation ends it; the others of the program go on.
#[tokio::test]
async fn a_defect_in_a_conversation_ends_it_and_no_other() {
    let mut sound = start(Echo::default());
    for (nth, code) in [(1, "internal"), (4, "run_failed"), (8, "run_failed")] {
        let settings = HostSettings::new(Echo::default());
        let faults = Faults::new(Place::Project, nth);
        let mut broken = Conversation::start(HostSettings { faults, ..settings });
        broken.submit("hi").expect("room");
        let frames = rest(&mut broken).await;
        assert_eq!(ends(&frames), [code, "failed", "internal", "failed"]);
        assert_eq!(broken.status(), Some(ExitCode::Internal));
        assert_eq!(broken.submit("again"), Err(RequestError::Ended));
        broken.close().await;
    }
    sound.submit("go on").expect("room");
    sound.shutdown().expect("room");
    assert_eq!(ends(&rest(&mut sound).await), ["ok", "shutdown"]);
}

/// A conversation goes from one thread to another, with its run.
#[test]
fn a_conversation_can_change_threads() {
    let mut conversation = start(Echo::default());
    let runtime = || Builder::new_current_thread().enable_all().build().expect("a runtime");
    conversation.submit(&"word ".repeat(1000)).expect("room");
    conversation.shutdown().expect("room");
    let mut frames = Vec::new();
    while patches(&frames).is_empty() {
        frames.extend(runtime().block_on(conversation.next_frame()));
    }
    let finishing = thread::spawn(move || runtime().block_on(rest(&mut conversation)));
    frames.extend(finishing.join().expect("no panic"));
    assert_eq!(ends(&frames), ["ok", "shutdown"]);
    assert!(patches(&frames).concat().ends_with("word word "));
}

/// Engines that are always ready share the thread. The runtime gives some tasks two turns while others
/// have one, and not more: when the first answer is whole, each of the others has half of its own.
#[tokio::test]
async fn conversations_share_a_thread_fairly() {
    const CONVERSATIONS: usize = 100;
    const WORDS: usize = 2000;
    /// What a task may do in one turn.
    const TURN_EVENTS_MAX: usize = 128;
    let taken: Arc<[AtomicUsize]> = (0..CONVERSATIONS).map(|_| AtomicUsize::new(0)).collect();
    let count = |taken: &AtomicUsize| taken.load(Ordering::Relaxed);
    let mut tasks = JoinSet::new();
    for number in 0..CONVERSATIONS {
        let taken = Arc::clone(&taken);
        tasks.spawn(async move {
            let mut conversation = start(Echo::default());
            conversation.submit(&"word ".repeat(WORDS)).expect("room");
            conversation.shutdown().expect("room");
            while let Some(frame) = conversation.next_frame().await {
                taken[number].fetch_add(patches(&[frame]).len(), Ordering::Relaxed);
            }
            taken.iter().map(count).min().expect("a conversation")
        });
    }
    let least = tasks.join_next().await.expect("an end").expect("no panic");
    assert!(2 * (least + TURN_EVENTS_MAX) >= WORDS, "{least}");
    while tasks.join_next().await.is_some() {}
    assert!(taken.iter().all(|taken| count(taken) >= WORDS));
}

/// All that a conversation shows of a prompt, and of one that comes too early.
async fn shown(settings: HostSettings, tools: &[&str]) -> String {
    let tool = |name: &&str| ClientTool {
        name: (*name).to_owned(),
        description: String::new(),
        input_schema: Arc::default(),
        is_human: false,
    };
    let mut conversation = Conversation::start(settings);
    if !tools.is_empty() {
        let tools = tools.iter().map(tool).collect();
        let manifest = ToolManifest { tools, ..ToolManifest::default() };
        conversation.request(Command::DeclareTools(manifest)).expect("room");
    }
    conversation.submit("What time is it?").expect("room");
    conversation.submit("And now?").expect("room");
    conversation.shutdown().expect("room");
    serde_json::to_string(&rest(&mut conversation).await).expect("JSON")
}

/// The people of an embedding program have no options: nothing that they read names one.
#[tokio::test]
async fn errors_and_results_name_no_option_of_the_command_line() {
    let settings = |change: fn(&mut ToolRules)| {
        let script = Some(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/tool.jsonl").into());
        let mut settings = HostSettings::new(Echo { script, ..Echo::default() });
        change(&mut settings.rules.tools);
        settings
    };
    let no_key = HostSettings::new(OpenAi::new(Settings::default()));
    let missing = Echo { answer: Some("/no/such/file".into()), ..Echo::default() };
    let denied = |tools: &mut ToolRules| tools.approval.mode = ApprovalMode::Deny;
    let cases = [
        (settings(|_| ()), &[][..], "or offer tools\""),
        (settings(|tools| tools.rounds_max = 0), &["get_time"], "ask it to go on\""),
        (
            settings(|tools| tools.calls_per_round_max = 0),
            &["get_time"],
            "one answer may make 0 calls. Make it again.",
        ),
        (settings(|tools| tools.argument_bytes_max = 0), &["get_time"], "at most 0 are allowed."),
        (settings(denied), &["get_time"], "the rule for all other tools does not allow this tool"),
        (no_key, &[], "OpenAI requires a key: set the setting key;"),
        (HostSettings::new(missing), &[], "name a text file with the setting answer"),
    ];
    for (settings, tools, expected) in cases {
        let shown = shown(settings, tools).await;
        assert!(shown.contains(expected), "{expected}: {shown}");
        assert!(shown.contains("send this one again after its done\""), "{shown}");
        let mut dashes = shown.match_indices("--");
        let is_option = |at: usize| shown[at + 2..].starts_with(|c: char| c.is_ascii_lowercase());
        assert!(!dashes.any(|(at, _)| is_option(at)), "{shown}");
    }
}

/// The program that holds the conversation says which files a request may name; without a word, none.
#[tokio::test]
async fn a_request_reads_the_files_that_the_program_allows() {
    let folder = crate::server::Folder::new();
    std::fs::write(folder.path("notes.md"), "# Notes").expect("a file");
    let outside = crate::server::Folder::new();
    std::fs::write(outside.path("secret"), "hush").expect("a file");
    let inside = FilePolicy::Below(folder.path(""));
    for (files, path, expected) in [
        (FilePolicy::None, folder.path("notes.md"), Err("no files of this machine can be")),
        (FilePolicy::Any, folder.path("notes.md"), Ok("notes.md (text/markdown, 7 bytes)")),
        (FilePolicy::Any, outside.path("secret"), Ok("secret (text/plain, 4 bytes)")),
        (inside.clone(), "notes.md".into(), Ok("notes.md (text/markdown, 7 bytes)")),
        (inside.clone(), folder.path("notes.md"), Ok("notes.md (text/markdown, 7 bytes)")),
        (inside, outside.path("secret"), Err("it is outside of the folder")),
    ] {
        let settings = HostSettings { files, ..HostSettings::new(Echo::default()) };
        let mut conversation = Conversation::start(settings);
        let content = Content::File(path.clone());
        let attachments = vec![Attachment { shown: ChatAttachment::default(), content }];
        let prompt = Prompt::new("what?".to_owned()).expect("a prompt");
        let submit = Submit { attachments, ..Submit::new(prompt) };
        conversation.request(Command::Submit(submit)).expect("room");
        conversation.shutdown().expect("room");
        let frames = rest(&mut conversation).await;
        let refused = frames.iter().find_map(|frame| match &frame.frame {
            Some(Body::Error(error)) => Some((error.code.as_str(), error.message.as_str())),
            Some(_) | None => None,
        });
        match (expected, refused) {
            (Ok(attached), None) => {
                let answer = patches(&frames).concat();
                assert!(answer.contains(attached), "{path:?}: {answer}");
            }
            (Err(why), Some(("invalid_attachment", message))) => {
                assert!(message.contains(why), "{path:?}: {message}");
            }
            (_, refused) => panic!("{path:?}: {refused:?}"),
        }
    }
}
