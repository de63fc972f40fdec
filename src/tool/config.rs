//! The configuration of a server: its command, or its address.

mod file;
mod name;
#[cfg(test)]
mod tests;

use crate::protocol::json::{fits, well_formed};
use crate::support::secret::{Secret, without_userinfo};
use crate::support::terminal::escape_control;
use crate::task::server::ServerName;
use crate::tool::listing::cut;
use crate::tool::login::{LoginFile, is_safe};
use file::Reader;
use name::{name_of, sets_variable};
use serde_json::{Map, Value};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;
use url::Url;

/// Default limit on the time in which a server starts, initializes and lists its tools. Programs
/// like `npx` download the server first.
pub const START_LIMIT: Duration = Duration::from_secs(60);

/// Bytes of a text about a server, for people or a model.
const SHOWN_BYTES_MAX: usize = 4096;

/// Largest number of servers.
pub const SERVERS_MAX: usize = 100;

/// A shorter value of a variable or header, or part of a URL, is not looked for in logs: it may be any word.
const SECRET_BYTES_MIN: usize = 8;

/// Bytes at the end of a text that count as the beginning of a secret.
const BEGINNING_BYTES_MIN: usize = 4;

/// An MCP server.
#[derive(Clone, Debug)]
pub struct ServerConfig {
    /// Its name.
    pub name: ServerName,
    /// How it is reached.
    pub transport: Transport,
    /// Longest time for start, what a login needs, initialization and the first list of its tools.
    pub start_limit: Duration,
    /// The protocol version that it is offered, if not the latest one that begins with
    /// `initialize`.
    pub protocol_version: Option<String>,
    /// Values of variables that stand in the other members: keys, which no log shows.
    pub secrets: Vec<Protected>,
}

/// How a server is reached.
#[derive(Clone, Debug)]
pub enum Transport {
    /// A child process, over its standard input and output.
    Stdio {
        /// The program.
        command: String,
        /// Its arguments.
        args: Vec<String>,
        /// Variables beside the few that every server gets. Values may be keys.
        env: BTreeMap<String, Protected>,
        /// Its working directory, if not ours.
        cwd: Option<PathBuf>,
    },
    /// Streamable HTTP.
    Http {
        /// The address of its MCP endpoint.
        url: Url,
        /// Headers of every request.
        headers: BTreeMap<String, Protected>,
        /// Where the login there is kept, if somebody has logged in.
        login: Option<LoginFile>,
    },
}

/// `text`, which may have been cut, without `secret`. Most texts were not cut, and end with what looks like the
/// beginning of a secret by chance.
fn redacted(secret: &Secret, text: &str) -> String {
    let (whole, cut) = (secret.redact(text), secret.redact_cut(text));
    if whole.len().saturating_sub(cut.len()) < BEGINNING_BYTES_MIN { whole } else { cut }
}

impl ServerConfig {
    /// The server `name`, with the defaults of what a configuration may leave out.
    pub fn new(name: ServerName, transport: Transport) -> Self {
        Self {
            name,
            transport,
            start_limit: START_LIMIT,
            protocol_version: None,
            secrets: Vec::new(),
        }
    }

    /// What is said of the server in `text`, which others may have written: in one line, of limited
    /// length, without the secrets of the configuration and without control characters.
    pub(super) fn shown(&self, text: &str) -> String {
        let (url, login) = match &self.transport {
            Transport::Stdio { .. } => (None, None),
            Transport::Http { url, login, .. } => (Some(url), login.as_ref()),
        };
        let text = login.map_or_else(|| text.to_owned(), |login| login.redacted(text));
        let mut text = cut(&text, SHOWN_BYTES_MAX).to_owned();
        // A part of a path may be a key, but most are words: a text may well end with the beginning of one.
        let query = url.and_then(Url::query).into_iter();
        let parts = query.chain(url.into_iter().flat_map(|url| url.path().split('/')));
        let parts = parts.filter(|part| part.len() >= SECRET_BYTES_MIN);
        let parts = parts.filter_map(Secret::new).map(|part| (part, false));
        let keys = self.all_secrets().into_iter().map(|key| (key, true));
        let mut secrets: Vec<_> = keys.chain(parts).collect();
        secrets.sort_by_key(|(secret, _)| Reverse(secret.expose().len()));
        for (secret, may_be_cut) in secrets {
            text = if may_be_cut { redacted(&secret, &text) } else { secret.redact(&text) };
        }
        escape_control(&without_userinfo(&text)).trim().to_owned()
    }

