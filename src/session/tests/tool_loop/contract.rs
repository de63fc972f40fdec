//! What must be true of tools, approvals, steering and cancels, checked step by step from what goes
//! into a session and what comes out of it.

mod events;

use super::transcript;
use crate::protocol::command::{Cancel, Command, Decision};
use crate::protocol::id::TaskId;
use crate::protocol::proto::rpc::rpc_line::Frame as Body;
use crate::protocol::wire::{Frame, Request};
use crate::session::tests::ledger::Ledger;
use crate::session::tests::story::Story;
use crate::session::{Input, Output, Rules, Session, TaskEvent, ToolRules, Uptime};
use crate::task::server::ServerCall;
use anyhow::{Context, Result, ensure};
use std::collections::{BTreeSet, HashMap, HashSet};

#[derive(Clone, Debug)]
pub(super) struct Contract {
    pub(super) ledger: Ledger,
    story: Story,
    rules: ToolRules,
    /// Calls of the live run.
    pub(super) calls: Vec<Call>,
    /// Ids of all calls.
    ids: HashSet<String>,
    /// Texts of all results, by the ids of their calls.
    results: HashMap<String, String>,
    /// A server's tool that was started, and whose event is still to come.
    starting: Option<(TaskId, ServerCall)>,
    /// The call whose tool has returned in this step.
    returned: Option<String>,
    /// Definitions that were allowed for the session.
    allowed: HashSet<u64>,
    /// Submits without `done`, in their order.
    pub(super) submits: Vec<Submit>,
    /// When the first provider call of the run is due, if it waits for servers.
    prepared_by: Option<Uptime>,
    /// When the first provider call of the first run that has waited is due, which holds for all.
    start_by: Option<Uptime>,
    /// What a tool is may have changed.
    have_servers_changed: bool,
    has_input_ended: bool,
}

/// A tool call as a client sees it.
#[derive(Clone, Debug)]
pub(super) struct Call {
    pub(super) id: String,
    name: String,
    is_requested: bool,
    approval: Approval,
    /// What the client decided, once it has.
    decision: Option<Approval>,
    pub(super) task: Option<TaskId>,
    has_started: bool,
    pub(super) waits_for_client: bool,
    deadline: Option<Uptime>,
    result: Option<String>,
    is_finished: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Approval {
    None,
    Open,
    Once,
    Session,
    Denied,
}

#[derive(Clone, Debug)]
pub(super) struct Submit {
    pub(super) id: String,
    prompt: String,
    joins: Option<String>,
    has_run: bool,
    /// Times it was taken into another run.
    joined: u32,
    accepted: u32,
    errors: u32,
}

impl Call {
    pub(super) fn is_asked(&self) -> bool {
        self.approval == Approval::Open
    }

    fn is_open(&self) -> bool {
        self.is_requested && self.result.is_none()
    }
}

impl Contract {
    pub(super) fn new(rules: &Rules, session: &Session) -> Self {
        Self {
            ledger: Ledger::new(rules, session),
            story: Story::new(rules, session),
            rules: rules.tools.clone(),
            calls: Vec::new(),
            ids: HashSet::new(),
            results: HashMap::new(),
            starting: None,
            returned: None,
            allowed: HashSet::new(),
            submits: Vec::new(),
            prepared_by: None,
            start_by: None,
            have_servers_changed: false,
            has_input_ended: false,
        }
    }

    /// Checks one step. `deadline` is the session's after it.
    pub(super) fn watch(
        &mut self,
        now: Uptime,
        input: &Input,
        outputs: &[Output],
        deadline: Option<Uptime>,
    ) -> Result<()> {
        let was_closed = self.ledger.is_closed();
        let is_live = self.ledger.is_of_live_task(input);
        let had_run = self.ledger.run().map(str::to_owned);
        self.ledger.watch(input, outputs)?;
        if was_closed {
            return Ok(());
        }
        self.story.watch(input, is_live, outputs)?;
        self.answers(input, had_run.as_deref(), outputs)?;
        self.take_in(input, is_live);
        for output in outputs {
            self.output(now, output).with_context(|| format!("{output:?}"))?;
        }
        self.check_result(input, is_live)?;
        self.check_rest(now, input, deadline)?;
        self.start_by = self.start_by.or(self.prepared_by);
        Ok(())
    }

