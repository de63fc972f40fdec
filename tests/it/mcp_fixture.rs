//! A small MCP server with faults, as a program: this test binary, started again with one test that
//! serves. What the harness prints around it is what a server prints that has not heard of its
//! standard output.

use crate::attachments::PNG;
use crate::mcp_fixture_docs as docs;
use crate::mcp_fixture_odd as odd;
use data_encoding::BASE64;
use rustix::process::{Signal, WaitOptions};
use serde_json::{Value, json};
use std::fs::OpenOptions;
use std::io::{self, BufRead, Write};
use std::process::{Command, Stdio, exit};
use std::thread;
use std::time::Duration;

/// Names the fault; without it the test does nothing.
pub(crate) const FAULT_VARIABLE: &str = "MCP_FIXTURE";

/// A file to which each message that is read is appended.
pub(crate) const LOG_VARIABLE: &str = "MCP_FIXTURE_LOG";

/// A file, as the tool for it returns it: as text, and as structured content.
pub(crate) const FILE: &str = "fn main() {\n\tprintln!(\"{}\", 'a');\n}\n";

/// Before the schema of a form that the person is asked for.
pub(crate) const ASK_WITH: &str = "ask with ";

/// Longer than any test waits.
const LONG: Duration = Duration::from_secs(600);

/// The words that start the server.
pub(crate) fn words() -> Vec<String> {
    let own = std::env::current_exe().expect("a path").to_string_lossy().into_owned();
    let words = ["--exact", "mcp_fixture::serve", "--ignored", "--nocapture"];
    std::iter::once(own).chain(words.map(str::to_owned)).collect()
}

#[test]
#[ignore = "a server that other tests start"]
fn serve() {
    let Ok(fault) = std::env::var(FAULT_VARIABLE) else { return };
    match fault.as_str() {
        "crash-at-start" => {
            say("no configuration \u{1b}[31mfound");
            exit(3);
        }
        "mute" => wait(),
        "stubborn" => ignore_term(),
        "forks" => fork(),
        "sleep-in-own-session" => {
            rustix::process::setsid().expect("a session");
            ignore_term();
            wait();
        }
        _ => {}
    }
    Fixture { fault, is_changed: false, asking: None }.serve();
}

fn wait() {
    loop {
        thread::sleep(LONG);
    }
}

/// SIGTERM is caught and nothing is done.
fn ignore_term() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build();
    let runtime = runtime.expect("a runtime");
    let _inside = runtime.enter();
    let kind = tokio::signal::unix::SignalKind::from_raw(Signal::TERM.as_raw());
    drop(tokio::signal::unix::signal(kind).expect("a signal"));
    std::mem::forget(runtime);
}

/// Leaves a child behind, one that has a session of its own, and one whose parent has ended.
#[expect(clippy::zombie_processes, reason = "a thread collects them all")]
fn fork() {
    let start = |command: &mut Command| {
        command.stdin(Stdio::null()).stdout(Stdio::null()).spawn().expect("a child")
    };
    start(Command::new("sleep").arg("600"));
    let words = words();
    start(Command::new(&words[0]).args(&words[1..]).env(FAULT_VARIABLE, "sleep-in-own-session"));
    let mut wrapper = Command::new("/bin/sh");
    let mut wrapper = start(wrapper.args(["-c", "sleep 600 & sleep 600 &"]));
    wrapper.wait().expect("the wrapper ends");
    // As a server that collects its children.
    thread::spawn(|| while rustix::process::wait(WaitOptions::empty()).is_ok() {});
}

struct Fixture {
    fault: String,
    is_changed: bool,
    /// The call that waits for the answer of a person.
    asking: Option<Value>,
}

