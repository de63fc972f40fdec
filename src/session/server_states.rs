//! Events about tool servers, for a client with that extension.

use super::{Binding, Output, Session, Uptime, Warning};
use crate::conversation::event::SessionEvent;
use crate::protocol::command::Extension;
use crate::protocol::proto::tools::{ToolServerChanged, ToolServerState};
use crate::task::server::ServerName;
use crate::task::server::{ServerChange, ServerState};

/// The name of the warning that a server can't be used.
pub(super) const UNAVAILABLE: &str = "tool_server_unavailable";

impl Session {
    /// Reports the state of all tool servers to a client that turns the extension on.
    pub(super) fn announce_servers(&mut self) {
        if !self.recorder.is_on(Extension::ToolServers) {
            return;
        }
        let states = self.toolbox.states();
        let changes: Vec<_> =
            states.map(|(server, state, tools)| message(server, state, tools)).collect();
        for changed in changes {
            self.recorder.record_of_session(None, SessionEvent::ServerChanged(changed));
        }
    }

    pub(super) fn server_changed(&mut self, now: Uptime, change: &ServerChange) {
        self.toolbox.server_changed(change);
        let (server, tools) = (&change.server, self.toolbox.names_of(&change.server));
        if let ServerState::Failed { reason } | ServerState::Gone { reason } = &change.state {
            let text = format!("the tools of the MCP server {server} can't be called: {reason}");
            let code = Some(UNAVAILABLE);
            self.recorder.push(Output::Warning(Warning { text, has_event: true, code }));
        }
        // Until it is bound, the session may still get another name.
        if self.binding == Binding::Bound && self.recorder.is_on(Extension::ToolServers) {
            let changed = message(server, &change.state, tools);
            self.recorder.record_of_session(None, SessionEvent::ServerChanged(changed));
        }
        self.advance(now, |run, context| run.servers_changed(context));
    }
}

fn message(server: &ServerName, state: &ServerState, tools: Vec<String>) -> ToolServerChanged {
    let (state, reason) = match state {
        ServerState::Starting => (ToolServerState::Starting, String::new()),
        ServerState::Ready => (ToolServerState::Ready, String::new()),
        ServerState::Failed { reason } => (ToolServerState::Unavailable, reason.clone()),
        ServerState::Gone { reason } => (ToolServerState::Gone, reason.clone()),
    };
    ToolServerChanged { server: server.to_string(), state: state.into(), reason, tools }
}
