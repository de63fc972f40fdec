//! The protocol's schema in three forms: `.proto` files, descriptors, and JSON Schema derived from
//! descriptors. Pure.

mod fixed;
mod messages;

use crate::protocol::proto::DESCRIPTORS;
use serde_json::Value;
use std::fmt::Write;

/// The `.proto` files, as (name in imports, text).
pub const PROTO_FILES: [(&str, &str); 8] = [
    (
        "pinocchio/chatapp/v1/chat.proto",
        include_str!("../../proto/pinocchio/chatapp/v1/chat.proto"),
    ),
    (
        "pinocchio/chatapp/frontendtools/v1/frontend_tool.proto",
        include_str!("../../proto/pinocchio/chatapp/frontendtools/v1/frontend_tool.proto"),
    ),
    (
        "pinocchio/chatapp/rpc/v1/rpc.proto",
        include_str!("../../proto/pinocchio/chatapp/rpc/v1/rpc.proto"),
    ),
    (
        "duologue/extract/v1/extract.proto",
        include_str!("../../proto/duologue/extract/v1/extract.proto"),
    ),
    ("duologue/tools/v1/tools.proto", include_str!("../../proto/duologue/tools/v1/tools.proto")),
    (
        "duologue/session/v1/session.proto",
        include_str!("../../proto/duologue/session/v1/session.proto"),
    ),
    (
        "duologue/provider/v1/provider.proto",
        include_str!("../../proto/duologue/provider/v1/provider.proto"),
    ),
    ("duologue/store/v1/store.proto", include_str!("../../proto/duologue/store/v1/store.proto")),
];

/// Schemas of documents that are no protobuf messages, as JSON texts.
const JSON_STREAM: &str = include_str!("schema/json_stream.json");
const ENVELOPE: &str = include_str!("schema/envelope.json");
const LIST_EVENTS: &str = include_str!("schema/list_events.json");
const MANIFEST: &str = include_str!("schema/manifest.json");

/// All `.proto` files as one text, each after a comment with its name.
pub(crate) fn proto_text() -> String {
    let mut all = String::new();
    for (name, text) in PROTO_FILES {
        let between = if all.is_empty() { "" } else { "\n" };
        // Writing to a String can't fail.
        write!(all, "{between}// ==== {name} ====\n\n{text}").ok();
    }
    all
}

/// A serialized `google.protobuf.FileDescriptorSet` of the files and their imports.
pub(crate) fn descriptors() -> &'static [u8] {
    DESCRIPTORS
}

/// JSON Schema, draft 2020-12, of a line that the server writes.
pub(crate) fn frame() -> Value {
    messages::frame()
}

/// JSON Schema of a line that the server reads.
pub(crate) fn request() -> Value {
    messages::request()
}

/// JSON Schema of a line of `--output stream-json`, with its envelope.
pub(crate) fn json_stream() -> Value {
    parsed(JSON_STREAM)
}

/// JSON Schema of the one object that a command prints with `--no-stream`.
pub(crate) fn envelope() -> Value {
    parsed(ENVELOPE)
}

/// JSON Schema of a line of `list-events`.
pub(crate) fn list_events() -> Value {
    parsed(LIST_EVENTS)
}

/// JSON Schema of the output of `--manifest`.
pub(crate) fn manifest() -> Value {
    parsed(MANIFEST)
}

/// A test checks that each of these is JSON.
fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_default()
}

#[cfg(test)]
mod tests;
