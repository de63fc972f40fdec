//! JSON-RPC 2.0 (<https://www.jsonrpc.org/specification>), one message a line: lenient on input, strict
//! on output. Pure.

use crate::protocol::json;
use serde::de::{DeserializeOwned, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde::{Serialize, Serializer};
use serde_json::{Map, Value, json};
use std::fmt;
use std::str::Utf8Error;

const VERSION: &str = "2.0";

/// The line is no JSON.
const PARSE_ERROR: i32 = -32700;

/// The message is no request.
const INVALID_REQUEST: i32 = -32600;

const METHOD_NOT_FOUND: i32 = -32601;

const INVALID_PARAMS: i32 = -32602;

/// The request failed.
const INTERNAL_ERROR: i32 = -32603;

/// ACP: there is no such session.
const NOT_FOUND: i32 = -32002;

/// The id of a request, which its response repeats.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Id {
    Null,
    Number(i64),
    Text(String),
}

/// A message of the client.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Message {
    Request {
        id: Id,
        method: String,
        params: Value,
    },
    Notification {
        method: String,
        params: Value,
    },
    /// The response to a request of this program.
    Response {
        id: Id,
        outcome: Result<Value, RpcError>,
    },
}

/// An error as a response has it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct RpcError {
    code: i32,
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<Details>,
}

/// Zed shows the reason of an error whose data are exactly these.
#[derive(Clone, Debug, PartialEq, Serialize)]
struct Details {
    details: String,
}

/// A line that is no message, and the error that answers it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct BadMessage {
    pub(super) id: Id,
    pub(super) error: RpcError,
}

/// Reads a line.
///
/// # Errors
/// If it is no message. A response that can't be read is one: that its request has failed.
pub(super) fn read(line: &[u8]) -> Result<Message, BadMessage> {
    parse(line).or_else(|error| unread(seen_in(line), error))
}

/// What a line is that can't be read because of `error`.
fn unread(seen: Seen, error: RpcError) -> Result<Message, BadMessage> {
    let Seen { id, is_request, is_response } = seen;
    match is_response && !is_request && id != Id::Null {
        // Who waits for the response would wait in vain.
        true => Ok(Message::Response { id, outcome: Err(error) }),
        false => Err(BadMessage { id, error }),
    }
}

fn parse(line: &[u8]) -> Result<Message, RpcError> {
    let bad = RpcError::new;
    std::str::from_utf8(line).map_err(|error| bad(PARSE_ERROR, not_utf8(error)))?;
    let no_json = |error| bad(PARSE_ERROR, format!("the line is no JSON: {error}"));
    json::fits(line).map_err(no_json)?;
    let value = serde_json::from_slice(line).map_err(|error| no_json(json::Error::from(error)))?;
    let Value::Object(members) = value else {
        let what = if value.is_array() { "a batch" } else { "no object" };
        let why = format!("the line is {what}; send one JSON-RPC object a line");
        return Err(bad(INVALID_REQUEST, why));
    };
    message(members).map_err(|why| bad(INVALID_REQUEST, why.to_owned()))
}

fn not_utf8(error: Utf8Error) -> String {
    format!("the line is not UTF-8, so it was not read: {error}; send it in UTF-8")
}

fn message(mut members: Map<String, Value>) -> Result<Message, &'static str> {
    let id = members.get("id").map(|id| Id::of(id).ok_or("the id is no text and no whole number"));
    let id = id.transpose()?;
    if let Some(method) = members.get("method") {
        let method = method.as_str().ok_or("the method is no text")?.to_owned();
        let params = members.shift_remove("params").unwrap_or_default();
        return Ok(match id {
            Some(id) => Message::Request { id, method, params },
            None => Message::Notification { method, params },
        });
    }
    let id = id.ok_or("the message has neither a method nor an id")?;
    let error = members.shift_remove("error").filter(|error| !error.is_null());
    let outcome = match error {
        Some(error) => Err(RpcError::of_client(&error)),
        None => Ok(members.shift_remove("result").unwrap_or_default()),
    };
    Ok(Message::Response { id, outcome })
}

