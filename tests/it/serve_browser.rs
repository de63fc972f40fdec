//! A browser that reads a conversation as server-sent events, through a web server that speaks to the node with a
//! token, as that of an application would.

use crate::process::DEADLINE;
use crate::serve_node::{Node, RUNTIME, http};
use crate::serve_tenants::line;
use crate::server::Folder;
use axum::Router;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{Request, State};
use axum::response::{Html, Response};
use axum::routing::{get, post};
use futures_util::stream;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use hyper_util::service::TowerToHyperService;
use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::{Value, json};
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use tokio::net::TcpListener;

/// The page connects, asks, and reports what it was shown up to the end. The browser connects again by itself.
const PAGE: &str = r#"<!doctype html><title>conversation</title><script>
const ordinals = [], ids = [];
let text = "", opened = 0, asked = false;
const source = new EventSource("/v1/sessions/s/events?since=0");
source.onopen = () => {
  opened += 1;
  if (asked) return;
  asked = true;
  const request = JSON.stringify({requestId: "r", submit: {prompt: "hello from a browser"}});
  fetch("/v1/sessions/s/requests", {method: "POST", body: request});
};
source.onmessage = ({data, lastEventId}) => {
  const frame = JSON.parse(data);
  if (frame.uiEvent) {
    ordinals.push(Number(frame.uiEvent.ordinal));
    ids.push(Number(lastEventId));
    if (frame.uiEvent.name == "ChatTextPatch") text += frame.uiEvent.payload.text;
  }
  if (frame.done) {
    source.close();
    const body = JSON.stringify({ordinals, ids, text, opened, status: frame.done.status});
    fetch("/result", {method: "POST", body});
  }
};
</script>"#;

/// Bytes of the first stream of events that the browser gets, before its connection is cut.
const FIRST_BYTES: usize = 1500;

const TOKEN: &str = "token-of-ann";

/// The web server of an application.
struct Web {
    node: String,
    results: mpsc::Sender<Value>,
    has_cut: AtomicBool,
    /// What the browser has said of where it was.
    last_ids: mpsc::Sender<String>,
}

async fn take_result(State(web): State<Arc<Web>>, body: Bytes) {
    web.results.send(serde_json::from_slice(&body).expect("JSON")).ok();
}

/// Passes a request on to the node.
async fn pass_on(State(web): State<Arc<Web>>, request: Request) -> Response {
    let (head, body) = request.into_parts();
    let path = head.uri.path_and_query().map_or("/", |it| it.as_str());
    let is_events = path.contains("/events");
    if let Some(id) = head.headers.get("last-event-id") {
        web.last_ids.send(id.to_str().expect("a number").to_owned()).ok();
    }
    let body = to_bytes(body, usize::MAX).await.expect("a body");
    let passed = http().request(head.method, format!("http://{}{path}", web.node));
    let passed = passed.headers(head.headers).bearer_auth(TOKEN).body(body);
    let answer = passed.send().await.expect("an answer");
    let (status, kind) = (answer.status(), answer.headers()["content-type"].clone());
    let is_cut = is_events && !web.has_cut.swap(true, Ordering::Relaxed);
    let left = if is_cut { FIRST_BYTES } else { usize::MAX };
    let chunks = stream::try_unfold((answer, left), async |(mut answer, left)| {
        if left == 0 {
            return Err(io::Error::other("the connection is cut"));
        }
        let chunk = answer.chunk().await.map_err(io::Error::other)?;
        Ok(chunk.map(|mut chunk| {
            chunk.truncate(left);
            let left = left - chunk.len();
            (chunk, (answer, left))
        }))
    });
    let response = Response::builder().status(status).header("content-type", kind);
    response.body(Body::from_stream(chunks)).expect("a response")
}

/// Listens on a free port; gives the address.
fn serve(web: Web) -> String {
    let router = Router::new().route("/", get(async || Html(PAGE)));
    let router = router.route("/result", post(take_result)).fallback(pass_on);
    let router = router.with_state(Arc::new(web));
    let listener = RUNTIME.block_on(TcpListener::bind("127.0.0.1:0")).expect("a port");
    let address = listener.local_addr().expect("an address").to_string();
    RUNTIME.spawn(async move {
        while let Ok((connection, _)) = listener.accept().await {
            let service = TowerToHyperService::new(router.clone());
            tokio::spawn(async move {
                let builder = Builder::new(TokioExecutor::new()).http1_only();
                builder.serve_connection(TokioIo::new(connection), service).await.ok();
            });
        }
    });
    address
}

/// Chromium without a window.
struct Browser(Child);

impl Browser {
    fn open(url: &str, folder: &Folder) -> Self {
        let mut command = Command::new("chromium");
        command.args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic"]);
        command.args(["--no-first-run", "--disable-background-networking", "--disable-sync"]);
        command.args(["--disable-component-update", "--remote-debugging-port=0"]);
        command.arg(format!("--user-data-dir={}", folder.name("browser"))).arg(url);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        Self(command.process_group(0).spawn().expect("chromium starts"))
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let group = Pid::from_child(&self.0);
        kill_process_group(group, Signal::KILL).ok();
        self.0.wait().ok();
    }
}

#[test]
fn a_browser_reads_a_conversation_and_misses_nothing_when_its_connection_is_cut() {
    needs!(Chromium);
    let folder = Folder::new();
    let tenants = folder.name("tenants");
    std::fs::write(&tenants, line("ann", TOKEN)).expect("a file");
    let node = Node::start(&["--tenants", &tenants]);
    let (results, result) = mpsc::channel();
    let (last_ids, last_id) = mpsc::channel();
    let has_cut = AtomicBool::new(false);
    let web = Web { node: node.address.clone(), results, has_cut, last_ids };
    let _browser = Browser::open(&format!("http://{}/", serve(web)), &folder);
    let shown = result.recv_timeout(DEADLINE).expect("the page reports");
    assert_eq!(shown["status"], "ok");
    assert_eq!(shown["opened"], 2, "it has connected again");
    assert_eq!(shown["text"], "Turn 1. You said: hello from a browser");
    let ordinals = shown["ordinals"].as_array().expect("a list");
    let expected: Vec<_> = (1..=ordinals.len()).map(|ordinal| json!(ordinal)).collect();
    assert_eq!(*ordinals, expected, "no event twice, and none missing");
    assert_eq!(shown["ids"], shown["ordinals"]);
    let last: usize = last_id.recv().expect("it has said where it was").parse().expect("a number");
    assert!((1..ordinals.len()).contains(&last), "{last}");
}
