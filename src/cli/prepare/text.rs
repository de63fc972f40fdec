//! Reads text from files and standard input, up to a limit.

use crate::support::files::{Blocking, read_named_bytes};
use crate::yaml;
use anyhow::{Context, Result, anyhow, ensure};
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

/// Longest prompt, in bytes: the conversation is held in memory and sent whole.
pub(super) const PROMPT_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Reads standard input to its end, as a prompt.
pub(super) fn from_stdin(stdin: File) -> Result<String> {
    read(&stdin, PROMPT_BYTES_MAX).context("the prompt on standard input can't be used")
}

/// Reads the file at `path` to its end.
pub(super) fn from_file(path: &Path, bytes_max: usize) -> Result<String> {
    let file = File::open(path).map_err(|error| {
        let path = path.display();
        anyhow!("{path} can't be opened: {error}; check its name and who may read it")
    })?;
    let text = if file.metadata().is_ok_and(|about| about.is_dir()) {
        Err(anyhow!("it is a folder; name a file in it"))
    } else {
        read(&file, bytes_max)
    };
    text.with_context(|| format!("{} can't be used", path.display()))
}

/// Reads the file of a setting to its end, which is before the first frame: a pipe in its place that stays silent is
/// an error.
pub(super) fn of_setting(path: &Path, bytes_max: usize) -> Result<String> {
    if !path.metadata().is_ok_and(|about| about.file_type().is_fifo()) {
        return from_file(path, bytes_max);
    }
    let bytes = read_named_bytes(path, bytes_max).map_err(anyhow::Error::from);
    let text = bytes.and_then(|(bytes, _)| of_bytes(bytes));
    text.with_context(|| format!("{} can't be used", path.display()))
}

/// Reads `file` to its end.
pub(super) fn read(file: &File, bytes_max: usize) -> Result<String> {
    let mut bytes = Vec::new();
    let limit = u64::try_from(bytes_max)?.saturating_add(1);
    Blocking(file).take(limit).read_to_end(&mut bytes)?;
    ensure!(bytes.len() <= bytes_max, "it has more than {bytes_max} bytes; use a shorter text");
    of_bytes(bytes)
}

/// The text without a byte order mark, which editors and shells write and no model is to read.
fn of_bytes(bytes: Vec<u8>) -> Result<String> {
    let mut text = String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        anyhow!("it is not UTF-8 (byte {at}); convert it first")
    })?;
    let mark_bytes = text.len() - yaml::without_mark(&text).len();
    text.drain(..mark_bytes);
    Ok(text)
}
