//! Error reports inside an answer. OpenAI has them in `error`; vLLM and SGLang send the error object
//! itself, FastAPI servers an object with nothing but `detail`, DeepInfra one with `error_message`, and MiniMax has
//! them in `base_resp`.

use crate::engine::provider::json;
use serde_json::{Value, json};

/// The meaning of a JSON object of an answer that holds no choice.
#[derive(Debug, PartialEq)]
pub(super) enum WithoutChoice {
    /// The server reports this error.
    Error(Value),
    /// Token counts, or a chunk that leaves out what it would hold.
    Known,
    /// No part of a chat completion.
    Unknown,
}

/// Classifies `json`, whose `error` field holds no error.
pub(super) fn without_choice(json: &[u8]) -> WithoutChoice {
    let Ok(value) = json::read::<Value>(json) else { return WithoutChoice::Unknown };
    if let Some(error) = in_base_resp(&value) {
        return WithoutChoice::Error(error);
    }
    if is_error_object(&value) {
        return WithoutChoice::Error(value);
    }
    let is_known = ["choices", "usage", "error"].iter().any(|name| value.get(name).is_some());
    if is_known { WithoutChoice::Known } else { WithoutChoice::Unknown }
}

/// False for what a provider may put where there is no error.
pub(super) fn is_error(error: &Value) -> bool {
    match error {
        Value::Null | Value::Bool(false) => false,
        Value::String(text) => !text.is_empty(),
        Value::Object(fields) => !fields.is_empty(),
        Value::Bool(true) | Value::Number(_) | Value::Array(_) => true,
    }
}

/// The error in a list of error reports, as Google's servers send them.
pub(super) fn in_list(data: &[u8]) -> Option<Value> {
    if !data.starts_with(b"[") {
        return None;
    }
    let mut list = json::read::<Value>(data).ok()?;
    let error = list.get_mut(0)?.get_mut("error")?.take();
    is_error(&error).then_some(error)
}

/// The error in the `base_resp` of MiniMax's servers, which stands in an answer with the status 200, in the form of
/// OpenAI's errors.
fn in_base_resp(value: &Value) -> Option<Value> {
    let report = value.get("base_resp")?;
    let code = report["status_code"].as_u64().filter(|code| *code != 0)?;
    Some(
        json!({ "code": code, "status": status_of_minimax(code), "message": report["status_msg"] }),
    )
}

/// The HTTP status that a code of MiniMax stands for
/// (<https://platform.minimax.io/docs/api-reference/errorcode>).
fn status_of_minimax(code: u64) -> Option<u16> {
    match code {
        1000 | 1001 | 1013 | 1024 | 1033 => Some(500),
        1002 | 1041 => Some(429),
        1004 | 2049 => Some(401),
        1008 => Some(402),
        1026 | 1027 | 1039 | 1042 | 2013 => Some(400),
        _ => None,
    }
}

fn is_error_object(value: &Value) -> bool {
    let has = |name: &str| value.get(name).is_some_and(|field| !field.is_null());
    if has("usage") {
        return false;
    }
    let has_one_field = value.as_object().is_some_and(|fields| fields.len() == 1);
    let is_said = |name: &&str| {
        value[*name].as_str().is_some_and(|words| !words.is_empty() && !is_success_word(words))
    };
    let is_status = |name: &&str| value[*name].as_u64().is_some_and(|status| status >= 400);
    let is_said_to_be_good = CODE_FIELDS.iter().any(|name| is_success(&value[*name]));
    value["object"] == "error"
        || has("message")
            && (has("code") && !is_said_to_be_good || STATUS_FIELDS.iter().any(is_status))
        || has("detail") && has_one_field
        || ERROR_FIELDS.iter().any(is_said) && !is_said_to_be_good
}

/// Whether `code`, of one of [`CODE_FIELDS`], says that there is no error.
fn is_success(code: &Value) -> bool {
    match code {
        Value::Number(number) => matches!(number.as_u64(), Some(0 | 200)),
        Value::String(text) => matches!(text.as_str(), "0" | "200") || is_success_word(text),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => false,
    }
}

