//! A conversation that was stored, as its snapshot shows it.

use super::{Note, Piece, State, ToolCall};
use crate::conversation::endings::{Endings, mark};
use crate::protocol::any::Any;
use crate::protocol::constants::{message, role};
use crate::protocol::proto::chat::{ChatMessageEntity, ToolCallEntity, ToolResultEntity};
use crate::protocol::proto::rpc::SnapshotFrame;
use crate::tui::markdown::Markdown;
use crate::tui::text::clean;
use std::collections::HashMap;
use std::time::Duration;

/// Messages and tool calls of a stored conversation that are printed again.
const SHOWN_MAX: usize = 100;

impl State {
    /// Prints the unprinted part of the snapshot: after a start everything, later nothing.
    pub(super) fn snapshot(&mut self, snapshot: SnapshotFrame) {
        self.has_conversation();
        let shown = self.last_ordinal;
        self.has_shown(snapshot.snapshot_ordinal);
        let new = snapshot.entities.into_iter().filter(|entity| entity.created_ordinal > shown);
        let payloads: Vec<_> =
            new.filter_map(|entity| entity.payload.map(Any::into_whole)).collect();
        if payloads.is_empty() {
            return;
        }
        let hidden = payloads.len().saturating_sub(SHOWN_MAX);
        if hidden > 0 {
            let text =
                format!("{hidden} earlier messages are not shown; /export writes all of them");
            self.note(Note::Information, text);
        }
        let (mut calls, mut endings) = (HashMap::new(), Endings::default());
        for (number, payload) in payloads.into_iter().enumerate() {
            if let Some(ended) = endings.next(&payload) {
                self.ended_early(clean(&ended.how), number > hidden);
            }
            self.entity(payload, number >= hidden, &mut calls);
        }
        if let Some(ended) = endings.finish() {
            self.ended_early(clean(&ended.how), true);
        }
    }

    /// The answer, or the prompt without one, did not end well.
    pub(super) fn ended_early(&mut self, how: String, is_shown: bool) {
        self.log.ended(&how);
        if is_shown {
            self.note(Note::Information, how);
        }
    }

    fn entity(&mut self, payload: Any, is_shown: bool, calls: &mut HashMap<String, ToolCall>) {
        if let Any::ChatMessageEntity(message) = payload {
            self.message(*message, is_shown);
        } else if let Any::ToolCallEntity(call) = payload {
            let ToolCallEntity { tool_call_id, tool_name, input, .. } = *call;
            let mut tool = ToolCall::new(tool_call_id.clone(), &tool_name, Duration::ZERO);
            tool.set_input(&input);
            calls.insert(tool_call_id, tool);
        } else if let Any::ToolResultEntity(result) = payload {
            let ToolResultEntity { tool_call_id, tool_name, result, status, .. } = *result;
            let tool = calls.remove(&tool_call_id);
            let mut tool =
                tool.unwrap_or_else(|| ToolCall::new(tool_call_id, &tool_name, Duration::ZERO));
            tool.returned(&result, &status, None);
            self.log.tool(&tool);
            if is_shown {
                self.print(Piece::Tool(tool));
            }
        }
    }

    fn message(&mut self, message: ChatMessageEntity, is_shown: bool) {
        // The error of a run that failed is a message of its own.
        let mark = mark(&message).filter(|_| message.status != message::FAILED);
        self.text(message, is_shown);
        if let Some(mark) = mark {
            self.ended_early(clean(&mark), is_shown);
        }
    }

    fn text(&mut self, message: ChatMessageEntity, is_shown: bool) {
        let text = message.text;
        match message.role.as_str() {
            role::USER => {
                self.status.turns += 1;
                self.keep_prompt(message.message_id, &text, &message.attachments);
                if is_shown {
                    let attachments = message.attachments.iter().map(|it| clean(&it.filename));
                    let attachments = attachments.collect();
                    self.print_prompt(text, attachments, false);
                }
            }
            role::ASSISTANT => {
                self.log.answer(&text);
                if is_shown {
                    let mut markdown = Markdown::default();
                    markdown.push(&text);
                    markdown.finish();
                    for block in markdown.take_closed() {
                        self.print(Piece::Block(block));
                    }
                }
            }
            role::THINKING => {
                let text = clean(text.trim());
                self.log.reasoning(&text);
                if is_shown && !text.is_empty() {
                    self.print(Piece::Reasoning { text, seconds: 0 });
                }
            }
            role::WARNING if is_shown => self.note(Note::Warning, clean(&text)),
            role::ERROR => {
                let text = clean(&text);
                self.log.ended(&format!("failed: {text}"));
                if is_shown {
                    // It is from before this chat.
                    self.print(Piece::Note(Note::Error, text));
                }
            }
            _ => {}
        }
    }
}
