//! Error reports inside an answer, which have a word for the error and no status.

use serde_json::Value;

/// The error in an event that reports one: in its `error`, or else the event itself.
pub(super) fn error(event: &Value) -> &Value {
    event.get("error").filter(|error| !error.is_null()).unwrap_or(event)
}

/// The HTTP status that the words in `error` stand for.
pub(super) fn status(error: &Value) -> Option<u16> {
    let words = ["code", "type"].into_iter().filter_map(|name| error[name].as_str());
    words.filter_map(status_of).next()
}

fn status_of(word: &str) -> Option<u16> {
    match word {
        "server_error" => Some(500),
        "server_is_overloaded" | "slow_down" | "service_unavailable" => Some(503),
        "vector_store_timeout" => Some(504),
        "rate_limit_exceeded" | "insufficient_quota" | "too_many_requests" => Some(429),
        "invalid_api_key" | "authentication_error" => Some(401),
        "model_not_found" => Some(404),
        "invalid_prompt" | "invalid_request_error" | "context_length_exceeded" => Some(400),
        word if word.contains("image") => Some(400),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_error_is_found_flat_and_nested() {
        let flat = json!({ "code": "server_error", "message": "x", "sequence_number": 3 });
        assert_eq!(error(&flat), &flat);
        assert_eq!(error(&json!({ "error": null, "code": "a" }))["code"], "a");
        assert_eq!(error(&json!({ "error": flat, "code": "a" })), &flat);
    }

    #[test]
    fn the_first_known_word_gives_the_status() {
        let check = |code: &str, kind: &str, expected: Option<u16>| {
            assert_eq!(status(&json!({ "code": code, "type": kind })), expected, "{code} {kind}");
        };
        check("server_error", "", Some(500));
        check("image_too_large", "invalid_request_error", Some(400));
        check("weather", "server_error", Some(500));
        check("weather", "rain", None);
        assert_eq!(status(&json!({ "code": 500 })), None);
    }
}
