//! Tool servers, as their events describe them, and `/tools`.

use super::{Action, Note, Outgoing, Piece, ServerInfo, State};
use crate::protocol::proto::tools::{ToolServerChanged, ToolServerState};
use crate::tui::text::clean;

/// The state of a server whose tools are not known yet.
const STARTING: &str = "starting";

impl State {
    pub(super) fn server_changed(&mut self, changed: ToolServerChanged) {
        let state = match ToolServerState::try_from(changed.state) {
            Ok(ToolServerState::Starting) => STARTING,
            Ok(ToolServerState::Ready) => "ready",
            Ok(ToolServerState::Unavailable) => "unavailable",
            Ok(ToolServerState::Gone) => "gone",
            Ok(ToolServerState::Unspecified) | Err(_) => "unknown",
        };
        let tools = changed.tools.iter().map(|name| clean(name)).collect();
        let (server, reason) = (clean(&changed.server), clean(&changed.reason));
        if !reason.is_empty() {
            self.note(Note::Warning, format!("tool server {server} is {state}: {reason}"));
        }
        self.servers.insert(server, ServerInfo { state, reason, tools });
        self.list_tools_if_ready();
    }

    /// `/tools`: servers report to a session that has had a request, and are listed once each has
    /// started or failed.
    pub(super) fn tools(&mut self) -> Vec<Action> {
        if self.server_names.is_empty() && self.servers.is_empty() {
            let text =
                "there are no tool servers; start the chat with --mcp or --mcp-config to have some";
            self.note(Note::Information, text.to_owned());
            return Vec::new();
        }
        self.lists_tools = true;
        self.list_tools_if_ready();
        if !self.lists_tools {
            return Vec::new();
        }
        self.hint("the tool servers are being started; they are listed once they are ready");
        vec![Action::Request(Outgoing::FollowServers)]
    }

    fn list_tools_if_ready(&mut self) {
        let is_known = |name: &String| self.servers.contains_key(&clean(name));
        let is_ready = self.server_names.iter().all(is_known)
            && self.servers.values().all(|info| info.state != STARTING);
        if !self.lists_tools || !is_ready {
            return;
        }
        self.lists_tools = false;
        let mut lines = Vec::new();
        for (server, info) in &self.servers {
            let reason = if info.reason.is_empty() { "" } else { ": " };
            lines.push(format!("{server} ({}{reason}{})", info.state, info.reason));
            lines.extend(info.tools.iter().map(|tool| format!("  {tool}")));
        }
        self.print(Piece::Lines(lines));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tui::model::tests::Scene;
    use crate::tui::terminal::keys::Key;

    #[test]
    fn tools_are_listed_once_each_server_has_started_or_failed() {
        let mut scene = Scene::new();
        scene.state.server_names = vec!["a".to_owned(), "b".to_owned()];
        scene.write("/tools");
        scene.key(Key::Enter);
        assert_eq!(scene.actions, [Action::Request(Outgoing::FollowServers)]);
        let mut changed = |server: &str, state: ToolServerState, reason: &str, tools: &[&str]| {
            let (server, reason) = (server.to_owned(), reason.to_owned());
            let tools = tools.iter().map(|name| (*name).to_owned()).collect();
            let state = state.into();
            scene.ui("", ToolServerChanged { server, state, reason, tools });
            scene.pieces.iter().filter(|piece| matches!(piece, Piece::Lines(_))).count()
        };
        assert_eq!(changed("a", ToolServerState::Ready, "", &["one"]), 0);
        assert_eq!(changed("b", ToolServerState::Starting, "", &[]), 0);
        assert_eq!(changed("b", ToolServerState::Unavailable, "status 3", &[]), 1);
        assert_eq!(changed("b", ToolServerState::Ready, "", &[]), 1, "it is listed once");
        let lines = ["a (ready)", "  one", "b (unavailable: status 3)"].map(str::to_owned);
        assert!(scene.pieces.contains(&Piece::Lines(lines.to_vec())), "{:?}", scene.pieces);
    }
}
