//! MCP servers that others wrote do real work, and end with us.

use super::installed;
use crate::chat_lines::piped;
use crate::client_tools::calls;
use crate::frames::submit;
use crate::mcp_servers::ended;
use crate::once::run;
use crate::process::{DEADLINE, Process, eventually};
use crate::provider::{Provider, says};
use crate::server::{Folder, echo, openai};
use anyhow::{Context, Result, bail, ensure};
use duologue::conversation::event::ToolResult;
use duologue::task::limits::ToolLimits;
use duologue::task::server::ServerName;
use duologue::task::server::ServerState;
use duologue::tool::config::Servers;
use duologue::tool::servers::ToolServers;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use tokio::time::timeout;

const MARK_VARIABLE: &str = "MCP_CLIENTS_TEST_MARK";

/// Servers, and how many tools each has.
struct Running {
    servers: ToolServers,
    tools: BTreeMap<String, usize>,
    mark: String,
}

impl Running {
    /// Starts the servers of `list`, members of `mcpServers`, and waits until all are ready.
    async fn start(mark: &str, mut list: Value) -> Result<Self> {
        let mark = format!("{mark}-{}", std::process::id());
        for server in list.as_object_mut().context("an object")?.values_mut() {
            if server.get("command").is_some() {
                server["env"] = json!({MARK_VARIABLE: mark});
            }
        }
        let mut configs = Servers::default();
        configs.add_file(&json!({"mcpServers": list}).to_string(), &|_| None)?;
        let guard = Some(PathBuf::from(env!("CARGO_BIN_EXE_duologue")));
        let mut servers = ToolServers::new(configs.configs, ToolLimits::default(), guard);
        servers.start();
        let mut tools = BTreeMap::new();
        while tools.len() < servers.names().count() {
            let change = timeout(DEADLINE, servers.changed()).await?;
            match change.state {
                ServerState::Starting => {}
                ServerState::Ready => {
                    tools.insert(change.server.to_string(), change.tools.len());
                }
                ServerState::Failed { reason } | ServerState::Gone { reason } => {
                    bail!("{}: {reason}; see tests/clients/README.md", change.server)
                }
            }
        }
        Ok(Self { servers, tools, mark })
    }

    async fn call(&self, server: &str, tool: &str, arguments: Value) -> Result<ToolResult> {
        let server = ServerName::new(server).context("a name")?;
        let Value::Object(arguments) = arguments else { bail!("not an object") };
        Ok(timeout(DEADLINE, ended(self.servers.call(&server, tool, arguments))).await?)
    }

    async fn text(&self, server: &str, tool: &str, arguments: Value) -> Result<String> {
        match self.call(server, tool, arguments).await? {
            ToolResult::Success(text) | ToolResult::WithImages { text, .. } => Ok(text),
            ToolResult::Error(text) => bail!("{tool}: {text}"),
        }
    }

    async fn close(mut self) -> Result<()> {
        self.servers.close().await;
        let left = Process::marked(&self.mark);
        let left: Vec<_> = left.iter().filter(|it| !it.command_line().is_empty()).collect();
        ensure!(left.is_empty(), "{left:?}");
        Ok(())
    }
}

