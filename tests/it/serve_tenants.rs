//! Who may use a node, and how much of it.

use crate::frames::{Frame, submit};
use crate::process::eventually;
use crate::provider::{Provider, Step};
use crate::serve_node::{LISTEN, Node, attach, http, wait, with_root};
use crate::serve_watched::metrics;
use crate::server::{Folder, KEY, Launch};
use data_encoding::HEXLOWER;
use duologue::protocol::proto::fleet::ListRequest;
use ring::digest::{SHA256, digest};
use rustix::process::Signal;
use std::fs;
use tonic::{Code, Request};

/// The line of a tenant with this token.
pub(crate) fn line(tenant: &str, token: &str) -> String {
    format!("{tenant} {}\n", hash(token.as_bytes()))
}

/// The hash of a token or a certificate, as the file of tenants has it.
pub(crate) fn hash(bytes: &[u8]) -> String {
    HEXLOWER.encode(digest(&SHA256, bytes).as_ref())
}

/// The ids that a tenant's list has.
fn listed(node: &Node, token: &str) -> Vec<String> {
    let mut client = node.client();
    let mut request = Request::new(ListRequest::default());
    let value = format!("Bearer {token}").parse().expect("a value");
    request.metadata_mut().insert("authorization", value);
    let list = wait(async move { client.list(request).await }).expect("a list").into_inner();
    list.sessions.into_iter().map(|it| it.session_id).collect()
}

#[test]
fn tenants_see_their_own_conversations_alone() {
    let folder = Folder::new();
    let tenants = folder.name("tenants");
    fs::write(&tenants, line("ann", "token-of-ann") + &line("bob", "token-of-bob"))
        .expect("a file");
    let store = folder.name("store.db");
    let node = Node::start(&["--tenants", &tenants, "--store", &store, "--idle-ms", "1"]);
    for (tenant, turn) in [("ann", "hello from ann"), ("bob", "hello from bob")] {
        let token = format!("token-of-{tenant}");
        // The same id is another conversation.
        let mut talk = node.attach_with(Some(&token), attach("s")).expect("attached");
        let hello = talk.next().expect("hello").expect("hello");
        assert_eq!(hello.text("/sessionId"), "s");
        assert_eq!(talk.wait("a snapshot", Frame::is_snapshot).messages().len(), 0);
        talk.send(submit("r", turn));
        assert_eq!(talk.wait_done("r"), "ok");
        let frames = talk.finish();
        assert!(!frames.iter().any(|frame| frame.0.to_string().contains("tenant:")));
    }
    eventually("they left memory", || {
        let metrics = wait(async {
            let url = format!("http://{}/metrics", node.address);
            let sent = http().get(url).bearer_auth("token-of-ann").send().await.expect("an answer");
            sent.text().await.expect("a body")
        });
        assert!(metrics.contains("duologue_attached_total "), "{metrics}");
        metrics.contains("duologue_conversations 0\n").then_some(())
    });
    for tenant in ["ann", "bob"] {
        let token = format!("token-of-{tenant}");
        assert_eq!(listed(&node, &token), ["s"]);
        let mut talk = node.attach_with(Some(&token), attach("s")).expect("attached");
        let snapshot = talk.wait("a snapshot", Frame::is_snapshot);
        assert_eq!(snapshot.messages()[0].1, format!("hello from {tenant}"));
    }
    let refused =
        |token: Option<&str>| node.attach_with(token, attach("s")).err().map(|it| it.code());
    assert_eq!(refused(None), Some(Code::Unauthenticated));
    assert_eq!(refused(Some("another")), Some(Code::Unauthenticated));
    // No id leads to the conversation of another tenant, or of none.
    let claimed = attach("tenant:bob/s");
    let mut talk = node.attach_with(Some("token-of-ann"), claimed).expect("attached");
    assert_eq!(talk.wait("a snapshot", Frame::is_snapshot).messages().len(), 0);
    let open = Node::start(&["--store", &store]);
    assert_eq!(
        open.try_attach(attach("tenant:ann/s")).err().map(|it| it.code()),
        Some(Code::InvalidArgument)
    );
}

