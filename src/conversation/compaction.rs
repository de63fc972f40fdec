//! What the model is sent in place of earlier turns and results of tools, and how many tokens it is sent: as its
//! provider has counted, with an estimate for what came after. Pure.

use super::event::{Recorded, ToolResult};
use super::transcript::{CLEARED_RESULT, HistoryMessage, Transcript, Turn, TurnItem, TurnState};
use crate::protocol::attachment::{Attachment, Kind};
use crate::protocol::id::ToolCallId;
use crate::protocol::proto::session::{CompactionProposed, CompactionStarted};
use crate::support::text::Text;
use std::collections::HashSet;
use std::sync::Arc;

/// Bytes of text in a token, about: fewer than in English prose, so that a request is rather found too long.
const BYTES_PER_TOKEN: u64 = 3;

/// Tokens of a message besides its text, about.
const TOKENS_PER_MESSAGE: u64 = 5;

/// Tokens of an image, or of a page of a document, about: providers count them by their size in pixels or pages.
const TOKENS_PER_ATTACHMENT: u64 = 1_600;

/// Bytes of a page in a document, about.
const BYTES_PER_PAGE: u64 = 64 * 1024;

/// A result of fewer tokens is not left out: the note in its place has as many.
const CLEARED_TOKENS_MIN: u64 = 100;

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

impl CompactionEvent {
    /// Whether another event must follow of what becomes of it.
    pub(crate) fn is_open(&self) -> bool {
        match self {
            Self::Proposed(_) | Self::Started(_) => true,
            Self::Done(_) | Self::Failed { .. } => false,
        }
    }
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
    pub(crate) fn summary(&self) -> Option<&Compaction> {
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

    /// Puts another text in the place of the newest summary.
    pub(super) fn change_summary(&mut self, change: impl FnOnce(&str) -> Text) {
        let Some(at) = self.last_summary() else { return };
        let (_, made) = &mut self.made[at];
        let summary = change(&made.summary);
        *made = Arc::new(Compaction { summary, ..Compaction::clone(made) });
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
        // A turn that was refused counts no more, and was in the estimate.
        tokens.saturating_add(later).saturating_sub(estimate)
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

    /// The calls of a turn whose results are sent and are worth to be left out, each with the tokens that this saves.
    pub(crate) fn clearable<'a>(
        &'a self,
        turn: &'a Turn,
    ) -> impl Iterator<Item = (&'a ToolCallId, u64)> {
        let note = text_tokens(CLEARED_RESULT.len());
        turn.items.iter().filter_map(move |item| {
            let TurnItem::Called { tool, result: Some(result), .. } = item else { return None };
            let tokens = result_tokens(result);
            let is_sent = tokens >= CLEARED_TOKENS_MIN && !self.is_cleared(&tool.id);
            is_sent.then(|| (&tool.id, tokens.saturating_sub(note)))
        })
    }

    /// An estimate of the tokens of a turn, as the model is sent it.
    pub(crate) fn turn_tokens(&self, turn: &Turn) -> u64 {
        if turn.state == TurnState::Refused {
            return 0;
        }
        let prompt = prompt_tokens(turn.prompt.len(), &turn.attachments);
        prompt + turn.items.iter().map(|item| self.item_tokens(item)).sum::<u64>()
    }

    /// An estimate of the tokens of a part of a turn.
    pub(super) fn item_tokens(&self, item: &TurnItem) -> u64 {
        match item {
            TurnItem::Text { text, .. } => text_tokens(text.len()),
            TurnItem::Prompt(text, attachments) => prompt_tokens(text.len(), attachments),
            // Signed reasoning, most of all.
            TurnItem::ProviderData(data) => text_tokens(data.json.len()),
            TurnItem::Called { tool, input, result, .. } => {
                let result = match result {
                    None => TOKENS_PER_MESSAGE,
                    Some(_) if self.is_cleared(&tool.id) => text_tokens(CLEARED_RESULT.len()),
                    Some(result) => result_tokens(result),
                };
                text_tokens(tool.name.len() + input.len()) + result
            }
        }
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

/// An estimate of the tokens of what goes with a prompt, or is in a result.
pub(crate) fn attachment_tokens(attachments: &[Attachment]) -> u64 {
    let tokens = attachments.iter().map(|attachment| {
        if attachment.is_lost() {
            return TOKENS_PER_MESSAGE;
        }
        let bytes = attachment.len_bytes();
        match attachment.kind() {
            // Nothing is known of a text that the provider reads from an address.
            Kind::Text if bytes > 0 => bytes.div_ceil(BYTES_PER_TOKEN) + TOKENS_PER_MESSAGE,
            Kind::Pdf => bytes.div_ceil(BYTES_PER_PAGE).max(1) * TOKENS_PER_ATTACHMENT,
            Kind::Text | Kind::Image | Kind::Other => TOKENS_PER_ATTACHMENT,
        }
    });
    tokens.sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::attachment::Content;
    use crate::protocol::proto::chat::ChatAttachment;

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
    fn what_goes_with_a_prompt_counts_by_its_kind_and_size() {
        let tokens = |name: &str, data: Vec<u8>| {
            let shown = ChatAttachment { filename: name.to_owned(), ..ChatAttachment::default() };
            let attachment = Attachment { shown, content: Content::Data(data.into()) };
            attachment_tokens(&[attachment.described().expect("it is known")])
        };
        assert_eq!(tokens("a.txt", b"thirteen byte".to_vec()), 10);
        assert_eq!(tokens("a.txt", b"word ".repeat(16_000)), 26_672);
        let pdf = |pages: usize| [&b"%PDF-1.7\n"[..], &vec![b'x'; pages * 65_536 - 9]].concat();
        assert_eq!((tokens("a.pdf", pdf(1)), tokens("a.pdf", pdf(3))), (1_600, 4_800));
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
