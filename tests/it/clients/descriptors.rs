//! Our protobuf descriptors, for clients that make their types from them.

use anyhow::{Result, bail};
use duologue::protocol::proto::DESCRIPTORS;
use prost::Message;
use prost_types::field_descriptor_proto::{Label, Type};
use prost_types::{DescriptorProto, FieldDescriptorProto, FileDescriptorProto, FileDescriptorSet};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

const FRAME_TYPE: &str = "pinocchio.chatapp.rpc.v1.RpcLine";

/// A file with them. It has an extension added to it, as a server with extensions would have: a
/// strict client refuses what the published messages lack, even if the descriptors know it.
pub(super) static DESCRIPTORS_FILE: LazyLock<PathBuf> =
    LazyLock::new(|| write_descriptors().expect("descriptors are written"));

fn write_descriptors() -> Result<PathBuf> {
    let mut set = FileDescriptorSet::decode(DESCRIPTORS)?;
    without_extended_requests(&mut set);
    let extension = FileDescriptorProto {
        name: Some("duologue/v1/test_extension.proto".to_owned()),
        package: Some("duologue.v1".to_owned()),
        syntax: Some("proto3".to_owned()),
        message_type: vec![DescriptorProto {
            name: Some("TestExtension".to_owned()),
            ..DescriptorProto::default()
        }],
        ..FileDescriptorProto::default()
    };
    add_extension_field(&mut set, &extension)?;
    set.file.insert(0, extension);
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let path = directory.join("descriptors.bin");
    // Moved into place: another test process may be reading it.
    let unfinished = directory.join(format!("descriptors.{}", std::process::id()));
    std::fs::write(&unfinished, set.encode_to_vec())?;
    std::fs::rename(unfinished, &path)?;
    Ok(path)
}

/// Leaves out what requests of the extensions have: these clients read frames, and none of them may
/// need the types of an extension for that.
fn without_extended_requests(set: &mut FileDescriptorSet) {
    const EXTENSION_FIELDS_FROM: i32 = 200;
    let is_published = |name: &str| !["EnableRequest", "ApproveRequest"].contains(&name);
    for file in set.file.iter_mut().filter(|file| file.package().ends_with(".rpc.v1")) {
        file.message_type.retain(|message| is_published(message.name()));
        for message in &mut file.message_type {
            message.field.retain(|field| field.number() < EXTENSION_FIELDS_FROM);
        }
        file.dependency.retain(|name| !name.starts_with("duologue/"));
    }
}

fn add_extension_field(set: &mut FileDescriptorSet, extension: &FileDescriptorProto) -> Result<()> {
    for file in &mut set.file {
        let package = file.package().to_owned();
        let is_frame =
            |message: &&mut DescriptorProto| format!("{package}.{}", message.name()) == FRAME_TYPE;
        if let Some(frame) = file.message_type.iter_mut().find(is_frame) {
            frame.field.push(FieldDescriptorProto {
                name: Some("test_extension".to_owned()),
                json_name: Some("testExtension".to_owned()),
                number: Some(200),
                label: Some(Label::Optional.into()),
                r#type: Some(Type::Message.into()),
                type_name: Some(".duologue.v1.TestExtension".to_owned()),
                ..FieldDescriptorProto::default()
            });
            file.dependency.push(extension.name().to_owned());
            return Ok(());
        }
    }
    bail!("no {FRAME_TYPE} in the descriptors")
}
