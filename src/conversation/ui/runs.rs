//! UI events of a run, its prompts and its provider calls.

use super::names::{Names, user_message_id};
use super::{cut_off_text, shown};
use crate::conversation::compaction::CompactionEvent;
use crate::conversation::event::{
    Attachments, CallReport, Ending, FinishClass, SessionEvent, Usage,
};
use crate::conversation::timeline::{compacted, turn_id};
use crate::protocol::any::{Any, Shared, Struct};
use crate::protocol::constants::{message, role};
use crate::protocol::id::Ordinal;
use crate::protocol::proto::{chat, extract, provider, session};
use crate::support::text::Text;

impl Names {
    pub(super) fn prompt_accepted(
        &self,
        prompt: Text,
        attachments: &Attachments,
        number: u32,
    ) -> Any {
        let message = chat::ChatUserMessageAccepted {
            message_id: user_message_id(&self.root, number),
            role: role::USER.to_owned(),
            status: message::ACCEPTED.to_owned(),
            attachments: shown(attachments),
            ..Default::default()
        };
        Shared::payload(message, prompt.clone(), prompt)
    }

    pub(super) fn run_started(&self, prompt: Text) -> Any {
        let (message_id, correlation) = (self.root.clone(), self.run());
        chat::ChatRunStarted { message_id, prompt: prompt.as_str().to_owned(), correlation }.into()
    }

    pub(super) fn run_finished(&self, duration_ms: u64, cut_off: Option<&str>) -> Any {
        chat::ChatRunFinished {
            message_id: self.root.clone(),
            status: Ending::Finished.as_str().to_owned(),
            error: cut_off.map_or(String::new(), cut_off_text),
            duration_ms: Some(signed(duration_ms)),
            correlation: self.run(),
        }
        .into()
    }

    pub(super) fn run_stopped(&self, error: String) -> Any {
        let (message_id, correlation) = (self.root.clone(), self.run());
        let status = Ending::Stopped.as_str().to_owned();
        chat::ChatRunStopped { message_id, status, error, correlation }.into()
    }

    pub(super) fn run_failed(&self, error: String) -> Any {
        let (message_id, correlation) = (self.root.clone(), self.run());
        let status = Ending::Failed.as_str().to_owned();
        chat::ChatRunFailed { message_id, status, error, correlation }.into()
    }

    pub(super) fn call_started(&self) -> Any {
        chat::ChatProviderCallStarted { correlation: self.call() }.into()
    }

    pub(super) fn call_metadata(&self, stop_reason: String, usage: Usage) -> Any {
        let (usage, correlation) = (Some(usage.on_wire()), self.call());
        chat::ChatProviderCallMetadataUpdated { stop_reason, usage, correlation }.into()
    }

    pub(super) fn call_finished(
        &self,
        (stop_reason, class): (String, FinishClass),
        usage: Option<Usage>,
        duration_ms: u64,
        has_tool_calls: bool,
    ) -> Any {
        chat::ChatProviderCallFinished {
            stop_reason,
            finish_class: class.as_str().to_owned(),
            usage: usage.map(Usage::on_wire),
            duration_ms: Some(signed(duration_ms)),
            has_tool_calls,
            correlation: self.call(),
        }
        .into()
    }

    pub(super) fn call_report(&self, report: CallReport) -> Any {
        let correlation = self.call();
        match report {
            CallReport::RetryScheduled { attempt, attempts_max, wait_ms, error_class, reason } => {
                provider::RetryScheduled {
                    attempt,
                    attempts_max,
                    wait_ms,
                    error_class,
                    reason,
                    correlation,
                }
                .into()
            }
            CallReport::RetryStarted { attempt, attempts_max } => {
                provider::RetryStarted { attempt, attempts_max, correlation }.into()
            }
            CallReport::Truncated { stop_reason, class } => provider::AnswerTruncated {
                message_id: self.root.clone(),
                stop_reason,
                finish_class: class.as_str().to_owned(),
                correlation,
            }
            .into(),
            CallReport::Timed { first_byte_ms, first_token_ms } => {
                provider::CallTiming { first_byte_ms, first_token_ms, correlation }.into()
            }
            CallReport::BudgetNearlySpent(spent) => {
                session::BudgetNearlySpent { correlation, ..*spent }.into()
            }
            CallReport::Counted(counts) => session::UsageTotals {
                call: Some(counts.call),
                run: Some(counts.run),
                session: Some(counts.session),
                correlation,
            }
            .into(),
        }
    }

    pub(super) fn compaction(&self, event: CompactionEvent, ordinal: Ordinal) -> Any {
        let correlation = self.run();
        match event {
            CompactionEvent::Proposed(it) => {
                session::CompactionProposed { correlation, ..*it }.into()
            }
            CompactionEvent::Started(it) => {
                session::CompactionStarted { correlation, ..*it }.into()
            }
            CompactionEvent::Done(it) => {
                compacted(&it, ordinal, correlation.unwrap_or_default()).into()
            }
            CompactionEvent::Failed { reason } => {
                session::CompactionFailed { reason, correlation }.into()
            }
        }
    }

    pub(super) fn repair_requested(&self, reason: String, number: u32, max: u32) -> Any {
        extract::AnswerRejected {
            message_id: self.root.clone(),
            reason,
            repair: number,
            repairs_max: max,
            correlation: self.run(),
        }
        .into()
    }
}

pub(super) fn session_event(event: SessionEvent) -> Option<Any> {
    Some(match event {
        SessionEvent::ToolsDeclared { mut tools, .. } => {
            for tool in &mut tools.tools {
                tool.input_schema = tool.input_schema.take().and_then(Struct::if_sent);
            }
            tools.into()
        }
        SessionEvent::ModelSwitched { model, .. } => model.into(),
        SessionEvent::ServerChanged(changed) => changed.into(),
        SessionEvent::StoreDegraded(degraded) => degraded.into(),
        SessionEvent::Renamed(_) => return None,
    })
}

pub(super) fn turns_dropped(
    message_ids: Vec<String>,
    tool_call_ids: Vec<String>,
    turns: Vec<u32>,
) -> Any {
    session::TurnDropped {
        prompt_message_id: message_ids.first().cloned().unwrap_or_default(),
        message_ids,
        tool_call_ids,
        turn_ids: turns.into_iter().map(turn_id).collect(),
    }
    .into()
}

/// Milliseconds as `int64`. A duration that does not fit is 292 million years long.
fn signed(duration_ms: u64) -> i64 {
    i64::try_from(duration_ms).unwrap_or(i64::MAX)
}
