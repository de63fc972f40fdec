//! What extensions report of provider calls and of the model, held against what engines and clients
//! have said: retries, cut-off answers, token counts, repairs, and which model is called.

use crate::conversation::event::Usage;
use crate::protocol::any::Any;
use crate::protocol::command::{Command, Extension, ModelChoice};
use crate::protocol::proto::session::TokenCounts;
use crate::protocol::wire::Request;
use crate::session::{Input, Rules};
use crate::task::call::CallSpec;
use crate::task::report::{CallEnd, EngineEvent, RunError, Stage};
use anyhow::{Context, Result, ensure};

#[derive(Clone, Debug)]
pub(super) struct Reports {
    has_retries: bool,
    has_usage: bool,
    repairs_max: u32,
    /// Submits that have a choice or a schema, by their requests.
    submits: Vec<(String, Option<ModelChoice>, bool)>,
    /// The model that submits without a choice get.
    model: Option<String>,
    /// The switch of this step, if there is one.
    switch: Option<ModelChoice>,
    call: Option<Counts>,
    /// The last attempt of the call, whether it is still scheduled, and whether a part of the answer came.
    attempts: (u32, bool, bool),
    /// A part of an answer came in this step.
    is_answer: bool,
    /// A retry that is to be shown in this step.
    retry: Option<u32>,
}

/// Calls with counts, calls without, tokens of requests and of answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counts(u64, u64, u64, u64);

impl Counts {
    fn of(usage: &Usage) -> Self {
        let count = |tokens: i32| u64::try_from(tokens).expect("a count");
        Self(1, 0, count(usage.input_tokens), count(usage.output_tokens))
    }

    fn shown(counts: Option<&TokenCounts>) -> Result<Self> {
        let it = counts.context("no counts")?;
        let (calls, uncounted) = (it.provider_calls.into(), it.uncounted_calls.into());
        Ok(Self(calls, uncounted, it.input_tokens, it.output_tokens))
    }
}

impl Reports {
    pub(super) fn new(rules: &Rules) -> Self {
        Self {
            has_retries: rules.extensions.contains(&Extension::Retries),
            has_usage: rules.extensions.contains(&Extension::Usage),
            repairs_max: rules.repairs,
            submits: Vec::new(),
            model: None,
            switch: None,
            call: None,
            attempts: (1, false, false),
            is_answer: false,
            retry: None,
        }
    }

    /// What comes in, before what comes out.
    #[expect(clippy::wildcard_enum_match_arm, reason = "the other inputs choose nothing")]
    pub(super) fn take_in(&mut self, input: &Input) {
        (self.switch, self.is_answer) = (None, false);
        let Input::Request(Request { id, command, .. }) = input else { return };
        match command {
            Command::Submit(submit) if submit.choice.is_some() || submit.schema.is_some() => {
                let id = id.as_str().to_owned();
                self.submits.push((id, submit.choice.as_deref().cloned(), submit.schema.is_some()));
            }
            Command::SwitchModel(choice) => self.switch = Some(choice.clone()),
            _ => {}
        }
    }

    /// What the engine of the live call reports.
    #[expect(clippy::wildcard_enum_match_arm, reason = "the other events are the story's")]
    pub(super) fn engine_said(&mut self, event: &EngineEvent) {
        match event {
            EngineEvent::Usage(usage) => {
                if let Some(call) = &mut self.call {
                    *call = Counts::of(usage);
                }
            }
            EngineEvent::RetryScheduled(retry) => {
                let can_follow = self.attempts == (retry.attempt - 1, false, false);
                if self.call.is_some() && can_follow {
                    self.attempts = (retry.attempt, true, false);
                    self.retry = self.has_retries.then_some(retry.attempt);
                }
            }
            EngineEvent::RetryStarted(_) => self.retry_starts(),
            EngineEvent::Text(text) | EngineEvent::Reasoning { text, .. } if text.is_empty() => {}
            EngineEvent::Text(_)
            | EngineEvent::Reasoning { .. }
            | EngineEvent::ToolCallStarted(_) => {
                // What was scheduled has been started then, even if the engine didn't say so.
                self.retry_starts();
                (self.is_answer, self.attempts.2) = (true, true);
            }
            _ => {}
        }
    }

