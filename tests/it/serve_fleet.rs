//! Several nodes that share a database: one holds each conversation, and any of them takes any call.

use crate::client_tools::{calls, declare, result};
use crate::frames::{Frame, finished_text, snapshot, submit};
use crate::postgres_server::{Database, PASSWORD, PostgresServer, Proxy};
use crate::process::eventually;
use crate::provider::{Provider, Step, says};
use crate::serve_node::{LISTEN, Node, Talk, attach, http, wait};
use crate::serve_tenants::line;
use crate::serve_watched::metrics;
use crate::server::{Folder, KEY, Launch};
use duologue::protocol::proto::fleet::{
    Attach, DeleteRequest, ExportRequest, ForkRequest, GetRequest, ListRequest,
};
use duologue::protocol::proto::rpc::rpc_line::Frame as Body;
use rustix::process::Signal;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use tonic::{Code, Status};

/// A node of the fleet that stores in `database`.
pub(crate) fn node(database: &Database, engine: &[&str]) -> Node {
    node_at(&database.bare_dsn(), engine)
}

/// A node of the fleet that stores at this address.
fn node_at(dsn: &str, engine: &[&str]) -> Node {
    let store = ["--store", dsn, "--advertise", "http://127.0.0.1:0"];
    let launch = Launch::new(&[&["serve"], engine, LISTEN, &store].concat());
    Node::launch(launch.secret("PGPASSWORD", PASSWORD).secret("DUOLOGUE_API_KEY", KEY))
}

pub(crate) const ECHO: &[&str] = &["--engine", "echo"];

fn since(session: &str, ordinal: u64) -> Attach {
    Attach { since_ordinal: Some(ordinal), ..attach(session) }
}

/// Attaches as often as the fleet asks for it.
#[track_caller]
fn attached(node: &Node, session: &str) -> Talk {
    eventually("a node takes the conversation", || match node.try_attach(attach(session)) {
        Ok(talk) => Some(talk),
        Err(status) => {
            assert_eq!(status.code(), Code::Unavailable, "{status}");
            None
        }
    })
}

/// The ordinals in the log of the only session: each once, without a gap but where patches were coalesced.
fn check_log(database: &Database) {
    let ordinals: Vec<_> = database.events().iter().map(|event| event.0).collect();
    assert!(ordinals.windows(2).all(|pair| pair[0] < pair[1]), "{ordinals:?}");
}

#[test]
fn any_node_takes_any_call() {
    needs!(Postgres);
    let database = Database::new();
    let (one, other) = (node(&database, ECHO), node(&database, ECHO));
    let mut here = one.attach("s");
    here.send(submit("r", "hello"));
    assert_eq!(here.wait_done("r"), "ok");
    // The other one does not hold it, and passes the client on.
    let mut there = other.attach("s");
    let snapshot = there.wait("a snapshot", Frame::is_snapshot);
    assert_eq!(snapshot.messages()[1].1, "Turn 1. You said: hello");
    there.send(submit("r2", "from elsewhere"));
    assert_eq!(there.wait_done("r2"), "ok");
    assert_eq!(here.wait_done("r2"), "ok");
    assert!(finished_text(&here.frames(), "r2").starts_with("Turn 2"));
    assert_eq!((one.info().conversations, other.info().conversations), (1, 0));
    there.finish();
    // Also what was missed, and deletions.
    let mut back = other.try_attach(since("s", 1)).expect("attached");
    assert_eq!(back.wait("an event", |frame| frame.ordinal().is_some()).ordinal(), Some(2));
    drop(back);
    let mut client = other.client();
    wait(async move {
        let session_id = "s".to_owned();
        client.get(GetRequest { session_id: session_id.clone() }).await.expect("it is there");
        client.delete(DeleteRequest { session_id: session_id.clone() }).await.expect("deleted");
        client.get(GetRequest { session_id }).await.expect_err("it is gone");
    });
    assert_eq!(here.wait_end().expect_err("it has ended").code(), Code::NotFound);
}

