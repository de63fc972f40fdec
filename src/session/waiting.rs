//! The active run and the submits that wait: for their turn, or to join the run.

use super::Extraction;
use super::model::Selection;
use super::run::Run;
use crate::conversation::event::Attachments;
use crate::protocol::attachment::{Attachment, Content};
use crate::protocol::command::Prompt;
use crate::protocol::id::RequestId;
use std::collections::VecDeque;

/// Submits that may wait for their turn. Past that they are refused, and input is read on: a run may
/// wait for an answer in it.
pub(super) const QUEUED_SUBMITS_MAX: usize = 10_000;

/// Bytes of prompts that may wait for their turn; past that, submits are refused.
pub(super) const QUEUED_BYTES_MAX: usize = 16 * 1024 * 1024;

/// The active run and the submits that wait for it.
#[derive(Clone, Debug)]
pub(super) struct ActiveRun {
    pub(super) run: Run,
    /// Empty unless submits may wait.
    pub(super) waiting: VecDeque<Submit>,
}

#[derive(Clone, Debug)]
pub(super) struct Submit {
    pub(super) request: RequestId,
    pub(super) prompt: Prompt,
    pub(super) attachments: Attachments,
    pub(super) choice: TurnChoice,
    /// The request whose run it is to join.
    pub(super) joins: Option<RequestId>,
}

/// The choices of a submit for its turn.
#[derive(Clone, Debug, Default)]
pub(super) struct TurnChoice {
    /// The model and settings; `None` for those of the session.
    pub(super) selection: Option<Selection>,
    /// The extraction from the answer; `None` for that of the session.
    pub(super) extraction: Option<Extraction>,
}

impl TurnChoice {
    /// Whether the turn has the model, the settings and the extraction of the session.
    pub(super) fn is_of_session(&self) -> bool {
        self.selection.is_none() && self.extraction.is_none()
    }
}

impl ActiveRun {
    /// Whether a submit that names `target` joins this run: not one that only compacts.
    pub(super) fn is_joined_by(&self, target: &RequestId) -> bool {
        self.run.is_turn() && self.run.request() == target
    }

    /// Whether the submit of that request waits for a turn of its own: not one that is to join another that waits.
    pub(super) fn has_waiting(&self, request: &RequestId) -> bool {
        let is_there = |id: &RequestId| self.waiting.iter().any(|submit| submit.request == *id);
        let joins_none = |submit: &Submit| !submit.joins.as_ref().is_some_and(is_there);
        self.waiting.iter().any(|submit| submit.request == *request && joins_none(submit))
    }

    pub(super) fn has_room(&self) -> bool {
        let (count, bytes) = self
            .all_waiting()
            .fold((0, 0), |(count, bytes), submit| (count + 1, bytes + submit.len_bytes()));
        count < QUEUED_SUBMITS_MAX && bytes < QUEUED_BYTES_MAX
    }

    /// Bytes of the attachments of submits that wait.
    pub(super) fn attached_bytes(&self) -> u64 {
        let attached = self.all_waiting().flat_map(|submit| submit.attachments.iter());
        attached.map(Attachment::len_bytes).sum()
    }

    /// Submits that wait to join the run or to follow it.
    fn all_waiting(&self) -> impl Iterator<Item = &Submit> {
        self.run.joining().iter().chain(&self.waiting)
    }

    pub(super) fn into_waiting(mut self) -> Vec<Submit> {
        let joining = self.run.take_joining();
        joining.into_iter().chain(self.waiting).collect()
    }

    /// Removes the submit of that request from the queue.
    pub(super) fn withdraw(&mut self, request: &RequestId) -> Option<Submit> {
        let at = self.waiting.iter().position(|submit| submit.request == *request);
        match at {
            Some(at) => self.waiting.remove(at),
            None => self.run.withdraw(request),
        }
    }
}

impl Submit {
    fn len_bytes(&self) -> usize {
        let attached = attached_bytes(&self.attachments);
        self.prompt.len_bytes() + self.request.as_str().len() + attached
    }
}

/// Bytes of the attachments that have been read.
pub(super) fn attached_bytes(attachments: &[Attachment]) -> usize {
    let of_attachment = |attachment: &Attachment| match &attachment.content {
        Content::Data(data) => data.len(),
        Content::Url(url) => url.len(),
        Content::File(_) | Content::Resource(_) | Content::Lost { .. } => 0,
    };
    attachments.iter().map(of_attachment).sum()
}
