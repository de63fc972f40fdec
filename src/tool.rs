//! The MCP servers that run tools. Which calls they get is decided in `session`.
//!
//! | module | what it is |
//! |---|---|
//! | [`servers`] | MCP servers over the official SDK: one task for each (`server`), and one `table` of their states |
//! | [`config`], `listing`, `result`, `contents`, `arguments`, `scan` | what is read from files, servers and people (pure) |
//! | `incoming`, `http_answers` | their messages, also where they are odd in a detail (pure) |
//! | `connection` | asks a server over `line_transport` or `http` |
//! | [`login`] | logins at servers over HTTP, and where their tokens are kept |
//! | `server_requests`, `progress`, `http_streams`, `http_listening` | limits on what servers request and report, and on streams over HTTP |
//! | `elicitation` | what servers want to know of the person |
//! | `child`, [`guard`] | starts and ends a process; the small process that stays with it |

pub mod config;

mod arguments;
mod contents;
pub(crate) mod elicitation;
mod incoming;
mod listing;
mod result;
mod scan;

#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod fuzzing;

mod child;
mod connection;
pub mod guard;
mod http;
mod http_answers;
mod http_listening;
mod http_streams;
mod line_transport;
pub mod login;
mod progress;
mod server;
mod server_requests;
pub mod servers;
mod table;
