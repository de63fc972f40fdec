//! The state machine against its contract: every short sequence of inputs, long random ones, the
//! table of answers, conversations kept as text, and the requests to providers.
//!
//! `contract` holds what must be true; `scene` makes the inputs; the rest feeds the one from the
//! other.

mod choices;
mod compactions;
mod contract;
mod cut_off_calls;
mod declared_tools;
mod edits;
mod encodable;
mod endless;
mod exhaustive;
mod file_reads;
mod golden;
mod ledger;
mod model;
mod mutants;
mod one_shot;
mod planted;
mod random;
mod reports;
pub(crate) mod scene;
mod sequences;
mod story;
mod table;
mod tool_loop;
mod tool_progress;
