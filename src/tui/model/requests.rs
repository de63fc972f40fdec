//! What the person asks for, from the key to the last frame of the request.

use super::edits;
use super::{Action, Note, Piece, State};
use crate::protocol::command::{Decision, Edit};
use crate::protocol::proto::rpc::ErrorFrame;
use crate::protocol::words::{code, done};

/// A request.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Outgoing {
    /// A prompt; with the run that it joins.
    Submit {
        prompt: String,
        joins: Option<String>,
    },
    /// Stop a run or take back a prompt that waits.
    Cancel {
        target: Option<String>,
    },
    Approve {
        call: String,
        decision: Decision,
    },
    SwitchModel {
        profile: String,
        model: String,
    },
    /// Drop the end of the conversation, and perhaps ask again.
    Edit(Edit),
}

/// A prompt that waits for its turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Waiting {
    /// The request.
    pub(crate) id: String,
    pub(crate) prompt: String,
    /// It joins the run that goes on.
    pub(crate) joins: bool,
}

impl State {
    /// Asks the model; `joins`: as part of the run that goes on, if there is one.
    pub(super) fn submit(&mut self, prompt: String, joins: bool) -> Vec<Action> {
        let joins = self.run.as_ref().filter(|_| joins).map(|run| run.request.clone());
        let is_new = self.history.add(&prompt);
        let mut actions = vec![Action::Request(Outgoing::Submit { prompt: prompt.clone(), joins })];
        if is_new {
            actions.push(Action::Remember(prompt));
        }
        actions.push(Action::Scroll(super::Scroll::End));
        actions
    }

    /// Stops the run and takes back what waits.
    pub(super) fn cancel(&mut self) -> Vec<Action> {
        let waiting = std::mem::take(&mut self.waiting);
        let mut actions: Vec<_> = waiting.iter().map(|it| cancel(&it.id)).collect();
        // Each is put before what is written, so the last comes first.
        for waiting in waiting.into_iter().rev() {
            self.give_back(waiting.prompt);
        }
        if let Some(run) = &mut self.run {
            run.is_stopping = true;
            actions.push(cancel(&run.request));
        }
        actions
    }

    /// Takes the prompt that waits last back into the editor.
    pub(super) fn take_back(&mut self) -> Vec<Action> {
        let Some(waiting) = self.waiting.pop() else { return Vec::new() };
        let action = cancel(&waiting.id);
        self.give_back(waiting.prompt);
        vec![action]
    }

    /// A prompt that was not answered goes back to where it was written.
    pub(super) fn give_back(&mut self, prompt: String) {
        self.history.leave();
        let written = self.editor.take();
        let is_kept = !written.trim().is_empty();
        self.editor.set(if is_kept { format!("{prompt}\n{written}") } else { prompt });
    }

    /// A request was made.
    pub(super) fn sent(&mut self, outgoing: Outgoing, id: String) {
        match outgoing {
            Outgoing::Submit { prompt, joins } => {
                self.waiting.push(Waiting { id, prompt, joins: joins.is_some() });
            }
            Outgoing::Cancel { .. }
            | Outgoing::Approve { .. }
            | Outgoing::SwitchModel { .. }
            | Outgoing::Edit(_) => self.quiet.push((id, outgoing)),
        }
    }

    /// An error of a request, or of none.
    pub(super) fn failed(&mut self, request: &str, error: &ErrorFrame) {
        let outgoing = self.quiet.iter().find(|(id, _)| id == request).map(|(_, it)| it);
        // A run may end while its cancel or an approval is on its way.
        let is_late = matches!(outgoing, Some(Outgoing::Cancel { .. } | Outgoing::Approve { .. }))
            && [code::NO_ACTIVE_REQUEST, code::UNKNOWN_TOOL_CALL].contains(&error.code.as_str());
        if is_late {
            return;
        }
        if matches!(outgoing, Some(Outgoing::Edit(_)))
            && let Some(text) = edits::failure(error)
        {
            return self.note(Note::Error, text.to_owned());
        }
        let detail = error.detail.trim();
        // The detail of a failed run begins with a word for programs.
        let detail = detail.split_once(": ").map_or(detail, |(_, rest)| rest);
        let is_said = detail.is_empty() || error.message.contains(detail);
        let text = match is_said {
            true => error.message.clone(),
            false => format!("{} ({detail})", error.message),
        };
        self.note(Note::Error, text);
    }

    /// The last frame of a request.
    pub(super) fn done(&mut self, request: &str, status: &str) {
        let refused = self.quiet.extract_if(.., |(id, _)| id == request).next();
        if let Some((_, Outgoing::Edit(Edit::Replace { prompt, .. }))) = refused
            && status == done::FAILED
        {
            self.give_back(prompt.into_string());
        }
        if let Some(at) = self.waiting.iter().position(|it| it.id == request) {
            let waiting = self.waiting.remove(at);
            // A prompt that has joined a run ends with it.
            if status == done::FAILED {
                self.give_back(waiting.prompt);
            }
        }
        if self.run.as_ref().is_some_and(|run| run.request == request) {
            self.end_run(status);
        }
    }

    /// The prompt was accepted: it waits no longer.
    pub(super) fn accepted(
        &mut self,
        request: &str,
        message_id: String,
        text: String,
        attachments: Vec<String>,
    ) {
        self.waiting.retain(|it| it.id != request);
        self.quiet.retain(|(id, _)| id != request);
        self.keep_prompt(message_id, &text);
        self.print(Piece::Prompt { text, attachments });
    }
}

fn cancel(id: &str) -> Action {
    Action::Request(Outgoing::Cancel { target: Some(id.to_owned()) })
}
