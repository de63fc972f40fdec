//! Makes the generated code of `src/proto.rs` and `src/any.rs` from `proto/`, with no `protoc` on
//! the machine.

use anyhow::{Context, Result, ensure};
use prost_types::FileDescriptorSet;
use regex::Regex;
use std::fmt::Write;
use std::path::{Path, PathBuf};

const PROTOS: [&str; 4] = [
    "pinocchio/chatapp/v1/chat.proto",
    "pinocchio/chatapp/frontendtools/v1/frontend_tool.proto",
    "pinocchio/chatapp/rpc/v1/rpc.proto",
    "duologue/extract/v1/extract.proto",
];

/// The packages whose messages travel in an `Any`: (package, module of `src/proto.rs`).
const PAYLOADS: [(&str, &str); 3] = [
    ("pinocchio.chatapp.v1", "chat"),
    ("pinocchio.chatapp.frontendtools.v1", "frontendtools"),
    ("duologue.extract.v1", "extract"),
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
const WITHOUT_EQ: [&str; 5] = [
    ".pinocchio.chatapp.v1.ChatAttachment",
    ".pinocchio.chatapp.v1.ChatUserMessageAccepted",
    ".pinocchio.chatapp.v1.ChatMessageEntity",
    ".pinocchio.chatapp.frontendtools.v1",
    ".duologue.extract.v1.ObjectExtracted",
];

/// Where pbjson's code reads or writes something else than the canonical mapping, as
/// (what is put right, pattern, replacement). In this order; `src/json.rs` has what they call.
const PATCHES: [(&str, &str, &str); 12] = [
    (
        "fields can be counted",
        r"enum GeneratedField \{",
        "#[derive(Clone, Copy)] enum GeneratedField {",
    ),
    (
        "each message counts its fields",
        r"while let Some\(k\) = map_\.next_key\(\)\? \{",
        "let mut fields__ = crate::json::Fields::default(); $0",
    ),
    (
        "a field in both of its spellings is an error even if one is null",
        r#"if \w+__\.is_some\(\) \{\s*return Err\(serde::de::Error::duplicate_field\(("\w+")\)\);\s*\}"#,
        "fields__.add(k as u32, $1)?;",
    ),
    (
        "a oneof member that is null leaves the others alone; two that are set are an error",
        r"(\w+__) = (map_\.next_value::<::std::option::Option<_>>\(\)\?\.map\([\w:]+\))\s*;",
        "crate::json::set_one_of(&mut $1, $2)?;",
    ),
    (
        "numbers in every spelling, or null",
        r"Some\(map_\.next_value::<::pbjson::private::NumberDeserialize<_>>\(\)\?\.0\)",
        "map_.next_value::<Option<crate::json::Number<_>>>()?.map(|x| x.0)",
    ),
    (
        "numbers with presence in every spelling",
        r"::pbjson::private::NumberDeserialize<_>",
        "crate::json::Number<_>",
    ),
    (
        "enum numbers without a name are kept, and null is unset",
        r"Some\(map_\.next_value::<(\w+)>\(\)\? as i32\)",
        "map_.next_value::<Option<crate::json::OpenEnum<$1>>>()?.map(|x| x.number())",
    ),
    (
        "enum numbers without a name are written as numbers",
        r#"let v = (\w+)::try_from\((self\.\w+)\)\s*\.map_err\([^;]*;\s*struct_ser\.serialize_field\("(\w+)", &v\)\?;"#,
        r#"struct_ser.serialize_field("$3", &crate::json::OpenEnum::<$1>::new($2))?;"#,
    ),
    (
        "64-bit integers are written without making a String",
        r"ToString::to_string\(&([\w.]+)\)\.as_str\(\)",
        "&crate::json::Quoted($1)",
    ),
    (
        "a map may be null",
        r"Some\(\s*map_\.next_value::<std::collections::BTreeMap<_, _>>\(\)\?\s*\)",
        "map_.next_value::<Option<std::collections::BTreeMap<_, _>>>()?",
    ),
    (
        "every other scalar and every repeated field may be null",
        r"Some\(map_\.next_value\(\)\?\)",
        "map_.next_value()?",
    ),
    (
        "a `Value` that is null is set, for that is a value too",
        r"(object__) = map_\.next_value\(\)\?;",
        "$1 = Some(map_.next_value()?);",
    ),
];

fn main() -> Result<()> {
    println!("cargo::rerun-if-changed=build.rs");
    start_fast();
    println!("cargo::rerun-if-changed=proto");
    let out = PathBuf::from(std::env::var("OUT_DIR")?);
    let files = protox::compile(PROTOS, ["proto"])?;
    let descriptors = prost::Message::encode_to_vec(&files);
    std::fs::write(out.join("descriptors.bin"), &descriptors)?;
    std::fs::write(out.join("payloads.rs"), payloads(&files)?)?;
    messages(files)?;
    pbjson_build::Builder::new()
        .register_descriptors(&descriptors)?
        .btree_map(["."])
        .ignore_unknown_fields()
        .build(&[".pinocchio", ".duologue"])?;
    patch(&out)
}

/// prost's part: the structs, and their binary form.
fn messages(files: FileDescriptorSet) -> Result<()> {
    let mut config = prost_build::Config::new();
    // Sorted maps: the same message is the same line every time.
    config.btree_map(["."]);
    for message in WITHOUT_EQ {
        config.message_attribute(message, "#[derive(Eq, Hash)]");
    }
    config
        .extern_path(".google.protobuf.Any", "crate::any::Any")
        .extern_path(".google.protobuf.Struct", "crate::any::Struct")
        .extern_path(".google.protobuf.Value", "crate::any::Value");
    tonic_prost_build::configure()
        .build_client(false)
        .build_server(false)
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

/// Puts [`PATCHES`] into pbjson's part. One that finds nothing stops the build: the generator has
/// changed, and so may the mapping.
fn patch(out: &Path) -> Result<()> {
    let packages =
        PAYLOADS.map(|(package, _)| package).into_iter().chain(["pinocchio.chatapp.rpc.v1"]);
    let files: Vec<PathBuf> =
        packages.map(|package| out.join(format!("{package}.serde.rs"))).collect();
    let mut codes = files.iter().map(std::fs::read_to_string).collect::<Result<Vec<_>, _>>()?;
    for (why, pattern, replacement) in PATCHES {
        let pattern = Regex::new(pattern).context(why)?;
        let found = codes.iter().any(|code| pattern.is_match(code));
        ensure!(found, "nothing in the generated code to patch so that {why}");
        for code in &mut codes {
            *code = pattern.replace_all(code, replacement).into_owned();
        }
    }
    for (file, code) in files.iter().zip(codes) {
        ensure!(!code.contains("pbjson::"), "{} still calls pbjson", file.display());
        std::fs::write(file, code)?;
    }
    Ok(())
}

/// A release is linked to stand at a fixed address, as Go's programs are: to relocate it took a sixth
/// of the time from its start to `hello`. The price is that its own code is not placed at random;
/// libraries, heap and stacks still are.
fn start_fast() {
    let is = |name: &str, value: &str| std::env::var(name).is_ok_and(|set| set == value);
    if is("PROFILE", "release")
        && is("CARGO_CFG_TARGET_OS", "linux")
        && is("CARGO_CFG_TARGET_ENV", "gnu")
    {
        println!("cargo::rustc-link-arg-bin=duologue=-no-pie");
    }
}
