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

/// Tries every sequence of up to `depth` inputs, each followed by the end of input and of what runs;
/// stops at the first that breaks the contract. Returns how many there were.
///
/// An input that changes nothing is the last of its sequence: what follows it is tried without it.
pub(super) fn explore<P: Play>(
    scene: &P,
    symbols: &dyn Fn(&P) -> Vec<P::Symbol>,
    depth: usize,
) -> Result<u64, Broken<P::Symbol>> {
    if depth == 0 {
        let settled = scene.clone().settle();
        return settled.map(|()| 1).map_err(|why| Broken { path: Vec::new(), why });
    }
    // With one input left there is nothing to leave out.
    let before = (depth > 1).then(|| scene.state());
    let mut sequences = 0;
    for symbol in symbols(scene) {
        let mut scene = scene.clone();
        let played = scene.play(symbol).map_err(|why| Broken { path: Vec::new(), why });
        let is_last = before.as_ref().is_some_and(|before| *before == scene.state());
        let depth = if is_last { 0 } else { depth - 1 };
        let explored = played.and_then(|()| explore(&scene, symbols, depth));
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
