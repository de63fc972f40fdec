//! Errors of a schema, derived from the validator's errors.

use super::places::{Place, places, pointer};
use super::shape::last_segment;
use super::{SCHEMA_BYTES_MAX, SCHEMA_DEPTH_MAX, SCHEMA_VALUES_MAX, each};
use crate::extract::at;
use crate::extract::read::clipped;
use jsonschema::error::ValidationErrorKind;
use jsonschema::{ReferencingError, ValidationError};
use serde_json::Value;

/// Keywords that refer to another schema.
const REFERENCES: [&str; 3] = ["$ref", "$dynamicRef", "$recursiveRef"];

/// Prefixes of the URIs of the JSON Schema meta-schemas, which the validator contains.
const META_SCHEMAS: [&str; 2] = ["http://json-schema.org/", "https://json-schema.org/"];

/// The URI that the validator assumes for a schema without one.
const NO_BASE: &str = "json-schema:///";

/// Why a schema can't be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SchemaError {
    /// It is longer than [`SCHEMA_BYTES_MAX`].
    #[error("the schema has more than {SCHEMA_BYTES_MAX} bytes; make it smaller")]
    TooLong,
    /// It has too many values, which take memory however short they are.
    #[error("the schema has more than {SCHEMA_VALUES_MAX} values; make it smaller")]
    TooManyValues,
    /// It is deeper than [`SCHEMA_DEPTH_MAX`].
    #[error(
        "the schema is more than {SCHEMA_DEPTH_MAX} arrays and objects deep; move parts of it to \
         $defs"
    )]
    TooDeep,
    /// Validation would take too much time or memory.
    #[error("the schema is too complex: {what}; make it simpler")]
    TooComplex {
        /// The cause of the complexity.
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
        /// The URI it refers to.
        uri: String,
    },
    /// Its draft is unknown.
    #[error(
        "the schema's $schema is {uri}, which is not a known draft of JSON Schema; leave it out for \
         draft 2020-12"
    )]
    Draft {
        /// The value of `$schema`.
        uri: String,
    },
    /// It is not a JSON Schema.
    #[error("the schema is wrong{}: {what}", at(pointer))]
    Invalid {
        /// JSON pointer to the error; empty for the whole schema.
        pointer: String,
        /// The error.
        what: String,
    },
}

/// Whether a URI is that of a JSON Schema meta-schema.
pub(super) fn is_meta_schema(uri: &str) -> bool {
    META_SCHEMAS.iter().any(|base| uri.starts_with(base))
}

/// Converts the validator's error.
pub(super) fn refusal(schema: &Value, error: &ValidationError<'_>) -> SchemaError {
    if let ValidationErrorKind::Referencing(error) = error.kind() {
        return unresolved(schema, error);
    }
    let kind = error.kind();
    let what = if let ValidationErrorKind::AnyOf { context } = kind {
        each(context)
    } else if matches!(kind, ValidationErrorKind::Format { format } if format == "regex") {
        let pattern = clipped(&error.instance().to_string());
        format!("{pattern} is not a valid pattern, uses look-around, or is too large")
    } else {
        error.to_string()
    };
    SchemaError::Invalid {
        pointer: clipped(&error.instance_path().to_string()),
        what: clipped(&what),
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
            uri: clipped(uri.trim_start_matches(NO_BASE)),
        };
    }
    if let ReferencingError::UnknownSpecification { specification } = error {
        return SchemaError::Draft { uri: clipped(specification) };
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
    SchemaError::Invalid { pointer, what: clipped(&error.to_string()) }
}

/// JSON pointer to a reference to this; empty if there is none.
fn reference(schema: &Value, is_it: impl Fn(&str) -> bool) -> String {
    let places = places(schema);
    for place in &places {
        for key in REFERENCES {
            if place.text(key).is_some_and(&is_it) {
                return clipped(&format!("{}/{key}", pointer(&places, place)));
            }
        }
    }
    String::new()
}

/// Refuses references to other documents under keywords that the schema's draft does not know,
/// which the validator would ignore against the author's intention.
pub(super) fn foreign(schema: &Value) -> Result<(), SchemaError> {
    let places = places(schema);
    let id = |place: &Place<'_>| place.text("$id").or_else(|| place.text("id")).map(last_segment);
    let known: Vec<String> = places.iter().filter_map(id).collect();
    let is_foreign = |reference: &str| {
        let document = reference.split('#').next().unwrap_or_default();
        !document.is_empty()
            && !is_meta_schema(document)
            && !known.contains(&last_segment(document))
    };
    for place in places.iter().filter(|place| place.is_schema()) {
        for key in ["$dynamicRef", "$recursiveRef"] {
            let Some(uri) = place.text(key).filter(|uri| is_foreign(uri)) else { continue };
            let pointer = clipped(&format!("{}/{key}", pointer(&places, place)));
            return Err(SchemaError::Remote { pointer, uri: clipped(uri) });
        }
    }
    Ok(())
}

/// Refuses a reference to data, which is not a schema.
pub(super) fn to_data(schema: &Value, reference: &str) -> SchemaError {
    SchemaError::Invalid {
        pointer: self::reference(schema, |other| other == reference),
        what: clipped(&format!(
            "{reference} is in a const, enum, default or examples, which contain data and no schema"
        )),
    }
}

/// Refuses two schemas of one name, as references to it would be ambiguous.
pub(super) fn same_name(places: &[Place<'_>], [first, second]: [&Place<'_>; 2]) -> SchemaError {
    let first = clipped(&format!("{}/$id", pointer(places, first)));
    SchemaError::Invalid {
        pointer: clipped(&format!("{}/$id", pointer(places, second))),
        what: format!("it is the same as {first}; give each schema a different one, or none"),
    }
}
