//! One process: the host with a front end as `stdio` has it, over pipes that hold little.

use super::client::LINE_BYTES_MAX;
use super::planted::Planted;
use super::scenario::Scenario;
use crate::host::{Effect, Effects, Host};
use crate::output::{Format, Lines};
use crate::protocol::json;
use crate::protocol::wire::{self, Frame};
use crate::session::{ExitCode, Input, Uptime};
use crate::support::fail_point::FailPoint;
use crate::transport::{Codec, Framer, Outbox, RawLine, Unencodable};
use serde_json::Value;
use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;
use tokio::runtime::Runtime;

/// Bytes that may wait for a reader: what the outbox takes before the engine stops, and one answer more.
const WAITING_BYTES_MAX: usize = 2 * 1024 * 1024;

/// The frames as lines.
struct Protocol(Format);

impl Codec for Protocol {
    fn frame(&mut self, now: Uptime, frame: &Frame, out: &mut Vec<u8>) -> Result<(), Unencodable> {
        self.0.frame(now, frame, out).map_err(|_| Unencodable)
    }

    fn end(&mut self, now: Uptime, code: ExitCode, out: &mut Vec<u8>) -> Result<(), Unencodable> {
        self.0.end(now, code, out).map_err(|_| Unencodable)
    }

    fn is_stateless(&self) -> bool {
        true
    }

    fn text(&mut self, piece: &str, out: &mut Vec<u8>) {
        json::write_escaped(piece, out);
    }
}

/// What a turn of the front end's loop has brought.
pub(super) enum Turn {
    /// Effects, and the request line that they answer, if it is one.
    Effects(Effects, Option<String>),
    /// There is nothing to do.
    Idle,
}

pub(super) struct Process {
    pub(super) host: Host,
    outbox: Outbox<Protocol>,
    framer: Framer,
    /// Bytes that the client has written and the program has not read.
    unread: VecDeque<u8>,
    lines: VecDeque<RawLine>,
    is_input_closed: bool,
    has_input_ended: bool,
    /// Request lines that the client has written.
    pub(super) written: Vec<String>,
    /// The batch that the writer has, and the pipe to the client.
    batch: VecDeque<u8>,
    pipe: VecDeque<u8>,
    pipe_bytes: usize,
    pub(super) exit: Option<ExitCode>,
    /// The process ends without writing what waits.
    pub(super) is_aborted: bool,
    planted: Option<Planted>,
}

impl Process {
    pub(super) fn new(host: Host, greeting: Vec<Frame>, scenario: &Scenario) -> Self {
        let codec = Protocol(Format::Protocol(Lines::default()));
        let mut process = Self {
            host,
            outbox: Outbox::new(codec, FailPoint::default()),
            framer: Framer::new(LINE_BYTES_MAX),
            unread: VecDeque::new(),
            lines: VecDeque::new(),
            is_input_closed: false,
            has_input_ended: false,
            written: Vec::new(),
            batch: VecDeque::new(),
            pipe: VecDeque::new(),
            pipe_bytes: scenario.pipe_bytes,
            exit: None,
            is_aborted: false,
            planted: scenario.planted,
        };
        greeting.into_iter().for_each(|frame| process.outbox.push(Uptime::default(), frame));
        process
    }

    /// The client writes a request line.
    pub(super) fn write(&mut self, line: &str) {
        if self.is_input_closed {
            return;
        }
        self.unread.extend(line.as_bytes());
        let is_request =
            line.len() <= LINE_BYTES_MAX && serde_json::from_str::<Value>(line).is_ok();
        self.written.extend(is_request.then(|| line.to_owned()));
    }

    pub(super) fn close_input(&mut self) {
        self.is_input_closed = true;
    }

