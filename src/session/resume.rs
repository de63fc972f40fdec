//! A session that goes on from what was stored, and one whose store fails.

use super::client_error::{other_beginning, store_closed, store_failed};
use super::recorder::Recorder;
use super::run::{Outcome, Run, Stop};
use super::{LogRules, Output, Session, SessionMode, Warning};
use super::{Rules, Uptime};
use crate::conversation::choices::{Choices, ChosenModel, Origin};
use crate::conversation::event::{Recorded, SessionEvent};
use crate::conversation::log::{
    COPY_ADVICE, CUT_OFF, Loss, Record, Restored, SessionStart, StoreFailure,
};
use crate::conversation::projections::Projections;
use crate::conversation::timeline::Span;
#[cfg(test)]
use crate::protocol::any::Any;
use crate::protocol::command::{Extension, ToolManifest};
use crate::protocol::id::{Ids, RequestId, SessionId};
use crate::protocol::proto::provider::ModelSwitched;
use crate::protocol::proto::session::StoreDegraded;
use crate::protocol::wire::ClientError;
use crate::task::settings::CallSettings;
use std::fmt;

/// The name of the warning that another provider gets the conversation.
pub(crate) const PROVIDER_CHANGED: &str = "provider_changed";

/// The name of the warning that another model of the same provider answers.
pub(crate) const MODEL_CHANGED: &str = "model_changed";

/// The name of the warning that a conversation does not say which provider it was with.
pub(crate) const PROVIDER_UNRECORDED: &str = "provider_unrecorded";

impl Session {
    /// The error of a process that begins with other earlier messages than a stored conversation. They are no part
    /// of its past: the model was not sent them, and no event has them.
    pub(crate) fn other_beginning(&self, restored: &Restored) -> Option<ClientError> {
        let own = &self.recorder.projections.transcript.preamble().history;
        let stored = &restored.projections.transcript.preamble().history;
        (!own.is_empty() && own != stored).then(|| other_beginning(self.rules.hints))
    }

    /// Goes on with a stored conversation, in which nothing was said yet: a run that was cut off is
    /// closed, and the conversation is shown.
    pub(super) fn restored(&mut self, restored: Restored) {
        let Restored { session, projections, open, loss } = restored;
        let loss = loss.map(with_way_out);
        self.turns = projections.turns;
        let choices = (*projections.choices).clone();
        let first_new = projections.ordinal.next();
        self.recorder.restore(session, *projections);
        match &loss {
            // Later events are not stored, not even those that close the run.
            Some(Loss { reason, is_closed: true }) => self.recorder.stop_log(reason),
            Some(Loss { reason, is_closed: false }) => {
                let warning = Warning { text: reason.clone(), has_event: true, code: None };
                self.recorder.push(Output::Warning(warning));
            }
            None => {}
        }
        let request = self.ids.request();
        self.recorder.end_cut_off(&open, request);
        let state = self.recorder.state(None, Span::Conversation);
        self.recorder.push(Output::Frame(state));
        if let Some(Loss { reason, is_closed }) = loss {
            let first_missing_ordinal = if is_closed { first_new.0 } else { 0 };
            if is_closed && self.rules.mode == SessionMode::Conversation {
                self.recorder.error(None, store_closed(&reason));
            }
            self.degraded(StoreDegraded { reason, first_missing_ordinal });
        }
        self.recorder.tell_uncounted();
        self.resume_choices(choices);
    }

    /// Shows the state of a session that might have gone on, and of which nothing is stored.
    pub(super) fn begins(&mut self) {
        if self.rules.log.may_resume {
            let state = self.recorder.state(None, Span::Conversation);
            self.recorder.push(Output::Frame(state));
        }
    }

    /// Goes on with the model and the tools that the client of an earlier process chose.
    fn resume_choices(&mut self, choices: Choices) {
        let Choices { model, tools, origin } = choices;
        let before = Answering::before(model.as_ref(), origin.as_ref());
        if self.rules.origin.is_none() {
            self.rules.origin.clone_from(&origin);
        }
        if let Some(chosen) = model.filter(|_| !self.rules.is_model_typed) {
            self.resume_model(chosen);
        }
        self.held_tools = tools;
        self.offer_held_tools();
        match before {
            Some(before) => self.compare(&before),
            None => self.report_unrecorded(),
        }
        if self.rules.origin != origin {
            let choices = self.choices();
            self.recorder.log.continue_with(choices);
        }
    }

    /// Reports that another model, or another provider, answers from here on.
    fn compare(&mut self, before: &Answering) {
        let switched = self.models.switched();
        let now = Answering::of(&switched);
        // Without a provider nobody gets the conversation.
        let change = before.change(&now).filter(|_| !now.host.is_empty());
        let Some((code, text)) = change else { return };
        self.recorder.push(Output::Warning(Warning { text, has_event: true, code: Some(code) }));
        let is_announced = self.unannounced.iter().any(|(of, _)| *of == Extension::SwitchModel);
        if !is_announced {
            self.switched_unasked(switched);
        }
    }

