//! A client of `duologue acp`: starts the binary, checks each line that it writes, and waits for messages
//! with a deadline. Nothing here waits for time to pass.

use crate::acp_schema::{check, params_of, result_of};
use crate::process::{DEADLINE, Process, default_signals, eventually};
use crate::server::Folder;
use rustix::process::Signal;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::thread::{self, JoinHandle};

/// Variable by which a process and all its descendants are found again.
const MARK_VARIABLE: &str = "DUOLOGUE_TEST_MARK";

/// A client and its server.
pub(crate) struct Client {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<Value>,
    stderr: Option<JoinHandle<String>>,
    mark: String,
    /// The methods of the requests that were sent, by their ids.
    sent: HashMap<i64, String>,
    last_id: i64,
    /// All messages that were read.
    pub(crate) seen: Vec<Value>,
}

/// What a server has left.
pub(crate) struct Ended {
    pub(crate) status: ExitStatus,
    pub(crate) stderr: String,
    pub(crate) seen: Vec<Value>,
}

/// `duologue acp <args>` with the echo engine, which stores in `folder`.
pub(crate) fn command(folder: &Folder, args: &[&str]) -> Command {
    let mut command = bare_command(folder, args);
    command.env("DUOLOGUE_ENGINE", "echo");
    command
}

/// The same without an engine.
pub(crate) fn bare_command(folder: &Folder, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_duologue"));
    command.arg("acp").args(args).env_clear();
    command.envs(std::env::var_os("PATH").map(|value| ("PATH", value)));
    command.env("HOME", folder.path("home")).env("XDG_DATA_HOME", folder.path("data"));
    command.env("XDG_CONFIG_HOME", folder.path("config"));
    command
}

impl Client {
    /// A client whose server has answered `initialize`.
    pub(crate) fn start(folder: &Folder, args: &[&str]) -> Self {
        Self::start_with(command(folder, args), json!({}))
    }

    pub(crate) fn start_with(command: Command, capabilities: Value) -> Self {
        let mut client = Self::spawn(command);
        client.initialize(capabilities);
        client
    }

    pub(crate) fn initialize(&mut self, capabilities: Value) -> Value {
        let params = json!({ "protocolVersion": 1, "clientCapabilities": capabilities });
        self.call("initialize", params)
    }

    pub(crate) fn spawn(mut command: Command) -> Self {
        static STARTED: AtomicU32 = AtomicU32::new(0);
        default_signals();
        let mark =
            format!("acp-{}-{}-", std::process::id(), STARTED.fetch_add(1, Ordering::Relaxed));
        command.env(MARK_VARIABLE, &mark);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the binary starts");
        let stdout = BufReader::new(child.stdout.take().expect("a pipe"));
        let mut stderr = child.stderr.take().expect("a pipe");
        let (to, lines) = channel();
        thread::spawn(move || {
            for line in stdout.split(b'\n') {
                let line = line.expect("bytes");
                let message = serde_json::from_slice(&line);
                let shown = String::from_utf8_lossy(&line);
                let message = message.unwrap_or_else(|error| panic!("{error}: {shown}"));
                if to.send(message).is_err() {
                    return;
                }
            }
        });
        let stderr = thread::spawn(move || {
            let mut text = String::new();
            stderr.read_to_string(&mut text).expect("UTF-8");
            text
        });
        Self {
            stdin: child.stdin.take(),
            child,
            lines,
            stderr: Some(stderr),
            mark: format!("{MARK_VARIABLE}={mark}"),
            sent: HashMap::new(),
            last_id: 0,
            seen: Vec::new(),
        }
    }

    pub(crate) fn process(&self) -> Process {
        Process(self.child.id())
    }

    pub(crate) fn signal(&self, signal: Signal) {
        self.process().send(signal);
    }

    /// Writes bytes with one write.
    pub(crate) fn send_raw(&mut self, bytes: &[u8]) {
        let stdin = self.stdin.as_mut().expect("standard input is open");
        stdin.write_all(bytes).expect("the server reads");
    }

