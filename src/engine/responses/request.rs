//! The body of a provider request: OpenAI's "Create a model response"
//! (<https://platform.openai.com/docs/api-reference/responses/create>), streamed, and not stored by
//! the provider: each request holds the whole conversation.
//!
//! Members that change from turn to turn come last: the bodies of two turns then share a prefix, which
//! providers cache.

use super::provider_data::DataItem;
use super::wire::{
    Body, ResultOutput, Role, WireFormat, WireItem, WirePart, WireReasoning, WireText, WireTool,
};
use crate::conversation::event::{ProviderData, ToolCall};
use crate::conversation::tool::ToolSpec;
use crate::conversation::transcript::Message;
use crate::engine::openai::model::{reasons, taken, takes_schemas};
use crate::engine::provider::interface::Refused;
use crate::engine::provider::media::{Media, media};
use crate::engine::provider::parameters::parameters;
use crate::engine::provider::tool::{WIRE_ID_BYTES_MAX, arguments, wire_id, wire_name};
use crate::engine::provider::{provider_data, schema};
use crate::engine::{CallSettings, CallSpec, ResponseSchema};
use crate::protocol::attachment::Attachment;
use std::borrow::Cow;

#[cfg(test)]
mod tests;

/// Has the provider send the reasoning in a form that can be sent back to it.
const ENCRYPTED_REASONING: &str = "reasoning.encrypted_content";

/// The request, as JSON.
///
/// # Errors
/// If the interface has no place for an attachment, or the request can't be written.
pub(super) fn body(model: &str, spec: &CallSpec) -> Result<Vec<u8>, Refused> {
    body_of(&spec.transcript.messages(), model, spec)
}

fn body_of(messages: &[Message<'_>], model: &str, spec: &CallSpec) -> Result<Vec<u8>, Refused> {
    let first = messages.iter().take_while(|message| matches!(message, Message::System(_)));
    let (system, conversation) = messages.split_at(first.count());
    let native = schema::native_if(spec, |schema| schema.is_of_object() && takes_schemas(model));
    let instruction = schema::instruction(spec, native.is_some());
    let (settings, _) = taken(model, &spec.settings);
    let CallSettings { temperature, top_p, max_tokens, .. } = &settings;
    let body = Body {
        model,
        stream: true,
        store: false,
        include: if reasons(model) { &[ENCRYPTED_REASONING] } else { &[] },
        temperature: *temperature,
        top_p: *top_p,
        max_output_tokens: *max_tokens,
        reasoning: reasoning(&settings),
        text: native.map(text),
        tools: spec.tools.iter().map(wire_tool).collect(),
        instructions: instructions(system, instruction),
        input: input(model, conversation)?,
    };
    serde_json::to_vec(&body).map_err(Refused::Unwritable)
}

/// Names of the settings that are set and that the interface, or the model, doesn't take.
pub(super) fn ignored_settings(model: &str, settings: &CallSettings) -> Vec<&'static str> {
    let (settings, refused) = taken(model, settings);
    let ignored = [
        ("stop", settings.stop.is_some()),
        ("seed", settings.seed.is_some()),
        ("reasoning_budget", settings.reasoning_budget.is_some()),
    ];
    let ignored = ignored.into_iter().filter_map(|(name, is_set)| is_set.then_some(name));
    refused.into_iter().chain(ignored).collect()
}

/// How much the model reasons, and which summary of it the provider sends: without a word, none.
fn reasoning(settings: &CallSettings) -> Option<WireReasoning<'_>> {
    let effort = settings.reasoning_effort.as_deref();
    let is_wanted = settings.shows_reasoning() == Some(true);
    let summary = settings.reasoning_summary.as_deref().filter(|_| is_wanted);
    (effort.is_some() || summary.is_some()).then_some(WireReasoning { effort, summary })
}

fn text(schema: &ResponseSchema) -> WireText<'_> {
    let format = WireFormat {
        r#type: "json_schema",
        name: &schema.name,
        schema: &schema.schema,
        strict: schema.is_strict(),
    };
    WireText { format }
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

