//! Checks streams of the protocol against the contract line by line ([`check`]), lists their events
//! ([`events`]), and reads the conversation in them (`recording`). Pure.

pub mod check;
pub mod events;
pub(crate) mod recording;
