//! The settings of a call in the form that the provider takes.

use crate::engine::provider::interface::Refused;
use crate::engine::provider::schema;
use crate::engine::{CallSettings, CallSpec, ResponseSchema};
use serde::Serialize;
use serde_json::{Map, Value};
use std::ops::RangeInclusive;

/// Tokens of an answer, its reasoning included, where the settings name no limit: what every model
/// takes that is offered today.
const OUTPUT_TOKENS_MAX: u32 = 32_000;

/// Tokens of an answer beside its reasoning, where the settings name a budget for the reasoning and no
/// limit for the answer.
const TEXT_TOKENS_MAX: u32 = 8_192;

/// The only value that the provider takes while the model reasons, as if none were set
/// (<https://platform.claude.com/docs/en/build-with-claude/extended-thinking>).
const THINKING_TEMPERATURE: f64 = 1.0;

/// The values of `top_p` that the provider takes while the model reasons.
const THINKING_TOP_P: RangeInclusive<f64> = 0.95..=1.0;

/// The parameters of a request besides its messages and tools.
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
    Enabled {
        budget_tokens: u32,
        #[serde(skip_serializing_if = "Option::is_none")]
        display: Option<Display>,
    },
    Adaptive {
        #[serde(skip_serializing_if = "Option::is_none")]
        display: Option<Display>,
    },
    Disabled,
}

/// Whether the provider sends the reasoning. Models from Opus 4.7 do so only where they are asked to.
#[derive(Clone, Copy, Serialize)]
#[serde(rename_all = "lowercase")]
enum Display {
    Summarized,
    Omitted,
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

/// The parameters of a call with `spec` to `model`; a budget for reasoning only if it `may_think`.
pub(super) fn generation<'a>(model: &str, spec: &'a CallSpec, may_think: bool) -> Generation<'a> {
    let settings = &*spec.settings;
    let format = native(model, spec).map(|schema| Format::JsonSchema { schema: &schema.schema });
    Generation {
        max_tokens: settings.max_tokens.unwrap_or_else(|| output_tokens_max(model, settings)),
        temperature: settings.temperature.filter(|_| takes_temperature(model, settings)),
        top_p: settings.top_p.filter(|_| takes_top_p(model, settings)),
        stop_sequences: settings.stop.as_deref(),
        thinking: thinking(model, settings)
            .filter(|it| may_think || !matches!(it, Thinking::Enabled { .. })),
        output_config: OutputConfig { effort: effort(model, settings), format },
    }
}

/// The schema that the provider gets: one that it takes, for a model that has a place for it, or any
/// if the settings say so.
pub(super) fn native<'a>(model: &str, spec: &'a CallSpec) -> Option<&'a ResponseSchema> {
    schema::native_if(spec, |schema| takes_schemas(model) && schema.is_for_anthropic())
}

/// Models from 4.5 take a schema. The name of any other may be that of an older one.
fn takes_schemas(model: &str) -> bool {
    version(model).is_some_and(|version| version >= (4, 5))
}

/// The version in a name as `claude-opus-4-5-20251101` or `claude-3-5-sonnet`.
fn version(model: &str) -> Option<(u8, u8)> {
    let model = model.to_ascii_lowercase().replace('.', "-");
    let (_, name) = model.rsplit_once("claude-")?;
    // A number of one digit is a part of a version; others are dates.
    let number = |word: &str| word.parse::<u8>().ok().filter(|number| *number < 10);
    let mut words = name.split(['-', '@', ':']).map(number).skip_while(Option::is_none);
    let major = words.next()??;
    Some((major, words.next().flatten().unwrap_or_default()))
}

/// Names of the settings that are set and that `model` has no place for.
pub(super) fn ignored_settings(model: &str, settings: &CallSettings) -> Vec<&'static str> {
    let is_adaptive = |budget: &u32| *budget > 0 && !takes_budget(model);
    let budget = settings.reasoning_budget.filter(is_adaptive).map(|_| "reasoning_budget");
    let summary = settings.reasoning_summary.as_ref().filter(|_| !thinks(model, settings));
    let ignored = [
        settings.seed.map(|_| "seed"),
        budget,
        summary.map(|_| "reasoning_summary"),
        (!takes_temperature(model, settings)).then_some("temperature"),
        (!takes_top_p(model, settings)).then_some("top_p"),
    ];
    ignored.into_iter().flatten().collect()
}

