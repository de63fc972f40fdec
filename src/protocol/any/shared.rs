//! Payloads whose long texts are shared with the conversation, so that a queued frame holds no copy
//! of an answer.

use super::Any;
use crate::protocol::proto::chat;
use crate::support::text::Text;
use serde::{Serialize, Serializer};

/// A message with its `prompt`, `text` and `content` stored separately. Its JSON and its bytes are
/// those of the message returned by [`Any::into_whole`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Shared {
    head: Head,
    prompt: Text,
    /// Both `text` and `content`, which are equal in the protocol.
    text: Text,
    rest: Rest,
}

/// The fields that come before the texts, in the order of their numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Head {
    message_id: String,
    parent_message_id: String,
    role: String,
}

macro_rules! messages {
    ($($name:ident: $($head:ident)*, $($field:ident = $text:ident)*;)*) => {
        /// A message without the fields before it.
        #[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
        #[serde(untagged)]
        #[expect(clippy::enum_variant_names, reason = "they are called as the messages are")]
        enum Rest {
            $($name(Box<chat::$name>),)*
        }

        impl Shared {
            /// The message's own name, without its package.
            pub(crate) fn name(&self) -> &'static str {
                match &self.rest {
                    $(Rest::$name(_) => stringify!($name),)*
                }
            }

            pub(super) fn url(&self) -> &'static str {
                match &self.rest {
                    $(Rest::$name(_) => {
                        concat!("type.googleapis.com/pinocchio.chatapp.v1.", stringify!($name))
                    })*
                }
            }

            /// The message, with copies of its texts.
            pub(crate) fn whole(&self) -> Any {
                match &self.rest {
                    $(Rest::$name(rest) => {
                        let mut it = (**rest).clone();
                        $(it.$head.clone_from(&self.head.$head);)*
                        $(self.$text.as_str().clone_into(&mut it.$field);)*
                        it.into()
                    })*
                }
            }
        }

        $(
            impl From<chat::$name> for Shared {
                /// Without its texts.
                fn from(mut it: chat::$name) -> Self {
                    let mut head = Head::default();
                    $(head.$head = std::mem::take(&mut it.$head);)*
                    $(it.$field = String::new();)*
                    let (prompt, text) = (Text::default(), Text::default());
                    Self { head, prompt, text, rest: Rest::$name(Box::new(it)) }
                }
            }
        )*
    };
}

// The fields before the texts, and the texts; the others come after them.
messages! {
    ChatUserMessageAccepted: message_id role, prompt = prompt text = text content = text;
    ChatTextSegmentStarted: message_id role, prompt = prompt;
    ChatTextSegmentFinished: message_id role, prompt = prompt text = text content = text;
    ChatReasoningSegmentFinished: message_id parent_message_id role, text = text content = text;
    ChatMessageEntity: message_id role, prompt = prompt text = text content = text;
}

impl Shared {
    /// A payload made of a message, whose own texts are ignored, and these texts. A message without
    /// one of the fields takes an empty text for it.
    pub(crate) fn payload(message: impl Into<Self>, prompt: Text, text: Text) -> Any {
        Any::Shared(Box::new(Self { prompt, text, ..message.into() }))
    }

    /// The text that is both `text` and `content`; empty in a message without them.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Replaces each of its texts for which `replacement` gives another.
    pub(crate) fn replace_texts(&mut self, mut replacement: impl FnMut(&Text) -> Option<Text>) {
        for text in [&mut self.prompt, &mut self.text] {
            if let Some(other) = replacement(text) {
                *text = other;
            }
        }
    }

    /// Lower bound for the bytes of text in its JSON.
    pub(crate) fn text_bytes(&self) -> usize {
        self.prompt.len() + 2 * self.text.len()
    }

    /// Whether it is the first event of a prompt.
    #[cfg(feature = "serve")]
    pub(super) fn is_prompt(&self) -> bool {
        matches!(self.rest, Rest::ChatUserMessageAccepted(_))
    }

    /// Whether it ends a segment.
    pub(crate) fn is_segment_end(&self) -> bool {
        match &self.rest {
            Rest::ChatTextSegmentFinished(_) | Rest::ChatReasoningSegmentFinished(_) => true,
            Rest::ChatUserMessageAccepted(_)
            | Rest::ChatTextSegmentStarted(_)
            | Rest::ChatMessageEntity(_) => false,
        }
    }
}

/// The message's JSON, its fields in the order in which a whole message is written.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Fields<'a> {
    #[serde(rename = "@type")]
    url: &'static str,
    #[serde(skip_serializing_if = "str::is_empty")]
    message_id: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    parent_message_id: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    role: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    prompt: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    text: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    content: &'a str,
    #[serde(flatten)]
    rest: &'a Rest,
}

impl Serialize for Shared {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { head, prompt, text, rest } = self;
        let fields = Fields {
            url: self.url(),
            message_id: &head.message_id,
            parent_message_id: &head.parent_message_id,
            role: &head.role,
            prompt,
            text,
            content: text,
            rest,
        };
        fields.serialize(serializer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use prost::Message;

    #[test]
    fn a_shared_payload_is_written_as_its_whole_message() {
        let id = || "m\u{2028}".to_owned();
        let (prompt, text, none) = (Text::from("why?"), Text::from("be\"cause"), Text::default());
        let accepted = chat::ChatUserMessageAccepted { message_id: id(), ..Default::default() };
        let started = chat::ChatTextSegmentStarted { streaming: true, ..Default::default() };
        let finished = chat::ChatTextSegmentFinished {
            message_id: id(),
            role: "assistant".to_owned(),
            status: "finished".to_owned(),
            r#final: true,
            ..Default::default()
        };
        let thought = chat::ChatReasoningSegmentFinished {
            message_id: id(),
            parent_message_id: "root".to_owned(),
            role: "thinking".to_owned(),
            correlation: Some(chat::CorrelationInfo::default()),
            ..Default::default()
        };
        let entity = chat::ChatMessageEntity {
            parent_message_id: "root".to_owned(),
            segment: 3,
            ..Default::default()
        };
        let all = [
            Shared::payload(accepted, prompt.clone(), prompt.clone()),
            Shared::payload(started, prompt.clone(), none.clone()),
            Shared::payload(finished.clone(), prompt.clone(), text.clone()),
            Shared::payload(thought, none.clone(), text.clone()),
            Shared::payload(entity, prompt, text),
            Shared::payload(finished, none.clone(), none),
        ];
        for any in all {
            let Any::Shared(shared) = &any else { panic!("{any:?}") };
            let whole = shared.whole();
            let json = |any: &Any| serde_json::to_string(any).expect("JSON");
            assert_eq!(json(&any), json(&whole));
            assert_eq!(any.name(), whole.name());
            assert_eq!(any.encode_to_vec(), whole.encode_to_vec());
            assert_eq!(any.encoded_len(), whole.encoded_len());
        }
    }
}
