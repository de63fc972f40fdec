//! The items of an answer, put together from their pieces.

use super::event::{Item, Part};
use super::provider_data::DataItem;
use super::reasoning::{ReasoningField, ShownReasoning};
use crate::engine::EngineEvent;
use crate::engine::provider::calls::{AnswerError, CallIds, push_text};
use crate::engine::provider::provider_data::DATA_BYTES_MAX;
use crate::protocol::id::ToolCallId;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::mem::take;

/// Items of one answer.
const ITEMS_MAX: usize = 10_000;

/// The items of one answer.
#[derive(Debug, Default)]
pub(super) struct Items {
    open: BTreeMap<u64, OpenItem>,
    /// Indexes of the items that have begun.
    begun: BTreeSet<u64>,
    calls: CallIds,
    data: Vec<DataItem>,
    data_bytes: usize,
    has_text: bool,
    /// Pieces of a text have come whose part is not whole.
    has_open_pieces: bool,
}

#[derive(Debug)]
enum OpenItem {
    Message {
        bytes: usize,
        has_pieces: bool,
        parts: KnownParts,
        /// An event of its own began the message.
        is_announced: bool,
        phase: Option<String>,
    },
    Call {
        id: ToolCallId,
        /// As the item began, or as they are whole; count if there is no piece.
        arguments: Value,
        has_pieces: bool,
    },
    Reasoning(ShownReasoning),
    /// An item of an unknown type.
    Unknown,
}

impl OpenItem {
    /// A message without an event that begins it.
    fn unannounced_message() -> Self {
        Self::message(false, None)
    }

    fn message(is_announced: bool, phase: Option<String>) -> Self {
        let parts = KnownParts::default();
        Self::Message { bytes: 0, has_pieces: false, parts, is_announced, phase }
    }
}

/// The parts of a message of which something has come.
#[derive(Debug, Default)]
struct KnownParts {
    numbers: BTreeSet<u64>,
    /// Pieces have come that name no part.
    has_others: bool,
}

impl KnownParts {
    fn has_piece(&mut self, part: Option<u64>) {
        self.numbers.extend(part);
        self.has_others |= part.is_none();
    }

    /// A part is whole; returns whether it is known that nothing of it has come before.
    fn is_new(&mut self, part: Option<u64>) -> bool {
        part.is_some_and(|part| self.numbers.insert(part)) && !self.has_others
    }
}

impl Items {
    /// An item begins; adds what happened to `events`.
    pub(super) fn begin(
        &mut self,
        index: u64,
        item: Item,
        events: &mut Vec<EngineEvent>,
    ) -> Result<(), AnswerError> {
        // A server that numbers no items has ended the one before.
        self.close(index, None, events)?;
        let open = match item {
            Item::Message { phase, .. } => OpenItem::message(true, phase),
            Item::Reasoning { .. } => OpenItem::Reasoning(ShownReasoning::default()),
            Item::FunctionCall { call_id, name, arguments } => {
                let id = self.begin_call(call_id, name, events)?;
                OpenItem::Call { id, arguments, has_pieces: false }
            }
            Item::Unknown => OpenItem::Unknown,
        };
        self.insert(index, open)
    }

    /// The next piece of a text, in its part of that number. Some servers don't announce the message.
    pub(super) fn push_text(
        &mut self,
        index: u64,
        part: Option<u64>,
        text: String,
        events: &mut Vec<EngineEvent>,
    ) -> Result<(), AnswerError> {
        let is_open =
            matches!(self.open.get(&index), Some(OpenItem::Message { .. } | OpenItem::Unknown));
        if !is_open {
            self.close(index, None, events)?;
            self.insert(index, OpenItem::unannounced_message())?;
        }
        if let Some(OpenItem::Message { bytes, has_pieces, parts, .. }) = self.open.get_mut(&index)
            && !text.is_empty()
        {
            *has_pieces = true;
            parts.has_piece(part);
            *bytes += text.len();
            self.has_text = true;
            self.has_open_pieces = true;
            events.push(EngineEvent::Text(text));
        }
        Ok(())
    }

