//! The arguments of the commands that read a stream of the protocol: `check` and `list-events`.

use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// Examples in the help of `check`.
pub(crate) const CHECK_EXAMPLES: &str = "  duologue rpc < requests.jsonl | duologue check
  tail -f events.jsonl | duologue check -
  duologue check --output json events.jsonl
  curl -sN 'http://127.0.0.1:8642/v1/sessions/demo/events?since=9' | duologue check --joined";

/// Examples in the help of `list-events`.
pub(crate) const LIST_EVENTS_EXAMPLES: &str = "  duologue list-events events.jsonl
  duologue rpc < requests.jsonl | duologue list-events --no-stream";

/// Help summary of `list-events`.
pub(crate) const LIST_EVENTS_ABOUT: &str =
    "List the events of a stream; streams JSON Lines unless --no-stream is given";

/// Long help of `list-events`.
pub(crate) const LIST_EVENTS_LONG_ABOUT: &str = "\
List the events of a stream of the protocol.

This command streams JSON Lines: the first line names the format,

  {\"_format\": \"jsonl\", \"_schema\": \"EventEntry\", \"_version\": 1}

then one object for each event, as it is read. If the stream, or a line of it, can't be read, the last \
line says why:

  {\"_error\":{\"class\":…,\"code\":…,\"detail\":…,\"message\":…},\"_format\":\"jsonl\"}

With --no-stream, or --output json, it prints one JSON object at the end:

  {\"ok\":…,\"data\":[…],\"error\":…,\"warnings\":[…],\"meta\":{…}}

An event has id (e and its ordinal), type, ts, line, and as far as it has them requestId, messageId, \
toolCallId, toolName, role, status, error and textBytes. Frames have no time of their own: ts is the \
latest time at which the event can have happened, in seconds since 1970. For a file that is its last \
modification, for a pipe the time at which the line was read.";

/// Long help of `check`.
pub(crate) const CHECK_LONG_ABOUT: &str = "\
Check a stream of the protocol against its contract.

Reads the stream as it arrives and prints one line for each violation: FILE:LINE: RULE: what is \
wrong. Rule names do not change between versions. The last line of the output is a summary. A \
stream that ends in the middle of its last line is noted, which is not a violation.

With --joined the stream may be that of a client of a node (duologue serve), which attaches when the \
conversation is under way and leaves when it likes.";

/// Arguments of `check`.
#[derive(Args, Debug)]
pub struct CheckArgs {
    /// The stream to read; `-` or nothing is standard input
    #[arg(value_name = "FILE")]
    pub file: Option<PathBuf>,

    /// Format of the report
    #[arg(short, long, value_name = "FORMAT", value_enum, default_value_t)]
    pub output: CheckOutput,

    /// The stream may begin in the middle of a run, and break off
    #[arg(long)]
    pub joined: bool,

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
    #[arg(short, long, value_name = "FORMAT", value_enum, default_value_t)]
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
