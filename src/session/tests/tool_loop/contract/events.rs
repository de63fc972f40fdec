//! What a client is shown of a run with tools, frame by frame.

use super::{Approval, Call, Contract, Submit};
use crate::protocol::any::Any;
use crate::protocol::proto::chat::{ChatToolCallStarted, ChatToolResultReady};
use crate::protocol::proto::frontendtools::FrontendToolCallRequested;
use crate::protocol::proto::rpc::rpc_line::Frame as Body;
use crate::protocol::proto::session::SteeringAccepted;
use crate::protocol::proto::tools::{ApprovalDecision, ToolApprovalRequested};
use crate::protocol::wire::Frame;
use crate::session::Uptime;
use crate::session::approval::Ruling;
use anyhow::{Context, Result, ensure};

impl Contract {
    pub(super) fn frame(&mut self, now: Uptime, frame: &Frame) -> Result<()> {
        let id = &frame.request_id;
        match &frame.frame {
            Some(Body::UiEvent(event)) => {
                let payload = event.payload.clone().context("no payload")?;
                self.event(now, id, payload.into_whole())
            }
            Some(Body::Error(_)) => {
                if let Some(submit) = self.submits.iter_mut().find(|submit| submit.id == *id) {
                    submit.errors += 1;
                }
                Ok(())
            }
            Some(Body::Done(done)) => self.done(id, &done.status),
            Some(Body::Hello(_) | Body::Snapshot(_) | Body::BackendEvent(_)) | None => Ok(()),
        }
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "only the events of tools matter here")]
    fn event(&mut self, now: Uptime, id: &str, event: Any) -> Result<()> {
        match event {
            Any::ChatUserMessageAccepted(m) => self.accepted(id, &m.text),
            Any::ChatRunStarted(_) => {
                let deadline = Uptime(now.0 + self.rules.start_ms);
                self.prepared_by = Some(self.start_by.unwrap_or(deadline));
                Ok(())
            }
            Any::SteeringAccepted(m) => self.steered(id, &m),
            Any::ChatToolCallStarted(m) => self.call_started(&m),
            Any::ChatToolCallRequested(m) => {
                self.call(&m.tool_call_id)?.is_requested = true;
                Ok(())
            }
            Any::ToolApprovalRequested(m) => self.approval_requested(now, &m),
            Any::ToolApprovalResolved(m) => self.resolved(&m.tool_call_id, m.decision()),
            Any::ChatToolExecutionStarted(m) => self.started(now, &m.tool_call_id),
            Any::FrontendToolCallRequested(m) => self.client_asked(now, &m),
            Any::ChatToolResultReady(m) => self.returned(&m),
            Any::ChatToolCallFinished(m) => {
                let call = self.call(&m.tool_call_id)?;
                ensure!(!call.is_open() && !call.is_finished, "the end of {call:?}");
                call.is_finished = true;
                Ok(())
            }
            Any::ChatRunFinished(_) => {
                let steered = |submit: &&Submit| submit.joins.as_deref() == Some(id);
                let late = self.submits.iter().filter(steered).find(|submit| !submit.has_run);
                ensure!(late.is_none(), "the run ends without {late:?}");
                self.run_ended()
            }
            Any::ChatRunStopped(_) | Any::ChatRunFailed(_) => self.run_ended(),
            _ => Ok(()),
        }
    }

    fn steered(&mut self, id: &str, accepted: &SteeringAccepted) -> Result<()> {
        let submit = self.submit(id)?;
        ensure!(submit.joins.as_ref() == Some(&accepted.target_request_id), "another run");
        ensure!(submit.accepted == 0, "taken in twice");
        submit.accepted += 1;
        Ok(())
    }

    fn call_started(&mut self, started: &ChatToolCallStarted) -> Result<()> {
        ensure!(self.ids.insert(started.tool_call_id.clone()), "the id of an earlier call");
        self.calls.push(Call {
            id: started.tool_call_id.clone(),
            name: started.tool_name.clone(),
            is_requested: false,
            approval: Approval::None,
            decision: None,
            task: None,
            has_started: false,
            waits_for_client: false,
            deadline: None,
            result: None,
            is_finished: false,
        });
        Ok(())
    }

    fn approval_requested(&mut self, now: Uptime, asked: &ToolApprovalRequested) -> Result<()> {
        let deadline = Uptime(now.0 + self.rules.ask_ms);
        let ruling = self.rules.approval.ruling(&asked.tool_name);
        ensure!(ruling == Ruling::Ask, "asks for {}: {ruling:?}", asked.tool_name);
        let call = self.call(&asked.tool_call_id)?;
        ensure!(call.is_open() && call.approval == Approval::None, "asks for {call:?}");
        (call.approval, call.deadline) = (Approval::Open, Some(deadline));
        Ok(())
    }

    fn client_asked(&mut self, now: Uptime, asked: &FrontendToolCallRequested) -> Result<()> {
        let is_human = asked.tool_name.starts_with("human");
        let wait_ms = if is_human { self.rules.ask_ms } else { self.rules.call_ms };
        let call = self.call(&asked.tool_call_id)?;
        ensure!(call.has_started && call.task.is_none(), "the client runs {call:?}");
        ensure!(!call.waits_for_client, "the client is asked twice: {call:?}");
        call.waits_for_client = true;
        call.deadline = Some(Uptime(now.0 + wait_ms));
        Ok(())
    }

    fn returned(&mut self, returned: &ChatToolResultReady) -> Result<()> {
        let call = self.call(&returned.tool_call_id)?;
        ensure!(call.is_open() && !call.is_asked(), "a result of {call:?}");
        ensure!(call.task.is_none(), "a result while the tool runs: {call:?}");
        call.result = Some(returned.result.clone());
        (call.waits_for_client, call.deadline) = (false, None);
        self.results.insert(returned.tool_call_id.clone(), returned.result.clone());
        Ok(())
    }

    fn accepted(&mut self, id: &str, text: &str) -> Result<()> {
        if !self.submit(id)?.has_run {
            let submit = self.submit(id)?;
            ensure!(submit.prompt == text && submit.accepted == 0, "not the prompt of {submit:?}");
            submit.has_run = true;
            return Ok(());
        }
        let of_run = |submit: &&mut Submit| submit.prompt == text && !submit.has_run;
        let submit = self.submits.iter_mut().find(of_run);
        let submit = submit.with_context(|| format!("{text:?} joins, which nobody sent"))?;
        ensure!(submit.joins.as_deref() == Some(id), "joins another run: {submit:?}");
        ensure!(submit.joined == 0, "joins twice: {submit:?}");
        submit.joined += 1;
        Ok(())
    }

    fn resolved(&mut self, id: &str, decision: ApprovalDecision) -> Result<()> {
        let may_be_denied = self.have_servers_changed;
        let call = self.call(id)?;
        let expected = match decision {
            ApprovalDecision::AllowOnce => Approval::Once,
            ApprovalDecision::AllowSession => Approval::Session,
            ApprovalDecision::Deny => Approval::Denied,
            ApprovalDecision::Unspecified => Approval::None,
        };
        // Without the client's decision it is denied.
        let is_right = call.decision.unwrap_or(Approval::Denied) == expected
            || expected == Approval::Denied && may_be_denied;
        ensure!(is_right && call.is_asked(), "{decision:?} of {call:?}");
        call.deadline = None;
        call.approval = expected;
        Ok(())
    }

    fn started(&mut self, now: Uptime, id: &str) -> Result<()> {
        let deadline = Uptime(now.0 + self.rules.call_ms);
        let starting = self.starting.take();
        let name = self.call(id)?.name.clone();
        let ruling = self.rules.approval.ruling(&name);
        let definition = starting.as_ref().map(|(_, call)| call.definition);
        let was_allowed = definition.is_some_and(|definition| self.allowed.contains(&definition));
        let call = self.call(id)?;
        ensure!(call.is_open() && !call.has_started, "starts {call:?}");
        call.has_started = true;
        let Some((task, server_call)) = starting else { return Ok(()) };
        ensure!(server_call.tool == call.name, "{} runs for {call:?}", server_call.tool);
        let may_run = match (ruling, call.approval) {
            (Ruling::Deny(_), _) => false,
            (Ruling::Allow, approval) => approval == Approval::None,
            (Ruling::Ask, Approval::Once | Approval::Session) => true,
            (Ruling::Ask, Approval::None) => was_allowed,
            (Ruling::Ask, Approval::Open | Approval::Denied) => false,
        };
        ensure!(may_run, "{call:?} must not run");
        (call.task, call.deadline) = (Some(task), Some(deadline));
        if call.approval == Approval::Session {
            self.allowed.extend(definition);
        }
        Ok(())
    }

    fn run_ended(&mut self) -> Result<()> {
        let open = self.calls.iter().find(|call| !call.is_finished || call.is_asked());
        ensure!(open.is_none(), "the run leaves {open:?}");
        self.calls.clear();
        self.prepared_by = None;
        Ok(())
    }

    fn done(&mut self, id: &str, status: &str) -> Result<()> {
        let Some(at) = self.submits.iter().position(|submit| submit.id == id) else {
            return Ok(());
        };
        let submit = self.submits.remove(at);
        let Submit { has_run, joined, accepted, errors, .. } = submit;
        let is_right = match (status, has_run) {
            ("ok", true) => joined == 0 && errors == 0,
            ("ok", false) => joined == 1 && accepted == 1 && errors == 0,
            ("failed", true) => joined == 0 && errors == 1,
            ("failed", false) => joined == 0 && accepted == 0 && errors == 1,
            ("stopped", _) => joined == 0 && accepted == 0 && errors == 0,
            _ => false,
        };
        ensure!(is_right, "done {status}: {submit:?}");
        Ok(())
    }
}
