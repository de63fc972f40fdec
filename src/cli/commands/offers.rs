//! `duologue mcp resources` and `duologue mcp prompts`: what MCP servers offer to people.

use super::args::{McpListArgs, TextOutput};
use super::envelope::{Envelope, Error};
use super::output::{Failure, Out, message, nothing};
use super::{FOUND, OUTPUT};
use crate::cli::tools::{ProfileTools, ToolOptions, ToolSettings, guard};
use crate::cli::{log, shell};
use crate::protocol::constants::command_code;
use crate::session::SessionMode;
use crate::support::terminal::escape_control;
use crate::task::server::{PromptArgument, ServerName, ServerPrompt, ServerResource};
use crate::tool::servers::{Listings, ToolServers};
use futures_util::future::join_all;
use serde::Serialize;
use std::io;

/// The list that each server has answered with, in the order of their names.
type Answers<T> = Vec<(ServerName, Result<Listings<T>, String>)>;

/// A resource as it is written in the envelope.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ListedResource<'a> {
    server: &'a str,
    uri: &'a str,
    name: &'a str,
    mime_type: &'a str,
    description: &'a str,
}

/// A prompt as it is written in the envelope.
#[derive(Serialize)]
struct ListedPrompt<'a> {
    server: &'a str,
    name: &'a str,
    description: &'a str,
    arguments: Vec<ListedArgument<'a>>,
}

#[derive(Serialize)]
struct ListedArgument<'a> {
    name: &'a str,
    description: &'a str,
    required: bool,
}

/// Lists the resources of the servers that `args` name.
pub(super) fn resources(args: &McpListArgs) -> Result<u8, Failure> {
    let answers = match asked(args, ToolServers::resources)? {
        Ok(answers) => answers,
        Err(error) => return Ok(unable(&error)),
    };
    let listed = of_all(&answers);
    let mut out = Out::new()?;
    if args.is_json() {
        let rows = listed.map(|(server, it)| ListedResource {
            server: server.as_str(),
            uri: &it.uri,
            name: &it.name,
            mime_type: &it.media_type,
            description: &it.description,
        });
        return print_json(rows, &answers, &mut out);
    }
    for (server, ServerResource { uri, name, description, media_type }) in listed {
        out.line(&escape_control(&format!("{server}:{uri}")))?;
        let media_type = match media_type.as_str() {
            "" => String::new(),
            media_type => format!(" ({media_type})"),
        };
        out.line(format!("    {}", escape_control(&format!("{name}{media_type}"))).trim_end())?;
        print_about(description, &mut out)?;
    }
    finish(&answers, "resources", &mut out)
}

/// Lists the prompts of the servers that `args` name.
pub(super) fn prompts(args: &McpListArgs) -> Result<u8, Failure> {
    let answers = match asked(args, ToolServers::prompts)? {
        Ok(answers) => answers,
        Err(error) => return Ok(unable(&error)),
    };
    let listed = of_all(&answers);
    let mut out = Out::new()?;
    if args.is_json() {
        let rows = listed.map(|(server, it)| ListedPrompt {
            server: server.as_str(),
            name: &it.name,
            description: &it.description,
            arguments: it.arguments.iter().map(ListedArgument::of).collect(),
        });
        return print_json(rows, &answers, &mut out);
    }
    for (server, ServerPrompt { name, description, arguments }) in listed {
        out.line(&escape_control(&format!("{server}:{name}")))?;
        print_about(description, &mut out)?;
        for PromptArgument { name, description, is_required } in arguments {
            let optional = if *is_required { "" } else { " (optional)" };
            let about = if description.is_empty() { "" } else { ": " };
            let line = format!("{name}{optional}{about}{description}");
            out.line(format!("    {}", escape_control(&line)).trim_end())?;
        }
    }
    finish(&answers, "prompts", &mut out)
}

