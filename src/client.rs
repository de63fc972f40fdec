//! Conversations for Rust programs, each held by the program duologue in a process of its own:
//!
//! ```no_run
//! # use duologue::client::{Any, Duologue};
//! # async fn example() -> Result<(), duologue::client::Error> {
//! let chat = Duologue::builder().store("chat.db").session("ada").start().await?;
//! println!("{}", chat.run("What is a duologue?").await?.text);
//! let mut events = chat.stream("Explain it to a child.");
//! while let Some(event) = events.next().await {
//!     if let Some(Any::ChatTextPatch(patch)) = event?.payload { print!("{}", patch.text); }
//! }
//! # Ok(())
//! # }
//! ```
//!
//! | to | use |
//! |---|---|
//! | start a conversation, or go on with a stored one | [`Duologue::builder`], whose [`Builder`] has the options, and [`Builder::start`] |
//! | get an answer: its text, calls of tools, usage, and whether it was stopped or cut off | [`Duologue::run`], an [`Answer`] |
//! | get it as it is generated | [`Duologue::stream`], a [`Stream`] of [`Event`]s, each with its message as an [`Any`] |
//! | get a value of a type | [`Duologue::ask`], a [`Typed`] value of a type that has a schema ([`HasSchema`]) |
//! | send files, settings or a schema with a prompt | [`Prompt`] |
//! | stop a run | drop its future or its [`Stream`]; [`Stream::cancel`], [`Duologue::cancel`] |
//! | add a prompt to a run | [`Stream::steer`] |
//! | have the model call functions | [`Tool`] and [`Builder::tool`]; their calls are [`ToolCall`]s of the [`Answer`] |
//! | decide about tools of servers | [`Approval`] and [`Builder::approve`]; without it, calls are denied |
//! | say what becomes of a prompt while a run is active | [`OnBusy`] |
//! | read the conversation | [`Duologue::snapshot`], [`Duologue::history`]; a [`Snapshot`] has [`Entity`]s |
//! | change its end, or copy it | [`Duologue::regenerate`], [`Duologue::replace`], [`Duologue::drop_last_turn`], [`Duologue::fork`] |
//! | make room in a long conversation | [`Duologue::compact`] |
//! | go on after a crash | [`Duologue::reconnect`], which returns each [`Change`] that was not shown |
//! | hear what belongs to no request, as a store that fails | [`Builder::on_notice`] |
//! | know what went wrong | [`Error`]; a [`Refused`] has the server's code and message |
//! | end the process | [`Duologue::close`], or drop the last [`Duologue`] |
//!
//! Everything needs a Tokio runtime with I/O and time; one thread is enough.
//!
//! - The program is the one of [`Builder::binary`], of the variable `DUOLOGUE_BIN`, or the one on the `PATH`.
//! - A [`Stream`] that is dropped before its end stops its run; so does a future of [`Duologue::run`]. The next prompt
//!   waits until that run has ended. A run that was stopped is an [`Answer`], not an error.
//! - Any number of requests may be in flight, from clones of one [`Duologue`], and each gets its own frames.
//! - A stream that is not read holds the process back, unless something else waits for frames.
//! - The process ends with the last [`Duologue`], with the runtime, and with the program, also if that is killed.
//!   Ctrl-C at a terminal does not reach it.
//! - Events, fields and entities of a later version of the program are kept: [`Event::raw`] and [`Entity::raw`]
//!   have them.
//!
//! `clients/README.md` has the rules that the client libraries of all languages keep, and `examples/client.rs` a
//! program.

// One task owns the process and reads its frames; a `Duologue` and a `Stream` only send to it and receive from it.
//
// `process` is the program and its pipes, `lines` splits what it writes, `driver` is the task and `link` what sends
// to it, `request` what waits for a `done`, `answer` the result of a run, `tools` functions that the model may
// call.

mod answer;
mod builder;
mod driver;
mod error;
mod event;
mod lines;
mod link;
mod process;
mod request;
mod stream;
mod tools;

pub use crate::protocol::any::Any;
pub use answer::{Answer, ToolCall, Typed};
pub use builder::{Builder, OnBusy};
pub use error::{Error, Refused};
pub use event::{Entity, Event, Snapshot};
pub use stream::Stream;
pub use tools::{Approval, HasSchema, Tool};

use crate::protocol::any::Struct;
use crate::protocol::attachment::is_path;
use crate::protocol::constants::{code, kind};
use crate::protocol::proto::chat::ChatAttachment;
use crate::protocol::proto::rpc::edit_request::Edit;
use crate::protocol::proto::rpc::rpc_request_line::Request as Body;
use crate::protocol::proto::rpc::{
    CancelRequest, CompactRequest, DropLastTurn, EditRequest, Regenerate, ReplacePrompt,
    SnapshotRequest, SubmitPromptRequest, SwitchModelRequest,
};
use driver::Order;
use link::{Link, Shared, lock};
use request::Ended;
use serde_json::{Map, Value};
use std::collections::HashSet;
use std::future::pending;
use std::sync::{Arc, Mutex};
use tokio::sync::watch;

