//! A run as a client follows it: the order of its events, what is open and what is closed, and the
//! conversation it builds up from them, which every snapshot must agree with.

use super::reports::Reports;
use crate::chat::patch::PatchMode;
use crate::engine::{CallSpec, EngineEvent};
use crate::protocol::any::Any;
use crate::protocol::command::{Command, Page};
use crate::protocol::proto::chat::{ChatStreamPatchMode, CorrelationInfo};
use crate::protocol::proto::rpc::rpc_line::Frame as Body;
use crate::protocol::proto::rpc::{SnapshotEntity, SnapshotFrame, UiEventFrame};
use crate::protocol::proto::session::TurnDropped;
use crate::protocol::wire::Request;
use crate::session::{FinalSnapshot, Input, Output, Rules, TaskEvent};
use anyhow::{Context, Result, bail, ensure};

/// The status of what was dropped.
const GONE: &str = "gone";

#[derive(Clone, Debug)]
pub(super) struct Story {
    patch_mode: PatchMode,
    final_snapshot: FinalSnapshot,
    /// A run may wait for tool servers before its first provider call.
    may_prepare: bool,
    ordinal: u64,
    entities: Vec<Entity>,
    /// Where the entities of the newest turn begin.
    turn: usize,
    run: Option<Run>,
    reports: Reports,
    /// What was dropped, each with the ordinal at which it was.
    dropped: Vec<Entity>,
    /// The part that the last request has asked for.
    page: Page,
}

/// An entity as a client that follows the events believes it to be.
#[derive(Clone, Debug, Default, PartialEq)]
struct Entity {
    kind: &'static str,
    id: String,
    created: u64,
    changed: u64,
    text: String,
    status: String,
}

#[derive(Clone, Debug)]
struct Run {
    request: String,
    step: Step,
    call: Option<Call>,
    /// The id of the last call that has ended.
    ended_call: String,
    segment: Option<Segment>,
    tools: Vec<Tool>,
    /// All that the engine said, and all that was shown of it.
    said: String,
    shown: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    Accepted,
    Started,
    Going,
    Finished,
    Stopped,
    Failed,
    /// Its last snapshot was sent.
    Shown,
    /// Its error was sent.
    Explained,
}

#[derive(Clone, Debug)]
struct Call {
    id: String,
    has_metadata: bool,
}

#[derive(Clone, Debug)]
struct Segment {
    id: String,
    text: String,
    sequence: u64,
}

#[derive(Clone, Debug)]
struct Tool {
    id: String,
    arguments: String,
    sequence: u64,
    step: ToolStep,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum ToolStep {
    Started,
    Requested,
    Executing,
    Returned,
}

/// A piece of streamed text.
struct Patch<'a> {
    sequence: u64,
    offset: u64,
    text: &'a str,
    mode: ChatStreamPatchMode,
}

