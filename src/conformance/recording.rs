//! The conversation in recorded lines of the protocol: frames, and among them perhaps the requests.
//! Pure.

use super::check::{is_cut_off, read_frame};
use super::events::BadLine;
use crate::conversation::entities::{Entities, Shown};
use crate::protocol::any::read_message;
use crate::protocol::proto::rpc::rpc_line::Frame as Body;
use crate::protocol::proto::rpc::{RpcLine, RpcRequestLine};
use std::collections::BTreeSet;

/// A recording, line by line.
#[derive(Debug, Default)]
pub(crate) struct Recording {
    entities: Entities,
    line: u64,
    sessions: BTreeSet<String>,
    greeted: String,
    damage: Option<String>,
    events: UiEvents,
}

/// The ordinals of UI events: each event of the conversation comes once, in the order of the ordinals.
#[derive(Debug, Default)]
struct UiEvents {
    last: u64,
    /// The names of the events with the last ordinal.
    names: Vec<&'static str>,
    repeats: Option<Repeats>,
}

/// Events that an earlier line has too, as where two recordings overlap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Repeats {
    pub(crate) first_line: u64,
    pub(crate) events: u64,
}

/// What was recorded.
#[derive(Debug)]
pub(crate) struct Recorded {
    pub(crate) shown: Shown,
    /// The ids of the sessions in it, of which there should be one.
    pub(crate) sessions: Vec<String>,
    /// The first line that contradicts those before it, and how.
    pub(crate) damage: Option<String>,
    /// The events that were left out, because an earlier line has them.
    pub(crate) repeats: Option<Repeats>,
}

impl UiEvents {
    /// Notes the event `name` of the conversation, in `line`.
    fn add(&mut self, ordinal: u64, name: &'static str, line: u64) {
        if ordinal > self.last {
            self.last = ordinal;
            self.names.clear();
        } else if ordinal < self.last || self.names.contains(&name) {
            let repeats = self.repeats.get_or_insert(Repeats { first_line: line, events: 0 });
            repeats.events += 1;
            return;
        }
        self.names.push(name);
    }
}

impl Recording {
    /// Reads the next line, without its line feed.
    ///
    /// # Errors
    /// If the line is neither a frame nor a request.
    pub(crate) fn line(&mut self, line: &[u8]) -> Result<(), BadLine> {
        self.line += 1;
        if line.iter().all(u8::is_ascii_whitespace) {
            return Ok(());
        }
        match read_frame(line) {
            Ok(frame) => self.frame(frame),
            Err(_) if is_request(line) => {}
            Err(reason) => return Err(self.skipped(reason)),
        }
        Ok(())
    }

    /// A line of more than `bytes_max` bytes, which was not buffered.
    pub(crate) fn long_line(&mut self, bytes_max: usize) -> BadLine {
        self.line += 1;
        self.skipped(format!("it has more than {bytes_max} bytes"))
    }

    /// Reads the text after the last line feed.
    ///
    /// # Errors
    /// If it is not whole, or no frame.
    pub(crate) fn tail(&mut self, tail: &[u8]) -> Result<(), BadLine> {
        let is_cut_off = is_cut_off(tail);
        self.line(tail).map_err(|skipped| BadLine { is_cut_off, ..skipped })
    }

    /// What was recorded.
    pub(crate) fn finish(self) -> Recorded {
        let mut sessions: Vec<_> = self.sessions.into_iter().collect();
        if sessions.is_empty() && !self.greeted.is_empty() {
            sessions.push(self.greeted);
        }
        let (shown, repeats) = (self.entities.finish(), self.events.repeats);
        Recorded { shown, sessions, damage: self.damage, repeats }
    }

    fn frame(&mut self, frame: RpcLine) {
        let RpcLine { session_id, frame, .. } = frame;
        let is_conversation = match frame {
            // The first request may give the session another id than `hello` has.
            Some(Body::Hello(_)) => {
                self.greeted.clone_from(&session_id);
                false
            }
            Some(Body::Snapshot(snapshot)) => {
                let has_entities = !snapshot.entities.is_empty();
                self.entities.snapshot(snapshot);
                has_entities
            }
            Some(Body::UiEvent(event)) => event.payload.is_some_and(|it| {
                if it.name().starts_with("Chat") {
                    self.events.add(event.ordinal, it.name(), self.line);
                }
                self.entities.event(event.ordinal, &it)
            }),
            Some(Body::BackendEvent(event)) => {
                event.payload.is_some_and(|it| self.entities.event(event.ordinal, &it))
            }
            Some(Body::Error(_) | Body::Done(_)) | None => false,
        };
        if let (None, Some(why)) = (&self.damage, self.entities.contradiction()) {
            self.damage = Some(format!("line {}: {why}", self.line));
        }
        if is_conversation && !session_id.is_empty() {
            self.sessions.insert(session_id);
        }
    }

    fn skipped(&self, reason: String) -> BadLine {
        BadLine { line: self.line, reason, is_cut_off: false }
    }
}

/// Whether the line is a request, which shows nothing of the conversation that its frames don't.
fn is_request(line: &[u8]) -> bool {
    let read = std::str::from_utf8(line).ok().map(read_message::<RpcRequestLine>);
    matches!(read, Some(Ok(RpcRequestLine { request: Some(_), .. })))
}
