//! A run: turns what an engine says into events, and keeps them in order. Segments and tool calls
//! are opened and closed here, so that however a run ends, nothing in it stays open.

use super::Uptime;
use super::limits::{AnswerCount, AnswerLimits};
use super::recorder::Recorder;
use crate::chat::event::{
    Ending, Event, FinishClass, Scope, Segment, SegmentKind, ToolCall, ToolResult, Usage,
};
use crate::chat::transcript::INTERRUPTED_TOOL;
use crate::engine::{EngineEvent, RunError};
use crate::protocol::id::{RequestId, RunId, ToolCallId};
use crate::protocol::wire::{ClientError, Done};
use crate::support::text::Text;

/// How a run ends.
#[derive(Clone, Debug)]
pub(super) enum Outcome {
    Finished,
    Stopped(Stop),
    Failed(RunError),
}

/// Why a run is stopped.
#[derive(Clone, Debug)]
pub(super) struct Stop {
    /// By whom or what, for people.
    pub(super) reason: String,
    /// What its client is told besides.
    pub(super) error: Option<ClientError>,
}

#[derive(Clone, Debug)]
pub(super) struct Run {
    request: RequestId,
    prompt: Text,
    scope: Scope,
    started: Uptime,
    stage: RunStage,
    calls: u32,
    call: Option<OpenCall>,
    segments: u32,
    segment: Option<OpenSegment>,
    tools: Vec<OpenTool>,
    count: AnswerCount,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RunStage {
    Beginning,
    Going,
    Ended,
}

/// The open call to the provider.
#[derive(Clone, Debug)]
struct OpenCall {
    started: Uptime,
    usage: Option<Usage>,
    has_tool_calls: bool,
}

#[derive(Clone, Debug)]
struct OpenSegment {
    segment: Segment,
    prompt: Text,
    pieces: u64,
    bytes: u64,
}

#[derive(Clone, Debug)]
struct OpenTool {
    /// As the engine calls it.
    engine_id: ToolCallId,
    tool: ToolCall,
    pieces: u64,
    input: String,
    step: ToolStep,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ToolStep {
    /// The model writes its arguments.
    Started,
    /// The model has made it.
    Requested,
    /// The tool runs.
    Executing,
}

/// How a provider call ends.
struct CallEnd {
    stop_reason: String,
    class: FinishClass,
    segment: Ending,
}

impl Run {
    pub(super) fn new(id: RunId, turn: u32, request: RequestId, now: Uptime) -> Self {
        Self {
            request,
            prompt: Text::default(),
            scope: Scope { run: id, turn, call: 0 },
            started: now,
            stage: RunStage::Beginning,
            calls: 0,
            call: None,
            segments: 0,
            segment: None,
            tools: Vec::new(),
            count: AnswerCount::default(),
        }
    }

    pub(super) fn id(&self) -> RunId {
        self.scope.run
    }

    pub(super) fn request(&self) -> &RequestId {
        &self.request
    }

    /// Its engine was started, and its end was not.
    pub(super) fn is_going(&self) -> bool {
        self.stage == RunStage::Going
    }

    /// Its end was at least started.
    pub(super) fn has_ended(&self) -> bool {
        self.stage == RunStage::Ended
    }

    /// Tells of the prompt and of the run, and has the engine answer.
    pub(super) fn begin(&mut self, recorder: &mut Recorder, prompt: String) {
        self.prompt = Text::from(prompt);
        self.record(recorder, Event::PromptAccepted { prompt: self.prompt.clone() });
        self.record(recorder, Event::RunStarted { prompt: self.prompt.clone() });
        recorder.start_engine(self.id());
        self.stage = RunStage::Going;
    }

    /// Counts what `event` brings.
    ///
    /// # Errors
    /// If the answer is past its limits with it.
    pub(super) fn count(
        &mut self,
        event: &EngineEvent,
        limits: AnswerLimits,
    ) -> Result<(), RunError> {
        let begins_segment = self.begins_segment(event);
        self.count.add(event, begins_segment, limits)
    }

    fn begins_segment(&self, event: &EngineEvent) -> bool {
        let kind = match event {
            EngineEvent::Text(text) if !text.is_empty() => SegmentKind::Text,
            EngineEvent::Reasoning { text, .. } if !text.is_empty() => SegmentKind::Thinking,
            EngineEvent::Text(_)
            | EngineEvent::Reasoning { .. }
            | EngineEvent::CallStarted
            | EngineEvent::ToolCallStarted(_)
            | EngineEvent::ToolArguments { .. }
            | EngineEvent::ToolCallRequested { .. }
            | EngineEvent::ToolExecutionStarted { .. }
            | EngineEvent::ToolReturned { .. }
            | EngineEvent::Usage(_)
            | EngineEvent::CallFinished { .. } => return false,
        };
        !self.is_open(kind)
    }