    /// The values of variables, headers and the query of the URL, the longest first: one may be part of another one,
    /// the rest of which would be shown.
    pub(super) fn all_secrets(&self) -> Vec<Secret> {
        let (values, url) = match &self.transport {
            Transport::Stdio { env, .. } => (env, None),
            Transport::Http { url, headers, .. } => (headers, Some(url)),
        };
        let of_query = url.map(query_values).unwrap_or_default();
        let protected = values.values().chain(&self.secrets).chain(&of_query);
        let mut secrets: Vec<_> = protected.flat_map(Protected::secrets).collect();
        if url.is_some() {
            secrets.extend(values.values().flat_map(Protected::credentials));
        }
        secrets.sort_by_key(|secret| Reverse(secret.expose().len()));
        secrets
    }
}

/// A value from the configuration that may be a key, and is never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Protected(String);

impl Protected {
    /// The value `text`.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The value itself, for the process or request that needs it.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Secrets that logs must not show: the value, and each of its lines, as a log shows one line at a
    /// time. Nothing for a short value, which may be any word.
    fn secrets(&self) -> impl Iterator<Item = Secret> {
        let whole = std::iter::once(self.0.as_str());
        let parts =
            whole.chain(self.0.lines()).filter(|part| part.trim().len() >= SECRET_BYTES_MIN);
        parts.filter_map(Secret::new)
    }
}

impl Protected {
    /// The words of a header's value: a server's error may quote a token without the word `Bearer`
    /// before it (RFC 9110, section 11.4), or one of several cookies without its name.
    fn credentials(&self) -> impl Iterator<Item = Secret> {
        let words = self.0.split(|c: char| c.is_whitespace() || matches!(c, ',' | ';' | '"'));
        let parts = words.flat_map(|word| [Some(word), word.split_once('=').map(|it| it.1)]);
        let parts = parts.flatten().filter(|part| part.len() >= SECRET_BYTES_MIN);
        parts.filter_map(Secret::new)
    }
}

impl fmt::Debug for Protected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Protected([redacted])")
    }
}

/// Looks up an environment variable.
pub type Lookup<'a> = &'a dyn Fn(&str) -> Option<String>;

/// An error in a configuration. Never contains a value from it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ConfigError(String);

/// The servers of a configuration.
#[derive(Debug, Default)]
pub struct Servers {
    /// The servers, in the order in which they were added.
    pub configs: Vec<ServerConfig>,
    /// The ignored parts, for people.
    pub warnings: Vec<String>,
}

impl Servers {
    /// Adds the server that `text` names: a URL, or a command line, split into words as a shell does
    /// but without variables, globs and operators. It gets a name from its host or program.
    ///
    /// # Errors
    /// If there is nothing in it, or it begins with a variable, or quotes don't match, or the URL is none.
    pub fn add_command(&mut self, text: &str) -> Result<(), ConfigError> {
        let is_url = ["http://", "https://"].iter().any(|scheme| text.trim().starts_with(scheme));
        let (name, transport) = if is_url {
            let url = url_of(text.trim()).map_err(ConfigError)?;
            let name = url.host_str().unwrap_or("http").to_owned();
            (name, Transport::Http { url, headers: BTreeMap::new(), login: None })
        } else {
            let words = shlex::split(text);
            let words = words.ok_or_else(|| ConfigError("quotes that don't match".to_owned()))?;
            if words.first().is_some_and(|word| sets_variable(word)) {
                // Without the word: its value may be a key.
                let why = "it begins with a variable; write the server into a file of servers, \
                           and its variables into `env` there";
                return Err(ConfigError(why.to_owned()));
            }
            let name = name_of(&words);
            let mut words = words.into_iter();
            let command = words.next().filter(|command| !command.is_empty());
            let command = command.ok_or_else(|| ConfigError("no command".to_owned()))?;
            let args = words.collect();
            (name, Transport::Stdio { command, args, env: BTreeMap::new(), cwd: None })
        };
        let name = self.free_name(&name);
        self.add(ServerConfig::new(name, transport))
    }

    /// Adds the servers of the file that holds `json`: its member `mcpServers`, in the form that
    /// other clients use. `${NAME}`, `${NAME:-default}` and `${env:NAME}` in values are replaced by
    /// variables.
    ///
    /// # Errors
    /// If it can't be used; names the member that is wrong.
    pub fn add_file(&mut self, json: &str, variables: Lookup<'_>) -> Result<(), ConfigError> {
        let json = json.trim_start_matches('\u{feff}');
        let no_json = |error| ConfigError(format!("it is not JSON: {error}"));
        fits(json.as_bytes()).map_err(|error| no_json(error.to_string()))?;
        let file: Value = serde_json::from_str(json).map_err(|error| no_json(error.to_string()))?;
        // Of two members of one name the last one has been read, and a server would be missing.
        well_formed(json).map_err(|error| ConfigError(error.to_string()))?;
        let Some(servers) = file.get("mcpServers") else {
            return Err(ConfigError("it has no member `mcpServers`".to_owned()));
        };
        let Some(servers) = servers.as_object() else {
            return Err(ConfigError("mcpServers: must be an object".to_owned()));
        };
        for (name, server) in servers {
            if self.has(name) {
                return Err(ConfigError(format!("mcpServers.{name}: there is already one")));
            }
            let Some(members) = server.as_object() else {
                return Err(ConfigError(format!("mcpServers.{name}: must be an object")));
            };
            self.add_members(&format!("mcpServers.{name}"), name, members, variables)?;
        }
        Ok(())
    }

