//! The store as one conversation sees it: one request at a time, and one report for each. It has no thread of its
//! own, and while nothing is asked of it nothing but the databases that it shares.

use super::database::{Database, Progress, SessionNumber};
use super::error::StoreError;
use super::loader::{self, Connections, Step};
use super::opening::{self, Opened, Opening, Prepared, Wait};
use super::place::StoreSettings;
use crate::conversation::log::{Record, Restored, StoreFailure, first_ordinal};
use crate::protocol::id::{Ordinal, SessionId};
use crate::protocol::wire::ClientError;
use crate::support::fail_point::{FailPoint, Faults, Place};
use crate::support::threads::NoThread;
use std::future::pending;
use std::sync::Arc;
use tokio::sync::oneshot;

/// What the store is to do.
#[derive(Debug)]
pub(crate) enum Request {
    /// Open the databases, so that it is known whether they can be used. The session has no name yet.
    Prepare,
    /// Lock the session, and load it if it goes on.
    Open(SessionId),
    /// Store these records, all or none.
    Write(Vec<Record>),
    /// Release the session, and close the databases unless other conversations use them.
    Close,
}

/// What became of a request.
#[derive(Debug)]
pub(crate) enum Report {
    /// The databases are open, and the session is locked if it has a name; it goes on with this.
    Opened(Result<Option<Box<Restored>>, ClientError>),
    /// The records are stored.
    Written(Result<(), StoreFailure>),
    /// The session is released.
    Closed,
}

/// The store of a conversation. The session is released when this is dropped.
#[derive(Debug)]
pub(crate) struct SessionStore {
    settings: Arc<StoreSettings>,
    number: SessionNumber,
    batches: FailPoint,
    statements: FailPoint,
    /// Dropped before the session is released: a thread that is opening it then releases it as well.
    conversation: Option<Arc<()>>,
    databases: Databases,
    waiting: Waiting,
    /// The progress of the writers of its databases, also once they are to release the session.
    progress: Vec<Progress>,
    /// The first event of the batch that is written.
    first_sent: Option<Ordinal>,
    /// To be released once what it waits for has come.
    closes: bool,
}

#[derive(Debug)]
enum Databases {
    /// Not asked for yet, or released.
    None,
    /// They can be used.
    Prepared(Vec<Prepared>),
    /// They write the session: each batch goes to the first, and then to the other.
    Attached(Vec<Arc<Database>>),
}

/// What is waited for.
#[derive(Debug)]
enum Waiting {
    Nothing,
    Preparing(oneshot::Receiver<Result<Vec<Prepared>, StoreError>>),
    Opening(oneshot::Receiver<Result<Opened, StoreError>>),
    /// The session is claimed with its first batch.
    First(oneshot::Receiver<Result<Vec<Arc<Database>>, String>>),
    Writing(oneshot::Receiver<Result<(), String>>),
    Closing(Vec<oneshot::Receiver<()>>),
}

impl SessionStore {
    /// Opens nothing before it is asked to.
    pub(crate) fn new(settings: StoreSettings, faults: &Faults) -> Self {
        Self {
            settings: Arc::new(settings),
            number: SessionNumber::new(),
            batches: faults.at(Place::Persist),
            statements: faults.at(Place::Store),
            conversation: Some(Arc::default()),
            databases: Databases::None,
            waiting: Waiting::Nothing,
            progress: Vec::new(),
            first_sent: None,
            closes: false,
        }
    }

    /// Asks for something. One request at a time, except for the end.
    ///
    /// # Errors
    /// If the system can't start a thread.
    pub(crate) fn ask(&mut self, request: Request) -> Result<(), NoThread> {
        match request {
            Request::Prepare => self.prepare(),
            Request::Open(session) => self.open(session),
            Request::Write(records) => self.write(records),
            Request::Close => {
                self.closes = true;
                self.conversation = None;
                if let Waiting::Nothing | Waiting::Writing(_) = self.waiting {
                    self.close();
                }
                Ok(())
            }
        }
    }

