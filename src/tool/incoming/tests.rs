use super::*;
use serde_json::json;

/// The message in a line, as JSON.
fn shown(line: &[u8], answer: Answer) -> Value {
    let messages = read(line, answer);
    assert!(messages.len() <= 1, "{messages:?}");
    messages.first().map_or(Value::Null, |it| serde_json::to_value(it).expect("JSON"))
}

fn any(line: &str) -> Value {
    shown(line.as_bytes(), Answer::Any)
}

#[test]
fn an_error_wins_over_a_result_that_is_null() {
    let error = json!({"code": -32602, "message": "no such tool"});
    let expected = json!({"jsonrpc": "2.0", "id": 3, "error": error});
    for line in [
        json!({"jsonrpc": "2.0", "id": 3, "result": null, "error": error}),
        json!({"jsonrpc": "2.0", "id": 3, "result": {"content": []}, "error": error}),
        json!({"id": 3, "result": null, "error": error}),
    ] {
        assert_eq!(any(&line.to_string()), expected, "{line}");
    }
    let success = json!({"jsonrpc": "2.0", "id": 3, "result": {"content": []}, "error": null});
    let result = json!({"jsonrpc": "2.0", "id": 3, "result": {"content": []}});
    assert_eq!(any(&success.to_string()), result);
}

#[test]
fn an_error_in_another_form_is_one_for_its_call_in_its_words() {
    for (error, words) in [
        (json!("it is late"), "it is late"),
        (json!({"message": "it is late"}), "it is late"),
        (json!({"code": "E1", "message": "it is late"}), "it is late"),
        (json!({"code": "E1"}), "{\"code\":\"E1\"}"),
    ] {
        let line = json!({"jsonrpc": "2.0", "id": 3, "error": error});
        let read = any(&line.to_string());
        assert_eq!((&read["id"], &read["error"]["message"]), (&json!(3), &json!(words)), "{line}");
    }
    // A line of a log.
    assert_eq!(any(r#"{"level":50,"id":3,"error":"it is late"}"#), Value::Null);
}

#[test]
fn a_request_that_is_odd_is_no_answer() {
    let roots = json!({"jsonrpc": "2.0", "id": 2, "method": "roots/list", "params": {}});
    for params in ["[]", "null", "\"x\"", "{\"_meta\":[]}"] {
        let line = format!(r#"{{"jsonrpc":"2.0","id":2,"method":"roots/list","params":{params}}}"#);
        let read = any(&line);
        assert_eq!((&read["id"], &read["method"]), (&roots["id"], &roots["method"]), "{line}");
    }
    for line in [
        r#"{"jsonrpc":"2.0","id":2,"method":7}"#.to_owned(),
        format!(
            r#"{{"jsonrpc":"2.0","id":2,"method":"ping","params":{}{}}}"#,
            "[".repeat(200),
            "]".repeat(200)
        ),
    ] {
        assert_eq!(any(&line), Value::Null, "{line}");
    }
    // Some write each member always.
    let answer = r#"{"jsonrpc":"2.0","id":2,"method":null,"result":{}}"#;
    assert_eq!(any(answer)["result"], json!({}));
}

#[test]
fn characters_that_are_cut_cost_only_themselves() {
    let text = |line: &[u8]| shown(line, Answer::Any)["result"].clone();
    assert_eq!(text(br#"{"jsonrpc":"2.0","id":2,"result":"cut \ud83d"}"#), "cut \u{fffd}");
    assert_eq!(text(b"{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":\"a\xff\"}"), "a\u{fffd}");
    assert_eq!(text(b"\xEF\xBB\xBF{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":\"x\"}"), "x");
}

#[test]
fn an_odd_member_of_the_handshake_costs_only_itself() {
    let version = "2025-06-18";
    let about = json!({"name": "odd", "version": "1"});
    let read = |capabilities: Value, about: Value| {
        let mut result = json!({"protocolVersion": version, "capabilities": capabilities});
        if !about.is_null() {
            result["serverInfo"] = about;
        }
        let line = json!({"jsonrpc": "2.0", "id": 0, "result": result}).to_string();
        let Some(JsonRpcMessage::Response(response)) =
            read(line.as_bytes(), Answer::Handshake).pop()
        else {
            panic!("{line}")
        };
        let ServerResult::InitializeResult(result) = response.result else { panic!("{line}") };
        assert_eq!(result.protocol_version.as_str(), version);
        let offered = result.capabilities;
        [offered.tools.is_some(), offered.prompts.is_some(), offered.resources.is_some()]
    };
    for (capabilities, expected) in [
        (json!({"tools": []}), [true, false, false]),
        (json!([]), [false; 3]),
        (json!(null), [false; 3]),
        (json!({"logging": [], "prompts": {}}), [false, true, false]),
        (json!({"tools": true, "prompts": false, "resources": null}), [true, false, false]),
        (json!({"tools": {"listChanged": "true"}, "resources": {}}), [true, false, true]),
        (json!({"experimental": {"x": true}, "tools": {}}), [true, false, false]),
    ] {
        assert_eq!(read(capabilities.clone(), about.clone()), expected, "{capabilities}");
    }
    for about in [json!(null), json!({"name": "odd"}), json!({"name": "odd", "version": 1})] {
        assert_eq!(read(json!({"tools": {}}), about), [true, false, false]);
    }
}

#[test]
fn the_member_for_which_a_handshake_fails_is_named() {
    for (result, expected) in [
        (json!({}), "has no `protocolVersion`"),
        (json!({"protocolVersion": 2}), "has a `protocolVersion` that is no text"),
        (json!("x"), "is no object"),
    ] {
        let ServerResult::CustomResult(read) = initialize_result(result) else {
            panic!("{expected}")
        };
        assert_eq!(fault(&read.0), format!("its answer to `initialize` {expected}"));
    }
}

#[test]
fn a_batch_is_its_messages() {
    let result = |id: u32| json!({"jsonrpc": "2.0", "id": id, "result": {"x": id}});
    let error = json!({"jsonrpc": "2.0", "id": 3, "error": {"code": -1, "message": "no"}});
    let ping = json!({"jsonrpc": "2.0", "id": 3, "method": "ping"});
    let batch = json!([result(1), 7, error, [result(4)], ping, result(2)]);
    let messages = read(batch.to_string().as_bytes(), Answer::Any);
    let messages: Vec<_> = messages.iter().map(|it| json!(it)).collect();
    assert_eq!(messages[..2], [result(1), error]);
    assert_eq!((&messages[2]["method"], &messages[3..]), (&json!("ping"), &[result(2)][..]));
    for none in ["[]", "[1]", "[[]]"] {
        assert_eq!(any(none), Value::Null, "{none}");
    }
}

#[test]
fn only_json_without_its_end_is_cut() {
    for cut in ["{\"jsonrpc\":\"2.0\"", "[1,", "{\"a\":\"b", "\u{feff}{", "{\"a\":\"\\ud83d"] {
        assert!(is_cut(cut.as_bytes()), "{cut}");
    }
    for whole in ["{\"a\":1}", "{\"a\":1}\r", "no JSON", "{a", "{\"a\":\"\\ud83d\"}"] {
        assert!(!is_cut(whole.as_bytes()), "{whole}");
    }
}
