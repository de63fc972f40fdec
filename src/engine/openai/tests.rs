//! The engine against a scripted provider, over real connections.

#[path = "../../../tests/it/provider.rs"]
mod provider;

mod endings;
mod tls;

use super::*;
use crate::chat::event::{Event, FinishClass, Recorded, Scope, Usage};
use crate::chat::transcript::{Preamble, Transcript};
use crate::engine::provider::post::ERROR_BODY_BYTES_MAX;
use crate::engine::{
    CONNECT_TIMEOUT, CallEnd, Engine, EngineEvent, ErrorClass, RunError, Running, Sink, Stage,
    TaggedEvent,
};
use crate::protocol::id::{Ids, Ordinal, TaskId, ToolCallId};
use provider::{Provider, Step, says};
use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::{JoinHandle, spawn_blocking};
use tokio::time::Instant;

const KEY: &str = "sk-test-0123456789";
const EVENTS_MAX: usize = 16;

fn settings(provider: &Provider) -> Settings {
    Settings {
        base_url: Some(provider.base_url()),
        model: Some("scripted".into()),
        key: Secret::new(KEY),
        ..Settings::default()
    }
}

fn engine(settings: Settings) -> Engine {
    Engine::OpenAi(OpenAi::new(settings))
}

fn with_roots(settings: Settings, roots_file: Option<PathBuf>) -> OpenAi {
    OpenAi { remote: Remote::with_roots(settings, roots_file) }
}

fn transcript(prompt: &str) -> Transcript {
    let mut transcript =
        Transcript::new(Preamble { system: Some("be brief".to_owned()), history: Vec::new() });
    transcript.apply(&Recorded {
        ordinal: Ordinal(1),
        scope: Scope { run: Ids::new(1).run(), turn: 1, call: 0 },
        event: Event::PromptAccepted { prompt: prompt.into(), attachments: Arc::new([]) },
    });
    transcript
}

fn start(engine: &Engine, events_max: usize) -> (Running, mpsc::Receiver<TaggedEvent>) {
    let (sender, receiver) = mpsc::channel(events_max);
    let spec = CallSpec { transcript: transcript("hi"), ..CallSpec::default() };
    (engine.start(spec, Sink::new(TaskId(1), sender)), receiver)
}

async fn collect(mut events: mpsc::Receiver<TaggedEvent>) -> Vec<EngineEvent> {
    let mut collected = Vec::new();
    while let Some(said) = events.recv().await {
        collected.push(said.event);
    }
    collected
}

async fn next(events: &mut mpsc::Receiver<TaggedEvent>) -> Option<EngineEvent> {
    events.recv().await.map(|said| said.event)
}

async fn run(settings: Settings) -> (Vec<EngineEvent>, CallEnd) {
    let (running, events) = start(&engine(settings), EVENTS_MAX);
    let running = tokio::spawn(running);
    (collect(events).await, running.await.expect("no panic"))
}

fn text(events: &[EngineEvent]) -> String {
    let texts = events.iter().filter_map(|event| match event {
        EngineEvent::Text(text) => Some(text.as_str()),
        EngineEvent::CallStarted
        | EngineEvent::Reasoning { .. }
        | EngineEvent::ToolCallStarted(_)
        | EngineEvent::ToolArguments { .. }
        | EngineEvent::ToolCallRequested { .. }
        | EngineEvent::Usage(_)
        | EngineEvent::RetryScheduled(_)
        | EngineEvent::RetryStarted(_)
        | EngineEvent::CallFinished { .. } => None,
    });
    texts.collect()
}

#[track_caller]
fn failed(end: CallEnd) -> RunError {
    let CallEnd::Failed(error) = end else { panic!("it finished") };
    for shown in [&error.message, &error.detail] {
        assert!(!shown.contains(KEY), "{shown}");
    }
    error
}

