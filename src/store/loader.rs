//! The threads that lock and load sessions, for all conversations of this process: a long log, or a server that is
//! slow to answer, delays no write. They end when there is nothing to load. A session that another process holds is
//! asked for again and again, and takes no thread in between.

use super::Store;
use super::database::Database;
use super::error::StoreError;
use super::opening::Prepared;
use super::place::StoreSettings;
use crate::support::lock;
use crate::support::threads::{self, NoThread};
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Threads that load at the same time.
const THREADS_MAX: usize = 4;

/// Connections that a thread keeps while there is more to load.
const CONNECTIONS_MAX: usize = 2;

/// Time after which something that had to wait is tried again.
const RETRY_INTERVAL: Duration = Duration::from_millis(50);

/// Loads something.
pub(super) type Load = Box<dyn FnOnce(&mut Connections) -> Step + Send>;
pub(super) type Done = Box<dyn FnOnce() + Send>;

/// What became of it.
pub(super) enum Step {
    /// It is over; this reports it.
    Done(Done),
    /// It has to wait for another process: meanwhile the thread is for others, and then this goes on with it.
    Later(Load),
}

struct Job {
    /// The stores that it loads from.
    settings: Arc<StoreSettings>,
    load: Load,
}

static QUEUE: Mutex<Queue> = Mutex::new(Queue {
    jobs: VecDeque::new(),
    waiting: VecDeque::new(),
    threads: 0,
    is_watched: false,
});

/// Wakes the thread that watches what waits.
static COMES: Condvar = Condvar::new();

struct Queue {
    jobs: VecDeque<Job>,
    /// Those that are tried again, and when: the first is due first.
    waiting: VecDeque<(Instant, Job)>,
    threads: usize,
    /// A thread waits until the first of them is due.
    is_watched: bool,
}

fn queue() -> MutexGuard<'static, Queue> {
    lock(&QUEUE)
}

/// Has a thread load from these stores. If it meets a defect, what it would report with is dropped.
pub(super) fn spawn(settings: Arc<StoreSettings>, load: Load) -> Result<(), NoThread> {
    #[cfg(test)]
    let Some(load) = super::stepped::take_load(load) else { return Ok(()) };
    let mut queue = queue();
    queue.jobs.push_back(Job { settings, load });
    COMES.notify_one();
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
    let mut due = queue().ready();
    loop {
        let Some(Job { settings, load }) = due.or_else(await_next) else { return };
        let step = catch_unwind(AssertUnwindSafe(|| load(&mut connections)));
        due = queue().ready();
        let goes_on = due.as_ref().is_some_and(|it| it.settings.places == settings.places);
        // Before it is reported: the last connection to close is that of the writer, and the stores of
        // other conversations must not be what keeps these open.
        if step.is_err() {
            connections = Connections::default();
        } else if !goes_on {
            connections.give_back();
        }
        match step {
            Ok(Step::Done(done)) => done(),
            Ok(Step::Later(load)) => {
                let again = Instant::now() + RETRY_INTERVAL;
                queue().waiting.push_back((again, Job { settings, load }));
            }
            Err(_) => {}
        }
    }
}

/// The next job. One thread waits for those that wait; the others end if there is nothing to do.
fn await_next() -> Option<Job> {
    let mut queue = queue();
    loop {
        let job = queue.ready();
        let first = queue.waiting.front().map(|(again, _)| *again);
        let (None, Some(first), false) = (&job, first, queue.is_watched) else {
            queue.threads -= usize::from(job.is_none());
            return job;
        };
        queue.is_watched = true;
        let wait = first.saturating_duration_since(Instant::now());
        queue = COMES.wait_timeout(queue, wait).unwrap_or_else(PoisonError::into_inner).0;
        queue.is_watched = false;
    }
}

impl Queue {
    /// A job that can be begun. What waited comes last, so that it is in the way of nothing.
    fn ready(&mut self) -> Option<Job> {
        let is_due = |(again, _): &mut (Instant, Job)| *again <= Instant::now();
        self.jobs.pop_front().or_else(|| Some(self.waiting.pop_front_if(is_due)?.1))
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::place::{Namespace, OpenMode};
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::mpsc::{Sender, channel};

    fn settings() -> Arc<StoreSettings> {
        Arc::new(StoreSettings {
            places: Vec::new(),
            mode: OpenMode::Resume,
            folder: String::new(),
            lock_wait: Duration::ZERO,
            namespace: Namespace::default(),
        })
    }

    /// Waits until `is_free`, and reports that it has begun to.
    fn waiting(is_free: Arc<AtomicBool>, begun: Sender<()>, done: Sender<()>) -> Load {
        Box::new(move |_| {
            if is_free.load(Ordering::Relaxed) {
                return Step::Done(Box::new(move || done.send(()).expect("a test")));
            }
            begun.send(()).ok();
            Step::Later(waiting(is_free, begun, done))
        })
    }

    #[test]
    fn what_waits_for_another_process_stops_no_other() {
        const WAITING: usize = 3 * THREADS_MAX;
        let is_free: Arc<AtomicBool> = Arc::default();
        let ((begun, has_begun), (done, is_done)) = (channel(), channel());
        for _ in 0..WAITING {
            let load = waiting(is_free.clone(), begun.clone(), done.clone());
            spawn(settings(), load).expect("a thread");
        }
        for _ in 0..WAITING {
            has_begun.recv().expect("it begins");
        }
        let (other, is_other_done) = channel();
        let load: Load =
            Box::new(move |_| Step::Done(Box::new(move || other.send(()).expect("a test"))));
        spawn(settings(), load).expect("a thread");
        is_other_done.recv_timeout(Duration::from_secs(60)).expect("it is not stopped");
        assert!(is_done.try_recv().is_err(), "they wait");
        is_free.store(true, Ordering::Relaxed);
        for _ in 0..WAITING {
            is_done.recv_timeout(Duration::from_secs(60)).expect("it goes on");
        }
    }
}
