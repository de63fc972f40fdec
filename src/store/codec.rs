//! The stored form of events and of what a session begins with: messages of `duologue.store.v1`, and back.
//! A row of the log is read by itself: within it, an event leaves out the scope of the event before it and
//! repeats no prompt. The bytes of attachments are apart, by their hash. Pure.

mod choices;
mod values;

pub(super) use choices::{choices, choices_message};
pub(super) use values::{Blobs, add_blobs, add_lost, hash};

use crate::conversation::compaction::{Compaction, CompactionEvent};
use crate::conversation::event::{
    Answerer, Attachments, CallCounts, CallProgress, CallReport, Event, ImportedTurn, Recorded,
    Scope, SessionEvent, ToolCall,
};
use crate::conversation::log::SessionStart;
use crate::protocol::command::Decision;
use crate::protocol::id::{Ordinal, RunId, SessionId, ToolCallId};
use crate::protocol::pieces::Pieces;
use crate::protocol::proto::provider::CallTiming;
use crate::protocol::proto::session::UsageTotals;
use crate::protocol::proto::store as stored;
use crate::protocol::proto::store::stored_event::Event as Kind;
use crate::protocol::proto::tools::ApprovalDecision;
use crate::support::text::Text;
use prost::Message;
use prost::encoding::{DecodeContext, WireType, decode_key, skip_field};
use std::fmt;
use values::*;

/// Numbers of fields that are written by hand, because their texts are shared with the conversation.
mod tag {
    pub(super) const EVENTS: u32 = 1;
    pub(super) const PROMPT_ACCEPTED: u32 = 3;
    pub(super) const PROMPT_JOINED: u32 = 4;
    pub(super) const RUN_STARTED: u32 = 6;
    pub(super) const SEGMENT_STARTED: u32 = 8;
    pub(super) const SEGMENT_FINISHED: u32 = 10;
    pub(super) const TOOL_RESULT_READY: u32 = 19;
    pub(super) const TEXT: u32 = 1;
    pub(super) const TEXT_OF_REPEAT: u32 = 2;
    pub(super) const PROMPT_OF_RUN: u32 = 1;
    pub(super) const PROMPT_OF_SEGMENT: u32 = 4;
}

/// Why a row can't be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Unreadable {
    /// It is no message of this kind.
    Message(prost::DecodeError),
    /// A value in it is none that this program writes, as one of a newer version.
    Value(&'static str),
    /// It is not as it was written.
    Checksum,
}

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Message(error) => error.fmt(f),
            Self::Value(what) => write!(f, "{what} in it is not known"),
            Self::Checksum => f.write_str("its checksum differs, so that it was changed"),
        }
    }
}

impl From<prost::DecodeError> for Unreadable {
    fn from(error: prost::DecodeError) -> Self {
        Self::Message(error)
    }
}

/// Writes events one after the other into a row.
#[derive(Debug, Default)]
pub(super) struct RowWriter {
    row: Pieces,
    scope: Option<Scope>,
    prompt: Text,
}

impl RowWriter {
    /// Adds an event.
    pub(super) fn add(&mut self, recorded: &Recorded) {
        let Recorded { ordinal, scope, event } = recorded;
        let is_other = self.scope.replace(*scope) != Some(*scope);
        let head = stored::StoredEvent {
            ordinal: ordinal.0,
            scope: is_other.then(|| scope_message(*scope)),
            event: None,
        };
        let mut pieces = Pieces::of(&head);
        match self.shared(event) {
            Some((tag, message)) => pieces.message(tag, message),
            None => pieces.fields(&stored::StoredEvent {
                event: kind(event),
                ..stored::StoredEvent::default()
            }),
        }
        self.row.message(tag::EVENTS, pieces);
        if let Event::PromptAccepted { prompt, .. } = event {
            self.prompt = prompt.clone();
        }
    }

    /// Bytes of the row so far.
    pub(super) fn size(&self) -> usize {
        self.row.size()
    }

