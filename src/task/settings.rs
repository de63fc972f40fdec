//! Settings of a provider call: their names and their precedence.

#[cfg(test)]
mod tests;
mod values;

use crate::support::secret::Secret;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};
use values::{count, headers, number, optional, structured, texts, whole, word};

/// The word for no summary of the reasoning.
const NO_SUMMARY: &str = "none";

/// Settings of a provider call. `None` leaves a setting to the provider.
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
    /// The summary of its reasoning that the provider is asked for, in the provider's words; `none` for
    /// no summary.
    pub reasoning_summary: Option<String>,
    /// Who makes the answer fit a schema.
    pub structured: Option<StructuredMode>,
    /// Members that are added to the body of the request, or replace those in it.
    pub extra_body: Map<String, Value>,
    /// Headers that are added to the request. A value may be a secret.
    pub extra_headers: BTreeMap<String, Secret>,
    /// Settings that are `null`, which replaces an earlier value.
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
    ReasoningSummary,
    Structured,
    ExtraBody,
    ExtraHeaders,
}

impl CallSettings {
    /// The names that [`CallSettings::set`] takes.
    pub const NAMES: [&str; 11] = [
        "temperature",
        "top_p",
        "max_tokens",
        "stop",
        "seed",
        "reasoning_effort",
        "reasoning_budget",
        "reasoning_summary",
        "structured",
        "extra_body",
        "extra_headers",
    ];

    /// Whether `name` is one of a setting, in any of its spellings.
    pub fn is_name(name: &str) -> bool {
        Setting::named(name).is_some()
    }

    /// Whether the values of `name` are numbers.
    pub(crate) fn is_number(name: &str) -> bool {
        match Setting::named(name) {
            Some(
                Setting::Temperature
                | Setting::TopP
                | Setting::MaxTokens
                | Setting::Seed
                | Setting::ReasoningBudget,
            ) => true,
            Some(
                Setting::Stop
                | Setting::ReasoningEffort
                | Setting::ReasoningSummary
                | Setting::Structured
                | Setting::ExtraBody
                | Setting::ExtraHeaders,
            )
            | None => false,
        }
    }

    /// Whether both are names of one setting.
    pub(crate) fn is_same_name(one: &str, other: &str) -> bool {
        Setting::named(one) == Setting::named(other)
    }

    /// Whether the value of `name` may hold a key, so that it is never stored.
    pub(crate) fn may_hold_key(name: &str) -> bool {
        matches!(Setting::named(name), Some(Setting::ExtraBody | Setting::ExtraHeaders))
    }

    /// Sets the setting `name`: `top_p`, `top-p` and `topP` are the same. `null` leaves it to the
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
                    .ok_or_else(|| wrong("a whole number from 1 to 4294967295"))?;
            }
            Setting::Stop => {
                self.stop = optional(value, texts)
                    .ok_or_else(|| wrong("a text, or a list of up to 16 texts"))?;
                // Providers refuse an empty list, with which a person clears that of a profile.
                if self.stop.take_if(|texts| texts.is_empty()).is_some() {
                    self.cleared.insert(setting);
                }
            }
            Setting::Seed => {
                self.seed = optional(value, whole)
                    .ok_or_else(|| wrong("a whole number up to 9223372036854775807"))?;
            }
            Setting::ReasoningEffort => {
                self.reasoning_effort = optional(value, word)
                    .ok_or_else(|| wrong("a word of the provider, as low, medium or high"))?;
            }
            Setting::ReasoningBudget => {
                self.reasoning_budget = optional(value, count)
                    .ok_or_else(|| wrong("a whole number of tokens up to 4294967295"))?;
            }
            Setting::ReasoningSummary => {
                self.reasoning_summary = optional(value, word)
                    .ok_or_else(|| wrong("auto, none, or another word of the provider"))?;
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
            reasoning_summary: over.reasoning_summary.or(base.reasoning_summary),
            structured: over.structured.or(base.structured),
            extra_body: base.extra_body,
            extra_headers: base.extra_headers,
            // A setting that both leave to the provider still replaces the value of an earlier layer.
            cleared: &base.cleared | &other.cleared,
        }
    }

    /// Whether the reasoning of the model is to be shown; `None` to leave that to the provider.
    pub(crate) fn shows_reasoning(&self) -> Option<bool> {
        self.reasoning_summary.as_deref().map(|summary| summary != NO_SUMMARY)
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
            Setting::ReasoningSummary => self.reasoning_summary = None,
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
            "reasoningsummary" => Self::ReasoningSummary,
            "structured" => Self::Structured,
            "extrabody" => Self::ExtraBody,
            "extraheaders" => Self::ExtraHeaders,
            _ => return None,
        })
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