/// A conversation that a process holds. Clones are the same conversation, and the process ends with the last of them.
#[derive(Clone, Debug)]
pub struct Duologue {
    held: Arc<Held>,
    options: Builder,
}

/// What the clones of a [`Duologue`] have in common.
#[derive(Debug)]
struct Held {
    /// To the process, or to one that has ended, until a reconnect.
    link: Mutex<Arc<Link>>,
    /// Locked during a reconnect.
    reconnect: tokio::sync::Mutex<Reconnect>,
    /// Calls of [`Duologue::close`]; it changes while the link is locked.
    closes: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct Reconnect {
    /// What was known when the process ended, until a reconnect has succeeded.
    unresumed: Option<Shared>,
    /// What the last one gave, for those who asked for it at the same time.
    changes: Vec<Change>,
}

impl Held {
    fn new(link: Arc<Link>) -> Self {
        let (reconnect, closes) = Default::default();
        Self { link: Mutex::new(link), reconnect, closes }
    }
}

/// A prompt, and how it is to be answered.
#[derive(Clone, Debug, Default)]
pub struct Prompt {
    submit: SubmitPromptRequest,
}

impl<T: Into<String>> From<T> for Prompt {
    fn from(text: T) -> Self {
        Self { submit: SubmitPromptRequest { prompt: text.into(), ..Default::default() } }
    }
}

impl Prompt {
    /// Attaches a file, by its URL or path, which is one from the folder that the program has now.
    #[must_use]
    pub fn attach(self, url: impl Into<String>) -> Self {
        let url = own_place(url.into());
        self.attachment(ChatAttachment { url, ..Default::default() })
    }

    /// Attaches what the message says.
    #[must_use]
    pub fn attachment(mut self, attachment: ChatAttachment) -> Self {
        self.submit.attachments.push(attachment);
        self
    }

    /// Settings for this turn alone, as `model` or `temperature`.
    #[must_use]
    pub fn settings(mut self, settings: Map<String, Value>) -> Self {
        self.submit.settings = Some(struct_of(settings));
        self
    }

    /// The JSON Schema of the answer, whose values are then in [`Answer::values`].
    #[must_use]
    pub fn schema(mut self, schema: Map<String, Value>) -> Self {
        self.submit.response_schema = Some(struct_of(schema));
        self
    }
}

/// A path is made absolute by the folder of the program: the process may have another.
fn own_place(place: String) -> String {
    let absolute = || std::path::absolute(&place).ok()?.into_os_string().into_string().ok();
    match is_path(&place) {
        true => absolute().unwrap_or(place),
        false => place,
    }
}

/// What has changed in a conversation while no process held it.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// The entity, as it is now.
    pub entity: Entity,
    /// The part of its text that was not shown before.
    pub text: String,
}

impl Duologue {
    /// The options of a conversation, each with a default.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// Starts the process with the options of [`Builder::default`].
    ///
    /// # Errors
    /// As [`Builder::start`].
    pub async fn start() -> Result<Self, Error> {
        Builder::default().start().await
    }

    /// The id of the session.
    pub fn session_id(&self) -> String {
        self.link().shared().session.clone()
    }

    /// The capabilities that the process has, as its `hello` says.
    pub fn capabilities(&self) -> Vec<String> {
        self.link().shared().capabilities.clone()
    }

    /// The conversation that the process began with, in a stored session.
    pub fn initial(&self) -> Option<Snapshot> {
        self.link().shared().initial.clone()
    }

    /// Ordinal of the last event that was received.
    pub fn ordinal(&self) -> u64 {
        self.link().shared().ordinal
    }

    /// The id of the process.
    pub fn process_id(&self) -> Option<u32> {
        self.link().process
    }

    /// The end of what the process has written to standard error.
    pub fn stderr(&self) -> String {
        self.link().stderr()
    }

    /// Asks the model, and returns what the run came to. If the future is dropped, the run is stopped.
    ///
    /// # Errors
    /// If the run fails. One that was stopped is an [`Answer`] with that status.
    pub async fn run(&self, prompt: impl Into<Prompt>) -> Result<Answer, Error> {
        self.stream(prompt).finish().await
    }

    /// Asks the model for a value of a type.
    ///
    /// # Errors
    /// As [`Self::run`], [`Error::Answer`] if the answer is no such value, and [`Error::Stopped`] if the run was
    /// stopped.
    pub async fn ask<T: HasSchema>(&self, prompt: impl Into<Prompt>) -> Result<Typed<T>, Error> {
        let answer = self.run(prompt.into().schema(T::schema())).await?;
        answer.typed()
    }

