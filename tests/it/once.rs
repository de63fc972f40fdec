//! The harness of a single run: starts the binary, waits for its end, and gives what came out of
//! each stream apart. Nothing here waits for time to pass.

use crate::process::{Process, default_signals, eventually};
use crate::server::{Folder, command_line, report};
use rustix::process::Signal;
use std::io::{ErrorKind, Read, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::thread::{self, JoinHandle};

/// A user who owns nothing.
pub(crate) const NOBODY: u32 = 65_534;

/// Characters of a UUID.
const UUID_BYTES: usize = 36;

/// What is followed by a number that differs from run to run.
const CHANCE: [&str; 10] = [
    "\"timestamp\":",
    "\"duration\":",
    "\"durationMs\":\"",
    "\"duration_ms\": ",
    "duration_ms: ",
    "\"first_byte_ms\": ",
    "\"first_token_ms\": ",
    "first_byte_ms: ",
    "first_token_ms: ",
    "127.0.0.1:",
];

/// What a process left behind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ended {
    /// As a shell reports it.
    pub(crate) status: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// A process whose outputs are collected.
pub(crate) struct Once {
    /// As it was started, for a failed test.
    command_line: String,
    child: Child,
    stdin: Option<ChildStdin>,
    /// It asks one prompt, of which what is piped in is a part.
    is_single: bool,
    stdout: Option<JoinHandle<String>>,
    stderr: Option<JoinHandle<String>>,
}

/// `duologue <words>` in `folder`, with nothing in its environment that could change what it does.
pub(crate) fn duologue(folder: &Folder, words: &[&str]) -> Command {
    program(Path::new(env!("CARGO_BIN_EXE_duologue")), folder, words)
}

/// `duologue <words>` by [`NOBODY`] in a folder made with [`Folder::for_all`]. Only root can start it.
pub(crate) fn duologue_of_nobody(folder: &Folder, words: &[&str]) -> Command {
    let mut command = program(&folder.program(), folder, words);
    command.uid(NOBODY).gid(NOBODY);
    command
}

fn program(path: &Path, folder: &Folder, words: &[&str]) -> Command {
    let mut command = Command::new(path);
    command.args(words).current_dir(folder.path("")).env_clear();
    for name in ["PATH", "HOME"] {
        command.envs(std::env::var_os(name).map(|value| (name, value)));
    }
    command.env("XDG_DATA_HOME", folder.path("data"));
    // Chats are stored without being asked to: only their own tests want that.
    let chats = ["chat", "--chat", "--interactive", "--force-interactive"];
    if words.is_empty() || words.iter().any(|word| chats.contains(word)) {
        command.env("DUOLOGUE_NO_STORE", "1");
    }
    command
}

/// [`duologue`], to its end; standard input is empty.
#[track_caller]
pub(crate) fn run(folder: &Folder, words: &[&str]) -> Ended {
    let mut once = Once::start(duologue(folder, words));
    once.stdin = None;
    once.finish()
}

impl Once {
    /// Starts `command`, with pipes for all three streams.
    pub(crate) fn start(mut command: Command) -> Self {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        default_signals();
        let command_line = command_line(&command);
        let mut child = command.spawn().expect("the binary starts");
        let stdout = collect(child.stdout.take().expect("a pipe"));
        let stderr = collect(child.stderr.take().expect("a pipe"));
        let stdin = child.stdin.take();
        let is_single = is_single(&command);
        Self { command_line, child, stdin, is_single, stdout: Some(stdout), stderr: Some(stderr) }
    }

    /// The same, but standard output is the caller's to read.
    pub(crate) fn start_unread(command: Command) -> (Self, ChildStdout) {
        let (mut once, stdout) = Self::start_server(command);
        once.close_stdin();
        (once, stdout)
    }

    /// The same, and requests can be written to standard input.
    pub(crate) fn start_server(mut command: Command) -> (Self, ChildStdout) {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        default_signals();
        let command_line = command_line(&command);
        let mut child = command.spawn().expect("the binary starts");
        let stdout = child.stdout.take().expect("a pipe");
        let stderr = collect(child.stderr.take().expect("a pipe"));
        let stdin = child.stdin.take();
        let is_single = is_single(&command);
        let (stderr, unread) = (Some(stderr), None);
        (Self { command_line, child, stdin, is_single, stdout: unread, stderr }, stdout)
    }

    pub(crate) fn stdin(&mut self) -> &mut ChildStdin {
        self.stdin.as_mut().expect("standard input is open")
    }

    /// Writes all there is to be read from standard input.
    pub(crate) fn write(&mut self, text: &str) {
        self.stdin().write_all(text.as_bytes()).expect("it is read");
        self.close_stdin();
    }

    /// The same for a process that may end without reading.
    pub(crate) fn offer(&mut self, text: &str) {
        match self.stdin().write_all(text.as_bytes()) {
            Ok(()) => {}
            Err(error) => assert_eq!(error.kind(), ErrorKind::BrokenPipe, "{error}"),
        }
        self.close_stdin();
    }

    pub(crate) fn close_stdin(&mut self) {
        self.stdin = None;
    }

    /// Standard input stays open until the process has ended.
    pub(crate) fn keep_stdin(&mut self) {
        self.is_single = false;
    }

    pub(crate) fn process(&self) -> Process {
        Process(self.child.id())
    }

    pub(crate) fn signal(&self, signal: Signal) {
        self.process().send(signal);
    }

    /// Waits until the process ends by itself. Standard input of a conversation stays as it is; that of a
    /// single run ends.
    #[track_caller]
    pub(crate) fn finish(mut self) -> Ended {
        if self.is_single {
            self.close_stdin();
        }
        let child = &mut self.child;
        let status = eventually("the process ends", || child.try_wait().expect("our own child"));
        let signal = || status.signal().map(|number| 128 + number);
        let text = |stream: Option<JoinHandle<String>>| {
            stream.map(|stream| stream.join().expect("UTF-8")).unwrap_or_default()
        };
        let ended = Ended {
            status: status.code().or_else(signal).expect("it ended"),
            stdout: text(self.stdout.take()),
            stderr: text(self.stderr.take()),
        };
        assert!(!ended.stderr.contains("panicked"), "{}", ended.stderr);
        ended
    }
}

impl Drop for Once {
    fn drop(&mut self) {
        // Most have ended already.
        self.child.kill().ok();
        self.child.wait().ok();
        if thread::panicking() {
            let mut shown = format!("process {}: {}\n", self.child.id(), self.command_line);
            for (name, stream) in [("output", self.stdout.take()), ("error", self.stderr.take())] {
                // A stream that a descendant still holds is not waited for.
                if let Some(Ok(text)) = stream.filter(JoinHandle::is_finished).map(JoinHandle::join)
                {
                    shown += &format!("standard {name}:\n{text}\n");
                }
            }
            report(&shown);
        }
    }
}

fn is_single(command: &Command) -> bool {
    let has = |name: &str| command.get_args().any(|word| word == name);
    ["exec", "run-command", "run"].into_iter().any(has) && !has("--stdin-rpc")
}

fn collect(mut pipe: impl Read + Send + 'static) -> JoinHandle<String> {
    thread::spawn(move || {
        let mut text = String::new();
        pipe.read_to_string(&mut text).expect("UTF-8");
        text
    })
}

/// `text` without what differs from run to run: ids are numbered as they appear, times are 0, and
/// `folder` has a name of its own.
pub(crate) fn normal(text: &str, folder: &Folder) -> String {
    let text = text.replace(folder.name("").trim_end_matches('/'), "FOLDER");
    let mut ids: Vec<&str> = Vec::new();
    let mut normal = String::new();
    let mut rest = text.as_str();
    while let Some(first) = rest.chars().next() {
        if let Some(id) = rest.get(..UUID_BYTES).filter(|id| is_uuid(id)) {
            let known = ids.iter().position(|known| *known == id);
            let number = known.unwrap_or(ids.len());
            ids.extend(known.is_none().then_some(id));
            normal += &format!("ID-{}", number + 1);
            rest = &rest[UUID_BYTES..];
        } else if let Some(key) = CHANCE.iter().find(|key| rest.starts_with(**key)) {
            normal += key;
            normal += "0";
            rest = rest[key.len()..].trim_start_matches(|digit: char| digit.is_ascii_digit());
        } else {
            normal.push(first);
            rest = &rest[first.len_utf8()..];
        }
    }
    normal.replace(concat!("server-version=", env!("CARGO_PKG_VERSION")), "server-version=VERSION")
}

pub(crate) fn is_uuid(text: &str) -> bool {
    text.len() == UUID_BYTES
        && text.bytes().enumerate().all(|(at, byte)| match at {
            8 | 13 | 18 | 23 => byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        })
}

#[test]
fn chance_is_not_compared() {
    let folder = Folder::new();
    let id = "0f0f0f0f-1234-4abc-8def-000000000001";
    let text = format!("{}x run-{id}:1 \"timestamp\":17,\"a\":17 {id} \u{e9}", folder.name(""));
    assert_eq!(normal(&text, &folder), "FOLDER/x run-ID-1:1 \"timestamp\":0,\"a\":17 ID-1 \u{e9}");
}
