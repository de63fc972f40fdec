//! OpenAI's words for errors inside an answer, which have no status. Other servers of its interfaces use them, too.
//! Pure.

use serde_json::Value;

/// The HTTP status that the words in `error` stand for.
pub(in crate::engine) fn status(error: &Value) -> Option<u16> {
    let fields = ["code", "type", "error_code", "error_type"];
    let words = fields.into_iter().filter_map(|name| error[name].as_str());
    words.filter_map(status_of).next()
}

fn status_of(word: &str) -> Option<u16> {
    match word {
        "server_error" => Some(500),
        "server_is_overloaded"
        | "overloaded"
        | "overloaded_error"
        | "slow_down"
        | "service_unavailable" => Some(503),
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
