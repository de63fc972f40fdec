//! A single run and its inputs, checked step by step by rules of its own.

use crate::conversation::event::{FinishClass, Usage};
use crate::extract::{ResponseType, Schema};
use crate::protocol::command::{Command, Prompt, Submit};
use crate::protocol::id::{RequestId, TaskId};
use crate::protocol::proto::rpc::rpc_line::Frame as Body;
use crate::protocol::wire::{ClientError, Code, Frame, Request};
use crate::session::tests::scene::Machine;
use crate::session::tests::sequences::Play;
use crate::session::{
    ExitCode, Extraction, ExtractionReport, Input, Output, Retention, Rules, Session, SessionMode,
    Signal, TaskEvent, Uptime,
};
use crate::task::report::{CallEnd, EngineEvent, ErrorClass, RunError, Stage};
use anyhow::{Context, Result, ensure};
use serde_json::json;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Symbol {
    Submit,
    InputEnded,
    CallStarted,
    /// A line that is what the extractions below ask for.
    Fitting,
    /// A line that is not.
    Other,
    /// The beginning of a line that is.
    Begun,
    Usage,
    Completed,
    CutOff,
    Finished,
    NotReady,
    Failed(ErrorClass),
    StaleText,
    StaleEnd,
    Signal(Signal),
    ReaderGone,
    Refused,
}

/// What was seen of a process.
#[derive(Clone, Debug, Default)]
pub(super) struct Seen {
    pub(super) asked: bool,
    ended: bool,
    /// Status of the `done`.
    done: Option<String>,
    /// Codes.
    errors: Vec<String>,
    snapshots: usize,
    pub(super) exit: Option<ExitCode>,
    signal: Option<Signal>,
    failed: Option<ErrorClass>,
    refused: bool,
    reader_gone: bool,
    /// A call to the provider is open.
    in_call: bool,
    /// How the last call ended.
    cut_off: bool,
    /// A value has begun, and its line has not ended.
    begun: bool,
}

#[derive(Clone)]
pub(super) struct Shot<M> {
    pub(super) machine: M,
    keep: Retention,
    extracts: bool,
    pub(super) live: Option<TaskId>,
    steps: u64,
    pub(super) seen: Seen,
}

fn rules(keep: Retention, extraction: Option<ResponseType>) -> Rules {
    let schema = Schema::compile(&json!({ "required": ["a"] })).expect("a schema");
    let wanted = |response| Extraction {
        response,
        schema: Some(schema.clone()),
        report: ExtractionReport::Messages,
        response_schema: None,
        repairs: 0,
    };
    Rules {
        mode: SessionMode::OneShot,
        retention: keep,
        extraction: extraction.map(wanted),
        ..Rules::default()
    }
}

impl<M: Machine> Play for Shot<M> {
    type Symbol = Symbol;

    fn play(&mut self, symbol: Symbol) -> Result<()> {
        Self::play(self, symbol)
    }

    fn settle(&mut self) -> Result<()> {
        self.play(Symbol::InputEnded)?;
        if self.live.is_some() {
            self.play(Symbol::Finished)?;
        }
        ensure!(self.seen.exit.is_some(), "no exit: {:?}", self.seen);
        Ok(())
    }

    fn state(&self) -> String {
        format!("{:?}", self.machine)
    }
}

impl<M: Machine> Shot<M> {
    pub(super) fn new(
        keep: Retention,
        extraction: Option<ResponseType>,
        wrap: impl FnOnce(Session) -> M,
    ) -> Self {
        let session = Session::new(rules(keep, extraction), 1);
        Self {
            machine: wrap(session),
            keep,
            extracts: extraction.is_some(),
            live: None,
            steps: 0,
            seen: Seen::default(),
        }
    }

    pub(super) fn play(&mut self, symbol: Symbol) -> Result<()> {
        self.steps += 1;
        self.expect(symbol);
        let input = self.input(symbol);
        if let Input::Task(run, TaskEvent::CallEnded(_)) = input
            && self.live == Some(run)
        {
            self.live = None;
        }
        let was_over = self.seen.exit.is_some();
        for output in self.machine.handle(Uptime(self.steps), input) {
            self.output(symbol, was_over, output).with_context(|| format!("{symbol:?}"))?;
        }
        if self.seen.exit.is_some() && !was_over {
            self.check_end().with_context(|| format!("{symbol:?}, {:?}", self.seen))?;
        }
        Ok(())
    }

