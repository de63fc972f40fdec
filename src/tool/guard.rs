//! The guard: a small process between us and a server. It starts the server, outlives us by a moment,
//! and ends the server with all its descendants when the server's standard input is closed: by us, or
//! because we are no more, for whatever reason.
//!
//! A signal that the system sends at the death of a parent is lost with every wrapper (`npx`, `uvx`,
//! a shell) between us and the server, so the guard stays. On Linux it adopts what the server's
//! processes leave behind, also those with a session of their own, and finds its descendants in
//! `/proc`. Elsewhere it ends the server's process group.

use crate::support::{stderr, threads};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::process::{self, Pid, Signal, WaitOptions, WaitStatus};
use std::ffi::{OsStr, OsString};
use std::fs::OpenOptions;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};
use tokio::signal::unix::{SignalKind, signal};

/// The hidden command of this program that runs a guard.
pub const COMMAND: &str = "__guard";

/// Begins the line that a guard writes if the server could not be started.
pub(super) const CANT_START: &str = "can't start ";

/// How long a server has to end by itself after its standard input is closed.
pub(super) const INPUT_GRACE: Duration = Duration::from_secs(1);

/// How long its processes have to end after SIGTERM.
pub(super) const TERM_GRACE: Duration = Duration::from_secs(1);

/// Grace period of processes that a server left behind when it ended.
const REMNANT_GRACE: Duration = Duration::from_millis(200);

/// How long processes that got SIGKILL are waited for: the system may hold one up.
pub(super) const KILL_GRACE: Duration = Duration::from_secs(2);

/// Between two rounds of SIGKILL, for processes that were started meanwhile.
const KILL_INTERVAL: Duration = Duration::from_millis(20);

/// Exit status if the server can't be started, as in shells.
const NOT_STARTED: u8 = 127;

/// The events that the guard waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Event {
    /// The server's own process ended, with this status in the form of shells.
    ServerEnded(u8),
    /// No child is left; on Linux, no descendant.
    AllEnded,
    /// We closed the pipe or are no more, or the guard itself got a signal.
    InputClosed,
}

/// Why `program` could not be started.
fn not_started(program: &OsStr, error: &io::Error) -> String {
    let hint = match error.kind() == io::ErrorKind::NotFound && is_like_address(program) {
        true => "; an address begins with https:// or http://",
        false => "",
    };
    format!("{CANT_START}{program:?}: {error}{hint}")
}

/// Whether `program` looks like an address whose scheme was left out: a host with a path or a port.
fn is_like_address(program: &OsStr) -> bool {
    let text = program.to_string_lossy();
    let Some((host, rest)) = text.split_once(['/', ':']) else { return false };
    let has_port = text.contains(':') && rest.starts_with(|it: char| it.is_ascii_digit());
    let is_host = host.contains('.') && !host.starts_with('.');
    is_host || host == "localhost" || has_port && !host.is_empty()
}

/// Runs the server whose command and arguments are `words`, and returns its exit status.
pub fn main(words: &[OsString]) -> u8 {
    match run(words) {
        Ok(status) => status,
        Err(why) => {
            stderr::message(&format!("{why}\n"));
            NOT_STARTED
        }
    }
}

fn run(words: &[OsString]) -> Result<u8, String> {
    let Some((program, args)) = words.split_first() else {
        return Err("no command".to_owned());
    };
    // Out of the terminal's reach: Ctrl-C must not end the server before us. It fails for the leader
    // of a process group, which no process makes it.
    process::setsid().ok();
    #[cfg(target_os = "linux")]
    process::set_child_subreaper(Some(process::getpid())).ok();
    let (events, queue) = mpsc::channel();
    // From here on the usual signals end the server first.
    take_signals(events.clone()).map_err(|error| error.to_string())?;
    let server = Command::new(program).args(args).process_group(0).spawn();
    let server = server.map_err(|error| not_started(program, &error))?;
    let server = Pid::from_child(&server);
    release_output().map_err(|error| error.to_string())?;
    let reaper = events.clone();
    threads::spawn("reaper", move || reap(server, &reaper)).map_err(|it| it.to_string())?;
    let input = threads::spawn("input", move || await_end_of_input(&events));
    if input.is_err() {
        // Without it, the end of this process would go unnoticed: better no server.
        kill_until_gone(server, &queue);
    }
    input.map_err(|error| error.to_string())?;
    Ok(Guard { server, queue }.stay())
}