    fn is_open(&self, kind: SegmentKind) -> bool {
        self.segment.as_ref().is_some_and(|open| open.segment.kind == kind)
    }

    pub(super) fn engine_said(&mut self, recorder: &mut Recorder, now: Uptime, event: EngineEvent) {
        match event {
            EngineEvent::CallStarted => self.open_call(recorder, now),
            EngineEvent::Reasoning { text, .. } => {
                self.say(recorder, now, SegmentKind::Thinking, text);
            }
            EngineEvent::Text(text) => self.say(recorder, now, SegmentKind::Text, text),
            EngineEvent::ToolCallStarted(tool) => self.open_tool(recorder, now, tool),
            EngineEvent::ToolArguments { id, text } => self.tool_arguments(recorder, &id, text),
            EngineEvent::ToolCallRequested { id } => self.tool_requested(recorder, &id),
            EngineEvent::ToolExecutionStarted { id } => self.tool_executing(recorder, &id),
            EngineEvent::ToolReturned { id, result } => self.tool_returned(recorder, &id, result),
            EngineEvent::Usage(usage) => {
                if let Some(call) = &mut self.call {
                    call.usage = Some(usage);
                }
            }
            EngineEvent::CallFinished { stop_reason, class } => {
                self.close_call(
                    recorder,
                    now,
                    CallEnd { stop_reason, class, segment: Ending::Finished },
                );
            }
        }
    }

    /// Tells all of the end: what is open is closed, then the run, then its request.
    pub(super) fn end(&mut self, recorder: &mut Recorder, now: Uptime, outcome: Outcome) {
        self.stage = RunStage::Ended;
        let (ending, class) = match outcome {
            Outcome::Finished => (Ending::Finished, FinishClass::Completed),
            Outcome::Stopped(_) => (Ending::Stopped, FinishClass::Cancelled),
            Outcome::Failed(_) => (Ending::Failed, FinishClass::Failed),
        };
        self.close_call(
            recorder,
            now,
            CallEnd { stop_reason: String::new(), class, segment: ending },
        );
        self.close_tools(recorder);
        self.scope.call = 0;
        match outcome {
            Outcome::Finished => {
                let duration_ms = now.since(self.started);
                self.record(recorder, Event::RunFinished { duration_ms });
                recorder.final_snapshot(&self.request);
                match recorder.take_invalid() {
                    None => recorder.done(Some(&self.request), Done::Ok),
                    Some(client_error) => recorder.refuse(Some(&self.request), client_error),
                }
            }
            Outcome::Stopped(Stop { reason, error }) => {
                self.record(recorder, Event::RunStopped { reason });
                recorder.final_snapshot(&self.request);
                if let Some(client_error) = error {
                    recorder.error(Some(&self.request), client_error);
                }
                recorder.done(Some(&self.request), Done::Stopped);
            }
            Outcome::Failed(error) => {
                self.record(recorder, Event::RunFailed { error: error.message.clone() });
                recorder.final_snapshot(&self.request);
                recorder.run_failed(&self.request, error);
            }
        }
    }

    fn open_call(&mut self, recorder: &mut Recorder, now: Uptime) {
        // An engine that begins another call is done with the one before, even if it didn't say so.
        let (stop_reason, class) = (String::new(), FinishClass::Other);
        self.close_call(recorder, now, CallEnd { stop_reason, class, segment: Ending::Finished });
        self.calls += 1;
        self.scope.call = self.calls;
        self.call = Some(OpenCall { started: now, usage: None, has_tool_calls: false });
        self.record(recorder, Event::CallStarted);
    }

    fn close_call(&mut self, recorder: &mut Recorder, now: Uptime, end: CallEnd) {
        self.close_segment(recorder, end.segment, &end.stop_reason);
        let Some(call) = self.call.take() else { return };
        let CallEnd { stop_reason, class, .. } = end;
        if let Some(usage) = call.usage {
            let stop_reason = stop_reason.clone();
            self.record(recorder, Event::CallMetadataUpdated { stop_reason, usage });
        }
        let finished = Event::CallFinished {
            stop_reason,
            class,
            usage: call.usage,
            duration_ms: now.since(call.started),
            has_tool_calls: call.has_tool_calls,
        };
        self.record(recorder, finished);
    }

    /// What a model says is always within a call, even if its engine forgot to begin one.
    fn need_call(&mut self, recorder: &mut Recorder, now: Uptime) {
        if self.call.is_none() {
            self.open_call(recorder, now);
        }
    }

    fn say(&mut self, recorder: &mut Recorder, now: Uptime, kind: SegmentKind, text: String) {
        if text.is_empty() {
            return;
        }
        self.need_call(recorder, now);
        if !self.is_open(kind) {
            self.close_segment(recorder, Ending::Finished, "");
            self.open_segment(recorder, kind);
        }
        let Some(open) = &mut self.segment else { return };
        open.pieces += 1;
        let offset_bytes = open.bytes;
        open.bytes += text.len() as u64;
        let (segment, sequence) = (open.segment, open.pieces);
        self.record(recorder, Event::SegmentPatched { segment, sequence, offset_bytes, text });
    }