    /// The row, a `StoredEvents`.
    pub(super) fn finish(self) -> Pieces {
        self.row
    }

    /// The number and the message of an event whose texts are shared with the conversation; `None` for any
    /// other.
    fn shared(&self, event: &Event) -> Option<(u32, Pieces)> {
        let mut pieces = Pieces::default();
        let tag = if let Event::PromptAccepted { prompt, attachments } = event {
            add_prompt(&mut pieces, prompt, attachments, 0);
            tag::PROMPT_ACCEPTED
        } else if let Event::PromptJoined { prompt, attachments, number } = event {
            add_prompt(&mut pieces, prompt, attachments, *number);
            tag::PROMPT_JOINED
        } else if let Event::RunStarted { prompt, choices, answerer, request } = event {
            pieces.message(tag::PROMPT_OF_RUN, self.repeat(prompt));
            pieces.fields(&stored::StoredRunStarted {
                prompt: None,
                choices: choices.as_deref().map(choices_message),
                answerer: Some(stored::StoredAnswerer {
                    engine: answerer.engine.to_string(),
                    model: answerer.model.clone(),
                    started_ms: answerer.started_ms,
                }),
                request: request.as_str().to_owned(),
            });
            tag::RUN_STARTED
        } else if let Event::SegmentStarted { segment, prompt } = event {
            pieces.message(tag::PROMPT_OF_SEGMENT, self.repeat(prompt));
            pieces.fields(&segment_message(*segment));
            tag::SEGMENT_STARTED
        } else if let Event::SegmentFinished {
            segment,
            status,
            prompt,
            text,
            finish_reason,
            is_cut_off,
        } = event
        {
            pieces.text(tag::TEXT, text);
            pieces.message(tag::PROMPT_OF_SEGMENT, self.repeat(prompt));
            pieces.fields(&stored::StoredSegment {
                status: status.as_str().to_owned(),
                finish_reason: finish_reason.clone(),
                is_cut_off: *is_cut_off,
                ..segment_message(*segment)
            });
            tag::SEGMENT_FINISHED
        } else if let Event::ToolResultReady { tool, result } = event {
            let size = result.text().len();
            if size > 0 {
                pieces.shared(tag::TEXT, size, || result.clone());
            }
            pieces.fields(&stored::StoredToolResult {
                tool: Some(tool_message(tool)),
                ..result_message(String::new(), result)
            });
            tag::TOOL_RESULT_READY
        } else {
            return None;
        };
        Some((tag, pieces))
    }

    /// A prompt that an event repeats.
    fn repeat(&self, text: &Text) -> Pieces {
        let is_prompt = !text.is_empty() && *text == self.prompt;
        if is_prompt {
            return Pieces::of(&stored::StoredRepeat { is_prompt, text: String::new() });
        }
        let mut pieces = Pieces::default();
        pieces.text(tag::TEXT_OF_REPEAT, text);
        pieces
    }
}

fn add_prompt(pieces: &mut Pieces, text: &Text, attachments: &Attachments, number: u32) {
    pieces.text(tag::TEXT, text);
    let attachments = attachments_message(attachments);
    pieces.fields(&stored::StoredPrompt { text: String::new(), attachments, number });
}

