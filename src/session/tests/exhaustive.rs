//! Every sequence of inputs up to a depth.

use super::scene::{Machine, Scene, Symbol, rules};
use crate::conversation::patch::PatchMode;
use crate::protocol::command::Extension;
use crate::session::{FinalSnapshot, OnBusy, Rules, Signal};

/// One of everything that matters whether or not a run is live.
const ALWAYS: &[Symbol] = &[
    Symbol::Submit,
    Symbol::Blank,
    Symbol::Cancel,
    Symbol::Snapshot,
    Symbol::Shutdown,
    Symbol::Malformed,
    Symbol::ToMine,
    Symbol::ToOther,
    Symbol::InputEnded,
    Symbol::InputFailed,
    Symbol::StaleText,
    Symbol::StaleEnd,
    Symbol::Signal(Signal::Terminate),
    Symbol::ReaderGone,
];

/// What the engine of a live run can do.
const ENGINE: &[Symbol] = &[
    Symbol::CallStarted,
    Symbol::Text,
    Symbol::Reasoning,
    Symbol::ToolStarted,
    Symbol::ToolArguments,
    Symbol::ToolRequested,
    Symbol::Usage,
    Symbol::CallFinished,
    Symbol::Finished,
    Symbol::Failed,
    Symbol::NotReady,
];

/// What else it can do, which matters only in a call.
const REPORTS: &[Symbol] = &[Symbol::RetryScheduled, Symbol::RetryStarted, Symbol::CutOff];

/// Inputs in a sequence from the very start.
const DEPTH: usize = 4;

/// Inputs in a sequence that begins within a run, of the engine's alone.
const ENGINE_DEPTH: usize = 4;

/// What begins, ends and holds up runs: few enough to be tried at more length.
const LIFE: &[Symbol] = &[
    Symbol::Submit,
    Symbol::Cancel,
    Symbol::Shutdown,
    Symbol::InputEnded,
    Symbol::InputFailed,
    Symbol::StaleEnd,
    Symbol::Text,
    Symbol::Finished,
    Symbol::Failed,
];

/// Inputs in a sequence of `LIFE`.
const LIFE_DEPTH: usize = 6;

/// A sequence of inputs after which the contract is broken.
#[derive(Debug)]
pub(super) struct Broken {
    pub(super) path: Vec<Symbol>,
    pub(super) why: anyhow::Error,
}

/// Tries every sequence of up to `depth` inputs, each followed by the end of input and of what
/// runs; stops at the first that breaks the contract. Returns how many there were.
pub(super) fn explore<M: Machine>(
    scene: &Scene<M>,
    symbols: &dyn Fn(&Scene<M>) -> Vec<Symbol>,
    depth: usize,
) -> Result<u64, Broken> {
    if depth == 0 {
        return leaf(scene);
    }
    let mut sequences = 0;
    for symbol in symbols(scene) {
        let mut scene = scene.clone();
        let was_closed = scene.contract.is_closed();
        let result = scene.play(symbol).map_err(|why| Broken { path: Vec::new(), why });
        // A closed session does not distinguish one sequence from another.
        let depth = if was_closed { 0 } else { depth - 1 };
        sequences +=
            result.and_then(|()| explore(&scene, symbols, depth)).map_err(|mut broken| {
                broken.path.insert(0, symbol);
                broken
            })?;
    }
    Ok(sequences)
}

fn leaf<M: Machine>(scene: &Scene<M>) -> Result<u64, Broken> {
    if !scene.contract.is_closed() {
        let settled = scene.clone().settle();
        settled.map_err(|why| Broken { path: vec![Symbol::InputEnded], why })?;
    }
    Ok(1)
}

pub(super) fn everything<M: Machine>(scene: &Scene<M>) -> Vec<Symbol> {
    let engine = if scene.has_live_run() { ENGINE } else { &[] };
    [ALWAYS, engine].concat()
}

fn check(rules: Rules) {
    let scene = Scene::new(rules);
    let sequences = kept(explore(&scene, &everything, DEPTH));
    assert!(sequences > 10_000, "only {sequences}");
}

fn kept(result: Result<u64, Broken>) -> u64 {
    result.unwrap_or_else(|Broken { path, why }| panic!("after {path:?}: {why:#}"))
}

#[test]
fn every_sequence_keeps_the_contract() {
    check(Rules::default());
}

#[test]
fn every_sequence_keeps_the_contract_with_a_queue() {
    check(rules(OnBusy::Queue, PatchMode::Append, FinalSnapshot::Turn));
}

#[test]
fn every_longer_sequence_of_what_begins_and_ends_runs_keeps_the_contract() {
    let rules = rules(OnBusy::Queue, PatchMode::Append, FinalSnapshot::None);
    let life = |scene: &Scene<_>| {
        // The engine's part last, and only where there is one.
        let symbols = if scene.has_live_run() { LIFE.len() } else { LIFE.len() - 3 };
        LIFE[..symbols].to_vec()
    };
    kept(explore(&Scene::new(rules), &life, LIFE_DEPTH));
}

#[test]
fn every_sequence_of_an_engine_keeps_the_contract() {
    use Symbol::{CallStarted, Submit, ToolArguments, ToolRequested, ToolStarted};
    let mut rules = rules(OnBusy::Reject, PatchMode::Snapshot, FinalSnapshot::None);
    rules.extensions = [Extension::Usage, Extension::Retries].into();
    let engine = |_: &Scene<_>| [ENGINE, REPORTS, &[Symbol::Cancel]].concat();
    let in_tool_call = [Submit, CallStarted, ToolStarted, ToolArguments, ToolRequested];
    for start in [&[Submit], in_tool_call.as_slice()] {
        let mut scene = Scene::new(rules.clone());
        for symbol in start {
            scene.play(*symbol).expect("the contract");
        }
        kept(explore(&scene, &engine, ENGINE_DEPTH));
    }
}
