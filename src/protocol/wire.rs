//! Lines of the protocol: parses an input line as a request or an error, and builds frames.
//! JSON is protobuf's canonical mapping for proto3, strictly parsed.

mod error;

pub use crate::protocol::proto::rpc::rpc_line::Frame as Body;
pub use error::{ClientError, Code};

use crate::protocol::any::{Any, read_message};
use crate::protocol::command::{Command, CommandFault};
use crate::protocol::constants::done;
use crate::protocol::id::{IdTooLong, Ordinal, RequestId, SessionId};
use crate::protocol::json;
use crate::protocol::proto::rpc::{
    BackendEventFrame, DoneFrame, ErrorFrame, HelloFrame, RpcLine, RpcRequestLine, SnapshotFrame,
    UiEventFrame,
};
use crate::support::named::named_enum;
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

/// The error in a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RequestFault {
    /// It is not a request in protobuf JSON.
    InvalidJson {
        /// The parser's message.
        reason: String,
    },
    /// The values of the line would take too much memory.
    TooManyValues {
        /// Memory that the values of a line of its length may take, in MiB.
        memory_mib_max: usize,
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
    /// The process ends before it could be handled.
    Unhandled,
    /// The process can't begin, for this reason.
    NotBegun(Box<ClientError>),
    /// Reading the line failed because of a bug in this program.
    Internal {
        /// For a bug report.
        detail: String,
    },
}

/// A line of output.
pub type Frame = RpcLine;

named_enum! {
    /// The status of a finished request.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub(crate) enum Done {
        /// It succeeded.
        Ok = done::OK,
        /// Its run was stopped.
        Stopped = done::STOPPED,
        /// It was refused, or its run failed.
        Failed = done::FAILED,
        /// The process ends.
        Shutdown = done::SHUTDOWN,
    }
}

/// Reads one line, without its line end. `fresh` makes an id for a request that has none.
///
/// # Errors
/// If the line is not a request; the error has the request id as far as it can be read.
pub fn decode(line: &[u8], fresh: impl FnOnce() -> RequestId) -> Result<Request, BadLine> {
    let text = std::str::from_utf8(line).map_err(|error| BadLine {
        id: None,
        fault: RequestFault::InvalidJson { reason: format!("not UTF-8: {error}") },
    })?;
    let line: RpcRequestLine = read_message(text).map_err(|error| malformed(text, error))?;
    request(line, fresh)
}

/// The error for a line that was cut off at `bytes_max`. `start` is its beginning, in which a
/// client that writes its fields in order has put the ids, and `end` its last bytes, in which others have.
pub fn too_long(start: &[u8], end: &[u8], bytes_max: usize) -> BadLine {
    let id = name_in(start).or_else(|| name_in(&json::last_members(end)?));
    BadLine { id, fault: RequestFault::TooLong { bytes_max } }
}

/// The error for a line whose parsing failed because of a bug in this program.
pub(crate) fn unreadable(line: &[u8], detail: String) -> BadLine {
    BadLine { id: name_in(line), fault: RequestFault::Internal { detail } }
}

/// Reads a request from its message. `fresh` makes an id for one that has none.
///
/// # Errors
/// If it is not valid; the error has the request id.
pub fn request(
    line: RpcRequestLine,
    fresh: impl FnOnce() -> RequestId,
) -> Result<Request, BadLine> {
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

fn malformed(text: &str, error: json::Error) -> BadLine {
    // Only a complete JSON object has an id: in anything else, what looks like one may be part of
    // some other text.
    let is_whole = serde_json::from_str::<IgnoredAny>(text).is_ok();
    let id = if is_whole { name_in(text.as_bytes()) } else { None };
    let fault = match error {
        json::Error::Invalid(reason) => RequestFault::InvalidJson { reason },
        json::Error::TooManyValues { memory_mib_max } => {
            RequestFault::TooManyValues { memory_mib_max }
        }
    };
    BadLine { id, fault }
}

/// The request id at the top level of `line`, which may end anywhere and have any other error.
fn name_in(line: &[u8]) -> Option<RequestId> {
    let mut name = None;
    let mut reader = serde_json::Deserializer::from_slice(line);
    // Only the part before the error is needed.
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

/// The name of the sign of life of a run.
pub(crate) const HEARTBEAT: &str = "Heartbeat";

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

#[cfg(test)]
mod tests;
