//! The open parts of a run, to be closed before it ends: a provider call, a segment, tool calls.

use super::{Run, RunKind};
use crate::conversation::compaction::CompactionEvent;
use crate::conversation::event::{
    Ending, Event, FinishClass, ProviderData, Recorded, Segment, ToolCall, Usage,
};
use crate::protocol::id::{RequestId, TaskId, ToolCallId};
use crate::protocol::proto::session::WaitingFor;
use crate::session::Uptime;
use crate::support::text::Text;
use crate::task::report::Retry;
use crate::task::server::ServerCall;

/// The open call to the provider.
#[derive(Clone, Debug)]
pub(super) struct OpenCall {
    pub(super) started: Uptime,
    pub(super) usage: Option<Usage>,
    pub(super) has_tool_calls: bool,
    /// The attempt that was made or scheduled last, and how many there may be, once that is known.
    attempt: u32,
    attempts_max: Option<u32>,
    is_retry_scheduled: bool,
    /// When its request was sent, for the last time so far.
    asked: Uptime,
    /// Milliseconds from there to the head of the response, and to the first token.
    pub(super) first_byte_ms: Option<u64>,
    pub(super) first_token_ms: Option<u64>,
}

#[derive(Clone, Debug)]
pub(super) struct OpenSegment {
    pub(super) segment: Segment,
    pub(super) prompt: Text,
    pub(super) pieces: u64,
    pub(super) bytes: u64,
}

#[derive(Clone, Debug)]
pub(super) struct OpenTool {
    /// Its id from the engine.
    pub(super) engine_id: ToolCallId,
    pub(super) tool: ToolCall,
    pub(super) pieces: u64,
    pub(super) input: String,
    /// The client is asked whether it may run.
    pub(super) is_asked: bool,
    pub(super) has_result: bool,
    pub(super) progress: ToolProgress,
    /// When it began to wait for what it waits for.
    pub(super) since: Uptime,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum ToolProgress {
    /// The model writes its arguments.
    Started,
    /// The model has made it.
    Requested,
    /// The client is asked whether it may run.
    Approval { call: ServerCall, deadline: Uptime },
    /// The client runs it.
    Client { deadline: Uptime },
    /// A server runs it; progress puts the deadline off, up to the last one.
    Executing { task: TaskId, deadline: Uptime, last_deadline: Uptime },
}

/// How a provider call finishes.
pub(super) struct CallFinish {
    pub(super) stop_reason: String,
    pub(super) class: FinishClass,
    pub(super) segment: Ending,
    pub(super) provider_data: Option<ProviderData>,
    /// The provider has done nothing for it.
    pub(super) is_free: bool,
}

impl Run {
    /// The run among these events that has no end, as it was when the last of them happened.
    pub(in crate::session) fn of_events(events: &[Recorded], request: RequestId) -> Option<Self> {
        let mut open: Option<Self> = None;
        for Recorded { scope, event, .. } in events {
            if let Event::PromptAccepted { prompt, .. } = event {
                let mut run = Self::new(scope.run, scope.turn, request.clone(), Uptime::default());
                run.prompt = prompt.clone();
                open = Some(run);
            } else if let Event::Compaction(CompactionEvent::Started(_)) = event
                && open.as_ref().is_none_or(|run| run.scope.run != scope.run)
            {
                // One between two turns, which is a run of its own.
                let run = Self::new(scope.run, scope.turn, request.clone(), Uptime::default());
                open = Some(Self { kind: RunKind::Compaction, ..run });
            }
            let Some(run) = open.as_mut().filter(|run| run.scope.run == scope.run) else {
                continue;
            };
            run.scope = *scope;
            run.apply(event);
            let has_compacted =
                |run: &Self| run.kind == RunKind::Compaction && !run.has_open_compaction;
            open.take_if(|run| event.ends_run() || has_compacted(run));
        }
        open
    }