/// The answer of `script`, which fails: its text and its error.
async fn fails(script: Vec<Vec<Step>>) -> (String, RunError) {
    let provider = Provider::start(script);
    let (events, end) = run(settings(&provider)).await;
    let finished = events.iter().any(|event| matches!(event, EngineEvent::CallFinished { .. }));
    assert!(!finished, "{events:?}");
    (text(&events), failed(end))
}

/// Keeps a paused clock where it is: without it, the clock jumps to the next timer whenever the
/// test waits for a thread of the provider.
struct Frozen {
    release: Option<std::sync::mpsc::Sender<()>>,
    thread: JoinHandle<()>,
}

impl Frozen {
    fn begin() -> Self {
        let (release, released) = std::sync::mpsc::channel::<()>();
        let thread = spawn_blocking(move || assert!(released.recv().is_err()));
        Self { release: Some(release), thread }
    }

    async fn end(mut self) {
        self.release = None;
        self.thread.await.expect("no panic");
    }
}

/// Waits for the provider without stopping the engine.
async fn with<T: Send + 'static>(
    provider: &Arc<Provider>,
    wait: impl FnOnce(&Provider) -> T + Send + 'static,
) -> T {
    let provider = provider.clone();
    spawn_blocking(move || wait(&provider)).await.expect("in time")
}

#[tokio::test]
async fn an_answer_comes_through_in_order() {
    let mut script = says("hello");
    script.insert(0, Step::Reasoning("hm".into()));
    let provider = Provider::start(vec![script]);
    let (events, end) = run(settings(&provider)).await;
    assert_eq!(end, CallEnd::Finished);
    let expected = [
        EngineEvent::CallStarted,
        EngineEvent::Reasoning { source: "reasoning_content", text: "hm".into() },
        EngineEvent::Text("hello".into()),
        EngineEvent::Usage(Usage { input_tokens: 3, output_tokens: 2, ..Usage::default() }),
        EngineEvent::CallFinished {
            stop_reason: "stop".into(),
            class: FinishClass::Completed,
            provider_data: None,
        },
    ];
    assert_eq!(events, expected);

    let request = provider.wait_request(1);
    assert_eq!((request.method.as_str(), request.path.as_str()), ("POST", "/v1/chat/completions"));
    assert_eq!(request.header("authorization"), Some(format!("Bearer {KEY}").as_str()));
    assert_eq!(request.header("content-type"), Some("application/json"));
    let agent = request.header("user-agent").expect("a name");
    assert!(agent.starts_with("duologue/"), "{agent}");
    assert_eq!(request.body["model"], "scripted");
    assert_eq!(request.body["stream"], true);
    assert_eq!(request.body["messages"][0]["content"], "be brief");
    assert_eq!(request.body["messages"][1]["content"], "hi");
}

#[tokio::test(start_paused = true)]
async fn runs_share_one_connection() {
    let frozen = Frozen::begin();
    let provider = Provider::start(vec![says("a"), says("b")]);
    let engine = engine(settings(&provider));
    for expected in ["a", "b"] {
        let (running, events) = start(&engine, EVENTS_MAX);
        let running = tokio::spawn(running);
        assert_eq!(text(&collect(events).await), expected);
        assert_eq!(running.await.expect("no panic"), CallEnd::Finished);
    }
    assert_eq!((provider.requests(), provider.connections()), (2, 1));
    frozen.end().await;
}

#[tokio::test]
async fn without_a_key_no_header_is_sent() {
    let provider = Provider::start(vec![says("a")]);
    let (_, end) = run(Settings { key: None, ..settings(&provider) }).await;
    assert_eq!(end, CallEnd::Finished);
    assert_eq!(provider.wait_request(1).header("authorization"), None);
}

