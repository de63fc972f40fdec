//! A client that reads what its stream was given.

use super::*;
use crate::protocol::any::Any;
use crate::protocol::proto::rpc::{HelloFrame, SnapshotFrame, UiEventFrame};
use crate::protocol::proto::session::Heartbeat;
use crate::serve::frame_log::Audience;
use crate::serve::stream::Frames;
use futures_util::{FutureExt, StreamExt};
use http::HeaderMap;
use std::time::Duration;
use tokio::sync::Notify;

/// A client of a conversation whose log has all frames from the first on.
fn client(
    session: &SessionId,
    is_own_only: bool,
    to: mpsc::Sender<Arc<Frame>>,
    link: Arc<Link>,
) -> Client {
    let attach = Attach {
        client: ClientId::fresh(),
        extensions: BTreeSet::new(),
        past: Past::Nothing,
        is_own_only,
        to,
        link,
        room: Arc::new(Semaphore::new(OPEN_MAX)),
        mode: OpenMode::Either,
        parent: Parent::of(&HeaderMap::new()),
    };
    let hello = wire::frame(session, None, Body::Hello(HelloFrame::default()));
    Client::new(attach, &hello, Ok(Position(0)))
}

/// A request that uses no extension.
fn asked(id: &RequestId) -> Asked {
    Asked { id: id.clone(), extensions: BTreeSet::new() }
}

/// A request whose first frame is the first one of the log.
fn ended(last: Vec<Arc<Frame>>, has_run: bool) -> Ended {
    Ended { first: Position(0), last, has_run }
}

/// A client with the stream that it reads.
struct Reader {
    client: Client,
    session: SessionId,
    stream: mpsc::Receiver<Arc<Frame>>,
}

impl Reader {
    /// Attaches to a conversation whose log has all frames from the first on.
    fn attach(is_own_only: bool) -> Self {
        let (to, stream) = mpsc::channel(OPEN_MAX);
        let link = Frames::new(Arc::new(Notify::new())).1.link();
        let session = SessionId::new("s").expect("an id");
        Self { client: client(&session, is_own_only, to, link), session, stream }
    }

    /// The frames of the log that the client is shown, in short, without hello.
    fn reads(&mut self, log: &FrameLog) -> Vec<String> {
        let served = self.client.serve(log, &self.session, Instant::now());
        assert_eq!(served, Served::Waiting);
        let mut shown = Vec::new();
        while let Ok(frame) = self.stream.try_recv() {
            match &frame.frame {
                Some(Body::Hello(_)) => {}
                Some(Body::Done(_)) => shown.push(format!("done {}", frame.request_id)),
                Some(Body::Snapshot(_)) => shown.push(format!("snapshot {}", frame.request_id)),
                Some(Body::UiEvent(event)) if event.ordinal > 0 => {
                    shown.push(event.ordinal.to_string());
                }
                _ => shown.push("heartbeat".to_owned()),
            }
        }
        shown
    }
}

#[test]
fn a_heartbeat_of_another_client_comes_after_the_done_of_the_request_for_it() {
    let mut log = FrameLog::default();
    let mut reader = Reader::attach(false);
    let (id, session) = (RequestId::new("enable").expect("an id"), reader.session.clone());
    let heartbeat = || {
        let payload: Option<Any> = Some(Heartbeat::default().into());
        let body = Body::UiEvent(UiEventFrame { payload, ..Default::default() });
        Arc::new(wire::frame(&session, None, body))
    };
    let done = Arc::new(wire::frame(&session, Some(&id), wire::done(Done::Ok)));
    let asked = || {
        let extensions = BTreeSet::from([Extension::Heartbeats, Extension::Compaction]);
        Asked { id: id.clone(), extensions }
    };

    log.push(heartbeat(), Audience::All);
    assert_eq!(reader.reads(&log), [""; 0], "it has not asked for any");
    reader.client.on_request(asked(), log.end());
    log.push(heartbeat(), Audience::All);
    assert_eq!(reader.reads(&log), [""; 0], "it has no answer yet");
    log.push(Arc::clone(&done), Audience::Askers);
    log.push(heartbeat(), Audience::All);
    assert_eq!(reader.reads(&log), ["done enable", "heartbeat"]);

    // The client loses its connection, and sends the request again.
    let mut reader = Reader::attach(false);
    assert_eq!(reader.reads(&log), [""; 0]);
    reader.client.on_resent_ended(asked(), &ended(vec![done], false), &log);
    log.push(heartbeat(), Audience::All);
    assert_eq!(reader.reads(&log), ["done enable", "heartbeat"]);
}

