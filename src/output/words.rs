//! What a run does at the moment, in a few words for people, whatever front end shows them. Pure.

use crate::protocol::any::{Kind, Value};
use crate::protocol::proto::session::WaitingFor;
use crate::protocol::proto::tools::ToolCallProgressed;

/// What a run waits for, in a few words.
pub(crate) fn waiting_text(what: WaitingFor) -> &'static str {
    match what {
        WaitingFor::Unspecified => "waiting for the model",
        WaitingFor::ProviderConnecting => "waiting for the provider to respond",
        WaitingFor::ProviderSilent => "the provider is silent",
        WaitingFor::Tool => "waiting for a tool",
        WaitingFor::Approval => "waiting for a decision about a tool call",
        WaitingFor::Retry => "waiting to ask the provider again",
        WaitingFor::Store => "waiting for the store",
        WaitingFor::ClientTool => "waiting for a tool of the client",
        WaitingFor::ToolServers => "waiting for tool servers to start",
    }
}

/// How far a tool call is, in a few words: `3 of 10, reading b.txt`. The server's words are as they came.
pub(crate) fn how_far(progressed: &ToolCallProgressed) -> String {
    let number = |value: &Option<Value>| match value.as_ref()?.kind {
        // As much as a person wants to see.
        Some(Kind::Number(number)) => Some((number * 100.0).round() / 100.0),
        _ => None,
    };
    let done = number(&progressed.progress).map(|done| done.to_string());
    let of = number(&progressed.total).map(|total| format!(" of {total}")).unwrap_or_default();
    let counted = done.map(|done| format!("{done}{of}"));
    let message = Some(progressed.message.trim().to_owned()).filter(|message| !message.is_empty());
    counted.into_iter().chain(message).collect::<Vec<_>>().join(", ")
}
