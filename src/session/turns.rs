//! How a prompt becomes a turn: a submit starts a run, waits for its turn, or joins the active run.

use super::calls::CallModel;
use super::client_error::{busy, invalid_settings, queue_full, run_failed, shutting_down};
use super::model::Selection;
use super::prices::PricedModel;
use super::run::Run;
use super::waiting::{ActiveRun, Submit, TurnChoice};
use super::{Extraction, OnBusy, Phase, Session, Uptime};
use crate::conversation::compaction::prompt_tokens;
use crate::conversation::transcript::Transcript;
use crate::protocol::command::{self, Extension};
use crate::protocol::id::RequestId;
use std::collections::VecDeque;

impl Session {
    /// Checks the parts of a submit that only the session can check.
    pub(super) fn submitted(&mut self, now: Uptime, request: RequestId, submit: command::Submit) {
        let choice = match self.turn_choice(&submit) {
            Ok(choice) => choice,
            Err(why) => return self.recorder.refuse(Some(&request), invalid_settings(why)),
        };
        for (extension, is_used) in [
            (Extension::Attachments, !submit.attachments.is_empty()),
            (Extension::Settings, submit.choice.is_some()),
            (Extension::Structured, submit.schema.is_some()),
        ] {
            if is_used {
                self.recorder.turn_on(extension);
            }
        }
        let command::Submit { prompt, joins, attachments, .. } = submit;
        let attachments = attachments.into();
        self.submit(now, Submit { request, prompt, attachments, choice, joins });
    }

    /// Whether the request has a run that goes on, or will have one.
    fn can_be_joined(&self, target: &RequestId) -> bool {
        let active = self.phase.active();
        active.is_some_and(|live| live.is_joined_by(target) || live.has_waiting(target))
    }

    fn turn_choice(&self, submit: &command::Submit) -> Result<TurnChoice, String> {
        let is_joining = submit.joins.as_ref().is_some_and(|target| self.can_be_joined(target));
        if is_joining && (submit.choice.is_some() || submit.schema.is_some()) {
            let why = "a prompt that joins a run has the model, the settings and the schema of that \
                       run; leave settings and responseSchema out, or targetRequestId";
            return Err(why.to_owned());
        }
        let selection = submit.choice.as_ref().map(|choice| self.models.choose(choice));
        let repairs = self.rules.repairs;
        let extraction =
            submit.schema.clone().map(|schema| Extraction::of_request(*schema, repairs));
        Ok(TurnChoice { selection: selection.transpose()?, extraction: extraction.transpose()? })
    }

    fn submit(&mut self, now: Uptime, submit: Submit) {
        match &mut self.phase {
            Phase::Idle => {
                if let Some(submit) = self.affordable(submit) {
                    self.start(now, submit, VecDeque::new());
                }
            }
            Phase::Running(live) => {
                let is_of_run = submit.joins.as_ref().is_some_and(|it| live.is_joined_by(it));
                // A prompt for a run that has ended becomes the next turn.
                let may_wait = submit.joins.is_some() || self.rules.on_busy == OnBusy::Queue;
                if !may_wait {
                    let client_error = busy(live.run.request(), self.rules.hints);
                    self.recorder.refuse(Some(&submit.request), client_error);
                } else if !live.has_room() {
                    let client_error = queue_full(live.run.request());
                    self.recorder.refuse(Some(&submit.request), client_error);
                } else if is_of_run {
                    live.run.join(submit);
                } else {
                    live.waiting.push_back(submit);
                }
            }
            Phase::Draining(..) | Phase::Closed => {
                self.recorder.refuse(Some(&submit.request), shutting_down());
            }
        }
    }