/// What a line is that was cut off at `bytes_max`; `start` is its beginning, and `end` its last bytes.
///
/// # Errors
/// If it is no response.
pub(super) fn too_long(start: &[u8], end: &[u8], bytes_max: usize) -> Result<Message, BadMessage> {
    let why = format!(
        "the line has more than {bytes_max} bytes, so it was not read; send less at a time, or start duologue with a \
         larger --max-request-bytes (an image takes a third more than its file)"
    );
    let mut seen = seen_in(start);
    // Some clients write the id after the parameters, as the encoder of Neovim does.
    if let Some(members) = json::last_members(end) {
        seen.look_at(&members);
    }
    unread(seen, RpcError::new(INVALID_REQUEST, why))
}

/// Reads the parameters of a method; none at all count as an empty object.
///
/// # Errors
/// If they are wrong.
pub(super) fn params<T: DeserializeOwned>(params: Value) -> Result<T, RpcError> {
    let params = if params.is_null() { json!({}) } else { params };
    serde_json::from_value(params)
        .map_err(|error| RpcError::invalid_params(json::Error::from(error).to_string()))
}

/// Appends a request to the client.
pub(super) fn request(id: i64, method: &str, params: &impl Serialize, lines: &mut Vec<u8>) {
    write(&Request { jsonrpc: VERSION, id, method, params }, lines);
}

/// Appends a notification.
pub(super) fn notification(method: &str, params: &impl Serialize, lines: &mut Vec<u8>) {
    write(&Notification { jsonrpc: VERSION, method, params }, lines);
}

/// Appends the response to the request `id`.
pub(super) fn response(id: &Id, outcome: &Result<Value, RpcError>, lines: &mut Vec<u8>) {
    match outcome {
        Ok(result) => write(&Success { jsonrpc: VERSION, id, result }, lines),
        Err(error) => write(&Failure { jsonrpc: VERSION, id, error }, lines),
    }
}

#[derive(Serialize)]
struct Request<'a, P> {
    jsonrpc: &'static str,
    id: i64,
    method: &'a str,
    params: &'a P,
}

#[derive(Serialize)]
struct Notification<'a, P> {
    jsonrpc: &'static str,
    method: &'a str,
    params: &'a P,
}

#[derive(Serialize)]
struct Success<'a> {
    jsonrpc: &'static str,
    id: &'a Id,
    result: &'a Value,
}

#[derive(Serialize)]
struct Failure<'a> {
    jsonrpc: &'static str,
    id: &'a Id,
    error: &'a RpcError,
}

fn write(message: &impl Serialize, lines: &mut Vec<u8>) {
    // The types of this module's callers have only keys that are texts, so they have a JSON form.
    json::write_line(message, lines).ok();
}

impl Id {
    /// The id in `value`; `None` if it is none that a response may have.
    pub(super) fn of(value: &Value) -> Option<Self> {
        match value {
            Value::Null => Some(Self::Null),
            Value::String(text) => Some(Self::Text(text.clone())),
            Value::Number(number) => number.as_i64().map(Self::Number),
            Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
        }
    }
}

impl Serialize for Id {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Null => to.serialize_unit(),
            Self::Number(number) => to.serialize_i64(*number),
            Self::Text(text) => to.serialize_str(text),
        }
    }
}

/// What the top level of a line has, up to an error.
struct Seen {
    id: Id,
    is_request: bool,
    is_response: bool,
}

/// What `line` has, which may end anywhere and have any other error.
fn seen_in(line: &[u8]) -> Seen {
    let mut seen = Seen { id: Id::Null, is_request: false, is_response: false };
    seen.look_at(line);
    seen
}

impl Seen {
    /// Adds what `line` has.
    fn look_at(&mut self, line: &[u8]) {
        // Only the part before the error is needed.
        drop(serde_json::Deserializer::from_slice(line).deserialize_map(SeenVisitor(self)));
    }
}

struct SeenVisitor<'a>(&'a mut Seen);

impl<'de> Visitor<'de> for SeenVisitor<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON-RPC object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<String>()? {
            // Before the value, which may have the error.
            self.0.is_request |= key == "method";
            self.0.is_response |= key == "result" || key == "error";
            if key == "id" {
                self.0.id = Id::of(&map.next_value::<Value>()?).unwrap_or(Id::Null);
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(())
    }
}

