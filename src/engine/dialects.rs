//! For tests of whole conversations: a model's output as the response of each interface, and the request
//! that each makes.

use super::provider::body::BodyEnd;
use super::provider::failure::Failures;
use super::provider::interface::{Interface, Refused};
use super::provider::testing::read_pieces;
use super::rules::broken_rules;
use super::{CallEnd, CallSettings, CallSpec, EngineEvent, SettingNames};
use super::{anthropic, gemini, ollama, openai, responses};
use serde_json::{Value, json};
use std::sync::Arc;

/// An interface, and whose server has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dialect {
    OpenAi,
    Mistral,
    Responses,
    Anthropic,
    Gemini,
    Ollama,
}

/// Something that a model says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Said {
    Text(&'static str),
    /// Reasoning, which has to be sent back.
    Thinking,
    /// A call: its id, its name, and its arguments.
    Call(&'static str, &'static str, &'static str),
}

/// How an answer ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AnswerEnd {
    Whole,
    /// The provider withholds the rest.
    Withheld,
    /// A limit of tokens.
    CutOff,
    /// The connection breaks.
    Broken,
}

impl Dialect {
    pub(crate) const ALL: [Self; 6] =
        [Self::OpenAi, Self::Mistral, Self::Responses, Self::Anthropic, Self::Gemini, Self::Ollama];

    /// The rules that the request for `spec` breaks; its settings have a budget for reasoning if
    /// `has_budget`.
    pub(crate) fn broken_rules(self, spec: &CallSpec, has_budget: bool) -> Vec<String> {
        let mut spec = spec.clone();
        spec.transcript.leave_out_data_of_others(self.host());
        let mut settings = CallSettings::default();
        if has_budget {
            let set = [("reasoning_budget", json!(1_024)), ("temperature", json!(0.2))];
            for (name, value) in set {
                settings.set(name, &value).expect("a setting");
            }
        }
        spec.settings = Arc::new(settings);
        let (host, model) = (self.host(), self.model());
        let body = match self {
            Self::OpenAi => body::<openai::ChatCompletions>(model, &spec, host, true),
            Self::Mistral => body::<openai::ChatCompletions>(model, &spec, host, false),
            Self::Responses => body::<responses::ResponsesApi>(model, &spec, host, true),
            Self::Anthropic => body::<anthropic::Messages>(model, &spec, host, true),
            Self::Gemini => body::<gemini::GenerateContent>(model, &spec, host, true),
            Self::Ollama => body::<ollama::Chat>(model, &spec, host, true),
        };
        let body: Value = serde_json::from_slice(&body.expect("a request")).expect("JSON");
        let broken = broken_rules(self.path(), host, &body);
        broken.into_iter().map(|rule| format!("{self:?}: {rule}, in {body:#}")).collect()
    }

    /// The events of the engine for a response with this output.
    pub(crate) fn answer(self, said: &[Said], end: AnswerEnd) -> (Vec<EngineEvent>, CallEnd) {
        let stream = self.stream(said, end);
        match self {
            Self::OpenAi | Self::Mistral => read::<openai::ChatCompletions>(self, &stream),
            Self::Responses => read::<responses::ResponsesApi>(self, &stream),
            Self::Anthropic => read::<anthropic::Messages>(self, &stream),
            Self::Gemini => read::<gemini::GenerateContent>(self, &stream),
            Self::Ollama => read::<ollama::Chat>(self, &stream),
        }
    }