/// Whether the temperature that is set can be sent.
fn takes_temperature(model: &str, settings: &CallSettings) -> bool {
    !thinks(model, settings) || settings.temperature.is_none_or(|it| it == THINKING_TEMPERATURE)
}

/// Whether the model accepts `top_p`.
fn takes_top_p(model: &str, settings: &CallSettings) -> bool {
    !thinks(model, settings) || settings.top_p.is_none_or(|it| THINKING_TOP_P.contains(&it))
}

/// Whether the settings have the model reason. Parameters that exclude reasoning are then left out of
/// every request, also of one without a budget: all calls of a conversation are made alike.
fn thinks(model: &str, settings: &CallSettings) -> bool {
    matches!(thinking(model, settings), Some(Thinking::Enabled { .. } | Thinking::Adaptive { .. }))
}

/// Refuses a budget that leaves nothing of the limit for the answer, as the provider does.
///
/// # Errors
/// If the limit that is set is not above the budget.
pub(super) fn check_limit(model: &str, settings: &CallSettings) -> Result<(), Refused> {
    let Some(Thinking::Enabled { budget_tokens, .. }) = thinking(model, settings) else {
        return Ok(());
    };
    match settings.max_tokens {
        Some(max_tokens) if max_tokens <= budget_tokens => Err(Refused::Unsupported(format!(
            "the setting reasoning_budget ({budget_tokens}) has to be below max_tokens \
             ({max_tokens}), which counts the reasoning, too: Anthropic refuses the request \
             otherwise, so nothing was sent; lower the one or raise the other"
        ))),
        Some(_) | None => Ok(()),
    }
}

/// Newer models decide themselves how much they reason, within an effort, and refuse a budget
/// (<https://platform.claude.com/docs/en/build-with-claude/adaptive-thinking>).
fn takes_budget(model: &str) -> bool {
    const ADAPTIVE: [&str; 2] = ["opus-4-7", "opus-4-8"];
    let model = model.to_ascii_lowercase().replace('.', "-");
    let Some((_, name)) = model.rsplit_once("claude-") else { return true };
    let is_old = version(&model).is_none_or(|version| version < (5, 0));
    is_old && !ADAPTIVE.iter().any(|name_part| name.starts_with(name_part))
}

/// The limit counts the reasoning, too, and has to be larger than its budget.
fn output_tokens_max(model: &str, settings: &CallSettings) -> u32 {
    match settings.reasoning_budget {
        Some(budget) if takes_budget(model) => {
            budget.saturating_add(TEXT_TOKENS_MAX).max(OUTPUT_TOKENS_MAX)
        }
        Some(_) | None => OUTPUT_TOKENS_MAX,
    }
}

/// Whether to reason is the model's own decision unless the settings say how much, or that the
/// reasoning is shown, which only one who reasons can do.
fn thinking(model: &str, settings: &CallSettings) -> Option<Thinking> {
    let display = settings.shows_reasoning().map(|shows| match shows {
        true => Display::Summarized,
        false => Display::Omitted,
    });
    match (settings.reasoning_budget, settings.reasoning_effort.as_deref()) {
        (Some(0), _) | (None, Some("none")) if always_thinks(model) => {
            display.map(|display| Thinking::Adaptive { display: Some(display) })
        }
        (Some(0), _) | (None, Some("none")) => Some(Thinking::Disabled),
        (Some(budget_tokens), _) if takes_budget(model) => {
            Some(Thinking::Enabled { budget_tokens, display })
        }
        (Some(_), _) => Some(Thinking::Adaptive { display }),
        (None, _) if display.is_some() && !takes_budget(model) => {
            Some(Thinking::Adaptive { display })
        }
        (None, _) => None,
    }
}

/// Models that refuse a request in which `thinking` is `disabled`.
fn always_thinks(model: &str) -> bool {
    const FAMILIES: [&str; 2] = ["fable", "mythos"];
    let model = model.to_ascii_lowercase();
    FAMILIES.iter().any(|family| model.contains(family))
}

