//! Applies the frames of the conversation, each once.

use super::{Note, Piece, Run, RunPhase, State, ToolState};
use crate::output::how_far;
use crate::protocol::any::Any;
use crate::protocol::command::ModelChoice;
use crate::protocol::constants::finish;
use crate::protocol::proto::chat::{
    ChatRunFinished, ChatToolCallRequested, ChatUserMessageAccepted,
};
use crate::protocol::proto::provider::{AnswerTruncated, ModelSwitched, RetryScheduled};
use crate::protocol::proto::rpc::rpc_line::Frame as Body;
use crate::protocol::proto::rpc::{HelloFrame, UiEventFrame};
use crate::protocol::proto::session::{Compacted, StoreDegraded, UsageTotals, WaitingFor};
use crate::protocol::wire::Frame;
use crate::tui::text::{clean, tokens};
use std::time::Duration;

impl State {
    /// Applies a frame. An event that was applied before changes nothing.
    pub(super) fn frame(&mut self, frame: Frame) {
        if self.status.session != frame.session_id {
            self.status.session.clone_from(&frame.session_id);
        }
        match frame.frame {
            Some(Body::Hello(hello)) => self.hello(&hello),
            Some(Body::Snapshot(snapshot)) => self.snapshot(snapshot),
            Some(Body::UiEvent(event)) => self.event(&frame.request_id, event),
            Some(Body::Error(error)) => self.failed(&frame.request_id, &error),
            Some(Body::Done(done)) => self.done(&frame.request_id, &done.status),
            Some(Body::BackendEvent(_)) | None => {}
        }
    }

    fn hello(&mut self, hello: &HelloFrame) {
        for word in &hello.capabilities {
            match word.split_once('=') {
                Some(("engine", name)) => self.status.engine = clean(name),
                Some(("model", name)) => self.status.model = clean(name),
                // No line has asked for anything yet.
                Some(("config-error", why)) => self.print(Piece::Note(Note::Error, clean(why))),
                Some(_) | None => {}
            }
        }
    }

    fn event(&mut self, request: &str, event: UiEventFrame) {
        // It has the ordinal of the event before it.
        if let Some(Any::Heartbeat(heartbeat)) = &event.payload {
            return self.heartbeat(heartbeat.waiting_for());
        }
        if event.ordinal <= self.last_ordinal {
            return;
        }
        self.last_ordinal = event.ordinal;
        if let Some(payload) = event.payload {
            self.payload(request, payload.into_whole());
        }
    }

    pub(super) fn has_shown(&mut self, ordinal: u64) {
        self.last_ordinal = self.last_ordinal.max(ordinal);
    }

    /// The list of payloads is the protocol's and long; some of them change nothing here.
    fn payload(&mut self, request: &str, payload: Any) {
        if let Some(payload) = self.text_payload(payload)
            && let Some(payload) = self.tool_payload(payload)
        {
            self.run_payload(request, payload);
        }
    }

    /// Applies streamed text; returns any other payload.
    fn text_payload(&mut self, payload: Any) -> Option<Any> {
        if let Any::ChatTextPatch(patch) = payload {
            self.text_grows(&patch.text);
        } else if let Any::ChatReasoningPatch(patch) = payload {
            self.reasoning_grows(&patch.text);
        } else if let Any::ChatTextSegmentStarted(_) = payload {
            self.text_begins();
        } else if let Any::ChatTextSegmentFinished(_) = payload {
            self.text_ends();
        } else if let Any::ChatReasoningSegmentStarted(_) = payload {
            self.reasoning_begins();
        } else if let Any::ChatReasoningSegmentFinished(_) = payload {
            self.reasoning_ends();
        } else {
            return Some(payload);
        }
        None
    }

    /// Applies events of tool calls; returns any other payload.
    fn tool_payload(&mut self, payload: Any) -> Option<Any> {
        if let Any::ChatToolCallStarted(call) = payload {
            self.tool_begins(&call.tool_call_id, &call.tool_name);
        } else if let Any::ChatToolCallRequested(call) = payload {
            self.tool_requested(&call);
        } else if let Any::ChatToolExecutionStarted(call) = payload {
            let now = self.now;
            self.phase(RunPhase::Tools);
            if let Some(tool) = self.run.as_mut().and_then(|run| run.tool(&call.tool_call_id)) {
                tool.state = ToolState::Running;
                tool.since = now;
            }
        } else if let Any::ToolCallProgressed(progressed) = payload {
            if let Some(tool) = self.run.as_mut().and_then(|run| run.tool(&progressed.tool_call_id))
            {
                tool.progress = clean(&how_far(&progressed)).replace('\n', " ");
            }
        } else if let Any::ChatToolResultReady(result) = payload {
            self.tool_returned(&result.tool_call_id, &result.result, &result.status);
        } else if let Any::ToolApprovalRequested(asked) = payload {
            self.approval_requested(*asked);
        } else if let Any::ToolApprovalResolved(resolved) = payload {
            self.approval_resolved(&resolved.tool_call_id);
        } else if let Any::ToolServerChanged(changed) = payload {
            self.server_changed(*changed);
        } else {
            return Some(payload);
        }
        None
    }

