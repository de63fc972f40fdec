//! The conversation as a person sees it: messages, tool calls and tool results, with their current
//! state. `apply` the events, and take a `snapshot` at any time.

mod approvals;
mod compactions;
mod dropping;

mod on_wire;

mod imported;

mod page;

pub(crate) use approvals::approval_id;
pub(crate) use compactions::compacted;
pub(crate) use dropping::{LastTurns, turn_id, turn_number};

use approvals::Approval;
use compactions::ShownCompaction;

use super::event::{Ending, Event, Recorded, Scope, Segment, SegmentKind, ToolCall, ToolResult};
use super::log::CUT_OFF;
use super::transcript::HistoryMessage;
use super::ui::{FIRST_PROMPT, shown};
use crate::protocol::attachment::Attachment;
use crate::protocol::command::Page;
use crate::protocol::id::{Ids, Ordinal, RunId, SessionId};
use crate::protocol::proto::chat::ChatAttachment;
use crate::protocol::proto::rpc::{SnapshotEntity, SnapshotFrame};
use crate::support::text::Text;
use std::sync::Arc;

/// The conversation so far.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Timeline {
    ordinal: Ordinal,
    entities: Vec<Entity>,
    /// Calls that wait for approval, in the order in which it was requested.
    approvals: Vec<Approval>,
    /// Compactions, oldest first.
    compactions: Vec<ShownCompaction>,
    /// Tombstones of those that were undone, in that order.
    undone: Vec<SnapshotEntity>,
    /// Tombstones of what was dropped, in that order.
    dropped: Vec<SnapshotEntity>,
}

/// How much of the conversation a snapshot holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Span {
    /// The whole conversation.
    Conversation,
    /// The entities of the newest run.
    LastTurn,
    /// The part that a client asks for.
    Page(Page),
}

#[derive(Clone, Debug, PartialEq)]
struct Entity {
    scope: Scope,
    created: Ordinal,
    changed: Ordinal,
    body: Body,
}

