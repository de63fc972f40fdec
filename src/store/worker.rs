//! The store actor: a thread that takes one request at a time, and sends one report for each.

use super::error::StoreError;
use super::place::StoreSettings;
use super::session_stores::SessionStores;
use crate::conversation::log::{Record, Restored, StoreFailure, first_ordinal};
use crate::protocol::id::SessionId;
use crate::protocol::wire::{ClientError, Code};
use crate::support::fail_point::{FailPoint, Place, Plan};
use crate::support::threads::{self, NoThread};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{self as blocking, RecvTimeoutError};
use std::time::Duration;
use tokio::sync::mpsc;

/// Requests that may wait: one that is being done, and the end.
const REQUESTS_MAX: usize = 2;

/// Idle time after which the write-ahead log is checkpointed and truncated.
const IDLE_MIN: Duration = Duration::from_secs(2);

/// What the store is to do.
#[derive(Debug)]
pub(crate) enum Request {
    /// Open the databases, so that it is known whether they can be used. The session has no name yet.
    Prepare,
    /// Lock the session, and load it if it goes on.
    Open(SessionId),
    /// Store these records, all or none.
    Write(Vec<Record>),
    /// Close the databases and end.
    Close,
}

/// What became of a request.
#[derive(Debug)]
pub(crate) enum Report {
    /// The databases are open, and the session is locked if it has a name; it goes on with this.
    Opened(Result<Option<Box<Restored>>, ClientError>),
    /// The records are stored.
    Written(Result<(), StoreFailure>),
    /// The databases are closed.
    Closed,
}

/// The thread that owns the databases. It ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Worker {
    requests: blocking::SyncSender<Request>,
    reports: mpsc::Receiver<Report>,
}

impl Worker {
    /// Starts the thread. It opens nothing before it is asked to.
    pub(crate) fn start(settings: StoreSettings, faults: &Plan) -> Result<Self, NoThread> {
        let (requests, to_do) = blocking::sync_channel(REQUESTS_MAX);
        let (done, reports) = mpsc::channel(REQUESTS_MAX);
        let (persist, statements) = (faults.at(Place::Persist), faults.at(Place::Store));
        let work = move || serve(SessionStores::new(settings, statements), persist, &to_do, &done);
        threads::spawn("store", work)?;
        Ok(Self { requests, reports })
    }

    /// Asks for something. One request at a time, except for the end.
    pub(crate) fn ask(&self, request: Request) {
        // If the thread has ended, that is the next report.
        drop(self.requests.try_send(request));
    }

    /// Waits for the next report. Cancel-safe.
    pub(crate) async fn report(&mut self) -> Report {
        let ended = || {
            let reason = "its thread has ended".to_owned();
            Report::Written(Err(StoreFailure { reason, first_missing: None }))
        };
        self.reports.recv().await.unwrap_or_else(ended)
    }
}

fn serve(
    mut stores: SessionStores,
    mut fault: FailPoint,
    to_do: &blocking::Receiver<Request>,
    done: &mpsc::Sender<Report>,
) {
    let mut is_tidy = true;
    loop {
        let request = match to_do.recv_timeout(IDLE_MIN) {
            Ok(request) => request,
            Err(RecvTimeoutError::Timeout) if is_tidy => match to_do.recv() {
                Ok(request) => request,
                Err(_) => return,
            },
            Err(RecvTimeoutError::Timeout) => {
                stores.tidy();
                is_tidy = true;
                continue;
            }
            Err(RecvTimeoutError::Disconnected) => return,
        };
        is_tidy = false;
        let ends_turn = matches!(&request, Request::Write(batch) if batch.iter().any(is_end));
        let report = match request {
            Request::Prepare => Report::Opened(opened(|| stores.prepare().map(|()| None))),
            Request::Open(session) => Report::Opened(opened(|| stores.open(session))),
            Request::Write(batch) => Report::Written(written(&mut stores, batch, &mut fault)),
            Request::Close => {
                drop(stores);
                // Who does not wait for it needs no answer.
                drop(done.blocking_send(Report::Closed));
                return;
            }
        };
        if done.blocking_send(report).is_err() {
            return;
        }
        if ends_turn {
            stores.settle();
        }
    }
}

/// Whether a turn ends with the record.
fn is_end(record: &Record) -> bool {
    record.event().is_some_and(|recorded| recorded.event.ends_turn())
}

type Opened = Option<Box<Restored>>;

fn opened(opening: impl FnOnce() -> Result<Opened, StoreError>) -> Result<Opened, ClientError> {
    match catch_unwind(AssertUnwindSafe(opening)) {
        Ok(opened) => opened.map_err(|error| error.client_error()),
        Err(_) => Err(ClientError {
            code: Code::Internal,
            message:
                "loading the session met a defect of this program; nothing was changed in the \
                      store; please report it"
                    .to_owned(),
            detail: String::new(),
            terminal: true,
        }),
    }
}

fn written(
    stores: &mut SessionStores,
    batch: Vec<Record>,
    fault: &mut FailPoint,
) -> Result<(), StoreFailure> {
    let first_missing = first_ordinal(&batch);
    let failure = |reason| StoreFailure { reason, first_missing };
    let writing = AssertUnwindSafe(|| {
        fault.step();
        stores.write(batch)
    });
    match catch_unwind(writing) {
        Ok(written) => written.map_err(|error| failure(error.to_string())),
        Err(_) => Err(failure("storing met a defect of this program".to_owned())),
    }
}
