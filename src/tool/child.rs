//! The process of a server: started without our environment and descriptors, and ended with all that
//! it started.

use crate::support::lock;
use crate::support::secret::Secret;
use crate::support::terminal::escape_control;
use crate::task::server::ServerName;
use crate::tool::config::Protected;
use crate::tool::guard::{self, INPUT_GRACE, KILL_GRACE, TERM_GRACE};
use rustix::process::{Pid, Signal, kill_process_group};
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};
use tokio::process::{ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tracing::Instrument;

/// Variables that every server gets. No key of a provider is among them, and no proxy, whose URL
/// may hold a password.
pub(super) const VARIABLES: [&str; 12] = [
    "HOME",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "LOGNAME",
    "PATH",
    "SHELL",
    "TERM",
    "TMPDIR",
    "TZ",
    "USER",
    "XDG_RUNTIME_DIR",
];

/// Bytes of a line on standard error that are logged; the rest is left out.
const LOG_LINE_BYTES_MAX: usize = 2048;

/// Last lines on standard error that are logged once more when a server has ended.
const LAST_LINES_MAX: usize = 3;

/// How long standard error is read after the process has ended: others may still hold it open.
const STDERR_GRACE: Duration = Duration::from_millis(200);

/// How to start a process.
#[derive(Debug)]
pub(super) struct Program<'a> {
    pub(super) server: &'a ServerName,
    pub(super) command: &'a str,
    pub(super) args: &'a [String],
    pub(super) env: &'a BTreeMap<String, Protected>,
    pub(super) cwd: Option<&'a Path>,
    /// Keys that its log must not show, the longest first.
    pub(super) secrets: &'a [Secret],
    /// People know that it ends, again and again.
    pub(super) on_probation: bool,
}

/// The process of a server, or its guard.
#[derive(Debug)]
pub(super) struct Child {
    process: tokio::process::Child,
    /// The process group, if there is no guard that ends it.
    group: Option<Pid>,
    /// The guard, if there is one; also the session that it leads.
    guard: Option<Pid>,
    log: JoinHandle<()>,
    last_lines: Arc<Mutex<VecDeque<String>>>,
    server: ServerName,
    on_probation: bool,
}

/// The pipes to a server.
#[derive(Debug)]
pub(super) struct Pipes {
    pub(super) input: ChildStdin,
    pub(super) output: ChildStdout,
}

impl Child {
    /// Starts a program, with the guard that `guard` names if there is one. Needs a runtime.
    ///
    /// # Errors
    /// If it can't be started. With a guard, most such errors come from the guard, as a status and a
    /// line on standard error.
    pub(super) fn start(
        program: &Program<'_>,
        guard: Option<&PathBuf>,
    ) -> io::Result<(Self, Pipes)> {
        let mut command = match guard {
            Some(guard) => {
                let mut command = Command::new(guard);
                command.arg0("duologue").arg(guard::COMMAND).arg(program.command);
                command
            }
            None => {
                let mut command = Command::new(program.command);
                command.process_group(0);
                command
            }
        };
        command.args(program.args).env_clear();
        command.envs(VARIABLES.iter().filter_map(|name| Some((name, std::env::var_os(name)?))));
        command.envs(program.env.iter().map(|(name, value)| (name, value.expose())));
        if let Some(folder) = program.cwd {
            command.current_dir(folder);
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut process = command.spawn()?;
        let pipes = (process.stdin.take(), process.stdout.take(), process.stderr.take());
        let (Some(input), Some(output), Some(stderr)) = pipes else {
            return Err(io::ErrorKind::BrokenPipe.into());
        };
        let id = process.id().and_then(|id| Pid::from_raw(id.cast_signed()));
        let (group, guard) = if guard.is_some() { (None, id) } else { (id, None) };
        let last_lines = Arc::default();
        let lines = StderrLines {
            server: program.server.clone(),
            secrets: program.secrets.to_vec(),
            last: Arc::clone(&last_lines),
        };
        let log = tokio::spawn(lines.read(stderr).in_current_span());
        let (server, on_probation) = (program.server.clone(), program.on_probation);
        let child = Self { process, group, guard, log, last_lines, server, on_probation };
        Ok((child, Pipes { input, output }))
    }

    /// Waits until the process has ended by itself. Returns why it ended, for people.
    pub(super) async fn ended(&mut self) -> String {
        let status = self.process.wait().await;
        self.kill_group(Signal::KILL);
        if let (Some(guard), Ok(status)) = (self.guard, &status)
            && status.signal().is_some()
        {
            // It catches the signals that ask it to end, so it was killed and could do nothing.
            guard::kill_session(guard);
        }
        if !self.log.is_finished() {
            timeout(STDERR_GRACE, &mut self.log).await.ok();
        }
        let last = self.take_last_lines();
        if let Some(why) =
            last.iter().find(|line| self.guard.is_some() && line.starts_with(guard::CANT_START))
        {
            return why.clone();
        }
        if !last.is_empty() && !self.on_probation {
            // It may be why it ended, or have nothing to do with that.
            let last = last.join(" | ");
            tracing::warn!("MCP server {} wrote before its end: {last}", self.server);
        }
        status.map_or_else(|error| error.to_string(), described)
    }

    fn take_last_lines(&self) -> Vec<String> {
        let mut lines = lock(&self.last_lines);
        lines.drain(..).collect()
    }

    /// Ends the process, whose standard input has been closed, and all that it started.
    pub(super) async fn end(&mut self) {
        if self.group.is_none() {
            // The guard does it. A guard that is stuck or stopped is left alone: it is
            // all that still can end the server.
            let grace = INPUT_GRACE + TERM_GRACE + KILL_GRACE;
            timeout(grace, self.process.wait()).await.ok();
            return;
        }
        if timeout(INPUT_GRACE, self.process.wait()).await.is_err() {
            self.kill_group(Signal::TERM);
            timeout(TERM_GRACE, self.process.wait()).await.ok();
        }
        self.kill_group(Signal::KILL);
        timeout(KILL_GRACE, self.process.wait()).await.ok();
    }

    /// Signals the process group, which others of the group hold even if the server has ended.
    fn kill_group(&self, signal: Signal) {
        if let Some(group) = self.group {
            kill_process_group(group, signal).ok();
        }
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        // A guard notices by itself that the pipe is closed.
        self.kill_group(Signal::KILL);
        self.log.abort();
    }
}

/// How a process ended.
fn described(status: ExitStatus) -> String {
    // The guard returns the number of a signal in the form of shells.
    let signal =
        status.signal().or(status.code().filter(|code| *code > 128).map(|code| code - 128));
    match (signal, status.code()) {
        (Some(signal), _) => format!("it was ended by signal {signal}"),
        (None, Some(code)) => format!("it ended with status {code}"),
        (None, None) => "it ended".to_owned(),
    }
}

/// The lines that a server writes to standard error.
struct StderrLines {
    server: ServerName,
    secrets: Vec<Secret>,
    last: Arc<Mutex<VecDeque<String>>>,
}

impl StderrLines {
    async fn read(self, stderr: ChildStderr) {
        let mut lines = LogLines { input: BufReader::new(stderr), line: LogLine::default() };
        while let Some(line) = lines.next().await {
            self.log(&line);
        }
    }

