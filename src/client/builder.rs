//! The options of a conversation.

use super::error::Error;
use super::event::Event;
use super::process;
use super::tools::{Approval, Approve, Tool};
use crate::protocol::proto::tools::ToolApprovalRequested;
use std::env;
use std::ffi::{OsStr, OsString};
use std::fmt::{self, Debug};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// The extensions that this client uses.
const EXTENSIONS: &str = "approvals,client-tools,edit,history,retries,settings,steer,store,structured,switch-model,\
                          targeted-cancel,timing,tool-servers,usage";

/// Bytes of the longest frame that is read.
const LINE_BYTES_MAX: usize = 256 * 1024 * 1024;

/// Entities that a history asks for at a time.
const PAGE_ENTITIES: u32 = 500;

/// The variable of the program that says where conversations are stored.
const STORE_VARIABLE: &str = "DUOLOGUE_STORE";

/// What belongs to no request: an event of the session, or an error of its store.
pub(super) type OnNotice = Arc<dyn Fn(Result<Event, Error>) + Send + Sync>;

/// What becomes of a prompt while a run is active.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnBusy {
    /// It is refused with [`Error::Busy`].
    #[default]
    Reject,
    /// It waits for its turn.
    Queue,
}

/// The options of a conversation. [`Builder::start`] starts its process.
#[derive(Clone)]
pub struct Builder {
    pub(super) binary: Option<PathBuf>,
    pub(super) store: Option<PathBuf>,
    pub(super) session: Option<String>,
    named: Vec<(&'static str, OsString)>,
    args: Vec<OsString>,
    pub(super) env: Vec<(OsString, OsString)>,
    pub(super) folder: Option<PathBuf>,
    pub(super) tools: Vec<Tool>,
    pub(super) approve: Option<Approve>,
    pub(super) approve_time: Duration,
    pub(super) on_notice: Option<OnNotice>,
    pub(super) on_busy: OnBusy,
    pub(super) start_time: Duration,
    pub(super) close_time: Duration,
    pub(super) cancel_time: Duration,
    pub(super) line_bytes_max: usize,
    pub(super) page_entities: u32,
}

impl Default for Builder {
    fn default() -> Self {
        Self {
            binary: None,
            store: None,
            session: None,
            named: Vec::new(),
            args: Vec::new(),
            env: Vec::new(),
            folder: None,
            tools: Vec::new(),
            approve: None,
            approve_time: Duration::from_secs(3600),
            on_notice: None,
            on_busy: OnBusy::default(),
            start_time: Duration::from_secs(30),
            close_time: Duration::from_secs(5),
            cancel_time: Duration::from_secs(10),
            line_bytes_max: LINE_BYTES_MAX,
            page_entities: PAGE_ENTITIES,
        }
    }
}

impl Debug for Builder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The environment may have keys.
        let Self { binary, store, session, .. } = self;
        f.debug_struct("Builder")
            .field("binary", binary)
            .field("store", store)
            .field("session", session)
            .finish_non_exhaustive()
    }
}

impl Builder {
    /// The program; otherwise that of the variable `DUOLOGUE_BIN`, or the one on the `PATH`.
    #[must_use]
    pub fn binary(mut self, path: impl Into<PathBuf>) -> Self {
        self.binary = Some(path.into());
        self
    }

    /// Where the conversation is stored; otherwise where the variable `DUOLOGUE_STORE` says.
    #[must_use]
    pub fn store(mut self, path: impl Into<PathBuf>) -> Self {
        self.store = Some(path.into());
        self
    }

    /// The name of the conversation, which begins or goes on.
    #[must_use]
    pub fn session(mut self, name: impl Into<String>) -> Self {
        self.session = Some(name.into());
        self
    }

    /// The engine that answers.
    #[must_use]
    pub fn engine(self, name: impl AsRef<OsStr>) -> Self {
        self.named("engine", name)
    }

    /// The model that answers.
    #[must_use]
    pub fn model(self, name: impl AsRef<OsStr>) -> Self {
        self.named("model", name)
    }

    /// The profile with the settings.
    #[must_use]
    pub fn profile(self, name: impl AsRef<OsStr>) -> Self {
        self.named("profile", name)
    }

    /// The system prompt.
    #[must_use]
    pub fn system(self, prompt: impl AsRef<OsStr>) -> Self {
        self.named("system", prompt)
    }

    /// Further options of `duologue rpc`.
    #[must_use]
    pub fn args<T: Into<OsString>>(mut self, args: impl IntoIterator<Item = T>) -> Self {
        self.args.extend(args.into_iter().map(Into::into));
        self
    }

