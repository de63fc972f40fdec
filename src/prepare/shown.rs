//! What would be asked, for people or programs to look at.

use crate::cli::Mode;
use crate::command::{Message, Rendered};
use crate::json;
use crate::terminal::{Escapes, visible};
use anyhow::Result;
use serde_json::json;

/// What would be asked: the prompt alone as text, everything in the other outputs. On a terminal,
/// if `is_shown`, what could control it is made visible.
pub(super) fn shown(rendered: &Rendered, mode: Mode, is_shown: bool) -> Result<String> {
    let Rendered { system, messages, prompt } = rendered;
    let messages = || -> Vec<_> {
        let shown =
            |message: &Message| json!({ "role": message.role.as_str(), "text": message.text });
        messages.iter().map(shown).collect()
    };
    let whole = || json!({ "system": system, "messages": messages(), "prompt": prompt });
    let mut text = match mode {
        Mode::Yaml => serde_saphyr::to_string(&whole())?,
        Mode::Text => prompt.clone(),
        Mode::Json
        | Mode::Objects { .. }
        | Mode::OneShot
        | Mode::Server
        | Mode::Frames
        | Mode::JsonStream => {
            let mut line = Vec::new();
            json::write_line(&whole(), &mut line)?;
            String::from_utf8(line)?
        }
    };
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    let escapes = match mode {
        Mode::Text | Mode::Yaml => Escapes::Text,
        Mode::Json
        | Mode::Objects { .. }
        | Mode::OneShot
        | Mode::Server
        | Mode::Frames
        | Mode::JsonStream => Escapes::Json,
    };
    Ok(if is_shown { visible(&text, escapes) } else { text })
}
