//! The answers to what is posted over HTTP (pure). The SDK finds the call that an answer is for by its id, and a call
//! whose answer has none, or another one, would wait for its time limit: the answer to a POST is for what was posted.

use crate::protocol::json::{DEPTH_MAX, depth};
use crate::tool::incoming::{self, Answer};
use rmcp::model::{
    ClientJsonRpcMessage, ClientNotification, ClientRequest, CustomResult, ErrorData, JsonRpcError,
    JsonRpcMessage, JsonRpcResponse, RequestId, ServerJsonRpcMessage, ServerResult,
};
use serde_json::Value;

/// Says in the error of a server that it does not know the session, in whatever other words.
const SESSION_WORD: &str = "session";

/// The only member of a result that is on its way through the SDK. The SDK reads a result as the first of its types
/// that it fits, and drops the members that this type does not have: the content of a call with an empty list `tools`
/// beside it would be gone.
const WRAPPER: &str = "duologue/result";

/// The levels above a result that is wrapped: those of the message and of the wrapper.
const WRAPPED_DEPTH: usize = 2;

/// What was posted, as far as its answer depends on that.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Posted {
    /// The request that begins a session.
    Handshake(RequestId),
    /// Another request.
    Request(RequestId),
    /// The notification that ends the handshake.
    Initialized,
    /// Another message without an answer.
    Other,
}

/// Why an answer is none to what was posted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum NoAnswer {
    /// The server does not know the session.
    SessionEnded,
    /// What is wrong with it, for people.
    Wrong(&'static str),
}

impl Posted {
    pub(super) fn new(message: &ClientJsonRpcMessage) -> Self {
        match message {
            JsonRpcMessage::Request(it) => {
                let id = it.id.clone();
                let is_handshake = matches!(it.request, ClientRequest::InitializeRequest(_));
                if is_handshake { Self::Handshake(id) } else { Self::Request(id) }
            }
            JsonRpcMessage::Notification(it) => {
                let is_last =
                    matches!(it.notification, ClientNotification::InitializedNotification(_));
                if is_last { Self::Initialized } else { Self::Other }
            }
            JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_) => Self::Other,
        }
    }

    /// What the messages of the answer are read as.
    pub(super) fn answer(&self) -> Answer {
        match self {
            Self::Handshake(_) => Answer::Handshake,
            Self::Request(_) | Self::Initialized | Self::Other => Answer::Any,
        }
    }

    /// The id of a request.
    pub(super) fn id(&self) -> Option<&RequestId> {
        match self {
            Self::Handshake(id) | Self::Request(id) => Some(id),
            Self::Initialized | Self::Other => None,
        }
    }

    /// The message that is the whole answer, with the id of the request. `in_session`: it was posted with the id of
    /// a session.
    ///
    /// # Errors
    /// If it is no answer.
    pub(super) fn answered(
        &self,
        message: ServerJsonRpcMessage,
        in_session: bool,
    ) -> Result<ServerJsonRpcMessage, NoAnswer> {
        match (message, self.id()) {
            (JsonRpcMessage::Error(error), id) => self.failed(error, id, in_session),
            (message, None) => Ok(message),
            (JsonRpcMessage::Response(response), Some(id)) => self.succeeded(response, id),
            (JsonRpcMessage::Request(_) | JsonRpcMessage::Notification(_), Some(_)) => {
                Err(NoAnswer::Wrong("it sent another message in the place of the answer"))
            }
        }
    }

    fn failed(
        &self,
        error: JsonRpcError,
        id: Option<&RequestId>,
        in_session: bool,
    ) -> Result<ServerJsonRpcMessage, NoAnswer> {
        let is_own = matches!((&error.id, id), (Some(of), Some(id)) if is_same(of, id));
        // An error of its own for the call may be about any session.
        if in_session && !is_own && is_of_session(&error.error) {
            return Err(NoAnswer::SessionEnded);
        }
        let id = id.cloned().or(error.id);
        Ok(JsonRpcMessage::error(error.error, id))
    }

    fn succeeded(
        &self,
        response: JsonRpcResponse<ServerResult>,
        id: &RequestId,
    ) -> Result<ServerJsonRpcMessage, NoAnswer> {
        if !is_same(&response.id, id) {
            return Err(NoAnswer::Wrong("it sent an answer with the id of another request"));
        }
        let result = match (self.answer(), response.result) {
            // The form that the SDK gives to what it can't read.
            (Answer::Handshake, ServerResult::CustomResult(result)) => {
                incoming::initialize_result(result.0)
            }
            (Answer::Handshake | Answer::Any, result) => result,
        };
        Ok(JsonRpcMessage::response(result, response.id))
    }
}

