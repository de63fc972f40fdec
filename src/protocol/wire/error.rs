//! Errors for clients: their codes, and the messages about lines that are not valid. Pure.

use super::{RequestFault, VERSION};
use crate::protocol::command::{CommandFault, Extension};
use crate::protocol::constants::{code, command_code};
use crate::protocol::id::{ID_BYTES_MAX, IdTooLong};
use crate::support::named::named_enum;

named_enum! {
    /// Error codes, for programs.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum Code {
        /// The line is not a request in protobuf JSON.
        InvalidRequestJson = code::INVALID_REQUEST_JSON,
        /// The line is longer than the limit.
        LineTooLong = code::LINE_TOO_LONG,
        /// The version is not supported.
        UnsupportedVersion = code::UNSUPPORTED_VERSION,
        /// The line contains no command.
        UnknownRequest = code::UNKNOWN_REQUEST,
        /// The line is for another session.
        SessionMismatch = code::SESSION_MISMATCH,
        /// A run is active.
        SessionBusy = code::SESSION_BUSY,
        /// The prompt is blank.
        EmptyPrompt = code::EMPTY_PROMPT,
        /// There is no run to cancel.
        NoActiveRequest = code::NO_ACTIVE_REQUEST,
        /// The process takes no more prompts.
        ShuttingDown = code::SHUTTING_DOWN,
        /// The engine could not be initialized.
        EngineInitFailed = code::ENGINE_INIT_FAILED,
        /// The run failed.
        RunFailed = code::RUN_FAILED,
        /// The answer does not have the form required by the command file.
        InvalidAnswer = code::INVALID_ANSWER,
        /// Standard input could not be read.
        StdinReadFailed = code::STDIN_READ_FAILED,
        /// A signal ended the process.
        Interrupted = code::INTERRUPTED,
        /// A bug in this program.
        Internal = code::INTERNAL,
        /// An extension is not known.
        UnknownExtension = code::UNKNOWN_EXTENSION,
        /// The tools that a client declared can't be used.
        InvalidTools = code::INVALID_TOOLS,
        /// No tool call with that id waits for this.
        UnknownToolCall = code::UNKNOWN_TOOL_CALL,
        /// Settings, a choice of a model or a schema can't be used.
        InvalidSettings = code::INVALID_SETTINGS,
        /// An image or a file of a prompt can't be used.
        InvalidAttachment = code::INVALID_ATTACHMENT,
        /// The conversation can't be stored, or the stored part can't be read.
        StoreFailed = code::STORE_FAILED,
        /// Another process holds the session.
        SessionLocked = code::SESSION_LOCKED,
        /// There is no such prompt, or no turn, to drop.
        UnknownMessage = code::UNKNOWN_MESSAGE,
        /// There is nothing that a summary could stand for.
        NothingToCompact = code::NOTHING_TO_COMPACT,
        /// The conversation was not compacted.
        CompactionFailed = code::COMPACTION_FAILED,
        /// The budget does not allow another provider call.
        BudgetExhausted = code::BUDGET_EXHAUSTED,
        /// Another request of the conversation had the same id.
        RequestIdReused = code::REQUEST_ID_REUSED,
        /// A limit on what may go on at once is reached.
        ResourceExhausted = code::RESOURCE_EXHAUSTED,
        /// The command line of a command around the protocol is wrong; in no frame.
        Usage = command_code::USAGE,
    }
}

/// An error as a client gets it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientError {
    /// For programs.
    pub code: Code,
    /// The message for people: what happened, what it means for them and what to do.
    pub message: String,
    /// Details; may be empty.
    pub detail: String,
    /// The process ends after this error.
    pub terminal: bool,
}

