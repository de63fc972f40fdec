//! Handles each request of the client, and answers those that need no run.

use super::approval::ApprovalMode;
use super::client_error::{
    NotQueued, busy_for, invalid_settings, mismatch, no_active_request, no_such_request,
    unknown_tool_call,
};
use super::closing::ExitCause;
use super::run::{Context, Run, Stop};
use super::{Binding, Session, Uptime};
use crate::conversation::event::SessionEvent;
use crate::conversation::timeline::Span;
use crate::protocol::command::{Cancel, Command, Enable, Extension, ModelChoice, ToolManifest};
use crate::protocol::id::{RequestId, SessionId, ToolCallId};
use crate::protocol::proto::frontendtools::FrontendToolManifestUpdated;
use crate::protocol::wire::{ClientError, Done, Request};

impl Session {
    pub(super) fn request(&mut self, now: Uptime, request: Request) {
        let id = request.id;
        if let Some(how) = self.answered(&id, &request.command) {
            self.recorder.snapshot(&id, Span::Conversation);
            return self.recorder.done(Some(&id), how);
        }
        match request.command {
            Command::Submit(submit) => self.submitted(now, id, submit),
            Command::Cancel(cancel) => self.cancel(now, &id, &cancel),
            Command::Snapshot(page) => {
                if page.is_everything() {
                    self.recorder.snapshot(&id, Span::Conversation);
                } else {
                    self.recorder.turn_on(Extension::History);
                    self.recorder.snapshot(&id, Span::Page(page));
                }
                self.recorder.done(Some(&id), Done::Ok);
            }
            Command::Shutdown => {
                self.refuse_file_reads();
                self.drain(Some(id), ExitCause::Quiet);
            }
            Command::Enable(Enable { extensions, events }) => {
                if let Some(events) = events {
                    self.recorder.show_events(events);
                }
                let had_servers = self.recorder.is_on(Extension::ToolServers);
                extensions.into_iter().for_each(|extension| self.recorder.turn_on(extension));
                if !had_servers {
                    self.announce_servers();
                }
                self.offer_held_tools();
                self.recorder.done(Some(&id), Done::Ok);
                self.announce_late();
            }
            Command::DeclareTools(manifest) => self.declare_tools(&id, manifest),
            Command::ToolResult(answer) => {
                let call = answer.call.clone();
                self.answer(now, &id, &call, |run, context| run.client_result(context, answer));
            }
            Command::SwitchModel(choice) => self.switch_model(&id, &choice),
            Command::Edit(edit) => self.edit(now, id, edit),
            Command::Compact(compact) => self.compact(now, id, compact),
            Command::Rename(title) => {
                self.recorder.record_of_session(Some(&id), SessionEvent::Renamed(title));
                self.recorder.done(Some(&id), Done::Ok);
            }
            Command::NoteApproval(mode) => {
                if let Some(origin) = &mut self.rules.origin {
                    mode.clone_into(&mut origin.tools.approval);
                }
                // The front end denies these calls too; what the person has allowed holds again in another mode.
                self.toolbox.suspend_allowed(mode == ApprovalMode::Deny.name());
                // No model was switched: the event is the one that stores the choices of a session, the mode among
                // them, and what is stored must stay readable for other versions.
                let (model, choices) = (self.models.switched(), Some(self.choices().into()));
                let noted = SessionEvent::ModelSwitched { model, choices };
                self.recorder.record_of_session(Some(&id), noted);
                self.recorder.done(Some(&id), Done::Ok);
            }
            Command::Approve(approve) => {
                self.recorder.turn_on(Extension::Approvals);
                let call = approve.call.clone();
                self.answer(now, &id, &call, |run, context| run.approve(context, approve));
            }
        }
    }

    /// How the run of a request has ended that is sent again; `None` for any other.
    pub(crate) fn answered(&self, id: &RequestId, command: &Command) -> Option<Done> {
        let may_run = matches!(command, Command::Submit(_) | Command::Edit(_));
        let may_be_again = self.recorder.log.rules().has_request_ids && may_run;
        if !may_be_again || self.active_request() == Some(id) {
            return None;
        }
        self.recorder.projections.answered.status(id.as_str())
    }

