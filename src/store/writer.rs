//! The thread that writes a database, for all conversations of this process that store in it: group commit. The
//! batches that have come while it wrote are written in one transaction, those of several tenants in turn. A session
//! that can't be written fails alone, and is not written again.

use super::batch::{Batch, Tail};
use super::counts::COUNTS;
use super::database::{Database, Progress, Reply, SessionNumber, Spares};
use super::error::StoreError;
use super::place::{StorePlace, tenant_of};
use super::postgres::OwnProcess;
#[cfg(test)]
use super::stepped;
use super::{Claim, Condition, Item, Store};
use crate::conversation::log::Record;
use crate::protocol::id::SessionId;
use crate::support::fail_point::FailPoint;
use crate::support::fair_queue::FairQueue;
use crate::support::threads::{self, NoThread};
use std::collections::HashMap;
use std::iter::once;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Commands that are taken at once; of them, those that write are one transaction.
const COMMANDS_AT_ONCE_MAX: usize = 1024;

/// Commands of a transaction from which on the writer pauses after it for as long as it took: meanwhile each
/// session has more for its next batch, and a database is spent on batches, not on what is in them. Fewer are no
/// load.
const CROWD_MIN: usize = 16;

/// The longest such pause.
const PAUSE_MAX: Duration = Duration::from_millis(50);

/// Bytes of texts after which a transaction takes no more sessions.
const GROUP_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Idle time after which the write-ahead log is checkpointed and truncated.
const IDLE_MIN: Duration = Duration::from_secs(2);

/// What the writer is to do.
#[derive(Debug)]
pub(super) enum Command {
    /// Open the database; check that it can be written, if something is to begin in it.
    Prepare {
        may_be_new: bool,
        is_written: bool,
        fault: FailPoint,
        reply: Reply<Result<Condition, StoreError>>,
    },
    /// Write a session that was claimed.
    Attach { number: SessionNumber, session: Box<Attached> },
    /// Append records to the log of a session, all or none, and then to that in another database.
    Write {
        number: SessionNumber,
        records: Vec<Record>,
        other: Option<Arc<Database>>,
        reply: Reply<Result<(), String>>,
    },
    /// Release a session. The database is closed if nobody else has it; the reply comes after that.
    Detach { number: SessionNumber, database: Arc<Database>, reply: Option<Reply<()>> },
}

/// A session that is written.
#[derive(Debug)]
pub(super) struct Attached {
    pub(super) session: SessionId,
    /// The folder that it belongs to, if it is new.
    pub(super) folder: String,
    pub(super) claim: Claim,
    /// The end of its log.
    pub(super) tail: Tail,
    /// Trips where a batch is taken, for tests.
    pub(super) fault: FailPoint,
    /// It could not be written, and so is not written again.
    pub(super) is_failed: bool,
}

/// Commands that have come and are not carried out yet, by the tenant of their session.
#[derive(Default)]
struct Backlog {
    commands: FairQueue<Arc<str>, Command>,
    tenants: HashMap<SessionNumber, Arc<str>>,
}

impl Backlog {
    fn push(&mut self, command: Command) {
        let tenant = match &command {
            Command::Prepare { .. } => None,
            Command::Attach { number, session } => {
                let tenant: Arc<str> = tenant_of(&session.session).into();
                self.tenants.insert(*number, Arc::clone(&tenant));
                Some(tenant)
            }
            Command::Write { number, .. } => self.tenants.get(number).cloned(),
            Command::Detach { number, .. } => self.tenants.remove(number),
        };
        self.commands.push(&tenant.unwrap_or_default(), command);
    }

    /// The next commands: those of one session stay in their order.
    fn take(&mut self) -> Vec<Command> {
        self.commands.take(COMMANDS_AT_ONCE_MAX)
    }
}

/// A batch that is to be written.
struct Job {
    number: SessionNumber,
    session: Box<Attached>,
    batch: Batch,
    next: Option<(Arc<Database>, Vec<Record>)>,
    reply: Reply<Result<(), String>>,
}

