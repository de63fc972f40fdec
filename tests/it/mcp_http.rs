//! MCP servers over HTTP.

use crate::mcp_servers::ended;
use crate::process::DEADLINE;
use duologue::conversation::event::ToolResult;
use duologue::task::limits::ToolLimits;
use duologue::task::server::ServerName;
use duologue::task::server::ServerState;
use duologue::tool::config::Servers;
use duologue::tool::servers::ToolServers;
use serde_json::{Map, Value, json};
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::sync::{Arc, Barrier, Mutex};
use std::thread;
use tokio::time::timeout;

pub(crate) const KEY: &str = "s3cret-key-0123456789";

/// Calls of `together`, each of which is answered when all have been sent.
pub(crate) const TOGETHER_CALLS: usize = 40;

static TOGETHER: Barrier = Barrier::new(TOGETHER_CALLS);

/// A server that keeps the requests it got: the method of HTTP and that of MCP, and the headers.
pub(crate) struct HttpServer {
    address: String,
    requests: Arc<Mutex<Vec<Request>>>,
}

#[derive(Clone)]
pub(crate) struct Request {
    pub(crate) line: String,
    pub(crate) head: String,
    pub(crate) message: Value,
}

impl HttpServer {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address").to_string();
        let requests: Arc<Mutex<Vec<Request>>> = Arc::default();
        let log = Arc::clone(&requests);
        thread::spawn(move || {
            for stream in listener.incoming().filter_map(Result::ok) {
                let log = Arc::clone(&log);
                thread::spawn(move || serve(stream, &log));
            }
        });
        Self { address, requests }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub(crate) fn requests(&self) -> Vec<Request> {
        self.requests.lock().expect("no panic").clone()
    }

    /// How many requests had this method of MCP.
    pub(crate) fn count(&self, method: &str) -> usize {
        self.requests().iter().filter(|it| it.message["method"] == method).count()
    }
}

/// Answers the requests of a connection.
fn serve(mut stream: TcpStream, log: &Mutex<Vec<Request>>) -> Option<()> {
    let mut input = BufReader::new(stream.try_clone().ok()?);
    loop {
        let request = read(&mut input)?;
        log.lock().expect("no panic").push(request.clone());
        if request.line.starts_with("GET /pings") {
            return pings(&mut stream);
        }
        let answer = answer(&request)?;
        stream.write_all(answer.as_bytes()).ok()?;
    }
}

/// A stream of requests without end.
fn pings(stream: &mut TcpStream) -> Option<()> {
    stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n").ok()?;
    for id in 0_u64.. {
        let ping = json!({"jsonrpc": "2.0", "id": id, "method": "ping"});
        stream.write_all(format!("data: {ping}\n\n").as_bytes()).ok()?;
    }
    None
}

fn read(input: &mut impl BufRead) -> Option<Request> {
    let mut line = String::new();
    input.read_line(&mut line).ok().filter(|bytes| *bytes > 0)?;
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") && head != "\r\n" {
        input.read_line(&mut head).ok().filter(|bytes| *bytes > 0)?;
    }
    let length = head
        .lines()
        .find_map(|it| it.to_lowercase().strip_prefix("content-length: ")?.parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    input.read_exact(&mut body).ok()?;
    let message = serde_json::from_slice(&body).unwrap_or_default();
    Some(Request { line, head, message })
}

fn response(status: &str, more: &str, body: &str) -> String {
    format!("HTTP/1.1 {status}\r\n{more}Content-Length: {}\r\n\r\n{body}", body.len())
}

