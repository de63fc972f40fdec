//! The settings of a call in the form that the provider takes.

use crate::engine::provider::schema;
use crate::engine::{CallSettings, CallSpec};
use serde::Serialize;
use serde_json::{Map, Value};

/// Tokens of an answer, its reasoning included, where the settings name no limit: what every model
/// takes that is offered today.
const OUTPUT_TOKENS_MAX: u32 = 32_000;

/// Tokens of an answer beside its reasoning, where the settings name a budget for the reasoning and no
/// limit for the answer.
const TEXT_TOKENS_MAX: u32 = 8_192;

/// What a request asks for beside its messages and tools.
#[derive(Serialize)]
pub(super) struct Generation<'a> {
    /// The interface requires it.
    max_tokens: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_p: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stop_sequences: Option<&'a [String]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking: Option<Thinking>,
    #[serde(skip_serializing_if = "OutputConfig::is_empty")]
    output_config: OutputConfig<'a>,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
enum Thinking {
    Enabled { budget_tokens: u32 },
    Disabled,
}

#[derive(Serialize)]
struct OutputConfig<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    effort: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    format: Option<Format<'a>>,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Format<'a> {
    JsonSchema { schema: &'a Map<String, Value> },
}

/// What a call with `spec` asks for.
pub(super) fn generation(spec: &CallSpec) -> Generation<'_> {
    let settings = &*spec.settings;
    let format = schema::native(spec).map(|schema| Format::JsonSchema { schema: &schema.schema });
    Generation {
        max_tokens: settings.max_tokens.unwrap_or_else(|| output_tokens_max(settings)),
        temperature: settings.temperature,
        top_p: settings.top_p,
        stop_sequences: settings.stop.as_deref(),
        thinking: thinking(settings),
        output_config: OutputConfig { effort: effort(settings), format },
    }
}

/// Names of the settings that are set and that the interface has no place for.
pub(super) fn ignored_settings(settings: &CallSettings) -> Vec<&'static str> {
    settings.seed.map(|_| "seed").into_iter().collect()
}

/// The limit counts the reasoning, too, and has to be larger than its budget.
fn output_tokens_max(settings: &CallSettings) -> u32 {
    let with_budget = settings.reasoning_budget.unwrap_or_default().saturating_add(TEXT_TOKENS_MAX);
    with_budget.max(OUTPUT_TOKENS_MAX)
}

/// Whether to reason is the model's own decision unless the settings say how much.
fn thinking(settings: &CallSettings) -> Option<Thinking> {
    match (settings.reasoning_budget, settings.reasoning_effort.as_deref()) {
        (Some(0), _) | (None, Some("none")) => Some(Thinking::Disabled),
        (Some(budget_tokens), _) => Some(Thinking::Enabled { budget_tokens }),
        (None, _) => None,
    }
}

/// The provider has no word for less than "low".
fn effort(settings: &CallSettings) -> Option<&str> {
    match settings.reasoning_effort.as_deref()? {
        "none" => None,
        "minimal" => Some("low"),
        effort => Some(effort),
    }
}

impl OutputConfig<'_> {
    fn is_empty(&self) -> bool {
        self.effort.is_none() && self.format.is_none()
    }
}
