//! Command-line arguments of `check`, `list-events`, `tools`, `mcp`, `profiles`, `models`, `doctor`,
//! `schema`, `completions` and `man`.

mod setup;
mod streams;

pub(crate) use setup::{
    DOCTOR_ABOUT, DOCTOR_EXAMPLES, DOCTOR_LONG_ABOUT, DoctorArgs, InitProfileArgs, MCP_EXAMPLES,
    MCP_LONG_ABOUT, MODELS_EXAMPLES, McpArgs, McpCommand, McpListArgs, McpLoginArgs, McpLogoutArgs,
    ModelsArgs, NodeArgs, PROFILES_ABOUT, PROFILES_EXAMPLES, PROFILES_LONG_ABOUT, ProfilesArgs,
    ProfilesCommand, ShowProfileArgs, TOOLS_ABOUT, TOOLS_EXAMPLES, TOOLS_LONG_ABOUT, ToolsArgs,
    TrustArgs,
};
pub(crate) use streams::{
    CHECK_EXAMPLES, CHECK_LONG_ABOUT, CheckArgs, CheckOutput, LIST_EVENTS_ABOUT,
    LIST_EVENTS_EXAMPLES, LIST_EVENTS_LONG_ABOUT, ListEventsArgs, ListOutput,
};

use clap::{Args, ValueEnum, ValueHint};
use clap_complete::Shell;
use std::path::PathBuf;

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
    /// A module of filters for jq, which is no schema: `include "duologue";`
    Jq,
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

/// Long help of `completions`.
pub(crate) const COMPLETIONS_LONG_ABOUT: &str = "\
Print a completion script for a shell. The script asks this program for what can follow: commands, \
options, their values, files, profiles and the models of profiles, and the flags of a command file.

It belongs where the shell looks for it, and works in the next shell; --out writes it there:

  bash   ~/.local/share/bash-completion/completions/duologue
  zsh    _duologue in a folder of $fpath, before compinit runs
  fish   ~/.config/fish/completions/duologue.fish
  elvish, powershell: in the shell's own startup file";

/// Examples in the help of `completions`.
pub(crate) const COMPLETIONS_EXAMPLES: &str =
    "  duologue completions bash --out ~/.local/share/bash-completion/completions/duologue
  duologue completions zsh --out ~/.zsh/completions/_duologue
  duologue completions fish --out ~/.config/fish/completions/duologue.fish
  source <(duologue completions bash)";

/// Arguments of `completions`.
#[derive(Args, Debug)]
pub struct CompletionsArgs {
    /// The shell to complete for
    #[arg(value_enum)]
    pub shell: Shell,

    /// Write the script into this file, in place of standard output; folders that are missing are made
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub out: Option<PathBuf>,

    /// Output options.
    #[command(flatten)]
    pub output: TextOutputArgs,
}

/// Long help of `man`.
pub(crate) const MAN_LONG_ABOUT: &str = "\
Print the manual pages in roff, the format that `man` reads.

With --out each command has a page of its own in that folder. man finds those in \
~/.local/share/man/man1 for one person, and in /usr/local/share/man/man1 for all: then \
`man duologue` and `man duologue-exec` show them.";

/// Examples in the help of `man`.
pub(crate) const MAN_EXAMPLES: &str = "  duologue man --out ~/.local/share/man/man1
  duologue man | man -l -";

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
    #[arg(short, long, value_name = "FORMAT", value_enum, default_value_t)]
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
