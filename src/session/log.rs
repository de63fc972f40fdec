//! What is kept of a session: each event as a record for the store and, where they are asked for, as
//! a frame with the backend event.

use super::usage::UsageMeter;
use super::{LogRules, Output};
use crate::chat::choices::Choices;
use crate::chat::event::{Event, Recorded};
use crate::chat::patch::{PatchFields, PatchMode, Patches};
use crate::chat::record::{EventRecord, PatchRecord, Record, SessionStart, TurnChange};
use crate::chat::timeline::{Span, Timeline};
use crate::chat::transcript::Transcript;
use crate::chat::ui::Ui;
use crate::protocol::any::Any;
use crate::protocol::id::{Ordinal, RequestId, SessionId};
use crate::protocol::wire;
use std::sync::Arc;

/// Makes the records of a session.
#[derive(Clone, Debug)]
pub(super) struct Log {
    rules: LogRules,
    ui: Ui,
    /// The start of the session is recorded.
    has_begun: bool,
    /// The last event whose entities are recorded as a state.
    state_until: Ordinal,
    /// What is chosen now.
    choices: Arc<Choices>,
    /// The choices are recorded with the beginning of the next run: the store has others.
    has_other_choices: bool,
}

/// The projections that records are made of, after the event was applied to them.
pub(super) struct Projections<'a> {
    pub(super) session: &'a SessionId,
    pub(super) timeline: &'a Timeline,
    pub(super) transcript: &'a Transcript,
    pub(super) usage: &'a UsageMeter,
}

impl Log {
    pub(super) fn new(session: SessionId, rules: LogRules) -> Self {
        let (mode, fields) = (PatchMode::Append, PatchFields::Full);
        let ui = Ui::new(session, Patches { mode, fields });
        let (has_begun, state_until) = (false, Ordinal::default());
        let choices = Arc::default();
        Self { rules, ui, has_begun, state_until, choices, has_other_choices: false }
    }

    /// The session begins with these choices.
    pub(super) fn begin_with(&mut self, choices: Choices) {
        self.choices = choices.into();
    }

    /// The next run goes on with these choices, which are others than those that are stored.
    pub(super) fn go_on_with(&mut self, choices: Choices) {
        self.choices = choices.into();
        self.has_other_choices = true;
    }

    /// The same log for a session of another name.
    pub(super) fn renamed(&self, session: SessionId) -> Self {
        Self { choices: Arc::clone(&self.choices), ..Self::new(session, self.rules) }
    }

    /// Nothing is recorded from here on, and backend events are shown as before.
    pub(super) fn stop(&mut self) {
        self.rules.is_stored = false;
    }

    /// The session was stored up to here.
    pub(super) fn resume(&mut self, state_until: Ordinal) {
        (self.has_begun, self.state_until) = (true, state_until);
    }

    pub(super) fn rules(&self) -> LogRules {
        self.rules
    }

    /// Whether anything is made of events.
    pub(super) fn is_on(&self) -> bool {
        self.rules.is_stored || self.rules.backend_events
    }

    /// The output for a patch, if that is all there is to do for it. What is stored of it has no field that
    /// the event before it has.
    pub(super) fn patch(&self, recorded: &Recorded) -> Option<Output> {
        let is_plain = self.rules.is_stored && self.has_begun && !self.rules.backend_events;
        let patch = if is_plain { PatchRecord::of(recorded) } else { None };
        patch.map(|patch| Output::Persist(Record::Patch(patch)))
    }

    /// The event with what is chosen, if it is the start of a run and the log has other choices so far.
    pub(super) fn complete(&mut self, event: Event) -> Event {
        if let Event::RunStarted { prompt, choices: None } = event {
            let is_other = self.rules.is_stored && std::mem::take(&mut self.has_other_choices);
            return Event::RunStarted {
                prompt,
                choices: is_other.then(|| Arc::clone(&self.choices)),
            };
        }
        if let Some(choices) = event.choices() {
            self.choices = Arc::clone(choices);
            self.has_other_choices = false;
        }
        event
    }

    /// The event as it is recorded.
    pub(super) fn payload(&mut self, recorded: &Recorded) -> Any {
        self.ui.project(recorded.clone())
    }

    /// The outputs for an event of a run, if it is stored.
    pub(super) fn record(
        &mut self,
        recorded: &Recorded,
        payload: Any,
        projections: &Projections<'_>,
    ) -> Vec<Output> {
        if !self.rules.is_stored {
            return Vec::new();
        }
        let change = if recorded.event.ends_run() {
            Some(projections.ended(recorded.scope.turn))
        } else {
            TurnChange::of(recorded)
        };
        self.push(recorded, payload, change, projections)
    }

    fn push(
        &mut self,
        recorded: &Recorded,
        payload: Any,
        change: Option<TurnChange>,
        projections: &Projections<'_>,
    ) -> Vec<Output> {
        let Recorded { ordinal, scope, .. } = *recorded;
        let mut outputs = self.begin(projections);
        if let Some(patch) = PatchRecord::of(recorded) {
            outputs.push(Output::Persist(Record::Patch(patch)));
            return outputs;
        }
        let state = if let Event::TurnDropped { .. } = recorded.event {
            self.state_until = ordinal;
            Some(projections.timeline.dropped_at(ordinal).into())
        } else {
            recorded.event.ends_run().then(|| {
                let since = std::mem::replace(&mut self.state_until, ordinal);
                projections.timeline.state_since(projections.session, since)
            })
        };
        let scope = scope.of_run();
        let is_end = recorded.event.ends_run();
        let usage = is_end.then(|| projections.usage.session()).flatten();
        let record = EventRecord { ordinal, scope, payload, change, state, usage };
        outputs.push(Output::Persist(Record::Event(Box::new(record))));
        outputs
    }

    /// The frame with a backend event, if they are shown.
    pub(super) fn backend_event(
        &self,
        session: &SessionId,
        request: Option<&RequestId>,
        (ordinal, payload): (Ordinal, &Any),
    ) -> Option<Output> {
        let body = || wire::backend_event(ordinal, payload.clone());
        self.rules.backend_events.then(|| Output::Frame(wire::frame(session, request, body())))
    }

    /// The start of the session, before its first event.
    fn begin(&mut self, projections: &Projections<'_>) -> Vec<Output> {
        if std::mem::replace(&mut self.has_begun, true) {
            return Vec::new();
        }
        let mut history = projections.timeline.snapshot(projections.session, Span::Conversation);
        // The first event is in the timeline already; the earlier messages have no ordinal.
        history.entities.retain(|entity| entity.created_ordinal == 0);
        history.snapshot_ordinal = 0;
        let start = SessionStart {
            session: projections.session.clone(),
            preamble: projections.transcript.preamble().clone(),
            history: history.into(),
            choices: (*self.choices).clone(),
        };
        vec![Output::Persist(Record::Start(Box::new(start)))]
    }
}

impl Projections<'_> {
    /// How the turn of this number has ended. One that failed without an answer is not sent again,
    /// and the turns of a conversation that was stored in two places need not have it.
    fn ended(&self, number: u32) -> TurnChange {
        let mut turns = self.transcript.turns().iter().rev();
        TurnChange::Ended(turns.find(|turn| turn.number == number).cloned())
    }
}
