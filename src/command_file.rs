//! Command files: a prompt with its own flags, in YAML.
//!
//! The format is that of go-go-golems/pinocchio (`pkg/cmds/loader.go`) with the flags of
//! go-go-golems/glazed (`pkg/cmds/fields`), so that existing files run unchanged. Added here are
//! `response-type`, `schema` and `extensions`. JSON is YAML too.
//!
//! A file is read ([`CommandFile::load`], [`CommandFile::parse`]), its flags join the command line
//! ([`CommandFile::clap_args`]), what was typed becomes values ([`CommandFile::values`]), and these
//! become the prompt ([`CommandFile::render`]). Only `load` and `values` do I/O, through
//! `outside`.

mod args;
mod contents;
mod cost;
mod date;
mod default;
mod error;
mod flag;
mod outside;
mod parse;
mod records;
mod render;
mod settings;
mod table;
#[cfg(test)]
mod tests;
mod values;

pub use crate::extract::ResponseType;
pub use error::{FileError, FlagError, RenderError, Warning};
pub use flag::{Flag, Type};
pub use outside::{Outside, VALUE_BYTES_MAX, is_stdin};
pub use render::{FileMessage, Rendered, Role};
pub(crate) use values::{separated, truth};

use std::path::PathBuf;

/// Largest command file, in bytes.
pub const FILE_BYTES_MAX: usize = 1024 * 1024;

/// A command file.
#[derive(Clone, Debug, Default)]
pub struct CommandFile {
    /// The path of the file as it was given; for errors.
    pub path: PathBuf,
    /// The name of the command; the stem of the file's name if the file sets none.
    pub name: String,
    /// A one-line description; may be empty.
    pub short: String,
    /// A longer description; may be empty.
    pub long: String,
    /// Flags, in the order of the file.
    pub flags: Vec<Flag>,
    /// Positional arguments, in the order of the file.
    pub arguments: Vec<Flag>,
    /// The system prompt.
    pub system_prompt: Option<Text>,
    /// The prompt.
    pub prompt: Option<Text>,
    /// Earlier messages; in a file without a prompt, the last one is the prompt.
    pub messages: Vec<(Role, Text)>,
    /// The expected form of the answer.
    pub response: ResponseType,
    /// The JSON Schema that an answer in JSON must match.
    pub schema: Option<serde_json::Value>,
    /// The line in which the schema begins, from 1; 0 without one.
    pub schema_line: u32,
    /// Names of the extensions that the file uses.
    pub extensions: Vec<String>,
    /// The model that the file is written for.
    pub model: Option<String>,
    /// The engine that the file is written for, by its name on the command line.
    pub engine: Option<String>,
    /// Settings of the calls, by their names, checked.
    pub settings: Vec<(String, serde_json::Value)>,
    /// What is ignored in the file.
    pub warnings: Vec<Warning>,
}

/// A text in a command file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Text {
    /// The text as it is in the file.
    pub template: String,
    /// Whether it is rendered as a template. A message may be sent as it is written, unless it is the prompt.
    pub is_template: bool,
    /// Its place in the file, for messages: `prompt`, `messages[2]`.
    pub(crate) key: String,
    /// Where its lines are in the file.
    pub(crate) layout: crate::yaml::Layout,
}
