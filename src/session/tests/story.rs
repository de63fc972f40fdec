//! A run as a client follows it: the order of its events, what is open and what is closed, and the
//! conversation it builds up from them, which every snapshot must agree with.

mod entities;
mod run;

use super::reports::Reports;
use crate::chat::patch::PatchMode;
use crate::conformance::check::Checker;
use crate::protocol::any::Any;
use crate::protocol::command::{Command, Page};
use crate::protocol::constants::capability::{ALWAYS, OF_STDIN};
use crate::protocol::proto::rpc::UiEventFrame;
use crate::protocol::proto::rpc::rpc_line::Frame as Body;
use crate::protocol::wire::Request;
use crate::session::{FinalSnapshot, Input, Output, Rules, Session, TaskEvent};
use crate::task::call::CallSpec;
use crate::task::report::EngineEvent;
use anyhow::{Context, Result, bail, ensure};
use entities::Entity;
use run::{Patch, Run, Step};

#[derive(Clone, Debug)]
pub(super) struct Story {
    patch_mode: PatchMode,
    final_snapshot: FinalSnapshot,
    /// A run may wait for tool servers before its first provider call.
    may_prepare: bool,
    ordinal: u64,
    entities: Vec<Entity>,
    /// Calls that wait for approval.
    approvals: Vec<Entity>,
    /// Where the entities of the newest turn begin.
    turn: usize,
    run: Option<Run>,
    reports: Reports,
    /// What was dropped, each with the ordinal at which it was.
    dropped: Vec<Entity>,
    /// The part that the last request has asked for.
    page: Page,
    checker: Checker,
}

impl Story {
    pub(super) fn new(rules: &Rules, session: &Session) -> Self {
        let words = [&ALWAYS[..], &OF_STDIN].concat();
        let extensions = rules.extensions.iter().map(|it| it.as_str());
        let words = words.into_iter().chain(extensions).map(str::to_owned).collect();
        let mut checker = Checker::new();
        assert_eq!(checker.frame(session.hello(words)), []);
        Self {
            checker,
            patch_mode: rules.patches.mode,
            final_snapshot: rules.final_snapshot,
            may_prepare: !rules.tools.servers.is_empty(),
            ordinal: 0,
            entities: Vec::new(),
            approvals: Vec::new(),
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
        if let (Input::Task(_, TaskEvent::CallEnded(end)), true) = (input, is_live) {
            self.reports.call_ended(end);
        }
        if let Input::Request(Request { id, command: Command::Snapshot(page), .. }) = input {
            self.checker.asked(id.as_str(), *page);
        }
        for output in outputs {
            if let Output::Frame(frame) = output {
                let found = self.checker.frame(frame.clone());
                ensure!(found.is_empty(), "{found:?}");
            }
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
                | Output::ReadFiles(..)
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
        ensure!(
            run.step == Step::Going && run.is_closed(),
            "a provider call is started at {run:?}"
        );
        Ok(())
    }

    fn engine_said(&mut self, event: &EngineEvent) -> Result<()> {
        if let EngineEvent::Text(text) | EngineEvent::Reasoning { text, .. } = event {
            self.run()?.said += text;
        }
        self.reports.engine_said(event);
        Ok(())
    }

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
        self.event_of_run(payload)
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "a payload that is no event is a fault")]
    fn event_of_run(&mut self, payload: &Any) -> Result<()> {
        match payload {
            Any::ToolApprovalRequested(m) => {
                self.approvals.push(entities::approval(m, self.ordinal));
                self.is_requested(&m.tool_call_id)
            }
            Any::ToolApprovalResolved(m) => {
                self.approvals.retain(|it| it.id != format!("{}:approval", m.tool_call_id));
                self.is_requested(&m.tool_call_id)
            }
            Any::FrontendToolCallRequested(m) => self.is_executing(&m.tool_call_id),
            Any::FrontendToolResultReceived(m) => self.is_executing(&m.tool_call_id),
            Any::ChatRunStarted(_) => self.advance(Step::Accepted, Step::Started),
            Any::ChatProviderCallStarted(m) => self.call_started(&m.correlation),
            Any::ChatTextSegmentStarted(m) => self.opened(&m.message_id, &m.correlation),
            Any::ChatReasoningSegmentStarted(m) => self.opened(&m.message_id, &m.correlation),
            Any::ChatTextPatch(m) => {
                self.patched(&m.message_id, &Patch::new((m.sequence, m.offset), &m.text, m.mode()))
            }
            Any::ChatReasoningPatch(m) => {
                self.patched(&m.message_id, &Patch::new((m.sequence, m.offset), &m.text, m.mode()))
            }
            Any::ChatTextSegmentFinished(m) => self.closed(&m.message_id, &m.text, &m.status),
            Any::ChatReasoningSegmentFinished(m) => self.closed(&m.message_id, &m.text, &m.status),
            Any::ChatToolCallStarted(m) => self.tool_started(&m.tool_call_id, &m.correlation),
            Any::ChatToolArgumentsPatch(m) => {
                let patch = Patch::new((m.sequence, m.offset), &m.arguments, m.mode());
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
            ensure!(run.request == request && run.is_closed(), "a prompt joins at {run:?}");
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
}

/// Whether the event belongs to no run, or to one beside that of its frame.
fn is_of_session(payload: &Any) -> bool {
    matches!(
        payload,
        Any::SteeringAccepted(_) | Any::ToolServerChanged(_) | Any::FrontendToolManifestUpdated(_)
    )
}
