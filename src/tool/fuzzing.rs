//! What fuzz targets check of the messages of MCP servers.

use super::line_transport::LineTransport;
use super::listing::{Listed, Listing};
use super::{contents, result};
use crate::conversation::event::ToolResult;
use crate::support::cuts::cuts;
use crate::task::server::{ServerPrompt, ServerResource, ServerTool};
use futures_util::FutureExt;
use rmcp::transport::Transport;
use serde_json::Value;
use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, ReadBuf};
use tokio::sync::watch;

/// Most bytes of a result that the model is given.
const RESULT_BYTES_MAX: usize = 1_000;

/// Longest note about what a result leaves out, in bytes.
const NOTE_BYTES_MAX: usize = 200;

/// Checks that the messages in the output of a server do not depend on how the bytes arrive, and that each
/// can be read as whatever was asked for.
pub(crate) fn messages(output: &[u8]) {
    let [whole, others @ ..] = cuts(output).map(|pieces| received(&pieces));
    for other in others {
        assert_eq!(other, whole);
    }
    for line in output.split(|byte| *byte == b'\n') {
        if let Ok(mut message) = serde_json::from_slice::<Value>(line)
            && let Some(result) = message.get_mut("result")
        {
            reply(&result.take());
        }
    }
}

fn reply(reply: &Value) {
    match result::render(reply, RESULT_BYTES_MAX) {
        ToolResult::Success(text)
        | ToolResult::Error(text)
        | ToolResult::WithImages { text, .. } => {
            assert!(text.len() <= RESULT_BYTES_MAX + NOTE_BYTES_MAX, "{} bytes", text.len());
        }
    }
    list::<ServerTool>(reply, |tool| assert_eq!(tool.input_schema["type"], "object"));
    list::<ServerResource>(reply, |resource| assert!(!resource.uri.is_empty()));
    list::<ServerPrompt>(reply, |prompt| assert!(!prompt.name.is_empty()));
    if let Ok(attachments) = contents::of_resource(reply, "file:///it") {
        assert!(!attachments.is_empty());
    }
    // What is no prompt is an error in words.
    assert!(contents::of_prompt(reply).err().is_none_or(|why| !why.is_empty()));
}

fn list<T: Listed>(page: &Value, check: impl Fn(&T)) {
    let mut listing = Listing::<T>::default();
    if listing.add(page.clone()).is_ok() {
        let (items, _) = listing.finish();
        let mut keys: Vec<_> = items.iter().map(T::key).collect();
        keys.sort_unstable();
        keys.dedup();
        assert_eq!(keys.len(), items.len(), "two items of one name");
        items.iter().for_each(check);
    }
}

fn received(pieces: &[&[u8]]) -> Vec<String> {
    let input = Pieces(pieces.iter().copied().collect());
    let mut transport = LineTransport::new(input, tokio::io::sink(), watch::Sender::new(None));
    let mut messages = Vec::new();
    // Its input never waits.
    while let Some(Some(message)) = transport.receive().now_or_never() {
        messages.push(format!("{message:?}"));
    }
    messages
}

/// A pipe from which each read takes one piece.
struct Pieces<'a>(VecDeque<&'a [u8]>);

impl AsyncRead for Pieces<'_> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if let Some(piece) = self.0.pop_front() {
            let (now, later) = piece.split_at(piece.len().min(buffer.remaining()));
            buffer.put_slice(now);
            if !later.is_empty() {
                self.0.push_front(later);
            }
        }
        Poll::Ready(Ok(()))
    }
}

/// Receives the messages in the output of a server, for measurements.
#[cfg(test)]
pub(crate) fn receive(output: &[u8]) {
    let input = Pieces([output].into());
    let mut transport = LineTransport::new(input, tokio::io::sink(), watch::Sender::new(None));
    while let Some(Some(message)) = transport.receive().now_or_never() {
        drop(message);
    }
}
