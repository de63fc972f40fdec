//! The body of a provider request: OpenAI's "Create chat completion"
//! (<https://platform.openai.com/docs/api-reference/chat/create>), streamed, with token counts.
//!
//! Members that change from turn to turn come last: the bodies of two turns then share a prefix, which
//! providers cache.

use super::model::{is_reasoning_deployment, refuses_max_tokens, taken, takes_schemas};
use super::provider_data::{self, CallData};
use super::wire::{
    Body, ImageUrl, ResponseFormat, StreamOptions, UserContent, Wire, WireCall, WireFile,
    WireFunction, WirePart, WireSchema, WireSettings,
};
use crate::conversation::event::ToolCall;
use crate::conversation::transcript::Message;
use crate::engine::provider::gemini_model::{NO_SIGNATURE, needs_signatures};
use crate::engine::provider::interface::Refused;
use crate::engine::provider::media::{self, Media};
use crate::engine::provider::schema;
use crate::engine::provider::think::with_beginning;
use crate::engine::provider::tool::{
    FunctionTool, WIRE_ID_BYTES_MAX, arguments, wire_id, wire_id_of_chars, wire_name,
};
use crate::engine::{CallSettings, CallSpec, ResponseSchema};
use crate::protocol::attachment::Attachment;
use crate::protocol::id::ToolCallId;
use serde_json::{Map, Value, json};
use std::borrow::Cow;
use std::collections::HashMap;

#[cfg(test)]
mod tests;

/// Whose server it is: some settings have other names there, or no place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Server {
    OpenAi,
    /// Microsoft's, with OpenAI's models among others.
    Azure,
    /// Refuses a member that it doesn't know, has another name for the seed, and reports token counts unasked.
    Mistral,
    /// Refuses calls of newer models without their signatures.
    Google,
    Other,
}

/// Bytes of a call's id that OpenAI takes in chat completions.
const OPENAI_ID_BYTES_MAX: usize = 40;

/// Letters and digits of a call's id at Mistral, which refuses any other.
const MISTRAL_ID_CHARS: usize = 9;

/// Stands between results and a prompt at Mistral, which wants an answer there: a prompt that joins a
/// run comes before it.
const BRIDGE: &str = "I have the results.";

/// OpenAI's own domain; those of its regions (`eu.`, `us.`) are below it.
const OPENAI_DOMAIN: &str = "api.openai.com";

/// Domains of Azure's servers with models, also in its clouds for the government of the United States and for China.
const AZURE_DOMAINS: [&str; 8] = [
    "openai.azure.com",
    "cognitiveservices.azure.com",
    "services.ai.azure.com",
    "openai.azure.us",
    "cognitiveservices.azure.us",
    "services.ai.azure.us",
    "openai.azure.cn",
    "cognitiveservices.azure.cn",
];

/// The domain of Mistral's servers.
const MISTRAL_DOMAIN: &str = "mistral.ai";

/// The domain of Google's servers with models.
const GOOGLE_DOMAIN: &str = "googleapis.com";

impl Server {
    /// The server at `host`, which may have a port.
    pub(super) fn at(host: &str) -> Self {
        let name = host.split(':').next().unwrap_or_default();
        let is_of = |domain: &str| {
            name.strip_suffix(domain).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
        };
        if is_of(OPENAI_DOMAIN) {
            Self::OpenAi
        } else if is_of(MISTRAL_DOMAIN) {
            Self::Mistral
        } else if AZURE_DOMAINS.into_iter().any(is_of) {
            Self::Azure
        } else if is_of(GOOGLE_DOMAIN) {
            Self::Google
        } else {
            Self::Other
        }
    }

    /// Whether the limit of tokens has OpenAI's newer name here, which its reasoning models require.
    fn has_completion_limit(self, model: &str) -> bool {
        match self {
            Self::OpenAi => true,
            Self::Azure => is_reasoning_deployment(model),
            // Many gateways pass on what they are sent, and those that don't know both names.
            Self::Other => refuses_max_tokens(model),
            Self::Mistral | Self::Google => false,
        }
    }

    /// Whether the server is sent back what it added to calls. The others add nothing, and refuse it.
    fn takes_call_data(self) -> bool {
        match self {
            Self::Google | Self::Other => true,
            Self::OpenAi | Self::Azure | Self::Mistral => false,
        }
    }

    /// The id of a call in the form that the server takes.
    fn id(self, id: &str) -> Cow<'_, str> {
        match self {
            Self::OpenAi | Self::Azure => wire_id(id, OPENAI_ID_BYTES_MAX),
            Self::Mistral => wire_id_of_chars(id, MISTRAL_ID_CHARS),
            // Ids of some servers mean something to them, and have up to 64 bytes.
            Self::Google | Self::Other => wire_id(id, WIRE_ID_BYTES_MAX),
        }
    }
}

/// The request, as JSON.
///
/// # Errors
/// If the interface has no place for an attachment, or the request can't be written.
pub(super) fn body(model: &str, spec: &CallSpec, server: Server) -> Result<Vec<u8>, Refused> {
    body_of(&spec.transcript.messages(), model, spec, server)
}

