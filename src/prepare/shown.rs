//! What would be asked, for people or programs to look at.

use crate::cli::Mode;
use crate::command::{Message, Rendered, Role};
use crate::json;
use anyhow::Result;
use serde_json::json;

/// What would be asked.
pub(super) fn shown(rendered: &Rendered, mode: Mode) -> Result<String> {
    let Rendered { system, messages, prompt } = rendered;
    let messages = || -> Vec<_> {
        let shown =
            |message: &Message| json!({ "role": message.role.as_str(), "text": message.text });
        messages.iter().map(shown).collect()
    };
    let whole = || json!({ "system": system, "messages": messages(), "prompt": prompt });
    let mut text = match mode {
        Mode::Yaml => serde_saphyr::to_string(&whole())?,
        Mode::Text => for_people(rendered),
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
    Ok(text)
}

/// The prompt, and if there is more than that, each message after a line with its role.
fn for_people(Rendered { system, messages, prompt }: &Rendered) -> String {
    let system = system.iter().map(|text| (Role::System, text));
    let messages = messages.iter().map(|message| (message.role, &message.text));
    let asked = (!prompt.trim().is_empty()).then_some((Role::User, prompt));
    let parts: Vec<_> = system.chain(messages).chain(asked).collect();
    if let [] | [(Role::User, _)] = parts[..] {
        return prompt.clone();
    }
    let part = |(role, text): &(Role, &String)| {
        format!("[{}]\n{}\n", role.as_str(), text.trim_end_matches('\n'))
    };
    parts.iter().map(part).collect::<Vec<_>>().join("\n")
}