    /// Notes what the process is to end with.
    fn expect(&mut self, symbol: Symbol) {
        let is_live = self.live.is_some();
        let seen = &mut self.seen;
        if seen.exit.is_some() {
            return;
        }
        match symbol {
            Symbol::Submit => seen.asked = true,
            Symbol::Completed | Symbol::CutOff if is_live && seen.in_call => {
                (seen.in_call, seen.cut_off) = (false, symbol == Symbol::CutOff);
            }
            // Whatever is said is said in a call, which is not cut off by now.
            Symbol::Fitting | Symbol::Other | Symbol::Begun if is_live => {
                (seen.in_call, seen.cut_off) = (true, false);
                seen.begun = symbol == Symbol::Begun;
            }
            // The answer is what the model writes last: another call begins it again.
            Symbol::CallStarted if is_live => {
                (seen.in_call, seen.cut_off, seen.begun) = (true, false, false);
            }
            Symbol::NotReady if is_live => seen.failed = Some(ErrorClass::Config),
            Symbol::Failed(class) if is_live => seen.failed = Some(class),
            Symbol::Signal(signal) => seen.signal = Some(signal),
            Symbol::ReaderGone => seen.reader_gone = true,
            Symbol::Refused => seen.refused = true,
            Symbol::InputEnded
            | Symbol::CallStarted
            | Symbol::Fitting
            | Symbol::Other
            | Symbol::Begun
            | Symbol::Usage
            | Symbol::Completed
            | Symbol::CutOff
            | Symbol::Finished
            | Symbol::NotReady
            | Symbol::Failed(_)
            | Symbol::StaleText
            | Symbol::StaleEnd => {}
        }
    }

    fn output(&mut self, symbol: Symbol, was_over: bool, output: Output) -> Result<()> {
        if was_over {
            let is_signal = matches!(symbol, Symbol::Signal(_));
            ensure!(is_signal && matches!(output, Output::Abort(_)), "after the exit: {output:?}");
            return Ok(());
        }
        ensure!(self.seen.exit.is_none(), "after the exit: {output:?}");
        match output {
            Output::Frame(frame) => self.frame(&frame),
            Output::StartCall(run, _) => {
                ensure!(self.live.replace(run).is_none(), "two runs");
                Ok(())
            }
            Output::CancelTask(run) => {
                ensure!(self.live.take() == Some(run), "cancels a run that is not live");
                Ok(())
            }
            Output::Persist(_)
            | Output::StartTool(..)
            | Output::ReadFiles(..)
            | Output::Warning(_) => {
                anyhow::bail!("no tools, no files: {output:?}")
            }
            Output::Exit(code) => {
                self.seen.exit = Some(code);
                Ok(())
            }
            Output::Abort(_) => anyhow::bail!("abort without a second signal"),
        }
    }

    fn frame(&mut self, frame: &Frame) -> Result<()> {
        let seen = &mut self.seen;
        ensure!(seen.done.is_none(), "after the done: {frame:?}");
        match &frame.frame {
            Some(Body::Done(done)) => seen.done = Some(done.status.clone()),
            Some(Body::Error(error)) => {
                ensure!(error.terminal, "not terminal: {frame:?}");
                seen.errors.push(error.code.clone());
            }
            Some(Body::Snapshot(_)) => {
                ensure!(seen.ended && seen.errors.is_empty(), "too early or late: {frame:?}");
                seen.snapshots += 1;
            }
            Some(Body::UiEvent(event)) => {
                ensure!(!seen.ended, "after the end of the run: {frame:?}");
                let ends = ["ChatRunFinished", "ChatRunStopped", "ChatRunFailed"];
                seen.ended = ends.contains(&event.name.as_str());
            }
            Some(Body::Hello(_) | Body::BackendEvent(_)) | None => {
                anyhow::bail!("not expected: {frame:?}")
            }
        }
        Ok(())
    }