impl Fixture {
    fn serve(&mut self) {
        print(b"\n");
        let mut log = std::env::var_os(LOG_VARIABLE)
            .map(|path| OpenOptions::new().append(true).create(true).open(path).expect("a log"));
        for line in io::stdin().lock().lines() {
            let line = line.expect("UTF-8");
            if let Some(log) = &mut log {
                writeln!(log, "{line}").expect("a log");
            }
            let message: Value = serde_json::from_str(&line).expect("JSON");
            if let Some(error) = docs::error(&message) {
                send(&error);
                continue;
            }
            if let Some(answer) = odd::answer(&self.fault, &message) {
                print(&answer.bytes);
                if answer.is_last {
                    exit(0);
                }
                continue;
            }
            if self.fault == "junk" {
                print(b"Listening on stdio\n{\"level\":30,\"id\":1,\"msg\":\"x\"}\n\xff\xfe\n");
            }
            if let (Some(method), Some(id)) = (message["method"].as_str(), message.get("id"))
                && let Some(result) = self.result(method, &message["params"])
            {
                send(&json!({"result": result, "jsonrpc": "2.0", "id": id}));
            }
            let text = &message["params"]["arguments"]["text"];
            let is_form = text.as_str().is_some_and(|it| it.starts_with(ASK_WITH));
            if text == "ask" || text == "ask twice" || text == "open" || is_form {
                self.asking = message.get("id").cloned();
            }
            if message["id"] == "question" {
                let params = json!({"requestId": "first question"});
                let method = "notifications/cancelled";
                send(&json!({"jsonrpc": "2.0", "method": method, "params": params}));
                for id in ["another", "e-1", "e-1"] {
                    let params = json!({"elicitationId": id});
                    let method = "notifications/elicitation/complete";
                    send(&json!({"jsonrpc": "2.0", "method": method, "params": params}));
                }
                let text = message["result"].to_string();
                let result = json!({"content": [{"type": "text", "text": text}]});
                send(&json!({"result": result, "jsonrpc": "2.0", "id": self.asking.take()}));
            }
            if message["method"] == "tools/list" {
                self.flood();
            }
        }
        if self.fault == "stubborn" {
            wait();
        }
        exit(0);
    }

    /// Messages without end, once the tools are listed.
    fn flood(&mut self) {
        match self.fault.as_str() {
            "ping-flood" => requests("ping"),
            "sampling-flood" => requests("sampling/createMessage"),
            "list-flood" if !self.is_changed => {
                self.is_changed = true;
                let changed =
                    json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"});
                thread::spawn(move || {
                    loop {
                        send(&changed);
                    }
                });
            }
            _ => {}
        }
    }

    fn result(&mut self, method: &str, params: &Value) -> Option<Value> {
        match method {
            "initialize" => {
                if self.fault == "crash-at-init" {
                    say("database is locked");
                    exit(4);
                }
                let version = if self.fault == "old" { "2024-11-05" } else { "2025-11-25" };
                Some(json!({
                    "protocolVersion": version,
                    "capabilities": self.capabilities(),
                    "serverInfo": {"name": "fixture", "version": "1"},
                }))
            }
            "tools/list" => self.page(params),
            "tools/call" => self.call(params),
            "resources/list" if self.fault != "docs-without-lists" => Some(docs::resources(params)),
            "resources/read" => docs::resource(params),
            "prompts/list" => Some(docs::prompts()),
            "prompts/get" => docs::prompt(params),
            _ => Some(json!({})),
        }
    }

    fn capabilities(&self) -> Value {
        let tools = json!({"listChanged": true});
        match self.fault.as_str() {
            "docs" | "docs-without-lists" | "docs-without-prompts" | "docs-with-broken-prompts" => {
                json!({"tools": tools, "resources": {}, "prompts": {}})
            }
            _ => json!({"tools": tools}),
        }
    }

    fn page(&self, params: &Value) -> Option<Value> {
        let cursor = params["cursor"].as_str();
        match (self.fault.as_str(), cursor) {
            ("no-list", _) => None,
            ("odd", _) => Some(json!({"tools": [
                {"name": "fine", "inputSchema": {"type": "object"}},
                {"name": "null", "inputSchema": null},
                {"name": "list", "inputSchema": ["object"]},
                {"name": "with.dots/and more", "description": "\u{1b}[31mred\nsecond line"},
            ]})),
            ("ordered", _) => Some(json!({"tools": [{"name": "act", "inputSchema": {
                "type": "object",
                "properties": {"text": {}, "mcp_z": {}, "mcp_a": {}},
            }}]})),
            ("repeats", _) => Some(json!({"tools": [{"name": "once"}], "nextCursor": "again"})),
            ("pages", None) => Some(json!({"tools": [{"name": "first"}], "nextCursor": "2"})),
            ("spoof", _) => Some(json!({"tools": [{"name": "none__act"}]})),
            ("pages", Some(_)) => Some(json!({"tools": [{"name": "second"}]})),
            _ => {
                let properties = json!({"text": {"type": "string"}});
                let schema =
                    json!({"type": "object", "properties": properties, "required": ["text"]});
                let mut tools = vec![
                    json!({"name": "echo", "description": "Repeats.", "inputSchema": schema}),
                    json!({"name": "act", "inputSchema": {"type": "object"}}),
                ];
                if self.is_changed {
                    tools.push(json!({"name": "new"}));
                }
                Some(json!({ "tools": tools }))
            }
        }
    }

