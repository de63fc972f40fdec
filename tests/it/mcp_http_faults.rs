//! What is said of MCP servers over HTTP that do not answer as they should, and what is done all the same.

use crate::mcp_http::{HttpServer, KEY, TOGETHER_CALLS, call, first_state, servers, servers_with};
use crate::mcp_servers::error;
use duologue::conversation::event::ToolResult;
use duologue::task::server::ServerState;
use futures_util::future::join_all;
use serde_json::json;

/// Why the server at `url` does not start.
async fn fault(url: &str) -> String {
    let mut servers = servers(url);
    let (ServerState::Failed { reason }, _) = first_state(&mut servers).await else {
        panic!("it started")
    };
    servers.close().await;
    assert!(!reason.contains(KEY), "{reason}");
    reason
}

#[tokio::test]
async fn redirects_that_keep_the_message_and_the_origin_are_followed() {
    let server = HttpServer::start();
    let mut servers = servers(&server.url("/moved"));
    assert_eq!(first_state(&mut servers).await.0, ServerState::Ready);
    assert!(matches!(call(&servers, "search").await, ToolResult::Success(_)));
    let requests = server.requests();
    let arrived: Vec<_> = requests.iter().filter(|it| it.line.starts_with("POST /mcp ")).collect();
    assert!(arrived.iter().any(|it| it.message["method"] == "tools/call"));
    assert!(arrived.iter().all(|it| it.head.contains(KEY)));
    servers.close().await;
}

#[tokio::test]
async fn another_redirect_is_an_error_that_says_where_it_leads() {
    let server = HttpServer::start();
    for (path, target) in [
        ("/away", "http://127.0.0.1:1/other?...".to_owned()),
        ("/found", server.url("/mcp")),
        ("/loop", server.url("/loop")),
    ] {
        let reason = fault(&server.url(path)).await;
        assert!(reason.contains(&format!("it redirects to {target}, ")), "{path}: {reason}");
    }
    let arrived = |path: &str| {
        server.requests().iter().filter(|it| it.line.split(' ').nth(1) == Some(path)).count()
    };
    assert_eq!((arrived("/mcp"), arrived("/loop")), (0, 4));
}

#[tokio::test]
async fn an_address_without_streamable_http_may_be_that_of_the_older_transport() {
    let server = HttpServer::start();
    let reason = fault(&server.url("/missing")).await;
    assert!(reason.contains("older transport `sse`") && reason.contains("404"), "{reason}");
}

#[tokio::test]
async fn the_notification_that_ends_the_handshake_may_be_accepted_with_any_body() {
    let server = HttpServer::start();
    for path in ["/initialized/page", "/initialized/untyped", "/initialized/stream"] {
        let mut servers = servers(&server.url(path));
        assert_eq!(first_state(&mut servers).await.0, ServerState::Ready, "{path}");
        assert!(matches!(call(&servers, "search").await, ToolResult::Success(_)), "{path}");
        servers.close().await;
    }
}

#[tokio::test]
async fn a_status_that_refuses_the_end_of_the_handshake_is_said() {
    let server = HttpServer::start();
    for (path, expected) in
        [("/initialized/400", "HTTP 400 Bad Request: not now"), ("/initialized/500", "HTTP 500")]
    {
        let reason = fault(&server.url(path)).await;
        assert!(reason.contains(expected), "{path}: {reason}");
    }
}

#[tokio::test]
async fn a_call_whose_answer_is_lost_may_have_been_made() {
    let server = HttpServer::start();
    let mut servers = servers(&server.url("/mcp"));
    assert_eq!(first_state(&mut servers).await.0, ServerState::Ready);
    for tool in ["empty", "cut", "failed", "page", "other id", "accepted"] {
        let why = error(call(&servers, tool).await);
        let count = why.matches("whatever was asked for may or may not have been done").count();
        assert_eq!(count, 1, "{tool}: {why}");
    }
    assert_eq!(server.count("tools/call"), 6);
    servers.close().await;
}

#[tokio::test]
async fn all_calls_of_an_answer_run_at_the_same_time() {
    let server = HttpServer::start();
    let mut servers = servers(&server.url("/mcp"));
    assert_eq!(first_state(&mut servers).await.0, ServerState::Ready);
    let calls = (0..TOGETHER_CALLS).map(|_| call(&servers, "together"));
    let results = join_all(calls).await;
    assert!(results.iter().all(|it| *it == ToolResult::Success("met".to_owned())), "{results:?}");
    servers.close().await;
}

#[tokio::test]
async fn an_authorization_of_the_configuration_is_named_where_it_is_not_accepted() {
    let server = HttpServer::start();
    let reason = fault(&server.url("/private")).await;
    assert!(reason.contains("not accepted the `Authorization` of its `headers`"), "{reason}");
    assert!(!reason.contains("mcp login"), "{reason}");
}

#[tokio::test]
async fn a_login_is_required_by_a_status_without_a_challenge_too() {
    let server = HttpServer::start();
    let url = server.url("/locked");
    let mut servers = servers_with(&url, &json!({}));
    let (ServerState::Failed { reason }, _) = first_state(&mut servers).await else {
        panic!("it started")
    };
    let login = format!("`duologue mcp login {url}` makes one");
    assert!(reason.contains(&login) && reason.contains("401 Unauthorized: no token"), "{reason}");
    servers.close().await;
}

/// Many servers take a key in a header or in the query of their address, and send no challenge.
#[tokio::test]
async fn a_key_may_be_why_a_status_without_a_challenge_was_sent() {
    let server = HttpServer::start();
    let key = json!({ "X-Api-Key": KEY });
    let (wrong, none) = ("not accepted the `headers` or query", "it requires a login, or");
    for (path, headers, expected) in [
        ("/locked", &key, wrong),
        ("/locked?v=1", &json!({}), wrong),
        ("/private", &key, none),
        ("/locked", &json!({}), none),
    ] {
        let mut servers = servers_with(&server.url(path), headers);
        let (ServerState::Failed { reason }, _) = first_state(&mut servers).await else {
            panic!("it started")
        };
        let login = format!("`duologue mcp login {}", server.url(path.trim_end_matches("v=1")));
        assert!(reason.contains(expected) && reason.contains(&login), "{path}: {reason}");
        servers.close().await;
    }
}

#[tokio::test]
async fn a_scope_that_is_missing_is_named() {
    let server = HttpServer::start();
    let url = server.url("/mcp");
    let login = format!("`duologue mcp login {url}` with this scope");
    let own_header = "the `Authorization` of its `headers` does not permit this".to_owned();
    for (mut servers, expected) in
        [(servers_with(&url, &json!({})), login), (servers(&url), own_header)]
    {
        assert_eq!(first_state(&mut servers).await.0, ServerState::Ready);
        let why = error(call(&servers, "forbidden").await);
        assert!(why.contains(&expected) && why.contains("files:read"), "{why}");
        assert!(!why.contains("may or may not"), "{why}");
        servers.close().await;
    }
}
