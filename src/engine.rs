//! The interface between the session and whatever answers. An engine makes one provider call: it turns a
//! transcript into a stream of events. It runs no tools, and knows nothing of frames, requests or
//! other calls.
//!
//! An engine is stopped by dropping its future, which must release everything that the engine
//! holds: a connection, a timer, a child process.
//!
//! [`Engine`] is the trait that all of them implement, also those of a program that embeds the library.
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
use std::fmt;
use std::future::{Future, pending, ready};
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

/// A list of models as it is being asked for. Dropped to stop it.
pub type Listing<'a> = Pin<Box<dyn Future<Output = Result<Vec<String>, RunError>> + Send + 'a>>;

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

/// What answers in a conversation: makes provider calls, each of them apart from the others. A program
/// that embeds the library can bring one of its own; `examples/embed.rs` shows it.
///
/// A call sends [`EngineEvent`]s, `CallStarted` first. An answer that is whole ends with
/// `CallFinished`, and its future with [`CallEnd::Finished`]; one that fails ends with
/// [`CallEnd::Failed`] at any time. Tools are run by the session: after the calls of an answer come
/// their results, in the transcript of the next call.
///
/// ```
/// use duologue::engine::{CallEnd, CallSpec, Engine, EngineEvent, Running, Sink};
/// use duologue::chat::event::FinishClass;
///
/// /// Gives the same answer to everything.
/// #[derive(Debug)]
/// struct Parrot(String);
///
/// impl Engine for Parrot {
///     fn name(&self) -> &str {
///         "parrot"
///     }
///
///     fn model(&self) -> &str {
///         "grey"
///     }
///
///     fn start(&self, _spec: CallSpec, sink: Sink) -> Running {
///         let answer = self.0.clone();
///         Box::pin(async move {
///             sink.send(EngineEvent::CallStarted).await;
///             sink.send(EngineEvent::Text(answer)).await;
///             let (stop_reason, class) = ("stop".to_owned(), FinishClass::Completed);
///             sink.send(EngineEvent::CallFinished { stop_reason, class, provider_data: None }).await;
///             CallEnd::Finished
///         })
///     }
/// }
/// ```
pub trait Engine: fmt::Debug + Send + Sync + 'static {
    /// The engine's name, by which requests choose it and `hello` names it.
    fn name(&self) -> &str;

    /// The model that answers unless a request names another; empty if one is required and the
    /// settings name none.
    fn model(&self) -> &str;

    /// The provider's host, with its port if that is not the scheme's default; for an engine without
    /// a provider, its name. Empty if the address can't be parsed. Holds no login and no key.
    fn provider(&self) -> String {
        self.name().to_owned()
    }

    /// Why no call can ever be made with these settings, if that is so: a key, a model or an address
    /// is missing or wrong. Nothing is asked for that.
    fn fault(&self) -> Option<RunError> {
        None
    }

    /// Begins to answer the last turn of the transcript; what happens goes to `sink`. Nothing is
    /// done before the future is polled, and everything stops when it is dropped: on a cancel it is.
    fn start(&self, spec: CallSpec, sink: Sink) -> Running;

    /// The models that the provider lists, in its order; of `settings`, the headers count. Fails if
    /// the provider can't be asked, or has no list.
    fn models<'a>(&'a self, _settings: &'a CallSettings) -> Listing<'a> {
        Box::pin(ready(Ok(vec![self.model().to_owned()])))
    }
}

/// The engine that it points to.
impl<E: Engine + ?Sized> Engine for Arc<E> {
    fn name(&self) -> &str {
        (**self).name()
    }

    fn model(&self) -> &str {
        (**self).model()
    }

    fn provider(&self) -> String {
        (**self).provider()
    }

    fn fault(&self) -> Option<RunError> {
        (**self).fault()
    }

    fn start(&self, spec: CallSpec, sink: Sink) -> Running {
        (**self).start(spec, sink)
    }

    fn models<'a>(&'a self, settings: &'a CallSettings) -> Listing<'a> {
        (**self).models(settings)
    }
}
