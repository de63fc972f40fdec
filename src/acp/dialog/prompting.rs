//! The way of a prompt: it waits for its turn, its files are fetched and looked at, the host answers it.

use super::{Active, Asked, CommandLine, Dialog, Order, PromptStage, Purpose, Stage, Waiting};
use crate::acp::jsonrpc::{Id, RpcError};
use crate::acp::prompts::{Draft, Ready};
use crate::acp::schema::StopReason;
use crate::protocol::command::{Cancel, Command, Compact};
use crate::protocol::id::RequestId;
use crate::support::terminal::escape_control;
use serde_json::{Value, json};

/// The command that has the conversation compacted, unless a file of the person has that name.
pub(super) const COMPACT: &str = "compact";

impl Dialog {
    /// Makes the choices that wait, and begins with the next prompt, if none is being answered.
    pub(super) fn proceed(&mut self) {
        if self.stage != Stage::Open {
            return;
        }
        while self.active.is_none() {
            self.make_choices();
            let Some(Waiting { id, draft }) = self.waiting.pop_front() else { return };
            let stage = PromptStage::Preparing;
            self.active = Some(Active { id, stage, is_cancelled: false });
            self.begin_prompt(draft);
        }
    }

    fn make_choices(&mut self) {
        for (choice, chosen) in std::mem::take(&mut self.changes) {
            self.order(Command::SwitchModel(choice), Purpose::Choice(chosen));
        }
    }

    /// Whether a choice waits for the end of a run: the host refuses it before, and stores it with the session after.
    pub(in crate::acp) fn awaits_end_of_run(&self) -> bool {
        self.active.is_some() && !self.changes.is_empty()
    }

    fn begin_prompt(&mut self, mut draft: Draft) {
        draft.settle(|name| name == COMPACT || self.commands.iter().any(|it| it.name == name));
        if self.client.reads_files {
            let links: Vec<_> = draft.text_links().map(|(at, it)| (at, it.path.clone())).collect();
            if !links.is_empty() {
                for (at, path) in links {
                    let path = path.to_string_lossy();
                    let params = json!({ "sessionId": self.session, "path": path });
                    self.ask("fs/read_text_file", params, Asked::Buffer(at));
                }
                self.orders.push_back(Order::AwaitBuffers);
                return self.enter(PromptStage::Fetching(Box::new(draft)));
            }
        }
        self.prepare(draft);
    }

    /// The client's buffer of a file that the prompt names; without one the file itself is read.
    pub(super) fn buffer(&mut self, link: usize, response: Result<Value, RpcError>) {
        let Some(Active { stage: PromptStage::Fetching(draft), .. }) = &mut self.active else {
            return;
        };
        if let Some(link) = draft.links.get_mut(link) {
            // Most errors say that the file is not open. With this one the person may have another text in sight.
            if let Err(error) = response.as_ref()
                && error.is_of_unread()
            {
                let path = link.path.to_string_lossy();
                let text =
                    format!("the editor's text of {path} is not sent, but the saved file: {error}");
                self.notices.push(escape_control(&text));
            }
            let text = response.ok().and_then(|it| Some(it.get("content")?.as_str()?.to_owned()));
            link.buffer = text;
        }
        self.prepare_if_fetched();
    }

    /// No buffer is waited for any more.
    pub(in crate::acp) fn stop_fetching(&mut self) {
        let late = self.asked.iter().filter(|(_, it)| matches!(it, Asked::Buffer(_)));
        let late: Vec<_> = late.map(|(id, _)| *id).collect();
        late.into_iter().for_each(|id| self.withdraw(id));
        self.prepare_if_fetched();
    }

    fn prepare_if_fetched(&mut self) {
        let is_fetched = !self.asked.values().any(|it| matches!(it, Asked::Buffer(_)));
        if let Some(active) = &mut self.active
            && is_fetched
            && let PromptStage::Fetching(draft) = &mut active.stage
        {
            let draft = std::mem::take(&mut **draft);
            self.prepare(draft);
        }
    }

    fn prepare(&mut self, draft: Draft) {
        let command = draft.command(|name| self.commands.iter().any(|it| it.name == name));
        let command = command
            .map(|(line, rest)| CommandLine { line: line.to_owned(), rest: rest.to_owned() });
        self.enter(PromptStage::Preparing);
        if let Some((line, rest)) =
            draft.command(|name| name == COMPACT).filter(|_| command.is_none())
        {
            let line = line.trim_start_matches(COMPACT).trim();
            let instructions = format!("{line}\n{rest}").trim().to_owned();
            let compact = Compact { instructions, ..Compact::default() };
            self.enter(PromptStage::Running(None));
            return self.order(Command::Compact(compact), Purpose::Prompt);
        }
        if command.is_some() || !draft.links.is_empty() {
            return self.orders.push_back(Order::Prepare(Box::new(draft), command));
        }
        let text = draft.text.clone();
        self.prepared(draft.submit(text));
    }

