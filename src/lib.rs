//! duologue: a chat runtime for language models that other programs hold as a subprocess.
//!
//! One process is one conversation: JSON request lines in, JSON frames out. `ARCHITECTURE.md` has
//! the picture; the modules below stand in reading order, and each uses only those above it.

pub mod json;
pub mod text;

pub mod any;
pub mod proto;

pub mod fault;
pub mod id;

pub mod chat;

pub mod extract;

pub mod wire;

mod descriptors;

mod threads;

mod files;
mod line_queue;
pub mod secret;
pub mod stderr;
mod terminal;

pub mod template;

pub mod engine;

pub mod session;

pub mod output;

pub mod outbox;

pub mod server;

pub mod command;

pub mod check;
pub mod events;
pub mod manifest;
pub mod schema;
pub mod tools;

pub mod cli;
pub mod config;
pub mod log;
pub mod prepare;
pub mod shell;
