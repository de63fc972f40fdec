//! The row of this process in a database: who it is, and its heartbeat. The leases of all its sessions are valid
//! as long as it has one, so that thousands of them are renewed with one statement. A thread with a connection
//! of its own writes the heartbeat, so that nothing else can delay it.
//!
//! Another process of the same machine can see that a process has ended. Where that can't be known its leases
//! end with its heartbeat. A process whose heartbeat was late, because it was stopped or the server could not be
//! reached, looks up which of its leases others have taken since, and reports them.

use super::address::Address;
use super::error::PostgresError;
use super::link::{Link, Reactor, Value, begin};
use crate::store::sqlite::own_name;
use crate::support::lock;
use crate::support::threads;
use rustix::io::Errno;
use rustix::process::{Pid, getpid, test_kill_process};
use std::collections::{HashMap, HashSet};
use std::fs;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::time::Duration;
use tokio::sync::mpsc::UnboundedSender;
#[cfg(feature = "serve")]
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::time::timeout;
use tokio_postgres::types::Type;
use uuid::Uuid;

/// How long the leases of a process are valid after its last heartbeat.
pub(crate) const HEARTBEAT_MAX: Duration = Duration::from_secs(10);

/// Time between two heartbeats.
const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(3);

/// Time between two attempts once a heartbeat has failed.
const HEARTBEAT_RETRY_INTERVAL: Duration = Duration::from_secs(1);

/// How long a heartbeat over a connection that was kept may take: after one that hangs there is time for another
/// one, over a new connection, before the leases end.
const BEAT_MAX: Duration = Duration::from_secs(3);

/// A heartbeat is not waited for, and one whose connection hangs is not in the way of the next.
const BEAT_SETTINGS: &str =
    "SET LOCAL synchronous_commit = off; SET LOCAL idle_in_transaction_session_timeout = 2000";

/// Returns how old the heartbeat before it is, in seconds.
const BEAT: &str = "UPDATE duologue.processes p SET heartbeat_at = clock_timestamp() \
     FROM duologue.processes before WHERE p.id = $1 AND before.id = p.id \
     RETURNING extract(epoch FROM p.heartbeat_at - before.heartbeat_at)::float8";

/// Age of a heartbeat from which on the next one is late: leases may have been taken. Some time before they can be.
const LATE: Duration = HEARTBEAT_MAX.saturating_sub(Duration::from_secs(3));

/// Heartbeats after a late one that look for leases that were taken. The second one finds those that were being taken
/// while the first one looked.
const LOOKS: u32 = 2;

const OWN: &str = "SELECT session, token FROM duologue.leases WHERE process = $1";

/// Also where the row is gone. The generation is greater than that of any process before.
const JOIN: &str = "INSERT INTO duologue.processes \
     (id, generation, address, holder, machine, started_at, heartbeat_at) \
     VALUES ($1, nextval('duologue.fences'), $4, $2, $3, clock_timestamp(), clock_timestamp()) \
     ON CONFLICT (id) DO NOTHING";

/// The rows of processes that have ended and hold nothing.
const FORGET: &str = "DELETE FROM duologue.processes p \
     WHERE heartbeat_at < clock_timestamp() - interval '1 hour' \
     AND NOT EXISTS (SELECT 1 FROM duologue.leases l WHERE l.process = p.id)";

const LEAVE: [&str; 2] = [
    "DELETE FROM duologue.leases WHERE process = $1",
    "DELETE FROM duologue.processes WHERE id = $1",
];

/// Releases leases whatever their fences are: no other has their tokens.
const RELEASE: &str = "DELETE FROM duologue.leases l USING unnest($1, $2) AS it(session, token) \
     WHERE l.session = it.session AND l.token = it.token";

/// Where other processes reach this one, if they can.
static ADDRESS: OnceLock<String> = OnceLock::new();

/// Gets the sessions that other processes have taken.
static TAKEN: OnceLock<UnboundedSender<Vec<String>>> = OnceLock::new();

/// Has the leases of this process say where its conversations are reached. Before the first lease.
#[cfg(feature = "serve")]
pub(crate) fn advertise(address: String) {
    // A process has one address.
    ADDRESS.set(address).ok();
}