#[derive(Clone, Debug, PartialEq)]
enum Body {
    Prompt {
        text: Text,
        /// As they are shown: the model's turns alone keep their bytes.
        attachments: Arc<[ChatAttachment]>,
        number: u32,
        /// The process ended before an answer.
        is_cut_off: bool,
    },
    Segment {
        segment: Segment,
        prompt: Text,
        text: Text,
        state: SegmentState,
    },
    Failure {
        error: String,
    },
    Tool {
        tool: ToolCall,
        input: String,
        state: ToolState,
    },
    ToolResult {
        tool: ToolCall,
        result: Arc<ToolResult>,
    },
    /// An entity of another session, as its frames showed it.
    Imported(Box<SnapshotEntity>),
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum SegmentState {
    Streaming,
    Ended {
        ending: Ending,
        /// Why it was cut off, in the provider's word; or that its process ended.
        cut_off: Option<String>,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ToolState {
    Pending,
    StreamingArguments,
    Executing,
    Completed,
}

/// The turn of messages before the first prompt.
const HISTORY_TURN: u32 = 0;

impl Timeline {
    /// A conversation with these earlier messages, which have ordinal 0. Each
    /// message has the id of a run of its own. System messages are not shown.
    pub(crate) fn with_history(history: &[HistoryMessage], ids: &mut Ids) -> Self {
        let mut timeline = Self::default();
        for message in history {
            let body = match message {
                HistoryMessage::BySystem(_) => continue,
                HistoryMessage::ByUser(text) => {
                    Body::prompt(&text.as_str().into(), &[], FIRST_PROMPT)
                }
                HistoryMessage::ByModel(text) => Body::Segment {
                    segment: Segment { number: 1, kind: SegmentKind::Text },
                    prompt: Text::default(),
                    text: text.as_str().into(),
                    state: SegmentState::Ended { ending: Ending::Finished, cut_off: None },
                },
            };
            let scope = Scope { run: ids.run(), turn: HISTORY_TURN, call: 0 };
            let (created, changed) = (Ordinal::default(), Ordinal::default());
            timeline.entities.push(Entity { scope, created, changed, body });
        }
        timeline
    }

    /// Applies an event. Events must come in the order of their ordinals.
    pub(crate) fn apply(&mut self, recorded: &Recorded) {
        self.ordinal = recorded.ordinal;
        match &recorded.event {
            Event::PromptAccepted { prompt, attachments } => {
                self.add(recorded, Body::prompt(prompt, attachments, FIRST_PROMPT));
            }
            Event::PromptJoined { prompt, attachments, number } => {
                self.add(recorded, Body::prompt(prompt, attachments, *number));
            }
            Event::SegmentStarted { segment, prompt } => {
                self.add(recorded, Body::segment(*segment, prompt));
            }
            Event::SegmentPatched { segment, text: piece, .. } => {
                self.segment(recorded, *segment, |text, _| text.push_str(piece));
            }
            Event::SegmentFinished {
                segment,
                status,
                text: whole,
                finish_reason,
                is_cut_off,
                ..
            } => {
                let cut_off = is_cut_off.then(|| finish_reason.clone());
                self.segment(recorded, *segment, |text, state| {
                    // The log of a run that has ended has no patches.
                    if text.len() < whole.len() {
                        text.clone_from(whole);
                    }
                    *state = SegmentState::Ended { ending: *status, cut_off };
                });
            }
            Event::ToolCallStarted { tool } => self.add(recorded, Body::tool(tool)),
            Event::ToolArgumentsPatched { tool, text, .. } => {
                self.tool(recorded, tool, ToolState::StreamingArguments, |input| {
                    input.push_str(text);
                });
            }
            Event::ToolCallRequested { tool, input: whole } => {
                self.tool(recorded, tool, ToolState::Pending, |input| input.clone_from(whole));
            }
            Event::ToolExecutionStarted { tool, .. } => {
                self.tool(recorded, tool, ToolState::Executing, |_| {});
            }
            Event::ToolResultReady { tool, result } => {
                self.add(recorded, Body::ToolResult { tool: tool.clone(), result: result.clone() })
            }
            Event::ToolCallFinished { tool, partial_input } => {
                self.tool(recorded, tool, ToolState::Completed, |input| {
                    if input.is_empty() {
                        input.clone_from(partial_input);
                    }
                });
            }
            Event::RunFailed { error } => {
                self.add(recorded, Body::Failure { error: error.clone() });
            }
            Event::RunStopped { reason } => self.stopped(recorded, reason),
            Event::TurnImported(turn) => self.import(recorded.scope, &turn.entities),
            Event::TurnDropped { .. } => {
                self.drop_turns(recorded.scope.turn, recorded.ordinal);
            }
            Event::ApprovalRequested { tool, server, input } => {
                self.approval_requested(recorded, tool, (server, input));
            }
            Event::ApprovalResolved { tool, .. } => self.approval_resolved(tool),
            Event::Compaction(event) => self.compaction(recorded, event),
            Event::RunStarted { .. }
            | Event::RepairRequested { .. }
            | Event::CallStarted
            | Event::ClientCallRequested { .. }
            | Event::ClientResultReceived { .. }
            | Event::ToolProgressed { .. }
            | Event::CallMetadataUpdated { .. }
            | Event::CallFinished { .. }
            | Event::RunFinished { .. }
            | Event::Call(_)
            | Event::Session(_) => {}
        }
    }

    /// The text so far of a segment of `run`; empty if there is no such segment.
    pub(crate) fn text(&self, run: RunId, wanted: Segment) -> Text {
        let newest = self.entities.iter().rev().take_while(|entity| entity.scope.run == run);
        let mut texts = newest.filter_map(|entity| {
            let Body::Segment { segment, text, .. } = &entity.body else { return None };
            (*segment == wanted).then(|| text.clone())
        });
        texts.next().unwrap_or_default()
    }

    /// The current state, entities in the order of their creation.
    pub(crate) fn snapshot(&self, session: &SessionId, span: Span) -> SnapshotFrame {
        let entities = match span {
            Span::Conversation => self.entities.as_slice(),
            Span::LastTurn => self.last_turn(),
            Span::Page(page) => {
                let entities = self.page(session, &page);
                return SnapshotFrame { snapshot_ordinal: self.ordinal.0, entities };
            }
        };
        let entities = entities.iter().map(|entity| entity.on_wire(session));
        SnapshotFrame { snapshot_ordinal: self.ordinal.0, entities: entities.collect() }
    }

    /// How many entities there are.
    pub(crate) fn len(&self) -> usize {
        self.entities.len()
    }

    fn last_turn(&self) -> &[Entity] {
        let Some(last) = self.entities.last() else { return &[] };
        let start = self.entities.iter().rposition(|entity| entity.scope.run != last.scope.run);
        &self.entities[start.map_or(0, |before| before + 1)..]
    }

    fn add(&mut self, recorded: &Recorded, body: Body) {
        let Recorded { ordinal, scope, .. } = *recorded;
        self.entities.push(Entity { scope, created: ordinal, changed: ordinal, body });
    }

    /// A run was stopped. If the cause was the end of its process, the entity of the interrupted text is
    /// marked, or, if there is no text, that of the prompt.
    fn stopped(&mut self, recorded: &Recorded, reason: &str) {
        if reason != CUT_OFF {
            return;
        }
        for entity in self.newest_first(recorded) {
            if let Body::Segment { state, .. } = &mut entity.body
                && let SegmentState::Ended { ending: Ending::Stopped, cut_off } = state
            {
                entity.changed = recorded.ordinal;
                *cut_off = Some(reason.to_owned());
                return;
            }
        }
        if self.newest_first(recorded).next().is_some_and(|newest| newest.body.is_answer()) {
            return;
        }
        for entity in self.newest_first(recorded) {
            if let Body::Prompt { is_cut_off, .. } = &mut entity.body {
                entity.changed = recorded.ordinal;
                *is_cut_off = true;
                return;
            }
        }
    }

    fn segment(
        &mut self,
        recorded: &Recorded,
        wanted: Segment,
        change: impl FnOnce(&mut Text, &mut SegmentState),
    ) {
        for entity in self.newest_first(recorded) {
            if let Body::Segment { segment, text, state, .. } = &mut entity.body
                && *segment == wanted
            {
                entity.changed = recorded.ordinal;
                return change(text, state);
            }
        }
    }

    fn tool(
        &mut self,
        recorded: &Recorded,
        wanted: &ToolCall,
        next: ToolState,
        change: impl FnOnce(&mut String),
    ) {
        for entity in self.newest_first(recorded) {
            if let Body::Tool { tool, input, state } = &mut entity.body
                && tool.id == wanted.id
            {
                entity.changed = recorded.ordinal;
                *state = next;
                return change(input);
            }
        }
    }

    /// The entities of the run that `recorded` belongs to, newest first: what changes is among them.
    fn newest_first(&mut self, recorded: &Recorded) -> impl Iterator<Item = &mut Entity> {
        let run = recorded.scope.run;
        self.entities.iter_mut().rev().take_while(move |entity| entity.scope.run == run)
    }
}

impl Body {
    fn prompt(text: &Text, attachments: &[Attachment], number: u32) -> Self {
        let attachments = shown(attachments).into();
        Self::Prompt { text: text.clone(), attachments, number, is_cut_off: false }
    }

    /// Whether it answers the prompt of its run, at least in part.
    fn is_answer(&self) -> bool {
        let is_text = |segment: &Segment| segment.kind == SegmentKind::Text;
        matches!(self, Self::Failure { .. })
            || matches!(self, Self::Segment { segment, .. } if is_text(segment))
    }

    fn segment(segment: Segment, prompt: &Text) -> Self {
        let (text, state) = (Text::default(), SegmentState::Streaming);
        Self::Segment { segment, prompt: prompt.clone(), text, state }
    }

    fn tool(tool: &ToolCall) -> Self {
        Self::Tool { tool: tool.clone(), input: String::new(), state: ToolState::Pending }
    }
}
