//! The program and its pipes: where it is found, how it is started, and how it ends.

use super::builder::Builder;
use super::error::{Error, Refused};
use super::link::lock;
use crate::protocol::constants::code;
use rustix::process::{Pid, Signal, kill_process};
use std::env;
use std::ffi::OsString;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex, Once};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// The name of the program, and of the variable that has its path.
const PROGRAM: &str = "duologue";
const VARIABLE: &str = "DUOLOGUE_BIN";

/// Variables of the program that are meant for scripts. Without all events there is no text, and calls of tools are
/// not answered; programs print the patches of a stream one after the other.
const VARIABLES_OF_SCRIPTS: [&str; 2] = ["DUOLOGUE_EVENTS", "DUOLOGUE_PATCH_MODE"];

/// Bytes of the end of standard error that are kept.
const STDERR_BYTES: usize = 16 * 1024;

/// What the program writes there where nobody has chosen what answers.
const ECHO: &str = "the built-in echo engine answers";

/// The warning of that: of one process it is enough, however many clients this has.
static WARNED_OF_ECHO: Once = Once::new();

/// Lines that wait to be written.
const LINES_AHEAD: usize = 16;

/// How long the process has to end after SIGTERM.
const TERM_TIME: Duration = Duration::from_secs(2);

/// How long the end of standard error is waited for.
const LAST_WORDS_TIME: Duration = Duration::from_secs(1);

/// How long a copy of a stored conversation may take.
const FORK_TIME: Duration = Duration::from_secs(60);

/// A process that was started.
#[derive(Debug)]
pub(super) struct Process {
    child: Child,
    pub(super) stdout: ChildStdout,
    pub(super) stderr: Tail,
    /// Reads standard error.
    reading: JoinHandle<()>,
}

/// The end of what the process has written to standard error.
#[derive(Clone, Debug, Default)]
pub(super) struct Tail(Arc<Mutex<Vec<u8>>>);

impl Tail {
    pub(super) fn text(&self) -> String {
        let bytes = lock(&self.0);
        String::from_utf8_lossy(&bytes).into_owned()
    }

    fn push(&self, piece: &[u8]) {
        let mut bytes = lock(&self.0);
        bytes.extend_from_slice(piece);
        let over = bytes.len().saturating_sub(STDERR_BYTES);
        bytes.drain(..over);
    }
}

impl Process {
    /// Starts the program; the lines for it go to what is returned beside it. Its standard input is closed by
    /// an empty line, and once all senders are gone.
    pub(super) fn start(options: &Builder) -> Result<(Self, mpsc::Sender<Vec<u8>>), Error> {
        let program = find(options.binary.as_deref())?;
        let mut command = command(&program, options);
        command.arg("rpc").args(options.arguments());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(|error| not_run(&program, options, &error))?;
        let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(stdin), Some(stdout), Some(stderr)) = pipes else {
            return Err(Error::Protocol("the process has no pipes".to_owned()));
        };
        let (lines, to_write) = mpsc::channel(LINES_AHEAD);
        tokio::spawn(write(stdin, to_write));
        let tail = Tail::default();
        let reading = tokio::spawn(read_tail(stderr, tail.clone()));
        Ok((Self { child, stdout, stderr: tail, reading }, lines))
    }

    pub(super) fn id(&self) -> Option<u32> {
        self.child.id()
    }

    /// The end of standard error, after that of the process. A process that it has started may still hold the pipe.
    pub(super) async fn last_words(&mut self) -> String {
        timeout(LAST_WORDS_TIME, &mut self.reading).await.ok();
        self.stderr.text().trim().to_owned()
    }

    /// Waits for the end of the process, for this long; then SIGTERM, then SIGKILL.
    pub(super) async fn end(&mut self, time: Duration) -> Option<ExitStatus> {
        if let Ok(status) = timeout(time, self.child.wait()).await {
            return status.ok();
        }
        let pid = self.child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
        if let Some(pid) = pid {
            // It may have ended meanwhile.
            kill_process(pid, Signal::TERM).ok();
        }
        if let Ok(status) = timeout(TERM_TIME, self.child.wait()).await {
            return status.ok();
        }
        self.child.kill().await.ok();
        self.child.wait().await.ok()
    }
}

fn command(program: &Path, options: &Builder) -> Command {
    let mut command = Command::new(program);
    for name in VARIABLES_OF_SCRIPTS {
        command.env_remove(name);
    }
    command.envs(options.env.iter().map(|(name, value)| (name, value)));
    if let Some(folder) = &options.folder {
        command.current_dir(folder);
    }
    // Also with the runtime. Ctrl-C at the terminal is for the program, which decides what stops.
    command.kill_on_drop(true).process_group(0);
    command
}