#[test]
fn a_body_that_is_sent_again_is_answered_with_each_frame_once() {
    let mut log = FrameLog::default();
    let mut reader = Reader::attach(true);
    let session = reader.session.clone();
    let [run, other] = ["run", "other"].map(|id| RequestId::new(id).expect("an id"));
    let event = |ordinal| {
        let body = Body::UiEvent(UiEventFrame { ordinal, ..Default::default() });
        Arc::new(wire::frame(&session, Some(&run), body))
    };
    let done = |id| Arc::new(wire::frame(&session, Some(id), wire::done(Done::Ok)));
    for ordinal in 1..=3 {
        log.push(event(ordinal), Audience::All);
    }
    // The client comes back after its run has begun, and its other request came in the middle of that.
    reader.client.on_resent_open(asked(&run), Position(0), &log);
    assert_eq!(reader.reads(&log), ["1", "2", "3"]);
    reader.client.on_resent_open(asked(&other), Position(1), &log);
    log.push(done(&other), Audience::Askers);
    assert_eq!(reader.reads(&log), ["done other"]);
    log.push(event(4), Audience::All);
    log.push(done(&run), Audience::All);
    let ended = ended(vec![done(&run)], true);
    assert_eq!(reader.client.on_resent_ended(asked(&run), &ended, &log), ReplayWith::Frames);
    assert_eq!(reader.reads(&log), ["4", "done run"]);
}

/// The frames are gone, and the snapshot has what they said.
#[test]
fn a_body_that_is_sent_again_when_its_frames_are_gone_is_answered_with_a_snapshot() {
    const TEXT_BYTES: usize = 300_000;
    let mut log = FrameLog::default();
    let mut reader = Reader::attach(true);
    let session = reader.session.clone();
    let [run, own] = ["run", "own"].map(|id| RequestId::new(id).expect("an id"));
    for ordinal in 1..=4 {
        let name = "x".repeat(TEXT_BYTES);
        let body = Body::UiEvent(UiEventFrame { ordinal, name, ..Default::default() });
        log.push(Arc::new(wire::frame(&session, Some(&run), body)), Audience::All);
    }
    let done = Arc::new(wire::frame(&session, Some(&run), wire::done(Done::Ok)));
    log.push(Arc::clone(&done), Audience::All);
    log.trim(None);
    reader.client.cursor = Cursor::At(log.end());
    assert!(!log.has(Position(0)));
    let ran = ended(vec![Arc::clone(&done)], true);
    assert_eq!(reader.client.on_resent_ended(asked(&run), &ran, &log), ReplayWith::Snapshot);
    reader.client.replay_after_snapshot(own.clone(), run.clone(), ran.last);
    assert_eq!(reader.reads(&log), [""; 0], "the snapshot is still to come");
    let snapshot = Body::Snapshot(SnapshotFrame::default());
    reader.client.finish_replay(own.as_str(), Some(wire::frame(&session, Some(&own), snapshot)));
    assert_eq!(reader.reads(&log), ["snapshot run", "done run"]);
    assert!(!reader.client.awaits_replay(own.as_str()) && reader.client.open.is_empty());
    // A request that has started no run says nothing of the conversation.
    let mut reader = Reader::attach(true);
    reader.client.cursor = Cursor::At(log.end());
    let ended = ended(vec![done], false);
    assert_eq!(reader.client.on_resent_ended(asked(&run), &ended, &log), ReplayWith::Frames);
    assert_eq!(reader.reads(&log), ["done run"]);
}

