//! What the conversation says: its frames become updates, and the ends of its requests answers.

use super::{Dialog, How, Stage};
use crate::acp::jsonrpc::RpcError;
use crate::acp::options::Chosen;
use crate::acp::queue::{Chunk, ChunkKind, Item};
use crate::acp::schema::{ContentBlock, StopReason, ToolStatus, Update};
use crate::acp::updates::missing_server;
use crate::conversation::event::ToolResult;
use crate::host::{CodedWarning, Effect, Effects};
use crate::output::{cut_off, waiting_text};
use crate::protocol::any::Any;
use crate::protocol::constants::{SESSION_NOT_FOUND, code, done, finish};
use crate::protocol::id::ToolCallId;
use crate::protocol::proto::chat::ChatProviderCallFinished;
use crate::protocol::proto::rpc::rpc_line::Frame as Body;
use crate::protocol::proto::rpc::{ErrorFrame, SnapshotFrame};
use crate::protocol::proto::session::{Compacted, CompactionCause, WaitingFor};
use crate::protocol::wire::Frame;
use crate::session::{PROVIDER_CHANGED, is_too_many_rounds};
use crate::support::terminal::escape_control;
use serde_json::json;
use std::collections::BTreeMap;
use std::num::NonZeroU64;
use std::sync::Arc;

impl Dialog {
    /// Takes the effects of the host, in their order.
    pub(in crate::acp) fn effects(&mut self, effects: Effects) {
        let mut is_loaded = false;
        for effect in effects.list {
            match effect {
                Effect::Frame(frame) => is_loaded |= self.frame(frame),
                Effect::Warning(CodedWarning { code: PROVIDER_CHANGED, message }) => {
                    self.notices.push(escape_control(&message));
                }
                Effect::ToolImages(images) => self.updates.images(images),
                // Events say it as well, or it is of no use to the person.
                Effect::Usage(_) | Effect::Warning(_) => {}
                Effect::Exit(_) | Effect::Abort(_) => self.exit(),
            }
        }
        self.updates.images(Arc::default());
        // With the frames after the conversation: what it goes on with.
        if is_loaded && !self.is_over {
            self.begin();
        }
    }

    /// Takes a frame; returns whether the stored conversation is loaded with it.
    fn frame(&mut self, frame: Frame) -> bool {
        let request = frame.request_id;
        match frame.frame {
            Some(Body::Snapshot(conversation)) => return self.snapshot(&request, conversation),
            Some(Body::UiEvent(event)) => {
                if let Some(payload) = event.payload {
                    self.event(payload.into_whole());
                }
            }
            Some(Body::Error(error)) => self.error(request, error),
            Some(Body::Done(it)) => self.done(&request, &it.status),
            Some(Body::Hello(_) | Body::BackendEvent(_)) | None => {}
        }
        false
    }

    /// Whether the past is about to be shown, for which the images are needed.
    pub(in crate::acp) fn shows_past(&self) -> bool {
        let loads = matches!(self.opening, Some((_, How::Load))) && self.stage == Stage::Loading;
        loads || !self.replays.is_empty()
    }

    /// Notes the images that no frame has.
    pub(in crate::acp) fn note_images(&mut self, of: BTreeMap<ToolCallId, Arc<ToolResult>>) {
        self.with_images = of;
    }

    /// Notes how many tokens the model can be sent, of which the next count tells the part that is in use.
    pub(in crate::acp) fn note_context(&mut self, size: Option<NonZeroU64>) {
        self.updates.context_size = size;
    }

    fn replay(&mut self, conversation: SnapshotFrame) {
        let with_images = std::mem::take(&mut self.with_images);
        self.updates.replay(conversation, with_images, &mut self.queue);
    }

    fn snapshot(&mut self, request: &str, conversation: SnapshotFrame) -> bool {
        if self.replays.iter().any(|(replay, _)| replay.as_str() == request) {
            self.replay(conversation);
            return false;
        }
        let is_loading = self.stage == Stage::Loading && request.is_empty();
        if is_loading && matches!(self.opening, Some((_, How::Load))) {
            self.replay(conversation);
        }
        if is_loading {
            self.updates.goes_on();
        }
        is_loading
    }

