//! What the stream has told of the conversation since it began: what a snapshot must hold. Of each
//! entity only a hash and a length are kept.

use super::names::{Name, Namer, shown};
use super::rule::{Report, Rule};
use super::runs::Runs;
use super::words::{MESSAGE, TOOL_CALL, TOOL_RESULT};
use crate::any::Any;
use crate::proto::rpc::{SnapshotEntity, SnapshotFrame};
use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, RandomState};

/// Entities that are remembered; about 20 MB.
const ENTITIES_MAX: usize = 250_000;

/// The conversation, as far as it was told.
#[derive(Debug, Default)]
pub(super) struct Told {
    /// By the hash of kind and id.
    entities: HashMap<u64, Entity>,
    /// The newest run, and its entities.
    newest: Option<(u64, Vec<u64>)>,
    has_events: bool,
    is_too_wide: bool,
    hasher: RandomState,
}

#[derive(Clone, Copy, Debug)]
struct Entity {
    /// Where it was told first.
    line: u64,
    origin: Origin,
    text: Seen,
}

/// Who told of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Origin {
    /// A snapshot before all events: an earlier process has made it.
    Earlier,
    /// An event of the run of this request.
    Run(u64),
    /// A snapshot alone.
    Snapshot,
}

/// What is known of its text.
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

impl Told {
    /// Takes an event of the request.
    pub(super) fn event(&mut self, request: &Name, payload: &Any, line: u64) {
        self.has_events = true;
        let Some((kind, id, text)) = entity_of(payload) else { return };
        let text = match text {
            Text::Unknown => Seen::Nothing,
            Text::Open => Seen::Open,
            Text::Whole(text) => self.seen(text),
        };
        let key = match kind {
            TOOL_RESULT => self.key(kind, &format!("{id}:result")),
            _ => self.key(kind, id),
        };
        let origin = Origin::Run(request.key());
        let has_room = self.entities.contains_key(&key) || self.has_room();
        let known = self.entities.get_mut(&key);
        let is_new = known.as_ref().is_none_or(|known| known.origin != origin);
        match known {
            Some(known) => (known.origin, known.text) = (origin, text),
            None if !has_room => return,
            None => {
                self.entities.insert(key, Entity { line, origin, text });
            }
        }
        if is_new {
            match &mut self.newest {
                Some((run, keys)) if *run == request.key() => keys.push(key),
                newest => *newest = Some((request.key(), vec![key])),
            }
        }
    }

    /// Takes a snapshot; `run` is the request it belongs to, if that has a run.
    pub(super) fn snapshot(
        &mut self,
        frame: &SnapshotFrame,
        run: Option<&Name>,
        (runs, namer): (&Runs, &Namer),
        report: &mut Report,
    ) {
        let mut seen = HashSet::with_capacity(frame.entities.len());
        for entity in &frame.entities {
            let key = self.key(&entity.kind, &entity.id);
            if entity.tombstone {
                self.entities.remove(&key);
                continue;
            }
            seen.insert(key);
            self.compare(key, entity, (runs, namer), report);
        }
        self.check_lost(&seen, run, report);
        let origin = if self.has_events { Origin::Snapshot } else { Origin::Earlier };
        for key in seen {
            if !self.entities.contains_key(&key) && self.has_room() {
                let entity = Entity { line: report.line(), origin, text: Seen::Nothing };
                self.entities.insert(key, entity);
            }
        }
    }

    /// What was not looked at, for people.
    pub(super) fn note(&self) -> Option<String> {
        self.is_too_wide.then(|| {
            format!(
                "only the first {ENTITIES_MAX} messages and tool calls were looked for in snapshots"
            )
        })
    }

    fn compare(
        &self,
        key: u64,
        entity: &SnapshotEntity,
        (runs, namer): (&Runs, &Namer),
        report: &mut Report,
    ) {
        let told = entity.payload.as_ref().and_then(text_of);
        let (Some(known), Some(told)) = (self.entities.get(&key), told) else { return };
        let is_same = !is_torn(entity)
            && match known.text {
                Seen::Nothing => true,
                Seen::Open => {
                    runs.open_text(&namer.name(&entity.id)).is_none_or(|text| text.is(told))
                }
                Seen::Whole { bytes, hash } => bytes == told.len() && hash == self.hash(told),
            };
        if !is_same {
            let (id, bytes) = (shown(&entity.id), told.len());
            let message =
                format!("the text of {id}, {bytes} bytes, is not what the stream has told");
            report.add(Rule::SnapshotText, message);
        }
    }