/// The member for an event that shares no text.
fn kind(event: &Event) -> Option<Kind> {
    Some(match event {
        Event::RepairRequested { reason, number, max } => {
            let (reason, number, max) = (reason.clone(), *number, *max);
            Kind::RepairRequested(stored::StoredRepair { reason, number, max })
        }
        Event::CallStarted => Kind::CallStarted(stored::StoredNothing {}),
        Event::SegmentPatched { segment, sequence, offset_bytes, text } => {
            let stored::StoredSegment { number, is_thinking, .. } = segment_message(*segment);
            Kind::SegmentPatched(stored::StoredPatch {
                segment: number,
                is_thinking,
                tool: None,
                sequence: *sequence,
                offset: *offset_bytes,
                text: text.clone(),
            })
        }
        Event::ToolCallStarted { tool } => Kind::ToolCallStarted(tool_message(tool)),
        Event::ToolArgumentsPatched { tool, sequence, offset_bytes, text } => {
            Kind::ToolArgumentsPatched(stored::StoredPatch {
                segment: 0,
                is_thinking: false,
                tool: Some(tool_message(tool)),
                sequence: *sequence,
                offset: *offset_bytes,
                text: text.clone(),
            })
        }
        Event::ToolCallRequested { tool, input } => {
            Kind::ToolCallRequested(with_input(tool, input))
        }
        Event::ApprovalRequested { tool, server, input } => {
            let server = server.clone();
            Kind::ApprovalRequested(stored::StoredTool { server, ..with_input(tool, input) })
        }
        Event::ApprovalResolved { tool, decision } => {
            let (decision, reason) = decision_message(decision);
            let tool = Some(tool_message(tool));
            Kind::ApprovalResolved(stored::StoredApproval { tool, decision, reason })
        }
        Event::ToolProgressed { tool, progress: CallProgress { progress, total, message } } => {
            Kind::ToolProgressed(stored::StoredProgress {
                tool: Some(tool_message(tool)),
                progress: *progress,
                total: *total,
                message: message.clone(),
            })
        }
        Event::ClientCallRequested { tool, input, is_human } => {
            let (tool, input) = (Some(tool_message(tool)), Some(input.clone()));
            let is_human = *is_human;
            Kind::ClientCallRequested(stored::StoredClientCall { tool, input, is_human })
        }
        Event::ClientResultReceived { tool, result, error } => {
            let (tool, result) = (Some(tool_message(tool)), result.clone());
            let error = error.clone();
            Kind::ClientResultReceived(stored::StoredClientResult { tool, result, error })
        }
        Event::ToolExecutionStarted { tool, input } => {
            Kind::ToolExecutionStarted(with_input(tool, input))
        }
        Event::ToolCallFinished { tool, partial_input } => {
            Kind::ToolCallFinished(with_input(tool, partial_input))
        }
        Event::CallMetadataUpdated { stop_reason, usage } => {
            let (stop_reason, usage) = (stop_reason.clone(), Some(usage_message(usage)));
            Kind::CallMetadataUpdated(stored::StoredCallMetadata { stop_reason, usage })
        }
        Event::CallFinished {
            stop_reason,
            class,
            usage,
            duration_ms,
            has_tool_calls,
            provider_data,
            spent,
        } => Kind::CallFinished(stored::StoredCallFinished {
            stop_reason: stop_reason.clone(),
            finish_class: class.as_str().to_owned(),
            usage: usage.as_ref().map(usage_message),
            duration_ms: *duration_ms,
            has_tool_calls: *has_tool_calls,
            provider_data: provider_data.as_ref().map(provider_data_message),
            is_free: spent.is_free,
            cost: spent.cost.as_ref().map(cost_message),
        }),
        Event::RunFinished { duration_ms, cut_off } => {
            let (duration_ms, cut_off) = (*duration_ms, cut_off.clone());
            Kind::RunFinished(stored::StoredRunFinished { duration_ms, cut_off })
        }
        Event::TurnDropped { message_ids, tool_call_ids, turns } => {
            let (message_ids, tool_call_ids) = (message_ids.clone(), tool_call_ids.clone());
            let turns = turns.clone();
            Kind::TurnDropped(stored::StoredTurnDropped { message_ids, tool_call_ids, turns })
        }
        Event::RunStopped { reason } => Kind::RunStopped(reason.clone()),
        Event::RunFailed { error } => Kind::RunFailed(error.clone()),
        Event::TurnImported(imported) => Kind::TurnImported(stored::StoredImport {
            entities: imported.entities.clone(),
            turn: imported.turn.as_deref().map(turn_message),
        }),
        Event::Compaction(event) => compaction_kind(event),
        Event::Call(report) => report_kind(report),
        Event::Session(event) => session_kind(event),
        // Their texts are shared.
        Event::PromptAccepted { .. }
        | Event::PromptJoined { .. }
        | Event::RunStarted { .. }
        | Event::SegmentStarted { .. }
        | Event::SegmentFinished { .. }
        | Event::ToolResultReady { .. } => return None,
    })
}

