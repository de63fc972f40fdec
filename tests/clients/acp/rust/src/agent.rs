//! A `duologue acp` process behind the official library, with what its client has seen.

use agent_client_protocol::schema::ProtocolVersion;
use agent_client_protocol::v1::schema::{
    CancelNotification, ClientCapabilities, ContentBlock, FileSystemCapabilities,
    InitializeRequest, LoadSessionRequest, LoadSessionResponse, McpServer, NewSessionRequest,
    PromptRequest, PromptResponse, ReadTextFileRequest, ReadTextFileResponse,
    RequestPermissionOutcome, RequestPermissionRequest, RequestPermissionResponse,
    SelectedPermissionOutcome, SessionNotification, TextContent,
};
use agent_client_protocol::v1::{ConnectionTo, SentRequest};
use agent_client_protocol::{self as acp, JsonRpcRequest, Lines, RequestCancellation};
use futures::channel::{mpsc, oneshot};
use futures::executor::{block_on, block_on_stream};
use futures::{SinkExt, future};
use serde_json::{Value, json};
use std::io::{self, BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::{self, JoinHandle};

/// What a person answers to a question about a tool call; `None` closes it.
pub type Decide = Arc<dyn Fn(&Value, &RequestCancellation) -> Option<&'static str> + Send + Sync>;

/// What the client has seen, as JSON that the library has read and written again.
#[derive(Default)]
pub struct Seen {
    pub updates: Vec<Value>,
    pub questions: Vec<Value>,
    pub reads: Vec<String>,
    pub withdrawn: usize,
    decide: Option<Decide>,
}

#[derive(Clone, Default)]
pub struct Shared(Arc<(Mutex<Seen>, Condvar)>);

impl Shared {
    pub fn with<T>(&self, look: impl FnOnce(&mut Seen) -> T) -> T {
        let found = look(&mut self.0.0.lock().expect("the state"));
        self.0.1.notify_all();
        found
    }

    /// Waits for something that the process says.
    pub fn until(&self, found: impl Fn(&Seen) -> bool) {
        let seen = self.0.0.lock().expect("the state");
        drop(self.0.1.wait_while(seen, |seen| !found(seen)).expect("the state"));
    }

    /// A decision that waits until nobody wants it any more.
    pub fn until_withdrawn(&self, cancellation: &RequestCancellation) -> Option<&'static str> {
        block_on(cancellation.cancelled());
        self.with(|seen| seen.withdrawn += 1);
        None
    }

    fn asked(&self, question: Value, cancellation: &RequestCancellation) -> Option<&'static str> {
        let decide = self.with(|seen| {
            seen.questions.push(question.clone());
            seen.decide.clone()
        });
        decide.map_or(Some("allow_once"), |decide| decide(&question["toolCall"], cancellation))
    }
}

pub struct Agent {
    pub shared: Shared,
    pub initialized: Value,
    connection: ConnectionTo<acp::Agent>,
    child: Child,
    /// Lines for the process; `None` ends its input.
    input: mpsc::UnboundedSender<Option<String>>,
    /// Ends the connection when it is dropped.
    stop: Option<oneshot::Sender<()>>,
    held: Option<JoinHandle<()>>,
}

/// How a process is started.
#[derive(Default)]
pub struct Start<'a> {
    pub folder: &'a str,
    pub arguments: Vec<String>,
    pub reads_files: bool,
    pub key: Option<&'a str>,
}

impl Agent {
    pub fn start(binary: &str, start: Start<'_>) -> Self {
        let Start { folder, arguments, reads_files, key } = start;
        let mut command = Command::new(binary);
        command.arg("acp").args(arguments).current_dir(folder).env_clear();
        command.env("PATH", std::env::var_os("PATH").expect("a PATH")).env("HOME", folder);
        command.env("XDG_DATA_HOME", format!("{folder}/data"));
        command.envs(key.map(|key| ("DUOLOGUE_API_KEY", key)));
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("the process starts");
        let (input, lines) = mpsc::unbounded();
        write_lines(child.stdin.take().expect("stdin"), lines);
        let transport = Lines::new(
            input
                .clone()
                .with(|line: String| future::ready(Ok::<_, mpsc::SendError>(Some(line))))
                .sink_map_err(io::Error::other),
            read_lines(child.stdout.take().expect("stdout")),
        );
        let shared = Shared::default();
        let ((tell, connection), (stop, stopped)) = (oneshot::channel(), oneshot::channel());
        let held = Some(hold(transport, shared.clone(), tell, stopped));
        let (connection, stop) = (block_on(connection).expect("a connection"), Some(stop));
        let initialized = Value::Null;
        let mut agent = Self { shared, initialized, connection, child, input, stop, held };
        let files = FileSystemCapabilities::new().read_text_file(reads_files);
        let capabilities = ClientCapabilities::new().fs(files);
        let request = InitializeRequest::new(ProtocolVersion::V1).client_capabilities(capabilities);
        agent.initialized = json!(agent.call(request).expect("initialized"));
        assert_eq!(agent.initialized["protocolVersion"], 1);
        agent
    }

