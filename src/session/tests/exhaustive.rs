//! Every sequence of inputs up to a depth.

use super::scene::{Machine, Scene, Symbol, rules};
use super::sequences::{explore, kept};
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

pub(super) fn everything<M: Machine>(scene: &Scene<M>) -> Vec<Symbol> {
    let engine = if scene.has_live_run() { ENGINE } else { &[] };
    [ALWAYS, engine].concat()
}

fn check(rules: Rules) {
    let scene = Scene::new(rules);
    let sequences = kept(explore(&scene, &everything, DEPTH));
    assert!(sequences > 10_000, "only {sequences}");
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
