//! Text that comes from outside, as far as there is room for it.

use anyhow::{Context, Result, anyhow, ensure};
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Bytes a prompt may have: the conversation is held in memory, and sent whole.
pub(super) const PROMPT_BYTES_MAX: usize = 64 * 1024 * 1024;

/// All of standard input, as a prompt.
pub(super) fn from_stdin(mut stdin: File) -> Result<String> {
    read(&mut stdin, PROMPT_BYTES_MAX).context("the prompt on standard input can't be used")
}

/// All of the file at `path`.
pub(super) fn from_file(path: &Path, bytes_max: usize) -> Result<String> {
    let mut file = File::open(path).map_err(|error| {
        let path = path.display();
        anyhow!("{path} can't be opened: {error}; check its name and who may read it")
    })?;
    let text = if file.metadata().is_ok_and(|about| about.is_dir()) {
        Err(anyhow!("it is a folder; name a file in it"))
    } else {
        read(&mut file, bytes_max)
    };
    text.with_context(|| format!("{} can't be used", path.display()))
}

/// All of `file`.
pub(super) fn read(file: &mut File, bytes_max: usize) -> Result<String> {
    let mut bytes = Vec::new();
    let limit = u64::try_from(bytes_max)?.saturating_add(1);
    file.take(limit).read_to_end(&mut bytes)?;
    ensure!(bytes.len() <= bytes_max, "it has more than {bytes_max} bytes; use a shorter text");
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        anyhow!("it is not UTF-8 (byte {at}); convert it first")
    })
}
