//! What a provider call is given: the conversation, the tools, the engine and model, settings and the
//! schema of the answer. Pure.

mod settings;
mod subset;

pub(crate) use settings::merge;
pub use settings::{CallSettings, StructuredMode};

use self::subset::{ANTHROPIC, OPENAI_STRICT};
use super::table::EngineRef;
use crate::chat::tool::ToolSpec;
use crate::chat::transcript::Transcript;
use serde_json::{Map, Value};
use std::sync::Arc;

/// What a provider call is given.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CallSpec {
    /// The conversation so far. Its last turn is the one to answer.
    pub transcript: Transcript,
    /// The tools that the model may call.
    pub tools: Arc<[ToolSpec]>,
    /// The engine that makes the call.
    pub engine: EngineRef,
    /// The model; `None` for the engine's own.
    pub model: Option<String>,
    /// The settings of the call.
    pub settings: Arc<CallSettings>,
    /// What the answer must be like, if that is given.
    pub schema: Option<Arc<ResponseSchema>>,
}

/// What an answer must be like.
#[derive(Clone, Debug, PartialEq)]
pub struct ResponseSchema {
    /// A name of letters, digits, `_` and `-`, as providers want one.
    pub name: String,
    /// The JSON Schema.
    pub schema: Map<String, Value>,
}

impl ResponseSchema {
    /// Whether the answer has to be an object: OpenAI's interfaces have no place for others.
    pub(crate) fn is_of_object(&self) -> bool {
        self.schema.get("type").is_some_and(|kind| kind == "object")
    }

    /// Whether OpenAI's strict mode takes the schema: every object has all its properties required
    /// and allows no others, and all its words are known there.
    pub fn is_strict(&self) -> bool {
        OPENAI_STRICT.has(&self.schema)
    }

    /// Whether the schema is in the part of JSON Schema that Anthropic takes.
    pub(crate) fn is_for_anthropic(&self) -> bool {
        ANTHROPIC.has(&self.schema)
    }
}