    pub(super) fn start(&mut self, now: Uptime, submit: Submit, mut waiting: VecDeque<Submit>) {
        self.turns += 1;
        let id = self.ids.run();
        let Submit { request, prompt, attachments, choice, joins: _ } = submit;
        let joining = take_for(&mut waiting, &request);
        let TurnChoice { selection, extraction } = choice;
        let selection = selection.unwrap_or_else(|| self.models.current().clone());
        let model = self.call_model(selection);
        let mut run = Run::new(id, self.turns, request, now).with_model(model);
        joining.into_iter().for_each(|submit| run.join(submit));
        self.recorder.expect_answer(extraction);
        let live = ActiveRun { run, waiting };
        // Set before the run emits anything, so that any error finds and ends it.
        self.phase = match std::mem::replace(&mut self.phase, Phase::Idle) {
            Phase::Draining(_, drain) => Phase::Draining(live, drain),
            Phase::Idle | Phase::Running(_) | Phase::Closed => Phase::Running(live),
        };
        if let Some((live, mut context)) = self.live(now) {
            live.run.begin(&mut context, prompt.into_string(), attachments);
        }
    }

    /// Gives the submit back if the budget allows the first call of its run; else it is refused.
    pub(super) fn affordable(&mut self, submit: Submit) -> Option<Submit> {
        self.affordable_after(submit, Transcript::tokens)
    }

    /// Like `affordable`, for a conversation that has `tokens` before the prompt.
    pub(super) fn affordable_after(
        &mut self,
        submit: Submit,
        tokens: impl FnOnce(&Transcript) -> u64,
    ) -> Option<Submit> {
        let selection = submit.choice.selection.as_ref().unwrap_or(self.models.current());
        let model = self.call_model(selection.clone());
        let asked = prompt_tokens(submit.prompt.len_bytes(), &submit.attachments);
        let tokens = |before: &Transcript| tokens(before).saturating_add(asked);
        let Some(error) = self.recorder.over_budget_with(model.priced(), tokens) else {
            return Some(submit);
        };
        self.recorder.fail();
        self.recorder.refuse(Some(&submit.request), run_failed(error));
        None
    }

    /// What makes the provider calls of a run with that selection.
    pub(super) fn call_model(&self, selection: Selection) -> CallModel {
        let names = |of: &Selection| {
            let name = self.models.model(of).to_owned();
            (self.models.engine_name(of), self.models.host(of), name)
        };
        let (engine, host, name) = names(&selection);
        let priced = PricedModel { engine: &engine, host: &host, name: &name };
        let listed = self.recorder.prices().prices().and_then(|prices| prices.price(priced));
        let window = listed.and_then(|price| price.context_window).map(u64::from);
        let own = self.models.context_tokens(&selection);
        let known = own.or(window).or_else(|| self.models.learned(&selection));
        let compaction = self.rules.compaction.of_call(known, &selection);
        let of_summary = names(&compaction.selection);
        CallModel { engine, host, name, compaction, of_summary, selection }
    }

    /// The active run has ended: the next one begins, or the process ends, or waits.
    pub(super) fn next(&mut self, now: Uptime) {
        let (live, drain) = match std::mem::replace(&mut self.phase, Phase::Idle) {
            Phase::Running(live) => (live, None),
            Phase::Draining(live, drain) => (live, Some(drain)),
            phase @ (Phase::Idle | Phase::Closed) => {
                self.phase = phase;
                return;
            }
        };
        let ActiveRun { mut run, mut waiting } = live;
        // Prompts that did not join the run become turns of their own, before later ones.
        let mut joining = run.take_joining();
        joining.append(&mut waiting);
        waiting = joining;
        let mut next = None;
        while next.is_none()
            && let Some(submit) = waiting.pop_front()
        {
            next = self.affordable(submit);
        }
        if next.is_some() || drain.is_none() {
            self.announce_late();
        }
        match (next, drain) {
            (Some(submit), None) => self.start(now, submit, waiting),
            (Some(submit), Some(drain)) => {
                let live = ActiveRun { run, waiting: VecDeque::new() };
                self.phase = Phase::Draining(live, drain);
                self.start(now, submit, waiting);
            }
            (None, Some(drain)) => self.close(drain),
            (None, None) => {}
        }
    }
}

/// Takes the submits out of `waiting` that join the run of a request.
fn take_for(waiting: &mut VecDeque<Submit>, request: &RequestId) -> VecDeque<Submit> {
    let all = std::mem::take(waiting);
    // One that came with settings, before it was known that this run would be there, has a turn of its own.
    let joins = |it: &Submit| it.joins.as_ref() == Some(request) && it.choice.is_of_session();
    let (joining, others) = all.into_iter().partition(joins);
    *waiting = others;
    joining
}