    /// Ends the input; gives the exit status, which a killed process does not have.
    pub fn end(&mut self) -> Option<i32> {
        self.input.unbounded_send(None).ok();
        self.child.wait().expect("a status").code()
    }

    pub fn kill(&mut self) {
        self.child.kill().expect("it runs");
        self.end();
    }

    // What the client asks.

    pub fn send<R: JsonRpcRequest>(&self, request: R) -> SentRequest<R::Response> {
        self.connection.send_request(request)
    }

    pub fn call<R: JsonRpcRequest>(&self, request: R) -> acp::Result<R::Response> {
        block_on(self.send(request).block_task())
    }

    pub fn open(&self, cwd: &str, servers: Vec<McpServer>) -> String {
        let opened = self.call(NewSessionRequest::new(cwd).mcp_servers(servers));
        opened.expect("a session").session_id.to_string()
    }

    pub fn load(&self, it: &str, cwd: &str) -> acp::Result<LoadSessionResponse> {
        self.call(LoadSessionRequest::new(it.to_owned(), cwd))
    }

    pub fn begin(&self, it: &str, prompt: &str) -> SentRequest<PromptResponse> {
        self.send(PromptRequest::new(it.to_owned(), vec![text_block(prompt)]))
    }

    pub fn prompt(&self, it: &str, prompt: &str) -> String {
        stop_reason(self.begin(it, prompt))
    }

    /// Gives the text of the answer.
    pub fn ask(&self, it: &str, prompt: Vec<ContentBlock>) -> String {
        let before = self.count();
        let end = stop_reason(self.send(PromptRequest::new(it.to_owned(), prompt)));
        assert_eq!(end, "end_turn");
        self.text_from(it, "agent_message_chunk", before)
    }

    pub fn say(&self, it: &str, prompt: &str) -> String {
        self.ask(it, vec![text_block(prompt)])
    }

    pub fn cancel(&self, it: &str) {
        let notification = CancelNotification::new(it.to_owned());
        self.connection.send_notification(notification).expect("cancelled");
    }

    /// Sends a prompt and cancels it at some moment.
    pub fn cancelled(&self, it: &str, prompt: &str, when: impl Fn(&Seen) -> bool) {
        let sent = self.begin(it, prompt);
        self.shared.until(when);
        self.cancel(it);
        assert_eq!(stop_reason(sent), "cancelled");
    }

    pub fn decide(
        &self,
        decide: impl Fn(&Value, &RequestCancellation) -> Option<&'static str> + Send + Sync + 'static,
    ) {
        self.shared.with(|seen| seen.decide = Some(Arc::new(decide)));
    }

    // What the client has seen.

    pub fn count(&self) -> usize {
        self.shared.with(|seen| seen.updates.len())
    }

    pub fn questions(&self) -> Vec<Value> {
        self.shared.with(|seen| seen.questions.clone())
    }

    pub fn of(&self, it: &str, kind: &str) -> Vec<Value> {
        self.shared.with(|seen| seen.of(it, kind, 0).cloned().collect())
    }

    pub fn text(&self, it: &str, kind: &str) -> String {
        self.text_from(it, kind, 0)
    }

    pub fn text_from(&self, it: &str, kind: &str, from: usize) -> String {
        self.shared.with(|seen| seen.text(it, kind, from))
    }

    /// The states of each tool call, with its title: "get_time pending in_progress completed".
    pub fn calls(&self, it: &str, from: usize) -> Vec<String> {
        self.shared
            .with(|seen| seen.of(it, "tool_call", from).map(|call| seen.states(it, call)).collect())
    }

    /// The results of tool calls that have succeeded.
    pub fn results(&self, it: &str) -> Vec<String> {
        let changes = self.of(it, "tool_call_update");
        let done = changes.iter().filter(|change| change["status"] == "completed");
        let text =
            |change: &Value| change["content"][0]["content"]["text"].as_str().map(str::to_owned);
        done.filter_map(text).collect()
    }
}

