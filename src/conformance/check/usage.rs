//! Checks token counts and costs: those of a call are those that its provider has reported, and those
//! of a run and of the session are sums.

use super::names::{Namer, shown};
use super::rule::{Report, Rule};
use crate::protocol::proto::chat::UsageInfo;
use crate::protocol::proto::session::TokenCounts;

/// Digits after the point of a cost that are compared.
const COST_DIGITS: usize = 6;

/// The names of the counts, in the order of [`Totals::counts`].
const NAMES: [&str; 7] = [
    "providerCalls",
    "uncountedCalls",
    "inputTokens",
    "outputTokens",
    "cachedTokens",
    "cacheCreationTokens",
    "reasoningTokens",
];

/// Counts of a call, a run or the session.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Totals {
    counts: [u64; NAMES.len()],
    /// In millionths of its currency.
    cost: u128,
    /// A call is counted whose cost is not known.
    has_unknown_cost: bool,
    /// A call is left out whose counts were not reported.
    pub(super) is_unknown: bool,
}

/// The counts at the end of a call: input, output, read from the cache, written to it. `None` if the
/// provider has reported none.
pub(super) type CallUsage = Option<[u64; 4]>;

pub(super) fn call_usage(usage: Option<&UsageInfo>) -> CallUsage {
    let count = |tokens: i32| u64::try_from(tokens).unwrap_or_default();
    usage.map(|usage| {
        [
            count(usage.input_tokens),
            count(usage.output_tokens),
            count(usage.cached_tokens),
            count(usage.cache_creation_input_tokens),
        ]
    })
}

impl Totals {
    /// Reads the counts of `what`, and compares the currency with that of the earlier ones.
    pub(super) fn read(
        what: &str,
        counts: Option<&TokenCounts>,
        (currency, namer): (&mut Option<u64>, &Namer),
        report: &mut Report,
    ) -> Self {
        let Some(it) = counts else {
            report.add(Rule::MissingField, format!("UsageTotals has no {what}"));
            return Self::default();
        };
        if it.cost.is_empty() != it.currency.is_empty() {
            let message =
                format!("{what} of UsageTotals has a cost or a currency without the other");
            report.add(Rule::MissingField, message);
        }
        let key = namer.key(&it.currency);
        if !it.currency.is_empty() && *currency.get_or_insert(key) != key {
            let given = shown(&it.currency);
            let message = format!("the currency of {what} is {given:?}; it was another one");
            report.add(Rule::FieldChanged, message);
        }
        let cost = millionths(&it.cost);
        if cost.is_none() && !it.cost.is_empty() {
            let given = shown(&it.cost);
            let message = format!("the cost of {what}, {given:?}, is not a decimal number");
            report.add(Rule::WrongValue, message);
        }
        Self {
            counts: [
                it.provider_calls.into(),
                it.uncounted_calls.into(),
                it.input_tokens,
                it.output_tokens,
                it.cached_tokens,
                it.cache_creation_tokens,
                it.reasoning_tokens,
            ],
            cost: cost.unwrap_or_default(),
            has_unknown_cost: it.cost.is_empty() && it.provider_calls > 0,
            is_unknown: false,
        }
    }

    /// These counts with those of a call.
    pub(super) fn and(self, call: Self) -> Self {
        let counts = std::array::from_fn(|at| self.counts[at].saturating_add(call.counts[at]));
        Self {
            counts,
            cost: self.cost.saturating_add(call.cost),
            has_unknown_cost: self.has_unknown_cost || call.has_unknown_cost,
            is_unknown: self.is_unknown,
        }
    }

    /// Compares the counts of a call with those at its end. Reasoning is not among these. `has_failed`:
    /// its provider may have refused it, which is counted as a call without tokens.
    pub(super) fn check_call(&self, (usage, has_failed): (CallUsage, bool), report: &mut Report) {
        let reasoning = self.counts[NAMES.len() - 1];
        let expected = match usage {
            None if has_failed && self.counts[..2] == [1, 0] => [1, 0, 0, 0, 0, 0, 0],
            None => [0, 1, 0, 0, 0, 0, 0],
            Some([input, output, cached, written]) => {
                [1, 0, input, output, cached, written, reasoning]
            }
        };
        self.check_counts("call", expected, report);
        if usage.is_none() && self.cost > 0 {
            let message = "a provider call without token counts has a cost";
            report.add(Rule::TokenCounts, message);
        }
    }

    /// Compares the counts with the sum of those of the calls, if that is known.
    pub(super) fn check_sum(&self, what: &str, expected: Self, report: &mut Report) {
        if expected.is_unknown {
            return;
        }
        self.check_counts(what, expected.counts, report);
        // Each cost is rounded.
        let tolerance = u128::from(expected.counts[0]);
        let differs = self.cost.abs_diff(expected.cost) > tolerance && !expected.has_unknown_cost;
        if differs || self.has_unknown_cost != expected.has_unknown_cost {
            let message = format!(
                "the cost of {what} is not the sum of the costs of its calls, or is set though one \
                 of these is unknown"
            );
            report.add(Rule::TokenCounts, message);
        }
    }

    fn check_counts(&self, what: &str, expected: [u64; NAMES.len()], report: &mut Report) {
        for ((name, given), expected) in NAMES.iter().zip(self.counts).zip(expected) {
            if given != expected {
                let message =
                    format!("{name} of {what} is {given}, but the provider calls make {expected}");
                report.add(Rule::TokenCounts, message);
            }
        }
    }
}

/// A decimal number in millionths; further digits are ignored.
fn millionths(text: &str) -> Option<u128> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !is_number(whole) || !is_number(fraction) {
        return None;
    }
    let fraction = &fraction[..fraction.len().min(COST_DIGITS)];
    format!("{whole}{fraction:0<COST_DIGITS$}").parse().ok()
}
