//! What is tried again, and what is not.

use super::*;

#[tokio::test]
async fn a_passing_trouble_is_tried_again() {
    let busy = |status| Step::Status(status, vec![("Retry-After", "0".into())], "busy".into());
    let cut = || vec![Step::Head("text/event-stream"), Step::Cut];
    let reported = |error: &str| vec![Step::Event(format!(r#"{{"error":{error}}}"#))];
    for first in [
        vec![busy(429)],
        vec![busy(503)],
        vec![Step::Cut],
        cut(),
        reported(r#"{"code":502}"#),
        reported(r#"{"message":"The server had an error","type":"server_error","code":null}"#),
        reported(r#"{"message":"slower","type":"requests","code":"rate_limit_exceeded"}"#),
    ] {
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
        let (mut running, events) = start(&OpenAi::new(settings(&provider)), EVENTS_MAX);
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

#[tokio::test]
async fn a_long_wait_is_told_and_not_waited_for() {
    let busy = Step::Status(429, vec![("Retry-After", "3600".into())], String::new());
    let (_, error) = fails(vec![vec![busy], says("late")]).await;
    assert_eq!(error.class, ErrorClass::RateLimited);
    assert!(error.message.contains("3600 s"), "{error:?}");
}

/// The provider behind LiteLLM, and the words of an error, request waits too.
#[tokio::test]
async fn a_long_wait_is_found_wherever_it_is_requested() {
    let behind = Step::Status(429, vec![("llm_provider-retry-after", "3600".into())], "{}".into());
    let said = Step::Status(429, Vec::new(), "Please try again in 1h".into());
    let reported = r#"{"error":{"message":"try again in 3600s","code":"rate_limit_exceeded"}}"#;
    for step in [behind, said, Step::Event(reported.into())] {
        let (_, error) = fails(vec![vec![step], says("late")]).await;
        assert_eq!(error.class, ErrorClass::RateLimited);
        assert!(error.message.contains("a wait of 3600 s"), "{error:?}");
    }
}

#[tokio::test]
async fn a_provider_may_say_itself_whether_to_try_again() {
    let advised = |status, word: &str| {
        vec![Step::Status(status, vec![("x-should-retry", word.into())], "odd".into())]
    };
    let (_, error) = fails(vec![advised(429, "false"), says("late")]).await;
    assert_eq!(error.class, ErrorClass::RateLimited);
    let provider = Provider::start(vec![advised(400, "true"), says("hello")]);
    let (events, end) = run(settings(&provider)).await;
    assert_eq!((end, text(&events).as_str()), (CallEnd::Finished, "hello"));
    assert_eq!(provider.requests(), 2);
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
        assert_eq!((error.stage, error.class), (Stage::Refused, class));
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

/// The token counts of an answer that breaks are known, too, and those of another attempt replace them.
#[tokio::test]
async fn token_counts_of_an_answer_that_fails_are_reported() {
    let counts = |input: i32, output: i32| {
        let usage = format!(r#"{{"prompt_tokens":{input},"completion_tokens":{output}}}"#);
        Step::Event(format!(r#"{{"choices":[],"usage":{usage}}}"#))
    };
    let reported = |events: &[EngineEvent]| {
        let usage = |event: &EngineEvent| match event {
            EngineEvent::Usage(usage) => Some((usage.input_tokens, usage.output_tokens)),
            EngineEvent::CallStarted
            | EngineEvent::Reasoning { .. }
            | EngineEvent::Text(_)
            | EngineEvent::ToolCallStarted(_)
            | EngineEvent::ToolArguments { .. }
            | EngineEvent::ToolCallRequested { .. }
            | EngineEvent::ContextTokens(_)
            | EngineEvent::RetryScheduled(_)
            | EngineEvent::ResponseStarted
            | EngineEvent::RetryStarted(_)
            | EngineEvent::CallFinished { .. } => None,
        };
        events.iter().filter_map(usage).collect::<Vec<_>>()
    };
    let half = || Step::Text("half".into());
    let gone = || Step::Event(r#"{"error":"gone"}"#.into());
    for script in [vec![counts(7, 1), half(), Step::Cut], vec![half(), counts(7, 1), gone()]] {
        let provider = Provider::start(vec![script]);
        let (events, end) = run(settings(&provider)).await;
        drop(failed(end));
        assert_eq!(reported(&events), [(7, 1)]);
    }
    let provider = Provider::start(vec![vec![counts(7, 0), Step::Cut], says("hello")]);
    let (events, end) = run(settings(&provider)).await;
    assert_eq!((end, text(&events).as_str()), (CallEnd::Finished, "hello"));
    assert_eq!(reported(&events), [(7, 0), (3, 2)]);
    assert_eq!(provider.requests(), 2);
}

const BAD_CALL: &str = r#"{"error":{"message":"Failed to call a function. Please adjust your prompt. See 'failed_generation' for more details.","type":"invalid_request_error","code":"tool_use_failed","failed_generation":"<function=look>"}}"#;

/// The model may write a better call the next time, to the same request.
#[tokio::test]
async fn a_call_that_the_model_wrote_badly_is_tried_again_as_it_was() {
    let bad = || vec![Step::Status(400, Vec::new(), BAD_CALL.into())];
    let provider = Provider::start(vec![bad(), says("a"), bad(), says("b"), says("c")]);
    for said in ["a", "b", "c"] {
        let (events, end) = run(settings(&provider)).await;
        assert_eq!((end, text(&events).as_str()), (CallEnd::Finished, said));
    }
    assert_eq!(provider.requests(), 5);
    for number in 1..=5 {
        let body = provider.wait_request(number).body;
        assert!(body.get("stream_options").is_some(), "{number}: {body}");
    }
    let (_, error) = fails(vec![bad(), bad(), bad(), says("late")]).await;
    assert!(error.message.contains("could not read what the model wrote"), "{error:?}");
}

/// What the words of a refusal only hint at is left out of one request, and of all after it once that has happened
/// twice in a row.
#[tokio::test]
async fn a_guess_costs_later_requests_no_part_before_it_is_confirmed() {
    let odd = r#"{"error":{"message":"messages[0] is odd"}}"#;
    let odd = || vec![Step::Status(400, Vec::new(), odd.into())];
    let script = vec![odd(), says("a"), says("b"), odd(), says("c"), odd(), says("d"), says("e")];
    let provider = Provider::start(script);
    for _ in 0..5 {
        assert_eq!(run(settings(&provider)).await.1, CallEnd::Finished);
    }
    let has_part = |number| provider.wait_request(number).body.get("stream_options").is_some();
    let expected = [true, false, true, true, false, true, false, false];
    assert_eq!([1, 2, 3, 4, 5, 6, 7, 8].map(has_part), expected);
}

/// A part is left out of later requests only if the request without it was taken.
#[tokio::test]
async fn a_part_is_not_refused_because_the_request_with_it_was_taken_once() {
    let cut = vec![Step::Head("text/event-stream"), Step::Cut];
    let complaint = r#"{"error":{"message":"Unknown parameter: 'stream_options'"}}"#;
    let refusal = || vec![Step::Status(400, Vec::new(), complaint.into())];
    let provider = Provider::start(vec![cut, refusal(), refusal(), says("a")]);
    drop(failed(run(settings(&provider)).await.1));
    assert_eq!(run(settings(&provider)).await.1, CallEnd::Finished);
    let has_part = |number| provider.wait_request(number).body.get("stream_options").is_some();
    assert_eq!([1, 2, 3, 4].map(has_part), [true, true, false, true]);
}