/// Wraps the result of `message`, if it is one that is passed on as it is, so that the SDK reads it as no other type. A
/// result that would be nested too deep for the SDK stays as it is.
pub(super) fn wrap_result(message: &mut ServerJsonRpcMessage) {
    if let JsonRpcMessage::Response(response) = message
        && let ServerResult::CustomResult(CustomResult(result)) = &mut response.result
        && depth(result) + WRAPPED_DEPTH <= DEPTH_MAX
    {
        let members = [(WRAPPER.to_owned(), result.take())];
        *result = Value::Object(members.into_iter().collect());
    }
}

/// Undoes [`wrap_result`]; leaves any other message as it is.
pub(super) fn unwrap_result(message: &mut ServerJsonRpcMessage) {
    if let JsonRpcMessage::Response(response) = message
        && let ServerResult::CustomResult(CustomResult(result)) = &mut response.result
        && let Some(wrapped) = result.get_mut(WRAPPER)
    {
        *result = wrapped.take();
    }
}

/// Servers return the id as the number that it was, or as a string of its digits.
pub(super) fn is_same(one: &RequestId, other: &RequestId) -> bool {
    one.to_string() == other.to_string()
}

fn is_of_session(error: &ErrorData) -> bool {
    error.message.to_lowercase().contains(SESSION_WORD)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn answered(message: Value, in_session: bool) -> Result<Value, NoAnswer> {
        let posted = Posted::Request(RequestId::Number(7));
        let message = serde_json::from_value(message).expect("a message");
        let answered = posted.answered(message, in_session)?;
        Ok(serde_json::to_value(answered).expect("JSON"))
    }

    #[test]
    fn the_error_in_an_answer_is_that_of_the_call_whatever_its_id() {
        let error = json!({"code": -32600, "message": "not now"});
        let expected = json!({"jsonrpc": "2.0", "id": 7, "error": error});
        for id in [json!(null), json!("server-error"), json!(3), json!("7"), json!(7)] {
            let message = json!({"jsonrpc": "2.0", "id": id, "error": error});
            assert_eq!(answered(message, true), Ok(expected.clone()), "{id}");
        }
    }

    #[test]
    fn an_error_without_the_id_that_names_the_session_ends_it() {
        let error = json!({"code": -32000, "message": "No valid Session ID provided"});
        let message = |id: Value| json!({"jsonrpc": "2.0", "id": id, "error": error});
        assert_eq!(answered(message(json!(null)), true), Err(NoAnswer::SessionEnded));
        // That of a tool, and of a server without sessions.
        assert_eq!(answered(message(json!(7)), true), Ok(message(json!(7))));
        assert_eq!(answered(message(json!(null)), false), Ok(message(json!(7))));
    }

    #[test]
    fn a_result_that_is_wrapped_is_not_read_as_another_type() {
        let nested = |levels: usize| {
            let text = "[".repeat(levels) + &"]".repeat(levels);
            serde_json::from_str::<Value>(&text).expect("JSON")
        };
        for result in [
            nested(DEPTH_MAX - 2),
            nested(DEPTH_MAX - 1),
            json!({"content": [{"type": "text", "text": "hi"}], "tools": []}),
            json!({"contents": [], "action": "accept", "resultType": "complete"}),
            json!({}),
            json!(null),
            json!("text"),
            json!([1]),
        ] {
            let custom = ServerResult::CustomResult(CustomResult::new(result.clone()));
            let mut message = JsonRpcMessage::response(custom, RequestId::Number(7));
            wrap_result(&mut message);
            let written = serde_json::to_string(&message).expect("JSON");
            let mut read: ServerJsonRpcMessage = serde_json::from_str(&written).expect("a message");
            unwrap_result(&mut read);
            let expected = json!({"jsonrpc": "2.0", "id": 7, "result": result});
            assert_eq!(serde_json::to_value(read).expect("JSON"), expected);
        }
    }

    #[test]
    fn an_answer_to_something_else_is_an_error() {
        let result = |id: Value| json!({"jsonrpc": "2.0", "id": id, "result": {"x": 1}});
        assert_eq!(answered(result(json!(7)), true), Ok(result(json!(7))));
        assert_eq!(answered(result(json!("7")), true), Ok(result(json!("7"))));
        let ping = json!({"jsonrpc": "2.0", "id": 7, "method": "ping"});
        for other in [result(json!(8)), ping] {
            assert!(matches!(answered(other, true), Err(NoAnswer::Wrong(_))));
        }
    }
}
