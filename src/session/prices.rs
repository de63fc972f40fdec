//! The cost of tokens, by a price list of the user. There is none built in: it would be wrong soon.
//! Pure.

use crate::conversation::event::Usage;
use crate::conversation::usage::{Cost, Spent};
use serde::Deserialize;
use std::collections::BTreeMap;

/// Fraction digits of a price that are read, and so the unit in which prices of a million tokens are
/// kept. A token's price is as many in 10^-12 of the currency.
const FRACTION_DIGITS: usize = 6;

/// Prices of models.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Prices {
    /// The currency of all prices, as `USD`.
    pub currency: String,
    /// The prices by model, or by `engine/model` where engines differ.
    pub models: BTreeMap<String, Price>,
}

/// The prices of a model, each of a million tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Price {
    /// Tokens of requests.
    pub input: PerMillion,
    /// Tokens of answers.
    pub output: PerMillion,
    /// Tokens of requests that were read from the cache.
    pub cached_input: Option<PerMillion>,
    /// Tokens of requests that were written to the cache.
    pub cache_write: Option<PerMillion>,
}

/// The price of a million tokens, in millionths of the currency.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "Decimal")]
pub struct PerMillion(u64);

/// A number as it is written.
#[derive(Deserialize)]
#[serde(untagged)]
enum Decimal {
    Number(f64),
    Text(String),
}

impl TryFrom<Decimal> for PerMillion {
    type Error = String;

    fn try_from(written: Decimal) -> Result<Self, String> {
        let text = match written {
            Decimal::Number(number) => number.to_string(),
            Decimal::Text(text) => text,
        };
        millionths(&text).map(Self).ok_or_else(|| {
            format!(
                "a price is a number like 0.15, with up to 6 digits after the point, not {text:?}"
            )
        })
    }
}

fn millionths(text: &str) -> Option<u64> {
    let (whole, fraction) = text.trim().split_once('.').unwrap_or((text.trim(), ""));
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || !is_number(whole) || !is_number(fraction) {
        return None;
    }
    if fraction.len() > FRACTION_DIGITS {
        return None;
    }
    format!("{whole}{fraction:0<FRACTION_DIGITS$}").parse().ok()
}

impl Prices {
    /// What a provider call of that model used, of whose counts its provider reported `usage`. `is_free`:
    /// without counts it used nothing, with any model.
    pub(crate) fn spent(
        &self,
        (engine, model): (&str, &str),
        usage: Option<&Usage>,
        is_free: bool,
    ) -> Spent {
        let cost = match usage {
            Some(usage) => self.cost(engine, model, usage),
            None => (is_free && *self != Self::default()).then(Cost::default),
        };
        Spent { is_free, cost: cost.map(|cost| (cost, self.currency.as_str().into())) }
    }

    /// The cost of `usage` with that model; `None` if the price of some of its tokens is not in the
    /// list.
    pub fn cost(&self, engine: &str, model: &str, usage: &Usage) -> Option<Cost> {
        let named = self.models.get(&format!("{engine}/{model}"));
        let price = named.or_else(|| self.models.get(model))?;
        let count = |tokens: i32| u128::try_from(tokens).unwrap_or_default();
        let (cached, written) = (count(usage.cached_tokens), count(usage.cache_creation_tokens));
        let plain = count(usage.input_tokens).saturating_sub(cached).saturating_sub(written);
        let parts = [
            (plain, Some(price.input)),
            (cached, price.cached_input),
            (written, price.cache_write),
            (count(usage.output_tokens), Some(price.output)),
        ];
        let cost = |(tokens, price): (u128, Option<PerMillion>)| match tokens {
            0 => Some(0),
            tokens => price.map(|price| tokens * u128::from(price.0)),
        };
        parts.into_iter().map(cost).sum::<Option<u128>>().map(Cost)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn prices() -> Prices {
        serde_json::from_value(json!({ "currency": "USD", "models": {
            "m": { "input": 0.15, "output": "0.60", "cached-input": 0.075, "cache-write": 0.2 },
            "openai/n": { "input": 3, "output": 15 },
        } }))
        .expect("prices")
    }

    fn usage(input: i32, output: i32, cached: i32, created: i32) -> Usage {
        Usage {
            input_tokens: input,
            output_tokens: output,
            cached_tokens: cached,
            cache_creation_tokens: created,
            ..Usage::default()
        }
    }

    #[test]
    fn each_part_has_its_own_price() {
        let check = |engine: &str, model: &str, usage: Usage, expected: Option<&str>| {
            let cost = prices().cost(engine, model, &usage).map(|cost| cost.to_string());
            assert_eq!(cost.as_deref(), expected, "{model} {usage:?}");
        };
        check("openai", "m", usage(1_000_000, 0, 0, 0), Some("0.150000"));
        check("openai", "m", usage(1_000_000, 1_000_000, 400_000, 100_000), Some("0.725000"));
        check("openai", "n", usage(1, 1, 0, 0), Some("0.000018"));
        check("openai", "n", usage(10, 0, 10, 0), None);
        check("openai", "n", usage(10, 0, 0, 10), None);
        check("gemini", "n", usage(1, 1, 0, 0), None);
        check("openai", "other", usage(1, 1, 0, 0), None);
        check("openai", "m", usage(i32::MAX, i32::MAX, 0, 0), Some("1610.612735"));
    }

    #[test]
    fn a_price_is_a_number_with_few_digits() {
        for (text, expected) in [
            ("0.15", Some(150_000)),
            ("3", Some(3_000_000)),
            ("0.000001", Some(1)),
            (" 2.5 ", Some(2_500_000)),
        ] {
            assert_eq!(millionths(text), expected, "{text:?}");
        }
        for text in ["", ".5", "-1", "1e3", "0.0000001", "1.2.3", "x", "99999999999999999999"] {
            assert_eq!(millionths(text), None, "{text:?}");
        }
    }

    #[test]
    fn an_unknown_member_is_refused() {
        let wrong = json!({ "currency": "USD", "models": { "m": { "inptu": 1, "output": 1 } } });
        assert!(serde_json::from_value::<Prices>(wrong).is_err());
    }
}
