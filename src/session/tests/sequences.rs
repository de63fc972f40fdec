//! Every sequence of inputs up to a length.

use anyhow::Result;
use std::fmt::Debug;

/// Something that takes inputs, with what checks each of its answers.
pub(super) trait Play: Clone {
    type Symbol: Copy + Debug;

    /// Takes one input, and checks what follows.
    fn play(&mut self, symbol: Self::Symbol) -> Result<()>;

    /// Ends the input and whatever runs: it has to close then, unless it has closed before.
    fn settle(&mut self) -> Result<()>;

    /// The state that decides what follows from the next inputs.
    fn state(&self) -> String;
}

/// A sequence of inputs after which the contract is broken.
#[derive(Debug)]
pub(super) struct Broken<S> {
    pub(super) path: Vec<S>,
    pub(super) why: anyhow::Error,
}

/// Tries every sequence of up to `depth` inputs; stops at the first that breaks the contract. Each that has fewer is
/// also followed by the end of input and of what runs: with as many, that would take longer than all else. Returns
/// how many there were.
///
/// An input that changes nothing is the last of its sequence: what follows it is tried without it.
pub(super) fn explore<P: Play>(
    scene: &P,
    symbols: &dyn Fn(&P) -> Vec<P::Symbol>,
    depth: usize,
) -> Result<u64, Broken<P::Symbol>> {
    let broken = |why| Broken { path: Vec::new(), why };
    scene.clone().settle().map_err(broken)?;
    // With one input left there is nothing to leave out.
    let before = (depth > 1).then(|| scene.state());
    let mut sequences = 1;
    for symbol in symbols(scene) {
        let mut next = scene.clone();
        let explored = next.play(symbol).map_err(broken).and_then(|()| match &before {
            Some(before) if *before != next.state() => explore(&next, symbols, depth - 1),
            Some(_) | None => Ok(1),
        });
        sequences += explored.map_err(|mut broken| {
            broken.path.insert(0, symbol);
            broken
        })?;
    }
    Ok(sequences)
}

/// How many sequences there were, none of which may break the contract.
pub(super) fn kept<S: Debug>(explored: Result<u64, Broken<S>>) -> u64 {
    explored.unwrap_or_else(|Broken { path, why }| panic!("after {path:?}: {why:#}"))
}
