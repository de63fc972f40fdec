//! Help texts.

pub(super) mod short;

use crate::cli::manifest::facts;

/// Columns of a table: the ones of a usual terminal, of which some wrap a line that fills it.
const COLUMNS_MAX: usize = 79;

/// Column at which the meaning of an exit status begins.
const MEANING_COLUMN: usize = 7;

/// What a person who types the name of the program alone is told; also at the end of its short help.
pub(super) const BEGINNING: &str = "\
duologue chat                     talk with a model here
duologue exec \"What is a FIFO?\"   ask once, and print the answer
git diff | duologue exec \"Why?\"   ask about what is piped in
duologue doctor                   which provider answers, and whether it works
duologue help providers           how to set up a provider
duologue --help                   all commands and options

Programs that start duologue talk to it in JSON lines: `duologue rpc --help`.
";

pub(super) const ABOUT: &str =
    "A chat runtime for language models that other programs hold as a subprocess";

pub(super) const LONG_ABOUT: &str = "\
A chat runtime for language models that other programs hold as a subprocess.

One process is one conversation. It reads one JSON request per line on standard input and writes one \
JSON frame per line on standard output. Without a command it does what `duologue rpc` does; at a \
terminal, without an option, it says how to begin.

`duologue help TOPIC` prints a page of the documentation: chat-guide, clients, command-files, \
compatibility, cookbook, editors, fleet, guarantees, options, outputs, performance, profile-guide, \
protocol, providers, session-guide or tool-guide.";

pub(super) const RPC_ABOUT: &str =
    "Hold one conversation over standard input and output; streams JSON Lines";

pub(super) const RPC_LONG_ABOUT: &str = "\
Hold one conversation over standard input and output.

