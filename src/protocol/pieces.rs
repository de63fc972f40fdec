//! Messages of protobuf in pieces. A long text in them is shared with the conversation, so that a message can
//! be written without a copy of it. Pure.

use crate::support::text::Text;
use prost::Message;
use prost::bytes::BufMut;
use prost::encoding::{WireType, encode_key, encode_varint};
use std::fmt::{self, Debug};
use std::sync::Arc;

/// Bytes of a text that is copied all the same: a piece of its own would take more.
const TEXT_COPIED_BYTES_MAX: usize = 1024;

/// Bytes after which another piece begins: one buffer for all would be copied as it grows, into twice its size.
const PIECE_BYTES_MAX: usize = 64 * 1024;

/// The binary form of a message: its pieces, one after the other.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pieces {
    list: Vec<Piece>,
    size: usize,
}

#[derive(Clone)]
enum Piece {
    Bytes(Vec<u8>),
    Shared(Arc<dyn AsRef<[u8]> + Send + Sync>),
}

impl Debug for Piece {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.as_bytes().len())
    }
}

impl Piece {
    fn as_bytes(&self) -> &[u8] {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::Shared(shared) => (**shared).as_ref(),
        }
    }
}

impl From<Vec<u8>> for Pieces {
    fn from(bytes: Vec<u8>) -> Self {
        Self { size: bytes.len(), list: vec![Piece::Bytes(bytes)] }
    }
}

impl Pieces {
    /// The fields of a message.
    pub(crate) fn of(message: &impl Message) -> Self {
        let mut pieces = Self::default();
        pieces.fields(message);
        pieces
    }

    /// Bytes of the whole message.
    pub(crate) fn size(&self) -> usize {
        self.size
    }

    /// The pieces.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &[u8]> {
        self.list.iter().map(Piece::as_bytes)
    }

    /// A copy of the whole message.
    pub(crate) fn to_vec(&self) -> Vec<u8> {
        let mut whole = Vec::with_capacity(self.size);
        self.write_to(&mut whole);
        whole
    }

    /// Writes the whole message.
    pub(crate) fn write_to(&self, out: &mut impl BufMut) {
        self.iter().for_each(|piece| out.put_slice(piece));
    }

    /// Adds the fields that `message` has.
    pub(crate) fn fields(&mut self, message: &impl Message) {
        let size = message.encoded_len();
        self.bytes(|bytes| {
            bytes.reserve(size);
            message.encode_raw(bytes);
        });
    }

    /// Adds a field with a text, unless it is empty.
    pub(crate) fn text(&mut self, tag: u32, text: &Text) {
        if !text.is_empty() {
            self.shared(tag, text.len(), || text.shared());
        }
    }

    /// Adds a field with so many bytes that are shared.
    pub(crate) fn shared(
        &mut self,
        tag: u32,
        size: usize,
        bytes: impl FnOnce() -> Arc<dyn AsRef<[u8]> + Send + Sync>,
    ) {
        self.head(tag, size);
        let shared = bytes();
        if size <= TEXT_COPIED_BYTES_MAX {
            return self.bytes(|bytes| bytes.put_slice((*shared).as_ref()));
        }
        self.size += size;
        self.list.push(Piece::Shared(shared));
    }

    /// Adds a field with a message.
    pub(crate) fn message(&mut self, tag: u32, message: Self) {
        self.head(tag, message.size);
        self.append(message);
    }

    /// Adds more fields.
    pub(crate) fn append(&mut self, more: Self) {
        for piece in more.list {
            match piece {
                Piece::Bytes(more) => self.bytes(|bytes| match bytes.is_empty() {
                    true => *bytes = more,
                    false => bytes.extend_from_slice(&more),
                }),
                shared @ Piece::Shared(_) => {
                    self.size += shared.as_bytes().len();
                    self.list.push(shared);
                }
            }
        }
    }

    fn head(&mut self, tag: u32, size: usize) {
        self.bytes(|bytes| {
            encode_key(tag, WireType::LengthDelimited, bytes);
            encode_varint(size as u64, bytes);
        });
    }

    /// Adds to the last piece, if that is bytes.
    fn bytes(&mut self, add: impl FnOnce(&mut Vec<u8>)) {
        if let Some(Piece::Bytes(bytes)) = self.list.last_mut()
            && bytes.len() < PIECE_BYTES_MAX
        {
            let before = bytes.len();
            add(bytes);
            self.size += bytes.len() - before;
            return;
        }
        let mut bytes = Vec::new();
        add(&mut bytes);
        if !bytes.is_empty() {
            self.size += bytes.len();
            self.list.push(Piece::Bytes(bytes));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::proto::chat::{ChatMessageEntity, CorrelationInfo};

    #[test]
    fn pieces_are_the_message_and_share_its_long_texts() {
        for length in [0, 1, TEXT_COPIED_BYTES_MAX, TEXT_COPIED_BYTES_MAX + 1] {
            let text = Text::from("t".repeat(length));
            let ids = CorrelationInfo { run_id: "r".repeat(length), ..Default::default() };
            let whole = ChatMessageEntity {
                message_id: "m".to_owned(),
                text: text.as_str().to_owned(),
                r#final: true,
                correlation: Some(ids.clone()),
                ..Default::default()
            };
            let id = ChatMessageEntity { message_id: "m".to_owned(), ..Default::default() };
            let mut pieces = Pieces::of(&id);
            pieces.text(4, &text);
            pieces.fields(&ChatMessageEntity { r#final: true, ..Default::default() });
            let mut of_ids = Pieces::default();
            of_ids.text(2, &ids.run_id.as_str().into());
            pieces.message(13, of_ids);
            assert_eq!(pieces.size(), whole.encoded_len(), "{length}");
            let shares = |piece: &[u8]| piece.as_ptr() == text.as_ptr();
            assert_eq!(pieces.iter().any(shares), length > TEXT_COPIED_BYTES_MAX);
            assert_eq!(pieces.to_vec(), whole.encode_to_vec(), "{length}");
        }
    }
}
