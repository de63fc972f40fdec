//! Prompts that come while a run goes on, and become part of it at its next boundary.

use super::{Context, Run};
use crate::conversation::event::Event;
use crate::conversation::ui::{correlation, user_message_id};
use crate::protocol::id::RequestId;
use crate::protocol::proto::session::SteeringAccepted;
use crate::protocol::wire::Done;
use crate::session::waiting::Submit;
use crate::support::text::Text;
use std::collections::VecDeque;

impl Run {
    /// A submit joins at the next boundary.
    pub(in crate::session) fn join(&mut self, submit: Submit) {
        self.joining.push_back(submit);
    }

    pub(in crate::session) fn joining(&self) -> &VecDeque<Submit> {
        &self.joining
    }

    /// Takes the submits that have not joined.
    pub(in crate::session) fn take_joining(&mut self) -> VecDeque<Submit> {
        std::mem::take(&mut self.joining)
    }

    /// Takes the submit of that request, if it has not joined.
    pub(in crate::session) fn withdraw(&mut self, request: &RequestId) -> Option<Submit> {
        let at = self.joining.iter().position(|submit| submit.request == *request)?;
        self.joining.remove(at)
    }

    /// Prompts that have come for this run become part of it. Their requests end here.
    pub(super) fn take_in_prompts(&mut self, context: &mut Context<'_>) {
        for Submit { request, prompt, attachments, .. } in std::mem::take(&mut self.joining) {
            let number = self.prompts + 1;
            let prompt = Text::from(prompt.into_string());
            self.record(context.recorder, Event::PromptJoined { prompt, attachments, number });
            let accepted = SteeringAccepted {
                message_id: user_message_id(&self.id().root(), number),
                target_request_id: self.request.as_str().to_owned(),
                correlation: Some(correlation(context.recorder.session(), self.scope)),
            };
            context.recorder.show_to(&request, accepted.into());
            context.recorder.done(Some(&request), Done::Ok);
        }
    }
}
