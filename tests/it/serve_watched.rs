//! A node as whoever runs it sees it: metrics, the log, `doctor`.

use crate::frames::submit;
use crate::once::Once;
use crate::provider::{Provider, Step, says};
use crate::serve_node::{LISTEN, Node, attach, http, wait, with_provider};
use crate::serve_tenants::line;
use crate::server::{Folder, KEY, Launch};
use rustix::process::Signal;
use std::collections::BTreeMap;
use std::fs;
use std::process::Command;

/// The metrics of a node: what stands before the value of each line, and the value.
pub(crate) fn metrics(node: &Node) -> BTreeMap<String, f64> {
    let text = wait(async {
        let url = format!("http://{}/metrics", node.address);
        let sent = http().get(url).send().await.expect("an answer");
        sent.text().await.expect("a body")
    });
    let (mut values, mut kind) = (BTreeMap::new(), String::new());
    for line in text.lines() {
        if let Some(words) = line.strip_prefix("# TYPE ") {
            kind = words.split(' ').next().expect("a name").to_owned();
        } else if !line.starts_with("# HELP ") {
            let (name, value) = line.rsplit_once(' ').expect("a value");
            assert!(name.starts_with(&kind), "{line} after {kind}");
            values.insert(name.to_owned(), value.parse().expect("a number"));
        }
    }
    values
}

