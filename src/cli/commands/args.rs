//! Arguments of the tools, as they are typed.

use clap::{Args, ValueEnum};
use clap_complete::Shell;
use std::path::PathBuf;

/// For people, at the end of the help of `check`.
pub const CHECK_AFTER: &str = "\
Examples:
  duologue rpc < requests.jsonl | duologue check
  tail -f events.jsonl | duologue check -
  duologue check --output json events.jsonl

Exit status:
  0    no breach
  1    breaches were found
  2    the command line is wrong, or the stream can't be read
  74   standard output could not be written";

/// For people, at the end of the help of `list-events`.
pub const LIST_EVENTS_AFTER: &str = "\
Examples:
  duologue list-events events.jsonl
  duologue rpc < requests.jsonl | duologue list-events --no-stream

Exit status:
  0    all lines could be read; a last line that is cut off is only warned of
  1    some lines are no frames; the others are listed
  2    the command line is wrong, or the stream can't be read
  74   standard output could not be written";

/// What `list-events` says of itself.
pub const LIST_EVENTS_ABOUT: &str =
    "List the events of a stream; streams JSON Lines unless --no-stream is given";

/// The same, at length.
pub const LIST_EVENTS_LONG_ABOUT: &str = "\
List the events of a stream of the protocol.

This command streams JSON Lines: first a line that says so,

  {\"_format\": \"jsonl\", \"_schema\": \"EventEntry\", \"_version\": 1}

then one object for each event, as it is read. With --no-stream, or --output json, it prints one
JSON object at the end:

  {\"ok\":…,\"data\":[…],\"error\":…,\"warnings\":[…],\"meta\":{\"total\":…,\"duration_ms\":…}}

An event has id (e and its ordinal), type, ts, line, and as far as it has them requestId, messageId,
toolCallId, toolName, role, status, error and textBytes. Frames have no time of their own: ts is the
latest time at which the event can have happened, in seconds since 1970. For a file that is its last
modification, for a pipe the time at which the line was read.";

/// What `check` says of itself, at length.
pub const CHECK_LONG_ABOUT: &str = "\
Check a stream of the protocol against its contract.

Reads what a server wrote, as it comes, and prints one line for each breach: FILE:LINE: RULE: what
is wrong. The rules' words stay the same between versions. The last line of the output is a
summary. A stream that is cut off in its last line is noted, and is no breach.";

/// Arguments of `check`.
#[derive(Args, Debug)]
pub struct CheckArgs {
    /// The stream to read; `-` or nothing is standard input
    #[arg(value_name = "FILE")]
    pub file: Option<PathBuf>,

    /// How breaches are told
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t)]
    pub output: CheckOutput,

    /// One JSON object at the end; the same as --output json
    #[arg(long)]
    pub no_stream: bool,
}

/// How breaches are told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum CheckOutput {
    /// A line for each, as it is found
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

    /// How events are told
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t)]
    pub output: ListOutput,

    /// One JSON object at the end; the same as --output json
    #[arg(long)]
    pub no_stream: bool,
}

/// How events are told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum ListOutput {
    /// A line for each, as it is read
    #[default]
    Jsonl,
    /// One JSON object at the end
    Json,
}

/// Arguments of `schema`.
#[derive(Args, Debug)]
pub struct SchemaArgs {
    /// In which form
    #[arg(value_enum, default_value_t)]
    pub form: SchemaForm,

    /// What the JSON Schema is of; a frame unless told
    #[arg(long = "for", value_name = "WHAT", value_enum)]
    pub of: Option<SchemaOf>,

    /// Write the `.proto` files into this folder, as they are named in imports
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,

    /// How it is printed.
    #[command(flatten)]
    pub output: TextOutputArgs,
}

/// The form of a schema.
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

/// What a JSON Schema is of.
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
    /// The shell that is to complete
    #[arg(value_enum)]
    pub shell: Shell,

    /// How it is printed.
    #[command(flatten)]
    pub output: TextOutputArgs,
}

/// Arguments of `man`.
#[derive(Args, Debug)]
pub struct ManArgs {
    /// Write a page for each command into this folder, instead of all of them to standard output
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,

    /// How they are printed.
    #[command(flatten)]
    pub output: TextOutputArgs,
}

/// Options of commands that print one text.
#[derive(Args, Debug, Default)]
pub struct TextOutputArgs {
    /// What is printed
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t)]
    pub output: TextOutput,

    /// One JSON object with the text in it; the same as --output json
    #[arg(long)]
    pub no_stream: bool,
}

/// The form of one text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum TextOutput {
    /// As it is
    #[default]
    Text,
    /// One JSON object: ok, data, error, warnings, meta
    Json,
}

impl TextOutputArgs {
    /// One JSON object is printed.
    pub(super) fn is_json(&self) -> bool {
        self.no_stream || self.output == TextOutput::Json
    }
}
