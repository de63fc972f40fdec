//! Prompt templates: Go's `text/template` with the functions of sprig.
//!
//! The language is that of <https://pkg.go.dev/text/template>, the functions are those of
//! <https://masterminds.github.io/sprig/> as far as a prompt can use them. Templates are parsed by
//! gotmpl; this module checks what its parser accepts wrongly, and executes the syntax tree.
//!
//! Intended differences from Go: integers beyond 64 bits are floats; text is cut between
//! characters, not bytes; an invalid regular expression is an error where `regexMatch` and
//! `replaceRegexp` ignore it; a date may be a string too; `sortAlpha` does not change its argument;
//! `deepEqual` and `has` ignore the types of lists and integers; `snakecase` and `kebabcase` keep
//! digits with the letters before them; `%x` and `%b` format no floats; a comment may have spaces
//! before its `/*`.

mod actions;
mod blocks;
mod data;
mod exec;
mod format;
mod functions;
mod hints;
mod map;
mod methods;
mod names;
mod semver;
#[cfg(test)]
mod tests;
pub(crate) mod time;
mod types;
mod value;

pub(crate) use data::{Data, Keys, Record, Values, Yaml};
pub(crate) use format::permissions;
pub use types::{Type, Types};
pub(crate) use value::floats;

use exec::{Bodies, Exec};
use gotmpl::parse::ListNode;
use jiff::Zoned;
use thiserror::Error;
use value::{Heap, Value, WORK_BYTES_MAX};

/// Longest rendered text, in bytes.
pub(crate) const OUTPUT_BYTES_MAX: usize = 64 * 1024 * 1024;

/// A parsed template.
#[derive(Debug)]
pub struct Template {
    name: String,
    bodies: Bodies,
}

/// How a name without a value is handled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Missing {
    /// It is nil, which prints as `<no value>`, as in Go.
    #[default]
    Shown,
    /// An error.
    Refused,
}

/// An error in a template, or in rendering it.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{message}")]
pub struct TemplateError {
    /// Line within the template's text, from 1; `None` if the error has no single line.
    pub line: Option<u32>,
    /// The message.
    pub message: String,
}

impl Template {
    /// Reads a template. `name` is what `{{template}}` can call the whole by. `values` are those it
    /// will get; an error may say that one of them was meant.
    ///
    /// # Errors
    /// If the template can't be parsed.
    pub fn parse(
        name: &str,
        text: &str,
        values: &serde_json::Value,
    ) -> Result<Self, TemplateError> {
        let text = actions::read(text)?;
        let error = |error| error_of_parser(&text, error);
        let parser = gotmpl::parse::Parser::new(&text, "{{", "}}").map_err(error)?;
        let (body, defines) = parser.parse().map_err(error)?;
        let mut bodies = Bodies::from([(name.to_owned(), body)]);
        for define in defines {
            define_body(&mut bodies, define.name.to_string(), define.body).map_err(|message| {
                TemplateError { line: u32::try_from(define.pos.line).ok(), message }
            })?;
        }
        bodies.values().try_for_each(|body| names::check(body, values))?;
        Ok(Self { name: name.to_owned(), bodies })
    }

    /// The text for these values, an object, whose members have the given types in Go. Integers and
    /// floats are distinguished as `serde_json` does. `now` is what the function `now` gives, and its
    /// time zone is the local one.
    ///
    /// # Errors
    /// If the template can't be run with these values.
    pub fn render(
        &self,
        values: &serde_json::Value,
        types: &Types,
        now: &Zoned,
    ) -> Result<String, TemplateError> {
        self.run(|heap| heap.take_typed(values, types), now, Missing::Shown)
    }

    /// Like [`Template::render`], for values that may share equal parts.
    ///
    /// # Errors
    /// As [`Template::render`].
    pub(crate) fn render_values(
        &self,
        values: &Values,
        types: &Types,
        now: &Zoned,
        missing: Missing,
    ) -> Result<String, TemplateError> {
        self.run(|heap| heap.take_values(values, types), now, missing)
    }

    fn run(
        &self,
        take: impl FnOnce(&mut Heap) -> Result<Value, String>,
        now: &Zoned,
        missing: Missing,
    ) -> Result<String, TemplateError> {
        let mut heap = Heap::new(WORK_BYTES_MAX, now.time_zone().clone());
        let values = take(&mut heap).map_err(|message| TemplateError {
            line: None,
            message: format!("the values can't be used: {message}"),
        })?;
        // `parse` inserts it.
        let Some(body) = self.bodies.get(&self.name) else { return Ok(String::new()) };
        Exec::new(&self.bodies, heap, now, missing)
            .run(body, values)
            .map_err(|(line, message)| TemplateError { line: u32::try_from(line).ok(), message })
    }
}

/// Of two definitions of one template, one must be blank, and is replaced.
fn define_body(bodies: &mut Bodies, name: String, body: ListNode) -> Result<(), String> {
    match bodies.get(&name) {
        Some(known) if body.is_empty_tree() && !known.is_empty_tree() => Ok(()),
        Some(known) if !body.is_empty_tree() && !known.is_empty_tree() => {
            Err(format!("template {name:?} is defined twice; rename one of the two"))
        }
        Some(_) | None => {
            bodies.insert(name, body);
            Ok(())
        }
    }
}

fn error_of_parser(text: &str, error: gotmpl::TemplateError) -> TemplateError {
    if let gotmpl::TemplateError::Parse { line, message, .. }
    | gotmpl::TemplateError::Lex { line, message, .. } = error
    {
        let message = hints::of_parser(text, line, &message);
        let line = u32::try_from(line).ok().filter(|line| *line > 0);
        return TemplateError { line, message };
    }
    TemplateError { line: None, message: error.to_string() }
}
