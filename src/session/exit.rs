//! Why a process ends, and with which status.

use std::fmt;

/// The signal that ends the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// SIGHUP: the terminal is gone.
    Hangup,
    /// SIGINT: a person pressed Ctrl-C.
    Interrupt,
    /// SIGTERM: another process asks.
    Terminate,
    /// SIGQUIT: a person pressed Ctrl-\\ in another program of the terminal. Heard by a chat alone, as the rest.
    Quit,
    /// SIGABRT of another process.
    Abort,
    /// SIGALRM, which means nothing here.
    Alarm,
    /// SIGXCPU: the limit on processor time (`ulimit -t`) is reached.
    ProcessorTime,
    /// SIGUSR1, which means nothing here.
    User1,
    /// SIGUSR2, which means nothing here.
    User2,
}

/// The end of the last run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The model has answered, or was not asked to the end.
    #[default]
    Answered,
    /// The answer is not whole: the provider says so, or it ends in the middle of a value.
    CutOff,
    /// The run failed, or the answer does not match its schema.
    Failed,
    /// The run failed, and the same may succeed later.
    FailedForNow,
}

/// The status of the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExitCode {
    /// All that was asked was answered. 0.
    Ok,
    /// The only run failed, or its answer does not match its schema. 1.
    RunFailed,
    /// The only run failed, or another process holds the session; the same command may succeed later. 75,
    /// `EX_TEMPFAIL` of sysexits.h.
    TryLater,
    /// Input could not be read. 1.
    InputFailed,
    /// The command line, or a file that it names, is wrong. 2, as clap has it.
    Usage,
    /// The only run was answered in part: the answer was cut off. 3.
    CutOff,
    /// A defect of this program. 70, as in sysexits.h.
    Internal,
    /// Output could not be written. 74, as in sysexits.h.
    OutputFailed,
    /// Ended by a signal. 128 and its number.
    Interrupted(Signal),
}

impl ExitCode {
    /// The number the process exits with.
    pub const fn number(self) -> u8 {
        match self {
            Self::Ok => 0,
            Self::RunFailed | Self::InputFailed => 1,
            Self::Usage => 2,
            Self::CutOff => 3,
            Self::Internal => 70,
            Self::OutputFailed => 74,
            Self::TryLater => 75,
            Self::Interrupted(signal) => 128 + signal.number(),
        }
    }
}

impl From<Verdict> for ExitCode {
    fn from(verdict: Verdict) -> Self {
        match verdict {
            Verdict::Answered => Self::Ok,
            Verdict::CutOff => Self::CutOff,
            Verdict::Failed => Self::RunFailed,
            Verdict::FailedForNow => Self::TryLater,
        }
    }
}

impl Signal {
    /// Its number, which for the signals of users depends on the system.
    pub const fn number(self) -> u8 {
        let (user1, user2) = if cfg!(target_os = "linux") { (10, 12) } else { (30, 31) };
        match self {
            Self::Hangup => 1,
            Self::Interrupt => 2,
            Self::Quit => 3,
            Self::Abort => 6,
            Self::Alarm => 14,
            Self::ProcessorTime => 24,
            Self::User1 => user1,
            Self::User2 => user2,
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
            Self::Quit => "SIGQUIT",
            Self::Abort => "SIGABRT",
            Self::Alarm => "SIGALRM",
            Self::ProcessorTime => "SIGXCPU",
            Self::User1 => "SIGUSR1",
            Self::User2 => "SIGUSR2",
        })
    }
}
