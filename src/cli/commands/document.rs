//! A result that is not a list: printed as text, or as one JSON object for programs that expect
//! JSON.

use super::args::TextOutputArgs;
use super::envelope::{self, Error};
use super::output::{Failure, Out, status};
use crate::engine::ErrorClass;
use crate::protocol::constants::{code, command_code};
use crate::support::terminal::escape_control;
use serde_json::Value;
use std::time::Instant;

/// A result in both forms.
#[derive(Debug)]
pub(super) struct Document {
    /// As text.
    pub(super) text: Vec<u8>,
    /// As the value of `data`.
    pub(super) data: Value,
}

/// Prints the result of `make` in the form that `wanted` names; returns the exit status.
pub(super) fn print(
    command_mode: &TextOutputArgs,
    make: impl FnOnce() -> Result<Document, Failure>,
) -> u8 {
    let begun = Instant::now();
    status(match (make(), command_mode.is_json()) {
        (Ok(document), true) => print_data(&document.data, None, begun),
        (Ok(document), false) => print_text(&document.text),
        (Err(failure), true) => {
            print_data(&Value::Null, Some(&error(&failure)), begun).and(Err(failure))
        }
        (Err(failure), false) => Err(failure),
    })
}

/// Does the work of a command that prints a list, and whose failures before its first output have the form of a
/// document, if `is_json`; returns the exit status.
pub(super) fn list(is_json: bool, work: impl FnOnce() -> Result<u8, Failure>) -> u8 {
    let begun = Instant::now();
    status(work().or_else(|failure| match &failure {
        Failure::Usage(_) | Failure::Store(_) | Failure::Unanswered(_) if is_json => {
            print_data(&Value::Null, Some(&error(&failure)), begun).and(Err(failure))
        }
        Failure::Usage(_)
        | Failure::Store(_)
        | Failure::Unanswered(_)
        | Failure::Unwritten(_)
        | Failure::Output(_)
        | Failure::Gone => Err(failure),
    }))
}

pub(super) fn print_data(
    data: &Value,
    error: Option<&Error>,
    begun: Instant,
) -> Result<u8, Failure> {
    envelope::print_value(data, error, begun, &mut Out::new()?)?;
    Ok(0)
}

pub(super) fn print_text(text: &[u8]) -> Result<u8, Failure> {
    let mut out = Out::new()?;
    out.write(text)?;
    out.flush()?;
    Ok(0)
}

/// The error of a document about a command that failed.
pub(super) fn error(failure: &Failure) -> Error {
    let (code, class) = match failure {
        Failure::Unanswered(error) => (command_code::PROVIDER_FAILED, Some(error.class.as_str())),
        Failure::Usage(_) => (command_code::USAGE, Some(ErrorClass::Config.as_str())),
        Failure::Store(_) => (code::STORE_FAILED, None),
        Failure::Unwritten(_) | Failure::Output(_) | Failure::Gone => {
            (command_code::WRITE_FAILED, None)
        }
    };
    let detail = failure.to_string();
    let message = match failure {
        Failure::Unanswered(error) => escape_control(&error.message),
        Failure::Usage(_)
        | Failure::Store(_)
        | Failure::Unwritten(_)
        | Failure::Output(_)
        | Failure::Gone => detail.clone(),
    };
    Error { code, class, message, detail }
}
