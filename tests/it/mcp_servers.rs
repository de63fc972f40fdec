//! MCP servers: what is made of their tools and results, and what their faults cost.

use crate::mcp_fixture::{FAULT_VARIABLE, LOG_VARIABLE, words};
use crate::process::{DEADLINE, Process, eventually};
use duologue::conversation::event::ToolResult;
use duologue::task::limits::ToolLimits;
use duologue::task::server::ServerName;
use duologue::task::server::{ServerChange, ServerState};
use duologue::tool::config::{ServerConfig, Servers, Transport};
use duologue::tool::servers::{CallStep, ToolServers};
use futures_util::{Stream, StreamExt};
use serde_json::{Map, Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use tokio::time::timeout;

/// By this variable all processes of a test are found.
pub(crate) const MARK_VARIABLE: &str = "MCP_TEST_MARK";

/// A mark that no other test has.
pub(crate) fn mark() -> String {
    static MARKS: AtomicU32 = AtomicU32::new(0);
    format!("{}-{}-", std::process::id(), MARKS.fetch_add(1, Ordering::Relaxed))
}

/// A file of servers, one for each of `faults`, named after it.
pub(crate) fn config(mark: &str, faults: &[&str], more: &Value) -> String {
    let servers = faults.iter().map(|fault| {
        let words = words();
        let env = json!({MARK_VARIABLE: mark, FAULT_VARIABLE: fault, LOG_VARIABLE: log(mark)});
        let mut server = json!({"command": words[0], "args": words[1..], "env": env});
        for (name, value) in more.as_object().into_iter().flatten() {
            server[name] = value.clone();
        }
        ((*fault).to_owned(), server)
    });
    json!({"mcpServers": Value::Object(servers.collect())}).to_string()
}

/// The file of what a server was sent.
pub(crate) fn log(mark: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("duologue-mcp-{mark}.log"))
}

/// Servers that are held by a test, as a host holds them.
pub(crate) struct Held {
    servers: ToolServers,
    pub(crate) mark: String,
}

impl Held {
    /// The servers with `faults`, started.
    pub(crate) fn start(faults: &[&str]) -> Self {
        Self::with(faults, &json!({}), true)
    }

    fn with(faults: &[&str], more: &Value, has_guard: bool) -> Self {
        let mark = mark();
        let mut configs = Servers::default();
        configs.add_file(&config(&mark, faults, more), &|_| None).expect("a configuration");
        let guard = has_guard.then(|| PathBuf::from(env!("CARGO_BIN_EXE_duologue")));
        let mut servers = ToolServers::new(configs.configs, ToolLimits::default(), guard);
        servers.start();
        Self { servers, mark }
    }

    /// The next change other than to `Starting`.
    pub(crate) async fn changed(&mut self) -> ServerChange {
        loop {
            let change = timeout(DEADLINE, self.servers.changed()).await.expect("a change");
            if change.state != ServerState::Starting {
                return change;
            }
        }
    }

    pub(crate) async fn ready(&mut self) -> Vec<String> {
        let change = self.changed().await;
        assert_eq!(change.state, ServerState::Ready);
        change.tools.iter().map(|tool| tool.name.clone()).collect()
    }

    /// Calls the fixture's tool `act`.
    pub(crate) async fn act(&self, fault: &str, text: &str) -> ToolResult {
        timeout(DEADLINE, self.call(fault, "act", text)).await.expect("a result")
    }

    fn call(
        &self,
        fault: &str,
        tool: &str,
        text: &str,
    ) -> impl Future<Output = ToolResult> + Send + 'static + use<> {
        let server = ServerName::new(fault).expect("a name");
        let arguments = Map::from_iter([("text".to_owned(), text.into())]);
        ended(self.servers.call(&server, tool, arguments))
    }

    pub(crate) async fn close(mut self) {
        self.servers.close().await;
        assert_gone(&self.mark);
        fs::remove_file(log(&self.mark)).ok();
    }
}

/// The result of a call.
pub(crate) async fn ended(call: impl Stream<Item = CallStep>) -> ToolResult {
    let mut call = pin!(call);
    loop {
        if let CallStep::Ended(result) = call.next().await.expect("a result") {
            return result;
        }
    }
}

