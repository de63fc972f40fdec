//! The databases that this process stores in. Each is open once: one thread writes it, for all conversations of
//! the process.

use super::counts::COUNTS;
use super::error::StoreError;
use super::place::StorePlace;
use super::postgres::OwnProcess;
use super::sqlite::path;
use super::writer::{Attached, Command, Writer};
use super::{Condition, Store};
use crate::conversation::log::Record;
use crate::support::fail_point::FailPoint;
use crate::support::lock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, Weak};
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// The databases that are open, and where. Conversations share nothing else; the lock is held for a moment.
static OPEN: Mutex<Vec<(StorePlace, Weak<Database>)>> = Mutex::new(Vec::new());

/// A conversation of this process, in the databases that store it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct SessionNumber(u64);

/// A reply, which is dropped where the thread that owes it met a defect.
pub(super) type Reply<T> = oneshot::Sender<T>;

/// A database that this process has open; its thread ends, and closes it, when this is dropped.
#[derive(Debug)]
pub(super) struct Database {
    pub(super) place: StorePlace,
    pub(super) process: OwnProcess,
    /// What the connection of the writer has found.
    condition: OnceLock<Condition>,
    /// Unbounded: a conversation has one command at a time.
    commands: Sender<Command>,
    progress: Progress,
    pub(super) spares: Spares,
}

/// How long a connection is kept that nobody uses: what is between us and a server may forget older ones.
const SPARE_MAX: Duration = Duration::from_secs(30);

/// Connections of a database that are kept: as many as threads load at the same time.
const SPARES_MAX: usize = 4;

/// Connections to a server that were used beside that of the writer, kept until the database is idle: a new one takes
/// tens of milliseconds, and processor time at both ends.
#[derive(Clone, Debug, Default)]
pub(super) struct Spares(Arc<Mutex<Vec<(Instant, Store)>>>);

impl Spares {
    pub(super) fn take(&self) -> Option<Store> {
        let (since, store) = self.all().pop()?;
        if since.elapsed() < SPARE_MAX {
            return Some(store);
        }
        // The others are older.
        self.close();
        None
    }

    /// Keeps a connection. One to a file is closed: it costs little, and the last one to be closed must be the
    /// writer's.
    pub(super) fn keep(&self, store: Store) {
        let spare = match store {
            Store::Sqlite(_) => return,
            Store::Postgres(_) => (Instant::now(), store),
        };
        let mut all = self.all();
        if all.len() < SPARES_MAX {
            all.push(spare);
        }
    }

    pub(super) fn close(&self) {
        let all = std::mem::take(&mut *self.all());
        // The lock is free again.
        drop(all);
    }

    fn all(&self) -> MutexGuard<'_, Vec<(Instant, Store)>> {
        lock(&self.0)
    }
}

/// How much the writer of a database has done: who waits for it behind many others sees that it goes on.
#[derive(Clone, Debug, Default)]
pub(super) struct Progress(Arc<AtomicU64>);

