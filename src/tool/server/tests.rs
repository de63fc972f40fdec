//! How long a server may take that says nothing, and when one that has failed is started again.

use super::restarts::RETRY_DELAY;
use super::*;
use crate::support::test_folder::TestFolder;
use crate::task::limits::ToolLimits;
use crate::task::server::ServerState;
use crate::tool::config::START_LIMIT;
use crate::tool::login::LoginFile;
use crate::tool::servers::ToolServers;
use reqwest::Url;
use rmcp::transport::auth::CredentialStore;
use serde_json::json;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;
use tokio::net::TcpListener;
use tokio::task::yield_now;
use tokio::time::{advance, resume};

/// Shorter than what the SDK, or the end of the process, waits for.
const DEADLINE: Duration = Duration::from_secs(5);

/// A server, perhaps with a login, which is connected to and answers nothing.
struct Silent {
    servers: ToolServers,
    listener: TcpListener,
    _folder: TestFolder,
}

impl Silent {
    async fn start(start_limit: Duration, has_login: bool) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let url = Url::parse(&format!("http://{address}/mcp")).expect("a URL");
        let folder = TestFolder::new();
        let login = LoginFile::new(&folder.path(""), &url);
        let tokens = json!({"access_token": "t0ken", "token_type": "bearer"});
        let credentials = json!({"client_id": "c", "token_response": tokens});
        let credentials = serde_json::from_value(credentials).expect("credentials");
        login.save(credentials).await.expect("a file");
        let login = has_login.then_some(login);
        let name = ServerName::new("silent").expect("a name");
        let transport = Transport::Http { url, headers: BTreeMap::new(), login };
        let config = ServerConfig { start_limit, ..ServerConfig::new(name, transport) };
        let mut servers = ToolServers::new(vec![config], ToolLimits::default(), None);
        servers.start();
        Self { servers, listener, _folder: folder }
    }
}

#[tokio::test]
async fn the_time_limit_of_a_start_is_that_of_its_login_too() {
    let mut silent = Silent::start(Duration::from_millis(20), true).await;
    let failed = async {
        loop {
            if let ServerState::Failed { reason } = silent.servers.changed().await.state {
                return reason;
            }
        }
    };
    let reason = timeout(DEADLINE, failed).await.expect("it fails in time");
    assert_eq!(reason, "it was not ready within 20ms");
}

#[tokio::test]
async fn a_server_whose_login_is_looked_at_is_closed_at_once() {
    let mut silent = Silent::start(START_LIMIT, true).await;
    let _connection = silent.listener.accept().await.expect("a connection");
    timeout(DEADLINE, silent.servers.close()).await.expect("it is closed in time");
}

/// Whether the look for its login hangs, or the handshake.
#[tokio::test]
async fn a_restart_does_not_wait_for_a_start_that_hangs() {
    for has_login in [true, false] {
        let mut silent = Silent::start(START_LIMIT, has_login).await;
        let _hanging = silent.listener.accept().await.expect("a connection");
        assert!(silent.servers.restart("silent"));
        let again = timeout(DEADLINE, silent.listener.accept()).await;
        let _again = again.expect("it is started at once").expect("a connection");
        timeout(DEADLINE, silent.servers.close()).await.expect("it is closed in time");
    }
}

/// A server with one tool, for a shell.
const SERVER: &str = r#"while read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  case $line in
    *'"method":"initialize"'*) result='{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}';;
    *'"method":"tools/list"'*) result='{"tools":[{"name":"late","inputSchema":{"type":"object"}}]}';;
    *) continue;;
  esac
  printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$result"
done
"#;

/// The server `late`, which is the `script` that the program `shell` runs.
fn process(shell: &Path, script: &Path) -> ToolServers {
    let transport = Transport::Stdio {
        command: shell.display().to_string(),
        args: vec![script.display().to_string()],
        env: BTreeMap::new(),
        cwd: None,
    };
    let config = ServerConfig::new(ServerName::new("late").expect("a name"), transport);
    ToolServers::new(vec![config], ToolLimits::default(), None)
}

/// Lets the supervisor do what it can without waiting.
async fn settle() {
    for _ in 0..100 {
        yield_now().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_has_failed_is_tried_again_in_silence() {
    let folder = TestFolder::new();
    let script = folder.path("server.sh");
    fs::write(&script, SERVER).expect("a script");
    let shell = folder.path("shell");
    let mut servers = process(&shell, &script);
    servers.start();
    let failed = servers.changed().await;
    assert!(matches!(failed.state, ServerState::Failed { .. }), "{failed:?}");
    advance(RETRY_DELAY + Duration::from_secs(1)).await;
    settle().await;
    assert!(servers.try_changed().is_none(), "it is not there yet, which is known");
    symlink("/bin/sh", &shell).expect("a link");
    advance(RETRY_DELAY).await;
    settle().await;
    assert!(servers.try_changed().is_none(), "the second time comes later");
    advance(RETRY_DELAY + Duration::from_secs(1)).await;
    // A process takes its time.
    resume();
    let ready = timeout(START_LIMIT, servers.changed()).await.expect("it is started");
    assert!(matches!(ready.state, ServerState::Ready), "{ready:?}");
    assert_eq!(ready.tools.iter().map(|tool| &*tool.name).collect::<Vec<_>>(), ["late"]);
    servers.close().await;
}

/// As each start may open a window of a browser.
#[tokio::test(start_paused = true)]
async fn a_program_that_hangs_is_started_once() {
    let folder = TestFolder::new();
    let (script, started) = (folder.path("server.sh"), folder.path("started"));
    fs::write(&script, "exec sleep 1000\n").expect("a script");
    let shell = Path::new("/bin/sh");
    let mut servers = process(shell, &script);
    servers.start();
    loop {
        if let ServerState::Failed { reason } = servers.changed().await.state {
            assert_eq!(reason, "it was not ready within 60s");
            break;
        }
    }
    let marking = format!("echo started > '{}'\nexec sleep 1000\n", started.display());
    fs::write(&script, marking).expect("a script");
    for _ in 0..60 {
        advance(Duration::from_secs(30)).await;
        settle().await;
        // A process takes its time: that of this one is enough for another that was started before it.
        let other = Command::new(shell).args(["-c", "/bin/true; /bin/true"]).status();
        assert!(other.expect("a shell").success());
        assert!(!started.exists() && servers.try_changed().is_none());
    }
    servers.close().await;
}
