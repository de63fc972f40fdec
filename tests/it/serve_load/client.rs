//! A client of the load: it asks, reads, loses its connection and comes back, and holds everything it is shown
//! against what it was shown before.

use super::model::{TOOL, prompt};
use crate::long::Chance;
use crate::process::DEADLINE;
use crate::serve_node::attach;
use duologue::conformance::check::Checker;
use duologue::protocol::any::{Any, read_message};
use duologue::protocol::proto::fleet::converse_request::Message;
use duologue::protocol::proto::fleet::fleet_client::FleetClient;
use duologue::protocol::proto::fleet::{Attach, ConverseRequest};
use duologue::protocol::proto::rpc::rpc_line::Frame as Body;
use duologue::protocol::proto::rpc::{RpcLine, RpcRequestLine, SnapshotFrame, UiEventFrame};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, timeout, timeout_at};
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::Channel;
use tonic::{Code, Status, Streaming};

/// A stream that says nothing for so long is given up: nobody else notices that a node was stopped.
const SILENCE_MAX: Duration = Duration::from_secs(8);

/// For the first frame: a node waits for the lease of another one, which may have been stopped.
const ATTACH_MAX: Duration = Duration::from_secs(25);

const CONNECT_MAX: Duration = Duration::from_secs(2);

/// Before a client comes back, at most.
const PAUSE_MILLIS_MAX: u64 = 400;

/// A client loses its connection after one of so many frames.
const CUT_ONE_OF: u64 = 150;

/// A prompt of so many wants a tool.
const TOOL_ONE_OF: u64 = 3;

/// What all clients share.
#[derive(Debug, Default)]
pub(super) struct World {
    /// `127.0.0.1:PORT`, of a balancer or of each node.
    pub(super) addresses: Vec<String>,
    pub(super) is_over: AtomicBool,
    /// For so long a person reads and thinks between two prompts, at most.
    pub(super) thinking: Duration,
    pub(super) turns: Vec<Turns>,
    pub(super) counts: Counts,
    /// What the checker says of the streams.
    pub(super) wrong: Mutex<Vec<String>>,
    /// Requests that a provider would refuse.
    pub(super) broken: Arc<Mutex<Vec<String>>>,
}

/// How far a client is.
#[derive(Debug, Default)]
pub(super) struct Turns {
    pub(super) begun: AtomicU64,
    pub(super) ended: AtomicU64,
}

#[derive(Debug, Default)]
pub(super) struct Counts {
    pub(super) frames: AtomicU64,
    /// Those among them that a checker has taken.
    pub(super) checked: AtomicU64,
    pub(super) attached: AtomicU64,
    pub(super) snapshots: AtomicU64,
    pub(super) lost: AtomicU64,
    pub(super) stopped: AtomicU64,
    pub(super) tools: AtomicU64,
}

/// A prompt, and what became of it.
#[derive(Clone, Debug, Default)]
pub(super) struct Asked {
    pub(super) prompt: String,
    pub(super) status: String,
    /// The text that was shown.
    pub(super) shown: String,
}

pub(super) struct Client {
    number: usize,
    session: String,
    world: Arc<World>,
    chance: Chance,
    stream: Option<Stream>,
    /// The address that has given no stream last, which is not tried twice in a row.
    refused: Option<usize>,
    /// The newest event that it was shown.
    seen: u64,
    /// Its requests without a done, in their order.
    open: Vec<RpcRequestLine>,
    /// The status of each of its requests.
    statuses: HashMap<String, String>,
    asked: HashMap<String, Asked>,
}

struct Stream {
    to: mpsc::Sender<ConverseRequest>,
    frames: Streaming<RpcLine>,
    /// `None` after a fault, as one brings others.
    checker: Option<Checker>,
}

/// Why a client has to attach again.
type Lost = String;

impl Client {
    pub(super) fn new(number: usize, session: String, world: Arc<World>) -> Self {
        let chance = Chance(0x9e37_79b9_7f4a_7c15 ^ (number as u64 + 1));
        let tool = json!({ "name": TOOL, "description": "Looks up.", "inputSchema": { "type": "object" } });
        let declare = request(
            &format!("tools-{number}"),
            "declareTools",
            &json!({ "tools": [tool], "revision": 1 }),
        );
        let (stream, refused, seen, statuses, asked) = Default::default();
        let open = vec![declare];
        Self { number, session, world, chance, stream, refused, seen, open, statuses, asked }
    }

    /// Asks until the load is over; gives what it has asked.
    pub(super) async fn run(mut self) -> Vec<Asked> {
        let mut number = 0;
        while !self.world.is_over.load(Ordering::Relaxed) {
            number += 1;
            self.turn(number).await;
            self.think().await;
        }
        self.asked.into_values().collect()
    }

