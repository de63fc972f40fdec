//! Command-line arguments of `check`, `list-events`, `tools`, `profiles`, `models`, `doctor`,
//! `schema`, `completions` and `man`.

use crate::cli::calls::CallArgs;
use crate::cli::provider;
use crate::cli::session::EngineArgs;
use crate::cli::tools::ToolOptions;
use crate::cli::{LogLevel, ProfileFiles, ProviderArgs};
use clap::{Args, Subcommand, ValueEnum, ValueHint};
use clap_complete::{ArgValueCandidates, Shell};
use std::path::PathBuf;

/// Text after the options in the help of `check`.
pub(crate) const CHECK_AFTER: &str = "\
Examples:
  duologue rpc < requests.jsonl | duologue check
  tail -f events.jsonl | duologue check -
  duologue check --output json events.jsonl

Exit status:
  0    no violation
  1    violations were found
  2    the command line is wrong, or the stream can't be read
  74   standard output could not be written";

/// Text after the options in the help of `list-events`.
pub(crate) const LIST_EVENTS_AFTER: &str = "\
Examples:
  duologue list-events events.jsonl
  duologue rpc < requests.jsonl | duologue list-events --no-stream

Exit status:
  0    all lines could be read; an incomplete last line only causes a warning
  1    some lines are not frames; the others are listed
  2    the command line is wrong, or the stream can't be read
  74   standard output could not be written";

/// Help summary of `list-events`.
pub(crate) const LIST_EVENTS_ABOUT: &str =
    "List the events of a stream; streams JSON Lines unless --no-stream is given";

/// Long help of `list-events`.
pub(crate) const LIST_EVENTS_LONG_ABOUT: &str = "\
List the events of a stream of the protocol.

This command streams JSON Lines: the first line names the format,

  {\"_format\": \"jsonl\", \"_schema\": \"EventEntry\", \"_version\": 1}

then one object for each event, as it is read. With --no-stream, or --output json, it prints one
JSON object at the end:

  {\"ok\":…,\"data\":[…],\"error\":…,\"warnings\":[…],\"meta\":{\"total\":…,\"duration_ms\":…}}

An event has id (e and its ordinal), type, ts, line, and as far as it has them requestId, messageId,
toolCallId, toolName, role, status, error and textBytes. Frames have no time of their own: ts is the
latest time at which the event can have happened, in seconds since 1970. For a file that is its last
modification, for a pipe the time at which the line was read.";

/// Long help of `check`.
pub(crate) const CHECK_LONG_ABOUT: &str = "\
Check a stream of the protocol against its contract.

Reads the stream as it arrives and prints one line for each violation: FILE:LINE: RULE: what is
wrong. Rule names do not change between versions. The last line of the output is a summary. A
stream that ends in the middle of its last line is noted, which is not a violation.";

/// Arguments of `check`.
#[derive(Args, Debug)]
pub struct CheckArgs {
    /// The stream to read; `-` or nothing is standard input
    #[arg(value_name = "FILE")]
    pub file: Option<PathBuf>,

    /// Format of the report
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t)]
    pub output: CheckOutput,

    /// One JSON object at the end; the same as --output json
    #[arg(long)]
    pub no_stream: bool,
}

/// Output formats of `check`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum CheckOutput {
    /// One line for each violation, as it is found
    #[default]
    Text,
    /// One JSON object at the end
    Json,
}

/// Arguments of `list-events`.
#[derive(Args, Debug)]
pub struct ListEventsArgs {
    /// The stream to read; `-` or nothing is standard input
    #[arg(value_name = "FILE")]
    pub file: Option<PathBuf>,

    /// Format of the list
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t)]
    pub output: ListOutput,

    /// One JSON object at the end; the same as --output json
    #[arg(long)]
    pub no_stream: bool,
}

/// Output formats of `list-events`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum ListOutput {
    /// One line for each event, as it is read
    #[default]
    Jsonl,
    /// One JSON object at the end
    Json,
}

/// Help summary of `tools`.
pub(crate) const TOOLS_ABOUT: &str = "List the tools of MCP servers";

/// Long help of `tools`.
pub(crate) const TOOLS_LONG_ABOUT: &str = "\
List the tools of MCP servers, as a model would be offered them.

Starts the servers, asks each for its tools, ends them, and prints each tool with the name that the
model is shown, the server, the description and the parameters; `?` marks those that may be left
out. --output json has the whole schemas, and what --approval, --allow and --deny say.";

/// Text after the options in the help of `tools`.
pub(crate) const TOOLS_AFTER: &str = "\
Examples:
  duologue tools --mcp 'npx -y @modelcontextprotocol/server-filesystem /tmp'
  duologue tools --mcp-config servers.json --output json

Exit status:
  0    all servers could be used
  1    some servers could not be used, or not in time; the tools of the others are listed
  2    the command line or a configuration file is wrong
  74   standard output could not be written";

/// Arguments of `tools`.
#[derive(Args, Debug)]
pub struct ToolsArgs {
    /// The servers, and rules for their tools.
    #[command(flatten)]
    pub tools: ToolOptions,