    pub(crate) fn send(&mut self, message: &Value) {
        self.send_raw(format!("{message}\n").as_bytes());
    }

    /// The line of a request, and its id.
    pub(crate) fn line(&mut self, method: &str, params: Value) -> (i64, String) {
        self.last_id += 1;
        self.sent.insert(self.last_id, method.to_owned());
        let request =
            json!({ "jsonrpc": "2.0", "id": self.last_id, "method": method, "params": params });
        (self.last_id, format!("{request}\n"))
    }

    /// Sends a request; returns its id.
    pub(crate) fn request(&mut self, method: &str, params: Value) -> i64 {
        let (id, line) = self.line(method, params);
        self.send_raw(line.as_bytes());
        id
    }

    pub(crate) fn notify(&mut self, method: &str, params: Value) {
        self.send(&json!({ "jsonrpc": "2.0", "method": method, "params": params }));
    }

    /// Answers a request of the server.
    pub(crate) fn reply(&mut self, request: &Value, result: Value) {
        self.send(&json!({ "jsonrpc": "2.0", "id": request["id"], "result": result }));
    }

    /// Reads the next message, and checks it.
    #[track_caller]
    pub(crate) fn next(&mut self, what: &str) -> Value {
        let message = self.lines.recv_timeout(DEADLINE);
        let message = message.unwrap_or_else(|error| {
            let seen: Vec<_> = self.seen.iter().map(ToString::to_string).collect();
            panic!("{what} never came ({error}) after {}", seen.join("\n"))
        });
        self.check(&message);
        self.seen.push(message.clone());
        message
    }

    #[track_caller]
    fn check(&mut self, message: &Value) {
        assert_eq!(message["jsonrpc"], "2.0", "{message}");
        if let Some(method) = message["method"].as_str() {
            assert_eq!(message.get("id").is_some(), !is_notification(method), "{message}");
            check(params_of(method), &message["params"]);
        } else if let Some(error) = message.get("error") {
            check("Error", error);
        } else {
            let method = message["id"].as_i64().and_then(|id| self.sent.get(&id));
            let method = method.unwrap_or_else(|| panic!("nothing asked for {message}"));
            check(result_of(method), &message["result"]);
        }
        if let Some(id) = message["id"].as_i64().filter(|_| message.get("method").is_none()) {
            let is_again = |it: &Value| it.get("method").is_none() && it["id"].as_i64() == Some(id);
            assert!(!self.seen.iter().any(is_again), "answered twice: {message}");
        }
    }

    /// Waits for the next message that is wanted.
    #[track_caller]
    pub(crate) fn wait(&mut self, what: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        loop {
            let message = self.next(what);
            if wanted(&message) {
                return message;
            }
        }
    }

    /// Waits for the response to a request: its result, or its error.
    #[track_caller]
    pub(crate) fn answer(&mut self, id: i64) -> Result<Value, Value> {
        let is_it = |it: &Value| it["id"] == id && it.get("method").is_none();
        let found = self.seen.iter().find(|it| is_it(it)).cloned();
        let response = found.unwrap_or_else(|| self.wait("the response", is_it));
        match response.get("error") {
            Some(error) => Err(error.clone()),
            None => Ok(response["result"].clone()),
        }
    }

    /// The result of a request.
    #[track_caller]
    pub(crate) fn call(&mut self, method: &str, params: Value) -> Value {
        let id = self.request(method, params);
        self.answer(id).unwrap_or_else(|error| panic!("{method}: {error}"))
    }

    /// The error of a request.
    #[track_caller]
    pub(crate) fn refused(&mut self, method: &str, params: Value) -> Value {
        let id = self.request(method, params);
        self.answer(id).expect_err(method)
    }

    /// A new session in a folder.
    #[track_caller]
    pub(crate) fn session(&mut self, folder: &Path) -> String {
        self.session_with(folder, json!([]))
    }

