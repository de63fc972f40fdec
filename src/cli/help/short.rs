//! The help of `-h`: the common options alone, in one list, so that it fits two screens.

use clap::builder::Resettable;
use clap::{Arg, Command};
use std::ffi::OsString;

/// Commands that have many options. The program has those of `rpc`, and lists its commands.
const LONG: [&str; 9] =
    ["rpc", "exec", "run-command", "chat", "acp", "serve", "tools", "models", "doctor"];

/// Lines of examples, with their title.
const EXAMPLE_LINES: usize = 5;

/// A common option.
struct Common {
    id: &'static str,
    /// What is said of it here; its own text if this is empty.
    text: &'static str,
    /// The commands that list it; all that have it if there is none.
    commands: &'static [&'static str],
}

const fn common(id: &'static str, text: &'static str) -> Common {
    Common { id, text, commands: &[] }
}

const fn of(commands: &'static [&'static str], id: &'static str, text: &'static str) -> Common {
    Common { id, text, commands }
}

const COMMON: [Common; 42] = [
    of(&["serve"], "listen", "Address and port to listen on"),
    of(&["serve"], "tenants", "Serve the tenants in this file alone"),
    of(&["serve"], "tls_cert", "Certificate chain of the node (PEM)"),
    of(&["serve"], "tls_key", "Private key of --tls-cert (PEM)"),
    of(&["serve"], "advertise", "Address for the other nodes of the fleet"),
    of(&["serve"], "drain_ms", "How long runs may go on once the node is to end"),
    common("prompt", ""),
    common("piped", ""),
    common("file", "Add this file to the prompt"),
    common("prompt_file", "Read the prompt from this file"),
    common("image", "Attach this image"),
    common("attach", "Attach this file of any type"),
    common("schema", "Ask for JSON that matches this JSON Schema"),
    common("chat", ""),
    of(&["chat"], "fullscreen", "Use the whole screen, with scrolling"),
    of(&["chat"], "plain", "Print plain lines, for screen readers"),
    common("output", "Format"),
    common("save", "Write the last message to this file"),
    common("raw", "Print Markdown as the model writes it"),
    common("no_stream", "Print one JSON document at the end"),
    common("engine", "Engine"),
    common("model", "Model of the provider"),
    common("base_url", "Base URL of the provider"),
    common("profile", "Use the settings of this profile"),
    common("system", "System prompt"),
    common("system_file", ""),
    common("session", ""),
    of(&["rpc", "chat"], "session_id", ""),
    common("store", "Store conversations in this file or database"),
    common("no_store", ""),
    of(&["rpc"], "resume", ""),
    common("continues", "Go on with the last session of this folder"),
    common("mcp", "Start this MCP server, or connect to this URL"),
    of(
        &["rpc", "chat", "acp", "serve", "tools", "doctor"],
        "mcp_config",
        "Start the MCP servers of this file",
    ),
    of(
        &["rpc", "exec", "run-command", "chat", "acp", "serve", "tools"],
        "approval",
        "Other tool calls",
    ),
    of(&["rpc", "exec", "run-command", "chat", "tools"], "allow", "Run these tools without asking"),
    of(&["rpc", "chat", "tools"], "deny", "Never run these tools"),
    of(&["rpc"], "on_busy", "Prompts during a run"),
    of(&["rpc"], "extensions", "Turn on extensions of the protocol"),
    of(&["rpc", "acp", "serve"], "log_level", "What is logged"),
    common("offline", ""),
    common("help", ""),
];

/// Whether `words` ask for it.
pub(in crate::cli) fn is_wanted(words: &[OsString]) -> bool {
    words.iter().skip(1).take_while(|word| *word != "--").any(|word| word == "-h")
}

/// The program, whose `-h` is short.
pub(in crate::cli) fn of_program(program: Command) -> Command {
    let is_named = |arg: &Arg| arg.get_id() == "manifest";
    let program =
        program.mut_args(|arg| if is_named(&arg) { arg } else { arg.hide_short_help(true) });
    let program = program.mut_subcommands(|command| match LONG.contains(&command.get_name()) {
        true => of_command(command, |_| true),
        false => command,
    });
    program.after_help(super::BEGINNING)
}

/// `run-command` with the flags of a command file, which are all shown: they have no heading.
pub(in crate::cli) fn of_command_file(run: Command) -> Command {
    of_command(run, |arg| arg.get_help_heading().is_some())
}

/// `command` with its common options, of those that are this program's.
fn of_command(command: Command, is_own: impl Fn(&Arg) -> bool) -> Command {
    let (name, after) = (command.get_name().to_owned(), command.get_after_help());
    let after = after.map(ToString::to_string).unwrap_or_default();
    let examples = after.split("\n\n").find(|part| part.starts_with("Examples:"));
    let more =
        format!("`duologue {name} --help` has all options, in groups, with their variables.");
    let examples =
        examples.map(|text| text.lines().take(EXAMPLE_LINES).collect::<Vec<_>>().join("\n"));
    let after = examples.into_iter().chain([more]).collect::<Vec<_>>().join("\n\n");
    let is_file = command.get_arguments().any(|arg| !is_own(arg));
    let is_listed =
        |common: &&Common| common.commands.is_empty() || common.commands.contains(&name.as_str());
    let short = |arg: Arg| {
        if !is_own(&arg) {
            return arg;
        }
        let mut listed = COMMON.iter().filter(is_listed);
        let Some(common) = listed.find(|common| arg.get_id() == common.id) else {
            return arg.hide_short_help(true);
        };
        let arg = shortened(arg, common.text);
        // Those of a command file have no heading, and come first.
        let heading = if is_file {
            Resettable::Value("Options of duologue".into())
        } else {
            Resettable::Reset
        };
        arg.help_heading(heading)
    };
    command.mut_args(short).after_help(after)
}

/// `arg` with `text`, the values that it takes, and nothing else.
fn shortened(arg: Arg, text: &str) -> Arg {
    let takes_value = arg.get_action().takes_values();
    let arg = arg.hide_env(true).hide_default_value(takes_value).hide_possible_values(takes_value);
    if text.is_empty() || arg.is_positional() {
        return arg;
    }
    let values = arg.get_possible_values();
    let names = values.iter().filter(|value| takes_value && !value.is_hide_set());
    let names: Vec<_> = names.map(|value| value.get_name()).collect();
    match names.is_empty() {
        true => arg.help(text.to_owned()),
        false => {
            let names = names.join(", ");
            arg.help(format!("{text}: {names}"))
        }
    }
}