    /// Reads for a while, as what another client asks for.
    async fn think(&mut self) {
        let most = self.world.thinking.as_millis() as u64;
        if most == 0 {
            return;
        }
        let until = Instant::now() + Duration::from_millis(self.chance.below(most));
        while !self.world.is_over.load(Ordering::Relaxed)
            && let Ok(step) = timeout_at(until, self.step()).await
        {
            if step.is_err() {
                self.leave().await;
            }
        }
    }

    /// Is without a stream for a moment.
    async fn leave(&mut self) {
        self.stream = None;
        self.world.counts.lost.fetch_add(1, Ordering::Relaxed);
        let pause = self.chance.below(PAUSE_MILLIS_MAX);
        sleep(Duration::from_millis(pause)).await;
    }

    async fn turn(&mut self, number: u64) {
        let world = Arc::clone(&self.world);
        world.turns[self.number].begun.fetch_add(1, Ordering::Relaxed);
        let prompt = prompt(self.number, number, self.chance.below(TOOL_ONE_OF) == 0);
        let id = format!("r{}-{number}", self.number);
        let submit = request(&id, "submit", &json!({ "prompt": prompt }));
        self.asked.insert(id.clone(), Asked { prompt, ..Asked::default() });
        self.ask(submit).await;
        let mut losses = Vec::new();
        let ending = async {
            while !self.open.is_empty() {
                if let Err(why) = self.step().await {
                    losses.push(why);
                    self.leave().await;
                }
            }
        };
        let is_ended = timeout(DEADLINE, ending).await.is_ok();
        assert!(is_ended, "{} of {} never ended: {losses:#?}", id, self.session);
        world.turns[self.number].ended.fetch_add(1, Ordering::Relaxed);
    }

    /// Sends a request now, if there is a stream, and again at each attach until it has its done.
    async fn ask(&mut self, line: RpcRequestLine) {
        self.open.push(line.clone());
        if let Some(stream) = &self.stream {
            // If it was lost, the client attaches again.
            stream.to.send(message(Message::Request(line))).await.ok();
        }
    }

    async fn step(&mut self) -> Result<(), Lost> {
        if self.stream.is_none() {
            let place = self.place();
            self.refused = Some(place);
            let attached = timeout(ATTACH_MAX, self.attach(place)).await;
            self.stream = Some(attached.map_err(|_| "no stream")??);
            self.refused = None;
        }
        let Some(stream) = &mut self.stream else { return Ok(()) };
        // Who waits for nothing is told nothing.
        let silence = if self.open.is_empty() { DEADLINE } else { SILENCE_MAX };
        let next = timeout(silence, stream.frames.message()).await;
        let frame = next.map_err(|_| "silence")?.map_err(|status| lost(&self.session, &status))?;
        let frame = frame.ok_or("the stream has ended")?;
        if let Some(checker) = &mut stream.checker {
            self.world.counts.checked.fetch_add(1, Ordering::Relaxed);
            let wrong = checker.frame(frame.clone());
            if !wrong.is_empty() {
                stream.checker = None;
                let wrong = format!("{}: {wrong:?} at {frame:?}", self.session);
                self.world.wrong.lock().expect("no panic").push(wrong);
            }
        }
        self.world.counts.frames.fetch_add(1, Ordering::Relaxed);
        self.take(frame).await;
        match self.chance.below(CUT_ONE_OF) {
            0 => Err("cut".to_owned()),
            _ => Ok(()),
        }
    }

    /// The next address to try.
    fn place(&mut self) -> usize {
        let count = self.world.addresses.len();
        let place = self.chance.below(count as u64) as usize;
        if self.refused == Some(place) { (place + 1) % count } else { place }
    }

    async fn attach(&mut self, place: usize) -> Result<Stream, Lost> {
        let address = &self.world.addresses[place];
        let endpoint = Channel::from_shared(format!("http://{address}")).expect("a URI");
        let endpoint = endpoint.connect_timeout(CONNECT_MAX).tcp_nodelay(true);
        let channel = endpoint.connect().await.map_err(|error| format!("{error:?}"))?;
        let (to, requests) = mpsc::channel(64);
        let first = Attach {
            since_ordinal: Some(self.seen),
            extensions: vec!["client-tools".to_owned()],
            ..attach(&self.session)
        };
        let open = self.open.iter().cloned().map(Message::Request);
        for it in [Message::Attach(first)].into_iter().chain(open) {
            to.send(message(it)).await.expect("there is room");
        }
        let mut client = FleetClient::new(channel).max_decoding_message_size(usize::MAX);
        let frames = client.converse(ReceiverStream::new(requests)).await;
        let frames = frames.map_err(|status| lost(&self.session, &status))?.into_inner();
        self.world.counts.attached.fetch_add(1, Ordering::Relaxed);
        Ok(Stream { to, frames, checker: Some(Checker::joined()) })
    }

