//! Error reports inside an answer, which have a word for the error and no status
//! (<https://platform.claude.com/docs/en/api/errors>).

use serde_json::Value;

/// The HTTP status that the word in `error` stands for.
pub(super) fn status(error: &Value) -> Option<u16> {
    match error["type"].as_str()? {
        "invalid_request_error" => Some(400),
        "authentication_error" => Some(401),
        "billing_error" => Some(402),
        "permission_error" => Some(403),
        "not_found_error" => Some(404),
        "request_too_large" => Some(413),
        "rate_limit_error" => Some(429),
        "api_error" => Some(500),
        "timeout_error" => Some(504),
        "overloaded_error" => Some(529),
        _ => None,
    }
}
