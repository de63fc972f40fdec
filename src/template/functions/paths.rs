//! Functions on paths with slashes: <https://pkg.go.dev/path>.

use super::text::map;
use super::{Function, function};
use crate::template::value::Value;

/// Sprig's `osBase` and the like use the path syntax of the machine, which has slashes too.
pub(super) const FUNCTIONS: &[Function] = &[
    function("base", (1, 1), |call| map(call, base)),
    function("osBase", (1, 1), |call| map(call, base)),
    function("dir", (1, 1), |call| map(call, dir)),
    function("osDir", (1, 1), |call| map(call, dir)),
    function("ext", (1, 1), |call| map(call, ext)),
    function("osExt", (1, 1), |call| map(call, ext)),
    function("clean", (1, 1), |call| map(call, clean)),
    function("osClean", (1, 1), |call| map(call, clean)),
    function("isAbs", (1, 1), |call| Ok(Value::Bool(call.text(0)?.starts_with('/')))),
    function("osIsAbs", (1, 1), |call| Ok(Value::Bool(call.text(0)?.starts_with('/')))),
];

fn dir(path: &str) -> String {
    clean(&path[..after_last_slash(path)])
}

fn ext(path: &str) -> String {
    let name = &path[after_last_slash(path)..];
    name.rfind('.').map_or("", |at| &name[at..]).into()
}

fn after_last_slash(path: &str) -> usize {
    path.rfind('/').map_or(0, |at| at + 1)
}

fn base(path: &str) -> String {
    if path.is_empty() {
        return ".".into();
    }
    let path = path.trim_end_matches('/');
    if path.is_empty() { "/".into() } else { path[after_last_slash(path)..].into() }
}

/// The shortest equivalent path.
fn clean(path: &str) -> String {
    let is_rooted = path.starts_with('/');
    let mut kept: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." if kept.last().is_some_and(|last| *last != "..") => {
                kept.pop();
            }
            ".." if is_rooted => {}
            part => kept.push(part),
        }
    }
    match (is_rooted, kept.is_empty()) {
        (true, _) => format!("/{}", kept.join("/")),
        (false, true) => ".".into(),
        (false, false) => kept.join("/"),
    }
}