    fn event(&mut self, payload: Any) {
        if !matches!(payload, Any::Heartbeat(_)) {
            self.waits_for = None;
        }
        if let Any::ChatProviderCallFinished(call) = &payload {
            self.withheld(call);
        }
        if let Any::UsageTotals(totals) = &payload
            && self.compacting.is_some()
        {
            // The tokens are those of the call that makes the summary: what is in use is known when it has ended.
            return self.updates.note_cost(totals);
        }
        let Some(payload) = self.updates.event(payload, &mut self.queue) else { return };
        let Some(payload) = self.compaction_event(payload) else { return };
        if let Any::ToolApprovalRequested(requested) = payload {
            self.approval_requested(*requested);
        } else if let Any::ToolApprovalResolved(resolved) = payload {
            self.approval_resolved(&resolved.tool_call_id);
        } else if let Any::BudgetNearlySpent(it) = payload {
            let text =
                format!("{} {} of the budget of {} are spent", it.cost, it.currency, it.budget);
            self.notices.push(escape_control(&text));
        } else if let Any::Heartbeat(heartbeat) = payload {
            self.heartbeat(heartbeat.waiting_for());
        } else if let Any::ToolServerChanged(changed) = payload {
            self.notices.extend(missing_server(&changed));
        } else if let Any::ModelSwitched(switched) = payload {
            let before = self.options.config();
            self.options.switched(&switched);
            if self.opening.is_none() && before != self.options.config() {
                self.config_changed();
            }
        }
    }

    /// Says that the provider withheld an answer. The stop reason `refusal` would say more: a client drops the prompt
    /// from its conversation then, and here it stays.
    fn withheld(&mut self, call: &ChatProviderCallFinished) {
        if call.finish_class == finish::CONTENT_FILTER && self.compacting.is_none() {
            self.notices.extend(cut_off(call).map(str::to_owned));
        }
    }

    /// Shows what an event says of a compaction; returns any other payload.
    fn compaction_event(&mut self, payload: Any) -> Option<Any> {
        if let Any::CompactionProposed(proposed) = payload {
            self.compaction_proposed(&proposed);
        } else if let Any::CompactionStarted(started) = payload {
            self.compactions += 1;
            self.compacting = Some(started.cause());
            self.asked_compaction(ToolStatus::InProgress);
            self.compaction("in_progress", None, None);
        } else if let Any::Compacted(compacted) = payload {
            self.compacting = None;
            self.asked_compaction(ToolStatus::Completed);
            self.tell_compacted(&compacted);
            let summary = Some(compacted.summary).filter(|summary| !summary.is_empty());
            self.compaction("completed", summary, None);
            let used = self.updates.in_use(compacted.tokens_after);
            self.queue.push_some(used);
        } else if let Any::CompactionFailed(failed) = payload {
            self.asked_compaction(ToolStatus::Failed);
            // One that the person does not want has never begun.
            if let Some(cause) = self.compacting.take() {
                self.tell_not_compacted(cause, &failed.reason);
                self.compaction("failed", None, Some(failed.reason));
                let used = self.updates.still_in_use();
                self.queue.push_some(used);
            }
        } else {
            return Some(payload);
        }
        None
    }

    /// What becomes of the compaction that began last.
    fn compaction(&mut self, status: &'static str, summary: Option<String>, error: Option<String>) {
        if self.client.has_compaction {
            let compaction_id = self.own_id("compaction", self.compactions);
            let summary = summary.map(|text| ContentBlock::Text { text }).into_iter().collect();
            self.queue.update(Update::Compaction { compaction_id, status, summary, error });
        }
    }

    /// Says that less is sent to the model, to a client that does not show compactions.
    fn tell_compacted(&mut self, compacted: &Compacted) {
        if self.client.has_compaction {
            return;
        }
        let what = match compacted.through_turn_id.as_str() {
            "" => "earlier results of tools are left out of what the model is sent",
            _ => "the earlier turns were summarized for the model",
        };
        let title = format!("{what}, now about {} tokens", compacted.tokens_after);
        match self.client.has_notices {
            true => self.queue.update(Update::Notice { severity: "info", title }),
            false => self.notices.push(title),
        }
    }

    /// Says why the conversation stays as it is, where nothing else does: a prompt of `/compact` is answered with it.
    fn tell_not_compacted(&mut self, cause: CompactionCause, reason: &str) {
        let is_cancelled = self.active.as_ref().is_some_and(|active| active.is_cancelled);
        if !self.client.has_compaction && !is_cancelled && cause != CompactionCause::Request {
            let text = format!("the conversation was not compacted: {reason}");
            self.notices.push(escape_control(&text));
        }
    }

    /// Tells the person once for each wait, and only where that is no part of the conversation: of tools and
    /// decisions the client shows more.
    fn heartbeat(&mut self, what: WaitingFor) {
        let is_told = match what {
            WaitingFor::ProviderConnecting
            | WaitingFor::ProviderSilent
            | WaitingFor::Retry
            | WaitingFor::Store
            | WaitingFor::ToolServers => self.client.has_notices,
            WaitingFor::Unspecified
            | WaitingFor::Tool
            | WaitingFor::Approval
            | WaitingFor::ClientTool => false,
        };
        if is_told && self.waits_for.replace(what) != Some(what) {
            let title = waiting_text(what).to_owned();
            self.queue.update(Update::Notice { severity: "info", title });
        }
    }

