//! The body of a provider request: Google's `generateContent`
//! (<https://ai.google.dev/api/generate-content>).

use super::generation;
use super::model;
use super::names::Names;
use super::provider_data::AnswerPart;
use super::wire::{Body, Content, Part, Payload, Response, Role, WireTool, WireTools};
use crate::conversation::event::{ProviderData, ToolCall};
use crate::conversation::tool::ToolSpec;
use crate::conversation::transcript::Message;
use crate::engine::CallSpec;
use crate::engine::provider::gemini_model::{NO_SIGNATURE, needs_signatures};
use crate::engine::provider::interface::Refused;
use crate::engine::provider::parameters::parameters;
use crate::engine::provider::tool::arguments;
use crate::engine::provider::{provider_data, schema};
use crate::protocol::attachment::{Attachment, Kind};
use crate::protocol::id::ToolCallId;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::HashMap;

#[cfg(test)]
mod tests;

/// The request, as JSON.
///
/// # Errors
/// If it holds an attachment that the provider does not take, or can't be written, which is a defect.
pub(super) fn body(
    model: &str,
    spec: &CallSpec,
    messages: &[Message<'_>],
) -> Result<Vec<u8>, Refused> {
    let names = Names::of(&spec.tools);
    let declarations: Vec<_> = spec.tools.iter().map(|tool| wire_tool(&names, tool)).collect();
    let schema = schema::instruction(spec, generation::has_schema_field(model, spec));
    let body = Body {
        system_instruction: system_instruction(messages, schema),
        tools: (!declarations.is_empty())
            .then_some([WireTools { function_declarations: declarations }]),
        generation_config: generation::config(model, spec),
        contents: contents(&names, model, messages)?,
    };
    serde_json::to_vec(&body).map_err(Refused::Unwritable)
}

fn wire_tool<'a>(names: &Names, spec: &'a ToolSpec) -> WireTool<'a> {
    WireTool {
        name: names.wire(&spec.name),
        description: &spec.description,
        parameters_json_schema: parameters(&spec.input_schema),
    }
}

/// Instructions stand apart from the messages, wherever they were.
fn system_instruction<'a>(
    messages: &'a [Message<'_>],
    schema: Option<String>,
) -> Option<Content<'a>> {
    let text = |message: &'a Message<'_>| match message {
        Message::System(text) => text_part((*text).into()),
        Message::User { .. } | Message::Assistant { .. } | Message::Tool { .. } => None,
    };
    let schema = schema.map(|schema| plain(Payload::Text(schema.into())));
    let parts: Vec<_> = messages.iter().filter_map(text).chain(schema).collect();
    (!parts.is_empty()).then_some(Content { role: None, parts })
}

fn contents<'a>(
    names: &Names,
    model: &str,
    messages: &'a [Message<'_>],
) -> Result<Vec<Content<'a>>, Refused> {
    let mut contents = Vec::new();
    // The provider's own ids of calls: those of the transcript may differ.
    let mut ids: HashMap<&ToolCallId, Option<String>> = HashMap::new();
    let mut is_after_result = false;
    for message in messages {
        let is_result = matches!(message, Message::Tool { .. });
        let (role, parts) = match message {
            Message::System(_) => continue,
            Message::User { text, attachments } => (Role::User, user(text, attachments)?),
            Message::Assistant { text, calls, provider_data } => {
                let parts = answer((names, model), text, calls, *provider_data)?;
                ids.extend(calls.iter().map(|(tool, _)| &tool.id).zip(own_ids(&parts)));
                (Role::Model, parts)
            }
            Message::Tool { tool, result, images, is_error } => {
                let id = ids.get(&tool.id).cloned().flatten();
                let response =
                    if *is_error { Response::Error(result) } else { Response::Output(result) };
                let images = images.iter().map(attached).collect::<Result<Vec<_>, _>>()?;
                // Older models have no place for them in a result.
                let (parts, beside) = match model::takes_images_in_results(model) {
                    true => (images, Vec::new()),
                    false => (Vec::new(), images),
                };
                let name = names.wire(&tool.name);
                let payload = Payload::FunctionResponse { id, name, response, parts };
                (Role::User, std::iter::once(plain(payload)).chain(beside).collect())
            }
        };
        match contents.last_mut() {
            // All results of an answer stand in one content.
            Some(Content { parts: before, .. }) if is_result && is_after_result => {
                before.extend(parts);
            }
            Some(_) | None if parts.is_empty() => {}
            // There were only instructions between them, which stand apart.
            Some(Content { parts: before, role: Some(Role::Model) }) if role == Role::Model => {
                before.extend(parts);
            }
            Some(_) | None => contents.push(Content { role: Some(role), parts }),
        }
        is_after_result = is_result;
    }
    Ok(contents)
}

