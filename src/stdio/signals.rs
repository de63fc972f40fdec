//! The signals that ask the process to end.

use crate::session::Signal;
use std::future::pending;
use std::io;
use tokio::signal::unix::{self, SignalKind};
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TrySendError;

/// Signals that may wait to be handled. More of them mean nothing more.
const WAITING_MAX: usize = 16;

/// Receives the signals. A task of its own listens, so that a loop that waits for many things at a
/// time asks one channel, and not one for each signal, whenever it goes round.
#[derive(Debug)]
pub(crate) struct Signals(mpsc::Receiver<Signal>);

/// The signals that are listened to.
struct Listened {
    hangup: Option<unix::Signal>,
    interrupt: Option<unix::Signal>,
    terminate: Option<unix::Signal>,
}

impl Signals {
    /// Handles the signals from here on, so that they do not end the process by themselves. One that
    /// was ignored when the process started, as under `nohup`, stays ignored. Needs a runtime.
    ///
    /// # Errors
    /// If a handler can't be installed.
    pub(crate) fn listen() -> io::Result<Self> {
        let ignored = Ignored::now();
        let listen = |signal: Signal, kind: SignalKind| {
            (!ignored.has(signal.number())).then(|| unix::signal(kind)).transpose()
        };
        take_unless_ignored(ignored)?;
        let listened = Listened {
            hangup: listen(Signal::Hangup, SignalKind::hangup())?,
            interrupt: listen(Signal::Interrupt, SignalKind::interrupt())?,
            terminate: listen(Signal::Terminate, SignalKind::terminate())?,
        };
        let (to, signals) = mpsc::channel(WAITING_MAX);
        tokio::spawn(listened.pass_on(to));
        Ok(Self(signals))
    }

    /// Waits for the next signal.
    pub(crate) async fn next(&mut self) -> Signal {
        match self.0.recv().await {
            Some(signal) => signal,
            None => pending().await,
        }
    }
}

impl Listened {
    /// Sends each signal to `to`, for as long as somebody receives them.
    async fn pass_on(mut self, to: mpsc::Sender<Signal>) {
        loop {
            let signal = self.next().await;
            if let Err(TrySendError::Closed(_)) = to.try_send(signal) {
                return;
            }
        }
    }

    async fn next(&mut self) -> Signal {
        tokio::select! {
            () = heard(&mut self.hangup) => Signal::Hangup,
            () = heard(&mut self.interrupt) => Signal::Interrupt,
            () = heard(&mut self.terminate) => Signal::Terminate,
        }
    }
}

/// The part of [`Signals::listen`] that concerns the limit on the size of a file.
///
/// # Errors
/// If a handler can't be installed.
pub(crate) fn take_file_size_signal() -> io::Result<()> {
    take_unless_ignored(Ignored::now())
}

/// Handles the signal for a file that grows past the limit on its size (`ulimit -f`), so that only
/// the write fails, as on a full disk, and the process goes on. The signal is handled, not ignored:
/// a child process gets its default action back.
fn take_unless_ignored(ignored: Ignored) -> io::Result<()> {
    let number = rustix::process::Signal::XFSZ.as_raw();
    if !u8::try_from(number).is_ok_and(|number| ignored.has(number)) {
        // The stream is not needed: the write that caused the signal fails with EFBIG.
        drop(unix::signal(SignalKind::from_raw(number))?);
    }
    Ok(())
}

async fn heard(signal: &mut Option<unix::Signal>) {
    match signal {
        Some(signal) => match signal.recv().await {
            Some(()) => {}
            None => pending().await,
        },
        None => pending().await,
    }
}

/// The signals that this process ignores, a bit for each.
#[derive(Clone, Copy)]
struct Ignored(u64);

impl Ignored {
    /// As the process is now. Without /proc no signal counts as ignored.
    fn now() -> Self {
        Self::of(&std::fs::read_to_string("/proc/self/status").unwrap_or_default())
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