    /// The part of that number of a text is whole. It is new where there were no pieces of it, as some servers send it.
    pub(super) fn finish_text(
        &mut self,
        index: u64,
        part: Option<u64>,
        text: &str,
        events: &mut Vec<EngineEvent>,
    ) -> Result<(), AnswerError> {
        if text.is_empty() {
            return Ok(());
        }
        // Whatever its index is: some servers number the pieces and the whole in two ways.
        let has_pieces_of_it = take(&mut self.has_open_pieces);
        if !has_pieces_of_it && !self.begun.contains(&index) {
            self.insert(index, OpenItem::unannounced_message())?;
        }
        if let Some(OpenItem::Message { bytes, has_pieces, parts, .. }) = self.open.get_mut(&index)
            && (parts.is_new(part) || !*has_pieces)
            && !has_pieces_of_it
        {
            *bytes += text.len();
            self.has_text = true;
            events.push(EngineEvent::Text(text.to_owned()));
        }
        Ok(())
    }

    /// The next piece of a reasoning, in its part of that number.
    pub(super) fn push_reasoning(
        &mut self,
        index: u64,
        field: ReasoningField,
        part: u64,
        text: &str,
        events: &mut Vec<EngineEvent>,
    ) -> Result<(), AnswerError> {
        let is_open =
            matches!(self.open.get(&index), Some(OpenItem::Reasoning(_) | OpenItem::Unknown));
        if !is_open {
            self.close(index, None, events)?;
            self.insert(index, OpenItem::Reasoning(ShownReasoning::default()))?;
        }
        if let Some(OpenItem::Reasoning(shown)) = self.open.get_mut(&index) {
            shown.push(field, part, text, events);
        }
        Ok(())
    }

    /// The next piece of a call's arguments.
    pub(super) fn push_arguments(
        &mut self,
        index: u64,
        text: String,
        events: &mut Vec<EngineEvent>,
    ) -> Result<(), AnswerError> {
        match self.open.get_mut(&index) {
            Some(OpenItem::Call { id, has_pieces, .. }) => {
                *has_pieces |= !text.is_empty();
                push_text(EngineEvent::ToolArguments { id: id.clone(), text }, events);
                Ok(())
            }
            Some(OpenItem::Unknown) => Ok(()),
            Some(OpenItem::Message { .. } | OpenItem::Reasoning(_)) | None => {
                Err(AnswerError::Misplaced("arguments of a call that has not begun"))
            }
        }
    }

    /// The arguments of a call are whole. They count where there are no pieces, as some servers send none.
    pub(super) fn finish_arguments(&mut self, index: u64, whole: Value) {
        if let Some(OpenItem::Call { arguments, .. }) = self.open.get_mut(&index)
            && has_arguments(&whole)
        {
            *arguments = whole;
        }
    }

    /// An item is whole; adds to `events` what its pieces have left out.
    pub(super) fn finish(
        &mut self,
        index: u64,
        item: Item,
        events: &mut Vec<EngineEvent>,
    ) -> Result<(), AnswerError> {
        let index = match &item {
            Item::Message { .. } => self.index_of_pieces(index),
            Item::FunctionCall { .. } | Item::Reasoning { .. } | Item::Unknown => index,
        };
        if self.open.contains_key(&index) {
            return self.close(index, Some(item), events);
        }
        match self.begun.contains(&index) {
            true => Ok(()),
            false => self.whole(index, item, events),
        }
    }

