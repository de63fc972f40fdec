//! MCP messages over the standard input and output of a process: one JSON object per line. The SDK's
//! own transport drops a line over its limit, and the call that waits for it is never answered.

use crate::tool::connection::{Closed, Closing};
use crate::tool::incoming::{self, Answer, Message};
use crate::tool::scan::IdScanner;
use rmcp::model::JsonRpcMessage;
use rmcp::service::{RoleClient, TxJsonRpcMessage};
use rmcp::transport::Transport;
use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::{Mutex, watch};

/// Longest message, in bytes, as over HTTP.
pub(super) const MESSAGE_BYTES_MAX: usize = 16 * 1024 * 1024;

/// A line that is still not at its end after this many bytes ends the connection.
const SKIPPED_BYTES_MAX: usize = 256 * 1024 * 1024;

/// A connection to a process.
#[derive(Debug)]
pub(super) struct LineTransport<R, W> {
    lines: Lines<R>,
    /// The other messages of the last batch.
    batch: VecDeque<Message>,
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
    /// At the end of the output, without a line feed.
    Last(Vec<u8>),
    /// With the ids of the calls whose answers it has.
    TooLong(Vec<i64>),
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
        let (batch, writer) = (VecDeque::new(), Writer::new(output));
        Self { lines, batch, writer, closed, is_initialized: false }
    }

    /// The side that is written.
    pub(super) fn writer(&self) -> Writer<W> {
        self.writer.clone()
    }

    async fn next(&mut self) -> Option<Message> {
        loop {
            if let Some(message) = self.batch.pop_front() {
                self.is_initialized |= matches!(message, JsonRpcMessage::Response(_));
                return Some(message);
            }
            match self.lines.next().await {
                // The server has ended in the middle of it: it has not answered.
                Line::Last(line) if incoming::is_cut(&line) => {}
                Line::Whole(line) | Line::Last(line) => self.batch = self.messages(&line).into(),
                Line::TooLong(ids) => {
                    tracing::warn!("a message longer than {MESSAGE_BYTES_MAX} bytes was ignored");
                    let what = format!("the answer is longer than {MESSAGE_BYTES_MAX} bytes");
                    self.batch.extend(incoming::failed(ids, &what));
                }
                Line::End(why) => {
                    self.closed.send_replace(Some(why));
                    return None;
                }
            }
        }
    }

    fn messages(&self, line: &[u8]) -> Vec<Message> {
        let answer = if self.is_initialized { Answer::Any } else { Answer::Handshake };
        incoming::read(line, answer)
    }
}

impl<R: AsyncRead + Unpin> Lines<R> {
    /// The next line. Cancel-safe: bytes that were read stay in the buffer.
    async fn next(&mut self) -> Line {
        loop {
            let available = match self.input.fill_buf().await {
                Ok(available) => available,
                Err(error) => {
                    return Line::End(Closing::Fault(format!("its output can't be read: {error}")));
                }
            };
            let is_end_of_input = available.is_empty();
            // The last line may have no line feed.
            if is_end_of_input && self.skipped.is_none() && self.line.is_empty() {
                return Line::End(Closing::Remote);
            }
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
            match self.ended(end.is_some() || is_end_of_input) {
                Some(Line::Whole(line)) if is_end_of_input => return Line::Last(line),
                Some(line) => return line,
                None => {}
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
            Some(_) => {
                let skipped = self.skipped.take()?;
                Some(Line::TooLong(skipped.scanner.answered()))
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

    async fn receive(&mut self) -> Option<Message> {
        self.next().await
    }

    async fn close(&mut self) -> io::Result<()> {
        self.writer.close().await;
        Ok(())
    }
}

#[cfg(test)]
mod tests;
