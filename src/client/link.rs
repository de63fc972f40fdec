//! What sends to the [`driver`](super::driver), and what is known of the conversation.

use super::builder::{Builder, OnBusy};
use super::driver::{Driver, Order};
use super::error::Error;
use super::event::{Entity, Event, Snapshot};
use super::process::{Process, Tail};
use super::request::{Ended, Events, Flight, Waiting};
use super::tools::{Tool, failed};
use crate::protocol::any::Any;
use crate::protocol::constants::code;
use crate::protocol::json;
use crate::protocol::proto::frontendtools::{
    FrontendToolManifestCommand, FrontendToolResultCommand,
};
use crate::protocol::proto::rpc::rpc_request_line::Request as Body;
use crate::protocol::proto::rpc::{
    CancelRequest, EnableRequest, ErrorFrame, RpcRequestLine, ShutdownRequest,
};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::mpsc::error::TryRecvError;
use tokio::sync::{Notify, mpsc, oneshot, watch};
use tokio::time::timeout;

/// Bytes of the longest request, unless the server says otherwise.
const REQUEST_BYTES_MAX: usize = 10 * 1024 * 1024;

/// Before the id of a call in the id of the request with its result.
pub(super) const RESULT_OF: &str = "rs-tool:";

/// What is known of the conversation.
#[derive(Clone, Debug, Default)]
pub(super) struct Shared {
    pub(super) session: String,
    pub(super) capabilities: Vec<String>,
    pub(super) initial: Option<Snapshot>,
    pub(super) ordinal: u64,
    /// Bytes of each text of the active run that were shown.
    pub(super) shown: HashMap<String, u64>,
    /// Whether the session has tools of an earlier program.
    pub(super) has_earlier_tools: bool,
    /// The error because of which the process ends.
    pub(super) fatal: Option<ErrorFrame>,
    pub(super) failure: Option<Error>,
}

impl Shared {
    /// The part of an entity's text that was not shown.
    pub(super) fn unseen(&self, entity: &Entity) -> String {
        let Some(Any::ChatMessageEntity(message)) = &entity.payload else { return String::new() };
        let shown = self.shown.get(&entity.id).copied().unwrap_or_default();
        let start = usize::try_from(shown).unwrap_or(usize::MAX);
        message.text.get(start..).unwrap_or_default().to_owned()
    }

    /// Notes an event for a client that goes on in another process, and its text if a stream shows it.
    pub(super) fn note(&mut self, ordinal: u64, payload: Option<&Any>, is_shown: bool) {
        self.ordinal = self.ordinal.max(ordinal);
        let (id, offset, text) = if let Some(Any::ChatTextPatch(it)) = payload {
            (&it.message_id, it.offset, &it.text)
        } else if let Some(Any::ChatReasoningPatch(it)) = payload {
            (&it.message_id, it.offset, &it.text)
        } else {
            if let Some(Any::StoreDegraded(it)) = payload
                && let Some(last) = it.first_missing_ordinal.checked_sub(1)
            {
                // The ordinals from there on are given out again.
                self.ordinal = last;
            }
            return;
        };
        if !is_shown {
            return;
        }
        let end = offset + text.len() as u64;
        match self.shown.get_mut(id) {
            Some(shown) => *shown = end,
            None => drop(self.shown.insert(id.clone(), end)),
        }
    }

    pub(super) fn capability(&self, name: &str) -> Option<&str> {
        self.capabilities.iter().find_map(|it| it.strip_prefix(name)?.strip_prefix('='))
    }

    /// Bytes of the longest request that the server takes.
    pub(super) fn request_bytes_max(&self) -> usize {
        self.capability("max-request-bytes")
            .and_then(|it| it.parse().ok())
            .unwrap_or(REQUEST_BYTES_MAX)
    }
}

/// What a [`super::Duologue`] sends with.
#[derive(Debug)]
pub(super) struct Link {
    orders: mpsc::UnboundedSender<Order>,
    lines: mpsc::Sender<Vec<u8>>,
    numbers: AtomicU64,
    shared: Arc<Mutex<Shared>>,
    stderr: Tail,
    pub(super) process: Option<u32>,
    over: watch::Receiver<bool>,
    flow: Arc<Notify>,
    is_queueing: bool,
    cancel_time: Duration,
}