    fn host(self) -> &'static str {
        match self {
            Self::OpenAi => "openai.example",
            Self::Mistral => "api.mistral.ai",
            Self::Responses => "responses.example",
            Self::Anthropic => "anthropic.example",
            Self::Gemini => "gemini.example",
            Self::Ollama => "ollama.example",
        }
    }

    fn model(self) -> &'static str {
        match self {
            Self::Anthropic => "claude-sonnet-4-5",
            Self::Gemini => "gemini-3-pro",
            Self::OpenAi | Self::Mistral | Self::Responses | Self::Ollama => "m",
        }
    }

    fn path(self) -> &'static str {
        match self {
            Self::OpenAi | Self::Mistral => "/v1/chat/completions",
            Self::Responses => "/v1/responses",
            Self::Anthropic => "/v1/messages",
            Self::Gemini => "/v1beta/models/gemini-3-pro:streamGenerateContent",
            Self::Ollama => "/api/chat",
        }
    }

    fn stream(self, said: &[Said], end: AnswerEnd) -> String {
        let numbered = || said.iter().enumerate();
        let events: Vec<Value> = match self {
            Self::OpenAi | Self::Mistral => numbered()
                .map(|(at, said)| openai_event(at, *said))
                .chain(openai_end(end))
                .collect(),
            Self::Responses => numbered()
                .map(|(at, said)| responses_event(at, *said))
                .chain(responses_end(end))
                .collect(),
            Self::Anthropic => [json!({ "type": "message_start", "message": {} })]
                .into_iter()
                .chain(numbered().flat_map(|(at, said)| anthropic_events(at, *said)))
                .chain(anthropic_end(end))
                .collect(),
            Self::Gemini => {
                said.iter().map(|said| gemini_event(*said)).chain(gemini_end(end)).collect()
            }
            Self::Ollama => {
                said.iter().map(|said| ollama_line(*said)).chain(ollama_end(end)).collect()
            }
        };
        let line = |event: Value| match self {
            Self::Ollama => format!("{event}\n"),
            Self::OpenAi | Self::Mistral | Self::Responses | Self::Anthropic | Self::Gemini => {
                format!("data: {event}\n\n")
            }
        };
        events.into_iter().map(line).collect()
    }
}

fn body<I: Interface>(
    model: &str,
    spec: &CallSpec,
    host: &str,
    is_own: bool,
) -> Result<Vec<u8>, Refused> {
    if is_own { I::body(model, spec) } else { I::body_for_others(model, spec, host) }
}

fn read<I: Interface>(of: Dialect, stream: &str) -> (Vec<EngineEvent>, CallEnd) {
    let base_url = format!("https://{}", of.host());
    let failures = Failures::new(&SettingNames::FIELDS, None, &base_url, of.model());
    let reader = I::reader(&failures, BodyEnd::Marked, &[]);
    let (mut events, result) = read_pieces(reader, &[stream.as_bytes()]);
    events.insert(0, EngineEvent::CallStarted);
    let end = result.map_or_else(|why| CallEnd::Failed(why.into_error()), |()| CallEnd::Finished);
    (events, end)
}

/// Arguments as JSON, for interfaces that take them so; a text that is not JSON becomes a list of it.
fn object(arguments: &str) -> Value {
    serde_json::from_str(arguments).unwrap_or_else(|_| json!([arguments]))
}

fn openai_event(at: usize, said: Said) -> Value {
    let delta = match said {
        Said::Text(text) => json!({ "content": text }),
        Said::Thinking => json!({ "reasoning_content": "hm" }),
        Said::Call(id, name, arguments) => json!({ "tool_calls": [{ "index": at, "id": id,
            "type": "function", "function": { "name": name, "arguments": arguments } }] }),
    };
    json!({ "choices": [{ "index": 0, "delta": delta }] })
}

fn openai_end(end: AnswerEnd) -> Option<Value> {
    let reason = match end {
        AnswerEnd::Whole => "stop",
        AnswerEnd::Withheld => "content_filter",
        AnswerEnd::CutOff => "length",
        AnswerEnd::Broken => return None,
    };
    Some(json!({ "choices": [{ "index": 0, "delta": {}, "finish_reason": reason }] }))
}

