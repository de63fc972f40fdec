//! Token counts and costs of a call, of a run and of the session: a fold of the ends of provider calls. Pure.

use super::event::{CallCounts, Event, Recorded, Usage};
use crate::protocol::id::RunId;
use crate::protocol::proto::session::TokenCounts;
use std::sync::Arc;

/// Fraction digits of a cost that are written.
const COST_DIGITS: usize = 6;

/// Picos of a currency that the last of these digits stands for.
const PICOS_PER_DIGIT: u128 = 1_000_000;

/// A cost in 10^-12 of a currency.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cost(pub(crate) u128);

/// The usage of a provider call besides the counts that its provider reported.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Spent {
    /// Nothing was sent, or the provider refused the request: without counts, nothing was used.
    pub is_free: bool,
    /// The cost and its currency, if the price of the model was known.
    pub cost: Option<(Cost, Arc<str>)>,
}

/// The counts so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct UsageTotals {
    call: Totals,
    run: Totals,
    session: Totals,
    /// The run of the provider call that ended last. A compaction that a client has asked for is one of its own.
    last_run: Option<RunId>,
}

impl UsageTotals {
    /// Folds in an event.
    pub(crate) fn apply(&mut self, recorded: &Recorded) {
        if let Event::CallFinished { usage, spent, .. } = &recorded.event {
            let run = Some(recorded.scope.run);
            if self.last_run != run {
                (self.last_run, self.run) = (run, Totals::default());
            }
            self.call = Totals::of_call(usage.as_ref(), spent);
            self.run.add(&self.call);
            self.session.add(&self.call);
        }
    }

    /// What the session has cost in a currency, as far as that is known; `None` if no call had a cost in it.
    pub(crate) fn spent(&self, currency: &str) -> Option<Cost> {
        let mut costs = self.session.costs.iter();
        costs.find_map(|(of, cost)| (**of == *currency).then_some(*cost))
    }

    /// Whether the session has calls whose cost is not known, or is in another currency.
    pub(crate) fn has_uncounted(&self, currency: &str) -> bool {
        let Totals { has_unknown, costs, .. } = &self.session;
        *has_unknown || costs.iter().any(|(of, _)| **of != *currency)
    }

    /// The counts up to the provider call that ended last.
    pub(crate) fn counts(&self) -> CallCounts {
        let Self { call, run, session, .. } = self;
        CallCounts { call: call.on_wire(), run: run.on_wire(), session: session.on_wire() }
    }
}

/// Counts that add up.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Totals {
    /// Without a cost.
    counts: TokenCounts,
    /// One cost for each currency.
    costs: Vec<(Arc<str>, Cost)>,
    /// There is a call whose cost is not known.
    has_unknown: bool,
}

impl Totals {
    /// The counts of one call. One that was not counted, as it was cancelled, is not among the provider
    /// calls.
    pub(super) fn of_call(usage: Option<&Usage>, spent: &Spent) -> Self {
        if usage.is_none() && !spent.is_free {
            let counts = TokenCounts { uncounted_calls: 1, ..TokenCounts::default() };
            return Self { counts, ..Self::default() };
        }
        let usage = usage.copied().unwrap_or_default();
        let count = |tokens: i32| u64::try_from(tokens).unwrap_or_default();
        let counts = TokenCounts {
            provider_calls: 1,
            input_tokens: count(usage.input_tokens),
            output_tokens: count(usage.output_tokens),
            cached_tokens: count(usage.cached_tokens),
            cache_creation_tokens: count(usage.cache_creation_tokens),
            reasoning_tokens: count(usage.reasoning_tokens.unwrap_or_default()),
            ..TokenCounts::default()
        };
        let has_unknown = spent.cost.is_none();
        let costs = spent.cost.iter().map(|(cost, currency)| (currency.clone(), *cost)).collect();
        Self { counts, costs, has_unknown }
    }

    pub(super) fn add(&mut self, other: &Self) {
        self.has_unknown |= other.has_unknown;
        for (currency, more) in &other.costs {
            // What is in another currency can't be added.
            match self.costs.iter_mut().find(|(own, _)| own == currency) {
                Some((_, cost)) => *cost = *cost + *more,
                None => self.costs.push((currency.clone(), *more)),
            }
        }
        let (own, more) = (&mut self.counts, &other.counts);
        own.provider_calls = own.provider_calls.saturating_add(more.provider_calls);
        own.uncounted_calls = own.uncounted_calls.saturating_add(more.uncounted_calls);
        own.input_tokens = own.input_tokens.saturating_add(more.input_tokens);
        own.output_tokens = own.output_tokens.saturating_add(more.output_tokens);
        own.cached_tokens = own.cached_tokens.saturating_add(more.cached_tokens);
        own.cache_creation_tokens =
            own.cache_creation_tokens.saturating_add(more.cache_creation_tokens);
        own.reasoning_tokens = own.reasoning_tokens.saturating_add(more.reasoning_tokens);
    }

    /// The counts as an event has them; the cost only if that of every counted call is known, in one
    /// currency. The cost of uncounted calls is not included.
    pub(super) fn on_wire(&self) -> TokenCounts {
        let is_known = self.counts.provider_calls > 0 && !self.has_unknown;
        let [(currency, cost)] = &self.costs[..] else { return self.counts.clone() };
        if !is_known {
            return self.counts.clone();
        }
        TokenCounts {
            cost: cost.to_string(),
            currency: (**currency).to_owned(),
            ..self.counts.clone()
        }
    }
}