#[track_caller]
pub(crate) fn assert_gone(mark: &str) {
    let left = Process::marked(&format!("{MARK_VARIABLE}={mark}"));
    let left: Vec<_> = left.iter().map(|it| (it.0, it.command_line())).collect();
    // One that is a zombie has no command line.
    let left: Vec<_> = left.into_iter().filter(|it| !it.1.is_empty()).collect();
    assert_eq!(left, []);
}

pub(crate) fn error(result: ToolResult) -> String {
    match result {
        ToolResult::Error(text) => text,
        ToolResult::Success(text) | ToolResult::WithImages { text, .. } => {
            panic!("a success: {text}")
        }
    }
}

pub(crate) fn success(result: ToolResult) -> String {
    match result {
        ToolResult::Success(text) | ToolResult::WithImages { text, .. } => text,
        ToolResult::Error(text) => panic!("an error: {text}"),
    }
}

#[tokio::test]
async fn tools_are_listed_and_called() {
    let mut held = Held::start(&["none"]);
    assert_eq!(held.ready().await, ["echo", "act"]);
    assert_eq!(success(held.call("none", "echo", "Grüße").await), "Grüße");
    assert_eq!(error(held.act("none", "error").await), "no");
    let hologram = success(held.act("none", "hologram").await);
    assert_eq!(hologram, "[content of type `hologram`, which can't be shown]");
    let calls = (0..20).map(|number| held.call("none", "echo", &number.to_string()));
    let calls: Vec<_> = calls.map(tokio::spawn).collect();
    for (number, call) in calls.into_iter().enumerate() {
        assert_eq!(success(call.await.expect("no panic")), number.to_string());
    }
    let name = ServerName::new("other").expect("a name");
    let other = ended(held.servers.call(&name, "echo", Map::new())).await;
    assert_eq!(error(other), "there is no MCP server `other`");
    held.close().await;
}

#[tokio::test]
async fn a_call_before_the_server_is_ready_waits_for_it() {
    let held = Held::start(&["none"]);
    assert_eq!(success(held.call("none", "echo", "early").await), "early");
    held.close().await;
}

#[tokio::test]
async fn what_a_server_prints_besides_messages_is_ignored() {
    let mut held = Held::start(&["junk"]);
    assert_eq!(held.ready().await, ["echo", "act"]);
    assert_eq!(success(held.call("junk", "echo", "a").await), "a");
    held.close().await;
}

#[tokio::test]
async fn odd_tools_and_pages_cost_only_themselves() {
    let mut held = Held::start(&["odd"]);
    assert_eq!(held.ready().await, ["fine", "null", "with.dots/and more"]);
    held.close().await;
    let mut held = Held::start(&["repeats"]);
    assert_eq!(held.ready().await, ["once"]);
    held.close().await;
    let mut held = Held::start(&["pages"]);
    assert_eq!(held.ready().await, ["first", "second"]);
    held.close().await;
    let mut held = Held::start(&["old"]);
    assert_eq!(held.ready().await, ["echo", "act"]);
    held.close().await;
}

#[tokio::test]
async fn a_server_that_does_not_start_fails_with_its_reason_and_costs_no_other() {
    let faults = ["crash-at-init", "crash-at-start", "mute", "no-list", "none"];
    let mut held = Held::with(&faults, &json!({"startTimeout": 3000}), true);
    let mut states = Vec::new();
    for _ in faults {
        let change = held.changed().await;
        states.push((change.server.to_string(), change.state));
    }
    states.sort_by(|one, other| one.0.cmp(&other.0));
    let failed = |reason: &str| ServerState::Failed { reason: reason.to_owned() };
    let of = |name: &str| &states.iter().find(|it| it.0 == name).expect("a state").1;
    assert_eq!(*of("none"), ServerState::Ready);
    assert_eq!(*of("mute"), failed("it was not ready within 3s"));
    assert_eq!(*of("no-list"), failed("it was not ready within 3s"));
    assert_eq!(*of("crash-at-init"), failed("it ended with status 4"));
    assert_eq!(*of("crash-at-start"), failed("it ended with status 3"));
    let late = error(held.act("mute", "x").await);
    assert_eq!(late, "the MCP server `mute` is not running: it was not ready within 3s");
    held.close().await;
}

