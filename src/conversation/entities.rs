//! The conversation as frames show it: its entities, made of snapshots and UI events, whichever program
//! wrote them. Pure.

mod contradiction;
mod tools;

pub(crate) use contradiction::Contradiction;
pub(super) use tools::result_id;

use super::patch::apply_piece;
use super::ui::cut_off_text;
use crate::protocol::any::Any;
use crate::protocol::constants::{SEGMENT_REASONING, SEGMENT_TEXT, finish, kind, message, role};
use crate::protocol::proto::chat::{self, ChatMessageEntity, CorrelationInfo};
use crate::protocol::proto::rpc::{SnapshotEntity, SnapshotFrame};
use crate::protocol::proto::session::TurnDropped;
use std::collections::{HashMap, HashSet};

/// Entities, as far as the frames so far show them.
#[derive(Debug, Default)]
pub(crate) struct Entities {
    /// In the order in which they were first shown. A removed entity is a tombstone.
    list: Vec<SnapshotEntity>,
    /// Where each stands in the list, by kind and id.
    places: HashMap<(String, String), usize>,
    /// Ordinal of the last event that is included.
    ordinal: u64,
    /// The highest ordinal that was seen.
    last: u64,
    /// How runs ended, by their ids.
    ends: HashMap<String, End>,
    /// The run that goes on.
    run: Option<Run>,
    /// Prompts whose run is not known yet.
    unplaced: Vec<usize>,
    /// The segment that the last event finished, and the provider's reason.
    finished: Option<(usize, String)>,
    /// The provider withheld the answer of the last call, or a part of it.
    is_withheld: bool,
    /// The stages of tool calls that events have shown, by call: each comes once.
    stages: HashSet<(String, tools::ToolStage)>,
    /// The first contradiction in the frames.
    contradiction: Option<Contradiction>,
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Finished,
    /// Finished, and the provider withheld the last answer, or a part of it.
    Withheld,
    Stopped,
    Failed(String),
}

#[derive(Debug)]
struct Run {
    root: String,
    ids: CorrelationInfo,
}

/// What frames have shown.
#[derive(Debug)]
pub(crate) struct Shown {
    /// In the order of their creation.
    pub(crate) entities: Vec<SnapshotEntity>,
    /// Ordinal of the last event that is included.
    pub(crate) ordinal: u64,
    /// How runs ended, by their ids; those that ended before the first frame are not among them.
    pub(crate) ends: HashMap<String, End>,
    /// The run that has no end.
    pub(crate) open: Option<String>,
}

impl Shown {
    /// How many tool results have no call: a transcript can't have them, so the model is not sent them.
    pub(crate) fn results_without_calls(&self) -> usize {
        let (mut calls, mut results) = (HashSet::new(), Vec::new());
        for payload in self.entities.iter().filter_map(|entity| entity.payload.as_ref()) {
            if let Any::ToolCallEntity(it) = payload {
                calls.insert(&it.tool_call_id);
            } else if let Any::ToolResultEntity(it) = payload {
                results.push(&it.tool_call_id);
            }
        }
        results.into_iter().filter(|id| !calls.contains(id)).count()
    }
}

impl Entities {
    /// What there is after the last frame.
    pub(crate) fn finish(self) -> Shown {
        let mut entities = self.list;
        entities.retain(|entity| !entity.tombstone);
        entities.sort_by_key(|entity| entity.created_ordinal);
        let ordinal = self.last.max(self.ordinal);
        Shown { entities, ordinal, ends: self.ends, open: self.run.map(|run| run.ids.run_id) }
    }

    /// Takes in a snapshot. One that has only part of the conversation leaves the rest as it is.
    pub(crate) fn snapshot(&mut self, mut frame: SnapshotFrame) {
        if !self.may_have(frame.snapshot_ordinal) {
            return;
        }
        self.ordinal = self.ordinal.max(frame.snapshot_ordinal);
        // A question that is answered later, and what the model is sent: no part of the conversation.
        let is_apart = |kind: &str| matches!(kind, kind::TOOL_APPROVAL | kind::COMPACTION);
        frame.entities.retain(|entity| !is_apart(&entity.kind));
        self.check_snapshot(&frame.entities);
        for entity in frame.entities {
            let key = (entity.kind.clone(), entity.id.clone());
            match self.places.get(&key).and_then(|&at| self.list.get_mut(at)) {
                Some(known) => *known = entity,
                None => self.push(entity),
            }
        }
    }

