//! All tools that there are, under names that every provider takes.

use crate::conversation::tool::ToolSpec;
use crate::session::approval::{
    ApprovalRules, NamedTool, Ruling, SEPARATOR, ServerNames, ToolGlob,
};
use crate::task::server::{ServerName, ServerTool};
use ring::digest::{Context, SHA256};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

/// Longest name that every provider takes, in bytes.
const NAME_BYTES_MAX: usize = 64;

/// Hexadecimal digits of the hash in a name that was cut or changed.
const HASH_DIGITS: usize = 8;

/// A tool that the client of the session runs.
#[derive(Clone, Debug, PartialEq)]
pub struct ClientTool {
    /// The tool as the client declared it.
    pub spec: ToolSpec,
    /// A person answers it.
    pub human: bool,
}

/// The party that runs a tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// The client.
    Client {
        /// A person answers it.
        human: bool,
    },
    /// An MCP server.
    Server {
        /// The server.
        server: ServerName,
        /// The server's own name for the tool.
        tool: String,
    },
}

/// A tool in the catalogue.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// The tool as it is offered to the model.
    pub spec: ToolSpec,
    /// Who runs it.
    pub source: Source,
    /// Hash of who runs it, its own name, description and schema. An approval that lasts holds for
    /// this definition alone: a server that changes what a tool does has to be approved again.
    pub definition: u64,
}

/// The tools that the model can be offered. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Catalogue(Arc<Contents>);

#[derive(Debug, Default)]
struct Contents {
    entries: Vec<Entry>,
    /// Places in `entries`.
    by_name: HashMap<String, usize>,
}

impl Entry {
    /// The decision of `rules` on a call of this tool, if these are all `servers`.
    pub fn ruling(&self, rules: &ApprovalRules, servers: &ServerNames) -> Ruling {
        match self.of_server() {
            None => rules.ruling(&self.spec.name),
            Some(tool) => rules.ruling_of(&tool, servers),
        }
    }

    /// Whether the client runs it.
    pub(super) fn is_client(&self) -> bool {
        self.of_server().is_none()
    }

    /// The names of the tool, as rules are matched with them; a client's has one name alone.
    fn named(&self) -> NamedTool<'_> {
        let name = self.spec.name.as_str();
        self.of_server().unwrap_or(NamedTool { shown: name, server: "", tool: name, made: None })
    }

    /// The names of a server's tool; `None` for one of the client.
    fn of_server(&self) -> Option<NamedTool<'_>> {
        match &self.source {
            Source::Client { .. } => None,
            Source::Server { server, tool } => {
                let shown = self.spec.name.as_str();
                let is_made = shown != tool;
                let made = is_made.then(|| made_parts(server, shown)).flatten();
                Some(NamedTool { shown, server: server.as_str(), tool, made })
            }
        }
    }
}

impl Catalogue {
    /// The `rules` that name none of the tools, if these are all `servers`; and whether each allows.
    pub(super) fn without_tool<'a>(
        &self,
        rules: &'a ApprovalRules,
        servers: &ServerNames,
    ) -> Vec<(&'a ToolGlob, bool)> {
        let tools: Vec<_> = self.entries().iter().map(Entry::named).collect();
        rules.without_tool(&tools, servers)
    }

    /// A rule that allows calls of the server's tool that is shown as `name`, and of no other tool, if these
    /// are all `servers`; `None` if there is no such rule.
    pub fn allow_rule(&self, name: &str, servers: &ServerNames) -> Option<ToolGlob> {
        let tool = self.find(name)?.of_server()?;
        let others = self.entries().iter().filter(|entry| entry.spec.name != name);
        let others: Vec<_> = others.filter_map(Entry::of_server).collect();
        tool.own_rule(&others, servers)
    }

    /// The tools of the client and of all servers. A client's tool keeps its name. A server's tool
    /// keeps its own if every provider takes it and no other tool has it; else it is called
    /// `server__tool`, with other characters than letters, digits, `_` and `-` replaced, and cut
    /// with a hash. The same tools always have the same names, whatever order the servers came in.
    pub fn new(client: &[ClientTool], servers: &BTreeMap<ServerName, Vec<ServerTool>>) -> Self {
        let mut taken = BTreeSet::new();
        let mut entries = Vec::new();
        for tool in client {
            if taken.insert(tool.spec.name.clone()) {
                entries.push(of_client(tool));
            }
        }
        let tools = distinct(servers);
        let names = shown_names(&tools, &mut taken);
        for ((server, tool), name) in tools.into_iter().zip(names) {
            entries.push(of_server(server, tool, name));
        }
        let by_name = entries.iter().enumerate();
        let by_name = by_name.map(|(at, entry)| (entry.spec.name.clone(), at)).collect();
        Self(Arc::new(Contents { entries, by_name }))
    }

    /// All entries, in the order in which the model is offered them: the client's in its order, then the
    /// servers' by name.
    pub fn entries(&self) -> &[Entry] {
        &self.0.entries
    }

    /// The tool of this source, whatever it is called now.
    pub(super) fn of_source(&self, source: &Source) -> Option<&Entry> {
        self.0.entries.iter().find(|entry| entry.source == *source)
    }

    /// The tool that the model calls by this name.
    pub fn find(&self, shown_name: &str) -> Option<&Entry> {
        self.0.by_name.get(shown_name).map(|at| &self.0.entries[*at])
    }
}

