//! Renders the templates of a command file with values. Template errors refer to lines of the file.

use super::flag::Type;
use super::{CommandFile, RenderError, Text};
use crate::support::named::named_enum;
use crate::support::secret;
use crate::template::{Data, Missing, Template, TemplateError, Types, Values};
use crate::yaml::Layout;
use jiff::Zoned;
use serde_json::Value;

/// The text of Go's templates for a missing value.
const NO_VALUE: &str = "<no value>";

/// The rendered messages of a command file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rendered {
    /// The system prompt.
    pub system: Option<String>,
    /// Earlier messages.
    pub messages: Vec<FileMessage>,
    /// The prompt. Of a file with messages and no prompt: the last message, if its role is user.
    /// Empty if there is none.
    pub prompt: String,
}

/// A message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileMessage {
    /// Who wrote it.
    pub role: Role,
    /// The text.
    pub text: String,
}

named_enum! {
    /// The author of a message.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Role {
        /// Instructions to the model.
        System = "system",
        /// The user.
        User = "user",
        /// The model.
        Assistant = "assistant",
    }
}

impl CommandFile {
    /// Renders the messages with these values and this time. A message that comes out blank is left
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
        let (history, last) = self.history();
        let mut messages = Vec::with_capacity(history.len());
        for (role, text) in history {
            let text = match text.is_template {
                true => rendering.text(text)?,
                false => text.template.clone(),
            };
            messages.push(FileMessage { role: *role, text });
        }
        messages.retain(|message| !message.text.trim().is_empty());
        let prompt = last.map(|text| rendering.text(text)).transpose()?;
        let system = system.filter(|system| !system.trim().is_empty());
        Ok(Rendered { system, messages, prompt: prompt.unwrap_or_default() })
    }

    /// The file for a run that has a system prompt of its own.
    pub(crate) fn without_system_prompt(&self) -> Self {
        Self { system_prompt: None, ..self.clone() }
    }

    /// A warning for each kind of message in which something has no value.
    pub(crate) fn missing_values(&self, rendered: &Rendered) -> Vec<String> {
        let Rendered { system, messages, prompt } = rendered;
        let has = |text: &str| text.contains(NO_VALUE);
        let in_messages = messages.iter().any(|it| has(&it.text) && !self.says_literally(&it.text));
        let parts = [
            ("the system prompt", system.as_deref().is_some_and(has)),
            ("an earlier message", in_messages),
            ("the prompt", has(prompt)),
        ];
        let parts = parts.into_iter().filter(|(_, is_missing)| *is_missing);
        let warning = |(part, _): (&str, bool)| {
            format!(
                "{part} contains {NO_VALUE}: a flag without a value, or a name that is not a flag"
            )
        };
        parts.map(warning).collect()
    }

    /// Whether an earlier message is sent as it is written, and is this.
    fn says_literally(&self, message: &str) -> bool {
        let (history, _) = self.history();
        history.iter().any(|(_, text)| !text.is_template && text.template == message)
    }

    /// Separates the earlier messages from the prompt: `prompt`, or the last message if its role is
    /// user.
    pub(super) fn history(&self) -> (&[(Role, Text)], Option<&Text>) {
        match (&self.prompt, self.messages.split_last()) {
            (None, Some(((Role::User, last), history))) => (history, Some(last)),
            (prompt, _) => (&self.messages, prompt.as_ref()),
        }
    }
}

/// The data that the templates of a file are rendered with.
struct Rendering<'a> {
    file: &'a CommandFile,
    /// The names of all values, each null; an error may suggest one of them.
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
            let message = secret::without_values(&message, self.secrets());
            let message = format!("the template in `{}`{place}: {message}", text.key);
            RenderError { path: self.file.path.clone(), line, message }
        })
    }

    /// The values that errors must not show.
    fn secrets(&self) -> impl Iterator<Item = &str> {
        let flags = self.file.flags.iter().chain(&self.file.arguments);
        let secret = flags.filter(|flag| flag.kind == Type::Secret);
        secret.filter_map(|flag| match self.values.get(&flag.name) {
            Some(Data::Json(value)) => value.as_str(),
            Some(Data::Records(_) | Data::Yaml(_)) | None => None,
        })
    }
}

impl Layout {
    /// The line of the file that holds this line of the text, and whether that is certain.
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
