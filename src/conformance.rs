//! Checks streams of the protocol against the contract line by line, and lists their events.

pub mod check;
pub mod events;