impl Story {
    pub(super) fn new(rules: &Rules) -> Self {
        Self {
            patch_mode: rules.patches.mode,
            final_snapshot: rules.final_snapshot,
            may_prepare: !rules.tools.servers.is_empty(),
            ordinal: 0,
            entities: Vec::new(),
            turn: 0,
            run: None,
            reports: Reports::new(rules),
            dropped: Vec::new(),
            page: Page::default(),
        }
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "no other input asks for a snapshot")]
    pub(super) fn watch(&mut self, input: &Input, is_live: bool, outputs: &[Output]) -> Result<()> {
        self.reports.take_in(input);
        self.page = match input {
            Input::Request(Request { command: Command::Snapshot(page), .. }) => *page,
            _ => Page::default(),
        };
        if let (Input::Task(_, TaskEvent::Engine(event)), true) = (input, is_live) {
            self.engine_said(event)?;
        }
        for output in outputs {
            match output {
                Output::Frame(frame) => match &frame.frame {
                    Some(Body::UiEvent(event)) => self.event(&frame.request_id, event)?,
                    Some(Body::Snapshot(snapshot)) => self.snapshot(&frame.request_id, snapshot)?,
                    Some(Body::Error(_)) => self.error(&frame.request_id)?,
                    Some(Body::Done(_)) => self.done(&frame.request_id)?,
                    Some(Body::Hello(_) | Body::BackendEvent(_)) | None => bail!("{frame:?}"),
                },
                Output::StartCall(_, spec) => self.call_asked(spec)?,
                Output::Persist(_)
                | Output::StartTool(..)
                | Output::CancelTask(_)
                | Output::Warning(_)
                | Output::Exit(_)
                | Output::Abort(_) => {}
            }
        }
        if let Some(run) = &self.run {
            let is_preparing = self.may_prepare && run.step == Step::Started;
            ensure!(run.step == Step::Going || is_preparing, "left at {:?}", run.step);
            ensure!(run.said == run.shown, "said {:?}, shown {:?}", run.said, run.shown);
        }
        self.reports.check_rest()
    }

    /// The first provider call begins the run; a later one comes when all tools have returned.
    fn call_asked(&mut self, spec: &CallSpec) -> Result<()> {
        let run = self.run.as_mut().context("a provider call outside of any run")?;
        self.reports.call_asked(&run.request, spec)?;
        if run.step == Step::Started {
            run.step = Step::Going;
        }
        for turn in spec.transcript.turns() {
            let prompt = turn.prompt.as_str();
            let is_it = |it: &Entity| it.status == "accepted" && it.text == prompt;
            ensure!(self.entities.iter().any(is_it), "the model is sent {prompt:?}");
        }
        let is_closed = run.segment.is_none() && run.call.is_none() && run.tools.is_empty();
        ensure!(run.step == Step::Going && is_closed, "a provider call is started at {run:?}");
        Ok(())
    }

    fn engine_said(&mut self, event: &EngineEvent) -> Result<()> {
        if let EngineEvent::Text(text) | EngineEvent::Reasoning { text, .. } = event {
            self.run()?.said += text;
        }
        self.reports.engine_said(event);
        Ok(())
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "a payload that is no event is a fault")]
    fn event(&mut self, request: &str, event: &UiEventFrame) -> Result<()> {
        self.ordinal = event.ordinal;
        let payload = event.payload.clone().context("an event without payload")?.into_whole();
        let payload = &payload;
        ensure!(event.name == payload.name(), "{} is called {}", payload.name(), event.name);
        self.reports.event(request, payload)?;
        if let Any::ModelSwitched(_) = payload {
            return self.reports.switched(self.run.is_some());
        }
        if let Any::TurnDropped(dropped) = payload {
            return self.turns_dropped(dropped);
        }
        if let Any::ChatUserMessageAccepted(accepted) = payload {
            return self.accepted(request, &accepted.message_id, &accepted.text);
        }
        if is_of_session(payload) {
            return Ok(());
        }
        ensure!(self.run()?.request == request, "a frame of the run with the id {request:?}");
        match payload {
            Any::ToolApprovalRequested(m) => self.is_requested(&m.tool_call_id),
            Any::ToolApprovalResolved(m) => self.is_requested(&m.tool_call_id),
            Any::FrontendToolCallRequested(m) => self.is_executing(&m.tool_call_id),
            Any::FrontendToolResultReceived(m) => self.is_executing(&m.tool_call_id),
            Any::ChatRunStarted(_) => self.advance(Step::Accepted, Step::Started),
            Any::ChatProviderCallStarted(m) => self.call_started(&m.correlation),
            Any::ChatTextSegmentStarted(m) => self.opened(&m.message_id, &m.correlation),
            Any::ChatReasoningSegmentStarted(m) => self.opened(&m.message_id, &m.correlation),
            Any::ChatTextPatch(m) => {
                let (sequence, offset, mode) = (m.sequence, m.offset, m.mode());
                self.patched(&m.message_id, &Patch { sequence, offset, text: &m.text, mode })
            }
            Any::ChatReasoningPatch(m) => {
                let (sequence, offset, mode) = (m.sequence, m.offset, m.mode());
                self.patched(&m.message_id, &Patch { sequence, offset, text: &m.text, mode })
            }
            Any::ChatTextSegmentFinished(m) => self.closed(&m.message_id, &m.text, &m.status),
            Any::ChatReasoningSegmentFinished(m) => self.closed(&m.message_id, &m.text, &m.status),
            Any::ChatToolCallStarted(m) => self.tool_started(&m.tool_call_id, &m.correlation),
            Any::ChatToolArgumentsPatch(m) => {
                let (sequence, offset, mode) = (m.sequence, m.offset, m.mode());
                let patch = Patch { sequence, offset, text: &m.arguments, mode };
                self.arguments_patched(&m.tool_call_id, &patch)
            }
            Any::ChatToolCallRequested(m) => self.requested(&m.tool_call_id, &m.input),
            Any::ChatToolExecutionStarted(m) => self.executing(&m.tool_call_id),
            Any::ChatToolResultReady(m) => self.returned(&m.tool_call_id, &m.result, &m.status),
            Any::ChatToolCallFinished(m) => self.tool_finished(&m.tool_call_id),
            Any::RetryScheduled(m) => self.in_call(&m.correlation),
            Any::RetryStarted(m) => self.in_call(&m.correlation),
            Any::AnswerTruncated(m) => self.after_call(&m.correlation),
            Any::UsageTotals(m) => self.after_call(&m.correlation),
            Any::AnswerRejected(_) => self.is_between_calls(),
            Any::ObjectExtracted(_) | Any::LineRejected(_) | Any::ExtractionFinished(_) => Ok(()),
            Any::ChatProviderCallMetadataUpdated(m) => self.metadata(&m.correlation),
            Any::ChatProviderCallFinished(m) => self.call_finished(&m.correlation),
            Any::ChatRunFinished(_) => self.ended(Step::Finished),
            Any::ChatRunStopped(_) => self.ended(Step::Stopped),
            Any::ChatRunFailed(m) => {
                self.ended(Step::Failed)?;
                self.add("ChatMessage", m.message_id.clone(), &m.error, "failed")
            }
            other => bail!("no event of a run: {other:?}"),
        }
    }

    fn accepted(&mut self, request: &str, id: &str, text: &str) -> Result<()> {
        if let Some(run) = &self.run {
            let is_boundary = run.segment.is_none() && run.call.is_none() && run.tools.is_empty();
            ensure!(run.request == request && is_boundary, "a prompt joins at {run:?}");
            return self.add("ChatMessage", id.to_owned(), text, "accepted");
        }
        self.run = Some(Run {
            request: request.to_owned(),
            step: Step::Accepted,
            call: None,
            ended_call: String::new(),
            segment: None,
            tools: Vec::new(),
            said: String::new(),
            shown: String::new(),
        });
        self.turn = self.entities.len();
        self.add("ChatMessage", id.to_owned(), text, "accepted")
    }

    /// What is dropped is the end of the conversation, from a prompt on.
    fn turns_dropped(&mut self, dropped: &TurnDropped) -> Result<()> {
        ensure!(self.run.is_none(), "turns are dropped in a run");
        let first = &dropped.prompt_message_id;
        ensure!(first.ends_with("-user"), "{first} begins no turn");
        let start = self.entities.iter().position(|entity| entity.id == *first);
        let gone = self.entities.split_off(start.context("a prompt that there is not")?);
        let of = |kind: &str| -> Vec<&String> {
            gone.iter().filter(|entity| entity.kind == kind).map(|entity| &entity.id).collect()
        };
        ensure!(of("ChatMessage").into_iter().eq(&dropped.message_ids), "{dropped:?} of {gone:?}");
        ensure!(of("ChatToolCall").into_iter().eq(&dropped.tool_call_ids), "{dropped:?}");
        ensure!(!dropped.turn_ids.is_empty(), "{dropped:?}");
        let changed = self.ordinal;
        self.dropped.extend(gone.into_iter().map(|entity| entity.gone(changed)));
        Ok(())
    }

    /// The part of the conversation that was asked for.
    fn part(&self) -> Vec<Entity> {
        let Page { since, before, limit } = self.page;
        let mut part = self.entities.clone();
        if let Some(since) = since {
            part.extend(self.dropped.iter().cloned());
            part.retain(|entity| entity.changed > since.0);
        }
        part.retain(|entity| before.is_none_or(|before| entity.created < before.0));
        part.sort_by_key(|entity| entity.created);
        let limit = limit.map_or(part.len(), |limit| limit.get() as usize);
        part.split_off(part.len().saturating_sub(limit))
    }

    fn call_started(&mut self, ids: &Option<CorrelationInfo>) -> Result<()> {
        let run = self.going()?;
        ensure!(run.call.is_none(), "a provider call begins in another");
        let id = call_id(ids)?.to_owned();
        run.call = Some(Call { id, has_metadata: false });
        Ok(())
    }

    fn opened(&mut self, id: &str, ids: &Option<CorrelationInfo>) -> Result<()> {
        let run = self.going()?;
        ensure!(run.segment.is_none(), "a segment begins in another");
        ensure!(run.call_id()? == call_id(ids)?, "a segment of another call");
        run.segment = Some(Segment { id: id.to_owned(), text: String::new(), sequence: 0 });
        self.add("ChatMessage", id.to_owned(), "", "streaming")
    }

    fn patched(&mut self, id: &str, patch: &Patch<'_>) -> Result<()> {
        let mode = self.patch_mode;
        let segment = self.segment(id)?;
        let before = segment.text.len();
        patch.apply(mode, &mut segment.text, &mut segment.sequence)?;
        let (whole, new) = (segment.text.clone(), segment.text[before..].to_owned());
        self.going()?.shown += &new;
        self.change("ChatMessage", id, |entity| entity.text = whole)
    }

    fn closed(&mut self, id: &str, text: &str, status: &str) -> Result<()> {
        let whole = &self.segment(id)?.text;
        ensure!(!whole.is_empty(), "an empty segment");
        ensure!(whole == text, "patches say {whole:?}, the end of the segment {text:?}");
        self.going()?.segment = None;
        self.change("ChatMessage", id, |entity| status.clone_into(&mut entity.status))
    }

    fn tool_started(&mut self, id: &str, ids: &Option<CorrelationInfo>) -> Result<()> {
        let run = self.going()?;
        ensure!(run.segment.is_none(), "a tool call begins in a segment");
        ensure!(run.call_id()? == call_id(ids)?, "a tool call of another provider call");
        ensure!(run.tools.iter().all(|tool| tool.id != id), "tool call {id} begins twice");
        run.tools.push(Tool {
            id: id.to_owned(),
            arguments: String::new(),
            sequence: 0,
            step: ToolStep::Started,
        });
        self.add("ChatToolCall", id.to_owned(), "", "pending")
    }

    fn arguments_patched(&mut self, id: &str, patch: &Patch<'_>) -> Result<()> {
        let tool = self.tool(id, ToolStep::Started..=ToolStep::Started)?;
        patch.apply(PatchMode::Append, &mut tool.arguments, &mut tool.sequence)?;
        let arguments = tool.arguments.clone();
        self.change("ChatToolCall", id, |entity| {
            entity.text = arguments;
            entity.status = "streaming_args".to_owned();
        })
    }

    fn requested(&mut self, id: &str, input: &str) -> Result<()> {
        let tool = self.tool(id, ToolStep::Started..=ToolStep::Started)?;
        ensure!(tool.arguments == input, "patches say {:?}, the call {input:?}", tool.arguments);
        tool.step = ToolStep::Requested;
        self.change("ChatToolCall", id, |entity| entity.status = "pending".to_owned())
    }

    fn is_requested(&mut self, id: &str) -> Result<()> {
        self.tool(id, ToolStep::Requested..=ToolStep::Requested).map(drop)
    }

    fn is_executing(&mut self, id: &str) -> Result<()> {
        self.tool(id, ToolStep::Executing..=ToolStep::Executing).map(drop)
    }

    fn executing(&mut self, id: &str) -> Result<()> {
        let tool = self.tool(id, ToolStep::Requested..=ToolStep::Requested)?;
        tool.step = ToolStep::Executing;
        self.change("ChatToolCall", id, |entity| entity.status = "executing".to_owned())
    }

    fn returned(&mut self, id: &str, result: &str, status: &str) -> Result<()> {
        self.tool(id, ToolStep::Requested..=ToolStep::Executing)?.step = ToolStep::Returned;
        self.add("ChatToolResult", format!("{id}:result"), result, status)
    }

    fn tool_finished(&mut self, id: &str) -> Result<()> {
        let step = self.tool(id, ToolStep::Started..=ToolStep::Returned)?.step;
        let is_answered = step == ToolStep::Started || step == ToolStep::Returned;
        ensure!(is_answered, "the tool call {id} was made and ends without a result");
        self.going()?.tools.retain(|tool| tool.id != id);
        self.change("ChatToolCall", id, |entity| entity.status = "completed".to_owned())
    }

    fn metadata(&mut self, ids: &Option<CorrelationInfo>) -> Result<()> {
        let call = self.open_call(ids)?;
        ensure!(!call.has_metadata, "metadata twice");
        call.has_metadata = true;
        Ok(())
    }

    fn call_finished(&mut self, ids: &Option<CorrelationInfo>) -> Result<()> {
        let id = self.open_call(ids)?.id.clone();
        let run = self.going()?;
        (run.call, run.ended_call) = (None, id);
        Ok(())
    }

    fn in_call(&mut self, ids: &Option<CorrelationInfo>) -> Result<()> {
        let run = self.going()?;
        ensure!(run.call_id()? == call_id(ids)?, "a report of another call");
        Ok(())
    }

    fn after_call(&mut self, ids: &Option<CorrelationInfo>) -> Result<()> {
        let run = self.going()?;
        ensure!(run.call.is_none() && run.ended_call == call_id(ids)?, "a report of another call");
        Ok(())
    }

    fn is_between_calls(&mut self) -> Result<()> {
        let run = self.going()?;
        let is_closed = run.segment.is_none() && run.call.is_none() && run.tools.is_empty();
        ensure!(is_closed, "an answer is rejected at {run:?}");
        Ok(())
    }

    fn open_call(&mut self, ids: &Option<CorrelationInfo>) -> Result<&mut Call> {
        let run = self.going()?;
        ensure!(run.segment.is_none(), "a provider call ends in a segment");
        ensure!(run.call_id()? == call_id(ids)?, "the end of another call");
        run.call.as_mut().context("no open call")
    }

    fn ended(&mut self, how: Step) -> Result<()> {
        let run = self.going()?;
        let is_closed = run.segment.is_none() && run.call.is_none() && run.tools.is_empty();
        ensure!(is_closed, "left open: {run:?}");
        run.step = how;
        Ok(())
    }

    fn snapshot(&mut self, request: &str, snapshot: &SnapshotFrame) -> Result<()> {
        ensure!(snapshot.snapshot_ordinal == self.ordinal, "snapshot of another moment");
        let is_final = self.run.as_ref().is_some_and(|run| run.request == request);
        let from = match (is_final, self.final_snapshot) {
            (false, _) | (true, FinalSnapshot::Full | FinalSnapshot::FullUntilLong) => 0,
            (true, FinalSnapshot::Turn) => self.turn,
            (true, FinalSnapshot::None) => bail!("a final snapshot that nobody wants"),
        };
        let shown: Result<Vec<_>> = snapshot.entities.iter().map(entity).collect();
        let whole = self.page.is_everything();
        let known = if whole { self.entities[from..].to_vec() } else { self.part() };
        let shown = shown?;
        ensure!(shown == known, "the snapshot says {shown:?}\n  the events said {known:?}");
        if is_final {
            let run = self.run()?;
            let is_over = matches!(run.step, Step::Finished | Step::Stopped | Step::Failed);
            ensure!(is_over, "a final snapshot at {:?}", run.step);
            run.step = if run.step == Step::Failed { Step::Failed } else { Step::Shown };
        }
        Ok(())
    }

    fn error(&mut self, request: &str) -> Result<()> {
        if self.run.as_ref().is_some_and(|run| run.request == request) {
            self.explain()?;
        }
        Ok(())
    }

    /// The error of a run that has failed, or whose answer does not match its schema.
    fn explain(&mut self) -> Result<()> {
        let has_snapshot = self.final_snapshot != FinalSnapshot::None;
        let run = self.run()?;
        let is_over = match run.step {
            Step::Failed => true,
            Step::Finished => !has_snapshot,
            Step::Shown => has_snapshot,
            Step::Accepted | Step::Started | Step::Going | Step::Stopped | Step::Explained => false,
        };
        ensure!(is_over, "an error at {:?}", run.step);
        run.step = Step::Explained;
        Ok(())
    }

    fn done(&mut self, request: &str) -> Result<()> {
        let Some(run) = self.run.take_if(|run| run.request == request) else { return Ok(()) };
        let has_snapshot = self.final_snapshot != FinalSnapshot::None;
        let is_over = match run.step {
            Step::Finished | Step::Stopped => !has_snapshot,
            Step::Shown | Step::Explained => true,
            Step::Accepted | Step::Started | Step::Going | Step::Failed => false,
        };
        ensure!(is_over, "done at {:?}", run.step);
        ensure!(run.said == run.shown, "said {:?}, shown {:?}", run.said, run.shown);
        Ok(())
    }

    fn run(&mut self) -> Result<&mut Run> {
        self.run.as_mut().context("an event outside of any run")
    }

    fn going(&mut self) -> Result<&mut Run> {
        let may_prepare = self.may_prepare;
        let run = self.run()?;
        let is_preparing = may_prepare && run.step == Step::Started;
        ensure!(run.step == Step::Going || is_preparing, "an event of a run at {:?}", run.step);
        Ok(run)
    }

    fn advance(&mut self, from: Step, to: Step) -> Result<()> {
        let run = self.run()?;
        ensure!(run.step == from, "{to:?} comes after {from:?}, not after {:?}", run.step);
        run.step = to;
        Ok(())
    }

    fn segment(&mut self, id: &str) -> Result<&mut Segment> {
        let open = self.going()?.segment.as_mut().filter(|segment| segment.id == id);
        open.with_context(|| format!("segment {id} is not open"))
    }

    fn tool(&mut self, id: &str, steps: std::ops::RangeInclusive<ToolStep>) -> Result<&mut Tool> {
        let open = self.going()?.tools.iter_mut().find(|tool| tool.id == id);
        let tool = open.with_context(|| format!("tool call {id} is not open"))?;
        ensure!(steps.contains(&tool.step), "tool call {id} is at {:?}", tool.step);
        Ok(tool)
    }

    fn add(&mut self, kind: &'static str, id: String, text: &str, status: &str) -> Result<()> {
        self.entities.push(Entity {
            kind,
            id,
            created: self.ordinal,
            changed: self.ordinal,
            text: text.to_owned(),
            status: status.to_owned(),
        });
        Ok(())
    }

    fn change(&mut self, kind: &str, id: &str, change: impl FnOnce(&mut Entity)) -> Result<()> {
        let mut newest = self.entities.iter_mut().rev();
        let entity = newest.find(|entity| entity.kind == kind && entity.id == id);
        let entity = entity.with_context(|| format!("no {kind} {id}"))?;
        entity.changed = self.ordinal;
        change(entity);
        Ok(())
    }
}

