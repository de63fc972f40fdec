//! MCP messages over the standard input and output of a process: one JSON object per line. The SDK's
//! own transport drops a line over its limit, and the call that waits for it is never answered.

use crate::protocol::json;
use crate::tool::connection::{Closed, Closing};
use crate::tool::scan::IdScanner;
use rmcp::model::{CustomResult, ErrorData, JsonRpcMessage, RequestId, ServerResult};
use rmcp::service::{RoleClient, RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use serde_json::Value;
use std::io;
use std::sync::Arc;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::{Mutex, watch};

/// Longest message, in bytes, as over HTTP.
pub(super) const MESSAGE_BYTES_MAX: usize = 16 * 1024 * 1024;

/// A line that is still not at its end after this many bytes ends the connection.
const SKIPPED_BYTES_MAX: usize = 256 * 1024 * 1024;

/// Error code for an answer that can't be read: the first of JSON-RPC's "server error".
const UNREADABLE: i32 = -32000;

/// A connection to a process.
#[derive(Debug)]
pub(super) struct LineTransport<R, W> {
    lines: Lines<R>,
    writer: Writer<W>,
    closed: Closed,
    /// The handshake has been answered.
    is_initialized: bool,
}

/// The side that is written, shared with the task that closes it.
#[derive(Debug)]
pub(super) struct Writer<W> {
    pipe: Arc<Mutex<Option<W>>>,
    closing: watch::Sender<bool>,
}

/// Lines of limited length.
#[derive(Debug)]
struct Lines<R> {
    input: BufReader<R>,
    /// The beginning of the next line.
    line: Vec<u8>,
    /// The line is too long and is being skipped.
    skipped: Option<Skipped>,
}

#[derive(Debug, Default)]
struct Skipped {
    bytes: usize,
    scanner: IdScanner,
}

enum Line {
    Whole(Vec<u8>),
    TooLong(Option<i64>),
    End(Closing),
}

impl<W: AsyncWrite + Unpin> Writer<W> {
    fn new(pipe: W) -> Self {
        Self { pipe: Arc::new(Mutex::new(Some(pipe))), closing: watch::Sender::new(false) }
    }

    /// Closes the pipe, also while a write to it is blocked.
    pub(super) async fn close(&self) {
        self.closing.send_replace(true);
        drop(self.pipe.lock().await.take());
    }

    async fn write(self, message: Vec<u8>) -> io::Result<()> {
        let mut closing = self.closing.subscribe();
        tokio::select! {
            biased;
            _ = closing.wait_for(|closing| *closing) => Err(io::ErrorKind::NotConnected.into()),
            written = self.write_whole(&message) => written,
        }
    }

    async fn write_whole(&self, message: &[u8]) -> io::Result<()> {
        let mut pipe = self.pipe.lock().await;
        let pipe = pipe.as_mut().ok_or(io::ErrorKind::NotConnected)?;
        pipe.write_all(message).await?;
        pipe.flush().await
    }
}

impl<W> Clone for Writer<W> {
    fn clone(&self) -> Self {
        Self { pipe: Arc::clone(&self.pipe), closing: self.closing.clone() }
    }
}

impl<R: AsyncRead + Unpin, W: AsyncWrite + Unpin> LineTransport<R, W> {
    /// Reads from `input` and writes to `output`. `closed` is set when nothing more comes.
    pub(super) fn new(input: R, output: W, closed: Closed) -> Self {
        let lines = Lines { input: BufReader::new(input), line: Vec::new(), skipped: None };
        Self { lines, writer: Writer::new(output), closed, is_initialized: false }
    }

    /// The side that is written.
    pub(super) fn writer(&self) -> Writer<W> {
        self.writer.clone()
    }

    async fn next(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        loop {
            let message = match self.lines.next().await {
                Line::Whole(line) => self.message(&line),
                Line::TooLong(id) => {
                    tracing::warn!("a message longer than {MESSAGE_BYTES_MAX} bytes was ignored");
                    let what = format!("the answer is longer than {MESSAGE_BYTES_MAX} bytes");
                    id.map(|id| failed(id, what))
                }
                Line::End(why) => {
                    self.closed.send_replace(Some(why));
                    return None;
                }
            };
            if message.is_some() {
                return message;
            }
        }
    }

    /// The message in `line`; `None` if it is none, or none for us.
    fn message(&mut self, line: &[u8]) -> Option<RxJsonRpcMessage<RoleClient>> {
        if line.trim_ascii().is_empty() {
            return None;
        }
        if json::fits(line).is_err() {
            return unread(line);
        }
        let Ok(mut value) = serde_json::from_slice::<Value>(line) else { return unread(line) };
        if value.get("method").is_none()
            && self.is_initialized
            && let Some(answer) = answer(&mut value)
        {
            return Some(answer);
        }
        let message = serde_json::from_value::<RxJsonRpcMessage<RoleClient>>(value);
        match message {
            Ok(message) => {
                self.is_initialized |= matches!(message, JsonRpcMessage::Response(_));
                Some(message)
            }
            Err(_) => unread(line),
        }
    }
}

/// The answer in `value`, with its result as it is. The SDK would look for the first of its types
/// that it fits; what fits none, as a list with one odd schema, would be lost.
fn answer(value: &mut Value) -> Option<RxJsonRpcMessage<RoleClient>> {
    let id = value.get("id").cloned()?;
    let id = serde_json::from_value::<RequestId>(id).ok()?;
    let result = value.get_mut("result")?.take();
    Some(JsonRpcMessage::response(ServerResult::CustomResult(CustomResult::new(result)), id))
}

/// Handles a line that is no message: an error for the call whose reply it is, if it is one.
/// Programs that print to their standard output are common, also JSON, so other lines are only logged.
pub(super) fn unread(line: &[u8]) -> Option<RxJsonRpcMessage<RoleClient>> {
    let mut scanner = IdScanner::default();
    if memchr::memmem::find(line, b"\"jsonrpc\"").is_some() {
        scanner.feed(line);
    }
    tracing::debug!(bytes = line.len(), "a line that is no MCP message was ignored");
    let what = "the answer is no valid MCP message, is nested too deep, or holds too many values"
        .to_owned();
    scanner.id().map(|id| failed(id, what))
}

fn failed(id: i64, what: String) -> RxJsonRpcMessage<RoleClient> {
    let error = ErrorData::new(rmcp::model::ErrorCode(UNREADABLE), what, None);
    JsonRpcMessage::error(error, Some(RequestId::Number(id)))
}

impl<R: AsyncRead + Unpin> Lines<R> {
    /// The next line. Cancel-safe: bytes that were read stay in the buffer.
    async fn next(&mut self) -> Line {
        loop {
            let available = match self.input.fill_buf().await {
                Ok([]) => return Line::End(Closing::Remote),
                Ok(available) => available,
                Err(error) => {
                    return Line::End(Closing::Fault(format!("its output can't be read: {error}")));
                }
            };
            let end = memchr::memchr(b'\n', available);
            let piece = &available[..end.unwrap_or(available.len())];
            let used = end.map_or(available.len(), |end| end + 1);
            if self.skipped.is_none() && self.line.len() + piece.len() > MESSAGE_BYTES_MAX {
                let mut skipped = Skipped::default();
                skipped.take(&std::mem::take(&mut self.line));
                self.skipped = Some(skipped);
            }
            match &mut self.skipped {
                Some(skipped) => skipped.take(piece),
                None => self.line.extend_from_slice(piece),
            }
            self.input.consume(used);
            if let Some(line) = self.ended(end.is_some()) {
                return line;
            }
        }
    }

    /// The line, if it is at its end or will not come to one.
    fn ended(&mut self, is_at_end: bool) -> Option<Line> {
        match &self.skipped {
            Some(skipped) if skipped.bytes > SKIPPED_BYTES_MAX => {
                let why = format!("it wrote a line of more than {SKIPPED_BYTES_MAX} bytes");
                Some(Line::End(Closing::Fault(why)))
            }
            Some(_) | None if !is_at_end => None,
            Some(skipped) => {
                let line = Line::TooLong(skipped.scanner.id());
                self.skipped = None;
                Some(line)
            }
            None => Some(Line::Whole(std::mem::take(&mut self.line))),
        }
    }
}

impl Skipped {
    fn take(&mut self, piece: &[u8]) {
        self.bytes += piece.len();
        self.scanner.feed(piece);
    }
}

impl<R, W> Transport<RoleClient> for LineTransport<R, W>
where
    R: AsyncRead + Unpin + Send,
    W: AsyncWrite + Unpin + Send + 'static,
{
    type Error = io::Error;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let writer = self.writer.clone();
        async move {
            let mut message = serde_json::to_vec(&item)?;
            message.push(b'\n');
            writer.write(message).await
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        self.next().await
    }

    async fn close(&mut self) -> io::Result<()> {
        self.writer.close().await;
        Ok(())
    }
}

#[cfg(test)]
mod tests;
