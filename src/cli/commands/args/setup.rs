//! The arguments of the commands that report how a conversation would be set up: tools, profiles,
//! models, and what `doctor` checks; and of those that log in at servers.

use super::{TextOutput, TextOutputArgs};
use crate::cli::calls::CallArgs;
use crate::cli::commands::sessions::args::Places;
use crate::cli::session::EngineArgs;
use crate::cli::tools::{ServerOptions, ToolOptions};
use crate::cli::{EngineName, LogLevel, ProfileFiles, ProviderArgs, provider};
use clap::builder::BoolishValueParser;
use clap::{Args, Subcommand, ValueHint};
use clap_complete::ArgValueCandidates;
use std::path::PathBuf;

/// What a command says of its log, which is always on standard error.
#[derive(Args, Clone, Copy, Debug)]
pub struct StderrLogArgs {
    /// How much is logged to standard error
    #[arg(
        long,
        env = "DUOLOGUE_LOG_LEVEL",
        value_name = "LEVEL",
        value_enum,
        default_value_t,
        ignore_case = true
    )]
    pub log_level: LogLevel,
}

/// Help summary of `tools`.
pub(crate) const TOOLS_ABOUT: &str = "List the tools of MCP servers";

/// Long help of `tools`.
pub(crate) const TOOLS_LONG_ABOUT: &str = "\
List the tools of MCP servers, as a model would be offered them.

Starts the servers, asks each for its tools, ends them, and prints each tool with the name that the \
model is shown, the server, the description and the parameters; `?` marks those that may be left \
out. --output json has the whole schemas, and what --approval, --allow and --deny say.";

/// Examples in the help of `tools`.
pub(crate) const TOOLS_EXAMPLES: &str =
    "  duologue tools --mcp 'npx -y @modelcontextprotocol/server-filesystem /tmp'
  duologue tools --mcp-config servers.json --output json";

/// Arguments of `tools`.
#[derive(Args, Debug)]
pub struct ToolsArgs {
    /// The servers, and rules for their tools.
    #[command(flatten)]
    pub tools: ToolOptions,

    /// Format of the list
    #[arg(short, long, value_name = "FORMAT", value_enum, default_value_t)]
    pub output: TextOutput,

    /// One JSON object at the end; the same as --output json
    #[arg(long)]
    pub no_stream: bool,

    /// The log.
    #[command(flatten)]
    pub log: StderrLogArgs,
}

/// Long help of `mcp`.
pub(crate) const MCP_LONG_ABOUT: &str = "\
List the resources and prompts of MCP servers, log in at servers over HTTP that require it, and log \
out. `duologue tools` lists tools.

`resources` and `prompts` start the servers, ask each for its list, end them, and print what can be \
named: a resource as SERVER:URI, for --resource, and for @ in a chat; a prompt as SERVER:PROMPT with \
its arguments, for / in a chat.

`login` prints an address to open in a browser, on this machine or another one. The tokens of the login \
are kept in a file that only its user can read, in duologue/mcp in $XDG_DATA_HOME (else ~/.local/share), \
and are used and refreshed by every conversation that names the server.";

/// Examples in the help of `mcp`.
pub(crate) const MCP_EXAMPLES: &str = "  duologue mcp resources --mcp-config servers.json
  duologue mcp prompts docs --mcp-config servers.json --output json
  duologue mcp login https://example.com/mcp
  duologue tools --mcp https://example.com/mcp
  duologue mcp logout https://example.com/mcp";

/// Arguments of `mcp`.
#[derive(Args, Debug)]
pub struct McpArgs {
    /// What to do.
    #[command(subcommand)]
    pub command: McpCommand,
}

/// What to do about a server.
#[derive(Debug, Subcommand)]
pub enum McpCommand {
    /// List the resources of MCP servers
    Resources(McpListArgs),
    /// List the prompts of MCP servers, with their arguments
    Prompts(McpListArgs),
    /// Log in at a server over HTTP
    Login(McpLoginArgs),
    /// Forget the login at a server
    Logout(McpLogoutArgs),
}

/// Arguments of `mcp resources` and `mcp prompts`.
#[derive(Args, Debug)]
pub struct McpListArgs {
    /// Ask this server alone
    pub server: Option<String>,

    /// The servers.
    #[command(flatten)]
    pub servers: ServerOptions,

    /// Format of the list
    #[arg(short, long, value_name = "FORMAT", value_enum, default_value_t)]
    pub output: TextOutput,

    /// One JSON object at the end; the same as --output json
    #[arg(long)]
    pub no_stream: bool,

    /// The log.
    #[command(flatten)]
    pub log: StderrLogArgs,
}

/// Arguments of `mcp login`.
#[derive(Args, Debug)]
pub struct McpLoginArgs {
    /// Address of the server, as --mcp or the file of servers has it
    pub url: String,

