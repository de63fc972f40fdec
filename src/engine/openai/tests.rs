//! The engine against a scripted provider, over real connections.

#[expect(dead_code, reason = "the tests of the program use all of it")]
#[path = "../../../tests/it/provider.rs"]
mod provider;

mod bodies;
mod endings;
mod retries;
mod times;
mod tls;

use super::*;
use crate::conversation::event::{Event, FinishClass, ProviderData, Recorded, Scope, Usage};
use crate::conversation::transcript::{Preamble, Transcript};
use crate::engine::provider::post::ERROR_BODY_BYTES_MAX;
use crate::engine::provider::remote::Remote;
use crate::engine::rules;
use crate::engine::{
    CONNECT_TIMEOUT, CallEnd, Engine, EngineEvent, ErrorClass, RunError, Running, Sink, Stage,
    TaggedEvent,
};
use crate::protocol::id::{Ids, Ordinal, TaskId, ToolCallId};
use provider::{Provider, Step, says};
use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::{JoinHandle, spawn_blocking};
use tokio::time::Instant;
use tracing::Dispatch;
use tracing::subscriber::NoSubscriber;

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

fn start(engine: &OpenAi, events_max: usize) -> (Running, mpsc::Receiver<TaggedEvent>) {
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

/// The next event but for the head of the response.
async fn next(events: &mut mpsc::Receiver<TaggedEvent>) -> Option<EngineEvent> {
    loop {
        let event = events.recv().await.map(|said| said.event);
        if event != Some(EngineEvent::ResponseStarted) {
            return event;
        }
    }
}

async fn run(settings: Settings) -> (Vec<EngineEvent>, CallEnd) {
    let (running, events) = start(&OpenAi::new(settings), EVENTS_MAX);
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
        | EngineEvent::ContextTokens(_)
        | EngineEvent::RetryScheduled(_)
        | EngineEvent::ResponseStarted
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

/// There is more than one subscriber as long as the tests run.
static OTHER_SUBSCRIBER: OnceLock<Dispatch> = OnceLock::new();

/// What is logged, at every level.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    fn begin(&self) -> tracing::subscriber::DefaultGuard {
        // With one subscriber alone, what another thread logs first, and has none, is logged nowhere.
        OTHER_SUBSCRIBER.get_or_init(|| Dispatch::new(NoSubscriber::new()));
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
async fn an_answer_comes_through_in_order() {
    let mut script = says("hello");
    script.insert(0, Step::Reasoning("hm".into()));
    let provider = Provider::start(vec![script]);
    let (events, end) = run(settings(&provider)).await;
    assert_eq!(end, CallEnd::Finished);
    let json = r#"{"reasoning_content":"hm"}"#.into();
    let host = address::host(&provider.base_url()).expect("an address").into();
    let data = ProviderData { engine: NAME.into(), host, model: "scripted".into(), json };
    let expected = [
        EngineEvent::CallStarted,
        EngineEvent::ResponseStarted,
        EngineEvent::Reasoning { source: "reasoning_content", text: "hm".into() },
        EngineEvent::Text("hello".into()),
        EngineEvent::Usage(Usage { input_tokens: 3, output_tokens: 2, ..Usage::default() }),
        EngineEvent::CallFinished {
            stop_reason: "stop".into(),
            class: FinishClass::Completed,
            provider_data: Some(data),
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
    let engine = OpenAi::new(settings(&provider));
    for expected in ["a", "b"] {
        let (running, events) = start(&engine, EVENTS_MAX);
        let running = tokio::spawn(running);
        assert_eq!(text(&collect(events).await), expected);
        assert_eq!(running.await.expect("no panic"), CallEnd::Finished);
    }
    assert_eq!((provider.requests(), provider.connections()), (2, 1));
    frozen.end().await;
}

/// There a bearer token is one of Entra, and a key that goes as one is refused.
#[test]
fn the_addresses_of_deployments_at_azure_take_a_key_in_a_header_of_its_own() {
    let sent = |url: &str, key: &str| {
        let url = Url::parse(url).expect("a URL");
        let headers = headers_at(Secret::new(key).as_ref(), &url).expect("a key");
        let value =
            |name: &str| headers.get(name).map(|value| value.to_str().expect("text").to_owned());
        [value("authorization"), value("api-key")]
    };
    let bearer = |key: &str| [Some(format!("Bearer {key}")), None];
    let deployment =
        "https://mine.openai.azure.com/openai/deployments/x/chat/completions?api-version=1";
    assert_eq!(sent(deployment, KEY), [None, Some(KEY.to_owned())]);
    let of_government = deployment.replace("azure.com", "azure.us");
    assert_eq!(sent(&of_government, KEY), [None, Some(KEY.to_owned())]);
    assert_eq!(sent(deployment, "eyJhbGciOi.x.y"), bearer("eyJhbGciOi.x.y"));
    for other in [
        "https://mine.openai.azure.com/openai/v1/chat/completions",
        "https://host/openai/deployments/x/chat/completions",
    ] {
        assert_eq!(sent(other, KEY), bearer(KEY), "{other}");
    }
    let url = Url::parse(deployment).expect("a URL");
    assert!(!headers_at(None, &url).expect("no key").contains_key("api-key"));
    assert_eq!(ChatCompletions::headers_at(None, &url), headers_at(None, &url));
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
    check(Settings::default(), ErrorClass::Auth, "the setting key").await;
    let slash = Settings { base_url: Some(format!("{DEFAULT_BASE_URL}/")), ..Settings::default() };
    check(slash, ErrorClass::Auth, "the setting key").await;
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
        let knobs = "the setting base_url";
        check(with_url(bad), ErrorClass::Config, knobs).await;
        check(with_url(bad), ErrorClass::Config, "http://localhost:11434/v1").await;
    }
    let unnamed = Settings { model: Some(" ".into()), ..with_url("http://localhost/v1") };
    check(unnamed, ErrorClass::Config, "the setting model").await;
    for odd in ["a\nb", "caf\u{e9}-0123456789"] {
        let odd = Settings { key: Secret::new(odd), ..with_url("http://localhost/v1") };
        check(odd, ErrorClass::Auth, "the setting key").await;
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
        OpenAi::new(settings).model().to_owned()
    };
    assert_eq!(model(DEFAULT_BASE_URL, None), DEFAULT_MODEL);
    assert_eq!(model(DEFAULT_BASE_URL, Some("m")), "m");
    assert_eq!(model("http://localhost:11434/v1", None), "");
}

#[tokio::test]
async fn nothing_is_done_before_the_first_poll() {
    let provider = Provider::start(vec![says("a")]);
    let openai = OpenAi::new(settings(&provider));
    let (running, _events) = start(&openai, EVENTS_MAX);
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
        let (running, mut events) = start(&OpenAi::new(settings(&provider)), 1);
        let running = tokio::spawn(running);
        assert_eq!(next(&mut events).await, Some(EngineEvent::CallStarted));
        with(&provider, |provider| drop(provider.wait_request(1))).await;
        running.abort();
        with(&provider, Provider::wait_disconnect).await;
    }
}