impl Progress {
    pub(super) fn step(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn steps(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Asks a store that there is, for reading only: a server over a spare connection, if there is one. It is given back,
/// and no other is left behind, as nothing may follow that closes it.
pub(super) fn ask<T>(
    place: &StorePlace,
    question: impl FnOnce(&mut Store) -> Result<T, StoreError>,
) -> Result<T, StoreError> {
    let open = match place {
        StorePlace::Sqlite(_) => None,
        StorePlace::Postgres(_) => current(&lock(&OPEN), place),
    };
    let spare = open.and_then(|database| Some((database.spares.take()?, database)));
    let Some((mut store, database)) = spare else { return question(&mut Store::look(place)?) };
    let answer = question(&mut store)?;
    database.spares.keep(store);
    Ok(answer)
}

/// The database of that place, if it is open.
fn current(open: &[(StorePlace, Weak<Database>)], place: &StorePlace) -> Option<Arc<Database>> {
    // The others are not upgraded: one of them may be about to be closed by its last conversation.
    let same = open.iter().filter(|(at, _)| at == place);
    same.filter_map(|(_, it)| it.upgrade()).find(|it| it.is_current())
}

impl SessionNumber {
    pub(super) fn new() -> Self {
        static LAST: AtomicU64 = AtomicU64::new(0);
        Self(LAST.fetch_add(1, Ordering::Relaxed))
    }
}

impl Database {
    /// The database at `place`; starts its thread if it is not open yet. May block, as it looks for the file.
    pub(super) fn of(place: &StorePlace) -> Result<Arc<Self>, StoreError> {
        let place = match place {
            StorePlace::Sqlite(file) => StorePlace::Sqlite(path::resolve(file)?),
            StorePlace::Postgres(dsn) => StorePlace::Postgres(dsn.clone()),
        };
        let mut open = lock(&OPEN);
        open.retain(|(_, it)| it.strong_count() > 0);
        if let Some(found) = current(&open, &place) {
            return Ok(found);
        }
        let (commands, to_do) = channel();
        let process = OwnProcess::default();
        let (progress, spares) = (Progress::default(), Spares::default());
        let shared = (progress.clone(), spares.clone());
        Writer::new(place.clone(), process.clone(), shared)
            .start(to_do)
            .map_err(StoreError::NoThread)?;
        let condition = OnceLock::new();
        let database = Arc::new(Self { place, process, condition, commands, progress, spares });
        open.push((database.place.clone(), Arc::downgrade(&database)));
        Ok(database)
    }

    /// A connection beside that of the writer.
    pub(super) fn connect(&self, condition: Condition) -> Result<Store, StoreError> {
        if let Some(spare) = self.spares.take() {
            return Ok(spare);
        }
        let mut store = Store::open(&self.place, false, &self.process, FailPoint::default())?;
        store.note(condition);
        Ok(store)
    }

    /// Whether it is still what is found at its place: a file may have been replaced.
    fn is_current(&self) -> bool {
        match (&self.place, self.condition.get()) {
            (StorePlace::Sqlite(file), Some(known)) => known.file == path::identity(file),
            (StorePlace::Sqlite(_), None) | (StorePlace::Postgres(_), _) => true,
        }
    }

    pub(super) fn progress(&self) -> &Progress {
        &self.progress
    }

    /// Opens the database, so that it is known whether it can be used.
    pub(super) fn prepare(
        &self,
        may_be_new: bool,
        is_written: bool,
        fault: FailPoint,
    ) -> Result<Condition, StoreError> {
        let (reply, replied) = oneshot::channel();
        self.command(Command::Prepare { may_be_new, is_written, fault, reply });
        let condition = replied.blocking_recv().unwrap_or(Err(StoreError::Defect))?;
        Ok(*self.condition.get_or_init(|| condition))
    }

    /// From here on the session is written under this number.
    pub(super) fn attach(&self, number: SessionNumber, session: Attached) {
        self.command(Command::Attach { number, session: Box::new(session) });
    }

    /// Appends records to the log of a session, and then to its log in `other`.
    pub(super) fn write(
        &self,
        number: SessionNumber,
        records: Vec<Record>,
        other: Option<Arc<Self>>,
        reply: Reply<Result<(), String>>,
    ) {
        self.command(Command::Write { number, records, other, reply });
    }

    /// Releases a session. The reply comes once that is done, and after the database is closed if nobody else
    /// has it.
    pub(super) fn detach(self: Arc<Self>, number: SessionNumber, reply: Option<Reply<()>>) {
        let commands = self.commands.clone();
        COUNTS.waiting.fetch_add(1, Ordering::Relaxed);
        // If the thread has ended, there is nothing to release.
        drop(commands.send(Command::Detach { number, database: self, reply }));
    }

    fn command(&self, command: Command) {
        COUNTS.waiting.fetch_add(1, Ordering::Relaxed);
        // If the thread has ended, the reply is dropped with the command.
        drop(self.commands.send(command));
        #[cfg(test)]
        super::stepped::command_given();
    }
}
