//! The binary as a child on pipes, and what its frames say.

use super::{node_client, run_client};
use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// For whatever a test waits for; far more than it takes.
pub(super) const DEADLINE: Duration = crate::process::DEADLINE;

/// Must be in no frame and on no stderr.
pub(super) const API_KEY: &str = "sk-of-nobody-0123456789";

/// The binary as a child on pipes.
pub(super) struct Server {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: Lines,
    stderr: Lines,
    output: Vec<u8>,
}

impl Server {
    pub(super) fn start(arguments: &[&str], environment: &[(&str, &str)]) -> Result<Self> {
        let mut child = Command::new(env!("CARGO_BIN_EXE_duologue"))
            .arg("rpc")
            .args(arguments)
            .env("DUOLOGUE_ECHO_REASONING", "true")
            .envs(environment.iter().copied())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        let stdout = Lines::of(child.stdout.take().context("stdout")?);
        let stderr = Lines::of(child.stderr.take().context("stderr")?);
        Ok(Self { stdin: child.stdin.take(), child, stdout, stderr, output: Vec::new() })
    }

    pub(super) fn send(&mut self, request: &Value) -> Result<()> {
        self.send_line(&request.to_string())
    }

    pub(super) fn send_line(&mut self, line: &str) -> Result<()> {
        let stdin = self.stdin.as_mut().context("input has ended")?;
        Ok(stdin.write_all(format!("{line}\n").as_bytes())?)
    }

    /// Submits `prompt` and returns the frames up to the end of the run.
    pub(super) fn turn(&mut self, request: &str, prompt: &str) -> Result<Vec<Value>> {
        self.send(&submit(request, prompt))?;
        self.frames_until(|frame| is_done(frame, request))
    }

    /// The next frames, up to the first that is `wanted`.
    pub(super) fn frames_until(&mut self, wanted: impl Fn(&Value) -> bool) -> Result<Vec<Value>> {
        let mut frames = Vec::new();
        while !frames.last().is_some_and(&wanted) {
            let line = self.stdout.next(Instant::now() + DEADLINE);
            let process = self.child.id();
            let seen = || format!("waited for a frame of process {process} after {frames:#?}");
            let line = line.with_context(seen)?.context("output ended").with_context(seen)?;
            self.output.extend(&line);
            frames.push(serde_json::from_slice(&line)?);
        }
        Ok(frames)
    }

    /// Ends the input; all that the server wrote on stdout, once it has ended well.
    pub(super) fn output_to_end(mut self) -> Result<Vec<u8>> {
        self.stdin = None;
        self.output.extend(self.stdout.to_end()?);
        // At the end of both pipes the process is gone, so that `wait` does not wait.
        let log = String::from_utf8_lossy(&self.stderr.to_end()?).into_owned();
        ensure!(self.child.wait()?.success(), "exit status of\n{log}");
        ensure!(!log.contains("panicked") && !log.contains(API_KEY), "on stderr: {log}");
        ensure!(!String::from_utf8_lossy(&self.output).contains(API_KEY), "the key is in a frame");
        Ok(std::mem::take(&mut self.output))
    }

    /// Ends the input and has a strict client read all that was written.
    pub(super) fn finish(self) -> Result<()> {
        run_client(node_client(), &[], &self.output_to_end()?)?;
        Ok(())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        end(&mut self.child);
    }
}

pub(super) fn end(child: &mut Child) {
    // It may have ended already, and a test that fails should tell why and not this.
    child.kill().ok();
    child.wait().ok();
}

/// The lines of a pipe, read by a thread so that a test can stop waiting for them.
pub(super) struct Lines(Receiver<Vec<u8>>);

impl Lines {
    pub(super) fn of(pipe: impl Read + Send + 'static) -> Self {
        let (sender, receiver) = channel();
        std::thread::spawn(move || {
            let mut pipe = BufReader::new(pipe);
            let mut line = Vec::new();
            while pipe.read_until(b'\n', &mut line).is_ok_and(|bytes| bytes > 0) {
                // With no one to take it, it is still read: a full pipe would block the child.
                sender.send(std::mem::take(&mut line)).ok();
                line.clear();
            }
        });
        Self(receiver)
    }

    /// The next line with its line feed; `None` at the end.
    pub(super) fn next(&self, deadline: Instant) -> Result<Option<Vec<u8>>> {
        match self.0.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            Ok(line) => Ok(Some(line)),
            Err(RecvTimeoutError::Disconnected) => Ok(None),
            Err(RecvTimeoutError::Timeout) => bail!("nothing came within {DEADLINE:?}"),
        }
    }

    pub(super) fn to_end(&self) -> Result<Vec<u8>> {
        let deadline = Instant::now() + DEADLINE;
        let mut all = Vec::new();
        while let Some(line) = self.next(deadline)? {
            all.extend(line);
        }
        Ok(all)
    }
}

pub(super) fn submit(request: &str, prompt: &str) -> Value {
    json!({"version": 1, "requestId": request, "submit": {"prompt": prompt}})
}

pub(super) fn is_done(frame: &Value, request: &str) -> bool {
    !frame["done"].is_null() && frame["requestId"] == request
}

pub(super) fn status_of<'a>(frames: &'a [Value], request: &str) -> &'a str {
    let done = frames.iter().find(|frame| is_done(frame, request));
    done.and_then(|frame| frame["done"]["status"].as_str()).unwrap_or_default()
}

pub(super) fn event_name(frame: &Value) -> &str {
    frame["uiEvent"]["name"].as_str().unwrap_or_default()
}

/// Payloads of the events with `name`.
pub(super) fn events<'a>(frames: &'a [Value], name: &'a str) -> impl Iterator<Item = &'a Value> {
    let named = frames.iter().filter(move |frame| event_name(frame) == name);
    named.map(|frame| &frame["uiEvent"]["payload"])
}

pub(super) fn event<'a>(frames: &'a [Value], name: &'a str) -> Result<&'a Value> {
    events(frames, name).next().with_context(|| format!("no {name}"))
}

/// What the patches with `name` append to.
pub(super) fn text_of(frames: &[Value], name: &str) -> String {
    events(frames, name).filter_map(|payload| payload["text"].as_str()).collect()
}
