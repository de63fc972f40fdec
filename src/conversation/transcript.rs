//! The conversation as the model sees it: the turns so far, projected from the events.

mod for_summary;
mod messages;

pub(super) use messages::CLEARED_RESULT;
#[cfg(test)]
pub(super) use messages::INTERRUPTED_MARK;
pub use messages::Message;
#[cfg(test)]
pub(crate) use messages::NO_TEXT;
pub(crate) use messages::{INTERRUPTED_TOOL, LOST_ATTACHMENTS};

use super::compaction::{Compaction, Compactions};
use super::event::{
    Attachments, Ending, Event, FinishClass, ProviderData, Recorded, SegmentKind, ToolCall,
    ToolResult,
};
use crate::protocol::attachment::Attachment;
use crate::protocol::id::ToolCallId;
use crate::support::text::Text;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A conversation as it is sent to the model. Cheap to clone: turns are shared.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Transcript {
    preamble: Arc<Preamble>,
    turns: Vec<Arc<Turn>>,
    /// Turns beside these, which a call is not sent.
    left_out: usize,
    /// The last turn, if it failed without an answer: the model is not sent it, but its prompt may be
    /// asked again.
    failed: Option<Arc<Turn>>,
    /// The provider withheld the answer of the last call of the open turn, or a part of it.
    is_withheld: bool,
    /// What is sent in place of earlier turns and results.
    pub(super) compactions: Compactions,
}

/// The messages to the model before the first turn.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Preamble {
    /// The system prompt.
    pub system: Option<String>,
    /// Earlier messages, oldest first.
    pub history: Vec<HistoryMessage>,
}

/// A message from before this session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HistoryMessage {
    /// By the user.
    ByUser(String),
    /// By the model.
    ByModel(String),
    /// An instruction to the model.
    BySystem(String),
}

/// A prompt and the answer to it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Turn {
    /// Its number in the conversation, from 1.
    pub number: u32,
    /// The prompt as written; empty if the model was called with the earlier messages alone.
    pub prompt: Text,
    /// What goes with the prompt.
    pub attachments: Attachments,
    /// The parts of the turn after its prompt, in order.
    pub items: Vec<TurnItem>,
    /// The state of the turn.
    pub state: TurnState,
}

/// One part of a turn after its prompt.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum TurnItem {
    /// A text.
    Text {
        /// Number of its provider call, from 1; `None` if it was stored without one.
        round: Option<u32>,
        /// The text.
        text: Text,
    },
    /// A prompt that joined the turn, and what goes with it.
    Prompt(Text, Attachments),
    /// The provider's own data about the items since the previous item of this kind.
    ProviderData(ProviderData),
    /// A tool call.
    Called {
        /// Number of its provider call, from 1.
        round: u32,
        /// The call.
        tool: ToolCall,
        /// The arguments, as JSON text.
        input: String,
        /// The tool's output; `None` if there is none yet.
        result: Option<Arc<ToolResult>>,
    },
}

/// The state of a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TurnState {
    /// The model has not answered completely.
    Open,
    /// Answered.
    Finished,
    /// Stopped or failed before the end of the answer.
    Interrupted,
    /// The provider refused to answer. The model is not sent the turn again: with it, the provider would refuse the
    /// later ones, too.
    Refused,
}

impl Transcript {
    /// A conversation that consists of the preamble.
    pub fn new(preamble: Preamble) -> Self {
        Self { preamble: Arc::new(preamble), ..Self::default() }
    }

    /// Puts another preamble in the place of that of the conversation.
    pub(crate) fn begin_with(&mut self, preamble: Preamble) {
        self.preamble = Arc::new(preamble);
    }

    /// The messages before the first turn.
    pub(crate) fn preamble(&self) -> &Preamble {
        &self.preamble
    }

    /// The turns, oldest first; the last one is open while a run answers it.
    pub(crate) fn turns(&self) -> &[Arc<Turn>] {
        &self.turns
    }

