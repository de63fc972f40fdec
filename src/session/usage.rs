//! Token counts and costs of a call, of a run and of the session.

use crate::chat::event::{CallCounts, Usage};
use crate::protocol::proto::chat::UsageInfo;
use crate::protocol::proto::session::TokenCounts;
use crate::session::prices::{Cost, Prices};
use std::sync::Arc;

/// The token usage of a finished provider call.
#[derive(Clone, Copy, Debug)]
pub(super) enum Spent<'a> {
    /// The counts of its provider.
    Counted(&'a Usage),
    /// Nothing: nothing was sent, or the provider has refused the request.
    Nothing,
    /// Something that nobody has reported, as for a call that was cancelled.
    Unknown,
}

impl<'a> Spent<'a> {
    /// `is_free`: without counts, the provider has done nothing.
    pub(super) fn of(usage: Option<&'a Usage>, is_free: bool) -> Self {
        match usage {
            Some(usage) => Self::Counted(usage),
            None if is_free => Self::Nothing,
            None => Self::Unknown,
        }
    }
}

/// Counts tokens as provider calls end.
#[derive(Clone, Debug, Default)]
pub(super) struct UsageMeter {
    prices: Arc<Prices>,
    run: Totals,
    session: Totals,
}

impl UsageMeter {
    pub(super) fn new(prices: Arc<Prices>) -> Self {
        Self { prices, ..Self::default() }
    }

    pub(super) fn run_started(&mut self) {
        self.run = Totals::default();
    }

    /// The counts of the session; `None` if no provider was called.
    pub(super) fn session(&self) -> Option<TokenCounts> {
        let is_used = self.session != Totals::default();
        is_used.then(|| self.session.on_wire(&self.prices))
    }

    /// Restores the counts of an earlier process.
    pub(super) fn resume(&mut self, counts: &TokenCounts) {
        self.session = Totals::of_stored(counts, &self.prices);
    }

    /// Counts a call of a run that was cut off in an earlier process. Which model it was is not known,
    /// and so no cost.
    pub(super) fn call_was_cut_off(&mut self, usage: Option<&UsageInfo>) {
        let call = usage.map_or_else(Totals::of_uncounted_call, Totals::of_shown_call);
        self.session.add(call);
    }

    /// Adds a finished call of that model; returns the new totals.
    pub(super) fn call_ended(&mut self, engine: &str, model: &str, spent: Spent<'_>) -> CallCounts {
        let call = match spent {
            Spent::Counted(usage) => Totals::of_call(usage, self.prices.cost(engine, model, usage)),
            Spent::Nothing => Totals::of_call(&Usage::default(), self.prices.of_nothing()),
            Spent::Unknown => Totals::of_uncounted_call(),
        };
        self.run.add(call);
        self.session.add(call);
        let on_wire = |totals: Totals| totals.on_wire(&self.prices);
        CallCounts { call: on_wire(call), run: on_wire(self.run), session: on_wire(self.session) }
    }
}

/// Counts that add up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Totals {
    calls: u32,
    uncounted: u32,
    input: u64,
    output: u64,
    cached: u64,
    cache_creation: u64,
    reasoning: u64,
    cost: Cost,
    /// There is a call whose cost is not known.
    has_unknown: bool,
}

impl Totals {
    /// The counts of one call.
    fn of_call(usage: &Usage, cost: Option<Cost>) -> Self {
        let count = |tokens: i32| u64::try_from(tokens).unwrap_or_default();
        Self {
            calls: 1,
            uncounted: 0,
            input: count(usage.input_tokens),
            output: count(usage.output_tokens),
            cached: count(usage.cached_tokens),
            cache_creation: count(usage.cache_creation_tokens),
            reasoning: count(usage.reasoning_tokens.unwrap_or_default()),
            cost: cost.unwrap_or_default(),
            has_unknown: cost.is_none(),
        }
    }

    /// The counts that an earlier process has stored. Their cost counts if it is in the currency of this
    /// one.
    fn of_stored(counts: &TokenCounts, prices: &Prices) -> Self {
        let cost = match counts.currency == prices.currency {
            true => counts.cost.parse().ok(),
            false => None,
        };
        Self {
            calls: counts.provider_calls,
            uncounted: counts.uncounted_calls,
            input: counts.input_tokens,
            output: counts.output_tokens,
            cached: counts.cached_tokens,
            cache_creation: counts.cache_creation_tokens,
            reasoning: counts.reasoning_tokens,
            cost: cost.unwrap_or_default(),
            has_unknown: cost.is_none() && counts.provider_calls > 0,
        }
    }

    /// The counts of a call as its event has them.
    fn of_shown_call(usage: &UsageInfo) -> Self {
        let usage = Usage {
            input_tokens: usage.input_tokens,
            output_tokens: usage.output_tokens,
            cached_tokens: usage.cached_tokens,
            cache_creation_tokens: usage.cache_creation_input_tokens,
            cache_read_tokens: usage.cache_read_input_tokens,
            reasoning_tokens: None,
        };
        Self::of_call(&usage, None)
    }

