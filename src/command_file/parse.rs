//! Parses the text of a command file; errors have line numbers.

mod flags;

use super::settings;
use super::{CommandFile, FILE_BYTES_MAX, FileError, ResponseType, Role, Text, Warning};
use crate::support::nearest::nearest;
use crate::yaml::{Kind, Node};
use std::path::Path;

/// Keys that have a meaning in pinocchio or glazed and none here, such as its layers and the place of
/// a command among others.
const IGNORED: [&str; 8] =
    ["additionalData", "layers", "layout", "metadata", "parents", "source", "tags", "type"];

/// Known keys.
const KEYS: [&str; 13] = [
    "name",
    "short",
    "long",
    "flags",
    "arguments",
    "system-prompt",
    "prompt",
    "messages",
    "messages-template",
    "response-type",
    "schema",
    "settings",
    "extensions",
];

/// Unknown keys that are reported one by one.
const WARNINGS_MAX: usize = 20;

/// The error for a file larger than [`FILE_BYTES_MAX`].
pub(super) const TOO_LARGE: &str = "it has more than 1 MiB, and a command file may have that; put \
     long texts into files of their own and take them by a flag of type stringFromFile";

impl CommandFile {
    /// Reads a command file. `path` is for messages, and for the name if the file has none.
    ///
    /// # Errors
    /// If the text is no YAML, or not what a command file may hold; names the file and the line.
    pub fn parse(path: &Path, text: &str) -> Result<Self, FileError> {
        FileReader { path, warnings: Vec::new() }.file(text)
    }
}

/// A file that says nothing.
fn empty(path: &Path) -> CommandFile {
    let stem = path.file_stem().map(|stem| stem.to_string_lossy().into_owned());
    CommandFile { path: path.to_owned(), name: stem.unwrap_or_default(), ..Default::default() }
}

/// The line of a fault, and its description.
pub(super) type FileFault = (u32, String);

struct FileReader<'a> {
    path: &'a Path,
    warnings: Vec<Warning>,
}