/// The tables are made with the first conversation.
#[test]
fn a_fleet_whose_database_is_new_has_no_conversations() {
    needs!(Postgres);
    let node = node(&Database::new(), ECHO);
    let mut client = node.client();
    wait(async move {
        let session_id = "s".to_owned();
        let page = client.list(ListRequest::default()).await.expect("a list").into_inner();
        assert!(page.sessions.is_empty(), "{page:?}");
        let refused = [
            client.get(GetRequest { session_id: session_id.clone() }).await.map(drop),
            client.export(ExportRequest { session_id: session_id.clone() }).await.map(drop),
            client.delete(DeleteRequest { session_id }).await.map(drop),
        ];
        for refused in refused {
            let status = refused.expect_err("it is not there");
            assert_eq!(status.code(), Code::NotFound, "{status}");
        }
    });
}

/// A client that sends nothing keeps its stream, also where another node holds the conversation.
#[test]
fn a_watcher_at_another_node_sees_what_comes() {
    needs!(Postgres);
    let database = Database::new();
    let (one, other) = (node(&database, ECHO), node(&database, ECHO));
    let mut here = one.attach("s");
    here.send(submit("r", "hello"));
    assert_eq!(here.wait_done("r"), "ok");
    let mut client = other.client();
    let mut watched = wait(client.watch(attach("s"))).expect("it is attached").into_inner();
    let mut until = |what: &str, wanted: fn(&Body) -> bool| {
        let next = async {
            while let Some(frame) = watched.message().await.expect("a frame") {
                if frame.frame.as_ref().is_some_and(wanted) {
                    return;
                }
            }
            panic!("the stream ended before {what}");
        };
        wait(next);
    };
    until("the snapshot", |frame| matches!(frame, Body::Snapshot(_)));
    here.send(submit("r2", "more"));
    assert_eq!(here.wait_done("r2"), "ok");
    until("the done of what came later", |frame| matches!(frame, Body::Done(_)));
}

/// Clients that read nothing at a node that passes them on do not hold up the others there.
#[test]
fn a_client_at_another_node_waits_for_nobody_who_does_not_read() {
    needs!(Postgres);
    // More than the streams of a client, and those between the nodes, take before they are read.
    const PROMPT_BYTES: usize = 6 * 1024 * 1024;
    let database = Database::new();
    let provider = Provider::start(vec![says("one"), says("two")]);
    let base_url = provider.base_url();
    let engine = ["--engine", "openai", "--model", "scripted", "--base-url", &base_url];
    let (one, other) = (node(&database, &engine), node(&database, &engine));
    let mut here = one.attach("s");
    here.send(submit("r", &"x".repeat(PROMPT_BYTES)));
    assert_eq!(here.wait_done("r"), "ok");
    let unread: Vec<_> = (0..4).map(|_| other.attach("s")).collect();
    eventually("they are attached", || (one.info().clients == 5).then_some(()));
    let mut there =
        other.try_attach(Attach { without_past: true, ..attach("s") }).expect("attached");
    there.send(submit("r2", "and now?"));
    assert_eq!(there.wait_done("r2"), "ok");
    drop(unread);
}

/// Conversations that begin one after the other do not make a connection to the database each.
#[test]
fn connections_to_the_database_are_used_again() {
    needs!(Postgres);
    let database = Database::new();
    let node = node(&database, ECHO);
    let made = || -> usize {
        let sql = "SELECT sessions FROM pg_stat_database WHERE datname = current_database()";
        database.query(sql).trim().parse().expect("a number")
    };
    let before = made();
    for number in 0..20 {
        let mut talk = node.attach(&format!("s{number}"));
        talk.send(submit("r", "hello"));
        assert_eq!(talk.wait_done("r"), "ok");
        talk.finish();
    }
    let more = made() - before;
    assert!((1..20).contains(&more), "{more} connections");
}

