//! Messages and enums from the protobuf descriptors, with their JSON names.

use crate::protocol::proto::DESCRIPTORS;
use prost::Message as _;
use prost_types::field_descriptor_proto::{Label, Type};
use prost_types::{
    DescriptorProto, EnumDescriptorProto, FieldDescriptorProto, FileDescriptorProto,
    FileDescriptorSet,
};
use std::collections::{BTreeMap, HashMap};

/// The place of a comment: field numbers and indices, as in `SourceCodeInfo` of `descriptor.proto`.
type Path = Vec<i32>;

/// Field numbers of `descriptor.proto` on the path to a commented item.
const FILE_MESSAGES: i32 = 4;
const MESSAGE_FIELDS: i32 = 2;
const MESSAGE_NESTED: i32 = 3;

/// Every type of the protocol, by its full name without a leading dot.
#[derive(Debug, Default)]
pub(crate) struct Types {
    messages: BTreeMap<String, MessageType>,
    enums: BTreeMap<String, Vec<String>>,
}

#[derive(Debug)]
pub(crate) struct MessageType {
    /// The comment in the `.proto` file.
    pub(crate) about: String,
    /// Its fields, in the order of the `.proto` file.
    pub(crate) fields: Vec<Field>,
    is_map_entry: bool,
}

/// A field of a message.
#[derive(Debug)]
pub(crate) struct Field {
    /// Its name in the `.proto` file.
    pub(crate) name: String,
    pub(crate) json_name: String,
    /// Its comment in the `.proto` file.
    pub(crate) about: String,
    /// Its type.
    pub(crate) kind: Kind,
    /// Whether it is repeated.
    pub(crate) is_repeated: bool,
    /// Whether it is a member of a oneof.
    pub(crate) is_member: bool,
}

/// Types of fields.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Bool,
    Int32,
    Uint32,
    Int64,
    Uint64,
    Float,
    String,
    Bytes,
    /// The enum of that name.
    Enum(String),
    /// The message of that name.
    Message(String),
    /// A map from strings to these.
    Map(Box<Kind>),
}

impl Types {
    /// The types that this program was built from. Empty if the descriptors can't be parsed, which
    /// their tests rule out.
    pub(crate) fn new() -> Self {
        let set = FileDescriptorSet::decode(DESCRIPTORS).unwrap_or_default();
        let mut types = Self::default();
        for file in &set.file {
            types.file(file);
        }
        types.resolve_maps();
        types
    }

    pub(crate) fn message(&self, name: &str) -> Option<&MessageType> {
        self.messages.get(name)
    }

    /// The names of an enum's values.
    pub(crate) fn enum_names(&self, name: &str) -> Option<&[String]> {
        self.enums.get(name).map(Vec::as_slice)
    }

    /// Full names of the messages that may occur in an `Any`: those of the protocol other than
    /// request lines and frames.
    pub(crate) fn payloads(&self) -> impl Iterator<Item = &str> {
        let names = self.messages.iter().filter(|(_, message)| !message.is_map_entry);
        names.map(|(name, _)| name.as_str()).filter(|name| {
            !name.starts_with("google.") && !name.starts_with(crate::protocol::wire::PROTOCOL)
        })
    }

    fn file(&mut self, file: &FileDescriptorProto) {
        let locations = file.source_code_info.iter().flat_map(|info| &info.location);
        let comments = locations
            .map(|place| (place.path.clone(), one_line(place.leading_comments())))
            .collect();
        for (place, message) in (0..).zip(&file.message_type) {
            self.take_message(file.package(), message, &[FILE_MESSAGES, place], &comments);
        }
        for each in &file.enum_type {
            self.take_enum(file.package(), each);
        }
    }

    fn take_message(
        &mut self,
        scope: &str,
        message: &DescriptorProto,
        path: &[i32],
        comments: &HashMap<Path, String>,
    ) {
        let name = format!("{scope}.{}", message.name());
        let about = |path: &[i32]| comments.get(path).cloned().unwrap_or_default();
        let fields = (0..).zip(&message.field).map(|(place, each)| {
            let path = [path, &[MESSAGE_FIELDS, place]].concat();
            field(each, about(&path))
        });
        let is_map_entry = message.options.as_ref().is_some_and(|options| options.map_entry());
        let taken = MessageType { about: about(path), fields: fields.collect(), is_map_entry };
        for (place, nested) in (0..).zip(&message.nested_type) {
            self.take_message(&name, nested, &[path, &[MESSAGE_NESTED, place]].concat(), comments);
        }
        for each in &message.enum_type {
            self.take_enum(&name, each);
        }
        self.messages.insert(name, taken);
    }

