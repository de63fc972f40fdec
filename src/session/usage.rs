//! Token counts and costs of a call, of a run and of the session.

use crate::chat::event::Usage;
use crate::engine::prices::{Cost, Prices};
use crate::protocol::proto::chat::CorrelationInfo;
use crate::protocol::proto::session::{TokenCounts, UsageTotals};
use std::sync::Arc;

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

    /// Counts a call of that model, which ended with `usage` or without one; gives the totals with it.
    pub(super) fn call_ended(
        &mut self,
        engine: &str,
        model: &str,
        usage: Option<&Usage>,
        correlation: CorrelationInfo,
    ) -> UsageTotals {
        let call = match usage {
            Some(usage) => Totals::of_call(usage, self.prices.cost(engine, model, usage)),
            None => Totals::of_uncounted_call(),
        };
        self.run.add(call);
        self.session.add(call);
        let on_wire = |totals: Totals| Some(totals.on_wire(&self.prices));
        UsageTotals {
            call: on_wire(call),
            run: on_wire(self.run),
            session: on_wire(self.session),
            correlation: Some(correlation),
        }
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

    /// The counts as an event has them; the cost only if that of every call is known. What a call
    /// without counts cost is not.
    fn on_wire(self, prices: &Prices) -> TokenCounts {
        let is_known = self.calls > 0 && self.uncounted == 0 && !self.has_unknown;
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
