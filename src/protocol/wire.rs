//! Lines of the protocol: a line of input → a request or what is wrong with it; a frame → a line.
//! JSON is protobuf's canonical mapping for proto3, strictly read.

use crate::protocol::any::{Any, read_message};
use crate::protocol::id::{ID_BYTES_MAX, IdTooLong, Ordinal, RequestId, SessionId};
use crate::protocol::proto::rpc::rpc_line::Frame as Body;
use crate::protocol::proto::rpc::rpc_request_line::Request as Member;
use crate::protocol::proto::rpc::{
    DoneFrame, ErrorFrame, HelloFrame, RpcLine, RpcRequestLine, SnapshotFrame, UiEventFrame,
};
use crate::protocol::words::{code, done};
use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};
use std::fmt;

/// The version of the protocol that this program speaks. Absent and 0 mean the same in a request.
pub const VERSION: u32 = 1;

/// Name of the protocol, as `hello` tells it.
pub const PROTOCOL: &str = "pinocchio.chatapp.rpc.v1";

/// Name of this server, as `hello` tells it.
pub const SERVER: &str = "duologue";

/// A line that makes sense.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The session it is for; `None` means this process's.
    pub session: Option<SessionId>,
    /// Its name, the client's or a generated one.
    pub id: RequestId,
    /// What is asked.
    pub command: Command,
}

/// What a request asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// Start a run.
    Submit(Prompt),
    /// Stop the active run.
    Cancel,
    /// Tell the state of the conversation.
    Snapshot,
    /// End the process once the active run has ended.
    Shutdown,
}

/// What the user says: kept as written, and blank only where nothing is said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prompt(String);

/// A line that can't be acted on. It is answered like a request: an error, then its `done`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadLine {
    /// Its name. `None` where the line has none that can be read; a line that can be read but not
    /// acted on has a generated one.
    pub id: Option<RequestId>,
    /// What is wrong.
    pub fault: RequestFault,
}

/// What is wrong with a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RequestFault {
    /// It is not a request in protobuf JSON.
    InvalidJson {
        /// What the reader stumbled on.
        reason: String,
    },
    /// It is longer than the limit.
    TooLong {
        /// The limit.
        bytes_max: usize,
    },
    /// An id in it is longer than the limit.
    IdTooLong {
        /// The field.
        field: &'static str,
        /// How long it is.
        error: IdTooLong,
    },
    /// It asks for a version this program doesn't speak.
    UnsupportedVersion(u32),
    /// It asks for nothing.
    UnknownRequest,
    /// Its prompt is blank.
    EmptyPrompt,
    /// Reading it met a defect of this program.
    Internal {
        /// For a bug report.
        detail: String,
    },
}

/// A line of output.
pub type Frame = RpcLine;

/// What went wrong, as a word for programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Code {
    /// The line is not a request in protobuf JSON.
    InvalidRequestJson,
    /// The line is longer than the limit.
    LineTooLong,
    /// The version is not spoken here.
    UnsupportedVersion,
    /// The line asks for nothing.
    UnknownRequest,
    /// The line names another session.
    SessionMismatch,
    /// A run is active.
    SessionBusy,
    /// The prompt is blank.
    EmptyPrompt,
    /// There is no run to cancel.
    NoActiveRequest,
    /// The process takes no more prompts.
    ShuttingDown,
    /// The engine could not get ready.
    EngineInitFailed,
    /// The run failed.
    RunFailed,
    /// The answer is not what the command file asks for.
    InvalidAnswer,
    /// Standard input could not be read.
    StdinReadFailed,
    /// A signal ended the process.
    Interrupted,
    /// A defect of this program.
    Internal,
}

/// How a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Done {
    /// It was done.
    Ok,
    /// Its run was stopped.
    Stopped,
    /// It was refused, or its run failed.
    Failed,
    /// The process ends.
    Shutdown,
}

/// Something that went wrong, for a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientError {
    /// For programs.
    pub code: Code,
    /// What happened, what it means and what to do, for people.
    pub message: String,
    /// More; may be empty.
    pub detail: String,
    /// The process will not go on after this.
    pub terminal: bool,
}

impl Prompt {
    /// The prompt, if there is more in it than white space.
    pub fn new(text: String) -> Option<Self> {
        (!text.trim().is_empty()).then_some(Self(text))
    }

    /// Nothing: the model is called with what the conversation already holds.
    pub fn nothing() -> Self {
        Self(String::new())
    }

    /// Its length.
    pub fn len_bytes(&self) -> usize {
        self.0.len()
    }

