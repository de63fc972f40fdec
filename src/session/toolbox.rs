//! The tools of a session: which there are, which may run without a question, and how much a run may
//! do with them.

use super::hints::{Hint, Hints};
use super::io::{ToolRules, Uptime};
use crate::conversation::event::ToolResult;
use crate::conversation::tool::ToolSpec;
use crate::protocol::any::{SENT_LEVELS_MAX, Struct};
use crate::protocol::{command, json};
use crate::session::approval::{DenyingRule, Ruling, ServerNames, ToolGlob};
use crate::session::catalogue::{Catalogue, ClientTool, Entry, Source};
use crate::task::server::{ServerCall, ServerChange, ServerName, ServerState, ServerTool};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

/// Names of tools that an error for the model lists.
const NAMES_LISTED_MAX: usize = 50;

/// The tools of a session.
#[derive(Clone, Debug)]
pub(super) struct Toolbox {
    rules: ToolRules,
    hints: Hints,
    client: Vec<ClientTool>,
    servers: BTreeMap<ServerName, Vec<ServerTool>>,
    /// The names of all servers, also of those without tools.
    names: ServerNames,
    /// Servers that are still starting.
    starting: BTreeSet<ServerName>,
    /// The deadline until which provider calls wait for them; set by the first wait.
    start_deadline: Option<Uptime>,
    /// The newest state of each server.
    states: BTreeMap<ServerName, ServerState>,
    has_declared: bool,
    /// The newest.
    catalogue: Catalogue,
    /// The tools of the catalogue that provider calls are offered.
    specs: Arc<[ToolSpec]>,
    /// The one that the last provider call was offered.
    offered: Catalogue,
    /// Definitions of tools that the client allowed for the session.
    allowed: HashSet<u64>,
    /// The client is asked about calls of these as well, as it lets no tool be called for the time being.
    is_allowed_suspended: bool,
    /// The rules were compared with the tools that there are.
    has_checked_rules: bool,
}

/// The decision on a tool call.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Verdict {
    /// The client is asked whether it may run.
    Ask(ServerCall),
    Run(ServerCall),
    /// The client runs it.
    Client {
        arguments: Struct,
        is_human: bool,
    },
    /// The call is refused; the model gets the reason.
    Refuse(String),
}

impl Toolbox {
    pub(super) fn new(rules: &ToolRules, hints: Hints) -> Self {
        Self {
            rules: rules.clone(),
            hints,
            client: Vec::new(),
            servers: BTreeMap::new(),
            names: ServerNames::new(&rules.servers),
            starting: rules.servers.iter().cloned().collect(),
            start_deadline: None,
            states: BTreeMap::new(),
            has_declared: false,
            catalogue: Catalogue::default(),
            specs: Arc::default(),
            offered: Catalogue::default(),
            allowed: HashSet::new(),
            is_allowed_suspended: false,
            has_checked_rules: false,
        }
    }

    pub(super) fn rules(&self) -> &ToolRules {
        &self.rules
    }

    pub(super) fn hints(&self) -> Hints {
        self.hints
    }

    /// Offers the tools to a provider call, whose calls are of them until the next one.
    pub(super) fn offer_to_call(&mut self) -> Arc<[ToolSpec]> {
        self.offered = self.catalogue.clone();
        Arc::clone(&self.specs)
    }

    /// Whether there are, or may be, tools in this session.
    pub(super) fn has_tools(&self) -> bool {
        !self.rules.servers.is_empty() || !self.servers.is_empty() || self.has_declared
    }

    /// Whether a server is still being started.
    pub(super) fn is_starting(&self) -> bool {
        !self.starting.is_empty()
    }

    /// Until when a provider call at `now` waits for servers; `None` if it does not. The first call has a
    /// deadline also where it is over at once, so that the wait that was too short is reported.
    pub(super) fn start_deadline(&mut self, now: Uptime) -> Option<Uptime> {
        if self.starting.is_empty() {
            return None;
        }
        let until = Uptime(now.0.saturating_add(self.rules.start_ms));
        // One deadline for all runs: a slow server delays the first one alone.
        let is_first = self.start_deadline.is_none();
        let deadline = *self.start_deadline.get_or_insert(until);
        (is_first || deadline > now).then_some(deadline)
    }

