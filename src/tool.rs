//! Tools: what the model is offered, which calls need approval, and the MCP servers that run them.

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
mod line_transport;
mod server;
pub mod servers;
mod table;
