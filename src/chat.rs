//! The events of a conversation and their projections.

pub(crate) mod attached;
pub(crate) mod copy;
pub(crate) mod entities;
pub mod event;
pub mod patch;
pub mod record;
pub(crate) mod replay;
pub(crate) mod timeline;
pub mod tool;
pub mod transcript;
pub(crate) mod ui;

#[cfg(test)]
mod tests;