#[tokio::test]
async fn settings_are_checked_by_the_run_before_anything_is_sent() {
    let check = async |settings: Settings, class: ErrorClass, words: &str| {
        let (events, end) = run(settings).await;
        let error = failed(end);
        assert_eq!((error.stage, error.class), (Stage::Init, class), "{error:?}");
        assert!(error.message.contains(words), "{error:?}");
        assert_eq!(events, []);
    };
    let with_url = |base_url: &str| Settings {
        base_url: Some(base_url.into()),
        model: Some("m".into()),
        key: Secret::new(KEY),
        ..Settings::default()
    };
    check(Settings::default(), ErrorClass::Auth, "DUOLOGUE_API_KEY or OPENAI_API_KEY").await;
    let slash = Settings { base_url: Some(format!("{DEFAULT_BASE_URL}/")), ..Settings::default() };
    check(slash, ErrorClass::Auth, "OPENAI_API_KEY").await;
    for (bad, shown) in [
        ("", "\"\""),
        ("nonsense", "\"nonsense\""),
        ("localhost:1234/v1", "\"localhos\u{2026}\""),
        ("ftp://user:pass@host/v1", "\"ftp://host/v1\""),
        ("http://", "\"http://\""),
        ("data:x", "\"data:x\""),
        ("http://user:p@ss/word@127.0.0.1:9/v1", "\"http://127.0.0.1:9/v1\""),
        (&format!("a://{KEY}"), "\"a://[redacted]\""),
    ] {
        check(with_url(bad), ErrorClass::Config, &format!("the base URL {shown} ")).await;
        let knobs = "--base-url, DUOLOGUE_BASE_URL or OPENAI_BASE_URL";
        check(with_url(bad), ErrorClass::Config, knobs).await;
        check(with_url(bad), ErrorClass::Config, "http://localhost:11434/v1").await;
    }
    let unnamed = Settings { model: Some(" ".into()), ..with_url("http://localhost/v1") };
    check(unnamed, ErrorClass::Config, "--model or DUOLOGUE_MODEL").await;
    for odd in ["a\nb", "caf\u{e9}-0123456789"] {
        let odd = Settings { key: Secret::new(odd), ..with_url("http://localhost/v1") };
        check(odd, ErrorClass::Auth, "DUOLOGUE_API_KEY or OPENAI_API_KEY").await;
    }
}

#[test]
fn the_model_has_a_default_at_openai_alone() {
    let model = |base_url: &str, model: Option<&str>| {
        let settings = Settings {
            base_url: Some(base_url.into()),
            model: model.map(str::to_owned),
            ..Settings::default()
        };
        engine(settings).model().to_owned()
    };
    assert_eq!(model(DEFAULT_BASE_URL, None), DEFAULT_MODEL);
    assert_eq!(model(DEFAULT_BASE_URL, Some("m")), "m");
    assert_eq!(model("http://localhost:11434/v1", None), "");
}

#[tokio::test]
async fn nothing_is_done_before_the_first_poll() {
    let provider = Provider::start(vec![says("a")]);
    let openai = OpenAi::new(settings(&provider));
    let (running, _events) = start(&Engine::OpenAi(openai.clone()), EVENTS_MAX);
    assert!(!openai.remote.has_client());
    drop(running);
    assert_eq!(provider.connections(), 0);
}

#[tokio::test]
async fn a_dropped_run_closes_its_connection_at_any_stage() {
    let silent = vec![Step::Stall];
    let head = vec![Step::Head("text/event-stream"), Step::Stall];
    let middle = vec![Step::Text("a".into()), Step::Stall];
    let flood = vec![Step::Flood(usize::MAX / 2)];
    for script in [silent, head, middle, flood] {
        let provider = Arc::new(Provider::start(vec![script]));
        let (running, mut events) = start(&engine(settings(&provider)), 1);
        let running = tokio::spawn(running);
        assert_eq!(next(&mut events).await, Some(EngineEvent::CallStarted));
        with(&provider, |provider| drop(provider.wait_request(1))).await;
        running.abort();
        with(&provider, Provider::wait_disconnect).await;
    }
}