/// The stored ids of sessions that other processes have taken, as soon as the heartbeat of this one has noticed.
#[cfg(feature = "serve")]
pub(crate) fn taken_sessions() -> UnboundedReceiver<Vec<String>> {
    let (to, taken) = unbounded_channel();
    // Of a second node in the process the channel is closed.
    TAKEN.set(to).ok();
    taken
}

/// This process in a database. It has a row, and a heartbeat, once it has acquired a lease.
#[derive(Clone, Debug)]
pub(in crate::store) struct OwnProcess {
    id: Arc<str>,
    /// Ends the thread of the heartbeat when it is dropped.
    heartbeat: Arc<Mutex<Option<SyncSender<()>>>>,
    abandoned: Arc<Mutex<Abandoned>>,
    /// The token of each session that is leased, as far as this process knows.
    tokens: Arc<Mutex<HashMap<String, String>>>,
}

/// Leases that nobody uses any more and that could not be released, or may have been acquired though the answer was
/// lost. Without being released they would be valid as long as this process has a heartbeat.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Abandoned {
    sessions: Vec<String>,
    tokens: Vec<String>,
}

impl Default for OwnProcess {
    fn default() -> Self {
        Self {
            id: Uuid::new_v4().to_string().into(),
            heartbeat: Arc::default(),
            abandoned: Arc::default(),
            tokens: Arc::default(),
        }
    }
}

impl OwnProcess {
    pub(super) fn id(&self) -> &str {
        &self.id
    }

    /// A copy for the thread of the heartbeat: it must not hold the sender whose drop ends that thread.
    fn without_heartbeat(&self) -> Self {
        Self { heartbeat: Arc::default(), ..self.clone() }
    }

    /// Notes a lease that was acquired.
    pub(super) fn acquired(&self, session: &str, token: &str) {
        lock(&self.tokens).insert(session.to_owned(), token.to_owned());
    }

    /// Notes that a lease is not used any more, before it is released.
    pub(super) fn let_go(&self, session: &str, token: &str) {
        let mut tokens = lock(&self.tokens);
        if tokens.get(session).is_some_and(|it| it == token) {
            tokens.remove(session);
        }
    }

    /// Notes which leases are not in `own` any more, the sessions and tokens that the server has for this process, of
    /// those that were known `before` it was asked. Returns their sessions.
    fn lost(&self, before: HashMap<String, String>, own: &HashSet<(&str, &str)>) -> Vec<String> {
        let mut tokens = lock(&self.tokens);
        let is_lost = |(session, token): &(String, String)| {
            // Others were released meanwhile.
            !own.contains(&(session, token)) && tokens.get(session) == Some(token)
        };
        let lost: Vec<_> = before.into_iter().filter(is_lost).map(|(session, _)| session).collect();
        lost.iter().for_each(|session| drop(tokens.remove(session)));
        lost
    }

    /// Has the heartbeat release a lease.
    pub(super) fn abandon(&self, session: &str, token: &str) {
        self.let_go(session, token);
        let mut abandoned = lock(&self.abandoned);
        abandoned.sessions.push(session.to_owned());
        abandoned.tokens.push(token.to_owned());
    }

    /// The sessions whose leases the heartbeat is to release.
    #[cfg(test)]
    pub(in crate::store) fn abandoned(&self) -> Vec<String> {
        lock(&self.abandoned).sessions.clone()
    }

    fn thread(&self) -> MutexGuard<'_, Option<SyncSender<()>>> {
        lock(&self.heartbeat)
    }

    /// Makes the row of this process, and starts its heartbeat, before its first lease.
    pub(super) async fn join(&self, link: &Link, address: &Address) -> Result<(), PostgresError> {
        if self.thread().is_some() {
            return Ok(());
        }
        beat(link, &self.id).await?;
        link.execute(FORGET, &[]).await?;
        let mut thread = self.thread();
        if thread.is_none() {
            let (running, ended) = sync_channel(0);
            let (process, address) = (self.without_heartbeat(), address.clone());
            threads::spawn("store-heartbeat", move || keep_alive(&process, &address, &ended))
                .map_err(|error| PostgresError::Runtime(std::io::Error::other(error)))?;
            *thread = Some(running);
        }
        Ok(())
    }

    /// Ends the heartbeat, and releases all leases of this process.
    pub(super) async fn leave(&self, link: &Link) -> Result<(), PostgresError> {
        if self.thread().take().is_some() {
            lock(&self.tokens).clear();
            for sql in LEAVE {
                link.execute(sql, &[(&self.id(), Type::TEXT)]).await?;
            }
        }
        Ok(())
    }
}

