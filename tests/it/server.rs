//! The harness: starts the binary on real pipes, collects what it says, and asks the oracle at the
//! end. Nothing here waits for time to pass: it waits for frames, with a deadline.

mod folder;
mod launch;
mod stream;

pub(crate) use folder::Folder;
pub(crate) use launch::{Launch, command_line};
pub(crate) use stream::Reading;

use crate::frames::{Frame, submit};
use crate::oracle::{Answers, check_output};
use crate::process::{DEADLINE, Process, eventually};
use crate::provider::Provider;
use rustix::process::Signal;
use std::fmt;
use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, ExitStatus};
use std::sync::{Arc, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use stream::{Stream, StreamState, read};

/// Lines that a failed test shows of each stream, and characters of each line.
const SHOWN_LINES: usize = 40;
const SHOWN_CHARS: usize = 400;

/// A server that runs, and what it said so far.
pub(crate) struct Server {
    /// As it was started, for a failed test.
    command_line: String,
    child: Child,
    mark: String,
    stdin: Option<ChildStdin>,
    /// The pipes of the three standard streams, by the names the system has for them.
    pub(crate) pipes: [String; 3],
    feeding: Option<JoinHandle<()>>,
    held_stdout: Option<ChildStdout>,
    held_stderr: Option<ChildStderr>,
    stdout: Arc<Stream>,
    stderr: Arc<Stream>,
    secrets: Vec<String>,
    asked: Asked,
    /// Lines that were waited for already.
    seen: usize,
}

/// Counts the lines that are not blank.
#[derive(Default)]
struct Asked {
    lines: usize,
    has_text: bool,
}

/// All that a server said, checked by the oracle.
pub(crate) struct Transcript {
    pub(crate) frames: Vec<Frame>,
    pub(crate) stdout_bytes: u64,
    pub(crate) stderr: String,
}

impl Server {
    /// `duologue rpc <args>`, with the echo engine.
    pub(crate) fn start(args: &[&str]) -> Self {
        echo(args).start()
    }

    /// Writes a request line.
    pub(crate) fn send(&mut self, line: impl AsRef<str>) {
        self.send_raw(format!("{}\n", line.as_ref()).as_bytes());
    }

    /// Writes request lines with one write.
    pub(crate) fn send_together(&mut self, lines: &[String]) {
        self.send_raw((lines.join("\n") + "\n").as_bytes());
    }

    /// Writes bytes with one write.
    pub(crate) fn send_raw(&mut self, bytes: &[u8]) {
        self.asked.count(bytes);
        let stdin = self.stdin.as_mut().expect("standard input is open");
        stdin.write_all(bytes).expect("the server reads");
    }

    /// Waits until the server has read all that was written.
    #[track_caller]
    pub(crate) fn wait_until_all_is_read(&self) {
        let stdin = self.stdin.as_ref().expect("standard input is open");
        let unread = || rustix::io::ioctl_fionread(stdin).expect("a pipe");
        eventually("the server has read all", || (unread() == 0).then_some(()));
    }

    /// So many request lines reach the server by another way.
    pub(crate) fn expect_requests(&mut self, lines: usize) {
        self.asked.lines += lines;
    }

    /// Has a thread write, `lines` request lines in all; then standard input is closed.
    pub(crate) fn feed(
        &mut self,
        lines: usize,
        write: impl FnOnce(&mut ChildStdin) -> std::io::Result<()> + Send + 'static,
    ) {
        self.asked.lines += lines;
        let mut stdin = self.stdin.take().expect("standard input is open");
        self.feeding = Some(thread::spawn(move || write(&mut stdin).expect("the server reads")));
    }

    pub(crate) fn close_stdin(&mut self) {
        self.stdin = None;
    }

    /// Waits for the next frame of which `wanted` holds; those before it are ignored. `what` names
    /// the frame if it never comes.
    #[track_caller]
    pub(crate) fn wait(&mut self, what: &str, wanted: impl Fn(&Frame) -> bool) -> Frame {
        self.wait_with(what, "", wanted)
    }

    /// The same, if the line holds `text`: a long conversation is looked through faster.
    #[track_caller]
    fn wait_with(&mut self, what: &str, text: &str, wanted: impl Fn(&Frame) -> bool) -> Frame {
        let started = Instant::now();
        loop {
            let line = self.next_line(what, DEADLINE.saturating_sub(started.elapsed()));
            self.seen += 1;
            if String::from_utf8_lossy(&line).contains(text) {
                let frame = Frame::parse(&line);
                if wanted(&frame) {
                    return frame;
                }
            }
        }
    }

    /// The lines that were written so far.
    pub(crate) fn lines(&self) -> Vec<String> {
        let state = self.stdout.lock();
        let lines = state.output.lines.iter();
        lines.map(|line| String::from_utf8_lossy(line).into_owned()).collect()
    }

    #[track_caller]
    pub(crate) fn wait_hello(&mut self) -> Frame {
        self.wait("hello", |frame| frame.0.get("hello").is_some())
    }

    #[track_caller]
    pub(crate) fn wait_event(&mut self, name: &str) -> Frame {
        self.wait_with(&format!("the event {name}"), name, |frame| frame.is_event(name))
    }

    /// Waits for the end of a request; gives its status.
    #[track_caller]
    pub(crate) fn wait_done(&mut self, id: &str) -> String {
        let what = format!("the done of request {id}");
        let end = self.wait_with(&what, "\"done\"", |frame| frame.ends(id));
        end.done().unwrap_or_default().to_owned()
    }

    /// Submits, and waits for the end; gives the status.
    #[track_caller]
    pub(crate) fn turn(&mut self, id: &str, prompt: &str) -> String {
        self.send(submit(id, prompt));
        self.wait_done(id)
    }

    #[track_caller]
    fn next_line(&self, what: &str, limit: Duration) -> Vec<u8> {
        let seen = self.seen;
        let state = self.stdout.lock();
        let missing = |state: &mut StreamState| state.output.lines.len() <= seen && !state.is_over;
        let waited = self.stdout.changed.wait_timeout_while(state, limit, missing);
        let (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        let (line, is_over) = (state.output.lines.get(seen).cloned(), state.is_over);
        // What came instead is shown when the server is dropped.
        drop(state);
        line.unwrap_or_else(|| match is_over {
            true => panic!("waited for {what}, and standard output ended after line {seen}"),
            false => panic!("waited {DEADLINE:?} for {what}, and line {seen} was the last one"),
        })
    }

    /// Waits for a line on standard error.
    #[track_caller]
    pub(crate) fn wait_log(&self, text: &str) {
        let missing = |state: &mut StreamState| !state.text().contains(text) && !state.is_over;
        let state = self.stderr.lock();
        let waited = self.stderr.changed.wait_timeout_while(state, DEADLINE, missing);
        let is_there = waited.unwrap_or_else(PoisonError::into_inner).0.text().contains(text);
        assert!(is_there, "waited for {text:?} on standard error, {DEADLINE:?} at most");
    }

    /// Waits until the process has ended by itself.
    #[track_caller]
    pub(crate) fn wait_end(&mut self) {
        self.exit_status();
    }

    pub(crate) fn process(&self) -> Process {
        Process(self.child.id())
    }

    /// The server among the descendants of a shell.
    pub(crate) fn descendant(&self) -> Process {
        eventually("the server runs", || {
            let all = Process::marked(&self.mark);
            all.into_iter().find(|process| process.name() == "duologue")
        })
    }

    pub(crate) fn signal(&self, signal: Signal) {
        self.process().send(signal);
    }

    /// The pipes that are not read yet.
    pub(crate) fn held_stdout(&self) -> &ChildStdout {
        self.held_stdout.as_ref().expect("held")
    }

    pub(crate) fn held_stderr(&self) -> &ChildStderr {
        self.held_stderr.as_ref().expect("held")
    }

    /// Closes standard output, which was held.
    pub(crate) fn close_stdout(&mut self) {
        self.held_stdout = None;
    }

    /// Begins to read standard output.
    pub(crate) fn read_on(&mut self, reading: Reading) {
        if reading != Reading::Held
            && let Some(pipe) = self.held_stdout.take()
        {
            read(pipe, reading, &self.stdout);
        }
    }

    /// Begins to read standard error.
    fn read_stderr(&mut self, reading: Reading) {
        if reading != Reading::Held
            && let Some(pipe) = self.held_stderr.take()
        {
            read(pipe, reading, &self.stderr);
        }
    }

    /// Closes standard input; the server answers everything and exits with 0.
    #[track_caller]
    pub(crate) fn finish(self) -> Transcript {
        self.finish_with(0, Answers::All)
    }

    /// Closes standard input, waits for the end of the process and asks the oracle.
    #[track_caller]
    pub(crate) fn finish_with(mut self, status: i32, answers: Answers) -> Transcript {
        self.close_stdin();
        let ended = self.exit_status();
        assert_eq!(status_number(ended), status, "exit status");
        eventually("no descendant is left", || {
            Process::marked(&self.mark).is_empty().then_some(())
        });
        self.held_stdout = None;
        self.read_stderr(Reading::Eager);
        let stdout = self.stdout.ended();
        let stderr = self.stderr.ended().text();
        self.asked.end();
        let frames = check_output(&stdout.output, self.asked.lines, answers);
        self.check_secrets(&stdout.text(), &stderr);
        assert!(!stderr.contains("panicked"), "{stderr}");
        if let Some(feeding) = self.feeding.take() {
            // Who ends before reading all breaks the pipe that is fed.
            let is_fed = feeding.join().is_ok();
            assert!(is_fed || answers == Answers::Some, "the server read all");
        }
        Transcript { frames, stdout_bytes: stdout.bytes, stderr }
    }

    /// Waits for the end of the process.
    #[track_caller]
    pub(crate) fn exit_status(&mut self) -> ExitStatus {
        let child = &mut self.child;
        eventually("the process ends", || child.try_wait().expect("our own child"))
    }

    fn check_secrets(&self, stdout: &str, stderr: &str) {
        for secret in &self.secrets {
            assert!(!stdout.contains(secret), "a secret is in a frame");
            assert!(!stderr.contains(secret), "a secret was logged: {stderr}");
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Most have ended already.
        self.child.kill().ok();
        self.child.wait().ok();
        let left: Vec<_> = Process::marked(&self.mark)
            .into_iter()
            .map(|process| {
                let shown = format!("{}: {}", process.0, process.command_line());
                process.send(Signal::KILL);
                shown
            })
            .collect();
        if thread::panicking() {
            report(&format!("{self:?}descendants that were left: {left:?}\n"));
        }
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let stdout = self.stdout.lock().output.clone();
        let lines = stdout.lines.iter().chain(Some(&stdout.rest));
        let lines: Vec<_> = lines.map(|line| String::from_utf8_lossy(line)).collect();
        writeln!(f, "process {}: {}", self.child.id(), self.command_line)?;
        writeln!(f, "standard output, {} lines:", stdout.lines.len())?;
        for line in lines.iter().skip(lines.len().saturating_sub(SHOWN_LINES)) {
            writeln!(f, "  {}", line.chars().take(SHOWN_CHARS).collect::<String>())?;
        }
        writeln!(f, "standard error:\n{}", self.stderr.lock().text())
    }
}

impl Asked {
    fn count(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            if byte == b'\n' {
                self.end();
            }
            self.has_text |= !byte.is_ascii_whitespace();
        }
    }

    fn end(&mut self) {
        self.lines += usize::from(std::mem::take(&mut self.has_text));
    }
}

/// `duologue rpc <args>`, with the echo engine.
pub(crate) fn echo(args: &[&str]) -> Launch {
    Launch::new(&[&["rpc", "--engine", "echo"], args].concat())
}

/// The key that is given to servers with a provider; it may appear nowhere.
pub(crate) const KEY: &str = "sk-a-key-that-nobody-may-see";

/// `duologue rpc <args>`, with `provider`.
pub(crate) fn openai(provider: &Provider, args: &[&str]) -> Launch {
    let base_url = provider.base_url();
    let engine = ["rpc", "--engine", "openai", "--model", "scripted", "--base-url", &base_url];
    Launch::new(&[&engine, args].concat()).secret("DUOLOGUE_API_KEY", KEY)
}

/// Shows what a process had written when its test failed.
pub(crate) fn report(text: &str) {
    // Nothing more can be done about it, in a test that has failed already.
    std::io::stderr().write_all(text.as_bytes()).ok();
}

/// As a shell gives it: the code, or 128 and the number of the signal.
fn status_number(status: ExitStatus) -> i32 {
    status.code().or_else(|| status.signal().map(|number| 128 + number)).expect("it ended")
}
