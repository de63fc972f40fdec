//! A node over plain HTTP, as scripts and browsers use it, and what it has stored.

use crate::frames::{Frame, finished_text, patched_text, snapshot, submit};
use crate::once;
use crate::process::{DEADLINE, eventually};
use crate::serve_node::{Node, attach, http, wait};
use crate::serve_tenants::line;
use crate::serve_watched::metrics;
use crate::server::Folder;
use crate::tools::{run, text};
use duologue::protocol::proto::fleet::{
    DeleteRequest, ExportRequest, ForkRequest, GetRequest, ListRequest,
};
use reqwest::{Method, Response};
use rusqlite::Connection;
use rustix::process::Signal;
use serde_json::Value;
use std::fs;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::thread;
use tonic::Code;

/// SQLite's own size of a page.
const PAGE_BYTES: usize = 4096;

/// Sends a request; gives the status and the body.
fn call(node: &Node, method: Method, path: &str, body: &str) -> (u16, String) {
    let url = format!("http://{}{path}", node.address);
    wait(async {
        let client = http();
        let sent = client.request(method, url).body(body.to_owned()).send().await;
        let response = sent.expect("an answer");
        (response.status().as_u16(), response.text().await.expect("a body"))
    })
}

fn frames(body: &str) -> Vec<Frame> {
    body.lines().map(|line| Frame::parse(line.as_bytes())).collect()
}

fn document(body: &str) -> Value {
    serde_json::from_str(body).expect("JSON")
}

/// Reads a stream until it has `text`.
async fn read_until(response: &mut Response, text: &str) -> String {
    let mut read = String::new();
    while !read.contains(text) || !read.ends_with('\n') {
        let chunk = response.chunk().await.expect("bytes").expect("it goes on");
        read.push_str(&String::from_utf8_lossy(&chunk));
    }
    read
}