/// `None` is no answer: the connection is closed.
fn answer(request: &Request) -> Option<String> {
    let json_answer = |result: Value| {
        let answer = json!({"jsonrpc": "2.0", "id": request.message["id"], "result": result});
        let more = "Content-Type: application/json\r\nMcp-Session-Id: session-1\r\n";
        Some(response("200 OK", more, &answer.to_string()))
    };
    if let Some(answer) = redirect(request).or_else(|| initialized(request)) {
        return Some(answer);
    }
    if request.line.contains("/missing") {
        return Some(response("404 Not Found", "", "<html>not here</html>"));
    }
    if request.line.contains("/locked") {
        return Some(response("401 Unauthorized", "", "no token"));
    }
    if request.line.contains("/private") {
        return Some(response("401 Unauthorized", "WWW-Authenticate: Bearer\r\n", ""));
    }
    if request.line.starts_with("GET /eager") {
        let more = "Content-Type: text/event-stream\r\n";
        return Some(response("200 OK", more, "retry: 0\n\n"));
    }
    let token = request.head.lines().find_map(|it| it.split_once("Bearer ")).map(|it| it.1.trim());
    if let Some(token) = token.filter(|_| request.line.contains("/expired")) {
        let quoting = format!("WWW-Authenticate: Bearer error_description=\"{token} has expired\"");
        return Some(response("401 Unauthorized", &format!("{quoting}\r\n"), ""));
    }
    if !request.line.starts_with("POST ") {
        return Some(response("405 Method Not Allowed", "", ""));
    }
    let params = &request.message["params"];
    match request.message["method"].as_str() {
        Some("initialize") => json_answer(json!({
            "protocolVersion": params["protocolVersion"],
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "http", "version": "1"},
        })),
        Some("tools/list") => json_answer(json!({"tools": [
            {"name": "search", "inputSchema": {"type": "object"}},
            {"name": "odd", "inputSchema": [1]},
            {"name": "empty", "inputSchema": null},
            {"name": "lost", "inputSchema": {"type": "object"}},
            {"name": "quoting"},
            {"name": "deep"},
        ]})),
        Some("tools/call") if params["name"] == "empty" => None,
        Some("tools/call") if params["name"] == "quoting" => {
            let message = format!("token {} has expired", token.unwrap_or_default());
            let error = json!({"code": -32001, "message": message});
            let answer = json!({"jsonrpc": "2.0", "id": request.message["id"], "error": error});
            Some(response("200 OK", "Content-Type: application/json\r\n", &answer.to_string()))
        }
        Some("tools/call") if params["name"] == "deep" => {
            let (id, deep) = (&request.message["id"], "[".repeat(200) + &"]".repeat(200));
            let message = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{deep}}}"#);
            let event = format!("data: {message}\n\n");
            Some(response("200 OK", "Content-Type: text/event-stream\r\n", &event))
        }
        Some("tools/call") if params["name"] == "together" => {
            TOGETHER.wait();
            json_answer(json!({"content": [{"type": "text", "text": "met"}]}))
        }
        Some("tools/call") if odd(request).is_some() => odd(request),
        Some("tools/call") if params["name"] == "lost" => Some(response("404 Not Found", "", "")),
        Some("tools/call") => {
            let content = json!([{"type": "text", "text": "found"}, {"type": "hologram"}]);
            let result = json!({"content": content});
            let message = json!({"jsonrpc": "2.0", "id": request.message["id"], "result": result});
            let event = format!("event: message\ndata: {message}\n\n");
            Some(response("200 OK", "Content-Type: text/event-stream\r\n", &event))
        }
        _ => Some(response("202 Accepted", "", "")),
    }
}

/// The answer at an address that leads to another one.
fn redirect(request: &Request) -> Option<String> {
    let path = request.line.split(' ').nth(1)?;
    let (status, location) = match path {
        "/moved" => ("308 Permanent Redirect", "/moved-again".to_owned()),
        "/moved-again" => ("307 Temporary Redirect", "/mcp".to_owned()),
        "/loop" => ("307 Temporary Redirect", "/loop".to_owned()),
        "/found" => ("302 Found", "/mcp".to_owned()),
        "/away" => {
            let location = format!("http://user:{KEY}@127.0.0.1:1/other?key={KEY}");
            ("307 Temporary Redirect", location)
        }
        _ => return None,
    };
    Some(response(status, &format!("Location: {location}\r\n"), ""))
}

/// The answer to the notification that ends the handshake, where the path asks for another one than status 202.
fn initialized(request: &Request) -> Option<String> {
    let path = request.line.split(' ').nth(1)?;
    if request.message["method"] != "notifications/initialized" {
        return None;
    }
    match path.strip_prefix("/initialized/")? {
        "page" => Some(response("200 OK", "Content-Type: text/html\r\n", "<p>OK")),
        "untyped" => Some(response("200 OK", "", "OK")),
        "stream" => Some(response("200 OK", "Content-Type: text/event-stream\r\n", ": none\n\n")),
        "400" => Some(response("400 Bad Request", "", "not now")),
        "500" => Some(response("500 Internal Server Error", "", "")),
        _ => None,
    }
}

