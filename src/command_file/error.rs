//! Errors and warnings about a command file, the values of its flags, and its rendered prompt.

use std::path::PathBuf;
use thiserror::Error;

/// A command file that can't be used.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{}{}: {message}", path.display(), line.map(|line| format!(":{line}")).unwrap_or_default())]
pub struct FileError {
    /// The path of the file as it was given.
    pub path: PathBuf,
    /// The line, from 1, if it is known.
    pub line: Option<u32>,
    /// The error and the remedy.
    pub message: String,
}

/// Something in a command file that is ignored.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{}:{line}: {message}", path.display())]
pub struct Warning {
    /// The path of the file as it was given.
    pub path: PathBuf,
    /// The line, from 1.
    pub line: u32,
    /// The ignored part and the remedy.
    pub message: String,
}

/// A value of a flag that can't be used.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{flag}: {message}")]
pub struct FlagError {
    /// The flag as it is typed, `--name`, or the argument, `<name>`.
    pub flag: String,
    /// The error and the remedy.
    pub message: String,
}

/// A prompt that can't be rendered.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{}:{line}: {message}", path.display())]
pub struct RenderError {
    /// The path of the file as it was given.
    pub path: PathBuf,
    /// The line of the file, from 1: of the error if that is known, else where its text begins.
    pub line: u32,
    /// The error and the remedy.
    pub message: String,
}