/// The instructions before the conversation, and what is added to them.
fn instructions(system: &[Message<'_>], more: Option<String>) -> String {
    let texts = system.iter().filter_map(|message| match message {
        Message::System(text) => Some(*text),
        Message::User { .. } | Message::Assistant { .. } | Message::Tool { .. } => None,
    });
    texts.chain(more.as_deref()).collect::<Vec<_>>().join("\n\n")
}

fn input<'a>(model: &str, messages: &'a [Message<'_>]) -> Result<Vec<WireItem<'a>>, Refused> {
    let mut items = Vec::new();
    for message in messages {
        match message {
            Message::System(text) => {
                let content = vec![WirePart::Text { text: (*text).into() }];
                items.push(WireItem::Message { role: Role::System, content });
            }
            Message::User { text, attachments } => {
                let content = user_parts(text, attachments)?;
                items.push(WireItem::Message { role: Role::User, content });
            }
            Message::Assistant { text, calls, provider_data } => {
                items.extend(answer(model, text, calls, *provider_data));
            }
            Message::Tool { tool, result, images, .. } => {
                let output = match images.is_empty() {
                    true => ResultOutput::Text(result),
                    false => ResultOutput::Parts(user_parts(result, images)?),
                };
                items.push(WireItem::FunctionCallOutput { call_id: call_id(tool), output });
            }
        }
    }
    Ok(items)
}

/// The content of a user message, or the result of a tool: images and files, then the text.
fn user_parts<'a>(
    text: &'a str,
    attachments: &'a [Attachment],
) -> Result<Vec<WirePart<'a>>, Refused> {
    let mut parts = attachments.iter().map(part).collect::<Result<Vec<_>, _>>()?;
    if !text.trim().is_empty() || parts.is_empty() {
        parts.push(WirePart::Text { text: text.into() });
    }
    Ok(parts)
}

fn part(attachment: &Attachment) -> Result<WirePart<'_>, Refused> {
    Ok(match media(attachment)? {
        Media::Text(text) => WirePart::Text { text: text.into() },
        Media::Image { url, detail } => WirePart::Image { image_url: url, detail },
        Media::Pdf { filename, data_url } => {
            WirePart::File { filename: Some(filename), file_data: Some(data_url), file_url: None }
        }
        Media::PdfUrl(url) => {
            WirePart::File { filename: None, file_data: None, file_url: Some(url) }
        }
    })
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
    for data in provider_data::decode(provider_data, model, calls.len()) {
        let item = match data {
            DataItem::Reasoning { summary, content, encrypted_content, id } => {
                reasoning.push(WireItem::Reasoning { id, summary, content, encrypted_content });
                None
            }
            // A blank text is left out of the transcript.
            DataItem::Text { bytes, phase } => {
                let (piece, rest) = text.split_at_checked(bytes).unwrap_or(("", text));
                text = rest;
                answered(piece, phase)
            }
            DataItem::Call => calls.next().map(|(tool, input)| called(tool, input)),
        };
        if let Some(item) = item {
            items.append(&mut reasoning);
            items.push(item);
        }
    }
    // Without provider data, the whole answer; with it, what was added to the answer later.
    items.extend(answered(text, None));
    items.extend(calls.map(|(tool, input)| called(tool, input)));
    items
}

/// A text, unless it is blank: strict servers refuse those.
fn answered(text: &str, phase: Option<String>) -> Option<WireItem<'_>> {
    let is_blank = text.trim().is_empty();
    (!is_blank).then_some(WireItem::Answer { role: Role::Assistant, content: text, phase })
}

fn called<'a>(tool: &'a ToolCall, input: &'a str) -> WireItem<'a> {
    WireItem::FunctionCall {
        call_id: call_id(tool),
        name: wire_name(&tool.name),
        arguments: arguments(input),
    }
}

fn call_id(tool: &ToolCall) -> Cow<'_, str> {
    wire_id(&tool.id.0, WIRE_ID_BYTES_MAX)
}