    fn error(&mut self, request: String, error: ErrorFrame) {
        if request.is_empty() && !error.terminal {
            self.notices.push(escape_control(&error.message));
        }
        self.is_stored &= error.code != code::STORE_FAILED;
        self.errors.insert(request, error);
    }

    fn done(&mut self, request: &str, status: &str) {
        // Why the conversation has ended is said at its end.
        let error = if request.is_empty() { None } else { self.errors.remove(request) };
        if let Some(at) = self.switches.iter().position(|(switch, _)| switch.as_str() == request) {
            let (_, chosen) = self.switches.remove(at);
            self.decided(chosen, error.as_ref());
        }
        if let Some(at) = self.replays.iter().position(|(replay, _)| replay.as_str() == request) {
            let (_, id) = self.replays.remove(at);
            let (modes, options) = (self.options.modes(), self.options.config());
            self.queue.respond(id, Ok(json!({ "modes": modes, "configOptions": options })));
        }
        if self.is_active(request) {
            let is_cut_off = self.updates.is_cut_off();
            let outcome = match status {
                done::OK if is_cut_off => Ok(StopReason::MaxTokens),
                done::OK => Ok(StopReason::EndTurn),
                done::STOPPED => Ok(StopReason::Cancelled),
                _ => of_failed(error),
            };
            self.answer_prompt(outcome);
        }
    }

    /// The conversation has made a choice of the person, or has refused it with an error.
    fn decided(&mut self, chosen: Chosen, error: Option<&ErrorFrame>) {
        let Some(ErrorFrame { code, message, detail, .. }) = error else {
            return self.options.made(chosen);
        };
        // At the end of the session it does not matter any more.
        if code != code::SHUTTING_DOWN {
            let why = if detail.is_empty() { message } else { detail };
            let text = format!("what was chosen can't be used, so nothing has changed: {why}");
            self.notices.push(escape_control(&text));
        }
        let before = self.options.config();
        self.options.refused(&chosen);
        if before != self.options.config() {
            self.config_changed();
        }
    }

    /// The conversation has ended, by itself or because it was told to.
    fn exit(&mut self) {
        let error = self.errors.remove("");
        self.is_over = true;
        self.stage = Stage::Ending;
        let why = |error: &ErrorFrame| match error.detail.as_str() {
            SESSION_NOT_FOUND => RpcError::not_found(&self.session),
            _ => RpcError::failed(escape_control(&error.message)),
        };
        let refusal = error.as_ref().map(why);
        let refusal = refusal.unwrap_or_else(|| RpcError::not_found(&self.session));
        if let Some((id, _)) = self.opening.take() {
            self.queue.respond(id, Err(refusal.clone()));
        }
        for (_, id) in std::mem::take(&mut self.replays) {
            self.queue.respond(id, Err(refusal.clone()));
        }
        self.answer_prompt(Err(refusal));
        self.refuse_waiting();
    }

    /// Says what the person was not told yet: as notices, or beside an answer.
    pub(in crate::acp) fn tell_notices(&mut self) {
        let is_answering = self.active.is_some();
        if self.opening.is_some() || !self.client.has_notices && !is_answering {
            return;
        }
        for text in std::mem::take(&mut self.notices) {
            self.notices_told += 1;
            let message_id = self.own_id("notice", self.notices_told);
            self.queue.push(match self.client.has_notices {
                true => Item::Update(Update::Notice { severity: "warning", title: text }),
                false => {
                    Item::Chunk(Chunk { kind: ChunkKind::Thought, message_id, text: text + "\n" })
                }
            });
        }
    }
}

/// How a prompt ends whose run has failed with this error.
fn of_failed(error: Option<ErrorFrame>) -> Result<StopReason, RpcError> {
    let Some(ErrorFrame { code, message, detail, .. }) = error else {
        return Err(RpcError::failed("the prompt was not answered"));
    };
    if is_too_many_rounds(&detail) {
        return Ok(StopReason::MaxTurnRequests);
    }
    let message = escape_control(&message);
    Err(match code.as_str() {
        code::EMPTY_PROMPT | code::INVALID_ATTACHMENT => RpcError::invalid_params(message),
        // Also a missing key: no way to log in is announced, and of an error that asks for one clients show nothing.
        _ => RpcError::failed(message),
    })
}
