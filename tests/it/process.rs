//! What the system reports about a process, by its files under `/proc`.

use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::os::fd::AsRawFd;
use std::path::PathBuf;
use std::sync::LazyLock;
use std::thread;
use std::time::{Duration, Instant};
use tokio::signal::unix::{self, SignalKind};

/// Waiting longer than this is a failed test. Far more than anything takes, so that a machine with
/// much else to do fails no test.
pub(crate) const DEADLINE: Duration = Duration::from_secs(180);

/// The signals that tests send to a process which may ignore them.
const SENT_SIGNALS: [Signal; 3] = [Signal::HUP, Signal::INT, Signal::TERM];

/// Between two looks at something that reports no change.
const POLL_INTERVAL: Duration = Duration::from_millis(2);

/// Looks in a row at which a value must be the same to count as settled.
const SETTLED_LOOKS: u32 = 100;

/// `O_CLOEXEC`, as the kernel writes it on x86-64, Arm and RISC-V.
const CLOEXEC: u32 = 0o2_000_000;

/// Looks again and again until there is something to see. For what only the system knows; whatever
/// a frame or a thread reports is waited for.
#[track_caller]
pub(crate) fn eventually<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let started = Instant::now();
    loop {
        if let Some(seen) = look() {
            return seen;
        }
        assert!(started.elapsed() < DEADLINE, "waited {DEADLINE:?}, and never saw that {what}");
        thread::sleep(POLL_INTERVAL);
    }
}

/// Gives processes that are started from here on the default action of the signals that tests send,
/// as a terminal does. `nohup`, and a shell that starts a background job, have them ignored, and
/// what is ignored stays so in every child. What is caught does not: a program begins with the
/// default action of the signals that its parent catches (execve(2)). So an ignored signal is
/// caught here, which for the tests themselves comes to the same.
pub(crate) fn default_signals() {
    static CAUGHT: LazyLock<()> = LazyLock::new(|| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.expect("a runtime");
        let _guard = runtime.enter();
        for signal in SENT_SIGNALS.into_iter().filter(|signal| is_ignored(*signal)) {
            // It stays caught after what is returned here is dropped.
            drop(unix::signal(SignalKind::from_raw(signal.as_raw())).expect("a signal"));
        }
    });
    LazyLock::force(&CAUGHT);
}

/// Whether this process ignores a signal, by its file under `/proc` (proc_pid_status(5)).
fn is_ignored(signal: Signal) -> bool {
    let status = fs::read_to_string("/proc/self/status").expect("/proc");
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).expect("SigIgn");
    let mask = u64::from_str_radix(mask.trim(), 16).expect("a mask");
    mask & (1 << (signal.as_raw() - 1)) != 0
}

/// Looks again and again until a value no longer changes.
#[track_caller]
pub(crate) fn settled<T: PartialEq>(what: &str, mut look: impl FnMut() -> T) -> T {
    let mut last = look();
    let mut looks = 0;
    eventually(what, || {
        let now = look();
        looks = if now == last { looks + 1 } else { 0 };
        last = now;
        (looks >= SETTLED_LOOKS).then_some(())
    });
    last
}

/// A process that runs, or has run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Process(pub(crate) u32);

impl Process {
    /// The processes that have `text` in the environment they were started with.
    pub(crate) fn marked(text: &str) -> Vec<Self> {
        let all = fs::read_dir("/proc").expect("/proc").filter_map(Result::ok);
        let ids = all.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        ids.map(Self).filter(|process| process.has_environment(text)).collect()
    }

    fn has_environment(self, text: &str) -> bool {
        let environment = fs::read(self.path("environ")).unwrap_or_default();
        environment.windows(text.len()).any(|window| window == text.as_bytes())
    }

