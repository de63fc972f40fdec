//! Prints the request of a run without running it.

use crate::cli::Mode;
use crate::cli::config;
use crate::command_file::{FileMessage, Rendered, Role};
use crate::engine::ResponseSchema;
use crate::host::CodedWarning;
use crate::protocol::attachment::Attachment;
use crate::session::{ExitCode, Uptime};
use crate::support::terminal::visible;
use anyhow::Result;
use serde_json::{Value, json};
use std::sync::Arc;

/// The run whose prompt is printed.
pub(super) struct Unasked<'a> {
    pub(super) command: &'static str,
    pub(super) mode: Mode,
    /// The typed request id; a run without one has a generated id.
    pub(super) session_id: Option<&'a str>,
    /// The JSON Schema that the provider, or the model, is sent with the prompt.
    pub(super) schema: Option<Arc<ResponseSchema>>,
    /// Warnings about the prompt.
    pub(super) warnings: Vec<CodedWarning>,
    /// Standard output is a terminal: control characters are escaped.
    pub(super) is_shown: bool,
}

/// Prints the request in the output format of this mode.
pub(super) fn shown(
    rendered: &Rendered,
    attachments: &[Attachment],
    unasked: &Unasked,
) -> Result<String> {
    let Unasked { command, mode, session_id, schema, warnings, is_shown } = unasked;
    let schema = schema.as_ref().map(|schema| Value::Object(schema.schema.clone()));
    let generated = || format!("session-{}", uuid::Uuid::new_v4());
    let session = session_id.map_or_else(generated, str::to_owned);
    let mut format = config::format_of_prompt(command, *mode);
    let mut out = Vec::new();
    for warning in warnings {
        format.warn(Uptime::default(), warning, &mut out)?;
    }
    let text = for_people(rendered, attachments, schema.as_ref());
    format.prompt(&session, &text, &parts(rendered, attachments, schema)?, &mut out)?;
    format.end(Uptime::default(), ExitCode::Ok, &mut out)?;
    let out = String::from_utf8(out)?;
    Ok(if *is_shown { visible(&out, format.escapes()) } else { out })
}

fn parts(rendered: &Rendered, attachments: &[Attachment], schema: Option<Value>) -> Result<Value> {
    let Rendered { system, messages, prompt } = rendered;
    let message =
        |message: &FileMessage| json!({ "role": message.role.as_str(), "text": message.text });
    let messages: Vec<_> = messages.iter().map(message).collect();
    let mut parts = json!({ "messages": messages, "prompt": prompt, "system": system });
    if !attachments.is_empty() {
        let shown: Vec<_> = attachments.iter().map(|attachment| &attachment.shown).collect();
        parts["attachments"] = serde_json::to_value(shown)?;
    }
    if let Some(schema) = schema {
        parts["schema"] = schema;
    }
    Ok(parts)
}

/// The prompt alone, or if there is more, each message after a line with its role, then what is attached and
/// the schema of the answer.
fn for_people(
    Rendered { system, messages, prompt }: &Rendered,
    attachments: &[Attachment],
    schema: Option<&Value>,
) -> String {
    let system = system.iter().map(|text| (Role::System, text));
    let messages = messages.iter().map(|message| (message.role, &message.text));
    let last = (!prompt.trim().is_empty()).then_some((Role::User, prompt));
    let parts: Vec<_> = system.chain(messages).chain(last).collect();
    if let ([] | [(Role::User, _)], [], None) = (&parts[..], attachments, schema) {
        return prompt.clone();
    }
    let part = |(role, text): &(Role, &String)| {
        format!("[{}]\n{}\n", role.as_str(), text.trim_end_matches('\n'))
    };
    let attached = attachments.iter().map(|attachment| format!("[attached]\n{attachment}\n"));
    let schema = schema.map(|schema| format!("[schema]\n{schema}\n"));
    parts.iter().map(part).chain(attached).chain(schema).collect::<Vec<_>>().join("\n")
}
