//! What follows from what the store reports: it was opened, has written, or has failed.

use super::{CodedWarning, Effect, Effects, Host};
use crate::conversation::log::{Restored, StoreFailure};
use crate::protocol::constants::code;
use crate::protocol::proto::rpc::rpc_line::Frame as Body;
use crate::protocol::wire::{ClientError, Code};
use crate::session::Input;
use crate::store::Report;

/// Nothing more is stored.
const FAILED: &str = code::STORE_FAILED;

/// Not everything could be read.
const DEGRADED: &str = "store_degraded";

impl Host {
    /// What the store reports.
    pub(super) fn reported(&mut self, report: Report) -> Effects {
        match report {
            Report::Opened(Ok(restored)) => self.store_opened(restored),
            Report::Opened(Err(client_error)) => self.take_now(Input::Refused(client_error)),
            Report::Written(Ok(())) => {
                self.persist_gate.written();
                self.start_stored();
                self.persist_gate.take_ready().unwrap_or_default()
            }
            Report::Written(Err(failure)) => self.store_failed(failure),
            Report::Closed => Effects::default(),
        }
    }

    /// The store is open, and the session goes on with `restored`, or begins.
    fn store_opened(&mut self, restored: Option<Box<Restored>>) -> Effects {
        let stored = restored.as_ref().zip(self.supervisor.session());
        if let Some(error) = stored.and_then(|(it, session)| session.other_beginning(it)) {
            return self.take_now(Input::Refused(error));
        }
        self.persist_gate.opened(restored.is_some());
        let loss = restored.as_ref().and_then(|it| it.loss.as_ref());
        let warning =
            loss.map(|loss| warning(if loss.is_closed { FAILED } else { DEGRADED }, &loss.reason));
        if let Some(choice) = restored.as_ref().and_then(|it| it.choice()) {
            self.prepare_choice(&choice);
        }
        let at = self.uptime();
        let mut list: Vec<_> = warning.into_iter().collect();
        list.extend(self.decide(Input::Restored(restored), None).list);
        while !self.file_reads.hold_up()
            && let Some(input) = self.waiting.pop_front()
        {
            list.extend(self.decide(input, None).list);
        }
        self.persist_gate.hold(Effects { at, list })
    }

    /// The store has no thread.
    pub(super) fn store_unable(&mut self, reason: &str) -> Effects {
        let reason = format!("the conversation can't be stored: {reason}");
        if !self.persist_gate.is_opening() {
            return self.store_failed(StoreFailure { reason, first_missing: None });
        }
        let detail = String::new();
        let error =
            ClientError { code: Code::StoreFailed, message: reason, detail, terminal: true };
        self.take_now(Input::Refused(error))
    }

    /// The store is not waited for any more, as a signal ends the process.
    pub(super) fn store_out_of_time(&mut self) -> Effects {
        let failure = self.persist_gate.out_of_time();
        self.store_failed(failure)
    }

    /// Nothing more is stored. The error comes before the frames that are not, and the event, which
    /// has an ordinal of its own, after them.
    fn store_failed(&mut self, failure: StoreFailure) -> Effects {
        self.persist_gate.give_up();
        self.starts.cancel_all();
        let warning = warning(FAILED, &failure.reason);
        let Effects { at, list } = self.decide(Input::StoreFailed(failure), Some(warning));
        let (errors, events) = list.into_iter().partition(is_error);
        let events = self.persist_gate.hold(Effects { at, list: events });
        if events.list.is_empty() {
            self.persist_gate.put_first(Effects { at, list: errors });
            return self.persist_gate.take_ready().unwrap_or_default();
        }
        Effects { at, list: errors.into_iter().chain(events.list).collect() }
    }
}

fn warning(code: &'static str, message: &str) -> Effect {
    Effect::Warning(CodedWarning { code, message: message.to_owned() })
}

/// Whether it comes before what waited for the store.
fn is_error(effect: &Effect) -> bool {
    match effect {
        Effect::Frame(frame) => matches!(frame.frame, Some(Body::Error(_))),
        Effect::Warning(_) => true,
        Effect::Usage(_) | Effect::ToolImages(_) | Effect::Exit(_) | Effect::Abort(_) => false,
    }
}
