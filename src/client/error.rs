//! What can go wrong, as types.

use crate::protocol::constants::{class, code};
use crate::protocol::error_text::with_detail;
use crate::protocol::proto::rpc::ErrorFrame;
use crate::task::report::ErrorClass;
use std::process::ExitStatus;
use std::time::Duration;

/// Classes of failures after which the same prompt may succeed.
const PASSING: [ErrorClass; 4] =
    [ErrorClass::Timeout, ErrorClass::Network, ErrorClass::RateLimited, ErrorClass::Provider];

/// What the message of a provider's error has before the wait that the provider asked for, in seconds.
const WAIT: &str = "requests a wait of ";

/// Why a request has no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// There is no program `duologue` where it was looked for; trying again does not help.
    #[error("{0}")]
    NotInstalled(String),
    /// The folder that the process is to have is none.
    #[error("{0}")]
    NoFolder(String),
    /// The program does not speak the protocol, or has stopped doing so.
    #[error("{0}")]
    Protocol(String),
    /// The program is older than this library takes.
    #[error("duologue {version} is too old: this library needs {least} or later")]
    TooOld {
        /// Its version; `(unknown)` if it says none.
        version: String,
        /// The oldest that is taken.
        least: &'static str,
    },
    /// A line is longer than a limit: of the server for a request, of the client for a frame.
    #[error("{0}")]
    TooLong(String),
    /// The client was closed.
    #[error("the conversation was closed")]
    Closed,
    /// The client was used in a way that can't work.
    #[error("{0}")]
    Misuse(&'static str),
    /// The process ended before it had answered; [`super::Duologue::reconnect`] goes on from the store.
    #[error("duologue ended with {}{}", .status.map_or("an unknown status".to_owned(), |it| it.to_string()), tail(.stderr))]
    ProcessEnded {
        /// Its exit status or signal, if it is known.
        status: Option<ExitStatus>,
        /// The end of its standard error.
        stderr: String,
    },
    /// A run is active, and the conversation was started with [`super::OnBusy::Reject`].
    #[error("{0}")]
    Busy(Refused),
    /// The request names another session than the process holds.
    #[error("{0}")]
    SessionMismatch(Refused),
    /// The model could not answer.
    #[error("{0}")]
    Provider(Refused),
    /// The command line, a file, a key or a model is wrong; trying again does not help.
    #[error("{0}")]
    Config(Refused),
    /// A list of tools or a result is not what the server can take, or a run ended because of its tools.
    #[error("{0}")]
    Tool(Refused),
    /// The conversation can't be stored or read, or another process holds it.
    #[error("{0}")]
    Store(Refused),
    /// The model has answered, but not with what was asked for.
    #[error("{error}")]
    Answer {
        /// Why not.
        error: Refused,
        /// What it said.
        text: String,
    },
    /// The run was stopped, so that there is no value: see [`super::Duologue::ask`].
    #[error("the run was stopped before there was a value")]
    Stopped {
        /// What the model had said.
        text: String,
    },
    /// Any other refusal.
    #[error("{0}")]
    Refused(Refused),
}

/// An error of the server. Its text is the message, and in parentheses what the detail says besides.
#[derive(Clone, Debug, Default, PartialEq, Eq, thiserror::Error)]
#[error("{}", with_detail(.message, .detail))]
pub struct Refused {
    /// The error's code, for programs.
    pub code: String,
    /// What happened, and what to do, for people.
    pub message: String,
    /// More for people; of a failed run also the class of its failure.
    pub detail: String,
    /// The process ends because of it.
    pub is_terminal: bool,
}

impl From<ErrorFrame> for Error {
    fn from(frame: ErrorFrame) -> Self {
        let ErrorFrame { code, message, detail, terminal } = frame;
        let refused = Refused { code, message, detail, is_terminal: terminal };
        let is_run = matches!(refused.code.as_str(), code::RUN_FAILED | code::ENGINE_INIT_FAILED);
        match refused.code.as_str() {
            code::SESSION_BUSY => Self::Busy(refused),
            code::SESSION_MISMATCH => Self::SessionMismatch(refused),
            code::STORE_FAILED | code::SESSION_LOCKED | code::SNAPSHOT_FAILED => {
                Self::Store(refused)
            }
            code::INVALID_TOOLS | code::UNKNOWN_TOOL_CALL => Self::Tool(refused),
            code::INVALID_ANSWER => Self::Answer { error: refused, text: String::new() },
            _ if is_run && refused.class() == class::TOOL => Self::Tool(refused),
            _ if is_run && refused.class() == class::CONFIG => Self::Config(refused),
            _ if is_run => Self::Provider(refused),
            // Also the codes of later versions.
            _ => Self::Refused(refused),
        }
    }
}

impl Refused {
    /// The class of a run's failure, as `rate_limited`; empty if there is none.
    pub fn class(&self) -> &str {
        self.detail.split_once(':').map_or("", |(class, _)| class)
    }

    /// Whether the same prompt may succeed later.
    pub fn is_retryable(&self) -> bool {
        let (class, detail) = self.detail.split_once(": ").unwrap_or((self.class(), ""));
        let class = PASSING.into_iter().find(|passing| passing.as_str() == class);
        class.is_some_and(|class| class.may_pass(detail))
    }

    /// The wait that the provider has asked for.
    pub fn retry_after(&self) -> Option<Duration> {
        let (_, rest) = self.message.split_once(WAIT)?;
        let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        rest[..digits].parse().ok().map(Duration::from_secs)
    }
}

impl Error {
    /// The code of the server's error; empty if it is none.
    pub fn code(&self) -> &str {
        self.refused().map_or("", |it| &it.code)
    }

    /// The server's error, if it is one.
    pub fn refused(&self) -> Option<&Refused> {
        match self {
            Self::Busy(it)
            | Self::SessionMismatch(it)
            | Self::Provider(it)
            | Self::Config(it)
            | Self::Tool(it)
            | Self::Store(it)
            | Self::Refused(it)
            | Self::Answer { error: it, .. } => Some(it),
            Self::NotInstalled(_)
            | Self::NoFolder(_)
            | Self::Protocol(_)
            | Self::TooOld { .. }
            | Self::TooLong(_)
            | Self::Closed
            | Self::Misuse(_)
            | Self::Stopped { .. }
            | Self::ProcessEnded { .. } => None,
        }
    }
}

fn tail(stderr: &str) -> String {
    match stderr.trim() {
        "" => String::new(),
        tail => format!("; it wrote to standard error: {tail}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_of_a_provider_has_its_class_and_the_wait_it_asks_for() {
        let frame = ErrorFrame {
            code: "run_failed".to_owned(),
            message: "the provider requests a wait of 17 s before the next call".to_owned(),
            detail: "rate_limited: 429".to_owned(),
            terminal: false,
        };
        let Error::Provider(refused) = Error::from(frame) else { panic!("a provider's error") };
        assert_eq!((refused.class(), refused.is_retryable()), ("rate_limited", true));
        assert_eq!(refused.retry_after(), Some(Duration::from_secs(17)));
        for (detail, may_pass) in [
            ("provider: status 500: x: boom", true),
            ("provider: status 400: x", false),
            ("network: refused", true),
            ("malformed_stream: no JSON", false),
        ] {
            let refused = Refused { detail: detail.to_owned(), ..Refused::default() };
            assert_eq!(refused.is_retryable(), may_pass, "{detail}");
        }
    }
}
