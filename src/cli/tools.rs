//! Options about tools, and what they mean.

use super::numbers::whole;
use crate::session::SessionMode;
use crate::session::approval::{ApprovalMode, ApprovalRules, ServerNames, ToolGlob};
use crate::support::files::{WorkFolder, read_named, user_folder};
use crate::support::millis;
use crate::task::limits::ToolLimits;
use crate::tool::config::{ServerConfig, Servers};
use anyhow::{Result, anyhow};
use clap::builder::BoolishValueParser;
use clap::{Args, ValueEnum, ValueHint};
use serde_json::{Map, Value};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Bytes of a file of servers.
const CONFIG_BYTES_MAX: usize = 1024 * 1024;

/// Largest limit on bytes that can be set: results are held in memory.
const BYTES_MAX: u64 = 16 * 1024 * 1024;

/// Options that name MCP servers.
#[derive(Args, Clone, Debug, Default)]
pub struct ServerOptions {
    /// Start this MCP server: a command line, without a shell; or connect to this URL. May be repeated
    #[arg(long, value_name = "COMMAND|URL", hide_env_values = true)]
    pub mcp: Vec<String>,

    /// Start the MCP servers of this file, which has them under `mcpServers`. May be repeated
    #[arg(
        long,
        env = "DUOLOGUE_MCP_CONFIG",
        value_name = "FILE",
        value_hint = ValueHint::FilePath,
        help = "Start the MCP servers of this file, which has them under mcpServers. May be repeated"
    )]
    pub mcp_config: Vec<PathBuf>,
}

/// Options about tools.
#[derive(Args, Clone, Debug, Default)]
pub struct ToolOptions {
    /// Servers of their own.
    #[command(flatten)]
    pub servers: ServerOptions,

    /// What happens to a tool call for which neither --allow nor --deny decides; by default the client
    /// is asked
    #[arg(long, env = "DUOLOGUE_APPROVAL", value_name = "MODE", value_enum)]
    pub approval: Option<Approval>,

    /// Run calls of these tools without asking; * stands for any characters, ? for one. May be
    /// repeated
    #[arg(long, value_name = "GLOB")]
    pub allow: Vec<String>,

    /// Do not offer these tools to the model, and never run calls of them, whatever --allow says. May be
    /// repeated
    #[arg(long, value_name = "GLOB")]
    pub deny: Vec<String>,

    /// Fail, and ask nothing, where the tools of an MCP server are missing
    #[arg(long, env = "DUOLOGUE_REQUIRE_TOOLS", value_parser = BoolishValueParser::new())]
    pub require_tools: bool,

    /// Limits on tools.
    #[command(flatten)]
    pub limits: ToolLimitOptions,

    /// The folder that servers run in, unless their configuration names another.
    #[arg(skip)]
    pub folder: WorkFolder,

    /// Servers of the client. Of two servers of one name the client's is used.
    #[arg(skip)]
    pub of_client: Vec<ServerConfig>,
}

/// Limits on tools.
#[derive(Args, Clone, Debug)]
pub struct ToolLimitOptions {
    /// Most rounds of tool calls in a run
    #[arg(long, env = "DUOLOGUE_MAX_TOOL_ROUNDS", value_name = "N", default_value_t = ToolLimits::default().rounds, value_parser = whole::<u32>(1..=10_000))]
    pub max_tool_rounds: u32,

    /// Most tool calls in a round
    #[arg(long, env = "DUOLOGUE_MAX_TOOL_CALLS", value_name = "N", default_value_t = ToolLimits::default().calls, value_parser = whole::<u32>(1..=256))]
    pub max_tool_calls: u32,

    /// Longest time of a tool call, or between two reports on its progress; with these it may take six times
    /// as long in all
    #[arg(long, env = "DUOLOGUE_TOOL_TIMEOUT_MS", value_name = "MS", default_value_t = millis(ToolLimits::default().call_time), value_parser = whole::<u64>(1..=u64::MAX))]
    pub tool_timeout_ms: u64,

    /// Longest time for a person to approve a call, or to answer one
    #[arg(long, env = "DUOLOGUE_ASK_TIMEOUT_MS", value_name = "MS", default_value_t = millis(ToolLimits::default().ask_time), value_parser = whole::<u64>(1..=u64::MAX))]
    pub ask_timeout_ms: u64,

    /// Longest time that the first provider call waits for servers that are being started; by
    /// default 10 s in a conversation, and until each has come or failed in a single run
    #[arg(long, env = "DUOLOGUE_MCP_WAIT_MS", value_name = "MS", value_parser = whole::<u64>(0..=u64::MAX))]
    pub mcp_wait_ms: Option<u64>,

    /// Longest result of a tool call that the model is given; the rest is cut
    #[arg(long, env = "DUOLOGUE_MAX_TOOL_RESULT_BYTES", value_name = "BYTES", default_value_t = ToolLimits::default().result_bytes, value_parser = whole::<usize>(1..=BYTES_MAX))]
    pub max_tool_result_bytes: usize,