    /// As written.
    pub fn into_string(self) -> String {
        self.0
    }
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

/// The answer to a line that was cut off at `bytes_max`. `start` is its beginning, where a client
/// that writes its fields in order has put the names.
pub fn too_long(start: &[u8], bytes_max: usize) -> BadLine {
    BadLine { id: name_in(start), fault: RequestFault::TooLong { bytes_max } }
}

/// The answer to a line whose reading met a defect of this program.
pub fn unreadable(line: &[u8], detail: String) -> BadLine {
    BadLine { id: name_in(line), fault: RequestFault::Internal { detail } }
}

fn request(line: RpcRequestLine, fresh: impl FnOnce() -> RequestId) -> Result<Request, BadLine> {
    let too_long = |field, error| RequestFault::IdTooLong { field, error };
    let id = RequestId::parse(&line.request_id)
        // A name that is too long to be repeated is no name.
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
    let command = match line.request {
        None => return bad(RequestFault::UnknownRequest),
        Some(Member::Cancel(_)) => Command::Cancel,
        Some(Member::Snapshot(_)) => Command::Snapshot,
        Some(Member::Shutdown(_)) => Command::Shutdown,
        Some(Member::Submit(submit)) => match Prompt::new(submit.prompt) {
            Some(prompt) => Command::Submit(prompt),
            None => return bad(RequestFault::EmptyPrompt),
        },
    };
    Ok(Request { session, id, command })
}

fn malformed(text: &str, reason: String) -> BadLine {
    // Only a whole JSON object has a name: in anything else, what looks like one may be a piece of
    // some other text.
    let is_whole = serde_json::from_str::<IgnoredAny>(text).is_ok();
    let id = if is_whole { name_in(text.as_bytes()) } else { None };
    BadLine { id, fault: RequestFault::InvalidJson { reason } }
}

/// The request id at the top level of `line`, which may end anywhere and be wrong in any other way.
fn name_in(line: &[u8]) -> Option<RequestId> {
    let mut name = None;
    let mut reader = serde_json::Deserializer::from_slice(line);
    // What was read before the fault is all that is wanted.
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

/// A string, or something else that is passed over.
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

/// A frame of `session` that answers `request`, or none.
pub fn frame(session: &SessionId, request: Option<&RequestId>, body: Body) -> Frame {
    RpcLine {
        version: VERSION,
        session_id: session.as_str().to_owned(),
        request_id: request.map_or_else(String::new, |id| id.as_str().to_owned()),
        frame: Some(body),
    }
}

/// The first frame's body.
pub fn hello(capabilities: Vec<String>) -> Body {
    Body::Hello(HelloFrame {
        protocol: PROTOCOL.to_owned(),
        server: SERVER.to_owned(),
        capabilities,
    })
}

/// The body of a frame that shows an event.
pub fn ui_event(ordinal: Ordinal, payload: Any) -> Body {
    let name = payload.name().to_owned();
    Body::UiEvent(UiEventFrame { ordinal: ordinal.0, name, payload: Some(payload) })
}

/// The body of a frame that shows the conversation.
pub fn snapshot(snapshot: SnapshotFrame) -> Body {
    Body::Snapshot(snapshot)
}

/// The body of a frame that tells of trouble. Its detail is the message where there is nothing more.
pub fn error(client_error: ClientError) -> Body {
    let ClientError { message, detail, .. } = client_error;
    Body::Error(ErrorFrame {
        code: client_error.code.as_str().to_owned(),
        detail: if detail.is_empty() { message.clone() } else { detail },
        message,
        terminal: client_error.terminal,
    })
}

/// The body of a request's last frame.
pub fn done(how: Done) -> Body {
    Body::Done(DoneFrame { status: how.as_str().to_owned() })
}

impl Code {
    /// The word on the wire.
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
        }
    }
}

impl Done {
    /// The word on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ok => done::OK,
            Self::Stopped => done::STOPPED,
            Self::Failed => done::FAILED,
            Self::Shutdown => done::SHUTDOWN,
        }
    }
}

impl RequestFault {
    /// What the client is told.
    pub fn client_error(&self) -> ClientError {
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
            Self::IdTooLong { field, error } => (
                Code::InvalidRequestJson,
                format!(
                    "{field} is longer than {ID_BYTES_MAX} bytes and the line was ignored; send a \
                     shorter one"
                ),
                format!("{field}: {error}"),
            ),
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
            Self::EmptyPrompt => (
                Code::EmptyPrompt,
                "the prompt is blank, so there is nothing to answer; set submit.prompt".to_owned(),
                String::new(),
            ),
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

#[cfg(test)]
mod tests;
