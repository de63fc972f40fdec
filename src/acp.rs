//! The front end of editors: the Agent Client Protocol, version 1 (<https://agentclientprotocol.com>), over
//! standard input and output. One process holds any number of conversations.
//!
//! `jsonrpc` reads and writes messages, whose types `schema` has. `connection` decides which request is
//! answered how, and `dialog` is one session as its client sees it: its prompts, its questions, its
//! choices. `updates` turns events into updates (`tool_calls` is what people see of a call), `prompts`
//! the content of a prompt into a submit, `permissions` answers into decisions, `forms` the questions of MCP
//! servers into forms that clients show; `options` is what can be chosen, and `queue` what a session has to
//! write. All these are pure. `session` is the task that owns the host of one conversation, `sessions` are the
//! stored ones, and `shell` is the loop that reads, gives each session its messages, and writes.

mod connection;
mod dialog;
mod forms;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod fuzzing;
mod jsonrpc;
mod options;
mod permissions;
mod prompts;
mod queue;
mod schema;
mod services;
mod session;
mod sessions;
mod shell;
mod tool_calls;
mod updates;

pub(crate) use options::{Effort, Model, model_name};
pub(crate) use services::{CommandFile, Opened, Opening, Services};
pub(crate) use shell::serve;