This command streams JSON Lines: standard output is one JSON object per line (protobuf JSON of \
pinocchio.chatapp.rpc.v1.RpcLine), written as things happen. The first line is `hello`, and every \
request line gets exactly one `done`, the last line with its requestId. Requests are

  {\"requestId\":\"r1\",\"submit\":{\"prompt\":\"hello\"}}  start a run
  {\"requestId\":\"r2\",\"cancel\":{}}                  stop the active run
  {\"requestId\":\"r3\",\"snapshot\":{}}                print the state of the conversation
  {\"requestId\":\"r4\",\"shutdown\":{}}                exit after active and waiting runs

Logs go to standard error or to --log-file, never to standard output.";

const RPC_EXAMPLES: &str = "  echo '{\"submit\":{\"prompt\":\"hello\"}}' | duologue rpc
  cat requests.jsonl | duologue rpc --on-busy queue
  duologue rpc --store chat.db --session plan
  duologue rpc --engine openai --base-url http://localhost:11434/v1 --model llama3.2";

const EXEC_EXAMPLES: &str = "  duologue exec \"What is a duologue?\"
  git diff | duologue exec \"Review this change.\"
  duologue exec \"What does this do?\" --file src/main.rs
  duologue exec \"What is in this picture?\" --image photo.jpg
  duologue exec --continue \"And then?\"
  duologue exec --json-stream \"explain auth\" | jq -c 'select(.type == \"done\")'
  duologue exec --output json --prompt-file prompt.txt | jq -r .data";

const RUN_EXAMPLES: &str = "  duologue run-command summarize.yaml report.txt
  duologue run-command extract.yaml --text page.txt --output objects
  duologue run-command summarize.yaml report.txt --print-prompt
  duologue run-command assistant.yaml --rpc --stdin-rpc";

const CHAT_EXAMPLES: &str = "  duologue chat
  duologue chat \"Explain this error.\" --attach build.log
  duologue chat --continue
  duologue chat --session plan
  duologue run-command assistant.yaml --chat";

pub(super) const CHAT_ABOUT: &str = "Chat with a model at a terminal";

pub(super) const CHAT_LONG_ABOUT: &str = "\
Chat with a model at a terminal.

The conversation is printed into the terminal's own scrollback; below it are the part of the answer \
that may still change and the line to write in. /help lists the commands and keys. Where standard \
input or output is no terminal, or with --plain, lines are read and printed.";

const ACP_EXAMPLES: &str = "  duologue acp
  duologue acp --profile work
  duologue doctor --acp";

pub(super) const ACP_ABOUT: &str = "Hold conversations for an editor, by the Agent Client Protocol";

pub(super) const ACP_LONG_ABOUT: &str = "\
Hold conversations for an editor, by the Agent Client Protocol.

Editors that speak this protocol (ACP) start the command and show its conversations: Zed, the IDEs \
of JetBrains, plugins of Neovim and Emacs, and others. One process holds any number of \
conversations, each in a folder of its own. `duologue help editors` says how each editor is set \
up.";

#[cfg(feature = "serve")]
const SERVE_EXAMPLES: &str = "  duologue serve
  duologue serve --listen 127.0.0.1:0 --store sessions.db";

#[cfg(feature = "serve")]
pub(super) const SERVE_ABOUT: &str = "Hold the conversations of many clients, over gRPC and HTTP";

#[cfg(feature = "serve")]
pub(super) const SERVE_LONG_ABOUT: &str = "\
Hold the conversations of many clients, over gRPC and HTTP.

Clients attach to conversations by their ids, and a conversation outlives its connections: a run \
goes on without a client for a while, and one that attaches again is shown what it has missed. The \
address that is listened on is printed. `duologue help fleet` describes the interface, and what is \
guaranteed.";

const ENVIRONMENT: &str = "  DUOLOGUE_API_KEY       key of the provider
  OPENAI_API_KEY         key for the openai and responses engines, if
                         DUOLOGUE_API_KEY is not set
  OPENAI_BASE_URL        their base URL, if neither --base-url nor
                         DUOLOGUE_BASE_URL is set
  ANTHROPIC_API_KEY      key for the anthropic engine, if DUOLOGUE_API_KEY is
                         not set
  ANTHROPIC_BASE_URL     its base URL, if neither --base-url nor
                         DUOLOGUE_BASE_URL is set
  GEMINI_API_KEY         key for the gemini engine, if DUOLOGUE_API_KEY is not
                         set; GOOGLE_API_KEY does the same
  GEMINI_BASE_URL        its base URL, if neither --base-url nor
                         DUOLOGUE_BASE_URL is set
  OLLAMA_HOST            address for the ollama engine, as Ollama's own
                         programs take it, if neither --base-url nor
                         DUOLOGUE_BASE_URL is set
  OLLAMA_API_KEY         its key, if it needs one and DUOLOGUE_API_KEY is not
                         set
  SSL_CERT_FILE          more root certificates (PEM) to trust
  NO_COLOR               no colours on a terminal
  An option that names a variable can also be set by it; the option has
  precedence. An empty variable counts as not set.";

/// Text after the options of a command that holds a conversation.
pub(super) fn after(command: &str) -> String {
    let examples = match command {
        "exec" => EXEC_EXAMPLES,
        "run-command" => RUN_EXAMPLES,
        "chat" => CHAT_EXAMPLES,
        "acp" => ACP_EXAMPLES,
        #[cfg(feature = "serve")]
        "serve" => SERVE_EXAMPLES,
        _ => RPC_EXAMPLES,
    };
    let rest = see_also(command) + &statuses(command);
    format!("Examples:\n{examples}\n\nEnvironment:\n{ENVIRONMENT}\n\n{rest}")
}

/// Text after the options of a command that holds no conversation.
pub(super) fn after_examples(command: &str, examples: &str) -> String {
    let rest = see_also(command) + &statuses(command);
    format!("Examples:\n{examples}\n\n{rest}")
}

/// The page about a command, of those that are in the program.
fn see_also(command: &str) -> String {
    let topic = match command {
        "rpc" => "protocol",
        "exec" => "outputs",
        "run" | "run-command" => "command-files",
        "chat" => "chat-guide",
        "acp" => "editors",
        "serve" => "fleet",
        "tools" | "mcp" => "tool-guide",
        "profiles" => "profile-guide",
        "models" => "providers",
        "sessions" => "session-guide",
        _ => return String::new(),
    };
    format!("See also:\n  duologue help {topic}\n\n")
}

/// The exit statuses of a command, as the manifest has them.
pub(super) fn statuses(command: &str) -> String {
    let statuses = facts(command).exit_codes.iter();
    let rows = statuses.map(|(code, meaning)| format!("\n  {code:<4} {}", hanging(meaning)));
    format!("Exit status:{}", rows.collect::<String>())
}

/// The meaning of an exit status in lines that a terminal has room for: clap would go on at its left edge.
fn hanging(meaning: &str) -> String {
    let (mut text, mut column) = (String::new(), MEANING_COLUMN);
    for word in meaning.split(' ') {
        let columns = word.chars().count();
        let is_first = column == MEANING_COLUMN;
        if !is_first && column + 1 + columns > COLUMNS_MAX {
            text += &format!("\n{:MEANING_COLUMN$}", "");
            column = MEANING_COLUMN;
        } else if !is_first {
            text.push(' ');
            column += 1;
        }
        text += word;
        column += columns;
    }
    text
}

pub(super) const EXEC_ABOUT: &str = "Run one prompt; prints text, JSON, or streams JSON Lines";

pub(super) const RUN_ABOUT: &str =
    "Run the prompt of a command file; prints text, JSON, or streams JSON Lines";

pub(super) const RUN_NAMED_ABOUT: &str = "Run a prompt by its name, or list the prompts";

pub(super) const RUN_NAMED_LONG_ABOUT: &str = "\
Run a prompt by its name, or list the prompts.

A prompt is a command file NAME.yaml or NAME.yml in .duologue/commands of the project, which is the \
working folder or the nearest one above it, or in duologue/commands of $XDG_CONFIG_HOME (else \
~/.config). One of a project is run once you trust it: `duologue profiles trust FILE`. Without a name \
this command lists the prompts. `duologue run NAME --help` lists the flags of one; the options of \
`run-command` can be used, too.";

pub(super) const RUN_NAMED_EXAMPLES: &str = "  duologue run
  duologue run summarize report.txt
  duologue run summarize --help";

/// Long help of `exec`.
pub(super) fn exec_long_about() -> String {
    format!("Run one prompt and print the answer.\n\n{OUTPUT}")
}

/// Long help of `run-command`.
pub(super) fn run_long_about() -> String {
    format!("{RUN}\n\n{OUTPUT}")
}

const RUN: &str = "\
Run the prompt of a command file and print the answer. `run-command FILE.yaml --help` lists the \
file's own flags. If one of them has the name of an option of this program, the name means the \
file's flag, and the option is called --duologue-NAME.";

/// Output of a single run. Also part of a command file's own help.
pub(super) const OUTPUT: &str = "\
By default the answer is printed as text, as the model writes it. With --output jsonl (or --rpc), \
--output objects or --json-stream this command streams JSON Lines: one JSON object per line, written \
as things happen, the first of which names format and version. With --no-stream (or --output json) \
it prints one JSON document at the end instead.";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::Cli;
    use crate::cli::commands::topic;
    use clap::{Command, CommandFactory};
    use std::ffi::OsString;

    /// Checks the texts of `command` and of those below it.
    fn check(command: &Command) {
        let name = command.get_name();
        let about = command.get_long_about().map(ToString::to_string).unwrap_or_default();
        let prose = about.split("\n\n").filter(|paragraph| !paragraph.starts_with("  "));
        for paragraph in prose {
            assert!(!paragraph.contains('\n'), "{name}: {paragraph}");
        }
        let after = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        // A command is typed in one line.
        for table in after.split("\n\n").filter(|part| !part.starts_with("Examples:")) {
            let wide = table.lines().find(|line| line.chars().count() > COLUMNS_MAX);
            assert_eq!(wide, None, "{name}");
        }
        command.get_subcommands().for_each(check);
    }

    /// What clap wraps is one line to it, and what it can't wrap has room.
    #[test]
    fn texts_fit_a_terminal_of_any_width() {
        check(&Cli::command());
        assert!(statuses("exec").contains("\n       "));
    }

    #[test]
    fn a_command_names_a_page_that_there_is() {
        for command in Cli::command().get_subcommands().map(Command::get_name) {
            let named = see_also(command);
            let words: Vec<_> = named.split_whitespace().skip(2).map(OsString::from).collect();
            assert!(words.is_empty() || topic(&words).is_some(), "{command}: {named}");
        }
    }
}