fn body_of(
    messages: &[Message<'_>],
    model: &str,
    spec: &CallSpec,
    server: Server,
) -> Result<Vec<u8>, Refused> {
    let native = schema::native_if(spec, |schema| schema.is_of_object() && takes_schemas(model));
    let (settings, _) = taken(model, &spec.settings);
    let body = Body {
        model,
        stream: true,
        stream_options: (server != Server::Mistral)
            .then_some(StreamOptions { include_usage: true }),
        settings: WireSettings {
            response_format: native.map(response_format),
            ..wire_settings(model, &settings, server)
        },
        tools: spec.tools.iter().map(FunctionTool::new).collect(),
        messages: wire_messages(
            (model, server),
            messages,
            schema::instruction(spec, native.is_some()),
        )?,
    };
    serde_json::to_vec(&body).map_err(Refused::Unwritable)
}

/// `body` with an empty `reasoning_content` in each answer that has none: DeepSeek and Moonshot require the member
/// while their models think.
///
/// # Errors
/// If it is no object.
pub(super) fn with_reasoning_said(body: Vec<u8>) -> Result<Vec<u8>, serde_json::Error> {
    let mut members: Map<String, Value> = serde_json::from_slice(&body)?;
    let messages = members.get_mut("messages").and_then(Value::as_array_mut);
    let messages = messages.into_iter().flatten().filter_map(Value::as_object_mut);
    for message in messages {
        let is_answer = message.get("role").is_some_and(|role| role == "assistant");
        if is_answer && !message.contains_key("reasoning_details") {
            message.entry("reasoning_content").or_insert_with(|| "".into());
        }
    }
    serde_json::to_vec(&members)
}

/// Names of the settings that are set and that the interface, or the model, doesn't take.
pub(super) fn ignored_settings(model: &str, settings: &CallSettings) -> Vec<&'static str> {
    let (settings, refused) = taken(model, settings);
    let ignored = settings.reasoning_budget.map(|_| "reasoning_budget");
    let summary = settings.reasoning_summary.map(|_| "reasoning_summary");
    refused.into_iter().chain(ignored).chain(summary).collect()
}

fn wire_settings<'a>(model: &str, settings: &'a CallSettings, server: Server) -> WireSettings<'a> {
    let is_completion_limit = server.has_completion_limit(model);
    let max_tokens_as = |named| settings.max_tokens.filter(|_| is_completion_limit == named);
    let seed_as = |named| settings.seed.filter(|_| (server == Server::Mistral) == named);
    WireSettings {
        temperature: settings.temperature,
        top_p: settings.top_p,
        max_completion_tokens: max_tokens_as(true),
        max_tokens: max_tokens_as(false),
        stop: settings.stop.as_deref(),
        seed: seed_as(false),
        random_seed: seed_as(true),
        reasoning_effort: settings.reasoning_effort.as_deref(),
        response_format: None,
    }
}

fn response_format(schema: &ResponseSchema) -> ResponseFormat<'_> {
    let json_schema =
        WireSchema { name: &schema.name, schema: &schema.schema, strict: schema.is_strict() };
    ResponseFormat { r#type: "json_schema", json_schema }
}

/// The messages, with `instruction` after the first ones of the system.
fn wire_messages<'a>(
    to: (&str, Server),
    messages: &'a [Message<'_>],
    instruction: Option<String>,
) -> Result<Vec<Wire<'a>>, Refused> {
    let mut wire = conversation(to, messages)?;
    if to.1 == Server::Mistral {
        bridge(&mut wire);
        if let Some(Wire::Assistant { prefix, .. }) = wire.last_mut() {
            *prefix = true;
        }
    }
    let Some(instruction) = instruction else { return Ok(wire) };
    // Many servers take only one message of the system.
    match wire.first_mut() {
        Some(Wire::System { content }) => {
            let content = content.to_mut();
            content.push_str("\n\n");
            content.push_str(&instruction);
        }
        Some(Wire::User { .. } | Wire::Assistant { .. } | Wire::Tool { .. }) | None => {
            wire.insert(0, Wire::System { content: instruction.into() });
        }
    }
    Ok(wire)
}

/// The messages. Results are texts here: their images come after all results of an answer, in a message of
/// the user.
fn conversation<'a>(
    to: (&str, Server),
    messages: &'a [Message<'_>],
) -> Result<Vec<Wire<'a>>, Refused> {
    let mut all = Vec::new();
    let mut shown = Vec::new();
    // Results have the ids that their calls were sent with.
    let mut ids = HashMap::new();
    for message in messages {
        let mut next = wire(to, message, &ids)?;
        if let (Message::Assistant { calls, .. }, Wire::Assistant { tool_calls, .. }) =
            (message, &next)
        {
            let sent = tool_calls.iter().map(|call| call.id.clone());
            ids.extend(calls.iter().map(|(tool, _)| &tool.id).zip(sent));
        }
        if let Message::Tool { tool, images, .. } = message {
            shown.extend(result_images(tool, images)?);
        } else if let Wire::User { content } = &mut next {
            content.begin_with(std::mem::take(&mut shown));
        } else if !shown.is_empty() {
            let content = UserContent::Parts(std::mem::take(&mut shown));
            all.push(Wire::User { content });
        }
        all.push(next);
    }
    if !shown.is_empty() {
        all.push(Wire::User { content: UserContent::Parts(shown) });
    }
    Ok(all)
}

