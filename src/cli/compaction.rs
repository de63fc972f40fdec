//! Options about conversations that become too long for the model.

use super::texts::not_blank;
use crate::session::compaction::{self, CompactionRules};
use clap::{Args, ValueEnum};
use std::num::NonZeroU64;

/// Options about conversations that become too long for the model.
#[derive(Args, Clone, Debug, Default)]
pub struct CompactionArgs {
    /// Tokens of the most that the model can be sent; without it those in the profile or in the list of prices
    #[arg(long, alias = "context-size", env = "DUOLOGUE_CONTEXT_TOKENS", value_name = "N")]
    pub context_tokens: Option<NonZeroU64>,

    /// What happens before a conversation is too long for the model: earlier turns are summarized; the client
    /// decides; nothing. Without it auto if it is known what the model can be sent, else off
    #[arg(long, env = "DUOLOGUE_COMPACT", value_name = "HOW", value_enum)]
    pub compact: Option<CompactMode>,

    /// The model that writes summaries, of the same provider; without it the one that answers
    #[arg(long, env = "DUOLOGUE_COMPACT_MODEL", value_name = "NAME", value_parser = not_blank)]
    pub compact_model: Option<String>,

    /// The prompt that asks for a summary, in place of the one that comes with the program
    #[arg(long, env = "DUOLOGUE_COMPACT_PROMPT", value_name = "TEXT")]
    pub compact_prompt: Option<String>,
}

/// What happens before a conversation is too long for the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum CompactMode {
    /// Results of tools are left out and earlier turns summarized, as far as needed
    Auto,
    /// The client is asked, if it has the extension compaction
    Ask,
    /// Nothing: the provider refuses it
    Off,
}

impl CompactionArgs {
    /// The rules of the session.
    pub(super) fn rules(&self) -> CompactionRules {
        let text = |text: &Option<String>| text.clone().filter(|text| !text.trim().is_empty());
        CompactionRules {
            mode: self.compact.map(Into::into),
            context_tokens: self.context_tokens.map(NonZeroU64::get),
            model: text(&self.compact_model),
            prompt: text(&self.compact_prompt),
        }
    }
}

impl From<CompactMode> for compaction::CompactMode {
    fn from(mode: CompactMode) -> Self {
        match mode {
            CompactMode::Auto => Self::Auto,
            CompactMode::Ask => Self::Ask,
            CompactMode::Off => Self::Off,
        }
    }
}
