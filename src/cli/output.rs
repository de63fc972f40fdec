//! Options that select what a single run prints.

use super::foreign::switches;
use crate::command_file::CommandFile;
use clap::{Args, ValueEnum, ValueHint};
use std::ffi::OsString;
use std::path::PathBuf;

/// Options that select the output of a single run.
#[derive(Args, Debug, Default)]
pub struct OutputArgs {
    /// Format of standard output; text if not given
    #[arg(
        help_heading = "Output options",
        long,
        short,
        env = "DUOLOGUE_OUTPUT",
        value_name = "FORMAT",
        value_enum
    )]
    pub output: Option<OutputName>,

    /// The same as --output jsonl: stream the protocol, one frame a line (JSON Lines)
    #[arg(help_heading = "Output options", long)]
    pub rpc: bool,

    /// With --rpc: keep running after the first answer and read more requests from standard input,
    /// as `duologue rpc` does; the prompt is context of the first turn
    #[arg(help_heading = "Output options", long)]
    pub stdin_rpc: bool,

    /// Stream events for programs that don't know the protocol, one object a line (JSON Lines)
    #[arg(help_heading = "Output options", long)]
    pub json_stream: bool,

    /// Don't stream: print one JSON document at the end, as --output json does; overrides the other
    /// output options
    #[arg(help_heading = "Output options", long)]
    pub no_stream: bool,

    /// Write the last message to this file once the run has succeeded; it replaces the file as a whole
    #[arg(help_heading = "Output options", long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub save: Option<PathBuf>,

    /// On a terminal, print the answer as the model writes it, and not its Markdown as the chat shows it
    #[arg(help_heading = "Output options", long)]
    pub raw: bool,

    /// With --output objects: leave out the first line, which names the format, and the line that
    /// reports an error
    #[arg(help_heading = "Output options", long)]
    pub no_preamble: bool,
}

/// Options that select the output of a conversation.
#[derive(Args, Debug, Default)]
pub struct RpcOutputArgs {
    /// Format of standard output
    #[arg(
        help_heading = "Output options",
        long,
        short,
        value_name = "FORMAT",
        value_enum,
        default_value_t
    )]
    pub output: RpcOutputName,

    /// Don't stream: print one JSON document with all frames at the end, as --output json does
    #[arg(help_heading = "Output options", long)]
    pub no_stream: bool,
}

/// Output formats of a conversation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum RpcOutputName {
    /// The protocol, one frame a line (JSON Lines)
    #[default]
    Jsonl,
    /// One JSON document with all frames at the end: ok, data, error, warnings, meta
    Json,
}

/// Output formats of a single run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum OutputName {
    /// The answer, as the model writes it
    Text,
    /// One JSON document at the end: ok, data, error, warnings, meta
    Json,
    /// The same as YAML
    Yaml,
    /// The protocol, one frame a line (JSON Lines)
    Jsonl,
    /// The values that a response-type extracts from the answer, one a line (JSON Lines)
    Objects,
}

/// The output format that all options together select.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// The answer.
    Text,
    /// One JSON document.
    Json,
    /// One YAML document.
    Yaml,
    /// Values extracted from the answer.
    Objects {
        /// Write the format and errors in lines of their own.
        has_preamble: bool,
    },
    /// The protocol, for one run.
    OneShot,
    /// The protocol, for as long as requests come.
    Server,
    /// All frames of a conversation, in one JSON document.
    Frames,
    /// Events for programs that don't know the protocol.
    JsonStream,
}

/// Two options that contradict each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0} and {1} select different outputs; leave one of them out")]
pub(crate) struct Disagree(&'static str, &'static str);

impl RpcOutputArgs {
    /// The output format.
    pub(crate) fn mode(&self) -> Mode {
        match self.output {
            RpcOutputName::Jsonl if !self.no_stream => Mode::Server,
            RpcOutputName::Jsonl | RpcOutputName::Json => Mode::Frames,
        }
    }
}

impl OutputArgs {
    /// The output format.
    ///
    /// # Errors
    /// If two options select different formats.
    pub(crate) fn mode(&self) -> Result<Mode, Disagree> {
        // --no-stream can be appended to any command line: it is for readers of one document.
        if self.no_stream {
            return Ok(match (self.stdin_rpc, self.output) {
                (true, _) => Mode::Frames,
                (false, Some(OutputName::Yaml)) => Mode::Yaml,
                (false, _) => Mode::Json,
            });
        }
        let selected = [
            self.output.map(|name| (name.option(), name.mode())),
            self.rpc.then_some(("--rpc", Mode::OneShot)),
            self.json_stream.then_some(("--json-stream", Mode::JsonStream)),
        ];
        let mut command_mode: Option<(&str, Mode)> = None;
        for (option, mode) in selected.into_iter().flatten() {
            match command_mode {
                Some((other, before)) if before != mode => return Err(Disagree(other, option)),
                Some(_) | None => command_mode = Some((option, mode)),
            }
        }
        match (command_mode, self.stdin_rpc) {
            (None, false) => Ok(Mode::Text),
            (None | Some((_, Mode::OneShot)), true) => Ok(Mode::Server),
            (Some((option, _)), true) => Err(Disagree(option, "--stdin-rpc")),
            (Some((_, Mode::Objects { .. })), false) => {
                Ok(Mode::Objects { has_preamble: !self.no_preamble })
            }
            (Some((_, mode)), false) => Ok(mode),
        }
    }