fn responses_event(at: usize, said: Said) -> Value {
    let item = match said {
        Said::Text(text) => json!({ "type": "message", "id": "msg_1", "role": "assistant",
            "content": [{ "type": "output_text", "text": text, "annotations": [] }] }),
        Said::Thinking => {
            json!({ "type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "e" })
        }
        Said::Call(id, name, arguments) => {
            json!({ "type": "function_call", "call_id": id, "name": name, "arguments": arguments })
        }
    };
    json!({ "type": "response.output_item.done", "output_index": at, "item": item })
}

fn responses_end(end: AnswerEnd) -> Option<Value> {
    let cut = |reason: &str| {
        json!({ "type": "response.incomplete", "response": {
            "status": "incomplete", "incomplete_details": { "reason": reason } } })
    };
    match end {
        AnswerEnd::Whole => {
            Some(json!({ "type": "response.completed", "response": { "status": "completed" } }))
        }
        AnswerEnd::Withheld => Some(cut("content_filter")),
        AnswerEnd::CutOff => Some(cut("max_output_tokens")),
        AnswerEnd::Broken => None,
    }
}

fn anthropic_events(at: usize, said: Said) -> Vec<Value> {
    let begin = |block: Value| json!({ "type": "content_block_start", "index": at, "content_block": block });
    let stop = json!({ "type": "content_block_stop", "index": at });
    match said {
        Said::Text(text) => vec![begin(json!({ "type": "text", "text": text })), stop],
        Said::Thinking => {
            let block = json!({ "type": "thinking", "thinking": "hm", "signature": "s" });
            vec![begin(block), stop]
        }
        Said::Call(id, name, arguments) => {
            let delta = json!({ "type": "input_json_delta", "partial_json": arguments });
            vec![
                begin(json!({ "type": "tool_use", "id": id, "name": name, "input": {} })),
                json!({ "type": "content_block_delta", "index": at, "delta": delta }),
                stop,
            ]
        }
    }
}

fn anthropic_end(end: AnswerEnd) -> Vec<Value> {
    let reason = match end {
        AnswerEnd::Whole => "end_turn",
        AnswerEnd::Withheld => "refusal",
        AnswerEnd::CutOff => "max_tokens",
        AnswerEnd::Broken => return Vec::new(),
    };
    let delta = json!({ "stop_reason": reason });
    vec![json!({ "type": "message_delta", "delta": delta }), json!({ "type": "message_stop" })]
}

fn gemini_event(said: Said) -> Value {
    let part = match said {
        Said::Text(text) => json!({ "text": text }),
        Said::Thinking => json!({ "text": "hm", "thought": true, "thoughtSignature": "s" }),
        Said::Call(id, name, arguments) => {
            json!({ "functionCall": { "id": id, "name": name, "args": object(arguments) } })
        }
    };
    json!({ "candidates": [{ "content": { "role": "model", "parts": [part] } }] })
}

fn gemini_end(end: AnswerEnd) -> Option<Value> {
    let reason = match end {
        AnswerEnd::Whole => "STOP",
        AnswerEnd::Withheld => "SAFETY",
        AnswerEnd::CutOff => "MAX_TOKENS",
        AnswerEnd::Broken => return None,
    };
    Some(json!({ "candidates": [{ "finishReason": reason }] }))
}

fn ollama_line(said: Said) -> Value {
    let message = match said {
        Said::Text(text) => json!({ "role": "assistant", "content": text }),
        Said::Thinking => json!({ "role": "assistant", "content": "", "thinking": "hm" }),
        Said::Call(id, name, arguments) => {
            let function = json!({ "name": name, "arguments": object(arguments) });
            json!({ "role": "assistant", "content": "",
                    "tool_calls": [{ "id": id, "function": function }] })
        }
    };
    json!({ "message": message, "done": false })
}

fn ollama_end(end: AnswerEnd) -> Option<Value> {
    let reason = match end {
        AnswerEnd::Whole | AnswerEnd::Withheld => "stop",
        AnswerEnd::CutOff => "length",
        AnswerEnd::Broken => return None,
    };
    Some(json!({ "message": { "role": "assistant", "content": "" }, "done": true,
                 "done_reason": reason }))
}