    /// As [`Self::run`], with the events as they come. The prompt is sent when the first of them is awaited.
    pub fn stream(&self, prompt: impl Into<Prompt>) -> Stream {
        self.begin(Body::Submit(prompt.into().submit))
    }

    /// Drops the last answer, and asks its prompt again.
    pub fn regenerate(&self) -> Stream {
        self.edit(Edit::Regenerate(Regenerate {}))
    }

    /// Drops the turn that the prompt `message_id` began and all after it, and asks another prompt in its place.
    pub fn replace(&self, message_id: impl Into<String>, prompt: impl Into<String>) -> Stream {
        let (message_id, prompt) = (message_id.into(), prompt.into());
        self.edit(Edit::Replace(ReplacePrompt { message_id, prompt, ..Default::default() }))
    }

    /// Drops the last prompt and its answer.
    ///
    /// # Errors
    /// If there is none, or a run is active.
    pub async fn drop_last_turn(&self) -> Result<(), Error> {
        self.edit(Edit::DropLastTurn(DropLastTurn {})).ended().await.map(drop)
    }

    /// Stops the active run, whoever has started it; false if there is none.
    ///
    /// # Errors
    /// If the process has ended.
    pub async fn cancel(&self) -> Result<bool, Error> {
        self.link().stop(None);
        self.cancel_run(CancelRequest::default()).await
    }

    /// The conversation, or what the request asks for: what changed after an event, or a page.
    ///
    /// # Errors
    /// If the process has ended.
    pub async fn snapshot(&self, of: SnapshotRequest) -> Result<Snapshot, Error> {
        let ended = self.request(Body::Snapshot(of)).await?;
        Ok(ended.snapshot.unwrap_or_default())
    }

    /// All messages, tool calls and results, oldest first, and then compactions and calls that wait for approval.
    /// They are asked for in pages.
    ///
    /// # Errors
    /// If the process has ended.
    pub async fn history(&self) -> Result<Vec<Entity>, Error> {
        let limit = self.options.page_entities;
        let (mut pages, mut pages_apart) = (Vec::new(), Vec::new());
        let mut known = HashSet::new();
        let mut before_ordinal = 0;
        loop {
            let of = SnapshotRequest { limit, before_ordinal, since_ordinal: 0 };
            let page = self.snapshot(of).await?.entities;
            let (mut apart, counted): (Vec<_>, Vec<_>) = page.into_iter().partition(is_apart);
            // Several pages may have one that is apart.
            apart.retain(|entity| known.insert((entity.kind.clone(), entity.id.clone())));
            let is_last = counted.len() < limit as usize;
            before_ordinal = counted.first().map_or(0, |entity| entity.created_ordinal);
            pages.push(counted);
            pages_apart.push(apart);
            if is_last || before_ordinal == 0 {
                let oldest_first = pages.into_iter().rev().chain(pages_apart.into_iter().rev());
                return Ok(oldest_first.flatten().collect());
            }
        }
    }

    /// Chooses what answers from the next prompt on.
    ///
    /// # Errors
    /// If there is no such model, or a run is active.
    pub async fn switch_model(&self, to: SwitchModelRequest) -> Result<(), Error> {
        self.request(Body::SwitchModel(to)).await.map(drop)
    }

    /// Has the model sent a summary in place of the earlier turns, which people see as before. The instructions say
    /// what the summary should keep, and `keep_turns` how many of the last turns are sent as they are; 0: as many as
    /// have room. The stream has `CompactionStarted` and `Compacted`; with [`Stream::finish`] alone,
    /// [`Builder::on_notice`] gets them.
    pub fn compact(&self, instructions: impl Into<String>, keep_turns: u32) -> Stream {
        let instructions = instructions.into();
        self.begin(Body::Compact(CompactRequest { instructions, keep_turns, decline: false }))
    }

    /// Sends any request, and waits for its `done`. Its events go to [`Builder::on_notice`], but for those of a
    /// prompt. If the future is dropped, a run that the request has begun is stopped.
    ///
    /// # Errors
    /// If it is refused, or the process has ended.
    pub async fn send(&self, body: Body) -> Result<(), Error> {
        self.begin(body).ended().await.map(drop)
    }

    /// A conversation, not started, that is a copy of this stored one, or of its first `turns`.
    ///
    /// # Errors
    /// If this one is not stored, or can't be copied.
    pub async fn fork(&self, turns: Option<u32>) -> Result<Builder, Error> {
        let session = self.session_id();
        let copy = process::fork(&self.options, &session, turns).await?;
        Ok(self.options.clone().session(copy))
    }