    /// The typed rules that name no tool, for people; once, when all servers are ready: a tool that is missing
    /// because its server is may come later.
    pub(super) fn take_idle_rules(&mut self) -> Vec<String> {
        let is_ready = |server| matches!(self.states.get(server), Some(ServerState::Ready));
        if self.has_checked_rules || !self.rules.servers.iter().all(is_ready) {
            return Vec::new();
        }
        self.has_checked_rules = true;
        let idle = self.catalogue.without_tool(&self.rules.typed, &self.names);
        let shown = |(glob, allows): (&ToolGlob, bool)| match allows {
            true => {
                self.hints.or(Hint::AllowRule(glob), format!("the rule for {:?}", glob.as_str()))
            }
            false => self.named(&DenyingRule::Tools(glob.clone())),
        };
        idle.into_iter().map(shown).collect()
    }

    /// The servers whose tools are missing, each with the reason, for people.
    pub(super) fn missing(&self) -> Vec<(&ServerName, String)> {
        let reason = |server| match self.states.get(server) {
            Some(ServerState::Ready) => None,
            Some(ServerState::Failed { reason } | ServerState::Gone { reason }) => {
                Some(reason.clone())
            }
            Some(ServerState::Starting) | None => {
                Some(format!("it is still being started{}", self.hints.of(Hint::ServerTime)))
            }
        };
        let servers = self.rules.servers.iter();
        servers.filter_map(|server| Some((server, reason(server)?))).collect()
    }

    /// The names of the tools, for people.
    pub(super) fn listed(&self) -> String {
        listed(self.catalogue.entries().iter())
    }

    /// The servers that are still being started, for people.
    pub(super) fn starting(&self) -> String {
        let names = self.starting.iter().map(ServerName::as_str);
        names.collect::<Vec<_>>().join(", ")
    }

    /// The newest state of each server, with the names of its tools.
    pub(super) fn states(&self) -> impl Iterator<Item = (&ServerName, &ServerState, Vec<String>)> {
        self.states.iter().map(|(server, state)| (server, state, self.names_of(server)))
    }

