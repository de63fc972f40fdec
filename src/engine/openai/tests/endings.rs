//! When an answer is over, and when a provider has been silent for too long.

use super::*;
use crate::engine::IDLE_TIMEOUT;
use crate::engine::provider::post::TAIL_TIMEOUT;

/// An event with a piece of text; `more` stands beside the delta.
fn piece(said: &str, more: &str) -> String {
    let delta = format!(r#"{{"delta":{{"content":"{said}"}}{more}}}"#);
    format!("data: {{\"choices\":[{delta}]}}\n\n")
}

const STOP: &str = r#","finish_reason":"stop""#;
const FINISH: &str = "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n";
const PING: &[u8] = b": ping\n\ndata: ping\n\ndata:\n\n";

fn bytes(text: impl Into<String>) -> Step {
    Step::Bytes(text.into().into_bytes())
}

/// A run of `script` whose clock stands still until the test moves it.
struct Scene {
    provider: Provider,
    frozen: Frozen,
    running: JoinHandle<CallEnd>,
    events: mpsc::Receiver<TaggedEvent>,
}

impl Scene {
    async fn begin(script: Vec<Step>) -> Self {
        let provider = Provider::start(vec![script]);
        let frozen = Frozen::begin();
        let (running, events) = start(&OpenAi::new(settings(&provider)), 1);
        let mut scene = Self { provider, frozen, running: tokio::spawn(running), events };
        assert_eq!(next(&mut scene.events).await, Some(EngineEvent::CallStarted));
        scene
    }

    async fn expect(&mut self, text: &str) {
        assert_eq!(next(&mut self.events).await, Some(EngineEvent::Text(text.into())));
    }

    /// Lets `time` pass, and the provider go on after it.
    async fn pass(&mut self, time: Duration) {
        tokio::time::advance(time).await;
        self.provider.open_gate();
    }

    /// The clock runs again, once the provider has nothing more to send by itself: what comes until the end.
    async fn end(self) -> (Vec<EngineEvent>, CallEnd) {
        self.provider.wait_quiet();
        self.frozen.end().await;
        (collect(self.events).await, self.running.await.expect("no panic"))
    }
}

#[tokio::test(start_paused = true)]
async fn text_that_comes_late_after_a_finish_reason_is_read() {
    let late = || vec![Step::Gate, bytes(piece("b", STOP)), Step::Gate, bytes(piece("c", STOP))];
    let with_text = bytes(piece("a", STOP));
    let alone = bytes(piece("a", "") + FINISH);
    let before_text = bytes(FINISH.to_owned() + &piece("a", STOP));
    for (first, wait) in [
        (with_text, TAIL_TIMEOUT * 2),
        (alone, TAIL_TIMEOUT * 4 / 5),
        (before_text, TAIL_TIMEOUT * 2),
    ] {
        let mut scene = Scene::begin([vec![first], late(), vec![Step::Done]].concat()).await;
        scene.expect("a").await;
        scene.pass(wait).await;
        scene.expect("b").await;
        // By now it is known that its finish reasons mean nothing.
        scene.pass(TAIL_TIMEOUT * 2).await;
        scene.expect("c").await;
        let (rest, end) = scene.end().await;
        assert!(matches!(rest.as_slice(), [EngineEvent::CallFinished { .. }]), "{rest:?}");
        assert_eq!(end, CallEnd::Finished);
    }
}

#[tokio::test(start_paused = true)]
async fn text_after_reasoning_with_a_finish_reason_is_waited_for() {
    let reasoning = r#"{"choices":[{"delta":{"reasoning":"hm"},"finish_reason":"stop"}]}"#;
    let script = vec![Step::Event(reasoning.into()), Step::Gate];
    let mut scene = Scene::begin([script, says("a")].concat()).await;
    let thought = EngineEvent::Reasoning { source: "reasoning", text: "hm".into() };
    assert_eq!(next(&mut scene.events).await, Some(thought));
    scene.pass(IDLE_TIMEOUT * 9 / 10).await;
    scene.expect("a").await;
    assert_eq!(scene.end().await.1, CallEnd::Finished);
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_is_finished_is_not_lost_to_a_stall_or_a_cut() {
    for finish in [piece("a", STOP), piece("a", "") + FINISH] {
        for last in [Step::Stall, Step::Cut] {
            let mut scene = Scene::begin(vec![bytes(&finish), last]).await;
            scene.expect("a").await;
            let (rest, end) = scene.end().await;
            assert!(matches!(rest.as_slice(), [EngineEvent::CallFinished { .. }]), "{rest:?}");
            assert_eq!(end, CallEnd::Finished);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_breaks_off_is_not_finished_by_a_reason_that_means_nothing() {
    for (last, class) in [(Step::Stall, ErrorClass::Timeout), (Step::Cut, ErrorClass::Network)] {
        let pieces = bytes(piece("a", STOP) + &piece("b", STOP));
        let mut scene = Scene::begin(vec![pieces, last]).await;
        scene.expect("a").await;
        scene.expect("b").await;
        assert_eq!(failed(scene.end().await.1).class, class);
    }
}

#[tokio::test(start_paused = true)]
async fn a_finished_answer_ends_in_time_though_bytes_go_on_coming() {
    let pings = vec![vec![Step::Gate, Step::Bytes(PING.to_vec())]; 4].concat();
    let log = Log::default();
    let _logging = log.begin();
    let first = vec![bytes(piece("a", "") + FINISH)];
    let mut scene = Scene::begin([first, pings, vec![Step::Stall]].concat()).await;
    scene.expect("a").await;
    let begin = Instant::now();
    // Not so late that the process would seem to have stood still.
    scene.pass(TAIL_TIMEOUT * 11 / 20).await;
    scene.pass(TAIL_TIMEOUT * 11 / 20).await;
    assert_eq!(scene.end().await.1, CallEnd::Finished);
    assert!(begin.elapsed() < TAIL_TIMEOUT * 7 / 5, "{:?}", begin.elapsed());
    assert!(log.text().contains("anything sent later was not read"), "{}", log.text());
}

/// A model that hides its thinking sends nothing else for minutes.
#[tokio::test]
async fn a_provider_that_pings_is_not_silent() {
    let provider = Provider::start(vec![vec![Step::Pings(Duration::from_millis(10))]]);
    let idle_timeout = Duration::from_secs(2);
    let total_timeout = Duration::from_secs(3);
    let settings = Settings { idle_timeout, total_timeout, ..settings(&provider) };
    let error = failed(run(settings).await.1);
    assert_eq!(error.class, ErrorClass::Timeout);
    assert!(error.message.contains("not complete after 3s"), "{error:?}");
}

#[tokio::test]
async fn an_answer_of_nothing_is_an_error_after_its_token_counts() {
    let thinks = Step::Reasoning("hm".into());
    for begun in [Vec::new(), vec![thinks]] {
        let end = vec![Step::Finish("stop", Some((3, 2))), Step::Done];
        let provider = Provider::start(vec![[begun, end].concat(), says("late")]);
        let (events, end) = run(settings(&provider)).await;
        let error = failed(end);
        assert_eq!((error.stage, error.class), (Stage::Run, ErrorClass::Provider));
        assert!(error.message.contains("without any text"), "{error:?}");
        let tail = &events[events.len() - 2..];
        let [EngineEvent::Usage(_), EngineEvent::CallFinished { .. }] = tail else {
            panic!("{events:?}");
        };
        assert_eq!(provider.requests(), 1, "the answer was given");
    }
}

#[tokio::test]
async fn an_address_with_its_endpoint_is_taken_as_it_is_meant() {
    let provider = Provider::start(vec![says("a")]);
    let base_url = Some(format!("{}/chat/completions", provider.base_url()));
    let (events, _) = run(Settings { base_url, ..settings(&provider) }).await;
    assert_eq!(text(&events), "a");
    assert_eq!(provider.wait_request(1).path, "/v1/chat/completions");
}

/// Nothing was shown yet, so what may be a broken connection is tried again.
#[tokio::test]
async fn an_unframed_answer_that_stops_before_its_text_is_tried_again() {
    let broken = vec![Step::HeadWithoutLength, bytes(piece("", ""))];
    let provider = Provider::start(vec![broken, says("whole")]);
    let settings = Settings { retries: 1, ..settings(&provider) };
    let (running, events) = start(&OpenAi::new(settings), 1);
    let running = tokio::spawn(running);
    let events = collect(events).await;
    assert!(events.contains(&EngineEvent::Text("whole".into())), "{events:?}");
    assert_eq!(running.await.expect("no panic"), CallEnd::Finished);
    assert_eq!(provider.requests(), 2);
}
