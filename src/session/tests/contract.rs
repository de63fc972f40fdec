//! All the contract says of a session, checked step by step from its inputs and outputs alone.

use super::ledger::Ledger;
use super::model::{Model, outline};
use super::story::Story;
use crate::session::{Input, Output, Rules, Session};
use anyhow::{Result, ensure};

#[derive(Clone, Debug)]
pub(super) struct Contract {
    ledger: Ledger,
    story: Story,
    model: Model,
}

impl Contract {
    /// The contract with `session`, which has done nothing yet.
    pub(super) fn new(rules: &Rules, session: &Session) -> Self {
        Self {
            ledger: Ledger::new(rules, session),
            story: Story::new(rules, session),
            model: Model::new(rules),
        }
    }

    /// Checks one step: `outputs` is what the session answered to `input`.
    pub(super) fn watch(&mut self, input: &Input, outputs: &[Output]) -> Result<()> {
        let is_live = self.ledger.is_of_live_task(input);
        self.ledger.watch(input, outputs)?;
        self.story.watch(input, is_live, outputs)?;
        let (expected, actual) = (self.model.step(input, is_live), outline(outputs));
        ensure!(expected == actual, "expected {expected:?}\n     got {actual:?}");
        Ok(())
    }

    pub(super) fn is_closed(&self) -> bool {
        self.ledger.is_closed()
    }
}