#[tokio::test]
async fn a_program_that_is_not_there_is_named() {
    for has_guard in [true, false] {
        let mut configs = Servers::default();
        configs.add_command("/nowhere/server --x").expect("a command");
        let guard = has_guard.then(|| PathBuf::from(env!("CARGO_BIN_EXE_duologue")));
        let mut servers = ToolServers::new(configs.configs, ToolLimits::default(), guard);
        servers.start();
        let state = loop {
            let change = timeout(DEADLINE, servers.changed()).await.expect("a change");
            if change.state != ServerState::Starting {
                break change.state;
            }
        };
        let ServerState::Failed { reason } = state else { panic!("{state:?}") };
        assert!(reason.contains("can't start"), "{reason}");
        assert!(reason.contains("No such file or directory"), "{reason}");
    }
}

#[tokio::test]
async fn open_calls_fail_with_the_server_which_is_started_again() {
    let mut held = Held::start(&["none"]);
    held.ready().await;
    let waiting = tokio::spawn(held.call("none", "act", "nothing"));
    let died = error(held.act("none", "crash").await);
    let reason = "it ended with status 5";
    let expected = format!(
        "the call failed: the server ended before it answered: {reason}; whatever was asked for may \
         or may not have been done"
    );
    assert_eq!(died, expected);
    assert_eq!(error(waiting.await.expect("no panic")), expected);
    // A call does not wait for the usual delay.
    assert_eq!(success(held.call("none", "echo", "again").await), "again");
    let change = held.changed().await;
    assert_eq!((change.state, change.tools.len()), (ServerState::Ready, 2));
    // Nothing was asked for twice.
    let sent = fs::read_to_string(log(&held.mark)).expect("a log");
    assert_eq!(sent.matches("\"crash\"").count(), 1);
    held.close().await;
}

#[tokio::test]
async fn a_server_that_ends_again_and_again_is_given_up() {
    let held = Held::start(&["none"]);
    let mut last = String::new();
    for _ in 0..20 {
        last = error(held.act("none", "crash").await);
        if last.starts_with("the MCP server `none` is not running") {
            break;
        }
    }
    assert!(last.ends_with("it was started again 3 times"), "{last}");
    let sent = fs::read_to_string(log(&held.mark)).expect("a log");
    assert_eq!(sent.matches("\"initialize\"").count(), 4);
    held.close().await;
}

#[tokio::test]
async fn a_server_that_closes_its_output_is_ended() {
    let mut held = Held::start(&["none"]);
    held.ready().await;
    let closed = error(held.act("none", "close").await);
    assert!(closed.contains("the server ended before it answered"), "{closed}");
    held.close().await;
}

#[tokio::test]
async fn a_changed_list_replaces_the_old_one() {
    let mut held = Held::start(&["none"]);
    held.ready().await;
    assert_eq!(success(held.act("none", "change").await), "changed");
    assert_eq!(held.ready().await, ["echo", "act", "new"]);
    // A hundred notifications are a few lists.
    let sent = fs::read_to_string(log(&held.mark)).expect("a log");
    assert!(sent.matches("tools/list").count() <= 4, "{sent}");
    held.close().await;
}

#[tokio::test]
async fn a_call_that_is_dropped_is_cancelled_at_the_server() {
    let mut held = Held::start(&["none"]);
    held.ready().await;
    let call = tokio::spawn(held.call("none", "act", "nothing"));
    let sent = || fs::read_to_string(log(&held.mark)).unwrap_or_default();
    wait_until("the call arrives", || sent().contains("\"nothing\"")).await;
    call.abort();
    wait_until("it is cancelled", || sent().contains("notifications/cancelled")).await;
    assert_eq!(success(held.call("none", "echo", "on").await), "on");
    held.close().await;
}

/// Lets the runtime work until something can be seen that is not reported.
pub(crate) async fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let looking = async {
        while !is_so() {
            tokio::task::yield_now().await;
        }
    };
    timeout(DEADLINE, looking).await.unwrap_or_else(|_| panic!("never saw that {what}"));
}

