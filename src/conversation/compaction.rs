//! What the model is sent in place of earlier turns and results of tools, and how many tokens it is sent: as its
//! provider has counted, with an estimate for what came after. Pure.

use super::event::{Recorded, ToolResult};
use super::transcript::{HistoryMessage, Transcript, Turn, TurnItem};
use crate::protocol::attachment::Attachment;
use crate::protocol::id::ToolCallId;
use crate::protocol::proto::session::{CompactionProposed, CompactionStarted};
use crate::support::text::Text;
use std::collections::HashSet;
use std::sync::Arc;

/// Bytes of text in a token, about: fewer than in English prose, so that a request is rather found too long.
const BYTES_PER_TOKEN: u64 = 3;

/// Tokens of a message besides its text, about.
const TOKENS_PER_MESSAGE: u64 = 5;

/// Tokens of an image or a file, about: providers count them by their size in pixels or pages.
const TOKENS_PER_ATTACHMENT: u64 = 1_600;

/// What becomes of a compaction.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum CompactionEvent {
    /// The client is to decide about it.
    Proposed(Box<CompactionProposed>),
    /// It began.
    Started(Box<CompactionStarted>),
    /// It was made.
    Done(Arc<Compaction>),
    /// It was not made.
    Failed {
        /// Why, for people.
        reason: String,
    },
}

/// What the model is sent in place of earlier turns and results.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Compaction {
    /// Number of the last turn that the summary stands for; 0 if there is no summary.
    pub through: u32,
    /// The summary.
    pub summary: Text,
    /// Calls whose results are left out.
    pub cleared: Vec<ToolCallId>,
    /// Tokens that the model would have been sent before.
    pub tokens_before: u64,
    /// Tokens that it would be sent with it.
    pub tokens_after: u64,
}

/// The compactions of a conversation, and the tokens that a provider has counted.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Compactions {
    /// Each with the turn in which it was made, oldest first.
    made: Vec<(u32, Arc<Compaction>)>,
    /// Calls whose results are left out, of the turns that are sent.
    pub(super) cleared: Arc<HashSet<ToolCallId>>,
    /// The last count.
    counted: Option<Counted>,
    /// One is being made: its calls count nothing of the conversation.
    is_open: bool,
}

/// Tokens that the model was sent and has answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Counted {
    tokens: u64,
    /// The last turn then, and the estimate of it.
    turn: u32,
    estimate: u64,
}

impl Compactions {
    /// The newest summary.
    pub(super) fn summary(&self) -> Option<&Compaction> {
        self.made.get(self.last_summary()?).map(|(_, made)| &**made)
    }

    /// Where the newest compaction with a summary is. There are few after it.
    fn last_summary(&self) -> Option<usize> {
        self.made.iter().rposition(|(_, made)| made.through > 0)
    }

    /// What a call must know of them: the newest summary, and what came after it. In a conversation without end, there
    /// are ever more before that.
    pub(super) fn sent(&self) -> Self {
        let first = self.last_summary().unwrap_or_default();
        Self {
            made: self.made[first..].to_vec(),
            cleared: Arc::clone(&self.cleared),
            counted: self.counted,
            is_open: self.is_open,
        }
    }

    /// Drops those that were made in the turns from `first` on, and a count that is of one of them.
    fn drop_from(&mut self, first: u32) {
        let before = self.made.len();
        while self.made.pop_if(|(turn, _)| *turn >= first).is_some() {}
        let is_grown = self.made.len() < before;
        self.counted.take_if(|counted| counted.turn >= first || is_grown);
        if is_grown {
            self.clear();
        }
    }

    /// A result of a turn that is sent was left out in that turn or after it, so after the turns that the summary
    /// stands for.
    fn clear(&mut self) {
        let through = self.summary().map_or(0, |summary| summary.through);
        let made = self.made.iter().rev().take_while(|(turn, _)| *turn > through);
        let cleared = made.flat_map(|(_, made)| made.cleared.iter().cloned());
        self.cleared = Arc::new(cleared.collect());
    }
}

impl Transcript {
    /// Applies what becomes of a compaction.
    pub(super) fn compaction(&mut self, recorded: &Recorded, event: &CompactionEvent) {
        match event {
            CompactionEvent::Proposed(_) => {}
            CompactionEvent::Started(_) => self.compactions.is_open = true,
            CompactionEvent::Failed { .. } => self.compactions.is_open = false,
            CompactionEvent::Done(made) => {
                self.compactions.is_open = false;
                self.compactions.made.push((recorded.scope.turn, Arc::clone(made)));
                self.compactions.clear();
                self.count(made.tokens_after);
            }
        }
    }

    /// The turns from `first` on were dropped.
    pub(super) fn compactions_dropped(&mut self, first: u32) {
        self.compactions.drop_from(first);
    }

    /// A run has begun: no compaction of an earlier one goes on.
    pub(super) fn compactions_settled(&mut self) {
        self.compactions.is_open = false;
    }

    /// The provider has counted a call.
    pub(super) fn counted(&mut self, tokens: u64) {
        if !self.compactions.is_open && tokens > 0 {
            self.count(tokens);
        }
    }