/// The writer of a database.
#[derive(Debug)]
pub(super) struct Writer {
    place: StorePlace,
    process: OwnProcess,
    progress: Progress,
    /// Beside its own connection.
    spares: Spares,
    /// The connection, once it was asked for.
    pub(super) store: Option<Store>,
    pub(super) sessions: HashMap<SessionNumber, Box<Attached>>,
    /// Dropped once the database is closed, which those wait for who had the last sessions.
    closing: Vec<Reply<()>>,
}

impl Writer {
    pub(super) fn new(
        place: StorePlace,
        process: OwnProcess,
        (progress, spares): (Progress, Spares),
    ) -> Self {
        let (sessions, closing) = (HashMap::new(), Vec::new());
        Self { place, process, progress, spares, store: None, sessions, closing }
    }

    /// Has a thread carry out commands.
    ///
    /// # Errors
    /// If the system can't start one.
    pub(super) fn start(self, to_do: Receiver<Command>) -> Result<(), NoThread> {
        #[cfg(test)]
        let Some((this, to_do)) = stepped::take_writer(self, to_do) else { return Ok(()) };
        #[cfg(not(test))]
        let this = self;
        threads::spawn("store-writer", move || this.serve(&to_do))
    }

    /// Carries out commands until nobody can give any more; then closes the database.
    fn serve(mut self, to_do: &Receiver<Command>) {
        let (mut is_tidy, mut backlog) = (true, Backlog::default());
        loop {
            let wait = match (backlog.commands.is_empty(), is_tidy) {
                (false, _) => Duration::ZERO,
                (true, false) => IDLE_MIN,
                (true, true) => Duration::MAX,
            };
            match to_do.recv_timeout(wait) {
                Ok(first) => once(first).chain(to_do.try_iter()).for_each(|it| backlog.push(it)),
                // What has come is carried out before the end.
                Err(_) if !backlog.commands.is_empty() => {}
                Err(RecvTimeoutError::Timeout) => {
                    self.tidy();
                    is_tidy = true;
                }
                Err(RecvTimeoutError::Disconnected) => break,
            }
            let begun = Instant::now();
            let count = self.group(&mut backlog);
            is_tidy &= count == 0;
            if count >= CROWD_MIN && backlog.commands.is_empty() {
                sleep(begun.elapsed().min(PAUSE_MAX));
            }
        }
        self.close();
    }

    /// Carries out the next commands of the backlog; returns how many there were.
    fn group(&mut self, backlog: &mut Backlog) -> usize {
        let commands = backlog.take();
        let count = commands.len();
        if count > 0 {
            self.perform(commands.into_iter());
            self.progress.step();
        }
        count
    }

    /// Carries out this command, and those that have come after it.
    #[cfg(test)]
    pub(super) fn step(&mut self, first: Command, to_do: &Receiver<Command>) {
        let mut backlog = Backlog::default();
        once(first).chain(to_do.try_iter()).for_each(|it| backlog.push(it));
        while self.group(&mut backlog) > 0 {}
    }

    /// The database is idle.
    pub(super) fn tidy(&mut self) {
        self.spares.close();
        self.store.iter_mut().for_each(Store::tidy);
    }

    /// Closes the database.
    pub(super) fn close(self) {
        self.spares.close();
        if let Some(mut store) = self.store {
            store.leave();
        }
        drop(self.closing);
    }

