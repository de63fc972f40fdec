//! The generated code: one module per protobuf package, as `build.rs` makes it from `proto/`: prost
//! structs and pbjson's serde. Messages are written by pbjson; they are read by
//! `json::read_message`, which knows every spelling of the canonical mapping.

#![expect(
    clippy::allow_attributes,
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

/// `duologue.extract.v1`: what is found in an answer that was asked for as JSON; an extension.
pub mod extract {
    pub use super::duologue::extract::v1::*;
}

/// As deep as the package's name, because the generated code finds [`pinocchio`] by that.
mod duologue {
    pub(super) mod extract {
        pub(crate) mod v1 {
            include!(concat!(env!("OUT_DIR"), "/duologue.extract.v1.rs"));
            include!(concat!(env!("OUT_DIR"), "/duologue.extract.v1.serde.rs"));
        }
    }
}

/// Where the package above looks for what it imports.
mod pinocchio {
    pub(super) mod chatapp {
        pub(crate) use crate::protocol::proto::chat as v1;
    }
}

pub(crate) mod fields;

/// The protobuf descriptors of everything above, as a serialized `FileDescriptorSet`.
pub const DESCRIPTORS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/descriptors.bin"));
