//! Why a schema can't be used, from what the validator says of it.

use super::places::{Place, places, pointer};
use super::shape::last_segment;
use super::{SCHEMA_BYTES_MAX, SCHEMA_DEPTH_MAX, each};
use crate::extract::at;
use crate::extract::read::clipped;
use jsonschema::error::ValidationErrorKind;
use jsonschema::{ReferencingError, ValidationError};
use serde_json::Value;

/// The keywords that refer to another schema.
const REFERENCES: [&str; 3] = ["$ref", "$dynamicRef", "$recursiveRef"];

/// What the URIs of JSON Schema's own schemas begin with, which the validator has.
const META_SCHEMAS: [&str; 2] = ["http://json-schema.org/", "https://json-schema.org/"];

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
    let places = places(schema);
    for place in &places {
        for key in REFERENCES {
            if place.text(key).is_some_and(&is_it) {
                return clipped(format!("{}/{key}", pointer(&places, place)));
            }
        }
    }
    String::new()
}

/// Refuses references to other documents that the schema's draft does not know, and so the
/// validator passes over: whoever wrote them wanted something of them.
pub(super) fn foreign(schema: &Value) -> Result<(), SchemaError> {
    let places = places(schema);
    let id = |place: &Place<'_>| place.text("$id").or_else(|| place.text("id")).map(last_segment);
    let known: Vec<String> = places.iter().filter_map(id).collect();
    let is_foreign = |reference: &str| {
        let document = reference.split('#').next().unwrap_or_default();
        let is_meta_schema = META_SCHEMAS.iter().any(|base| document.starts_with(base));
        !document.is_empty() && !is_meta_schema && !known.contains(&last_segment(document))
    };
    for place in places.iter().filter(|place| place.is_schema()) {
        for key in ["$dynamicRef", "$recursiveRef"] {
            let Some(uri) = place.text(key).filter(|uri| is_foreign(uri)) else { continue };
            let pointer = clipped(format!("{}/{key}", pointer(&places, place)));
            return Err(SchemaError::Remote { pointer, uri: clipped(uri.to_owned()) });
        }
    }
    Ok(())
}

/// Refuses a reference to what is data, and so is no schema.
pub(super) fn to_data(schema: &Value, reference: &str) -> SchemaError {
    SchemaError::Invalid {
        pointer: self::reference(schema, |other| other == reference),
        what: clipped(format!(
            "{reference} is in a const, enum, default or examples, where data stands and no schema"
        )),
    }
}

/// Refuses two schemas of one name: it is not known which of them a reference means.
pub(super) fn same_name(places: &[Place<'_>], [first, second]: [&Place<'_>; 2]) -> SchemaError {
    let first = clipped(format!("{}/$id", pointer(places, first)));
    SchemaError::Invalid {
        pointer: clipped(format!("{}/$id", pointer(places, second))),
        what: format!("it is the same as {first}; give each schema its own, or none"),
    }
}