    /// Applies events of the run as a whole.
    fn run_payload(&mut self, request: &str, payload: Any) {
        if let Any::ChatUserMessageAccepted(message) = payload {
            self.message_accepted(request, *message);
        } else if let Any::ChatRunStarted(_) = payload {
            self.run = Some(Run::new(request.to_owned(), self.now));
        } else if let Any::ChatProviderCallStarted(_) = payload {
            self.phase(RunPhase::Model);
        } else if let Any::RetryScheduled(retry) = payload {
            self.retry(*retry);
        } else if let Any::RetryStarted(_) = payload {
            self.phase(RunPhase::Model);
        } else if let Any::AnswerTruncated(truncated) = payload {
            self.truncated(&truncated);
        } else if let Any::ModelSwitched(switched) = payload {
            self.switched(*switched);
        } else if let Any::UsageTotals(totals) = payload {
            self.counted(*totals);
        } else if let Any::TurnDropped(dropped) = payload {
            self.turn_dropped(&dropped);
        } else if let Any::CompactionStarted(_) = payload {
            self.compaction_begins(request);
        } else if let Any::Compacted(compacted) = payload {
            self.compacted(&compacted);
        } else if let Any::CompactionFailed(failed) = payload {
            self.not_compacted(&failed.reason);
        } else if let Any::BudgetNearlySpent(it) = payload {
            let [cost, budget, currency] = [&it.cost, &it.budget, &it.currency].map(|it| clean(it));
            let text = format!("{cost} {currency} of the budget of {budget} are spent");
            self.note(Note::Warning, text);
        } else if let Any::StoreDegraded(degraded) = payload {
            self.degraded(&degraded);
        } else if let Any::ChatRunFinished(finished) = payload {
            self.run_finished(&finished);
        }
    }

    /// A request for it is no turn, and can be stopped like one.
    fn compaction_begins(&mut self, request: &str) {
        let now = self.now;
        self.run.get_or_insert_with(|| Run::new(request.to_owned(), now));
        self.phase(RunPhase::Compacting);
    }

    fn compacted(&mut self, compacted: &Compacted) {
        let Compacted { tokens_before, tokens_after, through_turn_id, .. } = compacted;
        self.status.context_tokens = *tokens_after;
        let what = match through_turn_id.as_str() {
            "" => "earlier results of tools are left out of what the model is sent".to_owned(),
            turn => format!("the model is sent a summary in place of all up to {}", clean(turn)),
        };
        let (before, after) = (tokens(*tokens_before), tokens(*tokens_after));
        self.note(Note::Information, format!("{what}: about {after} tokens in place of {before}"));
    }

    fn not_compacted(&mut self, reason: &str) {
        let is_stopping = self.run.as_ref().is_some_and(|run| run.is_stopping);
        if !is_stopping {
            let text = format!("the conversation was not compacted: {}", clean(reason));
            self.note(Note::Warning, text);
        }
    }

    /// What people see of a decision or of tools says more.
    fn heartbeat(&mut self, what: WaitingFor) {
        match what {
            WaitingFor::Unspecified
            | WaitingFor::Tool
            | WaitingFor::Approval
            | WaitingFor::Retry
            | WaitingFor::ClientTool => {}
            WaitingFor::ProviderConnecting
            | WaitingFor::ProviderSilent
            | WaitingFor::Store
            | WaitingFor::ToolServers => self.phase(RunPhase::Waiting(what)),
        }
    }

    fn message_accepted(&mut self, request: &str, message: ChatUserMessageAccepted) {
        // A prompt that joins a run comes with the frames of the run.
        let joined = self.waiting.iter().find(|it| it.joins && it.prompt == message.text);
        let request = joined.map_or_else(|| request.to_owned(), |it| it.id.clone());
        self.text_ends();
        self.accepted(&request, message.message_id, message.text, &message.attachments);
    }

    fn tool_requested(&mut self, call: &ChatToolCallRequested) {
        // Not every engine streams the arguments.
        self.tool_begins(&call.tool_call_id, &call.tool_name);
        if let Some(tool) = self.run.as_mut().and_then(|run| run.tool(&call.tool_call_id)) {
            tool.set_input(&call.input);
            tool.state = ToolState::Requested;
        }
    }

    fn retry(&mut self, retry: RetryScheduled) {
        let wait = Duration::from_millis(retry.wait_ms);
        let phase = RunPhase::Retry {
            attempt: retry.attempt,
            attempts_max: retry.attempts_max,
            until: self.now + wait,
            reason: clean(&retry.reason),
        };
        if self.is_plain() {
            let text = retrying(wait, retry.attempt, retry.attempts_max, &retry.reason);
            self.note(Note::Information, text);
        }
        self.phase(phase);
    }

