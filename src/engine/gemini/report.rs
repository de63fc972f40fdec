//! Error reports inside an answer. They have the HTTP status in `code`; some servers in between leave
//! it out and have only the word for it (<https://google.aip.dev/193>).

use serde_json::Value;

/// The HTTP status that the word in `error` stands for.
pub(super) fn status(error: &Value) -> Option<u16> {
    match error["status"].as_str()? {
        "INVALID_ARGUMENT" | "FAILED_PRECONDITION" | "OUT_OF_RANGE" => Some(400),
        "UNAUTHENTICATED" => Some(401),
        "PERMISSION_DENIED" => Some(403),
        "NOT_FOUND" => Some(404),
        "ABORTED" | "ALREADY_EXISTS" => Some(409),
        "RESOURCE_EXHAUSTED" => Some(429),
        "CANCELLED" => Some(499),
        "INTERNAL" | "UNKNOWN" | "DATA_LOSS" => Some(500),
        "UNIMPLEMENTED" => Some(501),
        "UNAVAILABLE" => Some(503),
        "DEADLINE_EXCEEDED" => Some(504),
        _ => None,
    }
}
