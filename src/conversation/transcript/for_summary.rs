//! The conversation as the call for a summary is sent it, which a model must have room for that has none for all of
//! it. What is left out there is left out of that call alone.

use super::{Attachments, HistoryMessage, Preamble, Transcript, Turn, TurnItem, TurnState};
use crate::conversation::compaction::{attachment_tokens, prompt_tokens};
use crate::protocol::attachment::Attachment;
use crate::support::text::Text;
use serde_json::json;
use std::collections::HashSet;
use std::sync::Arc;

/// Bytes that are left of a long text, one after the other until there is room.
const TEXT_BYTES_MAX: [usize; 9] =
    [64 * 1024, 32 * 1024, 16 * 1024, 8 * 1024, 4 * 1024, 2 * 1024, 1024, 512, 256];

/// Tokens of the note in the place of steps, at most.
const STEPS_NOTE_TOKENS: u64 = 32;

/// Stands in the place of the middle of a text.
const SHORTENED_MARK: &str = "\n[The middle of this text was left out to make room.]\n";

impl Transcript {
    /// The conversation up to the turn `through`, with this prompt after it. If the estimate is above `room`, results
    /// of tools are left out, oldest first, and then the middle of the longest texts.
    pub(crate) fn asking(&self, prompt: &str, through: u32, room: Option<u64>) -> Self {
        let mut asking = self.sent();
        asking.turns.truncate(asking.end_of(through));
        if let Some(room) = room {
            let of_prompt = prompt_tokens(prompt.len(), &[]);
            asking.fit(room.saturating_sub(of_prompt));
        }
        asking.turns.push(Arc::new(Turn {
            number: through.saturating_add(1),
            prompt: prompt.into(),
            attachments: Attachments::default(),
            items: Vec::new(),
            state: TurnState::Open,
        }));
        asking
    }

    /// The last turn up to `through` that [`Self::asking`] has room for without shortening texts; the first turn if it
    /// has room for none.
    pub(crate) fn askable(&self, prompt: &str, through: u32, room: u64) -> u32 {
        let turns: Vec<_> = self.sent_turns().filter(|turn| turn.number <= through).collect();
        let sent: u64 = self.sent_turns().map(|turn| self.turn_tokens(turn)).sum();
        let before = self.estimate().saturating_sub(sent) + prompt_tokens(prompt.len(), &[]);
        let mut tokens = before;
        let mut last = turns.first().map_or(through, |turn| turn.number);
        for turn in turns {
            let cleared: u64 = self.clearable(turn).map(|(_, saved)| saved).sum();
            tokens = tokens.saturating_add(self.turn_tokens(turn).saturating_sub(cleared));
            if tokens > room {
                break;
            }
            last = turn.number;
        }
        last
    }

    /// Leaves out as much as is needed for an estimate of `room`, or as much as can be.
    fn fit(&mut self, room: u64) {
        self.clear_results(room);
        let whole = self.clone();
        for bytes_max in TEXT_BYTES_MAX {
            if self.estimate() <= room {
                return;
            }
            self.clone_from(&whole);
            self.shorten(bytes_max);
        }
        for at in 0..self.turns.len() {
            self.leave_out_steps(at, room);
        }
    }

    /// Leaves out the first answers and calls of a turn, as many as must be for an estimate of `room`.
    fn leave_out_steps(&mut self, at: usize, room: u64) {
        let mut left = self.estimate();
        if left <= room {
            return;
        }
        left = left.saturating_add(STEPS_NOTE_TOKENS);
        let too_many = |item: &TurnItem| {
            let is_too_much = left > room;
            left = left.saturating_sub(self.item_tokens(item));
            is_too_much
        };
        let items = &self.turns[at].items;
        let steps = items.iter().map(too_many).take_while(|is_too_much| *is_too_much).count();
        let turn = Arc::make_mut(&mut self.turns[at]);
        turn.items.drain(..steps);
        turn.prompt
            .push_str(&format!("\n\n[{steps} steps after this were left out to make room.]"));
    }

    fn clear_results(&mut self, room: u64) {
        let mut tokens = self.estimate();
        let mut cleared = HashSet::clone(&self.compactions.cleared);
        for (id, saved) in self.turns.iter().flat_map(|turn| self.clearable(turn)) {
            if tokens <= room {
                break;
            }
            tokens = tokens.saturating_sub(saved);
            cleared.insert(id.clone());
        }
        self.compactions.cleared = Arc::new(cleared);
    }

    /// Leaves `bytes_max` bytes of each text but the system's.
    fn shorten(&mut self, bytes_max: usize) {
        let Preamble { system, history } = &*self.preamble;
        let history = history.iter().map(|message| match message {
            HistoryMessage::ByUser(text) => HistoryMessage::ByUser(shortened(text, bytes_max)),
            HistoryMessage::ByModel(text) => HistoryMessage::ByModel(shortened(text, bytes_max)),
            HistoryMessage::BySystem(_) => message.clone(),
        });
        let (system, history) = (system.clone(), history.collect());
        self.preamble = Arc::new(Preamble { system, history });
        self.compactions.change_summary(|summary| shortened(summary, bytes_max).into());
        for turn in &mut self.turns {
            let turn = Arc::make_mut(turn);
            shorten_prompt((&mut turn.prompt, &mut turn.attachments), bytes_max);
            // It refers to bytes of the texts.
            turn.items.retain(|item| !matches!(item, TurnItem::ProviderData(_)));
            turn.items.iter_mut().for_each(|item| item.shorten(bytes_max));
        }
    }
}

impl TurnItem {
    fn shorten(&mut self, bytes_max: usize) {
        match self {
            Self::Text { text, .. } if text.len() > bytes_max => {
                *text = shortened(text, bytes_max).into();
            }
            Self::Prompt(text, attachments) => shorten_prompt((text, attachments), bytes_max),
            // Providers want an object. Long results have been left out before.
            Self::Called { input, .. } if input.len() > bytes_max => {
                *input = json!({ "shortened": shortened(input, bytes_max) }).to_string();
            }
            Self::Text { .. } | Self::Called { .. } | Self::ProviderData(_) => {}
        }
    }
}

/// Whether attachments take more tokens than a text of so many bytes.
fn is_more(attachments: &[Attachment], bytes_max: usize) -> bool {
    attachment_tokens(attachments) > prompt_tokens(bytes_max, &[])
}

/// Shortens a prompt, and names what went with it in the place of what is long.
fn shorten_prompt((text, attachments): (&mut Text, &mut Attachments), bytes_max: usize) {
    let mut short = shortened(text, bytes_max);
    let is_long = |it: &Attachment| is_more(std::slice::from_ref(it), bytes_max);
    if attachments.iter().any(is_long) {
        for left_out in attachments.iter().filter(|it| is_long(it)) {
            let gap = if short.is_empty() { "" } else { "\n\n" };
            short.push_str(&format!("{gap}[{left_out} was left out to make room.]"));
        }
        *attachments = attachments.iter().filter(|it| !is_long(it)).cloned().collect();
    }
    if short != **text {
        *text = short.into();
    }
}

/// The beginning and the end of a text of more than `bytes_max` bytes.
fn shortened(text: &str, bytes_max: usize) -> String {
    if text.len() <= bytes_max {
        return text.to_owned();
    }
    let part = bytes_max.saturating_sub(SHORTENED_MARK.len()) / 2;
    let (first, last) =
        (text.floor_char_boundary(part), text.ceil_char_boundary(text.len() - part));
    format!("{}{SHORTENED_MARK}{}", &text[..first], &text[last..])
}
