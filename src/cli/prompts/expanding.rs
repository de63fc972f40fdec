//! A prompt by name as one of a chat: `/summarize --sentences 3 report.txt`.

use super::find;
use crate::command_file::{CommandFile, FileMessage, Outside, Rendered};
use crate::support::files::WorkFolder;
use crate::support::shell_words;
use crate::task::prompt::NamedPrompt;
use crate::template::Missing;
use anyhow::{Context, Result, anyhow};
use jiff::Zoned;
use std::io;

/// The prompt that `line` names, with values for its flags; `None` if there is none of that
/// name. A conversation has its system prompt already, so that of the file comes first in the text.
///
/// # Errors
/// If its file is not trusted or can't be used, or the flags are wrong: for people.
pub(crate) fn expand(line: &str, working: &WorkFolder) -> Result<Option<NamedPrompt>, String> {
    expanded(line, working).map_err(|error| format!("{error:#}"))
}

fn expanded(line: &str, working: &WorkFolder) -> Result<Option<NamedPrompt>> {
    let name = line.split_whitespace().next().unwrap_or_default();
    let Some(file) = find(name, working)? else { return Ok(None) };
    let words = shell_words::split(line).context("a quote has no second one")?;
    let typed = clap::Command::new(name.to_owned())
        .disable_help_flag(true)
        .args(file.clap_args())
        .try_get_matches_from(words);
    let typed = typed.map_err(|error| wrong_flags(&file, &error))?;
    let mut no_stdin =
        || Err(io::Error::other("a chat has no standard input to read; name a file instead of -"));
    let mut outside = Outside::new(&mut no_stdin).below(working.clone());
    let values = file.values(&typed, &mut outside)?;
    let rendered = file.render(values, &Zoned::now(), Missing::Shown)?;
    let warnings = file.warnings.iter().map(ToString::to_string);
    let warnings = warnings.chain(file.missing_values(&rendered)).collect();
    let read = outside.key_value_files();
    Ok(Some(NamedPrompt { text: text(rendered), warnings, read }))
}

fn text(Rendered { system, messages, prompt }: Rendered) -> String {
    let messages = messages.into_iter().map(|FileMessage { text, .. }| text);
    let parts = system.into_iter().chain(messages).chain([prompt]);
    let parts: Vec<_> = parts.filter(|part| !part.trim().is_empty()).collect();
    parts.join("\n\n")
}

/// The first line of clap's error, and the flags that there are.
fn wrong_flags(file: &CommandFile, error: &clap::Error) -> anyhow::Error {
    let text = error.to_string();
    let parts: Vec<_> = text.lines().map(str::trim).take_while(|line| !line.is_empty()).collect();
    let why = parts.join(" ");
    let why = why.strip_prefix("error: ").unwrap_or(&why);
    match file.takes().as_str() {
        "" => anyhow!("{why}; the prompt takes nothing after its name"),
        takes => anyhow!("{why}; the prompt takes {takes}"),
    }
}
