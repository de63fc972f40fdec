//! Makes the generated code of `src/proto.rs` and `src/any.rs` from `proto/`, with no `protoc` on
//! the machine.

use anyhow::{Result, bail, ensure};
use prost_types::field_descriptor_proto::{Label, Type};
use prost_types::{DescriptorProto, FieldDescriptorProto, FileDescriptorProto, FileDescriptorSet};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const PROTOS: [&str; 8] = [
    "pinocchio/chatapp/v1/chat.proto",
    "pinocchio/chatapp/frontendtools/v1/frontend_tool.proto",
    "pinocchio/chatapp/rpc/v1/rpc.proto",
    "duologue/extract/v1/extract.proto",
    "duologue/tools/v1/tools.proto",
    "duologue/session/v1/session.proto",
    "duologue/provider/v1/provider.proto",
    "duologue/store/v1/store.proto",
];

/// The packages whose messages travel in an `Any`: (package, module of `src/proto.rs`).
const PAYLOADS: [(&str, &str); 6] = [
    ("pinocchio.chatapp.v1", "chat"),
    ("pinocchio.chatapp.frontendtools.v1", "frontendtools"),
    ("duologue.extract.v1", "extract"),
    ("duologue.tools.v1", "tools"),
    ("duologue.session.v1", "session"),
    ("duologue.provider.v1", "provider"),
];

/// The packages whose messages have a JSON form. What a store keeps has none.
const PACKAGES_WITH_JSON: [&str; 5] = [
    ".pinocchio",
    ".duologue.extract",
    ".duologue.tools",
    ".duologue.session",
    ".duologue.provider",
];

/// The types of `src/any/wkt.rs` whose JSON stands under `value` in an `Any`, and `Any` itself.
const WELL_KNOWN: [&str; 16] = [
    "Any",
    "BoolValue",
    "BytesValue",
    "DoubleValue",
    "Duration",
    "FieldMask",
    "FloatValue",
    "Int32Value",
    "Int64Value",
    "ListValue",
    "StringValue",
    "Struct",
    "Timestamp",
    "UInt32Value",
    "UInt64Value",
    "Value",
];

/// prost leaves these two out wherever a map, a `Struct` or a `Value` is; our `Any` holds every
/// payload and needs both.
const WITHOUT_EQ: [&str; 6] = [
    ".pinocchio.chatapp.v1.ChatAttachment",
    ".pinocchio.chatapp.v1.ChatUserMessageAccepted",
    ".pinocchio.chatapp.v1.ChatMessageEntity",
    ".pinocchio.chatapp.frontendtools.v1",
    ".duologue.extract.v1.ObjectExtracted",
    ".duologue.tools.v1.ToolCallProgressed",
];

fn main() -> Result<()> {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=proto");
    let out = PathBuf::from(std::env::var("OUT_DIR")?);
    start_fast(&out);
    let files = protox::compile(PROTOS, ["proto"])?;
    let descriptors = prost::Message::encode_to_vec(&files);
    std::fs::write(out.join("descriptors.bin"), &descriptors)?;
    std::fs::write(out.join("payloads.rs"), payloads(&files)?)?;
    std::fs::write(out.join("fields.rs"), fields(&files)?)?;
    messages(files)?;
    fleet(&out)?;
    pbjson_build::Builder::new()
        .register_descriptors(&descriptors)?
        .btree_map(["."])
        .ignore_unknown_fields()
        .build(&PACKAGES_WITH_JSON)?;
    Ok(())
}

/// prost's part: the structs, and their binary form.
fn messages(files: FileDescriptorSet) -> Result<()> {
    let mut config = prost_build::Config::new();
    // Sorted maps: the same message is the same line every time.
    config.btree_map(["."]);
    // The reader of JSON finds a message's fields by its name.
    config.enable_type_names();
    for message in WITHOUT_EQ {
        config.message_attribute(message, "#[derive(Eq, Hash)]");
    }
    // A row is read and written event by event (`store/codec`); the message is there for other programs.
    config.message_attribute(
        ".duologue.store.v1.StoredEvents",
        "#[expect(dead_code, reason = \"rows are read and written event by event\")]",
    );
    config
        .extern_path(".google.protobuf.Any", "crate::protocol::any::Any")
        .extern_path(".google.protobuf.Struct", "crate::protocol::any::Struct")
        .extern_path(".google.protobuf.Value", "crate::protocol::any::Value");
    tonic_prost_build::configure()
        .build_client(false)
        .build_server(false)
        .compile_fds_with_config(files, config)?;
    Ok(())
}