    /// Reports a model that no request of this process has chosen.
    fn switched_unasked(&mut self, model: ModelSwitched) {
        let switched = SessionEvent::ModelSwitched { model, choices: None };
        self.announce_if_on(Extension::SwitchModel, switched);
    }

    /// Reports which provider gets a conversation that was stored without the name of one: with the
    /// built-in engine so far, or by an early version.
    fn report_unrecorded(&mut self) {
        let now = Answering::of(&self.models.switched());
        if self.turns == 0 || now.host.is_empty() || now.is_built_in() {
            return;
        }
        let text = format!(
            "this conversation was stored without the name of a provider; from the next prompt on {now} \
             gets all of it"
        );
        let code = Some(PROVIDER_UNRECORDED);
        self.recorder.push(Output::Warning(Warning { text, has_event: true, code }));
    }

    fn resume_model(&mut self, mut chosen: ChosenModel) {
        let typed = &self.rules.typed_settings;
        let is_typed = |name: &str| typed.iter().any(|it| CallSettings::is_same_name(it, name));
        chosen.settings.retain(|name, _| !is_typed(name));
        let is_partial = chosen.is_partial;
        match self.models.resume(chosen) {
            Ok(switched) => self.switched_unasked(switched),
            Err(why) => {
                let default = self.models.model(self.models.current());
                let default = if default.is_empty() { "the one it has" } else { default };
                let warning = format!(
                    "the conversation was switched to a model that this process can't use: {why}; it \
                     goes on with the model of this process, {default}"
                );
                return self.recorder.push(Output::Warning(warning.into()));
            }
        }
        if is_partial {
            let warning = "headers or members of the body that the conversation was switched to are not \
                           stored, as they may hold a key; switch again if its calls need them";
            self.recorder.push(Output::Warning(warning.to_owned().into()));
        }
    }

    /// Offers the tools of an earlier process, once the client takes calls of tools.
    pub(super) fn offer_held_tools(&mut self) {
        if !self.recorder.is_on(Extension::ClientTools) {
            return;
        }
        let Some(held) = self.held_tools.take() else { return };
        // The stored manifest was valid for the version that stored it.
        if let Ok(manifest) = ToolManifest::try_from(held) {
            let tools = self.offer(manifest);
            let declared = SessionEvent::ToolsDeclared { tools, choices: None };
            self.recorder.record_of_session(None, declared);
        }
    }

    /// The client's choices so far.
    pub(super) fn choices(&self) -> Choices {
        let tools = self.declared.as_ref().or(self.held_tools.as_ref());
        let origin = self.rules.origin.clone();
        Choices { model: self.models.chosen().cloned(), tools: tools.cloned(), origin }
    }

    /// The store has failed: the conversation goes on without it.
    pub(super) fn store_failed(&mut self, failure: StoreFailure, is_open: bool) {
        let StoreFailure { reason, first_missing } = failure;
        self.recorder.stop_log(&reason);
        // A single run has one error, which is its own.
        if self.rules.mode == SessionMode::Conversation {
            self.recorder.error(None, store_failed(&reason));
        }
        if is_open {
            let first_missing_ordinal = first_missing.map_or(0, |ordinal| ordinal.0);
            self.degraded(StoreDegraded { reason, first_missing_ordinal });
        }
    }

    fn degraded(&mut self, degraded: StoreDegraded) {
        self.announce_if_on(Extension::Store, SessionEvent::StoreDegraded(degraded));
    }

    /// Shows an event that belongs to an extension, now or once that is on. `ModelSwitched` waits for the end of a run.
    fn announce_if_on(&mut self, extension: Extension, event: SessionEvent) {
        let is_in_its_place = extension != Extension::SwitchModel || self.phase.active().is_none();
        match self.recorder.is_on(extension) && is_in_its_place {
            true => self.recorder.record_of_session(None, event),
            false => self.unannounced.push((extension, event)),
        }
    }

    /// Shows what waited for an extension that is on now, or for the end of a run.
    pub(super) fn announce_late(&mut self) {
        for (extension, event) in std::mem::take(&mut self.unannounced) {
            self.announce_if_on(extension, event);
        }
    }
}

/// What answers: a provider and its model.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Answering {
    engine: String,
    /// Empty if it is not known.
    model: String,
    host: String,
}

impl Answering {
    /// The engine and model of a stored conversation: those it was switched to, or those of its process.
    fn before(chosen: Option<&ChosenModel>, origin: Option<&Origin>) -> Option<Self> {
        let chosen = chosen.map(|it| (&it.engine, &it.model, &it.host));
        let origin = || origin.map(|it| (&it.engine, &it.model, &it.address.host));
        let (engine, model, host) = chosen.or_else(origin)?;
        Some(Self { engine: engine.clone(), model: model.clone(), host: host.clone() })
    }

    /// Whether nobody outside of this process answers. The built-in engine has one name for all of them.
    fn is_built_in(&self) -> bool {
        self.host == self.engine
    }

    fn of(switched: &ModelSwitched) -> Self {
        let ModelSwitched { engine, model, host, .. } = switched.clone();
        Self { engine, model, host }
    }

