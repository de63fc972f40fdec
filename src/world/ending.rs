//! How processes end, by themselves or not, and what must be true then.

use super::World;
use super::disk::Death;
use super::planted::Planted;
use super::process::polled;
use super::view::View;
use crate::session::ExitCode;
use crate::store::stepped;
use crate::support::dice::Dice;
use std::time::Duration;

/// Rounds in which everything that waits must end once the world does all it can.
const ROUNDS_MAX: u32 = 3_000;

/// Turns of the loop in one of them.
const TURNS_MAX: u32 = 10_000;

impl World {
    /// A process that has ended is followed by another one.
    pub(super) fn follow(&mut self, dice: &mut Dice) -> Result<(), String> {
        if self.process().exit.is_none() {
            return Ok(());
        }
        if self.process().is_aborted {
            return self.die(Death::Kill, dice);
        }
        self.finish()?;
        self.begin();
        Ok(())
    }

    /// The process is taken away, and the next one begins with what is left.
    pub(super) fn die(&mut self, death: Death, dice: &mut Dice) -> Result<(), String> {
        self.counts.deaths += 1;
        let loses_tail = self.scenario.planted == Some(Planted::LosesTheTail);
        let survives = self.disks.end_process(death, dice, loses_tail);
        self.client.end(false)?;
        self.leave(survives);
        self.begin();
        Ok(())
    }

    /// The process has ended; its client reads what is left of its output.
    fn finish(&mut self) -> Result<(), String> {
        if !self.reader_is_gone {
            self.read_all()?;
        }
        self.client.end(!self.reader_is_gone)?;
        self.check_ends()?;
        let disks = stepped::disks();
        let survives = disks.iter().map(|disk| disk.last).min().unwrap_or(u64::MAX);
        let mut is_closed = false;
        for _ in 0..ROUNDS_MAX {
            let Self { process, runtime, .. } = self;
            let host = &mut process.as_mut().expect("it has ended").host;
            // A close that is begun anew goes on where it was.
            is_closed = runtime.block_on(polled(host.close())).is_some();
            if is_closed {
                break;
            }
            stepped::step();
        }
        if !is_closed {
            return Err("the store is not closed".to_owned());
        }
        match self.scenario.planted {
            Some(Planted::OpensAnotherStore) => self.disks.lose(),
            Some(_) | None => self.disks.keep(),
        }
        self.leave(survives);
        Ok(())
    }

    /// Each request that was handled has one end; so has each that was written, if the process has ended with its
    /// input.
    fn check_ends(&self) -> Result<(), String> {
        let process = self.process.as_ref().expect("it has ended");
        for (request, ends) in self.view.requests().iter().filter(|_| self.has_begun()) {
            let read = self.client.ends(request);
            if *ends != 1 || (read != 1 && !self.reader_is_gone) {
                return Err(format!(
                    "the request {request} has {ends} ends, of which {read} were read"
                ));
            }
        }
        let is_whole = process.exit == Some(ExitCode::Ok) && !self.reader_is_gone;
        let lost = process.written.iter().find(|line| is_whole && !self.view.has_handled(line));
        lost.map_or(Ok(()), |line| Err(format!("nobody has handled {line}")))
    }

    /// Whether the process could use its store; its only answer is why not, if it could not.
    fn has_begun(&self) -> bool {
        let exit = self.process.as_ref().and_then(|process| process.exit);
        !matches!(exit, Some(ExitCode::Usage | ExitCode::TryLater))
    }

    fn leave(&mut self, survives: u64) {
        self.process = None;
        let mut outside = self.shared.lock();
        (outside.live_calls, outside.live_tools) = (0, 0);
        drop(outside);
        let has_store = self.scenario.stores > 0;
        // A session that got its name from the program, and has shown nothing, is not looked for again.
        let is_known = has_store && self.session.is_some();
        let view = std::mem::take(&mut self.view);
        self.view = view.next(survives, is_known);
        if !has_store {
            self.view = View::default();
            self.session = self.scenario.rules.session.clone();
        }
        self.client = self.client.next();
    }

    /// The world does all it can: everything that waits must end. Gives how the process has ended, and whether it
    /// has shown the state of the conversation.
    pub(super) fn settle(&mut self) -> Result<(ExitCode, bool), String> {
        self.note(|| "everything ends".to_owned());
        stepped::fill(false);
        self.shared.lock().is_fair = true;
        self.process().close_input();
        for round in 0..ROUNDS_MAX {
            let mut has_done = stepped::step();
            self.process().take_in(usize::MAX);
            for _ in 0..TURNS_MAX {
                if !self.turn()? {
                    break;
                }
                has_done = true;
            }
            self.check()?;
            if !self.reader_is_gone {
                self.read_all()?;
            }
            if let Some(exit) = self.process().exit {
                self.shared.lock().is_fair = false;
                let has_state = !self.view.awaits_state();
                self.finish()?;
                return Ok((exit, has_state));
            }
            if !has_done {
                self.wait(Duration::from_secs(1 + u64::from(round)));
            }
        }
        Err(format!("the conversation does not end: {:?}", self.process().host))
    }
}
