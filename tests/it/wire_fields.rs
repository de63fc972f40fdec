//! The protobuf descriptors against the table of the wire that existing clients are built from.
//!
//! The table stands in `tests/data/wire_fields.txt` and is not made from `proto/`: a field that is
//! renumbered, renamed or retyped there breaks every client in the field, and fails here first.

use anyhow::{Context, Result, bail};
use duologue::protocol::proto::DESCRIPTORS;
use prost::Message;
use prost_types::field_descriptor_proto::Label;
use prost_types::{
    DescriptorProto, EnumDescriptorProto, FieldDescriptorProto, FileDescriptorProto,
    FileDescriptorSet,
};
use std::collections::BTreeSet;

const TABLE: &str = include_str!("../data/wire_fields.txt");

/// Extensions of this server have field numbers from here up; the table holds the others.
const EXTENSION_NUMBER_MIN: i32 = 200;

/// Messages that only fields of extensions have.
const EXTENSION_MESSAGES: [&str; 9] = [
    "ApproveRequest",
    "CompactRequest",
    "DropLastTurn",
    "EditRequest",
    "EnableRequest",
    "Regenerate",
    "ReplacePrompt",
    "ResourceReference",
    "SwitchModelRequest",
];

#[test]
fn descriptors_hold_the_fields_of_the_wire_and_no_others() -> Result<()> {
    let expected: BTreeSet<String> = table_rows().map(str::to_owned).collect();
    let mut found = BTreeSet::new();
    for file in &pinocchio_files()? {
        found.extend(file_rows(file)?);
    }
    let missing: Vec<_> = expected.difference(&found).collect();
    let extra: Vec<_> = found.difference(&expected).collect();
    assert!(
        missing.is_empty() && extra.is_empty(),
        "in the table only: {missing:#?}\nin proto/ only: {extra:#?}"
    );
    Ok(())
}

#[test]
fn the_table_says_nothing_twice() {
    let rows: BTreeSet<&str> = table_rows().collect();
    assert_eq!(rows.len(), table_rows().count());
}

#[test]
fn files_are_proto3_and_stand_alone() -> Result<()> {
    let set = FileDescriptorSet::decode(DESCRIPTORS)?;
    let names: BTreeSet<&str> = set.file.iter().map(FileDescriptorProto::name).collect();
    for file in &set.file {
        assert_eq!(file.syntax(), "proto3", "{}", file.name());
        for import in &file.dependency {
            assert!(names.contains(import.as_str()), "{} imports {import}", file.name());
        }
    }
    Ok(())
}

#[test]
fn json_names_are_the_lower_camel_case_of_the_field_names() -> Result<()> {
    for file in pinocchio_files()? {
        for field in file.message_type.iter().flat_map(|message| &message.field) {
            assert_eq!(field.json_name(), lower_camel_case(field.name()));
        }
    }
    Ok(())
}

fn table_rows() -> impl Iterator<Item = &'static str> {
    TABLE.lines().filter(|line| !line.starts_with('#'))
}

fn pinocchio_files() -> Result<Vec<FileDescriptorProto>> {
    let set = FileDescriptorSet::decode(DESCRIPTORS)?;
    let is_wire = |file: &FileDescriptorProto| file.package().starts_with("pinocchio.");
    Ok(set.file.into_iter().filter(is_wire).collect())
}

fn file_rows(file: &FileDescriptorProto) -> Result<Vec<String>> {
    let mut rows = Vec::new();
    let is_of_extension = |message: &DescriptorProto| EXTENSION_MESSAGES.contains(&message.name());
    for message in file.message_type.iter().filter(|message| !is_of_extension(message)) {
        rows.extend(message_rows(file.package(), message)?);
    }
    for enumeration in &file.enum_type {
        rows.extend(enum_rows(file.package(), enumeration));
    }
    Ok(rows)
}

fn message_rows(package: &str, message: &DescriptorProto) -> Result<Vec<String>> {
    let full = format!("{package}.{}", message.name());
    let mut rows = Vec::new();
    for range in &message.reserved_range {
        // The descriptor's end is one past the last number.
        rows.push(format!("{full} {}-{} - reserved", range.start(), range.end() - 1));
    }
    for field in message.field.iter().filter(|field| field.number() < EXTENSION_NUMBER_MIN) {
        let kind = field_kind(message, field).with_context(|| full.clone())?;
        rows.push(format!("{full} {} {} {kind}", field.number(), field.name()));
    }
    if rows.is_empty() {
        rows.push(format!("{full} - - message"));
    }
    Ok(rows)
}

fn enum_rows<'a>(
    package: &'a str,
    enumeration: &'a EnumDescriptorProto,
) -> impl Iterator<Item = String> + 'a {
    enumeration.value.iter().map(move |value| {
        format!("{package}.{} {} {} enum", enumeration.name(), value.number(), value.name())
    })
}

fn field_kind(message: &DescriptorProto, field: &FieldDescriptorProto) -> Result<String> {
    if let Some(entry) = map_entry(message, field) {
        let [key, value] = entry.field.as_slice() else { bail!("a map entry has two fields") };
        return Ok(format!("map<{},{}>", type_name(key), type_name(value)));
    }
    let kind = type_name(field);
    if field.label() == Label::Repeated {
        return Ok(format!("repeated {kind}"));
    }
    if field.proto3_optional() {
        return Ok(format!("optional {kind}"));
    }
    Ok(match field.oneof_index {
        Some(index) => format!("oneof {} {kind}", message.oneof_decl[index as usize].name()),
        None => kind,
    })
}

/// The hidden message that stands for the entries of a map field.
fn map_entry<'a>(
    message: &'a DescriptorProto,
    field: &FieldDescriptorProto,
) -> Option<&'a DescriptorProto> {
    message.nested_type.iter().find(|nested| {
        nested.options.as_ref().is_some_and(|options| options.map_entry())
            && field.type_name().ends_with(&format!(".{}.{}", message.name(), nested.name()))
    })
}

fn type_name(field: &FieldDescriptorProto) -> String {
    if field.type_name().is_empty() {
        return field.r#type().as_str_name().trim_start_matches("TYPE_").to_lowercase();
    }
    field.type_name().trim_start_matches('.').to_owned()
}

/// As protobuf makes JSON names: an underscore goes, the letter after it is a capital.
fn lower_camel_case(name: &str) -> String {
    let mut words = name.split('_');
    let first = words.next().unwrap_or_default().to_owned();
    words.fold(first, |camel, word| {
        let mut letters = word.chars();
        let capital = letters.next().map(|letter| letter.to_ascii_uppercase());
        camel + &capital.into_iter().chain(letters).collect::<String>()
    })
}
