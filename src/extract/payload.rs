//! Results of the extraction as payloads of the extension `duologue.extract.v1`.

use super::{Found, Tally};
use crate::protocol::any::{self, Any, SENT_LEVELS_MAX};
use crate::protocol::proto::chat::CorrelationInfo;
use crate::protocol::proto::extract::{ExtractionFinished, LineRejected, ObjectExtracted};

impl Found {
    /// The payload that reports it, of the run with this root message id; `with_object` for readers
    /// without a JSON parser.
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

/// The payload that reports the end of the answer.
pub(crate) fn finished(
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

/// The value for readers without a JSON parser; `None` if it is nested too deeply.
fn object(json: &str) -> Option<any::Value> {
    if depth(json) > SENT_LEVELS_MAX { None } else { serde_json::from_str(json).ok() }
}

/// The nesting of arrays and objects. The text must be JSON.
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
