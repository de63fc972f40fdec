//! Refusals of clients: each has its reason, what the client can do, and when it may try again.

use crate::protocol::constants::{SESSION_NOT_FOUND, code};
use crate::protocol::proto::rpc::ErrorFrame;
use crate::store::{AWAY, EXISTS, HELD_BY};
use crate::support::terminal::escape_control;
use std::time::Duration;

/// Log line for a store that can't do what is wanted of it.
pub(super) const STORE_UNUSABLE: &str = "the store can't be used at the moment";

/// Why a client is not served, or not any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Refusal {
    pub(super) kind: RefusalKind,
    /// For people: what happened, and what to do.
    pub(super) message: String,
    /// The address of the node that holds the conversation, if that is known.
    pub(super) holder: Option<String>,
    /// Time after which the call may be made again, if a limit is reached.
    pub(super) retry_after: Option<Duration>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RefusalKind {
    /// The request makes no sense as it is.
    Invalid,
    /// There is no such conversation.
    NotFound,
    /// There is a conversation of this id already.
    Exists,
    /// Another process holds the conversation.
    Locked,
    /// A limit is reached.
    Exhausted,
    /// A request is larger than requests may be.
    TooLarge,
    /// The call may be made again at once, also at another node.
    Unavailable,
    /// The conversation has just left memory; it comes back when it is asked for again.
    Ending,
    /// The node has no store for what was asked for: a setting, and no fault.
    NoStore,
    /// The store can't be used.
    Failed,
    /// A defect of this program.
    Internal,
}

impl Refusal {
    pub(super) fn new(kind: RefusalKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), holder: None, retry_after: None }
    }

    /// Refuses a call that reaches a limit; after `retry_after` it may be made again.
    pub(super) fn exhausted(message: impl Into<String>, retry_after: Duration) -> Self {
        Self { retry_after: Some(retry_after), ..Self::new(RefusalKind::Exhausted, message) }
    }

    pub(super) fn unavailable(message: impl Into<String>) -> Self {
        Self::new(RefusalKind::Unavailable, message)
    }

    /// The refusal of a call that a defect of the program has ended.
    pub(super) fn defect() -> Self {
        let why = "this met a defect of the program; please report it";
        Self::new(RefusalKind::Internal, why)
    }

    /// The refusal for the clients of a conversation that a defect of the program has ended.
    pub(super) fn conversation_defect() -> Self {
        let why = "the conversation met a defect of this program and was ended; attach again, and please report it";
        Self::new(RefusalKind::Internal, why)
    }

    /// Whether another attempt may succeed: the node that holds the conversation and refuses so has just let go of it,
    /// or is gone.
    pub(super) fn may_pass(&self) -> bool {
        matches!(self.kind, RefusalKind::Locked | RefusalKind::Unavailable)
    }

    pub(super) fn unserved() -> Self {
        Self::unavailable("the tenant of the conversation is not served here any more")
    }

    pub(super) fn not_found() -> Self {
        // Words of both protocols: OPENING_CREATE of gRPC is opening=create over HTTP.
        let why =
            "there is no such conversation; attach with the opening create or either to begin it";
        Self::new(RefusalKind::NotFound, why)
    }

    pub(super) fn exists() -> Self {
        let why = "there is a conversation of this id already; attach to it, or choose another id";
        Self::new(RefusalKind::Exists, why)
    }

    /// Why the store can't do what a client wants. The address of a server is for the log alone.
    pub(super) fn of_store(why: impl Into<String>) -> Self {
        let why = why.into();
        tracing::warn!("{STORE_UNUSABLE}: {}", escape_control(&why));
        if !AWAY.iter().any(|it| why.contains(it)) {
            return Self::new(RefusalKind::Failed, why);
        }
        // The server may be about to start again, as after an upgrade.
        Self::unavailable("the store can't be reached; try again a little later")
    }

    /// Why a conversation could not be opened, for its clients.
    pub(super) fn of_opening(error: &ErrorFrame) -> Self {
        let message = || error.message.clone();
        let refusal = match error.code.as_str() {
            code::SESSION_LOCKED => Self::new(RefusalKind::Locked, message()),
            code::INTERNAL => Self::new(RefusalKind::Internal, message()),
            _ if error.detail == SESSION_NOT_FOUND => Self::not_found(),
            _ if error.message.contains(EXISTS) => Self::exists(),
            code::STORE_FAILED => Self::of_store(message()),
            _ => Self::new(RefusalKind::Failed, message()),
        };
        let holder = error.detail.strip_prefix(HELD_BY).map(str::to_owned);
        Self { holder, ..refusal }
    }
}