    /// A call without token counts.
    fn of_uncounted_call() -> Self {
        Self { uncounted: 1, ..Self::default() }
    }

    fn add(&mut self, other: Self) {
        *self = Self {
            calls: self.calls.saturating_add(other.calls),
            uncounted: self.uncounted.saturating_add(other.uncounted),
            input: self.input.saturating_add(other.input),
            output: self.output.saturating_add(other.output),
            cached: self.cached.saturating_add(other.cached),
            cache_creation: self.cache_creation.saturating_add(other.cache_creation),
            reasoning: self.reasoning.saturating_add(other.reasoning),
            cost: self.cost + other.cost,
            has_unknown: self.has_unknown || other.has_unknown,
        };
    }

    /// The counts as an event has them; the cost only if that of every counted call is known. What the
    /// uncounted calls cost is not in it.
    fn on_wire(self, prices: &Prices) -> TokenCounts {
        let is_known = self.calls > 0 && !self.has_unknown;
        TokenCounts {
            provider_calls: self.calls,
            uncounted_calls: self.uncounted,
            input_tokens: self.input,
            output_tokens: self.output,
            cached_tokens: self.cached,
            cache_creation_tokens: self.cache_creation,
            reasoning_tokens: self.reasoning,
            cost: if is_known { self.cost.to_string() } else { String::new() },
            currency: if is_known { prices.currency.clone() } else { String::new() },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn meter(currency: &str) -> UsageMeter {
        let models = json!({ "m": { "input": 2, "output": 8 } });
        let prices = json!({ "currency": currency, "models": models });
        UsageMeter::new(Arc::new(serde_json::from_value(prices).expect("prices")))
    }

    fn call(meter: &mut UsageMeter) -> TokenCounts {
        let usage = Usage { input_tokens: 1000, output_tokens: 500, ..Usage::default() };
        meter.call_ended("openai", "m", Spent::Counted(&usage)).session
    }

    fn ended(meter: &mut UsageMeter, spent: Spent<'_>) -> CallCounts {
        meter.call_ended("openai", "unlisted", spent)
    }

    #[test]
    fn a_refused_call_costs_nothing_and_an_uncounted_one_leaves_the_cost_of_the_others() {
        let mut meter = meter("USD");
        let refused = ended(&mut meter, Spent::Nothing).call;
        assert_eq!((refused.provider_calls, refused.uncounted_calls), (1, 0));
        assert_eq!((refused.cost.as_str(), refused.input_tokens), ("0.000000", 0));
        call(&mut meter);
        let totals = ended(&mut meter, Spent::Unknown);
        let alone = totals.call;
        assert_eq!((alone.provider_calls, alone.cost.as_str()), (0, ""));
        let session = totals.session;
        assert_eq!((session.provider_calls, session.uncounted_calls), (2, 1));
        assert_eq!((session.cost.as_str(), session.currency.as_str()), ("0.006000", "USD"));
        // Nor is it lost in the next process.
        let mut next = super::tests::meter("USD");
        next.resume(&session);
        assert_eq!(call(&mut next).cost, "0.012000");
    }

    #[test]
    fn without_a_price_nothing_has_a_cost() {
        let mut unpriced = UsageMeter::default();
        assert_eq!(ended(&mut unpriced, Spent::Nothing).session.cost, "");
        let mut meter = meter("USD");
        call(&mut meter);
        let usage = Usage { input_tokens: 1, ..Usage::default() };
        let totals = ended(&mut meter, Spent::Counted(&usage));
        assert_eq!(totals.session.cost, "", "the price of a model is missing");
    }

    #[test]
    fn counts_go_on_in_the_next_process() {
        let mut first = meter("USD");
        assert_eq!(first.session(), None);
        call(&mut first);
        let stored = first.session().expect("counts");
        assert_eq!((stored.cost.as_str(), stored.provider_calls), ("0.006000", 1));
        let mut second = meter("USD");
        second.resume(&stored);
        assert_eq!(call(&mut second), call(&mut first), "as if it were one process");
        // Costs in different currencies can't be added.
        let mut other = meter("EUR");
        other.resume(&stored);
        let counts = call(&mut other);
        assert_eq!((counts.cost.as_str(), counts.input_tokens), ("", 2000));
    }

    #[test]
    fn calls_that_were_cut_off_are_counted_without_a_cost() {
        let mut meter = meter("USD");
        meter.call_was_cut_off(Some(&UsageInfo { input_tokens: 7, ..UsageInfo::default() }));
        meter.call_was_cut_off(None);
        let counts = call(&mut meter);
        assert_eq!((counts.provider_calls, counts.uncounted_calls), (2, 1));
        assert_eq!((counts.input_tokens, counts.cost.as_str()), (1007, ""));
    }
}