    /// Restarts the process after it has ended, for all clones, and resumes the stored session. Returns the changes
    /// since the last event that was received; concurrent calls return the same changes. Requests that were in
    /// flight are not sent again.
    ///
    /// # Errors
    /// If the process runs, the conversation has no store or no name, or it can't be opened; [`Error::Closed`] if it
    /// was closed meanwhile.
    pub async fn reconnect(&self) -> Result<Vec<Change>, Error> {
        if !self.options.is_stored() {
            return Err(Error::Misuse(
                "a conversation without a store and `session` can't go on in another process",
            ));
        }
        let closes = self.held.closes.subscribe();
        let asked = self.link();
        let mut reconnect = self.held.reconnect.lock().await;
        let link = self.link();
        let has_ended = link.failure().is_some();
        // What an attempt that failed was to show is still to be shown.
        let before = match &reconnect.unresumed {
            Some(before) => before.clone(),
            None if has_ended => link.shared().clone(),
            None if Arc::ptr_eq(&asked, &link) => {
                return Err(Error::Misuse("the process runs, and needs no other in its place"));
            }
            None => return Ok(reconnect.changes.clone()),
        };
        reconnect.unresumed = Some(before.clone());
        if has_ended {
            link.ended().await;
            self.connect_again(closes).await?;
        }
        let since_ordinal = before.ordinal;
        let changed =
            self.snapshot(SnapshotRequest { since_ordinal, ..Default::default() }).await?;
        let unseen = |entity: Entity| Change { text: before.unseen(&entity), entity };
        let changes: Vec<_> = changed.entities.into_iter().map(unseen).collect();
        *reconnect = Reconnect { unresumed: None, changes: changes.clone() };
        Ok(changes)
    }

    /// Starts another process, unless the conversation is closed.
    async fn connect_again(&self, mut closes: watch::Receiver<u64>) -> Result<(), Error> {
        let closed = async { drop(closes.changed().await) };
        let link = self.options.connect(closed).await?;
        let is_closed = {
            let mut held = lock(&self.held.link);
            let is_closed = closes.has_changed().unwrap_or(true);
            if !is_closed {
                *held = Arc::clone(&link);
            }
            is_closed
        };
        if is_closed {
            link.order(Order::Close);
            link.ended().await;
            return Err(Error::Closed);
        }
        Ok(())
    }

    /// Stops what runs, and ends the process: shutdown, SIGTERM, SIGKILL. Nothing is left running. A reconnect of a
    /// clone that is under way fails with [`Error::Closed`].
    pub async fn close(self) {
        let link = {
            let link = lock(&self.held.link);
            self.held.closes.send_modify(|closes| *closes += 1);
            Arc::clone(&link)
        };
        link.order(Order::Close);
        link.ended().await;
        // A reconnect ends the process that it has started.
        drop(self.held.reconnect.lock().await);
    }

    fn link(&self) -> Arc<Link> {
        Arc::clone(&lock(&self.held.link))
    }

    fn edit(&self, edit: Edit) -> Stream {
        self.begin(Body::Edit(EditRequest { edit: Some(edit) }))
    }

    fn begin(&self, body: Body) -> Stream {
        Stream::new(self.link(), body)
    }

    async fn cancel_run(&self, cancel: CancelRequest) -> Result<bool, Error> {
        match self.request(Body::Cancel(cancel)).await {
            Ok(_) => Ok(true),
            Err(error) if error.code() == code::NO_ACTIVE_REQUEST => Ok(false),
            Err(error) => Err(error),
        }
    }

    async fn request(&self, body: Body) -> Result<Ended, Error> {
        self.link().request(body).await
    }
}

/// Whether an entity comes after the others of a page, and does not count for its limit.
fn is_apart(entity: &Entity) -> bool {
    matches!(entity.kind.as_str(), kind::COMPACTION | kind::TOOL_APPROVAL)
}

/// A JSON object as the protocol has it.
fn struct_of(members: Map<String, Value>) -> Struct {
    serde_json::from_value(Value::Object(members)).unwrap_or_default()
}

impl Builder {
    /// Starts the process, and checks what it is. Where no provider is configured, and nobody has chosen the built-in
    /// engine, this answers, and a warning of `tracing` says so; with `--require-provider` among the
    /// [`args`](Self::args) it is an [`Error::Config`].
    ///
    /// # Errors
    /// If there is no program, it is too old, it does not begin in time, or its command line or store is refused.
    pub async fn start(mut self) -> Result<Duologue, Error> {
        self.settle()?;
        let link = self.connect(pending()).await?;
        Ok(Duologue { held: Arc::new(Held::new(link)), options: self })
    }

    fn is_stored(&self) -> bool {
        self.store_path().is_some() && self.session.is_some()
    }
}
