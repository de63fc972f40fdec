//! Tools: what the model is offered, which calls need approval, and the MCP servers that run them.
//!
//! | module | what it is |
//! |---|---|
//! | [`catalogue`] | the tools, under names that every provider takes (pure) |
//! | [`approval`], [`limits`] | which calls may run, need approval, or are denied; limits on calls (pure) |
//! | [`servers`] | MCP servers over the official SDK: one task for each (`server`), and one `table` of their states |
//! | [`config`], `listing`, `result`, `scan` | what is read from files and servers (pure) |
//! | `connection` | asks a server over `line_transport` or `http` |
//! | `server_requests`, `http_streams` | limits on what servers request, and on streams over HTTP |
//! | `child`, [`guard`] | starts and ends a process; the small process that stays with it |

pub mod approval;
pub mod catalogue;
pub mod config;
pub mod limits;

mod listing;
mod result;
mod scan;

mod child;
mod connection;
pub mod guard;
mod http;
mod http_streams;
mod line_transport;
mod server;
mod server_requests;
pub mod servers;
mod table;
