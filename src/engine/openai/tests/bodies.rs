//! Bodies that break, that are not what they should be, and that come in another form.

use super::*;

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
    let begin = [EngineEvent::CallStarted, EngineEvent::ResponseStarted];
    assert_eq!(events[..2], begin);
    assert_eq!(events[2..], [EngineEvent::Text("all".into()), finished]);
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

#[tokio::test]
async fn a_compressed_answer_is_named() {
    let head =
        vec![("Content-Encoding", "gzip".into()), ("Content-Type", "text/event-stream".into())];
    let script = vec![Step::Status(200, head, "\u{1f}\u{8b}\u{8}\0".into())];
    let provider = Provider::start(vec![script]);
    let (_, end) = run(settings(&provider)).await;
    let error = failed(end);
    assert_eq!(error.class, ErrorClass::MalformedStream);
    assert!(error.message.contains("compressed (gzip)"), "{error:?}");
}

/// Its bytes say nothing to anybody. A server may also name an encoding and send a text.
#[tokio::test]
async fn a_compressed_error_is_named_and_not_quoted() {
    let refusal = |body: &str| {
        vec![Step::Status(400, vec![("Content-Encoding", "gzip".into())], body.into())]
    };
    let (_, error) = fails(vec![refusal("\u{1f}\u{8b}\u{8}\0")]).await;
    assert_eq!((error.class, error.detail.as_str()), (ErrorClass::Provider, "status 400"));
    assert!(error.message.contains("compressed (gzip)"), "{error:?}");
    assert!(!error.message.contains(char::is_control), "{error:?}");
    let (_, error) = fails(vec![refusal("no such thing")]).await;
    assert!(error.message.ends_with("says: no such thing"), "{error:?}");
}

/// It would have as many the next time.
#[tokio::test]
async fn a_response_with_too_many_headers_is_not_asked_for_again() {
    let many = vec![("x-odd", "y".to_owned()); 300];
    let (_, error) = fails(vec![vec![Step::Status(200, many, String::new())], says("late")]).await;
    assert_eq!(error.class, ErrorClass::MalformedStream);
    assert!(error.message.contains("more headers"), "{error:?}");
}