    fn take_enum(&mut self, scope: &str, each: &EnumDescriptorProto) {
        let names = each.value.iter().map(|value| value.name().to_owned()).collect();
        self.enums.insert(format!("{scope}.{}", each.name()), names);
    }

    /// A map is stored in the descriptors as repeated pairs.
    fn resolve_maps(&mut self) {
        let entries = self.messages.iter().filter(|(_, message)| message.is_map_entry);
        let values: HashMap<String, Kind> = entries
            .filter_map(|(name, entry)| Some((name.clone(), entry.fields.get(1)?.kind.clone())))
            .collect();
        for field in self.messages.values_mut().flat_map(|message| &mut message.fields) {
            if let Kind::Message(name) = &field.kind
                && let Some(value) = values.get(name)
            {
                field.kind = Kind::Map(Box::new(value.clone()));
                field.is_repeated = false;
            }
        }
    }
}

fn field(field: &FieldDescriptorProto, about: String) -> Field {
    // `optional` is stored as a synthetic oneof of one member.
    let is_member = field.oneof_index.is_some() && !field.proto3_optional();
    Field {
        name: field.name().to_owned(),
        json_name: field.json_name().to_owned(),
        about,
        kind: kind(field),
        is_repeated: field.label() == Label::Repeated,
        is_member,
    }
}

fn kind(field: &FieldDescriptorProto) -> Kind {
    let type_name = || field.type_name().trim_start_matches('.').to_owned();
    match field.r#type() {
        Type::Bool => Kind::Bool,
        Type::Int32 | Type::Sint32 | Type::Sfixed32 => Kind::Int32,
        Type::Uint32 | Type::Fixed32 => Kind::Uint32,
        Type::Int64 | Type::Sint64 | Type::Sfixed64 => Kind::Int64,
        Type::Uint64 | Type::Fixed64 => Kind::Uint64,
        Type::Float | Type::Double => Kind::Float,
        Type::String => Kind::String,
        Type::Bytes => Kind::Bytes,
        Type::Enum => Kind::Enum(type_name()),
        Type::Message | Type::Group => Kind::Message(type_name()),
    }
}

fn one_line(comment: &str) -> String {
    comment.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_there_with_their_comments() {
        let types = Types::new();
        let line = types.message("pinocchio.chatapp.rpc.v1.RpcLine").expect("the frame");
        assert_eq!(line.about, "One line that the server writes.");
        let members: Vec<_> = line.fields.iter().filter(|field| field.is_member).collect();
        let names: Vec<_> = members.iter().map(|field| field.json_name.as_str()).collect();
        assert_eq!(names, ["hello", "snapshot", "uiEvent", "backendEvent", "error", "done"]);
        assert!(members.iter().all(|field| !field.about.is_empty()));
    }

    #[test]
    fn kinds() {
        let types = Types::new();
        let kind = |message: &str, name: &str| {
            let message = types.message(&format!("pinocchio.chatapp.v1.{message}"))?;
            let field = message.fields.iter().find(|field| field.name == name)?;
            Some((field.kind.clone(), field.is_repeated, field.is_member))
        };
        let map = Kind::Map(Box::new(Kind::String));
        assert_eq!(kind("ChatAttachment", "metadata"), Some((map, false, false)));
        assert_eq!(kind("ChatRunFinished", "duration_ms"), Some((Kind::Int64, false, false)));
        let mode = Kind::Enum("pinocchio.chatapp.v1.ChatStreamPatchMode".to_owned());
        assert_eq!(kind("ChatTextPatch", "mode"), Some((mode, false, false)));
        let attachment = Kind::Message("pinocchio.chatapp.v1.ChatAttachment".to_owned());
        let attachments = kind("ChatUserMessageAccepted", "attachments");
        assert_eq!(attachments, Some((attachment, true, false)));
        assert_eq!(
            types.enum_names("pinocchio.chatapp.v1.ChatStreamPatchMode").map(<[_]>::len),
            Some(4)
        );
    }

    #[test]
    fn payloads_are_events_and_entities() {
        let types = Types::new();
        let payloads: Vec<_> = types.payloads().collect();
        assert!(payloads.contains(&"pinocchio.chatapp.v1.ChatTextPatch"));
        assert!(payloads.contains(&"pinocchio.chatapp.v1.ToolResultEntity"));
        assert!(!payloads.iter().any(|name| name.contains(".rpc.") || name.contains("Entry")));
    }
}