    #[track_caller]
    pub(crate) fn session_with(&mut self, folder: &Path, servers: Value) -> String {
        let session = self.call("session/new", json!({ "cwd": folder, "mcpServers": servers }));
        session["sessionId"].as_str().expect("an id").to_owned()
    }

    /// Sends a prompt; returns the id of the request.
    pub(crate) fn prompt(&mut self, session: &str, text: &str) -> i64 {
        let prompt = json!([{ "type": "text", "text": text }]);
        self.request("session/prompt", json!({ "sessionId": session, "prompt": prompt }))
    }

    /// Asks and waits for the end of the turn; returns why it ended, and the text of the answer.
    #[track_caller]
    pub(crate) fn turn(&mut self, session: &str, text: &str) -> (String, String) {
        let from = self.seen.len();
        let id = self.prompt(session, text);
        let reason = self.answer(id).unwrap_or_else(|error| panic!("{text}: {error}"));
        let reason = reason["stopReason"].as_str().expect("a reason").to_owned();
        (reason, said(&self.seen[from..], session, "agent_message_chunk"))
    }

    pub(crate) fn cancel(&mut self, session: &str) {
        self.notify("session/cancel", json!({ "sessionId": session }));
    }

    /// Waits for an update of this kind.
    #[track_caller]
    pub(crate) fn update(&mut self, session: &str, kind: &str) -> Value {
        let is_it = |it: &Value| is_update(it, session, kind);
        self.wait(kind, is_it)["params"]["update"].clone()
    }

    /// Waits for a question about a tool call.
    #[track_caller]
    pub(crate) fn permission(&mut self) -> Value {
        self.wait("a question", |it| it["method"] == "session/request_permission")
    }

    /// Answers a question with an option.
    pub(crate) fn choose(&mut self, question: &Value, option: &str) {
        let outcome = json!({ "outcome": "selected", "optionId": option });
        self.reply(question, json!({ "outcome": outcome }));
    }

    pub(crate) fn close_stdin(&mut self) {
        self.stdin = None;
    }

    /// Closes standard input, and waits for the end of all processes.
    #[track_caller]
    pub(crate) fn finish(mut self) -> Ended {
        self.close_stdin();
        let ended = self.ended();
        assert_eq!(ended.status.code(), Some(0), "{}", ended.stderr);
        ended
    }

    /// Waits for the end of all processes.
    #[track_caller]
    pub(crate) fn ended(mut self) -> Ended {
        while let Ok(message) = self.lines.recv_timeout(DEADLINE) {
            self.check(&message);
            self.seen.push(message);
        }
        let status = self.child.wait().expect("a status");
        let stderr = self.stderr.take().expect("it is collected once").join().expect("UTF-8");
        let mark = &self.mark;
        eventually("no process is left", || Process::marked(mark).is_empty().then_some(()));
        Ended { status, stderr, seen: std::mem::take(&mut self.seen) }
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        // After a failed test. It may have ended.
        self.child.kill().ok();
        self.child.wait().ok();
        for process in Process::marked(&self.mark) {
            process.send(Signal::KILL);
        }
    }
}

fn is_notification(method: &str) -> bool {
    matches!(method, "session/update" | "$/cancel_request" | "elicitation/complete")
}

pub(crate) fn is_update(message: &Value, session: &str, kind: &str) -> bool {
    let params = &message["params"];
    params["sessionId"] == session && params["update"]["sessionUpdate"] == kind
}

/// The updates of a session of this kind.
pub(crate) fn updates<'a>(seen: &'a [Value], session: &str, kind: &str) -> Vec<&'a Value> {
    let found = seen.iter().filter(|it| is_update(it, session, kind));
    found.map(|it| &it["params"]["update"]).collect()
}

/// The text of the chunks of this kind.
pub(crate) fn said(seen: &[Value], session: &str, kind: &str) -> String {
    let chunks = updates(seen, session, kind).into_iter();
    chunks.map(|it| it["content"]["text"].as_str().expect("a text")).collect()
}
