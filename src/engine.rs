//! The interface between the session and whatever answers. An engine makes one provider call: it turns a
//! transcript into a stream of events. It runs no tools, and knows nothing of frames, requests or
//! other calls.
//!
//! An engine is stopped by dropping its future, which must release everything that the engine
//! holds: a connection, a timer, a child process.
//!
//! [`spec`] is what a call is given, [`table`] the engines that requests can choose, [`prices`] what
//! tokens cost. [`echo`] is the built-in engine, which can play a script of tool calls; the others are
//! clients of a provider's API, each in a folder of its own, and share `provider`.

pub mod anthropic;
#[cfg(test)]
pub(crate) mod dialects;
pub mod echo;
pub mod gemini;
pub mod ollama;
pub mod openai;
pub mod prices;
pub(crate) mod provider;
pub mod responses;
// The rules of providers for requests, which the tests of the program have as well.
#[cfg(test)]
#[path = "../tests/rules/mod.rs"]
mod rules;
pub mod spec;
pub mod table;
mod unusable;

pub(crate) use provider::address::{is_same as is_same_address, shown as shown_address};
pub use provider::key::KeySource;
pub use provider::roots::TlsRoots;
pub(crate) use provider::settings::{CONNECT_TIMEOUT, IDLE_TIMEOUT, RETRIES, TOTAL_TIMEOUT};
pub use spec::{CallSettings, CallSpec, ResponseSchema, StructuredMode};
pub use table::{EngineFacts, EngineRef, Engines};
pub use unusable::Unusable;

use crate::chat::event::{FinishClass, ProviderData, ToolCall, Usage};
use crate::protocol::id::{TaskId, ToolCallId};
use crate::protocol::words::class;
use provider::failure::{NO_LIST, is_unknown_address, status_of};
use provider::retry::is_passing;
use std::future::{Future, pending};
use std::pin::Pin;
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

/// Something that happened while an engine answers.
#[derive(Clone, Debug, PartialEq)]
pub enum EngineEvent {
    /// A call to the provider begins. Everything up to its `CallFinished` belongs to it.
    CallStarted,
    /// The head of a successful response has come.
    ResponseStarted,
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
        /// The id of the call.
        id: ToolCallId,
        /// The next piece of JSON text.
        text: String,
    },
    /// The arguments of the call are whole.
    ToolCallRequested {
        /// The id of the call.
        id: ToolCallId,
    },
    /// The provider reported its token counts.
    Usage(Usage),
    /// The request failed and will be sent again.
    RetryScheduled(Retry),
    /// The request is sent again, as the last `RetryScheduled` said.
    RetryStarted(Retry),
    /// The call to the provider ended without being stopped.
    CallFinished {
        /// The reason, in the provider's words.
        stop_reason: String,
        /// The class of the reason.
        class: FinishClass,
        /// What the provider has to be sent back with this answer on the next call.
        provider_data: Option<ProviderData>,
    },
}

/// A request that is sent again. Holds no secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Retry {
    /// Number of the attempt that follows, from 2.
    pub attempt: u32,
    /// How many attempts there are at most.
    pub attempts_max: u32,
    /// Milliseconds between the failure and the next attempt.
    pub wait_ms: u64,
    /// Why the last attempt failed.
    pub class: ErrorClass,
    /// The same, for people.
    pub reason: String,
}

/// How a provider call ended by itself. One that is cancelled has no such end: its engine is
/// dropped.
#[derive(Clone, Debug, PartialEq)]
pub enum CallEnd {
    /// The model has answered, or called tools.
    Finished,
    /// It failed.
    Failed(RunError),
}

/// Why a provider call, and with it its run, failed. Holds no secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunError {
    /// What was being done.
    pub stage: Stage,
    /// The kind of error, for programs.
    pub class: ErrorClass,
    /// What happened, what it means and what to do, for people.
    pub message: String,
    /// Details, for a bug report; may be empty.
    pub detail: String,
}

/// What an engine was doing when it failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Initializing: nothing has been sent to a provider.
    Init,
    /// Asking: the provider has refused the request, and answered nothing.
    Refused,
    /// Answering.
    Run,
}