    /// What the end must be, from what happened alone.
    fn check_end(&self) -> Result<()> {
        let seen = &self.seen;
        ensure!(self.live.is_none(), "exit with a live run");
        ensure!(seen.ended == seen.asked, "a run that has no end");
        let kept = usize::from(seen.asked && self.keep == Retention::Everything);
        ensure!(seen.snapshots == kept, "{} snapshots", seen.snapshots);
        let (errors, done) = (seen.errors.as_slice(), seen.done.as_deref());
        let is_invalid = errors == [Code::InvalidAnswer.as_str()];
        let exit = match seen.failed {
            _ if is_invalid => {
                ensure!(self.extracts && seen.failed.is_none(), "nothing was asked for");
                ensure!(done == Some("failed"), "done {done:?}");
                return check(seen.exit == Some(ExitCode::RunFailed));
            }
            Some(class) => (failure(class), 1, Some("failed")),
            None if seen.signal.is_some() => {
                let signal = seen.signal.context("a signal")?;
                (ExitCode::Interrupted(signal), 1, Some("stopped"))
            }
            None if seen.reader_gone && !seen.asked => (ExitCode::Ok, 0, None),
            None if seen.reader_gone => (verdict(seen), 0, Some("stopped")),
            None if seen.refused && !seen.asked => (ExitCode::Usage, 1, Some("failed")),
            None if seen.asked && self.extracts && seen.begun => (ExitCode::CutOff, 0, Some("ok")),
            None if seen.asked => (verdict(seen), 0, Some("ok")),
            None => (ExitCode::Ok, 0, None),
        };
        ensure!((errors.len(), done) == (exit.1, exit.2), "expected {exit:?}");
        check(seen.exit == Some(exit.0)).with_context(|| format!("expected {exit:?}"))
    }

    fn input(&self, symbol: Symbol) -> Input {
        let stale = TaskId(u64::MAX);
        let live = self.live.unwrap_or(stale);
        let says = |event| Input::Task(live, TaskEvent::Engine(event));
        let ends = |task, end| Input::Task(task, TaskEvent::CallEnded(end));
        let text = |text: &str| EngineEvent::Text(text.to_owned());
        let call_end = |class| {
            let (stop_reason, provider_data) = (String::new(), None);
            says(EngineEvent::CallFinished { stop_reason, class, provider_data })
        };
        match symbol {
            Symbol::Submit => submit(self.steps),
            Symbol::InputEnded => Input::InputEnded,
            Symbol::CallStarted => says(EngineEvent::CallStarted),
            Symbol::Fitting => says(text("{\"a\":1}\n")),
            Symbol::Other => says(text("no JSON\n")),
            Symbol::Begun => says(text("{\"a\":")),
            Symbol::Usage => says(EngineEvent::Usage(Usage::default())),
            Symbol::Completed => call_end(FinishClass::Completed),
            Symbol::CutOff => call_end(FinishClass::MaxTokens),
            Symbol::Finished => ends(live, CallEnd::Finished),
            Symbol::NotReady => ends(live, failed(Stage::Init, ErrorClass::Config)),
            Symbol::Failed(class) => ends(live, failed(Stage::Run, class)),
            Symbol::StaleText => Input::Task(stale, TaskEvent::Engine(text("from the past"))),
            Symbol::StaleEnd => ends(stale, CallEnd::Finished),
            Symbol::Signal(signal) => Input::Interrupted(signal),
            Symbol::ReaderGone => Input::ReaderGone,
            Symbol::Refused => Input::Refused(ClientError {
                code: Code::EngineInitFailed,
                message: "there is nothing to ask".to_owned(),
                detail: String::new(),
                terminal: false,
            }),
        }
    }
}

fn check(is_so: bool) -> Result<()> {
    ensure!(is_so, "another exit");
    Ok(())
}

/// The status of a run that failed so, with an error that names no status of a provider.
pub(super) fn failure(class: ErrorClass) -> ExitCode {
    match class {
        ErrorClass::RateLimited | ErrorClass::Timeout | ErrorClass::Network => ExitCode::TryLater,
        ErrorClass::Auth
        | ErrorClass::ContextOverflow
        | ErrorClass::Provider
        | ErrorClass::MalformedStream
        | ErrorClass::Tool
        | ErrorClass::Config
        | ErrorClass::Aborted
        | ErrorClass::Internal => ExitCode::RunFailed,
    }
}

fn verdict(seen: &Seen) -> ExitCode {
    if seen.cut_off { ExitCode::CutOff } else { ExitCode::Ok }
}

fn submit(step: u64) -> Input {
    let id = RequestId::new(&format!("r{step}")).expect("a name");
    let prompt = Prompt::new("hello".to_owned()).expect("a prompt");
    Input::Request(Request { session: None, id, command: Command::Submit(Submit::new(prompt)) })
}

fn failed(stage: Stage, class: ErrorClass) -> CallEnd {
    let (message, detail) = ("it broke".to_owned(), String::new());
    CallEnd::Failed(RunError { stage, class, message, detail })
}