    /// The program reads up to so many bytes of what the client has written.
    pub(super) fn take_in(&mut self, most: usize) {
        let most = most.min(self.unread.len());
        let mut chunk: Vec<u8> = self.unread.drain(..most).collect();
        let ends_within = chunk.last().is_some_and(|last| *last != b'\n');
        if self.planted == Some(Planted::LosesSplitLines) && ends_within {
            chunk.truncate(chunk.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1));
        }
        let mut lines = Vec::new();
        self.framer.push(&chunk, &mut lines);
        self.lines.extend(lines);
    }

    /// The client reads up to so many bytes.
    pub(super) fn take_out(&mut self, most: usize) -> Vec<u8> {
        let most = most.min(self.pipe.len());
        let taken = self.pipe.drain(..most).collect();
        self.flush();
        taken
    }

    /// Writes what the pipe has room for.
    fn flush(&mut self) {
        loop {
            if self.batch.is_empty() {
                if self.outbox.is_empty() {
                    return;
                }
                self.batch = self.outbox.take(Vec::new()).into();
            }
            let room = (self.pipe_bytes - self.pipe.len()).min(self.batch.len());
            self.pipe.extend(self.batch.drain(..room));
            if !self.batch.is_empty() {
                if self.planted == Some(Planted::LosesBytes) {
                    self.batch.pop_front();
                }
                return;
            }
        }
    }

    /// Everything was written, and read.
    pub(super) fn is_flushed(&self) -> bool {
        self.outbox.is_empty() && self.batch.is_empty() && self.pipe.is_empty()
    }

    /// Queues a frame for the client.
    pub(super) fn push(&mut self, at: Uptime, frame: Frame) {
        self.outbox.push(at, frame);
    }

    /// One turn of the loop: a request line has priority over the engine.
    pub(super) fn turn(&mut self, runtime: &Runtime) -> Result<Turn, String> {
        self.flush();
        if self.exit.is_some() {
            return Ok(Turn::Idle);
        }
        if self.host.wants_input() && self.outbox.has_room_for_answers() {
            if let Some(line) = self.lines.pop_front() {
                let (effects, line) = self.line(line);
                return Ok(Turn::Effects(effects, Some(line)));
            }
            if self.is_input_closed && self.unread.is_empty() && !self.has_input_ended {
                self.has_input_ended = true;
                if let Some(last) = self.framer.finish() {
                    self.lines.push_back(last);
                    self.has_input_ended = false;
                } else if self.planted != Some(Planted::MissesTheEndOfInput) {
                    return Ok(Turn::Effects(self.host.handle(Input::InputEnded), None));
                }
            }
        }
        let has_room = self.outbox.has_room_for_engine();
        let next = runtime.block_on(polled(self.host.next(has_room)));
        if self.outbox.waiting_bytes() > WAITING_BYTES_MAX {
            return Err("more waits for the reader than may wait".to_owned());
        }
        Ok(next.map_or(Turn::Idle, |effects| Turn::Effects(effects, None)))
    }

    fn line(&mut self, line: RawLine) -> (Effects, String) {
        match line {
            RawLine::Whole(line) => {
                let effects = self.host.line(&line);
                (effects, String::from_utf8_lossy(&line).into_owned())
            }
            RawLine::TooLong { start, end, bytes_max } => {
                let bad = wire::too_long(&start, &end, bytes_max);
                let effects = self.host.handle(Input::BadLine(bad));
                (effects, String::from_utf8_lossy(&start).into_owned())
            }
        }
    }

    /// Performs an effect that is no frame.
    pub(super) fn perform(&mut self, at: Uptime, effect: &Effect) {
        match effect {
            Effect::Exit(code) => {
                self.outbox.end(at, *code);
                self.exit = Some(*code);
            }
            Effect::Abort(code) => {
                self.exit = Some(*code);
                self.is_aborted = true;
            }
            Effect::Frame(_) | Effect::Usage(_) | Effect::ToolImages(_) | Effect::Warning(_) => {}
        }
    }
}

/// What a future gives at once, if it does. It is dropped then, so it must lose nothing by that.
pub(super) async fn polled<F: Future>(future: F) -> Option<F::Output> {
    let mut future = pin!(future);
    poll_fn(|context| {
        Poll::Ready(match future.as_mut().poll(context) {
            Poll::Ready(output) => Some(output),
            Poll::Pending => None,
        })
    })
    .await
}
