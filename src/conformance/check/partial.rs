//! Checks a stream that has only some of the events, as `hello` announces: each frame, the ordinals and the
//! `done` of each request, but not what follows what.

use super::Checker;
use super::extension::check_extension_fields;
use super::fields::Fields;
use super::line::Read;
use super::names::{Name, check_event_name};
use super::rule::Report;
use crate::protocol::any::Any;
use crate::protocol::proto::rpc::UiEventFrame;
use crate::protocol::proto::rpc::rpc_line::Frame as Body;

/// What was not checked, as `events` alone are written.
pub(super) fn note(events: &str) -> String {
    format!("only some events were written ({events}), so their order in a run was not checked")
}

impl Checker {
    pub(super) fn check_partial(
        &mut self,
        name: &Name,
        id: &str,
        read: &Read,
        report: &mut Report,
    ) {
        let Some(body) = &read.frame.frame else { return };
        self.process.check_end(name, body, report);
        if !self.is_expected(name, id, body, report) {
            return;
        }
        if !id.is_empty() {
            self.requests.see(name, self.summary.lines);
        }
        match body {
            Body::UiEvent(frame) => self.partial_event(name, frame, read, report),
            Body::BackendEvent(frame) => {
                self.backend_event(frame, read.strange.first(), report);
            }
            Body::Error(frame) => {
                self.process.check_terminal(id, frame, report);
                self.process.error(name, frame);
                // Whatever turned an extension on may have no frames but its error.
                self.process.other_answer();
            }
            Body::Done(frame) => {
                self.requests.end(name, id.is_empty());
                self.process.other_answer();
                self.process.done(frame);
            }
            Body::Hello(_) | Body::Snapshot(_) => {}
        }
    }

    fn partial_event(
        &mut self,
        name: &Name,
        frame: &UiEventFrame,
        read: &Read,
        report: &mut Report,
    ) {
        self.summary.events += 1;
        let (payload, strange) = (frame.payload.as_ref(), read.strange.first());
        let payload_name = payload.map_or("", |payload| payload.name());
        check_event_name(&frame.name, payload_name, strange, report);
        let is_extension = self.check_extension(payload_name, report) || strange.is_some();
        if let Some(Any::Heartbeat(heartbeat)) = payload {
            // The event before it may not be written.
            return check_extension_fields(&Any::Heartbeat(heartbeat.clone()), report);
        }
        let key = self.namer.key(&format!("{payload:?}"));
        let shown = (frame.name.as_str(), key);
        // An event of two requests may be written for the second of them alone.
        let is_of_two = matches!(payload, Some(Any::SteeringAccepted(_)));
        self.order.event(frame.ordinal, name, shown, (is_extension, is_of_two), report);
        let Some(payload) = payload else { return };
        check_extension_fields(payload, report);
        // The event that a lean patch is completed with may not be written.
        if !self.lean.is_on() {
            Fields::of(payload).check(&read.frame.session_id, report);
        }
    }
}
