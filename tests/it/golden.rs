//! What processes print, kept as text in `tests/golden_outputs`, a file for each case.
//!
//! `UPDATE_GOLDEN=1` writes these files anew; look at the difference before it is kept.

use crate::once::{Ended, normal};
use crate::server::Folder;
use std::fmt::Write;
use std::fs;
use std::path::Path;

const GOLDEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden_outputs");

/// What a process printed, as people read it.
pub(crate) fn section(words: &[&str], ended: &Ended, folder: &Folder) -> String {
    let quoted =
        |word: &&str| if word.trim() == *word { (*word).to_owned() } else { format!("{word:?}") };
    let words: Vec<_> = words.iter().map(quoted).collect();
    let mut section = format!("$ duologue {}\n", words.join(" "));
    for (name, text) in [("stdout", &ended.stdout), ("stderr", &ended.stderr)] {
        let text = normal(text, folder);
        let end = if text.is_empty() || text.ends_with('\n') { "" } else { " (no line end)\n" };
        write!(section, "--- {name}\n{text}{end}").expect("a String takes all");
    }
    section + &format!("--- status {}\n\n", ended.status)
}

/// Holds what was printed against the file of this name.
#[track_caller]
pub(crate) fn compare(name: &str, actual: &str) {
    let path = Path::new(GOLDEN).join(format!("{name}.txt"));
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::create_dir_all(GOLDEN).expect("a folder");
        fs::write(&path, actual).expect("a file");
    }
    let expected = fs::read_to_string(&path).unwrap_or_default();
    for (expected, actual) in expected.lines().zip(actual.lines()) {
        assert_eq!(actual, expected, "{}", path.display());
    }
    assert_eq!(actual.lines().count(), expected.lines().count(), "{}", path.display());
}
