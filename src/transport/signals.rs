//! The signals that ask the process to end.

use crate::session::Signal;
use std::fs::File;
use std::future::pending;
use std::io::{self, Read};
use tokio::signal::unix::{self, SignalKind};
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TrySendError;
use tokio::task::yield_now;

/// Signals that may wait to be handled. More of them mean nothing more.
const WAITING_MAX: usize = 16;

/// Turns in which the runtime asks the system for events, and runs the task that listens.
const TURNS_OF_RUNTIME: usize = 2;

/// Receives the signals. Tasks of their own listen, so that a loop that waits for many things at a
/// time asks one channel, and not one for each signal, whenever it goes round.
#[derive(Debug)]
pub(crate) struct Signals {
    received: mpsc::Receiver<Signal>,
    to: mpsc::Sender<Signal>,
}

/// The signals that end every process.
const ENDING: [Signal; 3] = [Signal::Hangup, Signal::Interrupt, Signal::Terminate];

impl Signals {
    /// Handles the signals that end every process from here on, so that they do not end it by
    /// themselves. One that was ignored when the process started, as under `nohup`, stays ignored.
    /// Needs a runtime.
    ///
    /// # Errors
    /// If a handler can't be installed.
    pub(crate) fn listen() -> io::Result<Self> {
        let (to, received) = mpsc::channel(WAITING_MAX);
        let signals = Self { received, to };
        let ignored = Ignored::now();
        take_of_system(ignored)?;
        signals.listen_unless_ignored(&ENDING, ignored)?;
        Ok(signals)
    }

    /// Handles these signals too. Needs a runtime.
    ///
    /// # Errors
    /// If a handler can't be installed.
    pub(crate) fn listen_to(&self, signals: &[Signal]) -> io::Result<()> {
        self.listen_unless_ignored(signals, Ignored::now())
    }

    fn listen_unless_ignored(&self, signals: &[Signal], ignored: Ignored) -> io::Result<()> {
        for signal in signals {
            if !ignored.has(signal.number()) {
                let kind = SignalKind::from_raw(signal.number().into());
                tokio::spawn(pass_on(*signal, unix::signal(kind)?, self.to.clone()));
            }
        }
        Ok(())
    }

    /// Waits for the next signal.
    pub(crate) async fn next(&mut self) -> Signal {
        match self.received.recv().await {
            Some(signal) => signal,
            None => pending().await,
        }
    }

    /// The signal that has arrived already, if one has. The runtime may have seen it after other events that it was
    /// sent before, and has yet to run the task that listens.
    pub(crate) async fn arrived(&mut self) -> Option<Signal> {
        for _ in 0..TURNS_OF_RUNTIME {
            yield_now().await;
        }
        self.received.try_recv().ok()
    }
}

/// Sends the signal to `to` each time that it arrives, until the receiver is dropped.
async fn pass_on(signal: Signal, mut arrives: unix::Signal, to: mpsc::Sender<Signal>) {
    while arrives.recv().await.is_some() {
        if let Err(TrySendError::Closed(_)) = to.try_send(signal) {
            return;
        }
    }
}

/// The part of [`Signals::listen`] that concerns the signals of the system about what the process does.
///
/// # Errors
/// If a handler can't be installed.
pub(crate) fn take_signals_of_system() -> io::Result<()> {
    take_of_system(Ignored::now())
}

/// Handles the signal for a file that grows past the limit on its size (`ulimit -f`), so that only
/// the write fails, as on a full disk, and the process goes on; and that for the end of a child if it is
/// ignored, as some daemons leave it to the programs that they start: the system would then forget how the
/// child ended. They are handled, not ignored: a child process gets their default action back.
fn take_of_system(ignored: Ignored) -> io::Result<()> {
    use rustix::process::Signal;
    let is_ignored = |number: i32| u8::try_from(number).is_ok_and(|number| ignored.has(number));
    let (size, child) = (Signal::XFSZ.as_raw(), Signal::CHILD.as_raw());
    for (number, is_taken) in [(size, !is_ignored(size)), (child, is_ignored(child))] {
        if is_taken {
            // The stream is not needed: the write that caused the first fails with EFBIG, and a child is waited for.
            drop(unix::signal(SignalKind::from_raw(number))?);
        }
    }
    Ok(())
}

/// The signals that this process ignores, a bit for each.
#[derive(Clone, Copy)]
struct Ignored(u64);

impl Ignored {
    /// As the process is now. Without /proc no signal counts as ignored.
    fn now() -> Self {
        /// More than such a file has, so that one read is enough.
        const STATUS_BYTES: usize = 4096;
        let mut status = String::with_capacity(STATUS_BYTES);
        let read =
            File::open("/proc/self/status").and_then(|mut it| it.read_to_string(&mut status));
        Self::of(if read.is_ok() { &status } else { "" })
    }

    /// Those that `status`, the text of `/proc/pid/status` (proc(5)), lists.
    fn of(status: &str) -> Self {
        let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
        Self(mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0))
    }

    fn has(self, number: u8) -> bool {
        self.0 & (1 << (number - 1)) != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ignored_signals_are_read_from_the_mask() {
        let check = |mask: &str, hangup, interrupt, terminate| {
            let status = format!("Name:\tduologue\nSigIgn:\t{mask}\nSigCgt:\tffff\n");
            let read = |signal: Signal| Ignored::of(&status).has(signal.number());
            assert_eq!(read(Signal::Hangup), hangup, "{mask}");
            assert_eq!(read(Signal::Interrupt), interrupt, "{mask}");
            assert_eq!(read(Signal::Terminate), terminate, "{mask}");
        };
        check("0000000000000000", false, false, false);
        check("0000000000001001", true, false, false);
        check("0000000000001002", false, true, false);
        check("0000000000004003", true, true, true);
        check("no mask", false, false, false);
        assert!(!Ignored::of("").has(Signal::Hangup.number()));
    }
}