    /// Why the tool that was called as `name` is not the one with this definition any more, for people; `None` if it
    /// is.
    pub(super) fn changed(&self, name: &str, definition: u64) -> Option<&'static str> {
        match self.called(name) {
            Some(entry) if entry.definition == definition => None,
            Some(_) => Some("the tool has changed meanwhile"),
            None => Some("there is no such tool any more"),
        }
    }

    /// The tool that an answer calls `name`. One of the client is that which the provider call was offered, as a
    /// list that has come since is for the next call. One of a server is the newest: a definition that has
    /// changed since may need another approval.
    fn called(&self, name: &str) -> Option<&Entry> {
        match self.offered.find(name) {
            Some(offered) if offered.is_client() => Some(offered),
            // A new tool of the client may have taken its name.
            Some(offered) => self.catalogue.of_source(&offered.source),
            None => self.catalogue.find(name).filter(|entry| !entry.is_client()),
        }
    }

    /// A rule that allows the tool `name` of a server and no other tool, if there is one.
    pub(super) fn allow_rule(&self, name: &str) -> Option<ToolGlob> {
        self.catalogue.allow_rule(name, &self.names)
    }

    /// Replaces the tools of the client.
    pub(super) fn declare(&mut self, tools: Vec<command::ClientTool>) {
        self.has_declared = true;
        self.client = tools.into_iter().map(client_tool).collect();
        self.rebuild();
    }

    /// Applies a report of a server's state.
    pub(super) fn server_changed(&mut self, change: &ServerChange) {
        match (&change.state, self.states.get(&change.server)) {
            // A person wants it started again, and is about to ask with its tools.
            (ServerState::Starting, Some(ServerState::Ready | ServerState::Failed { .. })) => {
                self.starting.insert(change.server.clone());
                self.start_deadline = None;
            }
            // One that has ended by itself delays nothing.
            (
                ServerState::Starting,
                Some(ServerState::Starting | ServerState::Gone { .. }) | None,
            ) => {}
            (ServerState::Ready | ServerState::Failed { .. } | ServerState::Gone { .. }, _) => {
                self.starting.remove(&change.server);
            }
        }
        match &change.state {
            // It is started again as soon as one of its tools is called, which the model must know of for that.
            ServerState::Starting | ServerState::Gone { .. } => {
                self.servers.entry(change.server.clone()).or_default();
            }
            ServerState::Ready | ServerState::Failed { .. } => {
                self.servers.insert(change.server.clone(), change.tools.to_vec());
            }
        }
        let all: BTreeSet<_> = self.rules.servers.iter().chain(self.servers.keys()).collect();
        self.names = ServerNames::new(all);
        self.states.insert(change.server.clone(), change.state.clone());
        self.rebuild();
    }

    /// The tools of a server that is ready, as the model knows them.
    pub(super) fn names_of(&self, server: &ServerName) -> Vec<String> {
        if !matches!(self.states.get(server), Some(ServerState::Ready)) {
            return Vec::new();
        }
        let is_its = |entry: &&Entry| match &entry.source {
            Source::Server { server: of, .. } => of == server,
            Source::Client { .. } => false,
        };
        let its = self.catalogue.entries().iter().filter(is_its);
        its.map(|entry| entry.spec.name.clone()).collect()
    }

    /// Allows all later calls of the tool with this definition.
    pub(super) fn allow(&mut self, definition: u64) {
        self.allowed.insert(definition);
    }

    /// Has the client asked about the tools as well that it allowed for the session, or no longer.
    pub(super) fn suspend_allowed(&mut self, is_suspended: bool) {
        self.is_allowed_suspended = is_suspended;
    }

    fn is_allowed(&self, definition: u64) -> bool {
        !self.is_allowed_suspended && self.allowed.contains(&definition)
    }

    /// Decides on a call of the tool `name` with `input` as its arguments. `can_ask`: a client
    /// can be asked.
    pub(super) fn verdict(&self, name: &str, input: &str, can_ask: bool) -> Verdict {
        let limit = self.rules.argument_bytes_max;
        if input.len() > limit {
            return Verdict::Refuse(format!(
                "The call was not made: its arguments have {} bytes, and at most {limit} are \
                 allowed{}.",
                input.len(),
                self.hints.of(Hint::ToolArguments)
            ));
        }
        let Some(entry) = self.called(name) else {
            return Verdict::Refuse(self.no_such_tool(name));
        };
        let arguments = match arguments(input) {
            Ok(arguments) => arguments,
            Err(why) => return Verdict::Refuse(why),
        };
        let ruling = entry.ruling(&self.rules.approval, &self.names);
        if let Ruling::Deny(rule) = &ruling {
            let rule = self.named(rule);
            let why = format!("The call was not made: {rule} does not allow this tool.");
            return Verdict::Refuse(why);
        }
        match &entry.source {
            // The client decides for itself what it runs.
            Source::Client { human } => client_call(Value::Object(arguments), *human),
            Source::Server { server, tool } => {
                let call = ServerCall {
                    server: server.clone(),
                    tool: tool.clone(),
                    arguments,
                    definition: entry.definition,
                };
                let is_allowed = ruling == Ruling::Allow || self.is_allowed(entry.definition);
                match (is_allowed, can_ask) {
                    (true, _) => Verdict::Run(call),
                    (false, true) => Verdict::Ask(call),
                    (false, false) => Verdict::Refuse(NOBODY_CAN_APPROVE.to_owned()),
                }
            }
        }
    }

    /// A client's result as the model gets it: cut if it is longer than the limit. Those of servers
    /// are cut where they are read.
    pub(super) fn cut(&self, result: ToolResult) -> ToolResult {
        let limit = self.rules.result_bytes_max;
        let cut = |mut text: String| {
            let bytes = text.len();
            if bytes > limit {
                text.truncate(text.floor_char_boundary(limit));
                text += &format!("\n[The result was cut here. It has {bytes} bytes.]");
            }
            text
        };
        match result {
            ToolResult::Success(text) => ToolResult::Success(cut(text)),
            ToolResult::WithImages { text, images } => {
                ToolResult::WithImages { text: cut(text), images }
            }
            ToolResult::Error(text) => ToolResult::Error(cut(text)),
        }
    }

    fn named(&self, rule: &DenyingRule) -> String {
        match rule {
            DenyingRule::Tools(glob) => {
                self.hints.or(Hint::DenyRule(glob), format!("the rule against {:?}", glob.as_str()))
            }
            DenyingRule::Mode => {
                self.hints.or(Hint::DenyAll, "the rule for all other tools".to_owned())
            }
        }
    }

    fn rebuild(&mut self) {
        self.catalogue = Catalogue::new(&self.client, &self.servers);
        let entries = self.catalogue.entries().iter().filter(|entry| !self.is_left_out(entry));
        self.specs = entries.map(|entry| entry.spec.clone()).collect();
    }

    /// Whether a rule denies the tool by its name: the model is not offered it. A provider that refuses its schema
    /// would refuse every request, and such a rule is how a person takes it out. One that only the mode denies stays:
    /// the mode is about calls.
    fn is_left_out(&self, entry: &Entry) -> bool {
        let ruling = entry.ruling(&self.rules.approval, &self.names);
        matches!(ruling, Ruling::Deny(DenyingRule::Tools(_)))
    }

    fn no_such_tool(&self, name: &str) -> String {
        let is_there =
            |entry: &&Entry| self.called(&entry.spec.name).is_some() && !self.is_left_out(entry);
        match listed(self.offered.entries().iter().filter(is_there)) {
            names if names.is_empty() => {
                format!("There is no tool {name:?}: no tools can be called.")
            }
            names => format!("There is no tool {name:?}. The tools are: {names}."),
        }
    }
}

