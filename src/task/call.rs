//! The parameters of a provider call: its purpose, the conversation, the tools, the engine and model, settings
//! and the schema of the answer.

use crate::conversation::tool::ToolSpec;
use crate::conversation::transcript::Transcript;
use crate::task::settings::CallSettings;
use serde_json::{Map, Value};
use std::sync::Arc;

/// The parameters of a provider call.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CallSpec {
    /// The purpose of the call.
    pub purpose: Purpose,
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
    /// The schema of the answer, if there is one.
    pub schema: Option<Arc<ResponseSchema>>,
    /// It is not known how much the model can be sent. If the conversation is too long for it, the engine finds
    /// that out, if it can, before it reports the failure.
    pub asks_for_context: bool,
}

/// The purpose of a provider call, by which the session builds the call and handles its end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Purpose {
    /// To answer the last turn of the conversation.
    #[default]
    Answer,
    /// To summarize the turns of the conversation but the last, which asks for that.
    Summary,
}

/// Names an engine of a conversation.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum EngineRef {
    /// The one that it begins with.
    #[default]
    Initial,
    /// The one of that profile.
    Profile(String),
    /// The one of that name, with the settings of the environment.
    Named(String),
}

/// The facts about an engine that the session needs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EngineFacts {
    /// The engine's name.
    pub engine: Arc<str>,
    /// The model that answers unless a request names another.
    pub model: String,
    /// The provider's host.
    pub provider: String,
    /// The settings that calls have unless a request has others.
    pub settings: Arc<CallSettings>,
    /// Tokens of the most that the model can be sent, if that was configured for it.
    pub context_tokens: Option<u64>,
}

/// The schema of an answer, for the provider.
#[derive(Clone, Debug, PartialEq)]
pub struct ResponseSchema {
    /// A name of letters, digits, `_` and `-`, as providers want one.
    pub name: String,
    /// The JSON Schema.
    pub schema: Map<String, Value>,
}
