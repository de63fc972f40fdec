//! A server in a configuration file, in the form that other clients use.

use super::{Lookup, Protected, START_LIMIT, ServerConfig, Transport, url_of};
use crate::task::server::ServerName;
use crate::tool::child::VARIABLES;
use serde_json::{Map, Value};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

/// Members of a server in a file.
const MEMBERS: [&str; 11] = [
    "type",
    "command",
    "args",
    "env",
    "cwd",
    "url",
    "headers",
    "disabled",
    "startTimeout",
    "protocolVersion",
    "description",
];

/// Members whose values may be keys, or have keys in them.
const WITH_KEYS: [&str; 4] = ["args", "env", "url", "headers"];

/// Reads the members of one server. Errors name the member and never its value.
pub(super) struct Reader<'a> {
    pub(super) path: String,
    pub(super) members: &'a Map<String, Value>,
    pub(super) variables: Lookup<'a>,
}

impl Reader<'_> {
    /// The server; `None` if it is disabled.
    pub(super) fn config(
        &self,
        name: ServerName,
        warnings: &mut Vec<String>,
    ) -> Result<Option<ServerConfig>, String> {
        match self.members.get("disabled") {
            None | Some(Value::Null | Value::Bool(false)) => {}
            Some(Value::Bool(true)) => return Ok(None),
            Some(_) => return Err(self.wrong("disabled", "must be true or false")),
        }
        for member in self.members.keys().filter(|member| !MEMBERS.contains(&member.as_str())) {
            warnings.push(format!("{}.{member}: not known here, ignored", self.path));
        }
        let transport = self.transport(warnings)?;
        Ok(Some(ServerConfig {
            name,
            start_limit: self.start_limit()?,
            protocol_version: self.text("protocolVersion")?,
            secrets: self.secrets(&transport),
            transport,
        }))
    }

    /// Values of variables in the members that may hold a key. An error of the server may quote one without the text
    /// around it.
    fn secrets(&self, transport: &Transport) -> Vec<Protected> {
        let secrets = RefCell::new(Vec::new());
        let with_keys = self.members.iter().filter(|(name, _)| WITH_KEYS.contains(&name.as_str()));
        for (member, written) in with_keys {
            let collecting = |name: &str| {
                let value = (self.variables)(name)?;
                if !is_public(name) && !says_where(transport, member, &value) {
                    secrets.borrow_mut().push(Protected::new(value.as_str()));
                }
                Some(value)
            };
            for text in texts(written) {
                expand(text, &collecting).ok();
            }
        }
        secrets.into_inner()
    }

    fn transport(&self, warnings: &mut Vec<String>) -> Result<Transport, String> {
        let (command, url) = (self.text("command")?, self.text("url")?);
        let kind = self.text("type")?;
        let is_http = match (kind.as_deref(), &command, &url) {
            (None | Some("stdio"), Some(_), None) => false,
            (None | Some("http" | "streamable-http" | "streamableHttp"), None, Some(_)) => true,
            (Some("sse"), ..) => {
                let why = "the transport `sse` is not supported; use the server's streamable HTTP";
                return Err(self.wrong("type", why));
            }
            (None, None, None) => return Err(format!("{}: has no command and no url", self.path)),
            (None, Some(_), Some(_)) => {
                return Err(format!("{}: has both a command and a url", self.path));
            }
            (Some("stdio"), ..) => return Err(self.wrong("type", "goes with a command and no url")),
            (Some("http" | "streamable-http" | "streamableHttp"), ..) => {
                return Err(self.wrong("type", "goes with a url and no command"));
            }
            (Some(_), ..) => return Err(self.wrong("type", "must be stdio or http")),
        };
        let unused: &[&str] = if is_http { &["args", "env", "cwd"] } else { &["headers"] };
        for member in unused.iter().filter(|member| self.members.contains_key(**member)) {
            warnings.push(format!(
                "{}.{member}: has no meaning for this transport, ignored",
                self.path
            ));
        }
        match (command, url) {
            (Some(command), _) => Ok(Transport::Stdio {
                command,
                args: self.texts("args")?,
                env: self.values("env")?,
                cwd: self.text("cwd")?.filter(|cwd| !cwd.is_empty()).map(PathBuf::from),
            }),
            (None, text) => Ok(Transport::Http {
                url: url_of(&text.unwrap_or_default()).map_err(|why| self.wrong("url", &why))?,
                headers: self.values("headers")?,
                login: None,
            }),
        }
    }

    fn start_limit(&self) -> Result<Duration, String> {
        match self.members.get("startTimeout") {
            None | Some(Value::Null) => Ok(START_LIMIT),
            Some(value) => match value.as_u64() {
                Some(millis @ 1..) => Ok(Duration::from_millis(millis)),
                Some(0) | None => {
                    Err(self.wrong("startTimeout", "must be a number of milliseconds above 0"))
                }
            },
        }
    }

    fn text(&self, member: &str) -> Result<Option<String>, String> {
        match self.members.get(member) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => self.expanded(member, value).map(Some),
        }
    }

    fn texts(&self, member: &str) -> Result<Vec<String>, String> {
        match self.members.get(member) {
            None | Some(Value::Null) => Ok(Vec::new()),
            Some(Value::Array(values)) => {
                let values = values.iter().enumerate();
                values.map(|(at, value)| self.expanded(&format!("{member}[{at}]"), value)).collect()
            }
            Some(_) => Err(self.wrong(member, "must be an array of strings")),
        }
    }

    fn values(&self, member: &str) -> Result<BTreeMap<String, Protected>, String> {
        match self.members.get(member) {
            None | Some(Value::Null) => Ok(BTreeMap::new()),
            Some(Value::Object(values)) => {
                let values = values.iter().map(|(name, value)| {
                    let path = format!("{member}.{name}");
                    // The system would refuse it with an error that does not name it.
                    if name.is_empty() || name.contains(['=', '\0']) {
                        return Err(self.wrong(&path, "is no name"));
                    }
                    Ok((name.clone(), Protected::new(self.expanded(&path, value)?)))
                });
                values.collect()
            }
            Some(_) => Err(self.wrong(member, "must be an object of strings")),
        }
    }

    /// A string, with its variables replaced. Numbers and booleans are taken as well, for values of
    /// variables are often written so.
    fn expanded(&self, member: &str, value: &Value) -> Result<String, String> {
        let text = match value {
            Value::String(text) => text.clone(),
            Value::Number(_) | Value::Bool(_) => value.to_string(),
            Value::Null | Value::Array(_) | Value::Object(_) => {
                return Err(self.wrong(member, "must be a string"));
            }
        };
        let text = expand(&text, self.variables).map_err(|why| self.wrong(member, &why))?;
        if text.contains('\0') {
            return Err(self.wrong(member, "contains a NUL character"));
        }
        Ok(text)
    }

    fn wrong(&self, member: &str, why: &str) -> String {
        format!("{}.{member}: {why}", self.path)
    }
}

