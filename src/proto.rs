//! The generated code: one module per protobuf package, as `build.rs` makes it from `proto/`.

#![expect(
    clippy::allow_attributes,
    clippy::let_underscore_must_use,
    clippy::wildcard_enum_match_arm,
    reason = "generated: the comments stand in proto/, the style is the generators'"
)]

/// `pinocchio.chatapp.rpc.v1`: request lines and frames.
pub mod rpc {
    include!(concat!(env!("OUT_DIR"), "/pinocchio.chatapp.rpc.v1.rs"));
    include!(concat!(env!("OUT_DIR"), "/pinocchio.chatapp.rpc.v1.serde.rs"));
}

/// `pinocchio.chatapp.v1`: what happens in a run, and what a conversation looks like.
pub mod chat {
    include!(concat!(env!("OUT_DIR"), "/pinocchio.chatapp.v1.rs"));
    include!(concat!(env!("OUT_DIR"), "/pinocchio.chatapp.v1.serde.rs"));
}

/// `pinocchio.chatapp.frontendtools.v1`: tools that the client offers and runs.
pub mod frontendtools {
    include!(concat!(env!("OUT_DIR"), "/pinocchio.chatapp.frontendtools.v1.rs"));
    include!(concat!(env!("OUT_DIR"), "/pinocchio.chatapp.frontendtools.v1.serde.rs"));
}

/// The protobuf descriptors of everything above, as a serialized `FileDescriptorSet`.
pub const DESCRIPTORS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/descriptors.bin"));