#[tokio::test]
async fn a_passing_trouble_is_tried_again() {
    let busy = |status| Step::Status(status, vec![("Retry-After", "0".into())], "busy".into());
    let cut = || vec![Step::Head("text/event-stream"), Step::Cut];
    let reported = || vec![Step::Event(r#"{"error":{"code":502}}"#.into())];
    for first in [vec![busy(429)], vec![busy(503)], vec![Step::Cut], cut(), reported()] {
        let provider = Provider::start(vec![first, says("hello")]);
        let (events, end) = run(settings(&provider)).await;
        assert_eq!(end, CallEnd::Finished);
        assert_eq!(text(&events), "hello");
        let started = events.iter().filter(|event| **event == EngineEvent::CallStarted);
        assert_eq!(started.count(), 1);
        assert_eq!(provider.requests(), 2);
        assert_eq!(provider.wait_request(1).body, provider.wait_request(2).body);
    }
}

#[tokio::test]
async fn retries_end() {
    let busy =
        || vec![Step::Status(500, vec![("retry-after-ms", "1".into())], format!("down {KEY}"))];
    let provider = Provider::start(vec![busy(), busy(), busy(), says("late")]);
    let (_, end) = run(settings(&provider)).await;
    let error = failed(end);
    assert_eq!((error.stage, error.class), (Stage::Run, ErrorClass::Provider));
    assert!(error.message.contains("down [redacted]"), "{error:?}");
    assert_eq!(provider.requests(), 3);

    let provider = Provider::start(vec![busy(), says("late")]);
    let (_, end) = run(Settings { retries: 0, ..settings(&provider) }).await;
    assert_eq!(failed(end).class, ErrorClass::Provider);
    assert_eq!(provider.requests(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_retry_is_logged_waited_for_and_dropped_with_the_run() {
    for dropped in [true, false] {
        let busy = vec![Step::Status(503, Vec::new(), format!("busy {KEY}"))];
        let provider = Provider::start(vec![busy, says("hello")]);
        let log = Log::default();
        let _logging = log.begin();
        let frozen = Frozen::begin();
        let (mut running, events) = start(&engine(settings(&provider)), EVENTS_MAX);
        while !log.text().contains("WARN") {
            assert_eq!(poll_once(&mut running).await, None);
        }
        let words = [
            "attempt 1 of 3 failed; trying again in ",
            " ms class=\"provider\" why=\"http://127.0.0.1:",
            "failed (status 503)",
            "the provider says: busy [redacted]\"",
        ];
        for word in words {
            assert!(log.text().contains(word) && !log.text().contains(KEY), "{}", log.text());
        }
        // Shorter than the shortest back-off.
        tokio::time::advance(Duration::from_millis(370)).await;
        assert_eq!(poll_once(&mut running).await, None);
        if dropped {
            drop(running);
        } else {
            tokio::time::advance(Duration::from_millis(140)).await;
            assert_eq!(running.await, CallEnd::Finished);
        }
        frozen.end().await;
        assert_eq!(text(&collect(events).await), if dropped { "" } else { "hello" });
        assert_eq!(provider.requests(), if dropped { 1 } else { 2 });
    }
}

/// What is logged, at every level.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    fn begin(&self) -> tracing::subscriber::DefaultGuard {
        let log = self.clone();
        let subscriber = tracing_subscriber::fmt()
            .with_max_level(tracing::Level::TRACE)
            .with_ansi(false)
            .with_writer(move || log.clone());
        tracing::subscriber::set_default(subscriber.finish())
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.0.lock().expect("no panic")).into_owned()
    }
}

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().expect("no panic").write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Polls once, after whatever else is ready; `None` if it isn't done.
async fn poll_once(running: &mut Running) -> Option<CallEnd> {
    tokio::task::yield_now().await;
    tokio::select! {
        biased;
        end = running => Some(end),
        () = std::future::ready(()) => None,
    }
}

#[tokio::test]
async fn a_long_wait_is_told_and_not_waited_for() {
    let busy = Step::Status(429, vec![("Retry-After", "3600".into())], String::new());
    let (_, error) = fails(vec![vec![busy], says("late")]).await;
    assert_eq!(error.class, ErrorClass::RateLimited);
    assert!(error.message.contains("3600 s"), "{error:?}");
}

#[tokio::test]
async fn a_refusal_is_not_tried_again() {
    for (status, class) in [
        (401, ErrorClass::Auth),
        (403, ErrorClass::Auth),
        (400, ErrorClass::Provider),
        (404, ErrorClass::Provider),
    ] {
        let body = format!(r#"{{"error":{{"message":"no {KEY}"}}}}"#);
        let refusal = vec![Step::Status(status, Vec::new(), body)];
        let (_, error) = fails(vec![refusal, says("late")]).await;
        assert_eq!((error.stage, error.class), (Stage::Run, class));
        assert!(error.detail.contains(&format!("status {status}")), "{error:?}");
    }
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    for (location, shown) in [
        ("http://user:pw@other/v1", "http://other/v1 "),
        ("http://other/?k=sk%2Fpw#pw", "http://other "),
        ("//user:pw@other/v1", "http://other/v1 "),
        ("/login?pw", "/login "),
        (&format!("/{KEY}"), "/[redacted] "),
        ("http://pw:pw", "nowhere that can be read "),
    ] {
        let elsewhere = vec![("Location", location.to_owned())];
        let (_, error) = fails(vec![vec![Step::Status(307, elsewhere, String::new())]]).await;
        assert_eq!(error.class, ErrorClass::Config);
        assert!(error.message.contains(shown), "{error:?}");
        assert!(!error.message.contains("pw") && !error.detail.contains("pw"), "{error:?}");
    }
}

#[tokio::test]
async fn an_answer_that_breaks_keeps_what_was_said() {
    let said = || Step::Text("half".into());
    for (script, class) in [
        (vec![said(), Step::Cut], ErrorClass::Network),
        (vec![said()], ErrorClass::MalformedStream),
        (vec![said(), Step::Event("{".into())], ErrorClass::MalformedStream),
        (vec![said(), Step::Event(r#"{"error":"gone"}"#.into())], ErrorClass::Provider),
    ] {
        let (text, error) = fails(vec![script.clone(), says("late")]).await;
        assert_eq!((text.as_str(), error.class), ("half", class), "{script:?}");
    }
}

#[tokio::test]
async fn a_good_status_is_not_an_answer_yet() {
    let json = vec![("Content-Type", "application/json".into())];
    let quota = r#"{"error":{"message":"x","code":"insufficient_quota"}}"#;
    for (step, class) in [
        (Step::Status(200, Vec::new(), String::new()), ErrorClass::MalformedStream),
        (Step::Status(204, Vec::new(), String::new()), ErrorClass::MalformedStream),
        (Step::Status(200, Vec::new(), "<html></html>".into()), ErrorClass::MalformedStream),
        (Step::Status(200, json, quota.into()), ErrorClass::RateLimited),
    ] {
        let (_, error) = fails(vec![vec![step.clone()], says("late")]).await;
        assert_eq!(error.class, class, "{step:?}");
    }
    let (_, error) = fails(vec![Vec::new()]).await;
    assert_eq!(error.class, ErrorClass::MalformedStream);
}

#[tokio::test]
async fn a_provider_that_does_not_stream_is_understood() {
    let whole = r#"{"choices":[{"message":{"content":"all"},"finish_reason":"length"}]}"#;
    let json = vec![("Content-Type", "application/json".into())];
    let provider = Provider::start(vec![vec![Step::Status(200, json, whole.into())]]);
    let (events, end) = run(settings(&provider)).await;
    let finished = EngineEvent::CallFinished {
        stop_reason: "length".into(),
        class: FinishClass::MaxTokens,
        provider_data: None,
    };
    assert_eq!(end, CallEnd::Finished);
    assert_eq!(events, [EngineEvent::CallStarted, EngineEvent::Text("all".into()), finished]);
}

#[tokio::test]
async fn a_character_cut_by_the_network_is_whole_again() {
    let event = "data: {\"choices\":[{\"delta\":{\"content\":\"\u{1F600}\u{2028}\"}}]}\n\n";
    let mut script: Vec<_> =
        event.as_bytes().chunks(1).map(|byte| Step::Bytes(byte.to_vec())).collect();
    for half in [r"\ud83d", r"\ude00"] {
        let data = format!(r#"{{"choices":[{{"delta":{{"content":"{half}"}}}}]}}"#);
        script.push(Step::Event(data));
    }
    script.extend(says("!"));
    let provider = Provider::start(vec![script]);
    let (events, _) = run(settings(&provider)).await;
    assert_eq!(text(&events), "\u{1F600}\u{2028}\u{1F600}!");
}

#[tokio::test]
async fn an_answer_that_calls_a_tool_is_whole() {
    let call = r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"c","function":{"name":"look","arguments":"{}"}}]}}]}"#;
    let script = vec![Step::Event(call.into()), Step::Finish("tool_calls", None), Step::Done];
    let provider = Provider::start(vec![script]);
    let (events, end) = run(settings(&provider)).await;
    assert_eq!(end, CallEnd::Finished);
    let requested = EngineEvent::ToolCallRequested { id: ToolCallId("c".to_owned()) };
    assert!(events.contains(&requested), "{events:?}");
    assert!(matches!(events.last(), Some(EngineEvent::CallFinished { .. })), "{events:?}");
}

#[tokio::test(start_paused = true)]
async fn a_closed_port_is_a_network_error_after_its_retries() {
    let provider = Provider::start(Vec::new());
    let settings = settings(&provider);
    drop(provider);
    let begin = Instant::now();
    let (_, end) = run(settings).await;
    let error = failed(end);
    assert_eq!(error.class, ErrorClass::Network);
    assert!(error.message.contains("can't be reached"), "{error:?}");
    let waited = begin.elapsed();
    let expected = Duration::from_millis(1_125)..Duration::from_millis(1_510);
    assert!(expected.contains(&waited), "{waited:?}");
}

#[tokio::test(start_paused = true)]
async fn silence_is_a_timeout_and_not_tried_again() {
    let said = Step::Text("half".into());
    for script in [
        vec![Step::Stall],
        vec![Step::Head("text/event-stream"), Step::Stall],
        vec![said, Step::Stall],
    ] {
        let provider = Provider::start(vec![script, says("late")]);
        let (_, end) = run(settings(&provider)).await;
        let error = failed(end);
        assert_eq!(error.class, ErrorClass::Timeout);
        assert!(error.message.contains("sent nothing for 120s"), "{error:?}");
        assert!(provider.requests() <= 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_has_a_total_time() {
    let provider = Provider::start(vec![vec![Step::Text("half".into()), Step::Stall]]);
    let total_timeout = Duration::from_secs(30);
    let (_, end) = run(Settings { total_timeout, ..settings(&provider) }).await;
    let error = failed(end);
    assert_eq!(error.class, ErrorClass::Timeout);
    assert!(error.message.contains("not complete after 30s"), "{error:?}");
}

/// Answers one request with an error status, and with `part` of a body that then breaks off.
fn break_off(listener: &TcpListener, part: &str) -> std::io::Result<()> {
    let mut stream = listener.accept()?.0;
    let mut request = Vec::new();
    while !request.ends_with(b"}") {
        let mut bytes = [0; 4_096];
        let read = stream.read(&mut bytes)?;
        request.extend_from_slice(&bytes[..read]);
    }
    let bytes = part.len() + 1;
    write!(stream, "HTTP/1.1 400 Bad Request\r\ncontent-length: {bytes}\r\n\r\n{part}")
}

#[tokio::test]
async fn the_beginning_of_a_key_that_the_end_of_an_error_body_cuts_is_not_shown() {
    let said = format!("bad key: {KEY}");
    let check = |error: &RunError| {
        assert!(error.message.ends_with("says: bad key:"), "{error:?}");
        assert!(error.detail.ends_with(": bad key:"), "{error:?}");
    };
    for cut_bytes in [1, 9, KEY.len() - 1] {
        let part = said[..said.len() - cut_bytes].to_owned();
        let long = " ".repeat(ERROR_BODY_BYTES_MAX - part.len()) + &said;
        check(&fails(vec![vec![Step::Status(400, Vec::new(), long)]]).await.1);

        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let base_url = format!("http://{}", listener.local_addr().expect("an address"));
        let serving = spawn_blocking(move || break_off(&listener, &part));
        let settings = Settings {
            base_url: Some(base_url),
            model: Some("m".into()),
            key: Secret::new(KEY),
            ..Settings::default()
        };
        let (_, end) = run(settings).await;
        check(&failed(end));
        serving.await.expect("no panic").expect("it listens");
    }
}

#[tokio::test(start_paused = true)]
async fn the_time_of_a_slow_reader_is_not_the_providers() {
    let delta = "data: {\"choices\":[{\"delta\":{\"content\":\"x\"}}]}\n\n";
    // In one piece, so that the engine has them all before it gives out the first.
    let mut script = vec![Step::Bytes(delta.repeat(50).into_bytes())];
    script.extend(says("."));
    let provider = Provider::start(vec![script]);
    let frozen = Frozen::begin();
    let (running, mut events) = start(&engine(settings(&provider)), 1);
    let running = tokio::spawn(running);
    assert_eq!(next(&mut events).await, Some(EngineEvent::CallStarted));
    for _ in 0..40 {
        assert!(events.recv().await.is_some());
        tokio::time::advance(Duration::from_secs(60 * 60)).await;
    }
    let rest = collect(events).await;
    frozen.end().await;
    assert_eq!(text(&rest), "x".repeat(10) + ".");
    assert_eq!(running.await.expect("no panic"), CallEnd::Finished);
}

#[tokio::test]
async fn a_slow_reader_holds_the_provider_back() {
    const FLOOD_BYTES: usize = 16 * 1024 * 1024;
    let script = vec![Step::Flood(FLOOD_BYTES), Step::Finish("stop", None), Step::Done];
    let provider = Arc::new(Provider::start(vec![script]));
    let (running, events) = start(&engine(settings(&provider)), 1);
    let running = tokio::spawn(running);
    let sent_bytes = with(&provider, Provider::wait_blocked).await;
    // What the sockets hold, which is the system's to say, and little more.
    assert!(sent_bytes < FLOOD_BYTES / 2, "{sent_bytes}");
    let text = text(&collect(events).await);
    assert!(text.len() > FLOOD_BYTES / 2);
    assert_eq!(text, "flood ".repeat(text.len() / "flood ".len()));
    assert_eq!(running.await.expect("no panic"), CallEnd::Finished);
}

#[tokio::test]
async fn a_stalled_answer_goes_on_when_released() {
    let drip = Step::Drip { text: "b".into(), times: 3, pause: Duration::from_millis(1) };
    let mut script = vec![Step::Text("a".into()), Step::Stall, Step::Gate, drip];
    script.extend(says("."));
    let provider = Provider::start(vec![script]);
    let (running, mut events) = start(&engine(settings(&provider)), EVENTS_MAX);
    let running = tokio::spawn(running);
    for _ in 0..2 {
        assert!(events.recv().await.is_some());
    }
    provider.open_gate();
    provider.release();
    assert_eq!(text(&collect(events).await), "bbb.");
    assert_eq!(running.await.expect("no panic"), CallEnd::Finished);
}