/// The result of a call that only the client could have allowed.
pub(super) const NOBODY_CAN_APPROVE: &str =
    "The call was not made: it needs the approval of a person, and nobody can be asked.";

const LONG_INTEGER: &str =
    "an integer in its arguments has more than 64 bits, and the tool would get it rounded";

/// The arguments that a model wrote, if a tool gets exactly these. Some models write nothing where a tool needs none,
/// and some write the object into a string.
fn arguments(input: &str) -> Result<Map<String, Value>, String> {
    let object = json::object_in_string(input);
    let input = object.as_deref().unwrap_or(input);
    if input.trim().is_empty() {
        return Ok(Map::new());
    }
    let refused = |why: String| Err(format!("The call was not made: {why}."));
    let arguments = match serde_json::from_str(input) {
        Ok(Value::Object(arguments)) => arguments,
        Ok(_) => return refused("its arguments are no JSON object".to_owned()),
        Err(error) => return refused(format!("its arguments are not valid JSON: {error}")),
    };
    // Of two members with one name the last would be passed on, and a person may have approved the first.
    if let Err(error) = json::well_formed(input) {
        return refused(format!("its arguments are ambiguous: {error}"));
    }
    if json::has_long_integer(input) {
        return refused(LONG_INTEGER.to_owned());
    }
    Ok(arguments)
}

/// A call that the client runs, if it gets the arguments exactly: in its message, a `google.protobuf.Struct`,
/// every number is a float.
fn client_call(arguments: Value, is_human: bool) -> Verdict {
    if let Some(integer) = rounded_integer(&arguments) {
        return Verdict::Refuse(format!(
            "The call was not made: the integer {integer} in its arguments has too many digits for this \
             tool, which would get it rounded. Write it as a string if the tool takes one there."
        ));
    }
    if json::depth(&arguments) > SENT_LEVELS_MAX {
        return Verdict::Refuse(format!(
            "The call was not made: its arguments are more than {} arrays and objects deep, which its client \
             can't read. Write the inner part as a string of JSON.",
            SENT_LEVELS_MAX
        ));
    }
    match serde_json::from_value(arguments) {
        Ok(arguments) => Verdict::Client { arguments, is_human },
        Err(error) => Verdict::Refuse(format!(
            "The call was not made: its arguments can't be sent to the client: {error}."
        )),
    }
}