/// The ids of the calls in `parts`, in order.
fn own_ids<'p>(parts: &'p [Part<'_>]) -> impl Iterator<Item = Option<String>> + 'p {
    parts.iter().filter_map(|part| {
        let Payload::FunctionCall { id, .. } = &part.payload else { return None };
        Some(id.clone())
    })
}

fn plain(payload: Payload<'_>) -> Part<'_> {
    Part { payload, thought: false, thought_signature: None }
}

/// A text, unless it is blank: the provider refuses those.
fn text_part(text: Cow<'_, str>) -> Option<Part<'_>> {
    (!text.trim().is_empty()).then(|| plain(Payload::Text(text)))
}

fn user<'a>(text: &'a str, attachments: &'a [Attachment]) -> Result<Vec<Part<'a>>, Refused> {
    let mut parts = attachments.iter().map(attached).collect::<Result<Vec<_>, _>>()?;
    parts.extend(text_part(text.into()));
    Ok(parts)
}

fn attached(attachment: &Attachment) -> Result<Part<'_>, Refused> {
    let mime_type = attachment.shown.media_type.as_str();
    let is_media = || ["audio/", "video/"].iter().any(|kind| mime_type.starts_with(kind));
    let is_taken = match attachment.kind() {
        Kind::Image | Kind::Pdf | Kind::Text => true,
        Kind::Other => is_media(),
    };
    let data = match (attachment.as_text(), attachment.base64(), attachment.url()) {
        (Some(text), _, _) => Some(Payload::Text(text.into())),
        (None, Some(data), _) if is_taken => Some(Payload::InlineData { mime_type, data }),
        (None, None, Some(file_uri)) if is_taken => Some(Payload::FileData { mime_type, file_uri }),
        (None, Some(_) | None, _) => None,
    };
    let taken = "images, PDF documents, sound, video and text files";
    data.map(plain).ok_or_else(|| Refused::attachment("Gemini", attachment, taken))
}

/// An answer of the model, with its signatures in their places.
fn answer<'a>(
    (names, model): (&Names, &str),
    text: &'a str,
    calls: &[(&'a ToolCall, &'a str)],
    provider_data: Option<&ProviderData>,
) -> Result<Vec<Part<'a>>, Refused> {
    let mut parts = Vec::new();
    let (mut text, mut calls) = (text, calls.iter());
    for data in provider_data::decode(provider_data, model, calls.len()) {
        match data {
            AnswerPart::Thought { text, signature } => parts.push(Part {
                payload: Payload::Text(text.into()),
                thought: true,
                thought_signature: Some(signature.into()),
            }),
            AnswerPart::Text { bytes, signature } => {
                // A blank text is left out of the transcript; its signature still counts.
                let (piece, rest) = text.split_at_checked(bytes).unwrap_or(("", text));
                text = rest;
                parts.extend(signed(piece, signature));
            }
            AnswerPart::Call { id, signature } => {
                for (tool, input) in calls.by_ref().take(1) {
                    let call = function_call(names, (tool, input), id.clone(), signature.clone());
                    parts.push(call?);
                }
            }
        }
    }
    // Without provider data, the whole answer; with it, what was added to the answer later.
    parts.extend(text_part(text.into()));
    for (tool, input) in calls {
        parts.push(function_call(names, (tool, input), None, None)?);
    }
    sign_first_call(model, &mut parts);
    Ok(parts)
}

fn signed(text: &str, signature: Option<String>) -> Option<Part<'_>> {
    match signature {
        Some(signature) => Some(Part {
            thought_signature: Some(signature.into()),
            ..plain(Payload::Text(text.into()))
        }),
        None => text_part(text.into()),
    }
}

fn function_call<'a>(
    names: &Names,
    (tool, input): (&'a ToolCall, &str),
    id: Option<String>,
    signature: Option<String>,
) -> Result<Part<'a>, Refused> {
    let args = serde_json::from_str::<Box<RawValue>>(arguments(input).trim());
    let args = args.map_err(Refused::Unwritable)?;
    let payload = Payload::FunctionCall { id, name: names.wire(&tool.name), args };
    Ok(Part { thought_signature: signature.map(Cow::Owned), ..plain(payload) })
}

/// Models that need it refuse a request in which the first call of an answer has no signature.
fn sign_first_call(model: &str, parts: &mut [Part<'_>]) {
    if !needs_signatures(model) {
        return;
    }
    let is_call = |part: &&mut Part<'_>| matches!(part.payload, Payload::FunctionCall { .. });
    if let Some(call) = parts.iter_mut().find(is_call) {
        call.thought_signature.get_or_insert(NO_SIGNATURE.into());
    }
}