/// Three rounds of a conversation whose provider is scripted: it converts a time, writes the result
/// into a file and reads that, each with a server of others.
#[test]
fn a_conversation_uses_the_servers_of_others() {
    needs!(McpServers);
    let folder = Folder::new();
    let note = folder.name("note.txt");
    let list = json!({ "mcpServers": {
        "files": { "command": "node", "args": [node_server("mcp-server-filesystem"), folder.path("")] },
        "time": { "command": python_server("mcp-server-time") },
        "all": everything(),
    } });
    fs::write(folder.path("servers"), list.to_string()).expect("a file");
    let time = r#"{"source_timezone":"UTC","time":"12:00","target_timezone":"Asia/Tokyo"}"#;
    let write = json!({ "path": note, "content": "21:00 in Tokyo" }).to_string();
    let read = json!({ "path": note }).to_string();
    let provider = Provider::start(vec![
        calls(&[("a", "convert_time", time), ("b", "echo", r#"{"message":"hello"}"#)]),
        calls(&[("c", "write_file", &write)]),
        calls(&[
            ("d", "read_text_file", &read),
            ("e", "read_text_file", r#"{"path":"/etc/passwd"}"#),
        ]),
        says("Noted."),
    ]);
    let servers = folder.name("servers");
    let args = ["--mcp-config", &servers, "--allow", "*", "--mcp-wait-ms", "60000"];
    let mut server = openai(&provider, &args).start();
    server.send(submit("run", "Note when it is noon in Tokyo."));
    assert_eq!(server.wait_done("run"), "ok");
    let frames = server.finish().frames;
    let results: Vec<_> = frames
        .iter()
        .filter(|frame| frame.is_event("ChatToolResultReady"))
        .map(|frame| (frame.payload("toolName"), frame.payload("status"), frame.payload("result")))
        .collect();
    let has = |tool: &str, status: &str, text: &str| {
        let fits = |it: &&(&str, &str, &str)| it.0 == tool && it.1 == status && it.2.contains(text);
        assert!(results.iter().any(|it| fits(&it)), "{tool} {status} {text}: {results:?}");
    };
    has("convert_time", "success", "21:00");
    has("echo", "success", "hello");
    has("read_text_file", "success", "21:00 in Tokyo");
    has("read_text_file", "error", "denied");
    assert_eq!(fs::read_to_string(note).expect("a file"), "21:00 in Tokyo");
    let last = provider.wait_request(4).body;
    let messages = last["messages"].as_array().expect("messages");
    let roles: Vec<_> = messages.iter().filter_map(|message| message["role"].as_str()).collect();
    let expected =
        ["user", "assistant", "tool", "tool", "assistant", "tool", "assistant", "tool", "tool"];
    assert_eq!(roles, expected);
}

/// Resources, prompts and progress of a server of the official SDK, over the binary.
#[test]
fn what_a_server_of_others_offers_is_used() {
    needs!(McpServers);
    let folder = Folder::new();
    let list = json!({ "mcpServers": { "all": everything() } });
    fs::write(folder.path("servers"), list.to_string()).expect("a file");
    let listed = |what: &str| {
        let ended = run(&folder, &["mcp", what, "--mcp-config", "servers", "--output", "json"]);
        assert_eq!(ended.status, 0, "{ended:?}");
        let listed: Value = serde_json::from_str(&ended.stdout).expect("JSON");
        listed["data"].as_array().expect("a list").clone()
    };
    let uri = "demo://resource/static/document/features.md";
    assert!(listed("resources").iter().any(|it| it["uri"] == uri), "{:?}", listed("resources"));
    let prompts = listed("prompts");
    let prompt = prompts.iter().find(|it| it["name"] == "args-prompt").expect("a prompt");
    assert_eq!(prompt["arguments"][0]["name"], "city");
    let dynamic = "all:demo://resource/dynamic/blob/1";
    let resources = ["--resource", &format!("all:{uri}"), "--resource", dynamic];
    let words = ["exec", "--engine", "echo", "--mcp-config", "servers", "what?"];
    let ended = run(&folder, &[&words[..], &resources].concat());
    assert!(ended.stdout.contains(&format!("Attached: {uri} (text/markdown,")), "{ended:?}");
    assert!(ended.stdout.contains("Attached: demo://resource/dynamic/blob/1 ("), "{ended:?}");
    let ended = piped(&folder, &["--mcp-config", "servers"], "/all:args-prompt Berlin\n");
    assert!(ended.stdout.contains("You said: What's weather in Berlin?"), "{ended:?}");

    let arguments = json!({ "duration": 1, "steps": 2 });
    let call = json!({ "name": "trigger-long-running-operation", "arguments": arguments });
    let script = format!("{}\n{}\n", json!({ "tools": [call] }), json!({ "text": "Done." }));
    fs::write(folder.path("script"), script).expect("a file");
    let (servers, script) = (folder.name("servers"), folder.name("script"));
    let args = ["--mcp-config", &servers, "--echo-script", &script, "--allow", "*"];
    let mut server = echo(&[&args[..], &["--extensions", "tool-progress"]].concat()).start();
    server.send(submit("run", "go"));
    let progress = server.wait_event("ToolCallProgressed");
    assert_eq!(progress.0["uiEvent"]["payload"]["total"], 2);
    assert_eq!(server.wait_done("run"), "ok");
    server.finish();
}

fn node_server(name: &str) -> String {
    installed(&format!("mcp/node_modules/.bin/{name}")).to_string_lossy().into_owned()
}

fn python_server(name: &str) -> String {
    installed(&format!("mcp/python/bin/{name}")).to_string_lossy().into_owned()
}

fn everything() -> Value {
    json!({"command": "node", "args": [node_server("mcp-server-everything")]})
}

#[tokio::test]
async fn the_servers_of_others_do_real_work() -> Result<()> {
    needs!(McpServers);
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"))
        .join(format!("duologue-mcp-clients-{}", std::process::id()));
    fs::create_dir_all(&folder)?;
    let folder = folder.canonicalize()?;
    let list = json!({
        "all": everything(),
        "files": {"command": "node", "args": [node_server("mcp-server-filesystem"), folder]},
        "time": {"command": python_server("mcp-server-time")},
        "git": {"command": python_server("mcp-server-git")},
    });
    let running = Running::start("work", list).await?;
    ensure!(running.tools.values().all(|tools| *tools >= 2), "{:?}", running.tools);

    let note = folder.join("note.txt");
    running.text("files", "write_file", json!({"path": note, "content": "Grüße\n"})).await?;
    ensure!(fs::read_to_string(&note)? == "Grüße\n");
    let read = running.text("files", "read_text_file", json!({"path": note})).await?;
    ensure!(read.contains("Grüße"), "{read}");
    let outside = running.call("files", "read_text_file", json!({"path": "/etc/passwd"})).await?;
    ensure!(matches!(&outside, ToolResult::Error(text) if text.contains("denied")), "{outside:?}");

    let times = json!({
        "source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo",
    });
    let time = running.text("time", "convert_time", times).await?;
    ensure!(time.contains("21:00"), "{time}");

    let repository = json!({"repo_path": env!("CARGO_MANIFEST_DIR"), "max_count": 1});
    let log = running.text("git", "git_log", repository).await?;
    ensure!(log.contains("Author"), "{log}");
    fs::remove_dir_all(folder)?;
    running.close().await
}

#[tokio::test]
async fn every_kind_of_result_arrives() -> Result<()> {
    needs!(McpServers);
    let running = Running::start("kinds", json!({"all": everything()})).await?;
    every_kind(&running).await?;
    running.close().await
}

#[tokio::test]
async fn every_kind_of_result_arrives_over_http() -> Result<()> {
    needs!(McpServers);
    let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
    let mut command = Command::new("node");
    command.arg(node_server("mcp-server-everything")).arg("streamableHttp");
    command.env("PORT", port.to_string()).stdin(Stdio::null());
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let _server = KilledOnDrop(command.spawn()?);
    eventually("the server listens", || TcpStream::connect(("127.0.0.1", port)).ok());
    let url = format!("http://127.0.0.1:{port}/mcp");
    let running = Running::start("http", json!({"all": {"url": url}})).await?;
    every_kind(&running).await?;
    running.close().await
}

struct KilledOnDrop(Child);

impl Drop for KilledOnDrop {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

async fn every_kind(running: &Running) -> Result<()> {
    let sum = running.text("all", "get-sum", json!({"a": 2, "b": 3})).await?;
    ensure!(sum.contains('5'), "{sum}");
    let image = running.text("all", "get-tiny-image", json!({})).await?;
    ensure!(image.contains("[image: image/png, ") && image.len() < 1000, "{image}");
    let structured = json!({"location": "New York"});
    let structured = running.text("all", "get-structured-content", structured).await?;
    ensure!(serde_json::from_str::<Map<String, Value>>(&structured).is_ok(), "{structured}");
    let links = running.text("all", "get-resource-links", json!({"count": 2})).await?;
    ensure!(links.matches("[link to the resource ").count() == 2, "{links}");
    let reference = json!({"resourceType": "Text", "resourceId": 1});
    let reference = running.text("all", "get-resource-reference", reference).await?;
    ensure!(reference.contains("[resource "), "{reference}");
    let environment = running.text("all", "get-env", json!({})).await?;
    ensure!(!environment.contains("API_KEY"), "{environment}");
    // What is wrong in a call is for the model to read.
    let wrong = running.call("all", "get-sum", json!({"a": "two"})).await?;
    ensure!(matches!(&wrong, ToolResult::Error(text) if !text.is_empty()), "{wrong:?}");
    let unknown = running.call("all", "no-such-tool", json!({})).await?;
    ensure!(
        matches!(&unknown, ToolResult::Error(text) if text.contains("no-such-tool")),
        "{unknown:?}"
    );
    // Progress on the way, ten of them at once.
    let long = json!({"duration": 1, "steps": 5});
    let server = ServerName::new("all").context("a name")?;
    let Value::Object(long) = long else { bail!("not an object") };
    let calls = (0..10)
        .map(|_| running.servers.call(&server, "trigger-long-running-operation", long.clone()))
        .map(ended);
    for call in calls.map(tokio::spawn).collect::<Vec<_>>() {
        let done = timeout(DEADLINE, call).await??;
        ensure!(matches!(done, ToolResult::Success(_)), "{done:?}");
    }
    Ok(())
}

#[test]
fn a_server_behind_wrappers_ends_with_us() -> Result<()> {
    needs!(McpServers);
    let mark = format!("wrapped-{}", std::process::id());
    // As npx does it: a wrapper that waits for a shell that waits for node.
    let inner = format!("node {}; true", node_server("mcp-server-everything"));
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("duologue-{mark}.json"));
    let mute = json!({"command": "sleep", "args": ["600"], "env": {MARK_VARIABLE: mark}});
    let list = json!({
        "wrapped": {"command": "sh", "args": ["-c", inner], "env": {MARK_VARIABLE: mark}},
        // Keeps the command waiting.
        "mute": mute,
    });
    fs::write(&file, json!({"mcpServers": list}).to_string())?;
    let mut command = Command::new(env!("CARGO_BIN_EXE_duologue"));
    command.arg("tools").arg("--mcp-config").arg(&file);
    let mut child = command.stdout(Stdio::null()).spawn()?;
    let is_node = |process: &Process| process.command_line().contains("server-everything");
    eventually("node has started", || {
        let marked = Process::marked(&mark);
        (marked.iter().filter(|it| is_node(it)).count() >= 3).then_some(())
    });
    child.kill()?;
    child.wait()?;
    eventually("all are gone", || {
        Process::marked(&mark).iter().all(|it| it.command_line().is_empty()).then_some(())
    });
    fs::remove_file(file)?;
    Ok(())
}
