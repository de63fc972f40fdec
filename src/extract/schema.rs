//! JSON Schema, compiled: draft 2020-12 unless `$schema` names another.

mod counted;
mod places;
mod refusal;
mod shape;

pub use refusal::SchemaError;

use super::read::clipped;
use super::{Reason, TYPE};
use crate::protocol::json::DEPTH_MAX;
use counted::{Counted, Looks, Part};
use jsonschema::error::ValidationErrorKind;
use jsonschema::{PatternOptions, ValidationError, Validator};
use serde_json::Value;
use shape::Shape;
use std::fmt;
use std::sync::Arc;

/// Bytes of a schema, written out without white space.
pub const SCHEMA_BYTES_MAX: usize = 256 * 1024;

/// Arrays and objects of a schema in one another.
pub const SCHEMA_DEPTH_MAX: usize = 100;

/// Bytes that a compiled regular expression may take.
const PATTERN_BYTES_MAX: usize = 2 * 1024 * 1024;

/// Looks at the bytes of a value that are spent on telling what is wrong with it, which takes
/// longer than to find that something is.
const LOOKS_MAX: usize = 1_000_000;

/// What is told of a value when its looks are spent.
const SPENT: &str = "too much work for this schema, whose parts apply to the same value again and \
                     again; make it simpler, or have each kind of object require its type";

/// What a value is to look like.
///
/// `format` is a remark, as the draft has it, not a check. Patterns are those of the crate `regex`,
/// which take linear time. Nothing is fetched. A value that the schema would look at for too long
/// does not fit it.
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
    /// If it is none, is too large or too complex, or refers to something outside of itself.
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

    /// Holds a value, which had this many bytes, against the schema.
    pub(super) fn check(&self, value: &Value, bytes: usize) -> Result<(), Reason> {
        let Compiled { validator, shape, .. } = &*self.0;
        if shape.levels_max < DEPTH_MAX && depth(value) > shape.levels_max {
            let what = format!("too deep for this schema: more than {} levels", shape.levels_max);
            return Err(Reason::Schema { pointer: String::new(), what });
        }
        // This one remembers what it knows of the parts of a value, which the other does not.
        let looks = Looks::of(bytes);
        let is_valid = validator.is_valid(Part::new(value, &looks));
        if looks.are_spent() {
            let what = SPENT.to_owned();
            return Err(Reason::Schema { pointer: String::new(), what });
        }
        if is_valid {
            return Ok(());
        }
        if shape.looks(depth(value)).saturating_mul(bytes) > LOOKS_MAX {
            return Err(self.brief(value));
        }
        let looks = Looks::new(LOOKS_MAX);
        let told = validator.validate(Part::new(value, &looks));
        if looks.are_spent() {
            return Err(self.brief(value));
        }
        let told = told.map_err(|error| self.reason(&error));
        // What the one calls invalid is not let through because the other has nothing to say.
        Err(told.err().unwrap_or_else(|| self.brief(value)))
    }

    /// What is wrong, where the whole of it would take too long to find.
    fn brief(&self, value: &Value) -> Reason {
        let mut of = ["oneOf", "anyOf"].into_iter().filter_map(|key| self.0.source.get(key));
        let of = of.find_map(|schemas| self.types(schemas)).map(|types| chosen(&types, value));
        let what = match of {
            Some(Err(what)) => what,
            Some(Ok(_)) | None => "somewhere in it; to find where would take too long".to_owned(),
        };
        Reason::Schema { pointer: String::new(), what }
    }

    /// Of a value that fits none of several schemas, what is wrong with it as the one it says it
    /// is.
    fn reason(&self, error: &ValidationError<'_>) -> Reason {
        let (ValidationErrorKind::OneOfNotValid { context }
        | ValidationErrorKind::AnyOf { context }) = error.kind()
        else {
            return told(error, error.to_string());
        };
        let schemas = self.0.source.pointer(error.schema_path().as_str());
        let types = schemas.and_then(|schemas| self.types(schemas));
        let Some(types) = types else { return told(error, each(context)) };
        match chosen(&types, error.instance()) {
            Err(what) => told(error, what),
            Ok(at) => match context.get(at).and_then(|branch| branch.first()) {
                Some(inner) => self.reason(inner),
                None => told(error, error.to_string()),
            },
        }
    }

    /// The type that each of these schemas asks for, if each asks for one.
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

/// What is wrong with a value as each of several.
fn each(context: &[Vec<ValidationError<'_>>]) -> String {
    let first = context.iter().filter_map(|branch| branch.first());
    first.map(|error| clipped(error.to_string())).collect::<Vec<_>>().join("; or ")
}

fn told(error: &ValidationError<'_>, what: String) -> Reason {
    let pointer = clipped(error.instance_path().to_string());
    Reason::Schema { pointer, what: clipped(what) }
}

/// Which of these types a value says it is, or why it is none of them.
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
    clipped(format!("{text:?}"))
}

/// How many arrays and objects of a value stand in one another; its reader has a limit.
fn depth(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Value::Object(members) => 1 + members.values().map(depth).max().unwrap_or(0),
    }
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
