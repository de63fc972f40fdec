//! Which request of the client is answered how, and by which session. Pure.

use super::dialog::{Dialog, How};
use super::jsonrpc::{self, Id, Message, RpcError};
use super::schema::{
    CancelRequestParams, ClientCapabilities, ListParams, McpServer, OpenParams, PROTOCOL_VERSION,
    Pairs,
};
use super::session::{Mail, Request};
use crate::protocol::id::SessionId;
use crate::task::server::ServerName;
use crate::tool::config::{Protected, ServerConfig, Transport};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use url::Url;

/// Sessions that may be open at a time.
const SESSIONS_MAX: usize = 1_000;

/// What is to be done for a message.
#[derive(Debug)]
pub(super) enum Action {
    Respond(Id, Result<Value, RpcError>),
    Open(Box<ToOpen>),
    /// A message for an open session.
    Pass(i64, Mail),
    /// A message for all sessions: those that it is not about ignore it.
    PassAll(Mail),
    List(Id, ListParams),
    Delete(Id, SessionId),
}

/// A session that is to be opened.
#[derive(Debug)]
pub(super) struct ToOpen {
    pub(super) request: Id,
    pub(super) how: How,
    pub(super) number: i64,
    pub(super) session: SessionId,
    pub(super) folder: PathBuf,
    pub(super) servers: Vec<ServerConfig>,
    /// What could not be used of them.
    pub(super) notices: Vec<String>,
}

#[derive(Debug, Default)]
pub(super) struct Connection {
    pub(super) client: ClientCapabilities,
    has_store: bool,
    /// The open sessions, by their ids.
    sessions: BTreeMap<String, OpenSession>,
    numbers: i64,
    /// Requests that a session has to answer.
    owed: BTreeSet<(i64, Id)>,
}

#[derive(Debug)]
struct OpenSession {
    number: i64,
    folder: PathBuf,
    servers: Vec<ServerConfig>,
}

/// Where a session is to be held.
struct Place {
    folder: PathBuf,
    /// `None` if the client names none, as some do where the session has them.
    servers: Option<Vec<ServerConfig>>,
    /// What could not be used of them.
    notices: Vec<String>,
}

impl Connection {
    pub(super) fn new(has_store: bool) -> Self {
        Self { has_store, ..Self::default() }
    }

    /// Handles a message; `fresh` is the id of a new session.
    pub(super) fn message(
        &mut self,
        message: Message,
        fresh: impl FnOnce() -> SessionId,
    ) -> Vec<Action> {
        match message {
            Message::Request { id, method, params } => {
                let action = self.request(id.clone(), &method, params, fresh);
                vec![action.unwrap_or_else(|error| Action::Respond(id, Err(error)))]
            }
            Message::Notification { method, params } => self.notification(&method, params),
            Message::Response { id: Id::Number(id), outcome } => {
                vec![Action::Pass(Dialog::number_of(id), Mail::Response(id, outcome))]
            }
            // No request of this program has such an id.
            Message::Response { .. } => Vec::new(),
        }
    }

    fn request(
        &mut self,
        id: Id,
        method: &str,
        params: Value,
        fresh: impl FnOnce() -> SessionId,
    ) -> Result<Action, RpcError> {
        Ok(match method {
            "initialize" => {
                self.client = ClientCapabilities::of(&params);
                Action::Respond(id, Ok(self.initialized()))
            }
            // Keys are configured where models are.
            "authenticate" | "logout" => Action::Respond(id, Ok(json!({}))),
            "session/new" => self.open(id, How::New, fresh(), Place::of(params)?)?,
            "session/load" | "session/resume" => {
                let how = if method == "session/load" { How::Load } else { How::Resume };
                self.go_on(id, how, method, params)?
            }
            "session/list" if self.has_store => Action::List(id, jsonrpc::params(params)?),
            "session/delete" if self.has_store => {
                match SessionId::new(session_in(&params)?) {
                    Some(session) => Action::Delete(id, session),
                    // There is none of that name, which is what was wanted.
                    None => Action::Respond(id, Ok(json!({}))),
                }
            }
            "session/prompt"
            | "session/close"
            | "session/set_mode"
            | "session/set_config_option" => {
                let number = self.number(session_in(&params)?)?;
                self.pass(number, id, method, params)
            }
            _ => return Err(RpcError::method_not_found(method)),
        })
    }

    fn pass(&mut self, number: i64, id: Id, method: &str, params: Value) -> Action {
        let request = self.owed_request(number, id, method, params);
        Action::Pass(number, Mail::Request(request))
    }

    fn owed_request(&mut self, number: i64, id: Id, method: &str, params: Value) -> Request {
        self.owed.insert((number, id.clone()));
        Request { id, method: method.to_owned(), params }
    }

