//! The records that a session appends to its log: the start record, and each event before its frames are
//! shown.

use super::LogRules;
use crate::conversation::choices::Choices;
use crate::conversation::event::Event;
use crate::conversation::log::{Record, SessionStart};
use crate::conversation::projections::Projections;
use crate::conversation::timeline::Span;
use crate::protocol::id::{RequestId, SessionId};
use crate::support::text::Text;
use std::sync::Arc;

/// The state of a session's log.
#[derive(Clone, Debug)]
pub(super) struct Log {
    rules: LogRules,
    /// The start record is appended.
    has_begun: bool,
    /// The choices from the next run on; `None` if they are those in the log.
    next_choices: Option<Arc<Choices>>,
}

impl Log {
    pub(super) fn new(rules: LogRules) -> Self {
        Self { rules, has_begun: false, next_choices: None }
    }

    /// The next run has these choices, which are others than those in the log.
    pub(super) fn continue_with(&mut self, choices: Choices) {
        self.next_choices = Some(choices.into());
    }

    /// Nothing is appended from here on, and backend events are shown as before.
    pub(super) fn stop(&mut self) {
        self.rules.is_stored = false;
    }

    /// The log has events already.
    pub(super) fn resume(&mut self) {
        self.has_begun = true;
    }

    pub(super) fn rules(&self) -> LogRules {
        self.rules
    }

    /// The event with what is chosen, if it is the start of a run and the log has other choices so far, and
    /// with its request, if a client may send that again.
    pub(super) fn complete(&mut self, event: Event, request: Option<&RequestId>) -> Event {
        if let Event::RunStarted { prompt, choices: None, answerer, .. } = event {
            let choices = self.next_choices.take().filter(|_| self.rules.is_stored);
            let request = request.filter(|_| self.rules.has_request_ids);
            let request = request.map_or_else(Text::default, |id| id.as_str().to_owned().into());
            return Event::RunStarted { prompt, choices, answerer, request };
        }
        if event.choices().is_some() {
            self.next_choices = None;
        }
        event
    }

    /// The start of the session, before its first event; that one is in `projections` already.
    pub(super) fn begin(
        &mut self,
        session: &SessionId,
        projections: &Projections,
    ) -> Option<Record> {
        if std::mem::replace(&mut self.has_begun, true) {
            return None;
        }
        let mut history = projections.timeline.snapshot(session, Span::Conversation).entities;
        // Earlier messages have no ordinal.
        history.retain(|entity| entity.created_ordinal == 0);
        Some(Record::Start(Box::new(SessionStart {
            session: session.clone(),
            preamble: projections.transcript.preamble().clone(),
            history,
            choices: (*projections.choices).clone(),
        })))
    }
}
