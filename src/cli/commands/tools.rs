//! `duologue tools`: the tools of MCP servers, as a model would be offered them.

use super::args::{TextOutput, ToolsArgs};
use super::document;
use super::envelope::{Envelope, Error};
use super::output::{Failure, Out, message};
use super::{FOUND, OUTPUT};
use crate::cli::tools::{ProfileTools, ToolSettings, guard};
use crate::cli::{log, shell};
use crate::protocol::constants::command_code;
use crate::session::SessionMode;
use crate::session::approval::{ApprovalRules, Ruling, ServerNames};
use crate::session::catalogue::{Catalogue, Entry, Source};
use crate::support::terminal::escape_control;
use crate::task::server::ServerState;
use crate::task::server::{ServerName, ServerTool};
use crate::tool::servers::ToolServers;
use serde::Serialize;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::io;

/// The tools of the servers, and the errors of servers without any.
#[derive(Debug)]
pub(super) struct Offered {
    /// The tools of each server that could be used.
    pub(super) tools: BTreeMap<ServerName, Vec<ServerTool>>,
    /// The others.
    pub(super) failed: BTreeMap<ServerName, String>,
}

/// The tools that a model would be offered.
struct Offer {
    catalogue: Catalogue,
    servers: ServerNames,
    failed: BTreeMap<ServerName, String>,
}

/// A tool as it is written in the envelope.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Listed<'a> {
    name: &'a str,
    server: &'a str,
    server_tool: &'a str,
    description: &'a str,
    input_schema: &'a Map<String, Value>,
    approval: &'static str,
}

/// Lists the tools of the servers that `args` name; returns the exit status.
pub fn tools(args: &ToolsArgs) -> u8 {
    document::list(args.is_json(), || run(args))
}

fn run(args: &ToolsArgs) -> Result<u8, Failure> {
    let wrong = |error: anyhow::Error| Failure::Usage(format!("{error:#}"));
    let settings =
        args.tools.settings(SessionMode::OneShot, &ProfileTools::default()).map_err(wrong)?;
    if settings.servers.is_empty() {
        let why = "no MCP server is named; name one with --mcp or --mcp-config, as in: \
                   duologue tools --mcp 'npx -y @modelcontextprotocol/server-everything'";
        return Err(Failure::Usage(why.to_owned()));
    }
    log::start(args.log.log_level, None).map_err(wrong)?;
    for warning in &settings.warnings {
        tracing::warn!("--mcp-config: {}", escape_control(warning));
    }
    let rules = settings.rules.clone();
    let Offered { tools, failed } = match ask(settings) {
        Ok(offered) => offered,
        Err(error) => {
            message(&format!("events can't be waited for: {error}"));
            return Ok(OUTPUT);
        }
    };
    let servers = ServerNames::new(tools.keys().chain(failed.keys()));
    let found = Offer { catalogue: Catalogue::new(&[], &tools), servers, failed };
    for (server, reason) in &found.failed {
        message(&format!("MCP server {}: {reason}", escape_control(server.as_str())));
    }
    let mut out = Out::new()?;
    if args.is_json() {
        print_json(&found, &rules, &mut out)?
    } else {
        print_text(&found, &mut out)?
    }
    Ok(if found.failed.is_empty() { 0 } else { FOUND })
}

/// Starts the servers, collects their tools, and ends them.
///
/// # Errors
/// If nothing can be waited for.
pub(super) fn ask(settings: ToolSettings) -> io::Result<Offered> {
    let runtime = shell::runtime()?;
    let offered = runtime.block_on(offered(settings));
    runtime.shutdown_background();
    Ok(offered)
}

async fn offered(settings: ToolSettings) -> Offered {
    let mut servers = ToolServers::new(settings.servers, settings.limits, guard());
    let mut waiting: BTreeSet<ServerName> = servers.names().cloned().collect();
    let mut tools: BTreeMap<ServerName, Vec<ServerTool>> = BTreeMap::new();
    let mut failed = BTreeMap::new();
    servers.start();
    while !waiting.is_empty() {
        let change = servers.changed().await;
        match change.state {
            ServerState::Starting => continue,
            ServerState::Ready => {
                tools.insert(change.server.clone(), change.tools.to_vec());
            }
            ServerState::Failed { reason } | ServerState::Gone { reason } => {
                failed.insert(change.server.clone(), reason);
            }
        }
        waiting.remove(&change.server);
    }
    servers.close().await;
    Offered { tools, failed }
}

fn print_json(found: &Offer, rules: &ApprovalRules, out: &mut Out) -> Result<(), Failure> {
    let mut envelope = Envelope::new();
    for entry in found.catalogue.entries() {
        let (server, server_tool) = origin(entry);
        let listed = Listed {
            name: &entry.spec.name,
            server,
            server_tool,
            description: &entry.spec.description,
            input_schema: &entry.spec.input_schema,
            approval: match entry.ruling(rules, &found.servers) {
                Ruling::Allow => "allow",
                Ruling::Ask => "ask",
                Ruling::Deny(_) => "deny",
            },
        };
        envelope.push(&listed, out)?;
    }
    let reasons = found.failed.iter().map(|(server, reason)| format!("{server}: {reason}"));
    let reasons = reasons.collect::<Vec<_>>().join("; ");
    let error = (!found.failed.is_empty()).then(|| Error {
        code: command_code::MCP_SERVER_FAILED,
        class: Some("tool"),
        message: format!("MCP servers that could not be used: {}", found.failed.len()),
        detail: reasons,
    });
    envelope.finish(error.as_ref(), None, out)
}

fn print_text(found: &Offer, out: &mut Out) -> Result<(), Failure> {
    for entry in found.catalogue.entries() {
        let (server, _) = origin(entry);
        out.line(&format!("{} ({})", entry.spec.name, escape_control(server)))?;
        for line in entry.spec.description.trim().lines() {
            out.line(format!("    {}", escape_control(line)).trim_end())?;
        }
        let parameters = parameters(&entry.spec.input_schema);
        out.line(&format!("    parameters: {}", escape_control(&parameters)))?;
    }
    out.flush()
}

fn origin(entry: &Entry) -> (&str, &str) {
    match &entry.source {
        Source::Server { server, tool } => (server.as_str(), tool),
        Source::Client { .. } => ("", &entry.spec.name),
    }
}

/// The parameters of a schema, with their types.
fn parameters(schema: &Map<String, Value>) -> String {
    let required = schema.get("required").and_then(Value::as_array);
    let is_required = |name: &str| required.is_some_and(|list| list.iter().any(|it| it == name));
    let properties = schema.get("properties").and_then(Value::as_object);
    let described = properties.into_iter().flatten().map(|(name, property)| {
        let optional = if is_required(name) { "" } else { "?" };
        format!("{name}{optional}: {}", kind(property))
    });
    let described: Vec<_> = described.collect();
    if described.is_empty() { "none".to_owned() } else { described.join(", ") }
}

fn kind(property: &Value) -> String {
    match property.get("type") {
        Some(Value::String(kind)) => kind.clone(),
        Some(Value::Array(kinds)) => {
            kinds.iter().filter_map(Value::as_str).collect::<Vec<_>>().join("|")
        }
        Some(_) | None => "any".to_owned(),
    }
}

impl ToolsArgs {
    fn is_json(&self) -> bool {
        self.no_stream || self.output == TextOutput::Json
    }
}