    fn prepare(&mut self) -> Result<(), NoThread> {
        let (reply, prepared) = oneshot::channel();
        self.waiting = Waiting::Preparing(prepared);
        let (settings, statements) = (self.settings.clone(), self.statements.clone());
        let load = move |_: &mut Connections| {
            let prepared = opening::prepare(&settings, statements);
            Step::Done(Box::new(move || drop(reply.send(prepared))))
        };
        loader::spawn(self.settings.clone(), Box::new(load))
    }

    fn opening(&self) -> Opening {
        let conversation = self.conversation.as_ref().map(Arc::downgrade).unwrap_or_default();
        let (settings, fault) = (self.settings.clone(), self.batches.clone());
        Opening { settings, number: self.number, conversation, fault }
    }

    fn open(&mut self, session: SessionId) -> Result<(), NoThread> {
        let (reply, opened) = oneshot::channel();
        self.waiting = Waiting::Opening(opened);
        let (opening, statements) = (self.opening(), self.statements.clone());
        let load = move |connections: &mut Connections| {
            let stored = opening.settings.namespace.stored(&session);
            let prepared = match prepare(&opening, &stored, statements) {
                Ok(prepared) => prepared,
                Err(error) => return Step::Done(Box::new(move || drop(reply.send(Err(error))))),
            };
            let wait = Wait::of(opening.settings.lock_wait);
            let report =
                move |_: &Opening, mut opened: Result<Opened, StoreError>| -> loader::Done {
                    if let Ok(Opened { restored: Some(restored), .. }) = &mut opened {
                        restored.session = session;
                    }
                    Box::new(move || drop(reply.send(opened)))
                };
            opening.open_later(stored, prepared, wait, report, connections)
        };
        loader::spawn(self.settings.clone(), Box::new(load))
    }

    fn write(&mut self, records: Vec<Record>) -> Result<(), NoThread> {
        self.first_sent = first_ordinal(&records);
        match &self.databases {
            Databases::None => Ok(()),
            Databases::Attached(databases) => {
                let (reply, written) = oneshot::channel();
                self.waiting = Waiting::Writing(written);
                write(databases, self.number, records, reply);
                Ok(())
            }
            Databases::Prepared(prepared) => {
                let (prepared, opening) = (prepared.clone(), self.opening());
                let (reply, written) = oneshot::channel();
                self.waiting = Waiting::First(written);
                let load = move |connections: &mut Connections| {
                    first_write(opening, prepared, records, reply, connections)
                };
                loader::spawn(self.settings.clone(), Box::new(load))
            }
        }
    }

    /// Waits for the next report; for ever if nothing was asked. Cancel-safe.
    pub(crate) async fn report(&mut self) -> Report {
        let first_missing = self.first_sent;
        let failed = |reason| StoreFailure { reason, first_missing };
        let report = match &mut self.waiting {
            Waiting::Nothing => pending().await,
            Waiting::Preparing(prepared) => {
                let prepared = prepared.await.unwrap_or(Err(StoreError::Defect));
                let prepared = prepared.map(|it| self.databases = Databases::Prepared(it));
                Report::Opened(prepared.map(|()| None).map_err(|error| error.client_error()))
            }
            Waiting::Opening(opened) => {
                let opened = opened.await.unwrap_or(Err(StoreError::Defect));
                let restored = opened.map(|Opened { databases, restored }| {
                    self.progress = progress(&databases);
                    self.databases = Databases::Attached(databases);
                    restored
                });
                Report::Opened(restored.map_err(|error| error.client_error()))
            }
            Waiting::First(written) => {
                let written = written.await.unwrap_or_else(|_| Err(defect()));
                let written = written.map(|it| {
                    self.progress = progress(&it);
                    self.databases = Databases::Attached(it);
                });
                Report::Written(written.map_err(failed))
            }
            Waiting::Writing(written) => {
                Report::Written(written.await.unwrap_or_else(|_| Err(defect())).map_err(failed))
            }
            Waiting::Closing(all) => {
                while let Some(one) = all.last_mut() {
                    // A thread that has ended has closed its database too.
                    one.await.ok();
                    all.pop();
                }
                Report::Closed
            }
        };
        self.waiting = Waiting::Nothing;
        if self.closes && !matches!(report, Report::Closed) {
            self.close();
        }
        report
    }