    /// A variable of the process, beside those of this one, of which `DUOLOGUE_EVENTS` and `DUOLOGUE_PATCH_MODE` are
    /// left out.
    #[must_use]
    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.env.push((name.into(), value.into()));
        self
    }

    /// The folder of the process; by default the one that the program has at the start, also for a process that is
    /// started later.
    #[must_use]
    pub fn folder(mut self, path: impl Into<PathBuf>) -> Self {
        self.folder = Some(path.into());
        self
    }

    /// A function that the model may call.
    #[must_use]
    pub fn tool(mut self, tool: Tool) -> Self {
        self.tools.push(tool);
        self
    }

    /// Decides about calls of tool servers. Without it they are denied.
    #[must_use]
    pub fn approve<F, R>(mut self, decide: F) -> Self
    where
        F: Fn(ToolApprovalRequested) -> R + Send + Sync + 'static,
        R: Future<Output = Approval> + Send + 'static,
    {
        self.approve = Some(Arc::new(move |asked| Box::pin(decide(asked))));
        self
    }

    /// How long a decision may take.
    #[must_use]
    pub fn approve_time(mut self, time: Duration) -> Self {
        self.approve_time = time;
        self
    }

    /// Is given events that are no part of an answer and in no stream (of the session, of edits, of a change of the
    /// model or of a compaction), and errors of the store. A panic in it is reported as any other, and the
    /// conversation goes on.
    #[must_use]
    pub fn on_notice(
        mut self,
        notice: impl Fn(Result<Event, Error>) + Send + Sync + 'static,
    ) -> Self {
        self.on_notice = Some(Arc::new(notice));
        self
    }

    /// What becomes of a prompt while a run is active.
    #[must_use]
    pub fn on_busy(mut self, on_busy: OnBusy) -> Self {
        self.on_busy = on_busy;
        self
    }

    /// How long the process may take to begin.
    #[must_use]
    pub fn start_time(mut self, time: Duration) -> Self {
        self.start_time = time;
        self
    }

    /// How long the process may take to end, before SIGTERM.
    #[must_use]
    pub fn close_time(mut self, time: Duration) -> Self {
        self.close_time = time;
        self
    }

    /// How long a prompt waits for the end of a run that was stopped.
    #[must_use]
    pub fn cancel_time(mut self, time: Duration) -> Self {
        self.cancel_time = time;
        self
    }

    /// Bytes of the longest frame that is read. One that is longer fails its request.
    #[must_use]
    pub fn line_bytes_max(mut self, bytes: usize) -> Self {
        self.line_bytes_max = bytes;
        self
    }

    /// Most entities that [`Duologue::history`](super::Duologue::history) asks for at a time; 500 by default, and at
    /// least 1.
    #[must_use]
    pub fn page_entities(mut self, entities: u32) -> Self {
        self.page_entities = entities.max(1);
        self
    }

    /// Where the conversation is stored: what was said, or what the variable says that the process has.
    pub(super) fn store_path(&self) -> Option<PathBuf> {
        let of_process = || {
            let own = self.env.iter().rev().find(|(name, _)| name == STORE_VARIABLE);
            own.map(|(_, value)| value.clone()).or_else(|| env::var_os(STORE_VARIABLE))
        };
        let from_variable = || of_process().filter(|value| !value.is_empty()).map(PathBuf::from);
        self.store.clone().or_else(from_variable)
    }

    /// Finds the program and the folder of the process, which are to be the same when it is started again: this
    /// program may have another folder by then, and relative paths are from the first.
    pub(super) fn settle(&mut self) -> Result<(), Error> {
        self.binary = Some(process::find(self.binary.as_deref())?);
        // The program's may be gone.
        if let Ok(own) = env::current_dir() {
            self.folder = Some(match &self.folder {
                Some(folder) => own.join(folder),
                None => own,
            });
        }
        Ok(())
    }

    fn named(mut self, option: &'static str, value: impl AsRef<OsStr>) -> Self {
        self.named.retain(|(name, _)| *name != option);
        self.named.push((option, value.as_ref().to_owned()));
        self
    }

    /// The options of `duologue rpc`.
    pub(super) fn arguments(&self) -> Vec<OsString> {
        let on_busy = match self.on_busy {
            OnBusy::Reject => "reject",
            OnBusy::Queue => "queue",
        };
        let own = [
            ("on-busy", on_busy),
            ("final-snapshot", "none"),
            ("approval", "ask"),
            ("extensions", EXTENSIONS),
        ];
        let own = own.into_iter().map(|(name, value)| (name, OsString::from(value)));
        let store = self.store.iter().map(|path| ("store", path.clone().into_os_string()));
        let session = self.session.iter().map(|name| ("session", OsString::from(name)));
        let all = own.chain(store).chain(session).chain(self.named.iter().cloned());
        let mut args: Vec<_> = all
            .map(|(name, value)| {
                // One argument, so that no value is taken for an option.
                let mut arg = OsString::from(format!("--{name}="));
                arg.push(value);
                arg
            })
            .collect();
        args.extend(self.args.iter().cloned());
        args
    }
}
