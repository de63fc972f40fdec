//! The wire format: protobuf messages, their JSON, and the values that the contract fixes.

pub mod json;

pub mod any;
pub mod proto;

pub mod attachment;
pub mod id;

pub(crate) mod words;

pub mod command;

pub mod wire;

pub(crate) mod descriptors;
pub mod schema;