/// Probes and collectors of metrics have no token, and what they see is of no tenant.
#[test]
fn whoever_watches_a_node_needs_no_token() {
    use tonic_health::pb::health_check_response::ServingStatus;
    use tonic_health::pb::{HealthCheckRequest, health_client::HealthClient};
    let folder = Folder::new();
    let tenants = folder.name("tenants");
    fs::write(&tenants, line("ann", "token-of-ann")).expect("a file");
    let node = Node::start(&["--tenants", &tenants]);
    node.attach_with(Some("token-of-ann"), attach("the session")).expect("attached");
    let mut health = HealthClient::new(node.channel());
    let answer = wait(async move { health.check(HealthCheckRequest::default()).await });
    assert_eq!(answer.expect("an answer").into_inner().status(), ServingStatus::Serving);
    let get = |path: &str| {
        let url = format!("http://{}{path}", node.address);
        wait(async {
            let answer = http().get(url).send().await.expect("an answer");
            (answer.status().as_u16(), answer.text().await.expect("a body"))
        })
    };
    let (status, metrics) = get("/metrics");
    assert_eq!(status, 200);
    assert!(metrics.contains("duologue_attached_total 1\n"), "{metrics}");
    assert!(!metrics.contains("ann") && !metrics.contains("session"), "{metrics}");
    for path in ["/health/live", "/health/ready"] {
        assert_eq!(get(path), (200, "ok\n".to_owned()));
    }
    assert_eq!(get("/v1/info").0, 401);
    assert_eq!(get("/v1/sessions").0, 401);
}

/// Together with the name of the tenant its id is too long for the store.
#[test]
fn a_long_id_leads_to_no_conversation_of_another_tenant() {
    let folder = Folder::new();
    let tenants = folder.name("tenants");
    fs::write(&tenants, line("ann", "token-of-ann") + &line("bob", "token-of-bob"))
        .expect("a file");
    let node = Node::start(&["--store", &folder.name("store.db"), "--tenants", &tenants]);
    let id = "x".repeat(1010);
    let mut talk = node.attach_with(Some("token-of-bob"), attach(&id)).expect("attached");
    talk.send(submit("r", "hello"));
    assert_eq!(talk.wait_done("r"), "ok");
    let status = |token: &str, path: &str| {
        let url = format!("http://{}/v1/sessions/{path}", node.address);
        wait(async {
            let sent = http().get(url).bearer_auth(token).send().await.expect("an answer");
            sent.status().as_u16()
        })
    };
    for what in ["", "/export"] {
        assert_eq!(status("token-of-bob", &format!("{id}{what}")), 200);
        assert_eq!(status("token-of-ann", &format!("tenant:bob%2F{id}{what}")), 400);
    }
}

#[test]
fn tenants_are_read_again_when_the_node_is_told() {
    let folder = Folder::new();
    let tenants = folder.name("tenants");
    fs::write(&tenants, line("ann", "old")).expect("a file");
    let node = Node::launch(Launch::new(
        &[&["serve", "--engine", "echo", "--log-level", "info", "--tenants", &tenants], LISTEN]
            .concat(),
    ));
    node.attach_with(Some("old"), attach("s")).expect("attached");
    fs::write(&tenants, line("ann", "new")).expect("a file");
    node.server.signal(Signal::HUP);
    node.server.wait_log("read again");
    node.attach_with(Some("new"), attach("s")).expect("attached");
    let refused = node.attach_with(Some("old"), attach("s")).err().map(|it| it.code());
    assert_eq!(refused, Some(Code::Unauthenticated));
    // A list that can't be used changes nothing.
    fs::write(&tenants, "ann\n").expect("a file");
    node.server.signal(Signal::HUP);
    node.server.wait_log("goes on as before");
    node.attach_with(Some("new"), attach("s")).expect("attached");
}

#[test]
fn a_node_is_open_to_its_own_machine_alone() {
    let check = |args: &[&str], why: &str| {
        let mut server = Launch::new(&[&["serve", "--engine", "echo"], args].concat()).start();
        assert_eq!(server.exit_status().code(), Some(2), "{args:?}");
        server.wait_log(why);
    };
    check(&["--listen", "0.0.0.0:0"], "--tenants");
    check(&["--listen", "127.0.0.1:0", "--tenants", "/none"], "can't be read");
    check(&["--listen", "127.0.0.1:0", "--advertise", "http://127.0.0.1:1"], "PostgreSQL");
    let insecure = ["serve", "--engine", "echo", "--listen", "0.0.0.0:0", "--insecure"];
    drop(Node::launch(Launch::new(&insecure)));
    let node = Node::start(&[]);
    let status = |name: &str, value: &str| {
        let url = format!("http://{}/v1/info", node.address);
        wait(async {
            http().get(url).header(name, value).send().await.expect("an answer").status().as_u16()
        })
    };
    assert_eq!(status("origin", "http://evil.example"), 401);
    assert_eq!(status("host", "evil.example"), 401);
    assert_eq!(status("accept", "*/*"), 200);
}