    /// Ask for this scope instead of those that the server names. May be repeated
    #[arg(long, value_name = "SCOPE")]
    pub scope: Vec<String>,

    /// Id of a client that is registered at the authorization server; by default duologue registers
    /// itself
    #[arg(long, value_name = "ID")]
    pub client_id: Option<String>,

    /// The secret of that client is the first line of this file, which only its owner may read; by default it is in
    /// `DUOLOGUE_MCP_CLIENT_SECRET`
    #[arg(
        long,
        value_name = "FILE",
        value_hint = ValueHint::FilePath,
        requires = "client_id",
        help = "The secret of that client is the first line of this file, which only its owner may read; by default it \
                is in DUOLOGUE_MCP_CLIENT_SECRET"
    )]
    pub client_secret_file: Option<PathBuf>,

    /// Port of 127.0.0.1 to which the browser is sent at the end; any free one if 0
    #[arg(long, value_name = "PORT", default_value_t = 0)]
    pub port: u16,

    /// The log.
    #[command(flatten)]
    pub log: StderrLogArgs,
}

/// Arguments of `mcp logout`.
#[derive(Args, Debug)]
pub struct McpLogoutArgs {
    /// Address of the server
    pub url: String,
}

/// Help summary of `profiles`.
pub(crate) const PROFILES_ABOUT: &str = "List profiles and which of them are complete";

/// Long help of `profiles`.
pub(crate) const PROFILES_LONG_ABOUT: &str = "\
List profiles, with the engine and the model of each, the layer that defines it, and whether its \
settings are complete: `duologue doctor --profile NAME` asks the provider. No key is shown, and no key \
command is run.

Profiles are read from /etc/duologue/profiles.yaml, from duologue/profiles.yaml in $XDG_CONFIG_HOME \
(else ~/.config), from .duologue/profiles.yaml in the working folder or the nearest one above it, and \
from the files of --profile-registries. Later ones win. `default: NAME` in a file names the profile \
that is used where nothing else chooses a provider. What the file of a project may do is limited until \
it is trusted.";

/// Examples in the help of `profiles`.
pub(crate) const PROFILES_EXAMPLES: &str = "  duologue profiles
  duologue profiles init
  duologue profiles init work --provider anthropic --key-command 'pass show anthropic'
  duologue profiles show work
  duologue profiles trust .duologue/profiles.yaml";

/// Arguments of `profiles`.
#[derive(Args, Debug)]
#[command(args_conflicts_with_subcommands = true)]
pub struct ProfilesArgs {
    /// What to do instead of listing them.
    #[command(subcommand)]
    pub command: Option<ProfilesCommand>,

    /// Where profiles are.
    #[command(flatten)]
    pub registries: ProfileFiles,

    /// Output options.
    #[command(flatten)]
    pub output: TextOutputArgs,
}

/// What to do with profiles.
#[derive(Debug, Subcommand)]
pub enum ProfilesCommand {
    /// Write a profile into your own file of profiles; asks for what no option says
    #[command(long_about = INIT_LONG_ABOUT)]
    Init(InitProfileArgs),
    /// Print what a profile says, each value with the file that it comes from
    Show(ShowProfileArgs),
    /// Trust the file of a project until it changes
    Trust(TrustArgs),
    /// Trust the file of a project no longer
    Untrust(TrustArgs),
}

const INIT_LONG_ABOUT: &str = "\
Write a profile into your own file of profiles, duologue/profiles.yaml in $XDG_CONFIG_HOME (else \
~/.config). At a terminal it asks for what no option says. The first profile becomes the default. What \
is in the file stays as it is; a key that is typed is not shown, and gets a file of its own that only \
you can read.";

/// Arguments of `profiles init`.
#[derive(Args, Debug)]
pub struct InitProfileArgs {
    /// Name of the profile; without one that of the provider
    pub name: Option<String>,

    /// Provider, by the name of its engine
    #[arg(long, visible_alias = "engine", value_name = "ENGINE", value_enum)]
    pub provider: Option<EngineName>,

    /// Base URL, if it is not the provider's own, for example http://localhost:11434/v1
    #[arg(long, value_name = "URL")]
    pub base_url: Option<String>,

    /// Model; the provider itself has a default
    #[arg(long, short)]
    pub model: Option<String>,

    /// The key is in this environment variable
    #[arg(long, value_name = "NAME", group = "key")]
    pub key_env: Option<String>,

    /// The key is the first line of this file, which only its owner may read
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, group = "key")]
    pub key_file: Option<PathBuf>,

    /// The key is the first line that this command prints: a command line, without a shell
    #[arg(long, value_name = "COMMAND", group = "key")]
    pub key_command: Option<String>,

    /// The provider needs no key
    #[arg(long, group = "key")]
    pub no_key: bool,

    /// Output options.
    #[command(flatten)]
    pub output: TextOutputArgs,
}