    fn perform(&mut self, commands: impl Iterator<Item = Command>) {
        let (mut jobs, mut bytes) = (Vec::new(), 0);
        let (mut released, mut leaving) = (Vec::new(), Vec::new());
        for command in commands {
            COUNTS.waiting.fetch_sub(1, Ordering::Relaxed);
            match command {
                Command::Prepare { may_be_new, is_written, fault, reply } => {
                    // The database is not closed yet, so nobody waits for that any more.
                    self.closing.clear();
                    let prepare = AssertUnwindSafe(|| self.prepare(may_be_new, is_written, fault));
                    let prepared = catch_unwind(prepare).unwrap_or(Err(StoreError::Defect));
                    drop(reply.send(prepared));
                }
                Command::Attach { number, session } => drop(self.sessions.insert(number, session)),
                Command::Write { number, records, other, reply } => {
                    bytes += records.iter().map(Record::text_bytes).sum::<usize>();
                    jobs.extend(self.job(number, records, other, reply));
                    if bytes >= GROUP_BYTES_MAX {
                        self.write(std::mem::take(&mut jobs));
                        bytes = 0;
                    }
                }
                Command::Detach { number, database, reply } => {
                    // What the session has still to write comes first.
                    self.write(std::mem::take(&mut jobs));
                    released.extend(self.sessions.remove(&number).map(|it| it.claim));
                    leaving.push((database, reply));
                }
            }
        }
        self.write(jobs);
        match &mut self.store {
            Some(store) if !released.is_empty() => store.release(released),
            Some(_) => {}
            // It was dropped where a write met a defect.
            None => released.into_iter().for_each(|claim| claim.abandon(&self.process)),
        }
        for (database, reply) in leaving {
            if Arc::strong_count(&database) == 1 {
                self.closing.extend(reply);
            }
        }
    }

    fn prepare(
        &mut self,
        may_be_new: bool,
        is_written: bool,
        fault: FailPoint,
    ) -> Result<Condition, StoreError> {
        let Self { place, process, store, .. } = self;
        let store = match store {
            Some(store) => store,
            none => none.insert(Store::open(place, may_be_new, process, fault)?),
        };
        if is_written {
            store.check_writable()?;
        }
        Ok(store.condition())
    }

    /// Makes the batch of these records. The session is put aside until it is written.
    fn job(
        &mut self,
        number: SessionNumber,
        records: Vec<Record>,
        other: Option<Arc<Database>>,
        reply: Reply<Result<(), String>>,
    ) -> Option<Job> {
        // The reply is dropped if there is no such session, or it has failed: its conversation knows that.
        if self.sessions.get(&number)?.is_failed {
            return None;
        }
        let mut session = self.sessions.remove(&number)?;
        let next = other.map(|other| (other, records.clone()));
        let making = AssertUnwindSafe(|| {
            session.fault.step();
            let batch = Batch::of(&mut session.tail, records);
            let Attached { session, folder, claim, .. } = &mut *session;
            let mut item = Item { session, folder, batch: &batch, claim };
            if !batch.is_empty()
                && let Some(store) = &mut self.store
            {
                store.stage(&mut item);
            }
            batch
        });
        match catch_unwind(making) {
            Ok(batch) => Some(Job { number, session, batch, next, reply }),
            Err(_) => {
                // Its state may be half-changed. The reply is dropped, which reports the defect.
                session.is_failed = true;
                self.sessions.insert(number, session);
                None
            }
        }
    }

    fn write(&mut self, mut jobs: Vec<Job>) {
        if jobs.is_empty() {
            return;
        }
        let begun = Instant::now();
        let mut results = self.catching_write(&mut jobs);
        if results.is_empty() && jobs.len() > 1 {
            // The batch that meets the defect fails alone.
            let alone = jobs.chunks_mut(1).map(|one| self.catching_write(one).pop());
            results = alone.map(|it| it.unwrap_or(Err(StoreError::Defect))).collect();
        }
        let failed = results.iter().filter(|result| result.is_err()).count();
        COUNTS.wrote(results.len() - failed, failed, begun.elapsed());
        let ends_turn = jobs.iter().any(|job| job.batch.ends_turn);
        let mut results = results.into_iter();
        for job in jobs {
            let Job { number, mut session, next, reply, .. } = job;
            let result = results.next().unwrap_or(Err(StoreError::Defect));
            session.is_failed = result.is_err();
            self.sessions.insert(number, session);
            match (result, next) {
                (Ok(()), Some((other, records))) => other.write(number, records, None, reply),
                (result, _) => {
                    drop(reply.send(result.map_err(|error| error.to_string())));
                }
            }
        }
        if let Some(store) = self.store.as_mut().filter(|_| ends_turn) {
            store.settle();
        }
    }

