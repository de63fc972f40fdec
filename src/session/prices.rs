//! The cost of tokens, by a price list of the user. There is none built in: it would be wrong soon.
//! Pure.

use crate::chat::event::Usage;
use serde::Deserialize;
use std::collections::BTreeMap;

/// Fraction digits of a price that are read, and so the unit in which prices of a million tokens are
/// kept. A token's price is as many in 10^-12 of the currency.
const FRACTION_DIGITS: usize = 6;

/// Picos of the currency: 10^-12.
const PICOS_PER_UNIT: u128 = 1_000_000_000_000;

/// Fraction digits of a cost that are written.
const COST_DIGITS: usize = 6;

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

/// A cost in 10^-12 of a currency.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cost(u128);

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
    /// The cost of a call that has used nothing, with any model; `None` if there is no list.
    pub(crate) fn of_nothing(&self) -> Option<Cost> {
        (*self != Self::default()).then(Cost::default)
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

impl std::ops::Add for Cost {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl std::str::FromStr for Cost {
    type Err = String;

    /// Reads what [`Cost`] writes: a decimal number with six digits after the point.
    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text:?} is no cost");
        let (whole, fraction) = text.split_once('.').ok_or_else(wrong)?;
        let is_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        if fraction.len() != COST_DIGITS || !is_digits(whole) || !is_digits(fraction) {
            return Err(wrong());
        }
        let millionths: u128 = format!("{whole}{fraction}").parse().map_err(|_| wrong())?;
        Ok(Self(millionths.saturating_mul(PICOS_PER_UNIT / 1_000_000)))
    }
}

impl std::fmt::Display for Cost {
    /// As a decimal number with six digits after the point, rounded to the nearest.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let per_digit = PICOS_PER_UNIT / 10u128.pow(u32::try_from(COST_DIGITS).unwrap_or(0));
        let millionths = self.0.saturating_add(per_digit / 2) / per_digit;
        let (whole, fraction) = (millionths / 1_000_000, millionths % 1_000_000);
        write!(f, "{whole}.{fraction:0COST_DIGITS$}")
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