impl Run {
    fn call_id(&self) -> Result<&str> {
        self.call.as_ref().map(|call| call.id.as_str()).context("outside of any provider call")
    }
}

impl Patch<'_> {
    /// Adds the patch to what came before it.
    fn apply(&self, mode: PatchMode, text: &mut String, sequence: &mut u64) -> Result<()> {
        ensure!(self.sequence == *sequence + 1, "piece {} after {sequence}", self.sequence);
        *sequence = self.sequence;
        let new = match mode {
            PatchMode::Append => {
                ensure!(self.mode == ChatStreamPatchMode::Append, "mode {:?}", self.mode);
                ensure!(self.offset == text.len() as u64, "offset {}", self.offset);
                self.text
            }
            PatchMode::Snapshot => {
                ensure!(self.mode == ChatStreamPatchMode::Snapshot, "mode {:?}", self.mode);
                ensure!(self.offset == 0, "offset {}", self.offset);
                self.text.strip_prefix(text.as_str()).context("text was taken back")?
            }
        };
        ensure!(!new.is_empty(), "an empty patch");
        *text += new;
        Ok(())
    }
}

/// Whether the event belongs to no run, or to one beside that of its frame.
fn is_of_session(payload: &Any) -> bool {
    matches!(
        payload,
        Any::SteeringAccepted(_) | Any::ToolServerChanged(_) | Any::FrontendToolManifestUpdated(_)
    )
}

