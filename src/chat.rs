//! The events of a conversation and their projections. Pure.
//!
//! | module | what it is |
//! |---|---|
//! | [`event`] | one variant per backend event: everything that can happen in a run |
//! | [`tool`] | a tool as it is offered to the model |
//! | `choices` | what the client chose, and what its process answered with |
//! | [`record`], `replay` | what a store is given and gives back; stored events as events again, and what closes a run that was cut off |
//! | [`patch`], `ui` | patches; the conversation as a stream of changes |
//! | `timeline`, [`transcript`] | the conversation as a person sees it, and as the model sees it |
//! | `endings` | how messages and runs ended, as their entities show it |
//! | `entities`, `copy` | the other way round, for sessions that are copied or imported: entities made of frames, turns made of entities, and the records with which such a session begins |

pub(crate) mod attached;
pub(crate) mod choices;
pub(crate) mod copy;
pub(crate) mod endings;
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
