//! Lines of the protocol: parses an input line as a request or an error, and builds frames.
//! JSON is protobuf's canonical mapping for proto3, strictly parsed.

use crate::protocol::any::{Any, read_message};
use crate::protocol::command::{Command, CommandFault, Extension};
use crate::protocol::id::{ID_BYTES_MAX, IdTooLong, Ordinal, RequestId, SessionId};
use crate::protocol::proto::rpc::rpc_line::Frame as Body;
use crate::protocol::proto::rpc::{
    BackendEventFrame, DoneFrame, ErrorFrame, HelloFrame, RpcLine, RpcRequestLine, SnapshotFrame,
    UiEventFrame,
};
use crate::protocol::words::{code, done};
use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};
use std::fmt;

/// The version of the protocol. Absent and 0 mean the same in a request.
pub(crate) const VERSION: u32 = 1;

/// Name of the protocol in `hello`.
pub(crate) const PROTOCOL: &str = "pinocchio.chatapp.rpc.v1";

/// Name of this server in `hello`.
pub(crate) const SERVER: &str = "duologue";

/// A line that makes sense.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// The session it is for; `None` means this process's.
    pub session: Option<SessionId>,
    /// Its id, the client's or a generated one.
    pub id: RequestId,
    /// The command.
    pub command: Command,
}

/// A line that is not a valid request. It is answered like a request: an error, then its `done`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadLine {
    /// Its request id. `None` if none can be parsed; a line that can be parsed but is
    /// invalid has a generated one.
    pub id: Option<RequestId>,
    /// The error.
    pub fault: RequestFault,
}

/// What is wrong with a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RequestFault {
    /// It is not a request in protobuf JSON.
    InvalidJson {
        /// The parser's message.
        reason: String,
    },
    /// The line is longer than the limit.
    TooLong {
        /// The limit.
        bytes_max: usize,
    },
    /// An id in the line is longer than the limit.
    IdTooLong {
        /// The field.
        field: &'static str,
        /// The length of the id.
        error: IdTooLong,
    },
    /// The protocol version is not supported.
    UnsupportedVersion(u32),
    /// The line contains no command.
    UnknownRequest,
    /// Its command is not valid.
    Command(CommandFault),
    /// Reading the line failed because of a bug in this program.
    Internal {
        /// For a bug report.
        detail: String,
    },
}

/// A line of output.
pub type Frame = RpcLine;

/// Error codes, for programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Code {
    /// The line is not a request in protobuf JSON.
    InvalidRequestJson,
    /// The line is longer than the limit.
    LineTooLong,
    /// The version is not supported.
    UnsupportedVersion,
    /// The line contains no command.
    UnknownRequest,
    /// The line is for another session.
    SessionMismatch,
    /// A run is active.
    SessionBusy,
    /// The prompt is blank.
    EmptyPrompt,
    /// There is no run to cancel.
    NoActiveRequest,
    /// The process takes no more prompts.
    ShuttingDown,
    /// The engine could not be initialized.
    EngineInitFailed,
    /// The run failed.
    RunFailed,
    /// The answer does not have the form required by the command file.
    InvalidAnswer,
    /// Standard input could not be read.
    StdinReadFailed,
    /// A signal ended the process.
    Interrupted,
    /// A bug in this program.
    Internal,
    /// An extension is not known.
    UnknownExtension,
    /// The tools that a client declared can't be used.
    InvalidTools,
    /// No tool call with that id waits for this.
    UnknownToolCall,
    /// Settings, a choice of a model or a schema can't be used.
    InvalidSettings,
    /// An image or a file of a prompt can't be used.
    InvalidAttachment,
    /// The conversation can't be stored, or what is stored can't be read.
    StoreFailed,
    /// Another process holds the session.
    SessionLocked,
    /// There is no such prompt, or no turn, to drop.
    UnknownMessage,
}

/// The status of a finished request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Done {
    /// It succeeded.
    Ok,
    /// Its run was stopped.
    Stopped,
    /// It was refused, or its run failed.
    Failed,
    /// The process ends.
    Shutdown,
}

