//! The states of the servers: one row for each.

use crate::task::server::{ServerChange, ServerState};
use crate::task::server::{ServerName, ServerTool};
use crate::tool::connection::Link;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The state of all servers; `L` is what it takes to call the tools of one.
#[derive(Debug)]
pub(super) struct Table<L = Link>(BTreeMap<ServerName, Row<L>>);

#[derive(Debug)]
struct Row<L> {
    /// Rises with every change.
    revision: u64,
    phase: Phase<L>,
    tools: Arc<[ServerTool]>,
    /// Its tools when it was ready last, until it has failed.
    listed: Arc<[ServerTool]>,
}

/// The state of a server, with what it takes to call its tools.
#[derive(Clone, Debug)]
pub(super) enum Phase<L = Link> {
    Starting,
    Ready(L),
    Failed { reason: String },
    Gone { reason: String },
}

impl<L> Default for Table<L> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<L: Clone> Table<L> {
    /// A table in which all `servers` are to be started.
    pub(super) fn new<'a>(servers: impl Iterator<Item = &'a ServerName>) -> Self {
        let row = || Row {
            revision: 0,
            phase: Phase::Starting,
            tools: Arc::new([]),
            listed: Arc::new([]),
        };
        Self(servers.map(|server| (server.clone(), row())).collect())
    }

    /// Sets the state and the tools of a server.
    pub(super) fn set(&mut self, server: &ServerName, phase: Phase<L>, tools: Arc<[ServerTool]>) {
        if let Some(row) = self.0.get_mut(server) {
            // A server may say that its list has changed when it has not, as often as it likes.
            let is_same = matches!((&row.phase, &phase), (Phase::Ready(_), Phase::Ready(_)))
                && row.tools == tools;
            row.revision += u64::from(!is_same);
            if let Phase::Ready(_) | Phase::Failed { .. } = &phase {
                row.listed = Arc::clone(&tools);
            }
            row.phase = phase;
            row.tools = tools;
        }
    }

    /// Fails the calls of a server without a supervisor, unless they fail already.
    pub(super) fn close(&mut self, server: &ServerName, reason: &str) {
        let is_failed = matches!(self.phase(server), None | Some(Phase::Failed { .. }));
        if !is_failed {
            self.set(server, Phase::Failed { reason: reason.to_owned() }, Arc::new([]));
        }
    }

    /// The state of a server, if it is one of ours.
    pub(super) fn phase(&self, server: &ServerName) -> Option<Phase<L>> {
        self.0.get(server).map(|row| row.phase.clone())
    }

    /// A tool of a server, as the server listed it last.
    pub(super) fn tool(&self, server: &ServerName, tool: &str) -> Option<ServerTool> {
        let row = self.0.get(server)?;
        row.listed.iter().find(|listed| listed.name == tool).cloned()
    }

    /// The state of the first server that has changed since its revision in `reported`, which is set
    /// to the new one.
    pub(super) fn unreported(
        &self,
        reported: &mut BTreeMap<ServerName, u64>,
    ) -> Option<ServerChange> {
        let is_new = |(server, row): &(&ServerName, &Row<L>)| {
            row.revision > reported.get(*server).copied().unwrap_or(0)
        };
        let (server, row) = self.0.iter().find(is_new)?;
        reported.insert(server.clone(), row.revision);
        let state = match &row.phase {
            Phase::Starting => ServerState::Starting,
            Phase::Ready(_) => ServerState::Ready,
            Phase::Failed { reason } => ServerState::Failed { reason: reason.clone() },
            Phase::Gone { reason } => ServerState::Gone { reason: reason.clone() },
        };
        Some(ServerChange { server: server.clone(), state, tools: Arc::clone(&row.tools) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Map;

    fn tools(names: &[&str]) -> Arc<[ServerTool]> {
        let tool = |name: &&str| ServerTool {
            name: (*name).to_owned(),
            description: String::new(),
            input_schema: Arc::new(Map::new()),
        };
        names.iter().map(tool).collect()
    }

    /// A server may report any number of changes of its list: an equal list is not reported again, and the
    /// newest link replaces the last one.
    #[test]
    fn only_changes_are_reported() {
        let server = ServerName::new("fs").expect("a name");
        let mut table = Table::new([&server].into_iter());
        let mut reported = BTreeMap::new();
        let mut check = |phase: Phase<u32>, names: &[&str], is_change: bool| {
            table.set(&server, phase.clone(), tools(names));
            let change = table.unreported(&mut reported);
            assert_eq!(change.is_some(), is_change, "{phase:?} {names:?}");
            assert!(table.unreported(&mut reported).is_none(), "{phase:?} twice");
            if let Phase::Ready(link) = phase {
                assert!(matches!(table.phase(&server), Some(Phase::Ready(kept)) if kept == link));
            }
        };
        let failed = || Phase::Failed { reason: "it ended".to_owned() };
        check(Phase::Ready(1), &["read"], true);
        check(Phase::Ready(2), &["read"], false);
        check(Phase::Ready(2), &["read", "write"], true);
        check(Phase::Ready(2), &["write", "read"], true);
        check(failed(), &[], true);
        check(failed(), &[], true);
        check(Phase::Ready(3), &["read"], true);
        check(Phase::Ready(3), &["read"], false);
    }

    /// What a call waits for must be the tool that was decided about.
    #[test]
    fn a_tool_is_known_until_its_server_lists_others_or_has_failed() {
        let server = ServerName::new("fs").expect("a name");
        let mut table = Table::<u32>::new([&server].into_iter());
        let reason = || "it ended".to_owned();
        for (phase, names, is_known) in [
            (Phase::Starting, [].as_slice(), false),
            (Phase::Ready(1), &["read"], true),
            (Phase::Gone { reason: reason() }, &[], true),
            (Phase::Starting, &[], true),
            (Phase::Ready(2), &["write"], false),
            (Phase::Ready(2), &["read"], true),
            (Phase::Failed { reason: reason() }, &[], false),
        ] {
            table.set(&server, phase.clone(), tools(names));
            assert_eq!(table.tool(&server, "read").is_some(), is_known, "{phase:?} {names:?}");
        }
    }
}
