//! The body of a provider request: Anthropic's "Create a Message"
//! (<https://platform.claude.com/docs/en/api/messages>), streamed.

use super::generation::{check_limit, generation, native};
use super::media::{Media, media};
use super::provider_data::DataBlock;
use super::wire::{Block, Body, CacheControl, ResultContent, Role, WireMessage, WireTool};
use crate::conversation::event::{ProviderData, ToolCall};
use crate::conversation::tool::ToolSpec;
use crate::conversation::transcript::Message;
use crate::engine::CallSpec;
use crate::engine::provider::interface::Refused;
use crate::engine::provider::parameters::parameters;
use crate::engine::provider::tool::{arguments, wire_id_word, wire_name};
use crate::engine::provider::{provider_data, schema};
use crate::protocol::attachment::Attachment;
use serde_json::value::RawValue;
use std::borrow::Cow;

#[cfg(test)]
mod tests;

/// Messages of the user at whose end the cache is marked: the last, for the next call to read, and
/// the one before, whose mark was set by the call before. At most four marks are allowed.
const MARKED_MESSAGES: usize = 2;

/// Longest name of a parameter of a tool, in bytes.
const PARAMETER_BYTES_MAX: usize = 64;

/// Characters of such a name that a warning shows.
const SHOWN_CHARS_MAX: usize = 100;

/// The result of a tool that failed and said nothing.
const NO_ERROR_TEXT: &str = "The tool failed without a message.";

/// The request, as JSON.
///
/// # Errors
/// If it holds an attachment that the provider does not take, or can't be written, which is a defect.
pub(super) fn body(
    model: &str,
    spec: &CallSpec,
    messages: &[Message<'_>],
) -> Result<Vec<u8>, Refused> {
    let schema = schema::instruction(spec, native(model, spec).is_some());
    let schema = schema.map(|text| Block::Text { text: text.into(), cache_control: None });
    let mut wire = wire_messages(model, messages)?;
    trim_end(&mut wire);
    check_limit(model, &spec.settings)?;
    let mut body = Body {
        model,
        generation: generation(model, spec, may_think(&wire)),
        stream: true,
        tools: spec.tools.iter().map(wire_tool).collect(),
        system: messages.iter().filter_map(system).chain(schema).collect(),
        messages: wire,
    };
    mark(&mut body);
    serde_json::to_vec(&body).map_err(Refused::Unwritable)
}

/// Why the provider would refuse each request with `tool`, and what to do; `None` if it takes the tool. Names of
/// parameters have to match `^[a-zA-Z0-9_.-]{1,64}$`; the provider does not check those of inner objects.
pub(super) fn tool_fault(tool: &ToolSpec) -> Option<String> {
    let is_fine = |name: &str| {
        let is_char = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-');
        (1..=PARAMETER_BYTES_MAX).contains(&name.len()) && name.bytes().all(is_char)
    };
    let schema = parameters(&tool.input_schema);
    let properties = schema.get("properties")?.as_object()?;
    let name = properties.keys().find(|name| !is_fine(name))?;
    let shown: String = name.chars().take(SHOWN_CHARS_MAX).collect();
    Some(format!(
        "the name of its parameter {shown:?} is not 1 to {PARAMETER_BYTES_MAX} letters, digits, `_`, \
         `.` and `-`: rename it"
    ))
}

fn wire_tool(spec: &ToolSpec) -> WireTool<'_> {
    WireTool {
        name: &spec.name,
        description: &spec.description,
        input_schema: parameters(&spec.input_schema),
        cache_control: None,
    }
}

/// Instructions stand apart from the messages, wherever they were.
fn system<'a>(message: &'a Message<'_>) -> Option<Block<'a>> {
    match message {
        Message::System(text) => text_block((*text).into()),
        Message::User { .. } | Message::Assistant { .. } | Message::Tool { .. } => None,
    }
}

fn wire_messages<'a>(
    model: &str,
    messages: &'a [Message<'_>],
) -> Result<Vec<WireMessage<'a>>, Refused> {
    let mut wire: Vec<WireMessage<'a>> = Vec::new();
    for message in messages {
        let (role, content) = match message {
            Message::System(_) => continue,
            Message::User { text, attachments } => (Role::User, user(text, attachments)?),
            Message::Assistant { text, calls, provider_data } => {
                let answer = answer(model, text, calls, *provider_data);
                (Role::Assistant, answer.map_err(Refused::Unwritable)?)
            }
            Message::Tool { tool, result, images, is_error } => {
                (Role::User, vec![tool_result(tool, (result, images), *is_error)?])
            }
        };
        match wire.last_mut() {
            // All results of an answer, and what the user adds to them, are one message, and so are
            // messages with only instructions between them.
            Some(last) if last.role == role => last.content.extend(content),
            Some(_) | None if content.is_empty() => {}
            Some(_) | None => wire.push(WireMessage { role, content }),
        }
    }
    Ok(wire)
}

