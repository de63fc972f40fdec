//! A scripted provider: an HTTP server with OpenAI's chat completions whose timing and faults are
//! written down step by step. Answers are played in the order in which requests arrive. A request that
//! a real provider would refuse fails the test.
//!
//! Nothing in it sleeps unless a script says so, and what waits for it has a deadline.

use super::rules::broken_rules;
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Waiting longer than this is a failed test. Far more than anything takes, so that a machine with
/// much else to do fails no test.
const DEADLINE: Duration = Duration::from_secs(180);

/// A write that moves nothing for this long is blocked: the client doesn't read.
const BLOCKED_AFTER: Duration = Duration::from_millis(200);

/// A stalled answer goes on after this: nobody is left who could end it.
const STALL_MAX: Duration = Duration::from_secs(60 * 60);

/// One step of an answer. The first step that belongs to a body sends the head of a stream before
/// it; a body that is not cut is ended properly after the last step.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// A whole answer: status, further headers, body.
    Status(u16, Vec<(&'static str, String)>, String),
    /// The head of a stream with another content type than that of events.
    Head(&'static str),
    /// The head of a stream of events that has neither a length nor chunks: the end of the
    /// connection is its end.
    HeadWithoutLength,
    /// A delta of text.
    Text(String),
    /// A delta of reasoning.
    Reasoning(String),
    /// An event with this data.
    Event(String),
    /// Bytes of the body.
    Bytes(Vec<u8>),
    /// This delta of text again and again, with a pause before each.
    Drip {
        /// The text.
        text: String,
        /// How many.
        times: usize,
        /// Before each.
        pause: Duration,
    },
    /// What keeps a connection alive and says nothing, again and again, with a pause before each,
    /// until the client leaves.
    Pings(Duration),
    /// These bytes of a body, again and again without a pause, until the client leaves.
    Endless(Vec<u8>),
    /// Deltas of text as fast as the client takes them, until the body has so many bytes more.
    Flood(usize),
    /// Waits for [`Provider::open_gate`]: one call opens one gate.
    Gate,
    /// Waits until the client leaves or [`Provider::release`] is called.
    Stall,
    /// Closes the connection at once.
    Cut,
    /// The finish reason, and token counts: of the prompt, and of the answer.
    Finish(&'static str, Option<(u32, u32)>),
    /// The end mark.
    Done,
}

/// A request as it came.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    /// `POST`.
    pub(crate) method: String,
    /// With its query.
    pub(crate) path: String,
    /// Names in lower case.
    pub(crate) headers: Vec<(String, String)>,
    /// Null if it is no JSON.
    pub(crate) body: Value,
}

/// The server. Dropped, it closes every connection and ends its threads.
#[derive(Debug)]
pub(crate) struct Provider {
    address: SocketAddr,
    shared: Arc<Shared>,
    accepting: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    script: VecDeque<Vec<Step>>,
    requests: Vec<Request>,
    /// The rules of real providers that requests have broken.
    broken: Vec<String>,
    takes_any: bool,
    /// Answers in place of the script.
    decides: Option<Decides>,
    connections: Vec<Connection>,
    open_gates: usize,
    hangups: usize,
    sent_bytes: usize,
    blocked: bool,
    released: bool,
    /// The last answer waits at a gate or a stall, or has ended.
    quiet: bool,
    closing: bool,
}

type Decide = dyn Fn(&Request) -> Vec<Step> + Send + Sync;

#[derive(Clone)]
struct Decides(Arc<Decide>);

impl std::fmt::Debug for Decides {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Decides")
    }
}

#[derive(Debug)]
struct Connection {
    stream: TcpStream,
    answering: bool,
    gone: bool,
}

/// The client has left, or the server is closing.
struct Gone;

/// An answer that says `text` and ends well.
pub(crate) fn says(text: &str) -> Vec<Step> {
    vec![Step::Text(text.to_owned()), Step::Finish("stop", Some((3, 2))), Step::Done]
}

impl Request {
    /// The value of a header.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(header, _)| header == name);
        found.map(|(_, value)| value.as_str())
    }
}

impl Provider {
    /// Listens on a free port of the loopback address. A request beyond the script gets status 500.
    pub(crate) fn start(script: Vec<Vec<Step>>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("an address");
        let shared = Arc::new(Shared::default());
        shared.lock().script = script.into();
        let accepting = thread::spawn({
            let shared = shared.clone();
            move || accept(&listener, &shared)
        });
        Self { address, shared, accepting: Some(accepting) }
    }