    fn number(&self, session: &str) -> Result<i64, RpcError> {
        self.sessions
            .get(session)
            .map(|open| open.number)
            .ok_or_else(|| RpcError::not_found(session))
    }

    fn initialized(&self) -> Value {
        let mut sessions = json!({ "close": {} });
        if self.has_store {
            sessions = json!({ "close": {}, "list": {}, "delete": {}, "resume": {} });
        }
        json!({
            "protocolVersion": PROTOCOL_VERSION,
            "agentCapabilities": {
                "loadSession": self.has_store,
                "promptCapabilities": { "image": true, "audio": false, "embeddedContext": true },
                "mcpCapabilities": { "http": true, "sse": false },
                "sessionCapabilities": sessions,
            },
            "authMethods": [],
            "agentInfo": {
                "name": "duologue",
                "title": "duologue",
                "version": env!("CARGO_PKG_VERSION"),
            },
        })
    }

    fn go_on(&mut self, id: Id, how: How, method: &str, params: Value) -> Result<Action, RpcError> {
        let session_id = session_in(&params)?.to_owned();
        let open = self.sessions.get(&session_id);
        if open.is_none() && !self.has_store {
            return Err(RpcError::method_not_found(method));
        }
        let place = Place::of(params.clone())?;
        // The client has it in another place, or has forgotten it.
        if let Some(open) = open {
            let (number, is_there) = (open.number, open.is_at(&place));
            let request = self.owed_request(number, id, method, params);
            let mail = if is_there { Mail::Request(request) } else { Mail::Reopen(request) };
            return Ok(Action::Pass(number, mail));
        }
        let session =
            SessionId::new(&session_id).ok_or_else(|| RpcError::not_found(&session_id))?;
        self.open(id, how, session, place)
    }

    fn open(
        &mut self,
        request: Id,
        how: How,
        session: SessionId,
        place: Place,
    ) -> Result<Action, RpcError> {
        if self.sessions.len() >= SESSIONS_MAX {
            let why = format!("{SESSIONS_MAX} sessions are open, and no more can be; close some");
            return Err(RpcError::failed(why));
        }
        let Place { folder, servers, notices } = place;
        let servers = servers.unwrap_or_default();
        self.numbers += 1;
        let number = self.numbers;
        let open = OpenSession { number, folder: folder.clone(), servers: servers.clone() };
        self.sessions.insert(session.as_str().to_owned(), open);
        self.owed.insert((number, request.clone()));
        let to_open = ToOpen { request, how, number, session, folder, servers, notices };
        Ok(Action::Open(Box::new(to_open)))
    }

    fn notification(&mut self, method: &str, params: Value) -> Vec<Action> {
        match method {
            "session/cancel" => {
                let number = session_in(&params).and_then(|it| self.number(it)).ok();
                number.into_iter().map(|number| Action::Pass(number, Mail::Cancel)).collect()
            }
            "$/cancel_request" => {
                let request = jsonrpc::params::<CancelRequestParams>(params).ok();
                let id = request.and_then(|it| Id::of(&it.request_id));
                id.into_iter().map(|id| Action::PassAll(Mail::CancelRequest(id))).collect()
            }
            // A notification has no answer, also if it is not known.
            _ => Vec::new(),
        }
    }

    /// The number of an open session.
    pub(super) fn open_session(&self, session: &SessionId) -> Option<i64> {
        self.sessions.get(session.as_str()).map(|open| open.number)
    }

    /// A session has answered these requests.
    pub(super) fn answered(&mut self, number: i64, ids: impl IntoIterator<Item = Id>) {
        for id in ids {
            self.owed.remove(&(number, id));
        }
    }

    /// A session has ended; returns the requests that it has not answered.
    pub(super) fn ended(&mut self, number: i64) -> Vec<Id> {
        self.sessions.retain(|_, open| open.number != number);
        let owed = self.owed.extract_if((number, Id::Null)..(number + 1, Id::Null), |_| true);
        owed.map(|(_, id)| id).collect()
    }
}

impl Place {
    /// The place in the parameters of a request.
    ///
    /// # Errors
    /// If it can't be one.
    fn of(params: Value) -> Result<Self, RpcError> {
        let OpenParams { cwd, mcp_servers } = jsonrpc::params(params)?;
        let folder = PathBuf::from(&cwd);
        if !folder.is_absolute() {
            let why = format!("cwd must be an absolute path, and {cwd:?} is none");
            return Err(RpcError::invalid_params(why));
        }
        let mut notices = Vec::new();
        let Some(named) = mcp_servers else { return Ok(Self { folder, servers: None, notices }) };
        let mut servers = BTreeMap::new();
        for server in named {
            if let Some(config) = config(server, &mut notices)? {
                let name = config.name.clone();
                if servers.insert(name.clone(), config).is_some() {
                    let name = name.as_str();
                    let text =
                        format!("two MCP servers have the name {name:?}; the last one is used");
                    notices.push(text);
                }
            }
        }
        Ok(Self { folder, servers: Some(servers.into_values().collect()), notices })
    }
}

