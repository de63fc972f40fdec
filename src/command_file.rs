//! Command files: a prompt with flags of its own, in YAML.
//!
//! The format is that of go-go-golems/pinocchio (`pkg/cmds/loader.go`) with the flags of
//! go-go-golems/glazed (`pkg/cmds/fields`), so that people's files run unchanged. Ours are
//! `response-type`, `schema` and `extensions`. JSON is YAML too.
//!
//! A file is read ([`CommandFile::load`], [`CommandFile::parse`]), its flags join the command line
//! ([`CommandFile::clap_args`]), what was typed becomes values ([`CommandFile::values`]), and these
//! become the prompt ([`CommandFile::render`]). Only `load` and `values` touch the world, by `outside`.

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
mod table;
#[cfg(test)]
mod tests;
mod values;
mod yaml;

pub use crate::extract::ResponseType;
pub use error::{FileError, FlagError, RenderError, Warning};
pub use flag::{Flag, Type};
pub use outside::{Outside, VALUE_BYTES_MAX, is_stdin};
pub use render::{FileMessage, Rendered, Role};

use std::path::PathBuf;

/// Bytes a command file may have.
pub const FILE_BYTES_MAX: usize = 1024 * 1024;

/// A command file.
#[derive(Clone, Debug)]
pub struct CommandFile {
    /// The file, as it was named; for errors.
    pub path: PathBuf,
    /// What it is called; the stem of the file's name if it doesn't say.
    pub name: String,
    /// What it does, in a line; may be empty.
    pub short: String,
    /// What it does; may be empty.
    pub long: String,
    /// What is typed by name, in the order of the file.
    pub flags: Vec<Flag>,
    /// What is typed by place.
    pub arguments: Vec<Flag>,
    /// How the model is to behave.
    pub system_prompt: Option<Text>,
    /// What the person says.
    pub prompt: Option<Text>,
    /// What was said before; without a prompt, the last of them is what is asked.
    pub messages: Vec<(Role, Text)>,
    /// What was said before is a template, as what is asked always is.
    pub history_is_template: bool,
    /// What the answer is to be.
    pub response: ResponseType,
    /// The JSON Schema that an answer in JSON must match.
    pub schema: Option<serde_json::Value>,
    /// The line it begins in, from 1; 0 without one.
    pub schema_line: u32,
    /// Names of the extensions it asks for.
    pub extensions: Vec<String>,
    /// What is passed over.
    pub warnings: Vec<Warning>,
}

/// A template as it stands in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Text {
    /// The template.
    pub template: String,
    /// Where it stands, as people find it: `prompt`, `messages[2]`.
    pub(crate) key: String,
    /// Where its lines are in the file.
    pub(crate) layout: yaml::Layout,
}
