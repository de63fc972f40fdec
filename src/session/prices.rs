//! The cost of tokens: by the list prices that come with the program, or by a price list of the user.
//! Pure.

use crate::conversation::event::Usage;
use crate::conversation::usage::{Cost, Spent};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

/// The prices that come with the program, in the form of a user's list.
const BUILT_IN: &str = include_str!("prices/list.json");

/// Fraction digits of a price that are read, and so the unit in which prices of a million tokens are
/// kept. A token's price is as many in 10^-12 of the currency.
const FRACTION_DIGITS: usize = 6;

/// Which prices calls are counted by.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum PriceList {
    /// None: no call has a cost.
    #[default]
    Unknown,
    /// The public list prices of well-known models that come with the program.
    BuiltIn,
    /// The prices of the user's list, and no others.
    Own(Arc<Prices>),
}

/// Prices of models.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Prices {
    /// The day on which the prices were read.
    #[serde(default)]
    pub as_of: String,
    /// Where they come from.
    #[serde(default)]
    pub source: String,
    /// The currency of all prices, as `USD`.
    pub currency: String,
    /// The prices by model, by `engine/model`, or by `host/model` of a provider.
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
    /// The prices of a call with a longer request.
    pub above: Option<LongPrice>,
    /// Tokens of the longest conversation that the model can be sent.
    pub context_window: Option<u32>,
}

/// The prices of all tokens of a call whose request has more tokens than most.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct LongPrice {
    /// Requests of up to this many tokens have the other prices.
    pub tokens: u32,
    /// Tokens of requests.
    pub input: PerMillion,
    /// Tokens of answers.
    pub output: PerMillion,
    /// Tokens of requests that were read from the cache.
    pub cached_input: Option<PerMillion>,
}

/// A model of a provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PricedModel<'a> {
    /// The engine, as `openai`.
    pub engine: &'a str,
    /// The provider's host.
    pub host: &'a str,
    /// The model's name.
    pub name: &'a str,
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

impl Cost {
    /// The cost in `text`, as in 1.50: with up to six digits after the point.
    pub fn read(text: &str) -> Option<Self> {
        // A millionth is as many picos.
        millionths(text).map(|millionths| Self(u128::from(millionths) * 1_000_000))
    }
}

impl PriceList {
    /// What a provider call of `model` used, of whose counts its provider reported `usage`. `is_free`:
    /// without counts it used nothing.
    pub(crate) fn spent(
        &self,
        model: PricedModel<'_>,
        usage: Option<&Usage>,
        is_free: bool,
    ) -> Spent {
        let Some(prices) = self.prices() else { return Spent { is_free, cost: None } };
        // A user's list is for whatever answers; the other one says nothing of models that it has not.
        let is_for_all = matches!(self, Self::Own(_));
        let cost = match usage {
            Some(usage) => prices.cost(model, usage),
            None => {
                let is_nothing = is_free && (is_for_all || prices.price(model).is_some());
                is_nothing.then(Cost::default)
            }
        };
        Spent { is_free, cost: cost.map(|cost| (cost, prices.currency.as_str().into())) }
    }

    /// The prices; `None` if there are none.
    pub fn prices(&self) -> Option<&Prices> {
        match self {
            Self::Unknown => None,
            Self::BuiltIn => Prices::built_in(),
            Self::Own(prices) => Some(prices),
        }
    }
}