/// The service of a node and its messages, if the program has the front end for fleets.
fn fleet(out: &Path) -> Result<()> {
    if std::env::var_os("CARGO_FEATURE_SERVE").is_none() {
        return Ok(());
    }
    let files = protox::compile(["duologue/fleet/v1/fleet.proto"], ["proto"])?;
    std::fs::write(out.join("fleet.bin"), prost::Message::encode_to_vec(&files))?;
    let out = out.join("fleet");
    std::fs::create_dir_all(&out)?;
    let mut config = prost_build::Config::new();
    config.extern_path(".pinocchio", "crate::protocol::proto::pinocchio");
    config.extern_path(".duologue.tools", "crate::protocol::proto::duologue::tools");
    config.extern_path(".google.protobuf.Any", "crate::protocol::any::Any");
    config.extern_path(".google.protobuf.Struct", "crate::protocol::any::Struct");
    config.extern_path(".google.protobuf.Value", "crate::protocol::any::Value");
    // Which transport a client has is for the program that has one.
    tonic_prost_build::configure()
        .build_transport(false)
        .codec_path("crate::protocol::grpc::FrameCodec")
        .out_dir(out)
        .compile_fds_with_config(files, config)?;
    Ok(())
}

/// Our part: the closed list of what an `Any` may hold, for the macro of `src/any.rs`.
fn payloads(files: &FileDescriptorSet) -> Result<String> {
    let mut list = String::from("payloads! {\n    messages {\n");
    for (package, module) in PAYLOADS {
        for file in files.file.iter().filter(|file| file.package() == package) {
            for message in &file.message_type {
                let name = message.name();
                writeln!(list, "{module}::{name} = \"type.googleapis.com/{package}.{name}\",")?;
            }
        }
    }
    // Well-known, but a message like any other in JSON.
    list.push_str("wkt::Empty = \"type.googleapis.com/google.protobuf.Empty\",\n");
    list.push_str("    }\n    well_known {\n");
    for name in WELL_KNOWN {
        writeln!(list, "{name} = \"type.googleapis.com/google.protobuf.{name}\",")?;
    }
    list.push_str("    }\n}\n");
    Ok(list)
}

/// Our part: what the reader of JSON knows of each message, for `src/proto/fields.rs`.
fn fields(files: &FileDescriptorSet) -> Result<String> {
    let (mut constants, mut names) = (String::new(), BTreeMap::new());
    let enums = enums(files);
    let has_json = |file: &&FileDescriptorProto| {
        let package = format!(".{}", file.package());
        PACKAGES_WITH_JSON.iter().any(|with_json| package.starts_with(with_json))
    };
    for file in files.file.iter().filter(has_json) {
        for message in &file.message_type {
            let name = format!("{}.{}", file.package(), message.name());
            let fields = message.field.iter().map(|field| one_field(field, message, &enums));
            let fields = fields.collect::<Result<Vec<_>>>()?.join("");
            let constant = constant(&name);
            writeln!(
                constants,
                "static {constant}: MessageType = MessageType {{ name: {name:?}, fields: &[{fields}] }};"
            )?;
            names.insert(name, constant);
        }
    }
    // Its JSON is that of a message without fields.
    let empty = "google.protobuf.Empty";
    let constant = constant(empty);
    writeln!(
        constants,
        "static {constant}: MessageType = MessageType {{ name: {empty:?}, fields: &[] }};"
    )?;
    names.insert(empty.to_owned(), constant);
    let all: String = names.values().map(|constant| format!("&{constant}, ")).collect();
    Ok(format!("{constants}static MESSAGES: [&MessageType; {}] = [{all}];\n", names.len()))
}

/// The values of every enum, by its name with a leading dot, as a Rust expression.
fn enums(files: &FileDescriptorSet) -> BTreeMap<String, String> {
    let in_file = |file: &FileDescriptorProto| {
        let package = file.package().to_owned();
        file.enum_type.clone().into_iter().map(move |each| {
            let values = each.value.iter().map(|value| (value.name(), value.number()));
            (format!(".{package}.{}", each.name()), format!("&{:?}", values.collect::<Vec<_>>()))
        })
    };
    files.file.iter().flat_map(in_file).collect()
}

fn one_field(
    field: &FieldDescriptorProto,
    message: &DescriptorProto,
    enums: &BTreeMap<String, String>,
) -> Result<String> {
    let kind = kind(field, message, enums)?;
    // An optional field has a oneof of its own, which is no business of JSON.
    let oneof = field.oneof_index.filter(|_| !field.proto3_optional());
    Ok(format!(
        "Field {{ number: {}, name: {:?}, json_name: {:?}, kind: {kind}, oneof: {oneof:?} }}, ",
        field.number(),
        field.name(),
        field.json_name(),
    ))
}

