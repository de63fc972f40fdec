//! Clients of conversations that another node of the fleet holds.

use crate::frames::submit;
use crate::postgres_server::Database;
use crate::provider::{Provider, Step};
use crate::serve_fleet::{ECHO, node};
use crate::serve_node::{attach, http, wait};
use duologue::protocol::proto::fleet::Attach;
use futures_util::future::join_all;
use rustix::process::Signal;
use tonic::Code;

/// A conversation with more viewers than a connection has streams holds up no other client.
#[test]
fn any_number_of_clients_is_passed_on() {
    needs!(Postgres);
    // More viewers than a connection between nodes has streams, some at a time.
    const GROUPS: usize = 22;
    const VIEWERS: usize = 50;
    let database = Database::new();
    let (one, other) = (node(&database, ECHO), node(&database, ECHO));
    let mut here = one.attach("s");
    here.send(submit("r", "hello"));
    assert_eq!(here.wait_done("r"), "ok");
    let attach_group = |_| {
        let client = other.client();
        let watch = move |_| {
            let mut client = client.clone();
            async move { client.watch(Attach { without_past: true, ..attach("s") }).await }
        };
        let all: Vec<_> = wait(join_all((0..VIEWERS).map(watch)));
        all.into_iter().collect::<Result<Vec<_>, _>>().expect("they are attached")
    };
    let viewers: Vec<_> = (0..GROUPS).map(attach_group).collect();
    let mut there = other.attach("s");
    there.send(submit("r2", "and again"));
    assert_eq!(there.wait_done("r2"), "ok");
    drop(viewers);
}

/// The conversation of a run that a client has asked for there is at another node.
#[test]
fn a_node_that_ends_lets_the_runs_of_its_clients_end() {
    needs!(Postgres);
    let database = Database::new();
    let gated =
        vec![Step::Text("a part".into()), Step::Gate, Step::Finish("stop", None), Step::Done];
    let provider = Provider::start(vec![gated]);
    let base_url = provider.base_url();
    let engine = ["--engine", "openai", "--model", "scripted", "--base-url", &base_url];
    let (one, mut other) = (node(&database, &engine), node(&database, &engine));
    let _here = one.attach("s");
    let (mut idle, mut there) = (other.attach("s"), other.attach("s"));
    there.send(submit("r", "hello"));
    there.wait_event("ChatTextPatch");
    other.server.signal(Signal::TERM);
    assert_eq!(idle.wait_end().expect_err("the node ends").code(), Code::Unavailable);
    provider.open_gate();
    assert_eq!(there.wait_done("r"), "ok");
    let ended = there.wait_end().expect_err("the node ends");
    assert_eq!(ended.code(), Code::Unavailable, "{ended}");
    assert!(ended.message().contains("attach again"), "{ended}");
    assert_eq!(other.server.exit_status().code(), Some(0));
}

/// As where the conversation is at the node itself.
#[test]
fn what_a_client_has_sent_by_way_of_another_node_before_it_left_is_done() {
    needs!(Postgres);
    let database = Database::new();
    let (one, other) = (node(&database, ECHO), node(&database, ECHO));
    let mut here = one.attach("s");
    here.send(submit("large", &"word ".repeat(100_000)));
    assert_eq!(here.wait_done("large"), "ok");
    let snapshots = (0..60).map(|number| format!(r#"{{"requestId":"q{number}","snapshot":{{}}}}"#));
    let body = snapshots.chain([submit("last", "hello")]).collect::<Vec<_>>().join("\n");
    let url = format!("http://{}/v1/sessions/s/requests", other.address);
    let answer = wait(http().post(url).body(body).send()).expect("an answer");
    assert_eq!(answer.status(), 200);
    drop(answer);
    assert_eq!(here.wait_done("last"), "ok");
}