impl RpcError {
    fn new(code: i32, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: None }
    }

    pub(super) fn invalid_params(why: impl Into<String>) -> Self {
        Self::new(INVALID_PARAMS, why)
    }

    pub(super) fn method_not_found(method: &str) -> Self {
        Self::new(METHOD_NOT_FOUND, format!("there is no method {method:?}"))
    }

    pub(super) fn not_found(session: &str) -> Self {
        let why = format!(
            "there is no session {session:?}; list the sessions, load one of them, or begin a new one"
        );
        Self::new(NOT_FOUND, why).with_details()
    }

    /// The request failed for this reason, which clients show to people.
    pub(super) fn failed(why: impl Into<String>) -> Self {
        Self::new(INTERNAL_ERROR, why).with_details()
    }

    fn with_details(self) -> Self {
        let data = Some(Details { details: self.message.clone() });
        Self { data, ..self }
    }

    /// Whether it is about a message that could not be read.
    pub(super) fn is_of_unread(&self) -> bool {
        [PARSE_ERROR, INVALID_REQUEST].contains(&self.code)
    }

    /// An error that the client has sent.
    fn of_client(error: &Value) -> Self {
        let code = error.get("code").and_then(Value::as_i64);
        let code = code.and_then(|code| i32::try_from(code).ok()).unwrap_or(INTERNAL_ERROR);
        let message = error.get("message").and_then(Value::as_str).unwrap_or_default();
        Self::new(code, message)
    }
}