    /// The warning about a change from this to `now`, with its code.
    fn change(&self, now: &Self) -> Option<(&'static str, String)> {
        if self.host != now.host {
            let text = format!(
                "this conversation was with {self} so far; from the next prompt on {now} gets all of it"
            );
            return Some((PROVIDER_CHANGED, text));
        }
        let is_same_model = self.model.is_empty() || self.model == now.model;
        (self.engine != now.engine || !is_same_model).then(|| {
            let text = format!("this conversation was with {self} so far; now {now} answers");
            (MODEL_CHANGED, text)
        })
    }
}

impl fmt::Display for Answering {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { engine, model, host } = self;
        let names = [host, engine, model].into_iter().filter(|name| !name.is_empty());
        let mut names: Vec<_> = names.map(String::as_str).collect();
        names.dedup();
        f.write_str(&names.join(" · "))
    }
}

#[cfg(test)]
impl Session {
    /// Checks that a run that goes on waits for something that comes: a task, or a time.
    pub(crate) fn check_waits(&self) -> Result<(), String> {
        let is_live = self.phase.active().is_some();
        match is_live && !self.recorder.has_tasks() && self.deadline().is_none() {
            true => Err(format!("the run waits for nothing: {:?}", self.phase)),
            false => Ok(()),
        }
    }

    /// Checks that the folds of the log are what is known of the conversation.
    #[track_caller]
    pub(crate) fn assert_projected(&self, stored: &Projections) {
        let (live, session) = (&self.recorder.projections, self.id());
        let shown = |it: &Projections| it.timeline.snapshot(session, Span::Conversation);
        let whole = |it: &Projections| {
            let entities = shown(it).entities.into_iter();
            let whole =
                entities.map(|it| (it.id, it.last_event_ordinal, it.payload.map(Any::into_whole)));
            whole.collect::<Vec<_>>()
        };
        assert_eq!(whole(live), whole(stored));
        assert_eq!(live.transcript.turns(), stored.transcript.turns());
        assert_eq!(live.usage.counts(), stored.usage.counts());
        assert_eq!((live.ordinal, live.turns), (stored.ordinal, stored.turns));
        assert_eq!(live.choices, stored.choices);
    }
}

/// The conversation as it would be if the process that holds it ended here.
pub(crate) fn as_if_ended(restored: Restored) -> Projections {
    let Restored { session, projections, open, .. } = restored;
    let mut ids = Ids::new(0);
    let mut recorder = Recorder::new(session.clone(), &Rules::default(), &mut ids);
    recorder.restore(session, *projections);
    recorder.end_cut_off(&open, ids.request());
    recorder.projections
}

/// The events that end the turn `open` of the log `events`, as they do when the session is resumed.
pub(crate) fn ends_of_cut_off(
    start: &SessionStart,
    events: &[Recorded],
    open: &[Recorded],
) -> Vec<Recorded> {
    let mut projections = Projections::of_start(start);
    events.iter().for_each(|recorded| projections.apply(recorded, true));
    let rules =
        Rules { log: LogRules { is_stored: true, ..LogRules::default() }, ..Rules::default() };
    let mut ids = Ids::new(0);
    let mut recorder = Recorder::new(start.session.clone(), &rules, &mut ids);
    recorder.restore(start.session.clone(), projections);
    recorder.end_cut_off(open, ids.request());
    let event = |output| match output {
        Output::Persist(Record::Event(recorded)) => Some(recorded),
        Output::Persist(Record::Start(_))
        | Output::Frame(_)
        | Output::StartCall(..)
        | Output::StartTool(..)
        | Output::ReadFiles(..)
        | Output::CancelTask(_)
        | Output::Warning(_)
        | Output::Exit(_)
        | Output::Abort(_) => None,
    };
    recorder.take_outputs().into_iter().filter_map(event).collect()
}

/// A loss, with what a person can do about one because of which nothing more is stored.
fn with_way_out(Loss { reason, is_closed }: Loss) -> Loss {
    let reason = if is_closed { format!("{reason}; {COPY_ADVICE}") } else { reason };
    Loss { reason, is_closed }
}

impl Recorder {
    /// Continues a stored conversation.
    fn restore(&mut self, session: SessionId, projections: Projections) {
        self.rename(session);
        let own = self.projections.transcript.preamble().system.clone();
        self.projections = projections;
        self.projections.prefer_system(own);
        self.log.resume();
    }

    /// Ends the run that was cut off, if there is one: its end is stored, and not shown.
    fn end_cut_off(&mut self, open: &[Recorded], request: RequestId) {
        let Some(mut run) = Run::of_events(open, request) else { return };
        let stop = Stop { reason: CUT_OFF.to_owned(), error: None };
        self.unseen(|recorder| run.end(recorder, Uptime::default(), Outcome::Stopped(stop)));
    }

    /// Stores nothing from here on.
    fn stop_log(&mut self, reason: &str) {
        self.log.stop();
        let text = format!("{reason}; the conversation goes on and is not stored any more");
        self.push(Output::Warning(Warning { text, has_event: true, code: None }));
    }
}