impl OpenSession {
    /// Whether it has the folder and the servers that are wanted.
    fn is_at(&self, place: &Place) -> bool {
        let has = |wanted: &Vec<ServerConfig>| {
            let mut pairs = self.servers.iter().zip(wanted);
            self.servers.len() == wanted.len() && pairs.all(|(own, wanted)| is_same(own, wanted))
        };
        self.folder == place.folder && place.servers.as_ref().is_none_or(has)
    }
}

/// Whether both are the same server of a client.
fn is_same(one: &ServerConfig, other: &ServerConfig) -> bool {
    let is_same_transport = match (&one.transport, &other.transport) {
        (
            Transport::Stdio { command, args, env, .. },
            Transport::Stdio { command: other, args: with, env: and, .. },
        ) => (command, args, env) == (other, with, and),
        (
            Transport::Http { url, headers, .. },
            Transport::Http { url: other, headers: with, .. },
        ) => (url, headers) == (other, with),
        (Transport::Stdio { .. }, Transport::Http { .. })
        | (Transport::Http { .. }, Transport::Stdio { .. }) => false,
    };
    one.name == other.name && is_same_transport
}

/// The session that parameters name.
fn session_in(params: &Value) -> Result<&str, RpcError> {
    let session = params.get("sessionId").and_then(Value::as_str);
    session.ok_or_else(|| RpcError::invalid_params("sessionId is missing, or no text"))
}

