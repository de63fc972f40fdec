//! `google.protobuf.Any` as `{"@type": …}` over a closed list of payload types.

mod read;
mod shared;
mod wkt;

#[cfg(test)]
mod mapping;

pub use read::read_message;
pub(crate) use read::{message_from_value, read_written};
pub use shared::Shared;
pub(crate) use wkt::SENT_LEVELS_MAX;
pub use wkt::{
    BoolValue, BytesValue, DoubleValue, Duration, Empty, FieldMask, FloatValue, Int32Value,
    Int64Value, Kind, ListValue, StringValue, Struct, Timestamp, UInt32Value, UInt64Value, Value,
};

use crate::protocol::proto::{chat, extract, frontendtools, provider, session, tools};
use prost::Message;
use prost::bytes::{Buf, BufMut};
use prost::encoding::{self, DecodeContext, WireType};
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, MapAccess};
use serde::ser::{self, SerializeMap, SerializeStruct, Serializer};
use serde::{Deserialize, Serialize};
use wkt::WellKnown;

macro_rules! payloads {
    (
        messages { $($module:ident :: $name:ident = $url:literal,)* }
        well_known { $($known:ident = $known_url:literal,)* }
    ) => {
        /// A message of any type: one variant for each possible payload, so that JSON needs
        /// no detour through bytes.
        ///
        /// JSON as in the canonical mapping: `@type` and the message's fields, or `value` for the
        /// well-known types. It is written first and read at any position. Only the URLs of this
        /// list are known, including `type.googleapis.com/`: what is read is written back
        /// unchanged.
        #[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
        #[serde(tag = "@type")]
        pub enum Any {
            $(
                #[doc = concat!("`", $url, "`")]
                #[serde(rename = $url)]
                $name(Box<$module::$name>),
            )*
            $(
                #[doc = concat!("`", $known_url, "`")]
                #[serde(rename = $known_url, serialize_with = "serialize_value")]
                $known(Box<$known>),
            )*
            /// A message of the list with shared texts. Never read, only written.
            #[serde(untagged)]
            Shared(Box<Shared>),
            /// An unknown type, as bytes. It has no JSON form, except that an `Any`
            /// without a type is `{}`.
            #[serde(untagged, serialize_with = "serialize_other")]
            Other(Box<prost_types::Any>),
        }

        /// The own names of all messages but the well-known types.
        pub(crate) const NAMES: &[&str] = &[$(stringify!($name)),*];

        impl Any {
            /// The message's own name, without its package; empty for [`Any::Other`].
            pub fn name(&self) -> &'static str {
                match self {
                    $(Self::$name(_) => stringify!($name),)*
                    $(Self::$known(_) => stringify!($known),)*
                    Self::Shared(shared) => shared.name(),
                    Self::Other(_) => "",
                }
            }

            /// The message's name with its package, of a message that may be an extension's: those with
            /// shared texts, and those that are not known, are none.
            pub(crate) fn full_name(&self) -> Option<&'static str> {
                match self {
                    $(Self::$name(_) => Some(full_name($url)),)*
                    $(Self::$known(_) => Some(full_name($known_url)),)*
                    Self::Shared(_) | Self::Other(_) => None,
                }
            }

            /// The payload, with copies of its shared texts.
            pub fn into_whole(self) -> Self {
                if let Self::Shared(shared) = &self { shared.whole() } else { self }
            }

            fn from_bytes(
                bytes: prost_types::Any,
                context: DecodeContext,
            ) -> Result<Self, prost::DecodeError> {
                match bytes.type_url.as_str() {
                    $($url => Ok(Self::$name(decode(&bytes.value, context)?)),)*
                    $($known_url => Ok(Self::$known(decode(&bytes.value, context)?)),)*
                    _ => Ok(Self::Other(Box::new(bytes))),
                }
            }

            fn into_bytes(self) -> prost_types::Any {
                match self {
                    $(Self::$name(message) => encode($url, &*message),)*
                    $(Self::$known(message) => encode($known_url, &*message),)*
                    Self::Shared(shared) => shared.whole().into_bytes(),
                    Self::Other(bytes) => *bytes,
                }
            }
        }

        /// Whether a message of this type has its fields next to its `@type`.
        fn is_payload(url: &str) -> bool {
            matches!(url, $($url)|*)
        }

        /// Reads a well-known type from the `value` next to its `@type`, into bytes; `None` for
        /// other types.
        fn read_known<'de, A: MapAccess<'de>>(
            url: &str,
            entries: A,
        ) -> Result<Option<Vec<u8>>, A::Error> {
            let entries = MapAccessDeserializer::new(entries);
            match url {
                $($known_url => read_value::<$known, _>(entries).map(Some),)*
                _ => Ok(None),
            }
        }

        impl Message for Any {
            fn encode_raw(&self, out: &mut impl BufMut) {
                match self {
                    $(Self::$name(message) => encode_raw($url, &**message, out),)*
                    $(Self::$known(message) => encode_raw($known_url, &**message, out),)*
                    Self::Shared(shared) => shared.whole().encode_raw(out),
                    Self::Other(bytes) => bytes.encode_raw(out),
                }
            }

            fn merge_field(
                &mut self,
                tag: u32,
                wire_type: WireType,
                input: &mut impl Buf,
                context: DecodeContext,
            ) -> Result<(), prost::DecodeError> {
                // The two fields come in any order, and the last of each counts: both are kept as
                // bytes while one is read.
                let mut bytes = std::mem::take(self).into_bytes();
                bytes.merge_field(tag, wire_type, input, context.clone())?;
                *self = Self::from_bytes(bytes, context)?;
                Ok(())
            }

            fn encoded_len(&self) -> usize {
                match self {
                    $(Self::$name(message) => encoded_len($url, &**message),)*
                    $(Self::$known(message) => encoded_len($known_url, &**message),)*
                    Self::Shared(shared) => shared.whole().encoded_len(),
                    Self::Other(bytes) => bytes.encoded_len(),
                }
            }

            fn clear(&mut self) {
                *self = Self::default();
            }
        }

        $(
            impl From<$module::$name> for Any {
                fn from(message: $module::$name) -> Self {
                    Self::$name(Box::new(message))
                }
            }
        )*
    };
}