impl std::ops::Add for Cost {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl std::fmt::Display for Cost {
    /// As a decimal number with six digits after the point, rounded to the nearest.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let millionths = self.0.saturating_add(PICOS_PER_DIGIT / 2) / PICOS_PER_DIGIT;
        let (whole, fraction) = (millionths / 1_000_000, millionths % 1_000_000);
        write!(f, "{whole}.{fraction:0COST_DIGITS$}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conversation::event::{FinishClass, Scope};
    use crate::protocol::id::{Ids, Ordinal};

    fn cost(millionths: u128, currency: &str) -> Option<(Cost, Arc<str>)> {
        Some((Cost(millionths * PICOS_PER_DIGIT), currency.into()))
    }

    fn ended(totals: &mut UsageTotals, usage: Option<Usage>, spent: Spent) -> CallCounts {
        ended_in(totals, RunId::NONE, usage, spent)
    }

    fn ended_in(
        totals: &mut UsageTotals,
        run: RunId,
        usage: Option<Usage>,
        spent: Spent,
    ) -> CallCounts {
        let event = Event::CallFinished {
            stop_reason: String::new(),
            class: FinishClass::Completed,
            usage,
            duration_ms: 0,
            has_tool_calls: false,
            provider_data: None,
            spent,
        };
        let scope = Scope { run, turn: 1, call: 1 };
        totals.apply(&Recorded { ordinal: Ordinal(1), scope, event });
        totals.counts()
    }

    fn call(totals: &mut UsageTotals, currency: &str) -> TokenCounts {
        let usage = Usage { input_tokens: 1000, output_tokens: 500, ..Usage::default() };
        let spent = Spent { is_free: false, cost: cost(6000, currency) };
        ended(totals, Some(usage), spent).session
    }

    #[test]
    fn a_refused_call_costs_nothing_and_an_uncounted_one_leaves_the_cost_of_the_others() {
        let mut totals = UsageTotals::default();
        let refused = Spent { is_free: true, cost: cost(0, "USD") };
        let refused = ended(&mut totals, None, refused).call;
        assert_eq!((refused.provider_calls, refused.uncounted_calls), (1, 0));
        assert_eq!((refused.cost.as_str(), refused.input_tokens), ("0.000000", 0));
        call(&mut totals, "USD");
        let counts = ended(&mut totals, None, Spent::default());
        assert_eq!((counts.call.provider_calls, counts.call.cost.as_str()), (0, ""));
        let session = counts.session;
        assert_eq!((session.provider_calls, session.uncounted_calls), (2, 1));
        assert_eq!((session.cost.as_str(), session.currency.as_str()), ("0.006000", "USD"));
        assert_eq!(call(&mut totals, "USD").cost, "0.012000");
    }

    #[test]
    fn without_a_price_nothing_has_a_cost() {
        let mut totals = UsageTotals::default();
        let free = Spent { is_free: true, cost: None };
        assert_eq!(ended(&mut totals, None, free).session.cost, "");
        let mut totals = UsageTotals::default();
        call(&mut totals, "USD");
        let usage = Usage { input_tokens: 1, ..Usage::default() };
        let counts = ended(&mut totals, Some(usage), Spent::default());
        assert_eq!(counts.session.cost, "", "the price of a model is missing");
    }

    /// As where a session is resumed by a process with another list of prices.
    #[test]
    fn what_is_in_another_currency_can_not_be_added_up() {
        let mut totals = UsageTotals::default();
        call(&mut totals, "USD");
        let counts = call(&mut totals, "EUR");
        assert_eq!((counts.cost.as_str(), counts.input_tokens), ("", 2000));
        call(&mut totals, "USD");
        let spent = ["USD", "EUR", "JPY"].map(|currency| totals.spent(currency));
        let of = |millionths| Some(Cost(millionths * PICOS_PER_DIGIT));
        assert_eq!(spent, [of(12_000), of(6_000), None], "each has its own sum");
        assert!(["USD", "EUR", "JPY"].iter().all(|currency| totals.has_uncounted(currency)));
    }

    #[test]
    fn what_has_no_price_is_not_counted_and_is_told() {
        let mut totals = UsageTotals::default();
        assert_eq!((totals.spent("USD"), totals.has_uncounted("USD")), (None, false));
        call(&mut totals, "USD");
        ended(&mut totals, None, Spent::default());
        assert!(!totals.has_uncounted("USD"), "a call without counts is in no sum");
        let usage = Usage { input_tokens: 1, ..Usage::default() };
        ended(&mut totals, Some(usage), Spent::default());
        assert!(totals.has_uncounted("USD"));
        assert_eq!(totals.spent("USD"), Some(Cost(6_000 * PICOS_PER_DIGIT)));
    }

    /// A run of a turn, and one that compacts the conversation.
    #[test]
    fn each_run_counts_its_own_calls() {
        let (mut totals, mut ids) = (UsageTotals::default(), Ids::new(1));
        for run in [ids.run(), ids.run()] {
            for calls in [1, 2] {
                let counts = ended_in(&mut totals, run, Some(Usage::default()), Spent::default());
                assert_eq!(counts.run.provider_calls, calls);
            }
        }
        assert_eq!(totals.counts().session.provider_calls, 4);
    }
}