/// Writes the heartbeat. Returns whether leases may have been taken before it, because it was late or the row was gone.
async fn beat(link: &Link, id: &str) -> Result<bool, PostgresError> {
    link.run(&format!("{}{BEAT_SETTINGS}", begin(0))).await?;
    let before = link.row(BEAT, &[(&id, Type::TEXT)]).await?;
    // One of the future counts for nobody, as after the server's clock was put back.
    let is_late = before.as_ref().is_none_or(|row| {
        let age: f64 = row.get(0);
        age < 0.0 || age > LATE.as_secs_f64()
    });
    if before.is_none() {
        let (holder, machine) = (own_name(), own());
        let address = ADDRESS.get().map(String::as_str).unwrap_or_default();
        let values: [Value<'_>; 4] = [
            (&id, Type::TEXT),
            (&holder, Type::TEXT),
            (&machine, Type::TEXT),
            (&address, Type::TEXT),
        ];
        link.execute(JOIN, &values).await?;
    }
    link.run("COMMIT").await?;
    Ok(is_late)
}

/// Looks up which leases other processes have taken, and reports them.
async fn look(link: &Link, process: &OwnProcess) -> Result<(), PostgresError> {
    let before = lock(&process.tokens).clone();
    let rows = link.rows(OWN, &[(&process.id(), Type::TEXT)]).await?;
    let own: HashSet<(&str, &str)> = rows.iter().map(|row| (row.get(0), row.get(1))).collect();
    let lost = process.lost(before, &own);
    if lost.is_empty() {
        return Ok(());
    }
    let count = lost.len();
    tracing::debug!(
        count,
        "other processes have taken sessions, as the store had not heard of this one"
    );
    // Nobody waits for it in a process that is no node.
    if let Some(to) = TAKEN.get() {
        to.send(lost).ok();
    }
    Ok(())
}

