//! Compiled JSON Schema: draft 2020-12 unless `$schema` names another.

mod counted;
mod places;
mod refusal;
mod shape;

pub use refusal::SchemaError;

use super::read::clipped;
use super::{Reason, TYPE};
use crate::protocol::json::{self, DEPTH_MAX};
use counted::{Counted, Looks, Part};
use jsonschema::error::ValidationErrorKind;
use jsonschema::{PatternOptions, ValidationError, Validator};
use serde_json::Value;
use shape::Shape;
use std::fmt;
use std::mem::discriminant;
use std::sync::Arc;

/// Largest schema, in bytes without white space.
pub const SCHEMA_BYTES_MAX: usize = 256 * 1024;

/// Most values in a schema.
const SCHEMA_VALUES_MAX: usize = 50_000;

/// Deepest nesting of arrays and objects in a schema.
pub const SCHEMA_DEPTH_MAX: usize = 100;

/// Largest compiled regular expression, in bytes.
const PATTERN_BYTES_MAX: usize = 2 * 1024 * 1024;

/// Work spent on describing what is wrong with a value, in validation steps per byte, which takes
/// longer than finding that something is wrong.
const LOOKS_MAX: usize = 1_000_000;

/// The message for a value whose validation exceeded the work limit.
const SPENT: &str = "too much work for this schema, whose parts apply to the same value again and \
                     again; make it simpler, or have each kind of object require its type";

/// A JSON Schema that values are validated against.
///
/// `format` is an annotation, as in the draft, not a check. Patterns are those of the crate
/// `regex`, which take linear time. Nothing is fetched. A value whose validation would take too
/// long does not match.
#[derive(Clone)]
pub struct Schema(Arc<Compiled>);

struct Compiled {
    validator: Validator<Counted>,
    shape: Shape,
    source: Value,
}

impl Schema {
    /// Compiles a schema.
    ///
    /// # Errors
    /// If it is not a valid schema, is too large or complex, or refers to another document.
    pub fn compile(schema: &Value) -> Result<Self, SchemaError> {
        measure(schema)?;
        let shape = shape::shape(schema)?;
        let validator = jsonschema::options_for::<Counted>()
            .offline()
            .should_validate_formats(false)
            .with_pattern_options(PatternOptions::regex().size_limit(PATTERN_BYTES_MAX))
            .build(schema)
            .map_err(|error| refusal::refusal(schema, &error))?;
        refusal::foreign(schema)?;
        Ok(Self(Arc::new(Compiled { validator, shape, source: schema.clone() })))
    }

    /// Validates a value that has this many bytes.
    pub(super) fn check(&self, value: &Value, bytes: usize) -> Result<(), Reason> {
        let Compiled { validator, shape, .. } = &*self.0;
        if shape.levels_max < DEPTH_MAX && json::depth(value) > shape.levels_max {
            let what = format!("too deep for this schema: more than {} levels", shape.levels_max);
            return Err(Reason::Schema { pointer: String::new(), what });
        }
        // This validator caches results for the parts of a value, which the other does not.
        let looks = Looks::of(bytes);
        let is_valid = validator.is_valid(Part::new(value, &looks));
        if looks.are_spent() {
            let what = SPENT.to_owned();
            return Err(Reason::Schema { pointer: String::new(), what });
        }
        if is_valid {
            return Ok(());
        }
        if shape.looks(json::depth(value)).saturating_mul(bytes) > LOOKS_MAX {
            return Err(self.brief(value));
        }
        let looks = Looks::new(LOOKS_MAX);
        let result = validator.validate(Part::new(value, &looks));
        if looks.are_spent() {
            return Err(self.brief(value));
        }
        let result = result.map_err(|error| self.reason(&error));
        // An invalid value must not be accepted because the other validator reports no error.
        Err(result.err().unwrap_or_else(|| self.brief(value)))
    }

    /// A description of the error that stays within the work limit.
    fn brief(&self, value: &Value) -> Reason {
        let mut of = ["oneOf", "anyOf"].into_iter().filter_map(|key| self.0.source.get(key));
        let of = of.find_map(|schemas| self.types(schemas)).map(|types| chosen(&types, value));
        let what = match of {
            Some(Err(what)) => what,
            Some(Ok(_)) | None => "the place of the error would take too long to find".to_owned(),
        };
        Reason::Schema { pointer: String::new(), what }
    }

