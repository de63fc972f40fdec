//! Messages as they were stored: bytes until they are written. A conversation of thousands of them that
//! is loaded is shown once and then hardly ever looked at.

use super::Any;
use crate::protocol::proto::chat::ChatMessageEntity;
use prost::Message;
use prost::bytes::Bytes;
use prost::encoding::{WireType, decode_key, decode_varint};
use serde::{Serialize, Serializer};

/// A `ChatMessageEntity` in its binary form. Its JSON and its bytes are those of the message.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Stored(Bytes);

/// The type of the stored message, as in an `Any`.
pub(crate) const STORED_URL: &str = "type.googleapis.com/pinocchio.chatapp.v1.ChatMessageEntity";

impl Stored {
    /// The payload with these bytes; `None` if they have to be read to know whether they are such a
    /// message.
    pub(crate) fn payload(bytes: Bytes) -> Option<Any> {
        is_message(&bytes).then(|| Any::Stored(Box::new(Self(bytes))))
    }

    /// Bytes of its binary form.
    pub(crate) fn len_bytes(&self) -> usize {
        self.0.len()
    }

    /// The message's own name, without its package.
    pub(super) fn name(&self) -> &'static str {
        "ChatMessageEntity"
    }

    /// The message.
    pub(crate) fn whole(&self) -> Any {
        // It was checked: this does not fail.
        ChatMessageEntity::decode(&*self.0).unwrap_or_default().into()
    }
}

impl Serialize for Stored {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.whole().serialize(serializer)
    }
}

/// Whether these are the bytes of a message with all its texts whole. Far cheaper than reading it; of
/// what is seldom there it says no.
fn is_message(bytes: &[u8]) -> bool {
    are_fields(bytes, |tag, value| match (tag, value) {
        (1..=6 | 8 | 9 | 11, Value::Bytes(text)) => std::str::from_utf8(text).is_ok(),
        (7 | 10 | 12, Value::Number) => true,
        (13, Value::Bytes(ids)) => are_fields(ids, |tag, value| match (tag, value) {
            (1 | 2 | 4 | 5 | 15 | 19, Value::Bytes(text)) => std::str::from_utf8(text).is_ok(),
            _ => false,
        }),
        _ => false,
    })
}

enum Value<'a> {
    Number,
    Bytes(&'a [u8]),
}

/// Whether `bytes` are fields that are all right.
fn are_fields(mut bytes: &[u8], is_right: impl Fn(u32, Value<'_>) -> bool) -> bool {
    while !bytes.is_empty() {
        let Ok((tag, wire)) = decode_key(&mut bytes) else { return false };
        let Ok(number) = decode_varint(&mut bytes) else { return false };
        let value = match wire {
            WireType::Varint => Value::Number,
            WireType::LengthDelimited => {
                let length = usize::try_from(number).unwrap_or(usize::MAX);
                let Some((value, rest)) = bytes.split_at_checked(length) else { return false };
                bytes = rest;
                Value::Bytes(value)
            }
            WireType::SixtyFourBit
            | WireType::StartGroup
            | WireType::EndGroup
            | WireType::ThirtyTwoBit => return false,
        };
        if !is_right(tag, value) {
            return false;
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::proto::chat::{ChatAttachment, CorrelationInfo};

    fn message() -> ChatMessageEntity {
        let text = "a long text that is seldom looked at: Größe\u{2028}".repeat(9);
        ChatMessageEntity {
            message_id: "m".to_owned(),
            role: "assistant".to_owned(),
            prompt: "why?".to_owned(),
            text: text.clone(),
            content: text,
            status: "finished".to_owned(),
            error: "the answer was cut off".to_owned(),
            segment: 3,
            segment_type: "text".to_owned(),
            r#final: true,
            correlation: Some(CorrelationInfo {
                session_id: "s".to_owned(),
                tool_call_id: "t".to_owned(),
                ..Default::default()
            }),
            ..Default::default()
        }
    }

    #[test]
    fn what_is_stored_is_written_as_the_message() {
        let message = message();
        let stored = Stored::payload(message.encode_to_vec().into()).expect("a message");
        let whole = Any::from(message);
        let json = |any: &Any| serde_json::to_string(any).expect("JSON");
        assert_eq!(json(&stored), json(&whole));
        assert_eq!(stored.name(), whole.name());
        assert_eq!(stored.encode_to_vec(), whole.encode_to_vec());
        assert_eq!(stored.encoded_len(), whole.encoded_len());
        assert_eq!(stored.to_message(0), whole.to_message(0));
        assert_eq!(stored.into_whole(), whole);
    }

    #[test]
    fn what_can_be_damaged_is_left_to_a_reader() {
        let bytes = message().encode_to_vec();
        for cut in 0..bytes.len() {
            let is_readable = ChatMessageEntity::decode(&bytes[..cut]).is_ok();
            let is_taken = Stored::payload(Bytes::copy_from_slice(&bytes[..cut])).is_some();
            assert!(is_readable || !is_taken, "cut at {cut}");
        }
        for at in 0..bytes.len() {
            for byte in [0, 1, 0x7f, 0x80, 0xff] {
                let mut damaged = bytes.clone();
                damaged[at] = byte;
                let is_readable = ChatMessageEntity::decode(&*damaged).is_ok();
                let is_taken = Stored::payload(damaged.into()).is_some();
                assert!(is_readable || !is_taken, "byte {at} is {byte}");
            }
        }
        let attachments = vec![ChatAttachment::default()];
        let with_file = ChatMessageEntity { attachments, ..message() };
        assert!(Stored::payload(with_file.encode_to_vec().into()).is_none());
    }
}
