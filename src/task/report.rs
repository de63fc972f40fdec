//! The events of a provider call, and its end.

use crate::conversation::event::{FinishClass, ProviderData, ToolCall, Usage};
use crate::protocol::constants::class;
use crate::protocol::id::ToolCallId;
use crate::support::named::named_enum;

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
    /// So many tokens are the most that the model can be sent, as the provider says. Asked for where the
    /// conversation is too long and [`CallSpec::asks_for_context`] is set.
    ///
    /// [`CallSpec::asks_for_context`]: crate::task::call::CallSpec::asks_for_context
    ContextTokens(u64),
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
        /// Data that the provider must be sent back with this answer on the next call.
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
    /// The class of the failure, for people.
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
    /// The stage of the failure.
    pub stage: Stage,
    /// The kind of error, for programs.
    pub class: ErrorClass,
    /// The message for people: what happened, what it means for them and what to do.
    pub message: String,
    /// Details, for a bug report; may be empty.
    pub detail: String,
}

impl RunError {
    /// Before anything was sent, because of the settings.
    pub(crate) fn of_settings(message: String, detail: String) -> Self {
        Self { stage: Stage::Init, class: ErrorClass::Config, message, detail }
    }

    /// While the model answers.
    pub(crate) fn of_answer(class: ErrorClass, message: String, detail: String) -> Self {
        Self { stage: Stage::Run, class, message, detail }
    }
}

/// The stage in which an engine failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Initializing: nothing has been sent to a provider.
    Init,
    /// Nothing is sent: it would cost more than it may.
    Budget,
    /// Asking: the provider has refused the request, and answered nothing.
    Refused,
    /// Answering.
    Run,
}

named_enum! {
    /// Kinds of errors, by what a client may do about them.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum ErrorClass {
        /// The key is missing or refused.
        Auth = class::AUTH,
        /// The provider limits the rate of requests, or the account has no credit left.
        RateLimited = class::RATE_LIMITED,
        /// The conversation is too long for the model.
        ContextOverflow = class::CONTEXT_OVERFLOW,
        /// A time limit ran out.
        Timeout = class::TIMEOUT,
        /// The provider could not be reached, or the connection broke.
        Network = class::NETWORK,
        /// The provider reports a failure, or refuses the request.
        Provider = class::PROVIDER,
        /// The provider's response can't be decoded, or was cut off.
        MalformedStream = class::MALFORMED_STREAM,
        /// A tool can't be called.
        Tool = class::TOOL,
        /// The settings are wrong.
        Config = class::CONFIG,
        /// Cut off by this process.
        Aborted = class::ABORTED,
        /// A defect of this program.
        Internal = class::INTERNAL,
    }
}

impl EngineEvent {
    /// Bytes of text in the event.
    pub(crate) fn text_bytes(&self) -> usize {
        let (Self::Reasoning { text, .. } | Self::Text(text) | Self::ToolArguments { text, .. }) =
            self
        else {
            return 0;
        };
        text.len()
    }
}

impl ErrorClass {
    /// Whether the same request may succeed later. `detail` is that of the error, whose beginning
    /// has the status with which a provider failed.
    pub fn may_pass(self, detail: &str) -> bool {
        match self {
            Self::Timeout | Self::Network => true,
            Self::RateLimited => !is_out_of_credit(status_of(detail), detail),
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

/// The text before the status of a response in the detail of an error.
pub(crate) const STATUS: &str = "status ";

/// The text there before a number within a response.
pub(crate) const CODE: &str = "code ";

/// The text before the provider's own words in the message of an error.
pub(crate) const QUOTATION: &str = "; the provider says: ";

/// The status with which the detail of an error begins.
pub(crate) fn status_of(detail: &str) -> Option<u16> {
    let number = detail.strip_prefix(STATUS).or_else(|| detail.strip_prefix(CODE))?;
    number.split(':').next().unwrap_or(number).parse().ok()
}

/// True for a status of a temporary error: a time-out, a conflict, an overload, or a failing server.
pub(crate) fn is_passing(status: u16) -> bool {
    match status {
        // The server never does what was asked: "not implemented", "HTTP version not supported".
        501 | 505 => false,
        // Proxies and providers use many that are not registered: 520 to 530, 529 for "overloaded".
        408 | 409 | 429 | 500..=599 => true,
        _ => false,
    }
}

/// "Payment required" (RFC 9110, section 15.5.3).
const PAYMENT_REQUIRED: u16 = 402;

/// Words of providers for an account without credit, in lower case: codes of OpenAI and those who have its
/// interface, of Moonshot and MiniMax, and the messages of Anthropic, of MiniMax, Zhipu and DeepSeek, which
/// have codes that stand for other errors too, of xAI (three), and of OpenRouter for the limit of a key.
const OUT_OF_CREDIT: [&str; 11] = [
    "insufficient_quota",
    "billing_hard_limit_reached",
    "billing_not_active",
    "exceeded_current_quota",
    "credit balance is too low",
    "insufficient_balance",
    "insufficient balance",
    "used all available credits",
    "have any credits",
    "run out of credits",
    "key limit exceeded",
];

/// Whether an error of this status with these words is about an empty account: it does not pass by
/// waiting.
pub(crate) fn is_out_of_credit(status: Option<u16>, words: &str) -> bool {
    // An error may be as long as an answer, so it is not copied.
    let has = |word: &&str| {
        words.as_bytes().windows(word.len()).any(|part| part.eq_ignore_ascii_case(word.as_bytes()))
    };
    status == Some(PAYMENT_REQUIRED) || OUT_OF_CREDIT.iter().any(has)
}
