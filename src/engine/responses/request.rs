//! The body of a provider request: OpenAI's "Create a model response"
//! (<https://platform.openai.com/docs/api-reference/responses/create>), streamed, and not stored by
//! the provider: each request holds the whole conversation.
//!
//! What changes from turn to turn stands last, so that the bodies of two turns begin with the same
//! bytes.

use super::kept::{self, KeptItem};
use crate::chat::event::{ProviderData, ToolCall};
use crate::chat::tool::ToolSpec;
use crate::chat::transcript::Message;
use crate::engine::provider::tool::{arguments, parameters};
use serde::Serialize;
use serde_json::{Map, Value};
use std::borrow::Cow;

#[cfg(test)]
mod tests;

/// Has the provider send the reasoning in a form that can be sent back to it.
const ENCRYPTED_REASONING: &str = "reasoning.encrypted_content";

/// Beginnings of the names of models that don't reason. They refuse a request for their reasoning;
/// every later family reasons.
const WITHOUT_REASONING: [&str; 4] = ["gpt-3.5", "gpt-4", "chatgpt-", "gpt-5-chat"];

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    stream: bool,
    store: bool,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    include: &'static [&'static str],
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<WireTool<'a>>,
    #[serde(skip_serializing_if = "String::is_empty")]
    instructions: String,
    input: Vec<WireItem<'a>>,
}

#[derive(Serialize)]
struct WireTool<'a> {
    r#type: &'static str,
    name: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    description: &'a str,
    parameters: Cow<'a, Map<String, Value>>,
    /// Without it the provider makes every parameter a required one.
    strict: bool,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum WireItem<'a> {
    Message {
        role: Role,
        content: Vec<WirePart<'a>>,
        #[serde(skip_serializing_if = "Option::is_none")]
        phase: Option<String>,
    },
    Reasoning {
        summary: Value,
        encrypted_content: String,
    },
    FunctionCall {
        call_id: &'a str,
        name: &'a str,
        arguments: Cow<'a, str>,
    },
    FunctionCallOutput {
        call_id: &'a str,
        output: &'a str,
    },
}

#[derive(Clone, Copy, Serialize)]
#[serde(rename_all = "lowercase")]
enum Role {
    System,
    User,
    Assistant,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum WirePart<'a> {
    InputText { text: &'a str },
    OutputText { text: &'a str },
}

/// The request, as JSON.
///
/// # Errors
/// If it can't be written, which is a defect.
pub(super) fn body(
    model: &str,
    messages: &[Message<'_>],
    tools: &[ToolSpec],
) -> Result<Vec<u8>, serde_json::Error> {
    let first = messages.iter().take_while(|message| matches!(message, Message::System(_)));
    let (system, conversation) = messages.split_at(first.count());
    serde_json::to_vec(&Body {
        model,
        stream: true,
        store: false,
        include: if reasons(model) { &[ENCRYPTED_REASONING] } else { &[] },
        tools: tools.iter().map(wire_tool).collect(),
        instructions: instructions(system),
        input: input(model, conversation),
    })
}

/// Whether `model` may reason, by its name: possibly one with the provider before it, or of a model
/// made from it.
fn reasons(model: &str) -> bool {
    let name = model.rsplit('/').next().unwrap_or(model);
    let name = name.strip_prefix("ft:").unwrap_or(name).to_ascii_lowercase();
    !WITHOUT_REASONING.iter().any(|start| name.starts_with(start))
}

fn wire_tool(spec: &ToolSpec) -> WireTool<'_> {
    WireTool {
        r#type: "function",
        name: &spec.name,
        description: &spec.description,
        parameters: parameters(&spec.input_schema),
        strict: false,
    }
}

/// The instructions before the conversation.
fn instructions(system: &[Message<'_>]) -> String {
    let texts = system.iter().filter_map(|message| match message {
        Message::System(text) => Some(*text),
        Message::User(_) | Message::Assistant { .. } | Message::Tool { .. } => None,
    });
    texts.collect::<Vec<_>>().join("\n\n")
}

fn input<'a>(model: &str, messages: &'a [Message<'_>]) -> Vec<WireItem<'a>> {
    let mut items = Vec::new();
    for message in messages {
        match message {
            Message::System(text) => items.push(said(Role::System, text)),
            Message::User(text) => items.push(said(Role::User, text)),
            Message::Assistant { text, calls, provider_data } => {
                items.extend(answer(model, text, calls, *provider_data));
            }
            Message::Tool { tool, result } => {
                items.push(WireItem::FunctionCallOutput { call_id: &tool.id.0, output: result })
            }
        }
    }
    items
}

fn said(role: Role, text: &str) -> WireItem<'_> {
    let content = vec![WirePart::InputText { text }];
    WireItem::Message { role, content, phase: None }
}

/// An answer of the model, with its reasoning in the place where it was. The provider takes a
/// reasoning only with what followed it.
fn answer<'a>(
    model: &str,
    text: &'a str,
    calls: &[(&'a ToolCall, &'a str)],
    provider_data: Option<&ProviderData>,
) -> Vec<WireItem<'a>> {
    let mut items = Vec::new();
    let mut reasoning = Vec::new();
    let (mut text, mut calls) = (text, calls.iter());
    for kept in kept::items(provider_data, model, calls.len()) {
        let item = match kept {
            KeptItem::Reasoning { summary, encrypted_content } => {
                reasoning.push(WireItem::Reasoning { summary, encrypted_content });
                None
            }
            // A blank text is left out of the transcript.
            KeptItem::Text { bytes, phase } => text.split_at_checked(bytes).map(|(piece, rest)| {
                text = rest;
                answered(piece, phase)
            }),
            KeptItem::Call => calls.next().map(|(tool, input)| called(tool, input)),
        };
        if let Some(item) = item {
            items.append(&mut reasoning);
            items.push(item);
        }
    }
    // Without kept items, all of it; with them, what was added to the answer later.
    if !text.is_empty() {
        items.push(answered(text, None));
    }
    items.extend(calls.map(|(tool, input)| called(tool, input)));
    items
}

fn answered(text: &str, phase: Option<String>) -> WireItem<'_> {
    let content = vec![WirePart::OutputText { text }];
    WireItem::Message { role: Role::Assistant, content, phase }
}

fn called<'a>(tool: &'a ToolCall, input: &'a str) -> WireItem<'a> {
    WireItem::FunctionCall { call_id: &tool.id.0, name: &tool.name, arguments: arguments(input) }
}