    /// Applies an event of the run to what it has open. What only this process knows of a call, as its
    /// deadline, is added to that.
    pub(super) fn apply(&mut self, event: &Event) {
        match event {
            Event::PromptJoined { number, .. } => self.prompts = *number,
            Event::RepairRequested { number, .. } => self.repairs = *number,
            Event::CallStarted => self.call = Some(OpenCall::new(Uptime::default())),
            Event::CallFinished { .. } => self.call = None,
            Event::SegmentStarted { segment, prompt } => {
                self.segments = segment.number;
                let (segment, prompt) = (*segment, prompt.clone());
                self.segment = Some(OpenSegment { segment, prompt, pieces: 0, bytes: 0 });
            }
            Event::SegmentPatched { sequence, offset_bytes, text, .. } => {
                if let Some(open) = &mut self.segment {
                    open.pieces = *sequence;
                    open.bytes = offset_bytes + text.len() as u64;
                }
            }
            Event::SegmentFinished { .. } => self.segment = None,
            Event::ToolCallStarted { tool } => {
                if let Some(call) = &mut self.call {
                    call.has_tool_calls = true;
                }
                self.tools.push(OpenTool::new(tool.clone()));
            }
            Event::ToolArgumentsPatched { tool, sequence, text, .. } => {
                self.change(tool, |open| {
                    open.pieces = *sequence;
                    open.input += text;
                });
            }
            Event::ToolCallRequested { tool, input } => self.change(tool, |open| {
                open.input.clone_from(input);
                open.progress = ToolProgress::Requested;
            }),
            Event::ApprovalRequested { tool, .. } => self.change(tool, |open| open.is_asked = true),
            Event::ApprovalResolved { tool, .. } => self.change(tool, |open| open.is_asked = false),
            Event::ToolResultReady { tool, .. } => self.change(tool, |open| open.has_result = true),
            Event::ToolCallFinished { tool, .. } => {
                self.tools.retain(|open| open.tool.id != tool.id)
            }
            Event::Compaction(event) => self.has_open_compaction = event.is_open(),
            Event::PromptAccepted { .. }
            | Event::RunStarted { .. }
            | Event::ClientCallRequested { .. }
            | Event::ClientResultReceived { .. }
            | Event::ToolExecutionStarted { .. }
            | Event::ToolProgressed { .. }
            | Event::CallMetadataUpdated { .. }
            | Event::RunFinished { .. }
            | Event::RunStopped { .. }
            | Event::RunFailed { .. }
            | Event::TurnDropped { .. }
            | Event::TurnImported(_)
            | Event::Call(_)
            | Event::Session(_) => {}
        }
    }

    fn change(&mut self, tool: &ToolCall, change: impl FnOnce(&mut OpenTool)) {
        if let Some(open) = self.tools.iter_mut().find(|open| open.tool.id == tool.id) {
            change(open);
        }
    }
}

impl OpenTool {
    fn new(tool: ToolCall) -> Self {
        Self {
            engine_id: tool.id.clone(),
            tool,
            pieces: 0,
            input: String::new(),
            is_asked: false,
            has_result: false,
            progress: ToolProgress::Started,
            since: Uptime::default(),
        }
    }
}

impl OpenCall {
    pub(super) fn new(now: Uptime) -> Self {
        Self {
            started: now,
            usage: None,
            has_tool_calls: false,
            attempt: 1,
            attempts_max: None,
            is_retry_scheduled: false,
            asked: now,
            first_byte_ms: None,
            first_token_ms: None,
        }
    }

    /// Takes note of a retry that is to come; false if it can't follow what was reported so far.
    pub(super) fn schedule(&mut self, retry: &Retry) -> bool {
        let can_follow = !self.is_retry_scheduled
            && self.first_token_ms.is_none()
            && retry.attempt == self.attempt + 1
            && retry.attempt <= retry.attempts_max
            && self.attempts_max.is_none_or(|known| known == retry.attempts_max);
        if can_follow {
            (self.attempt, self.attempts_max) = (retry.attempt, Some(retry.attempts_max));
            self.is_retry_scheduled = true;
        }
        can_follow
    }

    /// Its request is sent again, if that was scheduled: only what follows counts. Gives the number of the
    /// attempt, and how many there may be.
    pub(super) fn ask_again(&mut self, now: Uptime) -> Option<(u32, u32)> {
        if !std::mem::take(&mut self.is_retry_scheduled) {
            return None;
        }
        (self.asked, self.first_byte_ms, self.first_token_ms) = (now, None, None);
        Some((self.attempt, self.attempts_max?))
    }

    /// What is waited for as long as nothing more of the call is reported.
    pub(super) fn waits_for(&self) -> WaitingFor {
        match (self.is_retry_scheduled, self.first_byte_ms, self.first_token_ms) {
            (true, _, _) => WaitingFor::Retry,
            (false, None, None) => WaitingFor::ProviderConnecting,
            (false, Some(_), _) | (false, None, Some(_)) => WaitingFor::ProviderSilent,
        }
    }

    pub(super) fn response_started(&mut self, now: Uptime) {
        self.first_byte_ms.get_or_insert(now.since(self.asked));
    }

    /// A piece of an answer has come.
    pub(super) fn answered(&mut self, now: Uptime) {
        self.first_token_ms.get_or_insert(now.since(self.asked));
    }
}

impl CallFinish {
    /// The finish of a call whose provider gave no reason.
    pub(super) fn cut(class: FinishClass, segment: Ending) -> Self {
        let (stop_reason, provider_data) = (String::new(), None);
        Self { stop_reason, class, segment, provider_data, is_free: false }
    }
}
