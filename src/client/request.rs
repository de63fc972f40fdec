//! A request that has been sent, until its `done`.

use super::answer::{Answer, Summary};
use super::error::Error;
use super::event::{Event, Snapshot};
use crate::protocol::any::Any;
use crate::protocol::proto::rpc::edit_request::Edit;
use crate::protocol::proto::rpc::rpc_request_line::Request as Body;
use crate::protocol::proto::rpc::{EditRequest, UiEventFrame};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use tokio::sync::{Notify, mpsc, oneshot};

/// Bytes of events of one stream that wait to be read before the process is held back.
const PAUSE_BYTES: usize = 8 * 1024 * 1024;

/// Bytes after which a stream that is not read fails, where something else waits and so nothing can be held back.
const QUEUE_BYTES_MAX: usize = 256 * 1024 * 1024;

/// A request that has ended well.
#[derive(Debug, Default)]
pub(super) struct Ended {
    pub(super) answer: Answer,
    pub(super) snapshot: Option<Snapshot>,
}

/// Where the events of a request go, and how many bytes of them wait.
#[derive(Debug)]
pub(super) struct Events {
    pub(super) sender: mpsc::UnboundedSender<(Event, usize)>,
    pub(super) waiting: Waiting,
}

/// Bytes of events that wait to be read, counted on both sides of a queue.
#[derive(Clone, Debug)]
pub(super) struct Waiting {
    bytes: Arc<AtomicUsize>,
    /// Somebody awaits an event.
    is_awaited: Arc<AtomicBool>,
    /// Wakes the driver.
    flow: Arc<Notify>,
}

impl Waiting {
    pub(super) fn new(flow: Arc<Notify>) -> Self {
        Self { bytes: Arc::default(), is_awaited: Arc::default(), flow }
    }

    fn put(&self, bytes: usize) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(super) fn took(&self, bytes: usize) {
        let before = self.bytes.fetch_sub(bytes, Ordering::Relaxed);
        if before > PAUSE_BYTES && before - bytes <= PAUSE_BYTES {
            self.flow.notify_one();
        }
    }

    fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// An event is awaited until what this returns is dropped.
    pub(super) fn awaited(&self) -> Awaited<'_> {
        self.is_awaited.store(true, Ordering::Release);
        // The process may be held back, for a stream that is not read.
        self.flow.notify_one();
        Awaited(&self.is_awaited)
    }
}

/// See [`Waiting::awaited`].
#[derive(Debug)]
pub(super) struct Awaited<'a>(&'a AtomicBool);

impl Drop for Awaited<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

/// A request in flight.
#[derive(Debug)]
pub(super) struct Flight {
    pub(super) id: String,
    kind: Kind,
    /// `None` if nobody reads its events.
    events: Option<Events>,
    summary: Summary,
    /// It has had an event.
    pub(super) has_begun: bool,
    pub(super) snapshot: Option<Snapshot>,
    /// The first error is the cause of those that follow.
    error: Option<Error>,
    ended: oneshot::Sender<Result<Ended, Error>>,
}

impl Flight {
    pub(super) fn new(
        id: String,
        body: &Body,
        events: Option<Events>,
        ended: oneshot::Sender<Result<Ended, Error>>,
    ) -> Self {
        let (summary, has_begun, snapshot, error) = Default::default();
        Self { id, kind: kind_of(body), events, summary, has_begun, snapshot, error, ended }
    }

    pub(super) fn is_run(&self) -> bool {
        matches!(self.kind, Kind::Prompt | Kind::Change)
    }

    /// Whether its events are notices: they make no answer, and are in no stream.
    pub(super) fn has_notices(&self) -> bool {
        matches!(self.kind, Kind::Change | Kind::Other) && !self.is_streamed()
    }

    /// Takes an event, and the frame that it came in.
    pub(super) fn event(&mut self, event: UiEventFrame, line: &str) {
        self.has_begun = true;
        self.note(event.payload.as_ref());
        if let Some(Events { sender, waiting }) = &self.events {
            let bytes = line.len();
            waiting.put(bytes);
            // Whoever drops the receiver has the run stopped.
            drop(sender.send((Event::new(event, line), bytes)));
            if waiting.bytes() > QUEUE_BYTES_MAX {
                let text = format!("more than {QUEUE_BYTES_MAX} bytes of events wait to be read");
                self.fail(Error::TooLong(text));
                self.events = None;
            }
        }
    }

    /// Notes what an event says for the answer.
    pub(super) fn note(&mut self, payload: Option<&Any>) {
        if let Some(payload) = payload {
            self.summary.apply(payload);
        }
    }

    /// Whether its events wait for a reader who is behind.
    pub(super) fn is_behind(&self) -> bool {
        self.events.as_ref().is_some_and(|it| it.waiting.bytes() > PAUSE_BYTES)
    }

    /// Whether somebody waits for its next event.
    pub(super) fn is_starved(&self) -> bool {
        let is_starved =
            |waiting: &Waiting| waiting.is_awaited.load(Ordering::Acquire) && waiting.bytes() == 0;
        self.events.as_ref().is_some_and(|it| is_starved(&it.waiting))
    }

    /// Whether its events are read one by one.
    pub(super) fn is_streamed(&self) -> bool {
        self.events.is_some()
    }

    pub(super) fn has_failed(&self) -> bool {
        self.error.is_some()
    }

    /// Nobody reads its events any more.
    pub(super) fn drop_events(&mut self) {
        self.events = None;
    }

    pub(super) fn fail(&mut self, error: Error) {
        self.error.get_or_insert(error);
    }

    /// The request has its `done`.
    pub(super) fn done(self, status: String) {
        let Self { events, summary, snapshot, error, ended, .. } = self;
        drop(events);
        let answer = summary.finish(status);
        let result = match error {
            Some(Error::Answer { error, .. }) => Err(Error::Answer { error, text: answer.text }),
            Some(error) => Err(error),
            None => Ok(Ended { answer, snapshot }),
        };
        // Whoever asked may be gone.
        drop(ended.send(result));
    }

    /// The request gets no `done` any more.
    pub(super) fn end(mut self, error: Error) {
        self.fail(error);
        self.done(String::new());
    }
}

/// What a request begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// A run whose events make an answer.
    Prompt,
    /// A part of the run that the prompt joins.
    Joining,
    /// A run without an answer, as a compaction.
    Change,
    Other,
}

fn kind_of(body: &Body) -> Kind {
    match body {
        Body::Submit(submit) if submit.target_request_id.is_empty() => Kind::Prompt,
        Body::Submit(_) => Kind::Joining,
        Body::Edit(EditRequest { edit: Some(Edit::Regenerate(_) | Edit::Replace(_)) }) => {
            Kind::Prompt
        }
        Body::Edit(_) | Body::Compact(_) => Kind::Change,
        Body::Cancel(_)
        | Body::Snapshot(_)
        | Body::Shutdown(_)
        | Body::Enable(_)
        | Body::DeclareTools(_)
        | Body::ToolResult(_)
        | Body::Approve(_)
        | Body::SwitchModel(_) => Kind::Other,
    }
}