/// A list, and one entry of it, read nothing of other tenants, and no more than a page: here a session that can't be
/// summed up.
#[test]
fn a_page_of_a_list_is_all_that_is_read() {
    needs!(Postgres);
    let (database, folder) = (Database::new(), Folder::new());
    let (dsn, tenants) = (database.bare_dsn(), folder.name("tenants"));
    fs::write(&tenants, line("ann", "token-of-ann")).expect("a file");
    let start = |args: &[&str]| {
        let words = ["serve", "--engine", "echo", "--store", &dsn];
        let launch = Launch::new(&[&words, LISTEN, args].concat());
        Node::launch(launch.secret("PGPASSWORD", PASSWORD))
    };
    let (node, open) = (start(&["--tenants", &tenants]), start(&[]));
    let say = |talk: Result<Talk, Status>| {
        let mut talk = talk.expect("attached");
        talk.send(submit("r", "hello"));
        assert_eq!(talk.wait_done("r"), "ok");
        talk.finish();
    };
    let ids = ["a", "_", "B"];
    ids.iter().for_each(|id| say(node.attach_with(Some("token-of-ann"), attach(id))));
    say(open.try_attach(attach("of nobody")));
    let columns =
        "title, folder, created_ms, changed, last, start, rows, head, writer, batch, word_rules";
    database.query(&format!(
        "UPDATE duologue.sessions SET updated_ms = 7; \
         INSERT INTO duologue.sessions(id, updated_ms, turns, dropped_turns, {columns}) \
         SELECT it.id, it.at, 9223372036854775807, -1, {columns} FROM duologue.sessions s, \
         (VALUES ('tenant:bob/a', 8), ('tenant:ann/old', 6), ('tenant:annette/a', 8)) AS it(id, at) \
         WHERE s.id = 'of nobody'"
    ));
    let get = |node: &Node, path: &str| -> Value {
        let url = format!("http://{}/v1/sessions{path}", node.address);
        let body = wait(async {
            let sent = http().get(url).bearer_auth("token-of-ann").send().await;
            sent.expect("an answer").text().await.expect("a body")
        });
        serde_json::from_str(&body).expect("JSON")
    };
    let mut token = String::new();
    // By their bytes, whatever the database's collation is.
    for id in ids {
        let page = get(&node, &format!("?page_size=1&page_token={token}"));
        assert_eq!(page["sessions"][0]["sessionId"], id, "{page}");
        assert_eq!(page["sessions"][0]["turns"], 1);
        token = page["nextPageToken"].as_str().unwrap_or_default().to_owned();
        let one = get(&node, &format!("/{id}"));
        assert_eq!(one["title"], "hello", "{one}");
        assert_ne!(one["bytes"], "0");
        if id == "_" {
            database.query("DELETE FROM duologue.sessions WHERE id = 'tenant:ann/old'");
        }
    }
    assert_eq!(token, "");
    let all = get(&open, "");
    assert_eq!(all["sessions"].as_array().map(Vec::len), Some(1), "{all}");
    assert_eq!(all["sessions"][0]["sessionId"], "of nobody");
}

#[test]
fn the_conversation_of_a_node_that_dies_goes_on_at_another_one() {
    needs!(Postgres);
    let database = Database::new();
    let answer = vec![Step::Text("a part".to_owned()), Step::Stall];
    let provider = Provider::start(vec![answer, says("the second answer")]);
    let base_url = provider.base_url();
    let engine = ["--engine", "openai", "--model", "scripted", "--base-url", &base_url];
    let (one, other) = (node(&database, &engine), node(&database, &engine));
    let mut talk = one.attach("s");
    talk.send(submit("r", "hello"));
    let shown = talk.wait_event("ChatTextPatch").ordinal().expect("an event");
    one.server.signal(Signal::KILL);
    talk.wait_end().expect_err("it was cut");
    let mut talk = attached(&other, "s");
    let snapshot = talk.wait("a snapshot", Frame::is_snapshot);
    assert_eq!(snapshot.messages()[1].1, "a part", "nothing that was shown is lost");
    let at: u64 = snapshot.text("/snapshot/snapshotOrdinal").parse().expect("a number");
    assert!(at > shown, "the end of the run that was cut off is an event");
    assert_eq!(metrics(&other)["duologue_lease_takeovers_total"], 1.0);
    // The request is known to have run.
    talk.send(submit("r", "hello"));
    assert_eq!(talk.wait_done("r"), "stopped");
    talk.send(submit("r2", "again"));
    assert_eq!(talk.wait_done("r2"), "ok");
    assert_eq!(provider.requests(), 2);
    check_log(&database);
}