    /// The prompt is ready for the host, or can't be used.
    pub(in crate::acp) fn prepared(&mut self, prompt: Result<Ready, RpcError>) {
        // One that was cancelled meanwhile is not waited for.
        let Some(Active { stage: PromptStage::Preparing, .. }) = &self.active else { return };
        match prompt {
            Ok(Ready { submit, notices }) => {
                self.notices.extend(notices);
                self.enter(PromptStage::Running(None));
                self.order(Command::Submit(submit), Purpose::Prompt);
            }
            Err(error) => self.answer_prompt(Err(error)),
        }
    }

    fn enter(&mut self, to: PromptStage) {
        if let Some(active) = &mut self.active {
            active.stage = to;
        }
    }

    /// The id that the host has given to a request of [`Order::Request`].
    pub(in crate::acp) fn issued(&mut self, purpose: Purpose, request: RequestId) {
        match purpose {
            Purpose::Prompt => {
                self.updates.begin_prompt();
                self.enter(PromptStage::Running(Some(request)));
            }
            Purpose::Replay(id) => self.replays.push((request, id)),
            Purpose::Choice(chosen) => self.switches.push((request, chosen)),
            Purpose::Notice => {}
        }
    }

    /// Whether this is the host's request of the prompt that is being answered.
    pub(super) fn is_active(&self, request: &str) -> bool {
        let Some(Active { stage: PromptStage::Running(Some(running)), .. }) = &self.active else {
            return false;
        };
        running.as_str() == request
    }

    /// Answers the prompt whose turn it is; the next one follows, or the end of the session that waits for this.
    pub(super) fn answer_prompt(&mut self, outcome: Result<StopReason, RpcError>) {
        // No update may follow the answer before the next prompt.
        self.tell_notices();
        let is_end_due = self.stage == Stage::Ending && self.awaits_end_of_run() && !self.is_over;
        let Some(Active { id, is_cancelled, .. }) = self.active.take() else { return };
        // The client that has cancelled waits for this and no other answer.
        let outcome = if is_cancelled { Ok(StopReason::Cancelled) } else { outcome };
        self.queue.respond(id, outcome.map(stopped));
        if is_end_due {
            self.make_choices();
            return self.orders.push_back(Order::End);
        }
        self.proceed();
    }

    /// Handles `session/cancel`: the run is stopped, and what waits is withdrawn.
    pub(in crate::acp) fn cancel(&mut self) {
        for Waiting { id, .. } in std::mem::take(&mut self.waiting) {
            self.queue.respond(id, Ok(stopped(StopReason::Cancelled)));
        }
        let Some(active) = &mut self.active else { return };
        active.is_cancelled = true;
        match active.stage {
            PromptStage::Running(_) => {
                self.order(Command::Cancel(Cancel::default()), Purpose::Notice);
                self.withdraw_questions();
            }
            PromptStage::Fetching(_) | PromptStage::Preparing => {
                self.answer_prompt(Ok(StopReason::Cancelled));
                self.stop_fetching();
            }
        }
    }

    /// Handles `$/cancel_request` for a prompt.
    pub(in crate::acp) fn cancel_request(&mut self, request: &Id) {
        if self.active.as_ref().is_some_and(|active| active.id == *request) {
            let waiting = std::mem::take(&mut self.waiting);
            self.cancel();
            self.waiting = waiting;
            return self.proceed();
        }
        if let Some(at) = self.waiting.iter().position(|waiting| waiting.id == *request) {
            self.waiting.remove(at);
            self.queue.respond(request.clone(), Ok(stopped(StopReason::Cancelled)));
        }
    }

    /// Answers all prompts of a conversation that can't go on.
    pub(super) fn refuse_waiting(&mut self) {
        let error =
            self.refuse_if_closed().err().unwrap_or_else(|| RpcError::not_found(&self.session));
        for Waiting { id, .. } in std::mem::take(&mut self.waiting) {
            self.queue.respond(id, Err(error.clone()));
        }
    }
}

fn stopped(reason: StopReason) -> Value {
    json!({ "stopReason": reason })
}