    /// One that answers each request as `decides` says.
    pub(crate) fn deciding(
        decides: impl Fn(&Request) -> Vec<Step> + Send + Sync + 'static,
    ) -> Self {
        let provider = Self::start(Vec::new());
        provider.shared.change(|state| state.decides = Some(Decides(Arc::new(decides))));
        provider
    }

    /// Takes requests that break rules of other providers: with messages that a person wrote, or longer ids of its own.
    pub(crate) fn taking_any_request(self) -> Self {
        self.shared.change(|state| state.takes_any = true);
        self
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// What a client takes for its base URL.
    pub(crate) fn base_url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// Request number `number`, from 1; waits for it.
    pub(crate) fn wait_request(&self, number: usize) -> Request {
        let state = self.wait("the request", |state| state.requests.len() >= number);
        state.requests[number - 1].clone()
    }

    /// How many requests have come.
    pub(crate) fn requests(&self) -> usize {
        self.shared.lock().requests.len()
    }

    /// How many connections have been made.
    pub(crate) fn connections(&self) -> usize {
        self.shared.lock().connections.len()
    }

    /// Waits until a client has left in the middle of an answer.
    pub(crate) fn wait_disconnect(&self) {
        drop(self.wait("a disconnect", |state| state.hangups > 0));
    }

    /// Waits until the client takes nothing more; gives the bytes that were sent by then.
    pub(crate) fn wait_blocked(&self) -> usize {
        self.wait("a blocked client", |state| state.blocked).sent_bytes
    }

    /// Waits until nothing more comes by itself: the last answer waits at a gate or a stall, or has ended.
    pub(crate) fn wait_quiet(&self) {
        drop(self.wait("the end of an answer", |state| state.quiet && state.open_gates == 0));
    }

    /// Opens one [`Step::Gate`], also one that is not reached yet.
    pub(crate) fn open_gate(&self) {
        self.shared.change(|state| state.open_gates += 1);
    }

    /// Ends every [`Step::Stall`], now and later.
    pub(crate) fn release(&self) {
        self.shared.change(|state| state.released = true);
    }

    fn wait(&self, what: &str, until: impl Fn(&State) -> bool) -> MutexGuard<'_, State> {
        let state = self.shared.lock();
        let waited = self.shared.changed.wait_timeout_while(state, DEADLINE, |state| !until(state));
        let (state, result) = waited.unwrap_or_else(PoisonError::into_inner);
        assert!(!result.timed_out(), "waited {DEADLINE:?} for {what}: {state:?}");
        state
    }
}