    /// For a value that matches none of several schemas: what is wrong with it according to the
    /// schema for its `type`.
    fn reason(&self, error: &ValidationError<'_>) -> Reason {
        let (ValidationErrorKind::OneOfNotValid { context }
        | ValidationErrorKind::AnyOf { context }) = error.kind()
        else {
            return reason_at(error, error.to_string());
        };
        let schemas = self.0.source.pointer(error.schema_path().as_str());
        let types = schemas.and_then(|schemas| self.types(schemas));
        let Some(types) = types else {
            return match only_of_its_type(context, error) {
                Some(inner) => self.reason(inner),
                None => reason_at(error, each(context)),
            };
        };
        match chosen(&types, error.instance()) {
            Err(what) => reason_at(error, what),
            Ok(at) => match context.get(at).and_then(|branch| branch.first()) {
                Some(inner) => self.reason(inner),
                None => reason_at(error, error.to_string()),
            },
        }
    }

    /// The `type` constants of these schemas, if each has one.
    fn types<'a>(&'a self, schemas: &'a Value) -> Option<Vec<&'a str>> {
        let of = |schema: &'a Value| {
            let reference = schema.get("$ref").and_then(Value::as_str);
            let target = reference.and_then(|reference| reference.strip_prefix('#'));
            let schema = target.map_or(Some(schema), |pointer| self.0.source.pointer(pointer))?;
            schema.pointer("/properties/type/const")?.as_str()
        };
        schemas.as_array()?.iter().map(of).collect()
    }
}

impl fmt::Debug for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Schema").field(&self.0.source).finish()
    }
}

/// The error according to the only one of several schemas that takes values of this type, as that of a field that may
/// also be null.
fn only_of_its_type<'c, 'e>(
    context: &'c [Vec<ValidationError<'e>>],
    error: &ValidationError<'_>,
) -> Option<&'c ValidationError<'e>> {
    let is_of_other_type = |inner: &ValidationError<'_>| {
        inner.instance_path() == error.instance_path() && refuses_its_type(inner)
    };
    let first = context.iter().filter_map(|branch| branch.first());
    let mut of_its_type = first.filter(|inner| !is_of_other_type(inner));
    of_its_type.next().filter(|_| of_its_type.next().is_none())
}

/// Whether the part of the schema that an error is about takes no value of the type that the value has.
fn refuses_its_type(error: &ValidationError<'_>) -> bool {
    let is_of_its_type = |option: &Value| discriminant(option) == discriminant(&**error.instance());
    if let ValidationErrorKind::Constant { expected_value } = error.kind() {
        return !is_of_its_type(expected_value);
    }
    if let ValidationErrorKind::Enum { options } = error.kind() {
        return !options.as_array().is_some_and(|options| options.iter().any(is_of_its_type));
    }
    matches!(error.kind(), ValidationErrorKind::Type { .. })
}

/// The errors according to each of several schemas.
fn each(context: &[Vec<ValidationError<'_>>]) -> String {
    let first = context.iter().filter_map(|branch| branch.first());
    first.map(|error| clipped(&error.to_string())).collect::<Vec<_>>().join("; or ")
}

fn reason_at(error: &ValidationError<'_>, what: String) -> Reason {
    let pointer = clipped(&error.instance_path().to_string());
    Reason::Schema { pointer, what: clipped(&what) }
}

/// The type among these that a value has, or why it has none of them.
fn chosen(types: &[&str], value: &Value) -> Result<usize, String> {
    let Some(r#type) = value.get(TYPE).and_then(Value::as_str) else {
        let lacks = if value.is_object() { "no type" } else { "not an object with a type" };
        return Err(format!("{lacks}; it must be one of {}", listed(types)));
    };
    types.iter().position(|known| *known == r#type).ok_or_else(|| {
        format!("unknown type {}; it must be one of {}", quoted(r#type), listed(types))
    })
}

fn listed(types: &[&str]) -> String {
    types.iter().map(|known| quoted(known)).collect::<Vec<_>>().join(", ")
}

fn quoted(text: &str) -> String {
    clipped(&format!("{text:?}"))
}

/// Checks the limits without recursion: a schema may come from a caller without limits.
fn measure(schema: &Value) -> Result<(), SchemaError> {
    let (mut bytes, mut values) = (0, 0);
    let mut open = vec![(schema, 0)];
    while let Some((value, depth)) = open.pop() {
        if depth > SCHEMA_DEPTH_MAX {
            return Err(SchemaError::TooDeep);
        }
        values += 1;
        if values > SCHEMA_VALUES_MAX {
            return Err(SchemaError::TooManyValues);
        }
        // Each value comes with a comma or a bracket; numbers and names are short.
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
