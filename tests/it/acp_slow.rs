//! An editor that reads slowly, late or not at all.

use crate::acp_client::command;
use crate::process::{DEADLINE, Process, settled};
use crate::server::Folder;
use serde_json::{Value, json};
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::time::Instant;

/// Bytes of an answer that is longer than all queues.
const ANSWER_BYTES: usize = 24 * 1024 * 1024;

/// Bytes of a word of it.
const WORD_BYTES: usize = 256;

/// An editor that reads only what it wants to.
struct Editor {
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
}

impl Editor {
    /// One whose server answers with a long text.
    fn start(folder: &Folder) -> Self {
        // In lines, of which the engine reads one at a time, and in long words, each of which is a delta.
        let text = format!("{}\n", "x".repeat(WORD_BYTES - 1)).repeat(ANSWER_BYTES / WORD_BYTES);
        fs::write(folder.path("answer"), text).expect("a file");
        let mut command = command(folder, &["--no-store", "--echo-answer", &folder.name("answer")]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().expect("the binary starts");
        let stdin = child.stdin.take().expect("a pipe");
        let stdout = BufReader::new(child.stdout.take().expect("a pipe"));
        Self { child, stdin, stdout }
    }

    fn send(&mut self, id: i64, method: &str, params: &Value) {
        let request = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        writeln!(self.stdin, "{request}").expect("the server reads");
    }

    /// Reads on to the response of a request; returns it, and the text that came before.
    fn answer(&mut self, id: i64) -> (Value, usize) {
        let (started, mut bytes) = (Instant::now(), 0);
        loop {
            let mut line = String::new();
            self.stdout.read_line(&mut line).expect("a line");
            let message: Value = serde_json::from_str(&line).expect("JSON");
            if message["id"] == id {
                return (message["result"].clone(), bytes);
            }
            let text = message["params"]["update"]["content"]["text"].as_str();
            bytes += text.map_or(0, str::len);
            assert!(started.elapsed() < DEADLINE, "no answer to {id}");
        }
    }

    fn session(&mut self) -> String {
        self.send(1, "initialize", &json!({ "protocolVersion": 1 }));
        self.send(2, "session/new", &json!({ "cwd": "/", "mcpServers": [] }));
        self.answer(2).0["sessionId"].as_str().expect("an id").to_owned()
    }

    fn prompt(&mut self, id: i64, session: &str) {
        let prompt = json!([{ "type": "text", "text": "go" }]);
        self.send(id, "session/prompt", &json!({ "sessionId": session, "prompt": prompt }));
    }

    fn process(&self) -> Process {
        Process(self.child.id())
    }
}

impl Drop for Editor {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

#[test]
fn nobody_reads_and_memory_stays_bounded_and_then_all_text_arrives() {
    let folder = Folder::new();
    let mut editor = Editor::start(&folder);
    let session = editor.session();
    let before = editor.process().memory_bytes();
    editor.prompt(3, &session);
    let process = editor.process();
    settled("it waits for the reader", || process.memory_bytes());
    let grown = process.memory_bytes().saturating_sub(before);
    assert!(grown < ANSWER_BYTES as u64 / 2, "{grown} bytes more");
    let (answer, bytes) = editor.answer(3);
    assert_eq!(answer["stopReason"], "end_turn");
    assert!(bytes >= ANSWER_BYTES, "{bytes}");
}

#[test]
fn a_cancel_acts_though_nobody_reads() {
    let folder = Folder::new();
    let mut editor = Editor::start(&folder);
    let session = editor.session();
    editor.prompt(3, &session);
    let process = editor.process();
    settled("it waits for the reader", || process.memory_bytes());
    let cancel =
        json!({ "jsonrpc": "2.0", "method": "session/cancel", "params": { "sessionId": session } });
    writeln!(editor.stdin, "{cancel}").expect("the server reads");
    let (answer, bytes) = editor.answer(3);
    assert_eq!(answer["stopReason"], "cancelled");
    assert!(bytes < ANSWER_BYTES / 2, "{bytes}");
}

#[test]
fn a_reader_that_is_gone_ends_the_process() {
    let folder = Folder::new();
    let mut editor = Editor::start(&folder);
    let session = editor.session();
    editor.prompt(3, &session);
    let (nothing, _) = std::io::pipe().expect("a pipe");
    drop(std::mem::replace(&mut editor.stdout, BufReader::new(closed(nothing))));
    let status = editor.child.wait().expect("it ends");
    assert_eq!(status.code(), Some(0));
}

/// An output without a writer, in the place of one that is closed.
fn closed(reader: std::io::PipeReader) -> ChildStdout {
    ChildStdout::from(std::os::fd::OwnedFd::from(reader))
}