fn call_id(ids: &Option<CorrelationInfo>) -> Result<&str> {
    let id = ids.as_ref().map_or("", |ids| ids.provider_call_id.as_str());
    ensure!(!id.is_empty(), "no provider call id");
    Ok(id)
}

impl Entity {
    /// What is shown of it once it was dropped.
    fn gone(self, changed: u64) -> Self {
        Self { changed, text: String::new(), status: GONE.to_owned(), ..self }
    }
}

#[expect(clippy::wildcard_enum_match_arm, reason = "a payload that is no entity is a fault")]
fn entity(entity: &SnapshotEntity) -> Result<Entity> {
    if entity.tombstone {
        ensure!(entity.payload.is_none(), "a tombstone with a payload");
        let kinds = ["ChatMessage", "ChatToolCall", "ChatToolResult"];
        let kind = kinds.into_iter().find(|kind| entity.kind == *kind).context("no kind")?;
        let (created, id) = (entity.created_ordinal, entity.id.clone());
        let it = Entity { kind, id, created, ..Entity::default() };
        return Ok(it.gone(entity.last_event_ordinal));
    }
    let payload = entity.payload.clone().context("an entity without payload")?.into_whole();
    let (kind, text, status) = match &payload {
        Any::ChatMessageEntity(m) => {
            ensure!(m.text == m.content, "text {:?}, content {:?}", m.text, m.content);
            ensure!(m.streaming == (m.status == "streaming"), "{m:?}");
            ("ChatMessage", &m.text, &m.status)
        }
        Any::ToolCallEntity(m) => ("ChatToolCall", &m.input, &m.status),
        Any::ToolResultEntity(m) => ("ChatToolResult", &m.result, &m.status),
        other => bail!("no entity: {other:?}"),
    };
    ensure!(entity.kind == kind, "{kind} is called {}", entity.kind);
    Ok(Entity {
        kind,
        id: entity.id.clone(),
        created: entity.created_ordinal,
        changed: entity.last_event_ordinal,
        text: text.clone(),
        status: status.clone(),
    })
}
