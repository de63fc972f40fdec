//! For tests: what the threads of the stores do, as steps that a test takes in its own thread. So the test decides
//! when a batch is written and when that is reported, and nothing else does.

use super::Store;
use super::loader::{Connections, Load, Step};
use super::sqlite::Sqlite;
use super::writer::{Command, Writer};
use crate::protocol::id::SessionId;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::mem::take;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, TryRecvError};

thread_local! {
    static STEPS: RefCell<Option<Steps>> = const { RefCell::new(None) };
}

/// The work of the threads that this thread would have started.
#[derive(Default)]
struct Steps {
    writers: Vec<Stepped>,
    loads: VecDeque<Load>,
    /// What is being loaded waits for its writers.
    is_loading: bool,
    /// The disk is full.
    is_full: bool,
    /// For tests of a test: a batch is reported as written, and is not.
    forgets_batches: bool,
}

/// A writer without a thread.
struct Stepped {
    writer: Writer,
    to_do: Receiver<Command>,
    /// The session that is written; there may be others in the database.
    session: Option<SessionId>,
    disk: Option<Disk>,
}

/// What of a database survives.
#[derive(Clone, Debug)]
pub(crate) struct Disk {
    /// Its file.
    pub(crate) path: PathBuf,
    /// Ordinal of the last event of the session that is stored.
    pub(crate) last: u64,
    /// Bytes of its write-ahead log.
    pub(crate) log_bytes: u64,
    /// `last` and `log_bytes` as a loss of power leaves them.
    pub(crate) synced: (u64, u64),
}

/// From here on this thread starts no threads for stores.
pub(crate) fn begin() {
    STEPS.with_borrow_mut(|steps| *steps = Some(Steps::default()));
}

/// Drops what was not done, as the end of a process does.
pub(crate) fn kill() {
    let killed = STEPS.with_borrow_mut(|steps| steps.as_mut().map(take));
    drop(killed);
}

/// From here on this thread has threads again.
pub(crate) fn end() {
    kill();
    STEPS.with_borrow_mut(|steps| *steps = None);
}

pub(super) fn take_writer(
    writer: Writer,
    to_do: Receiver<Command>,
) -> Option<(Writer, Receiver<Command>)> {
    STEPS.with_borrow_mut(|steps| match steps {
        Some(steps) => {
            steps.writers.push(Stepped { writer, to_do, session: None, disk: None });
            None
        }
        None => Some((writer, to_do)),
    })
}

pub(super) fn take_load(load: Load) -> Option<Load> {
    STEPS.with_borrow_mut(|steps| match steps {
        Some(steps) => {
            steps.loads.push_back(load);
            None
        }
        None => Some(load),
    })
}

/// What loads waits for what its writers do.
pub(super) fn command_given() {
    let is_loading =
        STEPS.with_borrow(|steps| steps.as_ref().is_some_and(|steps| steps.is_loading));
    if is_loading {
        while write(true) {}
    }
}

/// Takes one step: loads a session, or writes what a writer was given. False if there was nothing to do.
pub(crate) fn step() -> bool {
    let load = STEPS.with_borrow_mut(|steps| steps.as_mut()?.loads.pop_front());
    let Some(load) = load else { return write(false) };
    set_loading(true);
    let mut connections = Connections::default();
    let step = load(&mut connections);
    drop(connections);
    match step {
        Step::Done(done) => done(),
        Step::Later(load) => drop(take_load(load)),
    }
    set_loading(false);
    while write(true) {}
    true
}

/// The databases have nothing to do for a while.
pub(crate) fn idle() {
    each(|stepped| {
        stepped.writer.tidy();
        stepped.look(true, false);
    });
}

/// The disk is full, or has room again.
pub(crate) fn fill(is_full: bool) {
    STEPS.with_borrow_mut(|steps| steps.iter_mut().for_each(|steps| steps.is_full = is_full));
    each(|stepped| stepped.limit(is_full));
}

/// For tests of a test: from here on batches are reported as written, and are not.
pub(crate) fn forget_batches() {
    STEPS.with_borrow_mut(|steps| steps.iter_mut().for_each(|it| it.forgets_batches = true));
}

