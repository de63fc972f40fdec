//! Messages of protobuf in pieces. A long text in them is shared with the conversation, so that a message can
//! be written without a copy of it. Pure.

use crate::support::text::Text;
use prost::Message;
use prost::bytes::BufMut;
use prost::encoding::{WireType, encode_key, encode_varint};

/// Bytes of a text that is copied all the same: a piece of its own would take more.
const TEXT_COPIED_BYTES_MAX: usize = 1024;

/// The binary form of a message: its pieces, one after the other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Pieces {
    list: Vec<Piece>,
    size: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    Bytes(Vec<u8>),
    Text(Text),
}

impl Piece {
    fn as_bytes(&self) -> &[u8] {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::Text(text) => text.as_str().as_bytes(),
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

    /// The whole message.
    pub(crate) fn into_vec(mut self) -> Vec<u8> {
        if let [Piece::Bytes(bytes)] = self.list.as_mut_slice() {
            return std::mem::take(bytes);
        }
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
        self.bytes(|bytes| message.encode_raw(bytes));
    }

    /// Adds a field with a text, unless it is empty.
    pub(crate) fn text(&mut self, tag: u32, text: &Text) {
        if !text.is_empty() {
            self.chosen_text(tag, text);
        }
    }

    /// Adds a field with a text, which is the one that is there of several, and may be empty.
    pub(crate) fn chosen_text(&mut self, tag: u32, text: &Text) {
        self.head(tag, text.len());
        if text.len() <= TEXT_COPIED_BYTES_MAX {
            return self.bytes(|bytes| bytes.put_slice(text.as_str().as_bytes()));
        }
        self.size += text.len();
        self.list.push(Piece::Text(text.clone()));
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
                text @ Piece::Text(_) => {
                    self.size += text.as_bytes().len();
                    self.list.push(text);
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
        if let Some(Piece::Bytes(bytes)) = self.list.last_mut() {
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
            assert_eq!(pieces.into_vec(), whole.encode_to_vec(), "{length}");
        }
    }

    #[test]
    fn a_text_that_was_chosen_is_there_even_if_it_is_empty() {
        let mut pieces = Pieces::default();
        pieces.text(1, &Text::default());
        assert_eq!(pieces.size(), 0);
        pieces.chosen_text(1, &Text::default());
        assert_eq!(pieces.into_vec(), [0x0a, 0]);
    }
}