/// What a field holds, as a Rust expression. A kind that the protocol begins to use stops the build
/// here, and not a reader later.
fn kind(
    field: &FieldDescriptorProto,
    message: &DescriptorProto,
    enums: &BTreeMap<String, String>,
) -> Result<String> {
    let map_entry = message.nested_type.iter().find(|nested| {
        let is_map = nested.options.as_ref().is_some_and(|options| options.map_entry());
        is_map && field.type_name().ends_with(&format!(".{}.{}", message.name(), nested.name()))
    });
    if let Some(entry) = map_entry {
        ensure!(entry.field[0].r#type() == Type::String, "a map whose keys are no strings");
        return Ok(format!("Kind::Map(&{})", kind(&entry.field[1], entry, enums)?));
    }
    let one = match field.r#type() {
        Type::Bool => "Kind::Bool".to_owned(),
        Type::Int32 => "Kind::Int32".to_owned(),
        Type::Int64 => "Kind::Int64".to_owned(),
        Type::Uint32 => "Kind::Uint32".to_owned(),
        Type::Uint64 => "Kind::Uint64".to_owned(),
        Type::String => "Kind::String".to_owned(),
        Type::Enum => format!("Kind::Enum({})", enums[field.type_name()]),
        Type::Message => match field.type_name() {
            ".google.protobuf.Any" => "Kind::Any".to_owned(),
            ".google.protobuf.Struct" => "Kind::Struct".to_owned(),
            ".google.protobuf.Value" => "Kind::Value".to_owned(),
            name => format!("Kind::Message(&{})", constant(name)),
        },
        other @ (Type::Double
        | Type::Float
        | Type::Fixed64
        | Type::Fixed32
        | Type::Group
        | Type::Bytes
        | Type::Sfixed32
        | Type::Sfixed64
        | Type::Sint32
        | Type::Sint64) => bail!("{}: no reader for the type {other:?}", field.name()),
    };
    Ok(match field.label() {
        Label::Repeated => format!("Kind::Repeated(&{one})"),
        Label::Optional | Label::Required => one,
    })
}

/// The constant for a message, whose name may have a leading dot.
fn constant(name: &str) -> String {
    name.trim_start_matches('.').replace('.', "_").to_uppercase()
}

/// Which functions are linked next to each other, as `benches/layout/record` writes it.
const LAYOUT: &str = "benches/layout/hot.ld";

/// Links a release so that it starts faster and takes less memory, as far as that works here. It stays
/// position-independent.
fn start_fast(out: &Path) {
    let is = |name: &str, value: &str| std::env::var(name).is_ok_and(|set| set == value);
    if !(is("PROFILE", "release")
        && is("CARGO_CFG_TARGET_OS", "linux")
        && is("CARGO_CFG_TARGET_ENV", "gnu")
        && std::env::var("HOST").ok() == std::env::var("TARGET").ok())
    {
        return;
    }
    // More than 20,000 relocations in a sixtieth of the room. Needs glibc 2.36 where it runs. Without it a
    // start takes 6 % more instructions and 20 more page faults, and the program is 1.1 MB larger.
    if works(out, &["-Clink-arg=-Wl,-z,pack-relative-relocs"]) {
        println!("cargo::rustc-link-arg-bin=duologue=-Wl,-z,pack-relative-relocs");
    }
    // The functions that a start and an answer execute lie next to each other: memory is mapped in stretches of 64 kB,
    // and without this 108 of them all over the program are mapped for 530 kB of code. An idle process takes 4.1 MB
    // instead of 10.1 (PSS), with 50 page faults less. A name that the list has and the program has not is ignored.
    let layout = format!("{}/{LAYOUT}", env!("CARGO_MANIFEST_DIR"));
    println!("cargo::rerun-if-changed={LAYOUT}");
    if works(out, &[&format!("-Clink-arg=-Wl,-T,{layout}")]) {
        println!("cargo::rustc-link-arg-bin=duologue=-Wl,-T,{layout}");
    }
    // The unwinder inside: one library less to load, which is 3 % of the instructions of a start, and the
    // program runs where that library is not installed.
    if let Some(folder) = unwinder()
        && works(out, &[&format!("-Lnative={folder}"), "-lstatic:-bundle=gcc_eh"])
    {
        println!("cargo::rustc-link-search=native={folder}");
        println!("cargo::rustc-link-lib=static:-bundle=gcc_eh");
    }
}

/// The folder of the C compiler's own unwinder.
fn unwinder() -> Option<String> {
    let compiler = std::env::var_os("RUSTC_LINKER").unwrap_or_else(|| "cc".into());
    let found = Command::new(compiler).arg("-print-file-name=libgcc_eh.a").output().ok()?;
    let path = PathBuf::from(String::from_utf8(found.stdout).ok()?.trim());
    Some(path.is_absolute().then(|| path.parent())??.to_str()?.to_owned())
}

/// Whether a program that unwinds can be linked with these arguments and runs.
fn works(out: &Path, args: &[&str]) -> bool {
    let (source, program) = (out.join("probe.rs"), out.join("probe"));
    let text = "fn main() { assert!(std::panic::catch_unwind(|| panic!()).is_err()); }";
    let is_done = |command: &mut Command| {
        let silent = command.stdout(Stdio::null()).stderr(Stdio::null());
        silent.status().is_ok_and(|status| status.success())
    };
    let Some(rustc) = std::env::var_os("RUSTC") else { return false };
    let linker = std::env::var("RUSTC_LINKER").map(|linker| format!("-Clinker={linker}"));
    let flags = std::env::var("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default();
    let flags = flags.split('\u{1f}').filter(|flag| !flag.is_empty());
    std::fs::write(&source, text).is_ok()
        && is_done(
            Command::new(rustc)
                .args(flags)
                .args(linker)
                .args(args)
                .arg("-o")
                .arg(&program)
                .arg(&source),
        )
        && is_done(&mut Command::new(program))
}
