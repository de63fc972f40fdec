//! A world by its number, the steps of it that are taken, and what it was made of by chance.

use super::dice::Dice;
use std::fmt;
use std::str::FromStr;

/// Steps of a world.
const STEPS_MIN: usize = 20;
const STEPS_MAX: usize = 120;

/// The number of a world, and which of its steps are taken: `SEED:FIRST-LAST,FIRST-LAST…`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    pub(crate) seed: u64,
    pub(crate) steps: Vec<u64>,
}

impl Plan {
    /// All steps of the world.
    pub(crate) fn new(seed: u64) -> Self {
        let steps = STEPS_MIN + Dice::of(seed, u64::MAX).below(STEPS_MAX - STEPS_MIN);
        Self { seed, steps: (0..steps as u64).collect() }
    }

    /// Leaves out steps for as long as `fails` holds of what is left: whole stretches first, then single steps.
    pub(crate) fn shrunk(mut self, fails: impl Fn(&Self) -> bool) -> Self {
        let mut stretch = self.steps.len() / 2;
        while stretch > 0 {
            let mut at = 0;
            while at < self.steps.len() {
                let end = (at + stretch).min(self.steps.len());
                let mut less = self.clone();
                less.steps.drain(at..end);
                if fails(&less) { self = less } else { at += stretch }
            }
            stretch /= 2;
        }
        self
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:", self.seed)?;
        let mut rest = self.steps.as_slice();
        while let Some(first) = rest.first() {
            let length = rest.iter().zip(*first..).take_while(|(step, it)| *step == it).count();
            let comma = if rest.len() == self.steps.len() { "" } else { "," };
            write!(f, "{comma}{first}-{}", rest[length - 1])?;
            rest = &rest[length..];
        }
        Ok(())
    }
}

impl FromStr for Plan {
    type Err = std::num::ParseIntError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let Some((seed, stretches)) = text.split_once(':') else {
            return Ok(Self::new(text.parse()?));
        };
        let mut steps = Vec::new();
        for stretch in stretches.split(',').filter(|it| !it.is_empty()) {
            let (first, last) = stretch.split_once('-').unwrap_or((stretch, stretch));
            steps.extend(first.parse::<u64>()?..=last.parse::<u64>()?);
        }
        Ok(Self { seed: seed.parse()?, steps })
    }
}

#[test]
fn a_world_is_read_from_its_text_and_shrunk_to_what_fails() {
    let plan = Plan::new(7);
    assert_eq!(plan.to_string().parse(), Ok(plan.clone()));
    assert_eq!("7".parse(), Ok(plan.clone()));
    let fails = |plan: &Plan| plan.steps.contains(&3) && plan.steps.contains(&11);
    let shrunk = plan.shrunk(fails);
    assert_eq!(shrunk.to_string(), "7:3-3,11-11");
    assert_eq!("7:3-3,11-11".parse(), Ok(shrunk));
}