    async fn take(&mut self, frame: RpcLine) {
        assert_eq!(frame.session_id, self.session);
        match frame.frame.expect("it has one") {
            Body::UiEvent(event) => self.event(&frame.request_id, event).await,
            Body::Snapshot(snapshot) => self.snapshot(&snapshot),
            Body::Done(done) => self.done(&frame.request_id, &done.status),
            Body::Error(error) => {
                // A result that a crash made late.
                let is_late = error.code == "unknown_tool_call";
                assert!(is_late, "{}: {} {error:?}", self.session, frame.request_id);
            }
            Body::Hello(_) | Body::BackendEvent(_) => {}
        }
    }

    async fn event(&mut self, request: &str, event: UiEventFrame) {
        let UiEventFrame { ordinal, name, payload } = event;
        assert_eq!(ordinal, self.seen + 1, "{}: {name} of {request}", self.session);
        self.seen = ordinal;
        let Some(asked) = self.asked.get_mut(request) else { return };
        assert!(asked.status.is_empty(), "{}: {name} after the done of {request}", self.session);
        match payload {
            Some(Any::ChatTextPatch(patch)) => asked.shown.push_str(&patch.text),
            Some(Any::ChatTextSegmentFinished(segment)) => assert_eq!(segment.text, asked.shown),
            Some(Any::FrontendToolCallRequested(call)) => {
                self.world.counts.tools.fetch_add(1, Ordering::Relaxed);
                let id = format!("{request}-{}", call.tool_call_id);
                let result =
                    json!({ "toolCallId": call.tool_call_id, "result": { "found": request } });
                self.ask(self::request(&id, "toolResult", &result)).await;
            }
            _ => {}
        }
    }

    /// Whatever was shown is in it.
    fn snapshot(&mut self, snapshot: &SnapshotFrame) {
        let at = snapshot.snapshot_ordinal;
        assert!(at >= self.seen, "{}: {at} is before {}", self.session, self.seen);
        if at > self.seen {
            self.world.counts.snapshots.fetch_add(1, Ordering::Relaxed);
        }
        self.seen = at;
        let turns = turns(snapshot);
        for asked in self.asked.values_mut() {
            let text = turns.iter().find(|turn| turn.0 == asked.prompt).map(|turn| &turn.1);
            let text = text.map(String::as_str).unwrap_or_default();
            assert!(text.starts_with(&asked.shown), "{}: {asked:?} became {text:?}", self.session);
            text.clone_into(&mut asked.shown);
        }
    }

    fn done(&mut self, id: &str, status: &str) {
        let known = self.statuses.entry(id.to_owned()).or_insert_with(|| status.to_owned());
        assert_eq!(known, status, "{}: two ends of {id}", self.session);
        self.open.retain(|line| line.request_id != id);
        if let Some(asked) = self.asked.get_mut(id) {
            assert!(matches!(status, "ok" | "stopped"), "{}: {id} {status}", self.session);
            let is_new = std::mem::replace(&mut asked.status, status.to_owned()).is_empty();
            if is_new && status == "stopped" {
                self.world.counts.stopped.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
}

/// What no client that comes back can mend fails the test.
fn lost(session: &str, status: &Status) -> Lost {
    let is_final = matches!(
        status.code(),
        Code::InvalidArgument
            | Code::NotFound
            | Code::AlreadyExists
            | Code::Aborted
            | Code::FailedPrecondition
            | Code::ResourceExhausted
            | Code::Unauthenticated
    );
    let is_defect = status.message().contains("defect");
    assert!(!is_final && !is_defect, "{}: {status:?}", session);
    format!("{:?}: {}", status.code(), status.message())
}

/// The prompts of a conversation, and the text of the answer to each.
pub(super) fn turns(snapshot: &SnapshotFrame) -> Vec<(String, String)> {
    let mut turns: Vec<(String, String)> = Vec::new();
    for entity in &snapshot.entities {
        let Some(Any::ChatMessageEntity(message)) = &entity.payload else { continue };
        match (message.role.as_str(), turns.last_mut()) {
            ("user", _) => turns.push((message.text.clone(), String::new())),
            ("assistant", Some(turn)) => turn.1.push_str(&message.text),
            _ => {}
        }
    }
    turns
}

fn message(message: Message) -> ConverseRequest {
    ConverseRequest { message: Some(message) }
}

fn request(id: &str, member: &str, of: &Value) -> RpcRequestLine {
    let line = json!({ "requestId": id, (member): of });
    read_message(&line.to_string()).expect("a request")
}