fn is_success_word(text: &str) -> bool {
    ["success", "ok"].iter().any(|word| text.eq_ignore_ascii_case(word))
}

/// Fields with the code of an error report, which is one of success where there is no error.
const CODE_FIELDS: [&str; 2] = ["error_code", "code"];

/// Fields that hold words where there is an error; some servers put a word of success there.
const ERROR_FIELDS: [&str; 3] = ["error_message", "error_msg", "error_type"];

/// Fields with the HTTP status of an error report.
const STATUS_FIELDS: [&str; 2] = ["status", "status_code"];

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_error_object_is_distinguished_from_other_objects() {
        let is_error = |value: Value| {
            without_choice(value.to_string().as_bytes()) == WithoutChoice::Error(value)
        };
        assert!(is_error(json!({ "object": "error", "message": "x", "code": 500 })));
        assert!(is_error(json!({ "object": "error", "choices": [] })));
        assert!(is_error(json!({ "message": "x", "code": "500" })));
        assert!(is_error(json!({ "detail": [{ "loc": ["body"] }] })));
        assert!(is_error(json!({ "choices": null, "error_type": "engine", "error_message": "x" })));
        assert!(is_error(json!({ "error_code": 336_003, "error_msg": "x" })));
        assert!(is_error(json!({ "message": "x", "status": 503 })));
        assert!(is_error(json!({ "message": "x", "status_code": 400 })));
        assert!(!is_error(json!({ "message": "x", "status": 200 })));
        assert!(!is_error(json!({ "error_message": "", "error_type": null })));
        assert!(!is_error(json!({ "choices": [], "error_code": 0, "error_msg": "success" })));
        assert!(!is_error(json!({ "code": "0", "error_msg": "success" })));
        assert!(!is_error(json!({ "code": 0, "message": "success" })));
        assert!(!is_error(json!({ "code": "0", "message": "success" })));
        assert!(is_error(json!({ "code": 0, "message": "x", "status": 503 })));
        for code in [json!(200), json!("200"), json!("success"), json!("OK")] {
            assert!(!is_error(json!({ "code": code, "message": "OK", "choices": [] })), "{code}");
            assert!(!is_error(json!({ "error_code": code, "error_msg": "done" })), "{code}");
        }
        for code in [json!(500), json!("2000"), json!("no success"), json!(true)] {
            assert!(is_error(json!({ "code": code, "message": "OK", "choices": [] })), "{code}");
        }
        assert!(!is_error(json!({ "error_msg": "Success", "choices": [] })));
        assert!(!is_error(json!({ "error_code": null, "error_msg": "ok" })));
        assert!(is_error(json!({ "error_msg": "success", "error_type": "engine" })));
        assert!(!is_error(json!({ "detail": "x", "id": 1 })));
        assert!(!is_error(json!({ "detail": null })));
        assert!(!is_error(json!({ "message": "x" })));
        assert!(!is_error(json!({ "message": "x", "code": null })));
        assert!(!is_error(json!({ "object": "error", "usage": { "prompt_tokens": 1 } })));
    }

    #[test]
    fn an_error_of_minimax_has_the_form_of_others() {
        let read = |code: u64| {
            let report = json!({ "status_code": code, "status_msg": "insufficient balance" });
            let value = json!({ "id": "1", "choices": null, "usage": null, "base_resp": report });
            without_choice(value.to_string().as_bytes())
        };
        let error = json!({ "code": 1008, "status": 402, "message": "insufficient balance" });
        assert_eq!(read(1_008), WithoutChoice::Error(error));
        assert_eq!(read(0), WithoutChoice::Known);
    }

    #[test]
    fn an_object_without_a_choice_is_known_by_its_fields() {
        for known in [r#"{"choices":[]}"#, r#"{"usage":null}"#, r#"{"error":null,"a":1}"#] {
            assert_eq!(without_choice(known.as_bytes()), WithoutChoice::Known, "{known}");
        }
        for unknown in ["{}", r#"{"type":"ping"}"#, r#"{"message":"x"}"#, r#"{"a":1e999}"#] {
            assert_eq!(without_choice(unknown.as_bytes()), WithoutChoice::Unknown, "{unknown}");
        }
    }
}