    /// Adds the server `name` with these members, as in a file, unless there is already one.
    ///
    /// # Errors
    /// If it can't be used; names the member that is wrong.
    pub fn add_unless_named(
        &mut self,
        name: &str,
        members: &Map<String, Value>,
        variables: Lookup<'_>,
    ) -> Result<(), ConfigError> {
        if self.has(name) {
            return Ok(());
        }
        self.add_members(name, name, members, variables)
    }

    /// Has logins used that are kept in `folder`. A server with an `Authorization` header has that instead.
    pub fn use_logins(&mut self, folder: &Path) {
        for config in &mut self.configs {
            if let Transport::Http { url, headers, login } = &mut config.transport {
                let is_free =
                    !headers.keys().any(|name| name.eq_ignore_ascii_case("authorization"));
                *login = (is_free && is_safe(url)).then(|| LoginFile::new(folder, url));
            }
        }
    }

    /// Adds a server, in the place of one of its name.
    ///
    /// # Errors
    /// If there are too many.
    pub(crate) fn add_in_place(&mut self, config: ServerConfig) -> Result<(), ConfigError> {
        self.configs.retain(|other| other.name != config.name);
        self.add(config)
    }

    /// Has the servers that are processes run in `folder`, which their own folders are relative to.
    pub(crate) fn run_in(&mut self, folder: &Path) {
        for config in &mut self.configs {
            if let Transport::Stdio { cwd, .. } = &mut config.transport {
                let own = cwd.take();
                *cwd = Some(own.map_or_else(|| folder.to_owned(), |own| folder.join(own)));
            }
        }
    }

    fn has(&self, name: &str) -> bool {
        let name = ServerName::new(name);
        self.configs.iter().any(|config| Some(&config.name) == name.as_ref())
    }

    /// Adds a server; errors and warnings name it by its `path`.
    fn add_members(
        &mut self,
        path: &str,
        name: &str,
        members: &Map<String, Value>,
        variables: Lookup<'_>,
    ) -> Result<(), ConfigError> {
        let Some(name) = ServerName::new(name) else {
            return Err(ConfigError("mcpServers: a server has an empty name".to_owned()));
        };
        let reader = Reader { path: path.to_owned(), members, variables };
        let config = reader.config(name, &mut self.warnings).map_err(ConfigError)?;
        match config {
            Some(config) => self.add(config),
            None => Ok(()),
        }
    }

    fn add(&mut self, config: ServerConfig) -> Result<(), ConfigError> {
        if self.configs.len() == SERVERS_MAX {
            return Err(ConfigError(format!("more than {SERVERS_MAX} servers")));
        }
        self.configs.push(config);
        Ok(())
    }

    /// `name`, with a number if another server has it.
    fn free_name(&self, name: &str) -> ServerName {
        let free = ServerName::or_default(name);
        let (name, mut free, mut number) = (free.to_string(), free, 2);
        while self.configs.iter().any(|config| config.name == free) {
            free = ServerName::or_default(&format!("{name}-{number}"));
            number += 1;
        }
        free
    }
}

/// The values in the query of `url`, as they are written there and decoded: a server's error may quote one alone, in
/// either form. A parameter without a value may be a key itself.
fn query_values(url: &Url) -> Vec<Protected> {
    let written = url.query().into_iter().flat_map(|query| query.split('&'));
    let written = written.map(|part| part.split_once('=').map_or(part, |(_, value)| value));
    let decoded = url.query_pairs();
    let decoded = decoded.map(|(name, value)| if value.is_empty() { name } else { value });
    let values = written.map(Protected::new).chain(decoded.map(Protected::new));
    values.collect()
}

fn url_of(text: &str) -> Result<Url, String> {
    let url = Url::parse(text).map_err(|error| format!("is no URL: {error}"))?;
    let is_http = ["http", "https"].contains(&url.scheme()) && url.has_host();
    if is_http { Ok(url) } else { Err("must begin with http:// or https://".to_owned()) }
}