/// The databases that are open, in the order in which they were opened.
pub(crate) fn disks() -> Vec<Disk> {
    STEPS.with_borrow(|steps| {
        let writers = steps.iter().flat_map(|steps| &steps.writers);
        writers.filter_map(|stepped| stepped.disk.clone()).collect()
    })
}

fn set_loading(is_loading: bool) {
    STEPS.with_borrow_mut(|steps| steps.iter_mut().for_each(|it| it.is_loading = is_loading));
}

/// Does something with each writer, which may use what is here.
fn each(mut with: impl FnMut(&mut Stepped)) {
    let mut writers = STEPS.with_borrow_mut(|steps| steps.as_mut().map(|it| take(&mut it.writers)));
    writers.iter_mut().flatten().for_each(&mut with);
    STEPS.with_borrow_mut(|steps| {
        if let (Some(steps), Some(mut writers)) = (steps, writers) {
            writers.append(&mut steps.writers);
            steps.writers = writers;
        }
    });
}

/// Has the first writer that was given something do it. `is_loading`: it is to have the session that was loaded.
fn write(is_loading: bool) -> bool {
    let mut has_done = false;
    let flags = STEPS
        .with_borrow(|steps| steps.as_ref().map(|steps| (steps.is_full, steps.forgets_batches)));
    let Some((is_full, forgets)) = flags else { return false };
    let mut closed = Vec::new();
    let mut at = 0;
    each(|stepped| {
        if !has_done {
            match stepped.to_do.try_recv() {
                Ok(Command::Write { reply, .. }) if forgets => {
                    drop(reply.send(Ok(())));
                    has_done = true;
                }
                Ok(first) => {
                    stepped.limit(is_full);
                    stepped.writer.step(first, &stepped.to_do);
                    stepped.limit(is_full);
                    stepped.look(false, is_loading);
                    has_done = true;
                }
                Err(TryRecvError::Empty) => {}
                Err(TryRecvError::Disconnected) => closed.push(at),
            }
        }
        at += 1;
    });
    for at in closed.into_iter().rev() {
        let stepped = STEPS.with_borrow_mut(|steps| steps.as_mut().map(|it| it.writers.remove(at)));
        stepped.into_iter().for_each(|stepped| stepped.writer.close());
        has_done = true;
    }
    has_done
}

impl Stepped {
    fn sqlite(&self) -> Option<&Sqlite> {
        match &self.writer.store {
            Some(Store::Sqlite(sqlite)) => Some(sqlite),
            Some(Store::Postgres(_)) | None => None,
        }
    }

    /// Gives the database no more pages than it has, or as many as it wants.
    fn limit(&self, is_full: bool) {
        let Some(sqlite) = self.sqlite() else { return };
        let pages = if is_full { 1 } else { u32::MAX >> 1 };
        // It is never set below what there is.
        let set = sqlite.connection.query_row(
            &format!("PRAGMA max_page_count = {pages}"),
            [],
            |_| Ok(()),
        );
        set.expect("a number");
    }

    /// Notes what is stored; `is_synced`: all of it; `is_loading`: what there is of a session that gets its writer.
    fn look(&mut self, is_synced: bool, is_loading: bool) {
        let had_session = self.session.is_some();
        let written = self.writer.sessions.values().next().map(|it| it.session.clone());
        self.session = self.session.take().or(written);
        let Some(sqlite) = self.sqlite() else { return };
        let id = self.session.as_ref().map(SessionId::as_str);
        let sql = "SELECT last FROM sessions WHERE id = ?";
        let last = sqlite.connection.query_row(sql, [id], |row| row.get::<_, i64>(0));
        // There is no row before the first event.
        let last = last.map_or(0, |last| u64::try_from(last).unwrap_or_default());
        let now = (last, log_bytes(&sqlite.path));
        let before = self.disk.as_ref().map(|disk| disk.synced);
        // What was there when the process began had survived.
        let begins = is_loading && !had_session && self.session.is_some();
        let is_synced = is_synced || sqlite.is_full || begins;
        let synced = before.filter(|_| !is_synced).unwrap_or(now);
        self.disk = Some(Disk { path: sqlite.path.clone(), last, log_bytes: now.1, synced });
    }
}

fn log_bytes(path: &Path) -> u64 {
    let mut name = path.as_os_str().to_owned();
    name.push("-wal");
    Path::new(&name).metadata().map_or(0, |about| about.len())
}
