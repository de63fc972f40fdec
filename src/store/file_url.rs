//! A file of SQLite named by a URL, as Go programs write it (`file:chat.db?_journal_mode=WAL`):
//! <https://sqlite.org/uri.html>. Pure.

use percent_encoding::percent_decode_str;
use std::path::PathBuf;

/// What such a URL begins with.
const SCHEME: &str = "file:";

/// Parameters that change how a file is read and written, and not which: this program has its own ways.
/// Those that begin with an underscore are of the drivers of Go.
const TUNING: [&str; 13] = [
    "_busy_timeout",
    "_cache_size",
    "_fk",
    "_foreign_keys",
    "_journal",
    "_journal_mode",
    "_loc",
    "_mutex",
    "_sync",
    "_synchronous",
    "_timeout",
    "_txlock",
    "cache",
];

/// Pragmas that do the same.
const TUNING_PRAGMAS: [&str; 8] = [
    "busy_timeout",
    "cache_size",
    "foreign_keys",
    "journal_mode",
    "mmap_size",
    "synchronous",
    "temp_store",
    "wal_autocheckpoint",
];

/// The file that `text` names; `None` if it is no such URL.
///
/// # Errors
/// If it can't be used as one, for a person. Holds no value of a parameter, which may be a key.
pub(super) fn path(text: &str) -> Option<Result<PathBuf, String>> {
    let rest = text.trim().strip_prefix(SCHEME)?;
    let (rest, _) = rest.split_once('#').unwrap_or((rest, ""));
    let (name, parameters) = rest.split_once('?').unwrap_or((rest, ""));
    let mut parameters = parameters.split('&').filter(|it| !it.is_empty());
    Some(file(name).and_then(|path| parameters.try_for_each(check).map(|()| path)))
}

fn file(name: &str) -> Result<PathBuf, String> {
    let name = match name.strip_prefix("//") {
        None => name,
        Some(rest) => rest
            .strip_prefix("localhost")
            .or(Some(rest))
            .filter(|path| path.starts_with('/'))
            .ok_or("a file: URL can name no other host; write file:/PATH, or file:PATH")?,
    };
    let name = percent_decode_str(name).decode_utf8();
    let name = name.ok().filter(|name| !name.contains('\0'));
    match name.as_deref() {
        None => Err("the name in the file: URL is not UTF-8, or has a zero byte in it".to_owned()),
        Some("" | ":memory:") => Err(in_memory()),
        Some(name) => Ok(PathBuf::from(name)),
    }
}

fn in_memory() -> String {
    "the file: URL names a database in memory, which ends with the process; leave the option out to \
     store nothing, or name a file"
        .to_owned()
}

fn check(parameter: &str) -> Result<(), String> {
    let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
    let is_tuning = match name {
        "mode" if value == "memory" => return Err(in_memory()),
        "mode" => matches!(value, "rw" | "rwc"),
        "_pragma" => TUNING_PRAGMAS.contains(&pragma(value)),
        _ => TUNING.contains(&name),
    };
    if is_tuning {
        return Ok(());
    }
    Err(format!(
        "the parameter {name} of the file: URL, or its value, is not known here; leave it out, or name \
         the file by its path, with --turns-db or --timeline-db"
    ))
}

/// The name of a pragma in the form `name(value)` or `name=value`.
fn pragma(text: &str) -> &str {
    text.split(['(', '=', '%']).next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_found_in_its_url() {
        for (text, expected) in [
            ("file:chat.db", "chat.db"),
            (" file:chat.db?_journal_mode=WAL&_busy_timeout=5000&cache=shared&mode=rwc", "chat.db"),
            ("file:a%20b%3Fc.db?", "a b?c.db"),
            ("file:/tmp/chat.db#x", "/tmp/chat.db"),
            ("file:///tmp/chat.db?_pragma=journal_mode(WAL)", "/tmp/chat.db"),
            ("file://localhost/tmp/chat.db?_pragma=busy_timeout%285000%29", "/tmp/chat.db"),
        ] {
            assert_eq!(path(text), Some(Ok(PathBuf::from(expected))), "{text}");
        }
        for text in ["chat.db", "postgres://h/d", "host=h dbname=file:x", "", "FILE:x"] {
            assert_eq!(path(text), None, "{text}");
        }
    }

    #[test]
    fn a_url_that_means_something_else_is_refused_without_its_values() {
        for (text, expected) in [
            ("file::memory:?cache=shared", "in memory"),
            ("file:x?mode=memory", "in memory"),
            ("file:?a", "in memory"),
            ("file://elsewhere/x.db", "no other host"),
            ("file:%00", "zero byte"),
            ("file:x?_pragma_key=s3cret", "the parameter _pragma_key"),
            ("file:x?_pragma=key('s3cret')", "the parameter _pragma "),
            ("file:x?mode=ro", "the parameter mode "),
            ("file:x?vfs=s3cret", "the parameter vfs"),
        ] {
            let why = path(text).expect("a URL").expect_err(text);
            assert!(why.contains(expected) && !why.contains("s3cret"), "{text}: {why}");
        }
    }
}
