//! JSON Schema, compiled: draft 2020-12 unless `$schema` names another.

use super::read::clipped;
use super::{Reason, TYPE};
use jsonschema::error::ValidationErrorKind;
use jsonschema::{PatternOptions, ReferencingError, ValidationError, Validator};
use serde_json::Value;
use std::fmt;
use std::sync::Arc;

/// Bytes of a schema, written out without white space.
pub const SCHEMA_BYTES_MAX: usize = 256 * 1024;

/// Arrays and objects of a schema in one another.
pub const SCHEMA_DEPTH_MAX: usize = 100;

/// Bytes that a compiled regular expression may take.
const PATTERN_BYTES_MAX: usize = 1024 * 1024;

/// The keywords that refer to another schema.
const REFERENCES: [&str; 3] = ["$ref", "$dynamicRef", "$recursiveRef"];

/// What a value is to look like.
///
/// `format` is a remark, as the draft has it, not a check. Patterns are those of the crate `regex`,
/// which take linear time. Nothing is fetched.
#[derive(Clone)]
pub struct Schema(Arc<Compiled>);

struct Compiled {
    validator: Validator,
    source: Value,
}

/// Why a schema can't be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SchemaError {
    /// It is longer than [`SCHEMA_BYTES_MAX`].
    #[error("the schema has more than {SCHEMA_BYTES_MAX} bytes; make it smaller")]
    TooLong,
    /// It is deeper than [`SCHEMA_DEPTH_MAX`].
    #[error(
        "the schema is more than {SCHEMA_DEPTH_MAX} arrays and objects deep; move parts of it to \
         $defs"
    )]
    TooDeep,
    /// It refers to another document.
    #[error(
        "the schema refers to {uri}{}, and nothing is fetched: copy what is there into $defs and \
         refer to it as #/$defs/NAME",
        super::at(pointer)
    )]
    Remote {
        /// JSON pointer to the reference; empty if it is not known.
        pointer: String,
        /// What it refers to.
        uri: String,
    },
    /// It is of a draft that is not known.
    #[error(
        "the schema's $schema is {uri}, which is not a known draft of JSON Schema; leave it out for \
         draft 2020-12"
    )]
    Draft {
        /// What it says.
        uri: String,
    },
    /// It is not a JSON Schema.
    #[error("the schema is wrong{}: {what}", super::at(pointer))]
    Invalid {
        /// JSON pointer to what is wrong; empty for all of it.
        pointer: String,
        /// What is wrong there.
        what: String,
    },
}

impl Schema {
    /// Compiles a schema.
    ///
    /// # Errors
    /// If it is none, is too large or refers to something outside of itself.
    pub fn compile(schema: &Value) -> Result<Self, SchemaError> {
        measure(schema)?;
        let validator = jsonschema::options()
            .offline()
            .should_validate_formats(false)
            .with_pattern_options(PatternOptions::regex().size_limit(PATTERN_BYTES_MAX))
            .build(schema)
            .map_err(|error| refusal(schema, &error))?;
        Ok(Self(Arc::new(Compiled { validator, source: schema.clone() })))
    }

    /// Holds a value against the schema.
    pub(super) fn check(&self, value: &Value) -> Result<(), Reason> {
        self.0.validator.validate(value).map_err(|error| self.reason(&error))
    }