/// The guard's copies of the server's pipes would hide that the server has closed its own.
fn release_output() -> io::Result<()> {
    let nowhere = OpenOptions::new().write(true).open("/dev/null")?;
    rustix::stdio::dup2_stdout(&nowhere)?;
    rustix::stdio::dup2_stderr(&nowhere)?;
    Ok(())
}

struct Guard {
    server: Pid,
    queue: Receiver<Event>,
}

impl Guard {
    /// Stays until the server has ended, and no descendant is left. Returns the server's status.
    fn stay(self) -> u8 {
        let mut status = None;
        match self.queue.recv() {
            Ok(Event::ServerEnded(own)) => status = Some(own),
            Ok(Event::InputClosed) => status = self.server_ended(INPUT_GRACE),
            Ok(Event::AllEnded) | Err(_) => {}
        }
        let grace = if status.is_some() { REMNANT_GRACE } else { TERM_GRACE };
        signal_all(self.server, Signal::TERM);
        status = self.all_ended(grace, status);
        kill_until_gone(self.server, &self.queue);
        status.unwrap_or(128 + Signal::KILL.as_raw().unsigned_abs() as u8)
    }

    /// The status of the server, if it ends within `grace`.
    fn server_ended(&self, grace: Duration) -> Option<u8> {
        let deadline = Instant::now() + grace;
        while let Ok(event) = self.queue.recv_timeout(until(deadline)) {
            match event {
                Event::ServerEnded(status) => return Some(status),
                Event::AllEnded => return None,
                Event::InputClosed => {}
            }
        }
        None
    }

    /// Waits until all have ended, but at most for `grace`.
    fn all_ended(&self, grace: Duration, mut status: Option<u8>) -> Option<u8> {
        let deadline = Instant::now() + grace;
        while let Ok(event) = self.queue.recv_timeout(until(deadline)) {
            match event {
                Event::ServerEnded(own) => status = Some(own),
                Event::AllEnded => break,
                Event::InputClosed => {}
            }
        }
        status
    }
}

fn until(deadline: Instant) -> Duration {
    deadline.saturating_duration_since(Instant::now())
}

/// Sends SIGKILL until no process is left, as processes may start others meanwhile.
fn kill_until_gone(server: Pid, queue: &Receiver<Event>) {
    let deadline = Instant::now() + KILL_GRACE;
    while Instant::now() < deadline && signal_all(server, Signal::KILL) {
        match queue.recv_timeout(KILL_INTERVAL) {
            Ok(Event::AllEnded) | Err(RecvTimeoutError::Disconnected) => return,
            Ok(Event::ServerEnded(_) | Event::InputClosed) | Err(RecvTimeoutError::Timeout) => {}
        }
    }
}

/// Sends a signal to all descendants of this process, or at least to the server's process group.
/// Returns whether there was any.
fn signal_all(server: Pid, signal: Signal) -> bool {
    match descendants(process::getpid()) {
        Some(descendants) => {
            for descendant in &descendants {
                process::kill_process(*descendant, signal).ok();
            }
            !descendants.is_empty()
        }
        None => process::kill_process_group(server, signal).is_ok(),
    }
}

