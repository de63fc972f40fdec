//! How tools, resources and prompts are read from a list.

use super::{Listed, URI_BYTES_MAX, cut, text_of};
use crate::task::server::{PromptArgument, ServerPrompt, ServerResource, ServerTool};
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// Longest name, in bytes; names are shortened for the model only.
const NAME_BYTES_MAX: usize = 256;

/// Most arguments of a prompt.
const ARGUMENTS_MAX: usize = 100;

/// Longest description, in bytes; the rest is cut.
pub(super) const DESCRIPTION_BYTES_MAX: usize = 16 * 1024;

/// Largest schema, in bytes of JSON.
pub(super) const SCHEMA_BYTES_MAX: usize = 256 * 1024;

impl Listed for ServerTool {
    const ITEMS: &'static str = "tools";
    const ITEM: &'static str = "tool";

    fn read(mut tool: Value) -> Result<(Self, usize), String> {
        let name = name_of::<Self>(&tool)?;
        let unusable = |why: &str| format!("its tool `{name}` can't be used: {why}");
        if tool["execution"]["taskSupport"] == "required" {
            return Err(unusable("it can only be called as a task, which is not supported"));
        }
        let input_schema = match tool.get_mut("inputSchema").map(Value::take) {
            // Written by servers whose tool takes nothing.
            None | Some(Value::Null) => Map::new(),
            Some(Value::Object(schema)) => schema,
            Some(_) => return Err(unusable("its inputSchema is not an object")),
        };
        let (input_schema, schema_bytes) = of_object(input_schema).map_err(unusable)?;
        let description = description_of(&tool, "title");
        let bytes = schema_bytes + description.len();
        Ok((Self { name, description, input_schema: Arc::new(input_schema) }, bytes))
    }

    fn key(&self) -> &str {
        &self.name
    }
}

impl Listed for ServerResource {
    const ITEMS: &'static str = "resources";
    const ITEM: &'static str = "resource";

    fn read(resource: Value) -> Result<(Self, usize), String> {
        let uri = text_of(&resource, "uri").to_owned();
        if uri.is_empty() || uri.len() > URI_BYTES_MAX {
            return Err("one of its resources has no usable uri".to_owned());
        }
        let name = [text_of(&resource, "title"), text_of(&resource, "name")];
        let name = name.into_iter().find(|name| !name.is_empty()).unwrap_or_default();
        let name = cut(name, NAME_BYTES_MAX).to_owned();
        let media_type = cut(text_of(&resource, "mimeType"), NAME_BYTES_MAX).to_owned();
        let description = cut(text_of(&resource, "description"), DESCRIPTION_BYTES_MAX).to_owned();
        let bytes = uri.len() + description.len();
        Ok((Self { uri, name, description, media_type }, bytes))
    }

    fn key(&self) -> &str {
        &self.uri
    }
}

impl Listed for ServerPrompt {
    const ITEMS: &'static str = "prompts";
    const ITEM: &'static str = "prompt";

    fn read(prompt: Value) -> Result<(Self, usize), String> {
        let name = name_of::<Self>(&prompt)?;
        let listed = prompt.get("arguments").and_then(Value::as_array);
        let listed = listed.map_or(&[][..], Vec::as_slice);
        if listed.len() > ARGUMENTS_MAX {
            let why = format!("it has more than {ARGUMENTS_MAX} arguments");
            return Err(format!("its prompt `{name}` can't be used: {why}"));
        }
        let arguments = listed.iter().map(|argument| PromptArgument {
            name: text_of(argument, "name").to_owned(),
            description: description_of(argument, "title"),
            is_required: argument.get("required").and_then(Value::as_bool).unwrap_or(false),
        });
        let arguments: Vec<_> = arguments.collect();
        if arguments.iter().any(|argument| !is_name(&argument.name)) {
            let why = "one of its arguments has no usable name";
            return Err(format!("its prompt `{name}` can't be used: {why}"));
        }
        let description = description_of(&prompt, "title");
        let texts = arguments.iter().map(|it| it.name.len() + it.description.len());
        let bytes = description.len() + texts.sum::<usize>();
        Ok((Self { name, description, arguments }, bytes))
    }

    fn key(&self) -> &str {
        &self.name
    }
}

/// The name of a listed item, with which it is asked for.
fn name_of<T: Listed>(item: &Value) -> Result<String, String> {
    let name = text_of(item, "name");
    let unusable = || format!("one of its {} has no usable name", T::ITEMS);
    is_name(name).then(|| name.to_owned()).ok_or_else(unusable)
}

fn is_name(name: &str) -> bool {
    (1..=NAME_BYTES_MAX).contains(&name.len())
}

/// What an item is: its description, or else the text of another member.
fn description_of(item: &Value, other: &str) -> String {
    let texts = [text_of(item, "description"), text_of(item, other)];
    let description = texts.into_iter().find(|text| !text.is_empty()).unwrap_or_default();
    cut(description, DESCRIPTION_BYTES_MAX).to_owned()
}

/// The schema with what some providers want written out: that it describes an object, and its
/// properties. With its bytes of JSON.
fn of_object(mut schema: Map<String, Value>) -> Result<(Map<String, Value>, usize), &'static str> {
    match schema.get("type") {
        None | Some(Value::Null) => {
            schema.insert("type".to_owned(), json!("object"));
        }
        Some(kind) if *kind == "object" => {}
        Some(_) => return Err("its inputSchema does not describe an object"),
    }
    if !schema.get("properties").is_some_and(Value::is_object) {
        schema.insert("properties".to_owned(), json!({}));
    }
    if !schema.get("required").is_none_or(Value::is_array) {
        schema.shift_remove("required");
    }
    // Its size is that of a request to the provider, again and again.
    let bytes = serde_json::to_string(&schema).map_or(usize::MAX, |text| text.len());
    if bytes > SCHEMA_BYTES_MAX {
        return Err("its inputSchema is too large");
    }
    Ok((schema, bytes))
}