    /// The answer is whole; `output` are its items as its last event repeats them. Items without
    /// events of their own are taken from there.
    pub(super) fn finish_all(
        &mut self,
        output: Vec<Item>,
        events: &mut Vec<EngineEvent>,
    ) -> Result<(), AnswerError> {
        let open: Vec<u64> = self.open.keys().copied().collect();
        for index in open {
            self.close(index, None, events)?;
        }
        let (has_items, has_text) = (!self.begun.is_empty(), self.has_text);
        let (mut calls_left, first) = (self.calls.len(), self.begun.last().map_or(0, |at| at + 1));
        for (index, item) in (first..).zip(output) {
            let is_new = match &item {
                Item::Message { .. } => !has_text,
                Item::FunctionCall { .. } => {
                    let is_new = calls_left == 0;
                    calls_left = calls_left.saturating_sub(1);
                    is_new
                }
                Item::Reasoning { .. } => !has_items,
                Item::Unknown => false,
            };
            if is_new {
                self.whole(index, item, events)?;
            }
        }
        Ok(())
    }

    /// The provider data of the items that have ended, in their order.
    pub(super) fn data(&self) -> &[DataItem] {
        &self.data
    }

    /// A call has begun.
    pub(super) fn has_calls(&self) -> bool {
        self.calls.len() > 0
    }

    /// The index under which the pieces of the whole message `index` came. Some servers number them in two ways: a
    /// message without text is dropped for one that has pieces and was not announced.
    fn index_of_pieces(&mut self, index: u64) -> u64 {
        let is_empty = match self.open.get(&index) {
            Some(OpenItem::Message { bytes, .. }) => *bytes == 0,
            Some(OpenItem::Call { .. } | OpenItem::Reasoning(_) | OpenItem::Unknown) => false,
            None => !self.begun.contains(&index),
        };
        let other = self.open.iter().find_map(|(other, open)| {
            let has_pieces =
                matches!(open, OpenItem::Message { has_pieces: true, is_announced: false, .. });
            has_pieces.then_some(*other)
        });
        let Some(other) = other.filter(|_| is_empty) else { return index };
        self.open.remove(&index);
        other
    }

    /// An item that comes whole.
    fn whole(
        &mut self,
        index: u64,
        item: Item,
        events: &mut Vec<EngineEvent>,
    ) -> Result<(), AnswerError> {
        let open = match &item {
            Item::Message { .. } => OpenItem::unannounced_message(),
            Item::Reasoning { .. } => OpenItem::Reasoning(ShownReasoning::default()),
            Item::FunctionCall { call_id, name, .. } => {
                let id = self.begin_call(call_id.clone(), name.clone(), events)?;
                OpenItem::Call { id, arguments: Value::Null, has_pieces: false }
            }
            Item::Unknown => OpenItem::Unknown,
        };
        self.insert(index, open)?;
        self.close(index, Some(item), events)
    }

    fn insert(&mut self, index: u64, open: OpenItem) -> Result<(), AnswerError> {
        if self.data.len() + self.begun.len() >= ITEMS_MAX {
            return Err(AnswerError::TooMuch(format!("more than {ITEMS_MAX} items")));
        }
        self.begun.insert(index);
        self.open.insert(index, open);
        Ok(())
    }

    fn begin_call(
        &mut self,
        call_id: Option<String>,
        name: Option<String>,
        events: &mut Vec<EngineEvent>,
    ) -> Result<ToolCallId, AnswerError> {
        self.calls.begin(call_id.unwrap_or_default(), name.unwrap_or_default(), events)
    }