/// Kinds of errors, by what a client may do about them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorClass {
    /// The key is missing or refused.
    Auth,
    /// The provider limits the rate of requests, or the account has no credit left.
    RateLimited,
    /// The conversation is too long for the model.
    ContextOverflow,
    /// A time limit ran out.
    Timeout,
    /// The provider could not be reached, or the connection broke.
    Network,
    /// The provider reports a failure, or refuses the request.
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

/// A provider call as it goes on; resolves to its end. Dropped to stop it.
pub type Running = Pin<Box<dyn Future<Output = CallEnd> + Send>>;

/// Takes the events of an engine. Bounded in events and in bytes: an engine that is faster than the
/// reader waits here.
#[derive(Clone, Debug)]
pub struct Sink {
    call: TaskId,
    events: mpsc::Sender<TaggedEvent>,
    room: Arc<Semaphore>,
}

/// An event on its way to the session. Dropping it makes room for others.
#[derive(Debug)]
pub struct TaggedEvent {
    /// The provider call it belongs to.
    pub call: TaskId,
    /// What happened.
    pub event: EngineEvent,
    _room: Option<OwnedSemaphorePermit>,
}

impl Sink {
    /// Bytes of large events that may be on their way at a time.
    pub const BYTES_AHEAD_MAX: usize = 1024 * 1024;

    /// Bytes up to which an event is small: the number of those is limited, not their size.
    const SMALL_BYTES_MAX: usize = 1024;

    /// A sink whose events carry `call`.
    pub fn new(call: TaskId, events: mpsc::Sender<TaggedEvent>) -> Self {
        Self { call, events, room: Arc::new(Semaphore::new(Self::BYTES_AHEAD_MAX)) }
    }

    /// Sends one event; waits while there is no room.
    pub async fn send(&self, event: EngineEvent) {
        let room = match event.text_bytes() {
            0..=Self::SMALL_BYTES_MAX => None,
            bytes => Some(self.room(bytes.min(Self::BYTES_AHEAD_MAX)).await),
        };
        if self.events.send(TaggedEvent { call: self.call, event, _room: room }).await.is_err() {
            // Nobody listens any more: all that can follow is that this future is dropped.
            pending::<()>().await;
        }
    }

    async fn room(&self, bytes: usize) -> OwnedSemaphorePermit {
        // No more permits are requested than there are, and the semaphore is never closed.
        let permits = u32::try_from(bytes).unwrap_or(u32::MAX);
        match Arc::clone(&self.room).acquire_many_owned(permits).await {
            Ok(room) => room,
            Err(_) => pending().await,
        }
    }
}

impl EngineEvent {
    /// Bytes of text in the event.
    pub(crate) fn text_bytes(&self) -> usize {
        match self {
            Self::Reasoning { text, .. } | Self::Text(text) | Self::ToolArguments { text, .. } => {
                text.len()
            }
            Self::CallStarted
            | Self::ResponseStarted
            | Self::ToolCallStarted(_)
            | Self::ToolCallRequested { .. }
            | Self::Usage(_)
            | Self::RetryScheduled(_)
            | Self::RetryStarted(_)
            | Self::CallFinished { .. } => 0,
        }
    }
}

