//! Chance that is the same in each run.

use super::split_mix;

/// Numbers that follow from a seed.
#[derive(Clone, Debug)]
pub(crate) struct Dice(u64);

impl Dice {
    /// The numbers of step `number` in the world `seed`: no step changes what another one does by chance.
    pub(crate) fn of(seed: u64, number: u64) -> Self {
        let mut dice = Self(
            seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ number.wrapping_mul(0xd1b5_4a32_d192_ed03),
        );
        dice.next();
        dice
    }

    pub(crate) fn next(&mut self) -> u64 {
        split_mix(&mut self.0)
    }

    /// A number below `end`, which is not 0.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        let end = u64::try_from(end).unwrap_or(u64::MAX);
        usize::try_from(self.next() % end).unwrap_or_default()
    }

    /// True once in `of` times.
    pub(crate) fn once_in(&mut self, of: usize) -> bool {
        self.below(of) == 0
    }

    pub(crate) fn pick<T: Clone>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())].clone()
    }

    /// One of `all`, each as often as its weight says.
    pub(crate) fn weighted<T: Copy>(&mut self, all: &[(usize, T)]) -> T {
        let mut left = self.below(all.iter().map(|(weight, _)| weight).sum());
        for (weight, it) in all {
            if left < *weight {
                return *it;
            }
            left -= weight;
        }
        unreachable!("the sum of the weights is larger")
    }
}