#[test]
fn a_request_line_is_answered_with_its_frames() {
    let node = Node::start(&[]);
    let path = "/v1/sessions/s/requests";
    let (status, body) = call(&node, Method::POST, path, &submit("r", "hello"));
    assert_eq!(status, 200);
    let answer = frames(&body);
    assert!(answer.iter().all(|frame| frame.id() == "r"), "{body}");
    assert_eq!(finished_text(&answer, "r"), "Turn 1. You said: hello");
    assert!(answer.last().expect("a frame").ends("r"));
    // Sent again, it has the frames of the first.
    assert_eq!(call(&node, Method::POST, path, &submit("r", "hello")).1, body);
    let several = format!("{}\n{}\n", submit("r2", "more"), r#"{"requestId":"q","snapshot":{}}"#);
    let (_, body) = call(&node, Method::POST, path, &several);
    assert_eq!(frames(&body).iter().filter(|frame| frame.done().is_some()).count(), 2);
    let (status, body) = call(&node, Method::POST, path, "{\"requestId\":\"bad\",");
    assert_eq!(status, 400, "{body}");
    assert_eq!(call(&node, Method::POST, path, " \n").0, 400);
    assert_eq!(call(&node, Method::POST, "/v1/sessions/s/requests?opening=x", "{}").0, 400);
}

/// Also one that starts no run, and one whose run is known by the log alone.
#[test]
fn a_request_that_is_sent_again_has_the_same_answer() {
    let folder = Folder::new();
    let args = ["--store", &folder.name("store.db")];
    let mut node = Node::start(&args);
    let path = "/v1/sessions/s/requests";
    let asked = [
        r#"{"requestId":"e","enable":{"extensions":["usage"]}}"#,
        r#"{"requestId":"t","declareTools":{"tools":[{"name":"get_time"}]}}"#,
        r#"{"requestId":"c","cancel":{}}"#,
        r#"{"requestId":"end","shutdown":{}}"#,
        r#"{"requestId":"q","snapshot":{}}"#,
    ];
    for line in asked {
        let answer = call(&node, Method::POST, path, line);
        let dones = frames(&answer.1).into_iter().filter(|frame| frame.done().is_some());
        assert_eq!((answer.0, dones.count()), (200, 1), "{line}: {}", answer.1);
        assert_eq!(call(&node, Method::POST, path, line), answer);
    }
    let prompt = submit("r", "hello");
    call(&node, Method::POST, path, &prompt);
    node.server.signal(Signal::TERM);
    node.server.wait_end();
    let node = Node::start(&args);
    let (_, body) = call(&node, Method::POST, path, &prompt);
    let answer = frames(&body);
    assert!(answer[0].is_snapshot() && answer[1].ends("r"), "{body}");
    assert_eq!(call(&node, Method::POST, path, &prompt).1, body);
}

/// Its end has the whole text several times, which is more than a node keeps of a conversation.
#[test]
fn a_client_that_reads_at_once_is_shown_all_of_a_long_answer() {
    const WORDS: usize = 300;
    let node = Node::start(&[]);
    let prompt = vec!["x".repeat(1_000); WORDS].join(" ");
    let (status, body) =
        call(&node, Method::POST, "/v1/sessions/s/requests", &submit("r", &prompt));
    assert_eq!(status, 200);
    let answer = frames(&body);
    assert!(answer.iter().all(|frame| frame.id() == "r"), "no snapshot takes their place");
    let said = format!("Turn 1. You said: {prompt}");
    assert!(patched_text(&answer, "r") == said && finished_text(&answer, "r") == said);
    assert_eq!(answer.iter().filter(|frame| frame.is_event("ChatRunFinished")).count(), 1);
}

#[test]
fn a_client_that_waits_for_its_turn_takes_nothing_from_the_one_that_reads() {
    const ROUNDS: usize = 12;
    let node = Node::start(&[]);
    let ask = |id: &str, prompt: &str| {
        let (status, body) =
            call(&node, Method::POST, "/v1/sessions/s/requests", &submit(id, prompt));
        assert_eq!(status, 200);
        frames(&body)
    };
    let prompt = vec!["x".repeat(1_000); 300].join(" ");
    for round in 0..ROUNDS {
        let (long, short) = (format!("long-{round}"), format!("short-{round}"));
        let answer = thread::scope(|scope| {
            let answer = scope.spawn(|| ask(&long, &prompt));
            eventually("it has its turn", || (node.info().runs > 0).then_some(()));
            ask(&short, "hello");
            answer.join().expect("no panic")
        });
        assert!(answer.iter().all(|frame| frame.id() == long), "no snapshot takes their place");
        assert_eq!(patched_text(&answer, &long), finished_text(&answer, &long));
    }
}

/// Its frames are more than a node keeps of a conversation.
#[test]
fn a_long_request_that_is_sent_again_is_answered_with_the_conversation() {
    const PROMPT_BYTES: usize = 600_000;
    let node = Node::start(&[]);
    let path = "/v1/sessions/s/requests";
    let prompt = submit("r", &"x".repeat(PROMPT_BYTES));
    let (status, _) = call(&node, Method::POST, path, &prompt);
    assert_eq!(status, 200);
    for _ in 0..2 {
        let (_, body) = call(&node, Method::POST, path, &prompt);
        let answer = frames(&body);
        let [state, done] = &answer[..] else { panic!("two frames, and not {}", answer.len()) };
        assert!(state.is_snapshot() && state.id() == "r" && done.ends("r"));
        let (role, text) = state.messages()[1];
        assert!(role == "assistant" && text.starts_with("Turn 1. You said: xxx"));
    }
}

/// A browser's `EventSource` connects again after a stream that ends, and after no other status.
#[test]
fn a_browser_that_may_come_again_is_answered_with_a_stream() {
    let node = Node::start(&["--max-conversations", "1"]);
    let _held = node.attach("s");
    let get = |session: &str, accept: &str| {
        let url = format!("http://{}/v1/sessions/{session}/events", node.address);
        wait(http().get(url).header("accept", accept).send()).expect("an answer")
    };
    let refused = get("other", "text/event-stream");
    assert_eq!(refused.status(), 200);
    assert_eq!(refused.headers()["content-type"], "text/event-stream");
    let body = wait(refused.text()).expect("it ends");
    assert!(body.starts_with("retry: 2000\n\nevent: end\ndata: {"), "{body}");
    assert!(body.contains("resource_exhausted") && body.ends_with("}\n\n"), "{body}");
    assert_eq!(get("other", "*/*").status(), 429);
    let mut shown = get("s", "text/event-stream");
    let begin = wait(read_until(&mut shown, "\"hello\":{"));
    assert!(begin.starts_with("retry: 2000\n\ndata: {"), "{begin}");
}

/// Also one that has not begun, and has nothing in the store.
#[test]
fn a_conversation_is_copied_to_no_id_that_is_in_memory() {
    let folder = Folder::new();
    let node = Node::start(&["--store", &folder.name("store.db")]);
    let mut talks = ["from", "used"].map(|session| node.attach(session));
    for talk in &mut talks {
        talk.send(submit("r", "hello"));
        assert_eq!(talk.wait_done("r"), "ok");
    }
    let _watched = node.attach("watched");
    let mut client = node.client();
    for to in ["used", "watched"] {
        let fork = ForkRequest { session_id: "from".to_owned(), new_session_id: to.to_owned() };
        let refused = wait(client.fork(fork)).expect_err("it is there");
        assert_eq!(refused.code(), Code::AlreadyExists, "{to}: {refused}");
        assert!(!refused.message().contains("process"), "{to}: {refused}");
    }
}

/// Also at an address for other methods; a client of gRPC gets a status of its own.
#[test]
fn an_address_that_nothing_is_at_is_not_found() {
    let node = Node::start(&[]);
    let paths = [
        (Method::GET, "/v1/sesions"),
        (Method::GET, "/"),
        (Method::POST, "/v1/session/demo/requests"),
        (Method::POST, "/health"),
    ];
    for (method, path) in paths {
        let (status, body) = call(&node, method, path, "");
        assert_eq!(status, 404, "{path}: {body}");
        assert_eq!(document(&body)["refused"]["code"], "not_found", "{path}: {body}");
    }
    for (method, path) in [(Method::PUT, "/v1/sessions"), (Method::POST, "/health/live")] {
        let url = format!("http://{}{path}", node.address);
        let response = wait(http().request(method, url).send()).expect("an answer");
        assert_eq!(response.status(), 405, "{path}");
        assert!(response.headers().contains_key("allow"), "{path}");
        let body = wait(response.text()).expect("a body");
        assert_eq!(document(&body)["refused"]["code"], "invalid_argument", "{path}: {body}");
    }
    let url = format!("http://{}/duologue.fleet.v2.Fleet/List", node.address);
    let called = http().post(url).header("content-type", "application/grpc").send();
    let response = wait(called).expect("an answer");
    assert_eq!(response.headers()["grpc-status"], "12");
}

/// Also of what is refused before it is looked at.
#[test]
fn each_refusal_is_a_document() {
    let folder = Folder::new();
    let tenants = folder.name("tenants");
    fs::write(&tenants, line("ann", "token-of-ann")).expect("a file");
    let (node, closed) = (Node::start(&[]), Node::start(&["--tenants", &tenants]));
    let refused = |node: &Node, method: Method, path: &str| {
        let url = format!("http://{}{path}", node.address);
        let response = wait(http().request(method, url).send()).expect("an answer");
        let headers = response.headers().clone();
        assert_eq!(headers["content-type"], "application/json", "{path}");
        let status = response.status().as_u16();
        let body = document(&wait(response.text()).expect("a body"));
        (status, body["refused"]["code"].as_str().expect("a code").to_owned(), headers)
    };
    for (method, path) in [
        (Method::GET, "/v1/sessions/s/events?since=abc"),
        (Method::GET, "/v1/sessions?page_size=-1"),
        (Method::GET, "/v1/info?foo=1"),
        (Method::GET, "/v1/sessions?foo=1"),
        (Method::GET, "/v1/sessions?since=1"),
        (Method::GET, "/v1/sessions/s?foo=1"),
        (Method::DELETE, "/v1/sessions/s?foo=1"),
        (Method::GET, "/v1/sessions/s/export?format=markdown"),
        (Method::POST, "/v1/sessions/s/requests?foo=1"),
        (Method::POST, "/v1/sessions/s/requests?since=1"),
        (Method::POST, "/v1/sessions/%00/requests"),
        (Method::GET, "/v1/sessions/a%00b/events"),
        (Method::POST, "/v1/sessions/%ff/requests"),
        (Method::GET, "/v1/sessions/%ff"),
        (Method::DELETE, "/v1/sessions/%ff"),
        (Method::GET, "/v1/sessions/%ff/events"),
        (Method::GET, "/v1/sessions/%ff/export"),
    ] {
        let (status, code, _) = refused(&node, method, path);
        assert_eq!((status, code.as_str()), (400, "invalid_argument"), "{path}");
    }
    let (status, code, headers) = refused(&closed, Method::GET, "/v1/sessions");
    assert_eq!((status, code.as_str()), (401, "unauthenticated"));
    assert_eq!(headers["www-authenticate"], "Bearer");
}

/// Some editors and shells begin a file with one.
#[test]
fn a_byte_order_mark_before_the_first_line_is_no_part_of_it() {
    let node = Node::start(&[]);
    let body = format!("\u{feff}{}", submit("r", "hello"));
    let (status, body) = call(&node, Method::POST, "/v1/sessions/s/requests", &body);
    assert_eq!(status, 200, "{body}");
}

/// Sends bytes over a connection of its own; gives all that comes back.
fn exchange(node: &Node, parts: &[&[u8]]) -> String {
    let mut stream = TcpStream::connect(&node.address).expect("a connection");
    stream.set_read_timeout(Some(DEADLINE)).expect("a limit");
    for part in parts {
        stream.write_all(part).expect("all of it is taken");
    }
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer, and an end");
    answer
}

#[test]
fn a_body_that_is_too_large_is_refused_before_anything_is_done_for_it() {
    const BODY_BYTES: usize = 12_000_000;
    let folder = Folder::new();
    let limits = ["--tenant-bytes", "12000100", "--store", &folder.name("store.db")];
    let node = Node::start(&limits);
    let path = "/v1/sessions/s/requests";
    assert_eq!(call(&node, Method::POST, path, &submit("r", "hello")).0, 200);
    let head = |more: &str| {
        format!(
            "POST /v1/sessions/other/requests HTTP/1.1\r\nhost: {}\r\nconnection: close\r\n\
             content-length: {BODY_BYTES}\r\n{more}\r\n",
            node.address
        )
    };
    // A client that waits for leave to send it.
    let answer = exchange(&node, &[head("expect: 100-continue\r\n").as_bytes()]);
    assert!(answer.starts_with("HTTP/1.1 413 "), "{answer}");
    assert!(answer.contains("--max-request-bytes"), "{answer}");
    // One that reads nothing before it has sent all.
    let answer = exchange(&node, &[head("").as_bytes(), &vec![b'x'; BODY_BYTES]]);
    assert!(answer.starts_with("HTTP/1.1 413 "), "{answer}");
    assert_eq!(metrics(&node)["duologue_conversations"], 1.0, "nothing made room for it");
}

/// The store is made with the first conversation.
#[test]
fn a_node_whose_store_is_not_there_yet_has_no_conversations() {
    let folder = Folder::new();
    let node = Node::start(&["--store", &folder.name("store.db")]);
    assert_eq!(
        call(&node, Method::GET, "/v1/sessions", ""),
        (200, "{\"sessions\":[]}\n".to_owned())
    );
    let paths = ["/v1/sessions/s", "/v1/sessions/s/export"].map(|path| (Method::GET, path));
    for (method, path) in paths.into_iter().chain([(Method::DELETE, "/v1/sessions/s")]) {
        let (status, body) = call(&node, method, path, "");
        assert_eq!(status, 404, "{path}: {body}");
        assert_eq!(document(&body)["refused"]["code"], "not_found", "{path}: {body}");
    }
    assert!(!folder.path("store.db").exists());
}

#[test]
fn a_conversation_that_is_only_watched_has_not_begun() {
    let folder = Folder::new();
    let node = Node::start(&["--store", &folder.name("store.db")]);
    let watch = |opening: &str| {
        let url = format!("http://{}/v1/sessions/s/events?opening={opening}", node.address);
        wait(http().get(url).send()).expect("an answer")
    };
    let watched = watch("either");
    assert_eq!(watched.status(), 200);
    let missing = watch("resume");
    assert_eq!(missing.status(), 404, "there is nothing to go on with");
    let body = wait(missing.text()).expect("a body");
    assert!(body.contains("with the opening create or either"), "words that are taken: {body}");
    assert_eq!(call(&node, Method::GET, "/v1/sessions/s", "").0, 404);
    let path = "/v1/sessions/s/requests?opening=create";
    let (status, body) = call(&node, Method::POST, path, &submit("r", "hello"));
    assert_eq!(status, 200, "{body}");
    assert_eq!(call(&node, Method::POST, path, &submit("r2", "hello")).0, 409);
    assert_eq!(watch("resume").status(), 200);
    drop(watched);
}

#[test]
fn a_request_with_the_id_of_another_is_refused() {
    let node = Node::start(&[]);
    let path = "/v1/sessions/s/requests";
    call(&node, Method::POST, path, &submit("r", "hello"));
    let (_, body) = call(&node, Method::POST, path, &submit("r", "something else"));
    let answer = frames(&body);
    assert_eq!(answer[0].error(), Some("request_id_reused"), "{body}");
    assert_eq!(answer[1].done(), Some("failed"), "{body}");
}

#[test]
fn a_request_that_is_sent_again_may_name_its_conversation_and_its_version() {
    let node = Node::start(&[]);
    let path = "/v1/sessions/s/requests";
    let first = call(&node, Method::POST, path, &submit("r", "hello"));
    let again = |names: &str| {
        let line = format!(r#"{{"requestId":"r",{names}"submit":{{"prompt":"hello"}}}}"#);
        call(&node, Method::POST, path, &line)
    };
    assert_eq!(again(r#""sessionId":"s","version":1,"#), first);
    for other in [r#""sessionId":"t","#, r#""version":2,"#] {
        let (_, body) = again(other);
        assert_eq!(frames(&body)[0].error(), Some("request_id_reused"), "{other}: {body}");
    }
}

/// Requests that wait for the ones before them are handled, whether or not their client is still there.
#[test]
fn what_a_client_has_sent_before_it_left_is_done() {
    let node = Node::start(&["--final-snapshot", "none"]);
    let path = "/v1/sessions/s/requests";
    call(&node, Method::POST, path, &submit("large", &"word ".repeat(100_000)));
    let snapshots = (0..60).map(|number| format!(r#"{{"requestId":"q{number}","snapshot":{{}}}}"#));
    let body = snapshots.chain([submit("last", "hello")]).collect::<Vec<_>>().join("\n");
    let url = format!("http://{}{path}", node.address);
    let answer = wait(http().post(url).body(body).send()).expect("an answer");
    assert_eq!(answer.status(), 200);
    drop(answer);
    eventually("the last of them has run", || {
        let (_, frames) = call(&node, Method::POST, path, r#"{"requestId":"n","snapshot":{}}"#);
        frames.contains("You said: hello").then_some(())
    });
}

/// Also one that the node sees leave before it has looked at the body.
#[test]
fn a_body_that_has_arrived_is_handled_though_its_client_is_gone() {
    const CLIENTS: usize = 10;
    let folder = Folder::new();
    let node = Node::start(&["--store", &folder.name("store.db")]);
    let body = submit("r", "hello");
    for number in 0..CLIENTS {
        let head = format!(
            "POST /v1/sessions/s{number}/requests HTTP/1.1\r\nhost: {}\r\ncontent-length: {}\r\n\r\n",
            node.address,
            body.len()
        );
        let mut stream = TcpStream::connect(&node.address).expect("a connection");
        stream.write_all((head + &body).as_bytes()).expect("all of it is taken");
        // One that shuts down its side alone is gone as well.
        if number % 2 == 0 {
            stream.shutdown(Shutdown::Write).expect("it was open");
        }
    }
    for number in 0..CLIENTS {
        eventually("its run is stored", || {
            let (status, body) = call(&node, Method::GET, &format!("/v1/sessions/s{number}"), "");
            (status == 200 && document(&body)["turns"] == 1).then_some(())
        });
    }
}

#[test]
fn events_are_json_lines_or_server_sent_events() {
    let node = Node::start(&[]);
    call(&node, Method::POST, "/v1/sessions/s/requests", &submit("r", "hello"));
    let read = |path: &str, accept: Option<&str>, last: Option<&str>, until: &str| {
        let url = format!("http://{}{path}", node.address);
        wait(async {
            let mut request = http().get(url);
            for (name, value) in [("accept", accept), ("last-event-id", last)] {
                if let Some(value) = value {
                    request = request.header(name, value);
                }
            }
            let mut response = request.send().await.expect("an answer");
            assert_eq!(response.headers()["x-accel-buffering"], "no");
            read_until(&mut response, until).await
        })
    };
    let all = frames(&read("/v1/sessions/s/events?since=0", None, None, "\"done\":{"));
    assert!(all[0].0.get("hello").is_some());
    assert_eq!(all[1].ordinal(), Some(1));
    assert_eq!(finished_text(&all, "r"), "Turn 1. You said: hello");
    let last = all.iter().filter_map(Frame::ordinal).max().expect("events");
    let accept = Some("text/event-stream");
    let events = read("/v1/sessions/s/events?since=0", accept, None, "\"done\":{");
    assert!(events.contains(&format!("\nid: {last}\ndata: {{")), "{events}");
    // A browser that connects again says what it has.
    let missed = read("/v1/sessions/s/events", accept, Some(&(last - 1).to_string()), "\"done\":{");
    assert!(missed.contains(&format!("id: {last}\n")) && !missed.contains("id: 1\n"), "{missed}");
    let whole = read("/v1/sessions/s/events", None, None, "\"snapshot\":{");
    assert!(frames(whole.trim_end())[1].is_snapshot());
    // `check --joined` accepts a stream that begins after any event.
    for since in 0..last {
        let part = read(&format!("/v1/sessions/s/events?since={since}"), None, None, "\"done\":{");
        let checked = run(&["check", "--joined"], part.as_bytes());
        assert!(checked.status.success(), "since {since}: {}", text(&checked.stdout));
    }
}

#[test]
fn a_conversation_that_is_not_stored_is_deleted_from_memory() {
    let node = Node::start(&[]);
    call(&node, Method::POST, "/v1/sessions/s/requests", &submit("r", "hello"));
    assert_eq!(call(&node, Method::DELETE, "/v1/sessions/s", "").0, 200);
    assert_eq!(node.info().conversations, 0);
    let (status, body) = call(&node, Method::DELETE, "/v1/sessions/s", "");
    assert_eq!(status, 404, "it is gone: {body}");
}

#[test]
fn a_store_that_can_not_be_read_deletes_nothing() {
    let folder = Folder::new();
    let store = folder.name("store");
    let node = Node::start(&["--store", &store]);
    let mut talk = node.attach("s");
    talk.send(submit("r", "hello"));
    assert_eq!(talk.wait_done("r"), "ok");
    let away = folder.name("away");
    fs::rename(&store, &away).expect("moved");
    fs::create_dir(&store).expect("a folder in its place");
    let (status, body) = call(&node, Method::DELETE, "/v1/sessions/s", "");
    assert_eq!(status, 500, "{body}");
    assert_eq!(document(&body)["refused"]["code"], "failed", "{body}");
    node.server.wait_log("the store can't be used at the moment");
    talk.send(r#"{"requestId":"q","snapshot":{}}"#);
    assert_eq!(talk.wait_done("q"), "ok", "it goes on");
    fs::remove_dir(&store).expect("removed");
    fs::rename(&away, &store).expect("moved");
    assert_eq!(call(&node, Method::DELETE, "/v1/sessions/s", "").0, 200);
    assert_eq!(talk.wait_end().expect_err("it has ended").code(), Code::NotFound);
}

/// An error of SQLite itself has no name in it.
#[test]
fn a_node_says_which_of_its_two_stores_is_damaged() {
    let folder = Folder::new();
    let (good, damaged) = (folder.name("good"), folder.name("damaged"));
    let words = ["exec", "--engine", "echo", "--store", &good, "--session-id", "s", "hello"];
    let ended = once::run(&folder, &words);
    assert_eq!(ended.status, 0, "{ended:?}");
    let bytes = fs::read(&good).expect("a store");
    fs::write(&damaged, &bytes[..PAGE_BYTES]).expect("a file");
    let node = Node::start(&["--turns-db", &good, "--timeline-db", &damaged]);
    let why = format!("{damaged}: the store can't be read or written: it is damaged");
    node.server.wait_log(&format!("the store can't be used at the moment: {why}"));
}

/// The other one keeps the conversation, so it goes on.
#[test]
fn where_one_of_two_stores_is_gone_nothing_is_deleted() {
    let folder = Folder::new();
    let (turns, timeline) = (folder.name("turns"), folder.name("timeline"));
    let node = Node::start(&["--turns-db", &turns, "--timeline-db", &timeline]);
    let mut talk = node.attach("s");
    talk.send(submit("r", "hello"));
    assert_eq!(talk.wait_done("r"), "ok");
    let away = folder.name("away");
    for (number, store) in [turns, timeline].iter().enumerate() {
        fs::rename(store, &away).expect("moved");
        let (status, body) = call(&node, Method::DELETE, "/v1/sessions/s", "");
        assert_eq!(status, 500, "{body}");
        let id = format!("q{number}");
        talk.send(snapshot(&id));
        assert_eq!(talk.wait_done(&id), "ok", "it goes on");
        fs::rename(&away, store).expect("moved");
    }
    assert_eq!(call(&node, Method::DELETE, "/v1/sessions/s", "").0, 200);
    assert_eq!(talk.wait_end().expect_err("it has ended").code(), Code::NotFound);
}

#[test]
fn stored_conversations_are_listed_exported_copied_and_deleted() {
    let folder = Folder::new();
    let node = Node::start(&["--store", &folder.name("store.db")]);
    for session in ["one", "two"] {
        let mut talk = node.attach(session);
        talk.send(submit("r", &format!("hello from {session}")));
        assert_eq!(talk.wait_done("r"), "ok");
        talk.finish();
    }
    let mut client = node.client();
    wait(async {
        let list = client.list(ListRequest::default()).await.expect("a list").into_inner();
        let ids: Vec<_> = list.sessions.iter().map(|it| it.session_id.as_str()).collect();
        assert_eq!(ids, ["two", "one"]);
        let get = GetRequest { session_id: "one".to_owned() };
        let one = client.get(get).await.expect("it is there").into_inner();
        assert_eq!((one.title.as_str(), one.turns), ("hello from one", 1));

        let export = ExportRequest { session_id: "one".to_owned() };
        let mut frames = client.export(export).await.expect("an export").into_inner();
        let mut lines = Vec::new();
        while let Some(frame) = frames.message().await.expect("a frame") {
            lines.push(frame);
        }
        assert_eq!(lines.len(), 2);

        let fork = ForkRequest { session_id: "one".to_owned(), new_session_id: "copy".to_owned() };
        let copy = client.fork(fork.clone()).await.expect("a copy").into_inner();
        assert_eq!((copy.session_id.as_str(), copy.turns), ("copy", 1));
        let again = client.fork(fork).await.expect_err("it is there");
        assert_eq!(again.code(), Code::AlreadyExists);
        let missing = client.get(GetRequest { session_id: "none".to_owned() }).await;
        assert_eq!(missing.expect_err("it is not there").code(), Code::NotFound);
    });
    // One that is open is ended first.
    let mut held = node.attach("one");
    held.wait("a snapshot", Frame::is_snapshot);
    let delete = DeleteRequest { session_id: "one".to_owned() };
    wait(async { client.delete(delete.clone()).await }).expect("deleted");
    assert_eq!(held.wait_end().expect_err("it has ended").code(), Code::NotFound);
    let again = wait(async { client.delete(delete).await });
    assert_eq!(again.expect_err("it is gone").code(), Code::NotFound);

    let listed = document(&call(&node, Method::GET, "/v1/sessions?page_size=1", "").1);
    assert_eq!(listed["sessions"][0]["sessionId"], "copy");
    let token = listed["nextPageToken"].as_str().expect("more");
    let next = format!("/v1/sessions?page_size=1&page_token={token}");
    assert_eq!(document(&call(&node, Method::GET, &next, "").1)["sessions"][0]["sessionId"], "two");
    // The copy has seen none of the requests of the first.
    let mut copy = node.attach("copy");
    copy.send(submit("r", "hello from one"));
    assert_eq!(copy.wait_done("r"), "ok");
    assert!(finished_text(&copy.frames(), "r").starts_with("Turn 2"));
    assert_eq!(call(&node, Method::GET, "/v1/sessions/none", "").0, 404);
    let export = call(&node, Method::GET, "/v1/sessions/two/export", "").1;
    assert_eq!(frames(&export)[1].messages()[0], ("user", "hello from two"));
    assert_eq!(call(&node, Method::DELETE, "/v1/sessions/two", "").0, 200);
    assert_eq!(call(&node, Method::GET, "/v1/sessions/two", "").0, 404);
}

/// A process of one conversation may have stored it.
#[test]
fn a_stored_id_with_a_zero_character_is_listed_read_copied_and_deleted() {
    let folder = Folder::new();
    let store = folder.name("store.db");
    let node = Node::start(&["--store", &store]);
    for session in ["one", "two", "three"] {
        let mut talk = node.attach(session);
        talk.send(submit("r", "hello"));
        assert_eq!(talk.wait_done("r"), "ok");
        talk.finish();
    }
    let sql = "UPDATE sessions SET id = 'a' || char(0) || 'b' WHERE id = 'two'";
    let changed = Connection::open(&store).expect("a store").execute(sql, []);
    assert_eq!(changed, Ok(1));
    let mut client = node.client();
    let (mut ids, mut page_token) = (Vec::new(), String::new());
    loop {
        let page = client.list(ListRequest { page_size: 1, page_token });
        let page = wait(page).expect("a page").into_inner();
        ids.extend(page.sessions.into_iter().map(|it| it.session_id));
        page_token = page.next_page_token;
        if page_token.is_empty() {
            break;
        }
    }
    ids.sort();
    assert_eq!(ids, ["a\0b", "one", "three"]);
    let (odd, path) = (|| "a\0b".to_owned(), "/v1/sessions/a%00b");
    assert_eq!(document(&call(&node, Method::GET, path, "").1)["sessionId"], odd());
    let export = call(&node, Method::GET, &format!("{path}/export"), "").1;
    assert_eq!(frames(&export)[1].messages()[0], ("user", "hello"));
    // It neither goes on nor begins here.
    let refused = node.try_attach(attach(&odd())).err().map(|status| status.code());
    assert_eq!(refused, Some(Code::InvalidArgument));
    let mut fork = |from, to| {
        let copied = client.fork(ForkRequest { session_id: from, new_session_id: to });
        wait(copied).map_err(|status| status.code())
    };
    assert_eq!(fork("one".to_owned(), "c\0d".to_owned()).err(), Some(Code::InvalidArgument));
    assert!(fork(odd(), "copy".to_owned()).is_ok());
    assert_eq!(call(&node, Method::DELETE, path, "").0, 200);
    assert_eq!(call(&node, Method::GET, path, "").0, 404);
}

#[test]
fn a_copy_of_a_damaged_conversation_has_what_can_be_read_and_the_log_says_so() {
    let folder = Folder::new();
    let store = folder.name("store.db");
    let mut node = Node::start(&["--store", &store]);
    let mut talk = node.attach("one");
    for id in ["r", "r2", "r3"] {
        talk.send(submit(id, "hello"));
        assert_eq!(talk.wait_done(id), "ok");
    }
    talk.finish();
    node.server.signal(Signal::TERM);
    node.server.wait_end();
    let sql = "UPDATE log SET events = X'FFFF' WHERE number = 3";
    let changed = Connection::open(&store).expect("a store").execute(sql, []);
    assert_eq!(changed, Ok(1));
    let node = Node::start(&["--store", &store]);
    let fork = ForkRequest { session_id: "one".to_owned(), new_session_id: "copy".to_owned() };
    let mut client = node.client();
    let copy = wait(async { client.fork(fork).await }).expect("a copy").into_inner();
    assert!(copy.turns < 3, "{copy:?}");
    node.server.wait_log("not all of a session can be copied");
}

#[test]
fn a_copy_of_a_conversation_that_answers_lacks_that_turn_and_the_log_says_so() {
    let folder = Folder::new();
    let node = Node::start(&["--store", &folder.name("store.db"), "--echo-delay-ms", "20"]);
    let mut talk = node.attach("one");
    talk.send(submit("r", "hello"));
    assert_eq!(talk.wait_done("r"), "ok");
    talk.send(submit("r2", &"word ".repeat(10_000)));
    talk.wait_event("ChatTextPatch");
    let fork = ForkRequest { session_id: "one".to_owned(), new_session_id: "copy".to_owned() };
    let mut client = node.client();
    let copy = wait(async { client.fork(fork).await }).expect("a copy").into_inner();
    assert_eq!(copy.turns, 1);
    node.server.wait_log("turn 2 has no end yet");
}

#[test]
fn a_node_without_a_store_has_no_list() {
    let node = Node::start(&[]);
    // A setting, and no fault of the node.
    for path in ["/v1/sessions", "/v1/sessions/s", "/v1/sessions/s/export"] {
        let (status, body) = call(&node, Method::GET, path, "");
        assert_eq!(status, 409, "{path}: {body}");
        assert_eq!(document(&body)["refused"]["code"], "failed_precondition", "{path}: {body}");
        assert!(body.contains("--store"), "{path}: {body}");
    }
    let listed = wait(async { node.client().list(ListRequest::default()).await });
    assert_eq!(listed.expect_err("there is no list").code(), Code::FailedPrecondition);
    assert_eq!(call(&node, Method::GET, "/health/ready", ""), (200, "ok\n".to_owned()));
    node.attach("s");
    let info = || document(&call(&node, Method::GET, "/v1/info", "").1);
    assert_eq!(info()["conversations"], 1);
    eventually("the client has gone", || (info()["clients"] == 0).then_some(()));
}

#[test]
fn the_service_describes_itself() {
    use tonic_reflection::pb::v1::ServerReflectionRequest;
    use tonic_reflection::pb::v1::server_reflection_client::ServerReflectionClient;
    use tonic_reflection::pb::v1::server_reflection_request::MessageRequest;
    use tonic_reflection::pb::v1::server_reflection_response::MessageResponse;
    let node = Node::start(&[]);
    let channel = node.channel();
    let message_request = Some(MessageRequest::ListServices(String::new()));
    let request = ServerReflectionRequest { host: String::new(), message_request };
    let answer = wait(async move {
        let mut client = ServerReflectionClient::new(channel);
        let requests = tokio_stream::once(request);
        let mut answers =
            client.server_reflection_info(requests).await.expect("answers").into_inner();
        answers.message().await.expect("an answer").expect("one").message_response
    });
    let Some(MessageResponse::ListServicesResponse(list)) = answer else { panic!("{answer:?}") };
    let names: Vec<_> = list.service.iter().map(|it| it.name.as_str()).collect();
    assert!(names.contains(&"duologue.fleet.v1.Fleet"), "{names:?}");
}