    fn call(&mut self, params: &Value) -> Option<Value> {
        let text = params["arguments"]["text"].as_str().unwrap_or_default();
        let answer = |text: &str| Some(json!({"content": [{"type": "text", "text": text}]}));
        if params["name"] == "echo" {
            return answer(text);
        }
        match text {
            "crash" => {
                say("segmentation fault, as it were");
                exit(5);
            }
            "close" => {
                // Closes its output and lives on.
                rustix::stdio::dup2_stdout(std::fs::File::open("/dev/null").expect("null"))
                    .expect("a descriptor");
                None
            }
            "nothing" => None,
            "progress" => {
                for done in 1..=3 {
                    report(params, &json!(done));
                }
                answer("done")
            }
            "progress-silent" => {
                report(params, &json!(1));
                Some(json!({"content": []}))
            }
            "progress-flood" => {
                for done in 0..20_000 {
                    report(params, &json!(f64::from(done) / 2.0));
                }
                answer("flooded")
            }
            "progress-for-ever" => {
                let params = params.clone();
                thread::spawn(move || {
                    for done in 0_u64.. {
                        report(&params, &json!(done));
                    }
                });
                None
            }
            "ask" => {
                ask("question");
                None
            }
            "ask twice" => {
                ask("first question");
                ask("question");
                None
            }
            text if text.starts_with(ASK_WITH) => {
                let schema = serde_json::from_str(&text[ASK_WITH.len()..]).expect("a schema");
                ask_with("question", &schema);
                None
            }
            "open" => {
                let params = json!({
                    "mode": "url", "message": "Sign in", "elicitationId": "e-1",
                    "url": "http://127.0.0.1/sign-in",
                });
                send(&json!({"jsonrpc": "2.0", "id": "question", "method": "elicitation/create",
                    "params": params}));
                None
            }
            "change" => {
                self.is_changed = true;
                for _ in 0..100 {
                    send(&json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}));
                }
                answer("changed")
            }
            "wide" => answer(&"x".repeat(200 * 1024)),
            "long" => answer(&"x".repeat(17 * 1024 * 1024)),
            "flood" => {
                print(b"\"");
                let piece = vec![b'x'; 1024 * 1024];
                loop {
                    print(&piece);
                }
            }
            "stderr" => {
                for number in 0..20_000 {
                    say(&format!("line {number} {}", "x".repeat(100)));
                }
                answer("written")
            }
            "environment" => {
                let names = std::env::vars().map(|(name, value)| format!("{name}={value}"));
                answer(&names.collect::<Vec<_>>().join("\n"))
            }
            "folder" => answer(&std::env::current_dir().expect("a folder").to_string_lossy()),
            "error" => Some(json!({"isError": true, "content": [{"type": "text", "text": "no"}]})),
            "ordered" => Some(json!({"structuredContent": {"result_z": 1, "result_a": 2}})),
            "file" => Some(json!({
                "content": [{"type": "text", "text": FILE}],
                "structuredContent": {"content": FILE},
            })),
            "more" => Some(json!({
                "content": [{"type": "text", "text": "It is warm."}],
                "structuredContent": {"celsius": 23.5},
            })),
            "image" => Some(json!({"content": [
                {"type": "text", "text": "A cat:"},
                {"type": "image", "mimeType": "image/png", "data": BASE64.encode(PNG)},
            ]})),
            "hologram" => Some(json!({"content": [{"type": "hologram"}]})),
            other => answer(&format!("unknown: {other}")),
        }
    }
}

/// Asks the person, with this id.
fn ask(id: &str) {
    ask_with(id, &json!({"type": "object", "properties": {"name": {"type": "string"}}}));
}

fn ask_with(id: &str, schema: &Value) {
    let params = json!({"message": "Your name?", "requestedSchema": schema});
    let method = "elicitation/create";
    send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
}

/// Reports how far a call is.
fn report(params: &Value, done: &Value) {
    let token = &params["_meta"]["progressToken"];
    let params = json!({
        "progressToken": token, "progress": done, "total": 10, "message": "at it \u{1b}[31m",
    });
    send(&json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": params}));
}

/// Requests without end, whose answers are not read.
fn requests(method: &str) -> ! {
    for first in (0_u64..).step_by(200) {
        let lines = (first..first + 200).map(|id| {
            json!({"jsonrpc": "2.0", "id": id, "method": method, "params": {}}).to_string() + "\n"
        });
        print(lines.collect::<String>().as_bytes());
    }
    unreachable!("the numbers have no end")
}

pub(crate) fn say(line: &str) {
    writeln!(io::stderr(), "{line}").ok();
}

fn send(message: &Value) {
    print((message.to_string() + "\n").as_bytes());
}

/// Past the harness, which would collect what is printed. Ends with the reader.
fn print(bytes: &[u8]) {
    let mut stdout = io::stdout().lock();
    if stdout.write_all(bytes).and_then(|()| stdout.flush()).is_err() {
        exit(0);
    }
}