// Every message of the packages with payloads, as `build.rs` finds them in `proto/`.
include!(concat!(env!("OUT_DIR"), "/payloads.rs"));

/// No type and no bytes, as in protobuf.
impl Any {
    /// Whether it is a piece of a segment, or of the arguments of a tool call.
    pub(crate) fn is_patch(&self) -> bool {
        matches!(
            self,
            Self::ChatTextPatch(_) | Self::ChatReasoningPatch(_) | Self::ChatToolArgumentsPatch(_)
        )
    }

    /// Whether it is the first event of a prompt, also of one that joins a run.
    #[cfg(feature = "serve")]
    pub(crate) fn is_prompt(&self) -> bool {
        let is_shared = matches!(self, Self::Shared(shared) if shared.is_prompt());
        is_shared || matches!(self, Self::ChatUserMessageAccepted(_))
    }
}

impl Default for Any {
    fn default() -> Self {
        Self::Other(Box::default())
    }
}

/// The prefix of the full name in the URL of a type.
const URL_PREFIX: &str = "type.googleapis.com/";

fn full_name(url: &'static str) -> &'static str {
    url.strip_prefix(URL_PREFIX).unwrap_or(url)
}

/// The form of the well-known types in an `Any`.
fn serialize_value<T: Serialize, S: Serializer>(
    message: &T,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let mut fields = serializer.serialize_struct("Any", 1)?;
    fields.serialize_field("value", message)?;
    fields.end()
}

fn read_value<'de, T, D>(entries: D) -> Result<Vec<u8>, D::Error>
where
    T: WellKnown + Deserialize<'de>,
    D: Deserializer<'de>,
{
    #[derive(Deserialize)]
    struct Fields<T> {
        value: T,
    }
    Ok(Fields::<T>::deserialize(entries)?.value.to_bytes())
}

fn serialize_other<S: Serializer>(
    bytes: &prost_types::Any,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    if *bytes != prost_types::Any::default() {
        let url = &bytes.type_url;
        return Err(ser::Error::custom(format_args!("no JSON for an Any of type {url:?}")));
    }
    serializer.serialize_map(Some(0))?.end()
}

/// Goes through `encoding::message`, which counts the levels: nested `Any` messages
/// must not overflow the stack.
fn decode<M: Message + Default>(
    bytes: &[u8],
    context: DecodeContext,
) -> Result<Box<M>, prost::DecodeError> {
    let mut message = Box::<M>::default();
    let mut length = Vec::new();
    encoding::encode_varint(bytes.len() as u64, &mut length);
    let mut prefixed = length.chain(bytes);
    encoding::message::merge(WireType::LengthDelimited, &mut *message, &mut prefixed, context)?;
    Ok(message)
}

fn encode(url: &str, message: &impl Message) -> prost_types::Any {
    prost_types::Any { type_url: url.to_owned(), value: message.encode_to_vec() }
}

/// `type_url` = 1, `value` = 2; empty fields are left out.
fn encode_raw(url: &'static str, message: &impl Message, out: &mut impl BufMut) {
    encoding::encode_key(1, WireType::LengthDelimited, out);
    encoding::encode_varint(url.len() as u64, out);
    out.put_slice(url.as_bytes());
    if message.encoded_len() > 0 {
        encoding::message::encode(2, message, out);
    }
}

fn encoded_len(url: &'static str, message: &impl Message) -> usize {
    let url = encoding::key_len(1) + encoding::encoded_len_varint(url.len() as u64) + url.len();
    match message.encoded_len() {
        0 => url,
        _ => url + encoding::message::encoded_len(2, message),
    }
}
