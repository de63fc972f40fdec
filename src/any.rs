//! `google.protobuf.Any` as `{"@type": …}` over a closed list of payload types.

use crate::proto::chat;
use prost::bytes::{Buf, BufMut};
use prost::encoding::{DecodeContext, WireType};
use serde::{Deserialize, Serialize};

macro_rules! payloads {
    ($($module:ident :: $name:ident = $full:literal,)*) => {
        /// A payload, typed.
        #[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
        #[serde(tag = "@type")]
        pub enum Any {
            $(
                #[doc = $full]
                #[serde(rename = $full)]
                $name(Box<$module::$name>),
            )*
        }

        impl Any {
            /// The message's own name, without its package.
            pub fn name(&self) -> &'static str {
                match self { $(Self::$name(_) => stringify!($name),)* }
            }
        }

        $(
            impl From<$module::$name> for Any {
                fn from(message: $module::$name) -> Self { Self::$name(Box::new(message)) }
            }
        )*
    };
}

payloads! {
    chat::ChatRunStarted = "type.googleapis.com/pinocchio.chatapp.v1.ChatRunStarted",
    chat::ChatRunFinished = "type.googleapis.com/pinocchio.chatapp.v1.ChatRunFinished",
    chat::ChatRunStopped = "type.googleapis.com/pinocchio.chatapp.v1.ChatRunStopped",
    chat::ChatRunFailed = "type.googleapis.com/pinocchio.chatapp.v1.ChatRunFailed",
    chat::ChatProviderCallStarted = "type.googleapis.com/pinocchio.chatapp.v1.ChatProviderCallStarted",
    chat::ChatProviderCallMetadataUpdated = "type.googleapis.com/pinocchio.chatapp.v1.ChatProviderCallMetadataUpdated",
    chat::ChatProviderCallFinished = "type.googleapis.com/pinocchio.chatapp.v1.ChatProviderCallFinished",
    chat::ChatTextSegmentStarted = "type.googleapis.com/pinocchio.chatapp.v1.ChatTextSegmentStarted",
    chat::ChatTextPatch = "type.googleapis.com/pinocchio.chatapp.v1.ChatTextPatch",
    chat::ChatTextDelta = "type.googleapis.com/pinocchio.chatapp.v1.ChatTextDelta",
    chat::ChatTextSegmentFinished = "type.googleapis.com/pinocchio.chatapp.v1.ChatTextSegmentFinished",
    chat::ChatReasoningDelta = "type.googleapis.com/pinocchio.chatapp.v1.ChatReasoningDelta",
    chat::ChatReasoningSegmentStarted = "type.googleapis.com/pinocchio.chatapp.v1.ChatReasoningSegmentStarted",
    chat::ChatReasoningPatch = "type.googleapis.com/pinocchio.chatapp.v1.ChatReasoningPatch",
    chat::ChatReasoningSegmentFinished = "type.googleapis.com/pinocchio.chatapp.v1.ChatReasoningSegmentFinished",
    chat::ChatToolCallStarted = "type.googleapis.com/pinocchio.chatapp.v1.ChatToolCallStarted",
    chat::ChatToolArgumentsDelta = "type.googleapis.com/pinocchio.chatapp.v1.ChatToolArgumentsDelta",
    chat::ChatToolArgumentsPatch = "type.googleapis.com/pinocchio.chatapp.v1.ChatToolArgumentsPatch",
    chat::ChatToolCallRequested = "type.googleapis.com/pinocchio.chatapp.v1.ChatToolCallRequested",
    chat::ChatToolExecutionStarted = "type.googleapis.com/pinocchio.chatapp.v1.ChatToolExecutionStarted",
    chat::ChatToolResultReady = "type.googleapis.com/pinocchio.chatapp.v1.ChatToolResultReady",
    chat::ChatToolCallFinished = "type.googleapis.com/pinocchio.chatapp.v1.ChatToolCallFinished",
    chat::ChatUserMessageAccepted = "type.googleapis.com/pinocchio.chatapp.v1.ChatUserMessageAccepted",
    chat::ChatMessageEntity = "type.googleapis.com/pinocchio.chatapp.v1.ChatMessageEntity",
    chat::ToolCallEntity = "type.googleapis.com/pinocchio.chatapp.v1.ToolCallEntity",
    chat::ToolResultEntity = "type.googleapis.com/pinocchio.chatapp.v1.ToolResultEntity",
}

impl Default for Any {
    fn default() -> Self {
        chat::ChatTextDelta::default().into()
    }
}

impl prost::Message for Any {
    fn encode_raw(&self, _: &mut impl BufMut) {}
    fn merge_field(
        &mut self,
        _: u32,
        _: WireType,
        _: &mut impl Buf,
        _: DecodeContext,
    ) -> Result<(), prost::DecodeError> {
        Ok(())
    }
    fn encoded_len(&self) -> usize {
        0
    }
    fn clear(&mut self) {}
}

/// placeholder
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Struct;
impl Eq for Struct {}
impl std::hash::Hash for Struct {
    fn hash<H: std::hash::Hasher>(&self, _: &mut H) {}
}
impl prost::Message for Struct {
    fn encode_raw(&self, _: &mut impl BufMut) {}
    fn merge_field(
        &mut self,
        _: u32,
        _: WireType,
        _: &mut impl Buf,
        _: DecodeContext,
    ) -> Result<(), prost::DecodeError> {
        Ok(())
    }
    fn encoded_len(&self) -> usize {
        0
    }
    fn clear(&mut self) {}
}