/// Releases what was abandoned before this moment.
async fn release(link: &Link, all: &Mutex<Abandoned>) -> Result<(), PostgresError> {
    let Abandoned { sessions, tokens } = lock(all).clone();
    if sessions.is_empty() {
        return Ok(());
    }
    let values: [Value<'_>; 2] = [(&sessions, Type::TEXT_ARRAY), (&tokens, Type::TEXT_ARRAY)];
    link.execute(RELEASE, &values).await?;
    let mut left = lock(all);
    left.sessions.drain(..sessions.len());
    left.tokens.drain(..tokens.len());
    Ok(())
}

/// Writes the heartbeat until `ended` is closed.
fn keep_alive(process: &OwnProcess, address: &Address, ended: &Receiver<()>) {
    // Without it the leases end, and each write finds out whether its lease is still ours.
    let Ok(reactor) = Reactor::new() else { return };
    let mut link = None;
    let (mut interval, mut looks) = (HEARTBEAT_INTERVAL, 0);
    while ended.recv_timeout(interval) == Err(RecvTimeoutError::Timeout) {
        interval = HEARTBEAT_INTERVAL;
        let beating = async {
            let is_new = link.is_none();
            let link = match &mut link {
                Some(link) => link,
                none => none.insert(Link::open(address).await?),
            };
            let beating = beat(link, &process.id);
            // Over a new one the server has answered just now: it is slow, where a connection that was kept may hang.
            let is_late = match is_new {
                true => beating.await?,
                false => in_time(address, beating).await?,
            };
            looks = if is_late { LOOKS } else { looks };
            if looks > 0 {
                in_time(address, look(link, process)).await?;
                looks -= 1;
            }
            in_time(address, release(link, &process.abandoned)).await
        };
        if let Err(error) = reactor.run(beating) {
            tracing::debug!(%error, "the heartbeat of this process could not be written");
            link = None;
            // It may have been written all the same, so that the next one is not late.
            looks = LOOKS;
            let is_late = matches!(error, PostgresError::Silent { .. });
            interval = if is_late { Duration::ZERO } else { HEARTBEAT_RETRY_INTERVAL };
        }
    }
}

/// Waits no longer than the next heartbeat can.
async fn in_time<T>(
    address: &Address,
    work: impl Future<Output = Result<T, PostgresError>>,
) -> Result<T, PostgresError> {
    let silent = |_| PostgresError::Silent { place: address.to_string(), limit: BEAT_MAX };
    timeout(BEAT_MAX, work).await.map_err(silent)?
}

pub(super) fn heartbeat_max_ms() -> f64 {
    HEARTBEAT_MAX.as_secs_f64() * 1000.0
}

/// The machine since its start, the group of processes whose numbers mean the same, the number of this
/// process, and when it was started; empty if the system does not say.
fn own() -> String {
    let pid = getpid();
    let started = started(pid);
    match (here(), started) {
        (Some(here), Some(started)) => format!("{here} {} {started}", pid.as_raw_nonzero()),
        (_, _) => String::new(),
    }
}

/// Whether the process of [`own`] text `of` ran on this machine and has ended.
pub(super) fn has_ended(of: &str) -> bool {
    let Some(here) = here() else { return false };
    let Some(process) = of.strip_prefix(&here) else { return false };
    let mut words = process.split_whitespace();
    let (Some(pid), Some(start)) = (words.next(), words.next()) else { return false };
    let Some(pid) = pid.parse().ok().and_then(Pid::from_raw) else { return false };
    match test_kill_process(pid) {
        Err(Errno::SRCH) => true,
        // Its number may be that of another process by now.
        Ok(()) | Err(_) => {
            state_and_start(pid).is_some_and(|(state, now)| now != start || state == 'Z')
        }
    }
}

fn here() -> Option<String> {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    let group = fs::read_link("/proc/self/ns/pid").ok()?;
    Some(format!("{} {}", boot.trim(), group.display()))
}

fn started(pid: Pid) -> Option<String> {
    state_and_start(pid).map(|(_, start)| start)
}

/// The state of a process, and the time of its start in ticks of the machine (proc(5), `stat`).
fn state_and_start(pid: Pid) -> Option<(char, String)> {
    let stat = fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).ok()?;
    // The name before may contain anything.
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_whitespace();
    let state = fields.next()?.chars().next()?;
    Some((state, fields.nth(18)?.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_is_lost_only_if_it_was_not_released_or_acquired_meanwhile() {
        let process = OwnProcess::default();
        for session in ["kept", "released", "again", "taken"] {
            process.acquired(session, "first");
        }
        let before = lock(&process.tokens).clone();
        process.let_go("released", "first");
        process.let_go("again", "first");
        process.acquired("again", "second");
        process.acquired("new", "first");
        let own = HashSet::from([("kept", "first"), ("new", "first")]);
        assert_eq!(process.lost(before.clone(), &own), ["taken"]);
        assert_eq!(process.lost(before, &own), [""; 0], "it is reported once");
        process.let_go("again", "first");
        let mut left: Vec<_> = lock(&process.tokens).keys().cloned().collect();
        left.sort();
        assert_eq!(left, ["again", "kept", "new"]);
    }

    #[test]
    fn a_process_has_ended_only_if_that_is_certain() {
        let own = own();
        assert!(!own.is_empty() && !has_ended(&own), "{own}");
        assert!(!has_ended("") && !has_ended("another machine 1 2"));
        let here = here().expect("a machine");
        assert!(has_ended(&format!("{here} {} 1", getpid().as_raw_nonzero())), "another start");
        assert!(has_ended(&format!("{here} {} 1", i32::MAX)), "no such process");
        assert!(!has_ended(&format!("{here} x 1")) && !has_ended(&here));
    }
}