/// A request that was sent.
#[derive(Debug)]
pub(super) struct Sent {
    pub(super) id: String,
    /// `None` if its events are not wanted.
    events: Option<mpsc::UnboundedReceiver<(Event, usize)>>,
    waiting: Waiting,
    ended: oneshot::Receiver<Result<Ended, Error>>,
    shared: Arc<Mutex<Shared>>,
}

impl Sent {
    /// The next event; `None` after the last, or if they are not wanted. Cancel-safe.
    pub(super) async fn event(&mut self) -> Option<Event> {
        let events = self.events.as_mut()?;
        let (event, bytes) = match events.try_recv() {
            Ok(event) => event,
            Err(TryRecvError::Disconnected) => return None,
            Err(TryRecvError::Empty) => {
                let _awaited = self.waiting.awaited();
                events.recv().await?
            }
        };
        self.waiting.took(bytes);
        Some(event)
    }

    /// The end of the request. Cancel-safe.
    pub(super) async fn ended(&mut self) -> Result<Ended, Error> {
        // A driver that was ending no longer took the request, and has noted why it ended.
        let failure = || lock(&self.shared).failure.clone().unwrap_or(Error::Closed);
        (&mut self.ended).await.unwrap_or_else(|_| Err(failure()))
    }
}

impl Link {
    /// What is known of the conversation.
    pub(super) fn shared(&self) -> MutexGuard<'_, Shared> {
        lock(&self.shared)
    }

    pub(super) fn failure(&self) -> Option<Error> {
        self.shared().failure.clone()
    }

    pub(super) fn stderr(&self) -> String {
        self.stderr.text()
    }

    pub(super) fn order(&self, order: Order) {
        // A driver that has ended has nothing left to do.
        drop(self.orders.send(order));
    }

    /// This run is about to be stopped, or the active one: the next prompt waits for its end, unless it is queued
    /// anyway.
    pub(super) fn stop(&self, run: Option<&str>) {
        if !self.is_queueing {
            self.order(Order::Stop(run.map(str::to_owned)));
        }
    }

    /// Waits until the process has ended.
    pub(super) async fn ended(&self) {
        let mut over = self.over.clone();
        drop(over.wait_for(|is_over| *is_over).await);
    }

    /// Sends a request, and waits for its `done`.
    pub(super) async fn request(&self, body: Body) -> Result<Ended, Error> {
        self.send(body, false).await?.ended().await
    }

    /// Sends a request. Cancel-safe: a dropped future has sent the whole request or none of it.
    pub(super) async fn send(&self, body: Body, is_streamed: bool) -> Result<Sent, Error> {
        let id = format!("rs-{}", self.numbers.fetch_add(1, Ordering::Relaxed));
        let (sender, receiver) = mpsc::unbounded_channel();
        let waiting = Waiting::new(Arc::clone(&self.flow));
        let events = is_streamed.then(|| Events { sender, waiting: waiting.clone() });
        let (ended, end) = oneshot::channel();
        let flight = Flight::new(id.clone(), &body, events, ended);
        if flight.is_run() && !self.is_queueing {
            self.settle().await;
        }
        let line = line(&id, body)?;
        let bytes_max = self.shared().request_bytes_max();
        if line.len() > bytes_max {
            let text =
                format!("the request has {} bytes, and the server takes {bytes_max}", line.len());
            return Err(Error::TooLong(text));
        }
        let permit = self.lines.reserve().await;
        if let Some(failure) = self.failure() {
            return Err(failure);
        }
        self.order(Order::Begin(Box::new(flight)));
        // Without a permit nobody reads any more, and the driver reports the end.
        permit.map(|permit| permit.send(line)).ok();
        let events = is_streamed.then_some(receiver);
        Ok(Sent { id, events, waiting, ended: end, shared: Arc::clone(&self.shared) })
    }

    /// Waits for the end of runs that nobody waits for any more: a prompt before that would be refused.
    async fn settle(&self) {
        let (settled, is_settled) = oneshot::channel();
        self.order(Order::Settle(settled));
        timeout(self.cancel_time, is_settled).await.ok();
    }
}