fn of_client(tool: &ClientTool) -> Entry {
    Entry {
        spec: tool.spec.clone(),
        source: Source::Client { human: tool.human },
        definition: definition(None, &tool.spec),
    }
}

fn of_server(server: &ServerName, tool: &ServerTool, shown_name: String) -> Entry {
    let mut spec = ToolSpec {
        name: tool.name.clone(),
        description: tool.description.clone(),
        input_schema: Arc::clone(&tool.input_schema),
    };
    let definition = definition(Some(server), &spec);
    spec.name = shown_name;
    let source = Source::Server { server: server.clone(), tool: tool.name.clone() };
    Entry { spec, source, definition }
}

/// The servers' tools by server and name. Of two of one name in one server the first is kept:
/// a call could not distinguish them.
fn distinct(servers: &BTreeMap<ServerName, Vec<ServerTool>>) -> Vec<(&ServerName, &ServerTool)> {
    let mut found = BTreeMap::new();
    for (server, tools) in servers {
        for tool in tools {
            found.entry((server, &tool.name)).or_insert(tool);
        }
    }
    found.into_iter().map(|((server, _), tool)| (server, tool)).collect()
}

/// The names shown to the model for `tools`, which are ordered; none of those in `taken`.
fn shown_names(tools: &[(&ServerName, &ServerTool)], taken: &mut BTreeSet<String>) -> Vec<String> {
    let mut uses: HashMap<&str, usize> = HashMap::new();
    for (_, tool) in tools {
        *uses.entry(&tool.name).or_default() += 1;
    }
    let keeps = |tool: &ServerTool, taken: &BTreeSet<String>| {
        is_valid(&tool.name) && uses[tool.name.as_str()] == 1 && !taken.contains(&tool.name)
    };
    // Names that are kept are given first, so that no name that is made can take one.
    let kept: Vec<bool> = tools.iter().map(|(_, tool)| keeps(tool, taken)).collect();
    let own = tools.iter().zip(&kept).filter(|(_, keeps)| **keeps);
    taken.extend(own.map(|((_, tool), _)| tool.name.clone()));
    let names = tools.iter().zip(&kept).map(|((server, tool), keeps)| {
        if *keeps { tool.name.clone() } else { made_name(server, &tool.name, taken) }
    });
    names.collect()
}

/// A name made of the server's and the tool's that is not `taken`, and is from now on.
fn made_name(server: &ServerName, tool: &str, taken: &mut BTreeSet<String>) -> String {
    let plain = format!("{}{SEPARATOR}{}", sanitised(server.as_str()), sanitised(tool));
    let mut name = plain.clone();
    let mut tries = 0_u32;
    while name.len() > NAME_BYTES_MAX || taken.contains(&name) {
        let hash = hash(&[server.as_str(), tool, &tries.to_string()]);
        let hash = format!("{hash:016x}");
        let kept = plain.len().min(NAME_BYTES_MAX - HASH_DIGITS - 1);
        name = format!("{}_{}", &plain[..kept], &hash[..HASH_DIGITS]);
        tries += 1;
    }
    taken.insert(name.clone());
    name
}

/// The parts of a name that [`made_name`] made; `None` if the server's was cut.
fn made_parts(server: &ServerName, shown_name: &str) -> Option<(String, String)> {
    let server = sanitised(server.as_str());
    let tool = shown_name.strip_prefix(server.as_str())?.strip_prefix(SEPARATOR)?.to_owned();
    Some((server, tool))
}

/// Whether every provider takes the name: `^[a-zA-Z0-9_-]{1,64}$`.
fn is_valid(name: &str) -> bool {
    (1..=NAME_BYTES_MAX).contains(&name.len()) && name.chars().all(is_name_char)
}

/// `name` with `_` for characters that no provider takes.
pub(super) fn sanitised(name: &str) -> String {
    name.chars().map(|c| if is_name_char(c) { c } else { '_' }).collect()
}

fn is_name_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || c == '-'
}

fn definition(server: Option<&ServerName>, own: &ToolSpec) -> u64 {
    // The order of members says nothing about what a tool does: an approval outlives a change of it.
    let mut schema = Value::Object((*own.input_schema).clone());
    schema.sort_all_objects();
    let schema = schema.to_string();
    let (kind, server) = server.map_or(("client", ""), |server| ("server", server.as_str()));
    hash(&[kind, server, &own.name, &own.description, &schema])
}

/// The first bytes of a SHA-256: a server must not be able to find another tool with the same hash.
fn hash(parts: &[&str]) -> u64 {
    let mut context = Context::new(&SHA256);
    for part in parts {
        // With its length, so that no two lists of parts are the same text.
        context.update(&(part.len() as u64).to_be_bytes());
        context.update(part.as_bytes());
    }
    let digest = context.finish();
    digest.as_ref().iter().take(8).fold(0, |hash, byte| hash << 8 | u64::from(*byte))
}

#[cfg(test)]
mod tests;