/// Each snapshot is as long as the conversation.
#[test]
fn requests_that_are_sent_again_together_are_answered_with_one_snapshot() {
    let mut log = FrameLog::default();
    let mut reader = Reader::attach(true);
    let session = reader.session.clone();
    let ids = ["one", "two", "three", "late", "own"];
    let [one, two, three, late, own] = ids.map(|id| RequestId::new(id).expect("an id"));
    let done = |id: &RequestId| Arc::new(wire::frame(&session, Some(id), wire::done(Done::Ok)));
    // Their frames are gone.
    let name = "x".repeat(1024 * 1024);
    let body = Body::UiEvent(UiEventFrame { ordinal: 1, name, ..Default::default() });
    log.push(Arc::new(wire::frame(&session, Some(&one), body)), Audience::All);
    for id in [&one, &two, &three] {
        log.push(done(id), Audience::All);
    }
    log.trim(None);
    assert!(!log.has(Position(0)));
    let sent_again = |reader: &mut Reader, id: &RequestId, log: &FrameLog| {
        reader.client.cursor = Cursor::At(log.end());
        reader.client.on_resent_ended(asked(id), &ended(vec![done(id)], true), log)
    };
    assert_eq!(sent_again(&mut reader, &one, &log), ReplayWith::Snapshot);
    reader.client.replay_after_snapshot(own.clone(), one.clone(), vec![done(&one)]);
    assert_eq!(sent_again(&mut reader, &two, &log), ReplayWith::Frames);
    assert_eq!(reader.reads(&log), [""; 0], "the snapshot is still to come");
    let snapshot = Body::Snapshot(SnapshotFrame::default());
    reader.client.finish_replay(own.as_str(), Some(wire::frame(&session, Some(&own), snapshot)));
    assert_eq!(reader.reads(&log), ["snapshot one", "done one", "done two"]);
    assert_eq!(sent_again(&mut reader, &three, &log), ReplayWith::Frames);
    assert_eq!(reader.reads(&log), ["done three"]);
    assert!(reader.client.open.is_empty() && reader.client.replays.is_empty());
    // The snapshot that the client has says nothing of a request that has ended since.
    log.push(done(&late), Audience::All);
    assert_eq!(sent_again(&mut reader, &late, &log), ReplayWith::Snapshot);
}

/// In a quiet conversation nothing follows the snapshot that would find the stream full.
#[test]
fn a_snapshot_that_is_not_taken_leaves_a_stream_unread() {
    let (log, requests) = (FrameLog::default(), RequestLog::default());
    let session = SessionId::new("s").expect("an id");
    let (to, mut frames) = Frames::new(Arc::new(Notify::new()));
    let mut client = client(&session, false, to, frames.link());
    let body = || Body::Snapshot(SnapshotFrame::default());
    let snapshot = Arc::new(wire::frame(&session, None, body()));
    let mut poll = || frames.next().now_or_never().is_some();
    let begin = Instant::now();
    let at = |seconds| begin + Duration::from_secs(seconds);
    let serve = |client: &mut Client, seconds| {
        assert_eq!(client.serve(&log, &session, at(seconds)), Served::Waiting);
        client.unread_since()
    };
    assert_eq!(serve(&mut client, 0), None);
    client.on_snapshot(Arc::clone(&snapshot), log.end(), &requests);
    assert_eq!(serve(&mut client, 1), Some(at(1)));
    assert!(poll() && poll(), "hello, and the snapshot");
    client.on_snapshot(snapshot, log.end(), &requests);
    assert_eq!(serve(&mut client, 2), Some(at(1)), "the snapshot is being written");
    assert!(poll(), "the other snapshot");
    assert_eq!(serve(&mut client, 3), Some(at(3)), "the first one was written");
    assert!(!poll());
    assert_eq!(serve(&mut client, 4), None);
}