fn report_kind(report: &CallReport) -> Kind {
    match report.clone() {
        CallReport::RetryScheduled { attempt, attempts_max, wait_ms, error_class, reason } => {
            Kind::RetryScheduled(stored::StoredRetry {
                attempt,
                attempts_max,
                wait_ms,
                error_class,
                reason,
            })
        }
        CallReport::RetryStarted { attempt, attempts_max } => {
            Kind::RetryStarted(stored::StoredRetry { attempt, attempts_max, ..Default::default() })
        }
        CallReport::Truncated { stop_reason, class } => {
            let finish_class = class.as_str().to_owned();
            Kind::Truncated(stored::StoredTruncation { stop_reason, finish_class })
        }
        CallReport::Timed { first_byte_ms, first_token_ms } => {
            Kind::Timed(CallTiming { first_byte_ms, first_token_ms, correlation: None })
        }
        CallReport::BudgetNearlySpent(spent) => Kind::BudgetNearlySpent(*spent),
        CallReport::Counted(counts) => Kind::Counted(UsageTotals {
            call: Some(counts.call),
            run: Some(counts.run),
            session: Some(counts.session),
            correlation: None,
        }),
    }
}

fn compaction_kind(event: &CompactionEvent) -> Kind {
    match event {
        CompactionEvent::Proposed(it) => Kind::CompactionProposed((**it).clone()),
        CompactionEvent::Started(it) => Kind::CompactionStarted((**it).clone()),
        CompactionEvent::Done(it) => Kind::Compacted(stored::StoredCompaction {
            through_turn: it.through,
            summary: it.summary.as_str().to_owned(),
            cleared_tool_call_ids: it.cleared.iter().map(|id| id.0.clone()).collect(),
            tokens_before: it.tokens_before,
            tokens_after: it.tokens_after,
        }),
        CompactionEvent::Failed { reason } => Kind::CompactionFailed(reason.clone()),
    }
}

fn session_kind(event: &SessionEvent) -> Kind {
    match event.clone() {
        SessionEvent::ToolsDeclared { tools, choices } => {
            let choices = choices.as_deref().map(choices_message);
            Kind::ToolsDeclared(stored::StoredToolsDeclared { tools: Some(tools), choices })
        }
        SessionEvent::ModelSwitched { model, choices } => {
            let choices = choices.as_deref().map(choices_message);
            Kind::ModelSwitched(stored::StoredModelSwitched { model: Some(model), choices })
        }
        SessionEvent::ServerChanged(changed) => Kind::ServerChanged(changed),
        SessionEvent::StoreDegraded(degraded) => Kind::StoreDegraded(degraded),
        SessionEvent::Renamed(title) => Kind::Renamed(title),
    }
}

/// Reads the events of a row, a `StoredEvents`, oldest first. Each is decoded as it is asked for: a list of all
/// of them in their stored form would be most of the time that it takes to read a log.
pub(super) struct RowReader<'a> {
    /// What is not read yet.
    rest: &'a [u8],
    blobs: &'a Blobs,
    scope: Option<Scope>,
    prompt: Text,
}

impl<'a> RowReader<'a> {
    pub(super) fn new(row: &'a [u8], blobs: &'a Blobs) -> Self {
        Self { rest: row, blobs, scope: None, prompt: Text::default() }
    }

    /// The next event in its stored form.
    fn stored(&mut self) -> Result<Option<stored::StoredEvent>, prost::DecodeError> {
        while !self.rest.is_empty() {
            let (tag, kind) = decode_key(&mut self.rest)?;
            if (tag, kind) == (tag::EVENTS, WireType::LengthDelimited) {
                return stored::StoredEvent::decode_length_delimited(&mut self.rest).map(Some);
            }
            skip_field(kind, tag, &mut self.rest, DecodeContext::default())?;
        }
        Ok(None)
    }

