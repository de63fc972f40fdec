//! Why a process ends, and with which status.

use std::fmt;

/// Why the process is told to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// SIGHUP: the terminal is gone.
    Hangup,
    /// SIGINT: a person pressed Ctrl-C.
    Interrupt,
    /// SIGTERM: another process asks.
    Terminate,
}

/// The status of the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExitCode {
    /// All that was asked was answered. 0.
    Ok,
    /// Input could not be read. 1.
    InputFailed,
    /// A defect of this program. 70, as in sysexits.h.
    Internal,
    /// Output could not be written. 74, as in sysexits.h.
    OutputFailed,
    /// Ended by a signal. 128 and its number.
    Interrupted(Signal),
}

impl ExitCode {
    /// The number the process exits with.
    pub fn number(self) -> u8 {
        match self {
            Self::Ok => 0,
            Self::InputFailed => 1,
            Self::Internal => 70,
            Self::OutputFailed => 74,
            Self::Interrupted(signal) => 128 + signal.number(),
        }
    }
}

impl Signal {
    /// Its number, the same on every Unix.
    pub fn number(self) -> u8 {
        match self {
            Self::Hangup => 1,
            Self::Interrupt => 2,
            Self::Terminate => 15,
        }
    }
}

impl fmt::Display for Signal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Hangup => "SIGHUP",
            Self::Interrupt => "SIGINT",
            Self::Terminate => "SIGTERM",
        })
    }
}
