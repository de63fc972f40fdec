//! The signals that ask the process to end.

use crate::session::Signal;
use std::future::pending;
use std::io;
use tokio::signal::unix::{self, SignalKind};

/// The signals, as they come.
#[derive(Debug)]
pub(crate) struct Signals {
    hangup: Option<unix::Signal>,
    interrupt: Option<unix::Signal>,
    terminate: Option<unix::Signal>,
}

impl Signals {
    /// From here on signals are heard and do not end the process by themselves. One that whoever
    /// started the process has had it ignore, as `nohup` does, stays ignored.
    pub(crate) fn listen() -> io::Result<Self> {
        // Without /proc nothing is known to be ignored.
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

    /// Waits for the next one.
    pub(crate) async fn next(&mut self) -> Signal {
        tokio::select! {
            () = heard(&mut self.hangup) => Signal::Hangup,
            () = heard(&mut self.interrupt) => Signal::Interrupt,
            () = heard(&mut self.terminate) => Signal::Terminate,
        }
    }
}

/// The same as [`Signals::listen`] does about the limit on the size of a file, and nothing else.
pub(crate) fn take_file_size_signal() -> io::Result<()> {
    take_unless_ignored(&std::fs::read_to_string("/proc/self/status").unwrap_or_default())
}

/// From here on a file that grows past the limit on its size (`ulimit -f`) costs what was to be
/// written to it, as a full disk does, and not the process. The signal is taken, not ignored: a
/// child process gets its default action back.
fn take_unless_ignored(status: &str) -> io::Result<()> {
    let number = rustix::process::Signal::XFSZ.as_raw();
    if !u8::try_from(number).is_ok_and(|number| is_ignored(status, number)) {
        // The signal itself is of no interest: the write that caused it fails with EFBIG.
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

/// Whether `status`, the text of proc(5)'s `/proc/pid/status`, has the signal of this number
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