    /// Takes in a UI event; returns whether it is one of the conversation. One that was shown before, as in
    /// two recordings that overlap, changes nothing.
    pub(crate) fn event(&mut self, ordinal: u64, payload: &Any) -> bool {
        if !self.may_have(ordinal) {
            return false;
        }
        self.last = self.last.max(ordinal);
        if let Any::TurnDropped(dropped) = payload {
            self.ordinal = self.ordinal.max(ordinal);
            return self.dropped(dropped);
        }
        // Events of extensions share the ordinal of the event that they belong to, and change nothing.
        if ordinal <= self.ordinal || !payload.name().starts_with("Chat") {
            return false;
        }
        self.ordinal = ordinal;
        let segment = self.finished.take();
        let is_known = self.of_run(payload)
            || self.of_message(payload)
            || self.of_tool(payload)
            || self.of_call(payload, segment.as_ref());
        let is_metadata = matches!(payload, Any::ChatProviderCallMetadataUpdated(_));
        if !is_known && is_metadata {
            self.finished = segment;
        }
        true
    }

    /// The last turns are gone.
    fn dropped(&mut self, dropped: &TurnDropped) -> bool {
        let results = dropped.tool_call_ids.iter().map(|id| (kind::TOOL_RESULT, result_id(id)));
        let calls = dropped.tool_call_ids.iter().map(|id| (kind::TOOL_CALL, id.clone()));
        let messages = dropped.message_ids.iter().map(|id| (kind::MESSAGE, id.clone()));
        self.stages.retain(|(call, _)| !dropped.tool_call_ids.contains(call));
        for (kind, id) in messages.chain(calls).chain(results) {
            let at = self.places.get(&(kind.to_owned(), id));
            if let Some(entity) = at.and_then(|&at| self.list.get_mut(at)) {
                entity.tombstone = true;
            }
        }
        true
    }

    /// Prompts, the beginning and the end of a run, and the beginnings of its calls.
    #[expect(clippy::wildcard_enum_match_arm, reason = "all others are of a message or of a tool")]
    fn of_run(&mut self, payload: &Any) -> bool {
        match payload {
            Any::ChatUserMessageAccepted(it) => self.prompt(it),
            Any::ChatRunStarted(it) => {
                let ids = it.correlation.clone().unwrap_or_default();
                for at in std::mem::take(&mut self.unplaced) {
                    self.place(at, &ids);
                }
                self.run = Some(Run { root: it.message_id.clone(), ids });
            }
            Any::ChatProviderCallStarted(it) => {
                if let (Some(run), Some(ids)) = (&mut self.run, &it.correlation) {
                    run.ids = ids.clone();
                }
            }
            Any::ChatRunFinished(it) => {
                let end = if self.is_withheld { End::Withheld } else { End::Finished };
                self.ended(it.correlation.as_ref(), end);
            }
            Any::ChatRunStopped(it) => self.ended(it.correlation.as_ref(), End::Stopped),
            Any::ChatRunFailed(it) => self.failed(it),
            _ => return false,
        }
        true
    }

    fn prompt(&mut self, it: &chat::ChatUserMessageAccepted) {
        let text = [&it.text, &it.content, &it.prompt].into_iter().find(|text| !text.is_empty());
        let text = text.cloned().unwrap_or_default();
        let entity = ChatMessageEntity {
            message_id: it.message_id.clone(),
            role: role::USER.to_owned(),
            prompt: text.clone(),
            text: text.clone(),
            content: text,
            status: message::ACCEPTED.to_owned(),
            r#final: true,
            attachments: it.attachments.clone(),
            ..Default::default()
        };
        let at = self.message(entity);
        match &self.run {
            Some(run) => self.place(at, &run.ids.clone()),
            None => self.unplaced.push(at),
        }
    }