    /// Its command line; empty once it has ended.
    pub(crate) fn command_line(self) -> String {
        let words = fs::read(self.path("cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&words).replace('\0', " ").trim_end().to_owned()
    }

    /// The name of the program.
    pub(crate) fn name(self) -> String {
        let name = fs::read_to_string(self.path("comm")).unwrap_or_default();
        name.trim_end().to_owned()
    }

    pub(crate) fn send(self, signal: Signal) {
        let id = Pid::from_raw(self.0.cast_signed()).expect("a process id");
        // It may have ended just before.
        kill_process(id, signal).ok();
    }

    /// Bytes of memory that are in use.
    pub(crate) fn memory_bytes(self) -> u64 {
        let pages = fs::read_to_string(self.path("statm")).unwrap_or_default();
        let resident = pages.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok());
        resident.unwrap_or(0) * rustix::param::page_size() as u64
    }

    /// The most memory that was ever in use, in bytes.
    pub(crate) fn peak_memory_bytes(self) -> u64 {
        let status = fs::read_to_string(self.path("status")).expect("a process that lives");
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("VmHWM");
        let kib = peak.trim().trim_end_matches(" kB").parse::<u64>().expect("a number");
        kib * 1024
    }

    /// Whether it waits for something in all its threads, and is not merely given no processor.
    pub(crate) fn is_asleep(self) -> bool {
        let threads = fs::read_dir(self.path("task")).expect("a process that lives");
        let stats = threads.filter_map(|it| fs::read_to_string(it.ok()?.path().join("stat")).ok());
        // The state follows the name, which may hold parentheses (proc_pid_stat(5)).
        stats.into_iter().all(|stat| stat.rsplit_once(") ").is_none_or(|it| it.1.starts_with('S')))
    }

    /// Whether a signal has stopped it.
    pub(crate) fn is_stopped(self) -> bool {
        let stat = fs::read_to_string(self.path("stat")).expect("a process that lives");
        stat.rsplit_once(") ").is_some_and(|(_, fields)| fields.starts_with('T'))
    }

    /// The names of its threads.
    pub(crate) fn thread_names(self) -> Vec<String> {
        let threads = fs::read_dir(self.path("task")).expect("a process that lives");
        // A thread may have ended just before.
        let names = threads.filter_map(|it| fs::read_to_string(it.ok()?.path().join("comm")).ok());
        names.map(|name| name.trim_end().to_owned()).collect()
    }

    /// Time spent computing.
    pub(crate) fn cpu_time(self) -> Duration {
        let stat = fs::read_to_string(self.path("stat")).expect("a process that lives");
        // The name, in parentheses, may hold spaces; user and system time are the 14th and 15th.
        let (_, fields) = stat.rsplit_once(") ").expect("a name");
        let ticks = fields.split(' ').skip(11).take(2).map(|ticks| ticks.parse::<u64>());
        let ticks: u64 = ticks.map(|ticks| ticks.expect("a number")).sum();
        Duration::from_millis(ticks * 1000 / rustix::param::clock_ticks_per_second())
    }

    /// The open file descriptors, each with what it is open on.
    pub(crate) fn files(self) -> Vec<(i32, String)> {
        let files = fs::read_dir(self.path("fd")).expect("a process that lives");
        let files = files.filter_map(|entry| {
            let entry = entry.ok()?;
            let target = fs::read_link(entry.path()).ok()?;
            let number = entry.file_name().to_str()?.parse().ok()?;
            Some((number, target.to_string_lossy().into_owned()))
        });
        files.collect()
    }

    /// Whether a child would not get this descriptor.
    pub(crate) fn is_private(self, descriptor: i32) -> bool {
        let path = self.path(&format!("fdinfo/{descriptor}"));
        let info = fs::read_to_string(path).expect("an open descriptor");
        let flags = info.lines().find_map(|line| line.strip_prefix("flags:")).expect("flags");
        let flags = u32::from_str_radix(flags.trim(), 8).expect("an octal number");
        flags & CLOEXEC != 0
    }

    fn path(self, file: &str) -> PathBuf {
        PathBuf::from(format!("/proc/{}/{file}", self.0))
    }
}

/// What one of our own descriptors is open on. Both ends of a pipe have the same name.
pub(crate) fn target(descriptor: &impl AsRawFd) -> String {
    let path = format!("/proc/self/fd/{}", descriptor.as_raw_fd());
    let target = fs::read_link(path).expect("an open descriptor");
    target.to_string_lossy().into_owned()
}
