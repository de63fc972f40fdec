//! Variables that set nothing, as their names are misspelt.

use crate::support::nearest::nearest;
use crate::support::terminal::escape_control;

/// The prefix of variables that set options.
pub(super) const PREFIX: &str = "DUOLOGUE_";

/// Those there are, without the prefix. Written down, as the definition of all commands takes long to build.
const KNOWN: [&str; 97] = [
    "ADVERTISE",
    "API_KEY",
    "APPROVAL",
    "ASK_TIMEOUT_MS",
    "BACKEND_EVENTS",
    "BACKGROUND",
    "BASE_URL",
    "BELL",
    "BUDGET",
    "CLIENT_CA",
    "COMPACT",
    "COMPACT_MODEL",
    "COMPACT_PROMPT",
    "CONNECT_TIMEOUT_MS",
    "CONTEXT_TOKENS",
    "DEBUG_EVENTS_JSONL",
    "DETACHED_MS",
    "DRAIN_MS",
    "ECHO_ANSWER",
    "ECHO_DELAY_MS",
    "ECHO_REASONING",
    "ECHO_SCRIPT",
    "EDITING",
    "ENGINE",
    "ENGINES",
    "EVENTS",
    "EXTENSIONS",
    "EXTRA_BODY",
    "FINAL_SNAPSHOT",
    "FULLSCREEN",
    "HEADER",
    "HEARTBEAT_MS",
    "HISTORY",
    "IDLE_MS",
    "IDLE_TIMEOUT_MS",
    "INSECURE",
    "JWKS",
    "JWT_AUDIENCE",
    "JWT_ISSUER",
    "JWT_TENANT_CLAIM",
    "LISTEN",
    "LOCK_WAIT_MS",
    "LOG_FILE",
    "LOG_LEVEL",
    "MAX_CONVERSATIONS",
    "MAX_REQUEST_BYTES",
    "MAX_RUNS",
    "MAX_TOKENS",
    "MAX_TOOL_ARGUMENT_BYTES",
    "MAX_TOOL_CALLS",
    "MAX_TOOL_RESULT_BYTES",
    "MAX_TOOL_ROUNDS",
    "MCP_CLIENT_SECRET",
    "MCP_CONFIG",
    "MCP_WAIT_MS",
    "MODEL",
    "NODE_CA",
    "NODE_TOKEN_FILE",
    "NO_STORE",
    "ON_BUSY",
    "OUTPUT",
    "PATCH_FIELDS",
    "PATCH_MODE",
    "PLAIN",
    "PRICES",
    "PROFILE",
    "PROFILE_REGISTRIES",
    "REASONING_BUDGET",
    "REASONING_EFFORT",
    "REASONING_SUMMARY",
    "REPAIR",
    "REQUIRE_PROVIDER",
    "REQUIRE_TOOLS",
    "RETRIES",
    "RUN_MS",
    "SEED",
    "SESSION_ID",
    "STOP",
    "STORE",
    "SYSTEM",
    "TEMPERATURE",
    "TENANTS",
    "TENANT_BYTES",
    "TENANT_CONVERSATIONS",
    "TENANT_RATE",
    "TENANT_RUNS",
    "TIMELINE_DB",
    "TIMELINE_DSN",
    "TLS_CERT",
    "TLS_KEY",
    "TLS_ROOTS",
    "TOOL_TIMEOUT_MS",
    "TOP_P",
    "TOTAL_TIMEOUT_MS",
    "TURNS_DB",
    "TURNS_DSN",
    "UNREAD_MS",
];

/// Warns of variables that are none, but nearly. Others are of programs around this one.
pub(super) fn warn_of_misspelt() {
    let names = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    for name in names {
        if let Some(meant) = meant(&name) {
            let name = escape_control(&name);
            tracing::warn!("the variable {name} sets nothing; did you mean {PREFIX}{meant}?");
        }
    }
}

/// The variable that `name` misspells.
fn meant(name: &str) -> Option<&'static str> {
    let name = name.strip_prefix(PREFIX).filter(|name| !KNOWN.contains(name))?;
    nearest(name, KNOWN)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::Cli;
    use clap::{Command, CommandFactory};
    use std::collections::BTreeSet;

    fn add(command: &Command, names: &mut BTreeSet<String>) {
        let variables = command.get_arguments().filter_map(|arg| arg.get_env()?.to_str());
        names.extend(variables.filter_map(|name| Some(name.strip_prefix(PREFIX)?.to_owned())));
        command.get_subcommands().for_each(|command| add(command, names));
    }

    #[test]
    fn the_variables_of_all_options_are_known() {
        let mut names = BTreeSet::from(["API_KEY", "MCP_CLIENT_SECRET"].map(str::to_owned));
        add(&Cli::command(), &mut names);
        let unknown: Vec<_> = names.iter().filter(|name| !KNOWN.contains(&name.as_str())).collect();
        assert!(unknown.is_empty(), "add to KNOWN: {unknown:?}");
        if cfg!(feature = "serve") {
            let gone: Vec<_> = KNOWN.iter().filter(|name| !names.contains(**name)).collect();
            assert!(gone.is_empty(), "take out of KNOWN: {gone:?}");
        }
    }

    #[test]
    fn a_misspelt_variable_has_its_nearest_name() {
        for (name, expected) in [
            ("DUOLOGUE_MODLE", Some("MODEL")),
            ("DUOLOGUE_BASEURL", Some("BASE_URL")),
            ("DUOLOGUE_MODEL", None),
            ("MODLE", None),
        ] {
            assert_eq!(meant(name), expected, "{name}");
        }
        // Those of client libraries, scripts of completion, tests and releases.
        for other in
            ["BIN", "COMPLETE", "FAULT", "VERSION", "TESTS_REQUIRE_ALL", "TEST_MARK", "WORLDS"]
        {
            assert_eq!(meant(&format!("{PREFIX}{other}")), None, "{other}");
        }
    }
}
