//! duologue: a chat runtime for language models that other programs hold as a subprocess.
//!
//! One process is one conversation: JSON request lines in, JSON frames out. `ARCHITECTURE.md` has
//! the picture; the modules below stand in reading order, and each uses only those above it.

pub mod support;

pub mod protocol;

pub mod chat;
pub mod extract;
pub mod template;

pub mod engine;

pub mod session;

pub mod host;

pub(crate) mod output;

pub(crate) mod stdio;

pub mod command_file;
pub mod conformance;

pub mod cli;
