//! Error reports inside an answer.

use serde_json::Value;

/// The error in an event that reports one: in its `error`, or else the event itself.
pub(super) fn error(event: &Value) -> &Value {
    event.get("error").filter(|error| !error.is_null()).unwrap_or(event)
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
}
