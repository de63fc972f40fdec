//! Tool servers, as their events describe them, and `/tools`.

use super::{Action, Note, Outgoing, Piece, ServerInfo, State};
use crate::protocol::proto::tools::{ToolServerChanged, ToolServerState};
use crate::tool::servers::Offers;
use crate::tui::text::clean;

/// The state of a server whose tools are not known yet.
const STARTING: &str = "starting";

/// The state of a server whose tools can be called.
const READY: &str = "ready";

/// The state of a server that is started again soon.
const GONE: &str = "gone";

/// What is listed once it is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Listing {
    /// The tools, once each server has started or failed.
    Tools,
    /// The states of the servers, and what they offer to ask with.
    States,
}

impl State {
    pub(super) fn server_changed(&mut self, changed: ToolServerChanged) {
        let state = match ToolServerState::try_from(changed.state) {
            Ok(ToolServerState::Starting) => STARTING,
            Ok(ToolServerState::Ready) => READY,
            Ok(ToolServerState::Unavailable) => "unavailable",
            Ok(ToolServerState::Gone) => GONE,
            Ok(ToolServerState::Unspecified) | Err(_) => "unknown",
        };
        let tools = changed.tools.iter().map(|name| clean(name)).collect();
        let (server, reason) = (clean(&changed.server), clean(&changed.reason));
        if !reason.is_empty() {
            self.note(Note::Warning, format!("tool server {server} is {state}: {reason}"));
        }
        self.servers.insert(server, ServerInfo { state, reason, tools });
        self.list_servers_if_known();
    }

    /// A server has said what it offers.
    pub(super) fn offered(&mut self, server: String, offers: Result<Offers, String>) {
        self.offers.insert(clean(&server), offers);
        self.list_servers_if_known();
    }

    /// `/tools` and `/mcp`: servers report to a session that has had a request, and are listed once that is known
    /// which is listed.
    pub(super) fn list_servers(&mut self, listing: Listing) -> Vec<Action> {
        if self.server_names.is_empty() && self.servers.is_empty() {
            let text =
                "there are no tool servers; start the chat with --mcp or --mcp-config to have some";
            self.note(Note::Information, text.to_owned());
            return Vec::new();
        }
        self.lists_servers = Some(listing);
        self.list_servers_if_known();
        let mut actions = Vec::new();
        if self.lists_servers.is_some() {
            self.hint("the tool servers are being started; they are listed once they are ready");
            actions.push(Action::Request(Outgoing::FollowServers));
        }
        if listing == Listing::States {
            // What they offer may have changed since they were asked.
            actions.push(Action::AskServers(self.server_names.clone()));
        }
        actions
    }

    /// `/mcp restart`.
    pub(super) fn restart_server(&mut self, name: String) -> Vec<Action> {
        if self.server_names.contains(&name) {
            return vec![Action::RestartServer(name)];
        }
        let text = format!("there is no tool server {}; /mcp lists them", clean(&name));
        self.note(Note::Error, text);
        Vec::new()
    }

    fn list_servers_if_known(&mut self) {
        let Some(listing) = self.lists_servers else { return };
        let is_known = |name: &String| self.servers.contains_key(&clean(name));
        let is_settled = |(server, info): (&String, &ServerInfo)| match listing {
            Listing::Tools => ![STARTING, GONE].contains(&info.state),
            Listing::States => info.state != READY || self.offers.contains_key(server),
        };
        if !self.server_names.iter().all(is_known) || !self.servers.iter().all(is_settled) {
            return;
        }
        self.lists_servers = None;
        let mut lines = Vec::new();
        for (server, info) in &self.servers {
            let reason = if info.reason.is_empty() { "" } else { ": " };
            let state = format!("{server} ({}{reason}{})", info.state, info.reason);
            match (listing, info.tools.len()) {
                (Listing::Tools, _) => {
                    lines.push(state);
                    lines.extend(info.tools.iter().map(|tool| format!("  {tool}")));
                    continue;
                }
                (Listing::States, 0) => lines.push(state),
                (Listing::States, 1) => lines.push(format!("{state}, 1 tool")),
                (Listing::States, count) => lines.push(format!("{state}, {count} tools")),
            }
            lines.extend(self.offer_lines(server));
        }
        self.print(Piece::Lines(lines));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tui::model::Event;
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

    #[test]
    fn states_are_listed_and_a_server_is_started_again() {
        let mut scene = Scene::new();
        scene.state.server_names = vec!["a".to_owned(), "b".to_owned()];
        let mut changed = |server: &str, state: ToolServerState, tools: &[&str]| {
            let (server, state, reason) = (server.to_owned(), state.into(), String::new());
            let tools = tools.iter().map(|name| (*name).to_owned()).collect();
            scene.ui("", ToolServerChanged { server, state, reason, tools });
        };
        changed("a", ToolServerState::Ready, &["one", "two"]);
        changed("b", ToolServerState::Starting, &[]);
        let (resources, prompts) = ([].into(), [].into());
        let offers = Ok(Offers { resources, prompts, warnings: Vec::new() });
        scene.event(Event::Offered { server: "a".to_owned(), offers });
        let mut enter = |text: &str| {
            scene.write(text);
            scene.key(Key::Enter);
        };
        enter("/mcp");
        enter("/mcp restart b");
        enter("/mcp restart c");
        let lines = ["a (ready), 2 tools", "b (starting)"].map(str::to_owned);
        assert!(scene.pieces.contains(&Piece::Lines(lines.to_vec())), "{:?}", scene.pieces);
        let asked = Action::AskServers(vec!["a".to_owned(), "b".to_owned()]);
        assert_eq!(scene.actions, [asked, Action::RestartServer("b".to_owned())]);
        let unknown = "there is no tool server c; /mcp lists them".to_owned();
        assert_eq!(scene.pieces.last(), Some(&Piece::Note(Note::Error, unknown)));
    }
}
