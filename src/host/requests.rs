//! Requests on their way to the session: a line is decoded, the files that a prompt names are read,
//! and the engines of a profile are made known.

use super::{Effects, Host, attachments, hints};
use crate::protocol::command::{Command, ModelChoice};
use crate::protocol::id::RequestId;
use crate::protocol::wire::{self, BadLine, Request, RequestFault};
use crate::session::{Input, panic_text};
use crate::support::terminal::escape_control;
use std::panic::{AssertUnwindSafe, catch_unwind};

impl Host {
    /// Handles a request line, without its line end. A line that is no request is answered as well.
    pub fn line(&mut self, line: &[u8]) -> Effects {
        let Self { ids, decode_fault, supervisor, .. } = self;
        let decoding = AssertUnwindSafe(|| {
            decode_fault.step();
            let request = wire::decode(line, || ids.request())?;
            attachments::read(request, || supervisor.attached_bytes())
        });
        let input = match catch_unwind(decoding) {
            Ok(Ok(request)) => {
                self.hint(line, &request);
                self.prepare_engine(&request);
                Input::Request(request)
            }
            Ok(Err(bad)) => Input::BadLine(bad),
            Err(panic) => Input::BadLine(wire::unreadable(line, panic_text(panic.as_ref()))),
        };
        self.handle(input)
    }

    /// Handles a request that has no id yet; returns the id that its frames carry.
    pub fn request(&mut self, command: Command) -> (RequestId, Effects) {
        let id = self.ids.request();
        let request = Request { session: None, id: id.clone(), command };
        let reading =
            AssertUnwindSafe(|| attachments::read(request, || self.supervisor.attached_bytes()));
        let input = match catch_unwind(reading) {
            Ok(Ok(request)) => {
                self.prepare_engine(&request);
                Input::Request(request)
            }
            Ok(Err(bad)) => Input::BadLine(bad),
            Err(panic) => {
                let fault = RequestFault::Internal { detail: panic_text(panic.as_ref()) };
                Input::BadLine(BadLine { id: Some(id.clone()), fault })
            }
        };
        (id, self.handle(input))
    }

    /// Reports members of a submit that look like settings and are ignored.
    fn hint(&mut self, line: &[u8], request: &Request) {
        if !matches!(request.command, Command::Submit(_)) {
            return;
        }
        for name in hints::misplaced(line, &mut self.hinted) {
            tracing::warn!(
                "submit has a member {name:?}, which is ignored; settings of a turn stand in \
                 submit.settings"
            );
        }
    }

    /// Adds the engines that are named, or those of profiles, once a request names one; reports once
    /// what of a profile does not apply.
    fn prepare_engine(&mut self, request: &Request) {
        if let Some(choice) = request.command.choice() {
            self.prepare_choice(choice);
        }
    }

    /// The same, for a choice that was stored.
    pub(super) fn prepare_choice(&mut self, choice: &ModelChoice) {
        let (facts, notes) = self.engines.prepare(choice);
        if let Some(session) = self.supervisor.session_mut() {
            facts.into_iter().for_each(|facts| session.know(facts));
        }
        notes.iter().for_each(|note| tracing::warn!("{}", escape_control(note)));
    }
}
