//! Time limits, and readers that are slow.

use super::*;

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

/// Neither a server that has gone nor one that does not read holds a request longer.
#[tokio::test]
async fn a_request_that_nobody_reads_ends_with_the_idle_timeout() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let base_url = format!("http://{}/v1", listener.local_addr().expect("it has an address"));
    let (model, idle_timeout) = (Some("m".into()), Duration::from_millis(300));
    let settings =
        Settings { base_url: Some(base_url), model, idle_timeout, ..Settings::default() };
    let (sender, events) = mpsc::channel(EVENTS_MAX);
    // More than the sockets hold.
    let prompt = "x".repeat(16 * 1024 * 1024);
    let spec = CallSpec { transcript: transcript(&prompt), ..CallSpec::default() };
    let end = OpenAi::new(settings).start(spec, Sink::new(TaskId(1), sender)).await;
    let error = failed(end);
    assert_eq!(error.class, ErrorClass::Timeout, "{error:?}");
    drop((listener, events));
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

/// The limit holds, too, while there is always something to read.
#[tokio::test]
async fn a_flood_of_comments_ends_at_the_total_time() {
    let comments = b": ping\n\n".repeat(1_000);
    let provider = Provider::start(vec![vec![Step::Endless(comments)]]);
    let total_timeout = Duration::from_millis(300);
    let (_, end) = run(Settings { total_timeout, ..settings(&provider) }).await;
    assert_eq!(failed(end).class, ErrorClass::Timeout);
}

#[tokio::test(start_paused = true)]
async fn the_time_of_a_slow_reader_is_not_the_providers() {
    let delta = "data: {\"choices\":[{\"delta\":{\"content\":\"x\"}}]}\n\n";
    // In one piece, so that the engine has them all before it gives out the first.
    let mut script = vec![Step::Bytes(delta.repeat(50).into_bytes())];
    script.extend(says("."));
    let provider = Provider::start(vec![script]);
    let frozen = Frozen::begin();
    let (running, mut events) = start(&OpenAi::new(settings(&provider)), 1);
    let running = tokio::spawn(running);
    assert_eq!(next(&mut events).await, Some(EngineEvent::CallStarted));
    for _ in 0..40 {
        assert!(next(&mut events).await.is_some());
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
    let (running, events) = start(&OpenAi::new(settings(&provider)), 1);
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
    let (running, mut events) = start(&OpenAi::new(settings(&provider)), EVENTS_MAX);
    let running = tokio::spawn(running);
    for _ in 0..2 {
        assert!(next(&mut events).await.is_some());
    }
    provider.open_gate();
    provider.release();
    assert_eq!(text(&collect(events).await), "bbb.");
    assert_eq!(running.await.expect("no panic"), CallEnd::Finished);
}
