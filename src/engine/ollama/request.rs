//! The body of a provider request: Ollama's `POST /api/chat` (<https://docs.ollama.com/api/chat>),
//! streamed.
//!
//! Members that change from turn to turn come last: the bodies of two turns then share a prefix, which
//! providers cache.

use super::NAME;
use super::response::Thinking;
use crate::conversation::event::ToolCall;
use crate::conversation::transcript::Message;
use crate::engine::provider::interface::Refused;
use crate::engine::provider::provider_data::decode_value;
use crate::engine::provider::schema;
use crate::engine::provider::think::with_beginning;
use crate::engine::provider::tool::{
    FunctionTool, WIRE_ID_BYTES_MAX, arguments, wire_id, wire_name,
};
use crate::engine::{CallSettings, CallSpec};
use crate::protocol::attachment::{Attachment, Kind};
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use std::borrow::Cow;

#[cfg(test)]
mod tests;

/// The models that reason at levels, by what their names hold.
const LEVELLED_MODELS: [&str; 2] = ["gpt-oss", "gptoss"];

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    stream: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<FunctionTool<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    think: Option<Think<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    format: Option<&'a Map<String, Value>>,
    #[serde(skip_serializing_if = "Options::is_empty")]
    options: Options<'a>,
    messages: Vec<Wire<'a>>,
}

/// Whether the model reasons, or how much.
#[derive(Serialize)]
#[serde(untagged)]
enum Think<'a> {
    Whether(bool),
    /// The server refuses a level for a model that has none.
    Level(&'a str),
}

#[derive(PartialEq, Serialize, Default)]
struct Options<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_p: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    num_predict: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stop: Option<&'a [String]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    seed: Option<i64>,
}

#[derive(Serialize)]
#[serde(tag = "role", rename_all = "lowercase")]
enum Wire<'a> {
    System {
        content: Cow<'a, str>,
    },
    User {
        content: Cow<'a, str>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        images: Vec<String>,
    },
    Assistant {
        content: Cow<'a, str>,
        #[serde(skip_serializing_if = "String::is_empty")]
        thinking: String,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        tool_calls: Vec<WireCall<'a>>,
    },
    Tool {
        content: &'a str,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        images: Vec<String>,
        tool_name: Cow<'a, str>,
        tool_call_id: Cow<'a, str>,
    },
}

/// A call. Older servers ignore its id, and read the results in the order of the calls.
#[derive(Serialize)]
struct WireCall<'a> {
    id: Cow<'a, str>,
    function: WireFunction<'a>,
}

#[derive(Serialize)]
struct WireFunction<'a> {
    name: Cow<'a, str>,
    /// An object: the server refuses a text.
    arguments: Box<RawValue>,
}

/// The request, as JSON.
///
/// # Errors
/// If it holds an attachment that the server does not take, or can't be written, which is a defect.
pub(super) fn body(
    model: &str,
    spec: &CallSpec,
    messages: &[Message<'_>],
) -> Result<Vec<u8>, Refused> {
    let wire = messages.iter().map(|message| wire(model, message)).collect::<Result<Vec<_>, _>>();
    let mut wire = wire?;
    if let Some(content) = schema::instruction(spec, true) {
        let is_system = |message: &Message<'_>| matches!(message, Message::System(_));
        let at = messages.iter().take_while(|message| is_system(message)).count();
        wire.insert(at, Wire::System { content: content.into() });
    }
    let body = Body {
        model,
        stream: true,
        tools: spec.tools.iter().map(FunctionTool::new).collect(),
        think: spec.settings.reasoning_effort.as_deref().map(|effort| think(model, effort)),
        format: schema::native(spec).map(|schema| &schema.schema),
        options: options(&spec.settings),
        messages: wire,
    };
    serde_json::to_vec(&body).map_err(Refused::Unwritable)
}

/// The words of the server are low, medium and high; those of other providers become the nearest.
fn think<'a>(model: &str, effort: &'a str) -> Think<'a> {
    let has_levels = LEVELLED_MODELS.iter().any(|name| model.to_ascii_lowercase().contains(name));
    match effort {
        "none" => Think::Whether(false),
        _ if !has_levels => Think::Whether(true),
        "minimal" => Think::Level("low"),
        "xhigh" | "max" => Think::Level("high"),
        effort => Think::Level(effort),
    }
}

fn options(settings: &CallSettings) -> Options<'_> {
    Options {
        temperature: settings.temperature,
        top_p: settings.top_p,
        num_predict: settings.max_tokens,
        stop: settings.stop.as_deref(),
        seed: settings.seed,
    }
}

impl Options<'_> {
    fn is_empty(&self) -> bool {
        *self == Options::default()
    }
}

fn wire<'a>(model: &str, message: &'a Message<'_>) -> Result<Wire<'a>, Refused> {
    Ok(match message {
        Message::System(content) => Wire::System { content: (*content).into() },
        Message::User { text, attachments } => user(text, attachments)?,
        Message::Assistant { text, calls, provider_data } => {
            let data: Option<Thinking> = decode_value(*provider_data, NAME, model);
            let Thinking { thinking, think } = data.unwrap_or_default();
            Wire::Assistant {
                content: with_beginning(think, text),
                thinking,
                tool_calls: calls
                    .iter()
                    .map(|(tool, input)| wire_call(tool, input))
                    .collect::<Result<_, _>>()?,
            }
        }
        Message::Tool { tool, result, images, is_error: _ } => Wire::Tool {
            content: result,
            images: images.iter().filter_map(Attachment::base64).collect(),
            tool_name: wire_name(&tool.name),
            tool_call_id: wire_id(&tool.id.0, WIRE_ID_BYTES_MAX),
        },
    })
}

fn wire_call<'a>(tool: &'a ToolCall, input: &str) -> Result<WireCall<'a>, Refused> {
    let arguments = serde_json::from_str::<Box<RawValue>>(arguments(input).trim());
    let arguments = arguments.map_err(Refused::Unwritable)?;
    let function = WireFunction { name: wire_name(&tool.name), arguments };
    Ok(WireCall { id: wire_id(&tool.id.0, WIRE_ID_BYTES_MAX), function })
}

/// A prompt. Its texts are one text, in which files stand before what the user wrote.
fn user<'a>(text: &'a str, attachments: &[Attachment]) -> Result<Wire<'a>, Refused> {
    let mut images = Vec::new();
    let mut files = Vec::new();
    for attachment in attachments {
        match (attachment.kind(), attachment.base64(), attachment.as_text()) {
            (Kind::Image, Some(image), _) => images.push(image),
            (Kind::Text, _, Some(text)) => files.push(text),
            (Kind::Image | Kind::Pdf | Kind::Text | Kind::Other, _, _) => {
                let taken = "images and text files, and no addresses of them";
                return Err(Refused::attachment("Ollama", attachment, taken));
            }
        }
    }
    if files.is_empty() {
        return Ok(Wire::User { content: text.into(), images });
    }
    files.extend((!text.trim().is_empty()).then(|| text.to_owned()));
    Ok(Wire::User { content: files.join("\n\n").into(), images })
}
