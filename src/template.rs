//! Prompt templates: Go's `text/template` with the functions of sprig, from values to text.
//!
//! The language is that of <https://pkg.go.dev/text/template>, the functions are those of
//! <https://masterminds.github.io/sprig/> as far as a prompt can use them.

use gotmpl::Value;
use std::sync::Arc;
use thiserror::Error;

/// A parsed template.
pub struct Template {
    parsed: gotmpl::Template,
}

/// What is wrong with a template, or with what it was given.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{message}")]
pub struct TemplateError {
    /// Line within the template's text, from 1; none if it is about the whole.
    pub line: Option<u32>,
    /// What happened, for people.
    pub message: String,
}

impl Template {
    /// Reads a template. `name` is what `{{template}}` can call the whole by.
    pub fn parse(name: &str, text: &str) -> Result<Self, TemplateError> {
        let parsed = gotmpl::Template::new(name).parse(text).map_err(error)?;
        Ok(Self { parsed })
    }

    /// The text for these values, an object. Integers and floats are told apart as `serde_json`
    /// does.
    pub fn render(&self, values: &serde_json::Value) -> Result<String, TemplateError> {
        self.parsed.execute_to_string(&value(values)).map_err(error)
    }
}

fn value(json: &serde_json::Value) -> Value {
    match json {
        serde_json::Value::Null => Value::Nil,
        serde_json::Value::Bool(truth) => Value::Bool(*truth),
        serde_json::Value::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(number), _) => Value::Int(number),
            (None, Some(number)) => Value::Uint(number),
            (None, None) => Value::Float(number.as_f64().unwrap_or(f64::NAN)),
        },
        serde_json::Value::String(text) => Value::String(text.as_str().into()),
        serde_json::Value::Array(items) => Value::List(items.iter().map(value).collect()),
        serde_json::Value::Object(members) => Value::Map(Arc::new(
            members.iter().map(|(key, member)| (key.as_str().into(), value(member))).collect(),
        )),
    }
}

fn error(error: gotmpl::TemplateError) -> TemplateError {
    let line = if let gotmpl::TemplateError::Parse { line, .. }
    | gotmpl::TemplateError::Lex { line, .. } = &error
    {
        u32::try_from(*line).ok()
    } else {
        None
    };
    TemplateError { line, message: error.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn values_become_text() {
        let template = Template::parse("greet", "Hello, {{ .name }}!").unwrap();
        assert_eq!(template.render(&json!({"name": "Ada"})).unwrap(), "Hello, Ada!");
    }

    #[test]
    fn an_error_has_its_line() {
        assert_eq!(Template::parse("t", "a\n{{ if }}").err().unwrap().line, Some(2));
    }
}
