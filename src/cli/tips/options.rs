//! Suggestions for an option that a command does not have.

use super::KEY_TIP;
use crate::cli::{RUN_COMMAND, foreign};
use crate::support::nearest::nearest;
use clap::Command;

/// Options that people try for the key of a provider.
const KEY_OPTIONS: [&str; 7] = [
    "--api-key",
    "--apikey",
    "--api_key",
    "--key",
    "--token",
    "--api-token",
    "--anthropic-api-key",
];

const NO_DOCUMENT_TIP: &str = "it prints no document, with or without --no-stream; leave that out";

/// Options that other programs have.
struct Other {
    names: &'static [&'static str],
    /// The argument that the tip names, by its id: commands without it get no tip.
    of: &'static str,
    tip: &'static str,
}

const fn other(names: &'static [&'static str], of: &'static str, tip: &'static str) -> Other {
    Other { names, of, tip }
}

/// In place of an argument, for a tip that every command takes.
const ANY: &str = "";

/// Of two with one name the first counts whose argument the command has.
const OTHERS: [Other; 15] = [
    other(&["--provider"], "engine", "use --engine NAME, as in --engine openai"),
    other(&["--host", "--port"], "listen", "use --listen ADDRESS, as in --listen 127.0.0.1:8642"),
    other(
        &["--url", "--host", "--endpoint", "--api-base", "--api-url"],
        "base_url",
        "use --base-url URL",
    ),
    other(&["--proxy"], "base_url", foreign::PROXY_TIP),
    other(
        &["--insecure", "--no-verify", "-k"],
        "tls_roots",
        "certificates are always checked; SSL_CERT_FILE=FILE adds root certificates to trust",
    ),
    other(&["--verbose", "--debug", "-v"], "log_level", "use --log-level debug"),
    other(&["--quiet", "--silent", "-q"], "log_level", "use --log-level error"),
    other(&["--no-color", "--no-colour"], ANY, "set the variable NO_COLOR=1"),
    other(
        &["--prompt", "--message", "--query", "--question", "-p"],
        "prompt",
        "leave the option out: the prompt stands alone, in quotes",
    ),
    other(
        &["--system-prompt", "--instructions"],
        "system",
        "use --system TEXT, or --system-file FILE",
    ),
    other(&["--file", "-f"], "attach", "use --attach FILE, or write @FILE in the prompt"),
    other(
        &["--stream"],
        "patch_mode",
        "leave it out: answers stream unless an option says otherwise",
    ),
    other(&["--format"], "output", "use --output FORMAT"),
    other(&["--shell"], "shell", "leave the option out: the name of the shell stands alone"),
    other(
        &["--all"],
        "older_than",
        "name the sessions, or delete all that nobody has used for a time: --older-than 30d",
    ),
];

/// Letters of an abbreviation that are enough to know an option by.
const LETTERS_MIN: usize = 3;

/// Options of other programs, and their equivalents here, for the command of this name.
pub(super) fn own(wrong: &str, command: &str) -> Option<&'static str> {
    let is_run = matches!(command, "exec" | RUN_COMMAND);
    match wrong {
        key if KEY_OPTIONS.contains(&key) => Some(KEY_TIP),
        "--json" | "--output-format" if is_run => Some(
            "--output json prints one JSON document at the end; --json-stream prints events as \
             they come",
        ),
        "--json" | "--output-format" if command == "rpc" => Some(
            "what `rpc` prints is JSON, one frame a line; --no-stream prints one JSON document at \
             the end",
        ),
        "--json" => Some("--output json prints one JSON document"),
        "--jsonl" | "--ndjson" if is_run => {
            Some("--output jsonl prints the protocol, one frame a line")
        }
        "--yaml" if is_run => Some("--output yaml prints one YAML document at the end"),
        "--no-stream" if matches!(command, "chat" | "acp" | "serve" | "mcp") => {
            Some(NO_DOCUMENT_TIP)
        }
        other => foreign::equivalent(other),
    }
}

/// Options that many programs have, and their equivalents in `command`. A command file may mean something else.
pub(super) fn common(wrong: &str, command: &Command) -> Option<&'static str> {
    let has = |id: &str| id == ANY || command.get_arguments().any(|arg| arg.get_id() == id);
    let mut others = OTHERS.iter().filter(|other| other.names.contains(&wrong));
    others.find(|other| has(other.of)).map(|other| other.tip)
}

/// Whether the option `known` may be what was meant by `wrong`: it is spelt much the same, begins so, or has all the
/// words that the other one has. By the measure of clap, `--no-store` is like `--no-color`.
pub(super) fn is_like(known: &str, wrong: &str) -> bool {
    let [known, wrong] = [known, wrong].map(|option| option.trim_start_matches('-'));
    if nearest(wrong, [known]).is_some() {
        return true;
    }
    let is_negative = |option: &str| option.starts_with("no-");
    let has_all = |one: &str, other: &str| {
        one.split('-').all(|word| other.split('-').any(|theirs| theirs == word))
    };
    let is_beginning = wrong.len() >= LETTERS_MIN && known.starts_with(wrong);
    // The opposite is not meant.
    is_negative(known) == is_negative(wrong)
        && (is_beginning || has_all(known, wrong) || has_all(wrong, known))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_option_is_like_another_by_its_spelling_or_its_words() {
        for (wrong, known) in [
            ("--sesion", "--session"),
            ("--modle", "--model"),
            ("--nostore", "--no-store"),
            ("--temp", "--temperature"),
            ("--resum", "--resume"),
            ("--max-output-tokens", "--max-tokens"),
            ("--file-prompt", "--prompt-file"),
            ("--wh", "--who"),
        ] {
            assert!(is_like(known, wrong), "{wrong} {known}");
        }
        for (wrong, known) in [
            ("--no-color", "--no-store"),
            ("--provider", "--profile"),
            ("--quiet", "--budget"),
            ("--insecure", "--resource"),
            ("--host", "--history"),
            ("--prompt", "--compact"),
            ("--file", "--profile-registries"),
            ("--limit", "--timeline-db"),
            ("--shell", "--help"),
            ("--endpoint", "--engine"),
            ("--stream", "--no-stream"),
        ] {
            assert!(!is_like(known, wrong), "{wrong} {known}");
        }
    }
}