    fn open_segment(&mut self, recorder: &mut Recorder, kind: SegmentKind) {
        self.segments += 1;
        let segment = Segment { number: self.segments, kind };
        let prompt = match kind {
            SegmentKind::Text => self.count.repeat(&self.prompt),
            SegmentKind::Thinking => Text::default(),
        };
        let open = OpenSegment { segment, prompt: prompt.clone(), pieces: 0, bytes: 0 };
        self.segment = Some(open);
        self.record(recorder, Event::SegmentStarted { segment, prompt });
    }

    fn close_segment(&mut self, recorder: &mut Recorder, status: Ending, finish_reason: &str) {
        let Some(OpenSegment { segment, prompt, .. }) = self.segment.take() else { return };
        let text = recorder.segment_text(self.id(), segment);
        let finish_reason = finish_reason.to_owned();
        self.record(
            recorder,
            Event::SegmentFinished { segment, status, prompt, text, finish_reason },
        );
    }

    fn open_tool(&mut self, recorder: &mut Recorder, now: Uptime, tool: ToolCall) {
        // Two open calls of one name could not be told apart.
        if self.tools.iter().any(|open| open.engine_id == tool.id) {
            return;
        }
        self.need_call(recorder, now);
        self.close_segment(recorder, Ending::Finished, "");
        if let Some(call) = &mut self.call {
            call.has_tool_calls = true;
        }
        let step = ToolStep::Started;
        let ToolCall { id: engine_id, name } = tool;
        let tool = ToolCall { id: recorder.tool_call_id(&engine_id), name };
        let (open, input) = (tool.clone(), String::new());
        self.tools.push(OpenTool { engine_id, tool: open, pieces: 0, input, step });
        self.record(recorder, Event::ToolCallStarted { tool });
    }

    fn tool_arguments(&mut self, recorder: &mut Recorder, id: &ToolCallId, text: String) {
        let Some(open) = self.tool(id, ToolStep::Started) else { return };
        if text.is_empty() {
            return;
        }
        open.pieces += 1;
        let offset_bytes = open.input.len() as u64;
        open.input += &text;
        let (tool, sequence) = (open.tool.clone(), open.pieces);
        self.record(recorder, Event::ToolArgumentsPatched { tool, sequence, offset_bytes, text });
    }

    fn tool_requested(&mut self, recorder: &mut Recorder, id: &ToolCallId) {
        let Some(open) = self.tool(id, ToolStep::Started) else { return };
        open.step = ToolStep::Requested;
        let (tool, input) = (open.tool.clone(), open.input.clone());
        self.record(recorder, Event::ToolCallRequested { tool, input });
    }

    fn tool_executing(&mut self, recorder: &mut Recorder, id: &ToolCallId) {
        let Some(open) = self.tool(id, ToolStep::Requested) else { return };
        open.step = ToolStep::Executing;
        let (tool, input) = (open.tool.clone(), open.input.clone());
        self.record(recorder, Event::ToolExecutionStarted { tool, input });
    }

    fn tool_returned(&mut self, recorder: &mut Recorder, id: &ToolCallId, result: ToolResult) {
        let is_it = |open: &OpenTool| open.engine_id == *id && open.step != ToolStep::Started;
        let Some(at) = self.tools.iter().position(is_it) else { return };
        let tool = self.tools.remove(at).tool;
        self.record(recorder, Event::ToolResultReady { tool: tool.clone(), result });
        self.record(recorder, Event::ToolCallFinished { tool });
    }

    /// Closes what was cut off. A call that the model has made gets a result, because the next
    /// request to the provider needs one.
    fn close_tools(&mut self, recorder: &mut Recorder) {
        for OpenTool { tool, step, .. } in std::mem::take(&mut self.tools) {
            if step != ToolStep::Started {
                let result = ToolResult::Error(INTERRUPTED_TOOL.to_owned());
                self.record(recorder, Event::ToolResultReady { tool: tool.clone(), result });
            }
            self.record(recorder, Event::ToolCallFinished { tool });
        }
    }

    /// The open call of that name, if it is at `step`. What an engine says of any other is passed
    /// over: a call would otherwise be shown out of order, or be made twice in the transcript.
    fn tool(&mut self, id: &ToolCallId, step: ToolStep) -> Option<&mut OpenTool> {
        self.tools.iter_mut().find(|open| open.engine_id == *id && open.step == step)
    }

    fn record(&self, recorder: &mut Recorder, event: Event) {
        recorder.record(&self.request, self.scope, event);
    }
}

impl Uptime {
    /// Milliseconds from `earlier` to here.
    fn since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}