#[test]
fn a_node_that_was_stopped_writes_nothing_more() {
    needs!(Postgres);
    let database = Database::new();
    let first = vec![
        Step::Text("before ".to_owned()),
        Step::Gate,
        Step::Text("after".to_owned()),
        Step::Finish("stop", None),
        Step::Done,
    ];
    let provider = Provider::start(vec![first, says("the second answer")]);
    let base_url = provider.base_url();
    let engine = ["--engine", "openai", "--model", "scripted", "--base-url", &base_url];
    let (one, other) = (node(&database, &engine), node(&database, &engine));
    let mut old = one.attach("s");
    old.send(submit("r", "hello"));
    old.wait_event("ChatTextPatch");
    one.server.signal(Signal::STOP);
    let mut new = attached(&other, "s");
    new.send(submit("r2", "again"));
    assert_eq!(new.wait_done("r2"), "ok");
    let log = database.query("SELECT count(*) FROM duologue.log");
    one.server.signal(Signal::CONT);
    provider.open_gate();
    let ended = old.wait_end().expect_err("it holds nothing any more");
    assert_eq!(ended.code(), Code::Unavailable, "{ended}");
    assert!(
        !old.frames().iter().any(|frame| frame.ends("r")),
        "nothing is shown that is not stored"
    );
    assert_eq!(database.query("SELECT count(*) FROM duologue.log"), log);
    eventually("no run is counted that was given up", || {
        (metrics(&one)["duologue_runs"] == 0.0).then_some(())
    });
    // It passes on what it is asked for.
    let mut passed_on = attached(&one, "s");
    passed_on.send(submit("r3", "and again"));
    new.wait("the request of the other node's client", |frame| frame.id() == "r3");
    check_log(&database);
}

/// The node runs all the time, and only its database is away from it, for longer than its leases are valid.
#[test]
fn a_node_that_was_cut_off_lets_go_of_what_another_one_has_taken() {
    needs!(Postgres);
    let database = Database::new();
    let proxy = Proxy::start(database.port);
    let providers = [Provider::start(vec![says("one")]), Provider::start(vec![says("two")])];
    let urls = providers.each_ref().map(Provider::base_url);
    let engine = |url| ["--engine", "openai", "--model", "scripted", "--base-url", url];
    let cut_off = node_at(&database.bare_dsn_at(proxy.port), &engine(&urls[0]));
    let other = node(&database, &engine(&urls[1]));
    let (mut kept, mut here) = (cut_off.attach("kept"), cut_off.attach("s"));
    here.send(submit("r", "hello"));
    assert_eq!(here.wait_done("r"), "ok");
    proxy.cut();
    database.query(
        "UPDATE duologue.processes SET heartbeat_at = heartbeat_at - interval '1 minute' \
         WHERE id IN (SELECT process FROM duologue.leases)",
    );
    let mut there = attached(&other, "s");
    there.send(submit("r2", "again"));
    assert_eq!(there.wait_done("r2"), "ok");
    proxy.heal();
    let ended = here.wait_end().expect_err("another node has it");
    assert_eq!(ended.code(), Code::Unavailable, "{ended}");
    // It passes on what it is asked for, and runs nothing again.
    let mut back = attached(&cut_off, "s");
    assert_eq!(back.wait("a snapshot", Frame::is_snapshot).messages().len(), 4);
    back.send(submit("r2", "again"));
    assert_eq!(back.wait_done("r2"), "ok");
    assert_eq!(providers.each_ref().map(Provider::requests), [1, 1]);
    // What nobody has taken goes on there.
    kept.send(snapshot("q"));
    assert_eq!(kept.wait_done("q"), "ok");
}

/// Another node holds the conversation, and this one has not noticed yet.
#[test]
fn a_node_that_has_lost_a_conversation_asks_no_provider() {
    needs!(Postgres);
    let database = Database::new();
    let provider = Provider::start(vec![says("one"), says("two")]);
    let base_url = provider.base_url();
    let engine = ["--engine", "openai", "--model", "scripted", "--base-url", &base_url];
    let node = node(&database, &engine);
    let mut talk = node.attach("s");
    talk.send(submit("r", "hello"));
    assert_eq!(talk.wait_done("r"), "ok");
    database.query(
        "UPDATE duologue.leases SET fence = nextval('duologue.fences'), token = 't', process = 'p'",
    );
    talk.send(submit("r2", "again"));
    let ended = talk.wait_end().expect_err("another process has it");
    assert_eq!(provider.requests(), 1, "what is not stored is not run");
    assert_eq!(ended.code(), Code::Unavailable, "{ended}");
    assert!(ended.message().contains("another process took over"), "{ended}");
    assert!(!ended.message().contains("goes on"), "{ended}");
}