impl FileReader<'_> {
    fn file(mut self, text: &str) -> Result<CommandFile, FileError> {
        let path = self.path;
        let error = |line, message| FileError { path: path.to_owned(), line, message };
        if text.len() > FILE_BYTES_MAX {
            return Err(error(None, TOO_LARGE.to_owned()));
        }
        let document = Node::parse(text)
            .map_err(|fault| error(fault.line, format!("it {}", fault.predicate())))?;
        let Some(entries) = document.map() else {
            let message = format!("it holds {}, and a command file is a map", document.what());
            return Err(error(Some(document.line), message));
        };
        let read = self.command(entries);
        read.map_err(|(line, message)| {
            let message = self.with_warnings(message);
            error(Some(line).filter(|line| *line > 0), message)
        })
    }

    fn command(&mut self, entries: &[(Node, Node)]) -> Result<CommandFile, FileFault> {
        let mut file = empty(self.path);
        // Checked first, as flags and arguments have their own errors.
        if let Some((_, other)) = entries.iter().find(|(key, _)| key.text() == Some("aliasFor")) {
            return Err(alias(other));
        }
        let (mut response, mut are_templates) = (None, None);
        for (key, value) in entries {
            match key.text() {
                Some("response-type") => response = Some((value.line, response_type(value)?)),
                Some(key @ "messages-template") => are_templates = Some(truth(value, key)?),
                Some(_) | None => self.entry(key, value, &mut file)?,
            }
        }
        flags::check(&file)?;
        check_texts(&file)?;
        match are_templates {
            Some(are_templates) => {
                file.messages.iter_mut().for_each(|(_, text)| text.is_template = are_templates);
            }
            None => self.warn_of_literal_history(&file),
        }
        file.response = answer(response, file.schema.is_some())?;
        file.warnings = std::mem::take(&mut self.warnings);
        Ok(file)
    }

    fn entry(&mut self, key: &Node, value: &Node, file: &mut CommandFile) -> Result<(), FileFault> {
        let name = key.text().unwrap_or_default();
        match name {
            "name" => {
                let text = text(value, name)?;
                if !text.trim().is_empty() {
                    file.name = text;
                }
            }
            "short" => file.short = text(value, name)?,
            "long" => file.long = text(value, name)?,
            "flags" => file.flags = self.flags(value, name)?,
            "arguments" => file.arguments = self.flags(value, name)?,
            "system-prompt" => file.system_prompt = template(value, name)?,
            "prompt" => file.prompt = template(value, name)?,
            "messages" => file.messages = messages(value)?,
            "schema" => {
                file.schema = schema(value)?;
                file.schema_line = key.line;
            }
            "settings" => settings::own(value, file)?,
            "factories" => {
                for (line, message) in settings::of_pinocchio(value, file)? {
                    let path = self.path.to_owned();
                    self.warnings.push(Warning { path, line, message });
                }
            }
            "extensions" => file.extensions = texts(value, name)?,
            _ if IGNORED.contains(&name) => {}
            _ => self.unknown(key, &KEYS),
        }
        Ok(())
    }

    /// Warns about an earlier message that looks like a template but is sent as it is written.
    fn warn_of_literal_history(&mut self, file: &CommandFile) {
        let names: Vec<String> = file
            .flags
            .iter()
            .chain(&file.arguments)
            .map(|flag| format!(".{}", flag.name))
            .collect();
        let (history, _) = file.history();
        let is_meant = |text: &&Text| {
            !text.is_template
                && text.template.contains("{{")
                && names.iter().any(|name| text.template.contains(name))
        };
        if let Some(text) = history.iter().map(|(_, text)| text).find(is_meant) {
            let (line, _) = text.layout.place(None);
            let message = format!(
                "`{}` looks like a template and is sent as it is written; add \
                 `messages-template: true` to have all messages rendered, or `false` to have none",
                text.key
            );
            self.warnings.push(Warning { path: self.path.to_owned(), line, message });
        }
    }

    /// `message` with the parts of the file that are ignored: one of them may be the misspelt name of what is
    /// missing.
    fn with_warnings(&self, message: String) -> String {
        let warnings = self.warnings.iter();
        let warnings =
            warnings.map(|Warning { line, message, .. }| format!("line {line}: {message}"));
        [message].into_iter().chain(warnings).collect::<Vec<_>>().join("; ")
    }

    /// Warns about an unknown key, with a similar known one.
    fn unknown(&mut self, key: &Node, known: &[&str]) {
        let name = key.text().unwrap_or("this key");
        let plain = |name: &str| name.replace(['-', '_'], "").to_lowercase();
        let is_meant = |known: &&&str| {
            plain(known) == plain(name)
                || name == "description" && ["short", "help"].contains(*known)
        };
        let meant = known.iter().find(is_meant).copied();
        let meant = meant.or_else(|| nearest(name, known.iter().copied()));
        let hint = match meant {
            Some(meant) => format!("; did you mean `{meant}`?"),
            None => format!("; known keys are {}", known.join(", ")),
        };
        let message = match self.warnings.len() {
            0..WARNINGS_MAX => format!("the key `{name}` is unknown and ignored{hint}"),
            WARNINGS_MAX => "more keys from here on are unknown and ignored".to_owned(),
            _ => return,
        };
        self.warnings.push(Warning { path: self.path.to_owned(), line: key.line, message });
    }
}

fn truth(node: &Node, key: &str) -> Result<bool, FileFault> {
    node.truth()
        .ok_or_else(|| (node.line, format!("`{key}` must be true or false, not {}", node.what())))
}

fn text(node: &Node, key: &str) -> Result<String, FileFault> {
    let text = node.text().map(str::to_owned);
    // `prompt: {{ .x }}` is a nested map in YAML.
    let hint = "; put a text that begins with `{` or `[` in quotes";
    text.ok_or_else(|| (node.line, format!("`{key}` must be a string, not {}{hint}", node.what())))
}

fn list<'a>(node: &'a Node, key: &str) -> Result<&'a [Node], FileFault> {
    let list = node.list();
    list.ok_or_else(|| (node.line, format!("`{key}` must be a list, not {}", node.what())))
}

