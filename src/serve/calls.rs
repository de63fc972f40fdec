//! The provider calls and the calls of tools of a node, as its metrics count them: by engine and provider, which the
//! person who runs the node has chosen, and by nothing that a client may choose.

use crate::host::{Observation, Observed};
use crate::protocol::id::TaskId;
use crate::protocol::proto::session::TokenCounts;
use crate::support::histogram::Histogram;
use crate::support::lock;
use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use tokio::time::Instant;

/// The calls of all conversations of a node.
#[derive(Debug, Default)]
pub(super) struct Calls {
    providers: Mutex<BTreeMap<Provider, Arc<ProviderCalls>>>,
    pub(super) tools: ToolCalls,
}

/// A provider, as labels of metrics name it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Provider {
    pub(super) engine: Arc<str>,
    pub(super) host: String,
}

/// The calls of a provider.
#[derive(Debug)]
pub(super) struct ProviderCalls {
    pub(super) finished: AtomicU64,
    pub(super) failed: AtomicU64,
    pub(super) cancelled: AtomicU64,
    /// Times from the beginning of a call to the first part of its answer.
    pub(super) first_delta: Histogram,
    pub(super) whole: Histogram,
    /// Tokens, by the names of [`TOKENS`].
    pub(super) tokens: [AtomicU64; TOKENS.len()],
    /// Costs of the calls, by currency.
    pub(super) costs: Mutex<BTreeMap<String, f64>>,
}

/// The kinds of tokens that are counted: of all input tokens some are cached or were written to the cache, and of all
/// output tokens some are reasoning.
pub(super) const TOKENS: [&str; 5] = ["input", "output", "cached", "cache_creation", "reasoning"];

/// The calls of tools that servers run.
#[derive(Debug)]
pub(super) struct ToolCalls {
    pub(super) succeeded: AtomicU64,
    pub(super) failed: AtomicU64,
    pub(super) times: Histogram,
}

/// The calls of a conversation that go on.
#[derive(Debug, Default)]
pub(super) struct OpenCalls(HashMap<TaskId, (Instant, Option<Arc<ProviderCalls>>)>);

impl Calls {
    /// All providers that were called, each with its calls.
    pub(super) fn providers(&self) -> Vec<(Provider, Arc<ProviderCalls>)> {
        let providers = lock(&self.providers);
        providers.iter().map(|(provider, calls)| (provider.clone(), Arc::clone(calls))).collect()
    }

    fn entry(&self, provider: Provider) -> Arc<ProviderCalls> {
        let mut providers = lock(&self.providers);
        Arc::clone(providers.entry(provider).or_default())
    }

    /// Counts what a task of a conversation did.
    pub(super) fn note(&self, open: &mut OpenCalls, observation: &Observation) {
        let Observation { task, at, what, .. } = observation;
        match what {
            Observed::CallStarted { facts, .. } => {
                let (engine, host) = (Arc::clone(&facts.engine), facts.provider.clone());
                open.0.insert(*task, (*at, Some(self.entry(Provider { engine, host }))));
            }
            Observed::ToolStarted { .. } => drop(open.0.insert(*task, (*at, None))),
            Observed::FirstDelta => {
                if let Some((begun, Some(calls))) = open.0.get(task) {
                    calls.first_delta.note(*at - *begun);
                }
            }
            Observed::CallEnded { error, counts } => {
                if let Some((begun, Some(calls))) = open.0.remove(task) {
                    let ended = if error.is_some() { &calls.failed } else { &calls.finished };
                    ended.fetch_add(1, Ordering::Relaxed);
                    calls.whole.note(*at - begun);
                    calls.count(counts);
                }
            }
            Observed::ToolEnded { is_error } => {
                if let Some((begun, _)) = open.0.remove(task) {
                    let ToolCalls { succeeded, failed, times } = &self.tools;
                    let ended = if *is_error { failed } else { succeeded };
                    ended.fetch_add(1, Ordering::Relaxed);
                    times.note(*at - begun);
                }
            }
            Observed::Cancelled => {
                if let Some((_, Some(calls))) = open.0.remove(task) {
                    calls.cancelled.fetch_add(1, Ordering::Relaxed);
                }
            }
        }
    }
}

impl ProviderCalls {
    fn count(&self, counts: &TokenCounts) {
        let TokenCounts {
            input_tokens,
            output_tokens,
            cached_tokens,
            cache_creation_tokens,
            reasoning_tokens,
            cost,
            currency,
            ..
        } = counts;
        let all =
            [input_tokens, output_tokens, cached_tokens, cache_creation_tokens, reasoning_tokens];
        for (count, more) in self.tokens.iter().zip(all) {
            count.fetch_add(*more, Ordering::Relaxed);
        }
        if let Ok(cost) = cost.parse::<f64>() {
            let mut costs = lock(&self.costs);
            *costs.entry(currency.clone()).or_default() += cost;
        }
    }
}

impl Default for ProviderCalls {
    fn default() -> Self {
        Self {
            finished: AtomicU64::new(0),
            failed: AtomicU64::new(0),
            cancelled: AtomicU64::new(0),
            first_delta: Histogram::new(),
            whole: Histogram::new(),
            tokens: Default::default(),
            costs: Mutex::default(),
        }
    }
}

impl Default for ToolCalls {
    fn default() -> Self {
        Self { succeeded: AtomicU64::new(0), failed: AtomicU64::new(0), times: Histogram::new() }
    }
}