/// Whether the variable is no key: a path in a log is of use.
fn is_public(variable: &str) -> bool {
    VARIABLES.contains(&variable) || variable == "PWD"
}

/// Whether the `value` of a variable in `member` is part of the command, the folder or the address, which errors name.
/// A value that begins with the host of an address is no key; those in its path and query are redacted in any case.
fn says_where(transport: &Transport, member: &str, value: &str) -> bool {
    match transport {
        Transport::Stdio { command, cwd, .. } => {
            let cwd = cwd.as_ref().is_some_and(|cwd| cwd.to_string_lossy().contains(value));
            cwd || command.contains(value)
        }
        Transport::Http { url, .. } => {
            let (origin, value) = (url.origin().ascii_serialization(), value.to_ascii_lowercase());
            let authority = origin.split_once("://").map_or(origin.as_str(), |it| it.1);
            let place = value.split_once("://").map_or(value.as_str(), |it| it.1);
            let behind = place.strip_prefix(authority);
            let ends_host = |it: &str| it.is_empty() || it.starts_with(['/', '?', '#']);
            // A user's name and password may stand before the host.
            let has_host = behind.is_some_and(ends_host) && !value.contains('@');
            member == "url" && (has_host || origin.contains(&value))
        }
    }
}

/// The texts in `value`, at any depth.
fn texts(value: &Value) -> Vec<&str> {
    match value {
        Value::String(text) => vec![text],
        Value::Array(items) => items.iter().flat_map(texts).collect(),
        Value::Object(members) => members.values().flat_map(texts).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) => Vec::new(),
    }
}

/// `text` with `${NAME}`, `${NAME:-default}` and `${env:NAME}` replaced; any other `$` stays.
fn expand(text: &str, variables: Lookup<'_>) -> Result<String, String> {
    let mut expanded = String::new();
    let mut rest = text;
    while let Some(start) = rest.find("${") {
        expanded += &rest[..start];
        let after = &rest[start + 2..];
        let end = after.find('}').ok_or("`${` without a `}`")?;
        let (name, default) = match after[..end].split_once(":-") {
            Some((name, default)) => (name, Some(default)),
            None => (&after[..end], None),
        };
        let name = name.strip_prefix("env:").unwrap_or(name);
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        if name.is_empty() || !name.chars().all(is_name) {
            return Err("`${…}` must hold the name of a variable".to_owned());
        }
        let value = variables(name).filter(|value| !value.is_empty() || default.is_none());
        let value = value.or_else(|| default.map(str::to_owned));
        expanded += &value.ok_or_else(|| format!("the variable {name} is not set"))?;
        rest = &after[end + 1..];
    }
    Ok(expanded + rest)
}
