//! The conversation that the stream has shown so far, which snapshots must contain. Of each entity
//! only hashes and numbers are kept.

mod part;

use super::attachments::{Hashed, attachments_of};
use super::change::{Change, Text, change_of, text_of};
use super::fields::Fields;
use super::names::{Name, Namer, shown};
use super::rule::{Report, Rule};
use super::runs::Runs;
use crate::protocol::any::Any;
use crate::protocol::command::Page;
use crate::protocol::constants::{ending, finish, kind, role};
use crate::protocol::proto::chat::CorrelationInfo;
use crate::protocol::proto::rpc::{SnapshotEntity, SnapshotFrame};
use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, RandomState};

/// Entities that are remembered; about 40 MB.
const ENTITIES_MAX: usize = 250_000;

/// The conversation shown so far.
#[derive(Clone, Debug, Default)]
pub(super) struct Conversation {
    /// By the hash of kind and id.
    entities: HashMap<u64, Entity>,
    /// The newest run, and its entities.
    newest: Option<(u64, Vec<u64>)>,
    /// The segment that the last event has finished. The end of its call says whether it was cut off.
    finished: Option<u64>,
    has_events: bool,
    is_too_wide: bool,
    /// Snapshots that have a part of the conversation.
    parts: u64,
    /// What was dropped, as its tombstones have it: when it was created, and when it was dropped.
    dropped: HashMap<u64, (u64, u64)>,
    /// Something was said in an earlier process.
    is_resumed: bool,
    hasher: RandomState,
}

/// Whom a snapshot is for.
#[derive(Clone, Copy, Debug)]
pub(super) enum SnapshotOf<'a> {
    /// The run of this request has ended.
    Run(&'a Name),
    /// A request for it, which may have asked for a part; which one, if that is known.
    Request(Option<&'a Page>),
    /// The process begins or ends with it.
    Process,
}

#[derive(Clone, Copy, Debug)]
struct Entity {
    /// Where it was first shown.
    line: u64,
    origin: Origin,
    text: Seen,
    created: u64,
    changed: u64,
    /// Hashes of its status, of its prompt or tool name, and of its ids.
    status: u64,
    repeated: u64,
    ids: Option<u64>,
    /// Hash of the id of its turn, if that is known.
    turn: Option<u64>,
    attachments: u64,
    is_cut_off: bool,
}

/// The frame that first showed an entity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Origin {
    /// A snapshot before all events: the entity is from an earlier process.
    Earlier,
    /// An event of the run of this request.
    Run(u64),
    /// A snapshot, but no event.
    Snapshot,
}

/// What is known of the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Seen {
    Nothing,
    /// It is being streamed.
    Open,
    Whole {
        bytes: usize,
        hash: u64,
    },
}

/// The place of an event in the stream.
#[derive(Clone, Copy, Debug)]
pub(super) struct Position<'a> {
    pub(super) request: &'a Name,
    pub(super) ordinal: u64,
    pub(super) line: u64,
}

/// Whether entities of this kind are no part of what was said, and only shown to clients that have asked for them.
fn is_apart(kind: &str) -> bool {
    matches!(kind, kind::TOOL_APPROVAL | kind::COMPACTION)
}

impl Conversation {
    /// Whether something was said before the stream begins.
    pub(super) fn is_resumed(&self) -> bool {
        self.is_resumed
    }

    /// Applies an event.
    pub(super) fn event(&mut self, at: Position<'_>, payload: &Any, fields: &Fields<'_>) {
        self.has_events = true;
        if fields.name == "ChatRunStarted" {
            self.identify_prompt(at.request, fields);
        }
        if let Any::SteeringAccepted(joined) = payload {
            self.identify_joined(&joined.message_id, fields);
        }
        self.find_cut_off(payload);
        let Some(change) = change_of(payload) else { return };
        let key = self.key(change.kind, &change.id);
        if change.is_new {
            self.add(key, at, &change, (payload, fields));
        } else {
            self.change(key, at, &change);
        }
    }

    /// Checks a snapshot.
    pub(super) fn snapshot(
        &mut self,
        frame: &SnapshotFrame,
        of: SnapshotOf<'_>,
        (runs, namer): (&Runs, &Namer),
        report: &mut Report,
    ) {
        self.is_resumed |= !self.has_events && frame.snapshot_ordinal > 0;
        let mut seen = HashSet::with_capacity(frame.entities.len());
        for entity in &frame.entities {
            if entity.kind == kind::TOOL_APPROVAL {
                part::check_approval(entity, (runs, namer), report);
            }
            if is_apart(&entity.kind) {
                continue;
            }
            let key = self.key_of(entity);
            if entity.tombstone {
                self.tombstone(key, entity, report);
                continue;
            }
            seen.insert(key);
            match self.entities.get(&key) {
                Some(known) => self.compare(known, entity, (runs, namer), report),
                None => self.add_shown(key, entity, report.line()),
            }
        }
        let run = match of {
            SnapshotOf::Run(name) => Some(name),
            SnapshotOf::Request(Some(page)) => return self.check_page(page, frame, report),
            SnapshotOf::Request(None) if self.is_part(&seen) => {
                self.parts += 1;
                return;
            }
            SnapshotOf::Request(None) | SnapshotOf::Process => None,
        };
        self.check_lost(&seen, run, report);
    }