    /// Steps that its databases have taken, for whichever conversation: they only grow.
    pub(crate) fn steps(&self) -> u64 {
        self.progress.iter().map(Progress::steps).sum()
    }

    /// Releases the session.
    fn close(&mut self) {
        let mut all = Vec::new();
        for database in self.databases.take() {
            let (reply, closed) = oneshot::channel();
            database.detach(self.number, Some(reply));
            all.push(closed);
        }
        self.waiting = Waiting::Closing(all);
    }

    /// Makes a session of these records. Blocks, and so is for a thread that may.
    pub(super) fn add(
        settings: StoreSettings,
        session: &SessionId,
        records: Vec<Record>,
    ) -> Result<(), StoreError> {
        let mut store = Self::new(settings, &Faults::default());
        let mut connections = Connections::default();
        let session = &store.settings.namespace.stored(session);
        let opening = store.opening();
        let prepared = prepare(&opening, session, FailPoint::default())?;
        let opened = opening.open(session, prepared, &mut connections)?;
        drop(connections);
        let (reply, written) = oneshot::channel();
        write(&opened.databases, store.number, records, reply);
        store.databases = Databases::Attached(opened.databases);
        let written = written.blocking_recv().unwrap_or_else(|_| Err(defect()));
        store.close();
        if let Waiting::Closing(all) = std::mem::replace(&mut store.waiting, Waiting::Nothing) {
            all.into_iter().for_each(|closed| drop(closed.blocking_recv()));
        }
        written.map_err(StoreError::Failed)
    }
}

impl Drop for SessionStore {
    fn drop(&mut self) {
        self.conversation = None;
        for database in self.databases.take() {
            database.detach(self.number, None);
        }
    }
}

impl Databases {
    fn take(&mut self) -> Vec<Arc<Database>> {
        match std::mem::replace(self, Self::None) {
            Self::None => Vec::new(),
            Self::Prepared(all) => all.into_iter().map(|it| it.database).collect(),
            Self::Attached(all) => all,
        }
    }
}

fn progress(databases: &[Arc<Database>]) -> Vec<Progress> {
    databases.iter().map(|it| it.progress().clone()).collect()
}

fn defect() -> String {
    StoreError::Defect.to_string()
}

/// Opens the databases of a session.
fn prepare(
    opening: &Opening,
    session: &SessionId,
    fault: FailPoint,
) -> Result<Vec<Prepared>, StoreError> {
    let (settings, mode) = (&opening.settings, opening.settings.mode);
    opening::prepare(settings, fault).map_err(|error| opening::missing(error, mode, session))
}

/// What the first batch of a session is answered with.
type First = Result<Vec<Arc<Database>>, String>;

/// Opens a session that has got its name with its first batch, and writes that.
fn first_write(
    opening: Opening,
    prepared: Vec<Prepared>,
    records: Vec<Record>,
    reply: oneshot::Sender<First>,
    connections: &mut Connections,
) -> Step {
    // The first record of a session is what it begins with.
    let Some(Record::Start(start)) = records.first() else {
        return Step::Done(Box::new(move || drop(reply.send(Err(defect())))));
    };
    let session = opening.settings.namespace.stored(&start.session);
    let wait = Wait::of(opening.settings.lock_wait);
    let report = move |opening: &Opening, opened: Result<Opened, StoreError>| -> loader::Done {
        let first = write_first(opening.number, opened, records);
        Box::new(move || drop(reply.send(first)))
    };
    opening.open_later(session, prepared, wait, report, connections)
}

/// Writes the first batch of a session that was opened with it.
fn write_first(
    number: SessionNumber,
    opened: Result<Opened, StoreError>,
    records: Vec<Record>,
) -> First {
    let databases = opened.map_err(|error| error.to_string())?.databases;
    let (reply, written) = oneshot::channel();
    write(&databases, number, records, reply);
    written.blocking_recv().unwrap_or_else(|_| Err(defect()))?;
    Ok(databases)
}

/// Appends records to the log of a session in its databases.
fn write(
    databases: &[Arc<Database>],
    number: SessionNumber,
    records: Vec<Record>,
    reply: oneshot::Sender<Result<(), String>>,
) {
    if let Some((first, others)) = databases.split_first() {
        first.write(number, records, others.first().cloned(), reply);
    }
}
