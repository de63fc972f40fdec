//! The task of one conversation: owns its host and its dialog, and passes on what it has to write. It ends
//! alone: whatever happens in it touches no other session.

use super::dialog::{Beginning, CommandLine, Dialog, Order};
use super::jsonrpc::{Id, RpcError};
use super::prompts::{Draft, Ready};
use super::queue::Batch;
use super::services::{Opened, Opening, Services};
use crate::host::{Effects, Host};
use crate::session::{Input, Signal, panic_text};
use crate::support::sleep_until;
use crate::support::terminal::escape_control;
use crate::support::threads;
use crate::task::prompt::NamedPrompt;
use crate::tool::elicitation::{Askable, Elicitation, Question, Questions};
use serde_json::Value;
use std::collections::BTreeMap;
use std::future::{pending, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use tokio::task::yield_now;
use tokio::time::Instant;

/// Bytes of a session that wait to be written; from there on its engine is not polled.
const SESSION_BYTES_MAX: usize = 64 * 1024;

/// Engine events that are handled before messages of the client are looked at again.
const EVENTS_AT_ONCE_MAX: usize = 64;

/// How long a client waits for the answer to `session/new`, which has what can be chosen if the settings
/// are there by then.
const ANSWER_MAX: Duration = Duration::from_secs(1);

/// How long the client's buffers are waited for; then the files are read.
const BUFFERS_MAX: Duration = Duration::from_secs(10);

/// A message for a session.
#[derive(Clone, Debug)]
pub(super) enum Mail {
    Request(Request),
    /// A request to open the session in another folder than it has, or with other servers.
    Reopen(Request),
    /// The response to a request to the client.
    Response(i64, Result<Value, RpcError>),
    Cancel,
    CancelRequest(Id),
    /// The session is to end.
    End(Option<Signal>),
}

impl Request {
    fn is_opening(&self) -> bool {
        ["session/load", "session/resume"].contains(&self.method.as_str())
    }
}

/// What a session writes.
#[derive(Debug)]
pub(super) struct Packet {
    pub(super) number: i64,
    pub(super) batch: Batch,
    pub(super) rest: Rest,
}

/// What follows a packet of a session.
#[derive(Debug)]
pub(super) enum Rest {
    More,
    /// Nothing. These requests for the session came while it ended, and are for the next one of its id.
    Nothing(Vec<Request>),
}

/// A request of the client for a session.
#[derive(Clone, Debug)]
pub(super) struct Request {
    pub(super) id: Id,
    pub(super) method: String,
    pub(super) params: Value,
}

/// The way out for the messages of a session.
#[derive(Clone, Debug)]
pub(super) struct Outlet {
    pub(super) packets: mpsc::Sender<Packet>,
    /// Bytes that wait in all sessions.
    pub(super) backlog: Arc<AtomicUsize>,
}

/// A result of a thread.
enum Found {
    Opened(Result<Box<Opened>, String>),
    Prepared(Result<Ready, RpcError>),
}

/// What a session waits for.
enum Event {
    Mail(Mail),
    /// A thread has ended; `None` if it has panicked.
    Found(Option<Found>),
    Clock,
    Asked(Elicitation),
    /// Nobody waits for the answer to the question of this number.
    Unasked(u64),
    Effects(Effects),
}

pub(super) struct Session {
    number: i64,
    dialog: Dialog,
    folder: PathBuf,
    host: Option<Box<Host>>,
    services: Arc<Services>,
    mail: mpsc::UnboundedReceiver<Mail>,
    outlet: Outlet,
    /// Bytes that the backlog has of this session.
    counted: usize,
    /// Requests to open the session that came while it ended.
    late: Vec<Request>,
    /// A signal that the host is given after the choices which wait for the end of a run.
    signal: Option<Signal>,
    found: Option<oneshot::Receiver<Found>>,
    /// When `session/new` is answered whatever is known.
    answer_at: Option<Instant>,
    buffers_until: Option<Instant>,
    /// What the client can ask for MCP servers, and their questions.
    askable: Askable,
    questions: Option<mpsc::Receiver<Elicitation>>,
    /// The servers that wait for an answer, by the numbers of their questions.
    answers: BTreeMap<u64, oneshot::Sender<Value>>,
    questions_asked: u64,
}

impl Session {
    pub(super) fn new(
        beginning: Beginning,
        opening: Opening,
        services: Arc<Services>,
        mail: mpsc::UnboundedReceiver<Mail>,
        outlet: Outlet,
    ) -> Self {
        let (number, folder) = (beginning.number, beginning.folder.clone());
        let askable = beginning.client.askable;
        let mut session = Self {
            number,
            dialog: Dialog::new(beginning),
            folder,
            host: None,
            services,
            mail,
            outlet,
            counted: 0,
            late: Vec::new(),
            signal: None,
            found: None,
            answer_at: Some(Instant::now() + ANSWER_MAX),
            buffers_until: None,
            askable,
            questions: None,
            answers: BTreeMap::new(),
            questions_asked: 0,
        };
        let opener = Arc::clone(&session.services.opener);
        session.find(move || {
            let opened = opener(opening).map_err(|error| format!("{error:#}"));
            Found::Opened(opened.map(Box::new))
        });
        session
    }

    /// Holds the conversation to its end.
    pub(super) async fn hold(mut self) {
        loop {
            while let Some(order) = self.dialog.next_order() {
                self.perform(order);
            }
            self.dialog.tell_notices();
            self.count();
            if self.dialog.is_over() {
                return self.finish().await;
            }
            self.wait().await;
        }
    }

    /// Waits for one event and handles it: messages of the client come before the engine.
    async fn wait(&mut self) {
        let has_room = self.dialog.queue.bytes() < SESSION_BYTES_MAX;
        let has_items = !self.dialog.queue.is_empty();
        let answer_at = self.answer_at.filter(|_| self.dialog.awaits_settings());
        let wake_at = [answer_at, self.buffers_until].into_iter().flatten().min();
        let Self { dialog, mail, outlet, found, host, number, questions, answers, .. } = self;
        let event = tokio::select! {
            biased;
            mail = mail.recv() => Event::Mail(mail.unwrap_or(Mail::End(None))),
            permit = outlet.packets.reserve(), if has_items => {
                let batch = dialog.queue.take();
                // Without a permit nobody reads any more.
                if let Ok(permit) = permit {
                    permit.send(Packet { number: *number, batch, rest: Rest::More });
                }
                return;
            }
            found = finding(found) => Event::Found(found),
            () = sleep_until(wake_at) => Event::Clock,
            question = next_unasked(answers) => Event::Unasked(question),
            question = next_question(questions) => Event::Asked(question),
            effects = next(host, has_room) => Event::Effects(effects),
        };
        match event {
            Event::Mail(mail) => self.received(mail),
            Event::Found(found) => self.take(found),
            Event::Clock => self.look_at_clock(),
            Event::Asked(Elicitation::Completed { elicitation }) => {
                self.dialog.completed(&elicitation);
            }
            Event::Asked(Elicitation::Question(question)) => self.question(question),
            Event::Unasked(question) => {
                self.answers.remove(&question);
                self.dialog.unasked(question);
            }
            Event::Effects(effects) => {
                // Sessions whose engines never wait take turns.
                if self.went_on(effects) {
                    yield_now().await;
                }
            }
        }
    }

    fn question(&mut self, question: Question) {
        let Question { server, params, answer } = question;
        // The server may have taken it back meanwhile.
        if !answer.is_closed() {
            self.questions_asked += 1;
            self.answers.insert(self.questions_asked, answer);
            self.dialog.question(self.questions_asked, server.as_str(), params);
        }
    }

    /// Drops what servers want to know and was not asked yet, which answers it.
    fn drop_questions(&mut self) {
        while let Some(asking) = self.questions.as_mut().and_then(|it| it.try_recv().ok()) {
            match asking {
                Elicitation::Question(question) => drop(question),
                Elicitation::Completed { elicitation } => self.dialog.completed(&elicitation),
            }
        }
    }

    /// Returns whether the engine may have more at once.
    fn went_on(&mut self, effects: Effects) -> bool {
        self.show(effects);
        for _ in 0..EVENTS_AT_ONCE_MAX {
            let Some(effects) = self.host.as_mut().and_then(|host| host.try_next()) else {
                return false;
            };
            self.show(effects);
        }
        true
    }

    fn show(&mut self, effects: Effects) {
        if let Some(host) = &self.host {
            self.dialog.note_context(host.context_tokens());
            if self.dialog.shows_past() {
                self.dialog.note_images(host.results_with_images());
            }
        }
        self.dialog.effects(effects);
    }

    fn look_at_clock(&mut self) {
        let now = Instant::now();
        if self.answer_at.take_if(|at| *at <= now).is_some() && self.dialog.awaits_settings() {
            self.dialog.answer_opening();
        }
        if self.buffers_until.take_if(|at| *at <= now).is_some() {
            self.dialog.stop_fetching();
        }
    }

    fn received(&mut self, mail: Mail) {
        match mail {
            Mail::Request(request) if self.dialog.is_ending() && request.is_opening() => {
                self.late.push(request);
            }
            Mail::Request(Request { id, method, params }) => {
                self.dialog.request(id, &method, params);
            }
            Mail::Reopen(request) if self.dialog.is_ending() => self.late.push(request),
            Mail::Reopen(request) if self.dialog.can_be_opened_anew() => {
                self.dialog.end();
                self.late.push(request);
            }
            Mail::Reopen(Request { id, method, params }) => {
                self.dialog.stays_in_place();
                self.dialog.request(id, &method, params);
            }
            Mail::Response(id, response) => self.dialog.response(id, response),
            Mail::Cancel => self.dialog.cancel(),
            Mail::CancelRequest(id) => self.dialog.cancel_request(&id),
            Mail::End(signal) => {
                self.dialog.end();
                while let Some(order) = self.dialog.next_order() {
                    self.perform(order);
                }
                self.signal = self.signal.or(signal);
                if !self.dialog.awaits_end_of_run() {
                    self.pass_signal();
                }
            }
        }
    }

    /// The store is not waited for without limit from here on.
    fn pass_signal(&mut self) {
        if let Some(signal) = self.signal.take() {
            self.input(Input::Interrupted(signal));
        }
    }

    fn input(&mut self, input: Input) {
        if let Some(host) = &mut self.host {
            let effects = host.handle(input);
            self.show(effects);
        }
    }

    fn perform(&mut self, order: Order) {
        match order {
            Order::Request(command, purpose) => {
                if let Some(host) = &mut self.host {
                    let (id, effects) = host.request(command);
                    self.dialog.issued(purpose, id);
                    self.show(effects);
                }
            }
            Order::Prepare(draft, command) => self.prepare(draft, command),
            Order::AwaitBuffers => self.buffers_until = Some(Instant::now() + BUFFERS_MAX),
            Order::Answer(question, answer) => {
                // The server may have ended.
                self.answers.remove(&question).map(|to| to.send(answer));
            }
            Order::DropQuestions => self.drop_questions(),
            Order::End => {
                self.input(Input::InputEnded);
                self.pass_signal();
            }
        }
    }

    /// Looks at the files that a prompt names, and reads its command file.
    fn prepare(&mut self, draft: Box<Draft>, command: Option<CommandLine>) {
        let (services, folder) = (Arc::clone(&self.services), self.folder.clone());
        self.find(move || {
            let written = NamedPrompt { text: draft.text.clone(), ..NamedPrompt::default() };
            let named = match command {
                None => Ok(written),
                Some(CommandLine { line, rest }) => {
                    let named = (services.prompts)(&folder, &line);
                    let rest = if rest.trim().is_empty() { rest } else { format!("\n\n{rest}") };
                    named.map(|named| {
                        let NamedPrompt { text, warnings, read } = named.unwrap_or(written);
                        NamedPrompt { text: text + &rest, warnings, read }
                    })
                }
            };
            Found::Prepared(named.map_err(RpcError::failed).and_then(|named| ready(*draft, named)))
        });
    }

    /// Does `work` in a thread, which may wait for a slow disk.
    fn find(&mut self, work: impl FnOnce() -> Found + Send + 'static) {
        let (to, found) = oneshot::channel();
        self.found = Some(found);
        // One that was cancelled meanwhile needs no result.
        let work = move || drop(to.send(work()));
        if let Err(error) = threads::spawn("acp-session", work) {
            self.found = None;
            let why = error.to_string();
            match self.host {
                None => drop(self.dialog.opened(Err(why))),
                Some(_) => self.dialog.prepared(Err(RpcError::failed(why))),
            }
        }
    }

    fn take(&mut self, found: Option<Found>) {
        self.found = None;
        let defect = || "this met a defect of the program; please report it".to_owned();
        match found {
            Some(Found::Opened(opened)) => self.opened(opened.map(|opened| *opened)),
            Some(Found::Prepared(prompt)) => self.dialog.prepared(prompt),
            // The thread has panicked.
            None if self.host.is_none() => self.opened(Err(defect())),
            None => self.dialog.prepared(Err(RpcError::failed(defect()))),
        }
    }

    fn opened(&mut self, opened: Result<Opened, String>) {
        let Some(mut settings) = self.dialog.opened(opened) else { return };
        if self.askable != Askable::default() {
            let (questions, asked) = Questions::new(self.askable);
            settings.servers.ask_with(questions);
            self.questions = Some(asked);
        }
        match catch_unwind(AssertUnwindSafe(|| Host::new(settings))) {
            // The greeting says what is known already.
            Ok((host, _)) => self.host = Some(Box::new(host)),
            Err(panic) => drop(self.dialog.opened(Err(panic_text(panic.as_ref())))),
        }
    }

    /// Keeps the count of what waits.
    fn count(&mut self) {
        let bytes = self.dialog.queue.bytes();
        let backlog = &self.outlet.backlog;
        match bytes.checked_sub(self.counted) {
            Some(more) => backlog.fetch_add(more, Ordering::Relaxed),
            None => backlog.fetch_sub(self.counted - bytes, Ordering::Relaxed),
        };
        self.counted = bytes;
    }

    /// Closes what the host holds, and says what is left to say.
    async fn finish(mut self) {
        if let Some(mut host) = self.host.take() {
            let flushed = self.flush(false);
            tokio::join!(flushed, host.close());
        }
        self.mail.close();
        while let Ok(mail) = self.mail.try_recv() {
            self.received(mail);
        }
        self.dialog.closed();
        self.flush(true).await;
        self.count();
    }

    async fn flush(&mut self, is_last: bool) {
        loop {
            let is_empty = self.dialog.queue.is_empty();
            if is_empty && !is_last {
                return;
            }
            let Ok(permit) = self.outlet.packets.reserve().await else { return };
            let batch = self.dialog.queue.take();
            if is_last && self.dialog.queue.is_empty() {
                let rest = Rest::Nothing(std::mem::take(&mut self.late));
                permit.send(Packet { number: self.number, batch, rest });
                return;
            }
            permit.send(Packet { number: self.number, batch, rest: Rest::More });
        }
    }
}

/// Waits for the thread; `None` if it has panicked. For ever if there is none. Cancel-safe.
async fn finding(found: &mut Option<oneshot::Receiver<Found>>) -> Option<Found> {
    match found {
        Some(found) => found.await.ok(),
        None => pending().await,
    }
}

/// Waits until nobody waits for one of the answers any more, as its server has ended; returns its number.
/// Cancel-safe.
async fn next_unasked(answers: &mut BTreeMap<u64, oneshot::Sender<Value>>) -> u64 {
    poll_fn(|context| {
        let mut answers = answers.iter_mut();
        let unasked = answers
            .find_map(|(number, answer)| answer.poll_closed(context).is_ready().then_some(*number));
        unasked.map_or(Poll::Pending, Poll::Ready)
    })
    .await
}

/// Waits for a question of a server; for ever if none can be asked. Cancel-safe.
async fn next_question(questions: &mut Option<mpsc::Receiver<Elicitation>>) -> Elicitation {
    let question = match questions {
        Some(questions) => questions.recv().await,
        None => None,
    };
    match question {
        Some(question) => question,
        None => pending().await,
    }
}

/// The prompt `draft` with the text that its command file makes of it. Notices of that file are shown.
fn ready(draft: Draft, NamedPrompt { text, warnings, .. }: NamedPrompt) -> Result<Ready, RpcError> {
    let mut ready = draft.submit(text)?;
    ready.notices.extend(warnings.iter().map(|warning| escape_control(warning)));
    Ok(ready)
}

/// Waits for the host, once there is one. Cancel-safe.
async fn next(host: &mut Option<Box<Host>>, has_room: bool) -> Effects {
    match host {
        Some(host) => host.next(has_room).await,
        None => pending().await,
    }
}