    /// Format of the list
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t)]
    pub output: TextOutput,

    /// One JSON object at the end; the same as --output json
    #[arg(long)]
    pub no_stream: bool,

    /// How much is logged to standard error
    #[arg(long, env = "DUOLOGUE_LOG_LEVEL", value_name = "LEVEL", value_enum, default_value_t)]
    pub log_level: LogLevel,
}

/// Help summary of `profiles`.
pub(crate) const PROFILES_ABOUT: &str = "List profiles and which of them can answer now";

/// Long help of `profiles`.
pub(crate) const PROFILES_LONG_ABOUT: &str = "\
List profiles, with the engine and the model of each, the layer that defines it, and whether it can
answer now. No key is shown, and no key command is run.

Profiles are read from /etc/duologue/profiles.yaml, from duologue/profiles.yaml in $XDG_CONFIG_HOME
(else ~/.config), from .duologue/profiles.yaml in the working folder or the nearest one above it, and
from the files of --profile-registries. Later ones win. What the file of a project may do is limited
until it is trusted.";

/// Text after the options in the help of `profiles`.
pub(crate) const PROFILES_AFTER: &str = "\
Examples:
  duologue profiles
  duologue profiles show work
  duologue profiles trust .duologue/profiles.yaml

Exit status:
  0    it was printed or done
  2    the command line or a file of profiles is wrong
  74   standard output could not be written";

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
    /// Print what a profile says, each value with the file that it comes from
    Show(ShowProfileArgs),
    /// Trust the file of a project until it changes
    Trust(TrustArgs),
    /// Trust the file of a project no longer
    Untrust(TrustArgs),
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
    /// The file, or the folder of its project
    #[arg(value_hint = ValueHint::FilePath)]
    pub path: PathBuf,

    /// Output options.
    #[command(flatten)]
    pub output: TextOutputArgs,
}

/// Text after the options in the help of `models`.
pub(crate) const MODELS_AFTER: &str = "\
Examples:
  duologue models
  duologue models --engine anthropic
  duologue models --base-url http://localhost:11434/v1

Exit status:
  0    the models were printed
  1    the provider can't be asked, or has no list
  2    the command line or a file of profiles is wrong
  74   standard output could not be written";

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

/// Text after the options in the help of `doctor`.
pub(crate) const DOCTOR_AFTER: &str = "\
Examples:
  duologue doctor
  duologue doctor --profile work --output json
  duologue doctor --offline

Exit status:
  0    nothing was found that can't work
  1    something can't work
  2    the command line is wrong
  74   standard output could not be written";

/// Arguments of `doctor`.
#[derive(Args, Debug)]
pub struct DoctorArgs {
    /// The provider.
    #[command(flatten)]
    pub provider: ProviderArgs,

    /// Do not ask the provider
    #[arg(long)]
    pub offline: bool,

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

/// Arguments of `schema`.
#[derive(Args, Debug)]
pub struct SchemaArgs {
    /// Form of the schema
    #[arg(value_enum, default_value_t)]
    pub form: SchemaForm,

    /// What the JSON Schema describes; a frame if not given
    #[arg(long = "for", value_name = "WHAT", value_enum)]
    pub of: Option<SchemaOf>,

    /// Write the `.proto` files into this folder, under the paths by which they import each other
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,

    /// Output options.
    #[command(flatten)]
    pub output: TextOutputArgs,
}

/// Forms in which the schema is printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum SchemaForm {
    /// The `.proto` files
    #[default]
    Proto,
    /// A serialized google.protobuf.FileDescriptorSet, which is binary
    Descriptors,
    /// JSON Schema, draft 2020-12
    Json,
}

/// What a JSON Schema describes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum SchemaOf {
    /// A line that the server writes
    #[default]
    Frame,
    /// A line that the server reads
    Request,
    /// A line of the JSON stream of commands, with its envelope
    JsonStream,
    /// What commands print with --no-stream
    Envelope,
    /// An event of list-events
    ListEvents,
    /// What --manifest prints
    Manifest,
}

/// Arguments of `completions`.
#[derive(Args, Debug)]
pub struct CompletionsArgs {
    /// The shell to complete for
    #[arg(value_enum)]
    pub shell: Shell,

    /// Output options.
    #[command(flatten)]
    pub output: TextOutputArgs,
}

/// Arguments of `man`.
#[derive(Args, Debug)]
pub struct ManArgs {
    /// Write a page for each command into this folder, instead of all of them to standard output
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,

    /// Output options.
    #[command(flatten)]
    pub output: TextOutputArgs,
}

/// Options of commands that print one text.
#[derive(Args, Debug, Default)]
pub struct TextOutputArgs {
    /// Output format
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t)]
    pub output: TextOutput,

    /// One JSON object with the text in it; the same as --output json
    #[arg(long)]
    pub no_stream: bool,
}

/// Output formats of commands that print one text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum TextOutput {
    /// Plain text
    #[default]
    Text,
    /// One JSON object: ok, data, error, warnings, meta
    Json,
}

impl TextOutputArgs {
    /// Whether one JSON object is printed.
    pub(super) fn is_json(&self) -> bool {
        self.no_stream || self.output == TextOutput::Json
    }
}
