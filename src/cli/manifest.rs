//! The manifest: the command line as data, for programs that start this one. Generated from the
//! definition of the command line and a table of what that definition does not contain.

use crate::session::{ExitCode, Signal};
use clap::{Arg, ArgAction, Command};
use serde_json::{Value, json};

/// Version of the manifest format.
const MANIFEST_VERSION: u32 = 1;

/// Facts about a command that are not part of its definition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Facts {
    /// Standard output is JSON Lines by default, in the place of which `--no-stream` prints one document.
    pub streaming_default: bool,
    /// Standard output can be JSON Lines.
    pub supports_streaming: bool,
    /// Formats of standard output; the first one is the default. JSON is of the commands that have `--output`.
    pub output_formats: &'static [&'static str],
    /// Exit statuses and their meanings.
    pub exit_codes: &'static [(u8, &'static str)],
}

/// The command that runs if none is named.
const DEFAULT_COMMAND: &str = "rpc";

const RPC: Facts = Facts {
    streaming_default: true,
    supports_streaming: true,
    output_formats: &["jsonl", "json"],
    exit_codes: &[
        (0, "end of input or shutdown, or the reader of the output has gone"),
        (1, "standard input could not be read"),
        WRONG,
        DEFECT,
        UNWRITTEN,
        LOCKED,
        (after(Signal::Hangup), "ended by SIGHUP"),
        (after(Signal::Interrupt), "ended by SIGINT"),
        (after(Signal::Terminate), "ended by SIGTERM"),
    ],
};

// What a person reads is no JSON Lines, though it comes as the model writes it.
const CHAT: Facts = Facts {
    streaming_default: false,
    supports_streaming: false,
    output_formats: &["text"],
    exit_codes: &[
        (0, "the person has left, or input has ended"),
        (1, "input could not be read, or a prompt from a file or a pipe was not answered"),
        WRONG,
        DEFECT,
        (ExitCode::OutputFailed.number(), "the terminal could not be used"),
        LOCKED,
        (after(Signal::Hangup), "ended by SIGHUP"),
        (after(Signal::Interrupt), "ended by SIGINT"),
        (after(Signal::Quit), "ended by SIGQUIT; the terminal is restored"),
        (after(Signal::Abort), "ended by SIGABRT; the terminal is restored"),
        (after(Signal::User1), "ended by SIGUSR1; the terminal is restored"),
        (after(Signal::User2), "ended by SIGUSR2; the terminal is restored"),
        (after(Signal::Alarm), "ended by SIGALRM; the terminal is restored"),
        (after(Signal::Terminate), "ended by SIGTERM"),
        (after(Signal::ProcessorTime), "ended by SIGXCPU; the terminal is restored"),
    ],
};

// Its JSON Lines are another protocol, of which there is no document.
const ACP: Facts = Facts {
    streaming_default: false,
    supports_streaming: true,
    output_formats: &["jsonl"],
    exit_codes: RPC.exit_codes,
};

#[cfg(feature = "serve")]
const SERVE: Facts = Facts {
    streaming_default: false,
    supports_streaming: false,
    output_formats: &["text"],
    exit_codes: &[
        (0, "ended by SIGTERM or SIGINT, once the runs had ended or their time was over"),
        (
            ExitCode::Usage.number(),
            "the command line, or a file named on it, is wrong, or the address can't be listened on",
        ),
        DEFECT,
    ],
};

const RUN: Facts = Facts {
    streaming_default: false,
    supports_streaming: true,
    output_formats: &["text", "json", "yaml", "jsonl", "objects", "json-stream"],
    exit_codes: &[
        (0, "the model has answered, or the reader of the output has gone"),
        (1, "the run failed for good, or the answer does not match response-type and schema"),
        WRONG,
        (
            ExitCode::CutOff.number(),
            "the answer was cut off, for example at a token limit; the partial answer was printed",
        ),
        DEFECT,
        (
            ExitCode::OutputFailed.number(),
            "standard output, or the file of --save, could not be written",
        ),
        (
            ExitCode::TryLater.number(),
            "the same may succeed later: rate limit, server error, network, timeout, locked session",
        ),
        (after(Signal::Hangup), "ended by SIGHUP; 1 with --json-stream"),
        (after(Signal::Interrupt), "ended by SIGINT; 1 with --json-stream"),
        (after(Signal::Terminate), "ended by SIGTERM; 1 with --json-stream"),
    ],
};

/// Exit status of a process that a signal has ended.
const fn after(signal: Signal) -> u8 {
    ExitCode::Interrupted(signal).number()
}

const WRONG: (u8, &str) =
    (ExitCode::Usage.number(), "the command line, or a file named on it, is wrong");

const DEFECT: (u8, &str) = (ExitCode::Internal.number(), "internal error: a bug in this program");

const LOCKED: (u8, &str) =
    (ExitCode::TryLater.number(), "another process holds the session; the same may succeed later");

const UNWRITTEN: (u8, &str) =
    (ExitCode::OutputFailed.number(), "standard output could not be written");

