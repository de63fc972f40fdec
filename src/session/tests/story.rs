//! What the inputs and outputs of a session must have in common, which no stream can show: all that an
//! engine says is shown, the model is sent what the conversation has, and a snapshot has what was asked
//! for. What must be true of any stream is checked by [`Checker`].

use super::reports::Reports;
use crate::conformance::check::Checker;
use crate::conversation::patch::PatchMode;
use crate::protocol::any::Any;
use crate::protocol::command::Command;
use crate::protocol::constants::capability::{ALWAYS, OF_STDIN};
use crate::protocol::proto::chat::ChatStreamPatchMode;
use crate::protocol::proto::rpc::rpc_line::Frame as Body;
use crate::protocol::proto::rpc::{SnapshotFrame, UiEventFrame};
use crate::protocol::wire::Request;
use crate::session::{FinalSnapshot, Input, Output, Rules, Session, TaskEvent};
use crate::task::call::CallSpec;
use crate::task::report::EngineEvent;
use anyhow::{Context, Result, ensure};
use std::collections::HashMap;

#[derive(Clone, Debug)]
pub(super) struct Story {
    checker: Checker,
    patch_mode: ChatStreamPatchMode,
    final_snapshot: FinalSnapshot,
    reports: Reports,
    /// The ids of the prompts that began turns, in their order.
    turns: Vec<String>,
    /// The ids and texts of all prompts.
    prompts: Vec<(String, String)>,
    run: Option<Run>,
}

#[derive(Clone, Debug, Default)]
struct Run {
    request: String,
    /// All that the engine said, and all that was shown of it.
    said: String,
    shown: String,
    /// What streams now, with the number of its last piece and the bytes so far.
    streams: HashMap<String, (u64, usize)>,
    /// Arguments of tool calls.
    arguments: HashMap<String, String>,
}

impl Story {
    pub(super) fn new(rules: &Rules, session: &Session) -> Self {
        let words = [&ALWAYS[..], &OF_STDIN].concat();
        let extensions = rules.extensions.iter().map(|extension| extension.as_str());
        let words = words.into_iter().chain(extensions).map(str::to_owned).collect();
        let mut checker = Checker::new();
        assert_eq!(checker.frame(session.hello(words)), []);
        Self {
            checker,
            patch_mode: match rules.patches.mode {
                PatchMode::Append => ChatStreamPatchMode::Append,
                PatchMode::Snapshot => ChatStreamPatchMode::Snapshot,
            },
            final_snapshot: rules.final_snapshot,
            reports: Reports::new(rules),
            turns: Vec::new(),
            prompts: Vec::new(),
            run: None,
        }
    }

    pub(super) fn watch(&mut self, input: &Input, is_live: bool, outputs: &[Output]) -> Result<()> {
        self.reports.take_in(input);
        if let Input::Request(Request { id, command: Command::Snapshot(page), .. }) = input {
            self.checker.asked(id.as_str(), *page);
        }
        if let (Input::Task(_, TaskEvent::Engine(event)), true) = (input, is_live) {
            self.engine_said(event)?;
        }
        if let (Input::Task(_, TaskEvent::CallEnded(end)), true) = (input, is_live) {
            self.reports.call_ended(end);
        }
        for output in outputs {
            match output {
                Output::Frame(frame) => {
                    let found = self.checker.frame(frame.clone());
                    ensure!(found.is_empty(), "{found:?}");
                    self.body(&frame.request_id, frame.frame.as_ref())?;
                }
                Output::StartCall(_, spec) => self.call_asked(spec)?,
                Output::Exit(_) => {
                    let found = self.checker.finish(None);
                    ensure!(found.is_empty(), "{found:?}");
                }
                Output::Persist(_)
                | Output::StartTool(..)
                | Output::ReadFiles(..)
                | Output::CancelTask(_)
                | Output::Warning(_)
                | Output::Abort(_) => {}
            }
        }
        if let Some(run) = &self.run {
            ensure!(run.said == run.shown, "said {:?}, shown {:?}", run.said, run.shown);
        }
        self.reports.check_rest()
    }

    fn body(&mut self, request: &str, body: Option<&Body>) -> Result<()> {
        match body {
            Some(Body::UiEvent(event)) => self.event(request, event),
            Some(Body::Snapshot(snapshot)) => self.snapshot(request, snapshot),
            Some(Body::Done(_)) => {
                if let Some(run) = self.run.take_if(|run| run.request == request) {
                    ensure!(run.said == run.shown, "said {:?}, shown {:?}", run.said, run.shown);
                }
                Ok(())
            }
            Some(Body::Error(_) | Body::Hello(_) | Body::BackendEvent(_)) | None => Ok(()),
        }
    }

