//! Tools as the model sees them.

use serde_json::{Map, Value};
use std::sync::Arc;

/// A tool as it is offered to the model.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolSpec {
    /// The name by which the model calls it.
    pub name: String,
    /// Its description, for the model.
    pub description: String,
    /// JSON Schema of the arguments, an object.
    pub input_schema: Arc<Map<String, Value>>,
}
