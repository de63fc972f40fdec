//! What the fuzz targets of `fuzz/` check: that a parser of what others wrote does not panic, and what else
//! is true of every input. A test here reads the corpus of each.

mod files;
mod messages;

#[cfg(test)]
mod memory;
#[cfg(test)]
mod tests;

use crate::engine::replay;
use crate::{acp, profile, store, tool, tui};
use std::str::from_utf8;

/// A target: its name, and what is done with an input.
type Target = (&'static str, fn(&[u8]));

/// All targets, as `fuzz/Cargo.toml` names them.
pub const TARGETS: [Target; 20] = [
    ("acp_lines", acp::fuzzing::lines),
    ("anthropic_stream", |input| stream("anthropic", input)),
    ("any", messages::any),
    ("command_files", |input| text(input, files::command_file)),
    ("gemini_stream", |input| stream("gemini", input)),
    ("keys", tui::fuzzing::keys),
    ("markdown", |input| text(input, tui::fuzzing::markdown)),
    ("mcp_lines", tool::fuzzing::messages),
    ("mcp_servers", |input| text(input, files::mcp_servers)),
    ("ollama_stream", |input| stream("ollama", input)),
    ("openai_stream", |input| stream("openai", input)),
    ("profiles", |input| text(input, profile::fuzzing::profiles)),
    ("proto", messages::proto),
    ("recordings", messages::recording),
    ("request_lines", messages::request_lines),
    ("responses_stream", |input| stream("responses", input)),
    ("schemas", |input| text(input, files::schema)),
    ("store_rows", store::fuzzing::row),
    ("templates", |input| text(input, files::template)),
    ("yaml", |input| text(input, files::yaml)),
];

/// Checks `input` as the target of this name does.
///
/// # Panics
/// If the check fails, or there is no such target.
pub fn check(target: &str, input: &[u8]) {
    let (_, check) = TARGETS.iter().find(|(name, _)| *name == target).expect("a target");
    check(input);
}

/// Files that are no UTF-8 are refused before they are parsed.
fn text(input: &[u8], check: fn(&str)) {
    if let Ok(text) = from_utf8(input) {
        check(text);
    }
}

fn stream(engine: &str, body: &[u8]) {
    let (_, read) = replay::ENGINES.iter().find(|(name, _)| *name == engine).expect("an engine");
    replay::check(*read, body);
}