impl RequestFault {
    /// The error as the client gets it.
    pub(crate) fn client_error(&self) -> ClientError {
        let (code, message, detail) = match self {
            Self::InvalidJson { reason } => (
                Code::InvalidRequestJson,
                "the line is not a request in protobuf JSON and was ignored; send one JSON object \
                 a line, as in {\"submit\":{\"prompt\":\"hello\"}}"
                    .to_owned(),
                reason.clone(),
            ),
            Self::TooManyValues { memory_mib_max } => (
                Code::InvalidRequestJson,
                format!(
                    "the line has more small values than are read: they would take more than \
                     {memory_mib_max} MiB of memory, and the line was ignored; send fewer, or send \
                     the data as a string of JSON"
                ),
                String::new(),
            ),
            Self::TooLong { bytes_max } => (
                Code::LineTooLong,
                format!(
                    "the line is longer than {bytes_max} bytes and was ignored; send a shorter \
                     one, or start the server with a larger --max-request-bytes"
                ),
                String::new(),
            ),
            Self::IdTooLong { field, error } => id_error(field, *error),
            Self::UnsupportedVersion(version) => (
                Code::UnsupportedVersion,
                format!(
                    "the request asks for protocol version {version}, this server speaks version \
                     {VERSION}; leave the version out or send {VERSION}"
                ),
                String::new(),
            ),
            Self::UnknownRequest => (
                Code::UnknownRequest,
                "the request asks for nothing this server knows; set one of submit, cancel, \
                 snapshot, shutdown"
                    .to_owned(),
                String::new(),
            ),
            Self::Command(fault) => command_error(fault),
            Self::Unhandled => (
                Code::ShuttingDown,
                "the process ends before it could handle the request, so nothing was done; send it \
                 to another process"
                    .to_owned(),
                String::new(),
            ),
            Self::NotBegun(why) => (why.code, why.message.clone(), why.detail.clone()),
            Self::Internal { detail } => (
                Code::Internal,
                "reading the line met a defect of this program; the line was ignored and the \
                 session goes on; please report it"
                    .to_owned(),
                detail.clone(),
            ),
        };
        ClientError { code, message, detail, terminal: false }
    }
}

fn id_error(field: &str, error: IdTooLong) -> (Code, String, String) {
    (
        Code::InvalidRequestJson,
        format!(
            "{field} is longer than {ID_BYTES_MAX} bytes and the line was ignored; send a shorter \
             one"
        ),
        format!("{field}: {error}"),
    )
}

/// Code, message and detail for a command that is not valid.
fn command_error(fault: &CommandFault) -> (Code, String, String) {
    match fault {
        CommandFault::EmptyPrompt => (
            Code::EmptyPrompt,
            "the prompt is blank, so there is nothing to answer; send one as `prompt` of the submit".to_owned(),
            String::new(),
        ),
        CommandFault::IdTooLong(field, error) => id_error(field, *error),
        CommandFault::UnknownExtension(name) => {
            let known = Extension::ALL.map(Extension::as_str).join(", ");
            let message = "an extension in the list is not known, so none of them was turned on";
            let detail = format!("no extension {name:?}; a request can turn on {known}");
            (Code::UnknownExtension, message.to_owned(), detail)
        }
        CommandFault::InvalidTools(reason) => (
            Code::InvalidTools,
            "the list of tools can't be used and the last one stays in place; correct it and send \
             it again"
                .to_owned(),
            reason.clone(),
        ),
        CommandFault::InvalidAttachment(reason) => (
            Code::InvalidAttachment,
            format!("the prompt was not sent because of an attachment that can't be used: {reason}"),
            String::new(),
        ),
        CommandFault::InvalidSettings(reason) => (
            Code::InvalidSettings,
            "the settings can't be used, so nothing was changed or sent; correct them and send the \
             request again"
                .to_owned(),
            reason.clone(),
        ),
        CommandFault::InvalidValue(reason) => (
            Code::InvalidRequestJson,
            "a field of the request has a value that it can't have; the line was ignored"
                .to_owned(),
            reason.clone(),
        ),
    }
}
