//! What becomes of clients that want more than they may have.

use crate::client_tools::declare;
use crate::frames::{Frame, submit};
use crate::process::eventually;
use crate::provider::{Provider, Step, says};
use crate::serve_node::{LISTEN, Node, attach, attach_to, http, wait, with_provider};
use crate::serve_tenants::line;
use crate::serve_watched::metrics;
use crate::server::{Folder, KEY, Launch};
use duologue::protocol::proto::fleet::Attach;
use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};
use tonic::Code;

/// Requests of which a rate of one a second does not take all, however slow the machine is.
const MANY: usize = 100;

/// Sends a request; gives the status, the header `Retry-After` and the body.
fn call(node: &Node, path: &str, token: &str, body: Option<&str>) -> (u16, Option<u64>, String) {
    let url = format!("http://{}{path}", node.address);
    wait(async {
        let client = http();
        let request = match body {
            None => client.get(url),
            Some(body) => client.post(url).body(body.to_owned()),
        };
        let response = request.bearer_auth(token).send().await.expect("an answer");
        let after = response.headers().get("retry-after").cloned();
        let after = after.map(|it| it.to_str().expect("a text").parse().expect("seconds"));
        (response.status().as_u16(), after, response.text().await.expect("a body"))
    })
}

#[test]
fn a_tenant_sends_no_more_than_its_rate() {
    let folder = Folder::new();
    let tenants = folder.name("tenants");
    let lines = line("ann", "token-of-ann") + &line("bob", "token-of-bob");
    fs::write(&tenants, lines).expect("a file");
    let node = Node::start(&["--tenants", &tenants, "--tenant-rate", "1"]);
    let mut talk = node.attach_with(Some("token-of-ann"), attach("s")).expect("attached");
    let ids: Vec<_> = (0..MANY).map(|number| format!("q{number}")).collect();
    for id in &ids {
        talk.send(format!(r#"{{"requestId":"{id}","snapshot":{{}}}}"#));
        talk.wait_done(id);
    }
    let frames = talk.frames();
    let refused: Vec<_> =
        frames.iter().filter(|it| it.error() == Some("resource_exhausted")).collect();
    assert!(!refused.is_empty());
    assert!(refused[0].0.to_string().contains("--tenant-rate"), "{:?}", refused[0]);
    // One that was refused may come again.
    let again = refused[0].id().to_owned();
    eventually("it is taken", || {
        talk.send(format!(r#"{{"requestId":"{again}","snapshot":{{}}}}"#));
        (talk.wait_done(&again) == "ok").then_some(())
    });
    let (_, after, body) = (0..MANY)
        .map(|_| call(&node, "/v1/info", "token-of-ann", None))
        .find(|(status, ..)| *status == 429)
        .expect("a refusal");
    assert!(after.is_some_and(|after| after >= 1) && body.contains("--tenant-rate"), "{body}");
    let two = "{\"snapshot\":{}}\n".repeat(MANY);
    let refused = (0..MANY)
        .map(|_| call(&node, "/v1/sessions/s/requests", "token-of-ann", Some(&two)))
        .find(|(status, ..)| *status == 429);
    assert!(refused.expect("a refusal").2.contains("nothing was done"));
    let mut calls = (0..MANY).map(|_| node.attach_with(Some("token-of-ann"), attach("s")).err());
    let status = calls.find_map(|refused| refused).expect("a refusal");
    assert_eq!(status.code(), Code::ResourceExhausted);
    assert!(status.metadata().contains_key("grpc-retry-pushback-ms"), "{status:?}");
    // Nobody else is slowed.
    assert_eq!(call(&node, "/v1/info", "token-of-bob", None).0, 200);
}

/// A client that has lost its connection sends again what has no done yet.
#[test]
fn a_request_that_is_sent_again_beyond_a_rate_has_one_done() {
    let gated =
        vec![Step::Text("a part".to_owned()), Step::Gate, Step::Finish("stop", None), Step::Done];
    let provider = Provider::start(vec![gated]);
    let node = with_provider(&provider, &["--tenant-rate", "3"]);
    let mut lost = node.attach("s");
    lost.send(submit("r", "hello"));
    let last = lost.wait_event("ChatTextPatch").ordinal();
    drop(lost);
    let since = Attach { since_ordinal: last, ..attach("s") };
    let mut talk = node.try_attach(since).expect("attached");
    let mut refused = 0;
    for number in 0..MANY {
        let id = format!("q{number}");
        talk.send(format!(r#"{{"requestId":"{id}","snapshot":{{}}}}"#));
        talk.send(submit("r", "hello"));
        refused += usize::from(talk.wait_done(&id) == "failed");
    }
    assert!(refused > 0);
    provider.open_gate();
    assert_eq!(talk.wait_done("r"), "ok");
    talk.close();
    talk.wait_end().expect("the stream ends well");
    assert_eq!(talk.frames().iter().filter(|frame| frame.ends("r")).count(), 1);
    assert_eq!(provider.requests(), 1);
}

#[test]
fn a_body_with_more_requests_than_a_rate_is_taken() {
    let node = Node::start(&["--tenant-rate", "3"]);
    let nine = "{\"snapshot\":{}}\n".repeat(9);
    let (status, _, body) = call(&node, "/v1/sessions/s/requests", "", Some(&nine));
    assert_eq!(status, 200, "{body}");
    assert_eq!(body.matches("\"done\":").count(), 9, "{body}");
}

/// What the tenant sends after it would wait for as long as the rate takes.
#[test]
fn a_body_with_requests_for_more_than_a_minute_of_a_rate_is_refused() {
    let node = Node::start(&["--tenant-rate", "10"]);
    let large = "{\"snapshot\":{}}\n".repeat(10 * 61);
    let (status, _, body) = call(&node, "/v1/sessions/s/requests", "", Some(&large));
    assert_eq!(status, 413, "{body}");
    assert!(body.contains("--tenant-rate") && body.contains("in parts"), "{body}");
    assert_eq!(call(&node, "/v1/info", "", None).0, 200, "nothing was counted");
}

#[test]
fn a_body_whose_conversation_can_not_be_attached_to_counts_as_its_call_alone() {
    const RATE: usize = 20;
    let node = Node::start(&["--tenant-rate", &RATE.to_string()]);
    let post = |path: &str, lines: usize| {
        call(&node, path, "", Some(&"{\"snapshot\":{}}\n".repeat(lines))).0
    };
    assert_eq!(post("/v1/sessions/s/requests", 1), 200);
    for _ in 0..3 {
        assert_eq!(post("/v1/sessions/s/requests?opening=create", RATE - 5), 409);
    }
}

/// Sends a body again as often as it is refused because of a limit.
fn send_again(node: &Node, path: &str, body: &str) {
    eventually("it is taken", || {
        let (status, _, answer) = call(node, path, "", Some(body));
        assert!(status == 200 || status == 429, "{status}: {answer}");
        (status == 200).then_some(())
    });
}

/// Also one that is to begin its conversation: nothing was done for it. Each call counts, so that one that comes again
/// sooner than it is told is refused again.
#[test]
fn a_body_beyond_a_rate_may_come_again_when_it_is_told() {
    const CALLS: usize = 10;
    let node = Node::start(&["--tenant-rate", "20"]);
    // With the calls before it more than come at once.
    let body = "{\"snapshot\":{}}\n".repeat(19);
    let mut number = 0;
    let (refused, after) = eventually("a body is refused", || {
        number += 1;
        for _ in 0..CALLS {
            call(&node, "/v1/info", "", None);
        }
        let path = format!("/v1/sessions/s{number}/requests?opening=create");
        let (status, after, _) = call(&node, &path, "", Some(&body));
        (status == 429).then(|| (path, after.expect("a time")))
    });
    let (told, after) = (Instant::now(), Duration::from_secs(after));
    eventually("the time has passed", || (told.elapsed() >= after).then_some(()));
    assert_eq!(call(&node, &refused, "", Some(&body)).0, 200);
}

#[test]
fn a_run_beyond_a_limit_may_come_again_to_begin_its_conversation() {
    let gated =
        vec![Step::Text("a part".to_owned()), Step::Gate, Step::Finish("stop", None), Step::Done];
    let provider = Provider::start(vec![gated, says("hello")]);
    let node = with_provider(&provider, &["--max-runs", "1"]);
    let mut other = node.attach("other");
    other.send(submit("r", "hello"));
    other.wait_event("ChatTextPatch");
    let (path, body) = ("/v1/sessions/s/requests?opening=create", submit("r", "hello"));
    assert_eq!(call(&node, path, "", Some(&body)).0, 429);
    provider.open_gate();
    other.wait_done("r");
    send_again(&node, path, &body);
    assert_eq!(call(&node, path, "", Some(&submit("r2", "hello"))).0, 409, "it is there by now");
}

#[test]
fn a_tenant_has_no_more_bytes_in_memory_than_it_may() {
    let folder = Folder::new();
    let store = folder.name("store.db");
    let limits = ["--tenant-bytes", "100000", "--idle-ms", "1", "--store", &store];
    let node = Node::start(&limits);
    let mut talk = node.attach("s");
    let prompt = "x".repeat(10_000);
    let refused = (0..MANY).map(|number| format!("r{number}")).find(|id| {
        talk.send(submit(id, &prompt));
        talk.wait_done(id) == "failed"
    });
    let refused = refused.expect("a refusal");
    let error = talk.frames().into_iter().find(|it| it.id() == refused).expect("an error");
    assert_eq!(error.error(), Some("resource_exhausted"));
    assert!(error.0.to_string().contains("--tenant-bytes"), "{error:?}");
    let mut all = Vec::new();
    let status =
        (0..MANY).find_map(|number| match node.try_attach(attach(&format!("t{number}"))) {
            Ok(mut other) => {
                other.send(submit("r", &prompt));
                other.wait_done("r");
                all.push(other);
                None
            }
            Err(status) => Some(status),
        });
    assert_eq!(status.expect("a refusal").code(), Code::ResourceExhausted);
    // One that is sent again gets what came of it.
    let mut again =
        node.try_attach(Attach { without_past: true, ..attach("s") }).expect("it is open");
    again.send(submit("r0", &prompt));
    assert_eq!(again.wait_done("r0"), "ok");
    drop(again);
    talk.send(submit("large", &"y".repeat(100_000)));
    assert_eq!(talk.wait_done("large"), "failed");
    drop(all);
    talk.finish();
    eventually("they left memory", || (node.info().conversations == 0).then_some(()));
    let mut talk = node.attach("new");
    talk.send(submit("r", &prompt));
    assert_eq!(talk.wait_done("r"), "ok");
}

/// They come back from the store when they are asked for.
#[test]
fn conversations_that_nobody_uses_make_room_for_others() {
    let folder = Folder::new();
    let store = folder.name("store.db");
    let two_tenants = folder.name("tenants");
    let lines = line("ann", "token-of-ann") + &line("bob", "token-of-bob");
    fs::write(&two_tenants, lines).expect("a file");
    for limits in [
        &["--max-conversations", "1"][..],
        &["--max-conversations", "2", "--tenant-conversations", "1"],
    ] {
        let args = ["--store", &store, "--tenants", &two_tenants];
        let node = Node::start(&[&args, limits].concat());
        for turn in 1..=3 {
            for session in ["s1", "s2", "s3"] {
                let (path, prompt) = (format!("/v1/sessions/{session}/requests"), submit("", "hi"));
                eventually(&format!("turn {turn} of {session} has room"), || {
                    let (status, ..) = call(&node, &path, "token-of-ann", Some(&prompt));
                    (status == 200).then_some(())
                });
            }
        }
        // One that is used stays.
        let ann = |id: &str| node.attach_with(Some("token-of-ann"), attach(id));
        let mut used = eventually("it has room", || ann("s1").ok());
        let refused = ann("s2").err().expect("a refusal");
        assert_eq!(refused.code(), Code::ResourceExhausted, "{refused}");
        used.send(submit("last", "again"));
        assert_eq!(used.wait_done("last"), "ok");
    }
    // Without a store it would be lost.
    let node = Node::start(&["--max-conversations", "1"]);
    let mut talk = node.attach("s1");
    talk.send(submit("r", "hello"));
    assert_eq!(talk.wait_done("r"), "ok");
    talk.finish();
    let refused = node.try_attach(attach("s2")).err().expect("a refusal");
    assert_eq!(refused.code(), Code::ResourceExhausted, "{refused}");
}

/// There is nothing to lose, also without a store.
#[test]
fn conversations_that_were_only_watched_make_room_for_others() {
    let node = Node::start(&["--max-conversations", "1"]);
    for session in ["watched", "other"] {
        drop(eventually(session, || node.try_attach(attach(session)).ok()));
    }
    eventually("a prompt has room", || {
        let (status, ..) = call(&node, "/v1/sessions/s/requests", "", Some(&submit("r", "hi")));
        (status == 200).then_some(())
    });
}

/// A run needs open files of its own, for the connection to its provider.
#[test]
fn connections_leave_open_files_to_the_runs() {
    const CONNECTIONS: usize = 150;
    let provider = Provider::start(vec![says("an answer")]);
    let base_url = provider.base_url();
    let engine = ["serve", "--engine", "openai", "--model", "scripted", "--base-url", &base_url];
    let script = r#"ulimit -n 128; exec "$0" "$@""#;
    let launch = Launch::shell(script, &[&engine, LISTEN].concat());
    let node = Node::launch(launch.secret("DUOLOGUE_API_KEY", KEY));
    node.server.wait_log("128 open files");
    let mut talk = node.attach("s");
    let connect = |_| TcpStream::connect(&node.address).expect("a connection");
    let _idle: Vec<_> = (0..CONNECTIONS).map(connect).collect();
    // Those beyond its limit wait with the system.
    node.server.wait_log("further ones wait");
    talk.send(submit("r", "hello"));
    assert_eq!(talk.wait_done("r"), "ok");
}

/// Each of them is to be sent a snapshot, which is as long as the conversation.
#[test]
fn clients_that_read_no_snapshot_are_limited() {
    const PROMPT_BYTES: usize = 4 * 1024 * 1024;
    const MEMORY_BYTES_MAX: u64 = 500 * 1024 * 1024;
    const WATCHERS: usize = 30;
    let node = Node::start(&["--tenant-bytes", "60000000"]);
    let prompt = submit("r", &"x".repeat(PROMPT_BYTES));
    assert_eq!(call(&node, "/v1/sessions/s/requests", "", Some(&prompt)).0, 200);
    let watch = || {
        let mut stream = TcpStream::connect(&node.address).expect("a connection");
        let head = format!("GET /v1/sessions/s/events HTTP/1.1\r\nhost: {}\r\n\r\n", node.address);
        stream.write_all(head.as_bytes()).expect("it is sent");
        let mut status = [0; "HTTP/1.1 200".len()];
        stream.read_exact(&mut status).expect("a status");
        (String::from_utf8_lossy(&status).into_owned(), stream)
    };
    let watching: Vec<_> = (0..WATCHERS).map(|_| watch()).collect();
    let statuses: Vec<_> = watching.iter().map(|(status, _)| status.as_str()).collect();
    assert_eq!(
        (statuses[0], statuses[WATCHERS - 1]),
        ("HTTP/1.1 200", "HTTP/1.1 429"),
        "{statuses:?}"
    );
    let bytes = node.server.process().memory_bytes();
    assert!(bytes < MEMORY_BYTES_MAX, "{bytes}");
    // Who takes all of it leaves room for the next one.
    drop(watching);
    eventually("another one may watch", || (watch().0 == "HTTP/1.1 200").then_some(()));
}

/// Where the bytes of a tenant are the limit as well.
#[test]
fn conversations_that_nobody_uses_make_room_for_the_bytes_of_others() {
    let folder = Folder::new();
    let store = folder.name("store.db");
    let node = Node::start(&["--store", &store, "--tenant-bytes", "100000"]);
    let ask = |session: &str, prompt: &str| {
        let path = format!("/v1/sessions/{session}/requests");
        eventually(&format!("{session} has room"), || {
            let (status, ..) = call(&node, &path, "", Some(&submit("r", prompt)));
            (status == 200).then_some(())
        });
    };
    // The answer has it once more, and so has the state.
    let large = "x".repeat(60_000);
    ask("large", &large);
    ask("other", "hello");
    ask("large2", &large);
    let mut talk = eventually("a stream has room", || node.try_attach(attach("stream")).ok());
    talk.send(submit("r", "hello"));
    assert_eq!(talk.wait_done("r"), "ok");
}

/// Nothing that leaves memory would help it.
#[test]
fn a_body_that_is_longer_than_all_room_makes_no_conversation_leave() {
    let folder = Folder::new();
    let node = Node::start(&["--store", &folder.name("store.db"), "--tenant-bytes", "100000"]);
    let ask = |prompt: &str| call(&node, "/v1/sessions/s/requests", "", Some(&submit("r", prompt)));
    assert_eq!(ask("hello").0, 200);
    let body = submit("r", &"x".repeat(200_000));
    assert_eq!(call(&node, "/v1/sessions/other/requests", "", Some(&body)).0, 429);
    assert_eq!(metrics(&node)["duologue_conversations"], 1.0);
}

#[test]
fn a_run_beyond_the_limit_has_a_status_of_http() {
    let provider = Provider::start(vec![vec![Step::Text("a part".to_owned()), Step::Stall]]);
    let node = with_provider(&provider, &["--max-runs", "1"]);
    let mut talk = node.attach("one");
    talk.send(submit("r", "hello"));
    talk.wait_event("ChatTextPatch");
    let (status, after, body) =
        call(&node, "/v1/sessions/other/requests", "", Some(&submit("r", "hello")));
    assert_eq!(status, 429, "{body}");
    assert!(after.is_some());
    assert!(Frame::parse(body.lines().last().expect("a line").as_bytes()).ends("r"), "{body}");
    let large = "x".repeat(11 * 1024 * 1024);
    assert_eq!(call(&node, "/v1/sessions/other/requests", "", Some(&large)).0, 413);
}

/// What follows such a message is not read.
#[test]
fn a_message_that_is_too_large_ends_its_stream() {
    let node = Node::start(&["--max-request-bytes", "100000"]);
    let mut talk = node.attach("s");
    talk.send(submit("r", "hello"));
    assert_eq!(talk.wait_done("r"), "ok");
    talk.send(submit("large", &"x".repeat(200_000)));
    let status = talk.wait_end().expect_err("it was ended");
    assert_eq!(status.code(), Code::ResourceExhausted);
    assert!(status.message().contains("--max-request-bytes"), "{status}");
    let extensions = vec!["x".repeat(200_000)];
    let refused = node.try_attach(Attach { extensions, ..attach("s") }).err().expect("refused");
    assert_eq!(refused.code(), Code::ResourceExhausted);
    let mut talk = node.attach("s");
    talk.send(submit("small", "hello"));
    assert_eq!(talk.wait_done("small"), "ok");
}

#[test]
fn a_client_that_never_reads_loses_its_stream_and_not_its_run() {
    const TEXT_BYTES: usize = 4 * 1024 * 1024;
    let flood = vec![Step::Flood(TEXT_BYTES), Step::Finish("stop", None), Step::Done];
    let provider = Provider::start(vec![flood, says("short")]);
    // The snapshot that it is shown first is taken in this time.
    let node = with_provider(&provider, &["--unread-ms", "1000", "--final-snapshot", "none"]);
    let mut talk = node.attach("s");
    talk.send(submit("r", "hello"));
    eventually("its stream has ended", || (node.info().clients == 0).then_some(()));
    eventually("its run has ended", || (node.info().runs == 0).then_some(()));
    let status = talk.wait_end().expect_err("it was ended");
    assert_eq!(status.code(), Code::ResourceExhausted);
    assert!(status.message().contains("--unread-ms"), "{status}");
    assert!(!talk.frames().iter().any(|frame| frame.ends("r")));
    // Whoever reads is given the rest.
    let (status, _, body) =
        call(&node, "/v1/sessions/s/requests", "", Some(&submit("r2", "again")));
    assert_eq!(status, 200);
    assert!(body.contains("short"));
}

/// Nothing follows a snapshot where nobody says anything, and the bytes of those that are not taken are their tenant's.
#[test]
fn clients_that_read_no_snapshot_lose_their_streams() {
    // With its answer several of them are more than a connection of HTTP/2 takes that nobody reads.
    const PROMPT_BYTES: usize = 1536 * 1024;
    const WATCHERS: usize = 30;
    let limits = ["--tenant-bytes", "45000000", "--unread-ms", "1000"];
    let node = Node::start(&limits);
    let ask = |session: &str, prompt: &str| {
        let path = format!("/v1/sessions/{session}/requests");
        call(&node, &path, "", Some(&submit("r", prompt))).0
    };
    assert_eq!(ask("s", &"x".repeat(PROMPT_BYTES)), 200);
    let mut watching = Vec::new();
    let client = node.client();
    let refused = (0..WATCHERS).find_map(|_| match attach_to(client.clone(), None, attach("s")) {
        Ok(talk) => {
            watching.push(talk);
            None
        }
        Err(status) => Some(status),
    });
    assert_eq!(refused.expect("a refusal").code(), Code::ResourceExhausted);
    eventually("another conversation has room", || (ask("other", "hello") == 200).then_some(()));
    assert!(metrics(&node)["duologue_unread_total"] >= 1.0);
}

#[test]
fn a_run_has_no_more_time_than_it_may() {
    let provider = Provider::start(vec![vec![Step::Text("a part".to_owned()), Step::Stall]]);
    let node = with_provider(&provider, &["--run-ms", "1"]);
    let mut talk = node.attach("s");
    talk.send(submit("r", "hello"));
    assert_eq!(talk.wait_done("r"), "stopped");
}

/// The node knows of a run whichever events its clients are shown.
#[test]
fn a_run_has_no_more_time_where_its_events_are_not_shown() {
    let stalling = || vec![Step::Text("a part".to_owned()), Step::Stall];
    let provider = Provider::start(vec![stalling(), stalling()]);
    let node = with_provider(&provider, &["--run-ms", "1", "--events", "ChatRunFinished"]);
    let mut talk = node.attach("s");
    talk.send(submit("r", "hello"));
    assert_eq!(talk.wait_done("r"), "stopped");
    assert!(talk.frames().iter().all(|frame| frame.event().is_none()), "{:?}", talk.frames());
    assert_eq!(metrics(&node)["duologue_runs_total"], 1.0);
    // A client may want others than the node was started with.
    talk.send(r#"{"requestId":"e","enable":{"events":["ChatRunStopped"]}}"#);
    assert_eq!(talk.wait_done("e"), "ok");
    talk.send(submit("r2", "hello"));
    talk.wait_event("ChatRunStopped");
    assert_eq!(talk.wait_done("r2"), "stopped");
}

#[test]
fn a_run_gets_no_more_time_by_other_requests() {
    let provider = Provider::start(vec![vec![Step::Text("a part".to_owned()), Step::Stall]]);
    let node = with_provider(&provider, &["--run-ms", "500"]);
    let mut talk = node.attach("s");
    talk.send(submit("r", "hello"));
    talk.wait_event("ChatTextPatch");
    // Each of these has an event of its own.
    let mut number = 0;
    eventually("the run is stopped", || {
        number += 1;
        let id = format!("tools{number}");
        talk.send(declare(&id));
        talk.wait_done(&id);
        talk.frames().iter().any(|frame| frame.ends("r")).then_some(())
    });
    assert_eq!(metrics(&node)["duologue_runs_total"], 1.0);
}
