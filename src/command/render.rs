//! Templates and values → what the model is told. Template errors get the line of the file.

use super::yaml::Layout;
use super::{CommandFile, RenderError, Text};
use crate::template::{Template, TemplateError};
use jiff::Zoned;
use serde_json::{Map, Value};

/// What the model is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rendered {
    /// How it is to behave.
    pub system: Option<String>,
    /// What was said before.
    pub messages: Vec<Message>,
    /// What the person says. Of a file with messages: the last of them, if it is the person's. Empty
    /// if there is nothing but a system prompt.
    pub prompt: String,
}

/// Something that was said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
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
    pub fn render(
        &self,
        values: &Map<String, Value>,
        now: &Zoned,
    ) -> Result<Rendered, RenderError> {
        let values = Value::Object(values.clone());
        let text = |text: &Text| self.text(text, &values, now);
        let system = self.system_prompt.as_ref().map(text).transpose()?;
        let mut messages = Vec::with_capacity(self.messages.len());
        for (role, template) in &self.messages {
            messages.push(Message { role: *role, text: text(template)? });
        }
        messages.retain(|message| !message.text.trim().is_empty());
        let prompt = match &self.prompt {
            Some(prompt) => text(prompt)?,
            None => messages
                .pop_if(|last| last.role == Role::User)
                .map(|last| last.text)
                .unwrap_or_default(),
        };
        let system = system.filter(|system| !system.trim().is_empty());
        Ok(Rendered { system, messages, prompt })
    }

    fn text(&self, text: &Text, values: &Value, now: &Zoned) -> Result<String, RenderError> {
        let rendered = Template::parse(&text.key, &text.template, values)
            .and_then(|template| template.render(values, &self.template_types(), now));
        rendered.map_err(|TemplateError { line, message }| {
            let (line, is_exact) = text.layout.place(line);
            let place = if is_exact { "" } else { ", which begins in this line" };
            let message = format!("the template in `{}`{place}: {message}", text.key);
            RenderError { path: self.path.clone(), line, message }
        })
    }
}

impl Layout {
    /// The line of the file that holds this line of the text, and whether it surely does.
    fn place(self, line: Option<u32>) -> (u32, bool) {
        match (self, line) {
            (Self::Lines(first), Some(line)) => {
                (first.saturating_add(line).saturating_sub(1), true)
            }
            (Self::One(first), _) => (first, true),
            (Self::Lines(first) | Self::Folded(first), _) => (first, false),
        }
    }
}