/// Arguments of `profiles show`.
#[derive(Args, Debug)]
pub struct ShowProfileArgs {
    /// Name of the profile
    #[arg(add = ArgValueCandidates::new(provider::names))]
    pub name: String,

    /// Where profiles are.
    #[command(flatten)]
    pub registries: ProfileFiles,

    /// Output options.
    #[command(flatten)]
    pub output: TextOutputArgs,
}

/// Arguments of `profiles trust` and `profiles untrust`.
#[derive(Args, Debug)]
pub struct TrustArgs {
    /// The file, of profiles, a prompt or AGENTS.md; or the folder of the project, for its profiles
    #[arg(value_hint = ValueHint::FilePath)]
    pub path: PathBuf,

    /// Output options.
    #[command(flatten)]
    pub output: TextOutputArgs,
}

/// Examples in the help of `models`.
pub(crate) const MODELS_EXAMPLES: &str = "  duologue models
  duologue models --engine anthropic
  duologue models --base-url http://localhost:11434/v1";

/// Arguments of `models`.
#[derive(Args, Debug)]
pub struct ModelsArgs {
    /// The provider.
    #[command(flatten)]
    pub provider: ProviderArgs,

    /// Output options.
    #[command(flatten)]
    pub output: TextOutputArgs,

    /// Settings of calls, of which the headers count.
    #[command(flatten, next_help_heading = "Call options")]
    pub calls: CallArgs,

    /// Settings of the engines.
    #[command(flatten, next_help_heading = "Engine options")]
    pub engines: EngineArgs,
}

/// Help summary of `doctor`.
pub(crate) const DOCTOR_ABOUT: &str = "Report what is configured and whether it works";

/// Long help of `doctor`.
pub(crate) const DOCTOR_LONG_ABOUT: &str = "\
Report what is configured, where it comes from, and whether it works: profiles, engine, model, the \
origin of the key, the provider, the store, and the MCP servers, which are started, asked for their \
tools, and ended. Nothing is changed, no key is shown, and no prompt is sent.

Each line begins with ok, with wrong where a conversation would fail, or with note: something could \
not be checked, is left out, or there is no provider, so that the built-in echo engine would answer. \
With --require-provider that is wrong, too.";

/// Examples in the help of `doctor`.
pub(crate) const DOCTOR_EXAMPLES: &str = "  duologue doctor
  duologue doctor --profile work --output json
  duologue doctor --offline
  duologue doctor --acp
  duologue doctor --store chat.db --mcp 'npx -y @modelcontextprotocol/server-filesystem /tmp'";

/// Arguments of `doctor`.
#[derive(Args, Debug)]
pub struct DoctorArgs {
    /// The provider.
    #[command(flatten)]
    pub provider: ProviderArgs,

    /// Find it wrong that no provider is configured, where the built-in echo engine would answer
    #[arg(
        help_heading = "Provider options",
        long,
        env = "DUOLOGUE_REQUIRE_PROVIDER",
        value_parser = BoolishValueParser::new()
    )]
    pub require_provider: bool,

    /// Ask no provider, start no MCP server, connect to no database
    #[arg(long)]
    pub offline: bool,

    /// Also report what an editor needs that starts `duologue acp`
    #[arg(long, help = "Also report what an editor needs that starts duologue acp")]
    pub acp: bool,

    /// A node of a fleet, in place of what is configured here.
    #[command(flatten)]
    pub node: NodeArgs,

    /// Output options.
    #[command(flatten)]
    pub output: TextOutputArgs,

    /// Where a conversation would be stored.
    #[command(flatten, next_help_heading = "Store options")]
    pub places: Places,

    /// MCP servers.
    #[command(flatten, next_help_heading = "Tool options")]
    pub tools: ToolOptions,

    /// Settings of calls, of which the headers count.
    #[command(flatten, next_help_heading = "Call options")]
    pub calls: CallArgs,

    /// Settings of the engines.
    #[command(flatten, next_help_heading = "Engine options")]
    pub engines: EngineArgs,
}

/// A node of a fleet, and how it is asked.
#[derive(Args, Debug)]
pub struct NodeArgs {
    /// Check the node of a fleet at this address instead, as http://10.0.0.1:8642
    #[arg(long, value_name = "URL")]
    pub node: Option<String>,

    /// File with the token of a tenant, for --node
    #[arg(long, value_name = "FILE", requires = "node", value_hint = ValueHint::FilePath)]
    pub token_file: Option<PathBuf>,

    /// Authorities (PEM) of the node's certificate beside the usual ones, for --node
    #[arg(long, value_name = "FILE", requires = "node", value_hint = ValueHint::FilePath)]
    pub node_ca: Option<PathBuf>,
}
