//! An answer as it streams: turns what an engine reports into events, and opens and closes the
//! provider call, its segments and its tool calls.

use super::open::{CallFinish, OpenCall, OpenSegment, OpenTool, ToolProgress};
use super::{Run, Uptime};
use crate::conversation::event::{
    CallReport, Ending, Event, FinishClass, Segment, SegmentKind, ToolCall,
};
use crate::protocol::command::Extension;
use crate::protocol::constants::REASON_OF_REASONING;
use crate::protocol::id::ToolCallId;
use crate::session::recorder::Recorder;
use crate::support::text::Text;
use crate::task::call::Purpose;
use crate::task::report::{EngineEvent, Retry};

/// How a segment finishes.
struct SegmentFinish<'a> {
    status: Ending,
    /// The reason of its call, if it is the last of it.
    reason: &'a str,
    is_cut_off: bool,
}

impl SegmentFinish<'_> {
    /// Something else follows in the same call.
    const DEFAULT: Self = Self { status: Ending::Finished, reason: "", is_cut_off: false };
}

impl Run {
    pub(super) fn engine_event(
        &mut self,
        recorder: &mut Recorder,
        now: Uptime,
        event: EngineEvent,
    ) {
        match event {
            EngineEvent::CallStarted => self.open_call(recorder, now),
            EngineEvent::ResponseStarted => {
                if let Some(call) = &mut self.call {
                    call.response_started(now);
                }
            }
            EngineEvent::Reasoning { text, .. } => {
                self.stream(recorder, now, SegmentKind::Thinking, text);
            }
            EngineEvent::Text(text) => self.stream(recorder, now, SegmentKind::Text, text),
            EngineEvent::ToolCallStarted(tool) => self.open_tool(recorder, now, tool),
            EngineEvent::ToolArguments { id, text } => self.tool_arguments(recorder, &id, text),
            EngineEvent::ToolCallRequested { id } => self.tool_requested(recorder, &id),
            EngineEvent::Usage(usage) => {
                if let Some(call) = &mut self.call {
                    call.usage = Some(usage);
                }
            }
            EngineEvent::ContextTokens(tokens) => self.model.compaction.learn(tokens),
            EngineEvent::RetryScheduled(retry) => self.retry_scheduled(recorder, retry),
            EngineEvent::RetryStarted(_) => self.retry_started(recorder, now),
            EngineEvent::CallFinished { stop_reason, class, provider_data } => {
                let (segment, is_free) = (Ending::Finished, false);
                let finish = CallFinish { stop_reason, class, segment, provider_data, is_free };
                self.close_call(recorder, now, finish);
            }
        }
    }

    pub(super) fn open_call(&mut self, recorder: &mut Recorder, now: Uptime) {
        // An engine that begins another call is done with the one before, even if it didn't say so; and
        // the tool calls of that one are not made.
        self.close_call(recorder, now, CallFinish::cut(FinishClass::Other, Ending::Finished));
        self.close_tools(recorder);
        self.has_begun_call = true;
        self.calls += 1;
        self.scope.call = self.calls;
        self.record(recorder, Event::CallStarted);
        self.call = Some(OpenCall::new(now));
    }

    pub(super) fn close_call(&mut self, recorder: &mut Recorder, now: Uptime, end: CallFinish) {
        let finish = SegmentFinish {
            status: end.segment,
            reason: &end.stop_reason,
            is_cut_off: end.class.cuts_off(),
        };
        self.close_segment(recorder, finish);
        let Some(call) = self.call.clone() else { return };
        let CallFinish { stop_reason, class, provider_data, is_free, .. } = end;
        if let Some(usage) = call.usage {
            let stop_reason = stop_reason.clone();
            self.record(recorder, Event::CallMetadataUpdated { stop_reason, usage });
        }
        self.cut_off = class.cuts_off().then(|| stop_reason.clone());
        let model = self.model.priced_for(self.purpose().unwrap_or(Purpose::Answer));
        let spent = recorder.prices().spent(model, call.usage.as_ref(), is_free);
        let finished = Event::CallFinished {
            stop_reason,
            class,
            usage: call.usage,
            duration_ms: now.since(call.started),
            has_tool_calls: call.has_tool_calls,
            provider_data,
            spent,
        };
        self.record(recorder, finished);
        if self.purpose() != Some(Purpose::Summary) {
            self.report_truncation(recorder, class);
        }
        let (first_byte_ms, first_token_ms) = (call.first_byte_ms, call.first_token_ms);
        let timed = CallReport::Timed { first_byte_ms, first_token_ms };
        self.report(recorder, Extension::Timing, timed);
        let counted = CallReport::Counted(recorder.projections.usage.counts().into());
        self.report(recorder, Extension::Usage, counted);
        if let Some(spent) = recorder.nearly_spent() {
            self.report(recorder, Extension::Usage, spent);
        }
    }

    fn report_truncation(&mut self, recorder: &mut Recorder, class: FinishClass) {
        let Some(stop_reason) = self.cut_off.clone() else { return };
        let truncated = CallReport::Truncated { stop_reason, class };
        self.report(recorder, Extension::Retries, truncated);
    }

