//! The outgoing queue of one session: messages in their order, encoded only when they are taken. Text that waits
//! is coalesced, so that a slow client costs no memory and gets fewer and longer chunks. Pure.

use super::jsonrpc::{self, Id, RpcError};
use super::schema::{ContentBlock, SessionNotification, Update};
use serde::Serialize;
use serde_json::Value;
use std::collections::VecDeque;

/// Bytes of a batch from which nothing more is added to it.
const BATCH_BYTES: usize = 64 * 1024;

/// Bytes that a message has beside its text, roughly.
const MESSAGE_BYTES: usize = 256;

/// A message to the client.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Item {
    Chunk(Chunk),
    Update(Update),
    Request { id: i64, method: &'static str, params: Value },
    Notification { method: &'static str, params: Value },
    Response { id: Id, outcome: Result<Value, RpcError> },
}

/// A piece of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Chunk {
    pub(super) kind: ChunkKind,
    pub(super) message_id: String,
    pub(super) text: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(super) enum ChunkKind {
    #[serde(rename = "user_message_chunk")]
    User,
    #[serde(rename = "agent_message_chunk")]
    Answer,
    #[serde(rename = "agent_thought_chunk")]
    Thought,
}

/// The messages of one session that are not written yet.
#[derive(Debug)]
pub(super) struct Queue {
    session: String,
    items: VecDeque<Item>,
    bytes: usize,
}

/// Lines, and the requests that they answer.
#[derive(Debug, Default)]
pub(super) struct Batch {
    pub(super) lines: Vec<u8>,
    pub(super) answered: Vec<Id>,
}

impl Queue {
    pub(super) fn new(session: String) -> Self {
        Self { session, items: VecDeque::new(), bytes: 0 }
    }

    pub(super) fn push(&mut self, item: Item) {
        self.bytes += item.bytes();
        if let (Some(Item::Chunk(last)), Item::Chunk(next)) = (self.items.back_mut(), &item)
            && (last.kind, &last.message_id) == (next.kind, &next.message_id)
        {
            self.bytes -= MESSAGE_BYTES;
            last.text.push_str(&next.text);
            return;
        }
        self.items.push_back(item);
    }

    pub(super) fn push_some(&mut self, item: Option<Item>) {
        item.into_iter().for_each(|item| self.push(item));
    }

    pub(super) fn update(&mut self, update: Update) {
        self.push(Item::Update(update));
    }

    pub(super) fn respond(&mut self, id: Id, outcome: Result<Value, RpcError>) {
        self.push(Item::Response { id, outcome });
    }

    #[cfg(test)]
    pub(super) fn pop(&mut self) -> Option<Item> {
        self.items.pop_front()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// About how many bytes wait.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Takes messages: all of them, or as many as make a batch.
    pub(super) fn take(&mut self) -> Batch {
        let mut batch = Batch::default();
        while batch.lines.len() < BATCH_BYTES
            && let Some(item) = self.items.pop_front()
        {
            self.bytes -= item.bytes();
            self.encode(item, &mut batch);
        }
        batch
    }

    fn encode(&self, item: Item, Batch { lines, answered }: &mut Batch) {
        match item {
            Item::Chunk(chunk) => {
                for text in pieces(&chunk.text) {
                    let params = ChunkParams::new(&self.session, &chunk, text);
                    jsonrpc::notification("session/update", &params, lines);
                }
            }
            Item::Update(update) => {
                let params = SessionNotification { session_id: &self.session, update: &update };
                jsonrpc::notification("session/update", &params, lines);
            }
            Item::Request { id, method, params } => jsonrpc::request(id, method, &params, lines),
            Item::Notification { method, params } => jsonrpc::notification(method, &params, lines),
            Item::Response { id, outcome } => {
                jsonrpc::response(&id, &outcome, lines);
                answered.push(id);
            }
        }
    }
}

impl Item {
    /// About how many bytes the message has.
    fn bytes(&self) -> usize {
        MESSAGE_BYTES
            + match self {
                Self::Chunk(chunk) => chunk.text.len(),
                Self::Update(Update::ToolCall(call) | Update::ToolCallChanged(call)) => {
                    let texts = call.content.iter().map(|it| {
                        let super::schema::ToolContent::Content { content } = it;
                        match content {
                            ContentBlock::Text { text: data }
                            | ContentBlock::Image { data, .. } => data.len(),
                            ContentBlock::Audio { .. }
                            | ContentBlock::ResourceLink { .. }
                            | ContentBlock::Resource { .. } => 0,
                        }
                    });
                    texts.sum()
                }
                Self::Update(_) | Self::Request { .. } | Self::Notification { .. } => 0,
                Self::Response { .. } => 0,
            }
    }
}

/// The pieces in which a text is written: some clients end for good at a line of 10 MiB, as a stored message may be.
fn pieces(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = Some(text);
    std::iter::from_fn(move || {
        let (piece, more) = rest?.split_at(rest?.floor_char_boundary(BATCH_BYTES));
        rest = Some(more).filter(|more| !more.is_empty());
        Some(piece)
    })
}

/// The parameters of a chunk, which are written for each piece of an answer.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ChunkParams<'a> {
    session_id: &'a str,
    update: ChunkUpdate<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ChunkUpdate<'a> {
    session_update: ChunkKind,
    message_id: &'a str,
    content: TextContent<'a>,
}

#[derive(Serialize)]
struct TextContent<'a> {
    r#type: &'static str,
    text: &'a str,
}

