//! The system prompt in a file.

use super::inputs::no_stdin;
use super::text::{PROMPT_BYTES_MAX, of_setting};
use crate::cli::SessionArgs;
use crate::command_file::is_stdin;
use anyhow::{Context, Result, ensure};

/// Reads the file of `--system-file` in the place of `--system`.
///
/// # Errors
/// If it can't be read, or `--system` was typed, too.
pub(super) fn read(args: &mut SessionArgs) -> Result<()> {
    let Some(path) = &args.system_file else { return Ok(()) };
    let is_typed = args.calls.typed.iter().any(|id| id == "system");
    ensure!(!is_stdin(path), no_stdin("--system-file"));
    ensure!(!is_typed, "--system and --system-file both say the system prompt; leave one out");
    args.system = Some(of_setting(path, PROMPT_BYTES_MAX).context("--system-file")?);
    Ok(())
}