    /// Retries are of a call, and come before its answer: any other is not shown.
    fn retry_scheduled(&mut self, recorder: &mut Recorder, retry: Retry) {
        if !self.call.as_mut().is_some_and(|call| call.schedule(&retry)) {
            return;
        }
        let scheduled = CallReport::RetryScheduled {
            attempt: retry.attempt,
            attempts_max: retry.attempts_max,
            wait_ms: retry.wait_ms,
            error_class: retry.class.as_str().to_owned(),
            reason: retry.reason,
        };
        self.report(recorder, Extension::Retries, scheduled);
    }

    /// The retry that was scheduled starts, if there is one.
    fn retry_started(&mut self, recorder: &mut Recorder, now: Uptime) {
        let started = self.call.as_mut().and_then(|call| call.ask_again(now));
        if let Some((attempt, attempts_max)) = started {
            let started = CallReport::RetryStarted { attempt, attempts_max };
            self.report(recorder, Extension::Retries, started);
        }
    }

    /// Shows an event of an extension, if that is on.
    fn report(&mut self, recorder: &mut Recorder, extension: Extension, report: CallReport) {
        if recorder.is_on(extension) {
            self.record(recorder, Event::Call(report));
        }
    }

    /// What a model says is always within a call, even if its engine forgot to begin one.
    fn need_call(&mut self, recorder: &mut Recorder, now: Uptime) {
        if self.call.is_none() {
            self.open_call(recorder, now);
        }
        self.retry_started(recorder, now);
        if let Some(call) = &mut self.call {
            call.answered(now);
        }
    }

    fn stream(&mut self, recorder: &mut Recorder, now: Uptime, kind: SegmentKind, text: String) {
        if text.is_empty() {
            return;
        }
        self.need_call(recorder, now);
        if !self.is_open(kind) {
            self.close_segment(recorder, SegmentFinish::DEFAULT);
            self.open_segment(recorder, kind);
        }
        let Some(open) = &self.segment else { return };
        let (segment, sequence, offset_bytes) = (open.segment, open.pieces + 1, open.bytes);
        self.record(recorder, Event::SegmentPatched { segment, sequence, offset_bytes, text });
    }

    fn open_segment(&mut self, recorder: &mut Recorder, kind: SegmentKind) {
        let segment = Segment { number: self.segments + 1, kind };
        let prompt = match kind {
            SegmentKind::Text => self.count.repeat(&self.prompt),
            SegmentKind::Thinking => Text::default(),
        };
        self.record(recorder, Event::SegmentStarted { segment, prompt });
    }

    fn close_segment(&mut self, recorder: &mut Recorder, finish: SegmentFinish<'_>) {
        let Some(OpenSegment { segment, prompt, .. }) = self.segment.clone() else { return };
        let SegmentFinish { status, reason, is_cut_off } = finish;
        let text = recorder.segment_text(self.id(), segment);
        let reason = match segment.kind {
            SegmentKind::Thinking if reason.is_empty() => REASON_OF_REASONING,
            SegmentKind::Thinking | SegmentKind::Text => reason,
        };
        let finish_reason = reason.to_owned();
        self.record(
            recorder,
            Event::SegmentFinished { segment, status, prompt, text, finish_reason, is_cut_off },
        );
    }

    fn open_tool(&mut self, recorder: &mut Recorder, now: Uptime, tool: ToolCall) {
        // Two open calls of one id could not be distinguished.
        if self.tools.iter().any(|open| open.engine_id == tool.id) {
            return;
        }
        self.need_call(recorder, now);
        self.close_segment(recorder, SegmentFinish::DEFAULT);
        let ToolCall { id: engine_id, name } = tool;
        let tool = ToolCall { id: recorder.projections.tool_calls.unique(&engine_id), name };
        self.record(recorder, Event::ToolCallStarted { tool });
        if let Some(open) = self.tools.last_mut() {
            open.engine_id = engine_id;
        }
    }

    fn tool_arguments(&mut self, recorder: &mut Recorder, id: &ToolCallId, text: String) {
        let Some(open) = self.writing(id).filter(|_| !text.is_empty()) else { return };
        let (sequence, offset_bytes) = (open.pieces + 1, open.input.len() as u64);
        let tool = open.tool.clone();
        self.record(recorder, Event::ToolArgumentsPatched { tool, sequence, offset_bytes, text });
    }

    fn tool_requested(&mut self, recorder: &mut Recorder, id: &ToolCallId) {
        let Some(open) = self.writing(id) else { return };
        let (tool, input) = (open.tool.clone(), open.input.clone());
        self.record(recorder, Event::ToolCallRequested { tool, input });
    }

    /// The call that the engine calls `id`, as long as its arguments are written. What an engine reports of
    /// any other is ignored: a call would otherwise be shown out of order, or be made twice in the transcript.
    fn writing(&self, id: &ToolCallId) -> Option<&OpenTool> {
        let is_it =
            |open: &&OpenTool| open.engine_id == *id && open.progress == ToolProgress::Started;
        self.tools.iter().find(is_it)
    }
}
