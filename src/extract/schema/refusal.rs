//! Why a schema can't be used, from what the validator says of it.

use super::{SCHEMA_BYTES_MAX, SCHEMA_DEPTH_MAX, each};
use crate::extract::at;
use crate::extract::read::clipped;
use jsonschema::error::ValidationErrorKind;
use jsonschema::{ReferencingError, ValidationError};
use serde_json::Value;

/// The keywords that refer to another schema.
const REFERENCES: [&str; 3] = ["$ref", "$dynamicRef", "$recursiveRef"];

/// What the validator takes for the URI of a schema that has none.
const NO_BASE: &str = "json-schema:///";

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
    /// It would take too much time or memory to hold anything against it.
    #[error("the schema is too complex: {what}; make it simpler")]
    TooComplex {
        /// In what way.
        what: &'static str,
    },
    /// It refers to another document.
    #[error(
        "the schema refers to {uri}{}, and nothing is fetched: copy what is there into $defs and \
         refer to it as #/$defs/NAME",
        at(pointer)
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
    #[error("the schema is wrong{}: {what}", at(pointer))]
    Invalid {
        /// JSON pointer to what is wrong; empty for all of it.
        pointer: String,
        /// What is wrong there.
        what: String,
    },
}

/// What the validator's error means.
pub(super) fn refusal(schema: &Value, error: &ValidationError<'_>) -> SchemaError {
    if let ValidationErrorKind::Referencing(error) = error.kind() {
        return unresolved(schema, error);
    }
    let kind = error.kind();
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

fn unresolved(schema: &Value, error: &ReferencingError) -> SchemaError {
    if let ReferencingError::Unretrievable { uri, .. } = error {
        let document = |uri: &str| uri.split('#').next().unwrap_or_default().to_owned();
        let is_to = |reference: &str| {
            let reference = document(reference);
            !reference.is_empty()
                && document(uri).ends_with(reference.trim_start_matches(['.', '/']))
        };
        return SchemaError::Remote {
            pointer: reference(schema, is_to),
            uri: clipped(uri.trim_start_matches(NO_BASE).to_owned()),
        };
    }
    if let ReferencingError::UnknownSpecification { specification } = error {
        return SchemaError::Draft { uri: clipped(specification.clone()) };
    }
    let pointer = match error {
        ReferencingError::PointerToNowhere { pointer: name }
        | ReferencingError::NoSuchAnchor { anchor: name } => {
            reference(schema, |reference| reference.split('#').nth(1) == Some(name))
        }
        ReferencingError::Unretrievable { .. }
        | ReferencingError::InvalidPercentEncoding { .. }
        | ReferencingError::InvalidArrayIndex { .. }
        | ReferencingError::InvalidAnchor { .. }
        | ReferencingError::InvalidUri(_)
        | ReferencingError::UnknownSpecification { .. }
        | ReferencingError::CircularMetaschema { .. } => String::new(),
    };
    SchemaError::Invalid { pointer, what: clipped(error.to_string()) }
}

/// JSON pointer to a reference like this; empty if there is none.
fn reference(schema: &Value, is_it: impl Fn(&str) -> bool) -> String {
    let mut open = vec![(schema, String::new())];
    while let Some((value, pointer)) = open.pop() {
        for key in REFERENCES {
            if value.get(key).and_then(Value::as_str).is_some_and(&is_it) {
                return clipped(format!("{pointer}/{key}"));
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
    String::new()
}
