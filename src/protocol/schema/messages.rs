//! JSON Schema of messages, by the canonical JSON mapping of proto3: of frames as this server
//! writes them, and of requests in every spelling that it accepts.
//!
//! An `Any` in a frame is one of the possible payloads, distinguished by its `@type`.

use super::fixed;
use crate::protocol::descriptors::{Field, Kind, Types};
use serde_json::{Map, Value, json};

const FRAME: &str = "pinocchio.chatapp.rpc.v1.RpcLine";
pub(super) const REQUEST: &str = "pinocchio.chatapp.rpc.v1.RpcRequestLine";
const ANY: &str = "google.protobuf.Any";
pub(super) const URL: &str = "type.googleapis.com/";
const DRAFT: &str = "https://json-schema.org/draft/2020-12/schema";

/// The direction of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// Written here: one spelling, and no other fields.
    Out,
    /// Read here: every spelling of the mapping, `null`, and unknown fields.
    In,
}

/// Collects definitions.
struct Schema {
    types: Types,
    way: Way,
    definitions: Map<String, Value>,
}

/// The schema of a line that the server writes.
pub(super) fn frame() -> Value {
    let mut schema = Schema { types: Types::new(), way: Way::Out, definitions: Map::new() };
    schema.line(FRAME, "A line that duologue writes")
}

/// The schema of a line that the server reads.
pub(super) fn request() -> Value {
    let mut schema = Schema { types: Types::new(), way: Way::In, definitions: Map::new() };
    schema.line(REQUEST, "A line that duologue reads")
}

impl Schema {
    /// The schema of a message with one oneof, of which one member must be set.
    fn line(&mut self, name: &str, title: &str) -> Value {
        self.define(name);
        let members = self.members(name);
        json!({
            "$schema": DRAFT,
            "title": title,
            "$ref": reference(name),
            "oneOf": members,
            "$defs": std::mem::take(&mut self.definitions),
        })
    }

    /// A schema for each member of the message's oneof that requires it to be set and not `null`.
    fn members(&self, name: &str) -> Vec<Value> {
        let fields = self.types.message(name).map_or(&[][..], |message| &message.fields);
        let spellings = fields.iter().filter(|field| field.is_member).flat_map(|field| {
            let mut names = self.spellings(field);
            // Several spellings of one member exclude each other, too.
            names.dedup();
            names
        });
        spellings
            .map(|name| json!({ "required": [name], "properties": { name: { "type": "object" } } }))
            .collect()
    }

    /// The JSON names of a field.
    fn spellings<'a>(&self, field: &'a Field) -> Vec<&'a str> {
        match self.way {
            Way::In if field.name != field.json_name => vec![&field.json_name, &field.name],
            Way::In | Way::Out => vec![&field.json_name],
        }
    }

    /// Adds the definition of a message and of its fields.
    fn define(&mut self, name: &str) {
        if self.definitions.contains_key(name) {
            return;
        }
        // A message may contain itself.
        self.definitions.insert(name.to_owned(), Value::Null);
        let definition = match name {
            ANY => self.any(),
            _ => self.object(name),
        };
        self.definitions.insert(name.to_owned(), definition);
    }

    fn any(&mut self) -> Value {
        let payloads: Vec<String> = self.types.payloads().map(str::to_owned).collect();
        let payloads = payloads.iter().map(|name| {
            let mut payload = self.object(name);
            let url = json!({ "const": format!("{URL}{name}") });
            payload["properties"]["@type"] = url;
            payload["required"] = json!(["@type"]);
            payload
        });
        json!({ "oneOf": payloads.collect::<Vec<_>>() })
    }

    fn object(&mut self, name: &str) -> Value {
        let Some(message) = self.types.message(name) else { return json!({ "type": "object" }) };
        let about = message.about.clone();
        let mut fields = Vec::new();
        for field in &message.fields {
            let names = self.spellings(field).into_iter().map(str::to_owned).collect::<Vec<_>>();
            fields.push((names, field.kind.clone(), field.is_repeated, field.about.clone()));
        }
        let mut properties = Map::new();
        for (names, kind, is_repeated, about) in fields {
            let mut value = self.kind(&kind);
            if is_repeated {
                value = json!({ "type": "array", "items": value });
            }
            if self.way == Way::In {
                value = json!({ "anyOf": [value, { "type": "null" }] });
            }
            value["description"] = about.into();
            properties.extend(names.into_iter().map(|name| (name, value.clone())));
        }
        let mut object = json!({ "type": "object", "properties": properties });
        if !about.is_empty() {
            object["description"] = about.into();
        }
        match self.way {
            Way::In => fixed::narrow_request(name, &mut object),
            Way::Out => {
                object["additionalProperties"] = false.into();
                let payloads: Vec<_> = self.types.payloads().map(str::to_owned).collect();
                fixed::narrow_frame(name, &payloads, &mut object);
            }
        }
        object
    }

    fn kind(&mut self, kind: &Kind) -> Value {
        match kind {
            Kind::Bool => json!({ "type": "boolean" }),
            Kind::Int32 => self.integer(i32::MIN.into(), i32::MAX.into()),
            Kind::Uint32 => self.integer(0, u32::MAX.into()),
            Kind::Int64 => self.quoted("^-?[0-9]+$"),
            Kind::Uint64 => self.quoted("^[0-9]+$"),
            Kind::Float => {
                json!({ "anyOf": [{ "type": "number" }, { "enum": ["NaN", "Infinity", "-Infinity"] }] })
            }
            Kind::String => json!({ "type": "string" }),
            Kind::Bytes => json!({ "type": "string", "contentEncoding": "base64" }),
            Kind::Enum(name) => self.enumeration(name),
            Kind::Map(of) => json!({ "type": "object", "additionalProperties": self.kind(of) }),
            Kind::Message(name) => self.message(name),
        }
    }

    fn message(&mut self, name: &str) -> Value {
        match name {
            "google.protobuf.Struct" => json!({ "type": "object" }),
            "google.protobuf.ListValue" => json!({ "type": "array" }),
            "google.protobuf.Value" => json!({}),
            _ => {
                self.define(name);
                json!({ "$ref": reference(name) })
            }
        }
    }

    fn integer(&self, least: i64, most: i64) -> Value {
        let bare = json!({ "type": "integer", "minimum": least, "maximum": most });
        match self.way {
            Way::Out => bare,
            Way::In => json!({ "anyOf": [bare, { "type": "string", "pattern": NUMBER }] }),
        }
    }

    fn quoted(&self, pattern: &str) -> Value {
        match self.way {
            Way::Out => json!({ "type": "string", "pattern": pattern }),
            Way::In => {
                let quoted = json!({ "type": "string", "pattern": NUMBER });
                json!({ "anyOf": [{ "type": "integer" }, quoted] })
            }
        }
    }

    fn enumeration(&self, name: &str) -> Value {
        let names = json!({ "enum": self.types.enum_names(name).unwrap_or_default() });
        match self.way {
            Way::Out => names,
            Way::In => json!({ "anyOf": [names, { "type": "integer" }] }),
        }
    }
}

/// A JSON number in a string.
const NUMBER: &str = r"^-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?$";

fn reference(name: &str) -> String {
    format!("#/$defs/{name}")
}