impl RunError {
    /// Of a request for the list of models: the provider has answered, and has no list.
    pub(crate) fn is_no_list(&self) -> bool {
        self.class == ErrorClass::Provider
            && (self.detail == NO_LIST || status_of(&self.detail).is_some_and(is_unknown_address))
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

    /// Whether the same request may succeed later. `detail` is that of the error, whose beginning
    /// has the status with which a provider failed.
    pub fn may_pass(self, detail: &str) -> bool {
        match self {
            Self::RateLimited | Self::Timeout | Self::Network => true,
            Self::Provider => status_of(detail).is_some_and(is_passing),
            Self::Auth
            | Self::ContextOverflow
            | Self::MalformedStream
            | Self::Tool
            | Self::Config
            | Self::Aborted
            | Self::Internal => false,
        }
    }
}

/// What answers in a conversation.
#[derive(Debug)]
pub enum Engine {
    /// The built-in engine, which needs no provider.
    Echo(echo::Echo),
    /// Any provider with OpenAI's chat completions.
    OpenAi(openai::OpenAi),
    /// Any provider with OpenAI's Responses.
    Responses(responses::Responses),
    /// Any provider with Anthropic's Messages.
    Anthropic(anthropic::Anthropic),
    /// Any provider with Google's `generateContent`.
    Gemini(gemini::Gemini),
    /// Ollama, by its own interface.
    Ollama(ollama::Ollama),
    /// None, because the settings can't be used.
    Unusable(Unusable),
}

impl Engine {
    /// Begins to answer the last turn of the transcript; what happens goes to `sink`. Nothing is
    /// done before the future is polled, and everything stops when it is dropped.
    pub fn start(&self, spec: CallSpec, sink: Sink) -> Running {
        match self {
            Self::Echo(echo) => Box::pin(echo.clone().answer(spec, sink)),
            Self::OpenAi(openai) => Box::pin(openai.remote.clone().answer(spec, sink)),
            Self::Responses(responses) => Box::pin(responses.remote.clone().answer(spec, sink)),
            Self::Anthropic(anthropic) => Box::pin(anthropic.remote.clone().answer(spec, sink)),
            Self::Gemini(gemini) => Box::pin(gemini.remote.clone().answer(spec, sink)),
            Self::Ollama(ollama) => Box::pin(ollama.remote.clone().answer(spec, sink)),
            Self::Unusable(unusable) => Box::pin(unusable.clone().answer()),
        }
    }

    /// The engine's name, as in `--engine` and in `hello`.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Echo(_) => "echo",
            Self::OpenAi(_) => openai::NAME,
            Self::Responses(_) => responses::NAME,
            Self::Anthropic(_) => anthropic::NAME,
            Self::Gemini(_) => gemini::NAME,
            Self::Ollama(_) => ollama::NAME,
            Self::Unusable(_) => "none",
        }
    }

    /// The provider's host, with its port if that is not the scheme's default; for the built-in
    /// engine, its name. Empty if the address can't be parsed. Holds no login and no key.
    pub fn provider(&self) -> String {
        match self {
            Self::Echo(_) => self.name().to_owned(),
            Self::OpenAi(openai) => openai.remote.host(),
            Self::Responses(responses) => responses.remote.host(),
            Self::Anthropic(anthropic) => anthropic.remote.host(),
            Self::Gemini(gemini) => gemini.remote.host(),
            Self::Ollama(ollama) => ollama.remote.host(),
            Self::Unusable(_) => String::new(),
        }
    }

    /// Why no call can ever be made with these settings, if that is so: a key, a model or an address
    /// is missing or wrong. Nothing is asked for that.
    pub fn fault(&self) -> Option<RunError> {
        match self {
            Self::Echo(_) => None,
            Self::OpenAi(openai) => openai.remote.fault(),
            Self::Responses(responses) => responses.remote.fault(),
            Self::Anthropic(anthropic) => anthropic.remote.fault(),
            Self::Gemini(gemini) => gemini.remote.fault(),
            Self::Ollama(ollama) => ollama.remote.fault(),
            Self::Unusable(unusable) => Some(unusable.error()),
        }
    }

    /// The models that the provider lists, in its order; of `settings`, the headers count.
    ///
    /// # Errors
    /// If it can't be asked, or has no list.
    pub async fn models(&self, settings: &CallSettings) -> Result<Vec<String>, RunError> {
        match self {
            Self::Echo(_) => Ok(vec![self.model().to_owned()]),
            Self::OpenAi(openai) => openai.remote.models(settings).await,
            Self::Responses(responses) => responses.remote.models(settings).await,
            Self::Anthropic(anthropic) => anthropic.remote.models(settings).await,
            Self::Gemini(gemini) => gemini.remote.models(settings).await,
            Self::Ollama(ollama) => ollama.remote.models(settings).await,
            Self::Unusable(unusable) => Err(unusable.error()),
        }
    }

    /// The model that answers; empty if one is required and the settings name none.
    pub fn model(&self) -> &str {
        match self {
            Self::Echo(_) => "echo",
            Self::OpenAi(openai) => openai.remote.model(),
            Self::Responses(responses) => responses.remote.model(),
            Self::Anthropic(anthropic) => anthropic.remote.model(),
            Self::Gemini(gemini) => gemini.remote.model(),
            Self::Ollama(ollama) => ollama.remote.model(),
            Self::Unusable(_) => "",
        }
    }
}