    /// The event of a prompt does not say which run it belongs to.
    fn place(&mut self, at: usize, ids: &CorrelationInfo) {
        if let Some(Any::ChatMessageEntity(it)) =
            self.list.get_mut(at).and_then(|entity| entity.payload.as_mut())
        {
            it.correlation = Some(ids.clone());
        }
    }

    fn ended(&mut self, ids: Option<&CorrelationInfo>, end: End) {
        self.is_withheld = false;
        let run = self.run.take();
        let id = ids.map(|ids| &ids.run_id).or(run.as_ref().map(|run| &run.ids.run_id));
        if let Some(id) = id {
            self.ends.insert(id.clone(), end);
        }
    }

    fn failed(&mut self, it: &chat::ChatRunFailed) {
        let entity = ChatMessageEntity {
            message_id: it.message_id.clone(),
            role: role::ERROR.to_owned(),
            text: it.error.clone(),
            content: it.error.clone(),
            status: message::FAILED.to_owned(),
            error: it.error.clone(),
            r#final: true,
            correlation: it.correlation.clone(),
            ..Default::default()
        };
        self.message(entity);
        self.ended(it.correlation.as_ref(), End::Failed(it.error.clone()));
    }

    /// Segments.
    #[expect(clippy::wildcard_enum_match_arm, reason = "all others are of no segment")]
    fn of_message(&mut self, payload: &Any) -> bool {
        match payload {
            Any::ChatTextSegmentStarted(it) => {
                let begun = self.text_segment(&it.message_id, &it.role, &it.correlation);
                self.message(ChatMessageEntity { prompt: it.prompt.clone(), ..begun });
            }
            Any::ChatReasoningSegmentStarted(it) => {
                let begun = self.reasoning_segment(&it.message_id, &it.role, &it.correlation);
                self.message(begun);
            }
            Any::ChatTextPatch(it) => {
                let segment = self.text_segment(&it.message_id, &it.role, &it.correlation);
                self.patch(segment, &it.text, it.mode);
            }
            Any::ChatReasoningPatch(it) => {
                let segment = self.reasoning_segment(&it.message_id, &it.role, &it.correlation);
                self.patch(segment, &it.text, it.mode);
            }
            Any::ChatTextSegmentFinished(it) => {
                let segment = self.text_segment(&it.message_id, &it.role, &it.correlation);
                let segment = ChatMessageEntity { prompt: it.prompt.clone(), ..segment };
                self.end_segment(segment, (&it.status, &it.text, &it.finish_reason));
            }
            Any::ChatReasoningSegmentFinished(it) => {
                let segment = self.reasoning_segment(&it.message_id, &it.role, &it.correlation);
                self.end_segment(segment, (&it.status, &it.text, &it.finish_reason));
            }
            _ => return false,
        }
        true
    }

    fn text_segment(
        &self,
        message_id: &str,
        role: &str,
        ids: &Option<CorrelationInfo>,
    ) -> ChatMessageEntity {
        self.segment(message_id, (role, role::ASSISTANT, SEGMENT_TEXT), ids)
    }

    fn reasoning_segment(
        &self,
        message_id: &str,
        role: &str,
        ids: &Option<CorrelationInfo>,
    ) -> ChatMessageEntity {
        self.segment(message_id, (role, role::THINKING, SEGMENT_REASONING), ids)
    }

    /// The message of a segment at its beginning.
    fn segment(
        &self,
        message_id: &str,
        (role, own_role, segment_type): (&str, &str, &str),
        ids: &Option<CorrelationInfo>,
    ) -> ChatMessageEntity {
        let of_ids = ids.as_ref().and_then(|ids| number_at_end(&ids.segment_id));
        let number = of_ids.or(number_at_end(message_id)).unwrap_or_default();
        ChatMessageEntity {
            message_id: message_id.to_owned(),
            role: if role.is_empty() { own_role } else { role }.to_owned(),
            status: message::STREAMING.to_owned(),
            streaming: true,
            parent_message_id: self.run.as_ref().map(|run| run.root.clone()).unwrap_or_default(),
            segment: number,
            segment_type: segment_type.to_owned(),
            correlation: ids.clone().or_else(|| self.run.as_ref().map(|run| run.ids.clone())),
            ..Default::default()
        }
    }