/// An error as a client gets it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientError {
    /// For programs.
    pub code: Code,
    /// What happened, what it means and what to do, for people.
    pub message: String,
    /// Details; may be empty.
    pub detail: String,
    /// The process will not go on after this.
    pub terminal: bool,
}

/// Reads one line, without its line end. `fresh` makes an id for a request that has none.
///
/// # Errors
/// What is wrong with the line, with its request id as far as it can be read.
pub fn decode(line: &[u8], fresh: impl FnOnce() -> RequestId) -> Result<Request, BadLine> {
    let text = std::str::from_utf8(line).map_err(|error| BadLine {
        id: None,
        fault: RequestFault::InvalidJson { reason: format!("not UTF-8: {error}") },
    })?;
    let line: RpcRequestLine =
        read_message(text).map_err(|error| malformed(text, error.to_string()))?;
    request(line, fresh)
}

/// The error for a line that was cut off at `bytes_max`. `start` is its beginning, in which a
/// client that writes its fields in order has put the ids.
pub fn too_long(start: &[u8], bytes_max: usize) -> BadLine {
    BadLine { id: name_in(start), fault: RequestFault::TooLong { bytes_max } }
}

/// The error for a line whose parsing failed because of a bug in this program.
pub(crate) fn unreadable(line: &[u8], detail: String) -> BadLine {
    BadLine { id: name_in(line), fault: RequestFault::Internal { detail } }
}

fn request(line: RpcRequestLine, fresh: impl FnOnce() -> RequestId) -> Result<Request, BadLine> {
    let too_long = |field, error| RequestFault::IdTooLong { field, error };
    let id = RequestId::parse(&line.request_id)
        // An id that is too long to be repeated counts as none.
        .map_err(|error| BadLine { id: None, fault: too_long("requestId", error) })?
        .unwrap_or_else(fresh);
    let bad = |fault| Err(BadLine { id: Some(id.clone()), fault });
    let session = match SessionId::parse(&line.session_id) {
        Ok(session) => session,
        Err(error) => return bad(too_long("sessionId", error)),
    };
    if line.version > VERSION {
        return bad(RequestFault::UnsupportedVersion(line.version));
    }
    let Some(member) = line.request else { return bad(RequestFault::UnknownRequest) };
    match Command::new(member) {
        Ok(command) => Ok(Request { session, id, command }),
        Err(fault) => bad(RequestFault::Command(fault)),
    }
}

fn malformed(text: &str, reason: String) -> BadLine {
    // Only a complete JSON object has an id: in anything else, what looks like one may be part of
    // some other text.
    let is_whole = serde_json::from_str::<IgnoredAny>(text).is_ok();
    let id = if is_whole { name_in(text.as_bytes()) } else { None };
    BadLine { id, fault: RequestFault::InvalidJson { reason } }
}

/// The request id at the top level of `line`, which may end anywhere and have any other error.
fn name_in(line: &[u8]) -> Option<RequestId> {
    let mut name = None;
    let mut reader = serde_json::Deserializer::from_slice(line);
    // Only what was parsed before the error is needed.
    drop(reader.deserialize_map(NameVisitor(&mut name)));
    name
}

struct NameVisitor<'a>(&'a mut Option<RequestId>);

impl<'de> Visitor<'de> for NameVisitor<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a request object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<String>()? {
            if key == "requestId" || key == "request_id" {
                *self.0 = map.next_value::<Name>()?.0.and_then(|name| RequestId::new(&name));
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(())
    }
}

