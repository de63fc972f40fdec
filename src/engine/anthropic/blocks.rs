//! The content blocks of an answer, put together from their pieces.

use super::event::{Block, Delta};
use super::provider_data::DataBlock;
use crate::engine::EngineEvent;
use crate::engine::provider::calls::{AnswerError, CallIds, push_text};
use crate::engine::provider::provider_data::DATA_BYTES_MAX;
use crate::protocol::id::ToolCallId;
use serde_json::Value;
use std::collections::BTreeMap;

/// Blocks of one answer.
const BLOCKS_MAX: usize = 10_000;

/// The errors for a piece without a block, and in one of another kind.
const UNOPENED: &str = "a piece of a content block that has not begun";
const WRONG_KIND: &str = "a piece that does not belong to its content block";

/// The name of the field that holds reasoning.
const REASONING_FIELD: &str = "thinking";

/// The blocks of one answer.
#[derive(Debug)]
pub(super) struct Blocks {
    unsigned: Unsigned,
    open: BTreeMap<u64, OpenBlock>,
    calls: CallIds,
    data: Vec<DataBlock>,
    begun: usize,
    data_bytes: usize,
}

/// What becomes of reasoning without a signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unsigned {
    /// It is sent back like signed reasoning: DeepSeek, for one, has none that is signed, and refuses a result
    /// without the reasoning before its call.
    SentBack,
    /// It is shown and not sent back: Anthropic would refuse it.
    Dropped,
}

/// Anthropic's own domain.
const ANTHROPIC_DOMAIN: &str = "anthropic.com";

impl Unsigned {
    /// For `model` of the server at `host`. Claude's reasoning is signed everywhere.
    pub(super) fn of(host: &str, model: &str) -> Self {
        let name = host.split(':').next().unwrap_or_default();
        let is_own = name
            .strip_suffix(ANTHROPIC_DOMAIN)
            .is_some_and(|rest| rest.is_empty() || rest.ends_with('.'));
        match is_own || model.to_ascii_lowercase().contains("claude") {
            true => Self::Dropped,
            false => Self::SentBack,
        }
    }
}

#[derive(Debug)]
enum OpenBlock {
    Text {
        bytes: usize,
    },
    Thinking {
        thinking: String,
        signature: String,
    },
    RedactedThinking {
        data: String,
    },
    ToolUse {
        id: ToolCallId,
        /// As the block began; counts if no piece follows.
        input: Value,
        has_pieces: bool,
    },
    /// A block of an unknown type.
    Unknown,
}

impl Blocks {
    pub(super) fn new(unsigned: Unsigned) -> Self {
        Self {
            unsigned,
            open: BTreeMap::new(),
            calls: CallIds::default(),
            data: Vec::new(),
            begun: 0,
            data_bytes: 0,
        }
    }

    /// A block begins; adds what happened to `events`.
    pub(super) fn begin(
        &mut self,
        index: u64,
        block: Block,
        events: &mut Vec<EngineEvent>,
    ) -> Result<(), AnswerError> {
        // Some servers leave out the end of a block.
        self.finish(index, events);
        self.begun += 1;
        if self.begun > BLOCKS_MAX {
            return Err(AnswerError::TooMuch(format!("more than {BLOCKS_MAX} content blocks")));
        }
        let open = match block {
            Block::Text { text } => {
                let bytes = text.len();
                push_text(EngineEvent::Text(text), events);
                OpenBlock::Text { bytes }
            }
            Block::Thinking { thinking, signature } => {
                self.count_data(thinking.len() + signature.len())?;
                push_text(reasoning(thinking.clone()), events);
                OpenBlock::Thinking { thinking, signature }
            }
            Block::RedactedThinking { data } => {
                self.count_data(data.len())?;
                OpenBlock::RedactedThinking { data }
            }
            Block::ToolUse { id, name, input } => {
                let id = self.calls.begin(id, name, events)?;
                OpenBlock::ToolUse { id, input, has_pieces: false }
            }
            Block::Unknown => OpenBlock::Unknown,
        };
        self.open.insert(index, open);
        Ok(())
    }

    /// Whether there was a block.
    pub(super) fn have_begun(&self) -> bool {
        self.begun > 0
    }