    /// Longest arguments of a tool call
    #[arg(long, env = "DUOLOGUE_MAX_TOOL_ARGUMENT_BYTES", value_name = "BYTES", default_value_t = ToolLimits::default().argument_bytes, value_parser = whole::<usize>(1..=BYTES_MAX))]
    pub max_tool_argument_bytes: usize,
}

/// What happens to a tool call for which no rule decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Approval {
    /// It runs
    Auto,
    /// The client is asked
    Ask,
    /// It is denied
    Deny,
}

/// The settings of tools in a profile.
#[derive(Clone, Debug, Default)]
pub(crate) struct ProfileTools {
    /// MCP servers by name, each with its members.
    pub(crate) servers: Vec<(String, Map<String, Value>)>,
    /// The decision on a tool call for which there is no rule.
    pub(crate) approval: Option<ApprovalMode>,
    /// Tools that run without a question.
    pub(crate) allow: Vec<String>,
    /// Tools that never run.
    pub(crate) deny: Vec<String>,
}

/// The settings of the options.
#[derive(Debug, Default)]
pub struct ToolSettings {
    /// The MCP servers.
    pub servers: Vec<ServerConfig>,
    /// Which calls may run.
    pub rules: ApprovalRules,
    /// The rules of `rules` that were typed, without a profile's.
    pub typed: ApprovalRules,
    /// A run without the tools of a server fails.
    pub require_tools: bool,
    /// Limits on calls.
    pub limits: ToolLimits,
    /// The parts of the files that were ignored.
    pub warnings: Vec<String>,
}

impl ServerOptions {
    /// Adds the servers that the options name. Reads the files and the variables that those use.
    fn add_to(&self, servers: &mut Servers) -> Result<()> {
        for path in &self.mcp_config {
            let shown = path.display();
            let text = read(path)?;
            let added = servers.add_file(&text, &|name| std::env::var(name).ok());
            added.map_err(|error| anyhow!("--mcp-config: {shown}: {error}"))?;
        }
        for (at, text) in self.mcp.iter().enumerate() {
            // Not with its text: arguments of a server may be keys.
            let added = servers.add_command(text);
            added.map_err(|error| anyhow!("--mcp, number {}: {error}", at + 1))?;
        }
        Ok(())
    }
}

impl ToolOptions {
    /// What the options mean, over what `profile` says. Reads the files that they name and the
    /// variables that those use.
    ///
    /// # Errors
    /// If an option or a file can't be used. The message has no value from the file.
    pub(crate) fn settings(
        &self,
        mode: SessionMode,
        profile: &ProfileTools,
    ) -> Result<ToolSettings> {
        let mut servers = Servers::default();
        self.servers.add_to(&mut servers)?;
        for (name, members) in &profile.servers {
            let added = servers.add_unless_named(name, members, &|name| std::env::var(name).ok());
            added.map_err(|error| anyhow!("the profile's mcp: {error}"))?;
        }
        for config in &self.of_client {
            let added = servers.add_in_place(config.clone());
            added.map_err(|error| anyhow!("the servers of the client: {error}"))?;
        }
        if let Some(folder) = login_folder() {
            servers.use_logins(&folder);
        }
        if let Some(folder) = self.folder.other() {
            servers.run_in(folder);
        }
        let globs = |profile: &[String], own: &[String]| {
            profile.iter().chain(own).map(|text| ToolGlob::new(text)).collect()
        };
        let rules = ApprovalRules {
            mode: match self.approval {
                Some(Approval::Auto) => ApprovalMode::Auto,
                Some(Approval::Ask) => ApprovalMode::Ask,
                Some(Approval::Deny) => ApprovalMode::Deny,
                None => profile.approval.unwrap_or_default(),
            },
            allow: globs(&profile.allow, &self.allow),
            deny: globs(&profile.deny, &self.deny),
        };
        let names = ServerNames::new(servers.configs.iter().map(|config| &config.name));
        if let Some((glob, ways)) = rules.ambiguous(&names) {
            let glob = glob.as_str();
            return Err(anyhow!(
                "--allow '{glob}' can be read as {ways}; give one of the servers another name"
            ));
        }
        let limits = ToolLimits {
            rounds: self.limits.max_tool_rounds,
            calls: self.limits.max_tool_calls,
            call_time: Duration::from_millis(self.limits.tool_timeout_ms),
            ask_time: Duration::from_millis(self.limits.ask_timeout_ms),
            start_wait: match (self.limits.mcp_wait_ms, mode) {
                (Some(wait_ms), _) => Duration::from_millis(wait_ms),
                (None, SessionMode::Conversation) => ToolLimits::default().start_wait,
                // Each server has a limit of its own, and what it offers decides the answer.
                (None, SessionMode::OneShot) => Duration::MAX,
            },
            result_bytes: self.limits.max_tool_result_bytes,
            argument_bytes: self.limits.max_tool_argument_bytes,
        };
        let typed = ApprovalRules {
            allow: globs(&[], &self.allow),
            deny: globs(&[], &self.deny),
            ..ApprovalRules::default()
        };
        let require_tools = self.require_tools;
        let (servers, warnings) = (servers.configs, servers.warnings);
        Ok(ToolSettings { servers, rules, typed, require_tools, limits, warnings })
    }
}

