//! The fields of every message, as constants that `build.rs` makes from `proto/`: what a reader of
//! JSON needs of the descriptors, with nothing to decode when the program starts.

/// A message type.
#[derive(Debug)]
pub(crate) struct Message {
    /// Its full name, without a leading dot.
    pub(crate) name: &'static str,
    /// In the order of the `.proto` file.
    pub(crate) fields: &'static [Field],
}

/// A field of a message.
#[derive(Debug)]
pub(crate) struct Field {
    /// The number that stands for it in binary.
    pub(crate) number: u32,
    /// As the `.proto` file spells it.
    pub(crate) name: &'static str,
    /// As JSON spells it.
    pub(crate) json_name: &'static str,
    pub(crate) kind: Kind,
    /// Place in its message of the oneof that it belongs to.
    pub(crate) oneof: Option<u32>,
}

/// What a field holds.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    Bool,
    Int32,
    Int64,
    Uint32,
    Uint64,
    String,
    /// Names of the values, with their numbers.
    Enum(&'static [(&'static str, i32)]),
    Message(&'static Message),
    Repeated(&'static Kind),
    /// From strings to these.
    Map(&'static Kind),
    Any,
    Struct,
    Value,
}

/// The message type of this full name.
pub(crate) fn message(name: &str) -> Option<&'static Message> {
    let place = MESSAGES.binary_search_by(|message| message.name.cmp(name)).ok()?;
    Some(MESSAGES[place])
}

// `MESSAGES`, sorted by name, and a constant for each message.
include!(concat!(env!("OUT_DIR"), "/fields.rs"));