/// The provider refuses white space at the end of an answer that stands last.
fn trim_end(messages: &mut [WireMessage<'_>]) {
    if let Some(WireMessage { role: Role::Assistant, content }) = messages.last_mut()
        && let Some(Block::Text { text, .. }) = content.last_mut()
    {
        *text = text.trim_end().to_owned().into();
    }
}

/// The provider refuses a budget for reasoning if the round of tools whose results stand last has begun without
/// reasoning, as with an answer of a model that does not reason. It also refuses a budget if the
/// model is to continue an answer that stands last.
///
/// All answers from a prompt to the last results are one turn, which keeps its budget
/// (<https://platform.claude.com/docs/en/build-with-claude/extended-thinking>): only its first answer begins with
/// reasoning, and a change within it would cost the provider's cache of the messages.
fn may_think(messages: &[WireMessage<'_>]) -> bool {
    if messages.last().is_some_and(|last| last.role == Role::Assistant) {
        return false;
    }
    let (mut has_answers, mut rest) = (false, messages);
    while let [before @ .., answer, results] = rest
        && has_results(results)
    {
        // A prompt may stand beside the results before it, and is no message of its own.
        if answer.content.first().is_some_and(Block::is_reasoning) {
            return true;
        }
        (has_answers, rest) = (true, before);
    }
    !has_answers
}

fn has_results(message: &WireMessage<'_>) -> bool {
    message.content.iter().any(|block| matches!(block, Block::ToolResult { .. }))
}

/// A text, unless it is blank: the provider refuses those.
fn text_block(text: Cow<'_, str>) -> Option<Block<'_>> {
    (!text.trim().is_empty()).then_some(Block::Text { text, cache_control: None })
}

fn user<'a>(text: &'a str, attachments: &'a [Attachment]) -> Result<Vec<Block<'a>>, Refused> {
    let mut blocks = attachments.iter().map(attached).collect::<Result<Vec<_>, _>>()?;
    blocks.extend(text_block(text.into()));
    Ok(blocks)
}

fn attached(attachment: &Attachment) -> Result<Block<'_>, Refused> {
    let cache_control = None;
    Ok(match media(attachment)? {
        Media::Text(text) => Block::Text { text: text.into(), cache_control },
        Media::Image(source) => Block::Image { source, cache_control },
        Media::Document(source, title) => Block::Document { source, title, cache_control },
    })
}

/// A result. Errors have no images: the provider takes only texts in them.
fn tool_result<'a>(
    tool: &'a ToolCall,
    (result, images): (&'a str, &'a [Attachment]),
    is_error: bool,
) -> Result<Block<'a>, Refused> {
    let content = if !images.is_empty() {
        let images = images.iter().map(attached).collect::<Result<Vec<_>, _>>()?;
        ResultContent::Blocks(text_block(result.into()).into_iter().chain(images).collect())
    } else if is_error && result.trim().is_empty() {
        // The provider refuses an error without words.
        ResultContent::Text(NO_ERROR_TEXT)
    } else {
        ResultContent::Text(result)
    };
    let tool_use_id = wire_id_word(&tool.id.0);
    Ok(Block::ToolResult { tool_use_id, content, is_error, cache_control: None })
}

/// An answer of the model, with its reasoning in the place where it was.
fn answer<'a>(
    model: &str,
    text: &'a str,
    calls: &[(&'a ToolCall, &'a str)],
    provider_data: Option<&ProviderData>,
) -> Result<Vec<Block<'a>>, serde_json::Error> {
    let mut blocks = Vec::new();
    let (mut text, mut calls) = (text, calls.iter());
    for data in provider_data::decode(provider_data, model, calls.len()) {
        match data {
            DataBlock::Thinking { thinking, signature } => {
                blocks.push(Block::Thinking { thinking, signature });
            }
            DataBlock::RedactedThinking { data } => blocks.push(Block::RedactedThinking { data }),
            DataBlock::Text { bytes } => {
                // A blank text is left out of the transcript.
                if let Some((piece, rest)) = text.split_at_checked(bytes) {
                    blocks.extend(text_block(piece.into()));
                    text = rest;
                }
            }
            DataBlock::ToolUse => {
                for (tool, input) in calls.by_ref().take(1) {
                    blocks.push(tool_use(tool, input)?);
                }
            }
        }
    }
    // Without provider data, the whole answer; with it, what was added to the answer later.
    blocks.extend(text_block(text.into()));
    for (tool, input) in calls {
        blocks.push(tool_use(tool, input)?);
    }
    // The provider refuses an answer that ends with its reasoning.
    while blocks.last().is_some_and(Block::is_reasoning) {
        blocks.pop();
    }
    Ok(blocks)
}

fn tool_use<'a>(tool: &'a ToolCall, input: &str) -> Result<Block<'a>, serde_json::Error> {
    let input = serde_json::from_str::<Box<RawValue>>(arguments(input).trim())?;
    Ok(Block::ToolUse { id: wire_id_word(&tool.id.0), name: wire_name(&tool.name), input })
}

/// Marks what later calls begin with: the tools and the system prompt, and the messages so far.
fn mark(body: &mut Body<'_>) {
    let mark = Some(CacheControl::Ephemeral);
    match (body.system.last_mut(), body.tools.last_mut()) {
        (Some(block), _) => block.mark(),
        (None, Some(tool)) => tool.cache_control = mark,
        (None, None) => {}
    }
    let by_user = body.messages.iter_mut().rev().filter(|message| message.role == Role::User);
    for message in by_user.take(MARKED_MESSAGES) {
        if let Some(block) = message.content.last_mut() {
            block.mark();
        }
    }
}
