//! The requests of clients: a request that was seen before is not run again, and a request beyond a limit is refused.

use super::{Conversation, Sent};
use crate::protocol::command::{Command, Enable, Page};
use crate::protocol::event_filter::EventFilter;
use crate::protocol::id::{RequestId, SessionId};
use crate::protocol::wire::{self, BadLine, ClientError, Code, Done, Frame, Request};
use crate::serve::client::{Asked, ClientId, ReplayWith};
use crate::serve::refusal::Refusal;
use crate::serve::request_log::Seen;
use crate::serve::tenants::{MemoryReservation, RETRY_AFTER};
use crate::serve::visible::extensions_of;
use std::sync::Arc;
use tokio::sync::Semaphore;
use tokio::time::Instant;

impl Conversation {
    pub(super) fn asked(&mut self, sent: Sent) {
        let Sent { client, mut request, content, reservation, refused } = sent;
        self.idle_since = Instant::now();
        let id = match &request {
            Ok(request) => Some(request.id.clone()),
            Err(bad) => bad.id.clone(),
        };
        let Some(id) = id else { return };
        if let Some((refusal, _)) = &refused
            && !self.is_answered(&id, &request)
        {
            return self.refuse_to(client, &id, beyond_limit(refusal));
        }
        // The filter of events is for this client alone.
        let events = match &mut request {
            Ok(Request { command: Command::Enable(Enable { events, .. }), .. }) => events.take(),
            Ok(_) | Err(_) => None,
        };
        let is_new = self.is_new(client, &id, content, &request, events);
        // The request may begin a run, or have turned an extension on.
        self.note_answerers();
        if is_new {
            self.handle(client, id, &reservation, request);
        }
    }

    /// Whether a request was seen before, so that the client gets the frames that answer it.
    fn is_answered(&self, id: &RequestId, request: &Result<Request, BadLine>) -> bool {
        self.requests.is_open(id.as_str())
            || (self.requests.has_ended(id.as_str()) && !comes_again(request))
            || self.is_stored(request)
    }

    /// Whether the run of a request is in the stored log, so that the request was sent again.
    fn is_stored(&self, request: &Result<Request, BadLine>) -> bool {
        request
            .as_ref()
            .is_ok_and(|Request { id, command, .. }| self.host.has_answered(id, command))
    }

    /// Whether a request is to be handled. A request that was seen before is answered with the frames that came of it.
    fn is_new(
        &mut self,
        client: ClientId,
        id: &RequestId,
        content: u64,
        request: &Result<Request, BadLine>,
        events: Option<EventFilter>,
    ) -> bool {
        let at = self.log.end();
        let Self { session, clients, log, requests, .. } = self;
        let own = request.as_ref().ok().filter(|it| !is_for_another(it, session));
        let extensions = own.map(|it| extensions_of(&it.command)).unwrap_or_default();
        let asked = Asked { id: id.clone(), extensions };
        let mut seen = requests.arrived(id.as_str(), content, at);
        if own.is_none() && !matches!(seen, Seen::No) {
            // The request names another conversation or version, which its content does not tell.
            seen = Seen::Other;
        }
        let mut asker = clients.iter_mut().find(|it| it.id() == client);
        // A request that is refused changes nothing.
        if let (Some(_), Some(events), Some(asker)) = (own, events, &mut asker)
            && !matches!(seen, Seen::Other)
        {
            asker.show_events(events);
        }
        match (seen, asker) {
            // A client that has gone meanwhile may come back for the answer.
            (Seen::No, asker) => {
                if let Some(asker) = asker {
                    asker.on_request(asked, at);
                }
                true
            }
            (_, None) => false,
            (Seen::Other, Some(asker)) => {
                asker.refuse(refused(session, id, reused(id)));
                false
            }
            (Seen::Open { first }, Some(asker)) => {
                asker.on_resent_open(asked, first, log);
                false
            }
            (Seen::Ended(_), Some(asker)) if comes_again(request) => {
                asker.on_request(asked, at);
                requests.reopen(id.as_str(), at);
                true
            }
            (Seen::Ended(ended), Some(asker)) => {
                match asker.on_resent_ended(asked, &ended, log) {
                    ReplayWith::Frames => {}
                    ReplayWith::Snapshot => self.answer_with_snapshot(client, id, ended.last),
                }
                false
            }
        }
    }

    /// Shows a client the conversation as it is, and then the last frames of its request.
    fn answer_with_snapshot(
        &mut self,
        client: ClientId,
        request: &RequestId,
        last: Vec<Arc<Frame>>,
    ) {
        let own = self.next_own();
        if let Some(client) = self.client(client) {
            client.replay_after_snapshot(own.clone(), request.clone(), last);
        }
        self.ask(own, Command::Snapshot(Page::default()));
    }