    /// Of a value that fits none of several schemas, what is wrong with it as the one it says it is.
    fn reason(&self, error: &ValidationError<'_>) -> Reason {
        let (ValidationErrorKind::OneOfNotValid { context }
        | ValidationErrorKind::AnyOf { context }) = error.kind()
        else {
            return told(error, error.to_string());
        };
        let schemas = self.0.source.pointer(error.schema_path().as_str());
        let Some(types) = schemas.and_then(types) else { return told(error, each(context)) };
        let value = error.instance();
        let Some(r#type) = value.get(TYPE).and_then(Value::as_str) else {
            let lacks = if value.is_object() { "no type" } else { "not an object with a type" };
            return told(error, format!("{lacks}; it must be one of {}", listed(&types)));
        };
        match types.iter().position(|known| *known == r#type).and_then(|at| context.get(at)) {
            Some(branch) => branch
                .first()
                .map_or_else(|| told(error, error.to_string()), |error| self.reason(error)),
            None => {
                let known = listed(&types);
                told(error, format!("unknown type {}; it must be one of {known}", quoted(r#type)))
            }
        }
    }
}

impl fmt::Debug for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Schema").field(&self.0.source).finish()
    }
}

/// What is wrong with a value as each of several.
fn each(context: &[Vec<ValidationError<'_>>]) -> String {
    let first = context.iter().filter_map(|branch| branch.first());
    first.map(|error| clipped(error.to_string())).collect::<Vec<_>>().join("; or ")
}

fn told(error: &ValidationError<'_>, what: String) -> Reason {
    let pointer = clipped(error.instance_path().to_string());
    Reason::Schema { pointer, what: clipped(what) }
}

/// The type that each of these schemas asks for, if each asks for one.
fn types(schemas: &Value) -> Option<Vec<&str>> {
    schemas
        .as_array()?
        .iter()
        .map(|schema| schema.pointer("/properties/type/const")?.as_str())
        .collect()
}

fn listed(types: &[&str]) -> String {
    types.iter().map(|known| quoted(known)).collect::<Vec<_>>().join(", ")
}

fn quoted(text: &str) -> String {
    clipped(format!("{text:?}"))
}

/// Checks the limits with no recursion: a schema need not come from a reader that has a limit.
fn measure(schema: &Value) -> Result<(), SchemaError> {
    let mut bytes = 0;
    let mut open = vec![(schema, 0)];
    while let Some((value, depth)) = open.pop() {
        if depth > SCHEMA_DEPTH_MAX {
            return Err(SchemaError::TooDeep);
        }
        // Each value has a comma or a bracket with it; numbers and names are short.
        bytes += 2;
        match value {
            Value::Null | Value::Bool(_) | Value::Number(_) => bytes += 4,
            Value::String(text) => bytes += text.len(),
            Value::Array(items) => open.extend(items.iter().map(|item| (item, depth + 1))),
            Value::Object(members) => {
                bytes += members.keys().map(|key| key.len() + "\"\":".len()).sum::<usize>();
                open.extend(members.values().map(|member| (member, depth + 1)));
            }
        }
        if bytes > SCHEMA_BYTES_MAX {
            return Err(SchemaError::TooLong);
        }
    }
    Ok(())
}

fn refusal(schema: &Value, error: &ValidationError<'_>) -> SchemaError {
    use ReferencingError::{UnknownSpecification, Unretrievable};
    let kind = error.kind();
    if let ValidationErrorKind::Referencing(Unretrievable { uri, .. }) = kind {
        let pointer = reference_to(schema, uri).unwrap_or_default();
        return SchemaError::Remote { pointer, uri: clipped(uri.clone()) };
    }
    if let ValidationErrorKind::Referencing(UnknownSpecification { specification }) = kind {
        return SchemaError::Draft { uri: clipped(specification.clone()) };
    }
    let what = if let ValidationErrorKind::AnyOf { context } = kind {
        each(context)
    } else if matches!(kind, ValidationErrorKind::Format { format } if format == "regex") {
        let pattern = clipped(error.instance().to_string());
        format!("{pattern} is no pattern, looks around or back, or is too large")
    } else {
        error.to_string()
    };
    SchemaError::Invalid {
        pointer: clipped(error.instance_path().to_string()),
        what: clipped(what),
    }
}

/// Where in the schema the document of this URI is referred to.
fn reference_to(schema: &Value, uri: &str) -> Option<String> {
    let is_to = |reference: &str| {
        let document = reference.split_once('#').map_or(reference, |(document, _)| document);
        !document.is_empty() && uri.ends_with(document.trim_start_matches(['.', '/']))
    };
    let mut open = vec![(schema, String::new())];
    while let Some((value, pointer)) = open.pop() {
        for key in REFERENCES {
            if value.get(key).and_then(Value::as_str).is_some_and(is_to) {
                return Some(clipped(format!("{pointer}/{key}")));
            }
        }
        match value {
            Value::Array(items) => {
                let members = items.iter().enumerate();
                open.extend(members.map(|(at, item)| (item, format!("{pointer}/{at}"))));
            }
            Value::Object(members) => open.extend(members.iter().map(|(key, member)| {
                let key = key.replace('~', "~0").replace('/', "~1");
                (member, format!("{pointer}/{key}"))
            })),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    None
}