    /// What was not checked, for the summary.
    pub(super) fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if self.is_too_wide {
            notes.push(format!(
                "snapshots were only checked for the first {ENTITIES_MAX} messages and tool calls"
            ));
        }
        if self.parts > 0 {
            let count = self.parts;
            notes.push(format!(
                "{count} snapshots have a part of the conversation: right for a request with \
                 sinceOrdinal, limit or beforeOrdinal, wrong for any other"
            ));
        }
        notes
    }

    /// The prompt's event comes before the event that names its run.
    fn identify_prompt(&mut self, request: &Name, fields: &Fields<'_>) {
        let (ids, turn) = (self.ids(fields.ids()), self.turn(fields));
        let Some((run, keys)) = &self.newest else { return };
        if *run == request.key() {
            for key in keys {
                if let Some(entity) = self.entities.get_mut(key) {
                    entity.ids = entity.ids.or(Some(ids));
                    entity.turn = entity.turn.or(turn);
                }
            }
        }
    }

    /// The event of a prompt that joined a run names no ids; the event after it does.
    fn identify_joined(&mut self, message: &str, fields: &Fields<'_>) {
        let (key, ids) = (self.key(kind::MESSAGE, message), self.ids(fields.ids()));
        if let Some(entity) = self.entities.get_mut(&key) {
            entity.ids = entity.ids.or(Some(ids));
        }
    }

    /// The segment that ends with a call that was cut off is the incomplete one.
    fn find_cut_off(&mut self, payload: &Any) {
        let segment = self.finished.take();
        self.finished = match payload.name() {
            "ChatTextSegmentFinished" | "ChatReasoningSegmentFinished" => {
                change_of(payload).map(|change| self.key(change.kind, &change.id))
            }
            "ChatProviderCallMetadataUpdated" | "ObjectExtracted" | "LineRejected" => segment,
            _ => None,
        };
        if let Any::ChatProviderCallFinished(it) = payload
            && matches!(&*it.finish_class, finish::MAX_TOKENS | finish::CONTENT_FILTER)
            && let Some(entity) = segment.and_then(|key| self.entities.get_mut(&key))
        {
            entity.is_cut_off = true;
        }
    }

    fn add(
        &mut self,
        key: u64,
        at: Position<'_>,
        change: &Change<'_>,
        (payload, fields): (&Any, &Fields<'_>),
    ) {
        if !self.entities.contains_key(&key) && !self.has_room() {
            return;
        }
        let run = at.request.key();
        let line = self.entities.get(&key).map_or(at.line, |known| known.line);
        let entity = Entity {
            line,
            origin: Origin::Run(run),
            text: self.seen(change.text),
            created: at.ordinal,
            changed: at.ordinal,
            status: self.hash(change.status),
            repeated: self.hash(change.repeated),
            ids: fields.ids().map(|ids| self.ids(Some(ids))),
            turn: self.turn(fields),
            attachments: self.attachments(payload),
            is_cut_off: false,
        };
        self.entities.insert(key, entity);
        match &mut self.newest {
            Some((newest, keys)) if *newest == run => keys.push(key),
            newest => *newest = Some((run, vec![key])),
        }
    }

    fn change(&mut self, key: u64, at: Position<'_>, change: &Change<'_>) {
        let text = self.seen(change.text);
        let status = self.hash(change.status);
        let Some(entity) = self.entities.get_mut(&key) else { return };
        entity.changed = at.ordinal;
        if !matches!(change.text, Text::Same) {
            entity.text = text;
        }
        // A lean patch has none.
        if !change.status.is_empty() {
            entity.status = status;
        }
    }

    /// An event changes an entity of which only a snapshot in the middle of its run was seen.
    pub(super) fn forget(&mut self, payload: &Any) {
        if let Some(change) = change_of(payload) {
            self.entities.remove(&self.key(change.kind, &change.id));
        }
    }

    /// The arguments of a tool call will not grow any more.
    pub(super) fn settle_arguments(&mut self, id: &str, arguments: Option<&str>) {
        let key = self.key(kind::TOOL_CALL, id);
        let text = arguments.map_or(Seen::Nothing, |text| self.seen(Text::Whole(text)));
        if let Some(call) = self.entities.get_mut(&key).filter(|call| call.text == Seen::Open) {
            call.text = text;
        }
    }

    /// Adds an entity that no event has shown.
    fn add_shown(&mut self, key: u64, entity: &SnapshotEntity, line: u64) {
        let Some(payload) = &entity.payload else { return };
        if !self.has_room() {
            return;
        }
        let origin = if self.has_events { Origin::Snapshot } else { Origin::Earlier };
        let (fields, text) = (Fields::of(payload), text_of(payload));
        let entity = Entity {
            line,
            origin,
            text: text.map_or(Seen::Nothing, |text| self.seen(Text::Whole(text))),
            created: entity.created_ordinal,
            changed: entity.last_event_ordinal,
            status: self.hash(fields.status()),
            repeated: self.hash(repeated_of(&fields)),
            ids: Some(self.ids(fields.ids())),
            turn: self.turn(&fields),
            attachments: self.attachments(payload),
            is_cut_off: has_error(payload).unwrap_or_default(),
        };
        self.entities.insert(key, entity);
    }

    fn compare(
        &self,
        known: &Entity,
        entity: &SnapshotEntity,
        (runs, namer): (&Runs, &Namer),
        report: &mut Report,
    ) {
        let Some(payload) = &entity.payload else { return };
        let Some(text) = text_of(payload) else { return };
        let (id, fields) = (shown(&entity.id), Fields::of(payload));
        let is_same = match known.text {
            Seen::Nothing => true,
            Seen::Open => runs.open_text(&namer.name(&entity.id)).is_none_or(|open| open.is(text)),
            Seen::Whole { bytes, hash } => bytes == text.len() && hash == self.hash(text),
        };
        if !is_same {
            let bytes = text.len();
            let message =
                format!("the text of {id:?}, {bytes} bytes, differs from the text in the stream");
            report.add(Rule::SnapshotText, message);
        }
        let (created, changed) = (entity.created_ordinal, entity.last_event_ordinal);
        if (created, changed) != (known.created, known.changed) {
            let message = format!(
                "entity {id:?} was created at {} and changed at {}, not at {created} and {changed}",
                known.created, known.changed
            );
            report.add(Rule::SnapshotEntity, message);
        }
        if self.hash(fields.status()) != known.status {
            let message = format!("the status of {id:?} differs from its last event");
            report.add(Rule::SnapshotEntity, message);
        }
        if self.hash(repeated_of(&fields)) != known.repeated {
            let message = format!("the prompt or toolName of {id:?} differs from its events");
            report.add(Rule::FieldChanged, message);
        }
        if known.ids.is_some_and(|ids| ids != self.ids(fields.ids())) {
            let message = format!("the correlation of {id:?} differs from its events");
            report.add(Rule::Correlation, message);
        }
        if self.attachments(payload) != known.attachments {
            let message = format!("the attachments of {id:?} differ from those that were shown");
            report.add(Rule::Attachments, message);
        }
        if let Some(has_error) = has_error(payload).filter(|has| *has != known.is_cut_off) {
            let message = match has_error {
                true => format!("{id:?} has an error, but was not cut off"),
                false => format!("{id:?} was cut off, but has no error"),
            };
            report.add(Rule::CutOff, message);
        }
    }

    fn count(&self, seen: &HashSet<u64>) -> usize {
        seen.iter().filter(|key| self.entities.contains_key(key)).count()
    }

    fn has_room(&mut self) -> bool {
        self.is_too_wide |= self.entities.len() + self.dropped.len() >= ENTITIES_MAX;
        !self.is_too_wide
    }

    /// The key of an entity, for the id in its event.
    fn key_of(&self, entity: &SnapshotEntity) -> u64 {
        self.key(&entity.kind, &entity.id)
    }

    fn key(&self, kind: &str, id: &str) -> u64 {
        self.hasher.hash_one((kind, id))
    }

    fn hash(&self, text: &str) -> u64 {
        self.hasher.hash_one(text)
    }

    fn attachments(&self, payload: &Any) -> u64 {
        self.hasher.hash_one(Hashed(attachments_of(payload)))
    }

    /// Its session was checked with its payload.
    fn ids(&self, ids: Option<&CorrelationInfo>) -> u64 {
        let ids = ids.map(|ids| {
            (&ids.run_id, &ids.turn_id, &ids.provider_call_id, &ids.segment_id, &ids.tool_call_id)
        });
        self.hasher.hash_one(ids)
    }

    fn turn(&self, fields: &Fields<'_>) -> Option<u64> {
        let id = fields.ids().map(|ids| &*ids.turn_id).filter(|id| !id.is_empty())?;
        Some(self.hash(id))
    }

    fn seen(&self, text: Text<'_>) -> Seen {
        match text {
            Text::Unknown | Text::Same => Seen::Nothing,
            Text::Open => Seen::Open,
            Text::Whole(text) => Seen::Whole { bytes: text.len(), hash: self.hash(text) },
        }
    }
}

/// The part of the run's prompt, or of the tool's name, that an entity repeats.
fn repeated_of<'a>(fields: &Fields<'a>) -> &'a str {
    fields.tool_name.or(fields.prompt).unwrap_or_default()
}

/// Whether a finished message of the model has an error. Of other messages the contract does not fix
/// it.
fn has_error(payload: &Any) -> Option<bool> {
    let Any::ChatMessageEntity(it) = payload else { return None };
    let is_answer = matches!(&*it.role, role::ASSISTANT | role::THINKING);
    (is_answer && it.status == ending::FINISHED).then_some(!it.error.is_empty())
}