    /// The model is sent prompts that the conversation has, and no others.
    fn call_asked(&mut self, spec: &CallSpec) -> Result<()> {
        let run = self.run.as_ref().context("a provider call outside of any run")?;
        self.reports.call_asked(&run.request, spec)?;
        for turn in spec.transcript.turns() {
            let prompt = turn.prompt.as_str();
            let is_known = self.prompts.iter().any(|(_, text)| text == prompt);
            ensure!(is_known, "the model is sent {prompt:?}");
        }
        Ok(())
    }

    fn engine_said(&mut self, event: &EngineEvent) -> Result<()> {
        if let EngineEvent::Text(text) | EngineEvent::Reasoning { text, .. } = event {
            self.run()?.said += text;
        }
        self.reports.engine_said(event);
        Ok(())
    }

    fn run(&mut self) -> Result<&mut Run> {
        self.run.as_mut().context("an event outside of any run")
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "the other events are the checker's")]
    fn event(&mut self, request: &str, event: &UiEventFrame) -> Result<()> {
        let payload = event.payload.clone().context("an event without payload")?.into_whole();
        self.reports.event(request, &payload)?;
        match &payload {
            Any::ModelSwitched(_) => self.reports.switched(self.run.is_some()),
            Any::TurnDropped(dropped) => {
                let at = self.turns.iter().position(|id| *id == dropped.prompt_message_id);
                self.turns.truncate(at.context("a prompt that begins no turn")?);
                self.prompts.retain(|(id, _)| !dropped.message_ids.contains(id));
                Ok(())
            }
            Any::ChatUserMessageAccepted(m) => {
                self.prompts.push((m.message_id.clone(), m.text.clone()));
                if self.run.is_none() {
                    self.turns.push(m.message_id.clone());
                    self.run = Some(Run { request: request.to_owned(), ..Run::default() });
                }
                Ok(())
            }
            Any::ChatTextPatch(m) => {
                ensure!(m.mode() == self.patch_mode, "mode {:?}", m.mode());
                self.run()?.streamed(&m.message_id, m.sequence, m.offset, &m.text).map(drop)
            }
            Any::ChatReasoningPatch(m) => {
                ensure!(m.mode() == self.patch_mode, "mode {:?}", m.mode());
                self.run()?.streamed(&m.message_id, m.sequence, m.offset, &m.text).map(drop)
            }
            Any::ChatToolArgumentsPatch(m) => {
                let run = self.run()?;
                run.piece(&m.tool_call_id, m.sequence)?;
                *run.arguments.entry(m.tool_call_id.clone()).or_default() += &m.arguments;
                Ok(())
            }
            Any::ChatToolCallRequested(m) => {
                let arguments = self.run()?.arguments.remove(&m.tool_call_id).unwrap_or_default();
                ensure!(arguments == m.input, "patches say {arguments:?}, the call {:?}", m.input);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// The snapshot that closes a run begins with its turn, or with the conversation.
    fn snapshot(&self, request: &str, snapshot: &SnapshotFrame) -> Result<()> {
        if self.run.as_ref().is_none_or(|run| run.request != request) {
            return Ok(());
        }
        let first = match self.final_snapshot {
            FinalSnapshot::Full | FinalSnapshot::FullUntilLong => self.turns.first(),
            FinalSnapshot::Turn => self.turns.last(),
            FinalSnapshot::None => None,
        };
        let shown = snapshot.entities.first().map(|entity| &entity.id);
        ensure!(first.is_some() && shown == first, "begins with {shown:?}, not with {first:?}");
        let entities = snapshot.entities.iter().filter(|entity| entity.kind != "ToolApproval");
        ensure!(entities.is_sorted_by_key(|entity| entity.created_ordinal), "not in its order");
        Ok(())
    }
}

impl Run {
    /// A session numbers the pieces of a stream one by one.
    fn piece(&mut self, stream: &str, sequence: u64) -> Result<&mut usize> {
        let (last, bytes) = self.streams.entry(stream.to_owned()).or_default();
        ensure!(sequence == *last + 1, "piece {sequence} after {last}");
        *last = sequence;
        Ok(bytes)
    }

    /// A piece of what the engine said: with an offset what follows there, or all of the stream so far.
    fn streamed(&mut self, stream: &str, sequence: u64, offset: u64, text: &str) -> Result<()> {
        let bytes = self.piece(stream, sequence)?;
        let known = *bytes - usize::try_from(offset)?;
        let new = text.get(known..).context("text was taken back")?;
        ensure!(!new.is_empty(), "an empty patch");
        *bytes += new.len();
        self.shown += new;
        Ok(())
    }
}
