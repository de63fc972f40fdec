//! What happens in a conversation, and what can be seen of it: events and their projections.

pub mod event;
pub mod patch;
pub mod timeline;
pub mod transcript;
pub mod ui;

#[cfg(test)]
mod tests;
