//! Requests on their way to the session: a line is decoded, attachments that are no files are checked,
//! and the engines of a profile are made known; then it waits for the files of the request before it.

#[cfg(feature = "serve")]
use super::ServersStart;
use super::{Effects, Host, attachments, misplaced};
use crate::protocol::attachment::Attachment;
use crate::protocol::command::{Command, ModelChoice};
use crate::protocol::id::{RequestId, TaskId};
use crate::protocol::wire::{self, BadLine, Request, RequestFault};
use crate::session::{Input, Session, SessionMode, panic_text};
use crate::support::terminal::escape_control;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Inputs that wait for the store to be opened, or for files to be read.
const WAITING_INPUTS_MAX: usize = 256;

impl Host {
    /// Whether the host takes another request now.
    pub fn wants_input(&self) -> bool {
        let has_room = self.waiting.len() < WAITING_INPUTS_MAX && !self.persist_gate.is_behind();
        self.is_open() && has_room
    }

    /// Whether the conversation has not ended.
    pub(super) fn is_open(&self) -> bool {
        self.supervisor.session().is_some_and(Session::is_open)
    }

    /// Handles a request line, without its line end. A line that is no request is answered as well.
    pub fn line(&mut self, line: &[u8]) -> Effects {
        let Self { ids, decode_fault, .. } = self;
        let decoding = AssertUnwindSafe(|| {
            decode_fault.step();
            wire::decode(line, || ids.request())
        });
        let request = catch_unwind(decoding)
            .unwrap_or_else(|panic| Err(wire::unreadable(line, panic_text(panic.as_ref()))));
        if let Ok(request) = &request {
            self.warn_of_misplaced(line, request);
        }
        self.decoded(request)
    }

    /// Handles a request that has no id yet; returns the id that its frames carry.
    pub fn request(&mut self, command: Command) -> (RequestId, Effects) {
        let id = self.ids.request();
        let request = Request { session: None, id: id.clone(), command };
        (id, self.decoded(Ok(request)))
    }

    /// An id for a request of the front end.
    #[cfg(feature = "serve")]
    pub(crate) fn fresh_id(&mut self) -> RequestId {
        self.ids.request()
    }

    /// Handles a request that was decoded elsewhere, or what came in the place of one.
    pub(crate) fn decoded(&mut self, request: Result<Request, BadLine>) -> Effects {
        let id = request.as_ref().ok().map(|request| request.id.clone());
        let (policy, held_bytes) = (self.file_reads.policy(), || self.supervisor.attached_bytes());
        let checking = AssertUnwindSafe(|| attachments::check(request?, policy, held_bytes));
        let input = match catch_unwind(checking) {
            Ok(Ok(request)) => {
                self.prepare_engine(&request);
                #[cfg(feature = "serve")]
                self.prepare_servers(&request);
                Input::Request(request)
            }
            Ok(Err(bad)) => Input::BadLine(bad),
            Err(panic) => {
                let fault = RequestFault::Internal { detail: panic_text(panic.as_ref()) };
                Input::BadLine(BadLine { id, fault })
            }
        };
        self.handle(input)
    }

    /// Reports members of a submit that look like settings and are ignored.
    fn warn_of_misplaced(&mut self, line: &[u8], request: &Request) {
        if !matches!(request.command, Command::Submit(_)) {
            return;
        }
        for name in misplaced::members(line, &mut self.reported_members) {
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

    /// Like `prepare_engine`, for a choice that was stored.
    pub(super) fn prepare_choice(&mut self, choice: &ModelChoice) {
        let (facts, notes) = self.engines.prepare(choice);
        if let Some(session) = self.supervisor.session_mut() {
            facts.into_iter().for_each(|facts| session.know(facts));
        }
        notes.iter().for_each(|note| tracing::warn!("{}", escape_control(note)));
    }

    /// From here on tool servers wait for the first request that needs one: many conversations are only watched.
    #[cfg(feature = "serve")]
    pub(crate) fn start_servers_with_prompt(&mut self) {
        self.servers_start = ServersStart::WithPrompt;
    }

    /// Has tool servers start for a request that may begin a run.
    #[cfg(feature = "serve")]
    fn prepare_servers(&mut self, request: &Request) {
        let is_prompt = matches!(request.command, Command::Submit(_) | Command::Edit(_));
        if is_prompt && self.servers_start == ServersStart::WithPrompt {
            self.servers_start = ServersStart::Due;
        }
    }

    /// Whether an input has to wait for its turn.
    pub(super) fn must_wait(&self) -> bool {
        self.is_opening() || self.file_reads.hold_up() || !self.waiting.is_empty()
    }

    /// The effects of the next input that waited long enough.
    pub(super) fn take_waiting(&mut self) -> Option<Effects> {
        if self.is_opening() || self.file_reads.hold_up() {
            return None;
        }
        let input = self.waiting.pop_front()?;
        Some(self.take(input, None))
    }

    /// Handles an input that does not wait: those before it come first. While the store is not open yet, it won't be
    /// opened any more.
    pub(super) fn take_now(&mut self, input: Input) -> Effects {
        let waiting = std::mem::take(&mut self.waiting);
        let waiting: Vec<_> = if self.is_opening() {
            self.persist_gate.abandon();
            let is_answered = self.supervisor.mode() == SessionMode::Conversation;
            let fault = if let Input::Refused(why) = &input {
                RequestFault::NotBegun(Box::new(why.clone()))
            } else {
                RequestFault::Unhandled
            };
            let waiting = waiting.into_iter().filter(|_| is_answered);
            waiting.filter_map(|input| unhandled(input, &fault)).collect()
        } else {
            waiting.into()
        };
        let at = self.uptime();
        let inputs = waiting.into_iter().chain([input]);
        let effects = inputs.flat_map(|input| self.take(input, None).list);
        Effects { at, list: effects.collect() }
    }

    /// The files of a request have been read. The conversation may hold more by now than when it was asked.
    pub(super) fn files_read(
        &mut self,
        task: TaskId,
        outcome: Result<Vec<Attachment>, String>,
    ) -> Effects {
        let held_bytes = self.supervisor.attached_bytes();
        let outcome = outcome.and_then(|read| {
            attachments::check_sizes(&read, held_bytes)?;
            Ok(read)
        });
        self.take(Input::FilesRead(task, outcome), None)
    }
}

/// What is left of an input that waits for a store which is not opened any more: a request that was read has an answer.
fn unhandled(input: Input, fault: &RequestFault) -> Option<Input> {
    if let Input::Request(request) = input {
        return Some(Input::BadLine(BadLine { id: Some(request.id), fault: fault.clone() }));
    }
    matches!(input, Input::BadLine(_)).then_some(input)
}