    fn read(&mut self, event: stored::StoredEvent) -> Result<Recorded, Unreadable> {
        let stored::StoredEvent { ordinal, scope, event } = event;
        let own = scope.map(|scope| read_scope(&scope)).transpose()?;
        let scope = own.or(self.scope).ok_or(Unreadable::Value("the first scope"))?;
        self.scope = Some(scope);
        let event = self.event(event.ok_or(Unreadable::Value("a kind of event"))?)?;
        if let Event::PromptAccepted { prompt, .. } = &event {
            self.prompt = prompt.clone();
        }
        Ok(Recorded { ordinal: Ordinal(ordinal), scope, event })
    }

    fn event(&self, kind: Kind) -> Result<Event, Unreadable> {
        let of = |tool: Option<stored::StoredTool>| read_tool(tool.unwrap_or_default()).0;
        Ok(match kind {
            Kind::PromptAccepted(stored::StoredPrompt { text, attachments, .. }) => {
                let attachments = read_attachments(attachments, self.blobs);
                Event::PromptAccepted { prompt: text.into(), attachments }
            }
            Kind::PromptJoined(stored::StoredPrompt { text, attachments, number }) => {
                let attachments = read_attachments(attachments, self.blobs);
                Event::PromptJoined { prompt: text.into(), attachments, number }
            }
            Kind::RepairRequested(stored::StoredRepair { reason, number, max }) => {
                Event::RepairRequested { reason, number, max }
            }
            Kind::RunStarted(it) => {
                let chosen = it.choices.map(|chosen| choices(chosen).into());
                let stored::StoredAnswerer { engine, model, started_ms } =
                    it.answerer.unwrap_or_default();
                let answerer = Answerer { engine: engine.into(), model, started_ms };
                let (prompt, request) = (self.repeated(it.prompt), it.request.into());
                Event::RunStarted { prompt, choices: chosen, answerer, request }
            }
            Kind::CallStarted(stored::StoredNothing {}) => Event::CallStarted,
            Kind::SegmentStarted(it) => {
                let (segment, prompt) = (read_segment(it.number, it.is_thinking), it.prompt);
                Event::SegmentStarted { segment, prompt: self.repeated(prompt) }
            }
            Kind::SegmentPatched(it) => Event::SegmentPatched {
                segment: read_segment(it.segment, it.is_thinking),
                sequence: it.sequence,
                offset_bytes: it.offset,
                text: it.text,
            },
            Kind::SegmentFinished(it) => Event::SegmentFinished {
                segment: read_segment(it.number, it.is_thinking),
                status: read_ending(&it.status)?,
                prompt: self.repeated(it.prompt),
                text: it.text.into(),
                finish_reason: it.finish_reason,
                is_cut_off: it.is_cut_off,
            },
            Kind::TurnDropped(it) => Event::TurnDropped {
                message_ids: it.message_ids,
                tool_call_ids: it.tool_call_ids,
                turns: it.turns,
            },
            Kind::RunFinished(stored::StoredRunFinished { duration_ms, cut_off }) => {
                Event::RunFinished { duration_ms, cut_off }
            }
            Kind::RunStopped(reason) => Event::RunStopped { reason },
            Kind::RunFailed(error) => Event::RunFailed { error },
            Kind::TurnImported(stored::StoredImport { entities, turn }) => {
                let number = self.scope.map_or(0, |scope| scope.turn);
                let turn = turn.map(|turn| read_turn(number, turn, self.blobs).into());
                Event::TurnImported(Box::new(ImportedTurn { entities, turn }))
            }
            Kind::ToolCallStarted(tool) => Event::ToolCallStarted { tool: read_tool(tool).0 },
            Kind::ToolArgumentsPatched(it) => Event::ToolArgumentsPatched {
                tool: of(it.tool),
                sequence: it.sequence,
                offset_bytes: it.offset,
                text: it.text,
            },
            Kind::ToolCallRequested(tool) => {
                let (tool, input, _) = read_tool(tool);
                Event::ToolCallRequested { tool, input }
            }
            Kind::ApprovalRequested(tool) => {
                let (tool, input, server) = read_tool(tool);
                Event::ApprovalRequested { tool, server, input }
            }
            Kind::ApprovalResolved(it) => {
                let decision = match it.decision() {
                    ApprovalDecision::AllowOnce => Decision::AllowOnce,
                    ApprovalDecision::AllowSession => Decision::AllowSession,
                    ApprovalDecision::Deny | ApprovalDecision::Unspecified => {
                        Decision::Deny { reason: it.reason }
                    }
                };
                Event::ApprovalResolved { tool: of(it.tool), decision }
            }
            Kind::ToolProgressed(stored::StoredProgress { tool, progress, total, message }) => {
                let progress = CallProgress { progress, total, message };
                Event::ToolProgressed { tool: of(tool), progress }
            }
            Kind::ClientCallRequested(it) => Event::ClientCallRequested {
                tool: of(it.tool),
                input: it.input.unwrap_or_default(),
                is_human: it.is_human,
            },
            Kind::ClientResultReceived(it) => Event::ClientResultReceived {
                tool: of(it.tool),
                result: it.result,
                error: it.error,
            },
            Kind::ToolExecutionStarted(tool) => {
                let (tool, input, _) = read_tool(tool);
                Event::ToolExecutionStarted { tool, input }
            }
            Kind::ToolResultReady(mut it) => {
                let tool = of(it.tool.take());
                Event::ToolResultReady { tool, result: read_result(it, self.blobs).into() }
            }
            Kind::ToolCallFinished(tool) => {
                let (tool, partial_input, _) = read_tool(tool);
                Event::ToolCallFinished { tool, partial_input }
            }
            Kind::CallMetadataUpdated(stored::StoredCallMetadata { stop_reason, usage }) => {
                let usage = usage.map(|usage| read_usage(&usage)).unwrap_or_default();
                Event::CallMetadataUpdated { stop_reason, usage }
            }
            Kind::CallFinished(it) => Event::CallFinished {
                class: read_class(&it.finish_class)?,
                usage: it.usage.as_ref().map(read_usage),
                duration_ms: it.duration_ms,
                has_tool_calls: it.has_tool_calls,
                provider_data: it.provider_data.map(read_provider_data),
                spent: read_spent(it.is_free, it.cost)?,
                stop_reason: it.stop_reason,
            },
            Kind::RetryScheduled(it) => Event::Call(CallReport::RetryScheduled {
                attempt: it.attempt,
                attempts_max: it.attempts_max,
                wait_ms: it.wait_ms,
                error_class: it.error_class,
                reason: it.reason,
            }),
            Kind::RetryStarted(it) => Event::Call(CallReport::RetryStarted {
                attempt: it.attempt,
                attempts_max: it.attempts_max,
            }),
            Kind::Truncated(stored::StoredTruncation { stop_reason, finish_class }) => {
                let class = read_class(&finish_class)?;
                Event::Call(CallReport::Truncated { stop_reason, class })
            }
            Kind::Timed(CallTiming { first_byte_ms, first_token_ms, .. }) => {
                Event::Call(CallReport::Timed { first_byte_ms, first_token_ms })
            }
            Kind::Counted(UsageTotals { call, run, session, .. }) => {
                let [call, run, session] = [call, run, session].map(Option::unwrap_or_default);
                Event::Call(CallReport::Counted(Box::new(CallCounts { call, run, session })))
            }
            Kind::BudgetNearlySpent(spent) => {
                Event::Call(CallReport::BudgetNearlySpent(spent.into()))
            }
            Kind::CompactionProposed(it) => Event::Compaction(CompactionEvent::Proposed(it.into())),
            Kind::CompactionStarted(it) => Event::Compaction(CompactionEvent::Started(it.into())),
            Kind::Compacted(it) => {
                let cleared = it.cleared_tool_call_ids.into_iter().map(ToolCallId).collect();
                let (through, summary) = (it.through_turn, it.summary.into());
                let (tokens_before, tokens_after) = (it.tokens_before, it.tokens_after);
                let made = Compaction { through, summary, cleared, tokens_before, tokens_after };
                Event::Compaction(CompactionEvent::Done(made.into()))
            }
            Kind::CompactionFailed(reason) => Event::Compaction(CompactionEvent::Failed { reason }),
            Kind::ToolsDeclared(stored::StoredToolsDeclared { tools, choices: chosen }) => {
                let (tools, choices) =
                    (tools.unwrap_or_default(), chosen.map(|it| choices(it).into()));
                Event::Session(SessionEvent::ToolsDeclared { tools, choices })
            }
            Kind::ModelSwitched(stored::StoredModelSwitched { model, choices: chosen }) => {
                let (model, choices) =
                    (model.unwrap_or_default(), chosen.map(|it| choices(it).into()));
                Event::Session(SessionEvent::ModelSwitched { model, choices })
            }
            Kind::ServerChanged(changed) => Event::Session(SessionEvent::ServerChanged(changed)),
            Kind::StoreDegraded(degraded) => Event::Session(SessionEvent::StoreDegraded(degraded)),
            Kind::Renamed(title) => Event::Session(SessionEvent::Renamed(title)),
        })
    }

