//! The well-known types of `google.protobuf` and their JSON in the canonical mapping.
//!
//! The types are those of pbjson-types where its JSON is right. The others are our own: compared with
//! other implementations, pbjson-types writes integers as `1.0`, NaN as `null`, a time without
//! its `Z` and the members of a `Struct` in any order, and rejects spellings that the mapping
//! allows. Fields and numbers are those of the `.proto` files that come with protobuf.

mod field_mask;
mod time;
mod value;
mod wrappers;

pub use field_mask::FieldMask;
pub use pbjson_types::{BoolValue, Empty, StringValue};
pub use time::{Duration, Timestamp};
pub(crate) use value::SENT_LEVELS_MAX;
pub use value::{Kind, ListValue, Struct, Value};
pub use wrappers::{
    BytesValue, DoubleValue, FloatValue, Int32Value, Int64Value, UInt32Value, UInt64Value,
};

/// A well-known type while it is converted from JSON to binary.
pub(super) trait WellKnown: prost::Message + Sized {
    /// Its binary form.
    fn to_bytes(&self) -> Vec<u8> {
        self.encode_to_vec()
    }
}

impl WellKnown for super::Any {}
impl WellKnown for BoolValue {}
impl WellKnown for Duration {}
impl WellKnown for FieldMask {}
impl WellKnown for ListValue {}
impl WellKnown for StringValue {}
impl WellKnown for Struct {}
impl WellKnown for Timestamp {}
impl WellKnown for Value {}
