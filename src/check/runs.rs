//! The runs of a stream: one is live at a time, and each has its own id.

use super::names::{Name, Namer, Remembered};
use super::requests::RunSeen;
use super::rule::{Report, Rule};
use super::run::Run;
use super::step::Step;
use super::text::Text;

/// Runs that are followed at once; there should be one.
const RUNS_MAX: usize = 4;

/// Ids of runs that are remembered, so that no later run has one of them.
const IDS_MAX: usize = 100_000;

/// The runs whose requests have no `done` yet.
#[derive(Debug)]
pub(super) struct Runs {
    live: Vec<Run>,
    ids: Remembered,
}

impl Runs {
    pub(super) fn new() -> Self {
        Self { live: Vec::new(), ids: Remembered::new(IDS_MAX) }
    }

    /// Whether the request has a run.
    pub(super) fn has(&self, request: &Name) -> bool {
        self.live.iter().any(|run| run.request == *request)
    }

    /// The text of an open segment so far.
    pub(super) fn open_text(&self, segment: &Name) -> Option<&Text> {
        self.live.iter().find_map(|run| run.open_text(segment))
    }

    /// Takes an event of the request.
    pub(super) fn step(
        &mut self,
        request: &Name,
        step: Step<'_>,
        namer: &Namer,
        report: &mut Report,
    ) {
        if let Some(run) = self.live.iter_mut().find(|run| run.request == *request) {
            return run.step(step, namer, report);
        }
        if matches!(step, Step::Other) {
            return;
        }
        if let Some(other) = self.live.last() {
            let other = &other.request.shown;
            let message = format!("a run begins while that of request {other} has no done");
            report.add(Rule::TwoRuns, message);
        }
        if self.live.len() >= RUNS_MAX {
            self.live.remove(0);
        }
        let mut run = Run::begin(request.clone(), &step, report);
        if !matches!(step, Step::PromptAccepted) {
            run.step(step, namer, report);
        }
        self.live.push(run);
    }

    /// Takes the id that an event of the request gives its run.
    pub(super) fn correlate(&mut self, request: &Name, id: Name, report: &mut Report) {
        let Some(run) = self.live.iter_mut().find(|run| run.request == *request) else { return };
        match &run.id {
            None if self.ids.contains(&id) => {
                let message = format!("the correlation names {}, an earlier run", id.shown);
                report.add(Rule::Correlation, message);
            }
            None => {
                self.ids.insert(&id);
                run.id = Some(id);
            }
            Some(own) if *own != id => {
                let message =
                    format!("the correlation names the run {}, not {}", id.shown, own.shown);
                report.add(Rule::Correlation, message);
            }
            Some(_) => {}
        }
    }

    /// Takes the end of the request, and tells what is known of its run.
    pub(super) fn end(&mut self, request: &Name) -> RunSeen {
        match self.live.iter().position(|run| run.request == *request) {
            None => RunSeen::None,
            Some(at) => match self.live.remove(at).end() {
                None => RunSeen::Live,
                Some(end) => RunSeen::Ended(end),
            },
        }
    }
}
