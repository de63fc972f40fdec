//! What a provider call is given: the conversation, the tools, the engine and model, settings and the
//! schema of the answer. Pure.

mod subset;

use self::subset::{ANTHROPIC, OPENAI_STRICT};
use super::table::EngineRef;
use crate::chat::tool::ToolSpec;
use crate::chat::transcript::Transcript;
use crate::support::secret::Secret;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Stop sequences of a call. Providers allow fewer: their errors say so.
const STOP_SEQUENCES_MAX: usize = 16;

/// Bytes of a word that only the provider knows, as `reasoning_effort`.
const WORD_BYTES_MAX: usize = 64;

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

/// Settings of a provider call. What is `None` is left to the provider.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CallSettings {
    /// How random the choice of words is, from 0.
    pub temperature: Option<f64>,
    /// The share of likely words that are chosen from, 0 to 1.
    pub top_p: Option<f64>,
    /// Tokens of the answer, its reasoning included where the provider counts it so.
    pub max_tokens: Option<u32>,
    /// Texts that end the answer.
    pub stop: Option<Vec<String>>,
    /// Makes answers repeatable, as far as the provider can.
    pub seed: Option<i64>,
    /// How much the model reasons, in the provider's words.
    pub reasoning_effort: Option<String>,
    /// Tokens that the model may reason with.
    pub reasoning_budget: Option<u32>,
    /// Who makes the answer fit a schema.
    pub structured: Option<StructuredMode>,
    /// Members that are added to the body of the request, or replace those in it.
    pub extra_body: Map<String, Value>,
    /// Headers that are added to the request. A value may be a secret.
    pub extra_headers: BTreeMap<String, Secret>,
    /// What `null` was given for: it replaces an earlier value.
    pub(crate) cleared: BTreeSet<Setting>,
}

/// Who makes the answer fit a schema. It is checked in any case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StructuredMode {
    /// The provider.
    Native,
    /// The model: the schema is a part of its instructions.
    Prompt,
}

/// What an answer must be like.
#[derive(Clone, Debug, PartialEq)]
pub struct ResponseSchema {
    /// A name of letters, digits, `_` and `-`, as providers want one.
    pub name: String,
    /// The JSON Schema.
    pub schema: Map<String, Value>,
}

/// The names of the settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Setting {
    Temperature,
    TopP,
    MaxTokens,
    Stop,
    Seed,
    ReasoningEffort,
    ReasoningBudget,
    Structured,
    ExtraBody,
    ExtraHeaders,
}

impl CallSettings {
    /// The names that [`CallSettings::set`] takes.
    pub const NAMES: [&str; 10] = [
        "temperature",
        "top_p",
        "max_tokens",
        "stop",
        "seed",
        "reasoning_effort",
        "reasoning_budget",
        "structured",
        "extra_body",
        "extra_headers",
    ];

    /// Whether `name` is one of a setting, in any of its spellings.
    pub fn is_name(name: &str) -> bool {
        Setting::named(name).is_some()
    }

    /// Whether both are names of one setting.
    pub(crate) fn is_same_name(one: &str, other: &str) -> bool {
        Setting::named(one) == Setting::named(other)
    }

    /// Whether the value of `name` may hold a key, so that it is never stored.
    pub(crate) fn may_hold_key(name: &str) -> bool {
        matches!(Setting::named(name), Some(Setting::ExtraBody | Setting::ExtraHeaders))
    }

    /// Sets what `name` names: `top_p`, `top-p` and `topP` are the same. `null` leaves it to the
    /// provider.
    ///
    /// # Errors
    /// If there is no such setting, or it can't have that value: why, for a message. Holds no value
    /// of `extra_headers`.
    pub fn set(&mut self, name: &str, value: &Value) -> Result<(), String> {
        let Some(setting) = Setting::named(name) else {
            let known = Self::NAMES.join(", ");
            return Err(format!("there is no setting {name:?}; the settings are {known}"));
        };
        let wrong = |expected: &str| format!("{name} must be {expected}");
        match value.is_null() {
            true => self.cleared.insert(setting),
            false => self.cleared.remove(&setting),
        };
        match setting {
            Setting::Temperature => {
                self.temperature = optional(value, |value| number(value, 0.0, 2.0))
                    .ok_or_else(|| wrong("a number from 0 to 2"))?;
            }
            Setting::TopP => {
                self.top_p = optional(value, |value| number(value, 0.0, 1.0))
                    .ok_or_else(|| wrong("a number from 0 to 1"))?;
            }
            Setting::MaxTokens => {
                self.max_tokens = optional(value, |value| count(value).filter(|count| *count > 0))
                    .ok_or_else(|| wrong("a whole number from 1"))?;
            }
            Setting::Stop => {
                self.stop = optional(value, texts)
                    .ok_or_else(|| wrong("a text, or a list of up to 16 texts"))?;
            }
            Setting::Seed => {
                self.seed = optional(value, whole).ok_or_else(|| wrong("a whole number"))?;
            }
            Setting::ReasoningEffort => {
                self.reasoning_effort = optional(value, word)
                    .ok_or_else(|| wrong("a word of the provider, as low, medium or high"))?;
            }
            Setting::ReasoningBudget => {
                self.reasoning_budget =
                    optional(value, count).ok_or_else(|| wrong("a whole number of tokens"))?;
            }
            Setting::Structured => {
                self.structured =
                    optional(value, structured).ok_or_else(|| wrong("\"native\" or \"prompt\""))?;
            }
            Setting::ExtraBody => {
                let members = optional(value, |value| value.as_object().cloned());
                self.extra_body =
                    members.ok_or_else(|| wrong("a JSON object"))?.unwrap_or_default();
            }
            Setting::ExtraHeaders => {
                self.extra_headers = optional(value, headers)
                    .ok_or_else(|| wrong("an object of header names and their texts"))?
                    .unwrap_or_default();
            }
        }
        Ok(())
    }