#[test]
fn metrics_count_calls_tokens_and_batches() {
    let failing = vec![Step::Status(400, Vec::new(), "{}".to_owned())];
    let provider = Provider::start(vec![says("hello"), failing]);
    let folder = Folder::new();
    let node = with_provider(&provider, &["--store", &folder.name("store.db")]);
    let before = metrics(&node);
    assert_eq!(before["duologue_runs_total"], 0.0);
    let mut talk = node.attach("s");
    talk.send(submit("r", "hello"));
    assert_eq!(talk.wait_done("r"), "ok");
    talk.send(submit("r2", "hello"));
    assert_eq!(talk.wait_done("r2"), "failed");
    let found = metrics(&node);
    let labels = format!(r#"engine="openai",provider="{}""#, provider.address());
    let of_provider = |name: &str, more: &str| {
        let name = format!("duologue_{name}{{{labels}{more}}}");
        *found.get(&name).unwrap_or_else(|| panic!("{name} in {found:#?}"))
    };
    assert_eq!(of_provider("provider_calls_total", r#",end="finished""#), 1.0);
    assert_eq!(of_provider("provider_calls_total", r#",end="failed""#), 1.0);
    assert_eq!(of_provider("provider_first_delta_seconds_count", ""), 1.0);
    assert_eq!(of_provider("provider_call_seconds_count", ""), 2.0);
    assert_eq!(of_provider("provider_call_seconds_bucket", r#",le="+Inf""#), 2.0);
    assert_eq!(of_provider("tokens_total", r#",kind="input""#), 3.0);
    assert_eq!(of_provider("tokens_total", r#",kind="output""#), 2.0);
    assert_eq!(found["duologue_runs_total"], 2.0);
    assert_eq!(found["duologue_clients"], 1.0);
    assert!(found["duologue_deltas_total"] >= 1.0);
    assert!(found["duologue_store_batches_total"] >= 2.0, "{found:#?}");
    assert!(found["duologue_store_transactions_total"] >= 2.0);
    assert_eq!(found["duologue_store_waiting"], 0.0);
    assert_eq!(
        found["duologue_store_transaction_seconds_count"],
        found["duologue_store_transactions_total"]
    );
}

#[test]
fn a_cost_is_counted_where_prices_are_known() {
    let folder = Folder::new();
    let prices = folder.name("prices.json");
    let list = r#"{"currency":"USD","models":{"scripted":{"input":1000000,"output":1000000}}}"#;
    fs::write(&prices, list).expect("a file");
    let provider = Provider::start(vec![says("hello")]);
    let node = with_provider(&provider, &["--prices", &prices]);
    let mut talk = node.attach("s");
    talk.send(submit("r", "hello"));
    assert_eq!(talk.wait_done("r"), "ok");
    let found = metrics(&node);
    let cost = found.iter().find(|(name, _)| name.starts_with("duologue_cost_total{"));
    let (name, cost) = cost.expect("a cost");
    assert!(name.contains(r#"currency="USD""#) && *cost > 0.0, "{name} {cost}");
}

#[test]
fn each_line_of_the_log_names_its_conversation_and_its_request() {
    const PROMPT: &str = "correct horse battery staple";
    const ANSWER: &str = "purple monkey dishwasher";
    let provider = Provider::start(vec![says(ANSWER)]);
    let base_url = provider.base_url();
    let engine = ["serve", "--engine", "openai", "--model", "scripted", "--base-url", &base_url];
    let folder = Folder::new();
    let log = folder.name("log");
    let settings = ["--log-level", "trace", "--log-file", &log];
    let launch = Launch::new(&[&engine, LISTEN, &settings].concat());
    let mut node = Node::launch(launch.secret("DUOLOGUE_API_KEY", KEY));
    let mut talk = node.attach("the session");
    talk.send(submit("the-request", PROMPT));
    assert_eq!(talk.wait_done("the-request"), "ok");
    talk.finish();
    node.server.signal(rustix::process::Signal::TERM);
    node.server.wait_end();
    let log = fs::read_to_string(&log).expect("a log");
    let session = r#"conversation{session="the session" tenant=""}"#;
    for event in [
        "received a request",
        "a provider call starts",
        "an engine event",
        "the engine has answered",
    ] {
        let lines: Vec<_> = log.lines().filter(|line| line.contains(event)).collect();
        assert!(!lines.is_empty(), "{event}: {log}");
        let wrong = lines.iter().find(|line| !line.contains(session));
        assert_eq!(wrong, None, "the session");
        let of_run = lines.iter().filter(|line| line.contains(r#"request="the-request""#));
        assert!(of_run.count() >= 1, "{event}: {lines:?}");
    }
    for secret in [PROMPT, ANSWER, KEY] {
        assert!(!log.contains(secret), "{log}");
    }
}

/// A provider may repeat in its error what it was asked.
#[test]
fn the_log_has_no_words_of_a_provider() {
    const PROMPT: &str = "correct horse battery staple";
    let refuses = |status: u16| {
        let error = format!(r#"{{"error":{{"message":"invalid: \"content\":\"{PROMPT}\""}}}}"#);
        vec![Step::Status(status, Vec::new(), error)]
    };
    let provider = Provider::start(vec![refuses(503), refuses(400)]);
    let folder = Folder::new();
    let log = folder.name("log");
    let args = ["--log-level", "debug", "--log-file", &log, "--retries", "1"];
    let mut node = with_provider(&provider, &args);
    let mut talk = node.attach("s");
    talk.send(submit("r", PROMPT));
    assert_eq!(talk.wait_done("r"), "failed");
    let frames = talk.finish();
    let error = frames.iter().find(|frame| frame.error().is_some()).expect("an error");
    assert!(error.0.to_string().contains("invalid: "), "its client reads it: {error:?}");
    node.server.signal(Signal::TERM);
    node.server.wait_end();
    let log = fs::read_to_string(&log).expect("a log");
    for line in ["attempt 1 of 2 failed", "the engine has failed"] {
        assert!(log.contains(line), "{line}: {log}");
    }
    assert!(!log.contains(PROMPT) && !log.contains("invalid: "), "{log}");
}

fn doctor(args: &[&str]) -> (i32, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_duologue"));
    command.arg("doctor").args(args).env_remove("http_proxy");
    let mut once = Once::start(command);
    once.close_stdin();
    let ended = once.finish();
    (ended.status, ended.stdout)
}

#[test]
fn doctor_checks_a_node() {
    let folder = Folder::new();
    let name = |name: &str| folder.name(name);
    let [tenants, token, wrong] = ["tenants", "token", "wrong"].map(name);
    // With the byte order mark that some editors write.
    fs::write(&tenants, format!("\u{feff}{}", line("ann", "token-of-ann"))).expect("a file");
    fs::write(&token, "\u{feff}token-of-ann\n").expect("a file");
    fs::write(&wrong, "another\n").expect("a file");
    let store = folder.name("store.db");
    let mut node = Node::start(&["--tenants", &tenants, "--store", &store]);
    let url = format!("http://{}", node.address);
    let checked = |line: &str| {
        let (status, found) = doctor(&["--node", &url, "--token-file", &token]);
        assert!(status == 0 && found.contains(line), "{line}: {found}");
    };
    // Also before there is a store.
    checked("ok     store: the node can list its conversations\n");
    let talk = node.attach_with(Some("token-of-ann"), attach("s")).expect("attached");
    let (status, well) = doctor(&["--node", &url, "--token-file", &token]);
    for line in [
        format!("ok     node: {url}/ takes clients\n"),
        "ok     token: the node takes it".to_owned(),
        format!("ok     version: {}\n", env!("CARGO_PKG_VERSION")),
        "ok     load: 1 conversations in memory, 0 runs, 1 clients\n".to_owned(),
        "ok     store: the node can list its conversations\n".to_owned(),
    ] {
        assert!(status == 0 && well.contains(&line), "{line}: {well}");
    }
    let check = |args: &[&str], expected: &str| {
        let (status, found) = doctor(&[&["--node"], args].concat());
        assert!(status == 1 && found.contains(expected), "{expected}: {found}");
        assert!(!found.contains("token-of-ann"));
    };
    check(&[&url], "wrong  token: the node serves tenants alone");
    check(&[&url, "--token-file", &wrong], "wrong  token: the node does not know the token");
    check(&[&url, "--token-file", "/none"], "wrong  node: --token-file: /none can't be read");
    check(&["ftp://x"], "wrong  node: --node ftp://x is no address");
    drop(talk);
    node.server.signal(rustix::process::Signal::TERM);
    node.server.wait_end();
    check(&[&url], "can't be reached");
    let open = Node::start(&[]);
    let (status, found) = doctor(&["--node", &format!("http://{}", open.address)]);
    assert!(status == 0 && found.contains("note   store: the node can't list"), "{found}");
}

#[test]
fn doctor_checks_a_node_over_tls() {
    let data = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/tls/");
    let file = |name: &str| format!("{data}{name}");
    let [chain, key, authority] = ["server.pem", "server.key", "ca.pem"].map(file);
    let node = Node::start(&["--tls-cert", &chain, "--tls-key", &key]);
    let port = node.address.rsplit_once(':').expect("a port").1;
    let url = format!("https://localhost:{port}");
    let (status, well) = doctor(&["--node", &url, "--node-ca", &authority]);
    assert!(status == 0 && well.contains("takes clients"), "{well}");
    let (status, unknown) = doctor(&["--node", &url]);
    assert!(status == 1 && unknown.contains("--node-ca"), "{unknown}");
}

/// Not with each conversation, and not where somebody has named the engine.
#[test]
fn a_node_without_a_provider_says_so_once() {
    let folder = Folder::new();
    let log = folder.name("log");
    let mut node = Node::launch(Launch::new(&[&["serve", "--log-file", &log], LISTEN].concat()));
    for session in ["a", "b"] {
        let url = format!("http://{}/v1/sessions/{session}/requests", node.address);
        wait(http().post(url).body(submit("r", "hi")).send()).expect("an answer");
    }
    node.server.signal(Signal::TERM);
    node.server.wait_end();
    let said = fs::read_to_string(log).expect("the log");
    assert_eq!(said.matches("the built-in echo engine answers").count(), 1, "{said}");
}