    fn repeated(&self, repeat: Option<stored::StoredRepeat>) -> Text {
        match repeat {
            Some(repeat) if repeat.is_prompt => self.prompt.clone(),
            Some(repeat) => repeat.text.into(),
            None => Text::default(),
        }
    }
}

impl Iterator for RowReader<'_> {
    type Item = Result<Recorded, Unreadable>;

    fn next(&mut self) -> Option<Self::Item> {
        match self.stored().transpose()? {
            Ok(event) => Some(self.read(event)),
            Err(error) => {
                self.rest = &[];
                Some(Err(error.into()))
            }
        }
    }
}

fn scope_message(scope: Scope) -> stored::StoredScope {
    let Scope { run, turn, call } = scope;
    let run = scope.of_run().map_or(Vec::new(), |_| run.as_bytes().to_vec());
    stored::StoredScope { run, turn, call }
}

fn read_scope(scope: &stored::StoredScope) -> Result<Scope, Unreadable> {
    let stored::StoredScope { run, turn, call } = scope;
    let run = match run.as_slice() {
        [] => RunId::NONE,
        bytes => RunId::of_bytes(bytes).ok_or(Unreadable::Value("the id of a run"))?,
    };
    Ok(Scope { run, turn: *turn, call: *call })
}

/// What a session begins with, as a `StoredStart`.
pub(super) fn start_message(start: &SessionStart) -> stored::StoredStart {
    let SessionStart { preamble, history, choices, .. } = start;
    stored::StoredStart {
        system: preamble.system.clone(),
        messages: preamble.history.iter().map(history_message).collect(),
        history: history.clone(),
        choices: Some(choices_message(choices)),
    }
}

/// What the session of that id began with.
pub(super) fn read_start(session: &SessionId, start: &[u8]) -> Result<SessionStart, Unreadable> {
    let stored::StoredStart { system, messages, history, choices: chosen } =
        stored::StoredStart::decode(start)?;
    let session = session.clone();
    let preamble = read_preamble(system, messages);
    Ok(SessionStart {
        session,
        preamble,
        history,
        choices: chosen.map(choices).unwrap_or_default(),
    })
}

/// The tool call alone.
fn tool_message(tool: &ToolCall) -> stored::StoredTool {
    let (id, name) = (tool.id.0.clone(), tool.name.clone());
    stored::StoredTool { id, name, ..stored::StoredTool::default() }
}

#[cfg(test)]
mod tests;