    fn count(&mut self, tokens: u64) {
        let last = self.turns().last();
        let (turn, estimate) = last.map_or((0, 0), |turn| (turn.number, self.turn_tokens(turn)));
        self.compactions.counted = Some(Counted { tokens, turn, estimate });
    }

    /// Tokens that the model would be sent: as the last call was counted, with an estimate for what came
    /// after it.
    pub(crate) fn tokens(&self) -> u64 {
        let Some(Counted { tokens, turn, estimate }) = self.compactions.counted else {
            return self.estimate();
        };
        let later = self.turns().iter().rev().take_while(|it| it.number >= turn);
        let later: u64 = later.map(|it| self.turn_tokens(it)).sum();
        tokens.saturating_add(later.saturating_sub(estimate))
    }

    /// An estimate of the tokens that the model would be sent.
    pub(crate) fn estimate(&self) -> u64 {
        let preamble = self.preamble();
        let texts = preamble.system.iter().map(String::len);
        let history = preamble.history.iter().filter(|it| self.sends(it)).map(|it| it.text().len());
        let summary = self.summary().map(|it| it.summary.len());
        let texts: u64 = texts.chain(history).chain(summary).map(text_tokens).sum();
        self.sent_turns().map(|turn| self.turn_tokens(turn)).sum::<u64>().saturating_add(texts)
    }

    /// An estimate of the tokens before the first turn that is sent, which another summary replaces: the summary,
    /// or the earlier messages.
    pub(crate) fn replaced_tokens(&self) -> u64 {
        if let Some(summary) = self.summary() {
            return text_tokens(summary.summary.len());
        }
        let earlier = self.preamble().history.iter();
        let earlier = earlier.filter(|it| !matches!(it, HistoryMessage::BySystem(_)));
        earlier.map(|it| text_tokens(it.text().len())).sum()
    }

    /// An estimate of the tokens of a turn, as the model is sent it.
    pub(crate) fn turn_tokens(&self, turn: &Turn) -> u64 {
        let prompt = prompt_tokens(turn.prompt.len(), &turn.attachments);
        let items = turn.items.iter().map(|item| match item {
            TurnItem::Text { text, .. } => text_tokens(text.len()),
            TurnItem::Prompt(text, attachments) => prompt_tokens(text.len(), attachments),
            // Signed reasoning, most of all.
            TurnItem::ProviderData(data) => text_tokens(data.json.len()),
            TurnItem::Called { tool, input, result, .. } => {
                let is_cleared = self.compactions.cleared.contains(&tool.id);
                let result = result.as_ref().filter(|_| !is_cleared);
                text_tokens(tool.name.len() + input.len())
                    + result.map_or(TOKENS_PER_MESSAGE, |result| result_tokens(result))
            }
        });
        prompt + items.sum::<u64>()
    }
}

/// An estimate of the tokens of a tool's result.
pub(crate) fn result_tokens(result: &ToolResult) -> u64 {
    text_tokens(result.text().len()) + attachment_tokens(result.images())
}

/// An estimate of the tokens of a message with so many bytes of text.
pub(crate) fn text_tokens(bytes: usize) -> u64 {
    (bytes as u64).div_ceil(BYTES_PER_TOKEN) + TOKENS_PER_MESSAGE
}

/// An estimate of the tokens of a prompt of so many bytes.
pub(crate) fn prompt_tokens(bytes: usize, attachments: &[Attachment]) -> u64 {
    text_tokens(bytes) + attachment_tokens(attachments)
}

fn attachment_tokens(attachments: &[Attachment]) -> u64 {
    attachments.len() as u64 * TOKENS_PER_ATTACHMENT
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(through: u32, cleared: &[String]) -> Arc<Compaction> {
        let cleared = cleared.iter().cloned().map(ToolCallId).collect();
        Arc::new(Compaction { through, cleared, ..Compaction::default() })
    }

    /// Compactions of a conversation without end: in each turn the results of the turn before are left out, and in
    /// each tenth one a summary stands for all but the last three turns.
    fn compactions(turns: u32) -> Compactions {
        let mut compactions = Compactions::default();
        for turn in 1..=turns {
            let through = if turn.is_multiple_of(10) { turn - 3 } else { 0 };
            compactions.made.push((turn, made(through, &[format!("call-{}", turn - 1)])));
            compactions.clear();
        }
        compactions
    }

    #[test]
    fn what_a_call_must_know_does_not_grow_with_the_conversation() {
        for turns in [20, 2_000] {
            let (few, sent) = (compactions(turns), compactions(turns).sent());
            assert_eq!(sent.made.len(), 1, "the summary");
            assert_eq!(sent.summary(), few.summary());
            let left_out = |turn| few.cleared.contains(&ToolCallId(format!("call-{turn}")));
            // Of the turns that are sent, all but the last one; and of one more at most.
            assert!((turns - 2..turns).all(left_out), "{:?}", few.cleared);
            assert!(few.cleared.len() <= 3, "{:?}", few.cleared);
        }
    }

    #[test]
    fn those_of_dropped_turns_are_as_if_they_had_never_been() {
        for (turns, first) in [(25, 26), (25, 25), (25, 21), (25, 20), (25, 3), (25, 1)] {
            let mut dropped = compactions(turns);
            dropped.drop_from(first);
            assert_eq!(dropped, compactions(first.min(turns + 1) - 1), "{turns} {first}");
        }
    }
}
