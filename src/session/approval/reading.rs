//! Which tools a rule with a separator names. Names of servers and of tools may have separators
//! themselves, so a rule is parsed with the names of all servers: the part before one of its separators
//! must be a server.

use super::{NamedTool, SEPARATOR};
use crate::session::catalogue::sanitised;
use crate::support::glob::fits;
use crate::task::server::ServerName;

/// The names of all servers.
#[derive(Clone, Debug, Default)]
pub struct ServerNames(Vec<Names>);

#[derive(Clone, Debug)]
struct Names {
    own: String,
    /// As it stands in a name that the model is shown.
    shown: String,
}

/// One way to parse a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reading<'a> {
    Server {
        server: &'a str,
        tools: &'a str,
    },
    /// Tools of all servers whose name fits.
    Fitting {
        servers: &'a str,
        tools: &'a str,
    },
}

impl ServerNames {
    /// The names `servers`.
    pub fn new<'a>(servers: impl IntoIterator<Item = &'a ServerName>) -> Self {
        let names = servers.into_iter().map(|server| {
            let own = server.as_str().to_owned();
            Names { shown: sanitised(&own), own }
        });
        Self(names.collect())
    }

    /// Whether a server has this name.
    pub(super) fn has(&self, server: &str) -> bool {
        self.0.iter().any(|it| it.own == server)
    }

    /// Each way in which `rule` names tools of servers that there are.
    pub(super) fn readings<'a>(&'a self, rule: &'a str) -> Vec<Reading<'a>> {
        let splits = rule
            .char_indices()
            .filter_map(|(at, _)| Some((&rule[..at], rule[at..].strip_prefix(SEPARATOR)?)));
        splits.flat_map(|(server, tools)| self.readings_of(server, tools)).collect()
    }

    fn readings_of<'a>(&'a self, server: &'a str, tools: &'a str) -> Vec<Reading<'a>> {
        if server.contains(['*', '?']) {
            let is_one = |it: &Names| fits(server, &it.own) || fits(server, &it.shown);
            let reading = Reading::Fitting { servers: server, tools };
            return if self.0.iter().any(is_one) { vec![reading] } else { Vec::new() };
        }
        // A server's own name goes before one that only looks like it.
        let own = self.0.iter().find(|it| it.own == server);
        let named: Vec<&Names> = match own {
            Some(own) => vec![own],
            None => self.0.iter().filter(|it| it.shown == server).collect(),
        };
        named.into_iter().map(|it| Reading::Server { server: &it.own, tools }).collect()
    }

    /// The ways in which `rule` can be read, for people, if there is more than one.
    pub(super) fn ambiguity(&self, rule: &str) -> Option<String> {
        let readings = self.readings(rule);
        let ways: Vec<_> = readings.iter().map(Reading::for_people).collect();
        (ways.len() > 1).then(|| ways.join(" or "))
    }
}

impl Reading<'_> {
    /// Whether `tool` is among those that it names.
    pub(super) fn names(&self, tool: &NamedTool<'_>) -> bool {
        let made = tool.made.as_ref();
        match *self {
            Self::Server { server, tools } => {
                let is_made = made.is_some_and(|(_, made)| fits(tools, made));
                server == tool.server && (fits(tools, tool.tool) || is_made)
            }
            Self::Fitting { servers, tools } => {
                let is_made = made.is_some_and(|(of, made)| fits(servers, of) && fits(tools, made));
                (fits(servers, tool.server) && fits(tools, tool.tool)) || is_made
            }
        }
    }

    fn for_people(&self) -> String {
        match self {
            Self::Server { server, tools } => format!("{tools:?} of the server {server:?}"),
            Self::Fitting { servers, tools } => format!("{tools:?} of the servers {servers:?}"),
        }
    }
}