impl Default for ToolLimitOptions {
    fn default() -> Self {
        let limits = ToolLimits::default();
        Self {
            max_tool_rounds: limits.rounds,
            max_tool_calls: limits.calls,
            tool_timeout_ms: millis(limits.call_time),
            ask_timeout_ms: millis(limits.ask_time),
            mcp_wait_ms: None,
            max_tool_result_bytes: limits.result_bytes,
            max_tool_argument_bytes: limits.argument_bytes,
        }
    }
}

/// The executable that can act as the guard of servers: this one, also after it was replaced.
pub fn guard() -> Option<PathBuf> {
    let own = Path::new("/proc/self/exe");
    if own.exists() { Some(own.to_owned()) } else { std::env::current_exe().ok() }
}

/// The text of a file of servers.
fn read(path: &Path) -> Result<String> {
    let read = read_named(path, CONFIG_BYTES_MAX);
    let shown = path.display();
    Ok(read.map_err(|error| anyhow!("--mcp-config: {shown} can't be read: {error}"))?.0)
}

/// The folder of logins at servers.
pub(crate) fn login_folder() -> Option<PathBuf> {
    let folder = user_folder("XDG_DATA_HOME", ".local/share", |name| std::env::var_os(name));
    folder.map(|folder| folder.join("duologue/mcp"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::approval::{DenyingRule, Ruling};
    use clap::FromArgMatches;

    fn options(words: &[&str]) -> ToolOptions {
        let command = ToolOptions::augment_args(clap::Command::new("test").no_binary_name(true));
        let matches = command.try_get_matches_from(words).expect("right options");
        ToolOptions::from_arg_matches(&matches).expect("options")
    }

    #[test]
    fn without_options_calls_are_asked_about_and_there_is_no_server() {
        let settings = options(&[])
            .settings(SessionMode::Conversation, &ProfileTools::default())
            .expect("settings");
        assert!(settings.servers.is_empty());
        assert_eq!(settings.rules, ApprovalRules::default());
        assert_eq!(settings.limits, ToolLimits::default());
    }

    #[test]
    fn options_become_settings() {
        let words = [
            "--mcp",
            "npx -y server-x",
            "--mcp",
            "https://h/mcp",
            "--approval",
            "deny",
            "--allow",
            "read*",
            "--deny",
            "*secret*",
            "--max-tool-rounds",
            "3",
            "--max-tool-calls",
            "4",
            "--tool-timeout-ms",
            "5",
            "--ask-timeout-ms",
            "8",
            "--mcp-wait-ms",
            "9",
            "--max-tool-result-bytes",
            "6",
            "--max-tool-argument-bytes",
            "7",
        ];
        let settings = options(&words)
            .settings(SessionMode::Conversation, &ProfileTools::default())
            .expect("settings");
        let names = settings.servers.iter().map(|server| server.name.as_str());
        assert_eq!(names.collect::<Vec<_>>(), ["server-x", "h"]);
        assert_eq!(settings.rules.ruling("read_file"), Ruling::Allow);
        let secrets = DenyingRule::Tools(ToolGlob::new("*secret*"));
        assert_eq!(settings.rules.ruling("read_secret"), Ruling::Deny(secrets));
        assert_eq!(settings.rules.ruling("write"), Ruling::Deny(DenyingRule::Mode));
        let limits = ToolLimits {
            rounds: 3,
            calls: 4,
            call_time: Duration::from_millis(5),
            ask_time: Duration::from_millis(8),
            start_wait: Duration::from_millis(9),
            result_bytes: 6,
            argument_bytes: 7,
        };
        assert_eq!(settings.limits, limits);
    }

    #[test]
    fn a_rule_that_names_tools_of_two_servers_is_refused() {
        let profile = ProfileTools {
            servers: ["my", "my__server"]
                .map(|name| (name.to_owned(), Map::from_iter([("command".to_owned(), "x".into())])))
                .to_vec(),
            ..ProfileTools::default()
        };
        let settings =
            |rule: &str| options(&["--allow", rule]).settings(SessionMode::OneShot, &profile);
        assert!(settings("my__rm").is_ok());
        let error = settings("my__server__rm").expect_err("two tools").to_string();
        let expected = "--allow 'my__server__rm' can be read as \"server__rm\" of the server \"my\" \
                        or \"rm\" of the server \"my__server\"; give one of the servers another name";
        assert_eq!(error, expected);
    }

    #[test]
    fn an_error_has_no_text_of_the_command_line() {
        let error = options(&["--mcp", "server --key 's3cret"])
            .settings(SessionMode::Conversation, &ProfileTools::default())
            .expect_err("no quote");
        assert_eq!(error.to_string(), "--mcp, number 1: quotes that don't match");
    }
}