    /// A line without the secrets, also without the beginning of one where it was cut.
    fn shown(&self, line: &LogLine) -> String {
        let redacted = |text: String, secret: &Secret| match line.is_cut {
            true => secret.redact_cut(&text),
            false => secret.redact(&text),
        };
        let text = String::from_utf8_lossy(&line.bytes).into_owned();
        escape_control(self.secrets.iter().fold(text, redacted).trim_end())
    }

    fn log(&self, line: &LogLine) {
        let line = self.shown(line);
        if line.is_empty() {
            return;
        }
        tracing::info!("MCP server {}: {line}", self.server);
        let mut last = lock(&self.last);
        if last.len() == LAST_LINES_MAX {
            last.pop_front();
        }
        last.push_back(line);
    }
}

/// The beginning of a line.
#[derive(Debug, Default, PartialEq, Eq)]
struct LogLine {
    bytes: Vec<u8>,
    /// It goes on.
    is_cut: bool,
}

/// Lines, each cut to a limit.
struct LogLines<R> {
    input: BufReader<R>,
    line: LogLine,
}

impl<R: AsyncRead + Unpin> LogLines<R> {
    async fn next(&mut self) -> Option<LogLine> {
        loop {
            let available = self.input.fill_buf().await.ok()?;
            if available.is_empty() {
                return (!self.line.bytes.is_empty()).then(|| std::mem::take(&mut self.line));
            }
            let end = memchr::memchr(b'\n', available);
            let piece = &available[..end.unwrap_or(available.len())];
            let room = LOG_LINE_BYTES_MAX - self.line.bytes.len();
            self.line.bytes.extend_from_slice(&piece[..piece.len().min(room)]);
            self.line.is_cut |= piece.len() > room;
            let used = end.map_or(available.len(), |end| end + 1);
            self.input.consume(used);
            if end.is_some() {
                return Some(std::mem::take(&mut self.line));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn no_part_of_a_secret_is_at_the_end_of_a_line_that_is_cut() {
        let token = "tok-5f3c9a-that-nobody-may-see";
        let lines = StderrLines {
            server: ServerName::new("files").expect("a name"),
            secrets: Secret::new(token).into_iter().collect(),
            last: Arc::default(),
        };
        for before in LOG_LINE_BYTES_MAX - token.len() - 2..LOG_LINE_BYTES_MAX {
            let before = "x".repeat(before);
            let written = format!("{before}{token} is wrong\nx tok\n");
            let input = BufReader::new(written.as_bytes());
            let mut read = LogLines { input, line: LogLine::default() };
            let shown = lines.shown(&read.next().await.expect("a line"));
            let rest = shown.strip_prefix(&before).expect("what is before it");
            assert!(rest.is_empty() || rest.starts_with("[redacted]"), "{rest}");
            // Of a whole line nothing is missing.
            assert_eq!(lines.shown(&read.next().await.expect("a line")), "x tok");
        }
    }
}