    fn retry_starts(&mut self) {
        if self.call.is_some() && std::mem::take(&mut self.attempts.1) {
            self.retry = self.has_retries.then_some(self.attempts.0);
        }
    }

    /// The live call has ended by itself: one that was refused has used nothing.
    pub(super) fn call_ended(&mut self, end: &CallEnd) {
        let CallEnd::Failed(RunError { stage: Stage::Init | Stage::Refused, .. }) = end else {
            return;
        };
        if let Some(call) = self.call.as_mut().filter(|call| **call == Counts(0, 1, 0, 0)) {
            *call = Counts(1, 0, 0, 0);
        }
    }

    /// Checks the events of extensions against the inputs.
    #[expect(clippy::wildcard_enum_match_arm, reason = "the other events are the story's")]
    pub(super) fn event(&mut self, request: &str, payload: &Any) -> Result<()> {
        match payload {
            Any::AnswerTruncated(_) => {
                ensure!(self.has_retries, "the extension is off");
                Ok(())
            }
            Any::UsageTotals(m) => self.counted(Counts::shown(m.call.as_ref())?),
            Any::RetryScheduled(m) => self.retried(m.attempt),
            Any::RetryStarted(m) => self.retried(m.attempt),
            Any::AnswerRejected(m) => {
                ensure!(self.has_schema(request), "an answer without a schema is rejected");
                ensure!(m.repairs_max == self.repairs_max, "{} repairs", m.repairs_max);
                Ok(())
            }
            Any::ObjectExtracted(_) | Any::LineRejected(_) | Any::ExtractionFinished(_) => {
                ensure!(self.has_schema(request), "found in an answer without a schema");
                Ok(())
            }
            Any::ChatProviderCallStarted(_) => {
                self.call = Some(Counts(0, 1, 0, 0));
                self.attempts = (1, false, self.is_answer);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// The model answers differently from now on.
    pub(super) fn switched(&mut self, has_run: bool) -> Result<()> {
        let choice = self.switch.take().context("a switch that nobody asked for")?;
        ensure!(!has_run, "the model is switched in a run");
        self.model = Some(choice.model);
        Ok(())
    }

    /// A provider call of the run of `request` is asked for.
    pub(super) fn call_asked(&mut self, request: &str, spec: &CallSpec) -> Result<()> {
        let chosen = self.submit(request).and_then(|(_, choice, _)| choice.as_ref());
        let model = chosen.map(|choice| choice.model.clone()).or_else(|| self.model.clone());
        ensure!(spec.model == model, "{:?} is called, not {model:?}", spec.model);
        let has_schema = self.has_schema(request);
        ensure!(spec.schema.is_some() == has_schema, "the schema is {:?}", spec.schema);
        Ok(())
    }

    /// Checks the end of a step.
    pub(super) fn check_rest(&self) -> Result<()> {
        ensure!(self.retry.is_none(), "a retry that is not shown: {:?}", self.retry);
        Ok(())
    }

    fn retried(&mut self, attempt: u32) -> Result<()> {
        ensure!(self.retry.take() == Some(attempt), "attempt {attempt}, which nobody reported");
        Ok(())
    }

    /// The counts of a call are those that its engine has reported.
    fn counted(&mut self, call: Counts) -> Result<()> {
        ensure!(self.has_usage, "the extension is off");
        let expected = self.call.take().context("token counts of no call")?;
        ensure!(call == expected, "{call:?}, not {expected:?}");
        Ok(())
    }

    fn submit(&self, request: &str) -> Option<&(String, Option<ModelChoice>, bool)> {
        self.submits.iter().find(|(id, ..)| id == request)
    }

    fn has_schema(&self, request: &str) -> bool {
        self.submit(request).is_some_and(|(.., has_schema)| *has_schema)
    }
}