    /// These settings, with those that `other` has in their place.
    #[must_use]
    pub fn overlay(&self, other: &Self) -> Self {
        let mut base = self.clone();
        for setting in &other.cleared {
            base.clear(*setting);
        }
        merge(&mut base.extra_body, &other.extra_body);
        base.extra_headers.extend(other.extra_headers.clone());
        let over = other.clone();
        Self {
            temperature: over.temperature.or(base.temperature),
            top_p: over.top_p.or(base.top_p),
            max_tokens: over.max_tokens.or(base.max_tokens),
            stop: over.stop.or(base.stop),
            seed: over.seed.or(base.seed),
            reasoning_effort: over.reasoning_effort.or(base.reasoning_effort),
            reasoning_budget: over.reasoning_budget.or(base.reasoning_budget),
            structured: over.structured.or(base.structured),
            extra_body: base.extra_body,
            extra_headers: base.extra_headers,
            // What both leave to the provider still replaces what comes before both.
            cleared: &base.cleared | &other.cleared,
        }
    }

    fn clear(&mut self, setting: Setting) {
        match setting {
            Setting::Temperature => self.temperature = None,
            Setting::TopP => self.top_p = None,
            Setting::MaxTokens => self.max_tokens = None,
            Setting::Stop => self.stop = None,
            Setting::Seed => self.seed = None,
            Setting::ReasoningEffort => self.reasoning_effort = None,
            Setting::ReasoningBudget => self.reasoning_budget = None,
            Setting::Structured => self.structured = None,
            Setting::ExtraBody => self.extra_body.clear(),
            Setting::ExtraHeaders => self.extra_headers.clear(),
        }
    }
}

