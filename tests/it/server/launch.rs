//! How the binary is started: its arguments, variables and pipes.

use super::stream::Reading;
use super::{Asked, Server};
use crate::process::{default_signals, target};
use std::ffi::OsStr;
use std::iter;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// Variable by which a process and all its descendants are found again.
const MARK_VARIABLE: &str = "DUOLOGUE_TEST_MARK";

/// A server to be started.
pub(crate) struct Launch {
    command: Command,
    mark: String,
    stdout: Reading,
    stderr: Reading,
    pipe_bytes: Option<usize>,
    secrets: Vec<String>,
}

impl Launch {
    /// `duologue <args>`.
    pub(crate) fn new(args: &[&str]) -> Self {
        Self::program(env!("CARGO_BIN_EXE_duologue"), args)
    }

    /// The same of another build of the program.
    pub(crate) fn program(program: impl AsRef<OsStr>, args: &[&str]) -> Self {
        let mut command = Command::new(program);
        command.args(args);
        Self::of(command)
    }

    /// `script`, run by a shell in which `$0` is the binary and `$1`, … are `args`.
    pub(crate) fn shell(script: &str, args: &[&str]) -> Self {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", script, env!("CARGO_BIN_EXE_duologue")]).args(args);
        Self::of(command)
    }

    /// This command, with the variables that every process of a test has.
    pub(crate) fn of(mut command: Command) -> Self {
        static STARTED: AtomicU32 = AtomicU32::new(0);
        let number = STARTED.fetch_add(1, Ordering::Relaxed);
        let mark = format!("{}-{number}-", std::process::id());
        command.env_clear().env(MARK_VARIABLE, &mark);
        for name in ["PATH", "HOME"] {
            command.envs(std::env::var_os(name).map(|value| (name, value)));
        }
        // No test may store anything in a person's own folder.
        command.env("XDG_DATA_HOME", concat!(env!("CARGO_TARGET_TMPDIR"), "/data"));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let (stdout, stderr) = (Reading::Eager, Reading::Eager);
        Self { command, mark, stdout, stderr, pipe_bytes: None, secrets: Vec::new() }
    }

    pub(crate) fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.command.env(name, value);
        self
    }

    /// A variable whose value may appear nowhere.
    pub(crate) fn secret(mut self, name: &str, value: &str) -> Self {
        self.secrets.push(value.to_owned());
        self.env(name, value)
    }

    pub(crate) fn stdout(mut self, reading: Reading) -> Self {
        self.stdout = reading;
        self
    }

    pub(crate) fn stderr(mut self, reading: Reading) -> Self {
        self.stderr = reading;
        self
    }

    /// Makes the pipes of both outputs as small as this.
    pub(crate) fn pipe_bytes(mut self, bytes: usize) -> Self {
        self.pipe_bytes = Some(bytes);
        self
    }

    pub(crate) fn start(mut self) -> Server {
        default_signals();
        let command_line = command_line(&self.command);
        let mut child = self.command.spawn().expect("the binary starts");
        let stdout = child.stdout.take().expect("a pipe");
        let stderr = child.stderr.take().expect("a pipe");
        let stdin = child.stdin.take().expect("a pipe");
        let pipes = [target(&stdin), target(&stdout), target(&stderr)];
        if let Some(bytes) = self.pipe_bytes {
            rustix::pipe::fcntl_setpipe_size(&stdout, bytes).expect("a smaller pipe");
            rustix::pipe::fcntl_setpipe_size(&stderr, bytes).expect("a smaller pipe");
        }
        let mut server = Server {
            command_line,
            stdin: Some(stdin),
            child,
            pipes,
            mark: format!("{MARK_VARIABLE}={}", self.mark),
            feeding: None,
            held_stdout: Some(stdout),
            held_stderr: Some(stderr),
            stdout: Arc::default(),
            stderr: Arc::default(),
            secrets: self.secrets,
            asked: Asked::default(),
            seen: 0,
        };
        server.read_on(self.stdout);
        server.read_stderr(self.stderr);
        server
    }
}

/// A command as it is started, for a failed test.
pub(crate) fn command_line(command: &Command) -> String {
    let words = iter::once(command.get_program()).chain(command.get_args());
    words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}