/// A string, or something else that is ignored.
#[derive(serde::Deserialize)]
#[serde(transparent)]
struct Name(#[serde(deserialize_with = "string_or_nothing")] Option<String>);

fn string_or_nothing<'de, D: Deserializer<'de>>(reader: D) -> Result<Option<String>, D::Error> {
    #[derive(serde::Deserialize)]
    #[serde(untagged)]
    enum Value {
        String(String),
        Other(IgnoredAny),
    }
    Ok(match <Value as serde::Deserialize>::deserialize(reader)? {
        Value::String(name) => Some(name),
        Value::Other(_) => None,
    })
}

/// A frame of `session` for `request`, or for none.
pub(crate) fn frame(session: &SessionId, request: Option<&RequestId>, body: Body) -> Frame {
    RpcLine {
        version: VERSION,
        session_id: session.as_str().to_owned(),
        request_id: request.map_or_else(String::new, |id| id.as_str().to_owned()),
        frame: Some(body),
    }
}

/// The first frame's body.
pub(crate) fn hello(capabilities: Vec<String>) -> Body {
    Body::Hello(HelloFrame {
        protocol: PROTOCOL.to_owned(),
        server: SERVER.to_owned(),
        capabilities,
    })
}

/// The body of a frame with an event.
pub(crate) fn ui_event(ordinal: Ordinal, payload: Any) -> Body {
    let name = payload.name().to_owned();
    Body::UiEvent(UiEventFrame { ordinal: ordinal.0, name, payload: Some(payload) })
}

/// The body of a frame with an event as the runtime records it.
pub(crate) fn backend_event(ordinal: Ordinal, payload: Any) -> Body {
    let name = payload.name().to_owned();
    Body::BackendEvent(BackendEventFrame { ordinal: ordinal.0, name, payload: Some(payload) })
}

/// The body of a frame with the conversation.
pub(crate) fn snapshot(snapshot: SnapshotFrame) -> Body {
    Body::Snapshot(snapshot)
}

/// The body of an error frame. Its detail is the message if there is nothing
/// more.
pub(crate) fn error(client_error: ClientError) -> Body {
    let ClientError { message, detail, .. } = client_error;
    Body::Error(ErrorFrame {
        code: client_error.code.as_str().to_owned(),
        detail: if detail.is_empty() { message.clone() } else { detail },
        message,
        terminal: client_error.terminal,
    })
}

/// The body of a request's last frame.
pub(crate) fn done(how: Done) -> Body {
    Body::Done(DoneFrame { status: how.as_str().to_owned() })
}

impl Code {
    /// The value on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::InvalidRequestJson => code::INVALID_REQUEST_JSON,
            Self::LineTooLong => code::LINE_TOO_LONG,
            Self::UnsupportedVersion => code::UNSUPPORTED_VERSION,
            Self::UnknownRequest => code::UNKNOWN_REQUEST,
            Self::SessionMismatch => code::SESSION_MISMATCH,
            Self::SessionBusy => code::SESSION_BUSY,
            Self::EmptyPrompt => code::EMPTY_PROMPT,
            Self::NoActiveRequest => code::NO_ACTIVE_REQUEST,
            Self::ShuttingDown => code::SHUTTING_DOWN,
            Self::EngineInitFailed => code::ENGINE_INIT_FAILED,
            Self::RunFailed => code::RUN_FAILED,
            Self::InvalidAnswer => code::INVALID_ANSWER,
            Self::StdinReadFailed => code::STDIN_READ_FAILED,
            Self::Interrupted => code::INTERRUPTED,
            Self::Internal => code::INTERNAL,
            Self::UnknownExtension => code::UNKNOWN_EXTENSION,
            Self::InvalidTools => code::INVALID_TOOLS,
            Self::UnknownToolCall => code::UNKNOWN_TOOL_CALL,
            Self::InvalidSettings => code::INVALID_SETTINGS,
            Self::InvalidAttachment => code::INVALID_ATTACHMENT,
            Self::StoreFailed => code::STORE_FAILED,
            Self::SessionLocked => code::SESSION_LOCKED,
            Self::UnknownMessage => code::UNKNOWN_MESSAGE,
        }
    }
}

impl Done {
    /// The value on the wire.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Ok => done::OK,
            Self::Stopped => done::STOPPED,
            Self::Failed => done::FAILED,
            Self::Shutdown => done::SHUTDOWN,
        }
    }
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
            "the prompt is blank, so there is nothing to answer; send one with text".to_owned(),
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

#[cfg(test)]
mod tests;