    /// The next piece of a block; adds what happened to `events`.
    pub(super) fn push(
        &mut self,
        index: u64,
        delta: Delta,
        events: &mut Vec<EngineEvent>,
    ) -> Result<(), AnswerError> {
        if let Some(block) = self.block_begun_by(index, &delta) {
            return self.begin(index, block, events);
        }
        match &delta {
            Delta::Thinking { thinking: piece } | Delta::Signature { signature: piece } => {
                self.count_data(piece.len())?;
            }
            Delta::Text { .. } | Delta::InputJson { .. } | Delta::Unknown => {}
        }
        let open = match (self.open.get_mut(&index), &delta) {
            (Some(open), _) => open,
            (None, Delta::Signature { .. }) => return Ok(()),
            (
                None,
                Delta::Text { .. }
                | Delta::Thinking { .. }
                | Delta::InputJson { .. }
                | Delta::Unknown,
            ) => return Err(AnswerError::Misplaced(UNOPENED)),
        };
        match (open, delta) {
            (OpenBlock::Text { bytes }, Delta::Text { text }) => {
                *bytes += text.len();
                push_text(EngineEvent::Text(text), events);
            }
            (OpenBlock::Thinking { thinking, .. }, Delta::Thinking { thinking: more }) => {
                *thinking += &more;
                push_text(reasoning(more), events);
            }
            (OpenBlock::Thinking { signature, .. }, Delta::Signature { signature: more }) => {
                *signature += &more;
            }
            (OpenBlock::ToolUse { id, has_pieces, .. }, Delta::InputJson { partial_json }) => {
                *has_pieces |= !partial_json.is_empty();
                push_text(
                    EngineEvent::ToolArguments { id: id.clone(), text: partial_json },
                    events,
                );
            }
            // Nothing that is shown depends on a signature without its reasoning.
            (OpenBlock::Unknown, _) | (_, Delta::Unknown | Delta::Signature { .. }) => {}
            (
                OpenBlock::Text { .. }
                | OpenBlock::Thinking { .. }
                | OpenBlock::RedactedThinking { .. }
                | OpenBlock::ToolUse { .. },
                _,
            ) => return Err(AnswerError::Misplaced(WRONG_KIND)),
        }
        Ok(())
    }

    /// The block that `delta` begins where none is open, or within one of the other kind: some servers that translate
    /// another interface announce no block, or put text and reasoning under one index.
    fn block_begun_by(&self, index: u64, delta: &Delta) -> Option<Block> {
        match (self.open.get(&index), delta) {
            (None | Some(OpenBlock::Text { .. }), Delta::Thinking { thinking }) => {
                Some(Block::Thinking { thinking: thinking.clone(), signature: String::new() })
            }
            (None | Some(OpenBlock::Thinking { .. }), Delta::Text { text }) => {
                Some(Block::Text { text: text.clone() })
            }
            (
                None
                | Some(
                    OpenBlock::Text { .. }
                    | OpenBlock::Thinking { .. }
                    | OpenBlock::RedactedThinking { .. }
                    | OpenBlock::ToolUse { .. }
                    | OpenBlock::Unknown,
                ),
                _,
            ) => None,
        }
    }

    /// A block is whole, if it is open; adds what happened to `events`.
    pub(super) fn finish(&mut self, index: u64, events: &mut Vec<EngineEvent>) {
        let Some(open) = self.open.remove(&index) else { return };
        let data = match open {
            OpenBlock::Text { bytes: 0 } | OpenBlock::Unknown => None,
            OpenBlock::Text { bytes } => Some(DataBlock::Text { bytes }),
            OpenBlock::Thinking { thinking, signature } => self
                .is_sent_back(&thinking, &signature)
                .then_some(DataBlock::Thinking { thinking, signature }),
            OpenBlock::RedactedThinking { data } => Some(DataBlock::RedactedThinking { data }),
            OpenBlock::ToolUse { id, input, has_pieces } => {
                if !has_pieces {
                    let text = whole_arguments(&input);
                    push_text(EngineEvent::ToolArguments { id: id.clone(), text }, events);
                }
                events.push(EngineEvent::ToolCallRequested { id });
                Some(DataBlock::ToolUse)
            }
        };
        self.data.extend(data);
    }

    fn is_sent_back(&self, thinking: &str, signature: &str) -> bool {
        let is_signed = !signature.is_empty();
        is_signed || (self.unsigned == Unsigned::SentBack && !thinking.is_empty())
    }

    /// Every block is whole; adds what happened to `events`.
    pub(super) fn finish_all(&mut self, events: &mut Vec<EngineEvent>) {
        let open: Vec<u64> = self.open.keys().copied().collect();
        for index in open {
            self.finish(index, events);
        }
    }

    /// The provider data of the blocks that have ended, in their order.
    pub(super) fn data(&self) -> &[DataBlock] {
        &self.data
    }

    /// No call has begun.
    pub(super) fn has_no_calls(&self) -> bool {
        self.calls.len() == 0
    }

    /// Counts bytes of provider data.
    fn count_data(&mut self, bytes: usize) -> Result<(), AnswerError> {
        self.data_bytes += bytes;
        if self.data_bytes > DATA_BYTES_MAX {
            let what = format!("more than {DATA_BYTES_MAX} bytes of reasoning");
            return Err(AnswerError::TooMuch(what));
        }
        Ok(())
    }
}

/// Arguments that came with the beginning of their block: none in a stream, all in a whole answer.
fn whole_arguments(input: &Value) -> String {
    if input.is_null() { "{}".to_owned() } else { input.to_string() }
}

fn reasoning(text: String) -> EngineEvent {
    EngineEvent::Reasoning { source: REASONING_FIELD, text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unsigned_reasoning_goes_back_to_servers_that_sign_none() {
        for (host, model, expected) in [
            ("api.deepseek.com", "deepseek-v4-pro", Unsigned::SentBack),
            ("127.0.0.1:4000", "MiniMax-M2", Unsigned::SentBack),
            ("notanthropic.com", "m", Unsigned::SentBack),
            ("api.anthropic.com", "m", Unsigned::Dropped),
            ("api.anthropic.com:443", "m", Unsigned::Dropped),
            ("router.example", "anthropic/Claude-Opus-4.6", Unsigned::Dropped),
        ] {
            assert_eq!(Unsigned::of(host, model), expected, "{host} {model}");
        }
    }
}
