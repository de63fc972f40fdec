//! The events of a conversation and their projections. Pure.
//!
//! | module | what it is |
//! |---|---|
//! | [`event`] | one variant per backend event: everything that can happen in a run |
//! | [`tool`], `tool_images` | a tool as it is offered to the model; the images in a result |
//! | `choices` | what the client chose, and what its process answered with |
//! | [`log`], `projections` | the log of events, which a store is given and gives back; everything that is known of a conversation, as folds of its log |
//! | [`patch`], `ui` | patches; the conversation as a stream of changes |
//! | `timeline`, [`transcript`] | the conversation as a person sees it, and as the model sees it |
//! | `usage`, `summaries` | token counts and costs; what answered in each turn, and what it took |
//! | `answered` | the requests that have started runs |
//! | `endings` | how messages and runs ended, as their entities show it |
//! | `entities`, `copy` | the other way round, for sessions that are copied or imported: entities made of frames, turns made of entities, and the log with which such a session begins |

pub(crate) mod answered;
pub(crate) mod attached;
pub(crate) mod choices;
pub(crate) mod compaction;
pub(crate) mod copy;
pub(crate) mod endings;
pub(crate) mod entities;
pub mod event;
pub mod log;
pub mod patch;
pub(crate) mod projections;
pub(crate) mod summaries;
pub(crate) mod timeline;
pub mod tool;
pub(crate) mod tool_images;
pub mod transcript;
pub(crate) mod ui;
pub(crate) mod usage;

#[cfg(test)]
mod tests;
