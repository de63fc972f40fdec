//! Makes the generated code of `src/proto.rs` from `proto/`, with no `protoc` on the machine.

use anyhow::Result;
use std::path::PathBuf;

const PROTOS: [&str; 3] = [
    "pinocchio/chatapp/v1/chat.proto",
    "pinocchio/chatapp/frontendtools/v1/frontend_tool.proto",
    "pinocchio/chatapp/rpc/v1/rpc.proto",
];

const WITHOUT_EQ: [&str; 3] = [
    ".pinocchio.chatapp.v1.ChatAttachment",
    ".pinocchio.chatapp.v1.ChatUserMessageAccepted",
    ".pinocchio.chatapp.v1.ChatMessageEntity",
];

fn main() -> Result<()> {
    println!("cargo::rerun-if-changed=proto");
    let out = PathBuf::from(std::env::var("OUT_DIR")?);
    let files = protox::compile(PROTOS, ["proto"])?;
    let descriptors = prost::Message::encode_to_vec(&files);
    std::fs::write(out.join("descriptors.bin"), &descriptors)?;
    let mut config = prost_build::Config::new();
    // Sorted maps: the same message is the same line every time.
    config.btree_map(["."]);
    // prost leaves these two out wherever a map or a `Struct` is; our `Any` holds every payload
    // and needs both.
    for message in WITHOUT_EQ {
        config.type_attribute(message, "#[derive(Eq, Hash)]");
    }
    config
        .extern_path(".google.protobuf.Any", "crate::any::Any")
        .extern_path(".google.protobuf.Struct", "crate::any::Struct");
    tonic_prost_build::configure()
        .build_client(false)
        .build_server(false)
        .compile_fds_with_config(files, config)?;
    pbjson_build::Builder::new()
        .register_descriptors(&descriptors)?
        .btree_map(["."])
        .ignore_unknown_fields()
        .build(&[".pinocchio"])?;
    Ok(())
}