    /// The snapshot of a run may hold what that run has told alone; any other holds everything.
    /// What is lost is told once.
    fn check_lost(&mut self, seen: &HashSet<u64>, run: Option<&Name>, report: &mut Report) {
        let is_of_others = |key| match (self.entities.get(key).map(|known| known.origin), run) {
            (Some(Origin::Run(of)), Some(run)) => of != run.key(),
            (Some(Origin::Earlier), _) => true,
            (Some(Origin::Run(_) | Origin::Snapshot) | None, _) => false,
        };
        let lost: Vec<u64> = match run {
            Some(run) if !seen.iter().any(is_of_others) => {
                let newest = self.newest.iter().filter(|(of, _)| *of == run.key());
                let lacks = |key: &&u64| !seen.contains(*key) && self.entities.contains_key(*key);
                newest.flat_map(|(_, keys)| keys).filter(lacks).copied().collect()
            }
            // Counted first: most snapshots lack nothing.
            Some(_) | None if self.count(seen) == self.entities.len() => return,
            Some(_) | None => {
                let keys = self.entities.keys();
                keys.filter(|key| !seen.contains(*key)).copied().collect()
            }
        };
        let lines = lost.iter().filter_map(|key| self.entities.remove(key)).map(|known| known.line);
        if let Some(first) = lines.min() {
            let count = lost.len();
            let message = format!(
                "the snapshot lacks {count} messages or tool calls that were told before, the \
                 first one in line {first}"
            );
            report.add(Rule::SnapshotLost, message);
        }
    }

    fn count(&self, seen: &HashSet<u64>) -> usize {
        seen.iter().filter(|key| self.entities.contains_key(key)).count()
    }

    fn has_room(&mut self) -> bool {
        self.is_too_wide |= self.entities.len() >= ENTITIES_MAX;
        !self.is_too_wide
    }

    fn key(&self, kind: &str, id: &str) -> u64 {
        self.hasher.hash_one((kind, id))
    }

    fn hash(&self, text: &str) -> u64 {
        self.hasher.hash_one(text)
    }

    fn seen(&self, text: &str) -> Seen {
        Seen::Whole { bytes: text.len(), hash: self.hash(text) }
    }
}

/// What an event tells of an entity's text.
enum Text<'a> {
    Unknown,
    Open,
    Whole(&'a str),
}

/// The entity that an event makes or changes: its kind, its id or its tool call's, and its text.
fn entity_of(payload: &Any) -> Option<(&'static str, &str, Text<'_>)> {
    if let Any::ChatUserMessageAccepted(it) = payload {
        let text = first(&[&it.text, &it.content, &it.prompt]);
        return Some((MESSAGE, &it.message_id, Text::Whole(text)));
    }
    if let Any::ChatTextSegmentStarted(it) = payload {
        return Some((MESSAGE, &it.message_id, Text::Open));
    }
    if let Any::ChatReasoningSegmentStarted(it) = payload {
        return Some((MESSAGE, &it.message_id, Text::Open));
    }
    if let Any::ChatTextSegmentFinished(it) = payload {
        return Some((MESSAGE, &it.message_id, Text::Whole(first(&[&it.text, &it.content]))));
    }
    if let Any::ChatReasoningSegmentFinished(it) = payload {
        return Some((MESSAGE, &it.message_id, Text::Whole(first(&[&it.text, &it.content]))));
    }
    if let Any::ChatToolCallStarted(it) = payload {
        return Some((TOOL_CALL, &it.tool_call_id, Text::Unknown));
    }
    if let Any::ChatToolCallRequested(it) = payload {
        return Some((TOOL_CALL, &it.tool_call_id, Text::Whole(&it.input)));
    }
    if let Any::ChatToolResultReady(it) = payload {
        return Some((TOOL_RESULT, &it.tool_call_id, Text::Whole(&it.result)));
    }
    None
}

/// The text of an entity.
fn text_of(payload: &Any) -> Option<&str> {
    if let Any::ChatMessageEntity(it) = payload {
        return Some(first(&[&it.text, &it.content, &it.prompt]));
    }
    if let Any::ToolCallEntity(it) = payload {
        return Some(&it.input);
    }
    if let Any::ToolResultEntity(it) = payload {
        return Some(&it.result);
    }
    None
}

/// Whether a message has one text in one place and another in the other.
fn is_torn(entity: &SnapshotEntity) -> bool {
    let Some(Any::ChatMessageEntity(it)) = &entity.payload else { return false };
    !it.text.is_empty() && !it.content.is_empty() && it.text != it.content
}

/// The first one that is not empty.
fn first<'a>(texts: &[&'a str]) -> &'a str {
    texts.iter().find(|text| !text.is_empty()).copied().unwrap_or_default()
}