    fn patch(&mut self, segment: ChatMessageEntity, piece: &str, mode: i32) {
        let at = self.known(segment);
        self.change(at, |message| {
            apply_piece(&mut message.text, piece, mode);
            message.content.clone_from(&message.text);
        });
    }

    fn end_segment(&mut self, segment: ChatMessageEntity, end: (&str, &str, &str)) {
        let (status, text, reason) = end;
        let at = self.known(segment);
        self.change(at, |message| {
            if !text.is_empty() {
                text.clone_into(&mut message.text);
                text.clone_into(&mut message.content);
            }
            status.clone_into(&mut message.status);
            (message.streaming, message.r#final) = (false, true);
        });
        self.finished = Some((at, reason.to_owned()));
    }

    /// A segment that was shown; if its beginning was not, it begins here.
    fn known(&mut self, begun: ChatMessageEntity) -> usize {
        let key = (kind::MESSAGE.to_owned(), begun.message_id.clone());
        match self.places.get(&key) {
            Some(&at) => at,
            None => self.message(begun),
        }
    }

    /// Changes a message, by the current event.
    fn change(&mut self, at: usize, change: impl FnOnce(&mut ChatMessageEntity)) {
        let Some(entity) = self.list.get_mut(at) else { return };
        entity.last_event_ordinal = self.ordinal;
        if let Some(Any::ChatMessageEntity(message)) = &mut entity.payload {
            change(message);
        }
    }

    /// A segment that a limit cut off is known by the end of its provider call.
    fn of_call(&mut self, payload: &Any, segment: Option<&(usize, String)>) -> bool {
        let Any::ChatProviderCallFinished(it) = payload else { return false };
        self.is_withheld = it.finish_class == finish::CONTENT_FILTER;
        if matches!(&*it.finish_class, finish::MAX_TOKENS | finish::CONTENT_FILTER)
            && let Some((at, reason)) = segment
            && let Some(entity) = self.list.get_mut(*at)
            && let Some(Any::ChatMessageEntity(message)) = &mut entity.payload
        {
            let reason = if reason.is_empty() { &it.stop_reason } else { reason };
            message.error = cut_off_text(reason);
        }
        true
    }

    fn message(&mut self, message: ChatMessageEntity) -> usize {
        self.add(kind::MESSAGE, message.message_id.clone(), message.into())
    }

    /// Adds an entity that the current event creates.
    fn add(&mut self, kind: &str, id: String, payload: Any) -> usize {
        self.check_new(kind, &id);
        let ordinals = (self.ordinal, self.ordinal);
        self.push(SnapshotEntity::new(kind, id, ordinals, Some(payload)));
        self.list.len() - 1
    }

    fn push(&mut self, entity: SnapshotEntity) {
        self.places.insert((entity.kind.clone(), entity.id.clone()), self.list.len());
        self.list.push(entity);
    }
}

impl SnapshotEntity {
    /// An entity with the ordinals of the events that created it and changed it last.
    pub(super) fn new(
        kind: &str,
        id: String,
        (created_ordinal, last_event_ordinal): (u64, u64),
        payload: Option<Any>,
    ) -> Self {
        let (kind, tombstone) = (kind.to_owned(), false);
        Self { kind, id, created_ordinal, last_event_ordinal, tombstone, payload }
    }

    /// The ids of the run, turn and call that it is of, if it has some.
    pub(super) fn correlation(&self) -> Option<&CorrelationInfo> {
        match &self.payload {
            Some(Any::ChatMessageEntity(it)) => it.correlation.as_ref(),
            Some(Any::ToolCallEntity(it)) => it.correlation.as_ref(),
            Some(Any::ToolResultEntity(it)) => it.correlation.as_ref(),
            Some(_) | None => None,
        }
    }
}

/// The number at the end of an id: `segment-2`.
pub(super) fn number_at_end<N: std::str::FromStr>(id: &str) -> Option<N> {
    id.rsplit_once('-')?.1.parse().ok()
}
