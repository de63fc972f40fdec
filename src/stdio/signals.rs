//! The signals that ask the process to end.

use crate::session::Signal;
use std::future::pending;
use std::io;
use tokio::signal::unix::{self, SignalKind};

/// Receives the signals.
#[derive(Debug)]
pub(crate) struct Signals {
    hangup: Option<unix::Signal>,
    interrupt: Option<unix::Signal>,
    terminate: Option<unix::Signal>,
}

impl Signals {
    /// Handles the signals from here on, so that they do not end the process by themselves. One that
    /// was ignored when the process started, as under `nohup`, stays ignored.
    ///
    /// # Errors
    /// If a handler can't be installed.
    pub(crate) fn listen() -> io::Result<Self> {
        // Without /proc no signal counts as ignored.
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let listen = |signal: Signal, kind: SignalKind| {
            (!is_ignored(&status, signal.number())).then(|| unix::signal(kind)).transpose()
        };
        take_unless_ignored(&status)?;
        Ok(Self {
            hangup: listen(Signal::Hangup, SignalKind::hangup())?,
            interrupt: listen(Signal::Interrupt, SignalKind::interrupt())?,
            terminate: listen(Signal::Terminate, SignalKind::terminate())?,
        })
    }

    /// Waits for the next signal.
    pub(crate) async fn next(&mut self) -> Signal {
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
    take_unless_ignored(&std::fs::read_to_string("/proc/self/status").unwrap_or_default())
}

/// Handles the signal for a file that grows past the limit on its size (`ulimit -f`), so that only
/// the write fails, as on a full disk, and the process goes on. The signal is handled, not ignored:
/// a child process gets its default action back.
fn take_unless_ignored(status: &str) -> io::Result<()> {
    let number = rustix::process::Signal::XFSZ.as_raw();
    if !u8::try_from(number).is_ok_and(|number| is_ignored(status, number)) {
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

/// Whether `status`, the text of `/proc/pid/status` (proc(5)), lists the signal of this number as
/// ignored.
fn is_ignored(status: &str, number: u8) -> bool {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    mask & (1 << (number - 1)) != 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ignored_signals_are_read_from_the_mask() {
        let check = |mask: &str, hangup, interrupt, terminate| {
            let status = format!("Name:\tduologue\nSigIgn:\t{mask}\nSigCgt:\tffff\n");
            let read = |signal: Signal| is_ignored(&status, signal.number());
            assert_eq!(read(Signal::Hangup), hangup, "{mask}");
            assert_eq!(read(Signal::Interrupt), interrupt, "{mask}");
            assert_eq!(read(Signal::Terminate), terminate, "{mask}");
        };
        check("0000000000000000", false, false, false);
        check("0000000000001001", true, false, false);
        check("0000000000001002", false, true, false);
        check("0000000000004003", true, true, true);
        check("no mask", false, false, false);
        assert!(!is_ignored("", Signal::Hangup.number()));
    }
}