const LIST_EVENTS: Facts = Facts {
    streaming_default: true,
    supports_streaming: true,
    output_formats: &["jsonl", "json"],
    exit_codes: &[
        (
            0,
            "all lines could be read, or the last is cut off, or the reader of the output has gone",
        ),
        (1, "some lines are not frames; the others are listed"),
        (ExitCode::Usage.number(), "the command line is wrong, or the stream can't be read"),
        UNWRITTEN,
    ],
};

/// A command that prints a text, or a document.
const fn prints(exit_codes: &'static [(u8, &'static str)]) -> Facts {
    Facts {
        streaming_default: false,
        supports_streaming: false,
        output_formats: &["text", "json"],
        exit_codes,
    }
}

const CHECK: Facts = prints(&[
    (0, "no violation, or the reader of the output has gone"),
    (1, "violations were found"),
    (ExitCode::Usage.number(), "the command line is wrong, or the stream can't be read"),
    UNWRITTEN,
]);

const TOOLS: Facts = prints(&[
    (0, "all servers could be used, or the reader of the output has gone"),
    (1, "some servers could not be used, or not in time; the tools of the others are listed"),
    WRONG,
    UNWRITTEN,
]);

const MCP: Facts = prints(&[
    (0, "it was done, or the reader of the output has gone"),
    (1, "a server could not be asked; a login was refused, not finished or not there"),
    WRONG,
    UNWRITTEN,
]);

const PROFILES: Facts = prints(&[
    (0, "it was printed or done, or the reader of the output has gone"),
    (ExitCode::Usage.number(), "the command line or a file of profiles is wrong"),
    UNWRITTEN,
]);

const MODELS: Facts = prints(&[
    (0, "the models were printed, or the reader of the output has gone"),
    (1, "the provider can't be asked, or has no list"),
    (ExitCode::Usage.number(), "the command line or a file of profiles is wrong"),
    UNWRITTEN,
    (
        ExitCode::TryLater.number(),
        "the same may succeed later: rate limit, server error, network, timeout",
    ),
]);

const DOCTOR: Facts = prints(&[
    (0, "nothing was found that can't work, or it could not be checked"),
    (1, "something can't work: the provider, the key, a profile, the store or an MCP server"),
    (ExitCode::Usage.number(), "the command line is wrong"),
    UNWRITTEN,
]);

const SESSIONS: Facts = prints(&[
    (0, "it was done, and a search may have found nothing; or the reader of the output has gone"),
    (1, "a session is not in the store, can't be made or deleted, or could be read only in part"),
    (ExitCode::Usage.number(), "the command line is wrong, or the store can't be read"),
    UNWRITTEN,
]);

const TEXT: Facts = prints(&[
    (0, "it was printed or written, or the reader of the output has gone"),
    (ExitCode::Usage.number(), "the command line is wrong, or a file can't be written"),
    UNWRITTEN,
]);

/// Facts about the command of this name.
pub(crate) fn facts(command: &str) -> Facts {
    match command {
        "rpc" => RPC,
        "exec" | "run-command" | "run" => RUN,
        "chat" => CHAT,
        "acp" => ACP,
        #[cfg(feature = "serve")]
        "serve" => SERVE,
        "list-events" => LIST_EVENTS,
        "check" => CHECK,
        "tools" => TOOLS,
        "mcp" => MCP,
        "profiles" => PROFILES,
        "models" => MODELS,
        "doctor" => DOCTOR,
        "sessions" => SESSIONS,
        _ => TEXT,
    }
}

/// The manifest of `command`, with `facts` about each of its subcommands.
pub(crate) fn manifest(command: &Command, facts: impl Fn(&str) -> Facts) -> Value {
    let mut command = command.clone().disable_help_subcommand(true);
    command.build();
    let commands: Vec<_> = command
        .get_subcommands()
        .filter(|each| !each.is_hide_set())
        .map(|each| with_commands(each, &facts))
        .collect();
    // The program without a command is a command too.
    let mut manifest = described(&command, facts(DEFAULT_COMMAND));
    manifest["version"] = command.get_version().unwrap_or_default().into();
    manifest["manifest_version"] = MANIFEST_VERSION.into();
    manifest["default_command"] = DEFAULT_COMMAND.into();
    manifest["commands"] = commands.into();
    manifest
}

/// A command with those under it, which have its facts.
fn with_commands(command: &Command, facts: impl Fn(&str) -> Facts) -> Value {
    let shown = command.get_subcommands().filter(|each| !each.is_hide_set());
    let own = shown.filter(|each| each.get_name() != "help");
    let facts = facts(command.get_name());
    let own: Vec<_> = own.map(|each| described(each, facts)).collect();
    let mut described = described(command, facts);
    if !own.is_empty() {
        described["commands"] = own.into();
    }
    described
}