/// The configuration of an MCP server of the client; `None`, with a notice, if it is of a kind that was not
/// announced.
///
/// # Errors
/// If it lacks what a server of its kind has.
fn config(server: McpServer, notices: &mut Vec<String>) -> Result<Option<ServerConfig>, RpcError> {
    let McpServer { r#type, name, command, args, env, url, headers } = server;
    let wrong = |why: &str| RpcError::invalid_params(format!("the MCP server {name:?} {why}"));
    let protected = |pairs: Option<Pairs>| {
        let pairs = pairs.map(Pairs::into_map).unwrap_or_default();
        pairs.into_iter().map(|(name, value)| (name, Protected::new(value))).collect()
    };
    let transport = match (r#type.as_deref(), command, url) {
        (None | Some("stdio"), Some(command), _) if !command.is_empty() => Transport::Stdio {
            command,
            args: args.unwrap_or_default(),
            env: protected(env),
            cwd: None,
        },
        (None | Some("http"), _, Some(url)) => {
            let url = Url::parse(&url).ok().filter(|url| ["http", "https"].contains(&url.scheme()));
            let url =
                url.ok_or_else(|| wrong("has a URL that does not begin with http:// or https://"))?;
            Transport::Http { url, headers: protected(headers), login: None }
        }
        (None | Some("stdio" | "http"), ..) => return Err(wrong("has no command and no URL")),
        (Some(kind), ..) => {
            notices.push(format!("the MCP server {name:?} is not used: its kind is {kind:?}"));
            return Ok(None);
        }
    };
    let name = ServerName::or_default(&name);
    Ok(Some(ServerConfig::new(name, transport)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(id: i64, method: &str, params: Value) -> Message {
        Message::Request { id: Id::Number(id), method: method.to_owned(), params }
    }

    fn handled(connection: &mut Connection, message: Message) -> Vec<Action> {
        connection.message(message, || SessionId::new("fresh").expect("an id"))
    }

    /// The only answer of a request.
    fn answer(connection: &mut Connection, method: &str, params: Value) -> Result<Value, RpcError> {
        match &handled(connection, request(1, method, params))[..] {
            [Action::Respond(Id::Number(1), outcome)] => outcome.clone(),
            other => panic!("{method}: {other:?}"),
        }
    }

    #[test]
    fn what_is_announced_depends_on_a_store() {
        let mut with = Connection::new(true);
        let answered =
            answer(&mut with, "initialize", json!({ "protocolVersion": 2 })).expect("an answer");
        assert_eq!(answered["protocolVersion"], 1);
        assert_eq!(answered["agentCapabilities"]["loadSession"], true);
        let mut without = Connection::new(false);
        let answered = answer(&mut without, "initialize", Value::Null).expect("an answer");
        assert_eq!(answered["agentCapabilities"]["sessionCapabilities"], json!({ "close": {} }));
        for method in ["session/list", "session/load", "session/resume", "session/delete"] {
            let refused = answer(&mut without, method, json!({ "sessionId": "s", "cwd": "/" }));
            let expected = format!("there is no method {method:?}");
            assert_eq!(refused.expect_err(method).to_string(), expected);
        }
    }

    #[test]
    fn a_session_is_opened_once_and_its_requests_go_there() {
        let mut connection = Connection::new(true);
        let opened = handled(&mut connection, request(1, "session/new", json!({ "cwd": "/p" })));
        let [Action::Open(to_open)] = &opened[..] else { panic!("{opened:?}") };
        assert_eq!((to_open.number, to_open.session.as_str()), (1, "fresh"));
        let params = json!({ "sessionId": "fresh", "cwd": "/p" });
        for method in ["session/prompt", "session/load"] {
            let passed = handled(&mut connection, request(2, method, params.clone()));
            assert!(matches!(&passed[..], [Action::Pass(1, Mail::Request(_))]), "{passed:?}");
        }
        connection.answered(1, vec![Id::Number(1)]);
        assert_eq!(connection.ended(1), [Id::Number(2)]);
        let refused = answer(&mut connection, "session/prompt", params);
        assert!(refused.expect_err("it has ended").to_string().contains("no session \"fresh\""));
    }

    #[test]
    fn a_session_that_is_open_is_asked_for_another_place() {
        let mut connection = Connection::new(true);
        let server = |value: &str| json!({ "name": "x", "command": "x", "env": { "KEY": value } });
        let of = |cwd: &str, servers: Value| json!({ "sessionId": "fresh", "cwd": cwd, "mcpServers": servers });
        handled(&mut connection, request(1, "session/new", of("/p", json!([server("a")]))));
        for (params, is_there) in [
            (of("/p/", json!([server("a")])), true),
            (of("/p", Value::Null), true),
            (of("/q", json!([server("a")])), false),
            (of("/p", json!([server("b")])), false),
            (of("/p", json!([])), false),
        ] {
            let passed = handled(&mut connection, request(2, "session/load", params.clone()));
            let [Action::Pass(1, mail)] = &passed[..] else { panic!("{passed:?}") };
            assert_eq!(matches!(mail, Mail::Request(_)), is_there, "{params}");
            assert_eq!(matches!(mail, Mail::Reopen(_)), !is_there, "{params}");
        }
        let refused = answer(&mut connection, "session/resume", of("p", json!([])));
        assert!(refused.expect_err("relative").to_string().contains("absolute"));
    }

    #[test]
    fn what_is_wrong_with_a_session_is_said() {
        let mut connection = Connection::new(true);
        let mut refused = |params| {
            answer(&mut connection, "session/new", params).expect_err("it is wrong").to_string()
        };
        assert!(refused(json!({})).contains("cwd"));
        assert!(refused(json!({ "cwd": "src" })).contains("absolute"));
        let server = |server: Value| json!({ "cwd": "/", "mcpServers": [server] });
        assert!(refused(server(json!({ "name": "x" }))).contains("no command and no URL"));
        assert!(
            refused(server(json!({ "name": "x", "type": "http", "url": "h" }))).contains("URL")
        );
    }

    #[test]
    fn of_two_servers_of_one_name_the_last_one_is_used_and_told() {
        let server = |name: &str, command: &str| json!({ "name": name, "command": command });
        let servers = json!([server("files", "a"), server("files", "b"), server("other", "c")]);
        let place = Place::of(json!({ "cwd": "/p", "mcpServers": servers })).expect("a place");
        assert_eq!(
            place.notices,
            ["two MCP servers have the name \"files\"; the last one is used"]
        );
        let servers = place.servers.expect("servers");
        let command = |of: &ServerConfig| match &of.transport {
            Transport::Stdio { command, .. } => command.clone(),
            Transport::Http { .. } => panic!("a process"),
        };
        assert_eq!(servers.iter().map(command).collect::<Vec<_>>(), ["b", "c"]);
    }

    #[test]
    fn servers_are_read_in_every_form_that_clients_write() {
        let mut notices = Vec::new();
        let mut config = |server: Value| {
            let server = serde_json::from_value(server).expect("a server");
            super::config(server, &mut notices).expect("a configuration")
        };
        let env = json!([{ "name": "A", "value": "secret value" }]);
        let stdio = json!({ "name": "fs", "command": "npx", "args": ["x"], "env": env });
        let Some(ServerConfig { transport: Transport::Stdio { command, env, .. }, .. }) =
            config(stdio)
        else {
            panic!("a process")
        };
        assert_eq!((command.as_str(), env["A"].expose()), ("npx", "secret value"));
        let http =
            json!({ "type": "http", "name": "h", "url": "https://h/mcp", "headers": { "B": "c" } });
        assert!(matches!(config(http).expect("one").transport, Transport::Http { .. }));
        assert!(config(json!({ "type": "sse", "name": "s", "url": "https://h" })).is_none());
        assert_eq!(notices, ["the MCP server \"s\" is not used: its kind is \"sse\""]);
    }
}