impl Setting {
    fn named(name: &str) -> Option<Self> {
        let letters = name.chars().filter(|c| !matches!(c, '_' | '-'));
        let plain = letters.map(|c| c.to_ascii_lowercase()).collect::<String>();
        Some(match plain.as_str() {
            "temperature" => Self::Temperature,
            "topp" => Self::TopP,
            "maxtokens" => Self::MaxTokens,
            "stop" => Self::Stop,
            "seed" => Self::Seed,
            "reasoningeffort" => Self::ReasoningEffort,
            "reasoningbudget" => Self::ReasoningBudget,
            "structured" => Self::Structured,
            "extrabody" => Self::ExtraBody,
            "extraheaders" => Self::ExtraHeaders,
            _ => return None,
        })
    }
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

/// Adds the members of `from` to `into`. Objects that both have are merged, too.
pub(crate) fn merge(into: &mut Map<String, Value>, from: &Map<String, Value>) {
    for (name, value) in from {
        match (into.get_mut(name), value) {
            (Some(Value::Object(into)), Value::Object(from)) => merge(into, from),
            (Some(_) | None, _) => {
                into.insert(name.clone(), value.clone());
            }
        }
    }
}

/// `None` if the value is wrong; `Some(None)` if it is `null`.
fn optional<T>(value: &Value, read: impl FnOnce(&Value) -> Option<T>) -> Option<Option<T>> {
    if value.is_null() { Some(None) } else { read(value).map(Some) }
}

fn number(value: &Value, min: f64, max: f64) -> Option<f64> {
    value.as_f64().filter(|number| (min..=max).contains(number))
}

/// A whole number, also one that is written with a fraction of 0, as protobuf's `Struct` does.
fn whole(value: &Value) -> Option<i64> {
    const EXACT_MAX: f64 = 9_007_199_254_740_992.0;
    let from_float = || {
        let float =
            value.as_f64().filter(|float| float.fract() == 0.0 && float.abs() <= EXACT_MAX)?;
        format!("{float:.0}").parse().ok()
    };
    value.as_i64().or_else(from_float)
}

fn count(value: &Value) -> Option<u32> {
    whole(value).and_then(|count| u32::try_from(count).ok())
}

fn word(value: &Value) -> Option<String> {
    let word = value.as_str()?.trim();
    let is_fine = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    let fits = (1..=WORD_BYTES_MAX).contains(&word.len());
    (fits && word.chars().all(is_fine)).then(|| word.to_owned())
}

fn texts(value: &Value) -> Option<Vec<String>> {
    let text = |value: &Value| value.as_str().filter(|text| !text.is_empty()).map(str::to_owned);
    match value {
        Value::Array(texts) if texts.len() <= STOP_SEQUENCES_MAX => {
            texts.iter().map(text).collect()
        }
        Value::Array(_)
        | Value::Null
        | Value::Bool(_)
        | Value::Number(_)
        | Value::String(_)
        | Value::Object(_) => text(value).map(|text| vec![text]),
    }
}

fn structured(value: &Value) -> Option<StructuredMode> {
    match value.as_str()? {
        "native" => Some(StructuredMode::Native),
        "prompt" => Some(StructuredMode::Prompt),
        _ => None,
    }
}

fn headers(value: &Value) -> Option<BTreeMap<String, Secret>> {
    let header = |(name, value): (&String, &Value)| {
        http::HeaderName::try_from(name.as_str()).ok()?;
        let text = value.as_str()?;
        http::HeaderValue::try_from(text).ok()?;
        Some((name.to_ascii_lowercase(), Secret::new(text)?))
    };
    value.as_object()?.iter().map(header).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn settings(all: &Value) -> Result<CallSettings, String> {
        let mut settings = CallSettings::default();
        for (name, value) in all.as_object().expect("an object") {
            settings.set(name, value)?;
        }
        Ok(settings)
    }

    #[test]
    fn every_setting_is_read_in_every_spelling() {
        let read = settings(&json!({
            "temperature": 0.5, "topP": 1, "max-tokens": 100.0, "stop": "END", "seed": -7,
            "reasoning_effort": "low", "reasoningBudget": 1024, "structured": "prompt",
            "extra_body": { "a": { "b": 1 } }, "extra_headers": { "X-Team": "blue" },
        }));
        let read = read.expect("good settings");
        assert_eq!(
            (read.temperature, read.top_p, read.max_tokens),
            (Some(0.5), Some(1.0), Some(100))
        );
        assert_eq!((read.stop.as_deref(), read.seed), (Some(&["END".to_owned()][..]), Some(-7)));
        assert_eq!(
            (read.reasoning_effort.as_deref(), read.reasoning_budget),
            (Some("low"), Some(1024))
        );
        assert_eq!(read.structured, Some(StructuredMode::Prompt));
        assert_eq!(read.extra_headers["x-team"].expose(), "blue");
        for name in CallSettings::NAMES {
            assert!(CallSettings::is_name(name), "{name}");
            assert_eq!(read.clone().set(name, &Value::Null), Ok(()), "{name}");
        }
    }

    #[test]
    fn a_wrong_value_is_refused_and_a_header_is_not_shown() {
        for (name, value) in [
            ("temperature", json!(2.1)),
            ("temperature", json!("warm")),
            ("top_p", json!(-0.1)),
            ("max_tokens", json!(0)),
            ("max_tokens", json!(1.5)),
            ("stop", json!([""])),
            ("stop", json!(vec!["x"; 17])),
            ("seed", json!(0.5)),
            ("reasoning_effort", json!("very high")),
            ("reasoning_budget", json!(-1)),
            ("structured", json!("maybe")),
            ("extra_body", json!([])),
            ("extra_headers", json!({ "a b": "hunter2" })),
            ("temprature", json!(1)),
        ] {
            let why = settings(&json!({ name: value })).expect_err(name);
            assert!(why.contains(name) && !why.contains("hunter2"), "{why}");
        }
    }

    #[test]
    fn later_settings_replace_earlier_ones_and_objects_are_merged() {
        let base =
            json!({ "temperature": 0.5, "seed": 1, "extra_body": { "a": { "b": 1, "c": 2 } } });
        let over = json!({ "seed": 2, "extra_body": { "a": { "c": 3 }, "d": 4 } });
        let merged = settings(&base).expect("base").overlay(&settings(&over).expect("over"));
        assert_eq!((merged.temperature, merged.seed), (Some(0.5), Some(2)));
        assert_eq!(Value::Object(merged.extra_body), json!({ "a": { "b": 1, "c": 3 }, "d": 4 }));
        let cleared = json!({ "temperature": null, "extra_body": null, "stop": "a" });
        let cleared = settings(&base).expect("base").overlay(&settings(&cleared).expect("over"));
        assert_eq!((cleared.temperature, cleared.seed), (None, Some(1)));
        assert!(cleared.extra_body.is_empty() && cleared.stop.is_some());
        let again = cleared.overlay(&settings(&json!({ "temperature": 1 })).expect("again"));
        assert_eq!(again.temperature, Some(1.0));
    }
}