/// The images of a result, after a text that says whose they are.
fn result_images<'a>(
    tool: &ToolCall,
    images: &'a [Attachment],
) -> Result<Vec<WirePart<'a>>, Refused> {
    if images.is_empty() {
        return Ok(Vec::new());
    }
    let text = format!("[The images of the result of {}, in order:]", wire_name(&tool.name));
    let about = WirePart::Text { text: text.into() };
    std::iter::once(Ok(about)).chain(images.iter().map(part)).collect()
}

/// Has an answer stand between results and what the user says next.
fn bridge(wire: &mut Vec<Wire<'_>>) {
    let is_gap = |pair: &[Wire<'_>]| matches!(pair, [Wire::Tool { .. }, Wire::User { .. }]);
    while let Some(at) = wire.windows(2).position(is_gap) {
        let (tool_calls, reasoning) = (Vec::new(), Box::default());
        let content = Some(BRIDGE.into());
        wire.insert(at + 1, Wire::Assistant { content, tool_calls, prefix: false, reasoning });
    }
}

fn wire<'a>(
    (model, server): (&str, Server),
    message: &'a Message<'_>,
    ids: &HashMap<&ToolCallId, Cow<'a, str>>,
) -> Result<Wire<'a>, Refused> {
    Ok(match message {
        Message::System(content) => Wire::System { content: (*content).into() },
        Message::User { text, attachments } => {
            Wire::User { content: user_content(text, attachments)? }
        }
        Message::Assistant { text, calls, provider_data } => {
            let mut reasoning = provider_data::reasoning(*provider_data, model);
            let own = std::mem::take(&mut reasoning.calls);
            let content = with_beginning(std::mem::take(&mut reasoning.think), text);
            Wire::Assistant {
                content: (!content.is_empty() || calls.is_empty()).then_some(content),
                tool_calls: wire_calls((model, server), calls, own),
                prefix: false,
                reasoning: Box::new(reasoning),
            }
        }
        Message::Tool { tool, result, .. } => {
            let sent = ids.get(&tool.id).cloned();
            let tool_call_id = sent.unwrap_or_else(|| server.id(&tool.id.0));
            Wire::Tool { tool_call_id, content: result.as_ref() }
        }
    })
}

/// The calls of an answer; `own` is what the server added to them, one for each, or none.
fn wire_calls<'a>(
    (model, server): (&str, Server),
    calls: &[(&'a ToolCall, &'a str)],
    own: Vec<CallData>,
) -> Vec<WireCall<'a>> {
    let is_taken = server.takes_call_data() && own.len() == calls.len();
    let mut own = own.into_iter().filter(|_| is_taken);
    let wire = calls.iter().map(|(tool, input)| {
        let CallData { id, extra_content } = own.next().unwrap_or_default();
        WireCall {
            id: id.map_or_else(|| server.id(&tool.id.0), Cow::Owned),
            r#type: "function",
            function: WireFunction { name: wire_name(&tool.name), arguments: arguments(input) },
            extra_content,
        }
    });
    let mut wire: Vec<_> = wire.collect();
    if server == Server::Google && is_gemini_with_signatures(model) {
        sign_first_call(&mut wire);
    }
    wire
}

/// Whether `model`, which may have a publisher before its name, is one of Google's that refuse calls without
/// signatures.
fn is_gemini_with_signatures(model: &str) -> bool {
    let name = model.rsplit('/').next().unwrap_or_default();
    name.starts_with("gemini-") && needs_signatures(name)
}

/// Signs the first call of an answer that has no signature, because another model made it.
fn sign_first_call(calls: &mut [WireCall<'_>]) {
    if let Some(first) = calls.first_mut() {
        let unsigned = || json!({ "google": { "thought_signature": NO_SIGNATURE } });
        first.extra_content.get_or_insert_with(unsigned);
    }
}

/// The content of a user message: images and files, then the text.
fn user_content<'a>(
    text: &'a str,
    attachments: &'a [Attachment],
) -> Result<UserContent<'a>, Refused> {
    if attachments.is_empty() {
        return Ok(UserContent::Text(text));
    }
    let mut parts = attachments.iter().map(part).collect::<Result<Vec<_>, _>>()?;
    if !text.trim().is_empty() {
        parts.push(WirePart::Text { text: text.into() });
    }
    Ok(UserContent::Parts(parts))
}

fn part(attachment: &Attachment) -> Result<WirePart<'_>, Refused> {
    Ok(match media::media(attachment)? {
        Media::Text(text) => WirePart::Text { text: text.into() },
        Media::Image { url, detail } => WirePart::ImageUrl { image_url: ImageUrl { url, detail } },
        Media::Pdf { filename, data_url: file_data } => {
            WirePart::File { file: WireFile { filename, file_data } }
        }
        Media::PdfUrl(_) => return Err(media::unsupported(attachment)),
    })
}
