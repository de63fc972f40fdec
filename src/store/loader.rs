//! The threads that lock and load sessions, for all conversations of this process: a long log, or a server that is
//! slow to answer, delays no write. They end when there is nothing to load.

use super::Store;
use super::database::Database;
use super::error::StoreError;
use super::opening::Prepared;
use super::place::StoreSettings;
use crate::support::threads::{self, NoThread};
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Threads that load at the same time.
const THREADS_MAX: usize = 4;

/// Connections that a thread keeps while there is more to load.
const CONNECTIONS_MAX: usize = 2;

/// Loads something, and returns what reports it.
pub(super) type Load = Box<dyn FnOnce(&mut Connections) -> Done + Send>;
pub(super) type Done = Box<dyn FnOnce() + Send>;

struct Job {
    /// The stores that it loads from.
    settings: Arc<StoreSettings>,
    load: Load,
}

static QUEUE: Mutex<Queue> = Mutex::new(Queue { jobs: VecDeque::new(), threads: 0 });

struct Queue {
    jobs: VecDeque<Job>,
    threads: usize,
}

fn queue() -> MutexGuard<'static, Queue> {
    QUEUE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Has a thread load from these stores. If it meets a defect, what it would report with is dropped.
pub(super) fn spawn(settings: Arc<StoreSettings>, load: Load) -> Result<(), NoThread> {
    #[cfg(test)]
    let Some(load) = super::stepped::take_load(load) else { return Ok(()) };
    let mut queue = queue();
    queue.jobs.push_back(Job { settings, load });
    if queue.threads < THREADS_MAX {
        match threads::spawn("store-loader", work) {
            Ok(()) => queue.threads += 1,
            Err(error) if queue.threads == 0 => {
                queue.jobs.pop_back();
                return Err(error);
            }
            // Another one does it.
            Err(_) => {}
        }
    }
    Ok(())
}

fn work() {
    let mut connections = Connections::default();
    let mut due = next();
    while let Some(Job { settings, load }) = due {
        let done = catch_unwind(AssertUnwindSafe(|| load(&mut connections)));
        due = next();
        let goes_on = due.as_ref().is_some_and(|it| it.settings.places == settings.places);
        // Before it is reported: the last connection to close is that of the writer, and the stores of
        // other conversations must not be what keeps these open.
        if done.is_err() {
            connections = Connections::default();
        } else if !goes_on {
            connections.give_back();
        }
        if let Ok(done) = done {
            done();
        }
    }
}

/// The next job; the thread ends if there is none.
fn next() -> Option<Job> {
    let mut queue = queue();
    let job = queue.jobs.pop_front();
    if job.is_none() {
        queue.threads -= 1;
    }
    job
}

/// Connections beside those of the writers.
#[derive(Debug, Default)]
pub(super) struct Connections(Vec<(Arc<Database>, Store)>);

impl Connections {
    /// A connection to a database that its writer has opened.
    pub(super) fn to(&mut self, prepared: &Prepared) -> Result<&mut Store, StoreError> {
        let Prepared { database, condition } = prepared;
        let Self(all) = self;
        let at = match all.iter().position(|(it, _)| Arc::ptr_eq(it, database)) {
            Some(at) => at,
            None => {
                let store = database.connect(*condition)?;
                if all.len() >= CONNECTIONS_MAX {
                    all.remove(0);
                }
                all.push((database.clone(), store));
                all.len() - 1
            }
        };
        Ok(&mut all[at].1)
    }

    /// Gives them to their databases, which may keep them.
    fn give_back(&mut self) {
        self.0.drain(..).for_each(|(database, store)| database.spares.keep(store));
    }
}
