//! Streams of the protocol, checked against the contract line by line, or listed event by event.

pub mod check;
pub mod events;
