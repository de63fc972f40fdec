//! Checks streams of the protocol against the contract line by line, lists their events, and reads the
//! conversation in them.

pub mod check;
pub mod events;
pub(crate) mod recording;
