//! Conversations of a node, as clients of it meet them.

use crate::frames::{Frame, finished_text, submit};
use crate::process::eventually;
use crate::provider::{Provider, Step, says};
use crate::serve_node::{LISTEN, Node, Talk, attach, wait, with_provider};
use crate::serve_watched::metrics;
use crate::server::{Folder, KEY, Launch, Server};
use crate::store::{kill, stored};
use crate::tools::{self, run, text};
use duologue::protocol::proto::fleet::{Attach, ListRequest, Opening};
use rustix::process::Signal;
use serde_json::json;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use tonic::Code;

fn names(frames: &[Frame], id: &str) -> Vec<String> {
    let of_request = frames.iter().filter(|frame| frame.id() == id);
    let name = |frame: &Frame| match frame.event() {
        Some(name) => name.to_owned(),
        None => {
            frame.0.as_object().expect("an object").keys().next_back().expect("a member").clone()
        }
    };
    of_request.map(name).collect()
}

fn code<T>(refused: Result<T, tonic::Status>) -> Code {
    refused.err().map_or(Code::Ok, |status| status.code())
}

#[test]
fn a_conversation_is_that_of_standard_input() {
    let mut stdin = Server::start(&["--session-id", "s"]);
    assert_eq!(stdin.turn("r", "hello there"), "ok");
    let expected = stdin.finish().frames;

    let node = Node::start(&[]);
    let mut talk = node.attach("s");
    talk.send(submit("r", "hello there"));
    assert_eq!(talk.wait_done("r"), "ok");
    talk.send(r#"{"requestId":"q","sessionId":"other","snapshot":{}}"#);
    assert_eq!(talk.wait_done("q"), "failed");
    let frames = talk.finish();
    assert_eq!(names(&frames, "r"), names(&expected, "r"));
    assert_eq!(finished_text(&frames, "r"), finished_text(&expected, "r"));
    let mismatch = frames.iter().find(|frame| frame.error() == Some("session_mismatch"));
    let mismatch = mismatch.expect("an error").0.to_string();
    assert!(mismatch.contains("in a stream that attaches to") && !mismatch.contains("process"));
    assert_eq!(frames[0].text("/sessionId"), "s");
}

#[test]
fn clients_of_one_conversation_see_its_events_and_the_answers_to_their_own_requests() {
    let node = Node::start(&[]);
    let (mut one, mut other) = (node.attach("s"), node.attach("s"));
    one.send(submit("r", "hello"));
    assert_eq!(one.wait_done("r"), "ok");
    assert_eq!(other.wait_done("r"), "ok");
    assert_eq!(finished_text(&other.frames(), "r"), "Turn 1. You said: hello");
    other.send(r#"{"requestId":"mine","snapshot":{}}"#);
    assert_eq!(other.wait_done("mine"), "ok");
    one.send(submit("r2", "again"));
    assert_eq!(one.wait_done("r2"), "ok");
    assert!(!one.frames().iter().any(|frame| frame.id() == "mine"));
    one.finish();
}

#[test]
fn an_extension_is_seen_by_those_who_asked_for_it() {
    let node = Node::start(&[]);
    let mut strict = node.attach("s");
    let extensions = vec!["usage".to_owned()];
    let mut other = node.try_attach(Attach { extensions, ..attach("s") }).expect("attached");
    assert!(other.next().expect("hello").expect("hello").0.to_string().contains("usage"));
    other.send(submit("r", "hello"));
    assert_eq!(other.wait_done("r"), "ok");
    assert!(other.frames().iter().any(|frame| frame.is_event("UsageTotals")));
    strict.send(submit("r2", "hello"));
    assert_eq!(strict.wait_done("r2"), "ok");
    let frames = strict.finish();
    assert!(!frames.iter().any(|frame| frame.0.to_string().contains("duologue.session")));
    let unknown = Attach { extensions: vec!["no-such".to_owned()], ..attach("s") };
    assert_eq!(code(node.try_attach(unknown)), Code::InvalidArgument);
}

#[test]
fn an_enable_that_is_refused_changes_nothing_for_its_client() {
    let node = Node::start(&[]);
    let mut talk = node.attach("s");
    talk.send(r#"{"requestId":"q","snapshot":{}}"#);
    assert_eq!(talk.wait_done("q"), "ok");
    let member = r#""enable":{"events":["ChatRunFailed"],"extensions":["usage"]}"#;
    for (id, other, code) in
        [("e", r#""sessionId":"other","#, "session_mismatch"), ("q", "", "request_id_reused")]
    {
        talk.send(format!(r#"{{"requestId":"{id}",{other}{member}}}"#));
        assert_eq!(talk.wait_done(id), "failed");
        assert_eq!(talk.frames().iter().rev().find_map(Frame::error), Some(code));
    }
    // The extension goes on for another client.
    let extensions = vec!["usage".to_owned()];
    let _other = node.try_attach(Attach { extensions, ..attach("s") }).expect("attached");
    talk.send(submit("r", "hello"));
    assert_eq!(talk.wait_done("r"), "ok");
    let frames = talk.frames();
    assert!(frames.iter().any(|frame| frame.is_event("ChatRunFinished")), "{frames:?}");
    assert!(!frames.iter().any(|frame| frame.is_event("UsageTotals")), "{frames:?}");
}

#[test]
fn a_run_outlives_its_client_and_is_shown_from_where_it_left() {
    let provider = Provider::start(vec![vec![
        Step::Text("first ".to_owned()),
        Step::Gate,
        Step::Text("second".to_owned()),
        Step::Finish("stop", None),
        Step::Done,
    ]]);
    let node = with_provider(&provider, &[]);
    let mut gone = node.attach("s");
    gone.send(submit("r", "hello"));
    let last = gone.wait_event("ChatTextPatch").ordinal().expect("an event");
    drop(gone);
    eventually("the client has gone", || (node.info().clients == 0).then_some(()));
    assert_eq!(node.info().runs, 1);
    provider.open_gate();
    let since = Attach { since_ordinal: Some(last), ..attach("s") };
    let mut back = node.try_attach(since).expect("attached");
    // A client that does not know whether its request arrived sends it again.
    back.send(submit("r", "hello"));
    assert_eq!(back.wait_done("r"), "ok");
    let frames = back.frames();
    assert!(!frames.iter().any(|frame| frame.ordinal().is_some_and(|at| at <= last)));
    assert!(frames.iter().any(|frame| frame.payload("text") == "second"));
    assert_eq!(finished_text(&frames, "r"), "first second");
    let ordinals: Vec<_> = frames.iter().filter_map(Frame::ordinal).collect();
    assert!(ordinals.windows(2).all(|pair| pair[1] == pair[0] + 1), "{ordinals:?}");
    assert_eq!(ordinals.first(), Some(&(last + 1)), "nothing is missing");
    assert_eq!(frames.iter().filter(|frame| frame.ends("r")).count(), 1);
    assert_eq!(provider.requests(), 1);
}

/// The snapshot at the end of each run is as long as the conversation.
#[test]
fn what_was_missed_of_a_long_conversation_is_shown_by_its_events() {
    const PROMPT_BYTES: usize = 1024 * 1024;
    let node = Node::start(&[]);
    let mut talk = node.attach("s");
    talk.send(submit("r", &"x".repeat(PROMPT_BYTES)));
    assert_eq!(talk.wait_done("r"), "ok");
    talk.send(submit("r2", "again"));
    assert_eq!(talk.wait_done("r2"), "ok");
    let newest = talk.frames().iter().filter_map(Frame::ordinal).max().expect("events");
    talk.finish();
    let since = Attach { since_ordinal: Some(newest - 3), ..attach("s") };
    let mut talk = node.try_attach(since).expect("attached");
    let first = talk.wait("what was missed", |it| it.ordinal().is_some() || it.is_snapshot());
    assert_eq!(first.ordinal(), Some(newest - 2));
}

/// The default limit of gRPC clients is a message of 4 MiB.
#[test]
fn a_run_in_a_long_conversation_ends_with_what_it_added() {
    const PROMPT_BYTES: usize = 1200 * 1024;
    let folder = Folder::new();
    let node = Node::start(&["--store", &folder.name("store.db")]);
    let mut talk = node.attach("s");
    for (id, prompt) in [("r", "x".repeat(PROMPT_BYTES)), ("r2", "again".to_owned())] {
        talk.send(submit(id, &prompt));
        assert_eq!(talk.wait_done(id), "ok");
    }
    let frames = talk.frames();
    let last = frames.iter().rfind(|it| it.is_snapshot() && it.id() == "r2").expect("a snapshot");
    assert_eq!(last.messages()[0], ("user", "again"));
    talk.send(r#"{"requestId":"q","snapshot":{}}"#);
    assert_eq!(talk.wait_done("q"), "ok");
    let frames = talk.finish();
    let whole = frames.iter().find(|it| it.is_snapshot() && it.id() == "q").expect("a snapshot");
    assert_eq!(whole.messages().len(), 4);
}

#[test]
fn a_request_is_run_once_also_after_a_restart() {
    let provider = Provider::start(vec![says("the answer")]);
    let folder = Folder::new();
    let store = folder.name("store.db");
    let again = |node: &Node| {
        let mut talk = node.attach("s");
        talk.send(submit("r", "hello"));
        assert_eq!(talk.wait_done("r"), "ok");
        let frames = talk.finish();
        let shows = |frame: &Frame| frame.messages().iter().any(|it| it.1 == "the answer");
        assert!(frames.iter().any(shows));
        assert_eq!(frames.iter().filter(|frame| frame.ends("r")).count(), 1);
    };
    let mut node = with_provider(&provider, &["--store", &store]);
    again(&node);
    again(&node);
    let mut other = node.attach("s");
    other.send(submit("r", "something else"));
    assert_eq!(other.wait_done("r"), "failed");
    assert!(other.frames().iter().any(|frame| frame.error() == Some("request_id_reused")));
    drop(other);
    node.server.signal(Signal::TERM);
    node.server.wait_end();
    again(&with_provider(&provider, &["--store", &store]));
    assert_eq!(provider.requests(), 1);
}

/// Each of them has its own answer, and takes nothing from the request that has the id.
#[test]
fn a_stream_takes_any_number_of_requests_with_ids_of_others() {
    // More than a client may have without a done.
    const REUSED: usize = 70;
    let gated =
        vec![Step::Gate, Step::Text("hello".into()), Step::Finish("stop", None), Step::Done];
    let provider = Provider::start(vec![gated]);
    let node = with_provider(&provider, &[]);
    let mut talk = node.attach("s");
    talk.send(submit("r", "hello"));
    talk.wait_event("ChatRunStarted");
    for _ in 0..REUSED {
        talk.send(submit("r", "something else"));
        assert_eq!(talk.wait_done("r"), "failed");
    }
    talk.send(r#"{"requestId":"q","snapshot":{}}"#);
    assert_eq!(talk.wait_done("q"), "ok");
    talk.close();
    // The run that has the id is still waited for.
    provider.open_gate();
    assert_eq!(talk.wait_done("r"), "ok");
    talk.wait_end().expect("the stream ends well");
}

#[test]
fn an_idle_conversation_leaves_memory_and_comes_back() {
    let folder = Folder::new();
    let node = Node::start(&["--store", &folder.name("store.db"), "--idle-ms", "1"]);
    let mut talk = node.attach("s");
    talk.send(submit("r", "hello"));
    assert_eq!(talk.wait_done("r"), "ok");
    talk.finish();
    eventually("it left memory", || (node.info().conversations == 0).then_some(()));
    let resume = Attach { opening: Opening::Resume.into(), ..attach("s") };
    let mut talk = node.try_attach(resume).expect("attached");
    let snapshot = talk.wait("a snapshot", Frame::is_snapshot);
    assert_eq!(snapshot.messages()[1], ("assistant", "Turn 1. You said: hello"));
    talk.send(submit("r2", "again"));
    assert_eq!(talk.wait_done("r2"), "ok");
    assert!(finished_text(&talk.frames(), "r2").contains("Turn 2"));
    talk.finish();
    // The past is not in memory any more: it is shown as a whole.
    eventually("it left memory", || (node.info().conversations == 0).then_some(()));
    let since = Attach { since_ordinal: Some(1), ..attach("s") };
    let mut talk = node.try_attach(since).expect("attached");
    assert_eq!(talk.wait("a snapshot", Frame::is_snapshot).messages().len(), 4);
}

#[test]
fn a_run_without_clients_is_stopped_after_a_while() {
    let provider = Provider::start(vec![vec![Step::Text("a part".to_owned()), Step::Stall]]);
    let node = with_provider(&provider, &["--detached-ms", "1"]);
    let mut talk = node.attach("s");
    talk.send(submit("r", "hello"));
    talk.wait_event("ChatTextPatch");
    assert_eq!(node.info().runs, 1);
    drop(talk);
    eventually("the run was stopped", || (node.info().runs == 0).then_some(()));
    let mut talk = node.attach("s");
    let snapshot = talk.wait("a snapshot", Frame::is_snapshot);
    assert_eq!(snapshot.messages()[1].1, "a part");
    assert!(snapshot.0.to_string().contains("stopped"));
}

/// Also where each of its frames is large: no snapshot takes their place.
#[test]
fn the_engine_waits_for_the_only_client() {
    // More than a stream takes that is not read.
    const PATCHES: usize = 700;
    // With no frame in between.
    const LOOKS: usize = 20;
    let text = "x".repeat(8_000);
    let end = [Step::Finish("stop", None), Step::Done];
    let answer = (0..PATCHES).map(|_| Step::Text(text.clone())).chain(end).collect();
    let provider = Provider::start(vec![answer]);
    let node = with_provider(&provider, &["--final-snapshot", "none"]);
    let mut talk = node.attach("s");
    talk.send(submit("r", "hello"));
    let (mut shown, mut looks) = (0.0, 0);
    eventually("the client is behind, and the engine waits", || {
        let found = metrics(&node);
        let before = std::mem::replace(&mut shown, found["duologue_frames_total"]);
        let is_waiting = shown == before && found["duologue_clients_behind"] == 1.0;
        looks = if is_waiting { looks + 1 } else { 0 };
        (looks == LOOKS).then_some(())
    });
    assert_eq!(talk.wait_done("r"), "ok");
    let frames = talk.finish();
    assert_eq!(frames.iter().filter(|frame| frame.is_snapshot()).count(), 1, "that of the attach");
    let patches = frames.iter().filter(|frame| frame.is_event("ChatTextPatch"));
    let bytes: usize = patches.map(|frame| frame.payload("text").len()).sum();
    assert_eq!(bytes, PATCHES * text.len());
}

#[test]
fn a_client_that_does_not_read_slows_nobody_else() {
    // More than a stream takes that is not read.
    let flood = vec![Step::Flood(4 * 1024 * 1024), Step::Finish("stop", None), Step::Done];
    let provider = Provider::start(vec![flood, says("short")]);
    let node = with_provider(&provider, &["--final-snapshot", "none"]);
    let unread = node.attach("s");
    let mut reader = node.attach("s");
    reader.send(submit("r", "hello"));
    assert_eq!(reader.wait_done("r"), "ok");
    let mut other = node.attach("t");
    other.send(submit("r", "hello"));
    assert_eq!(other.wait_done("r"), "ok");
    // It was too slow for what is kept, and gets the whole instead.
    let mut late = unread;
    late.send(r#"{"requestId":"q","snapshot":{}}"#);
    assert_eq!(late.wait_done("q"), "ok");
    let snapshots = late.frames().into_iter().filter(Frame::is_snapshot).count();
    assert!(snapshots >= 3, "at first, as it was too slow, and the one it asked for: {snapshots}");
}

#[test]
fn a_client_that_is_alone_slows_its_provider() {
    let provider = Provider::start(vec![vec![Step::Flood(64 * 1024 * 1024), Step::Done]]);
    let node = with_provider(&provider, &[]);
    let mut talk = node.attach("s");
    talk.send(submit("r", "hello"));
    provider.wait_blocked();
    let text = |talk: &mut Talk| talk.wait_event("ChatTextPatch").payload("offset").to_owned();
    assert_ne!(text(&mut talk), text(&mut talk), "it goes on where it was");
}

#[test]
fn a_stream_ends_with_the_requests_of_its_client() {
    let gated =
        vec![Step::Gate, Step::Text("hello".into()), Step::Finish("stop", None), Step::Done];
    let provider = Provider::start(vec![says("hello"), gated, says("hello")]);
    let node = with_provider(&provider, &[]);
    let mut talk = node.attach("s");
    talk.send(submit("r", "hello"));
    // Its side is closed while the run goes on.
    assert!(talk.finish().iter().any(|frame| frame.ends("r")));
    let mut talk = node.attach("s");
    talk.send(submit("r2", "hello"));
    talk.send(r#"{"requestId":"end","shutdown":{}}"#);
    talk.send(submit("late", "hello"));
    // The run ends once it was refused.
    talk.wait("a refusal", |it| it.id() == "late" && it.error() == Some("shutting_down"));
    provider.open_gate();
    talk.wait_end().expect("the stream ends");
    assert_eq!(talk.frames().last().expect("a frame").done(), Some("shutdown"));
    // The conversation goes on for others.
    let mut talk = node.attach("s");
    talk.send(submit("r3", "hello"));
    assert_eq!(talk.wait_done("r3"), "ok");
}

#[test]
fn a_conversation_begins_or_goes_on_as_the_client_says() {
    let folder = Folder::new();
    let node = Node::start(&["--store", &folder.name("store.db"), "--idle-ms", "1"]);
    let with = |opening: Opening| Attach { opening: opening.into(), ..attach("s") };
    assert_eq!(code(node.try_attach(with(Opening::Resume))), Code::NotFound);
    let mut talk = node.try_attach(with(Opening::Create)).expect("attached");
    talk.send(submit("r", "hello"));
    assert_eq!(talk.wait_done("r"), "ok");
    assert_eq!(code(node.try_attach(with(Opening::Create))), Code::AlreadyExists, "in memory");
    drop(talk);
    eventually("it left memory", || (node.info().conversations == 0).then_some(()));
    assert_eq!(code(node.try_attach(with(Opening::Create))), Code::AlreadyExists, "in the store");
    let mut new = node.attach("");
    let hello = new.next().expect("hello").expect("hello");
    assert!(hello.text("/sessionId").starts_with("session-"));
}

#[test]
fn a_session_that_another_process_holds_is_refused() {
    let folder = Folder::new();
    let store = folder.name("store.db");
    let mut holder = Server::start(&["--store", &store, "--session-id", "s"]);
    assert_eq!(holder.turn("r", "hello"), "ok");
    let node = Node::start(&["--store", &store]);
    let refused = node.try_attach(attach("s")).err().expect("refused");
    assert_eq!(refused.code(), Code::Aborted);
    assert!(refused.message().contains("another process holds the session"), "{refused}");
    holder.finish();
    node.attach("s");
}

/// While a session is waited for, nobody can attach to its conversation: that nobody has is no reason to leave.
#[test]
fn a_session_that_is_opened_late_is_held_for_whoever_waits_for_it() {
    let folder = Folder::new();
    let store = folder.name("store.db");
    // It takes longer than a conversation without clients stays.
    let args = ["--store", &store, "--session-id", "s", "--echo-delay-ms", "1000"];
    let mut holder = Server::start(&args);
    holder.send(submit("r", "one two three four five"));
    holder.wait_event("ChatTextPatch");
    let node = Node::start(&["--store", &store, "--lock-wait-ms", "60000", "--idle-ms", "1"]);
    std::thread::scope(|scope| {
        let late = scope.spawn(|| node.attach("s"));
        holder.wait_done("r");
        holder.finish();
        let mut talk = late.join().expect("it is attached");
        talk.send(submit("r2", "again"));
        assert_eq!(talk.wait_done("r2"), "ok");
    });
}

/// A client that wants another opening than the one that has it opened is not refused for that.
#[test]
fn clients_that_come_while_a_conversation_is_opened_get_what_they_want() {
    let folder = Folder::new();
    let store = folder.name("store.db");
    let mut holder = Server::start(&["--store", &store, "--session-id", "s"]);
    assert_eq!(holder.turn("r", "hello"), "ok");
    let node = Node::start(&["--store", &store, "--lock-wait-ms", "60000"]);
    let waiting = |count: f64| {
        eventually("it waits", || {
            (metrics(&node)["duologue_requests_waiting"] == count).then_some(())
        });
    };
    let attached =
        |opening: Opening| code(node.try_attach(Attach { opening: opening.into(), ..attach("s") }));
    std::thread::scope(|scope| {
        let create = scope.spawn(|| attached(Opening::Create));
        waiting(1.0);
        let either = scope.spawn(|| attached(Opening::Either));
        waiting(2.0);
        holder.finish();
        assert_eq!(create.join().expect("an answer"), Code::AlreadyExists);
        assert_eq!(either.join().expect("an answer"), Code::Ok);
    });
}

#[test]
fn the_node_is_left_in_order() {
    let provider = Provider::start(vec![vec![
        Step::Text("a part".to_owned()),
        Step::Gate,
        Step::Finish("stop", None),
        Step::Done,
    ]]);
    let mut node = with_provider(&provider, &["--log-level", "info"]);
    let mut idle = node.attach("idle");
    let mut talk = node.attach("s");
    talk.send(submit("r", "hello"));
    talk.wait_event("ChatTextPatch");
    node.server.signal(Signal::TERM);
    assert_eq!(code(idle.wait_end()), Code::Unavailable);
    // That files are read again ends nothing.
    node.server.signal(Signal::HUP);
    node.server.wait_log("read again");
    provider.open_gate();
    assert_eq!(talk.wait_done("r"), "ok");
    assert_eq!(code(talk.wait_end()), Code::Unavailable);
    // Also those of clients that have left their side open.
    node.server.wait_log("all connections have ended");
    assert_eq!(node.server.exit_status().code(), Some(0));
}

/// A file is looked at before the node listens. A database may come later, so it is only warned of.
#[test]
fn a_node_does_not_begin_with_a_file_that_can_never_be_a_store() {
    let folder = Folder::new();
    let (directory, prose) = (folder.name("directory"), folder.name("prose"));
    fs::create_dir(&directory).expect("a folder");
    fs::write(&prose, "no database, and longer than the header of one is. ".repeat(100))
        .expect("a file");
    for (store, why) in [(&directory, "it is a folder"), (&prose, "is no store")] {
        let args = [&["serve", "--engine", "echo", "--store", store], LISTEN].concat();
        let mut server = Launch::new(&args).start();
        assert_eq!(server.exit_status().code(), Some(2), "{store}");
        server.wait_log(why);
        assert!(server.lines().is_empty(), "it does not listen: {store}");
    }
    let node = Node::start(&["--store", "postgres://ann@127.0.0.1:1/x"]);
    node.server.wait_log("the store postgres://127.0.0.1:1/x can't be reached");
}

/// A loss of power has cut the log of one store, and the other one can only be read.
#[test]
fn a_node_begins_with_a_store_that_can_not_be_used_yet() {
    let folder = Folder::new();
    let mut server = stored(&folder, &[]).start();
    assert_eq!(server.turn("r1", "one"), "ok");
    kill(server);
    let log = fs::OpenOptions::new().write(true).open(folder.path("store-wal")).expect("a log");
    let length = log.metadata().expect("a log").len();
    log.set_len(length - 100).expect("our file");
    let node = Node::start(&["--store", &folder.name("store")]);
    node.server.wait_log("ends in the middle of a page");
    // Root may write it.
    if rustix::process::geteuid().is_root() {
        return;
    }
    let folder = Folder::new();
    let mut server = stored(&folder, &[]).start();
    assert_eq!(server.turn("r1", "one"), "ok");
    server.finish();
    fs::set_permissions(folder.path("store"), fs::Permissions::from_mode(0o444)).expect("our file");
    let node = Node::start(&["--store", &folder.name("store")]);
    node.server.wait_log("can't be written");
    let mut client = node.client();
    let listed = wait(client.list(ListRequest::default())).expect("a list").into_inner();
    assert_eq!(listed.sessions.len(), 1);
}

#[test]
fn a_run_that_outlasts_the_drain_is_stopped() {
    let provider = Provider::start(vec![vec![Step::Text("a part".to_owned()), Step::Stall]]);
    let mut node = with_provider(&provider, &["--drain-ms", "1"]);
    let mut talk = node.attach("s");
    talk.send(submit("r", "hello"));
    talk.wait_event("ChatTextPatch");
    node.server.signal(Signal::TERM);
    assert_eq!(talk.wait_done("r"), "stopped");
    assert_eq!(node.server.exit_status().code(), Some(0));
}

#[test]
fn a_node_goes_on_after_a_hangup_and_its_help_says_nothing_else() {
    let node = Node::start(&["--log-level", "info"]);
    node.server.signal(Signal::HUP);
    node.server.wait_log("read again");
    node.attach("s");
    let help = run(&["serve", "--help"], b"");
    let (_, statuses) = text(&help.stdout).split_once("Exit status:").expect("the statuses");
    assert!(statuses.contains("SIGTERM") && !statuses.contains("SIGHUP"), "{statuses}");
    let manifest = tools::json(&run(&["--manifest"], b""));
    let commands = manifest["commands"].as_array().expect("commands");
    let serve = commands.iter().find(|it| it["name"] == "serve").expect("the command");
    let codes = serve["exit_codes"].as_array().expect("statuses").iter();
    assert_eq!(codes.map(|it| &it["code"]).collect::<Vec<_>>(), [0, 2, 70]);
}

#[test]
fn no_path_and_no_key_of_a_client_reaches_the_node() {
    let node = Node::start(&[]);
    let mut talk = node.attach("s");
    talk.send(
        r#"{"requestId":"p","submit":{"prompt":"read","attachments":[{"url":"/etc/hostname"}]}}"#,
    );
    assert_eq!(talk.wait_done("p"), "failed");
    talk.send(
        r#"{"requestId":"h","submit":{"prompt":"hi","settings":{"extra_headers":{"authorization":"x"}}}}"#,
    );
    assert_eq!(talk.wait_done("h"), "failed");
    let errors: Vec<_> =
        talk.frames().iter().filter_map(|it| it.error().map(str::to_owned)).collect();
    assert_eq!(errors, ["invalid_attachment", "invalid_settings"]);
}

/// The addresses and keys of other engines are those of the node's own environment.
#[test]
fn a_client_chooses_no_engine_that_is_not_offered() {
    let (provider, local) = (Provider::start(vec![says("hello")]), Provider::start(Vec::new()));
    let launch = |more: &[&str]| {
        let base_url = provider.base_url();
        let engine = ["serve", "--engine", "openai", "--model", "m", "--base-url", &base_url];
        let launch = Launch::new(&[&engine, LISTEN, more].concat());
        let launch = launch
            .secret("DUOLOGUE_API_KEY", KEY)
            .env("OLLAMA_HOST", format!("http://{}", local.address()));
        Node::launch(launch)
    };
    let choose = |engine: &str| {
        let mut settings = json!({ "engine": engine });
        if engine != "echo" {
            settings["model"] = json!("m");
        }
        let submit = json!({ "prompt": "hi", "settings": settings });
        json!({ "requestId": engine, "submit": submit }).to_string()
    };
    let node = launch(&[]);
    let mut talk = node.attach("s");
    for engine in ["ollama", "anthropic", "responses", "echo"] {
        talk.send(choose(engine));
        assert_eq!(talk.wait_done(engine), "failed");
    }
    assert!(talk.frames().iter().all(|it| it.error().is_none_or(|it| it == "invalid_settings")));
    assert_eq!(local.connections(), 0);
    talk.send(choose("openai"));
    assert_eq!(talk.wait_done("openai"), "ok");
    assert_eq!(provider.requests(), 1);
    // What the operator offers can be chosen.
    let node = launch(&["--engines", "echo,gemini"]);
    let mut talk = node.attach("s");
    talk.send(choose("echo"));
    assert_eq!(talk.wait_done("echo"), "ok");
    talk.send(choose("ollama"));
    assert_eq!(talk.wait_done("ollama"), "failed");
}

#[test]
fn a_node_says_that_it_is_well() {
    use tonic_health::pb::health_check_response::ServingStatus;
    use tonic_health::pb::{HealthCheckRequest, health_client::HealthClient};
    let node = Node::start(&[]);
    let mut health = HealthClient::new(node.channel());
    let request = HealthCheckRequest { service: "duologue.fleet.v1.Fleet".to_owned() };
    let answer = wait(async move { health.check(request).await }).expect("an answer");
    assert_eq!(answer.into_inner().status(), ServingStatus::Serving);
    let info = node.info();
    assert_eq!((info.server.as_str(), info.draining), ("duologue", false));
    assert_eq!(info.protocol, "pinocchio.chatapp.rpc.v1");
}