impl Drop for Provider {
    fn drop(&mut self) {
        self.shared.change(|state| {
            state.closing = true;
            for connection in &state.connections {
                // It may be closed already.
                drop(connection.stream.shutdown(Shutdown::Both));
            }
        });
        // Wakes the thread that waits for connections.
        drop(TcpStream::connect(self.address));
        if let Some(accepting) = self.accepting.take() {
            drop(accepting.join());
        }
        if !thread::panicking() {
            let State { broken, requests, takes_any, .. } = &*self.shared.lock();
            assert!(
                broken.is_empty() || *takes_any,
                "a provider would refuse it: {broken:?}\n{requests:#?}"
            );
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let changed = change(&mut self.lock());
        self.changed.notify_all();
        changed
    }

    /// Waits until `until` has taken what it waits for, at most for `limit`.
    fn wait(
        &self,
        connection: usize,
        limit: Duration,
        mut until: impl FnMut(&mut State) -> bool,
    ) -> Result<(), Gone> {
        let waiting = |state: &mut State| !state.is_gone(connection) && !until(state);
        let waited = self.changed.wait_timeout_while(self.lock(), limit, waiting);
        let (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        if state.is_gone(connection) { Err(Gone) } else { Ok(()) }
    }
}

impl State {
    fn is_gone(&self, connection: usize) -> bool {
        self.closing || self.connections[connection].gone
    }
}

fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    let mut threads = Vec::new();
    for stream in listener.incoming().map_while(Result::ok) {
        let own = stream.try_clone().expect("a second handle");
        let number = shared.change(|state| {
            let connection = Connection { stream: own, answering: false, gone: state.closing };
            state.connections.push(connection);
            state.connections.len() - 1
        });
        if shared.lock().closing {
            break;
        }
        let shared = shared.clone();
        threads.push(thread::spawn(move || serve(stream, number, &shared)));
    }
    for thread in threads {
        drop(thread.join());
    }
}

/// Reads one connection to its end, so that a client that leaves is noticed at once; another thread
/// answers.
fn serve(stream: TcpStream, connection: usize, shared: &Arc<Shared>) {
    let (requests, answers) = mpsc::channel();
    let writer = stream.try_clone().expect("a second handle");
    writer.set_write_timeout(Some(BLOCKED_AFTER)).expect("a time");
    writer.set_nodelay(true).expect("a socket");
    let answering = thread::spawn({
        let shared = shared.clone();
        move || {
            for steps in answers {
                let mut answer = Playing {
                    stream: &writer,
                    connection,
                    shared: &shared,
                    began: false,
                    is_chunked: true,
                };
                if answer.play(steps).is_err() {
                    break;
                }
                shared.change(|state| {
                    state.connections[connection].answering = false;
                    state.quiet = true;
                });
            }
            drop(writer.shutdown(Shutdown::Both));
            shared.change(|state| state.quiet = true);
        }
    });
    let mut reader = BufReader::new(stream);
    while let Some(request) = read_request(&mut reader) {
        let host = request.header("host").unwrap_or_default();
        let broken = broken_rules(&request.path, host, &request.body);
        let steps = shared.change(|state| {
            state.broken.extend(broken);
            let decided = state.decides.as_ref().map(|Decides(decides)| decides(&request));
            state.requests.push(request);
            state.connections[connection].answering = true;
            state.quiet = false;
            decided.or_else(|| state.script.pop_front())
        });
        let beyond = || vec![Step::Status(500, Vec::new(), "the script has ended".into())];
        if requests.send(steps.unwrap_or_else(beyond)).is_err() {
            break;
        }
    }
    shared.change(|state| {
        let connection = &mut state.connections[connection];
        connection.gone = true;
        state.hangups += usize::from(connection.answering);
    });
    drop(requests);
    drop(answering.join());
}

fn read_request(reader: &mut impl BufRead) -> Option<Request> {
    let mut line = || {
        let mut line = String::new();
        let bytes = reader.read_line(&mut line).ok()?;
        (bytes > 0).then(|| line.trim_end().to_owned())
    };
    let first = line()?;
    let mut words = first.split(' ').map(str::to_owned);
    let (method, path) = (words.next()?, words.next()?);
    let mut headers = Vec::new();
    while let Some((name, value)) = line()?.split_once(':') {
        headers.push((name.to_lowercase(), value.trim().to_owned()));
    }
    let mut request = Request { method, path, headers, body: Value::Null };
    let length = request.header("content-length").and_then(|length| length.parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    reader.read_exact(&mut body).ok()?;
    request.body = serde_json::from_slice(&body).unwrap_or_default();
    Some(request)
}

/// An answer on its way.
struct Playing<'a> {
    stream: &'a TcpStream,
    connection: usize,
    shared: &'a Shared,
    began: bool,
    is_chunked: bool,
}

impl Playing<'_> {
    fn play(&mut self, steps: Vec<Step>) -> Result<(), Gone> {
        if let [Step::Status(status, headers, body)] = steps.as_slice() {
            return self.whole(*status, headers, body);
        }
        for step in steps {
            self.step(step)?;
        }
        self.begin("text/event-stream")?;
        if self.is_chunked { self.write(b"0\r\n\r\n") } else { Err(Gone) }
    }