    /// The results of a write; none if it met a defect.
    fn catching_write(&mut self, jobs: &mut [Job]) -> Vec<Result<(), StoreError>> {
        let writing = AssertUnwindSafe(|| self.try_write(jobs));
        catch_unwind(writing).unwrap_or_else(|_| {
            // The connection may be half-changed: the next write opens another.
            self.store = None;
            Vec::new()
        })
    }

    /// Writes what is not empty; one result for each.
    fn try_write(&mut self, jobs: &mut [Job]) -> Vec<Result<(), StoreError>> {
        let Self { place, process, store, .. } = self;
        let store = match store {
            Some(store) => store,
            none => match Store::open(place, false, process, FailPoint::default()) {
                Ok(store) => none.insert(store),
                Err(error) => {
                    let failed = |_: &Job| Err(StoreError::Failed(error.to_string()));
                    return jobs.iter().map(failed).collect();
                }
            },
        };
        let mut items: Vec<_> = jobs
            .iter_mut()
            .filter(|job| !job.batch.is_empty())
            .map(|Job { session, batch, .. }| {
                let Attached { session, folder, claim, .. } = &mut **session;
                Item { session, folder, batch, claim }
            })
            .collect();
        let mut written = store.write(&mut items).into_iter();
        let result = |job: &Job| match job.batch.is_empty() {
            true => Ok(()),
            false => written.next().unwrap_or(Err(StoreError::Defect)),
        };
        jobs.iter().map(result).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::postgres::{Dsn, LeasedSession};
    use tokio::sync::oneshot;

    /// The connection is dropped where a write meets a defect.
    #[test]
    fn a_session_that_ends_while_there_is_no_connection_is_released_later() {
        let place = StorePlace::Postgres(Dsn::new("postgres://localhost/x").expect("an address"));
        let database = Database::of(&place).expect("a thread");
        let process = OwnProcess::default();
        let shared = (Progress::default(), Spares::default());
        let mut writer = Writer::new(place, process.clone(), shared);
        let number = SessionNumber::new();
        let session = Attached {
            session: SessionId::new("s").expect("an id"),
            folder: String::new(),
            claim: Claim::Leased(Box::new(LeasedSession::new("s", 1, "token"))),
            tail: Tail::default(),
            fault: FailPoint::default(),
            is_failed: true,
        };
        let attach = Command::Attach { number, session: Box::new(session) };
        let detach = Command::Detach { number, database, reply: None };
        COUNTS.waiting.fetch_add(2, Ordering::Relaxed);
        writer.perform([attach, detach].into_iter());
        assert_eq!(process.abandoned(), ["s"]);
    }

    #[test]
    fn a_tenant_with_many_sessions_leaves_room_for_another_one() {
        let mut backlog = Backlog::default();
        let write = |number: SessionNumber| {
            let (reply, _) = oneshot::channel();
            Command::Write { number, records: Vec::new(), other: None, reply }
        };
        let attach = |backlog: &mut Backlog, number, session: &str| {
            backlog
                .tenants
                .insert(number, tenant_of(&SessionId::new(session).expect("an id")).into());
        };
        let many: Vec<_> = (0..2_000).map(|_| SessionNumber::new()).collect();
        for (at, number) in many.iter().enumerate() {
            attach(&mut backlog, *number, &format!("tenant:many/{at}"));
            backlog.push(write(*number));
        }
        let one = SessionNumber::new();
        attach(&mut backlog, one, "tenant:one/s");
        backlog.push(write(one));
        let is_of_one =
            |it: &Command| matches!(it, Command::Write { number, .. } if *number == one);
        let first = backlog.take();
        assert_eq!(first.len(), COMMANDS_AT_ONCE_MAX);
        assert_eq!(first.iter().position(is_of_one), Some(1), "it waits for one of the others");
    }
}
