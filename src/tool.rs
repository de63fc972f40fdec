//! Tools: what the model is offered, which calls need approval, and the MCP servers that run them.

pub mod approval;
pub mod catalogue;
pub mod config;
pub mod servers;