impl Prices {
    /// The list prices that come with the program, read when they are first needed.
    fn built_in() -> Option<&'static Self> {
        // A test reads them.
        static READ: LazyLock<Option<Prices>> =
            LazyLock::new(|| serde_json::from_str(BUILT_IN).ok());
        READ.as_ref()
    }

    /// The price of `model`: under its own name, or else under that without the date of its version.
    pub fn price(&self, model: PricedModel<'_>) -> Option<&Price> {
        let PricedModel { engine, host, name } = model;
        let named = |name: &str| {
            let keys = [format!("{host}/{name}"), format!("{engine}/{name}"), name.to_owned()];
            keys.iter().find_map(|key| self.models.get(key))
        };
        // Google's names may have their collection before them.
        let name = name.strip_prefix("models/").unwrap_or(name);
        named(name).or_else(|| undated(name).and_then(named))
    }

    /// The cost of `usage` with `model`; `None` if the price of some of its tokens is not in the list.
    pub fn cost(&self, model: PricedModel<'_>, usage: &Usage) -> Option<Cost> {
        let count = |tokens: i32| u128::try_from(tokens).unwrap_or_default();
        let input = count(usage.input_tokens);
        let price = self.price(model)?.for_request(input);
        let (cached, written) = (count(usage.cached_tokens), count(usage.cache_creation_tokens));
        let plain = input.saturating_sub(cached).saturating_sub(written);
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

impl Price {
    /// The prices of a call whose request has this many tokens.
    fn for_request(&self, tokens: u128) -> Self {
        match self.above {
            Some(long) if tokens > u128::from(long.tokens) => Self {
                input: long.input,
                output: long.output,
                cached_input: long.cached_input,
                cache_write: None,
                ..*self
            },
            Some(_) | None => *self,
        }
    }
}

/// The name of a model without the date of its version at the end: `-20251001` or `-2025-10-01`.
fn undated(name: &str) -> Option<&str> {
    const FORMS: [&str; 2] = ["-dddddddd", "-dddd-dd-dd"];
    let has = |form: &&str| {
        let end = name.len().checked_sub(form.len())?;
        let (name, date) = name.split_at_checked(end)?;
        let fits = |(c, form): (u8, u8)| if form == b'd' { c.is_ascii_digit() } else { c == form };
        date.bytes().zip(form.bytes()).all(fits).then_some(name)
    };
    FORMS.iter().find_map(has)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn prices() -> Prices {
        serde_json::from_value(json!({ "currency": "USD", "models": {
            "m": { "input": 0.15, "output": "0.60", "cached-input": 0.075, "cache-write": 0.2 },
            "openai/n": { "input": 3, "output": 15 },
            "other/p": { "input": 1, "output": 1 },
            "long": { "input": 1, "output": 1, "cache-write": 1,
                "above": { "tokens": 100, "input": 2, "output": 4, "cached-input": 1 } },
        } }))
        .expect("prices")
    }

    /// The prices that come with the program are of the providers themselves, by their own hosts.
    #[test]
    fn prices_of_well_known_models_come_with_the_program() {
        let list = PriceList::BuiltIn;
        let prices = list.prices().expect("the list can be read");
        assert!(prices.models.len() > 30 && prices.currency == "USD", "{prices:?}");
        assert!(prices.as_of.starts_with("20") && prices.source.contains("OpenAI"), "{prices:?}");
        for (name, price) in &prices.models {
            assert!(name.split_once('/').is_some_and(|(host, _)| host.contains('.')), "{name}");
            let (input, output) = (price.input.0, price.output.0);
            assert!(0 < input && input < output, "{name}");
            assert!(price.cached_input.is_none_or(|cached| cached.0 < input), "{name}");
            assert!(price.cache_write.is_none_or(|written| written.0 > input), "{name}");
            assert!(price.context_window.is_some_and(|tokens| tokens >= 100_000), "{name}");
        }
        let model = |host, name| PricedModel { engine: "anthropic", host, name };
        let spent = |host, name, usage: Option<&Usage>| {
            let spent = list.spent(model(host, name), usage, usage.is_none());
            spent.cost.map(|(cost, currency)| format!("{cost} {currency}"))
        };
        let used = usage(1_000_000, 1_000_000, 0, 0);
        let host = "api.anthropic.com";
        for name in ["claude-haiku-4-5", "claude-haiku-4-5-20251001"] {
            assert_eq!(spent(host, name, Some(&used)).as_deref(), Some("6.000000 USD"), "{name}");
            assert_eq!(spent(host, name, None).as_deref(), Some("0.000000 USD"), "{name}");
            // Another server may take another price.
            assert_eq!(spent("proxy.example", name, Some(&used)), None);
        }
        assert_eq!(spent(host, "unknown", Some(&used)), None);
        assert_eq!(spent(host, "unknown", None), None);
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
        let check = |engine: &str, name: &str, usage: Usage, expected: Option<&str>| {
            let model = PricedModel { engine, host: "h", name };
            let cost = prices().cost(model, &usage).map(|cost| cost.to_string());
            assert_eq!(cost.as_deref(), expected, "{name} {usage:?}");
        };
        check("openai", "m", usage(1_000_000, 0, 0, 0), Some("0.150000"));
        check("openai", "m", usage(1_000_000, 1_000_000, 400_000, 100_000), Some("0.725000"));
        check("openai", "n", usage(1, 1, 0, 0), Some("0.000018"));
        check("openai", "n", usage(10, 0, 10, 0), None);
        check("openai", "n", usage(10, 0, 0, 10), None);
        check("gemini", "n", usage(1, 1, 0, 0), None);
        check("openai", "other", usage(1, 1, 0, 0), None);
        check("openai", "m", usage(i32::MAX, i32::MAX, 0, 0), Some("1610.612735"));
        check("openai", "m-20250101", usage(1_000_000, 0, 0, 0), Some("0.150000"));
        check("openai", "m-2025-01-01", usage(1_000_000, 0, 0, 0), Some("0.150000"));
        check("openai", "m-250101", usage(1, 0, 0, 0), None);
        check("openai", "p", usage(1_000_000, 0, 0, 0), None);
        check("openai", "long", usage(100, 0, 0, 0), Some("0.000100"));
        check("openai", "long", usage(101, 1, 1, 0), Some("0.000205"));
        check("openai", "long", usage(101, 0, 0, 1), None);
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