    /// The summary that is sent in place of the earlier turns, if there is one.
    pub(crate) fn summary(&self) -> Option<&Compaction> {
        self.compactions.summary()
    }

    /// The turns that are sent as they are, oldest first.
    pub(crate) fn sent_turns(&self) -> impl Iterator<Item = &Arc<Turn>> {
        let through = self.summary().map_or(0, |summary| summary.through);
        let turns = self.turns[self.end_of(through)..].iter();
        turns.filter(|turn| turn.state != TurnState::Refused)
    }

    /// The conversation without the turns from that number on.
    pub(crate) fn without(&self, first: u32) -> Self {
        let mut rest = self.clone();
        rest.drop_turns(first);
        rest
    }

    fn drop_turns(&mut self, first: u32) {
        self.turns.truncate(self.end_of(first.saturating_sub(1)));
        self.failed.take_if(|turn| turn.number >= first);
        self.compactions_dropped(first);
    }

    /// How many turns have numbers up to that one. It is looked for from the end, so that a long conversation costs no
    /// more than a short one.
    fn end_of(&self, number: u32) -> usize {
        if number == 0 {
            return 0;
        }
        self.turns.iter().rposition(|turn| turn.number <= number).map_or(0, |at| at + 1)
    }

    /// How many turns there are, with those that are left out.
    pub(crate) fn turn_count(&self) -> usize {
        self.left_out + self.turns.len()
    }

    /// The conversation without the turns that a summary stands for, and without those that were refused: what a call
    /// is sent. Costs as much as that.
    pub(crate) fn sent(&self) -> Self {
        let turns: Vec<_> = self.sent_turns().cloned().collect();
        Self {
            preamble: Arc::clone(&self.preamble),
            left_out: self.turn_count() - turns.len(),
            turns,
            failed: self.failed.clone(),
            is_withheld: self.is_withheld,
            compactions: self.compactions.sent(),
        }
    }

    /// Whether the result of that call, of a turn that is sent, is left out.
    pub(crate) fn is_cleared(&self, call: &ToolCallId) -> bool {
        self.compactions.cleared.contains(call)
    }

    /// Whether a message from before the session is sent: a summary stands for all but instructions.
    pub(super) fn sends(&self, message: &HistoryMessage) -> bool {
        self.summary().is_none() || matches!(message, HistoryMessage::BySystem(_))
    }

    /// The turn of that number, if it is known: also one that failed, if it was the last.
    pub(crate) fn turn(&self, number: u32) -> Option<&Turn> {
        let mut turns = self.turns.iter().chain(&self.failed).rev();
        turns.find(|turn| turn.number == number).map(Arc::as_ref)
    }

    /// The number of the last turn.
    pub(crate) fn last_number(&self) -> Option<u32> {
        self.turns.last().into_iter().chain(&self.failed).map(|turn| turn.number).max()
    }

    /// The numbers of the turns from `first` on.
    pub(crate) fn numbers_from(&self, first: u32) -> impl Iterator<Item = u32> {
        let turns = &self.turns[self.end_of(first.saturating_sub(1))..];
        let failed = self.failed.iter().filter(move |turn| turn.number >= first);
        turns.iter().chain(failed).map(|turn| turn.number)
    }

    /// The results of tools that have images, by their calls.
    pub(crate) fn results_with_images(&self) -> BTreeMap<ToolCallId, Arc<ToolResult>> {
        let items = self.turns.iter().flat_map(|turn| &turn.items);
        let with_images = items.filter_map(|item| match item {
            TurnItem::Called { tool, result: Some(result), .. } if !result.images().is_empty() => {
                Some((tool.id.clone(), Arc::clone(result)))
            }
            TurnItem::Called { .. }
            | TurnItem::Text { .. }
            | TurnItem::Prompt(..)
            | TurnItem::ProviderData(_) => None,
        });
        with_images.collect()
    }

    /// Bytes of what goes with the prompts and is in the results of tools, beside texts.
    pub(crate) fn attached_bytes(&self) -> u64 {
        self.turns.iter().map(|turn| turn.attached_bytes()).sum()
    }