#[test]
fn stored_conversations_can_be_asked_for_later_while_the_database_is_away() {
    needs!(Postgres);
    let database = Database::new();
    let proxy = Proxy::start(database.port);
    let node = node_at(&database.bare_dsn_at(proxy.port), ECHO);
    let mut talk = node.attach("s");
    talk.send(submit("r", "hello"));
    assert_eq!(talk.wait_done("r"), "ok");
    proxy.cut();
    let session_id = || "s".to_owned();
    let mut client = node.client();
    let refused = wait(async {
        let fork = ForkRequest { session_id: session_id(), new_session_id: "t".to_owned() };
        [
            client.list(ListRequest::default()).await.err(),
            client.get(GetRequest { session_id: session_id() }).await.err(),
            client.export(ExportRequest { session_id: session_id() }).await.err(),
            client.fork(fork).await.err(),
            client.delete(DeleteRequest { session_id: session_id() }).await.err(),
        ]
    });
    let attached = node.try_attach(attach("another")).err();
    for refused in refused.into_iter().chain([attached]) {
        let refused = refused.expect("the database is away");
        assert_eq!(refused.code(), Code::Unavailable, "{refused}");
        assert!(!refused.message().contains("127.0.0.1"), "{refused}");
    }
    let url = format!("http://{}/v1/sessions", node.address);
    assert_eq!(wait(http().get(url).send()).expect("an answer").status(), 503);
    proxy.heal();
    talk.send(submit("r2", "again"));
    assert_eq!(talk.wait_done("r2"), "ok", "it was not deleted");
}

/// As long as the node may come back its conversation is waited for, as an attach does.
#[test]
fn a_conversation_of_a_node_that_was_stopped_is_deleted_once_its_lease_ends() {
    needs!(Postgres);
    let database = Database::new();
    let (one, other) = (node(&database, ECHO), node(&database, ECHO));
    let mut talk = one.attach("s");
    talk.send(submit("r", "hello"));
    assert_eq!(talk.wait_done("r"), "ok");
    one.server.signal(Signal::STOP);
    let mut client = other.client();
    wait(client.delete(DeleteRequest { session_id: "s".to_owned() })).expect("deleted");
    assert_eq!(database.query("SELECT count(*) FROM duologue.sessions"), "0");
    one.server.signal(Signal::CONT);
}

/// Set at the end, also by a panic.
struct Ended<'a>(&'a AtomicBool);

impl Drop for Ended<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Clients that lose their conversation attach again at once, at any node.
#[test]
fn a_conversation_is_deleted_also_while_clients_come_back_to_it() {
    needs!(Postgres);
    const DELETIONS: usize = 10;
    let database = Database::new();
    let nodes = [node(&database, ECHO), node(&database, ECHO)];
    let has_ended = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let _ended = Ended(&has_ended);
        for node in &nodes {
            let has_ended = &has_ended;
            scope.spawn(move || {
                while !has_ended.load(Ordering::Relaxed) {
                    // What it is told while the conversation is deleted is not the question here.
                    node.try_attach(attach("s")).ok();
                }
            });
        }
        let deletions = (0..DELETIONS).map(|number| {
            let mut talk = attached(&nodes[number % 2], "s");
            talk.send(submit(&format!("r{number}"), "hello"));
            assert_eq!(talk.wait_done(&format!("r{number}")), "ok");
            let mut client = nodes[number / 2 % 2].client();
            let deleted = client.delete(DeleteRequest { session_id: "s".to_owned() });
            wait(deleted).err()
        });
        let refused: Vec<_> = deletions.flatten().collect();
        assert!(refused.is_empty(), "{refused:?}");
    });
}

#[test]
fn nodes_that_are_restarted_in_turn_lose_nothing() {
    needs!(Postgres);
    const ROUNDS: usize = 3;
    let database = Database::new();
    let mut nodes: Vec<_> = (0..3).map(|_| node(&database, ECHO)).collect();
    let sessions = ["a", "b", "c"];
    let mut asked = 0;
    for round in 0..ROUNDS {
        for session in sessions {
            let mut talk = attached(&nodes[asked % nodes.len()], session);
            let id = format!("r{round}");
            talk.send(submit(&id, "hello"));
            assert_eq!(talk.wait_done(&id), "ok");
            talk.finish();
            asked += 1;
        }
        let mut old = std::mem::replace(&mut nodes[round], node(&database, ECHO));
        old.server.signal(Signal::TERM);
        assert_eq!(old.server.exit_status().code(), Some(0));
    }
    for session in sessions {
        let mut talk = attached(&nodes[0], session);
        let messages = talk.wait("a snapshot", Frame::is_snapshot);
        let answers: Vec<_> =
            messages.messages().into_iter().filter(|it| it.0 == "assistant").collect();
        assert_eq!(answers.len(), ROUNDS);
        talk.send(submit("r0", "hello"));
        assert_eq!(talk.wait_done("r0"), "ok", "it is known, and not run again");
    }
    let turns = database.query("SELECT sum(turns) FROM duologue.sessions");
    assert_eq!(turns, (sessions.len() * ROUNDS).to_string());
}

