//! The MCP servers of options, files and the profile.

use super::Check;
use crate::cli::commands::args::DoctorArgs;
use crate::cli::commands::tools::{Offered, ask};
use crate::cli::tools::{ProfileTools, ToolSettings};
use crate::session::SessionMode;

/// Tools of a server that are named; of others only the number is given.
const NAMED_MAX: usize = 8;

/// Checks the servers: starts them, asks for their tools, and ends them.
pub(super) fn check(args: &DoctorArgs, of_profile: &ProfileTools, checks: &mut Vec<Check>) {
    let settings = match args.tools.settings(SessionMode::OneShot, of_profile) {
        Ok(settings) => settings,
        Err(error) => {
            checks.push(Check::wrong("tool servers", format!("{error:#}")));
            return;
        }
    };
    let ignored = |warning: &String| Check::note("ignored", format!("--mcp-config: {warning}"));
    checks.extend(settings.warnings.iter().map(ignored));
    if settings.servers.is_empty() {
        checks.push(Check::fine("tool servers", "none is named (--mcp, --mcp-config)"));
    } else if args.offline {
        let names = settings.servers.iter().map(|server| server.name.as_str());
        let names = names.collect::<Vec<_>>().join(", ");
        checks.push(Check::note("tool servers", format!("{names}: not started (--offline)")));
    } else {
        of_servers(settings, checks);
    }
}

fn of_servers(settings: ToolSettings, checks: &mut Vec<Check>) {
    let Offered { tools, failed } = match ask(settings) {
        Ok(offered) => offered,
        Err(error) => {
            let why = format!("events can't be waited for: {error}");
            checks.push(Check::wrong("tool servers", why));
            return;
        }
    };
    for (server, tools) in &tools {
        let mut names: Vec<_> =
            tools.iter().take(NAMED_MAX).map(|tool| tool.name.as_str()).collect();
        if tools.len() > NAMED_MAX {
            names.push("…");
        }
        let names = names.join(", ");
        checks.push(match tools.len() {
            0 => Check::note("tool server", format!("{server}: works, and has no tools")),
            1 => Check::fine("tool server", format!("{server}: works, with the tool {names}")),
            count => {
                Check::fine("tool server", format!("{server}: works, with {count} tools: {names}"))
            }
        });
    }
    let failed = failed.iter();
    checks.extend(
        failed.map(|(server, why)| Check::wrong("tool server", format!("{server}: {why}"))),
    );
}
