//! Tools, approvals, steering and cancels: every short sequence of what can happen around them, from
//! several places in a conversation, and long random ones.

mod contract;
mod planted;
mod random;
pub(super) mod scene;
mod transcript;

use super::sequences::{Broken, explore, kept};
use crate::protocol::command::Extension;
use crate::session::Session;
use scene::{Choice, Machine, Scene, Symbol, rules};
use std::collections::BTreeSet;

/// What can happen at any time.
const ALWAYS: &[Symbol] = &[
    Symbol::Submit,
    Symbol::Steer,
    Symbol::SteerGhost,
    Symbol::Cancel,
    Symbol::CancelRun,
    Symbol::CancelGhost,
    Symbol::CancelNewest,
    Symbol::CancelWaiting,
    Symbol::Snapshot,
    Symbol::Shutdown,
    Symbol::EndOfInput,
    Symbol::Signal,
    Symbol::ReaderGone,
    Symbol::StaleReturns,
    Symbol::ApproveOther,
    Symbol::ClientAnswersOther,
    Symbol::EarlyDeadline,
    Symbol::ServerReady,
    Symbol::ServerFailed,
    Symbol::ServerGone,
    Symbol::Declare,
    Symbol::Undeclare,
];

/// Which model answers: tried in shorter sequences.
pub(super) const CHOICES: &[Symbol] = &[Symbol::SubmitChosen, Symbol::Switch];

/// What the model can do.
const ENGINE: &[Symbol] = &[
    Symbol::Text,
    Symbol::Calls(&["read"]),
    Symbol::Calls(&["read", "write"]),
    Symbol::Calls(&["write", "write"]),
    Symbol::Calls(&["auto", "human"]),
    Symbol::Calls(&["drop", "nothing"]),
    Symbol::OddCall,
    Symbol::HalfCall,
    Symbol::Ended,
    Symbol::Failed,
];

const TOOLS: &[Symbol] = &[Symbol::FirstReturns, Symbol::LastReturns];

const ASKED: &[Symbol] = &[
    Symbol::Approve(Choice::Once),
    Symbol::Approve(Choice::Session),
    Symbol::Approve(Choice::Deny),
    Symbol::ApproveLast,
];

const CLIENT: &[Symbol] = &[Symbol::ClientAnswers, Symbol::LastClientAnswers];

/// Inputs in a sequence from each of the beginnings.
const DEPTH: usize = 3;

/// Where sequences begin.
fn beginnings() -> Vec<Vec<Symbol>> {
    use Symbol::{Calls, Declare, ServerReady, Steer, Submit, Text};
    let ready = [Declare, ServerReady, Submit];
    let then = |more: &[Symbol]| [&ready, more].concat();
    vec![
        vec![],
        vec![Submit],
        then(&[Text]),
        then(&[Calls(&["read", "write"])]),
        then(&[Calls(&["auto", "human"])]),
        then(&[Calls(&["write", "write"]), Steer]),
        then(&[Calls(&["write"]), Symbol::Approve(Choice::Session), Symbol::FirstReturns]),
    ]
}

/// What makes sense next, with `extra`.
pub(super) fn symbols<M: Machine>(scene: &Scene<M>, extra: &[Symbol]) -> Vec<Symbol> {
    let mut symbols = [ALWAYS, extra].concat();
    let more: [(bool, &[Symbol]); 5] = [
        (scene.has_call(), ENGINE),
        (scene.has_tools(), TOOLS),
        (scene.asks(), ASKED),
        (scene.waits_for_client(), CLIENT),
        (scene.has_deadline(), &[Symbol::Deadline]),
    ];
    symbols.extend(more.iter().filter(|(is_there, _)| *is_there).flat_map(|(_, more)| *more));
    symbols
}

/// Tries every sequence from every beginning.
fn explore_all<M: Machine>(
    scene: &Scene<M>,
    depth: usize,
    extra: &[Symbol],
) -> Result<u64, Broken<Symbol>> {
    let mut sequences = 0;
    for beginning in beginnings() {
        let mut scene = scene.clone();
        for (at, symbol) in beginning.iter().enumerate() {
            let path = beginning[..=at].to_vec();
            scene.play(*symbol).map_err(|why| Broken { path, why })?;
        }
        sequences += explore(&scene, &|scene| symbols(scene, extra), depth).map_err(|broken| {
            let path = [beginning.clone(), broken.path].concat();
            Broken { path, why: broken.why }
        })?;
    }
    Ok(sequences)
}

#[test]
fn every_sequence_around_tools_keeps_the_contract() {
    let scene = Scene::with(rules(), |session| session);
    let sequences = kept(explore_all(&scene, DEPTH, &[]));
    assert!(sequences > 50_000, "only {sequences}");
}

/// The model may be another one from turn to turn, and is the same in all calls of a run.
#[test]
fn every_sequence_with_choices_of_models_keeps_the_contract() {
    let mut rules = rules();
    rules.extensions.extend([Extension::Usage, Extension::Retries]);
    let scene: Scene<Session> = Scene::with(rules, |session| session);
    kept(explore_all(&scene, DEPTH - 1, CHOICES));
}

/// Without approvals nobody is asked, and nothing that needs approval runs.
#[test]
fn every_sequence_without_approvals_keeps_the_contract() {
    let mut rules = rules();
    rules.extensions = BTreeSet::new();
    let scene: Scene<Session> = Scene::with(rules, |session| session);
    kept(explore_all(&scene, DEPTH - 1, &[]));
}
