//! The seam between the session and whatever answers. An engine turns a transcript into a stream
//! of events; it knows nothing of frames, requests or other runs.
//!
//! An engine is stopped by dropping its future: whatever it holds (a connection, a timer, a child)
//! must go with it.

pub mod echo;
pub mod openai;
pub(crate) mod provider;

use crate::chat::event::{FinishClass, ToolCall, ToolResult, Usage};
use crate::chat::transcript::Transcript;
use crate::protocol::id::{RunId, ToolCallId};
use crate::protocol::words::class;
use std::future::{Future, pending};
use std::pin::Pin;
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

/// Something that happened while an engine answers.
#[derive(Clone, Debug, PartialEq)]
pub enum EngineEvent {
    /// A call to the provider begins. Everything up to its `CallFinished` belongs to it.
    CallStarted,
    /// The model reasons.
    Reasoning {
        /// The provider's field name.
        source: &'static str,
        /// The next piece.
        text: String,
    },
    /// The model answers.
    Text(String),
    /// The model named a tool.
    ToolCallStarted(ToolCall),
    /// The model writes the arguments of a call it has started.
    ToolArguments {
        /// The call.
        id: ToolCallId,
        /// The next piece of JSON text.
        text: String,
    },
    /// The arguments of the call are whole.
    ToolCallRequested {
        /// The call.
        id: ToolCallId,
    },
    /// The tool begins to run.
    ToolExecutionStarted {
        /// The call.
        id: ToolCallId,
    },
    /// The tool returned.
    ToolReturned {
        /// The call.
        id: ToolCallId,
        /// What.
        result: ToolResult,
    },
    /// The provider told its token counts.
    Usage(Usage),
    /// The call to the provider ended by itself.
    CallFinished {
        /// In the provider's words.
        stop_reason: String,
        /// The same in ours.
        class: FinishClass,
    },
}

/// How a run ended by itself. A run that is stopped has no such end: its engine is dropped.
#[derive(Clone, Debug, PartialEq)]
pub enum RunEnd {
    /// The model has answered.
    Finished,
    /// It could not.
    Failed(RunError),
}

/// Why a run failed. Holds no secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunError {
    /// What was being done.
    pub stage: Stage,
    /// What kind of trouble, for programs.
    pub class: ErrorClass,
    /// What happened, what it means and what to do, for people.
    pub message: String,
    /// More, for a bug report; may be empty.
    pub detail: String,
}

/// What an engine was doing when it failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Getting ready: nothing has been sent to a provider.
    Init,
    /// Answering.
    Run,
}

/// What kind of trouble, as a client may act on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorClass {
    /// The key is missing or refused.
    Auth,
    /// The provider wants us to slow down, or the account has run out.
    RateLimited,
    /// The conversation is too long for the model.
    ContextOverflow,
    /// Nothing came in time.
    Timeout,
    /// The provider could not be reached, or the connection broke.
    Network,
    /// The provider says it failed, or refuses the request.
    Provider,
    /// What the provider sent can't be read, or its answer was cut off.
    MalformedStream,
    /// A tool can't be called.
    Tool,
    /// The settings are wrong.
    Config,
    /// Cut off by this process.
    Aborted,
    /// A defect of this program.
    Internal,
}

/// A run as it goes on; resolves to its end. Dropped to stop it.
pub type Running = Pin<Box<dyn Future<Output = RunEnd> + Send>>;

/// Where an engine puts what happens. Bounded, in events and in bytes: an engine that is faster
/// than the reader waits here.
#[derive(Clone, Debug)]
pub struct Sink {
    run: RunId,
    events: mpsc::Sender<TaggedEvent>,
    room: Arc<Semaphore>,
}

/// An event on its way. Dropped, it makes room for others.
#[derive(Debug)]
pub struct TaggedEvent {
    /// The run it belongs to.
    pub run: RunId,
    /// What happened.
    pub event: EngineEvent,
    _room: Option<OwnedSemaphorePermit>,
}