    /// Ends an item, if it is open; `whole` is what the provider says that it is.
    fn close(
        &mut self,
        index: u64,
        whole: Option<Item>,
        events: &mut Vec<EngineEvent>,
    ) -> Result<(), AnswerError> {
        let Some(open) = self.open.remove(&index) else { return Ok(()) };
        let data = match open {
            OpenItem::Message { bytes, has_pieces, phase, .. } => {
                self.has_open_pieces &= !has_pieces;
                let sent = (!has_pieces).then_some(bytes);
                let (text, phase) = message(sent, phase, whole);
                let bytes = bytes + text.len();
                if !text.is_empty() {
                    self.has_text = true;
                    events.push(EngineEvent::Text(text));
                }
                (bytes > 0).then_some(DataItem::Text { bytes, phase })
            }
            OpenItem::Call { id, arguments, has_pieces } => {
                if !has_pieces {
                    let text = whole_arguments(arguments, whole);
                    push_text(EngineEvent::ToolArguments { id: id.clone(), text }, events);
                }
                events.push(EngineEvent::ToolCallRequested { id });
                Some(DataItem::Call)
            }
            OpenItem::Reasoning(shown) => self.reasoning(shown, whole, events)?,
            OpenItem::Unknown => None,
        };
        self.data.extend(data);
        Ok(())
    }

    /// Ends a reasoning item and returns its provider data. Only the last event of the item has all of it. OpenAI takes
    /// it in the encrypted form alone; a server that encrypts nothing takes it as it is.
    fn reasoning(
        &mut self,
        mut shown: ShownReasoning,
        whole: Option<Item>,
        events: &mut Vec<EngineEvent>,
    ) -> Result<Option<DataItem>, AnswerError> {
        let Some(Item::Reasoning { id, summary, content, encrypted_content }) = whole else {
            return Ok(None);
        };
        shown.complete(&summary, &content, events);
        let encrypted_content = encrypted_content.filter(|text| !text.is_empty());
        let is_open = encrypted_content.is_none();
        let has_parts = content.as_array().is_some_and(|parts| !parts.is_empty());
        if is_open && !has_parts {
            return Ok(None);
        }
        let content = if is_open { content } else { Value::Null };
        let id = id.as_str().filter(|id| !id.is_empty()).map(str::to_owned);
        let id_bytes = id.as_ref().map_or(0, String::len);
        let encrypted_bytes = encrypted_content.as_ref().map_or(0, String::len);
        let content_bytes = if is_open { content.to_string().len() } else { 0 };
        self.data_bytes += encrypted_bytes + content_bytes + summary.to_string().len() + id_bytes;
        if self.data_bytes > DATA_BYTES_MAX {
            let what = format!("more than {DATA_BYTES_MAX} bytes of reasoning");
            return Err(AnswerError::TooMuch(what));
        }
        let summary = if summary.is_array() { summary } else { Value::Array(Vec::new()) };
        Ok(Some(DataItem::Reasoning { summary, content, encrypted_content, id }))
    }
}

/// What follows the first `sent` bytes of the text of a message, which came as whole parts, and its phase. Nothing
/// follows pieces, where `sent` is `None`.
fn message(
    sent: Option<usize>,
    phase: Option<String>,
    whole: Option<Item>,
) -> (String, Option<String>) {
    match whole {
        Some(Item::Message { content, phase: last }) => {
            let text: String = content.iter().map(Part::text).collect();
            let rest = sent.and_then(|sent| text.get(sent..)).unwrap_or_default();
            (rest.to_owned(), last.or(phase))
        }
        Some(Item::FunctionCall { .. } | Item::Reasoning { .. } | Item::Unknown) | None => {
            (String::new(), phase)
        }
    }
}

/// Whether `arguments` are more than the place where they would be.
fn has_arguments(arguments: &Value) -> bool {
    !arguments.is_null() && arguments.as_str() != Some("")
}

/// The arguments of a call without pieces: those that came at its end, or else before.
fn whole_arguments(first: Value, whole: Option<Item>) -> String {
    let last = match whole {
        Some(Item::FunctionCall { arguments, .. }) => arguments,
        Some(Item::Message { .. } | Item::Reasoning { .. } | Item::Unknown) | None => Value::Null,
    };
    match if has_arguments(&last) { last } else { first } {
        Value::Null => String::new(),
        Value::String(text) => text,
        other @ (Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_)) => {
            other.to_string()
        }
    }
}