    /// Applies an event.
    pub(crate) fn apply(&mut self, recorded: &Recorded) {
        match &recorded.event {
            Event::PromptAccepted { prompt, attachments } => {
                // A turn without an end was cut off by an internal error.
                self.end(Ending::Failed);
                self.failed = None;
                self.compactions_settled();
                self.turns.push(Arc::new(Turn {
                    number: recorded.scope.turn,
                    prompt: prompt.clone(),
                    attachments: attachments.clone(),
                    items: Vec::new(),
                    state: TurnState::Open,
                }));
            }
            Event::PromptJoined { prompt, attachments, .. } => {
                self.push(TurnItem::Prompt(prompt.clone(), attachments.clone()));
            }
            Event::RepairRequested { reason, .. } => {
                self.push(TurnItem::Prompt(repair_prompt(reason).into(), Attachments::default()));
            }
            Event::SegmentFinished { segment, text, .. } => {
                self.answered(recorded.scope.call, segment.kind, text);
            }
            Event::CallFinished { class, provider_data, usage, .. } => {
                self.is_withheld = *class == FinishClass::ContentFilter;
                if let Some(data) = provider_data {
                    self.push(TurnItem::ProviderData(data.clone()));
                }
                let count = |tokens: i32| u64::try_from(tokens).unwrap_or_default();
                if let Some(usage) = usage {
                    self.counted(count(usage.input_tokens) + count(usage.output_tokens));
                }
            }
            Event::Compaction(event) => self.compaction(recorded, event),
            Event::ToolCallRequested { tool, input } => {
                self.called(recorded.scope.call, tool, input);
            }
            Event::ToolResultReady { tool, result } => self.returned(tool, result),
            Event::TurnDropped { .. } => self.drop_turns(recorded.scope.turn),
            Event::TurnImported(imported) => self.turns.extend(imported.turn.clone()),
            Event::RunFinished { .. } => self.end(Ending::Finished),
            Event::RunStopped { .. } => self.end(Ending::Stopped),
            Event::RunFailed { .. } => self.end(Ending::Failed),
            Event::RunStarted { .. }
            | Event::CallStarted
            | Event::SegmentStarted { .. }
            | Event::SegmentPatched { .. }
            | Event::ToolCallStarted { .. }
            | Event::ToolArgumentsPatched { .. }
            | Event::ToolExecutionStarted { .. }
            | Event::ToolProgressed { .. }
            | Event::ToolCallFinished { .. }
            | Event::CallMetadataUpdated { .. }
            | Event::ApprovalRequested { .. }
            | Event::ApprovalResolved { .. }
            | Event::ClientCallRequested { .. }
            | Event::ClientResultReceived { .. }
            | Event::Call(_)
            | Event::Session(_) => {}
        }
    }

    /// Leaves out what providers on other hosts than `host` wrote for themselves: nobody else can read
    /// it, and it may hold what the user did not mean for others.
    pub(crate) fn leave_out_data_of_others(&mut self, host: &str) {
        self.leave_out(|item| matches!(item, TurnItem::ProviderData(data) if &*data.host != host));
    }

    /// Leaves out what all providers wrote for themselves.
    pub(crate) fn leave_out_provider_data(&mut self) {
        self.leave_out(|item| matches!(item, TurnItem::ProviderData(_)));
    }

    /// Leaves out the images in the results of tools; the texts have notes in their places.
    pub(crate) fn leave_out_tool_images(&mut self) {
        for turn in &mut self.turns {
            if turn.items.iter().all(|item| item.tool_images().is_empty()) {
                continue;
            }
            for item in &mut Arc::make_mut(turn).items {
                if let TurnItem::Called { result: Some(result), .. } = item {
                    *result = Arc::new(ToolResult::clone(result).without_images());
                }
            }
        }
    }

    fn leave_out(&mut self, is_meant: impl Fn(&TurnItem) -> bool) {
        for turn in &mut self.turns {
            if turn.items.iter().any(&is_meant) {
                Arc::make_mut(turn).items.retain(|item| !is_meant(item));
            }
        }
    }

