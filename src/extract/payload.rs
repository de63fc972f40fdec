//! What was found, as payloads of the extension `duologue.extract.v1`.

use super::{Found, Tally};
use crate::protocol::any::{self, Any};
use crate::protocol::proto::chat::CorrelationInfo;
use crate::protocol::proto::extract::{ExtractionFinished, LineRejected, ObjectExtracted};

/// Arrays and objects in one another that `object` may have; each of them is three messages deep,
/// and readers of protobuf stop at a hundred.
const OBJECT_DEPTH_MAX: usize = 30;

impl Found {
    /// The payload that tells it, of the run with this root message id; for readers that have no
    /// JSON of their own `with_object`.
    pub fn into_payload(
        self,
        message_id: &str,
        correlation: Option<CorrelationInfo>,
        with_object: bool,
    ) -> Any {
        let message_id = message_id.to_owned();
        match self {
            Self::Value { index, line, kind, json } => {
                let object = if with_object { object(&json) } else { None };
                let r#type = kind.unwrap_or_default();
                ObjectExtracted { message_id, index, line, r#type, object, json, correlation }
                    .into()
            }
            Self::Rejected { line, reason } | Self::Invalid { line, reason } => {
                let reason = reason.to_string();
                LineRejected { message_id, line, reason, correlation }.into()
            }
        }
    }
}

/// The payload that tells that the answer is over.
pub fn finished(
    message_id: &str,
    tally: Tally,
    is_cut_off: bool,
    correlation: Option<CorrelationInfo>,
) -> Any {
    ExtractionFinished {
        message_id: message_id.to_owned(),
        objects: tally.values,
        rejected: tally.rejected,
        truncated: is_cut_off,
        correlation,
    }
    .into()
}

/// The value for readers that have no JSON of their own; none if it is too deep for them.
fn object(json: &str) -> Option<any::Value> {
    if depth(json) > OBJECT_DEPTH_MAX { None } else { serde_json::from_str(json).ok() }
}

/// How many arrays and objects stand in one another. The text is JSON.
fn depth(json: &str) -> usize {
    let mut deepest = 0;
    let mut open = 0_usize;
    let mut is_string = false;
    let mut is_escaped = false;
    for byte in json.bytes() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'"' => is_string = !is_string,
            b'\\' => is_escaped = is_string,
            b'[' | b'{' if !is_string => open += 1,
            b']' | b'}' if !is_string => open = open.saturating_sub(1),
            _ => {}
        }
        deepest = deepest.max(open);
    }
    deepest
}