pub(super) fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The line of a request.
pub(super) fn line(id: &str, body: Body) -> Result<Vec<u8>, Error> {
    let request =
        RpcRequestLine { request_id: id.to_owned(), request: Some(body), ..Default::default() };
    let mut line = Vec::new();
    json::write_line(&request, &mut line)
        .map_err(|error| Error::Protocol(format!("the request can't be written: {error}")))?;
    Ok(line)
}

/// The last requests of a client that closes: stop everything, and end.
pub(super) fn goodbye() -> Vec<Vec<u8>> {
    let all = [
        Body::Cancel(CancelRequest { waiting: true, ..CancelRequest::default() }),
        Body::Cancel(CancelRequest::default()),
        Body::Shutdown(ShutdownRequest {}),
    ];
    all.into_iter().filter_map(|body| line("rs-end", body).ok()).collect()
}

/// The line with the result of a tool. The model has to know of one that is too long, and the run would wait.
pub(super) fn result_line(result: FrontendToolResultCommand, bytes_max: usize) -> Option<Vec<u8>> {
    let id = format!("{RESULT_OF}{}", result.tool_call_id);
    let of = |result| line(&id, Body::ToolResult(result)).ok();
    let whole = of(result.clone()).filter(|line| line.len() <= bytes_max);
    whole.or_else(|| {
        of(failed(result, format!("the result is longer than the {bytes_max} bytes of a request")))
    })
}

impl Builder {
    /// Starts the process, and waits until it has answered; once `closed` is ready, the process is ended.
    pub(super) async fn connect(
        &self,
        closed: impl Future<Output = ()>,
    ) -> Result<Arc<Link>, Error> {
        let (process, lines) = Process::start(self)?;
        let (orders, to_do) = mpsc::unbounded_channel();
        let (over, is_over) = watch::channel(false);
        let (begun, has_begun) = oneshot::channel();
        let (shared, flow) = (Arc::default(), Arc::new(Notify::new()));
        let link = Link {
            orders,
            lines: lines.clone(),
            numbers: AtomicU64::new(1),
            shared: Arc::clone(&shared),
            stderr: process.stderr.clone(),
            process: process.id(),
            over: is_over,
            flow: Arc::clone(&flow),
            is_queueing: self.on_busy == OnBusy::Queue,
            cancel_time: self.cancel_time,
        };
        let driver = Driver::new(self.clone(), (process, lines), begun, (shared, flow));
        tokio::spawn(driver.run(to_do, over));
        let beginning = async {
            has_begun.await.unwrap_or(Err(Error::Closed))?;
            self.offer_tools(&link).await
        };
        let begun = tokio::select! {
            biased;
            () = closed => Ok(Err(Error::Closed)),
            begun = timeout(self.start_time, beginning) => begun,
        };
        let begun = begun.unwrap_or_else(|_| {
            let seconds = self.start_time.as_secs_f64();
            let text =
                format!("duologue did not begin within {seconds} s: {}", link.stderr().trim());
            Err(Error::Protocol(text))
        });
        match begun {
            Ok(()) => Ok(Arc::new(link)),
            Err(error) => {
                link.order(Order::Close);
                // It may hold the lease of the session.
                link.ended().await;
                let is_ended = matches!(error, Error::ProcessEnded { .. });
                // What it was that ended it says more.
                let fatal = link.shared().fatal.clone().filter(|_| is_ended);
                Err(fatal.map_or(error, Error::from))
            }
        }
    }

    /// Waits for the first answer: until then a wrong command line, or a store that can't be opened, is not noticed.
    async fn offer_tools(&self, link: &Link) -> Result<(), Error> {
        if self.tools.is_empty() {
            match link.request(Body::Enable(EnableRequest::default())).await {
                Ok(_) => {}
                // It has answered, and knows none of them.
                Err(error) if error.code() == code::UNKNOWN_EXTENSION => {}
                Err(error) => return Err(error),
            }
            // Those of an earlier program: nobody would run them.
            let has_earlier_tools = link.shared().has_earlier_tools;
            if !has_earlier_tools {
                return Ok(());
            }
        }
        let tools = self.tools.iter().map(Tool::descriptor).collect();
        let declared = FrontendToolManifestCommand { tools, revision: 0 };
        link.request(Body::DeclareTools(declared)).await.map(drop)
    }
}
