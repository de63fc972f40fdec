//! The wire format: protobuf messages, their JSON, and the values that the contract fixes. Pure.
//!
//! | module | what it is |
//! |---|---|
//! | [`json`] | protobuf's JSON: numbers, `null`, duplicates, depth, line separators |
//! | `base64` | base64 as any encoder writes it |
//! | [`any`], [`proto`] | the messages: `proto/`, compiled by `build.rs` without `protoc`; `Any` as `{"@type": …}` over a closed list of payloads. They are read over a table of fields, in every spelling of the canonical mapping, and written by pbjson |
//! | `pieces` | messages in binary form, piece by piece, without copies of long texts |
//! | [`attachment`] | images and files of a prompt: where their content is, and what it is by its bytes |
//! | [`id`], `constants` | ids and ordinals, each its own type; codes, statuses, roles and kinds |
//! | `error_text` | what a person reads of an error |
//! | [`event_filter`] | the events that a client wants to be written, by their names |
//! | [`command`], [`wire`] | the commands of requests; a line → a request or its error, a frame, error codes |
//! | `descriptors`, [`schema`] | the `.proto` files, descriptors and JSON Schemas |
//! | `grpc` | how messages of gRPC are encoded; with the cargo feature `serve` alone |

pub mod json;

pub(crate) mod base64;

pub mod any;
pub mod proto;

pub mod attachment;
pub mod id;

pub(crate) mod pieces;

pub(crate) mod constants;
pub(crate) mod error_text;

pub mod event_filter;

pub mod command;

pub mod wire;

pub(crate) mod descriptors;
pub mod schema;

#[cfg(feature = "serve")]
pub(crate) mod grpc;
