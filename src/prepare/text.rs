//! Text that comes from outside, as far as there is room for it.

use anyhow::{Context, Result, anyhow, ensure};
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Bytes a prompt may have: the conversation is held in memory, and sent whole.
pub(super) const PROMPT_BYTES_MAX: usize = 64 * 1024 * 1024;

/// All of standard input.
pub(super) fn from_stdin(stdin: File) -> Result<String> {
    read(stdin).context("the prompt on standard input can't be used")
}

/// All of the file at `path`.
pub(super) fn from_file(path: &Path) -> Result<String> {
    let file = File::open(path).with_context(|| {
        format!("{} can't be opened; check its name and who may read it", path.display())
    })?;
    read(file).with_context(|| format!("{} can't be used", path.display()))
}

fn read(file: File) -> Result<String> {
    let mut bytes = Vec::new();
    let limit = u64::try_from(PROMPT_BYTES_MAX)?.saturating_add(1);
    file.take(limit).read_to_end(&mut bytes)?;
    ensure!(
        bytes.len() <= PROMPT_BYTES_MAX,
        "it has more than {PROMPT_BYTES_MAX} bytes; ask with a shorter text"
    );
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        anyhow!("it is not UTF-8 (byte {at}); convert it first")
    })
}