    fn step(&mut self, step: Step) -> Result<(), Gone> {
        match step {
            Step::Status(..) => panic!("a status is an answer of its own"),
            Step::Head(content_type) => self.begin(content_type),
            Step::HeadWithoutLength => {
                (self.began, self.is_chunked) = (true, false);
                self.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n")
            }
            Step::Text(text) => self.delta(&json!({ "content": text })),
            Step::Reasoning(text) => self.delta(&json!({ "reasoning_content": text })),
            Step::Event(data) => self.event(&data),
            Step::Bytes(bytes) => self.body(&bytes),
            Step::Drip { text, times, pause } => (0..times).try_for_each(|_| {
                self.shared.wait(self.connection, pause, |_| false)?;
                self.delta(&json!({ "content": text }))
            }),
            Step::Pings(pause) => loop {
                self.shared.wait(self.connection, pause, |_| false)?;
                self.body(b": ping\n\ndata: ping\n\ndata:\n\n")?;
            },
            Step::Endless(bytes) => loop {
                self.body(&bytes)?;
            },
            Step::Flood(bytes) => self.flood(bytes),
            Step::Gate => {
                self.shared.change(|state| state.quiet = true);
                self.shared.wait(self.connection, STALL_MAX, |state| {
                    let open = state.open_gates > 0;
                    state.open_gates -= usize::from(open);
                    state.quiet = !open;
                    open
                })
            }
            Step::Stall => {
                self.shared.change(|state| state.quiet = true);
                self.shared.wait(self.connection, STALL_MAX, |state| state.released)
            }
            Step::Cut => Err(Gone),
            Step::Finish(reason, usage) => self.finish(reason, usage),
            Step::Done => self.event("[DONE]"),
        }
    }

    fn whole(
        &self,
        status: u16,
        headers: &[(&'static str, String)],
        body: &str,
    ) -> Result<(), Gone> {
        let mut head = format!("HTTP/1.1 {status} Scripted\r\ncontent-length: {}\r\n", body.len());
        for (name, value) in headers {
            head += &format!("{name}: {value}\r\n");
        }
        self.write(format!("{head}\r\n{body}").as_bytes())
    }

    fn begin(&mut self, content_type: &str) -> Result<(), Gone> {
        if std::mem::replace(&mut self.began, true) {
            return Ok(());
        }
        let head = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: {content_type}\r\ntransfer-encoding: chunked\r\n\r\n"
        );
        self.write(head.as_bytes())
    }

    fn delta(&mut self, delta: &Value) -> Result<(), Gone> {
        let choice = json!({ "index": 0, "delta": delta, "finish_reason": null });
        self.event(&chunk(&[choice], &Value::Null).to_string())
    }

    fn finish(&mut self, reason: &str, usage: Option<(u32, u32)>) -> Result<(), Gone> {
        let choice = json!({ "index": 0, "delta": {}, "finish_reason": reason });
        self.event(&chunk(&[choice], &Value::Null).to_string())?;
        let Some((prompt, answer)) = usage else { return Ok(()) };
        let usage = json!({ "prompt_tokens": prompt, "completion_tokens": answer });
        self.event(&chunk(&[], &usage).to_string())
    }

    fn flood(&mut self, bytes: usize) -> Result<(), Gone> {
        let text = "flood ".repeat(1_000);
        let end = self.shared.lock().sent_bytes + bytes;
        while self.shared.lock().sent_bytes < end {
            self.delta(&json!({ "content": text }))?;
        }
        Ok(())
    }

    fn event(&mut self, data: &str) -> Result<(), Gone> {
        self.body(format!("data: {data}\n\n").as_bytes())
    }

    fn body(&mut self, bytes: &[u8]) -> Result<(), Gone> {
        self.begin("text/event-stream")?;
        if bytes.is_empty() {
            return Ok(());
        }
        if !self.is_chunked {
            return self.write(bytes);
        }
        let mut chunk = format!("{:x}\r\n", bytes.len()).into_bytes();
        chunk.extend_from_slice(bytes);
        chunk.extend_from_slice(b"\r\n");
        self.write(&chunk)
    }

    fn write(&self, bytes: &[u8]) -> Result<(), Gone> {
        let mut stream = self.stream;
        let mut rest = bytes;
        while !rest.is_empty() {
            match stream.write(rest) {
                Ok(bytes) => {
                    rest = &rest[bytes..];
                    self.shared.change(|state| {
                        state.sent_bytes += bytes;
                        state.blocked = false;
                    });
                }
                Err(error)
                    if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) =>
                {
                    self.shared.change(|state| state.blocked = true);
                    if self.shared.lock().is_gone(self.connection) {
                        return Err(Gone);
                    }
                }
                Err(_) => return Err(Gone),
            }
        }
        Ok(())
    }
}

fn chunk(choices: &[Value], usage: &Value) -> Value {
    json!({
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "scripted",
        "choices": choices,
        "usage": usage,
    })
}