/// The provider has no word for less than "low", which is the least reasoning of a model that always does.
fn effort<'a>(model: &str, settings: &'a CallSettings) -> Option<&'a str> {
    match (settings.reasoning_effort.as_deref(), settings.reasoning_budget) {
        (_, Some(0)) if always_thinks(model) => Some("low"),
        (Some("none"), _) | (None, Some(0)) => always_thinks(model).then_some("low"),
        (Some("minimal"), _) => Some("low"),
        (effort, _) => effort,
    }
}

impl OutputConfig<'_> {
    fn is_empty(&self) -> bool {
        self.effort.is_none() && self.format.is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn models_that_take_a_schema_are_known_by_their_version() {
        for new in [
            "claude-opus-4-5-20251101",
            "claude-haiku-4-5",
            "claude-sonnet-5",
            "anthropic/claude-opus-4.6",
            "anthropic.claude-sonnet-4-5-20250929-v1:0",
            "claude-sonnet-4-5@20250929",
        ] {
            assert!(takes_schemas(new), "{new}");
        }
        for old in [
            "claude-3-7-sonnet-20250219",
            "claude-3-5-haiku-latest",
            "claude-sonnet-4-20250514",
            "claude-opus-4-1",
            "claude-instant",
            "scripted",
            "",
        ] {
            assert!(!takes_schemas(old), "{old}");
        }
    }

    #[test]
    fn newer_models_take_no_budget() {
        for old in [
            "claude-sonnet-4-6",
            "claude-opus-4-5-20251101",
            "claude-3-7-sonnet-20250219",
            "anthropic/claude-opus-4.6",
            "claude-opus-4@20250514",
            "claude-3-7-sonnet:thinking",
            "scripted",
        ] {
            assert!(takes_budget(old), "{old}");
        }
        let budget = |budget| CallSettings { reasoning_budget: Some(budget), ..Default::default() };
        for new in [
            "claude-sonnet-5",
            "claude-opus-4-8",
            "anthropic/claude-opus-4.7",
            "claude-fable-5",
            "claude-opus-5@20261001",
            "claude-sonnet-5:thinking",
            "claude-opus-4-7@20260416",
        ] {
            assert!(!takes_budget(new), "{new}");
            assert_eq!(ignored_settings(new, &budget(2_048)), ["reasoning_budget"]);
            assert!(ignored_settings(new, &budget(0)).is_empty());
            assert!(matches!(thinking(new, &budget(2_048)), Some(Thinking::Adaptive { .. })));
            let is_disabled = matches!(thinking(new, &budget(0)), Some(Thinking::Disabled));
            assert_eq!(is_disabled, !always_thinks(new), "{new}");
        }
        let seed = CallSettings { seed: Some(1), ..CallSettings::default() };
        assert_eq!(ignored_settings("m", &seed), ["seed"]);
    }

    #[test]
    fn a_summary_of_the_reasoning_is_asked_for_where_the_model_reasons() {
        let check = |model: &str, budget, summary: &str, expected: &str, is_ignored: bool| {
            let reasoning_summary = Some(summary.to_owned());
            let reasoning_budget = budget;
            let settings =
                CallSettings { reasoning_budget, reasoning_summary, ..CallSettings::default() };
            let sent = serde_json::to_string(&thinking(model, &settings)).expect("JSON");
            assert_eq!(sent, expected, "{model} {summary}");
            let ignored = ignored_settings(model, &settings);
            assert_eq!(ignored.contains(&"reasoning_summary"), is_ignored, "{model} {summary}");
        };
        let adaptive = |display: &str| format!(r#"{{"type":"adaptive","display":"{display}"}}"#);
        let (new, old) = ("claude-opus-4-8", "claude-opus-4-5");
        check(new, None, "auto", &adaptive("summarized"), false);
        check(new, Some(5_000), "none", &adaptive("omitted"), false);
        check(new, Some(0), "auto", r#"{"type":"disabled"}"#, true);
        let enabled = r#"{"type":"enabled","budget_tokens":5000,"display":"summarized"}"#;
        check(old, Some(5_000), "auto", enabled, false);
        check(old, None, "auto", "null", true);
    }
}
