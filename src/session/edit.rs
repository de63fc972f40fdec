//! Changes of the end of the conversation: turns are dropped, and a prompt is asked again or another in
//! its place. Nothing is taken out of the log.

use super::client_error::{
    NotQueued, busy_for, lost_attachments, nothing_to_ask, too_many_attachments, unknown_message,
};
use super::recorder::Recorder;
use super::waiting::{Submit, TurnChoice};
use super::{Session, Uptime};
use crate::conversation::event::{Attachments, Event, Scope};
use crate::conversation::timeline::LastTurns;
use crate::conversation::transcript::{Transcript, TurnItem};
use crate::protocol::attachment::{ATTACHMENTS_MAX, Attachment};
use crate::protocol::command::{Edit, Extension, Prompt, Replacement};
use crate::protocol::id::{RequestId, RunId};
use crate::protocol::wire::{ClientError, Done};
use std::collections::VecDeque;

/// The prompt of a turn, with its attachments.
struct Asked {
    prompt: Prompt,
    attachments: Attachments,
}

impl Session {
    pub(super) fn edit(&mut self, now: Uptime, request: RequestId, edit: Edit) {
        self.recorder.turn_on(Extension::Edit);
        if matches!(&edit, Edit::Replace(replacement) if !replacement.attachments.is_empty()) {
            self.recorder.turn_on(Extension::Attachments);
        }
        if let Some(live) = self.phase.active() {
            let client_error = busy_for(NotQueued::Edit, live.run.request());
            return self.recorder.refuse(Some(&request), client_error);
        }
        match self.recorder.edited(edit) {
            Err(client_error) => self.recorder.refuse(Some(&request), client_error),
            Ok((first, None)) => {
                self.recorder.drop_turns(&request, first, self.ids.run());
                self.recorder.done(Some(&request), Done::Ok);
            }
            Ok((first, Some(Asked { prompt, attachments }))) => {
                let choice = TurnChoice::default();
                let submit = Submit { request, prompt, attachments, choice, joins: None };
                let tokens = |whole: &Transcript| whole.without(first).tokens();
                let Some(submit) = self.affordable_after(submit, tokens) else { return };
                self.recorder.drop_turns(&submit.request, first, self.ids.run());
                self.start(now, submit, VecDeque::new());
            }
        }
    }
}

impl Recorder {
    /// The first turn that is dropped, and what is asked then.
    ///
    /// # Errors
    /// If there is no such turn, or its prompt can't be asked again. Nothing was changed.
    fn edited(&self, edit: Edit) -> Result<(u32, Option<Asked>), ClientError> {
        let last = || self.last_turn().ok_or_else(|| unknown_message(None));
        let edited = match edit {
            Edit::DropLastTurn => (last()?, None),
            Edit::Regenerate => {
                let first = last()?;
                (first, Some(self.asked_with_joined(first)?))
            }
            Edit::Replace(Replacement { message_id, prompt, attachments, removed }) => {
                let first = self.projections.timeline.turn_of_prompt(&message_id);
                let first = first.ok_or_else(|| unknown_message(Some(&message_id)))?;
                let attachments = match (attachments.is_empty(), removed.is_empty()) {
                    (true, true) => self.asked(first)?.attachments,
                    _ => changed(&self.asked(first)?.attachments, attachments, &removed)?,
                };
                if prompt.len_bytes() == 0 && attachments.is_empty() {
                    return Err(nothing_to_ask());
                }
                (first, Some(Asked { prompt, attachments }))
            }
        };
        let has_lost = |asked: &Asked| asked.attachments.iter().any(Attachment::is_lost);
        match edited.1.as_ref().is_some_and(has_lost) {
            true => Err(lost_attachments("the store has lost the bytes of one of them")),
            false => Ok(edited),
        }
    }

    /// Number of the last turn, whether people or the model know of it.
    pub(super) fn last_turn(&self) -> Option<u32> {
        let of_model = self.projections.transcript.last_number();
        of_model.into_iter().chain(self.projections.timeline.last_turn_number()).max()
    }

    /// What that turn was asked. The model's side of the conversation has the attachments; of a turn that
    /// failed without an answer it keeps nothing once another has begun.
    fn asked(&self, turn: u32) -> Result<Asked, ClientError> {
        let prompt = |text: &str| Prompt::new(text.to_owned()).unwrap_or_else(Prompt::nothing);
        if let Some(turn) = self.projections.transcript.turn(turn) {
            let attachments = turn.attachments.clone();
            return Ok(Asked { prompt: prompt(&turn.prompt), attachments });
        }
        let shown =
            self.projections.timeline.first_prompt(turn).ok_or_else(|| unknown_message(None))?;
        match shown.has_attachments {
            true => Err(lost_attachments("its run failed without an answer")),
            false => {
                let attachments = Attachments::default();
                Ok(Asked { prompt: prompt(&shown.text), attachments })
            }
        }
    }

    /// What that turn was asked, with the prompts that joined it as paragraphs.
    ///
    /// # Errors
    /// If it can't be asked again.
    fn asked_with_joined(&self, turn: u32) -> Result<Asked, ClientError> {
        let Asked { prompt, mut attachments } = self.asked(turn)?;
        let mut texts = vec![prompt.into_string()];
        // The model's side of the turn has prompts that nobody wrote, too, for answers of the right form.
        texts.extend(self.projections.timeline.joined_prompts(turn).map(|text| text.to_string()));
        let items = self.projections.transcript.turn(turn).into_iter().flat_map(|it| &it.items);
        for item in items {
            if let TurnItem::Prompt(_, joined) = item
                && !joined.is_empty()
            {
                attachments = changed(&attachments, joined.to_vec(), &[])?;
            }
        }
        texts.retain(|text| !text.trim().is_empty());
        let prompt = Prompt::new(texts.join("\n\n")).unwrap_or_else(Prompt::nothing);
        Ok(Asked { prompt, attachments })
    }

    /// Drops the turns from that number on. `spare` is the run of the event if people see none of them.
    fn drop_turns(&mut self, request: &RequestId, first: u32, spare: RunId) {
        let LastTurns { message_ids, tool_call_ids, mut turns } =
            self.projections.timeline.turns_from(first);
        turns.extend(self.projections.transcript.numbers_from(first));
        let run = message_ids.first().and_then(|id| RunId::of_root(id)).unwrap_or(spare);
        let scope = Scope { run, turn: first, call: 0 };
        let turns = turns.into_iter().collect();
        self.record(request, scope, Event::TurnDropped { message_ids, tool_call_ids, turns });
    }
}

/// The attachments `old` without those that are `removed`, and the `new` ones, each with an id of its own.
///
/// # Errors
/// If they are too many for a prompt.
fn changed(
    old: &Attachments,
    new: Vec<Attachment>,
    removed: &[String],
) -> Result<Attachments, ClientError> {
    let stays = |attachment: &&Attachment| !removed.contains(&attachment.shown.attachment_id);
    let mut all: Vec<_> = old.iter().filter(stays).cloned().collect();
    for mut attachment in new {
        let is_taken = |id: &str| all.iter().any(|other| other.shown.attachment_id == id);
        if is_taken(&attachment.shown.attachment_id) {
            let mut ids = (1..).map(|number: u32| format!("attachment-{number}"));
            attachment.shown.attachment_id = ids.find(|id| !is_taken(id)).unwrap_or_default();
        }
        all.push(attachment);
    }
    match all.len() > ATTACHMENTS_MAX {
        true => Err(too_many_attachments(all.len())),
        false => Ok(all.into()),
    }
}