/// An integer that is another one as a float.
fn rounded_integer(value: &Value) -> Option<i128> {
    match value {
        Value::Number(number) => {
            let integer = number.as_i128()?;
            (integer as f64 as i128 != integer).then_some(integer)
        }
        Value::Array(items) => items.iter().find_map(rounded_integer),
        Value::Object(members) => members.values().find_map(rounded_integer),
        Value::Null | Value::Bool(_) | Value::String(_) => None,
    }
}

/// The names of the tools, for people.
fn listed<'a>(tools: impl Iterator<Item = &'a Entry>) -> String {
    let mut tools = tools.map(|entry| entry.spec.name.as_str());
    let names: Vec<_> = tools.by_ref().take(NAMES_LISTED_MAX).collect();
    match tools.count() {
        0 => names.join(", "),
        rest => format!("{} and {rest} more", names.join(", ")),
    }
}

fn client_tool(tool: command::ClientTool) -> ClientTool {
    let command::ClientTool { name, description, input_schema, is_human } = tool;
    ClientTool { spec: ToolSpec { name, description, input_schema }, human: is_human }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A tool gets what a person reads who approves the call, or the call is refused.
    #[test]
    fn arguments_are_exactly_those_that_were_written() {
        for written in ["{}", "{\"a\":1,\"b\":{\"a\":18446744073709551615}}", "{\"a\":[1.5,\"a\"]}"]
        {
            let read = arguments(written).map(|read| Value::Object(read).to_string());
            assert_eq!(read, Ok(written.to_owned()));
        }
        assert_eq!(arguments(" "), Ok(Map::new()));
        let within = arguments(r#""{\"a\":1}""#).map(|read| Value::Object(read).to_string());
        assert_eq!(within, Ok("{\"a\":1}".to_owned()));
        for (written, why) in [
            ("[1]", "its arguments are no JSON object"),
            ("\"[1]\"", "its arguments are no JSON object"),
            ("\"\\\"{}\\\"\"", "its arguments are no JSON object"),
            (
                "{\"a\":1,\"a\":2}",
                "its arguments are ambiguous: duplicate key \"a\" at line 1 column 13",
            ),
            ("{\"a\":12345678901234567890123}", LONG_INTEGER),
        ] {
            assert_eq!(arguments(written), Err(format!("The call was not made: {why}.")));
        }
    }

    #[test]
    fn a_client_gets_no_arguments_that_readers_of_protobuf_refuse() {
        let call = |levels: usize| {
            let written = format!("{}{}", "{\"a\":".repeat(levels - 1) + "{", "}".repeat(levels));
            client_call(serde_json::from_str(&written).expect("JSON"), false)
        };
        assert!(matches!(call(30), Verdict::Client { .. }));
        let Verdict::Refuse(why) = call(31) else { panic!("31 levels") };
        assert!(why.contains("more than 30 arrays and objects deep"), "{why}");
    }

    /// Every number of a client's tool is a float.
    #[test]
    fn a_client_gets_exactly_the_integers_that_were_written() {
        let call = |written: &str| client_call(serde_json::from_str(written).expect("JSON"), false);
        let exact = "{\"a\":[9007199254740992,-9007199254740994,1152921504606846976,0.1,-0,1e300]}";
        assert!(matches!(call(exact), Verdict::Client { .. }), "{:?}", call(exact));
        for integer in ["9007199254740993", "-9007199254740993", "18446744073709551615"] {
            for written in
                [format!("{{\"a\":{integer}}}"), format!("{{\"a\":[{{\"b\":{integer}}}]}}")]
            {
                let Verdict::Refuse(why) = call(&written) else { panic!("{written}") };
                assert!(why.contains(&format!("the integer {integer} in its arguments")), "{why}");
            }
        }
    }
}
