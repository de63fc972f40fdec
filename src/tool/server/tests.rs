//! How long a server may take that says nothing.

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
use tokio::net::TcpListener;

/// Shorter than what the SDK, or the end of the process, waits for.
const DEADLINE: Duration = Duration::from_secs(5);

/// A server with a login, which is connected to and answers nothing.
struct Silent {
    servers: ToolServers,
    listener: TcpListener,
    _folder: TestFolder,
}

impl Silent {
    async fn start(start_limit: Duration) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let url = Url::parse(&format!("http://{address}/mcp")).expect("a URL");
        let folder = TestFolder::new();
        let login = LoginFile::new(&folder.path(""), &url);
        let tokens = json!({"access_token": "t0ken", "token_type": "bearer"});
        let credentials = json!({"client_id": "c", "token_response": tokens});
        let credentials = serde_json::from_value(credentials).expect("credentials");
        login.save(credentials).await.expect("a file");
        let config = ServerConfig {
            name: ServerName::new("silent").expect("a name"),
            transport: Transport::Http { url, headers: BTreeMap::new(), login: Some(login) },
            start_limit,
            protocol_version: None,
        };
        let mut servers = ToolServers::new(vec![config], ToolLimits::default(), None);
        servers.start();
        Self { servers, listener, _folder: folder }
    }
}

#[tokio::test]
async fn the_time_limit_of_a_start_is_that_of_its_login_too() {
    let mut silent = Silent::start(Duration::from_millis(20)).await;
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
    let mut silent = Silent::start(START_LIMIT).await;
    let _connection = silent.listener.accept().await.expect("a connection");
    timeout(DEADLINE, silent.servers.close()).await.expect("it is closed in time");
}