fn texts(node: &Node, key: &str) -> Result<Vec<String>, FileFault> {
    list(node, key)?.iter().map(|item| text(item, key)).collect()
}

/// A template; a blank one counts as none, as in pinocchio.
fn template(node: &Node, key: &str) -> Result<Option<Text>, FileFault> {
    let template = text(node, key)?;
    let text = Text { template, is_template: true, key: key.to_owned(), layout: node.layout };
    Ok(Some(text).filter(|text| !text.template.trim().is_empty()))
}

/// Earlier messages. Strings are Pinocchio's, which renders them as templates; maps have the role of their author,
/// so what they hold was said before and may be anything.
fn messages(node: &Node) -> Result<Vec<(Role, Text)>, FileFault> {
    let mut messages = Vec::new();
    for (number, item) in list(node, "messages")?.iter().enumerate() {
        let key = format!("messages[{number}]");
        let (role, text) = if let Kind::Map(_) = item.kind {
            let role = item.get("role").map_or(Ok(Role::User), |node| role(node, &key))?;
            let Some(text) = item.get("text").or_else(|| item.get("content")) else {
                return Err((item.line, format!("`{key}` has no `text`; write the message there")));
            };
            (role, template(text, &key)?.map(|text| Text { is_template: false, ..text }))
        } else {
            (Role::User, template(item, &key)?)
        };
        messages.extend(text.map(|text| (role, text)));
    }
    Ok(messages)
}

fn role(node: &Node, key: &str) -> Result<Role, FileFault> {
    match node.text() {
        Some("system") => Ok(Role::System),
        Some("user") => Ok(Role::User),
        Some("assistant") => Ok(Role::Assistant),
        _ => Err((node.line, format!("`role` of `{key}` must be system, user or assistant"))),
    }
}

fn response_type(node: &Node) -> Result<ResponseType, FileFault> {
    match node.text() {
        Some("text" | "") => Ok(ResponseType::Text),
        Some("json") => Ok(ResponseType::Json),
        Some("jsonl") => Ok(ResponseType::Jsonl),
        other => {
            let found = other.map_or(node.what().to_owned(), |text| format!("`{text}`"));
            Err((node.line, format!("`response-type` is {found}; it can be text, json or jsonl")))
        }
    }
}

/// The form of the answer: the one that the file names, with its line, or the one that its schema implies.
fn answer(named: Option<(u32, ResponseType)>, has_schema: bool) -> Result<ResponseType, FileFault> {
    match named {
        Some((line, ResponseType::Text)) if has_schema => {
            let message = "`schema` describes an answer in JSON, but `response-type` is text; \
                 make it json or jsonl, or leave the schema out";
            Err((line, message.to_owned()))
        }
        Some((_, response)) => Ok(response),
        None if has_schema => Ok(ResponseType::Json),
        None => Ok(ResponseType::Text),
    }
}

fn schema(node: &Node) -> Result<Option<serde_json::Value>, FileFault> {
    if node.is_nothing() {
        return Ok(None);
    }
    if matches!(node.kind, Kind::Map(_) | Kind::Bool(_)) {
        return Ok(Some(node.json()));
    }
    Err((node.line, format!("`schema` is {}; a JSON Schema is a map", node.what())))
}

fn alias(node: &Node) -> FileFault {
    let words: Vec<&str> = match node.list() {
        Some(words) => words.iter().filter_map(Node::text).collect(),
        None => node.text().into_iter().collect(),
    };
    let message = format!(
        "this file is an alias, with flags for the command `{}` and no prompt of its own; \
         run that command's file with these flags",
        words.join(" ")
    );
    (node.line, message)
}

/// There is something to ask.
fn check_texts(file: &CommandFile) -> Result<(), FileFault> {
    if file.prompt.is_none() && file.messages.is_empty() && file.system_prompt.is_none() {
        let message = "it has no `prompt`, no `messages` and no `system-prompt`, so there is nothing to \
             send; add a `prompt`";
        return Err((0, message.to_owned()));
    }
    Ok(())
}
