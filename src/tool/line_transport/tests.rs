use super::*;
use serde_json::{Value, json};

/// What a client gets to see of `output`, the text that a server wrote, after its handshake.
async fn received(output: &[u8]) -> (Vec<Value>, Option<Closing>) {
    let ended = watch::Sender::new(None);
    let mut transport = LineTransport::new(output, tokio::io::sink(), ended.clone());
    transport.is_initialized = true;
    let mut messages = Vec::new();
    while let Some(message) = transport.receive().await {
        messages.push(serde_json::to_value(&message).expect("JSON"));
    }
    (messages, ended.borrow().clone())
}

#[tokio::test]
async fn messages_are_lines_and_other_lines_are_ignored() {
    let output = "Server started\n\n{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"odd\":[1]}}\r\n[1]\n\
                  {\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}\n\
                  {\"jsonrpc\":\"2.0\",\"id\":9,\"method\":\"ping\"}\n{\"jsonrpc\":\"2.0\"";
    let (messages, ended) = received(output.as_bytes()).await;
    let methods: Vec<_> = messages.iter().map(|it| it["method"].as_str()).collect();
    assert_eq!(messages[0], json!({"jsonrpc": "2.0", "id": 1, "result": {"odd": [1]}}));
    assert_eq!(methods, [None, Some("notifications/tools/list_changed"), Some("ping")]);
    assert_eq!(ended, Some(Closing::Remote));
}

#[tokio::test]
async fn a_result_is_never_taken_for_another_type() {
    // Fits none of the SDK's types, or the wrong one.
    let results = [
        json!({"tools": [{"name": "a", "inputSchema": null}]}),
        json!({"content": [{"type": "hologram", "data": 1}], "isError": false}),
        json!({}),
        json!(null),
        json!("text"),
        json!({"prompts": []}),
    ];
    for result in results {
        let line = json!({"jsonrpc": "2.0", "id": 3, "result": result}).to_string() + "\n";
        let (messages, _) = received(line.as_bytes()).await;
        assert_eq!(messages, [json!({"jsonrpc": "2.0", "id": 3, "result": result})]);
    }
}

#[tokio::test]
async fn an_answer_that_is_too_long_or_too_deep_is_an_error_for_its_call() {
    let long = format!("{{\"result\":\"{}\",\"id\":5}}\n", "x".repeat(MESSAGE_BYTES_MAX));
    let deep = format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":6,\"result\":{}{}}}\n",
        "[".repeat(200),
        "]".repeat(200)
    );
    let odd = "{\"jsonrpc\":\"2.0\",\"id\":7}\n{\"level\":\"info\",\"id\":8}\n";
    let next = "{\"jsonrpc\":\"2.0\",\"id\":9,\"result\":{}}\n";
    let (messages, _) = received([&long, &deep, odd, next].concat().as_bytes()).await;
    let ids: Vec<_> = messages.iter().map(|it| it["id"].as_i64()).collect();
    assert_eq!(ids, [Some(5), Some(6), Some(7), Some(9)]);
    let error = |at: usize| messages[at]["error"]["message"].as_str().unwrap_or_default();
    assert_eq!(error(0), "the answer is longer than 16777216 bytes");
    assert_eq!(
        error(1),
        "the answer is no valid MCP message, is nested too deep, or holds too many values"
    );
}

#[tokio::test]
async fn a_batch_that_is_too_long_or_too_deep_is_an_error_for_each_of_its_calls() {
    let deep = "[".repeat(200) + &"]".repeat(200);
    let long = format!("\"{}\"", "x".repeat(MESSAGE_BYTES_MAX));
    for result in [deep, long] {
        let batch = format!(
            "[{{\"jsonrpc\":\"2.0\",\"id\":5,\"result\":{result}}},\
             {{\"jsonrpc\":\"2.0\",\"id\":6,\"result\":{{}}}}]\n"
        );
        let (messages, _) = received(batch.as_bytes()).await;
        let ids: Vec<_> = messages.iter().map(|it| it["id"].as_i64()).collect();
        assert_eq!(ids, [Some(5), Some(6)]);
        assert!(messages.iter().all(|it| it["error"]["message"].is_string()), "{messages:?}");
    }
}

#[tokio::test]
async fn the_last_answer_may_have_no_line_feed() {
    let last = json!({"jsonrpc": "2.0", "id": 4, "result": {"x": 1}});
    for before in ["", "\n", "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\"}\n"] {
        let (messages, ended) = received(format!("{before}{last}").as_bytes()).await;
        assert_eq!((messages.last(), ended), (Some(&last), Some(Closing::Remote)));
    }
    let long = format!("{{\"id\":5,\"result\":\"{}\"}}", "x".repeat(MESSAGE_BYTES_MAX));
    let (messages, _) = received(long.as_bytes()).await;
    assert_eq!(messages[0]["error"]["message"], "the answer is longer than 16777216 bytes");
}

#[tokio::test]
async fn a_request_of_the_server_that_is_too_long_fails_no_call() {
    let long = "x".repeat(MESSAGE_BYTES_MAX);
    let asked = format!("{{\"id\":5,\"method\":\"ping\",\"params\":{{\"x\":\"{long}\"}}}}\n");
    assert_eq!(received(asked.as_bytes()).await.0, [Value::Null; 0]);
}

#[tokio::test]
async fn a_writer_that_nobody_reads_can_be_closed() {
    let (ours, _theirs) = tokio::io::duplex(4);
    let writer = Writer::new(ours);
    let write = tokio::spawn(writer.clone().write(vec![b'x'; 100]));
    tokio::task::yield_now().await;
    writer.close().await;
    let written = write.await.expect("no panic");
    assert_eq!(written.expect_err("closed").kind(), io::ErrorKind::NotConnected);
}
