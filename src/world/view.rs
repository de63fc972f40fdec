//! What was shown of the conversation so far, over all processes, and what must be true of what comes next.

use crate::conversation::entities::Entities;
use crate::host::{Effect, Effects};
use crate::protocol::any::Any;
use crate::protocol::constants::code;
use crate::protocol::proto::rpc::rpc_line::Frame as Body;
use crate::protocol::proto::rpc::{SnapshotEntity, SnapshotFrame};
use crate::protocol::wire::Frame;
use crate::store::stepped;
use serde_json::Value;
use std::collections::BTreeMap;

/// The ends of runs.
const RUN_ENDS: [&str; 3] = ["ChatRunFinished", "ChatRunStopped", "ChatRunFailed"];

const HEARTBEAT: &str = "Heartbeat";

#[derive(Debug, Default)]
pub(super) struct View {
    /// The conversation as the frames of this process show it.
    entities: Entities,
    /// The highest ordinal of an event that was shown.
    last: u64,
    /// Ordinals up to this one are never used again.
    floor: u64,
    /// What the process that ended has shown, until the next one has shown its state.
    expected: Option<Vec<SnapshotEntity>>,
    /// The events that must have survived.
    survived: u64,
    /// The program stores what it shows.
    pub(super) is_stored: bool,
    /// Requests that were handled, with the ends that were decided.
    handled: BTreeMap<String, u32>,
    /// An edit was handled and has no end yet: what it drops may be gone already.
    edits: Vec<String>,
    has_exited: bool,
    /// An edit was not answered when the process ended.
    may_be_dropped: bool,
}

impl View {
    /// What was shown is to be seen again by who comes next. `survived` is the last event that is sure to be there.
    pub(super) fn next(self, survived: u64, is_stored: bool) -> Self {
        // One that has shown nothing yet leaves what is expected of the next as it was.
        let (expected, survived) = match self.expected {
            Some(expected) => (expected, survived.min(self.survived)),
            None => (self.entities.finish().entities, survived),
        };
        Self {
            expected: is_stored.then_some(expected),
            floor: self.last.min(survived),
            last: self.last.min(survived),
            survived,
            is_stored,
            may_be_dropped: self.may_be_dropped || !self.edits.is_empty(),
            ..Self::default()
        }
    }

    /// Whether the state of an earlier process is still to be shown.
    pub(super) fn awaits_state(&self) -> bool {
        self.expected.is_some()
    }

    /// A request line was handled.
    pub(super) fn handled(&mut self, line: &str) {
        let Some(id) = id(line) else { return };
        self.handled.entry(id.clone()).or_default();
        if line.contains("\"edit\":") {
            self.edits.push(id);
        }
    }

    pub(super) fn has_handled(&self, line: &str) -> bool {
        id(line).is_none_or(|id| self.handled.contains_key(&id))
    }

    /// Requests that were handled, with how many ends they have.
    pub(super) fn requests(&self) -> &BTreeMap<String, u32> {
        &self.handled
    }

    /// Checks effects before they are performed.
    pub(super) fn effects(&mut self, effects: &Effects) -> Result<(), String> {
        let mut ending: Vec<&str> = Vec::new();
        for effect in &effects.list {
            match effect {
                Effect::Frame(frame) => {
                    if self.has_exited {
                        return Err("a frame comes after the end of the process".to_owned());
                    }
                    self.frame(frame)?;
                    if let Some(Body::UiEvent(event)) = &frame.frame
                        && RUN_ENDS.contains(&event.name.as_str())
                    {
                        ending.push(&frame.request_id);
                    }
                    if let Some(Body::Done(_)) = &frame.frame {
                        ending.retain(|id| *id != frame.request_id);
                    }
                }
                Effect::Warning(warning) => self.is_stored &= warning.code != code::STORE_FAILED,
                Effect::Exit(_) | Effect::Abort(_) => self.has_exited = true,
                Effect::Usage(_) | Effect::ToolImages(_) => {}
            }
        }
        match ending.first() {
            None => Ok(()),
            Some(id) => Err(format!("the end of the run of {id} and its done are two lists")),
        }
    }

    fn frame(&mut self, frame: &Frame) -> Result<(), String> {
        match &frame.frame {
            Some(Body::UiEvent(event)) => {
                let Some(payload) = event.payload.clone().map(Any::into_whole) else {
                    return Err(format!("the event {} says nothing", event.ordinal));
                };
                // A sign of life has the ordinal of the event before it, and shows nothing.
                if event.name != HEARTBEAT {
                    self.ordinal(event.ordinal)?;
                }
                self.entities.event(event.ordinal, &payload);
            }
            Some(Body::Snapshot(snapshot)) => self.snapshot(snapshot, &frame.request_id)?,
            Some(Body::Done(_)) => {
                self.edits.retain(|id| *id != frame.request_id);
                if let Some(ends) = self.handled.get_mut(&frame.request_id) {
                    *ends += 1;
                }
            }
            Some(Body::Error(error)) => self.is_stored &= error.code != code::STORE_FAILED,
            Some(Body::Hello(_) | Body::BackendEvent(_)) | None => {}
        }
        Ok(())
    }

    fn ordinal(&mut self, ordinal: u64) -> Result<(), String> {
        if ordinal <= self.floor {
            return Err(format!("the ordinal {ordinal} was used before, up to {}", self.floor));
        }
        let stored = stepped::disks().iter().map(|disk| disk.last).min();
        if self.is_stored && stored.is_none_or(|stored| ordinal > stored) {
            return Err(format!("the event {ordinal} is shown, and {stored:?} is stored"));
        }
        self.last = self.last.max(ordinal);
        Ok(())
    }

    fn snapshot(&mut self, snapshot: &SnapshotFrame, request: &str) -> Result<(), String> {
        let whole = whole(snapshot);
        if request.is_empty()
            && let Some(expected) = self.expected.take()
        {
            for entity in expected {
                if entity.last_event_ordinal <= self.survived {
                    self.survives(&entity, &whole)?;
                }
            }
            self.may_be_dropped = false;
        }
        self.entities.snapshot(whole);
        Ok(())
    }

    /// Checks that an entity that was shown is in the state of the next process.
    fn survives(&self, entity: &SnapshotEntity, snapshot: &SnapshotFrame) -> Result<(), String> {
        let is_same = |it: &&SnapshotEntity| it.kind == entity.kind && it.id == entity.id;
        let Some(found) = snapshot.entities.iter().find(is_same) else {
            return match self.may_be_dropped {
                true => Ok(()),
                false => Err(format!("{} {} was shown and is gone", entity.kind, entity.id)),
            };
        };
        let (before, now) = (text(entity), text(found));
        match now.starts_with(before) {
            true => Ok(()),
            false => Err(format!("{} had the text {before:?}, and now {now:?}", entity.id)),
        }
    }
}

/// The id of a request line; that of a line that is no request can't be read, perhaps.
fn id(line: &str) -> Option<String> {
    let request = serde_json::from_str::<Value>(line).ok()?;
    request["requestId"].as_str().map(str::to_owned)
}

fn text(entity: &SnapshotEntity) -> &str {
    if let Some(Any::ChatMessageEntity(message)) = &entity.payload {
        return &message.text;
    }
    if let Some(Any::ToolResultEntity(result)) = &entity.payload {
        return &result.result;
    }
    ""
}

/// The frame with copies of the texts that it shares with others.
fn whole(frame: &SnapshotFrame) -> SnapshotFrame {
    let mut frame = frame.clone();
    for entity in &mut frame.entities {
        entity.payload = entity.payload.take().map(Any::into_whole);
    }
    frame
}