    /// What is answered to requests about calls and to cancels.
    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "only requests about calls, switches and cancels"
    )]
    fn answers(&self, input: &Input, run: Option<&str>, outputs: &[Output]) -> Result<()> {
        let Input::Request(Request { id, command, .. }) = input else { return Ok(()) };
        let call = |id: &str| self.calls.iter().find(|call| call.id == id && call.is_open());
        let is_right = match command {
            Command::ToolResult(answer) => {
                call(&answer.call.0).is_some_and(|call| call.waits_for_client)
            }
            Command::Approve(approve) => call(&approve.call.0).is_some_and(Call::is_asked),
            Command::SwitchModel(_) => {
                let words = words(outputs, id.as_str());
                let expected: &[&str] =
                    if run.is_some() { &["session_busy", "failed"] } else { &["ok"] };
                ensure!(words == expected, "a switch is answered with {words:?}");
                return Ok(());
            }
            Command::Cancel(cancel) => return self.cancelled(cancel, id.as_str(), run, outputs),
            _ => return Ok(()),
        };
        let words = words(outputs, id.as_str());
        if is_right {
            ensure!(words == ["ok"], "{words:?} to a right answer");
        } else {
            ensure!(words == ["unknown_tool_call", "failed"], "{words:?} to a wrong answer");
            // Any first request names the session, which is when its servers are shown.
            let of_servers = |output: &&Output| name(output) == Some("ToolServerChanged");
            let others = outputs.iter().filter(|output| !of_servers(output)).count();
            ensure!(others == 2, "a wrong answer did something");
        }
        Ok(())
    }

    fn cancelled(
        &self,
        cancel: &Cancel,
        id: &str,
        run: Option<&str>,
        outputs: &[Output],
    ) -> Result<()> {
        let target = cancel.target.as_ref().map(|target| target.as_str());
        let waits = |id: &str| {
            self.submits.iter().any(|submit| submit.id == id && !submit.has_run && run != Some(id))
        };
        let stops = match target {
            Some(target) => run == Some(target),
            None => run.is_some() && !cancel.waiting,
        };
        let is_right = stops || target.is_some_and(waits) || (target.is_none() && cancel.waiting);
        let expected: &[&str] = if is_right { &["ok"] } else { &["no_active_request", "ok"] };
        let words = words(outputs, id);
        ensure!(words == expected, "a cancel is answered with {words:?}");
        let is_stopped = outputs.iter().any(|output| name(output) == Some("ChatRunStopped"));
        ensure!(is_stopped == stops, "a cancel of {target:?} stops {run:?}: {is_stopped}");
        let gone = self.submits.iter().filter(|submit| {
            let is_meant = cancel.waiting || target == Some(submit.id.as_str());
            is_meant && waits(&submit.id)
        });
        for submit in gone {
            let words = self::words(outputs, &submit.id);
            ensure!(words == ["stopped"], "a withdrawn submit is answered with {words:?}");
        }
        Ok(())
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "the other inputs change no call")]
    fn take_in(&mut self, input: &Input, is_live: bool) {
        match input {
            Input::Request(Request { id, command: Command::Submit(submit), .. }) => {
                self.submits.push(Submit {
                    id: id.as_str().to_owned(),
                    prompt: submit.prompt.clone().into_string(),
                    joins: submit.joins.as_ref().map(|id| id.as_str().to_owned()),
                    has_run: false,
                    joined: 0,
                    accepted: 0,
                    errors: 0,
                });
            }
            Input::InputEnded | Input::InputFailed { .. } => self.has_input_ended = true,
            Input::ServerChanged(_) => self.have_servers_changed = true,
            Input::Task(task, TaskEvent::ToolEnded(_)) if is_live => {
                for call in self.calls.iter_mut().filter(|call| call.task == Some(*task)) {
                    call.task = None;
                    self.returned = Some(call.id.clone());
                }
            }
            Input::Request(Request { command: Command::Approve(approve), .. }) => {
                // What was decided is what the event must say.
                let decision = match &approve.decision {
                    Decision::AllowOnce => Approval::Once,
                    Decision::AllowSession => Approval::Session,
                    Decision::Deny { .. } => Approval::Denied,
                };
                let asked = |call: &&Call| call.id == approve.call.0 && call.is_asked();
                let name = self.calls.iter().find(asked).map(|call| call.name.clone());
                for call in self.calls.iter_mut().filter(|call| call.is_asked()) {
                    let is_allowed_too =
                        decision == Approval::Session && name.as_ref() == Some(&call.name);
                    if call.id == approve.call.0 || is_allowed_too {
                        call.decision = Some(decision);
                    }
                }
            }
            _ => {}
        }
    }

    fn output(&mut self, now: Uptime, output: &Output) -> Result<()> {
        match output {
            Output::Frame(frame) => self.frame(now, frame),
            Output::StartTool(task, call) => {
                ensure!(self.starting.is_none(), "a tool is started in the start of another");
                self.starting = Some((*task, call.clone()));
                Ok(())
            }
            Output::StartCall(_, spec) => {
                let is_first = self.prepared_by.take().is_some();
                let messages = spec.transcript.messages();
                transcript::check(&messages, &self.results)?;
                let text = format!("{messages:?}");
                for call in self.calls.iter().filter(|call| call.is_requested) {
                    let is_there = text.contains(&format!("ToolCallId({:?})", call.id));
                    ensure!(is_there, "{} is not in {text}", call.id);
                }
                let run = self.ledger_run();
                let late =
                    self.submits.iter().find(|submit| submit.joins == run && !submit.has_run);
                ensure!(late.is_none() || is_first, "not taken in: {late:?}");
                Ok(())
            }
            Output::CancelTask(task) => {
                for call in self.calls.iter_mut().filter(|call| call.task == Some(*task)) {
                    call.task = None;
                }
                Ok(())
            }
            Output::Persist(_)
            | Output::ReadFiles(..)
            | Output::Warning(_)
            | Output::Exit(_)
            | Output::Abort(_) => Ok(()),
        }
    }

    /// The request whose run is shown now.
    fn ledger_run(&self) -> Option<String> {
        self.submits.iter().find(|submit| submit.has_run).map(|submit| submit.id.clone())
    }

    /// What a tool returned is the result of its call.
    fn check_result(&mut self, input: &Input, is_live: bool) -> Result<()> {
        ensure!(self.starting.is_none(), "no event of the start of {:?}", self.starting);
        let Input::Task(_, TaskEvent::ToolEnded(result)) = input else { return Ok(()) };
        let shown = self.results.iter().find(|(_, text)| *text == result.text());
        let shown = shown.map(|(id, _)| id);
        let returned = self.returned.take().filter(|_| is_live);
        ensure!(shown == returned.as_ref(), "{result:?} is the result of {shown:?}");
        Ok(())
    }

    /// What is true after every step.
    fn check_rest(&self, now: Uptime, input: &Input, deadline: Option<Uptime>) -> Result<()> {
        let tasks: BTreeSet<_> = self.calls.iter().filter_map(|call| call.task).collect();
        ensure!(tasks == *self.ledger.tools(), "tools run for no call");
        if self.ledger.run().is_none() {
            ensure!(deadline.is_none(), "a deadline without a run");
            return Ok(());
        }
        let is_called = self.ledger.call().is_some();
        let waits = self.calls.iter().filter_map(|call| call.deadline).min();
        let expected = match is_called {
            true => None,
            false => waits.or(self.prepared_by),
        };
        ensure!(deadline == expected, "the deadline is {deadline:?}, not {expected:?}");
        ensure!(is_called || deadline.is_some(), "nothing moves the run");
        if let Input::DeadlineReached = input {
            ensure!(deadline.is_none_or(|at| at > now), "{deadline:?} is over");
        }
        if self.has_input_ended {
            let waits = |call: &&Call| call.is_asked() || call.waits_for_client;
            let waiting = self.calls.iter().find(waits);
            ensure!(waiting.is_none(), "nobody answers {waiting:?}");
        }
        Ok(())
    }

    fn call(&mut self, id: &str) -> Result<&mut Call> {
        let call = self.calls.iter_mut().find(|call| call.id == id);
        call.with_context(|| format!("the call {id} is not of this run"))
    }

    fn submit(&mut self, id: &str) -> Result<&mut Submit> {
        let submit = self.submits.iter_mut().find(|submit| submit.id == id);
        submit.with_context(|| format!("a prompt of {id}, which nobody sent"))
    }
}

/// The code of the error and the status of the `done` that `id` is answered with.
fn words<'a>(outputs: &'a [Output], id: &str) -> Vec<&'a str> {
    let frames = outputs.iter().filter_map(|output| {
        let Output::Frame(frame) = output else { return None };
        (frame.request_id == id).then_some(frame)
    });
    let word = |frame: &'a Frame| match frame.frame.as_ref()? {
        Body::Error(error) => Some(error.code.as_str()),
        Body::Done(done) => Some(done.status.as_str()),
        Body::Hello(_) | Body::Snapshot(_) | Body::UiEvent(_) | Body::BackendEvent(_) => None,
    };
    frames.filter_map(word).collect()
}

/// The name of the event that the output shows.
pub(super) fn name(output: &Output) -> Option<&str> {
    let Output::Frame(frame) = output else { return None };
    let Some(Body::UiEvent(event)) = &frame.frame else { return None };
    Some(&event.name)
}
