//! The settings of a call in the form that the provider takes: `GenerationConfig`
//! (<https://ai.google.dev/api/generate-content>).

use super::model;
use crate::engine::provider::gemini_model::{Reasoning, reasoning};
use crate::engine::provider::schema;
use crate::engine::{CallSettings, CallSpec};
use serde::Serialize;
use serde_json::{Map, Value};

/// The parameters of a request besides its messages and tools.
#[derive(Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct GenerationConfig<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_p: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_output_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stop_sequences: Option<&'a [String]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    seed: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking_config: Option<ThinkingConfig<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_mime_type: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_json_schema: Option<&'a Map<String, Value>>,
}

#[derive(Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
struct ThinkingConfig<'a> {
    include_thoughts: bool,
    #[serde(flatten)]
    amount: Option<Amount<'a>>,
}

/// How much the model reasons. The provider refuses a request with both.
#[derive(Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
enum Amount<'a> {
    /// So many tokens; 0 for none.
    ThinkingBudget(u32),
    /// A level in the provider's words.
    ThinkingLevel(&'a str),
}

/// The parameters of a call with `spec` to `model`.
pub(super) fn config<'a>(model: &str, spec: &'a CallSpec) -> GenerationConfig<'a> {
    let settings = &*spec.settings;
    let schema = schema::native(spec).filter(|_| has_schema_field(model, spec));
    GenerationConfig {
        temperature: settings.temperature,
        top_p: settings.top_p,
        max_output_tokens: settings.max_tokens,
        stop_sequences: settings.stop.as_deref(),
        seed: settings.seed,
        thinking_config: thinking_config(model, settings),
        response_mime_type: schema.map(|_| "application/json"),
        response_json_schema: schema.map(|schema| &schema.schema),
    }
}

/// The provider takes a schema in a field of its own for this call.
pub(super) fn has_schema_field(model: &str, spec: &CallSpec) -> bool {
    spec.tools.is_empty() || model::takes_schema_with_tools(model)
}

/// Names of the settings that are set and that `model` has no place for.
pub(super) fn ignored_settings(model: &str, settings: &CallSettings) -> Vec<&'static str> {
    let has_budget = settings.reasoning_budget.is_some();
    let has_effort = settings.reasoning_effort.is_some();
    let (has_reasoning, budget, effort) = match reasoning(model) {
        Reasoning::None => (false, has_budget, has_effort),
        // A budget says more exactly what an effort says.
        Reasoning::Budget | Reasoning::Level => (true, false, has_budget && has_effort),
    };
    let summary = settings.reasoning_summary.is_some() && !has_reasoning;
    let ignored = [
        (budget, "reasoning_budget"),
        (effort, "reasoning_effort"),
        (summary, "reasoning_summary"),
    ];
    ignored.into_iter().filter(|(is_ignored, _)| *is_ignored).map(|(_, name)| name).collect()
}

fn thinking_config<'a>(model: &str, settings: &'a CallSettings) -> Option<ThinkingConfig<'a>> {
    let effort = settings.reasoning_effort.as_deref();
    let amount = match (reasoning(model), settings.reasoning_budget) {
        (Reasoning::None, _) => return None,
        (Reasoning::Budget, Some(0)) => Some(Amount::ThinkingBudget(model::lowest_budget(model))),
        (Reasoning::Level, Some(0)) => Some(Amount::ThinkingLevel(model::lowest_level(model))),
        (Reasoning::Budget | Reasoning::Level, Some(budget)) => {
            Some(Amount::ThinkingBudget(budget))
        }
        (Reasoning::Budget, None) => {
            effort.and_then(|effort| budget(model, effort)).map(Amount::ThinkingBudget)
        }
        (Reasoning::Level, None) => {
            effort.map(|effort| Amount::ThinkingLevel(level(model, effort)))
        }
    };
    let reasons = amount != Some(Amount::ThinkingBudget(0));
    let include_thoughts = reasons && settings.shows_reasoning().unwrap_or(true);
    Some(ThinkingConfig { include_thoughts, amount })
}

/// The budget that Google's own documentation gives for an effort
/// (<https://ai.google.dev/gemini-api/docs/openai>); `None` for a word that it does not have.
fn budget(model: &str, effort: &str) -> Option<u32> {
    match effort {
        "none" => Some(model::lowest_budget(model)),
        "minimal" | "low" => Some(1_024),
        "medium" => Some(8_192),
        "high" | "xhigh" | "max" => Some(24_576),
        _ => None,
    }
}

/// The level for an effort. Words of other providers become the nearest one.
fn level<'a>(model: &str, effort: &'a str) -> &'a str {
    match effort {
        "none" | "minimal" => model::lowest_level(model),
        "xhigh" | "max" => "high",
        effort => effort,
    }
}
