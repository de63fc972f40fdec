//! Permissions: what the person can answer to a question about a tool call, and what the answer means. Pure.

use super::jsonrpc::RpcError;
use super::schema::PermissionOption;
use crate::protocol::command::Decision;
use serde_json::Value;

const ALLOW_ONCE: &str = "allow_once";
const ALLOW_ALWAYS: &str = "allow_always";
const REJECT_ONCE: &str = "reject_once";
const REJECT_ALWAYS: &str = "reject_always";

/// The answers to choose from, about a tool call.
pub(super) fn options() -> Vec<PermissionOption> {
    vec![
        option(ALLOW_ONCE, "Allow"),
        option(ALLOW_ALWAYS, "Always allow this tool in this session"),
        option(REJECT_ONCE, "Reject"),
        option(REJECT_ALWAYS, "Always reject this tool in this session"),
    ]
}

/// Those about a compaction.
pub(super) fn options_of_compaction() -> Vec<PermissionOption> {
    vec![option(ALLOW_ONCE, "Summarize"), option(REJECT_ONCE, "Not now")]
}

/// Ids and kinds are the same words.
fn option(kind: &'static str, name: &'static str) -> PermissionOption {
    PermissionOption { option_id: kind, name, kind }
}

/// What the person, or the client, has answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    Decided(Decision),
    /// This call and every later one of the tool is denied.
    RejectAlways,
    /// The turn is cancelled.
    Cancelled,
}

/// What the response to a question means: what is not clearly an approval is none.
pub(super) fn answer(response: Result<Value, RpcError>) -> Answer {
    let deny = |reason: &str| Answer::Decided(Decision::Deny { reason: reason.to_owned() });
    let outcome = match response {
        Ok(response) => response.get("outcome").cloned().unwrap_or_default(),
        Err(error) => return deny(&format!("the editor could not ask about it: {error}")),
    };
    let text = |name: &str| outcome.get(name).and_then(Value::as_str).unwrap_or_default();
    match (text("outcome"), text("optionId")) {
        ("cancelled", _) => Answer::Cancelled,
        ("selected", ALLOW_ONCE) => Answer::Decided(Decision::AllowOnce),
        ("selected", ALLOW_ALWAYS) => Answer::Decided(Decision::AllowSession),
        ("selected", REJECT_ONCE) => deny(""),
        ("selected", REJECT_ALWAYS) => Answer::RejectAlways,
        _ => deny("the editor has not answered the question about it"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_an_approval_is_one() {
        let selected =
            |id: &str| Ok(json!({ "outcome": { "outcome": "selected", "optionId": id } }));
        assert_eq!(answer(selected(ALLOW_ONCE)), Answer::Decided(Decision::AllowOnce));
        assert_eq!(answer(selected(ALLOW_ALWAYS)), Answer::Decided(Decision::AllowSession));
        assert_eq!(answer(selected(REJECT_ALWAYS)), Answer::RejectAlways);
        let cancelled = json!({ "outcome": { "outcome": "cancelled" } });
        assert_eq!(answer(Ok(cancelled)), Answer::Cancelled);
        let is_denied =
            |response| matches!(answer(response), Answer::Decided(Decision::Deny { .. }));
        assert!(is_denied(selected(REJECT_ONCE)));
        assert!(is_denied(selected("made up")));
        assert!(is_denied(Ok(
            json!({ "outcome": { "outcome": "made up", "optionId": ALLOW_ONCE } })
        )));
        assert!(is_denied(Ok(json!({ "outcome": ALLOW_ONCE }))));
        assert!(is_denied(Ok(Value::Null)));
        assert!(is_denied(Err(RpcError::method_not_found("session/request_permission"))));
    }
}
