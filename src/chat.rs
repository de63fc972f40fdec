//! The events of a conversation and their projections.

pub mod event;
pub mod patch;
pub mod timeline;
pub mod tool;
pub mod transcript;
pub mod ui;

#[cfg(test)]
mod tests;