impl fmt::Display for RpcError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error_of(line: &str) -> (Id, i32) {
        let bad = read(line.as_bytes()).expect_err(line);
        (bad.id, bad.error.code)
    }

    #[test]
    fn messages_are_told_apart_by_their_members() {
        let request = read(br#"{"jsonrpc":"2.0","id":"a","method":"m","params":{"x":1}}"#);
        let (id, method, params) = (Id::Text("a".to_owned()), "m".to_owned(), json!({ "x": 1 }));
        assert_eq!(request, Ok(Message::Request { id, method, params }));
        // Without a version, without parameters, with a null id.
        let request = read(br#"{"id":null,"method":"m"}"#);
        let (id, method, params) = (Id::Null, "m".to_owned(), Value::Null);
        assert_eq!(
            request,
            Ok(Message::Request { id, method: method.clone(), params: params.clone() })
        );
        let notification = read(br#"{"jsonrpc":"2.0","method":"m"}"#);
        assert_eq!(notification, Ok(Message::Notification { method, params }));
        let response = read(br#"{"jsonrpc":"2.0","id":3,"result":{"y":2},"error":null}"#);
        let (id, outcome) = (Id::Number(3), Ok(json!({ "y": 2 })));
        assert_eq!(response, Ok(Message::Response { id, outcome }));
        let failed = read(br#"{"jsonrpc":"2.0","id":3,"error":{"code":-32601,"message":"no"}}"#);
        let (id, outcome) = (Id::Number(3), Err(RpcError::new(METHOD_NOT_FOUND, "no")));
        assert_eq!(failed, Ok(Message::Response { id, outcome }));
    }

    #[test]
    fn what_is_no_message_is_answered_under_its_id_where_that_can_be_read() {
        let text = |id: &str| Id::Text(id.to_owned());
        assert_eq!(error_of("log line"), (Id::Null, PARSE_ERROR));
        assert_eq!(
            error_of(r#"{"id":"x","method":"m","params":{"t":"\ud800"}}"#),
            (text("x"), PARSE_ERROR)
        );
        assert_eq!(error_of(r#"{"id":7,"method":"#), (Id::Number(7), PARSE_ERROR));
        assert_eq!(error_of(r#"[{"id":1,"method":"m"}]"#), (Id::Null, INVALID_REQUEST));
        assert_eq!(error_of("3"), (Id::Null, INVALID_REQUEST));
        assert_eq!(error_of(r#"{"id":1.5,"method":"m"}"#), (Id::Null, INVALID_REQUEST));
        assert_eq!(error_of(r#"{"id":1,"method":2}"#), (Id::Number(1), INVALID_REQUEST));
        assert_eq!(error_of(r#"{"result":1}"#), (Id::Null, INVALID_REQUEST));
        let cut = |start: &str, end: &str| {
            too_long(start.as_bytes(), end.as_bytes(), 9).expect_err("a request").id
        };
        assert_eq!(cut(r#"{"id":5,"params":"aaa"#, r#"aaa"}"#), Id::Number(5));
        for last in [r#""id":5}"#, r#""id":5,"jsonrpc":"2.0"}"#, r#""method":"m", "id" : 5 }"#] {
            let end = format!(r#"aa,\"id\":1}}"}},{last}"#);
            assert_eq!(cut(r#"{"params":{"x":"aaa"#, &end), Id::Number(5), "{last}");
        }
        // Of parameters, in a text, in a batch, cut off.
        for end in
            [r#",{"id":5}}"#, r#",[],"id":5}}"#, r#",\"id\":5}"}"#, r#"},{"id":5}]"#, r#","id":"5"#]
        {
            assert_eq!(cut(r#"{"params":{"x":"aaa"#, end), Id::Null, "{end}");
        }
        let deep = format!("{}{}", "[".repeat(1_000), "]".repeat(1_000));
        assert_eq!(error_of(&deep), (Id::Null, PARSE_ERROR));
    }

    #[test]
    fn a_response_that_can_not_be_read_is_a_failure_of_its_request() {
        let failed = |read: Result<Message, BadMessage>| {
            let Ok(Message::Response { id, outcome: Err(error) }) = read else {
                panic!("{read:?}")
            };
            (id, error.code)
        };
        let half = br#"{"jsonrpc":"2.0","id":3,"result":{"content":"\ud83d"}}"#;
        assert_eq!(failed(read(half)), (Id::Number(3), PARSE_ERROR));
        let half = br#"{"jsonrpc":"2.0","error":{"message":"\ud83d"},"id":"a"}"#;
        assert_eq!(failed(read(half)), (Id::Text("a".to_owned()), PARSE_ERROR));
        let latin = b"{\"id\":3,\"result\":{\"content\":\"\xe9\"}}";
        assert_eq!(failed(read(latin)), (Id::Number(3), PARSE_ERROR));
        let (start, end) = (br#"{"jsonrpc":"2.0","id":4,"result":{"content":"aaa"#, br#"aaa"}}"#);
        assert_eq!(failed(too_long(start, end, 9)), (Id::Number(4), INVALID_REQUEST));
        let (start, end) = (br#"{"jsonrpc":"2.0","result":{"content":"aaa"#, br#"aaa"},"id":4}"#);
        assert_eq!(failed(too_long(start, end, 9)), (Id::Number(4), INVALID_REQUEST));
        // Nothing says which request is meant, or it is one itself.
        assert!(too_long(start, br#"aaa"}}"#, 9).is_err());
        assert!(too_long(start, br#"aaa"},"id":4,"method":"m"}"#, 9).is_err());
        assert!(read(br#"{"id":3,"method":"m","result":"\ud83d"}"#).is_err());
    }

    #[test]
    fn a_line_in_another_encoding_is_called_that() {
        let bad = read(b"{\"id\":4,\"method\":\"m\xe9\"}").expect_err("Latin-1");
        assert_eq!((bad.id, bad.error.code), (Id::Number(4), PARSE_ERROR));
        let why = "the line is not UTF-8, so it was not read: invalid utf-8 sequence of 1 bytes from index 19; \
                   send it in UTF-8";
        assert_eq!(bad.error.message, why);
    }

    #[test]
    fn each_message_is_one_line_for_every_reader() {
        let mut lines = Vec::new();
        request(1, "m", &json!({ "text": "a\nb\u{2028}c" }), &mut lines);
        notification("n", &json!({}), &mut lines);
        response(&Id::Text("x".to_owned()), &Ok(json!({})), &mut lines);
        response(&Id::Null, &Err(RpcError::failed("why")), &mut lines);
        let expected = concat!(
            r#"{"jsonrpc":"2.0","id":1,"method":"m","params":{"text":"a\nb\u2028c"}}"#,
            "\n",
            r#"{"jsonrpc":"2.0","method":"n","params":{}}"#,
            "\n",
            r#"{"jsonrpc":"2.0","id":"x","result":{}}"#,
            "\n",
            r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32603,"message":"why","data":{"details":"why"}}}"#,
            "\n",
        );
        assert_eq!(String::from_utf8_lossy(&lines), expected);
    }
}
