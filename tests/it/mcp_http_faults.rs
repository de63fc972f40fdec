//! What is said of MCP servers over HTTP that do not answer as they should, and what is done all the same.

use crate::mcp_http::{HttpServer, TOGETHER_CALLS, call, first_state, servers};
use duologue::conversation::event::ToolResult;
use duologue::task::server::ServerState;
use futures_util::future::join_all;

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
