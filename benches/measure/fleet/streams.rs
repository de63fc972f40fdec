//! Streams of deltas through a server, each with the time at which it was sent.

use super::server::Server;
use crate::paced_provider::{Answer, delta, end};
use duologue::protocol::any::Any;
use duologue::protocol::proto::fleet::converse_request::Message;
use duologue::protocol::proto::fleet::fleet_client::FleetClient;
use duologue::protocol::proto::fleet::{Attach, ConverseRequest};
use duologue::protocol::proto::rpc::rpc_line::Frame;
use duologue::protocol::proto::rpc::rpc_request_line::Request;
use duologue::protocol::proto::rpc::{RpcLine, RpcRequestLine, SubmitPromptRequest};
use serde_json::json;
use std::io;
use std::sync::LazyLock;
use std::time::{Duration, Instant};
use tokio::sync::mpsc;
use tokio::time::{MissedTickBehavior, interval, timeout};
use tokio_stream::wrappers::ReceiverStream;
use tonic::Streaming;
use tonic::transport::Channel;

/// Streams of one connection.
const STREAMS_OF_CONNECTION: usize = 500;

/// For the next frame. A server that takes longer has lost it.
const FRAME_MAX: Duration = Duration::from_secs(120);

static BEGIN: LazyLock<Instant> = LazyLock::new(Instant::now);

/// Of so many deltas one has the time at which it was sent. The others are a word, as an answer does not consist of
/// words that nobody has used before: a store keeps an index of them.
const DELTAS_OF_STAMP: usize = 8;

/// The text of a delta.
fn text(number: usize) -> String {
    match number % DELTAS_OF_STAMP {
        0 => format!("{} ", BEGIN.elapsed().as_nanos()),
        _ => "word ".to_owned(),
    }
}

/// How long ago the delta was sent, in milliseconds, if it says so. More than one are one patch where they were
/// coalesced: the oldest counts.
fn age(text: &str) -> Option<f64> {
    let sent: u64 = text.split(' ').find_map(|word| word.parse().ok())?;
    Some((BEGIN.elapsed().as_nanos() as f64 - sent as f64) / 1e6)
}

/// The answer of a provider: so many deltas.
pub(super) fn answer(deltas: usize) -> Answer {
    let deltas = (0..deltas).map(|number| delta(&json!({ "content": text(number) })));
    Box::new(deltas.chain(end("stop")))
}

/// The deltas of an answer, as a client has them.
#[derive(Default)]
pub(super) struct Said {
    /// How old they were.
    pub(super) ages: Vec<f64>,
    first: Option<Instant>,
    last: Option<Instant>,
}

impl Said {
    fn add(&mut self, text: &str) {
        let now = Instant::now();
        self.first.get_or_insert(now);
        self.last = Some(now);
        self.ages.extend(age(text));
    }

    /// From the first one to the last one.
    pub(super) fn span(&self) -> Duration {
        let span = self.first.zip(self.last).map(|(first, last)| last - first);
        span.unwrap_or_default()
    }
}

/// A stream that is attached.
pub(super) struct Stream {
    to: mpsc::Sender<ConverseRequest>,
    frames: Streaming<RpcLine>,
}

/// Attaches so many clients, each to a conversation of its own, whose names begin with `name`.
pub(super) async fn attach(server: &Server, name: &str, streams: usize) -> io::Result<Vec<Stream>> {
    let mut all = Vec::with_capacity(streams);
    let mut channel = None;
    for number in 0..streams {
        if number % STREAMS_OF_CONNECTION == 0 {
            channel = Some(server.channel().await?);
        }
        let Some(channel) = &channel else { continue };
        all.push(Stream::attach(channel, format!("{name}-{number}")).await?);
    }
    Ok(all)
}

impl Stream {
    pub(super) async fn attach(channel: &Channel, session_id: String) -> io::Result<Self> {
        let (to, requests) = mpsc::channel(8);
        let attach = Attach { session_id, without_past: true, ..Attach::default() };
        send(&to, Message::Attach(attach)).await?;
        let mut client = FleetClient::new(channel.clone());
        let frames = client.converse(ReceiverStream::new(requests)).await;
        let frames = frames.map_err(io::Error::other)?.into_inner();
        let mut stream = Self { to, frames };
        stream.next().await?;
        Ok(stream)
    }

    async fn next(&mut self) -> io::Result<Frame> {
        let frame = timeout(FRAME_MAX, self.frames.message()).await?.map_err(io::Error::other)?;
        frame.and_then(|frame| frame.frame).ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
    }

    /// Has a turn.
    pub(super) async fn turn(&mut self, id: &str) -> io::Result<Said> {
        send(&self.to, submit(id, "go on")).await?;
        let mut said = Said::default();
        loop {
            match self.next().await? {
                Frame::UiEvent(event) => {
                    if let Some(Any::ChatTextPatch(patch)) = &event.payload {
                        said.add(&patch.text);
                    }
                }
                Frame::Done(_) => return Ok(said),
                Frame::Error(error) => return Err(io::Error::other(error.message)),
                Frame::Hello(_) | Frame::Snapshot(_) | Frame::BackendEvent(_) => {}
            }
        }
    }

    /// Sends so many deltas at a pace, until they are back.
    pub(super) async fn echo(mut self, deltas: usize, pace: Duration) -> io::Result<Said> {
        let to = self.to.clone();
        tokio::spawn(async move {
            let mut ticks = interval(pace);
            ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
            for number in 0..deltas {
                ticks.tick().await;
                if send(&to, submit("r", &text(number))).await.is_err() {
                    return;
                }
            }
        });
        let (mut said, mut missing) = (Said::default(), deltas);
        while missing > 0 {
            if let Frame::UiEvent(event) = self.next().await?
                && let Some(Any::ChatTextPatch(patch)) = &event.payload
            {
                said.add(&patch.text);
                missing -= 1;
            }
        }
        Ok(said)
    }
}

fn submit(id: &str, prompt: &str) -> Message {
    let submit =
        SubmitPromptRequest { prompt: prompt.to_owned(), ..SubmitPromptRequest::default() };
    let request = Some(Request::Submit(submit));
    Message::Request(RpcRequestLine { request_id: id.to_owned(), request, ..Default::default() })
}

async fn send(to: &mpsc::Sender<ConverseRequest>, message: Message) -> io::Result<()> {
    to.send(ConverseRequest { message: Some(message) }).await.map_err(io::Error::other)
}