/// The error of a program that could not be started: the system does not say whether it is missing or its folder.
fn not_run(program: &Path, options: &Builder, error: &io::Error) -> Error {
    let program = program.display();
    match &options.folder {
        Some(folder) if !folder.is_dir() => Error::NoFolder(format!(
            "{program} can't be run in {}, which is no folder that can be used",
            folder.display()
        )),
        Some(_) | None => Error::NotInstalled(format!("{program} can't be run: {error}")),
    }
}

async fn write(mut stdin: ChildStdin, mut lines: mpsc::Receiver<Vec<u8>>) {
    while let Some(line) = lines.recv().await {
        // Nobody reads any more; the end of standard output says so.
        if line.is_empty() || stdin.write_all(&line).await.is_err() {
            break;
        }
    }
}

async fn read_tail(mut stderr: ChildStderr, tail: Tail) {
    let mut piece = vec![0; STDERR_BYTES];
    while let Ok(bytes @ 1..) = stderr.read(&mut piece).await {
        tail.push(&piece[..bytes]);
        if !WARNED_OF_ECHO.is_completed() && tail.text().contains(ECHO) {
            WARNED_OF_ECHO.call_once(warn_of_echo);
        }
    }
}

fn warn_of_echo() {
    tracing::warn!(
        "no provider is configured, so the built-in echo engine of duologue answers with what it was asked: run \
         `duologue profiles init`, or set the key of a provider; --require-provider makes this an error"
    );
}

/// The program: the one that is named, that of the variable, or the one on the `PATH`.
pub(super) fn find(named: Option<&Path>) -> Result<PathBuf, Error> {
    let found = look_for(named)?;
    // The process may have another folder.
    Ok(std::path::absolute(&found).unwrap_or(found))
}

fn look_for(named: Option<&Path>) -> Result<PathBuf, Error> {
    let named = named.map(|path| (path.as_os_str().to_owned(), "the option `binary`"));
    let variable = env::var_os(VARIABLE).filter(|value| !value.is_empty());
    let named = named.or_else(|| variable.map(|path| (path, "the variable DUOLOGUE_BIN")));
    let Some((name, source)) = named else {
        return on_path(&OsString::from(PROGRAM)).ok_or_else(|| {
            Error::NotInstalled(format!(
                "duologue is not installed: it is not on the PATH; install it, or name the program with the option \
                 `binary` or the variable {VARIABLE}"
            ))
        });
    };
    let is_name = Path::new(&name).components().count() == 1;
    let found = if is_name { on_path(&name) } else { None };
    found.or_else(|| Some(PathBuf::from(&name)).filter(|path| is_program(path))).ok_or_else(|| {
        let name = name.to_string_lossy();
        Error::NotInstalled(format!(
            "{name}, which {source} names, is not a program that can be run"
        ))
    })
}

fn on_path(name: &OsString) -> Option<PathBuf> {
    let folders = env::var_os("PATH")?;
    env::split_paths(&folders).map(|folder| folder.join(name)).find(|path| is_program(path))
}

fn is_program(path: &Path) -> bool {
    path.metadata().is_ok_and(|it| it.is_file() && it.permissions().mode() & 0o111 != 0)
}

/// Copies a stored conversation; gives the id of the copy.
pub(super) async fn fork(
    options: &Builder,
    session: &str,
    turns: Option<u32>,
) -> Result<String, Error> {
    let Some(store) = options.store_path() else {
        return Err(Error::Misuse("only a conversation with a store can be copied"));
    };
    let program = find(options.binary.as_deref())?;
    let mut command = command(&program, options);
    command.args(["sessions", "fork", "--store"]).arg(store).stdin(Stdio::null());
    if let Some(turns) = turns {
        command.args(["--turns", &turns.to_string()]);
    }
    command.args(["--", session]);
    let failed = |message| {
        Error::Store(Refused { code: code::STORE_FAILED.to_owned(), message, ..Refused::default() })
    };
    let ended = timeout(FORK_TIME, command.output()).await;
    let ended = ended
        .map_err(|_| failed(format!("the copy took longer than {} s", FORK_TIME.as_secs())))?;
    let ended = ended.map_err(|error| not_run(&program, options, &error))?;
    match ended.status.success() {
        true => Ok(String::from_utf8_lossy(&ended.stdout).trim().to_owned()),
        false => Err(failed(String::from_utf8_lossy(&ended.stderr).trim().to_owned())),
    }
}
