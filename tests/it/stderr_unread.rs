//! Standard error that nobody reads, a full pipe or a stopped terminal, holds up nothing: neither
//! the frames nor the end of the process.

use crate::frames::{Frame, submit};
use crate::once::{Ended, duologue};
use crate::process::{Process, eventually};
use crate::provider::{Provider, Step};
use crate::server::Folder;
use crate::terminal::terminal;
use rustix::fs::{Mode, OFlags, fcntl_setfl, open};
use rustix::process::Signal;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ChildStdout, Command, Stdio};

/// Something to write to that takes nothing more, and what would have to be read first.
struct Full {
    writer: OwnedFd,
    _unread: File,
}

fn fill(mut writer: File) {
    while writer.write(b"x").is_ok() {}
}

fn full_pipe() -> Full {
    let (unread, writer) = rustix::pipe::pipe().expect("a pipe");
    fcntl_setfl(&writer, OFlags::NONBLOCK).expect("a pipe");
    fill(writer.try_clone().expect("a pipe").into());
    fcntl_setfl(&writer, OFlags::empty()).expect("a pipe");
    Full { writer, _unread: unread.into() }
}

fn full_terminal() -> Full {
    let (unread, writer) = terminal();
    let name = rustix::termios::ttyname(&writer, Vec::new()).expect("a name");
    let flags = OFlags::WRONLY | OFlags::NOCTTY | OFlags::NONBLOCK;
    fill(open(name, flags, Mode::empty()).expect("a terminal").into());
    Full { writer, _unread: unread }
}

/// Each kind of standard error that takes nothing.
fn full() -> [Full; 2] {
    [full_pipe(), full_terminal()]
}

/// A process whose standard error takes nothing.
struct Deaf {
    child: Child,
    stdout: BufReader<ChildStdout>,
}

impl Deaf {
    fn start(mut command: Command, full: &Full) -> Self {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).env("TERM", "xterm");
        command.stderr(full.writer.try_clone().expect("a descriptor"));
        let mut child = command.spawn().expect("the binary starts");
        let stdout = BufReader::new(child.stdout.take().expect("a pipe"));
        Self { child, stdout }
    }

    fn send(&mut self, line: &str) {
        let stdin = self.child.stdin.as_mut().expect("a pipe");
        stdin.write_all(format!("{line}\n").as_bytes()).expect("it reads");
    }

    fn signal(&self, signal: Signal) {
        Process(self.child.id()).send(signal);
    }

    /// Reads lines up to one with `text` in it.
    fn read_to(&mut self, text: &str) {
        let mut line = String::new();
        while !line.contains(text) {
            line.clear();
            assert_ne!(self.stdout.read_line(&mut line).expect("UTF-8"), 0, "no {text}");
        }
    }

    /// Waits for the end, without reading standard output before.
    #[track_caller]
    fn finish(mut self) -> Ended {
        let child = &mut self.child;
        let status = eventually("the process ends", || child.try_wait().expect("our own child"));
        let mut stdout = String::new();
        self.stdout.read_to_string(&mut stdout).expect("UTF-8");
        let signal = || status.signal().map(|number| 128 + number);
        let status = status.code().or_else(signal).expect("it ended");
        Ended { status, stdout, stderr: String::new() }
    }
}

