//! What fuzz targets check of the messages of editors.

use super::connection::{Action, Connection};
use super::jsonrpc::{self, Id, Message};
use crate::protocol::id::SessionId;

/// Bytes of the end of a line that is cut off.
const END_BYTES_MAX: usize = 1024;

/// Checks that each line is answered as JSON-RPC demands: a request by one response or one session, anything
/// else by none; a line that is no message by one error.
pub(crate) fn lines(input: &[u8]) {
    let mut connection = Connection::new(true);
    for (number, line) in input.split(|byte| *byte == b'\n').enumerate() {
        if line.trim_ascii().is_empty() {
            continue;
        }
        let message = match jsonrpc::read(line) {
            Ok(message) => message,
            Err(bad) => {
                response(&bad.id, &Err(bad.error));
                continue;
            }
        };
        let asked =
            if let Message::Request { id, .. } = &message { Some(id.clone()) } else { None };
        let is_response = matches!(message, Message::Response { .. });
        let actions = connection.message(message, || fresh(number));
        assert!(actions.len() <= 1);
        assert!(asked.is_none() || actions.len() == 1, "no action for {asked:?}");
        for action in actions {
            let of = match action {
                Action::Respond(id, outcome) => {
                    response(&id, &outcome);
                    Some(id)
                }
                Action::Open(to_open) => Some(to_open.request),
                Action::List(id, _) | Action::Delete(id, _) => Some(id),
                Action::Pass(_, _) | Action::PassAll(_) => asked.clone(),
            };
            assert!(of == asked || is_response, "{of:?} in place of {asked:?}");
        }
    }
    let (start, end) = input.split_at(input.len() / 2);
    let end = &end[end.len().saturating_sub(END_BYTES_MAX)..];
    if let Err(bad) = jsonrpc::too_long(start, end, start.len()) {
        response(&bad.id, &Err(bad.error));
    }
}

fn fresh(number: usize) -> SessionId {
    SessionId::new(&format!("s{number}")).unwrap_or_else(|| unreachable!("it is an id"))
}

/// Checks that a response is one line, which has the id of its request.
fn response(id: &Id, outcome: &Result<serde_json::Value, jsonrpc::RpcError>) {
    let mut lines = Vec::new();
    jsonrpc::response(id, outcome, &mut lines);
    let line = lines.strip_suffix(b"\n").expect("a line");
    assert!(!line.contains(&b'\n'));
    let Ok(Message::Response { id: same, .. }) = jsonrpc::read(line) else {
        panic!("no response: {}", String::from_utf8_lossy(line));
    };
    assert_eq!(same, *id);
}

/// Reads a message, for measurements.
#[cfg(test)]
pub(crate) fn read(line: &[u8]) {
    drop(jsonrpc::read(line));
}