impl<'a> ChunkParams<'a> {
    fn new(session_id: &'a str, chunk: &'a Chunk, text: &'a str) -> Self {
        let Chunk { kind, message_id, .. } = chunk;
        let content = TextContent { r#type: "text", text };
        Self { session_id, update: ChunkUpdate { session_update: *kind, message_id, content } }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn chunk(kind: ChunkKind, message_id: &str, text: &str) -> Item {
        let (message_id, text) = (message_id.to_owned(), text.to_owned());
        Item::Chunk(Chunk { kind, message_id, text })
    }

    /// The lines of a batch as JSON.
    fn messages(batch: &Batch) -> Vec<Value> {
        let text = String::from_utf8_lossy(&batch.lines);
        text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
    }

    #[test]
    fn pieces_of_one_message_become_one_chunk_while_they_wait() {
        let mut queue = Queue::new("s".to_owned());
        let (agent, thought) = (ChunkKind::Answer, ChunkKind::Thought);
        for (kind, id, text) in
            [(agent, "m1", "a"), (agent, "m1", "b"), (thought, "m1", "c"), (agent, "m2", "d")]
        {
            queue.push(chunk(kind, id, text));
        }
        let batch = queue.take();
        let updates: Vec<_> =
            messages(&batch).iter().map(|it| it["params"]["update"].clone()).collect();
        let shown = |kind: &str, id: &str, text: &str| json!({ "sessionUpdate": kind, "messageId": id, "content": { "type": "text", "text": text } });
        let expected = [
            shown("agent_message_chunk", "m1", "ab"),
            shown("agent_thought_chunk", "m1", "c"),
            shown("agent_message_chunk", "m2", "d"),
        ];
        assert_eq!(updates, expected);
        assert!(queue.is_empty());
        assert_eq!(queue.bytes(), 0);
    }

    #[test]
    fn a_long_message_is_written_in_pieces() {
        let mut queue = Queue::new("s".to_owned());
        let long = "é".repeat(BATCH_BYTES);
        queue.push(chunk(ChunkKind::Answer, "m1", &long));
        let lines = messages(&queue.take());
        let texts = lines.iter().map(|it| it["params"]["update"]["content"]["text"].as_str());
        let texts: Vec<_> = texts.map(|text| text.expect("a text")).collect();
        assert_eq!((texts.len(), texts.concat()), (2, long));
    }

    #[test]
    fn a_batch_has_limited_bytes_and_names_what_it_answers() {
        let mut queue = Queue::new("s".to_owned());
        let long = "x".repeat(BATCH_BYTES);
        queue.push(chunk(ChunkKind::Answer, "m1", &long));
        queue.respond(Id::Number(1), Ok(json!({})));
        assert!(queue.bytes() > BATCH_BYTES);
        let (first, second) = (queue.take(), queue.take());
        assert_eq!((messages(&first).len(), first.answered.len()), (1, 0));
        assert_eq!(second.answered, [Id::Number(1)]);
        assert_eq!(queue.bytes(), 0);
    }
}