fn described(command: &Command, facts: Facts) -> Value {
    let shown = || command.get_arguments().filter(|arg| !arg.is_hide_set());
    let flags: Vec<_> = shown().filter(|arg| !arg.is_positional()).map(flag).collect();
    let arguments: Vec<_> = shown().filter(|arg| arg.is_positional()).map(argument).collect();
    // A command with others below it, and a login, print no document.
    let has_output = command.get_arguments().any(|arg| arg.get_id() == "output");
    let formats = facts.output_formats.iter().filter(|format| **format != "json" || has_output);
    let exit_codes = facts.exit_codes.iter();
    let exit_codes: Vec<_> =
        exit_codes.map(|(code, meaning)| json!({ "code": code, "meaning": meaning })).collect();
    json!({
        "name": command.get_name(),
        "about": command.get_about().map(ToString::to_string),
        "streaming_default": facts.streaming_default,
        "supports_streaming": facts.supports_streaming,
        "output_formats": formats.collect::<Vec<_>>(),
        "flags": flags,
        "arguments": arguments,
        "exit_codes": exit_codes,
    })
}

fn flag(arg: &Arg) -> Value {
    let mut flag = argument(arg);
    flag["name"] = arg.get_long().unwrap_or(arg.get_id().as_str()).into();
    flag["long"] = arg.get_long().map(|long| format!("--{long}")).into();
    flag["short"] = arg.get_short().map(|short| format!("-{short}")).into();
    flag["env"] = arg.get_env().map(|name| name.to_string_lossy().into_owned()).into();
    flag["takes_value"] = arg.get_action().takes_values().into();
    flag
}

fn argument(arg: &Arg) -> Value {
    let defaults = arg.get_default_values().iter().map(|value| value.to_string_lossy());
    let defaults: Vec<_> = defaults.collect();
    let takes_value = arg.get_action().takes_values();
    let default = (takes_value && !defaults.is_empty()).then(|| defaults.join(" "));
    let possible = arg.get_possible_values();
    let possible: Vec<_> = possible
        .iter()
        .filter(|value| takes_value && !value.is_hide_set())
        .map(|value| value.get_name())
        .collect();
    let has_many = arg.get_num_args().is_some_and(|count| count.max_values() > 1);
    let is_repeated = matches!(arg.get_action(), ArgAction::Append | ArgAction::Count);
    json!({
        "name": arg.get_id().as_str(),
        "required": arg.is_required_set(),
        "multiple": has_many || is_repeated,
        "default": default,
        "possible_values": possible,
        "help": arg.get_help().map(ToString::to_string),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::Cli;
    use clap::CommandFactory;

    #[test]
    fn a_definition_as_data() {
        let flag = Arg::new("engine").long("engine").short('e').value_parser(["echo", "openai"]);
        let file = Arg::new("file").required(true).num_args(1..);
        let quiet = Arg::new("quiet").long("quiet").action(ArgAction::SetTrue);
        let rpc = Command::new("rpc").about("Talk").arg(flag.default_value("echo"));
        let command = Command::new("duologue").version("1.2").subcommand(rpc.arg(file).arg(quiet));
        let manifest = manifest(&command, facts);
        assert_eq!(manifest["name"], "duologue");
        assert_eq!(manifest["version"], "1.2");
        assert_eq!(manifest["streaming_default"], true);
        assert_eq!(manifest["default_command"], "rpc");
        let rpc = &manifest["commands"][0];
        assert_eq!(rpc["about"], "Talk");
        assert_eq!(rpc["streaming_default"], true);
        assert_eq!(rpc["exit_codes"][4], json!({ "code": 74, "meaning": RPC.exit_codes[4].1 }));
        let expected = json!({
            "name": "engine", "long": "--engine", "short": "-e", "env": null, "takes_value": true,
            "multiple": false, "required": false, "default": "echo",
            "possible_values": ["echo", "openai"], "help": null,
        });
        assert_eq!(rpc["flags"][0], expected);
        assert_eq!(rpc["flags"][1]["takes_value"], false);
        assert_eq!(rpc["flags"][1]["default"], json!(null));
        assert_eq!(rpc["arguments"][0]["multiple"], true);
        assert_eq!(rpc["arguments"][0]["required"], true);
    }

    /// Programs append `--no-stream` to whatever streams, or can print a document.
    #[test]
    fn what_can_be_a_document_has_the_option_for_it() {
        fn check(described: &Value) {
            let is_document = |format: &Value| format == "json";
            let formats = described["output_formats"].as_array().expect("a list");
            let flags = described["flags"].as_array().expect("a list");
            if described["streaming_default"] == true || formats.iter().any(is_document) {
                assert!(flags.iter().any(|flag| flag["name"] == "no-stream"), "{described}");
            }
            described["commands"].as_array().into_iter().flatten().for_each(check);
        }
        check(&manifest(&Cli::command(), facts));
    }

    #[test]
    fn commands_that_stream_by_default_say_so() {
        let streaming = ["rpc", "list-events"];
        for command in ["rpc", "list-events", "exec", "run-command", "check", "schema", "man"] {
            let facts = facts(command);
            assert_eq!(facts.streaming_default, streaming.contains(&command), "{command}");
            assert!(facts.supports_streaming || !facts.streaming_default);
            assert!(!facts.output_formats.is_empty() && facts.exit_codes[0].0 == 0);
        }
        assert!(facts("exec").supports_streaming);
    }
}