#[test]
fn a_node_speaks_tls() {
    let data = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/tls/");
    let file = |name: &str| format!("{data}{name}");
    let (chain, key) = (file("server.pem"), file("server.key"));
    let node = Node::start(&["--tls-cert", &chain, "--tls-key", &key]);
    let port = node.address.rsplit_once(':').expect("a port").1;
    let authority = fs::read(file("ca.pem")).expect("a certificate");
    let answer = wait(async {
        let client = with_root(Some(&authority));
        let sent = client.get(format!("https://localhost:{port}/v1/info")).send().await;
        sent.expect("an answer").text().await.expect("a body")
    });
    assert!(answer.contains("duologue"), "{answer}");
}

#[test]
fn calls_of_whom_a_node_does_not_know_are_counted() {
    let folder = Folder::new();
    let tenants = folder.name("tenants");
    fs::write(&tenants, line("ann", "token-of-ann")).expect("a file");
    let node = Node::start(&["--tenants", &tenants]);
    for token in [None, Some("token-of-eve")] {
        let refused = node.attach_with(token, attach("s")).err().expect("refused");
        assert_eq!(refused.code(), Code::Unauthenticated);
    }
    assert_eq!(metrics(&node)["duologue_unauthenticated_total"], 2.0);
    node.server.wait_log("a call was not served");
    node.server.wait_log("peer=");
}

#[test]
fn the_streams_of_a_tenant_that_is_taken_out_end() {
    let folder = Folder::new();
    let tenants = folder.name("tenants");
    let bob = line("bob", "token-of-bob");
    fs::write(&tenants, line("ann", "token-of-ann") + &bob).expect("a file");
    let node = Node::start(&["--tenants", &tenants, "--log-level", "info"]);
    let talk = |name: &str| {
        node.attach_with(Some(&format!("token-of-{name}")), attach("s")).expect("attached")
    };
    let (mut gone, mut stays) = (talk("ann"), talk("bob"));
    fs::write(&tenants, &bob).expect("a file");
    node.server.signal(Signal::HUP);
    let ended = gone.wait_end().expect_err("it is not served any more");
    assert_eq!(ended.code(), Code::Unavailable, "{ended}");
    let again = node.attach_with(Some("token-of-ann"), attach("s")).err().expect("refused");
    assert_eq!(again.code(), Code::Unauthenticated);
    stays.send(submit("r", "hello"));
    assert_eq!(stays.wait_done("r"), "ok");
}

#[test]
fn limits_say_what_to_do() {
    let answer = || vec![Step::Text("a part".to_owned()), Step::Stall];
    let provider = Provider::start(vec![answer(), answer()]);
    let base_url = provider.base_url();
    let engine = ["serve", "--engine", "openai", "--model", "scripted", "--base-url", &base_url];
    let limits = ["--max-conversations", "2", "--max-runs", "1"];
    let launch = Launch::new(&[&engine, LISTEN, &limits].concat());
    let node = Node::launch(launch.secret("DUOLOGUE_API_KEY", KEY));
    let (mut one, mut other) = (node.attach("one"), node.attach("other"));
    let refused = node.try_attach(attach("third")).err().expect("refused");
    assert_eq!(refused.code(), Code::ResourceExhausted);
    assert!(refused.message().contains("--max-conversations"), "{refused}");
    one.send(submit("r", "hello"));
    one.wait_event("ChatTextPatch");
    other.send(submit("r", "hello"));
    assert_eq!(other.wait_done("r"), "failed");
    assert!(other.frames().iter().any(|frame| frame.error() == Some("resource_exhausted")));
    one.send(r#"{"requestId":"c","cancel":{}}"#);
    assert_eq!(one.wait_done("r"), "stopped");
    // Nothing was run, so the same request may come again.
    other.send(submit("r", "hello"));
    other.wait_event("ChatTextPatch");
}