impl Drop for Deaf {
    fn drop(&mut self) {
        // Most have ended already.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

#[test]
fn a_refused_command_line_ends_with_its_status_and_its_frames() {
    let folder = Folder::new();
    let wrong: [&[&str]; 5] = [
        &["rpc", "--dance"],
        &["exec", "--dance"],
        &["exec", " "],
        &["run-command", "nothing.yaml"],
        &["check", "nothing.jsonl"],
    ];
    for full in full() {
        for words in wrong {
            let ended = Deaf::start(duologue(&folder, words), &full).finish();
            assert_eq!(ended.status, 2, "{words:?}: {ended:?}");
            let is_reported = ended.stdout.contains(r#""done":{"status":"failed"}"#);
            assert_eq!(is_reported, words[0] == "rpc", "{words:?}: {ended:?}");
        }
    }
}

#[test]
fn a_run_that_fails_ends_with_its_status() {
    let folder = Folder::new();
    for full in full() {
        let failing = vec![Step::Status(500, Vec::new(), "no".to_owned())];
        let provider = Provider::start(vec![failing]);
        let url = provider.base_url();
        let words = ["exec", "hello", "--engine", "openai", "--model", "m", "--retries", "0"];
        let mut command = duologue(&folder, &[&words[..], &["--base-url", &url]].concat());
        command.env("DUOLOGUE_API_KEY", "sk-test");
        let ended = Deaf::start(command, &full).finish();
        assert_eq!(ended.status, 75, "{ended:?}");
    }
}

#[test]
fn an_answer_arrives_whole_and_the_process_ends() {
    let folder = Folder::new();
    let echo = ["--engine", "echo", "--echo-delay-ms", "1", "--log-level", "trace"];
    for full in full() {
        let words = [&["exec", "one two three four"][..], &echo].concat();
        let ended = Deaf::start(duologue(&folder, &words), &full).finish();
        assert_eq!(ended.status, 0, "{ended:?}");
        assert_eq!(ended.stdout, "Turn 1. You said: one two three four\n");
    }
}

#[test]
fn a_signal_ends_a_run_that_waits() {
    let folder = Folder::new();
    let never = ["--engine", "echo", "--echo-delay-ms", "3600000", "--log-level", "trace"];
    for full in full() {
        for (signal, status) in [(Signal::INT, 130), (Signal::TERM, 143)] {
            let words = [&["rpc"][..], &never].concat();
            let mut server = Deaf::start(duologue(&folder, &words), &full);
            server.send(&submit("r", "hello"));
            server.read_to("ChatRunStarted");
            server.signal(signal);
            let ended = server.finish();
            assert_eq!(ended.status, status, "{ended:?}");
            let last = ended.stdout.lines().last().expect("a frame");
            assert_eq!(Frame::parse(last.as_bytes()).done(), Some("stopped"));

            let words = [&["exec", "--rpc", "hello"][..], &never].concat();
            let mut run = Deaf::start(duologue(&folder, &words), &full);
            run.read_to("ChatRunStarted");
            run.signal(signal);
            assert_eq!(run.finish().status, status);
        }
    }
}

/// The progress line is drawn where only standard error is a terminal.
#[test]
fn a_signal_ends_a_run_whose_progress_line_is_stuck() {
    let folder = Folder::new();
    let provider = Provider::start(vec![vec![Step::Stall]]);
    let full = full_terminal();
    let url = provider.base_url();
    let words = ["exec", "hello", "--engine", "openai", "--model", "m", "--base-url", &url];
    let mut command = duologue(&folder, &words);
    command.env("DUOLOGUE_API_KEY", "sk-test");
    let run = Deaf::start(command, &full);
    provider.wait_request(1);
    run.signal(Signal::INT);
    assert_eq!(run.finish().status, 130);
}

/// Neither output is read.
#[test]
fn a_second_signal_ends_a_process_that_nobody_reads() {
    let folder = Folder::new();
    fs_long_prompt(&folder);
    for full in full() {
        let words = ["exec", "--prompt-file", "long", "--rpc", "--log-level", "trace"];
        let run = Deaf::start(duologue(&folder, &words), &full);
        let unread = || rustix::io::ioctl_fionread(run.stdout.get_ref()).expect("a pipe");
        eventually("the pipe is full", || (unread() > 32 * 1024).then_some(()));
        run.signal(Signal::TERM);
        run.signal(Signal::INT);
        let status = run.finish().status;
        assert!([130, 143].contains(&status), "{status}");
    }
}

fn fs_long_prompt(folder: &Folder) {
    std::fs::write(folder.path("long"), "word ".repeat(100_000)).expect("a file");
}