    fn answered(&mut self, round: u32, kind: SegmentKind, text: &Text) {
        // Reasoning is shown to people but not sent back: providers expect only the answers.
        let SegmentKind::Text = kind else { return };
        if !text.is_empty() {
            self.push(TurnItem::Text { round: Some(round), text: text.clone() });
        }
    }

    fn called(&mut self, round: u32, tool: &ToolCall, input: &str) {
        let (tool, input) = (tool.clone(), input.to_owned());
        self.push(TurnItem::Called { round, tool, input, result: None });
    }

    fn returned(&mut self, returned: &ToolCall, with: &Arc<ToolResult>) {
        let Some(turn) = self.open() else { return };
        for item in turn.items.iter_mut().rev() {
            if let TurnItem::Called { tool, result, .. } = item
                && tool.id == returned.id
            {
                *result = Some(Arc::clone(with));
                return;
            }
        }
    }

    fn end(&mut self, ending: Ending) {
        let is_withheld = std::mem::take(&mut self.is_withheld);
        let Some(turn) = self.open() else { return };
        turn.state = match ending {
            Ending::Finished if is_withheld && !is_answered(&turn.items) => TurnState::Refused,
            Ending::Finished => TurnState::Finished,
            Ending::Stopped | Ending::Failed => TurnState::Interrupted,
        };
        // If a prompt whose run failed without text were kept, it would be answered twice.
        if ending == Ending::Failed && turn.items.iter().all(TurnItem::is_blank) {
            self.failed = self.turns.pop();
        }
    }

    fn push(&mut self, item: TurnItem) {
        if let Some(turn) = self.open() {
            turn.items.push(item);
        }
    }

    fn open(&mut self) -> Option<&mut Turn> {
        let turn = self.turns.last_mut().filter(|turn| turn.state == TurnState::Open)?;
        Some(Arc::make_mut(turn))
    }
}

impl TurnItem {
    /// Number of the provider call that this text or tool call is of, if it is known.
    pub(crate) fn round(&self) -> Option<u32> {
        match self {
            Self::Called { round, .. } => Some(*round),
            Self::Text { round, .. } => *round,
            Self::Prompt(..) | Self::ProviderData(_) => None,
        }
    }

    /// The images in the result of a tool call.
    fn tool_images(&self) -> &[Attachment] {
        match self {
            Self::Called { result: Some(result), .. } => result.images(),
            Self::Called { result: None, .. }
            | Self::Text { .. }
            | Self::Prompt(..)
            | Self::ProviderData(_) => &[],
        }
    }

    /// What goes with a prompt, or is in the result of a tool call.
    pub(crate) fn attachments(&self) -> &[Attachment] {
        match self {
            Self::Prompt(_, attachments) => attachments,
            Self::Text { .. } | Self::ProviderData(_) | Self::Called { .. } => self.tool_images(),
        }
    }

    pub(super) fn is_blank(&self) -> bool {
        match self {
            Self::Text { text, .. } => text.trim().is_empty(),
            Self::ProviderData(_) => true,
            Self::Prompt(..) | Self::Called { .. } => false,
        }
    }
}

impl Turn {
    fn attached_bytes(&self) -> u64 {
        let later = self.items.iter().flat_map(TurnItem::attachments);
        self.attachments.iter().chain(later).map(Attachment::len_bytes).sum()
    }
}

/// Whether the model has said something in the items of a turn, or called a tool.
pub(super) fn is_answered(items: &[TurnItem]) -> bool {
    items.iter().any(|item| !item.is_blank() && !matches!(item, TurnItem::Prompt(..)))
}

/// Asks the model for an answer that is what was asked for. The event doesn't say whether that has a schema.
pub(super) fn repair_prompt(reason: &str) -> String {
    format!(
        "That answer can't be used: {reason}. Answer again, with one JSON value, which must match \
         the schema if there is one, and with nothing else."
    )
}