    /// Binds the session to the name that its first request has for it.
    ///
    /// # Errors
    /// If the session has another name already.
    pub(super) fn bind(&mut self, named: Option<SessionId>) -> Result<(), ClientError> {
        let bound = self.recorder.session();
        if let Some(named) = named
            && named != *bound
        {
            if self.binding == Binding::Bound {
                return Err(mismatch(bound));
            }
            self.recorder.rename(named);
        }
        if self.binding == Binding::Open {
            self.binding = Binding::Bound;
            self.announce_servers();
        }
        Ok(())
    }

    fn cancel(&mut self, now: Uptime, id: &RequestId, cancel: &Cancel) {
        let active = self.active_request().cloned();
        let stops = active.is_some()
            && cancel.target.as_ref().map_or(!cancel.waiting, |it| active.as_ref() == Some(it));
        // Without a run, the cancel withdraws the prompts whose files are being read.
        let withdraws_all = cancel.waiting || (cancel.target.is_none() && active.is_none());
        let is_target = |it: &RequestId| !stops && cancel.target.as_ref() == Some(it);
        let mut withdrawn = self.drop_file_reads(|it| withdraws_all || is_target(&it.request.id));
        if let Some((live, _)) = self.live(now) {
            let mut submits = Vec::new();
            if cancel.waiting {
                submits.extend(live.run.take_joining());
                submits.extend(std::mem::take(&mut live.waiting));
            }
            if let Some(target) = cancel.target.as_ref().filter(|_| !stops) {
                submits.extend(live.withdraw(target));
            }
            withdrawn.extend(submits.into_iter().map(|submit| submit.request));
        }
        let client_error = match &cancel.target {
            Some(target) if !stops && !withdrawn.contains(target) => Some(no_such_request(target)),
            None if active.is_none() && !cancel.waiting && withdrawn.is_empty() => {
                Some(no_active_request())
            }
            Some(_) | None => None,
        };
        if let Some(client_error) = client_error {
            self.recorder.error(Some(id), client_error);
        }
        self.recorder.done(Some(id), Done::Ok);
        for request in withdrawn {
            self.recorder.done(Some(&request), Done::Stopped);
        }
        if stops {
            let reason = format!("cancelled by request {}", id.as_str());
            self.stop(now, Stop { reason, error: None });
            self.next(now);
        }
    }

    fn switch_model(&mut self, id: &RequestId, choice: &ModelChoice) {
        self.recorder.turn_on(Extension::SwitchModel);
        if let Some(active) = self.active_request() {
            let client_error = busy_for(NotQueued::SwitchModel, active);
            return self.recorder.refuse(Some(id), client_error);
        }
        match self.models.switch(choice) {
            Ok(switched) => {
                self.unannounced.retain(|(of, _)| *of != Extension::SwitchModel);
                let choices = Some(self.choices().into());
                let switched = SessionEvent::ModelSwitched { model: switched, choices };
                self.recorder.record_of_session(Some(id), switched);
                self.recorder.done(Some(id), Done::Ok);
            }
            Err(why) => {
                self.recorder.refuse(Some(id), invalid_settings(why));
                self.announce_late();
            }
        }
    }

    fn declare_tools(&mut self, id: &RequestId, manifest: ToolManifest) {
        self.recorder.turn_on(Extension::ClientTools);
        self.held_tools = None;
        let tools = self.offer(manifest);
        let choices = Some(self.choices().into());
        let declared = SessionEvent::ToolsDeclared { tools, choices };
        self.recorder.record_of_session(Some(id), declared);
        self.recorder.done(Some(id), Done::Ok);
    }

    /// Declares these tools of the client; returns the event that reports it.
    pub(super) fn offer(&mut self, manifest: ToolManifest) -> FrontendToolManifestUpdated {
        let ToolManifest { tools, message } = manifest;
        self.toolbox.declare(tools);
        self.declared = Some(message.clone());
        FrontendToolManifestUpdated { tools: message.tools, revision: message.revision }
    }

    /// Handles a message of the client about a tool call: the request is answered before the run continues.
    fn answer(
        &mut self,
        now: Uptime,
        id: &RequestId,
        call: &ToolCallId,
        take: impl FnOnce(&mut Run, &mut Context<'_>) -> Result<(), ClientError>,
    ) {
        let taken = match self.live(now) {
            Some((live, mut context)) => take(&mut live.run, &mut context),
            None => Err(unknown_tool_call(call)),
        };
        match taken {
            Ok(()) => self.recorder.done(Some(id), Done::Ok),
            Err(client_error) => return self.recorder.refuse(Some(id), client_error),
        }
        self.advance(now, |run, context| run.after_tools(context));
    }
}