#[test]
fn a_client_comes_back_to_its_run_at_a_node_that_ends() {
    needs!(Postgres);
    let database = Database::new();
    let call = calls(&[("c", "get_time", "{}")]);
    let provider = Provider::start(vec![call, says("It is noon."), says("the second answer")]);
    let base_url = provider.base_url();
    let engine = ["--engine", "openai", "--model", "scripted", "--base-url", &base_url];
    let (mut one, other) = (node(&database, &engine), node(&database, &engine));
    let with_tools =
        |attach: Attach| Attach { extensions: vec!["client-tools".to_owned()], ..attach };
    let mut idle = one.attach("idle");
    let mut talk = one.try_attach(with_tools(attach("s"))).expect("attached");
    talk.send(declare("tools"));
    talk.send(submit("r", "What time is it?"));
    let shown = talk.wait_event("FrontendToolCallRequested").ordinal().expect("an event");
    drop(talk);
    one.server.signal(Signal::TERM);
    assert_eq!(idle.wait_end().expect_err("handed over").code(), Code::Unavailable);
    // By way of the other node, and at the node itself.
    let mut talk = other.try_attach(with_tools(since("s", shown))).expect("attached");
    let mut beside = one.attach("s");
    beside.send(submit("next", "And now?"));
    beside.send(snapshot("after"));
    assert_eq!(beside.wait_done("after"), "ok");
    talk.send(result("result", "c", json!({ "time": "12:00" })));
    assert_eq!(talk.wait_done("r"), "ok");
    for ended in [talk.wait_end(), beside.wait_end()] {
        assert_eq!(ended.expect_err("handed over").code(), Code::Unavailable);
    }
    assert!(!beside.frames().iter().any(|frame| frame.id() == "next"), "it is for another node");
    assert_eq!(one.server.exit_status().code(), Some(0));
    let mut talk = other.attach("s");
    talk.send(submit("next", "And now?"));
    assert_eq!(talk.wait_done("next"), "ok");
    assert_eq!(finished_text(&talk.frames(), "next"), "the second answer");
    check_log(&database);
}

#[test]
fn nodes_that_are_asked_at_the_same_moment_run_one_conversation() {
    needs!(Postgres);
    let database = Database::new();
    let nodes: Vec<_> = (0..3).map(|_| node(&database, ECHO)).collect();
    for round in 0..4 {
        let session = format!("s{round}");
        let mut talks: Vec<_> = std::thread::scope(|scope| {
            let ask = |node| {
                let session = &session;
                scope.spawn(move || attached(node, session))
            };
            let asking: Vec<_> = nodes.iter().map(ask).collect();
            asking.into_iter().map(|it| it.join().expect("attached")).collect()
        });
        for (number, talk) in talks.iter_mut().enumerate() {
            let id = format!("r{number}");
            talk.send(submit(&id, "hello"));
            assert_eq!(talk.wait_done(&id), "ok");
        }
        let turns: BTreeSet<_> =
            (0..3).map(|it| finished_text(&talks[2].frames(), &format!("r{it}"))).collect();
        assert_eq!(turns.len(), 3, "{turns:?}");
    }
    let held: u64 = nodes.iter().map(|node| node.info().conversations).sum();
    assert_eq!(held, 4);
}

#[test]
fn a_restart_of_the_database_costs_no_conversation() {
    needs!(Postgres);
    let mut server = PostgresServer::start();
    let database = server.database();
    let node = node(&database, ECHO);
    let mut talk = node.attach("s");
    talk.send(submit("r", "hello"));
    assert_eq!(talk.wait_done("r"), "ok");
    server.restart("INT");
    eventually("the database answers", || database.try_query("SELECT 1"));
    talk.send(submit("r2", "again"));
    assert_eq!(talk.wait_done("r2"), "ok");
    talk.finish();
    check_log(&database);
}