/// Starts the servers, asks each for what it is to `list`, and ends them.
fn asked<T, F>(
    args: &McpListArgs,
    list: impl Fn(&ToolServers, &ServerName) -> F,
) -> Result<io::Result<Answers<T>>, Failure>
where
    F: Future<Output = Result<Listings<T>, String>>,
{
    let wrong = |error: anyhow::Error| Failure::Usage(format!("{error:#}"));
    let options = ToolOptions { servers: args.servers.clone(), ..ToolOptions::default() };
    let settings = options.settings(SessionMode::OneShot, &ProfileTools::default());
    let mut settings = settings.map_err(wrong)?;
    if settings.servers.is_empty() {
        let why = "no MCP server is named; name one with --mcp or --mcp-config";
        return Err(Failure::Usage(why.to_owned()));
    }
    if let Some(server) = &args.server {
        let names: Vec<_> = settings.servers.iter().map(|it| it.name.to_string()).collect();
        settings.servers.retain(|it| it.name.as_str() == server);
        if settings.servers.is_empty() {
            let names = names.join(", ");
            let why = format!("there is no MCP server {server:?}; there are: {names}");
            return Err(Failure::Usage(why));
        }
    }
    log::start(args.log.log_level, None).map_err(wrong)?;
    for warning in &settings.warnings {
        tracing::warn!("--mcp-config: {}", escape_control(warning));
    }
    Ok(shell::runtime().map(|runtime| {
        let answers = runtime.block_on(answers(settings, list));
        runtime.shutdown_background();
        answers
    }))
}

async fn answers<T, F>(
    settings: ToolSettings,
    list: impl Fn(&ToolServers, &ServerName) -> F,
) -> Answers<T>
where
    F: Future<Output = Result<Listings<T>, String>>,
{
    let mut servers = ToolServers::new(settings.servers, settings.limits, guard());
    servers.start();
    let asked: Vec<_> = servers.names().map(|name| (name.clone(), list(&servers, name))).collect();
    let asked = asked.into_iter().map(async |(name, listed)| (name, listed.await));
    let answers = join_all(asked).await;
    servers.close().await;
    for (server, listed) in &answers {
        let warnings = listed.iter().flat_map(|(_, warnings)| warnings);
        for warning in warnings {
            tracing::warn!("MCP server {server}: {}", escape_control(warning));
        }
    }
    answers
}

fn unable(error: &io::Error) -> u8 {
    message(&format!("servers can't be waited for: {error}"));
    OUTPUT
}

/// The items of all servers that have answered, each with the name of its server.
fn of_all<T>(answers: &Answers<T>) -> impl Iterator<Item = (&ServerName, &T)> {
    answers.iter().flat_map(|(server, listed)| {
        let items = listed.as_ref().map_or(&[][..], |(items, _)| &items[..]);
        items.iter().map(move |item| (server, item))
    })
}

fn failures<T>(answers: &Answers<T>) -> impl Iterator<Item = &String> {
    answers.iter().filter_map(|(_, listed)| listed.as_ref().err())
}

fn print_about(description: &str, out: &mut Out) -> Result<(), Failure> {
    for line in description.trim().lines() {
        out.line(format!("    {}", escape_control(line)).trim_end())?;
    }
    Ok(())
}

fn print_json<T>(
    rows: impl Iterator<Item = impl Serialize>,
    answers: &Answers<T>,
    out: &mut Out,
) -> Result<u8, Failure> {
    let mut envelope = Envelope::new();
    for row in rows {
        envelope.push(&row, out)?;
    }
    let failed: Vec<_> = failures(answers).map(String::as_str).collect();
    let error = (!failed.is_empty()).then(|| Error {
        code: command_code::MCP_SERVER_FAILED,
        class: Some("tool"),
        message: format!("MCP servers that could not be used: {}", failed.len()),
        detail: failed.join("; "),
    });
    envelope.finish(error.as_ref(), None, out)?;
    Ok(reported(answers))
}

/// Ends the list of the `items` that the servers offer.
fn finish<T>(answers: &Answers<T>, items: &str, out: &mut Out) -> Result<u8, Failure> {
    out.flush()?;
    let status = reported(answers);
    if status == 0 && of_all(answers).next().is_none() {
        let servers: Vec<_> = answers.iter().map(|(server, _)| server.to_string()).collect();
        nothing(|| format!("no MCP server here offers {items}: {}", servers.join(", ")));
    }
    Ok(status)
}

/// Says which servers have failed; returns the exit status.
fn reported<T>(answers: &Answers<T>) -> u8 {
    for why in failures(answers) {
        message(&escape_control(why));
    }
    if failures(answers).next().is_none() { 0 } else { FOUND }
}

impl<'a> ListedArgument<'a> {
    fn of(PromptArgument { name, description, is_required }: &'a PromptArgument) -> Self {
        Self { name, description, required: *is_required }
    }
}

impl McpListArgs {
    pub(super) fn is_json(&self) -> bool {
        self.no_stream || self.output == TextOutput::Json
    }
}