    fn truncated(&mut self, truncated: &AnswerTruncated) {
        self.text_ends();
        let why = match truncated.finish_class.as_str() {
            finish::MAX_TOKENS => "the answer was cut off at a token limit",
            finish::CONTENT_FILTER => "the provider withheld the answer, or the rest of it",
            _ => "the answer was cut off",
        };
        self.log.ended(why);
        self.note(Note::Warning, why.to_owned());
    }

    fn switched(&mut self, switched: ModelSwitched) {
        self.status.engine = clean(&switched.engine);
        self.status.model = clean(&switched.model);
        self.status.profile = clean(&switched.profile);
        let ModelSwitched { profile, engine, model, host: switched_host, .. } = switched;
        // A profile has an engine of its own.
        let engine = if profile.is_empty() { engine } else { String::new() };
        self.chosen = Some(ModelChoice { profile, engine, model, ..ModelChoice::default() });
        self.goes_elsewhere(&clean(&switched_host));
        let text = format!("{} answers from the next prompt on", self.status.answers_with());
        self.note(Note::Information, text);
    }

    fn counted(&mut self, totals: UsageTotals) {
        if let Some(call) = totals.call.filter(|call| call.input_tokens > 0) {
            self.status.context_tokens = call.input_tokens + call.output_tokens;
        }
        let Some(session) = totals.session else { return };
        self.status.input_tokens = session.input_tokens;
        self.status.output_tokens = session.output_tokens;
        let cost = format!("{} {}", clean(&session.cost), clean(&session.currency));
        // The cost of uncounted calls is not in it.
        let bound = if session.uncounted_calls > 0 { "at least " } else { "" };
        let shown = || format!("{bound}{}", cost.trim_end());
        self.status.cost = (!session.cost.is_empty()).then(shown);
    }

    fn degraded(&mut self, degraded: &StoreDegraded) {
        // The error that comes before it has said so.
        let is_known = std::mem::take(&mut self.has_reported_store);
        let is_lost = is_known || degraded.first_missing_ordinal > 0;
        self.status.is_stored &= !is_lost;
        let reason = clean(&degraded.reason);
        match (is_known, is_lost) {
            (true, _) => {}
            (false, true) => {
                let text = format!("the conversation is not stored any more: {reason}");
                self.store_failure = Some(text.clone());
                self.note(Note::Warning, text);
            }
            // A part of what was stored before can't be read.
            (false, false) => self.note(Note::Warning, reason),
        }
    }

    fn run_finished(&mut self, _: &ChatRunFinished) {
        self.status.turns += 1;
        self.reasoning_ends();
        self.text_ends();
    }
}

/// The wait before a request is sent again.
pub(crate) fn retrying(wait: Duration, attempt: u32, attempts_max: u32, reason: &str) -> String {
    // A wait that has just begun is not one second shorter.
    let seconds = wait.as_millis().div_ceil(1000);
    format!("retrying in {seconds} s (attempt {attempt} of {attempts_max}): {reason}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::constants::code;
    use crate::protocol::proto::session::TokenCounts;
    use crate::tui::model::tests::Scene;

    #[test]
    fn a_store_that_fails_is_reported_once_and_one_that_is_damaged_goes_on() {
        let degraded = |reason: &str, first_missing_ordinal| {
            let reason = reason.to_owned();
            StoreDegraded { reason, first_missing_ordinal }
        };
        let check = |has_error: bool, event: StoreDegraded, is_stored: bool, expected: &[&str]| {
            let mut scene = Scene::new();
            scene.state.status.is_stored = true;
            if has_error {
                scene.error("", code::STORE_FAILED, "the disk is full");
            }
            scene.ui("", event);
            let text = |piece: &Piece| {
                let Piece::Note(_, text) = piece else { panic!("{piece:?}") };
                text.clone()
            };
            let notes: Vec<_> = scene.pieces.iter().map(text).collect();
            assert_eq!(notes, expected);
            assert_eq!(scene.state.status.is_stored, is_stored);
        };
        check(true, degraded("the disk is full", 7), false, &["the disk is full"]);
        check(true, degraded("the disk is full", 0), false, &["the disk is full"]);
        let gone = "the conversation is not stored any more: it is read-only";
        check(false, degraded("it is read-only", 7), false, &[gone]);
        check(false, degraded("a record can't be read", 0), true, &["a record can't be read"]);
    }

    /// What the last call was sent and has answered is what the next one is sent.
    #[test]
    fn the_context_in_use_is_that_of_the_last_call() {
        let mut scene = Scene::new();
        let mut counted = |input_tokens, output_tokens| {
            let call = TokenCounts { input_tokens, output_tokens, ..TokenCounts::default() };
            scene.ui("r", UsageTotals { call: Some(call), ..UsageTotals::default() });
            scene.state.status.context_tokens
        };
        assert_eq!(counted(900, 100), 1_000);
        assert_eq!(counted(0, 0), 1_000, "a call that was not counted");
        assert_eq!(counted(400, 20), 420);
    }
}
