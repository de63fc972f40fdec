//! The interface between the session and whatever answers. An engine makes one provider call: it turns a
//! transcript into a stream of events. It runs no tools, and knows nothing of frames, requests or
//! other calls.
//!
//! An engine is stopped by dropping its future, which must release everything that the engine
//! holds: a connection, a timer, a child process.
//!
//! [`Engine`] is the trait that all of them implement, also those of a program that embeds the library.
//!
//! | module | what it is |
//! |---|---|
//! | [`echo`] | the built-in engine, which can play a script of tool calls |
//! | [`openai`], [`responses`], [`anthropic`], [`gemini`], [`ollama`] | the clients of providers' APIs, one for each |
//! | `provider` | the common part of these clients |
//! | [`table`], `unusable` | the engines that requests can choose; the stand-in for one whose settings can't be used |

pub mod anthropic;
#[cfg(test)]
pub(crate) mod dialects;
pub mod echo;
pub mod gemini;
pub mod ollama;
pub mod openai;
pub(crate) mod provider;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod replay;
pub mod responses;
// The rules of providers for requests, which the tests of the program have as well.
#[cfg(test)]
#[path = "../tests/rules/mod.rs"]
mod rules;
pub mod table;
mod unusable;

pub(crate) use provider::address::{is_same as is_same_address, shown as shown_address};
pub use provider::key::KeySource;
pub use provider::roots::TlsRoots;
pub use provider::settings::SettingNames;
pub(crate) use provider::settings::{CONNECT_TIMEOUT, IDLE_TIMEOUT, RETRIES, TOTAL_TIMEOUT};
pub use table::Engines;
pub use unusable::Unusable;

#[doc(inline)]
pub use crate::task::call::{CallSpec, EngineFacts, EngineRef, Purpose, ResponseSchema};
#[doc(inline)]
pub use crate::task::report::{CallEnd, EngineEvent, ErrorClass, Retry, RunError, Stage};
#[doc(inline)]
pub use crate::task::settings::{CallSettings, StructuredMode};

use crate::protocol::id::TaskId;
use std::fmt;
use std::future::{Future, pending, ready};
use std::pin::Pin;
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

/// A running provider call; resolves to its end. Dropping it cancels the call.
pub type Running = Pin<Box<dyn Future<Output = CallEnd> + Send>>;

/// A running query for a list of models. Dropping it cancels the query.
pub type Listing<'a> =
    Pin<Box<dyn Future<Output = Result<Vec<ListedModel>, RunError>> + Send + 'a>>;

/// A model in a provider's list.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct ListedModel {
    /// The name, as requests have it.
    pub name: String,
    /// Tokens of the most that it can be sent, if the list says that.
    pub context_tokens: Option<u64>,
}

/// Whether requests for `model` reach the model that a list calls `listed`: the name may have Gemini's collection
/// before it, and leave out Ollama's tag `latest`.
pub(crate) fn is_same_model(listed: &str, model: &str) -> bool {
    let model = model.strip_prefix("models/").unwrap_or(model);
    listed == model || listed.strip_suffix(":latest") == Some(model)
}

/// Takes the events of an engine. Bounded in events and in bytes: an engine that is faster than the
/// reader waits here.
#[derive(Clone, Debug)]
pub struct Sink {
    call: TaskId,
    events: mpsc::Sender<TaggedEvent>,
    room: Arc<Semaphore>,
}

/// A queued event. Dropping it frees its place in the sink.
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

    /// Sends one event if there is room for it now; gives it back if there is not.
    pub(crate) fn try_send(&self, event: EngineEvent) -> Result<(), EngineEvent> {
        if event.text_bytes() > Self::SMALL_BYTES_MAX {
            return Err(event);
        }
        let tagged = TaggedEvent { call: self.call, event, _room: None };
        self.events.try_send(tagged).map_err(|unsent| unsent.into_inner().event)
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

/// Makes the provider calls of a conversation, each independent of the others. A program
/// that embeds the library can bring one of its own; `examples/embed.rs` shows it.
///
/// A call sends [`EngineEvent`]s, `CallStarted` first. An answer that is whole ends with
/// `CallFinished`, and its future with [`CallEnd::Finished`]; one that fails ends with
/// [`CallEnd::Failed`] at any time. Tools are run by the session: after the calls of an answer come
/// their results, in the transcript of the next call.
///
/// ```
/// use duologue::engine::{CallEnd, CallSpec, Engine, EngineEvent, Running, Sink};
/// use duologue::conversation::event::FinishClass;
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

    /// Begins to answer the last turn of the transcript; the events go to `sink`. Nothing is
    /// done before the future is polled, and everything stops when it is dropped: on a cancel it is.
    fn start(&self, spec: CallSpec, sink: Sink) -> Running;

    /// The models that the provider lists, in its order; of `settings`, the headers count. Fails if
    /// the provider can't be asked, or has no list.
    fn models<'a>(&'a self, _settings: &'a CallSettings) -> Listing<'a> {
        let name = self.model().to_owned();
        Box::pin(ready(Ok(vec![ListedModel { name, context_tokens: None }])))
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