impl Seen {
    fn of<'a>(
        &'a self,
        it: &'a str,
        kind: &'a str,
        from: usize,
    ) -> impl Iterator<Item = &'a Value> {
        let is_it = move |update: &&Value| {
            update["sessionId"] == it && update["update"]["sessionUpdate"] == kind
        };
        self.updates[from..].iter().filter(is_it).map(|update| &update["update"])
    }

    pub fn text(&self, it: &str, kind: &str, from: usize) -> String {
        self.of(it, kind, from).filter_map(|chunk| chunk["content"]["text"].as_str()).collect()
    }

    pub fn says(&self, it: &str, text: &str) -> bool {
        self.text(it, "agent_message_chunk", 0).contains(text)
    }

    pub fn is_at_work(&self, it: &str) -> bool {
        self.of(it, "tool_call_update", 0).any(|change| change["status"] == "in_progress")
    }

    fn states(&self, it: &str, call: &Value) -> String {
        let changes = self.of(it, "tool_call_update", 0);
        let changes = changes.filter(|change| change["toolCallId"] == call["toolCallId"]);
        let later = changes.filter_map(|change| change["status"].as_str());
        let first = [call["title"].as_str(), Some(call["status"].as_str().unwrap_or("pending"))];
        first.into_iter().flatten().chain(later).collect::<Vec<_>>().join(" ")
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        if thread::panicking() {
            self.child.kill().ok();
        }
        let status = self.end();
        self.stop.take();
        if let Some(held) = self.held.take() {
            held.join().ok();
        }
        assert!(matches!(status, None | Some(0)) || thread::panicking(), "exit status {status:?}");
    }
}

pub fn text_block(text: &str) -> ContentBlock {
    ContentBlock::Text(TextContent::new(text))
}

pub fn stop_reason(sent: SentRequest<PromptResponse>) -> String {
    match block_on(sent.block_task()) {
        Ok(response) => json!(response.stop_reason).as_str().unwrap_or_default().to_owned(),
        Err(error) => format!("{}", i32::from(error.code)),
    }
}

/// Holds the connection in a thread of its own, until it is stopped.
fn hold(
    transport: impl acp::ConnectTo<acp::Client> + Send + 'static,
    shared: Shared,
    tell: oneshot::Sender<ConnectionTo<acp::Agent>>,
    stopped: oneshot::Receiver<()>,
) -> JoinHandle<()> {
    let (updates, questions, files) = (shared.clone(), shared.clone(), shared);
    let client = acp::Client
        .v1()
        .on_receive_notification(
            async move |update: SessionNotification, _| {
                updates.with(|seen| seen.updates.push(json!(update)));
                Ok(())
            },
            acp::on_receive_notification!(),
        )
        .on_receive_request(
            async move |question: RequestPermissionRequest, responder, _| {
                let (shared, cancellation) = (questions.clone(), responder.cancellation());
                // Later messages are not read before this function returns.
                thread::spawn(move || {
                    let outcome = match shared.asked(json!(question), &cancellation) {
                        Some(id) => {
                            RequestPermissionOutcome::Selected(SelectedPermissionOutcome::new(id))
                        }
                        None => RequestPermissionOutcome::Cancelled,
                    };
                    responder.respond(RequestPermissionResponse::new(outcome)).ok();
                });
                Ok(())
            },
            acp::on_receive_request!(),
        )
        .on_receive_request(
            async move |read: ReadTextFileRequest, responder, _| {
                let path = read.path.to_string_lossy().into_owned();
                let text = if path.ends_with("notes.txt") { "not saved yet" } else { "" };
                files.with(|seen| seen.reads.push(path));
                responder.respond(ReadTextFileResponse::new(text))
            },
            acp::on_receive_request!(),
        );
    thread::spawn(move || {
        let held = client.connect_with(transport, async move |connection| {
            tell.send(connection).ok();
            stopped.await.ok();
            Ok(())
        });
        // The process may have been killed.
        block_on(held).ok();
    })
}

fn write_lines(mut stdin: ChildStdin, lines: mpsc::UnboundedReceiver<Option<String>>) {
    thread::spawn(move || {
        for line in block_on_stream(lines).map_while(|line| line) {
            if writeln!(stdin, "{line}").is_err() {
                return;
            }
        }
    });
}

fn read_lines(stdout: ChildStdout) -> mpsc::UnboundedReceiver<io::Result<String>> {
    let (to, lines) = mpsc::unbounded();
    thread::spawn(move || {
        for line in BufReader::new(stdout).lines() {
            if to.unbounded_send(line).is_err() {
                return;
            }
        }
    });
    lines
}