#[tokio::test]
async fn an_answer_that_is_too_long_is_an_error_and_the_server_lives() {
    let mut held = Held::start(&["none"]);
    held.ready().await;
    let long = error(held.act("none", "long").await);
    assert!(long.contains("the answer is longer than 16777216 bytes"), "{long}");
    assert_eq!(success(held.call("none", "echo", "on").await), "on");
    held.close().await;
}

#[tokio::test]
async fn a_line_without_an_end_costs_the_server() {
    let mut held = Held::start(&["none"]);
    held.ready().await;
    let flood = error(held.act("none", "flood").await);
    assert!(flood.contains("wrote a line of more than 268435456 bytes"), "{flood}");
    held.close().await;
}

#[tokio::test]
async fn a_flood_on_standard_error_stops_nothing() {
    let mut held = Held::start(&["none"]);
    held.ready().await;
    assert_eq!(success(held.act("none", "stderr").await), "written");
    held.close().await;
}

#[tokio::test]
async fn a_server_gets_a_short_environment_and_its_own_folder() {
    let more = json!({"cwd": "/"});
    let mut held = Held::with(&["none"], &more, true);
    held.ready().await;
    assert_eq!(success(held.act("none", "folder").await), "/");
    let environment = success(held.act("none", "environment").await);
    let names: Vec<_> = environment.lines().filter_map(|it| it.split('=').next()).collect();
    let allowed = [
        "HOME",
        "LANG",
        "LC_ALL",
        "LC_CTYPE",
        "LOGNAME",
        "PATH",
        "SHELL",
        "TERM",
        "TMPDIR",
        "TZ",
        "USER",
        "XDG_RUNTIME_DIR",
        MARK_VARIABLE,
        FAULT_VARIABLE,
        LOG_VARIABLE,
    ];
    let others: Vec<_> = names.iter().filter(|name| !allowed.contains(name)).collect();
    assert_eq!(others, [&""; 0], "{environment}");
    assert!(names.contains(&"PATH"), "{environment}");
    held.close().await;
}

#[tokio::test]
async fn closing_ends_servers_of_every_kind() {
    let mut held = Held::start(&["forks", "none", "stubborn"]);
    for _ in 0..3 {
        held.ready().await;
    }
    // The guards, the servers, and what one of them left behind.
    let count = || Process::marked(&format!("{MARK_VARIABLE}={}", held.mark)).len();
    eventually("all that they start are there", || (count() >= 10).then_some(()));
    held.close().await;
}

#[tokio::test]
async fn what_is_left_behind_by_a_server_that_ended_is_ended_too() {
    let mut held = Held::start(&["forks"]);
    held.ready().await;
    let count = || Process::marked(&format!("{MARK_VARIABLE}={}", held.mark)).len();
    eventually("all that it starts are there", || (count() >= 6).then_some(()));
    let died = error(held.act("forks", "crash").await);
    assert!(died.contains("status 5"), "{died}");
    held.close().await;
}

#[tokio::test]
async fn without_a_guard_the_process_group_is_ended() {
    let mut held = Held::with(&["none", "stubborn"], &json!({}), false);
    held.ready().await;
    held.ready().await;
    held.close().await;
    let mut held = Held::with(&["none", "stubborn"], &json!({}), false);
    held.ready().await;
    let mark = held.mark.clone();
    drop(held);
    tokio::task::yield_now().await;
    eventually("all are gone", || {
        let left = Process::marked(&format!("{MARK_VARIABLE}={mark}"));
        left.iter().all(|it| it.command_line().is_empty()).then_some(())
    });
}

// A transport is public, so that a program which embeds this one can name servers without a file.
#[test]
fn servers_can_be_named_by_hand() {
    let transport = Transport::Stdio {
        command: "mcp-server".to_owned(),
        args: Vec::new(),
        env: std::collections::BTreeMap::new(),
        cwd: None,
    };
    let config = ServerConfig {
        start_limit: Duration::from_secs(1),
        ..ServerConfig::new(ServerName::new("fs").expect("a name"), transport)
    };
    let servers = ToolServers::new(vec![config], ToolLimits::default(), None);
    assert_eq!(servers.names().map(ServerName::as_str).collect::<Vec<_>>(), ["fs"]);
}
