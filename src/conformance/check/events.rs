//! Checks each event: its frame, and what it means for its run and the conversation.

use super::attachments::check_attachments;
use super::conversation::Position;
use super::extension::check_extension_fields;
use super::fields::Fields;
use super::line::Read;
use super::names::{Name, check_event_name};
use super::rule::{Report, Rule};
use super::run_event::RunEvent;
use super::runs::{Activity, RunSeen};
use super::text::Text;
use super::{Checker, EXTENSIONS};
use crate::protocol::any::Any;
use crate::protocol::constants::capability;
use crate::protocol::proto::chat::ChatStreamPatchMode;
use crate::protocol::proto::rpc::{BackendEventFrame, UiEventFrame};

impl Checker {
    pub(super) fn event(
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
        let is_of_two = matches!(payload, Some(Any::SteeringAccepted(_)));
        // A debug file has either all extensions that were used, or those alone that `hello` announces.
        self.runs.has_steering |= self.process.has_unannounced;
        // Most events are patches, whose names alone are compared.
        let key =
            if is_extension { self.namer.key(&format!("{payload:?}")) } else { Default::default() };
        let shown = (frame.name.as_str(), key);
        if let Some(Any::Heartbeat(_)) = payload {
            return self.heartbeat(name, frame, payload, report);
        }
        self.order.event(frame.ordinal, name, shown, (is_extension, is_of_two), report);
        let Some(payload) = payload else { return };
        check_extension_fields(payload, report);
        check_attachments(payload, report);
        self.check_between_runs(payload, report);
        self.check_client_tools(payload, report);
        let target = self.steered(name, payload, report);
        let event = RunEvent::of(payload);
        if let RunEvent::RunEnded { .. } = event {
            self.process.run_ended();
        }
        if let Any::ChatToolCallFinished(it) = payload {
            // A call that is not made has the arguments that were streamed.
            let text = self.runs.open_text(&self.namer.name(&it.tool_call_id));
            self.conversation.settle_arguments(&it.tool_call_id, text.and_then(Text::so_far));
        }
        if self.is_count_of_summary(name, payload) {
            self.runs.calls.forget_totals();
        } else {
            self.runs.event(name, event, &self.namer, report);
        }
        if !self.runs.has(name) {
            self.requests.event(name, payload);
        }
        if !self.runs.has(name) {
            self.check_compaction(payload);
        }
        let fields = Fields::of(payload);
        fields.check(&read.frame.session_id, report);
        self.check_mode(&fields, report);
        self.runs.identify(target.as_ref().unwrap_or(name), &fields, &self.namer, report);
        let at = Position { request: name, ordinal: frame.ordinal, line: report.line() };
        self.conversation.event(at, payload, &fields);
        if let Any::TurnDropped(dropped) = payload {
            self.conversation.dropped(dropped, frame.ordinal, report);
        }
    }

    /// A sign of life of a run is no event of the conversation.
    pub(super) fn heartbeat(
        &mut self,
        name: &Name,
        frame: &UiEventFrame,
        payload: Option<&Any>,
        report: &mut Report,
    ) {
        self.order.heartbeat(frame.ordinal, report);
        payload.into_iter().for_each(|payload| check_extension_fields(payload, report));
        if let RunSeen::Ended(_) = self.runs.seen(name) {
            report.add(Rule::EventOrder, "a Heartbeat of a run that has ended");
        }
    }

    /// A prompt that joins the run of another request. Its event is of both.
    fn steered(&mut self, name: &Name, payload: &Any, report: &mut Report) -> Option<Name> {
        let Any::SteeringAccepted(joined) = payload else { return None };
        let message = self.namer.name(&joined.message_id);
        let target = self.namer.name(joined.target_request_id.trim());
        self.runs.steered(name, (&message, &target), report);
        Some(target)
    }

    /// Another model answers from the next submit on, or turns are dropped: not in the middle of a run.
    fn check_between_runs(&self, payload: &Any, report: &mut Report) {
        if let Any::ModelSwitched(_) | Any::TurnDropped(_) = payload
            && self.activity() == Activity::Running
        {
            let message = format!("{} while a run is under way", payload.name());
            report.add(Rule::EventOrder, message);
        }
    }

    /// A compaction that is no part of a run.
    fn check_compaction(&mut self, payload: &Any) {
        if let Any::CompactionStarted(_) = payload {
            self.is_compacting = true;
        } else if let Any::Compacted(_) | Any::CompactionFailed(_) = payload {
            self.is_compacting = false;
            // The call that made it is shown in a run alone.
            self.runs.calls.forget_totals();
        }
    }

    /// Whether an event counts the call of a compaction outside of runs, which is not shown itself. A client that has
    /// not asked for compactions does not see the compaction either.
    fn is_count_of_summary(&self, name: &Name, payload: &Any) -> bool {
        let may_be = self.is_compacting || !self.process.announces(capability::COMPACTION);
        matches!(payload, Any::UsageTotals(_)) && may_be && !self.runs.has(name)
    }

    /// What is between the client and its tools.
    fn check_client_tools(&mut self, payload: &Any, report: &mut Report) {
        self.has_client_tools |= matches!(payload, Any::FrontendToolManifestUpdated(_));
        if let Any::FrontendToolCallRequested(_) = payload
            && !self.has_client_tools
            // The client of a node may have declared them before it attached again.
            && !self.conversation.is_resumed()
            && self.joined.is_none()
        {
            let message = "FrontendToolCallRequested before the client has declared tools";
            report.add(Rule::EventOrder, message);
        }
    }

    /// The mode of patches is an option of the process. Patches that replace text may be among
    /// them.
    fn check_mode(&mut self, fields: &Fields<'_>, report: &mut Report) {
        let fixed = [ChatStreamPatchMode::Append, ChatStreamPatchMode::Snapshot].map(i32::from);
        let is_fixed = |mode: &i32| fixed.contains(mode);
        let Some(mode) = fields.segment_mode().filter(is_fixed) else { return };
        if self.mode.is_some_and(|known| known != mode) {
            report.add(Rule::PatchMode, "the mode differs from that of the earlier patches");
        }
        self.mode = Some(mode);
    }

    pub(super) fn backend_event(
        &mut self,
        frame: &BackendEventFrame,
        strange: Option<&String>,
        report: &mut Report,
    ) {
        let payload = frame.payload.as_ref().map_or("", |payload| payload.name());
        check_event_name(&frame.name, payload, strange, report);
        self.check_extension(payload, report);
        self.order.backend_event(frame.ordinal, report);
    }

    pub(super) fn check_extension(&mut self, payload: &str, report: &mut Report) -> bool {
        let extension = EXTENSIONS.get(payload);
        if let Some(extension) = extension {
            self.process.need_extension(extension, report);
        }
        extension.is_some()
    }
}
