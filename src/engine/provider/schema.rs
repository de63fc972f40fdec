//! The schema of an answer, for providers and servers that have no field for it.

use crate::engine::{CallSpec, ResponseSchema, StructuredMode};
use serde_json::Value;

/// The schema that the provider gets in a field of its own; `None` if the model gets it.
pub(in crate::engine) fn native(spec: &CallSpec) -> Option<&ResponseSchema> {
    match spec.settings.structured {
        Some(StructuredMode::Prompt) => None,
        Some(StructuredMode::Native) | None => spec.schema.as_deref(),
    }
}

/// Like [`native`], where the settings don't decide: the provider gets only a schema that it `takes`.
pub(in crate::engine) fn native_if(
    spec: &CallSpec,
    takes: impl FnOnce(&ResponseSchema) -> bool,
) -> Option<&ResponseSchema> {
    let is_asked_for = spec.settings.structured == Some(StructuredMode::Native);
    native(spec).filter(|schema| is_asked_for || takes(schema))
}

/// The instruction that asks the model for an answer that fits the schema; `None` if there is no
/// schema, or `is_native` and the provider gets it.
pub(in crate::engine) fn instruction(spec: &CallSpec, is_native: bool) -> Option<String> {
    let schema = spec.schema.as_deref()?;
    if is_native && native(spec).is_some() {
        return None;
    }
    let schema = Value::Object(schema.schema.clone());
    Some(format!(
        "Answer with one JSON value that matches this JSON Schema, and with nothing else: no \
         explanation, no code fence.\n{schema}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::CallSettings;
    use std::sync::Arc;

    #[test]
    fn a_schema_goes_to_the_provider_or_into_the_instructions() {
        let spec = |structured| CallSpec {
            settings: Arc::new(CallSettings { structured, ..CallSettings::default() }),
            schema: Some(Arc::new(ResponseSchema {
                name: "a".to_owned(),
                schema: [("type".to_owned(), "string".into())].into_iter().collect(),
            })),
            ..CallSpec::default()
        };
        for (structured, is_native, is_field) in [
            (None, true, true),
            (None, false, false),
            (Some(StructuredMode::Prompt), true, false),
            (Some(StructuredMode::Native), true, true),
        ] {
            let instruction = instruction(&spec(structured), is_native);
            assert_eq!(instruction.is_none(), is_field, "{structured:?} {is_native}");
            assert!(instruction.is_none_or(|text| text.contains(r#"{"type":"string"}"#)));
        }
        assert_eq!(instruction(&CallSpec::default(), false), None);
    }
}
