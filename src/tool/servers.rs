//! MCP servers. They are started and kept by tasks of the runtime; what is known of them stands in
//! one table, which calls and [`ToolServers::changed`] read.

use crate::chat::event::ToolResult;
use crate::tool::catalogue::{ServerName, ServerTool};
use crate::tool::config::ServerConfig;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::sync::watch;

/// Limits on what servers may do.
#[derive(Clone, Copy, Debug)]
pub struct ToolLimits {
    /// Bytes of the text of a result; the rest is cut, with a note to the model.
    pub result_bytes: usize,
}

/// The MCP servers of a process.
#[derive(Debug, Default)]
pub struct ToolServers {
    configs: BTreeMap<ServerName, ServerConfig>,
    table: watch::Sender<Table>,
    /// Revisions of the rows that [`ToolServers::changed`] has returned.
    reported: BTreeMap<ServerName, u64>,
}

/// What is known of each server.
type Table = BTreeMap<ServerName, Row>;

#[derive(Debug)]
struct Row {
    /// Rises with every change.
    revision: u64,
    state: ServerState,
    tools: Arc<[ServerTool]>,
}

/// What state a server is in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServerState {
    /// It is being started.
    Starting,
    /// Its tools can be called.
    Ready,
    /// It could not be started, and is not tried again.
    Failed {
        /// Why, for people.
        reason: String,
    },
    /// It ended, and is started again soon.
    Gone {
        /// Why, for people.
        reason: String,
    },
}

/// A server's new state.
#[derive(Clone, Debug)]
pub struct ServerChange {
    /// The server.
    pub server: ServerName,
    /// Its state.
    pub state: ServerState,
    /// All its tools; they replace those that it had.
    pub tools: Arc<[ServerTool]>,
}

impl Default for ToolLimits {
    fn default() -> Self {
        Self { result_bytes: 256 * 1024 }
    }
}

impl ToolServers {
    /// The servers of `configs`, none of which is started yet. `guard` is an executable of this
    /// program, which can act as guard of a server's processes (`guard::main`); without it, only the
    /// server's process group is ended, and nothing is if this process is killed.
    pub fn new(configs: Vec<ServerConfig>, limits: ToolLimits, guard: Option<PathBuf>) -> Self {
        let _ = (limits, guard);
        let configs: BTreeMap<_, _> = configs.into_iter().map(|it| (it.name.clone(), it)).collect();
        let rows = configs.keys().map(|name| {
            (name.clone(), Row { revision: 0, state: ServerState::Starting, tools: Arc::new([]) })
        });
        let table = watch::Sender::new(rows.collect());
        Self { configs, table, reported: BTreeMap::new() }
    }

    /// Starts all servers, in parallel. Call it once, inside of a runtime.
    pub fn start(&mut self) {}

    /// The names of all servers, in order.
    pub fn names(&self) -> impl Iterator<Item = &ServerName> {
        self.configs.keys()
    }

    /// Waits for a change of a server and returns the server's latest state; several changes may
    /// become one. Without servers it waits for ever. A future that is dropped loses nothing.
    pub async fn changed(&mut self) -> ServerChange {
        let mut table = self.table.subscribe();
        loop {
            if let Some(change) = self.unreported() {
                return change;
            }
            if table.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }

    fn unreported(&mut self) -> Option<ServerChange> {
        let table = self.table.borrow();
        let is_new = |(name, row): &(&ServerName, &Row)| {
            row.revision > self.reported.get(*name).copied().unwrap_or(0)
        };
        let (server, row) = table.iter().find(is_new)?;
        self.reported.insert(server.clone(), row.revision);
        let (server, state) = (server.clone(), row.state.clone());
        Some(ServerChange { server, state, tools: Arc::clone(&row.tools) })
    }

    /// Calls a server's tool. Whatever goes wrong is a [`ToolResult::Error`] for the model. A future
    /// that is dropped cancels the call at the server. There is no limit on the time.
    pub fn call(
        &self,
        server: &ServerName,
        tool: &str,
        arguments: Map<String, Value>,
    ) -> impl Future<Output = ToolResult> + Send + 'static {
        let _ = (tool, arguments);
        let text = format!("the server `{server}` is not running");
        async move { ToolResult::Error(text) }
    }

    /// Ends all servers, within a few seconds.
    pub async fn close(&mut self) {}
}