/// The descendants of a process; `None` where they can't be found.
#[cfg(target_os = "linux")]
pub(crate) fn descendants(ancestor: Pid) -> Option<Vec<Pid>> {
    let processes = living()?;
    let mut found = vec![ancestor.as_raw_pid()];
    let mut next = 0;
    while let Some(parent) = found.get(next).copied() {
        found.extend(processes.iter().filter(|it| it.parent == parent).map(|it| it.id));
        next += 1;
    }
    Some(found.into_iter().skip(1).filter_map(Pid::from_raw).collect())
}

/// Ends the processes of a guard that was killed: those of the session that it led.
#[cfg(target_os = "linux")]
pub(super) fn kill_session(guard: Pid) {
    let processes = living().into_iter().flatten();
    let own = processes.filter(|process| process.session == guard.as_raw_pid());
    for process in own.filter_map(|process| Pid::from_raw(process.id)) {
        process::kill_process(process, Signal::KILL).ok();
    }
}

/// A process, as its file under `/proc` describes it.
#[cfg(target_os = "linux")]
struct Living {
    id: i32,
    parent: i32,
    session: i32,
}

/// All processes that are no zombies: those have handed over their children.
#[cfg(target_os = "linux")]
fn living() -> Option<Vec<Living>> {
    let entries = std::fs::read_dir("/proc").ok()?.filter_map(Result::ok);
    let ids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    Some(ids.filter_map(described).collect())
}

/// A process by its `stat` file (proc_pid_stat(5)).
#[cfg(target_os = "linux")]
fn described(id: i32) -> Option<Living> {
    let stat = std::fs::read(format!("/proc/{id}/stat")).ok()?;
    // The name, in parentheses, may hold anything.
    let end = memchr::memrchr(b')', &stat)?;
    let fields = std::str::from_utf8(&stat[end + 1..]).ok()?;
    let mut fields = fields.split_ascii_whitespace();
    let state = fields.next()?;
    let parent = fields.next()?.parse().ok()?;
    let session = fields.nth(1)?.parse().ok()?;
    (state != "Z").then_some(Living { id, parent, session })
}

/// Other systems have no such files, and only the first process adopts orphans.
#[cfg(not(target_os = "linux"))]
pub(crate) fn descendants(_: Pid) -> Option<Vec<Pid>> {
    None
}

/// They are not found there either.
#[cfg(not(target_os = "linux"))]
pub(super) fn kill_session(_: Pid) {}

/// Collects the statuses of children, its own and those it adopted, until there are none.
fn reap(server: Pid, events: &Sender<Event>) {
    loop {
        match process::wait(WaitOptions::empty()) {
            Ok(Some((child, status))) if child == server => {
                events.send(Event::ServerEnded(shell_status(status))).ok();
            }
            Ok(_) | Err(Errno::INTR) => {}
            Err(_) => break,
        }
    }
    events.send(Event::AllEnded).ok();
}

fn shell_status(status: WaitStatus) -> u8 {
    let signalled = || status.terminating_signal().map(|signal| 128 + signal);
    let status = status.exit_status().or_else(signalled).unwrap_or_default();
    u8::try_from(status).unwrap_or(u8::MAX)
}

/// Waits until every writer of standard input has closed it. The bytes in the pipe are left to the server.
fn await_end_of_input(events: &Sender<Event>) {
    let input = rustix::stdio::stdin();
    loop {
        let mut fds = [PollFd::from_borrowed_fd(input, PollFlags::empty())];
        match poll(&mut fds, None) {
            Err(Errno::INTR) => {}
            Ok(_) | Err(_) => break,
        }
    }
    events.send(Event::InputClosed).ok();
}

/// Has SIGHUP, SIGINT and SIGTERM, from whomever, end the server rather than the guard alone.
fn take_signals(events: Sender<Event>) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    let inside = runtime.enter();
    let mut hangup = signal(SignalKind::hangup())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    drop(inside);
    let wait = move || {
        runtime.block_on(async {
            tokio::select! {
                _ = hangup.recv() => {}
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
        });
        events.send(Event::InputClosed).ok();
    };
    threads::spawn("signals", wait).map_err(io::Error::other)
}
