//! The body of a provider request: OpenAI's "Create chat completion"
//! (<https://platform.openai.com/docs/api-reference/chat/create>), streamed, with token counts.

use crate::chat::tool::ToolSpec;
use crate::chat::transcript::Message;
use crate::engine::provider::tool::{arguments, parameters};
use serde::Serialize;
use serde_json::{Map, Value};
use std::borrow::Cow;

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    messages: Vec<Wire<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<WireTool<'a>>,
    stream: bool,
    stream_options: StreamOptions,
}

#[derive(Serialize)]
struct WireTool<'a> {
    r#type: &'static str,
    function: WireDefinition<'a>,
}

#[derive(Serialize)]
struct WireDefinition<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    description: &'a str,
    parameters: Cow<'a, Map<String, Value>>,
}

#[derive(Serialize)]
struct StreamOptions {
    include_usage: bool,
}

#[derive(Serialize)]
#[serde(tag = "role", rename_all = "lowercase")]
enum Wire<'a> {
    System {
        content: &'a str,
    },
    User {
        content: &'a str,
    },
    Assistant {
        /// Null if the model only called tools: some providers refuse an empty text.
        content: Option<&'a str>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        tool_calls: Vec<WireCall<'a>>,
    },
    Tool {
        tool_call_id: &'a str,
        content: &'a str,
    },
}

#[derive(Serialize)]
struct WireCall<'a> {
    id: &'a str,
    r#type: &'static str,
    function: WireFunction<'a>,
}

#[derive(Serialize)]
struct WireFunction<'a> {
    name: &'a str,
    arguments: Cow<'a, str>,
}

/// The request, as JSON.
pub(super) fn body(
    model: &str,
    messages: &[Message<'_>],
    tools: &[ToolSpec],
) -> Result<Vec<u8>, serde_json::Error> {
    serde_json::to_vec(&Body {
        model,
        messages: messages.iter().map(wire).collect(),
        tools: tools.iter().map(wire_tool).collect(),
        stream: true,
        stream_options: StreamOptions { include_usage: true },
    })
}

fn wire_tool(spec: &ToolSpec) -> WireTool<'_> {
    let function = WireDefinition {
        name: &spec.name,
        description: &spec.description,
        parameters: parameters(&spec.input_schema),
    };
    WireTool { r#type: "function", function }
}

fn wire<'a>(message: &'a Message<'_>) -> Wire<'a> {
    match message {
        Message::System(content) => Wire::System { content },
        Message::User { text, .. } => Wire::User { content: text },
        Message::Assistant { text, calls, .. } => Wire::Assistant {
            content: (!text.is_empty() || calls.is_empty()).then_some(text.as_ref()),
            tool_calls: calls
                .iter()
                .map(|(tool, input)| WireCall {
                    id: &tool.id.0,
                    r#type: "function",
                    function: WireFunction { name: &tool.name, arguments: arguments(input) },
                })
                .collect(),
        },
        Message::Tool { tool, result, .. } => {
            Wire::Tool { tool_call_id: &tool.id.0, content: result.as_ref() }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chat::event::ToolCall;
    use crate::protocol::id::ToolCallId;
    use serde_json::json;

    #[test]
    fn messages_take_openai_form() {
        let tool = ToolCall { id: ToolCallId("c1".into()), name: "f".into() };
        let messages = [
            Message::System("be brief"),
            Message::user("a\u{2028}\u{0}\u{1F600}", &[]),
            Message::Assistant {
                text: "".into(),
                calls: vec![(&tool, r#"{"x":1}"#)],
                provider_data: None,
            },
            Message::Tool { tool: &tool, result: "out".into(), is_error: false },
            Message::Assistant { text: "done".into(), calls: Vec::new(), provider_data: None },
        ];
        let body = body("m", &messages, &[]).expect("serializes");
        let body: Value = serde_json::from_slice(&body).expect("JSON");
        let expected = json!({
            "model": "m",
            "stream": true,
            "stream_options": { "include_usage": true },
            "messages": [
                { "role": "system", "content": "be brief" },
                { "role": "user", "content": "a\u{2028}\u{0}\u{1F600}" },
                { "role": "assistant", "content": null, "tool_calls": [
                    { "id": "c1", "type": "function",
                      "function": { "name": "f", "arguments": "{\"x\":1}" } },
                ] },
                { "role": "tool", "tool_call_id": "c1", "content": "out" },
                { "role": "assistant", "content": "done" },
            ],
        });
        assert_eq!(body, expected);
    }
}