impl Sink {
    /// Bytes of large events that may be on their way at a time.
    pub const BYTES_AHEAD_MAX: usize = 1024 * 1024;

    /// Bytes up to which an event is small: the number of those is limited, not their size.
    const SMALL_BYTES_MAX: usize = 1024;

    /// A sink whose events carry `run`.
    pub fn new(run: RunId, events: mpsc::Sender<TaggedEvent>) -> Self {
        Self { run, events, room: Arc::new(Semaphore::new(Self::BYTES_AHEAD_MAX)) }
    }

    /// Hands over one event; waits while the reader is behind.
    pub async fn send(&self, event: EngineEvent) {
        let room = match event.text_bytes() {
            0..=Self::SMALL_BYTES_MAX => None,
            bytes => Some(self.room(bytes.min(Self::BYTES_AHEAD_MAX)).await),
        };
        if self.events.send(TaggedEvent { run: self.run, event, _room: room }).await.is_err() {
            // Nobody listens any more: all that can follow is that this future is dropped.
            pending::<()>().await;
        }
    }

    async fn room(&self, bytes: usize) -> OwnedSemaphorePermit {
        // The most that is asked for fits; the semaphore is never closed.
        let permits = u32::try_from(bytes).unwrap_or(u32::MAX);
        match Arc::clone(&self.room).acquire_many_owned(permits).await {
            Ok(room) => room,
            Err(_) => pending().await,
        }
    }
}

impl EngineEvent {
    /// Bytes of text it brings.
    pub fn text_bytes(&self) -> usize {
        match self {
            Self::Reasoning { text, .. } | Self::Text(text) | Self::ToolArguments { text, .. } => {
                text.len()
            }
            Self::ToolReturned { result, .. } => result.text().len(),
            Self::CallStarted
            | Self::ToolCallStarted(_)
            | Self::ToolCallRequested { .. }
            | Self::ToolExecutionStarted { .. }
            | Self::Usage(_)
            | Self::CallFinished { .. } => 0,
        }
    }
}

impl ErrorClass {
    /// The word that begins the `detail` of an error frame.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Auth => class::AUTH,
            Self::RateLimited => class::RATE_LIMITED,
            Self::ContextOverflow => class::CONTEXT_OVERFLOW,
            Self::Timeout => class::TIMEOUT,
            Self::Network => class::NETWORK,
            Self::Provider => class::PROVIDER,
            Self::MalformedStream => class::MALFORMED_STREAM,
            Self::Tool => class::TOOL,
            Self::Config => class::CONFIG,
            Self::Aborted => class::ABORTED,
            Self::Internal => class::INTERNAL,
        }
    }
}

/// Whatever answers.
#[derive(Debug)]
pub enum Engine {
    /// The built-in one, which needs nothing.
    Echo(echo::Echo),
    /// Any provider with OpenAI's chat completions.
    OpenAi(openai::OpenAi),
}

impl Engine {
    /// Begins to answer the last turn of `transcript`; what happens goes to `sink`. Nothing is
    /// done before the future is polled, and everything stops when it is dropped.
    pub fn start(&self, transcript: Transcript, sink: Sink) -> Running {
        match self {
            Self::Echo(echo) => Box::pin(echo.clone().answer(transcript, sink)),
            Self::OpenAi(openai) => Box::pin(openai.clone().answer(transcript, sink)),
        }
    }

    /// The engine's name, as `--engine` takes it and `hello` tells it.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Echo(_) => "echo",
            Self::OpenAi(_) => "openai",
        }
    }

    /// The host that is asked, with its port if that is not the scheme's own; the name of the
    /// built-in engine. Empty if the address can't be read. Holds no login and no key.
    pub fn provider(&self) -> String {
        match self {
            Self::Echo(_) => self.name().to_owned(),
            Self::OpenAi(openai) => openai.host(),
        }
    }

    /// The model that answers; empty if the settings name none where they must.
    pub fn model(&self) -> &str {
        match self {
            Self::Echo(_) => "echo",
            Self::OpenAi(openai) => openai.model(),
        }
    }
}