/// The answer to a call that has not its id, or is none.
fn odd(request: &Request) -> Option<String> {
    let error = |message: &str| {
        let error = json!({"code": -32000, "message": message});
        json!({"jsonrpc": "2.0", "id": null, "error": error}).to_string()
    };
    let json = "Content-Type: application/json\r\n";
    match request.message["params"]["name"].as_str()? {
        // As the servers of the TypeScript SDK answer after a restart.
        "gone" => {
            let body = error("Bad Request: No valid session ID provided");
            Some(response("400 Bad Request", json, &body))
        }
        "broken" => Some(response("500 Internal Server Error", json, &error("no disk"))),
        "null id" => Some(response("200 OK", json, &error("no disk"))),
        "null id in a stream" => {
            let event = format!("data: {}\n\n", error("no disk"));
            Some(response("200 OK", "Content-Type: text/event-stream\r\n", &event))
        }
        "with lists" => {
            let content = json!([{"type": "text", "text": "found"}]);
            let result = json!({"content": content, "tools": [], "resources": []});
            let answer = json!({"jsonrpc": "2.0", "id": request.message["id"], "result": result});
            let event = format!("data: {answer}\n\n");
            Some(response("200 OK", "Content-Type: text/event-stream\r\n", &event))
        }
        "other id" => {
            let result = json!({"content": [{"type": "text", "text": "of another"}]});
            let answer = json!({"jsonrpc": "2.0", "id": 4711, "result": result});
            Some(response("200 OK", json, &answer.to_string()))
        }
        "accepted" => Some(response("202 Accepted", "", "")),
        "failed" => Some(response("500 Internal Server Error", "", "")),
        "page" => Some(response("200 OK", "Content-Type: text/html\r\n", "<html>")),
        "cut" => Some(response("200 OK", "Content-Type: text/event-stream\r\n", ": none\n\n")),
        "forbidden" => {
            let challenge = "Bearer error=\"insufficient_scope\", scope=\"files:read\"";
            Some(response("403 Forbidden", &format!("WWW-Authenticate: {challenge}\r\n"), ""))
        }
        _ => None,
    }
}

pub(crate) fn servers(url: &str) -> ToolServers {
    servers_with(url, &json!({"Authorization": format!("Bearer {KEY}"), "X-Team": "seven"}))
}

pub(crate) fn servers_with(url: &str, headers: &Value) -> ToolServers {
    let file =
        json!({"mcpServers": {"web": {"url": url, "headers": headers, "startTimeout": 20000}}});
    let mut servers = Servers::default();
    servers.add_file(&file.to_string(), &|_| None).expect("a configuration");
    ToolServers::new(servers.configs, ToolLimits::default(), None)
}

pub(crate) async fn first_state(servers: &mut ToolServers) -> (ServerState, Vec<String>) {
    servers.start();
    loop {
        let change = timeout(DEADLINE, servers.changed()).await.expect("a change");
        if change.state != ServerState::Starting {
            return (change.state, change.tools.iter().map(|tool| tool.name.clone()).collect());
        }
    }
}

pub(crate) async fn call(servers: &ToolServers, tool: &str) -> ToolResult {
    let server = ServerName::new("web").expect("a name");
    timeout(DEADLINE, ended(servers.call(&server, tool, Map::new()))).await.expect("a result")
}

#[tokio::test]
async fn tools_are_listed_and_called_over_http() {
    let server = HttpServer::start();
    let mut servers = servers(&server.url("/mcp"));
    let (state, tools) = first_state(&mut servers).await;
    let expected = ["search", "empty", "lost", "quoting", "deep"].map(str::to_owned).to_vec();
    assert_eq!((state, tools), (ServerState::Ready, expected));
    let found = call(&servers, "search").await;
    let expected = "found\n[content of type `hologram`, which can't be shown]";
    assert_eq!(found, ToolResult::Success(expected.to_owned()));
    let posts = server.requests();
    let posts: Vec<_> = posts.iter().filter(|it| it.line.starts_with("POST")).collect();
    let has = |request: &Request, header: &str| request.head.to_lowercase().contains(header);
    assert!(posts.iter().all(|it| has(it, &format!("authorization: bearer {KEY}"))));
    assert!(posts.iter().all(|it| has(it, "x-team: seven") && has(it, "user-agent: duologue/")));
    assert!(posts[1..].iter().all(|it| has(it, "mcp-session-id: session-1")));
    assert_eq!(posts[0].message["params"]["protocolVersion"], "2025-11-25");
    assert_eq!(posts[0].message["params"]["capabilities"], json!({}));
    servers.close().await;
}

#[tokio::test]
async fn a_call_whose_connection_breaks_is_not_sent_again() {
    let server = HttpServer::start();
    let mut servers = servers(&server.url("/mcp"));
    assert_eq!(first_state(&mut servers).await.0, ServerState::Ready);
    let ToolResult::Error(broken) = call(&servers, "empty").await else { panic!("a success") };
    assert!(broken.starts_with("the call failed: "), "{broken}");
    assert_eq!(server.count("tools/call"), 1);
    assert!(matches!(call(&servers, "search").await, ToolResult::Success(_)));
    servers.close().await;
}