    /// Whether an option other than --output selects the output.
    pub(super) fn is_flagged(&self) -> bool {
        self.rpc || self.stdin_rpc || self.json_stream || self.no_stream
    }

    /// The output format for an error in these very options: of those selected, the one whose
    /// reader depends on it most.
    pub(crate) fn mode_of_errors(&self) -> Mode {
        let output = self.output.map(OutputName::mode);
        match self.mode() {
            Ok(mode) => mode,
            Err(_) if self.json_stream => Mode::JsonStream,
            Err(_) if self.stdin_rpc => Mode::Server,
            Err(_) if self.rpc => Mode::OneShot,
            Err(_) => output.filter(|mode| *mode != Mode::Text).unwrap_or(Mode::Json),
        }
    }

    /// The output format of a conversation for an error in these options.
    pub(super) fn mode_of_rpc(&self) -> Mode {
        let is_document = self.no_stream || self.output == Some(OutputName::Json);
        if is_document { Mode::Frames } else { Mode::Server }
    }

    /// The output format that a command line which can't be parsed seems to select, from its words,
    /// then the variable, so that the error has the form its reader expects. Flags of `file` are
    /// not ours.
    pub(super) fn guess(words: &[OsString], file: Option<&CommandFile>) -> Self {
        let mut typed = Self::typed(words, file);
        let is_flagged = typed.rpc || typed.json_stream || typed.no_stream;
        if typed.output.is_none() && !is_flagged {
            let variable = std::env::var("DUOLOGUE_OUTPUT").unwrap_or_default();
            typed.output = OutputName::from_str(&variable, false).ok();
        }
        typed
    }

    /// Like [`Self::guess`], from the words alone.
    pub(super) fn typed(words: &[OsString], file: Option<&CommandFile>) -> Self {
        let words = switches::options(words, file);
        let flags = || file.into_iter().flat_map(|file| &file.flags);
        let is_files = |word: &str| {
            let name = word.strip_prefix("--").map(|rest| rest.split('=').next().unwrap_or(rest));
            name.is_some_and(|name| flags().any(|flag| flag.option() == name))
                || word.starts_with("-o") && flags().any(|flag| flag.short == Some('o'))
        };
        // Where a command file uses the name of an option, the option has another name.
        let plain = |word: &OsString| {
            let word = word.to_str().filter(|word| !is_files(word))?;
            Some(word.replacen("--duologue-", "--", 1))
        };
        let has = |command_mode: &str| {
            words.iter().any(|word| plain(word).as_deref() == Some(command_mode))
        };
        let mut output = None;
        for (at, word) in words.iter().enumerate() {
            let Some(word) = plain(word) else { continue };
            let value = match word.as_str() {
                "--output" | "-o" => words.get(at + 1).and_then(|next| next.to_str()),
                _ => word
                    .strip_prefix("--output=")
                    .or(word.strip_prefix("-o"))
                    .map(|value| value.trim_start_matches('=')),
            };
            output = value.and_then(|value| OutputName::from_str(value, false).ok()).or(output);
        }
        Self {
            output,
            rpc: has("--rpc"),
            stdin_rpc: has("--stdin-rpc"),
            json_stream: has("--json-stream"),
            no_stream: has("--no-stream"),
            no_preamble: has("--no-preamble"),
            // Neither selects an output.
            save: None,
            raw: false,
        }
    }
}

impl OutputName {
    fn mode(self) -> Mode {
        match self {
            Self::Text => Mode::Text,
            Self::Json => Mode::Json,
            Self::Yaml => Mode::Yaml,
            Self::Jsonl => Mode::OneShot,
            Self::Objects => Mode::Objects { has_preamble: true },
        }
    }

    fn option(self) -> &'static str {
        match self {
            Self::Text => "--output text",
            Self::Json => "--output json",
            Self::Yaml => "--output yaml",
            Self::Jsonl => "--output jsonl",
            Self::Objects => "--output objects",
        }
    }
}
