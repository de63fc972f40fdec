//! Templates and values → what the model is told. Template errors get the line of the file.

use super::yaml::Layout;
use super::{CommandFile, RenderError, Text};
use crate::template::{Data, Missing, Template, TemplateError, Types, Values};
use jiff::Zoned;
use serde_json::Value;

/// What the model is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rendered {
    /// How it is to behave.
    pub system: Option<String>,
    /// What was said before.
    pub messages: Vec<FileMessage>,
    /// What the person says. Of a file with messages and no prompt: the last of them, if it is the
    /// person's. Empty if nothing is asked.
    pub prompt: String,
}

/// Something that was said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileMessage {
    /// By whom.
    pub role: Role,
    /// What.
    pub text: String,
}

/// Who says something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Whoever set up the conversation.
    System,
    /// The person.
    User,
    /// The model.
    Assistant,
}

impl Role {
    /// Its name, as command files have it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::User => "user",
            Self::Assistant => "assistant",
        }
    }
}

impl CommandFile {
    /// What the model is told, given these values and the time. What is blank in the end is left
    /// out.
    ///
    /// Where a missing value is refused, one that a flag declares may still be asked for by `if`.
    ///
    /// # Errors
    /// If a template can't be run with these values.
    pub fn render(
        &self,
        mut values: Values,
        now: &Zoned,
        missing: Missing,
    ) -> Result<Rendered, RenderError> {
        if missing == Missing::Refused {
            for flag in self.flags.iter().chain(&self.arguments) {
                values.entry(flag.name.clone()).or_insert(Data::Json(Value::Null));
            }
        }
        let names = values.keys().map(|name| (name.clone(), Value::Null)).collect();
        let types = self.template_types();
        let rendering = Rendering { file: self, names, values, types, now, missing };
        let system = self.system_prompt.as_ref().map(|text| rendering.text(text)).transpose()?;
        let (history, asked) = self.history();
        let mut messages = Vec::with_capacity(history.len());
        for (role, text) in history {
            let text = match self.history_is_template {
                true => rendering.text(text)?,
                false => text.template.clone(),
            };
            messages.push(FileMessage { role: *role, text });
        }
        messages.retain(|message| !message.text.trim().is_empty());
        let prompt = asked.map(|text| rendering.text(text)).transpose()?;
        let system = system.filter(|system| !system.trim().is_empty());
        Ok(Rendered { system, messages, prompt: prompt.unwrap_or_default() })
    }

    /// What was said before, and what is asked: the prompt, or the last of the messages if it is the
    /// person's.
    pub(super) fn history(&self) -> (&[(Role, Text)], Option<&Text>) {
        match (&self.prompt, self.messages.split_last()) {
            (None, Some(((Role::User, asked), history))) => (history, Some(asked)),
            (prompt, _) => (&self.messages, prompt.as_ref()),
        }
    }
}

/// What the templates of a file are rendered with.
struct Rendering<'a> {
    file: &'a CommandFile,
    /// The names of the values, each with nothing; an error may show that one of them was meant.
    names: Value,
    values: Values,
    types: Types,
    now: &'a Zoned,
    missing: Missing,
}

impl Rendering<'_> {
    fn text(&self, text: &Text) -> Result<String, RenderError> {
        let rendered =
            Template::parse(&text.key, &text.template, &self.names).and_then(|template| {
                template.render_values(&self.values, &self.types, self.now, self.missing)
            });
        rendered.map_err(|TemplateError { line, message }| {
            let (line, is_exact) = text.layout.place(line);
            let place = if is_exact { "" } else { ", which begins in this line" };
            let message = format!("the template in `{}`{place}: {message}", text.key);
            RenderError { path: self.file.path.clone(), line, message }
        })
    }
}

impl Layout {
    /// The line of the file that holds this line of the text, and whether it surely does.
    pub(super) fn place(self, line: Option<u32>) -> (u32, bool) {
        match (self, line) {
            (Self::Lines(first), Some(line)) => {
                (first.saturating_add(line).saturating_sub(1), true)
            }
            (Self::One(first), _) => (first, true),
            (Self::Lines(first) | Self::Folded(first), _) => (first, false),
        }
    }
}
