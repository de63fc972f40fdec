//! The budget limits what a conversation may cost, by the list of prices: over all processes that have gone on
//! with it.

use super::client_error::budget_exhausted;
use super::prices::{PriceList, PricedModel};
use super::recorder::Recorder;
use super::{Output, Warning};
use crate::conversation::event::{CallReport, Usage};
use crate::conversation::transcript::Transcript;
use crate::conversation::usage::Cost;
use crate::protocol::proto::session::BudgetNearlySpent;
use crate::task::report::RunError;

/// The part of the budget, in percent, at which the person is warned.
const WARNING_PERCENT: u128 = 80;

/// What a conversation may cost, in the currency of the list of prices.
#[derive(Clone, Debug, Default)]
pub(super) struct Budget {
    limit: Option<Cost>,
    has_warned: bool,
    /// The person was told that not all calls are counted.
    has_told_uncounted: bool,
    /// The person was told that the conversation is not summarized because of it.
    pub(super) has_told_unsummarized: bool,
}

impl Budget {
    pub(super) fn new(limit: Option<Cost>) -> Self {
        Self { limit, ..Self::default() }
    }
}

impl Recorder {
    /// Why the next call of `model` can't be made: with the conversation so far it would pass the budget; or its
    /// price is not known.
    pub(super) fn over_budget(&self, model: PricedModel<'_>) -> Option<RunError> {
        self.over_budget_with(model, Transcript::tokens)
    }

    /// Like `over_budget`, for a call that is sent `tokens`.
    pub(super) fn over_budget_with(
        &self,
        model: PricedModel<'_>,
        tokens: impl FnOnce(&Transcript) -> u64,
    ) -> Option<RunError> {
        let limit = self.budget.limit?;
        let currency = self.prices().prices().map_or("", |prices| &prices.currency);
        let spent = self.projections.usage.spent(currency).unwrap_or_default();
        let tokens = tokens(&self.projections.transcript);
        let usage =
            Usage { input_tokens: i32::try_from(tokens).unwrap_or(i32::MAX), ..Usage::default() };
        let with_currency = |cost: Cost| format!("{cost} {currency}").trim_end().to_owned();
        let named = with_currency(limit);
        let Some(next) = priced(self.prices(), model, &usage) else {
            return Some(budget_exhausted(format!(
                "the price of model {} is not known, so the budget of {named} can't be kept, and it was not \
                 asked; name prices of it, or set no budget",
                model.name
            )));
        };
        (spent + next > limit).then(|| {
            budget_exhausted(format!(
                "the next call of the model would pass the budget of {named}, of which {} are spent, and was not \
                 made; raise the budget, or begin a shorter conversation",
                with_currency(spent)
            ))
        })
    }

    /// Warns, once, of calls that the budget does not count: their cost is never known any more, so that to refuse
    /// the next one would end the conversation.
    pub(super) fn tell_uncounted(&mut self) {
        let Some(limit) = self.budget.limit.filter(|_| !self.budget.has_told_uncounted) else {
            return;
        };
        // Without prices no model is asked.
        let Some(prices) = self.prices().prices() else { return };
        let currency = &prices.currency;
        if !self.projections.usage.has_uncounted(currency) {
            return;
        }
        let text = format!(
            "the budget of {limit} {currency} does not count all of this conversation: it has calls whose price is \
             not known, or is in another currency"
        );
        self.budget.has_told_uncounted = true;
        self.push(Output::Warning(text.into()));
    }

    /// The event that most of the budget is spent, once.
    pub(super) fn nearly_spent(&mut self) -> Option<CallReport> {
        self.tell_uncounted();
        let limit = self.budget.limit.filter(|_| !self.budget.has_warned)?;
        let currency = self.prices().prices()?.currency.clone();
        let spent = self.projections.usage.spent(&currency)?;
        if spent.0.saturating_mul(100) < limit.0.saturating_mul(WARNING_PERCENT) {
            return None;
        }
        self.budget.has_warned = true;
        let text = format!("{spent} {currency} of the budget of {limit} are spent");
        self.push(Output::Warning(Warning { text, has_event: true, code: None }));
        let (cost, budget) = (spent.to_string(), limit.to_string());
        let correlation = None;
        let spent = BudgetNearlySpent { cost, budget, currency, correlation };
        Some(CallReport::BudgetNearlySpent(spent.into()))
    }
}

/// What `usage` of a model costs; nothing if nobody outside of this process answers.
fn priced(prices: &PriceList, model: PricedModel<'_>, usage: &Usage) -> Option<Cost> {
    if model.host.is_empty() || model.host == model.engine {
        return Some(Cost::default());
    }
    // Most of a conversation is read from the cache, where it has a price; so this is rather too much.
    prices.prices()?.cost(model, usage)
}