#[tokio::test]
async fn a_call_whose_session_is_unknown_is_not_sent_again() {
    let server = HttpServer::start();
    let mut servers = servers(&server.url("/mcp"));
    assert_eq!(first_state(&mut servers).await.0, ServerState::Ready);
    let ToolResult::Error(lost) = call(&servers, "lost").await else { panic!("a success") };
    assert!(lost.contains("404") && lost.contains("nothing was done"), "{lost}");
    assert!(!lost.contains("may or may not"), "{lost}");
    // The server is connected to anew, and the next call has that session.
    while first_state(&mut servers).await.0 != ServerState::Ready {}
    assert!(matches!(call(&servers, "search").await, ToolResult::Success(_)));
    assert_eq!((server.count("initialize"), server.count("tools/call")), (2, 2));
    servers.close().await;
}

#[tokio::test]
async fn an_answer_without_the_id_of_its_call_is_that_of_the_call() {
    let server = HttpServer::start();
    let mut servers = servers(&server.url("/mcp"));
    assert_eq!(first_state(&mut servers).await.0, ServerState::Ready);
    for (tool, expected) in [
        ("broken", "error -32000: no disk"),
        ("null id", "error -32000: no disk"),
        ("null id in a stream", "error -32000: no disk"),
        ("other id", "it sent an answer with the id of another request"),
        ("accepted", "it sent a response without an answer"),
    ] {
        let ToolResult::Error(why) = call(&servers, tool).await else { panic!("{tool}") };
        assert!(why.contains(expected), "{tool}: {why}");
    }
    assert!(matches!(call(&servers, "search").await, ToolResult::Success(_)));
    assert_eq!(server.count("initialize"), 1);
    servers.close().await;
}

#[tokio::test]
async fn the_content_of_a_result_in_a_stream_is_read_beside_empty_lists() {
    let server = HttpServer::start();
    let mut servers = servers(&server.url("/mcp"));
    assert_eq!(first_state(&mut servers).await.0, ServerState::Ready);
    let found = call(&servers, "with lists").await;
    assert_eq!(found, ToolResult::Success("found".to_owned()));
    servers.close().await;
}

#[tokio::test]
async fn a_server_that_says_that_it_has_no_such_session_is_connected_to_anew() {
    let server = HttpServer::start();
    let mut servers = servers(&server.url("/mcp"));
    assert_eq!(first_state(&mut servers).await.0, ServerState::Ready);
    let ToolResult::Error(lost) = call(&servers, "gone").await else { panic!("a success") };
    assert!(lost.contains("no longer knows the session, and nothing was done"), "{lost}");
    assert!(!lost.contains("may or may not"), "{lost}");
    while first_state(&mut servers).await.0 != ServerState::Ready {}
    assert!(matches!(call(&servers, "search").await, ToolResult::Success(_)));
    assert_eq!((server.count("initialize"), server.count("tools/call")), (2, 2));
    servers.close().await;
}

#[tokio::test]
async fn an_answer_that_is_nested_too_deep_is_an_error_at_once() {
    let server = HttpServer::start();
    let mut servers = servers(&server.url("/mcp"));
    assert_eq!(first_state(&mut servers).await.0, ServerState::Ready);
    let ToolResult::Error(deep) = call(&servers, "deep").await else { panic!("a success") };
    assert!(deep.contains("nested too deep"), "{deep}");
    assert!(matches!(call(&servers, "search").await, ToolResult::Success(_)));
    servers.close().await;
}

#[tokio::test]
async fn why_a_server_can_not_be_reached_is_said_without_keys() {
    let server = HttpServer::start();
    let unused = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = unused.local_addr().expect("an address");
    drop(unused);
    let cases = [
        (server.url(&format!("/missing?key={KEY}")), "404"),
        (server.url(&format!("/private?key={KEY}")), "uth"),
        (format!("http://user:{KEY}@{address}/mcp?key={KEY}"), "Connection refused"),
    ];
    for (url, expected) in cases {
        let mut servers = servers(&url);
        let (ServerState::Failed { reason }, _) = first_state(&mut servers).await else {
            panic!("it started")
        };
        assert!(reason.contains(expected), "{reason}");
        assert!(!reason.contains(KEY) && !reason.contains("duologue::"), "{reason}");
        let ToolResult::Error(late) = call(&servers, "search").await else { panic!("a success") };
        assert!(!late.contains(KEY), "{late}");
        // Also in the log, which the SDK writes to as well.
        let mut command = Command::new(env!("CARGO_BIN_EXE_duologue"));
        command.env_clear().args(["tools", "--log-level", "trace", "--mcp", &url]);
        let output = command.output().expect("the binary");
        let err = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1));
        assert!(err.contains(expected) && !err.contains(KEY), "{err}");
        servers.close().await;
    }
}