    fn handle(
        &mut self,
        client: ClientId,
        id: RequestId,
        reservation: &MemoryReservation,
        request: Result<Request, BadLine>,
    ) {
        let is =
            |wanted: fn(&Command) -> bool| request.as_ref().is_ok_and(|it| wanted(&it.command));
        let is_prompt = is(|it| matches!(it, Command::Submit(_)));
        let may_run =
            is(|it| matches!(it, Command::Submit(_) | Command::Edit(_) | Command::Compact(_)));
        if request.as_ref().is_ok_and(|it| is_for_another(it, &self.session)) {
            let message = mismatch(&self.session);
            return self.refuse(&id, Code::SessionMismatch, &message);
        }
        if is(|it| matches!(it, Command::Shutdown)) {
            return self.shut_down(client, id);
        }
        let is_leaving = self.client(client).is_some_and(|it| it.is_shutting_down());
        if is_prompt && is_leaving {
            let message =
                "the client has asked for a shutdown and can't submit any more; attach again";
            return self.refuse(&id, Code::ShuttingDown, message);
        }
        if may_run && !self.is_stored(&request) {
            if let Err(refusal) = self.check_room() {
                return self.refuse(&id, Code::ResourceExhausted, &refusal.message);
            }
            // The attachments of the request become a part of the conversation.
            self.requests.says(id.as_str(), reservation.bytes());
            let client = self.clients.iter().find(|it| it.id() == client);
            if let (Some(spans), Some(client)) = (&mut self.spans, client) {
                spans.asked(id.as_str(), client.parent());
            }
        }
        if may_run && self.run_span.is_none() {
            self.enter(id.as_str());
        }
        if is(|it| !extensions_of(it).is_empty()) {
            self.invalidate_snapshot();
        }
        let span = tracing::error_span!("request", request = id.as_str());
        let effects = span.in_scope(|| self.host.decoded(request));
        self.perform(effects);
    }

    /// Whether a run may begin, beside the others of the node and of its tenant.
    fn check_room(&mut self) -> Result<(), Refusal> {
        self.tenant.check_bytes()?;
        if self.permits.is_empty() {
            let acquire = |runs: &Arc<Semaphore>| Arc::clone(runs).try_acquire_owned();
            let acquired: Result<Vec<_>, _> = self.runs.iter().map(acquire).collect();
            self.permits = acquired.unwrap_or_default();
        }
        let why = "as many runs go on as the node, or the tenant, may have at once (--max-runs, --tenant-runs); nothing \
                   was run: send the request again a little later";
        match self.permits.is_empty() {
            false => Ok(()),
            true => Err(self.tenant.beyond(why, RETRY_AFTER)),
        }
    }

    /// A client wants to end. The conversation goes on for the others.
    fn shut_down(&mut self, client: ClientId, id: RequestId) {
        // The end of the client answers the request.
        self.show(wire::frame(&self.session, Some(&id), wire::done(Done::Shutdown)), true);
        if let Some(client) = self.client(client) {
            client.shut_down(id);
        }
    }

    /// Answers a request that the session does not get.
    fn refuse(&mut self, id: &RequestId, code: Code, message: &str) {
        for frame in refused(&self.session, id, client_error(code, message.to_owned())) {
            self.show(frame, false);
        }
    }

    /// Answers a request of which nothing is noted, so that it may come again.
    fn refuse_to(&mut self, client: ClientId, id: &RequestId, error: ClientError) {
        let frames = refused(&self.session, id, error);
        // A client that has left needs no answer.
        if let Some(client) = self.client(client) {
            client.refuse(frames);
        }
    }

    pub(super) fn next_own(&mut self) -> RequestId {
        let id = self.host.fresh_id();
        self.own.insert(id.as_str().to_owned());
        id
    }

    pub(super) fn ask_own(&mut self, command: Command) {
        let id = self.next_own();
        self.ask(id, command);
    }

    pub(super) fn ask(&mut self, id: RequestId, command: Command) {
        let effects = self.host.decoded(Ok(Request { session: None, id, command }));
        self.perform(effects);
    }
}

/// Whether a request names another conversation than this one.
fn is_for_another(request: &Request, own: &SessionId) -> bool {
    request.session.as_ref().is_some_and(|named| named != own)
}

/// Why a request for another conversation is not handled.
fn mismatch(own: &SessionId) -> String {
    let own = own.as_str();
    format!(
        "the request names another conversation than the one that it was sent to, {own:?}, so it was not handled; leave \
         sessionId out, or send it to the address of the other conversation, over HTTP, or in a stream that attaches to \
         that one"
    )
}

/// Whether a request that has ended is handled once more: a request that only reads is asked for again, and a shutdown
/// may be of another client than before.
fn comes_again(request: &Result<Request, BadLine>) -> bool {
    matches!(request, Ok(Request { command: Command::Snapshot(_) | Command::Shutdown, .. }))
}

/// The error of a request whose id another request had.
fn reused(id: &RequestId) -> ClientError {
    let message = format!(
        "the conversation has had a request with the id {} that asks for something else, so this one was not handled; \
         send it with an id of its own",
        id.as_str()
    );
    client_error(Code::RequestIdReused, message)
}

fn beyond_limit(refusal: &Refusal) -> ClientError {
    client_error(Code::ResourceExhausted, refusal.message.clone())
}

fn client_error(code: Code, message: String) -> ClientError {
    ClientError { code, message, detail: String::new(), terminal: false }
}

/// The last frames of a request that is refused.
fn refused(session: &SessionId, id: &RequestId, error: ClientError) -> [Frame; 2] {
    let bodies = [wire::error(error), wire::done(Done::Failed)];
    bodies.map(|body| wire::frame(session, Some(id), body))
}
