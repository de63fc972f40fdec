//! `run-command`: a command file, its flags and its prompt → what is asked.

use super::shown::shown;
use super::{Prepared, Reason, Terminal, text};
use crate::chat::transcript::{Preamble, Said};
use crate::cli::Cli;
use crate::command::{CommandFile, FILE_BYTES_MAX, Message, Outside, Rendered, Role};
use crate::config::{self, Asked, EXTRACT, Once, Source};
use crate::extract::Schema;
use crate::log;
use anyhow::{Context, Result, anyhow};
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// Why nothing else can come from standard input.
const REQUESTS_ARE_READ: &str =
    "standard input holds the requests of --stdin-rpc; name a file instead of -";

/// Gets ready what `words` ask for.
pub(super) fn run(words: &[OsString], mut terminal: Terminal) -> Result<Prepared, Reason> {
    let Some(path) = Cli::command_file(words) else {
        // Without a file there is only help, or the error that it is missing.
        Cli::read(words)?;
        return Err(anyhow!("name a command file: duologue run-command FILE.yaml").into());
    };
    if path == "-" && Cli::guess(words).1.reads_stdin() {
        return Err(anyhow!("the command file can't be there: {REQUESTS_ARE_READ}").into());
    }
    let file = read(Path::new(&path), &mut terminal.stdin)?;
    let (args, typed) = Cli::read_with_file(words, &file)?;
    let mode = args.output.mode()?;
    let log = log::start(args.session.log_level, args.session.log_file.as_deref())?;
    for warning in &file.warnings {
        tracing::warn!("{warning}");
    }
    let mut from_stdin = || match mode.reads_stdin() {
        true => Err(io::Error::other(REQUESTS_ARE_READ)),
        false => all(&mut terminal.stdin),
    };
    let values = file.values(&typed, &mut Outside::new(&mut from_stdin))?;
    let mut rendered = file.render(&values)?;
    if args.is_system_typed {
        rendered.system = args.session.system.clone();
    }
    if args.print_prompt {
        // A variable's counts where the file has none.
        rendered.system = rendered.system.or(args.session.system);
        return Ok(Prepared::Print(shown(&rendered, mode)?));
    }
    let asked = asked(&file, rendered)?;
    let no_preamble = args.output.no_preamble;
    let is_shown = terminal.is_shown;
    let once = Once { command: "run-command", mode, no_preamble, is_shown, asked };
    let settings = config::once(once, args.session)?;
    Ok(Prepared::Serve(Box::new(settings), log))
}

fn read(path: &Path, stdin: &mut File) -> Result<CommandFile> {
    if path.as_os_str() != "-" {
        return Ok(CommandFile::load(path)?);
    }
    let text = text::read(stdin, FILE_BYTES_MAX).context("the command file on standard input")?;
    Ok(CommandFile::parse(Path::new("stdin"), &text)?)
}

fn all(stdin: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let limit = crate::command::VALUE_BYTES_MAX as u64 + 1;
    stdin.take(limit).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn asked(file: &CommandFile, rendered: Rendered) -> Result<Asked> {
    let schema = file.schema.as_ref().map(Schema::compile).transpose();
    let schema = schema.with_context(|| format!("{}: schema", file.path.display()))?;
    Ok(Asked {
        preamble: preamble(rendered.system, rendered.messages),
        prompt: Source::Known(rendered.prompt),
        response: file.response,
        schema,
        tells_values: file.extensions.iter().any(|name| name == EXTRACT),
        name: file.name.clone(),
    })
}

fn preamble(system: Option<String>, messages: Vec<Message>) -> Preamble {
    let mut preamble = Preamble { system, said: Vec::new() };
    for Message { role, text } in messages {
        match role {
            Role::User => preamble.said.push(Said::ByUser(text)),
            Role::Assistant => preamble.said.push(Said::ByModel(text)),
            // Providers want what is not said by either in one piece, and first.
            Role::System => match &mut preamble.system {
                Some(system) => {
                    system.push_str("\n\n");
                    system.push_str(&text);
                }
                None => preamble.system = Some(text),
            },
        }
    }
    preamble
}
